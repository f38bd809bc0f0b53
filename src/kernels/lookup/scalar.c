/* kernels/lookup/scalar.c - the definition of the kernels of this topic. */
#include <math.h>
#include <string.h>

#include "kernels/lookup/table.h"

static float value_of(float number, float scale)
{
    float value = number * scale;
    return isnan(value) ? NAN : value;
}

void tn_lookup_fours_scalar(float *restrict y, const uint8_t *restrict packed, size_t n,
                            const float table[16], float scale)
{
    for (size_t i = 0; i < n; i++)
        y[i] = value_of(table[i % 2 ? packed[i / 2] & 15 : packed[i / 2] >> 4], scale);
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    value = isnan(value) ? NAN : value;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float value_at(const tn_lookup_values *v, unsigned code, size_t tile)
{
    if (!v->shift)
        return v->number[code] * v->scale[tile];
    if (v->shifts_first)
        return (v->number[code] - v->shift[tile]) * v->scale[tile];
    return v->number[code] * v->scale[tile] - v->shift[tile];
}

static void fours_to_bf16_scalar(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles,
                                 size_t each, const tn_lookup_values *values)
{
    const unsigned first = values->high_first ? 4 : 0;
    for (size_t t = 0; t < tiles; t++) {
        uint16_t table[16];
        for (unsigned c = 0; c < 16; c++)
            table[c] = to_bf16(value_at(values, c, t));
        for (size_t i = 0; i < each / 2; i++, y += 4) {
            memcpy(y, &table[*packed >> first & 15], 2);
            memcpy(y + 2, &table[*packed++ >> (4 - first) & 15], 2);
        }
    }
}

/* The exponent and the mantissa where float32 has them, with another bias: a power of two makes it up. */
static float e4m3_value(uint8_t code)
{
    uint32_t bits = (code & 0x7fu) << 20;
    float value;
    memcpy(&value, &bits, sizeof value);
    value = (code & 0x7f) == 0x7f ? NAN : value * 0x1p120f;
    return code & 0x80 ? -value : value;
}

void tn_lookup_e4m3_scalar(uint8_t *restrict y, const uint8_t *restrict codes, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t value = to_bf16(e4m3_value(codes[i]) * scale);
        memcpy(y + 2 * i, &value, 2);
    }
}

void tn_lookup_swap_halves_scalar(uint8_t *restrict out, const uint8_t *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(in[i] >> 4 | in[i] << 4);
}

void tn_lookup_eights_from(uint8_t *const out[8], const uint32_t *restrict words, size_t first, size_t n)
{
    for (size_t i = first; i < n; i += 2) {
        uint32_t a = words[i], b = i + 1 < n ? words[i + 1] : 0;
        for (unsigned r = 0; r < 8; r++)
            out[r][i / 2] = (uint8_t)((a >> 4 * r & 15) | (b >> 4 * r & 15) << 4);
    }
}

static void eights_scalar(uint8_t *const out[8], const uint32_t *restrict words, size_t n)
{
    tn_lookup_eights_from(out, words, 0, n);
}

void tn_lookup_kernels_init_scalar(tn_lookup_kernels *k)
{
    *k = (tn_lookup_kernels){ .fours = tn_lookup_fours_scalar, .fours_to_bf16 = fours_to_bf16_scalar,
                              .e4m3_to_bf16 = tn_lookup_e4m3_scalar,
                              .swap_halves = tn_lookup_swap_halves_scalar, .eights = eights_scalar };
}
