/* pipeline/remake.c - what becomes of one tensor on its way into another file. */
#include "pipeline/remake.h"
#include "base/error.h"
#include "pipeline/padding.h"
#include "pipeline/requantize.h"
#include "pipeline/rules/rules.h"
#include "tensor/array.h"
#include "quant/quantizer.h"
#include "quant/scale_search.h"
#include "tensor/form.h"
#include "tensor/layout.h"
#include "pipeline/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How elements are made, for one tensor: the context of its change. */
typedef struct maker {
    tn_change           change;
    const tn_cast_plan *cast;
    tn_affine_plan      *quant;      /* or NULL: it is large, and a cast needs none */
    const char         *name;
    bool                moved;      /* indices are not those of the input */
    uint32_t            rank;
    const int64_t      *shape;      /* in the output's order */
} maker;

/* One tensor in the making. */
typedef struct making {
    const tn_remake_place *place;
    const tn_tensor       *source;
    const tn_remake_rules *rules;
    tn_arena              *arena;
    tn_remade             *made;
    tn_part               *parts;       /* of made->tensor */
    tn_arrange             how;
    const int32_t         *zero;        /* of a scaled tensor, or NULL: the source's, then the result's */
} making;

static tn_status tick(void *context, tn_error *err)
{
    const tn_remake_place *place = context;
    return tn_walk_check(place->walk, err);
}

static tn_status check_floats(const making *m, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(m->source->dtype);
    bool is_float = type && type->kind == TN_KIND_FLOAT;
    if (is_float && type->specials != TN_SPECIALS_E8M0)
        return TN_OK;
    return tn_fail(err, TN_ERR_ARGUMENT, "expected values of a %s type but found %s: cast it to f32 first",
                   is_float ? "signed float" : "float", type ? type->name : "an unknown type");
}

/* ---- order ---- */

static tn_status choose_order(making *m, tn_error *err)
{
    const tn_tensor *t = m->source;
    const tn_layout_rule *rule = m->rules->layout;
    m->how.rank = t->rank;
    for (uint32_t i = 0; i < t->rank; i++)
        m->how.order[i] = i;
    if (!rule)
        return TN_OK;
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
    if (tn_layout_check_shape(from, t->rank, t->shape, err) ||
        tn_layout_order(from, rule->to, m->how.order, err))
        return TN_ERR_ARGUMENT;
    m->made->tensor.layout = rule->to;
    return TN_OK;
}

static void apply_order(making *m)
{
    tn_tensor *t = &m->made->tensor;
    for (uint32_t i = 0; i < t->rank; i++)
        m->how.shape[i] = m->how.physical[i] = m->source->shape[m->how.order[i]];
}

/* The place in the output of a dimension of the input. */
static int32_t new_axis(const making *m, int32_t axis)
{
    for (uint32_t i = 0; i < m->how.rank && axis >= 0; i++)
        if (m->how.order[i] == (uint32_t)axis)
            return (int32_t)i;
    return -1;
}

static bool is_moved(const making *m)
{
    for (uint32_t i = 0; i < m->how.rank; i++)
        if (m->how.order[i] != i)
            return true;
    return false;
}

/* ---- elements ---- */

static tn_status named(const maker *k, tn_status status, tn_error *err)
{
    if (k->moved)
        tn_and_say(status, " (indices of the new layout)", err);
    return tn_in_tensor(status, k->name, err);
}

static tn_status apply_cast(const void *context, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                            tn_error *err)
{
    const maker *k = context;
    return named(k, tn_cast_block(k->cast, out, in, n, first, k->rank, k->shape, err), err);
}

static tn_status apply_quantize(const void *context, uint64_t first, const uint8_t *in, size_t n,
                                uint8_t *out, tn_error *err)
{
    const maker *k = context;
    return named(k, tn_affine_encode(k->quant, out, in, n, first, k->rank, k->shape, err), err);
}

static maker *new_maker(const making *m, tn_dtype from, tn_dtype to)
{
    maker *k = tn_arena_zalloc(m->arena, 1, sizeof *k);
    const int64_t *shape = tn_arena_copy(m->arena, m->how.shape, m->how.rank * sizeof *shape);
    if (!k || !shape)
        return NULL;
    k->name = m->source->name;
    k->rank = m->how.rank;
    k->shape = shape;
    k->moved = is_moved(m);
    k->change = (tn_change){ .context = k, .from_bits = tn_dtype_get(from)->bits,
                             .to_bits = tn_dtype_get(to)->bits };
    return k;
}

