/* pipeline/plan.c - a conversion as data: which tensors, stored how, in which pieces.
 *
 * select.c says which tensors and names, plan_tensor.c what becomes of each, run.c makes the pieces. */
#include "pipeline/plan.h"
#include "base/error.h"
#include "base/fenv.h"
#include "base/options.h"
#include "base/vector.h"
#include "pipeline/object_parts.h"
#include "store/kept.h"
#include "store/sparse.h"
#include "store/stream.h"

#include <stdlib.h>
#include <string.h>

/* ---- what becomes of each ---- */

/* What cannot be read cannot be changed either: nothing behind this meets a type that has no row. */
static tn_status check_parts(const tn_tensor *t, tn_error *err)
{
    for (uint32_t k = 0; k < t->nparts; k++)
        TN_TRY(tn_with_reason(tn_part_readable(t, &t->parts[k], err), TN_REASON_ONLY, NULL, err));
    return TN_OK;
}

/* Whether nothing becomes of a tensor, so that there is nothing to remember of it. */
static bool stays(const tn_view *v, const tn_tensor_rules *rules)
{
    bool ruled = rules->origin || rules->cast || rules->layout || rules->pad || rules->form;
    return !ruled && v->step == &tn_step_stored && !v->has_wide_indices;
}

static bool is_worth_keeping(const tn_view *v)
{
    while (v->step->apply && v->input)
        v = v->input;
    return v->step == &tn_step_form && !tn_form_is_large(v);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Where a dense tensor of this type and shape is remembered. */
static size_t recent_slot(const tn_plan *c, const tn_tensor *t)
{
    uint64_t h = t->dtype;
    for (uint32_t i = 0; i < t->rank; i++)
        h = h * 31 + (uint64_t)t->shape[i];
    return (size_t)(h * UINT64_C(0x9e3779b97f4a7c15) >> 32) % (sizeof c->recent / sizeof c->recent[0]);
}

static bool is_simple(const tn_tensor *t)
{
    return t->form == TN_FORM_DENSE && t->nparts == 1 && !t->parts[0].padded &&
           tn_part_is_range(&t->parts[0]);
}

/* The plan of a tensor that the same becomes of, or NULL. */
static tn_tensor_plan *find_alike(const tn_plan *c, const tn_tensor *t, const tn_tensor_rules *rules)
{
    size_t slot = recent_slot(c, t);
    const tn_tensor *other = c->recent[slot].source;
    if (!other || !is_simple(t) || memcmp(rules, &c->recent[slot].plan->rules, sizeof *rules) != 0)
        return NULL;
    bool alike = t->dtype == other->dtype && t->parts[0].array.dtype == other->parts[0].array.dtype &&
                 tn_same_shape(t->rank, t->shape, other->rank, other->shape) &&
                 same_text(t->layout, other->layout) &&
                 tn_stored_of(t->parts)->checksum == tn_stored_of(other->parts)->checksum;
    return alike ? c->recent[slot].plan : NULL;
}

/* The plan of a tensor whose values do not count serves others too. */
static void remember(tn_plan *c, const tn_tensor *t, tn_tensor_plan *plan)
{
    size_t slot = recent_slot(c, t);
    if (is_simple(t) && !plan->kept && !plan->is_formed && !plan->rules.origin) {
        c->recent[slot].source = t;
        c->recent[slot].plan = plan;
    }
}

static tn_status plan_tensor(tn_plan *c, const tn_tensor *t, size_t i, tn_error *err)
{
    tn_tensor_plan plan = { .first = i };
    tn_view *view = NULL;
    tn_status status = check_parts(t, err);
    if (!status)
        status = tn_select_rules(&c->selection, i, &plan.rules, err);
    if (status || tn_plan_is_plain(t, &plan.rules) || (c->plans[i] = find_alike(c, t, &plan.rules)))
        return status;
    tn_arena *arena = plan.rules.form || plan.rules.origin ? &c->kept : &c->scratch;
    const tn_arena_mark mark = *arena;
    status = tn_plan_view(&c->place, t, &plan.rules, arena, &view, err);
    if (!status && !stays(view, &plan.rules)) {
        status = tn_plan_describe(view, &c->place, &c->arena, &plan, err);
        if (!status && is_worth_keeping(view))
            plan.kept = view;
        if (!status)
            c->plans[i] = tn_arena_copy(&c->arena, &plan, sizeof plan);
        if (!status && !c->plans[i])
            status = tn_fail_nomem(err);
        if (!status)
            remember(c, t, c->plans[i]);
    }
    if (!plan.kept || status) {
        tn_view_free(view);
        tn_arena_rewind(arena, mark);
    }
    return status;
}

/* Whether its plan was made for another tensor. */
static bool is_like_another(const tn_plan *c, size_t i)
{
    return c->plans[i] && c->plans[i]->first != i;
}

/* ---- how each is stored ---- */

static tn_status choose_part(const tn_plan *c, const tn_tensor *t, const tn_part *p, tn_stored_as *how,
                             tn_error *err)
{
    const tn_format_info *info = &c->writer->format->info;
    const tn_stored_info s = tn_stored_summary(t, p);
    *how = (tn_stored_as){ c->create.encoding, c->create.checksum };
    const tn_format *format = c->writer->format;
    if (c->o.encoding == TN_KEEP)
        how->encoding = info->compresses && !format->archive_codec ? s.encoding : TN_ENCODING_RAW;
    const tn_codec *codec = tn_codec_of(how->encoding);
    if (codec && codec->decode && (!codec->encode || !tn_format_takes(format, codec)))
        how->encoding = tn_codec_usual()->id;   /* what is compressed stays so... */
    if (c->o.checksum == TN_KEEP)
        how->checksum = info->checksums ? s.checksum : TN_CHECKSUM_NONE;
    if (how->checksum == TN_CHECKSUM_CRC32)
        how->checksum = TN_CHECKSUM_CRC32C;     /* ...and what has a checksum */
    if (how->checksum == TN_CHECKSUM_UNKNOWN && tn_stored_more_of(p)->sums_file)
        how->checksum = TN_CHECKSUM_NONE;       /* it is not that of the data */
    if (how->checksum == TN_CHECKSUM_UNKNOWN)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_CHECKSUM, NULL,
                         "its checksum %s cannot be computed anew: choose another kind",
                         tn_quote_z(s.checksum_text).text);
    return TN_OK;
}

