/* kernels/sparse/avx2.c - selects the entries of a sparse tensor, with AVX2.
 *
 * Elements are compared in groups of 64; a word has a bit for each that is kept. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sparse/table.h"

#define LEVEL(name) name##_avx2

enum { WORD = 64, BATCH = 8 };  /* elements */

typedef struct filter_vectors {
    __m256i add, mask, limit;
} filter_vectors;

INLINE __m256i every(uint64_t x, size_t width)
{
    switch (width) {
    case 1:  return _mm256_set1_epi8((char)x);
    case 2:  return _mm256_set1_epi16((short)x);
    case 4:  return _mm256_set1_epi32((int)x);
    default: return _mm256_set1_epi64x((long long)x);
    }
}

/* 64-bit numbers are compared as signed ones, with the highest bit inverted. */
INLINE filter_vectors vectors_of(const tn_filter *s, size_t width)
{
    const uint64_t turn = width == 8 ? (uint64_t)1 << 63 : 0;
    return (filter_vectors){ every(s->add, width), every(s->mask, width), every(s->limit ^ turn, width) };
}

/* All bits of each element of a vector that is dropped. */
INLINE __m256i dropped(filter_vectors s, const uint8_t *p, size_t width)
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

/* The bits of 32 elements: 1 if it is kept. */
INLINE uint32_t kept_32(filter_vectors s, const uint8_t *p, size_t width)
{
    uint32_t out = 0;
    if (width == 1)
        out = (uint32_t)_mm256_movemask_epi8(dropped(s, p, 1));
    if (width == 2) {
        __m256i both = _mm256_packs_epi16(dropped(s, p, 2), dropped(s, p + 32, 2));
        out = (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8));
    }
    for (unsigned i = 0; i < 4 && width == 4; i++)
        out |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(dropped(s, p + 32 * i, 4))) << 8 * i;
    for (unsigned i = 0; i < 8 && width == 8; i++)
        out |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(dropped(s, p + 32 * i, 8))) << 4 * i;
    return ~out;
}

/* The bits of n elements, at most WORD.  Zeros after them are dropped. */
INLINE uint64_t kept_bits(filter_vectors s, const uint8_t *p, size_t n, size_t width)
{
    uint8_t last[WORD * sizeof(uint64_t)] = { 0 };
    if (n < WORD)
        p = memcpy(last, p, n * width);
    return kept_32(s, p, width) | (uint64_t)kept_32(s, p + 32 * width, width) << 32;
}

INLINE size_t count(const tn_filter *filter, const uint8_t *p, size_t n, size_t width)
{
    const filter_vectors s = vectors_of(filter, width);
    uint64_t k = 0;
    size_t i = 0;
    for (; n - i >= WORD; i += WORD) {
        for (size_t line = 0; line < width; line++)
            fetch_ahead(p + i * width + line * 64);
        k += (uint64_t)_mm_popcnt_u64(kept_bits(s, p + i * width, WORD, width));
    }
    if (i < n)
        k += (uint64_t)_mm_popcnt_u64(kept_bits(s, p + i * width, n - i, width));
    return k;
}

/* Stores the element of the lowest bit as entry k. */
INLINE void take(uint64_t bits, const uint8_t *p, tn_picked to, size_t k, size_t width)
{
    uint32_t i = (uint32_t)__builtin_ctzll(bits), place = to.base + i;
    if (to.values)
        memcpy(to.values + k * width, p + i * width, width);
    if (to.places)
        memcpy(to.places + k * sizeof place, &place, sizeof place);
}

/* Stores eight at a time while there is room, even if fewer are kept: the next
 * ones overwrite the rest.  Most words of a sparse tensor then take the same branch. */
INLINE size_t take_word(uint64_t bits, const uint8_t *p, tn_picked to, size_t k, size_t width)
{
    const uint64_t top = (uint64_t)1 << (WORD - 1);     /* so that there is a lowest bit */
    size_t kept = (size_t)_mm_popcnt_u64(bits), end = k + kept;
    if (to.room - k < kept + BATCH) {
        for (; k < end; bits &= bits - 1)
            take(bits, p, to, k++, width);
        return end;
    }
    do {
        for (size_t i = 0; i < BATCH; i++, bits &= bits - 1)
            take(bits | top, p, to, k + i, width);
        k += BATCH;
    } while (k < end);
    return end;
}

