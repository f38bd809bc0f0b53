/* ONNX: models of the original libraries, edge files, damaged models, data in other files. */
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "bytes/proto.h"
#include "files.h"
#include "folder.h"
#include "verdicts.h"
#include "walk.h"

#define ONNX TEST_GOLDEN "/onnx"
#define EDGE ONNX "/edge"

static tn_file *open_onnx(const char *name, tn_io io)
{
    return open_at(ONNX, name, NULL, io);
}

/* ---- what is in the models ---- */

/* Rows of one file follow each other, in the order of its tensors. */
static struct { char file[100]; size_t next; } at;

static void check_unread(const tn_file *f, const tn_tensor *t, char *field[TABLE_FIELDS])
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    uint8_t byte;
    tn_error err;
    assert_string_equal(type ? type->name : "-", field[2]);
    check_shape(t, field[3]);
    CHECK(t->nparts == 1 && tn_part_read(f, &t->parts[0], &byte, 1, &err) != TN_OK);
}

static void check_tensor(const tn_file *f, char *field[TABLE_FIELDS])
{
    const tn_tensor *t = tn_file_find(f, field[1]);
    bool coo = strcmp(field[5], "-") != 0;
    assert_non_null(t);
    CHECK(t == tn_file_tensor(f, at.next));
    if (strcmp(field[4], "-") == 0) {
        check_unread(f, t, field);
        return;
    }
    CHECK(t == check_listed_tensor(f, field));
    CHECK(t->form == (coo ? TN_FORM_COO : TN_FORM_DENSE) && t->nparts == (coo ? 2u : 1u));
    if (coo)
        check_sha256(f, &t->parts[1], field[5]);
}

static void check_row(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 6);
    at.next = strcmp(at.file, field[0]) == 0 ? at.next + 1 : 0;
    snprintf(at.file, sizeof at.file, "%s", field[0]);
    for (tn_io io = TN_IO_MMAP; io <= TN_IO_PREAD; io++) {
        tn_file *f = open_onnx(field[0], io);
        assert_string_equal(tn_file_format(f), "onnx");
        check_tensor(f, field);
        tn_close(f);
    }
}

static void every_golden_model_reads_to_what_its_manifest_says(void)
{
    CHECK(each_row(ONNX "/tensors.tsv", check_row) == 221);
}

static struct { char file[100]; size_t keys; } meta;

static void end_meta(void)
{
    size_t n = 0;
    tn_file *f = *meta.file ? open_onnx(meta.file, TN_IO_AUTO) : NULL;
    tn_file_meta(f, &n);
    CHECK(n == meta.keys);
    CHECK(!tn_file_warning(f, 0) || strcmp(meta.file, "sparse.onnx") == 0);
    tn_close(f);
}

static void check_meta_row(char *field[TABLE_FIELDS], size_t n)
{
    char json[200];
    CHECK(n == 3);
    if (strcmp(meta.file, field[0]) != 0) {
        end_meta();
        snprintf(meta.file, sizeof meta.file, "%s", field[0]);
        meta.keys = 0;
    }
    meta.keys++;
    tn_file *f = open_onnx(field[0], TN_IO_AUTO);
    const tn_meta *all = tn_file_meta(f, &n);
    size_t k = 0;
    while (k < n && strcmp(all[k].key, field[1]) != 0)
        k++;
    CHECK(k < n && tn_meta_json(&all[k], json, sizeof json) < sizeof json);
    assert_string_equal(json, field[2]);
    tn_close(f);
}

static void every_golden_model_has_the_metadata_of_its_manifest(void)
{
    CHECK(each_row(ONNX "/metadata.tsv", check_meta_row) == 85);
    end_meta();
}

static void equal_ranges_of_another_file_are_tied(void)
{
    tn_file *f = open_onnx("external_tied.onnx", TN_IO_AUTO);
    assert_string_equal(tn_file_find(f, "w0_tied")->tied, "w0");
    CHECK(!tn_file_find(f, "w0")->tied && tn_file_shards(f) == 2);
    tn_close(f);
}

