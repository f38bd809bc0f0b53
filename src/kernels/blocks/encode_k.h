/* kernels/blocks/encode_k.h - encoding super-blocks of 256 values: what all levels share.
 *
 * First each sub-block gets a scale (and a minimum) by a search.  Then these scales become codes of one
 * float16 scale.  Last, codes of values are made with the scales as they are stored; where a stored scale is
 * 0, those of the search stay. */
#ifndef TN_KERNELS_BLOCKS_ENCODE_K_H
#define TN_KERNELS_BLOCKS_ENCODE_K_H

#include "kernels/blocks/encode.h"

enum { TN_SUPER = 256, TN_MOST_SUBS = 16 };     /* values of a super-block, the most sub-blocks of one */

/* What the searches found, for each sub-block: see tn_found. */
typedef struct tn_subs {
    const float *scale, *min, *inverse, *from;
    const float *levels;        /* q3_K without importance: its codes before 4 is added... */
    size_t       stride;        /* ...of sub-block k from (k / stride * 16 * stride + k % stride) on */
} tn_subs;

/* Codes of scales and minima, and the scales of these, before they are float16. */
typedef struct tn_coded {
    float   d, dmin;
    uint8_t scale[TN_MOST_SUBS], min[TN_MOST_SUBS];
} tn_coded;

/* ---- scales with minima: q2_K, q4_K, q5_K ---- */

/* How sub-blocks of a type are searched. */
typedef struct tn_affine_type {
    tn_block block;
    unsigned count, size;       /* sub-blocks, values of each */
    int      scale_codes;       /* the highest code of a scale */
    float    importance_factor; /* of the mean square in weights */
    tn_search_range plain, weighted;
} tn_affine_type;

static const tn_affine_type tn_type_q2_K = {
    .block = TN_BLOCK_Q2_K, .count = 16, .size = 16, .scale_codes = 15, .importance_factor = 1,
    .plain = { .N = 3, .trials = 15, .first = -0.5f, .step = 0.1f, .by_magnitude = true },
    .weighted = { .N = 3, .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true },
};
static const tn_affine_type tn_type_q4_K = {
    .block = TN_BLOCK_Q4_K, .count = 8, .size = 32, .scale_codes = 63, .importance_factor = 2,
    .plain = { .N = 15, .trials = 20, .first = -1, .step = 0.1f },
    .weighted = { .N = 15, .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true },
};
static const tn_affine_type tn_type_q5_K = {
    .block = TN_BLOCK_Q5_K, .count = 8, .size = 32, .scale_codes = 63, .importance_factor = 2,
    .plain = { .N = 31, .trials = 15, .first = -0.5f, .step = 0.1f },
    .weighted = { .N = 31, .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true },
};

/* Codes of scales, or of minima, without importance, and their scale. */
INLINE float code_plainly(const float *scale, unsigned n, int highest, uint8_t *codes)
{
    float most = 0;
    for (unsigned k = 0; k < n; k++)
        most = scale[k] > most ? scale[k] : most;
    float i = most > 0 ? (float)highest / most : 0;
    for (unsigned k = 0; k < n; k++) {
        uint8_t code = (uint8_t)near(i * scale[k]);
        codes[k] = code < highest ? code : (uint8_t)highest;
    }
    return most / (float)highest;
}

/* Codes of the values of a sub-block. */
INLINE void code_sub_block(const float *x, unsigned n, int N, float scale, float min, uint8_t *codes)
{
    for (unsigned e = 0; e < n; e++)
        codes[e] = (uint8_t)clamp(near((x[e] + min) / scale), 0, N);
}

/* Stores the two scales at `at`, and makes codes of values. */
INLINE void code_values(const float *x, const tn_affine_type *t, const tn_subs *s, const tn_coded *c,
                        uint8_t *at, uint8_t *codes)
{
    float d = put_half(at, c->d), dmin = put_half(at + 2, c->dmin);
    for (unsigned k = 0; k < t->count; k++) {
        float scale = d * (float)c->scale[k], min = dmin * (float)c->min[k];
        unsigned e = k * t->size;
        if (scale != 0)
            code_sub_block(x + e, t->size, t->plain.N, scale, min, codes + e);
        else
            codes_above(x + e, t->size, t->plain.N, s->inverse[k], s->from[k], codes + e);
    }
}

/* Two bits of each of 128 values in 32 bytes, twice. */
INLINE void put_quarters(uint8_t *restrict qs, const uint8_t *restrict codes)
{
    for (unsigned h = 0; h < 2; h++, qs += 32, codes += 128)
        for (unsigned i = 0; i < 32; i++)
            qs[i] = (uint8_t)((codes[i] & 3) | (codes[i + 32] & 3) << 2 | (codes[i + 64] & 3) << 4 |
                              (codes[i + 96] & 3) << 6);
}

/* One bit of each value in 32 bytes: bit `from` of its code. */
INLINE void put_eighths(uint8_t *restrict qh, const uint8_t *restrict codes, unsigned from)
{
    for (unsigned i = 0; i < 32; i++) {
        unsigned bits = 0;
        for (unsigned j = 0; j < 8; j++)
            bits |= (codes[32 * j + i] >> from & 1u) << j;
        qh[i] = (uint8_t)bits;
    }
}

