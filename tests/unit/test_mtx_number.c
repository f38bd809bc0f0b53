/* Numbers as MatrixMarket spells them: every element comes back from its text,
 * the text is the shortest, and what is read is what the C library reads. */
#include "support.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "formats/mtx/mtx.h"
#include "random.h"

/* Reads all of a text that is in a heap block of its own. */
static bool reads(const tn_mtx_real *real, const char *text, uint64_t *code)
{
    bool held = true;
    size_t n = strlen(text);
    char *copy = (char *)exact_copy(text, n);
    const char *end = tn_mtx_read_real(real, copy, copy + n, code, &held);
    bool all = end == copy + n && held;
    free(copy);
    return all;
}

static const char *text_of(const tn_mtx_real *real, uint64_t code)
{
    static char text[TN_MTX_NUMBER_MAX + 1];
    char *end = tn_mtx_put_real(real, code, text);
    CHECK(end > text && end - text <= TN_MTX_NUMBER_MAX);
    *end = '\0';
    return text;
}

static void check_code(const tn_mtx_real *real, uint64_t code)
{
    uint64_t found = ~code;
    const char *text = text_of(real, code);
    if (!reads(real, text, &found) || found != code)
        fail_msg("%s: code %llx became %s and that %llx", real->type->name, (unsigned long long)code, text,
                 (unsigned long long)found);
}

/* ---- round trips ---- */

static void every_code_of_narrow_types_comes_back(void)
{
    static const tn_dtype types[] = {
        TN_FLOAT16,         TN_BFLOAT16,        TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2,
        TN_FLOAT8_E4M3FNUZ, TN_FLOAT8_E5M2FNUZ, TN_FLOAT8_E4M3,   TN_FLOAT8_E3M4,
        TN_FLOAT8_E8M0,     TN_FLOAT6_E2M3,     TN_FLOAT6_E3M2,   TN_FLOAT4_E2M1,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tn_mtx_real real = tn_mtx_real_of(types[i]);
        for (uint64_t code = 0; code >> real.type->bits == 0; code++)
            check_code(&real, code);
    }
}

static void codes_of_wide_types_come_back(void)
{
    tn_mtx_real f64 = tn_mtx_real_of(TN_FLOAT64), f32 = tn_mtx_real_of(TN_FLOAT32),
                tf32 = tn_mtx_real_of(TN_TF32);
    static const uint64_t special[] = {
        0, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff,
        UINT64_C(0x000fffffffffffff), UINT64_C(0x0010000000000000), UINT64_C(0x7fefffffffffffff),
        UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff0000000000001), UINT64_C(0x7ff8000000000000),
        UINT64_C(0x7fffffffffffffff),
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        check_code(&f64, special[i]);
        check_code(&f64, special[i] | UINT64_C(1) << 63);
        check_code(&f32, special[i] & 0x7fffffff);
        check_code(&f32, (special[i] & 0x7fffffff) | UINT64_C(1) << 31);
    }
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = bits64();
        check_code(&f32, bits & UINT32_MAX);
        check_code(&tf32, bits & 0xffffe000);
        if (i % 10 == 0)
            check_code(&f64, bits);     /* most of them far from 1: by the C library */
        uint64_t exponent = 1023 - 35 + bits % 150;
        check_code(&f64, bits >> 63 << 63 | exponent << 52 | bits >> 12);
    }
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        check_code(&f64, exponent << 52);
}

/* Digits without the zeros at both ends. */
static int count_digits(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0' && n)
            zeros++;
        else if (*text >= '1' && *text <= '9')
            n += 1 + zeros, zeros = 0;
    }
    return n;
}

static void check_shortest(const tn_mtx_real *real, uint64_t code)
{
    char expected[64];
    uint8_t element[8] = { 0 };
    tn_code_put(element, 0, real->type->bits, code);
    tn_value_format(expected, sizeof expected, real->type->dtype,
                    tn_value_get(real->type->dtype, element, 0));
    const char *found = text_of(real, code);
    if (strtod(found, NULL) != strtod(expected, NULL) || count_digits(found) != count_digits(expected))
        fail_msg("%s: expected %s but found %s", real->type->name, expected, found);
}

