/* quant/scaled_decode.c - decode any range of a tiled tensor.
 *
 * Tiles along the last dimension, and matrix tiles, are decoded row by row, several
 * whole tiles per kernel call.  Scales, zero points and mappings become arrays of
 * levels, codes become bytes or words, and a kernel computes the values.  Partial
 * tiles at both ends of the range are decoded one subtile per call.  If tiles are
 * along another dimension, each value of a row has its own level.
 *
 * The floating-point environment is the default one. */
#include "quant/quantizer.h"
#include "quant/scaled_fast.h"
#include "base/checked.h"
#include "kernels/cast/table.h"
#include "kernels/lookup/table.h"
#include "kernels/scaled_decode/table.h"
#include "kernels/stream.h"

#include <math.h>

enum {
    CHUNK = 4096,               /* codes per kernel call */
    LEVELS = 1024,              /* levels per kernel call */
    STREAMED = 512              /* values per kernel call: fewer do not go past the caches */
};

/* Consecutive numbers of a part, packed or words. */
typedef struct run {
    const uint8_t *data;        /* NULL: none */
    uint64_t at;                /* first byte; wraps below 0 in a window until an index is added */
    unsigned bits;
} run;

/* Decodes the codes of one number spec. */
typedef struct decoder {
    const tn_number_spec *spec;
    tn_decode_number number;
    tn_decode_fn decode;        /* NULL: no kernel */
    unsigned     width;         /* log2 of the bytes per code, if not packed */
    bool         exact;         /* a plain cast from float32, float16 or bfloat16 */
} decoder;

/* What is constant for a plan. */
typedef struct reader {
    const tn_scaled_plan    *p;
    const tn_decode_kernels *k;
    decoder  number, scale, zero;
    float    tensor_scale;
    unsigned data_bits;         /* of a stored code */
    uint64_t columns;           /* of a row; rows without gaps are joined */
    uint64_t tile, unit;        /* columns of a tile, of a subtile (or of the tile if it has none) */
    uint64_t units, tile_units; /* subtiles per row of a tile, per tile */
    uint64_t at_once;           /* whole tiles that fit the scratch; 0: none */
    bool     stream;            /* write values past the caches */
} reader;

typedef struct scratch {
    float    slots[CHUNK + TN_DECODE_SPARE];
    uint8_t  codes[CHUNK + TN_DECODE_SPARE];
    uint8_t  numbers[LEVELS + TN_DECODE_SPARE];         /* unpacked codes of scales and zero points */
    uint8_t  offsets[LEVELS + TN_DECODE_SPARE], mappings[LEVELS + TN_DECODE_SPARE];
    float tile_scales[LEVELS + TN_DECODE_SPARE], scales[LEVELS + TN_DECODE_SPARE],
        shifts[LEVELS + TN_DECODE_SPARE];
    int32_t  zeros[LEVELS + TN_DECODE_SPARE];
} scratch;

/* The numbers of the first tile of a row of tiles. */
typedef struct tile_row {
    run data, scale, zero, offset, meta, mask;
    uint64_t unit;              /* matrix tiles: index in the tile of the row's first subtile */
} tile_row;

/* --- numbers --------------------------------------------------------------------- */

static void set_float(tn_decode_number *c, const tn_number_spec *spec)
{
    uint32_t largest = c->sign - 1;
    c->shift = 23u - spec->mantissa_bits;
    c->one = UINT32_C(1) << spec->mantissa_bits;
    c->rebias = (uint32_t)(127 - spec->bias) << 23;
    c->normal = ldexpf(1, 1 - spec->bias);
    switch (spec->type.specials) {
    case TN_SPECIALS_IEEE:
        c->kind = TN_DECODE_TOPPED;
        c->top = largest & ~(c->one - 1);
        break;
    case TN_SPECIALS_FN:
        c->kind = TN_DECODE_TOPPED;
        c->top = largest;
        break;
    case TN_SPECIALS_FNUZ:
        c->kind = TN_DECODE_FLOAT;
        c->nan = c->sign;
        c->infinite = spec->infnan == TN_INFNAN_INUZ ? largest : TN_DECODE_NEVER;
        break;
    default:
        c->kind = TN_DECODE_FINITE;
    }
}

/* Whether kernels cannot decode a number: its bias is beyond float32's, or its integer zero point is so wide
 * that a difference overflows int32_t. */
static bool needs_scalar(const tn_number_spec *spec, const tn_datatype *d)
{
    if (spec->kind == TN_NUMBER_UINT)
        return d->zero.kind != TN_NUMBER_FLOAT && d->zero.bits > 30;
    return spec->kind == TN_NUMBER_FLOAT && spec->bias > 127;
}

