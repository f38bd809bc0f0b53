/* Casting on the way from file to file: the same bytes as one tn_cast() of the whole. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "convert.h"
#include "environment.h"

/* More than a span of the widest types and several windows of all, and odd. */
enum { MANY = 1200003, FEW = 5 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11 ^ *state << 29;
}

/* Bytes that are harmless in every type: no NaN, no infinity, small numbers. */
static uint8_t *make_bytes(tn_dtype dtype, uint64_t count, uint64_t *nbytes)
{
    int64_t shape = (int64_t)count;
    tn_array array = { .dtype = dtype, .rank = 1, .shape = &shape };
    CHECK(tn_array_nbytes(&array, nbytes) == TN_OK);
    int8_t *small = malloc(count);
    uint8_t *bytes = malloc(*nbytes);
    assert_non_null(small);
    assert_non_null(bytes);
    uint64_t state = 42;
    for (uint64_t i = 0; i < count; i++)
        small[i] = (int8_t)(next_random(&state) % 2);
    tn_array from = { .dtype = TN_INT8, .rank = 1, .shape = &shape };
    tn_cast_options options = { .size = sizeof options, .overflow = TN_OVERFLOW_SATURATE };
    tn_error err = { .text = "" };
    if (tn_cast(&array, bytes, &from, small, TN_LITTLE_ENDIAN, &options, &err))
        fail_msg("%s", line_of(&err));
    free(small);
    return bytes;
}

static void check_pair(tn_dtype from, tn_dtype to, uint64_t count, tn_create_options create, unsigned jobs)
{
    uint64_t nin, nout;
    uint8_t *in = make_bytes(from, count, &nin);
    int64_t shape = (int64_t)count;
    simple s = { .name = "t", .dtype = from, .rank = 1, .shape = { shape }, .data = in };
    tn_array src = { .dtype = from, .rank = 1, .shape = &shape },
    dst = { .dtype = to, .rank = 1, .shape = &shape };
    CHECK(tn_array_nbytes(&dst, &nout) == TN_OK);
    uint8_t *expected = malloc(nout), *found = malloc(nout);
    assert_non_null(expected);
    assert_non_null(found);
    tn_cast_options options = { .size = sizeof options, .drop_imaginary = true };
    CHECK(tn_cast(&dst, expected, &src, in, TN_LITTLE_ENDIAN, &options, NULL) == TN_OK);

    write_file("in.zt", (tn_create_options){ .replace = true, .encoding = create.encoding }, &s, 1);
    tn_file *f = open_file("in.zt");
    char text[80];
    snprintf(text, sizeof text, "t*=%s,complex=real", tn_dtype_get(to)->name);
    const tn_rule rule = { "cast", text };
    create.size = sizeof create;
    create.replace = true;
    create.jobs = jobs;
    tn_convert_options convert = { .size = sizeof convert, .create = &create, .rules = &rule, .nrules = 1,
                                   .encoding = TN_CHOOSE, .checksum = TN_CHOOSE };
    tn_error err = { .text = "" };
    if (tn_convert(f, in_folder("out.zt").text, &convert, NULL, &err))
        fail_msg("%s", line_of(&err));
    tn_close(f);
    f = open_file("out.zt");                /* walks it: checksums are compared */
    const tn_tensor *t = tn_file_find(f, "t");
    CHECK(t->dtype == to && t->parts[0].nbytes == nout);
    CHECK(tn_part_read(f, t->parts, found, nout, NULL) == TN_OK);
    if (memcmp(found, expected, nout) != 0)
        fail_msg("%s to %s differs", tn_dtype_get(from)->name, tn_dtype_get(to)->name);
    tn_close(f);
    free(in);
    free(expected);
    free(found);
}

