/* pipeline/plan_tensor.c - the rules that match a tensor as steps of a view.
 *
 * The order of steps is that of docs/pipeline.md: values of codes, dense form,
 * layout, sparse form, cast or codes, padding.  Padding comes before codes of tiles
 * and before a sparse form, which have no elements of their own to pad. */
#include "pipeline/plan_tensor.h"
#include "base/error.h"
#include "pipeline/importance.h"
#include "quant/affine.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "tensor/form.h"
#include "tensor/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef tn_planning planning;

static bool is_quantizing(const tn_cast_rule *cast)
{
    return cast && (cast->datatype || cast->of || cast->quantized);
}

/* Codes of tiles, or what they would stand for, and rotated ones: not element by element. */
static bool is_by_blocks(const tn_cast_rule *cast)
{
    return cast->datatype || cast->of || cast->is_virtual || cast->quantize.rotation.size;
}

static tn_status add(planning *p, const tn_step *step, const void *options, tn_error *err)
{
    return tn_view_add_step(&p->view, step, options, err);
}

/* ---- values of codes ---- */

/* Codes of a datatype: the type that is asked for, or float32 on the way to it. */
static tn_status add_decode(planning *p, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    bool moves = p->rules->origin || p->rules->layout,  /* then the cast comes later, once per element */
         direct = cast && !p->joins && !moves && !is_quantizing(cast) && tn_is_whole_float(cast->dtype);
    tn_cast_options o = { .size = sizeof o };
    if (direct)
        o = cast->options;
    const tn_dequantize_task task = { .to = direct ? cast->dtype : TN_FLOAT32, .cast = &o,
                                      .counts = p->place->counts };
    p->is_cast = direct;
    if (!cast)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "its codes have no other form, layout, shape or padding: cast it to a float type "
                       "as well");
    return add(p, &tn_step_decode, &task, err);
}

/* Codes with scales and no datatype become codes without being values, or values. */
static bool is_requantized(const tn_cast_rule *cast)
{
    bool given = cast->quantize.rule == TN_SCALE_GIVEN;
    return cast->quantized && !is_by_blocks(cast) && cast->affine.arithmetic != TN_ARITH_BINARY32 &&
           (given || (cast->affine.power && cast->quantize.rule != TN_SCALE_MSE));
}

static tn_status add_dequantize(planning *p, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    const tn_dtype_info *to = tn_dtype_get(cast->dtype);
    const tn_cast_options refused = { .size = sizeof refused, .overflow = TN_OVERFLOW_ERROR };
    bool is_float = !p->joins && !is_quantizing(cast) && to->kind == TN_KIND_FLOAT,
         counts = p->place->counts && to->bits < 32,    /* what a cast of its own loses */
         direct = is_float && !counts;
    tn_dequantize_task task = { .to = TN_FLOAT32 };
    if (is_float)
        task.arithmetic = cast->affine.arithmetic;
    if (is_float && cast->options.overflow == TN_OVERFLOW_ERROR)
        task.cast = &refused;
    if (direct) {
        task.to = cast->dtype;
        task.cast = &cast->options;
    }
    p->is_cast = direct;
    return add(p, &tn_step_dequantize, &task, err);
}

/* Values of the codes, if the cast is of values. */
static tn_status add_values(planning *p, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    bool has_scales = tn_form_is_scaled(p->view->tensor.form);
    return has_scales && cast && !is_requantized(cast) ? add_dequantize(p, err) : TN_OK;
}

/* ---- order ---- */

/* Columns far apart are better taken many at a time. */
static bool is_crosswise(const tn_part *p)
{
    const int64_t *stride = tn_stored_more_of(p)->stride;
    return stride && p->array.rank && stride[p->array.rank - 1] != 1;
}

