/* Codebooks: the mappings that a name stands for, and tables of the caller's own. */
#include "support.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/vector.h"
#include "make.h"
#include "quant/grammar/datatype.h"

static tn_datatype *parse(const char *number)
{
    char text[160];
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    snprintf(text, sizeof text, "%s|e8m0_t32", number);
    if (tn_datatype_parse(text, &d, &err))
        fail_msg("%s: %s", text, line_of(&err));
    CHECK(d->number.kind == TN_NUMBER_CODEBOOK && d->number.bits == d->codebook.index_bits &&
          d->number.dtype == TN_UNKNOWN);
    CHECK(d->codebook.values == 1u << (d->codebook.index_bits - 1) &&
          d->codebook.mappings == 1u << d->codebook.meta_bits);
    return d;
}

/* The positive values of a mapping: "0.5 1 1.5". */
static void check_mapping(const tn_datatype *d, uint32_t mapping, const char *values)
{
    const tn_codebook *b = &d->codebook;
    CHECK(mapping < b->mappings);
    const float *v = b->value + (size_t)mapping * b->values;
    CHECK(v[0] == 0);
    const char *p = values;
    for (uint32_t k = 1; k < b->values; k++) {
        char *end;
        double expected = strtod(p, &end);
        if (end == p || (double)v[k] != expected)
            fail_msg("%s, mapping %u, value %u: expected %.9g but found %.9g (%s)", d->text, mapping, k,
                     expected, (double)v[k], values);
        p = end;
    }
    CHECK(strspn(p, " \n") == strlen(p));
}

/* ---- names ---- */

static void names_give_tensorcasts_mappings(void)
{
    FILE *file = fopen(TEST_GOLDEN "/tensorcast/codebooks.tsv", "r");
    char line[600], name[80];
    unsigned mapping, mappings = 0, books = 0;
    int values;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        CHECK(sscanf(line, "%79s %u %n", name, &mapping, &values) == 2);
        tn_datatype *d = parse(name);
        check_mapping(d, mapping, line + values);
        mappings++;
        books += mapping == d->codebook.mappings - 1;
        tn_datatype_free(d);
    }
    fclose(file);
    assert_int_equal(books, 11);
    assert_int_equal(mappings, 3 * 16 + 2 + 4 + 4 + 2 + 2 + 4 + 4 + 2);
}

static void patterns_are_those_of_the_documentation(void)
{
    static const struct { const char *name; const char *mappings[4];
    } books[] = {
        { "cb41fi_e2m2fnuz", { "0.5 1 1.5 2 3 4 6", "1 2 3 4 5 6 7" } },
        { "cb41f01_e2m2fnuz", { "0.75 1.25 1.75 2.5 3.5 5 7", "0.5 1 1.5 2 3 4 6" } },
        { "cb42fe0123_e3m2fnuz",
          { "2 4 6 8 12 16 24", "1 2 3 4 6 8 12", "0.5 1 1.5 2 3 4 6", "0.25 0.5 0.75 1 1.5 2 3" } },
        { "cb42f1346_e2m3fnuz",
          { "0.75 1.25 1.75 2.5 3.5 5 7", "0.5 1 1.5 2 3 4 6", "0.375 0.875 1.375 1.875 2.75 3.75 5.5",
            "0.125 0.625 1.125 1.625 2.25 3.25 4.5" } },
        { "cb51ie_int7",
          { "0.125 0.25 0.375 0.5 0.625 0.75 0.875 1 1.125 1.25 1.375 1.5 1.625 1.75 1.875",
            "0.0625 0.125 0.1875 0.25 0.3125 0.375 0.4375 0.5 0.5625 0.625 0.6875 0.75 0.8125 0.875 "
            "0.9375" } },
        { "cb31ie_int5", { "0.5 1 1.5", "0.25 0.5 0.75" } },
        { "cb31fi_e3m2fnuz", { "4 8 16", "8 16 24" } },
        /* e2m2: 7 6 5 4 3.5 3 2.5 2 1.75 1.5 1.25 1 0.75 0.5 0.25 */
        { "cb31p1p2_e2m2fnuz", { "4 6 7", "3 5 7" } },
        { "cb31p103_e2m2fnuz", { "4 6 7", "2.5 3.5 4" } },
        { "cb41ss2_e2m2fnuz", { "2.5 3 3.5 4 5 6 7", "0.75 1.25 1.75 2.5 3.5 5 7" } },
        { "cb21i01_e2m1fnuz", { "6", "4" } },
        /* The top of e4m3fn is 448, that of e3m4b4inuz 15. */
        { "cb31s1s2_e4m3fn", { "384 416 448", "320 384 448" } },
        { "cb31s1s2_e3m4b4inuz", { "14 14.5 15", "13 14 15" } },
    };
    for (size_t i = 0; i < sizeof books / sizeof books[0]; i++) {
        tn_datatype *d = parse(books[i].name);
        for (uint32_t k = 0; k < d->codebook.mappings; k++)
            check_mapping(d, k, books[i].mappings[k]);
        tn_datatype_free(d);
    }
}

