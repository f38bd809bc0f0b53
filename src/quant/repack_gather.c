/* quant/repack_gather.c - blocks of codes whose scales are those of larger tiles, or of another type.
 *
 * The codes are moved.  A scale becomes the number of the block type that has the same value, or there is
 * none and the block is refused. */
#include "quant/repack.h"
#include "quant/quantizer.h"
#include "kernels/cast/table.h"

#include <string.h>

enum { MOST_SCALES = 4 };       /* of a block */

/* The parts of one block, as tn_repack_join() takes them. */
typedef struct one_block {
    uint8_t data[32], scale[4], zero[2];
} one_block;

static bool is_float(tn_dtype type)
{
    return type == TN_FLOAT16 || type == TN_BFLOAT16 || type == TN_FLOAT32;
}

/* Tiles along rows that are whole blocks, or one of the tensor. */
static bool has_large_tiles(const tn_datatype *d, uint32_t values)
{
    bool along_rows = d->dims == 1 && d->dim == -1 && d->tile[0] % values == 0;
    return (d->dims == 0 && d->scope == TN_SCOPE_TENSOR) || along_rows;
}

static bool is_nvfp4(const tn_datatype *d)
{
    bool is_scale = is_float(d->scale.dtype) || d->scale.dtype == TN_FLOAT8_E4M3FN;
    return strcmp(d->number.text, "e2m1fnuz") == 0 && is_scale && d->dims == 1 && d->dim == -1 &&
           d->tile[0] == 16;
}

/* Whether codes of `bits` have no zero point, or an integer; or else a float one. */
static bool has_codes(const tn_datatype *d, unsigned bits, bool float_zero)
{
    bool is_int = d->number.kind == TN_NUMBER_INT && !float_zero;
    bool is_uint = d->number.kind == TN_NUMBER_UINT && (d->zero.kind == TN_NUMBER_FLOAT) == float_zero;
    bool is_zero = !float_zero || is_float(d->zero.dtype);
    return d->number.bits == bits && (is_int || is_uint) && is_zero && is_float(d->scale.dtype) &&
           has_large_tiles(d, 32);
}

const tn_repacking *tn_repacking_like(const tn_block_info *block, const tn_datatype *from)
{
    bool fits = false, has_tiles = from->quantizer == &tn_tile_quantizer || tn_is_indexed(from);
    if (!block || !has_tiles || from->of || from->subtile)
        return NULL;
    if (block->block == TN_BLOCK_NVFP4)
        fits = is_nvfp4(from);
    else if (from->has_tensor_scale)
        return NULL;
    else if (block->block == TN_BLOCK_Q4_0 || block->block == TN_BLOCK_Q8_0)
        fits = has_codes(from, block->block == TN_BLOCK_Q4_0 ? 4 : 8, false);
    else if (block->block == TN_BLOCK_Q4_1)
        fits = has_codes(from, 4, true);
    return fits ? tn_repacking_of_block(block) : NULL;
}

/* ---- numbers ---- */

/* The tile of each column of a row, if it is stored. */
static int32_t index_at(const tn_scaled_plan *p, uint64_t column)
{
    int32_t tile;
    memcpy(&tile, p->index.data + column * sizeof tile, sizeof tile);
    return tile;
}

/* The tile of an element, in the order of scales. */
static uint64_t tile_of(const tn_scaled_plan *p, uint64_t element)
{
    uint64_t row = (uint64_t)p->shape[p->rank - 1], tile = p->d->tile[0], column = element % row;
    if (!p->d->dims)
        return 0;
    uint64_t across = tile ? (row + tile - 1) / tile : 1, inside = tile ? column / tile : 0;
    return element / row * across + (p->index.data ? (uint64_t)index_at(p, column) : inside);
}

