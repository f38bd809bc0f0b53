/* formats/gguf/read.c - the tensors of a file, and the format. */
#include "formats/gguf/gguf.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/dims.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <stdio.h>

/* The file being read. */
typedef struct reader {
    tn_gguf_in *in;
    tn_file    *file;
    const tn_gguf_header *header;
    uint32_t    shard;
    const int64_t *shape;       /* of the tensor before, which many share */
    uint32_t    rank;
} reader;

static int probe(const uint8_t *head, size_t n)
{
    if (n < TN_GGUF_MAGIC_BYTES || memcmp(head, TN_GGUF_MAGIC, TN_GGUF_MAGIC_BYTES) != 0)
        return 0;
    const uint8_t *v = head + TN_GGUF_MAGIC_BYTES;
    bool whole = n >= TN_GGUF_MAGIC_BYTES + 4;
    bool little = whole && v[0] >= 1 && v[0] <= TN_GGUF_VERSION && !v[1] && !v[2] && !v[3];
    bool big = whole && v[3] >= 1 && v[3] <= TN_GGUF_VERSION && !v[0] && !v[1] && !v[2];
    return little || big ? 100 : 50;    /* the reader explains what is wrong */
}

/* ---- one tensor ---- */

/* Dimensions are listed from the one that runs fastest on. */
static tn_status read_shape(reader *r, tn_entry *e)
{
    tn_gguf_in *in = r->in;
    uint64_t at = tn_gguf_at(in);
    tn_dims d = { .rank = (uint32_t)tn_gguf_uint(in, 4) };
    if (!in->status && d.rank > TN_MAX_RANK)
        return tn_gguf_fail(in, TN_ERR_LIMIT, at, "expected at most %d dimensions but found %" PRIu32,
                            TN_MAX_RANK, d.rank);
    for (uint32_t i = d.rank; i-- > 0 && !in->status;) {
        uint64_t dim_at = tn_gguf_at(in), dim = tn_gguf_wide(in);
        if (dim > INT64_MAX)
            return tn_gguf_fail(in, TN_ERR_LIMIT, dim_at,
                                "expected a dimension below 2^63 but found %" PRIu64, dim);
        d.dims[i] = (int64_t)dim;
    }
    if (in->status)
        return in->status;
    r->shape = tn_dims_keep(&d, &r->file->arena, r->shape, r->rank);
    r->rank = d.rank;
    e->shape = r->shape;
    e->rank = r->rank;
    return r->shape ? TN_OK : (in->status = tn_fail_nomem(in->err));
}

/* The entry is of blocks: its array has the bytes of whole blocks in each row. */
static tn_status make_blocks(reader *r, tn_entry *e, const tn_block_info *block, tn_error *err)
{
    tn_file *f = r->file;
    char datatype[32];
    int64_t last = e->rank ? e->shape[e->rank - 1] : 1, bytes;
    snprintf(datatype, sizeof datatype, TN_BLOCK_PREFIX "%s", block->name);
    if (last % block->values)
        return tn_fail(err, TN_ERR_CORRUPT, "%s needs rows of a multiple of %u values but found %" PRId64,
                       block->name, (unsigned)block->values, last);
    if (__builtin_mul_overflow(last / block->values, block->bytes, &bytes))
        return tn_fail(err, TN_ERR_LIMIT, "its shape takes more than 2^63 bytes");
    int64_t *shape = tn_arena_copy(&f->arena, e->shape, e->rank * sizeof *shape);
    TN_NEED(shape, err);
    shape[e->rank - 1] = bytes;         /* a scalar is not a whole block */
    e->scaling = tn_scaling_keep(&f->arena, &(tn_scaling){ .axis = -1, .datatype = datatype }, &f->datatype);
    TN_NEED(e->scaling, err);
    e->form = TN_FORM_BLOCKS;
    e->value_dtype = TN_FLOAT32;
    e->value_shape = e->shape;
    e->value_rank = e->rank;
    e->shape = shape;
    e->dtype = TN_UINT8;
    e->stored.type = block->name;
    e->more.swapped = r->header->style.big ? block : NULL;
    return TN_OK;
}

static tn_status set_type(reader *r, tn_entry *e, uint32_t number, tn_error *err)
{
    const tn_gguf_type *plain = tn_gguf_type_numbered(number);
    const tn_block_info *block = tn_block_numbered(number);
    if (block)
        return make_blocks(r, e, block, err);
    if (plain) {
        e->dtype = plain->dtype;
        e->stored.type = plain->name;
        return TN_OK;
    }
    e->dtype = TN_UNKNOWN;      /* of a later version, or one that ggml has removed */
    e->stored.type = tn_arena_printf(&r->file->arena, TN_BLOCK_PREFIX "%" PRIu32, number);
    return e->stored.type ? TN_OK : tn_fail_nomem(err);
}

/* The size of the data follows from shape and type; of an unknown type it is not known. */
static tn_status set_place(reader *r, tn_entry *e, uint64_t offset, tn_error *err)
{
    uint64_t alignment = r->header->alignment;
    if (offset % alignment)
        return tn_fail(err, TN_ERR_CORRUPT, "expected an offset that is a multiple of %" PRIu64 " but found %"
                       PRIu64, alignment, offset);
    if (!tn_add_u64(r->file->shards[r->shard].data_begin, offset, &e->stored.offset))
        return tn_fail(err, TN_ERR_CORRUPT, "its offset of %" PRIu64 " is beyond any file", offset);
    if (e->dtype != TN_UNKNOWN && tn_shape_nbytes(e->dtype, e->rank, e->shape, &e->stored.size))
        return tn_fail(err, TN_ERR_LIMIT, "its shape takes more than 2^63 bytes");
    return TN_OK;
}

