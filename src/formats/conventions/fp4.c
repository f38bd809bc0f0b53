/* formats/conventions/fp4.c - two 4-bit floats (e2m1) a byte, the first one in the low bits.
 *
 *     MXFP4   an exponent for each 32 values: compressed-tensors, Quark, gpt-oss, DeepSeek, MLX
 *     NVFP4   an e4m3 number for each 16 values, times one of the tensor (ModelOpt) or divided by it
 *             (compressed-tensors); MLX has no scale of the tensor
 *
 * Where the scale of the tensor divides, or each expert has one, the scales of blocks become float32 with
 * that of the tensor in them: the same arithmetic, the same bits. */
#include "formats/conventions/unpack.h"
#include "base/error.h"
#include "quant/moved_codes.h"

#include <string.h>

enum { CODES, SCALE, TENSOR_SCALE };

/* The shape of the values: the last dimension has `codes` values for each element. */
static bool find_shape(tn_unpacking *u, const tn_tensor *codes, int64_t values)
{
    uint32_t last = codes->rank - 1;
    u->rank = codes->rank;
    memcpy(u->shape, codes->shape, codes->rank * sizeof *codes->shape);
    return !__builtin_mul_overflow(codes->shape[last], values, &u->shape[last]) ||
           tn_unpack_refuse(u, "its values are more than a tensor can have");
}

/* Scales have all dimensions of the values, the last one divided by the values that share one. */
static bool has_scales(tn_unpacking *u, const tn_tensor *scale, int64_t tile)
{
    uint32_t last = u->rank - 1;
    bool fits = scale->rank == u->rank && u->shape[last] % tile == 0 &&
                scale->shape[last] == u->shape[last] / tile;
    for (uint32_t i = 0; i < last && fits; i++)
        fits = scale->shape[i] == u->shape[i];
    return fits ||
           tn_unpack_refuse(u, "its scales are not one for each %lld values of a row", (long long)tile);
}

/* gpt-oss has blocks as a dimension of their own. */
static bool unpack_blocks(tn_unpacking *u, const tn_tensor *codes, const tn_tensor *scale)
{
    uint32_t last = codes->rank - 1;
    if (codes->rank < 2 || codes->shape[last] != 16 || scale->rank != last)
        return tn_unpack_refuse(u, "its codes are not blocks of 16 bytes");
    u->rank = last;
    memcpy(u->shape, codes->shape, last * sizeof *codes->shape);
    return (!__builtin_mul_overflow(codes->shape[last - 1], 32, &u->shape[last - 1]) ||
            tn_unpack_refuse(u, "its values are more than a tensor can have")) &&
           tn_unpack_rename(u, "") && has_scales(u, scale, 32) && tn_unpack_as(u, "e2m1fnuz|e8m0_t32") &&
           tn_unpack_take(u, "data", codes) && tn_unpack_take(u, "scale", scale);
}

/* Codes of 4 bits; MLX, whose words have 32, may have 8 of 8 bits, or scales for 16 values. */
bool tn_unpack_mxfp4(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[u->row->codes], *scale = u->from[u->row->codes ? 0 : 1];
    const char *suffix = u->row->parts[u->row->codes].suffix;
    uint32_t last = codes->rank - 1;
    bool words = codes->dtype == TN_UINT32;
    if (strcmp(suffix, "_blocks") == 0)
        return unpack_blocks(u, codes, scale);
    if (strcmp(suffix, ".weight_packed") == 0 && !tn_unpack_rename(u, ".weight"))
        return false;
    bool alike = scale->rank == codes->rank && scale->shape[last];
    int64_t ratio = alike ? codes->shape[last] / scale->shape[last] : 0;
    bool is_wide = words && ratio == 8, is_nvfp4 = words && ratio == 2;
    const char *datatype = "e2m1fnuz|e8m0_t32";
    if (is_nvfp4)
        datatype = "e2m1fnuz|e4m3fn_t16";
    else if (is_wide)
        datatype = "e4m3fn|e8m0_t32";
    int64_t values = words ? 8 : 2;
    return find_shape(u, codes, is_wide ? 4 : values) && has_scales(u, scale, is_nvfp4 ? 16 : 32) &&
           tn_unpack_as(u, "%s", datatype) && tn_unpack_take(u, "data", codes) &&
           tn_unpack_take(u, "scale", scale);
}

/* ---- NVFP4 ---- */

static float e4m3_value(uint8_t code)
{
    return (float)tn_value_get(TN_FLOAT8_E4M3FN, &code, 0).re;
}

/* The scales of `rows` rows times, or divided by, one of the tensor: the next one after each `rows` lines. */
static tn_status fill_scales(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    float *of_tensor = (float *)(void *)s->scratch;
    uint8_t *codes = s->scratch + sizeof *of_tensor;
    if (s->number % how->rows == 0)
        TN_TRY(tn_line_take(s, 1, of_tensor, sizeof *of_tensor, err));
    TN_TRY(tn_line_take(s, 0, codes, (size_t)how->columns, err));
    for (size_t i = 0; i < how->columns; i++) {
        float scale = e4m3_value(codes[i]);
        scale = how->add ? scale / *of_tensor : scale * *of_tensor;
        memcpy(s->line + 4 * i, &scale, 4);
    }
    return TN_OK;
}

