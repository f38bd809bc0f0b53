#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "support.h"
#include "tensor/number.h"

/* What this file believes about the types, written down a second time so that
 * a slip in the type table shows. */
typedef struct known {
    tn_dtype dtype;
    int      bits, exponent_bits, mantissa_bits, bias;
    char     specials;          /* i: ieee, f: fn, u: fnuz, n: none, 8: e8m0 */
    double   largest;
} known;

static const known floats[] = {
    { TN_FLOAT16, 16, 5, 10, 15, 'i', 65504 },
    { TN_BFLOAT16, 16, 8, 7, 127, 'i', 0x1.fep127 },
    { TN_FLOAT8_E4M3FN, 8, 4, 3, 7, 'f', 448 },
    { TN_FLOAT8_E5M2, 8, 5, 2, 15, 'i', 57344 },
    { TN_FLOAT8_E4M3FNUZ, 8, 4, 3, 8, 'u', 240 },
    { TN_FLOAT8_E5M2FNUZ, 8, 5, 2, 16, 'u', 57344 },
    { TN_FLOAT8_E4M3, 8, 4, 3, 7, 'i', 240 },
    { TN_FLOAT8_E3M4, 8, 3, 4, 3, 'i', 15.5 },
    { TN_FLOAT8_E8M0, 8, 8, 0, 127, '8', 0x1p127 },
    { TN_FLOAT6_E2M3, 6, 2, 3, 1, 'n', 7.5 },
    { TN_FLOAT6_E3M2, 6, 3, 2, 3, 'n', 28 },
    { TN_FLOAT4_E2M1, 4, 2, 1, 1, 'n', 6 },
};
enum { FLOATS = sizeof floats / sizeof floats[0] };

static const struct { tn_dtype dtype; int bits; bool is_signed; } integers[] = {
    { TN_INT64, 64, true },  { TN_INT32, 32, true },   { TN_INT16, 16, true },  { TN_INT8, 8, true },
    { TN_INT4, 4, true },    { TN_INT2, 2, true },     { TN_UINT64, 64, false }, { TN_UINT32, 32, false },
    { TN_UINT16, 16, false }, { TN_UINT8, 8, false },  { TN_UINT4, 4, false },  { TN_UINT2, 2, false },
    { TN_FX8, 8, true },     { TN_FX16, 16, true },
};
enum { INTEGERS = sizeof integers / sizeof integers[0] };

static double as_double(tn_number x)
{
    double magnitude = x.class == TN_NUMBER_NAN        ? (double)NAN
                       : x.class == TN_NUMBER_INFINITE ? (double)INFINITY
                                                       : ldexp((double)x.significand, x.exponent);
    return x.negative ? -magnitude : magnitude;
}

static bool same_value(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static tn_number number_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return tn_number_decode(tn_dtype_get(TN_FLOAT64), bits);
}

/* --- decode ---------------------------------------------------------------- */

static double known_value(const known *t, unsigned code)
{
    if (t->specials == '8')
        return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
    int m = t->mantissa_bits, top = (1 << t->exponent_bits) - 1;
    int e = (int)(code >> m) & top, fraction = (int)code & ((1 << m) - 1);
    bool negative = code >> (t->bits - 1) & 1;
    double sign = negative ? -1 : 1;
    if (t->specials == 'i' && e == top)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (t->specials == 'f' && e == top && fraction == (1 << m) - 1)
        return (double)NAN;
    if (t->specials == 'u' && negative && e == 0 && fraction == 0)
        return (double)NAN;
    double f = fraction / (double)(1 << m);
    return sign * (e == 0 ? ldexp(f, 1 - t->bias) : ldexp(1 + f, e - t->bias));
}

static void every_code_of_at_most_16_bits_decodes(void)
{
    for (int t = 0; t < FLOATS; t++)
        for (unsigned code = 0; code < 1u << floats[t].bits; code++) {
            tn_number x = tn_number_decode(tn_dtype_get(floats[t].dtype), code);
            CHECK(same_value(as_double(x), known_value(&floats[t], code)));
        }
    for (int t = 0; t < INTEGERS; t++)
        for (unsigned code = 0; integers[t].bits <= 16 && code < 1u << integers[t].bits; code++) {
            int value = (int)code;
            if (integers[t].is_signed && code >> (integers[t].bits - 1))
                value -= 1 << integers[t].bits;
            CHECK(as_double(tn_number_decode(tn_dtype_get(integers[t].dtype), code)) == value);
        }
    for (unsigned code = 0; code < 256; code++)
        CHECK(as_double(tn_number_decode(tn_dtype_get(TN_BOOL), code)) == (code ? 1 : 0));
}

