/* quant/scaled_run.c - the tiles of a tensor into codes with scales, over
 * several threads.
 *
 * Tiles that fit into a piece are read once.  Larger groups (one scale for a
 * tensor, or for a long row) take several rounds over their pieces: one for the
 * range, one for each choice that is to be tried, one to encode. */
#include "quant/quantizer.h"
#include "quant/rotate.h"
#include "quant/scale_search.h"
#include "quant/scaled_job.h"

#include <math.h>

#include "base/checked.h"
#include "tensor/array.h"

enum { A_FEW = 8 };             /* tiles, whose numbers of any width end on a byte */

typedef tn_scaled_job job;
typedef tn_scaled_scratch scratch;
typedef tn_scaled_result result;
typedef tn_scaled_group group;

/* --- values -------------------------------------------------------------------------- */

/* Elements of the tensor as float32; refuses nothing: that has NaN and infinities. */
static void load(const job *j, scratch *w, float *x, uint64_t first, uint64_t stride, size_t n)
{
    const uint8_t *from = w->src + (first - w->src_first) * j->src_size;
    if (stride > 1) {
        for (size_t i = 0; i < n; i++)
            memcpy(w->elements + i * j->src_size, from + i * stride * j->src_size, j->src_size);
        from = w->elements;
    }
    if (n)
        tn_cast_block(&j->widen, x, from, n, 0, 0, NULL, NULL);
}

/* Refuses nothing: all types of whole bytes have a NaN. */
static void store(const job *j, scratch *w, const float *y, uint64_t first, uint64_t stride, size_t n)
{
    uint8_t *to = w->dst + (first - w->dst_first) * j->dst_size;
    if (n)
        tn_cast_block(&j->narrow, stride > 1 ? w->elements : to, y, n, 0, 0, NULL, NULL);
    for (size_t i = 0; i < n && stride > 1; i++)
        memcpy(to + i * stride * j->dst_size, w->elements + i * j->dst_size, j->dst_size);
}

static void load_piece(const job *j, scratch *w, const tn_scaled_place *at)
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

static void store_piece(const job *j, scratch *w, const tn_scaled_place *at)
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
    char where[200];
    tn_element_text(where, sizeof where, index, p->rank, p->shape);
    if (p->o.nan == TN_NAN_ERROR)
        return tn_fail(err, TN_ERR_LOSS, "%s is nan, which the NaN mode refuses", where);
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_NAN, "zero", "%s is nan, and %s has no NaN",
                   where, p->d->number.text);
}

/* Reads a piece and looks for NaN. */
static tn_status begin(const job *j, scratch *w, const tn_scaled_place *at, tn_error *err)
{
    size_t bad;
    load_piece(j, w, at);
    tn_status status = tn_tile_prepare(j->plan.d, &j->plan.o, &w->tile, &bad);
    return status == TN_ERR_LOSS ? refuse_nan(j, w->index[bad], err) : status;
}

/* Writes what an encoded piece became. */
static void finish(const job *j, scratch *w, result *f, const tn_scaled_place *at)
{
    if (w->dst || j->work->report)
        tn_tile_decode(j->plan.d, &w->tile, w->y);
    if (j->work->report)
        tn_tile_report(j->plan.d, &w->tile, w->y, &f->report);
    if (w->view.data.data)
        tn_scaled_put(&w->view, at, &w->tile);
    if (w->dst)
        store_piece(j, w, at);
}

static tn_status encode_whole(const job *j, scratch *w, result *f, const tn_scaled_place *at, uint64_t k,
                              tn_error *err)
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

/* --- whole tiles at once ---------------------------------------------------------------- */

/* Values that lie in order, as float32: where they are, or widened. */
static const float *values_at(const job *j, scratch *w, uint64_t first, size_t n)
{
    const uint8_t *src = w->src + (first - w->src_first) * j->src_size;
    if (j->src_type == TN_FLOAT32 && (uintptr_t)src % _Alignof(float) == 0)
        return (const float *)(const void *)src;
    load(j, w, w->x, first, 1, n);
    return w->x;
}

/* The row of tiles, and the row of the tensor (of its last dimension), in which a piece of a flat plan
 * begins. */
