/* store/ranges.c - overlaps, holes and sharing between the data of entries.
 *
 * Nearly all files store their data in the order of their index, which is noticed as the entries are added.
 * Only if not are the ranges sorted. */
#include "store/ranges.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/file.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_place(const void *a, const void *b)
{
    const tn_piece *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void tn_sort_by_place(void *items, size_t n, size_t item_size)
{
    qsort(items, n, item_size, by_place);
}

static tn_status overlap(const tn_file *f, const tn_piece *a, const tn_piece *b, tn_error *err)
{
    tn_status status = tn_fail_at(err, TN_ERR_CORRUPT, f->at[b->number],
                                  "its data at %" PRIu64 " overlaps that of %s, which ends at %" PRIu64,
                                  b->begin, tn_quote_z(f->tensors[a->number].name).text, a->end);
    return tn_in_tensor(status, f->tensors[b->number].name, err);
}

static tn_status hole(const char *name, uint64_t at, uint64_t from, uint64_t to, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_CORRUPT, at,
                      "the data section has a hole: expected data at %" PRIu64 " but found %s at %" PRIu64,
                      from, name ? tn_quote_z(name).text : "its end", to);
}

/* In a set of files the error names the shard. */
static tn_status in_shard(const tn_file *f, size_t shard, tn_status status, tn_error *err)
{
    return f->nshards > 1 ? tn_in_file(status, f->shards[shard].path, err) : status;
}

/* The first entry of each type with the present range: the next ones of that type are tied to it. */
typedef struct group {
    uint64_t begin, end;
    uint32_t shard;
    uint32_t first_plus_1[TN_DTYPE_COUNT];
} group;

/* Codes mean the same only if their datatype and shape are the same. */
static bool has_same_values(const tn_tensor *a, const tn_tensor *b)
{
    const char *type = a->scaling ? a->scaling->datatype : NULL;
    const char *other = b->scaling ? b->scaling->datatype : NULL;
    if (!type && !other)
        return true;
    return type && other && strcmp(type, other) == 0 && tn_same_shape(a->rank, a->shape, b->rank, b->shape);
}

/* Same bytes, decoded the same way: the later one is tied to the earlier. */
static void tie(tn_file *f, group *g, const tn_piece *r)
{
    const tn_part *p = &f->parts[r->number];
    if (f->tensors[r->number].nparts > 1)
        return;                 /* several parts: one range is not all of it */
    if (r->begin != g->begin || r->end != g->end || r->shard != g->shard)
        *g = (group){ .begin = r->begin, .end = r->end, .shard = r->shard };
    uint32_t *slot = &g->first_plus_1[p->array.dtype];
    const tn_part *first = *slot ? &f->parts[*slot - 1] : NULL;
    if (!first)
        *slot = (uint32_t)r->number + 1;
    else if (p->array.dtype != TN_UNKNOWN && first->stored->encoding == p->stored->encoding &&
             first->stored->order == p->stored->order && first->nbytes == p->nbytes &&
             has_same_values(&f->tensors[*slot - 1], &f->tensors[r->number]))
        f->tensors[r->number].tied = f->tensors[*slot - 1].name;
}

static tn_status check_shared(const tn_file *f, const tn_piece *last, const tn_piece *r, tn_error *err)
{
    bool same = r->begin == last->begin && r->end == last->end;
    return !same && tn_overlaps(last, r) ? overlap(f, last, r, err) : TN_OK;
}

/* The range must begin at `free_from`: where the data of its shard ends so far. */
static tn_status check_exact(const tn_file *f, const tn_piece *last, const tn_piece *r, uint64_t free_from,
                             tn_error *err)
{
    if (r->begin > free_from)
        return hole(f->tensors[r->number].name, f->at[r->number], free_from, r->begin, err);
    if (r->begin < free_from)
        return overlap(f, last->shard == r->shard ? last : r, r, err);
    return TN_OK;
}

static tn_piece piece_of(const tn_file *f, size_t i)
{
    const tn_stored *s = f->parts[i].stored;
    tn_range r = tn_entry_range(s);
    return (tn_piece){ .begin = r.offset, .end = r.offset + r.size, .shard = s->shard, .number = i };
}

/* Goes through the ranges in order of place; reached[shard] becomes where its data ends. */
static tn_status check_all(tn_file *f, tn_tiling tiling, const tn_piece *sorted, uint64_t *reached,
                           tn_error *err)
{
    tn_piece last = { .shard = UINT32_MAX };
    group g = { 0 };
    for (size_t i = 0; i < f->count; i++) {
        tn_piece r = sorted ? sorted[i] : piece_of(f, i);
        if (r.begin == r.end)
            continue;           /* empty tensors may be anywhere */
        tn_status status = tiling == TN_TILING_SHARED
                               ? check_shared(f, &last, &r, err)
                               : check_exact(f, &last, &r, reached[r.shard], err);
        if (status)
            return in_shard(f, r.shard, status, err);
        if (tiling == TN_TILING_SHARED)
            tie(f, &g, &r);
        reached[r.shard] = r.end;
        last = r;
    }
    return TN_OK;
}