static tn_status find_plan(const making *m, const tn_cast_plan **known, const tn_cast_plan **plan,
                           tn_error *err)
{
    const tn_cast_rule *rule = m->rules->cast;
    tn_status status = TN_OK;
    if (!*known) {
        tn_cast_plan *made = tn_arena_alloc(m->arena, sizeof *made);
        if (!made)
            return tn_fail_nomem(err);
        status = tn_cast_plan_make(made, rule->dtype, m->source->dtype, TN_HOST_ORDER, &rule->options, err);
        if (status)
            return status;
        *known = made;
    }
    *plan = *known;
    return status;
}

/* One element for one.  Where the rule would change no code the elements stay as they are. */
static tn_status cast_elements(making *m, const tn_cast_plan **plans, tn_error *err)
{
    const tn_cast_rule *rule = m->rules->cast;
    const tn_cast_plan *plan = NULL;
    tn_status status = find_plan(m, &plans[m->source->dtype], &plan, err);
    if (status || (rule->dtype == m->source->dtype && plan->route == TN_ROUTE_COPY))
        return status;
    maker *k = new_maker(m, m->source->dtype, rule->dtype);
    if (!k)
        return tn_fail_nomem(err);
    k->cast = plan;
    k->change.apply = apply_cast;
    m->made->change = &k->change;
    m->made->tensor.dtype = m->parts[0].array.dtype = rule->dtype;
    return TN_OK;
}

/* ---- codes with scales ---- */

static tn_status dequantize(making *m, tn_error *err)
{
    const tn_tensor *t = m->source;
    tn_dtype to = m->rules->cast->dtype;
    int64_t *shape = tn_arena_copy(m->arena, m->how.shape, m->how.rank * sizeof *shape);
    if (tn_dtype_get(to)->kind != TN_KIND_FLOAT)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a scaled tensor becomes a float type, and from there any other");
    if (!shape)
        return tn_fail_nomem(err);
    tn_dequantizing d = { m->place->file, t, to, m->how.rank, shape, new_axis(m, t->scaling->axis), m->zero,
                          m->rules->cast->affine.arithmetic, &m->rules->cast->options, is_moved(m) };
    tn_status status = tn_dequantize_change(&d, m->arena, &m->made->change, err);
    m->made->tensor.form = TN_FORM_DENSE;
    m->made->tensor.scaling = NULL;
    m->made->tensor.nparts = 1;
    m->made->tensor.dtype = m->parts[0].array.dtype = to;
    return status;
}

