/* kernels/blocks/template_iq1.h - encodes iq1_s and iq1_m, a sub-block in each lane.
 *
 * The definition takes a cut if A * A > best * B, and then best = A / B * A, one after the other.  Here a
 * good cut is found roughly.  A cut that is below it for certain cannot be taken last, nor decide which one
 * is.  The few others are compared in order, as the definition does. */
#include "kernels/blocks/encode_iq1.h"

/* The values of LANES sub-blocks. */
typedef struct iq1_lanes {
    vf x[IQ1_MOST], w[IQ1_MOST];
    vf place[IQ1_MOST];         /* of each value among the sorted ones */
    float sorted_x[IQ1_MOST][LANES], sorted_w[IQ1_MOST][LANES];
    float second[IQ1_MOST][LANES];      /* 1 for sorted values of the second half, 0 for those of the first */
} iq1_lanes;

/* ---- order ---- */

/* A value comes after all that are lower, and after those before it that are equal. */
INLINE void find_places(iq1_lanes *l, unsigned n)
{
    vi place[IQ1_MOST];
    for (unsigned i = 0; i < n; i++) {
        vi own = (vi){ 0 } + (int32_t)i;
        for (unsigned j = 0; j < i; j++) {
            vm lower = above(l->x[j], l->x[i]);
            own = less_in(lower, own);
            place[j] = more_in(lower, place[j]);
        }
        place[i] = own;
    }
    for (unsigned i = 0; i < n; i++)
        l->place[i] = number(place[i]);
}

INLINE void sort_lanes(iq1_lanes *l, unsigned n)
{
    find_places(l, n);
    for (unsigned i = 0; i < n; i++)
        for (unsigned r = 0; r < LANES; r++) {
            unsigned at = (unsigned)l->place[i][r];
            l->sorted_x[at][r] = l->x[i][r];
            l->sorted_w[at][r] = l->w[i][r];
            l->second[at][r] = i >= n / 2;
        }
}

/* ---- cuts ---- */

enum { IQ1_CUTS = (IQ1_MOST + 1) * (IQ1_MOST + 2) / 2 };

/* Sums of sorted values before each place: X of w x, W of w.  Levels are -1, 0 and 1, moved by an eighth, so
 * that a cut at places i and k has
 *
 *   A = A[i] - X[k]         A[i] = X[n] + moved - X[i]
 *   B = B[i] - after[k]     B[i] = whole + W[i] - part[i], after[k] = W[k] + part[k]
 *
 * where `moved`, `whole` and `part` depend on the kind. */
typedef struct iq1_sums {
    vf X[IQ1_MOST + 1], W[IQ1_MOST + 1];
    vf A[4][IQ1_MOST + 1], B[4][IQ1_MOST + 1], after[4][IQ1_MOST + 1];
    vf squares;                 /* the sum of w x x */
} iq1_sums;

/* Halves of sub-blocks of 32 values are moved alike: kinds 0 and 3. */
INLINE unsigned kind_step(unsigned n) { return n == 32 ? 3 : 1; }

/* X1, W1: those of values of the second half. */
INLINE void sum_kind(unsigned n, unsigned kind, vf X1, const vf *W1, iq1_sums *u)
{
    const float first = kind & 2 ? -0.25f : 0.25f, second = kind & 1 ? -0.25f : 0.25f;
    vf part[IQ1_MOST + 1];
    vf moved = 0.5f * (first * (u->X[n] - X1) + second * X1);
    for (unsigned j = 0; j <= n; j++) {
        part[j] = first * (u->W[j] - W1[j]) + second * W1[j];
        u->A[kind][j] = u->X[n] + moved - u->X[j];
        u->after[kind][j] = u->W[j] + part[j];
    }
    vf whole = u->after[kind][n] + u->W[n] / 64;
    for (unsigned j = 0; j <= n; j++)
        u->B[kind][j] = whole + (u->W[j] - part[j]);
}

