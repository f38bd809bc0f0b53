/* transform/scaled_run.c - the tiles of a tensor into codes with scales and
 * back, over several threads.
 *
 * Tiles that fit into a piece are read once.  Larger groups (one scale for a
 * tensor, or for a long row) take several rounds over their pieces: one for the
 * range, one for each choice that is to be tried, one to encode. */
#include "transform/scaled_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "tensor/array.h"

enum { ITEM = 16384 };          /* values a thread takes at a time, where tiles are small */

/* A group of values that is too large to be held. */
typedef struct group {
    tn_tile_range range;
    double   squares, least;    /* errors of the choice that is being tried, of the best one */
    uint64_t best;
} group;

/* What one thread works with. */
typedef struct desk {
    void     *block;            /* all of this: */
    float    *x, *y;
    uint64_t *index;
    uint8_t  *elements;         /* on their way to or from float32 */
    tn_tile   tile;
} desk;

/* What one item hands on, in order. */
typedef struct finding {
    tn_scaled_report report;
    tn_tile_range    range;     /* of some of the tensor */
    tn_tile_range   *ranges;    /* of each tile's piece */
    double          *squares;
} finding;

typedef struct job {
    tn_scaled_plan plan;
    const uint8_t *src;         /* values, or NULL */
    uint8_t       *dst;         /* values, or NULL */
    size_t         src_size, dst_size;          /* bytes of an element */
    tn_cast_plan   widen, narrow;               /* from and to float32 */
    tn_scaled_report *report;   /* or NULL */
    tn_pool       *pool;
    desk          *desks;
    finding       *findings;
    uint64_t       per_item;    /* bundles, where tiles are whole */
    tn_status    (*step)(const struct job *j, desk *w, finding *f, const tn_scaled_place *at, uint64_t k, tn_error *err);
    uint64_t       trial;
    tn_tile_range  range;       /* of the tensor, where it has a scale beside those of tiles: */
    uint32_t       tscale;
    float          tensor_scale;
    group         *groups;      /* one a tile, where tiles are not whole */
} job;

/* --- values -------------------------------------------------------------------------- */

/* Elements of the tensor as float32; refuses nothing: that has NaN and infinities. */
static void load(const job *j, desk *w, float *x, uint64_t first, uint64_t stride, size_t n)
{
    const uint8_t *from = j->src + first * j->src_size;
    if (stride > 1) {
        for (size_t i = 0; i < n; i++)
            memcpy(w->elements + i * j->src_size, from + i * stride * j->src_size, j->src_size);
        from = w->elements;
    }
    if (n)
        tn_cast_block(&j->widen, x, from, n, 0, 0, NULL, NULL);
}

/* Refuses nothing: all types of whole bytes have a NaN. */
static void store(const job *j, desk *w, const float *y, uint64_t first, uint64_t stride, size_t n)
{
    uint8_t *to = j->dst + first * j->dst_size;
    if (n)
        tn_cast_block(&j->narrow, stride > 1 ? w->elements : to, y, n, 0, 0, NULL, NULL);
    for (size_t i = 0; i < n && stride > 1; i++)
        memcpy(to + i * stride * j->dst_size, w->elements + i * j->dst_size, j->dst_size);
}

static void load_piece(const job *j, desk *w, const tn_scaled_place *at)
{
    const tn_scaled_plan *p = &j->plan;
    w->tile.n = (size_t)(at->rows * at->columns);
    w->tile.tensor_scale = j->tensor_scale;
    for (uint64_t r = 0; r < at->rows; r++) {
        tn_scaled_row row = tn_scaled_row_at(p, at, r);
        float *x = w->x + r * at->columns;
        uint64_t *index = w->index + r * at->columns;
        load(j, w, x, row.first, p->inner, (size_t)row.n);
        for (uint64_t i = 0; i < at->columns; i++)
            index[i] = i < row.n ? row.first + i * p->inner : UINT64_MAX;
        for (uint64_t i = row.n; i < at->columns; i++)
            x[i] = 0;
    }
}

