/* tensor/number.c - elements as exact numbers and back: the definition of every cast. */
#include "tensor/number.h"
#include "base/random.h"

static uint64_t ones(unsigned n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* --- what a type can hold ------------------------------------------------ */

bool tn_dtype_has_infinity(const tn_dtype_info *type) { return type->specials == TN_SPECIALS_IEEE; }
bool tn_dtype_has_nan(const tn_dtype_info *type)      { return type->specials != TN_SPECIALS_NONE; }

/* Below the fields of a float; only tf32 has some. */
static unsigned ignored_bits(const tn_dtype_info *type)
{
    unsigned fields = 1u + type->exponent_bits + type->mantissa_bits;
    return type->specials == TN_SPECIALS_E8M0 ? 0 : type->bits - fields;
}

static uint64_t sign_bit(const tn_dtype_info *type)
{
    return type->specials == TN_SPECIALS_E8M0 ? 0 : UINT64_C(1) << (type->bits - 1);
}

/* The exponent and mantissa fields of the largest finite value, as one number: it grows with the value. */
static uint64_t largest_fields(const tn_dtype_info *type)
{
    uint64_t all = ones((unsigned)type->exponent_bits + type->mantissa_bits);
    switch (type->specials) {
    case TN_SPECIALS_IEEE: return all - ones(type->mantissa_bits) - 1;
    case TN_SPECIALS_FN:
    case TN_SPECIALS_E8M0: return all - 1;
    default:               return all;
    }
}

uint64_t tn_dtype_limit(const tn_dtype_info *type, bool lowest)
{
    switch (type->kind) {
    case TN_KIND_FLOAT:
        if (lowest && type->specials == TN_SPECIALS_E8M0)
            return 0;
        return largest_fields(type) << ignored_bits(type) | (lowest ? sign_bit(type) : 0);
    case TN_KIND_INT:
    case TN_KIND_FIXED:
        return lowest ? sign_bit(type) : ones(type->bits - 1u);
    case TN_KIND_BOOL:
        return !lowest;
    default:
        return lowest ? 0 : ones(type->bits);
    }
}

/* --- decode -------------------------------------------------------------- */

static inline tn_number decode_float(const tn_dtype_info *type, uint64_t code)
{
    unsigned m = type->mantissa_bits;
    bool e8m0 = type->specials == TN_SPECIALS_E8M0;
    tn_number x = { .class = TN_NUMBER_FINITE, .negative = (code & sign_bit(type)) != 0 };
    uint64_t fields = (code & ~sign_bit(type)) >> ignored_bits(type);
    uint64_t mantissa = fields & ones(m);
    int exponent = (int)(fields >> m);

    if (fields > largest_fields(type)) {        /* ieee, fn, e8m0 */
        x.class = mantissa || !tn_dtype_has_infinity(type) ? TN_NUMBER_NAN : TN_NUMBER_INFINITE;
        x.significand = m ? mantissa << (64 - m) : 0;
    } else if (type->specials == TN_SPECIALS_FNUZ && x.negative && fields == 0) {
        x.class = TN_NUMBER_NAN;
    } else if (exponent == 0 && !e8m0) {
        x.significand = mantissa;
        x.exponent = 1 - type->bias - (int)m;
    } else {
        x.significand = mantissa | UINT64_C(1) << m;
        x.exponent = exponent - type->bias - (int)m;
    }
    return x;
}

static inline tn_number decode(const tn_dtype_info *type, uint64_t code)
{
    code &= ones(type->bits);
    switch (type->kind) {
    case TN_KIND_FLOAT:
        return decode_float(type, code);
    case TN_KIND_INT:
    case TN_KIND_FIXED:
        if (code & sign_bit(type))
            return (tn_number){ .negative = true, .significand = (~code & ones(type->bits)) + 1 };
        return (tn_number){ .significand = code };
    case TN_KIND_BOOL:
        return (tn_number){ .significand = code != 0 };
    default:
        return (tn_number){ .significand = code };
    }
}

tn_number tn_number_decode(const tn_dtype_info *type, uint64_t code)
{
    return decode(type, code);
}

/* --- rounding ------------------------------------------------------------ */

/* Whether to round up in magnitude from `kept` if `fraction` / 2^64 of a step is left. */
static inline bool goes_up(const tn_encode_rules *rules, bool negative, uint64_t kept, uint64_t fraction,
                           uint64_t index)
{
    const uint64_t half = UINT64_C(1) << 63;
    switch (rules->round) {
    case TN_ROUND_EVEN:       return fraction > half || (fraction == half && kept % 2 == 1);
    case TN_ROUND_AWAY:       return fraction >= half;
    case TN_ROUND_ZERO:       return fraction > half;
    case TN_ROUND_HALF_UP:    return fraction > half || (fraction == half && !negative);
    case TN_ROUND_UP:         return fraction != 0 && !negative;
    case TN_ROUND_DOWN:       return fraction != 0 && negative;
    case TN_ROUND_STOCHASTIC: return fraction != 0 && tn_random_at(rules->seed, index) < fraction;
    default:                  return false;
    }
}

/* significand * 2^-shift as an integer; shift > 0. */
static inline uint64_t round_off(const tn_encode_rules *rules, bool negative, uint64_t significand, int shift,
                                 uint64_t index)
{
    uint64_t kept = 0, fraction;
    if (shift < 64) {
        kept = significand >> shift;
        fraction = significand << (64 - shift);
    } else if (shift < 128) {
        unsigned lost = (unsigned)shift - 64;
        fraction = significand >> lost | ((significand & ones(lost)) != 0);
    } else {
        fraction = significand != 0;
    }
    return kept + goes_up(rules, negative, kept, fraction, index);
}

/* --- encode -------------------------------------------------------------- */

static inline uint64_t overflow(const tn_encode_rules *rules, bool negative, unsigned *flags)
{
    *flags |= TN_ENCODED_OVERFLOW;
    return negative ? rules->negative_overflow : rules->positive_overflow;
}

/* The spacing of values is 2^(e - m) from 2^e on, and constant below the lowest e.  Counted from there, the
 * rounded significand and the exponent add up to the fields, so a carry into the next exponent needs no
 * special case. */
static inline uint64_t encode_float(const tn_dtype_info *type, const tn_encode_rules *rules, tn_number x,
                                    uint64_t index, unsigned *flags)
{
    bool e8m0 = type->specials == TN_SPECIALS_E8M0;
    if (e8m0 && (x.significand == 0 || x.negative))
        return overflow(rules, true, flags);
    if (x.significand == 0)
        return x.negative && type->specials != TN_SPECIALS_FNUZ ? sign_bit(type) : 0;

    int lowest = (e8m0 ? 0 : 1) - type->bias;
    int e = 63 - __builtin_clzll(x.significand) + x.exponent;
    if (e < lowest)
        e = lowest;
    int shift = e - type->mantissa_bits - x.exponent;
    uint64_t significand = shift > 0 ? round_off(rules, x.negative, x.significand, shift, index)
                                     : x.significand << -shift;
    if (e8m0)           /* no subnormals and no zero: the smallest value stands for all below it */
        significand = significand ? significand - 1 : 0;
    uint64_t fields = ((uint64_t)(e - lowest) << type->mantissa_bits) + significand;
    if (fields > largest_fields(type))
        return overflow(rules, x.negative, flags);
    if (fields == 0 && type->specials == TN_SPECIALS_FNUZ)
        return 0;
    return fields << ignored_bits(type) | (x.negative ? sign_bit(type) : 0);
}

static inline uint64_t encode_integer(const tn_dtype_info *type, const tn_encode_rules *rules, tn_number x,
                                      uint64_t index, unsigned *flags)
{
    uint64_t magnitude = x.significand;
    if (x.exponent < 0)
        magnitude = round_off(rules, x.negative, x.significand, -x.exponent, index);
    else if (magnitude != 0 && x.exponent > __builtin_clzll(magnitude))
        return overflow(rules, x.negative, flags);
    else if (magnitude != 0)
        magnitude <<= x.exponent;
    uint64_t limit = tn_dtype_limit(type, x.negative);      /* int8: 0x80 is -128 and its own magnitude */
    if (magnitude > limit)
        return overflow(rules, x.negative, flags);
    return x.negative ? (0 - magnitude) & ones(type->bits) : magnitude;
}

static uint64_t encode_nan(const tn_dtype_info *type, const tn_encode_rules *rules, tn_number x)
{
    if (!rules->keep_payload)
        return rules->nan;
    unsigned m = type->mantissa_bits;
    uint64_t quiet = type->specials == TN_SPECIALS_FN ? ones(m) : UINT64_C(1) << (m - 1);
    uint64_t fields = ones(type->exponent_bits) << m | quiet | x.significand >> (64 - m);
    return fields << ignored_bits(type) | (x.negative ? sign_bit(type) : 0);
}

static inline uint64_t encode(const tn_dtype_info *type, const tn_encode_rules *rules, tn_number number,
                              uint64_t index, unsigned *flags)
{
    if (number.class == TN_NUMBER_NAN) {
        *flags |= TN_ENCODED_NAN;
        return encode_nan(type, rules, number);
    }
    if (type->kind == TN_KIND_BOOL)
        return number.class == TN_NUMBER_INFINITE || number.significand != 0;
    if (number.class == TN_NUMBER_INFINITE) {
        if (!tn_dtype_has_infinity(type))
            *flags |= TN_ENCODED_OVERFLOW;
        return number.negative ? rules->negative_infinity : rules->positive_infinity;
    }
    if (type->kind == TN_KIND_FLOAT)
        return encode_float(type, rules, number, index, flags);
    return encode_integer(type, rules, number, index, flags);
}

uint64_t tn_number_encode(const tn_dtype_info *type, const tn_encode_rules *rules, tn_number number,
                          uint64_t index, unsigned *flags)
{
    return encode(type, rules, number, index, flags);
}

/* The compiler hoists what depends on the types only, because nothing else can point to the local copies:
 * nearly twice as fast as single calls. */
unsigned tn_codes_cast(const tn_dtype_info *to, const tn_encode_rules *rules, const tn_dtype_info *from,
                       uint64_t *codes, size_t n, uint64_t index)
{
    const tn_dtype_info t = *to, f = *from;
    const tn_encode_rules r = *rules;
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++)
        codes[i] = encode(&t, &r, decode(&f, codes[i]), index + i, &flags);
    return flags;
}

