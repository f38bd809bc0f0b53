/* quant/scaled_decode.c - the values of codes with scales.
 *
 * Where tiles lie along rows, or are matrices of them, a row is gone through in
 * stretches of whole tiles: their scales and what else they share become arrays
 * of levels, their codes bytes or words, and a kernel makes values of both.
 * What a window cuts off at its ends is done a subtile at a time.  Where tiles
 * lie along other dimensions, each value of a row has a level of its own.
 *
 * The floating-point environment is the default one. */
#include "quant/scaled_fast.h"
#include "base/checked.h"
#include "kernels/cast/table.h"
#include "kernels/scaled_decode/table.h"
#include "kernels/stream.h"

#include <math.h>

enum {
    CHUNK  = 4096,              /* codes decoded at once */
    LEVELS = 1024,              /* scales and so on at once */
    BLOCK  = 512,               /* values made in the cache at once that go past it... */
    LINE   = 16                 /* ...in lines of so many */
};

/* Numbers of a part from one of its bytes on: packed, or words. */
typedef struct run {
    const uint8_t *data;        /* or NULL: there are none */
    uint64_t at;                /* the byte in it; in a window it counts modulo 2^64 until there is an
                                 * index */
    unsigned bits;
} run;

/* How the codes of one spec become values. */
typedef struct meaning {
    const tn_number_spec *spec;
    tn_decode_number number;
    tn_decode_fn decode;        /* or NULL: a number that kernels do not know */
    unsigned     width;         /* logarithm of the bytes of a code that is not packed */
    bool         exact;         /* float32, float16 or bfloat16 as a plain cast has it */
} meaning;

/* All that does not depend on the place. */
typedef struct reader {
    const tn_scaled_plan    *p;
    const tn_decode_kernels *k;
    meaning  number, scale, zero;
    float    tensor_scale;
    unsigned data_bits;         /* of a code as it is stored */
    uint64_t columns;           /* of what is taken as a row: several where nothing lies between them */
    uint64_t tile, unit;        /* columns of a tile, of a subtile or all of it */
    uint64_t units, tile_units; /* subtiles side by side, and in all rows of a tile */
    uint64_t at_once;           /* whole tiles that fit below; 0: not one */
    bool     stream;            /* values go past the caches */
} reader;

/* What a stretch is made of on the way. */
typedef struct desk {
    _Alignas(64) float block[LINE + BLOCK];
    float    slots[CHUNK + TN_DECODE_SPARE];
    uint8_t  codes[CHUNK + TN_DECODE_SPARE];
    uint8_t  numbers[LEVELS + TN_DECODE_SPARE];         /* codes of scales and zero points that are packed */
    uint8_t  offsets[LEVELS + TN_DECODE_SPARE], mappings[LEVELS + TN_DECODE_SPARE];
    float tile_scales[LEVELS + TN_DECODE_SPARE], scales[LEVELS + TN_DECODE_SPARE],
        shifts[LEVELS + TN_DECODE_SPARE];
    int32_t  zeros[LEVELS + TN_DECODE_SPARE];
} desk;

/* One row of tiles: where the numbers of its first tile are. */
typedef struct line {
    run data, scale, zero, offset, meta, mask;
    uint64_t unit;              /* of a row that is not the first of its tiles: the number of its first
                                 * subtile */
} line;

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

/* A float with a bias beyond float32's, or an integer zero point so wide that a difference is no int32_t. */
static bool is_odd(const tn_number_spec *spec, const tn_datatype *d)
{
    if (spec->kind == TN_NUMBER_UINT)
        return d->zero.kind != TN_NUMBER_FLOAT && d->zero.bits > 30;
    return spec->kind == TN_NUMBER_FLOAT && spec->bias > 127;
}

