/* kernels/strided.h - copies elements at any distance. */
#ifndef TN_KERNELS_STRIDED_H
#define TN_KERNELS_STRIDED_H

#include <string.h>

#include "kernels/level.h"

INLINE void tn_copy_sized(uint8_t *dst, int64_t dst_step, const uint8_t *src, int64_t src_step, size_t n,
                          size_t size)
{
    const int64_t to = dst_step * (int64_t)size, from = src_step * (int64_t)size;
    for (int64_t i = 0; i < (int64_t)n; i++)
        memcpy(dst + i * to, src + i * from, size);
}

/* Copies n elements of 1, 2, 4, 8 or 16 bytes.  Steps are in elements. */
static inline void tn_copy_strided(uint8_t *dst, int64_t dst_step, const uint8_t *src, int64_t src_step,
                                   size_t n, size_t size)
{
    switch (size) {             /* one loop per constant size */
    case 1:  tn_copy_sized(dst, dst_step, src, src_step, n, 1); break;
    case 2:  tn_copy_sized(dst, dst_step, src, src_step, n, 2); break;
    case 4:  tn_copy_sized(dst, dst_step, src, src_step, n, 4); break;
    case 8:  tn_copy_sized(dst, dst_step, src, src_step, n, 8); break;
    default: tn_copy_sized(dst, dst_step, src, src_step, n, 16); break;
    }
}

#endif
