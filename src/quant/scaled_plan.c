/* quant/scaled_plan.c - divide a tensor into tiles, read and write their codes. */
#include "quant/scaled_plan.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/sealed.h"
#include "tensor/array.h"
#include "tensor/block.h"

enum {
    BATCH = 16384,              /* values per batch, roughly */
    BATCH_INNER = 512,          /* most tiles of a batch along the last dimension... */
    LEAST_INNER = 64,           /* ...and as many as these, whatever their size */
    ON_BYTES = 8,               /* this many numbers of any width end on a byte */
    ROW_COLUMNS = BATCH / ON_BYTES,     /* columns of a tile when the tensor is one row */
    UNSCALED_COLUMNS = 4096     /* columns of a tile without scale: any multiple of 8 works */
};

/* --- geometry -------------------------------------------------------------------- */

static uint64_t extent(const tn_scaled_plan *p, uint32_t from, uint32_t to)
{
    uint64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= (uint64_t)p->shape[i];
    return n;
}

/* Values of a tile along a tiled dimension, kept and dropped; `all`: the extent of the dimension. */
static uint64_t tile_extent(const tn_datatype *d, uint32_t i, uint64_t all)
{
    uint64_t n = d->tile[i];
    if (d->of && n)
        n = n / d->keep * d->of;
    if (n && (n < all || d->subtile))
        return n;
    /* a larger tile needs no padding, except to whole groups of N:M sparsity */
    return d->of ? tn_div_up_u64(all, d->of) * d->of : all;
}

/* Affine codes are consecutive whatever their scales. */
static void view_as_row(tn_scaled_plan *p)
{
    p->outer = p->rows = p->inner = 1;
    p->columns = p->count;
    p->tile_rows = p->tiles_down = 1;
    p->tile_columns = tn_min_u64(p->count, ROW_COLUMNS);
    p->tiles_across = tn_div_up_u64(p->columns, p->tile_columns);
}

static void view_as_matrix(tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    uint32_t first = d->dim < 0 ? p->rank - (uint32_t)-d->dim : (uint32_t)d->dim;
    if (d->dims == 0) {
        p->outer = 1;
        p->rows = p->rank ? extent(p, 0, p->rank - 1) : 1;
        p->columns = p->last;
        p->inner = 1;
    } else {
        p->outer = extent(p, 0, first);
        p->rows = d->dims == 2 ? (uint64_t)p->shape[first] : 1;
        p->columns = (uint64_t)p->shape[first + d->dims - 1];
        p->inner = extent(p, first + d->dims, p->rank);
    }
}

static void divide_into_tiles(tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool whole = d->scope == TN_SCOPE_TENSOR;
    p->tile_rows = whole ? p->rows : 1;
    if (d->dims == 2)
        p->tile_rows = tile_extent(d, 0, p->rows);
    p->tile_columns = whole ? p->columns : tn_min_u64(p->columns, UNSCALED_COLUMNS);
    if (d->dims)
        p->tile_columns = tile_extent(d, d->dims - 1, p->columns);
    p->tiles_down = tn_div_up_u64(p->rows, p->tile_rows);
    p->tiles_across = tn_div_up_u64(p->columns, p->tile_columns);
}

/* Joins rows of whole tiles whose numbers all end on a byte: nothing separates their tiles. */
static void join_rows(tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    uint64_t across = p->tiles_across, slots = p->columns;
    if (d->dims != 1 || p->inner != 1 || p->columns % p->tile_columns || p->tile_columns > TN_TILE_MAX)
        return;
    if (d->of && !p->o.unpacked)
        slots = p->columns / d->of * d->keep;
    if (!tn_scaled_ends_on_byte(p->data.bits, slots) || !tn_scaled_ends_on_byte(p->scale.bits, across) ||
        !tn_scaled_ends_on_byte(p->zero.bits, across) || (d->of && p->columns % 8))
        return;
    p->outer = 1;
    p->columns = p->last = p->count;
    p->tiles_across = p->columns / p->tile_columns;
}

