/* verbs/compare.c - two open files, tensor by tensor. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/pages.h"
#include "verbs/metrics.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "tensor/form.h"
#include "cast/summary.h"
#include "pipeline/expect.h"
#include "pipeline/steps/steps.h"
#include "pipeline/together.h"

#include <stdlib.h>
#include <string.h>

/* What there is to say of a pair that is not equal: see tn_difference. */
typedef struct findings {
    tn_distance    distance;
    const tn_part *part;
    const char    *why, *value;
    tn_reason      reason;
} findings;

/* Two tensors of one name, one that has no partner, or the files' metadata.  There may be very many. */
typedef struct pair {
    const tn_tensor *a, *b;
    findings *found;            /* or NULL */
    tn_view **values;           /* of A and B, if one has scales: values are compared, not parts; else NULL */
    uint64_t  elements;
    uint64_t  equal_bytes;      /* of items with equal chunks, which are read again if the pair differs */
    unsigned  what;
    bool      some_equal;       /* its item, which has other pairs too, has equal chunks of it */
} pair;

enum {
    ITEM_PAIRS = 64,            /* small ones of an item at most */
    SMALL = 1 << 16             /* bytes of one of them */
};

/* One side of an item: what is read, and what is left of its window. */
typedef struct side {
    tn_view       *view;
    bool           is_held;
    tn_worker      worker;
    uint64_t       at, end;     /* elements */
    const uint8_t *window;
    size_t         size;
} side;

/* The scratch of a worker. */
typedef struct sides {
    side       side[2];
    tn_arena   arena;           /* views of parts, for one item */
    tn_limiter limiter;         /* of B, where it is scaled by a datatype */
    uint64_t   left;            /* elements still to come */
} sides;

/* Elements [at, at + n) of both. */
typedef struct chunk {
    const uint8_t *bytes[2];
    uint64_t       at;
    size_t         n;
} chunk;

/* The result of an item, for each of its pairs. */
typedef struct outcome {
    tn_distance distance;
    bool        is_measured;    /* the distance has something */
    bool        some_equal;     /* it has chunks of equal bytes, whose signal is not included */
} outcome;

/* Elements of a pair that are compared. */
typedef struct range {
    const pair *pair;
    uint32_t    part;
    uint64_t    from, n;
} range;

/* Chunks of equal bytes are skipped at the speed of memory. Only if the tensor differs elsewhere are their
 * values needed, for the signal: then its items are read again. */
typedef struct comparison {
    tn_view_place  places[2];   /* of files A and B */
    tn_compare_options o;
    pair          *pairs;
    size_t         npairs;
    tn_walk        walk;        /* its total grows with what is to be read again */
    tn_items       items;       /* ranges of elements; the subjects are pairs; marked: has equal chunks */
    bool           again;       /* the second time: only equal chunks count */
    tn_arena       arena, found;        /* the second of findings, which are added while others read */
    tn_kept        held[2];     /* scales of each file in it */
} comparison;

/* Which tensors are compared, and with which. */
typedef struct choice {
    tn_chooser names;
    tn_renames renames;
    bool      *has_partner;     /* of each tensor of B: one of A is called so, chosen or not */
} choice;

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
    return strcmp(a->key, b->key) == 0 && tn_meta_same_value(a, b);
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
    const tn_part *p = &tn_stored_tensor(s->view)->parts[0];
    return tn_in_file(status, tn_file_shard_name(s->view->place->file, tn_stored_of(p)->shard), err);
}

static const tn_tensor *tensor_of(const pair *p, int i)
{
    return i ? p->b : p->a;
}

static tn_status choose_sides(const comparison *c, const range *r, sides *s, tn_error *err)
{
    const pair *p = r->pair;
    s->left = r->n;
    s->side[1].is_held = false;
    for (int i = 0; i < 2; i++) {
        side *one = &s->side[i];
        one->view = p->values ? p->values[i] : NULL;
        one->at = r->from;
        one->end = r->from + r->n;
        one->size = 0;
        one->is_held = false;
        if (!p->values)
            TN_TRY(tn_view_stored_part(&c->places[i], tensor_of(p, i), r->part, &s->arena, &one->view, err));
    }
    return TN_OK;
}