INLINE size_t pick_words(const tn_filter *filter, const uint8_t *p, size_t n, tn_picked to, size_t width)
{
    const filter_vectors s = vectors_of(filter, width);
    const uint32_t base = to.base;
    size_t k = 0, i = 0;
    for (; n - i >= WORD; i += WORD) {
        for (size_t line = 0; line < width; line++)
            fetch_ahead(p + i * width + line * 64);
        to.base = base + (uint32_t)i;
        k = take_word(kept_bits(s, p + i * width, WORD, width), p + i * width, to, k, width);
    }
    to.base = base + (uint32_t)i;
    for (uint64_t bits = i < n ? kept_bits(s, p + i * width, n - i, width) : 0; bits; bits &= bits - 1)
        take(bits, p + i * width, to, k++, width);
    return k;
}

/* --- four bytes: eight elements are compacted at once ------------------------ */

/* Byte j of entry m: the number of the j-th bit of m that is set. */
#define LANE(m, i)   ((m) >> (i) & 1 ? (uint64_t)(i) << 8 * __builtin_popcount((m) & ((1 << (i)) - 1)) : 0)
#define ENTRY(m) (LANE(m, 1) | LANE(m, 2) | LANE(m, 3) | LANE(m, 4) | LANE(m, 5) | LANE(m, 6) | LANE(m, 7))
#define FOUR(m)      ENTRY(m), ENTRY((m) + 1), ENTRY((m) + 2), ENTRY((m) + 3)
#define SIXTEEN(m)   FOUR(m), FOUR((m) + 4), FOUR((m) + 8), FOUR((m) + 12)
#define SIXTYFOUR(m) SIXTEEN(m), SIXTEEN((m) + 16), SIXTEEN((m) + 32), SIXTEEN((m) + 48)

static const uint64_t together[256] = { SIXTYFOUR(0), SIXTYFOUR(64), SIXTYFOUR(128), SIXTYFOUR(192) };

INLINE size_t pick_fours(const tn_filter *filter, const uint8_t *p, size_t n, tn_picked to)
{
    const filter_vectors s = vectors_of(filter, 4);
    const __m256i count_up = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i place = _mm256_add_epi32(_mm256_set1_epi32((int)to.base), count_up);
    size_t k = 0, i = 0;
    for (; n - i >= 8 && to.room - k >= 8; i += 8) {
        fetch_ahead(p + i * 4);
        unsigned out = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(dropped(s, p + i * 4, 4)));
        __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)&together[~out & 255]));
        __m256i v = _mm256_loadu_si256((const void *)(p + i * 4));
        if (to.values)
            _mm256_storeu_si256((void *)(to.values + k * 4), _mm256_permutevar8x32_epi32(v, order));
        if (to.places)
            _mm256_storeu_si256((void *)(to.places + k * 4), _mm256_permutevar8x32_epi32(place, order));
        place = _mm256_add_epi32(place, _mm256_set1_epi32(8));
        k += 8 - (size_t)_mm_popcnt_u32(out);
    }
    tn_picked rest = { .base = to.base + (uint32_t)i, .room = to.room - k };
    if (to.values)
        rest.values = to.values + k * 4;
    if (to.places)
        rest.places = to.places + k * 4;
    return k + pick_words(filter, p + i * 4, n - i, rest, 4);
}

INLINE size_t pick(const tn_filter *filter, const uint8_t *p, size_t n, tn_picked to, size_t width)
{
    return width == 4 ? pick_fours(filter, p, n, to) : pick_words(filter, p, n, to, width);
}

/* --- order ------------------------------------------------------------------------- */

#define VECTOR 32
typedef __m256i vec;
typedef __m256i vm;

INLINE vm either(vm m, vm n)      { return _mm256_or_si256(m, n); }
INLINE bool any(vm m)             { return !_mm256_testz_si256(m, m); }
INLINE vec load(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }
INLINE vm not_above(vec a, vec b) { return _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), b); }
INLINE vm not_below(vec a, vec limit) { return _mm256_cmpeq_epi32(_mm256_max_epu32(a, limit), a); }

INLINE vec repeat(const uint32_t limits[2])
{
    return _mm256_set1_epi64x((long long)((uint64_t)limits[1] << 32 | limits[0]));
}

/* Without the sign that would make a difference. */
INLINE vm pairs_not_above(vec a, vec b)
{
    vec first = _mm256_shuffle_epi32(a, 0xb1), second = _mm256_shuffle_epi32(b, 0xb1);
    return _mm256_xor_si256(_mm256_cmpgt_epi64(first, second), _mm256_set1_epi64x(-1));
}

#include "kernels/sparse/template.h"
