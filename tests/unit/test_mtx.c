/* MatrixMarket: what is read, what is refused and why.  tests/interop holds it
 * against SciPy itself. */
#include "support.h"
#include "stored.h"

#include "files.h"
#include "make.h"

#include "store/file.h"
#include "tensor/code.h"

#include <math.h>

/* ---- texts ---- */

static tn_file *open_text(const char *text)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    if (tn_open_memory(text, strlen(text), NULL, &f, &err))
        fail_msg("%s\n%s", line_of(&err), text);
    walk_file(f);
    return f;
}

/* The place in the text that it was refused for. */
static uint64_t check_refused_bytes(const char *text, size_t n, tn_status expected, const char *message)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "mtx" };
    uint8_t *copy = exact_copy(text, n);
    tn_status status = tn_open_memory(copy, n, &options, &f, &err);
    if (!status)
        tn_close(f);
    if (status != expected || !strstr(line_of(&err), message))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\" of\n%s", (int)expected, message, (int)status,
                 line_of(&err), text);
    CHECK(err.offset <= n);
    CHECK(tn_open_memory(copy, n, &options, &f, NULL) == expected);
    free(copy);
    return err.offset;
}

static uint64_t check_refused(const char *text, tn_status expected, const char *message)
{
    return check_refused_bytes(text, strlen(text), expected, message);
}

/* The message speaks of the place where `place` stands for the last time. */
static void check_refused_at(const char *text, const char *place, const char *message)
{
    const char *found = NULL;
    for (const char *p = text; (p = strstr(p, place)) != NULL; p++)
        found = p;
    CHECK(found && check_refused(text, TN_ERR_CORRUPT, message) == (uint64_t)(found - text));
}

#define COORDINATE "%%MatrixMarket matrix coordinate "
#define ARRAY      "%%MatrixMarket matrix array "

/* ---- what others wrote ---- */

/* All elements in rows, of a coo tensor too. */
static uint8_t *dense_elements(const tn_file *f, const tn_tensor *t, size_t *n)
{
    size_t width = tn_dtype_get(t->dtype)->bits / 8u, columns = (size_t)t->shape[1];
    *n = (size_t)t->shape[0] * columns * width;
    if (t->form == TN_FORM_DENSE)
        return read_tensor(f, t);
    uint8_t *all = calloc(*n ? *n : 1, 1);
    assert_non_null(all);
    for (size_t i = 0; i < (size_t)t->parts[0].array.shape[0]; i++) {
        unsigned bits = tn_dtype_get(t->parts[1].array.dtype)->bits;
        uint64_t row = tn_code_get(t->parts[1].data, 2 * i, bits),
                 column = tn_code_get(t->parts[1].data, 2 * i + 1, bits);
        memcpy(all + (row * columns + column) * width, (const uint8_t *)t->parts[0].data + i * width, width);
    }
    return all;
}

static void check_golden(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 6);
    tn_file *f = open_at(TEST_GOLDEN "/mtx", field[0], NULL, TN_IO_AUTO);
    walk_file(f);
    const tn_tensor *t = tn_file_tensor(f, 0);
    assert_string_equal(tn_file_format(f), "mtx");
    assert_string_equal(tn_form_name(t->form), field[1]);
    assert_string_equal(tn_dtype_get(t->dtype)->name, field[2]);
    check_shape(t, field[3]);
    uint64_t count;
    CHECK(tn_shape_count(t->parts[0].array.rank, t->parts[0].array.shape, &count) == TN_OK);
    CHECK(count == strtoull(field[4], NULL, 10));
    size_t size;
    uint8_t *elements = dense_elements(f, t, &size);
    if (strcmp(sha256_of(elements, size).text, field[5]) != 0)
        fail_msg("%s: other elements", field[0]);
    CHECK(tn_file_count(f) == 1 && tn_file_shards(f) == 1 && !tn_file_warning(f, 0));
    free(elements);
    tn_close(f);
}

static void golden_matrices_are_read(void)
{
    CHECK(each_row(TEST_GOLDEN "/mtx/matrices.tsv", check_golden) == 35);
}

/* ---- kinds ---- */

