/* kernels/scaled_decode/template.h - decodes codes with scales in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h) and defines
 *
 *   words(p, width)    LANES codes of 2^width bytes, widened
 *   floats(p)          loads
 *   put(p, v, stream)  stores; `stream`: past the caches, p is aligned to 16
 *   every_f(x), every_u(n)     the same in every lane
 *   below(a, b), equal(a, b)   lanes where a < b, as signed integers, or a == b
 *   pick(m, a, b)      a in the lanes of m, else b
 *   number(v)          int32_t to float
 *   power(v)           1 << v
 *   spread(v, index), spread_two(v, w, index)      lanes of v, or of v and w, by number
 *   eight(p)           8 floats, repeated
 *   eights(p, k)       group k[0] of 8 floats, then group k[1] and so on
 *   gather(p, index)   floats of a table
 *   halves_x86.h, widen_halves(v, h)       HALVES float16 as floats
 *   expand_word(y, slots, mask, step, stream)  expands 64 elements with a full mask; `step` slots per 16
 *   UNPACK             see tn_decode_kernels; k->unpack keeps what a lower level has */
#include "kernels/scaled_decode/table.h"

enum {
    INFINITE = 0x7f800000,
    QUIET    = 0x7fc00000,
    FILLER   = 0x40             /* a code near 1: multiplying subnormal numbers can be very slow */
};

/* More kinds: floats of few bits, whose magnitudes fit one or two vectors, and
 * several mappings of 8 values. */
enum { LOOKED_UP = TN_DECODE_KINDS, LOOKED_UP_IN_TWO, LOOKED_UP_IN_EIGHTS };

/* The level of all lanes, or one level per lane. */
typedef struct level {
    vf scale, shift;
    vu zero, mapping;           /* a mapping, or where it begins in the table */
    vf table[2];                /* magnitudes: of floats, or of the mappings of these lanes */
} level;

/* What a loop decodes: known when compiling. */
typedef struct family {
    int      kind;
    unsigned width;
} family;

/* ---- numbers ---- */

INLINE vu magnitudes(vu code, const tn_decode_number *c)
{
    return code & (c->sign - 1);
}

/* x with the sign of the code. */
INLINE vf signed_as(vu x, vu code, const tn_decode_number *c)
{
    return (vf)(x ^ (left(code, c->up) & 0x80000000));
}

INLINE vf float_values(vu code, const tn_decode_number *c, int kind)
{
    vu magnitude = magnitudes(code, c), bits = left(magnitude, c->shift) + c->rebias;
    vf tiny = (vf)(bits + (1u << 23)) - every_f(c->normal);
    bits = pick(below(magnitude, every_u(c->one)), (vu)tiny, bits);
    if (kind == TN_DECODE_TOPPED)
        bits = pick(below(magnitude, every_u(c->top)), bits, bits | INFINITE);
    if (kind == TN_DECODE_FLOAT) {
        bits = pick(equal(magnitude, every_u(c->infinite)), every_u(INFINITE), bits);
        bits = pick(equal(code, every_u(c->nan)), every_u(QUIET), bits);
    }
    return signed_as(bits, code, c);
}

INLINE vf exponent_values(vu code, const tn_decode_number *c)
{
    vu exponent = code - (uint32_t)(c->bias - 127);
    vu bits = pick(below(every_u(0), exponent), left(exponent, 23), power(exponent + 22));
    return (vf)pick(equal(code, every_u(c->ones)), every_u(QUIET), bits);
}

INLINE vf looked_up(vu code, const level *l, const tn_decode_number *c, bool in_two)
{
    vu magnitude = magnitudes(code, c);
    vf v = in_two ? spread_two(l->table[0], l->table[1], magnitude) : spread(l->table[0], magnitude);
    return signed_as((vu)v, code, c);
}

/* `one`: all lanes have the same mapping. */
INLINE vf codebook_values(vu code, const level *l, const tn_decode_number *c, bool one)
{
    if (one && c->values == 8)
        return looked_up(code, l, c, false);
    return signed_as((vu)gather(c->value, l->mapping * c->values + magnitudes(code, c)), code, c);
}

INLINE vf values_of(vu code, const level *l, const tn_decode_number *c, int kind, bool one)
{
    vf v;
    code &= c->ones;
    switch (kind) {
    case TN_DECODE_INT:      v = number((code ^ c->sign) - c->sign) * c->unit * l->scale; break;
    case TN_DECODE_UINT:     v = l->scale * number(code - l->zero); break;
    case TN_DECODE_SHIFTED:  v = l->scale * number(code) - l->shift; break;
    case TN_DECODE_EXPONENT: v = exponent_values(code, c) * l->scale; break;
    case TN_DECODE_HALVED:   v = (vf)left(127 - code, 23) * l->scale; break;
    case TN_DECODE_CODEBOOK: v = codebook_values(code, l, c, one) * l->scale; break;
    case LOOKED_UP_IN_EIGHTS:
        v = signed_as((vu)spread_two(l->table[0], l->table[1], magnitudes(code, c) + l->mapping), code, c) *
            l->scale;
        break;
    case LOOKED_UP:          v = looked_up(code, l, c, false) * l->scale; break;
    case LOOKED_UP_IN_TWO:   v = looked_up(code, l, c, true) * l->scale; break;
    default:                 v = float_values(code, c, kind) * l->scale;
    }
    return (vf)pick(nans(v), every_u(QUIET), (vu)v);
}

