/* kernels/cast/template.h - casts in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h), or defines the same, and defines
 *
 *   above(a, b)        lanes where a > b, as signed integers
 *   outside(x, l, h)   lanes where x is not in [l, h), NaN included
 *   differ(a, b)       lanes where a != b, as floats: NaN differs from itself
 *   clamp(x, l, h)     x limited to [l, h]; NaN stays
 *   pick(m, a, b)      a in the lanes of m, else b
 *   both(m, n)         the lanes of both masks
 *   widen8(v, p), widen16(v, p)    4 vectors from 4 * LANES bytes or halves
 *   narrow24(p, v), widen24(p)     LANES groups of 3 bytes; narrow24() may write a whole vector
 *   narrow_f16(a, b), widen_f16(v, p)   the same with conversion; NaN becomes quiet
 *   put(p, v, stream)  stores a vector; if stream, past the cache, and p is aligned
 *
 * Every cast is one pipeline for 256 elements at a time: whole cache lines in
 * every type.  Codes are widened to 32-bit lanes, decoded to float32 (exact),
 * encoded, and narrowed.  A block with overflow, infinity or NaN is repeated
 * with care; the other blocks pay one comparison for it. */
#include <math.h>
#include <string.h>

#include "tensor/array.h"
#include "kernels/cast/count.h"
#include "kernels/stream.h"

enum {
    BLOCK    = 256,             /* elements */
    AHEAD    = 4096,            /* bytes to prefetch ahead */
    GROUP    = 4 * LANES,       /* elements in 4 vectors */
    INFINITE = 0x7f800000,      /* float32 */
    QUIET    = 0x00400000
};

/* How elements are decoded or encoded. */
typedef enum kind {
    KIND_F32, KIND_F16, KIND_SMALL,     /* SMALL: any float with fewer exponent bits than float32 */
    KIND_BF16, KIND_TF32,               /* truncated float32 */
    KIND_E8M0, KIND_INT, KIND_UINT, KIND_BOOL,
    KIND_FINITE,                        /* float32 decoded from a type without infinity and NaN */
    KIND_F64, KIND_ODD                  /* ODD: float64 to float32, rounded to odd */
} kind;

/* A type as constants for decoding and encoding. */
typedef struct format {
    const tn_dtype_info *info;
    unsigned bits;              /* of the code, 19 for tf32 */
    unsigned lift;              /* bits below the code where it is stored: 13 for tf32 */
    unsigned shift;             /* mantissa bits that float32 has more */
    uint32_t rebias;            /* from its exponent to float32's, in place */
    uint32_t one;               /* first normal code */
    uint32_t largest;           /* finite code */
    uint32_t normal;            /* smallest normal number, as float32 */
    uint32_t magic;             /* float32 whose last bit is its smallest subnormal */
    uint32_t limit;             /* largest float32 that does not round beyond `largest` */
    uint32_t nan[2];            /* its NaNs without a payload as float32, positive and negative */
    float    low, high, last;   /* integers: values that round into range are in [low, high), up to last */
} format;

typedef struct replacements {   /* codes by sign, from the definition when first needed */
    bool     known;
    uint32_t overflow[2], infinity[2], nan[2];
    bool     payload;           /* NaN keeps its own */
    unsigned infinity_flags;
} replacements;