static void entries_stay_in_the_order_of_the_file(void)
{
    static const double values[] = { 3, 3, 1, 2, 2 };
    static const int32_t indices[] = { 2, 1, 1, 2, 1, 1, 1, 0, 0, 1 };
    tn_file *f = open_text(COORDINATE "real symmetric\n3 3 3\n3 2 3\n2 2 1\n2 1 2\n");
    const tn_tensor *t = tn_file_tensor(f, 0);
    assert_string_equal(t->name, "tensor");
    CHECK(t->form == TN_FORM_COO);
    CHECK(t->dtype == TN_FLOAT64 && t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 3 && t->nparts == 2);
    CHECK(t->parts[0].nbytes == sizeof values && memcmp(t->parts[0].data, values, sizeof values) == 0);
    CHECK(t->parts[1].array.dtype == TN_INT32 && t->parts[1].nbytes == sizeof indices);
    CHECK(memcmp(t->parts[1].data, indices, sizeof indices) == 0);
    assert_string_equal(stored_info(&t->parts[0]).encoding_name, "text");
    assert_string_equal(stored_info(&t->parts[0]).type, "real");
    tn_close(f);
}

static void columns_of_an_array_come_out_as_rows(void)
{
    static const int64_t values[] = { 1, 3, 5, 2, 4, 6 };
    tn_file *f = open_text(ARRAY "integer general\n2 3\n1\n2\n3\n4\n5\n6\n");
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(t->form == TN_FORM_DENSE);
    CHECK(t->dtype == TN_INT64 && t->parts[0].nbytes == sizeof values &&
          memcmp(t->parts[0].data, values, sizeof values) == 0);
    tn_close(f);
}

static void mirrored_elements_are_negated_or_conjugated(void)
{
    static const double hermitian[] = { 1, 2, 1, -2 }, complex_skew[] = { 1, 2, -1, -2 };
    tn_file *f = open_text(COORDINATE "complex hermitian\n2 2 1\n2 1 1 2\n");
    CHECK(memcmp(tn_file_tensor(f, 0)->parts[0].data, hermitian, sizeof hermitian) == 0);
    tn_close(f);
    f = open_text(COORDINATE "complex skew-symmetric\n2 2 1\n2 1 1 2\n");
    CHECK(memcmp(tn_file_tensor(f, 0)->parts[0].data, complex_skew, sizeof complex_skew) == 0);
    tn_close(f);
    f = open_text(COORDINATE "complex skew-symmetric\n2 2 1\n2 1 inf 2\n");
    static const double infinite[] = { INFINITY, 2, -INFINITY, -2 };
    CHECK(memcmp(tn_file_tensor(f, 0)->parts[0].data, infinite, sizeof infinite) == 0);
    tn_close(f);
    f = open_text(COORDINATE "complex skew-symmetric\n2 2 1\n2 1 0 -0\n");
    static const double zeros[] = { 0, -0.0, 0, 0 };
    CHECK(memcmp(tn_file_tensor(f, 0)->parts[0].data, zeros, sizeof zeros) == 0);
    tn_close(f);
    f = open_text(ARRAY "integer skew-symmetric\n2 2\n-9223372036854775807\n");
    const int64_t *values = tn_file_tensor(f, 0)->parts[0].data;
    CHECK(values[0] == 0 && values[1] == INT64_MAX && values[2] == -INT64_MAX && values[3] == 0);
    tn_close(f);
}

static void indices_are_wide_where_the_matrix_is(void)
{
    tn_file *f = open_text(COORDINATE "pattern general\n2147483647 2147483647 1\n2147483647 1\n");
    CHECK(tn_file_tensor(f, 0)->parts[1].array.dtype == TN_INT32);
    tn_close(f);
    f = open_text(COORDINATE "pattern general\n2147483648 4294967295 1\n2147483648 4294967295");
    static const int64_t indices[] = { 2147483647, 4294967294 };
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(t->parts[1].array.dtype == TN_INT64 && memcmp(t->parts[1].data, indices, sizeof indices) == 0);
    CHECK(t->dtype == TN_BOOL && *(const uint8_t *)t->parts[0].data == 1);
    tn_close(f);
    f = open_text(COORDINATE "pattern general\n1 2147483648 0\n");
    CHECK(tn_file_tensor(f, 0)->parts[1].array.dtype == TN_INT64);
    tn_close(f);
    f = open_text(COORDINATE "pattern general\n2147483648 1 0\n");
    CHECK(tn_file_tensor(f, 0)->parts[1].array.dtype == TN_INT64);
    tn_close(f);
}

