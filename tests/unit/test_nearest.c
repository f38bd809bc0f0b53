#include "support.h"

#include "base/nearest.h"

/* The nearest of some words, or NULL. */
static const char *nearest_of(const char *word, const char *const *known)
{
    tn_nearest nearest = { .word = word };
    for (; *known; known++)
        tn_nearest_offer(&nearest, *known);
    return nearest.found;
}

static void slips_of_the_finger_are_found(void)
{
    static const char *const known[] = { "ls", "show", "stats", "convert", "compare-types", "verify", NULL };
    static const struct { const char *word, *meant; } slips[] = {
        { "lss", "ls" },         { "sohw", "show" },      { "stat", "stats" },     { "STATS", "stats" },
        { "convret", "convert" }, { "onvert", "convert" }, { "conveert", "convert" }, { "verfiy", "verify" },
        { "compare_typs", "compare-types" }, { "types", "compare-types" },
    };
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++)
        assert_string_equal(nearest_of(slips[i].word, known), slips[i].meant);
}

static void what_is_far_from_all_is_not_guessed(void)
{
    static const char *const known[] = { "ls", "show", "stats", "convert", NULL };
    static const char *const words[] = { "", "x", "zz", "nonsense", "whatever", "lists everything", NULL };
    for (const char *const *word = words; *word; word++)
        assert_null(nearest_of(*word, known));
}

static void the_nearer_word_wins_and_of_two_the_first(void)
{
    static const char *const known[] = { "weight.long", "mxfp8", "mxfp6", "mxfp4", "mxfp4e2", NULL };
    assert_string_equal(nearest_of("mxfp5", known), "mxfp8");
    assert_string_equal(nearest_of("mxpf4", known), "mxfp4");
    assert_string_equal(nearest_of("weight", known), "weight.long");
}

static void long_words_and_nothing_are_taken(void)
{
    char *word = malloc(300), *same = malloc(300);
    assert_true(word && same);
    for (size_t n = 250; n < 300; n++) {
        memset(word, 'a', n);
        memset(same, 'a', n);
        word[n - 1] = 'b';
        word[n] = same[n] = '\0';
        const char *const known[] = { same, NULL };
        CHECK((nearest_of(word, known) != NULL) == (n <= 255));
    }
    free(word);
    free(same);
    tn_nearest nearest = { .word = "abc" };
    tn_nearest_offer(&nearest, NULL);
    tn_nearest_offer(NULL, "abc");
    CHECK(!nearest.found);
}

static void an_error_says_what_was_meant_unless_it_is_the_same(void)
{
    tn_error err = { .status = TN_ERR_ARGUMENT, .text = "no \"lss\"" };
    CHECK(tn_and_nearest(TN_ERR_ARGUMENT, &(tn_nearest){ .word = "lss" }, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(err.text, "no \"lss\"");
    const tn_nearest same = { .word = "lss", .found = "lss" }, near = { "lss", "ls", 1 };
    tn_and_nearest(TN_ERR_ARGUMENT, &same, &err);
    assert_string_equal(err.text, "no \"lss\"");
    tn_and_nearest(TN_ERR_ARGUMENT, &near, &err);
    assert_string_equal(err.text, "no \"lss\": did you mean \"ls\"?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(slips_of_the_finger_are_found),
        TEST(what_is_far_from_all_is_not_guessed),
        TEST(the_nearer_word_wins_and_of_two_the_first),
        TEST(long_words_and_nothing_are_taken),
        TEST(an_error_says_what_was_meant_unless_it_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
