/* An input of several files is replaced by the output: what others change in it meanwhile is not lost. */
#include "safetensors_bytes.h"
#include "folder.h"
#include "convert.h"

#define TENSORS "{" U8("a", 0, 4, 4) "," U8("b", 4, 8, 4) "," U8("c", 8, 12, 4) "}"

static const char *changed;     /* what somebody changes while tensors are written; NULL: that is done */

static void append(const char *name)
{
    FILE *f = fopen(in_folder(name).text, "a");
    assert_non_null(f);
    CHECK(fputc(' ', f) == ' ' && fclose(f) == 0);
}

/* A new file of that name if it can have metadata, else one more byte in the same file. */
static int change(void *context, uint64_t done, uint64_t total)
{
    const tn_meta_edit edit = { .key = "k", .text = "v" };
    (void)context, (void)done, (void)total;
    if (!changed)
        return 0;
    if (strstr(changed, ".safetensors") && !strstr(changed, ".json"))
        CHECK(tn_edit_meta(in_folder(changed).text, &edit, 1, NULL, NULL, NULL) == TN_OK);
    else
        append(changed);
    changed = NULL;
    return 0;
}

static void make(const char *name, uint64_t shard_size)
{
    size_t n;
    uint8_t *bytes = make_file(TENSORS, 12, &n);
    tn_file *in;
    put_bytes("source.st", bytes, n);
    free(bytes);
    CHECK(tn_open(in_folder("source.st").text, NULL, &in, NULL) == TN_OK);
    CHECK(convert_open(in, name, (wish){ .create.shard_size = shard_size }, NULL) == TN_OK);
    tn_close(in);
    unlink(in_folder("source.st").text);
}

static tn_status convert_while(const char *in, const char *out, uint64_t shard_size, const char *who,
                               tn_error *err)
{
    tn_file *f;
    changed = who;
    CHECK(tn_open(in_folder(in).text, NULL, &f, NULL) == TN_OK);
    wish w = { .create.shard_size = shard_size, .progress = change };
    tn_status status = convert_open(f, out, w, err);
    tn_close(f);
    CHECK(!changed);
    return status;
}

static bool has_key(const char *name)
{
    tn_file *f;
    if (tn_open(in_folder(name).text, NULL, &f, NULL) != TN_OK)
        return false;
    bool has = file_has_text(f, "k", "v");
    tn_close(f);
    return has;
}

#define INDEX  "m.safetensors.index.json"
#define SECOND "m-00002-of-00003.safetensors"

static void a_shard_that_was_edited_meanwhile_is_not_removed(void)
{
    static const char *const outputs[] = { INDEX, "m.safetensors" };
    for (uint64_t i = 0; i < 2; i++) {
        tn_error err = { .text = "" };
        make("m.safetensors", 4);
        CHECK(convert_while(INDEX, outputs[i], i ? 0 : 8, SECOND, &err) == TN_ERR_CHANGED);
        CHECK(strstr(line_of(&err), SECOND) && strstr(line_of(&err), "has changed"));
        CHECK(has_key(SECOND) && count_entries(folder) == 4);
        CHECK(convert_while(INDEX, "m.safetensors", 0, INDEX, NULL) == TN_ERR_CHANGED);
        CHECK(has_key(SECOND) && count_entries(folder) == 4);
        CHECK(unlink(in_folder(SECOND).text) == 0 && unlink(in_folder(INDEX).text) == 0);
        CHECK(unlink(in_folder("m-00001-of-00003.safetensors").text) == 0);
        CHECK(unlink(in_folder("m-00003-of-00003.safetensors").text) == 0);
    }
}

static void a_single_file_that_was_edited_meanwhile_is_not_removed(void)
{
    tn_error err = { .text = "" };
    make("m.safetensors", 0);
    CHECK(convert_while("m.safetensors", "m.safetensors", 4, "m.safetensors", &err) == TN_ERR_CHANGED);
    CHECK(has_key("m.safetensors") && count_entries(folder) == 1);
}

static void raw_data_that_was_written_to_meanwhile_is_not_removed(void)
{
    struct stat before, after;
    make("m.json", 0);
    CHECK(stat(in_folder("m.bin").text, &before) == 0);
    CHECK(convert_while("m.json", "m.json", 0, "m.bin", NULL) == TN_ERR_CHANGED);
    CHECK(stat(in_folder("m.bin").text, &after) == 0 && after.st_size == before.st_size + 1);
    CHECK(count_entries(folder) == 2);
}

/* The names of an input may be links: they go, what they lead to stays. */
static void links_to_shards_are_replaced(void)
{
    static const char *const names[] = { "m-00001-of-00003.safetensors", SECOND,
                                         "m-00003-of-00003.safetensors" };
    tn_file *f;
    make("m.safetensors", 4);
    CHECK(mkdir(in_folder("blobs").text, 0755) == 0);
    for (size_t i = 0; i < 3; i++) {
        char to[64];
        snprintf(to, sizeof to, "blobs/%zu", i);
        CHECK(rename(in_folder(names[i]).text, in_folder(to).text) == 0);
        CHECK(symlink(to, in_folder(names[i]).text) == 0);
    }
    CHECK(tn_open(in_folder(INDEX).text, NULL, &f, NULL) == TN_OK);
    CHECK(convert_open(f, INDEX, (wish){ .create.shard_size = 8 }, NULL) == TN_OK);
    tn_close(f);
    CHECK(count_entries(folder) == 4 && count_entries(in_folder("blobs").text) == 3);
    CHECK(tn_open(in_folder(INDEX).text, NULL, &f, NULL) == TN_OK);
    tn_close(f);
}

int main(void)
{
#define IN_FOLDER(test) { #test, (CMUnitTestFunction)(void (*)(void))test, make_folder, remove_folder, NULL }
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_shard_that_was_edited_meanwhile_is_not_removed),
        IN_FOLDER(a_single_file_that_was_edited_meanwhile_is_not_removed),
        IN_FOLDER(raw_data_that_was_written_to_meanwhile_is_not_removed),
        IN_FOLDER(links_to_shards_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
