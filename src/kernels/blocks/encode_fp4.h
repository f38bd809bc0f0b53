/* kernels/blocks/encode_fp4.h - encoding 4-bit floats: what all levels share. */
#ifndef TN_KERNELS_BLOCKS_ENCODE_FP4_H
#define TN_KERNELS_BLOCKS_ENCODE_FP4_H

#include "kernels/blocks/encode.h"

/* The first code with the least distance. */
INLINE unsigned fp4_code(float x, float d)
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
INLINE int log2_of(float a)
{
    static const struct { int low, high; uint32_t n; } binades[] = {
        { -2, 1, 0 }, { -4, 3, 1 }, { -8, 7, 2 }, { -16, 15, 5 }, { -32, 31, 11 }, { -64, 63, 22 },
        { -127, 127, 44 },
    };
    uint32_t bits = tn_float_bits(a);
    int exponent = (int)(bits >> 23) - 127;
    unsigned i = 0;
    while (exponent < binades[i].low || exponent > binades[i].high)
        i++;
    return exponent + ((bits & 0x7fffff) >= 0x800000 - binades[i].n);
}

/* A scale without a sign: 4 bits of exponent, 3 of mantissa, rounded half up; 448 from 256 on. */
INLINE uint8_t nv_code(float v)
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

/* The scale of 32 values of mxfp4, by the largest magnitude. */
INLINE uint8_t mx_code(float most)
{
    int e = most != 0 ? log2_of(most) + 125 : 0;
    return (uint8_t)(e > 0 ? e : 0);
}

#endif
