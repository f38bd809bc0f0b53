/* kernels/sparse/avx2.c - which elements stay, with AVX2.
 *
 * Elements are looked at in words of 64, a bit for each that stays. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sparse/table.h"

#define LEVEL(name) name##_avx2

enum { WORD = 64, BATCH = 8 };  /* elements */

typedef struct sieve256 {
    __m256i add, mask, limit;
} sieve256;

INLINE __m256i every(uint64_t x, size_t width)
{
    return width == 1 ? _mm256_set1_epi8((char)x) : width == 2 ? _mm256_set1_epi16((short)x) :
           width == 4 ? _mm256_set1_epi32((int)x) : _mm256_set1_epi64x((long long)x);
}

/* 64-bit numbers are compared as signed ones, with the highest bit turned. */
INLINE sieve256 sieve_of(const tn_sieve *s, size_t width)
{
    const uint64_t turn = width == 8 ? (uint64_t)1 << 63 : 0;
    return (sieve256){ every(s->add, width), every(s->mask, width), every(s->limit ^ turn, width) };
}

/* All bits of each element of a vector that is left out. */
INLINE __m256i left_out(sieve256 s, const uint8_t *p, size_t width)
{
    __m256i v = _mm256_loadu_si256((const void *)p);
    if (width == 1) {
        v = _mm256_and_si256(_mm256_add_epi8(v, s.add), s.mask);
        return _mm256_cmpeq_epi8(_mm256_max_epu8(v, s.limit), s.limit);
    }
    if (width == 2) {
        v = _mm256_and_si256(_mm256_add_epi16(v, s.add), s.mask);
        return _mm256_cmpeq_epi16(_mm256_max_epu16(v, s.limit), s.limit);
    }
    if (width == 4) {
        v = _mm256_and_si256(_mm256_add_epi32(v, s.add), s.mask);
        return _mm256_cmpeq_epi32(_mm256_max_epu32(v, s.limit), s.limit);
    }
    v = _mm256_and_si256(_mm256_add_epi64(v, s.add), s.mask);
    v = _mm256_cmpgt_epi64(_mm256_xor_si256(v, _mm256_set1_epi64x(INT64_MIN)), s.limit);
    return _mm256_xor_si256(v, _mm256_set1_epi64x(-1));
}

/* Bits of the elements that stay of 32 at p. */
INLINE uint32_t stays_32(sieve256 s, const uint8_t *p, size_t width)
{
    uint32_t out = 0;
    if (width == 1)
        out = (uint32_t)_mm256_movemask_epi8(left_out(s, p, 1));
    if (width == 2) {
        __m256i both = _mm256_packs_epi16(left_out(s, p, 2), left_out(s, p + 32, 2));
        out = (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8));
    }
    for (unsigned i = 0; i < 4 && width == 4; i++)
        out |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(left_out(s, p + 32 * i, 4))) << 8 * i;
    for (unsigned i = 0; i < 8 && width == 8; i++)
        out |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(left_out(s, p + 32 * i, 8))) << 4 * i;
    return ~out;
}

/* Of n elements, WORD at most: zeros after them, which do not stay. */
INLINE uint64_t stays(sieve256 s, const uint8_t *p, size_t n, size_t width)
{
    uint8_t last[WORD * sizeof(uint64_t)] = { 0 };
    if (n < WORD)
        p = memcpy(last, p, n * width);
    return stays_32(s, p, width) | (uint64_t)stays_32(s, p + 32 * width, width) << 32;
}

INLINE size_t count(const tn_sieve *sieve, const uint8_t *p, size_t n, size_t width)
{
    const sieve256 s = sieve_of(sieve, width);
    uint64_t k = 0;
    size_t i = 0;
    for (; n - i >= WORD; i += WORD) {
        for (size_t line = 0; line < width; line++)
            fetch_ahead(p + i * width + line * 64);
        k += (uint64_t)_mm_popcnt_u64(stays(s, p + i * width, WORD, width));
    }
    if (i < n)
        k += (uint64_t)_mm_popcnt_u64(stays(s, p + i * width, n - i, width));
    return k;
}

/* Puts the element of the lowest bit in place k. */
INLINE void take(uint64_t bits, const uint8_t *p, uint32_t base, uint8_t *values, uint8_t *places, size_t k,
                 size_t width)
{
    uint32_t i = (uint32_t)__builtin_ctzll(bits), place = base + i;
    if (values)
        memcpy(values + k * width, p + i * width, width);
    if (places)
        memcpy(places + k * sizeof place, &place, sizeof place);
}

