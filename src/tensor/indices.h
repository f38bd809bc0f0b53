/* tensor/indices.h - checks of indices and row pointers of sparse tensors, and their messages. */
#ifndef TN_TENSOR_INDICES_H
#define TN_TENSOR_INDICES_H

#include <tenon/dtype.h>

#include <stdint.h>

typedef struct tn_fault { char text[160]; } tn_fault;

/* "entry 3: expected an index below 4 in dimension 1 but found -1" */
tn_fault tn_index_fault(tn_dtype dtype, uint64_t entry, uint32_t dimension, int64_t extent, uint64_t found);

/* "0, 5": the indices of the element with this linear index; long ones end in "...". */
typedef struct tn_indices_text { char text[120]; } tn_indices_text;
tn_indices_text tn_indices_show(uint64_t linear, uint32_t rank, const int64_t *shape);

/* Row pointer `i` of 0 .. rows, of a tensor with `entries` entries. */
typedef struct tn_row_pointer {
    tn_dtype dtype;
    uint64_t i, rows, entries;
    uint64_t before, found;     /* the previous one (0 for the first), and this one */
} tn_row_pointer;

static inline bool tn_row_pointer_is_right(const tn_row_pointer *p)
{
    return p->found >= p->before && p->found <= p->entries && (p->i || !p->found) &&
           (p->i < p->rows || p->found == p->entries);
}

/* "row pointer 5: expected at least 3, as the one before it, but found 2" */
tn_fault tn_row_pointer_fault(const tn_row_pointer *p);

#endif
