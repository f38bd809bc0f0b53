/* MatrixMarket: what is written, and that it is read again bit for bit. */
#include "support.h"
#include "format_option.h"

#include "files.h"
#include "make.h"

#include "bytes/cbor.h"
#include "store/file.h"
#include "tensor/array.h"
#include "tensor/code.h"

/* ---- matrices ---- */

typedef struct matrix {
    const char    *name;        /* NULL: "x" */
    tn_dtype       dtype;
    int64_t        shape[2];
    int64_t        entries;     /* of a coo matrix... */
    tn_dtype       index;       /* ...TN_UNKNOWN: it is dense */
    const void    *values, *indices;
    const char    *layout;
    const tn_meta *meta;
    uint32_t       nmeta;
} matrix;

static tn_status try_matrix(const char *name, tn_create_options options, const matrix *m, tn_error *err)
{
    int64_t list[] = { m->entries, 2 };
    bool coo = m->index != TN_UNKNOWN;
    tn_part parts[] = {
        { .role = coo ? "values" : "data", .array = { .dtype = m->dtype, .rank = coo ? 1 : 2,
                                                      .shape = coo ? list : m->shape }, .data = m->values },
        { .role = "indices", .array = { .dtype = m->index, .rank = 2, .shape = list }, .data = m->indices },
    };
    tn_tensor t = { .name = m->name ? m->name : "x", .form = coo ? TN_FORM_COO : TN_FORM_DENSE,
                    .dtype = m->dtype,
                    .rank = 2,
                    .shape = m->shape, .parts = parts,
                    .nparts = coo ? 2 : 1, .layout = m->layout, .meta = m->meta, .nmeta = m->nmeta };
    return try_write_tensor(name, options, &t, err);
}

static void write_matrix(const char *name, const matrix *m)
{
    tn_error err = { .text = "" };
    if (try_matrix(name, (tn_create_options){ 0 }, m, &err))
        fail_msg("%s", line_of(&err));
}

/* The banner's last words, the note, and all that follows. */
static void check_text(const char *name, const char *kind, const char *note, const char *rest)
{
    char expected[400];
    snprintf(expected, sizeof expected, "%%%%MatrixMarket matrix %s\n%%tenon %s\n%s", kind, note, rest);
    check_file_text(in_folder(name).text, expected);
}

static void check_part(const tn_part *found, tn_dtype dtype, const void *expected)
{
    CHECK(found->array.dtype == dtype && found->data);
    CHECK(!found->nbytes || memcmp(found->data, expected, found->nbytes) == 0);
}

/* Writes and reads it. */
static void check_round_trip(const matrix *m)
{
    write_matrix("r.mtx", m);
    tn_file *f = open_file("r.mtx");
    const tn_tensor *t = tn_file_tensor(f, 0);
    bool coo = m->index != TN_UNKNOWN;
    CHECK(t->form == (coo ? TN_FORM_COO : TN_FORM_DENSE));
    CHECK(t->dtype == m->dtype && t->shape[0] == m->shape[0] && t->shape[1] == m->shape[1]);
    check_part(&t->parts[0], m->dtype, m->values);
    CHECK(!coo || t->parts[0].array.shape[0] == m->entries);
    if (coo)
        check_part(&t->parts[1], m->index, m->indices);
    tn_close(f);
}

static void check_refused(const matrix *m, tn_create_options options, tn_status expected, const char *text)
{
    tn_error err = { .text = "" };
    tn_status status = try_matrix("none.mtx", options, m, &err);
    if (status != expected || !strstr(line_of(&err), text))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", (int)expected, text, (int)status, line_of(&err));
    CHECK(try_matrix("none.mtx", options, m, NULL) == expected);
    CHECK(access(in_folder("none.mtx").text, F_OK) != 0 && count_entries(folder) == 0);
}

/* ---- texts ---- */

static const double doubles[] = { 0.1, -2, 1e300, 5e-324, -0.0, 12345.678 };
static const int32_t places[] = { 0, 2, 1, 0, 1, 1, 0, 0, 1, 2, 0, 1 };

