/* formats/conventions/int4.c - INT4 AWQ of ModelOpt: row 2 i of the values in the low halves of row i of
 * P.weight, row 2 i + 1 in the high ones, two's complement; P.weight_scale for each group of a row. */
#include "formats/conventions/unpack.h"
#include "base/error.h"

#include <string.h>

enum { CODES, SCALE };

/* Two lines. */
static tn_status fill_two(tn_line_state *s, tn_error *err)
{
    size_t columns = (size_t)s->how->columns, bytes = columns / 2;
    const uint8_t *in = s->scratch;
    TN_TRY(tn_line_take(s, 0, s->scratch, columns, err));
    for (size_t i = 0; i < bytes; i++) {
        s->line[i] = (uint8_t)((in[2 * i] & 15) | in[2 * i + 1] << 4);
        s->line[bytes + i] = (uint8_t)(in[2 * i] >> 4 | (in[2 * i + 1] & 0xf0));
    }
    return TN_OK;
}

bool tn_unpack_int4_awq(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[CODES], *scale = u->from[SCALE];
    const char *kind = tn_unpack_spelling(scale->dtype);
    if (codes->rank != 2 || scale->rank != 2 || !kind || codes->shape[0] > INT64_MAX / 2 ||
        scale->shape[0] != 2 * codes->shape[0] || codes->shape[1] % 2 || scale->shape[1] < 1 ||
        codes->shape[1] % scale->shape[1])
        return tn_unpack_refuse(u, "its scales are not one for each group of a row");
    const tn_input input = { codes, false };
    const tn_lines how = { .fill = fill_two, .columns = (uint64_t)codes->shape[1],
                           .size = (size_t)codes->shape[1], .scratch = (size_t)codes->shape[1],
                           .count = (uint64_t)codes->shape[0], .is_alone = true };
    u->rank = 2;
    u->shape[0] = scale->shape[0];
    u->shape[1] = codes->shape[1];
    if (scale->dtype != TN_FLOAT32)
        u->dtype = scale->dtype;
    return tn_unpack_as(u, "int4|%s_t%lld", kind,
                        (long long)(scale->shape[1] == 1 ? 0 : u->shape[1] / scale->shape[1])) &&
           tn_unpack_lines(u, "data", &how, &input, 1) && tn_unpack_take(u, "scale", scale);
}
