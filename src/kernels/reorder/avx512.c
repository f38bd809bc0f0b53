/* kernels/reorder/avx512.c - reorders with AVX-512 F and BW. */
#include <immintrin.h>

#include "kernels/reorder/table.h"

#define LEVEL(name) name##_avx512
#define VECTOR 64
typedef __m512i vec;

static inline vec load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static inline vec load_part(const void *p, size_t n)
{
    return _mm512_maskz_loadu_epi8(_cvtu64_mask64(((uint64_t)1 << n) - 1), p);
}

static inline void put(void *p, vec v, bool stream)
{
    if (stream)
        _mm512_stream_si512(p, v);
    else
        _mm512_storeu_si512(p, v);
}

static inline void put_part(void *p, vec v, size_t n)
{
    _mm512_mask_storeu_epi8(p, _cvtu64_mask64(((uint64_t)1 << n) - 1), v);
}

static inline vec low(vec a, vec b, unsigned size)
{
    switch (size) {
    case 1:  return _mm512_unpacklo_epi8(a, b);
    case 2:  return _mm512_unpacklo_epi16(a, b);
    case 4:  return _mm512_unpacklo_epi32(a, b);
    default: return _mm512_unpacklo_epi64(a, b);
    }
}

static inline vec high(vec a, vec b, unsigned size)
{
    switch (size) {
    case 1:  return _mm512_unpackhi_epi8(a, b);
    case 2:  return _mm512_unpackhi_epi16(a, b);
    case 4:  return _mm512_unpackhi_epi32(a, b);
    default: return _mm512_unpackhi_epi64(a, b);
    }
}

static inline void turn(vec v[4])
{
    vec a = _mm512_shuffle_i32x4(v[0], v[1], 0x44), b = _mm512_shuffle_i32x4(v[0], v[1], 0xee);
    vec c = _mm512_shuffle_i32x4(v[2], v[3], 0x44), d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

#define ADD_INTERLEAVE(k) (void)0

#include "kernels/reorder/template.h"
