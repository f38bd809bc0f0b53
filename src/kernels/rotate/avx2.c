/* kernels/rotate/avx2.c - rotations with AVX2. */
#include "kernels/avx2.h"
#include "kernels/rotate/table.h"

/* The first lane of a pair becomes their sum, the second their difference. */
INLINE vf inside(vf v, unsigned bit)
{
    vf partner;
    switch (bit) {
    case 0:
        partner = (vf)_mm256_permute_ps((__m256)v, 0xb1);
        return (vf)_mm256_blend_ps((__m256)(v + partner), (__m256)(partner - v), 0xaa);
    case 1:
        partner = (vf)_mm256_permute_ps((__m256)v, 0x4e);
        return (vf)_mm256_blend_ps((__m256)(v + partner), (__m256)(partner - v), 0xcc);
    default:
        partner = (vf)_mm256_permute2f128_ps((__m256)v, (__m256)v, 1);
        return (vf)_mm256_blend_ps((__m256)(v + partner), (__m256)(partner - v), 0xf0);
    }
}

INLINE vf without_nan(vf v)
{
    __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(TN_ROTATE_NAN));
    return (vf)_mm256_blendv_ps((__m256)v, nan, _mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q));
}

INLINE vf low(vf a, vf b)  { return (vf)_mm256_unpacklo_ps((__m256)a, (__m256)b); }
INLINE vf high(vf a, vf b) { return (vf)_mm256_unpackhi_ps((__m256)a, (__m256)b); }

INLINE void turn(vf v[2])
{
    __m256 a = (__m256)v[0], b = (__m256)v[1];
    v[0] = (vf)_mm256_permute2f128_ps(a, b, 0x20);
    v[1] = (vf)_mm256_permute2f128_ps(a, b, 0x31);
}

#include "kernels/rotate/template.h"
