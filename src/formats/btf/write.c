/* formats/btf/write.c - all offsets are known before any data: records follow
 * the table one after the other, each padded to a multiple of 8. */
#include "formats/btf/btf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/vector.h"

#include <stdio.h>
#include <string.h>

/* --- planning --- */

static const tn_out_entry *first_entry(const tn_writer *w, size_t tensor)
{
    return &w->entries[w->first_entry[tensor]];
}

static bool is_coo(const tn_tensor *t)
{
    return t->form == TN_FORM_COO;
}

static tn_status check_options(const tn_writer *w, tn_error *err)
{
    const tn_create_options *o = &w->options;
    if (o->align != BTF_WORD)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "btf has its data at multiples of %d and cannot align it to %llu", BTF_WORD,
                       (unsigned long long)o->align);
    if (w->nmeta && !o->drop_metadata)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL, "btf cannot hold metadata");
    return TN_OK;
}

/* A tensor is read back with its number as its name. */
static tn_status check_name(const tn_writer *w, size_t i, tn_error *err)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    if (w->options.drop_names || strcmp(first_entry(w, i)->name, number) == 0)
        return TN_OK;
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_NAMES, NULL,
                     "btf has no names and it would be called \"%s\"", number);
}

static tn_status check_part(const tn_part *p, const tn_out_entry *e, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
    if (type->btf < 0)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, NULL,
                         "btf has no type %s: it has integers of 8 to 64 bits, float32 and float64",
                         type->name);
    if (p->padded)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "btf cannot hold padding");
    if (e->encoding != TN_ENCODING_RAW || e->checksum != TN_CHECKSUM_NONE)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "btf can hold neither compressed data nor checksums");
    return TN_OK;
}

static tn_status check_form(const tn_tensor *t, tn_error *err)
{
    if (is_coo(t) || t->form == TN_FORM_DENSE)
        return TN_OK;
    tn_status status = tn_fail(err, TN_ERR_UNSUPPORTED, "btf holds dense and coo tensors but found form %s",
                               tn_quote_z(tn_tensor_form_name(t)).text);
    return t->form == TN_FORM_CSR ? tn_with_reason(status, TN_REASON_FORM, "coo", err) : status;
}

static tn_status check_tensor(const tn_writer *w, size_t i, tn_error *err)
{
    const tn_out_entry *e = first_entry(w, i);
    const tn_tensor *t = e->more->whole;
    TN_TRY(check_form(t, err));
    for (uint32_t k = 0; k < t->nparts; k++)
        TN_TRY(check_part(&t->parts[k], &e[k], err));
    const tn_dtype_info *index = is_coo(t) ? tn_dtype_get(t->parts[1].array.dtype) : NULL;
    if (index && index->bits != 64)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, "coo,index=int64",
                         "btf has indices of 64 bits but found %s", index->name);
    if ((e->more->nmeta || t->layout) && !w->options.drop_metadata)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL, "btf cannot hold its %s",
                         e->more->nmeta ? "metadata" : "layout");
    return check_name(w, i, err);
}

/* Bytes before the first array of a record. */
static uint64_t head_bytes(const tn_tensor *t)
{
    return BTF_HEADER + BTF_WORD * (uint64_t)(t->rank + (is_coo(t) ? 2 : 0));
}

/* Moves *at by `n` bytes. */
static bool take(uint64_t *at, uint64_t n)
{
    return tn_add_u64(*at, n, at) && *at <= INT64_MAX;
}

/* Sets the offsets of one tensor's arrays; *at becomes that of the next record. */
static bool place(tn_out_entry *e, uint64_t *at)
{
    bool fits = take(at, head_bytes(e->more->whole));
    if (is_coo(e->more->whole)) {
        e[1].offset = *at;
        fits = fits && take(at, e[1].nbytes) && take(at, BTF_WORD);
    }
    e->offset = *at;
    return fits && take(at, e->nbytes) && tn_align_u64(*at, BTF_WORD, at);
}

tn_status tn_btf_plan(tn_writer *w, tn_error *err)
{
    uint64_t at = BTF_WORD * (1 + (uint64_t)w->ntensors);
    uint32_t file;
    TN_TRY(check_options(w, err));
    for (size_t i = 0; i < w->ntensors; i++)
        TN_TRY(tn_in_tensor(check_tensor(w, i, err), first_entry(w, i)->name, err));
    for (size_t i = 0; i < w->ntensors; i++)
        if (!place(&w->entries[w->first_entry[i]], &at))
            return tn_fail(err, TN_ERR_LIMIT, "the file would be larger than 2^63 bytes");
    TN_TRY(tn_writer_add_file(w, w->path, &file, err));
    w->files[file].end = at;
    return TN_OK;
}

/* --- finishing --- */

static void put_word(tn_buf *b, uint64_t v)
{
    tn_buf_put_le(b, v, BTF_WORD);
}

static uint64_t record_of(const tn_out_entry *e)
{
    return (is_coo(e->more->whole) ? e[1].offset : e->offset) - head_bytes(e->more->whole);
}

/* All of a record before its first array. */
static void put_head(const tn_writer *w, const tn_out_entry *e, tn_buf *b)
{
    const tn_tensor *t = e->more->whole;
    int coo = tn_writer_choice(w, "coo-code") ? BTF_COO_TFRT : BTF_COO;
    put_word(b, t->rank);
    tn_buf_putc(b, (char)tn_dtype_get(t->dtype)->btf);
    tn_buf_putc(b, (char)(is_coo(t) ? coo : BTF_DENSE));
    tn_buf_fill(b, 0, BTF_RESERVED);
    for (uint32_t i = 0; i < t->rank; i++)
        put_word(b, (uint64_t)t->shape[i]);
    if (is_coo(t)) {
        put_word(b, (uint64_t)e->shape[0]);
        put_word(b, t->rank);
    }
}

static tn_status flush(tn_writer *w, tn_buf *b, uint64_t at, tn_error *err)
{
    tn_status status = b->bad ? tn_fail_nomem(err) : tn_writer_put(w, 0, at, b->data, b->size, err);
    b->size = 0;
    return status;
}

static tn_status write_record(tn_writer *w, const tn_out_entry *e, tn_buf *b, tn_error *err)
{
    put_head(w, e, b);
    TN_TRY(flush(w, b, record_of(e), err));
    if (is_coo(e->more->whole)) {
        put_word(b, (uint64_t)e->shape[0]);
        TN_TRY(flush(w, b, e->offset - BTF_WORD, err));
    }
    tn_buf_fill(b, 0, (size_t)(-e->nbytes % BTF_WORD));
    return flush(w, b, e->offset + e->nbytes, err);
}

tn_status tn_btf_finish(tn_writer *w, tn_error *err)
{
    tn_buf b = { 0 };
    put_word(&b, w->ntensors);
    for (size_t i = 0; i < w->ntensors; i++)
        put_word(&b, record_of(first_entry(w, i)));
    tn_status status = flush(w, &b, 0, err);
    for (size_t i = 0; i < w->ntensors && !status; i++)
        status = write_record(w, first_entry(w, i), &b, err);
    tn_buf_free(&b);
    return status;
}