static void store_piece(const job *j, desk *w, const tn_scaled_place *at)
{
    for (uint64_t r = 0; r < at->rows; r++) {
        tn_scaled_row row = tn_scaled_row_at(&j->plan, at, r);
        store(j, w, w->y + r * at->columns, row.first, j->plan.inner, (size_t)row.n);
    }
}

/* --- steps --------------------------------------------------------------------------- */

static tn_status refuse_nan(const job *j, uint64_t index, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    char where[200] = "";
    uint64_t at[TN_MAX_RANK];
    size_t length = 0;
    for (uint32_t i = p->rank; i-- > 0; index /= (uint64_t)p->shape[i])
        at[i] = index % (uint64_t)p->shape[i];
    for (uint32_t i = 0; i < p->rank && length < sizeof where; i++)
        length += (size_t)snprintf(where + length, sizeof where - length, "%s%" PRIu64, i ? ", " : "", at[i]);
    return tn_fail(err, TN_ERR_LOSS, TN_NO_OFFSET, "element [%s] is nan, %s%s%s", where,
                   p->o.nan == TN_NAN_ERROR ? "which the NaN mode refuses" : "and ",
                   p->o.nan == TN_NAN_ERROR ? "" : p->d->number.text, p->o.nan == TN_NAN_ERROR ? "" : " has no NaN");
}

/* Reads a piece and looks for NaN. */
static tn_status begin(const job *j, desk *w, const tn_scaled_place *at, tn_error *err)
{
    size_t bad;
    load_piece(j, w, at);
    tn_status status = tn_tile_prepare(j->plan.d, &j->plan.o, &w->tile, &bad);
    return status == TN_ERR_LOSS ? refuse_nan(j, w->index[bad], err) : status;
}

/* Writes what an encoded piece became. */
static void finish(const job *j, desk *w, finding *f, const tn_scaled_place *at)
{
    if (j->dst || j->report)
        tn_tile_decode(j->plan.d, &w->tile, w->y);
    if (j->report)
        tn_tile_report(j->plan.d, &w->tile, w->y, &f->report);
    if (j->plan.data.data)
        tn_scaled_put(&j->plan, at, &w->tile);
    if (j->dst)
        store_piece(j, w, at);
}

static tn_status encode_whole(const job *j, desk *w, finding *f, const tn_scaled_place *at, uint64_t k, tn_error *err)
{
    size_t bad;
    (void)k;
    load_piece(j, w, at);
    tn_status status = tn_tile_encode(j->plan.d, &j->plan.o, &w->tile, &bad);
    if (status != TN_OK)
        return refuse_nan(j, w->index[bad], err);
    finish(j, w, f, at);
    return TN_OK;
}

static tn_status decode_piece(const job *j, desk *w, finding *f, const tn_scaled_place *at, uint64_t k, tn_error *err)
{
    (void)f, (void)k, (void)err;
    tn_scaled_get(&j->plan, at, &w->tile);
    w->tile.tensor_scale = j->tensor_scale;
    tn_tile_decode(j->plan.d, &w->tile, w->y);
    store_piece(j, w, at);
    return TN_OK;
}

static tn_status measure_piece(const job *j, desk *w, finding *f, const tn_scaled_place *at, uint64_t k, tn_error *err)
{
    tn_status status = begin(j, w, at, err);
    f->ranges[k] = (tn_tile_range){ 0 };
    if (status == TN_OK)
        tn_tile_measure(j->plan.d, &w->tile, &f->ranges[k]);
    return status;
}

/* A group without subtiles has one mapping, which is tried with all of it. */
static uint64_t mappings_to_try(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_CODEBOOK && !d->subtile ? d->codebook.mappings : 1;
}

