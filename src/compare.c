/* compare.c - two open files, tensor by tensor. */
#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/vector.h"
#include "container/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements are taken in chunks whose bytes are whole for every type; spans of
 * chunks are what threads take. */
enum { CHUNK = 32768, SPAN = 64 * CHUNK };

/* Elements [from, from + n) of part `part` of a pair; n may be 0. */
typedef struct item {
    size_t   pair;
    uint32_t part;
    uint64_t from, n;
    bool     last;              /* of its pair */
} item;

/* One side of an item: windows re-cut into chunks. */
typedef struct side {
    tn_stream      stream;
    const uint8_t *window;
    size_t         left;
    uint8_t        gather[CHUNK * 16];
} side;

typedef struct sides {
    side a, b;
} sides;

typedef struct comparison {
    const tn_file *a, *b;
    tn_compare_options o;
    tn_compare_fn  report;
    tn_difference *pairs;
    char         (*why)[200];   /* for UNREAD; one a pair */
    size_t         npairs;
    item          *items;
    size_t         nitems, cap;
    sides         *workers;
    tn_difference *found;       /* one a slot */
    size_t         different;
    uint64_t       progress, total;
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
static tn_status same_meta(const tn_meta *a, size_t na, const tn_meta *b, size_t nb, bool *same, tn_error *err)
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

/* The next n bytes of one side in one piece. */
static tn_status next_bytes(side *s, size_t n, const uint8_t **bytes, tn_error *err)
{
    for (size_t have = 0; have < n;) {
        if (!s->left) {
            tn_status status = tn_stream_next(&s->stream, &s->window, &s->left, err);
            if (status)
                return status;
            if (!s->left)
                return tn_fail(err, TN_ERR_TRUNCATED, TN_NO_OFFSET, "a tensor's data ends early");
        }
        if (!have && s->left >= n) {
            *bytes = s->window;
            s->window += n;
            s->left -= n;
            return TN_OK;
        }
        size_t take = s->left < n - have ? s->left : n - have;
        memcpy(s->gather + have, s->window, take);
        have += take;
        s->window += take;
        s->left -= take;
    }
    *bytes = s->gather;
    return TN_OK;
}

static size_t chunk_bytes(const tn_part *p, uint64_t elements)
{
    return (size_t)((elements * tn_dtype_get(p->array.dtype)->bits + 7) / 8);
}

/* Element i of a chunk as up to 128 bits. */
static void element_bits(unsigned bits, const uint8_t *data, uint64_t i, uint64_t out[2])
{
    out[0] = out[1] = 0;
    if (bits >= 8) {
        memcpy(out, data + i * (bits / 8), bits / 8);
        return;
    }
    uint64_t at = i * bits;
    unsigned shift = (unsigned)(at % 8);
    out[0] = (unsigned)data[at / 8] >> shift;
    if (shift + bits > 8)
        out[0] |= (uint64_t)data[at / 8 + 1] << (8 - shift);
    out[0] &= (1u << bits) - 1;
}

static double as_double(tn_value v)
{
    switch (v.kind) {
    case TN_KIND_INT: case TN_KIND_FIXED: return (double)v.i;
    case TN_KIND_UINT: case TN_KIND_BOOL: return (double)v.u;
    default: return v.re;
    }
}

/* |a - b| and |a|; integers exactly as far as a double can say it. */
static void distance(tn_value a, tn_value b, double *difference, double *size)
{
    if (a.kind == b.kind && (a.kind == TN_KIND_INT || a.kind == TN_KIND_FIXED)) {
        *difference = (double)(a.i > b.i ? (uint64_t)a.i - (uint64_t)b.i : (uint64_t)b.i - (uint64_t)a.i);
        *size = fabs((double)a.i);
    } else if (a.kind == b.kind && a.kind == TN_KIND_UINT) {
        *difference = (double)(a.u > b.u ? a.u - b.u : b.u - a.u);
        *size = (double)a.u;
    } else {
        *difference = hypot(as_double(a) - as_double(b), a.im - b.im);
        *size = hypot(as_double(a), a.im);
    }
}

static bool is_integer(tn_value v)
{
    return v.kind != TN_KIND_FLOAT && v.kind != TN_KIND_COMPLEX;
}

static bool is_signed(tn_value v)
{
    return v.kind == TN_KIND_INT || v.kind == TN_KIND_FIXED;
}

static bool same_integer(tn_value a, tn_value b)
{
    if (is_signed(a) && is_signed(b))
        return a.i == b.i;
    if (is_signed(a) != is_signed(b)) {
        int64_t i = is_signed(a) ? a.i : b.i;
        return i >= 0 && (uint64_t)i == (is_signed(a) ? b.u : a.u);
    }
    return a.u == b.u;
}

/* A double equals a 64-bit integer only if it is that very integer. */
static bool is_that_integer(double x, tn_value v)
{
    if (is_signed(v))
        return x >= -0x1p63 && x < 0x1p63 && (int64_t)x == v.i && (double)(int64_t)x == x;
    return x >= 0 && x < 0x1p64 && (uint64_t)x == v.u && (double)(uint64_t)x == x;
}

static bool same_double(double x, double y)
{
    return (isnan(x) && isnan(y)) || x == y;        /* both NaN: the same value, whatever the bits */
}

static bool same_value(tn_value a, tn_value b)
{
    if (is_integer(a) && is_integer(b))
        return same_integer(a, b);
    if (is_integer(a) || is_integer(b)) {
        tn_value whole = is_integer(a) ? a : b, other = is_integer(a) ? b : a;
        return other.im == 0 && is_that_integer(other.re, whole);
    }
    return same_double(a.re, b.re) && same_double(a.im, b.im);
}

static void note_difference(tn_difference *d, uint64_t index, tn_value a, tn_value b)
{
    double difference, size;
    if (d->differing++ == 0)
        d->first = index;
    distance(a, b, &difference, &size);
    if (!isfinite(difference)) {
        d->specials++;
        return;
    }
    d->max_abs = fmax(d->max_abs, difference);
    if (size > 0)
        d->max_rel = fmax(d->max_rel, difference / size);
}

static void compare_chunk(tn_difference *d, const tn_part *a, const uint8_t *x, const tn_part *b, const uint8_t *y,
                          uint64_t from, uint64_t n)
{
    bool one_type = a->array.dtype == b->array.dtype;
    unsigned bits = tn_dtype_get(a->array.dtype)->bits;
    if (one_type && memcmp(x, y, chunk_bytes(a, n)) == 0)
        return;
    for (uint64_t i = 0; i < n; i++) {
        if (one_type) {
            uint64_t p[2], q[2];
            element_bits(bits, x, i, p);
            element_bits(bits, y, i, q);
            unsigned differ = (unsigned)(__builtin_popcountll(p[0] ^ q[0]) + __builtin_popcountll(p[1] ^ q[1]));
            if (!differ)
                continue;
            d->bits += differ;
        }
        tn_value u = tn_value_get(a->array.dtype, x, i), v = tn_value_get(b->array.dtype, y, i);
        if (one_type || !same_value(u, v))
            note_difference(d, from + i, u, v);
    }
}

static tn_status name_file(const tn_file *f, const tn_part *p, tn_status status, tn_error *err)
{
    if (status)
        tn_error_in_file(err, tn_file_shard_name(f, p->storage.shard));
    return status;
}

static tn_status open_side(side *s, const tn_file *f, const tn_tensor *t, const tn_part *p, uint64_t from, uint64_t n,
                           tn_error *err)
{
    uint64_t bits = tn_dtype_get(p->array.dtype)->bits, first = from * bits / 8;
    s->left = 0;
    return name_file(f, p, tn_stream_open(&s->stream, f, t, p, first, (n * bits + 7) / 8, TN_CHECKSUM_NONE, err), err);
}

/* Compressed data must end where its last element does. */
static tn_status check_end(side *s, tn_error *err)
{
    tn_status status = s->left ? TN_OK : tn_stream_next(&s->stream, &s->window, &s->left, err);
    return status || !s->left ? status : tn_fail(err, TN_ERR_CORRUPT, TN_NO_OFFSET, "a tensor's data is longer than its shape");
}

static tn_status work(void *context, uint64_t number, tn_seat seat, tn_error *err)
{
    comparison *c = context;
    const item *it = &c->items[number];
    sides *s = &c->workers[seat.worker];
    tn_difference *found = &c->found[seat.slot];
    const tn_difference *pair = &c->pairs[it->pair];
    *found = (tn_difference){ 0 };
    if (!it->n)
        return TN_OK;
    const tn_part *a = &pair->a->parts[it->part], *b = &pair->b->parts[it->part];
    tn_status status = open_side(&s->a, c->a, pair->a, a, it->from, it->n, err);
    if (!status)
        status = open_side(&s->b, c->b, pair->b, b, it->from, it->n, err);
    for (uint64_t at = 0; at < it->n && !status; at += CHUNK) {
        uint64_t n = it->n - at < CHUNK ? it->n - at : CHUNK;
        const uint8_t *x = NULL, *y = NULL;
        status = name_file(c->a, a, next_bytes(&s->a, chunk_bytes(a, n), &x, err), err);
        if (!status)
            status = name_file(c->b, b, next_bytes(&s->b, chunk_bytes(b, n), &y, err), err);
        if (!status)
            compare_chunk(found, a, x, b, y, it->from + at, n);
    }
    if (!status)
        status = name_file(c->a, a, check_end(&s->a, err), err);
    return status ? status : name_file(c->b, b, check_end(&s->b, err), err);
}

static void merge(tn_difference *pair, const item *it, const tn_difference *found)
{
    pair->elements += it->n;
    if (!found->differing)
        return;
    if (!pair->differing) {
        pair->first = found->first;
        pair->part = &pair->a->parts[it->part];
    }
    pair->what |= TN_DIFF_VALUES;
    pair->differing += found->differing;
    pair->bits += found->bits;
    pair->specials += found->specials;
    pair->max_abs = fmax(pair->max_abs, found->max_abs);
    pair->max_rel = fmax(pair->max_rel, found->max_rel);
}

static tn_status emit(void *context, uint64_t number, unsigned slot, tn_error *err)
{
    comparison *c = context;
    const item *it = &c->items[number];
    tn_difference *pair = &c->pairs[it->pair];
    merge(pair, it, &c->found[slot]);
    if (it->last) {
        c->different += pair->what != 0;
        if (c->report)
            c->report(c->o.context, pair);
    }
    if (it->n)
        c->progress += chunk_bytes(&pair->a->parts[it->part], it->n);
    if (c->o.progress && c->o.progress(c->o.context, c->progress, c->total))
        return tn_fail(err, TN_ERR_CANCELLED, TN_NO_OFFSET, "cancelled");
    return TN_OK;
}

/* ---- what to compare ---- */

static tn_status push_item(comparison *c, item it, tn_error *err)
{
    item *grown = tn_grow(c->items, c->nitems, &c->cap, sizeof it);
    if (!grown)
        return tn_fail_nomem(err);
    c->items = grown;
    c->items[c->nitems++] = it;
    if (it.n)
        c->total += chunk_bytes(&c->pairs[it.pair].a->parts[it.part], it.n);
    return TN_OK;
}

static tn_status push_part(comparison *c, size_t pair, uint32_t part, tn_error *err)
{
    const tn_part *a = &c->pairs[pair].a->parts[part], *b = &c->pairs[pair].b->parts[part];
    uint64_t count = 0;
    tn_shape_count(a->array.rank, a->array.shape, &count);
    bool split = a->storage.encoding == TN_ENCODING_RAW && b->storage.encoding == TN_ENCODING_RAW;
    tn_status status = TN_OK;
    for (uint64_t from = 0; from < count && !status;) {
        uint64_t n = split && count - from > SPAN ? SPAN : count - from;
        status = push_item(c, (item){ .pair = pair, .part = part, .from = from, .n = n }, err);
        from += n;
    }
    return status;
}

static bool same_shape(const tn_array *a, const tn_array *b)
{
    return a->rank == b->rank && (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Whether the values can be set against each other; UNREAD with the reason if not readable. */
static bool comparable(tn_difference *d, char why[200])
{
    tn_error err;
    if (d->a->nparts != d->b->nparts)
        return false;
    for (uint32_t k = 0; k < d->a->nparts; k++) {
        const tn_part *a = &d->a->parts[k], *b = &d->b->parts[k];
        if (strcmp(a->role, b->role) != 0 || !same_shape(&a->array, &b->array))
            return false;
        if (tn_part_readable(d->a, a, &err) || tn_part_readable(d->b, b, &err)) {
            d->what |= TN_DIFF_UNREAD;
            memcpy(why, err.text, 199);
            why[199] = '\0';
            d->why = why;
            return false;
        }
    }
    return true;
}

static tn_status add_pair(comparison *c, const tn_tensor *a, const tn_tensor *b, tn_error *err)
{
    size_t pair = c->npairs++;
    tn_difference *d = &c->pairs[pair];
    tn_status status = TN_OK;
    bool same = true;
    *d = (tn_difference){ .a = a, .b = b, .what = !b ? TN_DIFF_ONLY_A : !a ? TN_DIFF_ONLY_B : 0 };
    if (a && b) {
        d->what |= strcmp(a->form, b->form) ? TN_DIFF_FORM : 0;
        d->what |= a->dtype != b->dtype ? TN_DIFF_DTYPE : 0;
        d->what |= a->rank != b->rank || (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape)) ? TN_DIFF_SHAPE : 0;
        if (!c->o.ignore_meta)
            status = same_meta(a->meta, a->nmeta, b->meta, b->nmeta, &same, err);
        d->what |= same ? 0 : TN_DIFF_META;
        if (comparable(d, c->why[pair]))
            for (uint32_t k = 0; k < a->nparts && !status; k++)
                status = push_part(c, pair, k, err);
    }
    if (!status && (!c->nitems || c->items[c->nitems - 1].pair != pair))
        status = push_item(c, (item){ .pair = pair }, err);
    if (!status)
        c->items[c->nitems - 1].last = true;
    return status;
}

static tn_status add_file_meta(comparison *c, tn_error *err)
{
    size_t na, nb;
    bool same = true;
    const tn_meta *a = tn_file_meta(c->a, &na), *b = tn_file_meta(c->b, &nb);
    tn_status status = c->o.ignore_meta ? TN_OK : same_meta(a, na, b, nb, &same, err);
    c->pairs[c->npairs] = (tn_difference){ .what = same ? 0 : TN_DIFF_META };
    return status ? status : push_item(c, (item){ .pair = c->npairs++, .last = true }, err);
}

static tn_status plan(comparison *c, tn_error *err)
{
    size_t n = tn_file_count(c->a) + tn_file_count(c->b) + 1;
    c->pairs = calloc(n, sizeof *c->pairs);
    c->why = calloc(n, sizeof *c->why);
    if (!c->pairs || !c->why)
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

static tn_status run(comparison *c, tn_error *err)
{
    tn_pool *pool;
    tn_status status = plan(c, err);
    if (!status)
        status = tn_pool_new(c->o.jobs, &pool, err);
    if (status)
        return status;
    unsigned jobs = tn_pool_jobs(pool);
    c->workers = calloc(jobs, sizeof *c->workers);
    c->found = calloc(tn_pool_slots(pool), sizeof *c->found);
    status = c->workers && c->found ? tn_pool_run(pool, c->nitems, &(tn_ordered){ work, emit, c }, err) : tn_fail_nomem(err);
    for (unsigned i = 0; c->workers && i < jobs; i++) {
        tn_stream_free(&c->workers[i].a.stream);
        tn_stream_free(&c->workers[i].b.stream);
    }
    free(c->workers);
    free(c->found);
    tn_pool_free(pool);
    return status;
}

tn_status tn_compare(const tn_file *a, const tn_file *b, const tn_compare_options *given, tn_compare_fn report,
                     size_t *different, tn_error *err)
{
    comparison c = { .a = a, .b = b, .report = report };
    tn_error why = { .offset = TN_NO_OFFSET };
    tn_take_options(&c.o, sizeof c.o, given);
    tn_status status = run(&c, &why);
    if (!status && different)
        *different = c.different;
    if (status && err)
        *err = why;
    free(c.pairs);
    free(c.why);
    free(c.items);
    return status;
}
