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

/* ---- bfloat16 ---- */

typedef struct bytes_of_values {
    __m256i low, high;          /* of the bfloat16 of each code, in both halves */
} bytes_of_values;

INLINE __m256 eight_values(const tn_lookup_values *v, size_t tile, unsigned code)
{
    const __m256 number = _mm256_loadu_ps(v->number + code), scale = _mm256_set1_ps(v->scale[tile]);
    if (!v->shift)
        return _mm256_mul_ps(number, scale);
    const __m256 shift = _mm256_set1_ps(v->shift[tile]);
    if (v->shifts_first)
        return _mm256_mul_ps(_mm256_sub_ps(number, shift), scale);
    return _mm256_sub_ps(_mm256_mul_ps(number, scale), shift);
}

/* In the low halves. */
INLINE __m256i eight_rounded(__m256 v)
{
    const __m256i bits = _mm256_castps_si256(v), one = _mm256_set1_epi32(1);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(sum, _mm256_set1_epi32(0x7fc00000), nan), 16);
}

INLINE bytes_of_values table_of(const tn_lookup_values *v, size_t tile)
{
    __m256i all = _mm256_packus_epi32(eight_rounded(eight_values(v, tile, 0)),
                                      eight_rounded(eight_values(v, tile, 8)));
    all = _mm256_permute4x64_epi64(all, _MM_SHUFFLE(3, 1, 2, 0));
    __m256i low = _mm256_and_si256(all, _mm256_set1_epi16(255)), high = _mm256_srli_epi16(all, 8);
    __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), _MM_SHUFFLE(3, 1, 2, 0));
    return (bytes_of_values){ _mm256_permute4x64_epi64(both, _MM_SHUFFLE(1, 0, 1, 0)),
                              _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 2, 3, 2)) };
}

/* The values of 16 codes, in the 8 bytes from `packed` on. */
INLINE void put_16(uint8_t *y, __m128i bytes, const bytes_of_values *t, bool high_first)
{
    const __m128i mask = _mm_set1_epi8(15);
    __m128i low = _mm_and_si128(bytes, mask), high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
    __m128i codes = high_first ? _mm_unpacklo_epi8(high, low) : _mm_unpacklo_epi8(low, high);
    __m128i a = _mm_shuffle_epi8(_mm256_castsi256_si128(t->low), codes);
    __m128i b = _mm_shuffle_epi8(_mm256_castsi256_si128(t->high), codes);
    _mm_storeu_si128((void *)y, _mm_unpacklo_epi8(a, b));
    _mm_storeu_si128((void *)(y + 16), _mm_unpackhi_epi8(a, b));
}

/* The values of 32 codes. */
INLINE void put_32(uint8_t *y, __m128i bytes, const bytes_of_values *t, bool high_first)
{
    const __m128i mask = _mm_set1_epi8(15);
    __m128i low = _mm_and_si128(bytes, mask), high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
    __m128i first = high_first ? high : low, second = high_first ? low : high;
    __m256i codes = _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second));
    __m256i a = _mm256_shuffle_epi8(t->low, codes), b = _mm256_shuffle_epi8(t->high, codes);
    __m256i even = _mm256_unpacklo_epi8(a, b), odd = _mm256_unpackhi_epi8(a, b);
    _mm256_storeu_si256((void *)y, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((void *)(y + 32), _mm256_permute2x128_si256(even, odd, 0x31));
}

/* ---- two tiles of 16 values, of numbers that differ from the first 8 by their sign ---- */

static bool is_symmetric(const tn_lookup_values *v)
{
    bool same = !v->shift;
    for (unsigned i = 0; i < 8; i++)
        same &= isfinite(v->number[i]) && v->number[8 + i] == -v->number[i] &&
                !signbit(v->number[8 + i]) != !signbit(v->number[i]);
    return same;
}

/* Eight numbers times a finite scale, which are never NaN, in the low halves. */
INLINE __m256i eight_products(const tn_lookup_values *v, size_t tile)
{
    const __m256 number = _mm256_loadu_ps(v->number);
    const __m256i bits = _mm256_castps_si256(_mm256_mul_ps(number, _mm256_set1_ps(v->scale[tile])));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
}

/* A table of each tile in its half: the low bytes of 8 numbers, and their high bytes. */
INLINE __m256i two_tables(const tn_lookup_values *v, size_t tile)
{
    __m256i words = _mm256_packus_epi32(eight_products(v, tile), eight_products(v, tile + 1));
    words = _mm256_permute4x64_epi64(words, _MM_SHUFFLE(3, 1, 2, 0));
    return _mm256_packus_epi16(_mm256_and_si256(words, _mm256_set1_epi16(255)), _mm256_srli_epi16(words, 8));
}

