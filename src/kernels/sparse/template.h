/* kernels/sparse/template.h - the table of a level's loops, one for
 * each width of numbers.
 *
 * Included once by each level's file, which first defines
 *
 *   count(s, p, n, width)      see tn_sieve_count_fn
 *   pick(s, p, n, values, places, base, room, width)   see tn_sieve_pick_fn */
#include "kernels/sparse/table.h"

#define KERNELS(width)                                                                                 \
    static size_t count_##width(const tn_sieve *s, const void *p, size_t n)                            \
    {                                                                                                  \
        return count(s, p, n, width);                                                                  \
    }                                                                                                  \
    static size_t pick_##width(const tn_sieve *s, const void *p, size_t n, void *values, void *places, \
                               uint32_t base, size_t room)                                             \
    {                                                                                                  \
        return pick(s, p, n, values, places, base, room, width);                                       \
    }

KERNELS(1)
KERNELS(2)
KERNELS(4)
KERNELS(8)

void LEVEL(tn_sparse_kernels_init)(tn_sparse_kernels *k)
{
    const tn_sieve_count_fn counts[] = { count_1, count_2, count_4, count_8 };
    const tn_sieve_pick_fn picks[] = { pick_1, pick_2, pick_4, pick_8 };
    for (unsigned i = 0; i < 4; i++) {
        k->count[TN_SIEVE_1 + i] = counts[i];
        k->pick[TN_SIEVE_1 + i] = picks[i];
    }
}