/* A small tensor with one scale is one row if its rows end on a byte: fast paths take tiles of one row. */
static void join_tensor(tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    if (d->scope != TN_SCOPE_TENSOR || d->of || d->subtile || d->offset_bits || p->count > TN_TILE_MAX ||
        !tn_scaled_ends_on_byte(p->data.bits, p->columns))
        return;
    p->rows = p->tile_rows = 1;
    p->columns = p->tile_columns = p->last = p->count;
}

/* A piece is whole rows, or a part of a row that ends on a byte and with a group of N:M sparsity. */
static void divide_into_pieces(tn_scaled_plan *p)
{
    p->piece_columns = tn_min_u64(p->tile_columns, TN_TILE_MAX);
    p->piece_rows =
        p->tile_columns > TN_TILE_MAX ? 1 : tn_min_u64(p->tile_rows, TN_TILE_MAX / p->tile_columns);
    p->pieces_down = tn_div_up_u64(p->tile_rows, p->piece_rows);
    p->pieces_across = tn_div_up_u64(p->tile_columns, p->piece_columns);
}

static void count_batches(tn_scaled_plan *p)
{
    p->batches_across = tn_div_up_u64(p->tiles_across, p->batch_across);
    p->batches_inner = tn_div_up_u64(p->inner_row, p->batch_inner);
    p->band = p->inner / p->inner_row * p->batches_inner * (p->tile_rows > 1 ? p->batches_across : 1);
    p->batches = p->outer * p->tiles_down * p->inner / p->inner_row * p->batches_inner * p->batches_across;
}

static void group_into_batches(tn_scaled_plan *p)
{
    uint64_t size = p->piece_rows * p->piece_columns,
             some = tn_div_up_u64(BATCH, size * ON_BYTES) * ON_BYTES;
    p->inner_row = p->inner == 1 ? 1 : p->last;
    p->batch_inner = tn_min_u64(some > LEAST_INNER ? some : LEAST_INNER, BATCH_INNER);
    p->batch_inner = tn_min_u64(p->batch_inner, p->inner_row);
    p->batch_across = tn_div_up_u64(some, p->batch_inner * ON_BYTES) * ON_BYTES;
    count_batches(p);
}

/* --- bands ------------------------------------------------------------------------- */

TN_RELRO uint64_t tn_scaled_band = 1 << 22;

/* Tiles across after which the numbers of all parts end on a byte. */
static uint64_t tiles_on_bytes(const tn_scaled_plan *p)
{
    bool any = tn_scaled_ends_on_byte(p->scale.bits, 1) && tn_scaled_ends_on_byte(p->zero.bits, 1) &&
               !p->d->of;
    return any ? 1 : ON_BYTES;
}

/* Whole tiles.  Blocks of the rotation do not cross bands. */
static bool cut_between_tiles(tn_scaled_plan *p, uint64_t rotated)
{
    uint64_t across = p->inner > 1 && p->tile_rows == 1 ? tiles_on_bytes(p) : p->batch_across;
    while (p->tile_rows == 1 && across < p->tiles_across && across * p->tile_columns % rotated)
        across *= 2;
    uint64_t columns = p->tile_rows > 1 ? p->columns : tn_min_u64(across * p->tile_columns, p->columns);
    if (p->inner > tn_scaled_band / p->tile_rows / columns)
        return false;
    p->batch_across = across;
    count_batches(p);
    return true;
}

/* Pieces of tiles that have only a scale and a zero point in common, side by side.  The squared errors of
 * pieces add up to other sums than those of whole tiles, so what depends on them stays as it is. */
static bool cut_inside_tiles(tn_scaled_plan *p, uint64_t rotated)
{
    const tn_datatype *d = p->d;
    bool is_matrix = p->tile_rows > 1, is_whole = tn_scaled_pieces(p) == 1;
    uint64_t beside = p->inner * (is_matrix ? p->tiles_across : 1),
             most = tn_min_u64(tn_scaled_band / beside, TN_TILE_MAX),
             unit = p->inner == 1 && rotated < ON_BYTES ? ON_BYTES : rotated;
    if (d->of || d->offset_bits || d->number.kind == TN_NUMBER_CODEBOOK || tiles_on_bytes(p) > 1 ||
        (is_whole && (p->o.rule == TN_SCALE_MSE || tn_has_percentile(&p->o))))
        return false;
    if (is_matrix) {
        p->piece_columns = p->tile_columns;
        p->piece_rows = tn_min_u64(most / p->tile_columns, p->tile_rows);
    } else if (most < p->tile_columns) {
        p->piece_columns = most - most % unit;
    }
    bool follow = p->tile_columns % rotated == 0 &&
                  (p->inner > 1 || tn_scaled_ends_on_byte(p->data.bits, p->tile_columns));
    if (!p->piece_rows || !p->piece_columns || (!is_matrix && p->tiles_across > 1 && !follow))
        return false;
    p->pieces_down = tn_div_up_u64(p->tile_rows, p->piece_rows);
    p->pieces_across = tn_div_up_u64(p->tile_columns, p->piece_columns);
    p->inner_row = p->batch_inner = p->inner;
    p->batch_across = is_matrix ? p->tiles_across : 1;
    count_batches(p);
    return true;
}

