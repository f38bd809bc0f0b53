/* New metadata, the same data. */
#include "support.h"

#include "files.h"
#include "make.h"

static const uint8_t data[12] = { 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2 };
static const uint8_t nested[] = { 0x82, 0x01, 0xc0, 0x61, 't' };       /* [1, tagged "t"] */
static const tn_meta meta[] = { { .key = "text", .text = "old" },
                                { .key = "cbor", .cbor = nested, .cbor_size = sizeof nested } };

static const simple tensors[] = {
    { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = data, .meta = meta, .nmeta = 2 },
    { .name = "q", .dtype = TN_INT4, .rank = 1, .shape = { 5 }, .data = data },
    { .name = "tied", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .tied = "a" },
};

static void edit(const char *name, const tn_meta_edit *edits, size_t n)
{
    tn_error err = { .text = "" };
    uint64_t shared = UINT64_MAX;
    if (tn_edit_meta(in_folder(name).text, edits, n, NULL, &shared, &err))
        fail_msg("%s", line_of(&err));
    CHECK(shared != UINT64_MAX);
}

static const char *text_of(const tn_meta *items, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(items[i].key, key) == 0)
            return items[i].text ? items[i].text : "(cbor)";
    return NULL;
}

static const char *tensor_text(const tn_file *f, const char *tensor, const char *key)
{
    const tn_tensor *t = tn_file_find(f, tensor);
    return text_of(t->meta, t->nmeta, key);
}

static const char *file_text(const tn_file *f, const char *key)
{
    size_t n;
    const tn_meta *items = tn_file_meta(f, &n);
    return text_of(items, n, key);
}

static void check_same_data(const char *name, const char *before)
{
    tn_file *a = open_file(before), *b = open_file(name);
    tn_compare_options options = { .size = sizeof options, .ignore_meta = true };
    size_t different = 99;
    CHECK(tn_compare(a, b, &options, NULL, &different, NULL) == TN_OK && different == 0);
    CHECK(tn_file_find(b, "q")->dtype == TN_INT4);
    tn_close(a);
    tn_close(b);
}

static void check_edits(const char *name, const char *before, tn_create_options options)
{
    write_file(name, options, tensors, 3);
    write_file(before, options, tensors, 3);
    edit(name, (tn_meta_edit[]){ { NULL, "file key", "file value" }, { "a", "text", "new" },
                                 { "a", "added", "\xc3\xa4\"\\\n" },
                                 { "q", "k", "" } }, 4);
    check_same_data(name, before);
    tn_file *f = open_file(name);
    assert_string_equal(file_text(f, "file key"), "file value");
    assert_string_equal(tensor_text(f, "a", "text"), "new");
    assert_string_equal(tensor_text(f, "a", "added"), "\xc3\xa4\"\\\n");
    assert_string_equal(tensor_text(f, "a", "cbor"), "(cbor)");
    assert_string_equal(tensor_text(f, "q", "k"), "");
    CHECK(tn_file_find(f, "a")->nmeta == 3 && tn_file_find(f, "tied")->nmeta == 0);
    tn_close(f);
    edit(name, (tn_meta_edit[]){ { NULL, "file key", NULL }, { "a", "text", NULL }, { "a", "cbor", NULL },
                                 { "a", "added", NULL },
                                 { "q", "k", NULL } }, 5);
    check_same_data(name, before);
    f = open_file(name);
    CHECK(file_text(f, "file key") == NULL && tn_file_find(f, "a")->nmeta == 0 &&
          tn_file_find(f, "q")->nmeta == 0);
    tn_close(f);
    CHECK(count_entries(folder) == 2);
}