static void matrices_without_elements_are_matrices(void)
{
    static const char *const texts[] = {
        COORDINATE "real general\n0 0 0\n",
        COORDINATE "integer symmetric\n0 0 0",
        COORDINATE "complex general\n5 0 0\n\n\n",
        ARRAY "real general\n0 0\n",
        ARRAY "real general\n0 9000000000000000000\n",
        ARRAY "complex hermitian\n0 0\n",
        ARRAY "real skew-symmetric\n0 0\n",
        COORDINATE "real general\n1000000000 1000000000 0\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_file *f = open_text(texts[i]);
        CHECK(tn_file_tensor(f, 0)->parts[0].nbytes == 0);
        tn_close(f);
    }
    tn_file *f = open_text(ARRAY "real skew-symmetric\n1 1\n");
    CHECK(*(const double *)tn_file_tensor(f, 0)->parts[0].data == 0);
    tn_close(f);
}

static void the_banner_is_recognised_in_any_case(void)
{
    static const char text[] = "%%matrixMARKET matrix array real general\n1 1\n5";
    CHECK(walk_bytes(text, sizeof text - 1, NULL) == TN_OK);
    CHECK(walk_bytes(text, 13, NULL) == TN_ERR_UNSUPPORTED);
    CHECK(walk_bytes(text + 1, sizeof text - 2, NULL) == TN_ERR_UNSUPPORTED);
}

/* ---- what is refused ---- */

static void a_wrong_head_is_refused_with_its_line(void)
{
    check_refused("", TN_ERR_TRUNCATED,
                  "line 1: expected the banner %%MatrixMarket but found the end of the file");
    check_refused("%MatrixMarket matrix", TN_ERR_CORRUPT, "expected the banner");
    check_refused("%%MatrixMarket", TN_ERR_TRUNCATED,
                  "line 1: expected \"matrix\" but found the end of the file");
    check_refused("%%MatrixMarket vector array real general\n", TN_ERR_CORRUPT,
                  "expected \"matrix\" but found \"vector\"");
    check_refused("%%MatrixMarketmatrix array real general\n", TN_ERR_CORRUPT, "expected the banner");
    check_refused(" %%MatrixMarket matrix array real general\n1 1\n5", TN_ERR_CORRUPT, "expected the banner");
    check_refused("%%MatrixMarket matrix csr real general\n", TN_ERR_CORRUPT,
                  "expected \"coordinate\" or \"array\" but found \"csr\"");
    check_refused(ARRAY "float general\n", TN_ERR_CORRUPT, "but found \"float\"");
    check_refused(ARRAY "real\n1 1\n5\n", TN_ERR_CORRUPT, "or \"hermitian\" but found the end of the line");
    check_refused(ARRAY "real symmetrical\n", TN_ERR_CORRUPT, "but found \"symmetrical\"");
    check_refused(ARRAY "real general or not\n", TN_ERR_CORRUPT,
                  "line 1: expected the end of the line but found \"or\"");
    check_refused(ARRAY "pattern general\n", TN_ERR_CORRUPT, "expected a field with values");
    check_refused(ARRAY "real hermitian\n", TN_ERR_CORRUPT,
                  "expected complex values in a hermitian matrix but found \"real\"");
    check_refused(COORDINATE "pattern skew-symmetric\n", TN_ERR_CORRUPT,
                  "expected values with a sign in a skew-symmetric matrix");
    check_refused(COORDINATE "unsigned-integer skew-symmetric\n", TN_ERR_CORRUPT,
                  "expected values with a sign");
    check_refused(ARRAY "real general\r1 1\r5\r", TN_ERR_CORRUPT,
                  "line 1: expected the end of the line but found \"\\r\"");
}