static uint64_t tile_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return at->outer * p->tiles_down + at->down;
}

static uint64_t first_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return tile_row(p, at) * p->tile_rows + at->row;
}

static tn_tiles tiles_at(const job *j, const tn_scaled_plan *view, uint64_t row, uint64_t column,
                         size_t count, size_t size)
{
    uint8_t *at[TN_SCALED_FIELDS];
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++) {
        const tn_scaled_field *field = &view->fields[i];
        at[i] = field->data ? field->data + (tn_scaled_byte_at(view, i, row, column) - field->from) : NULL;
    }
    return (tn_tiles){ .count = count, .size = size, .tensor_scale = j->tensor_scale, .data = at[0],
                       .scale = at[1], .zero = at[2],
                       .offset = at[3], .meta = at[4], .mask = at[5] };
}

/* Packed numbers are put into bytes that are 0. */
static void clear_tiles(const tn_scaled_plan *p, const tn_tiles *t, uint64_t row, uint64_t column)
{
    uint8_t *const at[TN_SCALED_FIELDS] = { t->data, t->scale, t->zero, t->offset, t->meta, t->mask };
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++)
        if (at[i] && p->fields[i].bits < 8)
            memset(at[i], 0,
                   (size_t)(tn_scaled_byte_at(p, i, row, column + t->count * t->size) -
                            tn_scaled_byte_at(p, i, row, column)));
}

/* What tiles of codes stand for, and what it has to do with the values that they were. */
static void give_tiles(const job *j, scratch *w, result *f, tn_tiles *t, uint64_t first)
{
    size_t n = t->count * t->size;
    t->y = w->y;
    if (w->dst || j->work->report)
        j->decode(&w->view, t);
    if (j->work->report) {
        tn_tiles last = *t;
        for (unsigned i = 0; i < 2; i++) {
            last.data = j->last[i];
            last.y = w->last[i];
            j->decode(&w->view, &last);
        }
        tn_values_report(t->x, w->y, w->last[0], w->last[1], n, &f->report);
    }
    if (w->dst)
        store(j, w, w->y, first, 1, n);
}

/* False: nothing was done. */
static bool encode_tiles(const job *j, scratch *w, result *f, const tn_scaled_place *at, size_t count)
{
    const tn_scaled_plan *p = &w->view;
    uint64_t row = first_row(p, at), column = at->across * p->tile_columns,
             first = tn_scaled_row_at(p, at, 0).first;
    /* the last one may be shorter */
    uint64_t size = count == 1 ? tn_scaled_row_at(p, at, 0).n : p->tile_columns;
    tn_tiles t = tiles_at(j, p, row, column, count, (size_t)size);
    t.x = values_at(j, w, first, t.count * t.size);
    if (!j->encode(p, &t)) {
        clear_tiles(p, &t, row, column);
        return false;
    }
    give_tiles(j, w, f, &t, first);
    return true;
}

/* A piece of a group as tiles that end on a byte: its rows, or one of all of them. */
typedef struct share {
    const tn_tile_choice *choice;
    uint8_t  scale[sizeof(uint32_t)], zero[sizeof(uint32_t)];   /* the choice as numbers of these fields */
    uint64_t row, column, first;                                /* of the tensor, and its element there */
    const float *x;
    size_t   size, count;
} share;

static share share_of(const job *j, scratch *w, const tn_scaled_place *at, const tn_tile_choice *choice)
{
    const tn_scaled_plan *p = &w->view;
    tn_scaled_row row = tn_scaled_row_at(p, at, 0);
    bool joined = at->rows == 1 || p->columns * p->data.bits % 8 == 0;      /* no row ends within a byte */
    share s = { .choice = choice, .row = first_row(p, at),
                .column = at->across * p->tile_columns + at->column, .first = row.first,
                .x = values_at(j, w, row.first, (size_t)(at->rows * row.n)),
                .size = (size_t)(joined ? at->rows * row.n : row.n),
                .count = joined ? 1 : (size_t)at->rows };
    tn_code_put(s.scale, 0, tn_scaled_word(p->scale.bits), choice->scale);
    tn_code_put(s.zero, 0, tn_scaled_word(p->zero.bits), choice->zero);
    return s;
}

