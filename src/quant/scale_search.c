/* quant/scale_search.c - find scales and zero points.
 *
 * A range takes one pass.  A percentile is an order statistic, found by a radix
 * search: floats become integer keys in the same order, and each pass finds some more
 * bits of the key, from the top, with a histogram.  Counts do not depend on the order
 * of values.  Scales follow from the range.  The least squared error takes one more
 * pass. */
#include "quant/scale_search.h"
#include "quant/scale_trials.h"
#include "quant/tile.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/fenv.h"
#include "base/options.h"
#include "tensor/array.h"

#define LIMIT (UINT64_C(256) << 20)     /* most bytes of one tally */
#define ALL_TALLIES ((size_t)256 << 20) /* most bytes of all tallies */
#define LITTLE (UINT64_C(16) << 20)     /* most bytes of histograms of MANY_BITS */

enum {
    BLOCK = 1024,               /* elements cast at a time: a multiple of 8, so that packed types end on a
                                 * byte */
    KEY_BITS = 32,
    MANY_BITS = 11,             /* per pass if memory is sufficient: 3 passes */
    FEW_BITS = 8                /* per pass otherwise: 4 passes */
};

/* One order statistic of the values of one scale. */
typedef struct wanted {
    uint32_t key;               /* the upper bits found so far */
    uint64_t rank;              /* among the keys with these bits, from 1; 0: no values */
} wanted;

struct tn_scale_tally {
    tn_affine        affine;
    tn_quantize_options options;
    tn_scale_index   index;
    bool             symmetric;
    int64_t          codes[2];
    const tn_quant_kernels *kernels;
    const tn_dtype_info *from;
    float           *low, *high;        /* per scale; symmetric percentiles: -high, high */
    tn_encode_rules  rules;             /* of rounding to codes, for short scales */
    bool             has_trials;
    bool             trying;            /* the last pass: least squared errors */
    uint64_t         elements;          /* of all scales, counted in the first pass */
    unsigned         wants;             /* order statistics per scale, 1 or 2; 0: the full range */
    unsigned         bits, found;       /* bits of the keys per pass, found so far */
    wanted          *wanted;            /* [wants][count] */
    uint64_t        *bins;              /* [wants][count][1 << bits] */
    uint64_t         bytes;
    /* last, because they are large: */
    tn_cast_plan     widen;             /* to float32 */
    tn_scale_trials  trials;            /* has_trials: powers of two and least squared errors */
};

/* --- memory ------------------------------------------------------------------ */

static tn_status check_rule(const tn_affine *a, const tn_quantize_options *o, const int64_t codes[2],
                            tn_error *err)
{
    if (o->rule != TN_SCALE_MAX && o->rule != TN_SCALE_MSE)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "scales along whole dimensions need the rule %d or %d but found %d", TN_SCALE_MAX,
                       TN_SCALE_MSE, (int)o->rule);
    if (!(o->percentile >= 0 && o->percentile <= 100))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a percentile above 0 and at most 100 but found %.17g",
                       o->percentile);
    if (a->symmetric && -codes[0] < codes[1])
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a lowest symmetric code of at most %" PRId64 " but found %" PRId64,
                       -codes[1], codes[0]);
    return TN_OK;
}

/* Bytes of the arrays of a tally, or UINT64_MAX if too large; `more`: other bytes per scale. */
static uint64_t bytes_for(uint64_t count, unsigned wants, unsigned bits, size_t more)
{
    uint64_t each = 2 * sizeof(float) + more, bytes;
    if (wants)
        each += wants * (sizeof(wanted) + (sizeof(uint64_t) << bits));
    return tn_mul_u64(count, each, &bytes) ? bytes : UINT64_MAX;
}

