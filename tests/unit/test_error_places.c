/* Errors name the file and the tensor they are of. */
#include "support.h"

#include "files.h"
#include "make.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t bytes[1000] = { 1, 2, 3, 4, 5 };

static const simple pair[] = {
    { .name = "first", .dtype = TN_UINT8, .rank = 1, .shape = { 1000 }, .data = bytes },
    { .name = "second", .dtype = TN_UINT8, .rank = 1, .shape = { 1000 }, .data = bytes },
};

static void check_place(const tn_error *err, const char *file, const char *tensor)
{
    assert_string_equal(err->file, file);
    assert_string_equal(err->tensor, tensor);
}

static tn_status convert(const tn_file *f, const char *out, tn_convert_options options, tn_error *err)
{
    options.size = sizeof options;
    return tn_convert(f, in_folder(out).text, &options, NULL, err);
}

/* Flips a bit of the file at `at`. */
static void damage(const char *path, off_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

static void opening_names_the_file(void)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    CHECK(tn_open(in_folder("none.zt").text, NULL, &f, &err) == TN_ERR_IO);
    check_place(&err, in_folder("none.zt").text, "");
    write_file("cut.safetensors", (tn_create_options){ 0 }, pair, 2);
    CHECK(truncate(in_folder("cut.safetensors").text, 1500) == 0);
    CHECK(tn_open(in_folder("cut.safetensors").text, NULL, &f, &err) != TN_OK);
    assert_string_equal(err.file, in_folder("cut.safetensors").text);
}

static void damaged_data_names_the_input_and_the_tensor(void)
{
    tn_error err = { .text = "" };
    write_file("in.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, pair, 2);
    tn_file *f = open_file("in.zt");
    tn_stored_info info = { .size = sizeof info };
    const tn_tensor *t = tn_file_find(f, "second");
    CHECK(tn_part_stored(t, &t->parts[0], &info) == TN_OK);
    damage(in_folder("in.zt").text, (off_t)info.offset);
    CHECK(convert(f, "out.safetensors", (tn_convert_options){ 0 }, &err) == TN_ERR_CHECKSUM);
    check_place(&err, in_folder("in.zt").text, "second");
    tn_close(f);
}

static void an_output_that_cannot_be_written_is_named_alone(void)
{
    tn_error err = { .text = "" };
    write_file("in.zt", (tn_create_options){ .replace = true }, pair, 2);
    tn_file *f = open_file("in.zt");
    CHECK(convert(f, "no-folder/out.zt", (tn_convert_options){ 0 }, &err) == TN_ERR_IO);
    check_place(&err, in_folder("no-folder/out.zt").text, "");
    write_file("there.zt", (tn_create_options){ 0 }, pair, 1);
    CHECK(convert(f, "there.zt", (tn_convert_options){ 0 }, &err) == TN_ERR_EXISTS);
    check_place(&err, in_folder("there.zt").text, "");
    CHECK(err.reason == TN_REASON_REPLACE);
    tn_close(f);
}

static void a_file_of_a_set_is_named_by_its_own_path(void)
{
    char shard[300];
    tn_error err = { .text = "" };
    write_file("s.safetensors", (tn_create_options){ .shard_size = 1000 }, pair, 2);
    tn_file *f = open_file("s.safetensors.index.json");
    const tn_tensor *t = tn_file_find(f, "second");
    tn_stored_info info = { .size = sizeof info };
    CHECK(tn_part_stored(t, &t->parts[0], &info) == TN_OK);
    snprintf(shard, sizeof shard, "%s", tn_file_shard_name(f, info.shard));
    CHECK(strcmp(shard, in_folder("s.safetensors.index.json").text) != 0);
    CHECK(truncate(shard, 500) == 0);
    CHECK(convert(f, "out.zt", (tn_convert_options){ 0 }, &err) == TN_ERR_TRUNCATED);
    assert_string_equal(err.file, shard);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(opening_names_the_file),
        IN_FOLDER(damaged_data_names_the_input_and_the_tensor),
        IN_FOLDER(an_output_that_cannot_be_written_is_named_alone),
        IN_FOLDER(a_file_of_a_set_is_named_by_its_own_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
