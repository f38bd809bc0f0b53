/* Symbols: binding, several descriptors together, the largest buffer. */
#include "support.h"

#include <stdio.h>

#include "descriptor/descriptor.h"
#include "descriptor/extents.h"

#include <tenon/descriptor.h>

/* The specification's example, with strides. */
static const tn_wia_extent hidden_dims[] = { { .symbol = "batch" }, { .symbol = "sequence_length" },
                                         { .value = 768 } };
static const char *const sequence[] = { "sequence_length" };
static const tn_wia_product hidden_strides[] = { { .factor = 768, .symbols = sequence, .nsymbols = 1 },
                                             { .factor = 768 }, { .factor = 1 } };
static const tn_wia_constraint hidden_constraints[] = {
    { .symbol = "batch", .min = 1, .max = 256, .multiple_of = 1 },
    { .symbol = "sequence_length", .min = 1, .max = 2048, .multiple_of = 8 },
};
static const tn_wia_binding both[] = { { "batch", 32 }, { "sequence_length", 16 } };

static tn_descriptor hidden(void)
{
    return (tn_descriptor){
        .version = TN_WIA_VERSION, .name = "hidden", .rank = 3, .dimensions = hidden_dims, .symbolic = true,
        .constraints = hidden_constraints, .nconstraints = 2, .dtype = TN_FLOAT32, .base_type = "FLOAT32",
        .has_memory = true, .strides = hidden_strides, .has_total = true,
        .total_bytes = UINT64_C(256) * 2048 * 768 * 4,
    };
}

/* ---- constraints ---- */

