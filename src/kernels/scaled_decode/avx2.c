/* kernels/scaled_decode/avx2.c - decodes codes with scales, with AVX2. */
#include "kernels/avx2.h"
#include "kernels/scaled_decode/table.h"

static inline vf floats(const void *p)     { return (vf)_mm256_loadu_ps(p); }
static inline vf every_f(float x)          { return (vf)_mm256_set1_ps(x); }
static inline vu every_u(uint32_t n)       { return (vu)_mm256_set1_epi32((int)n); }
static inline vm below(vu a, vu b)         { return (vm)_mm256_cmpgt_epi32((__m256i)b, (__m256i)a); }
static inline vm equal(vu a, vu b)         { return (vm)_mm256_cmpeq_epi32((__m256i)a, (__m256i)b); }
static inline vu pick(vm m, vu a, vu b)
{
    return (vu)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
}
static inline vf number(vu v)              { return (vf)_mm256_cvtepi32_ps((__m256i)v); }
static inline vu power(vu v)               { return (vu)_mm256_sllv_epi32(_mm256_set1_epi32(1), (__m256i)v); }
static inline vf spread(vf v, vu index)    { return (vf)_mm256_permutevar8x32_ps((__m256)v, (__m256i)index); }
static inline void put(float *p, vf v, bool stream)
{
    put_vector(p, (__m256i)v, stream);
}

static inline vf eight(const float *p)     { return (vf)_mm256_loadu_ps(p); }
static inline vf eights(const float *p, const uint8_t *k)
{
    return (vf)_mm256_loadu_ps(p + (size_t)k[0] * 8);
}
static inline vf gather(const float *p, vu index) { return (vf)_mm256_i32gather_ps(p, (__m256i)index, 4); }

static inline vf spread_two(vf v, vf w, vu index)
{
    __m256 second = (__m256)_mm256_slli_epi32((__m256i)index, 28);      /* bit 3 is the sign */
    return (vf)_mm256_blendv_ps((__m256)spread(v, index), (__m256)spread(w, index), second);
}

static inline vu words(const void *p, unsigned width)
{
    if (width == 0)
        return (vu)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
    return width == 1 ? (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128(p)) : (vu)_mm256_loadu_si256(p);
}

#include "kernels/scaled_decode/halves_x86.h"

static inline void widen_halves(vf v[2], __m256i halves)
{
    v[0] = (vf)_mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    v[1] = (vf)_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
}

/* ---- packed codes ---- */

static size_t unpack_nibbles(uint8_t *codes, const uint8_t *packed, size_t n)
{
    const __m128i low = _mm_set1_epi8(15);
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        fetch_ahead(packed + i / 2);
        __m128i pairs = _mm_loadu_si128((const void *)(packed + i / 2));
        __m128i first = _mm_and_si128(pairs, low), second = _mm_and_si128(_mm_srli_epi16(pairs, 4), low);
        _mm_storeu_si128((void *)(codes + i), _mm_unpacklo_epi8(first, second));
        _mm_storeu_si128((void *)(codes + i + 16), _mm_unpackhi_epi8(first, second));
    }
    return i;
}

/* Eight codes take `bits` bytes.  Eight bytes are read while there are so many. */
static size_t unpack_eights(uint8_t *codes, const uint8_t *packed, size_t n, unsigned bits)
{
    const uint64_t ones = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    size_t i = 0;
    for (; (n - i) / 8 * bits >= 8; i += 8) {
        uint64_t some;
        fetch_ahead(packed + i / 8 * bits);
        memcpy(&some, packed + i / 8 * bits, sizeof some);
        some = _pdep_u64(some, ones);
        memcpy(codes + i, &some, sizeof some);
    }
    return i;
}

static void unpack(uint8_t *restrict codes, const uint8_t *restrict packed, size_t n, unsigned bits)
{
    size_t done = bits == 4 ? unpack_nibbles(codes, packed, n) : unpack_eights(codes, packed, n, bits);
    tn_unpack_scalar(codes + done, packed + done / 8 * bits, n - done, bits);
}

#define UNPACK unpack

/* ---- N:M sparsity ---- */

static inline void expand_word(float *restrict y, const float *restrict slots, uint64_t mask, size_t step,
                               bool stream)
{
    (void)step;         /* eight elements may have any number of slots */
    for (size_t k = 0; k < 64; k += 8) {
        uint64_t bits = mask >> k & 255, bytes = _pdep_u64(bits, UINT64_C(0x0101010101010101)) * 255;
        __m256i index = _mm256_cvtepu8_epi32(
            _mm_cvtsi64_si128((long long)_pdep_u64(UINT64_C(0x0706050403020100), bytes)));
        __m256i kept = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)bytes));
        __m256 values = _mm256_permutevar8x32_ps(_mm256_loadu_ps(slots), index);
        put(y + k, (vf)_mm256_and_ps(values, _mm256_castsi256_ps(kept)), stream);
        slots += __builtin_popcountll(bits);
    }
}

#include "kernels/scaled_decode/template.h"
