/* kernels/avx512.h - vectors of the AVX-512 level: F, BW, DQ and VL.
 *
 * kernels/avx2.h says what each function does. */
#ifndef TN_KERNELS_AVX512_H
#define TN_KERNELS_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "kernels/level.h"

#define LEVEL(name) name##_avx512

enum { LANES = 16 };
typedef float     vf __attribute__((vector_size(64)));
typedef int32_t   vi __attribute__((vector_size(64)));
typedef uint32_t  vu __attribute__((vector_size(64)));
typedef __mmask16 vm;

static inline vm either(vm a, vm b)     { return _kor_mask16(a, b); }
static inline bool any(vm m)            { return m != 0; }
static inline vm nans(vf v)             { return _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q); }
static inline vf least_f(vf a, vf b)    { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vf most_f(vf a, vf b)     { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vi least_i(vi a, vi b)    { return (vi)_mm512_min_epi32((__m512i)a, (__m512i)b); }
static inline vi most_i(vi a, vi b)     { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline vi nearest(vf v)          { return (vi)_mm512_cvtps_epi32((__m512)v); }

static inline vu left(vu v, unsigned n)
{
    return (vu)_mm512_sllv_epi32((__m512i)v, _mm512_set1_epi32((int)n));
}

static inline vu right(vu v, unsigned n)
{
    return (vu)_mm512_srlv_epi32((__m512i)v, _mm512_set1_epi32((int)n));
}

static inline vu narrow16(vu a, vu b)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return (vu)_mm512_permutexvar_epi64(order, _mm512_packus_epi32((__m512i)a, (__m512i)b));
}

static inline vu narrow8(const vu v[4])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i low = _mm512_packus_epi32((__m512i)v[0], (__m512i)v[1]);
    __m512i high = _mm512_packus_epi32((__m512i)v[2], (__m512i)v[3]);
    return (vu)_mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
}

/* Stores past the caches. */
static inline void stream_to(void *p, __m512i v)
{
    __m128i *to = p;
    _mm_stream_si128(to, _mm512_castsi512_si128(v));
    _mm_stream_si128(to + 1, _mm512_extracti32x4_epi32(v, 1));
    _mm_stream_si128(to + 2, _mm512_extracti32x4_epi32(v, 2));
    _mm_stream_si128(to + 3, _mm512_extracti32x4_epi32(v, 3));
}

static inline void put_vector(void *p, __m512i v, bool stream)
{
    if (stream)
        stream_to(p, v);
    else
        _mm512_storeu_si512(p, v);
}

/* The lower three bytes of each four, in the first 48 bytes. */
static inline __m512i three_of_four(__m512i v)
{
    const __m512i triples = _mm512_set4_epi32(-1, 0x0e0d0c0a, 0x09080605, 0x04020100);
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, _mm512_shuffle_epi8(v, triples));
}

#endif
