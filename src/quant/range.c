/* quant/range.c - scales and zeros from data, span by span.
 *
 * A range is found by looking once.  A percentile is an order statistic: the
 * bits of a number, put so that they count through the numbers in order, are
 * found from the top, so many in a round, by counting how many numbers go on
 * with which bits.  Counts do not depend on the order of things.  A power of two
 * comes from the range; the one with the least error is looked for in a second
 * round. */
#include "quant/power.h"

#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/array.h"

#define LIMIT (UINT64_C(256) << 20)     /* bytes of one tally */
#define LITTLE (UINT64_C(16) << 20)     /* bytes that are soon cleared and looked through */

enum {
    BLOCK = 1024,               /* elements widened at a time; a multiple of 8, so that packed types are cut
                                 * on a byte */
    KEY_BITS = 32,
    MANY_BITS = 11,             /* found in a round where that takes little memory: 3 rounds */
    FEW_BITS = 8                /* else 4 rounds */
};

/* One order statistic of the numbers of one scale. */
typedef struct wanted {
    uint32_t key;               /* the upper bits found so far */
    uint64_t rank;              /* among the numbers with these, from 1; 0: there are none */
} wanted;

struct tn_range_tally {
    tn_scale_index   index;
    bool             symmetric;
    int64_t          codes[2];
    const tn_quant_kernels *kernels;
    const tn_dtype_info *from;
    tn_cast_plan     widen;             /* to float32 */
    float           *low, *high;        /* of each scale; symmetric percentiles: -high, high */
    tn_scale_rule    rule;
    unsigned         scale_bits;        /* RANGE and PERCENTILE; 0: any */
    tn_arithmetic arithmetic;     /* of the codes to come, for scales of few bits */
    tn_encode_rules  rules;
    tn_power_search  power;             /* POWER and LEAST */
    bool             trying;            /* LEAST: the second round */
    uint64_t         elements;          /* of all scales, in the first */
    double           percentile;
    unsigned         wants;             /* order statistics of a scale: 0, then the range is what is asked
                                         * for, 1 or 2 */
    unsigned         bits, found;       /* of the keys: in a round, so far */
    wanted          *wanted;            /* [wants][count] */
    uint64_t        *bins;              /* [wants][count][1 << bits] */
    uint64_t         bytes;
};

/* --- making ------------------------------------------------------------------ */

static bool by_power(tn_scale_rule rule)
{
    return rule == TN_SCALE_POWER || rule == TN_SCALE_LEAST;
}

static tn_status check_rule(const tn_quantize_options *o, const int64_t codes[2], tn_error *err)
{
    if (o->rule != TN_SCALE_RANGE && o->rule != TN_SCALE_PERCENTILE && !by_power(o->rule))
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "scales from data need the rule %d, %d, %d or %d but found %d", TN_SCALE_RANGE,
                       TN_SCALE_PERCENTILE, TN_SCALE_POWER, TN_SCALE_LEAST, (int)o->rule);
    if (o->rule == TN_SCALE_PERCENTILE && !(o->percentile > 0 && o->percentile <= 100))
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "expected a percentile above 0 and at most 100 but found %.17g", o->percentile);
    if (by_power(o->rule) && !o->symmetric)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "scales that are powers of two need symmetric codes");
    if (o->scale_bits > FLT_MANT_DIG)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a scale of at most %d bits but found %u",
                       FLT_MANT_DIG, o->scale_bits);
    if (o->symmetric && -codes[0] < codes[1])
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "expected a lowest symmetric code of at most %" PRId64 " but found %" PRId64,
                       -codes[1], codes[0]);
    return TN_OK;
}

/* Bytes of a tally's arrays, or UINT64_MAX; `more`: other bytes a scale. */
static uint64_t bytes_for(uint64_t count, unsigned wants, unsigned bits, size_t more)
{
    uint64_t each = 2 * sizeof(float) + more, bytes;
    if (wants)
        each += wants * (sizeof(wanted) + (sizeof(uint64_t) << bits));
    return tn_mul_u64(count, each, &bytes) ? bytes : UINT64_MAX;
}

