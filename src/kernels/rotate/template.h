/* kernels/rotate/template.h - rotations in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h) and defines
 *
 *   inside(v, bit)     the butterflies between lanes of one vector: s = 1 << bit
 *   without_nan(v)     replaces every NaN by TN_ROTATE_NAN
 *   low(a, b), high(a, b)      interleave the lower or upper halves of each 4 lanes
 *   turn(v)            transposes LANES / 4 vectors of LANES / 4 times 4 lanes */

/* Butterflies between n vectors, each `stride` after the one before: s = 1, 2 ... n / 2 of them. */
INLINE void butterflies(vf *z, unsigned stride, unsigned n)
{
    const unsigned bits = (unsigned)__builtin_ctz(n);
    vf v[16];
#pragma GCC unroll 16
    for (unsigned i = 0; i < n; i++)
        v[i] = z[i * stride];
#pragma GCC unroll 8
    for (unsigned bit = 0; bit < bits; bit++) {
        unsigned s = 1u << bit;
#pragma GCC unroll 8
        for (unsigned pair = 0; pair < n / 2; pair++) {
            unsigned k = (pair >> bit << (bit + 1)) | (pair & (s - 1));
            vf a = v[k], b = v[k + s];
            v[k] = a + b;
            v[k + s] = a - b;
        }
    }
#pragma GCC unroll 16
    for (unsigned i = 0; i < n; i++)
        z[i * stride] = v[i];
}

/* Butterflies between vectors: s = 1, 2 ... n / 2 vectors, as many at a time as there are registers. */
INLINE void between(vf *z, unsigned n)
{
    enum { SOME = LANES };
    if (n <= 16) {
        butterflies(z, 1, n);
        return;
    }
#pragma GCC unroll 1
    for (unsigned i = 0; i < n; i += SOME)
        butterflies(z + i, 1, SOME);
#pragma GCC unroll 1
    for (unsigned i = 0; i < SOME; i++)
        butterflies(z + i, SOME, n / SOME);
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

/* --- permuted blocks one after another ------------------------------------------- */

/* Transposes LANES vectors. */
INLINE void transpose(vf *v)
{
    vf q[4][LANES / 4];
    for (unsigned g = 0; g < LANES / 4; g++) {
        const vf *p = v + 4 * g;
        vf a = low(p[0], p[2]), b = high(p[0], p[2]), c = low(p[1], p[3]), d = high(p[1], p[3]);
        q[0][g] = low(a, c);
        q[1][g] = high(a, c);
        q[2][g] = low(b, d);
        q[3][g] = high(b, d);
    }
    for (unsigned i = 0; i < 4; i++) {
        turn(q[i]);
        for (unsigned l = 0; l < LANES / 4; l++)
            v[4 * l + i] = q[i][l];
    }
}

/* LANES rows of a block, or of as many as fill a vector.  Rows become lanes: any order is then as fast. */
INLINE void rotate_rows(float *x, unsigned size, const uint8_t *in, const uint8_t *out,
                        const tn_rotate_step *step)
{
    const unsigned width = size < LANES ? LANES : size;
    vf z[TN_ROTATE_MAX], v[LANES];
    for (unsigned at = 0; at < width; at += LANES) {
        for (unsigned row = 0; row < LANES; row++) {
            fetch_ahead(x + row * width + at);
            memcpy(&v[row], x + row * width + at, sizeof *v);
        }
        transpose(v);
        for (unsigned i = 0; i < LANES; i++) {
            unsigned k = (at + i) % size;
            z[at + i - k + in[k]] = (vf)((vu)v[i] ^ step->sign[in[k]]);
        }
    }
    for (unsigned block = 0; block < width; block += size)
        between(z + block, size);
    for (unsigned at = 0; at < width; at += LANES) {
        for (unsigned i = 0; i < LANES; i++) {
            unsigned k = (at + i) % size;
            v[i] = without_nan(z[at + i - k + out[k]] * step->factor[out[k]]);
        }
        transpose(v);
        for (unsigned row = 0; row < LANES; row++)
            memcpy(x + row * width + at, &v[row], sizeof *v);
    }
}

/* The last rows are padded with zeros. */
INLINE void rotate_permuted_of(float *x, size_t blocks, unsigned size, const uint8_t *in, const uint8_t *out,
                               const tn_rotate_step *step)
{
    float last[TN_ROTATE_MAX * LANES];
    const size_t most = (size < LANES ? LANES : size) * LANES;
    for (size_t n = blocks * size, some; n; n -= some, x += some) {
        bool whole = n >= most;
        some = whole ? most : n;
        if (!whole) {
            memcpy(last, x, n * sizeof *x);
            memset(last + n, 0, (most - n) * sizeof *x);
        }
        rotate_rows(whole ? x : last, size, in, out, step);
        if (!whole)
            memcpy(x, last, n * sizeof *x);
    }
}

static void rotate_permuted(float *x, size_t blocks, const uint8_t *in, const uint8_t *out,
                            const tn_rotate_step *step)
{
    switch (step->size) {
    case 4:   rotate_permuted_of(x, blocks, 4, in, out, step); break;
    case 8:   rotate_permuted_of(x, blocks, 8, in, out, step); break;
    case 16:  rotate_permuted_of(x, blocks, 16, in, out, step); break;
    case 32:  rotate_permuted_of(x, blocks, 32, in, out, step); break;
    case 64:  rotate_permuted_of(x, blocks, 64, in, out, step); break;
    default:  rotate_permuted_of(x, blocks, 128, in, out, step); break;
    }
}

void LEVEL(tn_rotate_kernels_init)(tn_rotate_kernels *k)
{
    *k = (tn_rotate_kernels){ rotate_blocks, rotate_columns, rotate_permuted };
}
