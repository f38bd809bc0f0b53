/* kernels/lookup/avx512.c - codes as other tools lay them, with AVX-512.
 *
 * A table of bfloat16 numbers is a vector of 32 words: the 16 of one tile twice, so that the topmost bit of
 * an index does not matter, or those of two tiles. */
#include <immintrin.h>
#include <math.h>

#include "kernels/lookup/table.h"

/* ---- codes of 4 bits ---- */

/* Which operations make a value. */
typedef enum how_shifted { NOT_SHIFTED, SHIFTED_FIRST, SHIFTED_LAST } how_shifted;

/* Rounded to bfloat16, in the high halves. */
INLINE __m512i rounded(__m512 v)
{
    const __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
}

/* The 16 values of a tile, in the high halves. */
INLINE __m512i values_of(const tn_lookup_values *v, __m512 number, size_t tile, how_shifted how)
{
    const __m512 scale = _mm512_set1_ps(v->scale[tile]);
    __m512 value = number;
    if (how == NOT_SHIFTED)
        value = _mm512_mul_ps(number, scale);
    else if (how == SHIFTED_FIRST)
        value = _mm512_mul_ps(_mm512_sub_ps(number, _mm512_set1_ps(v->shift[tile])), scale);
    else
        value = _mm512_sub_ps(_mm512_mul_ps(number, scale), _mm512_set1_ps(v->shift[tile]));
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_mov_epi32(rounded(value), nan, _mm512_set1_epi32(0x7fc00000));
}

/* The high halves of 16 words, twice; or of 32. */
INLINE __m512i high_halves(__m512i a, __m512i b)
{
    const __m512i each_second = _mm512_add_epi16(_mm512_set1_epi16(1), _mm512_set_epi16(
        62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32,
        30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0));
    return _mm512_permutex2var_epi16(a, each_second, b);
}

/* The codes of 16 bytes in the low 4 bits of 32 words. */
INLINE __m512i codes_of(__m128i bytes, bool high_first)
{
    const __m512i wide = _mm512_cvtepu8_epi32(bytes);
    if (high_first)
        return _mm512_or_si512(_mm512_srli_epi32(wide, 4), _mm512_slli_epi32(wide, 16));
    return _mm512_or_si512(wide, _mm512_slli_epi32(wide, 12));
}

INLINE void put_tile(uint8_t *restrict y, const uint8_t *restrict packed, size_t n, __m512i table,
                     bool high_first)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i codes = codes_of(_mm_loadu_si128((const void *)(packed + i / 2)), high_first);
        _mm512_storeu_si512(y + 2 * i, _mm512_permutexvar_epi16(codes, table));
    }
    if (i < n) {                /* 16 */
        __m512i codes = codes_of(_mm_loadl_epi64((const void *)(packed + i / 2)), high_first);
        codes = _mm512_permutexvar_epi16(codes, table);
        _mm256_storeu_si256((void *)(y + 2 * i), _mm512_castsi512_si256(codes));
    }
}

/* Two tiles of 16 values: the table of the second is that of codes from 16 on. */
INLINE void put_two(uint8_t *restrict y, const uint8_t *restrict packed, __m512i table, bool high_first)
{
    const __m512i second = _mm512_set_epi64(0x10001000100010, 0x10001000100010, 0x10001000100010,
                                            0x10001000100010, 0, 0, 0, 0);
    __m512i codes = codes_of(_mm_loadu_si128((const void *)packed), high_first);
    codes = _mm512_or_si512(_mm512_and_si512(codes, _mm512_set1_epi16(15)), second);
    _mm512_storeu_si512(y, _mm512_permutexvar_epi16(codes, table));
}

INLINE void tiles_to_bf16(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles, size_t each,
                          const tn_lookup_values *v, how_shifted how, bool high_first)
{
    const __m512 number = _mm512_loadu_ps(v->number);
    size_t t = 0;
    for (; each == 16 && t + 2 <= tiles; t += 2, y += 64, packed += 16)
        put_two(y, packed, high_halves(values_of(v, number, t, how), values_of(v, number, t + 1, how)),
                high_first);
    for (; t < tiles; t++, y += 2 * each, packed += each / 2) {
        const __m512i values = values_of(v, number, t, how);
        put_tile(y, packed, each, high_halves(values, values), high_first);
    }
}

INLINE void ordered_to_bf16(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles, size_t each,
                            const tn_lookup_values *v, bool high_first)
{
    if (!v->shift)
        tiles_to_bf16(y, packed, tiles, each, v, NOT_SHIFTED, high_first);
    else if (v->shifts_first)
        tiles_to_bf16(y, packed, tiles, each, v, SHIFTED_FIRST, high_first);
    else
        tiles_to_bf16(y, packed, tiles, each, v, SHIFTED_LAST, high_first);
}

static void fours_to_bf16_avx512(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles,
                                 size_t each, const tn_lookup_values *values)
{
    if (values->high_first)
        ordered_to_bf16(y, packed, tiles, each, values, true);
    else
        ordered_to_bf16(y, packed, tiles, each, values, false);
}

/* ---- float8_e4m3fn ---- */

/* As in avx2.c: the first 16 numbers are looked up, and the exponents of others are added to that. */
static void e4m3_to_bf16_avx512(uint8_t *restrict y, const uint8_t *restrict codes, size_t n, float scale)
{
    const __m512i sixteen = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 first = _mm512_mul_ps(_mm512_cvtepi32_ps(sixteen), _mm512_set1_ps(0x1p-9f));
    const __m512i values = rounded(_mm512_mul_ps(first, _mm512_set1_ps(scale)));
    const __m512i table = high_halves(values, values), ones = _mm512_set1_epi16(0x7f);
    const size_t whole = tn_lookup_adds_exponents(scale) ? n / 32 * 32 : 0;
    size_t i = 0;
    for (; i < whole; i += 32) {
        const __m512i wide = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(codes + i)));
        const __m512i size = _mm512_and_si512(wide, ones);
        __m512i index = _mm512_and_si512(wide, _mm512_set1_epi16(7));
        index = _mm512_min_epu16(size, _mm512_or_si512(index, _mm512_set1_epi16(8)));
        __m512i value = _mm512_permutexvar_epi16(index, table);
        value = _mm512_add_epi16(value, _mm512_slli_epi16(_mm512_sub_epi16(size, index), 4));
        value = _mm512_xor_si512(value, _mm512_slli_epi16(_mm512_xor_si512(wide, size), 8));
        const __mmask32 nan = _mm512_cmpeq_epi16_mask(size, ones);
        _mm512_storeu_si512(y + 2 * i, _mm512_mask_mov_epi16(value, nan, _mm512_set1_epi16(0x7fc0)));
    }
    tn_lookup_e4m3_scalar(y + 2 * i, codes + i, n - i, scale);
}

void tn_lookup_kernels_init_avx512(tn_lookup_kernels *k)
{
    k->fours_to_bf16 = fours_to_bf16_avx512;
    k->e4m3_to_bf16 = e4m3_to_bf16_avx512;
}
