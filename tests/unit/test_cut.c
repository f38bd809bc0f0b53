/* Files that are cut between opening and reading: every way to read them says
 * so, nothing is written, and no signal ends the process. */
#include "support.h"

#include <fcntl.h>

#include "convert.h"
#include "datatype.h"
#include "values.h"

enum { PAGE = 4096, COUNT = 16 * PAGE, BYTES = COUNT * 4 };

#define CUT "cut.safetensors"
#define WHOLE "whole.safetensors"

static float *numbers;          /* no byte at the end of a page is 0 by chance: 1.x */
static off_t size_of_file;

static void make_files(void)
{
    const char *const names[] = { CUT, WHOLE };
    numbers = malloc(BYTES);
    assert_non_null(numbers);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = 1 + (float)(i % 8192) / 8192;
    const simple tensors[] = {
        { .name = "first", .dtype = TN_FLOAT32, .rank = 1, .shape = { 16 }, .data = numbers },
        { .name = "w", .dtype = TN_FLOAT32, .rank = 2, .shape = { 256, 256 }, .data = numbers },
    };
    for (int i = 0; i < 2; i++) {
        unlink(in_folder(names[i]).text);
        write_file(names[i], (tn_create_options){ 0 }, tensors, 2);
    }
    struct stat st;
    CHECK(stat(in_folder(CUT).text, &st) == 0);
    size_of_file = st.st_size;
    free(numbers);
}

static const tn_io ways[] = { TN_IO_MMAP, TN_IO_PREAD };

/* Opens a file and cuts it to `left` bytes. */
static tn_file *open_and_cut(tn_io io, off_t left)
{
    tn_file *file;
    make_files();
    CHECK(tn_open(in_folder(CUT).text, &(tn_open_options){ .size = sizeof(tn_open_options), .io = io }, &file,
                  NULL) == TN_OK);
    CHECK(truncate(in_folder(CUT).text, left) == 0);
    return file;
}

/* Where it may be cut: between pages, inside a page that is seen as zeros from there on, at its last byte. */
enum { PLACES = 4 };
static off_t place(int i)
{
    const off_t places[PLACES] = { PAGE, 5 * PAGE, 7 * PAGE + 100, size_of_file - 1 };
    return places[i];
}

static void check_sentence(tn_status status, const tn_error *err, const char *reader, off_t left)
{
    char text[120];
    snprintf(text, sizeof text, "the file has shrunk: expected %lld bytes, found %lld",
             (long long)size_of_file, (long long)left);
    if (status != TN_ERR_TRUNCATED || !strstr(line_of(err), text))
        fail_msg("%s, expected \"%s\"\nfound %d \"%s\"", reader, text, (int)status, line_of(err));
}

/* ---- what reads a file ---- */

static const tn_tensor *tensor_of(const tn_file *file) { return tn_file_find(file, "w"); }

static tn_status read_whole(const tn_file *file, tn_error *err)
{
    uint8_t *buffer = malloc(BYTES);
    tn_status status = tn_part_read(file, tensor_of(file)->parts, buffer, BYTES, err);
    free(buffer);
    return status;
}

static tn_status read_rows(const tn_file *file, tn_error *err)
{
    uint8_t row[1024];
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < 256 && !status; i++)
        status = tn_part_read_rows(file, tensor_of(file)->parts, i, 1, row, sizeof row, err);
    return status;
}

static tn_status read_values(const tn_file *file, tn_error *err)
{
    uint8_t *buffer = malloc(BYTES);
    tn_view *values;
    tn_status status = open_values(file, tensor_of(file), &values, err);
    if (!status) {
        status = get_values(values, 0, COUNT, buffer, BYTES, err);
        tn_view_close(values);
    }
    free(buffer);
    return status;
}

static tn_status read_as(const tn_file *file, tn_error *err)
{
    uint8_t *buffer = malloc(BYTES);
    tn_status status = tn_read(file, tensor_of(file), TN_UNKNOWN, buffer, BYTES, err);
    free(buffer);
    return status;
}