bool tn_scaled_cut(tn_scaled_plan *p)
{
    tn_scaled_plan own = *p;
    uint64_t rotated = p->o.rotation.size ? p->o.rotation.size : 1;
    if (!p->count || (tn_scaled_streams(p) && (rotated == 1 || tn_scaled_rotates(p))))
        return true;
    own.is_cut = (tn_scaled_pieces(p) == 1 && cut_between_tiles(&own, rotated)) ||
                 cut_inside_tiles(&own, rotated);
    /* joined rows of a dimension that only dimensions of 1 follow have fewer bytes than their part */
    own.is_cut &= tn_scaled_byte_at(&own, 0, own.outer * own.rows, 0) == own.data.nbytes;
    if (own.is_cut)
        *p = own;
    return own.is_cut;
}

/* --- parts -------------------------------------------------------------------------- */

const char *const tn_scaled_roles[TN_SCALED_FIELDS] = { "data", "scale", "zero", "offset", "meta", "mask" };

static tn_scaled_field *field_of(tn_scaled_plan *p, const char *role)
{
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++)
        if (strcmp(role, tn_scaled_roles[i]) == 0)
            return &p->fields[i];
    return strcmp(role, "index") == 0 ? &p->index : &p->tscale;
}

static void set_widths(tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    p->data.bits = d->number.bits < 8 && p->o.unpacked ? 8 : d->number.bits;
    p->scale.bits = d->scale.bits;
    p->tscale.bits = d->tensor_scale.bits;
    p->zero.bits = d->zero.bits;
    p->offset.bits = d->offset_bits;
    p->meta.bits = d->codebook.meta_bits;
    p->mask.bits = 1;
    p->index.bits = 32;
}

static tn_status set_parts(tn_scaled_plan *p, const tn_scaled_shapes *shapes, void *const *parts,
                           tn_error *err)
{
    for (uint32_t i = 0; i < shapes->count; i++) {
        const tn_scaled_part *part = &shapes->parts[i];
        bool plain = p->o.unpacked && i == 0;
        tn_scaled_field *field = field_of(p, part->role);
        tn_status status = tn_shape_nbytes(plain ? part->plain_dtype : part->dtype, part->rank,
                                           plain ? part->plain_shape : part->shape, &field->nbytes);
        if (status != TN_OK)
            return tn_fail(err, status, "the part %s is too large", part->role);
        field->data = parts ? parts[i] : NULL;
    }
    return TN_OK;
}

tn_status tn_scaled_plan_make(tn_scaled_plan *p, const tn_datatype *d, uint32_t rank, const int64_t *shape,
                              const tn_quantize_options *o, void *const *parts, tn_error *err)
{
    tn_scaled_shapes shapes;
    *p = (tn_scaled_plan){ .d = d, .o = *o, .rank = rank, .shape = shape };
    TN_TRY(tn_scaled_shapes_for(d, rank, shape, &shapes, err));
    tn_status status = tn_shape_count(rank, shape, &p->count);
    if (status)
        return tn_fail(err, status, "the tensor is too large");
    set_widths(p);
    TN_TRY(set_parts(p, &shapes, parts, err));
    if (p->count == 0)
        return TN_OK;
    p->last = rank ? (uint64_t)shape[rank - 1] : 1;
    p->extent = p->last;
    if (d->is_affine) {
        view_as_row(p);
    } else {
        view_as_matrix(p);
        p->extent = p->columns;
        divide_into_tiles(p);
        join_rows(p);
        join_tensor(p);
    }
    divide_into_pieces(p);
    group_into_batches(p);
    p->slots = d->of && !o->unpacked ? tn_div_up_u64(p->columns, d->of) * d->keep : p->columns;
    return TN_OK;
}