static decoder decoder_of(const tn_decode_kernels *k, const tn_number_spec *spec, const tn_datatype *d)
{
    decoder m = { .spec = spec, .width = (spec->bits > 8 ? 1u : 0u) + (spec->bits > 16) };
    tn_decode_number *c = &m.number;
    c->ones = (UINT32_C(2) << (spec->bits - 1)) - 1;
    c->sign = UINT32_C(1) << (spec->bits - 1);
    c->up = 32u - spec->bits;
    switch (spec->kind) {
    case TN_NUMBER_INT:
        c->kind = TN_DECODE_INT;
        c->unit = ldexpf(1, -tn_point_of(d));
        break;
    case TN_NUMBER_UINT:
        c->kind = d->zero.kind == TN_NUMBER_FLOAT ? TN_DECODE_SHIFTED : TN_DECODE_UINT;
        break;
    case TN_NUMBER_EXPONENT:
        c->kind = TN_DECODE_EXPONENT;
        c->bias = spec->bias;
        break;
    case TN_NUMBER_CODEBOOK:
        c->kind = TN_DECODE_CODEBOOK;
        c->values = d->codebook.values;
        c->value = d->codebook.value;
        break;
    default:
        if (spec->bias <= 127)
            set_float(c, spec);
    }
    m.decode = needs_scalar(spec, d) ? NULL : k->decode[c->kind][m.width];
    return m;
}

static float scalar_value(const decoder *m, uint32_t code, const tn_decode_levels *l, uint64_t level)
{
    float value = m->spec->kind == TN_NUMBER_UINT
                      ? l->scale[level] * (float)((int64_t)(code & m->number.ones) - l->zero[level])
                      : tn_spec_value(m->spec, code) * l->scale[level];
    return isnan(value) ? NAN : value;
}

static void decode_exact(tn_dtype type, float *y, const uint8_t *codes, size_t n)
{
    static const tn_cast_args nothing;
    if (type == TN_FLOAT32)
        memcpy(y, codes, n * sizeof *y);
    else
        tn_cast_kernels_get()->to_f32[type](y, codes, n, &nothing);
}

static void decode(const decoder *m, float *y, const uint8_t *codes, size_t n, const tn_decode_levels *l)
{
    if (m->exact) {
        decode_exact(m->spec->dtype, y, codes, n);
        return;
    }
    if (m->decode) {
        m->decode(y, codes, n, &m->number, l);
        return;
    }
    for (size_t i = 0; i < n; i++)
        y[i] = scalar_value(m, (uint32_t)tn_code_get(codes, i, 8u << m->width), l, i / l->each);
}

/* --- runs of numbers --------------------------------------------------------------- */

static run run_at(const tn_scaled_field *field, uint64_t byte)
{
    return (run){ field->data, byte - field->from, field->bits };
}

/* Number `i` of packed numbers whose bytes are `step` apart. */
static uint8_t packed_at(const run *r, uint64_t i, uint64_t step)
{
    uint64_t byte = r->at + tn_packed_byte(i, r->bits) * step;
    unsigned bit = tn_packed_bit(i, r->bits), word = r->data[byte];
    if (bit + r->bits > 8)
        word |= (unsigned)r->data[byte + step] << 8;
    return (uint8_t)(word >> bit & ((1u << r->bits) - 1));
}

/* Numbers [first, first + n) as bytes or words: in place, or in `unpacked`. */
static const uint8_t *codes_at(const reader *r, const run *from, uint64_t first, size_t n, uint8_t *unpacked)
{
    size_t head = 0;
    if (from->bits >= 8)
        return from->data + (from->at + first * (tn_scaled_word(from->bits) / 8));
    for (; head < n && tn_packed_bit(first + head, from->bits); head++)
        unpacked[head] = packed_at(from, first + head, 1);
    if (head < n)
        r->k->unpack(unpacked + head, from->data + (from->at + tn_packed_byte(first + head, from->bits)),
                     n - head, from->bits);
    return unpacked;
}

/* Number `i` of each of n runs that are interleaved: a byte apart if packed, else a word. */
static const uint8_t *inner_codes(const run *from, uint64_t i, uint64_t step, size_t n, uint8_t *unpacked)
{
    if (from->bits >= 8)
        return from->data + from->at;
    for (size_t k = 0; k < n; k++)
        unpacked[k] = packed_at(&(run){ from->data, from->at + k, from->bits }, i, step);
    return unpacked;
}

/* --- levels ---------------------------------------------------------------------------- */

/* Scales of n tiles; 1 without codes. */
static void decode_scales(const reader *r, const uint8_t *codes, size_t n, float *scales)
{
    for (size_t i = 0; i < n && !codes; i++)
        scales[i] = 1;
    if (codes)
        decode(&r->scale, scales, codes, n, &(tn_decode_levels){ .each = LEVELS, .scale = &r->tensor_scale });
}

static void decode_zeros(const reader *r, scratch *w, const uint8_t *codes, size_t n)
{
    static const float one = 1;
    if (r->p->d->zero.kind == TN_NUMBER_FLOAT)
        decode(&r->zero, w->shifts, codes, n, &(tn_decode_levels){ .each = LEVELS, .scale = &one });
    else
        tn_decode_integers(w->zeros, codes, n, r->zero.width, r->p->d->zero.bits);
}

