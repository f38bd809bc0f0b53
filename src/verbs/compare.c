/* verbs/compare.c - two open files, tensor by tensor. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "verbs/metrics.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "tensor/form.h"
#include "cast/summary.h"
#include "pipeline/values.h"
#include "pipeline/walk.h"

#include <stdlib.h>
#include <string.h>

/* Two tensors of one name, one that has no partner, or the files' metadata. */
typedef struct pair {
    tn_difference difference;   /* what there is to report */
    tn_distance   distance;
    bool          by_value;     /* one has scales: values are compared, not parts */
    tn_value_plan plans[2];     /* by value: how to read them */
    uint64_t      equal_bytes;  /* of items with equal chunks, which are read again if the pair differs */
} pair;

/* One side of an item: what is read, and what is left of its window. */
typedef struct side {
    const tn_file       *file;
    const tn_tensor     *tensor;
    const tn_part       *part;
    const tn_value_plan *plan;  /* of its values, or NULL: the part's elements are compared */
    tn_dtype             type;  /* of what is compared */
    unsigned             bits;
    tn_value_stream      values;
    const uint8_t       *window;
    size_t               size;
} side;

/* The scratch of a worker. */
typedef struct sides {
    side       side[2];
    tn_limiter limiter;         /* of B, where it is scaled by a datatype */
    uint64_t   left;            /* elements still to come */
} sides;

/* Elements [at, at + n) of both. */
typedef struct chunk {
    const uint8_t *bytes[2];
    uint64_t       at;
    size_t         n;
} chunk;

/* The result of an item. */
typedef struct outcome {
    tn_distance distance;
    bool        some_equal;     /* it has chunks of equal bytes, whose signal is not included */
} outcome;

/* Chunks of equal bytes are skipped at the speed of memory. Only if the tensor differs elsewhere are their
 * values needed, for the signal: then its items are read again. */
typedef struct comparison {
    const tn_file *files[2];
    tn_compare_options o;
    pair          *pairs;
    size_t         npairs;
    tn_walk        walk;        /* its total grows with what is to be read again */
    tn_items       items;       /* ranges of elements; the subjects are pairs; marked: has equal chunks */
    bool           again;       /* the second time: only equal chunks count */
    tn_arena       arena;
    tn_kept        held[2];     /* scales of each file in it */
} comparison;

/* ---- metadata ---- */

static int by_key(const void *x, const void *y)
{
    const tn_meta *a = *(const tn_meta *const *)x, *b = *(const tn_meta *const *)y;
    return strcmp(a->key, b->key);
}

static const tn_meta **sorted_meta(const tn_meta *meta, size_t n)
{
    const tn_meta **list = malloc((n ? n : 1) * sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = &meta[i];
    if (list)
        qsort(list, n, sizeof *list, by_key);
    return list;
}

static bool same_item(const tn_meta *a, const tn_meta *b)
{
    if (strcmp(a->key, b->key) != 0 || !a->text != !b->text)
        return false;
    return a->text ? strcmp(a->text, b->text) == 0
                   : a->cbor_size == b->cbor_size && memcmp(a->cbor, b->cbor, a->cbor_size) == 0;
}

/* Order does not count. */
static tn_status same_meta(const tn_meta *a, size_t na, const tn_meta *b, size_t nb, bool *same,
                           tn_error *err)
{
    *same = na == nb;
    if (!*same || na == 0)
        return TN_OK;
    const tn_meta **x = sorted_meta(a, na), **y = sorted_meta(b, nb);
    tn_status status = x && y ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; !status && *same && i < na; i++)
        *same = same_item(x[i], y[i]);
    free(x);
    free(y);
    return status;
}

/* ---- values ---- */

static tn_status in_side(const side *s, tn_status status, tn_error *err)
{
    return tn_in_file(status, tn_file_shard_name(s->file, tn_stored_of(s->part)->shard), err);
}

static const tn_tensor *tensor_of(const pair *p, int i)
{
    return i ? p->difference.b : p->difference.a;
}