/* --- rules --------------------------------------------------------------- */

/* The one NaN of a type, or the quiet one without a payload; 0 where there is none. */
static uint64_t nan_code(const tn_dtype_info *type)
{
    uint64_t all = ones((unsigned)type->exponent_bits + type->mantissa_bits);
    switch (type->specials) {
    case TN_SPECIALS_IEEE: return (all - ones(type->mantissa_bits - 1u)) << ignored_bits(type);
    case TN_SPECIALS_FNUZ: return sign_bit(type);
    case TN_SPECIALS_FN:
    case TN_SPECIALS_E8M0: return all;
    default:               return 0;
    }
}

/* What a value of this sign beyond the largest becomes. */
static uint64_t overflow_code(const tn_dtype_info *type, tn_overflow mode, tn_round round, bool negative)
{
    uint64_t sign = negative ? sign_bit(type) : 0;
    bool stays = round == TN_ROUND_TRUNC || round == (negative ? TN_ROUND_UP : TN_ROUND_DOWN);
    if (tn_dtype_has_infinity(type) &&
        (mode == TN_OVERFLOW_INF || mode == TN_OVERFLOW_NAN || (mode == TN_OVERFLOW_DEFAULT && !stays)))
        return (largest_fields(type) + 1) << ignored_bits(type) | sign;
    if (tn_dtype_has_nan(type) && !tn_dtype_has_infinity(type) && mode == TN_OVERFLOW_NAN)
        return nan_code(type) | sign;
    if (type->specials == TN_SPECIALS_E8M0 && negative && mode != TN_OVERFLOW_SATURATE)
        return nan_code(type);
    return tn_dtype_limit(type, negative);
}