INLINE void sum_values(const iq1_lanes *l, unsigned n, iq1_sums *u)
{
    vf W1[IQ1_MOST + 1], X1 = { 0 };
    W1[0] = u->X[0] = u->W[0] = u->squares = (vf){ 0 };
    for (unsigned j = 0; j < n; j++) {
        vf x = floats(l->sorted_x[j]), w = floats(l->sorted_w[j]), second = floats(l->second[j]), wx = w * x;
        X1 += wx * second;
        W1[j + 1] = W1[j] + w * second;
        u->X[j + 1] = u->X[j] + wx;
        u->W[j + 1] = u->W[j] + w;
        u->squares += wx * x;
    }
    for (unsigned kind = 0; kind < 4; kind += kind_step(n))
        sum_kind(n, kind, X1, W1, u);
}

/* The cut with about the largest A * A / B of each lane, whatever its kind. */
INLINE void find_large(const iq1_sums *u, unsigned n, vf *first, vf *second)
{
    vf most = { 0 };
    *first = *second = most;
    for (unsigned i = 0; i <= n; i++) {
        vf place = every_f((float)i), at = { 0 }, before = most;
        for (unsigned k = i; k <= n; k++, place += 1) {
            vf best = { 0 };
            for (unsigned kind = 0; kind < 4; kind += kind_step(n)) {
                vf A = u->A[kind][i] - u->X[k];
                best = most_f(A * A * rough_inverse(u->B[kind][i] - u->after[kind][k]), best);
            }
            at = pick(above(best, most), place, at);
            most = most_f(best, most);
        }
        vm more = above(most, before);
        *first = pick(more, every_f((float)i), *first);
        *second = pick(more, at, *second);
    }
}

/* How far A * A may be from that of the definition times the quotient of both B.
 *
 * A and B differ from those of the definition: if n is 32, where X and W are the same, by at most 16
 * roundings of the sum of w |x| and by 22 of the sum of w; if n is 16 by 75 and by 93.  With Cauchy's
 * inequality that makes 2.3 * 16 + 22 or 2.3 * 75 + 93 roundings of the sum of w x x times the sum of w;
 * computing with the numbers here adds less than 10. */
INLINE vf doubt_of(const iq1_sums *u, unsigned n)
{
    return (n == 32 ? 0x1p-17f : 0x1p-15f) * u->W[n] * u->squares;
}

/* What A * A / B of the best cut is at least. */
INLINE vf least_of_best(const iq1_sums *u, unsigned n)
{
    const vf doubt = doubt_of(u, n);
    vf first, second, most = { 0 };
    find_large(u, n, &first, &second);
    for (unsigned kind = 0; kind < 4; kind += kind_step(n)) {
        vf A, B;
        for (unsigned r = 0; r < LANES; r++) {
            unsigned i = (unsigned)first[r], k = (unsigned)second[r];
            A[r] = u->A[kind][i][r] - u->X[k][r];
            B[r] = u->B[kind][i][r] - u->after[kind][k][r];
        }
        most = most_f((A * A - doubt) / B, most);
    }
    return most;
}

/* Lanes whose numbers are all far from the ends of float32's range. */
INLINE vm usual_lanes(const iq1_sums *u, unsigned n)
{
    vf W = u->W[n], s = u->squares;
    return both(both(above(W, every_f(0x1p-40f)), above(every_f(0x1p40f), W)),
                both(above(s, every_f(0x1p-60f)), above(every_f(0x1p60f), s)));
}

/* Cuts of each lane that may be the best, in the order in which they are compared. */
enum { IQ1_NEAR = 16 };

typedef struct iq1_near {
    int32_t count[LANES];
    int32_t cut[IQ1_NEAR][LANES];       /* first place, 6 bits of the second, 2 of the kind */
} iq1_near;

/* What A * A of a cut is above `least` times B. */
INLINE vf more_than(const iq1_sums *u, vf least, unsigned kind, unsigned i, unsigned k)
{
    vf A = u->A[kind][i] - u->X[k];
    return A * A - least * (u->B[kind][i] - u->after[kind][k]);
}