/* A tensor as it is to be declared. */
typedef struct declaration {
    tn_tensor    tensor;
    tn_part      parts[TN_MAX_PARTS];   /* of one that stays as it is */
    tn_stored_as how[TN_MAX_PARTS];
} declaration;

/* Of tensor i, once it is planned.  Cannot fail a second time. */
static tn_status declare(const tn_plan *c, size_t i, declaration *d, tn_error *err)
{
    const tn_tensor *t = c->walk.tensors[i];
    tn_tensor *new = &d->tensor;
    tn_status status = TN_OK;
    *new = c->plans[i] ? c->plans[i]->tensor : *t;
    new->name = tn_selected_name(&c->selection, i);
    for (uint32_t k = 0; k < t->nparts && !c->plans[i]; k++)
        d->parts[k] = (tn_part){ .role = t->parts[k].role, .array = t->parts[k].array,
                                 .nbytes = t->parts[k].nbytes };
    new->parts = c->plans[i] ? new->parts : d->parts;
    for (uint32_t k = 0; k < new->nparts && !status; k++) {
        status = choose_part(c, t, &t->parts[k < t->nparts ? k : 0], &d->how[k], err);
        if (new->parts[k].padded && c->o.encoding == TN_KEEP)
            d->how[k].encoding = TN_ENCODING_RAW;
    }
    return tn_in_tensor(status, t->name, err);
}

/* ---- how much is kept ---- */

/* What compressed data is decoded into, if that is written or is in a spill meanwhile. */
static void add_decoded(const tn_plan *c, size_t i, tn_kept *kept)
{
    const tn_tensor *t = c->walk.tensors[i];
    const tn_tensor_plan *plan = c->plans[i];
    bool all = plan && plan->makes_parts;
    declaration d;
    if (!all)
        declare(c, i, &d, NULL);
    for (uint32_t k = 0; k < t->nparts; k++) {
        bool compressed = !all && k < d.tensor.nparts && d.how[k].encoding != TN_ENCODING_RAW;
        if (!compressed || (plan && plan->is_made && k == 0))
            tn_kept_add_part(kept, t, &t->parts[k]);
    }
}

/* What becomes of a tensor in another form, which may be sparse and compressed at once. */
static void add_formed(const tn_plan *c, size_t i, tn_kept *kept)
{
    const tn_tensor *made = &c->plans[i]->tensor;
    uint64_t decoded = 0;
    for (uint32_t k = 0; k < made->nparts; k++)
        decoded += made->parts[k].nbytes;
    tn_kept_add_as(kept, c->walk.tensors[i], decoded);
}

