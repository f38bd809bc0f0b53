/* kernels/blocks/encode.c - encoding block types of one scale: the definition. */
#include "kernels/blocks/encode_fp4.h"

/* ---- 4 and 5 bits ---- */

/* Codes of 32 values around N, and their scale. */
static float encode_around(const float *x, const float *q, float mean_square, int N, uint8_t *codes)
{
    float w[32];
    if (q) {
        weigh(x, q, mean_square, 32, w);
        tn_found found = tn_search_symmetric(x, w, 32, N);
        codes_around(x, 32, N, found.inverse, codes);
        return found.scale;
    }
    float d = first_largest(x, 32) / -(float)N, id = inverse(d);
    for (unsigned e = 0; e < 32; e++) {
        int8_t code = (int8_t)cut(x[e] * id + ((float)N + 0.5f));
        codes[e] = (uint8_t)(code < 2 * N - 1 ? code : 2 * N - 1);
    }
    return d;
}

/* The same from a minimum on. */
static float encode_above(const float *x, const float *q, float mean_square, int N, uint8_t *codes,
                          float *min)
{
    float w[32], low = x[0], high = x[0];
    if (q) {
        tn_search_range range = TN_RANGE_32(N);
        weigh(x, q, mean_square, 32, w);
        tn_found found = tn_search_affine(x, w, 32, &range);
        codes_above(x, 32, N, found.inverse, found.from, codes);
        *min = -found.min;
        return found.scale;
    }
    for (unsigned e = 1; e < 32; e++) {
        low = x[e] < low ? x[e] : low;
        high = x[e] > high ? x[e] : high;
    }
    float d = (high - low) / (float)N, id = inverse(d);
    for (unsigned e = 0; e < 32; e++) {
        int code = cut((x[e] - low) * id + 0.5f);
        codes[e] = (uint8_t)(N == 15 && (int8_t)code > 15 ? 15 : code);
    }
    *min = low;
    return d;
}

static void q4_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    put_half(b, encode_around(x, q, mean_square, 8, codes));
    put_nibbles(b + 2, codes);
}

static void q5_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    put_half(b, encode_around(x, q, mean_square, 16, codes));
    put_high_bits(b + 2, codes);
    put_nibbles(b + 6, codes);
}

static void q4_1_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    float min;
    put_half(b, encode_above(x, q, mean_square, 15, codes, &min));
    put_half(b + 2, min);
    put_nibbles(b + 4, codes);
}

static void q5_1_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    float min;
    put_half(b, encode_above(x, q, mean_square, 31, codes, &min));
    put_half(b + 2, min);
    put_high_bits(b + 4, codes);
    put_nibbles(b + 8, codes);
}

/* ---- 8 bits ---- */

/* Returns the sum of the codes. */
static int put_bytes(const float *x, float d, uint8_t *qs)
{
    float id = inverse(d);
    int sum = 0;
    for (unsigned e = 0; e < 32; e++) {
        int8_t code = (int8_t)cut(roundf(x[e] * id));
        qs[e] = (uint8_t)code;
        sum += code;
    }
    return sum;
}

static void q8_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float d = fabsf(first_largest(x, 32)) / 127;
    (void)q, (void)mean_square;
    put_half(b, d);
    put_bytes(x, d, b + 2);
}

static void q8_1_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float d = fabsf(first_largest(x, 32)) / 127;
    (void)q, (void)mean_square;
    put_half(b, d);
    put_half(b + 2, (float)put_bytes(x, d, b + 4) * d);
}

static void q8_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float max = first_largest(x, 256), i = -127 / max;
    (void)q, (void)mean_square;
    memset(b, 0, 292);
    if (max == 0)
        return;
    put32(b, tn_float_bits(1 / i));
    for (unsigned s = 0; s < 16; s++) {
        int sum = 0;
        for (unsigned e = 16 * s; e < 16 * s + 16; e++) {
            int code = near(i * x[e]);
            b[4 + e] = (uint8_t)(code < 127 ? code : 127);
            sum += (int8_t)b[4 + e];
        }
        put16(b + 260 + 2 * s, (uint32_t)sum & 0xffff);
    }
}

/* ---- 1 and 2 bits ---- */

static void q1_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float sum = 0;
    (void)q, (void)mean_square;
    memset(b, 0, 18);
    for (unsigned e = 0; e < 128; e++) {
        sum += fabsf(x[e]);
        b[2 + e / 8] |= (uint8_t)((x[e] >= 0) << e % 8);
    }
    put_half(b, sum / 128);
}

