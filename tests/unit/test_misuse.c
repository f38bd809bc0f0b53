/* NULL and absurd arguments of public functions: a status and a text, never a crash. */
#include "support.h"
#include "make.h"

#include <tenon/tenon.h>

/* Refused with this text in the message. */
static void refused(tn_status status, const tn_error *err, const char *text)
{
    if (status != TN_ERR_ARGUMENT || !strstr(err->text, text))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", TN_ERR_ARGUMENT, text, (int)status, err->text);
}
#define REFUSED(call, said) do { tn_error err = { .text = "" }; refused(call, &err, said); } while (0)

static const uint8_t bytes[4] = { 1, 2, 3, 4 };
static const int64_t four[] = { 4 }, negative[] = { -4 }, vast[] = { INT64_MAX, INT64_MAX };

static tn_file *some_file(void)
{
    const simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = bytes };
    write_file("f.zt", (tn_create_options){ .replace = true }, &s, 1);
    return open_file("f.zt");
}

static void opening_needs_paths_and_a_place(void)
{
    tn_file *f;
    REFUSED(tn_open(NULL, NULL, &f, &err), "a path");
    REFUSED(tn_open("x", NULL, NULL, &err), "a place for the file");
    REFUSED(tn_open_fd(0, NULL, NULL, &err), "a place for the file");
    REFUSED(tn_open_memory(NULL, 5, NULL, &f, &err), "data");
    REFUSED(tn_open_several(NULL, 2, NULL, &f, &err), "the paths");
    CHECK(tn_open_fd(-1, NULL, &f, NULL) == TN_ERR_IO);
    CHECK(tn_open_memory(NULL, 0, NULL, &f, NULL) == TN_ERR_UNSUPPORTED);
    CHECK(tn_open("x", &(tn_open_options){ .io = TN_IO_AUTO }, &f, NULL) == TN_ERR_ARGUMENT);
}

static void no_file_has_nothing(void)
{
    size_t n = 7;
    tn_file *f = some_file();
    CHECK(strcmp(tn_file_format(NULL), "") == 0 && tn_file_size(NULL) == 0 && tn_file_shards(NULL) == 0);
    CHECK(strcmp(tn_file_shard_name(NULL, 0), "") == 0 && strcmp(tn_file_shard_name(f, SIZE_MAX), "") == 0);
    CHECK(tn_file_count(NULL) == 0 && !tn_file_tensor(NULL, 0) && !tn_file_tensor(f, SIZE_MAX));
    CHECK(!tn_file_find(NULL, "a") && !tn_file_find(f, NULL) && !tn_file_warning(NULL, 0));
    CHECK(!tn_file_meta(NULL, &n) && n == 0 && tn_file_meta(f, NULL) == tn_file_meta(f, &n));
    REFUSED(tn_file_intact(NULL, &err), "a file");
    CHECK(!tn_format_at(SIZE_MAX) && !tn_layout_at(SIZE_MAX) && !tn_datatype_at(SIZE_MAX));
    CHECK(!tn_dtype_get(TN_UNKNOWN) && !tn_dtype_get((tn_dtype)9999) && !tn_build_fact(SIZE_MAX));
    CHECK(!tn_device_query(SIZE_MAX) && !tn_handle_query(SIZE_MAX));
    CHECK(strcmp(tn_form_name((tn_form)77), "unknown") == 0 && tn_status_text((tn_status)9999));
    tn_close(f);
    tn_close(NULL);
}

