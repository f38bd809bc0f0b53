/* Forms on the way from file to file: dense, coo, csr. */
#include "support.h"

#include <stdio.h>

#include "convert.h"
#include "coo.h"
#include "files.h"

enum { ROWS = 300, COLS = 1001, COUNT = ROWS * COLS };     /* several blocks, none a whole number of rows */

static float values[COUNT];
static const simple matrix = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLS },
                               .data = values };

/* About one in nine is there; negative zeros and NaN are. */
static size_t make_values(void)
{
    static const uint32_t special[] = { 0x80000000u, 0x7fc01234u, 0xff800000u };
    size_t n = 0;
    memset(values, 0, sizeof values);
    for (size_t i = 0; i < COUNT; i++) {
        if (i * 2654435761u % 9 != 4 || i / COLS == 7)
            continue;
        values[i] = (float)(i % 1000) - 500.5f;
        if (i % 101 < 3)
            memcpy(&values[i], &special[i % 101], 4);
        n++;
    }
    return n;
}

static void check_dense(const char *name)
{
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_find(f, "m");
    CHECK(t->form == TN_FORM_DENSE);
    CHECK(t->rank == 2 && t->shape[0] == ROWS && t->shape[1] == COLS && t->dtype == TN_FLOAT32);
    uint8_t *bytes = read_tensor(f, t);
    assert_memory_equal(bytes, values, sizeof values);
    free(bytes);
    tn_close(f);
}

static void check_form(const char *name, const char *form, size_t entries, tn_dtype index)
{
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_find(f, "m");
    assert_string_equal(tn_form_name(t->form), form);
    CHECK(t->rank == 2 && t->shape[0] == ROWS && t->shape[1] == COLS);
    CHECK(t->parts[0].array.shape[0] == (int64_t)entries);
    CHECK(t->parts[1].array.dtype == index);
    CHECK(tn_verify(f, NULL, NULL, NULL) == TN_OK);
    tn_close(f);
}

static void every_bit_comes_back_through_every_form(void)
{
    static const char *const forms[] = { "coo", "csr", "coo,index=uint64", "csr,index=uint32" };
    static const tn_dtype index[] = { TN_INT32, TN_INT32, TN_UINT64, TN_UINT32 };
    static const char *const outs[] = { "s.zt", "s.safetensors" };
    size_t n = make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 2; k++) {
            const char form[4] = { forms[i][0], forms[i][1], forms[i][2], '\0' };
            must_convert("in.safetensors", outs[k], (wish){ .form = forms[i] });
            check_form(outs[k], form, n, index[i]);
            must_convert(outs[k], "other.zt", (wish){ .form = forms[i][1] == 'o' ? "csr" : "coo" });
            must_convert("other.zt", "back.zt", (wish){ .form = "dense" });
            check_dense("back.zt");
            must_convert(outs[k], "back.safetensors", (wish){ .form = "dense" });
            check_dense("back.safetensors");
        }
    }
}

static void compressed_and_checksummed_data_takes_part(void)
{
    const tn_create_options zstd = { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C };
    size_t n = make_values();
    write_file("in.zt", zstd, &matrix, 1);
    must_convert("in.zt", "s.zt", (wish){ .form = "csr", .create = zstd });
    check_form("s.zt", "csr", n, TN_INT32);
    must_convert("s.zt", "back.zt", (wish){ .form = "dense", .create = zstd });
    check_dense("back.zt");
    CHECK(count_entries(folder) == 3);

    size_t size;
    uint8_t *bytes = load_file(in_folder("s.zt").text, &size);
    bytes[200] ^= 1;
    put_bytes("bad.zt", bytes, size);
    free(bytes);
    tn_error err;
    tn_status status = try_convert("bad.zt", "never.zt", (wish){ .form = "dense" }, &err);
    CHECK(status == TN_ERR_CHECKSUM || status == TN_ERR_CORRUPT);
    CHECK(count_entries(folder) == 4);
}

static void the_bytes_do_not_depend_on_the_number_of_threads(void)
{
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, &matrix, 1);
    static const char *const forms[] = { "coo", "csr", "dense" };
    for (size_t i = 0; i < 3; i++) {
        must_convert(i == 2 ? "1.zt" : "in.zt", "a.zt", (wish){ .form = forms[i], .create = { .jobs = 1 } });
        must_convert(i == 2 ? "1.zt" : "in.zt", "b.zt", (wish){ .form = forms[i], .create = { .jobs = 5 } });
        check_same_files(in_folder("a.zt").text, in_folder("b.zt").text);
        must_convert("a.zt", "1.zt", (wish){ .form = NULL });
    }
}