static tn_status allocate(tn_scale_tally *t, tn_error *err)
{
    size_t count = (size_t)t->index.count, n = count ? count : 1;
    t->low = calloc(n, sizeof *t->low);
    t->high = calloc(n, sizeof *t->high);
    if (t->wants) {
        t->wanted = calloc(n * t->wants, sizeof *t->wanted);
        t->bins = calloc(n * t->wants, sizeof *t->bins << t->bits);
    }
    return !t->low || !t->high || (t->wants && (!t->wanted || !t->bins)) ? tn_fail_nomem(err) : TN_OK;
}

/* Chooses the bits per pass and checks the memory. */
static tn_status plan_memory(tn_scale_tally *t, tn_error *err)
{
    size_t more = tn_scale_trials_bytes(&t->affine, t->options.rule);
    t->bits = bytes_for(t->index.count, t->wants, MANY_BITS, more) <= LITTLE ? MANY_BITS : FEW_BITS;
    t->bytes = bytes_for(t->index.count, t->wants, t->bits, more);
    if (t->bytes <= LIMIT)
        return TN_OK;
    const char *how = t->options.rule == TN_SCALE_MSE ? " by least error" : "";
    return tn_fail(err, TN_ERR_LIMIT, "expected at most %" PRIu64 " scales%s but found %" PRIu64,
                   LIMIT / bytes_for(1, t->wants, FEW_BITS, more), t->wants ? " by percentile" : how,
                   t->index.count);
}

static tn_status set_up(tn_scale_tally *t, tn_error *err)
{
    const tn_quantize_options *o = &t->options;
    TN_TRY(tn_affine_range(&t->affine, t->codes, err));
    TN_TRY(check_rule(&t->affine, o, t->codes, err));
    if (!t->from || t->from->kind != TN_KIND_FLOAT)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected values of a float type but found %s",
                       t->from ? t->from->name : "an unknown type");
    if (tn_has_percentile(o))
        t->wants = t->symmetric ? 1 : 2;
    TN_TRY(plan_memory(t, err));
    t->has_trials = tn_scale_trials_of(&t->affine, o->rule) > 0;
    if (t->has_trials)
        t->trials = (tn_scale_trials){ 0 };
    if (t->has_trials)
        TN_TRY(tn_scale_trials_init(&t->trials, &t->affine, o, t->codes, t->index, err));
    TN_TRY(tn_cast_plan_make(&t->widen, TN_FLOAT32, t->from->dtype, TN_HOST_ORDER, NULL, err));
    return allocate(t, err);
}

tn_status tn_scale_tally_new(const tn_affine *affine, const tn_quantize_options *options, tn_dtype from,
                             tn_scale_index index, tn_scale_tally **tally, tn_error *err)
{
    tn_quantize_options own = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_quantize_options, percentile), &own, options, err));
    tn_scale_tally *t = malloc(sizeof *t);
    TN_NEED(t, err);
    memset(t, 0, offsetof(tn_scale_tally, widen));
    t->affine = *affine;
    t->index = index;
    t->symmetric = affine->symmetric;
    t->kernels = tn_quant_kernels_get();
    t->from = tn_dtype_get(from);
    t->options = own;
    const tn_cast_options rounding = { .size = sizeof rounding, .round = t->options.round };
    t->rules = tn_encode_rules_for(tn_dtype_get(TN_INT64), &rounding);
    tn_status status = set_up(t, err);
    if (status != TN_OK) {
        tn_scale_tally_free(t);
        return status;
    }
    *tally = t;
    return TN_OK;
}

void tn_scale_tally_restart(tn_scale_tally *t)
{
    size_t count = (size_t)t->index.count, n = count ? count : 1;
    memset(t->low, 0, n * sizeof *t->low);
    memset(t->high, 0, n * sizeof *t->high);
    if (t->wants) {
        memset(t->wanted, 0, n * t->wants * sizeof *t->wanted);
        memset(t->bins, 0, n * t->wants * (sizeof *t->bins << t->bits));
    }
    if (t->has_trials)
        tn_scale_trials_restart(&t->trials);
    t->elements = 0;
    t->found = 0;
    t->trying = false;
}

