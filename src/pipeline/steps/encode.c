/* pipeline/steps/encode.c - values into codes of any datatype, or into what the codes would stand for.
 *
 * A block is an item of the quantizer: it reads its values, which follow one
 * another, from the input and gives some bytes of every part.  Tensors whose bands
 * of tiles are too large for that are encoded as a whole, from memory into spills. */
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/quantizer.h"
#include "tensor/array.h"
#include "tensor/block.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = sizeof ((tn_scaled_shapes *)0)->parts / sizeof ((tn_scaled_shapes *)0)->parts[0] };

typedef struct encoding {
    const tn_datatype *datatype;
    tn_datatype     *own;       /* or NULL */
    bool             fakes, reports, streams;
    tn_cast_options  cast;
    tn_scaled_plan   plan;
    tn_scaled_work   work;
    tn_scaled_job   *job;
    void           **readers;           /* the workers of the pool that prepares it */
    tn_spill         parts[PARTS];      /* of those that are not made by blocks */
    tn_spill         values;            /* a float32 copy that was rotated */
    uint8_t          field[PARTS];      /* which field of the plan each part is; PARTS: the tensor's scale */
    tn_quantize_stats report;           /* of a tensor that was encoded as a whole */
    tn_refused       refused;
} encoding;

/* ---- what comes out ---- */

static tn_status check_source(const tn_view *v, const encoding *e, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(v->tensor.dtype);
    TN_TRY(tn_check_floats(v->tensor.dtype, err));
    if (e->fakes && type->bits < 8)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a virtual cast is of a type of whole bytes but found %s (cast it first)", type->name);
    return TN_OK;
}

tn_status tn_declare_codes(tn_view *v, const tn_datatype *datatype, const tn_quantize_options *o,
                           tn_error *err)
{
    tn_scaled_shapes shapes;
    tn_scaling *scaling = tn_arena_zalloc(v->arena, 1, sizeof *scaling);
    const char *text = tn_datatype_text(datatype);
    TN_TRY(tn_scaled_shapes_for(datatype, v->tensor.rank, v->tensor.shape, &shapes, err));
    if (!scaling || !(scaling->datatype = tn_arena_text(v->arena, text, strlen(text))))
        return tn_fail_nomem(err);
    scaling->axis = -1;
    scaling->unpacked = o->unpacked;
    scaling->rotation = o->rotation;
    scaling->store = o->store;
    for (uint32_t i = 0; i < shapes.count; i++) {
        const tn_scaled_part *p = &shapes.parts[i];
        bool plain = i == 0 && o->unpacked;
        int64_t *shape = tn_arena_copy(v->arena, plain ? p->plain_shape : p->shape, p->rank * sizeof *shape);
        if (!shape)
            return tn_fail_nomem(err);
        v->parts[i] = (tn_part){ .role = p->role,
                                 .array = { plain ? p->plain_dtype : p->dtype, p->rank, shape, NULL } };
        if (plain && scaling->store != TN_UNKNOWN)
            v->parts[i].array.dtype = scaling->store;
        if (tn_array_nbytes(&v->parts[i].array, &v->parts[i].nbytes))
            return tn_fail(err, TN_ERR_LIMIT, "too large for its datatype");
    }
    v->tensor.form = datatype->block ? TN_FORM_BLOCKS : TN_FORM_SCALED;
    v->tensor.scaling = scaling;
    v->tensor.nparts = shapes.count;
    v->bits = tn_dtype_get(v->parts[0].array.dtype)->bits;
    return TN_OK;
}