static bool is_view(const tn_file *f, const char *name)
{
    const tn_tensor *t = tn_file_find(f, name);
    assert_non_null(t);
    return t->parts[0].data != NULL;
}

/* Decoded numbers are in memory in any case, and in no file. */
static void data_inside_and_outside_is_a_view_of_the_mapping(void)
{
    tn_file *mapped = open_onnx("raw_types.onnx", TN_IO_MMAP), *read = open_onnx("raw_types.onnx", TN_IO_PREAD);
    CHECK(is_view(mapped, "raw_float32") && is_view(mapped, "raw_int64") && !is_view(read, "raw_float32"));
    tn_close(mapped);
    tn_close(read);
    mapped = open_onnx("typed_fields.onnx", TN_IO_MMAP);
    read = open_onnx("typed_fields.onnx", TN_IO_PREAD);
    CHECK(is_view(mapped, "typed_float32") && !is_view(read, "typed_float32"));     /* packed floats */
    CHECK(is_view(mapped, "typed_int64") && is_view(read, "typed_int64") && tn_file_shards(read) == 1);
    tn_close(mapped);
    tn_close(read);
    mapped = open_onnx("external_many.onnx", TN_IO_MMAP);
    CHECK(is_view(mapped, "w0") && is_view(mapped, "w2") && tn_file_shards(mapped) == 5);
    tn_close(mapped);
}

/* ---- verdicts ---- */

static tn_status status_of(const char *word)
{
    static const struct { const char *word; tn_status status; } words[] = {
        { "refused-corrupt", TN_ERR_CORRUPT },         { "refused-limit", TN_ERR_LIMIT },
        { "refused-truncated", TN_ERR_TRUNCATED },     { "refused-io", TN_ERR_IO },
        { "refused-unsupported", TN_ERR_UNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, word) == 0)
            return words[i].status;
    return TN_OK;
}

static void check_edge_row(char *field[TABLE_FIELDS], size_t n)
{
    char path[PATH_MAX], found[600];
    tn_error err = { .text = "" };
    tn_file *f = NULL;
    CHECK(n == 3);
    snprintf(path, sizeof path, EDGE "/%s", field[0]);
    tn_status status = tn_open(path, NULL, &f, &err);
    if (status != status_of(field[1]))
        fail_msg("%s: expected %s but found %s", field[0], field[1], line_of(&err));
    if (status) {
        err.file[0] = '\0';
        snprintf(found, sizeof found, "%s", line_of(&err));
        if (strcmp(found, field[2]) != 0)
            fail_msg("%s:\nexpected %s\nfound    %s", field[0], field[2], found);
        return;
    }
    const char *warning = tn_file_warning(f, 0) ? tn_file_warning(f, 0) : "-";
    assert_string_equal(warning, field[2]);
    assert_string_equal(field[1], *warning == '-' ? "fine" : "warns");
    walk_file(f);
    tn_close(f);
}

static void every_edge_file_ends_as_decided(void)
{
    CHECK(each_row(EDGE ".tsv", check_edge_row) == 51);
}

static void indices_are_looked_at_by_verify_and_not_before(void)
{
    tn_file *f = open_onnx("edge/sparse_unsorted.onnx", TN_IO_AUTO);
    seen s = verify_file(f);
    CHECK(s.verdict[1] == TN_VERDICT_NONE && strstr(s.why[1].text, "out of order"));
    tn_close(f);
    f = open_onnx("edge/sparse_beyond.onnx", TN_IO_AUTO);
    s = verify_file(f);
    CHECK(s.verdict[1] == TN_VERDICT_BAD && strstr(s.why[1].text, "expected an index below 4"));
    tn_close(f);
}

/* The SHA-1 of a whole file. */
static void the_checksum_of_another_file_is_reported_and_not_checked(void)
{
    tn_file *f = open_onnx("external_many.onnx", TN_IO_AUTO);
    size_t with = 0;
    for (size_t i = 0; i < tn_file_count(f); i++) {
        tn_stored_info info = { .size = sizeof info };
        CHECK(tn_part_stored(NULL, &tn_file_tensor(f, i)->parts[0], &info) == TN_OK);
        CHECK(!info.checksum_text || info.checksum == TN_CHECKSUM_UNKNOWN);
        with += info.checksum_text != NULL;
    }
    CHECK(with == 1);
    tn_close(f);
}

