#include "support.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "tensor/array.h"

/* --- decoding ------------------------------------------------------------ */

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* The finite values of a float type by walking up its codes: the step between
 * neighbours is the smallest value, and doubles with every binade but the first. */
typedef struct walk {
    tn_dtype dtype;
    unsigned bits, mantissa;    /* bits of a code with its sign */
    double   smallest;
    unsigned finite;            /* codes 0 .. finite - 1 are finite; the first ones after them: */
    bool     then_inf;          /* infinity, then NaN; else NaN at once */
    bool     nan_at_minus_zero;
    double   largest;
} walk;

static const walk walks[] = {
    { TN_FLOAT16,         16, 10, 0x1p-24,  0x7c00, true,  false, 65504 },
    { TN_BFLOAT16,        16, 7,  0x1p-133, 0x7f80, true,  false, 0x1.fep127 },
    { TN_FLOAT8_E4M3FN,   8,  3,  0x1p-9,   0x7f,   false, false, 448 },
    { TN_FLOAT8_E5M2,     8,  2,  0x1p-16,  0x7c,   true,  false, 57344 },
    { TN_FLOAT8_E4M3FNUZ, 8,  3,  0x1p-10,  0x80,   false, true,  240 },
    { TN_FLOAT8_E5M2FNUZ, 8,  2,  0x1p-17,  0x80,   false, true,  57344 },
    { TN_FLOAT8_E4M3,     8,  3,  0x1p-9,   0x78,   true,  false, 240 },
    { TN_FLOAT8_E3M4,     8,  4,  0x1p-6,   0x70,   true,  false, 15.5 },
    { TN_FLOAT6_E2M3,     6,  3,  0.125,    0x20,   false, false, 7.5 },
    { TN_FLOAT6_E3M2,     6,  2,  0.0625,   0x20,   false, false, 28 },
    { TN_FLOAT4_E2M1,     4,  1,  0.5,      0x8,    false, false, 6 },
};
#define WALKS (sizeof walks / sizeof walks[0])

static double decode(tn_dtype dtype, unsigned code)
{
    uint8_t byte = (uint8_t)code;
    uint16_t word = (uint16_t)code;
    bool wide = tn_dtype_get(dtype)->bits == 16;
    tn_value value = tn_value_get(dtype, wide ? (const void *)&word : &byte, 0);
    CHECK(value.kind == TN_KIND_FLOAT);
    return value.re;
}

static void check_walk(const walk *w)
{
    unsigned sign = 1u << (w->bits - 1), binade = 1u << w->mantissa;
    double value = 0, step = w->smallest, last = 0;
    for (unsigned code = 0; code < sign; code++) {
        double expected = value, negative = -value;
        if (code >= w->finite) {
            expected = w->then_inf && code == w->finite ? (double)INFINITY : (double)NAN;
            negative = -expected;
        } else {
            last = value;
        }
        if (w->nan_at_minus_zero && code == 0)
            negative = NAN;
        CHECK(same(decode(w->dtype, code), expected));
        CHECK(same(decode(w->dtype, sign | code), negative));
        value += step;
        if ((code + 1) % binade == 0 && code + 1 > binade)
            step *= 2;
    }
    CHECK(last == w->largest);
}

static void every_code_of_the_small_floats_has_its_value(void)
{
    for (size_t i = 0; i < WALKS; i++)
        check_walk(&walks[i]);
}

static void e8m0_is_a_power_of_two(void)
{
    double expected = 0x1p-127;
    for (unsigned code = 0; code < 255; code++, expected *= 2)
        CHECK(decode(TN_FLOAT8_E8M0, code) == expected);
    CHECK(isnan(decode(TN_FLOAT8_E8M0, 255)));
}

#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)
static void float16_agrees_with_the_compiler(void)
{
    for (unsigned code = 0; code < 65536; code++) {
        uint16_t word = (uint16_t)code;
        __extension__ _Float16 half;
        memcpy(&half, &word, 2);
        CHECK(same(decode(TN_FLOAT16, code), (double)half));
    }
}
#endif