static void a_threshold_leaves_out_what_is_small(void)
{
    static const float row[] = { 0, 0.5f, -0.25f, -0.0f, 1, 0.75f };
    const simple t = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 3 }, .data = row };
    const struct { const char *form; int64_t entries; } cases[] = {
        { "coo", 5 }, { "coo,threshold=0", 4 }, { "csr,threshold=0.25", 3 }, { "csr,threshold=0.5", 2 },
        { "coo,threshold=9", 0 },
    };
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must_convert("in.zt", "out.zt", (wish){ .form = cases[i].form });
        tn_file *f = open_file("out.zt");
        CHECK(tn_file_find(f, "m")->parts[0].array.shape[0] == cases[i].entries);
        tn_close(f);
    }
    must_convert("in.zt", "out.zt", (wish){ .form = "coo" });
    must_convert("out.zt", "out.zt", (wish){ .form = "coo,threshold=0.5" });     /* stored entries are left out too */
    tn_file *f = open_file("out.zt");
    CHECK(tn_file_find(f, "m")->parts[0].array.shape[0] == 2);
    tn_close(f);
}

static void values_are_cast_with_or_without_another_form(void)
{
    static const float row[] = { 0, 1.5f, -2, 0, 0, 300 };
    const simple t = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 3 }, .data = row };
    static const int16_t all[] = { 0, 2, -2, 0, 0, 300 };
    static const int16_t entries[] = { 2, -2, 300 };
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    must_convert("in.zt", "csr.zt", (wish){ .form = "csr", .cast = "int16" });
    must_convert("in.zt", "float.zt", (wish){ .form = "csr" });
    must_convert("float.zt", "csr2.zt", (wish){ .cast = "int16" });
    must_convert("float.zt", "dense.zt", (wish){ .form = "dense", .cast = "int16" });
    for (int i = 0; i < 3; i++) {
        tn_file *f = open_file(i == 0 ? "csr.zt" : i == 1 ? "csr2.zt" : "dense.zt");
        const tn_tensor *m = tn_file_find(f, "m");
        CHECK(m->dtype == TN_INT16 && m->parts[0].array.dtype == TN_INT16);
        uint8_t *bytes = read_tensor(f, m);
        assert_memory_equal(bytes, i == 2 ? all : entries, i == 2 ? sizeof all : sizeof entries);
        free(bytes);
        tn_close(f);
    }
    must_fail("float.zt", (wish){ .cast = "int8,overflow=error" }, TN_ERR_LOSS, "tensor \"m\"");
}

static void entries_are_sorted_and_duplicates_refused_or_summed(void)
{
    static const int64_t shape[] = { 2, 3 }, indices[] = { 1, 2, 0, 1, 1, 2, 0, 0 };
    static const float data[] = { 1, 2, 4, 8 };
    write_entries("in.zt", TN_FLOAT32, shape, data, indices, 4);
    must_fail("in.zt", (wish){ .form = "coo" }, TN_ERR_LOSS, "duplicates=sum");
    must_fail("in.zt", (wish){ .form = "dense" }, TN_ERR_LOSS, "tensor \"t\"");
    must_convert("in.zt", "same.zt", (wish){ .form = NULL });       /* what is only copied stays as it is */
    must_convert("in.zt", "out.zt", (wish){ .form = "coo,duplicates=sum" });
    tn_file *f = open_file("out.zt");
    const tn_tensor *t = tn_file_find(f, "t");
    int64_t found[6];
    float sums[3];
    CHECK(t->parts[0].array.shape[0] == 3 && t->parts[1].array.dtype == TN_INT64);
    CHECK(tn_part_read(f, &t->parts[0], sums, sizeof sums, NULL) == TN_OK);
    CHECK(tn_part_read(f, &t->parts[1], found, sizeof found, NULL) == TN_OK);
    assert_memory_equal(sums, ((float[]){ 8, 2, 5 }), sizeof sums);
    assert_memory_equal(found, ((int64_t[]){ 0, 0, 0, 1, 1, 2 }), sizeof found);
    tn_close(f);
}

