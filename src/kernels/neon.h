/* kernels/neon.h - vectors of the NEON level, which every aarch64 has.
 *
 * kernels/avx2.h says what each function does. */
#ifndef TN_KERNELS_NEON_H
#define TN_KERNELS_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "kernels/level.h"

#define LEVEL(name) name##_neon

enum { LANES = 4 };
typedef float    vf __attribute__((vector_size(16)));
typedef int32_t  vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef vi       vm;

static inline vm either(vm a, vm b)         { return a | b; }
static inline bool any(vm m)                { return vmaxvq_u32((uint32x4_t)m) != 0; }
static inline vi nearest(vf v)              { return (vi)vcvtnq_s32_f32((float32x4_t)v); }
static inline vu left(vu v, unsigned n)     { return v << n; }
static inline vu right(vu v, unsigned n)    { return v >> n; }

static inline vu narrow16(vu a, vu b)
{
    return (vu)vuzp1q_u16((uint16x8_t)a, (uint16x8_t)b);
}

static inline vu narrow8(const vu v[4])
{
    return (vu)vuzp1q_u8((uint8x16_t)narrow16(v[0], v[1]), (uint8x16_t)narrow16(v[2], v[3]));
}

#endif