static void choose_sides(const comparison *c, const tn_item *it, sides *s)
{
    const pair *p = &c->pairs[it->subject];
    for (int i = 0; i < 2; i++) {
        side *one = &s->side[i];
        one->file = c->files[i];
        one->tensor = tensor_of(p, i);
        one->part = &one->tensor->parts[it->part];
        one->plan = p->by_value ? &p->plans[i] : NULL;
        one->type = one->plan ? one->plan->dtype : one->part->array.dtype;
        one->bits = tn_dtype_get(one->type)->bits;
        one->size = 0;
    }
    s->left = it->n;
}

static tn_status open_side(side *s, const tn_item *it, tn_error *err)
{
    tn_status status;
    if (s->plan)
        status = tn_value_stream_open(&s->values, s->file, s->tensor, s->plan, it->from, it->n, err);
    else
        status = tn_stream_open(&s->values.stream, s->file, s->tensor, s->part,
                                tn_packed_bytes(it->from, s->bits), tn_packed_bytes(it->n, s->bits),
                                TN_CHECKSUM_NONE, err);
    return in_side(s, status, err);
}

static bool is_made(const side *s) { return s->plan && s->plan->made; }

/* Opens sides with computed values first, because they need windows only meanwhile; then reserves the windows
 * of the others at once. */
static tn_status open_sides(const tn_item *it, sides *s, tn_error *err)
{
    const side *first = NULL;
    tn_stream_wish wishes[2];
    size_t n = 0;
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        side *one = &s->side[i];
        if (is_made(one)) {
            status = open_side(one, it, err);
            continue;
        }
        first = first ? first : one;
        wishes[n++] = (tn_stream_wish){ &one->values.stream, one->file, one->tensor, one->part };
    }
    if (!status && n)
        status = in_side(first, tn_stream_reserve(wishes, n, err), err);
    for (int i = 0; i < 2 && !status; i++)
        if (!is_made(&s->side[i]))
            status = open_side(&s->side[i], it, err);
    return status;
}

/* The limits of the values of B; a rotation hides them. */
static tn_status begin_limits(sides *s, tn_distance *d, tn_error *err)
{
    const side *b = &s->side[1];
    if (!is_made(b) || b->tensor->scaling->rotation.size || b->values.made->datatype->is_affine)
        return TN_OK;
    d->limits = &s->limiter.limits;
    return tn_limiter_begin(&s->limiter, b->values.made, err);
}

static tn_status fill(side *s, tn_error *err)
{
    return s->size ? TN_OK : in_side(s, tn_stream_next(&s->values.stream, &s->window, &s->size, err), err);
}

/* The next elements that both sides have: a window holds whole groups of 8. both->n is 0 at the end, where
 * the data must end too. */
static tn_status next_chunk(sides *s, chunk *both, tn_error *err)
{
    tn_status status = TN_OK;
    uint64_t n = s->left;       /* the last byte may have bits of no element */
    for (int i = 0; i < 2 && !status; i++) {
        const side *one = &s->side[i];
        status = fill(&s->side[i], err);
        n = tn_min_u64(n, (uint64_t)one->size * 8 / one->bits);
    }
    both->at += both->n;
    both->n = status ? 0 : (size_t)n;
    s->left -= both->n;
    for (int i = 0; i < 2 && both->n; i++) {
        side *one = &s->side[i];
        size_t used = (both->n * one->bits + 7) / 8;
        both->bytes[i] = one->window;
        one->window += used;
        one->size -= used;
    }
    return status;
}

static bool same_bytes(const sides *s, const chunk *both)
{
    const side *a = &s->side[0];
    return a->type == s->side[1].type &&
           memcmp(both->bytes[0], both->bytes[1], (both->n * a->bits + 7) / 8) == 0;
}

/* The sum of the squares of n elements that are finite. */
static double signal_of(tn_dtype dtype, const uint8_t *elements, size_t n)
{
    tn_span span;
    tn_span_begin(&span, dtype);
    tn_span_add(&span, elements, n);
    tn_statistics f = tn_span_end(&span);
    return f.finite ? (f.deviation * f.deviation + f.mean * f.mean) * (double)f.finite : 0;
}