static void find_fields(encoding *e, const tn_scaled_shapes *shapes)
{
    for (uint32_t i = 0; i < shapes->count; i++) {
        e->field[i] = PARTS;
        for (unsigned k = 0; k < TN_SCALED_FIELDS; k++)
            if (strcmp(shapes->parts[i].role, tn_scaled_roles[k]) == 0)
                e->field[i] = (uint8_t)k;
    }
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_quantize_task *task = options;
    tn_scaled_shapes shapes;
    encoding *e = v->state = calloc(1, sizeof *e);
    if (!e) {
        tn_datatype_free(task->own);
        return tn_fail_nomem(err);
    }
    e->datatype = task->datatype;
    e->own = task->own;
    e->fakes = task->fakes;
    e->reports = task->reports;
    e->refused = task->refused;
    e->cast = (tn_cast_options){ .size = sizeof e->cast, .overflow = task->cast.overflow };
    e->work = (tn_scaled_work){ .scale = task->scale, .zero = task->zero };
    TN_TRY(tn_view_take_padding(v, err));
    TN_TRY(check_source(v, e, err));
    TN_TRY(tn_quantizer_check(e->datatype, &task->options, err));
    if (e->datatype->block && e->refused.saturated)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s does not tell which values it clips: expected another overflow mode than error",
                       e->datatype->block->name);
    TN_TRY(tn_scaled_plan_make(&e->plan, e->datatype, v->tensor.rank, v->tensor.shape, &task->options, NULL,
                               err));
    TN_TRY(tn_check_importance(e->datatype, &task->options, v->tensor.rank, v->tensor.shape, err));
    TN_TRY(tn_scaled_check_rotation(&e->plan, err));
    TN_TRY(tn_scaled_shapes_for(e->datatype, v->tensor.rank, v->tensor.shape, &shapes, err));
    e->streams = tn_scaled_cut(&e->plan);
    find_fields(e, &shapes);
    return e->fakes ? TN_OK : tn_declare_codes(v, e->datatype, &e->plan.o, err);
}

/* ---- what comes first ---- */

static tn_status read_values(const void *source, void *reader, uint64_t first, size_t n,
                             const void **elements, tn_error *err)
{
    const tn_view *v = source;
    const uint8_t *bytes = NULL;
    size_t before = (size_t)(first % 8);        /* steps before this one may have packed elements */
    tn_status status = tn_view_range(v, first - before, n + before, reader, &bytes, err);
    *elements = status ? NULL : bytes + before * (v->bits / 8);
    return status;
}

/* Whether a part is complete once scales are known. */
static bool is_known_first(const encoding *e, uint32_t part)
{
    bool groups = tn_scaled_pieces(&e->plan) > 1 || e->datatype->is_affine;
    return part > 0 && (e->field[part] == PARTS || groups);
}

static tn_status make_plan(tn_view *v, encoding *e, tn_error *err)
{
    void *memory[PARTS] = { NULL };
    const tn_quantize_options o = e->plan.o;
    tn_scaled_shapes shapes;
    TN_TRY(tn_scaled_shapes_for(e->datatype, v->tensor.rank, v->tensor.shape, &shapes, err));
    for (uint32_t i = 0; i < shapes.count && !e->fakes; i++) {
        if (e->streams && !is_known_first(e, i))
            continue;
        TN_TRY(tn_spill_make(&e->parts[i], v->place->beside, v->parts[i].nbytes, err));
        memory[i] = e->parts[i].bytes;
    }
    TN_TRY(tn_scaled_plan_make(&e->plan, e->datatype, v->tensor.rank, v->tensor.shape, &o, memory, err));
    tn_scaled_cut(&e->plan);
    return TN_OK;
}

/* By blocks: only the search for scales comes first. */
static tn_status prepare_blocks(tn_view *v, encoding *e, const tn_preparing *p, tn_error *err)
{
    tn_scaled_work *w = &e->work;
    w->plan = &e->plan;
    w->src_type = v->input->parts[0].array.dtype;
    w->dst_type = e->fakes ? v->parts[0].array.dtype : TN_UNKNOWN;
    w->cast = &e->cast;
    w->report = e->reports ? &e->report : NULL;
    w->pool = p->pool;
    e->readers = calloc(tn_pool_jobs(p->pool), sizeof *e->readers);
    if (!e->readers)
        return tn_fail_nomem(err);
    for (unsigned i = 0; i < tn_pool_jobs(p->pool); i++)
        e->readers[i] = p->workers[i];
    w->readers = e->readers;
    w->read = read_values;
    w->source = v->input;
    w->by_items = true;
    w->item = v->input->grain;
    TN_TRY(make_plan(v, e, err));
    TN_TRY(tn_scaled_job_new(w, &e->job, err));
    return tn_job_prepare(e->job, err);
}

