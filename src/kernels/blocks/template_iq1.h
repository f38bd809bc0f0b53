/* kernels/blocks/template_iq1.h - encodes iq1_s and iq1_m.
 *
 * For a first place of a cut the second places are in lanes.  The definition takes a cut if A * A > best * B,
 * and then best = A / B * A, one after the other.  If the largest A / B * A of all is larger than the others
 * by more than these operations round, it is the one that is taken last, and the order does not matter.
 * Else the cuts are compared in order. */
#include "kernels/blocks/encode_iq1.h"

/* How many values are lower, or equal and before: the place of each value. */
INLINE void sort_values(iq1_state *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        vf own = every_f(s->x[i]);
        uint32_t lower = 0, equal = 0;
        for (unsigned e = 0; e < s->n; e += LANES) {
            lower |= lane_bits(above(own, floats(s->x + e))) << e;
            equal |= lane_bits(same(own, floats(s->x + e))) << e;
        }
        s->order[__builtin_popcount(lower | (equal & ((UINT32_C(1) << i) - 1)))] = (uint8_t)i;
    }
}

/* The two largest A / B * A of each lane, and where the first was: the number of its vector. */
typedef struct iq1_leaders {
    vf best, second;
    vi where;
} iq1_leaders;

/* Cuts from number `at` on; B is 0 where there is none. */
INLINE void lead(iq1_leaders *d, vf A, vf B, unsigned at)
{
    vf score = pick(above(B, (vf){ 0 }), A / B * A, every_f(-1));
    vm more = above(score, d->best);
    d->second = most_f(least_f(score, d->best), d->second);
    d->best = most_f(score, d->best);
    d->where = (vi)pick(more, (vf)((vi){ 0 } + (int32_t)at), (vf)d->where);
}

/* The number of the cut that is taken last; false: that is not certain.  `size` is the sum of the weights. */
INLINE bool find_leader(const iq1_leaders *d, float size, unsigned *where)
{
    float best[LANES], second[LANES], most = 0, next = 0;
    unsigned lane = 0;
    put_floats(best, d->best);
    put_floats(second, d->second);
    for (unsigned r = 0; r < LANES; r++)
        if (best[r] > most) {
            most = best[r];
            lane = r;
        }
    for (unsigned r = 0; r < LANES; r++) {
        float own = r == lane ? second[r] : best[r];
        next = own > next ? own : next;
    }
    *where = (unsigned)d->where[lane] + lane;
    /* B is a part of the size that is not small, so that nothing is near the ends of float32's range */
    bool is_usual = size > 0x1p-40f && size < 0x1p40f && most > 0x1p-60f && most < 0x1p60f;
    return is_usual && next < most - most * 0x1p-20f;
}

/* ---- iq1_s ---- */

/* 0, 1, 2 ... */
INLINE vf lane_numbers(void)
{
    vf v;
    for (unsigned r = 0; r < LANES; r++)
        v[r] = (float)r;
    return v;
}

/* Sums of sorted values, from the lowest on. */
typedef struct iq1_sums {
    float X[IQ1_MOST + 1 + LANES], W[IQ1_MOST + 1 + LANES];
} iq1_sums;

INLINE vf sum_of_cut(const float *S, unsigned i, unsigned k, unsigned n, const float *v, bool squared)
{
    vf at = floats(S + k), first = every_f(S[i] - S[0]) * v[0];
    vf middle = (at - S[i]) * v[1], last = (S[n] - at) * v[2];
    return squared ? first * v[0] + middle * v[1] + last * v[2] : first + middle + last;
}

/* Numbers of cuts are 256 first + 128 (kind > 0) + second. */
static iq1_cut cut_all_alike(iq1_state *s)
{
    enum { n = 32 };
    iq1_sums u = { .X = { 0 } };
    iq1_leaders d = { every_f(-1), every_f(-1), { 0 } };
    for (unsigned j = 0; j < n; j++) {
        unsigned e = s->order[j];
        u.X[j + 1] = u.X[j] + s->w[e] * s->x[e];
        u.W[j + 1] = u.W[j] + s->w[e];
    }
    for (unsigned i = 0; i <= n; i++)
        for (unsigned k = i; k <= n; k += LANES)
            for (unsigned kind = 0; kind < 4; kind += 3) {
                vf A = sum_of_cut(u.X, i, k, n, iq1_levels_of(kind, 0), false);
                vf B = sum_of_cut(u.W, i, k, n, iq1_levels_of(kind, 0), true);
                if (k + LANES > n + 1)          /* there are no places after n */
                    B = pick(above(every_f((float)(n + 1 - k)), lane_numbers()), B, (vf){ 0 });
                lead(&d, A, B, 256 * i + (kind ? 128 : 0) + k);
            }
    unsigned where;
    if (!find_leader(&d, u.W[n], &where))
        return tn_cut_alike(s);
    iq1_trial t = { .kind = where & 128 ? 3 : 0, .first = where / 256, .second = where % 128 };
    t.A = sum_of_cut(u.X, t.first, t.second, n, iq1_levels_of(t.kind, 0), false)[0];
    t.B = sum_of_cut(u.W, t.first, t.second, n, iq1_levels_of(t.kind, 0), true)[0];
    iq1_cut c = { -FLT_MAX, -1, -1 };
    take_trial(s, &c, t);
    return c;
}

/* ---- iq1_m ---- */

enum { IQ1_M = 16, IQ1_CUTS = 160 };    /* values of a sub-block; cuts, 153 of them, in whole vectors */