static void add_chunk(const sides *s, const chunk *both, bool again, outcome *found)
{
    const tn_elements a = { s->side[0].type, both->bytes[0] }, b = { s->side[1].type, both->bytes[1] };
    bool same = same_bytes(s, both);
    if (same && again)
        found->distance.signal += signal_of(a.dtype, a.bytes, both->n);
    else if (same)
        found->some_equal = true;
    else if (!again)
        tn_distance_add(&found->distance, a, b, both->at, both->n);
}

static tn_status work(void *context, const tn_item *it, void *scratch, void *result, tn_error *err)
{
    const comparison *c = context;
    sides *s = scratch;
    outcome *found = result;
    chunk both = { .at = it->from };
    *found = (outcome){ 0 };
    choose_sides(c, it, s);
    tn_status status = open_sides(it, s, err);
    if (!status)
        status = begin_limits(s, &found->distance, err);
    while (!status) {
        status = next_chunk(s, &both, err);
        if (status || !both.n)
            break;
        add_chunk(s, &both, c->again, found);
    }
    for (int i = 0; i < 2; i++)
        tn_stream_close(&s->side[i].values.stream);
    return status;
}

static tn_status join(void *context, tn_item *it, void *result, tn_error *err)
{
    comparison *c = context;
    pair *p = &c->pairs[it->subject];
    const outcome *found = result;
    (void)err;
    if (found->distance.differing && !p->distance.differing)
        p->difference.part = &p->difference.a->parts[it->part];
    tn_distance_join(&p->distance, &found->distance);
    it->marked = found->some_equal;
    p->equal_bytes += it->marked ? it->bytes : 0;
    if (p->distance.noise > 0) {
        c->walk.total += p->equal_bytes;
        p->equal_bytes = 0;
    }
    return TN_OK;
}

/* Keeps only the items whose equal chunks are needed. */
static void choose_again(comparison *c)
{
    tn_items *items = &c->items;
    size_t kept = 0;
    for (size_t i = 0; i < items->count; i++)
        if (items->list[i].marked && c->pairs[items->list[i].subject].distance.noise > 0)
            items->list[kept++] = items->list[i];
    items->count = kept;
    c->again = true;
}

/* ---- what to compare ---- */

/* Elements of a pair: progress counts the bytes of A. */
static tn_status cut(comparison *c, tn_item whole, bool splits, unsigned bits, tn_error *err)
{
    if (!whole.n)
        return TN_OK;
    c->walk.total += tn_packed_bytes(whole.n, bits);
    c->pairs[whole.subject].difference.elements += whole.n;
    return tn_items_cut(&c->items, whole, splits ? TN_SPAN : 0, bits, err);
}

static tn_status cut_values(comparison *c, size_t number, tn_error *err)
{
    const pair *p = &c->pairs[number];
    const tn_value_plan *a = &p->plans[0];
    tn_item whole = { .subject = number, .n = a->count };
    return cut(c, whole, a->splits && p->plans[1].splits, a->bits, err);
}

static tn_status cut_part(comparison *c, size_t number, uint32_t part, tn_error *err)
{
    const tn_difference *d = &c->pairs[number].difference;
    const tn_part *a = &d->a->parts[part], *b = &d->b->parts[part];
    tn_item whole = { .subject = number, .part = part };
    tn_shape_count(a->array.rank, a->array.shape, &whole.n);
    return cut(c, whole, tn_part_splits(a) && tn_part_splits(b), tn_dtype_get(a->array.dtype)->bits, err);
}

static bool unread(comparison *c, pair *p, const tn_error *err)
{
    p->difference.what |= TN_DIFF_UNREAD;
    p->difference.why = tn_arena_text(&c->arena, err->text, strlen(err->text));
    p->difference.reason = err->reason;
    p->difference.value = tn_arena_text(&c->arena, err->value, strlen(err->value));
    return false;
}

static long long length_of(const tn_part *p) { return p->array.rank ? p->array.shape[0] : 1; }

