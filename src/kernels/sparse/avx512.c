/* kernels/sparse/avx512.c - selects the entries of a sparse tensor, with AVX-512 (F, BW, DQ, VL).
 *
 * The kept elements of a vector are compacted in a register.  While there is room
 * for a vector the register is stored whole, and the next one overwrites the rest.
 * Stores that compress in memory are slow on some CPUs. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sparse/table.h"

#define LEVEL(name) name##_avx512

/* --- counting ---------------------------------------------------------------- */

static inline __mmask64 bytes_below(size_t n)
{
    return _cvtu64_mask64(n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX);
}

typedef struct filter_vectors {
    __m512i add, mask, limit;
} filter_vectors;

INLINE __m512i every(uint64_t x, size_t width)
{
    switch (width) {
    case 1:  return _mm512_set1_epi8((char)x);
    case 2:  return _mm512_set1_epi16((short)x);
    case 4:  return _mm512_set1_epi32((int)x);
    default: return _mm512_set1_epi64((long long)x);
    }
}

INLINE filter_vectors vectors_of(const tn_filter *s, size_t width)
{
    return (filter_vectors){ every(s->add, width), every(s->mask, width), every(s->limit, width) };
}

/* A bit for each element that is kept. */
INLINE uint64_t kept_bits(filter_vectors s, __m512i v, size_t width)
{
    if (width == 1)
        return _cvtmask64_u64(
            _mm512_cmpgt_epu8_mask(_mm512_and_si512(_mm512_add_epi8(v, s.add), s.mask), s.limit));
    if (width == 2)
        return _cvtmask32_u32(
            _mm512_cmpgt_epu16_mask(_mm512_and_si512(_mm512_add_epi16(v, s.add), s.mask), s.limit));
    if (width == 4)
        return _cvtmask16_u32(
            _mm512_cmpgt_epu32_mask(_mm512_and_si512(_mm512_add_epi32(v, s.add), s.mask), s.limit));
    return _cvtmask8_u32(
        _mm512_cmpgt_epu64_mask(_mm512_and_si512(_mm512_add_epi64(v, s.add), s.mask), s.limit));
}

INLINE size_t count(const tn_filter *filter, const uint8_t *p, size_t n, size_t width)
{
    const filter_vectors s = vectors_of(filter, width);
    const size_t most = 64 / width;
    uint64_t k = 0;
    for (; n >= 4 * most; n -= 4 * most, p += 4 * 64)
        for (size_t i = 0; i < 4; i++) {
            fetch_ahead(p + 64 * i);
            k += (uint64_t)_mm_popcnt_u64(kept_bits(s, _mm512_loadu_si512(p + 64 * i), width));
        }
    while (n) {                         /* missing elements are loaded as zeros, which are dropped */
        size_t few = n < most ? n : most;
        __m512i v = _mm512_maskz_loadu_epi8(bytes_below(few * width), p);
        k += (uint64_t)_mm_popcnt_u64(kept_bits(s, v, width));
        n -= few;
        p += n ? 64 : 0;
    }
    return k;
}

/* --- picking elements of up to four bytes --------------------------------------- */

/* Sixteen elements, one per lane; only those in `there` unless `all` are. */
INLINE __m512i load_lanes(const uint8_t *p, size_t width, __mmask16 there, bool all)
{
    if (width == 1)
        return _mm512_cvtepu8_epi32(all ? _mm_loadu_si128((const void *)p) : _mm_maskz_loadu_epi8(there, p));
    if (width == 2)
        return _mm512_cvtepu16_epi32(all ? _mm256_loadu_si256((const void *)p)
                                         : _mm256_maskz_loadu_epi16(there, p));
    return all ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(there, p);
}

INLINE void store_lanes(uint8_t *p, __m512i v, size_t width, __mmask16 which, bool all)
{
    if (width == 1 && all)
        _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(v));
    else if (width == 1)
        _mm_mask_storeu_epi8(p, which, _mm512_cvtepi32_epi8(v));
    else if (width == 2 && all)
        _mm256_storeu_si256((void *)p, _mm512_cvtepi32_epi16(v));
    else if (width == 2)
        _mm256_mask_storeu_epi16(p, which, _mm512_cvtepi32_epi16(v));
    else if (all)
        _mm512_storeu_si512(p, v);
    else
        _mm512_mask_storeu_epi32(p, which, v);
}

INLINE __m512i compact(uint32_t kept, __m512i v)
{
    return _mm512_maskz_compress_epi32((__mmask16)kept, v);
}

