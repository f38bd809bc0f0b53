/* kernels/blocks/words.h - numbers in blocks, little-endian. */
#ifndef TN_KERNELS_BLOCKS_WORDS_H
#define TN_KERNELS_BLOCKS_WORDS_H

#include <string.h>

#include "kernels/half.h"

INLINE uint32_t word16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
INLINE uint32_t word32(const uint8_t *p) { return word16(p) | word16(p + 2) << 16; }

INLINE float half_at(const uint8_t *p) { return half_value(word16(p)); }

/* The scale of mxfp4: 2^(e - 128), a subnormal below 2^-126; 2^127 for 255. */
INLINE float mx_scale(uint8_t e)
{
    return tn_float_of(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23);
}

/* Half of the scale of nvfp4: bias 7, no sign; 0x7f is no NaN but 0, and the sign bit counts for nothing but
 * that. */
INLINE float nv_scale(uint8_t code)
{
    unsigned exponent = code >> 3 & 15u, mantissa = code & 7u;
    if (code == 0 || code == 0x7f)
        return 0;
    if (!exponent)
        return (float)mantissa * 0x1p-10f;
    return tn_float_of((exponent + 119) << 23 | mantissa << 20);
}

/* Nibble h (0 low, 1 high) of a byte. */
INLINE unsigned nibble(uint8_t byte, unsigned h) { return h ? byte >> 4 : byte & 15u; }

/* Scale and minimum of sub-block s of q4_K and q5_K: 6 bits each, in 12 bytes. */
INLINE void k_scale(const uint8_t *sc, unsigned s, unsigned *scale, unsigned *min)
{
    if (s < 4) {
        *scale = sc[s] & 63u;
        *min = sc[s + 4] & 63u;
    } else {
        *scale = (sc[s + 4] & 15u) | (unsigned)(sc[s - 4] >> 6) << 4;
        *min = (unsigned)(sc[s + 4] >> 4) | (unsigned)(sc[s] >> 6) << 4;
    }
}

/* Scale of sub-block s of q3_K: 6 bits, in 12 bytes. */
INLINE int k3_scale(const uint8_t *sc, unsigned s)
{
    unsigned low = nibble(sc[s % 8], s / 8), high = sc[8 + s % 4] >> (2 * (s / 4)) & 3u;
    return (int)(low | high << 4) - 32;
}

/* The eighth sign makes the number of set bits even. */
INLINE unsigned signs_of(unsigned seven) { return seven | (unsigned)__builtin_parity(seven) << 7; }

#endif
