/* kernels/cast/choose.c - what is faster on some processors, by measurement.
 *
 * docs/benchmarks.md has the figures of each row ("Choices by processor"). */
#include "base/cpu.h"
#include "kernels/cast/table.h"

/* Casts that compute more than they store gain nothing from streaming, and each line waits for it. */
static const tn_dtype zen4_ordinary[] = {
    TN_FLOAT8_E4M3FN, TN_FLOAT8_E4M3FNUZ, TN_FLOAT8_E5M2, TN_FLOAT8_E5M2FNUZ, TN_FLOAT8_E4M3, TN_FLOAT8_E3M4,
    TN_FLOAT6_E2M3, TN_FLOAT6_E3M2, TN_FLOAT4_E2M1,
};
static const tn_dtype zen4_ordinary_from[] = {
    TN_FLOAT8_E8M0, TN_INT16, TN_UINT16, TN_FX16, TN_INT8, TN_UINT8, TN_FX8, TN_INT4, TN_UINT4,
};

static void mark(bool *ordinary, const tn_dtype *types, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ordinary[types[i]] = true;
}
#define MARK(ordinary, types) mark(ordinary, types, sizeof types / sizeof *types)

/* Streaming stores are hardly faster than memcpy there: only codes of less than 8 bits gain from them. */
static void choose_skylake(tn_cast_kernels *k)
{
    static const tn_dtype wide[] = { TN_TF32, TN_INT32, TN_FLOAT64 };
    for (int type = 0; type < TN_DTYPE_COUNT; type++)
        k->ordinary_to_f32[type] = type != TN_FLOAT64;
    MARK(k->ordinary_from_f32, wide);
}

#if defined(__x86_64__)
/* Casts that only widen or halve are faster with AVX2 there, streaming in both. */
static void choose_zen5(tn_cast_kernels *k)
{
    static const tn_dtype to[] = { TN_FLOAT16, TN_BFLOAT16 };
    static const tn_dtype from[] = {
        TN_TF32, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT8_E8M0, TN_INT16, TN_UINT16, TN_FX16, TN_INT8, TN_UINT8,
        TN_FX8, TN_INT4, TN_UINT4, TN_INT2, TN_UINT2, TN_BOOL,
    };
    tn_cast_kernels avx2 = *k;
    tn_cast_kernels_init_avx2(&avx2);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        k->from_f32[to[i]] = avx2.from_f32[to[i]];
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        k->to_f32[from[i]] = avx2.to_f32[from[i]];
    k->f32_to_f64 = avx2.f32_to_f64;
}
#else
#define choose_zen5(k) (void)0
#endif

void tn_cast_kernels_choose(tn_cast_kernels *k, unsigned cpu)
{
    if (cpu & TN_CPU_ZEN5)
        choose_zen5(k);
    if (cpu & TN_CPU_SKYLAKE)
        choose_skylake(k);
    if (!(cpu & TN_CPU_ZEN4))
        return;
    MARK(k->ordinary_to_f32, zen4_ordinary);
    MARK(k->ordinary_from_f32, zen4_ordinary);
    MARK(k->ordinary_from_f32, zen4_ordinary_from);
}
