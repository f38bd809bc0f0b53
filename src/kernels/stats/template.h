/* kernels/stats/template.h - tallies of float32, bfloat16 and float16 in vectors.
 *
 * Included once by each level's file, which first defines
 *
 *   LEVEL(name)            a function's name at this level
 *   BYTES                  of a vector: 32 or 64
 *   vd, vf, vb             vectors of double, float, bytes
 *   doubles(p), floats(p)  loads
 *   of_bf16(p), of_f16(p)  loads of 16-bit floats as float32
 *   wide(p), half(v, i)    doubles of float32: a load, and the lower or upper half of a vector
 *   every(x)               a double in every lane
 *   add_square(s, x)       s + x * x, rounded once
 *   least, most            of floats
 *   every_b(n), most_b     of unsigned bytes
 *   put_d, put_f, put_b    stores
 *   exponents(v), exponents_bf16(p)    of BYTES floats, 4 vectors or a load, as bytes in any order
 *   even(p), odd(p)        doubles of every second of PAIRED bfloat16, a load
 *   load_b(p), least_u16, most_u16, most_i16   of 16-bit integers
 *   which(p, base)         loads bytes; bit j of each tells whether it is base + j
 *   carry(&sum, a, b)      adds a and b to sum, bit by bit; the carries
 *   ones_of(v, j)          how many bytes have bit j
 *   below(p, limit)        loads bytes; a bit for each that is below the limit
 *
 * A block stays in the L1 cache.  One pass computes the sums and a list of
 * exponents, a byte each.  Then the exponents are counted, the highest 8 at a time:
 * of weights these are nearly all.  Infinities and NaN are rare: a block with some is
 * repeated with a copy that has the pivot in their place, which adds nothing. */
#include "kernels/stats/table.h"

#include <math.h>
#include <string.h>

enum {
    DOUBLES = BYTES / 8,
    FLOATS = BYTES / 4,
    PAIRED = 2 * DOUBLES,       /* bfloat16 in even() and odd() */
    SUMS = TN_TALLY_LANES / DOUBLES,
    GROUP = BYTES,              /* floats that make a vector of exponents */
    AHEAD = 8192,               /* bytes to prefetch ahead */
    MORE = 4096,                /* bytes to prefetch while exponents are counted */
    FEW = 4,                    /* exponents of a block that are counted one by one */
    FIRST = 127 + TN_STATS_LOW, /* exponent of the first bin */
    SPECIAL = 255               /* exponent of infinities and NaN */
};

/* The type of the numbers. */
typedef enum kind { F32, BF16, F16 } kind;

/* FLOATS numbers as float32. */
INLINE vf load_floats(const uint8_t *p, kind k)
{
    if (k == F32)
        return floats(p);
    return k == BF16 ? of_bf16(p) : of_f16(p);
}

/* n numbers (whole groups) as float32; converted into `room` if necessary. */
static const uint8_t *as_floats(float *room, const uint8_t *p, size_t n, kind k)
{
    if (k == F32)
        return p;
    for (size_t i = 0; i < n; i += FLOATS)
        put_f(room + i, load_floats(p + 2 * i, k));
    return (const uint8_t *)room;
}

/* The exponents of a block. */
typedef struct found {
    _Alignas(64) uint8_t list[TN_TALLY_BLOCK];
    unsigned most;
} found;

/* The address may be beyond the end, so it is computed as an integer. */
static inline void fetch(const uint8_t *p, size_t ahead)
{
    __builtin_prefetch((const void *)((uintptr_t)p + ahead), 0, 2);
}