/* Values that are computed from several parts need windows only now; those of both streams, if there are
 * some, are taken at once. */
static tn_status open_sides(sides *s, tn_error *err)
{
    const side *first = NULL;
    tn_stream_wish wishes[2];
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        side *one = &s->side[i];
        one->is_held = true;    /* to be left also if it fails */
        TN_TRY(in_side(one, tn_view_hold(one->view, &one->worker, one->end, err), err));
    }
    for (int i = 0; i < 2; i++) {
        side *one = &s->side[i];
        bool is_stream = tn_view_wish(one->view, &one->worker, &wishes[n]);
        first = is_stream && !first ? one : first;
        n += is_stream;
    }
    return n ? in_side(first, tn_stream_reserve(wishes, n, err), err) : TN_OK;
}

/* The limits of the values of B, if it has codes of tiles; a rotation hides them. */
static tn_status begin_limits(sides *s, tn_distance *d, tn_error *err)
{
    const tn_decoder *decoder = tn_view_decoder(s->side[1].view);
    if (!decoder || decoder->tensor->scaling->rotation.size ||
        decoder->datatype->quantizer != &tn_tile_quantizer)
        return TN_OK;
    d->limits = &s->limiter.limits;
    return tn_limiter_begin(&s->limiter, decoder, err);
}

static tn_status fill(side *s, tn_error *err)
{
    uint64_t n = tn_min_u64(s->end - s->at, tn_view_window(s->view));
    if (s->size || !n)
        return TN_OK;
    TN_TRY(in_side(s, tn_view_range(s->view, s->at, (size_t)n, &s->worker, &s->window, err), err));
    s->at += n;
    s->size = (size_t)tn_packed_bytes(n, s->view->bits);
    return TN_OK;
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
        n = tn_min_u64(n, (uint64_t)one->size * 8 / one->view->bits);
    }
    both->at += both->n;
    both->n = status ? 0 : (size_t)n;
    s->left -= both->n;
    for (int i = 0; i < 2 && both->n; i++) {
        side *one = &s->side[i];
        size_t used = (size_t)tn_packed_bytes(both->n, one->view->bits);
        both->bytes[i] = one->window;
        one->window += used;
        one->size -= used;
    }
    return status;
}

static tn_dtype type_of(const side *s) { return s->view->parts[0].array.dtype; }

static bool same_bytes(const sides *s, const chunk *both)
{
    const tn_view *a = s->side[0].view;
    return type_of(&s->side[0]) == type_of(&s->side[1]) &&
           memcmp(both->bytes[0], both->bytes[1], (size_t)tn_packed_bytes(both->n, a->bits)) == 0;
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
    const tn_elements a = { type_of(&s->side[0]), both->bytes[0] },
                      b = { type_of(&s->side[1]), both->bytes[1] };
    bool same = same_bytes(s, both);
    found->is_measured |= same == again;
    if (same && again)
        found->distance.signal += signal_of(a.dtype, a.bytes, both->n);
    else if (same)
        found->some_equal = true;
    else if (!again)
        tn_distance_add(&found->distance, a, b, both->at, both->n);
}

static tn_status compare_range(const comparison *c, const range *r, sides *s, outcome *found, tn_error *err)
{
    chunk both = { .at = r->from };
    tn_arena_mark mark = s->arena;
    tn_status status = choose_sides(c, r, s, err);
    if (!status)
        status = open_sides(s, err);
    if (!status)
        status = begin_limits(s, &found->distance, err);
    while (!status) {
        status = next_chunk(s, &both, err);
        if (status || !both.n)
            break;
        add_chunk(s, &both, c->again, found);
    }
    for (int i = 0; i < 2; i++)
        if (s->side[i].is_held)
            tn_view_leave(s->side[i].view, &s->side[i].worker);
    tn_arena_rewind(&s->arena, mark);
    return status;
}

/* Parts that are mapped need no views to be seen to be equal. */
static bool is_equal_in_place(const range *r)
{
    const tn_part *a = &r->pair->a->parts[r->part], *b = &r->pair->b->parts[r->part];
    return !r->pair->values && a->data && b->data && a->array.dtype == b->array.dtype &&
           memcmp(a->data, b->data, (size_t)a->nbytes) == 0;
}

