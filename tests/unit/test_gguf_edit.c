/* GGUF: splits, read and written; metadata that is edited. */
#include "support.h"
#include "convert.h"
#include "file_systems.h"
#include "files.h"

#include "store/file.h"
#include "store/meta_value.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FILES TEST_GOLDEN "/gguf/files"
#define HOSTILE TEST_GOLDEN "/gguf/hostile"

static void take_from(const char *folder_path, const char *name)
{
    char path[PATH_MAX];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    uint8_t *bytes = load_file(path, &n);
    put_bytes(name, bytes, n);
    free(bytes);
}

static void take(const char *name) { take_from(FILES, name); }

static void take_set(void)
{
    take("split-00001-of-00003.gguf");
    take("split-00002-of-00003.gguf");
    take("split-00003-of-00003.gguf");
}

static const char *json_of(const tn_file *f, const char *key)
{
    static char text[400];
    size_t n;
    const tn_meta *meta = tn_file_meta(f, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(meta[i].key, key) == 0) {
            tn_meta_json(&meta[i], text, sizeof text);
            return text;
        }
    return "none";
}

/* ---- reading sets ---- */

static void check_set(tn_file *f)
{
    size_t n;
    tn_file_meta(f, &n);
    CHECK(tn_file_count(f) == 5 && n == 2 && !tn_file_warning(f, 0));
    assert_string_equal(tn_file_tensor(f, 4)->name, "blk.4.w");
    assert_string_equal(json_of(f, "split.count"), "none");
    tn_close(f);
}

static void a_set_is_opened_by_its_first_file_its_folder_or_all_its_files(void)
{
    tn_file *f;
    take_set();
    CHECK(tn_open(in_folder("split-00001-of-00003.gguf").text, NULL, &f, NULL) == TN_OK);
    CHECK(tn_file_shards(f) == 3);
    check_set(f);
    CHECK(tn_open(folder, NULL, &f, NULL) == TN_OK);
    check_set(f);
    full_path paths[3] = { in_folder("split-00003-of-00003.gguf"), in_folder("split-00001-of-00003.gguf"),
                           in_folder("split-00002-of-00003.gguf") };
    const char *all[] = { paths[0].text, paths[1].text, paths[2].text };
    CHECK(tn_open_several(all, 3, NULL, &f, NULL) == TN_OK);
    check_set(f);
    CHECK(tn_open_several(all + 1, 2, NULL, &f, NULL) == TN_OK);
    check_set(f);
}

static void a_later_file_is_opened_alone_with_a_warning(void)
{
    tn_file *f;
    take_set();
    CHECK(tn_open(in_folder("split-00002-of-00003.gguf").text, NULL, &f, NULL) == TN_OK);
    CHECK(tn_file_count(f) == 2);
    assert_string_equal(tn_file_warning(f, 0), "byte 0: it is file 2 of 3 of a set: only its own tensors are here");
    assert_string_equal(json_of(f, "split.no"), "1");
    tn_close(f);
    const tn_open_options strict = { .size = sizeof strict, .strict = true };
    CHECK(tn_open(in_folder("split-00002-of-00003.gguf").text, &strict, &f, NULL) == TN_ERR_CORRUPT);
    must_convert("split-00002-of-00003.gguf", "alone.gguf", (wish){ 0 });
    f = open_file("alone.gguf");
    assert_string_equal(json_of(f, "split.count"), "none");
    tn_close(f);
}

static void a_merged_set_is_one_file(void)
{
    take_set();
    must_convert("split-00001-of-00003.gguf", "one.gguf", (wish){ 0 });
    tn_file *f = open_file("one.gguf");
    CHECK(tn_file_shards(f) == 1);
    check_set(f);
}

static void what_a_merge_left_behind_is_kept(void)
{
    take_from(HOSTILE, "zero-00001-of-00002.gguf");
    must_convert("zero-00001-of-00002.gguf", "one.gguf", (wish){ 0 });
    check_same_files(in_folder("one.gguf").text, HOSTILE "/zero-00001-of-00002.gguf");
}

/* ---- writing sets ---- */

