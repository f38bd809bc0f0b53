/* verbs/compare.c - two open files, tensor by tensor. */
#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/vector.h"
#include "verbs/saturation.h"
#include "tensor/code.h"
#include "tensor/form.h"
#include "cast/summary.h"
#include "pipeline/values.h"

#include <stdlib.h>
#include <string.h>

/* Two tensors of one name, one that has no partner, or the files' metadata. */
typedef struct pair {
    tn_difference difference;   /* what there is to report */
    tn_distance   distance;
    bool          by_value;     /* one has scales: values are compared, not parts */
    tn_value_plan a, b;         /* by value: how it is had */
    uint64_t      equal_bytes;  /* of items with equal chunks, until the pair is known to differ and they are
                                 * to be read again */
} pair;

/* Elements [from, from + n) of part `part` of a pair. */
typedef struct item {
    size_t   pair;
    uint32_t part;
    uint64_t from, n;
    bool     some_equal;        /* it has chunks that are the same bytes: their signal was not summed up */
} item;

/* One side of an item: what is left of its window. */
typedef struct side {
    tn_value_stream values;
    const uint8_t *window;
    size_t         size;
    unsigned       bits;        /* of an element */
} side;

typedef struct sides {
    side       a, b;
    tn_limiter limiter;         /* of B, where it is scaled by a datatype */
    uint64_t   left;            /* elements still to come */
} sides;

/* What work() leaves for emit(). */
typedef struct outcome {
    tn_distance distance;
    bool        some_equal;
} outcome;

/* Chunks of equal bytes are passed over at the speed of memory, without a look
 * at their values.  Only when a tensor turns out to differ elsewhere are these
 * needed, for the signal: then its items are worked on again. */
