/* Tensors of a datatype in WIA-AI-011 documents: written, described, read, and
 * documents that lie. */
#include "support.h"
#include "stored.h"

#include "datatype_tensor.h"
#include "files.h"
#include "make.h"

#include <tenon/descriptor.h>

static const int64_t shape[] = { 2, 64 };

static void write_one(const char *name, const char *format, const scaled_tensor *s)
{
    tn_writer *w;
    tn_error err = { .text = "" };
    const tn_create_options options = { .size = sizeof options, .format = format, .replace = true };
    if (tn_create(in_folder(name).text, &options, &w, &err) || tn_writer_add(w, &s->t, &err) ||
        tn_writer_finish(w, &err))
        fail_msg("%s: %s", name, line_of(&err));
}

static char *load_text(const char *name)
{
    size_t n;
    uint8_t *bytes = load_file(in_folder(name).text, &n);
    char *text = malloc(n + 1);
    assert_non_null(text);
    memcpy(text, bytes, n);
    text[n] = '\0';
    free(bytes);
    return text;
}

/* `text` without the spaces and line ends that make it readable. */
static char *squeezed(const char *text)
{
    char *out = strdup(text), *to = out;
    assert_non_null(out);
    bool inside = false;
    for (const char *p = text; *p; p++) {
        inside ^= *p == '"' && p[-1] != '\\';
        if (inside || (*p != ' ' && *p != '\n'))
            *to++ = *p;
    }
    *to = '\0';
    return out;
}

static void check_has(const char *json, const char *text)
{
    if (!strstr(json, text))
        fail_msg("expected %s in %s", text, json);
}

/* ---- writing ---- */

static void codes_are_described_as_they_are_stored(void)
{
    scaled_tensor *s = scaled_of("w", datatype_of("mxfp4"), 2, shape, false, "hadamard32");
    s->t.dtype = TN_BFLOAT16;
    write_one("t.json", NULL, s);
    char *text = load_text("t.json"), *json = squeezed(text);
    check_has(json, "\"shape\":{\"dimensions\":[2,32]");
    check_has(json, "\"dtype\":{\"base_type\":\"UINT8\",\"byte_order\":\"little_endian\",\"quantization\":{"
                    "\"scheme\":\"tenon:scaled\"}}");
    check_has(json, "\"strides\":[32,1],\"offset_bytes\":0,\"total_bytes\":64,");
    check_has(json, "\"tenon\":{\"dtype\":\"bfloat16\",\"datatype\":\"e2m1fnuz|e8m0_t32\",\"rotation\":"
                    "\"hadamard32\",\"shape\":[2,64],"
                    "\"parts\":[{\"role\":\"scale\",\"dtype\":\"float8_e8m0\",\"shape\":[2,2],\"offset\":256,"
                    "\"size\":4}]}");
    free(json);
    free(text);
    scaled_free(s);
}

/* The id is that of all parts. */
static void other_scales_are_another_tensor(void)
{
    char *ids[2];
    for (int i = 0; i < 2; i++) {
        scaled_tensor *s = scaled_of("w", datatype_of("mxfp4"), 2, shape, false, NULL);
        s->data[1][3] ^= (uint8_t)i;
        write_one("t.json", NULL, s);
        char *text = load_text("t.json");
        ids[i] = strndup(strstr(text, "tensor_id"), 60);
        free(text);
        scaled_free(s);
    }
    CHECK(strcmp(ids[0], ids[1]) != 0);
    free(ids[0]);
    free(ids[1]);
}

/* As many scales as there are, the document stays small. */
static void scales_are_in_the_data(void)
{
    static const int64_t large[] = { 256, 2048 };
    scaled_tensor *s = scaled_of("w", datatype_of("mxfp4"), 2, large, false, NULL);
    write_one("t.json", NULL, s);
    char *text = load_text("t.json");
    CHECK(strlen(text) < 2000);
    free(text);
    tn_file *f = open_file("t.json");
    check_scaled_tensor(f, s);
    CHECK(tn_file_tensor(f, 0)->parts[1].data != NULL);         /* in place */
    tn_close(f);
    scaled_free(s);
}

/* ---- describing ---- */

static char *described(const char *name)
{
    tn_file *f = open_file(name);
    tn_descriptors *set = NULL;
    tn_error err = { .text = "" };
    char *json = NULL;
    size_t n, wrong;
    if (tn_describe(f, NULL, &set, &err))
        fail_msg("%s: %s", name, line_of(&err));
    CHECK(tn_descriptors_count(set) == 1 && tn_descriptor_level(tn_descriptors_at(set, 0), NULL) == 3);
    CHECK(tn_descriptor_check(tn_descriptors_at(set, 0), NULL, &wrong, NULL) == TN_OK && wrong == 0);
    CHECK(tn_descriptors_write(tn_descriptors_at(set, 0), 1, false, &json, &n, NULL) == TN_OK);
    char *text = squeezed(json);
    free(json);
    tn_descriptors_free(set);
    tn_close(f);
    return text;
}

