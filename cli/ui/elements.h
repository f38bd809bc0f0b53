/* cli/ui/elements.h - single elements of a part, wherever its bytes are, or the
 * values of a tensor.
 *
 * A part that can be had without a copy is looked at in place; of any other
 * only the blocks that are asked for are read, one at a time. */
#ifndef TENON_CLI_UI_ELEMENTS_H
#define TENON_CLI_UI_ELEMENTS_H

#include <stdbool.h>
#include <tenon/tenon.h>

typedef struct elements {
    tn_view    *view;           /* NULL: all are in place */
    uint32_t    part;
    tn_dtype    dtype;
    uint64_t    count;
    const void *data;           /* of the block at `first` */
    void       *buffer;
    uint64_t    first, n;       /* elements of the block */
    uint64_t    block;          /* elements per block */
} elements;

/* A part of the tensor or, if it is NULL, its values; what is decoded of a large
 * compressed one goes to a temporary file.  TN_ERR_UNSUPPORTED: a type this build
 * does not know. */
tn_status elements_open(elements *e, const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                        tn_error *err);
void      elements_close(elements *e);

/* One element by its row-major index, which must be in range. */
tn_status elements_get(elements *e, uint64_t index, tn_value *value, tn_error *err);

#endif
