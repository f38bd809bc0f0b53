/* Reports: roles of names, numbers and names as text, and what is marked. */
#include "support.h"

#include <math.h>

#include "files.h"
#include "make.h"
#include "report/report.h"

static void names_are_cut_at_their_numbers(void)
{
    static const struct { const char *name, *role; int64_t layer; } cases[] = {
        { "model.layers.3.mlp.up_proj.weight", "model.layers.*.mlp.up_proj.weight", 3 },
        { "model.layers.12.mlp.experts.7.up_proj.weight", "model.layers.*.mlp.experts.*.up_proj.weight", 12 },
        { "blk.0.attn_q.weight", "blk.*.attn_q.weight", 0 },
        { "bert/encoder/layer_11/attention/w", "bert/encoder/layer_*/attention/w", 11 },
        { "layers.2.w_1", "layers.*.w_1", 2 },
        { "conv1.weight", "conv1.weight", -1 },
        { "layers.3.conv2.weight", "layers.*.conv2.weight", 3 },
        { "7", "*", 7 },
        { "a.1234567890.b", "a.1234567890.b", -1 },
        { "", "", -1 },
        { "layers.03", "layers.*", 3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char role[100];
        CHECK(tn_role_of(cases[i].name, role) == cases[i].layer);
        assert_string_equal(role, cases[i].role);
    }
}

static void numbers_have_few_digits_and_no_locale(void)
{
    static const struct { double x; int digits; const char *text; } cases[] = {
        { 0, 5, "0" }, { -0.5, 5, "-0.5" }, { 123456, 5, "123460" }, { 1.23456e-7, 5, "1.2346e-7" },
        { 0.00012345678, 5, "0.00012346" }, { 1e300, 5, "1e300" }, { 99999.9, 5, "100000" }, { 3, 5, "3" },
        { 12.25, 3, "12.2" }, { 1.5e15, 5, "1.5e15" }, { 120, 5, "120" }, { (double)NAN, 5, "\"NaN\"" },
        { -(double)INFINITY, 5, "\"-Infinity\"" }, { (double)INFINITY, 2, "\"Infinity\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf b = { 0 };
        tn_put_number(&b, cases[i].x, cases[i].digits);
        tn_buf_putc(&b, '\0');
        assert_string_equal((const char *)b.data, cases[i].text);
        tn_buf_free(&b);
    }
}

static void sizes_and_counts_are_for_people(void)
{
    static const struct { uint64_t n; const char *grouped, *size; } cases[] = {
        { 0, "0", "0 B" }, { 1023, "1,023", "1023 B" }, { 1024, "1,024", "1 KiB" }, { 9626, "9,626", "9.4 KiB" },
        { 104857600, "104,857,600", "100 MiB" }, { UINT64_MAX, "18,446,744,073,709,551,615", "16 EiB" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf b = { 0 };
        tn_put_grouped(&b, cases[i].n);
        tn_buf_putc(&b, ' ');
        tn_put_size(&b, cases[i].n);
        tn_buf_putc(&b, '\0');
        char expected[80];
        snprintf(expected, sizeof expected, "%s %s", cases[i].grouped, cases[i].size);
        assert_string_equal((const char *)b.data, expected);
        tn_buf_free(&b);
    }
}

static void base64_pads_its_end(void)
{
    static const char *const expected[] = { "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
    for (size_t n = 0; n <= 6; n++) {
        tn_buf b = { 0 };
        tn_put_base64(&b, (const uint8_t *)"foobar", n);
        tn_buf_putc(&b, '\0');
        assert_string_equal((const char *)b.data, expected[n]);
        tn_buf_free(&b);
    }
}

static void names_are_inert_as_json_and_as_html(void)
{
    static const struct { const char *name, *json, *html; } cases[] = {
        { "a.b", "\"a.b\"", "a.b" },
        { "</script><img onerror=x>", "\"\\u003c/script\\u003e\\u003cimg onerror=x\\u003e\"",
          "&lt;/script&gt;&lt;img onerror=x&gt;" },
        { "\"onmouseover='x'&", "\"\\u0022onmouseover='x'\\u0026\"", "\\&quot;onmouseover=&#39;x&#39;&amp;" },
        { "a\n\x1b[31m", "\"a\\u000a\\u001b[31m\"", "a\\n\\x1b[31m" },
        { "\xe2\x80\xae" "abc", "\"\\u202eabc\"", "\\u{202e}abc" },
        { "\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"", "\\u{e0041}" },
        { "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"", "gr\xc3\xbc\xc3\x9f" },
        { "\xff", "\"\\ufffd\"", "\\xff" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf json = { 0 }, html = { 0 };
        CHECK(tn_put_json_text(&json, cases[i].name, 1000));
        tn_put_html(&html, cases[i].name);
        tn_buf_putc(&json, '\0');
        tn_buf_putc(&html, '\0');
        assert_string_equal((const char *)json.data, cases[i].json);
        assert_string_equal((const char *)html.data, cases[i].html);
        tn_buf_free(&json);
        tn_buf_free(&html);
    }
}

static void a_long_name_is_cut_between_characters(void)
{
    tn_buf b = { 0 };
    CHECK(!tn_put_json_text(&b, "ab\xc3\xbc\xc3\xbc", 5));
    tn_buf_putc(&b, '\0');
    assert_string_equal((const char *)b.data, "\"ab\xc3\xbc\xe2\x80\xa6\"");
    tn_buf_free(&b);
}

static void the_median_of_an_even_number_lies_between(void)
{
    double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };
    CHECK(tn_median(odd, 3) == 2);
    CHECK(tn_median(even, 4) == 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_cut_at_their_numbers),
        TEST(numbers_have_few_digits_and_no_locale),
        TEST(sizes_and_counts_are_for_people),
        TEST(base64_pads_its_end),
        TEST(names_are_inert_as_json_and_as_html),
        TEST(a_long_name_is_cut_between_characters),
        TEST(the_median_of_an_even_number_lies_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