static tn_tiles tile_of(const job *j, const tn_scaled_plan *p, share *s, size_t k)
{
    tn_tiles t = tiles_at(j, p, s->row + k, s->column, 1, s->size);
    t.choice = s->choice;
    t.scale = t.scale ? s->scale : NULL;
    t.zero = t.zero ? s->zero : NULL;
    t.x = s->x + k * s->size;
    return t;
}

/* A piece of a group; false: nothing was done.  Values are given when all are encoded: they may lie where
 * they came from. */
static bool encode_some(const job *j, scratch *w, result *f, const tn_scaled_place *at,
                        const tn_tile_choice *choice)
{
    const tn_scaled_plan *p = &w->view;
    if (!j->encode)
        return false;
    share s = share_of(j, w, at, choice);
    size_t done = 0;
    bool good = true;
    for (; done < s.count && good; done++) {
        tn_tiles t = tile_of(j, p, &s, done);
        good = j->encode(p, &t);
    }
    for (size_t k = 0; k < done; k++) {
        tn_tiles t = tile_of(j, p, &s, k);
        if (good) {
            give_tiles(j, w, f, &t, s.first + k * s.size);
            continue;
        }
        t.scale = t.zero = NULL;        /* they are not in the parts yet */
        clear_tiles(p, &t, s.row + k, s.column);
    }
    if (good)
        tn_scaled_put_choice(p, at, choice->scale, choice->zero);
    return good;
}

/* --- groups -------------------------------------------------------------------------------- */

static tn_status measure_piece(const job *j, scratch *w, result *f, const tn_scaled_place *at, uint64_t k,
                               tn_error *err)
{
    tn_scaled_row row = tn_scaled_row_at(&j->plan, at, 0);
    if (j->windows) {           /* no sparse ones; encoding looks for NaN */
        f->ranges[k] = tn_scaled_range(values_at(j, w, row.first, (size_t)(at->rows * row.n)),
                                       (size_t)(at->rows * row.n));
        return TN_OK;
    }
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
    unsigned count = tn_tile_choices(p->d, &p->o, &j->groups[tn_scaled_tile_number(p, at)].range,
                                     j->tensor_scale, index, choices);
    if (n / mappings >= count)
        return false;
    *choice = choices[n / mappings];
    if (mappings > 1)
        choice->mapping = (int32_t)(n % mappings);
    return true;
}

static tn_status try_piece(const job *j, scratch *w, result *f, const tn_scaled_place *at, uint64_t k,
                           tn_error *err)
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

static tn_status encode_piece(const job *j, scratch *w, result *f, const tn_scaled_place *at, uint64_t k,
                              tn_error *err)
{
    tn_tile_choice choice;
    (void)k;
    choice_of(j, at, j->groups[tn_scaled_tile_number(&j->plan, at)].best, &choice);
    if (encode_some(j, w, f, at, &choice))
        return TN_OK;
    tn_status status = begin(j, w, at, err);
    if (status != TN_OK)
        return status;
    tn_tile_apply(j->plan.d, &j->plan.o, &w->tile, &choice, NULL);
    finish(j, w, f, at);
    return TN_OK;
}

/* --- rounds -------------------------------------------------------------------------- */

/* The bundles of an item, or the piece of one. */
typedef struct item_tiles {
    uint64_t first, end, piece;
} item_tiles;

static item_tiles item_tiles_of(const job *j, uint64_t item)
{
    uint64_t pieces = tn_scaled_pieces(&j->plan);
    if (pieces > 1)
        return (item_tiles){ item / pieces, item / pieces + 1, item % pieces };
    uint64_t first = item * j->per_item, left = j->plan.bundles - first;
    return (item_tiles){ first, first + (left < j->per_item ? left : j->per_item), 0 };
}

