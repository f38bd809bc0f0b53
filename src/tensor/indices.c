/* tensor/indices.c - messages for wrong indices. */
#include "tensor/indices.h"

#include <stdio.h>

#include <tenon/tensor.h>

/* An index with its sign. */
typedef struct meant { char text[24]; } meant;
static meant show(tn_dtype dtype, uint64_t n)
{
    meant shown;
    bool negative = n > INT64_MAX && (dtype == TN_INT32 || dtype == TN_INT64);
    unsigned long long magnitude = negative ? -n : n;
    snprintf(shown.text, sizeof shown.text, "%s%llu", negative ? "-" : "", magnitude);
    return shown;
}

tn_fault tn_index_fault(tn_dtype dtype, uint64_t entry, uint32_t dimension, int64_t extent, uint64_t found)
{
    tn_fault f;
    snprintf(f.text, sizeof f.text, "entry %llu: expected an index below %lld in dimension %u but found %s",
             (unsigned long long)entry, (long long)extent, dimension, show(dtype, found).text);
    return f;
}

tn_fault tn_row_pointer_fault(const tn_row_pointer *p)
{
    tn_fault f;
    char expected[60] = "0";
    if (p->i && p->found < p->before)
        snprintf(expected, sizeof expected, "at least %llu, as the one before it,",
                 (unsigned long long)p->before);
    else if (p->i || !p->found)
        snprintf(expected, sizeof expected, "%s%llu, the number of values,", p->i < p->rows ? "at most " : "",
                 (unsigned long long)p->entries);
    snprintf(f.text, sizeof f.text, "row pointer %llu: expected %s but found %s", (unsigned long long)p->i,
             expected, show(p->dtype, p->found).text);
    return f;
}

tn_indices_text tn_indices_show(uint64_t linear, uint32_t rank, const int64_t *shape)
{
    tn_indices_text t = { "" };
    uint64_t index[TN_MAX_RANK];
    size_t n = 0, room = sizeof t.text - 32;        /* for one more index and the end */
    for (uint32_t i = rank; i-- > 0; linear /= (uint64_t)shape[i])
        index[i] = linear % (uint64_t)shape[i];
    uint32_t shown = 0;
    for (; shown < rank && n < room; shown++)
        n += (size_t)snprintf(t.text + n, sizeof t.text - n, "%s%llu", shown ? ", " : "",
                              (unsigned long long)index[shown]);
    if (shown < rank)
        snprintf(t.text + n, sizeof t.text - n, ", ...");
    return t;
}
