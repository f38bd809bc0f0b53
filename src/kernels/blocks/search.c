/* kernels/blocks/search.c - searches for scales and codes that lose least. */
#include "kernels/blocks/encode.h"

enum { PASSES = 5 };            /* in which single codes are changed */

static float weight_of(const float *x, const float *w, unsigned i) { return w ? w[i] : x[i] * x[i]; }

/* ---- codes around 0 ---- */

static void try_symmetric(const float *x, const float *w, unsigned n, int N, float inverse_scale, float *A,
                          float *B)
{
    *A = *B = 0;
    for (unsigned i = 0; i < n; i++) {
        float weight = weight_of(x, w, i), l = (float)clamp(near(inverse_scale * x[i]), -N, N - 1);
        *A += weight * x[i] * l;
        *B += weight * l * l;
    }
}

tn_found tn_search_symmetric(const float *x, const float *w, unsigned n, int N)
{
    float max = first_largest(x, n), A, B;
    if (fabsf(max) < TN_GROUP_TINY)
        return (tn_found){ .scale = 0 };
    tn_found found = { .inverse = -(float)N / max };
    try_symmetric(x, w, n, N, found.inverse, &A, &B);
    found.scale = B != 0 ? A / B : 0;
    float best = found.scale * A;
    for (int k = -9; k <= 9; k++) {
        float inverse_scale = -((float)N + 0.1f * (float)k) / max;
        if (k == 0)
            continue;
        try_symmetric(x, w, n, N, inverse_scale, &A, &B);
        if (B > 0 && A * A > best * B) {
            found.scale = A / B;
            found.inverse = inverse_scale;
            best = found.scale * A;
        }
    }
    return found;
}

/* Sums of all codes but one. */
typedef struct sums {
    float A, B;
} sums;

static sums without(const sums *s, float w, float x, float l)
{
    return (sums){ s->A - w * x * l, s->B - w * l * l };
}

static sums with(const sums *s, float w, float x, float l)
{
    return (sums){ s->A + w * x * l, s->B + w * l * l };
}

static bool is_better(const sums *a, const sums *than)
{
    return a->A * a->A * than->B > than->A * than->A * a->B;
}

float tn_search_q3(const float *x, unsigned n, float *l)
{
    enum { N = 4 };
    float max = first_largest(x, n);
    sums all = { 0, 0 };
    for (unsigned i = 0; i < n; i++)
        l[i] = -N;
    if (fabsf(max) < TN_GROUP_TINY)
        return 0;
    for (unsigned i = 0; i < n; i++) {
        l[i] = (float)clamp(near(-(float)N / max * x[i]), -N, N - 1);
        all = with(&all, x[i] * x[i], x[i], l[i]);
    }
    for (unsigned pass = 0, changed = 1; pass < PASSES && changed; pass++) {
        changed = 0;
        for (unsigned i = 0; i < n; i++) {
            float w = x[i] * x[i];
            sums rest = without(&all, w, x[i], l[i]);
            if (!(rest.A > 0))
                continue;
            float new = (float)clamp(near(x[i] * rest.B / rest.A), -N, N - 1);
            sums other = with(&rest, w, x[i], new);
            if (new == l[i] || !(other.B > 0) || !is_better(&other, &all))
                continue;
            l[i] = new;
            all = other;
            changed++;
        }
    }
    return all.B > 0 ? all.A / all.B : 0;
}

/* ---- codes with a minimum ---- */

typedef struct line {
    float scale, min;
} line;

static float error_of(const float *x, const float *w, unsigned n, const tn_search_range *r, line s,
                      const uint8_t *codes)
{
    float error = 0;
    for (unsigned i = 0; i < n; i++) {
        float e = s.scale * (float)codes[i] + s.min - x[i];
        error += w[i] * (r->by_magnitude ? fabsf(e) : e * e);
    }
    return error;
}

/* The line with the least error of given codes; W and X are the sums of w and of w x.  False: none. */
static bool fit(const float *x, const float *w, unsigned n, float W, float X, const uint8_t *codes, line *s)
{
    float S = 0, Q = 0, P = 0;
    for (unsigned i = 0; i < n; i++) {
        float l = (float)codes[i];
        S += w[i] * l;
        Q += w[i] * l * l;
        P += w[i] * l * x[i];
    }
    float D = W * Q - S * S;
    if (!(D > 0))
        return false;
    s->scale = (W * P - X * S) / D;
    s->min = (Q * X - S * P) / D;
    if (s->min > 0) {
        s->min = 0;
        s->scale = P / Q;
    }
    return true;
}