static tn_status read_tensor(reader *r)
{
    tn_gguf_in *in = r->in;
    tn_entry e = { .at = tn_gguf_at(in), .stored.shard = r->shard };
    e.stored.order = in->style.big ? TN_BIG_ENDIAN : TN_LITTLE_ENDIAN;
    e.name = tn_gguf_name(in, &r->file->arena, "tensor name");
    if (!e.name)
        return in->status;
    if (!read_shape(r, &e)) {
        uint32_t type = (uint32_t)tn_gguf_uint(in, 4);
        uint64_t offset = tn_gguf_uint(in, 8);
        if (!in->status && (set_type(r, &e, type, in->err) || set_place(r, &e, offset, in->err)))
            in->status = tn_at_byte(in->err->status, e.at, in->err);
    }
    if (!in->status)
        in->status = tn_file_add(r->file, &e, in->err);
    return tn_in_tensor(in->status, e.name, in->err);
}

/* ---- all tensors ---- */

tn_status tn_gguf_skip_tensors(tn_gguf_in *in, const tn_gguf_header *h)
{
    for (uint64_t i = 0; i < h->tensors && !in->status; i++) {
        tn_gguf_skip(in, tn_gguf_count(in, 1, "bytes of a tensor name"));
        uint64_t at = tn_gguf_at(in), rank = tn_gguf_uint(in, 4);
        if (rank > TN_MAX_RANK)
            return tn_gguf_fail(in, TN_ERR_LIMIT, at, "expected at most %d dimensions but found %" PRIu64,
                                TN_MAX_RANK, rank);
        tn_gguf_skip(in, rank * in->style.wide + 4 + 8);
    }
    return in->status;
}

/* The data follows the list of tensors: goes through the list once to find its end, and back. */
static tn_status find_data(reader *r)
{
    tn_gguf_in *in = r->in;
    uint64_t begin = tn_gguf_at(in);
    if (tn_gguf_skip_tensors(in, r->header))
        return in->status;
    if (!tn_align_u64(tn_gguf_at(in), r->header->alignment, &r->file->shards[r->shard].data_begin))
        return tn_gguf_fail(in, TN_ERR_CORRUPT, begin, "its alignment of %" PRIu64 " is beyond any file",
                            r->header->alignment);
    tn_gguf_seek(in, begin);
    return TN_OK;
}

tn_status tn_gguf_read_tensors(tn_gguf_in *in, const tn_gguf_header *h, tn_file *file, uint32_t shard)
{
    reader r = { .in = in, .file = file, .header = h, .shard = shard };
    if (!in->status && !find_data(&r) && h->tensors <= SIZE_MAX - file->count)
        in->status = tn_file_expect(file, file->count + (size_t)h->tensors, in->err);
    for (uint64_t i = 0; i < h->tensors && !in->status; i++)
        read_tensor(&r);
    return in->status;
}

/* ---- the file ---- */

/* A file of a set that is opened alone: the rest is not there. */
static tn_status note_split(tn_file *file, const tn_gguf_split *s, tn_error *err)
{
    if (s->count < 2)
        return TN_OK;
    if (file->strict)
        return tn_fail(err, TN_ERR_CORRUPT, "it is file %" PRId64 " of %" PRId64 " of a set: open the first",
                       s->no + 1, s->count);
    tn_file_warn(file, 0, "it is file %" PRId64 " of %" PRId64 " of a set: only its own tensors are here",
                 s->no + 1, s->count);
    return TN_OK;
}

static tn_status open_file(tn_file *file, tn_gguf_in *in, tn_gguf_header *h, tn_error *err)
{
    tn_gguf_split split;
    if (tn_gguf_begin(in, file->shards[0].source, err) || tn_gguf_read_header(in, h, &file->arena) ||
        tn_gguf_read_tensors(in, h, file, 0) || tn_gguf_split_of(h, &split, err))
        return err->status;
    bool is_set = split.count > 1 && split.no == 0 && *file->shards[0].path;
    if (is_set)
        return tn_gguf_open_rest(file, h, &split, err);
    TN_TRY(note_split(file, &split, err));
    return tn_file_set_meta(file, h->meta, h->nmeta, err);
}

static tn_status open_any(tn_file *file, tn_error *err)
{
    tn_gguf_in in = { 0 };
    tn_gguf_header h = { 0 };
    bool failed = open_file(file, &in, &h, err) ||
                  tn_file_check_ranges(file, TN_TILING_SHARED, NULL, NULL, err);
    tn_gguf_end(&in);
    tn_gguf_header_free(&h);
    return failed ? err->status : TN_OK;
}

static const char *type_name(const tn_dtype_info *type)
{
    const tn_gguf_type *plain = tn_gguf_type_of(type->dtype);
    return plain ? plain->name : NULL;
}

static const tn_format_key keys[] = {
    { TN_GGUF_ORDER, "little|big", "the order of the bytes of numbers" }, { 0 },
};

const tn_format tn_format_gguf = {
    .info = {
        .name = "gguf", .suffix = TN_GGUF_SUFFIX,
        .title = "GGUF: the files of llama.cpp, also splits",
        .reads = true, .writes = true, .probes = true, .shards = true, .keys = keys,
    },
    .probe = probe,
    .open = open_any,
    .type_name = type_name,
    .is_later_file = tn_gguf_is_later_file,
    .only_pads = true,
    .min_align = 1,             /* means that none was asked for */
    .plan = tn_gguf_plan_files,
    .finish = tn_gguf_finish,
    .rewrite = tn_gguf_rewrite,
    .meta_in_first = true,
    .typed_meta = true,
};
