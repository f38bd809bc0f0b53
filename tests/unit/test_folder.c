/* Folders as inputs: which of their files is opened; and files that are written into a descriptor. */
#include "support.h"
#include "files.h"
#include "make.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t bytes[4] = { 1, 2, 3, 4 };

/* A file of one tensor, which has the name of the file. */
static void put(const char *file, const char *tensor)
{
    const simple s = { .name = tensor, .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = bytes };
    write_file(file, (tn_create_options){ .replace = true }, &s, 1);
}

static void put_text(const char *file, const char *text)
{
    FILE *f = fopen(in_folder(file).text, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_opens(const char *folder_path, const char *tensor)
{
    tn_file *f;
    tn_error err = { .text = "" };
    if (tn_open(folder_path, NULL, &f, &err))
        fail_msg("%s", line_of(&err));
    assert_string_equal(tn_file_tensor(f, 0)->name, tensor);
    tn_close(f);
}

static void check_refused(const char *text)
{
    tn_file *f;
    tn_error err = { .text = "" };
    CHECK(tn_open(in_folder("").text, NULL, &f, &err) == TN_ERR_IO);
    CHECK(strstr(line_of(&err), text) && tn_open(in_folder("").text, NULL, &f, NULL) == TN_ERR_IO);
}

static void the_index_comes_first_then_model_then_the_only_file(void)
{
    char plain[4096];
    snprintf(plain, sizeof plain, "%s", in_folder("").text);
    check_refused("is a folder without a tensor file");
    put_text("config.json", "{}");
    put_text("tokenizer.json", "{}");
    put(".hidden.zt", "hidden");
    check_refused("is a folder without a tensor file");
    put("weights.zt", "only");
    check_opens(plain, "only");
    put("other.npz", "other");
    check_refused("is a folder of 2 tensor files, such as \"other.npz\"");
    put("model.safetensors", "model");
    check_opens(plain, "model");
    put("part.safetensors", "part");
    put_text("x.safetensors.index.json", "{\"weight_map\":{\"part\":\"part.safetensors\"}}");
    check_opens(plain, "part");
    put_text("y.safetensors.index.json", "{\"weight_map\":{}}");
    check_refused("is a folder of 2 tensor files, such as \"x.safetensors.index.json\"");
    put_text("model.safetensors.index.json", "{\"weight_map\":{\"model\":\"model.safetensors\"}}");
    check_opens(plain, "model");
    plain[strlen(plain) - 1] = '\0';            /* without the slash */
    check_opens(plain, "model");
}

static void errors_name_the_file_in_the_folder(void)
{
    tn_file *f;
    tn_error err = { .text = "" };
    put_text("model.safetensors", "not tensors");
    CHECK(tn_open(in_folder("").text, NULL, &f, &err) != TN_OK);
    CHECK(strstr(err.file, "/model.safetensors"));
}

static void a_file_is_written_into_a_descriptor(void)
{
    int fd = open(in_folder("out").text, O_RDWR | O_CREAT, 0600);
    const tn_create_options how = { .size = sizeof how, .format = "npz", .to_fd = true, .fd = fd };
    const simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = bytes };
    tn_writer *w;
    tn_file *f;
    CHECK(fd >= 0 && tn_create("named", &how, &w, NULL) == TN_OK && add_simple(w, &s, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK && access(in_folder("named").text, F_OK) != 0);
    CHECK(tn_open_fd(fd, NULL, &f, NULL) == TN_OK);
    int copy = open(in_folder("copy").text, O_RDWR | O_CREAT, 0600);
    const tn_create_options again = { .size = sizeof again, .format = "npz", .to_fd = true, .fd = copy };
    tn_convert_options options = { .size = sizeof options, .create = &again };
    CHECK(copy >= 0 && tn_convert(f, "named", &options, NULL, NULL) == TN_OK);
    check_same_files(in_folder("out").text, in_folder("copy").text);
    tn_close(f);
    close(copy);
    close(fd);
}

static void what_takes_several_files_is_not_written_into_one(void)
{
    int fd = open(in_folder("out").text, O_RDWR | O_CREAT, 0600);
    const simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = bytes };
    tn_error err = { .text = "" };
    for (int k = 0; k < 2; k++) {
        tn_create_options how = { .size = sizeof how, .format = k ? "raw" : "safetensors",
                                  .shard_size = k ? 0 : 1, .to_fd = true, .fd = fd };
        const simple two[] = { s, { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = bytes } };
        tn_writer *w;
        CHECK(tn_create("named", &how, &w, NULL) == TN_OK && add_simple(w, &two[0], NULL) == TN_OK);
        if (!k)
            CHECK(add_simple(w, &two[1], NULL) == TN_OK);
        CHECK(tn_writer_finish(w, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "takes several files"));
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_index_comes_first_then_model_then_the_only_file),
        IN_FOLDER(errors_name_the_file_in_the_folder),
        IN_FOLDER(a_file_is_written_into_a_descriptor),
        IN_FOLDER(what_takes_several_files_is_not_written_into_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