static void what_is_written_is_the_shortest_text(void)
{
    tn_mtx_real f64 = tn_mtx_real_of(TN_FLOAT64), f32 = tn_mtx_real_of(TN_FLOAT32),
                f16 = tn_mtx_real_of(TN_FLOAT16);
    tn_mtx_real bf16 = tn_mtx_real_of(TN_BFLOAT16), e5m2 = tn_mtx_real_of(TN_FLOAT8_E5M2);
    for (uint64_t exponent = 1023 - 40; exponent < 1023 + 140; exponent++) {
        check_shortest(&f64, exponent << 52);
        for (int i = 0; i < 20; i++)
            check_shortest(&f64, exponent << 52 | bits64() >> 12);
    }
    for (uint64_t exponent = 0; exponent < 255; exponent++) {
        check_shortest(&f32, exponent << 23 | (exponent == 0));
        for (int i = 0; i < 20; i++)
            check_shortest(&f32, exponent << 23 | bits64() >> 41 | 1);
        check_shortest(&bf16, exponent << 7 | (bits64() >> 57) | 1);
    }
    for (uint64_t code = 1; code < 0x7c00; code += 7)
        check_shortest(&f16, code);
    for (uint64_t code = 1; code < 0x7c; code++)
        check_shortest(&e5m2, code);
}

static void numbers_are_laid_out_for_people(void)
{
    static const struct { double value; const char *text; } shown[] = {
        { 0, "0" }, { -0.0, "-0" }, { 1, "1" }, { -1.5, "-1.5" }, { 0.1, "0.1" }, { 0.001, "0.001" },
        { 0.0001, "0.0001" },
        { 0.00012, "0.00012" }, { 0.00001, "1e-5" }, { 1.5e-7, "1.5e-7" }, { 100, "100" },
        { 123456.75, "123456.75" },
        { 1e15, "1000000000000000" }, { 1e16, "1e16" }, { 1.25e17, "1.25e17" }, { 1e300, "1e300" },
        { 1.5e-300, "1.5e-300" },
        { 5e-324, "5e-324" }, { 1.7976931348623157e308, "1.7976931348623157e308" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 9007199254740993.0, "9007199254740992" }, { 5e22, "5e22" }, { INFINITY, "inf" },
        { -INFINITY, "-inf" },
    };
    tn_mtx_real f64 = tn_mtx_real_of(TN_FLOAT64);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        uint64_t code;
        memcpy(&code, &shown[i].value, sizeof code);
        assert_string_equal(text_of(&f64, code), shown[i].text);
    }
    assert_string_equal(text_of(&f64, UINT64_C(0x7ff8000000000000)), "nan");
    assert_string_equal(text_of(&f64, UINT64_C(0xfff8000000000000)), "-nan");
    assert_string_equal(text_of(&f64, UINT64_C(0x7ff8000000000001)), "nan(0x8000000000001)");
}

/* ---- reading ---- */

static void check_double(const char *text)
{
    tn_mtx_real f64 = tn_mtx_real_of(TN_FLOAT64), f32 = tn_mtx_real_of(TN_FLOAT32);
    double expected = strtod(text, NULL), found = 0;
    float expected_float = strtof(text, NULL), found_float = 0;
    uint64_t code = 0;
    bool read = reads(&f64, text, &code);
    memcpy(&found, &code, sizeof found);
    if (isinf(expected) ? read : !read || found != expected || signbit(found) != signbit(expected))
        fail_msg("expected %a but found %d %a: %.100s", expected, read, found, text);
    if (reads(&f32, text, &code)) {     /* what has too many digits is refused unless exact */
        uint32_t bits = (uint32_t)code;
        memcpy(&found_float, &bits, sizeof bits);
        if (found_float != expected_float)
            fail_msg("expected %a but found %a: %.100s", (double)expected_float, (double)found_float, text);
    } else if (!isinf(expected_float) && strlen(text) < 10) {
        fail_msg("not read as float32: %s", text);
    }
}

