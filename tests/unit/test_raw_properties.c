/* What descriptors say of the use of a tensor goes from one to the next, and
 * documents are recognised by what is in them. */
#include "support.h"

#include "convert.h"
#include "documents.h"
#include "files.h"

#include "formats/raw/raw.h"

#define VERSION "{\"version\":\"WIA-AI-011-v1.0\","
#define TYPE "\"dtype\":{\"base_type\":\"UINT8\"}"
#define HEAD VERSION "\"name\":\"d\",\"shape\":[2,3]," TYPE ","

/* d.json with these members, and the six bytes of d.bin. */
static void put_document(const char *members)
{
    char text[1000];
    snprintf(text, sizeof text, HEAD "%s}", members);
    put_file("d.json", text);
    put_bytes("d.bin", "\1\2\3\4\5\6", 6);
}

/* The only descriptor of a file in the folder. */
static tn_descriptors *load_descriptor(const char *name)
{
    size_t n;
    char *text = (char *)load_file(in_folder(name).text, &n);
    tn_descriptors *set = NULL;
    tn_error err;
    CHECK(parse_n(text, n, &set, &err) == TN_OK && tn_descriptors_count(set) == 1);
    free(text);
    return set;
}

/* ---- properties ---- */

static void properties_survive_from_descriptor_to_descriptor(void)
{
    for (unsigned bits = 0; bits < 8; bits++) {
        char members[300];
        bool grad = bits & 1, pinned = bits & 2, shared = bits & 4;
        snprintf(members, sizeof members,
                 "\"memory\":{\"alignment\":64},\"properties\":{\"requires_grad\":%s,\"is_pinned\":%s,"
                 "\"is_contiguous\":true,\"zero_copy_compatible\":%s,\"x\":[1,{\"y\":null}]}",
                 grad ? "true" : "false", pinned ? "true" : "false", shared ? "true" : "false");
        put_document(members);
        must_convert("d.json", "e.json", (wish){ 0 });
        must_convert("e.json", "e.json", (wish){ 0 });
        tn_descriptors *set = load_descriptor("e.json");
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        CHECK(d->requires_grad == grad && d->is_pinned == pinned && d->zero_copy_compatible == shared &&
              d->is_contiguous);
        size_t x = 0;
        while (x < d->nextra && strcmp(d->extra[x].path, "properties") != 0)
            x++;                /* the other one names the data, for there was a pair before */
        CHECK(d->nextra == 2 && x < 2 && strcmp(d->extra[x].key, "x") == 0);
        assert_string_equal(d->extra[x].json, "[1,{\"y\":null}]");
        tn_descriptors_free(set);
    }
}

/* Each tensor keeps its own, also where only some are taken. */
static void properties_stay_with_their_tensor(void)
{
    put_file(
        "d.json",
        "[" HEAD "\"properties\":{\"requires_grad\":true}}," VERSION "\"name\":\"e\",\"shape\":[3]," TYPE "},"
        "{\"name\":\"s\",\"shape\":[2,2],\"format\":\"CSR\",\"row_pointers\":[0,1,1],\"column_indices\":[1],"
        "\"values\":[2],"
        "\"properties\":{\"is_pinned\":true}}]");
    put_bytes("d.bin", "\1\2\3\4\5\6", 6);
    must_convert("d.json", "o.json", (wish){ 0 });
    tn_file *f = open_file("o.json");
    tn_descriptors *set = NULL;
    CHECK(tn_describe(f, NULL, &set, NULL) == TN_OK);
    tn_close(f);
    const tn_descriptor *d = tn_descriptors_at(set, 0), *e = tn_descriptors_at(set, 1), *s =
        tn_descriptors_at(set, 2);
    CHECK(d->requires_grad && !d->is_pinned && !e->requires_grad && !e->is_pinned);
    CHECK(s->has_properties && s->is_pinned && !s->requires_grad && s->sparse.format);
    tn_descriptors_free(set);
}

/* Joins tensors a and b of d.json, of which b has these properties, into j of o.json. */
static tn_status join_with(const char *properties, bool drop, tn_error *err)
{
    static const tn_rule rule = { "concat", "j=a+b" };
    char text[1000];
    const tn_create_options create = { .size = sizeof create, .replace = true, .drop_metadata = drop };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1 };
    snprintf(text, sizeof text, "[" VERSION "\"name\":\"a\",\"shape\":[3]," TYPE ",\"properties\":{\"is_pinned\":true,"
             "\"x\":1}}," VERSION "\"name\":\"b\",\"shape\":[3]," TYPE "%s}]", properties);
    put_file("d.json", text);
    put_bytes("d.bin", "\1\2\3\4\5\6", 6);
    tn_file *f = open_file("d.json");
    tn_status status = tn_convert(f, in_folder("o.json").text, &o, NULL, err);
    tn_close(f);
    return status;
}

