/* kernels/quantize/avx512.c - quantization with AVX-512. */
#include "kernels/avx512.h"

typedef double    vd __attribute__((vector_size(64)));

static inline vf every_f(float x)          { return (vf)_mm512_set1_ps(x); }
static inline vi every_i(int32_t n)        { return (vi)_mm512_set1_epi32(n); }
static inline vf floats(const void *p)     { return (vf)_mm512_loadu_ps(p); }
static inline vi integers(const void *p)   { return (vi)_mm512_loadu_si512(p); }
static inline vi truncated(vf v)           { return (vi)_mm512_cvttps_epi32((__m512)v); }
static inline vf number(vi v)              { return (vf)_mm512_cvtepi32_ps((__m512i)v); }
static inline vi i8(const void *p)         { return (vi)_mm512_cvtepi8_epi32(_mm_loadu_si128(p)); }
static inline vi u8(const void *p)         { return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }
static inline vi i16(const void *p)        { return (vi)_mm512_cvtepi16_epi32(_mm256_loadu_si256(p)); }
static inline vi u16(const void *p)        { return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)); }

static inline vd every_d(double x)         { return (vd)_mm512_set1_pd(x); }
static inline vd least_d(vd a, vd b)       { return (vd)_mm512_min_pd((__m512d)a, (__m512d)b); }

typedef struct wide_sum {
    __m512i lanes;
} wide_sum;

static inline void add_whole(wide_sum *s, vd v)
{
    s->lanes = _mm512_add_epi64(s->lanes, _mm512_cvttpd_epi64((__m512d)v));
}

static inline uint64_t total(const wide_sum *s)
{
    return (uint64_t)_mm512_reduce_add_epi64(s->lanes);
}

static inline vd double_f(vf v, int k)
{
    return (vd)_mm512_cvtps_pd(k ? _mm512_extractf32x8_ps((__m512)v, 1) : _mm512_castps512_ps256((__m512)v));
}

static inline vd double_i(vi v, int k)
{
    return (vd)_mm512_cvtepi32_pd(k ? _mm512_extracti64x4_epi64((__m512i)v, 1)
                                    : _mm512_castsi512_si256((__m512i)v));
}

static inline vf signed_as(float x, vf v)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    return (vf)_mm512_or_si512((__m512i)_mm512_set1_ps(x), _mm512_and_si512((__m512i)v, sign));
}

static inline vm halves(vf v)
{
    return _mm512_cmp_ps_mask(_mm512_abs_ps((__m512)v), _mm512_set1_ps(0.5f), _CMP_EQ_OQ);
}

static inline vm beyond(vf v, vf limit)
{
    return _mm512_cmp_ps_mask(_mm512_abs_ps((__m512)v), (__m512)limit, _CMP_NLE_UQ);
}

static inline vf finite(vf v)
{
    const __m512i infinity = _mm512_set1_epi32(0x7f800000);
    return (vf)_mm512_maskz_mov_ps(
        _mm512_cmplt_epi32_mask(_mm512_and_si512((__m512i)v, _mm512_set1_epi32(INT32_MAX)), infinity),
        (__m512)v);
}

static inline void put_f(void *p, vf v, bool stream)
{
    if (stream)
        _mm512_stream_ps(p, (__m512)v);
    else
        _mm512_storeu_ps(p, (__m512)v);
}

static inline void put8(uint8_t *p, const vi v[4], bool stream)
{
    const __m512i byte = _mm512_set1_epi16(255);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i low = _mm512_and_si512(_mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]), byte);
    __m512i high = _mm512_and_si512(_mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]), byte);
    put_vector(p, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)), stream);
}

static inline void put16(uint8_t *p, const vi v[4], bool stream)
{
    for (int k = 0; k < 4; k += 2) {
        __m256i low = _mm512_cvtepi32_epi16((__m512i)v[k]), high = _mm512_cvtepi32_epi16((__m512i)v[k + 1]);
        put_vector(p + 32 * k, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), stream);
    }
}

#include "kernels/quantize/template.h"
