/* Rotations as text. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>

#include <tenon/datatype.h>

static bool same(const tn_rotation *a, const tn_rotation *b)
{
    return a->size == b->size && a->walsh == b->walsh && a->random == b->random && a->seed == b->seed;
}

/* Parses an exact copy, so that what lies behind the text cannot help. */
static tn_status parse(const char *text, tn_rotation *rotation, tn_error *err)
{
    char *copy = (char *)exact_copy(text, strlen(text) + 1);
    tn_status status = tn_rotation_parse(copy, rotation, err);
    free(copy);
    return status;
}

static void every_rotation_reads_back_as_it_was_written(void)
{
    static const uint64_t seeds[] = { 0, 1, 7, UINT64_C(18446744073709551615) };
    for (uint32_t size = 4; size <= 128; size *= 2) {
        for (unsigned k = 0; k < 2 * 5; k++) {
            tn_rotation r = { .size = size, .walsh = k % 2, .random = k >= 2,
                              .seed = k >= 2 ? seeds[k / 2 - 1] : 0 }, again;
            char text[64];
            tn_error err = { .text = "" };
            int n = tn_rotation_format(text, sizeof text, &r);
            CHECK(n == (int)strlen(text));
            if (parse(text, &again, &err))
                fail_msg("%s: %s", text, line_of(&err));
            CHECK(same(&r, &again));
        }
    }
}

static void texts_are_those_of_the_documentation(void)
{
    static const struct { const char *text; tn_rotation r; const char *canonical; } cases[] = {
        { "none", { .size = 0 }, "none" },
        { "hadamard32", { .size = 32 }, "hadamard32" },
        { "walsh4", { .size = 4, .walsh = true }, "walsh4" },
        { "Hadamard128:42", { .size = 128, .random = true, .seed = 42 }, "hadamard128:42" },
        { "WALSH16:007", { .size = 16, .walsh = true, .random = true, .seed = 7 }, "walsh16:7" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_rotation r;
        char text[64], cut[6];
        CHECK(parse(cases[i].text, &r, NULL) == TN_OK && same(&r, &cases[i].r));
        int n = tn_rotation_format(text, sizeof text, &r);
        assert_string_equal(text, cases[i].canonical);
        CHECK(tn_rotation_format(cut, sizeof cut, &r) == n && strncmp(cut, text, sizeof cut - 1) == 0);
    }
}

static void what_is_wrong_is_said_with_its_place(void)
{
    static const struct { const char *text, *message; } bad[] = {
        { "",
          "\"\": expected hadamardN, walshN, either with :SEED, or none but found the end at character 1" },
        { "hadam", "\"hadam\": expected hadamardN, walshN, either with :SEED, or none but found \"hadam\" at "
                   "character 1" },
        { "hadamard",
          "\"hadamard\": expected a size of 4, 8, 16, 32, 64 or 128 but found the end at character 9" },
        { "hadamard3",
          "\"hadamard3\": expected a size of 4, 8, 16, 32, 64 or 128 but found \"3\" at character 9" },
        { "hadamard2",
          "\"hadamard2\": expected a size of 4, 8, 16, 32, 64 or 128 but found \"2\" at character 9" },
        { "hadamard032",
          "\"hadamard032\": expected a size of 4, 8, 16, 32, 64 or 128 but found \"032\" at character 9" },
        { "walsh256",
          "\"walsh256\": expected a size of 4, 8, 16, 32, 64 or 128 but found \"256\" at character 6" },
        { "walsh4294967300", "\"walsh4294967300\": expected a size of 4, 8, 16, 32, 64 or 128 but found "
                             "\"4294967300\" at character 6" },
        { "hadamard32:",
          "\"hadamard32:\": expected a seed of 0 to 18446744073709551615 but found the end at character 12" },
        { "hadamard32:-1", "\"hadamard32:-1\": expected a seed of 0 to 18446744073709551615 but found \"-1\" "
                           "at character 12" },
        { "walsh8:12x",
          "\"walsh8:12x\": expected a seed of 0 to 18446744073709551615 but found \"12x\" at character 8" },
        { "walsh8:18446744073709551616",
          "\"walsh8:18446744073709551616\": expected a seed of 0 to 18446744073709551615 but found "
          "\"18446744073709551616\" at character 8" },
        { "walsh8:184467440737095516150",
          "\"walsh8:184467440737095516150\": expected a seed of 0 to 18446744073709551615 but found "
          "\"184467440737095516150\" at character 8" },
        { "walsh8 ", "\"walsh8 \": expected nothing or :SEED after the size but found \" \" at character 7" },
        { "none:1", "\"none:1\": expected nothing after none but found \":1\" at character 5" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tn_rotation r = { .size = 99 };
        tn_error err = { .text = "" };
        CHECK(parse(bad[i].text, &r, &err) == TN_ERR_ARGUMENT && err.status == TN_ERR_ARGUMENT &&
              r.size == 99);
        assert_string_equal(said_of(&err), bad[i].message);
        CHECK(parse(bad[i].text, &r, NULL) == TN_ERR_ARGUMENT);
    }
}

/* Cut short or with any byte in any place: refused with a reason, or something that reads back. */
static void damaged_texts_are_refused_or_mean_something(void)
{
    static const char whole[] = "hadamard128:18446744073709551615";
    for (size_t i = 0; i < sizeof whole; i++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[sizeof whole], canonical[64];
            memcpy(text, whole, sizeof whole);
            text[i] = (char)byte;
            text[sizeof whole - 1] = '\0';
            tn_rotation r = { .size = 99 }, again;
            tn_error err = { .text = "" };
            if (parse(text, &r, &err)) {
                CHECK(err.status == TN_ERR_ARGUMENT && err.text[0] && r.size == 99);
                continue;
            }
            tn_rotation_format(canonical, sizeof canonical, &r);
            CHECK(parse(canonical, &again, NULL) == TN_OK && same(&r, &again));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_rotation_reads_back_as_it_was_written),
        TEST(texts_are_those_of_the_documentation),
        TEST(what_is_wrong_is_said_with_its_place),
        TEST(damaged_texts_are_refused_or_mean_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
