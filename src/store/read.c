/* store/read.c - reading parts into the caller's memory. */
#include "base/checked.h"
#include "base/error.h"
#include "store/stream.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <string.h>

/* Raw bytes are read directly into the buffer. */
static tn_status read_raw(const tn_file *f, const tn_part *p, uint64_t from, uint8_t *buffer, size_t n,
                          tn_error *err)
{
    const tn_stored *s = tn_stored_of(p);
    tn_status status = tn_source_read(f->shards[s->shard].source, s->offset + from, buffer, n, err);
    if (!status && tn_swap_unit(p) > 1)
        tn_swap_bytes(buffer, buffer, n, tn_swap_unit(p));
    return status;
}

/* Other bytes are decoded. If they can only be read in order, what is before `from` is dropped. */
static tn_status read_stream(const tn_file *f, const tn_part *p, uint64_t from, uint8_t *buffer, size_t n,
                             tn_error *err)
{
    tn_stream s = { 0 };
    bool anywhere = tn_part_splits(p) || tn_stored_more_of(p)->stride;
    uint64_t at = anywhere ? from : 0, end = from + n;
    tn_status status = tn_stream_open(&s, f, NULL, p, at, anywhere ? n : p->nbytes, TN_CHECKSUM_NONE, err);
    bool whole = end == p->nbytes;      /* then the end is checked too */
    while (!status && (at < end || whole)) {
        const uint8_t *bytes;
        size_t got;
        status = tn_stream_next(&s, &bytes, &got, err);
        if (status || !got)
            break;
        uint64_t first = from > at ? from - at : 0, last = tn_min_u64(end - at, got);
        if (first < last)
            memcpy(buffer + (at + first - from), bytes + first, (size_t)(last - first));
        at += got;
    }
    tn_stream_free(&s);
    return status;
}

static tn_status read_bytes(const tn_file *f, const tn_part *p, uint64_t from, void *buffer, size_t n,
                            tn_error *err)
{
    TN_TRY(tn_part_readable(NULL, p, err));
    bool raw = tn_part_is_range(p) && !tn_stored_more_of(p)->swapped;
    return raw ? read_raw(f, p, from, buffer, n, err) : read_stream(f, p, from, buffer, n, err);
}

static tn_status wrong_size(uint64_t expected, size_t found, tn_error *err)
{
    return tn_fail(err, TN_ERR_ARGUMENT, "expected a buffer of %" PRIu64 " bytes but found %" PRIu64,
                   expected, (uint64_t)found);
}

tn_status tn_part_read(const tn_file *f, const tn_part *p, void *buffer, size_t size, tn_error *err)
{
    TN_GIVEN(f, "a file", err);
    TN_GIVEN(p, "a part", err);
    TN_GIVEN(buffer || !size, "a buffer", err);
    return size == p->nbytes ? read_bytes(f, p, 0, buffer, size, err) : wrong_size(p->nbytes, size, err);
}

tn_status tn_part_read_rows(const tn_file *f, const tn_part *p, uint64_t first, uint64_t count, void *buffer,
                            size_t size, tn_error *err)
{
    TN_GIVEN(f, "a file", err);
    TN_GIVEN(p, "a part", err);
    TN_GIVEN(buffer || !size, "a buffer", err);
    const tn_array *a = &p->array;
    const tn_dtype_info *type = tn_dtype_get(a->dtype);
    uint64_t rows = a->rank ? (uint64_t)a->shape[0] : 1, row_bits = 0;
    if (!type)
        return tn_part_readable(NULL, p, err);
    if (first > rows || count > rows - first)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected rows within %" PRIu64 " but found %" PRIu64 " from %" PRIu64, rows, count,
                       first);
    /* The bits of the whole part fit: nbytes was checked when the file was opened. */
    if (a->rank == 0 || tn_shape_count(a->rank - 1, a->shape + 1, &row_bits))
        row_bits = a->rank == 0 ? 1 : 0;
    if (!tn_mul_u64(row_bits, type->bits, &row_bits))
        row_bits = 0;                   /* no rows at all: shape[0] is 0 */
    uint64_t begin = first * row_bits, end = (first + count) * row_bits;
    bool at_end = first + count == rows;
    if (begin % 8 || (end % 8 && !at_end))
        return tn_fail(err, TN_ERR_ARGUMENT, "rows of %" PRIu64 " bits do not begin and end on whole bytes",
                       row_bits);
    uint64_t n = (end + 7) / 8 - begin / 8;
    return size == n ? read_bytes(f, p, begin / 8, buffer, size, err) : wrong_size(n, size, err);
}