static void any_decimal_is_read_as_the_c_library_reads_it(void)
{
    char text[128];
    for (int i = 0; i < 300000; i++) {
        uint64_t a = bits64(), b = bits64();
        int digits = (int)(b % 25), exponent = (int)(b >> 8 & 127) - 64;
        if (i % 8 == 0)
            exponent *= 6;
        snprintf(text, sizeof text, "%s%llu%.*llu", b >> 60 & 1 ? "-" : "",
                 (unsigned long long)(a >> (b >> 16 & 63)), digits, (unsigned long long)(b >> 30));
        size_t n = strlen(text);
        if (b >> 61 & 1) {
            size_t point = (b >> 50) % n + (text[0] == '-');
            point = point > n ? n : point;
            memmove(text + point + 1, text + point, n - point + 1);
            text[point] = '.';
            n++;
        }
        if (b >> 62 & 1)
            snprintf(text + n, sizeof text - n, "e%+d", exponent);
        check_double(text);
    }
}

static void digits_far_behind_count(void)
{
    static char text[3000];
    static const char *const halves[] = {
        "9007199254740993", "9007199254740995", "0.500000000000000055511151231257827021181583404541015625",
        "1.00000000000000011102230246251565404236316680908203125", "16777217", "1.000000059604644775390625",
        "2.4703282292062327208299439634110e-324",
    };
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        check_double(halves[i]);
        for (size_t zeros = 0; zeros < 2400; zeros += 331) {
            if (strchr(halves[i], 'e'))
                continue;
            snprintf(text, sizeof text, "%s%s", halves[i], strchr(halves[i], '.') ? "" : ".");
            size_t n = strlen(text);
            memset(text + n, '0', zeros);
            strcpy(text + n + zeros, "1");
            check_double(text);
            text[n + zeros] = '0';
            check_double(text);
        }
    }
    memset(text, '0', sizeof text);
    memcpy(text, "0.", 2);
    strcpy(text + 2000, "17e2001");
    check_double(text);
    memset(text, '0', 2000);
    text[0] = '7';
    strcpy(text + 2000, "e-2010");
    check_double(text);
    strcpy(text + 2000, "");
    check_double(text);                 /* too large */
}

/* 2^53 - 1 halves of the smallest double, the least point half-way between two with the most digits: 768. */
static size_t spell_half_way(char *text)
{
    uint8_t digits[800] = { 0 };        /* the last one first */
    size_t n = 0;
    for (uint64_t left = (UINT64_C(1) << 53) - 1; left; left /= 10)
        digits[n++] = (uint8_t)(left % 10);
    for (int k = 0; k < 1075; k++) {
        unsigned carry = 0;
        for (size_t i = 0; i < n || carry; i++) {
            carry += digits[i] * 5u;
            digits[i] = (uint8_t)(carry % 10);
            carry /= 10;
            n = i < n ? n : i + 1;
        }
    }
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('0' + digits[n - 1 - i]);
    return n;
}

static void the_longest_point_half_way_between_two_doubles_is_seen(void)
{
    char text[900];
    size_t n = spell_half_way(text);
    CHECK(n == 768);
    strcpy(text + n, "e-1075");
    check_double(text);
    strcpy(text + n, "0000000001e-1085");
    check_double(text);
    text[n - 1]--;
    strcpy(text + n, "9999999999e-1085");
    check_double(text);
}

static void any_number_of_zeros_has_an_exponent_that_makes_up_for_it(void)
{
    enum { ZEROS = 1200000 };
    char *text = malloc(ZEROS + 32);
    assert_non_null(text);
    memset(text, '0', ZEROS + 2);
    text[1] = '.';
    strcpy(text + ZEROS + 2, "17e1200001");
    check_double(text);
    text[0] = '7';
    text[1] = '0';
    strcpy(text + ZEROS, "e-1200010");
    check_double(text);
    free(text);
}

