/* kernels/blocks/scalar_grid.c - values of block types with grids: the definition.
 *
 * A code is the number of a point of a grid: the magnitudes of 8 values (iq2), of 4 (iq3), or 8 of three
 * values around 0 (iq1). */
#include "kernels/blocks/table.h"
#include "kernels/blocks/words.h"

/* ---- iq2: 8 magnitudes of three levels ---- */

static void put_iq2(float *y, float d, unsigned point, unsigned signs)
{
    static const float levels[4] = { 8, 25, 43, 0 };    /* no point has a fourth */
    for (unsigned i = 0; i < 8; i++)
        y[i] = d * levels[point >> 2 * i & 3] * (signs >> i & 1 ? -1.0f : 1.0f);
}

static float iq2_scale(float d, unsigned scale) { return d * (0.5f + (float)scale) * 0.25f; }

static void iq2_xxs(const uint8_t *b, size_t n, float *y)
{
    for (; n > 0; n--, b += 66, y += 256)
        for (unsigned g = 0; g < 32; g++) {
            const uint8_t *words = b + 2 + 8 * (g / 4);
            uint32_t rest = word32(words + 4);
            put_iq2(y + 8 * g, iq2_scale(half_at(b), rest >> 28), tn_grid_iq2_xxs[words[g % 4]],
                    signs_of(rest >> 7 * (g % 4) & 127));
        }
}

static void iq2_xs(const uint8_t *b, size_t n, float *y)
{
    for (; n > 0; n--, b += 74, y += 256)
        for (unsigned g = 0; g < 32; g++) {
            unsigned q = word16(b + 2 + 2 * g), scale = nibble(b[66 + g / 4], g / 2 % 2);
            put_iq2(y + 8 * g, iq2_scale(half_at(b), scale), tn_grid_iq2_xs[q & 511], signs_of(q >> 9));
        }
}

static void iq2_s(const uint8_t *b, size_t n, float *y)
{
    for (; n > 0; n--, b += 82, y += 256)
        for (unsigned g = 0; g < 32; g++) {
            unsigned index = b[2 + g] | (b[66 + g / 4] >> 2 * (g % 4) & 3u) << 8;
            unsigned scale = nibble(b[74 + g / 4], g / 2 % 2);
            put_iq2(y + 8 * g, iq2_scale(half_at(b), scale), tn_grid_iq2_s[index], b[34 + g]);
        }
}

/* ---- iq3: 4 magnitudes of eight levels ---- */

static void put_iq3(float *y, float d, const uint8_t levels[8], unsigned point, unsigned signs)
{
    for (unsigned i = 0; i < 4; i++)
        y[i] = d * (float)levels[point >> 3 * i & 7] * (signs >> i & 1 ? -1.0f : 1.0f);
}

static void iq3_xxs(const uint8_t *b, size_t n, float *y)
{
    static const uint8_t levels[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
    for (; n > 0; n--, b += 98, y += 256)
        for (unsigned g = 0; g < 64; g++) {
            uint32_t rest = word32(b + 66 + 4 * (g / 8));
            float d = half_at(b) * (0.5f + (float)(rest >> 28)) * 0.5f;
            unsigned signs = signs_of(rest >> 7 * (g / 2 % 4) & 127);
            put_iq3(y + 4 * g, d, levels, tn_grid_iq3_xxs[b[2 + g]], signs >> 4 * (g % 2));
        }
}

static void iq3_s(const uint8_t *b, size_t n, float *y)
{
    static const uint8_t levels[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };
    for (; n > 0; n--, b += 110, y += 256)
        for (unsigned g = 0; g < 64; g++) {
            unsigned s = g / 8, index = b[2 + g] | (b[66 + s] >> g % 8 & 1u) << 8;
            float d = half_at(b) * (1 + 2 * (float)nibble(b[106 + s / 2], s % 2));
            put_iq3(y + 4 * g, d, levels, tn_grid_iq3_s[index], (unsigned)b[74 + g / 2] >> 4 * (g % 2));
        }
}

/* ---- iq1: 8 values of -1, 0 and 1, all moved by an eighth ---- */

static void put_iq1(float *y, float d, unsigned point, bool is_lower)
{
    for (unsigned i = 0; i < 8; i++)
        y[i] = d * ((float)(int)((point >> 2 * i & 3) - 1) + (is_lower ? -0.125f : 0.125f));
}

static void iq1_s(const uint8_t *b, size_t n, float *y)
{
    for (; n > 0; n--, b += 50, y += 256)
        for (unsigned g = 0; g < 32; g++) {
            unsigned high = word16(b + 34 + 2 * (g / 4)), index = b[2 + g] | (high >> 3 * (g % 4) & 7) << 8;
            float d = half_at(b) * (float)(2 * (high >> 12 & 7) + 1);
            put_iq1(y + 8 * g, d, tn_grid_iq1[index], high >> 15);
        }
}

/* The float16 scale is in the upper four bits of four words. */
static float iq1_m_scale(const uint8_t *words)
{
    unsigned h = 0;
    for (unsigned i = 0; i < 4; i++)
        h |= word16(words + 2 * i) >> 12 << 4 * i;
    return half_value(h);
}

static void iq1_m(const uint8_t *b, size_t n, float *y)
{
    for (; n > 0; n--, b += 56, y += 256)
        for (unsigned g = 0; g < 32; g++) {
            unsigned high = nibble(b[32 + g / 2], g % 2), index = b[g] | (high & 7) << 8, s = g / 2;
            unsigned scale = word16(b + 48 + 2 * (s / 4)) >> 3 * (s % 4) & 7;
            float d = iq1_m_scale(b + 48) * (float)(2 * scale + 1);
            put_iq1(y + 8 * g, d, tn_grid_iq1[index], high >> 3);
        }
}

void tn_block_kernels_init_grids(tn_block_kernels *k)
{
    k->decode[TN_BLOCK_IQ2_XXS] = iq2_xxs;
    k->decode[TN_BLOCK_IQ2_XS] = iq2_xs;
    k->decode[TN_BLOCK_IQ2_S] = iq2_s;
    k->decode[TN_BLOCK_IQ3_XXS] = iq3_xxs;
    k->decode[TN_BLOCK_IQ3_S] = iq3_s;
    k->decode[TN_BLOCK_IQ1_S] = iq1_s;
    k->decode[TN_BLOCK_IQ1_M] = iq1_m;
}
