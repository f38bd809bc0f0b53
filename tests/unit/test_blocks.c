/* Block types: the bytes and the values of ggml, at every level of the CPU. */
#include "support.h"

#include "files.h"
#include "make.h"

#include "base/cpu.h"
#include "kernels/blocks/neighbours.h"

#include <math.h>
#include <tenon/quantize.h>

#define QUANTS TEST_GOLDEN "/gguf/quants"

/* One line of index.tsv. */
typedef struct sample {
    char op[8], input[64], weights[32], file[64], verdict[32], sha256[80];
    const tn_block_info *info;
    size_t rows, columns, offset, bytes;
} sample;

static void each_sample(const char *op, void (*check)(const sample *, const tn_block_kernels *), size_t expected)
{
    static const unsigned levels[] = { 0, TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512, TN_CPU_NEON };
    char line[1000];
    tn_block_kernels k, before;
    memset(&before, 0, sizeof before);
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        size_t n = 0;
        if ((levels[l] & tn_cpu_detect()) != levels[l])
            continue;
        tn_block_kernels_init(&k, levels[l]);
        if (memcmp(&k, &before, sizeof k) == 0)
            continue;
        before = k;
        FILE *f = fopen(QUANTS "/index.tsv", "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            sample s;
            char type[32];
            if (line[0] == '#')
                continue;
            CHECK(sscanf(line, "%7s %31s %63s %31s %zu %zu %63s %zu %zu %31s %79s", s.op, type, s.input, s.weights,
                         &s.rows, &s.columns, s.file, &s.offset, &s.bytes, s.verdict, s.sha256) >= 10);
            if (strcmp(s.op, op) != 0)
                continue;
            s.info = tn_block_named(type);
            assert_non_null(s.info);
            check(&s, &k);
            n++;
        }
        fclose(f);
        CHECK(n == expected);
    }
}

static void *load(const char *format, const char *name, size_t *n)
{
    char path[300];
    snprintf(path, sizeof path, format, name);
    return load_file(path, n);
}

/* ---- decoding ---- */

static void check_values(const sample *s, const tn_block_kernels *k, const uint8_t *blocks, size_t n)
{
    size_t count = n * s->info->values;
    float *values = malloc(count * sizeof *values), quiet = NAN;
    assert_non_null(values);
    k->decode[s->info->block](blocks, n, values);
    for (size_t i = 0; i < count; i++)
        if (isnan(values[i]))
            values[i] = quiet;
    if (strcmp(sha256_of(values, count * sizeof *values).text, s->sha256) != 0)
        fail_msg("%s %s %s", s->info->name, s->input, s->weights);
    free(values);
}

static void check_decoded(const sample *s, const tn_block_kernels *k)
{
    size_t n;
    uint8_t *blocks = load(QUANTS "/%s", s->input, &n);
    check_values(s, k, blocks, n / s->info->bytes);
    free(blocks);
}

static void values_are_those_of_ggml(void) { each_sample("dec", check_decoded, 27); }

/* ---- encoding ---- */

/* The values of a sample and their importance, which may be NULL. */
static float *load_values(const sample *s, float **importance)
{
    size_t n, m = 0;
    float *x = load(QUANTS "/in/%s.f32", s->input, &n);
    *importance = strcmp(s->weights, "-") == 0 ? NULL : load(QUANTS "/in/%s.f32", s->weights, &m);
    CHECK(n >= s->rows * s->columns * sizeof *x && (!*importance || m >= s->columns * sizeof *x));
    return x;
}

/* Whether ggml's scales are numbers, and so are all values: then there are codes. */
static bool has_codes(const sample *s)
{
    float *w, *x = load_values(s, &w);
    bool good = strcmp(s->verdict, "valid") == 0;
    for (size_t i = 0; i < s->rows * s->columns; i++)
        good &= isfinite(x[i]) != 0;
    free(x);
    free(w);
    return good;
}

static uint8_t *encode(const sample *s, const tn_block_kernels *k)
{
    size_t blocks = s->columns / s->info->values;
    float *w, *x = load_values(s, &w);
    uint8_t *made = malloc(s->bytes);
    assert_non_null(made);
    for (size_t r = 0; r < s->rows; r++) {
        const float *row = x + r * s->columns;
        float squares = 0;
        for (size_t i = 0; i < s->columns; i++)
            squares += row[i] * row[i];
        k->encode[s->info->block](row, w, squares / (float)s->columns, blocks, made + r * blocks * s->info->bytes);
    }
    free(x);
    free(w);
    return made;
}

