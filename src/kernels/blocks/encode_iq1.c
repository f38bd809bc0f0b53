/* kernels/blocks/encode_iq1.c - encoding iq1_s and iq1_m: the definition.
 *
 * Values of a sub-block are sorted.  The lowest become level 0, those in the middle 1, the highest 2: all
 * ways to cut them are tried, with levels moved up and moved down by an eighth. */
#include "kernels/blocks/encode.h"
#include "kernels/blocks/neighbours.h"

#include <float.h>

enum { VALUES = 256, MOST = 32 };

static const float upper[3] = { -0.875f, 0.125f, 1.125f }, lower[3] = { -1.125f, -0.125f, 0.875f };

/* A sub-block of n values. */
typedef struct state {
    const float *x;
    unsigned n;
    float    w[MOST];
    uint8_t  order[MOST];       /* places of the values, lowest first */
    uint8_t  level[MOST];
    unsigned index[4];          /* points of its groups of 8 */
    unsigned kind;              /* bit 1: the first half is lower; bit 0: the second is */
    float    scale;
} state;

/* Insertion keeps the order of values that are equal. */
static void sort(state *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        unsigned k = i;
        for (; k > 0 && s->x[s->order[k - 1]] > s->x[i]; k--)
            s->order[k] = s->order[k - 1];
        s->order[k] = (uint8_t)i;
    }
}

/* The levels of a half, 0 or 1, of a kind. */
static const float *levels_of(unsigned kind, unsigned half)
{
    return kind >> (1 - half) & 1 ? lower : upper;
}

static const float *levels_at(const state *s, unsigned e) { return levels_of(s->kind, 2 * e / s->n); }

static void set_levels(state *s, unsigned first, unsigned second)
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

static float error_of(const state *s, unsigned at, unsigned point)
{
    float error = 0;
    for (unsigned i = at; i < at + 8; i++) {
        float e = s->scale * levels_at(s, i)[point >> 2 * (i - at) & 3] - s->x[i];
        error += s->w[i] * e * e;
    }
    return error;
}

/* False: the levels of the group are not in the grid; a point near them is taken. */
static bool snap(state *s, const tn_neighbours *near_by, unsigned group)
{
    unsigned u = 0, at = 8 * group;
    for (unsigned i = 0; i < 8; i++)
        u |= (unsigned)s->level[at + i] << 2 * i;
    int32_t number = near_by->number[u];
    s->index[group] = (unsigned)number;
    if (number >= 0)
        return true;
    const uint16_t *list = near_by->list + (-1 - number);
    float least = INFINITY;
    s->index[group] = list[1];
    for (unsigned k = 1; k <= list[0]; k++) {
        float error = error_of(s, at, tn_grid_iq1[list[k]]);
        if (error < least) {
            least = error;
            s->index[group] = list[k];
        }
    }
    return false;
}

/* The points of all groups; where one is only near, the scale is found anew. */
static void take_points(state *s, const tn_neighbours *near_by)
{
    bool all = true;
    float A = 0, B = 0;
    for (unsigned g = 0; g < s->n / 8; g++)
        all &= snap(s, near_by, g);
    for (unsigned e = 0; e < s->n && !all; e++) {
        float v = levels_at(s, e)[tn_grid_iq1[s->index[e / 8]] >> 2 * (e % 8) & 3];
        A += s->w[e] * v * s->x[e];
        B += s->w[e] * v * v;
    }
    if (!all && A > 0 && B > 0)
        s->scale = A / B;
}

static float largest(const float *x, unsigned n) { return fabsf(first_largest(x, n)); }

/* ---- cuts ---- */

typedef struct cut_found {
    float    best;
    int      first, second;     /* below 0: none */
} cut_found;

static void compare(state *s, cut_found *c, float A, float B, unsigned kind, unsigned i, unsigned k)
{
    if (!(B > 0 && A * A > c->best * B))
        return;
    s->scale = A / B;
    s->kind = kind;
    *c = (cut_found){ s->scale * A, (int)i, (int)k };
}

/* The levels of all values are moved the same way: sums of sorted values serve all cuts. */
static cut_found cut_alike(state *s)
{
    float X[MOST + 1] = { 0 }, W[MOST + 1] = { 0 };
    cut_found c = { -FLT_MAX, -1, -1 };
    unsigned n = s->n;
    for (unsigned j = 0; j < n; j++) {
        unsigned e = s->order[j];
        X[j + 1] = X[j] + s->w[e] * s->x[e];
        W[j + 1] = W[j] + s->w[e];
    }
    for (unsigned i = 0; i <= n; i++)
        for (unsigned k = i; k <= n; k++)
            for (unsigned kind = 0; kind < 4; kind += 3) {
                const float *v = levels_of(kind, 0);
                float A = (X[i] - X[0]) * v[0] + (X[k] - X[i]) * v[1] + (X[n] - X[k]) * v[2];
                float B = (W[i] - W[0]) * v[0] * v[0] + (W[k] - W[i]) * v[1] * v[1] +
                          (W[n] - W[k]) * v[2] * v[2];
                compare(s, &c, A, B, kind, i, k);
            }
    return c;
}

