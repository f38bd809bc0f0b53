/* quant/requantize.c - requantize arrays and blocks of dense elements, exactly or with
 * MLI's arithmetic. */
#include "quant/requantize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "tensor/array.h"

enum {
    BLOCK = 1024,               /* elements per buffer: a multiple of 8 */
    CHUNK = 65536,              /* elements per item: a multiple of BLOCK */
    PIECE = 256,                /* elements per check for ties */
    NEAR = 1 << 20,             /* zero points up to this are added to 16-bit codes in 32 bits */
    MANTISSA = 24,              /* bits of a scale */
    MLI_MANTISSA = 15           /* bits of an MLI scale, without the sign */
};

/* --- shifts ----------------------------------------------------------------- */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    if (x < low)
        return low;
    return x < high ? x : high;
}

static int32_t saturate32(int64_t x)
{
    return (int32_t)clamp(x, INT32_MIN, INT32_MAX);
}

/* x / 2^n, ties rounded up or to even; n < 0: x * 2^-n, saturated. */
static int32_t shift_round(int32_t x, int n, tn_round round)
{
    if (n > 31)
        return 0;
    if (n <= 0)
        return saturate32(x * (INT64_C(1) << (n < -31 ? 31 : -n)));
    int64_t half = INT64_C(1) << (n - 1);
    return (int32_t)((x + half - (round == TN_ROUND_EVEN && !(x >> n & 1))) >> n);
}

/* --- two scales ------------------------------------------------------------- */

/* A finite float above 0 as mantissa * 2^exponent.  The mantissa is truncated to a given number of bits. */
typedef struct parts {
    uint32_t mantissa;
    int      exponent;
} parts;

static parts parts_of(float scale, unsigned bits)
{
    tn_number x = tn_number_of_float(scale);
    int up = (int)bits - (64 - __builtin_clzll(x.significand));
    return (parts){ (uint32_t)(up < 0 ? x.significand >> -up : x.significand << up), x.exponent - up };
}

/* to_code = (from_code - from_zero) * multiplier / divisor * 2^exponent + to_zero */
typedef struct ratio {
    int64_t  from_zero, to_zero;
    uint32_t multiplier, divisor;       /* 24 bits each; MLI: 15 bits, no divisor */
    int      exponent;
} ratio;

/* MLI's quotient of scales: truncated to an integer, then rounded to 15 bits. */
static ratio mli_ratio(float from, float to, tn_round round)
{
    parts a = parts_of(from, MLI_MANTISSA), b = parts_of(to, MLI_MANTISSA);
    uint32_t quotient = (a.mantissa << 16) / b.mantissa;        /* of 16 or 17 bits */
    int excess = quotient >> 16 ? 2 : 1;
    return (ratio){ .multiplier = (uint32_t)shift_round((int32_t)quotient, excess, round),
                    .exponent = a.exponent - b.exponent - 16 + excess };
}

static ratio exact_ratio(float from, float to)
{
    parts a = parts_of(from, MANTISSA), b = parts_of(to, MANTISSA);
    return (ratio){ .multiplier = a.mantissa, .divisor = b.mantissa, .exponent = a.exponent - b.exponent };
}

static ratio ratio_at(const tn_requant_plan *plan, uint64_t from, uint64_t to)
{
    float in = plan->from.scale[from], out = plan->to.scale[to];
    ratio r = plan->mli ? mli_ratio(in, out, plan->rules.round) : exact_ratio(in, out);
    r.from_zero = plan->from.zero ? plan->from.zero[from] : 0;
    r.to_zero = plan->to.zero ? plan->to.zero[to] : 0;
    return r;
}

/* --- exact ------------------------------------------------------------------- */

/* d * multiplier / divisor with at least 60 bits, the last one a sticky bit.  That is
 * enough for every rounding near 32 bits, and for stochastic rounding in steps of
 * 2^-27 or less. */