/* Scales of n subtiles, `each` per tile: the scale of the tile reduced by the offset. */
static void decode_unit_scales(const reader *r, scratch *w, size_t each, size_t n)
{
    static const tn_decode_number offset = { .kind = TN_DECODE_HALVED, .ones = 3 };
    r->k->decode[TN_DECODE_HALVED][0](w->scales, w->offsets, n, &offset,
                                      &(tn_decode_levels){ .each = each, .scale = w->tile_scales });
}

static tn_decode_levels levels_of(const scratch *w, uint64_t each)
{
    return (tn_decode_levels){ .each = (size_t)each, .scale = w->scales, .zero = w->zeros,
                               .shift = w->shifts, .mapping = w->mappings };
}

/* --- one row of tiles -------------------------------------------------------------------- */

/* `units` subtiles from `first` of each of some tiles. */
typedef struct unit_span {
    uint64_t tile;
    size_t   tiles;
    uint64_t first;
    size_t   units;
} unit_span;

/* Offsets or mappings of subtiles.  Each tile begins on a byte. */
static void unit_codes(const reader *r, const run *from, const unit_span *s, uint8_t *codes)
{
    uint64_t bytes = tn_packed_bytes(r->tile_units, from->bits);
    size_t tiles = s->tiles, units = s->units;
    run own = { from->data, from->at + s->tile * bytes, from->bits };
    if (!from->data) {
        memset(codes, 0, tiles * units);
    } else if (units == r->tile_units && units * from->bits % 8 == 0) {
        const uint8_t *all = codes_at(r, &own, 0, tiles * units, codes);
        if (all != codes)
            memcpy(codes, all, tiles * units);
    } else if (r->tile_units == 1) {
        for (size_t t = 0; t < tiles; t++)
            codes[t] = from->data[own.at + t] & (uint8_t)((1u << from->bits) - 1);
    } else {
        for (size_t t = 0; t < tiles; t++, own.at += bytes)
            for (size_t u = 0; u < units; u++)
                codes[t * units + u] = packed_at(&own, s->first + u, 1);
    }
}

static void read_levels(const reader *r, scratch *w, const tile_row *l, unit_span s)
{
    const tn_datatype *d = r->p->d;
    uint64_t tile = s.tile;
    size_t tiles = s.tiles, n = s.tiles * s.units;
    bool shared = s.units == 1 && !d->offset_bits;      /* levels are the scales of tiles */
    s.first += l->unit;
    const uint8_t *codes = l->scale.data ? codes_at(r, &l->scale, tile, tiles, w->numbers) : NULL;
    decode_scales(r, codes, tiles, shared ? w->scales : w->tile_scales);
    if (!shared) {
        unit_codes(r, &l->offset, &s, w->offsets);
        decode_unit_scales(r, w, s.units, n);
    }
    if (d->has_zero)
        decode_zeros(r, w, codes_at(r, &l->zero, tile, tiles, w->numbers), tiles);
    if (d->number.kind == TN_NUMBER_CODEBOOK) {
        unit_codes(r, &l->meta, &s, w->mappings);
        memset(w->mappings + n, 0, TN_DECODE_SPARE);
    }
}

/* Whether values written there go past the caches. */
static bool streams(const reader *r, const float *y, size_t n)
{
    return r->stream && n >= STREAMED && (uintptr_t)y % TN_DECODE_ALIGN == 0;
}

/* Decodes n values into y. */
static void put_values(const reader *r, const uint8_t *codes, size_t n, const tn_decode_levels *levels,
                       float *y)
{
    tn_decode_levels own = *levels;
    own.stream = streams(r, y, n);
    decode(&r->number, y, codes, n, &own);
}

/* Expands the kept values into y. */
static void put_slots(const reader *r, scratch *w, const uint8_t *mask, size_t n, float *y)
{
    const tn_decode_groups groups = { r->p->d->keep, r->p->d->of, streams(r, y, n) };
    r->k->expand(y, w->slots, mask, n, &groups);
}

/* Unpacked sparse data has a code for every value: clears the dropped ones. */
static void clear_left_out(const reader *r, const tile_row *l, uint64_t column, size_t n, float *y)
{
    const tn_datatype *d = r->p->d;
    for (size_t i = 0, used = 0; i < n; i++) {
        used = i % d->of ? used : 0;
        if (packed_at(&l->mask, column + i, 1) && used < d->keep)
            used++;
        else
            y[i] = 0;
    }
}

/* Columns from the beginning of a group.  They begin on a byte of the mask, or are within one group. */
static void decode_sparse(const reader *r, scratch *w, const tile_row *l, uint64_t column, size_t n,
                          const tn_decode_levels *levels, float *y)
{
    const tn_datatype *d = r->p->d;
    if (r->p->o.unpacked) {
        decode(&r->number, y, codes_at(r, &l->data, column, n, w->codes), n, levels);
        clear_left_out(r, l, column, n, y);
        return;
    }
    size_t slots = (size_t)tn_div_up_u64(n, d->of) * d->keep;
    decode(&r->number, w->slots, codes_at(r, &l->data, column / d->of * d->keep, slots, w->codes), slots,
           levels);
    const uint8_t *mask = l->mask.data + (l->mask.at + column / 8), shifted = (uint8_t)(*mask >> column % 8);
    put_slots(r, w, column % 8 ? &shifted : mask, n, y);
}