/* The dimension of the input that the rule names, or -1. */
static tn_status find_axis(const making *m, int32_t *axis, tn_error *err)
{
    const tn_tensor *t = m->source;
    const char *text = m->rules->cast->axis;
    const char *layout = t->layout                                     ? t->layout
                         : m->rules->layout && *m->rules->layout->from ? m->rules->layout->from
                                                                       : NULL;
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

/* The scale that is given, or that of no values. */
static float first_scale(const tn_cast_rule *rule)
{
    if (rule->quantize.rule == TN_SCALE_GIVEN)
        return rule->scale;
    return rule->affine.power ? ldexpf(1, 1 - (int)tn_dtype_get(rule->dtype)->bits) : 1;
}

/* Room for scales and zero points, and where they are declared. */
static tn_status add_scales(making *m, tn_unknown_scales *u, tn_error *err)
{
    const tn_cast_rule *rule = m->rules->cast;
    bool zeros = rule->affine.has_zeros || !rule->affine.symmetric;
    int64_t *extent = tn_arena_zalloc(m->arena, 1, sizeof *extent);
    tn_scale_index index;
    tn_status status = find_axis(m, &u->affine.axis, err);
    if (status)
        return status;
    status = tn_scale_index_for(m->source->rank, m->source->shape, u->affine.axis, &index, err);
    if (status)
        return status;
    uint64_t count = index.count;
    u->scale = tn_arena_zalloc(m->arena, (size_t)count, sizeof *u->scale);
    u->zero = zeros ? tn_arena_zalloc(m->arena, (size_t)count, sizeof *u->zero) : NULL;
    if (!extent || !u->scale || (zeros && !u->zero))
        return tn_fail_nomem(err);
    for (uint64_t i = 0; i < count; i++) {
        u->scale[i] = first_scale(rule);
        if (u->zero)
            u->zero[i] = rule->zero;
    }
    *extent = (int64_t)count;
    uint32_t rank = u->affine.axis >= 0;
    m->parts[1] = (tn_part){ .role = "scale", .array = { TN_FLOAT32, rank, extent, NULL },
                             .nbytes = count * sizeof *u->scale,
                             .data = u->scale };
    m->parts[2] = (tn_part){ .role = "zero", .array = { TN_INT32, rank, extent, NULL },
                             .nbytes = count * sizeof *u->zero,
                             .data = u->zero };
    m->made->tensor.nparts = zeros ? 3 : 2;
    m->zero = u->zero;
    return TN_OK;
}

/* What the options make of the tensor, with the scales found later or given already. */
static tn_unknown_scales *new_scales(const making *m)
{
    tn_unknown_scales *u = tn_arena_zalloc(m->arena, 1, sizeof *u);
    if (u) {
        u->affine = m->rules->cast->affine;
        u->options = m->rules->cast->quantize;
    }
    return u;
}

static void declare_codes(making *m, const tn_scaling *scaling, const tn_change *change)
{
    m->made->change = change;
    m->made->tensor.form = TN_FORM_SCALED;
    m->made->tensor.scaling = scaling;
    m->parts[0].array.dtype = m->rules->cast->dtype;
}

static tn_status plan_codes(making *m, const tn_unknown_scales *u, maker *k, tn_scaling *scaling,
                            tn_error *err)
{
    tn_affine_task task = { .affine = &u->affine, .values = m->source->dtype, .scale = u->scale,
                            .zero = u->zero, .options = &u->options };
    scaling->axis = new_axis(m, u->affine.axis);
    tn_status status = tn_affine_range(&u->affine, scaling->range, err);
    if (!status)
        status = tn_scale_index_for(m->how.rank, m->how.shape, scaling->axis, &task.index, err);
    if (!status)
        status = tn_affine_plan_make(k->quant, &task, err);
    return status;
}

/* Whether scales by this rule can be found is known before anything is read. */
static tn_status check_tally(const making *m, const tn_unknown_scales *u, tn_error *err)
{
    tn_scale_tally *tally;
    tn_scale_index index;
    if (u->options.rule == TN_SCALE_GIVEN)
        return TN_OK;
    tn_status status = tn_scale_index_for(m->source->rank, m->source->shape, u->affine.axis, &index, err);
    if (!status)
        status = tn_scale_tally_new(&u->affine, &u->options, m->source->dtype, index, &tally, err);
    if (status)
        return status;
    tn_scale_tally_free(tally);
    return TN_OK;
}

/* The codes are made on the way from file to file; what they do is found out by making them once more. */
static tn_status plan_report(making *m, const tn_unknown_scales *u, tn_error *err)
{
    tn_rescale_task *task = tn_arena_zalloc(m->arena, 1, sizeof *task);
    if (!task)
        return tn_fail_nomem(err);
    *task = (tn_rescale_task){ .in = m->place->file, .tensor = m->source, .kind = TN_RESCALE_REPORT,
                               .options = u->options, .to = m->source->dtype, .beside = m->place->beside,
                               .limit = m->place->max_bytes, .scales = u->scale, .zeros = u->zero,
                               .tick = tick, .context = (void *)(uintptr_t)m->place };
    task->options.rule = TN_SCALE_GIVEN;
    task->options.percentile = 0;
    m->made->report = task;
    tn_status status = tn_datatype_affine(&u->affine, &task->own, err);
    task->datatype = task->own;
    return status;
}

static tn_status quantize(making *m, tn_error *err)
{
    const tn_cast_rule *rule = m->rules->cast;
    tn_unknown_scales *u = new_scales(m);
    tn_scaling *scaling = tn_arena_zalloc(m->arena, 1, sizeof *scaling);
    maker *k = new_maker(m, m->source->dtype, rule->dtype);
    if (!u || !scaling || !k || !(k->quant = tn_arena_zalloc(m->arena, 1, sizeof *k->quant)))
        return tn_fail_nomem(err);
    tn_status status = check_floats(m, err);
    if (!status)
        status = add_scales(m, u, err);
    if (!status)
        status = plan_codes(m, u, k, scaling, err);
    if (!status)
        status = check_tally(m, u, err);
    if (status)
        return status;
    k->quant->name = tn_cast_rule_type(rule);
    k->change.apply = apply_quantize;
    declare_codes(m, scaling, &k->change);
    m->made->unknown = rule->quantize.rule == TN_SCALE_GIVEN ? NULL : u;
    return m->place->reports ? plan_report(m, u, err) : TN_OK;
}

/* Codes of codes: without values between them, so their scale is given or told by the codes. */
static tn_status requantize(making *m, tn_error *err)
{
    const tn_cast_rule *rule = m->rules->cast;
    tn_unknown_scales *u = new_scales(m);
    tn_scaling *scaling = tn_arena_zalloc(m->arena, 1, sizeof *scaling);
    int64_t *shape = tn_arena_copy(m->arena, m->how.shape, m->how.rank * sizeof *shape);
    const tn_change *change = NULL;
    if (!u || !scaling || !shape)
        return tn_fail_nomem(err);
    tn_requantizing r = { .file = m->place->file, .tensor = m->source, .zero = m->zero, .to = u->affine.codes,
                      .rank = m->how.rank, .shape = shape,
                      .axis = new_axis(m, m->source->scaling->axis),
                      .options = { .size = sizeof r.options, .round = u->options.round,
                                   .seed = u->options.seed, .arithmetic = u->affine.arithmetic,
                                   .range = { u->affine.range[0], u->affine.range[1] } },
                      .tick = tick,
                      .context = (void *)(uintptr_t)m->place };
    if (!rule->round_given)
        r.options.round = TN_ROUND_HALF_UP;
    else if (r.options.arithmetic == TN_ARITH_MLI && r.options.round == TN_ROUND_AWAY)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "of codes, compat=mli rounds half_up or even but found round=away");
    tn_status status = tn_affine_range(&u->affine, scaling->range, err);
    if (!status)
        status = add_scales(m, u, err);
    if (!status && rule->quantize.rule != TN_SCALE_GIVEN)
        status = tn_requantize_power(&r, m->arena, u->scale, err);
    r.scales = (tn_scales){ .axis = new_axis(m, u->affine.axis), .scale = u->scale, .zero = u->zero };
    if (!status)
        status = tn_requantize_change(&r, m->arena, &change, err);
    if (status)
        return status;
    scaling->axis = r.scales.axis;
    declare_codes(m, scaling, change);
    return TN_OK;
}