static tn_status allocate(tn_range_tally *t, tn_error *err)
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

/* How many bits a round finds, and the memory it all takes. */
static tn_status measure(tn_range_tally *t, tn_dtype codes, tn_error *err)
{
    size_t more = by_power(t->rule) ? tn_power_bytes(tn_dtype_get(codes), t->rule) : 0;
    t->bits = bytes_for(t->index.count, t->wants, MANY_BITS, more) <= LITTLE ? MANY_BITS : FEW_BITS;
    t->bytes = bytes_for(t->index.count, t->wants, t->bits, more);
    if (t->bytes > LIMIT)
        return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET,
                       "expected at most %" PRIu64 " scales%s but found %" PRIu64,
                       LIMIT / bytes_for(1, t->wants, FEW_BITS, more),
                       t->wants                    ? " by percentile"
                       : t->rule == TN_SCALE_LEAST ? " by least error"
                                                   : "",
                       t->index.count);
    return TN_OK;
}

static tn_status set_up(tn_range_tally *t, tn_dtype codes, tn_dtype from, const tn_quantize_options *o,
                        tn_error *err)
{
    tn_status status = tn_code_range(codes, o, t->codes, err);
    if (status == TN_OK)
        status = check_rule(o, t->codes, err);
    if (status != TN_OK)
        return status;
    if (!t->from || t->from->kind != TN_KIND_FLOAT)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected values of a float type but found %s",
                       t->from ? t->from->name : "an unknown type");
    if (o->rule == TN_SCALE_PERCENTILE && o->percentile < 100)
        t->wants = o->symmetric ? 1 : 2;
    status = measure(t, codes, err);
    if (status == TN_OK && by_power(t->rule))
        status = tn_power_search_init(&t->power, tn_dtype_get(codes), t->codes, t->index, o, err);
    if (status == TN_OK)
        status = tn_cast_plan_make(&t->widen, TN_FLOAT32, from, TN_HOST_ORDER, NULL, err);
    return status ? status : allocate(t, err);
}

tn_status tn_range_tally_new(tn_dtype codes, tn_dtype from, tn_scale_index index,
                             const tn_quantize_options *options, tn_range_tally **tally, tn_error *err)
{
    const tn_quantize_options o = tn_quantize_options_take(options);
    tn_range_tally *t = malloc(sizeof *t);
    if (!t)
        return tn_fail_nomem(err);
    *t = (tn_range_tally){
        .index = index, .symmetric = o.symmetric, .kernels = tn_quant_kernels_get(),
        .from = tn_dtype_get(from),
        .rule = o.rule, .scale_bits = o.scale_bits, .percentile = o.percentile, .arithmetic = o.arithmetic,
        .rules = tn_encode_rules_for(tn_dtype_get(TN_INT64),
                                     &(tn_cast_options){ .size = sizeof(tn_cast_options), .round = o.round }),
    };
    tn_status status = set_up(t, codes, from, &o, err);
    if (status != TN_OK) {
        tn_range_tally_free(t);
        return status;
    }
    *tally = t;
    return TN_OK;
}

void tn_range_tally_free(tn_range_tally *t)
{
    if (!t)
        return;
    tn_power_search_free(&t->power);
    free(t->low);
    free(t->high);
    free(t->wanted);
    free(t->bins);
    free(t);
}

size_t tn_range_tally_bytes(const tn_range_tally *t)
{
    return (size_t)t->bytes;
}

/* --- keys -------------------------------------------------------------------- */

