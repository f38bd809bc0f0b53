/* kernels/blocks/template_grid.h - encodes iq2 and iq3.
 *
 * Near points are compared LANES at a time: what a level of a value costs is looked up in a table of the
 * value.  The sums of trials are those of the definition, a trial in each lane. */
#include "kernels/blocks/encode_grid.h"

enum { GRID_TRIALS = (31 + LANES - 1) / LANES * LANES };        /* the most trials, in whole vectors */

/* ---- near points ---- */

/* What each level of each value of a group costs: 8 values of 4 levels, or 4 of 8. */
typedef struct costs {
    float of[32];
} costs;

INLINE vf cost_of(const costs *c, unsigned i, vu points, unsigned bits)
{
    return bits == 2 ? look4(c->of + 4 * i, points >> 2 * i) : look8(c->of + 8 * i, points >> 3 * i);
}

/* What LANES points cost. */
INLINE vf costs_at(const uint16_t *points, const costs *c, unsigned bits)
{
    vu p = widen_points(points);
    vf cost = cost_of(c, 0, p, bits);
    for (unsigned i = 1; i < (bits == 2 ? 8 : 4); i++)
        cost += cost_of(c, i, p, bits);
    return cost;
}

/* The first point of a list that costs least; the very first, and lost, if the costs of all are infinite. */
INLINE uint16_t nearest_point(const uint16_t *list, const costs *c, unsigned bits, bool *is_lost)
{
    const vf most = every_f(FLT_MAX);
    vf cost = costs_at(list + 1, c, bits), best = pick(above(most, cost), cost, most);
    if (list[0] <= LANES) {
        vf least = least_lane(best);
        *is_lost |= least[0] == FLT_MAX;
        return list[1 + __builtin_ctz(lane_bits(same(best, least)))];
    }
    vf at = { 0 };
    for (unsigned k = LANES; k < list[0]; k += LANES) {
        cost = costs_at(list + 1 + k, c, bits);
        vm less = above(best, cost);
        best = pick(less, cost, best);
        at = pick(less, every_f((float)k), at);
    }
    vf least = least_lane(best);
    *is_lost |= least[0] == FLT_MAX;
    vf first = least_lane(pick(same(best, least), at + lane_numbers(), every_f(FLT_MAX)));
    return list[1 + (unsigned)first[0]];
}

/* ---- levels ---- */

/* The values of a sub-block as they are needed for costs. */
typedef struct grid_rows {
    eight_f x[GRID_MOST], root[GRID_MOST];      /* iq2: two values, four times each; iq3: one, eight times */
} grid_rows;

INLINE void spread_rows(const grid_type *t, const grid_state *s, grid_rows *r)
{
    for (unsigned e = 0; e < t->size && t->bits == 2; e += 2) {
        const float *x = s->x + e, *root = s->root + e;
        r->x[e / 2] = (eight_f){ x[0], x[0], x[0], x[0], x[1], x[1], x[1], x[1] };
        r->root[e / 2] = (eight_f){ root[0], root[0], root[0], root[0], root[1], root[1], root[1], root[1] };
    }
    for (unsigned e = 0; e < t->size && t->bits == 3; e++) {
        r->x[e] = (eight_f){ 0 } + s->x[e];
        r->root[e] = (eight_f){ 0 } + s->root[e];
    }
}

/* The costs of group g. */
INLINE void find_costs(const grid_rows *r, unsigned g, float scale, unsigned bits, costs *c)
{
    const eight_f twos = { 1, 3, 5, 7, 1, 3, 5, 7 }, threes = { 1, 3, 5, 7, 9, 11, 13, 15 };
    eight_f step = scale * (bits == 2 ? twos : threes);
    for (unsigned i = 0; i < 4; i++) {
        eight_f e = step - r->x[4 * g + i];
        put_eight(c->of + 8 * i, r->root[4 * g + i] * e * e);
    }
}

