/* kernels/blocks/eight_x86.h - what template.h needs of 8 values and of 32 codes, for both levels of x86. */
#ifndef TN_KERNELS_BLOCKS_EIGHT_X86_H
#define TN_KERNELS_BLOCKS_EIGHT_X86_H

#include <immintrin.h>

#include "kernels/blocks/bytes.h"

static inline float half_float(const uint8_t *p)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(p[0] | p[1] << 8)));
}

static inline eight_f eight_of_4(const float table[4], eight_u index)
{
    return (eight_f)_mm256_permutevar_ps(_mm256_broadcast_ps((const void *)table), (__m256i)index);
}

static inline eight_f eight_of_8(const float table[8], eight_u index)
{
    return (eight_f)_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
}

static inline void put_past(float *y, eight_f v)
{
    _mm_stream_ps(y, _mm256_castps256_ps128((__m256)v));
    _mm_stream_ps(y + 4, _mm256_extractf128_ps((__m256)v, 1));
}

static inline eight_f widen(const int8_t q[8])
{
    return (eight_f)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)q)));
}

static inline void put_half_quickly(uint8_t *p, float v)
{
    int h = _mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(v), _MM_FROUND_TO_NEAREST_INT));
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

static inline void put_bytes(uint8_t q[32], const eight_i v[4])
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_packus_epi32((__m256i)v[0], (__m256i)v[1]);
    __m256i high = _mm256_packus_epi32((__m256i)v[2], (__m256i)v[3]);
    _mm256_storeu_si256((void *)q, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
}

static inline eight_i within(eight_i v, int low, int high)
{
    __m256i more = _mm256_max_epi32((__m256i)v, _mm256_set1_epi32(low));
    return (eight_i)_mm256_min_epi32(more, _mm256_set1_epi32(high));
}

static inline uint32_t fifth_bits(const int8_t q[32])
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(_mm256_loadu_si256((const void *)q), 3));
}

static inline void look_up(int8_t q[32], const uint8_t b[16], const int8_t table[16])
{
    const __m128i low = _mm_set1_epi8(15), values = _mm_loadu_si128((const void *)table);
    __m128i bytes = _mm_loadu_si128((const void *)b);
    _mm_storeu_si128((void *)q, _mm_shuffle_epi8(values, _mm_and_si128(bytes, low)));
    bytes = _mm_srli_epi16(bytes, 4);
    _mm_storeu_si128((void *)(q + 16), _mm_shuffle_epi8(values, _mm_and_si128(bytes, low)));
}

#endif