/* Symmetric: the magnitude.  Else negative numbers upside down, below the others. */
static inline uint32_t key_of(uint32_t bits, bool symmetric)
{
    if (symmetric)
        return bits & 0x7fffffff;
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

static float number_of(uint32_t key, bool symmetric)
{
    uint32_t bits = symmetric ? key : key >> 31 ? key & 0x7fffffff : ~key;
    float x;
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

/* Bits of the key below those that this round finds; the last round may find fewer. */
static unsigned shift_of(const tn_range_tally *t)
{
    return t->found + t->bits < KEY_BITS ? KEY_BITS - t->found - t->bits : 0;
}

static uint64_t *bins_of(const tn_range_tally *t, unsigned want, uint64_t scale)
{
    return t->bins + ((want * t->index.count + scale) << t->bits);
}

/* --- adding ------------------------------------------------------------------ */

/* The first round: no bits are known, and the first statistic counts for both. */
static void count_all(tn_range_tally *t, const uint8_t *floats, size_t n, uint64_t scale)
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

static void count_known(tn_range_tally *t, const uint8_t *floats, size_t n, uint64_t scale, unsigned want)
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

static void count(tn_range_tally *t, const uint8_t *floats, uint64_t first, size_t n)
{
    tn_scale_walk at = tn_scale_walk_at(t->index, first);
    for (size_t i = 0, run; i < n; i += run) {
        run = at.left < n - i ? (size_t)at.left : n - i;
        if (t->found == 0)
            count_all(t, floats + 4 * i, run, at.scale);
        else
            for (unsigned want = 0; want < t->wants; want++)
                count_known(t, floats + 4 * i, run, at.scale, want);
        tn_scale_walk_on(&at, t->index, run);
    }
}

/* Short runs, one by one. */
static void widen_each(tn_range_tally *t, const uint8_t *floats, uint64_t first, size_t n)
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

static void widen_ranges(tn_range_tally *t, const uint8_t *floats, uint64_t first, size_t n)
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

static void add_floats(tn_range_tally *t, const uint8_t *floats, uint64_t first, size_t n)
{
    if (t->wants)
        count(t, floats, first, n);
    else if (t->trying)
        tn_power_search_add(&t->power, floats, first, n);
    else
        widen_ranges(t, floats, first, n);
}

void tn_range_tally_add(tn_range_tally *t, const void *elements, uint64_t first, size_t n)
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
        tn_cast_block(&t->widen, floats, src, size, first + i, 0, NULL, NULL);      /* refuses nothing */
        add_floats(t, floats, first + i, size);
    }
}

