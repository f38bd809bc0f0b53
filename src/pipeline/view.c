/* pipeline/view.c - a tensor whose data is made when it is asked for. */
#include "pipeline/view.h"
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/vector.h"
#include "store/load.h"
#include "tensor/array.h"
#include "tensor/block.h"
#include "tensor/code.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((uint64_t)8 << 20)  /* of a block */

/* ---- the memory of a thread ---- */

tn_status tn_worker_buffer(tn_worker *w, const tn_view *v, unsigned number, uint64_t size, uint8_t **bytes,
                           tn_error *err)
{
    unsigned i = 2 * v->depth + number;
    if (size >= w->buffers[i].size) {
        free(w->buffers[i].bytes);
        w->buffers[i].bytes = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
        w->buffers[i].size = w->buffers[i].bytes ? (size_t)size + 1 : 0;
    }
    *bytes = w->buffers[i].bytes;
    return *bytes ? TN_OK : tn_fail_nomem(err);
}

tn_status tn_worker_read_ahead(tn_worker *w, const tn_source *source, uint64_t offset, size_t n,
                               tn_error *err)
{
    tn_ahead *a = &w->ahead;
    if (n > a->room) {
        free(a->bytes);
        *a = (tn_ahead){ .bytes = malloc(n) };
        TN_NEED(a->bytes, err);
        a->room = n;
    }
    TN_TRY(tn_source_read(source, offset, a->bytes, n, err));
    a->mapped = tn_source_view(source, offset, n);
    a->n = a->mapped ? n : 0;
    return TN_OK;
}

void tn_worker_rest(tn_worker *w)
{
    tn_stream_close(&w->stream);
    w->streamed = NULL;
    w->until = 0;
}

void tn_worker_free(tn_worker *w)
{
    for (unsigned i = 0; i < 2 * TN_VIEW_DEPTH; i++)
        free(w->buffers[i].bytes);
    tn_stream_free(&w->stream);
    tn_hash_free(&w->hash);
    tn_scratch_free(&w->quant);
    tn_result_free(&w->quantized);
    free(w->ahead.bytes);
    *w = (tn_worker){ 0 };
}

/* ---- chains of views ---- */