static uint64_t infinity_code(const tn_dtype_info *type, tn_overflow mode, bool negative)
{
    if (!tn_dtype_has_infinity(type))
        return overflow_code(type, mode, TN_ROUND_EVEN, negative);
    if (mode == TN_OVERFLOW_SATURATE)
        return tn_dtype_limit(type, negative);
    return overflow_code(type, TN_OVERFLOW_INF, TN_ROUND_EVEN, negative);
}

tn_encode_rules tn_encode_rules_for(const tn_dtype_info *type, const tn_cast_options *options)
{
    static const tn_cast_options defaults = { .size = sizeof defaults };
    const tn_cast_options *o = options ? options : &defaults;
    bool keeps = o->nan != TN_NAN_ZERO;
    uint64_t nan = type->kind == TN_KIND_BOOL ? 1 : nan_code(type);
    return (tn_encode_rules){
        .round = o->round,
        .seed = o->seed,
        .positive_overflow = overflow_code(type, o->overflow, o->round, false),
        .negative_overflow = overflow_code(type, o->overflow, o->round, true),
        .positive_infinity = infinity_code(type, o->overflow, false),
        .negative_infinity = infinity_code(type, o->overflow, true),
        .nan = keeps ? nan : 0,
        .keep_payload = keeps && (type->specials == TN_SPECIALS_IEEE || type->specials == TN_SPECIALS_FN),
    };
}
