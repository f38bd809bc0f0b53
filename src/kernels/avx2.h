/* kernels/avx2.h - vectors of the AVX2 level, with F16C, FMA and BMI2.
 *
 * For files that include a template.h.  kernels/avx512.h has the same names;
 * so have the levels that define their own. */
#ifndef TN_KERNELS_AVX2_H
#define TN_KERNELS_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "kernels/level.h"

#define LEVEL(name) name##_avx2

enum { LANES = 8 };
typedef float    vf __attribute__((vector_size(32)));
typedef int32_t  vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
typedef vi       vm;            /* a mask of lanes */

static inline vm either(vm a, vm b)     { return a | b; }
static inline bool any(vm m)            { return !_mm256_testz_si256((__m256i)m, (__m256i)m); }
static inline vm nans(vf v)             { return (vm)_mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q); }

/* The minimum and the maximum; b where one is NaN. */
static inline vf least_f(vf a, vf b)    { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
static inline vf most_f(vf a, vf b)     { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
static inline vi least_i(vi a, vi b)    { return (vi)_mm256_min_epi32((__m256i)a, (__m256i)b); }
static inline vi most_i(vi a, vi b)     { return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b); }

/* Ties to even; any value if it does not fit. */
static inline vi nearest(vf v)          { return (vi)_mm256_cvtps_epi32((__m256)v); }

/* Shifts by a number of bits that is not a constant. */
static inline vu left(vu v, unsigned n)
{
    return (vu)_mm256_sllv_epi32((__m256i)v, _mm256_set1_epi32((int)n));
}

static inline vu right(vu v, unsigned n)
{
    return (vu)_mm256_srlv_epi32((__m256i)v, _mm256_set1_epi32((int)n));
}

/* The low halves of 2 vectors, the low bytes of 4; lanes hold no more than that.
 * Packing works within 128 bits; the permutation restores the order. */
static inline vu narrow16(vu a, vu b)
{
    return (vu)_mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)a, (__m256i)b), _MM_SHUFFLE(3, 1, 2, 0));
}

static inline vu narrow8(const vu v[4])
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_packus_epi32((__m256i)v[0], (__m256i)v[1]);
    __m256i high = _mm256_packus_epi32((__m256i)v[2], (__m256i)v[3]);
    return (vu)_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
}

/* Stores past the caches; p is aligned to 16. */
static inline void stream_to(void *p, __m256i v)
{
    __m128i *to = p;
    _mm_stream_si128(to, _mm256_castsi256_si128(v));
    _mm_stream_si128(to + 1, _mm256_extracti128_si256(v, 1));
}

/* Stores, if `stream` past the caches. */
static inline void put_vector(void *p, __m256i v, bool stream)
{
    if (stream)
        stream_to(p, v);
    else
        _mm256_storeu_si256(p, v);
}

#endif
