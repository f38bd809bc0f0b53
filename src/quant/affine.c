/* quant/affine.c - encode and decode affine codes: blocks of dense elements. */
#include "quant/affine.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "tensor/array.h"
#include "kernels/scaled_encode/table.h"
#include "kernels/stream.h"

enum {
    BLOCK = 1024,               /* elements per buffer: a multiple of 8 that fits the first-level cache */
    CODES = 256,
    NO_ZEROS = 8192             /* most elements of a run with a scale per element and no zero points */
};

tn_status tn_scale_index_for(uint32_t rank, const int64_t *shape, int32_t axis, tn_scale_index *index,
                             tn_error *err)
{
    uint64_t count;
    if (tn_shape_count(rank, shape, &count) != TN_OK)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a shape of at most %d dimensions, none negative, with "
                       "fewer than 2^63 elements", TN_MAX_RANK);
    if (axis != TN_PER_TENSOR && (axis < 0 || (uint32_t)axis >= rank))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected an axis below %" PRIu32 " or %d for one scale but found %" PRId32, rank,
                       TN_PER_TENSOR, axis);
    uint64_t inner = 1;
    for (uint32_t i = (uint32_t)(axis + 1); i < rank && count; i++)
        inner *= (uint64_t)shape[i];
    *index = (tn_scale_index){ .inner = inner, .count = axis < 0 ? 1 : (uint64_t)shape[axis] };
    if (index->count == 1)
        index->inner = UINT64_MAX;
    return TN_OK;
}

static tn_status check_values(tn_dtype values, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(values);
    if (!type || type->kind != TN_KIND_FLOAT)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected values of a float type but found %s",
                       type ? type->name : "an unknown type");
    return TN_OK;
}

/* --- the plan --------------------------------------------------------------- */

static tn_status check_scales(const tn_affine_plan *plan, bool dequantize, bool symmetric, tn_error *err)
{
    for (uint64_t i = 0; i < plan->index.count; i++) {
        float scale = plan->scale[i];
        if (!isfinite(scale) || (!dequantize && !(scale > 0)))
            return tn_fail(err, TN_ERR_ARGUMENT, "expected a finite scale%s but scale %" PRIu64 " is %.9g",
                           dequantize ? "" : " above 0", i, (double)scale);
        if (symmetric && plan->zero && plan->zero[i])
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a zero of 0 for symmetric codes but zero %" PRIu64 " is %" PRId32, i,
                           plan->zero[i]);
    }
    return TN_OK;
}

static bool zeros_are_near(const tn_affine_plan *plan)
{
    for (uint64_t i = 0; plan->zero && i < plan->index.count; i++)
        if (plan->zero[i] > TN_QUANT_ZERO_LIMIT || plan->zero[i] < -TN_QUANT_ZERO_LIMIT)
            return false;
    return true;
}

static void choose_kernel(tn_affine_plan *plan, const tn_quant_kernels *k, bool dequantize)
{
    unsigned bits = plan->codes->bits;
    bool is_signed = plan->codes->kind == TN_KIND_INT;
    tn_dequantize_fn from_signed = bits == 16 ? k->from_i16 : k->from_i8,
                     from_unsigned = bits == 16 ? k->from_u16 : k->from_u8;
    if (bits > 16 || plan->wide_scale || !zeros_are_near(plan))
        return;
    if (dequantize)
        plan->dequantize = is_signed ? from_signed : from_unsigned;
    else if (plan->arithmetic != TN_ARITH_MLI) {
        plan->rounds_first = plan->rules.round != TN_ROUND_EVEN && plan->rules.round != TN_ROUND_AWAY;
        plan->quantize = bits == 16 ? k->to_16 : k->to_8;
        tn_round_rules_for(&plan->rounding, plan->codes, plan->rules.round, plan->rules.seed);
    }
}

