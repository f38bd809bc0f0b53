/* The values of tensors of datatypes: the same from parts in memory, in any range, as from all at once. */
#include "support.h"

#include <math.h>

#include "environment.h"
#include "scaled_tensor.h"
#include "values.h"

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

/* Ranges that begin and end at odd places, and all at once. */
static void check_ranges(const scaled_tensor *s, tn_view *v)
{
    static const size_t places[][2] = { { 0, SIZE_MAX }, { 0, 1 },  { 1, 7 },      { 5, 33 },
                                        { 31, 64 },      { 63, 2 }, { 100, 5000 }, { 4095, 4098 } };
    size_t width = tn_dtype_get(s->tensor.dtype)->bits / 8;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i][0] >= s->count)
            continue;
        size_t n = places[i][1] < s->count - places[i][0] ? places[i][1] : s->count - places[i][0];
        uint8_t *out = exact_copy(s->expected, n * width);
        memset(out, 0xa5, n * width);
        CHECK(get_values(v, places[i][0], n, out, n * width, NULL) == TN_OK);
        if (memcmp(out, s->expected + places[i][0] * width, n * width) != 0)
            fail_msg("%s: elements from %zu on differ", s->scaling.datatype, places[i][0]);
        free(out);
    }
}

static void check_tensor(const scaled_tensor *s)
{
    tn_error err = { .text = "" };
    tn_view *v = NULL;
    if (open_values(NULL, &s->tensor, &v, &err))
        fails(&err, s->scaling.datatype);
    const tn_tensor *t = tn_view_tensor(v);
    CHECK(t->form == TN_FORM_DENSE && t->nparts == 1 && !t->scaling && t->dtype == s->tensor.dtype);
    CHECK(t->parts[0].nbytes == s->size);
    check_ranges(s, v);
    tn_view_close(v);
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
    tn_view *v;
    size_t width = s->size / s->count;
    if (open_values(NULL, &s->tensor, &v, &err))
        fails(&err, s->scaling.datatype);
    for (size_t first = 0; first <= s->count; first += 1 + first / 3) {
        size_t n = (first * 7 + 11) % (s->count - first + 1);
        uint8_t *out = exact_copy(s->expected, n * width);
        memset(out, 0xa5, n * width);
        CHECK(get_values(v, first, n, out, n * width, &err) == TN_OK);
        CHECK(memcmp(out, s->expected + first * width, n * width) == 0);
        free(out);
    }
    tn_view_close(v);
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
    tn_view *v;
    float out[3 * 8 * 64];
    make_scaled(&s, "int4|float32_t16", TN_FLOAT32, 3, shapes[0], (tn_quantize_options){ 0 });
    CHECK(open_values(NULL, &s.tensor, &v, NULL) == TN_OK);
    for (environment e = 0; e < ENVIRONMENTS; e++) {
        enter_environment(e);
        uint64_t before = environment_seen();
        tn_status status = get_values(v, 0, s.count, out, sizeof out, NULL);
        uint64_t after = environment_seen();
        leave_environment();
        CHECK(status == TN_OK && before == after && memcmp(out, s.expected, sizeof out) == 0);
    }
    tn_view_close(v);
    free_scaled(&s);
}

static void a_scalar_and_a_tensor_without_elements_have_values_too(void)
{
    static const int64_t none[] = { 0, 64 };
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        tn_view *v;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 2, none, (tn_quantize_options){ 0 });
        CHECK(open_values(NULL, &s.tensor, &v, NULL) == TN_OK &&
              get_values(v, 0, 0, NULL, 0, NULL) == TN_OK);
        CHECK(get_values(v, 0, 1, s.source, sizeof *s.source, NULL) == TN_ERR_ARGUMENT);
        tn_view_close(v);
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
    tn_view *v;
    tn_error err;
    float out[8];
    make_scaled(&s, "mxfp4e2", TN_FLOAT32, 3, shapes[0], (tn_quantize_options){ 0 });
    CHECK(open_values(NULL, &s.tensor, &v, NULL) == TN_OK);
    CHECK(get_values(v, s.count - 1, 2, out, 8, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "1536"));
    CHECK(get_values(v, UINT64_MAX, 2, out, 8, &err) == TN_ERR_ARGUMENT);
    CHECK(get_values(v, 0, UINT64_MAX, out, 8, &err) == TN_ERR_ARGUMENT);
    CHECK(get_values(v, 0, 2, out, 7, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "expected a buffer of 8 bytes but found 7"));
    CHECK(get_values(v, s.count, 0, out, 0, &err) == TN_OK);
    tn_view_close(v);
    tn_view_close(NULL);
    free_scaled(&s);
}