tn_status tn_view_resize(tn_view *v, uint32_t rank, const int64_t *shape, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(v->parts[0].array.dtype);
    v->bits = type->bits;
    if (tn_shape_count(rank, shape, &v->count) ||
        tn_shape_nbytes(type->dtype, rank, shape, &v->parts[0].nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "too large for its new type or padding");
    return TN_OK;
}

tn_status tn_view_check_padding(const tn_view *v, tn_error *err)
{
    const tn_part *p = &v->parts[0];
    int32_t axis = v->tensor.scaling ? v->tensor.scaling->axis : -1;
    if (!p->padded || axis < 0 || p->padded->shape[axis] == p->array.shape[axis])
        return TN_OK;
    return tn_fail(err, TN_ERR_UNSUPPORTED,
                   "dimension %d has a scale for each index, but none for its padding: pad it before it is "
                   "quantized, or after all other steps", (int)axis);
}

tn_status tn_view_take_padding(tn_view *v, tn_error *err)
{
    TN_TRY(tn_view_check_padding(v, err));
    if (v->parts[0].padded)
        v->tensor.shape = v->parts[0].array.shape = v->parts[0].padded->shape;
    v->parts[0].padded = NULL;
    return TN_OK;
}

static tn_status new_view(const tn_view_place *place, const tn_step *step, const tn_tensor *tensor,
                          tn_arena *arena, tn_view **view, tn_error *err)
{
    uint32_t most = step->most_parts > tensor->nparts ? step->most_parts : tensor->nparts;
    tn_view *v = tn_arena_zalloc(arena, 1, sizeof *v);
    tn_part *parts = tn_arena_zalloc(arena, most, sizeof *parts);
    if (!v || !parts)
        return tn_fail_nomem(err);
    *v = (tn_view){ .step = step, .place = place, .arena = arena, .tensor = *tensor, .parts = parts };
    memcpy(parts, tensor->parts, tensor->nparts * sizeof *parts);
    v->tensor.parts = parts;
    *view = v;
    return TN_OK;
}

static uint16_t unit_of(const tn_tensor *t)
{
    bool blocks = t->form == TN_FORM_BLOCKS && t->scaling && t->scaling->datatype;
    const tn_block_info *block = blocks ? tn_block_of_datatype(t->scaling->datatype) : NULL;
    return block ? block->bytes : 0;
}

tn_status tn_view_stored(const tn_view_place *place, const tn_tensor *tensor, tn_arena *arena, tn_view **view,
                         tn_error *err)
{
    tn_view *v = NULL;
    tn_status status = new_view(place, &tn_step_stored, tensor, arena, &v, err);
    if (!status)
        status = v->step->describe(v, tensor, err);
    if (!status) {
        v->unit = unit_of(tensor);
        *view = v;
    }
    return tn_in_tensor(status, tensor->name, err);
}

/* What a view begins with: the shape and the data of its first input. */
static void begin_as_input(tn_view *v, tn_view **inputs, uint32_t n)
{
    const tn_view *first = inputs[0];
    v->inputs = inputs;
    v->ninputs = n;
    v->input = inputs[0];
    v->count = first->count;
    v->bits = first->bits;
    v->grain = first->grain;
    v->has_wide_indices = first->has_wide_indices;
    for (uint32_t i = 0; i < n; i++) {
        v->reach = inputs[i]->reach > v->reach ? inputs[i]->reach : v->reach;
        v->depth = inputs[i]->depth >= v->depth ? (uint8_t)(inputs[i]->depth + 1) : v->depth;
        v->is_moved |= inputs[i]->is_moved;
        v->reports |= inputs[i]->reports;
    }
    for (uint32_t k = 0; k < v->tensor.nparts; k++)     /* made anew, or copied from the input */
        v->parts[k].data = k ? first->parts[k].data : NULL;
}

tn_status tn_view_join_step(tn_view *const *inputs, uint32_t n, const tn_step *step, const void *options,
                            tn_view **view, tn_error *err)
{
    tn_view *first = inputs[0], *v = NULL;
    tn_view **own = tn_arena_copy(first->arena, inputs, n * sizeof(tn_view *));
    TN_TRY(own ? new_view(first->place, step, &first->tensor, first->arena, &v, err) : tn_fail_nomem(err));
    begin_as_input(v, own, n);
    if (v->depth >= TN_VIEW_DEPTH)
        return tn_fail(err, TN_ERR_LIMIT, "expected at most %d steps", TN_VIEW_DEPTH - 1);
    tn_status status = step->describe(v, options, err);
    if (status && step->free)
        step->free(v);
    if (!status)
        *view = v;
    return tn_in_tensor(status, first->tensor.name, err);
}

tn_status tn_view_stored_part(const tn_view_place *place, const tn_tensor *tensor, uint32_t k,
                              tn_arena *arena, tn_view **view, tn_error *err)
{
    const tn_part *p = &tensor->parts[k];
    if (tensor->form == TN_FORM_DENSE && tensor->nparts == 1)
        return tn_view_stored(place, tensor, arena, view, err);
    tn_tensor *alone = tn_arena_zalloc(arena, 1, sizeof *alone);
    if (!alone)
        return tn_fail_nomem(err);
    *alone = (tn_tensor){ .name = tensor->name, .form = TN_FORM_DENSE, .dtype = p->array.dtype,
                          .rank = p->array.rank, .shape = p->array.shape, .parts = p, .nparts = 1 };
    TN_TRY(tn_view_stored(place, alone, arena, view, err));
    (*view)->unit = unit_of(tensor);
    return TN_OK;
}

tn_status tn_view_add_step(tn_view **view, const tn_step *step, const void *options, tn_error *err)
{
    return tn_view_join_step(view, 1, step, options, view, err);
}

/* What preparing took, of this step alone. */
static void release(tn_view *v)
{
    if (v->step->release)
        v->step->release(v);
    if (v->filled)
        tn_loaded_free(&v->filled->whole);
    free(v->filled);
    v->filled = NULL;
    v->memory = v->ninputs || !v->tensor.nparts ? NULL : tn_stored_tensor(v)->parts[0].data;
    v->is_prepared = false;
}

void tn_view_drop_steps(tn_view **view, tn_view *before)
{
    for (; *view != before; *view = (*view)->input) {
        release(*view);
        if ((*view)->step->free)
            (*view)->step->free(*view);
    }
}

void tn_view_free(tn_view *v)
{
    if (!v)
        return;
    for (uint32_t i = 0; i < v->ninputs; i++)
        tn_view_free(v->inputs[i]);
    release(v);
    if (v->step->free)
        v->step->free(v);
}

/* ---- all of a view as memory ---- */

bool tn_view_has_ranges(const tn_view *v)
{
    if (v->memory)
        return true;
    if (v->step == &tn_step_stored)
        return !v->count || v->is_streamed || tn_part_splits(&tn_stored_tensor(v)->parts[0]);
    return v->step->apply ? tn_view_has_ranges(v->input) : v->step->make != NULL;
}

tn_quantize_stats tn_view_report(const tn_view *v)
{
    tn_quantize_stats all = v->filled ? v->filled->report : (tn_quantize_stats){ 0 };
    for (uint32_t i = 0; i < v->ninputs; i++) {
        tn_quantize_stats more = tn_view_report(v->inputs[i]);
        tn_quantize_stats_add(&all, &more);
    }
    return all;
}

typedef struct filling {
    tn_view            *view;
    const tn_preparing *p;
    uint32_t            nparts;
    tn_quantize_stats  *results;
} filling;

static tn_status fill(void *context, uint64_t block, tn_pool_use use, tn_error *err)
{
    const filling *f = context;
    tn_part_bytes out[TN_MAX_PARTS] = { 0 };
    tn_status status = tn_view_block(f->view, block, f->p->workers[use.scratch], out, err);
    for (uint32_t k = 0; k < f->nparts && !status; k++)
        if (out[k].size)
            memcpy(f->view->filled->whole.spills[k].bytes + out[k].offset, out[k].bytes, (size_t)out[k].size);
    f->results[use.result] = f->p->workers[use.scratch]->report;
    return status;
}

static tn_status filled(void *context, uint64_t block, unsigned result, tn_error *err)
{
    const filling *f = context;
    (void)block;
    tn_quantize_stats_add(&f->view->filled->report, &f->results[result]);
    return tn_walk_check(f->view->place->walk, err);
}

tn_status tn_view_new_filled(tn_view *v, tn_error *err)
{
    if (v->filled) {            /* of an attempt that failed */
        tn_loaded_free(&v->filled->whole);
        *v->filled = (tn_filled){ .whole = { .decoded = false } };
    } else {
        v->filled = calloc(1, sizeof *v->filled);
    }
    return v->filled ? TN_OK : tn_fail_nomem(err);
}

/* The first parts, as blocks give them. */
static tn_status fill_parts(tn_view *v, uint32_t nparts, const tn_preparing *p, tn_error *err)
{
    filling f = { v, p, nparts, calloc(tn_pool_results(p->pool), sizeof *f.results) };
    const tn_ordered task = { .work = fill, .emit = filled, .context = &f };
    tn_status status = f.results ? tn_view_new_filled(v, err) : tn_fail_nomem(err);
    for (uint32_t k = 0; k < nparts && !status; k++)
        if (k == 0 || !v->parts[k].data)
            status = tn_spill_make(&v->filled->whole.spills[k], v->place->beside, v->parts[k].nbytes, err);
    if (!status)
        status = tn_pool_run(p->pool, tn_view_blocks(v), &task, err);
    free(f.results);
    if (!status)
        v->memory = v->filled->whole.spills[0].bytes ? v->filled->whole.spills[0].bytes : (const uint8_t *)"";
    return status;
}

tn_status tn_view_fill(tn_view *v, const tn_preparing *p, tn_error *err)
{
    return v->memory ? TN_OK : fill_parts(v, 1, p, err);
}

/* A part that no step makes, as it is in the file. */
static tn_status load_other_part(tn_view *v, uint32_t k, tn_error *err)
{
    const tn_tensor *t = tn_stored_tensor(v);
    tn_spill *spill = &v->filled->whole.spills[k];
    if (v->place->file)
        TN_TRY(tn_kept_check_part(v->place->file, t, &t->parts[k], err));
    TN_TRY(tn_spill_make(spill, v->place->beside, v->parts[k].nbytes, err));
    return tn_copy_part(v->place, t, k, v->parts[k].array.dtype, spill->bytes, err);
}

bool tn_view_makes_parts(const tn_view *v)
{
    while (v->step->apply)
        v = v->input;
    return v->step->block != NULL;
}

tn_status tn_view_complete(tn_view *v, const tn_preparing *p, const tn_tensor **whole, tn_error *err)
{
    bool makes = tn_view_makes_parts(v);
    if (!v->filled || !v->filled->whole.tensor.nparts) {
        v->memory = NULL;       /* the first part alone is not enough */
        TN_TRY(fill_parts(v, makes ? v->tensor.nparts : 1, p, err));
        tn_loaded *l = &v->filled->whole;
        for (uint32_t k = 0; k < v->tensor.nparts; k++) {
            bool is_here = k && v->parts[k].data;
            if (k && !makes && !is_here)
                TN_TRY(load_other_part(v, k, err));
            l->parts[k] = v->parts[k];
            if (!is_here)
                l->parts[k].data = l->spills[k].bytes ? (const void *)l->spills[k].bytes : "";
        }
        l->tensor = v->tensor;
        l->tensor.parts = l->parts;
    }
    *whole = &v->filled->whole.tensor;
    return TN_OK;
}

tn_status tn_view_prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    tn_preparing own = *p;
    tn_status status = TN_OK;
    if (v->is_prepared)
        return TN_OK;
    own.in_order &= !v->ninputs || v->step->apply;
    if (v->step->prepare)
        status = v->step->prepare(v, &own, err);
    for (uint32_t i = 0; i < v->ninputs && !v->step->prepare && !status; i++)
        status = tn_view_prepare(v->inputs[i], &own, err);
    v->is_prepared = !status && !(own.in_order && v->reach == TN_REACH_IN_ORDER);
    return tn_in_tensor(status, v->tensor.name, err);
}

