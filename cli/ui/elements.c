/* cli/ui/elements.c - single elements of a part, wherever its bytes are, or the
 * values of a tensor. */
#include "ui/elements.h"
#include "ui/say.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes per block.  Compressed data is decoded from the front, so what is not
 * too large is read whole. */
#define RAW_BLOCK        (UINT64_C(64) << 10)
#define COMPRESSED_BLOCK (UINT64_C(64) << 20)

static tn_status refuse(tn_error *err, const char *shape)
{
    *err = (tn_error){ .status = TN_ERR_UNSUPPORTED, .offset = TN_NO_OFFSET };
    snprintf(err->text, sizeof err->text, "shape %.100s cannot be read by this build", shape);
    return err->status;
}

static uint64_t block_bytes(const tn_part *part)
{
    const tn_stored_info stored = stored_info(NULL, part);
    return stored.encoding == TN_ENCODING_RAW && stored.extents <= 1 ? RAW_BLOCK : COMPRESSED_BLOCK;
}

tn_status elements_open(elements *e, const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                        tn_error *err)
{
    const tn_array values = { .dtype = tensor->dtype, .rank = tensor->rank, .shape = tensor->shape };
    const tn_array *a = part ? &part->array : &values;
    const tn_dtype_info *type = tn_dtype_get(a->dtype);
    *e = (elements){ .part = part ? (uint32_t)(part - tensor->parts) : 0, .dtype = a->dtype };
    if (!type) {
        tn_status status = tn_view_open(file, tensor, &e->view, err);  /* which says why it cannot be read */
        elements_close(e);
        return status;
    }
    if (tn_shape_count(a->rank, a->shape, &e->count) != TN_OK)
        return refuse(err, shape_of(a->rank, a->shape).s);
    e->block = (part ? block_bytes(part) : RAW_BLOCK) * 8 / type->bits;
    if (part && part->data) {
        e->data = part->data;
        e->n = e->count;
        return TN_OK;
    }
    tn_status status = tn_view_open(file, tensor, &e->view, err);
    if (status == TN_OK && !part)
        status = tn_view_add_values(&e->view, TN_UNKNOWN, err);
    if (status != TN_OK)
        elements_close(e);
    return status;
}

void elements_close(elements *e)
{
    tn_view_close(e->view);
    free(e->buffer);
}

static tn_status load(elements *e, uint64_t index, tn_error *err)
{
    e->first = index / e->block * e->block;
    e->n = e->count - e->first < e->block ? e->count - e->first : e->block;
    size_t size = (size_t)((e->n * tn_dtype_get(e->dtype)->bits + 7) / 8);
    e->data = e->buffer = must_resize(e->buffer, size);
    tn_status status = tn_view_read(e->view, e->part, e->first, e->n, e->buffer, size, err);
    if (status != TN_OK)
        e->n = 0;
    return status;
}

tn_status elements_get(elements *e, uint64_t index, tn_value *value, tn_error *err)
{
    if (index - e->first >= e->n) {
        tn_status status = load(e, index, err);
        if (status != TN_OK)
            return status;
    }
    *value = tn_value_get(e->dtype, e->data, index - e->first);
    return TN_OK;
}