static void a_set_is_written_and_read_back(void)
{
    take("align64.gguf");
    take("cpp_all.gguf");
    static const char *const names[] = { "align64.gguf", "cpp_all.gguf" };
    for (size_t i = 0; i < 2; i++) {
        char first[40], last[40];
        must_convert(names[i], "s.gguf", (wish){ .dry_run = true, .create = { .shard_size = 1100 } });
        int before = count_entries(folder);
        must_convert(names[i], "s.gguf", (wish){ .create = { .shard_size = 1100 } });
        int files = count_entries(folder) - before;
        CHECK(files > 1);
        snprintf(first, sizeof first, "s-00001-of-%05d.gguf", files);
        snprintf(last, sizeof last, "s-%05d-of-%05d.gguf", files, files);
        tn_file *f = open_file(first), *g = open_file(names[i]), *h = open_file(last);
        size_t different;
        CHECK(tn_file_shards(f) == (size_t)files && tn_file_shards(h) == 1);
        CHECK(tn_compare(f, g, NULL, NULL, &different, NULL) == TN_OK && different == 0);
        tn_meta_type items;
        size_t n;
        const tn_meta *meta = tn_file_meta(h, &n);
        CHECK(n == (i ? 3 : 4));        /* the alignment, if it is not the usual one */
        CHECK(tn_meta_type_of(&meta[n - 3], &items) == TN_META_U16);
        CHECK(tn_meta_type_of(&meta[n - 2], &items) == TN_META_U16);
        CHECK(tn_meta_type_of(&meta[n - 1], &items) == TN_META_I32);
        tn_close(f);
        tn_close(g);
        tn_close(h);
        must_convert(first, "merged.gguf", (wish){ 0 });
        char path[PATH_MAX];
        snprintf(path, sizeof path, FILES "/%s", names[i]);
        check_same_files(in_folder("merged.gguf").text, path);
    }
}

static void one_file_is_no_set(void)
{
    take("cpp_all.gguf");
    must_convert("cpp_all.gguf", "s.gguf", (wish){ .create = { .shard_size = 1 << 20 } });
    check_same_files(in_folder("s.gguf").text, FILES "/cpp_all.gguf");
}

static void a_set_takes_no_names_that_are_in_use(void)
{
    tn_error err = { .text = "" };
    take("align64.gguf");
    put_file("s-00002-of-00002.gguf", "mine");
    int before = count_entries(folder);
    CHECK(try_convert("align64.gguf", "s.gguf", (wish){ .create = { .shard_size = 1100 } }, &err) ==
          TN_ERR_EXISTS);
    CHECK(strstr(line_of(&err), "\"s-00002-of-00002.gguf\" already exists, and a set of GGUF files cannot be "
                                "replaced as a whole: remove it, or choose another name"));
    CHECK(count_entries(folder) == before && file_is("s-00002-of-00002.gguf", "mine"));
}

static void a_set_has_at_most_65535_files(void)
{
    enum { MANY = 65536 };
    tn_writer *w;
    tn_error err = { .text = "" };
    const tn_create_options options = { .size = sizeof options, .shard_size = 1 };
    static const uint8_t zero[4];
    CHECK(tn_create(in_folder("s.gguf").text, &options, &w, NULL) == TN_OK);
    for (unsigned i = 0; i < MANY; i++) {
        char name[20];
        snprintf(name, sizeof name, "t%u", i);
        CHECK(tn_writer_add_array(w, name, TN_FLOAT32, 0, NULL, zero, NULL) == TN_OK);
    }
    check_status(tn_writer_finish(w, &err), &err, TN_ERR_LIMIT,
                 "expected at most 65535 files of a set but found 65536: choose a larger shard size");
    CHECK(count_entries(folder) == 0);
}

/* ---- editing ---- */

typedef struct change { const char *key, *text, *type; } change;

static tn_status try_edit(const char *name, const change *changes, size_t n, tn_error *err)
{
    tn_meta_edit edits[8];
    const char *types[8];
    for (size_t i = 0; i < n; i++) {
        edits[i] = (tn_meta_edit){ NULL, changes[i].key, changes[i].text };
        types[i] = changes[i].type;
    }
    const tn_edit_options options = { .size = sizeof options, .types = types };
    return tn_edit_meta(in_folder(name).text, edits, n, &options, NULL, err);
}

static void must_edit(const char *name, const change *changes, size_t n)
{
    tn_error err = { .text = "" };
    if (try_edit(name, changes, n, &err))
        fail_msg("%s", line_of(&err));
}

static void check_edit_refused(const char *name, change c, const char *text)
{
    tn_error err = { .text = "" };
    check_status(try_edit(name, &c, 1, &err), &err, TN_ERR_ARGUMENT, text);
}

static void check_value(const char *name, const char *key, tn_meta_type type, const char *json)
{
    tn_file *f = open_file(name);
    size_t n;
    const tn_meta *meta = tn_file_meta(f, &n);
    tn_meta_type items, found = TN_META_NONE;
    for (size_t i = 0; i < n; i++)
        if (strcmp(meta[i].key, key) == 0)
            found = tn_meta_type_of(&meta[i], &items);
    CHECK(found == type);
    assert_string_equal(json_of(f, key), json);
    tn_close(f);
}