/* All that a tensor is made of, unless it was counted for another. */
static void add_sources(const tn_plan *c, const tn_origin *o, bool *counted, tn_kept *kept)
{
    for (uint32_t i = 0; i < o->ninputs; i++)
        add_sources(c, o->inputs[i], counted, kept);
    bool *before = o->source ? &counted[o->source - c->in->tensors] : NULL;
    for (uint32_t k = 0; before && !*before && k < o->source->nparts; k++)
        tn_kept_add_part(kept, o->source, &o->source->parts[k]);
    if (before)
        *before = true;
}

static tn_status check_kept(const tn_plan *c, tn_error *err)
{
    tn_kept kept = { .max_bytes = c->o.max_bytes };
    bool *counted = calloc(c->in->count + 1, sizeof *counted);
    TN_NEED(counted, err);
    for (size_t i = 0; i < c->count; i++) {
        const tn_tensor_plan *plan = c->plans[i];
        if (plan && plan->is_formed && plan->makes_parts)
            add_formed(c, i, &kept);
        else if (plan && plan->rules.origin)
            add_sources(c, plan->rules.origin, counted, &kept);
        else
            add_decoded(c, i, &kept);
    }
    free(counted);
    return tn_kept_check(&kept, err);
}

/* What becomes of the next tensor. */
static tn_status choose_next(tn_plan *c, tn_error *err)
{
    size_t i = c->count;
    declaration d;
    TN_TRY(plan_tensor(c, c->walk.tensors[i], i, err));
    c->count++;
    return is_like_another(c, i) ? TN_OK : declare(c, i, &d, err);
}

static tn_status choose_tensors(tn_plan *c, tn_error *err)
{
    c->place = (tn_plan_place){
        .view = { .file = c->in, .beside = c->out_path, .walk = &c->walk, .max_bytes = c->o.max_bytes },
        .arena = &c->arena,
        .index_type = c->writer->format->index_type, .reports = c->o.quantized != NULL,
        .counts = c->o.lost || c->o.strict,
        .names_steps = c->o.plan != NULL,
    };
    TN_TRY(c->o.metadata_from ? tn_open(c->o.metadata_from, NULL, &c->other, err) : TN_OK);
    c->selection.other = c->other;
    c->selection.to = c->writer->format;
    TN_TRY(tn_select(&c->selection, c->in, &c->o, &c->walk, &c->arena, err));
    c->plans = calloc(c->walk.count + 1, sizeof *c->plans);     /* pages of plain tensors stay untouched */
    tn_status status = c->plans ? TN_OK : tn_fail_nomem(err);
    while (c->count < c->walk.count && !status)
        status = choose_next(c, err);
    if (!status)
        status = tn_select_check(&c->selection, err);
    return status ? status : check_kept(c, err);
}

/* What is of a format that has its suffix in common with another stays so, unless a format was named. */
static void keep_format(tn_plan *c)
{
    const tn_format *old = c->in->format, *new = c->writer->format;
    declaration d;
    if (c->create.format || c->count != 1 || !old->keeps || strcmp(old->info.suffix, new->info.suffix) != 0)
        return;
    declare(c, 0, &d, NULL);
    if (old->keeps(&d.tensor))
        c->writer->format = old;
}

/* ---- ties ---- */

static tn_status same_data(const tn_plan *c, const tn_part *a, const tn_part *b, bool *same, tn_error *err)
{
    tn_stream x = { 0 }, y = { 0 };
    const tn_stream_wish both[] = { { &x, c->in, NULL, a }, { &y, c->in, NULL, b } };
    tn_status status = tn_stream_reserve(both, 2, err);
    if (!status)
        status = tn_stream_open(&x, c->in, NULL, a, 0, a->nbytes, TN_CHECKSUM_NONE, err);
    if (!status)
        status = tn_stream_open(&y, c->in, NULL, b, 0, b->nbytes, TN_CHECKSUM_NONE, err);
    *same = a->nbytes == b->nbytes;
    while (!status && *same) {
        const uint8_t *p, *q;
        size_t n, m;
        status = tn_stream_next(&x, &p, &n, err);
        if (!status)
            status = tn_stream_next(&y, &q, &m, err);
        if (status || !n)
            break;
        *same = n == m && memcmp(p, q, n) == 0;     /* windows are cut alike */
    }
    tn_stream_free(&x);
    tn_stream_free(&y);
    return status;
}

/* Two parts that are decoded alike from the very same bytes. */
static bool same_range(const tn_part *x, const tn_part *y)
{
    const tn_stored *a = tn_stored_of(x), *b = tn_stored_of(y);
    return !tn_stored_more_of(x)->stride && !tn_stored_more_of(y)->stride && a->offset == b->offset &&
           a->size == b->size && a->shard == b->shard && a->encoding == b->encoding && a->order == b->order;
}

