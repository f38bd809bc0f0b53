/* kernels/half.h - the value of a float16. */
#ifndef TN_KERNELS_HALF_H
#define TN_KERNELS_HALF_H

#include "kernels/level.h"
#include "tensor/number.h"

/* The bits of a float32.  The multiplication changes the bias and normalises subnormals; NaN is quiet. */
INLINE uint32_t half_bits(uint32_t h)
{
    uint32_t sign = (h & 0x8000) << 16, magnitude = (h & 0x7fff) << 13;
    if (magnitude > 0x7c00u << 13)
        return sign | 0x7fc00000 | magnitude;
    if (magnitude == 0x7c00u << 13)
        return sign | 0x7f800000;
    return sign | tn_float_bits(tn_float_of(magnitude) * 0x1p112f);
}

INLINE float half_value(uint32_t h) { return tn_float_of(half_bits(h)); }

#endif