static void what_would_be_enormous_is_refused(void)
{
    static const int64_t shape[] = { INT64_C(1) << 31, INT64_C(1) << 31 }, indices[] = { 5, 7 },
    small[] = { 40000, 10000 };
    static const float one[] = { 1 };
    write_entries("bomb.zt", TN_FLOAT32, shape, one, indices, 1);
    must_fail("bomb.zt", (wish){ .form = "dense" }, TN_ERR_LIMIT, "tensor \"t\"");
    must_fail("bomb.zt", (wish){ .form = "csr" }, TN_ERR_LIMIT, "tensor \"t\"");
    write_entries("big.zt", TN_FLOAT32, small, one, indices, 1);                    /* 1.6 GB */
    must_fail("big.zt", (wish){ .form = "dense" }, TN_ERR_LIMIT, "1600000000");
    must_fail("big.zt", (wish){ .form = "dense", .max_bytes = 1599999999 }, TN_ERR_LIMIT, "1600000000");
    must_convert("big.zt", "csr.zt", (wish){ .form = "csr" });
    must_fail("csr.zt", (wish){ .form = "coo", .max_bytes = 8 }, TN_ERR_LIMIT, "more than the 8 allowed");
}

static void damaged_indices_are_found_before_anything_is_written(void)
{
    static const int64_t shape[] = { 2, 3 }, high[] = { 0, 3 }, low[] = { -1, 0 };
    static const float one[] = { 1 };
    write_entries("in.zt", TN_FLOAT32, shape, one, high, 1);
    must_fail("in.zt", (wish){ .form = "dense" }, TN_ERR_CORRUPT,
              "expected an index below 3 in dimension 1 but found 3");
    write_entries("in.zt", TN_FLOAT32, shape, one, low, 1);
    must_fail("in.zt", (wish){ .form = "csr" }, TN_ERR_CORRUPT,
              "expected an index below 2 in dimension 0 but found -1");
    must_fail("in.zt", (wish){ .form = NULL }, TN_ERR_CORRUPT,
              "expected an index below 2 in dimension 0 but found -1");
}

static void what_does_not_go_together_is_refused(void)
{
    static const float row[] = { 0, 1 };
    const simple one = { .name = "m", .dtype = TN_FLOAT32, .rank = 1, .shape = { 2 }, .data = row };
    const simple two = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { 1, 2 }, .data = row };
    const simple codes = { .name = "m", .dtype = TN_INT4, .rank = 2, .shape = { 1, 2 }, .data = row };
    write_file("1.zt", (tn_create_options){ .replace = true }, &one, 1);
    write_file("2.zt", (tn_create_options){ .replace = true }, &two, 1);
    write_file("4.zt", (tn_create_options){ .replace = true }, &codes, 1);
    must_fail("1.zt", (wish){ .form = "csr" }, TN_ERR_UNSUPPORTED, "tensor \"m\"");
    must_fail("4.zt", (wish){ .form = "csr" }, TN_ERR_UNSUPPORTED, "tensor \"m\"");
    must_equal_two("2.zt", (wish){ .form = "csr", .layout = "BA,from=AB" }, (wish){ .layout = "BA,from=AB" },
                   (wish){ .form = "csr" });
    must_convert("2.zt", "padded.zt", (wish){ .form = "csr", .pad = "0=4" });
    tn_file *padded = open_file("padded.zt");
    CHECK(tn_file_tensor(padded, 0)->shape[0] == 4 && tn_file_tensor(padded, 0)->shape[1] == 2);
    tn_close(padded);
    must_fail("2.zt", (wish){ .form = "csr", .cast = "int8,per=tensor" }, TN_ERR_ARGUMENT,
              "a sparse tensor has no codes with scales");
    must_fail("2.zt", (wish){ .form = "csr", .cast = "int4" }, TN_ERR_UNSUPPORTED,
              "entries of a sparse tensor take whole bytes");
    must_convert("2.zt", "scaled.zt", (wish){ .cast = "int8,per=tensor" });
    must_fail("scaled.zt", (wish){ .form = "coo" }, TN_ERR_UNSUPPORTED, "cast it to a float type first");
    must_convert("2.zt", "csr.zt", (wish){ .form = "csr" });
    must_fail("csr.zt", (wish){ .pad = "0=4" }, TN_ERR_UNSUPPORTED, "(form dense)");
    must_convert("1.zt", "same.zt", (wish){ .form = "dense" });
}