/* One scale for each `rows` rows of blocks. */
static bool join_scales(tn_unpacking *u, uint64_t lines, uint64_t rows, bool divide)
{
    const tn_tensor *scale = u->from[SCALE];
    uint64_t columns = (uint64_t)scale->shape[scale->rank - 1];
    const tn_input inputs[] = { { scale, false }, { u->from[TENSOR_SCALE], false } };
    const tn_lines how = { .fill = fill_scales, .columns = columns, .rows = rows ? rows : 1, .count = lines,
                           .size = (size_t)columns * 4, .scratch = (size_t)columns + 4, .add = divide };
    return tn_unpack_as(u, "e2m1fnuz|float32_t16") && tn_unpack_take(u, "data", u->from[CODES]) &&
           tn_unpack_lines(u, "scale", &how, inputs, 2);
}

bool tn_unpack_nvfp4(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[CODES], *scale = u->from[SCALE], *of_tensor = u->from[TENSOR_SCALE];
    bool divides = strcmp(u->row->parts[CODES].suffix, ".weight_packed") == 0;
    uint64_t count = 0, lines = 0;
    if (scale->dtype != TN_FLOAT8_E4M3FN || of_tensor->dtype != TN_FLOAT32)
        return tn_unpack_refuse(u, "its scales must be float8_e4m3fn and float32");
    if (!find_shape(u, codes, 2) || !has_scales(u, scale, 16) || (divides && !tn_unpack_rename(u, ".weight")))
        return false;
    tn_shape_count(of_tensor->rank, of_tensor->shape, &count);
    tn_shape_count(u->rank - 1, u->shape, &lines);
    if (count == 1 && !divides)
        return tn_unpack_as(u, "e2m1fnuz|multi_float32_e4m3fn_t16") && tn_unpack_take(u, "data", codes) &&
               tn_unpack_take(u, "scale", scale) && tn_unpack_take(u, "tscale", of_tensor);
    if (count != 1 && (u->rank != 3 || count != (uint64_t)u->shape[0]))
        return tn_unpack_refuse(u, "its scale of the tensor is not one number, or one for each expert");
    return join_scales(u, lines, count == 1 ? lines : (uint64_t)u->shape[1], divides);
}

/* ---- ComfyUI: the first code in the high bits, scales in tiles of 128 rows and 4 columns ---- */

enum { TILE_ROWS = 128, TILE_COLUMNS = 4, TILE_BYTES = TILE_ROWS * TILE_COLUMNS };

static tn_status fill_swapped(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->scratch, s->how->size, err));
    tn_codes_swap(s->line, s->scratch, s->how->size);
    return TN_OK;
}

/* Row r and column c of a tile are at byte 16 (r % 32) + 4 (r / 32) + c. */
static tn_status fill_tiles(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    uint64_t left = how->rows - s->number * TILE_ROWS;
    size_t rows = (size_t)(left < TILE_ROWS ? left : TILE_ROWS), columns = (size_t)how->columns;
    TN_TRY(tn_line_take(s, 0, s->scratch, how->scratch, err));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            s->line[r * columns + c] = s->scratch[c / TILE_COLUMNS * TILE_BYTES + r % 32 * 16 + r / 32 * 4 +
                                                  c % TILE_COLUMNS];
    s->size = rows * columns;
    return TN_OK;
}

static bool use_tiles(tn_unpacking *u, const tn_tensor *scale)
{
    const tn_input input = { scale, false };
    uint64_t rows = (uint64_t)u->shape[0], columns = (uint64_t)u->shape[1] / 16,
             across = columns / TILE_COLUMNS + (columns % TILE_COLUMNS != 0),
             down = rows / TILE_ROWS + (rows % TILE_ROWS != 0);
    if (u->shape[1] % 16 || !tn_unpack_check(u, scale, (int64_t)down * TILE_ROWS,
                                             (int64_t)across * TILE_COLUMNS))
        return tn_unpack_refuse(u, "its scales are not tiles of %d rows and %d columns", TILE_ROWS,
                                TILE_COLUMNS);
    const tn_lines how = { .fill = fill_tiles, .columns = columns, .rows = rows, .count = down,
                           .size = (size_t)columns * TILE_ROWS, .scratch = (size_t)across * TILE_BYTES };
    return tn_unpack_lines(u, "scale", &how, &input, 1);
}

bool tn_unpack_comfy_nvfp4(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[CODES], *scale = u->from[SCALE];
    const tn_tensor *of_tensor = u->from[u->row->parts[TENSOR_SCALE].types == TN_HAS_U8 ? 3 : TENSOR_SCALE];
    const tn_input input = { codes, false };
    if (scale->dtype != TN_FLOAT8_E4M3FN || of_tensor->dtype != TN_FLOAT32 || codes->rank != 2)
        return tn_unpack_refuse(u, "its scales must be float8_e4m3fn and float32");
    const tn_lines how = { .fill = fill_swapped, .columns = (uint64_t)codes->shape[1],
                           .size = (size_t)codes->shape[1], .scratch = (size_t)codes->shape[1],
                           .count = (uint64_t)codes->shape[0] };
    return find_shape(u, codes, 2) && tn_unpack_as(u, "e2m1fnuz|multi_float32_e4m3fn_t16") &&
           tn_unpack_lines(u, "data", &how, &input, 1) && use_tiles(u, scale) &&
           tn_unpack_take(u, "tscale", of_tensor);
}
