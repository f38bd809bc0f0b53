/* check_layout.c - every level of the reorders' kernels against what they say they do.
 *
 *     check_layout [LEVEL]
 *
 * Transposes of every number of rows and columns 0..130, copies and fills of
 * every length, bits exchanged, at any address, up to a page that must not be touched; then
 * whole blocks, which interleave, stage and stream.  One line per kernel; fails if one
 * does. */
#include "check.h"

#include "tensor/code.h"
#include "reorder/layout.h"

enum { ROOM = 320 << 10, MOST = 130, BLOCKS = 6000, MAX_DIMS = 4 };

static uint8_t *src_room, *dst_room, *want_room;

/* Where `size` bytes go: the beginning or the end of a room, or a line or an odd place in it. */
static size_t place(size_t size)
{
    size_t free_bytes = ROOM - size;
    switch (below(4)) {
    case 0:  return 0;
    case 1:  return free_bytes;
    case 2:  return below(free_bytes + 1) / TN_LINE * TN_LINE;
    default: return below(free_bytes + 1);
    }
}

static void clear_rooms(void)
{
    memset(dst_room, CANARY, ROOM);
    memset(want_room, CANARY, ROOM);
}

static bool same(const char *what)
{
    if (memcmp(dst_room, want_room, ROOM) == 0)
        return true;
    size_t i = 0;
    while (dst_room[i] == want_room[i])
        i++;
    printf("      %s: byte %zu: expected %x but found %x", what, i, want_room[i], dst_room[i]);
    return false;
}

/* --- transposes ------------------------------------------------------------------ */

typedef struct plane {
    size_t    rows, columns, size;
    ptrdiff_t dst_step, src_step;
} plane;

/* Rows of n bytes: a step from one to the next, forwards or backwards. */
static ptrdiff_t step_for(size_t n)
{
    size_t step = n + (below(2) ? 0 : below(70));
    if (below(3) == 0)
        step = (step + TN_LINE - 1) / TN_LINE * TN_LINE;
    return below(4) ? (ptrdiff_t)step : -(ptrdiff_t)step;
}

/* The place of row 0 in a room. */
static size_t first_row(size_t rows, size_t bytes, ptrdiff_t step)
{
    size_t wide = (size_t)(step < 0 ? -step : step), reach = rows ? (rows - 1) * wide : 0;
    size_t at = place(rows ? reach + bytes : 0);
    return step < 0 ? at + reach : at;
}

static bool check_plane(tn_transpose_fn transpose, const plane *p, bool stream)
{
    size_t to = first_row(p->rows, p->columns * p->size, p->dst_step);
    size_t from = first_row(p->columns, p->rows * p->size, p->src_step);
    clear_rooms();
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < p->columns; j++) {
            uint8_t *row = want_room + to + (ptrdiff_t)i * p->dst_step;
            const uint8_t *column = src_room + from + (ptrdiff_t)j * p->src_step;
            memcpy(row + j * p->size, column + i * p->size, p->size);
        }
    transpose(dst_room + to, p->dst_step, src_room + from, p->src_step, p->rows, p->columns, stream);
    if (same("transpose"))
        return true;
    printf(" (%zu rows, %zu columns of %zu bytes, steps %td and %td, stream %d)\n", p->rows, p->columns,
           p->size, p->dst_step, p->src_step, stream);
    return false;
}

static bool check_transpose(tn_transpose_fn transpose, size_t size)
{
    for (size_t n = 0; n <= MOST; n++)
        for (unsigned k = 0; k < 16; k++) {
            size_t other = below(below(2) ? MOST + 1 : 20);
            plane p = { .rows = k % 2 ? n : other, .columns = k % 2 ? other : n, .size = size };
            p.dst_step = step_for(p.columns * size);
            p.src_step = step_for(p.rows * size);
            if (!check_plane(transpose, &p, k & 2))
                return false;
        }
    return true;
}

/* --- copies and fills ---------------------------------------------------------------- */