static void a_threshold_works_on_dense_tensors_that_stay_dense(void)
{
    static const float row[] = { 0.5f, -3, -0.25f }, kept[] = { 0, -3, 0 };
    const simple t = { .name = "m", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = row };
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    must_convert("in.zt", "out.zt", (wish){ .form = "dense,threshold=1" });
    tn_file *f = open_file("out.zt");
    uint8_t *bytes = read_tensor(f, tn_file_find(f, "m"));
    assert_memory_equal(bytes, kept, sizeof kept);
    free(bytes);
    tn_close(f);
}

/* A wrong checksum of data that is used where it lies. */
static void checksums_of_mapped_data_are_checked(void)
{
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true, .checksum = TN_CHECKSUM_CRC32C }, &matrix, 1);
    FILE *f = fopen(in_folder("in.zt").text, "r+b");
    CHECK(f && fseek(f, 1000, SEEK_SET) == 0 && fputc(0x55, f) == 0x55 && fclose(f) == 0);
    must_fail("in.zt", (wish){ .form = "csr" }, TN_ERR_CHECKSUM, "in.zt: ");
}

/* Zeros that are decoded into more than a gigabyte. */
static void what_a_few_bytes_are_decoded_into_has_a_limit(void)
{
    static const uint8_t zeros[1 << 20];
    const int64_t shape[] = { 1100, 1 << 20 };
    const tn_part part = { .role = "data", .array = { TN_UINT8, 2, shape, NULL } };
    const tn_tensor t = { .name = "m", .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 2, .shape = shape,
                          .parts = &part, .nparts = 1 };
    const tn_create_options o = { .size = sizeof o, .replace = true, .encoding = TN_ENCODING_ZSTD,
                                  .level = 1 };
    tn_writer *w;
    CHECK(tn_create(in_folder("in.zt").text, &o, &w, NULL) == TN_OK && tn_writer_add(w, &t, NULL) == TN_OK);
    for (int i = 0; i < 1100; i++)
        CHECK(tn_writer_write(w, 0, 0, zeros, sizeof zeros, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    must_fail("in.zt", (wish){ .form = "csr" }, TN_ERR_LIMIT,
              "would be decoded into 1153433600, more than the 1073741824 allowed");
}

/* Widening changes no order and minds no duplicates. */
static void a_plain_conversion_leaves_entries_as_they_are(void)
{
    static const int32_t indices[] = { 1, 2, 0, 1, 1, 2 };
    static const uint64_t wide[] = { 1, 2, 0, 1, 1, 2 };
    static const float data[] = { 1, 2, 4 };
    const int64_t shape[] = { 2, 3 }, many[] = { 3 }, rows[] = { 3, 2 };
    const tn_part parts[] = {
        { .role = "values", .array = { TN_FLOAT32, 1, many, NULL }, .data = data },
        { .role = "indices", .array = { TN_INT32, 2, rows, NULL }, .data = indices },
    };
    const tn_tensor t = { .name = "m", .form = TN_FORM_COO, .dtype = TN_FLOAT32, .rank = 2, .shape = shape,
                          .parts = parts, .nparts = 2 };
    CHECK(try_write_tensor("in.zt", (tn_create_options){ 0 }, &t, NULL) == TN_OK);
    must_convert("in.zt", "out.btf", (wish){ .create = { .drop_names = true } });
    const tn_open_options btf = { .size = sizeof btf, .format = "btf" };
    tn_file *f;
    uint64_t found[6];
    CHECK(tn_open(in_folder("out.btf").text, &btf, &f, NULL) == TN_OK);
    CHECK(tn_part_read(f, &tn_file_tensor(f, 0)->parts[1], found, sizeof found, NULL) == TN_OK);
    assert_memory_equal(found, wide, sizeof wide);
    tn_close(f);
}

/* The folder of the output, not the input, is what is wrong. */
static void the_file_beside_the_output_is_the_outputs(void)
{
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true, .encoding = TN_ENCODING_ZSTD }, &matrix, 1);
    tn_error err = { .text = "" };
    CHECK(try_convert("in.zt", "no/such/out.zt", (wish){ .form = "csr" }, &err) == TN_ERR_IO);
    CHECK(strstr(line_of(&err), "no/such/out.zt: ") && !strstr(line_of(&err), "in.zt: "));
}

static void decoding_for_another_form_can_be_cancelled(void)
{
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true, .encoding = TN_ENCODING_ZSTD }, &matrix, 1);
    must_fail("in.zt", (wish){ .form = "csr", .dry_run = true, .progress = stop_at_once }, TN_ERR_CANCELLED,
              "cancelled");
}

