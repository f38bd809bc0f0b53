/* quant/tiles.c - the quantizer of datatypes with scales of tiles.
 *
 * A tile of one piece is read once.  A larger tile (one scale per tensor or per long
 * row) is a group of pieces and takes several passes: one to measure the range, one
 * per choice to try, one to encode. */
#include "kernels/scaled_decode/table.h"
#include "quant/quantizer.h"
#include "quant/rotate.h"
#include "quant/scale_search.h"

#include <math.h>

#include "base/checked.h"
#include "tensor/array.h"

enum { A_FEW = 8 };             /* this many tiles end on a byte in every part */

typedef tn_scaled_job job;
typedef tn_scaled_scratch scratch;
typedef tn_scaled_result result;
typedef tn_scaled_group group;

static void load_piece(const job *j, scratch *w, const tn_scaled_place *at)
{
    const tn_scaled_plan *p = &j->plan;
    w->tile.n = (size_t)(at->rows * at->columns);
    w->tile.tensor_scale = j->tensor_scale;
    for (uint64_t r = 0; r < at->rows; r++) {
        tn_scaled_row row = tn_scaled_row_at(p, at, r);
        float *x = w->x + r * at->columns;
        uint64_t *index = w->index + r * at->columns;
        tn_job_load(j, w, x, row.first, p->inner, (size_t)row.n);
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
        tn_job_store(j, w, w->y + r * at->columns, row.first, j->plan.inner, (size_t)row.n);
    }
}

/* --- one tile ------------------------------------------------------------------------ */

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

/* Reads a piece and rejects NaN. */
static tn_status begin(const job *j, scratch *w, const tn_scaled_place *at, tn_error *err)
{
    size_t bad;
    load_piece(j, w, at);
    tn_status status = tn_tile_prepare(j->plan.d, &j->plan.o, &w->tile, &bad);
    return status == TN_ERR_LOSS ? refuse_nan(j, w->index[bad], err) : status;
}

/* Writes an encoded piece, decodes it and adds it to the report. */
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

static tn_tiles tiles_at(const job *j, const tn_scaled_plan *view, uint64_t row, uint64_t column,
                         size_t count, size_t size)
{
    uint8_t *at[TN_SCALED_FIELDS];
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++) {
        const tn_scaled_field *field = &view->fields[i];
        at[i] = field->data ? field->data + (tn_scaled_byte_at(view, i, row, column) - field->from) : NULL;
    }
    return (tn_tiles){ .count = count, .size = size, .tensor_scale = j->tensor_scale, .data = at[0],
                       .stream = j->streams_codes, .scale = at[1], .zero = at[2],
                       .offset = at[3], .meta = at[4], .mask = at[5] };
}

/* Clears packed numbers, which are written by OR. */
static void clear_tiles(const tn_scaled_plan *p, const tn_tiles *t, uint64_t row, uint64_t column)
{
    uint8_t *const at[TN_SCALED_FIELDS] = { t->data, t->scale, t->zero, t->offset, t->meta, t->mask };
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++)
        if (at[i] && p->fields[i].bits < 8)
            memset(at[i], 0,
                   (size_t)(tn_scaled_byte_at(p, i, row, column + t->count * t->size) -
                            tn_scaled_byte_at(p, i, row, column)));
}

/* Decodes encoded tiles for the output and the report. */
static void decode_tiles(const job *j, scratch *w, result *f, tn_tiles *t, uint64_t first)
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
        tn_job_store(j, w, w->y, first, 1, n);
}

/* False: the fast path cannot encode these tiles, and nothing is written. */
static bool encode_tiles(const job *j, scratch *w, result *f, const tn_scaled_place *at, size_t count)
{
    const tn_scaled_plan *p = &w->view;
    uint64_t row = tn_scaled_first_row(p, at), column = at->across * p->tile_columns,
             first = tn_scaled_row_at(p, at, 0).first;
    /* a single tile may be the short last one */
    uint64_t size = count == 1 ? tn_scaled_row_at(p, at, 0).n : p->tile_columns;
    tn_tiles t = tiles_at(j, p, row, column, count, (size_t)size);
    t.first = first;
    t.x = tn_job_floats(j, w, first, t.count * t.size);
    if (!j->encode(p, &t)) {
        clear_tiles(p, &t, row, column);
        return false;
    }
    decode_tiles(j, w, f, &t, first);
    return true;
}