/* The levels of each half are moved by themselves. */
static cut_found cut_by_halves(state *s)
{
    cut_found c = { -FLT_MAX, -1, -1 };
    for (unsigned i = 0; i <= s->n; i++)
        for (unsigned k = i; k <= s->n; k++) {
            float A[4] = { 0 }, B[4] = { 0 };
            for (unsigned j = 0; j < s->n; j++) {
                unsigned e = s->order[j];
                int level = (j >= i) + (j >= k);
                for (unsigned kind = 0; kind < 4; kind++) {
                    float v = levels_of(kind, e / 8)[level];
                    A[kind] += s->w[e] * v * s->x[e];
                    B[kind] += s->w[e] * v * v;
                }
            }
            for (unsigned kind = 0; kind < 4; kind++)
                compare(s, &c, A[kind], B[kind], kind, i, k);
        }
    return c;
}

/* A sub-block of which all is 0 has scale, kind and indices 0. */
static void encode_sub_block(state *s, float tiny, cut_found (*cut_values)(state *))
{
    memset(s->index, 0, sizeof s->index);
    s->scale = 0;
    s->kind = 0;
    if (largest(s->x, s->n) < tiny)
        return;
    sort(s);
    cut_found c = cut_values(s);
    if (c.first < 0)
        return;
    set_levels(s, (unsigned)c.first, (unsigned)c.second);
    take_points(s, tn_neighbours_of(TN_BLOCK_IQ1_S));
}

/* ---- super-blocks ---- */

static void weigh_values(state *s, const float *q, float mean_square)
{
    for (unsigned e = 0; e < s->n && !q; e++)
        s->w[e] = s->x[e] * s->x[e];
    if (q)
        weigh(s->x, q, mean_square, s->n, s->w);
}

static unsigned scale_code(float d, float scale)
{
    return (unsigned)clamp(near(0.5f * (1 / d * scale - 1)), 0, 7);
}

static void iq1_s_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float scale[8], most = 0;
    unsigned high[8], kind[8];
    mean_square = 2 * sum_squares(x, VALUES) / VALUES;
    memset(b, 0, 50);
    for (unsigned k = 0; k < 8; k++) {
        state s = { .x = x + 32 * k, .n = 32 };
        weigh_values(&s, q ? q + 32 * k : NULL, mean_square);
        encode_sub_block(&s, 1e-12f, cut_alike);
        scale[k] = s.scale;
        most = s.scale > most ? s.scale : most;
        kind[k] = s.kind;
        high[k] = 0;
        for (unsigned g = 0; g < 4; g++) {
            b[2 + 4 * k + g] = (uint8_t)s.index[g];
            high[k] |= s.index[g] >> 8 << 3 * g;
        }
        put16(b + 34 + 2 * k, high[k]);
    }
    float d = most / 15;
    put_half(b, d * 1.125f);
    for (unsigned k = 0; k < 8 && most != 0; k++)       /* else the points stay as they are */
        put16(b + 34 + 2 * k, high[k] | scale_code(d, scale[k]) << 12 | (kind[k] ? 0x8000 : 0));
}

/* The scale with the least error of all values, once the codes are known. */
static float refit(const state *subs, const unsigned *code, float d)
{
    float A = 0, B = 0;
    for (unsigned k = 0; k < 16; k++)
        for (unsigned e = 0; e < 16; e++) {
            const state *s = &subs[k];
            float v = levels_at(s, e)[tn_grid_iq1[s->index[e / 8]] >> 2 * (e % 8) & 3];
            float q = v * (float)(2 * code[k] + 1);
            A += s->w[e] * q * s->x[e];
            B += s->w[e] * q * q;
        }
    return B > 0 ? A / B : d;
}

static void iq1_m_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    state subs[16];
    unsigned code[16], words[4] = { 0 };
    float most = 0;
    mean_square = 2 * sum_squares(x, VALUES) / VALUES;
    memset(b, 0, 56);
    for (unsigned k = 0; k < 16; k++) {
        subs[k] = (state){ .x = x + 16 * k, .n = 16 };
        weigh_values(&subs[k], q ? q + 16 * k : NULL, mean_square);
        encode_sub_block(&subs[k], 1e-7f, cut_by_halves);
        most = subs[k].scale > most ? subs[k].scale : most;
        b[2 * k] = (uint8_t)subs[k].index[0];
        b[2 * k + 1] = (uint8_t)subs[k].index[1];
        b[32 + k] = (uint8_t)(subs[k].index[0] >> 8 | subs[k].index[1] >> 8 << 4);
    }
    if (most == 0)              /* the points stay as they are */
        return;
    for (unsigned k = 0; k < 16; k++) {
        code[k] = scale_code(most / 15, subs[k].scale);
        words[k / 4] |= code[k] << 3 * (k % 4);
        b[32 + k] |= (uint8_t)((subs[k].kind >> 1) << 3 | (subs[k].kind & 1) << 7);
    }
    uint32_t half = half_of(refit(subs, code, most / 15) * 1.1125f);
    for (unsigned i = 0; i < 4; i++)
        put16(b + 48 + 2 * i, words[i] | (half >> 4 * i & 15) << 12);
}

ENCODE_EACH(iq1_s, 256, 50)
ENCODE_EACH(iq1_m, 256, 56)

void tn_block_kernels_init_encode_iq1(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_IQ1_S] = iq1_s;
    k->encode[TN_BLOCK_IQ1_M] = iq1_m;
}
