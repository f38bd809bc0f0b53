#include "support.h"

#include <stdio.h>

#include "store/names.h"

typedef struct list { char name[40]; } list;

static const char *name_at(const void *owner, size_t i)
{
    return ((const list *)owner)[i].name;
}

static list *make_names(size_t n)
{
    list *names = malloc((n ? n : 1) * sizeof *names);
    assert_non_null(names);
    for (size_t i = 0; i < n; i++)
        snprintf(names[i].name, sizeof names[i].name, "layer.%zu.weight", i);
    return names;
}

static void every_name_is_found_and_no_other(void)
{
    static const size_t counts[] = { 0, 1, 2, 7, 8, 9, 16, 17, 1000, 20000 };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        size_t n = counts[k];
        list *names = make_names(n);
        for (size_t room = 0; room <= n; room += n ? n : 1) {       /* growing from nothing, and with room */
            tn_names t;
            CHECK(tn_names_init(&t, room));
            for (size_t i = 0; i < n; i++)
                CHECK(tn_names_add(&t, names, name_at, i) == TN_NAMES_ADDED);
            CHECK(t.count == n);
            for (size_t i = 0; i < n; i++)
                CHECK(tn_names_find(&t, names, name_at, names[i].name) == i);
            CHECK(tn_names_find(&t, names, name_at, "") == SIZE_MAX);
            CHECK(tn_names_find(&t, names, name_at, "layer.0.weigh") == SIZE_MAX);
            tn_names_free(&t);
        }
        free(names);
    }
}

static void a_name_twice_gives_the_first_index(void)
{
    list names[] = { { "a" }, { "b" }, { "" }, { "a" }, { "" }, { "b" }, { "c" } };
    static const size_t expected[] = { TN_NAMES_ADDED, TN_NAMES_ADDED, TN_NAMES_ADDED, 0, 2, 1,
                                       TN_NAMES_ADDED };
    tn_names t;
    CHECK(tn_names_init(&t, 0));
    for (size_t i = 0; i < 7; i++)
        CHECK(tn_names_add(&t, names, name_at, i) == expected[i]);
    CHECK(t.count == 4);
    CHECK(tn_names_find(&t, names, name_at, "c") == 6);
    tn_names_free(&t);
}

static void a_table_that_was_freed_finds_nothing(void)
{
    list names[] = { { "a" } };
    tn_names t;
    CHECK(tn_names_init(&t, 1));
    CHECK(tn_names_add(&t, names, name_at, 0) == TN_NAMES_ADDED);
    tn_names_free(&t);
    CHECK(tn_names_find(&t, names, name_at, "a") == SIZE_MAX);
    tn_names_free(&t);
}

static void more_names_than_can_be_numbered_are_refused(void)
{
    tn_names t;
    CHECK(!tn_names_init(&t, UINT32_MAX));
    CHECK(!tn_names_init(&t, SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_name_is_found_and_no_other),
        TEST(a_name_twice_gives_the_first_index),
        TEST(a_table_that_was_freed_finds_nothing),
        TEST(more_names_than_can_be_numbered_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