static void every_pair_goes_through_a_file(void)
{
    for (tn_dtype from = 1; from < TN_DTYPE_COUNT; from++)
        for (tn_dtype to = 1; to < TN_DTYPE_COUNT; to++)
            if (!(from == TN_FX8 || from == TN_FX16 || to == TN_FX8 || to == TN_FX16))
                check_pair(from, to, FEW, (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, 1);
}

static void long_tensors_are_cut_and_joined(void)
{
    static const tn_dtype pairs[][2] = {
        { TN_COMPLEX128, TN_COMPLEX64 }, { TN_FLOAT64, TN_FLOAT16 }, { TN_FLOAT32, TN_FLOAT6_E2M3 },
        { TN_FLOAT6_E3M2, TN_FLOAT64 },
        { TN_INT4, TN_FLOAT32 }, { TN_FLOAT32, TN_INT4 }, { TN_INT2, TN_COMPLEX128 },
        { TN_BFLOAT16, TN_FLOAT8_E4M3FN },
    };
    static const tn_create_options ways[] = {
        { .checksum = TN_CHECKSUM_CRC32C }, { .checksum = TN_CHECKSUM_SHA256 },
        { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C, .level = 1 },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
            check_pair(pairs[i][0], pairs[i][1], MANY, ways[k], 1 + (unsigned)k);
}

static tn_status convert_floats(const tn_rule *rules, size_t n, const char *defaults, tn_error *err)
{
    static const float values[4] = { 1, 2, 70000, 3 };
    static const simple tensors[] = {
        { .name = "a.weight", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 2 }, .data = values },
        { .name = "a.norm", .dtype = TN_FLOAT32, .rank = 1, .shape = { 2 }, .data = values },
    };
    write_file("in.zt", (tn_create_options){ .replace = true }, tensors, 2);
    tn_file *f = open_file("in.zt");
    tn_create_options create = { .size = sizeof create, .replace = true };
    tn_convert_options o = { .size = sizeof o, .create = &create, .rules = rules, .nrules = n,
                             .cast_defaults = defaults };
    tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, err);
    tn_close(f);
    return status;
}

static void the_first_rule_that_matches_counts(void)
{
    static const tn_rule rules[] = { { "cast", "*norm*=f32" }, { "cast", "bf16" } };
    CHECK(convert_floats(rules, 2, NULL, NULL) == TN_OK);
    tn_file *f = open_file("out.zt");
    CHECK(tn_file_find(f, "a.weight")->dtype == TN_BFLOAT16 &&
          tn_file_find(f, "a.norm")->dtype == TN_FLOAT32);
    tn_close(f);
}

static void a_value_that_does_not_fit_stops_it(void)
{
    static const tn_rule rule = { "cast", "f16,overflow=error" };
    tn_error err = { .text = "" };
    CHECK(convert_floats(&rule, 1, NULL, &err) == TN_ERR_LOSS);
    CHECK(strstr(line_of(&err), "in.zt: tensor \"a.weight\": ") && strstr(line_of(&err), "[1, 0]") &&
          strstr(line_of(&err), "70000"));
    CHECK(access(in_folder("out.zt").text, F_OK) != 0);
}

static void rules_that_cannot_be_honoured_are_errors(void)
{
    static const tn_rule nothing = { "cast", "b.*=f16" }, none = { "cats", "f16" }, empty = { "cast", NULL };
    tn_error err = { .text = "" };
    CHECK(convert_floats(&nothing, 1, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "no tensor matches \"b.*\""));
    CHECK(convert_floats(&none, 1, NULL, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "found \"cats\""));
    CHECK(convert_floats(&empty, 1, NULL, &err) == TN_ERR_ARGUMENT);
}