static void a_description_tells_where_all_parts_are(void)
{
    static const char *const names[] = { "t.zt", "t.safetensors", "t.npz", "t.json" };
    scaled_tensor *s = scaled_of("w", datatype_of("nvfp4"), 2, shape, false, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_one(names[i], NULL, s);
        tn_file *f = open_file(names[i]);
        const tn_tensor *t = tn_file_tensor(f, 0);
        char *json = described(names[i]), expected[400];
        check_has(json, "\"scheme\":\"tenon:scaled\"");
        snprintf(expected, sizeof expected,
                 "\"datatype\":\"e2m1fnuz|multi_float32_e4m3fn_t16\",\"shape\":[2,64],\"parts\":["
                 "{\"role\":\"scale\",\"dtype\":\"float8_e4m3fn\",\"shape\":[2,4],\"encoding\":\"raw\","
                 "\"offset\":%llu,\"size\":8},"
                 "{\"role\":\"tscale\",\"dtype\":\"float32\",\"shape\":[],\"encoding\":\"raw\",\"offset\":%"
                 "llu,\"size\":4}]",
                 (unsigned long long)stored_info(&t->parts[1]).offset,
                 (unsigned long long)stored_info(&t->parts[2]).offset);
        check_has(json, expected);
        free(json);
        tn_close(f);
    }
    scaled_free(s);
}

static void a_table_of_values_is_described_too(void)
{
    scaled_tensor *s =
        scaled_of("w", datatype_of("cb31[0.5:1:1.5;1:2:3]_e2m3fnuz|e8m0_t32s8"), 2, shape, true, NULL);
    write_one("t.zt", NULL, s);
    char *json = described("t.zt");
    check_has(
        json,
        "\"datatype\":\"cb31[0.5:1:1.5;1:2:3]_e2m3fnuz|e8m0_t32s8\",\"unpacked\":true,\"shape\":[2,64]");
    check_has(json, "\"dimensions\":[2,64]");
    free(json);
    scaled_free(s);
}

/* ---- reading ---- */

#define HEAD "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"w\","
#define MEMORY "\"memory\":{\"offset_bytes\":0}"
#define CODES HEAD "\"shape\":[2,16],\"dtype\":{\"base_type\":\"UINT8\",\"quantization\":{\"scheme\":\"tenon:scaled\"}}," MEMORY ","
#define SCALE "{\"role\":\"scale\",\"dtype\":\"float8_e8m0\",\"shape\":[2,1],\"offset\":64}"
#define GOOD CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[" SCALE "]}}"

static void put_data(size_t n)
{
    char bytes[257];
    memset(bytes, 'a', sizeof bytes);
    bytes[n] = '\0';
    put_file("t.bin", bytes);
}

static void a_document_made_by_hand_is_read(void)
{
    put_data(66);
    put_file("t.json", GOOD);
    tn_file *f = open_file("t.json");
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(tn_file_count(f) == 1 && t->form == TN_FORM_SCALED && t->dtype == TN_FLOAT32 && t->rank == 2 &&
          t->shape[1] == 32);
    CHECK(t->nparts == 2 && t->parts[0].nbytes == 32 && t->parts[1].nbytes == 2 &&
          stored_info(&t->parts[1]).offset == 64);
    assert_string_equal(t->scaling->datatype, "e2m1fnuz|e8m0_t32");
    CHECK(tn_convert(f, in_folder("u.zt").text, NULL, NULL, NULL) == TN_OK);      /* nothing is left out */
    tn_close(f);
}

