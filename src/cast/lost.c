/* cast/lost.c - counts the values that a cast makes 0, and those beyond the largest value.
 *
 * Of the values of one sign, those below a limit become 0 and those above another are beyond the largest one,
 * however they are rounded.  The limits are found once by bisection among the codes of the source; blocks of
 * codes are then compared with them.  Where there are no such limits (stochastic rounding; e8m0, which has a
 * smallest value and no 0; fnuz, where -0 is NaN) each element is encoded again. */
#include "cast/cast.h"
#include "tensor/array.h"

enum { SOME = 1024 };           /* packed elements that are unpacked at a time */

/* The code of a value of this magnitude. */
static uint64_t code_of(const tn_cast_plan *plan, uint64_t size, bool negative)
{
    unsigned bits = plan->from->bits;
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (!negative)
        return size;
    return plan->limits.is_integer ? (0 - size) & all : size | (UINT64_C(1) << (bits - 1));
}

typedef bool (*is_below_fn)(const tn_cast_plan *plan, uint64_t code);

static bool is_zero(const tn_cast_plan *plan, uint64_t code)
{
    tn_number x = tn_number_decode(plan->from, code);
    return x.class == TN_NUMBER_FINITE && x.significand == 0;
}

static bool is_finite(const tn_cast_plan *plan, uint64_t code)
{
    return tn_number_decode(plan->from, code).class == TN_NUMBER_FINITE;
}

static bool becomes_zero(const tn_cast_plan *plan, uint64_t code)
{
    return tn_cast_flags(plan, code, 0) & TN_CAST_FLUSHED || is_zero(plan, code);
}

static bool is_in_range(const tn_cast_plan *plan, uint64_t code)
{
    return !(tn_cast_flags(plan, code, 0) & TN_ENCODED_OVERFLOW);
}

/* The last magnitude up to `most` of which this is true: it is true of all up to some magnitude.  0 is taken
 * for one of them. */
