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

void tn_cast_kernels_choose(tn_cast_kernels *k, unsigned cpu)
{
    if (!(cpu & TN_CPU_ZEN4))
        return;
    for (size_t i = 0; i < sizeof zen4_ordinary / sizeof *zen4_ordinary; i++)
        k->ordinary_to_f32[zen4_ordinary[i]] = k->ordinary_from_f32[zen4_ordinary[i]] = true;
    for (size_t i = 0; i < sizeof zen4_ordinary_from / sizeof *zen4_ordinary_from; i++)
        k->ordinary_from_f32[zen4_ordinary_from[i]] = true;
}
