/* kernels/stats/avx512.c - tallies with AVX-512 (F, BW, DQ, VL). */
#include <immintrin.h>

#include "kernels/stats/table.h"

#define LEVEL(name) name##_avx512
#define BYTES 64

typedef __m512d vd;
typedef __m512  vf;
typedef __m512i vb;

#define every(x)      _mm512_set1_pd(x)
#define wide(p)       _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_loadu_si256((const void *)(p))))
#define doubles(p)    _mm512_loadu_pd(p)
#define floats(p)     _mm512_loadu_ps((const void *)(p))
#define of_bf16(p) \
    _mm512_castsi512_ps( \
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p))), 16))
#define of_f16(p)     _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define add_square(s, x) _mm512_fmadd_pd(x, x, s)
#define least(a, b)   _mm512_min_ps(a, b)
#define most(a, b)    _mm512_max_ps(a, b)
#define put_d(p, v)   _mm512_storeu_pd(p, v)
#define put_f(p, v)   _mm512_storeu_ps(p, v)
#define put_b(p, v)   _mm512_storeu_si512(p, v)
#define every_b(n)    _mm512_set1_epi8((char)(n))
#define most_b(a, b)  _mm512_max_epu8(a, b)
#define load_b(p)     _mm512_loadu_si512(p)
#define least_u16(a, b) _mm512_min_epu16(a, b)
#define most_u16(a, b) _mm512_max_epu16(a, b)
#define most_i16(a, b) _mm512_max_epi16(a, b)

static inline __m512d half(__m512 v, size_t upper)
{
    return _mm512_cvtps_pd(upper ? _mm512_extractf32x8_ps(v, 1) : _mm512_castps512_ps256(v));
}

/* The exponents of 32 floats in 16 bits each. */
static inline __m512i exponents16(__m512 low, __m512 high)
{
    __m512i a = _mm512_srli_epi32(_mm512_castps_si512(low), 23),
            b = _mm512_srli_epi32(_mm512_castps_si512(high), 23);
    return _mm512_and_si512(_mm512_packs_epi32(a, b), _mm512_set1_epi16(255));
}

static inline __m512i exponents(const __m512 v[4])
{
    return _mm512_packus_epi16(exponents16(v[0], v[1]), exponents16(v[2], v[3]));
}

static inline __m512i exponents_bf16(const uint8_t *p)
{
    const __m512i low = _mm512_set1_epi16(255);
    return _mm512_packus_epi16(_mm512_and_si512(_mm512_srli_epi16(_mm512_loadu_si512(p), 7), low),
                               _mm512_and_si512(_mm512_srli_epi16(_mm512_loadu_si512(p + 64), 7), low));
}

static inline __m512d even(const uint8_t *p)
{
    __m256i v = _mm256_loadu_si256((const void *)p);
    return _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(v, 16)));
}

static inline __m512d odd(const uint8_t *p)
{
    __m256i v = _mm256_loadu_si256((const void *)p);
    return _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000u))));
}

static inline __m512i carry(__m512i *sum, __m512i a, __m512i b)
{
    __m512i s = *sum;
    *sum = _mm512_ternarylogic_epi64(s, a, b, 0x96);            /* s ^ a ^ b */
    return _mm512_ternarylogic_epi64(s, a, b, 0xe8);            /* at least two of the three */
}

static inline uint64_t ones_of(__m512i v, unsigned j)
{
    return (uint64_t)__builtin_popcountll(_mm512_test_epi8_mask(v, _mm512_set1_epi8((char)(1 << j))));
}

static inline __m512i which(const uint8_t *p, unsigned base)
{
    const __m512i bits = _mm512_set4_epi32(0, 0, (int)0x80402010u, 0x08040201);
    __m512i offset = _mm512_sub_epi8(_mm512_loadu_si512(p), _mm512_set1_epi8((char)base));
    /* above 15: the top bit, so 0 */
    return _mm512_shuffle_epi8(bits, _mm512_adds_epu8(offset, _mm512_set1_epi8(0x70)));
}

static inline uint64_t below(const uint8_t *p, unsigned limit)
{
    return _cvtmask64_u64(_mm512_cmplt_epu8_mask(_mm512_loadu_si512(p), _mm512_set1_epi8((char)limit)));
}

#include "kernels/stats/template.h"