static void metadata_is_set_replaced_and_removed_in_ztensor(void)
{
    check_edits("e.zt", "before.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C });
}

static void the_same_with_compressed_data(void)
{
    check_edits("e.zt", "before.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD, .align = 4096 });
}

static void the_same_in_safetensors(void)
{
    check_edits("e.safetensors", "before.safetensors", (tn_create_options){ 0 });
}

static void wrong_edits_change_nothing(void)
{
    static const tn_meta_edit wrong[] = {
        { NULL, "nothing", NULL }, { "nobody", "k", "v" }, { "a", "nothing", NULL }, { "a", "\xff", "v" },
        { "a", "k", "\xff" },
    };
    static const char *const names[] = { "w.zt", "w.safetensors" };
    for (size_t k = 0; k < 2; k++) {
        size_t n, m;
        write_file(names[k], (tn_create_options){ 0 }, tensors, 3);
        uint8_t *before = load_file(in_folder(names[k]).text, &n);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            tn_error err = { .text = "" };
            CHECK(tn_edit_meta(in_folder(names[k]).text, &wrong[i], 1, NULL, NULL, &err) == TN_ERR_ARGUMENT);
            CHECK(strstr(line_of(&err), names[k]) != NULL);
            uint8_t *after = load_file(in_folder(names[k]).text, &m);
            CHECK(n == m && memcmp(before, after, n) == 0);
            free(after);
        }
        free(before);
    }
    CHECK(count_entries(folder) == 2);
}

/* Setting a field of zTensor's own would change what the tensor is. */
static void fields_of_the_format_cannot_be_edited(void)
{
    static const char *const keys[] = { "name", "offset", "size", "dtype", "shape", "encoding", "layout",
                                        "data_endianness",
                                        "checksum", "tenon" };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 3);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        tn_error err = { .text = "" };
        const tn_meta_edit wrong = { "a", keys[i], "x" };
        if (tn_edit_meta(in_folder("f.zt").text, &wrong, 1, NULL, NULL, &err) == TN_OK)
            fail_msg("\"%s\" was accepted (and is %s)", keys[i], "dropped silently");
    }
}

static void a_file_without_tensors_has_no_place_for_metadata(void)
{
    const tn_meta_edit set = { NULL, "k", "v" };
    write_file("e.zt", (tn_create_options){ 0 }, NULL, 0);
    CHECK(tn_edit_meta(in_folder("e.zt").text, &set, 1, NULL, NULL, NULL) != TN_OK);
    write_file("e.safetensors", (tn_create_options){ 0 }, NULL, 0);
    edit("e.safetensors", &set, 1);
    tn_file *f = open_file("e.safetensors");
    assert_string_equal(file_text(f, "k"), "v");
    tn_close(f);
}

/* Whatever the edit is: the format is the reason. */
static void other_formats_are_edited_by_converting(void)
{
    static const struct { const char *name, *format; } files[] = { { "f.npy", "npy" }, { "f.npz", "npz" } };
    static const tn_meta_edit edits[] = { { NULL, "k", "v" }, { NULL, "nothing", NULL },
                                          { "nobody", "k", "v" } };
    const simple t = { .name = "f", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = data };
    for (size_t i = 0; i < 6; i++) {
        char expected[200];
        tn_error err = { .text = "" };
        write_file(files[i / 3].name, (tn_create_options){ .replace = true }, &t, 1);
        CHECK(tn_edit_meta(in_folder(files[i / 3].name).text, &edits[i % 3], 1, NULL, NULL, &err) ==
              TN_ERR_UNSUPPORTED);
        snprintf(expected, sizeof expected,
                 "the metadata of format %s cannot be edited in place: convert the file to ztensor or "
                 "safetensors, edit it there, and convert it back",
                 files[i / 3].format);
        CHECK(strstr(line_of(&err), expected) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(metadata_is_set_replaced_and_removed_in_ztensor),
        IN_FOLDER(the_same_with_compressed_data),
        IN_FOLDER(the_same_in_safetensors),
        IN_FOLDER(wrong_edits_change_nothing),
        IN_FOLDER(fields_of_the_format_cannot_be_edited),
        IN_FOLDER(other_formats_are_edited_by_converting),
        IN_FOLDER(a_file_without_tensors_has_no_place_for_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