/* All values as memory of the input's type, or as a float32 copy that is rotated. */
static tn_status take_values(tn_view *v, encoding *e, const tn_preparing *p, tn_error *err)
{
    tn_scaled_work *w = &e->work;
    const tn_cast_options o = { .size = sizeof o, .jobs = tn_pool_jobs(p->pool) };
    const tn_array from = { v->input->parts[0].array.dtype, v->tensor.rank, v->tensor.shape, NULL },
                   to = { TN_FLOAT32, v->tensor.rank, v->tensor.shape, NULL };
    tn_status status = tn_view_fill(v->input, p, err);
    w->src_type = from.dtype;
    w->src = v->input->memory;
    if (status || !e->plan.o.rotation.size || tn_scaled_rotates(&e->plan))
        return status;
    status = tn_spill_make(&e->values, v->place->beside, e->plan.count * sizeof(float), err);
    if (!status)
        status = tn_cast(&to, e->values.bytes, &from, w->src, TN_HOST_ORDER, &o, err);
    if (!status)
        status = tn_scaled_rotate(&e->plan, false, (float *)(void *)e->values.bytes, p->pool, err);
    w->src_type = TN_FLOAT32;
    w->src = e->values.bytes;
    return status;
}

/* Values that were rotated apart are rotated back and cast. */
static tn_status finish_values(tn_view *v, encoding *e, const tn_preparing *p, tn_error *err)
{
    tn_cast_options o = e->cast;
    const tn_array from = { TN_FLOAT32, v->tensor.rank, v->tensor.shape, NULL },
                   to = { v->parts[0].array.dtype, v->tensor.rank, v->tensor.shape, NULL };
    o.jobs = tn_pool_jobs(p->pool);
    TN_TRY(tn_scaled_rotate(&e->plan, true, (float *)(void *)e->values.bytes, p->pool, err));
    return tn_cast(&to, e->parts[0].bytes, &from, e->values.bytes, TN_HOST_ORDER, &o, err);
}

/* As a whole. */
static tn_status prepare_whole(tn_view *v, encoding *e, const tn_preparing *p, tn_error *err)
{
    tn_scaled_work *w = &e->work;
    TN_TRY(make_plan(v, e, err));
    TN_TRY(take_values(v, e, p, err));
    if (e->fakes)
        TN_TRY(tn_spill_make(&e->parts[0], v->place->beside, v->parts[0].nbytes, err));
    bool apart = e->values.bytes != NULL;
    w->plan = &e->plan;
    w->report = e->reports ? &e->report : NULL;
    w->pool = p->pool;
    w->cast = apart ? NULL : &e->cast;
    if (e->fakes) {
        w->dst_type = apart ? TN_FLOAT32 : v->parts[0].array.dtype;
        w->dst = apart ? e->values.bytes : e->parts[0].bytes;
    }
    TN_TRY(tn_quantizer_encode(w, err));
    if (e->fakes && apart)
        TN_TRY(finish_values(v, e, p, err));
    tn_spill_free(&e->values);
    return TN_OK;
}

static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    encoding *e = v->state;
    TN_TRY(tn_view_prepare(v->input, p, err));
    if (!tn_view_has_ranges(v->input))
        TN_TRY(tn_view_fill(v->input, p, err));
    if (e->job)                 /* of another tensor: see renew() */
        return tn_job_prepare(e->job, err);
    return e->streams ? prepare_blocks(v, e, p, err) : prepare_whole(v, e, p, err);
}

/* ---- blocks ---- */

/* Of parts in spills. */
static uint64_t spill_blocks(const tn_view *v)
{
    return tn_div_up_u64(v->parts[0].nbytes, TN_SPILL_IN_MEMORY);
}

static uint64_t blocks(const tn_view *v)
{
    const encoding *e = v->state;
    uint64_t n = e->job ? tn_job_items(e->job) : spill_blocks(v);
    return n ? n : 1;           /* scales may be there without codes */
}