static void properties_that_joined_tensors_have_alike_are_kept(void)
{
    static const struct { const char *properties; bool same; } all[] = {
        { ",\"properties\":{\"x\":1,\"is_pinned\":true}", true }, { "", false },
        { ",\"properties\":{\"is_pinned\":true}", false }, { ",\"properties\":{\"is_pinned\":true,\"x\":2}", false },
        { ",\"properties\":{\"is_pinned\":false,\"x\":1}", false },
        { ",\"properties\":{\"is_pinned\":true,\"y\":1}", false },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tn_error err = { .text = "" };
        CHECK(join_with(all[i].properties, false, &err) == (all[i].same ? TN_OK : TN_ERR_LOSS));
        CHECK(all[i].same || strstr(line_of(&err), "tensor \"b\": its metadata \"properties\" is not that of \"a\""));
        CHECK(join_with(all[i].properties, true, &err) == TN_OK);
        tn_descriptors *set = load_descriptor("o.json");
        CHECK(tn_descriptors_at(set, 0)->is_pinned == all[i].same);
        tn_descriptors_free(set);
    }
}

/* A descriptor outlives the file it was made of. */
static void a_description_keeps_properties_after_the_file(void)
{
    put_document("\"properties\":{\"requires_grad\":true,\"z\":\"text\"}");
    tn_file *f = open_file("d.json");
    tn_descriptors *set = NULL;
    tn_tensor copy = *tn_file_find(f, "d");
    CHECK(tn_describe(f, tn_file_find(f, "d"), &set, NULL) == TN_OK);
    tn_descriptors *of_copy = NULL;
    CHECK(tn_describe(f, &copy, &of_copy, NULL) == TN_OK);
    tn_close(f);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->requires_grad && strcmp(d->extra[d->nextra - 1].json, "\"text\"") == 0);
    CHECK(!tn_descriptors_at(of_copy, 0)->requires_grad);       /* nothing is known of a copy */
    tn_descriptors_free(set);
    tn_descriptors_free(of_copy);
}

static void other_containers_have_no_place_for_them(void)
{
    static const struct { const char *members; bool lost; } all[] = {
        { "\"properties\":{\"requires_grad\":true}", true }, { "\"properties\":{\"is_pinned\":true}", true },
        { "\"properties\":{\"x\":1}", true },
            { "\"properties\":{\"zero_copy_compatible\":false,\"is_contiguous\":false}", false },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tn_error err = { .text = "" };
        put_document(all[i].members);
        CHECK(try_convert("d.json", "o.zt", (wish){ 0 }, &err) == (all[i].lost ? TN_ERR_LOSS : TN_OK));
        CHECK(!all[i].lost || strstr(line_of(&err), "which the new file cannot hold"));
    }
}

/* ---- padding ---- */

static void padding_is_written_as_not_contiguous(void)
{
    static const struct { const char *pad; bool contiguous; } all[] =
        { { "1=4", false }, { "0=4", false }, { "1=3", true } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put_document("\"memory\":{}");
        must_convert("d.json", "p.json", (wish){ .pad = all[i].pad });
        tn_descriptors *set = load_descriptor("p.json");
        size_t wrong = 99;
        CHECK(tn_descriptors_at(set, 0)->is_contiguous == all[i].contiguous);
        CHECK(tn_descriptor_check(tn_descriptors_at(set, 0), NULL, &wrong, NULL) == TN_OK && wrong == 0);
        tn_descriptors_free(set);
    }
}

/* Earlier versions wrote is_contiguous of a padded tensor as true. */
static void padded_files_of_earlier_versions_are_read(void)
{
    put_document("\"physical_shape\":[2,3],\"properties\":{\"is_contiguous\":true}");
    tn_close(open_file("d.json"));
    put_file("d.json", VERSION "\"name\":\"d\",\"shape\":[2,2]," TYPE ","
             "\"physical_shape\":[2,3],\"properties\":{\"is_contiguous\":true}}");
    tn_file *f = open_file("d.json");
    uint8_t data[4] = { 0 };
    CHECK(tn_part_read(f, &tn_file_find(f, "d")->parts[0], data, sizeof data, NULL) == TN_OK &&
          memcmp(data, "\1\2\4\5", 4) == 0);
    tn_close(f);
}

