/* quant/scale_trials.c - affine scales with the least squared error, and powers of two. */
#include "quant/scale_trials.h"
#include "quant/tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { BLOCK = 1024 };          /* elements per kernel call */

/* --- memory ------------------------------------------------------------------ */

unsigned tn_scale_trials_of(const tn_affine *a, tn_scale_rule rule)
{
    bool least = rule == TN_SCALE_MSE;
    if (a->power)
        return least ? tn_dtype_get(a->codes)->bits + 1u : 1;
    if (!least)
        return 0;
    return a->symmetric ? TN_RATIO_HIGH - TN_RATIO_LOW + 1 : TN_RANGE_ENDS * TN_RANGE_ENDS;
}

size_t tn_scale_trials_bytes(const tn_affine *a, tn_scale_rule rule)
{
    return tn_scale_trials_of(a, rule) * (sizeof(float) + sizeof(int32_t) * !a->symmetric + sizeof(uint64_t));
}

/* A type of whole bytes for codes, or for codes minus zero points. */
static tn_dtype container_of(const tn_affine *a)
{
    unsigned bits = tn_dtype_get(a->codes)->bits + !a->symmetric;
    if (bits > 16)
        return TN_INT32;
    return bits > 8 ? TN_INT16 : TN_INT8;
}

void tn_scale_trials_restart(tn_scale_trials *s)
{
    s->tried = 1;
    s->most = UINT64_MAX;
    for (size_t i = 0; i < s->items; i++)
        s->scale[i] = 1;
    if (s->zero)
        memset(s->zero, 0, s->items * sizeof *s->zero);
    memset(s->sum, 0, s->items * sizeof *s->sum);
}

tn_status tn_scale_trials_init(tn_scale_trials *s, const tn_affine *affine,
                               const tn_quantize_options *options, const int64_t range[2],
                               tn_scale_index index, tn_error *err)
{
    tn_quantize_options o = *options;
    tn_affine a = *affine;
    a.codes = container_of(affine);
    a.range[0] = range[0];
    a.range[1] = range[1];
    o.nan = TN_NAN_ZERO;
    s->kernels = tn_quant_kernels_get();
    s->bits = tn_dtype_get(affine->codes)->bits;
    s->trials = tn_scale_trials_of(affine, o.rule);
    size_t count = (size_t)index.count, all = (count ? count : 1) * s->trials;
    s->items = all;
    s->scale = malloc(all * sizeof *s->scale);
    s->zero = affine->symmetric ? NULL : malloc(all * sizeof *s->zero);
    s->sum = malloc(all * sizeof *s->sum);
    if (!s->scale || !s->sum || (!affine->symmetric && !s->zero))
        return tn_fail_nomem(err);
    tn_scale_trials_restart(s);
    const tn_affine_task task = { .affine = &a, .values = TN_FLOAT32, .index = index, .scale = s->scale,
                                  .zero = s->zero, .options = &o };
    return tn_affine_plan_make(&s->plan, &task, err);
}

void tn_scale_trials_free(tn_scale_trials *s)
{
    free(s->scale);
    free(s->zero);
    free(s->sum);
}

/* Squared errors are counted in units of 2^-24 times the square of the first trial's scale. */
static double unit_of(float first)
{
    return 0x1p24 / ((double)first * (double)first);
}

/* --- powers of two ------------------------------------------------------------ */

static bool fits(const tn_affine_plan *plan, float x, int n)
{
    return tn_affine_fits(plan->arithmetic, &plan->rules, plan->range, x, ldexpf(1, -n));
}

static int power_for(const tn_scale_trials *s, float low, float high)
{
    const int64_t *range = s->plan.range;
    float most = -low > high ? -low : high;
    if (most == 0)
        return (int)s->bits - 1;
    uint64_t codes = (uint64_t)(-range[0] > range[1] ? -range[0] : range[1]);
    int n = 63 - __builtin_clzll(codes) - ilogbf(most);         /* n + 1 clips */
    n = n > TN_POWER_MOST ? TN_POWER_MOST : n;
    n = n < TN_POWER_LEAST ? TN_POWER_LEAST : n;
    while (n > TN_POWER_LEAST && !(fits(&s->plan, low, n) && fits(&s->plan, high, n)))
        n--;
    return n;
}

/* The most that the error of an element can be in the first trial, which clips none: half a step, or a step
 * if rounding is not to nearest.  Quotients that are rounded and zero points need more. */
static uint64_t most_of_each(const tn_scale_trials *s, bool exact)
{
    bool nearest = s->plan.rules.round <= TN_ROUND_HALF_UP && s->plan.arithmetic != TN_ARITH_MLI;
    if (exact)
        return UINT64_C(1) << (nearest ? 22 : 24);
    return UINT64_C(1) << (nearest && !s->zero ? 23 : 26);
}

void tn_scale_trials_limit(tn_scale_trials *s, uint64_t elements, bool exact)
{
    const uint64_t each = most_of_each(s, exact);
    if (elements < UINT64_MAX / each)
        s->most = elements * each;
}

/* How many trials of a scale can be the best.  In the first trial the error of each
 * element is at most half a step, or a step if rounding is not to nearest.  A trial in
 * which the error of `low` or `high` alone is larger than all these together is worse,
 * and so are the trials after it. */