static void reading_needs_all_of_it(void)
{
    tn_file *f = some_file();
    const tn_part *part = tn_file_tensor(f, 0)->parts;
    uint8_t to[4];
    tn_stored_info info = { .size = sizeof info };
    REFUSED(tn_part_read(NULL, part, to, 4, &err), "a file");
    REFUSED(tn_part_read(f, NULL, to, 4, &err), "a part");
    REFUSED(tn_part_read(f, part, NULL, 4, &err), "a buffer");
    REFUSED(tn_part_read(f, part, to, 3, &err), "a buffer of 4 bytes");
    REFUSED(tn_part_read_rows(f, part, 0, 4, NULL, 4, &err), "a buffer");
    REFUSED(tn_part_read_rows(f, part, UINT64_MAX, UINT64_MAX, to, 4, &err), "rows within 4");
    REFUSED(tn_part_read_rows(f, NULL, 0, 4, to, 4, &err), "a part");
    REFUSED(tn_check_decoded(NULL, 1, 0, &err), "tensors");
    CHECK(tn_part_stored(NULL, NULL, &info) == TN_ERR_ARGUMENT);
    CHECK(tn_part_stored(NULL, part, NULL) == TN_ERR_ARGUMENT);
    tn_view *view;
    CHECK(tn_view_open(f, NULL, &view, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_read(f, NULL, TN_FLOAT32, to, 4, NULL) == TN_ERR_ARGUMENT);
    tn_view_close(NULL);
    tn_close(f);
}

static void operations_need_files(void)
{
    tn_file *f = some_file();
    tn_descriptors *set;
    size_t n;
    REFUSED(tn_verify(NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_convert(NULL, "x.zt", NULL, NULL, &err), "a file");
    REFUSED(tn_convert(f, NULL, NULL, NULL, &err), "a path");
    REFUSED(tn_compare(f, NULL, NULL, NULL, &n, &err), "two files");
    REFUSED(tn_compare(NULL, f, NULL, NULL, &n, &err), "two files");
    REFUSED(tn_stats(NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_compare_datatypes(NULL, NULL, 0, NULL, NULL, &err), "a file");
    REFUSED(tn_compare_datatypes(f, NULL, 1, NULL, NULL, &err), "datatypes");
    REFUSED(tn_edit_meta(NULL, NULL, 0, NULL, NULL, &err), "a path");
    REFUSED(tn_edit_meta("x", NULL, 1, NULL, NULL, &err), "edits");
    REFUSED(tn_describe(NULL, NULL, &set, &err), "a file");
    REFUSED(tn_describe(f, NULL, NULL, &err), "a place");
    REFUSED(tn_export_c(NULL, NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_descriptors_save(NULL, 1, "x", NULL, NULL, &err), "descriptors");
    tn_close(f);
}

static tn_writer *some_writer(void)
{
    tn_writer *w;
    const tn_create_options o = { .size = sizeof o, .replace = true };
    CHECK(tn_create(in_folder("w.zt").text, &o, &w, NULL) == TN_OK);
    return w;
}

static void a_writer_needs_names_shapes_and_data(void)
{
    tn_writer *w;
    const tn_part unnamed = { .array = { TN_UINT8, 1, four, NULL }, .data = bytes };
    const tn_part shapeless = { .role = "data", .array = { TN_UINT8, 1, NULL, NULL }, .data = bytes };
    const tn_part deep = { .role = "data", .array = { TN_UINT8, 1000, four, NULL }, .data = bytes };
    const tn_part two[] = { unnamed, unnamed };
    const tn_tensor whole = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed,
                              .nparts = 1 };
    const struct { tn_tensor t; const char *text; } wrong[] = {
        { { .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = 1 }, "a name" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .nparts = 1 }, "parts" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed }, "1 to 16 parts" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = UINT32_MAX },
          "1 to 16 parts" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .parts = &unnamed, .nparts = 1 }, "a shape" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &shapeless, .nparts = 1 },
          "a shape of every part" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &deep, .nparts = 1 },
          "at most 64 dimensions" },
        { { .name = "a", .dtype = TN_UINT8, .rank = UINT32_MAX, .shape = four, .parts = &unnamed, .nparts = 1 },
          "at most 64 dimensions" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = two, .nparts = 2 },
          "a role of every part but the first" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = 1,
            .nmeta = 1 }, "metadata" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = 1,
            .nmeta = 1, .meta = &(const tn_meta){ .key = "k" } }, "a key and a value" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        w = some_writer();
        REFUSED(tn_writer_add(w, &wrong[i].t, &err), wrong[i].text);
        REFUSED(tn_writer_finish(w, &err), "an earlier call failed");
    }
    REFUSED(tn_writer_add(NULL, &whole, &err), "a writer");
    w = some_writer();
    CHECK(tn_writer_add(w, &whole, NULL) == TN_OK);            /* its part has no role: it is the data */
    REFUSED(tn_writer_add(w, NULL, &err), "a tensor");
    REFUSED(tn_writer_add_meta(w, NULL, &err), "metadata");
    REFUSED(tn_writer_add_meta(w, &(const tn_meta){ .text = "v" }, &err), "a key");
    REFUSED(tn_writer_add_meta(w, &(const tn_meta){ .key = "k" }, &err), "a value");
    REFUSED(tn_writer_write(w, 0, 0, NULL, 4, &err), "data");
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    REFUSED(tn_writer_add_meta(NULL, &(const tn_meta){ .key = "k", .text = "v" }, &err), "a writer");
    REFUSED(tn_writer_write(NULL, 0, 0, bytes, 4, &err), "a writer");
    REFUSED(tn_writer_finish(NULL, &err), "a writer");
    REFUSED(tn_create(NULL, NULL, &w, &err), "a path");
    REFUSED(tn_create("x.zt", NULL, NULL, &err), "a place for the writer");
    tn_writer_abandon(NULL);
}