static void a_wrong_size_line_is_refused(void)
{
    check_refused(ARRAY "real general\n% only a comment", TN_ERR_TRUNCATED,
                  "line 2: expected a number of rows below 2^63 but found the end of the file");
    check_refused(ARRAY "real general\n\n2\n", TN_ERR_CORRUPT,
                  "line 3: expected a number of columns below 2^63 but found the end of the line");
    check_refused(ARRAY "real general\n2 2 2\n", TN_ERR_CORRUPT,
                  "line 2: expected the end of the line but found \"2\"");
    check_refused(COORDINATE "real general\n2 2\n", TN_ERR_CORRUPT, "expected a number of entries");
    check_refused(COORDINATE "real general\n2 -2 1\n", TN_ERR_CORRUPT,
                  "expected a number of columns below 2^63 but found \"-2\"");
    check_refused(COORDINATE "real general\n2x 2 1\n", TN_ERR_CORRUPT, "but found \"2x\"");
    check_refused(COORDINATE "real general\n9223372036854775808 2 1\n", TN_ERR_CORRUPT,
                  "but found \"9223372036854775808\"");
    check_refused(COORDINATE "real general\n99999999999999999999999 2 1\n", TN_ERR_CORRUPT, "below 2^63");
    check_refused(COORDINATE "real general\n4000000000 4000000000 0\n", TN_ERR_LIMIT,
                  "line 2: expected at most 2^63 - 1 elements");
    check_refused(COORDINATE "real symmetric\n3 2 0\n", TN_ERR_CORRUPT,
                  "expected as many rows as columns in a matrix with a symmetry but found 3 and 2");
    check_refused(ARRAY "complex hermitian\n0 2\n", TN_ERR_CORRUPT, "but found 0 and 2");
}

/* Numbers that lie cost no memory. */
static void sizes_are_believed_only_if_they_could_be(void)
{
    check_refused(ARRAY "real general\n1000000000 1000000000\n1\n", TN_ERR_TRUNCATED,
                  "line 2: expected 1000000000000000000 values but found only 2 bytes behind this line");
    check_refused(ARRAY "real symmetric\n2000000000 2000000000\n", TN_ERR_TRUNCATED,
                  "expected 2000000001000000000 values");
    check_refused(COORDINATE "real general\n5 5 9223372036854775807\n1 1 1\n", TN_ERR_TRUNCATED,
                  "expected 9223372036854775807 entries");
    check_refused(COORDINATE "real general\n5 5 2\n1 1 1\n1 1 ", TN_ERR_TRUNCATED,
                  "expected 2 entries but found only 10 bytes");
    check_refused(ARRAY "complex general\n3 1\n1 2\n1 2\n1 ", TN_ERR_TRUNCATED,
                  "expected 3 values but found only 10 bytes");
    tn_file *f = open_text(COORDINATE "pattern general\n5 5 2\n1 1\n1 2");
    tn_close(f);
}