static unsigned trials_for(const tn_scale_trials *s, float low, float high, int n, uint64_t elements)
{
    double most = (double)elements * (double)most_of_each(s, true), unit = unit_of(ldexpf(1, -n));
    unsigned k = 1;
    for (; k < s->trials && n + (int)k <= TN_POWER_MOST; k++) {
        double step = ldexp(1, -n - (int)k);
        double below = (double)s->plan.range[0] * step - (double)low,
               above = (double)high - (double)s->plan.range[1] * step;
        double clipped = below > above ? below : above;
        if (n > TN_POWER_LEAST && clipped > 0 && fmin(floor(clipped * clipped * unit), 0x1p53) > most)
            break;
    }
    return k;
}

void tn_scale_trials_powers(tn_scale_trials *s, uint64_t i, float low, float high, uint64_t elements)
{
    uint64_t count = s->plan.index.count;
    int n = power_for(s, low, high);
    for (unsigned k = 0; k < s->trials; k++)
        s->scale[k * count + i] = ldexpf(1, n + (int)k < TN_POWER_MOST ? -n - (int)k : -TN_POWER_MOST);
    unsigned trials = elements == UINT64_MAX ? s->trials : trials_for(s, low, high, n, elements);
    s->tried = trials > s->tried ? trials : s->tried;
}

void tn_scale_trials_follow(tn_scale_trials *s, const tn_scale_trials *all)
{
    size_t items = (size_t)s->plan.index.count * s->trials;
    s->tried = all->tried;
    s->most = all->most;
    memcpy(s->scale, all->scale, items * sizeof *s->scale);
    if (s->zero)
        memcpy(s->zero, all->zero, items * sizeof *s->zero);
    memset(s->sum, 0, items * sizeof *s->sum);
}

/* --- the least error ------------------------------------------------------------ */

/* Saturates: a scale with such a sum is not the best. */
static void add_to(uint64_t *sum, uint64_t more)
{
    *sum = *sum + more < more ? UINT64_MAX : *sum + more;
}

/* Subtracts the zero point from n codes of 16 or 32 bits. */
static void subtract_zero(uint8_t *codes, size_t n, unsigned bits, int32_t zero)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t code = (uint32_t)tn_code_get(codes, i, bits) - (uint32_t)zero;
        tn_code_put(codes, i, bits, code);
    }
}

static tn_squares_fn squares_of(const tn_scale_trials *s)
{
    switch (s->plan.codes->bits) {
    case 8:  return s->kernels->squares_i8;
    case 16: return s->kernels->squares_i16;
    default: return s->kernels->squares_i32;
    }
}

/* Whether n elements are all of one scale, and the errors of trial k were too large before. */
static bool is_given_up(const tn_scale_trials *s, unsigned k, tn_scale_walk at, size_t n)
{
    return at.left >= n && s->sum[k * s->plan.index.count + at.scale] > s->most;
}

/* At most BLOCK finite elements. */
static void try_block(tn_scale_trials *s, const uint8_t *floats, uint64_t first, size_t n)
{
    uint8_t codes[BLOCK * sizeof(int32_t)];
    uint64_t count = s->plan.index.count;
    unsigned bits = s->plan.codes->bits;
    tn_squares_fn squares = squares_of(s);
    for (unsigned k = 0; k < s->tried; k++) {
        tn_scale_walk at = tn_scale_walk_at(s->plan.index, first);
        if (is_given_up(s, k, at, n))
            continue;
        s->plan.scale = s->scale + k * count;
        s->plan.zero = s->zero ? s->zero + k * count : NULL;
        tn_affine_encode(&s->plan, codes, floats, n, first, 0, NULL, NULL);         /* never fails */
        for (size_t i = 0, run; i < n; i += run) {
            run = at.left < n - i ? (size_t)at.left : n - i;
            if (s->zero)
                subtract_zero(codes + i * bits / 8, run, bits, s->plan.zero[at.scale]);
            add_to(&s->sum[k * count + at.scale],
                   squares(codes + i * bits / 8, floats + 4 * i, run, (double)s->plan.scale[at.scale],
                           unit_of(s->scale[at.scale])));
            tn_scale_walk_on(&at, s->plan.index, run);
        }
    }
}

/* Infinities and NaN become 0, which has no error at any scale. */
void tn_scale_trials_add(tn_scale_trials *s, const uint8_t *floats, uint64_t first, size_t n)
{
    uint32_t finite[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        memcpy(finite, floats + 4 * i, 4 * count);
        for (size_t k = 0; k < count; k++)
            finite[k] = (finite[k] & 0x7f800000) == 0x7f800000 ? 0 : finite[k];
        try_block(s, (const uint8_t *)finite, first + i, count);
    }
}

void tn_scale_trials_join(tn_scale_trials *all, const tn_scale_trials *one)
{
    for (uint64_t i = 0; i < all->plan.index.count * all->tried; i++)
        add_to(&all->sum[i], one->sum[i]);
}

void tn_scale_trials_choose(tn_scale_trials *all)
{
    uint64_t count = all->plan.index.count;
    for (uint64_t i = 0; i < count; i++) {
        unsigned best = 0;
        for (unsigned k = 1; k < all->tried; k++)
            best = all->sum[k * count + i] < all->sum[best * count + i] ? k : best;
        all->scale[i] = all->scale[best * count + i];
        if (all->zero)
            all->zero[i] = all->zero[best * count + i];
    }
}
