/* quant/scaled_search_book.c - codebooks: the mappings with the least squared error. */
#include "quant/scaled_search.h"

#include <math.h>

/* Sets float scales from w->largest; false: kernels cannot encode the tiles. */
static bool set_floats(const tn_scaled_plan *p, tn_search_scratch *w, size_t tiles)
{
    const tn_datatype *d = p->d;
    tn_coder coder = tn_coder_for(&d->scale, TN_ROUND_EVEN, 0, TN_DRAW_SCALE);
    float top = tn_compute_spec(d)->maxfloat;
    for (size_t k = 0; k < tiles; k++) {
        float largest = tn_float_of(w->largest[k]);
        w->own.scale[k] = largest > 0 ? tn_coder_float(&coder, largest / top, 0) : 0;
        w->own.step[k] = tn_scale_value(d, w->own.scale[k], 0);
        if (w->largest[k] >= TN_BITS_INFINITE)
            return false;
    }
    return true;
}

/* --- codebooks ------------------------------------------------------------------------------ */

/* The smallest float32 not below the midpoint. */
static float middle_of(float a, float b)
{
    double middle = ((double)a + (double)b) / 2;
    float near = (float)middle;
    return (double)near < middle ? nextafterf(near, INFINITY) : near;
}

static void set_mapping(tn_search_book *b, uint32_t m, const float *value, uint32_t values)
{
    uint32_t first = 0;
    b->first[m] = 0;
    for (uint32_t v = 1; v < TN_SEARCH_VALUES; v++) {
        if (v < values && value[v] != value[v - 1])
            first = v;
        b->value[v][m] = v < values ? value[v] : 0;
        b->from[v][m] = v < values ? middle_of(value[v - 1], value[v]) : INFINITY;
        b->first[m] |= first << 4 * v;
    }
}

/* Whether differences of values and numbers are exact in float32: the smallest step of the numbers is not
 * below the last bit of the largest value, which is twice the largest number. */
static bool is_coarse(const tn_number_spec *n)
{
    return n->emax - n->emin + n->mantissa_bits <= 22;
}

/* A row is a magnitude without its low bits.  No threshold has any of these bits set. */
static void set_rows(tn_search_book *b)
{
    uint32_t any = 0, least = TN_BITS_INFINITE, most = 0;
    for (uint32_t v = 1; v < TN_SEARCH_VALUES; v++)
        for (uint32_t m = 0; m < TN_SEARCH_MAPPINGS; m++) {
            uint32_t bits = tn_float_bits(b->from[v][m]);
            if (bits == 0 || bits == TN_BITS_INFINITE)
                continue;
            any |= bits;
            least = bits < least ? bits : least;
            most = bits > most ? bits : most;
        }
    b->row_shift = (unsigned)__builtin_ctz(any | TN_BITS_NORMAL);
    b->first_row = (least >> b->row_shift) - 1;
    b->rows = (most >> b->row_shift) - b->first_row + 1;
    if (b->rows > TN_SEARCH_ROWS || least < TN_BITS_NORMAL)
        b->rows = 0;
}

static void set_book(tn_search_book *b, const tn_datatype *d)
{
    const tn_codebook *from = &d->codebook;
    b->mappings = from->mappings;
    b->sign = from->values;
    b->exact = tn_search_is_power(d) && is_coarse(&from->compute);
    for (uint32_t m = 0; m < TN_SEARCH_MAPPINGS; m++)
        set_mapping(b, m, from->value + (m < from->mappings ? m : 0) * from->values, from->values);
    set_rows(b);
}

/* What is constant for a plan. */
typedef struct book_encoder {
    tn_search_book book;
    tn_search_powers power;
    tn_search_trials trials;
    size_t subtile;
} book_encoder;

/* Sets the scales of tiles from w->largest, by the rule or by trials; false: kernels cannot encode them. */
static bool choose_scales(const tn_search_tables *kernels, const tn_scaled_plan *p, const book_encoder *l,
                          const tn_search_tiles *tiles, tn_search_scratch *w)
{
    size_t n = tiles->count;
    if (p->o.rule != TN_SCALE_MSE)
        return tn_search_is_power(p->d) ? tn_search_set_powers(&l->power, w, n) : set_floats(p, w, n);
    if (!tn_search_are_normal(w, n))
        return false;
    for (unsigned i = 0; i < l->trials.count; i++) {
        if (!tn_search_set_trial(&l->trials, w, n, i))
            return false;
        kernels->search->choose(w->codes, w->units, w->sums, tiles, l->subtile, &l->book);
        tn_search_take_better(w, n, i == 0);
    }
    w->own = w->best;
    return true;
}

bool tn_search_encode_book(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t)
{
    book_encoder l = { .power = tn_search_powers_of(p), .trials = tn_search_trials_of(p, 1),
                    .subtile = p->d->subtile ? p->d->subtile : t->size };
    tn_search_scratch w;
    set_book(&l.book, p->d);
    kernels->search->list(&l.book);
    for (size_t first = 0, n; first < t->count; first += n) {
        tn_tiles some = tn_search_next(p, t, first);
        n = some.count;
        const tn_search_tiles tiles = { .x = some.x, .count = some.count, .size = some.size,
                                        .step = w.own.step };
        kernels->encode->largest(w.largest, some.x, some.count, some.size);
        if (!choose_scales(kernels, p, &l, &tiles, &w))
            return false;
        kernels->search->choose(tn_search_codes_to(p, &some, &w), w.units, NULL, &tiles, l.subtile, &l.book);
        tn_search_put_scales(kernels, p, &some, &w.own);
        tn_search_put_codes(kernels, p, &some, &w);
        if (some.meta)
            tn_search_put_units(kernels, some.meta, w.units, some.count, some.size / l.subtile, p->meta.bits);
    }
    return true;
}
