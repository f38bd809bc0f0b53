/* pipeline/values.c - the values of a tensor that is more than its elements. */
#include "pipeline/values.h"
#include "base/error.h"
#include "base/pool.h"
#include "tensor/code.h"
#include "tensor/form.h"

#include <stdlib.h>
#include <string.h>

#include <tenon/values.h>

enum { SOME = 1024 };           /* values that are read at a time: a multiple of 8 */

tn_status tn_keep_scales(tn_kept *kept, const tn_tensor *t, tn_error *err)
{
    for (uint32_t k = 1; k < t->nparts && t->scaling && !t->scaling->datatype; k++)
        tn_kept_add_part(kept, t, &t->parts[k]);
    return tn_kept_check(kept, err);
}

tn_status tn_plan_values(const tn_file *file, const tn_tensor *t, tn_arena *arena, tn_value_plan *plan,
                         tn_error *err)
{
    const tn_form_info *form = tn_form_get(t->form);
    if (form && form->plan_values)
        return form->plan_values(file, t, arena, plan, err);
    tn_status status = tn_part_readable(t, &t->parts[0], err);
    if (!status)
        status = tn_fail(err, TN_ERR_UNSUPPORTED, "form %s has no values this version can read",
                         tn_quote_z(tn_tensor_form_name(t)).text);
    return tn_in_tensor(status, t->name, err);
}

/* ---- streams ---- */

tn_status tn_value_stream_open(tn_value_stream *s, const tn_file *file, const tn_tensor *t,
                               const tn_value_plan *plan, uint64_t first, uint64_t n, tn_error *err)
{
    tn_decoder_free(s->made);
    s->made = NULL;
    tn_status status =
        plan->made ? tn_decoder_open(file, t, &s->made, err)
                   : tn_stream_open(&s->stream, file, t, &t->parts[0], tn_packed_bytes(first, plan->bits),
                                    tn_packed_bytes(n, plan->bits), TN_CHECKSUM_NONE, err);
    if (status)
        return status;
    if (plan->made)
        tn_stream_open_decoder(&s->stream, &s->made->maker, first, n);
    else
        tn_stream_change(&s->stream, plan->change);
    return TN_OK;
}

void tn_value_stream_free(tn_value_stream *s)
{
    tn_stream_free(&s->stream);
    tn_decoder_free(s->made);
    s->made = NULL;
}

/* ---- any range ---- */

struct tn_values {
    const tn_file *file;
    const tn_tensor *tensor;
    tn_value_plan plan;
    tn_decoder      *made;         /* where values are */
    tn_loaded     loaded;       /* else the first part... */
    const uint8_t *elements;    /* ...or NULL */
    tn_arena      arena;
};

/* One reading. */
typedef struct reading {
    const tn_values *values;
    uint64_t first, n;
    uint8_t *buffer;
} reading;

/* The first part, of whose elements values are. */
static tn_status load_elements(const tn_file *file, const tn_tensor *t, tn_values *v, tn_error *err)
{
    tn_tensor alone = *t;
    alone.nparts = 1;
    v->elements = t->parts[0].data;
    if (v->elements || !v->plan.count)
        return TN_OK;
    tn_status status = tn_load(&(tn_loading){ .in = file, .tensor = &alone }, &v->loaded, err);
    v->elements = status ? NULL : v->loaded.parts[0].data;
    return status;
}

tn_status tn_values_open(const tn_file *file, const tn_tensor *t, tn_values **values, tn_error *err)
{
    tn_values *v = calloc(1, sizeof *v);
    if (!v)
        return tn_fail_nomem(err);
    v->file = file;
    v->tensor = t;
    tn_status status = tn_plan_values(file, t, &v->arena, &v->plan, err);
    if (!status && tn_form_is_sparse(t->form))
        status = tn_fail(err, TN_ERR_UNSUPPORTED,
                         "expected values at every place but found entries of form %s",
                         tn_quote_z(tn_tensor_form_name(t)).text);
    if (!status)
        status = v->plan.made ? tn_decoder_open(file, t, &v->made, err) : load_elements(file, t, v, err);
    if (status)
        tn_values_close(v);
    else
        *values = v;
    return tn_in_tensor(status, t->name, err);
}

/* Values from a number that is a multiple of 8 on. */
static tn_status some_values(const tn_values *v, uint64_t first, size_t n, uint8_t *out, tn_error *err)
{
    if (v->made)
        return v->made->maker.make(v->made->maker.context, first, n, out, err);
    const uint8_t *from = v->elements + tn_packed_bytes(first, v->plan.bits);
    const tn_change *c = v->plan.change;
    if (c)
        return c->apply(c->context, first, from, n, out, err);
    memcpy(out, from, (size_t)tn_packed_bytes(n, v->plan.bits));
    return TN_OK;
}

/* A few at a time, from where whole bytes begin in any type. */
static tn_status read_range(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const reading *r = context;
    unsigned bits = tn_dtype_get(r->values->plan.dtype)->bits;
    uint64_t end = r->first + r->n;
    uint8_t *to = r->buffer, some[SOME * 16];
    (void)item, (void)use;
    for (uint64_t at = r->first / 8 * 8; at < end; at += SOME) {
        size_t n = end - at < SOME ? (size_t)(end - at) : SOME,
               skip = at < r->first ? (size_t)(r->first - at) : 0;
        tn_status status = some_values(r->values, at, n, some, err);
        if (status)
            return status;
        size_t from = (size_t)tn_packed_bytes(skip, bits), size = (size_t)tn_packed_bytes(n, bits) - from;
        memcpy(to, some + from, size);
        to += size;
    }
    unsigned used = (unsigned)(r->n % 8) * bits % 8;
    if (used)                   /* the bits that fill the last byte */
        to[-1] = (uint8_t)(to[-1] & ((1u << used) - 1));
    return TN_OK;
}

tn_status tn_values_read(const tn_values *v, uint64_t first, uint64_t n, void *buffer, size_t size,
                         tn_error *err)
{
    unsigned bits = tn_dtype_get(v->plan.dtype)->bits;
    if (first > v->plan.count || n > v->plan.count - first)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a range within %llu values but found %llu from %llu on",
                       (unsigned long long)v->plan.count, (unsigned long long)n, (unsigned long long)first);
    if (first % 8 * bits % 8)
        return tn_fail(err, TN_ERR_ARGUMENT, "value %llu of %u bits does not begin on a byte",
                       (unsigned long long)first, bits);
    if (size != tn_packed_bytes(n, bits))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a buffer of %llu bytes but found %zu",
                       (unsigned long long)tn_packed_bytes(n, bits), size);
    if (!n)
        return TN_OK;
    /* For the floating-point environment of a pool. */
    tn_status status = tn_pool_once(
        1, 1, &(tn_ordered){ .work = read_range, .context = &(reading){ v, first, n, buffer } }, err);
    return tn_tensor_settle(v->file, v->tensor, status, err);
}

void tn_values_close(tn_values *v)
{
    if (!v)
        return;
    tn_decoder_free(v->made);
    tn_loaded_free(&v->loaded);
    tn_arena_free(&v->arena);
    free(v);
}
