/* kernels/blocks/template_search.h - the searches of search.c, a sub-block in each lane.
 *
 * Vectors wait for each other's sums, so several are searched side by side. */
enum { PAIR = 2, QUAD = 4, SUB = 32 };          /* SUB: the most values of a sub-block */

/* The values of LANES sub-blocks, and their weights. */
typedef struct columns {
    vf x[SUB], w[SUB], wx[SUB];
} columns;

/* tn_found of each lane. */
typedef struct found {
    vf scale, min, inverse, from;
} found;

/* ---- codes around 0 ---- */

typedef struct sums_2 {
    vf A, B;
} sums_2;

/* `low`: values may be so far from 0 that their codes are cut off below. */
INLINE void try_around(const columns *c, unsigned n, int N, const vf *inverse_scale, bool low, sums_2 *s)
{
    for (unsigned g = 0; g < PAIR; g++)
        s[g].A = s[g].B = (vf){ 0 };
    for (unsigned e = 0; e < n; e++)
        for (unsigned g = 0; g < PAIR; g++) {
            vf l = least_f(rounded(inverse_scale[g] * c[g].x[e]), every_f((float)(N - 1)));
            l = low ? most_f(l, every_f((float)-N)) : l;
            s[g].A += c[g].wx[e] * l;
            s[g].B += c[g].w[e] * l * l;
        }
}

/* tn_search_symmetric() of the lanes of PAIR vectors. */
INLINE void search_around(columns *c, unsigned n, int N, found *f)
{
    vf max[PAIR], best[PAIR], i[PAIR];
    vm tiny[PAIR];
    sums_2 s[PAIR];
    for (unsigned g = 0; g < PAIR; g++) {
        max[g] = first_largest_of(c[g].x, n);
        tiny[g] = above(every_f(TN_GROUP_TINY), magnitude(max[g]));
        max[g] = pick(tiny[g], every_f(1), max[g]);
        i[g] = f[g].inverse = -(float)N / max[g];
        for (unsigned e = 0; e < n; e++)
            c[g].wx[e] = c[g].w[e] * c[g].x[e];
    }
    try_around(c, n, N, i, false, s);
    for (unsigned g = 0; g < PAIR; g++) {
        f[g].scale = pick(same(s[g].B, (vf){ 0 }), (vf){ 0 }, s[g].A / s[g].B);
        best[g] = f[g].scale * s[g].A;
    }
    for (int k = -9; k <= 9; k += 1 + (k == -1)) {
        for (unsigned g = 0; g < PAIR; g++)
            i[g] = -((float)N + 0.1f * (float)k) / max[g];
        if (k < 5)              /* no value is below -N - 0.45 */
            try_around(c, n, N, i, false, s);
        else
            try_around(c, n, N, i, true, s);
        for (unsigned g = 0; g < PAIR; g++) {
            vm better = both(above(s[g].B, (vf){ 0 }), above(s[g].A * s[g].A, best[g] * s[g].B));
            f[g].scale = pick(better, s[g].A / s[g].B, f[g].scale);
            f[g].inverse = pick(better, i[g], f[g].inverse);
            best[g] = pick(better, f[g].scale * s[g].A, best[g]);
        }
    }
    for (unsigned g = 0; g < PAIR; g++) {
        f[g].scale = pick(tiny[g], (vf){ 0 }, f[g].scale);
        f[g].inverse = pick(tiny[g], (vf){ 0 }, f[g].inverse);
    }
}

/* ---- codes with a minimum ---- */

typedef struct sums_3 {
    vf S, Q, P;
} sums_3;

/* A search of one vector. */
typedef struct affine_state {
    vf max, low, W, X;          /* low: the least value */
    vf scale, min, least;
    vm flat;
} affine_state;

INLINE void begin_affine(const columns *c, unsigned n, bool is_weighted, affine_state *a)
{
    vf low = c->x[0];
    a->max = low;
    a->W = c->w[0];
    a->X = c->w[0] * c->x[0];
    for (unsigned e = 1; e < n; e++) {
        low = pick(above(low, c->x[e]), c->x[e], low);
        a->max = pick(above(c->x[e], a->max), c->x[e], a->max);
        a->W += c->w[e];
        a->X += c->w[e] * c->x[e];
    }
    a->low = low;
    a->min = pick(above(low, (vf){ 0 }), (vf){ 0 }, low);
    a->flat = same(a->max, a->min);
    if (is_weighted)
        a->flat = none_of(above(a->max, a->min));
}

/* The largest magnitude that is rounded: |inverse * (x - from)|. */
INLINE bool is_large(const affine_state *a, vf inverse_scale)
{
    vf most = most_f(magnitude(a->max - a->min), magnitude(a->low - a->min));
    return any(none_of(above(every_f(0x1p22f), magnitude(inverse_scale) * most)));
}