/* Adds the kinds of a cut; returns the lanes that have too many. */
INLINE unsigned add_near(const iq1_sums *u, unsigned n, unsigned cut, unsigned lanes, vf least,
                         iq1_near *near_by)
{
    const vf limit = -doubt_of(u, n);
    uint64_t all = 0;
    unsigned full = 0;
    for (unsigned kind = 0; kind < 4; kind += kind_step(n)) {
        vf more = more_than(u, least, kind, cut >> 8, cut >> 2 & 63);
        all |= (uint64_t)(lane_bits(none_of(above(limit, more))) & lanes) << LANES * kind;
    }
    for (; all; all &= all - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(all), r = bit % LANES;
        if (near_by->count[r] < IQ1_NEAR)
            near_by->cut[near_by->count[r]++][r] = (int32_t)(cut | bit / LANES);
        else
            full |= 1u << r;
    }
    return full;
}

/* Returns the lanes that have too many. */
INLINE unsigned find_near(const iq1_sums *u, unsigned n, unsigned lanes, iq1_near *near_by)
{
    const vf least = least_of_best(u, n), limit = -doubt_of(u, n);
    uint16_t cut[IQ1_CUTS];
    unsigned some = 0, full = 0;
    for (unsigned i = 0; i <= n; i++)
        for (unsigned k = i; k <= n; k++) {
            vf more = more_than(u, least, 0, i, k);
            for (unsigned kind = kind_step(n); kind < 4; kind += kind_step(n))
                more = most_f(more_than(u, least, kind, i, k), more);
            cut[some] = (uint16_t)(i << 8 | k << 2);
            some += (lane_bits(none_of(above(limit, more))) & lanes) != 0;
        }
    for (unsigned at = 0; at < some; at++)
        full |= add_near(u, n, cut[at], lanes, least, near_by);
    return full;
}

/* ---- exact trials ---- */

/* A cut of each lane: places, and how the levels of the two halves are moved. */
typedef struct iq1_cuts {
    vf first, second, moved[2];
} iq1_cuts;

/* Returns the lanes that have so many. */
INLINE vm cuts_at(const iq1_near *near_by, unsigned at, iq1_cuts *c)
{
    const vi eighth = (vi)every_f(0.125f);
    vi count, cut;
    memcpy(&count, near_by->count, sizeof count);
    memcpy(&cut, near_by->cut[at], sizeof cut);
    c->first = number(cut >> 8);
    c->second = number(cut >> 2 & 63);
    c->moved[0] = (vf)(eighth | (vi)((vu)(cut & 2) << 30));
    c->moved[1] = (vf)(eighth | (vi)((vu)(cut & 1) << 31));
    return above(number(count), every_f((float)at));
}

/* try_by_halves() */
INLINE void try_lanes_by_halves(const iq1_lanes *l, const iq1_cuts *c, vf *A, vf *B)
{
    const vf one = every_f(1), moved = c->moved[0], more = c->moved[1] - moved;
    *A = *B = (vf){ 0 };
    for (unsigned j = 0; j < 16; j++) {
        vf at = every_f((float)j), x = floats(l->sorted_x[j]), w = floats(l->sorted_w[j]);
        vf v = one - pick(above(c->first, at), one, (vf){ 0 }) - pick(above(c->second, at), one, (vf){ 0 });
        v += moved + more * floats(l->second[j]);
        vf wv = w * v;
        *A += wv * x;
        *B += wv * v;
    }
}

/* try_alike() */
INLINE void try_lanes_alike(const iq1_sums *u, const iq1_cuts *c, vf *A, vf *B)
{
    const vf moved = c->moved[0], v0 = moved - 1, v2 = moved + 1;
    vf Xi, Xk, Wi, Wk;
    for (unsigned r = 0; r < LANES; r++) {
        unsigned i = (unsigned)c->first[r], k = (unsigned)c->second[r];
        Xi[r] = u->X[i][r];
        Xk[r] = u->X[k][r];
        Wi[r] = u->W[i][r];
        Wk[r] = u->W[k][r];
    }
    *A = (Xi - u->X[0]) * v0 + (Xk - Xi) * moved + (u->X[32] - Xk) * v2;
    *B = (Wi - u->W[0]) * v0 * v0 + (Wk - Wi) * moved * moved + (u->W[32] - Wk) * v2 * v2;
}