static void documents_that_lie_are_refused(void)
{
    static const struct { const char *json, *text; tn_status status;
    } cases[] = {
        { CODES "\"tenon\":{}}",
          "tenon: expected datatype and shape with the scheme \"tenon:scaled\" but found no shape",
          TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"shape\":[2,32]}}", "but found no datatype", TN_ERR_CORRUPT },
        { HEAD "\"shape\":[2,16],\"dtype\":{\"base_type\":\"UINT8\",\"quantization\":{\"scheme\":\"tenon:"
               "scaled\"}}," MEMORY "}",
          "but found no shape", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32]}}",
          "its datatype has 2 parts but found 1", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[" SCALE "," SCALE "]}}",
          "part 2 of form \"scaled\"", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,33],\"parts\":[" SCALE "]}}",
          "its part \"data\" does not have", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"unpacked\":true,\"shape\":[2,32],\"parts\":[" SCALE
                "]}}",
          "its part \"data\" does not have", TN_ERR_CORRUPT },
        { CODES
          "\"tenon\":{\"datatype\":\"mxfp4\",\"rotation\":\"walsh64\",\"shape\":[2,32],\"parts\":[" SCALE
          "]}}",
          "a rotation of 64 values needs a dimension", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"rotation\":\"walsh\",\"shape\":[2,32],\"parts\":[" SCALE
                "]}}",
          "tenon: \"walsh\": expected a size", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp\",\"shape\":[2,32],\"parts\":[" SCALE "]}}",
          "its datatype \"mxfp\"", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":4,\"shape\":[2,32],\"parts\":[" SCALE "]}}",
          "tenon: expected a string", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"a\\u0000\",\"shape\":[2,32],\"parts\":[" SCALE "]}}",
          "without NUL", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[-2],\"parts\":[" SCALE "]}}", "tenon: expected",
          TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[9223372036854775808],\"parts\":[]}}",
          "tenon: ", TN_ERR_LIMIT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"role\":\"scale\"}]}}",
          "tenon: expected role, dtype, shape and offset of a part", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"role\":\"scale\",\"dtype\":"
                "\"uint9\"}]}}",
          "tenon: type \"uint9\" is not known to this build", TN_ERR_UNSUPPORTED },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"encoding\":\"zstd\"}]}}",
          "tenon: expected a part whose encoding is raw", TN_ERR_UNSUPPORTED },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[" SCALE "," SCALE "," SCALE
                "," SCALE "," SCALE "," SCALE "," SCALE "]}}",
          "tenon: expected at most 6 parts but found more", TN_ERR_LIMIT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"role\":\"scale\",\"dtype\":"
                "\"float8_e8m0\",\"shape\":[2,1],"
                "\"offset\":65}]}}",
          "its part \"scale\" takes 2 bytes from 65 on but ", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"role\":\"scale\",\"dtype\":"
                "\"float8_e8m0\",\"shape\":[2,1],"
                "\"offset\":18446744073709551615}]}}",
          "its part \"scale\" takes 2 bytes from 18446744073709551615 on but ", TN_ERR_CORRUPT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"role\":\"scale\",\"dtype\":"
                "\"float8_e8m0\","
                "\"shape\":[9223372036854775807,2],\"offset\":0}]}}",
          "the shape of its part \"scale\" takes more than 2^63 bytes", TN_ERR_LIMIT },
        { CODES "\"tenon\":{\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[{\"file\":\"other.bin\","
                "\"role\":\"scale\",\"dtype\":"
                "\"float8_e8m0\",\"shape\":[2,1],\"offset\":64}]}}",
          "expected a part in the same file as the first", TN_ERR_UNSUPPORTED },
        { CODES "\"tenon\":{\"dtype\":\"int8\",\"datatype\":\"mxfp4\",\"shape\":[2,32],\"parts\":[" SCALE
                "]}}",
          "its values must be of a signed float type", TN_ERR_CORRUPT },
    };
    put_data(66);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        put_file("t.json", cases[i].json);
        tn_status status = tn_open(in_folder("t.json").text, NULL, &f, &err);
        if (status != cases[i].status || !strstr(line_of(&err), cases[i].text))
            fail_msg("case %zu: expected %d \"%s\" but found %d: %s", i, cases[i].status, cases[i].text,
                     status, line_of(&err));
    }
}

/* Without the scheme they are what they were before there were datatypes: numbers. */
static void a_datatype_counts_with_its_scheme_only(void)
{
    put_data(66);
    put_file("t.json", HEAD "\"shape\":[2,16],\"dtype\":{\"base_type\":\"UINT8\"}," MEMORY
                            ",\"tenon\":{\"datatype\":7,\"parts\":{}}}");
    tn_file *f = open_file("t.json");
    CHECK(tn_file_tensor(f, 0)->form == TN_FORM_DENSE);
    tn_close(f);
    put_file(
        "t.json", HEAD
        "\"shape\":[2,16],\"dtype\":{\"base_type\":\"UINT8\",\"quantization\":{\"scheme\":\"other\"}}," MEMORY
        ",\"tenon\":{\"datatype\":7}}");
    f = open_file("t.json");
    CHECK(strcmp(tn_tensor_form_name(tn_file_tensor(f, 0)), "quantized") == 0);
    tn_close(f);
}

static void walk_document(const char *json, size_t n)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    FILE *out = fopen(in_folder("t.json").text, "w");
    assert_non_null(out);
    CHECK(fwrite(json, 1, n, out) == n && fclose(out) == 0);
    const tn_open_options options = { .size = sizeof options, .format = "raw" };
    tn_status status = tn_open(in_folder("t.json").text, &options, &f, &err);
    if (status)
        walk_error(&err, status);
    else
        walk_file(f);
    tn_close(f);
}

static void every_truncation_and_flip_of_a_document_is_handled(void)
{
    static const char good[] = GOOD;
    size_t n = strlen(good);
    put_data(66);
    for (size_t cut = 0; cut < n; cut++)
        walk_document(good, cut);
    char *copy = strdup(good);
    assert_non_null(copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (char)(good[i] ^ 1 << i % 8);
        walk_document(copy, n);
        copy[i] = good[i] ^ 0x15;               /* another letter or digit */
        walk_document(copy, n);
        copy[i] = good[i];
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(codes_are_described_as_they_are_stored),
        IN_FOLDER(other_scales_are_another_tensor),
        IN_FOLDER(scales_are_in_the_data),
        IN_FOLDER(a_description_tells_where_all_parts_are),
        IN_FOLDER(a_table_of_values_is_described_too),
        IN_FOLDER(a_document_made_by_hand_is_read),
        IN_FOLDER(documents_that_lie_are_refused),
        IN_FOLDER(a_datatype_counts_with_its_scheme_only),
        IN_FOLDER(every_truncation_and_flip_of_a_document_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