/* Encoding only. */
static tn_status set_rules(tn_affine_plan *plan, const tn_affine *affine, const tn_quantize_options *o,
                           tn_error *err)
{
    const tn_cast_options rounding = {
        .size = sizeof rounding, .round = o->round, .overflow = TN_OVERFLOW_SATURATE, .nan = TN_NAN_ZERO,
        .seed = o->seed,
    };
    TN_TRY(tn_cast_check(TN_INT64, TN_FLOAT32, &rounding, err));
    if ((unsigned)o->nan > TN_NAN_ERROR)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a NaN mode of 0 to %d but found %d", TN_NAN_ERROR,
                       (int)o->nan);
    TN_TRY(tn_affine_range(affine, plan->range, err));
    plan->rules = tn_encode_rules_for(tn_dtype_get(TN_INT64), &rounding);
    return TN_OK;
}

tn_status tn_affine_plan_make(tn_affine_plan *plan, const tn_affine_task *task, tn_error *err)
{
    const tn_affine *a = task->affine;
    tn_quantize_options o = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_quantize_options, percentile), &o, task->options, err));
    TN_TRY(tn_affine_check_codes(a->codes, err));
    TN_TRY(check_values(task->values, err));
    memset(plan, 0, offsetof(tn_affine_plan, cast));
    plan->codes = tn_dtype_get(a->codes);
    plan->values = tn_dtype_get(task->values);
    plan->name = plan->codes->name;
    plan->index = task->index;
    plan->scale = task->scale;
    plan->wide_scale = task->wide_scale;
    plan->zero = task->zero;
    plan->nan = o.nan;
    plan->arithmetic = a->arithmetic;
    plan->is_float32 = task->values == TN_FLOAT32;
    if ((unsigned)a->arithmetic > TN_ARITH_MLI)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an arithmetic of 0 to %d but found %d", TN_ARITH_MLI,
                       (int)a->arithmetic);
    if (task->decodes)
        plan->rules = tn_encode_rules_for(tn_dtype_get(TN_FLOAT32), NULL);
    else
        TN_TRY(set_rules(plan, a, &o, err));
    TN_TRY(check_scales(plan, task->decodes, !task->decodes && a->symmetric, err));
    TN_TRY(tn_cast_plan_make(&plan->cast, task->decodes ? task->values : TN_FLOAT32,
                             task->decodes ? TN_FLOAT32 : task->values, TN_HOST_ORDER, NULL, err));
    choose_kernel(plan, task->kernels ? task->kernels : tn_quant_kernels_get(), task->decodes);
    return TN_OK;
}

tn_status tn_affine_plan_cast(tn_affine_plan *plan, const tn_cast_options *options, tn_error *err)
{
    TN_TRY(tn_cast_plan_make(&plan->cast, plan->values->dtype, TN_FLOAT32, TN_HOST_ORDER, options, err));
    plan->refuses_infinite = options && options->overflow == TN_OVERFLOW_ERROR;
    plan->is_float32 &= plan->cast.route == TN_ROUTE_COPY && !plan->refuses_infinite;
    return TN_OK;
}

/* --- runs: the elements of one kernel call ------------------------------------ */

/* Scales copied for each element, if runs of one scale are short. */
typedef struct spread {
    float   scale[BLOCK];
    int32_t zero[BLOCK];
} spread;

static const int32_t no_zeros[NO_ZEROS];

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

static void spread_scales(const tn_affine_plan *plan, spread *buffer, tn_scale_walk at, size_t n)
{
    for (size_t i = 0, run; i < n; i += run) {
        float scale = plan->scale[at.scale];
        int32_t zero = plan->zero ? plan->zero[at.scale] : 0;
        run = smaller(at.left, n - i);
        for (size_t k = i; k < i + run; k++) {
            buffer->scale[k] = scale;
            buffer->zero[k] = zero;
        }
        tn_scale_walk_on(&at, plan->index, run);
    }
}