/* The best cut of each lane. */
typedef struct iq1_best {
    vf scale;
    iq1_cuts cuts;
} iq1_best;

INLINE void take_best(const iq1_lanes *l, const iq1_sums *u, unsigned n, const iq1_near *near_by, iq1_best *c)
{
    vf best = every_f(-FLT_MAX);
    vm left;
    iq1_cuts cuts;
    *c = (iq1_best){ .scale = { 0 } };
    for (unsigned at = 0; at < IQ1_NEAR && any(left = cuts_at(near_by, at, &cuts)); at++) {
        vf A, B;
        if (n == 32)
            try_lanes_alike(u, &cuts, &A, &B);
        else
            try_lanes_by_halves(l, &cuts, &A, &B);
        vm better = both(left, both(above(B, (vf){ 0 }), above(A * A, best * B)));
        c->scale = pick(better, A / B, c->scale);
        best = pick(better, c->scale * A, best);
        c->cuts.first = pick(better, cuts.first, c->cuts.first);
        c->cuts.second = pick(better, cuts.second, c->cuts.second);
        c->cuts.moved[0] = pick(better, cuts.moved[0], c->cuts.moved[0]);
        c->cuts.moved[1] = pick(better, cuts.moved[1], c->cuts.moved[1]);
    }
}

/* Returns the lanes whose cuts are compared as the definition does it. */
INLINE unsigned cut_lanes(const iq1_lanes *l, unsigned n, unsigned lanes, iq1_best *c)
{
    iq1_sums u;
    iq1_near near_by = { .count = { 0 } };
    sum_values(l, n, &u);
    unsigned usual = lane_bits(usual_lanes(&u, n)) & lanes;
    unsigned full = find_near(&u, n, usual, &near_by);
    take_best(l, &u, n, &near_by, c);
    return (lanes & ~usual) | full;
}

/* ---- levels ---- */

/* Levels of the groups of a sub-block, a vector of them in each number. */
typedef struct iq1_vectors {
    int32_t of[4][LANES];
} iq1_vectors;

/* set_levels() and iq1_vector() */
INLINE void take_levels(const iq1_lanes *l, unsigned n, const iq1_best *c, unsigned lanes, iq1_state *s,
                        iq1_vectors *v)
{
    const vm mirrored = above((vf){ 0 }, c->scale);
    for (unsigned g = 0; g < n / 8; g++) {
        vi lower = { 0 };       /* what levels are less than 2 */
        for (unsigned i = 0; i < 8; i++) {
            vf place = l->place[8 * g + i], bit = (vf)((vi){ 0 } + (int32_t)(1u << 2 * i));
            lower += (vi)pick(above(c->cuts.first, place), bit, (vf){ 0 });
            lower += (vi)pick(above(c->cuts.second, place), bit, (vf){ 0 });
        }
        lower = (vi)pick(mirrored, (vf)lower, (vf)(0xaaaa - lower));
        memcpy(v->of[g], &lower, sizeof lower);
    }
    for (; lanes; lanes &= lanes - 1) {
        unsigned r = (unsigned)__builtin_ctz(lanes);
        unsigned kind = (c->cuts.moved[0][r] < 0 ? 2u : 0) | (c->cuts.moved[1][r] < 0);
        s[r].kind = c->scale[r] < 0 ? 3 - kind : kind;
        s[r].scale = fabsf(c->scale[r]);
    }
}

/* As the definition does it, for one lane.  False: there is no cut. */
static bool take_levels_slowly(const iq1_lanes *l, unsigned r, iq1_state *s, iq1_vectors *v)
{
    for (unsigned i = 0; i < s->n; i++)
        s->order[(unsigned)l->place[i][r]] = (uint8_t)i;
    iq1_cut c = s->n == 32 ? tn_cut_alike(s) : tn_cut_by_halves(s);
    if (c.first < 0)
        return false;
    set_levels(s, (unsigned)c.first, (unsigned)c.second);
    for (unsigned g = 0; g < s->n / 8; g++)
        v->of[g][r] = (int32_t)iq1_vector(s, g);
    return true;
}

/* ---- points ---- */