static void implicit_patterns_move_down_and_end_at_zero(void)
{
    tn_datatype *d = parse("icb42s01_e2m2fnuz");        /* steps of 1, from the second on; 4 shifts are no fewer than 2^2: by 1 */
    check_mapping(d, 0, "2 2.5 3 3.5 4 5 6");
    check_mapping(d, 1, "1.75 2 2.5 3 3.5 4 5");
    check_mapping(d, 3, "1.25 1.5 1.75 2 2.5 3 3.5");
    tn_datatype_free(d);
    d = parse("icb42s01_e2m3fnuz");                     /* fewer than 2^3: by 2 */
    check_mapping(d, 0, "4 4.5 5 5.5 6 6.5 7");
    check_mapping(d, 1, "3.5 3.75 4 4.5 5 5.5 6");
    tn_datatype_free(d);
    d = parse("icb41f_e2m3fnuz");                       /* two mappings: by 1 */
    check_mapping(d, 0, "0.875 1.375 1.875 2.75 3.75 5.5 7.5");
    check_mapping(d, 1, "0.75 1.25 1.75 2.5 3.5 5 7");
    tn_datatype_free(d);
    d = parse("icb41s2s3_e2m2fnuz");                    /* steps of 3 and 4; the last ones fall below zero */
    check_mapping(d, 0, "0 0 0.75 1.5 2.5 4 7");
    check_mapping(d, 1, "0 0 0 0.75 1.75 3.5 7");
    tn_datatype_free(d);
}

static void spellings_of_a_codebook_are_one(void)
{
    static const char *const same[][2] = {
        { "ICB44FI_E4M3FN", "icb44fi_e4m3fn" },         { "icb44f0i0_e4m3fn", "icb44fi_e4m3fn" },
        { "icb42p0p1p2s0_e2m3fnuz", "icb42pp1p2s_e2m3fnuz" },
        { "icb41p00s01_e2m3fnuz", "icb41ps01_e2m3fnuz" },
        { "cb51ie01_e2m3fnuz", "cb51ie_e2m3fnuz" },     { "CB41FI_float8_e4m3fn", "cb41fi_e4m3fn" },
        { "cb41ps_e2m3fnuz", "cb41p1s1_e2m3fnuz" },     { "cb41p10s10_e2m3fnuz", "cb41p1s1_e2m3fnuz" },
        { "cb42f1346_e2m3b1fnuz", "cb42f1346_e2m3fnuz" },
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        tn_datatype *d = parse(same[i][0]);
        assert_string_equal(d->number.text, same[i][1]);
        tn_datatype_free(d);
    }
}

static void refused(const char *text, tn_status status, const char *why)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    CHECK(tn_datatype_parse(text, &d, &err) == status && d == NULL);
    assert_string_equal(said_of(&err), why);
}

