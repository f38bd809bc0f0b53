/* kernels/blocks/neighbours.c - which points of a grid are near a vector of levels that is not in it.
 *
 * Near are all points of the few least distances.  They are found once, when the first tensor needs them. */
#include "kernels/blocks/neighbours.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

typedef struct grid {
    const uint16_t *point;
    unsigned points, levels;
    unsigned group, bits;       /* levels of a point, bits of each */
    unsigned distances;         /* so many different ones are near */
} grid;

enum { MOST_POINTS = 2048 };    /* no distance is above 4 * 49 */

static unsigned level_of(const grid *g, unsigned vector, unsigned i)
{
    return vector >> g->bits * i & ((1u << g->bits) - 1);
}

static bool has_levels(const grid *g, unsigned vector)
{
    bool has = true;
    for (unsigned i = 0; i < g->group; i++)
        has &= level_of(g, vector, i) < g->levels;
    return has;
}

/* The squared distance of each point along each dimension, from each level. */
typedef struct squares {
    uint8_t of[8][8][MOST_POINTS];
} squares;

static void set_squares(const grid *g, squares *s)
{
    for (unsigned i = 0; i < g->group; i++)
        for (unsigned level = 0; level < g->levels; level++)
            for (unsigned k = 0; k < g->points; k++) {
                int d = (int)level_of(g, g->point[k], i) - (int)level;
                s->of[i][level][k] = (uint8_t)(d * d);
            }
}

/* The least distance that is not below `from`. */
static unsigned next_distance(const uint8_t *far, unsigned n, unsigned from)
{
    uint8_t least = UINT8_MAX;
    for (unsigned k = 0; k < n; k++) {
        uint8_t above = (uint8_t)(far[k] - from);       /* nearer ones wrap around */
        least = above < least ? above : least;
    }
    return from + least;
}

/* Appends the points near a vector, by distance and then by number. */
static void put_near(const grid *g, const squares *s, unsigned vector, tn_buf *list)
{
    uint8_t far[MOST_POINTS];
    uint16_t found[MOST_POINTS], last = 0;
    unsigned limit = 0, n = 0;
    memset(far, 0, sizeof far);
    for (unsigned i = 0; i < g->group; i++) {
        const uint8_t *own = s->of[i][level_of(g, vector, i)];
        for (unsigned k = 0; k < g->points; k++)
            far[k] = (uint8_t)(far[k] + own[k]);
    }
    for (unsigned t = 0; t < g->distances; t++)
        limit = next_distance(far, g->points, limit) + 1;
    for (unsigned k = 0; k < g->points; k++) {
        found[n] = (uint16_t)k;
        n += far[k] < limit;
    }
    uint16_t count = (uint16_t)n;
    tn_buf_put(list, &count, sizeof count);
    for (unsigned distance = 0; distance < limit; distance++)
        for (unsigned k = 0; k < n; k++)
            if (far[found[k]] == distance) {
                last = g->point[found[k]];
                tn_buf_put(list, &last, sizeof last);
            }
    for (; n % TN_NEAR_PAD; n++)
        tn_buf_put(list, &last, sizeof last);
}

static bool fill(const grid *g, tn_neighbours *t)
{
    unsigned vectors = 1u << g->bits * g->group;
    tn_buf list = { 0 };
    int32_t *number = malloc(vectors * sizeof *number);
    squares *s = malloc(sizeof *s);
    for (unsigned v = 0; v < vectors && number; v++)
        number[v] = -1;
    for (unsigned k = 0; k < g->points && number; k++)
        number[g->point[k]] = (int32_t)k;
    if (s)
        set_squares(g, s);
    for (unsigned v = 0; v < vectors && number && s && !list.bad; v++)
        if (number[v] < 0 && has_levels(g, v)) {
            number[v] = -1 - (int32_t)(list.size / sizeof(uint16_t));
            put_near(g, s, v, &list);
        }
    bool done = number && s && !list.bad;
    free(s);
    if (!done) {
        free(number);
        tn_buf_free(&list);
        return false;
    }
    *t = (tn_neighbours){ number, (uint16_t *)(void *)list.data };
    return true;
}

/* ---- of each type ---- */

static const grid grids[] = {
    { tn_grid_iq2_xxs, 256, 3, 8, 2, 2 }, { tn_grid_iq2_xs, 512, 3, 8, 2, 2 },
    { tn_grid_iq2_s, 1024, 3, 8, 2, 1 }, { tn_grid_iq3_xxs, 256, 8, 4, 3, 2 },
    { tn_grid_iq3_s, 512, 8, 4, 3, 3 }, { tn_grid_iq1, 2048, 3, 8, 2, 3 },
};
enum { GRIDS = sizeof grids / sizeof *grids };

static tn_neighbours   known[GRIDS];
static atomic_bool     is_known[GRIDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned grid_of(tn_block block)
{
    static const tn_block first[GRIDS] = { TN_BLOCK_IQ2_XXS, TN_BLOCK_IQ2_XS, TN_BLOCK_IQ2_S,
                                           TN_BLOCK_IQ3_XXS, TN_BLOCK_IQ3_S, TN_BLOCK_IQ1_S };
    unsigned i = 0;
    while (i < GRIDS && first[i] != block && !(block == TN_BLOCK_IQ1_M && first[i] == TN_BLOCK_IQ1_S))
        i++;
    return i;
}

bool tn_block_prepare(tn_block block)
{
    unsigned i = grid_of(block);
    if (i == GRIDS || atomic_load_explicit(&is_known[i], memory_order_acquire))
        return true;
    pthread_mutex_lock(&lock);
    bool done = is_known[i] || fill(&grids[i], &known[i]);
    atomic_store_explicit(&is_known[i], done, memory_order_release);
    pthread_mutex_unlock(&lock);
    return done;
}

const tn_neighbours *tn_neighbours_of(tn_block block) { return &known[grid_of(block)]; }
