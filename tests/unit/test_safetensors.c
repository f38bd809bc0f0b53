/* Reading safetensors: headers, metadata, records, fillers. */
#include "stored.h"
#include "safetensors_bytes.h"

#include "store/format.h"

#include <stdio.h>

/* ---- files in memory ---- */

static tn_status open_bytes(const void *bytes, size_t n, tn_file **file, tn_error *err)
{
    tn_open_options options = { .size = sizeof options, .format = "safetensors" };
    return tn_open_memory(bytes, n, &options, file, err);
}

/* The caller closes the file, then frees the bytes. */
static tn_file *open_good(const char *json, size_t data_size, uint8_t **bytes)
{
    size_t n;
    tn_file *file;
    tn_error err;
    *bytes = make_file(json, data_size, &n);
    tn_status status = open_bytes(*bytes, n, &file, &err);
    if (status)
        print_error("%s\n", line_of(&err));
    CHECK(status == TN_OK);
    return file;
}

static void check_refused(const char *json, size_t data_size, tn_status expected, const char *text)
{
    size_t n;
    tn_file *file;
    tn_error err;
    uint8_t *bytes = make_file(json, data_size, &n);
    tn_status status = open_bytes(bytes, n, &file, &err);
    if (status != expected || !strstr(line_of(&err), text))
        print_error("%s\n  expected %d \"%s\"\n  found %d \"%s\"\n", json, expected, text, status,
                    status ? line_of(&err) : "");
    CHECK(status == expected && err.status == expected && strstr(line_of(&err), text));
    CHECK(open_bytes(bytes, n, &file, NULL) == expected);
    free(bytes);
}

/* ---- reading ---- */

static void a_small_file_is_listed_and_read(void)
{
    uint8_t *bytes, got[8];
    tn_file *file = open_good("{\"__metadata__\":{\"format\":\"pt\"},"
                              "\"a\":{\"dtype\":\"I16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
                              "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}   ", 9, &bytes);
    CHECK(tn_file_count(file) == 2 && file_has_text(file, "format", "pt"));
    const tn_tensor *a = tn_file_find(file, "a"), *b = tn_file_find(file, "b");
    CHECK(a && a->dtype == TN_INT16 && a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 2 &&
          a->nparts == 1);
    CHECK(b && b->dtype == TN_UINT8 && b->rank == 0 && strcmp(stored_info(&b->parts[0]).type, "U8") == 0);
    CHECK(tn_part_read(file, &a->parts[0], got, 8, NULL) == TN_OK &&
          memcmp(got, "\1\2\3\4\5\6\7\10", 8) == 0);
    CHECK(tn_part_read(file, &b->parts[0], got, 1, NULL) == TN_OK && got[0] == 9);
    tn_close(file);
    free(bytes);
}

static void every_type_has_its_spelling(void)
{
    static const struct { const char *spelling; tn_dtype dtype; unsigned bits; } types[] = {
        { "BOOL", TN_BOOL, 8 }, { "F4", TN_FLOAT4_E2M1, 4 }, { "F6_E2M3", TN_FLOAT6_E2M3, 6 },
        { "F6_E3M2", TN_FLOAT6_E3M2, 6 }, { "U8", TN_UINT8, 8 }, { "I8", TN_INT8, 8 },
        { "F8_E5M2", TN_FLOAT8_E5M2, 8 }, { "F8_E4M3", TN_FLOAT8_E4M3FN, 8 },
        { "F8_E8M0", TN_FLOAT8_E8M0, 8 },
        { "F8_E4M3FNUZ", TN_FLOAT8_E4M3FNUZ, 8 }, { "F8_E5M2FNUZ", TN_FLOAT8_E5M2FNUZ, 8 },
        { "I16", TN_INT16, 16 }, { "U16", TN_UINT16, 16 }, { "F16", TN_FLOAT16, 16 },
        { "BF16", TN_BFLOAT16, 16 },
        { "I32", TN_INT32, 32 }, { "U32", TN_UINT32, 32 }, { "F32", TN_FLOAT32, 32 },
        { "C64", TN_COMPLEX64, 64 },
        { "F64", TN_FLOAT64, 64 }, { "I64", TN_INT64, 64 }, { "U64", TN_UINT64, 64 },
        { "float32", TN_UNKNOWN, 32 }, { "f32", TN_UNKNOWN, 32 }, { "", TN_UNKNOWN, 8 },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char json[200];
        uint8_t *bytes;
        snprintf(json, sizeof json, "{\"x\":{\"dtype\":\"%s\",\"shape\":[4,2],\"data_offsets\":[0,%u]}}",
                 types[i].spelling, types[i].bits);
        tn_file *file = open_good(json, types[i].bits, &bytes);
        CHECK(tn_file_tensor(file, 0)->dtype == types[i].dtype);
        CHECK(strcmp(stored_info(&tn_file_tensor(file, 0)->parts[0]).type, types[i].spelling) == 0);
        tn_close(file);
        free(bytes);
    }
}

