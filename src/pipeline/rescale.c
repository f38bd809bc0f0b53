/* pipeline/rescale.c - a tensor of a file into codes with scales, and back. */
#include "pipeline/rescale.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/load.h"
#include "bytes/spill.h"
#include "tensor/array.h"
#include "quant/quantizer.h"

#include <stdlib.h>

enum { AT_ONCE = 1 << 15 };     /* values */
enum { PARTS = sizeof ((tn_scaled_shapes *)0)->parts / sizeof ((tn_scaled_shapes *)0)->parts[0] };

/* One task under way. */
typedef struct rescaling {
    const tn_rescale_task *t;
    tn_rescale_output     *o;
    tn_loaded        source;
    tn_scaled_shapes shapes;
    tn_spill          parts[PARTS];      /* made, but for what is handed out in order */
    tn_spill          values;            /* as float32, where they are rotated or narrower than a byte... */
    tn_spill          made;              /* ...or what is made of them, where it is not in order */
    tn_scaled_plan   plan;
    tn_cast_plan     narrow;
} rescaling;

/* ---- what is refused ---- */

static tn_status check_source(const tn_rescale_task *t, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->tensor->dtype), *to = tn_dtype_get(t->to);
    if (!type || type->kind != TN_KIND_FLOAT || type->specials == TN_SPECIALS_E8M0)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected values of a signed float type but found %s (cast it first)",
                       type ? type->name : "an unknown type");
    if (t->kind == TN_RESCALE_DEQUANTIZE &&
        (to->kind != TN_KIND_FLOAT || to->bits < 8 || to->specials == TN_SPECIALS_E8M0))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a scaled tensor becomes a signed float type of whole bytes, and from there any "
                       "other, but found %s", to->name);
    if (t->kind == TN_RESCALE_VIRTUAL && to->bits < 8)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a virtual cast is of a type of whole bytes but found %s (cast it first)", to->name);
    return TN_OK;
}

tn_status tn_rescale_check(const tn_rescale_task *t, tn_scaled_shapes *shapes, tn_error *err)
{
    tn_scaled_plan plan;
    tn_status status = check_source(t, err);
    if (!status)
        status = tn_quantizer_check(t->datatype, &t->options, err);
    if (!status)
        status = tn_scaled_plan_make(&plan, t->datatype, t->tensor->rank, t->tensor->shape, &t->options, NULL,
                                     err);
    if (!status)
        status = tn_scaled_check_rotation(&plan, err);
    return status ? status
                  : tn_scaled_shapes_for(t->datatype, t->tensor->rank, t->tensor->shape, shapes, err);
}

/* ---- memory ---- */

static tn_status make_spill(rescaling *r, tn_spill *spill, uint64_t count, size_t each, tn_error *err)
{
    uint64_t size;
    if (!tn_mul_u64(count, each, &size))
        return tn_fail(err, TN_ERR_LIMIT, "too many values");
    return tn_spill_make(spill, r->t->beside, size, err);
}

static tn_status load(rescaling *r, tn_error *err)
{
    tn_loading loading = { .in = r->t->in, .tensor = r->t->tensor, .beside = r->t->beside,
                           .limit = r->t->limit, .tick = r->t->tick,
                           .context = r->t->context };
    return tn_load(&loading, &r->source, err);
}

static void free_all(rescaling *r)
{
    tn_loaded_free(&r->source);
    for (unsigned i = 0; i < PARTS; i++)
        tn_spill_free(&r->parts[i]);
    tn_spill_free(&r->values);
    tn_spill_free(&r->made);
}

/* ---- handing out ---- */

/* The context of an emit that knows only bytes: the first part's. */
static tn_status emit_first(void *context, const uint8_t *bytes, size_t n, tn_error *err)
{
    rescaling *r = context;
    return r->o->emit(r->o->context, 0, bytes, n, err);
}

static tn_status emit_spill(rescaling *r, uint32_t part, const tn_spill *spill, tn_error *err)
{
    tn_status status = TN_OK;
    uint64_t at = 0;
    do {
        size_t n = (size_t)(spill->size - at < TN_WINDOW ? spill->size - at : TN_WINDOW);
        status = r->o->emit(r->o->context, part, spill->bytes + at, n, err);
        at += n;
    } while (at < spill->size && !status);
    return status;
}

/* ---- quantizing ---- */

/* Values are rotated as a whole, not while they are gone through. */
static bool is_rotated_apart(const rescaling *r)
{
    return r->t->options.rotation.size && !tn_scaled_turns(&r->plan);
}