static void a_bad_codebook_is_refused_at_its_character(void)
{
    refused("cb", TN_ERR_ARGUMENT,
            "\"cb\": expected the bits of a code, 2 to 8, but found the end at character 3");
    refused("cb9", TN_ERR_ARGUMENT,
            "\"cb9\": expected the bits of a code, 2 to 8, but found \"9\" at character 3");
    refused("cb1", TN_ERR_ARGUMENT,
            "\"cb1\": expected the bits of a code, 2 to 8, but found \"1\" at character 3");
    refused("icb5", TN_ERR_ARGUMENT,
            "\"icb5\": expected the bits of a code, 4 in icb, but found \"5\" at character 4");
    refused("cb40f", TN_ERR_ARGUMENT,
            "\"cb40f\": expected the bits of a choice of mapping, 1 to 8, but found \"0\" at character 4");
    refused("cb41fi", TN_ERR_ARGUMENT,
            "\"cb41fi\": expected _ and the compute type but found the end at character 7");
    refused(
        "cb41fi_", TN_ERR_ARGUMENT,
        "\"cb41fi_\": expected a number (e<X>m<Y>, int<K>, uint<K>, float<N>, bfloat<N>, binary8p<P>) but "
        "found the end at character 8");
    refused("cb41fi_uint8", TN_ERR_ARGUMENT,
            "\"cb41fi_uint8\": expected a float or an int to compute with but found uint8 at character 8");
    refused("cb41fi_e8m0", TN_ERR_ARGUMENT,
            "\"cb41fi_e8m0\": expected a float or an int to compute with but found e8m0 at character 8");
    refused("cb44_e4m3fn|e8m0", TN_ERR_ARGUMENT,
            "\"cb44_e4m3fn|e8m0\": a codebook without clauses has no mappings of its own: they come "
            "with a table of values at character 5");
    refused("cb41fx_e2m2fnuz", TN_ERR_ARGUMENT,
            "\"cb41fx_e2m2fnuz\": expected f, i, p, s or _ and the compute type but found \"x\" at "
            "character 6");
    refused("cb41f_e2m2fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb41f_e2m2fnuz|e8m0\": 1 bits choose among 2 mappings but found 1 at character 6");
    refused("cb41f012_e2m2fnuz", TN_ERR_ARGUMENT,
            "\"cb41f012_e2m2fnuz\": 1 bits choose among 2 mappings but found more at character 5");
    refused("cb41fe4_e3m2fnuz", TN_ERR_ARGUMENT,
            "\"cb41fe4_e3m2fnuz\": expected a digit up to 3 but found 4 at character 7");
    refused("cb41p0s_e3m2fnuz", TN_ERR_ARGUMENT,
            "\"cb41p0s_e3m2fnuz\": expected a first step of 1 to 9 but found 0 at character 6");
    refused(
        "cb41f01234567890_e3m2fnuz", TN_ERR_ARGUMENT,
        "\"cb41f01234567890_e3m2fnuz\": expected at most 10 digits here but found one more at character 16");
    refused("cb71fi_e3m2fnuz", TN_ERR_ARGUMENT,
            "\"cb71fi_e3m2fnuz\": f needs codes of 3 to 6 bits but found 7 at character 5");
    refused("cb41fi_e2m1fnuz", TN_ERR_ARGUMENT,
            "\"cb41fi_e2m1fnuz\": int4 needs 7 but e2m1fnuz has no such number at character 6");
    refused("cb41fe_e2m1fnuz", TN_ERR_ARGUMENT,
            "\"cb41fe_e2m1fnuz\": e1 needs 0.75 but e2m1fnuz has no such number at character 5");
    refused("cb41p9s_e2m1fnuz", TN_ERR_ARGUMENT,
            "\"cb41p9s_e2m1fnuz\": value 2 of 7 from the top is number 10 but e2m1fnuz has 7 at character 5");
    refused("cb41s101_e2m1fnuz", TN_ERR_ARGUMENT,
            "\"cb41s101_e2m1fnuz\": value 7 of 7 from the top is number 8 but e2m1fnuz has 7 at character 5");
    refused("icb42fip_e4m3fn", TN_ERR_ARGUMENT,
            "\"icb42fip_e4m3fn\": 4 mappings cannot be divided among 3 clauses at character 6");
    refused("icb42_e4m3fn", TN_ERR_ARGUMENT,
            "\"icb42_e4m3fn\": 4 mappings cannot be divided among 0 clauses at character 6");
    refused("icb42f1346_e2m3fnuz", TN_ERR_ARGUMENT,
            "\"icb42f1346_e2m3fnuz\": expected at most 1 digits here but found one more at character 8");
    refused("icb41p012s_e2m3fnuz", TN_ERR_ARGUMENT,
            "\"icb41p012s_e2m3fnuz\": expected at most 2 digits here but found one more at character 9");
    refused("icb423_e2m3fnuz", TN_ERR_ARGUMENT,
            "\"icb423_e2m3fnuz\": 4 mappings cannot be divided among 0 clauses at character 6");
    refused("cb45f01f01f01f01f01f01f01f01f01f01f01f01f01f01f01f01_e2m2fnuz|e8m0", TN_ERR_UNSUPPORTED,
            "\"cb45f01f01f01f01f01f01f01f01f01f01f01f01f01f01f01f01_e2m2fnuz|e8m0\": a codebook's name has "
            "at most 47 characters but found "
            "more at character 1");
}

/* ---- tables ---- */

static tn_status from_json(const char *json, size_t n, const char *scale, tn_datatype **d, tn_error *err)
{
    uint8_t *copy = exact_copy(json, n);
    tn_status status = tn_datatype_codebook((const char *)copy, n, scale, d, err);
    free(copy);
    return status;
}

static tn_datatype *read_text(const char *text)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    if (tn_datatype_parse(text, &d, &err))
        fail_msg("%s", line_of(&err));
    return d;
}

static void a_table_of_values_is_a_codebook(void)
{
    static const char json[] =
        "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.5,1,1.5,2,3,4,6],[1,2.0,3e0,4,5,6,7]]}";
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    if (from_json(json, strlen(json), "e8m0_t32s4", &d, &err))
        fail_msg("%s", line_of(&err));
    CHECK(d->number.kind == TN_NUMBER_CODEBOOK && d->codebook.index_bits == 4 && d->codebook.meta_bits == 1 &&
          d->subtile == 4);
    assert_string_equal(tn_datatype_text(d), "cb41[0.5:1:1.5:2:3:4:6;1:2:3:4:5:6:7]_e2m3fnuz|e8m0_t32s4");
    assert_string_equal(d->number.text, "cb41_e2m3fnuz");
    assert_string_equal(d->codebook.compute.text, "e2m3fnuz");
    check_mapping(d, 0, "0.5 1 1.5 2 3 4 6");
    check_mapping(d, 1, "1 2 3 4 5 6 7");
    CHECK(tn_datatype_bits(d) == 4.5);
    tn_datatype_free(d);
}