/* Replaces what ggml has by what is decided: lines of type, input, weights, block, ggml's bytes, ours, why. */
static void take_differences(const sample *s, uint8_t *expected)
{
    char line[2000], type[32], input[64], weights[32], theirs[700], ours[700];
    size_t block;
    FILE *f = fopen(QUANTS "/expected_differences.tsv", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%31s %63s %31s %zu %699s %699s", type, input, weights, &block, theirs, ours) != 6 ||
            strcmp(type, s->info->name) != 0 || strcmp(input, s->input) != 0 || strcmp(weights, s->weights) != 0)
            continue;
        for (size_t i = 0; i < s->info->bytes; i++) {
            unsigned byte;
            CHECK(sscanf(ours + 2 * i, "%2x", &byte) == 1);
            expected[block * s->info->bytes + i] = (uint8_t)byte;
        }
    }
    fclose(f);
}

static void check_encoded(const sample *s, const tn_block_kernels *k)
{
    size_t n;
    if (!has_codes(s))
        return;
    CHECK(tn_block_prepare(s->info->block));
    uint8_t *made = encode(s, k), *expected = load(QUANTS "/%s", s->file, &n);
    CHECK(n >= s->offset + s->bytes);
    check_values(s, k, expected + s->offset, s->bytes / s->info->bytes);
    take_differences(s, expected + s->offset);
    if (memcmp(made, expected + s->offset, s->bytes) != 0)
        fail_msg("%s %s %s", s->info->name, s->input, s->weights);
    free(expected);
    free(made);
}

static void bytes_are_those_of_ggml(void) { each_sample("enc", check_encoded, 1344); }

/* ---- as a datatype ---- */

static tn_status quantize_array(const char *type, const tn_array *array, const float *x, uint8_t *out,
                                const tn_quantize_options *o, tn_error *err)
{
    tn_datatype *d;
    void *parts[] = { out };
    CHECK(tn_datatype_parse(type, &d, NULL) == TN_OK);
    tn_status status = tn_quantize(d, array, x, parts, o, NULL, err);
    tn_datatype_free(d);
    return status;
}

static tn_status quantize(const char *type, const float *x, int64_t columns, uint8_t *out, tn_nan nan, tn_error *err)
{
    const int64_t shape[] = { 2, columns };
    const tn_array array = { TN_FLOAT32, 2, shape, NULL };
    const tn_quantize_options o = { .size = sizeof o, .nan = nan };
    return quantize_array(type, &array, x, out, &o, err);
}

/* Where ggml stores a scale that is no number, or ends the process, there is an error that names an element. */
static void check_answer(const sample *s, const tn_block_kernels *k)
{
    (void)k;
    const int64_t shape[] = { (int64_t)s->rows, (int64_t)s->columns };
    const tn_array array = { TN_FLOAT32, 2, shape, NULL };
    float *w, *x = load_values(s, &w);
    const tn_quantize_options o = { .size = sizeof o, .importance = w, .nimportance = w ? s->columns : 0,
                                    .no_importance = true };
    uint8_t *out = malloc(s->rows * s->columns / s->info->values * s->info->bytes);
    char type[40];
    tn_error err = { .text = "" };
    assert_non_null(out);
    snprintf(type, sizeof type, "ggml:%s", s->info->name);
    tn_status status = quantize_array(type, &array, x, out, &o, &err);
    bool is_refused = status == TN_ERR_LOSS && strstr(err.text, "element [");
    if (has_codes(s) ? status != TN_OK : !is_refused)
        fail_msg("%s %s %s: %s", s->info->name, s->input, s->weights, err.text);
    free(out);
    free(x);
    free(w);
}

static void what_ggml_cannot_encode_is_refused(void) { each_sample("enc", check_answer, 1344); }