/* Sets the run for the next kernel call.  Returns its number of elements, at most n. */
static size_t next_run(const tn_affine_plan *plan, uint64_t element, size_t n, spread *buffer,
                           tn_quant_run *run)
{
    tn_scale_walk at = tn_scale_walk_at(plan->index, element);
    *run = (tn_quant_run){
        .scale = plan->scale + at.scale, .zero = plan->zero ? plan->zero + at.scale : no_zeros,
        .each = plan->index.inner < TN_SCALE_RUN, .stream = plan->stream && plan->is_float32,
        .low = (int32_t)plan->range[0], .high = (int32_t)plan->range[1],
        .away = plan->rules.round == TN_ROUND_AWAY, .exact = plan->arithmetic == TN_ARITH_EXACT,
    };
    if (!run->each)
        return smaller(at.left, n);
    if (plan->index.inner == 1 && plan->index.count >= TN_SCALE_RUN)
        return smaller(plan->index.count - at.scale, plan->zero ? n : smaller(NO_ZEROS, n));
    n = smaller(BLOCK, n);
    spread_scales(plan, buffer, at, n);
    run->scale = buffer->scale;
    run->zero = buffer->zero;
    return n;
}

/* --- to codes ------------------------------------------------------------------ */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    if (x < low)
        return low;
    return x < high ? x : high;
}

static float float_at(const uint8_t *floats, size_t i)
{
    float x;
    memcpy(&x, floats + sizeof x * i, sizeof x);
    return x;
}

/* x / scale with at least 63 bits.  The last one is a sticky bit for the rest, so that
 * rounding it to an integer gives the same as rounding the exact quotient. */
static tn_number exact_quotient(float x, float scale)
{
    enum { MORE = 23 };         /* bits of the quotient after the first division */
    tn_number q = tn_number_of_float(x), by = tn_number_of_float(scale);
    if (q.class != TN_NUMBER_FINITE || q.significand == 0)
        return q;
    int up = __builtin_clzll(q.significand), down = __builtin_clzll(by.significand) - 40;
    /* d has 24 bits */
    uint64_t all = q.significand << up, d = by.significand << down, rest = all % d << MORE;
    q.significand = all / d << MORE | rest / d | (rest % d != 0);
    q.exponent += down - up - MORE - by.exponent;
    return q;
}

/* x / scale rounded, before the zero point is added.  Ties below 2^33 are binary64
 * numbers, so the binary64 quotient is never on the wrong side of a tie.  Only a
 * quotient that is a tie (or NaN) needs the exact one.  Quotients beyond 2^33 saturate
 * whatever the zero point. */
static uint64_t exact_integer(const tn_affine_plan *plan, float x, float scale, uint64_t index,
                              unsigned *flags)
{
    const double far = 0x1p33, no_fraction = 0x1.8p52;
    bool nearest = plan->rules.round <= TN_ROUND_HALF_UP;
    double q = (double)x / (double)scale;
    q = q < -far ? -far : q;
    q = q > far ? far : q;
    double whole = q + no_fraction - no_fraction;
    if (nearest && fabs(q - whole) < 0.5)
        return (uint64_t)(int64_t)whole;
    return tn_number_encode(tn_dtype_get(TN_INT64), &plan->rules, exact_quotient(x, scale), index, flags);
}

/* MLI's C code, without the conversion to an integer. */
static float mli_sum(float x, float scale)
{
    float product = x * (1 / scale);
    return x > 0 ? product + 0.5f : product - 0.5f;
}

/* x86-64 converts NaN and numbers beyond int32 to the lowest integer. */
static int32_t mli_integer(float x, float scale)
{
    float sum = mli_sum(x, scale);
    return sum > -0x1p31f && sum < 0x1p31f ? (int32_t)sum : INT32_MIN;
}

bool tn_affine_fits(tn_arithmetic arithmetic, const tn_encode_rules *rules, const int64_t range[2],
                   float x, float scale)
{
    tn_encode_rules own = *rules;
    unsigned flags = 0;
    if (rules->round == TN_ROUND_STOCHASTIC)
        own.round = x > 0 ? TN_ROUND_UP : TN_ROUND_DOWN;
    float sum = mli_sum(x, scale);
    if (arithmetic == TN_ARITH_MLI && !(sum >= -0x1p31f && sum < 0x1p31f))
        return false;
    int64_t code =
        arithmetic == TN_ARITH_MLI
            ? mli_integer(x, scale)
            : (int64_t)tn_number_encode(tn_dtype_get(TN_INT64), &own, exact_quotient(x, scale), 0, &flags);
    return code >= range[0] && code <= range[1];
}