static tn_status cast_codes(making *m, tn_error *err)
{
    const tn_cast_rule *rule = m->rules->cast;
    const tn_quantize_options *q = &rule->quantize;
    if (!rule->quantized)
        return dequantize(m, err);
    if (rule->affine.arithmetic == TN_ARITH_BINARY32)
        return tn_fail(err, TN_ERR_ARGUMENT, "it has scales already: cast it to a float type first");
    if (q->rule == TN_SCALE_MSE && rule->affine.power)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "it has scales already, and frac=least is found from values only: say frac=N or "
                       "frac=auto, or cast it to a float type first");
    if (q->rule != TN_SCALE_GIVEN && !rule->affine.power)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "it has scales already: give that of %s (scale=S), or cast it to a float type first",
                       tn_cast_rule_type(rule));
    return requantize(m, err);
}

/* ---- forms ---- */

/* The parts as they will be; the description outlives what has counted them. */
static tn_status declare_parts(making *m, const tn_tensor *result, tn_error *err)
{
    tn_tensor *t = &m->made->tensor;
    t->form = m->made->reform->form;
    t->nparts = result->nparts;
    for (uint32_t k = 0; k < result->nparts; k++) {
        const tn_part *p = &result->parts[k];
        int64_t *shape = tn_arena_copy(m->arena, p->array.shape, p->array.rank * sizeof *shape);
        if (!shape)
            return tn_fail_nomem(err);
        m->parts[k] = (tn_part){ .role = p->role, .array = { p->array.dtype, p->array.rank, shape, NULL },
                                 .nbytes = p->nbytes };
    }
    return TN_OK;
}