INLINE void affine_codes(const columns *c, unsigned n, int N, const affine_state *a, const vf *i, bool exact,
                         vf (*l)[SUB], sums_3 *s)
{
    for (unsigned g = 0; g < PAIR; g++)
        s[g].S = s[g].Q = s[g].P = (vf){ 0 };
    for (unsigned e = 0; e < n; e++)
        for (unsigned g = 0; g < PAIR; g++) {
            vf code = near_within(i[g] * (c[g].x[e] - a[g].min), 0, (float)N, exact), wl = c[g].w[e] * code;
            l[g][e] = code;
            s[g].S += wl;
            s[g].Q += wl * code;
            s[g].P += wl * c[g].x[e];
        }
}

INLINE void affine_errors(const columns *c, unsigned n, bool by_magnitude, const vf *scale, const vf *min,
                          vf (*l)[SUB], vf *error)
{
    for (unsigned g = 0; g < PAIR; g++)
        error[g] = (vf){ 0 };
    for (unsigned e = 0; e < n; e++)
        for (unsigned g = 0; g < PAIR; g++) {
            vf d = scale[g] * l[g][e] + min[g] - c[g].x[e];
            error[g] += c[g].w[e] * (by_magnitude ? magnitude(d) : d * d);
        }
}

/* Codes of a trial, and their sums. */
INLINE void try_above(const columns *c, unsigned n, int N, const affine_state *a, vf *i, vf (*l)[SUB],
                      sums_3 *s)
{
    bool large = false;
    for (unsigned g = 0; g < PAIR; g++) {
        i[g] = pick(a[g].flat, (vf){ 0 }, i[g]);
        large |= is_large(&a[g], i[g]);
    }
    if (large)
        affine_codes(c, n, N, a, i, true, l, s);
    else
        affine_codes(c, n, N, a, i, false, l, s);
}

/* The line with the least error of the codes of a trial.  Lanes without one are not in the mask. */
INLINE vm fit_line(const affine_state *a, const sums_3 *s, vf *scale, vf *min)
{
    vf D = a->W * s->Q - s->S * s->S;
    *scale = (a->W * s->P - a->X * s->S) / D;
    *min = (s->Q * a->X - s->S * s->P) / D;
    vm high = above(*min, (vf){ 0 });
    if (any(high)) {
        *scale = pick(high, s->P / s->Q, *scale);
        *min = pick(high, (vf){ 0 }, *min);
    }
    return above(D, (vf){ 0 });
}

/* A search of up to QUAD vectors.  While one pair of them waits for its sums the other one works. */
typedef struct affine_search {
    const columns *c;
    unsigned n, vectors;
    affine_state a[QUAD];
    vf l[QUAD][SUB], inverse[QUAD], scale[QUAD], min[QUAD], error[QUAD];
    vm valid[QUAD];
} affine_search;

INLINE void begin_search(const tn_search_range *r, affine_search *s, found *f)
{
    for (unsigned g = 0; g < s->vectors; g++) {
        affine_state *a = &s->a[g];
        begin_affine(&s->c[g], s->n, r->is_weighted, a);
        s->inverse[g] = (float)r->N / (a->max - a->min);
        f[g].from = s->min[g] = a->min;
        a->scale = s->scale[g] = 1 / s->inverse[g];
    }
}

/* Codes of a trial, and their errors: with the line that fits them best, or with the one that is set. */
INLINE void try_lines(const tn_search_range *r, bool fits, affine_search *s)
{
    for (unsigned p = 0; p < s->vectors; p += PAIR) {
        sums_3 sums[PAIR];
        try_above(s->c + p, s->n, r->N, s->a + p, s->inverse + p, s->l + p, sums);
        for (unsigned g = p; g < p + PAIR && fits; g++)
            s->valid[g] = fit_line(&s->a[g], &sums[g - p], &s->scale[g], &s->min[g]);
    }
    for (unsigned p = 0; p < s->vectors; p += PAIR)
        affine_errors(s->c + p, s->n, r->by_magnitude, s->scale + p, s->min + p, s->l + p, s->error + p);
}