/* A piece of a group for the fast path: `count` tiles of `size` values that end on a byte.  Each row is a
 * tile, or all rows are one tile. */
typedef struct group_piece {
    const tn_tile_choice *choice;
    uint8_t  scale[sizeof(uint32_t)], zero[sizeof(uint32_t)];   /* of the choice, as stored */
    uint64_t row, column, first;                                /* in the tensor, and the first element */
    const float *x;
    size_t   size, count;
} group_piece;

static group_piece group_piece_of(const job *j, scratch *w, const tn_scaled_place *at,
                                  const tn_tile_choice *choice)
{
    const tn_scaled_plan *p = &w->view;
    tn_scaled_row row = tn_scaled_row_at(p, at, 0);
    bool joined = at->rows == 1 || p->columns * p->data.bits % 8 == 0;  /* rows end on a byte */
    group_piece s = { .choice = choice, .row = tn_scaled_first_row(p, at),
                .column = at->across * p->tile_columns + at->column, .first = row.first,
                .x = tn_job_floats(j, w, row.first, (size_t)(at->rows * row.n)),
                .size = (size_t)(joined ? at->rows * row.n : row.n),
                .count = joined ? 1 : (size_t)at->rows };
    tn_code_put(s.scale, 0, tn_scaled_word(p->scale.bits), choice->scale);
    tn_code_put(s.zero, 0, tn_scaled_word(p->zero.bits), choice->zero);
    return s;
}

static tn_tiles tile_of(const job *j, const tn_scaled_plan *p, group_piece *s, size_t k)
{
    tn_tiles t = tiles_at(j, p, s->row + k, s->column, 1, s->size);
    t.choice = s->choice;
    t.scale = t.scale ? s->scale : NULL;
    t.zero = t.zero ? s->zero : NULL;
    t.first = s->first + k * s->size;
    t.x = s->x + k * s->size;
    return t;
}

/* False: the fast path cannot encode this piece, and nothing is written.  Decodes after all rows are
 * encoded, because the output may overwrite the values. */
static bool encode_group_piece(const job *j, scratch *w, result *f, const tn_scaled_place *at,
                        const tn_tile_choice *choice)
{
    const tn_scaled_plan *p = &w->view;
    if (!j->encode)
        return false;
    group_piece s = group_piece_of(j, w, at, choice);
    size_t done = 0;
    bool good = true;
    for (; done < s.count && good; done++) {
        tn_tiles t = tile_of(j, p, &s, done);
        good = j->encode(p, &t);
    }
    for (size_t k = 0; k < done; k++) {
        tn_tiles t = tile_of(j, p, &s, k);
        if (good) {
            decode_tiles(j, w, f, &t, s.first + k * s.size);
            continue;
        }
        t.scale = t.zero = NULL;        /* not written yet */
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
    if (j->windows && tn_scaled_is_flat(&j->plan)) {            /* not sparse; encoding rejects NaN */
        f->ranges[k] = tn_scaled_range(tn_job_floats(j, w, row.first, (size_t)(at->rows * row.n)),
                                       (size_t)(at->rows * row.n), j->plan.d->has_zero);
        return TN_OK;
    }
    TN_TRY(begin(j, w, at, err));
    f->ranges[k] = (tn_tile_range){ 0 };
    tn_tile_measure(j->plan.d, &w->tile, &f->ranges[k]);
    return TN_OK;
}

/* A group without subtiles has one mapping.  Each trial applies one to all pieces. */
static uint64_t mappings_to_try(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_CODEBOOK && !d->subtile ? d->codebook.mappings : 1;
}

/* The n-th choice for a group; false if there are fewer. */
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
    TN_TRY(begin(j, w, at, err));
    f->squares[k] = 0;
    tn_tile_apply(j->plan.d, &j->plan.o, &w->tile, &choice, &f->squares[k]);
    return TN_OK;
}

static tn_status encode_piece(const job *j, scratch *w, result *f, const tn_scaled_place *at, uint64_t k,
                              tn_error *err)
{
    tn_tile_choice choice;
    (void)k;
    choice_of(j, at, j->groups[tn_scaled_tile_number(&j->plan, at)].best, &choice);
    if (encode_group_piece(j, w, f, at, &choice))
        return TN_OK;
    TN_TRY(begin(j, w, at, err));
    tn_tile_apply(j->plan.d, &j->plan.o, &w->tile, &choice, NULL);
    finish(j, w, f, at);
    return TN_OK;
}