bool tn_view_rebind(tn_view *v, const tn_tensor *tensor)
{
    for (tn_view *u = v; u->input; u = u->input)
        if (u->ninputs > 1 || u->memory || !u->step->renew || !u->step->renew(u))
            return false;
    for (; v->input; v = v->input) {
        v->tensor.name = tensor->name;
        v->is_prepared &= v->step->prepare != NULL;
    }
    tn_stored_rebind(v, tensor);
    return true;
}

bool tn_view_strided(const tn_view *v, tn_strided *s)
{
    if (v->memory) {
        s->base = v->memory;
        s->swap = 1;
        tn_dense_strides(v->parts[0].array.rank, tn_view_shape(v), s->stride);
        return true;
    }
    return v->step->strided && v->step->strided(v, s);
}

/* ---- many readers ---- */

static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER;

static tn_status prepare_in_order(tn_view *v, tn_error *err)
{
    return tn_view_prepare(v, &(tn_preparing){ .in_order = true }, err);
}

tn_status tn_view_hold(tn_view *v, tn_worker *w, uint64_t until, tn_error *err)
{
    tn_status status;
    w->until = until;
    if (v->reach != TN_REACH_ANY)       /* which may take long, and nobody else waits for */
        return prepare_in_order(v, err);
    pthread_mutex_lock(&holding);
    v->holders++;
    status = prepare_in_order(v, err);
    pthread_mutex_unlock(&holding);
    return status;
}