/* tn_search_affine() of the lanes of `vectors` vectors, a multiple of PAIR. */
INLINE void search_above(const columns *c, unsigned vectors, unsigned n, const tn_search_range *r, found *f)
{
    affine_search s;
    s.c = c;
    s.n = n;
    s.vectors = vectors;
    begin_search(r, &s, f);
    try_lines(r, false, &s);
    for (unsigned g = 0; g < vectors; g++) {
        s.a[g].least = s.error[g];
        f[g].inverse = s.inverse[g];
    }
    for (int k = 0; k <= r->trials; k++) {
        for (unsigned g = 0; g < vectors; g++)
            s.inverse[g] = (r->first + r->step * (float)k + (float)r->N) / (s.a[g].max - s.a[g].min);
        try_lines(r, true, &s);
        for (unsigned g = 0; g < vectors; g++) {
            affine_state *a = &s.a[g];
            vm better = both(s.valid[g], above(a->least, s.error[g]));
            f[g].inverse = pick(better, s.inverse[g], f[g].inverse);
            f[g].from = pick(better, a->min, f[g].from);
            a->least = pick(better, s.error[g], a->least);
            a->scale = pick(better, s.scale[g], a->scale);
            a->min = pick(better, s.min[g], a->min);
        }
    }
    for (unsigned g = 0; g < vectors; g++) {
        const affine_state *a = &s.a[g];
        f[g].scale = pick(a->flat, (vf){ 0 }, a->scale);
        f[g].min = -pick(a->flat, f[g].from, a->min);
        f[g].inverse = pick(a->flat, (vf){ 0 }, f[g].inverse);
    }
}

/* ---- single codes are changed ---- */

/* (A, B) with code l of a value. */
INLINE sums_2 sums_with(sums_2 s, vf wx, vf w, vf l) { return (sums_2){ s.A + wx * l, s.B + w * l * l }; }
INLINE sums_2 sums_without(sums_2 s, vf wx, vf w, vf l) { return (sums_2){ s.A - wx * l, s.B - w * l * l }; }

INLINE vm is_better_of(sums_2 a, sums_2 than)
{
    return above(a.A * a.A * than.B, than.A * than.A * a.B);
}

enum { Q3_N = 4, Q3_SIZE = 16 };

/* tn_search_q3() before its first pass: codes l, before Q3_N is added, and their sums. */
INLINE sums_2 begin_q3(columns *c, vf *l, vm *tiny)
{
    sums_2 all = { { 0 }, { 0 } };
    vf max = first_largest_of(c->x, Q3_SIZE);
    *tiny = above(every_f(TN_GROUP_TINY), magnitude(max));
    vf i = -(float)Q3_N / pick(*tiny, every_f(1), max);
    for (unsigned e = 0; e < Q3_SIZE; e++) {
        l[e] = near_within(i * c->x[e], -Q3_N, Q3_N - 1, false);
        c->w[e] = c->x[e] * c->x[e];
        c->wx[e] = c->w[e] * c->x[e];
        all = sums_with(all, c->wx[e], c->w[e], l[e]);
    }
    return all;
}

/* Lanes in which another code for value e is better, that code, and the sums with it. */
INLINE vm better_q3(const columns *c, unsigned e, vf l, sums_2 all, vf *new, sums_2 *other)
{
    vf w = c->w[e], wx = c->wx[e];
    sums_2 rest = sums_without(all, wx, w, l);
    *new = near_within(c->x[e] * rest.B / rest.A, -Q3_N, Q3_N - 1, true);
    *other = sums_with(rest, wx, w, *new);
    return both(both(above(rest.A, (vf){ 0 }), above(other->B, (vf){ 0 })),
                both(none_of(same(*new, l)), is_better_of(*other, all)));
}

INLINE vf end_q3(sums_2 all, vm tiny, vf *l)
{
    for (unsigned e = 0; e < Q3_SIZE; e++)
        l[e] = pick(tiny, every_f(-Q3_N), l[e]);
    return pick(both(above(all.B, (vf){ 0 }), none_of(tiny)), all.A / all.B, (vf){ 0 });
}

/* Lanes in which better_q3() may be true.  A code stays if x * B / A, cut off at the last codes, is nearer to
 * it than 0.499. */
INLINE vm maybe_better_q3(const columns *c, unsigned e, vf l, sums_2 all)
{
    sums_2 rest = sums_without(all, c->wx[e], c->w[e], l);
    vf low = -Q3_N * rest.A, high = (Q3_N - 1) * rest.A;
    vf away = magnitude(least_f(most_f(c->x[e] * rest.B, low), high) - l * rest.A);
    return both(above(rest.A, (vf){ 0 }), none_of(above(0.499f * rest.A, away)));
}

/* The scales if no pass changes anything, and lanes of which that may not be true. */
INLINE vf search_q3_once(columns *c, vf *l, vm *changes)
{
    vm tiny;
    sums_2 all = begin_q3(c, l, &tiny);
    *changes = above((vf){ 0 }, (vf){ 0 });
    for (unsigned e = 0; e < Q3_SIZE; e++)
        *changes = either(*changes, maybe_better_q3(c, e, l[e], all));
    *changes = both(*changes, none_of(tiny));
    return end_q3(all, tiny, l);
}

