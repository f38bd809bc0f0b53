/* kernels/blocks/encode_iq4.h - encoding iq4_nl and iq4_xs: what all levels share. */
#ifndef TN_KERNELS_BLOCKS_ENCODE_IQ4_H
#define TN_KERNELS_BLOCKS_ENCODE_IQ4_H

#include "kernels/blocks/encode.h"

enum { TN_IQ4_SIZE = 32 };      /* of a sub-block */

/* The middles between neighbours of tn_block_iq4. */
static const float tn_iq4_middle[15] = { -115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f,
                                         45.5f, 61, 79, 101 };

/* The code of the nearest value, in the middle the upper one; of NaN the last one. */
INLINE unsigned nearest_iq4(float v)
{
    unsigned code = 15;
    for (unsigned i = 0; i < 15; i++)
        code -= v < tn_iq4_middle[i];
    return code;
}

INLINE void put_iq4_codes(const float *x, float inverse_scale, uint8_t *qs)
{
    uint8_t codes[TN_IQ4_SIZE];
    for (unsigned e = 0; e < TN_IQ4_SIZE; e++)
        codes[e] = (uint8_t)nearest_iq4(inverse_scale * x[e]);
    put_nibbles(qs, codes);
}

INLINE void put_iq4_nl(const float *x, float d, uint8_t *b)
{
    put_half(b, d);
    put_iq4_codes(x, inverse(d), b + 2);
}

/* Of the scales of 8 sub-blocks. */
INLINE void put_iq4_xs(const float *x, const float *scale, uint8_t *b)
{
    float d = -first_largest(scale, 8) / 32, id = inverse(d);
    unsigned high = 0;
    put_half(b, d);
    memset(b + 4, 0, 4);
    for (unsigned s = 0; s < 8; s++) {
        int l = clamp(near(id * scale[s]), -32, 31);
        unsigned code = (unsigned)(l + 32);
        put_iq4_codes(x + TN_IQ4_SIZE * s, inverse(d * (float)l), b + 8 + 16 * s);
        b[4 + s / 2] |= (uint8_t)((code & 15) << 4 * (s % 2));
        high |= code >> 4 << 2 * s;
    }
    put16(b + 2, high);
}

#endif