uint64_t tn_scale_tally_bytes(const tn_scale_tally *t)
{
    return t->bytes;
}

void tn_scale_tally_free(tn_scale_tally *t)
{
    if (!t)
        return;
    if (t->has_trials)
        tn_scale_trials_free(&t->trials);
    free(t->low);
    free(t->high);
    free(t->wanted);
    free(t->bins);
    free(t);
}

/* --- keys -------------------------------------------------------------------- */

/* Symmetric: the magnitude.  Otherwise all bits of negative numbers are inverted, so that they sort below
 * the others. */
static inline uint32_t key_of(uint32_t bits, bool symmetric)
{
    if (symmetric)
        return bits & 0x7fffffff;
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

static float number_of(uint32_t key, bool symmetric)
{
    uint32_t bits = key >> 31 ? key & 0x7fffffff : ~key;
    float x;
    if (symmetric)
        bits = key;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_at(const uint8_t *floats, size_t i)
{
    uint32_t bits;
    memcpy(&bits, floats + sizeof bits * i, sizeof bits);
    return bits;
}

static inline bool is_finite(uint32_t bits)
{
    return (bits & 0x7f800000) != 0x7f800000;
}

/* Bits of the key below those that this pass finds.  The last pass may find fewer. */
static unsigned shift_of(const tn_scale_tally *t)
{
    return t->found + t->bits < KEY_BITS ? KEY_BITS - t->found - t->bits : 0;
}

static uint64_t *bins_of(const tn_scale_tally *t, unsigned want, uint64_t scale)
{
    return t->bins + ((want * t->index.count + scale) << t->bits);
}

/* --- adding ------------------------------------------------------------------ */

/* The first pass: no bits are known, so one histogram serves both statistics. */
static void count_all(tn_scale_tally *t, const uint8_t *floats, size_t n, uint64_t scale)
{
    uint64_t *bins = bins_of(t, 0, scale);
    unsigned shift = shift_of(t);
    bool symmetric = t->symmetric;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_at(floats, i);
        if (is_finite(bits))
            bins[key_of(bits, symmetric) >> shift]++;
    }
}

static void count_known(tn_scale_tally *t, const uint8_t *floats, size_t n, uint64_t scale, unsigned want)
{
    uint64_t *bins = bins_of(t, want, scale);
    unsigned shift = shift_of(t), known = KEY_BITS - t->found;
    uint32_t upper = t->wanted[want * t->index.count + scale].key,
             mask = (UINT32_C(1) << (known - shift)) - 1;
    bool symmetric = t->symmetric;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_at(floats, i), key = key_of(bits, symmetric);
        if (key >> known == upper && is_finite(bits))
            bins[key >> shift & mask]++;
    }
}

static void count_run(tn_scale_tally *t, const uint8_t *floats, size_t n, uint64_t scale)
{
    if (t->found == 0)
        count_all(t, floats, n, scale);
    for (unsigned want = 0; want < t->wants && t->found; want++)
        count_known(t, floats, n, scale, want);
}

void tn_scale_tally_count(tn_scale_tally *t, const float *x, size_t n, uint64_t scale)
{
    count_run(t, (const uint8_t *)x, n, scale);
}

void tn_scale_tally_range(const tn_scale_tally *t, uint64_t scale, float *low, float *high)
{
    *low = t->low[scale];
    *high = t->high[scale];
}

static void count(tn_scale_tally *t, const uint8_t *floats, uint64_t first, size_t n)
{
    tn_scale_walk at = tn_scale_walk_at(t->index, first);
    for (size_t i = 0, run; i < n; i += run) {
        run = at.left < n - i ? (size_t)at.left : n - i;
        count_run(t, floats + 4 * i, run, at.scale);
        tn_scale_walk_on(&at, t->index, run);
    }
}

