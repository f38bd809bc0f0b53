/* GGUF: what is written, byte for byte; what goes through other formats; what is refused. */
#include "support.h"
#include "convert.h"
#include "files.h"
#include "format_option.h"

#include "store/meta_value.h"

#define FILES TEST_GOLDEN "/gguf/files"

/* Copies a golden file into the test's folder. */
static void take(const char *name)
{
    char path[PATH_MAX];
    size_t n;
    snprintf(path, sizeof path, FILES "/%s", name);
    uint8_t *bytes = load_file(path, &n);
    put_bytes(name, bytes, n);
    free(bytes);
}

static void check_same(const char *a, const char *golden)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, FILES "/%s", golden);
    check_same_files(in_folder(a).text, path);
}

/* ---- the same bytes ---- */

/* cpp_all.gguf was written by gguf.cpp; the bytes of the others were compared with what it writes. */
static const char *const canonical[] = { "cpp_all.gguf", "all_types.gguf", "align8.gguf", "align64.gguf",
                                         "align4096.gguf", "kv_edge.gguf", "kv_nested.gguf", "ranks.gguf",
                                         "unicode.gguf", "py_mixed.gguf" };
enum { CANONICAL = sizeof canonical / sizeof *canonical };

static void files_of_gguf_cpp_come_back_byte_for_byte(void)
{
    for (size_t i = 0; i < CANONICAL; i++) {
        take(canonical[i]);
        must_convert(canonical[i], "again.gguf", (wish){ .dry_run = true });
        must_convert(canonical[i], "again.gguf", (wish){ 0 });
        check_same("again.gguf", canonical[i]);
    }
}

static void big_endian_files_are_swapped_numbers_in_blocks_too(void)
{
    static const char *const pairs[][2] = { { "all_types.gguf", "all_types_be.gguf" },
                                            { "align64.gguf", "align64_be.gguf" } };
    const wish big = { .create = { FORMAT_OPTION("gguf", "byte-order", "big") } };
    for (size_t i = 0; i < 2; i++) {
        take(pairs[i][0]);
        must_convert(pairs[i][0], "big.gguf", big);
        check_same("big.gguf", pairs[i][1]);
        must_convert("big.gguf", "little.gguf", (wish){ 0 });
        check_same("little.gguf", pairs[i][0]);
        must_convert("big.gguf", "again.gguf", big);
        check_same("again.gguf", pairs[i][1]);
    }
}

/* Blocks of 18 bytes do not fit a window: they are cut between blocks all the same. */
static void large_tensors_are_swapped_block_by_block(void)
{
    enum { ROWS = 37, COLUMNS = 96 * 1024 };
    static float values[ROWS * COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)((i * 2654435761u) % 2003) - 1001;
    const simple s = { .name = "w", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLUMNS }, .data = values };
    write_file("w.safetensors", (tn_create_options){ 0 }, &s, 1);
    must_convert("w.safetensors", "little.gguf", (wish){ .cast = "q4_0" });
    must_convert("w.safetensors", "direct.gguf",
                 (wish){ .cast = "q4_0", .create = { FORMAT_OPTION("gguf", "byte-order", "big") } });
    must_convert("little.gguf", "big.gguf", (wish){ .create = { FORMAT_OPTION("gguf", "byte-order", "big") } });
    check_same_files(in_folder("direct.gguf").text, in_folder("big.gguf").text);
    must_convert("big.gguf", "back.gguf", (wish){ 0 });
    check_same_files(in_folder("little.gguf").text, in_folder("back.gguf").text);
    tn_file *f = open_file("big.gguf"), *g = open_file("little.gguf");
    const tn_tensor *t = tn_file_tensor(f, 0), *u = tn_file_tensor(g, 0);
    uint8_t some[1000];
    uint64_t row = (uint64_t)t->parts[0].array.shape[1];
    uint8_t *rows = malloc(row);
    CHECK(tn_part_read_rows(f, &t->parts[0], 17, 1, rows, row, NULL) == TN_OK);
    CHECK(memcmp(rows, (const uint8_t *)u->parts[0].data + 17 * row, row) == 0);
    tn_view *v;
    CHECK(tn_view_open(f, t, &v, NULL) == TN_OK);
    CHECK(tn_view_read(v, 0, 200008, sizeof some, some, sizeof some, NULL) == TN_OK);
    CHECK(memcmp(some, (const uint8_t *)u->parts[0].data + 200008, sizeof some) == 0);
    tn_view_close(v);
    free(rows);
    tn_close(f);
    tn_close(g);
}

