/* kernels/quantize/template.h - quantization in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h) and defines
 *
 *   every_f(x), every_i(n)     the same in every lane
 *   floats(p), integers(p)     loads
 *   finite(v)          replaces infinities and NaN by 0
 *   truncated(v)       to int32_t, toward zero
 *   signed_as(x, v)    a positive float in every lane with the signs of v
 *   halves(v)          lanes that are 0.5 or -0.5
 *   beyond(v, limit)   lanes with a magnitude above the limit, or NaN
 *   number(v)          int32_t to float
 *   i8(p), u8(p), i16(p), u16(p)   LANES codes, widened
 *   put8(p, v, stream), put16(p, v, stream)    the low bytes or halves of 4 vectors; for bytes they fit
 *                      int16_t; `stream`: past the caches, p is aligned to 16
 *   vd                 vectors of half as many doubles
 *   every_d(x), least_d(a, b)
 *   add_whole(&s, v), total(&s)    a wide_sum of at most 2^10 doubles of 0 to 2^53, rounded down
 *   double_f(v, k), double_i(v, k)     half k of the lanes
 *   put_f(p, v, stream)    `stream`: past the cache, and p is aligned to a line
 *
 * Four vectors are a group.  A remainder is padded to a group in a copy. */
#include "kernels/quantize/table.h"
#include "kernels/stream.h"

enum { GROUP = 4 * LANES };

static tn_quant_run run_from(const tn_quant_run *run, size_t first)
{
    tn_quant_run rest = *run;
    rest.scale += run->each ? first : 0;
    rest.zero += run->each ? first : 0;
    return rest;
}

/* Fewer elements than a group, padded. */
typedef struct padded {
    float        scale[GROUP];
    int32_t      zero[GROUP];
    uint8_t      in[GROUP * 4], out[GROUP * 4];
    tn_quant_run run;
} padded;

static void pad(padded *f, const uint8_t *src, size_t n, const tn_quant_run *run, size_t size)
{
    memset(f->in, 0, sizeof f->in);
    memcpy(f->in, src, n * size);
    f->run = *run;
    if (!run->each)
        return;
    for (size_t i = 0; i < GROUP; i++) {
        f->scale[i] = i < n ? run->scale[i] : 1;
        f->zero[i] = i < n ? run->zero[i] : 0;
    }
    f->run.scale = f->scale;
    f->run.zero = f->zero;
}

/* ---- to codes ---- */

/* How values are divided by their scale. */
typedef enum division {
    DIVIDE,
    MULTIPLY,                   /* by the reciprocal, which is exact */
    NEARLY                      /* by the nearest to it; the product may be wrong in its last bits */
} division;

/* What a loop over groups is compiled for. */
typedef struct variant {
    size_t   size;              /* bytes of a code */
    bool     each, away;
    division how;
} variant;

/* Lanes that need more care: NaN, and quotients that are ties or may be. */
typedef struct special {
    vm nan, tie;
} special;

/* Products of at most 2^10, which have all codes of 8 bits, are wrong by less than 2^-12.  So away from
 * ties they round to the same integer as the quotient, in both modes.  Products that are not float32 integers
 * within int32_t count as ties, too. */
INLINE vi nearly_integers_of(vf x, vf inverse, special *odd)
{
    vf product = x * inverse;
    vi whole = nearest(product);
    odd->tie = either(odd->tie, beyond(product - number(whole), every_f(0.5f - 0x1p-12f)));
    return whole;
}

INLINE vi integers_of(vf x, vf by, variant v, special *odd)
{
    if (v.how == NEARLY)
        return nearly_integers_of(x, by, odd);
    vf quotient = v.how == MULTIPLY ? x * by : x / by;
    odd->nan = either(odd->nan, nans(quotient));
    quotient = least_f(most_f(quotient, every_f(-0x1p22f)), every_f(0x1p22f));
    vi whole = v.away ? truncated(quotient + signed_as(0x1.fffffep-2f, quotient)) : nearest(quotient);
    if (v.how == DIVIDE)
        odd->tie = either(odd->tie, halves(quotient - number(whole)));
    return whole;
}

