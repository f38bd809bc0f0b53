/* kernels/rotate/avx512.c - rotations with AVX-512. */
#include "kernels/avx512.h"
#include "kernels/rotate/table.h"

/* The first lane of a pair becomes their sum, the second their difference. */
INLINE vf joined(vf v, vf partner, __mmask16 second)
{
    return (vf)_mm512_mask_sub_ps((__m512)(v + partner), second, (__m512)partner, (__m512)v);
}

INLINE vf inside(vf v, unsigned bit)
{
    switch (bit) {
    case 0:  return joined(v, (vf)_mm512_permute_ps((__m512)v, 0xb1), 0xaaaa);
    case 1:  return joined(v, (vf)_mm512_permute_ps((__m512)v, 0x4e), 0xcccc);
    case 2:  return joined(v, (vf)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0xb1), 0xf0f0);
    default: return joined(v, (vf)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0x4e), 0xff00);
    }
}

INLINE vf without_nan(vf v)
{
    __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(TN_ROTATE_NAN));
    return (vf)_mm512_mask_mov_ps((__m512)v, _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q), nan);
}

INLINE vf low(vf a, vf b)  { return (vf)_mm512_unpacklo_ps((__m512)a, (__m512)b); }
INLINE vf high(vf a, vf b) { return (vf)_mm512_unpackhi_ps((__m512)a, (__m512)b); }

INLINE void turn(vf v[4])
{
    __m512 a = (__m512)v[0], b = (__m512)v[1], c = (__m512)v[2], d = (__m512)v[3];
    __m512 ab = _mm512_shuffle_f32x4(a, b, 0x44), ab2 = _mm512_shuffle_f32x4(a, b, 0xee);
    __m512 cd = _mm512_shuffle_f32x4(c, d, 0x44), cd2 = _mm512_shuffle_f32x4(c, d, 0xee);
    v[0] = (vf)_mm512_shuffle_f32x4(ab, cd, 0x88);
    v[1] = (vf)_mm512_shuffle_f32x4(ab, cd, 0xdd);
    v[2] = (vf)_mm512_shuffle_f32x4(ab2, cd2, 0x88);
    v[3] = (vf)_mm512_shuffle_f32x4(ab2, cd2, 0xdd);
}

#include "kernels/rotate/template.h"
