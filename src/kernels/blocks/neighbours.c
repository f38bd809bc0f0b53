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

enum { MOST_POINTS = 2048, MOST_DISTANCE = 4 * 49 };

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

static unsigned distance(const grid *g, unsigned a, unsigned b)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < g->group; i++) {
        int d = (int)level_of(g, a, i) - (int)level_of(g, b, i);
        sum += (unsigned)(d * d);
    }
    return sum;
}

/* Appends the points near a vector, by distance and then by number. */
static void put_near(const grid *g, unsigned vector, tn_buf *list)
{
    uint16_t count[MOST_DISTANCE + 1] = { 0 }, far[MOST_POINTS], n = 0;
    for (unsigned k = 0; k < g->points; k++)
        count[far[k] = (uint16_t)distance(g, vector, g->point[k])]++;
    unsigned least = 0, end = 0;
    for (unsigned found = 0; found < g->distances; end++) {
        found += count[end] > 0;
        n = (uint16_t)(n + count[end]);
    }
    tn_buf_put(list, &n, sizeof n);
    for (; least < end; least++)
        for (uint16_t k = 0; k < g->points && count[least]; k++)
            if (far[k] == least)
                tn_buf_put(list, &k, sizeof k);
}

static bool fill(const grid *g, tn_neighbours *t)
{
    unsigned vectors = 1u << g->bits * g->group;
    tn_buf list = { 0 };
    int32_t *number = malloc(vectors * sizeof *number);
    for (unsigned v = 0; v < vectors && number; v++)
        number[v] = -1;
    for (unsigned k = 0; k < g->points && number; k++)
        number[g->point[k]] = (int32_t)k;
    for (unsigned v = 0; v < vectors && number && !list.bad; v++)
        if (number[v] < 0 && has_levels(g, v)) {
            number[v] = -1 - (int32_t)(list.size / sizeof(uint16_t));
            put_near(g, v, &list);
        }
    if (!number || list.bad) {
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
