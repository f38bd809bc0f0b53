/* kernels/blocks/encode_grid.c - encoding iq2 and iq3: the definition.
 *
 * The magnitudes of a group of 8 or 4 values become the levels of a point of a grid.  Trials differ in the
 * scale of a sub-block; the best one is improved once more. */
#include "kernels/blocks/encode.h"
#include "kernels/blocks/neighbours.h"

enum { VALUES = 256, MOST = 32, GROUPS = 8 };   /* values and groups of a sub-block, at most */

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
typedef struct state {
    const grid_type *type;
    const tn_neighbours *near;
    float    x[MOST];           /* magnitudes; one may be negative */
    float    w[MOST], root[MOST];       /* weights, and their roots */
    uint8_t  level[MOST], signs[4];
    unsigned index[GROUPS];     /* of the points */
    bool     on_grid[GROUPS];
    float    scale;
} state;

/* ---- signs ---- */

/* The value that matters least gets the other sign, if the number of negative ones is odd. */
static void make_even(state *s, const float *x, unsigned at)
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

static void take_signs(state *s, const float *x)
{
    for (unsigned at = 0; at < s->type->size; at += 8) {
        s->signs[at / 8] = 0;
        for (unsigned i = 0; i < 8; i++) {
            bool negative = !(x[at + i] >= 0);
            s->x[at + i] = negative ? -x[at + i] : x[at + i];
            s->signs[at / 8] |= (uint8_t)(negative << i);
        }
        if (s->type->even)
            make_even(s, x, at);
    }
}

/* ---- points ---- */

static unsigned level_of(const grid_type *t, unsigned point, unsigned i)
{
    return point >> t->bits * i & ((1u << t->bits) - 1);
}

static float error_of(const state *s, unsigned at, unsigned point, float scale)
{
    float error = 0;
    for (unsigned i = 0; i < s->type->group; i++) {
        float q = (float)(2 * level_of(s->type, point, i) + 1), e = scale * q - s->x[at + i];
        error += s->root[at + i] * e * e;
    }
    return error;
}

/* The point for values from `at` on; false: their levels are not in the grid, and the point is near. */
static bool snap(const state *s, unsigned at, float inverse_scale, float scale, unsigned *index)
{
    const grid_type *t = s->type;
    unsigned u = 0;
    for (unsigned i = 0; i < t->group; i++) {
        int level = near(0.5f * (inverse_scale * s->x[at + i] - 1));
        u |= (unsigned)clamp(level, 0, t->levels - 1) << t->bits * i;
    }
    int32_t number = s->near->number[u];
    if (number >= 0) {
        *index = (unsigned)number;
        return true;
    }
    const uint16_t *list = s->near->list + (-1 - number);
    float least = INFINITY;
    *index = list[1];
    for (unsigned k = 1; k <= list[0]; k++) {
        float error = error_of(s, at, t->point[list[k]], scale);
        if (error < least) {
            least = error;
            *index = list[k];
        }
    }
    return false;
}

static void sum_up(const state *s, const unsigned *index, float *A, float *B)
{
    *A = *B = 0;
    for (unsigned e = 0; e < s->type->size; e++) {
        unsigned level = level_of(s->type, s->type->point[index[e / s->type->group]], e % s->type->group);
        float q = (float)(2 * level + 1);
        *A += s->w[e] * s->x[e] * q;
        *B += s->w[e] * q * q;
    }
}

/* ---- a sub-block ---- */

static void try_scales(state *s, float top)
{
    const grid_type *t = s->type;
    unsigned groups = t->size / t->group;
    float best = 0;
    for (int k = -t->trials; k <= t->trials; k++) {
        unsigned index[GROUPS];
        bool on_grid[GROUPS];
        float A, B, inverse_scale = ((float)(2 * t->levels - 1) + (float)k * t->step) / top;
        for (unsigned g = 0; g < groups; g++)
            on_grid[g] = snap(s, g * t->group, inverse_scale, 1 / inverse_scale, &index[g]);
        sum_up(s, index, &A, &B);
        if (B > 0 && A * A > best * B) {
            s->scale = A / B;
            best = s->scale * A;
            memcpy(s->index, index, sizeof index);
            memcpy(s->on_grid, on_grid, sizeof on_grid);
        }
    }
}