static void wrong_entries_are_refused_with_their_line(void)
{
    static const struct { const char *entry, *message; tn_status status; } bad[] = {
        { "9 1 5", "line 3: expected a row from 1 to 3 but found \"9\"", TN_ERR_CORRUPT },
        { "1 9 5", "line 3: expected a column from 1 to 4 but found \"9\"", TN_ERR_CORRUPT },
        { "0 1 5", "expected a row from 1 to 3 but found \"0\"", TN_ERR_CORRUPT },
        { "1 0 5", "expected a column from 1 to 4", TN_ERR_CORRUPT },
        { "-1 1 5", "expected a row from 1 to 3 but found \"-1\"", TN_ERR_CORRUPT },
        { "1.0 1 5", "expected a row from 1 to 3 but found \"1.0\"", TN_ERR_CORRUPT },
        { "99999999999999999999999 1 5", "expected a row from 1 to 3", TN_ERR_CORRUPT },
        { "18446744073709551617 1 5", "expected a row from 1 to 3", TN_ERR_CORRUPT },
        { "1,1,5\n", "expected a row from 1 to 3 but found \"1,1,5\"", TN_ERR_CORRUPT },
        { "1\n1 5", "line 3: expected a column from 1 to 4 but found the end of the line", TN_ERR_CORRUPT },
        { "1 1    \n", "line 3: expected a number but found the end of the line", TN_ERR_CORRUPT },
        { "1 1      ", "line 3: expected a number but found the end of the file", TN_ERR_TRUNCATED },
        { "1 1 five", "line 3: expected a number but found \"five\"", TN_ERR_CORRUPT },
        { "1 1 5x", "expected a number but found \"5x\"", TN_ERR_CORRUPT },
        { "1 1 1e400", "expected a number that float64 holds but found \"1e400\"", TN_ERR_CORRUPT },
        { "1 1 5 6", "line 3: expected the end of the line but found \"6\"", TN_ERR_CORRUPT },
        { "1 1 5\n2 2 2", "line 4: expected the end of the file behind 1 entries but found \"2\"",
          TN_ERR_CORRUPT },
        { "1 1 5\n% bye", "line 4: expected the end of the file behind 1 entries but found \"%\"",
          TN_ERR_CORRUPT },
        { "% late\n1 1 5", "line 3: expected comments before the size line only but found \"%\"",
          TN_ERR_CORRUPT },
        { "1 1 5\r2", "expected the end of the line but found \"\\r\"", TN_ERR_CORRUPT },
        { "\n\n\n\n\n\n\n", "line 10: expected entry 1 of 1 but found the end of the file",
          TN_ERR_TRUNCATED },
        { "1 1 \x1b[31m", "but found \"\\x1b[31m\"", TN_ERR_CORRUPT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s%s%s", COORDINATE "real general\n3 4 1\n", bad[i].entry, "");
        check_refused(text, bad[i].status, bad[i].message);
    }
    check_refused(COORDINATE "integer general\n1 1 1\n1 1 5.0", TN_ERR_CORRUPT,
                  "expected an integer from -9223372036854775808 to 9223372036854775807 but found \"5.0\"");
    check_refused(COORDINATE "integer general\n1 1 1\n1 1 9223372036854775808", TN_ERR_CORRUPT,
                  "expected an integer from");
    check_refused(COORDINATE "pattern general\n1 1 1\n1 1 1", TN_ERR_CORRUPT,
                  "expected the end of the line but found \"1\"");
    check_refused(COORDINATE "complex general\n1 1 1\n1 1 1.5", TN_ERR_TRUNCATED,
                  "line 3: expected a number but found the end of the file");
    check_refused(COORDINATE "complex general\n1 1 1\n1 1 1.5 \n", TN_ERR_CORRUPT,
                  "expected a number but found the end of the line");
    check_refused(ARRAY "real general\n2 1\n1 2\n", TN_ERR_CORRUPT,
                  "line 3: expected the end of the line but found \"2\"");
    check_refused(ARRAY "real general\n2 1\n1\n\n\n", TN_ERR_TRUNCATED,
                  "line 6: expected value 2 of 2 but found the end of the file");
    check_refused(ARRAY "real general\n2 1\n1\n2\n3", TN_ERR_CORRUPT,
                  "the end of the file behind 2 values but found \"3\"");
}

static void a_symmetry_that_is_none_is_refused(void)
{
    check_refused(COORDINATE "real symmetric\n2 2 1\n1 2 5", TN_ERR_CORRUPT,
                  "line 3: expected an entry on or below the diagonal");
    check_refused(COORDINATE "real skew-symmetric\n2 2 1\n1 1 0", TN_ERR_CORRUPT,
                  "no entry on the diagonal of a skew-symmetric matrix");
    check_refused(COORDINATE "complex hermitian\n2 2 1\n2 2 1 1", TN_ERR_CORRUPT,
                  "no imaginary part on the diagonal of a hermitian matrix");
    check_refused(ARRAY "complex hermitian\n1 1\n1 nan", TN_ERR_CORRUPT, "no imaginary part");
    check_refused(ARRAY "integer skew-symmetric\n2 2\n-9223372036854775808", TN_ERR_CORRUPT,
                  "an integer whose negative int64 holds too");
}

/* What is wrong is the value, or half of it, not the row in front of it. */
static void a_value_that_has_no_mirror_image_is_shown(void)
{
    check_refused_at(
        COORDINATE "integer skew-symmetric\n2 2 1\n2 1 -9223372036854775808\n", "-9",
        "line 3: expected an integer whose negative int64 holds too but found \"-9223372036854775808\"");
    check_refused_at(
        ARRAY "integer skew-symmetric\n2 2\n -9223372036854775808\n", "-9",
        "line 3: expected an integer whose negative int64 holds too but found \"-9223372036854775808\"");
    check_refused_at(
        COORDINATE "complex hermitian\n2 2 1\n1  1 \t5  7\n", "7",
        "line 3: expected no imaginary part on the diagonal of a hermitian matrix but found \"7\"");
    check_refused_at(ARRAY "complex hermitian\n1 1\n 5  7\n", "7", "but found \"7\"");
    check_refused_at(COORDINATE "real skew-symmetric\n2 2 1\n1 1  5\n", "5",
                     "line 3: expected no entry on the diagonal of a skew-symmetric matrix but found \"5\"");
}

/* ---- damage ---- */

static const char sample[] = "%%MatrixMarket matrix coordinate complex hermitian\r\n"
                             "%tenon "
                             "{\"name\":\"w\\u00e9\",\"dtype\":\"complex64\",\"index\":\"uint64\",\"layout\":"
                             "\"NC\",\"metadata\":{\"a\":[1,\"x\"]}}\n"
                             "% a comment\n"
                             "\n"
                             "12 12 3\n"
                             "  11 3 -1.5e-2 nan(0x400001)\n"
                             "12\t12 inf 0\r\n"
                             "\n"
                             "12 1 .1 123456789";

/* Cut anywhere, it is refused: but for the digits at its end. */
static void every_truncation_is_refused(void)
{
    size_t digits = strlen("23456789");
    for (size_t n = 0; n < sizeof sample; n++) {
        uint8_t *copy = exact_copy(sample, n);
        tn_status status = walk_bytes(copy, n, "mtx");
        if ((status == TN_OK) != (n >= sizeof sample - 1 - digits))
            fail_msg("%zu of %zu bytes: status %d", n, sizeof sample - 1, (int)status);
        free(copy);
    }
}

static void a_flipped_or_dropped_byte_never_hurts(void)
{
    size_t size = sizeof sample - 1;
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t *copy = exact_copy(sample, size);
            copy[i] ^= (uint8_t)(1u << bit);
            walk_bytes(copy, size, "mtx");
            free(copy);
        }
        uint8_t *copy = exact_copy(sample, size - 1);
        memcpy(copy + i, sample + i + 1, size - 1 - i);
        walk_bytes(copy, size - 1, "mtx");
        free(copy);
    }
}

