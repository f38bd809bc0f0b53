/* Exact quotients and products, and MLI's: against whole numbers of 128 bits and against the firmware's
 * header. */
#include "support.h"

#include "affine.h"

#include "random.h"
#include "rounding.h"
#include "tensor/code.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include <tenon/mli.h>
#include <tenon/quantize.h>

__extension__ typedef unsigned __int128 wide;

enum { N = 4096 };

/* ---- the slow computation ---- */

/* 64 bits of rest / whole, bit by bit; the last one stands for what is finer. */
static uint64_t fraction_of(wide rest, wide whole)
{
    uint64_t fraction = 0;
    for (int i = 0; i < 64; i++) {
        rest *= 2;
        fraction = fraction << 1 | (rest >= whole);
        rest -= rest >= whole ? whole : 0;
    }
    return fraction | (rest != 0);
}

static bool goes_up(wide floor, wide rest, wide whole, bool negative, const affine_options *o,
                    uint64_t index)
{
    int half = 2 * rest < whole ? -1 : 2 * rest > whole;
    switch (o->round) {
    case TN_ROUND_EVEN:    return half > 0 || (half == 0 && floor % 2);
    case TN_ROUND_AWAY:    return half >= 0;
    case TN_ROUND_ZERO:    return half > 0;
    case TN_ROUND_HALF_UP: return half > 0 || (half == 0 && !negative);
    case TN_ROUND_UP:      return rest && !negative;
    case TN_ROUND_DOWN:    return rest && negative;
    case TN_ROUND_STOCHASTIC: return rest && chance_of(o->seed, index) < fraction_of(rest, whole);
    default:               return false;
    }
}

/* x / scale, both finite, as a whole number; what is beyond 2^60 is 2^60. */
static int64_t exact_integer(float x, float scale, const affine_options *o, uint64_t index)
{
    int px, ps;
    wide a = (wide)(uint32_t)ldexpf(frexpf(fabsf(x), &px), 24),
         b = (wide)(uint32_t)ldexpf(frexpf(scale, &ps), 24);
    int shift = px - ps;
    bool negative = signbit(x);
    if (a == 0)
        return 0;
    if (shift > 60)
        return negative ? -(INT64_C(1) << 60) : INT64_C(1) << 60;
    if (shift < -90)            /* far below a half, and not zero */
        shift = -90;
    wide number = shift > 0 ? a << shift : a, whole = shift < 0 ? b << -shift : b;
    wide floor = number / whole, rest = number % whole;
    int64_t magnitude = (int64_t)(floor + goes_up(floor, rest, whole, negative, o, index));
    return negative ? -magnitude : magnitude;
}

static int64_t cut(int64_t code, const int64_t range[2])
{
    return code < range[0] ? range[0] : code > range[1] ? range[1] : code;
}

static int64_t exact_code(float x, float scale, int32_t zero, const int64_t range[2],
                          const affine_options *o, uint64_t index)
{
    if (isinf(x))
        return range[x > 0];
    return cut(exact_integer(x, scale, o, index) + zero, range);
}

/* ---- codes ---- */

static const int64_t limits[3][2] = { { -128, 127 }, { -32768, 32767 }, { INT32_MIN, INT32_MAX } };
static const tn_dtype types[3] = { TN_INT8, TN_INT16, TN_INT32 };

static int64_t code_at(int type, const void *data, size_t i)
{
    int8_t  i8;
    int16_t i16;
    int32_t i32;
    const uint8_t *p = data;
    memcpy(&i8, p + i, 1);
    memcpy(&i16, p + (type == 1 ? 2 * i : 0), 2);
    memcpy(&i32, p + (type == 2 ? 4 * i : 0), 4);
    return type == 0 ? i8 : type == 1 ? i16 : i32;
}

static void check_exact(const float *x, int64_t n, float scale, int32_t zero, tn_round round)
{
    static int32_t out[N];
    const affine_options o = { .axis = TN_PER_TENSOR, .round = round, .seed = 5,
                                    .jobs = 1,
                                    .arithmetic = TN_ARITH_EXACT };
    tn_error err = { .text = "" };
    for (int t = 0; t < 3; t++) {
        tn_array d = { .dtype = types[t], .rank = 1, .shape = &n },
        s = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
        if (affine_quantize(&d, out, &s, x, &scale, &zero, &o, &err))
            fail_msg("%s", line_of(&err));
        for (size_t i = 0; i < (size_t)n; i++) {
            int64_t want = exact_code(x[i], scale, zero, limits[t], &o, i), found = code_at(t, out, i);
            if (found != want)
                fail_msg("%a / %a + %d in mode %d, is %lld but not %lld", (double)x[i], (double)scale,
                         (int)zero, (int)round, (long long)found, (long long)want);
        }
    }
}