/* Short runs, one by one. */
static void widen_each(tn_scale_tally *t, const uint8_t *floats, uint64_t first, size_t n)
{
    tn_scale_walk at = tn_scale_walk_at(t->index, first);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_at(floats, i);
        float x = is_finite(bits) ? number_of(bits, true) : 0, *low = t->low + at.scale,
              *high = t->high + at.scale;
        *low = x < *low ? x : *low;
        *high = x > *high ? x : *high;
        tn_scale_walk_on(&at, t->index, 1);
    }
}

static void widen_ranges(tn_scale_tally *t, const uint8_t *floats, uint64_t first, size_t n)
{
    bool long_runs = t->index.inner >= TN_SCALE_RUN,
         long_rows = t->index.inner == 1 && t->index.count >= TN_SCALE_RUN;
    if (!long_runs && !long_rows) {
        widen_each(t, floats, first, n);
        return;
    }
    for (size_t i = 0, run; i < n; i += run) {
        tn_scale_walk at = tn_scale_walk_at(t->index, first + i);
        uint64_t left = long_runs ? at.left : t->index.count - at.scale;
        run = left < n - i ? (size_t)left : n - i;
        (long_runs ? t->kernels->range : t->kernels->range_each)(t->low + at.scale, t->high + at.scale,
                                                                 floats + 4 * i, run);
    }
}

static void add_floats(tn_scale_tally *t, const uint8_t *floats, uint64_t first, size_t n)
{
    if (t->trying)
        tn_scale_trials_add(&t->trials, floats, first, n);
    else if (t->wants)
        count(t, floats, first, n);
    else
        widen_ranges(t, floats, first, n);
}

void tn_scale_tally_add(tn_scale_tally *t, const void *elements, uint64_t first, size_t n)
{
    uint8_t floats[BLOCK * sizeof(float)];
    if (n == 0)
        return;
    t->elements += n;
    if (t->from->dtype == TN_FLOAT32) {
        add_floats(t, elements, first, n);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t size = n - i < BLOCK ? n - i : BLOCK;
        const uint8_t *src = (const uint8_t *)elements + tn_packed_byte(i, t->from->bits);
        tn_cast_block(&t->widen, floats, src, size, first + i, 0, NULL, NULL);      /* never fails */
        add_floats(t, floats, first + i, size);
    }
}

void tn_scale_tally_join(tn_scale_tally *all, const tn_scale_tally *one)
{
    if (all->trying) {
        tn_scale_trials_join(&all->trials, &one->trials);
        return;
    }
    all->elements += one->elements;
    for (uint64_t i = 0; i < all->index.count && !all->wants; i++) {
        all->low[i] = one->low[i] < all->low[i] ? one->low[i] : all->low[i];
        all->high[i] = one->high[i] > all->high[i] ? one->high[i] : all->high[i];
    }
    uint64_t bins = (all->wants * all->index.count) << all->bits;
    for (uint64_t i = 0; i < bins; i++)
        all->bins[i] += one->bins[i];
}

/* --- percentiles ------------------------------------------------------------- */

/* Sets the ranks, from 1, of the ends of the range among n values: see tenon/quantize.h. */
static void choose_ranks(const tn_scale_tally *t, uint64_t scale, uint64_t n)
{
    if (n == 0)
        return;
    uint64_t fit = tn_percentile_count(n, t->options.percentile), out = (n - fit) / 2;
    t->wanted[scale].rank = t->wants == 1 ? fit : 1 + out;
    if (t->wants == 2)
        t->wanted[t->index.count + scale].rank = n - out;
}

static void find_bits(const tn_scale_tally *t, const uint64_t *bins, wanted *w)
{
    uint32_t bin = 0;
    if (w->rank == 0)
        return;
    for (; bins[bin] < w->rank; bin++)
        w->rank -= bins[bin];
    unsigned bits = KEY_BITS - t->found - shift_of(t);
    w->key = (uint32_t)((uint64_t)w->key << bits | bin);
}