/* tn_search_q3() of the lanes of QUAD vectors. */
INLINE void search_q3(columns *c, vf (*l)[Q3_SIZE], vf *scale)
{
    enum { PASSES = 5 };
    sums_2 all[QUAD];
    vm tiny[QUAD];
    bool more = true;
    for (unsigned g = 0; g < QUAD; g++)
        all[g] = begin_q3(&c[g], l[g], &tiny[g]);
    for (unsigned pass = 0; pass < PASSES && more; pass++) {
        vm changed = above((vf){ 0 }, (vf){ 0 });
        for (unsigned e = 0; e < Q3_SIZE; e++)
            for (unsigned g = 0; g < QUAD; g++) {
                vf new;
                sums_2 other;
                vm take = better_q3(&c[g], e, l[g][e], all[g], &new, &other);
                all[g].A = pick(take, other.A, all[g].A);
                all[g].B = pick(take, other.B, all[g].B);
                l[g][e] = pick(take, new, l[g][e]);
                changed = either(changed, take);
            }
        more = any(changed);
    }
    for (unsigned g = 0; g < QUAD; g++)
        scale[g] = end_q3(all[g], tiny[g], l[g]);
}

/* ---- codes from 0 ---- */

/* The inverse scale with the least error of those that are tried. */
INLINE void find_inverses(const columns *c, unsigned n, int N, const vf *max, vf *best)
{
    vf least[PAIR];
    for (int k = -5; k <= 4; k += 1 + (k == -1))        /* -5: N itself, whose codes wrap around */
        for (unsigned g = 0; g < PAIR; g++) {
            vf i = (k == -5 ? (float)N : 0.1f * (float)k + (float)N) / max[g], scale = 1 / i;
            vf error = { 0 };
            for (unsigned e = 0; e < n; e++) {
                vi l = near_any(i * c[g].x[e]);
                l = k == -5 ? l & 255 : least_i(l, (vi){ 0 } + N);
                vf d = c[g].x[e] - scale * number(l);
                error += c[g].w[e] * d * d;
            }
            vm better = above(least[g], error);
            best[g] = k == -5 ? i : pick(better, i, best[g]);
            least[g] = k == -5 ? error : pick(better, error, least[g]);
        }
}

/* tn_search_positive() of the lanes of PAIR vectors. */
INLINE void search_from_0(columns *c, unsigned n, int N, vi (*codes)[SUB], vf *scale)
{
    enum { PASSES = 5 };
    sums_2 all[PAIR];
    vf max[PAIR], i[PAIR];
    vm tiny[PAIR];
    for (unsigned g = 0; g < PAIR; g++) {
        max[g] = (vf){ 0 };
        all[g] = (sums_2){ { 0 }, { 0 } };
        for (unsigned e = 0; e < n; e++)
            max[g] = pick(above(c[g].x[e], max[g]), c[g].x[e], max[g]);
        tiny[g] = above(every_f(TN_GROUP_TINY), max[g]);
    }
    find_inverses(c, n, N, max, i);
    for (unsigned e = 0; e < n; e++)
        for (unsigned g = 0; g < PAIR; g++) {
            vi l = least_i(near_any(i[g] * c[g].x[e]), (vi){ 0 } + N);
            c[g].wx[e] = c[g].w[e] * c[g].x[e];
            all[g] = sums_with(all[g], c[g].wx[e], c[g].w[e], number(l));
            codes[g][e] = l & 255;
        }
    bool changed = true;
    for (unsigned pass = 0; pass < PASSES && changed; pass++) {
        vm some = above((vf){ 0 }, (vf){ 0 });
        for (unsigned e = 0; e < n; e++)
            for (unsigned g = 0; g < PAIR; g++) {
                vf w = c[g].w[e], wx = c[g].wx[e], old = number(codes[g][e]);
                sums_2 rest = sums_without(all[g], wx, w, old);
                vi l = least_i(near_any(c[g].x[e] * rest.B / rest.A), (vi){ 0 } + N);
                vf new = number(l);
                sums_2 other = sums_with(rest, wx, w, new);
                vm take = both(both(above(rest.A, (vf){ 0 }), above(rest.B, (vf){ 0 })),
                               both(none_of(same(new, old)), is_better_of(other, all[g])));
                all[g].A = pick(take, other.A, all[g].A);
                all[g].B = pick(take, other.B, all[g].B);
                codes[g][e] = (vi)pick(take, (vf)(l & 255), (vf)codes[g][e]);
                some = either(some, take);
            }
        changed = any(some);
    }
    for (unsigned g = 0; g < PAIR; g++) {
        scale[g] = pick(both(above(all[g].B, (vf){ 0 }), none_of(tiny[g])), all[g].A / all[g].B, (vf){ 0 });
        for (unsigned e = 0; e < n; e++)
            codes[g][e] = (vi)pick(tiny[g], (vf){ 0 }, (vf)codes[g][e]);
    }
}
