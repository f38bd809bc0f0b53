/* Structs that begin with their size. */
#include "base/options.h"
#include "support.h"

typedef struct old_options { size_t size; int a, b; } old_options;
typedef struct some_options { size_t size; int a, b; uint64_t later; } some_options;
typedef struct new_options { some_options known; uint64_t more[2]; } new_options;

static const char *const forgotten = "some_options: expected sizeof(some_options) in its member size but found ";

static tn_status take(const void *given, some_options *own, tn_error *err)
{
    *own = (some_options){ .b = 7 };
    return tn_take_options(TN_SIZED(some_options, b), own, given, err);
}

static void none_are_the_defaults(void)
{
    some_options own;
    CHECK(take(NULL, &own, NULL) == TN_OK && own.size == sizeof own && own.b == 7);
}

static void structs_of_other_versions_are_taken(void)
{
    some_options own;
    CHECK(take(&(some_options){ sizeof own, 1, 2, 3 }, &own, NULL) == TN_OK && own.later == 3);
    CHECK(take(&(old_options){ sizeof(old_options), 1, 2 }, &own, NULL) == TN_OK && own.b == 2);
    CHECK(own.later == 0 && own.size == sizeof own);
    CHECK(take(&(new_options){ { sizeof(new_options), 1, 2, 3 }, { 0, 0 } }, &own, NULL) == TN_OK);
    CHECK(own.later == 3 && own.size == sizeof own);
}

static void a_size_that_no_version_has_is_an_error(void)
{
    const size_t sizes[] = { 0, 1, sizeof(size_t), sizeof(old_options) - 1, 4097, SIZE_MAX };
    some_options own;
    tn_error err;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(take(&(some_options){ sizes[i], 1, 2, 3 }, &own, &err) == TN_ERR_ARGUMENT && own.b == 7);
        CHECK(strncmp(err.text, forgotten, strlen(forgotten)) == 0);
        CHECK(strtoull(err.text + strlen(forgotten), NULL, 10) == sizes[i]);
    }
}

static void members_that_this_build_does_not_know_are_an_error(void)
{
    some_options own;
    tn_error err;
    CHECK(take(&(new_options){ { sizeof(new_options), 1, 2, 3 }, { 0, 1 } }, &own, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(err.text, "some_options: members of a later version are set"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(none_are_the_defaults),
        TEST(structs_of_other_versions_are_taken),
        TEST(a_size_that_no_version_has_is_an_error),
        TEST(members_that_this_build_does_not_know_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
