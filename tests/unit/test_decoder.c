/* The values of tensors of datatypes: the same from parts in memory, in windows and in any range, as from all
 * at once. */
#include "support.h"

#include <math.h>

#include "environment.h"
#include "pipeline/decoder.h"
#include "scaled_tensor.h"

#include <tenon/values.h>

/* Of every kind of number, scale, tile and part. */
static const char *const datatypes[] = {
    "mxfp8e4", "mxfp8e5", "mxfp6e3", "mxfp6e2", "mxfp4e2", "mxint8", "mxint4", "bfp16", "nvfp4e2", "mx9",
    "mx6", "mx4", "int8|float32", "int4|bfloat16_t32", "int3|e8m0_t16", "uint4|float16_float16_t32",
    "uint8|bfloat16_int8_t0", "int8|float32_t0", "int8|float32_t0d0", "e4m3fn|float32", "e5m6|e8m0_t32",
    "e2m1fnuz|e5m0_t16", "e2m1fnuz|e8m0_t32d0", "e2m1fnuz|e8m0_t4_t8", "e3m2fnuz|e8m0_t16_t4s2o1",
    "int4|bfloat16_t16n2m4", "e2m1fnuz|e8m0_t16d0n2m4", "icb44fi2_e32", "cb42f1346_e2m3fnuz|e8m0_t32", "e5m2",
    "float16", "float32|n2m4", "bfloat16|n1m8",
};

enum { DATATYPES = sizeof datatypes / sizeof *datatypes };

static const int64_t shapes[][3] = { { 3, 8, 64 }, { 2, 5, 37 }, { 1, 1, 1 }, { 4, 96, 3 } };

enum { SHAPES = sizeof shapes / sizeof *shapes };

static void fails(tn_error *err, const char *what)
{
    fail_msg("%s: %s", what, line_of(err));
}

/* Windows that begin and end at odd places, of the type of the values. */
static void check_ranges(const scaled_tensor *s, const tn_range_decoder *maker)
{
    static const size_t places[][2] = { { 0, 1 }, { 1, 7 }, { 5, 33 }, { 31, 64 }, { 63, 2 }, { 100, 5000 } };
    uint8_t *out = malloc(s->size);
    assert_non_null(out);
    size_t width = maker->bits / 8, count = s->size / width;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i][0] >= count)
            continue;
        size_t n = places[i][1] < count - places[i][0] ? places[i][1] : count - places[i][0];
        CHECK(maker->make(maker->context, places[i][0], n, out, NULL) == TN_OK);
        if (memcmp(out, s->expected + places[i][0] * width, n * width) != 0)
            fail_msg("%s: elements from %zu on differ", s->scaling.datatype, places[i][0]);
    }
    free(out);
}

static void check_stream(const scaled_tensor *s, const tn_range_decoder *maker, uint64_t count)
{
    tn_stream stream = { 0 };
    size_t at = 0;
    tn_stream_open_decoder(&stream, maker, 0, count);
    for (;;) {
        const uint8_t *bytes = NULL;
        size_t n;
        CHECK(tn_stream_next(&stream, &bytes, &n, NULL) == TN_OK);
        if (!n)
            break;
        CHECK(n <= s->size - at && memcmp(bytes, s->expected + at, n) == 0);
        at += n;
    }
    CHECK(at == s->size);
    tn_stream_free(&stream);
}

static void check_tensor(const scaled_tensor *s)
{
    tn_error err = { .text = "" };
    tn_decoder *m = NULL;
    uint64_t count;
    bool light;
    CHECK(tn_has_decoder(&s->tensor));
    if (tn_decoder_check(&s->tensor, &light, &err) || tn_decoder_open(NULL, &s->tensor, &m, &err))
        fails(&err, s->scaling.datatype);
    tn_shape_count(s->tensor.rank, s->tensor.shape, &count);
    check_ranges(s, &m->maker);
    check_stream(s, &m->maker, count);
    tn_decoder_free(m);
}

static void any_range_of_every_datatype_is_that_of_all_at_once(void)
{
    for (size_t i = 0; i < DATATYPES; i++) {
        for (size_t k = 0; k < SHAPES; k++) {
            scaled_tensor s;
            make_scaled(&s, datatypes[i], TN_FLOAT32, 3, shapes[k], (tn_quantize_options){ 0 });
            check_tensor(&s);
            free_scaled(&s);
        }
    }
}

