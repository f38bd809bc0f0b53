/* verbs/compare.c - two open files, tensor by tensor. */
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
    tn_value_plan a, b;         /* by value: how to read them */
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
    side       a, b;
    tn_limiter limiter;         /* of B, where it is scaled by a datatype */
    uint64_t   left;            /* elements still to come */
} sides;

/* Elements [at, at + n) of both. */
typedef struct chunk {
    const uint8_t *a, *b;
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
    const tn_file *a, *b;
    tn_compare_options o;
    pair          *pairs;
    size_t         npairs;
    tn_walk        walk;        /* its total grows with what is to be read again */
    tn_items       items;       /* ranges of elements; the subjects are pairs; marked: has equal chunks */
    bool           again;       /* the second time: only equal chunks count */
    tn_arena       arena;
    tn_kept        held[2];     /* scales of a and of b in it */
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

static void choose_side(side *s, const tn_file *f, const tn_tensor *t, const tn_value_plan *plan,
                        uint32_t part)
{
    s->file = f;
    s->tensor = t;
    s->part = &t->parts[part];
    s->plan = plan;
    s->type = plan ? plan->dtype : s->part->array.dtype;
    s->bits = tn_dtype_get(s->type)->bits;
    s->size = 0;
}

static void choose_sides(const comparison *c, const tn_item *it, sides *s)
{
    const pair *p = &c->pairs[it->subject];
    choose_side(&s->a, c->a, p->difference.a, p->by_value ? &p->a : NULL, it->part);
    choose_side(&s->b, c->b, p->difference.b, p->by_value ? &p->b : NULL, it->part);
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
    side *const both[2] = { &s->a, &s->b };
    const side *first = NULL;
    tn_stream_wish wishes[2];
    size_t n = 0;
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        if (is_made(both[i])) {
            status = open_side(both[i], it, err);
            continue;
        }
        first = first ? first : both[i];
        wishes[n++] = (tn_stream_wish){ &both[i]->values.stream, both[i]->file, both[i]->tensor,
                                        both[i]->part };
    }
    if (!status && n)
        status = in_side(first, tn_stream_reserve(wishes, n, err), err);
    for (int i = 0; i < 2 && !status; i++)
        if (!is_made(both[i]))
            status = open_side(both[i], it, err);
    return status;
}

/* The limits of the values of B; a rotation hides them. */
static tn_status begin_limits(sides *s, tn_distance *d, tn_error *err)
{
    if (!is_made(&s->b) || s->b.tensor->scaling->rotation.size || s->b.values.made->datatype->is_affine)
        return TN_OK;
    d->limits = &s->limiter.limits;
    return tn_limiter_begin(&s->limiter, s->b.values.made, err);
}

static tn_status fill(side *s, tn_error *err)
{
    return s->size ? TN_OK : in_side(s, tn_stream_next(&s->values.stream, &s->window, &s->size, err), err);
}

static void advance(side *s, size_t elements)
{
    size_t used = (elements * s->bits + 7) / 8;
    s->window += used;
    s->size -= used;
}

/* The next elements that both sides have: a window holds whole groups of 8. both->n is 0 at the end, where
 * the data must end too. */
static tn_status next_chunk(sides *s, chunk *both, tn_error *err)
{
    tn_status status = fill(&s->a, err);
    if (!status)
        status = fill(&s->b, err);
    both->at += both->n;
    both->n = 0;
    if (status || !s->left)
        return status;
    uint64_t in_a = (uint64_t)s->a.size * 8 / s->a.bits, in_b = (uint64_t)s->b.size * 8 / s->b.bits;
    uint64_t n = in_a < in_b ? in_a : in_b;
    if (n > s->left)            /* bits that fill the last byte */
        n = s->left;
    s->left -= n;
    both->n = (size_t)n;
    both->a = s->a.window;
    both->b = s->b.window;
    advance(&s->a, both->n);
    advance(&s->b, both->n);
    return TN_OK;
}

