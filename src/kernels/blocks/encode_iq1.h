/* kernels/blocks/encode_iq1.h - encoding iq1_s and iq1_m: what all levels share.
 *
 * Values of a sub-block are sorted.  The lowest become level 0, those in the middle 1, the highest 2: all
 * ways to cut them are tried, with levels moved up and moved down by an eighth. */
#ifndef TN_KERNELS_BLOCKS_ENCODE_IQ1_H
#define TN_KERNELS_BLOCKS_ENCODE_IQ1_H

#include <float.h>

#include "kernels/blocks/encode.h"
#include "kernels/blocks/neighbours.h"

enum { IQ1_SUPER = 256, IQ1_MOST = 32 };

/* What levels stand for, moved up and moved down by an eighth. */
static const float iq1_upper[3] = { -0.875f, 0.125f, 1.125f }, iq1_lower[3] = { -1.125f, -0.125f, 0.875f };

/* A sub-block of n values. */
typedef struct iq1_state {
    const float *x;
    unsigned n;
    float    w[IQ1_MOST];
    uint8_t  order[IQ1_MOST];   /* places of the values, lowest first */
    uint8_t  level[IQ1_MOST];
    uint16_t point[4];          /* of its groups of 8 */
    unsigned kind;              /* bit 1: the first half is lower; bit 0: the second is */
    float    scale;
    bool     is_lost;           /* values are so large that the distances to all near points are infinite */
} iq1_state;

/* The levels of a half, 0 or 1, of a kind. */
INLINE const float *iq1_levels_of(unsigned kind, unsigned half)
{
    return kind >> (1 - half) & 1 ? iq1_lower : iq1_upper;
}

INLINE const float *iq1_levels_at(const iq1_state *s, unsigned e)
{
    return iq1_levels_of(s->kind, 2 * e / s->n);
}

/* What value e becomes by the points. */
INLINE float iq1_value(const iq1_state *s, unsigned e)
{
    return iq1_levels_at(s, e)[s->point[e / 8] >> 2 * (e % 8) & 3];
}

/* ---- cuts ---- */

typedef struct iq1_cut {
    float    best;
    int      first, second;     /* below 0: none */
} iq1_cut;

typedef struct iq1_trial {
    float    A, B;
    unsigned kind, first, second;
} iq1_trial;

/* Takes a trial that is better than the best one. */
INLINE void take_trial(iq1_state *s, iq1_cut *c, iq1_trial t)
{
    if (!(t.B > 0 && t.A * t.A > c->best * t.B))
        return;
    s->scale = t.A / t.B;
    s->kind = t.kind;
    *c = (iq1_cut){ s->scale * t.A, (int)t.first, (int)t.second };
}

/* The best of all cuts, compared in order (encode_iq1.c): the levels of all values are moved the same way, or
 * those of each half by themselves. */
iq1_cut tn_cut_alike(iq1_state *s);
iq1_cut tn_cut_by_halves(iq1_state *s);

/* Of sums of sorted values: all are moved the same way. */
INLINE iq1_trial try_alike(const float *X, const float *W, unsigned kind, unsigned i, unsigned k)
{
    const float *v = iq1_levels_of(kind, 0);
    float A = (X[i] - X[0]) * v[0] + (X[k] - X[i]) * v[1] + (X[32] - X[k]) * v[2];
    float B = (W[i] - W[0]) * v[0] * v[0] + (W[k] - W[i]) * v[1] * v[1] + (W[32] - W[k]) * v[2] * v[2];
    return (iq1_trial){ A, B, kind, i, k };
}

/* The sums are taken anew. */
INLINE iq1_trial try_by_halves(const iq1_state *s, unsigned kind, unsigned i, unsigned k)
{
    iq1_trial t = { 0, 0, kind, i, k };
    for (unsigned j = 0; j < 16; j++) {
        unsigned e = s->order[j];
        float v = iq1_levels_of(kind, e / 8)[(j >= i) + (j >= k)];
        t.A += s->w[e] * v * s->x[e];
        t.B += s->w[e] * v * v;
    }
    return t;
}

