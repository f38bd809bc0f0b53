/* formats/conventions/planes.c - several rows of codes in one row of bytes.
 *
 *     BitNet   P.weight [N / 4, K]: row r + i * N / 4 in bits 2 i and 2 i + 1; code - 1 is times the scale,
 *              or divided by it
 *     quanto   NAME._data._data [N / 2, K]: row r in the low bits, row r + N / 2 in the high ones
 *     HQQ      hqq.c */
#include "formats/conventions/unpack.h"
#include "base/error.h"

#include <string.h>

static uint32_t element_at(const uint8_t *bytes, size_t i, uint32_t width)
{
    uint32_t word = bytes[i];
    if (width == sizeof word)
        memcpy(&word, bytes + i * sizeof word, sizeof word);
    return word;
}

static tn_status fill_plane(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    unsigned plane = (unsigned)(s->number / how->rows), have = 0;
    unsigned shift = how->is_apart ? (unsigned)how->add - plane * how->bits : plane * how->bits;
    uint64_t bits = 0, mask = (UINT64_C(1) << how->bits) - 1;
    uint8_t *out = s->line;
    TN_TRY(tn_line_take(s, plane, s->scratch, (size_t)how->columns * how->width, err));
    for (size_t i = 0; i < how->columns; i++) {
        bits |= (element_at(s->scratch, i, how->width) >> shift & mask) << have;
        for (have += how->bits; have >= 8; have -= 8, bits >>= 8)
            *out++ = (uint8_t)bits;
    }
    return TN_OK;
}

bool tn_unpack_planes(tn_unpacking *u, const tn_lines *how, const tn_tensor *entry, unsigned planes)
{
    tn_input inputs[TN_UNPACK_INPUTS];
    tn_lines lines = *how;
    if (planes > TN_UNPACK_INPUTS || !how->rows || how->columns % 8 ||
        how->count > (uint64_t)planes * how->rows || how->columns > TN_UNPACK_LINE)
        return tn_unpack_refuse(u, "its %llu columns are not a multiple of 8 codes",
                                (unsigned long long)how->columns);
    for (unsigned i = 0; i < planes; i++)
        inputs[i] = (tn_input){ entry, false };
    lines.fill = fill_plane;
    lines.size = (size_t)(how->columns * how->bits / 8);
    lines.scratch = (size_t)how->columns * how->width;
    return tn_unpack_lines(u, "data", &lines, inputs, planes);
}

/* A matrix whose rows have `planes` rows of codes each. */
static bool use_matrix(tn_unpacking *u, const tn_tensor *codes, unsigned planes)
{
    const tn_lines how = { .columns = (uint64_t)codes->shape[1], .rows = (uint64_t)codes->shape[0],
                           .count = (uint64_t)codes->shape[0] * planes, .bits = 8 / planes, .width = 1 };
    return tn_unpack_planes(u, &how, codes, planes);
}

static bool find_shape(tn_unpacking *u, const tn_tensor *codes, int64_t planes)
{
    if (codes->rank != 2 || codes->shape[0] > INT64_MAX / planes)
        return tn_unpack_refuse(u, "its codes are not a matrix");
    u->rank = 2;
    u->shape[0] = codes->shape[0] * planes;
    u->shape[1] = codes->shape[1];
    return true;
}

/* ---- BitNet ---- */

enum { CODES, SCALE };

static tn_status fill_quotient(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->scratch, s->how->width, err));
    float one = 1.0f / (float)tn_value_get((tn_dtype)s->how->add, s->scratch, 0).re;
    memcpy(s->line, &one, sizeof one);
    return TN_OK;
}

/* Codes are 0 to 3 and values -1 to 2: a quotient is that number times 1 / scale, rounded once. */
static bool use_scale(tn_unpacking *u, const tn_tensor *scale)
{
    const tn_input input = { scale, false };
    const tn_lines how = { .fill = fill_quotient, .size = sizeof(float), .scratch = 8, .count = 1,
                           .columns = 1, .width = tn_dtype_get(scale->dtype)->bits / 8,
                           .add = (int32_t)scale->dtype };
    if (u->config->is_auto_bit_linear)
        return tn_unpack_take(u, "scale", scale);
    return tn_unpack_lines(u, "scale", &how, &input, 1);
}

bool tn_unpack_bitnet(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[CODES], *scale = u->from[SCALE];
    const char *kind = tn_unpack_spelling(scale->dtype);
    uint64_t count = 0;
    tn_shape_count(scale->rank, scale->shape, &count);
    if (count != 1 || !kind)
        return tn_unpack_refuse(u, "it has not one scale");
    if (scale->dtype != TN_FLOAT32)
        u->dtype = scale->dtype;
    return find_shape(u, codes, 4) &&
           tn_unpack_as(u, "uint2|%s_int8", u->config->is_auto_bit_linear ? kind : "float32") &&
           use_matrix(u, codes, 4) && use_scale(u, scale) && tn_unpack_constant(u, "zero", 1);
}

/* ---- quanto ---- */

bool tn_unpack_quanto_int4(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[CODES], *scale = u->from[SCALE], *shift = u->from[2];
    const char *kind = tn_unpack_spelling(scale->dtype);
    if (!kind || scale->dtype != shift->dtype)
        return tn_unpack_refuse(u, "its scales and shifts differ in type");
    u->dtype = scale->dtype;
    return tn_unpack_rename(u, "") && find_shape(u, codes, 2) &&
           tn_unpack_check(u, scale, u->shape[0], 1) && tn_unpack_check(u, shift, u->shape[0], 1) &&
           tn_unpack_as(u, "uint4|%s_%s_t0", kind, kind) && use_matrix(u, codes, 2) &&
           tn_unpack_take(u, "scale", scale) && tn_unpack_take(u, "zero", shift);
}