static bool same_bytes(const sides *s, const chunk *both)
{
    return s->a.type == s->b.type && memcmp(both->a, both->b, (both->n * s->a.bits + 7) / 8) == 0;
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
    bool same = same_bytes(s, both);
    if (same && again)
        found->distance.signal += signal_of(s->a.type, both->a, both->n);
    else if (same)
        found->some_equal = true;
    else if (!again)
        tn_distance_add(&found->distance, (tn_elements){ s->a.type, both->a },
                        (tn_elements){ s->b.type, both->b }, both->at, both->n);
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
    tn_stream_close(&s->a.values.stream);
    tn_stream_close(&s->b.values.stream);
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
    tn_item whole = { .subject = number, .n = p->a.count };
    return cut(c, whole, p->a.splits && p->b.splits, p->a.bits, err);
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
            tn_kept_check_spilled(c->a, x, a, &err) || tn_kept_check_spilled(c->b, y, b, &err))
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
    tn_status status = *found ? tn_keep_scales(&c->held[0], a, err) : TN_OK;
    tn_in_file(status, tn_file_shard_name(c->a, 0), err);
    if (*found && !status)
        status = tn_in_file(tn_keep_scales(&c->held[1], b, err), tn_file_shard_name(c->b, 0), err);
    if (status)
        return status;
    if (*found &&
        (tn_plan_values(c->a, a, &c->arena, &p->a, &why) || tn_plan_values(c->b, b, &c->arena, &p->b, &why)))
        *found = unread(c, p, &why);
    if (why.status == TN_ERR_NOMEM && err)
        *err = why;
    return why.status == TN_ERR_NOMEM ? TN_ERR_NOMEM : TN_OK;
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
    const tn_meta *a = tn_file_meta(c->a, &na), *b = tn_file_meta(c->b, &nb);
    tn_status status = c->o.ignore_meta ? TN_OK : same_meta(a, na, b, nb, &same, err);
    c->pairs[c->npairs++].difference.what = same ? 0 : TN_DIFF_META;
    return status;
}

static tn_status plan(comparison *c, tn_error *err)
{
    size_t n = tn_file_count(c->a) + tn_file_count(c->b) + 1;
    c->pairs = calloc(n, sizeof *c->pairs);
    if (!c->pairs)
        return tn_fail_nomem(err);
    tn_status status = add_file_meta(c, err);
    for (size_t i = 0; i < tn_file_count(c->a) && !status; i++) {
        const tn_tensor *t = tn_file_tensor(c->a, i);
        status = add_pair(c, t, tn_file_find(c->b, t->name), err);
    }
    for (size_t i = 0; i < tn_file_count(c->b) && !status; i++) {
        const tn_tensor *t = tn_file_tensor(c->b, i);
        if (!tn_file_find(c->a, t->name))
            c->pairs[c->npairs++].difference = (tn_difference){ .b = t, .what = TN_DIFF_ONLY_B };
    }
    return status;
}

/* ---- the whole ---- */

static void free_sides(void *scratch)
{
    sides *s = scratch;
    tn_value_stream_free(&s->a.values);
    tn_value_stream_free(&s->b.values);
    tn_limiter_free(&s->limiter);
}

static tn_status run(comparison *c, tn_error *err)
{
    const tn_walk_task task = {
        .work = work, .join = join, .context = c, .scratch_size = sizeof(sides),
        .result_size = sizeof(outcome), .free_scratch = free_sides,
    };
    tn_status status = tn_walk_run(&c->walk, &c->items, &task, err);
    if (status)
        return status;
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
    comparison c = { .a = a, .b = b,
                     .held = { { .max_bytes = a->max_bytes }, { .max_bytes = b->max_bytes } } };
    tn_error why = { .offset = TN_NO_OFFSET };
    tn_take_options(&c.o, sizeof c.o, given);
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
