/* container/ranges.c - how the data of entries lies in the file.
 *
 * Files are nearly always written in the order of their index, which is seen
 * as the entries are added; only when it is not so are the ranges sorted. */
#include "base/error.h"
#include "container/file.h"

#include <stdlib.h>

typedef struct range {
    uint64_t offset, size;
    uint32_t shard, entry;
} range;

static int by_place(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->entry < y->entry ? -1 : 1;
}

static tn_status overlap(const tn_file *f, const range *a, const range *b, tn_error *err)
{
    return tn_fail(err, TN_ERR_CORRUPT, f->at[b->entry], "tensor %s: its data at %llu overlaps that of %s, which ends at %llu",
                   tn_quote_z(f->tensors[b->entry].name).text, (unsigned long long)b->offset,
                   tn_quote_z(f->tensors[a->entry].name).text, (unsigned long long)(a->offset + a->size));
}

static tn_status hole(const char *name, uint64_t at, uint64_t from, uint64_t to, tn_error *err)
{
    return tn_fail(err, TN_ERR_CORRUPT, at, "the data section has a hole: expected data at %llu but found %s at %llu",
                   (unsigned long long)from, name ? tn_quote_z(name).text : "its end", (unsigned long long)to);
}

/* In a set of files the message says which one. */
static tn_status in_shard(const tn_file *f, size_t shard, tn_status status, tn_error *err)
{
    if (err && f->nshards > 1)
        tn_error_in_file(err, f->shards[shard].path);
    return status;
}

/* The first entry of each type with the range at hand: what the next one of that type is tied to. */
typedef struct group {
    uint64_t offset, size;
    uint32_t shard;
    uint32_t first_plus_1[TN_DTYPE_COUNT];
} group;

/* Same bytes, decoded the same way: the later one is tied to the earlier. */
static void tie(tn_file *f, group *g, const range *r)
{
    const tn_part *p = &f->parts[r->entry];
    if (f->tensors[r->entry].nparts > 1)
        return;                 /* of several parts one range says too little */
    if (r->offset != g->offset || r->size != g->size || r->shard != g->shard)
        *g = (group){ .offset = r->offset, .size = r->size, .shard = r->shard };
    uint32_t *slot = &g->first_plus_1[p->array.dtype];
    const tn_part *first = *slot ? &f->parts[*slot - 1] : NULL;
    if (!first)
        *slot = r->entry + 1;
    else if (p->array.dtype != TN_UNKNOWN && first->storage.encoding == p->storage.encoding &&
             first->storage.order == p->storage.order && first->nbytes == p->nbytes)
        f->tensors[r->entry].tied = f->tensors[*slot - 1].name;
}

/* Ranges in order of place: `last` is the one before that has bytes. */
static tn_status check_next(tn_file *f, tn_tiling tiling, const uint64_t *begin, const range *last, group *g,
                            const range *r, tn_error *err)
{
    bool same_shard = last && last->shard == r->shard;
    uint64_t free_from = same_shard ? last->offset + last->size : begin ? begin[r->shard] : 0;
    if (tiling == TN_TILING_SHARED) {
        bool same = same_shard && r->offset == last->offset && r->size == last->size;
        if (!same && r->offset < free_from)
            return overlap(f, last, r, err);
        tie(f, g, r);
        return TN_OK;
    }
    if (r->offset > free_from)
        return hole(f->tensors[r->entry].name, f->at[r->entry], free_from, r->offset, err);
    if (r->offset < free_from)
        return overlap(f, same_shard ? last : r, r, err);
    return TN_OK;
}

static range range_of(const tn_file *f, size_t i)
{
    const tn_storage *s = &f->parts[i].storage;
    tn_range r = tn_entry_range(s);
    return (range){ .offset = r.offset, .size = r.size, .shard = s->shard, .entry = (uint32_t)i };
}

/* Walks the ranges in order of place; reached[shard] becomes where the data ends. */
static tn_status check_all(tn_file *f, tn_tiling tiling, const uint64_t *begin, const range *sorted, uint64_t *reached,
                           tn_error *err)
{
    range last = { 0 };
    group g = { 0 };
    bool any = false;
    for (size_t i = 0; i < f->count; i++) {
        range r = sorted ? sorted[i] : range_of(f, i);
        if (!r.size)
            continue;           /* empty tensors may lie anywhere */
        tn_status status = check_next(f, tiling, begin, any ? &last : NULL, &g, &r, err);
        if (status)
            return in_shard(f, r.shard, status, err);
        reached[r.shard] = r.offset + r.size;
        last = r;
        any = true;
    }
    return TN_OK;
}

static range *sort_ranges(const tn_file *f)
{
    range *sorted = malloc(f->count * sizeof *sorted);
    for (size_t i = 0; sorted && i < f->count; i++)
        sorted[i] = range_of(f, i);
    if (sorted)
        qsort(sorted, f->count, sizeof *sorted, by_place);
    return sorted;
}

tn_status tn_file_check_ranges(tn_file *f, tn_tiling tiling, const uint64_t *begin, const uint64_t *end, tn_error *err)
{
    if (tiling == TN_TILING_SHARED && !f->disordered)
        return TN_OK;           /* in order and apart: seen as the entries were added */
    range *sorted = f->disordered ? sort_ranges(f) : NULL;
    uint64_t *reached = calloc(f->nshards, sizeof *reached);
    tn_status status = reached && (sorted || !f->disordered) ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; begin && !status && i < f->nshards; i++)
        reached[i] = begin[i];
    if (!status)
        status = check_all(f, tiling, begin, sorted, reached, err);
    for (size_t i = 0; tiling == TN_TILING_EXACT && !status && i < f->nshards; i++)
        if (reached[i] != end[i])
            status = in_shard(f, i, hole(NULL, reached[i], reached[i], end[i], err), err);
    free(sorted);
    free(reached);
    return status;
}
