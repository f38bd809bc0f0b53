/* quant/variant_quantizer.c - datatypes of other tools: the parts of NUMBER|SCALE, with other arithmetic.
 *
 *     indexed:NUMBER|SCALE    the tile of each column is in the part `index`, for all rows alike
 *     hqq:NUMBER|SCALE        (code - zero) * scale, where the zero point is a float in units of codes
 *     bnb:int8|float32_t0     code * scale * (1 / 127): the scale is the largest magnitude of its row
 *
 * They are read, not written. */
#include "quant/quantizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/cast/table.h"
#include "kernels/scaled_decode/table.h"
#include "tensor/code.h"

enum { CHUNK = 1024 };          /* values at a time */

/* Codes of a piece of one row, and the level of each. */
typedef struct piece {
    uint8_t  unpacked[CHUNK + 8 + TN_DECODE_SPARE];
    uint8_t  raw[CHUNK * sizeof(float)];        /* numbers of a part, one for each value */
    float    scale[CHUNK + TN_DECODE_SPARE], shift[CHUNK + TN_DECODE_SPARE];
    int32_t  zero[CHUNK + TN_DECODE_SPARE];
    const uint8_t *codes;
    size_t   n;
    uint64_t row, column;       /* of the first value */
} piece;

typedef struct variant {
    const char *prefix;
    bool      (*fits)(const tn_datatype *d);
    void      (*read)(const tn_scaled_plan *p, piece *w, float *y);
} variant;

/* --- levels ------------------------------------------------------------------------ */

static uint64_t row_of(const tn_scaled_plan *p)
{
    return (uint64_t)p->shape[p->rank - 1];
}

/* Tiles of a row. */
static uint64_t groups_of(const tn_scaled_plan *p)
{
    return p->d->tile[0] ? tn_div_up_u64(row_of(p), p->d->tile[0]) : 1;
}

static int32_t index_at(const tn_scaled_plan *p, uint64_t column)
{
    int32_t group;
    memcpy(&group, p->index.data + column * sizeof group, sizeof group);
    return group;
}

/* The number of each value's tile, as it is stored. */
static void gather(const tn_scaled_plan *p, const tn_scaled_field *field, piece *w)
{
    const size_t width = field->bits / 8;
    const uint8_t *row = field->data + w->row * groups_of(p) * width;
    for (size_t i = 0; i < w->n; i++) {
        uint64_t group = p->d->tile[0] ? (w->column + i) / p->d->tile[0] : 0;
        if (p->index.data)
            group = (uint64_t)index_at(p, w->column + i);
        memcpy(w->raw + i * width, row + group * width, width);
    }
}

static void gather_floats(const tn_scaled_plan *p, const tn_scaled_field *field, tn_dtype type, piece *w,
                          float *to)
{
    static const tn_cast_args nothing;
    gather(p, field, w);
    if (type == TN_FLOAT32)
        memcpy(to, w->raw, w->n * sizeof *to);
    else
        tn_cast_kernels_get()->to_f32[type](to, w->raw, w->n, &nothing);
}

/* --- values ------------------------------------------------------------------------- */

static float one_nan(float value)
{
    return isnan(value) ? NAN : value;
}

static void read_indexed(const tn_scaled_plan *p, piece *w, float *y)
{
    const tn_decode_number number = { .kind = TN_DECODE_UINT, .ones = (1u << p->d->number.bits) - 1 };
    gather_floats(p, &p->scale, p->d->scale.dtype, w, w->scale);
    gather(p, &p->zero, w);
    tn_decode_integers(w->zero, w->raw, w->n, p->zero.bits > 8 ? 1 : 0, p->zero.bits);
    tn_decode_kernels_get()->decode[TN_DECODE_UINT][0](
        y, w->codes, w->n, &number, &(tn_decode_levels){ .each = 1, .scale = w->scale, .zero = w->zero });
}

static void read_hqq(const tn_scaled_plan *p, piece *w, float *y)
{
    gather_floats(p, &p->scale, p->d->scale.dtype, w, w->scale);
    gather_floats(p, &p->zero, p->d->zero.dtype, w, w->shift);
    for (size_t i = 0; i < w->n; i++)
        y[i] = one_nan(((float)w->codes[i] - w->shift[i]) * w->scale[i]);
}

static void read_bnb(const tn_scaled_plan *p, piece *w, float *y)
{
    const float part = 1.0f / 127;
    float scale;
    memcpy(&scale, p->scale.data + w->row * sizeof scale, sizeof scale);
    for (size_t i = 0; i < w->n; i++)
        y[i] = one_nan((float)(int8_t)w->codes[i] * scale * part);
}

/* --- datatypes ---------------------------------------------------------------------- */

static bool has_float_scale(const tn_datatype *d)
{
    tn_dtype type = d->scale.dtype;
    return type == TN_FLOAT32 || type == TN_FLOAT16 || type == TN_BFLOAT16;
}

/* Unsigned codes of a byte at most, with tiles along the last dimension. */
static bool has_rows(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_UINT && d->number.bits <= 8 && d->dims == 1 && d->dim == -1 &&
           has_float_scale(d) && !d->of;
}

