/* kernels/blocks/avx2.c - block types with AVX2. */
#include "kernels/avx2.h"
#include "kernels/blocks/eight_x86.h"

#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15

static inline vm above(vf a, vf b)          { return (vm)(a > b); }
static inline vm same(vf a, vf b)           { return (vm)(a == b); }
static inline vf pick(vm m, vf a, vf b)     { return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m); }
static inline unsigned lane_bits(vm m)      { return (unsigned)_mm256_movemask_ps((__m256)m); }
static inline vf roots(vf v)                { return (vf)_mm256_sqrt_ps((__m256)v); }
static inline vi more_in(vm m, vi v)        { return v - m; }
static inline vi less_in(vm m, vi v)        { return v + m; }
static inline vf rough_inverse(vf v)        { return (vf)_mm256_rcp_ps((__m256)v); }

static inline vf rounded(vf v)
{
    return (vf)_mm256_round_ps((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}

static inline vu widen_points(const uint16_t *p)
{
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
}

static inline vf look4(const float table[4], vu index)
{
    return (vf)_mm256_permutevar_ps(_mm256_broadcast_ps((const void *)table), (__m256i)index);
}

static inline vf look8(const float table[8], vu index)
{
    return (vf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
}

static inline vf least_lane(vf v)
{
    __m256 m = _mm256_min_ps((__m256)v, _mm256_permute2f128_ps((__m256)v, (__m256)v, 1));
    m = _mm256_min_ps(m, _mm256_permute_ps(m, 0x4e));
    return (vf)_mm256_min_ps(m, _mm256_permute_ps(m, 0xb1));
}

static inline vf look16(const float table[16], vi index)
{
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index);
    return (vf)_mm256_blendv_ps(low, high, (__m256)(index << 28));
}

static inline void put_halves(uint8_t *p, vf v)
{
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

#include "kernels/blocks/template.h"
