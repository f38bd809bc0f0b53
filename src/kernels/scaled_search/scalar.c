/* kernels/scaled_search/scalar.c - which kernels a machine has. */
#include "kernels/scaled_search/table.h"

#include "base/cpu.h"

void tn_search_kernels_init(tn_search_kernels *k, unsigned cpu)
{
    *k = (tn_search_kernels){ 0 };
#if defined(__x86_64__)
    if (cpu & TN_CPU_AVX2)
        tn_search_kernels_init_avx2(k);
    if (cpu & TN_CPU_AVX512)
        tn_search_kernels_init_avx512(k);
#else
    (void)cpu;
#endif
}