/* Two tensors of the same bytes are two when they get another form; all that was read is counted. */
static void tied_tensors_and_bytes_read(void)
{
    size_t n = make_values();
    simple two[] = { matrix, matrix };
    two[1].name = "tied";
    two[1].tied = "m";
    two[1].data = NULL;
    write_file("in.zt", (tn_create_options){ .replace = true }, two, 2);
    must_convert("in.zt", "out.zt", (wish){ .form = "coo" });
    tn_file *f = open_file("out.zt");
    CHECK(tn_file_find(f, "tied")->parts[0].array.shape[0] == (int64_t)n && !tn_file_find(f, "tied")->tied);
    tn_close(f);
    tn_convert_result result;
    must_convert("out.zt", "csr.zt", (wish){ .form = "csr", .result = &result });
    CHECK(result.bytes_in == 2 * n * (4 + 8));
}

static void indices_are_widened_where_the_container_has_one_type(void)
{
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, &matrix, 1);
    must_convert("in.zt", "coo.zt", (wish){ .form = "coo" });
    check_form("coo.zt", "coo", make_values(), TN_INT32);
    must_convert("coo.zt", "a.btf", (wish){ .create = { .drop_names = true } });
    must_convert("in.zt", "b.btf", (wish){ .form = "coo", .create = { .drop_names = true } });
    check_same_files(in_folder("a.btf").text, in_folder("b.btf").text);
    must_fail("in.zt", (wish){ .form = "csr", .create = { .drop_names = true, .format = "btf" } },
              TN_ERR_UNSUPPORTED, "coo");
}

static void a_dry_run_counts_and_writes_nothing(void)
{
    size_t n = make_values();
    write_file("in.zt", (tn_create_options){ .replace = true, .encoding = TN_ENCODING_ZSTD }, &matrix, 1);
    tn_convert_result result;
    must_convert("in.zt", "out.zt", (wish){ .form = "csr", .dry_run = true, .result = &result });
    CHECK(result.bytes_out > n * 8 + (ROWS + 1) * 4 && result.bytes_in < sizeof values);
    CHECK(count_entries(folder) == 1);
}

/* Elements that steps make are counted and written in blocks, without a copy. */
static void what_other_steps_make_becomes_sparse(void)
{
    static const char *const forms[] = { "coo", "csr", "csr,threshold=20" };
    const wish turned = { .layout = "BA,from=AB" };
    make_values();
    for (int compressed = 0; compressed < 2; compressed++) {
        const tn_create_options create = { .encoding = compressed ? TN_ENCODING_ZSTD : TN_ENCODING_RAW };
        write_file("in.zt", create, &matrix, 1);
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
            must_equal_two("in.zt", (wish){ .form = forms[i], .layout = turned.layout }, turned,
                           (wish){ .form = forms[i] });
        remove(in_folder("in.zt").text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_bit_comes_back_through_every_form),
        IN_FOLDER(compressed_and_checksummed_data_takes_part),
        IN_FOLDER(the_bytes_do_not_depend_on_the_number_of_threads),
        IN_FOLDER(a_threshold_leaves_out_what_is_small),
        IN_FOLDER(values_are_cast_with_or_without_another_form),
        IN_FOLDER(entries_are_sorted_and_duplicates_refused_or_summed),
        IN_FOLDER(what_would_be_enormous_is_refused),
        IN_FOLDER(damaged_indices_are_found_before_anything_is_written),
        IN_FOLDER(what_does_not_go_together_is_refused),
        IN_FOLDER(indices_are_widened_where_the_container_has_one_type),
        IN_FOLDER(a_dry_run_counts_and_writes_nothing),
        IN_FOLDER(a_threshold_works_on_dense_tensors_that_stay_dense),
        IN_FOLDER(checksums_of_mapped_data_are_checked),
        IN_FOLDER(what_a_few_bytes_are_decoded_into_has_a_limit),
        IN_FOLDER(a_plain_conversion_leaves_entries_as_they_are),
        IN_FOLDER(the_file_beside_the_output_is_the_outputs),
        IN_FOLDER(decoding_for_another_form_can_be_cancelled),
        IN_FOLDER(tied_tensors_and_bytes_read),
        IN_FOLDER(what_other_steps_make_becomes_sparse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