/* Quantizes the group from element `i` on; returns whether some of its codes may be wrong. */
INLINE bool quantize_group(uint8_t *dst, const uint8_t *src, size_t i, const tn_quant_run *run, float by,
                           variant v)
{
    special odd = { 0 };
    vi codes[4], zero = every_i(run->zero[0]), low = every_i(run->low), high = every_i(run->high);
    vf scale = every_f(by);
    for (size_t k = 0; k < 4; k++) {
        size_t at = i + k * LANES;
        fetch_ahead(src + 4 * at);
        if (v.each) {
            scale = floats(run->scale + at);
            zero = integers(run->zero + at);
        }
        vi whole = integers_of(floats(src + 4 * at), scale, v, &odd);
        codes[k] = least_i(most_i(whole, low - zero), high - zero) + zero;
    }
    if (v.size == 1)
        put8(dst + i, codes, run->stream);
    else
        put16(dst + 2 * i, codes, run->stream);
    bool ties_count = v.how == NEARLY || (v.how == DIVIDE && run->exact);
    return any(odd.nan) || (ties_count && any(odd.tie));
}

static __attribute__((noinline)) bool quantize_slowly(uint8_t *dst, const uint8_t *src, size_t i,
                                                      const tn_quant_run *run, size_t size)
{
    tn_quant_run part = run_from(run, i);
    return (size == 1 ? tn_quantize_8_scalar : tn_quantize_16_scalar)(dst + size * i, src + 4 * i, GROUP,
                                                                      &part);
}

/* A group with a product near a tie. */
static __attribute__((noinline)) bool divide_group(uint8_t *dst, const uint8_t *src, size_t i,
                                                   const tn_quant_run *run)
{
    float by = run->scale[0];
    bool odd = run->away ? quantize_group(dst, src, i, run, by, (variant){ .size = 1, .away = true })
                         : quantize_group(dst, src, i, run, by, (variant){ .size = 1 });
    return odd && quantize_slowly(dst, src, i, run, 1);
}

INLINE bool quantize_groups(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run, float by,
                            variant v)
{
    bool nan = false;
    for (size_t i = 0; i < n; i += GROUP)
        if (quantize_group(dst, src, i, run, by, v))
            nan |= v.how == NEARLY ? divide_group(dst, src, i, run)
                                   : quantize_slowly(dst, src, i, run, v.size);
    return nan;
}

INLINE bool quantize_rounding(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run,
                              size_t size, bool away)
{
    float reciprocal;
    if (run->each)
        return quantize_groups(dst, src, n, run, 1, (variant){ .size = size, .away = away, .each = true });
    if (tn_exact_reciprocal(run->scale[0], &reciprocal))
        return quantize_groups(dst, src, n, run, reciprocal,
                               (variant){ .size = size, .away = away, .how = MULTIPLY });
    return quantize_groups(dst, src, n, run, run->scale[0], (variant){ .size = size, .away = away });
}

/* Whether nearly_integers_of() is for these codes: see there.  Scales have a reciprocal that is as exact. */
static bool may_be_nearly(const tn_quant_run *run)
{
    float scale = run->scale[0] < 0 ? -run->scale[0] : run->scale[0], exact;
    return !run->each && scale > 0x1p-100f && scale < 0x1p100f && run->zero[0] >= -512 &&
           run->zero[0] <= 512 && !tn_exact_reciprocal(run->scale[0], &exact);
}

