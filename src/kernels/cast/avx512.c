/* kernels/cast/avx512.c - casts with AVX-512 F, BW, DQ and VL. */
#include "kernels/avx512.h"

static inline vm above(vu a, vu b)  { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
static inline vm both(vm a, vm b)   { return _kand_mask16(a, b); }
static inline vm differ(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ); }

static inline vm outside(vf x, float low, float high)
{
    return either(_mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(low), _CMP_NGE_UQ),
                  _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(high), _CMP_NLT_UQ));
}

static inline vu pick(vm m, vu a, vu b)
{
    return (vu)_mm512_mask_blend_epi32(m, (__m512i)b, (__m512i)a);
}

static inline vf clamp(vf x, float low, float high)
{
    /* Both give their second operand where one is NaN. */
    return (vf)_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), (__m512)x));
}

static inline void widen8(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 4; j++)
        v[j] = (vu)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p + 16 * j)));
}

static inline void widen16(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 4; j++)
        v[j] = (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p + 32 * j)));
}

static inline void narrow24(uint8_t *p, vu v)
{
    _mm512_storeu_si512(p, three_of_four((__m512i)v));
}

static inline vu widen24(const uint8_t *p)
{
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    const __m512i fours = _mm512_set4_epi32((int)0xff0b0a09, (int)0xff080706, (int)0xff050403,
                                            (int)0xff020100);
    __m512i triples = _mm512_permutexvar_epi32(order, _mm512_maskz_loadu_epi32(0xfff, p));
    return (vu)_mm512_shuffle_epi8(triples, fours);
}

static inline void widen_f16(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 4; j++)
        v[j] = (vu)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p + 32 * j)));
}

static inline vu narrow_f16(vu a, vu b)
{
    __m256i low = _mm512_cvtps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i high = _mm512_cvtps_ph((__m512)b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return (vu)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline void put(uint8_t *p, vu v, bool stream)
{
    if (stream)
        _mm512_stream_si512((void *)p, (__m512i)v);
    else
        _mm512_storeu_si512(p, (__m512i)v);
}

#include "kernels/cast/template.h"