/* Types narrower than a byte begin anywhere in one, and the bits after the last value are 0. */
static void dense_elements_can_be_read_so_too(void)
{
    static const uint8_t nibbles[] = { 0x21, 0x43, 0x65 };
    static const int64_t shape[] = { 5 };
    const tn_part data = { .role = "data", .array = { TN_INT4, 1, shape, NULL }, .nbytes = 3,
                           .data = nibbles };
    const tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .dtype = TN_INT4, .rank = 1, .shape = shape,
                          .parts = &data, .nparts = 1 };
    uint8_t two[2];
    tn_view *v;
    CHECK(open_values(NULL, &t, &v, NULL) == TN_OK);
    CHECK(get_values(v, 2, 3, two, 2, NULL) == TN_OK && two[0] == 0x43 && two[1] == 0x05);
    CHECK(get_values(v, 1, 2, two, 1, NULL) == TN_OK && two[0] == 0x32);
    CHECK(get_values(v, 1, 3, two, 2, NULL) == TN_OK && two[0] == 0x32 && two[1] == 0x04);
    tn_view_close(v);
}

/* ---- what is wrong ---- */

static void a_tensor_whose_parts_do_not_fit_is_refused_with_the_reason(void)
{
    scaled_tensor s;
    tn_error err;
    tn_view *v;
    make_scaled(&s, "mxfp4e2", TN_FLOAT32, 3, shapes[0], (tn_quantize_options){ 0 });
    static const int64_t too_few[] = { 47 };
    const tn_array whole = s.parts[1].array;
    s.parts[1].nbytes--;
    CHECK(open_values(NULL, &s.tensor, &v, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "expected 48 bytes of part 1 but found 47"));
    s.parts[1].array = (tn_array){ whole.dtype, 1, too_few, NULL };
    CHECK(open_values(NULL, &s.tensor, &v, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "its part \"scale\" does not have the type float8_e8m0 and the shape"));
    s.parts[1].array = whole;
    s.parts[1].nbytes++;
    s.tensor.nparts = 1;
    CHECK(open_values(NULL, &s.tensor, &v, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "its datatype has 2 parts but found 1"));
    s.tensor.nparts = 2;
    s.tensor.dtype = TN_INT8;
    CHECK(open_values(NULL, &s.tensor, &v, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "its values must be of a signed float type"));
    s.tensor.dtype = TN_FLOAT32;
    s.scaling.datatype = "e2m1fnuz|";
    CHECK(open_values(NULL, &s.tensor, &v, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "tensor \"t\""));
    s.scaling.datatype = "mxfp4e2";
    s.scaling.rotation.size = 48;
    CHECK(open_values(NULL, &s.tensor, &v, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "48"));
    free_scaled(&s);
}

/* Whatever bytes parts have, values come out: a NaN at worst. */
static void any_bytes_are_values(void)
{
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        tn_view *v;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 3, shapes[1], (tn_quantize_options){ 0 });
        for (uint32_t k = 0; k < s.tensor.nparts; k++)
            for (size_t b = 0; b < s.parts[k].nbytes; b++)
                s.bytes[k][b] = (uint8_t)(b % 3 ? b * 151 + i * 7 : 255);
        expect_scaled(&s);
        CHECK(open_values(NULL, &s.tensor, &v, NULL) == TN_OK);
        check_ranges(&s, v);
        tn_view_close(v);
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