/* Rounds x / scale of n elements from `index`, before the zero point is added.  Returns TN_ENCODED_*
 * bits. */
static unsigned define_integers(const tn_affine_plan *plan, uint64_t *integers, const uint8_t *src, size_t n,
                                uint64_t index)
{
    tn_scale_walk at = tn_scale_walk_at(plan->index, index);
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        float x = float_at(src, i), scale = plan->scale[at.scale];
        if (plan->arithmetic == TN_ARITH_MLI)
            integers[i] = (uint64_t)mli_integer(x, scale);
        else if (plan->arithmetic == TN_ARITH_EXACT)
            integers[i] = exact_integer(plan, x, scale, index + i, &flags);
        else
            integers[i] = tn_float_bits(x / scale);
        tn_scale_walk_on(&at, plan->index, 1);
    }
    if (plan->arithmetic == TN_ARITH_BINARY32)
        flags =
            tn_codes_cast(tn_dtype_get(TN_INT64), &plan->rules, tn_dtype_get(TN_FLOAT32), integers, n, index);
    return flags;
}

/* The definition: any rounding, zero point and width of codes.  Returns whether a value was NaN. */
static bool define_codes(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                         uint64_t first, unsigned bits)
{
    const int64_t far = INT64_C(1) << 36;       /* beyond all codes and zero points */
    uint64_t codes[CODES];
    unsigned flags = 0;
    for (size_t i = 0; i < n; i += CODES) {
        size_t count = smaller(CODES, n - i);
        tn_scale_walk at = tn_scale_walk_at(plan->index, first + i);
        flags |= define_integers(plan, codes, src + 4 * i, count, first + i);
        for (size_t k = 0; k < count; k++) {
            int64_t code = clamp((int64_t)codes[k], -far, far) + (plan->zero ? plan->zero[at.scale] : 0);
            tn_code_put(dst, i + k, bits, (uint64_t)clamp(code, plan->range[0], plan->range[1]));
            tn_scale_walk_on(&at, plan->index, 1);
        }
    }
    return flags & TN_ENCODED_NAN;
}

/* Quotients of at most BLOCK elements, their scales and zero points; returns whether each has its own. */
static bool divide_floats(const tn_affine_plan *plan, const float *x, size_t n, uint64_t first, spread *to,
                          float *quotient)
{
    const tn_scale_walk at = tn_scale_walk_at(plan->index, first);
    const float scale = plan->scale[at.scale];
    if (at.left >= n && scale > 0) {
        tn_encode_kernels_get()->divide(quotient, x, n, &(tn_codes_run){ .size = n, .factor = &scale });
        to->scale[0] = scale;
        to->zero[0] = plan->zero ? plan->zero[at.scale] : 0;
        return false;
    }
    spread_scales(plan, to, at, n);
    for (size_t i = 0; i < n; i++)
        quotient[i] = x[i] / to->scale[i];
    return true;
}

/* Whether quotients by these scales are float32s, or beyond all codes. */
static bool divide_exactly(const float *scale, size_t n)
{
    float reciprocal;
    for (size_t i = 0; i < n; i++)
        if (!tn_exact_reciprocal(scale[i], &reciprocal) || scale[i] > 1)
            return false;
    return true;
}

/* Other roundings than to nearest: quotients are rounded, and codes are made of what they are then. */
static bool quantize_rounded(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                             uint64_t first, unsigned bits)
{
    float x[BLOCK], quotient[BLOCK];
    spread all;
    tn_quant_run run = { .scale = all.scale, .zero = all.zero, .low = (int32_t)plan->range[0],
                         .high = (int32_t)plan->range[1] };
    bool nan = false;
    for (size_t i = 0, count; i < n; i += count) {
        count = smaller(BLOCK, n - i);
        memcpy(x, src + 4 * i, 4 * count);
        run.each = divide_floats(plan, x, count, first + i, &all, quotient);
        size_t scales = run.each ? count : 1;
        if ((plan->arithmetic == TN_ARITH_EXACT && !divide_exactly(all.scale, scales)) ||
            !tn_round_kernels_get()->round(quotient, quotient, count, first + i, &plan->rounding)) {
            nan |= define_codes(plan, dst + i * bits / 8, src + 4 * i, count, first + i, bits);
            continue;
        }
        for (size_t k = 0; k < scales; k++)
            all.scale[k] = 1;
        nan |= plan->quantize(dst + i * bits / 8, quotient, count, &run);
    }
    return nan;
}