static void finish(tn_scale_tally *t)
{
    for (uint64_t i = 0; i < t->index.count; i++) {
        const wanted *first = &t->wanted[i], *last = &t->wanted[(t->wants - 1) * t->index.count + i];
        float low = number_of(first->key, t->symmetric), high = number_of(last->key, t->symmetric);
        bool none = first->rank == 0;
        low = t->symmetric ? -high : low;
        t->low[i] = none || low > 0 ? 0 : low;
        t->high[i] = none || high < 0 ? 0 : high;
    }
}

/* Ends a pass.  Returns whether some bits are still unknown. */
static bool more_bits(tn_scale_tally *t)
{
    for (uint64_t i = 0; i < t->index.count; i++) {
        uint64_t n = 0;
        for (uint32_t bin = 0; t->found == 0 && bin < UINT32_C(1) << t->bits; bin++)
            n += bins_of(t, 0, i)[bin];
        if (t->found == 0)
            choose_ranks(t, i, n);
        for (unsigned want = 0; want < t->wants; want++)
            find_bits(t, bins_of(t, t->found == 0 ? 0 : want, i), &t->wanted[want * t->index.count + i]);
    }
    t->found = KEY_BITS - shift_of(t);
    memset(t->bins, 0, (size_t)((t->wants * t->index.count * sizeof *t->bins) << t->bits));
    if (t->found == KEY_BITS)
        finish(t);
    return t->found < KEY_BITS;
}

/* --- scales ------------------------------------------------------------------ */

/* Avoids subnormal scales, which have few significant bits. */
static float usable(float scale)
{
    return fminf(fmaxf(scale, FLT_MIN), FLT_MAX);
}

/* Uses halves, which are exact, if the difference overflows. */
static float scale_between(float low, float high, float steps)
{
    float width = high - low;
    return usable(width <= FLT_MAX ? width / steps : (high * 0.5f - low * 0.5f) / (steps * 0.5f));
}

/* Rounds up to a number of `bits` bits, at most the largest one. */
static float rounded_up(double scale, unsigned bits)
{
    int exponent;
    double least = fmax(scale, (double)FLT_MIN),
           largest = ldexp(ldexp(1, (int)bits) - 1, FLT_MAX_EXP - (int)bits);
    frexp(least, &exponent);
    int last = exponent - (int)bits < TN_SHORT_SCALE_LEAST ? TN_SHORT_SCALE_LEAST : exponent - (int)bits;
    return (float)fmin(ldexp(ceil(ldexp(least, -last)), last), largest);
}

/* Rounds the binary64 quotient up once.  If rounding to codes still clips an end of the
 * range, takes the next larger scale. */
static float short_scale(const tn_scale_tally *t, float low, float high)
{
    unsigned bits = t->affine.scale_bits;
    if (!t->symmetric)
        return rounded_up(((double)high - (double)low) / (double)(t->codes[1] - t->codes[0]), bits);
    float before = 0, scale = rounded_up((double)fmaxf(-low, high) / (double)t->codes[1], bits);
    while (scale > before && !(tn_affine_fits(t->affine.arithmetic, &t->rules, t->codes, low, scale) &&
                               tn_affine_fits(t->affine.arithmetic, &t->rules, t->codes, high, scale))) {
        before = scale;
        scale = rounded_up((double)nextafterf(scale, INFINITY), bits);
    }
    return scale;
}

static int32_t zero_of(float low, float scale, const int64_t codes[2])
{
    double zero = (double)rintf((float)codes[0] - low / scale);
    return (int32_t)fmin(fmax(zero, (double)codes[0]), (double)codes[1]);
}