static void an_array_is_written_column_by_column(void)
{
    matrix m = { .dtype = TN_FLOAT64, .shape = { 2, 3 }, .values = doubles };
    write_matrix("a.mtx", &m);
    check_text("a.mtx", "array real general", "{\"name\":\"x\"}",
               "2 3\n0.1\n5e-324\n-2\n-0\n1e300\n12345.678\n");
}

static void entries_are_written_in_their_order(void)
{
    static const float floats[] = { 0.1f, 16777216, -1.5e-7f };
    static const float pairs[] = { 1, -0.0f, 0.1f, 3e38f };
    matrix m = { .name = "w\n", .dtype = TN_FLOAT32, .shape = { 2, 3 }, .entries = 3, .index = TN_INT32,
                 .values = floats,
                 .indices = places };
    write_matrix("c.mtx", &m);
    check_text("c.mtx", "coordinate real general", "{\"name\":\"w\\n\",\"dtype\":\"float32\"}",
               "2 3 3\n1 3 0.1\n2 1 16777216\n2 2 -1.5e-7\n");
    m = (matrix){ .dtype = TN_COMPLEX64, .shape = { 2, 3 }, .entries = 2, .index = TN_INT32, .values = pairs,
                  .indices = places };
    write_matrix("c.mtx", &m);
    check_text("c.mtx", "coordinate complex general", "{\"name\":\"x\",\"dtype\":\"complex64\"}",
               "2 3 2\n1 3 1 -0\n2 1 0.1 3e38\n");
}

static void booleans_are_a_pattern_if_all_are_true(void)
{
    static const uint8_t all[] = { 1, 1, 1 }, some[] = { 1, 0, 1 };
    matrix m = { .dtype = TN_BOOL, .shape = { 2, 3 }, .entries = 3, .index = TN_INT32, .values = all,
                 .indices = places };
    write_matrix("b.mtx", &m);
    check_text("b.mtx", "coordinate pattern general", "{\"name\":\"x\"}", "2 3 3\n1 3\n2 1\n2 2\n");
    m.values = some;
    write_matrix("b.mtx", &m);
    check_text("b.mtx", "coordinate integer general", "{\"name\":\"x\",\"dtype\":\"bool\"}",
               "2 3 3\n1 3 1\n2 1 0\n2 2 1\n");
    m = (matrix){ .dtype = TN_BOOL, .shape = { 1, 3 }, .values = all };
    write_matrix("b.mtx", &m);
    check_text("b.mtx", "array integer general", "{\"name\":\"x\",\"dtype\":\"bool\"}", "1 3\n1\n1\n1\n");
}

static void integers_beyond_int64_are_unsigned(void)
{
    static const uint64_t small[] = { 0, INT64_MAX }, large[] = { 5, UINT64_MAX };
    matrix m = { .dtype = TN_UINT64, .shape = { 2, 1 }, .values = small };
    write_matrix("u.mtx", &m);
    check_text("u.mtx", "array integer general", "{\"name\":\"x\",\"dtype\":\"uint64\"}",
               "2 1\n0\n9223372036854775807\n");
    m.values = large;
    write_matrix("u.mtx", &m);
    check_text("u.mtx", "array unsigned-integer general", "{\"name\":\"x\"}",
               "2 1\n5\n18446744073709551615\n");
    check_round_trip(&m);
}

/* ---- round trips ---- */

/* Any bits of every type, but for those that the type ignores. */
static void fill(tn_dtype dtype, uint64_t count, uint8_t *to)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    uint64_t x = 88172645463325252u + dtype;
    unsigned words = type->kind == TN_KIND_COMPLEX ? 2 : 1;
    memset(to, 0, tn_packed_bytes(count, type->bits));
    for (uint64_t i = 0; i < count * words; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint64_t code = dtype == TN_BOOL   ? x & 1
                        : dtype == TN_TF32 ? x & 0xffffe000
                        : i == 0           ? 0
                        : i == 1           ? UINT64_MAX
                                           : x;
        tn_code_put(to, i, type->bits / words, code & (UINT64_MAX >> (64 - type->bits / words)));
    }
}