static void what_has_no_code_is_refused(void)
{
    static float x[2 * 256];
    uint8_t out[2 * 292];
    tn_error err = { .text = "" };
    for (int i = 0; i < 512; i++)
        x[i] = (float)(i % 17) - 8;
    x[300] = NAN;
    check_status(quantize("q4_K", x, 256, out, TN_NAN_KEEP, &err), &err, TN_ERR_LOSS, "[1, 44] is nan");
    CHECK(quantize("q4_K", x, 256, out, TN_NAN_ZERO, &err) == TN_OK);
    x[300] = -INFINITY;
    check_status(quantize("q8_0", x, 256, out, TN_NAN_ZERO, &err), &err, TN_ERR_LOSS, "[1, 44] is -inf");
    x[300] = 3e38f;
    check_status(quantize("q4_K", x, 256, out, TN_NAN_ZERO, &err), &err, TN_ERR_LOSS, "begins with element [1, 0]");
    check_status(quantize("q4_K", x, 96, out, TN_NAN_ZERO, &err), &err, TN_ERR_ARGUMENT, "cast it to q5_0");
    check_status(quantize("q4_K", x, 100, out, TN_NAN_ZERO, &err), &err, TN_ERR_ARGUMENT, "cast it to f16");
    check_status(quantize("iq2_xxs", x, 256, out, TN_NAN_ZERO, &err), &err, TN_ERR_ARGUMENT, "importance");
}

/* With importance the mean square of the row counts too. */
static void nan_is_0_for_the_whole_row(void)
{
    static const char *const types[] = { "q4_0", "q4_1", "q5_0", "q5_1", "q4_K", "iq4_xs" };
    static float x[2 * 256], importance[256];
    const int64_t shape[] = { 2, 256 };
    const tn_array array = { TN_FLOAT32, 2, shape, NULL };
    const tn_quantize_options o = { .size = sizeof o, .importance = importance, .nimportance = 256,
                                    .nan = TN_NAN_ZERO };
    for (int i = 0; i < 512; i++)
        x[i] = (float)(i * 37 % 101) - 50;
    for (int i = 0; i < 256; i++)
        importance[i] = (float)(1 + i % 7);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        uint8_t with_0[2 * 292] = { 0 }, with_nan[2 * 292] = { 0 };
        tn_error err = { .text = "" };
        x[300] = 0;
        CHECK(quantize_array(types[t], &array, x, with_0, &o, &err) == TN_OK);
        x[300] = NAN;
        if (quantize_array(types[t], &array, x, with_nan, &o, &err))
            fail_msg("%s: %s", types[t], err.text);
        CHECK(memcmp(with_0, with_nan, sizeof with_0) == 0);
    }
}

static void names_are_found_in_any_case(void)
{
    static const char *const names[][2] = { { "Q4_k", "ggml:q4_K" }, { "GGML:MXFP4", "ggml:mxfp4" },
                                            { "iq1_S", "ggml:iq1_s" } };
    tn_datatype *d;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(tn_datatype_parse(names[i][0], &d, NULL) == TN_OK);
        assert_string_equal(tn_datatype_text(d), names[i][1]);
        tn_datatype_free(d);
    }
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK && strcmp(tn_datatype_text(d), "ggml:mxfp4") != 0);
    tn_datatype_free(d);
}

static void swapping_twice_changes_nothing(void)
{
    for (int t = 0; t < TN_BLOCK_COUNT; t++) {
        const tn_block_info *info = tn_block_get((tn_block)t);
        uint8_t blocks[2 * TN_BLOCK_BYTES], copy[2 * TN_BLOCK_BYTES];
        for (size_t i = 0; i < sizeof blocks; i++)
            blocks[i] = copy[i] = (uint8_t)(i * 7);
        tn_block_swap(info, copy, 2);
        CHECK((memcmp(copy, blocks, sizeof blocks) == 0) == (info->fields[0].count == 0));
        tn_block_swap(info, copy, 2);
        CHECK(memcmp(copy, blocks, sizeof blocks) == 0);
        CHECK(tn_block_numbered(info->number) == info && tn_block_named(info->name) == info);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_are_those_of_ggml),
        TEST(bytes_are_those_of_ggml),
        TEST(what_ggml_cannot_encode_is_refused),
        TEST(what_has_no_code_is_refused),
        TEST(nan_is_0_for_the_whole_row),
        TEST(names_are_found_in_any_case),
        TEST(swapping_twice_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