INLINE vu load(const void *p)
{
    vu v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vu all(uint32_t x)
{
    return (vu){ 0 } + x;
}

/* ---- constants ---- */

static uint64_t recode(const tn_dtype_info *to, const tn_encode_rules *rules, tn_dtype from, uint64_t code,
                       unsigned *flags)
{
    return tn_number_encode(to, rules, tn_number_decode(tn_dtype_get(from), code), 0, flags);
}

static format float_format(const tn_dtype_info *t)
{
    unsigned m = t->mantissa_bits, e = t->exponent_bits, bias = (unsigned)t->bias;
    if (m > 23 || t->specials == TN_SPECIALS_E8M0)
        return (format){ .info = t, .bits = t->bits, .nan = { 0x7fc00000, 0x7fc00000 } };
    format f = { .info = t, .bits = 1 + e + m, .shift = 23 - m, .rebias = (127 - bias) << 23,
                 .one = (uint32_t)1 << m, .normal = (128 - bias) << 23 };
    f.lift = t->bits - f.bits;
    f.largest = (uint32_t)tn_dtype_limit(t, false) >> f.lift;
    f.magic = f.normal + ((23 - m) << 23);
    uint32_t half = f.shift ? (uint32_t)1 << (f.shift - 1) : 0;
    f.limit = (f.largest << f.shift) + f.rebias + half;
    f.limit -= half ? f.largest & 1 : 0;        /* the tie rounds up, to even */
    if (t->specials != TN_SPECIALS_FN && t->specials != TN_SPECIALS_FNUZ)
        return f;               /* whose NaNs are like those of float32 */
    tn_encode_rules keep = tn_encode_rules_for(tn_dtype_get(TN_FLOAT32), NULL);
    unsigned ignored = 0;
    for (unsigned sign = 0; sign < 2; sign++) {
        uint32_t code = t->specials == TN_SPECIALS_FNUZ ? f.one << e : (f.largest + 1) | sign << (f.bits - 1);
        f.nan[sign] = (uint32_t)recode(tn_dtype_get(TN_FLOAT32), &keep, t->dtype, code, &ignored);
    }
    return f;
}

static format format_of(tn_dtype type)
{
    const tn_dtype_info *t = tn_dtype_get(type);
    if (type == TN_FLOAT32)     /* often, for few elements */
        return (format){ .info = t, .bits = 32, .one = 1 << 23, .largest = INFINITE - 1, .normal = 1 << 23,
                         .magic = 1 << 23, .limit = INFINITE - 1 };
    bool is_signed = t->kind == TN_KIND_INT || t->kind == TN_KIND_FIXED;
    if (t->kind == TN_KIND_FLOAT)
        return float_format(t);
    float steps = (float)((uint64_t)1 << (t->bits - is_signed)), high = steps - 0.5F;
    return (format){ .info = t, .bits = t->bits, .high = high, .last = nextafterf(high, 0),
                     .low = is_signed ? -steps - 0.5F : -0.5F };
}

/* `exact`: whatever the rules are, none applies. */
static replacements replacements_of(const format *to, const tn_encode_rules *given, bool exact)
{
    const tn_encode_rules none = tn_encode_rules_for(to->info, NULL), *rules = exact ? &none : given;
    static const uint64_t huge = (uint64_t)2000 << 52, infinite = (uint64_t)2047 << 52,
                          nan = (uint64_t)4095 << 51;
    replacements r = { .known = true,
                       .payload = rules->keep_payload && to->info->specials == TN_SPECIALS_IEEE };
    unsigned ignored = 0;
    for (unsigned sign = 0; sign < 2; sign++) {
        uint64_t negative = (uint64_t)sign << 63;
        r.overflow[sign] = (uint32_t)recode(to->info, rules, TN_FLOAT64, huge | negative, &ignored);
        r.infinity[sign] =
            (uint32_t)recode(to->info, rules, TN_FLOAT64, infinite | negative, &r.infinity_flags);
        r.nan[sign] = (uint32_t)recode(to->info, rules, TN_FLOAT64, nan | negative, &ignored);
    }
    return r;
}

/* ---- decoding: codes in lanes to float32 ---- */

INLINE vu decode_small(vu code, const format f)
{
    vu sign = left(code, 32 - f.bits) & 0x80000000;
    vu magnitude = code & ((f.one << (f.info->exponent_bits)) - 1);
    vu number = left(magnitude, f.shift) + f.rebias;
    /* A subnormal read as if it had a leading one is too large by exactly the smallest normal number. */
    vu tiny = (vu)((vf)(number + (1U << 23)) - (vf)all(f.normal));
    number = pick(above(all(f.one), magnitude), tiny, number) | sign;
    if (f.info->specials == TN_SPECIALS_IEEE)
        return number | pick(above(magnitude, all(f.largest)), all(INFINITE), all(0));
    if (f.info->specials == TN_SPECIALS_FN)
        return pick(above(magnitude, all(f.largest)), pick(above(all(0), sign), all(f.nan[1]), all(f.nan[0])),
                    number);
    /* NaN is what -0 would be: the least as a signed number */
    if (f.info->specials == TN_SPECIALS_FNUZ)
        return pick(above(all(0x80000001), number), all(f.nan[1]), number);
    return number;
}

INLINE vu decode(kind how, vu code, const format f)
{
    switch (how) {
    case KIND_F32:
    case KIND_F16:   return code;       /* float16 was converted when loaded */
    case KIND_SMALL: return decode_small(code, f);
    case KIND_BF16:  return code << 16;
    case KIND_TF32:  return code & ~(uint32_t)0x1fff;
    case KIND_E8M0: {
        vu number = pick(above(all(1), code), all(QUIET), code << 23);    /* code 0 is 2^-127, a subnormal */
        return pick(above(code, all(254)), all(f.nan[0]), number);
    }
    case KIND_INT: return (vu) __builtin_convertvector((vi)(code << (32 - f.bits)) >> (int)(32 - f.bits), vf);
    case KIND_UINT:  return (vu)__builtin_convertvector((vi)code, vf);
    case KIND_BOOL:  return pick(above(code, all(0)), all(0x3f800000), all(0));
    default:         return code;
    }
}

/* ---- encoding: float32 to codes in lanes; codes in *special lanes are wrong ---- */

INLINE vu encode_small(vu x, const format f, vm *special)
{
    vu magnitude = x & 0x7fffffff;
    vu sign = right(x, 32 - f.bits) & (1U << (f.bits - 1));
    /* Half a step minus one, plus one if the last kept bit is odd: the carry rounds to nearest even. */
    vu code =
        right(magnitude + ((1U << (f.shift - 1)) - 1 - f.rebias) + (right(magnitude, f.shift) & 1), f.shift);
    /* the addition rounds at the last subnormal bit */
    vu tiny = (vu)((vf)magnitude + (vf)all(f.magic)) - f.magic;
    code = pick(above(all(f.normal), magnitude), tiny, code);
    if (f.info->specials == TN_SPECIALS_FNUZ)
        sign = pick(above(code, all(0)), sign, all(0));
    *special = above(magnitude, all(f.limit));
    return code | sign;
}

/* Positive numbers only.  Ties go up, since a significand of one bit is odd.
 * Numbers below 1.5 * 2^-127 become code 0. */
INLINE vu encode_e8m0(vu x, vm *special)
{
    *special = either(above(all(1), x), above(x, all(0x7f3fffff)));
    return pick(above(all(0x00600000), x), all(0), (x + (1U << 22)) >> 23);
}

/* For integers that saturate: only NaN is special, and overflow is noted. */
INLINE vu encode_clamped(vu x, const format f, vm *special, vm *overflow)
{
    vf inside = clamp((vf)x, f.low, f.last);
    *special = differ((vf)x, (vf)x);
    *overflow = either(*overflow, differ(inside, (vf)x));
    return (vu)nearest(inside) & ((1U << f.bits) - 1);
}

INLINE vu encode(kind how, vu x, const format f, vm *special)
{
    switch (how) {
    case KIND_F32:
    case KIND_F16:
        *special = above(x & 0x7fffffff, all(f.limit));
        return x;
    case KIND_SMALL:
        return encode_small(x, f, special);
    case KIND_BF16:
        *special = above(x & 0x7fffffff, all(f.limit));
        return (x + 0x7fff + (x >> 16 & 1)) >> 16;
    case KIND_TF32:
        *special = above(x & 0x7fffffff, all(f.limit));
        return (x + 0xfff + (x >> 13 & 1)) & ~(uint32_t)0x1fff;
    case KIND_E8M0:
        return encode_e8m0(x, special);
    case KIND_INT:
        *special = outside((vf)x, f.low, f.high);
        return (vu)nearest((vf)x) & (uint32_t)(((uint64_t)1 << f.bits) - 1);
    case KIND_BOOL:
        *special = above(x & 0x7fffffff, all(INFINITE));
        return pick(above(x & 0x7fffffff, all(0)), all(1), all(0));
    default:
        *special = (vm){ 0 };
        return x;
    }
}

/* ---- elements narrower than a byte: codes as bytes, 4 in a lane, and packed ---- */

INLINE vu squeeze(vu w, unsigned bits)
{
    switch (bits) {
    case 2:
        w |= w >> 6;                                    /* pairs in bits 0..3 and 16..19 */
        return (w | w >> 12) & 0xff;
    case 4:
        w |= w >> 4;                                    /* pairs in bits 0..7 and 16..23 */
        return (w & 0xff) | (w >> 8 & 0xff00);
    default:
        return (w & 0x3f) | (w >> 2 & 0xfc0) | (w >> 4 & 0x3f000) | (w >> 6 & 0xfc0000);
    }
}

INLINE vu spread(vu w, unsigned bits)
{
    switch (bits) {
    case 2:
        w = (w | w << 12) & 0x000f000f;
        return (w | w << 6) & 0x03030303;
    case 4:
        w = (w | w << 8) & 0x00ff00ff;
        return (w | w << 4) & 0x0f0f0f0f;
    default:
        return (w & 0x3f) | (w << 2 & 0x3f00) | (w << 4 & 0x3f0000) | (w << 6 & 0x3f000000);
    }
}

INLINE void pack(uint8_t *to, const uint8_t *codes, unsigned bits, bool stream)
{
    uint8_t triples[BLOCK / 4 * 3 + sizeof(vu)] __attribute__((aligned(64)));
    for (unsigned i = 0; i < BLOCK / 4; i += GROUP) {
        vu v[4];
        for (unsigned j = 0; j < 4; j++) {
            v[j] = squeeze(load(codes + (i + j * LANES) * 4), bits);
            if (bits == 6)
                narrow24(triples + (i + j * LANES) * 3, v[j]);
        }
        if (bits == 2)
            put(to + i, narrow8(v), stream);
        if (bits == 4) {
            put(to + 2 * i, narrow16(v[0], v[1]), stream);
            put(to + 2 * i + sizeof(vu), narrow16(v[2], v[3]), stream);
        }
    }
    for (unsigned i = 0; bits == 6 && i < BLOCK / 4 * 3; i += sizeof(vu))
        put(to + i, load(triples + i), stream);
}

INLINE void unpack(uint8_t *codes, const uint8_t *from, unsigned bits)
{
    for (unsigned i = 0; i < BLOCK / 4; i += GROUP) {
        vu v[4];
        if (bits == 2)
            widen8(v, from + i);
        if (bits == 4)
            widen16(v, from + 2 * i);
        for (unsigned j = 0; j < 4; j++) {
            if (bits == 6)
                v[j] = widen24(from + (i + j * LANES) * 3);
            put(codes + (i + j * LANES) * 4, spread(v[j], bits), false);
        }
    }
}

/* ---- blocks ---- */

typedef struct family {         /* casts that share their code: known when compiling */
    kind     from, to;
    unsigned from_bits, to_bits;
} family;

typedef struct cast {
    format from, to;
    bool   exact;               /* no rules and no flags */
    bool   clamps;              /* integers that are exact in float32 and saturate */
    bool   has_scale;
    float  scale;
    tn_encode_rules rules;
    replacements special;
    unsigned flags;
} cast;

INLINE void load_group(vu v[4], const uint8_t *from, const family y)
{
    if (y.from == KIND_F16)
        widen_f16(v, from);
    else if (y.from_bits == 16)
        widen16(v, from);
    else if (y.from_bits < 16)
        widen8(v, from);
    else
        for (unsigned j = 0; j < 4; j++)
            v[j] = load(from + j * sizeof(vu));
}

INLINE void put_group(uint8_t *to, const vu v[4], const family y, bool stream)
{
    if (y.to_bits == 32) {
        for (unsigned j = 0; j < 4; j++)
            put(to + j * sizeof(vu), v[j], stream);
    } else if (y.to_bits == 16) {
        bool half = y.to == KIND_F16;
        put(to, half ? narrow_f16(v[0], v[1]) : narrow16(v[0], v[1]), stream);
        put(to + sizeof(vu), half ? narrow_f16(v[2], v[3]) : narrow16(v[2], v[3]), stream);
    } else {
        put(to, narrow8(v), stream);
    }
}

/* ---- float64 ---- */

typedef double   vd  __attribute__((vector_size(sizeof(vu))));
typedef int64_t  vl  __attribute__((vector_size(sizeof(vu))));
typedef float    hvf __attribute__((vector_size(sizeof(vu) / 2)));
typedef int32_t  hvi __attribute__((vector_size(sizeof(vu) / 2)));

/* Takes one step back where converting went away from zero; sets the last bit where it was inexact. */
INLINE hvi to_odd(vd x, hvf nearest_value)
{
    vd back = __builtin_convertvector(nearest_value, vd);
    vl lost = (vl)((back < x) | (back > x));            /* not for NaN */
    vl away = lost & (vl)(((vl)back & INT64_MAX) > ((vl)x & INT64_MAX));
    return ((hvi)nearest_value + __builtin_convertvector(away, hvi)) |
           (__builtin_convertvector(lost, hvi) & 1);
}

INLINE bool narrow_f64(uint8_t *to, const uint8_t *from, bool odd, cast *c, bool stream, bool care)
{
    uint32_t codes[BLOCK] __attribute__((aligned(64)));
    hvi seen = { 0 };
    for (unsigned i = 0; i < BLOCK; i += LANES / 2) {
        vd x = (vd)load(from + 8 * i);
        hvf y = __builtin_convertvector(x, hvf);
        hvi code = odd ? to_odd(x, y) : (hvi)y;
        seen |= (hvi)((code & 0x7fffffff) >= INFINITE);
        memcpy(codes + i, &code, sizeof code);
    }
    for (unsigned i = 0; care && i < BLOCK; i++)
        if ((codes[i] & 0x7fffffff) >= INFINITE)
            codes[i] =
                (uint32_t)recode(c->to.info, &c->rules, TN_FLOAT64, tn_code_get(from, i, 64), &c->flags);
    for (unsigned i = 0; i < BLOCK; i += LANES)
        put(to + 4 * i, load(codes + i), stream);
    int32_t any_seen = 0;
    for (unsigned i = 0; i < LANES / 2; i++)
        any_seen |= seen[i];
    return !odd && any_seen;
}

INLINE bool widen_f64(uint8_t *to, const uint8_t *from, bool stream)
{
    for (unsigned i = 0; i < BLOCK; i += LANES / 2) {
        hvf x;
        memcpy(&x, from + 4 * i, sizeof x);
        put(to + 8 * i, (vu)__builtin_convertvector(x, vd), stream);
    }
    return false;
}

/* ---- one block ---- */

INLINE vu by_sign(vm negative, const uint32_t code[2])
{
    return pick(negative, all(code[1]), all(code[0]));
}

/* Replaces the codes of special lanes by those that the rules give for overflow,
 * infinities and NaN, and for zero in a type without zero, as for a negative
 * number.  Not inlined, because it would be most of the code. */
static __attribute__((noinline)) vu replace(vu codes, vm special, vu x, cast *c)
{
    const format *f = &c->to;
    const replacements *r = &c->special;
    vu magnitude = x & 0x7fffffff;
    vm negative = above(all(1), x), nan = above(magnitude, all(INFINITE)),
       finite = above(all(INFINITE), magnitude);
    vm infinite = both(above(magnitude, all(INFINITE - 1)), above(all(INFINITE + 1), magnitude));
    vu nans = by_sign(negative, r->nan);
    if (r->payload)
        nans = ((x >> 31 << (f->bits - 1)) | (f->largest + 1) | f->one >> 1 |
                (magnitude >> f->shift & (f->one - 1))) << f->lift;
    c->flags |= any(both(special, finite)) ? TN_ENCODED_OVERFLOW : 0;
    c->flags |= any(both(special, infinite)) ? r->infinity_flags : 0;
    c->flags |= any(nan) ? TN_ENCODED_NAN : 0;
    vu others = pick(nan, nans, by_sign(negative, r->infinity));
    return pick(special, pick(finite, by_sign(negative, r->overflow), others), codes);
}

/* Casts n elements of a block, whole groups, and returns whether they have special values.  Without care
 * their codes are wrong.  If elements are narrower than a byte n is BLOCK. */
INLINE bool cast_block(uint8_t *to, const uint8_t *from, unsigned n, const family y, cast *c, bool stream,
                       bool care)
{
    uint8_t codes[BLOCK] __attribute__((aligned(64)));
    const format f = c->from, t = c->to;        /* copies, which no store can change */
    const bool unpacks = y.from_bits < 8, packs = y.to_bits < 8;
    const unsigned step = unpacks ? 8 : y.from_bits;
    const unsigned to_step = packs ? 8 : y.to_bits;
    vm seen = { 0 }, overflow = { 0 };
    if (unpacks)
        unpack(codes, from, y.from_bits);
    for (unsigned i = 0; i < n; i += GROUP) {
        vu v[4];
        load_group(v, (unpacks ? codes : from) + i * step / 8, y);
        for (unsigned j = 0; j < 4; j++) {
            vm special;
            vu x = decode(y.from, v[j], f);
            if (c->has_scale)
                x = (vu)((vf)x * c->scale);
            if (y.to == KIND_INT && c->clamps && !care)
                v[j] = encode_clamped(x, t, &special, &overflow);
            else
                v[j] = encode(y.to, x, t, &special);
            seen = either(seen, special);
            if (care && any(special))
                v[j] = replace(v[j], special, x, c);
        }
        put_group((packs ? codes : to) + i * to_step / 8, v, y, stream && !packs);
    }
    if (packs)
        pack(to, codes, y.to_bits, stream);
    if (!any(seen) && any(overflow))            /* else the block is repeated with care */
        c->flags |= TN_ENCODED_OVERFLOW;
    return any(seen);
}

/* ---- whole arrays ---- */

/* The number of elements before the first whole cache line of `dst`; BLOCK if no
 * element begins on one. */
static size_t elements_before_line(const uint8_t *dst, unsigned from_bits, unsigned to_bits)
{
    size_t i = 0;
    while (i < BLOCK && (i * from_bits % 8 || i * to_bits % 8 || ((uintptr_t)dst + i * to_bits / 8) % 64))
        i++;
    return i;
}

/* The elements that are cast for n of a last block: whole groups if they are whole bytes. */
INLINE unsigned padded(size_t n, const family y)
{
    bool whole = y.from_bits < 8 || y.to_bits < 8 || y.from_bits == 64 || y.to_bits == 64;
    return whole ? BLOCK : (unsigned)((n + GROUP - 1) / GROUP * GROUP);
}

/* Pads n elements to `size`.  Float32 is padded with the first element, which
 * raises no new flags. */
static void fill_block(uint8_t *block, const uint8_t *src, size_t n, size_t size, unsigned bits)
{
    size_t bytes = (n * bits + 7) / 8;
    memset(block + bytes, 0, size * bits / 8 - bytes);
    memcpy(block, src, bytes);
    for (; bits == 32 && n < size; n++)
        memcpy(block + 4 * n, src, 4);
}

static void take_from_block(uint8_t *dst, uint8_t *block, size_t n, unsigned bits)
{
    if (n * bits % 8)
        block[n * bits / 8] &= (uint8_t)((1U << n * bits % 8) - 1);
    memcpy(dst, block, (n * bits + 7) / 8);
}

INLINE bool any_block(uint8_t *to, const uint8_t *from, unsigned n, const family y, cast *c, bool stream,
                      bool care)
{
    if (y.from == KIND_F64)
        return narrow_f64(to, from, y.to == KIND_ODD, c, stream, care);
    if (y.to == KIND_F64)
        return widen_f64(to, from, stream);
    family careful = y;
    if (care && y.to == KIND_F16)
        careful.to = KIND_SMALL;        /* the conversion instruction ignores the rules */
    return cast_block(to, from, n, careful, c, stream, care);
}

/* Hardware prefetching stops at page boundaries; this does not. */
INLINE void prefetch_block(const uint8_t *from, unsigned bits)
{
    for (unsigned i = 0; i < BLOCK * bits / 8; i += 64)
        __builtin_prefetch(from + i);
}

/* Kinds that are decoded without looking at the format. */
INLINE bool is_plain_source(kind from)
{
    return from == KIND_F32 || from == KIND_F16 || from == KIND_BF16 || from == KIND_TF32 || from == KIND_F64;
}

INLINE cast cast_of(const family y, const tn_cast_args *args, tn_dtype from, tn_dtype to)
{
    bool exact = y.to == KIND_F64 || (y.to == KIND_F32 && y.from != KIND_F32 && y.from != KIND_F64);
    cast c = { .to = format_of(to), .rules = args->rules, .scale = args->scale, .exact = exact,
               .has_scale = args->has_scale && y.from == KIND_F32 && !exact };
    if (!is_plain_source(y.from))
        c.from = format_of(from);
    if (y.to != KIND_INT || y.to_bits >= 24)
        return c;
    uint64_t least = tn_dtype_limit(c.to.info, true), greatest = tn_dtype_limit(c.to.info, false);
    c.clamps = c.rules.negative_overflow == least && c.rules.negative_infinity == least &&
               c.rules.positive_overflow == greatest && c.rules.positive_infinity == greatest;
    return c;
}

INLINE unsigned convert(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                        const tn_cast_args *args, const family y, cast *c)
{
    uint8_t in[BLOCK * 8], out[BLOCK * 8];
    size_t head = args->stream ? elements_before_line(dst, y.from_bits, y.to_bits) : BLOCK;
    bool stream = head < BLOCK, care = false;
    for (size_t i = 0, count; i < n; i += count) {
        count = i == 0 && stream && head ? head : BLOCK;
        count = n - i < count ? n - i : count;
        bool whole = count == BLOCK;
        const unsigned size = whole ? BLOCK : padded(count, y);
        const uint8_t *from = whole ? src + i * y.from_bits / 8 : in;
        uint8_t *to = whole ? dst + i * y.to_bits / 8 : out;
        if (!whole)
            fill_block(in, src + i * y.from_bits / 8, count, size, y.from_bits);
        if (whole && n - i >= AHEAD * 8 / y.from_bits + BLOCK)
            prefetch_block(from + AHEAD, y.from_bits);
        if (!care)                      /* after a block that needs care the next one is likely to */
            care = any_block(to, from, size, y, c, stream && whole, false);
        if (care && !c->special.known)
            c->special = replacements_of(&c->to, &c->rules, c->exact);
        if (care)
            care = any_block(to, from, size, y, c, stream && whole, true);
        if (!whole)
            take_from_block(dst + i * y.to_bits / 8, out, count, y.to_bits);
    }
    if (stream)
        tn_stream_fence();
    return c->exact ? 0 : c->flags;
}

/* One function per family of types. */
#define FAMILY(name, from_kind, from_bits, to_kind, to_bits)                                                 \
    static __attribute__((noinline)) unsigned name(void *restrict dst, const void *restrict src, size_t n,   \
                                                   const tn_cast_args *args, tn_dtype from, tn_dtype to)   \
    {                                                                                                        \
        const family y = { from_kind, to_kind, from_bits, to_bits };                                         \
        cast c = cast_of(y, args, from, to);                                                                 \
        return convert(dst, src, n, args, y, &c);                                                            \
    }
FAMILY(f32_to_float16, KIND_F32, 32, KIND_F16, 16)
FAMILY(f32_to_bfloat16, KIND_F32, 32, KIND_BF16, 16)
FAMILY(f32_to_tf32, KIND_F32, 32, KIND_TF32, 32)
FAMILY(f32_to_float8, KIND_F32, 32, KIND_SMALL, 8)
FAMILY(f32_to_float6, KIND_F32, 32, KIND_SMALL, 6)
FAMILY(f32_to_float4, KIND_F32, 32, KIND_SMALL, 4)
FAMILY(f32_to_e8m0, KIND_F32, 32, KIND_E8M0, 8)
FAMILY(f32_to_int16, KIND_F32, 32, KIND_INT, 16)            /* signed or not */
FAMILY(f32_to_int8, KIND_F32, 32, KIND_INT, 8)
FAMILY(f32_to_int4, KIND_F32, 32, KIND_INT, 4)
FAMILY(f32_to_int2, KIND_F32, 32, KIND_INT, 2)
FAMILY(f32_to_bool, KIND_F32, 32, KIND_BOOL, 8)
FAMILY(float16_to_f32, KIND_F16, 16, KIND_F32, 32)
FAMILY(bfloat16_to_f32, KIND_BF16, 16, KIND_F32, 32)
FAMILY(tf32_to_f32, KIND_TF32, 32, KIND_F32, 32)
FAMILY(float8_to_f32, KIND_SMALL, 8, KIND_F32, 32)
FAMILY(float6_to_f32, KIND_SMALL, 6, KIND_FINITE, 32)
FAMILY(float4_to_f32, KIND_SMALL, 4, KIND_FINITE, 32)
FAMILY(e8m0_to_f32, KIND_E8M0, 8, KIND_F32, 32)
FAMILY(int16_to_f32, KIND_INT, 16, KIND_FINITE, 32)
FAMILY(int8_to_f32, KIND_INT, 8, KIND_FINITE, 32)
FAMILY(int4_to_f32, KIND_INT, 4, KIND_FINITE, 32)
FAMILY(int2_to_f32, KIND_INT, 2, KIND_FINITE, 32)
FAMILY(uint16_to_f32, KIND_UINT, 16, KIND_FINITE, 32)
FAMILY(uint8_to_f32, KIND_UINT, 8, KIND_FINITE, 32)
FAMILY(uint4_to_f32, KIND_UINT, 4, KIND_FINITE, 32)
FAMILY(uint2_to_f32, KIND_UINT, 2, KIND_FINITE, 32)
FAMILY(bool_to_f32, KIND_BOOL, 8, KIND_FINITE, 32)
FAMILY(f32_to_int32, KIND_F32, 32, KIND_INT, 32)
FAMILY(f32_to_f32, KIND_F32, 32, KIND_F32, 32)
FAMILY(f16_to_bf16, KIND_F16, 16, KIND_BF16, 16)
FAMILY(bf16_to_f16, KIND_BF16, 16, KIND_F16, 16)
FAMILY(f64_to_f32, KIND_F64, 64, KIND_F32, 32)
FAMILY(f64_to_f32_odd, KIND_F64, 64, KIND_ODD, 32)
FAMILY(f32_to_f64, KIND_F32, 32, KIND_F64, 64)

#define KERNEL(name, family, from, to)                                                                       \
    static unsigned name(void *restrict dst, const void *restrict src, size_t n, const tn_cast_args *args) \
    {                                                                                                        \
        return family(dst, src, n, args, from, to);                                                          \
    }
#define EACH_TYPE(X)                                                                                         \
    X(TN_FLOAT16, f32_to_float16, float16_to_f32)      X(TN_BFLOAT16, f32_to_bfloat16, bfloat16_to_f32)      \
    X(TN_TF32, f32_to_tf32, tf32_to_f32)               X(TN_FLOAT8_E8M0, f32_to_e8m0, e8m0_to_f32)           \
    X(TN_FLOAT8_E4M3FN, f32_to_float8, float8_to_f32)  X(TN_FLOAT8_E4M3FNUZ, f32_to_float8, float8_to_f32)   \
    X(TN_FLOAT8_E5M2, f32_to_float8, float8_to_f32)    X(TN_FLOAT8_E5M2FNUZ, f32_to_float8, float8_to_f32)   \
    X(TN_FLOAT8_E4M3, f32_to_float8, float8_to_f32)    X(TN_FLOAT8_E3M4, f32_to_float8, float8_to_f32)       \
    X(TN_FLOAT6_E2M3, f32_to_float6, float6_to_f32)    X(TN_FLOAT6_E3M2, f32_to_float6, float6_to_f32)       \
    X(TN_FLOAT4_E2M1, f32_to_float4, float4_to_f32)    X(TN_BOOL, f32_to_bool, bool_to_f32)                  \
    X(TN_INT16, f32_to_int16, int16_to_f32)            X(TN_UINT16, f32_to_int16, uint16_to_f32)             \
    X(TN_INT8, f32_to_int8, int8_to_f32)               X(TN_UINT8, f32_to_int8, uint8_to_f32)                \
    X(TN_INT4, f32_to_int4, int4_to_f32)               X(TN_UINT4, f32_to_int4, uint4_to_f32)                \
    X(TN_INT2, f32_to_int2, int2_to_f32)               X(TN_UINT2, f32_to_int2, uint2_to_f32)                \
    X(TN_FX16, f32_to_int16, int16_to_f32)             X(TN_FX8, f32_to_int8, int8_to_f32)
#define BOTH_KERNELS(type, encodes, decodes)                  \
    KERNEL(f32_to_##type, encodes, TN_FLOAT32, type)          \
    KERNEL(type##_to_f32, decodes, type, TN_FLOAT32)

#define EACH_DIRECT(X)                                                                                       \
    X(f16_to_bf16, TN_FLOAT16, TN_BFLOAT16)     X(bf16_to_f16, TN_BFLOAT16, TN_FLOAT16)                      \
    X(f64_to_f32, TN_FLOAT64, TN_FLOAT32)       X(f64_to_f32_odd, TN_FLOAT64, TN_FLOAT32)                    \
    X(f32_to_f64, TN_FLOAT32, TN_FLOAT64)
#define DIRECT_KERNEL(family, from, to) KERNEL(direct_##family, family, from, to)

EACH_TYPE(BOTH_KERNELS)
EACH_DIRECT(DIRECT_KERNEL)
KERNEL(f32_to_TN_FLOAT32, f32_to_f32, TN_FLOAT32, TN_FLOAT32)
KERNEL(f32_to_TN_INT32, f32_to_int32, TN_FLOAT32, TN_INT32)

static void swap(void *dst, const void *src, size_t n, unsigned unit)
{
    uint8_t *d = dst;
    const uint8_t *s = src;
    size_t i = 0;
    for (; n - i >= sizeof(vu) && unit > 1; i += sizeof(vu)) {
        vu v = load(s + i);
        v = (v >> 8 & 0x00ff00ff) | (v << 8 & 0xff00ff00);
        if (unit >= 4)
            v = v >> 16 | v << 16;
        if (unit == 8)
            v = (vu)((vl)v << 32 | ((vl)v >> 32 & 0xffffffff));
        put(d + i, v, false);
    }
    tn_swap_bytes(d + i, s + i, n - i, unit);
}

#define SET_DIRECT(family, from, to) k->family = direct_##family;
#define SET_BOTH(type, encodes, decodes)    \
    k->from_f32[type] = f32_to_##type;      \
    k->to_f32[type] = type##_to_f32;

void LEVEL(tn_cast_kernels_init)(tn_cast_kernels *k)
{
    EACH_TYPE(SET_BOTH)
    k->from_f32[TN_FLOAT32] = f32_to_TN_FLOAT32;
    k->from_f32[TN_INT32] = f32_to_TN_INT32;
    EACH_DIRECT(SET_DIRECT)
    k->swap = swap;
    set_counters(k);
}
