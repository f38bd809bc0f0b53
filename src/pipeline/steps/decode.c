/* pipeline/steps/decode.c - codes of a datatype into values. */
#include "pipeline/steps/steps.h"
#include "base/error.h"
#include "pipeline/decoder.h"

typedef struct decoding {
    tn_decode_as as;
    tn_decoder  *decoder;       /* once it is prepared */
} decoding;

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_dequantize_task *task = options;
    const tn_dtype_info *to = tn_dtype_get(task->to);
    decoding *d = v->state = tn_arena_zalloc(v->arena, 1, sizeof *d);
    bool is_light;
    if (!d)
        return tn_fail_nomem(err);
    if (v->input->step != &tn_step_stored)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "codes are decoded as they are stored, before any other step");
    if (to->kind != TN_KIND_FLOAT || to->bits < 8 || to->specials == TN_SPECIALS_E8M0)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a scaled tensor becomes a signed float type of whole bytes, and from there any "
                       "other, but found %s", to->name);
    d->as.to = task->to;
    if (task->cast)
        d->as.options = *task->cast;
    d->as.options.size = sizeof d->as.options;
    tn_status status = tn_decoder_check(tn_stored_tensor(v), &is_light, err);
    v->tensor.form = TN_FORM_DENSE;
    v->tensor.scaling = NULL;
    v->tensor.nparts = 1;
    v->tensor.dtype = task->to;
    v->parts[0] = (tn_part){ .role = "data", .array = { task->to, v->tensor.rank, v->tensor.shape, NULL } };
    return status ? status : tn_view_resize(v, v->tensor.rank, v->tensor.shape, err);
}

static tn_status tick(void *context, tn_error *err)
{
    return tn_walk_check(context, err);
}

/* Checks the checksums of parts that are used in place. */
static tn_status check_parts(tn_loading *loading, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < loading->tensor->nparts && !status; k++)
        if (loading->tensor->parts[k].data)
            status = tn_load_check(loading, &loading->tensor->parts[k], err);
    return status;
}

static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    decoding *d = v->state;
    tn_loading loading = { .in = v->place->file, .tensor = tn_stored_tensor(v), .beside = v->place->beside,
                           .limit = v->place->max_bytes, .tick = tick, .context = v->place->walk };
    (void)p;
    tn_status status = tn_decoder_open_as(&loading, &d->as, &d->decoder, err);
    return status || d->decoder->loaded.tensor.parts ? status : check_parts(&loading, err);
}

static tn_status make(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out, tn_error *err)
{
    const decoding *d = v->state;
    (void)w;
    return d->decoder->maker.make(d->decoder->maker.context, first, n, out, err);
}

static void free_decoding(tn_view *v)
{
    decoding *d = v->state;
    if (d)
        tn_decoder_free(d->decoder);
}

const tn_step tn_step_decode = {
    .name = "decode", .most_parts = 1, .describe = describe, .prepare = prepare, .make = make,
    .free = free_decoding,
};
