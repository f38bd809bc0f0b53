/* kernels/blocks/encode_grid.h - encoding iq2 and iq3: what all levels share.
 *
 * The magnitudes of a group of 8 or 4 values become the levels of a point of a grid.  Trials differ in the
 * scale of a sub-block; the best one is improved once more. */
#ifndef TN_KERNELS_BLOCKS_ENCODE_GRID_H
#define TN_KERNELS_BLOCKS_ENCODE_GRID_H

#include <float.h>

#include "kernels/blocks/encode.h"
#include "kernels/blocks/neighbours.h"

enum { GRID_SUPER = 256 };      /* values of a super-block */
enum { GRID_MOST = 32, GRID_GROUPS = 8 };       /* values and groups of a sub-block, at most */

typedef struct grid_type {
    tn_block block;
    const uint16_t *point;
    unsigned size, group, bits; /* values of a sub-block, of a group, bits of a level */
    int      levels;
    float    mean_factor;       /* of the mean square in weights */
    float    tiny;              /* a maximum below it is 0 */
    bool     tiny_is_0;         /* only a maximum of 0 is */
    bool     even;              /* 7 signs of 8 are stored: the number of negative values is even */
    bool     by_search;         /* the first scale comes from a search, and all groups are improved */
    bool     improves_all;      /* all groups, if one is not in the grid or no trial is better */
    int      trials;
    float    step;
    float    factor;            /* of the scale of all */
} grid_type;

/* A sub-block. */
typedef struct grid_state {
    const tn_neighbours *near;
    float    x[GRID_MOST];           /* magnitudes; one may be negative */
    float    w[GRID_MOST], root[GRID_MOST];     /* weights, and their roots */
    uint8_t  signs[4];
    uint16_t point[GRID_GROUPS];
    bool     on_grid[GRID_GROUPS];
    float    scale;
    float    top;               /* what the highest level stands for in the trial in the middle */
    bool     is_lost;           /* values are so large that the distances to all near points are infinite */
} grid_state;

/* ---- signs ---- */

/* The value that matters least gets the other sign, if the number of negative ones is odd. */
INLINE void make_even(grid_state *s, const float *x, unsigned at)
{
    unsigned odd = s->signs[at / 8], least = 0;
    odd ^= odd >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    if (!(odd & 1))
        return;
    float min = s->w[at] * x[at] * x[at];
    for (unsigned i = 1; i < 8; i++) {
        float m = s->w[at + i] * x[at + i] * x[at + i];
        if (m < min) {
            min = m;
            least = i;
        }
    }
    s->x[at + least] = -s->x[at + least];
    s->signs[at / 8] ^= (uint8_t)(1u << least);
}

INLINE void take_signs(const grid_type *t, grid_state *s, const float *x)
{
    for (unsigned at = 0; at < t->size; at += 8) {
        s->signs[at / 8] = 0;
        for (unsigned i = 0; i < 8; i++) {
            bool negative = !(x[at + i] >= 0);
            s->x[at + i] = negative ? -x[at + i] : x[at + i];
            s->signs[at / 8] |= (uint8_t)(negative << i);
        }
        if (t->even)
            make_even(s, x, at);
    }
}

/* ---- a sub-block ---- */

/* Weights, signs and the first scale.  False: all of it is 0. */
INLINE bool begin_sub_block(const grid_type *t, grid_state *s, const float *x, const float *q,
                            float mean_square)
{
    float more = t->block == TN_BLOCK_IQ2_S ? 0.25f * mean_square : 0;
    for (unsigned e = 0; e < t->size; e++) {
        if (q)
            s->w[e] = q[e] * sqrtf(mean_square + x[e] * x[e]);
        else
            s->w[e] = more + x[e] * x[e];
        s->root[e] = sqrtf(s->w[e]);
    }
    take_signs(t, s, x);
    float max = s->x[0];
    for (unsigned e = 1; e < t->size; e++)
        max = s->x[e] > max ? s->x[e] : max;
    for (unsigned g = 0; g < GRID_GROUPS; g++) {
        s->on_grid[g] = !t->improves_all;
        s->point[g] = t->point[0];
    }
    s->scale = max / (float)(2 * t->levels - 1);
    s->top = max;
    s->is_lost = false;
    return t->tiny_is_0 ? max != 0 : !(max < t->tiny);
}