/* Memory of an item for a field of which the plan has none.  Packed numbers are put into bytes that are 0. */
static void open_window(const job *j, scratch *w, result *f, unsigned i, uint64_t from, uint64_t to)
{
    tn_scaled_field *field = &w->view.fields[i];
    bool given = i == 0 && j->work->emit && !j->gives_values, own = !field->data || given;
    if (!field->nbytes)
        return;
    if (own) {
        field->data = given ? f->bytes : w->window[i];
        field->from = from;
    }
    if (given)
        f->nbytes = (size_t)(to - from);
    /* others are of several items */
    if (field->bits < 8 && (own || i == 0 || tn_scaled_pieces(&j->plan) == 1))
        memset(field->data + (from - field->from), 0, (size_t)(to - from));
}

/* The values of an item as they are, or rotated. */
static void open_values(const job *j, scratch *w, result *f, uint64_t first, uint64_t n)
{
    const tn_scaled_work *work = j->work;
    w->src = work->src;
    w->src_first = 0;
    w->dst = work->dst;
    w->dst_first = 0;
    if (j->gives_values && work->emit) {
        w->dst = f->bytes;
        w->dst_first = first;
        f->nbytes = (size_t)n * j->given_size;
    }
    if (!j->turns)
        return;
    size_t size = tn_dtype_get(work->src_type)->bits / 8;
    tn_cast_block(&j->take, w->turned, (const uint8_t *)work->src + first * size, (size_t)n, 0, 0, NULL,
                  NULL);
    tn_rotate_blocks(&j->plan.o.rotation, false, w->turned, n / j->plan.o.rotation.size);
    w->src = (const uint8_t *)w->turned;
    w->src_first = first;
    if (j->gives_values) {
        w->dst = (uint8_t *)w->made;
        w->dst_first = first;
    }
}

/* What was rotated, rotated back and in the type that was asked for. */
static void close_values(const job *j, scratch *w, result *f, uint64_t first, uint64_t n)
{
    if (!j->turns || !j->gives_values)
        return;
    uint8_t *to = j->work->emit ? f->bytes : (uint8_t *)j->work->dst + first * j->given_size;
    tn_rotate_blocks(&j->plan.o.rotation, true, w->made, n / j->plan.o.rotation.size);
    tn_cast_block(&j->give, to, w->made, (size_t)n, 0, 0, NULL, NULL);
}

/* The elements of an item of a flat plan. */
static tn_scaled_row elements_of(const job *j, const item_tiles *s, tn_scaled_place *first,
                                 tn_scaled_place *last)
{
    const tn_scaled_plan *p = &j->plan;
    *first = tn_scaled_place_at(p, s->first, 0, s->piece);
    *last = tn_scaled_place_at(p, s->end - 1, tn_scaled_bundle_tiles(p, s->end - 1) - 1, s->piece);
    tn_scaled_row begin = tn_scaled_row_at(p, first, 0), end = tn_scaled_row_at(p, last, last->rows - 1);
    return (tn_scaled_row){ begin.first, end.first + end.n - begin.first };
}

/* What an item makes and the plan has no memory for. */
static void open_windows(const job *j, scratch *w, result *f, const tn_scaled_place *first,
                         const tn_scaled_place *last)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t from = first->across * p->tile_columns, to = last->across * p->tile_columns,
             end = tn_scaled_row_at(p, last, last->rows - 1).n;
    bool pieces = tn_scaled_pieces(p) > 1;
    open_window(j, w, f, 0, tn_scaled_byte_at(p, 0, first_row(p, first), from + first->column),
                tn_scaled_byte_at(p, 0, first_row(p, last) + last->rows - 1, to + last->column + end));
    for (unsigned i = 1; i < TN_SCALED_FIELDS; i++)     /* numbers of tiles, of which this may be a piece */
        open_window(j, w, f, i, tn_scaled_byte_at(p, i, tile_row(p, first), from),
                    tn_scaled_byte_at(p, i, tile_row(p, last), pieces ? p->columns : to + end));
}

static tn_status step_through(const job *j, scratch *w, result *f, uint64_t bundle, uint64_t piece,
                              uint64_t from, uint64_t to, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint64_t k = from; k < to && status == TN_OK; k++) {
        tn_scaled_place at = tn_scaled_place_at(&j->plan, bundle, k, piece);
        status = j->step(j, w, f, &at, k, err);
    }
    return status;
}

/* Tiles that are not padded all at once; where that cannot be, a few at a time, for an odd one is only some
 * of them. */
