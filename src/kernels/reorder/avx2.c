/* kernels/reorder/avx2.c - reorders with AVX2. */
#include <immintrin.h>
#include <string.h>

#include "kernels/reorder/table.h"

#define LEVEL(name) name##_avx2
#define VECTOR 32
typedef __m256i vec;

static inline vec load(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline vec load_part(const void *p, size_t n)
{
    vec v = _mm256_setzero_si256();
    memcpy(&v, p, n);
    return v;
}

static inline void put(void *p, vec v, bool stream)
{
    if (stream)
        _mm256_stream_si256(p, v);
    else
        _mm256_storeu_si256(p, v);
}

static inline void put_part(void *p, vec v, size_t n)
{
    memcpy(p, &v, n);
}

static inline vec low(vec a, vec b, unsigned size)
{
    switch (size) {
    case 1:  return _mm256_unpacklo_epi8(a, b);
    case 2:  return _mm256_unpacklo_epi16(a, b);
    case 4:  return _mm256_unpacklo_epi32(a, b);
    default: return _mm256_unpacklo_epi64(a, b);
    }
}

static inline vec high(vec a, vec b, unsigned size)
{
    switch (size) {
    case 1:  return _mm256_unpackhi_epi8(a, b);
    case 2:  return _mm256_unpackhi_epi16(a, b);
    case 4:  return _mm256_unpackhi_epi32(a, b);
    default: return _mm256_unpackhi_epi64(a, b);
    }
}

static inline void turn(vec v[2])
{
    vec a = _mm256_permute2x128_si256(v[0], v[1], 0x20);
    v[1] = _mm256_permute2x128_si256(v[0], v[1], 0x31);
    v[0] = a;
}

/* AVX2 picks bytes within 16 of them. */
enum { WIDTH = 16 };
typedef __m128i bytes;

static inline bytes load_bytes(const void *p)
{
    return _mm_loadu_si128(p);
}

static inline void put_bytes(void *p, bytes v, bool stream)
{
    if (stream)
        _mm_stream_si128(p, v);
    else
        _mm_storeu_si128(p, v);
}

static inline bytes pick(bytes from, bytes v)
{
    return _mm_shuffle_epi8(v, from);
}

#include "kernels/reorder/interleave.h"

#define ADD_INTERLEAVE(k) add_interleave(k)

#include "kernels/reorder/template.h"
