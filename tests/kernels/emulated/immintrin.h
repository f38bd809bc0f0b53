/* immintrin.h - AVX-512 for a CPU that has AVX2 only: as many intrinsics as the kernels of block types use.
 *
 * tests/kernels/run_avx512 compiles their AVX-512 level with this header in front of the compiler's own.  A
 * vector of 512 bits is an array; the rest is what the Intel manual says of each lane. */
#ifndef TN_EMULATED_IMMINTRIN_H
#define TN_EMULATED_IMMINTRIN_H

#include_next <immintrin.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { EMULATED_LANES = 16 };

/* A function of one vector, of two, and what each lane of the result is. */
#define EMULATED_1(name, To, TO, From, FROM, N, lane)                               \
    static inline TO name(FROM a)                                                   \
    {                                                                               \
        From x[sizeof(FROM) / sizeof(From)];                                        \
        To z[N];                                                                    \
        TO result;                                                                  \
        memcpy(x, &a, sizeof a);                                                    \
        for (int i = 0; i < N; i++)                                                 \
            z[i] = lane;                                                            \
        memcpy(&result, z, sizeof result);                                          \
        return result;                                                              \
    }
#define EMULATED_2(name, T, VECTOR, U, OTHER, N, lane)                              \
    static inline VECTOR name(VECTOR a, OTHER b)                                    \
    {                                                                               \
        T x[N], z[N];                                                               \
        U y[N];                                                                     \
        memcpy(x, &a, sizeof x);                                                    \
        memcpy(y, &b, sizeof y);                                                    \
        for (int i = 0; i < N; i++)                                                 \
            z[i] = lane;                                                            \
        memcpy(&a, z, sizeof a);                                                    \
        return a;                                                                   \
    }

EMULATED_2(emulated_min_ps, float, __m512, float, __m512, 16, x[i] < y[i] ? x[i] : y[i])
EMULATED_2(emulated_max_ps, float, __m512, float, __m512, 16, x[i] > y[i] ? x[i] : y[i])
EMULATED_2(emulated_min_epi32, int32_t, __m512i, int32_t, __m512i, 16, x[i] < y[i] ? x[i] : y[i])
EMULATED_2(emulated_max_epi32, int32_t, __m512i, int32_t, __m512i, 16, x[i] > y[i] ? x[i] : y[i])
EMULATED_2(emulated_sllv_epi32, uint32_t, __m512i, uint32_t, __m512i, 16, y[i] < 32 ? x[i] << y[i] : 0)
EMULATED_2(emulated_srlv_epi32, uint32_t, __m512i, uint32_t, __m512i, 16, y[i] < 32 ? x[i] >> y[i] : 0)
EMULATED_2(emulated_permutexvar_epi64, uint64_t, __m512i, uint64_t, __m512i, 8, y[x[i] & 7])
EMULATED_2(emulated_permutexvar_epi32, uint32_t, __m512i, uint32_t, __m512i, 16, y[x[i] & 15])
EMULATED_2(emulated_permutevar_ps, float, __m512, uint32_t, __m512i, 16, x[i / 4 * 4 + (int)(y[i] & 3)])
EMULATED_2(emulated_packus_epi32, __m128i, __m512i, __m128i, __m512i, 4, _mm_packus_epi32(x[i], y[i]))
EMULATED_2(emulated_packus_epi16, __m128i, __m512i, __m128i, __m512i, 4, _mm_packus_epi16(x[i], y[i]))
EMULATED_1(emulated_sqrt_ps, __m128, __m512, __m128, __m512, 4, _mm_sqrt_ps(x[i]))
EMULATED_1(emulated_rcp14_ps, __m128, __m512, __m128, __m512, 4, _mm_rcp_ps(x[i]))
EMULATED_1(emulated_round_ps, __m128, __m512, __m128, __m512, 4, _mm_round_ps(x[i], _MM_FROUND_TO_NEAREST_INT))
EMULATED_1(emulated_cvtps_epi32, __m128i, __m512i, __m128, __m512, 4, _mm_cvtps_epi32(x[i]))
EMULATED_1(emulated_cvtepu16_epi32, uint32_t, __m512i, uint16_t, __m256i, 16, x[i])
EMULATED_1(emulated_cvtps_ph, __m128i, __m256i, __m256, __m512, 2, _mm256_cvtps_ph(x[i], 0))
EMULATED_1(emulated_broadcast_f32x4, __m128, __m512, __m128, __m128, 4, x[0])
EMULATED_1(emulated_broadcast_f32x8, __m256, __m512, __m256, __m256, 2, x[0])
EMULATED_1(emulated_set1_ps, float, __m512, float, float, 16, x[0])
EMULATED_1(emulated_set1_epi32, int, __m512i, int, int, 16, x[0])