/* Tiles [from, to) of a batch. */
typedef struct tile_span {
    uint64_t batch, piece, from, to;
} tile_span;

static tn_status step_through(const job *j, scratch *w, result *f, tile_span s, tn_error *err)
{
    for (uint64_t k = s.from; k < s.to; k++) {
        tn_scaled_place at = tn_scaled_place_at(&j->plan, s.batch, k, s.piece);
        TN_TRY(j->step(j, w, f, &at, k, err));
    }
    return TN_OK;
}

/* Encodes full tiles with one call.  If the fast path refuses one of them, tries a few tiles per call, so
 * that only the neighbours of that tile are slow. */
static tn_status encode_at_once(const job *j, scratch *w, result *f, uint64_t batch, uint64_t tiles,
                                tn_error *err)
{
    tn_scaled_place at = tn_scaled_place_at(&j->plan, batch, 0, 0);
    if (tiles == 0 || encode_tiles(j, w, f, &at, (size_t)tiles))
        return TN_OK;
    for (uint64_t k = 0; k < tiles; k += A_FEW) {
        uint64_t end = tn_min_u64(k + A_FEW, tiles);
        at = tn_scaled_place_at(&j->plan, batch, k, 0);
        if (!encode_tiles(j, w, f, &at, (size_t)(end - k)))
            TN_TRY(step_through(j, w, f, (tile_span){ batch, 0, k, end }, err));
    }
    return TN_OK;
}

/* Whether the padded tile after `tiles` others of a batch can be encoded as a short tile.  Padding counts in
 * groups, subtiles and searches, and the fast path needs numbers that begin on a byte. */
static bool can_be_short(const tn_scaled_plan *p, uint64_t tiles)
{
    const tn_datatype *d = p->d;
    return !d->of && !d->offset_bits && !d->subtile && d->number.kind != TN_NUMBER_CODEBOOK &&
           p->o.rule != TN_SCALE_MSE && tn_scaled_ends_on_byte(p->data.bits, tiles * p->tile_columns) &&
           tn_scaled_ends_on_byte(p->scale.bits, tiles) && tn_scaled_ends_on_byte(p->zero.bits, tiles);
}

/* --- tiles of several lines ------------------------------------------------------------- */

/* Tiles side by side: those of a batch along the rows, or across them at one place. */
typedef struct line_batch {
    const job *j;
    scratch   *w;
    tn_scaled_place at;         /* the first of the tiles */
    uint64_t   columns;         /* of a tile across rows; 1: lines are rows */
    size_t     n;               /* values of a line */
    bool       loaded;          /* the values of all lines are in w->x */
} line_batch;

static uint64_t line_element(const line_batch *b, size_t line)
{
    const tn_scaled_plan *p = &b->w->view;
    return tn_scaled_row_at(p, &b->at, line / b->columns).first + line % b->columns * p->inner;
}

static const float *line_values(void *context, size_t line)
{
    const line_batch *b = context;
    return b->loaded ? b->w->x + line * b->n : tn_job_floats(b->j, b->w, line_element(b, line), b->n);
}

/* Casts all lines at once if that is necessary and there is memory: they are read twice. */
static void load_lines(line_batch *b, size_t lines)
{
    b->loaded = b->j->src_type != TN_FLOAT32 && b->n <= b->j->max_values / lines;
    if (!b->loaded)
        return;
    bool follow = line_element(b, lines - 1) - line_element(b, 0) == (lines - 1) * b->n;
    size_t some = follow ? lines : 1;
    for (size_t i = 0; i < lines; i += some)
        tn_job_load(b->j, b->w, b->w->x + i * b->n, line_element(b, i), 1, some * b->n);
}

static uint8_t *line_codes(void *context, size_t line)
{
    const line_batch *b = context;
    return tn_scaled_code_at(&b->w->view, line_element(b, line));
}

static uint64_t line_first(void *context, size_t line)
{
    return line_element(context, line);
}

/* Whether packed codes of all lines begin and end on a byte, or end with a row of the tensor. */
static bool lines_begin_on_bytes(const line_batch *b)
{
    const tn_scaled_plan *p = &b->w->view;
    unsigned bits = p->data.bits;
    uint64_t from = line_element(b, 0) % p->last, end = from + b->n, apart = p->inner * p->columns;
    return bits >= 8 || (apart % p->last == 0 && end <= p->last && tn_packed_bit(from, bits) == 0 &&
                         (end == p->last || tn_packed_bit(end, bits) == 0));
}