/* Levels of all values of a sub-block, each in a byte. */
INLINE void levels_at(const grid_type *t, const grid_state *s, float inverse_scale, uint8_t *level)
{
    eight_i v[4] = { { 0 } };
    for (unsigned k = 0; k < t->size / 8; k++) {
        eight_f u = 0.5f * (inverse_scale * eight(s->x + 8 * k) - 1);
        v[k] = ((eight_i)(u + 12582912.0f) & 0x7fffff) - 0x400000;
        v[k] = within(v[k], 0, t->levels - 1);
    }
    put_bytes(level, v);
}

/* The vector of levels of a group. */
INLINE unsigned vector_of(const uint8_t *level, unsigned bits)
{
    uint32_t w, u;
    memcpy(&w, level, sizeof w);        /* where there are these vectors, bytes are little-endian */
    if (bits == 2) {            /* the products move four levels together */
        memcpy(&u, level + 4, sizeof u);
        return w * 0x01041040 >> 24 | (u * 0x01041040 >> 24) << 8;
    }
    return (w & 7) | (w >> 5 & 0x38) | (w >> 10 & 0x1c0) | (w >> 15 & 0xe00);
}

/* ---- trials ---- */

/* Points of trials: of each group one of each trial. */
typedef struct grid_trials {
    uint16_t point[GRID_GROUPS][GRID_TRIALS];
    bool     on_grid[GRID_TRIALS][GRID_GROUPS];
    float    inverse[GRID_TRIALS], scale[GRID_TRIALS], A[GRID_TRIALS], B[GRID_TRIALS];
    bool     is_lost[GRID_GROUPS];      /* the group, in some trial */
} grid_trials;

INLINE void sum_trials(const grid_type *type, const grid_state *s, unsigned n, grid_trials *t)
{
    for (unsigned k = 0; k < n; k += LANES) {
        vf A = { 0 }, B = { 0 };
        for (unsigned g = 0; g < type->size / type->group; g++) {
            vu points = widen_points(t->point[g] + k);
            for (unsigned i = 0; i < type->group; i++, points >>= type->bits) {
                float w = s->w[g * type->group + i], wx = w * s->x[g * type->group + i];
                vf q = number((vi)((points & ((1u << type->bits) - 1)) * 2 + 1));
                A += wx * q;
                B += w * q * q;
            }
        }
        put_floats(t->A + k, A);
        put_floats(t->B + k, B);
    }
}

/* The points of all groups of n trials: first their levels, then near points where these are not in the
 * grid. */
INLINE void snap_trials(const grid_type *type, const grid_state *s, const grid_rows *r, unsigned n,
                        grid_trials *t)
{
    const unsigned groups = type->size / type->group;
    struct { uint8_t trial, group; int32_t list; } task[GRID_TRIALS * GRID_GROUPS];
    unsigned tasks = 0;
    memset(t->is_lost, 0, sizeof t->is_lost);
    for (unsigned k = 0; k < n; k++) {
        uint8_t level[GRID_MOST];
        levels_at(type, s, t->inverse[k], level);
        for (unsigned g = 0; g < groups; g++) {
            unsigned u = vector_of(level + g * type->group, type->bits);
            int32_t known = s->near->number[u];
            t->point[g][k] = (uint16_t)u;
            t->on_grid[k][g] = known >= 0;
            task[tasks].trial = (uint8_t)k;
            task[tasks].group = (uint8_t)g;
            task[tasks].list = -1 - known;
            tasks += known < 0;
        }
    }
    for (unsigned i = 0; i < tasks; i++) {
        unsigned k = task[i].trial, g = task[i].group;
        costs c;
        find_costs(r, g, t->scale[k], type->bits, &c);
        t->point[g][k] = nearest_point(s->near->list + task[i].list, &c, type->bits, &t->is_lost[g]);
    }
}

INLINE void try_all(const grid_type *type, grid_state *s, const grid_rows *r, grid_trials *t)
{
    const unsigned n = 2 * (unsigned)type->trials + 1, groups = type->size / type->group;
    float best = 0;
    for (unsigned k = 0; k < n; k++) {
        t->inverse[k] = inverse_of_trial(type, s, (int)k - type->trials);
        t->scale[k] = 1 / t->inverse[k];
    }
    snap_trials(type, s, r, n, t);
    sum_trials(type, s, n, t);
    for (unsigned g = 0; g < groups; g++)
        s->is_lost |= t->is_lost[g];
    for (unsigned k = 0; k < n; k++) {
        float A = t->A[k], B = t->B[k];
        if (!(B > 0 && A * A > best * B))
            continue;
        s->scale = A / B;
        best = s->scale * A;
        for (unsigned g = 0; g < groups; g++)
            s->point[g] = t->point[g][k];
        memcpy(s->on_grid, t->on_grid[k], sizeof s->on_grid);
    }
}

