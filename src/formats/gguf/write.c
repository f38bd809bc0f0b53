/* formats/gguf/write.c - all places are known before any data: the header is made in plan().
 *
 * Files are what gguf.cpp reads: version 3, names of at most 63 bytes, at most 4 dimensions, data in the
 * order of the tensors, each padded to the alignment. */
#include "formats/gguf/gguf.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/sink_set.h"

#include <inttypes.h>

enum { NAME_MAX_BYTES = 63, RANK_MAX = 4 };
#define ALIGN_MAX (UINT64_C(1) << 30)

/* ---- what can be held ---- */

static tn_status check_form(const tn_tensor *whole, tn_error *err)
{
    if (whole->form == TN_FORM_DENSE || whole->form == TN_FORM_BLOCKS)
        return TN_OK;
    if (whole->form == TN_FORM_SCALED)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, "float32",
                         "GGUF has no codes with scales beside them: cast it to float32 or to a block type "
                         "such as q8_0");
    return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, "dense", "GGUF cannot hold form %s",
                     tn_tensor_form_name(whole));
}

static tn_status check_type(const tn_tensor *whole, tn_error *err)
{
    if (whole->form == TN_FORM_BLOCKS || tn_gguf_type_of(whole->dtype))
        return TN_OK;
    return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, NULL,
                     "GGUF has no type %s: expected float32, float16, bfloat16, float64, int8, int16, int32, "
                     "int64 or a block type such as q8_0", tn_dtype_get(whole->dtype)->name);
}

static tn_status check_entry(const tn_writer *w, const tn_out_entry *e, tn_error *err)
{
    const tn_tensor *whole = e->more->whole;
    TN_TRY(check_form(whole, err));
    TN_TRY(check_type(whole, err));
    if (strlen(e->name) > NAME_MAX_BYTES)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_RENAME, NULL,
                         "expected a name of at most %d bytes, as llama.cpp reads, but found %zu",
                         NAME_MAX_BYTES, strlen(e->name));
    if (whole->rank > RANK_MAX)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "expected at most %d dimensions but found %" PRIu32, RANK_MAX,
                       whole->rank);
    bool lost = e->more->nmeta || e->more->properties || whole->layout || whole->parts[0].padded;
    if (lost && !w->options.drop_metadata)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                         "it has metadata, a layout or padding, which GGUF cannot hold");
    return TN_OK;
}

/* ---- metadata ---- */

/* Whether the metadata tells of a set that its file was part of, which the new one is not. */
static bool is_of_set(const tn_writer *w)
{
    int64_t count = 0;
    for (size_t i = 0; i < w->nmeta; i++)
        if (strcmp(w->meta[i].key, TN_GGUF_COUNT) == 0 && tn_gguf_integer(&w->meta[i], &count))
            return count > 1;
    return false;
}

/* The alignment is the one asked for, else that of the metadata. */
static tn_status choose_alignment(const tn_writer *w, tn_gguf_plan *plan, tn_error *err)
{
    const tn_meta *found = NULL;
    for (size_t i = 0; i < w->nmeta; i++)
        if (strcmp(w->meta[i].key, TN_GGUF_ALIGNMENT) == 0)
            found = &w->meta[i];
    plan->align = w->options.align;
    plan->puts_align = !found && plan->align != TN_GGUF_USUAL_ALIGN;
    if (plan->align == w->format->min_align) {          /* it was not asked for */
        plan->puts_align = false;
        TN_TRY(tn_gguf_alignment(found, &plan->align, err));
    }
    if (plan->align > ALIGN_MAX)
        return tn_fail(err, TN_ERR_LIMIT, TN_GGUF_ALIGNMENT ": expected at most 2^30 but found %" PRIu64,
                       plan->align);
    return TN_OK;
}

static tn_status put_meta(const tn_writer *w, tn_gguf_plan *plan, const tn_meta *m, tn_error *err)
{
    const tn_gguf_out o = { &plan->pairs, plan->style };
    if (strcmp(m->key, TN_GGUF_ALIGNMENT) == 0) {
        tn_gguf_put_number(&o, m->key, TN_META_U32, plan->align);
        plan->npairs++;
        return TN_OK;
    }
    if (tn_gguf_is_split_key(m->key) && (plan->nfiles > 1 || plan->drops_split))
        return TN_OK;
    tn_status status = tn_gguf_put_pair(&o, m, err);
    plan->npairs += !status;
    return status == TN_ERR_LOSS && w->options.drop_metadata ? TN_OK : status;
}

static tn_status put_all_meta(tn_writer *w, tn_gguf_plan *plan, tn_error *err)
{
    const tn_gguf_out o = { &plan->pairs, plan->style };
    plan->drops_split = is_of_set(w);
    for (size_t i = 0; i < w->nmeta; i++)
        TN_TRY(put_meta(w, plan, &w->meta[i], err));
    if (plan->puts_align) {
        tn_gguf_put_number(&o, TN_GGUF_ALIGNMENT, TN_META_U32, plan->align);
        plan->npairs++;
    }
    return plan->pairs.bad ? tn_fail_nomem(err) : TN_OK;
}

/* ---- headers ---- */

static uint32_t type_number(const tn_tensor *whole)
{
    const char *datatype = whole->form == TN_FORM_BLOCKS ? whole->scaling->datatype : NULL;
    if (!datatype)
        return tn_gguf_type_of(whole->dtype)->number;
    return tn_block_of_datatype(datatype)->number;
}