static meaning meaning_of(const tn_decode_kernels *k, const tn_number_spec *spec, const tn_datatype *d)
{
    meaning m = { .spec = spec, .width = spec->bits <= 8 ? 0 : spec->bits <= 16 ? 1 : 2 };
    tn_decode_number *c = &m.number;
    c->ones = (UINT32_C(2) << (spec->bits - 1)) - 1;
    c->sign = UINT32_C(1) << (spec->bits - 1);
    c->up = 32u - spec->bits;
    switch (spec->kind) {
    case TN_NUMBER_INT:
        c->kind = TN_DECODE_INT;
        c->unit = ldexpf(1, d->scale.kind == TN_NUMBER_EXPONENT ? 2 - spec->bits : 0);
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
    m.decode = is_odd(spec, d) ? NULL : k->decode[c->kind][m.width];
    return m;
}

static float odd_value(const meaning *m, uint32_t code, const tn_decode_levels *l, uint64_t level)
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

static void decode(const meaning *m, float *y, const uint8_t *codes, size_t n, const tn_decode_levels *l)
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
        y[i] = odd_value(m, (uint32_t)tn_code_get(codes, i, 8u << m->width), l, i / l->each);
}

/* --- where they are ---------------------------------------------------------------- */

static run run_at(const tn_scaled_field *field, uint64_t byte)
{
    return (run){ field->data, byte - field->from, field->bits };
}

static uint64_t bytes_of(unsigned bits, uint64_t n)
{
    return bits < 8 ? tn_packed_bytes(n, bits) : n * (tn_scaled_word(bits) / 8);
}

/* Packed number `i`, the bytes of which lie `step` apart. */
static uint8_t packed_at(const run *r, uint64_t i, uint64_t step)
{
    uint64_t byte = r->at + tn_packed_byte(i, r->bits) * step;
    unsigned bit = tn_packed_bit(i, r->bits), word = r->data[byte];
    if (bit + r->bits > 8)
        word |= (unsigned)r->data[byte + step] << 8;
    return (uint8_t)(word >> bit & ((1u << r->bits) - 1));
}

/* Numbers [first, first + n) as bytes or words: where they are, or unpacked. */
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

/* Number `i` of each of n runs side by side, which are a byte, or else a word, apart. */
static const uint8_t *codes_beside(const run *from, uint64_t i, uint64_t step, size_t n, uint8_t *unpacked)
{
    if (from->bits >= 8)
        return from->data + from->at;
    for (size_t k = 0; k < n; k++)
        unpacked[k] = packed_at(&(run){ from->data, from->at + k, from->bits }, i, step);
    return unpacked;
}

/* --- levels ---------------------------------------------------------------------------- */

/* Scales of n tiles. */
static void make_scales(const reader *r, const uint8_t *codes, size_t n, float *scales)
{
    for (size_t i = 0; i < n && !codes; i++)
        scales[i] = 1;
    if (codes)
        decode(&r->scale, scales, codes, n, &(tn_decode_levels){ .each = LEVELS, .scale = &r->tensor_scale });
}

static void make_zeros(const reader *r, desk *w, const uint8_t *codes, size_t n)
{
    static const float one = 1;
    if (r->p->d->zero.kind == TN_NUMBER_FLOAT)
        decode(&r->zero, w->shifts, codes, n, &(tn_decode_levels){ .each = LEVELS, .scale = &one });
    else
        tn_decode_integers(w->zeros, codes, n, r->zero.width, r->p->d->zero.bits);
}

/* Scales of n subtiles, `each` of which are of one tile, less their offsets. */
static void make_unit_scales(const reader *r, desk *w, size_t each, size_t n)
{
    static const tn_decode_number offset = { .kind = TN_DECODE_HALVED, .ones = 3 };
    r->k->decode[TN_DECODE_HALVED][0](w->scales, w->offsets, n, &offset,
                                      &(tn_decode_levels){ .each = each, .scale = w->tile_scales });
}

static tn_decode_levels levels_of(const desk *w, uint64_t each)
{
    return (tn_decode_levels){ (size_t)each, w->scales, w->zeros, w->shifts, w->mappings };
}

/* --- one row of tiles -------------------------------------------------------------------- */

/* A few bits for each of some subtiles of some tiles, the numbers of each tile on bytes of its own. */
static void unit_codes(const reader *r, const run *from, uint64_t tile, size_t tiles, uint64_t first,
                       size_t units, uint8_t *codes)
{
    uint64_t bytes = tn_packed_bytes(r->tile_units, from->bits);
    run own = { from->data, from->at + tile * bytes, from->bits };
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
                codes[t * units + u] = packed_at(&own, first + u, 1);
    }
}