static tn_status work(void *context, const tn_item *it, void *scratch, void *result, tn_error *err)
{
    const comparison *c = context;
    outcome *found = result;
    bool whole = it->from == 0 && it->last && !c->again;
    for (uint32_t i = 0; i < it->count; i++) {
        const pair *p = &c->pairs[it->subject + i];
        const range r = { p, it->part, it->from, it->count > 1 ? p->elements : it->n };
        found[i] = (outcome){ .distance = { .tolerance = c->o.tolerance, .relative = c->o.relative } };
        found[i].some_equal = whole && is_equal_in_place(&r);
        if (!found[i].some_equal)
            TN_TRY(compare_range(c, &r, scratch, &found[i], err));
    }
    return TN_OK;
}

static findings *findings_of(comparison *c, pair *p)
{
    if (!p->found)
        p->found = tn_arena_zalloc(&c->found, 1, sizeof *p->found);
    return p->found;
}

/* Whether its signal is asked for: something differs by more than is tolerated. */
static bool is_noisy(const pair *p)
{
    return p->found && p->found->distance.differing && p->found->distance.noise > 0;
}

static uint64_t bytes_read(const pair *p)
{
    unsigned bits = p->values ? tn_view_bits_read(p->values[0])
                              : tn_dtype_get(p->a->parts[0].array.dtype)->bits;
    return tn_packed_bytes(p->elements, bits);
}

static tn_status join_distance(comparison *c, pair *p, uint32_t part, const tn_distance *next, tn_error *err)
{
    findings *f = findings_of(c, p);
    TN_NEED(f, err);
    if (next->differing && !f->distance.differing)
        f->part = &p->a->parts[part];
    tn_distance_join(&f->distance, next);
    return TN_OK;
}

static tn_status join(void *context, tn_item *it, void *result, tn_error *err)
{
    comparison *c = context;
    const outcome *found = result;
    it->marked = found->some_equal;
    for (uint32_t i = 0; i < it->count; i++) {
        pair *p = &c->pairs[it->subject + i];
        if (found[i].is_measured)
            TN_TRY(join_distance(c, p, it->part, &found[i].distance, err));
        p->some_equal = found[i].some_equal;
        if (p->some_equal)
            p->equal_bytes += it->count > 1 ? bytes_read(p) : it->bytes;
        if (is_noisy(p)) {
            c->walk.total += p->equal_bytes;
            p->equal_bytes = 0;
        }
    }
    return TN_OK;
}

/* ---- for other processes ---- */

enum { COUNTS = 8, FIGURES = 5, NUMBERS = COUNTS + FIGURES };

static void save_outcome(const outcome *found, tn_buf *b)
{
    const tn_distance *d = &found->distance;
    const double figures[FIGURES] = { d->max_abs, d->max_rel, d->max_ulp, d->signal, d->noise };
    uint64_t x[NUMBERS] = { d->differing, d->first, d->bits, d->specials, d->flushed, d->saturated,
                            found->is_measured, found->some_equal };
    memcpy(x + COUNTS, figures, sizeof figures);
    tn_work_put_numbers(b, x, NUMBERS);
}

static tn_status save(void *context, const tn_item *it, const void *result, tn_buf *b, tn_error *err)
{
    (void)context;
    (void)err;
    for (uint32_t i = 0; i < it->count; i++) {
        tn_buf_putc(b, i ? ',' : '[');
        save_outcome(&((const outcome *)result)[i], b);
    }
    tn_buf_putc(b, ']');
    return TN_OK;
}

static void load_outcome(const comparison *c, tn_json *j, outcome *found)
{
    uint64_t x[NUMBERS];
    double figures[FIGURES];
    tn_work_take_numbers(j, x, NUMBERS);
    memcpy(figures, x + COUNTS, sizeof figures);
    *found = (outcome){ .distance = { .differing = x[0], .first = x[1], .bits = x[2], .specials = x[3],
                                      .flushed = x[4], .saturated = x[5], .max_abs = figures[0],
                                      .max_rel = figures[1], .max_ulp = figures[2], .signal = figures[3],
                                      .noise = figures[4], .tolerance = c->o.tolerance,
                                      .relative = c->o.relative },
                        .is_measured = x[6] != 0, .some_equal = x[7] != 0 };
}

