/* kernels/sparse/template.h - the table of a level's loops, one per width of numbers.
 *
 * Included once by each level's file, which first defines
 *
 *   LEVEL(name)
 *   count(f, p, n, width)      see tn_filter_count_fn
 *   pick(f, p, n, to, width)   see tn_filter_pick_fn
 *   VECTOR, vec, vm        bytes of a vector, its type, that of a mask of lanes
 *   load(p), repeat(p)     a vector; 8 bytes in every lane
 *   not_above(a, b)        lanes of uint32 where a <= b
 *   pairs_not_above(a, b)  pairs of uint32 below 2^31 where a <= b
 *   not_below(a, limits)   lanes of uint32 where a >= limits
 *   either(m, n), any(m) */
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

static bool ascend(const void *numbers, size_t n)
{
    const uint8_t *p = numbers;
    size_t i = 1;
    vm wrong = { 0 };
    for (; n > i && n - i >= VECTOR / 4; i += VECTOR / 4) {
        fetch_ahead(p + 4 * i);
        wrong = either(wrong, not_above(load(p + 4 * i), load(p + 4 * i - 4)));
    }
    return !any(wrong) && tn_ascend_scalar(p + 4 * i - 4, n - (i - 1));
}

static bool pairs_ascend(const void *pairs, size_t n, const uint32_t limits[2])
{
    const uint8_t *p = pairs;
    const vec most = repeat(limits);
    size_t i = 1;
    vm wrong = { 0 };
    for (; n > i && n - i >= VECTOR / 8; i += VECTOR / 8) {
        vec v = load(p + 8 * i);
        fetch_ahead(p + 8 * i);
        wrong = either(wrong, not_below(v, most));
        wrong = either(wrong, pairs_not_above(v, load(p + 8 * i - 8)));
    }
    /* the first pair of all was not compared with the limits if there are vectors */
    return !any(wrong) && tn_pairs_ascend_scalar(p, n < 1 ? n : 1, limits) &&
           tn_pairs_ascend_scalar(p + 8 * i - 8, n - (i - 1), limits);
}

void LEVEL(tn_sparse_kernels_init)(tn_sparse_kernels *k)
{
    const tn_filter_count_fn counts[] = { count_1, count_2, count_4, count_8 };
    const tn_filter_pick_fn picks[] = { pick_1, pick_2, pick_4, pick_8 };
    k->ascend = ascend;
    k->pairs_ascend = pairs_ascend;
    memcpy(&k->count[TN_FILTER_1], counts, sizeof counts);
    memcpy(&k->pick[TN_FILTER_1], picks, sizeof picks);
}
