/* kernels/scaled_decode/avx512.c - decodes codes with scales, with AVX-512. */
#include "kernels/avx512.h"
#include "kernels/scaled_decode/table.h"

static inline vf floats(const void *p)     { return (vf)_mm512_loadu_ps(p); }
static inline vf every_f(float x)          { return (vf)_mm512_set1_ps(x); }
static inline vu every_u(uint32_t n)       { return (vu)_mm512_set1_epi32((int)n); }
static inline vm below(vu a, vu b)         { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
static inline vm equal(vu a, vu b)         { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
static inline vu pick(vm m, vu a, vu b)    { return (vu)_mm512_mask_blend_epi32(m, (__m512i)b, (__m512i)a); }
static inline vf number(vu v)              { return (vf)_mm512_cvtepi32_ps((__m512i)v); }
static inline vu power(vu v)               { return (vu)_mm512_sllv_epi32(_mm512_set1_epi32(1), (__m512i)v); }
static inline vf spread(vf v, vu index)    { return (vf)_mm512_permutexvar_ps((__m512i)index, (__m512)v); }
static inline vf spread_two(vf v, vf w, vu index)
{
    return (vf)_mm512_permutex2var_ps((__m512)v, (__m512i)index, (__m512)w);
}
static inline void put(float *p, vf v, bool stream)
{
    put_vector(p, (__m512i)v, stream);
}

static inline vf eight(const float *p)     { return (vf)_mm512_broadcast_f32x8(_mm256_loadu_ps(p)); }
static inline vf gather(const float *p, vu index) { return (vf)_mm512_i32gather_ps((__m512i)index, p, 4); }

static inline vf eights(const float *p, const uint8_t *k)
{
    __m256 first = _mm256_loadu_ps(p + (size_t)k[0] * 8), second = _mm256_loadu_ps(p + (size_t)k[1] * 8);
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1);
}

static inline vu words(const void *p, unsigned width)
{
    if (width == 0)
        return (vu)_mm512_cvtepu8_epi32(_mm_loadu_si128(p));
    return width == 1 ? (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)) : (vu)_mm512_loadu_si512(p);
}

#include "kernels/scaled_decode/halves_x86.h"

static inline void widen_halves(vf v[1], __m256i halves)
{
    v[0] = (vf)_mm512_cvtph_ps(halves);
}

#define UNPACK k->unpack

/* ---- N:M sparsity ---- */

static inline void expand_word(float *restrict y, const float *restrict slots, uint64_t mask, size_t step,
                               bool stream)
{
    for (size_t k = 0; k < 4; k++) {
        __m512 some = _mm512_loadu_ps(slots + k * step);
        put(y + 16 * k, (vf)_mm512_maskz_expand_ps((__mmask16)(mask >> 16 * k), some), stream);
    }
}

#include "kernels/scaled_decode/template.h"