static void load(void *context, const tn_item *it, tn_json *j, void *result)
{
    uint32_t n = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (n == it->count) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected %u pairs but found more", it->count);
            return;
        }
        load_outcome(context, j, (outcome *)result + n++);
    }
    if (!j->status && n < it->count)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected %u pairs but found %u", it->count, n);
}

/* Keeps only the items whose equal chunks are needed, of one pair each. */
static tn_status choose_again(comparison *c, tn_error *err)
{
    tn_items again = { 0 };
    for (size_t i = 0; i < c->items.count; i++) {
        tn_item one = c->items.list[i];
        for (uint32_t left = one.count; left; left--, one.subject++) {
            const pair *p = &c->pairs[one.subject];
            bool alone = c->items.list[i].count == 1;
            if (!is_noisy(p) || !(alone ? one.marked : p->some_equal))
                continue;
            one.count = 1;
            one.n = alone ? one.n : p->elements;
            one.bytes = alone ? one.bytes : bytes_read(p);
            if (!TN_GROW(again.list, again.count, again.cap)) {
                free(again.list);
                return tn_fail_nomem(err);
            }
            again.list[again.count++] = one;
        }
    }
    free(c->items.list);
    c->items = again;
    c->again = true;
    return TN_OK;
}

/* ---- what to compare ---- */

/* Elements of a pair: progress counts the bytes of A. */
static tn_status cut(comparison *c, tn_item whole, bool splits, unsigned bits, tn_error *err)
{
    if (!whole.n)
        return TN_OK;
    pair *p = &c->pairs[whole.subject];
    whole.bytes = tn_packed_bytes(whole.n, bits);
    c->walk.total += whole.bytes;
    p->elements += whole.n;
    if (whole.bytes <= SMALL && (p->values || p->a->nparts == 1))
        return tn_items_pack(&c->items, whole, ITEM_PAIRS, UINT64_MAX, err);
    return tn_items_cut(&c->items, whole, splits ? TN_SPAN : 0, bits, err);
}

static tn_status cut_values(comparison *c, size_t number, tn_error *err)
{
    const tn_view *a = c->pairs[number].values[0], *b = c->pairs[number].values[1];
    const tn_item whole = { .subject = number, .n = a->count };
    return cut(c, whole, a->reach == TN_REACH_ANY && b->reach == TN_REACH_ANY, tn_view_bits_read(a), err);
}

static tn_status cut_part(comparison *c, size_t number, uint32_t part, tn_error *err)
{
    const pair *p = &c->pairs[number];
    const tn_part *a = &p->a->parts[part], *b = &p->b->parts[part];
    tn_item whole = { .subject = number, .part = part };
    tn_shape_count(a->array.rank, a->array.shape, &whole.n);
    return cut(c, whole, tn_part_splits(a) && tn_part_splits(b), tn_dtype_get(a->array.dtype)->bits, err);
}

static bool unread(comparison *c, pair *p, const tn_error *err)
{
    findings *f = findings_of(c, p);
    p->what |= TN_DIFF_UNREAD;
    if (f) {
        f->why = tn_arena_text(&c->found, err->text, strlen(err->text));
        f->reason = err->reason;
        f->value = tn_arena_text(&c->found, err->value, strlen(err->value));
    }
    return false;
}

static long long length_of(const tn_part *p) { return p->array.rank ? p->array.shape[0] : 1; }

/* Tensors of the same form and shape with different parts. */
static bool unlike(comparison *c, pair *p, const tn_part *a, const tn_part *b)
{
    tn_error err;
    if (p->what & (TN_DIFF_FORM | TN_DIFF_SHAPE))
        return false;
    tn_refuse(&err, TN_ERR_UNSUPPORTED, TN_REASON_FORM_BEFORE, tn_form_name(TN_FORM_DENSE),
              "part %s has %lld and %lld entries: tensors of form dense can be compared",
              tn_quote_z(a->role).text, length_of(a), length_of(b));
    return unread(c, p, &err);
}

