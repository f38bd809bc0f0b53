/* kernels/lookup/avx2.c - codes as other tools lay them, with AVX2. */
#include <immintrin.h>
#include <math.h>

#include "kernels/lookup/table.h"

enum { AT_ONCE = 32 };

/* Both halves of 16 bytes as bytes of their own, the high one first. */
INLINE __m256i halves(const uint8_t *packed)
{
    const __m128i low = _mm_set1_epi8(15);
    __m128i bytes = _mm_loadu_si128((const void *)packed);
    __m128i first = _mm_and_si128(_mm_srli_epi16(bytes, 4), low), second = _mm_and_si128(bytes, low);
    return _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second));
}

typedef struct lookup {
    __m256 low, high, scale;
} lookup;

/* The topmost bit of a code chooses the half of the table. */
INLINE void put_8(float *y, const lookup *l, __m128i codes)
{
    const __m256 nan = _mm256_set1_ps(NAN);
    __m256i index = _mm256_cvtepu8_epi32(codes);
    __m256 v = _mm256_blendv_ps(_mm256_permutevar8x32_ps(l->low, index),
                                _mm256_permutevar8x32_ps(l->high, index),
                                _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
    v = _mm256_mul_ps(v, l->scale);
    v = _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    _mm256_storeu_ps(y, v);
}

static void fours_avx2(float *restrict y, const uint8_t *restrict packed, size_t n, const float table[16],
                       float scale)
{
    const lookup l = { _mm256_loadu_ps(table), _mm256_loadu_ps(table + 8), _mm256_set1_ps(scale) };
    size_t i = 0;
    for (; n - i >= AT_ONCE; i += AT_ONCE) {
        __m256i codes = halves(packed + i / 2);
        __m128i a = _mm256_castsi256_si128(codes), b = _mm256_extracti128_si256(codes, 1);
        put_8(y + i, &l, a);
        put_8(y + i + 8, &l, _mm_srli_si128(a, 8));
        put_8(y + i + 16, &l, b);
        put_8(y + i + 24, &l, _mm_srli_si128(b, 8));
    }
    tn_lookup_fours_scalar(y + i, packed + i / 2, n - i, table, scale);
}

static void swap_halves_avx2(uint8_t *restrict out, const uint8_t *restrict in, size_t n)
{
    const __m256i low = _mm256_set1_epi8(15);
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i v = _mm256_loadu_si256((const void *)(in + i));
        __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
        v = _mm256_or_si256(_mm256_slli_epi16(_mm256_and_si256(v, low), 4), high);
        _mm256_storeu_si256((void *)(out + i), v);
    }
    tn_lookup_swap_halves_scalar(out + i, in + i, n - i);
}

/* Codes of 32 words in place r and r + 1, which are the halves of byte r / 2: 32 bytes, in order. */
INLINE __m256i bytes_of(const __m256i v[4], unsigned r)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), byte = _mm256_set1_epi32(255);
    const __m128i shift = _mm_cvtsi32_si128((int)(4 * r));
    __m256i a = _mm256_and_si256(_mm256_srl_epi32(v[0], shift), byte);
    __m256i b = _mm256_and_si256(_mm256_srl_epi32(v[1], shift), byte);
    __m256i c = _mm256_and_si256(_mm256_srl_epi32(v[2], shift), byte);
    __m256i d = _mm256_and_si256(_mm256_srl_epi32(v[3], shift), byte);
    __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    return _mm256_permutevar8x32_epi32(packed, order);
}

/* The low halves of neighbours in one byte: 16 bytes. */
INLINE void put_low(uint8_t *out, __m256i codes)
{
    const __m256i join = _mm256_set1_epi16(1 | 16 << 8);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_and_si256(codes, _mm256_set1_epi8(15)), join);
    pairs = _mm256_packus_epi16(pairs, pairs);
    pairs = _mm256_permute4x64_epi64(pairs, _MM_SHUFFLE(3, 1, 2, 0));
    _mm_storeu_si128((void *)out, _mm256_castsi256_si128(pairs));
}

static void eights_avx2(uint8_t *const out[8], const uint32_t *restrict words, size_t n)
{
    size_t i = 0;
    for (; n - i >= AT_ONCE; i += AT_ONCE) {
        __m256i v[4];
        for (unsigned k = 0; k < 4; k++)
            v[k] = _mm256_loadu_si256((const void *)(words + i + 8 * k));
        for (unsigned r = 0; r < 8; r += 2) {
            __m256i both = bytes_of(v, r);
            put_low(out[r] + i / 2, both);
            put_low(out[r + 1] + i / 2, _mm256_srli_epi16(both, 4));
        }
    }
    tn_lookup_eights_from(out, words, i, n);
}

void tn_lookup_kernels_init_avx2(tn_lookup_kernels *k)
{
    k->fours = fours_avx2;
    k->swap_halves = swap_halves_avx2;
    k->eights = eights_avx2;
}
