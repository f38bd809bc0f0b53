/* kernels/blocks/encode_iq4.c - encoding iq4_nl and iq4_xs: the definition. */
#include "kernels/blocks/encode_iq4.h"

enum { SIZE = TN_IQ4_SIZE };

static void try_scale(const float *x, const float *w, float inverse_scale, float *A, float *B)
{
    *A = *B = 0;
    for (unsigned e = 0; e < SIZE; e++) {
        float q = (float)tn_block_iq4[nearest_iq4(inverse_scale * x[e])];
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

static void iq4_nl_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    (void)mean_square;
    put_iq4_nl(x, find_scale(x, q, sum_squares(x, SIZE) * (2.0f / SIZE)), b);
}

static void iq4_xs_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float scale[8];
    mean_square = sum_squares(x, 256) * (2.0f / 256);
    for (unsigned s = 0; s < 8; s++)
        scale[s] = find_scale(x + SIZE * s, q ? q + SIZE * s : NULL, mean_square);
    put_iq4_xs(x, scale, b);
}

ENCODE_EACH(iq4_nl, 32, 18)
ENCODE_EACH(iq4_xs, 256, 136)

void tn_block_kernels_init_encode_iq4(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_IQ4_NL] = iq4_nl;
    k->encode[TN_BLOCK_IQ4_XS] = iq4_xs;
}
