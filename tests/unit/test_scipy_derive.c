/* Matrices of SciPy in the formats csc, bsr and dia, written by hand: their entries, and what is refused. */
#include "support.h"
#include "files.h"
#include "walk.h"
#include "scipy_arrays.h"

static const int32_t second_rows[] = { 1, 0, 0 }, by_column[] = { 0, 1, 2, 3 }, one_block[] = { 1 },
one_line[] = { 0, 1 }, two_offsets[] = { 1, -1 };
static const float four[] = { 1, 2, 3, 4 }, six[] = { 9, 5, 6, 7, 8, 9 };
static const float values[] = { 5, 6, 7 };
static const int64_t shape[] = { 2, 3 }, square[] = { 2, 4 };
static const int32_t indptr[] = { 0, 2, 3 };
enum { DIA_ARRAYS = 4 };
static const array csc[] = {
    { "data", "<f4", "(3,)", values, 12, 0, 0 },     { "indices", "<i4", "(3,)", second_rows, 12, 0, 0 },
    { "indptr", "<i4", "(4,)", by_column, 16, 0, 0 },
    { "shape", "<i8", "(2,)", shape, 16, 0, 0 },     { "format", "|S3", "()", "csc", 3, 0, 0 },
};
static const array bsr[] = {
    { "data", "<f4", "(1, 2, 2)", four, 16, 0, 0 },  { "indices", "<i4", "(1,)", one_block, 4, 0, 0 },
    { "indptr", "<i4", "(2,)", one_line, 8, 0, 0 },
    { "shape", "<i8", "(2,)", square, 16, 0, 0 },    { "format", "|S3", "()", "bsr", 3, 0, 0 },
};
static const array dia[] = {
    { "data", "<f4", "(2, 3)", six, 24, 0, 0 },      { "offsets", "<i4", "(2,)", two_offsets, 8, 0, 0 },
    { "shape", "<i8", "(2,)", shape, 16, 0, 0 },     { "format", "|S3", "()", "dia", 3, 0, 0 },
};

static void check_entries(archive *a, const float *expected, const int32_t *places, size_t n)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    if (open_archive(a, NULL, &f, &err))
        fail_msg("%s", line_of(&err));
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(tn_file_count(f) == 1 && !tn_file_warning(f, 0) && t->form == TN_FORM_COO && good_parts(f) == 2);
    tn_buf bytes = all_parts(f, t);
    CHECK(bytes.size == n * 12 && memcmp(bytes.data, expected, n * 4) == 0);
    CHECK(memcmp(bytes.data + n * 4, places, n * 8) == 0);
    tn_buf_free(&bytes);
    tn_close(f);
}

static void entries_of_other_formats_are_in_the_order_of_the_file(void)
{
    static const float turned[] = { 1, 3, 2, 4 }, diagonals[] = { 5, 6, 7 };
    static const int32_t csc_places[] = { 1, 0, 0, 1, 0, 2 }, bsr_places[] = { 0, 2, 0, 3, 1, 2, 1, 3 },
    dia_places[] = { 0, 1, 1, 2, 1, 0 };
    for (unsigned method = 0; method <= TN_ZIP_DEFLATED; method += TN_ZIP_DEFLATED) {
        array own[CSR_ARRAYS];
        archive a = make_archive(csc, CSR_ARRAYS, method);
        check_entries(&a, values, csc_places, 3);
        tn_buf_free(&a.bytes);
        memcpy(own, bsr, sizeof bsr);
        for (int fortran = 0; fortran < 2; fortran++) {
            own[0].fortran = fortran;
            a = make_archive(own, CSR_ARRAYS, method);
            check_entries(&a, fortran ? turned : four, bsr_places, 4);
            tn_buf_free(&a.bytes);
        }
        a = make_archive(dia, DIA_ARRAYS, method);
        check_entries(&a, diagonals, dia_places, 3);
        tn_buf_free(&a.bytes);
    }
}

static tn_status read_archive(archive *a, tn_error *err)
{
    tn_file *f = NULL;
    tn_open_options options = { .size = sizeof options };
    CHECK(tn_open_memory(a->bytes.data, a->bytes.size, &options, &f, NULL) == TN_OK);
    const tn_tensor *t = tn_file_tensor(f, 0);
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < t->nparts && !status; k++) {
        uint8_t *bytes = malloc((size_t)t->parts[k].nbytes + 1);
        CHECK(bytes != NULL);
        status = tn_part_read(f, &t->parts[k], bytes, t->parts[k].nbytes, err);
        free(bytes);
    }
    CHECK(!status || good_parts(f) < t->nparts);
    tn_close(f);
    return status;
}

