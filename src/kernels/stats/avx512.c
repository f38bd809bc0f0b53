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
#define plus_b(a, b)  _mm512_add_epi8(a, b)
#define least_b(a, b) _mm512_min_epu8(a, b)
#define most_b(a, b)  _mm512_max_epu8(a, b)

/* Sign and exponent of 32 floats in 16 bits each, without the sign. */
static inline __m512i exponents16(const uint8_t *p)
{
    __m512i a = _mm512_srli_epi32(_mm512_loadu_si512(p), 23),
            b = _mm512_srli_epi32(_mm512_loadu_si512(p + 64), 23);
    return _mm512_and_si512(_mm512_packs_epi32(a, b), _mm512_set1_epi16(255));
}

static inline __m512i exponents(const uint8_t *p)
{
    return _mm512_packus_epi16(exponents16(p), exponents16(p + 128));
}

/* Adds a and b to *sum, bit by bit; returns the carries. */
static inline __m512i carry(__m512i *sum, __m512i a, __m512i b)
{
    __m512i s = *sum;
    *sum = _mm512_ternarylogic_epi64(s, a, b, 0x96);            /* s ^ a ^ b */
    return _mm512_ternarylogic_epi64(s, a, b, 0xe8);            /* at least two of the three */
}

/* counts[j] += weight for every byte whose bit j is set. */
static inline void count_bits(uint64_t counts[8], __m512i v, unsigned weight)
{
    for (int j = 0; j < 8; j++)
        counts[j] += weight * (uint64_t)__builtin_popcountll(
                                  _mm512_test_epi8_mask(v, _mm512_set1_epi8((char)(1 << j))));
}

/* 64 bytes: bit j of each tells whether it is base + j. */
static inline __m512i which(const uint8_t *p, __m512i base)
{
    const __m512i bits = _mm512_set4_epi32(0, 0, (int)0x80402010u, 0x08040201);
    __m512i offset = _mm512_sub_epi8(_mm512_loadu_si512(p), base);
    /* above 15: the top bit, so 0 */
    return _mm512_shuffle_epi8(bits, _mm512_adds_epu8(offset, _mm512_set1_epi8(0x70)));
}

/* Counts the bytes base ... base + 7 among n, a multiple of 1024.  Bits are added
 * in planes of ones, twos, fours and eights; only sixteens are counted. */
static void count_eight(uint64_t counts[8], const uint8_t *list, size_t n, unsigned value)
{
    __m512i base = _mm512_set1_epi8((char)value), ones = _mm512_setzero_si512(), twos = ones, fours = ones,
            eights = ones;
    for (size_t i = 0; i < n; i += 1024) {
        __m512i quad[4];
        for (size_t q = 0; q < 4; q++) {
            const uint8_t *p = list + i + 256 * q;
            __m512i a = carry(&ones, which(p, base), which(p + 64, base));
            __m512i b = carry(&ones, which(p + 128, base), which(p + 192, base));
            quad[q] = carry(&twos, a, b);
        }
        __m512i c = carry(&fours, quad[0], quad[1]), d = carry(&fours, quad[2], quad[3]);
        count_bits(counts, carry(&eights, c, d), 16);
    }
    count_bits(counts, eights, 8);
    count_bits(counts, fours, 4);
    count_bits(counts, twos, 2);
    count_bits(counts, ones, 1);
}

/* The list is padded with a value that is not counted. */
static void count_range(uint64_t counts[256 + 8], uint8_t *list, size_t n, unsigned least, unsigned most)
{
    size_t whole = (n + 1023) / 1024 * 1024;
    memset(list + n, 0, whole - n);
    for (unsigned e = least; e <= most; e += 8) {
        memset(counts + e, 0, 8 * sizeof *counts);
        count_eight(counts + e, list, whole, e);
    }
}

#include "kernels/stats/template.h"