static float float_of(uint32_t code)
{
    float f;
    memcpy(&f, &code, 4);
    return f;
}

static void bfloat16_is_the_upper_half_of_float32(void)
{
    for (uint32_t code = 0; code < 65536; code++)
        CHECK(same(decode(TN_BFLOAT16, code), (double)float_of(code << 16)));
}

static void tf32_ignores_its_low_13_bits(void)
{
    for (uint32_t high = 0; high < 1u << 19; high += 7) {
        uint32_t codes[] = { high << 13, high << 13 | 0x1fff };
        double expected = (double)float_of(codes[0]);
        CHECK(same(tn_value_get(TN_TF32, codes, 0).re, expected));
        CHECK(same(tn_value_get(TN_TF32, codes, 1).re, expected));
    }
}

static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void float32_and_float64_are_the_machine_s_own(void)
{
    static const uint64_t special[] = {
        0, 1, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
        0x7ff0000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x7f800000,
        0xff800000, 0x7fc00000, 0x007fffff, 0x00800000, 0x7f7fffff, 0x80000000,
    };
    const size_t specials = sizeof special / sizeof special[0];
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < 20000; i++) {
        uint64_t bits = i < specials ? special[i] : random_bits(&state);
        double d;
        memcpy(&d, &bits, 8);
        CHECK(same(tn_value_get(TN_FLOAT64, &bits, 0).re, d));
        uint32_t low = (uint32_t)bits;
        CHECK(same(tn_value_get(TN_FLOAT32, &low, 0).re, (double)float_of(low)));
    }
}

static void complex_numbers_have_two_halves(void)
{
    const float c64[] = { 1, 2, -0.5f, INFINITY };
    const double c128[] = { 0.1, -0.0, 3, 4 };
    tn_value a = tn_value_get(TN_COMPLEX64, c64, 1), b = tn_value_get(TN_COMPLEX128, c128, 0);
    CHECK(a.kind == TN_KIND_COMPLEX && a.re == -0.5 && isinf(a.im));
    CHECK(b.kind == TN_KIND_COMPLEX && b.re == 0.1 && same(b.im, -0.0));
    CHECK(tn_value_get(TN_COMPLEX128, c128, 1).im == 4);
}

static void integers_keep_their_sign_and_all_their_bits(void)
{
    const int64_t i64[] = { INT64_MIN, INT64_MAX, -1 };
    const uint64_t u64[] = { UINT64_MAX, 1 };
    const int32_t i32[] = { INT32_MIN, 7 };
    const uint32_t u32[] = { UINT32_MAX, 7 };
    const int16_t i16[] = { INT16_MIN, 9 };
    const uint16_t u16[] = { UINT16_MAX, 9 };
    const int8_t i8[] = { -128, 127 };
    for (uint64_t i = 0; i < 3; i++)
        CHECK(tn_value_get(TN_INT64, i64, i).i == i64[i]);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK(tn_value_get(TN_UINT64, u64, i).u == u64[i]);
        CHECK(tn_value_get(TN_INT32, i32, i).i == i32[i]);
        CHECK(tn_value_get(TN_UINT32, u32, i).u == u32[i]);
        CHECK(tn_value_get(TN_INT16, i16, i).i == i16[i] && tn_value_get(TN_FX16, i16, i).i == i16[i]);
        CHECK(tn_value_get(TN_UINT16, u16, i).u == u16[i]);
        CHECK(tn_value_get(TN_INT8, i8, i).i == i8[i] && tn_value_get(TN_FX8, i8, i).i == i8[i]);
        CHECK(tn_value_get(TN_UINT8, i8, i).u == (uint8_t)i8[i]);
    }
    CHECK(tn_value_get(TN_FX8, i8, 0).kind == TN_KIND_FIXED);
}

