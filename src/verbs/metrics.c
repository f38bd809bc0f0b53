/* verbs/metrics.c - the difference of two ranges of elements, and which of them are saturated. */
#include "verbs/metrics.h"
#include "base/error.h"
#include "tensor/code.h"
#include "kernels/cast/table.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one pair of numbers ---- */

/* The steps between values of a type: 2^step from zero to 2^lowest, then 2^(e - mantissa) from 2^e on. */
typedef struct grid {
    bool even;                  /* integers: steps of 1 everywhere */
    int  lowest, mantissa;
} grid;

typedef struct sides {
    const tn_dtype_info *a, *b;
    grid grid_a, grid_b;
    bool one_type;
} sides;

static grid grid_of(const tn_dtype_info *type)
{
    int lowest = type->specials == TN_SPECIALS_E8M0 ? -type->bias : 1 - type->bias;
    return (grid){ type->exponent_bits == 0, lowest, type->mantissa_bits };
}

/* The exponent of the step at a magnitude whose exponent is e. */
static int step_at(const grid *g, int e)
{
    if (g->even)
        return 0;
    return (e > g->lowest ? e : g->lowest) - g->mantissa;
}

/* x * 2^e for any e; the usual ones without a call. */
static double scale_by(double x, int e)
{
    if (e < -1022 || e > 1023)
        return ldexp(x, e);
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return x * power;
}

/* The difference in steps of the coarser type at a. */
static double in_steps(const sides *s, double a, double difference)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    int e = (int)(bits >> 52 & 2047) - 1023, at_a = step_at(&s->grid_a, e), at_b = step_at(&s->grid_b, e);
    return scale_by(difference, -(at_a > at_b ? at_a : at_b));
}

static void note(tn_distance *d, uint64_t index)
{
    if (d->differing++ == 0)
        d->first = index;
}

/* Two NaNs are as near as can be; else the difference is not finite only where it is not tolerated. */
static bool is_tolerated(const tn_distance *d, bool both_nan, double difference, double size)
{
    if (d->tolerance <= 0 && d->relative <= 0)
        return false;
    return both_nan || (isfinite(size) && difference <= d->tolerance + d->relative * size);
}

static void note_gap(tn_distance *d, double difference, double size, double steps)
{
    d->max_abs = difference > d->max_abs ? difference : d->max_abs;
    d->max_ulp = steps > d->max_ulp ? steps : d->max_ulp;
    if (size > 0)
        d->max_rel = fmax(d->max_rel, difference / size);
}

/* For finite numbers whose |a - b| or |a| overflows a double: a quarter of each does not. */
static void note_huge_gap(tn_distance *d, const sides *s, tn_value a, tn_value b)
{
    double re = fabs(a.re / 4 - b.re / 4), im = fabs(a.im / 4 - b.im / 4);
    double steps = fmax(in_steps(s, a.re, re), in_steps(s, a.im, im));
    note_gap(d, hypot(re, im), hypot(a.re / 4, a.im / 4), 4 * steps);
    d->max_abs = fmax(d->max_abs, hypot(a.re - b.re, a.im - b.im));
}

/* How many bits of element i differ. */
static unsigned differing_bits(const tn_dtype_info *type, const uint8_t *x, const uint8_t *y, size_t i)
{
    unsigned halves = type->kind == TN_KIND_COMPLEX ? 2 : 1, bits = type->bits / halves, count = 0;
    for (unsigned h = 0; h < halves; h++)
        count += (unsigned)__builtin_popcountll(tn_code_get(x, halves * i + h, bits) ^
                                                tn_code_get(y, halves * i + h, bits));
    return count;
}

static bool same_number(double x, double y)
{
    return (isnan(x) && isnan(y)) || x == y;        /* both NaN: the same value, whatever the bits */
}

/* ---- types that are exact in a double, a block at a time ---- */

enum { BLOCK = 1024 };          /* whole bytes in every type */

