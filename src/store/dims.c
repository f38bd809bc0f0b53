/* store/dims.c - reading a shape dimension by dimension. */
#include "store/dims.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>

tn_status tn_dims_refuse(const tn_dims *d, uint64_t dim, tn_error *err)
{
    if (d->rank == TN_MAX_RANK)
        return tn_fail(err, TN_ERR_LIMIT, "expected at most %d dimensions but found more", TN_MAX_RANK);
    return tn_fail(err, TN_ERR_LIMIT, "expected a dimension below 2^63 but found %" PRIu64, dim);
}

/* One by one: memcmp() would wait for the stores of dimensions just read. */
static bool same_dims(const tn_dims *d, const int64_t *known)
{
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->dims[i] != known[i])
            return false;
    return true;
}

const int64_t *tn_dims_keep(const tn_dims *d, tn_arena *arena, const int64_t *known, uint32_t known_rank)
{
    if (known && d->rank == known_rank && same_dims(d, known))
        return known;
    return tn_arena_copy(arena, d->dims, d->rank * sizeof *d->dims);
}

tn_shown_shape tn_show_shape(uint32_t rank, const int64_t *shape)
{
    enum { ONE_MORE = 24, END = 8 };    /* room for a dimension, and for ", ...]" */
    tn_shown_shape shown = { "[" };
    size_t n = 1;
    uint32_t i = 0;
    for (; i < rank && n + ONE_MORE + END < sizeof shown.text; i++)
        n += (size_t)snprintf(shown.text + n, ONE_MORE, i ? ", %lld" : "%lld", (long long)shape[i]);
    snprintf(shown.text + n, sizeof shown.text - n, i < rank ? ", ...]" : "]");
    return shown;
}