static tn_status find_order(planning *p, tn_error *err)
{
    const tn_tensor *t = &p->view->tensor;
    const tn_layout_rule *rule = p->rules->layout;
    const char *from = *rule->from ? rule->from : t->layout;
    if (!from)
        return tn_fail(err, TN_ERR_ARGUMENT, "its layout is not known: say it, as in %s,from=%s", rule->to,
                       t->rank == 4 ? "NCHW" : "LETTERS");
    if (t->layout && strcmp(from, t->layout) != 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected layout %s but found %s", from, t->layout);
    if (strlen(from) != t->rank)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "it has %u dimension%s but layout %s has %zu letters: name the tensors that have as "
                       "many, as in 'conv*.weight=%s,from=%s'", t->rank, t->rank == 1 ? "" : "s", from,
                       strlen(from), rule->to, from);
    if (tn_layout_check_shape(from, t->rank, t->shape, err) || tn_layout_order(from, rule->to, p->order, err))
        return TN_ERR_ARGUMENT;
    return TN_OK;
}

static tn_status add_order(planning *p, tn_error *err)
{
    const tn_tensor *t = &p->view->tensor;
    bool is_moved = false, has_order = t->form == TN_FORM_DENSE || tn_form_is_scaled(t->form);
    tn_status status = p->rules->layout ? find_order(p, err) : TN_OK;
    for (uint32_t i = 0; i < t->rank; i++)
        is_moved |= p->order[i] != i;
    if (!status && (is_moved || (has_order && p->view->step == &tn_step_stored && !tn_form_has_datatype(t) &&
                                 is_crosswise(&tn_stored_tensor(p->view)->parts[0]))))
        status = add(p, &tn_step_reorder, p->order, err);
    if (!status && p->rules->layout)
        p->view->tensor.layout = p->rules->layout->to;
    return status;
}

/* The place in the result of a dimension of the source. */
static int32_t new_axis(const planning *p, int32_t axis)
{
    for (uint32_t i = 0; i < p->base.rank && axis >= 0; i++)
        if (p->order[i] == (uint32_t)axis)
            return (int32_t)i;
    return -1;
}

/* ---- codes ---- */

/* The dimension of the source that the rule names, or -1. */
static tn_status find_axis(const planning *p, int32_t *axis, tn_error *err)
{
    const tn_tensor *t = &p->base;
    const char *text = p->rules->cast->axis, *layout = t->layout;
    if (!layout && p->rules->layout && *p->rules->layout->from)
        layout = p->rules->layout->from;
    *axis = TN_PER_TENSOR;
    if (!*text)
        return TN_OK;
    /* 1 is a number */
    const char *letter = layout && !text[1] && *text != '1' ? strchr(layout, *text) : NULL;
    char *end;
    long number = letter ? (long)(letter - layout) : strtol(text, &end, 10);
    if (!letter && *end)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a dimension by number, or a letter of its layout (%s), but found %s",
                       layout ? layout : "not known", tn_quote_z(text).text);
    number += number < 0 ? (long)t->rank : 0;
    if (number < 0 || number >= (long)t->rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a dimension below %u but found %s", t->rank,
                       tn_quote_z(text).text);
    *axis = (int32_t)number;
    return TN_OK;
}

/* Without rule->datatype: N:M sparsity in the tensor's own type, or the rule's affine codes. */
static tn_status make_datatype(const planning *p, const tn_affine *affine, tn_datatype **own, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    const tn_dtype_info *type = tn_dtype_get(p->view->tensor.dtype);
    char text[64];
    tn_status status = tn_check_floats(p->view->tensor.dtype, err);
    if (status || cast->quantized)
        return status ? status : tn_datatype_affine(affine, own, err);
    snprintf(text, sizeof text, "%s|n%um%u", type->name, cast->keep, cast->of);
    status = tn_datatype_parse(text, own, err);
    if (status != TN_ERR_ARGUMENT)      /* not every type is a number spec */
        return status;
    return tn_fail(err, status,
                   "%u:%u sparsity is of float32, float16, bfloat16 and signed floats of 8 bits but found %s "
                   "(cast it first)", cast->keep, cast->of, type->name);
}

/* Packed elements have no addresses of their own: they are widened first, which loses nothing. */
static tn_status widen_packed(planning *p, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(p->view->parts[0].array.dtype);
    const tn_cast_task task = { .to = TN_FLOAT32 };
    if (!type || type->kind != TN_KIND_FLOAT || type->bits >= 8 || p->rules->cast->is_virtual)
        return TN_OK;
    return add(p, &tn_step_cast, &task, err);
}