static tn_status read_view(const tn_file *file, tn_error *err)
{
    const volatile uint8_t *bytes = tensor_of(file)->parts[0].data;
    static volatile unsigned sum;
    for (size_t i = 0; bytes && i < BYTES; i++)
        sum += bytes[i];
    return tn_file_intact(file, err);
}

static void refuse_w(void *context, const tn_tensor *t, const tn_statistics *figures, const tn_error *why)
{
    (void)context, (void)figures, (void)why;
    CHECK(t && strcmp(t->name, "w") != 0);      /* nothing is said of what was not there */
}

static tn_status count(const tn_file *file, tn_error *err)
{
    return tn_stats(file, NULL, refuse_w, err);
}

static void refuse_verdict(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                           const tn_error *why)
{
    (void)context, (void)p, (void)why;
    CHECK(strcmp(t->name, "w") != 0 || verdict != TN_VERDICT_BAD);
}

static tn_status verify(const tn_file *file, tn_error *err)
{
    tn_status status = tn_verify(file, NULL, refuse_verdict, err);
    return status ? status : tn_file_intact(file, err);         /* where nothing needs to be read */
}

static void refuse_difference(void *context, const tn_difference *d)
{
    (void)context, (void)d;
    CHECK(false);
}

static tn_status compare(const tn_file *file, tn_error *err)
{
    tn_file *whole = open_file(WHOLE);
    tn_error other = { .text = "" };
    tn_status status = tn_compare(file, whole, NULL, refuse_difference, NULL, err);
    CHECK(strncmp(line_of(err), in_folder(CUT).text, strlen(in_folder(CUT).text)) == 0);
    CHECK(tn_compare(whole, file, NULL, refuse_difference, NULL, &other) == status);
    CHECK(strncmp(line_of(&other), in_folder(CUT).text, strlen(in_folder(CUT).text)) == 0);
    tn_close(whole);
    return status;
}

static tn_status rate(const tn_file *file, tn_error *err)
{
    tn_datatype *datatype = datatype_of("mxfp4e2");
    const char *const only[] = { "w" };
    const tn_compare_datatypes_options options = { .size = sizeof options, .only = only, .nonly = 1 };
    tn_status status =
        tn_compare_datatypes(file, (const tn_datatype *const *)&datatype, 1, &options, NULL, err);
    tn_datatype_free(datatype);
    return status;
}

/* Nothing appears, and it is the input that is named. */
static tn_status convert_by(const tn_file *file, const char *name, wish w, tn_error *err)
{
    int before = count_entries(folder);
    tn_status status = convert_open(file, name, w, err);
    CHECK(count_entries(folder) == before);
    CHECK(!status || strncmp(line_of(err), in_folder(CUT).text, strlen(in_folder(CUT).text)) == 0);
    return status;
}

static tn_status copy(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.zt", (wish){ 0 }, err);
}

static tn_status copy_summed(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.zt", (wish){ .create = { .checksum = TN_CHECKSUM_CRC32C } }, err);
}

static tn_status compress(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.zt", (wish){ .create = { .encoding = TN_ENCODING_ZSTD } }, err);
}

static tn_status cast(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.safetensors", (wish){ .cast = "float16" }, err);
}

static tn_status quantize(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.zt", (wish){ .cast = "w=mxfp4e2" }, err);
}

static tn_status find_scales(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.zt", (wish){ .cast = "w=int8,per=tensor" }, err);
}

static tn_status reorder(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.json", (wish){ .layout = "w=WH,from=HW" }, err);
}

static tn_status reform(const tn_file *file, tn_error *err)
{
    return convert_by(file, "o.zt", (wish){ .form = "w=csr" }, err);
}

static tn_status export(const tn_file *file, tn_error *err)
{
    const char *const only[] = { "w" };
    int before = count_entries(folder);
    const tn_export_options options = { .size = sizeof options, .only = only, .nonly = 1, .binary = true,
                                        .mli = TN_FOR_MLI_2_0 };
    tn_status status = tn_export_c(file, folder, &options, NULL, err);
    CHECK(count_entries(folder) == before);
    return status;
}

