/* kernels/rotate/scalar.c - rotations: the definition. */
#include "kernels/rotate/table.h"

#include "tensor/code.h"


static float flipped(float x, uint32_t sign)
{
    return tn_float_of(tn_float_bits(x) ^ sign);
}

static float scaled(float x, float factor)
{
    x *= factor;
    return x == x ? x : tn_float_of(TN_ROTATE_NAN);
}

void tn_rotate_blocks_scalar(float *dst, const float *src, size_t blocks, const tn_rotate_step *step)
{
    float z[TN_ROTATE_MAX];
    unsigned size = step->size;
    for (; blocks; blocks--, src += size, dst += size) {
        for (unsigned k = 0; k < size; k++)
            z[k] = flipped(src[k], step->sign[k]);
        for (unsigned s = 1; s < size; s *= 2) {
            for (unsigned k = 0; k < size; k++) {
                if (k & s)
                    continue;
                float a = z[k], b = z[k + s];
                z[k] = a + b;
                z[k + s] = a - b;
            }
        }
        for (unsigned k = 0; k < size; k++)
            dst[k] = scaled(z[k], step->factor[k]);
    }
}

static void permuted_block(float *x, size_t pitch, const uint8_t *in, const uint8_t *out,
                           const tn_rotate_step *step)
{
    float z[TN_ROTATE_MAX] = { 0 };
    for (size_t k = 0; k < step->size; k++)
        z[in[k]] = x[k * pitch];
    tn_rotate_blocks_scalar(z, z, 1, step);
    for (size_t k = 0; k < step->size; k++)
        x[k * pitch] = z[out[k]];
}

static void columns_scalar(float *x, size_t pitch, const uint8_t *in, const uint8_t *out,
                           const tn_rotate_step *step)
{
    for (size_t c = 0; c < TN_ROTATE_LANES; c++)
        permuted_block(x + c, pitch, in, out, step);
}

static void permuted_scalar(float *x, size_t blocks, const uint8_t *in, const uint8_t *out,
                            const tn_rotate_step *step)
{
    for (; blocks; blocks--, x += step->size)
        permuted_block(x, 1, in, out, step);
}

void tn_rotate_kernels_init_scalar(tn_rotate_kernels *k)
{
    *k = (tn_rotate_kernels){ tn_rotate_blocks_scalar, columns_scalar, permuted_scalar };
}