static void an_unknown_type_is_listed_but_not_read(void)
{
    uint8_t *bytes, got[3];
    tn_error err;
    tn_file *file = open_good("{\"x\":{\"dtype\":\"F12\",\"shape\":[2],\"data_offsets\":[0,3]}}", 3, &bytes);
    const tn_tensor *x = tn_file_find(file, "x");
    CHECK(x->dtype == TN_UNKNOWN && stored_info(&x->parts[0]).bytes == 3 && x->parts[0].nbytes == 0);
    CHECK(tn_part_read(file, &x->parts[0], got, 0, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "F12"));
    tn_close(file);
    free(bytes);
    check_refused("{\"x\":{\"dtype\":\"F12\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3, TN_ERR_CORRUPT,
                  "hole");
}

static void fields_may_come_in_any_order_and_unknown_ones_are_ignored(void)
{
    uint8_t *bytes;
    tn_file *file = open_good("{ \"e\" : {\"data_offsets\":[0,0], \"later\":[{\"dtype\":1}], "
                              "\"shape\":[0,7], \"dtype\":\"F32\"} ,\n"
                              "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
                              "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                              "\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
                              3, &bytes);
    CHECK(tn_file_count(file) == 4 && strcmp(tn_file_tensor(file, 1)->name, "b") == 0);
    tn_close(file);
    free(bytes);
    file = open_good("{}", 0, &bytes);
    CHECK(tn_file_count(file) == 0);
    tn_close(file);
    free(bytes);
}