static void one_code_a_byte_gives_the_same(void)
{
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 3, shapes[1], (tn_quantize_options){ .unpacked = true });
        check_tensor(&s);
        free_scaled(&s);
    }
}

static void values_are_rounded_to_the_tensors_type(void)
{
    static const tn_dtype types[] = { TN_FLOAT64, TN_BFLOAT16, TN_FLOAT16, TN_FLOAT8_E4M3FN };
    for (size_t i = 0; i < DATATYPES; i += 3) {
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            scaled_tensor s;
            make_scaled(&s, datatypes[i], types[k], 3, shapes[0], (tn_quantize_options){ 0 });
            check_tensor(&s);
            free_scaled(&s);
        }
    }
}

static void rotations_are_undone_along_and_across_rows(void)
{
    static const char *const some[] = { "mxfp4e2", "int8|float32", "e2m1fnuz|e8m0_t32d0",
                                        "e2m1fnuz|e8m0_t8d0_t8d1", "mxfp8e4" };
    static const tn_rotation rotations[] = { { .size = 4 }, { .size = 16, .walsh = true },
                                             { .size = 64, .random = true, .seed = 7 } };
    static const int64_t shape[] = { 64, 64, 64 };
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 3; k++) {
            scaled_tensor s;
            make_scaled(&s, some[i], k == 1 ? TN_BFLOAT16 : TN_FLOAT32, 3, shape,
                        (tn_quantize_options){ .rotation = rotations[k] });
            check_tensor(&s);
            free_scaled(&s);
        }
    }
}

/* ---- the public door ---- */

static void check_reading(const scaled_tensor *s)
{
    tn_error err = { .text = "" };
    tn_values *v;
    size_t width = s->size / s->count;
    if (tn_values_open(NULL, &s->tensor, &v, &err))
        fails(&err, s->scaling.datatype);
    for (size_t first = 0; first <= s->count; first += 1 + first / 3) {
        size_t n = (first * 7 + 11) % (s->count - first + 1);
        uint8_t *out = exact_copy(s->expected, n * width);
        memset(out, 0xa5, n * width);
        CHECK(tn_values_read(v, first, n, out, n * width, &err) == TN_OK);
        CHECK(memcmp(out, s->expected + first * width, n * width) == 0);
        free(out);
    }
    tn_values_close(v);
}

static void values_can_be_read_from_anywhere(void)
{
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        make_scaled(&s, datatypes[i], i % 2 ? TN_FLOAT32 : TN_BFLOAT16, 3, shapes[1],
                    (tn_quantize_options){ 0 });
        check_reading(&s);
        free_scaled(&s);
    }
}

static void the_callers_floating_point_environment_changes_nothing(void)
{
    scaled_tensor s;
    tn_values *v;
    float out[3 * 8 * 64];
    make_scaled(&s, "int4|float32_t16", TN_FLOAT32, 3, shapes[0], (tn_quantize_options){ 0 });
    CHECK(tn_values_open(NULL, &s.tensor, &v, NULL) == TN_OK);
    for (environment e = 0; e < ENVIRONMENTS; e++) {
        enter_environment(e);
        uint64_t before = environment_seen();
        tn_status status = tn_values_read(v, 0, s.count, out, sizeof out, NULL);
        uint64_t after = environment_seen();
        leave_environment();
        CHECK(status == TN_OK && before == after && memcmp(out, s.expected, sizeof out) == 0);
    }
    tn_values_close(v);
    free_scaled(&s);
}

static void a_scalar_and_a_tensor_without_elements_have_values_too(void)
{
    static const int64_t none[] = { 0, 64 };
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        tn_values *v;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 2, none, (tn_quantize_options){ 0 });
        CHECK(tn_values_open(NULL, &s.tensor, &v, NULL) == TN_OK &&
              tn_values_read(v, 0, 0, NULL, 0, NULL) == TN_OK);
        CHECK(tn_values_read(v, 0, 1, s.source, sizeof *s.source, NULL) == TN_ERR_ARGUMENT);
        tn_values_close(v);
        free_scaled(&s);
    }
    scaled_tensor s;
    make_scaled(&s, "int8|float32", TN_FLOAT32, 0, none, (tn_quantize_options){ 0 });
    CHECK(s.count == 1);
    check_tensor(&s);
    free_scaled(&s);
}