/* float32 to codes of a byte or more. */
static bool quantize_floats(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                            uint64_t first)
{
    unsigned bits = plan->codes->bits < 8 ? 8 : plan->codes->bits;
    if (!plan->quantize)
        return define_codes(plan, dst, src, n, first, bits);
    if (plan->rounds_first)
        return quantize_rounded(plan, dst, src, n, first, bits);
    spread buffer;
    tn_quant_run run;
    bool nan = false;
    for (size_t i = 0, count; i < n; i += count) {
        count = next_run(plan, first + i, n - i, &buffer, &run);
        run.stream &= plan->codes->bits >= 8;           /* others are packed first */
        nan |= plan->quantize(dst + i * bits / 8, src + 4 * i, count, &run);
    }
    return nan;
}

static size_t byte_of(size_t element, unsigned bits)
{
    return (size_t)tn_packed_byte(element, bits);
}

/* Casts and packs at most BLOCK elements through buffers. */
static bool quantize_staged(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                            uint64_t first)
{
    uint8_t floats[BLOCK * sizeof(float)], codes[BLOCK];
    bool packed = plan->codes->bits < 8;
    if (!plan->is_float32)      /* never fails: float32 has all values */
        tn_cast_block(&plan->cast, floats, src, n, first, 0, NULL, NULL);
    bool nan = quantize_floats(plan, packed ? codes : dst, plan->is_float32 ? src : floats, n, first);
    if (packed)
        tn_pack_codes(dst, codes, n, plan->codes->bits);
    return nan;
}

/* Lets a cast to the same codes report the element. */
static tn_status refuse_nan(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                            uint32_t rank, const int64_t *shape, tn_error *err)
{
    const tn_cast_options o = { .size = sizeof o, .overflow = TN_OVERFLOW_SATURATE, .nan = plan->nan };
    tn_cast_plan cast;
    TN_TRY(tn_cast_plan_make(&cast, plan->codes->dtype, plan->values->dtype, TN_HOST_ORDER, &o, err));
    cast.to_name = plan->name;
    return tn_cast_block(&cast, dst, src, n, first, rank, shape, err);
}

tn_status tn_affine_encode(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                            uint32_t rank, const int64_t *shape, tn_error *err)
{
    bool nan = false;
    unsigned to = plan->codes->bits, from = plan->values->bits;
    if (plan->is_float32 && to >= 8)
        nan = quantize_floats(plan, dst, src, n, first);
    else
        for (size_t i = 0; i < n; i += BLOCK)
            nan |= quantize_staged(plan, (uint8_t *)dst + byte_of(i, to),
                                   (const uint8_t *)src + byte_of(i, from), smaller(BLOCK, n - i), first + i);
    if (nan && plan->nan != TN_NAN_ZERO)
        return refuse_nan(plan, dst, src, n, first, rank, shape, err);
    return TN_OK;
}

/* --- from codes ---------------------------------------------------------------- */

/* The difference has at most 33 bits and the scale 24, so the product is exact in 64 bits and rounded
 * once. */