INLINE void put_two(uint8_t *y, __m128i bytes, __m256i tables, bool high_first)
{
    const __m128i mask = _mm_set1_epi8(15);
    __m128i low = _mm_and_si128(bytes, mask), high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
    __m128i first = high_first ? high : low, second = high_first ? low : high;
    __m256i codes = _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second));
    __m256i eight = _mm256_set1_epi8(8), sign = _mm256_slli_epi16(_mm256_and_si256(codes, eight), 4);
    __m256i a = _mm256_shuffle_epi8(tables, _mm256_andnot_si256(eight, codes));
    __m256i b = _mm256_xor_si256(_mm256_shuffle_epi8(tables, _mm256_or_si256(codes, eight)), sign);
    __m256i even = _mm256_unpacklo_epi8(a, b), odd = _mm256_unpackhi_epi8(a, b);
    _mm256_storeu_si256((void *)y, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((void *)(y + 32), _mm256_permute2x128_si256(even, odd, 0x31));
}

INLINE void tiles_to_bf16(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles, size_t each,
                          const tn_lookup_values *values, bool high_first)
{
    const bool in_pairs = each == 16 && is_symmetric(values);
    for (size_t t = 0; t < tiles; t++) {
        if (in_pairs && t + 2 <= tiles && isfinite(values->scale[t]) && isfinite(values->scale[t + 1])) {
            put_two(y, _mm_loadu_si128((const void *)packed), two_tables(values, t), high_first);
            y += 64;
            packed += 16;
            t++;
            continue;
        }
        const bytes_of_values table = table_of(values, t);
        size_t i = 0;
        for (; i + 32 <= each; i += 32, y += 64, packed += 16)
            put_32(y, _mm_loadu_si128((const void *)packed), &table, high_first);
        for (; i < each; i += 16, y += 32, packed += 8)
            put_16(y, _mm_loadl_epi64((const void *)packed), &table, high_first);
    }
}

static void fours_to_bf16_avx2(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles, size_t each,
                               const tn_lookup_values *values)
{
    if (values->high_first)
        tiles_to_bf16(y, packed, tiles, each, values, true);
    else
        tiles_to_bf16(y, packed, tiles, each, values, false);
}

/* ---- float8_e4m3fn ---- */

/* Codes 0 to 15 stand for 0 to 15 times 2^-9.  Any other magnitude has the mantissa of one from 8 to 15 and a
 * larger exponent: the product has it too, because it is far from both ends of the range.  So 16 products are
 * made and looked up, and the difference of the codes is added where bfloat16 has its exponent. */
static void e4m3_to_bf16_avx2(uint8_t *restrict y, const uint8_t *restrict codes, size_t n, float scale)
{
    static const float first[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const float scales = scale * 0x1p-9f;
    const tn_lookup_values values = { .number = first, .scale = &scales };
    const bytes_of_values t = table_of(&values, 0);
    const __m256i ones = _mm256_set1_epi8(0x7f), zero = _mm256_setzero_si256();
    const size_t whole = tn_lookup_adds_exponents(scale) ? n / 32 * 32 : 0;
    size_t i = 0;
    for (; i < whole; i += 32) {
        const __m256i code = _mm256_loadu_si256((const void *)(codes + i));
        const __m256i size = _mm256_and_si256(code, ones);
        __m256i index = _mm256_or_si256(_mm256_and_si256(code, _mm256_set1_epi8(7)), _mm256_set1_epi8(8));
        index = _mm256_min_epu8(size, index);
        const __m256i low = _mm256_shuffle_epi8(t.low, index), more = _mm256_sub_epi8(size, index);
        __m256i high = _mm256_xor_si256(_mm256_shuffle_epi8(t.high, index), _mm256_xor_si256(code, size));
        __m256i a = _mm256_slli_epi16(_mm256_unpacklo_epi8(more, zero), 4);
        __m256i b = _mm256_slli_epi16(_mm256_unpackhi_epi8(more, zero), 4);
        a = _mm256_add_epi16(a, _mm256_unpacklo_epi8(low, high));
        b = _mm256_add_epi16(b, _mm256_unpackhi_epi8(low, high));
        const __m256i is_nan = _mm256_cmpeq_epi8(size, ones), nan = _mm256_set1_epi16(0x7fc0);
        if (_mm256_movemask_epi8(is_nan)) {
            a = _mm256_blendv_epi8(a, nan, _mm256_unpacklo_epi8(is_nan, is_nan));
            b = _mm256_blendv_epi8(b, nan, _mm256_unpackhi_epi8(is_nan, is_nan));
        }
        _mm256_storeu_si256((void *)(y + 2 * i), _mm256_permute2x128_si256(a, b, 0x20));
        _mm256_storeu_si256((void *)(y + 2 * i + 32), _mm256_permute2x128_si256(a, b, 0x31));
    }
    tn_lookup_e4m3_scalar(y + 2 * i, codes + i, n - i, scale);
}

/* ---- moving ---- */

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
    k->fours_to_bf16 = fours_to_bf16_avx2;
    k->e4m3_to_bf16 = e4m3_to_bf16_avx2;
    k->swap_halves = swap_halves_avx2;
    k->eights = eights_avx2;
}