/* Levels of some subtiles of each of some tiles. */
static void read_levels(const reader *r, desk *w, const line *l, uint64_t tile, size_t tiles, uint64_t first,
                        size_t units)
{
    const tn_datatype *d = r->p->d;
    bool shared = units == 1 && !d->offset_bits;        /* there is nothing but the tile's scale */
    const uint8_t *codes = l->scale.data ? codes_at(r, &l->scale, tile, tiles, w->numbers) : NULL;
    make_scales(r, codes, tiles, shared ? w->scales : w->tile_scales);
    if (!shared) {
        unit_codes(r, &l->offset, tile, tiles, l->unit + first, units, w->offsets);
        make_unit_scales(r, w, units, tiles * units);
    }
    if (d->has_zero)
        make_zeros(r, w, codes_at(r, &l->zero, tile, tiles, w->numbers), tiles);
    if (d->number.kind == TN_NUMBER_CODEBOOK) {
        unit_codes(r, &l->meta, tile, tiles, l->unit + first, units, w->mappings);
        memset(w->mappings + tiles * units, 0, TN_DECODE_SPARE);
    }
}

/* Sends values [first, first + some) of n, which lie in the block where they lie
 * in lines of y, past the caches.  What does not end a line waits for the rest
 * of it, or at both ends goes as usual. */
static void pour(const reader *r, desk *w, float *y, size_t lead, size_t first, size_t some, size_t n)
{
    size_t begin = first == 0 && lead ? LINE : 0, end = (lead + some) / LINE * LINE, rest = lead + some - end;
    if (begin)
        memcpy(y, w->block + lead, (LINE - lead) * sizeof *y);
    r->k->stream(y + (first + begin - lead), w->block + begin, end - begin);
    memcpy(first + some == n ? y + (n - rest) : w->block, w->block + end, rest * sizeof *y);
}

/* Values past the beginning of the line that y begins in. */
static size_t lead_of(const float *y)
{
    return (uintptr_t)y / sizeof *y % LINE;
}

/* Values to where they go. */
static void put_values(const reader *r, desk *w, const uint8_t *codes, size_t n, const tn_decode_levels *l,
                       float *y)
{
    if (!r->stream || n < BLOCK) {
        decode(&r->number, y, codes, n, l);
        return;
    }
    for (size_t i = 0, lead = lead_of(y); i < n; i += BLOCK) {
        size_t some = n - i < BLOCK ? n - i : BLOCK, at = i / l->each;
        const tn_decode_levels rest = { l->each, l->scale + at, l->zero + at, l->shift + at,
                                        l->mapping + at };
        decode(&r->number, w->block + lead, codes + (i << r->number.width), some, &rest);
        pour(r, w, y, lead, i, some, n);
    }
}

/* Slots to where they go. */
static void put_slots(const reader *r, desk *w, const uint8_t *mask, size_t n, float *y)
{
    const tn_datatype *d = r->p->d;
    if (!r->stream || n < BLOCK) {
        r->k->expand(y, w->slots, mask, n, d->keep, d->of);
        return;
    }
    for (size_t i = 0, lead = lead_of(y); i < n; i += BLOCK) {
        size_t some = n - i < BLOCK ? n - i : BLOCK;
        r->k->expand(w->block + lead, w->slots + i / d->of * d->keep, mask + i / 8, some, d->keep, d->of);
        pour(r, w, y, lead, i, some, n);
    }
}

/* Values that are stored though they were left out. */
static void leave_out(const reader *r, const line *l, uint64_t column, size_t n, float *y)
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

/* Columns from the beginning of a group on; either it or they begin on a byte of the mask, or they end with
 * it. */
static void decode_sparse(const reader *r, desk *w, const line *l, uint64_t column, size_t n,
                          const tn_decode_levels *levels, float *y)
{
    const tn_datatype *d = r->p->d;
    if (r->p->o.unpacked) {
        decode(&r->number, y, codes_at(r, &l->data, column, n, w->codes), n, levels);
        leave_out(r, l, column, n, y);
        return;
    }
    size_t slots = (size_t)tn_div_up_u64(n, d->of) * d->keep;
    decode(&r->number, w->slots, codes_at(r, &l->data, column / d->of * d->keep, slots, w->codes), slots,
           levels);
    const uint8_t *mask = l->mask.data + (l->mask.at + column / 8), shifted = (uint8_t)(*mask >> column % 8);
    put_slots(r, w, column % 8 ? &shifted : mask, n, y);
}

