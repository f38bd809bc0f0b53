/* cli/ui/elements.h - single elements of a part, wherever its bytes are, or the
 * values of a tensor.
 *
 * A part that can be had without a copy is looked at in place; of any other
 * only the blocks that are asked for are read, one at a time. */
#ifndef TENON_CLI_UI_ELEMENTS_H
#define TENON_CLI_UI_ELEMENTS_H

#include <stdbool.h>
#include <tenon/tenon.h>
#include <tenon/values.h>

typedef struct elements {
    const tn_file *file;
    tn_values     *values;      /* NULL: elements of a part */
    tn_part        rows;        /* the part, as one row if it is dense */
    int64_t        count;
    uint64_t       row;         /* elements per row */
    const void    *data;        /* of the block at `first` */
    void          *buffer;
    uint64_t       first, n;    /* elements of the block */
    uint64_t       block;       /* elements per block */
} elements;

/* TN_ERR_UNSUPPORTED: a type this build does not know. */
tn_status elements_open(elements *e, const tn_file *file, const tn_part *part, tn_error *err);

/* The values of codes; decoded data of a large compressed tensor goes to a
 * temporary file. */
tn_status elements_open_values(elements *e, const tn_file *file, const tn_tensor *tensor, tn_error *err);

void      elements_close(elements *e);

/* One element by its row-major index, which must be in range. */
tn_status elements_get(elements *e, uint64_t index, tn_value *value, tn_error *err);

#endif
