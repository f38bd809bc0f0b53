/* kernels/blocks/bytes.h - vectors of 8 values and of 32 codes, whatever the level. */
#ifndef TN_KERNELS_BLOCKS_BYTES_H
#define TN_KERNELS_BLOCKS_BYTES_H

#include <string.h>

#include "kernels/level.h"

typedef uint8_t  bytes16 __attribute__((vector_size(16)));
typedef uint8_t  bytes32 __attribute__((vector_size(32)));
typedef float    eight_f __attribute__((vector_size(32)));
typedef int32_t  eight_i __attribute__((vector_size(32)));
typedef uint32_t eight_u __attribute__((vector_size(32)));

INLINE bytes16 take16(const uint8_t *p)     { bytes16 v; memcpy(&v, p, sizeof v); return v; }
INLINE bytes32 take32(const uint8_t *p)     { bytes32 v; memcpy(&v, p, sizeof v); return v; }
INLINE void put_eight(float *y, eight_f v)  { memcpy(y, &v, sizeof v); }
INLINE eight_f eight_numbers(eight_u v)     { return __builtin_convertvector((eight_i)v, eight_f); }

typedef union code_bytes {           /* signed */
    int8_t  q[32];
    bytes16 half[2];
    bytes32 all;
} code_bytes;

#endif