/* ---- damage ---- */

static const char *const small_models[] = {
    "constants.onnx", "edge/ok_minimal.onnx", "functions.onnx", "odd_shapes.onnx", "qdq.onnx", "sparse.onnx",
    "subgraphs.onnx", "wire_variants.onnx",
};

/* Reads everything that opens. */
static void walk_model(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = exact_copy(bytes, n);
    walk_bytes(copy, n, "onnx");
    free(copy);
}

static void every_truncation_and_every_flipped_byte_is_handled(void)
{
    static const uint8_t flips[] = { 0xff, 0x01, 0x80 };
    for (size_t i = 0; i < sizeof small_models / sizeof *small_models; i++) {
        char path[PATH_MAX];
        size_t n;
        snprintf(path, sizeof path, ONNX "/%s", small_models[i]);
        uint8_t *bytes = load_file(path, &n);
        for (size_t cut = 0; cut <= n; cut++)
            walk_model(bytes, cut);
        for (size_t k = 0; k < n * sizeof flips; k++) {
            bytes[k / sizeof flips] ^= flips[k % sizeof flips];
            walk_model(bytes, n);
            bytes[k / sizeof flips] ^= flips[k % sizeof flips];
        }
        free(bytes);
    }
}

/* Truncation must be seen: no prefix of a model with data at its end is taken for a model. */
static void a_model_that_was_cut_is_truncated(void)
{
    size_t n;
    uint8_t *bytes = load_file(ONNX "/plain.onnx", &n);
    const tn_open_options options = { .size = sizeof options, .format = "onnx" };
    for (size_t cut = 100; cut < 700; cut += 50) {
        tn_error err;
        tn_file *f = NULL;
        CHECK(tn_open_memory(bytes, cut, &options, &f, &err) == TN_ERR_TRUNCATED);
    }
    free(bytes);
}

/* ---- data in other files ---- */

/* A tensor of n bytes (at most 100) whose data is in the file `location`. */
static size_t put_external(uint8_t *model, const char *name, uint8_t n, const char *location)
{
    uint8_t t[300], *p = t;
    size_t len = strlen(location);
    *p++ = 0x08; *p++ = n;                                      /* dims */
    *p++ = 0x10; *p++ = 2;                                      /* data_type: UINT8 */
    *p++ = 0x42; *p++ = (uint8_t)strlen(name);
    memcpy(p, name, strlen(name));
    p += strlen(name);
    *p++ = 0x6a; *p++ = (uint8_t)(len + 12);                    /* external_data: location */
    *p++ = 0x0a; *p++ = 8;
    memcpy(p, "location", 8);
    p += 8;
    *p++ = 0x12; *p++ = (uint8_t)len;
    memcpy(p, location, len);
    p += len;
    *p++ = 0x70; *p++ = 1;                                      /* data_location: EXTERNAL */
    size_t size = (size_t)(p - t);
    assert_true(size < 124);
    const uint8_t head[] = { 0x08, 8, 0x3a, (uint8_t)(size + 2), 0x2a, (uint8_t)size };
    memcpy(model, head, sizeof head);
    memcpy(model + sizeof head, t, size);
    return sizeof head + size;
}

/* As in a cache of Hugging Face: names are links to blobs in another folder. */
static void data_is_beside_the_name_of_a_model_and_not_beside_its_file(void)
{
    uint8_t model[400];
    CHECK(make_folder(NULL) == 0);
    size_t n = put_external(model, "w", 4, "w.bin");
    CHECK(mkdir(in_folder("blobs").text, 0700) == 0 && mkdir(in_folder("names").text, 0700) == 0);
    put_bytes("blobs/1", model, n);
    put_bytes("blobs/2", "abcd", 4);
    CHECK(symlink("../blobs/1", in_folder("names/m.onnx").text) == 0);
    CHECK(symlink("../blobs/2", in_folder("names/w.bin").text) == 0);
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    if (tn_open(in_folder("names/m.onnx").text, NULL, &f, &err))
        fail_msg("%s", line_of(&err));
    uint8_t *data = read_tensor(f, tn_file_find(f, "w"));
    CHECK(memcmp(data, "abcd", 4) == 0);
    free(data);
    tn_close(f);
    CHECK(tn_open_memory(model, n, NULL, &f, &err) == TN_ERR_IO);
    CHECK(strstr(err.text, "open the model by its path"));
    CHECK(remove_folder(NULL) == 0);
}