static void ranges_outside_and_wrong_sizes_are_refused(void)
{
    scaled_tensor s;
    tn_values *v;
    tn_error err;
    float out[8];
    make_scaled(&s, "mxfp4e2", TN_FLOAT32, 3, shapes[0], (tn_quantize_options){ 0 });
    CHECK(tn_values_open(NULL, &s.tensor, &v, NULL) == TN_OK);
    CHECK(tn_values_read(v, s.count - 1, 2, out, 8, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "1536"));
    CHECK(tn_values_read(v, UINT64_MAX, 2, out, 8, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_values_read(v, 0, UINT64_MAX, out, 8, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_values_read(v, 0, 2, out, 7, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "expected a buffer of 8 bytes but found 7"));
    CHECK(tn_values_read(v, s.count, 0, out, 0, &err) == TN_OK);
    tn_values_close(v);
    tn_values_close(NULL);
    free_scaled(&s);
}

/* Types narrower than a byte begin on a whole one, and the bits after the last value are 0. */
static void dense_elements_can_be_read_so_too(void)
{
    static const uint8_t nibbles[] = { 0x21, 0x43, 0x65 };
    static const int64_t shape[] = { 5 };
    const tn_part data = { .role = "data", .array = { TN_INT4, 1, shape, NULL }, .nbytes = 3,
                           .data = nibbles };
    const tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .dtype = TN_INT4, .rank = 1, .shape = shape,
                          .parts = &data, .nparts = 1 };
    uint8_t two[2];
    tn_values *v;
    tn_error err;
    CHECK(tn_values_open(NULL, &t, &v, NULL) == TN_OK);
    CHECK(tn_values_read(v, 2, 3, two, 2, NULL) == TN_OK && two[0] == 0x43 && two[1] == 0x05);
    CHECK(tn_values_read(v, 1, 2, two, 1, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "does not begin on a byte"));
    tn_values_close(v);
}

/* ---- what is wrong ---- */

static void a_tensor_whose_parts_do_not_fit_is_refused_with_the_reason(void)
{
    scaled_tensor s;
    tn_error err;
    bool light;
    make_scaled(&s, "mxfp4e2", TN_FLOAT32, 3, shapes[0], (tn_quantize_options){ 0 });
    s.parts[1].nbytes--;
    CHECK(tn_decoder_check(&s.tensor, &light, &err) == TN_ERR_CORRUPT);
    CHECK(strstr(line_of(&err), "tensor \"t\": expected a part scale of 48 bytes but found 47"));
    s.parts[1].nbytes++;
    s.tensor.nparts = 1;
    CHECK(tn_decoder_check(&s.tensor, &light, &err) == TN_ERR_CORRUPT &&
          strstr(line_of(&err), "expected a part scale but found none"));
    s.tensor.nparts = 2;
    s.tensor.dtype = TN_INT8;
    CHECK(tn_decoder_check(&s.tensor, &light, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "but found int8"));
    s.tensor.dtype = TN_FLOAT32;
    s.scaling.datatype = "e2m1fnuz|";
    CHECK(tn_decoder_check(&s.tensor, &light, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "tensor \"t\""));
    s.scaling.datatype = "mxfp4e2";
    s.scaling.rotation.size = 48;
    CHECK(tn_decoder_check(&s.tensor, &light, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "48"));
    free_scaled(&s);
}

/* Whatever bytes parts have, values come out: a NaN at worst. */
static void any_bytes_are_values(void)
{
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        tn_decoder *m;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 3, shapes[1], (tn_quantize_options){ 0 });
        for (uint32_t k = 0; k < s.tensor.nparts; k++)
            for (size_t b = 0; b < s.parts[k].nbytes; b++)
                s.bytes[k][b] = (uint8_t)(b % 3 ? b * 151 + i * 7 : 255);
        expect_scaled(&s);
        CHECK(tn_decoder_open(NULL, &s.tensor, &m, NULL) == TN_OK);
        check_ranges(&s, &m->maker);
        tn_decoder_free(m);
        free_scaled(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_range_of_every_datatype_is_that_of_all_at_once),
        TEST(one_code_a_byte_gives_the_same),
        TEST(values_are_rounded_to_the_tensors_type),
        TEST(rotations_are_undone_along_and_across_rows),
        TEST(values_can_be_read_from_anywhere),
        TEST(the_callers_floating_point_environment_changes_nothing),
        TEST(a_scalar_and_a_tensor_without_elements_have_values_too),
        TEST(ranges_outside_and_wrong_sizes_are_refused),
        TEST(dense_elements_can_be_read_so_too),
        TEST(a_tensor_whose_parts_do_not_fit_is_refused_with_the_reason),
        TEST(any_bytes_are_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