#if defined(__x86_64__) && !defined(__clang__)
#define HAS_FLOAT16 1
__extension__ typedef _Float16 float16;
#endif

static void sixteen_bit_floats_decode_as_the_compiler_has_them(void)
{
    for (unsigned code = 0; code < 65536; code++) {
        uint32_t word = code << 16;
        float brain;
        memcpy(&brain, &word, sizeof brain);
        CHECK(same_value(as_double(tn_number_decode(tn_dtype_get(TN_BFLOAT16), code)), (double)brain));
#ifdef HAS_FLOAT16
        uint16_t bits = (uint16_t)code;
        float16 half;
        memcpy(&half, &bits, sizeof half);
        CHECK(same_value(as_double(tn_number_decode(tn_dtype_get(TN_FLOAT16), code)), (double)half));
#endif
    }
}

static uint64_t random_state = 1;

static uint64_t random64(void)      /* xorshift64*: any will do that is not the library's own */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static void wide_floats_decode_exactly(void)
{
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random64();
        if (i % 16 == 0)
            bits &= UINT64_C(0x800fffffffffffff);       /* subnormal */
        double d;
        memcpy(&d, &bits, sizeof d);
        CHECK(same_value(as_double(number_of(d)), d));
        uint32_t word = (uint32_t)bits;
        float f;
        memcpy(&f, &word, sizeof f);
        CHECK(same_value(as_double(tn_number_decode(tn_dtype_get(TN_FLOAT32), word)), (double)f));
        uint32_t cut = word & ~0x1fffu;
        memcpy(&f, &cut, sizeof f);
        CHECK(same_value(as_double(tn_number_decode(tn_dtype_get(TN_TF32), word)), (double)f));
    }
}

static void wide_integers_decode_exactly(void)
{
    const tn_dtype_info *i64 = tn_dtype_get(TN_INT64), *u64 = tn_dtype_get(TN_UINT64);
    tn_number x = tn_number_decode(i64, UINT64_C(1) << 63);
    CHECK(x.negative && x.significand == UINT64_C(1) << 63 && x.exponent == 0);
    x = tn_number_decode(i64, UINT64_MAX);
    CHECK(x.negative && x.significand == 1);
    x = tn_number_decode(u64, UINT64_MAX);
    CHECK(!x.negative && x.significand == UINT64_MAX);
    x = tn_number_decode(tn_dtype_get(TN_INT32), 0xfffffffe);
    CHECK(x.negative && x.significand == 2);
}

/* --- encode ---------------------------------------------------------------- */

/* The neighbours of a magnitude among the values of a type, from a sorted
 * list.  `beyond` is the value that would follow the largest. */
typedef struct list {
    double  *value;             /* ascending magnitudes; the index is the code without its sign */
    unsigned count;
    double   beyond;
} list;

static list list_of(const known *t)
{
    list l = { .value = malloc(sizeof(double) << t->bits) };
    assert_non_null(l.value);
    unsigned codes = t->specials == '8' ? 256 : 1u << (t->bits - 1);
    for (unsigned code = 0; code < codes && isfinite(known_value(t, code)); code++)
        l.value[l.count++] = known_value(t, code);
    double last = l.value[l.count - 1];
    CHECK(last == t->largest);
    l.beyond = t->specials == '8' ? 2 * last : last + (last - l.value[l.count - 2]);
    return l;
}

