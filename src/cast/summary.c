/* cast/summary.c - statistics of elements in memory, span by span. */
#include "cast/summary.h"

#include <math.h>

/* ---- joining ---- */

tn_statistics tn_statistics_empty(void)
{
    double none = (double)NAN;
    return (tn_statistics){ .min = none, .max = none, .mean = none, .deviation = none, .absmax = none };
}

tn_statistics tn_statistics_zeros(uint64_t n)
{
    return n ? (tn_statistics){ .count = n, .zeros = n, .finite = n } : tn_statistics_empty();
}

/* Combines the means and deviations of two runs (Chan, Golub and LeVeque 1979).
 * All are halved, because the distance of two means may overflow a double, and
 * divided by the largest, because its square may. */
static void join_moments(tn_statistics *a, const tn_statistics *b)
{
    double n = (double)a->finite + (double)b->finite, wa = (double)a->finite / n, wb = (double)b->finite / n;
    double apart = b->mean / 2 - a->mean / 2, unit = fmax(fabs(apart), fmax(a->deviation, b->deviation) / 2);
    a->mean = wa < wb ? b->mean - apart * wa * 2 : a->mean + apart * wb * 2;
    if (unit > 0) {
        double da = a->deviation / 2 / unit, db = b->deviation / 2 / unit, between = apart / unit;
        a->deviation = unit * sqrt(wa * (da * da) + wb * (db * db) + wa * wb * (between * between)) * 2;
    }
}

void tn_statistics_join(tn_statistics *a, const tn_statistics *b)
{
    if (b->finite && !a->finite) {
        a->mean = b->mean;
        a->deviation = b->deviation;
    } else if (b->finite) {
        join_moments(a, b);
    }
    a->min = fmin(a->min, b->min);          /* NaN stands for none; fmin() ignores it */
    a->max = fmax(a->max, b->max);
    a->absmax = fmax(a->absmax, b->absmax);
    a->count += b->count;
    a->zeros += b->zeros;
    a->subnormals += b->subnormals;
    a->nans += b->nans;
    a->infinities += b->infinities;
    a->finite += b->finite;
    for (int k = 0; k < TN_STATS_BINS; k++)
        a->histogram[k] += b->histogram[k];
}

/* ---- types of at most 8 bits: codes are counted ---- */

static void count_codes(tn_span *s, const uint8_t *elements, size_t n)
{
    unsigned bits = s->type->bits;
    size_t done = 0;
    if (8 % bits == 0) {
        uint64_t bytes[256] = { 0 };
        size_t whole = n * bits / 8;
        done = whole * (8 / bits);
        tn_count_bytes(bytes, elements, whole);
        for (unsigned byte = 0; byte < 256; byte++)
            for (unsigned at = 0; at < 8; at += bits)
                s->codes[byte >> at & ((1u << bits) - 1)] += bytes[byte];
    }
    for (; done < n; done++)
        s->codes[tn_code_get(elements, done, bits)]++;
}

static double value_of(const tn_dtype_info *type, const void *elements, uint64_t i)
{
    tn_value v = tn_value_get(type->dtype, elements, i);
    switch (v.kind) {
    case TN_KIND_INT: case TN_KIND_FIXED: return (double)v.i;
    case TN_KIND_UINT: case TN_KIND_BOOL: return (double)v.u;
    default: return v.re;
    }
}

/* Counts `n` elements of one value and returns their sum. */
static double add_value(tn_statistics *f, double x, uint64_t n, double smallest_normal)
{
    f->count += n;
    if (!isfinite(x)) {
        *(isnan(x) ? &f->nans : &f->infinities) += n;
        return 0;
    }
    f->finite += n;
    f->min = fmin(f->min, x);
    f->max = fmax(f->max, x);
    if (x == 0) {
        f->zeros += n;
        return 0;
    }
    f->subnormals += fabs(x) < smallest_normal ? n : 0;
    f->histogram[tn_tally_bin(fabs(x))] += n;
    return x * (double)n;
}

static tn_statistics figures_of_codes(const tn_span *s)
{
    tn_statistics f = tn_statistics_empty();
    double sum = 0, spread = 0;
    for (unsigned code = 0; code < 1u << s->type->bits; code++)
        if (s->codes[code])
            sum += add_value(&f, value_of(s->type, &(uint8_t){ (uint8_t)code }, 0), s->codes[code],
                             s->tally.smallest_normal);
    if (!f.finite)
        return f;
    f.mean = sum / (double)f.finite;
    for (unsigned code = 0; code < 1u << s->type->bits; code++) {
        double x = value_of(s->type, &(uint8_t){ (uint8_t)code }, 0), apart = x - f.mean;
        if (s->codes[code] && isfinite(x))
            spread += apart * apart * (double)s->codes[code];
    }
    f.deviation = sqrt(spread / (double)f.finite);
    return f;
}