static tn_number quotient(const ratio *r, int64_t d)
{
    uint64_t magnitude = (uint64_t)(d < 0 ? -d : d);            /* below 2^32 */
    if (magnitude == 0)
        return (tn_number){ .class = TN_NUMBER_FINITE };
    int up = __builtin_clzll(magnitude) - 32;
    uint64_t product = (magnitude << up) * r->multiplier;
    uint64_t whole = product / r->divisor, rest = (product % r->divisor) << 30;
    return (tn_number){
        .class = TN_NUMBER_FINITE, .negative = d < 0, .exponent = r->exponent - up - 30,
        .significand = whole << 30 | rest / r->divisor | (rest % r->divisor != 0),
    };
}

static int32_t exact_code(const tn_requant_plan *plan, const ratio *r, int32_t code, uint64_t index)
{
    const int64_t far = INT64_C(1) << 40;       /* beyond all codes and zero points */
    unsigned flags = 0;
    tn_number q = quotient(r, code - r->from_zero);
    int64_t rounded = (int64_t)tn_number_encode(plan->integer, &plan->rules, q, index, &flags);
    return (int32_t)clamp(clamp(rounded, -far, far) + r->to_zero, plan->range[0], plan->range[1]);
}

static bool is_nearest(tn_round round)
{
    return round <= TN_ROUND_HALF_UP;
}

/* The same in binary64, except near ties.  A difference has at most 33 bits and is
 * exact.  The ratio and the product are rounded to 53 bits each, so the error of a
 * quotient below 2^33 is less than 2^33 * 2^-51 = 2^-18.  If it is further than 2^-16
 * from a tie, its nearest integer is that of the exact quotient.  Quotients beyond
 * 2^33 saturate whatever the zero point. */
static void nearest_codes(const tn_requant_plan *plan, const ratio *r, int32_t *codes, size_t n,
                          uint64_t first)
{
    const double far = 0x1p33, no_fraction = 0x1.8p52, sure = 0.5 - 0x1p-16;
    const double by = ldexp((double)r->multiplier / r->divisor, r->exponent);
    const double from_zero = (double)r->from_zero, to_zero = (double)r->to_zero;
    const double low = plan->range[0], high = plan->range[1];
    int32_t result[PIECE];
    double rest[PIECE];
    for (size_t i = 0; i < n; i++) {
        double q = (codes[i] - from_zero) * by;
        q = q > -far ? q : -far;
        q = q < far ? q : far;
        double whole = q + no_fraction - no_fraction, code = whole + to_zero;
        rest[i] = q - whole;
        code = code > low ? code : low;
        result[i] = (int32_t)(code < high ? code : high);
    }
    for (size_t i = 0; i < n; i++)
        codes[i] = fabs(rest[i]) < sure ? result[i] : exact_code(plan, r, codes[i], first + i);
}

/* Rounds x / 2^shift as (x + base + odd if the quotient is odd + negative if x < 0) >> shift. */
typedef struct bias {
    int32_t base, odd, negative;
} bias;

static bias bias_of(tn_round round, int shift)
{
    if (shift == 0)
        return (bias){ 0 };
    int32_t half = 1 << (shift - 1), all = (1 << shift) - 1;
    switch (round) {
    case TN_ROUND_EVEN:    return (bias){ half - 1, 1, 0 };
    case TN_ROUND_AWAY:    return (bias){ half, 0, -1 };
    case TN_ROUND_ZERO:    return (bias){ half - 1, 0, 1 };
    case TN_ROUND_HALF_UP: return (bias){ half, 0, 0 };
    case TN_ROUND_TRUNC:   return (bias){ 0, 0, all };
    case TN_ROUND_UP:      return (bias){ all, 0, 0 };
    default:               return (bias){ 0 };
    }
}

/* Whether shift_codes() applies: the ratio is a power of two, and sums fit 32 bits. */
static bool can_shift(const tn_requant_plan *plan, const ratio *r)
{
    return !plan->mli && r->multiplier == r->divisor && plan->rules.round != TN_ROUND_STOCHASTIC &&
           plan->from.codes->bits <= 16 && plan->to.codes->bits <= 16 &&
           clamp(r->from_zero, -NEAR, NEAR) == r->from_zero && clamp(r->to_zero, -NEAR, NEAR) == r->to_zero;
}

/* Differences have 21 bits.  Shifted left by 22, all but 0 saturate.  Shifted right by 24, all are below
 * 1/8. */
