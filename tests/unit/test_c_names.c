/* Names of tensors as identifiers, comments and texts of C; scales as integers. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "firmware/c_names.h"
#include "firmware/c_tensor.h"

static void words_are_letters_and_digits_with_single_underscores(void)
{
    static const struct { const char *name, *words; } rows[] = {
        { "conv1.weight", "conv1_weight" }, { "__a__", "a" }, { "1", "1" }, { "", "" }, { "*/", "" },
        { "a\xc3\xa9" "b", "a_b" },
        { "a..b--c", "a_b_c" }, { "A_b", "A_b" }, { "x ", "x" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[20];
        tn_c_words(rows[i].name, words, sizeof words);
        assert_string_equal(words, rows[i].words);
    }
    char cut[4];
    tn_c_words("ab.cd", cut, sizeof cut);       /* an underscore alone would end it */
    assert_string_equal(cut, "ab");
    tn_c_words("abcd", cut, sizeof cut);
    assert_string_equal(cut, "abc");
}

static void prefixes_are_made_of_paths(void)
{
    static const struct { const char *path, *prefix; } rows[] = {
        { "a/b/model.safetensors", "model" }, { "net.int8.zt", "net_int8" }, { "3d.npy", "model_3d" },
        { "", "model" }, { "/x/.hidden", "hidden" },
        { "model.safetensors.index.json", "model" }, { "dir.d/noext", "noext" }, { "...", "model" },
        { "a_very_long_name_that_goes_on_and_on_until_it_is_longer_than_63.zt",
          "a_very_long_name_that_goes_on_and_on_until_it_is_longer_than_63" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char prefix[TN_EXPORT_MAX_NAME + 1];
        tn_c_prefix(rows[i].path, prefix);
        assert_string_equal(prefix, rows[i].prefix);
        CHECK(tn_c_is_prefix(prefix));
    }
    static const char *const bad[] = { "", "1a", "_a", "a_", "a__b", "a-b", "a b", "\xc3\xa9", "a\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!tn_c_is_prefix(bad[i]));
}

/* A name of up to 40 bytes out of what C knows best. */
static void random_name(char to[44], uint64_t seed)
{
    static const char pool[] = "*/?\\\"'\n\r\t(=!<>-#%$@_ab01 \x7f\x01\xc3\xa9\xff";
    size_t n = tn_random_at(seed, 0) % 40;
    for (size_t i = 0; i < n; i++)
        to[i] = pool[tn_random_at(seed, i + 1) % (sizeof pool - 1)];
    to[n] = '\0';
}

static void comments_do_not_end_early(void)
{
    for (uint64_t seed = 0; seed < 20000; seed++) {
        char name[44];
        tn_buf b = { 0 };
        random_name(name, seed);
        tn_c_put_comment(&b, name);
        tn_buf_putc(&b, '\0');
        const char *text = (const char *)b.data;
        CHECK(!b.bad && b.size > 2 && !strstr(text, "*/") && !strstr(text, "/*") && !strstr(text, "?" "?") && !strpbrk(text, "\n\r\t\x7f\x01"));
        tn_buf_free(&b);
    }
}

/* What a compiler makes of literals: bytes, octal escapes, pieces joined. */
static size_t read_literal(const char *text, char *to)
{
    size_t n = 0;
    bool inside = false;
    for (; *text; text++) {
        if (*text == '"') {
            inside = !inside;
        } else if (!inside) {
            CHECK(*text == '\n' || *text == ' ');
        } else if (*text == '\\') {
            CHECK(strspn(text + 1, "01234567") >= 3);
            to[n++] = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
            text += 3;
        } else {
            CHECK(*text >= ' ' && *text < 0x7f && *text != '?');
            to[n++] = *text;
        }
    }
    CHECK(!inside);
    return n;
}

static void literals_are_the_same_bytes(void)
{
    for (uint64_t seed = 0; seed < 20000; seed++) {
        char name[200], found[200];
        tn_buf b = { 0 };
        random_name(name, seed);
        if (seed % 7 == 0) {                    /* longer than a line */
            memset(name + strlen(name), 0, sizeof name - strlen(name));
            for (int i = 1; i < 4; i++)
                random_name(name + strlen(name), seed + (uint64_t)i * 100000);
        }
        tn_c_put_literal(&b, name, "\n      ");
        tn_buf_putc(&b, '\0');
        size_t n = read_literal((const char *)b.data, found);
        CHECK(n == strlen(name) && memcmp(found, name, n) == 0);
        for (const char *line = (const char *)b.data; line; line = strchr(line, '\n'))
            CHECK(strcspn(++line, "\n") < 100);
        tn_buf_free(&b);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of few letters collide all the time. */
static void identifiers_are_all_different(void)
{
    enum { N = 3000 };
    static char names[N][44];
    static const char *pointers[N], *ids[N];
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    size_t n = 0;
    for (uint64_t seed = 0; n < N; seed++) {
        snprintf(names[n], sizeof names[n], "%c%c%c%llu", "a.b"[seed % 3], "._2"[seed / 3 % 3],
                 "a-_"[seed / 9 % 3], (unsigned long long)(seed / 27));
        pointers[n] = names[n];
        n++;
    }
    CHECK(tn_c_identifiers(pointers, N, &arena, ids, &err) == TN_OK);
    for (size_t i = 0; i < N; i++) {
        char words[44];
        tn_c_words(ids[i], words, sizeof words);
        CHECK(words[0] && strcmp(words, ids[i]) == 0);
        tn_c_words(names[i], words, sizeof words);
        CHECK(strncmp(ids[i], words, strlen(words)) == 0 &&
              (strcmp(words, names[i]) != 0 || strcmp(ids[i], names[i]) == 0));
    }
    qsort(ids, N, sizeof *ids, compare_texts);
    for (size_t i = 1; i < N; i++)
        CHECK(strcmp(ids[i - 1], ids[i]) != 0);
    tn_arena_free(&arena);
}

/* Hundred thousand names of one kind of words are no matter of minutes. */
static void many_equal_words_are_numbered_quickly(void)
{
    enum { N = 100000 };
    const char **names = calloc(N, sizeof *names), **ids = calloc(N, sizeof *ids);
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    assert_non_null(names);
    assert_non_null(ids);
    for (size_t i = 0; i < N; i++)
        names[i] = i % 2 ? "a." : ".a";
    CHECK(tn_c_identifiers(names, N, &arena, ids, &err) == TN_OK);
    assert_string_equal(ids[0], "a");
    assert_string_equal(ids[N - 1], "a_100000");
    tn_arena_free(&arena);
    free(names);
    free(ids);
}

static void scales_are_integers_or_refused(void)
{
    unsigned taken = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)tn_random_at(5, i) & 0x7fffffff;
        if (i % 2)
            bits &= 0xffffff00;                 /* a mantissa of 16 bits: half of them of 15 */
        float scale;
        memcpy(&scale, &bits, sizeof scale);
        if (!isfinite(scale) || scale <= 0)
            continue;
        for (tn_mli_version mli = TN_FOR_MLI_1_1; mli <= TN_FOR_MLI_2_0; mli++) {
            int32_t frac = tn_c_scale_frac(mli, scale), integer = 0,
                    most = mli == TN_FOR_MLI_2_0 ? INT16_MAX : INT32_MAX;
            bool fits = tn_c_scale_integer(mli, scale, frac, &integer);
            double exact = ldexp((double)scale, frac);
            CHECK(frac >= -128 && frac <= 127 && fits == (exact == rint(exact) && exact >= 1));
            if (fits) {
                CHECK(integer > 0 && integer <= most && ldexp(integer, -frac) == (double)scale);
                CHECK(frac == 127 || integer > most / 2);
                taken++;
            }
        }
    }
    CHECK(taken > 100000);
}

static void powers_of_two_have_frac_bits(void)
{
    for (int n = -127; n <= 149; n++) {
        int32_t frac = 0;
        CHECK(tn_c_frac_bits(ldexpf(1, -n), &frac) && frac == n);
        CHECK(n > 148 || !tn_c_frac_bits(ldexpf(1.5f, -n), &frac));
    }
    int32_t frac;
    CHECK(!tn_c_frac_bits(0, &frac) && !tn_c_frac_bits(-0.5f, &frac) && !tn_c_frac_bits(INFINITY, &frac) &&
          !tn_c_frac_bits(NAN, &frac));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(words_are_letters_and_digits_with_single_underscores),
        TEST(prefixes_are_made_of_paths),
        TEST(comments_do_not_end_early),
        TEST(literals_are_the_same_bytes),
        TEST(identifiers_are_all_different),
        TEST(many_equal_words_are_numbered_quickly),
        TEST(scales_are_integers_or_refused),
        TEST(powers_of_two_have_frac_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