/* ---- levels ---- */

/* The members that all levels share. */
INLINE level no_level(const tn_decode_number *c, int kind)
{
    level none = { .scale = every_f(0) };
    uint32_t index[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        index[i] = i;
    if (kind == LOOKED_UP || kind == LOOKED_UP_IN_TWO)
        none.table[0] = float_values((vu)floats(index), c, TN_DECODE_FINITE);
    if (kind == LOOKED_UP_IN_TWO)
        none.table[1] = float_values((vu)floats(index) + LANES, c, TN_DECODE_FINITE);
    return none;
}

INLINE level one_level(const level *none, const tn_decode_levels *l, size_t at, const tn_decode_number *c,
                       int kind)
{
    level one = *none;
    one.scale = every_f(l->scale[at]);
    if (kind == TN_DECODE_UINT)
        one.zero = every_u((uint32_t)l->zero[at]);
    if (kind == TN_DECODE_SHIFTED)
        one.shift = every_f(l->shift[at]);
    if (kind == TN_DECODE_CODEBOOK)
        one.mapping = every_u(l->mapping[at]);
    if (kind == TN_DECODE_CODEBOOK && c->values == 8)
        one.table[0] = eight(c->value + (size_t)l->mapping[at] * 8);
    return one;
}

INLINE level many_levels(const level *none, const tn_decode_levels *l, size_t at, vu index,
                         const tn_decode_number *c, int kind)
{
    level many = *none;
    many.scale = spread(floats(l->scale + at), index);
    if (kind == TN_DECODE_UINT)
        many.zero = (vu)spread(floats(l->zero + at), index);
    if (kind == TN_DECODE_SHIFTED)
        many.shift = spread(floats(l->shift + at), index);
    if (kind == TN_DECODE_CODEBOOK)
        many.mapping = (vu)spread((vf)words(l->mapping + at, 0), index);
    if (kind == LOOKED_UP_IN_EIGHTS) {
        many.mapping = index * 8;
        many.table[0] = eights(c->value, l->mapping + at);
        many.table[1] = eights(c->value, l->mapping + at + LANES / 8);
    }
    return many;
}

/* The level of each lane, counted from that of the first. */
INLINE vu lanes_of(size_t each)
{
    uint32_t index[LANES];
    for (size_t i = 0; i < LANES; i++)
        index[i] = (uint32_t)(i / each);
    return (vu)floats(index);
}

/* ---- whole vectors ---- */

/* One level for several vectors. */
INLINE void decode_coarse(float *restrict y, const uint8_t *restrict codes, size_t n,
                          const tn_decode_number *c, const tn_decode_levels *l, family f)
{
    const level none = no_level(c, f.kind);
    for (size_t i = 0, at = 0; i < n; at++) {
        size_t end = l->each < n - i ? i + l->each : n;
        const level one = one_level(&none, l, at, c, f.kind);
        for (; i < end; i += LANES) {
            fetch_ahead(codes + (i << f.width));
            put(y + i, values_of(words(codes + (i << f.width), f.width), &one, c, f.kind, true), l->stream);
        }
    }
}

/* Several levels in a vector. */
INLINE void decode_fine(float *restrict y, const uint8_t *restrict codes, size_t n, const tn_decode_number *c,
                        const tn_decode_levels *l, family f)
{
    const level none = no_level(c, f.kind);
    const vu index = lanes_of(l->each);
    size_t step = LANES / l->each;
    for (size_t i = 0, at = 0; i < n; i += LANES, at += step) {
        const level many = many_levels(&none, l, at, index, c, f.kind);
        fetch_ahead(codes + (i << f.width));
        put(y + i, values_of(words(codes + (i << f.width), f.width), &many, c, f.kind, false), l->stream);
    }
}

INLINE void decode_whole(float *restrict y, const uint8_t *restrict codes, size_t n,
                         const tn_decode_number *c, const tn_decode_levels *l, family f)
{
    if (l->each >= LANES)
        decode_coarse(y, codes, n, c, l, f);
    else if (f.kind == TN_DECODE_CODEBOOK && c->values == 8 && l->each >= 4)
        decode_fine(y, codes, n, c, l, (family){ LOOKED_UP_IN_EIGHTS, f.width });
    else
        decode_fine(y, codes, n, c, l, f);
}

/* ---- any number ---- */

static tn_decode_levels levels_from(const tn_decode_levels *l, size_t at)
{
    tn_decode_levels rest = *l;
    rest.scale += at;
    if (rest.zero)
        rest.zero += at;
    if (rest.shift)
        rest.shift += at;
    if (rest.mapping)
        rest.mapping += at;
    return rest;
}

INLINE void decode(float *restrict y, const uint8_t *restrict codes, size_t n, const tn_decode_number *number,
                   const tn_decode_levels *levels, family f)
{
    const tn_decode_number c = *number;         /* copies, which no store can change */
    const tn_decode_levels l = *levels;
    size_t whole = n / LANES * LANES, rest = n - whole;
    decode_whole(y, codes, whole, &c, &l, f);
    if (rest) {
        uint8_t in[LANES * 4];
        float out[LANES];
        tn_decode_levels last = levels_from(&l, whole / l.each);
        if (rest <= last.each)                  /* one level, which may have any number of codes */
            last.each = LANES;
        last.stream = false;
        memset(in, FILLER, sizeof in);
        memcpy(in, codes + (whole << f.width), rest << f.width);
        decode_whole(out, in, LANES, &c, &last, f);
        memcpy(y + whole, out, rest * sizeof *out);
    }
}

/* ---- N:M sparsity ---- */

static void expand(float *restrict y, const float *restrict slots, const uint8_t *restrict mask, size_t n,
                   const tn_decode_groups *groups)
{
    const unsigned keep = groups->keep, of = groups->of;
    const bool stream = groups->stream;
    const size_t step = 16 / of * keep;
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        uint64_t word;
        memcpy(&word, mask + i / 8, sizeof word);
        const float *from = slots + i / of * keep;
        if (tn_mask_is_full(word, keep, of))
            expand_word(y + i, from, word, step, stream);
        else
            tn_expand_scalar(y + i, from, mask + i / 8, 64, groups);
    }
    tn_expand_scalar(y + i, slots + i / of * keep, mask + i / 8, n - i, groups);
}