/* The number of codes that `columns` columns of whole groups have. */
static uint64_t codes_of(const reader *r, uint64_t columns)
{
    const tn_datatype *d = r->p->d;
    return d->of && !r->p->o.unpacked ? columns / d->of * d->keep : columns;
}

static void decode_tiles(const reader *r, scratch *w, const tile_row *l, uint64_t column, size_t tiles,
                         float *y)
{
    size_t n = tiles * (size_t)r->tile;
    bool single = tiles * r->units == 1;
    read_levels(r, w, l, (unit_span){ column / r->tile, tiles, 0, (size_t)r->units });
    tn_decode_levels levels = levels_of(w, single ? CHUNK : codes_of(r, r->unit));
    if (r->p->d->of)
        decode_sparse(r, w, l, column, n, &levels, y);
    else
        put_values(r, codes_at(r, &l->data, column, n, w->codes), n, &levels, y);
}

/* Decodes at most n values of one subtile, or of one tile without subtiles.  Returns how many. */
static size_t decode_some(const reader *r, scratch *w, const tile_row *l, uint64_t column, size_t n, float *y)
{
    const tn_datatype *d = r->p->d;
    uint64_t in_tile = column % r->tile, skip = d->of ? column % d->of : 0;
    const tn_decode_levels levels = levels_of(w, CHUNK);
    float group[16];
    n = (size_t)tn_min_u64(n, tn_min_u64(CHUNK, r->unit - in_tile % r->unit));
    read_levels(r, w, l, (unit_span){ column / r->tile, 1, in_tile / r->unit, 1 });
    if (!d->of) {
        put_values(r, codes_at(r, &l->data, column, n, w->codes), n, &levels, y);
        return n;
    }
    if (!skip && column % 8 == 0) {
        decode_sparse(r, w, l, column, n, &levels, y);
        return n;
    }
    n = (size_t)tn_min_u64(n, d->of - skip);
    decode_sparse(r, w, l, column - skip, (size_t)skip + n, &levels, group);
    memcpy(y, group + skip, n * sizeof *y);
    return n;
}

static void decode_row(const reader *r, scratch *w, const tile_row *l, uint64_t column, size_t n, float *y)
{
    for (size_t done; n; column += done, y += done, n -= done) {
        uint64_t tiles = column % r->tile ? 0 : tn_min_u64(r->at_once, n / r->tile);
        done = (size_t)(tiles * r->tile);
        if (tiles)
            decode_tiles(r, w, l, column, (size_t)tiles, y);
        else
            done = decode_some(r, w, l, column, n, y);
    }
}

/* --- short rows ----------------------------------------------------------------------------- */

static bool ends_on_byte(const tn_scaled_field *field, unsigned bits, uint64_t n)
{
    return !field->data || tn_scaled_ends_on_byte(bits, n);
}

static void repeat_words(void *words, size_t n, size_t times)
{
    for (size_t k = 1; k < times; k++)
        memcpy((uint8_t *)words + 4 * k * n, words, 4 * n);
}

/* Gives each of some rows its own levels of these tiles. */
static void repeat_levels(const reader *r, scratch *w, size_t n, size_t rows)
{
    repeat_words(w->scales, n, rows);
    if (r->p->d->has_zero && r->p->d->zero.kind == TN_NUMBER_FLOAT)
        repeat_words(w->shifts, n, rows);
    else if (r->p->d->has_zero)
        repeat_words(w->zeros, n, rows);
    for (size_t k = 1; k < rows && r->p->d->number.kind == TN_NUMBER_CODEBOOK; k++)
        memcpy(w->mappings + k * n, w->mappings, n);
    if (r->p->d->number.kind == TN_NUMBER_CODEBOOK)
        memset(w->mappings + rows * n, 0, TN_DECODE_SPARE);
}

/* Rows of matrix tiles, from one, that are decoded together: their codes follow one another. */
static size_t rows_at_once(const reader *r, uint64_t row, size_t n)
{
    const tn_scaled_plan *p = r->p;
    uint64_t left = p->tile_rows - row % p->rows % p->tile_rows, most = n / p->columns;
    bool follow = ends_on_byte(&p->data, r->data_bits, p->columns),
         even = p->tiles_across == 1 || (p->tile_columns & (p->tile_columns - 1)) == 0;
    if (p->tile_rows == 1 || r->columns != p->columns || p->columns % p->tile_columns || p->d->of ||
        p->d->subtile || !follow || !even || !r->at_once)
        return 0;
    left = tn_min_u64(left, p->rows - row % p->rows);
    most = tn_min_u64(most, tn_min_u64(CHUNK / p->columns, LEVELS / p->tiles_across));
    return (size_t)tn_min_u64(most, left);
}