static void shift_codes(const tn_requant_plan *plan, const ratio *r, int32_t *codes, size_t n)
{
    const int left = (int)clamp(r->exponent, 0, 22), right = (int)clamp(-r->exponent, 0, 24);
    const int32_t from_zero = (int32_t)r->from_zero, to_zero = (int32_t)r->to_zero;
    const int32_t most = (1 << 22) >> left, low = plan->range[0], high = plan->range[1];
    const bias b = bias_of(plan->rules.round, right);
    for (size_t i = 0; i < n; i++) {
        int32_t d = codes[i] - from_zero;
        d = d < -most ? -most : d;
        d = d > most ? most : d;
        d = (int32_t)((uint32_t)d << left);
        d = ((d + b.base + (d >> right & b.odd) + (d >> 31 & b.negative)) >> right) + to_zero;
        d = d < low ? low : d;
        codes[i] = d > high ? high : d;
    }
}

/* --- MLI's arithmetic ---------------------------------------------------------- */

/* Neither side has 32 bits. */
static int32_t mli_narrow(const tn_requant_plan *plan, const ratio *r, int32_t code)
{
    int32_t d = (int32_t)clamp(code - r->from_zero, INT16_MIN, INT16_MAX);
    return shift_round(d * (int32_t)r->multiplier, -r->exponent, plan->rules.round);
}

/* Both factors are shifted left by their redundant sign bits, the multiplier by 16.  Then the product loses
 * its low half. */
static int32_t mli_wide(const tn_requant_plan *plan, const ratio *r, int32_t code)
{
    int32_t d = saturate32(code - r->from_zero);
    int up = __builtin_clrsb(d);
    int64_t product = d * (INT64_C(1) << up) * (r->multiplier << 16);
    return shift_round((int32_t)(product >> 32), up - 16 - r->exponent, plan->rules.round);
}

static int32_t mli_code(const tn_requant_plan *plan, const ratio *r, int32_t code)
{
    bool is_wide = plan->from.codes->bits == 32 || plan->to.codes->bits == 32;
    int32_t rescaled = is_wide ? mli_wide(plan, r, code) : mli_narrow(plan, r, code);
    return (int32_t)clamp(rescaled + r->to_zero, plan->range[0], plan->range[1]);
}

/* --- one ratio ----------------------------------------------------------------- */

static void rescale_run(const tn_requant_plan *plan, const ratio *r, int32_t *codes, size_t n, uint64_t first)
{
    if (can_shift(plan, r))
        shift_codes(plan, r, codes, n);
    else if (plan->mli)
        for (size_t i = 0; i < n; i++)
            codes[i] = mli_code(plan, r, codes[i]);
    else if (is_nearest(plan->rules.round))
        for (size_t i = 0; i < n; i += PIECE)
            nearest_codes(plan, r, codes + i, n - i < PIECE ? n - i : PIECE, first + i);
    else
        for (size_t i = 0; i < n; i++)
            codes[i] = exact_code(plan, r, codes[i], first + i);
}

/* --- the plan ------------------------------------------------------------------ */

static tn_status check_scales(const tn_requant_side *side, const char *which, bool mli, tn_error *err)
{
    for (uint64_t i = 0; i < side->index.count; i++) {
        float scale = side->scale[i];
        /* not compared as floats: the caller's floating-point environment may flush subnormals */
        tn_number x = tn_number_of_float(scale);
        if (x.class != TN_NUMBER_FINITE || x.negative || x.significand == 0)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a finite scale above 0 but scale %" PRIu64 " of the %s is %.9g", i,
                           which, (double)scale);
        if (mli && parts_of(scale, MANTISSA).mantissa % (1u << (MANTISSA - MLI_MANTISSA)))
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a scale of at most %d bits for MLI but scale %" PRIu64
                           " of the %s is %.9g", MLI_MANTISSA, i, which, (double)scale);
        if (mli && side->zero && side->zero[i] != (int16_t)side->zero[i])
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a zero of %d to %d for MLI but zero %" PRIu64 " of the %s is %" PRId32,
                           INT16_MIN, INT16_MAX, i, which, side->zero[i]);
    }
    return TN_OK;
}