static bool check_runs(const tn_reorder_kernels *k, bool copies)
{
    for (size_t n = 0; n < 900; n += n < 300 ? 1 : 37)
        for (unsigned i = 0; i < 8; i++) {
            size_t to = place(n), from = place(n > TN_LINE ? n : TN_LINE);
            clear_rooms();
            for (size_t b = 0; b < n; b++)
                want_room[to + b] = src_room[from + (copies ? b : b % TN_LINE)];
            if (copies)
                k->copy(dst_room + to, src_room + from, n, i & 1);
            else
                k->fill(dst_room + to, src_room + from, n, i & 1);
            if (!same(copies ? "copy" : "fill"))
                return printf(" (%zu bytes)\n", n), false;
        }
    return true;
}

/* --- bits -------------------------------------------------------------------------------- */

/* Bit `i` of each 2 * shift: below `shift` it stays in a, else it comes from b, or goes there. */
static void define_exchange(uint8_t *low, uint8_t *high, unsigned a, unsigned b, unsigned shift)
{
    *low = *high = 0;
    for (unsigned i = 0; i < 8; i++) {
        bool lower = i % (2 * shift) < shift;
        *low |= (uint8_t)((lower ? a >> i & 1 : b >> (i - shift) & 1) << i);
        *high |= (uint8_t)((lower ? a >> (i + shift) & 1 : b >> i & 1) << i);
    }
}

static bool check_exchange(const tn_reorder_kernels *k)
{
    for (size_t n = 0; n < 300; n++)
        for (unsigned shift = 1; shift <= 4; shift *= 2) {
            size_t from = place(2 * n), to = place(2 * n);
            const uint8_t *a = src_room + from, *b = a + n;
            clear_rooms();
            for (size_t i = 0; i < n; i++)
                define_exchange(want_room + to + i, want_room + to + n + i, a[i], b[i], shift);
            k->exchange(dst_room + to, dst_room + to + n, a, b, n, shift);
            if (!same("exchange"))
                return printf(" (%zu bytes, shift %u)\n", n, shift), false;
            memcpy(dst_room + to, a, 2 * n);            /* in place */
            k->exchange(dst_room + to, dst_room + to + n, dst_room + to, dst_room + to + n, n, shift);
            if (!same("exchange in place"))
                return printf(" (%zu bytes, shift %u)\n", n, shift), false;
        }
    return true;
}

/* --- blocks ------------------------------------------------------------------------------ */

typedef struct block {
    unsigned       bits;
    uint32_t       rank;
    tn_reorder_dim dims[MAX_DIMS];
    uint8_t        fill[16];
    bool           stream;
    size_t         dst_bytes, src_bytes;
} block;

static void put_element(const block *b, uint8_t *dst, int64_t to, const uint8_t *src, int64_t from)
{
    if (b->bits < 8)
        tn_packed_put(dst, (uint64_t)to, b->bits, tn_packed_get(src, (uint64_t)from, b->bits));
    else
        memcpy(dst + to * b->bits / 8, src + from * b->bits / 8, b->bits / 8);
}

static void define(const block *b, uint8_t *dst, const uint8_t *src)
{
    int64_t index[MAX_DIMS] = { 0 };
    for (;;) {
        int64_t to = 0, from = 0;
        bool copied = true;
        for (uint32_t i = 0; i < b->rank; i++) {
            to += index[i] * b->dims[i].dst_stride;
            from += index[i] * b->dims[i].src_stride;
            copied &= index[i] < b->dims[i].src_extent;
        }
        put_element(b, dst, to, copied ? src : b->fill, copied ? from : 0);
        uint32_t i = b->rank;
        while (i > 0 && ++index[i - 1] == b->dims[i - 1].dst_extent)
            index[--i] = 0;
        if (i == 0)
            return;
    }
}