static tn_quantize_task quantize_task(const planning *p, const tn_affine *affine)
{
    const tn_cast_rule *cast = p->rules->cast;
    tn_quantize_task task = { .datatype = cast->datatype, .affine = affine, .options = cast->quantize,
                              .scale = cast->scale, .zero = cast->zero,
                              .fakes = cast->is_virtual, .cast = cast->options,
                              .refused = { cast->options.overflow == TN_OVERFLOW_ERROR,
                                           cast->options.underflow == TN_UNDERFLOW_ERROR } };
    task.reports = p->place->reports || task.refused.saturated || task.refused.flushed;
    if (cast->quantized)
        task.name = tn_cast_rule_type(cast);
    task.options.size = sizeof task.options;
    task.options.round = cast->options.round;
    task.options.nan = cast->options.nan;
    task.options.seed = cast->options.seed;
    return task;
}

/* By its new name, else by its old one. */
static tn_status find_importance(const planning *p, tn_quantize_options *o, tn_error *err)
{
    const tn_file *weights = p->rules->cast->weights;
    const tn_tensor *t = &p->view->tensor;
    if (weights && p->rules->name)
        TN_TRY(tn_importance_read(weights, p->rules->name, t, p->view->arena, o, err));
    if (weights && !o->importance)
        TN_TRY(tn_importance_read(weights, t->name, t, p->view->arena, o, err));
    return TN_OK;
}

/* Codes of a type that has the same codes elsewhere are moved; values that they stand for are not made. */
static bool is_repacked(const planning *p)
{
    const tn_cast_rule *cast = p->rules->cast;
    return cast->datatype && !cast->is_virtual && tn_repacking_of(p->view, cast->datatype);
}

static tn_status add_blocks(planning *p, const tn_affine *affine, tn_error *err)
{
    tn_quantize_task task = quantize_task(p, affine);
    tn_dtype dtype = p->view->tensor.dtype;     /* of the values, before they are widened */
    if (is_repacked(p))
        return add(p, &tn_step_repack, &task, err);
    tn_status status = find_importance(p, &task.options, err);
    if (status)
        return status;
    if (!task.datatype) {
        status = make_datatype(p, affine, &task.own, err);
        task.datatype = task.own;
    } else if (p->gives) {
        task.own = p->rules->cast->datatype;
        ((tn_cast_rule *)(uintptr_t)p->rules->cast)->datatype = NULL;
    }
    if (!status)
        status = widen_packed(p, err);
    if (status) {
        tn_datatype_free(task.own);
        return status;
    }
    status = add(p, &tn_step_encode, &task, err);       /* which takes task.own */
    if (!status)
        p->view->tensor.dtype = dtype;
    return status;
}

static tn_status add_requantize(planning *p, tn_quantize_task *task, tn_error *err)
{
    if (!p->rules->cast->round_given)
        task->options.round = TN_ROUND_HALF_UP;
    else if (task->affine->arithmetic == TN_ARITH_MLI && task->options.round == TN_ROUND_AWAY)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "of codes, compat=mli rounds half_up or even but found round=away");
    return add(p, &tn_step_requantize, task, err);
}

/* What casts before a quantizer lose is not told: the report is of the codes. */
static void silence(tn_view *v)
{
    v->reports = false;
    for (uint32_t i = 0; i < v->ninputs; i++)
        silence(v->inputs[i]);
}

static tn_status add_codes(planning *p, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    tn_affine affine = cast->affine;
    silence(p->view);
    TN_TRY(find_axis(p, &affine.axis, err));
    affine.axis = new_axis(p, affine.axis);
    if (is_by_blocks(cast))
        return add_blocks(p, &affine, err);
    tn_quantize_task task = quantize_task(p, &affine);
    if (p->view->tensor.form == TN_FORM_SCALED)
        return add_requantize(p, &task, err);
    return add(p, &tn_step_quantize, &task, err);
}

/* ---- elements ---- */

