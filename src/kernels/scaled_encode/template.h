/* kernels/scaled_encode/template.h - encodes scaled tiles in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h) and defines
 *
 *   EVENS, ODDS        the even and the odd lanes of two vectors
 *   most_u(a, b)       the maximum of unsigned integers
 *   pick(a, b, x, y)   x where a > b as signed integers, else y
 *   smaller(x, limit)  |x| or the limit, which is positive
 *   FUSED              whether fused(a, b, c) is a * b + c, rounded once
 *   spread(v, order)   lane order[i] of v in lane i
 *   put8(p, v, stream), put16(p, v, stream)    the low bytes or halves of 4 vectors, which hold no more
 *   squeeze(w, bits)   packs the low bits of each of 8 bytes
 *   put_fours(p, codes)        packs 8 * LANES bytes of 4 bits
 *   put_sixes(p, codes)        packs 4 * LANES bytes of 6 bits
 *
 * Four vectors are a group.  A remainder is padded to a group in a copy. */
#include <math.h>
#include <string.h>

#include "kernels/scaled_encode/table.h"
#include "kernels/stream.h"

enum {
    GROUP    = 4 * LANES,
    INFINITE = 0x7f800000,
    NORMAL   = 0x00800000,      /* smallest normal float32 */
    ONE      = 0x3f800000,
    NEAR     = 60 << 23         /* ONE + and - this are 2^60 and 2^-60 */
};

INLINE vf every_f(float x)      { return (vf){ 0 } + x; }
INLINE vi every_i(int32_t n)    { return (vi){ 0 } + n; }
INLINE vu every_u(uint32_t n)   { return (vu){ 0 } + n; }
INLINE vf floats(const void *p) { vf v; memcpy(&v, p, sizeof v); return v; }
INLINE vi integers(const void *p) { vi v; memcpy(&v, p, sizeof v); return v; }
INLINE void put(void *p, vi v)  { memcpy(p, &v, sizeof v); }
INLINE vi evens(vi a, vi b)     { return __builtin_shufflevector(a, b, EVENS); }
INLINE vi odds(vi a, vi b)      { return __builtin_shufflevector(a, b, ODDS); }

static bool any_negative(vi v)
{
    int32_t lane[LANES], all = 0;
    memcpy(lane, &v, sizeof lane);
    for (unsigned i = 0; i < LANES; i++)
        all |= lane[i];
    return all < 0;
}

/* How far the next block is. */
INLINE size_t block_after(size_t n)
{
    return n > TN_ENCODE_BLOCK ? n : TN_ENCODE_BLOCK;
}

/* Prefetches a line of the n values that are `ahead` of these, for the line at this byte.  It alternates
 * between four parts: memory delivers lines of several pages faster than those of one. */
INLINE void fetch_next(const float *x, size_t n, size_t ahead, size_t at)
{
    enum { PARTS = 4 };
    size_t next = ahead * sizeof *x,
           part = n * sizeof *x / PARTS / TN_LINE * TN_LINE;
    size_t line = at / TN_LINE;
    __builtin_prefetch((const void *)((uintptr_t)x + next + line % PARTS * part + line / PARTS * TN_LINE));
}

/* ---- ranges ---- */

typedef enum extreme { LARGEST, HIGH, LOW } extreme;

INLINE vi further(vi a, vi b, extreme what)
{
    return what == LOW ? (vi)most_u((vu)a, (vu)b) : most_i(a, b);
}

INLINE vi seen(const float *x, extreme what)
{
    vi v = integers(x);
    return what == LARGEST ? v & INT32_MAX : v;
}

/* Reduces n vectors, one per tile or with several tiles each, to one vector with a lane per tile. */
INLINE vi join_lanes(vi v[LANES], unsigned n, extreme what)
{
    for (; n > 1; n /= 2)
        for (unsigned i = 0; i < n / 2; i++)
            v[i] = further(evens(v[2 * i], v[2 * i + 1]), odds(v[2 * i], v[2 * i + 1]), what);
    return v[0];
}

/* LANES tiles of `per` vectors each. */
INLINE vi range_of_wide(const float *x, size_t per, extreme what)
{
    vi v[LANES];
    for (unsigned t = 0; t < LANES; t++) {
        v[t] = seen(x + t * per * LANES, what);
        for (size_t k = 1; k < per; k++)
            v[t] = further(v[t], seen(x + (t * per + k) * LANES, what), what);
    }
    return join_lanes(v, LANES, what);
}

