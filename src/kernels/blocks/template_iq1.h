/* kernels/blocks/template_iq1.h - encodes iq1_s and iq1_m.
 *
 * The definition takes a cut if A * A > best * B, and then best = A / B * A, one after the other.  Here
 * limits of A * A / B are found for all cuts, second places in lanes.  A cut that is below another one for
 * certain cannot be taken last, nor decide which one is.  The few others are compared in order, as the
 * definition does. */
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

/* ---- cuts ---- */

/* Sums of sorted values before each place: X of w x, W of w.  Levels are -1, 0 and 1, moved by an eighth, so
 * that a cut at places i and k has
 *
 *   A = X[n] + moved - X[i] - X[k]
 *   B = whole + before[i] - after[k]
 *
 * where `moved` and the sums of B depend on the kind. */
typedef struct iq1_sums {
    float X[IQ1_MOST + 1 + LANES], W[IQ1_MOST + 1];
    float moved[4], whole[4], before[4][IQ1_MOST + 1], after[4][IQ1_MOST + 1 + LANES];
    float squares;              /* the sum of w x x */
} iq1_sums;

/* Halves of sub-blocks of 32 values are moved alike: kinds 0 and 3. */
INLINE unsigned kind_step(unsigned n) { return n == 32 ? 3 : 1; }

INLINE void sum_kind(unsigned n, unsigned kind, const float X[2], float (*W)[IQ1_MOST + 1], iq1_sums *u)
{
    const float first = kind & 2 ? -0.25f : 0.25f, second = kind & 1 ? -0.25f : 0.25f;
    u->moved[kind] = 0.5f * (first * X[0] + second * X[1]);
    for (unsigned j = 0; j <= n; j++) {
        float part = first * W[0][j] + second * W[1][j];
        u->before[kind][j] = u->W[j] - part;
        u->after[kind][j] = u->W[j] + part;
    }
    u->whole[kind] = u->after[kind][n] + u->W[n] / 64;
    for (unsigned r = 1; r <= LANES; r++)       /* no cuts: B is huge */
        u->after[kind][n + r] = -0x1p100f;
}

INLINE void sum_values(const iq1_state *s, unsigned n, iq1_sums *u)
{
    float W[2][IQ1_MOST + 1], X[2] = { 0 };
    W[0][0] = W[1][0] = u->X[0] = u->W[0] = u->squares = 0;
    for (unsigned j = 0; j < n; j++) {
        unsigned e = s->order[j], half = 2 * e / n;
        float w = s->w[e], wx = w * s->x[e];
        X[half] += wx;
        W[half][j + 1] = W[half][j] + w;
        W[1 - half][j + 1] = W[1 - half][j];
        u->X[j + 1] = u->X[j] + wx;
        u->W[j + 1] = u->W[j] + w;
        u->squares += wx * s->x[e];
    }
    for (unsigned kind = 0; kind < 4; kind += kind_step(n))
        sum_kind(n, kind, X, W, u);
    for (unsigned r = 1; r <= LANES; r++)
        u->X[n + r] = 0;
}

/* What A * A / B of each cut is at most, by first place, by vectors of second places, and by kind. */
enum { IQ1_LIMITS = 2048 / LANES };

/* Returns what the largest A * A / B is at least.
 *
 * Sums of n = 32 numbers here, and those of the definition, differ by less than 243 roundings of the sum of
 * w |x| in A, and by less than 270 of the sum of w in B.  With Cauchy's inequality A * A / B differs by less
 * than 1024 roundings of (sum of w) * (sum of w x x) / B. */
INLINE float find_limits(const iq1_sums *u, unsigned n, vf *limit)
{
    const vf doubt = every_f(0x1p-14f * u->W[n] * u->squares);
    vf most = { 0 };
    for (unsigned i = 0; i <= n; i++)
        for (unsigned k = i; k <= n; k += LANES)
            for (unsigned kind = 0; kind < 4; kind += kind_step(n)) {
                vf A = u->X[n] + u->moved[kind] - u->X[i] - floats(u->X + k), AA = A * A;
                vf B = u->whole[kind] + u->before[kind][i] - floats(u->after[kind] + k);
                vf r = about_inverse(B);
                *limit++ = (AA + doubt) * r;
                most = most_f((AA - doubt) * r, most);
            }
    return -least_lane(-most)[0];
}

/* Numbers of cuts in the order in which they are compared. */
typedef struct iq1_near {
    unsigned count;
    uint16_t cut[16];           /* first place, 6 bits of the second, 2 of the kind */
} iq1_near;

INLINE void add_near(iq1_near *near_by, unsigned cut)
{
    unsigned at = near_by->count++;
    for (; at > 0 && near_by->cut[at - 1] > cut; at--)
        near_by->cut[at] = near_by->cut[at - 1];
    near_by->cut[at] = (uint16_t)cut;
}

/* The cuts that may be the best.  False: too many. */
INLINE bool find_near(const vf *limit, float most, unsigned n, iq1_near *near_by)
{
    const vf least = every_f(most);
    near_by->count = 0;
    for (unsigned i = 0; i <= n; i++)
        for (unsigned k = i; k <= n; k += LANES)
            for (unsigned kind = 0; kind < 4; kind += kind_step(n))
                for (unsigned bits = lane_bits(none_of(above(least, *limit++))); bits; bits &= bits - 1) {
                    if (near_by->count == sizeof near_by->cut / sizeof *near_by->cut)
                        return false;
                    add_near(near_by, i << 8 | (k + (unsigned)__builtin_ctz(bits)) << 2 | kind);
                }
    return true;
}

/* Whether all numbers are far from the ends of float32's range. */
INLINE bool is_usual(const iq1_sums *u, unsigned n)
{
    float W = u->W[n], squares = u->squares;
    return W > 0x1p-40f && W < 0x1p40f && squares > 0x1p-60f && squares < 0x1p60f;
}

INLINE iq1_cut cut_values(iq1_state *s, unsigned n)
{
    iq1_sums u;
    vf limit[IQ1_LIMITS];
    iq1_near near_by;
    iq1_cut c = { -FLT_MAX, -1, -1 };
    sum_values(s, n, &u);
    if (!is_usual(&u, n) || !find_near(limit, find_limits(&u, n, limit), n, &near_by))
        return n == 32 ? tn_cut_alike(s) : tn_cut_by_halves(s);
    for (unsigned at = 0; at < near_by.count; at++) {
        unsigned i = near_by.cut[at] >> 8, k = near_by.cut[at] >> 2 & 63, kind = near_by.cut[at] & 3;
        take_trial(s, &c, n == 32 ? try_alike(u.X, u.W, kind, i, k) : try_by_halves(s, kind, i, k));
    }
    return c;
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

INLINE void encode_iq1(iq1_state *s, unsigned n)
{
    sort_values(s);
    iq1_cut c = cut_values(s, n);
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
                encode_iq1(&s[k], 32);
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
                encode_iq1(&s[k], 16);
        put_iq1_m_block(s, b);
    }
}
