#include "support.h"
#include "base/cpu.h"

static unsigned detect_with(const char *word)
{
    if (word)
        setenv("TENON_CPU", word, 1);
    else
        unsetenv("TENON_CPU");
    return tn_cpu_detect();
}

static void a_level_is_an_upper_bound(void)
{
    unsigned all = detect_with(NULL);
    CHECK(detect_with("scalar") == 0);
    CHECK(detect_with("avx2") == (all & TN_CPU_AVX2));
    CHECK(detect_with("avx512") == (all & (TN_CPU_AVX2 | TN_CPU_AVX512 | TN_CPU_VBMI)));
    CHECK(detect_with("neon") == (all & TN_CPU_NEON));
    unsetenv("TENON_CPU");
}

static void an_unknown_word_is_the_same_as_none(void)
{
    unsigned all = detect_with(NULL);
    CHECK(detect_with("") == all && detect_with("AVX2") == all && detect_with("avx2 ") == all);
    unsetenv("TENON_CPU");
}

static void avx512_comes_with_avx2(void)
{
    unsigned all = detect_with(NULL);
    CHECK(!(all & TN_CPU_AVX512) || all & TN_CPU_AVX2);
    CHECK(!(all & TN_CPU_VBMI) || all & TN_CPU_AVX512);
}

static void the_name_is_that_of_the_highest_level(void)
{
    assert_string_equal(tn_cpu_name(0), "scalar");
    assert_string_equal(tn_cpu_name(TN_CPU_AVX2), "avx2");
    assert_string_equal(tn_cpu_name(TN_CPU_AVX2 | TN_CPU_AVX512), "avx512");
    assert_string_equal(tn_cpu_name(TN_CPU_NEON), "neon");
}

static void a_family_is_told_only_if_nothing_is_asked_for(void)
{
    static const char *const words[] = { "scalar", "avx2", "avx512", "neon" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(!(detect_with(words[i]) & TN_CPU_FAMILIES));
    CHECK(!(detect_with(NULL) & TN_CPU_FAMILIES) || detect_with(NULL) & TN_CPU_AVX2);
    assert_string_equal(tn_cpu_name(TN_CPU_FAMILIES | TN_CPU_AVX2), "avx2");
    unsetenv("TENON_CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_level_is_an_upper_bound),
        TEST(an_unknown_word_is_the_same_as_none),
        TEST(avx512_comes_with_avx2),
        TEST(the_name_is_that_of_the_highest_level),
        TEST(a_family_is_told_only_if_nothing_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
