/* kernels/stats/avx2.c - tallies with AVX2. */
#include <immintrin.h>
#include <string.h>

#include "kernels/stats/table.h"

#define LEVEL(name) name##_avx2
#define BYTES 32

typedef __m256d vd;
typedef __m256  vf;
typedef __m256i vb;

#define every(x)      _mm256_set1_pd(x)
#define wide(p)       _mm256_cvtps_pd(_mm_loadu_ps((const void *)(p)))
#define doubles(p)    _mm256_loadu_pd(p)
#define floats(p)     _mm256_loadu_ps((const void *)(p))
#define of_bf16(p) \
    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p))), 16))
#define of_f16(p)     _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define add_square(s, x) _mm256_fmadd_pd(x, x, s)
#define least(a, b)   _mm256_min_ps(a, b)
#define most(a, b)    _mm256_max_ps(a, b)
#define put_d(p, v)   _mm256_storeu_pd(p, v)
#define put_f(p, v)   _mm256_storeu_ps(p, v)
#define put_b(p, v)   _mm256_storeu_si256((void *)(p), v)
#define every_b(n)    _mm256_set1_epi8((char)(n))
#define most_b(a, b)  _mm256_max_epu8(a, b)
#define load_b(p)     _mm256_loadu_si256((const void *)(p))
#define least_u16(a, b) _mm256_min_epu16(a, b)
#define most_u16(a, b) _mm256_max_epu16(a, b)
#define most_i16(a, b) _mm256_max_epi16(a, b)

static inline __m256d half(__m256 v, size_t upper)
{
    return _mm256_cvtps_pd(upper ? _mm256_extractf128_ps(v, 1) : _mm256_castps256_ps128(v));
}

/* The exponents of 16 floats in 16 bits each. */
static inline __m256i exponents16(__m256 low, __m256 high)
{
    __m256i a = _mm256_srli_epi32(_mm256_castps_si256(low), 23),
            b = _mm256_srli_epi32(_mm256_castps_si256(high), 23);
    return _mm256_and_si256(_mm256_packs_epi32(a, b), _mm256_set1_epi16(255));
}

static inline __m256i exponents(const __m256 v[4])
{
    return _mm256_packus_epi16(exponents16(v[0], v[1]), exponents16(v[2], v[3]));
}

static inline __m256i exponents_bf16(const uint8_t *p)
{
    const __m256i low = _mm256_set1_epi16(255);
    return _mm256_packus_epi16(_mm256_and_si256(_mm256_srli_epi16(load_b(p), 7), low),
                               _mm256_and_si256(_mm256_srli_epi16(load_b(p + 32), 7), low));
}

static inline __m256d even(const uint8_t *p)
{
    __m128i v = _mm_loadu_si128((const void *)p);
    return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(v, 16)));
}

static inline __m256d odd(const uint8_t *p)
{
    __m128i v = _mm_loadu_si128((const void *)p);
    return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_and_si128(v, _mm_set1_epi32((int)0xffff0000u))));
}

static inline __m256i carry(__m256i *sum, __m256i a, __m256i b)
{
    __m256i s = *sum, differ = _mm256_xor_si256(a, b);
    *sum = _mm256_xor_si256(s, differ);
    return _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(s, differ));
}

static inline uint64_t ones_of(__m256i v, unsigned j)
{
    __m256i top = _mm256_sll_epi16(v, _mm_cvtsi32_si128((int)(7 - j)));
    return (uint64_t)__builtin_popcount((unsigned)_mm256_movemask_epi8(top));
}

static inline __m256i which(const uint8_t *p, unsigned base)
{
    const __m256i bits = _mm256_broadcastsi128_si256(_mm_set_epi32(0, 0, (int)0x80402010u, 0x08040201));
    __m256i offset = _mm256_sub_epi8(load_b(p), _mm256_set1_epi8((char)base));
    /* above 15: the top bit, so 0 */
    return _mm256_shuffle_epi8(bits, _mm256_adds_epu8(offset, _mm256_set1_epi8(0x70)));
}

static inline uint64_t below(const uint8_t *p, unsigned limit)
{
    __m256i v = load_b(p), last = _mm256_set1_epi8((char)(limit - 1));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(v, last), v));
}

#include "kernels/stats/template.h"