static void every_type_comes_back_bit_for_bit(void)
{
    static uint8_t values[16 * 77];
    static int64_t indices[2 * 77];
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++)
        indices[i] = (int64_t)(i * 31 % 7);
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++) {
        fill(d, 77, values);
        check_round_trip(&(matrix){ .dtype = d, .shape = { 7, 11 }, .values = values });
        for (int64_t n = 0; n <= 77; n += 7) {
            memset(values, 0, sizeof values);
            fill(d, (uint64_t)n, values);
            check_round_trip(&(matrix){ .dtype = d, .shape = { 7, 11 }, .entries = n, .index = TN_INT64,
                                        .values = values,
                                        .indices = indices });
        }
    }
}

static void every_index_type_comes_back(void)
{
    static const int32_t i32[] = { 0, 4, 1, 0 };
    static const int64_t i64[] = { 0, 4, 1, 0 }, far[] = { 6000000000, 4, 1, 0 };
    matrix m = { .dtype = TN_FLOAT64, .shape = { 2, 5 }, .entries = 2, .index = TN_INT32, .values = doubles,
                 .indices = i32 };
    check_round_trip(&m);
    m.index = TN_UINT32;
    check_round_trip(&m);
    m.shape[0] = 5000000000;            /* where int64 is usual */
    check_round_trip(&m);
    m.index = TN_INT32;
    check_round_trip(&m);
    m.index = TN_INT64;
    m.indices = i64;
    check_round_trip(&m);
    m.shape[0] = 7000000000;
    m.indices = far;
    check_round_trip(&m);
    m.index = TN_UINT64;
    check_round_trip(&m);
}

static void matrices_without_elements_come_back(void)
{
    static const int64_t shapes[][2] = { { 0, 0 }, { 0, 5 }, { 5, 0 }, { 0, INT64_MAX } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_round_trip(&(matrix){ .dtype = TN_FLOAT32, .shape = { shapes[i][0], shapes[i][1] } });
        check_round_trip(&(matrix){ .dtype = TN_COMPLEX128, .shape = { shapes[i][0], shapes[i][1] },
                                    .index = TN_INT64 });
    }
    check_round_trip(&(matrix){ .dtype = TN_BOOL, .shape = { 1000000000, 1000000000 }, .index = TN_INT32 });
}

/* More text than one piece. */
static void large_matrices_come_back(void)
{
    enum { ROWS = 301, COLUMNS = 203, N = ROWS * COLUMNS };
    double *values = malloc(N * sizeof *values);
    int32_t *indices = malloc(2 * N * sizeof *indices);
    CHECK(values && indices);
    fill(TN_FLOAT64, N, (uint8_t *)values);
    for (int32_t i = 0; i < N; i++) {
        indices[2 * i] = i % ROWS;
        indices[2 * i + 1] = i / ROWS;
    }
    check_round_trip(&(matrix){ .dtype = TN_FLOAT64, .shape = { ROWS, COLUMNS }, .values = values });
    check_round_trip(&(matrix){ .dtype = TN_FLOAT64, .shape = { ROWS, COLUMNS }, .entries = N,
                                .index = TN_INT32,
                                .values = values, .indices = indices });
    free(values);
    free(indices);
}