static bool same_rules(const tn_tensor_plan *a, const tn_tensor_plan *b)
{
    return a && b && a->rules.cast == b->rules.cast && a->rules.layout == b->rules.layout &&
           a->rules.pad == b->rules.pad && a->rules.form == b->rules.form;
}

/* Of all its parts, not one by one. */
static bool is_made_anew(const tn_tensor_plan *plan)
{
    return plan && plan->is_new;
}

/* Whether elements of the first part change. */
static bool is_changed(const tn_plan *c, size_t i)
{
    const tn_tensor_plan *plan = c->plans[i];
    return plan && (plan->is_made || plan->tensor.parts[0].array.dtype !=
                                         c->walk.tensors[i]->parts[0].array.dtype || plan->rules.cast);
}

/* Whether tensor k is stored like the first part of another. */
static bool stored_alike(const tn_plan *c, size_t k, const tn_stored_as *how)
{
    declaration other;
    declare(c, k, &other, NULL);
    return other.how->encoding == how->encoding && other.how->checksum == how->checksum;
}

/* Whether b, which is declared as `new`, may do without its own bytes and the check of its own checksum. */
static bool may_tie(const tn_plan *c, size_t k, size_t i, const tn_tensor *new, const tn_stored_as *how)
{
    const tn_tensor *a = c->walk.tensors[k], *b = c->walk.tensors[i];
    const char *x = tn_stored_of(a->parts)->checksum_text, *y = tn_stored_of(b->parts)->checksum_text;
    bool changed = is_changed(c, i) || is_changed(c, k);
    if (is_made_anew(c->plans[i]) || is_made_anew(c->plans[k]))
        return false;
    /* Changed, the bits that fill the last byte of a packed tensor are gone, and places count: the shapes
     * must be the same. */
    if (changed && (!same_rules(c->plans[k], c->plans[i]) || !same_text(a->layout, b->layout) ||
                    a->rank != b->rank ||
                    (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)))
        return false;
    return a->nparts == 1 && b->nparts == 1 && new->nparts == 1 && a->dtype == b->dtype &&
           a->parts[0].array.dtype == b->parts[0].array.dtype && (!y || (x && strcmp(x, y) == 0)) &&
           stored_alike(c, k, how);
}

static int by_address(const void *key, const void *item)
{
    const tn_tensor *a = key, *b = *(const tn_tensor *const *)item;
    return a < b ? -1 : a > b;
}

/* Which of the first n chosen tensors it is, or n. */
static size_t position_of(const tn_plan *c, const tn_tensor *t, size_t n)
{
    const tn_tensor **found = bsearch(t, c->walk.tensors, n, sizeof *found, by_address);
    return found ? (size_t)(found - c->walk.tensors) : n;
}

/* The new name of the tensor that tensor i, declared as `new`, is still tied to, or NULL.  Where
 * the input shares the bytes it is certain; a mere note is believed only if
 * the bytes agree. */
static tn_status find_tie(const tn_plan *c, size_t i, tn_tensor *new, const tn_stored_as *how,
                          tn_error *err)
{
    const tn_tensor *t = c->walk.tensors[i], *other = t->tied ? tn_file_find(c->in, t->tied) : NULL;
    size_t k = other ? position_of(c, other, i) : i;
    new->tied = NULL;
    if (k == i || !may_tie(c, k, i, new, how))
        return TN_OK;
    const tn_part *a = &other->parts[0], *b = &t->parts[0];
    bool same = same_range(a, b);
    tn_status status = same ? TN_OK : same_data(c, a, b, &same, err);
    if (status)
        return tn_in_file(status, c->in_path, err);
    new->tied = same ? tn_selected_name(&c->selection, k) : NULL;
    return TN_OK;
}

static tn_status in_output(const tn_plan *c, tn_status status, tn_error *err)
{
    return tn_in_file(status, c->out_path, err);
}

/* Whether nothing but its name tells a tensor from the first one of its plan. */
static bool is_repeated(const tn_plan *c, size_t i)
{
    const tn_tensor *t = c->walk.tensors[i];
    return is_like_another(c, i) && !t->nmeta && !t->tied && !tn_file_properties(c->in, t) &&
           tn_writer_repeats(c->writer, c->plans[i]->first);
}