static void damage(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = exact_copy(bytes, n);
        copy[i] ^= (uint8_t)(1u << i % 8);
        walk_bytes(copy, n, "mtx");
        free(copy);
        copy = exact_copy(bytes, i);
        walk_bytes(copy, i, "mtx");
        free(copy);
    }
}

static void damaged_golden_files_never_hurt(void)
{
    CHECK(each_file(TEST_GOLDEN "/mtx/hand", damage) == 14);
}

/* ---- comments ---- */

static void comments_are_metadata(void)
{
    tn_file *f = open_text(COORDINATE "real general\n% one\n%%two%\n\n   %\t three \r\n%\n1 1 0\n");
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(t->nmeta == 1);
    assert_string_equal(t->meta[0].key, "comment");
    assert_string_equal(t->meta[0].text, " one\n%two%\n\t three \n");
    tn_close(f);
    f = open_text(COORDINATE "real general\n%\n%   \n1 1 0\n");
    CHECK(tn_file_tensor(f, 0)->nmeta == 0);
    tn_close(f);
}

static void comments_that_are_no_text_are_kept_as_bytes(void)
{
    static const uint8_t cbor[] = { 0x44, 'o', 'n', 0xe9, 0 };
    static const char text[] = COORDINATE "real general\n%on\xe9\0\n1 1 0\n";
    tn_file *f;
    CHECK(tn_open_memory(text, sizeof text - 1, NULL, &f, NULL) == TN_OK);
    walk_file(f);
    const tn_meta *m = tn_file_tensor(f, 0)->meta;
    CHECK(!m->text && m->cbor_size == sizeof cbor && memcmp(m->cbor, cbor, sizeof cbor) == 0);
    tn_close(f);
}