static inline __mmask16 emulated_cmp_ps_mask(__m512 a, __m512 b, int how)
{
    float x[EMULATED_LANES], y[EMULATED_LANES];
    unsigned mask = 0;
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < EMULATED_LANES; i++) {
        bool is = x[i] == y[i];                         /* _CMP_EQ_OQ */
        if (how == _CMP_UNORD_Q)
            is = x[i] != x[i] || y[i] != y[i];
        else if (how == _CMP_GT_OQ)
            is = x[i] > y[i];
        mask |= (unsigned)is << i;
    }
    return (__mmask16)mask;
}

static inline __m512 emulated_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b)
{
    float x[EMULATED_LANES], y[EMULATED_LANES];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < EMULATED_LANES; i++)
        x[i] = mask >> i & 1 ? y[i] : x[i];
    memcpy(&a, x, sizeof a);
    return a;
}

static inline float emulated_reduce_min_ps(__m512 a)
{
    float x[EMULATED_LANES];
    memcpy(x, &a, sizeof x);
    for (int i = 1; i < EMULATED_LANES; i++)
        x[0] = x[i] < x[0] ? x[i] : x[0];
    return x[0];
}

static inline __m512 emulated_load_ps(const void *p)
{
    __m512 v;
    memcpy(&v, p, sizeof v);
    return v;
}

#define EMULATED_LIST(T, VECTOR, ...)                                               \
    __extension__({                                                                 \
        const T list[] = { __VA_ARGS__ };                                           \
        VECTOR vector;                                                              \
        memcpy(&vector, list, sizeof vector);                                       \
        vector;                                                                     \
    })

#undef _mm512_cmp_ps_mask
#undef _mm512_roundscale_ps
#undef _mm512_cvtps_ph
#undef _mm512_setr_epi64
#undef _mm512_setr_epi32
#undef _kor_mask16
#define _mm512_min_ps             emulated_min_ps
#define _mm512_max_ps             emulated_max_ps
#define _mm512_min_epi32          emulated_min_epi32
#define _mm512_max_epi32          emulated_max_epi32
#define _mm512_sllv_epi32         emulated_sllv_epi32
#define _mm512_srlv_epi32         emulated_srlv_epi32
#define _mm512_permutexvar_epi64  emulated_permutexvar_epi64
#define _mm512_permutexvar_epi32  emulated_permutexvar_epi32
#define _mm512_permutexvar_ps(i, v)                                                 \
    ((__m512)emulated_permutexvar_epi32(i, (__m512i)(v)))
#define _mm512_permutevar_ps      emulated_permutevar_ps
#define _mm512_packus_epi32       emulated_packus_epi32
#define _mm512_packus_epi16       emulated_packus_epi16
#define _mm512_sqrt_ps            emulated_sqrt_ps
#define _mm512_rcp14_ps           emulated_rcp14_ps
#define _mm512_roundscale_ps(v, how) emulated_round_ps(v)
#define _mm512_cvtps_epi32        emulated_cvtps_epi32
#define _mm512_cvtepu16_epi32     emulated_cvtepu16_epi32
#define _mm512_cvtps_ph(v, how)   emulated_cvtps_ph(v)
#define _mm512_broadcast_f32x4    emulated_broadcast_f32x4
#define _mm512_broadcast_f32x8    emulated_broadcast_f32x8
#define _mm512_set1_ps            emulated_set1_ps
#define _mm512_set1_epi32         emulated_set1_epi32
#define _mm512_setr_epi64(...)    EMULATED_LIST(int64_t, __m512i, __VA_ARGS__)
#define _mm512_setr_epi32(...)    EMULATED_LIST(int32_t, __m512i, __VA_ARGS__)
#define _mm512_cmp_ps_mask        emulated_cmp_ps_mask
#define _mm512_mask_blend_ps      emulated_mask_blend_ps
#define _mm512_reduce_min_ps      emulated_reduce_min_ps
#define _mm512_loadu_ps           emulated_load_ps
#define _kor_mask16(a, b)         ((__mmask16)((a) | (b)))

#endif