static void decode_rows(const reader *r, scratch *w, const tile_row *l, size_t rows, float *y)
{
    const tn_scaled_plan *p = r->p;
    size_t tiles = (size_t)p->tiles_across, n = rows * (size_t)p->columns;
    read_levels(r, w, l, (unit_span){ 0, tiles, 0, 1 });
    repeat_levels(r, w, tiles, rows);
    const tn_decode_levels levels = levels_of(w, tiles == 1 ? CHUNK : r->tile);
    put_values(r, codes_at(r, &l->data, 0, n, w->codes), n, &levels, y);
}

/* --- a reader ------------------------------------------------------------------------------ */

static void set_tile(reader *r, uint64_t columns, uint64_t rows)
{
    const tn_datatype *d = r->p->d;
    r->tile = r->unit = columns;
    r->units = r->tile_units = 1;
    if (d->subtile) {
        r->unit = d->of ? (uint64_t)d->subtile / d->keep * d->of : d->subtile;
        r->units = tn_div_up_u64(columns, r->unit);
        r->tile_units = r->units * rows;
    }
    uint64_t shared = codes_of(r, r->unit);
    r->at_once = tn_min_u64(CHUNK / r->tile, LEVELS / r->units);
    if (r->at_once && r->units == 1 && (shared & (shared - 1)))
        r->at_once = 1;
    if (columns % r->unit)
        r->at_once = 0;
}

static reader reader_of(const tn_decode_kernels *k, const tn_scaled_plan *p, float tensor_scale)
{
    const tn_datatype *d = p->d;
    reader r = { .p = p, .k = k, .tensor_scale = d->has_tensor_scale ? tensor_scale : 1,
                 .data_bits = p->data.bits };
    r.number = decoder_of(k, &d->number, d);
    r.number.exact = tn_datatype_is_exact(d);
    if (d->scope != TN_SCOPE_NONE)
        r.scale = decoder_of(k, &d->scale, d);
    if (d->has_zero)
        r.zero = decoder_of(k, &d->zero, d);
    if (p->data.bits < 8 && tn_scaled_data_row(p) == 1) /* a row of one code takes a byte */
        r.data_bits = 8;
    return r;
}

/* Whether there is no gap between the numbers of two rows of tiles. */
static bool rows_are_joined(const reader *r)
{
    const tn_scaled_plan *p = r->p;
    return (p->d->dims == 0 || (p->tile_rows == 1 && p->columns % p->tile_columns == 0)) &&
           ends_on_byte(&p->data, r->data_bits, p->slots) &&
           ends_on_byte(&p->scale, p->scale.bits, p->tiles_across) &&
           ends_on_byte(&p->zero, p->zero.bits, p->tiles_across) && ends_on_byte(&p->mask, 1, p->columns);
}

static void set_rows(reader *r)
{
    const tn_scaled_plan *p = r->p;
    bool joined = rows_are_joined(r);
    r->columns = joined ? p->count : p->columns;
    set_tile(r, joined && p->d->dims == 0 ? p->count : p->tile_columns, p->tile_rows);
}

static tile_row tile_row_at(const reader *r, uint64_t row)
{
    const tn_scaled_plan *p = r->p;
    uint64_t down = row / p->rows * p->tiles_down + row % p->rows / p->tile_rows,
             tile = down * p->tiles_across;
    tile_row l = {
        .data = run_at(&p->data, row * tn_scaled_field_bytes(r->data_bits, p->slots)),
        .scale = run_at(&p->scale, down * tn_scaled_field_bytes(p->scale.bits, p->tiles_across)),
        .zero = run_at(&p->zero, down * tn_scaled_field_bytes(p->zero.bits, p->tiles_across)),
        .offset = run_at(&p->offset, tile * tn_packed_bytes(r->tile_units, p->offset.bits)),
        .meta = run_at(&p->meta, tile * tn_packed_bytes(r->tile_units, p->meta.bits)),
        .mask = run_at(&p->mask, row * tn_packed_bytes(p->columns, 1)),
        .unit = p->d->subtile ? row % p->rows % p->tile_rows * r->units : 0,
    };
    l.data.bits = r->data_bits;
    return l;
}

/* --- tiles along other dimensions -------------------------------------------------------------- */

/* The position of one element.  Its neighbours in the inner dimensions are in other tiles. */
typedef struct position {
    uint64_t outer, row, column, inner;
    uint64_t down, tile;        /* index of its row of tiles, of its tile; without the inner dimensions */
    uint64_t unit;              /* index of its subtile in the tile */
} position;

static position position_of(const reader *r, uint64_t element)
{
    const tn_scaled_plan *p = r->p;
    position at = { .inner = element % p->inner, .column = element / p->inner % p->columns };
    uint64_t row = element / p->inner / p->columns;
    at.outer = row / p->rows;
    at.row = row % p->rows;
    at.down = at.outer * p->tiles_down + at.row / p->tile_rows;
    at.tile = at.down * p->tiles_across + at.column / p->tile_columns;
    if (p->d->subtile)
        at.unit = at.row % p->tile_rows * r->units + at.column % p->tile_columns / r->unit;
    return at;
}