/* NULL: only the general way. */
static tn_cast_fn widen_of(tn_dtype dtype)
{
    return tn_cast_kernels_get()->to_f32[dtype];
}

static bool is_plain(tn_dtype dtype)
{
    return dtype == TN_FLOAT32 || dtype == TN_FLOAT64 || widen_of(dtype);
}

static void widen(double *to, const tn_dtype_info *type, const uint8_t *from, size_t n)
{
    float floats[BLOCK];
    if (type->dtype == TN_FLOAT64) {
        memcpy(to, from, n * sizeof *to);
        return;
    }
    if (type->dtype == TN_FLOAT32)
        memcpy(floats, from, n * sizeof *floats);
    else
        widen_of(type->dtype)(floats, from, n, &(tn_cast_args){ 0 });
    for (size_t i = 0; i < n; i++)
        to[i] = (double)floats[i];
}

static void count_flushed(tn_distance *d, const double *a, const double *b, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += (b[i] == 0) & (a[i] != 0) & (fabs(a[i]) <= DBL_MAX);
    d->flushed += count;
}

/* Equal limits mean a scale of 0. */
static void count_saturated(tn_distance *d, const double *a, const double *b, uint64_t from, size_t n)
{
    double low[BLOCK], high[BLOCK];
    uint64_t count = 0;
    d->limits->get(d->limits->context, from, n, low, high);
    for (size_t i = 0; i < n; i++) {
        bool beyond = ((a[i] > high[i]) & (b[i] == high[i])) | ((a[i] < low[i]) & (b[i] == low[i]));
        count += beyond & (low[i] < high[i]) & (fabs(a[i]) <= DBL_MAX);
    }
    d->saturated += count;
}

static void add_plain(tn_distance *d, const sides *s, const uint8_t *x, const uint8_t *y, uint64_t from,
                      size_t n)
{
    double a[BLOCK], b[BLOCK];
    widen(a, s->a, x, n);
    widen(b, s->b, y, n);
    count_flushed(d, a, b, n);
    if (d->limits)
        count_saturated(d, a, b, from, n);
    for (size_t i = 0; i < n; i++) {
        double difference = fabs(a[i] - b[i]), size = fabs(a[i]);
        unsigned bits = s->one_type ? differing_bits(s->a, x, y, i) : 0;
        bool finite = isfinite(a[i]) && isfinite(b[i]);
        d->bits += bits;
        if (finite) {
            d->signal += size * size;
            d->noise += difference * difference;
        }
        if (s->one_type ? bits == 0 : same_number(a[i], b[i]))
            continue;
        if (is_tolerated(d, isnan(a[i]) && isnan(b[i]), difference, size))
            continue;
        note(d, from + i);
        if (isfinite(difference))
            note_gap(d, difference, size, in_steps(s, size, difference));
        else if (finite)
            note_huge_gap(d, s, (tn_value){ .re = a[i] }, (tn_value){ .re = b[i] });
        else
            d->specials++;
    }
}

/* ---- all types, value by value ---- */

static bool is_integer(tn_value v) { return v.kind != TN_KIND_FLOAT && v.kind != TN_KIND_COMPLEX; }
static bool is_signed(tn_value v)  { return v.kind == TN_KIND_INT || v.kind == TN_KIND_FIXED; }

static double as_double(tn_value v)
{
    if (!is_integer(v))
        return v.re;
    return is_signed(v) ? (double)v.i : (double)v.u;
}

static bool is_finite(tn_value v)
{
    return is_integer(v) || (isfinite(v.re) && isfinite(v.im));
}

static bool same_integer(tn_value a, tn_value b)
{
    if (is_signed(a) && is_signed(b))
        return a.i == b.i;
    if (is_signed(a) != is_signed(b)) {
        int64_t i = is_signed(a) ? a.i : b.i;
        return i >= 0 && (uint64_t)i == (is_signed(a) ? b.u : a.u);
    }
    return a.u == b.u;
}

