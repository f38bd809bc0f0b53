/* kernels/reorder/interleave.h - interleaving in vectors.
 *
 * Included once by each level's file that has a shuffle of bytes, which first defines
 *
 *   WIDTH, bytes, load_bytes(p), put_bytes(p, v, stream)       vectors
 *   pick(from, v)          bytes of v by their numbers, 0 for TN_INTERLEAVE_NONE */
#include "kernels/reorder/table.h"

/* `counts`: 16 * in + out, a constant for common numbers of vectors. */
INLINE void interleave_steps(uint8_t *dst, const uint8_t *src, size_t steps, const tn_interleave *w,
                             unsigned counts, bool stream)
{
    const unsigned in = counts / 16, out = counts % 16;
    for (size_t k = 0; k < steps; k++, dst += w->out_step, src += w->in_step) {
        bytes v[TN_INTERLEAVE_MOST];
        for (unsigned i = 0; i < in; i++)
            v[i] = load_bytes(src + (ptrdiff_t)i * w->in_gap);
        for (unsigned o = 0; o < out; o++) {
            bytes sum = load_bytes(w->fill[o]);
            for (unsigned i = 0; i < in; i++)
                sum |= pick(load_bytes(w->from[o][i]), v[i]);
            put_bytes(dst + (ptrdiff_t)o * w->out_gap, sum, stream);
        }
    }
}

INLINE void interleave_any(uint8_t *dst, const uint8_t *src, size_t steps, const tn_interleave *w,
                           bool stream)
{
    unsigned counts = w->in * 16 + w->out;
    switch (counts) {                   /* those of images: vectors stay in registers */
    case 0x22: interleave_steps(dst, src, steps, w, 0x22, stream); break;
    case 0x33: interleave_steps(dst, src, steps, w, 0x33, stream); break;
    case 0x34: interleave_steps(dst, src, steps, w, 0x34, stream); break;
    case 0x43: interleave_steps(dst, src, steps, w, 0x43, stream); break;
    case 0x44: interleave_steps(dst, src, steps, w, 0x44, stream); break;
    default:   interleave_steps(dst, src, steps, w, counts, stream); break;
    }
}

static void interleave(void *restrict dst, const void *restrict src, size_t steps, const tn_interleave *w,
                       bool stream)
{
    if (stream) {
        interleave_any(dst, src, steps, w, true);
        tn_stream_fence();
    } else {
        interleave_any(dst, src, steps, w, false);
    }
}

static void add_interleave(tn_reorder_kernels *k)
{
    k->interleave = interleave;
    k->interleave_width = WIDTH;
}