/* Whether values and codes of all lines are consecutive in memory. */
static bool do_lines_follow(line_batch *b, size_t lines)
{
    const tn_scaled_plan *p = &b->w->view;
    if (lines == 1 || !tn_scaled_ends_on_byte(p->data.bits, b->n) ||
        line_element(b, lines - 1) - line_element(b, 0) != (lines - 1) * b->n)
        return false;
    return line_values(b, 1) == line_values(b, 0) + b->n &&
           line_codes(b, 1) == line_codes(b, 0) + tn_scaled_field_bytes(p->data.bits, b->n);
}

static uint8_t *number_at(const tn_scaled_field *field, uint64_t i)
{
    return field->data ? field->data + (i * (tn_scaled_word(field->bits) / 8) - field->from) : NULL;
}

/* False: the fast path cannot encode these tiles, and no code is written. */
static bool encode_lines(line_batch *b, result *f, size_t tiles)
{
    const tn_scaled_plan *p = &b->w->view;
    const tn_scaled_row row = tn_scaled_row_at(p, &b->at, 0);
    uint64_t first = tn_scaled_tile_number(p, &b->at);
    uint64_t rows = tn_min_u64(p->tile_rows, p->rows - b->at.down * p->tile_rows);
    uint64_t columns = tn_min_u64(tiles * p->tile_columns, p->columns - b->at.across * p->tile_columns);
    bool across = p->inner > 1;
    b->columns = across ? row.n : 1;
    b->n = across ? tiles : (size_t)columns;
    tn_tile_lines lines = {
        .lines = (size_t)(rows * b->columns), .n = b->n, .tiles = tiles,
        .size = across ? 1 : (size_t)p->tile_columns, .tensor_scale = b->j->tensor_scale,
        .scale = number_at(&p->scale, first), .zero = number_at(&p->zero, first),
        .values = line_values, .codes = line_codes, .first = line_first, .context = b,
    };
    bool has_memory = p->data.data && lines.scale && (lines.zero || !p->d->has_zero);
    if (!has_memory || !lines_begin_on_bytes(b))
        return false;
    load_lines(b, lines.lines);
    lines.follow = do_lines_follow(b, lines.lines);
    if (!tn_scaled_encode_lines(NULL, p, &lines))
        return false;
    for (size_t i = 0; i < lines.lines && b->w->dst; i++) {
        const tn_job_block block = { .first = line_element(b, i), .n = b->n, .x = line_values(b, i),
                                     .codes = line_codes(b, i) };
        tn_job_decode_block(b->j, b->w, f, &block);
    }
    return true;
}

/* Encodes a batch by lines; those tiles that cannot be are left to the definition. */
static tn_status encode_by_lines(const job *j, scratch *w, result *f, uint64_t batch, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t tiles = tn_scaled_batch_tiles(p, batch), some = tiles;
    line_batch b = { .j = j, .w = w };
    tn_scaled_place last = tn_scaled_place_at(p, batch, tiles - 1, 0);
    b.at = tn_scaled_place_at(p, batch, 0, 0);
    if (p->inner > 1)
        some = last.inner - b.at.inner + 1;
    for (uint64_t k = 0; k < tiles; k += some) {
        b.at = tn_scaled_place_at(p, batch, k, 0);
        if (!encode_lines(&b, f, (size_t)some))
            TN_TRY(step_through(j, w, f, (tile_span){ batch, 0, k, k + some }, err));
    }
    return TN_OK;
}

static tn_status encode(const job *j, scratch *w, result *f, uint64_t batch, uint64_t piece, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t tiles = tn_scaled_batch_tiles(p, batch), done = 0;
    /* a report adds up tile by tile, and sums of another order are others */
    if (j->has_lines && j->step == encode_whole && !tn_has_percentile(&p->o) && !j->work->report)
        return encode_by_lines(j, w, f, batch, err);
    if (j->encode && p->tile_rows == 1 && j->step == encode_whole && !tn_has_percentile(&p->o)) {
        tn_scaled_place at = tn_scaled_place_at(p, batch, 0, 0);
        uint64_t whole = (p->columns - at.across * p->tile_columns) / p->tile_columns;
        done = tn_min_u64(whole, tiles);
        TN_TRY(encode_at_once(j, w, f, batch, done, err));
        at = tn_scaled_place_at(p, batch, done, 0);
        if (done < tiles && can_be_short(p, done) && encode_tiles(j, w, f, &at, 1))
            done++;
    }
    return step_through(j, w, f, (tile_span){ batch, piece, done, tiles }, err);
}