static void an_edit_keeps_the_type_of_its_key(void)
{
    take("cpp_all.gguf");
    static const change all[] = { { "t.u16", "7", NULL }, { "t.f32", "0.25", NULL }, { "t.bool", "false", NULL },
                                  { "t.str", "42", NULL }, { "a.u8", "[1, 2, 3]", NULL },
                                  { "a.str", "[\"x\"]", NULL }, { "t.i64", "-9", NULL }, { "new", "9", NULL } };
    must_edit("cpp_all.gguf", all, 8);
    check_value("cpp_all.gguf", "t.u16", TN_META_U16, "7");
    check_value("cpp_all.gguf", "t.f32", TN_META_F32, "0.25");
    check_value("cpp_all.gguf", "t.bool", TN_META_BOOL, "false");
    check_value("cpp_all.gguf", "t.str", TN_META_STRING, "\"42\"");
    check_value("cpp_all.gguf", "a.u8", TN_META_ARRAY, "[1,2,3]");
    check_value("cpp_all.gguf", "a.str", TN_META_ARRAY, "[\"x\"]");
    check_value("cpp_all.gguf", "t.i64", TN_META_I64, "-9");
    check_value("cpp_all.gguf", "new", TN_META_STRING, "\"9\"");
    check_edit_refused("cpp_all.gguf", (change){ "t.u16", "65536", NULL },
                       "metadata \"t.u16\" is of type u16: expected such a value, or the name of another type, "
                       "but found \"65536\"");
    check_edit_refused("cpp_all.gguf", (change){ "a.u8", "3", NULL }, "is an array of u8: expected a JSON array of such");
    check_edit_refused("cpp_all.gguf", (change){ "a.u8", "[256]", NULL }, "is an array of u8: expected a JSON array of such");
}

static void a_type_can_be_given(void)
{
    take("cpp_all.gguf");
    static const change all[] = { { "t.u16", "70000", "u32" }, { "t.str", "1.5", "f64" }, { "n", "-3", "i8" },
                                  { "a", "[1,2]", "u64" }, { "j", "[\"a\",\"b\"]", "json" },
                                  { "s", "[1]", "str" }, { "b", "[true,false]", "bool" }, { "e", "[]", "f32" } };
    must_edit("cpp_all.gguf", all, 8);
    check_value("cpp_all.gguf", "t.u16", TN_META_U32, "70000");
    check_value("cpp_all.gguf", "t.str", TN_META_F64, "1.5");
    check_value("cpp_all.gguf", "n", TN_META_I8, "-3");
    check_value("cpp_all.gguf", "a", TN_META_ARRAY, "[1,2]");
    check_value("cpp_all.gguf", "j", TN_META_ARRAY, "[\"a\",\"b\"]");
    check_value("cpp_all.gguf", "s", TN_META_STRING, "\"[1]\"");
    check_value("cpp_all.gguf", "b", TN_META_ARRAY, "[true,false]");
    check_value("cpp_all.gguf", "e", TN_META_ARRAY, "[]");
    check_edit_refused("cpp_all.gguf", (change){ "n", "x", "u8" }, "expected a value of type u8 but found \"x\"");
    check_edit_refused("cpp_all.gguf", (change){ "n", "1e40", "f32" }, "expected a value of type f32");
    check_edit_refused("cpp_all.gguf", (change){ "n", "{\"a\":1}", "json" }, "GGUF version 3 holds numbers");
    check_edit_refused("cpp_all.gguf", (change){ "n", "1", "u128" }, "but found \"u128\"");
    check_edit_refused("cpp_all.gguf", (change){ "n", "1", "arr" }, "but found \"arr\"");
}

static void an_edit_and_its_opposite_give_the_same_bytes(void)
{
    static const char *const names[] = { "cpp_all.gguf", "all_types_be.gguf", "kv_v1.gguf", "kv_v2.gguf",
                                         "align64.gguf", "py_be.gguf" };
    char *long_text = malloc(100001);
    memset(long_text, 'x', 100000);
    long_text[100000] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];
        take(names[i]);
        must_edit(names[i], &(change){ "note", long_text, NULL }, 1);
        tn_file *f = open_file(names[i]);
        CHECK(tn_file_size(f) > 100000 && strlen(json_of(f, "note")) > 300);
        tn_close(f);
        must_edit(names[i], &(change){ "note", NULL, NULL }, 1);
        snprintf(path, sizeof path, FILES "/%s", names[i]);
        check_same_files(in_folder(names[i]).text, path);
    }
    free(long_text);
}

