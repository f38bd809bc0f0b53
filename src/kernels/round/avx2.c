/* kernels/round/avx2.c - rounds float32 numbers with AVX2. */
#include "kernels/avx2.h"

typedef uint64_t vl __attribute__((vector_size(32)));

INLINE vu high_halves(vl a, vl b)
{
    __m256 halves = _mm256_shuffle_ps((__m256)a, (__m256)b, _MM_SHUFFLE(3, 1, 3, 1));
    return (vu)_mm256_permute4x64_pd((__m256d)halves, _MM_SHUFFLE(3, 1, 2, 0));
}

#include "kernels/round/template.h"