static void a_fifo_as_data_does_not_block(void)
{
    uint8_t model[400];
    tn_file *f = NULL;
    tn_error err;
    CHECK(make_folder(NULL) == 0);
    put_bytes("m.onnx", model, put_external(model, "w", 4, "w.bin"));
    CHECK(mkfifo(in_folder("w.bin").text, 0600) == 0);
    CHECK(tn_open(in_folder("m.onnx").text, NULL, &f, &err) == TN_ERR_CORRUPT);
    assert_string_equal(err.tensor, "w");
    CHECK(remove_folder(NULL) == 0);
}

static void locations_outside_of_the_folder_are_refused(void)
{
    static const char *const bad[] = { "/w.bin", "../w.bin", "a/../w.bin", "a//w.bin", "a/", ".", "./.", "a\\b",
                                       "..", "a/.." };
    static const char *const good[] = { "./w.bin", "././w.bin", "w.bin" };
    uint8_t model[400];
    tn_error err;
    tn_file *f = NULL;
    CHECK(make_folder(NULL) == 0);
    put_bytes("w.bin", "abcd", 4);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_bytes("m.onnx", model, put_external(model, "w", 4, bad[i]));
        if (tn_open(in_folder("m.onnx").text, NULL, &f, &err) != TN_ERR_CORRUPT)
            fail_msg("%s", bad[i]);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        put_bytes("m.onnx", model, put_external(model, "w", 4, good[i]));
        CHECK(tn_open(in_folder("m.onnx").text, NULL, &f, &err) == TN_OK);
        tn_close(f);
    }
    CHECK(remove_folder(NULL) == 0);
}

/* ---- limits ---- */

static void put_message(tn_buf *b, uint32_t number, tn_buf *inner)
{
    tn_proto_put_tag(b, number, TN_WIRE_LENGTH);
    tn_proto_put_varint(b, inner->size);
    tn_buf_put(b, inner->data, inner->size);
    tn_buf_free(inner);
    *inner = (tn_buf){ 0 };
}

static void put_number(tn_buf *b, uint32_t number, uint64_t value)
{
    tn_proto_put_tag(b, number, TN_WIRE_VARINT);
    tn_proto_put_varint(b, value);
}

/* The graph becomes a model, which is opened. */
static tn_status open_graph(tn_buf *graph, const tn_open_options *given, tn_error *err)
{
    tn_buf model = { 0 };
    tn_file *f = NULL;
    tn_open_options options = given ? *given : (tn_open_options){ .size = sizeof options };
    options.format = "onnx";
    put_number(&model, 1, 8);
    put_message(&model, 7, graph);
    CHECK(!model.bad);
    tn_status status = tn_open_memory(model.data, model.size, &options, &f, err);
    tn_close(f);
    tn_buf_free(&model);
    return status;
}

/* A tensor without elements. */
static void put_empty_tensor(tn_buf *graph, const char *name)
{
    tn_buf t = { 0 };
    put_number(&t, 1, 0);
    put_number(&t, 2, 1);
    tn_proto_put_text(&t, 8, name);
    put_message(graph, 5, &t);
}

static void names_in_nested_graphs_have_a_limit(void)
{
    enum { LENGTH = 100000, COUNT = 200 };
    tn_buf inner = { 0 }, attribute = { 0 }, node = { 0 }, graph = { 0 };
    char *long_name = malloc(LENGTH + 1), name[20];
    tn_error err;
    assert_non_null(long_name);
    memset(long_name, 'n', LENGTH);
    long_name[LENGTH] = '\0';
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "t%d", i);
        put_empty_tensor(&inner, name);
    }
    tn_proto_put_text(&attribute, 1, "body");
    put_message(&attribute, 6, &inner);
    tn_proto_put_text(&node, 3, long_name);
    put_message(&node, 5, &attribute);
    put_message(&graph, 1, &node);
    CHECK(open_graph(&graph, NULL, &err) == TN_ERR_LIMIT && strstr(err.text, "names of tensors in nested"));
    free(long_name);
}