/* Whole groups, in one loop per variant. */
static __attribute__((noinline)) bool quantize_whole(uint8_t *dst, const uint8_t *src, size_t n,
                                                     const tn_quant_run *run, size_t size)
{
    if (size == 1 && may_be_nearly(run))
        return quantize_groups(dst, src, n, run, 1 / run->scale[0], (variant){ .size = 1, .how = NEARLY });
    if (size == 1)
        return run->away ? quantize_rounding(dst, src, n, run, 1, true)
                         : quantize_rounding(dst, src, n, run, 1, false);
    return run->away ? quantize_rounding(dst, src, n, run, 2, true)
                     : quantize_rounding(dst, src, n, run, 2, false);
}

static bool quantize(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run, size_t size)
{
    size_t whole = n / GROUP * GROUP;
    tn_quant_run own = *run;
    own.stream = run->stream && !run->each && (uintptr_t)dst % 16 == 0;
    bool nan = quantize_whole(dst, src, whole, &own, size);
    if (whole < n) {
        tn_quant_run rest = run_from(run, whole);
        padded f;
        pad(&f, src + 4 * whole, n - whole, &rest, 4);
        f.run.stream = false;
        nan |= quantize_whole(f.out, f.in, GROUP, &f.run, size);
        memcpy(dst + size * whole, f.out, size * (n - whole));
    }
    return nan;
}

static bool to_8(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run)
{
    return quantize(dst, src, n, run, 1);
}

static bool to_16(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run)
{
    return quantize(dst, src, n, run, 2);
}

/* ---- from codes ---- */

typedef enum code_type { I8, U8, I16, U16 } code_type;

INLINE vi widen(const uint8_t *p, code_type type)
{
    switch (type) {
    case I8:  return i8(p);
    case U8:  return u8(p);
    case I16: return i16(p);
    default:  return u16(p);
    }
}

/* Whole groups. */
INLINE void dequantize_groups(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run,
                              code_type type, bool stream)
{
    size_t size = type <= U8 ? 1 : 2;
    vf scale = every_f(run->scale[0]);
    vi zero = every_i(run->zero[0]);
    if (run->each)
        for (size_t i = 0; i < n; i += LANES) {
            vi distance = widen(src + size * i, type) - integers(run->zero + i);
            put_f(dst + 4 * i, number(distance) * floats(run->scale + i), stream);
        }
    else
        for (size_t i = 0; i < n; i += LANES)
            put_f(dst + 4 * i, number(widen(src + size * i, type) - zero) * scale, stream);
}

INLINE void dequantize_any(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run,
                           code_type type)
{
    size_t size = type <= U8 ? 1 : 2, whole = n / GROUP * GROUP;
    if (run->stream)
        dequantize_groups(dst, src, whole, run, type, true);
    else
        dequantize_groups(dst, src, whole, run, type, false);
    if (whole < n) {
        tn_quant_run rest = run_from(run, whole);
        padded f;
        pad(&f, src + size * whole, n - whole, &rest, size);
        dequantize_groups(f.out, f.in, GROUP, &f.run, type, false);
        memcpy(dst + 4 * whole, f.out, 4 * (n - whole));
    }
}

/* Streams from the first line of the output on. */
INLINE void dequantize(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run, code_type type)
{
    size_t before = (TN_LINE - (uintptr_t)dst % TN_LINE) % TN_LINE, first = before / 4;
    tn_quant_run plain = *run;
    plain.stream = false;
    if (!run->stream || before % 4 || first + GROUP > n) {
        dequantize_any(dst, src, n, &plain, type);
        return;
    }
    tn_quant_run rest = run_from(run, first);
    dequantize_any(dst, src, first, &plain, type);
    dequantize_any(dst + 4 * first, src + (type <= U8 ? 1 : 2) * first, n - first, &rest, type);
}

#define DEQUANTIZE(name, type)                                                                              \
    static void name(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run)       \
    {                                                                                                       \
        dequantize(dst, src, n, run, type);                                                                 \
    }

DEQUANTIZE(from_i8, I8)
DEQUANTIZE(from_u8, U8)
DEQUANTIZE(from_i16, I16)
DEQUANTIZE(from_u16, U16)

