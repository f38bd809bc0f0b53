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
#define plus_b(a, b)  _mm256_add_epi8(a, b)
#define least_b(a, b) _mm256_min_epu8(a, b)
#define most_b(a, b)  _mm256_max_epu8(a, b)

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const void *)p);
}

/* The exponents of 16 floats in 16 bits each. */
static inline __m256i exponents16(const uint8_t *p)
{
    __m256i a = _mm256_srli_epi32(load(p), 23), b = _mm256_srli_epi32(load(p + 32), 23);
    return _mm256_and_si256(_mm256_packs_epi32(a, b), _mm256_set1_epi16(255));
}

static inline __m256i exponents(const uint8_t *p)
{
    return _mm256_packus_epi16(exponents16(p), exponents16(p + 64));
}

/* How many of n bytes (a multiple of 128, at most 255 vectors) are this value. */
static uint64_t count_equal(const uint8_t *list, size_t n, unsigned value)
{
    uint64_t sums[4];
    __m256i v = _mm256_set1_epi8((char)value), zero = _mm256_setzero_si256();
    __m256i counts[4] = { zero, zero, zero, zero };
    for (size_t i = 0; i < n; i += 128)
        for (size_t k = 0; k < 4; k++)
            counts[k] = _mm256_sub_epi8(counts[k], _mm256_cmpeq_epi8(load(list + i + 32 * k), v));
    __m256i all =
        _mm256_add_epi8(_mm256_add_epi8(counts[0], counts[1]), _mm256_add_epi8(counts[2], counts[3]));
    _mm256_storeu_si256((void *)sums, _mm256_sad_epu8(all, zero));
    return sums[0] + sums[1] + sums[2] + sums[3];
}

/* One pass per value or, if there are too many values, one slower pass.  The list
 * is padded with a value that is not counted. */
static void count_range(uint64_t counts[256], uint8_t *list, size_t n, unsigned least, unsigned most)
{
    enum { MANY = 40 };
    size_t whole = (n + 127) / 128 * 128;
    memset(list + n, 0, whole - n);
    if (most - least >= MANY) {
        memset(counts, 0, 256 * sizeof *counts);
        tn_count_bytes(counts, list, whole);
        return;
    }
    for (unsigned e = least; e <= most; e++)
        counts[e] = count_equal(list, whole, e);
}

#include "kernels/stats/template.h"