/* Takes the scale of a search of codes; false: it is none. */
INLINE bool take_scale(const grid_type *t, grid_state *s, float scale)
{
    s->scale = scale;
    s->top = scale * (float)t->levels;
    return s->top > 0;
}

INLINE float inverse_of_trial(const grid_type *t, const grid_state *s, int k)
{
    return ((float)(2 * t->levels - 1) + (float)k * t->step) / s->top;
}

/* Whether the best trial is improved, and whether all groups are. */
INLINE bool is_improved(const grid_type *t, const grid_state *s, bool *all)
{
    unsigned off = 0;
    for (unsigned g = 0; g < t->size / t->group; g++)
        off += !s->on_grid[g];
    *all = t->by_search || t->improves_all;
    return s->scale > 0 && (off || t->by_search);
}

/* A scale is positive. */
INLINE void end_sub_block(const grid_type *t, grid_state *s)
{
    if (s->scale < 0) {
        s->scale = -s->scale;
        for (unsigned i = 0; i < t->size / 8; i++)
            s->signs[i] = (uint8_t)~s->signs[i];
    }
}

/* ---- super-blocks ---- */

typedef struct grid_encoded {
    float    scale[16];         /* of sub-blocks */
    float    inverse;           /* of the scale of all; 0: all values are 0 */
    unsigned index[64];         /* points of groups */
    uint8_t  signs[32];         /* of each 8 values */
} grid_encoded;

/* Stores the scale of all; the rest of the block is 0. */
INLINE void put_grid_scale(const grid_type *t, grid_encoded *all, uint8_t *b)
{
    float most = 0;
    for (unsigned k = 0; k < GRID_SUPER / t->size; k++)
        most = all->scale[k] > most ? all->scale[k] : most;
    memset(b, 0, tn_block_get(t->block)->bytes);
    all->inverse = 0;
    if (most != 0) {
        put_half(b, most / 31 * t->factor);
        all->inverse = 1 / (most / 31);
    }
}

/* Keeps what is found of a sub-block; `any`: it is not 0.  ggml ends the process where there is no scale or
 * no point: an infinite scale says so. */
INLINE void keep_sub_block(const grid_type *t, const grid_state *s, unsigned k, bool any, grid_encoded *all)
{
    unsigned at = k * t->size;
    all->scale[k] = any ? s->scale : 0;
    if (any && (s->is_lost || isnan(s->scale)))
        all->scale[k] = INFINITY;
    for (unsigned g = 0; g < t->size / t->group; g++)
        all->index[at / t->group + g] = any ? (unsigned)s->near->number[s->point[g]] : 0;
    for (unsigned i = 0; i < t->size / 8; i++)
        all->signs[at / 8 + i] = any ? s->signs[i] : 0;
}

INLINE unsigned grid_scale_code(const grid_encoded *all, unsigned k)
{
    return (unsigned)clamp(near(0.5f * (all->inverse * all->scale[k] - 1)), 0, 15);
}

/* The scale of sub-block k of 32 values, and 7 of each 8 signs. */
INLINE uint32_t scale_and_signs(const grid_encoded *all, unsigned k)
{
    uint32_t word = (uint32_t)grid_scale_code(all, k) << 28;
    for (unsigned i = 0; i < 4; i++)
        word |= (all->signs[4 * k + i] & 127u) << 7 * i;
    return word;
}

/* Two codes of scales in each byte. */
INLINE void put_scales(const grid_encoded *all, unsigned n, uint8_t *sc)
{
    for (unsigned k = 0; k < n; k++)
        sc[k / 2] |= (uint8_t)(grid_scale_code(all, k) << 4 * (k % 2));
}

