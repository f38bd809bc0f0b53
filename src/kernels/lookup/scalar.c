/* kernels/lookup/scalar.c - the definition of the kernels of this topic. */
#include <math.h>

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
    *k = (tn_lookup_kernels){ .fours = tn_lookup_fours_scalar, .swap_halves = tn_lookup_swap_halves_scalar,
                              .eights = eights_scalar };
}