/* The list of tensors, and their offsets in the data. */
static tn_status put_tensors(tn_writer *w, const tn_gguf_plan *plan, tn_gguf_file *f, tn_buf *b,
                             tn_error *err)
{
    const tn_gguf_out o = { b, plan->style };
    for (size_t i = f->first; i < f->last; i++) {
        tn_out_entry *e = &w->entries[i];
        const tn_tensor *whole = e->more->whole;
        const int64_t *shape = whole->form == TN_FORM_BLOCKS ? whole->shape : e->shape;
        tn_gguf_put_string(&o, (tn_text){ e->name, strlen(e->name) });
        tn_gguf_put_uint(&o, whole->rank, 4);
        for (uint32_t k = whole->rank; k-- > 0;)
            tn_gguf_put_wide(&o, (uint64_t)shape[k]);
        tn_gguf_put_uint(&o, type_number(whole), 4);
        tn_gguf_put_uint(&o, f->data_size, 8);
        e->offset = f->data_size;
        e->file = f->file;
        if (!tn_add_u64(f->data_size, e->nbytes, &f->data_size) ||
            !tn_align_u64(f->data_size, plan->align, &f->data_size))
            return tn_fail(err, TN_ERR_LIMIT, "the data would take more than 2^64 bytes");
    }
    return TN_OK;
}

/* The first file of a set has all metadata; the others have what is needed to read them. */
static void put_split(const tn_gguf_plan *plan, size_t number, uint64_t tensors, tn_buf *b)
{
    const tn_gguf_out o = { b, plan->style };
    if (number && plan->align != TN_GGUF_USUAL_ALIGN)
        tn_gguf_put_number(&o, TN_GGUF_ALIGNMENT, TN_META_U32, plan->align);
    tn_gguf_put_number(&o, TN_GGUF_NO, TN_META_U16, number);
    tn_gguf_put_number(&o, TN_GGUF_COUNT, TN_META_U16, plan->nfiles);
    tn_gguf_put_number(&o, TN_GGUF_TENSORS, TN_META_I32, tensors);
}

static tn_status put_header(tn_writer *w, tn_gguf_plan *plan, size_t number, tn_buf *b, tn_error *err)
{
    tn_gguf_file *f = &plan->files[number];
    const tn_gguf_out o = { b, plan->style };
    bool set = plan->nfiles > 1;
    uint64_t pairs = number ? plan->align != TN_GGUF_USUAL_ALIGN : plan->npairs;
    tn_gguf_put_start(&o, f->last - f->first, pairs + (set ? 3 : 0));
    if (!number)
        tn_buf_put(b, plan->pairs.data, plan->pairs.size);
    if (set)
        put_split(plan, number, w->count, b);
    TN_TRY(put_tensors(w, plan, f, b, err));
    if (b->bad)
        return tn_fail_nomem(err);
    f->header = (tn_text){ tn_arena_copy(&w->arena, b->data, b->size), b->size };
    return f->header.ptr ? tn_index_check_size(b->size, TN_NO_OFFSET, err) : tn_fail_nomem(err);
}

/* The data follows at the next multiple of the alignment; the padding is never written, so it is zeros. */
static tn_status place(tn_writer *w, const tn_gguf_plan *plan, const tn_gguf_file *f, tn_error *err)
{
    uint64_t begin = 0, end = 0;
    if (!tn_align_u64(f->header.len, plan->align, &begin) || !tn_add_u64(begin, f->data_size, &end) ||
        end > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    for (size_t i = f->first; i < f->last; i++)
        w->entries[i].offset += begin;
    w->files[f->file].end = end;
    if (w->files[f->file].member && w->files[f->file].sink)
        tn_sink_set_head(w->files[f->file].sink, f->header.ptr, f->header.len);
    return TN_OK;
}

static tn_status plan_file(tn_writer *w, tn_gguf_plan *plan, size_t number, tn_error *err)
{
    tn_buf b = { 0 };
    bool failed = put_header(w, plan, number, &b, err) || place(w, plan, &plan->files[number], err);
    tn_buf_free(&b);
    return failed ? err->status : TN_OK;
}

static void set_order(tn_writer *w)
{
    for (size_t i = 0; i < w->count; i++) {
        tn_out_entry *e = &w->entries[i];
        const tn_tensor *whole = e->more->whole;
        if (whole->form == TN_FORM_BLOCKS)
            e->swap_block = (uint8_t)(tn_block_of_datatype(whole->scaling->datatype)->block + 1);
        else
            e->swap = tn_dtype_get(e->dtype)->swap_bytes;
    }
}

tn_status tn_gguf_plan_files(tn_writer *w, tn_error *err)
{
    tn_gguf_plan *plan = tn_arena_zalloc(&w->arena, 1, sizeof *plan);
    TN_NEED(plan, err);
    w->state = plan;
    plan->style = (tn_gguf_style){ TN_GGUF_VERSION, tn_writer_choice(w, TN_GGUF_ORDER) != 0, 8 };
    for (size_t i = 0; i < w->count; i++)
        TN_TRY(tn_in_tensor(check_entry(w, &w->entries[i], err), w->entries[i].name, err));
    if (plan->style.big)
        set_order(w);
    TN_TRY(choose_alignment(w, plan, err));
    TN_TRY(tn_gguf_cut(w, plan, err));
    tn_status status = put_all_meta(w, plan, err);
    if (!status)
        status = tn_gguf_open_files(w, plan, err);
    for (size_t i = 0; i < plan->nfiles && !status; i++)
        status = plan_file(w, plan, i, err);
    tn_buf_free(&plan->pairs);
    return status;
}

tn_status tn_gguf_finish(tn_writer *w, tn_error *err)
{
    const tn_gguf_plan *plan = w->state;
    const tn_gguf_file *first = &plan->files[0];
    if (plan->nfiles > 1)
        TN_TRY(tn_gguf_name_files(w, err));
    return tn_writer_put(w, first->file, 0, first->header.ptr, first->header.len, err);
}
