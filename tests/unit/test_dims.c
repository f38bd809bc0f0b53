/* Shapes as files tell them: limits, and one copy for neighbours. */
#include "support.h"

#include "store/dims.h"

static void dimensions_are_kept_in_order(void)
{
    tn_arena arena = { 0 };
    tn_dims d = { 0 };
    CHECK(tn_dims_add(&d, 3, NULL) == TN_OK && tn_dims_add(&d, 0, NULL) == TN_OK &&
          tn_dims_add(&d, INT64_MAX, NULL) == TN_OK);
    const int64_t *shape = tn_dims_keep(&d, &arena, NULL, 0);
    CHECK(d.rank == 3 && shape && shape[0] == 3 && shape[1] == 0 && shape[2] == INT64_MAX);
    tn_arena_free(&arena);
}

static void a_scalar_has_a_shape_too(void)
{
    tn_arena arena = { 0 };
    tn_dims d = { 0 };
    const int64_t *shape = tn_dims_keep(&d, &arena, NULL, 0);
    CHECK(shape && tn_dims_keep(&d, &arena, shape, 0) == shape);
    tn_arena_free(&arena);
}

static void a_dimension_from_2_to_the_63_on_is_refused(void)
{
    tn_dims d = { 0 };
    tn_error err = { .text = "" };
    CHECK(tn_dims_add(&d, UINT64_C(1) << 63, &err) == TN_ERR_LIMIT && err.status == TN_ERR_LIMIT &&
          d.rank == 0);
    CHECK(strcmp(said_of(&err), "expected a dimension below 2^63 but found 9223372036854775808") == 0);
    CHECK(tn_dims_add(&d, UINT64_MAX, NULL) == TN_ERR_LIMIT && d.rank == 0);
}

static void the_dimension_after_the_last_possible_is_refused(void)
{
    tn_dims *d = calloc(1, sizeof *d);      /* of its own, so that a write beyond it is seen */
    assert_non_null(d);
    tn_error err = { .text = "" };
    for (int i = 0; i < TN_MAX_RANK; i++)
        CHECK(tn_dims_add(d, 1, &err) == TN_OK);
    CHECK(tn_dims_add(d, 1, &err) == TN_ERR_LIMIT && d->rank == TN_MAX_RANK);
    CHECK(strcmp(said_of(&err), "expected at most 64 dimensions but found more") == 0);
    free(d);
}

static void neighbours_of_one_shape_share_it(void)
{
    tn_arena arena = { 0 };
    const int64_t known[] = { 2, 3, 4 };
    tn_dims d = { .rank = 3, .dims = { 2, 3, 4 } };
    CHECK(tn_dims_keep(&d, &arena, known, 3) == known);
    const int64_t *other = tn_dims_keep(&d, &arena, known, 2);
    CHECK(other != known && other[2] == 4);
    d.dims[2] = 5;
    other = tn_dims_keep(&d, &arena, known, 3);
    CHECK(other != known && other[2] == 5);
    tn_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dimensions_are_kept_in_order),
        TEST(a_scalar_has_a_shape_too),
        TEST(a_dimension_from_2_to_the_63_on_is_refused),
        TEST(the_dimension_after_the_last_possible_is_refused),
        TEST(neighbours_of_one_shape_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