/* The n-th choice for a group; false: there are fewer. */
static bool choice_of(const job *j, const tn_scaled_place *at, uint64_t n, tn_tile_choice *choice)
{
    const tn_scaled_plan *p = &j->plan;
    tn_tile_choice choices[TN_TILE_CHOICES];
    tn_scaled_place first = *at;
    first.row = first.column = 0;
    uint64_t mappings = mappings_to_try(p->d), index = tn_scaled_row_at(p, &first, 0).first;
    unsigned count = tn_tile_choices(p->d, &p->o, &j->groups[tn_scaled_tile_number(p, at)].range, j->tensor_scale, index, choices);
    if (n / mappings >= count)
        return false;
    *choice = choices[n / mappings];
    if (mappings > 1)
        choice->mapping = (int32_t)(n % mappings);
    return true;
}

static tn_status try_piece(const job *j, desk *w, finding *f, const tn_scaled_place *at, uint64_t k, tn_error *err)
{
    tn_tile_choice choice;
    f->squares[k] = INFINITY;
    if (!choice_of(j, at, j->trial, &choice))
        return TN_OK;
    tn_status status = begin(j, w, at, err);
    f->squares[k] = 0;
    if (status == TN_OK)
        tn_tile_apply(j->plan.d, &j->plan.o, &w->tile, &choice, &f->squares[k]);
    return status;
}

static tn_status encode_piece(const job *j, desk *w, finding *f, const tn_scaled_place *at, uint64_t k, tn_error *err)
{
    tn_tile_choice choice;
    (void)k;
    tn_status status = begin(j, w, at, err);
    if (status != TN_OK)
        return status;
    choice_of(j, at, j->groups[tn_scaled_tile_number(&j->plan, at)].best, &choice);
    tn_tile_apply(j->plan.d, &j->plan.o, &w->tile, &choice, NULL);
    finish(j, w, f, at);
    return TN_OK;
}

/* --- rounds -------------------------------------------------------------------------- */

/* The bundles of an item, or the piece of one. */
typedef struct stretch {
    uint64_t first, end, piece;
} stretch;

static stretch stretch_of(const job *j, uint64_t item)
{
    uint64_t pieces = tn_scaled_pieces(&j->plan);
    if (pieces > 1)
        return (stretch){ item / pieces, item / pieces + 1, item % pieces };
    uint64_t first = item * j->per_item, left = j->plan.bundles - first;
    return (stretch){ first, first + (left < j->per_item ? left : j->per_item), 0 };
}

static tn_status work_on_bundle(const job *j, desk *w, finding *f, uint64_t bundle, uint64_t piece, tn_error *err)
{
    uint64_t tiles = tn_scaled_bundle_tiles(&j->plan, bundle);
    tn_status status = TN_OK;
    for (uint64_t k = 0; k < tiles && status == TN_OK; k++) {
        tn_scaled_place at = tn_scaled_place_at(&j->plan, bundle, k, piece);
        status = j->step(j, w, f, &at, k, err);
    }
    return status;
}

static tn_status work(void *context, uint64_t item, tn_seat seat, tn_error *err)
{
    const job *j = context;
    stretch s = stretch_of(j, item);
    finding *f = &j->findings[seat.slot];
    tn_status status = TN_OK;
    f->report = (tn_scaled_report){ 0 };
    for (uint64_t b = s.first; b < s.end && status == TN_OK; b++)
        status = work_on_bundle(j, &j->desks[seat.worker], f, b, s.piece, err);
    return status;
}

/* Adds what was found in a piece to its group. */
static void gather(job *j, group *g, const finding *f, uint64_t k, bool last)
{
    if (j->step == measure_piece)
        tn_tile_range_join(&g->range, &f->ranges[k]);
    if (j->step != try_piece)
        return;
    g->squares += f->squares[k];
    if (last && (j->trial == 0 || g->squares < g->least)) {
        g->least = g->squares;
        g->best = j->trial;
    }
    if (last)
        g->squares = 0;
}

static tn_status emit(void *context, uint64_t item, unsigned slot, tn_error *err)
{
    job *j = context;
    const finding *f = &j->findings[slot];
    stretch s = stretch_of(j, item);
    (void)err;
    if (j->report)
        tn_scaled_report_add(j->report, &f->report);
    uint64_t tiles = j->groups ? tn_scaled_bundle_tiles(&j->plan, s.first) : 0;
    for (uint64_t k = 0; k < tiles; k++) {
        tn_scaled_place at = tn_scaled_place_at(&j->plan, s.first, k, s.piece);
        gather(j, &j->groups[tn_scaled_tile_number(&j->plan, &at)], f, k, s.piece + 1 == tn_scaled_pieces(&j->plan));
    }
    return TN_OK;
}