/* Scales or zero points of the tiles of n neighbours. */
static const uint8_t *inner_numbers(const reader *r, scratch *w, const tn_scaled_field *field,
                                    const position *at, size_t n)
{
    const tn_scaled_plan *p = r->p;
    uint64_t row = at->down * tn_scaled_field_bytes(field->bits, p->tiles_across) * p->inner + at->inner;
    uint64_t word = (at->tile * p->inner + at->inner) * (tn_scaled_word(field->bits) / 8);
    run from = run_at(field, field->bits < 8 ? row : word);
    return inner_codes(&from, at->column / p->tile_columns, p->inner, n, w->numbers);
}

static void inner_units(const reader *r, const tn_scaled_field *field, const position *at, size_t n,
                         uint8_t *codes)
{
    uint64_t bytes = tn_packed_bytes(r->tile_units, field->bits);
    run from = run_at(field, at->tile * bytes * r->p->inner + at->inner);
    for (size_t i = 0; i < n; i++, from.at++)
        codes[i] = field->data ? packed_at(&from, at->unit, r->p->inner) : 0;
}

static void read_inner_levels(const reader *r, scratch *w, const position *at, size_t n)
{
    const tn_scaled_plan *p = r->p;
    decode_scales(r, p->scale.data ? inner_numbers(r, w, &p->scale, at, n) : NULL, n,
                p->d->offset_bits ? w->tile_scales : w->scales);
    if (p->d->offset_bits) {
        inner_units(r, &p->offset, at, n, w->offsets);
        decode_unit_scales(r, w, 1, n);
    }
    if (p->d->has_zero)
        decode_zeros(r, w, inner_numbers(r, w, &p->zero, at, n), n);
    if (p->d->number.kind == TN_NUMBER_CODEBOOK) {
        inner_units(r, &p->meta, at, n, w->mappings);
        memset(w->mappings + n, 0, TN_DECODE_SPARE);
    }
}

/* The row of data that an element is in, and its index there. */
static run data_run(const reader *r, uint64_t element, uint64_t *index)
{
    const tn_scaled_plan *p = r->p;
    bool packed = r->data_bits < 8;
    *index = packed ? element % p->last : element;
    run from = run_at(&p->data, packed ? element / p->last * tn_packed_bytes(p->last, r->data_bits) : 0);
    from.bits = r->data_bits;
    return from;
}

/* first ? a : b without a branch: which values are dropped is not predictable. */
static uint8_t pick(bool first, uint8_t a, uint8_t b)
{
    return (uint8_t)(b ^ ((a ^ b) & -first));
}

static void clear_without_slot(float *y, const uint8_t *slots, size_t n, unsigned keep)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &y[i], sizeof bits);
        bits &= 0u - (slots[i] < keep);
        memcpy(&y[i], &bits, sizeof bits);
    }
}

/* The slot of each of n neighbours in its group; `keep`: dropped. */
static void inner_slots(const reader *r, const position *at, size_t n, uint8_t *slots)
{
    const tn_scaled_plan *p = r->p;
    const run mask = run_at(&p->mask, at->outer * tn_packed_bytes(p->columns, 1) * p->inner + at->inner);
    const uint8_t *own = mask.data + (mask.at + at->column / 8 * p->inner);
    memset(slots, 0, n);
    for (uint64_t c = at->column / p->d->of * p->d->of; c < at->column; c++) {
        const uint8_t *before = mask.data + (mask.at + c / 8 * p->inner);
        for (size_t i = 0; i < n; i++)
            slots[i] = (uint8_t)(slots[i] + (before[i] >> c % 8 & 1));
    }
    for (size_t i = 0; i < n; i++) {
        bool none = (slots[i] > p->d->keep) | !(own[i] >> at->column % 8 & 1);
        slots[i] = pick(none, (uint8_t)p->d->keep, slots[i]);
    }
}

/* The codes in these slots; any code for dropped values.  Unpacks all slots. */
static void inner_sparse_codes(const reader *r, scratch *w, const position *at, const uint8_t *slots,
                               size_t n)
{
    const tn_scaled_plan *p = r->p;
    unsigned word = tn_scaled_word(r->data_bits);
    uint64_t group = at->column / p->d->of * p->d->keep, index;
    for (unsigned s = 0; s < p->d->keep; s++) {
        uint64_t column = p->o.unpacked ? at->column : group + s;
        run from = data_run(r, (at->outer * p->slots + column) * p->inner + at->inner, &index);
        const uint8_t *own = codes_at(r, &from, index, n, w->numbers);
        if (s == 0) {
            memcpy(w->codes, own, n * (word / 8));
            continue;
        }
        for (size_t i = 0; i < n && word == 8; i++)
            w->codes[i] = pick(slots[i] == s, own[i], w->codes[i]);
        for (size_t i = 0; i < n && word != 8; i++)
            if (slots[i] == s)
                tn_code_put(w->codes, i, word, tn_code_get(own, i, word));
    }
}