/* --- tiles ---------------------------------------------------------------------------- */

/* The first tile of a batch, and how many tiles it has in each direction. */
typedef struct batch_tiles {
    uint64_t outer, down, across, inner;
    uint64_t tiles_across, tiles_inner;
} batch_tiles;

/* a / b and the rest.  Most are trivial here, and a division takes long beside a small tile. */
static inline uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest)
{
    if (a < b) {
        *rest = a;
        return 0;
    }
    *rest = b == 1 ? 0 : a % b;
    return b == 1 ? a : a / b;
}

static batch_tiles batch_at(const tn_scaled_plan *p, uint64_t batch)
{
    batch_tiles c;
    uint64_t in_row, row, across, none, inner_rows = divide(p->inner, p->inner_row, &none);
    batch = divide(batch, p->batches_inner, &in_row);
    in_row *= p->batch_inner;
    batch = divide(batch, inner_rows, &row);
    c.inner = row * p->inner_row + in_row;
    c.tiles_inner = tn_min_u64(p->batch_inner, p->inner_row - in_row);
    batch = divide(batch, p->batches_across, &across);
    c.across = across * p->batch_across;
    c.tiles_across = tn_min_u64(p->batch_across, p->tiles_across - c.across);
    c.outer = divide(batch, p->tiles_down, &c.down);
    return c;
}

uint64_t tn_scaled_batch_tiles(const tn_scaled_plan *p, uint64_t batch)
{
    batch_tiles c = batch_at(p, batch);
    return c.tiles_across * c.tiles_inner;
}

tn_scaled_place tn_scaled_place_at(const tn_scaled_plan *p, uint64_t batch, uint64_t k, uint64_t piece)
{
    batch_tiles c = batch_at(p, batch);
    uint64_t inner, across = divide(k, c.tiles_inner, &inner), column,
             row = divide(piece, p->pieces_across, &column) * p->piece_rows;
    column *= p->piece_columns;
    return (tn_scaled_place){
        .outer = c.outer, .down = c.down,
        .across = c.across + across, .inner = c.inner + inner,
        .row = row, .column = column,
        .rows = tn_min_u64(p->piece_rows, p->tile_rows - row),
        .columns = tn_min_u64(p->piece_columns, p->tile_columns - column),
    };
}

uint64_t tn_scaled_tile_number(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return ((at->outer * p->tiles_down + at->down) * p->tiles_across + at->across) * p->inner + at->inner;
}

/* The index of an element, or of a slot, in rows of `columns` of them. */
static uint64_t element_of(const tn_scaled_plan *p, const tn_scaled_place *at, uint64_t row, uint64_t column,
                           uint64_t columns)
{
    return ((at->outer * p->rows + at->down * p->tile_rows + at->row + row) * columns + column) * p->inner +
           at->inner;
}

tn_scaled_row tn_scaled_row_at(const tn_scaled_plan *p, const tn_scaled_place *at, uint64_t row)
{
    uint64_t column = at->across * p->tile_columns + at->column,
             in_tensor = at->down * p->tile_rows + at->row + row;
    if (in_tensor >= p->rows || column >= p->columns)
        return (tn_scaled_row){ 0, 0 };
    return (tn_scaled_row){ element_of(p, at, row, column, p->columns),
                            tn_min_u64(at->columns, p->columns - column) };
}

/* --- numbers of a field ------------------------------------------------------------------ */

/* Number `i` of packed numbers whose bytes are `step` apart. */
static void put_packed(uint8_t *data, uint64_t step, uint64_t i, unsigned bits, uint32_t code)
{
    uint8_t *byte = data + tn_packed_byte(i, bits) * step;
    unsigned bit = tn_packed_bit(i, bits), word = code << bit;
    *byte = (uint8_t)(*byte | word);
    if (bit + bits > 8)
        byte[step] = (uint8_t)(byte[step] | word >> 8);
}