/* Dense or nearly so, in any order of dimensions; returns the elements from the first to the last. */
static int64_t place_elements(block *b, bool of_dst)
{
    uint32_t order[MAX_DIMS];
    int64_t next = 1, last = 0;
    bool gaps = below(4) == 0;
    for (uint32_t i = 0; i < b->rank; i++) {
        uint32_t k = below(3) ? i : (uint32_t)below(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < b->rank; i++) {
        tn_reorder_dim *d = &b->dims[order[i]];
        int64_t extent = of_dst ? d->dst_extent : d->src_extent, used = extent;
        if (gaps && below(3) == 0)
            extent += (int64_t)below(3);
        *(of_dst ? &d->dst_stride : &d->src_stride) = next;
        last += (used - 1) * next;
        next *= extent;
    }
    return last + 1;
}

static void make_block(block *b)
{
    static const unsigned widths[] = { 1, 2, 4, 4, 6, 8, 8, 8, 16, 16, 32, 32, 64, 128 };
    static const uint64_t most[] = { 1, 2000, 500, 60, 20 };
    do {
        b->bits = widths[below(sizeof widths / sizeof *widths)];
        b->rank = (uint32_t)below(MAX_DIMS) + 1;
        b->stream = below(2);
        bool pads = below(2);
        uint32_t few = (uint32_t)below(2 * b->rank);    /* a dimension of channels */
        for (uint32_t i = 0; i < b->rank; i++) {
            uint64_t limit = i == few ? 9 : below(5) ? most[b->rank] : 200;
            int64_t n = 1 + (int64_t)below(limit), change = pads ? (int64_t)below(6) - 2 : 0;
            b->dims[i].src_extent = n;
            b->dims[i].dst_extent = n + change < 1 ? 1 : n + change;
        }
        b->dst_bytes = (size_t)(place_elements(b, true) * b->bits + 7) / 8;
        b->src_bytes = (size_t)(place_elements(b, false) * b->bits + 7) / 8;
    } while (b->dst_bytes > ROOM || b->src_bytes > ROOM);
    for (size_t i = 0; i < sizeof b->fill; i++)
        b->fill[i] = (uint8_t)below(256);
}

static bool check_blocks(const tn_reorder_kernels *k)
{
    for (unsigned n = 0; n < BLOCKS; n++) {
        block b;
        make_block(&b);
        size_t to = place(b.dst_bytes), from = place(b.src_bytes);
        clear_rooms();
        define(&b, want_room + to, src_room + from);
        tn_reorder_block(k, b.bits, b.rank, b.dims, dst_room + to, src_room + from, b.fill, b.stream);
        if (same("block"))
            continue;
        printf(" (%u bits, stream %d):", b.bits, b.stream);
        for (uint32_t i = 0; i < b.rank; i++)
            printf(" [%lld of %lld, strides %lld and %lld]", (long long)b.dims[i].dst_extent,
                   (long long)b.dims[i].src_extent, (long long)b.dims[i].dst_stride,
                   (long long)b.dims[i].src_stride);
        printf("\n");
        return false;
    }
    return true;
}

/* --- levels ------------------------------------------------------------------------------- */

static void check_level(unsigned cpu)
{
    tn_reorder_kernels k;
    const char *level = tn_cpu_name(cpu);
    tn_reorder_kernels_init(&k, cpu);
    for (unsigned i = 0; i < TN_TRANSPOSE_SIZES; i++) {
        char name[40];
        snprintf(name, sizeof name, "transpose of %u bytes", 1u << i);
        report(level, name, check_transpose(k.transpose[i], (size_t)1 << i));
    }
    report(level, "copy", check_runs(&k, true));
    report(level, "fill", check_runs(&k, false));
    report(level, "exchange", check_exchange(&k));
    report(level, "blocks", check_blocks(&k));
}

int main(int argc, char **argv)
{
    src_room = guarded(ROOM);
    dst_room = guarded(ROOM);
    want_room = guarded(ROOM);
    for (size_t i = 0; i < ROOM; i++)
        src_room[i] = (uint8_t)below(256);
    return check_levels(argc, argv, check_level);
}