/* Scales that are found for each tensor that shares a plan. */
static tn_status copy_data(tn_plan *c, declaration *d, tn_error *err)
{
    for (uint32_t k = 0; k < d->tensor.nparts; k++) {
        d->parts[k] = d->tensor.parts[k];
        const void *data = d->parts[k].data;
        if (data)
            TN_NEED(d->parts[k].data = tn_arena_copy(&c->arena, data, (size_t)d->parts[k].nbytes), err);
    }
    d->tensor.parts = d->parts;
    return TN_OK;
}

static tn_status add_tensor(tn_plan *c, size_t i, tn_error *err)
{
    declaration d;
    const tn_properties *properties;
    if (is_repeated(c, i))
        return in_output(c, tn_writer_add_like(c->writer, c->plans[i]->first,
                                               tn_selected_name(&c->selection, i), err), err);
    declare(c, i, &d, NULL);
    if (is_like_another(c, i))
        TN_TRY(copy_data(c, &d, err));
    TN_TRY(find_tie(c, i, &d.tensor, d.how, err));
    TN_TRY(tn_in_file(tn_select_meta(&c->selection, i, &d.tensor, &properties, err), c->in_path, err));
    TN_TRY(in_output(c, tn_writer_add_as(c->writer, &d.tensor, d.how, err), err));
    return tn_writer_set_properties(c->writer, properties, err);
}

/* ---- all ---- */

static tn_status add_all(tn_plan *c, tn_error *err)
{
    size_t entries = 0;
    TN_TRY(in_output(c, tn_select_file_meta(&c->selection, c->writer, err), err));
    for (size_t i = 0; i < c->count; i++)
        entries += c->plans[i] ? c->plans[i]->tensor.nparts : c->walk.tensors[i]->nparts;
    TN_TRY(tn_writer_expect(c->writer, c->count, entries, err));
    for (size_t i = 0; i < c->count; i++)
        TN_TRY(add_tensor(c, i, err));
    return in_output(c, tn_writer_plan(c->writer, err), err);
}

static tn_status report_one(const tn_plan *c, size_t i, tn_error *err)
{
    size_t nsources;
    const tn_tensor **sources = tn_selected_sources(&c->selection, i, &nsources);
    declaration d;
    declare(c, i, &d, NULL);
    const tn_tensor new = d.tensor;
    const tn_part *first = new.parts;
    const tn_out_entry *e = &c->writer->entries[c->writer->first_entry[i]];
    tn_planned p = {
        .source = c->walk.tensors[i], .name = new.name, .form = new.form, .rank = new.rank,
        .shape = new.shape, .layout = new.layout, .encoding = d.how->encoding, .checksum = d.how->checksum,
        .dtype = new.nparts == 1 || new.scaling ? first->array.dtype : new.dtype,
        .datatype = new.scaling ? new.scaling->datatype : NULL,
        .physical = first->padded ? first->padded->shape : NULL, .file = e->file,
        .offset = e->offset == TN_UNPLACED ? UINT64_MAX : e->offset,
        .sources = sources, .nsources = nsources, .steps = c->plans[i] ? c->plans[i]->steps : "",
    };
    for (uint32_t k = 0; k < new.nparts; k++)
        p.nbytes += new.parts[k].nbytes;
    if (sources)
        c->o.plan(c->o.context, &p);
    free(sources);
    return sources ? TN_OK : tn_fail_nomem(err);
}

/* What a thread has: windows of each step, or a small tensor whole; and while it encodes, input, output and
 * the encoder. */
static uint64_t thread_memory(const tn_plan *c)
{
    const tn_codec *codec = NULL;
    int level = c->create.level;
    for (size_t i = 0; c->writer && i < c->writer->count && !codec; i++)
        if (c->writer->entries[i].encoding != TN_ENCODING_RAW)
            codec = tn_codec_of(c->writer->entries[i].encoding);
    uint64_t windows = 2 * TN_SPAN;
    return codec && codec->encode_memory ? windows + 2 * TN_ENCODE_WHOLE_MAX + codec->encode_memory(level)
                                         : windows;
}

uint64_t tn_plan_memory(const tn_plan *c, unsigned jobs)
{
    enum { TENSOR = 1450 };     /* docs/limits.md */
    if (!c)
        return 0;
    return (uint64_t)tn_file_count(c->in) * TENSOR + tn_jobs_for(jobs, UINT64_MAX) * thread_memory(c);
}

static tn_status report_plan(const tn_plan *c, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; c->o.plan && i < c->count && !status; i++)
        status = report_one(c, i, err);
    return status;
}