static const float telling_scales[] = { 1, 0.5f, 2, 0x1p-15f, 0x1p-7f, 0x1p20f, 0x1p126f, 0x1p127f, 0x1p-126f,
                                        0x1p-127f, 0x1p-149f, 3, 0.1f, 0.75f, 1e-45f * 3,
                                        FLT_MAX, FLT_MIN, 0x1.fffffep-1f, 0x1.000002p0f, 0x1.fffffep-4f,
                                        0x1.000002p-9f, 0x1.8p-3f, 1.0f / 3,
                                        1e-40f };
enum { SCALES = sizeof telling_scales / sizeof telling_scales[0] };

/* A whole number and a half of the scale, as near as float32 comes, and its neighbours. */
static void make_ties(float *x, size_t n, float scale)
{
    for (size_t i = 0; i + 3 <= n; i += 3) {
        double k = (double)(bits64() >> (44 + bits64() % 20)) - (double)(bits64() % 2) * 100;
        float tie = (float)((k + 0.5) * (double)scale);
        x[i] = isfinite(tie) ? tie : 1;
        x[i + 1] = nextafterf(x[i], INFINITY);
        x[i + 2] = nextafterf(x[i], -INFINITY);
    }
}

/* a * 2^p / b with 2^(p + 1) * a = e modulo b is e / 2b away from a tie: 2^-25 at quotients of up to 2^31,
 * where binary64 has ties alone. */
static void make_next_to_ties(float *x, size_t n, uint32_t b)
{
    for (size_t i = 0; i < n; i++) {
        int p = 23 + (int)(bits64() % 9);
        uint32_t a = bits64() % 2 ? 1 : b - 1;
        for (int k = 0; k <= p; k++)
            a = (a % 2 ? a + b : a) / 2;
        x[i] = ldexpf((float)a, p) * (i % 2 ? -1.0f : 1.0f);
    }
}

static void quotients_next_to_ties_are_rounded_once(void)
{
    static float x[N];
    for (int k = 0; k < 60; k++)
        for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_DOWN; mode++) {
            uint32_t b = 0x800001 | (uint32_t)(bits64() >> 41);
            make_next_to_ties(x, 300, b);
            check_exact(x, 300, (float)b, (int32_t)(bits64() % 300) - 150, (tn_round)mode);
        }
}

static void make_any(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = tn_float_of((uint32_t)bits64());
        x[i] = isnan(x[i]) ? 0 : x[i];
    }
}

static void make_near(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)(int64_t)bits64() * 0x1p-63 * pow(2, (double)(bits64() % 34)) * (double)scale);
        x[i] = isfinite(x[i]) ? x[i] : -1;
    }
}

static void quotients_are_rounded_once_in_every_mode(void)
{
    static float x[N];
    static const float special[] = { 0,       -0.0f,    1e-45f,        -1e-45f,     FLT_MIN,    -FLT_MIN,
                                     FLT_MAX, -FLT_MAX, INFINITY,      -INFINITY,   0.5f,       -0.5f,
                                     1.5f,    -1.5f,    2.5f,          0.49999997f, 8388609.0f, 16777217.0f,
                                     0x1p31f, -0x1p31f, 0x1.fffffep30f };
    for (size_t k = 0; k < SCALES + 20; k++) {
        float scale = k < SCALES ? telling_scales[k] : tn_float_of((uint32_t)(bits64() % 0x7f7fffff) + 1);
        for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_STOCHASTIC; mode++) {
            size_t n = mode == TN_ROUND_STOCHASTIC ? 600 : 3000;
            memcpy(x, special, sizeof special);
            size_t rest = (n - sizeof special / sizeof *x) / 3, at = sizeof special / sizeof *x;
            make_any(x + at, rest);
            make_near(x + at + rest, rest, scale);
            make_ties(x + at + 2 * rest, rest, scale);
            check_exact(x, (int64_t)(at + rest / 3 * 3 + 2 * rest), scale, (int32_t)(bits64() % 300) - 150,
                        (tn_round)mode);
            check_exact(x, 200, scale, bits64() % 2 ? INT32_MAX : INT32_MIN, (tn_round)mode);
        }
    }
}