static const struct { const char *name; tn_status (*read)(const tn_file *file, tn_error *err); } readers[] = {
    { "part", read_whole }, { "rows", read_rows }, { "values", read_values },
    { "all values", read_as }, { "view", read_view },
    { "stats", count },
    { "verify", verify }, { "compare", compare }, { "rate", rate }, { "copy", copy },
    { "copy with checksums", copy_summed },
    { "compress", compress }, { "cast", cast }, { "quantize", quantize }, { "scales", find_scales },
    { "reorder", reorder },
    { "reform", reform }, { "export", export },
};

static void what_was_cut_is_an_error_however_it_is_read(void)
{
    make_files();
    for (size_t r = 0; r < sizeof readers / sizeof *readers; r++)
        for (int w = 0; w < 2; w++)
            for (int i = 0; i < PLACES; i++) {
                tn_error err = { .text = "" };
                tn_file *file = open_and_cut(ways[w], place(i));
                tn_status status = readers[r].read(file, &err);
                check_sentence(status, &err, readers[r].name, place(i));
                tn_close(file);
            }
}

/* ---- and what else may happen ---- */

static void what_is_before_the_cut_can_be_read(void)
{
    for (int w = 0; w < 2; w++) {
        tn_file *file = open_and_cut(ways[w], 5 * PAGE);
        float some[16];
        tn_error err = { .text = "" };
        CHECK(tn_part_read(file, tn_file_find(file, "first")->parts, some, sizeof some, &err) == TN_OK &&
              some[15] > 1);
        CHECK(tn_file_intact(file, &err) == TN_ERR_TRUNCATED &&
              tn_file_intact(file, NULL) == TN_ERR_TRUNCATED);
        tn_close(file);
    }
}

static void a_file_that_has_grown_again_is_not_believed(void)
{
    tn_file *file = open_and_cut(TN_IO_MMAP, PAGE);
    const volatile uint8_t *bytes = tensor_of(file)->parts[0].data;
    tn_error err = { .text = "" };
    CHECK(bytes[BYTES - 1] == 0);
    make_files();
    CHECK(truncate(in_folder(CUT).text, size_of_file) == 0);
    CHECK(tn_file_intact(file, &err) == TN_ERR_TRUNCATED);
    tn_close(file);
}

static void a_file_that_grows_is_as_it_was(void)
{
    make_files();
    tn_file *file = open_file(CUT);
    CHECK(truncate(in_folder(CUT).text, size_of_file + 5 * PAGE) == 0);
    CHECK(tn_file_intact(file, NULL) == TN_OK);
    walk_file(file);
    tn_close(file);
}

static void the_shard_that_was_cut_is_named(void)
{
    static const uint8_t bytes[3 * PAGE] = { 1 };
    const simple tensors[] = {
        { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { sizeof bytes }, .data = bytes },
        { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { sizeof bytes }, .data = bytes },
    };
    write_file("s.safetensors", (tn_create_options){ .shard_size = sizeof bytes }, tensors, 2);
    tn_file *file = open_file("s.safetensors.index.json");
    CHECK(truncate(in_folder("s-00002-of-00002.safetensors").text, PAGE) == 0);
    tn_error err = { .text = "" };
    CHECK(tn_file_intact(file, &err) == TN_ERR_TRUNCATED &&
          strstr(line_of(&err), "s-00002-of-00002.safetensors: byte 4096: the file has shrunk"));
    tn_convert_options options = { .size = sizeof options };
    CHECK(tn_convert(file, in_folder("o.zt").text, &options, NULL, &err) == TN_ERR_TRUNCATED);
    CHECK(strstr(line_of(&err), "s-00002-of-00002.safetensors: byte 4096: the file has shrunk"));
    tn_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_was_cut_is_an_error_however_it_is_read), IN_FOLDER(what_is_before_the_cut_can_be_read),
        IN_FOLDER(a_file_that_has_grown_again_is_not_believed), IN_FOLDER(a_file_that_grows_is_as_it_was),
        IN_FOLDER(the_shard_that_was_cut_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
