/* The examples of the specification, each as it stands there with values
 * filled in (tests/golden/descriptor/specification), and what it names. */
#include "support.h"

#include "base/vector.h"
#include "documents.h"
#include "files.h"

#include <tenon/tenon.h>

#define EXAMPLES TEST_GOLDEN "/descriptor/specification"

static size_t wrong_in(const tn_descriptor *d, bool strict)
{
    const tn_check_options options = { .size = sizeof options, .strict = strict };
    size_t wrong = 99;
    CHECK(tn_descriptor_check(d, &options, &wrong, NULL) == TN_OK);
    return wrong;
}

/* ---- the examples ---- */

static size_t examples, fragments;

/* Written and read again it is the same descriptor: the two texts agree. */
static void check_written(const tn_descriptor *d)
{
    char *once, *twice;
    size_t n, m;
    tn_descriptors *again = NULL;
    CHECK(tn_descriptors_write(d, 1, false, &once, &n, NULL) == TN_OK);
    CHECK(tn_descriptors_parse(once, n, &again, NULL) == TN_OK);
    CHECK(tn_descriptor_is_fragment(tn_descriptors_at(again, 0)) == tn_descriptor_is_fragment(d));
    CHECK(tn_descriptors_write(tn_descriptors_at(again, 0), 1, false, &twice, &m, NULL) == TN_OK);
    CHECK(n == m && memcmp(once, twice, n) == 0);
    free(once);
    free(twice);
    tn_descriptors_free(again);
}

static void check_example(const char *name, const uint8_t *bytes, size_t n)
{
    tn_descriptors *set = NULL;
    tn_error err = { .text = "" };
    if (tn_descriptors_parse((const char *)bytes, n, &set, &err))
        fail_msg("%s: %s", name, line_of(&err));
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(tn_descriptors_count(set) == 1 && wrong_in(d, false) == 0 && wrong_in(d, true) == 0);
    check_written(d);
    examples++;
    fragments += tn_descriptor_is_fragment(d);
    tn_descriptors_free(set);
}

static void each_example_is_right_as_it_stands(void)
{
    examples = fragments = 0;
    each_file(EXAMPLES, check_example);
    CHECK(examples == 8 && fragments == 5);     /* the specification has eight blocks of JSON */
}

static void an_example_that_is_cut_is_refused(void)
{
    size_t n;
    uint8_t *whole = load_file(EXAMPLES "/quantization_asymmetric_per_channel.json", &n);
    for (size_t k = 0; k + 1 < n; k++) {
        uint8_t *cut = exact_copy(whole, k);
        tn_descriptors *set = NULL;
        tn_error err = { .text = "" };
        CHECK(tn_descriptors_parse((const char *)cut, k, &set, &err) != TN_OK && err.text[0] && !set);
        free(cut);
    }
    free(whole);
}

/* ---- fragments ---- */

static void a_fragment_has_nothing_that_names_a_tensor(void)
{
    static const struct { const char *json; bool fragment; } all[] = {
        { "{\"shape\":[2]}", true }, { "{\"shape\":[2],\"metadata\":{},\"x\":1}", true },
        { "{\"mapping\":{\"device_address\":\"0x1\",\"access_mode\":\"device_only\"},\"properties\":{}}",
          true },
        { "{\"shape\":[2],\"version\":\"WIA-AI-011-v1.0\"}", false },
            { "{\"shape\":[2],\"name\":\"w\"}", false },
        { "{\"shape\":[2],\"tensor_id\":\"x\"}", false },
            { "{\"shape\":[2],\"dtype\":{\"base_type\":\"INT8\"}}", false },
        { "{\"shape\":[2],\"dtype\":{\"base_type\":\"NONE\"}}", false },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tn_descriptors *set = parse(all[i].json);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        CHECK(tn_descriptor_is_fragment(d) == all[i].fragment && (wrong_in(d, false) == 0) ==
              all[i].fragment);
        tn_descriptors_free(set);
    }
}

static void a_document_without_a_shape_is_one_of_the_two_that_have_none(void)
{
    static const char *const bad[] = {
        "{}", "{\"x\":1}", "{\"metadata\":{}}", "{\"properties\":{}}", "{\"scale\":1}", "{\"scheme\":1}",
        "{\"scheme\":\"per_tensor_symmetric\",\"scale\":\"x\"}",
            "{\"scheme\":\"per_tensor_symmetric\",\"name\":\"w\"}",
        "{\"scheme\":\"per_tensor_symmetric\",\"scheme\":\"per_tensor_symmetric\"}",
        "{\"mapping\":{\"device_address\":\"0x1\",\"access_mode\":\"device_only\"},\"physical_shape\":[1]}",
        "{\"mapping\":{\"device_address\":\"0x1\",\"access_mode\":\"device_only\"},\"name\":\"w\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_descriptors *set = NULL;
        tn_error err = { .text = "" };
        if (tn_descriptors_parse(bad[i], strlen(bad[i]), &set, &err) != TN_ERR_CORRUPT)
            fail_msg("%s is accepted", bad[i]);
    }
}

