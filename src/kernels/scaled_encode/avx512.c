/* kernels/scaled_encode/avx512.c - encoding scaled tiles with AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { LANES = 16 };
typedef float    vf __attribute__((vector_size(64)));
typedef int32_t  vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));

#define FUSED 1
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31

static inline vf least_f(vf a, vf b)       { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vf most_f(vf a, vf b)        { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vi least_i(vi a, vi b)       { return (vi)_mm512_min_epi32((__m512i)a, (__m512i)b); }
static inline vi most_i(vi a, vi b)        { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline vu most_u(vu a, vu b)        { return (vu)_mm512_max_epu32((__m512i)a, (__m512i)b); }
static inline vu right(vu v, unsigned n)
{
    return (vu)_mm512_srlv_epi32((__m512i)v, _mm512_set1_epi32((int)n));
}
static inline vf fused(vf a, vf b, vf c)   { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
static inline vi nearest(vf v)             { return (vi)_mm512_cvtps_epi32((__m512)v); }
static inline vi spread(vi v, vi order)
{
    return (vi)_mm512_permutexvar_epi32((__m512i)order, (__m512i)v);
}

static inline vi pick(vi a, vi b, vi x, vi y)
{
    return (vi)_mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b), (__m512i)y,
                                       (__m512i)x);
}

static inline vf smaller(vf x, vf limit)
{
    enum { LEAST_MAGNITUDE = 2, NO_SIGN = 2 };
    return (vf)_mm512_range_ps((__m512)x, (__m512)limit, NO_SIGN << 2 | LEAST_MAGNITUDE);
}

/* Packing works within 128-bit lanes; the permutations put their parts in order. */
static inline void put8(uint8_t *p, const vu v[4])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i low = _mm512_packus_epi32((__m512i)v[0], (__m512i)v[1]),
            high = _mm512_packus_epi32((__m512i)v[2], (__m512i)v[3]);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
}

static inline void put16(uint8_t *p, const vu v[4])
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for (int k = 0; k < 4; k += 2)
        _mm512_storeu_si512(p + 32 * k, _mm512_permutexvar_epi64(
                                            order, _mm512_packus_epi32((__m512i)v[k], (__m512i)v[k + 1])));
}

static inline uint64_t squeeze(uint64_t w, unsigned bits)
{
    return _pext_u64(w, UINT64_C(0x0101010101010101) * ((1u << bits) - 1));
}

/* Pairs of codes in 16 bits, whose low bytes are put in order. */
static inline void put_fours(uint8_t *p, const uint8_t *codes)
{
    const __m512i weights = _mm512_set1_epi16(0x1001), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i low = _mm512_maddubs_epi16(_mm512_loadu_si512(codes), weights);
    __m512i high = _mm512_maddubs_epi16(_mm512_loadu_si512(codes + 64), weights);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi64(order, _mm512_packus_epi16(low, high)));
}

#define FOUR(f, i)    f(i), f((i) + 1), f((i) + 2), f((i) + 3)
#define SIXTEEN(f, i) FOUR(f, i), FOUR(f, (i) + 4), FOUR(f, (i) + 8), FOUR(f, (i) + 12)
#define THREE_OF_FOUR(i) ((i) / 3 * 4 + (i) % 3) & 63

/* Pairs of codes in 16 bits, then fours in 32, of which three bytes are used. */
static inline void put_sixes(uint8_t *p, const uint8_t *codes)
{
    static const uint8_t order[64] = { SIXTEEN(THREE_OF_FOUR, 0), SIXTEEN(THREE_OF_FOUR, 16),
                                       SIXTEEN(THREE_OF_FOUR, 32) };
    __m512i pairs = _mm512_maddubs_epi16(_mm512_loadu_si512(codes), _mm512_set1_epi16(0x4001));
    __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x10000001));
    _mm512_mask_storeu_epi8(p, ((__mmask64)1 << 48) - 1,
                            _mm512_permutexvar_epi8(_mm512_loadu_si512(order), fours));
}

#include "kernels/scaled_encode/template.h"

void tn_encode_kernels_init_avx512(tn_encode_kernels *k)
{
    set_kernels(k);
}
#else
typedef int tn_no_scaled_encode_avx512; /* ISO C wants something in a file */
#endif