static tn_status check_form(const making *m, tn_error *err)
{
    const tn_remake_rules *rules = m->rules;
    if (!tn_form_converts(m->source->form, rules->form->form))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "expected a dense, coo or csr tensor but found form %s%s",
                       tn_quote_z(tn_tensor_form_name(m->source)).text,
                       m->source->scaling ? " (cast it to a float type first)" : "");
    if (rules->layout || rules->pad || (rules->cast && rules->cast->quantized))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "another form, and another layout, padding or scales, take two conversions");
    if (rules->cast && tn_dtype_get(rules->cast->dtype)->bits < 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "another form, and elements narrower than a byte, take two conversions");
    return TN_OK;
}

/* Another form, or the same in canonical order. */
static tn_status choose_form(making *m, tn_error *err)
{
    const tn_form_rule *rule = m->rules->form;
    if (!rule ||
        (rule->form == TN_FORM_DENSE && m->source->form == TN_FORM_DENSE && !rule->options.drop))
        return TN_OK;
    tn_status status = check_form(m, err);
    if (status)
        return status;
    tn_form_task *task = tn_arena_zalloc(m->arena, 1, sizeof *task);
    if (!task)
        return tn_fail_nomem(err);
    *task = (tn_form_task){ m->place->file, m->source, rule->form, rule->options, m->place->beside, tick,
                              (void *)(uintptr_t)m->place };
    task->options.limit = m->place->max_bytes;
    if (rule->form == TN_FORM_COO && task->options.index == TN_UNKNOWN)
        task->options.index = m->place->index_type;
    m->made->reform = task;
    status = tn_form_conversion_new(task, m->place->walk->pool, &m->made->reformed, err);
    if (!status)
        status = declare_parts(m, tn_form_conversion_result(m->made->reformed), err);
    if (!status && tn_form_conversion_is_large(m->made->reformed)) {
        tn_form_conversion_free(m->made->reformed);
        m->made->reformed = NULL;
    }
    return status;
}

/* ---- datatypes ---- */

/* What the rule asks for, or the source has. */
static bool is_rescaled(const making *m)
{
    const tn_cast_rule *cast = m->rules->cast;
    bool whole = cast && cast->quantized && (cast->is_virtual || cast->quantize.rotation.size);
    return cast && (whole || cast->datatype || cast->of || tn_form_has_datatype(m->source));
}

static tn_status check_rescale(const making *m, tn_error *err)
{
    const tn_cast_rule *cast = m->rules->cast;
    bool quantizes = cast->datatype || cast->of || cast->quantized;
    if (m->rules->form || m->rules->layout || m->rules->pad)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "codes of a datatype, and another form, layout or padding, take two conversions");
    if (quantizes && m->source->scaling)
        return tn_fail(err, TN_ERR_ARGUMENT, "it has scales already: cast it to a float type first");
    if (quantizes && m->source->form != TN_FORM_DENSE)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, tn_form_name(TN_FORM_DENSE),
                         "expected a dense tensor but found form %s: make it dense first",
                         tn_quote_z(tn_tensor_form_name(m->source)).text);
    return TN_OK;
}

/* The rule's codes, with the dimension that it names. */
static tn_status find_affine(const making *m, tn_rescale_task *task, tn_error *err)
{
    tn_affine affine = m->rules->cast->affine;
    tn_status status = find_axis(m, &affine.axis, err);
    if (status)
        return status;
    status = tn_datatype_affine(&affine, &task->own, err);
    task->datatype = task->own;
    task->scale = m->rules->cast->scale;
    task->zero = m->rules->cast->zero;
    return status;
}