static void any_nonzero_byte_is_true(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        tn_value value = tn_value_get(TN_BOOL, &byte, 0);
        CHECK(value.kind == TN_KIND_BOOL && value.u == (i != 0));
    }
}

static void unaligned_elements_are_read(void)
{
    uint8_t bytes[17] = { 0xee };
    const double value[] = { 1.5, -2.5 };
    memcpy(bytes + 1, value, 16);
    CHECK(tn_value_get(TN_FLOAT64, bytes + 1, 1).re == -2.5);
}

/* Bit by bit, on a copy with not one byte to spare. */
static void check_packing(tn_dtype dtype, uint64_t *state)
{
    unsigned bits = tn_dtype_get(dtype)->bits;
    for (int64_t count = 1; count <= 40; count++) {
        uint64_t nbytes;
        CHECK(tn_shape_nbytes(dtype, 1, &count, &nbytes) == TN_OK);
        uint8_t random[40];
        for (size_t i = 0; i < nbytes; i++)
            random[i] = (uint8_t)(random_bits(state) >> 24);
        uint8_t *data = exact_copy(random, (size_t)nbytes);
        for (uint64_t i = 0; i < (uint64_t)count; i++) {
            uint8_t code = 0;
            for (unsigned b = 0; b < bits; b++) {
                uint64_t at = i * bits + b;
                code = (uint8_t)(code | (data[at / 8] >> at % 8 & 1) << b);
            }
            tn_value packed = tn_value_get(dtype, data, i), alone = tn_value_get(dtype, &code, 0);
            CHECK(packed.i == alone.i && packed.u == alone.u && same(packed.re, alone.re));
        }
        free(data);
    }
}

static void packed_elements_are_read_without_touching_a_byte_too_many(void)
{
    uint64_t state = 4711;
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (tn_dtype_get((tn_dtype)d)->bits < 8)
            check_packing((tn_dtype)d, &state);
}

static void packing_starts_at_the_least_significant_bit(void)
{
    static const uint8_t nibbles[] = { 0xe1, 0x03 }, pairs[] = { 0xe4 }, sixes[] = { 0xc1, 0x08, 0xfc };
    CHECK(tn_value_get(TN_INT4, nibbles, 0).i == 1);
    CHECK(tn_value_get(TN_INT4, nibbles, 1).i == -2);
    CHECK(tn_value_get(TN_INT4, nibbles, 2).i == 3);
    CHECK(tn_value_get(TN_UINT4, nibbles, 1).u == 14);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK(tn_value_get(TN_UINT2, pairs, i).u == i);
        CHECK(tn_value_get(TN_INT2, pairs, i).i == (int64_t)i - (i > 1 ? 4 : 0));
    }
    CHECK(tn_value_get(TN_FLOAT6_E2M3, sixes, 0).re == 0.125);      /* code 1 */
    CHECK(same(tn_value_get(TN_FLOAT6_E2M3, sixes, 1).re, -0.375)); /* code 0x23, across two bytes */
    CHECK(same(tn_value_get(TN_FLOAT6_E2M3, sixes, 2).re, 0.0));
    CHECK(tn_value_get(TN_FLOAT6_E2M3, sixes, 3).re == -7.5);
}

static void an_unknown_type_has_no_value(void)
{
    CHECK(tn_value_get(TN_UNKNOWN, NULL, 0).kind == TN_KIND_NONE);
    CHECK(tn_value_get(TN_DTYPE_COUNT, NULL, 0).kind == TN_KIND_NONE);
}

/* --- text ---------------------------------------------------------------- */

typedef struct text { char text[64]; } text;

static text format(tn_dtype dtype, tn_value value)
{
    text t;
    int n = tn_value_format(t.text, sizeof t.text, dtype, value);
    CHECK(n >= 0 && (size_t)n == strlen(t.text));
    return t;
}

static text format_float(tn_dtype dtype, double x)
{
    return format(dtype, (tn_value){ .kind = TN_KIND_FLOAT, .re = x });
}

