/* quant/moved_codes.c - codes of 4 bits in another order, with the best kernels of this CPU. */
#include "quant/moved_codes.h"
#include "kernels/lookup/table.h"

void tn_codes_swap(uint8_t *out, const uint8_t *in, size_t n)
{
    tn_lookup_kernels_get()->swap_halves(out, in, n);
}

void tn_codes_turn(uint8_t *const out[8], const uint32_t *words, size_t n)
{
    tn_lookup_kernels_get()->eights(out, words, n);
}