/* Eight at a time while there is room, more than there are if need be: the next
 * ones write over those, and most words of a sparse tensor take the same way. */
INLINE size_t take_word(uint64_t bits, const uint8_t *p, uint32_t base, uint8_t *values, uint8_t *places,
                        size_t k, size_t room, size_t width)
{
    const uint64_t top = (uint64_t)1 << (WORD - 1);     /* something to find where there is nothing */
    size_t stay = (size_t)_mm_popcnt_u64(bits), end = k + stay;
    if (room - k < stay + BATCH) {
        for (; k < end; bits &= bits - 1)
            take(bits, p, base, values, places, k++, width);
        return end;
    }
    do {
        for (size_t i = 0; i < BATCH; i++, bits &= bits - 1)
            take(bits | top, p, base, values, places, k + i, width);
        k += BATCH;
    } while (k < end);
    return end;
}

INLINE size_t pick_words(const tn_sieve *sieve, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                         uint32_t base, size_t room, size_t width)
{
    const sieve256 s = sieve_of(sieve, width);
    size_t k = 0, i = 0;
    for (; n - i >= WORD; i += WORD) {
        for (size_t line = 0; line < width; line++)
            fetch_ahead(p + i * width + line * 64);
        k = take_word(stays(s, p + i * width, WORD, width), p + i * width, base + (uint32_t)i, values, places,
                      k, room, width);
    }
    for (uint64_t bits = i < n ? stays(s, p + i * width, n - i, width) : 0; bits; bits &= bits - 1)
        take(bits, p + i * width, base + (uint32_t)i, values, places, k++, width);
    return k;
}

/* --- four bytes: eight elements are pressed together at once ------------------------ */

/* Byte j of entry m: the number of the j-th bit of m that is set. */
#define LANE(m, i)   ((m) >> (i) & 1 ? (uint64_t)(i) << 8 * __builtin_popcount((m) & ((1 << (i)) - 1)) : 0)
#define ENTRY(m) (LANE(m, 1) | LANE(m, 2) | LANE(m, 3) | LANE(m, 4) | LANE(m, 5) | LANE(m, 6) | LANE(m, 7))
#define FOUR(m)      ENTRY(m), ENTRY((m) + 1), ENTRY((m) + 2), ENTRY((m) + 3)
#define SIXTEEN(m)   FOUR(m), FOUR((m) + 4), FOUR((m) + 8), FOUR((m) + 12)
#define SIXTYFOUR(m) SIXTEEN(m), SIXTEEN((m) + 16), SIXTEEN((m) + 32), SIXTEEN((m) + 48)

static const uint64_t together[256] = { SIXTYFOUR(0), SIXTYFOUR(64), SIXTYFOUR(128), SIXTYFOUR(192) };

INLINE size_t pick_fours(const tn_sieve *sieve, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                         uint32_t base, size_t room)
{
    const sieve256 s = sieve_of(sieve, 4);
    __m256i place = _mm256_add_epi32(_mm256_set1_epi32((int)base), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    size_t k = 0, i = 0;
    for (; n - i >= 8 && room - k >= 8; i += 8) {
        fetch_ahead(p + i * 4);
        unsigned out = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(left_out(s, p + i * 4, 4)));
        __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)&together[~out & 255]));
        if (values)
            _mm256_storeu_si256(
                (void *)(values + k * 4),
                _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)(p + i * 4)), order));
        if (places)
            _mm256_storeu_si256((void *)(places + k * 4), _mm256_permutevar8x32_epi32(place, order));
        place = _mm256_add_epi32(place, _mm256_set1_epi32(8));
        k += 8 - (size_t)_mm_popcnt_u32(out);
    }
    return k + pick_words(sieve, p + i * 4, n - i, values ? values + k * 4 : NULL,
                          places ? places + k * 4 : NULL, base + (uint32_t)i, room - k, 4);
}

INLINE size_t pick(const tn_sieve *s, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                   uint32_t base, size_t room, size_t width)
{
    return width == 4 ? pick_fours(s, p, n, values, places, base, room)
                      : pick_words(s, p, n, values, places, base, room, width);
}

#include "kernels/sparse/template.h"