typedef struct comparison {
    const tn_file *a, *b;
    tn_compare_options o;
    pair          *pairs;
    size_t         npairs;
    item          *items;
    size_t         nitems, cap;
    bool           again;       /* the second time: only equal chunks count */
    sides         *workers;     /* one a worker */
    outcome       *found;       /* one per result */
    uint64_t       progress, total;     /* the total grows with what is to be read again */
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

static tn_status name_file(const tn_file *f, const tn_part *p, tn_status status, tn_error *err)
{
    if (status)
        tn_error_in_file(err, tn_file_shard_name(f, p->storage.shard));
    return status;
}

/* The parts of both sides that an item is about. */
static const tn_part *part_a(const comparison *c, const item *it)
{
    return &c->pairs[it->pair].difference.a->parts[it->part];
}
static const tn_part *part_b(const comparison *c, const item *it)
{
    return &c->pairs[it->pair].difference.b->parts[it->part];
}

/* The types of what is compared. */
static tn_dtype type_a(const comparison *c, const item *it)
{
    return c->pairs[it->pair].by_value ? c->pairs[it->pair].a.dtype : part_a(c, it)->array.dtype;
}

static tn_dtype type_b(const comparison *c, const item *it)
{
    return c->pairs[it->pair].by_value ? c->pairs[it->pair].b.dtype : part_b(c, it)->array.dtype;
}

/* Bytes of n elements. */
static uint64_t bytes_of(const tn_part *p, uint64_t n)
{
    return tn_packed_bytes(n, tn_dtype_get(p->array.dtype)->bits);
}

/* Bytes that are read of A for an item, as progress counts them. */
static uint64_t bytes_to_read(const comparison *c, const item *it)
{
    const pair *p = &c->pairs[it->pair];
    return p->by_value ? tn_packed_bytes(it->n, p->a.bits) : bytes_of(part_a(c, it), it->n);
}

/* `plan` is NULL where parts are compared. */
static tn_status open_side(side *s, const tn_file *f, const tn_tensor *t, const item *it, tn_dtype type,
                           const tn_value_plan *plan, tn_error *err)
{
    const tn_part *p = &t->parts[it->part];
    s->size = 0;
    s->bits = tn_dtype_get(type)->bits;
    tn_status status = plan ? tn_value_stream_open(&s->values, f, t, plan, it->from, it->n, err)
                            : tn_stream_open(&s->values.stream, f, t, p, bytes_of(p, it->from),
                                             bytes_of(p, it->n), TN_CHECKSUM_NONE, err);
    return name_file(f, p, status, err);
}

/* One of the two. */
static tn_status open_one(const comparison *c, const item *it, sides *s, bool b, tn_error *err)
{
    const pair *p = &c->pairs[it->pair];
    return b ? open_side(&s->b, c->b, p->difference.b, it, type_b(c, it), p->by_value ? &p->b : NULL, err)
             : open_side(&s->a, c->a, p->difference.a, it, type_a(c, it), p->by_value ? &p->a : NULL, err);
}

/* Sides whose values are made first, for they need windows only meanwhile; then the windows of the others
 * at once. */
static tn_status open_sides(const comparison *c, const item *it, sides *s, tn_error *err)
{
    const pair *p = &c->pairs[it->pair];
    const bool made[2] = { p->by_value && p->a.made, p->by_value && p->b.made };
    const tn_stream_wish all[2] = { { &s->a.values.stream, c->a, p->difference.a, part_a(c, it) },
                                    { &s->b.values.stream, c->b, p->difference.b, part_b(c, it) } };
    tn_stream_wish wishes[2];
    size_t n = 0;
    tn_status status = TN_OK;
    s->left = it->n;
    for (int b = 0; b < 2 && !status; b++) {
        if (made[b])
            status = open_one(c, it, s, b, err);
        else
            wishes[n++] = all[b];
    }
    if (!status && n)
        status = name_file(wishes[0].file, wishes[0].part, tn_stream_reserve(wishes, n, err), err);
    for (int b = 0; b < 2 && !status; b++)
        if (!made[b])
            status = open_one(c, it, s, b, err);
    return status;
}

/* What the values of B can be at most; what was rotated cannot be held against a scale. */
static tn_status begin_limits(const comparison *c, const item *it, sides *s, tn_distance *d, tn_error *err)
{
    const pair *p = &c->pairs[it->pair];
    if (!p->by_value || !p->b.made || p->difference.b->scaling->rotation.size)
        return TN_OK;
    d->limits = &s->limiter.limits;
    return tn_limiter_begin(&s->limiter, s->b.values.made, err);
}

static void advance(side *s, size_t elements)
{
    size_t used = (elements * s->bits + 7) / 8;
    s->window += used;
    s->size -= used;
}

/* The next elements of both sides, as many as both have at hand: a window
 * holds whole groups of 8.  *n is 0 at the end, which is where the data must end too. */
static tn_status next_chunks(const comparison *c, const item *it, sides *s, const uint8_t **x,
                             const uint8_t **y, size_t *n, tn_error *err)
{
    tn_status status = TN_OK;
    if (!s->a.size)
        status = name_file(c->a, part_a(c, it),
                           tn_stream_next(&s->a.values.stream, &s->a.window, &s->a.size, err), err);
    if (!status && !s->b.size)
        status = name_file(c->b, part_b(c, it),
                           tn_stream_next(&s->b.values.stream, &s->b.window, &s->b.size, err), err);
    *n = 0;
    if (status || !s->left)
        return status;
    uint64_t in_a = (uint64_t)s->a.size * 8 / s->a.bits, in_b = (uint64_t)s->b.size * 8 / s->b.bits;
    *n = (size_t)(in_a < in_b ? in_a : in_b);
    if (*n > s->left)           /* bits that fill the last byte */
        *n = (size_t)s->left;
    s->left -= *n;
    *x = s->a.window;
    *y = s->b.window;
    advance(&s->a, *n);
    advance(&s->b, *n);
    return TN_OK;
}

static bool same_bytes(const comparison *c, const item *it, const uint8_t *x, const uint8_t *y, size_t n)
{
    unsigned bits = tn_dtype_get(type_a(c, it))->bits;
    return type_a(c, it) == type_b(c, it) && memcmp(x, y, (n * bits + 7) / 8) == 0;
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

static void add_chunks(const comparison *c, const item *it, const uint8_t *x, const uint8_t *y, uint64_t at,
                       size_t n, outcome *found)
{
    bool same = same_bytes(c, it, x, y, n);
    if (same && c->again)
        found->distance.signal += signal_of(type_a(c, it), x, n);
    else if (same)
        found->some_equal = true;
    else if (!c->again)
        tn_distance_add(&found->distance, type_a(c, it), x, type_b(c, it), y, at, n);
}

static tn_status work(void *context, uint64_t number, tn_pool_use use, tn_error *err)
{
    comparison *c = context;
    const item *it = &c->items[number];
    sides *s = &c->workers[use.scratch];
    outcome *found = &c->found[use.result];
    *found = (outcome){ 0 };
    tn_status status = open_sides(c, it, s, err);
    if (!status)
        status = begin_limits(c, it, s, &found->distance, err);
    for (uint64_t at = it->from; !status;) {
        const uint8_t *x = NULL, *y = NULL;
        size_t n;
        status = next_chunks(c, it, s, &x, &y, &n, err);
        if (status || !n)
            break;
        add_chunks(c, it, x, y, at, n, found);
        at += n;
    }
    tn_stream_close(&s->a.values.stream);
    tn_stream_close(&s->b.values.stream);
    return status;
}

static tn_status emit(void *context, uint64_t number, unsigned result, tn_error *err)
{
    comparison *c = context;
    item *it = &c->items[number];
    pair *p = &c->pairs[it->pair];
    const outcome *found = &c->found[result];
    uint64_t nbytes = bytes_to_read(c, it);
    if (found->distance.differing && !p->distance.differing)
        p->difference.part = part_a(c, it);
    tn_distance_join(&p->distance, &found->distance);
    it->some_equal = found->some_equal;
    p->equal_bytes += it->some_equal ? nbytes : 0;
    if (p->distance.noise > 0) {
        c->total += p->equal_bytes;
        p->equal_bytes = 0;
    }
    c->progress += nbytes;
    if (c->o.progress && c->o.progress(c->o.context, c->progress, c->total))
        return tn_fail(err, TN_ERR_CANCELLED, TN_NO_OFFSET, "cancelled");
    return TN_OK;
}

/* Leaves the items whose equal chunks are needed. */
static void choose_again(comparison *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->nitems; i++)
        if (c->items[i].some_equal && c->pairs[c->items[i].pair].distance.noise > 0)
            c->items[kept++] = c->items[i];
    c->nitems = kept;
    c->again = true;
}

/* ---- what to compare ---- */

static tn_status push_item(comparison *c, item it, tn_error *err)
{
    item *grown = tn_grow(c->items, c->nitems, &c->cap, sizeof it);
    if (!grown)
        return tn_fail_nomem(err);
    c->items = grown;
    c->items[c->nitems++] = it;
    c->total += bytes_to_read(c, &it);
    c->pairs[it.pair].difference.elements += it.n;
    return TN_OK;
}

static tn_status push_items(comparison *c, size_t number, uint32_t part, uint64_t count, bool split,
                            tn_error *err)
{
    tn_status status = TN_OK;
    for (uint64_t from = 0; from < count && !status;) {
        uint64_t n = split && count - from > TN_SPAN ? TN_SPAN : count - from;
        status = push_item(c, (item){ .pair = number, .part = part, .from = from, .n = n }, err);
        from += n;
    }
    return status;
}

static tn_status push_values(comparison *c, size_t number, tn_error *err)
{
    const pair *p = &c->pairs[number];
    return push_items(c, number, 0, p->a.count, p->a.splits && p->b.splits, err);
}

static tn_status push_part(comparison *c, size_t number, uint32_t part, tn_error *err)
{
    const tn_difference *d = &c->pairs[number].difference;
    const tn_part *a = &d->a->parts[part], *b = &d->b->parts[part];
    uint64_t count = 0;
    tn_shape_count(a->array.rank, a->array.shape, &count);
    return push_items(c, number, part, count, tn_part_splits(a) && tn_part_splits(b), err);
}

static bool same_shape(const tn_array *a, const tn_array *b)
{
    return a->rank == b->rank && (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

static bool unread(comparison *c, pair *p, const tn_error *err)
{
    p->difference.what |= TN_DIFF_UNREAD;
    p->difference.why = tn_arena_text(&c->arena, err->text, strlen(err->text));
    return false;
}

/* Tensors of one form and shape whose parts are not alike. */
static bool unlike(comparison *c, pair *p, const tn_part *a, const tn_part *b)
{
    tn_error err;
    if (p->difference.what & (TN_DIFF_FORM | TN_DIFF_SHAPE))
        return false;
    tn_fail(&err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET,
            "part %s has %lld and %lld entries: --form dense makes them comparable", tn_quote_z(a->role).text,
            (long long)(a->array.rank ? a->array.shape[0] : 1),
            (long long)(b->array.rank ? b->array.shape[0] : 1));
    return unread(c, p, &err);
}

/* Whether the parts can be set against each other; UNREAD with the reason if not readable. */
static bool comparable(comparison *c, pair *p)
{
    const tn_tensor *x = p->difference.a, *y = p->difference.b;
    tn_error err;
    if (x->nparts != y->nparts)
        return false;
    for (uint32_t k = 0; k < x->nparts; k++) {
        const tn_part *a = &x->parts[k], *b = &y->parts[k];
        if (strcmp(a->role, b->role) != 0 || !same_shape(&a->array, &b->array))
            return unlike(c, p, a, b);
        if (tn_part_readable(x, a, &err) || tn_part_readable(y, b, &err) ||
            tn_kept_check_spooled(c->a, x, a, &err) || tn_kept_check_spooled(c->b, y, b, &err))
            return unread(c, p, &err);
    }
    return true;
}

/* A scaled tensor against another or a dense one: what counts is what they stand for. */
static tn_status find_values(comparison *c, pair *p, bool *found, tn_error *err)
{
    const tn_tensor *a = p->difference.a, *b = p->difference.b;
    tn_error why = { .status = TN_OK };
    p->by_value = a->form == TN_FORM_SCALED || b->form == TN_FORM_SCALED;
    *found = p->by_value && !(p->difference.what & TN_DIFF_SHAPE) && !tn_form_is_sparse(a->form) && !tn_form_is_sparse(b->form);
    if (*found && tn_keep_scales(&c->held[0], a, err))
        return tn_error_in_file(err, tn_file_shard_name(c->a, 0));
    if (*found && tn_keep_scales(&c->held[1], b, err))
        return tn_error_in_file(err, tn_file_shard_name(c->b, 0));
    if (*found &&
        (tn_plan_values(c->a, a, &c->arena, &p->a, &why) || tn_plan_values(c->b, b, &c->arena, &p->b, &why)))
        *found = unread(c, p, &why);
    if (why.status == TN_ERR_NOMEM && err)
        *err = why;
    return why.status == TN_ERR_NOMEM ? TN_ERR_NOMEM : TN_OK;
}

static tn_status add_pair(comparison *c, const tn_tensor *a, const tn_tensor *b, tn_error *err)
{
    size_t number = c->npairs++;
    pair *p = &c->pairs[number];
    tn_difference *d = &p->difference;
    tn_status status = TN_OK;
    bool same = true;
    *d = (tn_difference){ .a = a, .b = b, .what = !b ? TN_DIFF_ONLY_A : !a ? TN_DIFF_ONLY_B : 0 };
    if (a && b) {
        d->what |= strcmp(tn_tensor_form_name(a), tn_tensor_form_name(b)) ? TN_DIFF_FORM : 0;
        d->what |= a->dtype != b->dtype ? TN_DIFF_DTYPE : 0;
        d->what |= a->rank != b->rank || (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape))
                       ? TN_DIFF_SHAPE
                       : 0;
        if (!c->o.ignore_meta)
            status = same_meta(a->meta, a->nmeta, b->meta, b->nmeta, &same, err);
        d->what |= same ? 0 : TN_DIFF_META;
        d->what |= a->layout && b->layout && strcmp(a->layout, b->layout) != 0 ? TN_DIFF_LAYOUT : 0;
        bool values = false;
        if (!status)
            status = find_values(c, p, &values, err);
        if (values && !status)
            status = push_values(c, number, err);
        else if (!p->by_value && comparable(c, p))
            for (uint32_t k = 0; k < a->nparts && !status; k++)
                status = push_part(c, number, k, err);
    }
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
            status = add_pair(c, NULL, t, err);
    }
    return status;
}

/* ---- the whole ---- */

static tn_status run(comparison *c, tn_error *err)
{
    tn_pool *pool;
    tn_status status = tn_pool_new(c->o.jobs, &pool, err);
    if (status)
        return status;
    unsigned jobs = tn_pool_jobs(pool);
    const tn_ordered task = { work, emit, c };
    c->workers = calloc(jobs, sizeof *c->workers);
    c->found = calloc(tn_pool_results(pool), sizeof *c->found);
    status = c->workers && c->found ? tn_pool_run(pool, c->nitems, &task, err) : tn_fail_nomem(err);
    if (!status) {
        choose_again(c);
        status = tn_pool_run(pool, c->nitems, &task, err);
    }
    for (unsigned i = 0; c->workers && i < jobs; i++) {
        tn_value_stream_free(&c->workers[i].a.values);
        tn_value_stream_free(&c->workers[i].b.values);
        tn_limiter_free(&c->workers[i].limiter);
    }
    free(c->workers);
    free(c->found);
    tn_pool_free(pool);
    return status;
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
    free(c.pairs);
    tn_arena_free(&c.arena);
    free(c.items);
    return status;
}