/* A double equals a 64-bit integer only if it is exactly that integer. */
static bool is_that_integer(double x, tn_value v)
{
    if (is_signed(v))
        return x >= -0x1p63 && x < 0x1p63 && (int64_t)x == v.i && (double)(int64_t)x == x;
    return x >= 0 && x < 0x1p64 && (uint64_t)x == v.u && (double)(uint64_t)x == x;
}

static bool same_value(tn_value a, tn_value b)
{
    if (is_integer(a) && is_integer(b))
        return same_integer(a, b);
    if (is_integer(a) || is_integer(b)) {
        tn_value whole = is_integer(a) ? a : b;
        tn_value other = is_integer(a) ? b : a;
        return other.im == 0 && is_that_integer(other.re, whole);
    }
    return same_number(a.re, b.re) && same_number(a.im, b.im);
}

static bool is_zero(tn_value v)
{
    return as_double(v) == 0 && v.im == 0;
}

/* |a - b|; for integers as exact as a double can be. */
static double gap_of(tn_value a, tn_value b)
{
    if (is_signed(a) && is_signed(b))
        return (double)(a.i > b.i ? (uint64_t)a.i - (uint64_t)b.i : (uint64_t)b.i - (uint64_t)a.i);
    if (is_integer(a) && is_integer(b) && !is_signed(a) && !is_signed(b))
        return (double)(a.u > b.u ? a.u - b.u : b.u - a.u);
    return hypot(as_double(a) - as_double(b), a.im - b.im);
}

static double steps_of(const sides *s, tn_value a, tn_value b, double difference)
{
    if (is_integer(a) && is_integer(b))
        return difference;
    return fmax(in_steps(s, as_double(a), fabs(as_double(a) - as_double(b))),
                in_steps(s, a.im, fabs(a.im - b.im)));
}

/* Real numbers, as near as doubles come to them. */
static void count_saturated_values(tn_distance *d, const sides *s, const uint8_t *x, const uint8_t *y,
                                   uint64_t from, size_t n)
{
    double a[BLOCK], b[BLOCK];
    for (size_t i = 0; i < n; i++) {
        a[i] = as_double(tn_value_get(s->a->dtype, x, i));
        b[i] = as_double(tn_value_get(s->b->dtype, y, i));
    }
    count_saturated(d, a, b, from, n);
}

static void add_values(tn_distance *d, const sides *s, const uint8_t *x, const uint8_t *y, uint64_t from,
                       size_t n)
{
    if (d->limits && s->a->kind != TN_KIND_COMPLEX)
        count_saturated_values(d, s, x, y, from, n);
    for (size_t i = 0; i < n; i++) {
        tn_value a = tn_value_get(s->a->dtype, x, i), b = tn_value_get(s->b->dtype, y, i);
        double difference = gap_of(a, b), size = hypot(as_double(a), a.im);
        unsigned bits = s->one_type ? differing_bits(s->a, x, y, i) : 0;
        bool finite = is_finite(a) && is_finite(b);
        d->bits += bits;
        if (finite) {
            d->signal += size * size;
            d->noise += difference * difference;
            d->flushed += is_zero(b) && !is_zero(a);
        }
        if (s->one_type ? bits == 0 : same_value(a, b))
            continue;
        if (is_tolerated(d, false, difference, size))
            continue;
        note(d, from + i);
        if (isfinite(difference) && isfinite(size))
            note_gap(d, difference, size, steps_of(s, a, b, difference));
        else if (finite)
            note_huge_gap(d, s, (tn_value){ .re = as_double(a), .im = a.im },
                          (tn_value){ .re = as_double(b), .im = b.im });
        else
            d->specials++;
    }
}

/* ---- ranges ---- */

