/* kernels/sparse/avx512.c - which elements stay, with AVX-512 (F, BW, DQ, VL).
 *
 * What stays of a vector is pressed together in a register and stored whole
 * while there is room for a vector: the next one writes over what was too much.
 * Stores that compress in memory are slow on some CPUs. */
#include <immintrin.h>

#include "kernels/sparse/table.h"

#define LEVEL(name) name##_avx512

/* --- counting ---------------------------------------------------------------- */

static inline __mmask64 bytes_below(size_t n)
{
    return _cvtu64_mask64(n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX);
}

typedef struct sieve512 {
    __m512i add, mask, limit;
} sieve512;

INLINE __m512i every(uint64_t x, size_t width)
{
    return width == 1 ? _mm512_set1_epi8((char)x) : width == 2 ? _mm512_set1_epi16((short)x) :
           width == 4 ? _mm512_set1_epi32((int)x) : _mm512_set1_epi64((long long)x);
}

INLINE sieve512 sieve_of(const tn_sieve *s, size_t width)
{
    return (sieve512){ every(s->add, width), every(s->mask, width), every(s->limit, width) };
}

/* A bit for each element that stays. */
INLINE uint64_t stays(sieve512 s, __m512i v, size_t width)
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

INLINE size_t count(const tn_sieve *sieve, const uint8_t *p, size_t n, size_t width)
{
    const sieve512 s = sieve_of(sieve, width);
    const size_t most = 64 / width;
    uint64_t k = 0;
    for (; n >= 4 * most; n -= 4 * most, p += 4 * 64)
        for (size_t i = 0; i < 4; i++) {
            fetch_ahead(p + 64 * i);
            k += (uint64_t)_mm_popcnt_u64(stays(s, _mm512_loadu_si512(p + 64 * i), width));
        }
    while (n) {                         /* what is not there is loaded as zeros, which do not stay */
        size_t few = n < most ? n : most;
        __m512i v = _mm512_maskz_loadu_epi8(bytes_below(few * width), p);
        k += (uint64_t)_mm_popcnt_u64(stays(s, v, width));
        n -= few;
        p += n ? 64 : 0;
    }
    return k;
}

/* --- picking elements of up to four bytes --------------------------------------- */

/* Sixteen elements, each in a lane of its own, and which of them there are. */
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

INLINE __mmask16 lanes_below(size_t n)
{
    return (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff);
}

/* Of narrow elements only the low bits of a lane matter: the mask has no others. */
INLINE size_t pick_lanes(const tn_sieve *sieve, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                         uint32_t base, size_t room, size_t width)
{
    const sieve512 s = sieve_of(sieve, 4);
    __m512i place = _mm512_add_epi32(_mm512_set1_epi32((int)base),
                                     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    size_t k = 0;
    for (; n >= 16 && room - k >= 16; n -= 16, p += 16 * width) {
        fetch_ahead(p);
        __m512i v = load_lanes(p, width, 0, true);
        uint32_t stay = (uint32_t)stays(s, v, 4);
        if (values)
            store_lanes(values + k * width, _mm512_maskz_compress_epi32((__mmask16)stay, v), width, 0, true);
        if (places)
            _mm512_storeu_si512(places + k * 4, _mm512_maskz_compress_epi32((__mmask16)stay, place));
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
        k += (size_t)_mm_popcnt_u32(stay);
    }
    while (n) {                         /* the last ones of either */
        size_t few = n < 16 ? n : 16;
        __m512i v = load_lanes(p, width, lanes_below(few), false);
        uint32_t stay = (uint32_t)stays(s, v, 4);
        __mmask16 stored = lanes_below((size_t)_mm_popcnt_u32(stay));
        if (values)
            store_lanes(values + k * width, _mm512_maskz_compress_epi32((__mmask16)stay, v), width, stored,
                        false);
        if (places)
            _mm512_mask_storeu_epi32(places + k * 4, stored,
                                     _mm512_maskz_compress_epi32((__mmask16)stay, place));
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
        k += (size_t)_mm_popcnt_u32(stay);
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

INLINE size_t pick_eights(const tn_sieve *sieve, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                          uint32_t base, size_t room)
{
    const sieve512 s = sieve_of(sieve, 8);
    __m256i place = _mm256_add_epi32(_mm256_set1_epi32((int)base), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    size_t k = 0;
    while (n) {
        size_t few = n < 8 ? n : 8;
        bool whole = few == 8 && room - k >= 8;
        fetch_ahead(p);
        __m512i v = whole ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi64(words_below(few), p);
        uint32_t stay = (uint32_t)stays(s, v, 8);
        __mmask8 stored = whole ? 0xff : words_below((size_t)_mm_popcnt_u32(stay));
        if (values)
            _mm512_mask_storeu_epi64(values + k * 8, stored, _mm512_maskz_compress_epi64((__mmask8)stay, v));
        if (places)
            _mm256_mask_storeu_epi32(places + k * 4, stored,
                                     _mm256_maskz_compress_epi32((__mmask8)stay, place));
        place = _mm256_add_epi32(place, _mm256_set1_epi32(8));
        k += (size_t)_mm_popcnt_u32(stay);
        n -= few;
        p += n ? 64 : 0;
    }
    return k;
}

INLINE size_t pick(const tn_sieve *s, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                   uint32_t base, size_t room, size_t width)
{
    return width == 8 ? pick_eights(s, p, n, values, places, base, room)
                      : pick_lanes(s, p, n, values, places, base, room, width);
}

#include "kernels/sparse/template.h"