static void what_the_data_depends_on_cannot_be_edited(void)
{
    take("align64.gguf");
    take("kv_v1.gguf");
    check_edit_refused("align64.gguf", (change){ "general.alignment", "32", NULL },
                       "general.alignment is that of the data, 64, and cannot be edited");
    check_edit_refused("align64.gguf", (change){ "general.alignment", NULL, NULL }, "cannot be edited");
    must_edit("align64.gguf", &(change){ "general.alignment", "64", NULL }, 1);
    check_edit_refused("kv_v1.gguf", (change){ "n", "1", "u64" }, "GGUF version 1 holds numbers");
    must_edit("kv_v1.gguf", &(change){ "n", "1", "u32" }, 1);
    check_value("kv_v1.gguf", "n", TN_META_U32, "1");
}

static void the_first_file_of_a_set_is_edited(void)
{
    tn_file *f;
    take_set();
    must_edit("split-00001-of-00003.gguf", &(change){ "llama.block_count", "3", NULL }, 1);
    CHECK(tn_open(in_folder("split-00001-of-00003.gguf").text, NULL, &f, NULL) == TN_OK);
    assert_string_equal(json_of(f, "llama.block_count"), "3");
    CHECK(tn_file_shards(f) == 3);
    tn_close(f);
    check_edit_refused("split-00001-of-00003.gguf", (change){ "split.count", "2", "u16" }, "tells of the files");
    must_edit("split-00001-of-00003.gguf", &(change){ "llama.block_count", "2", NULL }, 1);
    check_same_files(in_folder("split-00001-of-00003.gguf").text, FILES "/split-00001-of-00003.gguf");
}

/* The data moves by whole blocks, whatever the length of the header: all but its ends is shared. */
static void check_shared(const char *name, const char *original)
{
    tn_file *f = open_file(name), *g = open_file(original);
    size_t different;
    const uint64_t size = tn_file_size(g) - g->shards[0].data_begin;
    CHECK((f->shards[0].data_begin - g->shards[0].data_begin) % 4096 == 0);
    CHECK(cloned + 2 * BLOCK > size && cloned <= size);
    CHECK(tn_compare(f, g, &(tn_compare_options){ .size = sizeof(tn_compare_options), .ignore_meta = true }, NULL,
                     &different, NULL) == TN_OK && different == 0);
    tn_close(f);
    tn_close(g);
}

static void padding_lets_the_file_system_share_the_data(void)
{
    static const char *const names[] = { "all_types.gguf", "all_types_be.gguf", "align8.gguf", "align4096.gguf",
                                         "kv_v1.gguf" };
    real_calls = tn_sink_calls;
    char note[1000] = "";
    tn_sink_calls.clone_range = fake_clone;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        take(names[i]);
        size_t n;
        uint8_t *bytes = load_file(in_folder(names[i]).text, &n);
        put_bytes("original.gguf", bytes, n);
        free(bytes);
        must_edit(names[i], &(change){ "tenon.padding", "[]", "u8" }, 1);
        for (size_t k = 0; k < 9; k++) {
            memset(note, 'x', k * 123);
            note[k * 123] = '\0';
            cloned = 0;
            must_edit(names[i], &(change){ "note", note, NULL }, 1);
            check_shared(names[i], "original.gguf");
        }
        must_edit(names[i], (const change[]){ { "tenon.padding", NULL, NULL }, { "note", NULL, NULL } }, 2);
        check_same_files(in_folder(names[i]).text, in_folder("original.gguf").text);
    }
    tn_sink_calls = real_calls;
    must_edit("align8.gguf", &(change){ "tenon.padding", "mine", NULL }, 1);     /* not an array: a key like others */
    check_value("align8.gguf", "tenon.padding", TN_META_STRING, "\"mine\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_set_is_opened_by_its_first_file_its_folder_or_all_its_files),
        IN_FOLDER(a_later_file_is_opened_alone_with_a_warning),
        IN_FOLDER(a_merged_set_is_one_file),
        IN_FOLDER(what_a_merge_left_behind_is_kept),
        IN_FOLDER(a_set_is_written_and_read_back),
        IN_FOLDER(one_file_is_no_set),
        IN_FOLDER(a_set_takes_no_names_that_are_in_use),
        IN_FOLDER(a_set_has_at_most_65535_files),
        IN_FOLDER(an_edit_keeps_the_type_of_its_key),
        IN_FOLDER(a_type_can_be_given),
        IN_FOLDER(an_edit_and_its_opposite_give_the_same_bytes),
        IN_FOLDER(what_the_data_depends_on_cannot_be_edited),
        IN_FOLDER(the_first_file_of_a_set_is_edited),
        IN_FOLDER(padding_lets_the_file_system_share_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
