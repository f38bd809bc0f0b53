/* The indices of sparse tensors, as tn_verify() sees them: whatever their type,
 * and wherever rows are cut by windows.  CSR tensors as they are stored in parts. */
#include "support.h"
#include "stored.h"

#include "make.h"
#include "verdicts.h"

enum { RANK = 5, ENTRIES = 20000 };     /* rows of 20 or 40 bytes, which no window holds a whole number of */

static const int64_t shape[RANK] = { 7, 11, 13, 17, 19 };
static uint64_t rows[ENTRIES][RANK];

/* Entry i is at place 16 * i of the tensor: in order, each once. */
static void make_rows(void)
{
    for (uint64_t i = 0; i < ENTRIES; i++) {
        uint64_t place = 16 * i;
        for (int k = RANK - 1; k >= 0; k--) {
            rows[i][k] = place % (uint64_t)shape[k];
            place /= (uint64_t)shape[k];
        }
    }
}

/* With another tensor of the same parts where it takes two to make a set of files. */
static void write_coo_as(const char *name, tn_dtype type, tn_create_options options)
{
    static uint8_t values[ENTRIES];
    static uint32_t narrow[ENTRIES][RANK];
    static const int64_t count[] = { ENTRIES, RANK };
    bool wide = type == TN_INT64 || type == TN_UINT64;
    for (size_t i = 0; i < ENTRIES; i++)
        for (size_t k = 0; k < RANK; k++)
            narrow[i][k] = (uint32_t)rows[i][k];
    const tn_part parts[] = { { .role = "values", .array = { TN_UINT8, 1, count, NULL }, .data = values },
                              { .role = "indices", .array = { type, 2, count, NULL },
                                .data = wide ? (void *)rows : narrow } };
    const tn_tensor t = { .name = "t", .form = TN_FORM_COO, .dtype = TN_UINT8, .rank = RANK, .shape = shape,
                          .parts = parts, .nparts = 2 };
    tn_writer *w;
    options.size = sizeof options;
    options.replace = true;
    CHECK(tn_create(in_folder(name).text, &options, &w, NULL) == TN_OK);
    CHECK(tn_writer_add(w, &t, NULL) == TN_OK);
    tn_tensor other = t;
    other.name = "u";
    CHECK(!options.shard_size || tn_writer_add(w, &other, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
}

static void write_coo(tn_dtype type, tn_encoding encoding)
{
    write_coo_as("t.zt", type, (tn_create_options){ .encoding = encoding, .checksum = TN_CHECKSUM_CRC32C });
}

static void check_verdict(tn_dtype type, tn_encoding encoding, tn_verdict verdict, const char *text)
{
    write_coo(type, encoding);
    tn_file *f = open_file("t.zt");
    seen s = verify_file(f);
    CHECK(s.verdict[0] == TN_VERDICT_OK && s.verdict[1] == verdict);
    assert_string_equal(said_of(&s.why[1]), text);
    CHECK(s.why[1].status == (verdict == TN_VERDICT_BAD ? TN_ERR_CORRUPT : TN_OK));
    tn_close(f);
}

static const tn_dtype types[] = { TN_INT32, TN_INT64, TN_UINT32, TN_UINT64 };

static void indices_in_order_are_no_news(void)
{
    make_rows();
    for (size_t i = 0; i < 4; i++) {
        check_verdict(types[i], TN_ENCODING_RAW, TN_VERDICT_OK, "");
        check_verdict(types[i], TN_ENCODING_ZSTD, TN_VERDICT_OK, "");
    }
}

static void an_index_outside_the_shape_is_bad(void)
{
    make_rows();
    rows[ENTRIES - 1][4] = 19;
    for (size_t i = 0; i < 4; i++)
        check_verdict(types[i], i % 2 ? TN_ENCODING_RAW : TN_ENCODING_ZSTD, TN_VERDICT_BAD,
                      "tensor \"t\": entry 19999: expected an index below 19 in dimension 4 but found 19");
    rows[4915][3] = UINT64_MAX - 1;
    check_verdict(TN_INT64, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found -2");
    check_verdict(TN_INT32, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found -2");
    check_verdict(
        TN_UINT64, TN_ENCODING_RAW, TN_VERDICT_BAD,
        "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found 18446744073709551614");
    check_verdict(TN_UINT32, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found 4294967294");
}

/* Writes the COO tensor and looks at what is said of its indices. */
static tn_error why_bad(const char *name, tn_dtype type, tn_create_options options, uint64_t *begin)
{
    write_coo_as(name, type, options);
    tn_file *f = open_file(options.shard_size ? "t.safetensors.index.json" : name);
    *begin = stored_info(&tn_file_tensor(f, 0)->parts[1]).offset;
    seen s = verify_file(f);
    CHECK(s.verdict[1] == TN_VERDICT_BAD);
    CHECK((tn_file_shards(f) > 1) == (options.shard_size > 0));
    tn_close(f);
    return s.why[1];
}

/* Compressed bytes have no places, and those of one file among several do not say which. */
static void a_bad_index_is_named_with_its_byte_where_it_has_one(void)
{
    uint64_t begin;
    make_rows();
    rows[4915][3] = 17;
    CHECK(why_bad("t.zt", TN_INT64, (tn_create_options){ 0 },
                  &begin).offset == begin + (4915 * RANK + 3) * 8);
    CHECK(why_bad("t.zt", TN_UINT32, (tn_create_options){ 0 },
                  &begin).offset == begin + (4915 * RANK + 3) * 4);
    CHECK(why_bad("t.safetensors", TN_INT32, (tn_create_options){ 0 },
                  &begin).offset == begin + (4915 * RANK + 3) * 4);
    CHECK(why_bad("t.zt", TN_INT64, (tn_create_options){ .encoding = TN_ENCODING_ZSTD },
                  &begin).offset == TN_NO_OFFSET);
    CHECK(why_bad("t.safetensors", TN_INT64, (tn_create_options){ .shard_size = 1 },
                  &begin).offset == TN_NO_OFFSET);
}

/* Entry 4915 of 40 bytes is the one that the first window of 192 KiB ends in. */
static void entries_out_of_order_and_twice_are_told_of(void)
{
    for (size_t at = 4914; at <= 4917; at++) {
        char text[120];
        make_rows();
        memcpy(rows[at], rows[at - 1], sizeof rows[at]);
        snprintf(text, sizeof text, "tensor \"t\": entry %zu has the indices of entry %zu", at, at - 1);
        check_verdict(TN_INT64, TN_ENCODING_RAW, TN_VERDICT_OK, text);
        memcpy(rows[at], rows[at - 2], sizeof rows[at]);
        snprintf(text, sizeof text, "tensor \"t\": entry %zu is out of order: it sorts before entry %zu", at,
                 at - 1);
        check_verdict(TN_UINT64, TN_ENCODING_ZSTD, TN_VERDICT_OK, text);
    }
}

/* ---- CSR ---- */

enum { BATCH = 3, ROWS = 20000, COLUMNS = 50, STORED = BATCH * ROWS * 3 / 2 };

static const int64_t matrix[] = { BATCH * ROWS, COLUMNS }, batch[] = { BATCH, ROWS, COLUMNS };
static uint64_t columns[STORED], pointers[BATCH * ROWS + 1];

/* Rows of no, one, two and three entries, in turn. */
static void make_csr(void)
{
    uint64_t entry = pointers[0] = 0;
    for (uint64_t row = 0; row < BATCH * ROWS; row++) {
        for (uint64_t k = 0; k < row % 4; k++)
            columns[entry++] = 11 * k + row % 7;
        pointers[row + 1] = entry;
    }
    CHECK(entry == STORED);
}

typedef struct csr {
    uint32_t       rank;
    const int64_t *shape;
    int64_t        count, rows;
    const uint64_t *indices, *indptr;
} csr;

static const csr whole_matrix = { 2, matrix, STORED, BATCH * ROWS, columns, pointers };

/* Numbers as this type has them, on the heap. */
static void *numbers_of(tn_dtype type, const uint64_t *from, size_t n)
{
    size_t width = tn_dtype_get(type)->bits / 8;
    uint8_t *to = malloc(n * width + 1);
    assert_non_null(to);
    for (size_t i = 0; i < n; i++) {
        uint32_t narrow = (uint32_t)from[i];
        memcpy(to + i * width, width == 8 ? (const void *)&from[i] : &narrow, width);
    }
    return to;
}

static void write_csr(const char *name, const csr *c, tn_dtype type, tn_create_options options)
{
    const int64_t count[] = { c->count }, ends[] = { c->rows + 1 };
    uint16_t *values = malloc((size_t)c->count * 2 + 1);
    void *indices = numbers_of(type, c->indices, (size_t)c->count),
         *indptr = numbers_of(type, c->indptr, (size_t)c->rows + 1);
    for (int64_t i = 0; i < c->count; i++)
        values[i] = (uint16_t)(i * 7);
    const tn_part parts[] = { { .role = "values", .array = { TN_UINT16, 1, count, NULL }, .data = values },
                              { .role = "indices", .array = { type, 1, count, NULL }, .data = indices },
                              { .role = "indptr", .array = { type, 1, ends, NULL }, .data = indptr } };
    const tn_tensor t = { .name = "t", .form = TN_FORM_CSR, .dtype = TN_UINT16, .rank = c->rank,
                          .shape = c->shape,
                          .parts = parts, .nparts = 3 };
    tn_writer *w;
    options.size = sizeof options;
    options.replace = true;
    CHECK(tn_create(in_folder(name).text, &options, &w, NULL) == TN_OK);
    CHECK(tn_writer_add(w, &t, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    free(values);
    free(indices);
    free(indptr);
}

/* The byte that is named, where there is one, is that of the number that the text names after `word`. */
static void check_place(const tn_part *p, const tn_error *why, const char *word)
{
    if (!why || stored_info(p).encoding != TN_ENCODING_RAW) {
        CHECK(!why || why->offset == TN_NO_OFFSET);
        return;
    }
    const char *found = strstr(line_of(why), word);
    CHECK(found && why->offset == stored_info(p).offset + strtoul(found + strlen(word), NULL, 10) *
                                                          (tn_dtype_get(p->array.dtype)->bits / 8));
}

/* Values are always good; what is said of indices and of pointers. */
static void check_csr(const csr *c, tn_dtype type, tn_encoding encoding, const char *of_indices,
                      bool bad_indices, const char *of_indptr)
{
    write_csr("t.zt", c, type, (tn_create_options){ .encoding = encoding, .checksum = TN_CHECKSUM_CRC32C });
    tn_file *f = open_file("t.zt");
    seen s = verify_file(f);
    CHECK(s.verdict[0] == TN_VERDICT_OK && s.verdict[1] == (bad_indices ? TN_VERDICT_BAD : TN_VERDICT_OK));
    CHECK(s.verdict[2] == (of_indptr[0] ? TN_VERDICT_BAD : TN_VERDICT_OK));
    assert_string_equal(said_of(&s.why[1]), of_indices);
    assert_string_equal(said_of(&s.why[2]), of_indptr);
    check_place(&tn_file_tensor(f, 0)->parts[1], bad_indices ? &s.why[1] : NULL, "entry ");
    check_place(&tn_file_tensor(f, 0)->parts[2], of_indptr[0] ? &s.why[2] : NULL, "row pointer ");
    tn_close(f);
}

static void rows_in_order_are_no_news(void)
{
    make_csr();
    for (size_t i = 0; i < 4; i++) {
        check_csr(&whole_matrix, types[i], TN_ENCODING_RAW, "", false, "");
        check_csr(&whole_matrix, types[i], TN_ENCODING_ZSTD, "", false, "");
        check_csr(&(csr){ 3, batch, STORED, BATCH * ROWS, columns, pointers }, types[i], TN_ENCODING_RAW, "",
                  false, "");
    }
}

/* Windows of 8-byte numbers end before number 24576. */
static void columns_out_of_order_and_twice_are_told_of(void)
{
    for (uint64_t at = 24574; at <= 24580; at++) {
        char text[120];
        make_csr();
        uint64_t row = 0;
        while (pointers[row + 1] <= at)
            row++;
        bool first = pointers[row] == at;
        columns[at] = first ? 0 : columns[at - 1];
        snprintf(text, sizeof text, "tensor \"t\": entry %d has the indices of entry %d", (int)at,
                 (int)at - 1);
        check_csr(&whole_matrix, TN_INT64, TN_ENCODING_RAW, first ? "" : text, false, "");
        columns[at] = 0;
        columns[at - 1] += !first && !columns[at - 1];
        snprintf(text, sizeof text, "tensor \"t\": entry %d is out of order: it sorts before entry %d",
                 (int)at, (int)at - 1);
        check_csr(&whole_matrix, TN_UINT64, TN_ENCODING_ZSTD, first ? "" : text, false, "");
    }
}

static void a_column_outside_the_shape_is_bad(void)
{
    make_csr();
    columns[STORED - 1] = COLUMNS;
    for (size_t i = 0; i < 4; i++)
        check_csr(&whole_matrix, types[i], TN_ENCODING_RAW,
                  "tensor \"t\": entry 89999: expected an index below 50 in dimension 1 but found 50", true,
                  "");
    check_csr(&(csr){ 3, batch, STORED, BATCH * ROWS, columns, pointers }, TN_INT32, TN_ENCODING_ZSTD,
              "tensor \"t\": entry 89999: expected an index below 50 in dimension 2 but found 50", true, "");
    columns[7] = UINT64_MAX;
    check_csr(&whole_matrix, TN_INT32, TN_ENCODING_RAW,
              "tensor \"t\": entry 7: expected an index below 50 in dimension 1 but found -1", true, "");
    check_csr(&whole_matrix, TN_UINT32, TN_ENCODING_RAW,
              "tensor \"t\": entry 7: expected an index below 50 in dimension 1 but found 4294967295", true,
              "");
}

/* What is wrong with the pointers is not said of the indices; these are in rows as far as the pointers go
 * up. */
static void pointers_must_ascend_from_0_to_the_number_of_values(void)
{
    static const struct { size_t at; uint64_t value; const char *why, *of_indices; } wrong[] = {
        { 0, 1, "tensor \"t\": row pointer 0: expected 0 but found 1", "" },
        { 0, UINT64_MAX, "tensor \"t\": row pointer 0: expected 0 but found -1", "" },
        { 4, 7, "tensor \"t\": row pointer 5: expected at least 7, as the one before it, but found 6",
          "tensor \"t\": entry 6 is out of order: it sorts before entry 5" },
        { 30000, UINT64_MAX - 1,
          "tensor \"t\": row pointer 30000: expected at most 90000, the number of values, but found -2", "" },
        { BATCH * ROWS, 89998,
          "tensor \"t\": row pointer 60000: expected 90000, the number of values, but found 89998", "" },
        { BATCH * ROWS, 90001,
          "tensor \"t\": row pointer 60000: expected 90000, the number of values, but found 90001", "" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        make_csr();
        pointers[wrong[i].at] = wrong[i].value;
        check_csr(&whole_matrix, TN_INT64, i % 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW, wrong[i].of_indices,
                  false, wrong[i].why);
    }
}

static void damaged_pointers_do_not_hide_a_bad_column(void)
{
    make_csr();
    columns[40000] = 99;
    write_csr("t.zt", &whole_matrix, TN_INT32, (tn_create_options){ .encoding = TN_ENCODING_ZSTD });
    tn_file *f = open_file("t.zt");
    const tn_stored_info indptr = stored_info(&tn_file_tensor(f, 0)->parts[2]);
    FILE *file = fopen(in_folder("t.zt").text, "r+b");
    CHECK(file && fseek(file, (long)(indptr.offset + indptr.bytes / 2), SEEK_SET) == 0 &&
          fputs("damage", file) >= 0 && fclose(file) == 0);
    tn_close(f);
    f = open_file("t.zt");
    seen s = verify_file(f);
    CHECK(s.verdict[1] == TN_VERDICT_BAD && strstr(line_of(&s.why[1]), "entry 40000: expected an index below 50"));
    CHECK(s.verdict[2] == TN_VERDICT_BAD);
    tn_close(f);
}

/* ---- CSR in parts ---- */

static void check_same(const tn_file *f, const tn_part *p, const char *role, tn_dtype type,
                       const uint64_t *expected, int64_t n)
{
    void *numbers = numbers_of(type, expected, (size_t)n), *found = malloc(p->nbytes + 1);
    assert_string_equal(p->role, role);
    CHECK(p->array.dtype == type && p->array.rank == 1 && p->array.shape[0] == n);
    CHECK(found && tn_part_read(f, p, found, p->nbytes, NULL) == TN_OK &&
          memcmp(found, numbers, p->nbytes) == 0);
    free(numbers);
    free(found);
}

static void check_written(const char *name, const csr *c, tn_dtype type, tn_create_options options)
{
    write_csr(name, c, type, options);
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_find(f, "t");
    CHECK(tn_file_count(f) == 1 && t && t->form == TN_FORM_CSR && t->dtype == TN_UINT16 &&
          t->nparts == 3 && t->rank == c->rank);
    CHECK(memcmp(t->shape, c->shape, c->rank * sizeof *c->shape) == 0);
    CHECK(strcmp(t->parts[0].role, "values") == 0 && t->parts[0].nbytes == (uint64_t)c->count * 2);
    check_same(f, &t->parts[1], "indices", type, c->indices, c->count);
    check_same(f, &t->parts[2], "indptr", type, c->indptr, c->rows + 1);
    seen s = verify_file(f);
    for (int k = 0; k < 3; k++) {
        CHECK(s.verdict[k] == (options.checksum ? TN_VERDICT_OK : TN_VERDICT_NONE));
        assert_string_equal(said_of(&s.why[k]), "");
    }
    tn_close(f);
}

static void csr_tensors_of_every_kind_come_back(void)
{
    static const int64_t none[] = { 0, 5 }, empty[] = { 2, 5 }, flat[] = { 3, 0 }, small[] = { 2, 5 },
    cube[] = { 2, 1, 5 }, hollow[] = { 0, 7, 5 };
    static const uint64_t zeros[4], indices[] = { 1, 4, 0 }, indptr[] = { 0, 2, 3 };
    const csr all[] = { { 2, none, 0, 0, zeros, zeros }, { 2, empty, 0, 2, zeros, zeros },
                        { 2, flat, 0, 3, zeros, zeros },
                        { 2, small, 3, 2, indices, indptr }, { 3, cube, 3, 2, indices, indptr },
                        { 3, hollow, 0, 0, zeros, zeros },
                        whole_matrix, { 3, batch, STORED, BATCH * ROWS, columns, pointers } };
    make_csr();
    for (size_t i = 0; i < 4 * sizeof all / sizeof *all; i++) {
        check_written("t.zt", &all[i / 4], types[i % 4],
                      (tn_create_options){ .checksum = TN_CHECKSUM_SHA256 });
        check_written("t.zt", &all[i / 4], types[i % 4], (tn_create_options){ .encoding = TN_ENCODING_ZSTD });
        check_written("t.safetensors", &all[i / 4], types[i % 4], (tn_create_options){ 0 });
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(indices_in_order_are_no_news),
        IN_FOLDER(an_index_outside_the_shape_is_bad),
        IN_FOLDER(a_bad_index_is_named_with_its_byte_where_it_has_one),
        IN_FOLDER(entries_out_of_order_and_twice_are_told_of),
        IN_FOLDER(rows_in_order_are_no_news),
        IN_FOLDER(columns_out_of_order_and_twice_are_told_of),
        IN_FOLDER(a_column_outside_the_shape_is_bad),
        IN_FOLDER(pointers_must_ascend_from_0_to_the_number_of_values),
        IN_FOLDER(damaged_pointers_do_not_hide_a_bad_column),
        IN_FOLDER(csr_tensors_of_every_kind_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