/* ---- through other formats ---- */

static void other_formats_keep_metadata_types_and_order(void)
{
    static const char *const through[] = { "between.safetensors", "between.zt", "between.npz" };
    for (size_t k = 0; k < sizeof through / sizeof *through; k++)
        for (size_t i = 0; i < CANONICAL; i++) {
            if (strcmp(canonical[i], "unicode.gguf") == 0)      /* npz has no empty name */
                continue;
            take(canonical[i]);
            must_convert(canonical[i], through[k], (wish){ 0 });
            must_convert(through[k], "again.gguf", (wish){ 0 });
            check_same("again.gguf", canonical[i]);
            tn_file *a = open_file("again.gguf"), *b = open_file(canonical[i]);
            size_t different, n, m;
            const tn_meta *x = tn_file_meta(a, &n), *y = tn_file_meta(b, &m);
            CHECK(tn_compare(a, b, NULL, NULL, &different, NULL) == TN_OK && different == 0 && n == m);
            for (size_t j = 0; j < n; j++)
                assert_string_equal(x[j].key, y[j].key);
            tn_close(a);
            tn_close(b);
        }
}

/* Nested as deep as is read: an array in arrays, the innermost empty. */
static void the_deepest_arrays_go_through_every_format(void)
{
    enum { DEEP = 64 };
    static const char *const through[] = { "between.gguf", "between.safetensors", "between.zt", "between.npz" };
    tn_buf b = { 0 };
    tn_buf_puts(&b, "GGUF");
    tn_buf_put_le(&b, 3, 4);
    tn_buf_put_le(&b, 1, 8);
    tn_buf_put_le(&b, 1, 8);
    tn_buf_put_le(&b, 1, 8);
    tn_buf_putc(&b, 'k');
    tn_buf_put_le(&b, TN_META_ARRAY, 4);
    for (unsigned i = 0; i < DEEP; i++) {
        tn_buf_put_le(&b, TN_META_ARRAY, 4);
        tn_buf_put_le(&b, i + 1 < DEEP, 8);
    }
    tn_buf_put_le(&b, 1, 8);
    tn_buf_putc(&b, 't');
    tn_buf_put_le(&b, 0, 4);            /* a scalar */
    tn_buf_put_le(&b, 0, 4);
    tn_buf_put_le(&b, 0, 8);
    tn_buf_fill(&b, 0, 64 - b.size % 32);
    put_bytes("deep.gguf", b.data, b.size);
    for (size_t k = 0; k < sizeof through / sizeof *through; k++) {
        must_convert("deep.gguf", through[k], (wish){ 0 });
        must_convert(through[k], "again.gguf", (wish){ 0 });
        check_same_files(in_folder("again.gguf").text, in_folder("deep.gguf").text);
    }
    tn_buf_free(&b);
}

/* ---- alignment ---- */

static int64_t number_of(const char *file, const char *key, const char *json)
{
    tn_file *f = open_file(file);
    size_t n;
    const tn_meta *meta = tn_file_meta(f, &n);
    char text[100] = "none";
    for (size_t i = 0; i < n; i++)
        if (strcmp(meta[i].key, key) == 0)
            tn_meta_json(&meta[i], text, sizeof text);
    assert_string_equal(text, json);
    int64_t place = (int64_t)stored_info(&tn_file_tensor(f, 1)->parts[0]).offset;
    tn_close(f);
    return place;
}

static void an_alignment_that_is_asked_for_is_written(void)
{
    take("align64.gguf");
    take("cpp_all.gguf");
    must_convert("cpp_all.gguf", "a.gguf", (wish){ .create = { .align = 512 } });
    CHECK(number_of("a.gguf", "general.alignment", "512") % 512 == 0);
    must_convert("align64.gguf", "b.gguf", (wish){ .create = { .align = 4096 } });
    CHECK(number_of("b.gguf", "general.alignment", "4096") % 4096 == 0);
    must_convert("align64.gguf", "b.gguf", (wish){ .create = { .align = 32 } });
    number_of("b.gguf", "general.alignment", "32");
    must_convert("cpp_all.gguf", "a.gguf", (wish){ .create = { .align = 32 } });
    check_same("a.gguf", "cpp_all.gguf");
}

/* ---- what is refused ---- */

static const float one[32] = { 1 };