static tn_status encode_at_once(const job *j, scratch *w, result *f, uint64_t bundle, uint64_t tiles,
                                tn_error *err)
{
    tn_scaled_place at = tn_scaled_place_at(&j->plan, bundle, 0, 0);
    tn_status status = TN_OK;
    if (tiles == 0 || encode_tiles(j, w, f, &at, (size_t)tiles))
        return TN_OK;
    for (uint64_t k = 0; k < tiles && status == TN_OK; k += A_FEW) {
        uint64_t end = k + A_FEW < tiles ? k + A_FEW : tiles;
        at = tn_scaled_place_at(&j->plan, bundle, k, 0);
        if (!encode_tiles(j, w, f, &at, (size_t)(end - k)))
            status = step_through(j, w, f, bundle, 0, k, end, err);
    }
    return status;
}

static bool ends_on_byte(const tn_scaled_field *field, uint64_t n)
{
    return field->bits >= 8 || n * field->bits % 8 == 0;
}

/* Whether a padded tile after so many of a bundle can be encoded as a shorter one: groups and subtiles are
 * whole, zeros count in searches, and its numbers begin on a byte. */
static bool can_be_short(const tn_scaled_plan *p, uint64_t tiles)
{
    const tn_datatype *d = p->d;
    return !d->of && !d->offset_bits && !d->subtile && d->number.kind != TN_NUMBER_CODEBOOK &&
           p->o.rule != TN_SCALE_MSE && ends_on_byte(&p->data, tiles * p->tile_columns) &&
           ends_on_byte(&p->scale, tiles) && ends_on_byte(&p->zero, tiles);
}

static tn_status work_on_bundle(const job *j, scratch *w, result *f, uint64_t bundle, uint64_t piece,
                                tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t tiles = tn_scaled_bundle_tiles(p, bundle), done = 0;
    tn_status status = TN_OK;
    if (j->encode && p->tile_rows == 1 && j->step == encode_whole && !tn_has_percentile(&p->o)) {
        tn_scaled_place at = tn_scaled_place_at(p, bundle, 0, 0);
        uint64_t whole = (p->columns - at.across * p->tile_columns) / p->tile_columns;
        done = whole < tiles ? whole : tiles;
        status = encode_at_once(j, w, f, bundle, done, err);
        at = tn_scaled_place_at(p, bundle, done, 0);
        if (status == TN_OK && done < tiles && can_be_short(p, done) && encode_tiles(j, w, f, &at, 1))
            done++;
    }
    return status ? status : step_through(j, w, f, bundle, piece, done, tiles, err);
}

static void replace_codes(const job *j, uint8_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = j->stored[codes[i]];
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    item_tiles s = item_tiles_of(j, item);
    scratch *w = &j->scratches[use.scratch];
    result *f = &j->results[use.result];
    tn_status status = TN_OK;
    f->report = (tn_quantize_stats){ 0 };
    f->nbytes = 0;
    w->view = j->plan;
    tn_scaled_place first, last;
    tn_scaled_row own = j->windows ? elements_of(j, &s, &first, &last) : (tn_scaled_row){ 0, 0 };
    if (j->windows)
        open_windows(j, w, f, &first, &last);
    open_values(j, w, f, own.first, own.n);
    for (uint64_t b = s.first; b < s.end && status == TN_OK; b++)
        status = work_on_bundle(j, w, f, b, s.piece, err);
    if (status || (j->step != encode_whole && j->step != encode_piece))
        return status;
    close_values(j, w, f, own.first, own.n);
    if (j->stores && j->work->emit && !j->gives_values)
        replace_codes(j, f->bytes, f->nbytes);
    return TN_OK;
}

/* Adds what was found in a piece to its group. */
static void gather(job *j, group *g, const result *f, uint64_t k, bool last)
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