/* How many codes whole groups of columns have. */
static uint64_t codes_of(const reader *r, uint64_t columns)
{
    const tn_datatype *d = r->p->d;
    return d->of && !r->p->o.unpacked ? columns / d->of * d->keep : columns;
}

static void decode_tiles(const reader *r, desk *w, const line *l, uint64_t column, size_t tiles, float *y)
{
    size_t n = tiles * (size_t)r->tile;
    bool single = tiles * r->units == 1;
    read_levels(r, w, l, column / r->tile, tiles, 0, (size_t)r->units);
    tn_decode_levels levels = levels_of(w, single ? CHUNK : codes_of(r, r->unit));
    if (r->p->d->of)
        decode_sparse(r, w, l, column, n, &levels, y);
    else
        put_values(r, w, codes_at(r, &l->data, column, n, w->codes), n, &levels, y);
}

/* Some of a subtile, or of a tile that has none; returns how many. */
static size_t decode_some(const reader *r, desk *w, const line *l, uint64_t column, size_t n, float *y)
{
    const tn_datatype *d = r->p->d;
    uint64_t in_tile = column % r->tile, skip = d->of ? column % d->of : 0;
    const tn_decode_levels levels = levels_of(w, CHUNK);
    float group[16];
    n = (size_t)tn_min_u64(n, tn_min_u64(CHUNK, r->unit - in_tile % r->unit));
    read_levels(r, w, l, column / r->tile, 1, in_tile / r->unit, 1);
    if (!d->of) {
        put_values(r, w, codes_at(r, &l->data, column, n, w->codes), n, &levels, y);
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

static void decode_line(const reader *r, desk *w, const line *l, uint64_t column, size_t n, float *y)
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

/* --- a reader ------------------------------------------------------------------------------ */

/* How long the rows of packed data are. */
static uint64_t data_last(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    uint32_t dim = d->dim < 0 ? p->rank - (uint32_t)-d->dim : (uint32_t)d->dim;
    return d->of && dim + 1 == p->rank ? p->slots : p->last;
}

/* Tiles of so many columns. */
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
    r.number = meaning_of(k, &d->number, d);
    r.number.exact = tn_datatype_is_exact(d);
    if (d->scope != TN_SCOPE_NONE)
        r.scale = meaning_of(k, &d->scale, d);
    if (d->has_zero)
        r.zero = meaning_of(k, &d->zero, d);
    if (p->data.bits < 8 && data_last(p) == 1)          /* rows of one code have a byte each */
        r.data_bits = 8;
    return r;
}

/* Whether so many numbers end on a byte. */
static bool ends_well(const tn_scaled_field *field, unsigned bits, uint64_t n)
{
    return !field->data || bits >= 8 || tn_packed_bit(n, bits) == 0;
}

/* Whether nothing lies between the numbers of one row of tiles and those of the next. */
static bool rows_are_joined(const reader *r)
{
    const tn_scaled_plan *p = r->p;
    return (p->d->dims == 0 || (p->tile_rows == 1 && p->columns % p->tile_columns == 0)) &&
           ends_well(&p->data, r->data_bits, p->slots) &&
           ends_well(&p->scale, p->scale.bits, p->tiles_across) &&
           ends_well(&p->zero, p->zero.bits, p->tiles_across) && ends_well(&p->mask, 1, p->columns);
}

static void set_rows(reader *r)
{
    const tn_scaled_plan *p = r->p;
    bool joined = rows_are_joined(r);
    r->columns = joined ? p->count : p->columns;
    set_tile(r, joined && p->d->dims == 0 ? p->count : p->tile_columns, p->tile_rows);
}

static line line_at(const reader *r, uint64_t row)
{
    const tn_scaled_plan *p = r->p;
    uint64_t down = row / p->rows * p->tiles_down + row % p->rows / p->tile_rows,
             tile = down * p->tiles_across;
    line l = {
        .data = run_at(&p->data, row * bytes_of(r->data_bits, p->slots)),
        .scale = run_at(&p->scale, down * bytes_of(p->scale.bits, p->tiles_across)),
        .zero = run_at(&p->zero, down * bytes_of(p->zero.bits, p->tiles_across)),
        .offset = run_at(&p->offset, tile * tn_packed_bytes(r->tile_units, p->offset.bits)),
        .meta = run_at(&p->meta, tile * tn_packed_bytes(r->tile_units, p->meta.bits)),
        .mask = run_at(&p->mask, row * tn_packed_bytes(p->columns, 1)),
        .unit = p->d->subtile ? row % p->rows % p->tile_rows * r->units : 0,
    };
    l.data.bits = r->data_bits;
    return l;
}

/* --- rows across tiles ------------------------------------------------------------------------ */

/* One element of the tensor; those beside it in the dimensions within have tiles of their own. */
typedef struct spot {
    uint64_t outer, row, column, inner;
    uint64_t down, tile;        /* the numbers of its row of tiles and of its tile, without the dimensions
                                 * within */
    uint64_t unit;              /* in the tile */
} spot;

static spot spot_of(const reader *r, uint64_t element)
{
    const tn_scaled_plan *p = r->p;
    spot at = { .inner = element % p->inner, .column = element / p->inner % p->columns };
    uint64_t row = element / p->inner / p->columns;
    at.outer = row / p->rows;
    at.row = row % p->rows;
    at.down = at.outer * p->tiles_down + at.row / p->tile_rows;
    at.tile = at.down * p->tiles_across + at.column / p->tile_columns;
    if (p->d->subtile)
        at.unit = at.row % p->tile_rows * r->units + at.column % p->tile_columns / r->unit;
    return at;
}

/* Scales or zero points of tiles side by side. */
static const uint8_t *numbers_beside(const reader *r, desk *w, const tn_scaled_field *field, const spot *at,
                                     size_t n)
{
    const tn_scaled_plan *p = r->p;
    uint64_t row = at->down * bytes_of(field->bits, p->tiles_across) * p->inner + at->inner;
    uint64_t word = (at->tile * p->inner + at->inner) * (tn_scaled_word(field->bits) / 8);
    run from = run_at(field, field->bits < 8 ? row : word);
    return codes_beside(&from, at->column / p->tile_columns, p->inner, n, w->numbers);
}

static void units_beside(const reader *r, const tn_scaled_field *field, const spot *at, size_t n,
                         uint8_t *codes)
{
    uint64_t bytes = tn_packed_bytes(r->tile_units, field->bits);
    run from = run_at(field, at->tile * bytes * r->p->inner + at->inner);
    for (size_t i = 0; i < n; i++, from.at++)
        codes[i] = field->data ? packed_at(&from, at->unit, r->p->inner) : 0;
}

static void read_levels_beside(const reader *r, desk *w, const spot *at, size_t n)
{
    const tn_scaled_plan *p = r->p;
    make_scales(r, p->scale.data ? numbers_beside(r, w, &p->scale, at, n) : NULL, n,
                p->d->offset_bits ? w->tile_scales : w->scales);
    if (p->d->offset_bits) {
        units_beside(r, &p->offset, at, n, w->offsets);
        make_unit_scales(r, w, 1, n);
    }
    if (p->d->has_zero)
        make_zeros(r, w, numbers_beside(r, w, &p->zero, at, n), n);
    if (p->d->number.kind == TN_NUMBER_CODEBOOK) {
        units_beside(r, &p->meta, at, n, w->mappings);
        memset(w->mappings + n, 0, TN_DECODE_SPARE);
    }
}

/* The run that an element of data, in rows of the last dimension, stands in, and where there. */
static run data_run(const reader *r, uint64_t element, uint64_t *index)
{
    const tn_scaled_plan *p = r->p;
    bool packed = r->data_bits < 8;
    *index = packed ? element % p->last : element;
    run from = run_at(&p->data, packed ? element / p->last * tn_packed_bytes(p->last, r->data_bits) : 0);
    from.bits = r->data_bits;
    return from;
}

/* a or b, without a branch: nothing can foresee which values were left out. */
static uint8_t pick(bool first, uint8_t a, uint8_t b)
{
    return (uint8_t)(b ^ ((a ^ b) & -first));
}

/* Values without a slot become 0. */
static void clear_others(float *y, const uint8_t *slots, size_t n, unsigned keep)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &y[i], sizeof bits);
        bits &= 0u - (slots[i] < keep);
        memcpy(&y[i], &bits, sizeof bits);
    }
}

