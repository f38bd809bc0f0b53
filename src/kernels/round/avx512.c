/* kernels/round/avx512.c - rounds float32 numbers with AVX-512. */
#include "kernels/avx512.h"

typedef uint64_t vl __attribute__((vector_size(64)));

INLINE vu high_halves(vl a, vl b)
{
    __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return (vu)_mm512_permutex2var_epi32((__m512i)a, odd, (__m512i)b);
}

#include "kernels/round/template.h"