static uint32_t get_packed(const uint8_t *data, uint64_t step, uint64_t i, unsigned bits)
{
    const uint8_t *byte = data + tn_packed_byte(i, bits) * step;
    unsigned bit = tn_packed_bit(i, bits), word = *byte;
    if (bit + bits > 8)
        word |= (unsigned)byte[step] << 8;
    return word >> bit & ((1u << bits) - 1);
}

/* The row of `last` elements that an element of data is in.  Rows begin on a byte. */
static uint8_t *data_row(const tn_scaled_plan *p, uint64_t element, uint64_t last)
{
    return p->data.data + (element / last * tn_packed_bytes(last, p->data.bits) - p->data.from);
}

/* The index in the window of number i, which is not packed. */
static uint64_t in_window(const tn_scaled_field *field, uint64_t i)
{
    return i - field->from / (tn_scaled_word(field->bits) / 8);
}

uint8_t *tn_scaled_code_at(const tn_scaled_plan *p, uint64_t element)
{
    if (p->data.bits < 8)
        return data_row(p, element, p->last) + tn_packed_byte(element % p->last, p->data.bits);
    return p->data.data + in_window(&p->data, element) * (tn_scaled_word(p->data.bits) / 8);
}

static void put_code(const tn_scaled_plan *p, uint64_t element, uint64_t last, uint32_t code)
{
    if (p->data.bits < 8)
        put_packed(data_row(p, element, last), 1, element % last, p->data.bits, code);
    else
        tn_code_put(p->data.data, in_window(&p->data, element), tn_scaled_word(p->data.bits), code);
}

static uint32_t get_code(const tn_scaled_plan *p, uint64_t element, uint64_t last)
{
    if (p->data.bits < 8)
        return get_packed(data_row(p, element, last), 1, element % last, p->data.bits);
    return (uint32_t)tn_code_get(p->data.data, in_window(&p->data, element), tn_scaled_word(p->data.bits));
}

/* Where the packed numbers of a row of tiles begin. */
static uint8_t *tile_row(const tn_scaled_plan *p, const tn_scaled_field *field, const tn_scaled_place *at)
{
    uint64_t bytes = tn_packed_bytes(p->tiles_across, field->bits);
    return field->data +
           ((at->outer * p->tiles_down + at->down) * bytes * p->inner + at->inner - field->from);
}

/* Scales and zero points: one number per tile. */
static void put_number(const tn_scaled_plan *p, const tn_scaled_field *field, const tn_scaled_place *at,
                       uint32_t code)
{
    if (field->bits < 8)
        put_packed(tile_row(p, field, at), p->inner, at->across, field->bits, code);
    else
        tn_code_put(field->data, in_window(field, tn_scaled_tile_number(p, at)), tn_scaled_word(field->bits),
                    code);
}

static uint32_t get_number(const tn_scaled_plan *p, const tn_scaled_field *field, const tn_scaled_place *at)
{
    if (field->bits < 8)
        return get_packed(tile_row(p, field, at), p->inner, at->across, field->bits);
    return (uint32_t)tn_code_get(field->data, in_window(field, tn_scaled_tile_number(p, at)),
                                 tn_scaled_word(field->bits));
}

/* Offsets and mappings: one number per subtile.  Each tile begins on a byte. */
static uint8_t *tile_bytes(const tn_scaled_plan *p, const tn_scaled_field *field, const tn_scaled_place *at)
{
    uint64_t units = tn_tile_units(p->d, (size_t)(p->tile_rows * p->tile_columns));
    uint64_t bytes = tn_packed_bytes(units, field->bits);
    uint64_t tile = (at->outer * p->tiles_down + at->down) * p->tiles_across + at->across;
    return field->data + (tile * bytes * p->inner + at->inner - field->from);
}

/* The index in the tile of the first subtile of a piece. */
static uint64_t first_unit(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    size_t before = (size_t)(at->row * p->tile_columns + at->column);
    return p->d->subtile && before ? tn_tile_units(p->d, before) : 0;
}

static bool is_first_piece(const tn_scaled_place *at)
{
    return at->row == 0 && at->column == 0;
}