/* Cast plans are large, and many tensors share one. */
static tn_status find_plan(const planning *p, const tn_cast_plan **plan, tn_error *err)
{
    const tn_cast_rule *rule = p->rules->cast;
    const tn_cast_plan *none = NULL, **known = &none;
    tn_status status = TN_OK;
    if (p->rules->plans)
        known = &p->rules->plans[p->view->parts[0].array.dtype];
    if (!*known) {
        tn_cast_plan *made = tn_arena_alloc(p->place->arena, sizeof *made);
        if (!made)
            return tn_fail_nomem(err);
        status = tn_cast_plan_make(made, rule->dtype, p->view->parts[0].array.dtype, TN_HOST_ORDER,
                                   &rule->options, err);
        if (!status && p->place->counts)
            tn_cast_plan_count(made, tn_cast_kernels_get());
        *known = status ? NULL : made;
    }
    *plan = *known;
    return status;
}

/* If the rule would change no code the elements stay as they are. */
static tn_status add_cast(planning *p, tn_error *err)
{
    const tn_cast_rule *rule = p->rules->cast;
    tn_cast_task task = { .to = rule->dtype, .options = &rule->options, .counts = p->place->counts };
    tn_dtype from = p->view->parts[0].array.dtype;
    if (p->is_cast)
        return TN_OK;
    if (p->view->step == &tn_step_decode || p->view->step == &tn_step_dequantize)
        return add(p, &tn_step_cast, &task, err);
    tn_status status = find_plan(p, &task.plan, err);
    if (status || (rule->dtype == from && task.plan->route == TN_ROUTE_COPY))
        return status;
    return add(p, &tn_step_cast, &task, err);
}

/* ---- padding ---- */

static tn_status add_padding(planning *p, tn_error *err)
{
    const tn_tensor *t = &p->view->tensor;
    const tn_dtype_info *type = tn_dtype_get(p->view->parts[0].array.dtype);
    bool is_affine = t->form == TN_FORM_SCALED && !tn_form_has_datatype(t),
         has_rows = type && (is_affine || t->form == TN_FORM_DENSE);
    if (!has_rows || (!p->rules->pad && !(t->scaling && type->bits < 8)) || p->view->parts[0].padded)
        return TN_OK;
    tn_view *before = p->view;
    tn_status status = add(p, &tn_step_pad, p->rules->pad, err);
    if (!status && !p->view->parts[0].padded)   /* nothing is padded */
        p->view = before;
    return status;
}

/* ---- forms ---- */

static tn_status check_form(const planning *p, tn_error *err)
{
    const tn_tensor *t = &p->view->tensor;
    if (!tn_form_converts(t->form, p->rules->form->form))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "expected a dense, coo or csr tensor but found form %s%s",
                       tn_quote_z(tn_tensor_form_name(t)).text,
                       t->scaling ? " (cast it to a float type first)" : "");
    if (tn_form_is_sparse(p->rules->form->form) && is_quantizing(p->rules->cast))
        return tn_fail(err, TN_ERR_ARGUMENT, "a sparse tensor has no codes with scales");
    const tn_dtype_info *to = p->rules->cast ? tn_dtype_get(p->rules->cast->dtype) : NULL;
    if (tn_form_is_sparse(p->rules->form->form) && to && to->bits < 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "entries of a sparse tensor take whole bytes when they are made but found %s",
                       to->name);
    return TN_OK;
}

static tn_status add_form(planning *p, tn_error *err)
{
    tn_form_rule rule = *p->rules->form;
    tn_status status = check_form(p, err);
    if (rule.form == TN_FORM_COO && rule.options.index == TN_UNKNOWN)
        rule.options.index = p->place->index_type;
    return status ? status : add(p, &tn_step_form, &rule, err);
}

/* Whether there is something to be done before the layout: entries become dense, or a dense tensor drops
 * values. */
static bool becomes_dense(const planning *p)
{
    const tn_form_rule *rule = p->rules->form;
    return rule && rule->form == TN_FORM_DENSE &&
           (p->view->tensor.form != TN_FORM_DENSE || rule->options.drop);
}

/* ---- all ---- */

static tn_status check_sparse(const planning *p, tn_error *err)
{
    if (!tn_form_is_sparse(p->view->tensor.form))
        return TN_OK;
    if (is_quantizing(p->rules->cast) || p->rules->layout || p->rules->pad)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, tn_form_name(TN_FORM_DENSE),
                         "a sparse tensor has no scales, no order of its elements and no padding");
    return TN_OK;
}

