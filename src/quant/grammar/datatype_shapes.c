/* quant/grammar/datatype_shapes.c - types and shapes of the parts, bits per value. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/block.h"
#include "tensor/code.h"
#include "quant/quantizer.h"
#include "quant/grammar/datatype.h"

/* The tiles of a tensor. */
typedef struct tiling {
    const tn_datatype *d;
    uint32_t rank;
    const int64_t *shape;
    uint32_t first, last;       /* tiled dimensions; all with a scale of the tensor */
    int64_t  tiles[64];         /* per dimension: the shape of scales */
} tiling;

/* ---- types ---- */

/* Codes narrower than a byte are packed.  Wider ones take 8, 16 or 32 bits. */
static unsigned stored_bits(unsigned bits)
{
    if (bits <= 8)
        return bits;
    return bits <= 16 ? 16 : 32;
}

/* The element type with these codes, else an unsigned integer. */
static tn_dtype stored_type(const tn_number_spec *n)
{
    if (n->bits >= 8 && n->dtype != TN_UNKNOWN)
        return n->dtype;
    if (n->bits <= 8)
        return TN_UINT8;
    return n->bits <= 16 ? TN_UINT16 : TN_UINT32;
}

/* ---- tiles ---- */

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* Values of a tile along one tiled dimension; 0: all. */
static uint32_t tile_values(const tn_datatype *d, uint32_t i)
{
    return d->of ? d->tile[i] / d->keep * d->of : d->tile[i];   /* whole groups: checked by the grammar */
}

static uint32_t subtiles_along(const tn_datatype *d, uint32_t i)
{
    if (!d->subtile)
        return 1;
    return i == d->dims - 1 ? d->tile[i] / d->subtile : d->tile[i];
}

static uint32_t subtiles(const tn_datatype *d)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < d->dims; i++)
        n *= subtiles_along(d, i);
    return n;
}

/* Bytes per tile with `bits` per subtile. */
static uint32_t tile_bytes(const tn_datatype *d, unsigned bits)
{
    return (bits * subtiles(d) + 7) / 8;
}

static tn_status check_shape(uint32_t rank, const int64_t *shape, tn_error *err)
{
    if (rank > TN_MAX_RANK || (rank && !shape))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a shape of at most %d dimensions but found %u",
                       TN_MAX_RANK, rank);
    for (uint32_t i = 0; i < rank; i++)
        if (shape[i] < 0)
            return tn_fail(err, TN_ERR_ARGUMENT, "dimension %u: expected a size of 0 or more but found %lld",
                           i, (long long)shape[i]);
    return TN_OK;
}

static tn_status divide_into_tiles(tiling *c, tn_error *err)
{
    const tn_datatype *d = c->d;
    bool tensor = d->dims == 0;
    uint32_t needed = d->dim < 0 ? (uint32_t)-d->dim : (uint32_t)d->dim + d->dims;
    if (!tensor && c->rank < needed)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%.100s: its tiles need rank %u or more but the tensor has rank %u", d->text, needed,
                       c->rank);
    c->last = c->rank ? c->rank - 1 : 0;
    if (!tensor) {
        c->first = d->dim < 0 ? c->rank - needed : (uint32_t)d->dim;
        c->last = c->first + d->dims - 1;
    }
    for (uint32_t i = 0; i < c->rank; i++) {
        int64_t size = tensor ? 0 : 1;
        if (!tensor && i >= c->first && i <= c->last)
            size = tile_values(d, i - c->first);
        c->tiles[i] = size ? divide_up(c->shape[i], size) : c->shape[i] != 0;
    }
    return TN_OK;
}

/* ---- parts ---- */

static tn_scaled_part *add_part(tn_scaled_shapes *s, const char *role, tn_dtype plain, tn_dtype packed,
                                uint32_t rank, const int64_t *shape)
{
    tn_scaled_part *p = &s->parts[s->count++];
    *p = (tn_scaled_part){ .role = role, .plain_dtype = plain, .dtype = packed, .rank = rank };
    for (uint32_t i = 0; i < rank; i++)
        p->plain_shape[i] = p->shape[i] = shape[i];
    return p;
}

/* Packs the numbers along dimension `dim`.  Each row begins on a byte. */
static void pack(tn_scaled_part *p, uint32_t dim, unsigned bits)
{
    if (dim < p->rank && bits < 8)
        p->shape[dim] = (int64_t)tn_packed_bytes((uint64_t)p->shape[dim], bits);
}

static void add_data(const tiling *c, tn_scaled_shapes *s)
{
    const tn_datatype *d = c->d;
    tn_dtype type = stored_type(&d->number);
    tn_scaled_part *p = add_part(s, "data", type, type, c->rank, c->shape);
    if (d->of)
        p->shape[c->last] = divide_up(p->shape[c->last], d->of) * d->keep;
    if (c->rank)
        pack(p, c->rank - 1, d->number.bits);
}

