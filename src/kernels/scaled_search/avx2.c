/* kernels/scaled_search/avx2.c - searching and selecting with AVX2. */
#include "kernels/avx2.h"

typedef struct vd { __m256d low, high; } vd;

static inline vm at_least(vf a, vf b)       { return (vm)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GE_OQ); }
static inline vm more(vi a, vi b)           { return (vm)_mm256_cmpgt_epi32((__m256i)a, (__m256i)b); }
static inline vf where(vm m, vf x, vf y)    { return (vf)_mm256_blendv_ps((__m256)y, (__m256)x, (__m256)m); }
static inline unsigned bits(vm m)           { return (unsigned)_mm256_movemask_ps((__m256)m); }
static inline vi count(vi v, vm m)          { return v - m; }
static inline vi shift_right(vi v, vi n)    { return (vi)_mm256_srlv_epi32((__m256i)v, (__m256i)n); }
static inline vi lanes_of(vi v, vi order)
{
    return (vi)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)order);
}
static inline vi bytes_to(const void *p)    { return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }
static inline vd every_d(double x)          { return (vd){ _mm256_set1_pd(x), _mm256_set1_pd(x) }; }

static inline void put_bytes(void *p, vi v)
{
    const __m256i low = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8,
                                         12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i some = _mm256_shuffle_epi8((__m256i)v, low);
    _mm_storel_epi64(p, _mm_unpacklo_epi32(_mm256_castsi256_si128(some), _mm256_extracti128_si256(some, 1)));
}

static inline vi mapped(const void *table, vi which)
{
    vi low = lanes_of((vi)_mm256_loadu_si256(table), which);
    vi high = lanes_of((vi)_mm256_loadu_si256((const __m256i *)table + 1), which);
    return (vi)where((vm)_mm256_slli_epi32((__m256i)which, 28), (vf)high, (vf)low);
}

/* Bytes of a mask that are all ones keep those of the numbers of the lanes. */
static inline void compress(void *p, vi v, vm m, unsigned n)
{
    uint64_t bytes = _pdep_u64(bits(m), UINT64_C(0x0101010101010101)) * 0xff;
    __m128i lanes = _mm_cvtsi64_si128((long long)_pext_u64(UINT64_C(0x0706050403020100), bytes));
    vi some = lanes_of(v, (vi)_mm256_cvtepu8_epi32(lanes)), number = { 0, 1, 2, 3, 4, 5, 6, 7 };
    if (n == 4)
        _mm_storeu_si128(p, _mm256_castsi256_si128((__m256i)some));
    else
        _mm256_maskstore_epi32(p, (__m256i)more((vi)_mm256_set1_epi32((int)n), number), (__m256i)some);
}

static inline void halves(vf v, vd d[1])
{
    d[0].low = _mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
    d[0].high = _mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}

static inline vd add_square(vd s, vd a)
{
    return (vd){ _mm256_fmadd_pd(a.low, a.low, s.low), _mm256_fmadd_pd(a.high, a.high, s.high) };
}

static inline vd add_difference(vd s, vd a, vd b)
{
    __m256d low = _mm256_sub_pd(a.low, b.low), high = _mm256_sub_pd(a.high, b.high);
    s.low = _mm256_add_pd(s.low, _mm256_mul_pd(low, low));
    s.high = _mm256_add_pd(s.high, _mm256_mul_pd(high, high));
    return s;
}

static inline double join_d(vd v)
{
    __m256d four = _mm256_add_pd(v.low, v.high);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

static inline unsigned least_lane(const vd *v, unsigned n)
{
    __m256d four =
        _mm256_min_pd(_mm256_min_pd(v[0].low, v[0].high), _mm256_min_pd(v[n - 1].low, v[n - 1].high));
    __m128d two = _mm_min_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    __m256d every = _mm256_broadcastsd_pd(_mm_min_sd(two, _mm_unpackhi_pd(two, two)));
    unsigned found = 0;
    for (unsigned k = 0; k < n; k++) {
        found |= (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(v[k].low, every, _CMP_EQ_OQ)) << 8 * k;
        found |= (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(v[k].high, every, _CMP_EQ_OQ)) << (8 * k + 4);
    }
    return (unsigned)__builtin_ctz(found);
}

#include "kernels/scaled_search/template.h"
