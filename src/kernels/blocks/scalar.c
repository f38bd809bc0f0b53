/* kernels/blocks/scalar.c - values of block types: the definition. */
#include "kernels/blocks/encode.h"

const int8_t tn_block_fp4[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
const int8_t tn_block_iq4[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

/* Calls NAME_block() for each block. */
#define EACH_BLOCK(name, values_, bytes_)                                               \
    static void name(const uint8_t *blocks, size_t n, float *values)                    \
    {                                                                                   \
        for (size_t i = 0; i < n; i++)                                                  \
            name##_block(blocks + i * (bytes_), values + i * (values_));                \
    }

/* ---- 32 values, one scale ---- */

static void q4_0_block(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (unsigned e = 0; e < 32; e++)
        y[e] = (float)((int)nibble(b[2 + e % 16], e / 16) - 8) * d;
}

static void q4_1_block(const uint8_t *b, float *y)
{
    float d = half_at(b), m = half_at(b + 2);
    for (unsigned e = 0; e < 32; e++)
        y[e] = (float)nibble(b[4 + e % 16], e / 16) * d + m;
}

static void q5_0_block(const uint8_t *b, float *y)
{
    float d = half_at(b);
    uint32_t high = word32(b + 2);
    for (unsigned e = 0; e < 32; e++)
        y[e] = (float)((int)(nibble(b[6 + e % 16], e / 16) | (high >> e & 1) << 4) - 16) * d;
}

static void q5_1_block(const uint8_t *b, float *y)
{
    float d = half_at(b), m = half_at(b + 2);
    uint32_t high = word32(b + 4);
    for (unsigned e = 0; e < 32; e++)
        y[e] = (float)(nibble(b[8 + e % 16], e / 16) | (high >> e & 1) << 4) * d + m;
}

static void bytes_times(const uint8_t *q, size_t n, float d, float *y)
{
    for (size_t e = 0; e < n; e++)
        y[e] = (float)(int8_t)q[e] * d;
}

static void q8_0_block(const uint8_t *b, float *y) { bytes_times(b + 2, 32, half_at(b), y); }
static void q8_1_block(const uint8_t *b, float *y) { bytes_times(b + 4, 32, half_at(b), y); }
static void q8_K_block(const uint8_t *b, float *y) { bytes_times(b + 4, 256, tn_float_of(word32(b)), y); }

static void q1_0_block(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (unsigned e = 0; e < 128; e++)
        y[e] = b[2 + e / 8] >> e % 8 & 1 ? d : -d;
}

static void q2_0_block(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (unsigned e = 0; e < 64; e++)
        y[e] = (float)((b[2 + e / 4] >> 2 * (e % 4) & 3) - 1) * d;
}

static void iq4_nl_block(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (unsigned e = 0; e < 32; e++)
        y[e] = d * (float)tn_block_iq4[nibble(b[2 + e % 16], e / 16)];
}

/* ---- 4-bit floats ---- */

static void mxfp4_block(const uint8_t *b, float *y)
{
    float d = mx_scale(b[0]);
    for (unsigned e = 0; e < 32; e++)
        y[e] = (float)tn_block_fp4[nibble(b[1 + e % 16], e / 16)] * d;
}

static void nvfp4_block(const uint8_t *b, float *y)
{
    for (unsigned e = 0; e < 64; e++) {
        unsigned s = e / 16, j = e % 16;
        y[e] = (float)tn_block_fp4[nibble(b[4 + 8 * s + j % 8], j / 8)] * nv_scale(b[s]);
    }
}

/* ---- three values ---- */

/* Trit n of a byte. */
static float trit(uint8_t byte, unsigned n)
{
    static const uint8_t powers[] = { 1, 3, 9, 27, 81 };
    return (float)((int)((uint8_t)(byte * powers[n]) * 3u >> 8) - 1);
}

static void tq1_0_block(const uint8_t *b, float *y)
{
    float d = half_at(b + 52);
    for (unsigned n = 0; n < 5; n++) {
        for (unsigned m = 0; m < 32; m++)
            y[32 * n + m] = trit(b[m], n) * d;
        for (unsigned m = 0; m < 16; m++)
            y[160 + 16 * n + m] = trit(b[32 + m], n) * d;
    }
    for (unsigned n = 0; n < 4; n++)
        for (unsigned m = 0; m < 4; m++)
            y[240 + 4 * n + m] = trit(b[48 + m], n) * d;
}

static void tq2_0_block(const uint8_t *b, float *y)
{
    float d = half_at(b + 64);
    for (unsigned e = 0; e < 256; e++)
        y[e] = (float)((b[32 * (e / 128) + e % 32] >> 2 * (e / 32 % 4) & 3) - 1) * d;
}

/* ---- 256 values, scales of sub-blocks ---- */

static void q2_K_block(const uint8_t *b, float *y)
{
    float d = half_at(b + 80), dmin = half_at(b + 82);
    for (unsigned e = 0; e < 256; e++) {
        unsigned sc = b[e / 16], q = b[16 + 32 * (e / 128) + e % 32] >> 2 * (e / 32 % 4) & 3u;
        y[e] = d * (float)(sc & 15) * (float)q - dmin * (float)(sc >> 4);
    }
}

static void q3_K_block(const uint8_t *b, float *y)
{
    float d = half_at(b + 108);
    for (unsigned e = 0; e < 256; e++) {
        unsigned i = e % 32, j = e / 32;
        int low = b[32 + 32 * (e / 128) + i] >> 2 * (j % 4) & 3, high = b[i] >> j & 1;
        y[e] = d * (float)k3_scale(b + 96, e / 16) * (float)(high ? low : low - 4);
    }
}

static void q4_K_block(const uint8_t *b, float *y)
{
    float d = half_at(b), dmin = half_at(b + 2);
    for (unsigned e = 0; e < 256; e++) {
        unsigned s = e / 32, scale, min;
        k_scale(b + 4, s, &scale, &min);
        unsigned q = nibble(b[16 + 32 * (s / 2) + e % 32], s % 2);
        y[e] = d * (float)scale * (float)q - dmin * (float)min;
    }
}

static void q5_K_block(const uint8_t *b, float *y)
{
    float d = half_at(b), dmin = half_at(b + 2);
    for (unsigned e = 0; e < 256; e++) {
        unsigned s = e / 32, i = e % 32, scale, min;
        k_scale(b + 4, s, &scale, &min);
        unsigned q = nibble(b[48 + 32 * (s / 2) + i], s % 2) | (b[16 + i] >> s & 1u) << 4;
        y[e] = d * (float)scale * (float)q - dmin * (float)min;
    }
}

static void q6_K_block(const uint8_t *b, float *y)
{
    float d = half_at(b + 208);
    for (unsigned e = 0; e < 256; e++) {
        unsigned h = e / 128, j = e / 32 % 4, i = e % 32;
        unsigned q = nibble(b[64 * h + 32 * (j % 2) + i], j / 2) | (b[128 + 32 * h + i] >> 2 * j & 3u) << 4;
        y[e] = d * (float)(int8_t)b[192 + e / 16] * (float)((int)q - 32);
    }
}

static void iq4_xs_block(const uint8_t *b, float *y)
{
    float d = half_at(b);
    unsigned high = word16(b + 2);
    for (unsigned e = 0; e < 256; e++) {
        unsigned s = e / 32, i = e % 32, scale = nibble(b[4 + s / 2], s % 2) | (high >> 2 * s & 3) << 4;
        int8_t v = tn_block_iq4[nibble(b[8 + 16 * s + i % 16], i / 16)];
        y[e] = d * (float)((int)scale - 32) * (float)v;
    }
}

EACH_BLOCK(q4_0, 32, 18)
EACH_BLOCK(q4_1, 32, 20)
EACH_BLOCK(q5_0, 32, 22)
EACH_BLOCK(q5_1, 32, 24)
EACH_BLOCK(q8_0, 32, 34)
EACH_BLOCK(q8_1, 32, 36)
EACH_BLOCK(q8_K, 256, 292)
EACH_BLOCK(q1_0, 128, 18)
EACH_BLOCK(q2_0, 64, 18)
EACH_BLOCK(iq4_nl, 32, 18)
EACH_BLOCK(mxfp4, 32, 17)
EACH_BLOCK(nvfp4, 64, 36)
EACH_BLOCK(tq1_0, 256, 54)
EACH_BLOCK(tq2_0, 256, 66)
EACH_BLOCK(q2_K, 256, 84)
EACH_BLOCK(q3_K, 256, 110)
EACH_BLOCK(q4_K, 256, 144)
EACH_BLOCK(q5_K, 256, 176)
EACH_BLOCK(q6_K, 256, 210)
EACH_BLOCK(iq4_xs, 256, 136)

void tn_block_kernels_init_scalar(tn_block_kernels *k)
{
    *k = (tn_block_kernels){
        .decode = {
            [TN_BLOCK_Q4_0] = q4_0, [TN_BLOCK_Q4_1] = q4_1, [TN_BLOCK_Q5_0] = q5_0, [TN_BLOCK_Q5_1] = q5_1,
            [TN_BLOCK_Q8_0] = q8_0, [TN_BLOCK_Q8_1] = q8_1, [TN_BLOCK_Q8_K] = q8_K, [TN_BLOCK_Q1_0] = q1_0,
            [TN_BLOCK_Q2_0] = q2_0, [TN_BLOCK_IQ4_NL] = iq4_nl, [TN_BLOCK_IQ4_XS] = iq4_xs,
            [TN_BLOCK_MXFP4] = mxfp4, [TN_BLOCK_NVFP4] = nvfp4, [TN_BLOCK_TQ1_0] = tq1_0,
            [TN_BLOCK_TQ2_0] = tq2_0, [TN_BLOCK_Q2_K] = q2_K, [TN_BLOCK_Q3_K] = q3_K,
            [TN_BLOCK_Q4_K] = q4_K, [TN_BLOCK_Q5_K] = q5_K, [TN_BLOCK_Q6_K] = q6_K,
        },
    };
    tn_block_kernels_init_grids(k);
    memcpy(k->stream, k->decode, sizeof k->stream);
    tn_block_kernels_init_encode(k);
    tn_block_kernels_init_encode_k(k);
    tn_block_kernels_init_encode_iq4(k);
    tn_block_kernels_init_encode_grid(k);
    tn_block_kernels_init_encode_iq1(k);
}