/* Adds the result of a piece to its group.  `last`: the last piece. */
static void gather_piece(const job *j, group *g, const result *f, uint64_t k, bool last)
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

static void gather(job *j, const tn_job_item *item, const result *f)
{
    const tn_scaled_plan *p = &j->plan;
    bool last = item->piece + 1 == tn_scaled_pieces(p);
    for (uint64_t k = 0; k < tn_scaled_batch_tiles(p, item->first); k++) {
        tn_scaled_place at = tn_scaled_place_at(p, item->first, k, item->piece);
        gather_piece(j, &j->groups[tn_scaled_tile_number(p, &at)], f, k, last);
    }
}

/* --- percentiles of groups -------------------------------------------------------------- */

/* Counts the kept values of the pieces of an item. */
static tn_status count_item(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally,
                            tn_error *err)
{
    const job *j = context;
    const tn_scaled_plan *p = &j->plan;
    scratch *w = &j->scratches[worker];
    tn_job_item s = tn_job_item_of(j, item);
    tn_scaled_row own = tn_job_elements(j, &s);
    TN_TRY(tn_job_open_values(j, w, &j->results[worker], own.first, own.n, err));
    for (uint64_t k = 0; k < tn_scaled_batch_tiles(p, s.first); k++) {
        tn_scaled_place at = tn_scaled_place_at(p, s.first, k, s.piece);
        TN_TRY(begin(j, w, &at, err));
        size_t n = 0;
        for (size_t i = 0; i < w->tile.n; i++)
            if (w->index[i] != UINT64_MAX && (!p->d->of || w->tile.mask[i]))
                w->y[n++] = w->x[i];
        tn_scale_tally_count(tally, w->y, n, tn_scaled_tile_number(p, &at));
    }
    return TN_OK;
}

/* Limits the range of each group to the percentile. */
static tn_status find_percentiles(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    const tn_affine symmetry = { .codes = TN_INT8, .symmetric = !p->d->has_zero };
    const tn_quantize_options o = { .size = sizeof o, .percentile = p->o.percentile };
    const tn_scale_source source = { .add = count_item, .context = j,
                                     .items = p->batches * tn_scaled_pieces(p) };
    tn_scale_index index = { .inner = 1, .count = p->outer * p->tiles_down * p->tiles_across * p->inner };
    tn_scale_tally *tally;
    TN_TRY(tn_scale_tally_new(&symmetry, &o, TN_FLOAT32, index, &tally, err));
    tn_status status = tn_scale_search(tally, &source, tn_pool_jobs(j->work->pool), err);
    for (uint64_t i = 0; i < index.count && !status; i++) {
        tn_tile_range *range = &j->groups[i].range;
        tn_scale_tally_range(tally, i, &range->low, &range->high);
        range->largest = fmaxf(-range->low, range->high);
    }
    tn_scale_tally_free(tally);
    return status;
}

/* The most trials of a group; some have fewer. */
static uint64_t trials_of(const job *j)
{
    return (j->plan.o.rule == TN_SCALE_MSE ? TN_TILE_CHOICES : 1) * mappings_to_try(j->plan.d);
}

/* Writes the scales and zero points of all groups, if the plan has memory for them. */
static void put_choices(const job *j)
{
    const tn_scaled_plan *p = &j->plan;
    for (uint64_t b = 0; b < p->batches && p->scale.data; b++)
        for (uint64_t k = 0; k < tn_scaled_batch_tiles(p, b); k++) {
            tn_scaled_place at = tn_scaled_place_at(p, b, k, 0);
            tn_tile_choice choice;
            choice_of(j, &at, j->groups[tn_scaled_tile_number(p, &at)].best, &choice);
            tn_scaled_put_choice(p, &at, choice.scale, choice.zero);
        }
}

