/* verbs/distance.c - how far two runs of elements are apart. */
#include "verbs/distance.h"
#include "tensor/code.h"
#include "kernels/kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- one pair of numbers ---- */

/* Where the values of a type lie: steps of 2^step from zero to 2^lowest, then
 * of 2^(e - mantissa) from 2^e on. */
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
    return g->even ? 0 : (e > g->lowest ? e : g->lowest) - g->mantissa;
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

static void note_gap(tn_distance *d, double difference, double size, double steps)
{
    d->max_abs = difference > d->max_abs ? difference : d->max_abs;
    d->max_ulp = steps > d->max_ulp ? steps : d->max_ulp;
    if (size > 0)
        d->max_rel = fmax(d->max_rel, difference / size);
}

/* Of finite numbers whose |a - b| or |a| is beyond a double.  A quarter of each is not, so that the ratio and
 * the steps are what they are. */
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

/* NULL where there is no way but the general one. */
static tn_cast_fn widen_of(tn_dtype dtype)
{
    return tn_kernels_get()->to_f32[dtype];
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
        widen_of(type->dtype)(floats, from, n, &(tn_kernel_args){ 0 });
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

/* Limits that are one say nothing: that is a scale of 0. */
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
    return !is_integer(v) ? v.re : is_signed(v) ? (double)v.i : (double)v.u;
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

/* A double equals a 64-bit integer only if it is that very integer. */
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
        tn_value whole = is_integer(a) ? a : b, other = is_integer(a) ? b : a;
        return other.im == 0 && is_that_integer(other.re, whole);
    }
    return same_number(a.re, b.re) && same_number(a.im, b.im);
}

static bool is_zero(tn_value v)
{
    return as_double(v) == 0 && v.im == 0;
}

/* |a - b|; of integers exactly as far as a double can say it. */
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

/* ---- runs ---- */

void tn_distance_add(tn_distance *d, tn_dtype type_a, const uint8_t *a, tn_dtype type_b, const uint8_t *b,
                     uint64_t from, size_t n)
{
    sides s = { tn_dtype_get(type_a), tn_dtype_get(type_b), .one_type = type_a == type_b };
    bool plain = is_plain(type_a) && is_plain(type_b);
    s.grid_a = grid_of(s.a);
    s.grid_b = grid_of(s.b);
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t size = n - i < BLOCK ? n - i : BLOCK;
        (plain ? add_plain : add_values)(d, &s, a + i / 8 * s.a->bits, b + i / 8 * s.b->bits, from + i, size);
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