static void numbers_are_read_however_they_are_spelled(void)
{
    static const struct { const char *text; double value; } good[] = {
        { "1", 1 }, { "+1", 1 }, { "-1", -1 }, { "01", 1 }, { "1.", 1 }, { ".5", 0.5 }, { "-.5", -0.5 },
        { "1e2", 100 },
        { "1E2", 100 },
        { "1d2", 100 }, { "1D+2", 100 }, { "1e-2", 0.01 }, { "1.5e+00", 1.5 },
        { "0e999999999999999999999", 0 },
        { "1e-999999999999999999999", 0 },
        { "inf", INFINITY }, { "Inf", INFINITY }, { "-INF", -INFINITY }, { "+infinity", INFINITY },
        { "Infinity", INFINITY },
        { "000000000000000000000000000012", 12 }, { "0.0000000000000000000000000000001", 1e-31 },
        { "123456789012345678901234567890", 123456789012345678901234567890.0 },
    };
    static const char *const bad[] = {
        "",         "+",         "-",       ".",
        "-.",       "e5",        "1e",      "1e+",
        "1e-",      "--1",       "+-1",     "1_0",
        "0x10",     "1,5",       "1.2.3",   "1e5.0",
        "1e5e5",    "in",        "infi",    "infinit",
        "na",       "nan(",      "nan()",   "nan(0x)",
        "nan(0x0)", "nan(1)",    "nan(0x1", "nan(0x10000000000000)",
        "nan(0x@)", "nan(0x1)x", "1f",      "1L",
        "\xff",     "1e400",     "-1e309",  "1e999999999999999999999",
    };
    tn_mtx_real f64 = tn_mtx_real_of(TN_FLOAT64);
    uint64_t code, expected;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        memcpy(&expected, &good[i].value, sizeof expected);
        if (!reads(&f64, good[i].text, &code) || code != expected)
            fail_msg("%s was read as %llx", good[i].text, (unsigned long long)code);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (reads(&f64, bad[i], &code))
            fail_msg("%s was read as %llx", bad[i], (unsigned long long)code);
    CHECK(reads(&f64, "NaN", &code) && code == UINT64_C(0x7ff8000000000000));
    CHECK(reads(&f64, "-nan", &code) && code == UINT64_C(0xfff8000000000000));
    CHECK(reads(&f64, "nan(0xF)", &code) && code == UINT64_C(0x7ff000000000000f));
}

