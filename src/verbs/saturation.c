/* verbs/saturation.c - the last numbers that scales can say. */
#include "verbs/saturation.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tiles that lie beside one another come again with the next row: their limits are kept. */
enum { KNOWN_BITS = 14, KNOWN = 1 << KNOWN_BITS };

typedef struct tn_limit {
    uint64_t unit;              /* the number of its first element and 1; 0: none is known here */
    double   low, high;
} tn_limit;

/* ---- one tile or subtile ---- */

/* Puts the two codes where a tile has its first ones; *second is the place of the value of the other. */
static void put_codes(tn_limiter *l, size_t *second)
{
    const tn_datatype *d = l->made->datatype;
    tn_tile *t = &l->tile;
    size_t least = d->of ? 2 * (size_t)d->of : 2, slot = !d->of || d->keep > 1 ? 1 : d->keep;
    *second = !d->of || d->keep > 1 ? 1 : d->of;
    t->n = d->subtile ? t->n : least;
    memset(t->code, 0, t->n * sizeof *t->code);
    memset(t->mask, 0, t->n);
    t->mask[0] = t->mask[*second] = 1;
    t->code[0] = l->codes[0];
    t->code[slot] = l->codes[1];
}

/* Of the piece at `at`: as values of the tensor's own type. */
static void find_limit(tn_limiter *l, const tn_scaled_place *at, tn_limit *limit)
{
    const tn_decoder *m = l->made;
    uint8_t elements[2 * sizeof(double)];
    size_t second;
    tn_scaled_get(&m->plan, at, &l->tile);
    l->tile.tensor_scale = m->tensor_scale;
    put_codes(l, &second);
    tn_tile_decode(m->datatype, &l->tile, l->values);
    const float both[] = { l->values[0], l->values[second] };
    bool good = tn_cast_block(&m->narrow, elements, both, 2, 0, m->plan.rank, m->plan.shape, NULL) == TN_OK;
    limit->low = good ? tn_value_get(m->tensor->dtype, elements, 0).re : (double)NAN;
    limit->high = good ? tn_value_get(m->tensor->dtype, elements, 1).re : (double)NAN;
}

/* ---- elements ---- */

/* Values of a subtile or, without, the fewest that tell of their tile. */
static uint64_t unit_of(const tn_datatype *d)
{
    uint64_t kept = d->subtile ? d->subtile : d->keep;
    return d->of ? kept / d->keep * d->of : d->subtile ? d->subtile : 1;
}

/* Where the unit of an element begins, and how many elements from it on are of the same one. */
static uint64_t find_unit(const tn_scaled_plan *p, uint64_t element, tn_scaled_place *at)
{
    uint64_t size = unit_of(p->d), inner = element % p->inner, line = element / p->inner;
    uint64_t column = line % p->columns, row = line / p->columns % p->rows,
             in_tile = column % p->tile_columns;
    uint64_t begin = p->d->subtile ? in_tile - in_tile % size : 0,
             end = p->d->subtile ? begin + size : p->tile_columns;
    *at = (tn_scaled_place){ .outer = line / p->columns / p->rows, .down = row / p->tile_rows,
                             .across = column / p->tile_columns,
                             .inner = inner, .row = p->d->subtile ? row % p->tile_rows : 0, .column = begin,
                             .rows = 1, .columns = size };
    if (p->inner > 1)
        return 1;
    return end - in_tile < p->columns - column ? end - in_tile : p->columns - column;
}

/* Two units never have the same: a tile's first row and column are within the tensor. */
static uint64_t number_of(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    uint64_t row = (at->outer * p->tiles_down + at->down) * p->tile_rows + at->row;
    return ((row * p->tiles_across + at->across) * p->tile_columns + at->column) * p->inner + at->inner;
}

static const tn_limit *limit_at(tn_limiter *l, const tn_scaled_place *at)
{
    uint64_t unit = number_of(&l->made->plan, at) + 1;
    tn_limit *limit = &l->known[unit * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KNOWN_BITS)];
    if (limit->unit != unit) {
        limit->unit = unit;
        find_limit(l, at, limit);
    }
    return limit;
}

static void get(void *context, uint64_t first, size_t n, double *low, double *high)
{
    tn_limiter *l = context;
    for (size_t i = 0; i < n;) {
        tn_scaled_place at;
        uint64_t run = find_unit(&l->made->plan, first + i, &at);
        const tn_limit *limit = limit_at(l, &at);
        for (; run && i < n; run--, i++) {
            low[i] = limit->low;
            high[i] = limit->high;
        }
    }
}

/* ---- beginning ---- */

/* The last numbers are those of the tensor's datatype, whichever type its numbers are stored as. */
static tn_status find_codes(tn_limiter *l, tn_error *err)
{
    const tn_scaling *s = l->made->tensor->scaling;
    tn_datatype *own;
    uint8_t stored[256];
    if (s->store == TN_UNKNOWN) {
        tn_last_codes(l->made->datatype, l->codes);
        return TN_OK;
    }
    tn_status status = tn_datatype_parse(s->datatype, &own, err);
    if (status)
        return status;
    status = tn_datatype_store_codes(own, s->store, stored, err);
    if (!status) {
        tn_last_codes(own, l->codes);
        l->codes[0] = stored[l->codes[0]];
        l->codes[1] = stored[l->codes[1]];
    }
    tn_datatype_free(own);
    return status;
}

tn_status tn_limiter_begin(tn_limiter *l, const tn_decoder *made, tn_error *err)
{
    const tn_datatype *d = made->datatype;
    uint64_t unit = unit_of(d);
    size_t n = unit < 2 ? 2 : 2 * (size_t)unit;
    if (!l->known)
        l->known = malloc(KNOWN * sizeof *l->known);
    free(l->block);
    l->block = calloc(n, sizeof(float) + sizeof(uint32_t) + 3);
    if (!l->known || !l->block)
        return tn_fail_nomem(err);
    memset(l->known, 0, KNOWN * sizeof *l->known);
    l->values = l->block;
    l->tile = (tn_tile){ .code = (uint32_t *)(void *)(l->values + n) };
    l->tile.offset = (uint8_t *)(l->tile.code + n);
    l->tile.meta = l->tile.offset + n;
    l->tile.mask = l->tile.meta + n;
    l->made = made;
    l->limits = (tn_limits){ get, l };
    return find_codes(l, err);
}

void tn_limiter_free(tn_limiter *l)
{
    free(l->known);
    free(l->block);
    *l = (tn_limiter){ 0 };
}