static void an_array_is_added_in_one_call(void)
{
    tn_writer *w = some_writer();
    CHECK(tn_writer_add_array(w, "a", TN_UINT8, 1, four, bytes, NULL) == TN_OK);
    CHECK(tn_writer_add_array(w, "scalar", TN_UINT8, 0, NULL, bytes, NULL) == TN_OK);
    CHECK(tn_writer_add_array(w, "later", TN_UINT8, 1, four, NULL, NULL) == TN_OK);
    CHECK(tn_writer_write(w, 2, 0, bytes, 4, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("w.zt");
    CHECK(tn_file_count(f) == 3 && tn_file_find(f, "scalar")->rank == 0);
    CHECK(memcmp(tn_file_find(f, "a")->parts[0].data, bytes, 4) == 0);
    CHECK(memcmp(tn_file_find(f, "later")->parts[0].data, bytes, 4) == 0);
    tn_close(f);
    const struct { const char *name; uint32_t rank; const int64_t *shape; tn_dtype dtype; } wrong[] = {
        { NULL, 1, four, TN_UINT8 }, { "a", 1, NULL, TN_UINT8 }, { "a", 65, four, TN_UINT8 },
        { "a", 1, negative, TN_UINT8 }, { "a", 2, vast, TN_UINT8 }, { "a", 1, four, TN_UNKNOWN },
        { "a", 1, four, (tn_dtype)9999 }, { "\xff", 1, four, TN_UINT8 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        w = some_writer();
        CHECK(tn_writer_add_array(w, wrong[i].name, wrong[i].dtype, wrong[i].rank, wrong[i].shape, bytes, &err));
        CHECK(err.text[0] && err.status);
        tn_writer_abandon(w);
    }
    REFUSED(tn_writer_add_array(NULL, "a", TN_UINT8, 1, four, bytes, &err), "a writer");
}

static void arrays_need_arrays(void)
{
    uint64_t n;
    uint8_t to[4];
    tn_tensor *made;
    const tn_array array = { TN_UINT8, 1, four, NULL };
    CHECK(tn_shape_count(1, NULL, &n) == TN_ERR_ARGUMENT && tn_shape_count(1, four, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_shape_count(65, four, &n) == TN_ERR_ARGUMENT && tn_shape_count(2, vast, &n) == TN_ERR_LIMIT);
    CHECK(tn_array_nbytes(NULL, &n) == TN_ERR_ARGUMENT && tn_array_nbytes(&array, NULL) == TN_ERR_ARGUMENT);
    REFUSED(tn_cast(NULL, to, &array, bytes, TN_LITTLE_ENDIAN, NULL, &err), "a destination");
    REFUSED(tn_cast(&array, to, NULL, bytes, TN_LITTLE_ENDIAN, NULL, &err), "a source");
    REFUSED(tn_convert_form(NULL, TN_FORM_COO, NULL, &made, &err), "a tensor");
    tn_tensor_free(NULL);
    tn_datatype_free(NULL);
    tn_descriptors_free(NULL);
    tn_buffer_unref(NULL);
    tn_detach(NULL);
    tn_offer_close(NULL);
    REFUSED(tn_buffer_new(4, NULL, NULL, &err), "a place for the buffer");
    REFUSED(tn_share_offer(NULL, NULL, &(tn_offer *){ NULL }, &err), "a path");
    REFUSED(tn_share_attach(NULL, NULL, &(tn_attachment *){ NULL }, &err), "a path");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(opening_needs_paths_and_a_place),
        IN_FOLDER(no_file_has_nothing),
        IN_FOLDER(reading_needs_all_of_it),
        IN_FOLDER(operations_need_files),
        IN_FOLDER(a_writer_needs_names_shapes_and_data),
        IN_FOLDER(an_array_is_added_in_one_call),
        IN_FOLDER(arrays_need_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