static void a_number_that_its_type_cannot_hold_is_refused(void)
{
    static const struct { tn_dtype dtype; const char *text; bool held; } cases[] = {
        { TN_FLOAT32, "0.1", true }, { TN_FLOAT32, "0.100000001", true },
        { TN_FLOAT32, "0.1000000014", false },
        { TN_FLOAT32, "0.100000001490116119384765625", true }, { TN_FLOAT32, "3.4028236e38", false },
        { TN_FLOAT32, "1e39", false },
        { TN_FLOAT32, "1e400", false }, { TN_FLOAT32, "1e-60", false }, { TN_FLOAT32, "1e-45", true },
        { TN_FLOAT32, "0e-60", true }, { TN_FLOAT32, "inf", true },
        { TN_FLOAT32, "1.000000000000000000000", true },
        { TN_FLOAT16, "65504", true }, { TN_FLOAT16, "65520", false }, { TN_FLOAT16, "0.1", true },
        { TN_FLOAT16, "0.100001", false },
        { TN_FLOAT8_E4M3FN, "448", true }, { TN_FLOAT8_E4M3FN, "449", false },
        { TN_FLOAT8_E4M3FN, "inf", false },
        { TN_FLOAT8_E4M3FN, "nan", true }, { TN_FLOAT8_E4M3FN, "0.1", false },
        { TN_FLOAT8_E4M3FN, "1e39", false },
        { TN_FLOAT8_E4M3FN, "nan(0x1)", false }, { TN_FLOAT8_E8M0, "0", false },
        { TN_FLOAT8_E8M0, "-1", false },
        { TN_FLOAT8_E8M0, "0.5", true },
        { TN_FLOAT4_E2M1, "6", true }, { TN_FLOAT4_E2M1, "nan", false }, { TN_FLOAT4_E2M1, "5", false },
        { TN_BFLOAT16, "nan(0x80)", false },
        { TN_BFLOAT16, "nan(0x7f)", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_mtx_real real = tn_mtx_real_of(cases[i].dtype);
        uint64_t code;
        if (reads(&real, cases[i].text, &code) != cases[i].held)
            fail_msg("%s as %s", cases[i].text, real.type->name);
    }
}

static void integers_have_the_range_of_their_type(void)
{
    static const struct { tn_dtype dtype; const char *text; bool held; uint64_t code; } cases[] = {
        { TN_INT8, "127", true, 127 }, { TN_INT8, "128", false, 0 }, { TN_INT8, "-128", true, 0x80 },
        { TN_INT8, "-129", false, 0 },
        { TN_INT8, "-0", true, 0 }, { TN_INT8, "+5", true, 5 }, { TN_INT8, "005", true, 5 },
        { TN_INT4, "-8", true, 8 },
        { TN_INT4, "8", false, 0 },
        { TN_UINT4, "15", true, 15 }, { TN_UINT4, "-1", false, 0 }, { TN_BOOL, "1", true, 1 },
        { TN_BOOL, "2", false, 0 },
        { TN_INT64, "9223372036854775807", true, INT64_MAX }, { TN_INT64, "9223372036854775808", false, 0 },
        { TN_INT64, "-9223372036854775808", true, UINT64_C(1) << 63 },
        { TN_INT64, "-9223372036854775809", false, 0 },
        { TN_UINT64, "18446744073709551615", true, UINT64_MAX }, { TN_UINT64, "18446744073709551616", false,
                                                                   0 },
        { TN_INT64, "99999999999999999999999999", false, 0 }, { TN_FX16, "-2", true, 0xfffe },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tn_dtype_info *type = tn_dtype_get(cases[i].dtype);
        const char *text = cases[i].text, *end = text + strlen(text);
        uint64_t code;
        char again[TN_MTX_NUMBER_MAX];
        bool held;
        if (tn_mtx_read_integer(type, text, end, &code, &held) != end || held != cases[i].held ||
            (held && code != cases[i].code))
            fail_msg("%s as %s", text, type->name);
        if (!held || strpbrk(text, "+0"))
            continue;
        *tn_mtx_put_integer(type, code, again) = '\0';
        assert_string_equal(again, text);
    }
    static const char *const bad[] = { "", "-", "+", "x", "-x" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t code;
        bool held;
        CHECK(!tn_mtx_read_integer(tn_dtype_get(TN_INT8), bad[i], bad[i] + strlen(bad[i]), &code, &held));
    }
}

/* The C library's point and rounding are the caller's. */
static void neither_locale_nor_rounding_count(void)
{
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    static const char *const texts[] = { "0.1", "1e-300", "12345678901234567890.123", "2.5e300" };
    tn_mtx_real f64 = tn_mtx_real_of(TN_FLOAT64);
    setlocale(LC_NUMERIC, "de_DE.UTF-8");       /* where there is one */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t expected, found;
        char text[TN_MTX_NUMBER_MAX + 1];
        CHECK(reads(&f64, texts[i], &expected));
        strcpy(text, text_of(&f64, expected));
        for (size_t m = 0; m < 3; m++) {
            fesetround(modes[m]);
            bool good = reads(&f64, texts[i], &found) && found == expected &&
                        strcmp(text_of(&f64, expected), text) == 0;
            int after = fegetround();
            fesetround(FE_TONEAREST);
            CHECK(good && after == modes[m]);
        }
    }
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_code_of_narrow_types_comes_back),
        TEST(codes_of_wide_types_come_back),
        TEST(what_is_written_is_the_shortest_text),
        TEST(numbers_are_laid_out_for_people),
        TEST(any_decimal_is_read_as_the_c_library_reads_it),
        TEST(digits_far_behind_count),
        TEST(the_longest_point_half_way_between_two_doubles_is_seen),
        TEST(any_number_of_zeros_has_an_exponent_that_makes_up_for_it),
        TEST(numbers_are_read_however_they_are_spelled),
        TEST(a_number_that_its_type_cannot_hold_is_refused),
        TEST(integers_have_the_range_of_their_type),
        TEST(neither_locale_nor_rounding_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
