/* What the parts of a sparse or scaled tensor must be for its form. */
#include "support.h"

#include <stdio.h>

#include "datatype_tensor.h"
#include "store/forms.h"

static const int64_t shape[] = { 2, 5, 7 };     /* its first two dimensions are a matrix */

typedef struct sparse {
    tn_tensor t;
    tn_part   parts[3];
    int64_t   shapes[3][3];
} sparse;

static void set_part(sparse *s, int k, const char *role, tn_dtype dtype, uint32_t rank, int64_t n, int64_t m)
{
    s->shapes[k][0] = n;
    s->shapes[k][1] = m;
    s->parts[k] = (tn_part){ .role = role, .array = { dtype, rank, s->shapes[k], NULL } };
}

/* Three entries. */
static void make(sparse *s, tn_form form, uint32_t rank)
{
    bool coo = form == TN_FORM_COO;
    *s = (sparse){ .t = { .name = "t", .form = form, .dtype = TN_FLOAT32, .rank = rank, .shape = shape,
                          .nparts = coo ? 2 : 3 } };
    s->t.parts = s->parts;
    set_part(s, 0, "values", TN_FLOAT32, 1, 3, 0);
    set_part(s, 1, "indices", TN_INT64, coo ? 2 : 1, 3, rank);
    set_part(s, 2, "indptr", TN_INT64, 1, (rank == 3 ? 2 * 5 : 2) + 1, 0);
}

static void check_fits(const sparse *s)
{
    tn_error err = { .text = "" };
    if (tn_form_check(&s->t, NULL, &err))
        fail_msg("%s", line_of(&err));
}

static void check_refused(const sparse *s, const char *text)
{
    tn_error err = { .text = "" };
    CHECK(tn_form_check(&s->t, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), text);
}

static void tensors_that_fit_their_form_are_taken(void)
{
    static const tn_dtype types[] = { TN_INT32, TN_INT64, TN_UINT32, TN_UINT64 };
    sparse s;
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t rank = 0; rank <= 3; rank++) {
            make(&s, TN_FORM_COO, rank);
            s.parts[1].array.dtype = types[i];
            check_fits(&s);
        }
        for (uint32_t rank = 2; rank <= 3; rank++) {
            make(&s, TN_FORM_CSR, rank);
            s.parts[1].array.dtype = s.parts[2].array.dtype = types[i];
            check_fits(&s);
        }
    }
}

static void coo_has_a_row_of_as_many_indices_as_dimensions_for_each_value(void)
{
    const char *rows =
        "tensor \"t\": its indices must be one row for each value, as long as it has dimensions";
    sparse s;
    for (int64_t wrong = 0; wrong <= 5; wrong++) {
        make(&s, TN_FORM_COO, 2);
        s.shapes[1][1] = wrong;
        if (wrong != 2)
            check_refused(&s, rows);
    }
    make(&s, TN_FORM_COO, 2);
    s.shapes[1][0] = 4;
    check_refused(&s, rows);
    make(&s, TN_FORM_COO, 1);
    s.parts[1].array.rank = 1;
    check_refused(&s, rows);
    make(&s, TN_FORM_COO, 2);
    s.parts[1].array.dtype = TN_INT16;
    check_refused(&s, "tensor \"t\": its indices must be int32, int64, uint32 or uint64");
}

static void csr_has_an_index_for_each_value_and_a_pointer_more_than_rows(void)
{
    const char *pointers = "tensor \"t\": its row pointers must be one more than it has rows";
    sparse s;
    for (uint32_t rank = 2; rank <= 3; rank++) {
        make(&s, TN_FORM_CSR, rank);
        s.shapes[2][0]++;
        check_refused(&s, pointers);
        s.shapes[2][0] -= 2;
        check_refused(&s, pointers);
        s.shapes[2][0] = 0;
        check_refused(&s, pointers);
    }
    make(&s, TN_FORM_CSR, 2);
    s.parts[2].array.rank = 2;
    check_refused(&s, pointers);
    make(&s, TN_FORM_CSR, 2);
    s.shapes[1][0] = 2;
    check_refused(&s, "tensor \"t\": its indices must be one for each value");
    make(&s, TN_FORM_CSR, 2);
    s.parts[1].array.rank = 2;
    check_refused(&s, "tensor \"t\": its indices must be one for each value");
    make(&s, TN_FORM_CSR, 2);
    s.parts[2].array.dtype = TN_INT32;
    check_refused(
        &s, "tensor \"t\": its indices and row pointers must be of one type: int32, int64, uint32 or uint64");
    make(&s, TN_FORM_CSR, 1);
    check_refused(&s, "tensor \"t\": form csr has two dimensions, or three: a batch");
}