/* One number per tile. */
static void add_tiled(const tiling *c, const char *role, const tn_number_spec *n, tn_scaled_shapes *s)
{
    tn_dtype type = stored_type(n);
    pack(add_part(s, role, type, type, c->rank, c->tiles), c->last, n->bits);
}

static tn_status multiply(int64_t *size, uint32_t by, tn_error *err)
{
    uint64_t product;
    if (!tn_mul_u64((uint64_t)*size, by, &product) || product > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "%lld tiles of %u are more than a dimension can have",
                       (long long)*size, by);
    *size = (int64_t)product;
    return TN_OK;
}

/* A few bits per subtile, or per tile without subtiles.  Each tile takes whole bytes. */
static tn_status add_bits(const tiling *c, const char *role, unsigned bits, tn_scaled_shapes *s,
                          tn_error *err)
{
    tn_scaled_part *p = add_part(s, role, TN_UINT8, TN_UINT8, c->rank, c->tiles);
    for (uint32_t i = 0; i < c->d->dims; i++)
        TN_TRY(multiply(&p->plain_shape[c->first + i], subtiles_along(c->d, i), err));
    return c->rank ? multiply(&p->shape[c->last], tile_bytes(c->d, bits), err) : TN_OK;
}

/* Codes are one stream of bits: rows do not begin on a byte. */
tn_status tn_affine_shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *s,
                           tn_error *err)
{
    const tn_affine *a = &d->affine;
    if (a->axis >= 0 && (uint32_t)a->axis >= rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an axis below %u or %d for one scale but found %d",
                       rank, TN_PER_TENSOR, (int)a->axis);
    uint32_t of_scales = a->axis >= 0;
    add_part(s, "data", a->codes, a->codes, rank, shape);
    add_part(s, "scale", TN_FLOAT32, TN_FLOAT32, of_scales, of_scales ? &shape[a->axis] : NULL);
    if (d->has_zero)
        add_part(s, "zero", TN_INT32, TN_INT32, of_scales, of_scales ? &shape[a->axis] : NULL);
    return TN_OK;
}

tn_status tn_tile_shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *s,
                         tn_error *err)
{
    tiling c = { .d = d, .rank = rank, .shape = shape };
    TN_TRY(divide_into_tiles(&c, err));
    add_data(&c, s);
    if (d->scope != TN_SCOPE_NONE)
        add_tiled(&c, "scale", &d->scale, s);
    if (d->has_tensor_scale)
        add_part(s, "tscale", stored_type(&d->tensor_scale), stored_type(&d->tensor_scale), 0, NULL);
    if (d->has_zero)
        add_tiled(&c, "zero", &d->zero, s);
    if (d->offset_bits)
        TN_TRY(add_bits(&c, "offset", d->offset_bits, s, err));
    if (d->codebook.meta_bits)
        TN_TRY(add_bits(&c, "meta", d->codebook.meta_bits, s, err));
    if (d->of)
        pack(add_part(s, "mask", TN_BOOL, TN_UINT8, rank, shape), c.last, 1);
    return TN_OK;
}

tn_status tn_scaled_shapes_for(const tn_datatype *d, uint32_t rank, const int64_t *shape,
                               tn_scaled_shapes *shapes, tn_error *err)
{
    tn_scaled_shapes s;         /* large: the parts that there are not stay as they are */
    s.count = 0;
    TN_GIVEN(d, "a datatype", err);
    TN_GIVEN(shapes, "a place for the shapes", err);
    TN_TRY(check_shape(rank, shape, err));
    TN_TRY(d->quantizer->shapes(d, rank, shape, &s, err));
    shapes->count = s.count;
    memcpy(shapes->parts, s.parts, s.count * sizeof *s.parts);
    return TN_OK;
}

/* ---- bits ---- */

double tn_datatype_bits(const tn_datatype *d)
{
    double data = d ? stored_bits(d->number.bits) : 0, tile = 1, shared = 0;
    if (!d)
        return 0;
    if (d->block)
        return 8 * (double)d->block->bytes / d->block->values;
    if (d->of)
        data = data * d->keep / d->of + 1;
    for (uint32_t i = 0; i < d->dims; i++)
        tile *= tile_values(d, i);
    if (d->dims == 0 || tile == 0)              /* one scale per tensor or channel is not counted */
        return data;
    shared = stored_bits(d->scale.bits);
    if (d->has_zero)
        shared += stored_bits(d->zero.bits);
    if (d->offset_bits)
        shared += 8 * tile_bytes(d, d->offset_bits);
    if (d->codebook.meta_bits)
        shared += 8 * tile_bytes(d, d->codebook.meta_bits);
    return data + shared / tile;
}
