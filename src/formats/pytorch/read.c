/* formats/pytorch/read.c - PyTorch files as a format: read only. */
#include "formats/pytorch/pytorch.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/set_index.h"

#include <inttypes.h>
#include <stdlib.h>

/* The index of a set whose files are called .bin: others are those of safetensors. */
static bool is_index(const uint8_t *head, size_t n)
{
    static const char own[] = ".bin\"", other[] = ".safetensors\"";
    return tn_set_probe(head, n) && memmem(head, n, own, strlen(own)) &&
           !memmem(head, n, other, strlen(other));
}

static int probe(const uint8_t *head, size_t n)
{
    if (tn_pt_is_legacy(head, n))
        return 100;
    return tn_pt_is_zip(head, n) || is_index(head, n) ? 85 : 0;
}

/* .bin may be anything: only content tells. */
static bool has_other_suffix(const char *path)
{
    return tn_ends_with(path, ".pth") || tn_ends_with(path, ".ckpt");
}

tn_status tn_pt_check_storage(const tn_pt_storage *s, uint64_t bytes, uint64_t at, tn_error *err)
{
    uint64_t need = 0;
    if (tn_mul_u64(s->count, s->type ? s->type->width : 1, &need) && need == bytes)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, at,
                      "storage %s has %" PRIu64 " bytes but the pickle says %" PRIu64 " elements of %s",
                      tn_quote(s->key.ptr, s->key.len).text, bytes, s->count,
                      s->type ? s->type->name : "one byte");
}

tn_status tn_pt_read_shard(tn_pt_reader *r, tn_error *err)
{
    uint8_t head[32];
    const tn_source *source = r->file->shards[r->shard].source;
    uint64_t size = tn_source_size(source);
    size_t n = (size_t)tn_min_u64(size, sizeof head);
    TN_TRY(tn_source_read(source, 0, head, n, err));
    return tn_pt_is_legacy(head, n) ? tn_pt_read_legacy(r, err) : tn_pt_read_zip(r, err);
}

void tn_pt_reader_free(tn_pt_reader *r)
{
    free(r->found);
    free(r->meta);
    tn_names_free(&r->meta_names);
    tn_buf_free(&r->decoded);
    tn_arena_free(&r->arena);
}

static tn_status open_one(tn_file *file, tn_error *err)
{
    tn_pt_reader r = { .file = file };
    bool failed = tn_pt_read_shard(&r, err) || tn_file_set_meta(file, r.meta, r.nmeta, err);
    tn_pt_reader_free(&r);
    return failed ? err->status : TN_OK;
}

/* --- sharded sets --- */

/* The tensors and the metadata of one file of a set. */
static tn_status take_shard(tn_set_index *x, tn_pt_reader *r, tn_set_merged *all, tn_error *err)
{
    tn_file *file = r->file;
    size_t first = file->count;
    TN_TRY(tn_pt_read_shard(r, err));
    for (size_t i = first; i < file->count; i++)
        TN_TRY(tn_in_tensor(tn_set_claim(x, file, file->tensors[i].name, r->shard, file->at[i], err),
                            file->tensors[i].name, err));
    for (size_t i = 0; i < r->nmeta; i++)
        TN_TRY(tn_set_merge(all, &r->meta[i], file->shards[r->shard].path, TN_NO_OFFSET, err));
    return TN_OK;
}

static tn_status read_set(tn_set_index *x, tn_file *file, tn_set_merged *all, tn_error *err)
{
    TN_TRY(tn_set_open(x, file, TN_PT_INDEX_MAX, err));
    for (uint32_t shard = 1; shard <= x->nfiles; shard++) {
        tn_pt_reader r = { .file = file, .shard = shard };
        tn_status status = take_shard(x, &r, all, err);
        tn_pt_reader_free(&r);
        TN_TRY(tn_in_file(status, file->shards[shard].path, err));
    }
    TN_TRY(tn_set_check_found(x, err));
    TN_TRY(tn_set_merge_index(x, file, true, all, err));
    return tn_file_set_meta(file, all->items, all->count, err);
}

static tn_status open_set(tn_file *file, tn_error *err)
{
    tn_set_index x = { 0 };
    tn_set_merged all = { 0 };
    tn_status status = read_set(&x, file, &all, err);
    tn_set_free(&x);
    tn_set_merged_free(&all);
    return status;
}

/* An index is JSON from its first byte. */
static tn_status open_any(tn_file *file, tn_error *err)
{
    uint8_t head = 0;
    const tn_source *source = file->shards[0].source;
    if (tn_source_size(source))
        TN_TRY(tn_source_read(source, 0, &head, 1, err));
    TN_TRY(head == '{' || tn_is_space((char)head) ? open_set(file, err) : open_one(file, err));
    return tn_file_check_ranges(file, TN_TILING_VIEWS, NULL, NULL, err);
}

static const char *type_name(const tn_dtype_info *type)
{
    return type->torch;
}

const tn_format tn_format_pytorch = {
    .info = {
        .name = "pytorch", .suffix = TN_PT_SUFFIX, .index_suffix = ".bin.index.json",
        .title = "PyTorch checkpoints (.pt, .pth, .bin, .ckpt): their pickles are read as data, never run",
        .reads = true, .probes = true,
    },
    .probe = probe,
    .has_other_suffix = has_other_suffix,
    .open = open_any,
    .type_name = type_name,
};