static void very_many_domains_are_refused(void)
{
    tn_buf graph = { 0 }, model = { 0 }, opset = { 0 };
    const tn_open_options options = { .size = sizeof options, .format = "onnx" };
    char name[20];
    tn_error err;
    for (int most = 1000; most <= 1001; most++) {
        tn_file *f = NULL;
        model.size = 0;
        for (int i = 0; i < most; i++) {
            snprintf(name, sizeof name, "d%d", i);
            tn_proto_put_text(&opset, 1, name);
            put_message(&model, 8, &opset);
        }
        put_message(&model, 7, &graph);
        tn_status status = tn_open_memory(model.data, model.size, &options, &f, &err);
        CHECK(status == (most == 1000 ? TN_OK : TN_ERR_LIMIT));
        tn_close(f);
    }
    tn_buf_free(&model);
}

static void put_located_tensor(tn_buf *graph, const char *name, const char *location)
{
    tn_buf t = { 0 }, entry = { 0 };
    put_number(&t, 1, 1);
    put_number(&t, 2, 2);
    tn_proto_put_text(&t, 8, name);
    tn_proto_put_text(&entry, 1, "location");
    tn_proto_put_text(&entry, 2, location);
    put_message(&t, 13, &entry);
    put_number(&t, 14, 1);
    put_message(graph, 5, &t);
}

/* Two tensors of 4 bytes, one after half of the other. */
static void ranges_of_another_file_may_overlap(void)
{
    tn_buf graph = { 0 }, model = { 0 };
    tn_file *f = NULL;
    CHECK(make_folder(NULL) == 0);
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = { "a", "b" }, *const offsets[] = { "0", "2" };
        tn_buf t = { 0 }, entry = { 0 };
        const char *const pairs[][2] = { { "location", "w.bin" }, { "offset", offsets[i] }, { "length", "4" } };
        put_number(&t, 1, 4);
        put_number(&t, 2, 2);
        tn_proto_put_text(&t, 8, names[i]);
        for (int k = 0; k < 3; k++) {
            tn_proto_put_text(&entry, 1, pairs[k][0]);
            tn_proto_put_text(&entry, 2, pairs[k][1]);
            put_message(&t, 13, &entry);
        }
        put_number(&t, 14, 1);
        put_message(&graph, 5, &t);
    }
    put_number(&model, 1, 8);
    put_message(&model, 7, &graph);
    put_bytes("m.onnx", model.data, model.size);
    put_bytes("w.bin", "abcdef", 6);
    tn_buf_free(&model);
    CHECK(tn_open(in_folder("m.onnx").text, NULL, &f, NULL) == TN_OK);
    uint8_t *a = read_tensor(f, tn_file_find(f, "a")), *b = read_tensor(f, tn_file_find(f, "b"));
    CHECK(memcmp(a, "abcd", 4) == 0 && memcmp(b, "cdef", 4) == 0 && !tn_file_find(f, "b")->tied);
    free(a);
    free(b);
    tn_close(f);
    CHECK(remove_folder(NULL) == 0);
}

static void check_warned(tn_buf *model, const char *text)
{
    tn_file *f = NULL;
    CHECK(!model->bad && tn_open_memory(model->data, model->size, NULL, &f, NULL) == TN_OK);
    if (!tn_file_warning(f, 0) || !strstr(tn_file_warning(f, 0), text) || tn_file_warning(f, 1))
        fail_msg("expected one warning, %s", text);
    tn_close(f);
    tn_buf_free(model);
}