INLINE void set_levels(iq1_state *s, unsigned first, unsigned second)
{
    for (unsigned j = 0; j < s->n; j++) {
        int level = (j >= first) + (j >= second);
        s->level[s->order[j]] = (uint8_t)(s->scale < 0 ? 2 - level : level);
    }
    if (s->scale < 0) {
        s->scale = -s->scale;
        s->kind = 3 - s->kind;
    }
}

/* The vector of levels of a group. */
INLINE unsigned iq1_vector(const iq1_state *s, unsigned group)
{
    unsigned u = 0;
    for (unsigned i = 0; i < 8; i++)
        u |= (unsigned)s->level[8 * group + i] << 2 * i;
    return u;
}

/* ---- super-blocks ---- */

/* Begins a sub-block; q NULL: values are weighted by their squares.  It stays as it is if all of it is 0. */
INLINE void begin_iq1(iq1_state *s, const float *x, unsigned n, const float *q, float mean_square)
{
    s->x = x;
    s->n = n;
    for (unsigned g = 0; g < 4; g++)
        s->point[g] = tn_grid_iq1[0];
    s->scale = 0;
    s->kind = 0;
    s->is_lost = false;
    for (unsigned e = 0; e < n && !q; e++)
        s->w[e] = x[e] * x[e];
    if (q)
        weigh(x, q, mean_square, n, s->w);
}

/* Where ggml ends the process an infinite scale says so. */
INLINE void end_iq1(iq1_state *s)
{
    if (s->is_lost || isnan(s->scale))
        s->scale = INFINITY;
}

INLINE unsigned iq1_scale_code(float d, float scale)
{
    return (unsigned)clamp(near(0.5f * (1 / d * scale - 1)), 0, 7);
}

INLINE unsigned iq1_index(const iq1_state *s, unsigned g)
{
    return (unsigned)tn_neighbours_of(TN_BLOCK_IQ1_S)->number[s->point[g]];
}

/* Of 8 sub-blocks. */
INLINE void put_iq1_s_block(const iq1_state *s, uint8_t *b)
{
    unsigned high[8];
    float most = 0;
    memset(b, 0, 50);
    for (unsigned k = 0; k < 8; k++) {
        most = s[k].scale > most ? s[k].scale : most;
        high[k] = 0;
        for (unsigned g = 0; g < 4; g++) {
            b[2 + 4 * k + g] = (uint8_t)iq1_index(&s[k], g);
            high[k] |= iq1_index(&s[k], g) >> 8 << 3 * g;
        }
        put16(b + 34 + 2 * k, high[k]);
    }
    float d = most / 15;
    put_half(b, d * 1.125f);
    for (unsigned k = 0; k < 8 && most != 0; k++)       /* else the points stay as they are */
        put16(b + 34 + 2 * k, high[k] | iq1_scale_code(d, s[k].scale) << 12 | (s[k].kind ? 0x8000 : 0));
}

/* Of 16 sub-blocks: their points, and codes of their scales.  Returns the largest scale; if it is 0 that is
 * all. */
INLINE float put_iq1_m_points(const iq1_state *s, unsigned *code, uint8_t *b)
{
    float most = 0;
    memset(b, 0, 56);
    for (unsigned k = 0; k < 16; k++) {
        unsigned first = iq1_index(&s[k], 0), second = iq1_index(&s[k], 1);
        most = s[k].scale > most ? s[k].scale : most;
        b[2 * k] = (uint8_t)first;
        b[2 * k + 1] = (uint8_t)second;
        b[32 + k] = (uint8_t)(first >> 8 | second >> 8 << 4);
    }
    for (unsigned k = 0; k < 16; k++)
        code[k] = most != 0 ? iq1_scale_code(most / 15, s[k].scale) : 0;
    return most;
}

/* Kinds and scales; d is the scale of all. */
INLINE void put_iq1_m_scales(const iq1_state *s, const unsigned *code, float d, uint8_t *b)
{
    unsigned words[4] = { 0 };
    for (unsigned k = 0; k < 16; k++) {
        words[k / 4] |= code[k] << 3 * (k % 4);
        b[32 + k] |= (uint8_t)((s[k].kind >> 1) << 3 | (s[k].kind & 1) << 7);
    }
    uint32_t half = half_of(d * 1.1125f);
    for (unsigned i = 0; i < 4; i++)
        put16(b + 48 + 2 * i, words[i] | (half >> 4 * i & 15) << 12);
}

#endif