/* Two packed tensors of one byte range may differ in where they end. */
static void tied_tensors_that_end_differently_are_cast_apart(void)
{
    static const uint8_t nibbles[2] = { 0x21, 0x43 };
    static const simple tensors[] = {
        { .name = "a", .dtype = TN_UINT4, .rank = 1, .shape = { 3 }, .data = nibbles },
        { .name = "b", .dtype = TN_UINT4, .rank = 1, .shape = { 4 }, .tied = "a" },
    };
    static const tn_dtype types[] = { TN_INT4, TN_FLOAT32, TN_FLOAT6_E2M3 };
    write_file("in.zt", (tn_create_options){ 0 }, tensors, 2);
    tn_file *f = open_file("in.zt");
    for (size_t i = 0; i < 3; i++) {
        const tn_rule rule = { "cast", tn_dtype_get(types[i])->name };
        tn_create_options create = { .size = sizeof create, .replace = true };
        tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1 };
        CHECK(tn_convert(f, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
        tn_file *g = open_file("out.zt");
        const tn_part *p = tn_file_find(g, "b")->parts;
        CHECK(tn_value_get(types[i], p->data, 3).i == 4 || tn_value_get(types[i], p->data, 3).re == 4);
        tn_close(g);
    }
    tn_close(f);
}

static void options_count_for_tensors_that_have_the_type(void)
{
    static const tn_rule rule = { "cast", "f32,times=2" };
    CHECK(convert_floats(&rule, 1, NULL, NULL) == TN_OK);
    tn_file *f = open_file("out.zt");
    CHECK(tn_value_get(TN_FLOAT32, tn_file_find(f, "a.weight")->parts[0].data, 1).re == 4);
    tn_close(f);
}

static void holds(const char *name, const void *want, size_t n)
{
    tn_file *f = open_file(name);
    const tn_part *p = tn_file_find(f, "t")->parts;
    CHECK(p->nbytes == n);
    assert_memory_equal(p->data, want, n);
    tn_close(f);
}

static void values_of_codes_are_cast_as_the_rule_says(void)
{
    static const float some[] = { 1000, -3e6f, 77056, 256 };
    static const struct { const char *cast; float want[4]; } floats[] = {
        { "f32", { 1024, -3000064, 77056, 256 } },      { "f32,times=2", { 2048, -6000128, 154112, 512 } },
        { "f32,times=2,compat=mli", { 2048, -6000128, 154112, 512 } },
    };
    static const struct { const char *cast; uint16_t want[4]; } halves[] = {
        { "f16", { 0x6400, 0xfc00, 0x7c00, 0x5c00 } },
        { "f16,overflow=saturate", { 0x6400, 0xfbff, 0x7bff, 0x5c00 } },
        { "bf16,round=up", { 0x4480, 0xca37, 0x4797, 0x4380 } },
        { "bf16,round=down", { 0x4480, 0xca38, 0x4796, 0x4380 } },
    };
    static const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 1, .shape = { 4 },
                                   .data = some };
    write_file("in.zt", (tn_create_options){ 0 }, &tensor, 1);
    must_convert("in.zt", "codes.zt", (wish){ .cast = "fx16,frac=-8" });
    must_fail("codes.zt", (wish){ .cast = "f16,overflow=error" }, TN_ERR_LOSS,
              "tensor \"t\": element [1] is -3000064.0, beyond float16's lowest -65504.0");
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        must_convert("codes.zt", "out.zt", (wish){ .cast = floats[i].cast });
        holds("out.zt", floats[i].want, sizeof floats[i].want);
    }
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        must_convert("codes.zt", "out.zt", (wish){ .cast = halves[i].cast });
        holds("out.zt", halves[i].want, sizeof halves[i].want);
    }
}