static void values_are_a_vector_of_the_tensors_type(void)
{
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR };
    for (size_t i = 0; i < 2; i++) {
        sparse s;
        make(&s, forms[i], 2);
        s.parts[0].array.dtype = TN_INT32;
        check_refused(&s, "tensor \"t\": its values must be a vector of its type");
        make(&s, forms[i], 2);
        s.parts[0].array.rank = 2;
        check_refused(&s, "tensor \"t\": its values must be a vector of its type");
    }
}

static void elements_must_be_countable(void)
{
    static const int64_t huge[] = { INT64_C(1) << 32, INT64_C(1) << 31 };
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR };
    for (size_t i = 0; i < 2; i++) {
        sparse s;
        make(&s, forms[i], 2);
        s.t.shape = huge;
        check_refused(&s, "tensor \"t\": it has more than 2^63 - 1 elements");
    }
}

/* ---- by a datatype ---- */

static void check_scaled_fits(const scaled_tensor *s)
{
    tn_error err = { .text = "" };
    if (tn_form_check(&s->t, NULL, &err))
        fail_msg("%s", line_of(&err));
}

static void check_scaled_refused(const scaled_tensor *s, const char *text)
{
    tn_error err = { .text = "" };
    CHECK(tn_form_check(&s->t, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), text);
}

static const int64_t wide[] = { 4, 3, 64 };

static scaled_tensor *make_scaled(const char *datatype)
{
    return scaled_of("t", datatype_of(datatype), 3, wide, false, NULL);
}

static void parts_are_those_that_the_datatype_gives_the_tensor(void)
{
    static const char *const texts[] = { "nvfp4", "uint4|float16_int8_t32", "int4|e8m0_t32s4o2",
                                         "icb44fi2_e32s8", "e2m1fnuz|e8m0_t32n2m4",
                                         "e3m3fnuz" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (int unpacked = 0; unpacked < 2; unpacked++) {
            scaled_tensor *s = scaled_of("t", datatype_of(texts[i]), 3, wide, unpacked, NULL);
            check_scaled_fits(s);
            for (uint32_t k = 0; k < s->t.nparts; k++) {
                char text[160];
                tn_array good = s->parts[k].array;
                int64_t other[] = { 4, 3, 65 };
                snprintf(text, sizeof text,
                         "tensor \"t\": its part \"%s\" does not have the type %s and the shape that its "
                         "datatype gives it",
                         s->parts[k].role, tn_dtype_get(good.dtype)->name);
                s->parts[k].array.dtype = good.dtype == TN_INT16 ? TN_INT8 : TN_INT16;
                check_scaled_refused(s, text);
                s->parts[k].array = good;
                s->parts[k].array.shape = other;
                s->parts[k].array.rank = good.rank ? good.rank : 1;
                check_scaled_refused(s, text);
                s->parts[k].array = good;
                s->parts[k].array.rank = good.rank ? 2 : 1;
                s->parts[k].array.shape = other;
                check_scaled_refused(s, text);
                s->parts[k].array = good;
            }
            scaled_free(s);
        }
    }
}

static void roles_are_those_of_the_datatype_in_order(void)
{
    scaled_tensor *s = make_scaled("nvfp4");
    s->parts[1].role = "zero";
    check_scaled_refused(s, "tensor \"t\": part 2 of form \"scaled\" is \"offset\" but found \"tscale\"");
    s->parts[2].role = "mask";
    check_scaled_refused(s, "tensor \"t\": part 1 of its datatype is \"scale\" but found \"zero\"");
    s->parts[1].role = "scale";
    check_scaled_refused(s, "tensor \"t\": part 2 of its datatype is \"tscale\" but found \"mask\"");
    s->parts[2].role = "tscale";
    s->t.nparts = 2;
    check_scaled_refused(s, "tensor \"t\": its datatype has 3 parts but found 2");
    s->t.nparts = 0;
    check_scaled_refused(s, "tensor \"t\": form \"scaled\" has 8 parts but 0 were given");
    scaled_free(s);
}

