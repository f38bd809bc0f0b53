/* bytes/zstd_frame.c - the headers of zstd frames and of their blocks.
 *
 * libzstd can tell a window, too, but only in its part for static linking. */
#include "bytes/zstd_frame.h"
#include "base/cursor.h"

#define MAGIC          UINT32_C(0xfd2fb528)
#define SKIPPABLE      UINT32_C(0x184d2a50)     /* and the fifteen after it */
#define SKIPPABLE_MASK UINT32_C(0xfffffff0)

enum { RESERVED = 1 << 3, BLOCK_HEADER = 3, BLOCK_RLE = 1 };

/* The byte behind the magic number: what follows it. */
static void read_fields(tn_cur *c, uint8_t flags, tn_zstd_frame *f)
{
    static const unsigned content_bytes[] = { 0, 2, 4, 8 }, dictionary_bytes[] = { 0, 1, 2, 4 };
    bool single = flags >> 5 & 1;       /* all of it is the window */
    unsigned size = content_bytes[flags >> 6];
    if (single && !size)
        size = 1;
    uint8_t window = single ? 0 : tn_cur_u8(c);
    tn_cur_take(c, dictionary_bytes[flags & 3]);
    uint64_t content = tn_cur_le(c, size) + (size == 2 ? 256 : 0), base = UINT64_C(1) << (10 + (window >> 3));
    f->checksum = flags >> 2 & 1;
    f->content = size ? content : TN_ZSTD_CONTENT_UNKNOWN;
    f->window = single ? content : base + base / 8 * (window & 7);
}

tn_zstd_look tn_zstd_frame_read(const void *bytes, size_t n, tn_zstd_frame *frame)
{
    tn_cur c = { .base = bytes, .end = n };
    uint32_t magic = (uint32_t)tn_cur_le(&c, 4);
    uint8_t flags = 0;
    *frame = (tn_zstd_frame){ 0 };
    if (c.bad)
        return TN_ZSTD_NEEDS_MORE;
    if ((magic & SKIPPABLE_MASK) == SKIPPABLE)
        *frame = (tn_zstd_frame){ .skippable = true, .content = tn_cur_le(&c, 4) };
    else if (magic == MAGIC)
        flags = tn_cur_u8(&c);
    if ((magic != MAGIC && !frame->skippable) || flags & RESERVED)
        return TN_ZSTD_NO_FRAME;
    if (magic == MAGIC)
        read_fields(&c, flags, frame);
    frame->header = c.pos;
    return c.bad ? TN_ZSTD_NEEDS_MORE : TN_ZSTD_IS_FRAME;
}

/* Where a walk over frames is. */
typedef struct walk {
    const tn_source *source;
    uint64_t at, end;
} walk;

/* The next bytes of the data, fewer at its end. */
static tn_status look(const walk *w, size_t most, uint8_t *buffer, const uint8_t **bytes, size_t *n,
                      tn_error *err)
{
    *n = w->end - w->at < most ? (size_t)(w->end - w->at) : most;
    return tn_source_get(w->source, w->at, *n, buffer, bytes, err);
}

static void skip(walk *w, uint64_t n)
{
    w->at = n < w->end - w->at ? w->at + n : w->end;
}

/* To the end of a frame whose header was read. */
static tn_status skip_blocks(walk *w, const tn_zstd_frame *f, tn_error *err)
{
    bool last = false;
    while (!last) {
        uint8_t buffer[BLOCK_HEADER];
        const uint8_t *bytes;
        size_t n;
        TN_TRY(look(w, BLOCK_HEADER, buffer, &bytes, &n, err));
        tn_cur c = { .base = bytes, .end = n };
        uint32_t block = (uint32_t)tn_cur_le(&c, BLOCK_HEADER);
        last = c.bad || block & 1;
        skip(w, BLOCK_HEADER);
        skip(w, (block >> 1 & 3) == BLOCK_RLE ? 1 : block >> 3);
    }
    skip(w, f->checksum ? 4 : 0);
    return TN_OK;
}

tn_status tn_zstd_largest_window(const tn_source *source, uint64_t from, uint64_t size, uint64_t content,
                                 uint64_t *window, tn_error *err)
{
    walk w = { source, from, from + size };
    *window = 0;
    while (w.at < w.end) {
        uint8_t buffer[TN_ZSTD_HEADER_MAX];
        const uint8_t *bytes;
        size_t n;
        tn_zstd_frame f;
        TN_TRY(look(&w, sizeof buffer, buffer, &bytes, &n, err));
        if (tn_zstd_frame_read(bytes, n, &f) != TN_ZSTD_IS_FRAME)
            return TN_OK;
        *window = f.window > *window ? f.window : *window;
        if (!f.skippable && f.content == content)
            return TN_OK;
        skip(&w, f.header);
        if (f.skippable)
            skip(&w, f.content);
        else
            TN_TRY(skip_blocks(&w, &f, err));
    }
    return TN_OK;
}