static void one_mapping_needs_no_choice(void)
{
    static const char json[] = " { \"mappings\" : [ [ 0.25, 0.5, 1 ] ], \"compute\" : \"bfloat16\" } ";
    const int64_t shape[] = { 2, 64 };
    tn_datatype *d = NULL;
    tn_scaled_shapes s;
    CHECK(from_json(json, strlen(json), "float16_t32", &d, NULL) == TN_OK);
    CHECK(d->codebook.meta_bits == 0 && d->codebook.mappings == 1 && d->codebook.index_bits == 3 &&
          d->codebook.values == 4);
    /* data and scale, no meta */
    CHECK(tn_scaled_shapes_for(d, 2, shape, &s, NULL) == TN_OK && s.count == 2);
    CHECK(tn_datatype_bits(d) == 3.5);
    tn_datatype_free(d);
}

/* With zeros among its values, or with the zero that stands before them. */
static void a_mapping_may_hold_zeros(void)
{
    static const struct { const char *mappings, *text; } cases[] = {
        { "[[0,0.5,1,1.5,2,3,4],[0.5,1,1.5,2,3,4,6]]",
          "cb41[0:0.5:1:1.5:2:3:4;0.5:1:1.5:2:3:4:6]_e2m3fnuz|e8m0_t32" },
        { "[[0,0,0,0,0,0,7.5]]", "cb40[0:0:0:0:0:0:7.5]_e2m3fnuz|e8m0_t32" },
        { "[[0,0.5,1,1.5,2,3,4,6]]", "cb40[0.5:1:1.5:2:3:4:6]_e2m3fnuz|e8m0_t32" },
        { "[[0,0.5,1,1.5,2,3,4,6],[0.5,1,1.5,2,3,4,6]]",
          "cb41[0.5:1:1.5:2:3:4:6;0.5:1:1.5:2:3:4:6]_e2m3fnuz|e8m0_t32" },
        { "[[0,0,0.5,1,1.5,2,3,4]]", "cb40[0:0.5:1:1.5:2:3:4]_e2m3fnuz|e8m0_t32" },
        { "[[0,0,0],[0,0,1]]", "cb31[0:0:0;0:0:1]_e2m3fnuz|e8m0_t32" },
        { "[[-0.0,1]]", "cb20[1]_e2m3fnuz|e8m0_t32" },
        { "[[-0.0,1,2]]", "cb30[0:1:2]_e2m3fnuz|e8m0_t32" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[160];
        tn_datatype *d = NULL;
        tn_error err = { .text = "" };
        snprintf(json, sizeof json, "{\"compute\":\"e2m3fnuz\",\"mappings\":%s}", cases[i].mappings);
        if (from_json(json, strlen(json), "e8m0_t32", &d, &err))
            fail_msg("%s: %s", cases[i].mappings, line_of(&err));
        assert_string_equal(tn_datatype_text(d), cases[i].text);
        tn_datatype *again = NULL;
        CHECK(tn_datatype_parse(cases[i].text, &again, &err) == TN_OK);
        assert_memory_equal(again->codebook.value, d->codebook.value,
                            d->codebook.mappings * d->codebook.values * sizeof(float));
        tn_datatype_free(again);
        tn_datatype_free(d);
    }
}

static void write_mapping(tn_buf *json, const tn_codebook *b, uint32_t mapping)
{
    for (uint32_t k = 1; k < b->values; k++)
        tn_buf_printf(json, "%s%.9g", k > 1 ? "," : mapping ? "],[" : "[",
                      (double)b->value[mapping * b->values + k]);
}

/* TensorCast's own codebooks, some of whose mappings begin with zeros, said as tables: codes are the same. */
static void a_table_casts_as_the_name_of_the_same_mappings(void)
{
    static const char *const names[] = { "icb44fi_e2m3fnuz", "icb44fi_e3m2fnuz", "icb44fi_e4m3fn",
                                         "icb44p36s_e2m1fnuz" };
    static const char *const scales[] = { "e8m0_t32s8", "float16_t32", "e8m0_t16n2m4" };
    enum { COUNT = 4 * 96 };
    float x[COUNT];
    const int64_t shape[] = { 4, 96 };
    const tn_array array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
    size_t zeros = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 11 ? (float)(i * 7919 % 1009 - 504) / (float)(1 << i % 9) : 0;
    for (size_t i = 0; i < 12; i++) {
        char text[80];
        tn_buf json = { 0 };
        tn_datatype *table = NULL;
        tn_error err = { .text = "" };
        uint8_t codes[2][4][1024] = { 0 };      /* of each, four parts: more than they take */
        snprintf(text, sizeof text, "%s|%s", names[i / 3], scales[i % 3]);
        tn_datatype *name = read_text(text);
        tn_buf_printf(&json, "{\"compute\":\"%s\",\"mappings\":[", name->codebook.compute.text);
        for (uint32_t m = 0; m < name->codebook.mappings; m++) {
            zeros += name->codebook.value[m * name->codebook.values + 1] == 0;
            write_mapping(&json, &name->codebook, m);
        }
        tn_buf_puts(&json, "]]}");
        if (tn_datatype_codebook((const char *)json.data, json.size, scales[i % 3], &table, &err))
            fail_msg("%s: %s", text, line_of(&err));
        for (int k = 0; k < 2; k++) {
            void *parts[] = { codes[k][0], codes[k][1], codes[k][2], codes[k][3] };
            CHECK(tn_quantize(k ? table : name, &array, x, parts, NULL, NULL, &err) == TN_OK);
        }
        assert_memory_equal(codes[0], codes[1], sizeof codes[0]);
        tn_datatype_free(name);
        tn_datatype_free(table);
        tn_buf_free(&json);
    }
    CHECK(zeros >= 3);
}

static void eight_bits_of_choice_a_subtile_are_not_packed(void)
{
    char json[256 * 40];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"compute\":\"float32\",\"mappings\":[");
    for (int i = 0; i < 256; i++)
        n += (size_t)snprintf(json + n, sizeof json - n, "%s[%d]", i ? "," : "", i + 1);
    n += (size_t)snprintf(json + n, sizeof json - n, "]}");
    const int64_t shape[] = { 3, 64 };
    tn_datatype *d = NULL;
    tn_scaled_shapes s;
    CHECK(from_json(json, n, "e8m0_t32s4", &d, NULL) == TN_OK);
    CHECK(d->codebook.meta_bits == 8 && d->codebook.index_bits == 2 && d->codebook.value[255 * 2 + 1] == 256);
    CHECK(tn_scaled_shapes_for(d, 2, shape, &s, NULL) == TN_OK && s.count == 3);
    CHECK(s.parts[2].plain_shape[1] == 16 && s.parts[2].shape[1] == 16 && s.parts[2].shape[0] == 3);
    tn_datatype_free(d);
    json[n - 2] = ',';
    n = n - 1 + (size_t)snprintf(json + n - 1, sizeof json - n + 1, "[1]]}");
    CHECK(from_json(json, n, "e8m0_t32s4", &d, NULL) == TN_ERR_LIMIT);
}

