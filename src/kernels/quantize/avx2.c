/* kernels/quantize/avx2.c - quantization with AVX2. */
#include "kernels/avx2.h"

typedef double  vd __attribute__((vector_size(32)));

static inline vf every_f(float x)          { return (vf)_mm256_set1_ps(x); }
static inline vi every_i(int32_t n)        { return (vi)_mm256_set1_epi32(n); }
static inline vf floats(const void *p)     { return (vf)_mm256_loadu_ps(p); }
static inline vi integers(const void *p)   { return (vi)_mm256_loadu_si256(p); }
static inline vi truncated(vf v)           { return (vi)_mm256_cvttps_epi32((__m256)v); }
static inline vf number(vi v)              { return (vf)_mm256_cvtepi32_ps((__m256i)v); }
static inline vi i8(const void *p)         { return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)); }
static inline vi u8(const void *p)         { return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }
static inline vi i16(const void *p)        { return (vi)_mm256_cvtepi16_epi32(_mm_loadu_si128(p)); }
static inline vi u16(const void *p)        { return (vi)_mm256_cvtepu16_epi32(_mm_loadu_si128(p)); }

static inline vd every_d(double x)         { return (vd)_mm256_set1_pd(x); }
static inline vd least_d(vd a, vd b)       { return (vd)_mm256_min_pd((__m256d)a, (__m256d)b); }
static inline vd floors(vd v)              { return (vd)_mm256_floor_pd((__m256d)v); }

/* Sums of doubles are exact below 2^53, so upper and lower bits are added separately. */
typedef struct wide_sum {
    vd high, low;
} wide_sum;

static inline void add_whole(wide_sum *s, vd v)
{
    vd whole = floors(v), upper = floors(whole * every_d(0x1p-26));
    s->high += upper;
    s->low += whole - upper * every_d(0x1p26);
}

static inline uint64_t total(const wide_sum *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += ((uint64_t)s->high[i] << 26) + (uint64_t)s->low[i];
    return sum;
}

static inline vd double_f(vf v, int k)
{
    return (vd)_mm256_cvtps_pd(k ? _mm256_extractf128_ps((__m256)v, 1) : _mm256_castps256_ps128((__m256)v));
}

static inline vd double_i(vi v, int k)
{
    return (vd)_mm256_cvtepi32_pd(k ? _mm256_extracti128_si256((__m256i)v, 1)
                                    : _mm256_castsi256_si128((__m256i)v));
}

static inline vf signed_as(float x, vf v)
{
    return (vf)_mm256_or_ps(_mm256_set1_ps(x), _mm256_and_ps((__m256)v, _mm256_set1_ps(-0.0f)));
}

static inline vm halves(vf v)
{
    return (vm)_mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), (__m256)v), _mm256_set1_ps(0.5f),
                             _CMP_EQ_OQ);
}

static inline vm beyond(vf v, vf limit)
{
    return (vm)_mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), (__m256)v), (__m256)limit, _CMP_NLE_UQ);
}

static inline vf finite(vf v)
{
    __m256i magnitude = _mm256_and_si256((__m256i)v, _mm256_set1_epi32(INT32_MAX));
    return (vf)_mm256_and_si256((__m256i)v, _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), magnitude));
}

static inline void put_f(void *p, vf v, bool stream)
{
    if (stream)
        _mm256_stream_ps(p, (__m256)v);
    else
        _mm256_storeu_ps(p, (__m256)v);
}

/* Packing works within 128-bit lanes; the permutations put their parts in order. */
static inline __m256i low_halves(vi a, vi b)
{
    const __m256i half = _mm256_set1_epi32(65535);
    return _mm256_packus_epi32(_mm256_and_si256((__m256i)a, half), _mm256_and_si256((__m256i)b, half));
}

/* Parts of a line are slower to stream than to store. */
static inline void put8(uint8_t *p, const vi v[4], bool stream)
{
    (void)stream;
    const __m256i byte = _mm256_set1_epi16(255), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_and_si256(_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]), byte);
    __m256i high = _mm256_and_si256(_mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]), byte);
    _mm256_storeu_si256((void *)p, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
}

static inline void put16(uint8_t *p, const vi v[4], bool stream)
{
    (void)stream;
    _mm256_storeu_si256((void *)p, _mm256_permute4x64_epi64(low_halves(v[0], v[1]), 0xd8));
    _mm256_storeu_si256((void *)(p + 32), _mm256_permute4x64_epi64(low_halves(v[2], v[3]), 0xd8));
}

#include "kernels/quantize/template.h"