/* The values as they are, or a float32 copy: packed elements cannot be taken one by one, and rotation is
 * float32's. */
static tn_status take_values(rescaling *r, tn_scaled_work *w, tn_error *err)
{
    const tn_tensor *t = r->t->tensor;
    const tn_array from = { t->dtype, t->rank, t->shape, NULL }, to = { TN_FLOAT32, t->rank, t->shape, NULL };
    const tn_cast_options o = { .size = sizeof o, .jobs = tn_pool_jobs(r->o->pool) };
    w->src_type = t->dtype;
    w->src = r->source.parts[0].data;
    if (tn_dtype_get(t->dtype)->bits >= 8 && !is_rotated_apart(r))
        return TN_OK;
    tn_status status = make_spill(r, &r->values, r->plan.count, sizeof(float), err);
    if (!status)
        status = tn_cast(&to, r->values.bytes, &from, w->src, TN_HOST_ORDER, &o, err);
    if (!status)
        status = tn_scaled_rotate(&r->plan, false, (float *)(void *)r->values.bytes, r->o->pool, err);
    w->src_type = TN_FLOAT32;
    w->src = r->values.bytes;
    return status;
}

static uint64_t part_bytes(const rescaling *r, uint32_t i)
{
    const tn_scaled_part *p = &r->shapes.parts[i];
    bool plain = i == 0 && r->t->options.unpacked;
    uint64_t nbytes = 0;
    /* was checked */
    tn_shape_nbytes(plain ? p->plain_dtype : p->dtype, p->rank, plain ? p->plain_shape : p->shape, &nbytes);
    return nbytes;
}

/* Codes and scales; codes that come in order are not kept. */
static tn_status quantize(rescaling *r, tn_error *err)
{
    void *memory[PARTS] = { NULL };
    bool streams = tn_scaled_streams(&r->plan);
    tn_status status = TN_OK;
    for (uint32_t i = streams ? 1 : 0; i < r->shapes.count && !status; i++) {
        status = make_spill(r, &r->parts[i], part_bytes(r, i), 1, err);
        memory[i] = r->parts[i].bytes;
    }
    tn_scaled_work w = { .plan = &r->plan, .report = r->o->report, .pool = r->o->pool, .context = r,
                         .scale = r->t->scale, .zero = r->t->zero };
    if (!status)
        status = tn_scaled_plan_make(&r->plan, r->t->datatype, r->t->tensor->rank, r->t->tensor->shape,
                                     &r->t->options, memory, err);
    if (!status)
        status = take_values(r, &w, err);
    w.emit = streams ? emit_first : NULL;
    if (!status)
        status = tn_quantizer_encode(&w, err);
    for (uint32_t i = streams ? 1 : 0; i < r->shapes.count && !status; i++)
        status = emit_spill(r, i, &r->parts[i], err);
    return status;
}

/* ---- values ---- */

/* float32 in a spill: rotated back, in the type that is asked for. */
static tn_status emit_values(rescaling *r, tn_spill *spill, const tn_cast_options *cast, tn_error *err)
{
    const float *x = (const float *)(const void *)spill->bytes;
    unsigned size = tn_dtype_get(r->t->to)->bits / 8;
    uint8_t *out = malloc(AT_ONCE * size);
    if (!out)
        return tn_fail_nomem(err);
    tn_status status = tn_scaled_rotate(&r->plan, true, (float *)(void *)spill->bytes, r->o->pool, err);
    if (!status)
        status = tn_cast_plan_make(&r->narrow, r->t->to, TN_FLOAT32, TN_HOST_ORDER, cast, err);
    uint64_t at = 0;
    do {
        size_t n = (size_t)(r->plan.count - at < AT_ONCE ? r->plan.count - at : AT_ONCE);
        if (!status)
            status =
                tn_cast_block(&r->narrow, out, x + at, n, at, r->t->tensor->rank, r->t->tensor->shape, err);
        if (!status)
            status = emit_first(r, out, n * size, err);
        at += n;
    } while (at < r->plan.count && !status);
    free(out);
    return status;
}