static tn_status run_round(job *j, tn_error *err)
{
    uint64_t pieces = tn_scaled_pieces(&j->plan);
    uint64_t items = pieces > 1 ? j->plan.bundles * pieces : (j->plan.bundles + j->per_item - 1) / j->per_item;
    return tn_pool_run(j->pool, items, &(tn_ordered){ .work = work, .emit = emit, .context = j }, err);
}

/* All choices are tried even where a group has fewer. */
static uint64_t trials_of(const job *j)
{
    return (j->plan.o.mode == TN_SCALE_MSE ? TN_TILE_CHOICES : 1) * mappings_to_try(j->plan.d);
}

static tn_status run_rounds(job *j, tn_error *err)
{
    tn_status status = TN_OK;
    if (j->groups) {
        j->step = measure_piece;
        status = run_round(j, err);
        j->step = try_piece;
        for (j->trial = 0; j->trial < trials_of(j) && trials_of(j) > 1 && status == TN_OK; j->trial++)
            status = run_round(j, err);
    }
    j->step = !j->src ? decode_piece : j->groups ? encode_piece : encode_whole;
    return status ? status : run_round(j, err);
}

/* --- the scale of a tensor ------------------------------------------------------------ */

static uint64_t stretches(const job *j)
{
    return j->plan.count / ITEM + (j->plan.count % ITEM != 0);
}

static tn_status look(void *context, uint64_t item, tn_seat seat, tn_error *err)
{
    const job *j = context;
    uint64_t first = item * ITEM, left = j->plan.count - first;
    desk *w = &j->desks[seat.worker];
    (void)err;
    w->tile.n = left < ITEM ? (size_t)left : ITEM;
    load(j, w, w->x, first, 1, w->tile.n);
    j->findings[seat.slot].range = tn_tile_range_of(w->x, w->tile.n);
    return TN_OK;
}

/* The last one has seen it all; it is done here, where the floating-point environment is the pool's. */
static tn_status add_up(void *context, uint64_t item, unsigned slot, tn_error *err)
{
    job *j = context;
    (void)err;
    tn_tile_range_join(&j->range, &j->findings[slot].range);
    if (item + 1 < stretches(j))
        return TN_OK;
    j->tscale = tn_tensor_scale_for(j->plan.d, &j->plan.o, &j->range);
    j->tensor_scale = tn_spec_value(&j->plan.d->tensor_scale, j->tscale);
    return TN_OK;
}

static tn_status find_tensor_scale(job *j, tn_error *err)
{
    tn_status status = tn_pool_run(j->pool, stretches(j), &(tn_ordered){ .work = look, .emit = add_up, .context = j }, err);
    if (status == TN_OK && j->plan.tscale.data)
        tn_scaled_put_tensor_scale(&j->plan, j->tscale);
    return status;
}

/* --- making ------------------------------------------------------------------------------- */

/* One block, the widest elements first. */
static tn_status set_desk(desk *w, size_t n, tn_error *err)
{
    size_t each = sizeof(uint64_t) * 2 + sizeof(float) * 2 + sizeof(uint32_t) + 3;
    uint8_t *p = w->block = malloc(n * each);
    if (!p)
        return tn_fail_nomem(err);
    w->index = (uint64_t *)(void *)p;
    w->elements = p += n * sizeof(uint64_t);
    w->x = (float *)(void *)(p += n * sizeof(uint64_t));
    w->y = w->x + n;
    w->tile = (tn_tile){ .x = w->x, .index = w->index, .code = (uint32_t *)(void *)(w->y + n) };
    w->tile.offset = (uint8_t *)(w->tile.code + n);
    w->tile.meta = w->tile.offset + n;
    w->tile.mask = w->tile.meta + n;
    return TN_OK;
}

