/* kernels/round/neon.c - rounds float32 numbers with NEON. */
#include "kernels/neon.h"

typedef uint64_t vl __attribute__((vector_size(16)));

INLINE vu high_halves(vl a, vl b)
{
    return (vu)vuzp2q_u32((uint32x4_t)a, (uint32x4_t)b);
}

#include "kernels/round/template.h"