/* What the value at each place adds to A and B of the four kinds, by level: A in the first half. */
static void set_terms(const iq1_state *s, eight_f (*term)[3])
{
#define FIRST(up, low) { up, up, low, low, up, up, low, low }
#define SECOND(up, low) { up, low, up, low, up, low, up, low }
    static const eight_f levels[2][3] = {
        { FIRST(-0.875f, -1.125f), FIRST(0.125f, -0.125f), FIRST(1.125f, 0.875f) },
        { SECOND(-0.875f, -1.125f), SECOND(0.125f, -0.125f), SECOND(1.125f, 0.875f) },
    };
    for (unsigned j = 0; j < IQ1_M; j++) {
        unsigned e = s->order[j];
        const eight_f w = (eight_f){ 0 } + s->w[e], x = (eight_f){ 0 } + s->x[e];
        for (unsigned level = 0; level < 3; level++) {
            eight_f v = levels[e >= 8][level];
            term[j][level] = w * v * __builtin_shufflevector(x, v, 0, 1, 2, 3, 12, 13, 14, 15);
        }
    }
}

/* The sums of all cuts, of four kinds each: (0, 0), (0, 1), (1, 1), (0, 2) and so on. */
typedef float four_f __attribute__((vector_size(16)));
typedef struct iq1_table {
    four_f A[IQ1_CUTS], B[IQ1_CUTS];
} iq1_table;

INLINE void put_cut(iq1_table *t, unsigned n, eight_f sums)
{
    t->A[n] = __builtin_shufflevector(sums, sums, 0, 1, 2, 3);
    t->B[n] = __builtin_shufflevector(sums, sums, 4, 5, 6, 7);
}

/* Cuts with the same second place have the same terms after it. */
static void sum_cuts(const iq1_state *s, iq1_table *t)
{
    enum { SOME = 6 };          /* side by side: an addition waits for the one before it */
    eight_f term[IQ1_M][3], sum[IQ1_M + 1 + SOME] = { { 0 } };
    eight_f before = { 0 };     /* values before the first place */
    unsigned n = 0;
    set_terms(s, term);
    for (unsigned k = 0; k <= IQ1_M; k++) {
        sum[k] = before;
        before += term[k < IQ1_M ? k : 0][0];
        for (unsigned i = 0; i <= k; i += SOME) {
            eight_f all[SOME];
            for (unsigned c = 0; c < SOME; c++)
                all[c] = sum[i + c];
            for (unsigned j = k; j < IQ1_M; j++)
                for (unsigned c = 0; c < SOME; c++)
                    all[c] += term[j][2];
            for (unsigned c = 0; c < SOME; c++)         /* those after place k are put over */
                put_cut(t, n + c, all[c]);
            n += k + 1 - i < SOME ? k + 1 - i : SOME;
        }
        for (unsigned i = 0; i <= k && k < IQ1_M; i++)
            sum[i] += term[k][1];
    }
    for (; n < IQ1_CUTS; n++)
        t->A[n] = t->B[n] = (four_f){ 0 };
}

static iq1_cut cut_all_by_halves(iq1_state *s)
{
    iq1_table t;
    iq1_leaders d = { every_f(-1), every_f(-1), { 0 } };
    float size = 0;
    sum_cuts(s, &t);
    for (unsigned at = 0; at < IQ1_CUTS * 4; at += LANES)
        lead(&d, floats((const float *)t.A + at), floats((const float *)t.B + at), at);
    for (unsigned e = 0; e < IQ1_M; e++)
        size += s->w[e];
    unsigned where;
    if (!find_leader(&d, size, &where))
        return tn_cut_by_halves(s);
    iq1_trial best = { t.A[where / 4][where % 4], t.B[where / 4][where % 4], where % 4, where / 4, 0 };
    while (best.first > best.second)
        best.first -= ++best.second;
    iq1_cut c = { -FLT_MAX, -1, -1 };
    take_trial(s, &c, best);
    return c;
}

/* ---- points ---- */

static uint16_t nearest_iq1_point(iq1_state *s, unsigned group, const uint16_t *list)
{
    costs c;
    for (unsigned i = 0; i < 8; i++) {
        unsigned at = 8 * group + i;
        const float *levels = iq1_levels_at(s, at);
        for (unsigned level = 0; level < 3; level++) {
            float e = s->scale * levels[level] - s->x[at];
            c.of[4 * i + level] = s->w[at] * e * e;
        }
        c.of[4 * i + 3] = 0;
    }
    return nearest_point(list, &c, 2, &s->is_lost);
}

INLINE void encode_iq1(iq1_state *s, iq1_cut (*cut_values)(iq1_state *))
{
    sort_values(s);
    iq1_cut c = cut_values(s);
    if (c.first < 0)
        return;
    set_levels(s, (unsigned)c.first, (unsigned)c.second);
    take_points(s, nearest_iq1_point);
}

static void encode_iq1_s(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    for (size_t i = 0; i < n; i++, x += IQ1_SUPER, b += 50) {
        iq1_state s[8];
        mean_square = 2 * sum_squares(x, IQ1_SUPER) / IQ1_SUPER;
        for (unsigned k = 0; k < 8; k++)
            if (begin_iq1(&s[k], x + 32 * k, 32, q ? q + i * IQ1_SUPER + 32 * k : NULL, mean_square, 1e-12f))
                encode_iq1(&s[k], cut_all_alike);
        put_iq1_s_block(s, b);
    }
}

static void encode_iq1_m(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    for (size_t i = 0; i < n; i++, x += IQ1_SUPER, b += 56) {
        iq1_state s[16];
        mean_square = 2 * sum_squares(x, IQ1_SUPER) / IQ1_SUPER;
        for (unsigned k = 0; k < 16; k++)
            if (begin_iq1(&s[k], x + 16 * k, 16, q ? q + i * IQ1_SUPER + 16 * k : NULL, mean_square, 1e-7f))
                encode_iq1(&s[k], cut_all_by_halves);
        put_iq1_m_block(s, b);
    }
}