/* Tensors of the same form and shape with different parts. */
static bool unlike(comparison *c, pair *p, const tn_part *a, const tn_part *b)
{
    tn_error err;
    if (p->difference.what & (TN_DIFF_FORM | TN_DIFF_SHAPE))
        return false;
    tn_refuse(&err, TN_ERR_UNSUPPORTED, TN_REASON_FORM_BEFORE, tn_form_name(TN_FORM_DENSE),
              "part %s has %lld and %lld entries: tensors of form dense can be compared",
              tn_quote_z(a->role).text, length_of(a), length_of(b));
    return unread(c, p, &err);
}

/* Whether the parts can be compared; UNREAD with the reason if they cannot be read. */
static bool comparable(comparison *c, pair *p)
{
    const tn_tensor *x = p->difference.a, *y = p->difference.b;
    tn_error err;
    if (x->nparts != y->nparts)
        return false;
    for (uint32_t k = 0; k < x->nparts; k++) {
        const tn_part *a = &x->parts[k], *b = &y->parts[k];
        if (strcmp(a->role, b->role) != 0 ||
            !tn_same_shape(a->array.rank, a->array.shape, b->array.rank, b->array.shape))
            return unlike(c, p, a, b);
        if (tn_part_readable(x, a, &err) || tn_part_readable(y, b, &err) ||
            tn_kept_check_spilled(c->files[0], x, a, &err) || tn_kept_check_spilled(c->files[1], y, b, &err))
            return unread(c, p, &err);
    }
    return true;
}

/* A scaled tensor and another scaled or dense one are compared by value. */
static tn_status find_values(comparison *c, pair *p, bool *found, tn_error *err)
{
    const tn_tensor *a = p->difference.a, *b = p->difference.b;
    tn_error why = { .status = TN_OK };
    p->by_value = a->form == TN_FORM_SCALED || b->form == TN_FORM_SCALED;
    *found = p->by_value && !(p->difference.what & TN_DIFF_SHAPE) && !tn_form_is_sparse(a->form) &&
             !tn_form_is_sparse(b->form);
    for (int i = 0; i < 2 && *found; i++) {
        tn_status status = tn_keep_scales(&c->held[i], tensor_of(p, i), err);
        if (status)
            return tn_in_file(status, tn_file_shard_name(c->files[i], 0), err);
    }
    for (int i = 0; i < 2 && *found; i++)
        if (tn_plan_values(c->files[i], tensor_of(p, i), &c->arena, &p->plans[i], &why))
            *found = unread(c, p, &why);
    if (why.status != TN_ERR_NOMEM)
        return TN_OK;
    *err = why;
    return TN_ERR_NOMEM;
}

/* Compares what the indexes say about two tensors. */
static tn_status compare_descriptions(const comparison *c, tn_difference *d, tn_error *err)
{
    const tn_tensor *a = d->a, *b = d->b;
    bool same = true;
    tn_status status = TN_OK;
    d->what |= strcmp(tn_tensor_form_name(a), tn_tensor_form_name(b)) ? TN_DIFF_FORM : 0;
    d->what |= a->dtype != b->dtype ? TN_DIFF_DTYPE : 0;
    if (!tn_same_shape(a->rank, a->shape, b->rank, b->shape))
        d->what |= TN_DIFF_SHAPE;
    if (!c->o.ignore_meta)
        status = same_meta(a->meta, a->nmeta, b->meta, b->nmeta, &same, err);
    d->what |= same ? 0 : TN_DIFF_META;
    if (a->layout && b->layout && strcmp(a->layout, b->layout) != 0)
        d->what |= TN_DIFF_LAYOUT;
    return status;
}

/* b may be NULL. */
static tn_status add_pair(comparison *c, const tn_tensor *a, const tn_tensor *b, tn_error *err)
{
    size_t number = c->npairs++;
    pair *p = &c->pairs[number];
    bool by_value = false;
    p->difference = (tn_difference){ .a = a, .b = b, .what = b ? 0 : TN_DIFF_ONLY_A };
    if (!b)
        return TN_OK;
    tn_status status = compare_descriptions(c, &p->difference, err);
    if (!status)
        status = find_values(c, p, &by_value, err);
    if (by_value && !status)
        return cut_values(c, number, err);
    if (!p->by_value && comparable(c, p))
        for (uint32_t k = 0; k < a->nparts && !status; k++)
            status = cut_part(c, number, k, err);
    return status;
}