static tn_piece *sort_ranges(const tn_file *f)
{
    tn_piece *sorted = malloc(f->count * sizeof *sorted);
    for (size_t i = 0; sorted && i < f->count; i++)
        sorted[i] = piece_of(f, i);
    if (sorted)
        tn_sort_by_place(sorted, f->count, sizeof *sorted);
    return sorted;
}

/* ---- views ---- */

/* A view sorts by all that its values depend on, then by its number. */
typedef struct view {
    const tn_part *part;
    size_t         number;
} view;

static int by_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_extents(const int64_t *a, const int64_t *b, uint32_t rank)
{
    if (a == b)
        return 0;
    if (!a || !b)
        return a ? 1 : -1;
    int order = 0;
    for (uint32_t i = 0; i < rank && !order; i++)
        order = by_u64((uint64_t)a[i], (uint64_t)b[i]);
    return order;
}

/* 0: both parts have the same values by the same bytes. */
static int compare_parts(const tn_part *x, const tn_part *y)
{
    const tn_stored *a = tn_stored_of(x), *b = tn_stored_of(y);
    const tn_stored_more *more = tn_stored_more_of(x), *than = tn_stored_more_of(y);
    const uint64_t numbers[][2] = {
        { a->shard, b->shard }, { a->offset, b->offset }, { a->size, b->size }, { more->skip, than->skip },
        { x->array.dtype, y->array.dtype }, { a->order, b->order }, { a->encoding, b->encoding },
        { x->array.rank, y->array.rank },
    };
    int order = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !order; i++)
        order = by_u64(numbers[i][0], numbers[i][1]);
    if (!order)
        order = by_extents(x->array.shape, y->array.shape, x->array.rank);
    return order ? order : by_extents(more->stride, than->stride, x->array.rank);
}

static int by_part(const void *a, const void *b)
{
    const view *x = a, *y = b;
    int order = compare_parts(x->part, y->part);
    return order ? order : by_u64(x->number, y->number);
}

/* Tensors of one part with elements that this build reads. */
static bool can_tie(const tn_tensor *t)
{
    const tn_part *p = t->parts;
    const tn_stored_more *more = tn_stored_more_of(p);
    return t->nparts == 1 && p->nbytes && !more->never && !more->opaque && !more->derive;
}

static tn_status tie_views(tn_file *f, tn_error *err)
{
    size_t n = 0, first = 0;
    view *views = malloc(f->count * sizeof *views);
    TN_NEED(views, err);
    for (size_t i = 0; i < f->count; i++)
        if (can_tie(&f->tensors[i]))
            views[n++] = (view){ f->tensors[i].parts, i };
    qsort(views, n, sizeof *views, by_part);
    for (size_t i = 1; i < n; i++) {
        if (compare_parts(views[first].part, views[i].part) == 0)
            f->tensors[views[i].number].tied = f->tensors[views[first].number].name;
        else
            first = i;
    }
    free(views);
    return TN_OK;
}

/* Views that share bytes may make a small file large: the limit is the most that deflate can do. */
static tn_status check_growth(const tn_file *f, tn_error *err)
{
    uint64_t all = 0, stored = 0, most = 0;
    bool fits = true;
    for (size_t i = 0; i < f->nshards; i++)
        stored += tn_source_size(f->shards[i].source);
    if (!tn_mul_u64(stored, TN_GROWTH_MAX, &most))
        most = UINT64_MAX;
    for (size_t i = 0; i < f->count && fits; i++)
        for (uint32_t k = 0; k < f->tensors[i].nparts && fits; k++)
            fits = tn_add_u64(all, f->tensors[i].parts[k].nbytes, &all) && all <= most;
    if (fits)
        return TN_OK;
    return tn_fail(err, TN_ERR_LIMIT, "its tensors share bytes and take more than %d times the %" PRIu64
                   " bytes of the file", TN_GROWTH_MAX, stored);
}

static tn_status check_views(tn_file *f, tn_error *err)
{
    TN_TRY(check_growth(f, err));
    return f->disordered ? tie_views(f, err) : TN_OK;
}

tn_status tn_file_check_ranges(tn_file *f, tn_tiling tiling, const uint64_t *begin, const uint64_t *end,
                               tn_error *err)
{
    if (tiling == TN_TILING_VIEWS)
        return check_views(f, err);
    if (tiling == TN_TILING_SHARED && !f->disordered)
        return TN_OK;           /* sorted and disjoint, as was seen when the entries were added */
    tn_piece *sorted = f->disordered ? sort_ranges(f) : NULL;
    uint64_t *reached = calloc(f->nshards, sizeof *reached);
    tn_status status = reached && (sorted || !f->disordered) ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; begin && !status && i < f->nshards; i++)
        reached[i] = begin[i];
    if (!status)
        status = check_all(f, tiling, sorted, reached, err);
    for (size_t i = 0; tiling == TN_TILING_EXACT && !status && i < f->nshards; i++)
        if (reached[i] != end[i])
            status = in_shard(f, i, hole(NULL, reached[i], reached[i], end[i], err), err);
    free(sorted);
    free(reached);
    return status;
}
