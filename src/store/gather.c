/* store/gather.c - reading strided elements of a file as dense ones. */
#include "store/gather.h"
#include "base/checked.h"
#include "quant/moved_codes.h"
#include "store/columns.h"
#include "tensor/code.h"

#include <string.h>

/* Reading so many unneeded bytes costs less than another call. */
enum { NEAR_BYTES = 4096 };

typedef struct axis {
    uint64_t extent;
    uint64_t step, to;          /* in elements: in the file, and in the output */
} axis;

/* A run of elements in row-major order: all indices of some dimensions and a range of another.  The axis with
 * the smallest step in the file comes first. */
typedef struct box {
    uint64_t at, to;            /* of the first one */
    uint64_t count;
    uint32_t rank;              /* at least 1 */
    axis     axes[TN_MAX_RANK];
} box;

typedef struct gathering {
    const tn_gather *g;
    unsigned         bits;      /* of an element */
    uint8_t         *out;
} gathering;

/* --- choosing a box --- */

static void add_axis(box *b, axis a)
{
    uint32_t i = b->rank++;
    for (; i > 0 && b->axes[i - 1].step > a.step; i--)
        b->axes[i] = b->axes[i - 1];
    b->axes[i] = a;
}

/* Joins axes if one continues where the other ends. */
static void join_axes(box *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 1; i < b->rank; i++) {
        axis *last = &b->axes[kept];
        const axis *next = &b->axes[i];
        if (next->step == last->step * last->extent && next->to == last->to * last->extent)
            last->extent *= next->extent;
        else
            b->axes[++kept] = *next;
    }
    b->rank = kept + 1;
}

/* The largest box from an element on, of at most so many. */
static void choose_box(const tn_grid *grid, uint64_t first, uint64_t most, box *b)
{
    bool whole = true;          /* all later dimensions are complete */
    b->at = b->rank = 0;
    b->count = 1;
    for (uint32_t i = grid->rank; i-- > 0;) {
        uint64_t extent = (uint64_t)grid->shape[i], step = (uint64_t)grid->stride[i], index = first % extent;
        first /= extent;
        b->at += index * step;
        if (!whole)
            continue;
        uint64_t n = tn_min_u64(extent - index, most / b->count);
        if (n > 1)
            add_axis(b, (axis){ n, step, b->count });
        whole = n == extent;
        b->count *= n;
    }
    if (b->rank == 0)
        add_axis(b, (axis){ 1, 1, 1 });
    join_axes(b);
}

/* --- copying --- */

/* The byte after an element of a packed array. */
static uint64_t packed_end(uint64_t i, unsigned bits)
{
    return i / 8 * bits + (i % 8 * bits + bits + 7) / 8;
}

/* Copies an element that is narrower than a byte. */
static void copy_code(const gathering *w, uint64_t to, const uint8_t *from, uint64_t at)
{
    unsigned bit = tn_packed_bit(at, w->bits);
    tn_packed_put(w->out, to, w->bits, (from[0] | (bit + w->bits > 8 ? (unsigned)from[1] << 8 : 0)) >> bit);
}

/* The elements along one axis; `from` is the file from byte `begin` of the part on. */
static void copy_line(const gathering *w, const axis *a, uint64_t at, uint64_t to, const uint8_t *from,
                      uint64_t begin)
{
    size_t size = w->bits / 8, n = (size_t)a->extent;
    if (w->bits % 8) {
        for (size_t i = 0; i < n; i++, at += a->step, to += a->to)
            copy_code(w, to, from + (tn_packed_byte(at, w->bits) - begin), at);
    } else if (a->step == 1 && a->to == 1) {
        memcpy(w->out + to * size, from + (at * size - begin), n * size);
    } else {
        tn_copy_apart(w->out + to * size, (size_t)a->to * size, from + (at * size - begin),
                      (size_t)a->step * size, size, n);
    }
}

/* Dense runs along the first axis, at all indices of the second. */
static void copy_runs(const gathering *w, const box *b, uint64_t at, uint64_t to, const uint8_t *from,
                      uint64_t begin)
{
    size_t size = w->bits / 8;
    tn_copy_apart(w->out + to * size, (size_t)b->axes[1].to * size, from + (at * size - begin),
                  (size_t)b->axes[1].step * size, (size_t)b->axes[0].extent * size,
                  (size_t)b->axes[1].extent);
}

/* A matrix whose columns become rows. */
static void turn(const gathering *w, const box *b, const uint8_t *in)
{
    const size_t size = w->bits / 8;
    const tn_turned matrix = { .size = size, .rows = (size_t)b->axes[1].extent,
                               .columns = (size_t)b->axes[0].extent,
                               .in_step = (size_t)b->axes[1].step * size,
                               .out_step = (size_t)b->axes[0].to * size };
    tn_matrix_turn(w->out + b->to * size, in, &matrix);
}

