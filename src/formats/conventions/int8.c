/* formats/conventions/int8.c - int8 with a scale of the tensor or of each row.
 *
 *     compressed-tensors  P.weight, P.weight_scale, perhaps P.weight_zero_point
 *     quanto              NAME._data (or 8-bit floats), NAME._scale
 *     torchao             P._weight_qdata (or 8-bit floats), P._weight_scale, perhaps P._weight_zero_point
 *
 * With zero points codes and zero points get 128 more, because codes with zero points are unsigned. */
#include "formats/conventions/unpack.h"
#include "base/error.h"

#include <string.h>

enum { CODES, SCALE, ZERO };

static tn_status fill_unsigned(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->line, s->how->size, err));
    for (size_t i = 0; i < s->how->size; i++)
        s->line[i] ^= 0x80;
    return TN_OK;
}

static tn_status fill_zeros(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->scratch, (size_t)s->how->columns, err));
    for (size_t i = 0; i < s->how->columns; i++) {
        int16_t zero = (int16_t)((int8_t)s->scratch[i] + 128);
        memcpy(s->line + i * sizeof zero, &zero, sizeof zero);
    }
    return TN_OK;
}

static bool use_zeros(tn_unpacking *u, const tn_tensor *codes, const tn_tensor *zero)
{
    uint64_t columns = (uint64_t)codes->shape[codes->rank - 1], zeros = zero->parts[0].nbytes;
    const tn_input data = { codes, false }, points = { zero, false };
    const tn_lines unsign = { .fill = fill_unsigned, .columns = columns, .size = (size_t)columns,
                              .count = columns ? codes->parts[0].nbytes / columns : 0 };
    const tn_lines widen = { .fill = fill_zeros, .columns = 1, .size = sizeof(int16_t), .scratch = 1,
                             .count = zeros };
    return tn_unpack_lines(u, "data", &unsign, &data, 1) && tn_unpack_lines(u, "zero", &widen, &points, 1);
}

/* One scale of the tensor, or one for each row. */
static bool unpack_shifted(tn_unpacking *u, const tn_tensor *codes, const tn_tensor *scale,
                           const tn_tensor *zero)
{
    const char *kind = tn_unpack_spelling(scale->dtype);
    uint64_t scales = 0, zeros = 0, rows = 0;
    tn_shape_count(scale->rank, scale->shape, &scales);
    tn_shape_count(zero->rank, zero->shape, &zeros);
    tn_shape_count(codes->rank - 1, codes->shape, &rows);
    if (zero->dtype != TN_INT8 || !kind || scales != zeros || (scales != 1 && scales != rows))
        return tn_unpack_refuse(u, "its zero points are not int8, one for each scale of a row");
    u->rank = codes->rank;
    memcpy(u->shape, codes->shape, codes->rank * sizeof *codes->shape);
    if (scale->dtype != TN_FLOAT32)
        u->dtype = scale->dtype;
    return tn_unpack_as(u, "uint8|%s_int16%s", kind, scales == rows ? "_t0" : "") &&
           tn_unpack_take(u, "scale", scale) && use_zeros(u, codes, zero);
}

bool tn_unpack_int8(tn_unpacking *u)
{
    if (u->from[ZERO])
        return unpack_shifted(u, u->from[CODES], u->from[SCALE], u->from[ZERO]);
    return tn_unpack_with_scale(u, u->from[CODES], u->from[SCALE], "int8");
}

/* int8, or floats of 8 bits. */
static bool unpack_any(tn_unpacking *u, const tn_tensor *zero)
{
    const tn_tensor *codes = u->from[CODES];
    const char *number = codes->dtype == TN_INT8 ? "int8" : tn_unpack_spelling(codes->dtype);
    if (codes->rank < 1 || !number || codes->dtype == TN_UINT8)
        return tn_unpack_refuse(u, "its codes are of an unusual type or shape");
    if (zero && codes->dtype == TN_INT8)
        return unpack_shifted(u, codes, u->from[SCALE], zero);
    return tn_unpack_with_scale(u, codes, u->from[SCALE], number);
}

bool tn_unpack_quanto(tn_unpacking *u)
{
    return tn_unpack_rename(u, "") && unpack_any(u, NULL);
}

bool tn_unpack_torchao(tn_unpacking *u)
{
    return tn_unpack_rename(u, ".weight") && unpack_any(u, u->from[ZERO]);
}