/* Forms of later versions can be copied, and no more. */
static tn_status check_known(const planning *p, tn_error *err)
{
    const tn_tensor *t = &p->view->tensor;
    bool known = t->form == TN_FORM_DENSE || tn_form_is_scaled(t->form) || tn_form_is_sparse(t->form);
    if (known || !(p->rules->cast || p->rules->layout || p->rules->pad))
        return TN_OK;
    return tn_fail(err, TN_ERR_UNSUPPORTED, "expected a dense, sparse or scaled tensor but found form %s",
                   tn_quote_z(tn_tensor_form_name(t)).text);
}

static bool is_ruled(const tn_tensor_rules *r)
{
    return r->origin || r->cast || r->layout || r->pad || r->form;
}

/* Values of codes, and dense form. */
static tn_status add_first(planning *p, tn_error *err)
{
    const tn_tensor_rules *r = p->rules;
    if (tn_form_has_datatype(&p->view->tensor) && is_ruled(r))
        TN_TRY(add_decode(p, err));
    if (p->joins && r->cast && p->view->tensor.form == TN_FORM_SCALED)
        TN_TRY(add_dequantize(p, err));         /* codes of other scales have nothing in common */
    else if (becomes_dense(p) || r->origin)
        TN_TRY(add_values(p, err));
    if (becomes_dense(p))
        TN_TRY(add_form(p, err));
    TN_TRY(check_known(p, err));
    if (!(r->form && tn_form_is_sparse(r->form->form) && p->view->tensor.form == TN_FORM_DENSE))
        TN_TRY(check_sparse(p, err));
    return TN_OK;
}

/* Cast or codes. */
static tn_status add_elements(planning *p, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    tn_status status = add_values(p, err);
    if (status || !cast)
        return status;
    return is_quantizing(cast) ? add_codes(p, err) : add_cast(p, err);
}

static tn_status add_last(planning *p, tn_error *err)
{
    const tn_tensor_rules *r = p->rules;
    bool becomes_sparse = r->form && tn_form_is_sparse(r->form->form),
         first = becomes_sparse || (is_quantizing(r->cast) && is_by_blocks(r->cast) && !r->cast->is_virtual);
    tn_status status = first ? add_values(p, err) : TN_OK;
    if (!status && first && r->pad)
        status = add_padding(p, err);
    if (!status && becomes_sparse)
        status = add_form(p, err);
    if (!status)
        status = add_elements(p, err);
    return status || first ? status : add_padding(p, err);
}

/* ---- origins ---- */

static tn_status add_stored(planning *p, const tn_tensor *t, tn_arena *arena, tn_error *err)
{
    if (p->shapes_only) {       /* all that is asked for is what the places of elements are */
        tn_part *data = tn_arena_copy(arena, t->parts, sizeof *data);
        tn_tensor *dense = tn_arena_copy(arena, t, sizeof *dense);
        if (!data || !dense)
            return tn_fail_nomem(err);
        data->array = (tn_array){ t->parts[0].array.dtype, t->rank, t->shape, NULL };
        dense->form = TN_FORM_DENSE;
        dense->scaling = NULL;
        dense->nparts = 1;
        dense->parts = data;
        return tn_view_stored(&p->place->view, dense, arena, &p->view, err);
    }
    TN_TRY(tn_view_stored(&p->place->view, t, arena, &p->view, err));
    tn_status status = add_first(p, err);
    if (status) {
        tn_view_free(p->view);
        p->view = NULL;
    }
    return tn_in_tensor(status, t->name, err);
}

static bool differ_in_type(tn_view *const *views, uint32_t n)
{
    uint32_t same = 1;
    while (same < n && views[same]->parts[0].array.dtype == views[0]->parts[0].array.dtype)
        same++;
    return same < n;
}

/* Values that become codes are float32 first, which holds them or is refused. */
static tn_status widen(planning *p, tn_error *err)
{
    tn_dtype dtype = p->view->parts[0].array.dtype;
    const tn_cast_task task = { .to = TN_FLOAT32 };
    if (dtype == TN_FLOAT32 || !tn_is_whole_float(dtype) || tn_dtype_get(dtype)->bits > 32)
        return TN_OK;
    return add(p, &tn_step_cast, &task, err);
}