static bool is_turned(const gathering *w, const box *b)
{
    bool is_plain = w->bits == 8 || w->bits == 16 || w->bits == 32 || w->bits == 64;
    return b->rank == 2 && is_plain && b->axes[0].step == 1 && b->axes[1].to == 1;
}

static void copy_lines(const gathering *w, const box *b, const uint8_t *from, uint64_t begin)
{
    uint64_t index[TN_MAX_RANK], at = b->at, to = b->to;
    bool runs = b->rank > 1 && w->bits % 8 == 0 && b->axes[0].step == 1 && b->axes[0].to == 1;
    uint32_t i;
    if (is_turned(w, b)) {
        turn(w, b, from + (at * (w->bits / 8) - begin));
        return;
    }
    memset(index, 0, b->rank * sizeof *index);
    do {
        if (runs)
            copy_runs(w, b, at, to, from, begin);
        else
            copy_line(w, &b->axes[0], at, to, from, begin);
        for (i = runs ? 2 : 1; i < b->rank; i++) {
            const axis *a = &b->axes[i];
            at += a->step;
            to += a->to;
            if (++index[i] < a->extent)
                break;
            at -= a->extent * a->step;
            to -= a->extent * a->to;
            index[i] = 0;
        }
    } while (i < b->rank);
}

/* --- reading --- */

/* Elements of the file from the first of a box to after the last. */
static uint64_t span_of(const box *b)
{
    uint64_t span = 1;
    for (uint32_t i = 0; i < b->rank; i++)
        span += (b->axes[i].extent - 1) * b->axes[i].step;
    return span;
}

/* The bytes of a box: where they begin; returns how many. */
static uint64_t bytes_of(const gathering *w, const box *b, uint64_t *begin)
{
    *begin = tn_packed_byte(b->at, w->bits);
    return packed_end(b->at + span_of(b) - 1, w->bits) - *begin;
}

static tn_status copy_piece(const gathering *w, const box *piece, tn_error *err)
{
    uint64_t begin, n = bytes_of(w, piece, &begin);
    const uint8_t *from;
    TN_TRY(tn_source_get(w->g->source, w->g->at + begin, (size_t)n, w->g->buffer, &from, err));
    copy_lines(w, piece, from, begin);
    return tn_source_check_range(w->g->source, w->g->at + begin, n, err);
}

/* How many axes, those with small steps, are read at once, and how many indices of the next one: *some. */
static uint32_t choose_piece(const gathering *w, const box *b, uint64_t *some)
{
    uint64_t most = (w->g->cap - 2) * 8 / w->bits, span = 1, near = NEAR_BYTES * 8 / w->bits;
    uint32_t n = 0;
    *some = 1;
    for (; n < b->rank; n++) {
        const axis *a = &b->axes[n];
        if (a->step > span && a->step - span > near)
            break;
        uint64_t fit = a->step ? (most - span) / a->step + 1 : a->extent;
        if (fit < a->extent) {
            *some = fit;
            break;
        }
        span += (a->extent - 1) * a->step;
    }
    return n;
}

/* The piece of a box at some indices of the axes that it has not whole. */
static void cut_piece(const box *b, uint32_t whole, uint64_t some, const uint64_t *index, box *piece)
{
    piece->at = b->at;
    piece->to = b->to;
    piece->rank = whole;
    memcpy(piece->axes, b->axes, whole * sizeof *piece->axes);
    for (uint32_t i = whole; i < b->rank; i++) {
        piece->at += index[i] * b->axes[i].step;
        piece->to += index[i] * b->axes[i].to;
    }
    if (whole == b->rank)
        return;
    const axis *a = &b->axes[whole];
    piece->axes[piece->rank++] = (axis){ tn_min_u64(a->extent - index[whole], some), a->step, a->to };
}

/* Bytes that are mapped need not be read in pieces. */
static tn_status copy_box(const gathering *w, const box *b, tn_error *err)
{
    uint64_t begin, n = bytes_of(w, b, &begin), some, index[TN_MAX_RANK] = { 0 };
    if (tn_source_view(w->g->source, w->g->at + begin, n))
        return copy_piece(w, b, err);
    uint32_t whole = choose_piece(w, b, &some), i;
    tn_status status;
    do {
        box piece;
        cut_piece(b, whole, some, index, &piece);
        status = copy_piece(w, &piece, err);
        for (i = whole; i < b->rank; i++) {
            index[i] += i == whole ? some : 1;
            if (index[i] < b->axes[i].extent)
                break;
            index[i] = 0;
        }
    } while (!status && i < b->rank);
    return status;
}

tn_status tn_gather_elements(const tn_gather *g, const tn_grid *grid, uint64_t first, uint64_t count,
                             uint8_t *out, tn_error *err)
{
    gathering w = { g, grid->bits, out };
    box b;
    for (b.to = 0; b.to < count; b.to += b.count) {
        choose_box(grid, first + b.to, count - b.to, &b);
        TN_TRY(copy_box(&w, &b, err));
    }
    return TN_OK;
}