static void the_note_says_what_the_format_cannot(void)
{
    tn_file *f = open_text(
        COORDINATE
        "real general\n% first\n"
        "%tenon "
        "{\"name\":\"w\\n\",\"dtype\":\"float32\",\"index\":\"uint32\",\"layout\":\"HW\",\"later\":[1],"
        "\"metadata\":{\"a\":1,\"b\":\"x\"},\"file_metadata\":{\"c\":\"y\"}}\n% second\n4 4 1\n2 3 0.1\n");
    const tn_tensor *t = tn_file_tensor(f, 0);
    size_t n;
    const tn_meta *of_file = tn_file_meta(f, &n);
    assert_string_equal(t->name, "w\n");
    assert_string_equal(t->layout, "HW");
    CHECK(t->dtype == TN_FLOAT32 && t->parts[1].array.dtype == TN_UINT32 &&
          *(const float *)t->parts[0].data == 0.1f);
    CHECK(t->nmeta == 3 && !t->meta[0].text && n == 1);
    assert_string_equal(t->meta[1].text, "x");
    assert_string_equal(t->meta[2].text, " first\n second");
    assert_string_equal(of_file->text, "y");
    tn_close(f);
}

static void a_wrong_note_is_refused(void)
{
    static const struct { const char *note, *message; tn_status status; } bad[] = {
        { "{", "line 2: Tenon's note: ", TN_ERR_TRUNCATED },
        { "{} x", "Tenon's note: ", TN_ERR_CORRUPT },
        { "{\"name\":1}", "expected a string", TN_ERR_CORRUPT },
        { "{\"name\":\"a\\u0000\"}", "without NUL", TN_ERR_CORRUPT },
        { "{\"name\":\"a\",\"name\":\"a\"}", "key \"name\" is there twice", TN_ERR_CORRUPT },
        { "{\"dtype\":\"float33\"}", "type \"float33\" is not known", TN_ERR_UNSUPPORTED },
        { "{\"dtype\":\"int8\"}", "expected a type that fits the field of the banner but found int8",
          TN_ERR_CORRUPT },
        { "{\"dtype\":\"float8_e8m0\"}", "but found float8_e8m0", TN_ERR_CORRUPT },
        { "{\"dtype\":\"float8_e4m3fnuz\"}", "but found float8_e4m3fnuz", TN_ERR_CORRUPT },
        { "{\"dtype\":\"float8_e4m3fn\"}",
          "line 4: expected a number that float8_e4m3fn holds but found \"0.1\"",
          TN_ERR_CORRUPT },
        { "{\"index\":\"int16\"}", "expected indices of type int32, int64, uint32 or uint64 but found int16",
          TN_ERR_CORRUPT },
        { "{\"index\":\"float64\"}", "but found float64", TN_ERR_CORRUPT },
        { "{\"layout\":\"HWC\"}", "Tenon's note: ", TN_ERR_CORRUPT },
        { "{\"metadata\":[]}", "Tenon's note: ", TN_ERR_CORRUPT },
        { "{\"metadata\":{\"a\":1,\"a\":2}}", "Tenon's note: ", TN_ERR_CORRUPT },
        { "{\"metadata\":{\"comment\":1}}\n% another", "metadata key \"comment\" is there twice",
          TN_ERR_CORRUPT },
        { "{}\n%tenon {}", "line 3: expected one note of Tenon", TN_ERR_CORRUPT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[300];
        snprintf(text, sizeof text, "%s%s%s", COORDINATE "real skew-symmetric\n%tenon ", bad[i].note,
                 "\n2 2 1\n2 1 0.1\n");
        check_refused(text, bad[i].status, bad[i].message);
    }
    check_refused(COORDINATE "integer skew-symmetric\n%tenon {\"dtype\":\"uint8\"}\n2 2 0\n", TN_ERR_CORRUPT,
                  "but found uint8");
    check_refused(COORDINATE "integer general\n%tenon {\"dtype\":\"int4\"}\n1 1 1\n1 1 8\n", TN_ERR_CORRUPT,
                  "an integer from -8 to 7 but found \"8\"");
    check_refused(COORDINATE "unsigned-integer general\n%tenon {\"dtype\":\"int8\"}\n1 1 0\n", TN_ERR_CORRUPT,
                  "but found int8");
    check_refused(COORDINATE "pattern general\n%tenon {\"index\":\"int32\"}\n5000000000 1 1\n2147483649 1\n",
                  TN_ERR_CORRUPT, "expected a row from 1 to 2147483648 but found \"2147483649\"");
    tn_file *f = open_text(COORDINATE "pattern general\n%tenon is no note\n1 1 0\n");
    assert_string_equal(tn_file_tensor(f, 0)->meta[0].text, "tenon is no note");
    tn_close(f);
}

/* Known only behind it, some of it. */
static void a_wrong_note_is_refused_with_its_own_line(void)
{
    static const struct { const char *kind, *item, *message;
    } bad[] = {
        { "real general", "{\"dtype\":\"int8\"}",
          "line 3: Tenon's note: expected a type that fits the field of the banner but found "
          "int8" },
        { "integer skew-symmetric", "{\"dtype\":\"uint8\"}",
          "line 3: Tenon's note: expected a type that can be negated, as a skew-symmetric matrix is, "
          "but found uint8" },
        { "real general", "{\"index\":\"int8\"}",
          "line 3: Tenon's note: expected indices of type int32, int64, uint32 or uint64 but found "
          "int8" },
        { "real general", "{\"metadata\":{\"comment\":1}}",
          "line 3: Tenon's note: metadata key \"comment\" is there twice" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[300];
        snprintf(text, sizeof text, "%s%s\n\n%%tenon %s\n%% more\n\n2 2 0\n", COORDINATE, bad[i].kind,
                 bad[i].item);
        check_refused_at(text, bad[i].item, bad[i].message);
    }
}

/* ---- files ---- */

static void a_matrix_is_called_after_its_file(void)
{
    tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    tn_file *f;
    put_file("a matrix.mtx", ARRAY "real general\n1 1\n7\n");
    for (int k = 0; k < 2; k++) {
        CHECK(tn_open(in_folder("a matrix.mtx").text, k ? &options : NULL, &f, NULL) == TN_OK);
        assert_string_equal(tn_file_tensor(f, 0)->name, "a matrix");
        CHECK(*(const double *)tn_file_tensor(f, 0)->parts[0].data == 7);
        CHECK(tn_file_size(f) == strlen(ARRAY "real general\n1 1\n7\n"));
        tn_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(golden_matrices_are_read),
        TEST(entries_stay_in_the_order_of_the_file),
        TEST(columns_of_an_array_come_out_as_rows),
        TEST(mirrored_elements_are_negated_or_conjugated),
        TEST(indices_are_wide_where_the_matrix_is),
        TEST(matrices_without_elements_are_matrices),
        TEST(the_banner_is_recognised_in_any_case),
        TEST(a_wrong_head_is_refused_with_its_line),
        TEST(a_wrong_size_line_is_refused),
        TEST(sizes_are_believed_only_if_they_could_be),
        TEST(wrong_entries_are_refused_with_their_line),
        TEST(a_symmetry_that_is_none_is_refused),
        TEST(a_value_that_has_no_mirror_image_is_shown),
        TEST(every_truncation_is_refused),
        TEST(a_flipped_or_dropped_byte_never_hurts),
        TEST(damaged_golden_files_never_hurt),
        TEST(comments_are_metadata),
        TEST(comments_that_are_no_text_are_kept_as_bytes),
        TEST(the_note_says_what_the_format_cannot),
        TEST(a_wrong_note_is_refused),
        TEST(a_wrong_note_is_refused_with_its_own_line),
        IN_FOLDER(a_matrix_is_called_after_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