/* Whether the parts can be compared; UNREAD with the reason if they cannot be read. */
static bool comparable(comparison *c, pair *p)
{
    const tn_tensor *x = p->a, *y = p->b;
    tn_error err;
    if (x->nparts != y->nparts)
        return false;
    for (uint32_t k = 0; k < x->nparts; k++) {
        const tn_part *a = &x->parts[k], *b = &y->parts[k];
        if (strcmp(a->role, b->role) != 0 ||
            !tn_same_shape(a->array.rank, a->array.shape, b->array.rank, b->array.shape))
            return unlike(c, p, a, b);
        if (tn_part_readable(x, a, &err) || tn_part_readable(y, b, &err) ||
            tn_kept_check_spilled(c->places[0].file, x, a, &err) ||
            tn_kept_check_spilled(c->places[1].file, y, b, &err))
            return unread(c, p, &err);
    }
    return true;
}

static tn_status plan_values(comparison *c, pair *p, int i, tn_error *err)
{
    const tn_tensor *t = tensor_of(p, i);
    tn_view *v = NULL;
    TN_TRY(tn_view_stored(&c->places[i], t, &c->arena, &v, err));
    TN_TRY(tn_kept_check_spilled(c->places[i].file, t, &t->parts[0], err));
    TN_TRY(tn_view_add_values(&v, TN_UNKNOWN, err));
    p->values[i] = v;
    return TN_OK;
}

static bool has_scales(const pair *p)
{
    return tn_form_is_scaled(p->a->form) || tn_form_is_scaled(p->b->form);
}

/* A scaled tensor and another scaled or dense one are compared by value, if they can be. */
static tn_status find_values(comparison *c, pair *p, bool *found, tn_error *err)
{
    tn_error why = { .status = TN_OK };
    *found = !(p->what & TN_DIFF_SHAPE) && !tn_form_is_sparse(p->a->form) && !tn_form_is_sparse(p->b->form);
    if (!*found)
        return TN_OK;
    TN_NEED(p->values = tn_arena_zalloc(&c->arena, 2, sizeof(tn_view *)), err);
    for (int i = 0; i < 2; i++) {
        tn_status status = tn_keep_scales(&c->held[i], tensor_of(p, i), err);
        if (status)
            return tn_in_file(status, tn_file_shard_name(c->places[i].file, 0), err);
    }
    for (int i = 0; i < 2 && *found; i++)
        if (plan_values(c, p, i, &why))
            *found = unread(c, p, &why);
    if (why.status != TN_ERR_NOMEM)
        return TN_OK;
    *err = why;
    return TN_ERR_NOMEM;
}

/* Compares what the indexes say about two tensors. */
static tn_status compare_descriptions(const comparison *c, pair *p, tn_error *err)
{
    const tn_tensor *a = p->a, *b = p->b;
    bool same = true;
    tn_status status = TN_OK;
    p->what |= strcmp(tn_tensor_form_name(a), tn_tensor_form_name(b)) ? TN_DIFF_FORM : 0;
    p->what |= a->dtype != b->dtype ? TN_DIFF_DTYPE : 0;
    if (!tn_same_shape(a->rank, a->shape, b->rank, b->shape))
        p->what |= TN_DIFF_SHAPE;
    if (!c->o.ignore_meta)
        status = same_meta(a->meta, a->nmeta, b->meta, b->nmeta, &same, err);
    p->what |= same ? 0 : TN_DIFF_META;
    if (a->layout && b->layout && strcmp(a->layout, b->layout) != 0)
        p->what |= TN_DIFF_LAYOUT;
    return status;
}

/* b may be NULL. */
static tn_status add_pair(comparison *c, const tn_tensor *a, const tn_tensor *b, tn_error *err)
{
    size_t number = c->npairs++;
    pair *p = &c->pairs[number];
    bool by_value = false;
    *p = (pair){ .a = a, .b = b, .what = b ? 0 : TN_DIFF_ONLY_A };
    if (!b)
        return TN_OK;
    tn_status status = compare_descriptions(c, p, err);
    if (!status && has_scales(p))
        status = find_values(c, p, &by_value, err);
    if (c->o.tolerance > 0 || c->o.relative > 0)        /* then values count, not how they are stored */
        p->what &= ~(unsigned)(by_value ? TN_DIFF_DTYPE | TN_DIFF_FORM : TN_DIFF_DTYPE);
    if (by_value && !status)
        return cut_values(c, number, err);
    if (status || has_scales(p) || !comparable(c, p))
        return status;
    for (uint32_t k = 0; k < a->nparts && !status; k++)
        status = cut_part(c, number, k, err);
    return status;
}