void tn_view_leave(tn_view *v, tn_worker *w)
{
    tn_worker_rest(w);
    pthread_mutex_lock(&holding);
    v->holders -= v->holders > 0;
    if (!v->holders)
        for (tn_view *u = v; u; u = u->input)
            release(u);
    pthread_mutex_unlock(&holding);
}

bool tn_view_wish(const tn_view *v, tn_worker *w, tn_stream_wish *wish)
{
    while (v->step->apply)
        v = v->input;
    if (v->step != &tn_step_stored || v->memory || !v->count)
        return false;
    const tn_tensor *t = tn_stored_tensor(v);
    *wish = (tn_stream_wish){ &w->stream, v->place->file, t, &t->parts[0] };
    return true;
}

/* ---- ranges ---- */

size_t tn_view_window(const tn_view *v)
{
    uint64_t window = TN_WINDOW / v->bits * 8, most = MOST_BYTES / (v->bits > 8 ? v->bits : 8) * 8;
    uint64_t windows = tn_min_u64(v->grain, most) / window;
    return (size_t)(windows > 1 ? windows * window : window);
}

unsigned tn_view_bits_read(const tn_view *v)
{
    return v->step->apply ? tn_view_bits_read(v->input) : v->bits;
}

tn_status tn_view_range(const tn_view *v, uint64_t first, size_t n, tn_worker *w, const uint8_t **bytes,
                       tn_error *err)
{
    const uint8_t *in = NULL;
    uint8_t *out;
    *bytes = (const uint8_t *)"";
    if (!n)
        return TN_OK;
    if (v->memory && !v->is_copied) {
        *bytes = tn_worker_near(w, v->memory + tn_packed_byte(first, v->bits), tn_packed_bytes(n, v->bits));
        return TN_OK;
    }
    if (v->step == &tn_step_stored)
        return tn_stored_range(v, first, n, w, bytes, err);
    tn_status status = tn_worker_buffer(w, v, 0, tn_packed_bytes(n, v->bits), &out, err);
    if (!status && v->step->apply)
        status = tn_view_range(v->input, first, n, w, &in, err);
    if (!status)
        status = v->step->apply ? v->step->apply(v, first, in, n, out, err)
                                : v->step->make(v, first, n, w, out, err);
    if (!status && v->step->report)
        status = v->step->report(v, first, in, n, out, w, err);
    *bytes = out;
    return status;
}