static uint64_t last_below(const tn_cast_plan *plan, bool negative, uint64_t most, is_below_fn is_below)
{
    uint64_t low = 0, high = most;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (is_below(plan, code_of(plan, middle, negative)))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Magnitudes of these types do not follow their codes. */
static bool has_no_order(const tn_cast_plan *plan)
{
    return plan->to->specials == TN_SPECIALS_E8M0 || plan->from->specials == TN_SPECIALS_E8M0 ||
           plan->from->specials == TN_SPECIALS_FNUZ;
}

/* Each value must be looked at: there is no limit above or below which all are lost. */
static bool is_each(const tn_cast_plan *plan)
{
    return plan->args.rules.round == TN_ROUND_STOCHASTIC || has_no_order(plan);
}

static unsigned log2_bytes(unsigned bits)
{
    return (bits > 8 ? 1u : 0u) + (bits > 16) + (bits > 32);
}

static tn_code_range zero_of(const tn_dtype_info *type)
{
    uint64_t all = UINT64_MAX >> (64 - type->bits);
    int unused = type->bits - 1 - type->exponent_bits - type->mantissa_bits;    /* tf32 has some */
    if (type->kind == TN_KIND_FLOAT)
        all = all >> 1 & UINT64_MAX << unused;
    return (tn_code_range){ .mask = all };
}

/* Results without a 0, or without one of the largest values, show that nothing was lost.  Not so where other
 * values become 0 as well (negative ones of unsigned types, NaN), or where codes are packed. */
static void look_at_results(tn_cast_plan *plan, const tn_cast_kernels *kernels)
{
    const tn_dtype_info *to = plan->to;
    bool is_float = to->kind == TN_KIND_FLOAT;
    bool is_signed = to->kind == TN_KIND_INT || to->kind == TN_KIND_FIXED;
    tn_number nan = tn_number_decode(to, plan->args.rules.nan);
    bool nan_is_zero = !plan->args.rules.keep_payload && nan.class == TN_NUMBER_FINITE && !nan.significand;
    if (to->bits < 8 || has_no_order(plan) || (!is_signed && !is_float) || nan_is_zero ||
        to->specials == TN_SPECIALS_FNUZ)
        return;
    plan->source_within = kernels->within[log2_bytes(plan->from->bits)];
    plan->zero = zero_of(plan->from);
    plan->result_within = kernels->within[log2_bytes(to->bits)];
    plan->new_zero = plan->new_last = zero_of(to);
    plan->new_last.first = tn_dtype_limit(to, false);
    plan->new_last.span = is_signed ? 1 : plan->new_last.mask - plan->new_last.first;
}

void tn_cast_plan_count(tn_cast_plan *plan, const tn_cast_kernels *kernels)
{
    const tn_dtype_info *from = plan->from;
    unsigned bits = from->bits, bytes = bits > 8 ? bits / 8 : 1;
    bool is_float = from->kind == TN_KIND_FLOAT,
         is_signed = from->kind == TN_KIND_INT || from->kind == TN_KIND_FIXED,
         has_sign = is_float ? from->specials != TN_SPECIALS_E8M0 : is_signed;
    uint64_t most = has_sign ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    tn_cast_limits *l = &plan->limits;
    *l = (tn_cast_limits){ .is_integer = has_sign && !is_float };
    if (has_sign)               /* packed integers are widened to bytes, packed floats are not */
        l->sign = UINT64_C(1) << ((l->is_integer ? 8 * bytes : bits) - 1);
    l->finite = last_below(plan, false, most, is_finite);
    l->zero = last_below(plan, false, l->finite, is_zero);
    for (unsigned k = 0; k < 2; k++) {
        uint64_t finite = l->finite + (k && l->is_integer);     /* integers have one more negative */
        bool negative = k && has_sign;
        l->flushed[k] = last_below(plan, negative, finite, becomes_zero);
        l->beyond[k] = last_below(plan, negative, finite, is_in_range);
        plan->has_limits |= l->flushed[k] > l->zero || l->beyond[k] < finite;
    }
    l->finite += l->is_integer;
    plan->has_limits |= is_each(plan);
    plan->count = kernels->count[log2_bytes(bits)];
    look_at_results(plan, kernels);
}

/* Packed codes as bytes; integers with their sign. */
static void unpack(const tn_cast_plan *plan, const uint8_t *src, size_t first, size_t n, uint8_t *codes)
{
    unsigned bits = plan->from->bits;
    uint8_t sign = (uint8_t)(plan->limits.is_integer ? 1u << (bits - 1) : 0);
    for (size_t i = 0; i < n; i++) {
        uint8_t code = (uint8_t)tn_code_get(src, first + i, bits);
        codes[i] = (uint8_t)((code ^ sign) - sign);
    }
}

static void count_packed(const tn_cast_plan *plan, const uint8_t *src, size_t n, tn_cast_lost *lost)
{
    uint8_t codes[SOME];
    for (size_t i = 0; i < n; i += SOME) {
        size_t some = n - i < SOME ? n - i : SOME;
        unpack(plan, src, i, some, codes);
        plan->count(codes, some, &plan->limits, lost);
    }
}

/* The code of element i, or of one part of a complex one, in host order. */
static uint64_t element_code(const tn_cast_plan *plan, const uint8_t *src, size_t i)
{
    uint8_t element[8];
    size_t bytes = plan->from->bits / 8u;
    if (!plan->swap)
        return tn_code_get(src, i, plan->from->bits);
    plan->swapper(element, src + i * bytes, bytes, plan->swap);
    return tn_code_get(element, 0, plan->from->bits);
}

static void count_each(const tn_cast_plan *plan, const uint8_t *src, size_t n, size_t step, uint64_t first,
                       tn_cast_lost *lost)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t code = element_code(plan, src, i * step);
        unsigned flags = tn_cast_flags(plan, code, first + i);
        if (is_zero(plan, code))
            continue;
        lost->values++;
        lost->flushed += (flags & TN_CAST_FLUSHED) != 0;
        lost->saturated += is_finite(plan, code) && flags & TN_ENCODED_OVERFLOW;
    }
}

/* By the results, which are fewer bytes.  False: they cannot tell. */
static bool count_results(const tn_cast_plan *plan, const void *dst, const void *src, size_t n,
                          tn_cast_lost *lost)
{
    if (!plan->result_within || plan->result_within(dst, n, &plan->new_last))
        return false;
    uint64_t zeros = plan->result_within(dst, n, &plan->new_zero);
    uint64_t were_zero = zeros ? plan->source_within(src, n, &plan->zero) : 0;
    lost->values += n - were_zero;
    lost->flushed += zeros - were_zero;
    return true;
}

bool tn_cast_count_kept(const tn_cast_plan *plan, const void *dst, size_t n, tn_cast_lost *lost)
{
    if (!plan->result_within)
        return false;
    lost->values += n - plan->result_within(dst, n, &plan->new_zero);
    return true;
}

void tn_cast_count(const tn_cast_plan *plan, const void *dst, const void *src, size_t n, uint64_t first,
                   tn_cast_lost *lost)
{
    unsigned each = plan->parts == TN_PARTS_BOTH ? 2 : 1, step = plan->parts == TN_PARTS_DROP ? 2 : 1;
    if (!plan->has_limits)
        return;
    bool plain = !plan->swap && step == 1 && plan->from->bits >= 8;
    if (plain && count_results(plan, dst, src, each * n, lost))
        return;
    if (plan->swap || step > 1 || is_each(plan))
        count_each(plan, src, each * n, step, each * (plan->first + first), lost);
    else if (plan->from->bits < 8)
        count_packed(plan, src, n, lost);
    else
        plan->count(src, each * n, &plan->limits, lost);
}
