/* formats/conventions/fp8.c - 8-bit floats with scales of the tensor, of rows or of blocks.
 *
 *     DeepSeek            P.weight, P.weight_scale_inv or P.scale: a scale for each block
 *     compressed-tensors  P.weight, P.weight_scale: of the tensor, of rows [N, 1] or of blocks
 *     ModelOpt, FBGEMM    the same, of rows as [N] or [N, 1]
 *     MXFP8               exponents for each 32 values of a row
 *
 * Whatever its name, the scale is what to multiply by. */
#include "formats/conventions/unpack.h"

#include <string.h>

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* The most values along one dimension that share a scale. */
enum { BLOCK = 128, MAX_BLOCK = 65535 };

/* The block along one dimension of n values with `scales` of them; 0: none fits. */
static int64_t block_of(int64_t n, int64_t scales, int64_t configured)
{
    if (configured && divide_up(n, configured) == scales)
        return configured;
    if (divide_up(n, BLOCK) == scales)
        return BLOCK;
    return scales > 0 && n % scales == 0 && n / scales <= MAX_BLOCK ? n / scales : 0;
}

/* Scales with all dimensions of the tensor. */
static bool use_grid(tn_unpacking *u, const tn_tensor *scale, const char *number, const char *kind)
{
    uint32_t row = u->rank - 2, column = u->rank - 1;
    int64_t rows = u->shape[row], columns = u->shape[column];
    for (uint32_t i = 0; i < row; i++)
        if (scale->shape[i] != u->shape[i])
            return tn_unpack_refuse(u, "its scales are of another shape than its codes");
    if (scale->shape[column] == 1 && scale->shape[row] == rows)
        return tn_unpack_as(u, "%s|%s_t0", number, kind);
    int64_t high = block_of(rows, scale->shape[row], u->config->block[0]),
            wide = block_of(columns, scale->shape[column], u->config->block[1]);
    if (scale->shape[row] == rows)
        high = 1;
    if (!high || !wide)
        return tn_unpack_refuse(u, "its %lldx%lld scales are not those of blocks of %lldx%lld codes",
                                (long long)scale->shape[row], (long long)scale->shape[column],
                                (long long)rows, (long long)columns);
    if (high == 1)
        return tn_unpack_as(u, "%s|%s_t%lld", number, kind, (long long)wide);
    return tn_unpack_as(u, "%s|%s_t%lld_t%lld", number, kind, (long long)high, (long long)wide);
}

static bool choose_datatype(tn_unpacking *u, const tn_tensor *scale, const char *number, const char *kind)
{
    uint64_t count = 0;
    tn_shape_count(scale->rank, scale->shape, &count);
    if (count == 1 && scale->rank < 2)
        return tn_unpack_as(u, "%s|%s", number, kind);
    if (scale->rank == u->rank && u->rank >= 2)
        return use_grid(u, scale, number, kind);
    bool leads = scale->rank < u->rank;
    for (uint32_t i = 0; i < scale->rank && leads; i++)
        leads = scale->shape[i] == u->shape[i];
    if (leads && scale->rank == u->rank - 1)
        return tn_unpack_as(u, "%s|%s_t0", number, kind);
    if (leads && scale->rank == u->rank - 2 && scale->rank)
        return tn_unpack_as(u, "%s|%s_t0_t0", number, kind);
    return tn_unpack_refuse(u, "its scales are of another shape than its codes");
}

/* The codes as they are, and the scale beside them. */
bool tn_unpack_with_scale(tn_unpacking *u, const tn_tensor *codes, const tn_tensor *scale, const char *number)
{
    const char *kind = tn_unpack_spelling(scale->dtype);
    if (!kind)
        return tn_unpack_refuse(u, "its scales are of a type that no datatype has");
    u->rank = codes->rank;
    memcpy(u->shape, codes->shape, codes->rank * sizeof *codes->shape);
    if (scale->dtype == TN_FLOAT16 || scale->dtype == TN_BFLOAT16)
        u->dtype = scale->dtype;
    return choose_datatype(u, scale, number, kind) && tn_unpack_take(u, "data", codes) &&
           tn_unpack_take(u, "scale", scale);
}

bool tn_unpack_fp8(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[u->row->codes], *scale = u->from[u->row->codes ? 0 : 1];
    const char *number = tn_unpack_spelling(codes->dtype);
    return number ? tn_unpack_with_scale(u, codes, scale, number)
                  : tn_unpack_refuse(u, "its codes are of an unusual type");
}
