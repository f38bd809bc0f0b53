#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include <zstd.h>

#include "support.h"
#include "tensor/array.h"
#include "tensor/number.h"

/* TensorCast's own answers for casts without a scale: golden/README.md. */

/* A number spec of TensorCast as a row of our table, and the type of ours that
 * it is, if any.  inuz has the limits of fn; that it has no -0 is forgiven. */
static const struct spec {
    const char *name;
    uint8_t e, m;
    int16_t bias;
    tn_specials specials;
    tn_dtype dtype;
} specs[] = {
    { "float32", 8, 23, 127, TN_SPECIALS_IEEE, TN_FLOAT32 },
    { "float24", 8, 15, 127, TN_SPECIALS_IEEE, TN_UNKNOWN },
    { "float16", 5, 10, 15, TN_SPECIALS_IEEE, TN_FLOAT16 },
    { "e5m10", 5, 10, 15, TN_SPECIALS_IEEE, TN_FLOAT16 },
    { "bfloat16", 8, 7, 127, TN_SPECIALS_IEEE, TN_BFLOAT16 },
    { "e8m7", 8, 7, 127, TN_SPECIALS_IEEE, TN_BFLOAT16 },
    { "e5m6", 5, 6, 15, TN_SPECIALS_IEEE, TN_UNKNOWN },
    { "e5m3", 5, 3, 15, TN_SPECIALS_IEEE, TN_UNKNOWN },
    { "e5m2", 5, 2, 15, TN_SPECIALS_IEEE, TN_FLOAT8_E5M2 },
    { "e4m3", 4, 3, 7, TN_SPECIALS_IEEE, TN_FLOAT8_E4M3 },
    { "e4m3fn", 4, 3, 7, TN_SPECIALS_FN, TN_FLOAT8_E4M3FN },
    { "e5m2fnuz", 5, 2, 15, TN_SPECIALS_FNUZ, TN_UNKNOWN },
    { "e4m3fnuz", 4, 3, 7, TN_SPECIALS_FNUZ, TN_UNKNOWN },
    { "e5m2b16fnuz", 5, 2, 16, TN_SPECIALS_FNUZ, TN_FLOAT8_E5M2FNUZ },
    { "e4m3b8fnuz", 4, 3, 8, TN_SPECIALS_FNUZ, TN_FLOAT8_E4M3FNUZ },
    { "float8_e4m3fnuz", 4, 3, 8, TN_SPECIALS_FNUZ, TN_FLOAT8_E4M3FNUZ },
    { "e3m4b4fnuz", 3, 4, 4, TN_SPECIALS_FNUZ, TN_UNKNOWN },
    { "e3m3fnuz", 3, 3, 3, TN_SPECIALS_FNUZ, TN_UNKNOWN },
    { "e5m2b16inuz", 5, 2, 16, TN_SPECIALS_FN, TN_UNKNOWN },
    { "e4m3b8inuz", 4, 3, 8, TN_SPECIALS_FN, TN_UNKNOWN },
    { "e3m4b4inuz", 3, 4, 4, TN_SPECIALS_FN, TN_UNKNOWN },
    { "e3m2fnuz", 3, 2, 3, TN_SPECIALS_NONE, TN_FLOAT6_E3M2 },
    { "e2m3fnuz", 2, 3, 1, TN_SPECIALS_NONE, TN_FLOAT6_E2M3 },
    { "e2m1fnuz", 2, 1, 1, TN_SPECIALS_NONE, TN_FLOAT4_E2M1 },
};

static const struct spec *spec_of(const char *name)
{
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        if (strcmp(specs[i].name, name) == 0)
            return &specs[i];
    fail_msg("number spec %s is not in the table of this test", name);
    return NULL;
}

static tn_round round_of(const char *name)
{
    CHECK(strcmp(name, "even") == 0 || strcmp(name, "away") == 0 || strcmp(name, "zero") == 0);
    return name[0] == 'e' ? TN_ROUND_EVEN : name[0] == 'a' ? TN_ROUND_AWAY : TN_ROUND_ZERO;
}