/* Tensors of different types are cast before they are joined, if a rule says to what. */
static tn_status cast_inputs(planning *p, tn_view **views, uint32_t n, tn_error *err)
{
    const tn_cast_rule *cast = p->rules->cast;
    tn_status status = TN_OK;
    if (!cast || cast->of || !differ_in_type(views, n))
        return TN_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        planning one = *p;
        one.view = views[i];
        one.is_cast = false;
        status = is_quantizing(cast) ? widen(&one, err) : add_cast(&one, err);
        views[i] = one.view;
        tn_in_tensor(status, views[i]->tensor.name, err);
    }
    p->is_cast = !is_quantizing(cast);
    return status;
}

static tn_status add_join(planning *p, const tn_origin *o, tn_arena *arena, tn_error *err)
{
    const tn_join_rule *rule = o->rule->rule;
    const tn_joining how = { rule->axis, rule->is_new };
    tn_view **views = tn_arena_zalloc(arena, o->ninputs, sizeof(tn_view *));
    tn_status status = views ? TN_OK : tn_fail_nomem(err);
    for (uint32_t i = 0; i < o->ninputs && !status; i++) {
        planning one = *p;
        one.joins = true;
        status = tn_plan_origin(&one, o->inputs[i], arena, err);
        views[i] = one.view;
    }
    if (!status)
        status = cast_inputs(p, views, o->ninputs, err);
    if (!status)
        status = tn_view_join_step(views, o->ninputs, &tn_step_concat, &how, &p->view, err);
    for (uint32_t i = 0; views && i < o->ninputs && status; i++)
        tn_view_free(views[i]);
    return status;
}

tn_status tn_plan_origin(planning *p, const tn_origin *o, tn_arena *arena, tn_error *err)
{
    tn_status status = TN_OK;
    p->view = NULL;
    if (o->source)
        return add_stored(p, o->source, arena, err);
    if (o->rule->step->kind == TN_RULE_JOIN)
        return add_join(p, o, arena, err);
    TN_TRY(tn_plan_origin(p, o->inputs[0], arena, err));
    if (o->rule->step->kind == TN_RULE_SPLIT)
        status = tn_plan_add_piece(p, o->rule->rule, o->piece, err);
    else
        status = tn_plan_apply(p, o->rule, err);
    if (!status)
        return TN_OK;
    tn_in_tensor(status, p->view->tensor.name, err);
    tn_view_free(p->view);
    p->view = NULL;
    return status;
}

/* What the axis of a cast and the order are of. */
static void begin_base(planning *p)
{
    p->base = p->view->tensor;
    for (uint32_t i = 0; i < p->base.rank && i < TN_MAX_RANK; i++)
        p->order[i] = i;
}

tn_status tn_plan_apply(planning *p, const tn_read_rule *rule, tn_error *err)
{
    const tn_tensor_rules *before = p->rules;
    tn_tensor_rules own = { .plans = rule->plans, .name = before ? before->name : NULL };
    p->rules = &own;
    tn_status status = rule->step->kind == TN_RULE_CAST ? TN_OK : tn_view_take_padding(p->view, err);
    begin_base(p);
    bool was_cast = p->is_cast;         /* by what the tensor will be cast to, which is applied once */
    p->is_cast = false;
    if (!status)
        status = rule->step->add(p, rule->rule, err);
    p->rules = before;
    p->is_cast = was_cast;
    return status;
}

/* ---- rules one at a time ---- */

static tn_tensor_rules *own_rules(planning *p)
{
    return (tn_tensor_rules *)(uintptr_t)p->rules;
}

tn_status tn_plan_add_layout(planning *p, void *rule, tn_error *err)
{
    own_rules(p)->layout = rule;
    TN_TRY(tn_view_check_places(p->view, err));
    return add_order(p, err);
}

tn_status tn_plan_add_pad(planning *p, void *rule, tn_error *err)
{
    own_rules(p)->pad = rule;
    TN_TRY(tn_view_check_places(p->view, err));
    return add_padding(p, err);
}

tn_status tn_plan_add_form(planning *p, void *rule, tn_error *err)
{
    own_rules(p)->form = rule;
    return add_form(p, err);
}

tn_status tn_plan_add_cast(planning *p, void *rule, tn_error *err)
{
    own_rules(p)->cast = rule;
    if (tn_form_has_datatype(&p->view->tensor))
        TN_TRY(add_decode(p, err));
    TN_TRY(check_known(p, err));
    TN_TRY(check_sparse(p, err));
    return add_elements(p, err);
}