/* ---- recognising ---- */

static int probe(const char *text, size_t n)
{
    uint8_t *copy = exact_copy(text, n);
    int sure = tn_raw_probe(copy, n);
    free(copy);
    return sure;
}

static void documents_are_recognised_by_their_members(void)
{
    static const struct { const char *text; int sure; } all[] = {
        { "{\"format\":\"COO\"", TN_RAW_SURE }, { " [ {\"x\":[{}, \"}\"], \"format\" : \"CSR\"}]",
                                                  TN_RAW_SURE },
        { "{\"format\":\"ELL\"}", 0 }, { "{\"format\":1,\"shape\":[1]}", TN_RAW_LIKELY },
            { "{\"row_pointers\":[", TN_RAW_SURE },
        { "{\"x\":{\"format\":\"COO\"}}", 0 }, { "{\"x\":\"\\\"format\\\":\\\"COO\\\"\"}", 0 },
            { "{\"shape\":[1,", TN_RAW_LIKELY },
        { "{\"shape\":[1],\"x\":1}", 0 }, { "{\"values\":[1,2", TN_RAW_LIKELY },
            { "{\"scheme\":\"x\",\"scale\":1}", TN_RAW_LIKELY },
        { "{\"mapping\":{}}", TN_RAW_LIKELY }, { "{\"version\":\"1\",\"name\":\"x\"}", 0 },
            { "{\"metadata\":{},\"weight_map\":{}}", 0 },
        { "[]", TN_RAW_POSSIBLE }, { "[] ", TN_RAW_POSSIBLE }, { "[]]", 0 }, { "[1]", 0 }, { "", 0 },
            { "{", 0 }, { "x", 0 },
        { "{\"version\":\"WIA-AI-011-v2\"", TN_RAW_SURE }, { "{\"shape", 0 }, { "{\"shape\"", 0 },
            { "{\"a\\", 0 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (probe(all[i].text, strlen(all[i].text)) != all[i].sure)
            fail_msg("%s: not %d", all[i].text, all[i].sure);
}

/* From memory there is no suffix to go by. */
static void sparse_examples_are_opened_from_memory(void)
{
    static const char *const names[] = { "/descriptor/specification/coo.json",
                                         "/descriptor/specification/csr.json" };
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        size_t n;
        tn_file *f = NULL;
        snprintf(path, sizeof path, "%s%s", TEST_GOLDEN, names[i]);
        uint8_t *bytes = load_file(path, &n);
        CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK && tn_file_count(f) == 1);
        CHECK(tn_file_tensor(f, 0)->form == (i ? TN_FORM_CSR : TN_FORM_COO));
        tn_close(f);
        for (size_t k = 0; k < n; k++) {
            uint8_t *cut = exact_copy(bytes, k);
            tn_error err = { .text = "" };
            if (tn_open_memory(cut, k, NULL, &f, &err) == TN_OK)
                tn_close(f);
            else
                CHECK(err.text[0]);
            free(cut);
        }
        free(bytes);
    }
}

static void a_fragment_is_no_file_of_tensors(void)
{
    static const char *const all[] =
        { "{\"shape\":[2]}", "[{\"scheme\":\"per_tensor_symmetric\",\"scale\":1}]" };
    for (int i = 0; i < 2; i++) {
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        CHECK(tn_open_memory(all[i], strlen(all[i]), NULL, &f, &err) == TN_ERR_UNSUPPORTED && err.offset ==
              (uint64_t)i);
        CHECK(strstr(line_of(&err), "a fragment of a descriptor"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(properties_survive_from_descriptor_to_descriptor),
        IN_FOLDER(properties_stay_with_their_tensor),
        IN_FOLDER(properties_that_joined_tensors_have_alike_are_kept),
        IN_FOLDER(a_description_keeps_properties_after_the_file),
        IN_FOLDER(other_containers_have_no_place_for_them),
        IN_FOLDER(padding_is_written_as_not_contiguous),
        IN_FOLDER(padded_files_of_earlier_versions_are_read),
        TEST(documents_are_recognised_by_their_members),
        TEST(sparse_examples_are_opened_from_memory),
        TEST(a_fragment_is_no_file_of_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
