/* kernels/scaled_decode/scalar.c - decodes codes with scales, one at a time. */
#include "kernels/scaled_decode/table.h"

#include <math.h>
#include <string.h>

#include "tensor/code.h"

/* --- numbers --------------------------------------------------------------- */

INLINE float float_value(uint32_t code, const tn_decode_number *c, tn_decode_kind kind)
{
    uint32_t magnitude = code & (c->sign - 1), sign = (code & c->sign) << c->up;
    uint32_t bits = (magnitude << c->shift) + c->rebias;
    if (magnitude < c->one)     /* with a leading one it is too large by the smallest normal number */
        bits = tn_float_bits(tn_float_of(bits + (1u << 23)) - c->normal);
    if (kind == TN_DECODE_TOPPED && magnitude >= c->top)
        bits |= tn_float_bits(INFINITY);
    if (kind == TN_DECODE_FLOAT && magnitude == c->infinite)
        bits = tn_float_bits(INFINITY);
    if (kind == TN_DECODE_FLOAT && code == c->nan)
        bits = tn_float_bits(NAN);
    return tn_float_of(bits | sign);
}

INLINE float integer_value(uint32_t code, uint32_t sign)
{
    return (float)((int32_t)(code ^ sign) - (int32_t)sign);
}

INLINE float exponent_value(uint32_t code, const tn_decode_number *c)
{
    int32_t exponent = (int32_t)code - c->bias + 127;
    if (code == c->ones)
        return NAN;
    return tn_float_of(exponent > 0 ? (uint32_t)exponent << 23 : UINT32_C(1) << (22 + exponent));
}

INLINE float codebook_value(uint32_t code, uint32_t mapping, const tn_decode_number *c)
{
    float magnitude = c->value[mapping * c->values + (code & (c->values - 1))];
    return code & c->sign ? -magnitude : magnitude;
}

INLINE float value_of(uint32_t code, size_t level, const tn_decode_number *c, const tn_decode_levels *l,
                      tn_decode_kind kind)
{
    float scale = l->scale[level], value;
    switch (kind) {
    case TN_DECODE_INT:      value = integer_value(code, c->sign) * c->unit * scale; break;
    case TN_DECODE_UINT:     value = scale * (float)((int32_t)code - l->zero[level]); break;
    case TN_DECODE_SHIFTED:  value = scale * (float)code - l->shift[level]; break;
    case TN_DECODE_EXPONENT: value = exponent_value(code, c) * scale; break;
    case TN_DECODE_HALVED:   value = tn_float_of((127 - code) << 23) * scale; break;
    case TN_DECODE_CODEBOOK: value = codebook_value(code, l->mapping[level], c) * scale; break;
    default:                 value = float_value(code, c, kind) * scale;
    }
    return isnan(value) ? NAN : value;
}

INLINE uint32_t word_at(const uint8_t *p, size_t i, unsigned width)
{
    uint16_t half;
    uint32_t word;
    if (width == 0)
        return p[i];
    if (width == 1) {
        memcpy(&half, p + i * sizeof half, sizeof half);
        return half;
    }
    memcpy(&word, p + i * sizeof word, sizeof word);
    return word;
}

#define DECODE(name, kind, width)                                                                      \
    static void name(float *restrict y, const uint8_t *restrict codes, size_t n,                       \
                     const tn_decode_number *number, const tn_decode_levels *levels)                   \
    {                                                                                                  \
        for (size_t i = 0, level = 0; i < n; level++)                                                  \
            for (size_t end = levels->each < n - i ? i + levels->each : n; i < end; i++)               \
                y[i] = value_of(word_at(codes, i, width) & number->ones, level, number, levels, kind); \
    }

DECODE(finite_8, TN_DECODE_FINITE, 0)
#include "kernels/scaled_decode/list.h"

void tn_decode_integers(int32_t *restrict integers, const uint8_t *restrict codes, size_t n, unsigned width,
                        unsigned bits)
{
    const uint32_t sign = UINT32_C(1) << (bits - 1), ones = sign * 2 - 1;
    if (width == 0)             /* a loop that compilers vectorise */
        for (size_t i = 0; i < n; i++)
            integers[i] = (int32_t)(((codes[i] & ones) ^ sign) - sign);
    for (size_t i = 0; i < n && width; i++)
        integers[i] = (int32_t)(((word_at(codes, i, width) & ones) ^ sign) - sign);
}

/* --- packed codes ----------------------------------------------------------- */

void tn_unpack_scalar(uint8_t *restrict codes, const uint8_t *restrict packed, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint8_t)tn_packed_get(packed, i, bits);
}

void tn_expand_scalar(float *restrict y, const float *restrict slots, const uint8_t *restrict mask, size_t n,
                      const tn_decode_groups *groups)
{
    const unsigned keep = groups->keep, of = groups->of;
    for (size_t g = 0; g < n; g += of, slots += keep) {
        unsigned used = 0;
        for (size_t i = g; i < n && i < g + of; i++)
            y[i] = (mask[i / 8] >> i % 8 & 1) && used < keep ? slots[used++] : 0;
    }
}

/* --- the table ------------------------------------------------------------- */

void tn_decode_kernels_init_scalar(tn_decode_kernels *k)
{
    *k = (tn_decode_kernels){ .decode = DECODERS, .unpack = tn_unpack_scalar, .expand = tn_expand_scalar };
}