/* Runs the passes that precede the encoding of groups. */
static tn_status search_groups(job *j, tn_error *err)
{
    j->gather = gather;
    j->step = measure_piece;
    TN_TRY(tn_job_round(j, err));
    if (tn_has_percentile(&j->plan.o))
        TN_TRY(find_percentiles(j, err));
    j->step = try_piece;
    for (j->trial = 0; j->trial < trials_of(j) && trials_of(j) > 1; j->trial++)
        TN_TRY(tn_job_round(j, err));
    j->gather = NULL;
    if (j->work->by_items)
        put_choices(j);
    return TN_OK;
}

/* --- the scale of a tensor ------------------------------------------------------------ */

/* What is rotated is measured by items. */
static uint64_t measure_items(const job *j)
{
    return j->rotates ? tn_job_items(j) : tn_div_up_u64(j->plan.count, TN_SCALED_MEASURE);
}

static tn_status measure_some(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    const tn_job_item s = tn_job_item_of(j, item);
    uint64_t first = item * TN_SCALED_MEASURE;
    tn_scaled_row own = { first, tn_min_u64(j->plan.count - first, TN_SCALED_MEASURE) };
    scratch *w = &j->scratches[use.scratch];
    if (j->rotates)
        own = tn_job_elements(j, &s);
    TN_TRY(tn_job_open_values(j, w, &j->results[use.result], own.first, own.n, err));
    const float *x = tn_job_floats(j, w, own.first, (size_t)own.n);
    j->results[use.result].range = tn_scaled_range(x, (size_t)own.n, j->plan.d->has_zero);
    return TN_OK;
}

/* Computes the scale after the last item, here because the pool sets the floating-point environment. */
static tn_status join_ranges(void *context, uint64_t item, unsigned number, tn_error *err)
{
    job *j = context;
    (void)err;
    tn_tile_range_join(&j->range, &j->results[number].range);
    if (item + 1 < measure_items(j))
        return TN_OK;
    j->tscale = tn_tensor_scale_for(j->plan.d, &j->plan.o, &j->range);
    j->tensor_scale = tn_spec_value(&j->plan.d->tensor_scale, j->tscale);
    return TN_OK;
}

static tn_status find_tensor_scale(job *j, tn_error *err)
{
    const tn_ordered task = { .work = measure_some, .emit = join_ranges, .context = j };
    TN_TRY(tn_job_workers(j, err));
    TN_TRY(tn_pool_run(j->work->pool, measure_items(j), &task, err));
    if (j->plan.tscale.data)
        tn_scaled_put_tensor_scale(&j->plan, j->tscale);
    return TN_OK;
}

static tn_status prepare(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    if (!p->count) {            /* an empty tensor still has a scale of the tensor */
        if (p->tscale.data)
            tn_scaled_put_tensor_scale(p, tn_tensor_scale_for(p->d, &p->o, &(tn_tile_range){ 0 }));
        return TN_OK;
    }
    j->decode = j->windows ? tn_scaled_decoder(p) : NULL;
    j->encode = j->decode ? tn_scaled_encoder(p) : NULL;
    j->has_lines = tn_scaled_has_lines(p);
    if (p->d->has_tensor_scale)
        TN_TRY(find_tensor_scale(j, err));
    if (j->groups)
        TN_TRY(search_groups(j, err));
    j->step = j->groups ? encode_piece : encode_whole;
    return TN_OK;
}

/* --- the quantizer --------------------------------------------------------------------- */

static tn_status open(tn_part_values *v, tn_error *err)
{
    (void)err;
    v->tensor_scale = tn_scaled_tensor_scale(v->plan);
    return TN_OK;
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    tn_scaled_values_with(tn_decode_kernels_get(), v->plan, v->tensor_scale, first, n, y, v->stream);
}

static bool read_bf16(const tn_part_values *v, uint64_t first, size_t n, uint8_t *y)
{
    return tn_scaled_bf16(tn_decode_kernels_get(), v->plan, v->tensor_scale, first, n, y);
}

static bool keeps_bf16(const tn_part_values *v)
{
    return tn_scaled_keeps_bf16(tn_decode_kernels_get(), v->plan, v->tensor_scale);
}

static bool is_any_text(const char *text)
{
    (void)text;
    return true;
}

const tn_quantizer tn_tile_quantizer = {
    .name = "tiles", .is_text = is_any_text, .parse = tn_tiles_parse, .shapes = tn_tile_shapes,
    .check = tn_scaled_check, .prepare = prepare, .encode = encode,
    .open = open, .read = read_values, .read_bf16 = read_bf16, .keeps_bf16 = keeps_bf16,
};