/* The scale and zero point of a range; zero may be NULL. */
static void scale_of_range(const tn_scale_tally *t, float low, float high, float *scale, int32_t *zero)
{
    float most = -low > high ? -low : high;
    int64_t none = 0;           /* the code nearest to 0 */
    if (t->codes[0] > 0 || t->codes[1] < 0)
        none = t->codes[0] > 0 ? t->codes[0] : t->codes[1];
    if (most == 0)
        *scale = 1;
    else if (t->affine.scale_bits)
        *scale = short_scale(t, low, high);
    else if (t->symmetric)
        *scale = usable(most / (float)t->codes[1]);
    else
        *scale = scale_between(low, high, (float)(t->codes[1] - t->codes[0]));
    if (!zero)
        return;
    *zero = 0;
    if (!t->symmetric)
        *zero = most == 0 ? (int32_t)none : zero_of(low, *scale, t->codes);
}

/* --- trials ------------------------------------------------------------------- */

/* A multiple of 1/16 of the scale of a symmetric range. */
static float part_of_scale(const tn_scale_tally *t, float low, float high, unsigned sixteenths)
{
    float most = -low > high ? -low : high, scale = most / (float)t->codes[1] * ((float)sixteenths / 16);
    if (most == 0)
        return 1;
    return t->affine.scale_bits ? rounded_up((double)scale, t->affine.scale_bits) : usable(scale);
}

/* Sets the trials of scale i.  The first is the scale of the range. */
static void set_trials(tn_scale_tally *t, uint64_t i)
{
    tn_scale_trials *s = &t->trials;
    for (unsigned k = 0; k < s->trials; k++) {
        uint64_t at = k * t->index.count + i;
        float *scale = &s->scale[at], low = t->low[i], high = t->high[i];
        unsigned before = TN_RATIO_LOW + k <= 16;       /* 16/16 is trial 0, the others follow in order */
        if (!t->symmetric)
            scale_of_range(t, low * tn_range_ends[k / TN_RANGE_ENDS], high * tn_range_ends[k % TN_RANGE_ENDS],
                           scale, &s->zero[at]);
        else if (k == 0)
            scale_of_range(t, low, high, scale, NULL);
        else
            *scale = part_of_scale(t, low, high, TN_RATIO_LOW + k - before);
    }
    s->tried = s->trials;
}

/* The first trials clip no value, unless a percentile is wanted or a scale is the largest power of two. */
static void limit_trials(tn_scale_tally *t)
{
    bool clips = t->wants > 0;
    for (uint64_t i = 0; i < t->index.count && t->affine.power; i++)
        clips |= !(t->trials.scale[i] < 0x1p127f);
    if (!clips && t->index.count)
        tn_scale_trials_limit(&t->trials, t->elements / t->index.count, t->affine.power);
}

/* Runs after the passes over the range. */
static void begin_trials(tn_scale_tally *t)
{
    tn_fenv callers;            /* the pool does not set the default environment here */
    tn_fenv_enter(&callers);
    for (uint64_t i = 0; i < t->index.count; i++) {
        if (t->affine.power)
            tn_scale_trials_powers(&t->trials, i, t->low[i], t->high[i], t->wants ? UINT64_MAX : t->elements);
        else
            set_trials(t, i);
    }
    limit_trials(t);
    tn_fenv_leave(&callers);
}

bool tn_scale_tally_more(tn_scale_tally *t)
{
    if (t->trying) {
        tn_scale_trials_choose(&t->trials);
        t->trying = false;
        return false;
    }
    if (t->wants && more_bits(t))
        return true;
    if (t->has_trials)
        begin_trials(t);
    t->trying = t->has_trials && t->options.rule == TN_SCALE_MSE;
    return t->trying;
}

void tn_scale_tally_again(tn_scale_tally *one, const tn_scale_tally *all)
{
    one->trying = all->trying;
    if (all->trying) {
        tn_scale_trials_follow(&one->trials, &all->trials);
        return;
    }
    one->found = all->found;
    memcpy(one->wanted, all->wanted, (size_t)(all->wants * all->index.count) * sizeof *all->wanted);
    memset(one->bins, 0, (size_t)((one->wants * one->index.count * sizeof *one->bins) << one->bits));
}