/* Quotients that binary32 rounds to a tie or to a whole number. */
static void binary32_rounds_twice_where_exact_rounds_once(void)
{
    static const struct { float x, scale; tn_round round; int8_t twice, once; } cases[] = {
        { 0x1.f369aap+4f, 0x1.42da4ap-1f, TN_ROUND_EVEN, 50, 49 },
        { 0x1.701c24p+3f, 0x1.b44748p-1f, TN_ROUND_AWAY, 14, 13 },
        { 0x1.774d74p+5f, 0x1.ea30eap-1f, TN_ROUND_UP, 49, 50 },
        { 0x1.576fe0p+5f, 0x1.8fa2c4p-1f, TN_ROUND_DOWN, 55, 54 },
    };
    const int64_t one = 1;
    const tn_array d = { .dtype = TN_INT8, .rank = 1, .shape = &one },
    s = { .dtype = TN_FLOAT32, .rank = 1, .shape = &one };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 2; k++) {
            const affine_options o = { .axis = TN_PER_TENSOR, .round = cases[i].round,
                                            .jobs = 1,
                                            .arithmetic = k ? TN_ARITH_EXACT : TN_ARITH_BINARY32 };
            int8_t code;
            CHECK(affine_quantize(&d, &code, &s, &cases[i].x, &cases[i].scale, NULL, &o, NULL) == TN_OK);
            CHECK(code == (k ? cases[i].once : cases[i].twice));
        }
}

static void exact_nan_is_refused_or_the_zero(void)
{
    const int64_t n = 40;
    const float scale = 0.3f;
    const int32_t zero = 7;
    float x[40] = { 1 };
    int16_t out[40];
    const tn_array d = { .dtype = TN_INT16, .rank = 1, .shape = &n },
    s = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    x[33] = NAN;
    for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_STOCHASTIC; mode++) {
        affine_options o = { .axis = TN_PER_TENSOR, .round = (tn_round)mode,
                                  .arithmetic = TN_ARITH_EXACT };
        tn_error err;
        CHECK(affine_quantize(&d, out, &s, x, &scale, &zero, &o, &err) == TN_ERR_LOSS);
        assert_string_equal(said_of(&err), "element [33] is nan, and int16 has no NaN (nan zero)");
        o.nan = TN_NAN_ZERO;
        CHECK(affine_quantize(&d, out, &s, x, &scale, &zero, &o, &err) == TN_OK && out[33] == 7 && out[1] == 7);
    }
}

static void an_arithmetic_that_there_is_not_is_refused(void)
{
    const int64_t n = 1;
    float x = 1, scale = 1;
    int8_t out = 0;
    const tn_array d = { .dtype = TN_INT8, .rank = 1, .shape = &n },
    s = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    const affine_options o = { .axis = TN_PER_TENSOR,
                                    .arithmetic = (tn_arithmetic)3 };
    tn_error err;
    CHECK(affine_quantize(&d, &out, &s, &x, &scale, NULL, &o, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "expected an arithmetic of 0 to 2 but found 3");
    CHECK(affine_dequantize(&s, &x, &d, &out, &scale, NULL, &o, &err) == TN_ERR_ARGUMENT);
}

/* ---- values ---- */

static void products_are_rounded_once_for_every_code(void)
{
    static const int32_t zeros[] = { 0, 1, -1, 12345, INT32_MAX, INT32_MIN, 1 << 20, -(1 << 20) - 1 };
    static int32_t codes[N];
    static float out[N];
    const int64_t n = N;
    for (size_t i = 0; i < N; i++)
        codes[i] = (int32_t)(bits64() >> (bits64() % 32));
    codes[0] = INT32_MIN;
    codes[1] = INT32_MAX;
    codes[2] = 0;
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < SCALES * 2; k++)
            for (size_t z = 0; z < sizeof zeros / sizeof zeros[0]; z++)
                for (int arithmetic = TN_ARITH_BINARY32; arithmetic <= TN_ARITH_MLI; arithmetic++) {
                    const float scale = telling_scales[k / 2] * (k % 2 ? -1 : 1);
                    const affine_options o = { .axis = TN_PER_TENSOR, .jobs = 1,
                                                    .arithmetic = (tn_arithmetic)arithmetic };
                    const tn_array d = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n },
                    s = { .dtype = types[t], .rank = 1, .shape = &n };
                    CHECK(affine_dequantize(&d, out, &s, codes, &scale, &zeros[z], &o, NULL) == TN_OK);
                    for (size_t i = 0; i < N; i++) {
                        int64_t difference = code_at(t, codes, i) - zeros[z];
                        float near = (float)cut(difference, limits[2]);
                        float want = arithmetic == TN_ARITH_MLI
                                         ? (float)((double)near * (double)scale)
                                         : (float)((long double)difference * (long double)scale);
                        CHECK(memcmp(&out[i], &want, sizeof want) == 0);
                    }
                }
}