static void codes_whose_values_leave_float32_are_no_infinities_in_silence(void)
{
    static const double some[] = { 1e38, -1e40, 1e40, 2 };
    static const float want[] = { 1e38f, -INFINITY, INFINITY, 0 };
    static const simple tensor = { .name = "t", .dtype = TN_FLOAT64, .rank = 1, .shape = { 4 },
                                   .data = some };
    static const char *const casts[] = { "f32,overflow=error", "f64,overflow=error",
                                         "f32,times=1e-30,overflow=error" };
    write_file("in.zt", (tn_create_options){ 0 }, &tensor, 1);
    must_convert("in.zt", "codes.zt", (wish){ .cast = "int8,per=tensor,scale=1e38" });
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        must_fail("codes.zt", (wish){ .cast = casts[i] }, TN_ERR_LOSS,
                  "tensor \"t\": element [1] is beyond float32's lowest");
    must_fail("in.zt", (wish){ .cast = "f64,times=2e-1,overflow=error" }, TN_ERR_LOSS,
              "times the scale 0.200000003 beyond float32's lowest");
    must_convert("codes.zt", "out.zt", (wish){ .cast = "f32" });
    holds("out.zt", want, sizeof want);
}

/* 200 values, of which 3 become 0 and 2 are beyond the largest of int8; then more of either. */
static void write_small_values(unsigned zeros, unsigned large)
{
    static float some[200];
    const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 1, .shape = { 200 }, .data = some };
    for (unsigned i = 0; i < 200; i++)
        some[i] = i < zeros ? 0.25f : i < zeros + large ? -300 : 7;
    write_file("in.zt", (tn_create_options){ .replace = true }, &tensor, 1);
}

static void count_lost(void *context, const tn_cast_report *lost)
{
    CHECK(strcmp(lost->name, "t") == 0);
    *(tn_cast_report *)context = *lost;
}

static tn_status convert_counted(const char *cast, bool strict, tn_cast_report *lost, tn_error *err)
{
    const tn_rule rule = { "cast", cast };
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                                   .lost = count_lost, .context = lost, .strict = strict };
    tn_file *in = open_file("in.zt");
    *lost = (tn_cast_report){ 0 };
    tn_status status = tn_convert(in, in_folder("out.zt").text, &o, NULL, err);
    tn_close(in);
    return status;
}

static void a_cast_that_loses_more_than_a_hundredth_is_told(void)
{
    tn_cast_report lost;
    tn_error err;
    write_small_values(2, 2);
    CHECK(convert_counted("int8", true, &lost, NULL) == TN_OK && !lost.name);
    write_small_values(3, 2);
    CHECK(convert_counted("int8", false, &lost, NULL) == TN_OK);
    CHECK(lost.dtype == TN_INT8 && lost.values == 200 && lost.flushed == 3 && lost.saturated == 2);
    CHECK(unlink(in_folder("out.zt").text) == 0);
    CHECK(convert_counted("int8", true, &lost, &err) == TN_ERR_LOSS);
    CHECK(strstr(line_of(&err), "tensor \"t\": 3 of 200 values other than 0 become 0 in int8"));
    CHECK(access(in_folder("out.zt").text, F_OK) != 0);
    write_small_values(0, 3);
    CHECK(convert_counted("int8", true, &lost, &err) == TN_ERR_LOSS && lost.saturated == 3);
    CHECK(strstr(line_of(&err), "3 of 200 values other than 0 are beyond the largest value of int8"));
    CHECK(convert_counted("f16", true, &lost, NULL) == TN_OK && !lost.name);
    CHECK(convert_counted("int8,per=tensor", true, &lost, NULL) == TN_OK && !lost.name);
}

/* Rows of values of which every tenth becomes 0 in float16, in files that are read in order or not. */
enum { ROWS = 1237, COLUMNS = 1801, ELEMENTS = ROWS * COLUMNS };

static void write_many(const char *name, float times, tn_encoding encoding)
{
    static float some[ELEMENTS];
    const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLUMNS },
                            .data = some };
    for (unsigned i = 0; i < ELEMENTS; i++)
        some[i] = times * (i % 10 ? (float)(1 + i % 7) : 1e-30f);
    write_file(name, (tn_create_options){ .replace = true, .encoding = encoding }, &tensor, 1);
}