/* Which of the slots of its group each of the values side by side has; `keep`: none. */
static void slots_beside(const reader *r, const spot *at, size_t n, uint8_t *slots)
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

/* The codes in these slots; where there is none, any.  All slots of the values are unpacked for it. */
static void sparse_codes_beside(const reader *r, desk *w, const spot *at, const uint8_t *slots, size_t n)
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

/* Values side by side in the dimensions within; returns how many. */
static size_t decode_beside(const reader *r, desk *w, uint64_t element, size_t n, float *y)
{
    const tn_scaled_plan *p = r->p;
    const spot at = spot_of(r, element);
    const tn_decode_levels levels = levels_of(w, 1);
    uint8_t slots[LEVELS];
    uint64_t index;
    n = (size_t)tn_min_u64(n, tn_min_u64(LEVELS, p->inner - at.inner));
    if (r->data_bits < 8)
        n = (size_t)tn_min_u64(n, p->last - at.inner % p->last);
    read_levels_beside(r, w, &at, n);
    if (!p->d->of) {
        run from = data_run(r, element, &index);
        decode(&r->number, y, codes_at(r, &from, index, n, w->codes), n, &levels);
        return n;
    }
    slots_beside(r, &at, n, slots);
    sparse_codes_beside(r, w, &at, slots, n);
    decode(&r->number, y, w->codes, n, &levels);
    clear_others(y, slots, n, p->d->keep);
    return n;
}