void tn_distance_add(tn_distance *d, tn_elements a, tn_elements b, uint64_t from, size_t n)
{
    sides s = { tn_dtype_get(a.dtype), tn_dtype_get(b.dtype), .one_type = a.dtype == b.dtype };
    bool plain = is_plain(a.dtype) && is_plain(b.dtype);
    s.grid_a = grid_of(s.a);
    s.grid_b = grid_of(s.b);
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t size = n - i < BLOCK ? n - i : BLOCK;
        const uint8_t *x = a.bytes + i / 8 * s.a->bits, *y = b.bytes + i / 8 * s.b->bits;
        (plain ? add_plain : add_values)(d, &s, x, y, from + i, size);
    }
}

void tn_distance_join(tn_distance *d, const tn_distance *next)
{
    if (!d->differing)
        d->first = next->first;
    d->differing += next->differing;
    d->bits += next->bits;
    d->specials += next->specials;
    d->flushed += next->flushed;
    d->saturated += next->saturated;
    d->max_abs = fmax(d->max_abs, next->max_abs);
    d->max_rel = fmax(d->max_rel, next->max_rel);
    d->max_ulp = fmax(d->max_ulp, next->max_ulp);
    d->signal += next->signal;
    d->noise += next->noise;
}

double tn_distance_sqnr(const tn_distance *d)
{
    if (d->noise == 0)
        return (double)INFINITY;
    return isfinite(d->signal) && isfinite(d->noise) ? 10 * log10(d->signal / d->noise) : (double)NAN;
}

/* Neighbouring tiles come again with the next row: their limits are cached. */
enum { KNOWN_BITS = 14, KNOWN = 1 << KNOWN_BITS };

typedef struct tn_limit {
    uint64_t unit;              /* its number + 1; 0: this entry is free */
    double   low, high;
} tn_limit;

/* ---- limits of one tile or subtile ---- */

/* Puts the two codes first in the tile; *second is the index of the other value. */
static void put_codes(tn_limiter *l, size_t *second)
{
    const tn_datatype *d = l->decoder->datatype;
    tn_tile *t = &l->tile;
    bool beside = !d->of || d->keep > 1;
    size_t least = d->of ? 2 * (size_t)d->of : 2;
    *second = beside ? 1 : d->of;
    t->n = d->subtile ? t->n : least;
    memset(t->code, 0, t->n * sizeof *t->code);
    memset(t->mask, 0, t->n);
    t->mask[0] = t->mask[*second] = 1;
    t->code[0] = l->codes[0];
    t->code[beside ? 1 : d->keep] = l->codes[1];
}

/* Decodes the limits of the unit at `at`, as values of the tensor's type. */
static void find_limit(tn_limiter *l, const tn_scaled_place *at, tn_limit *limit)
{
    const tn_decoder *m = l->decoder;
    uint8_t elements[2 * sizeof(double)];
    size_t second;
    tn_scaled_get(&m->plan, at, &l->tile);
    l->tile.tensor_scale = m->parts.tensor_scale;
    put_codes(l, &second);
    tn_tile_decode(m->datatype, &l->tile, l->values);
    const float both[] = { l->values[0], l->values[second] };
    bool good = tn_cast_block(&m->narrow, elements, both, 2, 0, m->plan.rank, m->plan.shape, NULL) == TN_OK;
    limit->low = good ? tn_value_get(m->tensor->dtype, elements, 0).re : (double)NAN;
    limit->high = good ? tn_value_get(m->tensor->dtype, elements, 1).re : (double)NAN;
}

/* ---- limits of elements ---- */

/* The values of a subtile or, without one, the fewest that determine their tile. */
static uint64_t unit_of(const tn_datatype *d)
{
    uint64_t kept = d->subtile ? d->subtile : d->keep;
    if (d->of)
        return kept / d->keep * d->of;
    return d->subtile ? d->subtile : 1;
}