/* The recipe: the rule's, sparsity in the tensor's own type, or the source's. */
static tn_status find_datatype(const making *m, tn_rescale_task *task, tn_error *err)
{
    const tn_cast_rule *cast = m->rules->cast;
    const tn_dtype_info *type = tn_dtype_get(m->source->dtype);
    char text[64];
    if (cast->datatype) {
        task->datatype = cast->datatype;
        return TN_OK;
    }
    tn_status status = check_floats(m, err);
    if (status)
        return status;
    if (cast->quantized)
        return find_affine(m, task, err);
    snprintf(text, sizeof text, "%s|n%um%u", type->name, cast->keep, cast->of);
    bool stored = tn_form_has_datatype(m->source);
    status = stored ? tn_datatype_parse_stored(m->source->scaling->datatype, m->source->scaling->store,
                                               &task->own, err)
                    : tn_datatype_parse(text, &task->own, err);
    if (status == TN_ERR_ARGUMENT && !stored)   /* not every type is a number spec */
        return tn_fail(err, status,
                       "%u:%u sparsity is of float32, float16, bfloat16 and signed floats of 8 bits but "
                       "found %s (cast it first)", cast->keep, cast->of, type->name);
    if (status)
        return status;
    task->datatype = task->own;
    return TN_OK;
}

static void set_options(const making *m, tn_rescale_task *task)
{
    const tn_cast_rule *cast = m->rules->cast;
    const tn_scaling *s = m->source->scaling;
    task->options = cast->quantize;
    task->options.size = sizeof task->options;
    task->options.round = cast->options.round;
    task->options.nan = cast->options.nan;
    task->options.seed = cast->options.seed;
    task->cast = cast->options;
    task->cast.size = sizeof task->cast;
    if (s)
        task->options = (tn_quantize_options){ .size = sizeof task->options, .unpacked = s->unpacked,
                                             .rotation = s->rotation };
    task->kind = s ? TN_RESCALE_DEQUANTIZE : cast->is_virtual ? TN_RESCALE_VIRTUAL : TN_RESCALE_QUANTIZE;
    task->to = s ? cast->dtype : m->source->dtype;
}

static tn_status declare_scaled(making *m, const tn_rescale_task *task, const tn_scaled_shapes *shapes,
                                tn_error *err)
{
    tn_scaling *scaling = tn_arena_zalloc(m->arena, 1, sizeof *scaling);
    const char *text = tn_datatype_text(task->datatype);
    if (!scaling || !(scaling->datatype = tn_arena_text(m->arena, text, strlen(text))))
        return tn_fail_nomem(err);
    scaling->axis = -1;
    scaling->unpacked = task->options.unpacked;
    scaling->rotation = task->options.rotation;
    scaling->store = task->options.store;
    for (uint32_t i = 0; i < shapes->count; i++) {
        const tn_scaled_part *p = &shapes->parts[i];
        bool plain = i == 0 && scaling->unpacked;
        int64_t *shape = tn_arena_copy(m->arena, plain ? p->plain_shape : p->shape, p->rank * sizeof *shape);
        if (!shape)
            return tn_fail_nomem(err);
        m->parts[i] = (tn_part){ .role = p->role, .array = { plain ? p->plain_dtype : p->dtype, p->rank,
                                                             shape, NULL } };
        if (plain && scaling->store != TN_UNKNOWN)
            m->parts[i].array.dtype = scaling->store;
        if (tn_array_nbytes(&m->parts[i].array, &m->parts[i].nbytes))
            return tn_fail(err, TN_ERR_LIMIT, "too large for its datatype");
    }
    m->made->tensor.form = TN_FORM_SCALED;
    m->made->tensor.scaling = scaling;
    m->made->tensor.nparts = shapes->count;
    return TN_OK;
}

static tn_status declare_values(making *m, const tn_rescale_task *task, tn_error *err)
{
    m->made->tensor.form = TN_FORM_DENSE;
    m->made->tensor.scaling = NULL;
    m->made->tensor.nparts = 1;
    m->made->tensor.dtype = task->to;
    m->parts[0] = (tn_part){ .role = "data", .array = { task->to, m->source->rank, m->source->shape, NULL } };
    return tn_array_nbytes(&m->parts[0].array, &m->parts[0].nbytes)
               ? tn_fail(err, TN_ERR_LIMIT, "too large for its new type")
               : TN_OK;
}