INLINE void improve_best(const grid_type *type, grid_state *s, const grid_rows *r, grid_trials *t)
{
    bool all;
    if (!is_improved(type, s, &all))
        return;
    t->scale[0] = s->scale;
    t->inverse[0] = 1 / s->scale;
    snap_trials(type, s, r, 1, t);
    for (unsigned g = 0; g < type->size / type->group; g++) {
        if (all || !s->on_grid[g]) {
            s->point[g] = t->point[g][0];
            s->is_lost |= t->is_lost[g];
        }
        t->point[g][0] = s->point[g];
    }
    sum_trials(type, s, 1, t);
    if (t->B[0] > 0)
        s->scale = t->A[0] / t->B[0];
}

/* ---- super-blocks ---- */

/* tn_search_positive() of 8 sub-blocks, for iq2_xxs. */
static void search_starts(const grid_state *s, float *scale)
{
    columns c[PAIR];
    vi codes[PAIR][SUB];
    vf found_scale[PAIR];
    for (unsigned g = 0; g < PAIR; g++) {
        const float *x[LANES], *w[LANES];
        for (unsigned r = 0; r < LANES; r++) {
            const grid_state *own = s + (g * LANES + r < 8 ? g * LANES + r : 7);
            x[r] = own->x;
            w[r] = own->w;
        }
        turn_rows(x, 32, c[g].x);
        turn_rows(w, 32, c[g].w);
    }
    search_from_0(c, 32, 4, codes, found_scale);
    for (unsigned g = 0; g < PAIR; g++)
        for (unsigned r = 0; r < LANES && g * LANES + r < 8; r++)
            scale[g * LANES + r] = found_scale[g][r];
}

INLINE grid_encoded encode_grid(const grid_type *type, const float *x, const float *q, uint8_t *b)
{
    const unsigned subs = GRID_SUPER / type->size;
    grid_encoded all;
    grid_state s[16];
    grid_rows spread;
    grid_trials trials = { .point = { { 0 } } };
    bool any_value[16];
    float start[8], mean_square = type->mean_factor * sum_squares(x, GRID_SUPER) / GRID_SUPER;
    for (unsigned k = 0; k < subs; k++) {
        const float *own_q = q ? q + k * type->size : NULL;
        s[k].near = tn_neighbours_of(type->block);
        any_value[k] = begin_sub_block(type, &s[k], x + k * type->size, own_q, mean_square);
    }
    if (type->by_search)
        search_starts(s, start);
    for (unsigned k = 0; k < subs; k++) {
        if (type->by_search && any_value[k])
            any_value[k] = take_scale(type, &s[k], start[k]);
        if (any_value[k]) {
            spread_rows(type, &s[k], &spread);
            try_all(type, &s[k], &spread, &trials);
            improve_best(type, &s[k], &spread, &trials);
            end_sub_block(type, &s[k]);
        }
        keep_sub_block(type, &s[k], k, any_value[k], &all);
    }
    put_grid_scale(type, &all, b);
    return all;
}

#define ENCODE_GRID(name, bytes)                                                                            \
    static void encode_##name(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)      \
    {                                                                                                       \
        (void)mean_square;                                                                                  \
        for (size_t i = 0; i < n; i++, x += GRID_SUPER, b += bytes) {                                       \
            grid_encoded all = encode_grid(&tn_grid_type_##name, x, q ? q + i * GRID_SUPER : NULL, b);      \
            put_##name##_block(&all, b);                                                                    \
        }                                                                                                   \
    }

ENCODE_GRID(iq2_xxs, 66)
ENCODE_GRID(iq2_xs, 74)
ENCODE_GRID(iq2_s, 82)
ENCODE_GRID(iq3_xxs, 98)
ENCODE_GRID(iq3_s, 110)
