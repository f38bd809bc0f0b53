/* kernels/blocks/avx512.c - block types with AVX-512. */
#include "kernels/avx512.h"
#include "kernels/blocks/eight_x86.h"

#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31

static inline vm above(vf a, vf b)      { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
static inline vm same(vf a, vf b)       { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ); }
static inline vf pick(vm m, vf a, vf b) { return (vf)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
static inline unsigned lane_bits(vm m)  { return m; }
static inline vf roots(vf v)            { return (vf)_mm512_sqrt_ps((__m512)v); }
static inline vf rough_inverse(vf v)    { return (vf)_mm512_rcp14_ps((__m512)v); }

static inline vi more_in(vm m, vi v)
{
    return (vi)_mm512_mask_add_epi32((__m512i)v, m, (__m512i)v, _mm512_set1_epi32(1));
}

static inline vi less_in(vm m, vi v)
{
    return (vi)_mm512_mask_sub_epi32((__m512i)v, m, (__m512i)v, _mm512_set1_epi32(1));
}

static inline vf rounded(vf v)
{
    return (vf)_mm512_roundscale_ps((__m512)v, _MM_FROUND_TO_NEAREST_INT);
}

static inline vu widen_points(const uint16_t *p)
{
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
}

static inline vf look4(const float table[4], vu index)
{
    return (vf)_mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(table)), (__m512i)index);
}

static inline vf look8(const float table[8], vu index)
{
    return (vf)_mm512_permutexvar_ps((__m512i)index, _mm512_broadcast_f32x8(_mm256_loadu_ps(table)));
}

static inline vf least_lane(vf v) { return (vf)_mm512_set1_ps(_mm512_reduce_min_ps((__m512)v)); }

static inline vf look16(const float table[16], vi index)
{
    return (vf)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(table));
}

static inline void put_halves(uint8_t *p, vf v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}

#include "kernels/blocks/template.h"