static uint16_t nearest_iq1_point(iq1_state *s, unsigned group, const uint16_t *list)
{
    const float *v = iq1_levels_at(s, 8 * group);
    const eight_f x = eight(s->x + 8 * group), w = eight(s->w + 8 * group),
                  levels = { v[0], v[1], v[2], v[2], v[0], v[1], v[2], v[2] }, step = s->scale * levels;
    costs c;
#define FOUR_TIMES(v, i) __builtin_shufflevector(v, v, i, i, i, i, i + 1, i + 1, i + 1, i + 1)
#define TWO_VALUES(i)                                                                                       \
    do {                                                                                                    \
        eight_f e = step - FOUR_TIMES(x, i);                                                                \
        put_eight(c.of + 4 * i, FOUR_TIMES(w, i) * e * e);                                                  \
    } while (0)
    TWO_VALUES(0);
    TWO_VALUES(2);
    TWO_VALUES(4);
    TWO_VALUES(6);
    return nearest_point(list, &c, 2, &s->is_lost);
}

/* Returns whether a point is only near. */
INLINE bool take_lane_points(iq1_state *s, unsigned n, const iq1_vectors *v, unsigned r)
{
    const tn_neighbours *near_by = tn_neighbours_of(TN_BLOCK_IQ1_S);
    bool off = false;
    for (unsigned g = 0; g < n / 8; g++) {
        int32_t u = v->of[g][r], known = near_by->number[u];
        s->point[g] = known >= 0 ? (uint16_t)u : nearest_iq1_point(s, g, near_by->list + (-1 - known));
        off |= known < 0;
    }
    return off;
}

/* What values become by their points. */
typedef struct iq1_points {
    int32_t of[4][LANES];       /* of each group */
    float   low[2][LANES];      /* the lowest level, of each half */
} iq1_points;

INLINE void load_points(const iq1_state *s, unsigned n, iq1_points *p)
{
    for (unsigned r = 0; r < LANES; r++) {
        for (unsigned g = 0; g < n / 8; g++)
            p->of[g][r] = s[r].point[g];
        for (unsigned half = 0; half < 2; half++)
            p->low[half][r] = iq1_levels_of(s[r].kind, half)[0];
    }
}

INLINE vf point_value(const iq1_points *p, unsigned n, unsigned e)
{
    vi points;
    memcpy(&points, p->of[e / 8], sizeof points);
    return number(points >> 2 * (e % 8) & 3) + floats(p->low[2 * e / n]);
}

/* refit_scale() */
INLINE void refit_lanes(const iq1_lanes *l, unsigned n, unsigned lanes, iq1_state *s)
{
    iq1_points p;
    vf A = { 0 }, B = { 0 };
    load_points(s, n, &p);
    for (unsigned e = 0; e < n; e++) {
        vf v = point_value(&p, n, e), wv = l->w[e] * v;
        A += wv * l->x[e];
        B += wv * v;
    }
    lanes &= lane_bits(both(above(A, (vf){ 0 }), above(B, (vf){ 0 })));
    vf scale = A / B;
    for (; lanes; lanes &= lanes - 1)
        s[__builtin_ctz(lanes)].scale = scale[__builtin_ctz(lanes)];
}

/* ---- sub-blocks ---- */

/* Returns the lanes in which not all is 0. */
INLINE unsigned load_lanes(const iq1_state *s, unsigned n, float tiny, iq1_lanes *l)
{
    const float *x[LANES], *w[LANES];
    for (unsigned r = 0; r < LANES; r++) {
        x[r] = s[r].x;
        w[r] = s[r].w;
    }
    turn_rows(x, n, l->x);
    turn_rows(w, n, l->w);
    vf most = { 0 };
    for (unsigned e = 0; e < n; e++)
        most = most_f(magnitude(l->x[e]), most);
    return lane_bits(none_of(above(every_f(tiny), most)));
}

