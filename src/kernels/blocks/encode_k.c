/* kernels/blocks/encode_k.c - encoding super-blocks of 256 values: the definition.
 *
 * First each sub-block gets a scale (and a minimum) and codes by a search.  Then these scales become codes
 * of one float16 scale.  Last, codes of values are made anew with the scales as they are stored, unless a
 * stored scale is 0: then those of the search stay. */
#include "kernels/blocks/encode.h"

enum { VALUES = 256, MOST = 16 };       /* sub-blocks */

typedef struct sub_blocks {
    float   scale[MOST], min[MOST];
    float   weight[MOST];       /* with importance: the sum of the weights of its values */
    uint8_t scale_code[MOST], min_code[MOST];
    uint8_t codes[VALUES];      /* of values */
} sub_blocks;

static float largest_above_0(const float *x, unsigned n)
{
    float most = 0;
    for (unsigned i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static float sum_of(const float *x, unsigned n)
{
    float sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* ---- scales with minima: q2_K, q4_K, q5_K ---- */

/* How sub-blocks of a type are searched. */
typedef struct affine_type {
    unsigned count, size;       /* sub-blocks, values of each */
    int      scale_codes;       /* the highest code of a scale */
    float    importance_factor; /* of the mean square in weights */
    tn_search_range plain, weighted;
} affine_type;

/* Without importance: of q2_K magnitudes, of the others magnitudes and what is usual in the sub-block. */
static void weigh_plain(const float *x, unsigned n, bool by_magnitude, float *w)
{
    float usual = by_magnitude ? 0 : sqrtf(sum_squares(x, n) / (float)n);
    for (unsigned i = 0; i < n; i++)
        w[i] = usual + fabsf(x[i]);
}

static void search_affine(const float *x, const float *q, const affine_type *t, sub_blocks *s)
{
    float w[32], mean_square = q ? t->importance_factor * sum_squares(x, VALUES) / VALUES : 0;
    for (unsigned k = 0; k < t->count; k++) {
        unsigned at = k * t->size;
        if (q)
            weigh(x + at, q + at, mean_square, t->size, w);
        else
            weigh_plain(x + at, t->size, t->plain.by_magnitude, w);
        s->weight[k] = sum_of(w, t->size);
        s->scale[k] = tn_search_affine(x + at, w, t->size, q ? &t->weighted : &t->plain, s->codes + at,
                                       &s->min[k]);
    }
}

/* Codes of scales, or of minima, and the float16 scale of them. */
static float code_scales(const float *scale, const float *weight, unsigned n, int highest, uint8_t *codes)
{
    if (weight)
        return tn_search_positive(scale, weight, n, highest, codes);
    float most = largest_above_0(scale, n), i = most > 0 ? (float)highest / most : 0;
    for (unsigned k = 0; k < n; k++) {
        uint8_t code = (uint8_t)near(i * scale[k]);
        codes[k] = code < highest ? code : (uint8_t)highest;
    }
    return most / (float)highest;
}

static void code_values(const float *x, const affine_type *t, float d, float dmin, sub_blocks *s)
{
    for (unsigned k = 0; k < t->count; k++) {
        float scale = d * (float)s->scale_code[k], min = dmin * (float)s->min_code[k];
        for (unsigned e = k * t->size; e < (k + 1) * t->size && scale != 0; e++)
            s->codes[e] = (uint8_t)clamp(near((x[e] + min) / scale), 0, t->plain.N);
    }
}

/* Stores the two scales at `at`. */
static void encode_affine(const float *x, const float *q, const affine_type *t, uint8_t *at, sub_blocks *s)
{
    search_affine(x, q, t, s);
    const float *weight = q ? s->weight : NULL;
    float d = put_half(at, code_scales(s->scale, weight, t->count, t->scale_codes, s->scale_code));
    float dmin = put_half(at + 2, code_scales(s->min, weight, t->count, t->scale_codes, s->min_code));
    code_values(x, t, d, dmin, s);
}

/* Two bits of each of 128 values in 32 bytes, twice. */
static void put_quarters(uint8_t *qs, const uint8_t *codes)
{
    memset(qs, 0, 64);
    for (unsigned e = 0; e < VALUES; e++)
        qs[32 * (e / 128) + e % 32] |= (uint8_t)((codes[e] & 3) << 2 * (e / 32 % 4));
}

static void q2_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const affine_type type = {
        .count = 16, .size = 16, .scale_codes = 15, .importance_factor = 1,
        .plain = { .N = 3, .trials = 15, .first = -0.5f, .step = 0.1f, .by_magnitude = true },
        .weighted = { .N = 3, .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true },
    };
    sub_blocks s;
    (void)mean_square;
    encode_affine(x, q, &type, b + 80, &s);
    for (unsigned k = 0; k < 16; k++)
        b[k] = (uint8_t)(s.scale_code[k] | s.min_code[k] << 4);
    put_quarters(b + 16, s.codes);
}

/* 6 bits of each scale and minimum in 12 bytes. */
static void put_k_scales(uint8_t *sc, const sub_blocks *s)
{
    for (unsigned k = 0; k < 4; k++) {
        unsigned scale = s->scale_code[k + 4], min = s->min_code[k + 4];
        sc[k] = (uint8_t)(s->scale_code[k] | scale >> 4 << 6);
        sc[k + 4] = (uint8_t)(s->min_code[k] | min >> 4 << 6);
        sc[k + 8] = (uint8_t)((scale & 15) | (min & 15) << 4);
    }
}

/* Low codes of 32 values and high ones of the next 32. */
static void put_k_nibbles(uint8_t *qs, const uint8_t *codes)
{
    for (unsigned i = 0; i < 128; i++) {
        const uint8_t *pair = codes + 64 * (i / 32) + i % 32;
        qs[i] = (uint8_t)((pair[0] & 15) | pair[32] << 4);
    }
}

static void q4_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const affine_type type = {
        .count = 8, .size = 32, .scale_codes = 63, .importance_factor = 2,
        .plain = { .N = 15, .trials = 20, .first = -1, .step = 0.1f },
        .weighted = { .N = 15, .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true },
    };
    sub_blocks s;
    (void)mean_square;
    encode_affine(x, q, &type, b, &s);
    put_k_scales(b + 4, &s);
    put_k_nibbles(b + 16, s.codes);
}

static void q5_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const affine_type type = {
        .count = 8, .size = 32, .scale_codes = 63, .importance_factor = 2,
        .plain = { .N = 31, .trials = 15, .first = -0.5f, .step = 0.1f },
        .weighted = { .N = 31, .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true },
    };
    sub_blocks s;
    (void)mean_square;
    encode_affine(x, q, &type, b, &s);
    put_k_scales(b + 4, &s);
    memset(b + 16, 0, 32);
    for (unsigned e = 0; e < VALUES; e++)
        b[16 + e % 32] |= (uint8_t)((s.codes[e] >> 4) << e / 32);
    put_k_nibbles(b + 48, s.codes);
}