static void int32_products_that_rounding_twice_would_change(void)
{
    const int64_t n = 2;
    const int32_t codes[] = { 567653916, -(567653916) };
    const float scale = 0x1.157fc0p-1f;
    float out[2];
    const tn_array d = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n },
    s = { .dtype = TN_INT32, .rank = 1, .shape = &n };
    CHECK(affine_dequantize(&d, out, &s, codes, &scale, NULL, NULL, NULL) == TN_OK);
    CHECK(out[0] == 307662912.0f && out[1] == -307662912.0f);
    const affine_options mli = { .axis = TN_PER_TENSOR, .arithmetic = TN_ARITH_MLI };
    CHECK(affine_dequantize(&d, out, &s, codes, &scale, NULL, &mli, NULL) == TN_OK);
    CHECK(out[0] == 307662880.0f && out[1] == -307662880.0f);
}

/* ---- MLI ---- */

static void quantize_as_mli(int type, void *out, const float *x, int64_t n, float scale, const int32_t *zero)
{
    /* Neither rounding nor NaN count. */
    const affine_options o = { .axis = TN_PER_TENSOR, .round = TN_ROUND_UP,
                                    .nan = TN_NAN_ERROR, .jobs = 1,
                                    .arithmetic = TN_ARITH_MLI };
    const tn_array d = { .dtype = types[type], .rank = 1, .shape = &n },
    s = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    tn_error err = { .text = "" };
    if (affine_quantize(&d, out, &s, x, &scale, zero, &o, &err))
        fail_msg("%s", line_of(&err));
}

static void mli_codes_are_those_of_the_firmware_header(void)
{
    static float x[N];
    static int16_t out16[N];
    static int8_t out8[N];
    for (int frac = -127; frac <= 126; frac++) {
        const float scale = ldexpf(1, -frac);
        make_any(x, N);
        make_near(x + N / 4, N / 4, scale);
        make_ties(x + N / 2, N / 4, scale);
        x[0] = 0.49999997f * scale;
        x[1] = NAN;
        x[2] = INFINITY;
        x[3] = -INFINITY;
        quantize_as_mli(1, out16, x, N, scale, NULL);
        quantize_as_mli(0, out8, x, N, scale, NULL);
        for (size_t i = 0; i < N; i++) {
            int16_t want16;
            int8_t want8;
            CHECK(tn_mli_float_to_fx16(x[i], frac, TN_FX_FLOAT_STEPS, &want16) == TN_MLI_OK &&
                  out16[i] == want16);
            CHECK(tn_mli_float_to_fx8(x[i], frac, TN_FX_FLOAT_STEPS, &want8) == TN_MLI_OK &&
                  out8[i] == want8);
        }
    }
}

static void mli_adds_the_zero_after_rounding_and_cuts_at_32_bits(void)
{
    const float x[] = { 0.49999997f, -0.49999997f, 8388609, 3e9f, -3e9f, NAN, 0, -0.0f, 2147483520.0f };
    enum { COUNT = sizeof x / sizeof x[0] };
    int32_t out[COUNT];
    const int32_t zeros[] = { 0, 5, -5, INT32_MAX, INT32_MIN };
    for (size_t z = 0; z < sizeof zeros / sizeof zeros[0]; z++) {
        const int64_t before[] = { 1, -1, 8388610, INT32_MIN, INT32_MIN, INT32_MIN, 0, 0, 2147483520 };
        quantize_as_mli(2, out, x, COUNT, 1, &zeros[z]);
        for (size_t i = 0; i < COUNT; i++)
            CHECK(out[i] == cut(before[i] + zeros[z], limits[2]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(quotients_are_rounded_once_in_every_mode),
        TEST(quotients_next_to_ties_are_rounded_once),
        TEST(binary32_rounds_twice_where_exact_rounds_once),
        TEST(exact_nan_is_refused_or_the_zero),
        TEST(an_arithmetic_that_there_is_not_is_refused),
        TEST(products_are_rounded_once_for_every_code),
        TEST(int32_products_that_rounding_twice_would_change),
        TEST(mli_codes_are_those_of_the_firmware_header),
        TEST(mli_adds_the_zero_after_rounding_and_cuts_at_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