/* Finds the unit of an element, and how many elements from it on are in the same one. */
static uint64_t find_unit(const tn_scaled_plan *p, uint64_t element, tn_scaled_place *at)
{
    uint64_t size = unit_of(p->d), inner = element % p->inner, line = element / p->inner;
    uint64_t column = line % p->columns, row = line / p->columns % p->rows,
             in_tile = column % p->tile_columns;
    uint64_t begin = p->d->subtile ? in_tile - in_tile % size : 0;
    uint64_t end = p->d->subtile ? begin + size : p->tile_columns;
    *at = (tn_scaled_place){ .outer = line / p->columns / p->rows, .down = row / p->tile_rows,
                             .across = column / p->tile_columns,
                             .inner = inner, .row = p->d->subtile ? row % p->tile_rows : 0, .column = begin,
                             .rows = 1, .columns = size };
    if (p->inner > 1)
        return 1;
    return end - in_tile < p->columns - column ? end - in_tile : p->columns - column;
}

/* Unique per unit: a tile's first row and column are within the tensor. */
static uint64_t number_of(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    uint64_t row = (at->outer * p->tiles_down + at->down) * p->tile_rows + at->row;
    return ((row * p->tiles_across + at->across) * p->tile_columns + at->column) * p->inner + at->inner;
}

static const tn_limit *limit_at(tn_limiter *l, const tn_scaled_place *at)
{
    uint64_t unit = number_of(&l->decoder->plan, at) + 1;
    tn_limit *limit = &l->known[unit * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KNOWN_BITS)];
    if (limit->unit != unit) {
        limit->unit = unit;
        find_limit(l, at, limit);
    }
    return limit;
}

static void get(void *context, uint64_t first, size_t n, double *low, double *high)
{
    tn_limiter *l = context;
    for (size_t i = 0; i < n;) {
        tn_scaled_place at;
        uint64_t same = find_unit(&l->decoder->plan, first + i, &at);
        const tn_limit *limit = limit_at(l, &at);
        for (; same && i < n; same--, i++) {
            low[i] = limit->low;
            high[i] = limit->high;
        }
    }
}

/* ---- beginning with limits ---- */

/* The limits come from the tensor's datatype, whatever type stores its numbers. */
static tn_status find_codes(tn_limiter *l, tn_error *err)
{
    const tn_scaling *s = l->decoder->tensor->scaling;
    tn_datatype *own;
    uint8_t stored[256];
    if (s->store == TN_UNKNOWN) {
        tn_last_codes(l->decoder->datatype, l->codes);
        return TN_OK;
    }
    TN_TRY(tn_datatype_parse(s->datatype, &own, err));
    tn_status status = tn_datatype_store_codes(own, s->store, stored, err);
    if (!status) {
        tn_last_codes(own, l->codes);
        l->codes[0] = stored[l->codes[0]];
        l->codes[1] = stored[l->codes[1]];
    }
    tn_datatype_free(own);
    return status;
}

tn_status tn_limiter_begin(tn_limiter *l, const tn_decoder *decoder, tn_error *err)
{
    const tn_datatype *d = decoder->datatype;
    uint64_t unit = unit_of(d);
    size_t n = unit < 2 ? 2 : 2 * (size_t)unit;
    if (!l->known)
        l->known = malloc(KNOWN * sizeof *l->known);
    free(l->block);
    l->block = calloc(n, sizeof(float) + sizeof(uint32_t) + 3);
    if (!l->known || !l->block)
        return tn_fail_nomem(err);
    memset(l->known, 0, KNOWN * sizeof *l->known);
    l->values = l->block;
    l->tile = (tn_tile){ .code = (uint32_t *)(void *)(l->values + n) };
    l->tile.offset = (uint8_t *)(l->tile.code + n);
    l->tile.meta = l->tile.offset + n;
    l->tile.mask = l->tile.meta + n;
    l->decoder = decoder;
    l->limits = (tn_limits){ get, l };
    return find_codes(l, err);
}

void tn_limiter_free(tn_limiter *l)
{
    free(l->known);
    free(l->block);
    *l = (tn_limiter){ 0 };
}