static bool fits_indexed(const tn_datatype *d)
{
    return has_rows(d) && d->zero.kind == TN_NUMBER_INT && (d->zero.bits == 8 || d->zero.bits == 16);
}

static bool fits_hqq(const tn_datatype *d)
{
    return has_rows(d) && d->zero.kind == TN_NUMBER_FLOAT && d->zero.dtype == d->scale.dtype;
}

static bool fits_bnb(const tn_datatype *d)
{
    return strcmp(d->text, "int8|float32_t0") == 0;
}

static const variant variants[] = {
    { "indexed:", fits_indexed, read_indexed },
    { "hqq:", fits_hqq, read_hqq },
    { "bnb:int8|", fits_bnb, read_bnb },
};

static const variant *find(const char *text)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (strncmp(text, variants[i].prefix, strlen(variants[i].prefix)) == 0)
            return &variants[i];
    return NULL;
}

static bool is_text(const char *text) { return find(text) != NULL; }

/* The text is the prefix and the canonical one of what follows. */
static tn_status name(tn_datatype *d, size_t prefix, const char *text, tn_error *err)
{
    size_t size = strlen(d->text) + 1;
    char *whole = malloc(prefix + size);
    TN_NEED(whole, err);
    memcpy(whole, text, prefix);
    memcpy(whole + prefix, d->text, size);
    free(d->text);
    d->text = whole;
    d->quantizer = &tn_variant_quantizer;
    return TN_OK;
}

static tn_status parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    const variant *v = find(text);
    size_t prefix = (size_t)(strchr(text, ':') - text) + 1;
    tn_datatype *d;
    TN_TRY(tn_tiles_parse(text + prefix, &d, err));
    tn_status status = TN_OK;
    if (!v->fits(d))
        status = tn_fail(err, TN_ERR_ARGUMENT, "%s: no tool has such codes", tn_quote_z(text).text);
    if (!status)
        status = name(d, prefix, text, err);
    if (status)
        tn_datatype_free(d);
    else
        *datatype = d;
    return status;
}

bool tn_is_indexed(const tn_datatype *d)
{
    return d->quantizer == &tn_variant_quantizer && find(d->text)->read == read_indexed;
}

static tn_status shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *s,
                        tn_error *err)
{
    TN_TRY(tn_tile_shapes(d, rank, shape, s, err));
    if (!tn_is_indexed(d))
        return TN_OK;
    s->parts[s->count++] = (tn_scaled_part){ .role = "index", .plain_dtype = TN_INT32, .dtype = TN_INT32,
                                             .rank = 1, .plain_shape = { shape[rank - 1] },
                                             .shape = { shape[rank - 1] } };
    return TN_OK;
}

tn_status tn_check_plain_options(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    if (!o->unpacked && !o->ggml && o->store == TN_UNKNOWN && !o->rotation.size)
        return TN_OK;
    return tn_fail(err, TN_ERR_ARGUMENT,
                   "%s has one layout: expected no rotation, dialect or layout of codes", d->text);
}

tn_status tn_refuse_encoding(tn_scaled_job *j, tn_error *err)
{
    return tn_fail(err, TN_ERR_UNSUPPORTED, "%s is another tool's datatype: this version reads it but does "
                   "not write it", j->plan.d->text);
}

/* --- decoding ------------------------------------------------------------------------ */

/* Every column has a tile. */
static tn_status open_values(tn_part_values *v, tn_error *err)
{
    const tn_scaled_plan *p = v->plan;
    uint64_t groups = groups_of(p);
    for (uint64_t i = 0; i < row_of(p) && p->index.data; i++) {
        int32_t group = index_at(p, i);
        if (group < 0 || (uint64_t)group >= groups)
            return tn_fail(err, TN_ERR_CORRUPT, "expected groups of 0 to %llu but column %llu has group %d",
                           (unsigned long long)groups - 1, (unsigned long long)i, (int)group);
    }
    return TN_OK;
}

/* Packed codes are unpacked from one that begins on a byte. */
static void find_codes(const tn_scaled_plan *p, piece *w)
{
    unsigned bits = p->data.bits;
    const uint8_t *row = p->data.data + w->row * tn_packed_bytes(row_of(p), bits);
    uint64_t from = w->column / 8 * 8;
    w->codes = row + w->column;
    if (bits == 8)
        return;
    tn_decode_kernels_get()->unpack(w->unpacked, row + tn_packed_byte(from, bits),
                                    w->n + (size_t)(w->column - from), bits);
    w->codes = w->unpacked + (w->column - from);
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    const tn_scaled_plan *p = v->plan;
    const variant *how = find(p->d->text);
    piece w;
    for (; n; first += w.n, y += w.n, n -= w.n) {
        w.row = first / row_of(p);
        w.column = first % row_of(p);
        w.n = (size_t)tn_min_u64(tn_min_u64(n, CHUNK), row_of(p) - w.column);
        find_codes(p, &w);
        how->read(p, &w, y);
    }
}

const tn_quantizer tn_variant_quantizer = {
    .name = "variants", .is_text = is_text, .parse = parse, .shapes = shapes, .check = tn_check_plain_options,
    .prepare = tn_refuse_encoding, .open = open_values, .read = read_values,
};
