/* kernels/rotate/template.h - rotations in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h) and defines
 *
 *   inside(v, bit)     the butterflies between lanes of one vector: s = 1 << bit
 *   without_nan(v)     replaces every NaN by TN_ROTATE_NAN */

/* Butterflies between vectors: s = 1, 2 ... n / 2 vectors. */
INLINE void between(vf *z, unsigned n)
{
    const unsigned bits = (unsigned)__builtin_ctz(n);
#pragma GCC unroll 8
    for (unsigned bit = 0; bit < bits; bit++) {
        unsigned s = 1u << bit;
#pragma GCC unroll 64
        for (unsigned pair = 0; pair < n / 2; pair++) {
            unsigned k = (pair >> bit << (bit + 1)) | (pair & (s - 1));
            vf a = z[k], b = z[k + s];
            z[k] = a + b;
            z[k + s] = a - b;
        }
    }
}

/* --- blocks one after another ------------------------------------------------ */

/* One block, or as many as fill a vector. */
INLINE void rotate_block(float *dst, const float *src, unsigned size, const tn_rotate_step *step)
{
    vf z[TN_ROTATE_MAX / LANES];
    const unsigned n = size < LANES ? 1 : size / LANES, bits = (unsigned)__builtin_ctz(size / n);
#pragma GCC unroll 64
    for (unsigned i = 0; i < n; i++) {
        vu v, sign;
        fetch_ahead(src + LANES * i);
        memcpy(&v, src + LANES * i, sizeof v);
        memcpy(&sign, step->sign + LANES * i, sizeof sign);
        z[i] = (vf)(v ^ sign);
#pragma GCC unroll 8
        for (unsigned bit = 0; bit < bits; bit++)
            z[i] = inside(z[i], bit);
    }
    between(z, n);
#pragma GCC unroll 64
    for (unsigned i = 0; i < n; i++) {
        vf factor;
        memcpy(&factor, step->factor + LANES * i, sizeof factor);
        z[i] = without_nan(z[i] * factor);
        memcpy(dst + LANES * i, &z[i], sizeof z[i]);
    }
}

INLINE void rotate_blocks_of(float *dst, const float *src, size_t blocks, unsigned size,
                             const tn_rotate_step *step)
{
    const size_t together = size < LANES ? LANES / size : 1;
    for (; blocks >= together; blocks -= together) {
        rotate_block(dst, src, size, step);
        src += together * size;
        dst += together * size;
    }
    tn_rotate_blocks_scalar(dst, src, blocks, step);
}

/* One loop per size, which keeps a block in registers. */
static void rotate_blocks(float *dst, const float *src, size_t blocks, const tn_rotate_step *step)
{
    switch (step->size) {
    case 4:   rotate_blocks_of(dst, src, blocks, 4, step); break;
    case 8:   rotate_blocks_of(dst, src, blocks, 8, step); break;
    case 16:  rotate_blocks_of(dst, src, blocks, 16, step); break;
    case 32:  rotate_blocks_of(dst, src, blocks, 32, step); break;
    case 64:  rotate_blocks_of(dst, src, blocks, 64, step); break;
    default:  rotate_blocks_of(dst, src, blocks, 128, step); break;
    }
}

/* --- blocks in columns --------------------------------------------------------- */

INLINE void rotate_vectors(float *x, size_t pitch, unsigned size, const uint8_t *in, const uint8_t *out,
                           const tn_rotate_step *step)
{
    vf z[TN_ROTATE_MAX];
    for (unsigned k = 0; k < size; k++) {
        vu v;
        memcpy(&v, x + k * pitch, sizeof v);
        z[in[k]] = (vf)(v ^ step->sign[in[k]]);
    }
    between(z, size);
    for (unsigned k = 0; k < size; k++) {
        vf v = without_nan(z[out[k]] * step->factor[out[k]]);
        memcpy(x + k * pitch, &v, sizeof v);
    }
}

static void rotate_columns(float *x, size_t pitch, const uint8_t *in, const uint8_t *out,
                           const tn_rotate_step *step)
{
    for (unsigned c = 0; c < TN_ROTATE_LANES; c += LANES) {
        switch (step->size) {
        case 4:   rotate_vectors(x + c, pitch, 4, in, out, step); break;
        case 8:   rotate_vectors(x + c, pitch, 8, in, out, step); break;
        case 16:  rotate_vectors(x + c, pitch, 16, in, out, step); break;
        case 32:  rotate_vectors(x + c, pitch, 32, in, out, step); break;
        case 64:  rotate_vectors(x + c, pitch, 64, in, out, step); break;
        default:  rotate_vectors(x + c, pitch, 128, in, out, step); break;
        }
    }
}

void LEVEL(tn_rotate_kernels_init)(tn_rotate_kernels *k)
{
    *k = (tn_rotate_kernels){ rotate_blocks, rotate_columns };
}