static void numbers_of_other_formats_are_not_believed(void)
{
    static const int32_t below[] = { 1, 0, -1 }, high[] = { 1, 2, 0 }, late[] = { 1, 1, 2, 3 }, down[] = { 0, 2, 1, 3 },
    few[] = { 0, 1, 2, 2 }, many[] = { 0, 1, 2, 4 }, two[] = { 2 }, none[] = { 0, 0 };
    static const struct { const array *of; array instead; const char *text; } bad[] = {
        { csc, { "indices", "<i4", "(3,)", below, 12, 0, 0 },
          "entry 2: expected an index below 2 in dimension 0 but found -1" },
        { csc, { "indices", "<i4", "(3,)", high, 12, 0, 0 },
          "entry 1: expected an index below 2 in dimension 0 but found 2" },
        { csc, { "indptr", "<i4", "(4,)", late, 16, 0, 0 }, "row pointer 0: expected 0 but found 1" },
        { csc, { "indptr", "<i4", "(4,)", down, 16, 0, 0 }, "row pointer 2: expected at least 2, as the one" },
        { csc, { "indptr", "<i4", "(4,)", few, 16, 0, 0 }, "row pointer 3: expected 3, the number of values" },
        { csc, { "indptr", "<i4", "(4,)", many, 16, 0, 0 }, "row pointer 3: expected 3, the number of values" },
        { bsr, { "indices", "<i4", "(1,)", two, 4, 0, 0 },
          "entry 0: expected an index below 2 in dimension 1 but found 2" },
        { bsr, { "indptr", "<i4", "(2,)", none, 8, 0, 0 }, "row pointer 1: expected 1, the number of values" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        archive a = change(bad[i].of, bad[i].instead, TN_ZIP_STORED);
        tn_error err = { .text = "" };
        if (read_archive(&a, &err) != TN_ERR_CORRUPT || !strstr(line_of(&err), bad[i].text))
            fail_msg("expected \"%s\"\nfound \"%s\"", bad[i].text, line_of(&err));
        tn_buf_free(&a.bytes);
    }
}

static void members_of_other_formats_that_contradict_each_other_are_refused(void)
{
    static const int64_t odd[] = { 3, 4 }, wide[] = { 1, -1 };
    static const struct { const array *of; array instead; const char *text; } bad[] = {
        { csc, { .name = "indptr" }, "member \"indptr.npy\": a SciPy csc matrix has one" },
        { csc, { "indptr", "<i4", "(3,)", indptr, 12, 0, 0 },
          "\"indptr.npy\": expected 4 elements of type int32 but found 3" },
        { csc, { "data", "<f4", "(3, 1)", values, 12, 0, 0 }, "\"data.npy\": expected a vector" },
        { bsr, { "data", "<f4", "(4,)", four, 16, 0, 0 },
          "\"data.npy\": expected an array of 3 dimensions but found 4 of type float32" },
        { bsr, { "data", "<f4", "(1, 0, 2)", four, 0, 0, 0 }, "blocks of 0 x 2 do not fill a matrix of 2 x 4" },
        { bsr, { "shape", "<i8", "(2,)", odd, 16, 0, 0 }, "blocks of 2 x 2 do not fill a matrix of 3 x 4" },
        { bsr, { "indices", "<i4", "(2,)", one_line, 8, 0, 0 },
          "\"indices.npy\": expected 1 elements but found 2 of type int32" },
        { dia, { "data", "<f4", "(6,)", six, 24, 0, 0 },
          "\"data.npy\": expected an array of 2 dimensions but found 6 of type float32" },
        { dia, { .name = "offsets" }, "member \"offsets.npy\": a SciPy dia matrix has one" },
        { dia, { "offsets", "<u8", "(2,)", wide, 16, 0, 0 },
          "\"offsets.npy\": expected type int32 or int64 but found uint64" },
        { dia, { "offsets", "<i4", "(1,)", two_offsets, 4, 0, 0 }, "\"offsets.npy\": expected 2 elements" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = bad[i].of == dia ? DIA_ARRAYS : CSR_ARRAYS;
        array own[CSR_ARRAYS];
        memcpy(own, bad[i].of, n * sizeof *own);
        for (size_t k = 0; k < n; k++)
            if (strcmp(bad[i].of[k].name, bad[i].instead.name) == 0)
                own[k] = bad[i].instead.type ? bad[i].instead : (array){ .name = NULL };
        archive a = make_archive(own, n, TN_ZIP_STORED);
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        tn_status status = open_archive(&a, NULL, &f, &err);
        if (status != TN_ERR_CORRUPT || !strstr(line_of(&err), bad[i].text))
            fail_msg("expected \"%s\"\nfound %d \"%s\"", bad[i].text, (int)status, line_of(&err));
        tn_buf_free(&a.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_of_other_formats_are_in_the_order_of_the_file),
        TEST(numbers_of_other_formats_are_not_believed),
        TEST(members_of_other_formats_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