static void a_mapping_has_at_most_127_values(void)
{
    for (int values = 127; values < 130; values++) {
        char json[1000];
        size_t n = (size_t)snprintf(json, sizeof json, "{\"compute\":\"float32\",\"mappings\":[[");
        for (int i = 0; i < values; i++)
            n += (size_t)snprintf(json + n, sizeof json - n, "%s%d", i ? "," : "", i + 1);
        n += (size_t)snprintf(json + n, sizeof json - n, "]]}");
        tn_datatype *d = NULL;
        tn_error err = { .text = "" };
        CHECK(from_json(json, n, "e8m0_t32", &d, &err) == (values == 127 ? TN_OK : TN_ERR_LIMIT));
        assert_string_equal(said_of(&err),
                            values == 127 ? "" : "expected at most 127 values in a mapping but found more");
        CHECK(values > 127 || (d->codebook.index_bits == 8 && d->codebook.value[127] == 127));
        tn_datatype_free(d);
    }
}

static void bad_table(const char *json, const char *scale, tn_status status, const char *why)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    tn_status found = from_json(json, strlen(json), scale, &d, &err);
    CHECK(from_json(json, strlen(json), scale, &d, NULL) == found && d == NULL);
    if (found != status || strcmp(said_of(&err), why) != 0)
        fail_msg("%s: expected %d <%s> but found %d <%s>", json, status, why, found, line_of(&err));
}

static void a_bad_table_is_refused_with_its_reason(void)
{
    bad_table("{\"compute\":\"e2m1fnuz\"}", "e8m0", TN_ERR_ARGUMENT,
              "expected \"compute\" and \"mappings\" but found no \"mappings\"");
    bad_table("{\"mappings\":[[1]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected \"compute\" and \"mappings\" but found no \"compute\"");
    bad_table("{\"mapping\":[[1]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected \"compute\" and \"mappings\", once each, but found \"mapping\"");
    bad_table("{\"mappings\":[[1]],\"mappings\":[[1]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected \"compute\" and \"mappings\", once each, but found \"mappings\"");
    bad_table("{\"compute\":\"e9m1\",\"mappings\":[[1]]}", "e8m0", TN_ERR_ARGUMENT,
              "\"e9m1\": the exponent has 1 to 8 bits but found 9 at character 2");
    bad_table("{\"compute\":\"uint4\",\"mappings\":[[1]]}", "e8m0", TN_ERR_ARGUMENT,
              "\"uint4\": expected a float or an int to compute with but found uint4 at character 1");
    bad_table("{\"compute\":\"e2m1\\u0000\",\"mappings\":[[1]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected a number to compute with but found \"e2m1\\x00\"");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1,2]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1, 3, 7, 15, 31, 63 or 127 values in a mapping but found 2");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1, 3, 7, 15, 31, 63 or 127 values in a mapping but found 0");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1, 2, 4, 8, 16, 32, 64, 128 or 256 mappings but found 0");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1],[2],[3]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1, 2, 4, 8, 16, 32, 64, 128 or 256 mappings but found 3");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1],[1,2,3]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1 values in a mapping, as in the first, but found 3");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1,3,2]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected a value above 3 but found 2");
    static const char *const none[] = { "0", "0,0,0", "-0", "0,0", "0.0, -0.0, 0e5, 0", "0,0,0,0,0,0,0" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char json[100];
        snprintf(json, sizeof json, "{\"compute\":\"e2m1fnuz\",\"mappings\":[[%s]]}", none[i]);
        bad_table(json, "e8m0", TN_ERR_ARGUMENT, "expected a value above 0 in one of the mappings but found "
                  "none");
    }
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[ 1e-400,1,2]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected a value above 0 but found 0");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1,0,2]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected a value above 1 but found 0");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1,1,2]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected a value above 1 but found 1");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[0,1,2,3,4,6]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1, 3, 7, 15, 31, 63 or 127 values in a mapping but found 6");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[0.5,1,2,3]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected 1, 3, 7, 15, 31, 63 or 127 values in a mapping but found 4");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[-1]]}", "e8m0", TN_ERR_ARGUMENT,
              "expected a value above 0 but found -1");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1,2,5]]}", "e8m0", TN_ERR_ARGUMENT,
              "mapping 0, value 2: expected a number of e2m1fnuz but found 5");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1]]}", "e9m0", TN_ERR_ARGUMENT,
              "\"e9m0\": the exponent has 1 to 8 bits but found 9 at character 2");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1]]}", "", TN_ERR_ARGUMENT,
              "\"\": expected a scale but found the end at character 1");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1]]}", "float32_int8", TN_ERR_ARGUMENT,
              "\"float32_int8\": a zero point is for unsigned integers but found one for cb20_e2m1fnuz at "
              "character 9");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[\"1\"]]}", "e8m0", TN_ERR_CORRUPT,
              "expected a number but found a string");
    bad_table("{\"compute\":\"e2m1fnuz\",\"mappings\":[[1]]}}", "e8m0", TN_ERR_CORRUPT,
              "expected the end of the text but found '}'");
    tn_datatype *d;
    CHECK(tn_datatype_codebook(NULL, 0, "e8m0", &d, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_datatype_codebook("{}", 2, NULL, &d, NULL) == TN_ERR_ARGUMENT);
}