tn_status tn_view_copy(const tn_view *v, tn_worker *w, uint8_t *to, tn_error *err)
{
    const uint8_t *bytes;
    w->until = v->count;
    for (uint64_t at = 0, n; at < v->count; at += n) {
        n = tn_min_u64(v->count - at, tn_view_window(v));
        TN_TRY(tn_view_range(v, at, (size_t)n, w, &bytes, err));
        memcpy(to + tn_packed_byte(at, v->bits), bytes, (size_t)tn_packed_bytes(n, v->bits));
    }
    return TN_OK;
}

tn_status tn_copy_part(const tn_view_place *place, const tn_tensor *t, uint32_t k, tn_dtype to,
                       void *elements, tn_error *err)
{
    tn_worker w = { 0 };
    tn_arena arena = { 0 };
    tn_view *v = NULL;
    tn_status status = tn_view_stored_part(place, t, k, &arena, &v, err);
    if (!status)
        status = tn_view_add_values(&v, to, err);
    if (!status)
        status = prepare_in_order(v, err);
    if (!status)
        status = tn_view_copy(v, &w, elements, err);
    tn_view_free(v);
    tn_worker_free(&w);
    tn_arena_free(&arena);
    return status;
}

/* ---- stored bytes ---- */

tn_status tn_needs_add(tn_needs *n, uint32_t shard, uint64_t offset, uint64_t size, tn_error *err)
{
    if (!size)
        return TN_OK;
    if (n->count && n->list[n->count - 1].shard == shard) {
        uint64_t begin = n->list[n->count - 1].offset, *joined = &n->list[n->count - 1].size;
        if (offset >= begin && offset - begin <= *joined) {
            *joined = offset - begin + size > *joined ? offset - begin + size : *joined;
            return TN_OK;
        }
    }
    if (n->most && n->count == n->most)
        return TN_ERR_LIMIT;
    TN_NEED(TN_GROW(n->list, n->count, n->cap), err);
    n->list[n->count].shard = shard;
    n->list[n->count].offset = offset;
    n->list[n->count++].size = size;
    return TN_OK;
}

tn_status tn_needs_add_part(tn_needs *needs, const tn_part *p, tn_error *err)
{
    const tn_stored *s = tn_stored_of(p);
    const tn_stored_more *more = tn_stored_more_of(p);
    if (!more->derive)
        return tn_needs_add(needs, s->shard, s->offset, s->size, err);
    for (uint32_t i = 0; i < more->nfrom; i++)
        TN_TRY(tn_needs_add_part(needs, &more->from[i], err));
    return TN_OK;
}

static tn_status add_all_needs(const tn_view *v, tn_needs *needs, tn_error *err)
{
    for (uint32_t i = 0; i < v->ninputs; i++)
        TN_TRY(add_all_needs(v->inputs[i], needs, err));
    for (uint32_t k = 0; k < v->tensor.nparts && !v->ninputs; k++)
        TN_TRY(tn_needs_add_part(needs, &tn_stored_tensor(v)->parts[k], err));
    return TN_OK;
}

tn_status tn_view_needs(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err)
{
    if (v->step->needs)
        return v->step->needs(v, first, n, needs, err);
    return v->step->apply ? tn_view_needs(v->input, first, n, needs, err) : add_all_needs(v, needs, err);
}