static tn_status rescale(making *m, tn_error *err)
{
    tn_rescale_task *task = tn_arena_zalloc(m->arena, 1, sizeof *task);
    tn_scaled_shapes shapes;
    tn_status status = check_rescale(m, err);
    if (status || !task)
        return status ? status : tn_fail_nomem(err);
    *task = (tn_rescale_task){ .in = m->place->file, .tensor = m->source, .beside = m->place->beside,
                               .limit = m->place->max_bytes,
                               .tick = tick, .context = (void *)(uintptr_t)m->place };
    m->made->rescale = task;
    status = find_datatype(m, task, err);
    if (status)
        return status;
    set_options(m, task);
    status = tn_rescale_check(task, &shapes, err);
    if (status)
        return status;
    return task->kind == TN_RESCALE_QUANTIZE ? declare_scaled(m, task, &shapes, err)
                                             : declare_values(m, task, err);
}

/* ---- sparse tensors ---- */

/* Coordinates that are stored as they are, but with more bits where the output has no others. */
static tn_status widen_indices(making *m, tn_error *err)
{
    tn_part *indices = &m->parts[1];
    tn_dtype from = indices->array.dtype, to = m->place->index_type;
    bool wide = tn_dtype_get(from)->bits == tn_dtype_get(to)->bits;     /* no negative ones are let through */
    tn_cast_plan *plan = wide ? NULL : tn_arena_alloc(m->arena, sizeof *plan);
    maker *k = wide ? NULL : new_maker(m, from, to);
    if (wide)
        return TN_OK;
    if (!plan || !k)
        return tn_fail_nomem(err);
    tn_status status = tn_cast_plan_make(plan, to, from, TN_HOST_ORDER, NULL, err);
    if (status)
        return status;
    k->cast = plan;
    k->change.apply = apply_cast;
    m->made->index_change = &k->change;
    indices->array.dtype = to;
    return tn_array_nbytes(&indices->array, &indices->nbytes)
               ? tn_fail(err, TN_ERR_LIMIT, "its indices are too many")
               : TN_OK;
}

/* The values of a sparse tensor are cast one by one, by their number. */
static tn_status cast_entries(making *m, const tn_cast_plan **plans, tn_error *err)
{
    const tn_cast_rule *cast = m->rules->cast;
    if ((cast && cast->quantized) || m->rules->layout || m->rules->pad)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, tn_form_name(TN_FORM_DENSE),
                         "a sparse tensor has no scales, no order of its elements and no padding");
    m->how.rank = 1;
    m->how.order[0] = 0;
    m->how.shape[0] = m->parts[0].array.shape[0];
    tn_status status = TN_OK;
    if (!m->made->reform && m->place->index_type != TN_UNKNOWN && m->source->form == TN_FORM_COO)
        status = widen_indices(m, err);
    return !status && cast ? cast_elements(m, plans, err) : status;
}

/* A scaled tensor that stays one: its scales go along. */
static tn_status keep_scales(making *m, tn_error *err)
{
    tn_scaling *scaling = tn_arena_copy(m->arena, m->source->scaling, sizeof *scaling);
    if (!scaling)
        return tn_fail_nomem(err);
    scaling->axis = new_axis(m, scaling->axis);
    m->made->tensor.scaling = scaling;
    return TN_OK;
}

static tn_status choose_elements(making *m, const tn_cast_plan **plans, tn_error *err)
{
    const tn_tensor *t = m->source;
    const tn_cast_rule *cast = m->rules->cast;
    bool scaled = t->form == TN_FORM_SCALED && !tn_form_has_datatype(t),
         dense = m->made->tensor.form == TN_FORM_DENSE;
    tn_status status = TN_OK;
    if (tn_form_is_sparse(m->made->tensor.form))
        return cast_entries(m, plans, err);
    if (!scaled && !dense)
        return m->rules->cast || m->rules->layout || m->rules->pad
                   ? tn_fail(err, TN_ERR_UNSUPPORTED,
                             "expected a dense, sparse or scaled tensor but found form %s",
                             tn_quote_z(tn_tensor_form_name(t)).text)
                   : TN_OK;
    if (scaled)
        status = tn_read_zeros(m->place->file, t, m->arena, &m->zero, err);
    if (status)
        return status;
    if (scaled)
        return cast ? cast_codes(m, err) : keep_scales(m, err);
    return !cast ? TN_OK : cast->quantized ? quantize(m, err) : cast_elements(m, plans, err);
}

