/* What the parts of a sparse tensor must be for its form. */
#include "support.h"

#include "tensor/form.h"

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
static void make(sparse *s, const char *form, uint32_t rank)
{
    bool coo = strcmp(form, "coo") == 0;
    *s = (sparse){ .t = { .name = "t", .form = form, .dtype = TN_FLOAT32, .rank = rank, .shape = shape, .nparts = coo ? 2 : 3 } };
    s->t.parts = s->parts;
    set_part(s, 0, "values", TN_FLOAT32, 1, 3, 0);
    set_part(s, 1, "indices", TN_INT64, coo ? 2 : 1, 3, rank);
    set_part(s, 2, "indptr", TN_INT64, 1, (rank == 3 ? 2 * 5 : 2) + 1, 0);
}

static void check_fits(const sparse *s)
{
    tn_error err = { .text = "" };
    if (tn_form_check(&s->t, &err))
        fail_msg("%s", err.text);
}

static void check_refused(const sparse *s, const char *text)
{
    tn_error err = { .text = "" };
    CHECK(tn_form_check(&s->t, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(err.text, text);
}

static void tensors_that_fit_their_form_are_taken(void)
{
    static const tn_dtype types[] = { TN_INT32, TN_INT64, TN_UINT32, TN_UINT64 };
    sparse s;
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t rank = 0; rank <= 3; rank++) {
            make(&s, "coo", rank);
            s.parts[1].array.dtype = types[i];
            check_fits(&s);
        }
        for (uint32_t rank = 2; rank <= 3; rank++) {
            make(&s, "csr", rank);
            s.parts[1].array.dtype = s.parts[2].array.dtype = types[i];
            check_fits(&s);
        }
    }
}

static void coo_has_a_row_of_as_many_indices_as_dimensions_for_each_value(void)
{
    const char *rows = "tensor \"t\": its indices must be one row for each value, as long as it has dimensions";
    sparse s;
    for (int64_t wrong = 0; wrong <= 5; wrong++) {
        make(&s, "coo", 2);
        s.shapes[1][1] = wrong;
        if (wrong != 2)
            check_refused(&s, rows);
    }
    make(&s, "coo", 2);
    s.shapes[1][0] = 4;
    check_refused(&s, rows);
    make(&s, "coo", 1);
    s.parts[1].array.rank = 1;
    check_refused(&s, rows);
    make(&s, "coo", 2);
    s.parts[1].array.dtype = TN_INT16;
    check_refused(&s, "tensor \"t\": its indices must be int32, int64, uint32 or uint64");
}

static void csr_has_an_index_for_each_value_and_a_pointer_more_than_rows(void)
{
    const char *pointers = "tensor \"t\": its row pointers must be one more than it has rows";
    sparse s;
    for (uint32_t rank = 2; rank <= 3; rank++) {
        make(&s, "csr", rank);
        s.shapes[2][0]++;
        check_refused(&s, pointers);
        s.shapes[2][0] -= 2;
        check_refused(&s, pointers);
        s.shapes[2][0] = 0;
        check_refused(&s, pointers);
    }
    make(&s, "csr", 2);
    s.parts[2].array.rank = 2;
    check_refused(&s, pointers);
    make(&s, "csr", 2);
    s.shapes[1][0] = 2;
    check_refused(&s, "tensor \"t\": its indices must be one for each value");
    make(&s, "csr", 2);
    s.parts[1].array.rank = 2;
    check_refused(&s, "tensor \"t\": its indices must be one for each value");
    make(&s, "csr", 2);
    s.parts[2].array.dtype = TN_INT32;
    check_refused(&s, "tensor \"t\": its indices and row pointers must be of one type: int32, int64, uint32 or uint64");
    make(&s, "csr", 1);
    check_refused(&s, "tensor \"t\": form csr has two dimensions, or three: a batch");
}

static void values_are_a_vector_of_the_tensors_type(void)
{
    static const char *const forms[] = { "coo", "csr" };
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
    static const char *const forms[] = { "coo", "csr" };
    for (size_t i = 0; i < 2; i++) {
        sparse s;
        make(&s, forms[i], 2);
        s.t.shape = huge;
        check_refused(&s, "tensor \"t\": it has more than 2^63 - 1 elements");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors_that_fit_their_form_are_taken),
        TEST(coo_has_a_row_of_as_many_indices_as_dimensions_for_each_value),
        TEST(csr_has_an_index_for_each_value_and_a_pointer_more_than_rows),
        TEST(values_are_a_vector_of_the_tensors_type),
        TEST(elements_must_be_countable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