/* Columns of one tile, from one on, that are decoded together: their codes follow one another. */
static size_t columns_at_once(const reader *r, const position *at, size_t n)
{
    const tn_scaled_plan *p = r->p;
    uint64_t left = p->tile_columns - at->column % p->tile_columns, most = n / p->inner;
    bool follow = p->inner == p->last && ends_on_byte(&p->data, r->data_bits, p->last);
    if (p->d->of || p->d->subtile || at->inner || !follow)
        return 1;
    most = tn_min_u64(tn_min_u64(most, LEVELS / p->inner), tn_min_u64(left, p->columns - at->column));
    return most ? (size_t)most : 1;
}

/* Decodes at most n neighbours in the inner dimensions.  Returns how many. */
static size_t decode_inner(const reader *r, scratch *w, uint64_t element, size_t n, float *y)
{
    const tn_scaled_plan *p = r->p;
    const position at = position_of(r, element);
    const tn_decode_levels levels = levels_of(w, 1);
    uint8_t slots[LEVELS];
    uint64_t index;
    size_t columns = columns_at_once(r, &at, n);
    n = (size_t)tn_min_u64(n, tn_min_u64(LEVELS, p->inner - at.inner));
    if (r->data_bits < 8)
        n = (size_t)tn_min_u64(n, p->last - at.inner % p->last);
    read_inner_levels(r, w, &at, n);
    repeat_levels(r, w, n, columns);
    n *= columns;
    if (!p->d->of) {
        run from = data_run(r, element, &index);
        decode(&r->number, y, codes_at(r, &from, index, n, w->codes), n, &levels);
        return n;
    }
    inner_slots(r, &at, n, slots);
    inner_sparse_codes(r, w, &at, slots, n);
    decode(&r->number, y, w->codes, n, &levels);
    clear_without_slot(y, slots, n, p->d->keep);
    return n;
}

/* --- entry points ------------------------------------------------------------------------------ */

void tn_scaled_values_with(const tn_decode_kernels *k, const tn_scaled_plan *p, float tensor_scale,
                           uint64_t first, size_t n, float *y, bool stream)
{
    reader r = reader_of(k, p, tensor_scale);
    scratch w;
    r.stream = stream && !k->ordinary;
    if (n == 0)
        return;
    if (p->inner == 1)
        set_rows(&r);
    else
        set_tile(&r, p->tile_columns, p->tile_rows);
    for (size_t done; n; first += done, y += done, n -= done) {
        if (p->inner == 1) {
            tile_row l = tile_row_at(&r, first / r.columns);
            size_t rows = first % r.columns ? 0 : rows_at_once(&r, first / r.columns, n);
            done = (size_t)tn_min_u64(n, rows ? rows * r.columns : r.columns - first % r.columns);
            if (rows > 1)
                decode_rows(&r, &w, &l, rows, y);
            else
                decode_row(&r, &w, &l, first % r.columns, done, y);
        } else {
            done = decode_inner(&r, &w, first, n, y);
        }
    }
    if (stream)
        tn_stream_fence();
}

void tn_scaled_decode_with(const tn_decode_kernels *k, const tn_scaled_plan *p, const tn_tiles *tiles)
{
    reader r = reader_of(k, p, tiles->tensor_scale);
    scratch w;
    const tile_row l = {
        .data = { tiles->data, 0, p->data.bits }, .scale = { tiles->scale, 0, p->scale.bits },
        .zero = { tiles->zero, 0, p->zero.bits }, .offset = { tiles->offset, 0, p->offset.bits },
        .meta = { tiles->meta, 0, p->meta.bits }, .mask = { tiles->mask, 0, 1 },
    };
    if (tiles->count == 0 || tiles->size == 0)
        return;
    set_tile(&r, tiles->size, 1);
    decode_row(&r, &w, &l, 0, tiles->count * tiles->size, tiles->y);
}

static void decode_with_best(const tn_scaled_plan *plan, const tn_tiles *tiles)
{
    tn_scaled_decode_with(tn_decode_kernels_get(), plan, tiles);
}

tn_tiles_decode_fn tn_scaled_decoder(const tn_scaled_plan *p)
{
    /* codes of a row are not consecutive */
    bool apart = p->data.bits < 8 && tn_scaled_data_row(p) != p->slots;
    return tn_scaled_is_flat(p) && !apart ? decode_with_best : NULL;
}

/* --- codes of 4 bits as bfloat16 --------------------------------------------------- */

/* Whether all tiles follow one another, each with whole bytes. */
static bool looks_up(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool is_number = d->number.kind == TN_NUMBER_UINT || d->number.kind == TN_NUMBER_INT ||
                     (d->number.kind == TN_NUMBER_FLOAT && d->number.type.specials == TN_SPECIALS_NONE);
    return is_number && p->data.bits == 4 && d->scope == TN_SCOPE_TILE && d->dims == 1 && !d->of &&
           !d->subtile && !d->offset_bits && p->inner == 1 && p->outer == 1 && p->columns == p->count &&
           p->tile_columns % 16 == 0 && p->scale.bits >= 8 && (!d->has_zero || p->zero.bits >= 8);
}