static void a_datatype_must_be_one_that_fits_the_tensor(void)
{
    scaled_tensor *s = make_scaled("mxfp4");
    tn_error err = { .text = "" };
    s->t.dtype = TN_INT32;
    check_scaled_refused(s, "tensor \"t\": its values must be of a signed float type");
    s->t.dtype = TN_FLOAT16;
    check_scaled_fits(s);
    s->scaling.datatype = "mxfp";
    CHECK(tn_form_check(&s->t, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "tensor \"t\": its datatype \"mxfp\": expected a number"));
    s->scaling.datatype = "e2m1fnuz|e8m0_t32_t32n2m4";      /* which is not supported: nor is such a tensor one of a later version */
    CHECK(tn_form_check(&s->t, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "matrix sparsity is not supported"));
    s->scaling.datatype = "e2m1fnuz|e8m0_t32d3";
    check_scaled_refused(s, "tensor \"t\": its datatype e2m1fnuz|e8m0_t32d3: its tiles need rank 4 or more "
                            "but the tensor has rank 3");
    s->t.scaling = NULL;
    check_scaled_refused(s, "tensor \"t\": its scaling is not known");
    scaled_free(s);
}

static void a_rotation_goes_along_the_tiled_dimension(void)
{
    static const struct { const char *datatype; uint32_t size; bool good; } cases[] = {
        { "mxfp4", 64, true }, { "mxfp4", 128, false }, { "mxfp4", 2, false }, { "mxfp4", 12, false },
        { "mxfp4", 256, false },
        { "e2m1fnuz|e8m0_t32d0", 4, true }, { "e2m1fnuz|e8m0_t32d0", 8, false }, { "mxfp4s", 64, true },
        { "int8|float32", 16, true },
        { "e3m3fnuz", 32, true }, { "e2m1fnuz|e8m0_t32d0_t16d1", 4, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scaled_tensor *s = make_scaled(cases[i].datatype);
        tn_error err = { .text = "" };
        s->scaling.rotation.size = cases[i].size;
        CHECK(tn_form_check(&s->t, NULL, &err) == (cases[i].good ? TN_OK : TN_ERR_ARGUMENT));
        CHECK(cases[i].good || strstr(line_of(&err), "tensor \"t\": a rotation "));
        scaled_free(s);
    }
    scaled_tensor *scalar = scaled_of("t", datatype_of("int8|float32"), 0, NULL, false, NULL);
    scalar->scaling.rotation.size = 4;
    check_scaled_refused(scalar,
                         "tensor \"t\": a rotation of 4 values needs a dimension that is a multiple of it");
    scaled_free(scalar);
}

/* Integer codes have no other parts than these. */
static void integer_codes_have_scales_and_perhaps_zero_points(void)
{
    static const int64_t two[] = { 2 };
    static const tn_scaling scaling = { .axis = -1, .range = { -128, 127 } };
    tn_part parts[] = { { .role = "data", .array = { TN_INT8, 1, two, NULL } },
                        { .role = "scale", .array = { TN_FLOAT32, 0, NULL, NULL } },
                        { .role = "zero", .array = { TN_INT32, 0, NULL, NULL } } };
    tn_tensor t = { .name = "t", .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = 1, .shape = two,
                    .parts = parts, .scaling = &scaling };
    tn_error err = { .text = "" };
    for (t.nparts = 1; t.nparts <= 3; t.nparts++)
        CHECK(tn_form_check(&t, NULL, &err) == (t.nparts == 1 ? TN_ERR_ARGUMENT : TN_OK));
    t.nparts = 3;
    parts[2].role = "mask";
    CHECK(tn_form_check(&t, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "tensor \"t\": its parts must be data, scale and perhaps zero");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors_that_fit_their_form_are_taken),
        TEST(coo_has_a_row_of_as_many_indices_as_dimensions_for_each_value),
        TEST(csr_has_an_index_for_each_value_and_a_pointer_more_than_rows),
        TEST(values_are_a_vector_of_the_tensors_type),
        TEST(elements_must_be_countable),
        TEST(parts_are_those_that_the_datatype_gives_the_tensor),
        TEST(roles_are_those_of_the_datatype_in_order),
        TEST(a_datatype_must_be_one_that_fits_the_tensor),
        TEST(a_rotation_goes_along_the_tiled_dimension),
        TEST(integer_codes_have_scales_and_perhaps_zero_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
