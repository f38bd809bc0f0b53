/* kernels/stats/template.h - tallies of float32, bfloat16 and float16 in vectors.
 *
 * Included once by each level's file, which first defines
 *
 *   LEVEL(name)            a function's name at this level
 *   BYTES                  of a vector: 32 or 64
 *   vd, vf, vb             vectors of double, float, bytes
 *   doubles(p), floats(p)  loads
 *   wide(p), of_bf16(p), of_f16(p)     loads of float32 as doubles, of 16-bit floats as float32
 *   every(x)               a double in every lane
 *   add_square(s, x)       s + x * x, rounded once
 *   least, most            of floats
 *   every_b(n), plus_b, least_b, most_b    of unsigned bytes, wrapping
 *   put_d, put_f, put_b    stores
 *   exponents(p)           the exponents of BYTES floats as bytes, in any order
 *   count_range(counts, list, n, least, most)   counts the bytes least ... most, by value;
 *                          the list has room for a multiple of 1024, counts for 8 values more
 *
 * A block stays in the L1 cache.  One pass computes the sums and a list of
 * exponents, a byte each.  Other passes count how often each exponent occurs
 * (weights have about 15).  Infinities and NaN are rare: a block with some is
 * repeated with a copy that has the pivot in their place, which adds nothing. */
#include "kernels/stats/table.h"

#include <math.h>
#include <string.h>

enum {
    DOUBLES = BYTES / 8,
    FLOATS = BYTES / 4,
    SUMS = TN_TALLY_LANES / DOUBLES,
    GROUP = BYTES,              /* floats that make a vector of exponents */
    AHEAD = 8192,               /* bytes to prefetch ahead */
    MORE = 4096,                /* bytes to prefetch while exponents are counted */
    FIRST = 127 + TN_STATS_LOW, /* exponent of the first bin */
    SPECIAL = 255               /* exponent of infinities and NaN */
};

/* The type of the numbers. */
typedef enum kind { F32, BF16, F16 } kind;

/* n numbers (whole groups) as float32; converted into `room` if necessary. */
INLINE const uint8_t *as_floats(float *room, const uint8_t *p, size_t n, kind k)
{
    if (k == F32)
        return p;
    for (size_t i = 0; i < n; i += FLOATS)
        put_f(room + i, k == BF16 ? of_bf16(p + 2 * i) : of_f16(p + 2 * i));
    return (const uint8_t *)room;
}

/* The exponents of a block. */
typedef struct found {
    _Alignas(64) uint8_t list[TN_TALLY_BLOCK];
    unsigned least, most;       /* without 0; least > most: none */
} found;

/* The address may be beyond the end, so it is computed as an integer. */
static inline void fetch(const uint8_t *p, size_t ahead)
{
    __builtin_prefetch((const void *)((uintptr_t)p + ahead), 0, 2);
}

static void read_extent(found *f, vb least_below, vb most)
{
    uint8_t low[BYTES], high[BYTES];
    put_b(low, least_below);
    put_b(high, most);
    f->least = SPECIAL + 1;
    f->most = 0;
    for (size_t i = 0; i < BYTES; i++) {
        f->least = low[i] + 1u < f->least ? low[i] + 1u : f->least;
        f->most = high[i] > f->most ? high[i] : f->most;
    }
}

/* Adds n numbers (whole groups) to the tally and lists their exponents.
 * `centred`: the pivot is 0.  Squares are then exact in a double, so a fused
 * multiply-add rounds as two instructions do. */
INLINE void pass(tn_tally *t, found *f, const uint8_t *numbers, size_t n, kind k, bool centred)
{
    const size_t step = GROUP * (k == F32 ? 4 : 2);
    float group[GROUP], low[FLOATS], high[FLOATS];
    vd pivot = every(t->pivot), sum[SUMS], squares[SUMS];
    vf min = floats(as_floats(group, numbers, GROUP, k)), max = min;
    vb least_below = every_b(255), greatest = every_b(0);
    for (int j = 0; j < SUMS; j++) {
        sum[j] = doubles(t->sum + j * DOUBLES);
        squares[j] = doubles(t->squares + j * DOUBLES);
    }
    for (size_t i = 0; i < n; i += GROUP, numbers += step) {
        const uint8_t *p = as_floats(group, numbers, GROUP, k);
        vb e = exponents(p);
        put_b(f->list + i, e);
        least_below = least_b(least_below, plus_b(e, every_b(255)));    /* e - 1: 0 becomes 255 */
        greatest = most_b(greatest, e);
        for (size_t at = 0; at < step; at += 64)
            fetch(numbers, AHEAD + at);
        for (size_t at = 0; at < 4 * GROUP; at += 4 * FLOATS) {
            min = least(min, floats(p + at));
            max = most(max, floats(p + at));
        }
        for (size_t at = 0; at < 4 * GROUP; at += 4 * TN_TALLY_LANES) {
            for (size_t j = 0; j < SUMS; j++) {
                vd distance = wide(p + at + 4 * DOUBLES * j);
                if (!centred)
                    distance -= pivot;
                sum[j] += distance;
                if (centred)
                    squares[j] = add_square(squares[j], distance);
                else
                    squares[j] += distance * distance;
            }
        }
    }
    read_extent(f, least_below, greatest);
    if (f->most == SPECIAL)
        return;
    for (int j = 0; j < SUMS; j++) {
        put_d(t->sum + j * DOUBLES, sum[j]);
        put_d(t->squares + j * DOUBLES, squares[j]);
    }
    put_f(low, min);
    put_f(high, max);
    for (int i = 0; i < FLOATS; i++) {
        t->min = (double)low[i] < t->min ? (double)low[i] : t->min;
        t->max = (double)high[i] > t->max ? (double)high[i] : t->max;
    }
}