/* Entries that are copied as they are: their indices are those of the shape. */
static tn_status check_indices(const tn_plan *c, const tn_piece *piece, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = piece->first; i < piece->first + piece->count && !status; i++)
        for (uint32_t k = 0; k < c->walk.tensors[i]->nparts && !status; k++)
            if (!(c->plans[i] && c->plans[i]->makes_parts) &&
                tn_is_sparse_index(c->walk.tensors[i], &c->walk.tensors[i]->parts[k]))
                status = tn_sparse_check(c->in, c->walk.tensors[i], &c->walk.tensors[i]->parts[k], err);
    return tn_in_file(status, c->in_path, err);
}

/* Stored bytes that were read: what is tied once. */
static uint64_t bytes_read(const tn_plan *c)
{
    const tn_writer *w = c->writer;
    uint64_t total = 0;
    for (size_t i = 0; i < w->count; i++) {
        const tn_tensor *t = c->walk.tensors[w->entries[i].tensor];
        if (w->entries[i].tied == TN_NOT_TIED && !w->entries[i].data &&
            !is_made_anew(c->plans[w->entries[i].tensor]))
            total += tn_stored_summary(t, &t->parts[w->entries[i].part]).bytes;
    }
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->walk.tensors[i]->nparts && is_made_anew(c->plans[i]); k++)
            total += tn_stored_summary(c->walk.tensors[i], &c->walk.tensors[i]->parts[k]).bytes;
    return total;
}

/* ---- pieces ---- */

TN_RELRO uint64_t tn_piece_bytes = (uint64_t)64 << 20;

/* What making a tensor costs: bytes written and read. */
static tn_piece cost_of(const tn_plan *c, size_t i)
{
    const tn_writer *w = c->writer;
    tn_piece p = { .first = (uint32_t)i, .count = 1 };
    for (size_t k = tn_writer_first(w, i); k < tn_writer_first(w, i + 1); k++)
        p.written += tn_run_moves(&w->entries[k]) ? w->entries[k].nbytes : 0;
    for (uint32_t k = 0; k < c->walk.tensors[i]->nparts && p.written; k++)
        p.read += tn_stored_summary(c->walk.tensors[i], &c->walk.tensors[i]->parts[k]).bytes;
    return p;
}

typedef struct pieces {
    tn_piece *list;
    size_t    count, cap;
} pieces;

static tn_status add_piece(pieces *all, const tn_piece *piece, tn_error *err)
{
    if (!TN_GROW(all->list, all->count, all->cap))
        return tn_fail_nomem(err);
    all->list[all->count++] = *piece;
    return TN_OK;
}

/* A large tensor: by blocks, if it has any that can be made alone. */
static tn_status add_large(const tn_plan *c, pieces *all, const tn_piece *whole, tn_error *err)
{
    tn_piece *list = NULL;
    size_t n = 0;
    tn_status status = tn_run_cut(&c->run, whole, c->o.piece_size, &list, &n, err);
    for (size_t i = 0; i < n && !status; i++)
        status = add_piece(all, &list[i], err);
    free(list);
    return status || n ? status : add_piece(all, whole, err);
}

/* To the last piece, or a new one. */
static tn_status add_small(const tn_plan *c, pieces *all, const tn_piece *one, tn_error *err)
{
    const tn_out_entry *entries = c->writer->entries;
    const uint32_t *first = c->writer->first_entry;
    tn_piece *last = all->count ? &all->list[all->count - 1] : NULL;
    if (!last || last->nblocks || last->written + one->written > c->o.piece_size ||
        entries[first[last->first]].file != entries[first[one->first]].file)
        return add_piece(all, one, err);
    last->count++;
    last->written += one->written;
    last->read += one->read;
    return TN_OK;
}

static tn_status make_pieces(tn_plan *c, tn_error *err)
{
    pieces all = { 0 };
    uint64_t part = tn_is_url(c->out_path) ? tn_object_part_bytes(tn_object_bytes(c->writer)) : 0;
    tn_status status = tn_run_place(c->writer, err);
    if (part > TN_OBJECT_PART && part > c->o.piece_size)
        c->o.piece_size = part;     /* a piece that is smaller than a part could not be sent alone */
    for (size_t i = 0; i < c->count && !status; i++) {
        const tn_piece one = cost_of(c, i);
        status = one.written > c->o.piece_size ? add_large(c, &all, &one, err) : add_small(c, &all, &one,
                                                                                           err);
    }
    c->run.pieces = all.list;
    c->run.npieces = all.count;
    return status;
}

tn_status tn_fail_piece(tn_error *err, size_t i, size_t count)
{
    if (count == 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "there is no piece %zu: nothing is to be made", i);
    return tn_fail(err, TN_ERR_ARGUMENT, "there is no piece %zu: the last of %zu is %zu", i, count,
                   count - 1);
}