/* ---- all ---- */

/* Columns far apart are better taken many at a time. */
static bool lies_crosswise(const tn_part *p)
{
    const int64_t *stride = tn_stored_more_of(p)->stride;
    return stride && p->array.rank && stride[p->array.rank - 1] != 1;
}

/* Elements that get other places. */
static tn_status arrange(making *m, tn_error *err)
{
    tn_part *data = &m->parts[0];
    tn_arrange *how = tn_arena_copy(m->arena, &m->how, sizeof *how);
    if (!how)
        return tn_fail_nomem(err);
    how->change = m->made->change;
    how->to_bits = tn_dtype_get(data->array.dtype)->bits;
    m->made->tensor.shape = data->array.shape = how->shape;
    if (tn_arrange_has_padding(how)) {
        const tn_padded padded = { how->physical, m->rules->pad ? m->rules->pad->value : 0 };
        data->padded = tn_arena_copy(m->arena, &padded, sizeof padded);
        if (!data->padded)
            return tn_fail_nomem(err);
    }
    m->made->arrange = how;
    return TN_OK;
}

/* Most tensors stay where they are: what says where to is large. */
static tn_status settle_shape(making *m, tn_error *err)
{
    tn_part *data = &m->parts[0];
    bool stays = !is_moved(m) && !lies_crosswise(&m->source->parts[0]) && !tn_arrange_has_padding(&m->how);
    tn_status status = stays ? TN_OK : arrange(m, err);
    if (status)
        return status;
    if (tn_shape_nbytes(data->array.dtype, m->how.rank, m->how.physical, &data->nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "too large for its new type or padding");
    return TN_OK;
}

/* Its elements lie in order, and where they lie can be changed. */
static bool is_arranged(const making *m)
{
    tn_form form = m->made->tensor.form;
    return !m->made->reform && (form == TN_FORM_DENSE || form == TN_FORM_SCALED) &&
           !tn_form_has_datatype(&m->made->tensor) && tn_dtype_get(m->parts[0].array.dtype) != NULL;
}

/* Parts that a tensor may come to have. */
static uint32_t room_for(const tn_tensor *source, const tn_remake_rules *rules)
{
    const tn_cast_rule *cast = rules->cast;
    bool more = rules->form || (cast && (cast->quantized || cast->datatype || cast->of));
    return more && source->nparts < TN_MAX_PARTS ? TN_MAX_PARTS : source->nparts;
}

static tn_status remake(const tn_remake_place *place, const tn_tensor *source, const tn_remake_rules *rules,
                    const tn_cast_plan **plans, tn_remade *made, tn_error *err)
{
    making m = { .place = place, .source = source, .rules = rules, .arena = place->arena, .made = made };
    *made = (tn_remade){ .rules = *rules, .tensor = *source };
    made->tensor.parts = m.parts = tn_arena_zalloc(m.arena, room_for(source, rules), sizeof *m.parts);
    if (!m.parts)
        return tn_fail_nomem(err);
    /* streamed, so that checksums are seen; stored as the new file says */
    for (uint32_t k = 0; k < source->nparts; k++)
        m.parts[k] = (tn_part){ .role = source->parts[k].role, .array = source->parts[k].array,
                                .nbytes = source->parts[k].nbytes };
    if (is_rescaled(&m))
        return rescale(&m, err);
    tn_status status = choose_form(&m, err);
    if (!status)
        status = choose_order(&m, err);
    if (!status) {
        apply_order(&m);
        status = choose_elements(&m, plans, err);
    }
    if (status)
        return status;
    if (is_arranged(&m)) {
        status = tn_choose_padding(&made->tensor, rules->pad, m.zero, &m.how, err);
        return status ? status : settle_shape(&m, err);
    }
    if (made->change && tn_array_nbytes(&m.parts[0].array, &m.parts[0].nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "too large for its new type");
    return TN_OK;
}

tn_status tn_remake(const tn_remake_place *place, const tn_tensor *source, const tn_remake_rules *rules,
                    const tn_cast_plan **plans, tn_remade *made, tn_error *err)
{
    return tn_in_tensor(remake(place, source, rules, plans, made, err), source->name, err);
}