static void find_numbers(const tn_datatype *d, float number[16])
{
    const float unit = ldexpf(1, -tn_point_of(d));
    for (uint32_t c = 0; c < 16; c++) {
        number[c] = (float)c;
        if (d->number.kind == TN_NUMBER_INT)
            number[c] = (float)tn_spec_integer(&d->number, c) * unit;
        else if (d->number.kind == TN_NUMBER_FLOAT)
            number[c] = tn_spec_value(&d->number, c);
    }
}

/* 8-bit floats with float scales, of the tensor, rows or blocks. */
static bool is_e4m3(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    return d->number.dtype == TN_FLOAT8_E4M3FN && d->scope != TN_SCOPE_NONE && !d->of && !d->subtile &&
           !d->offset_bits && p->inner == 1 && p->scale.bits >= 8;
}

/* One row of tiles at a time, a tile per kernel call. */
static void decode_e4m3(const reader *r, scratch *w, uint64_t first, size_t n, uint8_t *y)
{
    const tn_scaled_plan *p = r->p;
    const uint64_t row = p->columns, down = first / row % p->rows / p->tile_rows,
                   outer = first / row / p->rows, line = outer * p->tiles_down + down;
    for (uint64_t column = first % row, end = column + n; column < end;) {
        const uint64_t tile = column / p->tile_columns, at = line * p->tiles_across + tile;
        const size_t tiles = (size_t)tn_min_u64((end - 1) / p->tile_columns - tile + 1, LEVELS);
        decode_scales(r, p->scale.data + (at * (p->scale.bits / 8) - p->scale.from), tiles, w->scales);
        for (size_t t = 0; t < tiles; t++) {
            size_t some = (size_t)(tn_min_u64((tile + t + 1) * p->tile_columns, end) - column);
            const uint64_t code = first - first % row + column - p->data.from;
            tn_lookup_kernels_get()->e4m3_to_bf16(y, p->data.data + code, some, w->scales[t]);
            y += 2 * some;
            column += some;
        }
    }
}

static void read_e4m3(const reader *r, uint64_t first, size_t n, uint8_t *y)
{
    scratch w;
    for (size_t some; n; first += some, n -= some, y += 2 * some) {
        some = (size_t)tn_min_u64(n, r->p->columns - first % r->p->columns);
        decode_e4m3(r, &w, first, some, y);
    }
}

bool tn_scaled_bf16(const tn_decode_kernels *k, const tn_scaled_plan *p, float tensor_scale, uint64_t first,
                    size_t n, uint8_t *y)
{
    const tn_datatype *d = p->d;
    const uint64_t tile = p->tile_columns;
    const reader r = reader_of(k, p, tensor_scale);
    if (is_e4m3(p)) {
        read_e4m3(&r, first, n, y);
        return true;
    }
    if (!looks_up(p) || first % tile || n % tile)
        return false;
    float number[16];
    scratch w;
    bool is_int = d->has_zero && d->zero.kind != TN_NUMBER_FLOAT;
    const tn_lookup_values values = { .number = number, .scale = w.scales, .shifts_first = is_int,
                                      .shift = d->has_zero ? w.shifts : NULL };
    find_numbers(d, number);
    for (size_t tiles; n; first += tiles * tile, n -= (size_t)(tiles * tile), y += 2 * tiles * tile) {
        tiles = (size_t)tn_min_u64(n / tile, LEVELS);
        const uint64_t at = first / tile;
        decode_scales(&r, p->scale.data + (at * (p->scale.bits / 8) - p->scale.from), tiles, w.scales);
        if (d->has_zero)
            decode_zeros(&r, &w, p->zero.data + (at * (p->zero.bits / 8) - p->zero.from), tiles);
        for (size_t i = 0; i < tiles && is_int; i++)
            w.shifts[i] = (float)w.zeros[i];
        tn_lookup_kernels_get()->fours_to_bf16(y, p->data.data + (first / 2 - p->data.from), tiles,
                                               (size_t)tile, &values);
    }
    return true;
}

bool tn_scaled_keeps_bf16(const tn_decode_kernels *k, const tn_scaled_plan *p, float tensor_scale)
{
    const bool e4m3 = is_e4m3(p), has_shifts = p->d->has_zero && p->d->zero.kind == TN_NUMBER_FLOAT;
    const uint64_t tiles = e4m3 ? p->outer * p->tiles_down * p->tiles_across : p->count / p->tile_columns;
    const reader r = reader_of(k, p, tensor_scale);
    bool all = (e4m3 || looks_up(p)) && !p->scale.from && !p->zero.from;
    scratch w;
    for (uint64_t at = 0; at < tiles && all; at += LEVELS) {
        const size_t n = (size_t)tn_min_u64(tiles - at, LEVELS);
        decode_scales(&r, p->scale.data + at * (p->scale.bits / 8), n, w.scales);
        all = tn_are_moderate(w.scales, n);
        if (has_shifts)
            decode_zeros(&r, &w, p->zero.data + at * (p->zero.bits / 8), n);
        all = all && (!has_shifts || tn_are_moderate(w.shifts, n));
    }
    return all;
}