static float define_value(const tn_affine_plan *plan, int64_t difference, float scale)
{
    if (plan->arithmetic == TN_ARITH_MLI)
        return (float)clamp(difference, INT32_MIN, INT32_MAX) * scale;
    tn_number product = tn_number_of_float(scale);
    product.negative ^= difference < 0;
    product.significand *= (uint64_t)(difference < 0 ? -difference : difference);
    unsigned flags = 0;
    uint32_t bits = (uint32_t)tn_number_encode(tn_dtype_get(TN_FLOAT32), &plan->rules, product, 0, &flags);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* As PyTorch has it for a scale per index: code and zero point in float32, their product in float64. */
static float define_wide(int64_t code, int64_t zero, double scale)
{
    return (float)((double)((float)code - (float)zero) * scale);
}

/* The definition: any width of codes, any zero point. */
static void define_values(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                          uint64_t first, unsigned bits)
{
    uint64_t sign = plan->codes->kind == TN_KIND_INT ? UINT64_C(1) << (bits - 1) : 0;
    tn_scale_walk at = tn_scale_walk_at(plan->index, first);
    for (size_t i = 0; i < n; i++) {
        int64_t code = (int64_t)(tn_code_get(src, i, bits) ^ sign) - (int64_t)sign;
        int64_t zero = plan->zero ? plan->zero[at.scale] : 0;
        float value = plan->wide_scale ? define_wide(code, zero, plan->wide_scale[at.scale])
                                       : define_value(plan, code - zero, plan->scale[at.scale]);
        memcpy(dst + sizeof value * i, &value, sizeof value);
        tn_scale_walk_on(&at, plan->index, 1);
    }
}

/* Codes of a byte or more to float32. */
static void dequantize_floats(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                              uint64_t first)
{
    unsigned bits = plan->codes->bits < 8 ? 8 : plan->codes->bits;
    if (!plan->dequantize) {
        if (n)
            define_values(plan, dst, src, n, first, bits);
        return;
    }
    spread buffer;
    tn_quant_run run;
    for (size_t i = 0, count; i < n; i += count) {
        count = next_run(plan, first + i, n - i, &buffer, &run);
        plan->dequantize(dst + 4 * i, src + i * bits / 8, count, &run);
    }
}

/* Codes and scales are finite, so an infinite product is an overflow.  The cast would see an infinity and
 * keep it. */
static tn_status refuse_infinite(const uint8_t *floats, size_t n, uint64_t first, uint32_t rank,
                                 const int64_t *shape, tn_error *err)
{
    char where[200];
    for (size_t i = 0; i < n; i++) {
        if (!isinf(float_at(floats, i)))
            continue;
        tn_element_text(where, sizeof where, first + i, rank, shape);
        return tn_fail(err, TN_ERR_LOSS,
                       "%s is beyond float32's %s, in which codes are multiplied by their scales", where,
                       float_at(floats, i) < 0 ? "lowest" : "largest");
    }
    return TN_OK;
}

/* Unpacks and casts at most BLOCK elements through buffers. */
static tn_status dequantize_staged(const tn_affine_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                                   uint64_t first, uint32_t rank, const int64_t *shape, tn_error *err)
{
    uint8_t floats[BLOCK * sizeof(float)], codes[BLOCK];
    if (plan->codes->bits < 8) {
        tn_unpack_codes(codes, src, n, plan->codes->bits, plan->codes->kind == TN_KIND_INT);
        src = codes;
    }
    dequantize_floats(plan, plan->is_float32 ? dst : floats, src, n, first);
    tn_status status = plan->refuses_infinite ? refuse_infinite(floats, n, first, rank, shape, err) : TN_OK;
    return plan->is_float32 || status ? status
                                      : tn_cast_block(&plan->cast, dst, floats, n, first, rank, shape, err);
}

tn_status tn_affine_decode(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                              uint32_t rank, const int64_t *shape, tn_error *err)
{
    tn_status status = TN_OK;
    unsigned to = plan->values->bits, from = plan->codes->bits;
    if (plan->is_float32 && from >= 8)
        dequantize_floats(plan, dst, src, n, first);
    else
        for (size_t i = 0; i < n && status == TN_OK; i += BLOCK)
            status = dequantize_staged(plan, (uint8_t *)dst + byte_of(i, to),
                                       (const uint8_t *)src + byte_of(i, from), smaller(BLOCK, n - i),
                                       first + i, rank, shape, err);
    if (plan->stream)
        tn_stream_fence();
    return status;
}