static void no_truncated_or_flipped_table_does_harm(void)
{
    static const char json[] =
        "{\"compute\":\"e3m2b4fnuz\",\"mappings\":[[0.5,1,1.5],[1,2e0,\t3],[1,2,4],[2,3,5]]}";
    size_t n = strlen(json);
    for (size_t k = 0; k < n; k++) {
        tn_datatype *d = NULL;
        tn_error err = { .text = "" };
        CHECK(from_json(json, k, "e8m0_t32", &d, &err) != TN_OK && !d && err.text[0]);
    }
    char *flipped = (char *)exact_copy(json, n);
    for (size_t k = 0; k < n; k++) {
        for (int bit = 0; bit < 8; bit++) {
            tn_datatype *d = NULL;
            tn_error err = { .text = "" };
            flipped[k] = (char)(json[k] ^ 1 << bit);
            tn_status status = from_json(flipped, n, "e8m0_t32", &d, &err);
            CHECK(status ? !d && err.status == status && err.text[0] : d != NULL);
            tn_datatype_free(d);
        }
        flipped[k] = json[k];
    }
    free(flipped);
}

/* ---- tables in the text ---- */

static void check_same_book(const tn_datatype *a, const tn_datatype *b)
{
    const tn_codebook *x = &a->codebook, *y = &b->codebook;
    CHECK(x->table && y->table && x->index_bits == y->index_bits && x->meta_bits == y->meta_bits &&
          x->values == y->values);
    assert_string_equal(x->compute.text, y->compute.text);
    assert_memory_equal(x->value, y->value, (size_t)x->mappings * x->values * sizeof *x->value);
    assert_string_equal(tn_datatype_text(a), tn_datatype_text(b));
}

/* Numbers of a few digits, of many, and the smallest and largest there are. */
static void the_text_of_a_table_is_all_of_it(void)
{
    static const struct { const char *json, *scale, *text;
    } cases[] = {
        { "{\"compute\":\"e2m1fnuz\",\"mappings\":[[0.5]]}", "float32", "cb20[0.5]_e2m1fnuz|float32" },
        { "{\"compute\":\"e4m3fn\",\"mappings\":[[0.001953125,1,448],[1e-0,2,4.48E2]]}", "e8m0_t16d2",
          "cb31[0.001953125:1:448;1:2:448]_e4m3fn|e8m0_t16d2" },
        { "{\"compute\":\"float32\",\"mappings\":[[1.401298464324817e-45,0.10000000149011612,3."
          "4028234663852886e38]]}",
          "float16_t32",
          "cb30[1.401298464324817e-45:0.10000000149011612:3.4028234663852886e+38]_float32|float16_t32" },
        { "{\"compute\":\"int8\",\"mappings\":[[0.015625,0.5,1.984375]]}", "e8m0_t32",
          "cb30[0.015625:0.5:1.984375]_int8|e8m0_t32" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_datatype *d = NULL;
        tn_error err = { .text = "" };
        if (from_json(cases[i].json, strlen(cases[i].json), cases[i].scale, &d, &err))
            fail_msg("%s", line_of(&err));
        assert_string_equal(tn_datatype_text(d), cases[i].text);
        tn_datatype *again = read_text(tn_datatype_text(d));
        check_same_book(d, again);
        tn_datatype_free(again);
        tn_datatype_free(d);
    }
}

static void the_largest_table_has_a_text(void)
{
    tn_buf json = { 0 };
    tn_datatype *d = NULL;
    tn_buf_puts(&json, "{\"compute\":\"float32\",\"mappings\":[");
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < 127; k++)
            tn_buf_printf(&json, "%s%d.%03d", k ? "," : i ? "],[" : "[", k * 125 + 1, (i % 8) * 125);
    tn_buf_puts(&json, "]]}");
    CHECK(!json.bad && from_json((const char *)json.data, json.size, "e8m0_t32s4", &d, NULL) == TN_OK);
    CHECK(d->codebook.index_bits == 8 && d->codebook.meta_bits == 8);
    tn_datatype *again = read_text(tn_datatype_text(d));
    check_same_book(d, again);
    tn_datatype_free(again);
    tn_datatype_free(d);
    tn_buf_free(&json);
}

