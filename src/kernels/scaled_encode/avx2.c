/* kernels/scaled_encode/avx2.c - encodes scaled tiles with AVX2. */
#include "kernels/avx2.h"

#define FUSED 1
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15

static inline vu most_u(vu a, vu b)        { return (vu)_mm256_max_epu32((__m256i)a, (__m256i)b); }
static inline vf smaller(vf x, vf limit)   { return least_f((vf)((vi)x & INT32_MAX), limit); }
static inline vf fused(vf a, vf b, vf c)   { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
static inline vi spread(vi v, vi order)
{
    return (vi)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)order);
}

static inline vi pick(vi a, vi b, vi x, vi y)
{
    return (vi)_mm256_blendv_epi8((__m256i)y, (__m256i)x, _mm256_cmpgt_epi32((__m256i)a, (__m256i)b));
}

static inline void put8(uint8_t *p, const vu v[4], bool stream)
{
    put_vector(p, (__m256i)narrow8(v), stream);
}

static inline void put16(uint8_t *p, const vu v[4], bool stream)
{
    put_vector(p, (__m256i)narrow16(v[0], v[1]), stream);
    put_vector(p + sizeof(vu), (__m256i)narrow16(v[2], v[3]), stream);
}

static inline uint64_t squeeze(uint64_t w, unsigned bits)
{
    return _pext_u64(w, UINT64_C(0x0101010101010101) * ((1u << bits) - 1));
}

/* Joins pairs of codes in 16 bits and packs their low bytes. */
static inline void put_fours(uint8_t *p, const uint8_t *codes)
{
    const __m256i weights = _mm256_set1_epi16(0x1001);
    __m256i low = _mm256_maddubs_epi16(_mm256_loadu_si256((const void *)codes), weights);
    __m256i high = _mm256_maddubs_epi16(_mm256_loadu_si256((const void *)(codes + 32)), weights);
    _mm256_storeu_si256((void *)p, _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8));
}

/* Joins pairs of codes in 16 bits, then fours in the low 24 of 32 bits. */
static inline void put_sixes(uint8_t *p, const uint8_t *codes)
{
    const __m128i three_of_four = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_loadu_si256((const void *)codes), _mm256_set1_epi16(0x4001));
    __m256i fours = _mm256_shuffle_epi8(_mm256_madd_epi16(pairs, _mm256_set1_epi32(0x10000001)),
                                        _mm256_broadcastsi128_si256(three_of_four));
    __m256i all = _mm256_permutevar8x32_epi32(fours, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
    _mm_storeu_si128((void *)p, _mm256_castsi256_si128(all));
    _mm_storel_epi64((void *)(p + 16), _mm256_extracti128_si256(all, 1));
}

#include "kernels/scaled_encode/template.h"