static tn_status add_file_meta(comparison *c, tn_error *err)
{
    size_t na, nb;
    bool same = true;
    const tn_meta *a = tn_file_meta(c->files[0], &na), *b = tn_file_meta(c->files[1], &nb);
    tn_status status = c->o.ignore_meta ? TN_OK : same_meta(a, na, b, nb, &same, err);
    c->pairs[c->npairs++].difference.what = same ? 0 : TN_DIFF_META;
    return status;
}

static tn_status plan(comparison *c, tn_error *err)
{
    const tn_file *a = c->files[0], *b = c->files[1];
    c->pairs = calloc(tn_file_count(a) + tn_file_count(b) + 1, sizeof *c->pairs);
    if (!c->pairs)
        return tn_fail_nomem(err);
    tn_status status = add_file_meta(c, err);
    for (size_t i = 0; i < tn_file_count(a) && !status; i++) {
        const tn_tensor *t = tn_file_tensor(a, i);
        status = add_pair(c, t, tn_file_find(b, t->name), err);
    }
    for (size_t i = 0; i < tn_file_count(b) && !status; i++) {
        const tn_tensor *t = tn_file_tensor(b, i);
        if (!tn_file_find(a, t->name))
            c->pairs[c->npairs++].difference = (tn_difference){ .b = t, .what = TN_DIFF_ONLY_B };
    }
    return status;
}

/* ---- the whole ---- */

static void free_sides(void *scratch)
{
    sides *s = scratch;
    for (int i = 0; i < 2; i++)
        tn_value_stream_free(&s->side[i].values);
    tn_limiter_free(&s->limiter);
}

static tn_status run(comparison *c, tn_error *err)
{
    const tn_walk_task task = {
        .work = work, .join = join, .context = c, .scratch_size = sizeof(sides),
        .result_size = sizeof(outcome), .free_scratch = free_sides,
    };
    TN_TRY(tn_walk_run(&c->walk, &c->items, &task, err));
    choose_again(c);
    return tn_walk_run(&c->walk, &c->items, &task, err);
}

static void finish_pair(pair *p)
{
    tn_difference *to = &p->difference;
    const tn_distance *d = &p->distance;
    to->what |= d->differing ? TN_DIFF_VALUES : 0;
    to->differing = d->differing;
    to->first = d->first;
    to->bits = d->bits;
    to->specials = d->specials;
    to->max_abs = d->max_abs;
    to->max_rel = d->max_rel;
    to->max_ulp = d->max_ulp;
    to->sqnr = tn_distance_sqnr(d);
    to->flushed = d->flushed;
    to->saturated = d->saturated;
}

/* Returns how many differ. */
static size_t report_pairs(comparison *c, tn_compare_fn report)
{
    size_t different = 0;
    for (size_t i = 0; i < c->npairs; i++) {
        finish_pair(&c->pairs[i]);
        different += c->pairs[i].difference.what != 0;
        if (report)
            report(c->o.context, &c->pairs[i].difference);
    }
    return different;
}

tn_status tn_compare(const tn_file *a, const tn_file *b, const tn_compare_options *given,
                     tn_compare_fn report, size_t *different, tn_error *err)
{
    comparison c = { .files = { a, b },
                     .held = { { .max_bytes = a->max_bytes }, { .max_bytes = b->max_bytes } } };
    tn_error why = { .offset = TN_NO_OFFSET };
    TN_TRY(tn_take_options(TN_SIZED(tn_compare_options, context), &c.o, given, err));
    c.walk = (tn_walk){ .jobs = c.o.jobs, .progress = c.o.progress, .context = c.o.context };
    tn_status status = plan(&c, &why);
    if (!status)
        status = run(&c, &why);
    status = tn_file_settle_named(b, tn_file_settle_named(a, status, &why), &why);
    if (!status) {
        size_t count = report_pairs(&c, report);
        if (different)
            *different = count;
    } else if (err) {
        *err = why;
    }
    tn_walk_end(&c.walk);
    free(c.items.list);
    free(c.pairs);
    tn_arena_free(&c.arena);
    return status;
}