static void take_spill(const tn_spill *s, uint64_t from, uint64_t n, tn_part_bytes *out)
{
    if (from < s->size)
        *out = (tn_part_bytes){ s->bytes + from, from, tn_min_u64(n, s->size - from) };
}

/* The byte of the first part where an item begins: of codes or of values. */
static uint64_t first_byte(const tn_view *v, const encoding *e, uint64_t item, const tn_scaled_scratch *w)
{
    const tn_job_item tiles = tn_job_item_of(e->job, item);
    return e->fakes ? tn_job_elements(e->job, &tiles).first * (v->bits / 8) : w->view.data.from;
}

static tn_status block(const tn_view *v, uint64_t number, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    const encoding *e = v->state;
    bool items = e->job && tn_job_items(e->job);
    tn_status status = TN_OK;
    w->report = e->job || number ? (tn_quantize_stats){ 0 } : e->report;
    if (items) {
        w->quant.reader = w;
        status = tn_scratch_fit(e->job, &w->quant, err);
        if (!status)
            status = tn_result_fit(e->job, &w->quantized, err);
        if (!status)
            status = tn_job_run_item(e->job, number, &w->quant, &w->quantized, err);
        w->report = w->quantized.report;
    }
    for (uint32_t i = 0; i < v->tensor.nparts && !status; i++) {
        const tn_scaled_field *f = e->field[i] < PARTS ? &w->quant.view.fields[e->field[i]] : NULL;
        if (!e->job && e->parts[i].bytes)       /* all are in spills: the last block has the rest of them */
            take_spill(&e->parts[i], number * TN_SPILL_IN_MEMORY,
                       number + 1 == blocks(v) ? UINT64_MAX : TN_SPILL_IN_MEMORY, &out[i]);
        else if (e->parts[i].bytes && number == 0)
            take_spill(&e->parts[i], 0, UINT64_MAX, &out[i]);
        else if (items && i > 0 && !is_known_first(e, i))
            out[i] = (tn_part_bytes){ f->data, f->from, w->quant.window_bytes[e->field[i]] };
    }
    if (items && !status)
        out[0] = (tn_part_bytes){ w->quantized.bytes, first_byte(v, e, number, &w->quant),
                                  w->quantized.nbytes };
    return status ? status : tn_check_refused(e->refused, &w->report, err);
}

/* Nothing is searched for: a tile has all that its scale depends on. */
static bool is_local(const tn_view *v)
{
    const encoding *e = v->state;
    return e->streams && !e->datatype->is_affine && !e->datatype->has_tensor_scale &&
           tn_scaled_pieces(&e->plan) == 1;
}

/* Where something is searched for, that is found anew with the memory that is there. */
static bool renew(tn_view *v)
{
    const encoding *e = v->state;
    if (!e->job || is_local(v))
        return e->job != NULL;
    v->is_prepared = false;
    return tn_job_restart(e->job);
}

static void span(const tn_view *v, uint64_t block, uint64_t *first, uint64_t *n)
{
    const encoding *e = v->state;
    const tn_job_item tiles = tn_job_item_of(e->job, block);
    const tn_scaled_row elements = tn_job_elements(e->job, &tiles);
    *first = elements.first;
    *n = elements.n;
}

static void free_encoding(tn_view *v)
{
    encoding *e = v->state;
    if (!e)
        return;
    tn_scaled_job_free(e->job);
    for (unsigned i = 0; i < PARTS; i++)
        tn_spill_free(&e->parts[i]);
    tn_spill_free(&e->values);
    tn_datatype_free(e->own);
    free(e->readers);
    free(e);
}

const tn_datatype *tn_encode_datatype(const tn_view *v)
{
    return ((const encoding *)v->state)->datatype;
}

const tn_step tn_step_encode = {
    .name = "encode", .most_parts = PARTS, .describe = describe, .prepare = prepare, .blocks = blocks,
    .block = block, .is_local = is_local, .span = span, .renew = renew, .free = free_encoding,
};