/* LANES sub-blocks. */
INLINE void encode_iq1(iq1_state *s, unsigned n, float tiny, iq1_lanes *l)
{
    iq1_best best;
    iq1_vectors v;
    unsigned lanes = load_lanes(s, n, tiny, l), off = 0;
    if (!lanes)
        return;
    sort_lanes(l, n);
    unsigned slow = cut_lanes(l, n, lanes, &best);
    take_levels(l, n, &best, lanes & ~slow, s, &v);
    for (; slow; slow &= slow - 1) {
        unsigned r = (unsigned)__builtin_ctz(slow);
        if (!take_levels_slowly(l, r, &s[r], &v))
            lanes &= ~(1u << r);
    }
    for (unsigned r = 0; r < LANES; r++)
        if (lanes >> r & 1)
            off |= (unsigned)take_lane_points(&s[r], n, &v, r) << r;
    refit_lanes(l, n, off, s);
    for (unsigned r = 0; r < LANES; r++)
        end_iq1(&s[r]);
}

/* ---- super-blocks ---- */

/* The mean squares of n <= LANES super-blocks, for weights. */
INLINE void find_iq1_means(const float *x, size_t n, float *mean)
{
    put_floats(mean, 2 * sums_of_squares(x, n, IQ1_SUPER) / IQ1_SUPER);
}

static void encode_iq1_s(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    enum { TOGETHER = LANES < 8 ? 1 : LANES / 8, SUBS = 8 * TOGETHER };
    float mean[LANES];
    (void)mean_square;
    for (size_t i = 0; i < n; i += TOGETHER) {
        iq1_state s[SUBS];
        iq1_lanes lanes;
        if (i % LANES == 0)
            find_iq1_means(x + i * IQ1_SUPER, n - i < LANES ? n - i : LANES, mean);
        for (unsigned k = 0; k < SUBS; k++) {
            size_t super = i + k / 8 < n ? i + k / 8 : n - 1, at = super * IQ1_SUPER + k % 8 * 32;
            begin_iq1(&s[k], x + at, 32, q ? q + at : NULL, mean[super % LANES]);
        }
        for (unsigned k = 0; k < SUBS; k += LANES)
            encode_iq1(s + k, 32, 1e-12f, &lanes);
        for (unsigned k = 0; k < TOGETHER && i + k < n; k++)
            put_iq1_s_block(s + 8 * k, b + (i + k) * 50);
    }
}

/* iq1_refit() */
INLINE float refit_super_block(const iq1_lanes *l, const iq1_state *s, const unsigned *code, float d)
{
    float A = 0, B = 0, of_A[16][LANES], of_B[16][LANES];
    for (unsigned at = 0; at < 16; at += LANES, l++) {
        iq1_points p;
        vf factor;
        load_points(s + at, 16, &p);
        for (unsigned r = 0; r < LANES; r++)
            factor[r] = (float)(2 * code[at + r] + 1);
        for (unsigned e = 0; e < 16; e++) {
            vf q = point_value(&p, 16, e) * factor, wq = l->w[e] * q;
            put_floats(of_A[e], wq * l->x[e]);
            put_floats(of_B[e], wq * q);
        }
        for (unsigned r = 0; r < LANES; r++)
            for (unsigned e = 0; e < 16; e++) {
                A += of_A[e][r];
                B += of_B[e][r];
            }
    }
    return B > 0 ? A / B : d;
}

static void encode_iq1_m(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    float mean[LANES];
    (void)mean_square;
    for (size_t i = 0; i < n; i++, x += IQ1_SUPER, b += 56) {
        iq1_state s[16];
        iq1_lanes lanes[16 / LANES];
        unsigned code[16];
        if (i % LANES == 0 && q)
            find_iq1_means(x, n - i < LANES ? n - i : LANES, mean);
        for (unsigned k = 0; k < 16; k++)
            begin_iq1(&s[k], x + 16 * k, 16, q ? q + i * IQ1_SUPER + 16 * k : NULL, q ? mean[i % LANES] : 0);
        for (unsigned k = 0; k < 16; k += LANES)
            encode_iq1(s + k, 16, 1e-7f, &lanes[k / LANES]);
        float most = put_iq1_m_points(s, code, b), d = most;
        if (most < INFINITY)
            d = refit_super_block(lanes, s, code, most / 15);
        if (most != 0)
            put_iq1_m_scales(s, code, d, b);
    }
}