static tn_cast_report count_many(const char *from, const tn_rule *rules, size_t n, tn_encoding encoding)
{
    const tn_create_options create = { .size = sizeof create, .replace = true, .encoding = encoding, .jobs = 2 };
    tn_cast_report lost = { 0 };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .encoding = TN_CHOOSE, .rules = rules,
                                   .nrules = n, .in_order = true, .lost = count_lost, .context = &lost };
    tn_error err = { .text = "" };
    tn_file *in = open_file(from);
    if (tn_convert(in, in_folder("out.zt").text, &o, NULL, &err))
        fail_msg("%s: %s", rules[n - 1].text, line_of(&err));
    tn_close(in);
    return lost;
}

static void each_value_is_counted_once(void)
{
    static const tn_rule chains[][3] = {
        { { "cast", "f16" } },
        { { "cast", "f16" }, { "pad", "1=1804" } },
        { { "cast", "f16" }, { "transpose", "1,0" } },
        { { "cast", "f16" }, { "slice", ":,:1801" } },
        { { "cast", "f16" }, { "form", "csr" } },
        { { "split", "t=a+b,axis=1,sizes=900+901" }, { "cast", "f16" }, { "concat", "t=a+b,axis=1" } },
    };
    for (unsigned k = 0; k < 4; k++) {
        write_many("in.zt", 1, k & 1 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW);
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            if (strcmp(chains[i][1].step ? chains[i][1].step : "", "pad") == 0 && k & 2)
                continue;       /* which no compressed part has */
            size_t n = 1;
            while (n < 3 && chains[i][n].step)
                n++;
            tn_cast_report lost = count_many("in.zt", chains[i], n, k & 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW);
            if (lost.values != ELEMENTS || lost.flushed != (ELEMENTS + 9) / 10)
                fail_msg("%zu, %u: %llu of %llu", i, k, (unsigned long long)lost.flushed,
                         (unsigned long long)lost.values);
        }
    }
}