INLINE __mmask16 lanes_below(size_t n)
{
    return (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff);
}

/* The mask of narrow elements has only the low bits of a lane, so comparing whole lanes is right. */
INLINE size_t pick_lanes(const tn_filter *filter, const uint8_t *p, size_t n, tn_picked to, size_t width)
{
    const filter_vectors s = vectors_of(filter, 4);
    __m512i place = _mm512_add_epi32(_mm512_set1_epi32((int)to.base),
                                     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    size_t k = 0;
    for (; n >= 16 && to.room - k >= 16; n -= 16, p += 16 * width) {
        fetch_ahead(p);
        __m512i v = load_lanes(p, width, 0, true);
        uint32_t kept = (uint32_t)kept_bits(s, v, 4);
        if (to.values)
            store_lanes(to.values + k * width, compact(kept, v), width, 0, true);
        if (to.places)
            _mm512_storeu_si512(to.places + k * 4, compact(kept, place));
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
        k += (size_t)_mm_popcnt_u32(kept);
    }
    while (n) {                         /* the last elements, or the last room */
        size_t few = n < 16 ? n : 16;
        __m512i v = load_lanes(p, width, lanes_below(few), false);
        uint32_t kept = (uint32_t)kept_bits(s, v, 4);
        __mmask16 stored = lanes_below((size_t)_mm_popcnt_u32(kept));
        if (to.values)
            store_lanes(to.values + k * width, compact(kept, v), width, stored, false);
        if (to.places)
            _mm512_mask_storeu_epi32(to.places + k * 4, stored, compact(kept, place));
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
        k += (size_t)_mm_popcnt_u32(kept);
        n -= few;
        p += n ? 16 * width : 0;
    }
    return k;
}

/* --- picking elements of eight bytes ----------------------------------------------- */

INLINE __mmask8 words_below(size_t n)
{
    return (__mmask8)(n < 8 ? (1u << n) - 1 : 0xff);
}

INLINE size_t pick_eights(const tn_filter *filter, const uint8_t *p, size_t n, tn_picked to)
{
    const filter_vectors s = vectors_of(filter, 8);
    const __m256i count_up = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i place = _mm256_add_epi32(_mm256_set1_epi32((int)to.base), count_up);
    size_t k = 0;
    while (n) {
        size_t few = n < 8 ? n : 8;
        bool whole = few == 8 && to.room - k >= 8;
        fetch_ahead(p);
        __m512i v = whole ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi64(words_below(few), p);
        uint32_t kept = (uint32_t)kept_bits(s, v, 8);
        __mmask8 which = (__mmask8)kept, stored = whole ? 0xff : words_below((size_t)_mm_popcnt_u32(kept));
        if (to.values)
            _mm512_mask_storeu_epi64(to.values + k * 8, stored, _mm512_maskz_compress_epi64(which, v));
        if (to.places)
            _mm256_mask_storeu_epi32(to.places + k * 4, stored, _mm256_maskz_compress_epi32(which, place));
        place = _mm256_add_epi32(place, _mm256_set1_epi32(8));
        k += (size_t)_mm_popcnt_u32(kept);
        n -= few;
        p += n ? 64 : 0;
    }
    return k;
}

INLINE size_t pick(const tn_filter *filter, const uint8_t *p, size_t n, tn_picked to, size_t width)
{
    return width == 8 ? pick_eights(filter, p, n, to) : pick_lanes(filter, p, n, to, width);
}

/* --- order ------------------------------------------------------------------------- */

#define VECTOR 64
typedef __m512i vec;
typedef uint32_t vm;

INLINE vm either(vm m, vm n)          { return m | n; }
INLINE bool any(vm m)                 { return m != 0; }
INLINE vec load(const uint8_t *p)     { return _mm512_loadu_si512(p); }
INLINE vm not_above(vec a, vec b)     { return _mm512_cmple_epu32_mask(a, b); }
INLINE vm not_below(vec a, vec limit) { return _mm512_cmpge_epu32_mask(a, limit); }

INLINE vec repeat(const uint32_t limits[2])
{
    return _mm512_set1_epi64((long long)((uint64_t)limits[1] << 32 | limits[0]));
}

INLINE vm pairs_not_above(vec a, vec b)
{
    return _mm512_cmple_epu64_mask(_mm512_rol_epi64(a, 32), _mm512_rol_epi64(b, 32));
}

#include "kernels/sparse/template.h"