static void check_refused(const simple *s, tn_status status, const char *text)
{
    tn_error err = { .text = "" };
    tn_status found = try_write("never.gguf", (tn_create_options){ 0 }, s, 1, &err);
    check_status(found, &err, status, text);
    CHECK(count_entries(folder) == 0);
}

static void what_gguf_cannot_hold_is_refused_before_the_disk_is_touched(void)
{
    static const tn_meta note = { .key = "note", .text = "x" };
    const simple cases[] = {
        { .name = "w", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = one },
        { .name = "1234567890123456789012345678901234567890123456789012345678901234", .dtype = TN_FLOAT32,
          .rank = 1, .shape = { 4 }, .data = one },
        { .name = "w", .dtype = TN_FLOAT32, .rank = 5, .shape = { 1, 1, 1, 1, 1 }, .data = one },
        { .name = "w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 4 }, .data = one, .meta = &note, .nmeta = 1 },
        { .name = "w", .dtype = TN_BOOL, .rank = 0, .data = one },
    };
    check_refused(&cases[0], TN_ERR_UNSUPPORTED, "tensor \"w\": GGUF has no type uint8: expected float32");
    check_refused(&cases[1], TN_ERR_UNSUPPORTED, "expected a name of at most 63 bytes, as llama.cpp reads, but "
                  "found 64 (rename)");
    check_refused(&cases[2], TN_ERR_UNSUPPORTED, "expected at most 4 dimensions but found 5");
    check_refused(&cases[3], TN_ERR_LOSS, "it has metadata, a layout or padding, which GGUF cannot hold "
                  "(drop_metadata)");
    check_refused(&cases[4], TN_ERR_UNSUPPORTED, "GGUF has no type bool");
}

static void forms_that_gguf_does_not_have_are_refused(void)
{
    tn_error err = { .text = "" };
    const simple s = { .name = "w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 32 }, .data = one };
    write_file("in.zt", (tn_create_options){ 0 }, &s, 1);
    CHECK(try_convert("in.zt", "no.gguf", (wish){ .cast = "mxfp4" }, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err), "tensor \"w\": GGUF has no codes with scales beside them: cast it to "
                        "float32 or to a block type such as q8_0 (cast float32)");
    CHECK(try_convert("in.zt", "no.gguf", (wish){ .form = "coo" }, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err), "tensor \"w\": GGUF cannot hold form coo (form dense)");
    must_convert("in.zt", "yes.gguf", (wish){ .cast = "q8_0" });
}

/* ---- metadata of other formats ---- */

#define CBOR(k, bytes) { .key = k, .cbor = (const uint8_t *)bytes, .cbor_size = sizeof bytes - 1 }

static void write_meta(const char *name, const tn_meta *meta, size_t n, bool drop, tn_status expected,
                       const char *text)
{
    tn_writer *w;
    tn_error err = { .text = "" };
    const tn_create_options options = { .size = sizeof options, .replace = true, .drop_metadata = drop };
    CHECK(tn_create(in_folder(name).text, &options, &w, NULL) == TN_OK);
    for (size_t i = 0; i < n; i++)
        CHECK(tn_writer_add_meta(w, &meta[i], NULL) == TN_OK);
    check_status(tn_writer_finish(w, &err), &err, expected, text);
}

static void values_without_a_type_get_one(void)
{
    static const struct { tn_meta meta; tn_meta_type type, items; const char *json; } cases[] = {
        { CBOR("k", "\x03"), TN_META_U32, TN_META_NONE, "3" },
        { CBOR("k", "\x20"), TN_META_I32, TN_META_NONE, "-1" },
        { CBOR("k", "\x1b\0\0\0\1\0\0\0\0"), TN_META_U64, TN_META_NONE, "4294967296" },
        { CBOR("k", "\x3a\xff\xff\xff\xff"), TN_META_I64, TN_META_NONE, "-4294967296" },
        { CBOR("k", "\xf9\x38\0"), TN_META_F32, TN_META_NONE, "0.5" },
        { CBOR("k", "\x82\x01\x20"), TN_META_ARRAY, TN_META_I32, "[1,-1]" },
        { CBOR("k", "\x82\x01\x1b\0\0\0\1\0\0\0\0"), TN_META_ARRAY, TN_META_U64, "[1,4294967296]" },
        { CBOR("k", "\x82\x01\xf9\x38\0"), TN_META_ARRAY, TN_META_F32, "[1.0,0.5]" },
        { CBOR("k", "\x82\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a\x01"), TN_META_ARRAY, TN_META_F64, "[0.1,1.0]" },
        { CBOR("k", "\x80"), TN_META_ARRAY, TN_META_STRING, "[]" },
        { CBOR("k", "\xd8\x41\x44\0\1\0\2"), TN_META_ARRAY, TN_META_U16, "[1,2]" },         /* big-endian */
        { CBOR("k", "\xd8\x40\x42\1\2"), TN_META_ARRAY, TN_META_U8, "[1,2]" },
        { CBOR("k", "\x81\x82\x61" "a\x61" "b"), TN_META_ARRAY, TN_META_ARRAY, "[[\"a\",\"b\"]]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[100];
        size_t n;
        tn_meta_type items;
        write_meta("m.gguf", &cases[i].meta, 1, false, TN_OK, "");
        tn_file *f = open_file("m.gguf");
        const tn_meta *meta = tn_file_meta(f, &n);
        CHECK(n == 1 && tn_meta_type_of(meta, &items) == cases[i].type && items == cases[i].items);
        tn_meta_json(meta, json, sizeof json);
        assert_string_equal(json, cases[i].json);
        tn_close(f);
    }
}

static void values_that_have_no_type_are_refused_or_dropped(void)
{
    static const tn_meta cases[] = {
        CBOR("k", "\xf6"), CBOR("k", "\xa1\x61" "a\x01"), CBOR("k", "\x82\x01\x61" "a"), CBOR("k", "\xc1\x01"),
        CBOR("k", "\x82\x80\x01"), CBOR("k", "\xd8\x50\x42\0\0"), CBOR("k", "\xd8\x41\x43\0\1\0"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tn_meta all[] = { { .key = "a", .text = "b" }, cases[i] };
        size_t n;
        write_meta("m.gguf", all, 2, false, TN_ERR_LOSS, "metadata \"k\": GGUF version 3 holds numbers, bools, "
                   "texts and arrays of one type only (drop_metadata)");
        write_meta("m.gguf", all, 2, true, TN_OK, "");
        tn_file *f = open_file("m.gguf");
        tn_file_meta(f, &n);
        CHECK(n == 1);
        tn_close(f);
        CHECK(unlink(in_folder("m.gguf").text) == 0);
    }
    const tn_meta empty = { .key = "", .text = "b" }, wrong = { .key = "general.alignment", .text = "64" };
    static const tn_meta large = CBOR("general.alignment", "\x1a\x80\0\0\0");
    write_meta("m.gguf", &large, 1, false, TN_ERR_LIMIT, "expected at most 2^30 but found 2147483648");
    write_meta("m.gguf", &empty, 1, false, TN_ERR_LOSS, "empty key");
    write_meta("m.gguf", &wrong, 1, false, TN_ERR_CORRUPT, "general.alignment: expected a number of type u32");
}

/* ---- ties ---- */

static void tied_tensors_are_written_twice(void)
{
    const simple two[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 7 }, .data = one },
        { .name = "b", .dtype = TN_FLOAT32, .rank = 1, .shape = { 7 }, .tied = "a" },
    };
    write_file("t.gguf", (tn_create_options){ 0 }, two, 2);
    tn_file *f = open_file("t.gguf");
    const tn_stored_info a = stored_info(&tn_file_tensor(f, 0)->parts[0]),
                         b = stored_info(&tn_file_tensor(f, 1)->parts[0]);
    CHECK(b.offset == a.offset + 32 && !tn_file_tensor(f, 1)->tied);
    CHECK(memcmp(tn_file_tensor(f, 1)->parts[0].data, one, 28) == 0 && tn_file_size(f) == b.offset + 32);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(files_of_gguf_cpp_come_back_byte_for_byte),
        IN_FOLDER(big_endian_files_are_swapped_numbers_in_blocks_too),
        IN_FOLDER(large_tensors_are_swapped_block_by_block),
        IN_FOLDER(other_formats_keep_metadata_types_and_order),
        IN_FOLDER(the_deepest_arrays_go_through_every_format),
        IN_FOLDER(an_alignment_that_is_asked_for_is_written),
        IN_FOLDER(what_gguf_cannot_hold_is_refused_before_the_disk_is_touched),
        IN_FOLDER(forms_that_gguf_does_not_have_are_refused),
        IN_FOLDER(values_without_a_type_get_one),
        IN_FOLDER(values_that_have_no_type_are_refused_or_dropped),
        IN_FOLDER(tied_tensors_are_written_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
