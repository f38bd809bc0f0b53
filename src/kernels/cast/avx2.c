/* kernels/cast/avx2.c - casts with AVX2 and F16C. */
#include "kernels/avx2.h"

static inline vm above(vu a, vu b)  { return (vi)a > (vi)b; }
static inline vm both(vm a, vm b)   { return a & b; }
static inline vm differ(vf a, vf b) { return a != b; }
static inline vm outside(vf x, float low, float high) { return ~((x >= low) & (x < high)); }

static inline vu pick(vm m, vu a, vu b)
{
    return (vu)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
}

static inline vf clamp(vf x, float low, float high)
{
    /* Both give their second operand where one is NaN. */
    return (vf)_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), (__m256)x));
}

static inline void widen8(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 4; j++)
        v[j] = (vu)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p + 8 * j)));
}

static inline void widen16(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 4; j++)
        v[j] = (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p + 16 * j)));
}

static inline void narrow24(uint8_t *p, vu v)
{
    const __m256i triples = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
                                             0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i order = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 3);
    _mm256_storeu_si256((void *)p,
                        _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8((__m256i)v, triples), order));
}

static inline vu widen24(const uint8_t *p)
{
    const __m256i fours = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,
                                           4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    __m256i bytes = _mm256_loadu2_m128i((const void *)(p + 8), (const void *)p);    /* 24 bytes and no more */
    return (vu)_mm256_shuffle_epi8(bytes, fours);
}

static inline void widen_f16(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 4; j++)
        v[j] = (vu)_mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + 16 * j)));
}

static inline vu narrow_f16(vu a, vu b)
{
    return (vu)_mm256_set_m128i(_mm256_cvtps_ph((__m256)b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                                _mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline void put(uint8_t *p, vu v, bool stream)
{
    if (stream)
        _mm256_stream_si256((void *)p, (__m256i)v);
    else
        _mm256_storeu_si256((void *)p, (__m256i)v);
}

#include "kernels/cast/template.h"