void tn_scale_tally_scales(const tn_scale_tally *t, float *scale, int32_t *zero)
{
    tn_fenv callers;            /* the pool does not set the default environment here */
    tn_fenv_enter(&callers);
    for (uint64_t i = 0; i < t->index.count; i++) {
        if (!t->has_trials) {
            scale_of_range(t, t->low[i], t->high[i], &scale[i], zero ? &zero[i] : NULL);
            continue;
        }
        scale[i] = t->trials.scale[i];
        if (zero)
            zero[i] = t->trials.zero ? t->trials.zero[i] : 0;
    }
    tn_fenv_leave(&callers);
}

/* --- all passes ------------------------------------------------------------------ */

typedef struct search {
    const tn_scale_source *source;
    tn_scale_tally **tallies;           /* one per thread; the first is the result */
    unsigned         jobs;
    tn_pool         *pool;
} search;

static tn_status add_item(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const search *s = context;
    return s->source->add(s->source->context, item, use.scratch, s->tallies[use.scratch], err);
}

static tn_status end_item(void *context, uint64_t item, unsigned slot, tn_error *err)
{
    const search *s = context;
    return s->source->done ? s->source->done(s->source->context, item, slot, err) : TN_OK;
}

/* By the calling thread, as a pool would. */
static tn_status run_alone(search *s, tn_error *err)
{
    tn_status status = TN_OK;
    tn_fenv callers;
    tn_fenv_enter(&callers);
    for (uint64_t i = 0; i < s->source->items && !status; i++) {
        status = add_item(s, i, (tn_pool_use){ 0 }, err);
        if (!status)
            status = end_item(s, i, 0, err);
    }
    tn_fenv_leave(&callers);
    return status;
}

/* Runs one pass.  *again: one more is needed. */
static tn_status run_pass(search *s, bool *again, tn_error *err)
{
    const tn_ordered task = { add_item, end_item, s };
    TN_TRY(s->pool ? tn_pool_run(s->pool, s->source->items, &task, err) : run_alone(s, err));
    for (unsigned i = 1; i < s->jobs; i++)
        tn_scale_tally_join(s->tallies[0], s->tallies[i]);
    *again = tn_scale_tally_more(s->tallies[0]);
    for (unsigned i = 1; i < s->jobs && *again; i++)
        tn_scale_tally_again(s->tallies[i], s->tallies[0]);
    return TN_OK;
}

/* Limits the threads to the number of items and to the memory. */
static unsigned threads_for(const search *s, unsigned jobs, size_t bytes)
{
    uint64_t fit = bytes ? ALL_TALLIES / bytes : UINT64_MAX,
             most = s->source->items < fit ? s->source->items : fit;
    if (jobs == 0)
        jobs = tn_core_count();
    if (most < 1)
        return 1;
    return jobs < most ? jobs : (unsigned)most;
}

tn_status tn_scale_search(tn_scale_tally *tally, const tn_scale_source *source, unsigned jobs, tn_error *err)
{
    search s = { .source = source };
    bool again = true;
    s.jobs = threads_for(&s, jobs, (size_t)tally->bytes);
    s.tallies = s.jobs > 1 ? calloc(s.jobs, sizeof *s.tallies) : &tally;
    TN_NEED(s.tallies, err);
    s.tallies[0] = tally;
    tn_status status = s.jobs > 1 ? tn_pool_new(s.jobs, &s.pool, err) : TN_OK;
    for (unsigned i = 1; i < s.jobs && status == TN_OK; i++)
        status = tn_scale_tally_new(&tally->affine, &tally->options, tally->from->dtype, tally->index,
                                    &s.tallies[i], err);
    while (status == TN_OK && again)
        status = run_pass(&s, &again, err);
    tn_pool_free(s.pool);
    for (unsigned i = 1; i < s.jobs; i++)
        tn_scale_tally_free(s.tallies[i]);
    if (s.jobs > 1)
        free(s.tallies);
    return status;
}