/* ---- all rules ---- */

/* All steps before padding, sparse form and codes. */
static tn_status add_before_codes(planning *p, const tn_tensor *source, tn_arena *arena, tn_error *err)
{
    const tn_origin stored = { .source = source };
    TN_TRY(tn_plan_origin(p, p->rules->origin ? p->rules->origin : &stored, arena, err));
    begin_base(p);
    return add_order(p, err);
}

/* The last such step, or NULL. */
static const tn_view *find_step(const tn_view *v, const tn_step *step)
{
    const tn_view *found = v->step == step ? v : NULL;
    for (uint32_t i = 0; i < v->ninputs && !found; i++)
        found = find_step(v->inputs[i], step);
    return found;
}

static tn_status plan_steps(planning *p, const tn_tensor *source, tn_arena *arena, tn_error *err)
{
    TN_TRY(add_before_codes(p, source, arena, err));
    TN_TRY(add_last(p, err));
    bool is_copied = !find_step(p->view, &tn_step_form) && p->view->tensor.form == TN_FORM_COO;
    if (is_copied && p->place->index_type != TN_UNKNOWN)
        TN_TRY(tn_view_widen_indices(p->view, p->place->index_type, err));
    return TN_OK;
}

bool tn_plan_is_plain(const tn_tensor *t, const tn_tensor_rules *r)
{
    return !is_ruled(r) && t->form == TN_FORM_DENSE && !tn_stored_more_of(&t->parts[0])->stride;
}

/* Importance data has new names, and only the old one is in the error. */
static tn_status say_new_name(tn_status status, const char *name, tn_error *err)
{
    char text[160];
    if (!status || !err || err->reason != TN_REASON_IMPORTANCE || !name)
        return status;
    snprintf(text, sizeof text, "; its name there is %s", tn_quote_z(name).text);
    return tn_and_say(status, text, err);
}

tn_status tn_plan_view(const tn_plan_place *place, const tn_tensor *source, const tn_tensor_rules *rules,
                       tn_arena *arena, tn_view **view, tn_error *err)
{
    planning p = { .place = place, .rules = rules };
    tn_status status = tn_in_tensor(plan_steps(&p, source, arena, err), source->name, err);
    status = say_new_name(status, rules->name, err);
    if (status)
        tn_view_free(p.view);
    else
        *view = p.view;
    return status;
}

/* ---- the plan ---- */

static const int64_t *copy_shape(tn_arena *arena, uint32_t rank, const int64_t *shape)
{
    return tn_arena_copy(arena, shape, rank * sizeof *shape);
}

static bool copy_part(tn_arena *arena, const tn_part *from, tn_part *to)
{
    *to = *from;
    to->stored = NULL;
    to->array.shape = copy_shape(arena, from->array.rank, from->array.shape);
    if (from->data)
        to->data = tn_arena_copy(arena, from->data, (size_t)from->nbytes);
    if (from->padded) {
        const int64_t *physical = copy_shape(arena, from->array.rank, from->padded->shape);
        const tn_padded padded = { physical, from->padded->fill };
        to->padded = tn_arena_copy(arena, &padded, sizeof padded);
        if (!physical || !to->padded)
            return false;
    }
    return to->array.shape && (to->data || !from->data);
}

/* What the view's own arena has. */
static bool copy_tensor(tn_arena *arena, const tn_view *v, tn_tensor *t)
{
    tn_part *parts = tn_arena_zalloc(arena, v->tensor.nparts, sizeof *parts);
    tn_scaling *scaling = v->tensor.scaling ? tn_arena_copy(arena, v->tensor.scaling, sizeof *scaling) : NULL;
    *t = v->tensor;
    t->parts = parts;
    t->shape = copy_shape(arena, t->rank, t->shape);
    t->layout = t->layout ? tn_arena_text(arena, t->layout, strlen(t->layout)) : NULL;
    bool good = parts && t->shape && !t->layout == !v->tensor.layout && (scaling || !v->tensor.scaling);
    if (good && scaling && scaling->datatype) {
        scaling->datatype = tn_arena_text(arena, scaling->datatype, strlen(scaling->datatype));
        good = scaling->datatype != NULL;
    }
    t->scaling = scaling;
    for (uint32_t k = 0; k < t->nparts && good; k++)
        good = copy_part(arena, &v->parts[k], &parts[k]);
    return good;
}

