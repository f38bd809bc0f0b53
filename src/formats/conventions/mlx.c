/* formats/conventions/mlx.c - MLX's affine quantization: code * scale + bias for each group of a row.
 *
 * The words of P.weight, [N, K * bits / 32], are a stream of bits as Tenon's data is; a zero point in units
 * of values is what is subtracted, so it is the bias with the other sign. */
#include "formats/conventions/unpack.h"
#include "tensor/array.h"

#include <string.h>

enum { WEIGHT, SCALES, BIASES };

static tn_status fill_negative(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    TN_TRY(tn_line_take(s, 0, s->line, how->size, err));
    for (size_t i = 0; i < how->columns && how->width == 2; i++) {
        uint16_t bits;
        memcpy(&bits, s->line + 2 * i, 2);
        bits ^= UINT16_C(1) << 15;
        memcpy(s->line + 2 * i, &bits, 2);
    }
    for (size_t i = 0; i < how->columns && how->width == 4; i++) {
        uint32_t bits;
        memcpy(&bits, s->line + 4 * i, 4);
        bits ^= UINT32_C(1) << 31;
        memcpy(s->line + 4 * i, &bits, 4);
    }
    return TN_OK;
}

/* What the configuration says of this module. */
static void find_settings(const tn_unpacking *u, uint32_t *bits, uint32_t *group)
{
    *bits = u->config->bits;
    *group = u->config->group;
    const tn_quant_module *m = tn_config_module(u->config, u->module);
    *bits = m && m->bits ? m->bits : *bits;
    *group = m && m->group ? m->group : *group;
}

static bool use_biases(tn_unpacking *u, const tn_tensor *biases)
{
    uint64_t columns = (uint64_t)biases->shape[biases->rank - 1];
    uint32_t width = tn_dtype_get(biases->dtype)->bits / 8;
    const tn_input input = { biases, false };
    const tn_lines how = { .fill = fill_negative, .columns = columns, .size = (size_t)columns * width,
                           .width = width,
                           .count = columns ? biases->parts[0].nbytes / (columns * width) : 0 };
    return tn_unpack_lines(u, "zero", &how, &input, 1);
}

bool tn_unpack_mlx(tn_unpacking *u)
{
    const tn_tensor *words = u->from[WEIGHT], *scales = u->from[SCALES], *biases = u->from[BIASES];
    const char *type = tn_unpack_spelling(scales->dtype);
    uint32_t last = words->rank - 1, bits, group;
    find_settings(u, &bits, &group);
    if (!bits || !group)
        return tn_unpack_refuse(u, "no config.json beside the file says how many bits they have");
    if (bits < 2 || bits > 8 || bits == 7)
        return tn_unpack_refuse(u, "%u bits are none of 2 to 6 and 8", bits);
    if (scales->rank != words->rank || biases->dtype != scales->dtype || !type ||
        !tn_same_shape(biases->rank, biases->shape, scales->rank, scales->shape))
        return tn_unpack_refuse(u, "its scales and biases differ in type or shape");
    int64_t blocks = words->shape[last] / bits;         /* of 32 codes */
    if (words->shape[last] % bits || blocks > INT64_MAX / 32 || blocks * 32 % group ||
        blocks * 32 / group != scales->shape[last])
        return tn_unpack_refuse(u, "its %lld scales for %lld words of a row are not those of %u bits in "
                                "groups of %u", (long long)scales->shape[last],
                                (long long)words->shape[last], bits, group);
    u->rank = words->rank;
    memcpy(u->shape, words->shape, words->rank * sizeof *words->shape);
    u->shape[last] = blocks * 32;
    u->dtype = scales->dtype;
    return tn_unpack_as(u, "uint%u|%s_%s_t%u", bits, type, type, group) &&
           tn_unpack_take(u, "data", words) && tn_unpack_take(u, "scale", scales) && use_biases(u, biases);
}
