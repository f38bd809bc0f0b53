/* formats/npy/read.c - one array, named after the file unless its header has a name. */
#include "formats/npy/npy.h"
#include "base/error.h"
#include "tensor/array.h"

#include <string.h>

static int probe(const uint8_t *head, size_t n)
{
    return n >= TN_NPY_MAGIC_BYTES && memcmp(head, TN_NPY_MAGIC, TN_NPY_MAGIC_BYTES) == 0 ? 100 : 0;
}

/* bfloat16 is written as NumPy writes the type of ml_dtypes. */
const char *tn_npy_type_name(const tn_dtype_info *type)
{
    if (type->dtype == TN_BFLOAT16)
        return "<V2";
    return type->numpy && strchr("<|", type->numpy[0]) ? type->numpy : NULL;
}

/* --- for npz too --- */

/* With at most one dimension above 1 both orders are the same. */
static bool is_line(uint32_t rank, const int64_t *shape)
{
    uint32_t above_1 = 0;
    for (uint32_t i = 0; i < rank; i++)
        above_1 += shape[i] > 1;
    return above_1 < 2;
}

static tn_status check_size(const tn_entry *e, uint64_t available, uint64_t *nbytes, tn_error *err)
{
    if (tn_shape_nbytes(e->dtype, e->rank, e->shape, nbytes))
        return tn_fail_at(err, TN_ERR_LIMIT, e->at, "its shape takes more than 2^63 bytes");
    if (*nbytes > available)
        return tn_fail_at(err, TN_ERR_TRUNCATED, e->at,
                          "shape and type take %llu bytes but %llu follow the header",
                          (unsigned long long)*nbytes, (unsigned long long)available);
    return TN_OK;
}

tn_status tn_npy_describe(tn_file *f, const tn_npy_header *h, uint64_t available, tn_entry *e, tn_error *err)
{
    e->dtype = h->dtype;
    e->rank = h->rank;
    e->shape = h->shape;
    e->meta = h->meta;
    e->nmeta = (uint32_t)h->nmeta;
    e->record = h->record;
    e->stored.type = h->type;
    e->more.never = h->never;
    e->stored.order = (uint8_t)h->order;
    e->stored.size = available;
    if (h->nfile_meta && !f->count) {
        f->meta = h->file_meta;
        f->nmeta = h->nfile_meta;
    }
    if (h->record.len && h->fortran)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "expected C order with a record of Tenon but found Fortran order");
    if (h->dtype == TN_UNKNOWN)
        return TN_OK;
    tn_status status = check_size(e, available, &e->stored.size, err);
    bool columns = h->fortran && e->stored.size && !is_line(e->rank, e->shape);
    return status || !columns ? status : tn_entry_make_fortran(f, e, err);
}

/* --- a file of its own --- */

/* The prefix is read once only: a second read could find other bytes. */
static tn_status load_header(tn_file *f, tn_npy_header *h, tn_error *err)
{
    const tn_source *source = f->shards[0].source;
    uint64_t size = tn_source_size(source);
    uint8_t head[TN_NPY_PREFIX_MAX];
    size_t have = size < sizeof head ? (size_t)size : sizeof head, n;
    if (tn_source_read(source, 0, head, have, err) || tn_npy_header_size(head, have, 0, &n, err))
        return err->status;
    if (n > size)
        return tn_fail_at(err, TN_ERR_TRUNCATED, 8, "the header ends at %zu but the file has %llu bytes", n,
                          (unsigned long long)size);
    uint8_t *bytes = tn_arena_alloc(&f->arena, n);
    TN_NEED(bytes, err);
    have = have < n ? have : n;
    memcpy(bytes, head, have);
    tn_status status = tn_source_read(source, have, bytes + have, n - have, err);
    return status ? status : tn_npy_parse(bytes, n, 0, &f->arena, h, err);
}

/* numpy.load() takes the first array and does not look further. */
static void note_rest(tn_file *f, uint64_t end)
{
    uint64_t size = tn_source_size(f->shards[0].source);
    if (end == size)
        return;
    tn_file_warn(f, end, "%llu bytes follow the array and are not read", (unsigned long long)(size - end));
    f->left_out = "bytes behind its array";
}

static tn_status open_npy(tn_file *f, tn_error *err)
{
    tn_npy_header h;
    tn_entry e = { .name = NULL };
    TN_TRY(load_header(f, &h, err));
    if (h.never)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, h.type_at, "%s", h.never);
    e.name = h.name ? h.name : tn_file_stem(f, TN_NPY_SUFFIX);
    TN_NEED(e.name, err);
    uint64_t available = tn_source_size(f->shards[0].source) - h.size;
    if (tn_npy_describe(f, &h, available, &e, err))
        return tn_in_tensor(err->status, e.name, err);
    e.stored.offset = h.size;
    note_rest(f, h.size + e.stored.size);
    return tn_file_add(f, &e, err);
}

const tn_format tn_format_npy = {
    .info = {
        .name = "npy", .suffix = TN_NPY_SUFFIX, .title = "one NumPy array, as numpy.save() writes it",
        .reads = true, .writes = true, .probes = true,
    },
    .probe = probe,
    .open = open_npy,
    .type_name = tn_npy_type_name,
    .only_pads = true,
    .min_align = TN_NPY_ALIGN,
    .plan = tn_npy_plan,
    .finish = tn_npy_finish,
};
