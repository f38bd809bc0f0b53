/* quant/moved_codes.c - codes in another order, with the best kernels of this CPU. */
#include "quant/moved_codes.h"
#include "kernels/lookup/table.h"
#include "kernels/reorder/table.h"

void tn_codes_swap(uint8_t *out, const uint8_t *in, size_t n)
{
    tn_lookup_kernels_get()->swap_halves(out, in, n);
}

void tn_codes_turn(uint8_t *const out[8], const uint32_t *words, size_t n)
{
    tn_lookup_kernels_get()->eights(out, words, n);
}

void tn_matrix_turn(uint8_t *out, const uint8_t *in, const tn_turned *m)
{
    const int power = (m->size > 1) + (m->size > 2) + (m->size > 4);
    tn_reorder_kernels_get()->transpose[power](out, (ptrdiff_t)m->out_step, in, (ptrdiff_t)m->in_step,
                                               m->columns, m->rows, false);
}