size_t tn_plan_count(const tn_plan *plan)
{
    return plan ? plan->run.npieces : 0;
}

tn_status tn_plan_piece(const tn_plan *plan, size_t i, tn_plan_piece_info *info, tn_error *err)
{
    size_t size;
    TN_GIVEN(plan, "a plan", err);
    TN_GIVEN(info, "a place for the piece", err);
    TN_TRY(tn_check_size(TN_SIZED(tn_plan_piece_info, bytes_read), info, &size, err));
    if (i >= plan->run.npieces)
        return tn_fail_piece(err, i, plan->run.npieces);
    if (!plan->writer)
        return tn_fail(err, TN_ERR_ARGUMENT, "it is finished already");
    const tn_piece *p = &plan->run.pieces[i];
    const tn_writer *w = plan->writer;
    const tn_out_entry *e = &w->entries[w->first_entry[p->first]];
    bool several = tn_writer_first(w, (size_t)p->first + 1) - w->first_entry[p->first] > 1;
    uint64_t before = 0;
    for (size_t k = i; p->block && !several && k && plan->run.pieces[k - 1].first == p->first; k--)
        before += plan->run.pieces[k - 1].written;
    const tn_plan_piece_info all = {
        .size = info->size, .file = e->file, .first_tensor = p->first, .tensors = p->count,
        .first_block = p->block, .blocks = p->nblocks, .bytes_written = p->written, .bytes_read = p->read,
        .offset = e->offset == TN_UNPLACED ? UINT64_MAX : e->offset + before,
    };
    memcpy(info, &all, size < sizeof all ? size : sizeof all);
    return TN_OK;
}

/* ---- making ---- */

static tn_status check_lost(const tn_plan *c, tn_error *err)
{
    const char *lost = c->in->left_out;
    if (!lost && !c->writer->format->keeps_properties)
        lost = c->in->left_out_property;
    if (!lost || c->create.drop_metadata)
        return TN_OK;
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                     "it has %s, which the new file cannot hold", tn_quote_z(lost).text);
}

static tn_status make(tn_plan *c, int fd, tn_error *err)
{
    TN_TRY(in_output(c, tn_writer_new(c->out_path, &c->create, c->o.dry_run, &c->writer, err), err));
    c->writer->fd = fd >= 0 ? fd : c->writer->fd;
    c->writer->reading = c->in;
    TN_TRY(tn_in_file(check_lost(c, err), c->in_path, err));
    TN_TRY(tn_in_file(choose_tensors(c, err), c->in_path, err));
    keep_format(c);
    TN_TRY(add_all(c, err));
    c->quiet = c->place;
    c->quiet.view.walk = NULL;
    c->run = (tn_run){ .in = c->in, .out = c->writer, .source = c->walk.tensors, .plans = c->plans,
                       .selection = &c->selection, .place = &c->place, .quiet = &c->quiet,
                       .in_path = c->in_path, .walk = &c->walk, .quantized = c->o.quantized,
                       .lost = c->o.lost, .strict = c->o.strict, .context = c->o.context,
                       .part = -1 };
    TN_TRY(make_pieces(c, err));
    c->walk.total = tn_run_bytes(&c->run);
    return report_plan(c, err);
}

/* Runs in the default floating-point environment: not all of the work is done by a pool, which would see
 * to it.  An error is that of a file that has changed, if one has. */
typedef struct calling {
    tn_fenv  callers;
    tn_error why;
} calling;

static void enter(calling *call)
{
    call->why = (tn_error){ .offset = TN_NO_OFFSET };
    tn_fenv_enter(&call->callers);
}

static tn_status leave(calling *call, const tn_plan *c, tn_status status, tn_error *err)
{
    if (status)
        status = tn_file_settle_named(c->in, status, &call->why);
    tn_fenv_leave(&call->callers);
    if (status && err)
        *err = call->why;
    return status;
}

tn_status tn_plan_make_into(const tn_file *file, const char *path, int fd, const tn_convert_options *options,
                            tn_plan **plan, tn_error *err)
{
    tn_plan *c = calloc(1, sizeof *c);
    calling call;
    if (!c)
        return tn_fail_nomem(err);
    c->in = file;
    c->in_path = tn_file_path(file);
    c->out_path = tn_arena_text(&c->arena, path, strlen(path));
    tn_status status = tn_plan_take_options(c, options, err);
    if (status || !c->out_path) {
        tn_plan_free(c);
        return status ? status : tn_fail_nomem(err);
    }
    c->o.max_bytes = c->o.max_bytes ? c->o.max_bytes : file->max_bytes;
    c->walk = (tn_walk){ .jobs = c->create.jobs, .progress = c->o.progress, .context = c->o.context };
    enter(&call);
    status = leave(&call, c, make(c, fd, &call.why), err);
    if (status)
        tn_plan_free(c);
    else
        *plan = c;
    return status;
}