/* --- what others call -------------------------------------------------------------------------- */

void tn_scaled_values_with(const tn_decode_kernels *k, const tn_scaled_plan *p, float tensor_scale,
                           uint64_t first, size_t n, float *y, bool stream)
{
    reader r = reader_of(k, p, tensor_scale);
    desk w;
    r.stream = stream;
    if (n == 0)
        return;
    if (p->inner == 1)
        set_rows(&r);
    else
        set_tile(&r, p->tile_columns, p->tile_rows);
    for (size_t done; n; first += done, y += done, n -= done) {
        if (p->inner == 1) {
            line l = line_at(&r, first / r.columns);
            done = (size_t)tn_min_u64(n, r.columns - first % r.columns);
            decode_line(&r, &w, &l, first % r.columns, done, y);
        } else {
            done = decode_beside(&r, &w, first, n, y);
        }
    }
    if (stream)
        tn_stream_fence();
}

void tn_scaled_values(const tn_scaled_plan *plan, float tensor_scale, uint64_t first, size_t n, float *y)
{
    tn_scaled_values_with(tn_decode_kernels_get(), plan, tensor_scale, first, n, y, false);
}

void tn_scaled_stream(const tn_scaled_plan *plan, float tensor_scale, uint64_t first, size_t n, float *y)
{
    tn_scaled_values_with(tn_decode_kernels_get(), plan, tensor_scale, first, n, y, true);
}

void tn_scaled_decode_with(const tn_decode_kernels *k, const tn_scaled_plan *p, const tn_tiles *tiles)
{
    reader r = reader_of(k, p, tiles->tensor_scale);
    desk w;
    const line l = {
        .data = { tiles->data, 0, p->data.bits }, .scale = { tiles->scale, 0, p->scale.bits },
        .zero = { tiles->zero, 0, p->zero.bits }, .offset = { tiles->offset, 0, p->offset.bits },
        .meta = { tiles->meta, 0, p->meta.bits }, .mask = { tiles->mask, 0, 1 },
    };
    if (tiles->count == 0 || tiles->size == 0)
        return;
    set_tile(&r, tiles->size, 1);
    decode_line(&r, &w, &l, 0, tiles->count * tiles->size, tiles->y);
}

static void decode_machine(const tn_scaled_plan *plan, const tn_tiles *tiles)
{
    tn_scaled_decode_with(tn_decode_kernels_get(), plan, tiles);
}

tn_tiles_decode_fn tn_scaled_decoder(const tn_scaled_plan *p)
{
    /* codes do not follow one another in their row */
    bool apart = p->data.bits < 8 && data_last(p) != p->slots;
    return tn_scaled_is_flat(p) && !apart ? decode_machine : NULL;
}