/* ---- blocks ---- */

uint64_t tn_view_block_elements(const tn_view *v)
{
    uint64_t bits = v->bits > 8 ? v->bits : 8, window = TN_WINDOW / bits * 8, most = MOST_BYTES / bits * 8;
    if (v->unit)                /* ranges begin with a multiple of 8 */
        return window - window % (8 * v->unit);
    return v->grain ? tn_min_u64(v->grain, most) : window;
}

uint64_t tn_view_blocks(const tn_view *v)
{
    if (!v->memory && v->step->blocks)
        return v->step->blocks(v);
    if (!tn_view_has_ranges(v))
        return tn_view_blocks(v->input);
    return tn_div_up_u64(v->count, tn_view_block_elements(v));
}

tn_status tn_view_block_needs(const tn_view *v, uint64_t block, uint64_t n, tn_needs *needs, tn_error *err)
{
    if (!v->memory && v->step->blocks) {
        uint64_t first, last, rest;
        v->step->span(v, block, &first, &rest);
        v->step->span(v, block + n - 1, &last, &rest);
        return tn_view_needs(v->input, first, last + rest - first, needs, err);
    }
    if (!tn_view_has_ranges(v))
        return tn_view_block_needs(v->input, block, n, needs, err);
    uint64_t each = tn_view_block_elements(v), first = block * each;
    return tn_view_needs(v, first, tn_min_u64(n * each, v->count - first), needs, err);
}

bool tn_step_is_local(const tn_view *v)
{
    (void)v;
    return true;
}

bool tn_view_is_local(const tn_view *v)
{
    bool local = v->step->is_local ? v->step->is_local(v) : !v->step->prepare;
    for (uint32_t i = 0; i < v->ninputs && local; i++)
        local = tn_view_has_ranges(v->inputs[i]) && tn_view_is_local(v->inputs[i]);
    return local;
}

/* An elementwise step on a block of several parts: it changes the first. */
static tn_status apply_to_block(const tn_view *v, uint64_t block, tn_worker *w, tn_part_bytes *out,
                                tn_error *err)
{
    unsigned from = v->input->bits;
    uint8_t *to;
    tn_status status = tn_view_block(v->input, block, w, out, err);
    if (status || !out[0].size)
        return status;
    uint64_t first = out[0].offset * 8 / from, n = tn_min_u64(out[0].size * 8 / from, v->count - first);
    status = tn_worker_buffer(w, v, 0, tn_packed_bytes(n, v->bits), &to, err);
    if (!status)
        status = v->step->apply(v, first, out[0].bytes, (size_t)n, to, err);
    if (!status && v->step->report)
        status = v->step->report(v, first, out[0].bytes, (size_t)n, to, w, err);
    out[0] = (tn_part_bytes){ to, tn_packed_byte(first, v->bits), tn_packed_bytes(n, v->bits) };
    return status;
}

static tn_status make_block(const tn_view *v, uint64_t block, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    if (!v->memory && v->step->block)
        return v->step->block(v, block, w, out, err);
    if (!tn_view_has_ranges(v))
        return apply_to_block(v, block, w, out, err);
    uint64_t each = tn_view_block_elements(v), first = block * each, n = tn_min_u64(v->count - first, each);
    out[0].offset = tn_packed_byte(first, v->bits);
    out[0].size = tn_packed_bytes(n, v->bits);
    return tn_view_range(v, first, (size_t)n, w, &out[0].bytes, err);
}

tn_status tn_view_block(const tn_view *v, uint64_t block, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    w->report = (tn_quantize_stats){ 0 };
    w->counted = 0;
    return tn_in_tensor(make_block(v, block, w, out, err), v->tensor.name, err);
}

/* ---- indices ---- */

tn_status tn_view_widen_indices(tn_view *v, tn_dtype to, tn_error *err)
{
    tn_array *indices = &v->parts[1].array;
    if (tn_dtype_get(indices->dtype)->bits == tn_dtype_get(to)->bits)   /* no negative ones are let through */
        return TN_OK;
    v->has_wide_indices = true;
    indices->dtype = to;
    if (tn_array_nbytes(indices, &v->parts[1].nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "its indices are too many");
    return TN_OK;
}