static tn_status emit(void *context, uint64_t item, unsigned number, tn_error *err)
{
    job *j = context;
    const result *f = &j->results[number];
    item_tiles s = item_tiles_of(j, item);
    if (j->work->report)
        tn_quantize_stats_add(j->work->report, &f->report);
    if (j->work->emit && (j->step == encode_whole || j->step == encode_piece)) {
        tn_status status = j->work->emit(j->work->context, f->bytes, f->nbytes, err);
        if (status)
            return status;
    }
    uint64_t tiles = j->groups ? tn_scaled_bundle_tiles(&j->plan, s.first) : 0;
    for (uint64_t k = 0; k < tiles; k++) {
        tn_scaled_place at = tn_scaled_place_at(&j->plan, s.first, k, s.piece);
        gather(j, &j->groups[tn_scaled_tile_number(&j->plan, &at)], f, k,
               s.piece + 1 == tn_scaled_pieces(&j->plan));
    }
    return TN_OK;
}

static tn_status run_round(job *j, tn_error *err)
{
    uint64_t pieces = tn_scaled_pieces(&j->plan);
    uint64_t items =
        pieces > 1 ? j->plan.bundles * pieces : (j->plan.bundles + j->per_item - 1) / j->per_item;
    return tn_pool_run(j->work->pool, items, &(tn_ordered){ .work = work, .emit = emit, .context = j }, err);
}

/* --- percentiles of groups -------------------------------------------------------------- */

/* What is kept of the pieces of an item. */
static tn_status count_item(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally,
                            tn_error *err)
{
    const job *j = context;
    const tn_scaled_plan *p = &j->plan;
    scratch *w = &j->scratches[worker];
    item_tiles s = item_tiles_of(j, item);
    tn_scaled_place first, last;
    tn_scaled_row own = j->windows ? elements_of(j, &s, &first, &last) : (tn_scaled_row){ 0, 0 };
    open_values(j, w, &j->results[worker], own.first, own.n);
    for (uint64_t k = 0; k < tn_scaled_bundle_tiles(p, s.first); k++) {
        tn_scaled_place at = tn_scaled_place_at(p, s.first, k, s.piece);
        tn_status status = begin(j, w, &at, err);
        if (status != TN_OK)
            return status;
        size_t n = 0;
        for (size_t i = 0; i < w->tile.n; i++)
            if (w->index[i] != UINT64_MAX && (!p->d->of || w->tile.mask[i]))
                w->y[n++] = w->x[i];
        tn_scale_tally_count(tally, w->y, n, tn_scaled_tile_number(p, &at));
    }
    return TN_OK;
}

/* The ranges of groups become those of the values that count. */
static tn_status find_percentiles(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    const tn_affine symmetry = { .codes = TN_INT8, .symmetric = !p->d->has_zero };
    const tn_quantize_options o = { .size = sizeof o, .percentile = p->o.percentile };
    const tn_scale_source source = { .add = count_item, .context = j,
                                     .items = p->bundles * tn_scaled_pieces(p) };
    tn_scale_index index = { .inner = 1, .count = p->outer * p->tiles_down * p->tiles_across * p->inner };
    tn_scale_tally *tally;
    tn_status status = tn_scale_tally_new(&symmetry, &o, TN_FLOAT32, index, &tally, err);
    if (status != TN_OK)
        return status;
    status = tn_scale_search(tally, &source, tn_pool_jobs(j->work->pool), err);
    for (uint64_t i = 0; i < index.count && status == TN_OK; i++) {
        tn_tile_range *range = &j->groups[i].range;
        tn_scale_tally_range(tally, i, &range->low, &range->high);
        range->largest = fmaxf(-range->low, range->high);
    }
    tn_scale_tally_free(tally);
    return status;
}

/* All choices are tried even where a group has fewer. */
static uint64_t trials_of(const job *j)
{
    return (j->plan.o.rule == TN_SCALE_MSE ? TN_TILE_CHOICES : 1) * mappings_to_try(j->plan.d);
}

static tn_status run_rounds(job *j, tn_error *err)
{
    tn_status status = TN_OK;
    if (j->groups) {
        j->step = measure_piece;
        status = run_round(j, err);
        if (status == TN_OK && tn_has_percentile(&j->plan.o))
            status = find_percentiles(j, err);
        j->step = try_piece;
        for (j->trial = 0; j->trial < trials_of(j) && trials_of(j) > 1 && status == TN_OK; j->trial++)
            status = run_round(j, err);
    }
    j->step = j->groups ? encode_piece : encode_whole;
    return status ? status : run_round(j, err);
}

