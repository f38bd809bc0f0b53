/* kernels/blocks/encode_iq1.c - encoding iq1_s and iq1_m: the definition. */
#include "kernels/blocks/encode_iq1.h"

/* Insertion keeps the order of values that are equal. */
static void sort(iq1_state *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        unsigned k = i;
        for (; k > 0 && s->x[s->order[k - 1]] > s->x[i]; k--)
            s->order[k] = s->order[k - 1];
        s->order[k] = (uint8_t)i;
    }
}

static float error_of(const iq1_state *s, unsigned at, unsigned point)
{
    float error = 0;
    for (unsigned i = at; i < at + 8; i++) {
        float e = s->scale * iq1_levels_at(s, i)[point >> 2 * (i - at) & 3] - s->x[i];
        error += s->w[i] * e * e;
    }
    return error;
}

static uint16_t nearest_point(iq1_state *s, unsigned group, const uint16_t *list)
{
    float least = FLT_MAX;
    uint16_t point = list[1];
    for (unsigned k = 1; k <= list[0]; k++) {
        float error = error_of(s, 8 * group, list[k]);
        if (error < least) {
            least = error;
            point = list[k];
        }
    }
    s->is_lost |= least == FLT_MAX;
    return point;
}

/* Where a point is only near, the scale is found anew. */
static void refit_scale(iq1_state *s)
{
    float A = 0, B = 0;
    for (unsigned e = 0; e < s->n; e++) {
        float v = iq1_value(s, e);
        A += s->w[e] * v * s->x[e];
        B += s->w[e] * v * v;
    }
    if (A > 0 && B > 0)
        s->scale = A / B;
}

static void take_points(iq1_state *s)
{
    const tn_neighbours *near_by = tn_neighbours_of(TN_BLOCK_IQ1_S);
    bool all = true;
    for (unsigned g = 0; g < s->n / 8; g++) {
        unsigned u = iq1_vector(s, g);
        int32_t known = near_by->number[u];
        s->point[g] = known >= 0 ? (uint16_t)u : nearest_point(s, g, near_by->list + (-1 - known));
        all &= known >= 0;
    }
    if (!all)
        refit_scale(s);
}

/* Sums of sorted values serve all cuts. */
iq1_cut tn_cut_alike(iq1_state *s)
{
    float X[IQ1_MOST + 1] = { 0 }, W[IQ1_MOST + 1] = { 0 };
    iq1_cut c = { -FLT_MAX, -1, -1 };
    unsigned n = s->n;
    for (unsigned j = 0; j < n; j++) {
        unsigned e = s->order[j];
        X[j + 1] = X[j] + s->w[e] * s->x[e];
        W[j + 1] = W[j] + s->w[e];
    }
    for (unsigned i = 0; i <= n; i++)
        for (unsigned k = i; k <= n; k++)
            for (unsigned kind = 0; kind < 4; kind += 3)
                take_trial(s, &c, try_alike(X, W, kind, i, k));
    return c;
}

iq1_cut tn_cut_by_halves(iq1_state *s)
{
    iq1_cut c = { -FLT_MAX, -1, -1 };
    for (unsigned i = 0; i <= s->n; i++)
        for (unsigned k = i; k <= s->n; k++)
            for (unsigned kind = 0; kind < 4; kind++)
                take_trial(s, &c, try_by_halves(s, kind, i, k));
    return c;
}

static void encode_sub_block(iq1_state *s, float tiny, iq1_cut (*cut_values)(iq1_state *))
{
    if (fabsf(first_largest(s->x, s->n)) < tiny)
        return;
    sort(s);
    iq1_cut c = cut_values(s);
    if (c.first < 0)
        return;
    set_levels(s, (unsigned)c.first, (unsigned)c.second);
    take_points(s);
    end_iq1(s);
}

static void iq1_s_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    iq1_state s[8];
    mean_square = 2 * sum_squares(x, IQ1_SUPER) / IQ1_SUPER;
    for (unsigned k = 0; k < 8; k++) {
        begin_iq1(&s[k], x + 32 * k, 32, q ? q + 32 * k : NULL, mean_square);
        encode_sub_block(&s[k], 1e-12f, tn_cut_alike);
    }
    put_iq1_s_block(s, b);
}

/* The scale with the least error of all values, once the codes are known. */
static float refit_all(const iq1_state *subs, const unsigned *code, float d)
{
    float A = 0, B = 0;
    for (unsigned k = 0; k < 16; k++)
        for (unsigned e = 0; e < 16; e++) {
            const iq1_state *s = &subs[k];
            float q = iq1_value(s, e) * (float)(2 * code[k] + 1);
            A += s->w[e] * q * s->x[e];
            B += s->w[e] * q * q;
        }
    return B > 0 ? A / B : d;
}

static void iq1_m_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    iq1_state s[16];
    unsigned code[16];
    mean_square = 2 * sum_squares(x, IQ1_SUPER) / IQ1_SUPER;
    for (unsigned k = 0; k < 16; k++) {
        begin_iq1(&s[k], x + 16 * k, 16, q ? q + 16 * k : NULL, mean_square);
        encode_sub_block(&s[k], 1e-7f, tn_cut_by_halves);
    }
    float most = put_iq1_m_points(s, code, b);
    float d = most < INFINITY ? refit_all(s, code, most / 15) : most;
    if (most != 0)
        put_iq1_m_scales(s, code, d, b);
}

ENCODE_EACH(iq1_s, 256, 50)
ENCODE_EACH(iq1_m, 256, 56)

void tn_block_kernels_init_encode_iq1(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_IQ1_S] = iq1_s;
    k->encode[TN_BLOCK_IQ1_M] = iq1_m;
}