/* Columns that say their own tiles may say that of their neighbours. */
static const char *check_tiles(const tn_repacking *r, const tn_scaled_plan *p, uint64_t element)
{
    uint64_t column = element % (uint64_t)p->shape[p->rank - 1];
    for (uint32_t i = 1; i < tn_block_get(r->block)->values && p->index.data; i++)
        if (index_at(p, column + i) != index_at(p, column))
            return "its columns are of several groups";
    return NULL;
}

static uint32_t code_at(const tn_scaled_field *f, uint64_t i)
{
    uint16_t two;
    uint32_t four;
    if (f->bits == 8)
        return f->data[i];
    if (f->bits == 16)
        return memcpy(&two, f->data + 2 * i, 2), two;
    return memcpy(&four, f->data + 4 * i, 4), four;
}

/* The code of the same value, if the type has one. */
static bool narrow(float value, tn_dtype type, uint8_t *code)
{
    static const tn_cast_args nothing;
    float back;
    tn_cast_kernels_get()->from_f32[type](code, &value, 1, &nothing);
    tn_cast_kernels_get()->to_f32[type](&back, code, 1, &nothing);
    return memcmp(&back, &value, sizeof back) == 0;
}

/* ---- parts ---- */

static const char *take_scales(const tn_repacking *r, const tn_scaled_plan *p, uint64_t element, uint8_t *out)
{
    bool small = r->block == TN_BLOCK_NVFP4;
    unsigned n = small ? MOST_SCALES : 1, width = small ? 1 : 2;
    for (unsigned i = 0; i < n; i++) {
        uint32_t code = code_at(&p->scale, tile_of(p, element + 16 * i));
        float scale = tn_spec_value(&p->d->scale, code) * tn_scaled_tensor_scale(p);
        if (!narrow(scale, small ? TN_FLOAT8_E4M3FN : TN_FLOAT16, out + width * i))
            return small ? "its scale, times that of the tensor, is not a float8_e4m3fn"
                         : "its scale is not a float16";
    }
    return NULL;
}

/* Unsigned codes that stand for signed ones have the middle code as zero point. */
static const char *take_zero(const tn_repacking *r, const tn_scaled_plan *p, uint64_t element, uint8_t *out)
{
    const tn_datatype *d = p->d;
    if (d->number.kind != TN_NUMBER_UINT)
        return NULL;
    uint32_t code = code_at(&p->zero, tile_of(p, element));
    if (r->zero)
        return narrow(tn_spec_value(&d->zero, code), TN_FLOAT16, out) ? NULL
                                                                      : "its zero point is not a float16";
    return tn_spec_integer(&d->zero, code) == 1 << (d->number.bits - 1)
               ? NULL : "its zero point is not the middle code";
}

static void take_data(const tn_repacking *r, const tn_scaled_plan *p, uint64_t block, uint8_t *out)
{
    uint8_t flip = p->d->number.bits == 8 ? 0x80 : 0x88;
    bool flips = p->d->number.kind == TN_NUMBER_UINT && !r->zero;
    memcpy(out, p->data.data + block * r->data, r->data);
    for (unsigned i = 0; i < r->data && flips; i++)
        out[i] ^= flip;
}

size_t tn_repack_gather(const tn_repacking *r, const tn_scaled_plan *from, uint64_t first, size_t n,
                        uint8_t *blocks, const char **why)
{
    const tn_block_info *info = tn_block_get(r->block);
    for (size_t i = 0; i < n; i++) {
        one_block one;
        uint64_t element = (first + i) * info->values;
        *why = check_tiles(r, from, element);
        if (!*why)
            *why = take_scales(r, from, element, one.scale);
        if (!*why)
            *why = take_zero(r, from, element, one.zero);
        if (*why)
            return i;
        take_data(r, from, first + i, one.data);
        const tn_repacked_parts parts = { one.data, one.scale, one.zero };
        *why = "its scale means something else";
        if (!tn_repack_join(r, parts, 1, blocks + i * info->bytes))
            return i;
    }
    return n;
}
