/* kernels/scaled_encode/avx512.c - encodes scaled tiles with AVX-512. */
#include "kernels/avx512.h"

#define FUSED 1
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31

static inline vu most_u(vu a, vu b)        { return (vu)_mm512_max_epu32((__m512i)a, (__m512i)b); }
static inline vf fused(vf a, vf b, vf c)   { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
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

static inline void put8(uint8_t *p, const vu v[4], bool stream)
{
    put_vector(p, (__m512i)narrow8(v), stream);
}

static inline void put16(uint8_t *p, const vu v[4], bool stream)
{
    put_vector(p, (__m512i)narrow16(v[0], v[1]), stream);
    put_vector(p + sizeof(vu), (__m512i)narrow16(v[2], v[3]), stream);
}

static inline uint64_t squeeze(uint64_t w, unsigned bits)
{
    return _pext_u64(w, UINT64_C(0x0101010101010101) * ((1u << bits) - 1));
}

/* Joins pairs of codes in 16 bits and packs their low bytes. */
static inline void put_fours(uint8_t *p, const uint8_t *codes)
{
    const __m512i weights = _mm512_set1_epi16(0x1001), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i low = _mm512_maddubs_epi16(_mm512_loadu_si512(codes), weights);
    __m512i high = _mm512_maddubs_epi16(_mm512_loadu_si512(codes + 64), weights);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi64(order, _mm512_packus_epi16(low, high)));
}

/* Joins pairs of codes in 16 bits, then fours in the low 24 of 32 bits. */
static inline void put_sixes(uint8_t *p, const uint8_t *codes)
{
    __m512i pairs = _mm512_maddubs_epi16(_mm512_loadu_si512(codes), _mm512_set1_epi16(0x4001));
    __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x10000001));
    _mm512_mask_storeu_epi8(p, ((__mmask64)1 << 48) - 1, three_of_four(fours));
}

#include "kernels/scaled_encode/template.h"
