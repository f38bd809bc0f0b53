/* cli/ui/elements.c - single elements of a part, wherever its bytes are, or the
 * values of a tensor. */
#include "ui/elements.h"
#include "ui/say.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes per block.  Compressed data is decoded from the front at each read, so
 * what is not too large is read whole. */
#define RAW_BLOCK        (UINT64_C(64) << 10)
#define COMPRESSED_BLOCK (UINT64_C(64) << 20)

static tn_status refuse(tn_error *err, const char *what, const char *spelling)
{
    *err = (tn_error){ .status = TN_ERR_UNSUPPORTED, .offset = TN_NO_OFFSET };
    snprintf(err->text, sizeof err->text, "%s %.100s cannot be read by this build", what, spelling);
    return err->status;
}

/* A multiple of 8 rows begins on a whole byte for every type. */
static uint64_t elements_a_block(const tn_part *part, unsigned bits, uint64_t row)
{
    const tn_stored_info stored = stored_info(NULL, part);
    bool raw = stored.encoding == TN_ENCODING_RAW && stored.extents <= 1;
    uint64_t bytes = raw ? RAW_BLOCK : COMPRESSED_BLOCK;
    uint64_t rows = bytes * 8 / bits / row / 8 * 8;
    return row * (rows > 0 ? rows : 8);
}

tn_status elements_open(elements *e, const tn_file *file, const tn_part *part, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(part->array.dtype);
    uint64_t count = 0;
    if (!type)
        return refuse(err, "type", type_of(TN_UNKNOWN, part).s);
    if (tn_shape_count(part->array.rank, part->array.shape, &count) != TN_OK)
        return refuse(err, "shape", shape_of(part->array.rank, part->array.shape).s);
    *e = (elements){ .file = file, .rows = *part, .count = (int64_t)count, .row = 1 };
    const tn_stored_info stored = stored_info(NULL, part);
    if (stored.dense && stored.extents <= 1)
        e->rows.array = (tn_array){ .dtype = type->dtype, .rank = 1, .shape = &e->count };
    else if (count > 0 && part->array.rank > 0)
        e->row = count / (uint64_t)part->array.shape[0];
    e->block = elements_a_block(part, type->bits, e->row);
    if (part->data) {
        e->data = part->data;
        e->n = count;
    }
    return TN_OK;
}

tn_status elements_open_values(elements *e, const tn_file *file, const tn_tensor *tensor, tn_error *err)
{
    uint64_t count = 0;
    if (tn_shape_count(tensor->rank, tensor->shape, &count) != TN_OK)
        return refuse(err, "shape", shape_of(tensor->rank, tensor->shape).s);
    *e = (elements){ .file = file, .count = (int64_t)count, .row = 1,
                     .rows.array = { .dtype = tensor->dtype, .rank = 1 } };
    tn_status status = tn_values_open(file, tensor, &e->values, err);
    if (status == TN_OK)
        e->block = elements_a_block(&e->rows, tn_dtype_get(tensor->dtype)->bits, 1);
    return status;
}

void elements_close(elements *e)
{
    tn_values_close(e->values);
    free(e->buffer);
}

static tn_status load(elements *e, uint64_t index, tn_error *err)
{
    uint64_t left, bits = tn_dtype_get(e->rows.array.dtype)->bits;
    e->first = index / e->block * e->block;
    left = (uint64_t)e->count - e->first;
    e->n = left < e->block ? left : e->block;
    size_t size = (size_t)((e->n * bits + 7) / 8);
    e->data = e->buffer = must_resize(e->buffer, size);
    tn_status status = e->values ? tn_values_read(e->values, e->first, e->n, e->buffer, size, err)
                                 : tn_part_read_rows(e->file, &e->rows, e->first / e->row, e->n / e->row,
                                                     e->buffer, size, err);
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
    *value = tn_value_get(e->rows.array.dtype, e->data, index - e->first);
    return TN_OK;
}