tn_status tn_plan_make(const tn_file *file, const char *path, const tn_convert_options *options,
                       tn_plan **plan, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(plan, "a place for the plan", err);
    return tn_plan_make_into(file, path, -1, options, plan, err);
}

/* ---- running ---- */

static tn_status run_some(tn_plan *c, size_t first, size_t n, tn_error *err)
{
    if (c->o.dry_run)
        return TN_OK;
    for (size_t i = first; i < first + n; i++)
        if (!c->run.pieces[i].is_made)
            TN_TRY(check_indices(c, &c->run.pieces[i], err));
    return tn_run_pieces(&c->run, first, n, err);
}

tn_status tn_plan_run_some(tn_plan *c, size_t first, size_t n, tn_error *err)
{
    calling call;
    enter(&call);
    return leave(&call, c, run_some(c, first, n, &call.why), err);
}

tn_status tn_plan_run_apart(tn_plan *c, size_t i, int part, tn_error *err)
{
    calling call;
    enter(&call);
    c->run.part = part;
    tn_status status = check_indices(c, &c->run.pieces[i], &call.why);
    if (!status)
        status = tn_run_apart(&c->run, i, &call.why);
    c->run.part = -1;
    return leave(&call, c, status, err);
}

tn_status tn_plan_run(tn_plan *c, size_t i, tn_error *err)
{
    TN_GIVEN(c, "a plan", err);
    if (i >= c->run.npieces || !c->writer)
        return tn_fail_piece(err, i, c->run.npieces);
    return tn_plan_run_some(c, i, 1, err);
}

static tn_status check_made(const tn_plan *c, tn_error *err)
{
    for (size_t i = 0; i < c->run.npieces && !c->o.dry_run; i++)
        if (!c->run.pieces[i].is_made)
            return tn_fail(err, TN_ERR_ARGUMENT, "piece %zu of %zu is missing", i, c->run.npieces);
    return c->writer ? TN_OK : tn_fail(err, TN_ERR_ARGUMENT, "it is finished already");
}

void tn_plan_result(const tn_plan *c, tn_convert_result *result)
{
    *result = (tn_convert_result){ .tensors = c->count, .bytes_in = bytes_read(c) };
}

static tn_status finish(tn_plan *c, tn_convert_result *result, tn_error *err)
{
    TN_TRY(in_output(c, tn_writer_seal(c->writer, err), err));
    TN_TRY(tn_file_settle_named(c->in, TN_OK, err));        /* before anything is published */
    if (result) {
        tn_plan_result(c, result);
        result->bytes_out = tn_writer_total(c->writer);
    }
    if (c->o.dry_run)
        return TN_OK;
    tn_writer *done = c->writer;
    const tn_format *to = done->format;
    c->writer = NULL;
    TN_TRY(in_output(c, tn_writer_publish(done, err), err));
    tn_file_note_left(c->in, to, c->create.note, c->create.note_context);
    return TN_OK;
}

tn_status tn_plan_finish(tn_plan *c, tn_convert_result *result, tn_error *err)
{
    calling call;
    TN_GIVEN(c, "a plan", err);
    TN_TRY(check_made(c, err));
    enter(&call);
    return leave(&call, c, finish(c, result, &call.why), err);
}

void tn_plan_free(tn_plan *c)
{
    if (!c)
        return;
    tn_writer_abandon(c->writer);
    for (size_t i = 0; c->plans && i < c->count; i++) {
        if (c->plans[i] && !is_like_another(c, i))
            tn_view_free(c->plans[i]->kept);
    }
    for (size_t i = 0; i < c->run.npieces; i++) {
        tn_spill_free(&c->run.pieces[i].waiting);
        tn_buf_free(&c->run.pieces[i].sent);
        free(c->run.pieces[i].blocks);
    }
    free(c->run.pieces);
    tn_selection_end(&c->selection);
    free(c->plans);
    tn_walk_end(&c->walk);
    tn_arena_free(&c->scratch);
    tn_arena_free(&c->kept);
    tn_arena_free(&c->arena);
    tn_close(c->own);
    tn_close(c->other);
    free(c);
}
