/* kernels/blocks/encode_iq4.c - encoding iq4_nl and iq4_xs: the definition. */
#include "kernels/blocks/encode.h"

enum { SIZE = 32 };             /* of a sub-block */

/* The code of the nearest value; of two the upper. */
static unsigned nearest(float v)
{
    unsigned low = 0, high = 15;
    if (v <= (float)tn_block_iq4[0])
        return 0;
    if (v >= (float)tn_block_iq4[15])
        return 15;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (v < (float)tn_block_iq4[middle])
            high = middle;
        else
            low = middle;
    }
    return v - (float)tn_block_iq4[low] < (float)tn_block_iq4[high] - v ? low : high;
}

static void try_scale(const float *x, const float *w, float inverse_scale, float *A, float *B)
{
    *A = *B = 0;
    for (unsigned e = 0; e < SIZE; e++) {
        float q = (float)tn_block_iq4[nearest(inverse_scale * x[e])];
        *A += w[e] * q * x[e];
        *B += w[e] * q * q;
    }
}

/* The scale of a sub-block; q NULL: values are weighted by their squares. */
static float find_scale(const float *x, const float *q, float mean_square)
{
    float w[SIZE], A, B, max = first_largest(x, SIZE), lowest = (float)tn_block_iq4[0];
    if (fabsf(max) < TN_GROUP_TINY)
        return 0;
    for (unsigned e = 0; e < SIZE && !q; e++)
        w[e] = x[e] * x[e];
    if (q)
        weigh(x, q, mean_square, SIZE, w);
    try_scale(x, w, 1 / (-max / lowest), &A, &B);
    float d = B > 0 ? A / B : 0, best = d * A;
    for (int k = -7; k <= 7; k++) {
        try_scale(x, w, ((float)k + lowest) / max, &A, &B);
        if (B > 0 && A * A > best * B) {
            d = A / B;
            best = d * A;
        }
    }
    return d;
}

static void put_codes(const float *x, float inverse_scale, uint8_t *qs)
{
    for (unsigned j = 0; j < 16; j++)
        qs[j] = (uint8_t)(nearest(inverse_scale * x[j]) | nearest(inverse_scale * x[j + 16]) << 4);
}

static void iq4_nl_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float d = find_scale(x, q, sum_squares(x, SIZE) * (2.0f / SIZE));
    (void)mean_square;
    put_half(b, d);
    put_codes(x, inverse(d), b + 2);
}

static void iq4_xs_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float scale[8], mean = sum_squares(x, 256) * (2.0f / 256);
    unsigned high = 0;
    (void)mean_square;
    for (unsigned s = 0; s < 8; s++)
        scale[s] = find_scale(x + SIZE * s, q ? q + SIZE * s : NULL, mean);
    float d = -first_largest(scale, 8) / 32, id = inverse(d);
    put_half(b, d);
    memset(b + 4, 0, 4);
    for (unsigned s = 0; s < 8; s++) {
        int l = clamp(near(id * scale[s]), -32, 31);
        put_codes(x + SIZE * s, inverse(d * (float)l), b + 8 + 16 * s);
        unsigned code = (unsigned)(l + 32);
        b[4 + s / 2] |= (uint8_t)((code & 15) << 4 * (s % 2));
        high |= code >> 4 << 2 * s;
    }
    put16(b + 2, high);
}

ENCODE_EACH(iq4_nl, 32, 18)
ENCODE_EACH(iq4_xs, 256, 136)

void tn_block_kernels_init_encode_iq4(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_IQ4_NL] = iq4_nl;
    k->encode[TN_BLOCK_IQ4_XS] = iq4_xs;
}