/* ---- the table ---- */

#define DECODE(name, kind, width)                                                               \
    static void name(float *restrict y, const uint8_t *restrict codes, size_t n,                \
                     const tn_decode_number *number, const tn_decode_levels *levels)            \
    {                                                                                           \
        decode(y, codes, n, number, levels, (family){ kind, width });                           \
    }

DECODE(looked_up_8, LOOKED_UP, 0)
DECODE(looked_up_in_two_8, LOOKED_UP_IN_TWO, 0)
DECODE(computed_8, TN_DECODE_FINITE, 0)
#include "kernels/scaled_decode/list.h"

/* Decodes whole groups of HALVES codes that have one level; returns how many codes. */
INLINE size_t decode_halves(float *restrict y, const uint8_t *restrict codes, size_t n,
                            const tn_decode_number *c, const tn_decode_levels *l)
{
    const half_rules h = half_rules_of(c);
    const vf base = every_f(h.base);
    size_t i = 0, whole = n / HALVES * HALVES;
    for (size_t at = 0; i < whole; at++) {
        size_t end = l->each < whole - i ? i + l->each : whole;
        const vf scale = every_f(l->scale[at]);
        for (; i < end; i += HALVES) {
            vf v[HALVES / LANES];
            fetch_ahead(codes + i);
            widen_halves(v, halves_of(codes + i, &h));
            for (unsigned k = 0; k < HALVES / LANES; k++) {
                v[k] = v[k] * base * scale;
                put(y + i + k * LANES, (vf)pick(nans(v[k]), every_u(QUIET), (vu)v[k]), l->stream);
            }
        }
    }
    return i;
}

/* The rest, and numbers that float16 has not. */
INLINE void decode_by_halves(float *restrict y, const uint8_t *restrict codes, size_t n,
                             const tn_decode_number *number, const tn_decode_levels *levels,
                             tn_decode_fn others)
{
    const tn_decode_number c = *number;
    const tn_decode_levels l = *levels;
    if (l.each < HALVES || !has_halves(&c)) {
        others(y, codes, n, number, levels);
        return;
    }
    size_t done = decode_halves(y, codes, n, &c, &l);
    tn_decode_levels last = levels_from(&l, done / l.each);
    last.each = HALVES;         /* at least as many as are left */
    if (done < n)
        others(y + done, codes + done, n - done, number, &last);
}

static void topped_by_halves(float *restrict y, const uint8_t *restrict codes, size_t n,
                             const tn_decode_number *number, const tn_decode_levels *levels)
{
    decode_by_halves(y, codes, n, number, levels, topped_8);
}

static void finite_8(float *restrict y, const uint8_t *restrict codes, size_t n,
                     const tn_decode_number *number, const tn_decode_levels *levels)
{
    uint32_t magnitudes_used = number->sign;
    if (magnitudes_used <= LANES)
        looked_up_8(y, codes, n, number, levels);
    else if (magnitudes_used <= 2 * LANES)
        looked_up_in_two_8(y, codes, n, number, levels);
    else
        decode_by_halves(y, codes, n, number, levels, computed_8);
}

void LEVEL(tn_decode_kernels_init)(tn_decode_kernels *k)
{
    *k = (tn_decode_kernels){ .decode = DECODERS, .unpack = UNPACK, .expand = expand };
    k->decode[TN_DECODE_TOPPED][0] = topped_by_halves;
}