static tn_status set_side(tn_requant_side *side, const char *which, tn_dtype codes, const tn_scales *scales,
                          uint32_t rank, const int64_t *shape, bool mli, tn_error *err)
{
    TN_TRY(tn_affine_check_codes(codes, err));
    if (mli && codes != TN_INT8 && codes != TN_INT16 && codes != TN_INT32)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected codes of int8, int16 or int32 for MLI but the %s has %s", which,
                       tn_dtype_get(codes)->name);
    TN_TRY(tn_scale_index_for(rank, shape, scales->axis, &side->index, err));
    if (!scales->scale && side->index.count)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected %" PRIu64 " scales of the %s but found none",
                       side->index.count, which);
    side->codes = tn_dtype_get(codes);
    side->scale = scales->scale;
    side->zero = scales->zero;
    return check_scales(side, which, mli, err);
}

static tn_status set_rules(tn_requant_plan *plan, const tn_requantize_options *o, tn_error *err)
{
    const tn_cast_options rounding = {
        .size = sizeof rounding, .round = o->round, .overflow = TN_OVERFLOW_SATURATE, .seed = o->seed,
    };
    const tn_affine codes = { .codes = plan->to.codes->dtype, .range = { o->range[0], o->range[1] } };
    int64_t range[2];
    TN_TRY(tn_cast_check(TN_INT64, TN_INT32, &rounding, err));
    if ((unsigned)o->arithmetic > TN_ARITH_MLI)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an arithmetic of 0 to %d but found %d", TN_ARITH_MLI,
                       (int)o->arithmetic);
    if (plan->mli && o->round != TN_ROUND_HALF_UP && o->round != TN_ROUND_EVEN)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected rounding half up (%d) or to even (%d) for MLI but found %d",
                       TN_ROUND_HALF_UP, TN_ROUND_EVEN, (int)o->round);
    TN_TRY(tn_affine_range(&codes, range, err));
    plan->integer = tn_dtype_get(TN_INT64);
    plan->rules = tn_encode_rules_for(plan->integer, &rounding);
    plan->range[0] = (int32_t)range[0];
    plan->range[1] = (int32_t)range[1];
    return TN_OK;
}

/* Computes a table for codes of at most 8 bits with one scale.  Uses integers, because the floating-point
 * environment is the caller's. */
static void set_table(tn_requant_plan *plan)
{
    bool is_signed = plan->from.codes->kind == TN_KIND_INT;
    if (plan->from.codes->bits > 8 || plan->rules.round == TN_ROUND_STOCHASTIC ||
        plan->from.index.count != 1 || plan->to.index.count != 1)
        return;
    ratio r = ratio_at(plan, 0, 0);
    if (can_shift(plan, &r))
        return;
    for (int i = 0; i < 256; i++) {
        int32_t code = is_signed ? (int8_t)i : i;
        plan->table[i] = plan->mli ? mli_code(plan, &r, code) : exact_code(plan, &r, code, 0);
    }
    plan->tabled = true;
}

tn_status tn_requant_plan_make(tn_requant_plan *plan, tn_dtype to_codes, const tn_scales *to,
                               tn_dtype from_codes, const tn_scales *from, uint32_t rank,
                               const int64_t *shape, const tn_requantize_options *options, tn_error *err)
{
    tn_requantize_options o = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_requantize_options, jobs), &o, options, err));
    memset(plan, 0, sizeof *plan);
    plan->mli = o.arithmetic == TN_ARITH_MLI;
    TN_TRY(set_side(&plan->to, "destination", to_codes, to, rank, shape, plan->mli, err));
    TN_TRY(set_side(&plan->from, "source", from_codes, from, rank, shape, plan->mli, err));
    TN_TRY(set_rules(plan, &o, err));
    set_table(plan);
    return TN_OK;
}

/* --- blocks ---------------------------------------------------------------------- */

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* A run has the same two scales. */
static void rescale(const tn_requant_plan *plan, int32_t *codes, size_t n, uint64_t first)
{
    tn_scale_walk from = tn_scale_walk_at(plan->from.index, first),
                  to = tn_scale_walk_at(plan->to.index, first);
    for (size_t i = 0, run; i < n; i += run) {
        run = smaller(from.left, smaller(to.left, n - i));
        ratio r = ratio_at(plan, from.scale, to.scale);
        rescale_run(plan, &r, codes + i, run, first + i);
        tn_scale_walk_on(&from, plan->from.index, run);
        tn_scale_walk_on(&to, plan->to.index, run);
    }
}

