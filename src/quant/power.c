/* quant/power.c - scales that are powers of two. */
#include "quant/power.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { BLOCK = 1024 };          /* elements at a time */

/* --- making ------------------------------------------------------------------ */

static unsigned trials_of(const tn_dtype_info *codes, tn_scale_rule rule)
{
    return rule == TN_SCALE_LEAST ? codes->bits + 1u : 1;
}

size_t tn_power_bytes(const tn_dtype_info *codes, tn_scale_rule rule)
{
    return trials_of(codes, rule) * (sizeof(float) + sizeof(uint64_t));
}

tn_status tn_power_search_init(tn_power_search *s, const tn_dtype_info *codes, const int64_t range[2],
                               tn_scale_index index, const tn_quantize_options *options, tn_error *err)
{
    tn_dtype container = codes->bits <= 8 ? TN_INT8 : codes->bits <= 16 ? TN_INT16 : TN_INT32;
    tn_quantize_options o = *options;
    o.range[0] = range[0];
    o.range[1] = range[1];
    o.nan = TN_NAN_ZERO;
    s->kernels = tn_quant_kernels_get();
    s->bits = codes->bits;
    s->trials = trials_of(codes, o.rule);
    size_t count = (size_t)index.count, all = (count ? count : 1) * s->trials;
    s->scale = malloc(all * sizeof *s->scale);
    s->sum = calloc(all, sizeof *s->sum);
    if (!s->scale || !s->sum)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < all; i++)
        s->scale[i] = 1;
    return tn_quant_plan_make(&s->plan, container, TN_FLOAT32, false, index, s->scale, NULL, &o, err);
}

void tn_power_search_free(tn_power_search *s)
{
    free(s->scale);
    free(s->sum);
}

/* Squares are in units of 2^-24 of the square of the first trial's step. */
static double unit_of(float first)
{
    return 0x1p24 / ((double)first * (double)first);
}

/* --- the power at which nothing is cut ----------------------------------------- */

static bool fits(const tn_quant_plan *plan, float x, int n)
{
    return tn_quant_fits(plan->arithmetic, &plan->rules, plan->range, x, ldexpf(1, -n));
}

static int power_for(const tn_power_search *s, float low, float high)
{
    const int64_t *range = s->plan.range;
    float most = -low > high ? -low : high;
    if (most == 0)
        return (int)s->bits - 1;
    uint64_t codes = (uint64_t)(-range[0] > range[1] ? -range[0] : range[1]);
    int n = 63 - __builtin_clzll(codes) - ilogbf(most);         /* one more, and it is beyond every code */
    n = n > TN_POWER_MOST ? TN_POWER_MOST : n < TN_POWER_LEAST ? TN_POWER_LEAST : n;
    while (n > TN_POWER_LEAST && !(fits(&s->plan, low, n) && fits(&s->plan, high, n)))
        n--;
    return n;
}

/* How many trials of a scale may be the best, with so many elements: the first
 * is wrong by at most half a step or (not to the nearest) a step each; where the
 * error of the lowest or the highest value alone is more, and in the trials after
 * that, the sum is larger. */
static unsigned trials_for(const tn_power_search *s, float low, float high, int n, uint64_t elements)
{
    bool nearest = s->plan.rules.round <= TN_ROUND_HALF_UP && s->plan.arithmetic != TN_ARITH_MLI;
    double most = (double)elements * (nearest ? 0x1p22 : 0x1p24), unit = unit_of(ldexpf(1, -n));
    unsigned k = 1;
    for (; k < s->trials && n + (int)k <= TN_POWER_MOST; k++) {
        double step = ldexp(1, -n - (int)k);
        double below = (double)s->plan.range[0] * step - (double)low,
               above = (double)high - (double)s->plan.range[1] * step;
        double cut = below > above ? below : above;
        if (n > TN_POWER_LEAST && cut > 0 && fmin(floor(cut * cut * unit), 0x1p53) > most)
            break;
    }
    return k;
}

void tn_power_search_begin(tn_power_search *s, const float *low, const float *high, uint64_t elements)
{
    uint64_t count = s->plan.index.count;
    s->tried = 1;
    fenv_t callers;             /* not in the work of a pool: the default environment all the same */
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    for (uint64_t i = 0; i < count; i++) {
        int n = power_for(s, low[i], high[i]);
        for (unsigned k = 0; k < s->trials; k++)
            s->scale[k * count + i] = ldexpf(1, n + (int)k < TN_POWER_MOST ? -n - (int)k : -TN_POWER_MOST);
        unsigned trials = trials_for(s, low[i], high[i], n, elements);
        s->tried = trials > s->tried ? trials : s->tried;
    }
    fesetenv(&callers);
}

void tn_power_search_follow(tn_power_search *s, const tn_power_search *all)
{
    size_t items = (size_t)s->plan.index.count * s->trials;
    s->tried = all->tried;
    memcpy(s->scale, all->scale, items * sizeof *s->scale);
    memset(s->sum, 0, items * sizeof *s->sum);
}

/* --- the least error ------------------------------------------------------------ */

/* A sum that is full stays so: no such scale is the best. */
static void add_to(uint64_t *sum, uint64_t more)
{
    *sum = *sum + more < more ? UINT64_MAX : *sum + more;
}

/* At most BLOCK finite elements. */
static void try_block(tn_power_search *s, const uint8_t *floats, uint64_t first, size_t n)
{
    uint8_t codes[BLOCK * sizeof(int32_t)];
    uint64_t count = s->plan.index.count;
    unsigned bits = s->plan.codes->bits;
    tn_squares_fn squares = bits == 8    ? s->kernels->squares_i8
                            : bits == 16 ? s->kernels->squares_i16
                                         : s->kernels->squares_i32;
    for (unsigned k = 0; k < s->tried; k++) {
        tn_scale_walk at = tn_scale_walk_at(s->plan.index, first);
        s->plan.scale = s->scale + k * count;
        tn_quantize_block(&s->plan, codes, floats, n, first, 0, NULL, NULL);        /* refuses nothing */
        for (size_t i = 0, run; i < n; i += run) {
            run = at.left < n - i ? (size_t)at.left : n - i;
            add_to(&s->sum[k * count + at.scale],
                   squares(codes + i * bits / 8, floats + 4 * i, run, (double)s->plan.scale[at.scale],
                           unit_of(s->scale[at.scale])));
            tn_scale_walk_on(&at, s->plan.index, run);
        }
    }
}

/* What is not finite becomes 0, which no scale has an error for. */
void tn_power_search_add(tn_power_search *s, const uint8_t *floats, uint64_t first, size_t n)
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

void tn_power_search_join(tn_power_search *all, const tn_power_search *one)
{
    for (uint64_t i = 0; i < all->plan.index.count * all->tried; i++)
        add_to(&all->sum[i], one->sum[i]);
}

void tn_power_search_choose(tn_power_search *all)
{
    uint64_t count = all->plan.index.count;
    for (uint64_t i = 0; i < count; i++) {
        unsigned best = 0;
        for (unsigned k = 1; k < all->tried; k++)
            best = all->sum[k * count + i] < all->sum[best * count + i] ? k : best;
        all->scale[i] = all->scale[best * count + i];
    }
}