static void improve(state *s)
{
    const grid_type *t = s->type;
    unsigned groups = t->size / t->group, off = 0;
    bool all = t->by_search || t->improves_all;
    float A, B;
    for (unsigned g = 0; g < groups; g++)
        off += !s->on_grid[g];
    if (!(s->scale > 0) || (!off && !t->by_search))
        return;
    for (unsigned g = 0; g < groups; g++)
        if (all || !s->on_grid[g])
            snap(s, g * t->group, 1 / s->scale, s->scale, &s->index[g]);
    sum_up(s, s->index, &A, &B);
    if (B > 0)
        s->scale = A / B;
}

/* False: all of it is 0. */
static bool encode_sub_block(state *s, const float *x, const float *q, float mean_square)
{
    const grid_type *t = s->type;
    for (unsigned e = 0; e < t->size; e++) {
        if (q)
            s->w[e] = q[e] * sqrtf(mean_square + x[e] * x[e]);
        else
            s->w[e] = (t->block == TN_BLOCK_IQ2_S ? 0.25f * mean_square : 0) + x[e] * x[e];
        s->root[e] = sqrtf(s->w[e]);
    }
    take_signs(s, x);
    float max = s->x[0];
    for (unsigned e = 1; e < t->size; e++)
        max = s->x[e] > max ? s->x[e] : max;
    memset(s->index, 0, sizeof s->index);
    s->scale = 0;
    if (t->tiny_is_0 ? max == 0 : max < t->tiny)
        return false;
    for (unsigned g = 0; g < GROUPS; g++)
        s->on_grid[g] = !t->improves_all;
    float top = max;
    s->scale = max / (float)(2 * t->levels - 1);
    if (t->by_search) {
        s->scale = tn_search_positive(s->x, s->w, t->size, t->levels + 1, s->level);
        top = s->scale * (float)t->levels;
        if (!(top > 0)) {
            s->scale = 0;
            return false;
        }
    }
    try_scales(s, top);
    improve(s);
    if (s->scale < 0) {
        s->scale = -s->scale;
        for (unsigned i = 0; i < t->size / 8; i++)
            s->signs[i] = (uint8_t)~s->signs[i];
    }
    return true;
}

/* ---- super-blocks ---- */

typedef struct encoded {
    float    scale[16];         /* of sub-blocks */
    float    inverse;           /* of the scale of all; 0: all values are 0 */
    unsigned index[64];         /* points of groups */
    uint8_t  signs[32];         /* of each 8 values */
} encoded;

/* Encodes all sub-blocks and stores the scale of all; the rest of the block is 0. */
static encoded encode_all(const grid_type *t, const float *x, const float *q, uint8_t *b)
{
    encoded all = { .inverse = 0 };
    state s = { .type = t, .near = tn_neighbours_of(t->block) };
    float mean_square = t->mean_factor * sum_squares(x, VALUES) / VALUES, most = 0;
    memset(b, 0, tn_block_get(t->block)->bytes);
    for (unsigned k = 0, at = 0; at < VALUES; k++, at += t->size) {
        bool any = encode_sub_block(&s, x + at, q ? q + at : NULL, mean_square);
        all.scale[k] = s.scale;
        most = s.scale > most ? s.scale : most;
        memcpy(all.index + at / t->group, s.index, t->size / t->group * sizeof *s.index);
        for (unsigned i = 0; i < t->size / 8 && any; i++)
            all.signs[at / 8 + i] = s.signs[i];
    }
    if (most != 0) {
        put_half(b, most / 31 * t->factor);
        all.inverse = 1 / (most / 31);
    }
    return all;
}

static unsigned scale_code(const encoded *all, unsigned k)
{
    return (unsigned)clamp(near(0.5f * (all->inverse * all->scale[k] - 1)), 0, 15);
}

/* The scale of sub-block k of 32 values, and 7 of each 8 signs. */
static uint32_t scale_and_signs(const encoded *all, unsigned k)
{
    uint32_t word = (uint32_t)scale_code(all, k) << 28;
    for (unsigned i = 0; i < 4; i++)
        word |= (all->signs[4 * k + i] & 127u) << 7 * i;
    return word;
}

/* Two codes of scales in each byte. */
static void put_scales(const encoded *all, unsigned n, uint8_t *sc)
{
    for (unsigned k = 0; k < n; k++)
        sc[k / 2] |= (uint8_t)(scale_code(all, k) << 4 * (k % 2));
}

