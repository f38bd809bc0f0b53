/* formats/gguf/header.c - reading the header piece by piece: only as much of the file is read as it takes. */
#include "formats/gguf/gguf.h"
#include "base/checked.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 64 << 10 };

/* ---- bytes ---- */

tn_status tn_gguf_begin(tn_gguf_in *in, const tn_source *source, tn_error *err)
{
    *in = (tn_gguf_in){ .source = source, .size = tn_source_size(source), .err = err };
    in->window = malloc(WINDOW);
    in->status = in->window ? TN_OK : tn_fail_nomem(err);
    return in->status;
}

void tn_gguf_end(tn_gguf_in *in)
{
    free(in->window);
    in->window = NULL;
}

tn_status tn_gguf_fail(tn_gguf_in *in, tn_status status, uint64_t at, const char *format, ...)
{
    if (in->status)
        return in->status;      /* the first failure counts */
    char text[sizeof in->err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    in->status = status;
    return tn_fail_at(in->err, status, at, "%s", text);
}

static tn_status cut_off(tn_gguf_in *in, uint64_t n, const char *what)
{
    return tn_gguf_fail(in, TN_ERR_TRUNCATED, tn_gguf_at(in),
                        "expected a %s of %" PRIu64 " bytes but the file has %" PRIu64 " more", what, n,
                        tn_gguf_left(in));
}

/* Moves the window so that it begins at the present byte. */
static tn_status refill(tn_gguf_in *in)
{
    in->base += in->pos;
    in->pos = 0;
    in->have = (size_t)tn_min_u64(in->size - in->base, WINDOW);
    in->status = tn_source_read(in->source, in->base, in->window, in->have, in->err);
    return in->status;
}

/* The next n bytes, at most 8, or NULL. */
static const uint8_t *take(tn_gguf_in *in, unsigned n)
{
    if (in->status)
        return NULL;
    if (n > in->have - in->pos) {
        if (n > tn_gguf_left(in))
            cut_off(in, n, "number");
        else
            refill(in);
        if (in->status)
            return NULL;
    }
    in->pos += n;
    return in->window + in->pos - n;
}

uint64_t tn_gguf_uint(tn_gguf_in *in, unsigned bytes)
{
    const uint8_t *p = take(in, bytes);
    uint64_t value = 0;
    for (unsigned i = 0; p && i < bytes; i++)
        value = value << 8 | p[in->style.big ? i : bytes - 1 - i];
    return value;
}

uint64_t tn_gguf_wide(tn_gguf_in *in)
{
    return tn_gguf_uint(in, in->style.wide);
}

uint64_t tn_gguf_count(tn_gguf_in *in, unsigned least, const char *what)
{
    uint64_t at = tn_gguf_at(in), count = tn_gguf_wide(in);
    if (in->status || count <= tn_gguf_left(in) / least)
        return in->status ? 0 : count;
    if (least == 1)
        tn_gguf_fail(in, TN_ERR_TRUNCATED, at, "expected %" PRIu64 " %s but the file has %" PRIu64 " more",
                     count, what, tn_gguf_left(in));
    else
        tn_gguf_fail(in, TN_ERR_TRUNCATED, at,
                     "expected %" PRIu64 " %s of at least %u bytes but the file has %" PRIu64 " more", count,
                     what, least, tn_gguf_left(in));
    return 0;
}

void tn_gguf_seek(tn_gguf_in *in, uint64_t at)
{
    if (at >= in->base && at - in->base <= in->have) {
        in->pos = (size_t)(at - in->base);
        return;
    }
    in->base = at;
    in->pos = in->have = 0;
}

void tn_gguf_skip(tn_gguf_in *in, uint64_t n)
{
    if (!in->status && n > tn_gguf_left(in))
        cut_off(in, n, "shape");
    if (!in->status)
        tn_gguf_seek(in, tn_gguf_at(in) + n);
}

void tn_gguf_copy(tn_gguf_in *in, uint8_t *to, size_t n)
{
    if (in->status || !n)
        return;
    size_t here = in->have - in->pos < n ? in->have - in->pos : n;
    memcpy(to, in->window + in->pos, here);
    in->pos += here;
    if (here == n)
        return;
    uint64_t at = tn_gguf_at(in);
    in->status = tn_source_read(in->source, at, to + here, n - here, in->err);
    in->base = at + (n - here);
    in->pos = in->have = 0;
}

const char *tn_gguf_name(tn_gguf_in *in, tn_arena *arena, const char *what)
{
    uint64_t at = tn_gguf_at(in), n = tn_gguf_wide(in);
    if (in->status)
        return NULL;
    if (n > tn_gguf_left(in)) {
        cut_off(in, n, what);
        return NULL;
    }
    char *name = tn_arena_alloc(arena, (size_t)n + 1);
    if (!name) {
        in->status = tn_fail_nomem(in->err);
        return NULL;
    }
    tn_gguf_copy(in, (uint8_t *)name, (size_t)n);
    name[in->status ? 0 : n] = '\0';
    if (!in->status && memchr(name, 0, (size_t)n))
        tn_gguf_fail(in, TN_ERR_CORRUPT, at, "%s %s holds a NUL character", what,
                     tn_quote(name, (size_t)n).text);
    if (!in->status && tn_utf8_valid(name, (size_t)n) != n)
        tn_gguf_fail(in, TN_ERR_CORRUPT, at, "%s %s is not UTF-8", what, tn_quote(name, (size_t)n).text);
    return in->status ? NULL : name;
}

/* ---- the header ---- */

/* The low half of a version is 0 only if it is read in the other byte order. */
static tn_status read_style(tn_gguf_in *in)
{
    uint8_t magic[TN_GGUF_MAGIC_BYTES] = { 0 };
    if (in->size < sizeof magic)
        return cut_off(in, sizeof magic, "beginning \"GGUF\"");
    tn_gguf_copy(in, magic, sizeof magic);
    if (!in->status && memcmp(magic, TN_GGUF_MAGIC, sizeof magic) != 0)
        return tn_gguf_fail(in, TN_ERR_CORRUPT, 0, "expected a file that begins with \"GGUF\" but found %s",
                            tn_quote((const char *)magic, sizeof magic).text);
    uint32_t version = (uint32_t)tn_gguf_uint(in, 4);
    in->style = (tn_gguf_style){ .version = version, .wide = 8 };
    if (version && (version & 0xffff) == 0) {
        in->style.big = true;
        in->style.version = __builtin_bswap32(version);
    }
    if (in->style.version == 1)
        in->style.wide = 4;
    if (!in->status && (in->style.version < 1 || in->style.version > TN_GGUF_VERSION))
        return tn_gguf_fail(in, TN_ERR_UNSUPPORTED, TN_GGUF_MAGIC_BYTES,
                            "expected GGUF version 1, 2 or 3 but found %" PRIu32, in->style.version);
    return in->status;
}

static const char *key_at(const void *owner, size_t i)
{
    return ((const tn_gguf_header *)owner)->meta[i].key;
}

static tn_status read_pair(tn_gguf_in *in, tn_gguf_header *h, tn_buf *scratch, tn_arena *arena)
{
    uint64_t at = tn_gguf_at(in);
    tn_meta meta = { .key = tn_gguf_name(in, arena, "metadata key") };
    uint32_t type = (uint32_t)tn_gguf_uint(in, 4);
    if (in->status)
        return in->status;
    if (!*meta.key)
        return tn_gguf_fail(in, TN_ERR_CORRUPT, at, "expected a metadata key but found an empty text");
    if (tn_gguf_read_value(in, type, scratch, arena, &meta))
        return in->status;
    if (strcmp(meta.key, TN_GGUF_ALIGNMENT) == 0 && tn_gguf_alignment(&meta, &h->alignment, in->err))
        return in->status = tn_at_byte(in->err->status, at, in->err);
    if (!TN_GROW(h->meta, h->nmeta, h->meta_cap))
        return in->status = tn_fail_nomem(in->err);
    h->meta[h->nmeta++] = meta;
    size_t other = tn_names_add(&h->names, h, key_at, h->nmeta - 1);
    if (other == TN_NAMES_NOMEM)
        return in->status = tn_fail_nomem(in->err);
    if (other != TN_NAMES_ADDED)
        return tn_gguf_fail(in, TN_ERR_CORRUPT, at, "metadata key %s is there twice",
                            tn_quote_z(meta.key).text);
    return TN_OK;
}

static tn_status read_pairs(tn_gguf_in *in, tn_gguf_header *h, uint64_t count, tn_arena *arena)
{
    tn_buf scratch = { 0 };
    tn_status status = in->status;
    for (uint64_t i = 0; i < count && !status; i++)
        status = read_pair(in, h, &scratch, arena);
    tn_buf_free(&scratch);
    return status;
}

const tn_meta *tn_gguf_find(const tn_gguf_header *h, const char *key)
{
    size_t i = tn_names_find(&h->names, h, key_at, key);
    return i < h->nmeta ? &h->meta[i] : NULL;
}

bool tn_gguf_integer(const tn_meta *meta, int64_t *value)
{
    tn_arena arena = { 0 };
    tn_cbor c;
    tn_meta_value v = { .type = TN_META_NONE };
    if (meta->text)
        return false;
    tn_cbor_init(&c, meta->cbor, meta->cbor_size, &arena);
    tn_meta_take_value(&c, &v);
    tn_arena_free(&arena);
    *value = (int64_t)v.bits;
    return tn_meta_is_integer(v.type) && (v.type != TN_META_U64 || v.bits <= INT64_MAX);
}

tn_status tn_gguf_alignment(const tn_meta *meta, uint64_t *alignment, tn_error *err)
{
    int64_t value = 0;
    tn_meta_type items;
    *alignment = TN_GGUF_USUAL_ALIGN;
    if (!meta)
        return TN_OK;
    if (tn_meta_type_of(meta, &items) != TN_META_U32)
        return tn_fail(err, TN_ERR_CORRUPT, TN_GGUF_ALIGNMENT ": expected a number of type u32");
    if (!tn_gguf_integer(meta, &value) || !tn_is_power_of_two((uint64_t)value))
        return tn_fail(err, TN_ERR_CORRUPT, TN_GGUF_ALIGNMENT ": expected a power of two but found %" PRId64,
                       value);
    *alignment = (uint64_t)value;
    return TN_OK;
}

tn_status tn_gguf_read_header(tn_gguf_in *in, tn_gguf_header *h, tn_arena *arena)
{
    if (read_style(in))
        return in->status;
    h->style = in->style;
    unsigned wide = in->style.wide;
    /* a tensor has at least a length, a rank, a type and an offset; a pair a length, a type and a byte */
    h->tensors = tn_gguf_count(in, wide + 4 + 4 + 8, "tensors");
    uint64_t pairs = tn_gguf_count(in, wide + 4 + 1, "metadata values");
    h->alignment = TN_GGUF_USUAL_ALIGN;
    if (read_pairs(in, h, pairs, arena))
        return in->status;
    h->tensors_at = tn_gguf_at(in);
    return TN_OK;
}

void tn_gguf_header_free(tn_gguf_header *h)
{
    free(h->meta);
    tn_names_free(&h->names);
    *h = (tn_gguf_header){ 0 };
}