/* LANES tiles of a part of a vector each. */
INLINE vi range_of_narrow(const float *x, unsigned size, extreme what)
{
    vi v[LANES] = { { 0 } };
    for (unsigned t = 0; t < size; t++)
        v[t] = seen(x + t * LANES, what);
    return join_lanes(v, size, what);
}

INLINE vi range_of_lanes(const float *x, size_t size, extreme what)
{
    if (size == 1)
        return seen(x, what);
    if (size == LANES / 2)                      /* constant sizes stay in registers */
        return range_of_narrow(x, LANES / 2, what);
    if (size < LANES)
        return range_of_narrow(x, (unsigned)size, what);
    switch (size / LANES) {
    case 1:  return range_of_wide(x, 1, what);
    case 2:  return range_of_wide(x, 2, what);
    case 4:  return range_of_wide(x, 4, what);
    default: return range_of_wide(x, size / LANES, what);
    }
}

INLINE uint32_t range_of_one(const float *x, size_t n, extreme what)
{
    vi v[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
    size_t i = 0;
    for (; n - i >= GROUP; i += GROUP) {
        /* HIGH has read them before LOW */
        for (unsigned k = 0; k < GROUP * sizeof *x && what != LOW; k += TN_LINE)
            fetch_next(x, n, block_after(n), i * sizeof *x + k);
        for (unsigned k = 0; k < 4; k++)
            v[k] = further(v[k], seen(x + i + k * LANES, what), what);
    }
    float rest[GROUP] = { 0 };
    if (i < n)
        memcpy(rest, x + i, (n - i) * sizeof *x);
    for (unsigned k = 0; k < 4; k++)
        v[k] = further(v[k], seen(rest + k * LANES, what), what);
    v[0] = further(further(v[0], v[1], what), further(v[2], v[3], what), what);
    for (unsigned k = 1; k < LANES; k *= 2)
        v[0] = further(evens(v[0], v[0]), odds(v[0], v[0]), what);
    return (uint32_t)v[0][0];
}

INLINE void ranges(uint32_t *bits, const float *x, size_t tiles, size_t size, extreme what)
{
    size_t t = 0;
    for (; tiles - t >= LANES; t += LANES)
        put(bits + t, range_of_lanes(x + t * size, size, what));
    for (; t < tiles; t++)
        bits[t] = range_of_one(x + t * size, size, what);
}

static void largest(uint32_t *bits, const float *x, size_t tiles, size_t size)
{
    ranges(bits, x, tiles, size, LARGEST);
}

/* `vectors` of tiles. */
INLINE void widen_some(uint32_t *bits, const float *x, size_t tiles, size_t lines, unsigned vectors)
{
    vi most[4];
    for (unsigned k = 0; k < vectors; k++)
        most[k] = integers(bits + k * LANES);
    for (size_t l = 0; l < lines; l++)
        for (unsigned k = 0; k < vectors; k++)
            most[k] = most_i(most[k], seen(x + l * tiles + k * LANES, LARGEST));
    for (unsigned k = 0; k < vectors; k++)
        put(bits + k * LANES, most[k]);
}

static void widen(uint32_t *bits, const float *x, size_t tiles, size_t lines)
{
    size_t t = 0;
    for (; tiles - t >= GROUP; t += GROUP)
        widen_some(bits + t, x + t, tiles, lines, 4);
    for (; tiles - t >= LANES; t += LANES)
        widen_some(bits + t, x + t, tiles, lines, 1);
    for (; t < tiles; t++)
        for (size_t l = 0; l < lines; l++) {
            uint32_t own;
            memcpy(&own, x + l * tiles + t, sizeof own);
            own &= INT32_MAX;
            bits[t] = own > bits[t] ? own : bits[t];
        }
}

static void ends(uint32_t *high, uint32_t *low, const float *x, size_t tiles, size_t size)
{
    ranges(high, x, tiles, size, HIGH);
    ranges(low, x, tiles, size, LOW);
}

/* ---- floats ---- */

/* The code of |x|, at most that of the largest number. */
INLINE vu magnitude_code(vf x, const tn_float_rules *r)
{
    vf clamped = smaller(x, every_f(r->largest));
    vu magnitude = (vu)clamped;
    vu code = right(magnitude + r->half + (right(magnitude, r->shift) & r->odd), r->shift);
    /* the addition rounds at the last bit */
    vu tiny = (vu)(clamped + (vf)every_u(r->magic)) - r->magic;
    return (vu)pick(every_i((int32_t)r->normal), (vi)magnitude, (vi)tiny, (vi)code);
}

/* The same for ggml's 4 bits: ties go down. */
INLINE vu ggml_code(vf x, const tn_float_rules *r)
{
    const vi quarter = (vi)every_f(0.25f), three = (vi)every_f(0.75f), one = (vi)every_f(1);
    vi magnitude = (vi)smaller(x, every_f(r->largest));
    vi code = (vi)right((vu)magnitude + r->half, r->shift);
    vi tiny = pick(magnitude, three, every_i(2), pick(magnitude, quarter, every_i(1), every_i(0)));
    return (vu)pick(one, magnitude, tiny, code);
}

/* With the sign of x. */
INLINE vu signed_code(vu code, vf x, const tn_float_rules *r, bool has_minus_zero)
{
    vu sign = right((vu)x, 32 - r->bits) & (UINT32_C(1) << (r->bits - 1));
    return has_minus_zero ? code | sign : code | (vu)pick((vi)code, every_i(0), (vi)sign, every_i(0));
}

/* The value of a code without a sign. */
INLINE vf float_value(vu code, const tn_float_rules *r)
{
    vf tiny = __builtin_convertvector((vi)code, vf) * r->smallest;
    return (vf)pick(every_i((int32_t)r->one), (vi)code, (vi)tiny, (vi)((code << r->shift) + r->rebias));
}

/* ---- scales ---- */

static unsigned exponents(const tn_exponent_rules *r, const uint32_t *bits, size_t tiles,
                          const tn_tile_scales *to)
{
    vi special = { 0 };
    for (size_t t = 0; t < tiles; t += LANES) {
        vi a = integers(bits + t), something = ~((a - 1) >> 31);
        vi code = least_i(most_i((vi)(((vu)a + (uint32_t)r->bump) >> 23) + r->offset, every_i(0)),
                          every_i(r->last));
        vi field = r->inverse - code;
        special |= (INFINITE - 1 - a) | (something & ((a - NORMAL) | (field - 1) | (254 - field)));
        put(to->scale + t, code & something);
        put(to->factor + t, (vi)((vu)field << 23) & something);
    }
    return any_negative(special) ? TN_SCALES_SPECIAL : 0;
}

/* Infinity instead of a scale of 0: quotients are then zeros. */
INLINE vf divisor(vf scale)
{
    return (vf)pick((vi)scale, every_i(0), (vi)scale, every_i(INFINITE));
}

/* The scale of a code in this tensor, and the code of a scale. */
INLINE vf scale_of(const tn_scale_rules *r, vu code)
{
    return float_value(code, &r->scale) * r->tensor_scale;
}

INLINE vu scale_code(const tn_scale_rules *r, vf scale)
{
    return magnitude_code(r->tensor_scale == 1 ? scale : scale / r->tensor_scale, &r->scale);
}

/* Zero points of ranges that begin at -low, at most one above the limit. */
INLINE vi zero_of(const tn_scale_rules *r, vf low, vf scale)
{
    return nearest(least_f(low / divisor(scale), every_f((float)r->zero_last + 1)));
}

/* Raises scales until the zero point fits or the scale is the largest. */
static __attribute__((noinline)) void raise_scales(const tn_scale_rules *r, vf low, vf step, vu *code,
                                                   vi *zero)
{
    const vi most = every_i(r->zero_last), last = (vi)magnitude_code(every_f(r->scale.largest), &r->scale);
    vu raised = scale_code(r, most_f(step, low / (float)r->zero_last));
    *code = (vu)pick(*zero, most, (vi)raised, (vi)*code);
    for (;;) {
        *zero = zero_of(r, low, scale_of(r, *code));
        vi again = pick(*zero, most, pick(last, (vi)*code, every_i(-1), every_i(0)), every_i(0));
        if (!any_negative(again))
            break;
        *code -= (vu)again;
    }
    *zero = least_i(*zero, most);
}

INLINE void put_float_zeros(const tn_scale_rules *r, vf low, vf scale, const tn_tile_scales *to, size_t t)
{
    vu code = (vu)pick((vi)scale, every_i(0), (vi)magnitude_code(low, &r->zero), every_i(0));
    put(to->zero + t, (vi)code);
    put(to->shift + t, (vi)float_value(code, &r->zero));
}

/* Negative lanes: tiles with infinities or NaN (special), tiles that cannot be divided by multiplying (far).
 * Tiles of zeros can be divided by anything. */
typedef struct flags {
    vi special, far;
} flags;

INLINE void put_divisors(vf scale, vi range, const tn_tile_scales *to, size_t t, flags *f)
{
    const vi one = every_i(ONE), near = every_i(NEAR);
    vi by = pick(range, every_i(0), (vi)divisor(scale), one);
    f->special |= INFINITE - 1 - range;
    f->far |= (ONE + NEAR - by) | (by - (one - near)) | (ONE + NEAR - range);
    put(to->factor + t, by);
    if (FUSED)
        put(to->inverse + t, (vi)(every_f(1) / (vf)by));
}

static unsigned scales(const tn_scale_rules *r, const uint32_t *high, const uint32_t *low, size_t tiles,
                       const tn_tile_scales *to)
{
    flags f = { { 0 }, { 0 } };
    for (size_t t = 0; t < tiles; t += LANES) {
        vi h = most_i(integers(high + t), every_i(0)), l = { 0 };
        if (r->zero_kind != TN_ZERO_NONE)       /* -low if it is negative, else 0 */
            l = integers(low + t) & INT32_MAX & integers(low + t) >> 31;
        vf step = ((vf)h + (vf)l) / r->top;
        vu code = scale_code(r, step);
        if (r->zero_kind == TN_ZERO_INT) {
            vi zero = zero_of(r, (vf)l, scale_of(r, code));
            if (any_negative(r->zero_last - zero))
                raise_scales(r, (vf)l, step, &code, &zero);
            put(to->zero + t, zero);
        }
        vf scale = scale_of(r, code);
        put(to->scale + t, (vi)code);
        put_divisors(scale, most_i(h, l), to, t, &f);
        if (r->zero_kind == TN_ZERO_FLOAT)
            put_float_zeros(r, (vf)l, scale, to, t);
    }
    unsigned far = !FUSED || any_negative(f.far) ? TN_SCALES_FAR : 0;
    return any_negative(f.special) ? far | TN_SCALES_SPECIAL : far;
}

/* ---- codes ---- */

/* Which tiles a vector has: one or, if narrow, several. */
typedef struct places {
    bool     narrow;
    unsigned shift;             /* log2 of the vectors of a tile, or of the tiles of a vector */
    vi       order;
} places;

static places places_of(size_t size, size_t n)
{
    places at = { .narrow = size < n && size < LANES, .order = { 0 } };
    if (size >= n) {
        at.shift = 8 * sizeof n - 1;            /* one tile for all vectors */
        return at;
    }
    size_t ratio = at.narrow ? LANES / size : size / LANES;
    at.shift = (unsigned)__builtin_ctzl(ratio);
    for (unsigned i = 0; i < LANES && at.narrow; i++)
        at.order[i] = (int32_t)(i * (unsigned)ratio / LANES);
    return at;
}

INLINE vi of_tiles(const void *numbers, size_t vector, const places *at, bool narrow)
{
    const uint32_t *p = numbers;
    return narrow ? spread(integers(p + (vector << at->shift)), at->order)
                  : (vi)every_u(p[vector >> at->shift]);
}

INLINE vu integer_code(vf quotient, const tn_codes_run *r)
{
    vi code = nearest(least_f(most_f(quotient, every_f((float)-r->most)), every_f((float)r->most)));
    return (vu)code & ((uint32_t)r->most * 2 + 1);
}

/* What a loop encodes: known when compiling. */
typedef struct family {
    tn_codes_kind kind;
    bool wide, narrow, near, has_minus_zero;
} family;

/* If scales are near 1, multiplies with the inverse instead of dividing.  The product is right to a few units
 * in the last place, one correction makes it right to one unit, and a second one rounds it correctly
 * (Markstein's theorem).  Remainders of values below 2^-102 are not exact, but those values become 0. */
INLINE vf quotient(vf x, size_t vector, const tn_codes_run *r, const places *at, const family y)
{
    vf by = (vf)of_tiles(r->factor, vector, at, y.narrow);
    if (!y.near)
        return x / by;
    vf inverse = (vf)of_tiles(r->inverse, vector, at, y.narrow), q = x * inverse;
    q = fused(fused(-q, by, x), inverse, q);
    return fused(fused(-q, by, x), inverse, q);
}

INLINE vf product(vf x, size_t vector, const tn_codes_run *r, const places *at, const family y)
{
    return x * (vf)of_tiles(r->factor, vector, at, y.narrow);
}

INLINE vu code_of(vf x, size_t vector, const tn_codes_run *r, const places *at, const family y)
{
    vf q;
    switch (y.kind) {
    case TN_CODES_FLOAT:
        return signed_code(magnitude_code(quotient(x, vector, r, at, y), &r->number), x, &r->number,
                           y.has_minus_zero);
    case TN_CODES_FLOAT_POWER:
        return signed_code(magnitude_code(product(x, vector, r, at, y), &r->number), x, &r->number,
                           y.has_minus_zero);
    case TN_CODES_GGML:
        return signed_code(ggml_code(product(x, vector, r, at, y), &r->number), x, &r->number, false);
    case TN_CODES_INT:
        return integer_code(quotient(x, vector, r, at, y), r);
    case TN_CODES_INT_POWER:
        return integer_code(product(x, vector, r, at, y), r);
    case TN_CODES_UINT:
        q = least_f(most_f(quotient(x, vector, r, at, y), every_f(-0x1p22f)), every_f(0x1p22f));
        return (vu)least_i(most_i(nearest(q) + of_tiles(r->zero, vector, at, y.narrow), every_i(0)),
                           every_i(r->most));
    default:
        q = quotient(x + (vf)of_tiles(r->shift, vector, at, y.narrow), vector, r, at, y);
        return (vu)nearest(least_f(most_f(q, every_f(0)), every_f((float)r->most)));
    }
}

INLINE void put_codes(uint8_t *dst, const float *x, size_t vector, const tn_codes_run *r, const places *at,
                      const family y, bool stream)
{
    vu codes[4];
    for (unsigned k = 0; k < 4; k++)
        codes[k] = code_of(floats(x + k * LANES), vector + k, r, at, y);
    if (y.wide)
        put16(dst, codes, stream);
    else
        put8(dst, codes, stream);
}

INLINE void put_all(uint8_t *dst, const float *x, size_t n, const tn_codes_run *run, const places *at,
                    const family y)
{
    const tn_codes_run own = *run;              /* a copy, which no store can change */
    size_t i = 0, each = y.wide ? 2 : 1, ahead = own.ahead ? own.ahead : block_after(n);
    for (; n - i >= GROUP; i += GROUP) {
        for (unsigned k = 0; k < GROUP * sizeof *x; k += TN_LINE)
            fetch_next(x, n, ahead, i * sizeof *x + k);
        put_codes(dst + each * i, x + i, i / LANES, &own, at, y, own.stream);
    }
    if (i == n)
        return;
    float rest[GROUP] = { 0 };
    uint8_t codes[GROUP * 2];
    memcpy(rest, x + i, (n - i) * sizeof *x);
    put_codes(codes, rest, i / LANES, &own, at, y, false);
    memcpy(dst + each * i, codes, each * (n - i));
}

INLINE void put_signed(uint8_t *dst, const float *x, size_t n, const tn_codes_run *run, const places *at,
                       family y)
{
    if ((y.kind == TN_CODES_FLOAT || y.kind == TN_CODES_FLOAT_POWER) && run->number.has_minus_zero) {
        y.has_minus_zero = true;
        put_all(dst, x, n, run, at, y);
    } else {
        put_all(dst, x, n, run, at, y);
    }
}

INLINE void put_family(uint8_t *dst, const float *x, size_t n, const tn_codes_run *run, tn_codes_kind kind,
                       bool wide)
{
    const places at = places_of(run->size, n);
    bool divides = kind != TN_CODES_FLOAT_POWER && kind != TN_CODES_INT_POWER && kind != TN_CODES_GGML;
    if (at.narrow)
        put_signed(dst, x, n, run, &at, (family){ .kind = kind, .wide = wide, .narrow = true });
    else if (FUSED && divides && run->inverse)
        put_signed(dst, x, n, run, &at, (family){ .kind = kind, .wide = wide, .near = true });
    else
        put_signed(dst, x, n, run, &at, (family){ .kind = kind, .wide = wide });
}

#define EACH_KIND(X)                                                                                        \
    X(float_codes, TN_CODES_FLOAT)      X(float_power_codes, TN_CODES_FLOAT_POWER)                          \
    X(int_codes, TN_CODES_INT)          X(int_power_codes, TN_CODES_INT_POWER)                              \
    X(uint_codes, TN_CODES_UINT)        X(shifted_codes, TN_CODES_SHIFTED)
#define DEFINE_CODES(name, kind, wide)                                                                      \
    static void name(uint8_t *restrict dst, const float *restrict x, size_t n, const tn_codes_run *run)     \
    {                                                                                                       \
        put_family(dst, x, n, run, kind, wide);                                                             \
    }
#define DEFINE_BOTH(name, kind) DEFINE_CODES(name, kind, false) DEFINE_CODES(wide_##name, kind, true)

EACH_KIND(DEFINE_BOTH)
DEFINE_CODES(ggml_codes, TN_CODES_GGML, false)

/* ---- scaled values ---- */

INLINE vf scaled(vf x, size_t vector, const tn_codes_run *run, const places *at, const family f)
{
    if (f.kind == TN_CODES_FLOAT_POWER)
        return product(x, vector, run, at, f);
    vu sign = (vu)x & UINT32_C(0x80000000);     /* corrections of a quotient make -0 a 0 */
    return (vf)((vu)quotient(x, vector, run, at, f) | sign);
}

INLINE void scale_all(float *y, const float *x, size_t n, const tn_codes_run *run, const places *at,
                      const family f)
{
    const tn_codes_run own = *run;
    size_t i = 0, ahead = own.ahead ? own.ahead : block_after(n);
    for (; n - i >= GROUP; i += GROUP) {
        for (unsigned k = 0; k < GROUP * sizeof *x; k += TN_LINE)
            fetch_next(x, n, ahead, i * sizeof *x + k);
        for (unsigned k = 0; k < 4; k++)
            put(y + i + k * LANES, (vi)scaled(floats(x + i + k * LANES), i / LANES + k, &own, at, f));
    }
    for (; i < n; i += LANES) {
        float rest[LANES] = { 0 };
        size_t some = n - i < LANES ? n - i : LANES;
        memcpy(rest, x + i, some * sizeof *x);
        vf v = scaled(floats(rest), i / LANES, &own, at, f);
        memcpy(y + i, &v, some * sizeof *y);
    }
}

static void divide(float *restrict y, const float *restrict x, size_t n, const tn_codes_run *run)
{
    const places at = places_of(run->size, n);
    if (at.narrow)
        scale_all(y, x, n, run, &at, (family){ .kind = TN_CODES_FLOAT, .narrow = true });
    else if (FUSED && run->inverse)
        scale_all(y, x, n, run, &at, (family){ .kind = TN_CODES_FLOAT, .near = true });
    else
        scale_all(y, x, n, run, &at, (family){ .kind = TN_CODES_FLOAT });
}

static void multiply(float *restrict y, const float *restrict x, size_t n, const tn_codes_run *run)
{
    const places at = places_of(run->size, n);
    if (at.narrow)
        scale_all(y, x, n, run, &at, (family){ .kind = TN_CODES_FLOAT_POWER, .narrow = true });
    else
        scale_all(y, x, n, run, &at, (family){ .kind = TN_CODES_FLOAT_POWER });
}

/* ---- packing ---- */

static void pack(uint8_t *restrict dst, const uint8_t *restrict codes, size_t n, unsigned bits)
{
    size_t i = 0;
    for (; bits == 4 && n - i >= 2 * GROUP; i += 2 * GROUP)
        put_fours(dst + i / 2, codes + i);
    for (; bits == 6 && n - i >= GROUP; i += GROUP)
        put_sixes(dst + i / 4 * 3, codes + i);
    uint8_t *to = dst + i / 8 * bits;
    for (; n - i >= 64; i += 8, to += bits) {           /* the next word overwrites the excess */
        uint64_t word;
        memcpy(&word, codes + i, sizeof word);
        word = squeeze(word, bits);
        memcpy(to, &word, sizeof word);
    }
    for (; i < n; i += 8, to += bits) {
        uint64_t word = 0;
        size_t some = n - i < 8 ? n - i : 8;
        memcpy(&word, codes + i, some);
        word = squeeze(word, bits);
        memcpy(to, &word, (some * bits + 7) / 8);
    }
}

#define CODES_ENTRY(name, kind) [kind] = name,
#define WIDE_ENTRY(name, kind)  [kind] = wide_##name,

void LEVEL(tn_encode_kernels_init)(tn_encode_kernels *k)
{
    *k = (tn_encode_kernels){
        .largest = largest, .widen = widen, .ends = ends, .exponents = exponents, .scales = scales,
        .divide = divide, .multiply = multiply, .pack = pack,
        .codes = { EACH_KIND(CODES_ENTRY) [TN_CODES_GGML] = ggml_codes },
        .wide_codes = { EACH_KIND(WIDE_ENTRY) },
    };
}