/* ---- wider types: numbers are tallied ---- */

static double add_lanes(const double lanes[TN_TALLY_LANES])
{
    double sum[TN_TALLY_LANES];
    memcpy(sum, lanes, sizeof sum);
    for (int half = TN_TALLY_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sum[i] += sum[i + half];
    return sum[0];
}

static tn_statistics figures_of_tally(const tn_tally *t)
{
    tn_statistics f = tn_statistics_empty();
    f.count = t->count;
    f.zeros = t->zeros;
    f.subnormals = t->subnormals;
    f.nans = t->nans;
    f.infinities = t->infinities;
    f.finite = t->count - t->nans - t->infinities;
    memcpy(f.histogram, t->bins, sizeof f.histogram);
    if (!f.finite)
        return f;
    double n = (double)f.finite, mean = add_lanes(t->sum) / n, unit = t->huge ? TN_TALLY_SCALE : 1;
    double variance = add_lanes(t->squares) / n - mean * mean;
    f.min = t->min;
    f.max = t->max;
    f.mean = (t->pivot * unit + mean) / unit;
    f.deviation = sqrt(fmax(variance, 0)) / unit;
    return f;
}

static void tally_as_floats(tn_span *s, const uint8_t *elements, size_t n)
{
    float block[TN_TALLY_BLOCK];
    tn_dtype dtype = s->type->dtype;
    size_t width = s->type->bits / 8;
    tn_tally_block_fn direct = dtype == TN_BFLOAT16 ? s->tally_with->bf16 : NULL;
    if (dtype == TN_FLOAT16)
        direct = s->tally_with->f16;
    for (size_t i = 0; i < n; i += TN_TALLY_BLOCK) {
        size_t size = n - i < TN_TALLY_BLOCK ? n - i : TN_TALLY_BLOCK;
        if (direct && size == TN_TALLY_BLOCK && s->tally.begun) {
            direct(&s->tally, elements + i * width);
            continue;
        }
        s->cast_with->to_f32[dtype](block, elements + i * width, size, &(tn_cast_args){ 0 });
        s->tally_with->f32(&s->tally, block, size);
    }
}

static void tally_as_doubles(tn_span *s, const uint8_t *elements, size_t n)
{
    double block[TN_TALLY_BLOCK];
    for (size_t i = 0; i < n; i += TN_TALLY_BLOCK) {
        size_t size = n - i < TN_TALLY_BLOCK ? n - i : TN_TALLY_BLOCK;
        for (size_t k = 0; k < size; k++)
            block[k] = value_of(s->type, elements, i + k);
        s->tally_with->f64(&s->tally, block, size);
    }
}

/* ---- a span ---- */

void tn_span_begin(tn_span *s, tn_dtype dtype)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    bool subnormals = type->exponent_bits && type->specials != TN_SPECIALS_E8M0;
    *s = (tn_span){ .type = type, .tally_with = tn_stats_kernels_get(), .cast_with = tn_cast_kernels_get() };
    s->tally.smallest_normal = subnormals ? ldexp(1, 1 - type->bias) : 0;
}

void tn_span_add(tn_span *s, const void *elements, size_t n)
{
    tn_dtype dtype = s->type->dtype;
    if (s->type->bits <= 8)
        count_codes(s, elements, n);
    else if (dtype == TN_FLOAT32 || dtype == TN_COMPLEX64)
        s->tally_with->f32(&s->tally, elements, dtype == TN_COMPLEX64 ? 2 * n : n);
    else if (dtype == TN_FLOAT64 || dtype == TN_COMPLEX128)
        s->tally_with->f64(&s->tally, elements, dtype == TN_COMPLEX128 ? 2 * n : n);
    else if (s->cast_with->to_f32[dtype])
        tally_as_floats(s, elements, n);
    else
        tally_as_doubles(s, elements, n);
}

tn_statistics tn_span_end(const tn_span *s)
{
    tn_statistics f = s->type->bits <= 8 ? figures_of_codes(s) : figures_of_tally(&s->tally);
    if (f.finite) {
        f.min += 0.0;                       /* -0 becomes 0, so that the order of zeros does not matter */
        f.max += 0.0;
        f.absmax = fmax(fabs(f.min), fabs(f.max));
    }
    return f;
}
