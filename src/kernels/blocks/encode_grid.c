/* kernels/blocks/encode_grid.c - encoding iq2 and iq3: the definition. */
#include "kernels/blocks/encode_grid.h"

/* ---- points ---- */

static unsigned level_of(const grid_type *t, unsigned point, unsigned i)
{
    return point >> t->bits * i & ((1u << t->bits) - 1);
}

static float error_of(const grid_type *t, const grid_state *s, unsigned at, unsigned point, float scale)
{
    float error = 0;
    for (unsigned i = 0; i < t->group; i++) {
        float q = (float)(2 * level_of(t, point, i) + 1), e = scale * q - s->x[at + i];
        error += s->root[at + i] * e * e;
    }
    return error;
}

/* The point for values from `at` on; false: their levels are not in the grid, and the point is near. */
static bool snap(const grid_type *t, grid_state *s, unsigned at, float inverse_scale, float scale,
                 uint16_t *point)
{
    unsigned u = 0;
    for (unsigned i = 0; i < t->group; i++) {
        int level = near(0.5f * (inverse_scale * s->x[at + i] - 1));
        u |= (unsigned)clamp(level, 0, t->levels - 1) << t->bits * i;
    }
    int32_t number = s->near->number[u];
    *point = (uint16_t)u;
    if (number >= 0)
        return true;
    const uint16_t *list = s->near->list + (-1 - number);
    float least = FLT_MAX;
    *point = list[1];
    for (unsigned k = 1; k <= list[0]; k++) {
        float error = error_of(t, s, at, list[k], scale);
        if (error < least) {
            least = error;
            *point = list[k];
        }
    }
    s->is_lost |= least == FLT_MAX;
    return false;
}

static void sum_up(const grid_type *t, const grid_state *s, const uint16_t *point, float *A, float *B)
{
    *A = *B = 0;
    for (unsigned e = 0; e < t->size; e++) {
        float q = (float)(2 * level_of(t, point[e / t->group], e % t->group) + 1);
        *A += s->w[e] * s->x[e] * q;
        *B += s->w[e] * q * q;
    }
}

/* ---- a sub-block ---- */

static void try_scales(const grid_type *t, grid_state *s)
{
    float best = 0;
    for (int k = -t->trials; k <= t->trials; k++) {
        uint16_t point[GRID_GROUPS];
        bool on_grid[GRID_GROUPS];
        float A, B, inverse_scale = inverse_of_trial(t, s, k);
        for (unsigned g = 0; g < t->size / t->group; g++)
            on_grid[g] = snap(t, s, g * t->group, inverse_scale, 1 / inverse_scale, &point[g]);
        sum_up(t, s, point, &A, &B);
        if (B > 0 && A * A > best * B) {
            s->scale = A / B;
            best = s->scale * A;
            memcpy(s->point, point, sizeof point);
            memcpy(s->on_grid, on_grid, sizeof on_grid);
        }
    }
}

static void improve(const grid_type *t, grid_state *s)
{
    bool all;
    float A, B;
    if (!is_improved(t, s, &all))
        return;
    for (unsigned g = 0; g < t->size / t->group; g++)
        if (all || !s->on_grid[g])
            snap(t, s, g * t->group, 1 / s->scale, s->scale, &s->point[g]);
    sum_up(t, s, s->point, &A, &B);
    if (B > 0)
        s->scale = A / B;
}

static bool encode_sub_block(const grid_type *t, grid_state *s, const float *x, const float *q,
                             float mean_square)
{
    uint8_t codes[GRID_MOST];
    if (!begin_sub_block(t, s, x, q, mean_square))
        return false;
    if (t->by_search && !take_scale(t, s, tn_search_positive(s->x, s->w, t->size, t->levels + 1, codes)))
        return false;
    try_scales(t, s);
    improve(t, s);
    end_sub_block(t, s);
    return true;
}

/* ---- super-blocks ---- */

static grid_encoded encode_all(const grid_type *t, const float *x, const float *q, uint8_t *b)
{
    grid_encoded all;
    grid_state s = { .near = tn_neighbours_of(t->block) };
    float mean_square = t->mean_factor * sum_squares(x, GRID_SUPER) / GRID_SUPER;
    for (unsigned k = 0; k < GRID_SUPER / t->size; k++) {
        bool any = encode_sub_block(t, &s, x + k * t->size, q ? q + k * t->size : NULL, mean_square);
        keep_sub_block(t, &s, k, any, &all);
    }
    put_grid_scale(t, &all, b);
    return all;
}

#define GRID_BLOCK(name)                                                                        \
    static void name##_block(const float *x, const float *q, float mean_square, uint8_t *b)     \
    {                                                                                           \
        grid_encoded all = encode_all(&tn_grid_type_##name, x, q, b);                           \
        (void)mean_square;                                                                      \
        put_##name##_block(&all, b);                                                            \
    }

GRID_BLOCK(iq2_xxs)
GRID_BLOCK(iq2_xs)
GRID_BLOCK(iq2_s)
GRID_BLOCK(iq3_xxs)
GRID_BLOCK(iq3_s)

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