static void numbers_are_written_with_few_digits(void)
{
    static const struct { tn_dtype dtype; double value; const char *expected; } list[] = {
        { TN_FLOAT32, 0.1f, "0.1" }, { TN_FLOAT32, 1, "1.0" }, { TN_FLOAT32, -0.0, "-0.0" },
        { TN_FLOAT32, 0, "0.0" },
        { TN_FLOAT32, 16777216, "16777216.0" }, { TN_FLOAT32, FLT_MAX, "3.4028235e+38" },
        { TN_FLOAT32, 0x1p-149, "1e-45" },
        { TN_FLOAT32, 123456789.0f, "1.2345679e+08" }, { TN_FLOAT32, 134217792, "1.342178e+08" },
        { TN_FLOAT32, 0.3f, "0.3" },
        { TN_FLOAT64, 0.1, "0.1" }, { TN_FLOAT64, 0.1f, "0.10000000149011612" },
        { TN_FLOAT64, 0x1p-44, "5.684341886080802e-14" },
        { TN_FLOAT64, 5e-324, "5e-324" }, { TN_FLOAT64, DBL_MAX, "1.7976931348623157e+308" },
        { TN_FLOAT64, 100, "100.0" },
        { TN_FLOAT64, 1e15, "1000000000000000.0" }, { TN_FLOAT64, 1e16, "1e+16" },
        { TN_FLOAT64, 123.25, "123.25" },
        { TN_FLOAT64, 0.0001, "0.0001" }, { TN_FLOAT64, 0.00001, "1e-05" }, { TN_FLOAT64, 1.5e-7, "1.5e-07" },
        { TN_FLOAT64, 0.001234, "0.001234" }, { TN_FLOAT64, 0.5, "0.5" },
        { TN_FLOAT64, 9007199254740993.0, "9007199254740992.0" },
        { TN_FLOAT16, 65504, "6.55e+04" }, { TN_FLOAT16, 0x1.998p-4, "0.1" },
        { TN_FLOAT16, 0x1p-24, "6e-08" },
        { TN_FLOAT16, 24608, "2.46e+04" }, { TN_FLOAT16, 2048, "2048.0" }, { TN_FLOAT16, 100, "100.0" },
        { TN_BFLOAT16, 0x1.9ap-4, "0.1" }, { TN_BFLOAT16, 1.0078125, "1.01" }, { TN_TF32, 0x1.998p-4, "0.1" },
        { TN_FLOAT8_E4M3FN, 448, "448.0" }, { TN_FLOAT8_E4M3FN, 240, "240.0" },
        { TN_FLOAT4_E2M1, 1.5, "1.5" },
        { TN_FLOAT8_E8M0, 0x1p-127, "5.877472e-39" }, { TN_FLOAT8_E8M0, 0x1p-126, "1.1754944e-38" },
        { TN_FLOAT8_E8M0, 0.5, "0.5" },
        { TN_FLOAT32, INFINITY, "inf" }, { TN_FLOAT16, -INFINITY, "-inf" }, { TN_FLOAT64, NAN, "nan" },
        { TN_FLOAT8_E5M2, -NAN, "nan" },
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        assert_string_equal(format_float(list[i].dtype, list[i].value).text, list[i].expected);
}

static void other_kinds_are_written_plainly(void)
{
    tn_value i = { .kind = TN_KIND_INT, .i = INT64_MIN }, u = { .kind = TN_KIND_UINT, .u = UINT64_MAX };
    assert_string_equal(format(TN_INT64, i).text, "-9223372036854775808");
    assert_string_equal(format(TN_UINT64, u).text, "18446744073709551615");
    tn_value yes = { .kind = TN_KIND_BOOL, .u = 1 }, no = { .kind = TN_KIND_BOOL },
    fx = { .kind = TN_KIND_FIXED, .i = -5 };
    assert_string_equal(format(TN_BOOL, yes).text, "true");
    assert_string_equal(format(TN_BOOL, no).text, "false");
    assert_string_equal(format(TN_FX8, fx).text, "-5");
    assert_string_equal(format(TN_UNKNOWN, (tn_value){ .kind = TN_KIND_NONE }).text, "?");
}

static void complex_numbers_are_written_as_a_sum(void)
{
    tn_value a = { .kind = TN_KIND_COMPLEX, .re = 1, .im = 2 }, b = { .kind = TN_KIND_COMPLEX, .re = 0.1f,
                                                                      .im = -0.0 };
    tn_value c = { .kind = TN_KIND_COMPLEX, .re = NAN, .im = INFINITY };
    tn_value d = { .kind = TN_KIND_COMPLEX, .re = -DBL_MAX / 3, .im = -DBL_MIN / 3 };
    assert_string_equal(format(TN_COMPLEX64, a).text, "1.0+2.0j");
    assert_string_equal(format(TN_COMPLEX64, b).text, "0.1-0.0j");
    assert_string_equal(format(TN_COMPLEX128, c).text, "nan+infj");
    assert_string_equal(format(TN_COMPLEX128, d).text, "-5.992310449541053e+307-7.41691286169067e-309j");
}

static void a_small_buffer_gets_the_beginning(void)
{
    tn_value x = { .kind = TN_KIND_FLOAT, .re = -0.125 };
    CHECK(tn_value_format(NULL, 0, TN_FLOAT32, x) == 6);
    for (size_t cap = 1; cap <= 8; cap++) {
        char *small = malloc(cap);
        assert_non_null(small);
        CHECK(tn_value_format(small, cap, TN_FLOAT32, x) == 6);
        CHECK(strlen(small) == (cap > 6 ? 6 : cap - 1) && strncmp(small, "-0.125", cap - 1) == 0);
        free(small);
    }
}

/* Digits of the number itself: leading zeros and the ".0" of a whole number do not count. */
static int count_digits(const char *s)
{
    int n = 0, zeros = 0;
    for (; *s && *s != 'e'; s++) {
        if (*s < '0' || *s > '9' || (*s == '0' && n == 0))
            continue;
        n++;
        zeros = *s == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

/* The value of a small float type nearest to x >= 0, ties to even: by halving
 * the range of codes 0 .. last, whose values ascend.  Half a step beyond the
 * last one, infinity. */
static double nearest(tn_dtype dtype, double x, unsigned last)
{
    double largest = decode(dtype, last);
    if (x >= largest + (largest - decode(dtype, last - 1)) / 2)
        return INFINITY;
    unsigned low = 0, high = last;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (decode(dtype, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    double below = x - decode(dtype, low), above = decode(dtype, high) - x;
    bool up = above < below || (above == below && high % 2 == 0);
    return decode(dtype, up ? high : low);
}

static unsigned last_finite(tn_dtype dtype)
{
    for (size_t i = 0; i < WALKS; i++)
        if (walks[i].dtype == dtype)
            return walks[i].finite - 1;
    return 254;                                     /* e8m0 */
}

static double read_as(tn_dtype dtype, const char *s)
{
    switch (dtype) {
    case TN_FLOAT64: return strtod(s, NULL);
    case TN_FLOAT32: return (double)strtof(s, NULL);
    default:         return nearest(dtype, strtod(s, NULL), last_finite(dtype));
    }
}

/* Whether one of the decimals of `count` digits around x reads back as x. */
static bool fits_in(tn_dtype dtype, double x, int count)
{
    char nearest[40], digits[40] = "", *out = digits;
    snprintf(nearest, sizeof nearest, "%.*e", count - 1, fabs(x));
    char *e = strchr(nearest, 'e');
    for (const char *p = nearest; p < e; p++)
        if (*p != '.')
            *out++ = *p;
    for (long long step = -1; step <= 1; step++) {
        char candidate[80];
        snprintf(candidate, sizeof candidate, "%llde%ld", strtoll(digits, NULL, 10) + step,
                 strtol(e + 1, NULL, 10) - (count - 1));
        if (read_as(dtype, candidate) == fabs(x))
            return true;
    }
    return false;
}

static void check_shortest(tn_dtype dtype, double x)
{
    if (!isfinite(x) || x == 0)
        return;
    text t = format_float(dtype, fabs(x)), negative = format_float(dtype, -fabs(x));
    int digits = count_digits(t.text);
    CHECK(read_as(dtype, t.text) == fabs(x));
    CHECK(negative.text[0] == '-' && strcmp(negative.text + 1, t.text) == 0);
    tn_dtype shown = tn_dtype_get(dtype)->bits <= 8 ? TN_FLOAT32 : dtype;
    CHECK(digits == 1 || !fits_in(shown, x, digits - 1));
}

static void texts_of_small_floats_read_back_and_are_shortest(void)
{
    for (size_t i = 0; i < WALKS; i++)
        for (unsigned code = 0; code < walks[i].finite; code++)
            check_shortest(walks[i].dtype, decode(walks[i].dtype, code));
    for (unsigned code = 0; code < 255; code++)
        check_shortest(TN_FLOAT8_E8M0, decode(TN_FLOAT8_E8M0, code));
}

static void texts_of_float32_read_back_and_are_shortest(void)
{
    uint64_t state = 123456789;
    for (int i = 0; i < 20000; i++)
        check_shortest(TN_FLOAT32, (double)float_of((uint32_t)random_bits(&state)));
    for (int e = -149; e <= 127; e++)
        check_shortest(TN_FLOAT32, ldexp(1, e));
}

static void texts_of_float64_read_back_and_are_shortest(void)
{
    uint64_t state = 987654321;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = random_bits(&state);
        double x;
        memcpy(&x, &bits, 8);
        check_shortest(TN_FLOAT64, x);
        check_shortest(TN_FLOAT64, (double)(bits % 1000000) / 1000);
    }
    for (int e = -1074; e <= 1023; e++)
        check_shortest(TN_FLOAT64, ldexp(1, e));
}

static void a_decimal_comma_in_the_locale_changes_nothing(void)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++)
        found = setlocale(LC_ALL, names[i]);
    if (!found)
        print_message("no locale with a decimal comma here: checked in the C locale only\n");
    assert_string_equal(format_float(TN_FLOAT32, (double)0.1f).text, "0.1");
    assert_string_equal(format_float(TN_FLOAT64, 1234567.125).text, "1234567.125");
    assert_string_equal(format_float(TN_FLOAT16, 1.5e-5).text, "1.5e-05");
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_code_of_the_small_floats_has_its_value),
        TEST(e8m0_is_a_power_of_two),
#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)
        TEST(float16_agrees_with_the_compiler),
#endif
        TEST(bfloat16_is_the_upper_half_of_float32),
        TEST(tf32_ignores_its_low_13_bits),
        TEST(float32_and_float64_are_the_machine_s_own),
        TEST(complex_numbers_have_two_halves),
        TEST(integers_keep_their_sign_and_all_their_bits),
        TEST(any_nonzero_byte_is_true),
        TEST(unaligned_elements_are_read),
        TEST(packed_elements_are_read_without_touching_a_byte_too_many),
        TEST(packing_starts_at_the_least_significant_bit),
        TEST(an_unknown_type_has_no_value),
        TEST(numbers_are_written_with_few_digits),
        TEST(other_kinds_are_written_plainly),
        TEST(complex_numbers_are_written_as_a_sum),
        TEST(a_small_buffer_gets_the_beginning),
        TEST(texts_of_small_floats_read_back_and_are_shortest),
        TEST(texts_of_float32_read_back_and_are_shortest),
        TEST(texts_of_float64_read_back_and_are_shortest),
        TEST(a_decimal_comma_in_the_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