static tn_status add_file_meta(comparison *c, tn_error *err)
{
    size_t na, nb;
    bool same = true;
    const tn_meta *a = tn_file_meta(c->places[0].file, &na), *b = tn_file_meta(c->places[1].file, &nb);
    tn_status status = c->o.ignore_meta ? TN_OK : same_meta(a, na, b, nb, &same, err);
    c->pairs[c->npairs++] = (pair){ .what = same ? 0 : TN_DIFF_META };
    return status;
}

/* The tensor of B with this name, or NULL.  Mostly it is tensor *next: files have them in the same order. */
static const tn_tensor *find_partner(const tn_file *b, const char *name, size_t *next)
{
    const tn_tensor *t = tn_file_tensor(b, *next);
    if (!t || strcmp(t->name, name) != 0)
        t = tn_file_find(b, name);
    if (t)
        *next = (size_t)(t - tn_file_tensor(b, 0)) + 1;
    return t;
}

/* The chosen tensors of A with their partners. */
static tn_status plan_first(comparison *c, choice *chosen, tn_error *err)
{
    const tn_file *a = c->places[0].file, *b = c->places[1].file;
    size_t next = 0;
    for (size_t i = 0; i < tn_file_count(a); i++) {
        const tn_tensor *t = tn_file_tensor(a, i), *partner;
        const char *name;
        bool takes;
        TN_TRY(tn_chooser_ask(&chosen->names, t->name, &takes, err));
        TN_TRY(tn_renames_apply(&chosen->renames, t->name, &c->arena, &name, err));
        partner = find_partner(b, name, &next);
        if (partner)
            chosen->has_partner[partner - tn_file_tensor(b, 0)] = true;
        if (takes)
            TN_TRY(add_pair(c, t, partner, err));
    }
    return TN_OK;
}

/* What only B has. */
static tn_status plan_second(comparison *c, choice *chosen, tn_error *err)
{
    const tn_file *b = c->places[1].file;
    for (size_t i = 0; i < tn_file_count(b); i++) {
        const tn_tensor *t = tn_file_tensor(b, i);
        bool takes;
        TN_TRY(tn_chooser_ask(&chosen->names, t->name, &takes, err));
        if (takes && !chosen->has_partner[i])
            c->pairs[c->npairs++] = (pair){ .b = t, .what = TN_DIFF_ONLY_B };
    }
    return TN_OK;
}

static tn_status check_choice(const comparison *c, const choice *chosen, tn_error *err)
{
    const tn_file *a = c->places[0].file;
    const tn_name_list names = { .file = a, .count = tn_file_count(a) };
    TN_TRY(tn_chooser_check(&chosen->names, &names, err));
    return tn_renames_check(&chosen->renames, &names, err);
}

static tn_status plan(comparison *c, tn_error *err)
{
    const tn_file *a = c->places[0].file, *b = c->places[1].file;
    choice chosen = { .has_partner = tn_arena_zalloc(&c->arena, tn_file_count(b) + 1, sizeof(bool)) };
    c->pairs = tn_pages_alloc((tn_file_count(a) + tn_file_count(b) + 1) * sizeof *c->pairs);
    tn_status status = c->pairs && chosen.has_partner ? TN_OK : tn_fail_nomem(err);
    if (!status)
        status = tn_chooser_begin(&chosen.names, c->o.only, c->o.nonly, err);
    if (!status)
        status = tn_renames_begin(&chosen.renames, c->o.rename, c->o.nrename, err);
    if (!status)
        status = add_file_meta(c, err);
    if (!status)
        status = plan_first(c, &chosen, err);
    if (!status)
        status = plan_second(c, &chosen, err);
    if (!status)
        status = check_choice(c, &chosen, err);
    tn_chooser_end(&chosen.names);
    tn_renames_end(&chosen.renames);
    return status;
}