static unsigned greatest_byte(vb v)
{
    uint8_t bytes[BYTES];
    unsigned most = 0;
    put_b(bytes, v);
    for (size_t i = 0; i < BYTES; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return most;
}

static void widen_range(tn_tally *t, double min, double max)
{
    t->min = min < t->min ? min : t->min;
    t->max = max > t->max ? max : t->max;
}

/* Adds to the sums.  `centred`: the pivot is 0.  Squares are then exact in a double, so a fused multiply-add
 * rounds as two instructions do. */
INLINE void add_distance(vd *sum, vd *squares, vd x, vd pivot, bool centred)
{
    vd distance = x;
    if (!centred)
        distance -= pivot;
    *sum += distance;
    if (centred)
        *squares = add_square(*squares, distance);
    else
        *squares += distance * distance;
}

/* Adds n numbers (whole groups) to the tally and lists their exponents. */
INLINE void pass(tn_tally *t, found *f, const uint8_t *numbers, size_t n, kind k, bool centred)
{
    const size_t size = k == F32 ? 4 : 2;
    float low[FLOATS], high[FLOATS];
    vd pivot = every(t->pivot), sum[SUMS], squares[SUMS];
    vf min = load_floats(numbers, k), max = min;
    vb greatest = every_b(0);
    for (int j = 0; j < SUMS; j++) {
        sum[j] = doubles(t->sum + j * DOUBLES);
        squares[j] = doubles(t->squares + j * DOUBLES);
    }
    for (size_t i = 0; i < n; i += GROUP, numbers += GROUP * size) {
        vf v[4];
        for (size_t at = 0; at < GROUP * size; at += 64)
            fetch(numbers, AHEAD + at);
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            v[j] = load_floats(numbers + j * FLOATS * size, k);
            min = least(min, v[j]);
            max = most(max, v[j]);
        }
        vb e = exponents(v);
        put_b(f->list + i, e);
        greatest = most_b(greatest, e);
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++) {
            vd x = k == F32 ? wide(numbers + 4 * DOUBLES * j) : half(v[j / 2], j % 2);
            add_distance(&sum[j % SUMS], &squares[j % SUMS], x, pivot, centred);
        }
    }
    f->most = greatest_byte(greatest);
    if (f->most == SPECIAL)
        return;
    for (int j = 0; j < SUMS; j++) {
        put_d(t->sum + j * DOUBLES, sum[j]);
        put_d(t->squares + j * DOUBLES, squares[j]);
    }
    put_f(low, min);
    put_f(high, max);
    for (int i = 0; i < FLOATS; i++)
        widen_range(t, (double)low[i], (double)high[i]);
}

/* --- bfloat16 -------------------------------------------------------------------- */

/* Lanes as even() and odd() give them, and back. */
INLINE void load_apart(vd v[SUMS], const double *lanes)
{
    double apart[TN_TALLY_LANES];
    for (size_t i = 0; i < TN_TALLY_LANES; i++)
        apart[i / PAIRED * PAIRED + i % 2 * DOUBLES + i % PAIRED / 2] = lanes[i];
    for (size_t j = 0; j < SUMS; j++)
        v[j] = doubles(apart + j * DOUBLES);
}

INLINE void put_apart(double *lanes, const vd v[SUMS])
{
    double apart[TN_TALLY_LANES];
    for (size_t j = 0; j < SUMS; j++)
        put_d(apart + j * DOUBLES, v[j]);
    for (size_t i = 0; i < TN_TALLY_LANES; i++)
        lanes[i] = apart[i / PAIRED * PAIRED + i % 2 * DOUBLES + i % PAIRED / 2];
}

/* Codes in two orders.  Without a sign the greatest is the negative number farthest from 0, if there is one;
 * with a sign it is the greatest positive one. */
typedef struct codes {
    vb least, most, most_signed;
} codes;

static double of_code(unsigned code)
{
    uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* Sets f->most; the numbers between min and max. */
static void read_codes(found *f, const codes *c, double *min, double *max)
{
    uint16_t least[BYTES / 2], most[BYTES / 2];
    int16_t most_signed[BYTES / 2];
    unsigned low = UINT16_MAX, high = 0;
    int high_signed = INT16_MIN;
    put_b(least, c->least);
    put_b(most, c->most);
    put_b(most_signed, c->most_signed);
    for (size_t i = 0; i < BYTES / 2; i++) {
        low = least[i] < low ? least[i] : low;
        high = most[i] > high ? most[i] : high;
        high_signed = most_signed[i] > high_signed ? most_signed[i] : high_signed;
    }
    *min = of_code(high > INT16_MAX ? high : low);
    *max = of_code(high_signed >= 0 ? (unsigned)high_signed : low);
    unsigned negative = high > INT16_MAX ? high >> 7 & 255 : 0;
    unsigned positive = high_signed >= 0 ? (unsigned)high_signed >> 7 : 0;
    f->most = negative > positive ? negative : positive;
}

/* As pass(), of bfloat16. */
INLINE void pass_bf16(tn_tally *t, found *f, const uint8_t *numbers, size_t n, bool centred)
{
    vd pivot = every(t->pivot), sum[SUMS], squares[SUMS];
    codes c = { load_b(numbers), load_b(numbers), load_b(numbers) };
    double min, max;
    load_apart(sum, t->sum);
    load_apart(squares, t->squares);
    for (size_t i = 0; i < n; i += GROUP, numbers += 2 * GROUP) {
        for (size_t at = 0; at < 2 * GROUP; at += 64)
            fetch(numbers, AHEAD + at);
        for (size_t at = 0; at < 2 * GROUP; at += BYTES) {
            vb v = load_b(numbers + at);
            c.least = least_u16(c.least, v);
            c.most = most_u16(c.most, v);
            c.most_signed = most_i16(c.most_signed, v);
        }
        put_b(f->list + i, exponents_bf16(numbers));
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            const uint8_t *p = numbers + 2 * PAIRED * j;
            const size_t lane = 2 * j % SUMS;
            add_distance(&sum[lane], &squares[lane], even(p), pivot, centred);
            add_distance(&sum[lane + 1], &squares[lane + 1], odd(p), pivot, centred);
        }
    }
    read_codes(f, &c, &min, &max);
    if (f->most == SPECIAL)
        return;
    put_apart(t->sum, sum);
    put_apart(t->squares, squares);
    widen_range(t, min, max);
}

