/* kernels/blocks/encode.c - encoding block types of one scale: the definition. */
#include "kernels/blocks/encode.h"

/* Low codes of the first half of 32 values, high ones of the second. */
static void put_nibbles(uint8_t *qs, const uint8_t *codes)
{
    for (unsigned j = 0; j < 16; j++)
        qs[j] = (uint8_t)((codes[j] & 15) | codes[j + 16] << 4);
}

/* The fifth bits. */
static void put_high_bits(uint8_t *p, const uint8_t *codes)
{
    uint32_t high = 0;
    for (unsigned e = 0; e < 32; e++)
        high |= (uint32_t)(codes[e] >> 4 & 1) << e;
    put32(p, high);
}

/* ---- 4 and 5 bits ---- */

/* Codes of 32 values around N, and their scale. */
static float codes_around(const float *x, const float *q, float mean_square, int N, uint8_t *codes)
{
    float w[32];
    if (q) {
        weigh(x, q, mean_square, 32, w);
        return tn_search_symmetric(x, w, 32, N, codes);
    }
    float d = first_largest(x, 32) / -(float)N, id = inverse(d);
    for (unsigned e = 0; e < 32; e++) {
        int8_t code = (int8_t)cut(x[e] * id + ((float)N + 0.5f));
        codes[e] = (uint8_t)(code < 2 * N - 1 ? code : 2 * N - 1);
    }
    return d;
}

/* The same from a minimum on. */
static float codes_above(const float *x, const float *q, float mean_square, int N, uint8_t *codes, float *min)
{
    const tn_search_range range = { .N = N, .trials = 36, .first = -0.9f, .step = 0.05f,
                                    .is_weighted = true };
    float w[32], low = x[0], high = x[0];
    if (q) {
        weigh(x, q, mean_square, 32, w);
        float d = tn_search_affine(x, w, 32, &range, codes, min);
        *min = -*min;
        return d;
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
    put_half(b, codes_around(x, q, mean_square, 8, codes));
    put_nibbles(b + 2, codes);
}

static void q5_0_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    put_half(b, codes_around(x, q, mean_square, 16, codes));
    put_high_bits(b + 2, codes);
    put_nibbles(b + 6, codes);
}

static void q4_1_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    float min;
    put_half(b, codes_above(x, q, mean_square, 15, codes, &min));
    put_half(b + 2, min);
    put_nibbles(b + 4, codes);
}

static void q5_1_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    uint8_t codes[32];
    float min;
    put_half(b, codes_above(x, q, mean_square, 31, codes, &min));
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

/* The first code with the least distance. */
static unsigned fp4_code(float x, float d)
{
    unsigned best = 0;
    float least = fabsf((float)tn_block_fp4[0] * d - x);
    for (unsigned i = 1; i < 16; i++) {
        float e = fabsf((float)tn_block_fp4[i] * d - x);
        if (e < least) {
            least = e;
            best = i;
        }
    }
    return best;
}

/* The exponent as a float32 logarithm has it: it rounds the largest numbers below a power of two up. */
static int log2_of(float a)
{
    static const struct { int low, high; uint32_t n; } rounded[] = {
        { -2, 1, 0 }, { -4, 3, 1 }, { -8, 7, 2 }, { -16, 15, 5 }, { -32, 31, 11 }, { -64, 63, 22 },
        { -127, 127, 44 },
    };
    uint32_t bits = tn_float_bits(a);
    int exponent = (int)(bits >> 23) - 127;
    unsigned i = 0;
    while (exponent < rounded[i].low || exponent > rounded[i].high)
        i++;
    return exponent + ((bits & 0x7fffff) >= 0x800000 - rounded[i].n);
}

static void mxfp4_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float most = fabsf(first_largest(x, 32));
    int e = most != 0 ? log2_of(most) + 125 : 0;
    (void)q, (void)mean_square;
    b[0] = (uint8_t)(e > 0 ? e : 0);
    float d = mx_scale(b[0]);
    for (unsigned j = 0; j < 16; j++)
        b[1 + j] = (uint8_t)(fp4_code(x[j], d) | fp4_code(x[j + 16], d) << 4);
}

/* A scale without a sign: 4 bits of exponent, 3 of mantissa, rounded half up; 448 from 256 on. */
static uint8_t nv_code(float v)
{
    uint32_t bits = tn_float_bits(v);
    int exponent = (int)(bits >> 23) - 120;
    uint32_t mantissa = (bits >> 20 & 7) + (bits >> 19 & 1);
    if (!(v > 0))
        return 0;
    if (exponent <= 0)
        return (uint8_t)clamp(cut(v * 512 + 0.5f), 0, 7);
    exponent += mantissa > 7;
    return exponent >= 15 ? 0x7e : (uint8_t)((unsigned)exponent << 3 | (mantissa & 7));
}

static void nvfp4_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (unsigned s = 0; s < 4; s++, x += 16) {
        b[s] = nv_code(fabsf(first_largest(x, 16)) / 6);
        float d = tn_nv_scale(b[s]);
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