void tn_range_tally_join(tn_range_tally *all, const tn_range_tally *one)
{
    if (all->trying) {
        tn_power_search_join(&all->power, &one->power);
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

/* --- rounds ------------------------------------------------------------------ */

/* Which of n numbers in order, from 1, are the ends: see tenon/quantize.h. */
static void choose_ranks(const tn_range_tally *t, uint64_t scale, uint64_t n)
{
    double part = ceil((double)n * t->percentile / 100);
    uint64_t fit = part < 1 ? 1 : part >= (double)n ? n : (uint64_t)part, out = (n - fit) / 2;
    if (n == 0)
        return;
    t->wanted[scale].rank = t->wants == 1 ? fit : 1 + out;
    if (t->wants == 2)
        t->wanted[t->index.count + scale].rank = n - out;
}

static void find_bits(const tn_range_tally *t, const uint64_t *bins, wanted *w)
{
    uint32_t bin = 0;
    if (w->rank == 0)
        return;
    for (; bins[bin] < w->rank; bin++)
        w->rank -= bins[bin];
    unsigned bits = KEY_BITS - t->found - shift_of(t);
    w->key = (uint32_t)((uint64_t)w->key << bits | bin);
}

static void finish(tn_range_tally *t)
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

/* The range is known, or all errors are. */
static bool more_powers(tn_range_tally *t)
{
    if (t->trying)
        tn_power_search_choose(&t->power);
    else
        tn_power_search_begin(&t->power, t->low, t->high, t->elements);
    t->trying = !t->trying && t->rule == TN_SCALE_LEAST;
    return t->trying;
}

bool tn_range_tally_more(tn_range_tally *t)
{
    if (by_power(t->rule))
        return more_powers(t);
    if (!t->wants)
        return false;
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

void tn_range_tally_again(tn_range_tally *one, const tn_range_tally *all)
{
    if (all->trying) {
        one->trying = true;
        tn_power_search_follow(&one->power, &all->power);
        return;
    }
    one->found = all->found;
    memcpy(one->wanted, all->wanted, (size_t)(all->wants * all->index.count) * sizeof *all->wanted);
    memset(one->bins, 0, (size_t)((one->wants * one->index.count * sizeof *one->bins) << one->bits));
}

/* --- scales ------------------------------------------------------------------ */

/* What is less than the smallest normal number has few digits left, or none. */
static float usable(float scale)
{
    return scale < FLT_MIN ? FLT_MIN : scale > FLT_MAX ? FLT_MAX : scale;
}

/* Halves are exact where the difference would not fit. */
static float scale_between(float low, float high, float steps)
{
    float width = high - low;
    return usable(width <= FLT_MAX ? width / steps : (high * 0.5f - low * 0.5f) / (steps * 0.5f));
}

/* The next number of so many bits that is not below `scale`, or the largest there is. */
static float rounded_up(double scale, unsigned bits)
{
    int exponent;
    double least = fmax(scale, (double)FLT_MIN),
           largest = ldexp(ldexp(1, (int)bits) - 1, FLT_MAX_EXP - (int)bits);
    frexp(least, &exponent);
    int last = exponent - (int)bits < TN_SHORT_SCALE_LEAST ? TN_SHORT_SCALE_LEAST : exponent - (int)bits;
    return (float)fmin(ldexp(ceil(ldexp(least, -last)), last), largest);
}

/* From the quotient in binary64, so that it is rounded but once; and where the
 * codes to come are rounded in a way that cuts an end off all the same, further. */
static float short_scale(const tn_range_tally *t, float low, float high)
{
    if (!t->symmetric)
        return rounded_up(((double)high - (double)low) / (double)(t->codes[1] - t->codes[0]), t->scale_bits);
    float before = 0, scale = rounded_up((double)fmaxf(-low, high) / (double)t->codes[1], t->scale_bits);
    while (scale > before && !(tn_quant_fits(t->arithmetic, &t->rules, t->codes, low, scale) &&
                               tn_quant_fits(t->arithmetic, &t->rules, t->codes, high, scale))) {
        before = scale;
        scale = rounded_up((double)nextafterf(scale, INFINITY), t->scale_bits);
    }
    return scale;
}

static int32_t zero_of(float low, float scale, const int64_t codes[2])
{
    double zero = (double)rintf((float)codes[0] - low / scale);
    return (int32_t)fmin(fmax(zero, (double)codes[0]), (double)codes[1]);
}

void tn_range_tally_scales(const tn_range_tally *t, float *scale, int32_t *zero)
{
    fenv_t callers;             /* not in the work of a pool: the default environment all the same */
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    for (uint64_t i = 0; i < t->index.count; i++) {
        float low = t->low[i], high = t->high[i], most = -low > high ? -low : high;
        bool nothing = most == 0;
        int64_t none = t->codes[0] > 0 ? t->codes[0] : t->codes[1] < 0 ? t->codes[1] : 0;
        if (by_power(t->rule))
            scale[i] = t->power.scale[i];
        else if (nothing)
            scale[i] = 1;
        else if (t->scale_bits)
            scale[i] = short_scale(t, low, high);
        else if (t->symmetric)
            scale[i] = usable(most / (float)t->codes[1]);
        else
            scale[i] = scale_between(low, high, (float)(t->codes[1] - t->codes[0]));
        if (zero)
            zero[i] = t->symmetric ? 0 : nothing ? (int32_t)none : zero_of(low, scale[i], t->codes);
    }
    fesetenv(&callers);
}
