/* kernels/scaled_decode/choose.c - what is faster on some processors, by measurement.
 *
 * docs/benchmarks.md has the figures of each row ("Choices by processor"). */
#include "base/cpu.h"
#include "kernels/scaled_decode/table.h"

/* A burst of streaming stores after each block of values waits for memory, and the next block for it. */
void tn_decode_kernels_choose(tn_decode_kernels *k, unsigned cpu)
{
    k->ordinary = cpu & TN_CPU_ZEN4;
}
