/* kernels/scaled_search/avx512.c - searching and selecting with AVX-512. */
#include "kernels/avx512.h"

typedef double    vd __attribute__((vector_size(64)));

static inline vm at_least(vf a, vf b)       { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ); }
static inline vm more(vi a, vi b)           { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
static inline vf where(vm m, vf x, vf y)    { return (vf)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x); }
static inline unsigned bits(vm m)           { return m; }
static inline vi shift_right(vi v, vi n)    { return (vi)_mm512_srlv_epi32((__m512i)v, (__m512i)n); }
static inline vi lanes_of(vi v, vi order)
{
    return (vi)_mm512_permutexvar_epi32((__m512i)order, (__m512i)v);
}
static inline vi bytes_to(const void *p)    { return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }
static inline void put_bytes(void *p, vi v) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8((__m512i)v)); }
static inline vd every_d(double x)          { return (vd)_mm512_set1_pd(x); }

static inline vi count(vi v, vm m)
{
    return (vi)_mm512_mask_add_epi32((__m512i)v, m, (__m512i)v, _mm512_set1_epi32(1));
}

static inline vi mapped(const void *table, vi which)
{
    return (vi)_mm512_permutexvar_epi32((__m512i)which, _mm512_loadu_si512(table));
}

static inline void compress(void *p, vi v, vm m, unsigned n)
{
    __m512i some = _mm512_maskz_compress_epi32(m, (__m512i)v);
    if (n == 8)
        _mm256_storeu_si256(p, _mm512_castsi512_si256(some));
    else
        _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1), some);
}

static inline void halves(vf v, vd d[2])
{
    d[0] = (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
    d[1] = (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}

static inline vd add_square(vd s, vd a)
{
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)a, (__m512d)s);
}

static inline vd add_difference(vd s, vd a, vd b)
{
    vd error = a - b;
    return s + error * error;
}

static inline double join_d(vd v)
{
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)v), _mm512_extractf64x4_pd((__m512d)v, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

static inline unsigned least_lane(const vd *v, unsigned n)
{
    __m512d a = (__m512d)v[0], b = (__m512d)v[n - 1], least = _mm512_min_pd(a, b);
    __m512d every = _mm512_set1_pd(_mm512_reduce_min_pd(least));
    unsigned found =
        _mm512_cmp_pd_mask(a, every, _CMP_EQ_OQ) | (unsigned)_mm512_cmp_pd_mask(b, every, _CMP_EQ_OQ) << 8;
    return (unsigned)__builtin_ctz(found);
}

#include "kernels/scaled_search/template.h"