static void a_matrix_may_be_streamed(void)
{
    tn_part part = { .role = "data", .array = { .dtype = TN_FLOAT64, .rank = 2,
                                                .shape = (const int64_t[]){ 2, 3 } } };
    tn_tensor t = { .name = "x", .form = TN_FORM_DENSE, .dtype = TN_FLOAT64, .rank = 2,
                    .shape = part.array.shape,
                    .parts = &part,
                    .nparts = 1 };
    tn_writer *w;
    CHECK(tn_create(in_folder("s.mtx").text, NULL, &w, NULL) == TN_OK && tn_writer_add(w, &t, NULL) == TN_OK);
    for (size_t i = 0; i < sizeof doubles; i += 5)
        CHECK(tn_writer_write(w, 0, 0, (const uint8_t *)doubles + i,
                              sizeof doubles - i < 5 ? sizeof doubles - i : 5, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("s.mtx");
    check_part(&tn_file_tensor(f, 0)->parts[0], TN_FLOAT64, doubles);
    tn_close(f);
}

/* ---- metadata ---- */

static void check_meta(const tn_meta *found, const tn_meta *expected)
{
    assert_string_equal(found->key, expected->key);
    CHECK(!found->text == !expected->text && found->cbor_size == expected->cbor_size);
    if (expected->text)
        assert_string_equal(found->text, expected->text);
    else
        CHECK(memcmp(found->cbor, expected->cbor, found->cbor_size) == 0);
}

static void metadata_and_names_come_back(void)
{
    static const uint8_t nan[] = { 0xf9, 0x7e, 0x00 }, bytes[] = { 0x42, 0xff, '\n' };
    static const tn_meta lists[][2] = {
        { { .key = "größe", .text = "µ\n{}" }, { .key = "comment", .text = " one\n\n\ttwo " } },
        { { .key = "comment", .text = "first, not last" },
          { .key = "nan", .cbor = nan, .cbor_size = sizeof nan } },
        { { .key = "a", .text = "" }, { .key = "comment", .text = "" } },
        { { .key = "a", .text = "x" }, { .key = "comment", .text = " \n\t" } },
        { { .key = "a", .text = "x" }, { .key = "comment", .text = "ends in\r" } },
        { { .key = "a", .text = "x" }, { .key = "comment", .text = "one\ntenon {}" } },
        { { .key = "a", .text = "x" }, { .key = "comment", .text = "tenon {" } },
        { { .key = "a", .text = "x" }, { .key = "comment", .text = "%MatrixMarket matrix\n%" } },
        { { .key = "a", .text = "x" }, { .key = "comment", .cbor = bytes, .cbor_size = sizeof bytes } },
    };
    static const char *const names[] = { "", "w", "a/b.c\"\\", "\x01\n\t\x7f", "größe", "tenon {" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        matrix m = { .name = names[i % 6], .dtype = TN_FLOAT64, .shape = { 2, 3 }, .values = doubles,
                     .meta = lists[i],
                     .nmeta = 2, .layout = "HW" };
        write_matrix("m.mtx", &m);
        tn_file *f = open_file("m.mtx");
        const tn_tensor *t = tn_file_tensor(f, 0);
        assert_string_equal(t->name, m.name);
        assert_string_equal(t->layout, "HW");
        CHECK(t->nmeta == 2);
        check_meta(&t->meta[0], &lists[i][0]);
        check_meta(&t->meta[1], &lists[i][1]);
        tn_close(f);
    }
}

static void comments_are_written_as_comments(void)
{
    static const tn_meta meta[] = { { .key = "k", .text = "v" },
                                    { .key = "comment", .text = " one\n\ntwo" } };
    matrix m = { .dtype = TN_FLOAT64, .shape = { 1, 1 }, .values = doubles, .meta = meta, .nmeta = 2 };
    write_matrix("m.mtx", &m);
    check_text("m.mtx", "array real general", "{\"name\":\"x\",\"metadata\":{\"k\":\"v\"}}",
               "% one\n%\n%two\n1 1\n0.1\n");
}

static void metadata_of_the_file_comes_back(void)
{
    const tn_meta meta = { .key = "k", .text = "v" };
    simple s = { .name = "x", .dtype = TN_FLOAT64, .rank = 2, .shape = { 1, 1 }, .data = doubles };
    tn_writer *w;
    size_t n;
    CHECK(tn_create(in_folder("f.mtx").text, NULL, &w, NULL) == TN_OK);
    CHECK(tn_writer_add_meta(w, &meta, NULL) == TN_OK && add_simple(w, &s, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("f.mtx");
    const tn_meta *found = tn_file_meta(f, &n);
    CHECK(n == 1);
    check_meta(found, &meta);
    tn_close(f);
}

/* ---- csr ---- */

static tn_status try_csr(int64_t rows, const int32_t *indptr, const int32_t *columns, bool symmetric,
                         tn_error *err)
{
    int64_t n = 5, shape[] = { rows, 4 }, pointers = rows + 1;
    const tn_part parts[] = {
        { .role = "values", .array = { .dtype = TN_FLOAT64, .rank = 1, .shape = &n }, .data = doubles },
        { .role = "indices", .array = { .dtype = TN_INT32, .rank = 1, .shape = &n }, .data = columns },
        { .role = "indptr", .array = { .dtype = TN_INT32, .rank = 1, .shape = &pointers }, .data = indptr },
    };
    const tn_tensor csr = { .name = "x", .form = TN_FORM_CSR, .dtype = TN_FLOAT64, .rank = 2, .shape = shape,
                            .parts = parts, .nparts = 3 };
    tn_create_options options = { SYMMETRIC };
    return try_write_tensor("c.mtx", symmetric ? options : (tn_create_options){ 0 }, &csr, err);
}

static void csr_is_written_row_by_row(void)
{
    static const int32_t columns[] = { 3, 1, 0, 2, 3 }, indptr[] = { 0, 0, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5, 5 };
    tn_error err = { .text = "" };
    if (try_csr(15, indptr, columns, false, &err))
        fail_msg("%s", line_of(&err));
    tn_file *f = open_file("c.mtx");
    const tn_tensor *t = tn_file_tensor(f, 0);
    static const int32_t expected[] = { 1, 3, 1, 1, 3, 0, 13, 2, 13, 3 };
    CHECK(t->form == TN_FORM_COO && t->shape[0] == 15 && t->parts[0].array.shape[0] == 5);
    check_part(&t->parts[0], TN_FLOAT64, doubles);
    check_part(&t->parts[1], TN_INT32, expected);
    tn_close(f);
}

static void csr_is_checked_before_it_is_written(void)
{
    static const int32_t columns[] = { 3, 1, 0, 2, 3 }, high[] = { 3, 1, 4, 2, 3 }, good[] = { 0, 2, 3, 5 },
    down[] = { 0, 3, 2, 5 }, few[] = { 0, 2, 3, 4 };
    static const struct { const int32_t *indptr, *columns; const char *text; } bad[] = {
        { good, high, "entry 2: expected an index below 4 in dimension 1 but found 4" },
        { down, columns, "row pointer 2: expected at least 3, as the one before it, but found 2" },
        { few, columns, "row pointer 3: expected 5, the number of values, but found 4" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_error err = { .text = "" };
        CHECK(try_csr(3, bad[i].indptr, bad[i].columns, false, &err) == TN_ERR_CORRUPT);
        CHECK(strstr(line_of(&err), bad[i].text) && count_entries(folder) == 0);
    }
    static const int32_t pairs[] = { 0, 1, 2, 3, 3 }, ends[] = { 0, 1, 2, 3, 5 };
    tn_error err = { .text = "" };
    CHECK(try_csr(4, ends, pairs, true, &err) == TN_ERR_LOSS &&
          strstr(line_of(&err), "two entries for one element, [3, 3]"));
}

/* ---- symmetric ---- */

static void a_symmetric_matrix_is_written_as_its_lower_triangle(void)
{
    static const double square[] = { 1, 2, 3, 2, 4, 5, 3, 5, 6 };
    static const double values[] = { 7, 8, 7, 9, 8 }, read[] = { 8, 8, 7, 7, 9 };
    static const int32_t indices[] = { 0, 1, 2, 1, 1, 0, 2, 2, 1, 2 },
    order[] = { 2, 1, 1, 2, 1, 0, 0, 1, 2, 2 };
    const tn_create_options symmetric = { SYMMETRIC };
    matrix m = { .dtype = TN_FLOAT64, .shape = { 3, 3 }, .values = square };
    CHECK(try_matrix("s.mtx", symmetric, &m, NULL) == TN_OK);
    check_text("s.mtx", "array real symmetric", "{\"name\":\"x\"}", "3 3\n1\n2\n3\n4\n5\n6\n");
    tn_file *f = open_file("s.mtx");
    check_part(&tn_file_tensor(f, 0)->parts[0], TN_FLOAT64, square);
    tn_close(f);
    m = (matrix){ .dtype = TN_FLOAT64, .shape = { 3, 3 }, .entries = 5, .index = TN_INT32, .values = values,
                  .indices = indices };
    CHECK(try_matrix("s.mtx", symmetric, &m, NULL) == TN_OK);
    check_text("s.mtx", "coordinate real symmetric", "{\"name\":\"x\"}", "3 3 3\n3 2 8\n2 1 7\n3 3 9\n");
    f = open_file("s.mtx");
    check_part(&tn_file_tensor(f, 0)->parts[0], TN_FLOAT64, read);
    check_part(&tn_file_tensor(f, 0)->parts[1], TN_INT32, order);
    tn_close(f);
}

static void what_is_not_symmetric_is_not_written_so(void)
{
    static const double square[] = { 1, 2, 3, 2, 4, 5, 3, -5, 6 }, zeros[] = { 0, 0.0, -0.0, 0 };
    static const double values[] = { 7, 8, 9, 7 };
    static const int32_t differs[] = { 0, 1, 1, 0 }, alone[] = { 0, 0, 0, 2 }, twice[] = { 0, 1, 0, 1 };
    static const int32_t diagonal[] = { 1, 1, 1, 1 }, thrice[] = { 1, 0, 0, 1, 1, 0, 0, 1 };
    static const uint8_t bits[] = { 0x10, 0x02 };
    const tn_create_options symmetric = { SYMMETRIC };
    matrix m = { .dtype = TN_FLOAT64, .shape = { 3, 3 }, .values = square };
    check_refused(&m, symmetric, TN_ERR_LOSS, "cannot be written as symmetric: [2, 1] differs from [1, 2]");
    m.values = zeros;
    m.shape[0] = m.shape[1] = 2;
    check_refused(&m, symmetric, TN_ERR_LOSS, "[1, 0] differs from [0, 1]");
    m.shape[0] = 1;
    check_refused(&m, symmetric, TN_ERR_LOSS, "it has 1 rows and 2 columns");
    m = (matrix){ .dtype = TN_UINT4, .shape = { 2, 2 }, .values = bits };
    check_refused(&m, symmetric, TN_ERR_LOSS, "[1, 0] differs from [0, 1]");
    m = (matrix){ .dtype = TN_FLOAT64, .shape = { 3, 3 }, .entries = 2, .index = TN_INT32, .values = values,
                  .indices = differs };
    check_refused(&m, symmetric, TN_ERR_LOSS, "[1, 0] differs from [0, 1]");
    m.indices = alone;
    check_refused(&m, symmetric, TN_ERR_LOSS, "[0, 2] is an entry but not [2, 0]");
    m.indices = twice;
    check_refused(&m, symmetric, TN_ERR_LOSS, "two entries for one element, [1, 0]");
    m.indices = diagonal;
    check_refused(&m, symmetric, TN_ERR_LOSS, "two entries for one element, [1, 1]");
    m.indices = thrice;
    m.entries = 3;
    check_refused(&m, symmetric, TN_ERR_LOSS, "two entries for one element, [1, 0]");
}

/* ---- what cannot be written ---- */

static void what_is_no_matrix_is_refused(void)
{
    simple s[] = { { .name = "x", .dtype = TN_FLOAT64, .rank = 1, .shape = { 6 }, .data = doubles },
                   { .name = "y", .dtype = TN_FLOAT64, .rank = 2, .shape = { 2, 3 }, .data = doubles } };
    tn_error err = { .text = "" };
    CHECK(try_write("n.mtx", (tn_create_options){ 0 }, s, 1, &err) == TN_ERR_UNSUPPORTED);
    CHECK(strstr(line_of(&err), "expected 2 dimensions but found 1"));
    CHECK(try_write("n.mtx", (tn_create_options){ 0 }, s, 2, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "there are 2 tensors: choose one"));
    CHECK(try_write("n.mtx", (tn_create_options){ 0 }, s, 0, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "there are 0"));
    CHECK(try_write("n.mtx", (tn_create_options){ .align = 64 }, &s[1], 1, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "cannot align data to 64"));
    CHECK(try_write("n.mtx", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, &s[1], 1,
                    &err) == TN_ERR_ARGUMENT);
    CHECK(count_entries(folder) == 0);
}

static void padding_is_refused(void)
{
    static const int64_t physical[] = { 2, 3 };
    const tn_padded padded = { .shape = physical };
    const tn_part part = { .role = "data", .array = { .dtype = TN_FLOAT64, .rank = 2,
                                                      .shape = (const int64_t[]){ 2, 2 } },
                           .data = doubles,
                           .padded = &padded };
    const tn_tensor t = { .name = "x", .form = TN_FORM_DENSE, .dtype = TN_FLOAT64, .rank = 2,
                          .shape = part.array.shape,
                          .parts = &part, .nparts = 1 };
    tn_error err = { .text = "" };
    tn_writer *w;
    CHECK(tn_create(in_folder("p.mtx").text, NULL, &w, NULL) == TN_OK && tn_writer_add(w, &t, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "mtx cannot hold padding"));
}

static void an_index_outside_the_matrix_is_refused(void)
{
    static const int32_t i32[] = { 0, 1, 1, 3 }, below[] = { 0, 1, -2, 0 };
    static const uint64_t u64[] = { 0, 1, UINT64_MAX, 0 };
    matrix m = { .dtype = TN_FLOAT64, .shape = { 2, 3 }, .entries = 2, .index = TN_INT32, .values = doubles,
                 .indices = i32 };
    check_refused(&m, (tn_create_options){ 0 }, TN_ERR_CORRUPT,
                  "entry 1: expected an index below 3 in dimension 1 but found 3");
    m.indices = below;
    check_refused(&m, (tn_create_options){ 0 }, TN_ERR_CORRUPT,
                  "entry 1: expected an index below 2 in dimension 0 but found -2");
    m.index = TN_UINT32;
    check_refused(&m, (tn_create_options){ 0 }, TN_ERR_CORRUPT, "but found 4294967294");
    m.index = TN_UINT64;
    m.indices = u64;
    check_refused(&m, (tn_create_options){ SYMMETRIC }, TN_ERR_CORRUPT,
                  "but found 18446744073709551615");
}

static void a_dry_run_writes_nothing(void)
{
    matrix m = { .dtype = TN_FLOAT64, .shape = { 2, 3 }, .entries = 6, .index = TN_INT32, .values = doubles,
                 .indices = places };
    tn_convert_options options = { .size = sizeof options, .dry_run = true };
    tn_convert_result result;
    write_matrix("in.mtx", &m);
    tn_file *f = open_file("in.mtx");
    CHECK(tn_convert(f, in_folder("out.mtx").text, &options, &result, NULL) == TN_OK &&
          result.bytes_out >= tn_file_size(f));
    CHECK(count_entries(folder) == 1);
    options.dry_run = false;
    CHECK(tn_convert(f, in_folder("out.mtx").text, &options, &result, NULL) == TN_OK &&
          result.bytes_out == tn_file_size(f));
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(an_array_is_written_column_by_column),
        IN_FOLDER(entries_are_written_in_their_order),
        IN_FOLDER(booleans_are_a_pattern_if_all_are_true),
        IN_FOLDER(integers_beyond_int64_are_unsigned),
        IN_FOLDER(every_type_comes_back_bit_for_bit),
        IN_FOLDER(every_index_type_comes_back),
        IN_FOLDER(matrices_without_elements_come_back),
        IN_FOLDER(large_matrices_come_back),
        IN_FOLDER(a_matrix_may_be_streamed),
        IN_FOLDER(metadata_and_names_come_back),
        IN_FOLDER(comments_are_written_as_comments),
        IN_FOLDER(metadata_of_the_file_comes_back),
        IN_FOLDER(csr_is_written_row_by_row),
        IN_FOLDER(csr_is_checked_before_it_is_written),
        IN_FOLDER(a_symmetric_matrix_is_written_as_its_lower_triangle),
        IN_FOLDER(what_is_not_symmetric_is_not_written_so),
        IN_FOLDER(what_is_no_matrix_is_refused),
        IN_FOLDER(padding_is_refused),
        IN_FOLDER(an_index_outside_the_matrix_is_refused),
        IN_FOLDER(a_dry_run_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
