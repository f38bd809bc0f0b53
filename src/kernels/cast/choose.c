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

void tn_cast_kernels_choose(tn_cast_kernels *k, unsigned cpu)
{
    if (cpu & TN_CPU_SKYLAKE)
        choose_skylake(k);
    if (!(cpu & TN_CPU_ZEN4))
        return;
    MARK(k->ordinary_to_f32, zen4_ordinary);
    MARK(k->ordinary_from_f32, zen4_ordinary);
    MARK(k->ordinary_from_f32, zen4_ordinary_from);
}
