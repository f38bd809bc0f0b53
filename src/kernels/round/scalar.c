/* kernels/round/scalar.c - rounds float32 numbers on any CPU. */
#include "kernels/level.h"

#define LEVEL(name) name##_scalar

enum { LANES = 4 };
typedef float    vf __attribute__((vector_size(16)));
typedef int32_t  vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef uint64_t vl __attribute__((vector_size(16)));

INLINE vu high_halves(vl a, vl b)
{
    return (vu){ (uint32_t)(a[0] >> 32), (uint32_t)(a[1] >> 32), (uint32_t)(b[0] >> 32),
                 (uint32_t)(b[1] >> 32) };
}

#include "kernels/round/template.h"