static float *read_values(size_t *count)
{
    static uint8_t packed[1 << 20];
    FILE *file = fopen(TEST_GOLDEN "/tensorcast/unscaled.zst", "rb");
    assert_non_null(file);
    size_t n = fread(packed, 1, sizeof packed, file);
    fclose(file);
    size_t size = (size_t)ZSTD_getFrameContentSize(packed, n);
    CHECK(size < 64 << 20);
    float *values = malloc(size);
    assert_non_null(values);
    CHECK(ZSTD_decompress(values, size, packed, n) == size);
    *count = size / sizeof *values;
    return values;
}

/* What the definition makes of x, back as a float. */
static float by_definition(const tn_dtype_info *type, const tn_encode_rules *rules, float x)
{
    uint32_t bits;
    unsigned flags = 0;
    memcpy(&bits, &x, sizeof bits);
    uint64_t code =
        tn_number_encode(type, rules, tn_number_decode(tn_dtype_get(TN_FLOAT32), bits), 0, &flags);
    tn_number y = tn_number_decode(type, code);
    if (y.class != TN_NUMBER_FINITE)
        return NAN;             /* saturated: nothing is infinite */
    float magnitude = (float)ldexp((double)y.significand, y.exponent);
    return y.negative ? -magnitude : magnitude;
}

/* The original has NaN from finite values where 2^(m - e) overflows its
 * float32; that is not kept. */
static bool is_their_slip(const struct spec *s, float x, float expected)
{
    return isnan(expected) && !isnan(x) && s->e == 8 && fabs((double)x) < ldexp(1, s->m - 127);
}

static bool equal(const struct spec *s, float a, float b)
{
    bool has_zeros = s->specials == TN_SPECIALS_FNUZ || strstr(s->name, "inuz");
    return (isnan(a) && isnan(b)) || (a == b && (signbit(a) == signbit(b) || (a == 0 && has_zeros)));
}

/* Gives the number of values that were compared. */
static size_t run_case(const char *id, const struct spec *s, tn_round round, const float *in,
                       const float *expected, size_t n)
{
    const tn_cast_options options = { .size = sizeof options, .round = round,
                                      .overflow = TN_OVERFLOW_SATURATE };
    const tn_dtype_info type = { .kind = TN_KIND_FLOAT, .bits = (uint8_t)(1 + s->e + s->m),
                                 .exponent_bits = s->e,
                                 .mantissa_bits = s->m, .bias = s->bias, .specials = s->specials };
    const tn_encode_rules rules = tn_encode_rules_for(&type, &options);
    size_t compared = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t one[] = { 1 };
        tn_array f32 = { TN_FLOAT32, 1, one, NULL }, to = { s->dtype, 1, one, NULL };
        uint8_t code[8];
        float back;
        if (is_their_slip(s, in[i], expected[i]))
            continue;
        if (isnan(in[i]) && s->specials == TN_SPECIALS_NONE) {
            CHECK(tn_cast(&to, code, &f32, &in[i], TN_HOST_ORDER, &options, NULL) == TN_ERR_LOSS);
            continue;
        }
        float found = by_definition(&type, &rules, in[i]);
        if (!equal(s, found, expected[i]))
            fail_msg("%s: value %zu: %a to %s is %a, expected %a", id, i, (double)in[i], s->name,
                     (double)found, (double)expected[i]);
        if (s->dtype != TN_UNKNOWN) {
            CHECK(tn_cast(&to, code, &f32, &in[i], TN_HOST_ORDER, &options, NULL) == TN_OK);
            CHECK(tn_cast(&f32, &back, &to, code, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            CHECK(equal(s, back, expected[i]));
        }
        compared++;
    }
    return compared;
}

static void unscaled_casts_give_tensorcasts_values(void)
{
    size_t count, cases = 0, compared = 0, all = 0;
    float *values = read_values(&count);
    FILE *file = fopen(TEST_GOLDEN "/tensorcast/unscaled.tsv", "r");
    assert_non_null(file);
    char line[200], id[40], spec[40], rounding[40];
    while (fgets(line, sizeof line, file)) {
        size_t in, n, out;
        if (line[0] == '#')
            continue;
        CHECK(sscanf(line, "%39s %39s %39s %zu %zu %zu", id, spec, rounding, &in, &n, &out) == 6);
        CHECK(n <= count && in <= count - n && out <= count - n);
        compared += run_case(id, spec_of(spec), round_of(rounding), values + in, values + out, n);
        all += n;
        cases++;
    }
    fclose(file);
    free(values);
    assert_int_equal(cases, 174);
    CHECK(compared > all * 97 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unscaled_casts_give_tensorcasts_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