static void what_is_not_read_is_told_once(void)
{
    tn_buf model = { 0 }, none = { 0 }, opset = { 0 };
    put_number(&model, 1, 8);
    put_message(&model, 7, &none);
    put_message(&model, 20, &none);
    put_message(&model, 20, &none);
    check_warned(&model, "it has training information, which is not read");
    model = (tn_buf){ 0 };
    put_number(&model, 1, 8);
    put_message(&model, 7, &none);
    for (unsigned version = 8; version < 10; version++) {
        tn_proto_put_text(&opset, 1, "ai.onnx");
        put_number(&opset, 2, version);
        put_message(&model, 8, &opset);
    }
    check_warned(&model, "opset_import has the domain \"ai.onnx\" twice: the first counts");
}

/* Core ML begins with a version and a text too; a TensorFlow graph with its nodes. */
static void models_of_others_are_not_taken_for_onnx(void)
{
    static const char *const others[] = { "\x08\x05\x12\x04" "abcd\xa2\x1f\x02xy", "\x08\x05\x12\xff\x7f" "text",
                                          "\x0a\x02\x08\x01\x22\x02\x08\x01", "\x08\x00\x12\x01" "a" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tn_file *f = NULL;
        tn_error err;
        CHECK(tn_open_memory(others[i], 4 + strlen(others[i] + 4), NULL, &f, &err) == TN_ERR_UNSUPPORTED);
        CHECK(!strstr(err.text, "ModelProto"));
    }
}

static void data_in_very_many_files_is_refused(void)
{
    tn_error err;
    CHECK(make_folder(NULL) == 0);
    for (int most = 1024; most <= 1025; most++) {
        tn_buf graph = { 0 }, model = { 0 };
        tn_file *f = NULL;
        for (int i = 0; i < most; i++) {
            char name[20];
            snprintf(name, sizeof name, "f%d", i);
            put_bytes(name, "x", 1);
            put_located_tensor(&graph, name, name);
        }
        put_number(&model, 1, 8);
        put_message(&model, 7, &graph);
        put_bytes("m.onnx", model.data, model.size);
        tn_buf_free(&model);
        tn_status status = tn_open(in_folder("m.onnx").text, NULL, &f, &err);
        CHECK(status == (most == 1024 ? TN_OK : TN_ERR_LIMIT));
        tn_close(f);
    }
    CHECK(remove_folder(NULL) == 0);
}

static void decoded_numbers_keep_to_max_bytes(void)
{
    enum { COUNT = 1000 };
    for (uint64_t most = 7999; most <= 8000; most++) {
        tn_buf graph = { 0 }, t = { 0 }, numbers = { 0 };
        const tn_open_options options = { .size = sizeof options, .max_bytes = most };
        tn_error err;
        put_number(&t, 1, COUNT);
        put_number(&t, 2, 7);
        tn_proto_put_text(&t, 8, "w");
        tn_buf_fill(&numbers, 1, COUNT);
        put_message(&t, 7, &numbers);
        put_message(&graph, 5, &t);
        tn_status status = open_graph(&graph, &options, &err);
        CHECK(status == (most == 8000 ? TN_OK : TN_ERR_LIMIT));
        CHECK(!status || err.reason == TN_REASON_MAX_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_golden_model_reads_to_what_its_manifest_says),
        TEST(every_golden_model_has_the_metadata_of_its_manifest),
        TEST(equal_ranges_of_another_file_are_tied),
        TEST(data_inside_and_outside_is_a_view_of_the_mapping),
        TEST(every_edge_file_ends_as_decided),
        TEST(indices_are_looked_at_by_verify_and_not_before),
        TEST(the_checksum_of_another_file_is_reported_and_not_checked),
        TEST(every_truncation_and_every_flipped_byte_is_handled),
        TEST(a_model_that_was_cut_is_truncated),
        TEST(data_is_beside_the_name_of_a_model_and_not_beside_its_file),
        TEST(a_fifo_as_data_does_not_block),
        TEST(locations_outside_of_the_folder_are_refused),
        TEST(names_in_nested_graphs_have_a_limit),
        TEST(ranges_of_another_file_may_overlap),
        TEST(what_is_not_read_is_told_once),
        TEST(models_of_others_are_not_taken_for_onnx),
        TEST(very_many_domains_are_refused),
        TEST(data_in_very_many_files_is_refused),
        TEST(decoded_numbers_keep_to_max_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