/* ---- ranges ---- */

static void range(float *restrict low, float *restrict high, const void *restrict src, size_t n)
{
    const uint8_t *p = src;
    vf l[4], h[4];
    for (size_t k = 0; k < 4; k++) {
        l[k] = every_f(*low);
        h[k] = every_f(*high);
    }
    size_t i = 0;
    for (; n - i >= GROUP; i += GROUP)
        for (size_t k = 0; k < 4; k++) {
            const uint8_t *at = p + 4 * (i + k * LANES);
            fetch_ahead(at);
            vf x = finite(floats(at));
            l[k] = least_f(x, l[k]);
            h[k] = most_f(x, h[k]);
        }
    float rest[GROUP] = { 0 }, lows[LANES], highs[LANES];
    memcpy(rest, p + 4 * i, 4 * (n - i));
    for (size_t k = 0; k < 4; k++) {
        vf x = finite(floats(rest + k * LANES));
        l[0] = least_f(x, least_f(l[k], l[0]));
        h[0] = most_f(x, most_f(h[k], h[0]));
    }
    put_f(lows, l[0], false);
    put_f(highs, h[0], false);
    for (size_t k = 0; k < LANES; k++) {
        *low = lows[k] < *low ? lows[k] : *low;
        *high = highs[k] > *high ? highs[k] : *high;
    }
}

static void range_each(float *restrict low, float *restrict high, const void *restrict src, size_t n)
{
    const uint8_t *p = src;
    size_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        fetch_ahead(p + 4 * i);
        vf x = finite(floats(p + 4 * i));
        put_f(low + i, least_f(x, floats(low + i)), false);
        put_f(high + i, most_f(x, floats(high + i)), false);
    }
    for (; i < n; i++) {
        uint32_t bits;
        float x;
        memcpy(&bits, p + 4 * i, sizeof bits);
        memcpy(&x, p + 4 * i, sizeof x);
        if ((bits & 0x7f800000) == 0x7f800000)
            continue;
        low[i] = x < low[i] ? x : low[i];
        high[i] = x > high[i] ? x : high[i];
    }
}

/* ---- errors ---- */

INLINE uint64_t squares(const uint8_t *codes, const uint8_t *src, size_t n, double step, double unit,
                        code_type type)
{
    wide_sum sum = { 0 };
    for (size_t i = 0; i < n; i += LANES) {
        vi code = widen(codes + (type == I8 ? i : 2 * i), type);
        vf x = floats(src + 4 * i);
        for (int k = 0; k < 2; k++) {
            vd error = double_i(code, k) * every_d(step) - double_f(x, k);
            add_whole(&sum, least_d(error * error * every_d(unit), every_d(0x1p53)));
        }
    }
    return total(&sum);
}

#define SQUARES(name, scalar, type, size)                                                             \
    static uint64_t name(const void *restrict codes, const void *restrict src, size_t n, double step, \
                         double unit)                                                                 \
    {                                                                                                 \
        size_t whole = n / LANES * LANES;                                                             \
        return squares(codes, src, whole, step, unit, type) +                                         \
               scalar((const uint8_t *)codes + (size) * whole, (const uint8_t *)src + 4 * whole,      \
                      n - whole, step, unit);                                                         \
    }

SQUARES(squares_i8, tn_squares_i8_scalar, I8, 1)
SQUARES(squares_i16, tn_squares_i16_scalar, I16, 2)

void LEVEL(tn_quant_kernels_init)(tn_quant_kernels *k)
{
    k->to_8 = to_8;
    k->to_16 = to_16;
    k->from_i8 = from_i8;
    k->from_u8 = from_u8;
    k->from_i16 = from_i16;
    k->from_u16 = from_u16;
    k->range = range;
    k->range_each = range_each;
    k->squares_i8 = squares_i8;
    k->squares_i16 = squares_i16;
}