static void put_units(const tn_scaled_plan *p, const tn_scaled_field *field, const tn_scaled_place *at,
                      const uint8_t *unit, size_t n)
{
    if (!field->data || (!p->d->subtile && !is_first_piece(at)))
        return;
    uint8_t *data = tile_bytes(p, field, at);
    for (size_t u = 0; u < n; u++)
        put_packed(data, p->inner, first_unit(p, at) + u, field->bits, unit[u]);
}

static void get_units(const tn_scaled_plan *p, const tn_scaled_field *field, const tn_scaled_place *at,
                      uint8_t *unit, size_t n)
{
    if (!field->data) {
        memset(unit, 0, n);
        return;
    }
    const uint8_t *data = tile_bytes(p, field, at);
    for (size_t u = 0; u < n; u++)
        unit[u] = (uint8_t)get_packed(data, p->inner, first_unit(p, at) + u, field->bits);
}

/* --- pieces -------------------------------------------------------------------------------- */

static uint64_t column_of(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return at->across * p->tile_columns + at->column;
}

static uint8_t *mask_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return p->mask.data + (at->outer * tn_packed_bytes(p->columns, 1) * p->inner + at->inner - p->mask.from);
}

uint64_t tn_scaled_data_row(const tn_scaled_plan *p)
{
    uint32_t dim = p->d->dim < 0 ? p->rank - (uint32_t)-p->d->dim : (uint32_t)p->d->dim;
    return p->d->of && dim + 1 == p->rank ? p->slots : p->last;
}

/* A sparse piece has one row. */
static void put_sparse(const tn_scaled_plan *p, const tn_scaled_place *at, const tn_tile *t)
{
    const tn_datatype *d = p->d;
    uint64_t first = column_of(p, at), n = tn_scaled_row_at(p, at, 0).n, last = tn_scaled_data_row(p);
    for (uint64_t i = 0; i < n; i++)
        put_packed(mask_row(p, at), p->inner, first + i, 1, t->mask[i]);
    for (uint64_t g = 0; g < tn_div_up_u64(n, d->of); g++) {
        const uint32_t *slot = t->code + g * d->keep;
        uint64_t begin = (first / d->of + g) * d->keep;
        for (unsigned k = 0; k < d->keep && !p->o.unpacked; k++)
            put_code(p, element_of(p, at, 0, begin + k, p->slots), last, slot[k]);
        for (uint64_t i = g * d->of; i < tn_min_u64(n, (g + 1) * d->of) && p->o.unpacked; i++)
            put_code(p, element_of(p, at, 0, first + i, p->columns), last, t->mask[i] ? *slot++ : 0);
    }
}

static void get_sparse(const tn_scaled_plan *p, const tn_scaled_place *at, tn_tile *t)
{
    const tn_datatype *d = p->d;
    uint64_t first = column_of(p, at), n = tn_scaled_row_at(p, at, 0).n, last = tn_scaled_data_row(p);
    memset(t->code, 0, t->n / d->of * d->keep * sizeof *t->code);
    for (uint64_t i = 0; i < t->n; i++)
        t->mask[i] = i < n ? (uint8_t)get_packed(mask_row(p, at), p->inner, first + i, 1) : 0;
    for (uint64_t g = 0; g < tn_div_up_u64(n, d->of); g++) {
        uint32_t *slot = t->code + g * d->keep;
        uint64_t begin = (first / d->of + g) * d->keep;
        for (unsigned k = 0; k < d->keep && !p->o.unpacked; k++)
            slot[k] = get_code(p, element_of(p, at, 0, begin + k, p->slots), last);
        unsigned used = 0;
        for (uint64_t i = g * d->of; i < tn_min_u64(n, (g + 1) * d->of) && p->o.unpacked; i++)
            if (t->mask[i] && used < d->keep)
                slot[used++] = get_code(p, element_of(p, at, 0, first + i, p->columns), last);
    }
}

void tn_scaled_put_choice(const tn_scaled_plan *p, const tn_scaled_place *at, uint32_t scale, uint32_t zero)
{
    if (p->scale.data && is_first_piece(at))
        put_number(p, &p->scale, at, scale);
    if (p->zero.data && is_first_piece(at))
        put_number(p, &p->zero, at, zero);
}