static void q2_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float d = fabsf(first_largest(x, 64)), id = inverse(d);
    (void)q, (void)mean_square;
    memset(b, 0, 18);
    put_half(b, d);
    for (unsigned e = 0; e < 64; e++)
        b[2 + e / 4] |= (uint8_t)(clamp(cut(roundf(x[e] * id)) + 1, 0, 3) << 2 * (e % 4));
}

/* 0, 1 or 2; what is not finite, of a scale that has no inverse, is 1. */
static unsigned trit_of(float x, float id)
{
    float v = x * id;
    return (unsigned)(isfinite(v) ? (int)roundf(v) : 0) + 1;
}

/* `n` values, `step` apart, in a byte of five trits. */
static uint8_t trits(const float *x, float id, unsigned n, unsigned step)
{
    unsigned t = 0;
    for (unsigned i = 0; i < 5; i++)
        t = t * 3 + (i < n ? trit_of(x[i * step], id) : 0);
    return (uint8_t)((t * 256 + 242) / 243);
}

static void tq1_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float d = fabsf(first_largest(x, 256)), id = inverse(d);
    (void)q, (void)mean_square;
    for (unsigned m = 0; m < 32; m++)
        b[m] = trits(x + m, id, 5, 32);
    for (unsigned m = 0; m < 16; m++)
        b[32 + m] = trits(x + 160 + m, id, 5, 16);
    for (unsigned m = 0; m < 4; m++)
        b[48 + m] = trits(x + 240 + m, id, 4, 4);
    put_half(b + 52, d);
}

static void tq2_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float d = fabsf(first_largest(x, 256)), id = inverse(d);
    (void)q, (void)mean_square;
    memset(b, 0, 64);
    for (unsigned e = 0; e < 256; e++)
        b[32 * (e / 128) + e % 32] |= (uint8_t)((trit_of(x[e], id) & 3) << 2 * (e / 32 % 4));
    put_half(b + 64, d);
}

/* ---- 4-bit floats ---- */

static void mxfp4_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    (void)q, (void)mean_square;
    b[0] = mx_code(fabsf(first_largest(x, 32)));
    float d = mx_scale(b[0]);
    for (unsigned j = 0; j < 16; j++)
        b[1 + j] = (uint8_t)(fp4_code(x[j], d) | fp4_code(x[j + 16], d) << 4);
}

static void nvfp4_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (unsigned s = 0; s < 4; s++, x += 16) {
        b[s] = nv_code(fabsf(first_largest(x, 16)) / 6);
        float d = nv_scale(b[s]);
        for (unsigned j = 0; j < 8; j++)
            b[4 + 8 * s + j] = (uint8_t)(fp4_code(x[j], d) | fp4_code(x[j + 8], d) << 4);
    }
}

ENCODE_EACH(q4_0, 32, 18)
ENCODE_EACH(q4_1, 32, 20)
ENCODE_EACH(q5_0, 32, 22)
ENCODE_EACH(q5_1, 32, 24)
ENCODE_EACH(q8_0, 32, 34)
ENCODE_EACH(q8_1, 32, 36)
ENCODE_EACH(q8_K, 256, 292)
ENCODE_EACH(q1_0, 128, 18)
ENCODE_EACH(q2_0, 64, 18)
ENCODE_EACH(tq1_0, 256, 54)
ENCODE_EACH(tq2_0, 256, 66)
ENCODE_EACH(mxfp4, 32, 17)
ENCODE_EACH(nvfp4, 64, 36)

void tn_block_kernels_init_encode(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_Q4_0] = q4_0;
    k->encode[TN_BLOCK_Q4_1] = q4_1;
    k->encode[TN_BLOCK_Q5_0] = q5_0;
    k->encode[TN_BLOCK_Q5_1] = q5_1;
    k->encode[TN_BLOCK_Q8_0] = q8_0;
    k->encode[TN_BLOCK_Q8_1] = q8_1;
    k->encode[TN_BLOCK_Q8_K] = q8_K;
    k->encode[TN_BLOCK_Q1_0] = q1_0;
    k->encode[TN_BLOCK_Q2_0] = q2_0;
    k->encode[TN_BLOCK_TQ1_0] = tq1_0;
    k->encode[TN_BLOCK_TQ2_0] = tq2_0;
    k->encode[TN_BLOCK_MXFP4] = mxfp4;
    k->encode[TN_BLOCK_NVFP4] = nvfp4;
}