static void the_bounds_of_a_constraint_are_values_it_allows(void)
{
    static const struct { tn_wia_constraint c; bool any; int64_t low, high; } cases[] = {
        { { "n", 0, INT64_MAX, 1 }, true, 0, INT64_MAX }, { { "n", 1, 2048, 8 }, true, 8, 2048 },
        { { "n", 1, 2047, 8 }, true, 8, 2040 },           { { "n", 9, 15, 8 }, false, 0, 0 },
        { { "n", 9, 8, 1 }, false, 0, 0 },                { { "n", 8, 8, 8 }, true, 8, 8 },
        { { "n", 0, 5, 100 }, true, 0, 0 },               { { "n", INT64_MAX, INT64_MAX, 2 }, false, 0, 0 },
        { { "n", INT64_MAX - 1, INT64_MAX, 2 }, true, INT64_MAX - 1, INT64_MAX },
        { { "n", 1, INT64_MAX, INT64_MAX }, true, INT64_MAX, INT64_MAX }, { { "n", 0, -1, 1 }, false, 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t low = 0, high = 0;
        CHECK(tn_constraint_bounds(&cases[i].c, &low, &high) == cases[i].any);
        if (cases[i].any)
            CHECK(low == cases[i].low && high == cases[i].high && tn_constraint_allows(&cases[i].c, low));
    }
}

static void symbols_are_letters_digits_and_underlines(void)
{
    CHECK(tn_is_symbol("batch") && tn_is_symbol("_") && tn_is_symbol("N2") && tn_is_symbol("Z_z9"));
    CHECK(!tn_is_symbol("") && !tn_is_symbol("2N") && !tn_is_symbol("a b") && !tn_is_symbol("a*b") &&
          !tn_is_symbol("\xc3\xa4"));
}

/* ---- binding ---- */

static void binding_gives_numbers_everywhere(void)
{
    tn_descriptor d = hidden();
    tn_descriptors *set;
    CHECK(tn_descriptor_bind(&d, both, 2, &set, NULL) == TN_OK);
    CHECK(tn_descriptors_count(set) == 1);
    const tn_descriptor *b = tn_descriptors_at(set, 0);
    CHECK(!b->symbolic && b->nconstraints == 0 && b->rank == 3);
    CHECK(b->dimensions[0].value == 32 && b->dimensions[1].value == 16 && b->dimensions[2].value == 768);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(!b->dimensions[i].symbol && b->strides[i].nsymbols == 0);
    CHECK(b->strides[0].factor == 16 * 768 && b->strides[1].factor == 768 && b->strides[2].factor == 1);
    CHECK(b->has_total && b->total_bytes == 32 * 16 * 768 * 4);
    assert_string_equal(b->name, "hidden");
    size_t wrong = 99;
    CHECK(tn_descriptor_check(b, NULL, &wrong, NULL) == TN_OK && wrong == 0);
    tn_descriptors_free(set);
}

/* What was bound does not point into what it was bound from. */
static void a_bound_descriptor_stands_alone(void)
{
    static const int64_t dims[] = { 2, 2 }, pointers[] = { 0, 1, 2 };
    static const double scales[] = { 0.5 };
    static const float values[] = { 1, 2 };
    static const tn_wia_extra extra[] = { { "shape", "rank", "2" } };
    tn_descriptor d = hidden();
    d.tensor_id = "id";
    d.layout = "BSH";
    d.metadata = "{}";
    d.quantization = (tn_wia_quantization){ .scheme = TN_QUANT_PER_TENSOR_SYMMETRIC, .scales = scales,
                                        .nscales = 1,
                                        .zero_points = dims, .nzero_points = 2 };
    d.sparse = (tn_wia_sparse){ .rank = 2, .shape = dims, .indices = dims, .nindices = 2, .pointers = pointers,
                            .npointers = 3,
                            .value_type = TN_FLOAT32, .values = values, .nvalues = 2 };
    d.extra = extra;
    d.nextra = 1;
    tn_descriptors *set;
    CHECK(tn_descriptor_bind(&d, both, 2, &set, NULL) == TN_OK);
    const tn_descriptor *b = tn_descriptors_at(set, 0);
    CHECK(b->name != d.name && b->tensor_id != d.tensor_id && b->layout != d.layout &&
          b->metadata != d.metadata);
    CHECK(b->base_type != d.base_type && b->version != d.version && b->extra != extra &&
          b->extra[0].json != extra[0].json);
    CHECK(b->quantization.scales != scales && b->quantization.scales[0] == 0.5 &&
          b->quantization.zero_points[1] == 2);
    CHECK(b->sparse.values != values && memcmp(b->sparse.values, values, sizeof values) == 0);
    CHECK(b->sparse.pointers != pointers && b->sparse.pointers[2] == 2 && b->sparse.indices != dims &&
          b->sparse.shape != dims);
    assert_string_equal(b->extra[0].path, "shape");
    assert_string_equal(b->layout, "BSH");
    tn_descriptors_free(set);
}

static void a_descriptor_without_symbols_stays_as_it_is(void)
{
    static const tn_wia_extent four[] = { { .value = 4 } };
    tn_descriptor d = { .rank = 1, .dimensions = four, .dtype = TN_INT8, .has_memory = true,
                        .has_total = true, .total_bytes = 100 };
    tn_descriptors *set;
    CHECK(tn_descriptor_bind(&d, NULL, 0, &set, NULL) == TN_OK);
    CHECK(tn_descriptors_at(set, 0)->total_bytes == 100 && tn_descriptors_at(set, 0)->dimensions != four);
    tn_descriptors_free(set);
}

static void wrong_bindings_are_refused(void)
{
    static const struct { tn_wia_binding bindings[3]; size_t n; const char *text; } cases[] = {
        { { { "batch", 1 }, { "sequence_length", 12 } }, 2,
          "sequence_length: expected a multiple of 8 from 1 to 2048 but found 12" },
        { { { "batch", 300 }, { "sequence_length", 8 } }, 2,
          "batch: expected a number from 1 to 256 but found 300" },
        { { { "batch", -1 }, { "sequence_length", 8 } }, 2,
          "batch: expected a number from 1 to 256 but found -1" },
        { { { "batch", 1 } }, 1,
          "sequence_length: expected a multiple of 8 from 1 to 2048 but found no value" },
        { { { "batch", 1 }, { "sequence_length", 8 }, { "width", 3 } }, 3,
          "expected a symbol of the descriptor (batch, sequence_length) but found \"width\"" },
        { { { "batch", 1 }, { "sequence_length", 8 }, { "batch", 2 } }, 3,
          "batch: expected one value but found 1 and 2" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_descriptor d = hidden();
        tn_descriptors *set = NULL;
        tn_error err = { .text = "" };
        CHECK(tn_descriptor_bind(&d, cases[i].bindings, cases[i].n, &set, &err) == TN_ERR_ARGUMENT);
        assert_string_equal(said_of(&err), cases[i].text);
        CHECK(set == NULL &&
              tn_descriptor_bind(&d, cases[i].bindings, cases[i].n, &set, NULL) == TN_ERR_ARGUMENT);
    }
}

static void a_symbol_without_constraints_takes_any_size(void)
{
    static const tn_wia_extent n[] = { { .symbol = "n" } };
    static const tn_wia_binding bad[] = { { "n", -1 } }, zero[] = { { "n", 0 } },
    huge[] = { { "n", INT64_MAX - 1 } };
    tn_descriptor d = { .rank = 1, .dimensions = n, .symbolic = true, .dtype = TN_FLOAT64,
                        .base_type = "FLOAT64" };
    tn_descriptors *set;
    tn_error err;
    CHECK(tn_descriptor_bind(&d, bad, 1, &set, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "n: expected a number not below 0 but found -1");
    CHECK(tn_descriptor_bind(&d, zero, 1, &set, &err) == TN_OK);
    CHECK(tn_descriptors_at(set, 0)->has_total && tn_descriptors_at(set, 0)->total_bytes == 0);
    tn_descriptors_free(set);
    CHECK(tn_descriptor_bind(&d, huge, 1, &set, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "expected a buffer of less than 2^64 bytes but found more");
}

static void a_stride_that_does_not_fit_is_refused(void)
{
    static const char *const cubed[] = { "n", "n", "n" };
    static const tn_wia_extent n[] = { { .symbol = "n" } };
    static const tn_wia_product stride[] = { { .factor = 2, .symbols = cubed, .nsymbols = 3 } };
    static const tn_wia_binding fits[] = { { "n", 1 << 20 } }, not[] = { { "n", 1 << 21 } };
    tn_descriptor d = { .rank = 1, .dimensions = n, .strides = stride, .dtype = TN_UINT4,
                        .base_type = "UINT4" };
    tn_descriptors *set;
    tn_error err;
    /* the stride does, the buffer does not */
    CHECK(tn_descriptor_bind(&d, fits, 1, &set, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "expected a buffer of less than 2^64 bytes but found more");
    CHECK(tn_descriptor_bind(&d, not, 1, &set, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "memory.strides[0]: expected 2*n*n*n to fit 64 bits but found more");
}

static void what_is_added_is_known_when_bound(void)
{
    static const tn_wia_extent dims[] = { { .symbol = "c" }, { .value = 4 } };
    static const int64_t physical[] = { 16, 4 }, values[] = { 0, 0 };
    static const bool flags[] = { false, false };
    static const tn_wia_binding eleven[] = { { "c", 11 } }, twenty[] = { { "c", 20 } };
    tn_descriptor d = { .rank = 2, .dimensions = dims, .symbolic = true, .dtype = TN_INT8,
                        .physical_shape = physical,
                        .has_padding = true, .padding = { .dims = flags, .values = values,
                                                          .mode = "zero_fill" } };
    tn_descriptors *set;
    tn_error err;
    CHECK(tn_descriptor_bind(&d, eleven, 1, &set, &err) == TN_OK);
    const tn_descriptor *b = tn_descriptors_at(set, 0);
    CHECK(b->padding.values[0] == 5 && b->padding.values[1] == 0 && b->padding.dims[0] &&
          !b->padding.dims[1]);
    CHECK(b->total_bytes == 64 && b->physical_shape[0] == 16);
    tn_descriptors_free(set);
    CHECK(tn_descriptor_bind(&d, twenty, 1, &set, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "c: expected at most 16, physical_shape[0], but found 20");
}

/* ---- several descriptors ---- */

/* A descriptor of one dimension "n" and one "m" without constraints. */
typedef struct named {
    tn_wia_extent     dims[2];
    tn_wia_constraint n;
    tn_descriptor d;
} named;

static void make_named(named *x, const char *name, int64_t min, int64_t max, int64_t multiple)
{
    *x = (named){ .dims = { { .symbol = "n" }, { .symbol = "m" } }, .n = { "n", min, max, multiple } };
    x->d = (tn_descriptor){ .name = name, .rank = 2, .dimensions = x->dims, .constraints = &x->n,
                            .nconstraints = 1 };
}

static void the_constraints_of_all_hold_together(void)
{
    named a, b, c;
    make_named(&a, "a", 1, 100, 4);
    make_named(&b, "b", 10, INT64_MAX, 6);
    make_named(&c, "c", 0, 500, 1);
    const tn_descriptor *all[] = { &a.d, &b.d, &c.d };
    tn_wia_constraint out[2];
    size_t count = 99;
    CHECK(tn_symbols_unify(all, 3, out, 2, &count, NULL) == TN_OK && count == 2);
    assert_string_equal(out[0].symbol, "m");
    CHECK(out[0].min == 0 && out[0].max == INT64_MAX && out[0].multiple_of == 1);
    assert_string_equal(out[1].symbol, "n");
    CHECK(out[1].min == 10 && out[1].max == 100 && out[1].multiple_of == 12);
}

static void only_what_fits_is_written(void)
{
    named a;
    make_named(&a, "a", 1, 100, 4);
    const tn_descriptor *all[] = { &a.d };
    tn_wia_constraint out[2] = { { 0 }, { .min = 77 } };
    size_t count = 99;
    CHECK(tn_symbols_unify(all, 1, out, 1, &count, NULL) == TN_OK && count == 2 && out[1].min == 77);
    CHECK(tn_symbols_unify(all, 1, NULL, 0, &count, NULL) == TN_OK && count == 2);
    CHECK(tn_symbols_unify(NULL, 0, NULL, 0, &count, NULL) == TN_OK && count == 0);
}

static void constraints_that_contradict_are_refused(void)
{
    static const struct { tn_wia_constraint a, b; tn_status status; const char *text;
    } cases[] = {
        { { "n", 1, 8, 1 },
          { "n", 16, 32, 1 },
          TN_ERR_ARGUMENT,
          "n: expected one value for all, but \"encoder\" leaves a number from 1 to 8 and \"decoder\" wants "
          "a number from 16 to 32" },
        { { "n", 1, 20, 8 },
          { "n", 0, INT64_MAX, 12 },
          TN_ERR_ARGUMENT,
          "n: expected one value for all, but \"encoder\" leaves a multiple of 8 from 1 to 20 and "
          "\"decoder\" wants a multiple of 12 "
          "not below 0" },
        { { "n", 1, INT64_MAX, INT64_MAX },
          { "n", 1, INT64_MAX, 2 },
          TN_ERR_LIMIT,
          "n: expected a common multiple of 9223372036854775807 (\"encoder\") and 2 (\"decoder\") below 2^63 "
          "but found none" },
        { { "n", 9, 15, 8 },
          { "n", 0, 5, 1 },
          TN_ERR_ARGUMENT,
          "n: expected a value that \"encoder\" allows but there is not a multiple of 8 from 9 to 15" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        named a, b;
        const tn_wia_constraint *x = &cases[i].a, *y = &cases[i].b;
        make_named(&a, "encoder", x->min, x->max, x->multiple_of);
        make_named(&b, "decoder", y->min, y->max, y->multiple_of);
        const tn_descriptor *all[] = { &a.d, &b.d };
        size_t count = 99;
        tn_error err = { .text = "" };
        CHECK(tn_symbols_unify(all, 2, NULL, 0, &count, &err) == cases[i].status && count == 99);
        assert_string_equal(said_of(&err), cases[i].text);
    }
}

static void a_descriptor_without_name_is_told_by_its_number(void)
{
    named a, b;
    make_named(&a, NULL, 1, 8, 1);
    make_named(&b, NULL, 9, 9, 1);
    const tn_descriptor *all[] = { &a.d, &b.d };
    tn_error err = { .text = "" };
    size_t count;
    CHECK(tn_symbols_unify(all, 2, NULL, 0, &count, &err) == TN_ERR_ARGUMENT);
    assert_non_null(strstr(line_of(&err), "descriptor 0 leaves a number from 1 to 8 and descriptor 1 wants"));
}

/* Whatever unify leaves is exactly what all allow. */
static void unified_constraints_allow_what_all_allow(void)
{
    for (int64_t k = 0; k < 3000; k++) {
        named a, b;
        make_named(&a, "a", k % 7, 5 + k % 31, 1 + k % 5);
        make_named(&b, "b", k / 7 % 11, 3 + k / 11 % 29, 1 + k / 5 % 6);
        const tn_descriptor *all[] = { &a.d, &b.d };
        tn_wia_constraint out[2];
        size_t count, allowed = 0;
        tn_status status = tn_symbols_unify(all, 2, out, 2, &count, NULL);
        for (int64_t v = -2; v < 60; v++) {
            bool both_allow = tn_constraint_allows(&a.n, v) && tn_constraint_allows(&b.n, v);
            allowed += both_allow;
            CHECK(status || tn_constraint_allows(&out[1], v) == both_allow);
        }
        CHECK((status == TN_OK) == (allowed > 0));
    }
}

/* ---- the largest buffer ---- */

static void the_largest_buffer_holds_the_largest_shape(void)
{
    tn_descriptor d = hidden();
    uint64_t bytes = 0;
    CHECK(tn_descriptor_max_bytes(&d, &bytes, NULL) == TN_OK && bytes == UINT64_C(256) * 2048 * 768 * 4);
    d.strides = NULL;
    d.offset_bytes = 512;
    CHECK(tn_descriptor_max_bytes(&d, &bytes, NULL) == TN_OK &&
          bytes == UINT64_C(256) * 2048 * 768 * 4 + 512);
    d.dtype = TN_INT4;
    CHECK(tn_descriptor_max_bytes(&d, &bytes, NULL) == TN_OK &&
          bytes == UINT64_C(256) * 2048 * 768 / 2 + 512);
}

static void a_multiple_below_the_maximum_is_the_largest(void)
{
    static const tn_wia_extent n[] = { { .symbol = "n" } };
    static const tn_wia_constraint up[] = { { "n", 1, 30, 7 } };
    tn_descriptor d = { .rank = 1, .dimensions = n, .constraints = up, .nconstraints = 1,
                        .dtype = TN_FLOAT6_E2M3 };
    uint64_t bytes = 0;
    /* 28 elements of 6 bits */
    CHECK(tn_descriptor_max_bytes(&d, &bytes, NULL) == TN_OK && bytes == 21);
}

static void a_buffer_without_a_largest_size_says_why(void)
{
    tn_descriptor d = hidden();
    tn_error err;
    uint64_t bytes = 7;
    d.nconstraints = 1;
    CHECK(tn_descriptor_max_bytes(&d, &bytes, &err) == TN_ERR_LIMIT && bytes == 7);
    assert_string_equal(said_of(&err), "sequence_length: expected a largest value but found no maximum");
    d = hidden();
    d.dtype = TN_UNKNOWN;
    d.base_type = "FLOAT99";
    CHECK(tn_descriptor_max_bytes(&d, &bytes, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "expected a type of known size but found \"FLOAT99\"");
    d.sparse.format = "CSR";
    CHECK(tn_descriptor_max_bytes(&d, &bytes, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "expected a dense tensor but found CSR data in the document");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_bounds_of_a_constraint_are_values_it_allows),
        TEST(symbols_are_letters_digits_and_underlines),
        TEST(binding_gives_numbers_everywhere),
        TEST(a_bound_descriptor_stands_alone),
        TEST(a_descriptor_without_symbols_stays_as_it_is),
        TEST(wrong_bindings_are_refused),
        TEST(a_symbol_without_constraints_takes_any_size),
        TEST(a_stride_that_does_not_fit_is_refused),
        TEST(what_is_added_is_known_when_bound),
        TEST(the_constraints_of_all_hold_together),
        TEST(only_what_fits_is_written),
        TEST(constraints_that_contradict_are_refused),
        TEST(a_descriptor_without_name_is_told_by_its_number),
        TEST(unified_constraints_allow_what_all_allow),
        TEST(the_largest_buffer_holds_the_largest_shape),
        TEST(a_multiple_below_the_maximum_is_the_largest),
        TEST(a_buffer_without_a_largest_size_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