INLINE void put_iq2_xxs_block(const grid_encoded *all, uint8_t *b)
{
    for (unsigned k = 0; k < 8 && all->inverse != 0; k++) {
        for (unsigned g = 0; g < 4; g++)
            b[2 + 8 * k + g] = (uint8_t)all->index[4 * k + g];
        put32(b + 6 + 8 * k, scale_and_signs(all, k));
    }
}

INLINE void put_iq2_xs_block(const grid_encoded *all, uint8_t *b)
{
    if (all->inverse == 0)
        return;
    for (unsigned g = 0; g < 32; g++)
        put16(b + 2 + 2 * g, all->index[g] | (all->signs[g] & 127u) << 9);
    put_scales(all, 16, b + 66);
}

INLINE void put_iq2_s_block(const grid_encoded *all, uint8_t *b)
{
    for (unsigned g = 0; g < 32; g++) {
        b[2 + g] = (uint8_t)all->index[g];
        b[66 + g / 4] |= (uint8_t)(all->index[g] >> 8 << 2 * (g % 4));
    }
    memcpy(b + 34, all->signs, 32);
    put_scales(all, 16, b + 74);
}

INLINE void put_iq3_xxs_block(const grid_encoded *all, uint8_t *b)
{
    if (all->inverse == 0)
        return;
    for (unsigned g = 0; g < 64; g++)
        b[2 + g] = (uint8_t)all->index[g];
    for (unsigned k = 0; k < 8; k++)
        put32(b + 66 + 4 * k, scale_and_signs(all, k));
}

INLINE void put_iq3_s_block(const grid_encoded *all, uint8_t *b)
{
    for (unsigned g = 0; g < 64; g++) {
        b[2 + g] = (uint8_t)all->index[g];
        b[66 + g / 8] |= (uint8_t)(all->index[g] >> 8 << g % 8);
    }
    memcpy(b + 74, all->signs, 32);
    put_scales(all, 8, b + 106);
}

/* ---- types ---- */

static const grid_type tn_grid_type_iq2_xxs = {
    .block = TN_BLOCK_IQ2_XXS, .point = tn_grid_iq2_xxs, .size = 32, .group = 8, .bits = 2, .levels = 3,
    .mean_factor = 1, .tiny = TN_GROUP_TINY, .even = true, .by_search = true, .trials = 6, .step = 0.1f,
    .factor = 1,
};

static const grid_type tn_grid_type_iq2_xs = {
    .block = TN_BLOCK_IQ2_XS, .point = tn_grid_iq2_xs, .size = 16, .group = 8, .bits = 2, .levels = 3,
    .mean_factor = 1, .tiny = TN_GROUP_TINY, .even = true, .trials = 9, .step = 0.1f, .factor = 1,
};

static const grid_type tn_grid_type_iq2_s = {
    .block = TN_BLOCK_IQ2_S, .point = tn_grid_iq2_s, .size = 16, .group = 8, .bits = 2, .levels = 3,
    .mean_factor = 2, .tiny = 1e-8f, .trials = 9, .step = 0.1f, .factor = 0.9875f,
};

static const grid_type tn_grid_type_iq3_xxs = {
    .block = TN_BLOCK_IQ3_XXS, .point = tn_grid_iq3_xxs, .size = 32, .group = 4, .bits = 3, .levels = 8,
    .mean_factor = 2, .tiny = 1e-8f, .even = true, .trials = 15, .step = 0.2f, .factor = 1.0125f,
};

static const grid_type tn_grid_type_iq3_s = {
    .block = TN_BLOCK_IQ3_S, .point = tn_grid_iq3_s, .size = 32, .group = 4, .bits = 3, .levels = 8,
    .mean_factor = 2, .tiny_is_0 = true, .improves_all = true, .trials = 9, .step = 0.2f,
    .factor = 1.033f,
};

#endif