void tn_scaled_put(const tn_scaled_plan *p, const tn_scaled_place *at, const tn_tile *t)
{
    size_t units = tn_tile_units(p->d, t->n);
    tn_scaled_put_choice(p, at, t->scale, t->zero);
    put_units(p, &p->offset, at, t->offset, units);
    put_units(p, &p->meta, at, t->meta, units);
    if (p->d->of) {
        put_sparse(p, at, t);
        return;
    }
    for (uint64_t r = 0; r < at->rows; r++) {
        tn_scaled_row row = tn_scaled_row_at(p, at, r);
        for (uint64_t i = 0; i < row.n; i++)
            put_code(p, row.first + i * p->inner, p->last, t->code[r * at->columns + i]);
    }
}

void tn_scaled_get(const tn_scaled_plan *p, const tn_scaled_place *at, tn_tile *t)
{
    t->n = (size_t)(at->rows * at->columns);
    size_t units = tn_tile_units(p->d, t->n);
    t->scale = p->scale.data ? get_number(p, &p->scale, at) : 0;
    t->zero = p->zero.data ? get_number(p, &p->zero, at) : 0;
    get_units(p, &p->offset, at, t->offset, units);
    get_units(p, &p->meta, at, t->meta, units);
    if (p->d->of) {
        get_sparse(p, at, t);
        return;
    }
    for (uint64_t r = 0; r < at->rows; r++) {
        tn_scaled_row row = tn_scaled_row_at(p, at, r);
        for (uint64_t i = 0; i < at->columns; i++)
            t->code[r * at->columns + i] = i < row.n ? get_code(p, row.first + i * p->inner, p->last) : 0;
    }
}

/* --- bytes of parts ---------------------------------------------------------------------- */

/* Bytes of a field for the first columns of a row, per element of `inner`. */
static uint64_t bytes_for(const tn_scaled_plan *p, unsigned i, uint64_t columns)
{
    const tn_scaled_field *field = &p->fields[i];
    uint64_t tiles = tn_div_up_u64(columns, p->tile_columns);
    if (p->d->block)
        return field == &p->data ? tiles * p->d->block->bytes : 0;
    if (field == &p->data && p->d->of && !p->o.unpacked)
        columns = tn_div_up_u64(columns, p->d->of) * p->d->keep;
    if (field == &p->data)
        return tn_scaled_field_bytes(field->bits, columns);
    if (field == &p->scale || field == &p->zero)
        return tn_scaled_field_bytes(field->bits, tiles);
    if (field == &p->mask)
        return tn_packed_bytes(columns, 1);
    return tiles *
           tn_packed_bytes(tn_tile_units(p->d, (size_t)(p->tile_rows * p->tile_columns)), field->bits);
}

uint64_t tn_scaled_byte_at(const tn_scaled_plan *p, unsigned field, uint64_t row, uint64_t column)
{
    if (field || tn_scaled_is_flat(p) || (p->inner == 1 && p->last == p->columns))
        return (row * bytes_for(p, field, p->columns) + bytes_for(p, field, column)) * p->inner;
    if (p->d->of && !p->o.unpacked)
        column = tn_div_up_u64(column, p->d->of) * p->d->keep;
    return (row * p->slots + column) * p->inner / p->last * tn_scaled_field_bytes(p->data.bits, p->last);
}

tn_scaled_begin tn_scaled_begin_of(const tn_scaled_plan *p, uint64_t batch, uint64_t piece)
{
    tn_scaled_place at = tn_scaled_place_at(p, batch, 0, piece);
    return (tn_scaled_begin){
        .row = at.outer * p->rows + tn_min_u64(at.down * p->tile_rows + at.row, p->rows),
        .tile_row = at.outer * p->tiles_down + at.down,
        .column = tn_min_u64(at.across * p->tile_columns + at.column, p->columns),
    };
}

float tn_scaled_tensor_scale(const tn_scaled_plan *p)
{
    if (!p->tscale.data)
        return 1;
    return tn_spec_value(&p->d->tensor_scale,
                         (uint32_t)tn_code_get(p->tscale.data, 0, tn_scaled_word(p->tscale.bits)));
}

void tn_scaled_put_tensor_scale(const tn_scaled_plan *p, uint32_t code)
{
    tn_code_put(p->tscale.data, 0, tn_scaled_word(p->tscale.bits), code);
}
