/* kernels/reorder/choose.c - what is faster on some processors, by measurement.
 *
 * docs/benchmarks.md has the figures of each row ("Choices by processor"). */
#include "base/cpu.h"
#include "kernels/reorder/table.h"

void tn_reorder_kernels_choose(tn_reorder_kernels *k, unsigned cpu)
{
    k->interleave_ordinary = cpu & TN_CPU_ZEN4;
}