static uint64_t stored_bytes(const tn_view *v)
{
    const tn_tensor *t = tn_stored_tensor(v);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < v->ninputs; i++)
        bytes += stored_bytes(v->inputs[i]);
    for (uint32_t k = 0; k < t->nparts && !v->ninputs; k++)
        bytes += t->parts[k].nbytes;
    return bytes;
}

/* Bytes that a search for scales reads, and progress counts. */
static uint64_t search_bytes(const tn_view *v)
{
    v = find_step(v, &tn_step_quantize);
    return v && tn_quantize_searches(v) ? tn_packed_bytes(v->input->count, v->input->bits) : 0;
}

/* What a report will say of the codes, if values become some. */
static tn_status describe_report(const tn_view *v, tn_arena *arena, tn_tensor_plan *plan, tn_error *err)
{
    tn_datatype *own = NULL;
    const tn_view *encoded = find_step(v, &tn_step_encode), *affine = find_step(v, &tn_step_quantize);
    affine = affine ? affine : find_step(v, &tn_step_requantize);
    if (!encoded && !affine)
        return TN_OK;
    if (!encoded)
        TN_TRY(tn_datatype_affine(tn_quantize_affine(affine), &own, err));
    const tn_datatype *d = encoded ? tn_encode_datatype(encoded) : own;
    plan->is_quantized = true;
    plan->value_bits = tn_datatype_bits(d);
    plan->datatype = tn_arena_text(arena, tn_datatype_text(d), strlen(tn_datatype_text(d)));
    tn_datatype_free(own);
    return plan->datatype ? TN_OK : tn_fail_nomem(err);
}

/* The names of its steps in their order, separated by commas. */
static void put_steps(const tn_view *v, tn_buf *b)
{
    if (!v->ninputs)
        return;
    put_steps(v->input, b);
    tn_buf_puts(b, b->size ? ", " : "");
    tn_buf_puts(b, v->step->name);
}

static const char *steps_of(const tn_view *v, tn_arena *arena)
{
    tn_buf b = { 0 };
    put_steps(v, &b);
    const char *text = b.bad ? NULL : tn_arena_text(arena, b.size ? (const char *)b.data : "", b.size);
    tn_buf_free(&b);
    return text;
}

tn_status tn_plan_describe(const tn_view *v, const tn_plan_place *place, tn_arena *arena,
                           tn_tensor_plan *plan, tn_error *err)
{
    if (!copy_tensor(arena, v, &plan->tensor))
        return tn_fail_nomem(err);
    plan->source_bytes = stored_bytes(v);
    plan->searched = search_bytes(v);
    plan->is_made = v->ninputs && !(v->step->apply && !v->input->ninputs);
    plan->makes_parts = tn_view_makes_parts(v);
    plan->is_formed = find_step(v, &tn_step_form) != NULL;
    plan->is_new = plan->rules.origin || plan->makes_parts || plan->tensor.form != tn_stored_tensor(v)->form;
    plan->is_counted = place->counts && !find_step(v, &tn_step_encode) &&
                       !find_step(v, &tn_step_quantize) && !find_step(v, &tn_step_requantize);
    if (place->names_steps)
        TN_NEED(plan->steps = steps_of(v, arena), err);
    return place->reports ? describe_report(v, arena, plan, err) : TN_OK;
}

/* ---- reports ---- */

void tn_plan_tell(const tn_tensor *source, const tn_tensor_plan *plan, const char *name,
                  const tn_quantize_stats *stats, tn_quantize_report_fn tell, void *context)
{
    tn_quantize_report q = { .source = source, .name = name, .datatype = plan->datatype,
                             .bits = plan->value_bits, .report = stats };
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < plan->tensor.nparts; k++)
        bytes += plan->tensor.parts[k].nbytes;
    if (tn_form_is_scaled(plan->tensor.form) && stats->values)
        q.bits = (double)bytes * 8 / (double)stats->values;
    tell(context, &q);
}