static tn_status set_finding(finding *f, size_t tiles, tn_error *err)
{
    f->ranges = calloc(tiles, sizeof *f->ranges);
    f->squares = calloc(tiles, sizeof *f->squares);
    return f->ranges && f->squares ? TN_OK : tn_fail_nomem(err);
}

static tn_status set_groups(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t tiles = p->outer * p->tiles_down * p->tiles_across * p->inner, bytes;
    if (tn_scaled_pieces(p) == 1 || !j->src)
        return TN_OK;
    j->groups = tn_mul_u64(tiles, sizeof *j->groups, &bytes) && bytes <= SIZE_MAX ? calloc((size_t)tiles, sizeof *j->groups) : NULL;
    return j->groups ? TN_OK : tn_fail_nomem(err);
}

static tn_status set_up(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t size = p->piece_rows * p->piece_columns, n = size > ITEM ? size : ITEM;
    uint64_t most = p->bundles * tn_scaled_pieces(p);
    unsigned jobs = p->o.jobs ? p->o.jobs : tn_core_count();
    tn_status status = tn_pool_new(jobs < most ? jobs : (unsigned)most, &j->pool, err);
    if (status != TN_OK)
        return status;
    j->per_item = ITEM / (size * p->lanes * (p->run < p->tiles_across ? p->run : p->tiles_across)) + 1;
    unsigned slots = tn_pool_slots(j->pool);
    jobs = tn_pool_jobs(j->pool);
    j->desks = calloc(jobs, sizeof *j->desks);
    j->findings = calloc(slots, sizeof *j->findings);
    if (!j->desks || !j->findings)
        return tn_fail_nomem(err);
    for (unsigned i = 0; i < jobs && status == TN_OK; i++)
        status = set_desk(&j->desks[i], (size_t)n, err);
    for (unsigned i = 0; i < slots && status == TN_OK; i++)
        status = set_finding(&j->findings[i], (size_t)(p->run * p->lanes), err);
    return status ? status : set_groups(j, err);
}

static void clear(job *j)
{
    for (unsigned i = 0; j->desks && i < tn_pool_jobs(j->pool); i++)
        free(j->desks[i].block);
    for (unsigned i = 0; j->findings && i < tn_pool_slots(j->pool); i++) {
        free(j->findings[i].ranges);
        free(j->findings[i].squares);
    }
    free(j->desks);
    free(j->findings);
    free(j->groups);
    tn_pool_free(j->pool);
}

static tn_status set_casts(job *j, tn_dtype src, tn_dtype dst, tn_error *err)
{
    tn_status status = TN_OK;
    if (j->src) {
        j->src_size = tn_dtype_get(src)->bits / 8;
        status = tn_cast_plan_make(&j->widen, TN_FLOAT32, src, TN_HOST_ORDER, NULL, err);
    }
    if (j->dst && status == TN_OK) {
        j->dst_size = tn_dtype_get(dst)->bits / 8;
        status = tn_cast_plan_make(&j->narrow, dst, TN_FLOAT32, TN_HOST_ORDER, NULL, err);
    }
    return status;
}

tn_status tn_scaled_run(const tn_scaled_plan *plan, tn_dtype src_type, const void *src, tn_dtype dst_type, void *dst,
                        tn_scaled_report *report, tn_error *err)
{
    job *j = calloc(1, sizeof *j);      /* two cast plans: too large for a stack */
    if (!j)
        return tn_fail_nomem(err);
    *j = (job){ .plan = *plan, .src = src, .dst = dst, .report = report, .tensor_scale = 1 };
    tn_status status = set_casts(j, src_type, dst_type, err);
    if (status == TN_OK)
        status = set_up(j, err);
    if (status == TN_OK && !src)
        j->tensor_scale = tn_scaled_tensor_scale(plan);
    else if (status == TN_OK && plan->d->has_tensor_scale)
        status = find_tensor_scale(j, err);
    if (status == TN_OK)
        status = run_rounds(j, err);
    clear(j);
    free(j);
    return status;
}