/* Rounds a magnitude; gives an index into the list, or its count for overflow. */
static unsigned slow_round(const list *l, double x, bool negative, tn_round mode, bool e8m0)
{
    if (x >= l->beyond)
        return l->count;
    if (x <= l->value[0])
        return 0;
    unsigned low = 0, high = l->count;          /* value[low] <= x < value[high] */
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (l->value[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    double below = l->value[low], above = high < l->count ? l->value[high] : l->beyond;
    if (x == below)
        return low;
    double middle = below / 2 + above / 2;      /* exact: values of at most 16 bits */
    bool up;
    switch (mode) {
    case TN_ROUND_TRUNC: up = false; break;
    case TN_ROUND_UP:    up = !negative; break;
    case TN_ROUND_DOWN:  up = negative; break;
    case TN_ROUND_AWAY:  up = x >= middle; break;
    case TN_ROUND_ZERO:  up = x > middle; break;
    case TN_ROUND_HALF_UP: up = x > middle || (x == middle && !negative); break;
    default:             up = x > middle || (x == middle && (e8m0 || low % 2)); break;
    }
    return up ? high : low;
}

static uint64_t slow_encode(const known *t, const list *l, double x, tn_round mode, unsigned *flags)
{
    bool negative = signbit(x);
    uint64_t sign = negative ? UINT64_C(1) << (t->bits - 1) : 0;
    if (t->specials == '8' && (negative || x == 0)) {
        *flags |= TN_ENCODED_OVERFLOW;
        return 255;
    }
    unsigned i = slow_round(l, fabs(x), negative, mode, t->specials == '8');
    if (i == l->count) {
        bool stays = mode == TN_ROUND_TRUNC || mode == (negative ? TN_ROUND_UP : TN_ROUND_DOWN);
        *flags |= TN_ENCODED_OVERFLOW;
        i -= t->specials != 'i' || stays;       /* the code after the largest is infinity */
    }
    return i == 0 && t->specials == 'u' ? 0 : i | (t->specials == '8' ? 0 : sign);
}

static void check_encode(const known *t, const list *l, double x)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    for (tn_round mode = TN_ROUND_EVEN; mode <= TN_ROUND_DOWN; mode++) {
        const tn_cast_options options = { .size = sizeof options, .round = mode };
        tn_encode_rules rules = tn_encode_rules_for(type, &options);
        unsigned flags = 0, expected_flags = 0;
        uint64_t expected = slow_encode(t, l, x, mode, &expected_flags);
        uint64_t code = tn_number_encode(type, &rules, number_of(x), 0, &flags);
        if (code != expected || flags != expected_flags)
            fail_msg("%s, rounding %d: %a becomes %#llx (flags %u), expected %#llx (%u)", type->name,
                     (int)mode, x, (unsigned long long)code, flags, (unsigned long long)expected,
                     expected_flags);
    }
}

static void check_around(const known *t, const list *l, double x)
{
    const double points[] = { x, nextafter(x, INFINITY), nextafter(x, 0) };
    for (int i = 0; i < 3; i++) {
        check_encode(t, l, points[i]);
        check_encode(t, l, -points[i]);
    }
}

static void every_boundary_of_small_floats_rounds_as_the_sorted_values_say(void)
{
    for (int t = 0; t < FLOATS; t++) {
        list l = list_of(&floats[t]);
        for (unsigned i = 0; i < l.count; i++) {
            double next = i + 1 < l.count ? l.value[i + 1] : l.beyond;
            check_around(&floats[t], &l, l.value[i]);
            check_around(&floats[t], &l, l.value[i] / 2 + next / 2);
        }
        check_around(&floats[t], &l, l.beyond);
        check_around(&floats[t], &l, l.value[0] / 2);
        check_around(&floats[t], &l, 0x1p-1074);
        check_around(&floats[t], &l, 0x1p-1022);
        check_encode(&floats[t], &l, DBL_MAX);
        check_encode(&floats[t], &l, -DBL_MAX);
        free(l.value);
    }
}

/* Integers need no list: floor() and the limits say it all. */
static void check_integer(int t, double x)
{
    const tn_dtype_info *type = tn_dtype_get(integers[t].dtype);
    int bits = integers[t].bits;
    double highest = ldexp(1, bits - integers[t].is_signed) - 1,
           lowest = integers[t].is_signed ? -highest - 1 : 0;
    for (tn_round mode = TN_ROUND_EVEN; mode <= TN_ROUND_DOWN; mode++) {
        const tn_cast_options options = { .size = sizeof options, .round = mode };
        tn_encode_rules rules = tn_encode_rules_for(type, &options);
        double whole = floor(fabs(x)), over = fabs(x) - whole;      /* exact, unlike x - floor(x) */
        bool negative = x < 0, up;
        switch (mode) {
        case TN_ROUND_TRUNC:   up = false; break;
        case TN_ROUND_UP:      up = over > 0 && !negative; break;
        case TN_ROUND_DOWN:    up = over > 0 && negative; break;
        case TN_ROUND_AWAY:    up = over >= 0.5; break;
        case TN_ROUND_ZERO:    up = over > 0.5; break;
        case TN_ROUND_HALF_UP: up = over > 0.5 || (over == 0.5 && !negative); break;
        default:               up = over > 0.5 || (over == 0.5 && fmod(whole, 2) != 0); break;
        }
        double r = (negative ? -1 : 1) * (whole + up);
        bool beyond = r > highest || r < lowest;
        r = r > highest ? highest : r < lowest ? lowest : r;
        unsigned flags = 0;
        uint64_t code = tn_number_encode(type, &rules, number_of(x), 0, &flags);
        uint64_t expected = (uint64_t)(int64_t)r & ((UINT64_C(1) << bits) - 1);
        if (code != expected || (flags != 0) != beyond)
            fail_msg("%s, rounding %d: %a becomes %#llx, expected %#llx", type->name, (int)mode, x,
                     (unsigned long long)code, (unsigned long long)expected);
    }
}

static void integers_round_and_then_meet_their_limits(void)
{
    for (int t = 0; t < INTEGERS; t++) {
        if (integers[t].bits > 32)
            continue;
        double end = ldexp(1, integers[t].bits) + 2, step = integers[t].bits > 8 ? end / 3000 : 1;
        for (double whole = -end; whole <= end; whole = floor(whole + step))
            for (int quarter = 0; quarter < 4; quarter++)
                check_integer(t, whole + quarter / 4.0);
        for (double limit = ldexp(1, integers[t].bits - 1); limit <= end; limit *= 2)
            for (double d = -2; d <= 2; d += 0.5) {
                check_integer(t, limit + d);
                check_integer(t, -limit + d);
            }
        check_integer(t, nextafter(0.5, 0));
        check_integer(t, -nextafter(0.5, 0));
        check_integer(t, 0x1p-1074);
        check_integer(t, -0x1p300);
    }
}

static uint64_t encode_default(tn_dtype to, tn_number x, unsigned *flags)
{
    const tn_dtype_info *type = tn_dtype_get(to);
    tn_encode_rules rules = tn_encode_rules_for(type, NULL);
    *flags = 0;
    return tn_number_encode(type, &rules, x, 0, flags);
}

static void sixty_four_bit_integers_hold_to_their_ends(void)
{
    unsigned flags;
    tn_number big = { .significand = UINT64_MAX };
    CHECK(encode_default(TN_UINT64, big, &flags) == UINT64_MAX && flags == 0);
    CHECK(encode_default(TN_INT64, big, &flags) == INT64_MAX && flags == TN_ENCODED_OVERFLOW);
    big.negative = true;
    CHECK(encode_default(TN_UINT64, big, &flags) == 0 && flags == TN_ENCODED_OVERFLOW);
    CHECK(encode_default(TN_INT64, big, &flags) == UINT64_C(1) << 63 && flags == TN_ENCODED_OVERFLOW);
    tn_number lowest = { .negative = true, .significand = UINT64_C(1) << 63 };
    CHECK(encode_default(TN_INT64, lowest, &flags) == UINT64_C(1) << 63 && flags == 0);
    CHECK(encode_default(TN_UINT64, number_of(0x1p63), &flags) == UINT64_C(1) << 63 && flags == 0);
    CHECK(encode_default(TN_UINT64, number_of(0x1.fffffffffffffp63), &flags) ==
              UINT64_C(0xfffffffffffff800) &&
          !flags);
    CHECK(encode_default(TN_UINT64, number_of(0x1p64), &flags) == UINT64_MAX && flags == TN_ENCODED_OVERFLOW);
    CHECK(encode_default(TN_INT64, number_of(-0x1p63), &flags) == UINT64_C(1) << 63 && flags == 0);
    CHECK(encode_default(TN_INT64, number_of(0x1p63), &flags) == INT64_MAX && flags == TN_ENCODED_OVERFLOW);
}

/* --- against the hardware --------------------------------------------------- */

static const struct { tn_round round; int hardware; } directions[] = {
    { TN_ROUND_EVEN, FE_TONEAREST }, { TN_ROUND_TRUNC, FE_TOWARDZERO },
    { TN_ROUND_UP, FE_UPWARD },      { TN_ROUND_DOWN, FE_DOWNWARD },
};

/* A 64-bit significand at any exponent is exact in a long double. */
static void check_hardware(uint64_t significand, int exponent, bool negative)
{
    const tn_number x = { .significand = significand, .exponent = exponent, .negative = negative };
    for (int d = 0; d < 4; d++) {
        const tn_cast_options options = { .size = sizeof options, .round = directions[d].round };
        volatile long double wide = ldexpl((long double)significand, exponent);
        if (negative)
            wide = -wide;
        fesetround(directions[d].hardware);
        volatile float f = (float)wide;
        volatile double g = (double)wide;
        fesetround(FE_TONEAREST);
        float f32 = f;
        double f64 = g;
        uint32_t f32_bits;
        uint64_t f64_bits;
        memcpy(&f32_bits, &f32, 4);
        memcpy(&f64_bits, &f64, 8);
        const tn_dtype_info *t32 = tn_dtype_get(TN_FLOAT32), *t64 = tn_dtype_get(TN_FLOAT64);
        tn_encode_rules r32 = tn_encode_rules_for(t32, &options), r64 = tn_encode_rules_for(t64, &options);
        unsigned flags = 0;
        CHECK(tn_number_encode(t32, &r32, x, 0, &flags) == f32_bits);
        CHECK(tn_number_encode(t64, &r64, x, 0, &flags) == f64_bits);
    }
}

static void float32_and_float64_round_as_the_hardware(void)
{
    if (LDBL_MANT_DIG < 64)
        skip();
    for (int i = 0; i < 60000; i++) {
        uint64_t significand = random64() >> (random64() % 64);
        int exponent = (int)(random64() % 2300) - 1200;
        if (i % 2)
            exponent = (int)(random64() % 300) - 200;           /* within float32 */
        check_hardware(significand, exponent, i % 3 == 0);
        /* One bit beside a tie, in any width. */
        unsigned k = (unsigned)(random64() % 62);
        check_hardware((UINT64_C(3) << k) + (uint64_t)(i % 3) - 1, exponent, i % 5 == 0);
        check_hardware((significand & ~UINT64_C(0x7ff)) | 0x400 | (uint64_t)(i % 2), exponent, false);
    }
}

/* --- special values ---------------------------------------------------------- */

static uint64_t cast_code(tn_dtype to, tn_dtype from, uint64_t code, tn_cast_options options, unsigned *flags)
{
    const tn_dtype_info *type = tn_dtype_get(to);
    options.size = sizeof options;
    tn_encode_rules rules = tn_encode_rules_for(type, &options);
    *flags = 0;
    return tn_number_encode(type, &rules, tn_number_decode(tn_dtype_get(from), code), 0, flags);
}

static void nan_keeps_its_sign_and_the_top_of_its_payload(void)
{
    static const struct { tn_dtype to; uint64_t from, code; } cases[] = {
        { TN_FLOAT16, 0x7f800001, 0x7e00 },         { TN_FLOAT16, 0xff802000, 0xfe01 },
        { TN_BFLOAT16, 0x7fa55555, 0x7fe5 },        { TN_FLOAT64, 0xff800001, UINT64_C(0xfff8000020000000) },
        { TN_TF32, 0x7f801fff, 0x7fc00000 },        { TN_FLOAT8_E5M2, 0xff900000, 0xfe },
        { TN_FLOAT8_E5M2, 0x7fffffff, 0x7f },       { TN_FLOAT8_E4M3, 0x7fb00000, 0x7f },
        { TN_FLOAT8_E3M4, 0x7f900000, 0x7a },       { TN_FLOAT8_E4M3FN, 0x7f800001, 0x7f },
        { TN_FLOAT8_E4M3FN, 0xffc00000, 0xff },     { TN_FLOAT8_E4M3FNUZ, 0xffc00000, 0x80 },
        { TN_FLOAT8_E5M2FNUZ, 0x7fc00000, 0x80 },   { TN_FLOAT8_E8M0, 0xffc00000, 255 },
        { TN_BOOL, 0x7fc00000, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned flags;
        CHECK(cast_code(cases[i].to, TN_FLOAT32, cases[i].from, (tn_cast_options){ 0 },
                        &flags) == cases[i].code);
        CHECK(flags == TN_ENCODED_NAN);
        CHECK(cast_code(cases[i].to, TN_FLOAT32, cases[i].from, (tn_cast_options){ .nan = TN_NAN_ZERO },
                        &flags) == 0);
    }
}

static void overflow_becomes_what_the_mode_says(void)
{
    const uint64_t plus = 0x7f000000, minus = 0xff000000, inf = 0x7f800000, minus_inf = 0xff800000;
    static const struct { tn_dtype to; tn_overflow mode; uint64_t plus, minus, inf, minus_inf; } cases[] = {
        { TN_FLOAT16, TN_OVERFLOW_DEFAULT, 0x7c00, 0xfc00, 0x7c00, 0xfc00 },
        { TN_FLOAT16, TN_OVERFLOW_SATURATE, 0x7bff, 0xfbff, 0x7bff, 0xfbff },
        { TN_FLOAT16, TN_OVERFLOW_INF, 0x7c00, 0xfc00, 0x7c00, 0xfc00 },
        { TN_FLOAT16, TN_OVERFLOW_NAN, 0x7c00, 0xfc00, 0x7c00, 0xfc00 },
        { TN_FLOAT16, TN_OVERFLOW_ERROR, 0x7bff, 0xfbff, 0x7c00, 0xfc00 },
        { TN_FLOAT8_E4M3FN, TN_OVERFLOW_DEFAULT, 0x7e, 0xfe, 0x7e, 0xfe },
        { TN_FLOAT8_E4M3FN, TN_OVERFLOW_NAN, 0x7f, 0xff, 0x7f, 0xff },
        { TN_FLOAT8_E4M3FNUZ, TN_OVERFLOW_DEFAULT, 0x7f, 0xff, 0x7f, 0xff },
        { TN_FLOAT8_E4M3FNUZ, TN_OVERFLOW_NAN, 0x80, 0x80, 0x80, 0x80 },
        { TN_FLOAT8_E8M0, TN_OVERFLOW_DEFAULT, 254, 255, 254, 255 },
        { TN_FLOAT8_E8M0, TN_OVERFLOW_SATURATE, 254, 0, 254, 0 },
        { TN_FLOAT8_E8M0, TN_OVERFLOW_NAN, 255, 255, 255, 255 },
        { TN_FLOAT4_E2M1, TN_OVERFLOW_DEFAULT, 7, 15, 7, 15 },
        { TN_INT8, TN_OVERFLOW_DEFAULT, 0x7f, 0x80, 0x7f, 0x80 },
        { TN_UINT4, TN_OVERFLOW_SATURATE, 15, 0, 15, 0 },
        { TN_BOOL, TN_OVERFLOW_DEFAULT, 1, 1, 1, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tn_cast_options options = { .overflow = cases[i].mode };
        /* e8m0 holds 2^127: the next power is beyond it. */
        tn_dtype from = cases[i].to == TN_FLOAT8_E8M0 ? TN_FLOAT64 : TN_FLOAT32;
        uint64_t big = from == TN_FLOAT64 ? UINT64_C(0x47f0000000000000) : plus;
        unsigned flags, expected = cases[i].to == TN_BOOL ? 0 : TN_ENCODED_OVERFLOW;
        CHECK(cast_code(cases[i].to, from, big, options, &flags) == cases[i].plus && flags == expected);
        CHECK(cast_code(cases[i].to, TN_FLOAT32, minus, options, &flags) == cases[i].minus &&
              flags == expected);
        bool infinity = cases[i].to == TN_FLOAT16 || cases[i].to == TN_BOOL;
        expected = infinity ? 0 : TN_ENCODED_OVERFLOW;
        CHECK(cast_code(cases[i].to, TN_FLOAT32, inf, options, &flags) == cases[i].inf && flags == expected);
        CHECK(cast_code(cases[i].to, TN_FLOAT32, minus_inf, options, &flags) == cases[i].minus_inf &&
              flags == expected);
    }
}

static void e8m0_has_powers_of_two_only(void)
{
    static const tn_round modes[] = { TN_ROUND_EVEN, TN_ROUND_AWAY, TN_ROUND_ZERO, TN_ROUND_TRUNC,
                                      TN_ROUND_UP };
    static const struct { double value; unsigned codes[5]; } cases[] = {
        { 1, { 127, 127, 127, 127, 127 } },         { 1.5, { 128, 128, 127, 127, 128 } },
        { 3, { 129, 129, 128, 128, 129 } },         { 1.25, { 127, 127, 127, 127, 128 } },
        { 0x1.8p-127, { 1, 1, 0, 0, 1 } },          { 0x1p-128, { 0, 0, 0, 0, 0 } },
        { 0x1p-1074, { 0, 0, 0, 0, 0 } },           { 0x1.7fp127, { 254, 254, 254, 254, 254 } },
        { 0, { 255, 255, 255, 255, 255 } },         { -1, { 255, 255, 255, 255, 255 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int m = 0; m < 5; m++) {
            uint64_t bits;
            unsigned flags;
            memcpy(&bits, &cases[i].value, sizeof bits);
            tn_cast_options options = { .round = modes[m] };
            CHECK(cast_code(TN_FLOAT8_E8M0, TN_FLOAT64, bits, options, &flags) == cases[i].codes[m]);
            CHECK((flags != 0) ==
                  (cases[i].value <= 0 || (modes[m] == TN_ROUND_UP && cases[i].value > 0x1p127)));
        }
}

/* --- stochastic rounding ------------------------------------------------------ */

static void stochastic_rounding_is_unbiased(void)
{
    const tn_dtype_info *type = tn_dtype_get(TN_INT8);
    static const double values[] = { 2.5, 2.0625, -7.75, 0.001, -0.999, 126.3 };
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            const tn_cast_options options = { .size = sizeof options, .round = TN_ROUND_STOCHASTIC,
                                              .seed = seed };
            tn_encode_rules rules = tn_encode_rules_for(type, &options);
            enum { N = 100000 };
            double sum = 0;
            for (uint64_t i = 0; i < N; i++) {
                unsigned flags = 0;
                int8_t r = (int8_t)tn_number_encode(type, &rules, number_of(values[v]), i, &flags);
                CHECK((double)r == floor(values[v]) || (double)r == ceil(values[v]));
                sum += r;
            }
            double p = values[v] - floor(values[v]), deviation = sqrt(p * (1 - p) / N);
            CHECK(fabs(sum / N - values[v]) < 5 * deviation);
        }
}

static void stochastic_rounding_depends_on_seed_and_index_only(void)
{
    const tn_dtype_info *type = tn_dtype_get(TN_FLOAT8_E4M3FN);
    const tn_cast_options one = { .size = sizeof one, .round = TN_ROUND_STOCHASTIC, .seed = 1 };
    const tn_cast_options two = { .size = sizeof two, .round = TN_ROUND_STOCHASTIC, .seed = 2 };
    tn_encode_rules a = tn_encode_rules_for(type, &one), b = tn_encode_rules_for(type, &two);
    unsigned flags = 0, differ = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        tn_number x = number_of(1.06);
        CHECK(tn_number_encode(type, &a, x, i, &flags) == tn_number_encode(type, &a, x, i, &flags));
        differ += tn_number_encode(type, &a, x, i, &flags) != tn_number_encode(type, &b, x, i, &flags);
        /* exact: nothing to decide */
        CHECK(tn_number_encode(type, &a, number_of(1.125), i, &flags) == 0x39);
    }
    CHECK(differ > 400 && differ < 600);
    /* The first number of SplitMix64 from 1 is the threshold. */
    tn_encode_rules rules = tn_encode_rules_for(tn_dtype_get(TN_INT8), &one);
    tn_number just = { .significand = UINT64_C(0x910a2dec89025cc1), .exponent = -64 };
    CHECK(tn_number_encode(tn_dtype_get(TN_INT8), &rules, just, 0, &flags) == 0);
    just.significand++;
    CHECK(tn_number_encode(tn_dtype_get(TN_INT8), &rules, just, 0, &flags) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_code_of_at_most_16_bits_decodes),
        TEST(sixteen_bit_floats_decode_as_the_compiler_has_them),
        TEST(wide_floats_decode_exactly),
        TEST(wide_integers_decode_exactly),
        TEST(every_boundary_of_small_floats_rounds_as_the_sorted_values_say),
        TEST(integers_round_and_then_meet_their_limits),
        TEST(sixty_four_bit_integers_hold_to_their_ends),
        TEST(float32_and_float64_round_as_the_hardware),
        TEST(nan_keeps_its_sign_and_the_top_of_its_payload),
        TEST(overflow_becomes_what_the_mode_says),
        TEST(e8m0_has_powers_of_two_only),
        TEST(stochastic_rounding_is_unbiased),
        TEST(stochastic_rounding_depends_on_seed_and_index_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