static void spellings_of_a_table_are_one(void)
{
    static const char *const same[] = {
        "cb31[0.5:1:1.5;1:2:3]_e2m3fnuz|e8m0_t32",
        "CB31[0.50:1.0:15e-1;1:2E0:0.3e+1]_E2M3FNUZ|E8M0_T32",
        "cb31[00.5:01:1.5000000000;1e0:2e00:3]_e2m3b1fnuz|t32_e8m0",
        "cb31[0.500000000000000000000000000000:10000000000000000000000e-22:1.5;1:2:3.0000000000000000000]_"
        "e2m3fnuz|e8m0_t32",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        tn_datatype *d = read_text(same[i]);
        assert_string_equal(tn_datatype_text(d), same[0]);
        tn_datatype_free(d);
    }
}

static void a_bad_table_is_refused_at_its_character(void)
{
    refused("cb31[", TN_ERR_ARGUMENT,
            "\"cb31[\": expected _ and the compute type but found the end at character 6");
    refused("cb31[_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb31[_e2m3fnuz|e8m0\": expected a number but found none at character 6");
    refused("cb31[]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb31[]_e2m3fnuz|e8m0\": expected a number but found none at character 6");
    refused("cb20[1_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb20[1_e2m3fnuz|e8m0\": expected : and a value, ; and a mapping, or ] and the "
            "compute type but found the end at character 7");
    refused("cb20[1]1_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb20[1]1_e2m3fnuz|e8m0\": expected : and a value, ; and a mapping, or ] and "
            "the compute type but found \"1\" at character 8");
    refused("cb31[1:2:3]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb31[1:2:3]_e2m3fnuz|e8m0\": 1 bits choose among 2 mappings but found 1 at "
            "character 12");
    refused("cb30[1:2:3;1:2:3]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb30[1:2:3;1:2:3]_e2m3fnuz|e8m0\": 0 bits choose among 1 mappings "
            "but found more at character 12");
    refused("cb30[1:2]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb30[1:2]_e2m3fnuz|e8m0\": codes of 3 bits have 3 values but found 2 at "
            "character 6");
    refused("cb30[1:2:3:4]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb30[1:2:3:4]_e2m3fnuz|e8m0\": codes of 3 bits have 3 values but "
            "found more at character 12");
    refused("cb30[1:3:2]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb30[1:3:2]_e2m3fnuz|e8m0\": expected a value above 3 but found 2 at "
            "character 10");
    refused("cb20[0]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT, "\"cb20[0]_e2m3fnuz|e8m0\": expected a value above 0 "
            "in one of the "
            "mappings but found none at character 5");
    refused("cb31[0:0:0;0:0:0]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb31[0:0:0;0:0:0]_e2m3fnuz|e8m0\": expected a value above 0 in one "
            "of the mappings but found none at character 5");
    refused("cb30[1e-400:1:2]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb30[1e-400:1:2]_e2m3fnuz|e8m0\": expected a value above 0 but found "
            "1e-400 at character 6");
    refused("cb30[1:0:2]_e2m3fnuz|e8m0", TN_ERR_ARGUMENT, "\"cb30[1:0:2]_e2m3fnuz|e8m0\": expected a value "
            "above 1 but found 0 at "
            "character 8");
    refused("cb20[5]_e2m1fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb20[5]_e2m1fnuz|e8m0\": expected a number of e2m1fnuz but found 5 at character 6");
    refused("cb20[1e9]_e2m1fnuz|e8m0", TN_ERR_ARGUMENT,
            "\"cb20[1e9]_e2m1fnuz|e8m0\": expected a number of e2m1fnuz but found 1e9 at "
            "character 6");
    static const char *const numbers[] = { "-1", "+1", "1.", ".5", "1e", "1e+", "1e99999", "1,5", "0x1",
                                           "nan", "inf", "1 ", "1.5.5", "1-1",
                                           "11111111111111111111111111111111111111111" };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[100], why[300];
        snprintf(text, sizeof text, "cb20[%s]_e2m3fnuz|e8m0", numbers[i]);
        snprintf(why, sizeof why, "\"%s\": expected a number but found \"%.40s\" at character 6", text,
                 numbers[i]);
        refused(text, TN_ERR_ARGUMENT, why);
    }
    refused("cb40[1]f_e2m3fnuz", TN_ERR_ARGUMENT,
            "\"cb40[1]f_e2m3fnuz\": codes of 4 bits have 7 values but found 1 at character 6");
    refused("icb40[1]_e2m3fnuz", TN_ERR_ARGUMENT,
            "\"icb40[1]_e2m3fnuz\": expected the bits of a choice of mapping, 1 to 8, but found "
            "\"0\" at character 5");
    refused("cb20[1]_e2m3fnuz", TN_ERR_ARGUMENT,
            "\"cb20[1]_e2m3fnuz\": cb20_e2m3fnuz needs a scale: expected | and one, as in |float32, "
            "but found the end at character 17");
}