static void values_of_codes_are_counted_too(void)
{
    static const tn_rule codes[] = { { "cast", "int8,per=tensor" }, { "cast", "mxfp8" } };
    static const tn_rule half[] = { { "cast", "f16" }, { "transpose", "1,0" } };
    write_many("in.zt", 1e-20f, TN_ENCODING_RAW);
    for (size_t i = 0; i < 2; i++) {
        tn_create_options create = { .size = sizeof create, .replace = true };
        tn_cast_report lost = { 0 };
        tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &codes[i], .nrules = 1,
                                 .lost = count_lost, .context = &lost };
        tn_file *in = open_file("in.zt"), *coded;
        CHECK(tn_convert(in, in_folder("codes.zt").text, &o, NULL, NULL) == TN_OK && !lost.name);
        tn_close(in);
        coded = open_file("codes.zt");
        o.rules = half;
        for (o.nrules = 1; o.nrules <= 2; o.nrules++) {
            CHECK(tn_convert(coded, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
            CHECK(lost.flushed == lost.values && lost.values == ELEMENTS - (ELEMENTS + 9) / 10);
        }
        tn_close(coded);
    }
    write_many("in.zt", 1, TN_ENCODING_RAW);    /* what the cast before them makes 0 is none of theirs */
    static const tn_rule both[] = { { "cast", "f16" }, { "cast", "int8,per=tensor,underflow=error" } };
    CHECK(!count_many("in.zt", both, 2, TN_ENCODING_RAW).name);
}

static void codes_with_scales_may_refuse_what_they_lose(void)
{
    static const struct { const char *cast, *why; } cases[] = {
        { "int8,per=tensor,underflow=error", "3 of 200 values become 0" },
        { "int8,per=tensor,scale=1,overflow=error", "2 of 200 values are beyond the largest number" },
        { "fx8,frac=0,overflow=error", "2 of 200 values are beyond the largest number" },
        { "fx8,frac=-1,underflow=error", "3 of 200 values become 0" },
        { "int8_F,underflow=error", "3 of 200 values become 0" },
        { "mxfp4,virtual=yes,underflow=error", "values become 0" },
    };
    tn_cast_report lost;
    tn_error err;
    write_small_values(3, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_status status = convert_counted(cases[i].cast, false, &lost, &err);
        if (status != TN_ERR_LOSS || !strstr(line_of(&err), cases[i].why))
            fail_msg("%s: %d %s", cases[i].cast, status, line_of(&err));
    }
    write_small_values(0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(convert_counted(cases[i].cast, false, &lost, NULL) == TN_OK);
}

static void what_no_text_would_allow_no_rule_may_ask_for(void)
{
    static const tn_rule rule = { "cast", "fx8,frac=0" };
    tn_error err = { .text = "" };
    CHECK(convert_floats(&rule, 1, "overflow=inf", &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "codes with scales saturate"));
    CHECK(convert_floats(&rule, 1, "overflow=nan", NULL) == TN_ERR_ARGUMENT);
    CHECK(convert_floats(&rule, 1, "overflow=default", NULL) == TN_OK);
    CHECK(unlink(in_folder("out.zt").text) == 0);
    CHECK(convert_floats(&rule, 1, "overflow", &err) == TN_ERR_ARGUMENT);
    CHECK(access(in_folder("out.zt").text, F_OK) != 0);
}

/* More than what is compressed whole, so that no pool is at work: subnormal results are the same all the
 * same. */
static void the_callers_floating_point_environment_changes_nothing(void)
{
    enum { COUNT = 2200000 };
    double *values = malloc(COUNT * sizeof *values);
    float *found = malloc(COUNT * sizeof *found);
    assert_non_null(values);
    assert_non_null(found);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (double)(i % 1000) * 0x1p-149;
    simple s = { .name = "t", .dtype = TN_FLOAT64, .rank = 1, .shape = { COUNT }, .data = values };
    write_file("in.zt", (tn_create_options){ .replace = true }, &s, 1);
    tn_file *f = open_file("in.zt");
    const tn_create_options create = { .size = sizeof create, .replace = true, .encoding = TN_ENCODING_ZSTD,
                                       .jobs = 1 };
    static const tn_rule rule = { "cast", "f32" };
    tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                             .encoding = TN_CHOOSE };
    for (environment e = 0; e < ENVIRONMENTS; e++) {
        enter_environment(e);
        uint64_t before = environment_seen();
        tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, NULL);
        uint64_t after = environment_seen();
        leave_environment();
        CHECK(status == TN_OK && before == after);
        tn_file *g = open_file("out.zt");
        CHECK(tn_part_read(g, tn_file_find(g, "t")->parts, found, COUNT * sizeof *found, NULL) == TN_OK);
        tn_close(g);
        for (size_t i = 0; i < COUNT; i++)
            CHECK((double)found[i] == values[i]);
    }
    tn_close(f);
    free(values);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_pair_goes_through_a_file),
        IN_FOLDER(long_tensors_are_cut_and_joined),
        IN_FOLDER(the_first_rule_that_matches_counts),
        IN_FOLDER(a_value_that_does_not_fit_stops_it),
        IN_FOLDER(rules_that_cannot_be_honoured_are_errors),
        IN_FOLDER(tied_tensors_that_end_differently_are_cast_apart),
        IN_FOLDER(options_count_for_tensors_that_have_the_type),
        IN_FOLDER(values_of_codes_are_cast_as_the_rule_says),
        IN_FOLDER(codes_whose_values_leave_float32_are_no_infinities_in_silence),
        IN_FOLDER(a_cast_that_loses_more_than_a_hundredth_is_told),
        IN_FOLDER(each_value_is_counted_once),
        IN_FOLDER(values_of_codes_are_counted_too),
        IN_FOLDER(codes_with_scales_may_refuse_what_they_lose),
        IN_FOLDER(what_no_text_would_allow_no_rule_may_ask_for),
        IN_FOLDER(the_callers_floating_point_environment_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
