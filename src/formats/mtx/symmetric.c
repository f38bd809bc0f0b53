/* formats/mtx/symmetric.c - whether a matrix can be written as its lower
 * triangle: every element must have the bits of its mirror image. */
#include "formats/mtx/mtx.h"
#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static tn_status refuse(unsigned long long row, unsigned long long column, const char *what, tn_error *err)
{
    return tn_fail(err, TN_ERR_LOSS, "it cannot be written as symmetric: [%llu, %llu] %s [%llu, %llu]", row,
                   column, what, column, row);
}

/* Elements a and b of the values. */
static bool is_same(const tn_mtx_matrix *m, uint64_t a, uint64_t b)
{
    const tn_dtype_info *type = tn_dtype_get(m->tensor->dtype);
    unsigned words = type->kind == TN_KIND_COMPLEX ? 2 : 1, bits = type->bits / words;
    for (unsigned k = 0; k < words; k++)
        if (tn_code_get(m->values, a * words + k, bits) != tn_code_get(m->values, b * words + k, bits))
            return false;
    return true;
}

static tn_status check_array(const tn_mtx_matrix *m, tn_error *err)
{
    uint64_t n = (uint64_t)m->tensor->shape[0];
    for (uint64_t row = 1; row < n; row++)
        for (uint64_t column = 0; column < row; column++)
            if (!is_same(m, row * n + column, column * n + row))
                return refuse(row, column, "differs from", err);
    return TN_OK;
}

/* --- entries, which are in any order --- */

typedef struct place {
    uint64_t high, low;         /* the larger and the smaller index */
    uint64_t entry;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->entry < y->entry ? -1 : 1;
}

/* Checks the entries of one element and of its mirror image, which are the first *taken of n places. */
static tn_status check_pair(const tn_mtx_matrix *m, const place *p, size_t n, size_t *taken, tn_error *err)
{
    uint64_t row = tn_mtx_index(m, p->entry, 0), column = tn_mtx_index(m, p->entry, 1);
    size_t same = 1;
    while (same < n && p[same].high == p->high && p[same].low == p->low)
        same++;
    *taken = same;
    if (same == 1)
        return row == column ? TN_OK : refuse(row, column, "is an entry but not", err);
    if (same > 2 || tn_mtx_index(m, p[1].entry, 0) == row)
        return tn_fail(err, TN_ERR_LOSS,
                       "it cannot be written as symmetric: it has two entries for one element, [%llu, %llu] "
                       "or its mirror image", (unsigned long long)p->high, (unsigned long long)p->low);
    return is_same(m, p[0].entry, p[1].entry) ? TN_OK : refuse(p->high, p->low, "differs from", err);
}

static tn_status check_entries(const tn_mtx_matrix *m, tn_error *err)
{
    place *places = calloc(m->entries ? m->entries : 1, sizeof *places);
    TN_NEED(places, err);
    for (uint64_t i = 0; i < m->entries; i++) {
        uint64_t row = tn_mtx_index(m, i, 0), column = tn_mtx_index(m, i, 1);
        places[i] = (place){ row > column ? row : column, tn_min_u64(row, column), i };
    }
    qsort(places, m->entries, sizeof *places, by_place);
    tn_status status = TN_OK;
    for (size_t i = 0, taken = 0; i < m->entries && !status; i += taken)
        status = check_pair(m, &places[i], m->entries - i, &taken, err);
    free(places);
    return status;
}

tn_status tn_mtx_check_symmetric(const tn_mtx_matrix *m, tn_error *err)
{
    const int64_t *shape = m->tensor->shape;
    if (shape[0] != shape[1])
        return tn_fail(err, TN_ERR_LOSS,
                       "it cannot be written as symmetric: it has %lld rows and %lld columns",
                       (long long)shape[0], (long long)shape[1]);
    return m->indices ? check_entries(m, err) : check_array(m, err);
}