static void bad_headers_are_refused_with_the_reason(void)
{
    static const struct { const char *json; size_t data; tn_status status; const char *text; } bad[] = {
        { "", 0, TN_ERR_CORRUPT, "header of 0 bytes" },
        { " {}", 0, TN_ERR_CORRUPT, "begin with '{' but found \" \"" },
        { "{", 0, TN_ERR_TRUNCATED, "the text ends" },
        { "{}x", 0, TN_ERR_CORRUPT, "expected the end" },
        { "{\"\xff\":1}", 0, TN_ERR_CORRUPT, "UTF-8" },
        { "{\"a\":1}", 0, TN_ERR_CORRUPT, "tensor \"a\": expected an object but found a number" },
        { "{" U8("a", 0, 1, 1) "," U8("a", 1, 2, 1) "}", 2, TN_ERR_CORRUPT, "tensor \"a\": it is listed twice" },
        { "{" U8("a", 0, 1, 1) "," U8("a", 0, 1, 1) "}", 1, TN_ERR_CORRUPT, "tensor \"a\": it is listed twice" },
        { "{" U8("a", 0, 1, 1) "," U8("b", 0, 1, 1) "}", 1, TN_ERR_CORRUPT, "overlaps" },
        { "{" U8("a", 0, 2, 2) "," U8("b", 1, 3, 2) "}", 3, TN_ERR_CORRUPT, "overlaps" },
        { "{" U8("a", 0, 1, 1) "," U8("b", 2, 3, 1) "}", 3, TN_ERR_CORRUPT, "hole" },
        { "{" U8("a", 1, 2, 1) "}", 2, TN_ERR_CORRUPT, "hole" },
        { "{" U8("a", 0, 1, 1) "}", 2, TN_ERR_CORRUPT, "hole" },
        { "{}", 1, TN_ERR_CORRUPT, "hole" },
        { "{" U8("a", 0, 3, 3) "}", 2, TN_ERR_CORRUPT, "data ends at 3 but the data section has 2 bytes" },
        { "{" U8("a", 2, 1, 1) "}", 2, TN_ERR_CORRUPT, "data begins at 2 but ends at 1" },
        { "{" U8("a", 0, 18446744073709551615, 1) "}", 2, TN_ERR_CORRUPT, "18446744073709551615" },
        { "{" U8("a", 0, 18446744073709551616, 1) "}", 2, TN_ERR_LIMIT, "64 bits" },
        { "{" U8("a", 0, 1, 2) "}", 1, TN_ERR_CORRUPT, "shape and type take 2 bytes but 1 are stored" },
        { "{" U8("a", 0, 1, -1) "}", 1, TN_ERR_CORRUPT, "not negative" },
        { "{" U8("a", 0, 1, 1.0) "}", 1, TN_ERR_CORRUPT, "expected an integer" },
        { "{" U8("a", 0, 0, 9223372036854775808) "}", 0, TN_ERR_LIMIT,
          "below 2^63 but found 9223372036854775808" },
        { "{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
          TN_ERR_LIMIT, "its shape takes more than 2^" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, TN_ERR_CORRUPT,
          "expected 2 data_offsets but found 1" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1, TN_ERR_CORRUPT,
          "but found 3" },
        { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, TN_ERR_CORRUPT, "it has no dtype" },
        { "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, TN_ERR_CORRUPT, "it has no shape" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, TN_ERR_CORRUPT, "it has no data_offsets" },
        { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
          TN_ERR_CORRUPT, "dtype is there twice" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, TN_ERR_CORRUPT,
          "shape is there twice" },
        { "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, TN_ERR_CORRUPT,
          "expected a string but found a number" },
        { "{\"a\":{\"dtype\":\"F\\u0000\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, TN_ERR_CORRUPT, "NUL" },
        { "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, TN_ERR_CORRUPT,
          "NUL" },
        { "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, TN_ERR_CORRUPT,
          "3 elements of F4 do not fill whole bytes" },
        { "{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, TN_ERR_CORRUPT,
          "do not fill whole bytes" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(bad[i].json, bad[i].data, bad[i].status, bad[i].text);
}

static void a_rank_of_64_is_read_and_65_is_refused(void)
{
    char json[300] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1";
    for (int i = 1; i < 64; i++)
        strcat(json, ",1");
    char longer[400];
    snprintf(longer, sizeof longer, "%s,1],\"data_offsets\":[0,1]}}", json);
    strcat(json, "],\"data_offsets\":[0,1]}}");
    uint8_t *bytes;
    tn_file *file = open_good(json, 1, &bytes);
    CHECK(tn_file_tensor(file, 0)->rank == 64);
    tn_close(file);
    free(bytes);
    check_refused(longer, 1, TN_ERR_LIMIT, "at most 64 dimensions");
}

static void a_length_that_lies_is_refused(void)
{
    static const struct { uint64_t length; tn_status status; const char *text; } lies[] = {
        { 3, TN_ERR_TRUNCATED, "takes 3 bytes but the file has 2" },
        { 100000000, TN_ERR_TRUNCATED, "100000000" },
        { 100000001, TN_ERR_LIMIT, "at most 100000000 bytes but found 100000001" },
        { UINT64_MAX, TN_ERR_LIMIT, "18446744073709551615" },
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        size_t n;
        tn_file *file;
        tn_error err;
        uint8_t *bytes = make_file("{}", 0, &n);
        for (int k = 0; k < 8; k++)
            bytes[k] = (uint8_t)(lies[i].length >> 8 * k);
        CHECK(open_bytes(bytes, n, &file, &err) == lies[i].status && strstr(line_of(&err), lies[i].text));
        free(bytes);
    }
}

static void metadata_is_kept_in_order_wherever_it_stands(void)
{
    static const char *const files[] = {
        "{\"__metadata__\":{\"b\":\"1\",\"a\":\"\",\"\":\"x\"}," U8("t", 0, 1, 1) "}",
        "{" U8("t", 0, 1, 1) ",\"__metadata__\":{\"b\":\"1\",\"a\":\"\",\"\":\"x\"}}",
        "{" U8("t", 0, 1, 1) ",\"__met\\u0061data__\":{\"\\u0062\":\"1\",\"a\":\"\",\"\":\"x\"}}",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        uint8_t *bytes;
        size_t n;
        tn_file *file = open_good(files[i], 1, &bytes);
        const tn_meta *m = tn_file_meta(file, &n);
        CHECK(n == 3 && strcmp(m[0].key, "b") == 0 && strcmp(m[1].key, "a") == 0 &&
              strcmp(m[2].key, "") == 0);
        CHECK(strcmp(m[0].text, "1") == 0 && strcmp(m[1].text, "") == 0 && strcmp(m[2].text, "x") == 0);
        tn_close(file);
        free(bytes);
    }
}

static void bad_metadata_is_refused(void)
{
    check_refused("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, TN_ERR_CORRUPT,
                  "metadata key \"a\" is there twice");
    check_refused("{\"__metadata__\":{\"a\":1}}", 0, TN_ERR_CORRUPT,
                  "metadata key \"a\": expected a string but found a number");
    check_refused("{\"__metadata__\":[]}", 0, TN_ERR_CORRUPT,
                  "__metadata__: expected an object but found an array");
    check_refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, TN_ERR_CORRUPT,
                  "__metadata__ is there twice");
    check_refused("{\"__metadata__\":{\"a\":\"x\\u0000\"}}", 0, TN_ERR_CORRUPT, "NUL");
    check_refused("{\"__metadata__\":{\"a\\u0000\":\"x\"}}", 0, TN_ERR_CORRUPT, "NUL");
}

/* Opens and reads everything; gives false when the file is refused. */
static bool open_and_read(const uint8_t *bytes, size_t n)
{
    tn_file *file;
    tn_error err = { 0 };
    if (open_bytes(bytes, n, &file, &err)) {
        CHECK(err.status != TN_OK && err.text[0]);
        return false;
    }
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_part *p = &tn_file_tensor(file, i)->parts[0];
        uint8_t *buffer = malloc(p->nbytes + 1);
        tn_status status = tn_part_read(file, p, buffer, (size_t)p->nbytes, &err);
        CHECK(status == TN_OK || (status == TN_ERR_UNSUPPORTED && p->array.dtype == TN_UNKNOWN));
        free(buffer);
    }
    tn_close(file);
    return true;
}

static void every_truncation_is_refused(void)
{
    size_t size;
    uint8_t *whole = make_file(SAMPLE, 12, &size);
    for (size_t n = 0; n <= size; n++) {
        uint8_t *copy = exact_copy(whole, n);
        CHECK(open_and_read(copy, n) == (n == size));
        free(copy);
    }
    free(whole);
}

static void a_changed_byte_anywhere_does_no_harm(void)
{
    size_t size, refused = 0;
    uint8_t *whole = make_file(SAMPLE, 12, &size);
    for (size_t i = 0; i < size; i++) {
        static const uint8_t changes[] = { 0x01, 0x80, 0xff, '"' ^ 'x', 0x10 };
        for (size_t k = 0; k < sizeof changes; k++) {
            uint8_t *copy = exact_copy(whole, size);
            copy[i] ^= changes[k];
            refused += !open_and_read(copy, size);
            free(copy);
        }
    }
    CHECK(refused > size);          /* most of the header cannot change in most of these ways */
    free(whole);
}

static void the_probe_knows_both_kinds_of_file(void)
{
    size_t n;
    uint8_t *bytes = make_file("{}", 0, &n);
    const tn_format *f = &tn_format_safetensors;
    CHECK(f->probe(bytes, n) > 80 && f->probe(bytes, 8) == 0 && f->probe(bytes, 0) == 0);
    bytes[7] = 1;
    CHECK(f->probe(bytes, n) > 0 && f->probe(bytes, n) < 50);
    free(bytes);
    static const char index[] = " {\"metadata\":{},\"weight_map\":{}}";
    CHECK(f->probe((const uint8_t *)index, strlen(index)) > 50);
    CHECK(f->probe((const uint8_t *)"{\"weight\":1}", 12) == 0);
    static const char inside[] = "{\"metadata\":{\"weight_map\":{}}}";
    CHECK(f->probe((const uint8_t *)inside, strlen(inside)) < 50);
}

/* Wherever the bytes end, half a character included. */
static void the_probe_of_an_index_needs_no_whole_text(void)
{
    static const char index[] =
        "{\"metadata\":{\"a\":\"\\u00e9\303\251\"},\"weight_map\":{\"\303\251\":\"f\"}}";
    const tn_format *f = &tn_format_safetensors;
    size_t key = (size_t)(strstr(index, "\"weight_map\":") - index) + strlen("\"weight_map\":");
    for (size_t n = 0; n < sizeof index; n++) {
        uint8_t *copy = exact_copy(index, n);
        CHECK(n >= key ? f->probe(copy, n) == 80 : f->probe(copy, n) < 50);
        free(copy);
    }
}

static void an_index_in_memory_is_unsupported(void)
{
    static const char index[] = "{\"metadata\":{},\"weight_map\":{}}";
    tn_file *file;
    tn_error err;
    CHECK(tn_open_memory(index, strlen(index), NULL, &file, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "by path"));
}

/* ---- records ---- */

static void a_record_gives_type_and_metadata_back(void)
{
    uint8_t *bytes;
    tn_file *file = open_good(SAMPLE, 12, &bytes);
    size_t n;
    const tn_meta *meta = tn_file_meta(file, &n);
    CHECK(n == 2 && strcmp(meta[0].text, "v\n") == 0 && !meta[1].text && meta[1].cbor_size == 1 &&
          meta[1].cbor[0] == 7);
    CHECK(tn_file_count(file) == 2 && !tn_file_find(file, "__tenon_filler_0__"));
    const tn_tensor *i = tn_file_find(file, "i");
    CHECK(i->dtype == TN_INT4 && i->rank == 1 && i->shape[0] == 3 && i->nmeta == 2);
    CHECK(strcmp(i->meta[0].key, "m") == 0 && i->meta[0].cbor_size == 2 &&
          memcmp(i->meta[0].cbor, "\x41\x01", 2) == 0);
    CHECK(strcmp(i->meta[1].key, "n") == 0 && i->meta[1].cbor_size == 4 && i->meta[1].cbor[0] == 0x81);
    tn_close(file);
    free(bytes);
}

static void a_record_of_no_tensor_is_plain_metadata(void)
{
    uint8_t *bytes;
    tn_file *file = open_good("{\"__metadata__\":{\"tenon:x\":\"anything\",\"tenonx\":\"1\"}}", 0, &bytes);
    CHECK(file_has_text(file, "tenon:x", "anything") && file_has_text(file, "tenonx", "1"));
    tn_close(file);
    free(bytes);
}

static void bad_records_are_refused(void)
{
    static const struct { const char *key, *value, *text; } bad[] = {
        { "tenon:t", "anything", "expected a record of Tenon" },
        { "tenon:t", "[]", "expected an object but found an array" },
        { "tenon:t", "{} x", "expected the end" },
        { "tenon:t", "{\\\"dtype\\\":\\\"int4\\\"}", "both dtype and shape" },
        { "tenon:t", "{\\\"dtype\\\":\\\"int4\\\",\\\"shape\\\":[7]}",
          "not kept in an array of this type and shape" },
        { "tenon:t", "{\\\"meta\\\":{},\\\"meta\\\":{}}", "the field \"meta\" is there twice" },
        { "tenon:t", "{\\\"meta\\\":7}", "expected an object" },
        { "tenon:t", "{\\\"meta\\\":{\\\"a\\\":1,\\\"a\\\":1}}", "there twice" },
        { "tenon:t", "{\\\"meta\\\":{},\\\"cbor\\\":{\\\"a\\\":\\\"01\\\"}}",
          "expected key \"a\" of \"cbor\" in \"meta\"" },
        { "tenon:t", "{\\\"meta\\\":{\\\"a\\\":1},\\\"cbor\\\":{\\\"a\\\":\\\"01\\\"}}", "expected null" },
        { "tenon:t", "{\\\"meta\\\":{\\\"a\\\":null},\\\"cbor\\\":{\\\"a\\\":\\\"0\\\"}}",
          "expected one CBOR item in hexadecimal" },
        { "tenon:t", "{\\\"meta\\\":{\\\"a\\\":null},\\\"cbor\\\":{\\\"a\\\":\\\"0x\\\"}}",
          "expected one CBOR item in hexadecimal" },
        { "tenon:t", "{\\\"meta\\\":{\\\"a\\\":null},\\\"cbor\\\":{\\\"a\\\":\\\"0101\\\"}}",
          "expected one CBOR item in hexadecimal" },
        { "tenon:t", "{\\\"meta\\\":{\\\"a\\\":null},\\\"cbor\\\":{\\\"a\\\":\\\"41\\\"}}",
          "expected one CBOR item in hexadecimal" },
        { "tenon", "x", "expected a record of Tenon" },
        { "tenon", "{\\\"fillers\\\":1}", "expected a record of Tenon" },
        { "tenon", "{\\\"meta\\\":{\\\"a\\\":1,\\\"a\\\":2}}", "there twice" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[600];
        snprintf(json, sizeof json, "{\"__metadata__\":{\"%s\":\"%s\"}," U8("t", 0, 1, 1) "}", bad[i].key,
                 bad[i].value);
        check_refused(json, 1, TN_ERR_CORRUPT, bad[i].text);
    }
}

/* Entries that differ in name and place only take a shorter way through the reader. */
static void entries_written_alike_are_checked_one_by_one(void)
{
    static const struct { const char *offsets; tn_status status; const char *text; } bad[] = {
        { "[2,6]", TN_ERR_CORRUPT, "data ends at 6 but the data section has 4 bytes" },
        { "[3,2]", TN_ERR_CORRUPT, "data begins at 3 but ends at 2" },
        { "[2,3]", TN_ERR_CORRUPT, "shape and type take 2 bytes but 1 are stored" },
        { "[02,4]", TN_ERR_CORRUPT, "leading zeros" },
        { "[2,4,5]", TN_ERR_CORRUPT, "expected 2 data_offsets but found 3" },
        { "[,4]", TN_ERR_CORRUPT, "expected a number but found ','" },
        { "[2,-4]", TN_ERR_CORRUPT, "not negative but found -4" },
        { "[2,18446744073709551616]", TN_ERR_LIMIT, "an integer of 64 bits" },
        { "[1,3]", TN_ERR_CORRUPT, "overlaps" },
        { "[2,4]]", TN_ERR_CORRUPT, "found ']'" },
        { "[2,4],\"shape\":[2]", TN_ERR_CORRUPT, "shape is there twice" },
    };
    const char *first = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                        "\"%s\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":%s}}";
    char json[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(json, sizeof json, first, "b", bad[i].offsets);
        check_refused(json, 4, bad[i].status, bad[i].text);
    }
    snprintf(json, sizeof json, first, "a", "[2,4]");
    check_refused(json, 4, TN_ERR_CORRUPT, "listed twice");
    static const char *const good[] = { "[2,4]", "[ 2 ,4 ]", "[2,4],\"more\":null" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint8_t *bytes, got[2];
        snprintf(json, sizeof json, first, "\\u0062", good[i]);
        tn_file *file = open_good(json, 4, &bytes);
        const tn_tensor *b = tn_file_find(file, "b");
        CHECK(b && b->dtype == TN_UINT8 && b->rank == 1 && b->shape[0] == 2);
        CHECK(tn_part_read(file, &b->parts[0], got, 2, NULL) == TN_OK && memcmp(got, "\3\4", 2) == 0);
        tn_close(file);
        free(bytes);
    }
}

static void fillers_are_ordinary_tensors_without_the_mark(void)
{
    uint8_t *bytes;
    tn_file *file = open_good("{" U8("__tenon_filler_0__", 0, 1, 1) "}", 1, &bytes);
    CHECK(tn_file_count(file) == 1 && tn_file_find(file, "__tenon_filler_0__"));
    tn_close(file);
    free(bytes);
    check_refused("{\"__metadata__\":{\"tenon\":\"{\\\"fillers\\\":true}\"}," U8(
                      "__tenon_filler_0__", 0, 1, 1) "," U8("__tenon_filler_0__", 1, 2, 1) "}",
                  2, TN_ERR_CORRUPT, "listed twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_small_file_is_listed_and_read),
        TEST(every_type_has_its_spelling),
        TEST(an_unknown_type_is_listed_but_not_read),
        TEST(fields_may_come_in_any_order_and_unknown_ones_are_ignored),
        TEST(bad_headers_are_refused_with_the_reason),
        TEST(a_rank_of_64_is_read_and_65_is_refused),
        TEST(a_length_that_lies_is_refused),
        TEST(metadata_is_kept_in_order_wherever_it_stands),
        TEST(bad_metadata_is_refused),
        TEST(every_truncation_is_refused),
        TEST(a_changed_byte_anywhere_does_no_harm),
        TEST(the_probe_knows_both_kinds_of_file),
        TEST(the_probe_of_an_index_needs_no_whole_text),
        TEST(an_index_in_memory_is_unsupported),
        TEST(a_record_gives_type_and_metadata_back),
        TEST(a_record_of_no_tensor_is_plain_metadata),
        TEST(bad_records_are_refused),
        TEST(entries_written_alike_are_checked_one_by_one),
        TEST(fillers_are_ordinary_tensors_without_the_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