/* --- blocks ---------------------------------------------------------------------- */

INLINE void add_and_list(tn_tally *t, found *f, const uint8_t *p, size_t n, kind k)
{
    const bool centred = t->pivot == 0;
    if (k == BF16 && centred)
        pass_bf16(t, f, p, n, true);
    else if (k == BF16)
        pass_bf16(t, f, p, n, false);
    else if (centred)
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

/* counts[j] of the bytes base + j for j < 8 among n, a multiple of 16 vectors; returns how many these are.
 * Bits are added in planes of ones, twos, fours and eights; only sixteens are counted. */
static size_t count_eight(uint64_t counts[8], const uint8_t *list, size_t n, unsigned base)
{
    vb ones = every_b(0), twos = ones, fours = ones, eights = ones;
    uint64_t sixteens[8] = { 0 }, all = 0;
    for (size_t i = 0; i < n; i += 16 * BYTES) {
        vb quad[4];
        for (size_t q = 0; q < 4; q++) {
            const uint8_t *p = list + i + 4 * BYTES * q;
            vb a = carry(&ones, which(p, base), which(p + BYTES, base));
            vb b = carry(&ones, which(p + 2 * BYTES, base), which(p + 3 * BYTES, base));
            quad[q] = carry(&twos, a, b);
        }
        vb c = carry(&fours, quad[0], quad[1]), d = carry(&fours, quad[2], quad[3]);
        vb e = carry(&eights, c, d);
        for (unsigned j = 0; j < 8; j++)
            sixteens[j] += ones_of(e, j);
    }
    for (unsigned j = 0; j < 8; j++) {
        counts[j] = 16 * sixteens[j] + 8 * ones_of(eights, j) + 4 * ones_of(fours, j) + 2 * ones_of(twos, j) +
                    ones_of(ones, j);
        all += counts[j];
    }
    return (size_t)all;
}

/* counts[byte]++ for each of n bytes below the limit, without 0; returns the least. */
static unsigned count_few(uint64_t *counts, const uint8_t *list, size_t n, unsigned limit)
{
    unsigned least_one = limit;
    for (size_t i = 0; i < n; i += BYTES)
        for (uint64_t left = below(list + i, limit) & ~below(list + i, 1); left; left &= left - 1) {
            unsigned e = list[i + (size_t)__builtin_ctzll(left)];
            least_one = e < least_one ? e : least_one;
            counts[e]++;
        }
    return least_one;
}

static size_t zeros_of(const uint8_t *list, size_t n)
{
    size_t zeros = 0;
    for (size_t i = 0; i < n; i += BYTES)
        zeros += (size_t)__builtin_popcountll(below(list + i, 1));
    return zeros;
}

/* Counts the exponents up to `most`, but not 0, by value; returns the least that was counted.  The list is
 * padded with zeros. */
static unsigned count_exponents(uint64_t counts[256 + 8], uint8_t *list, size_t n, unsigned most)
{
    size_t whole = (n + 16 * BYTES - 1) / (16 * BYTES) * (16 * BYTES), left = n;
    unsigned base = most + 1;
    memset(list + n, 0, whole - n);
    for (unsigned rounds = 0; base > 1 && left > FEW; rounds++) {
        base = base > 9 ? base - 8 : 1;
        left -= count_eight(counts + base, list, whole, base);
        if (rounds == 1 && left > FEW)
            left -= zeros_of(list, n);
    }
    if (base > 1 && left) {
        memset(counts, 0, base * sizeof *counts);
        base = count_few(counts, list, whole, base);
    }
    return base;
}

/* Adds the list to the bins; returns the number of exponents other than 0 and SPECIAL. */
static size_t add_exponents(tn_tally *t, found *f, size_t n)
{
    uint64_t counts[256 + 8], total = 0;
    int normal = t->smallest_normal > 0 ? ilogb(t->smallest_normal) + 127 : 0;
    unsigned most = f->most == SPECIAL ? SPECIAL - 1 : f->most;
    for (unsigned e = count_exponents(counts, f->list, n, most); e <= most; e++) {
        int bin = (int)e < FIRST ? 0 : (int)e - FIRST;
        t->bins[bin < TN_STATS_BINS ? bin : TN_STATS_BINS - 1] += counts[e];
        t->subnormals += (int)e < normal ? counts[e] : 0;
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
