/* formats/ztensor/sparse.c - the sparse layouts of the format's own library.
 *
 *     sparsecoo   entries: u64 index[rank], value
 *     sparsecsr   u64 indptr[rows + 1], u64 index[n], value[n]
 *
 * The number of entries follows from the size.  The checksum is that of all bytes. */
#include "base/error.h"
#include "formats/ztensor/ztensor.h"

#include <string.h>

enum { INDEX_BYTES = 8 };

/* The entry stays opaque: listed, and reading it says why not. */
static tn_status stay_opaque(tn_entry *e, const char *why, tn_error *err)
{
    e->form_text = e->more.opaque;
    e->more.opaque = why;
    return why ? TN_OK : tn_fail_nomem(err);
}

static const int64_t *keep_counts(tn_file *f, uint64_t first, uint64_t second)
{
    return tn_arena_copy(&f->arena, (int64_t[]){ (int64_t)first, (int64_t)second }, 2 * sizeof(int64_t));
}

/* The extent of indices, `skipped` bytes into the entry's. */
static tn_stored index_extent(const tn_entry *e, uint64_t skipped, uint64_t size)
{
    return (tn_stored){ .offset = e->stored.offset + skipped, .size = size,
                        .type = tn_dtype_get(TN_UINT64)->ztensor, .shard = e->stored.shard };
}

static tn_part index_part(const char *role, uint32_t rank, const int64_t *shape, uint64_t count,
                          const tn_stored *stored)
{
    return (tn_part){
        .role = role, .array = { .dtype = TN_UINT64, .rank = rank, .shape = shape },
        .nbytes = count * INDEX_BYTES, .stored = stored,
    };
}

/* The entry's array becomes the values: `size` bytes after `skipped` ones. */
static void make_sparse(tn_entry *e, tn_form form, const int64_t *count, uint64_t skipped, uint64_t size)
{
    tn_stored *s = &e->stored;
    tn_entry_make_sparse(e, form, count, e->companions, e->ncompanions);
    e->more.opaque = NULL;
    e->more.sum = (tn_range){ s->offset, s->size };
    s->offset += skipped;
    s->size = size;
}

static tn_status take_coo(tn_file *f, tn_entry *e, tn_part parts[ZT_COMPANIONS], tn_error *err)
{
    uint64_t width = tn_dtype_get(e->dtype)->bits / 8, row = (uint64_t)e->rank * INDEX_BYTES;
    uint64_t pitch = row + width, size = e->stored.size, n = size / pitch;
    if (size % pitch)
        return stay_opaque(e, tn_arena_printf(&f->arena, "sparsecoo of %llu bytes, with entries of %llu",
                                              (unsigned long long)size, (unsigned long long)pitch), err);
    const int64_t *shape = keep_counts(f, n, e->rank);
    const tn_stored extent = index_extent(e, 0, n ? size - width : 0);
    const tn_stored *stored = tn_file_keep_stored(f, &extent, &(tn_stored_more){ .pitch = pitch });
    TN_NEED(shape && stored, err);
    parts[0] = index_part("indices", 2, shape, n * e->rank, stored);
    e->more.pitch = pitch;
    e->companions = parts;
    e->ncompanions = 1;
    row = n ? row : 0;          /* without an entry there is no row to skip */
    make_sparse(e, TN_FORM_COO, shape, row, size - row);
    return TN_OK;
}

static tn_status take_csr(tn_file *f, tn_entry *e, tn_part parts[ZT_COMPANIONS], tn_error *err)
{
    uint64_t each = INDEX_BYTES + tn_dtype_get(e->dtype)->bits / 8, size = e->stored.size;
    if (e->rank != 2)
        return stay_opaque(e, tn_arena_printf(&f->arena, "sparsecsr of %u dimensions, where it has 2",
                                              e->rank), err);
    uint64_t pointers = (uint64_t)e->shape[0] + 1;
    bool fits = pointers <= size / INDEX_BYTES;
    if (!fits || (size - pointers * INDEX_BYTES) % each)
        return stay_opaque(e, tn_arena_printf(&f->arena, "sparsecsr of %llu bytes, with %llu row pointers "
                                              "and entries of %llu", (unsigned long long)size,
                                              (unsigned long long)pointers, (unsigned long long)each), err);
    uint64_t head = pointers * INDEX_BYTES, n = (size - head) / each;
    const int64_t *counts = keep_counts(f, n, pointers);
    const tn_stored extents[] = { index_extent(e, head, n * INDEX_BYTES), index_extent(e, 0, head) };
    const tn_stored *stored = tn_arena_copy(&f->arena, extents, sizeof extents);
    TN_NEED(counts && stored, err);
    parts[0] = index_part("indices", 1, &counts[0], n, &stored[0]);
    parts[1] = index_part("indptr", 1, &counts[1], pointers, &stored[1]);
    e->companions = parts;
    e->ncompanions = 2;
    head += n * INDEX_BYTES;
    make_sparse(e, TN_FORM_CSR, counts, head, size - head);
    return TN_OK;
}

tn_status zt_take_sparse(tn_file *f, tn_entry *e, tn_part companions[ZT_COMPANIONS], tn_error *err)
{
    const char *layout = e->more.opaque;
    bool coo = strcmp(layout, "sparsecoo") == 0;
    uint64_t count;
    if ((!coo && strcmp(layout, "sparsecsr") != 0) || e->dtype == TN_UNKNOWN ||
        e->stored.encoding == TN_ENCODING_UNKNOWN)
        return TN_OK;           /* opaque for another reason */
    if (e->stored.encoding != TN_ENCODING_RAW)
        return stay_opaque(e, tn_arena_printf(&f->arena, "%s, compressed", layout), err);
    if (e->stored.order != TN_LITTLE_ENDIAN)
        return stay_opaque(e, tn_arena_printf(&f->arena, "%s, big-endian", layout), err);
    if (tn_shape_count(e->rank, e->shape, &count))
        return stay_opaque(e, tn_arena_printf(&f->arena, "%s of more than 2^63 - 1 elements", layout), err);
    return coo ? take_coo(f, e, companions, err) : take_csr(f, e, companions, err);
}