/* Digits do not depend on the locale. */
static void a_table_is_the_same_in_every_locale(void)
{
    static const char text[] = "cb20[0.5]_e2m1fnuz|e8m0_t32";
    setlocale(LC_NUMERIC, "de_DE.UTF-8");       /* where there is one */
    tn_datatype *d = read_text(text);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(tn_datatype_text(d), text);
    tn_datatype_free(d);
}

/* ---- tables in files ---- */

static void load_refused(const char *text, tn_status status, const char *why)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    CHECK(tn_datatype_load(text, &d, NULL) == status && tn_datatype_load(text, &d, &err) == status &&
          d == NULL);
    if (!strstr(line_of(&err), why))
        fail_msg("expected \"%s\" but found \"%s\"", why, line_of(&err));
}

static void a_file_can_stand_for_a_codebook(void)
{
    char text[PATH_MAX + 32];
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    put_file("book.json", "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.5,1,1.5],[1,2,3]]}\n");
    snprintf(text, sizeof text, "%s|e8m0_t32s8", in_folder("book.json").text);
    if (tn_datatype_load(text, &d, &err))
        fail_msg("%s", line_of(&err));
    assert_string_equal(tn_datatype_text(d), "cb31[0.5:1:1.5;1:2:3]_e2m3fnuz|e8m0_t32s8");
    tn_datatype_free(d);
    CHECK(tn_datatype_load("mxfp4", &d, NULL) == TN_OK);
    assert_string_equal(tn_datatype_text(d), "e2m1fnuz|e8m0_t32");
    tn_datatype_free(d);
}

static void a_file_that_is_no_codebook_is_named(void)
{
    char text[PATH_MAX + 32];
    put_file("bad.json", "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.5,1,x]]}");
    snprintf(text, sizeof text, "%s|e8m0_t32s8", in_folder("bad.json").text);
    load_refused(text, TN_ERR_CORRUPT, "bad.json: byte ");
    snprintf(text, sizeof text, "%s|e8m0_t32s8", in_folder("none.json").text);
    load_refused(text, TN_ERR_IO, "none.json: ");
    snprintf(text, sizeof text, "%s", in_folder("bad.json").text);
    load_refused(text, TN_ERR_ARGUMENT,
                 "a codebook needs a scale: expected | and one, as in |e8m0_t32, but found the end");
    put_file("good.json", "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.5,1,2]]}");
    snprintf(text, sizeof text, "%s|e9m0", in_folder("good.json").text);
    load_refused(text, TN_ERR_ARGUMENT, "\"e9m0\": the exponent has 1 to 8 bits but found 9 at character 2");
    snprintf(text, sizeof text, "%s|e8m0", in_folder("large.json").text);
    put_file("large.json", " ");
    CHECK(truncate(in_folder("large.json").text, (4 << 20) + 1) == 0);
    load_refused(text, TN_ERR_LIMIT,
                 "large.json: expected a table of values of at most 4194304 bytes but found 4194305");
    load_refused(".json|e8m0", TN_ERR_ARGUMENT, "expected a number");
    load_refused(NULL, TN_ERR_ARGUMENT, "expected a datatype but found none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_give_tensorcasts_mappings),
        TEST(patterns_are_those_of_the_documentation),
        TEST(implicit_patterns_move_down_and_end_at_zero),
        TEST(spellings_of_a_codebook_are_one),
        TEST(a_bad_codebook_is_refused_at_its_character),
        TEST(a_table_of_values_is_a_codebook),
        TEST(one_mapping_needs_no_choice),
        TEST(a_mapping_may_hold_zeros),
        TEST(a_table_casts_as_the_name_of_the_same_mappings),
        TEST(eight_bits_of_choice_a_subtile_are_not_packed),
        TEST(a_mapping_has_at_most_127_values),
        TEST(a_bad_table_is_refused_with_its_reason),
        TEST(no_truncated_or_flipped_table_does_harm),
        TEST(the_text_of_a_table_is_all_of_it),
        TEST(the_largest_table_has_a_text),
        TEST(spellings_of_a_table_are_one),
        TEST(a_bad_table_is_refused_at_its_character),
        TEST(a_table_is_the_same_in_every_locale),
        IN_FOLDER(a_file_can_stand_for_a_codebook),
        IN_FOLDER(a_file_that_is_no_codebook_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