/* 6 bits of each scale and minimum in 12 bytes. */
INLINE void put_k_scales(uint8_t *sc, const tn_coded *c)
{
    for (unsigned k = 0; k < 4; k++) {
        unsigned scale = c->scale[k + 4], min = c->min[k + 4];
        sc[k] = (uint8_t)(c->scale[k] | scale >> 4 << 6);
        sc[k + 4] = (uint8_t)(c->min[k] | min >> 4 << 6);
        sc[k + 8] = (uint8_t)((scale & 15) | (min & 15) << 4);
    }
}

/* Low codes of 32 values and high ones of the next 32. */
INLINE void put_k_nibbles(uint8_t *restrict qs, const uint8_t *restrict codes)
{
    for (unsigned g = 0; g < 4; g++, qs += 32, codes += 64)
        for (unsigned i = 0; i < 32; i++)
            qs[i] = (uint8_t)((codes[i] & 15) | codes[i + 32] << 4);
}

INLINE void put_q2_K(const float *x, const tn_subs *s, const tn_coded *c, uint8_t *b)
{
    uint8_t codes[TN_SUPER];
    code_values(x, &tn_type_q2_K, s, c, b + 80, codes);
    for (unsigned k = 0; k < 16; k++)
        b[k] = (uint8_t)(c->scale[k] | c->min[k] << 4);
    put_quarters(b + 16, codes);
}

INLINE void put_q4_K(const float *x, const tn_subs *s, const tn_coded *c, uint8_t *b)
{
    uint8_t codes[TN_SUPER];
    code_values(x, &tn_type_q4_K, s, c, b, codes);
    put_k_scales(b + 4, c);
    put_k_nibbles(b + 16, codes);
}

INLINE void put_q5_K(const float *x, const tn_subs *s, const tn_coded *c, uint8_t *b)
{
    uint8_t codes[TN_SUPER];
    code_values(x, &tn_type_q5_K, s, c, b, codes);
    put_k_scales(b + 4, c);
    put_eighths(b + 16, codes, 4);
    put_k_nibbles(b + 48, codes);
}

/* ---- scales without minima: q3_K, q6_K ---- */

/* Codes of values around N; those of a scale of 0 are there already. */
INLINE void code_around(const float *x, float d, const int *scale, int N, uint8_t *codes)
{
    for (unsigned k = 0; k < 16; k++, x += 16, codes += 16) {
        float step = d * (float)scale[k];
        for (unsigned e = 0; e < 16 && step != 0; e++)
            codes[e] = (uint8_t)(clamp(near(x[e] / step), -N, N - 1) + N);
    }
}

/* The codes of the search of sub-blocks whose scale is 0. */
INLINE void keep_codes(const float *x, float d, const int *scale, int N, const tn_subs *s, uint8_t *codes)
{
    for (unsigned k = 0; k < 16; k++, x += 16, codes += 16) {
        if (d * (float)scale[k] != 0)
            continue;
        for (unsigned e = 0; e < 16 && s->levels; e++)
            codes[e] = (uint8_t)(s->levels[(k / s->stride * 16 + e) * s->stride + k % s->stride] + (float)N);
        if (!s->levels)
            codes_around(x, 16, N, s->inverse[k], codes);
    }
}

/* The scale of the scales of q3_K without importance, with their codes from 0 on. */
INLINE float code_q3_scales(const float *scale, uint8_t *codes)
{
    float most = first_largest(scale, 16), i = -32 / most;
    memset(codes, 0, 16);
    for (unsigned k = 0; k < 16 && most != 0; k++)
        codes[k] = (uint8_t)(clamp(near(i * scale[k]), -32, 31) + 32);
    return most != 0 ? 1 / i : 0;
}

INLINE void put_q3_K(const float *x, const tn_subs *s, const tn_coded *c, uint8_t *b)
{
    uint8_t codes[TN_SUPER];
    int scale[16];
    float d = put_half(b + 108, c->d);
    memset(b + 96, 0, 12);
    for (unsigned k = 0; k < 16; k++) {
        unsigned code = c->scale[k];
        b[96 + k % 8] |= (uint8_t)((code & 15) << 4 * (k / 8));
        b[104 + k % 4] |= (uint8_t)(code >> 4 << 2 * (k / 4));
        scale[k] = (int)code - 32;
    }
    keep_codes(x, d, scale, 4, s, codes);
    code_around(x, d, scale, 4, codes);
    put_eighths(b, codes, 2);
    put_quarters(b + 32, codes);
}

INLINE void put_q6_K(const float *x, const tn_subs *s, uint8_t *b)
{
    uint8_t codes[TN_SUPER];
    int scale[16];
    float most = first_largest(s->scale, 16), i = -128 / most;
    if (fabsf(most) < TN_GROUP_TINY) {
        memset(b, 0, 210);
        return;
    }
    float d = put_half(b + 208, 1 / i);
    for (unsigned k = 0; k < 16; k++) {
        int code = near(i * s->scale[k]);
        b[192 + k] = (uint8_t)(code < 127 ? code : 127);
        scale[k] = (int8_t)b[192 + k];
    }
    keep_codes(x, d, scale, 32, s, codes);
    code_around(x, d, scale, 32, codes);
    for (unsigned h = 0; h < 2; h++) {
        const uint8_t *q = codes + 128 * h;
        for (unsigned e = 0; e < 64; e++)
            b[64 * h + e] = (uint8_t)((q[e] & 15) | q[e + 64] << 4);
        for (unsigned e = 0; e < 32; e++)
            b[128 + 32 * h + e] = (uint8_t)(q[e] >> 4 | q[e + 32] >> 4 << 2 | q[e + 64] >> 4 << 4 |
                                            q[e + 96] >> 4 << 6);
    }
}

#endif