static void iq2_xxs_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const grid_type type = {
        .block = TN_BLOCK_IQ2_XXS, .point = tn_grid_iq2_xxs, .size = 32, .group = 8, .bits = 2, .levels = 3,
        .mean_factor = 1, .tiny = TN_GROUP_TINY, .even = true, .by_search = true, .trials = 6, .step = 0.1f,
        .factor = 1,
    };
    encoded all = encode_all(&type, x, q, b);
    (void)mean_square;
    for (unsigned k = 0; k < 8 && all.inverse != 0; k++) {
        for (unsigned g = 0; g < 4; g++)
            b[2 + 8 * k + g] = (uint8_t)all.index[4 * k + g];
        put32(b + 6 + 8 * k, scale_and_signs(&all, k));
    }
}

static void iq2_xs_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const grid_type type = {
        .block = TN_BLOCK_IQ2_XS, .point = tn_grid_iq2_xs, .size = 16, .group = 8, .bits = 2, .levels = 3,
        .mean_factor = 1, .tiny = TN_GROUP_TINY, .even = true, .trials = 9, .step = 0.1f, .factor = 1,
    };
    encoded all = encode_all(&type, x, q, b);
    (void)mean_square;
    if (all.inverse == 0)
        return;
    for (unsigned g = 0; g < 32; g++)
        put16(b + 2 + 2 * g, all.index[g] | (all.signs[g] & 127u) << 9);
    put_scales(&all, 16, b + 66);
}

static void iq2_s_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const grid_type type = {
        .block = TN_BLOCK_IQ2_S, .point = tn_grid_iq2_s, .size = 16, .group = 8, .bits = 2, .levels = 3,
        .mean_factor = 2, .tiny = 1e-8f, .trials = 9, .step = 0.1f, .factor = 0.9875f,
    };
    encoded all = encode_all(&type, x, q, b);
    (void)mean_square;
    for (unsigned g = 0; g < 32; g++) {
        b[2 + g] = (uint8_t)all.index[g];
        b[66 + g / 4] |= (uint8_t)(all.index[g] >> 8 << 2 * (g % 4));
    }
    memcpy(b + 34, all.signs, 32);
    put_scales(&all, 16, b + 74);
}

static void iq3_xxs_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const grid_type type = {
        .block = TN_BLOCK_IQ3_XXS, .point = tn_grid_iq3_xxs, .size = 32, .group = 4, .bits = 3, .levels = 8,
        .mean_factor = 2, .tiny = 1e-8f, .even = true, .trials = 15, .step = 0.2f, .factor = 1.0125f,
    };
    encoded all = encode_all(&type, x, q, b);
    (void)mean_square;
    if (all.inverse == 0)
        return;
    for (unsigned g = 0; g < 64; g++)
        b[2 + g] = (uint8_t)all.index[g];
    for (unsigned k = 0; k < 8; k++)
        put32(b + 66 + 4 * k, scale_and_signs(&all, k));
}

static void iq3_s_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    static const grid_type type = {
        .block = TN_BLOCK_IQ3_S, .point = tn_grid_iq3_s, .size = 32, .group = 4, .bits = 3, .levels = 8,
        .mean_factor = 2, .tiny_is_0 = true, .improves_all = true, .trials = 9, .step = 0.2f,
        .factor = 1.033f,
    };
    encoded all = encode_all(&type, x, q, b);
    (void)mean_square;
    for (unsigned g = 0; g < 64; g++) {
        b[2 + g] = (uint8_t)all.index[g];
        b[66 + g / 8] |= (uint8_t)(all.index[g] >> 8 << g % 8);
    }
    memcpy(b + 74, all.signs, 32);
    put_scales(&all, 8, b + 106);
}

ENCODE_EACH(iq2_xxs, 256, 66)
ENCODE_EACH(iq2_xs, 256, 74)
ENCODE_EACH(iq2_s, 256, 82)
ENCODE_EACH(iq3_xxs, 256, 98)
ENCODE_EACH(iq3_s, 256, 110)

void tn_block_kernels_init_encode_grid(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_IQ2_XXS] = iq2_xxs;
    k->encode[TN_BLOCK_IQ2_XS] = iq2_xs;
    k->encode[TN_BLOCK_IQ2_S] = iq2_s;
    k->encode[TN_BLOCK_IQ3_XXS] = iq3_xxs;
    k->encode[TN_BLOCK_IQ3_S] = iq3_s;
}