/* ---- the whole ---- */

static void free_sides(void *scratch)
{
    sides *s = scratch;
    for (int i = 0; i < 2; i++)
        tn_worker_free(&s->side[i].worker);
    tn_limiter_free(&s->limiter);
    tn_arena_free(&s->arena);
}

static void announce(const comparison *c)
{
    for (int i = 0; i < 2; i++) {
        tn_expected e = { .file = c->places[i].file };
        for (size_t k = 0; k < c->npairs; k++)
            if (c->pairs[k].a && c->pairs[k].b)
                tn_expect_tensor(&e, tensor_of(&c->pairs[k], i));
        tn_expect_end(&e);
    }
}

static tn_status run(comparison *c, tn_error *err)
{
    const tn_walk_task task = {
        .work = work, .join = join, .context = c, .scratch_size = sizeof(sides),
        .result_size = ITEM_PAIRS * sizeof(outcome), .free_scratch = free_sides, .save = save, .load = load,
    };
    announce(c);
    TN_TRY(tn_walk_run(&c->walk, &c->items, &task, err));
    TN_TRY(choose_again(c, err));
    return tn_walk_run(&c->walk, &c->items, &task, err);
}

static tn_status ask(const comparison *c, tn_error *err)
{
    const tn_compare_options *o = &c->o;
    const uint64_t numbers[] = { o->ignore_meta, tn_work_bits(o->tolerance), tn_work_bits(o->relative) };
    const tn_asked asked = { .verb = "diff", .files = { c->places[0].file, c->places[1].file }, .nfiles = 2,
                             .lists = { { "only", o->only, o->nonly }, { "rename", o->rename, o->nrename } },
                             .nlists = 2, .numbers = numbers, .nnumbers = 3 };
    return tn_together_ask(o->together, &asked, err);
}

static tn_difference difference_of(const pair *p)
{
    static const findings nothing;
    const findings *f = p->found ? p->found : &nothing;
    const tn_distance *d = &f->distance;
    return (tn_difference){
        .what = p->what | (d->differing ? TN_DIFF_VALUES : 0), .a = p->a, .b = p->b, .part = f->part,
        .elements = p->elements, .differing = d->differing, .first = d->first, .bits = d->bits,
        .specials = d->specials, .max_abs = d->max_abs, .max_rel = d->max_rel, .max_ulp = d->max_ulp,
        .sqnr = tn_distance_sqnr(d), .why = f->why, .reason = f->reason, .value = f->value,
        .flushed = d->flushed, .saturated = d->saturated,
    };
}

/* Returns how many differ. */
static size_t report_pairs(const comparison *c, tn_compare_fn report)
{
    size_t different = 0;
    for (size_t i = 0; i < c->npairs; i++) {
        const tn_difference d = difference_of(&c->pairs[i]);
        different += d.what != 0;
        if (report)
            report(c->o.context, &d);
    }
    return different;
}

static void free_pairs(comparison *c)
{
    for (size_t i = 0; i < c->npairs; i++)
        for (int k = 0; k < 2 && c->pairs[i].values; k++)
            tn_view_free(c->pairs[i].values[k]);
    free(c->pairs);
}

tn_status tn_compare(const tn_file *a, const tn_file *b, const tn_compare_options *given,
                     tn_compare_fn report, size_t *different, tn_error *err)
{
    TN_GIVEN(a, "two files", err);
    TN_GIVEN(b, "two files", err);
    comparison c = { .places = { { .file = a, .unchecked = true }, { .file = b, .unchecked = true } },
                     .held = { { .max_bytes = a->max_bytes }, { .max_bytes = b->max_bytes } } };
    tn_error why = { .offset = TN_NO_OFFSET };
    TN_TRY(tn_take_options(TN_SIZED(tn_compare_options, context), &c.o, given, err));
    c.walk = (tn_walk){ .jobs = c.o.jobs, .progress = c.o.progress, .context = c.o.context,
                        .together = c.o.together };
    tn_status status = plan(&c, &why);
    if (!status)
        status = ask(&c, &why);
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
    free_pairs(&c);
    tn_arena_free(&c.arena);
    tn_arena_free(&c.found);
    return status;
}