/* ---- scales without minima: q3_K, q6_K ---- */

/* Codes of values around N. */
static void code_around(const float *x, float d, const int *scale, int N, uint8_t *codes)
{
    for (unsigned k = 0; k < 16; k++) {
        float step = d * (float)scale[k];
        for (unsigned e = 16 * k; e < 16 * k + 16 && step != 0; e++)
            codes[e] = (uint8_t)(clamp(near(x[e] / step), -N, N - 1) + N);
    }
}

static void search_q3(const float *x, const float *q, sub_blocks *s)
{
    float w[16], mean_square = q ? 2 * sum_squares(x, VALUES) / VALUES : 0;
    for (unsigned k = 0; k < 16; k++) {
        const float *values = x + 16 * k;
        if (!q) {
            s->scale[k] = tn_search_q3(values, 16, s->codes + 16 * k);
            continue;
        }
        weigh(values, q + 16 * k, mean_square, 16, w);
        s->weight[k] = sum_of(w, 16);
        s->scale[k] = tn_search_symmetric(values, w, 16, 4, s->codes + 16 * k);
    }
}

/* The scale of the scales, with their codes from 0 on. */
static float code_q3_scales(const float *q, sub_blocks *s)
{
    if (q)
        return tn_search_symmetric(s->scale, s->weight, 16, 32, s->scale_code);
    float most = first_largest(s->scale, 16), i = -32 / most;
    memset(s->scale_code, 0, 16);
    for (unsigned k = 0; k < 16 && most != 0; k++)
        s->scale_code[k] = (uint8_t)(clamp(near(i * s->scale[k]), -32, 31) + 32);
    return most != 0 ? 1 / i : 0;
}

static void q3_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    sub_blocks s;
    int scale[16];
    (void)mean_square;
    search_q3(x, q, &s);
    float d = put_half(b + 108, code_q3_scales(q, &s));
    memset(b, 0, 32);
    memset(b + 96, 0, 12);
    for (unsigned k = 0; k < 16; k++) {
        unsigned code = s.scale_code[k];
        b[96 + k % 8] |= (uint8_t)((code & 15) << 4 * (k / 8));
        b[104 + k % 4] |= (uint8_t)(code >> 4 << 2 * (k / 4));
        scale[k] = (int)code - 32;
    }
    code_around(x, d, scale, 4, s.codes);
    for (unsigned e = 0; e < VALUES; e++)
        b[e % 32] |= (uint8_t)((s.codes[e] > 3) << e / 32);
    put_quarters(b + 32, s.codes);
}

static void q6_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    sub_blocks s;
    int scale[16];
    (void)mean_square;
    for (unsigned k = 0; k < 16; k++)
        s.scale[k] = tn_search_symmetric(x + 16 * k, q ? q + 16 * k : NULL, 16, 32, s.codes + 16 * k);
    float most = first_largest(s.scale, 16), i = -128 / most;
    memset(b, 0, 210);
    if (fabsf(most) < TN_GROUP_TINY)
        return;
    float d = put_half(b + 208, 1 / i);
    for (unsigned k = 0; k < 16; k++) {
        int code = near(i * s.scale[k]);
        b[192 + k] = (uint8_t)(code < 127 ? code : 127);
        scale[k] = (int8_t)b[192 + k];
    }
    code_around(x, d, scale, 32, s.codes);
    for (unsigned e = 0; e < VALUES; e++) {
        unsigned h = e / 128, j = e / 32 % 4, at = e % 32;
        b[64 * h + 32 * (j % 2) + at] |= (uint8_t)((s.codes[e] & 15) << 4 * (j / 2));
        b[128 + 32 * h + at] |= (uint8_t)(s.codes[e] >> 4 << 2 * j);
    }
}

ENCODE_EACH(q2_K, 256, 84)
ENCODE_EACH(q3_K, 256, 110)
ENCODE_EACH(q4_K, 256, 144)
ENCODE_EACH(q5_K, 256, 176)
ENCODE_EACH(q6_K, 256, 210)

void tn_block_kernels_init_encode_k(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_Q2_K] = q2_K;
    k->encode[TN_BLOCK_Q3_K] = q3_K;
    k->encode[TN_BLOCK_Q4_K] = q4_K;
    k->encode[TN_BLOCK_Q5_K] = q5_K;
    k->encode[TN_BLOCK_Q6_K] = q6_K;
}
