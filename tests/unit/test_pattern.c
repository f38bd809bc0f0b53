#include "support.h"

#include "pipeline/pattern.h"

static tn_text text_of(const char *text) { return (tn_text){ text, strlen(text) }; }

static bool matches(const char *pattern, const char *name)
{
    tn_pattern p;
    tn_error err;
    CHECK(tn_pattern_read(text_of(pattern), &p, &err) == TN_OK);
    bool found = tn_pattern_matches(&p, name);
    tn_pattern_free(&p);
    return found;
}

static void globs_match_whole_names_and_expressions_a_part(void)
{
    CHECK(matches("a.*", "a.weight") && !matches("a.*", "xa.weight") && matches("a.w?ight", "a.weight"));
    CHECK(matches("re:a", "xay") && !matches("re:^a", "xa") && matches("re:^h\\.[0-9]{1,2}\\.w$", "h.12.w"));
    CHECK(!matches("re:^h\\.[0-9]{1,2}\\.w$", "h.123.w") && matches("re:(q|k)_proj", "l.0.k_proj.weight"));
    CHECK(matches("re:", "anything"));
}

/* Those would take glibc exponential time or gigabytes. */
static void costly_expressions_are_refused(void)
{
    static const char *const costly[] = { "re:(a*)\\1", "re:((a{99}){99}){99}", "re:(a{1,1001})", "re:a{2,}{501}",
                                          "re:a{99999999999999999999}" };
    char longest[300] = "re:";
    tn_error err;
    tn_pattern p;
    for (size_t i = 0; i < sizeof costly / sizeof *costly; i++)
        CHECK(tn_pattern_read(text_of(costly[i]), &p, &err) == TN_ERR_ARGUMENT && *err.text);
    memset(longest + 3, 'a', 255);
    CHECK(tn_pattern_read(text_of(longest), &p, &err) == TN_OK);
    tn_pattern_free(&p);
    longest[258] = 'a';
    CHECK(tn_pattern_read(text_of(longest), &p, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_pattern_read(text_of("re:(a"), &p, &err) == TN_ERR_ARGUMENT && strstr(err.text, "\"(a\""));
    CHECK(tn_pattern_read(text_of("re:a{10}{100}"), &p, NULL) == TN_OK);
    tn_pattern_free(&p);
}

static void an_expression_is_for_names_of_1024_bytes(void)
{
    char *name = malloc(1026);
    bool chosen;
    tn_error err;
    assert_non_null(name);
    memset(name, 'a', 1025);
    name[1024] = name[1025] = '\0';
    CHECK(tn_choose((const char *const[]){ name }, 1, (const char *const[]){ "re:a$" }, 1, &chosen, &err) == TN_OK);
    CHECK(chosen);
    name[1024] = 'a';
    CHECK(tn_choose((const char *const[]){ name }, 1, (const char *const[]){ "re:a$" }, 1, &chosen, &err) ==
          TN_ERR_LIMIT);
    CHECK(strstr(err.text, "1025"));
    CHECK(tn_choose((const char *const[]){ name }, 1, (const char *const[]){ "a*" }, 1, &chosen, &err) == TN_OK);
    free(name);
}

/* Which of a.w, a.b, c.w are chosen: "101" is the first and the last. */
static void check_chosen(const char *const *patterns, size_t n, const char *expected)
{
    static const char *const names[] = { "a.w", "a.b", "c.w" };
    bool chosen[3];
    tn_error err;
    CHECK(tn_choose(names, 3, patterns, n, chosen, &err) == TN_OK);
    for (int i = 0; i < 3; i++)
        CHECK(chosen[i] == (expected[i] == '1'));
}

static void patterns_add_and_exclude(void)
{
    check_chosen(NULL, 0, "111");
    check_chosen((const char *const[]){ "a.*" }, 1, "110");
    check_chosen((const char *const[]){ "!a.*" }, 1, "001");
    check_chosen((const char *const[]){ "!a.b", "*.w", "re:b" }, 3, "101");
    check_chosen((const char *const[]){ "*.w", "!re:^c" }, 2, "100");
    check_chosen((const char *const[]){ "!*" }, 1, "000");
}

static void a_pattern_must_match_something(void)
{
    static const char *const names[] = { "a.weight", "a.bias" };
    bool chosen[2];
    tn_error err;
    CHECK(tn_choose(names, 2, (const char *const[]){ "a.wieght" }, 1, chosen, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(err.text, "no tensor matches \"a.wieght\": did you mean \"a.weight\"?");
    CHECK(tn_choose(names, 2, (const char *const[]){ "!b.*" }, 1, chosen, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(err.text, "no tensor matches \"b.*\"");
    CHECK(tn_choose(NULL, 1, NULL, 0, chosen, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_choose(names, 2, NULL, 1, chosen, &err) == TN_ERR_ARGUMENT);
}

static void check_renamed(const char *rule, const char *old, const char *expected)
{
    tn_arena arena = { 0 };
    tn_renames r;
    const char *new;
    tn_error err;
    CHECK(tn_renames_begin(&r, &rule, 1, &err) == TN_OK);
    CHECK(tn_renames_apply(&r, old, &arena, &new, &err) == TN_OK);
    assert_string_equal(new, expected);
    CHECK(r.used[0] == (new != old));
    tn_renames_end(&r);
    tn_arena_free(&arena);
}

static void names_are_replaced_by_stars_and_groups(void)
{
    check_renamed("a=b", "a", "b");
    check_renamed("a=b", "ab", "ab");
    check_renamed("model.*=*", "model.x.y", "x.y");
    check_renamed("*.w=m.*.weight", "a.w", "m.a.weight");
    check_renamed("re:^model\\.=", "model.x", "x");
    check_renamed("re:([0-9]+)\\.(q|k)=\\2.\\1", "h.12.q.w", "h.q.12.w");
    check_renamed("re:b(x)?=<\\0\\1>", "abc", "a<b>c");
    check_renamed("re:q=r", "abc", "abc");
}

static void renames_that_make_no_sense_are_refused(void)
{
    static const char *const wrong[] = { "a", "a*b*=c", "a=*", "re:(a=b", "re:(a)=\\2", "re:a=\\x", "re:a=\\" };
    tn_error err;
    tn_renames r;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(tn_renames_begin(&r, &wrong[i], 1, &err) == TN_ERR_ARGUMENT);
        tn_renames_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(globs_match_whole_names_and_expressions_a_part),
        TEST(costly_expressions_are_refused),
        TEST(an_expression_is_for_names_of_1024_bytes),
        TEST(patterns_add_and_exclude),
        TEST(a_pattern_must_match_something),
        TEST(names_are_replaced_by_stars_and_groups),
        TEST(renames_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