/* Its members are at the top level, those that are not known too. */
static void a_quantization_alone_is_read_and_kept(void)
{
    tn_descriptors *set =
        parse("{\"scheme\":\"per_channel_symmetric\",\"scales\":[1,2],\"channel_axis\":3,\"by\":\"me\"}");
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->quantization.scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC && d->quantization.nscales == 2 &&
          !d->dimensions);
    CHECK(d->quantization.channel_axis == 3 && d->nextra == 1 && strcmp(d->extra[0].key, "by") == 0 &&
          wrong_in(d, true) == 0);
    check_written(d);
    tn_descriptors_free(set);
    set = parse("[{\"shape\":[1]},{\"scheme\":\"per_planet\",\"moons\":[1,2]}]");
    d = tn_descriptors_at(set, 1);
    CHECK(d->quantization.scheme == TN_QUANT_NONE && d->nextra == 2 && wrong_in(d, false) == 0 &&
          wrong_in(d, true) == 1);
    CHECK(tn_descriptor_level(d, NULL) == 3);
    check_written(d);
    tn_descriptors_free(set);
}

static void a_quantization_alone_contradicts_itself_like_any_other(void)
{
    static const struct { const char *members; size_t wrong; } all[] = {
        { "\"scheme\":\"per_tensor_symmetric\",\"scale\":1", 0 },
            { "\"scheme\":\"per_tensor_symmetric\"", 1 },
        { "\"scheme\":\"per_tensor_symmetric\",\"scales\":[1,2]", 1 },
            { "\"scheme\":\"per_tensor_symmetric\",\"scale\":0", 1 },
        { "\"scheme\":\"per_channel_symmetric\",\"channel_axis\":1", 1 },
        { "\"scheme\":\"per_channel_symmetric\",\"channel_axis\":64,\"scales\":[1]", 1 },
        { "\"scheme\":\"per_channel_asymmetric\",\"channel_axis\":0,\"scales\":[1],\"zero_points\":[1,2]",
          1 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[200];
        snprintf(text, sizeof text, "{%s}", all[i].members);
        tn_descriptors *set = parse(text);
        if (wrong_in(tn_descriptors_at(set, 0), false) != all[i].wrong)
            fail_msg("%s: not %zu things wrong", text, all[i].wrong);
        tn_descriptors_free(set);
    }
}

static void symbols_of_a_fragment_get_values(void)
{
    const tn_wia_binding bindings[] = { { "n", 5 } };
    tn_descriptors *set =
        parse("{\"shape\":{\"dimensions\":[\"n\",2],\"symbolic\":true},\"physical_shape\":[8,2],"
                                "\"properties\":{\"is_contiguous\":true}}"), *bound = NULL;
    CHECK(tn_descriptor_bind(tn_descriptors_at(set, 0), bindings, 1, &bound, NULL) == TN_OK);
    const tn_descriptor *d = tn_descriptors_at(bound, 0);
    CHECK(d->dimensions[0].value == 5 && !d->has_total && tn_descriptor_is_fragment(d) && !d->is_contiguous);
    uint64_t bytes;
    tn_error err = { .text = "" };
    CHECK(tn_descriptor_max_bytes(d, &bytes, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "expected a type of known size but found none");
    tn_descriptors_free(bound);
    tn_descriptors_free(set);
}

/* ---- words ---- */

static void a_device_may_be_spelled_in_small_letters_and_without_a_number(void)
{
    static const struct { const char *word; tn_device_type type; } all[] = {
        { "cpu", TN_DEVICE_CPU }, { "CPU", TN_DEVICE_CPU }, { "Gpu", TN_DEVICE_GPU },
            { "npu", TN_DEVICE_NPU }, { "TPU", TN_DEVICE_TPU },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"shape\":[1],\"memory\":{\"device\":{\"type\":\"%s\"}}}", all[i].word);
        tn_descriptors *set = parse(text);
        const tn_device *device = &tn_descriptors_at(set, 0)->device;
        CHECK(device->type == all[i].type && device->id == 0 && wrong_in(tn_descriptors_at(set, 0), true) ==
              0);
        tn_descriptors_free(set);
    }
}

/* ---- padding ---- */

static void a_padded_tensor_is_not_contiguous(void)
{
    static const struct { const char *shape, *physical, *contiguous; size_t wrong; } all[] = {
        { "[2,3]", "[2,4]", "true", 1 }, { "[2,3]", "[2,4]", "false", 0 }, { "[2,3]", "[4,3]", "true", 1 },
        { "[2,3]", "[2,3]", "true", 0 }, { "{\"dimensions\":[\"n\",3],\"constraints\":{\"n\":{\"max\":4}}}",
                                           "[4,3]", "true", 0 },
        { "{\"dimensions\":[\"n\",3],\"constraints\":{\"n\":{\"max\":4}}}", "[5,3]", "true", 1 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"w\",\"dtype\":{\"base_type\":\"INT8\"},"
                 "\"shape\":%s,"
                 "\"physical_shape\":%s,\"properties\":{\"is_contiguous\":%s}}", all[i].shape,
                     all[i].physical, all[i].contiguous);
        tn_descriptors *set = parse(text);
        if (wrong_in(tn_descriptors_at(set, 0), false) != all[i].wrong)
            fail_msg("%s: not %zu things wrong", text, all[i].wrong);
        tn_descriptors_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_example_is_right_as_it_stands),
        TEST(an_example_that_is_cut_is_refused),
        TEST(a_fragment_has_nothing_that_names_a_tensor),
        TEST(a_document_without_a_shape_is_one_of_the_two_that_have_none),
        TEST(a_quantization_alone_is_read_and_kept),
        TEST(a_quantization_alone_contradicts_itself_like_any_other),
        TEST(symbols_of_a_fragment_get_values),
        TEST(a_device_may_be_spelled_in_small_letters_and_without_a_number),
        TEST(a_padded_tensor_is_not_contiguous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
