/* kernels/reorder/choose.c - what is faster on some processors, by measurement.
 *
 * docs/benchmarks.md has the figures of each row ("Choices by processor"). */
#include "base/cpu.h"
#include "kernels/reorder/table.h"

#if defined(__x86_64__)
/* Elements of 1 and 2 bytes are transposed faster with AVX2 there. */
static void choose_skylake(tn_reorder_kernels *k)
{
    tn_reorder_kernels avx2 = *k;
    tn_reorder_kernels_init_avx2(&avx2);
    k->transpose[0] = avx2.transpose[0];
    k->transpose[1] = avx2.transpose[1];
}

/* Elements of 1 byte are, and packed ones, which are moved as bytes. */
static void choose_zen5(tn_reorder_kernels *k)
{
    tn_reorder_kernels avx2 = *k;
    tn_reorder_kernels_init_avx2(&avx2);
    k->transpose[0] = avx2.transpose[0];
}
#else
#define choose_skylake(k) (void)0
#define choose_zen5(k) (void)0
#endif

void tn_reorder_kernels_choose(tn_reorder_kernels *k, unsigned cpu)
{
    k->interleave_ordinary = cpu & (TN_CPU_ZEN4 | TN_CPU_SKYLAKE);
    if (cpu & TN_CPU_SKYLAKE)
        choose_skylake(k);
    if (cpu & TN_CPU_ZEN5)
        choose_zen5(k);
}