INLINE void add_and_list(tn_tally *t, found *f, const uint8_t *p, size_t n, kind k)
{
    if (t->pivot == 0)
        pass(t, f, p, n, k, true);
    else
        pass(t, f, p, n, k, false);
}

static float float_at(const uint8_t *p, size_t i)
{
    float x;
    memcpy(&x, p + 4 * i, sizeof x);
    return x;
}

/* Exponent 0: zeros, and float32's own subnormals. */
static void count_zeros(tn_tally *t, const uint8_t *p, size_t n)
{
    size_t zeros = 0, small = 0;
    for (size_t i = 0; i < n; i++) {
        float magnitude = fabsf(float_at(p, i));
        zeros += magnitude == 0;
        small += magnitude < 0x1p-126f;
    }
    t->zeros += zeros;
    t->subnormals += small - zeros;
    t->bins[0] += small - zeros;
}

/* Counts infinities and NaN, and adds the rest again; returns the number of finite values. */
static size_t add_finite(tn_tally *t, const uint8_t *p, size_t n)
{
    float  copy[TN_TALLY_BLOCK];
    found  unused;
    size_t nans = 0, finite = 0;
    for (size_t i = 0; i < n; i++) {
        float x = float_at(p, i);
        nans += isnan(x) != 0;
        finite += isfinite(x) != 0;
        copy[i] = isfinite(x) ? x : (float)t->pivot;
    }
    t->nans += nans;
    t->infinities += n - nans - finite;
    if (finite)
        add_and_list(t, &unused, (const uint8_t *)copy, n, F32);
    return finite;
}

/* Adds the list to the bins; returns the number of exponents other than 0 and SPECIAL. */
static size_t add_exponents(tn_tally *t, found *f, size_t n)
{
    uint64_t counts[256 + 8], total = 0;
    int normal = t->smallest_normal > 0 ? ilogb(t->smallest_normal) + 127 : 0;
    if (f->most == SPECIAL)
        f->most--;
    if (f->least > f->most)
        return 0;
    count_range(counts, f->list, n, f->least, f->most);
    for (int e = (int)f->least; e <= (int)f->most; e++) {
        int bin = e < FIRST ? 0 : e - FIRST;
        t->bins[bin < TN_STATS_BINS ? bin : TN_STATS_BINS - 1] += counts[e];
        t->subnormals += e < normal ? counts[e] : 0;
        total += counts[e];
    }
    return total;
}

INLINE void add_block(tn_tally *t, const uint8_t *p, size_t n, kind k)
{
    float room[TN_TALLY_BLOCK];
    found f;
    add_and_list(t, &f, p, n, k);
    size_t finite = f.most == SPECIAL ? add_finite(t, as_floats(room, p, n, k), n) : n;
    for (size_t at = 0; at < (k == F32 ? MORE : MORE / 2); at += 64)
        fetch(p, n * (k == F32 ? 4 : 2) + AHEAD + at);
    if (add_exponents(t, &f, n) < finite)
        count_zeros(t, as_floats(room, p, n, k), n);
}

static void tally_f32(tn_tally *t, const void *numbers, size_t n)
{
    const uint8_t *p = numbers;
    size_t whole = n / GROUP * GROUP;
    tn_tally_begin_f32(t, numbers, n);
    for (size_t i = 0; i < whole; i += TN_TALLY_BLOCK)
        add_block(t, p + 4 * i, whole - i < TN_TALLY_BLOCK ? whole - i : TN_TALLY_BLOCK, F32);
    t->count += whole;
    tn_tally_f32_scalar(t, p + 4 * whole, n - whole);
}

static void tally_bf16(tn_tally *t, const void *numbers)
{
    add_block(t, numbers, TN_TALLY_BLOCK, BF16);
    t->count += TN_TALLY_BLOCK;
}

static void tally_f16(tn_tally *t, const void *numbers)
{
    add_block(t, numbers, TN_TALLY_BLOCK, F16);
    t->count += TN_TALLY_BLOCK;
}

void LEVEL(tn_stats_kernels_init)(tn_stats_kernels *k)
{
    k->f32 = tally_f32;
    k->bf16 = tally_bf16;
    k->f16 = tally_f16;
}