tn_found tn_search_affine(const float *x, const float *w, unsigned n, const tn_search_range *r)
{
    uint8_t codes[TN_BLOCK_VALUES];
    float max = x[0], W = w[0], X = w[0] * x[0];
    line best = { 0, x[0] };
    for (unsigned i = 1; i < n; i++) {
        best.min = x[i] < best.min ? x[i] : best.min;
        max = x[i] > max ? x[i] : max;
        W += w[i];
        X += w[i] * x[i];
    }
    if (best.min > 0)
        best.min = 0;
    bool is_flat = r->is_weighted ? max <= best.min : max == best.min;
    tn_found found = { .min = -best.min, .from = best.min };
    if (is_flat)
        return found;
    found.inverse = (float)r->N / (max - best.min);
    best.scale = 1 / found.inverse;
    codes_above(x, n, r->N, found.inverse, best.min, codes);
    float least = error_of(x, w, n, r, best, codes);
    for (int k = 0; k <= r->trials; k++) {
        line s;
        float inverse_scale = (r->first + r->step * (float)k + (float)r->N) / (max - best.min);
        codes_above(x, n, r->N, inverse_scale, best.min, codes);
        if (!fit(x, w, n, W, X, codes, &s))
            continue;
        float error = error_of(x, w, n, r, s, codes);
        if (error < least) {
            least = error;
            found.inverse = inverse_scale;
            found.from = best.min;
            best = s;
        }
    }
    found.scale = best.scale;
    found.min = -best.min;
    return found;
}

/* ---- codes from 0 ---- */

static float error_from_0(const float *x, const float *w, unsigned n, float scale, const uint8_t *codes)
{
    float error = 0;
    for (unsigned i = 0; i < n; i++) {
        float e = x[i] - scale * (float)codes[i];
        error += w[i] * e * e;
    }
    return error;
}

/* The scale of the trial with the least error, inverted. */
static float find_inverse(const float *x, const float *w, unsigned n, int N, float max, uint8_t *codes)
{
    float best = (float)N / max;
    for (unsigned i = 0; i < n; i++)
        codes[i] = (uint8_t)near(best * x[i]);
    float least = error_from_0(x, w, n, 1 / best, codes);
    for (int k = -4; k <= 4; k++) {
        float inverse_scale = (0.1f * (float)k + (float)N) / max, scale = 1 / inverse_scale, error = 0;
        for (unsigned i = 0; i < n && k; i++) {
            int l = near(inverse_scale * x[i]);
            float e = x[i] - scale * (float)(l < N ? l : N);
            error += w[i] * e * e;
        }
        if (k && error < least) {
            least = error;
            best = inverse_scale;
        }
    }
    return best;
}

float tn_search_positive(const float *x, const float *w, unsigned n, int N, uint8_t *codes)
{
    float max = 0;
    sums all = { 0, 0 };
    for (unsigned i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    memset(codes, 0, n);
    if (max < TN_GROUP_TINY)
        return 0;
    float inverse_scale = find_inverse(x, w, n, N, max, codes);
    for (unsigned i = 0; i < n; i++) {
        int l = near(inverse_scale * x[i]);
        l = l < N ? l : N;
        codes[i] = (uint8_t)l;          /* negative ones wrap around */
        all = with(&all, w[i], x[i], (float)l);
    }
    for (unsigned pass = 0, changed = 1; pass < PASSES && changed; pass++) {
        changed = 0;
        for (unsigned i = 0; i < n; i++) {
            sums rest = without(&all, w[i], x[i], codes[i]);
            if (!(rest.A > 0 && rest.B > 0))
                continue;
            int new = near(x[i] * rest.B / rest.A);
            new = new < N ? new : N;
            sums other = with(&rest, w[i], x[i], (float)new);
            if (new == codes[i] || !is_better(&other, &all))
                continue;
            codes[i] = (uint8_t)new;
            all = other;
            changed++;
        }
    }
    return all.B > 0 ? all.A / all.B : 0;
}
