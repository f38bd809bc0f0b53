/* kernels/sparse/template.h - the table of a level's loops, one per width of numbers.
 *
 * Included once by each level's file, which first defines
 *
 *   LEVEL(name)
 *   count(f, p, n, width)      see tn_filter_count_fn
 *   pick(f, p, n, to, width)   see tn_filter_pick_fn */
#define KERNELS(width)                                                                     \
    static size_t count_##width(const tn_filter *f, const void *p, size_t n)               \
    {                                                                                      \
        return count(f, p, n, width);                                                      \
    }                                                                                      \
    static size_t pick_##width(const tn_filter *f, const void *p, size_t n, tn_picked to)  \
    {                                                                                      \
        return pick(f, p, n, to, width);                                                   \
    }

KERNELS(1)
KERNELS(2)
KERNELS(4)
KERNELS(8)

void LEVEL(tn_sparse_kernels_init)(tn_sparse_kernels *k)
{
    const tn_filter_count_fn counts[] = { count_1, count_2, count_4, count_8 };
    const tn_filter_pick_fn picks[] = { pick_1, pick_2, pick_4, pick_8 };
    memcpy(&k->count[TN_FILTER_1], counts, sizeof counts);
    memcpy(&k->pick[TN_FILTER_1], picks, sizeof picks);
}