/* --- the scale of a tensor ------------------------------------------------------------ */

static uint64_t looks_of(const job *j)
{
    return tn_div_up_u64(j->plan.count, TN_SCALED_LOOK);
}

static tn_status look(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    uint64_t first = item * TN_SCALED_LOOK, left = j->plan.count - first;
    size_t n = left < TN_SCALED_LOOK ? (size_t)left : TN_SCALED_LOOK;
    scratch *w = &j->scratches[use.scratch];
    (void)err;
    open_values(j, w, &j->results[use.result], first, n);
    j->results[use.result].range = tn_scaled_range(values_at(j, w, first, n), n);
    return TN_OK;
}

/* The last one has seen it all; it is done here, where the floating-point environment is the pool's. */
static tn_status add_up(void *context, uint64_t item, unsigned number, tn_error *err)
{
    job *j = context;
    (void)err;
    tn_tile_range_join(&j->range, &j->results[number].range);
    if (item + 1 < looks_of(j))
        return TN_OK;
    j->tscale = tn_tensor_scale_for(j->plan.d, &j->plan.o, &j->range);
    j->tensor_scale = tn_spec_value(&j->plan.d->tensor_scale, j->tscale);
    return TN_OK;
}

static tn_status find_tensor_scale(job *j, tn_error *err)
{
    tn_status status = tn_pool_run(j->work->pool, looks_of(j), &(tn_ordered){ .work = look, .emit = add_up,
                                                                               .context = j }, err);
    if (status == TN_OK && j->plan.tscale.data)
        tn_scaled_put_tensor_scale(&j->plan, j->tscale);
    return status;
}

enum { REPLACED = 1 << 20 };    /* bytes at a time */

static tn_status replace_some(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    uint64_t at = item * REPLACED, left = j->plan.data.nbytes - at;
    (void)use;
    (void)err;
    replace_codes(j, j->plan.data.data + at, (size_t)tn_min_u64(left, REPLACED));
    return TN_OK;
}

static tn_status replace_all(job *j, tn_error *err)
{
    const tn_ordered task = { .work = replace_some, .context = j };
    return tn_pool_run(j->work->pool, tn_div_up_u64(j->plan.data.nbytes, REPLACED), &task, err);
}

/* No values: there may be a scale of the tensor still. */
static tn_status run_empty(const tn_scaled_work *work, tn_error *err)
{
    const tn_scaled_plan *p = work->plan;
    if (p->tscale.data)
        tn_scaled_put_tensor_scale(p, tn_tensor_scale_for(p->d, &p->o, &(tn_tile_range){ 0 }));
    return work->emit ? work->emit(work->context, NULL, 0, err) : TN_OK;
}

static tn_status encode(const tn_scaled_work *work, tn_error *err)
{
    const tn_scaled_plan *p = work->plan;
    if (p->count == 0)
        return run_empty(work, err);
    job *j;
    tn_status status = tn_scaled_job_new(work, &j, err);
    if (status == TN_OK && p->d->has_tensor_scale)
        status = find_tensor_scale(j, err);
    if (status == TN_OK)
        status = run_rounds(j, err);
    if (status == TN_OK && j->stores && p->data.data)   /* at the end: nobody reads codes back then */
        status = replace_all(j, err);
    tn_scaled_job_free(j);
    return status;
}

/* --- the row -------------------------------------------------------------------------- */

static tn_status open(tn_part_values *v, tn_error *err)
{
    (void)err;
    v->tensor_scale = tn_scaled_tensor_scale(v->plan);
    return TN_OK;
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    (v->stream ? tn_scaled_stream : tn_scaled_values)(v->plan, v->tensor_scale, first, n, y);
}

static void close(tn_part_values *v)
{
    (void)v;
}

static bool is_any_text(const char *text)
{
    (void)text;
    return true;
}

const tn_quantizer tn_tile_quantizer = {
    .name = "tiles", .is_text = is_any_text, .parse = tn_tiles_parse, .shapes = tn_tile_shapes,
    .check = tn_scaled_check, .streams = tn_scaled_streams, .turns = tn_scaled_turns,
    .encode = encode, .open = open, .read = read_values, .close = close,
};