/* What codes would stand for; the rule's other options were for making the codes. */
static tn_status quantize_virtually(rescaling *r, tn_error *err)
{
    const tn_cast_options cast = { .size = sizeof cast, .overflow = r->t->cast.overflow };
    tn_scaled_work w = { .plan = &r->plan, .dst_type = r->t->to, .cast = &cast, .report = r->o->report,
                         .pool = r->o->pool, .context = r, .scale = r->t->scale, .zero = r->t->zero };
    bool rotated = is_rotated_apart(r), streams = tn_scaled_streams(&r->plan);
    tn_status status = take_values(r, &w, err);
    if (!status && !rotated && !streams)
        status = make_spill(r, &r->made, r->plan.count, tn_dtype_get(r->t->to)->bits / 8, err);
    if (status)
        return status;
    if (rotated)
        w.dst_type = TN_FLOAT32;
    w.dst = rotated ? r->values.bytes : streams ? NULL : r->made.bytes;
    w.emit = rotated || !streams ? NULL : emit_first;
    status = tn_quantizer_encode(&w, err);
    if (status || w.emit)
        return status;
    return rotated ? emit_values(r, &r->values, &cast, err) : emit_spill(r, 0, &r->made, err);
}

/* With scales that are known; only affine datatypes have those. */
static tn_status report(rescaling *r, tn_error *err)
{
    void *parts[PARTS] = { NULL, r->t->scales, r->t->zeros };
    tn_scaled_work w = { .plan = &r->plan, .report = r->o->report, .pool = r->o->pool };
    tn_status status = tn_scaled_plan_make(&r->plan, r->t->datatype, r->t->tensor->rank, r->t->tensor->shape,
                                           &r->t->options, parts, err);
    if (!status)
        status = take_values(r, &w, err);
    return status ? status : tn_quantizer_encode(&w, err);
}

static tn_status dequantize(rescaling *r, tn_error *err)
{
    void *memory[PARTS] = { NULL };
    for (uint32_t i = 0; i < r->shapes.count; i++) {
        if (i >= r->t->tensor->nparts || r->source.parts[i].nbytes != part_bytes(r, i))
            return tn_fail(err, TN_ERR_CORRUPT, "expected %llu bytes for the part %s but found others",
                           (unsigned long long)part_bytes(r, i), r->shapes.parts[i].role);
        memory[i] = (void *)(uintptr_t)r->source.parts[i].data;         /* which is only read */
    }
    tn_status status = tn_scaled_plan_make(&r->plan, r->t->datatype, r->t->tensor->rank, r->t->tensor->shape,
                                           &r->t->options, memory, err);
    bool rotated = !status && is_rotated_apart(r);
    if (rotated)
        status = make_spill(r, &r->values, r->plan.count, sizeof(float), err);
    if (status)
        return status;
    tn_scaled_work w = { .plan = &r->plan, .dst_type = rotated ? TN_FLOAT32 : r->t->to,
                         .dst = rotated ? r->values.bytes : NULL,
                         .cast = rotated ? NULL : &r->t->cast, .pool = r->o->pool,
                         .emit = rotated ? NULL : emit_first, .context = r };
    status = tn_quantizer_decode(&w, err);
    return status || !rotated ? status : emit_values(r, &r->values, &r->t->cast, err);
}

/* ---- all ---- */

void tn_rescale_tell(const tn_rescale_task *task, const tn_tensor *made, const tn_quantize_stats *stats,
                     tn_quantize_report_fn tell, void *context)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < made->nparts; k++)
        bytes += made->parts[k].nbytes;
    bool fake = task->kind == TN_RESCALE_VIRTUAL;
    tn_quantize_report q = { .source = task->tensor, .name = made->name,
                             .datatype = tn_datatype_text(task->datatype),
                             .bits = tn_datatype_bits(task->datatype), .report = stats };
    if (!fake && stats->values)
        q.bits = (double)bytes * 8 / (double)stats->values;
    tell(context, &q);
}

tn_status tn_rescale(const tn_rescale_task *t, tn_rescale_output *o, tn_error *err)
{
    static tn_status (*const run[])(rescaling *, tn_error *) = {
        [TN_RESCALE_QUANTIZE] = quantize, [TN_RESCALE_VIRTUAL] = quantize_virtually,
        [TN_RESCALE_DEQUANTIZE] = dequantize, [TN_RESCALE_REPORT] = report,
    };
    rescaling *r = calloc(1, sizeof *r);        /* a cast plan: too large for a stack */
    if (!r)
        return tn_fail_nomem(err);
    r->t = t;
    r->o = o;
    tn_status status = load(r, err);            /* names the tensor */
    if (!status) {
        status = tn_rescale_check(t, &r->shapes, err);
        if (!status)
            status = tn_scaled_plan_make(&r->plan, t->datatype, t->tensor->rank, t->tensor->shape,
                                         &t->options, NULL, err);
        if (!status)
            status = run[t->kind](r, err);
        tn_in_tensor(status, t->tensor->name, err);
    }
    free_all(r);
    free(r);
    return status;
}