/* Converts n elements of any alignment. */
#define EACH(to_type, from_type)                                        \
    for (size_t i = 0; i < n; i++) {                                    \
        from_type x;                                                    \
        memcpy(&x, (const uint8_t *)src + i * sizeof x, sizeof x);      \
        to_type y = (to_type)x;                                         \
        memcpy((uint8_t *)dst + i * sizeof y, &y, sizeof y);            \
    }

static void load(int32_t *restrict dst, const void *restrict src, size_t n, const tn_dtype_info *type)
{
    uint8_t bytes[BLOCK];
    bool is_signed = type->kind == TN_KIND_INT;
    if (type->bits < 8) {
        tn_unpack_codes(bytes, src, n, type->bits, is_signed);
        src = bytes;
    }
    if (type->bits == 32)
        memcpy(dst, src, n * sizeof *dst);
    else if (type->bits == 16 && is_signed)
        EACH(int32_t, int16_t)
    else if (type->bits == 16)
        EACH(int32_t, uint16_t)
    else if (is_signed)
        EACH(int32_t, int8_t)
    else
        EACH(int32_t, uint8_t)
}

static void store(void *restrict dst, const int32_t *restrict src, size_t n, const tn_dtype_info *type)
{
    uint8_t bytes[BLOCK];
    void *packed = dst;
    if (type->bits < 8)
        dst = bytes;
    if (type->bits == 32)
        memcpy(dst, src, n * sizeof *src);
    else if (type->bits == 16)
        EACH(uint16_t, int32_t)
    else
        EACH(uint8_t, int32_t)
    if (type->bits < 8)
        tn_pack_codes(packed, bytes, n, type->bits);
}

void tn_requantize_block(const tn_requant_plan *plan, void *dst, const void *src, size_t n, uint64_t first)
{
    int32_t codes[BLOCK];
    for (size_t i = 0, count; i < n; i += count) {
        count = smaller(BLOCK, n - i);
        load(codes, (const uint8_t *)src + tn_dense_offset(i, plan->from.codes->bits), count,
             plan->from.codes);
        if (plan->tabled)
            for (size_t k = 0; k < count; k++)
                codes[k] = plan->table[(uint8_t)codes[k]];
        else
            rescale(plan, codes, count, first + i);
        store((uint8_t *)dst + tn_dense_offset(i, plan->to.codes->bits), codes, count, plan->to.codes);
    }
}

/* --- arrays ------------------------------------------------------------------------ */

typedef struct job {
    uint8_t        *dst;
    const uint8_t  *src;
    uint64_t        count;
    tn_requant_plan plan;
} job;

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    uint64_t first = item * CHUNK;
    size_t n = smaller(j->count - first, CHUNK);
    (void)use;
    (void)err;
    tn_requantize_block(&j->plan, j->dst + tn_dense_offset(first, j->plan.to.codes->bits),
                        j->src + tn_dense_offset(first, j->plan.from.codes->bits), n, first);
    return TN_OK;
}

tn_status tn_requantize(const tn_array *dst, void *dst_data, const tn_scales *to, const tn_array *src,
                        const void *src_data, const tn_scales *from, const tn_requantize_options *options,
                        tn_error *err)
{
    tn_requantize_options o = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_requantize_options, jobs), &o, options, err));
    job j = { .dst = dst_data, .src = src_data };
    TN_GIVEN(to && from, "scales", err);
    TN_TRY(tn_array_check_dense(dst, dst_data, "destination", &j.count, err));
    TN_TRY(tn_array_check_dense(src, src_data, "source", &j.count, err));
    TN_TRY(tn_array_check_shapes(dst, src, err));
    TN_TRY(tn_requant_plan_make(&j.plan, dst->dtype, to, src->dtype, from, src->rank, src->shape, &o, err));
    if (j.count == 0)
        return TN_OK;
    return tn_pool_once(o.jobs, (j.count + CHUNK - 1) / CHUNK, &(tn_ordered){ .work = work, .context = &j },
                        err);
}
