/* NumPy's .npz: archives made by hand, well formed and not, and what is
 * written.  tests/interop holds it against NumPy itself. */
#include "support.h"
#include "stored.h"

#include "npz_samples.h"

#include "store/stream.h"
#include "tensor/array.h"

#include <stdlib.h>

/* ---- what NumPy wrote ---- */

#define GOLDEN TEST_GOLDEN "/numpy"

static void check_golden(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 5);
    tn_file *f = open_at(GOLDEN, field[0], NULL, TN_IO_AUTO);
    walk_file(f);
    check_listed_tensor(f, field);
    tn_close(f);
}

static void what_numpy_wrote_is_read(void)
{
    CHECK(each_row(GOLDEN "/arrays.tsv", check_golden) == 21);
}

static void damage_one(const char *name, const uint8_t *bytes, size_t n)
{
    if (!strstr(name, ".np"))
        return;
    const char *format = strstr(name, TN_NPZ_SUFFIX) ? "npz" : "npy";
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = exact_copy(bytes, n);
        copy[i] ^= (uint8_t)(1u << i % 8);
        walk_bytes(copy, n, format);
        free(copy);
        copy = exact_copy(bytes, i);
        CHECK(walk_bytes(copy, i, format) != TN_OK);
        free(copy);
    }
}

static void what_numpy_wrote_may_be_damaged(void)
{
    CHECK(each_file(GOLDEN, damage_one) > 10);
}

/* ---- reading ---- */

static void stored_members_are_used_in_place(void)
{
    archive a = sample();
    tn_file *f = open_bytes(&a.bytes);
    const tn_tensor *t = tn_file_tensor(f, 0);
    const uint8_t *data = t->parts[0].data;
    CHECK(tn_file_count(f) == 4 && t->dtype == TN_UINT16 && t->shape[0] == 3 && t->shape[1] == 4);
    assert_string_equal(t->name, "stored");
    CHECK(data >= a.bytes.data && data < a.bytes.data + a.bytes.size && memcmp(data, numbers, 24) == 0);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void deflated_members_are_decoded(void)
{
    archive a = sample();
    tn_file *f = open_bytes(&a.bytes);
    const tn_part *p = tn_file_find(f, "deflated")->parts;
    CHECK(!p->data && stored_info(p).encoding == TN_ENCODING_DEFLATE);
    CHECK(tn_stored_more_of(p)->skip == 10 + strlen(WORDS_12));
    check_data(f, "deflated", numbers, 24);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void columns_and_big_endian_numbers_come_out_as_rows_either_way(void)
{
    static const uint16_t expected[] = { 0x0102, 0x0708, 0x0d0e, 0x1314, 0x0304, 0x090a, 0x0f10, 0x1516,
                                         0x0506, 0x0b0c, 0x1112, 0x1718 };
    archive a = sample();
    tn_file *f = open_bytes(&a.bytes);
    check_data(f, "columns", expected, sizeof expected);
    check_data(f, "deflated/columns", expected, sizeof expected);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void large_members_are_decoded_window_by_window(void)
{
    enum { COUNT = TN_WINDOW };
    uint16_t *big = malloc(COUNT * sizeof *big), *little = malloc(COUNT * sizeof *little);
    char header[100];
    archive a = { .count = 0 };
    for (size_t i = 0; i < COUNT; i++)
        little[i] = (uint16_t)(i * 2654435761u >> 13 & 0x3ff0);
    tn_swap_bytes(big, little, COUNT * sizeof *big, 2);
    snprintf(header, sizeof header, "{'descr': '>u2', 'fortran_order': False, 'shape': (%d,), }\n",
             (int)COUNT);
    add_array(&a, "x.npy", TN_ZIP_DEFLATED, header, big, COUNT * sizeof *big);
    end_archive(&a);
    tn_file *f = open_bytes(&a.bytes);
    check_data(f, "x", little, COUNT * sizeof *little);
    CHECK(good_parts(f) == 1);
    tn_close(f);
    tn_buf_free(&a.bytes);
    free(big);
    free(little);
}

/* A deflated or stored array of `rows` by `columns` uint32 in Fortran order; the same in rows is in
 * *expected. */
static archive large_columns(unsigned method, size_t rows, size_t columns, uint32_t **expected)
{
    uint32_t *stored = malloc(rows * columns * sizeof *stored);
    char header[100];
    archive a = { .count = 0 };
    *expected = malloc(rows * columns * sizeof *stored);
    CHECK(stored && *expected);
    for (size_t i = 0; i < rows * columns; i++)
        (*expected)[i % rows * columns + i / rows] = stored[i] = (uint32_t)(i * 2654435761u >> 7 & 0xff00ff);
    snprintf(header, sizeof header, "{'descr': '<u4', 'fortran_order': True, 'shape': (%zu, %zu), }\n", rows,
             columns);
    add_array(&a, "x.npy", method, header, stored, rows * columns * sizeof *stored);
    end_archive(&a);
    free(stored);
    return a;
}

/* More than is decoded in memory, and than one thread checks at a time. */
static void large_columns_come_out_as_rows(void)
{
    enum { ROWS = 1501, COLUMNS_3 = 2003 };
    for (unsigned method = 0; method <= 8; method += 8) {
        uint32_t *expected;
        archive a = large_columns(method, ROWS, COLUMNS_3, &expected);
        tn_file *f = open_bytes(&a.bytes);
        const tn_part *p = tn_file_tensor(f, 0)->parts;
        uint32_t rows[3 * COLUMNS_3];
        CHECK(p->nbytes > TN_SPILL_IN_MEMORY && good_parts(f) == 1);
        check_data(f, "x", expected, p->nbytes);
        CHECK(tn_part_read_rows(f, p, 1400, 3, rows, sizeof rows, NULL) == TN_OK);
        assert_memory_equal(rows, expected + 1400 * COLUMNS_3, sizeof rows);
        a.bytes.data[a.bytes.size / 2] ^= 1;
        CHECK(good_parts(f) == 0);
        tn_close(f);
        tn_buf_free(&a.bytes);
        free(expected);
    }
}

/* Without a folder for temporary files it cannot be read, but it can be checked. */
static void large_deflated_columns_are_not_decoded_in_memory(void)
{
    uint32_t *expected;
    archive a = large_columns(TN_ZIP_DEFLATED, 1501, 2003, &expected);
    tn_file *f = open_bytes(&a.bytes);
    char *before = getenv("TMPDIR");
    before = before ? strdup(before) : NULL;
    CHECK(setenv("TMPDIR", "/nowhere", 1) == 0);
    check_unreadable(f, "x", TN_ERR_IO,
                     "cannot write a temporary file (TMPDIR says where): No such file or directory");
    CHECK(good_parts(f) == 1);
    CHECK((before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR")) == 0);
    tn_close(f);
    tn_buf_free(&a.bytes);
    free(before);
    free(expected);
}

/* As a zip tool leaves what Tenon has written: only the padding tells that it was. */
static void padding_may_be_deflated(void)
{
    static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 6), } # tenon "
                                 "{\"record\":{\"extents\":[3,4],\"fill\":7.5}}\n";
    static const uint8_t expected[] = { 1, 2, 3, 4, 7, 8, 9, 10, 13, 14, 15, 16 };
    for (unsigned method = 0; method <= 8; method += 8) {
        archive a = { .count = 0 };
        add_array(&a, "x.npy", method, header, numbers, 24);
        end_archive(&a);
        tn_file *f = open_bytes(&a.bytes);
        const tn_part *p = tn_file_tensor(f, 0)->parts;
        CHECK(p->padded && p->padded->shape[1] == 6 && p->array.shape[1] == 4 &&
              good_parts(f) == 1);
        check_data(f, "x", expected, sizeof expected);
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
}

static void verify_sees_every_changed_element(void)
{
    archive a = sample();
    tn_file *f = open_bytes(&a.bytes);
    CHECK(good_parts(f) == 4);
    uint64_t at[] = { stored_info(tn_file_find(f, "stored")->parts).offset,
                      stored_info(tn_file_find(f, "columns")->parts).offset };
    tn_close(f);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 24; k++) {
            a.bytes.data[at[i] + k] ^= 16;
            f = open_bytes(&a.bytes);
            CHECK(good_parts(f) == 3);
            tn_close(f);
            a.bytes.data[at[i] + k] ^= 16;
        }
    }
    tn_buf_free(&a.bytes);
}

static void a_wrong_checksum_of_deflated_data_is_seen(void)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", TN_ZIP_DEFLATED, COLUMNS, numbers, 24);
    a.directory.data[ENTRY_CRC] ^= 1;
    end_archive(&a);
    tn_file *f = open_bytes(&a.bytes);
    CHECK(good_parts(f) == 0);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void deflated_data_of_another_length_is_refused_when_it_is_read(void)
{
    static const int offsets[] = { -1, 1 };
    for (size_t i = 0; i < 2; i++) {
        archive a = { .count = 0 };
        uint8_t found[24];
        tn_error err = { .text = "" };
        add_array(&a, "x.npy", TN_ZIP_DEFLATED, BYTES_24, numbers, (size_t)(24 + offsets[i]));
        put_le(a.directory.data + ENTRY_DECODED, MEMBER, 4);
        end_archive(&a);
        tn_file *f = open_bytes(&a.bytes);
        CHECK(tn_part_read(f, tn_file_tensor(f, 0)->parts, found, 24, &err) == TN_ERR_CORRUPT);
        CHECK(strstr(line_of(&err), i ? "expected 24 decoded bytes but found more"
                                 : "expected 24 decoded bytes but found 23"));
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
}

static void empty_arrays_and_unknown_types_are_listed(void)
{
    archive a = { .count = 0 };
    for (unsigned method = 0; method <= 8; method += 8) {
        add_array(&a, method ? "e8.npy" : "e0.npy", method,
                  "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", "", 0);
        add_array(&a, method ? "s8.npy" : "s0.npy", method,
                  "{'descr': '|S3', 'fortran_order': False, 'shape': (8,), }", numbers, 24);
    }
    end_archive(&a);
    tn_file *f = open_bytes(&a.bytes);
    CHECK(tn_file_count(f) == 4 && tn_file_find(f, "s8")->dtype == TN_UNKNOWN &&
          tn_file_find(f, "e8")->parts->nbytes == 0);
    CHECK(good_parts(f) == 2);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void arrays_that_are_never_read_are_named(void)
{
    static const struct { const char *name, *text; } never[] = {
        { "notes", "it is an object array: Python objects in a pickle, which is never loaded" },
        { "pairs", "an array of records (a structured type) is not read" },
    };
    tn_file *f = open_at(GOLDEN, "objects.npz", NULL, TN_IO_MMAP);
    CHECK(tn_file_count(f) == 3 && good_parts(f) == 1);
    for (size_t i = 0; i < 2; i++) {
        const tn_tensor *t = tn_file_find(f, never[i].name);
        tn_error err = { .text = "" };
        uint8_t bytes[400];
        CHECK(t && t->dtype == TN_UNKNOWN && !t->parts->data);
        CHECK(tn_part_read(f, t->parts, bytes, t->parts->nbytes, &err) == TN_ERR_UNSUPPORTED);
        CHECK(strstr(err.text, never[i].text) && strstr(tn_file_warning(f, i), never[i].text));
    }
    CHECK(tn_convert(f, in_folder("o.zt").text, NULL, NULL, NULL) == TN_ERR_UNSUPPORTED);
    tn_close(f);
}

static void members_that_are_no_arrays_are_left_with_a_warning(void)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    add_member(&a, "README", TN_ZIP_DEFLATED, "text", 4);
    end_archive(&a);
    tn_file *f = open_bytes(&a.bytes);
    CHECK(tn_file_count(f) == 1 && strstr(tn_file_warning(f, 0), "member \"README\" is not read") &&
          f->left_out);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void an_archive_may_have_a_comment_but_nothing_before_it(void)
{
    archive a = sample();
    tn_buf_puts(&a.bytes, "a comment, PK\5\6");
    put_le(a.bytes.data + a.bytes.size - 15 - 2, 15, 2);
    tn_file *f = open_bytes(&a.bytes);
    CHECK(tn_file_count(f) == 4);
    tn_close(f);
    tn_buf_free(&a.bytes);
    archive b = { .count = 0 };
    add_array(&b, "x.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    tn_buf_putc(&b.bytes, 'x');
    uint64_t at = b.bytes.size - 1;
    tn_buf_put(&b.bytes, b.directory.data, b.directory.size);
    tn_zip_put_end(&b.bytes, 1, at, b.directory.size);
    tn_buf_free(&b.directory);
    check_refused(&b, TN_ERR_CORRUPT, "expected a directory that ends here");
}

static void zip64_is_read_where_it_is_not_needed(void)
{
    enum { END64 = 56 + 20 + 22 };
    archive a = { .wide = true };
    add_array(&a, "x.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    uint64_t at = a.bytes.size;
    tn_buf_put(&a.bytes, a.directory.data, a.directory.size);
    tn_zip_put_end(&a.bytes, 70000, at, a.directory.size);
    put_le(a.bytes.data + a.bytes.size - END64 + 24, 1, 8);
    put_le(a.bytes.data + a.bytes.size - END64 + 32, 1, 8);
    tn_file *f = open_bytes(&a.bytes);
    check_data(f, "x", numbers, 24);
    tn_close(f);
    put_le(a.bytes.data + a.bytes.size - END64 + 56 + 8, at + a.directory.size - 1, 8);
    tn_buf_free(&a.directory);
    check_refused(&a, TN_ERR_CORRUPT, "expected the end of a zip64 archive, \"PK\\x06\\x06\", but found");
}

static void sizes_beyond_32_bits_come_back(void)
{
    const tn_zip_member members[] = {
        { .name = { "a", 1 }, .local = 7, .size = UINT32_MAX, .wide = true },
        { .name = { "b", 1 }, .local = UINT32_MAX, .size = 5 },
        { .name = { "ü", 2 }, .local = UINT64_C(5) << 40, .size = UINT64_C(1) << 40, .wide = true },
        { .name = { "d", 1 }, .size = 3 },
    };
    tn_buf b = { 0 };
    for (size_t i = 0; i < 4; i++)
        tn_zip_put_entry(&b, &members[i]);
    tn_zip_directory d = { .entries = { .base = b.data, .end = b.size } };
    for (size_t i = 0; i < 4; i++) {
        tn_zip_member m;
        CHECK(tn_zip_next(&d, &m, NULL) == TN_OK);
        CHECK(m.local == members[i].local && m.size == members[i].size && m.decoded == m.size &&
              m.name.len == members[i].name.len);
        tn_buf local = { 0 };
        tn_zip_put_local(&local, &members[i]);
        CHECK(local.size == tn_zip_local_size(members[i].name.len, members[i].wide));
        tn_buf_free(&local);
    }
    CHECK(tn_cur_left(&d.entries) == 0);
    tn_buf_free(&b);
}

/* ---- writing ---- */

static void every_type_comes_back_aligned(void)
{
    simple s[TN_DTYPE_COUNT];
    char names[TN_DTYPE_COUNT][24];
    size_t n = 0;
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++, n++) {
        snprintf(names[n], sizeof names[n], "../ü/%u", (unsigned)d * 1237);
        s[n] = (simple){ .name = names[n], .dtype = d, .rank = 2, .shape = { 1, 1 }, .data = numbers };
    }
    write_file("all.npz", (tn_create_options){ 0 }, s, n);
    write_file("again.npz", (tn_create_options){ .jobs = 2 }, s, n);
    size_t size, again;
    uint8_t *bytes = load_file(in_folder("all.npz").text, &size),
            *others = load_file(in_folder("again.npz").text, &again);
    CHECK(size == again && memcmp(bytes, others, size) == 0);
    free(bytes);
    free(others);
    tn_file *f = open_file("all.npz");
    CHECK(tn_file_count(f) == n && good_parts(f) == n);
    for (size_t i = 0; i < n; i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        assert_string_equal(t->name, s[i].name);
        CHECK(t->dtype == s[i].dtype && t->rank == 2 && t->parts->data);
        CHECK(stored_info(t->parts).offset % 64 == 0);
        CHECK(memcmp(t->parts->data, numbers, t->parts->nbytes) == 0);
    }
    tn_close(f);
}

static void an_archive_without_members_is_one(void)
{
    write_file("none.npz", (tn_create_options){ 0 }, NULL, 0);
    tn_file *f = open_file("none.npz");
    CHECK(tn_file_count(f) == 0 && tn_file_size(f) == 22);
    tn_close(f);
}

static void metadata_needs_a_tensor_to_stand_with(void)
{
    const tn_meta meta = { .key = "k", .text = "v" };
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder("m.npz").text, NULL, &w, NULL) == TN_OK);
    CHECK(tn_writer_add_meta(w, &meta, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, &err) == TN_ERR_LOSS && strstr(line_of(&err), "(drop_metadata)"));
    simple s = { .name = "x", .dtype = TN_UINT8, .rank = 1, .shape = { 24 }, .data = numbers };
    CHECK(tn_create(in_folder("m.npz").text, NULL, &w, NULL) == TN_OK);
    CHECK(tn_writer_add_meta(w, &meta, NULL) == TN_OK && add_simple(w, &s, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("m.npz");
    size_t n;
    const tn_meta *found = tn_file_meta(f, &n);
    CHECK(n == 1 && strcmp(found->text, "v") == 0 && good_parts(f) == 1);
    tn_close(f);
}

static void ties_and_streamed_tensors_have_their_checksums(void)
{
    simple s[] = { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 24 } },
                   { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 24 }, .tied = "a" } };
    tn_writer *w;
    CHECK(tn_create(in_folder("t.npz").text, NULL, &w, NULL) == TN_OK);
    CHECK(add_simple(w, &s[0], NULL) == TN_OK && add_simple(w, &s[1], NULL) == TN_OK);
    for (size_t i = 0; i < 24; i += 6)
        CHECK(tn_writer_write(w, 0, 0, numbers + i, 6, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("t.npz");
    CHECK(good_parts(f) == 2);
    assert_string_equal(tn_file_find(f, "b")->tied, "a");
    check_data(f, "b", numbers, 24);
    tn_close(f);
}

static void names_that_are_too_long_are_refused(void)
{
    static char name[65534];
    memset(name, 'n', sizeof name - 1);
    simple s = { .name = name, .dtype = TN_UINT8, .rank = 1, .shape = { 24 }, .data = numbers };
    tn_error err = { .text = "" };
    CHECK(try_write("n.npz", (tn_create_options){ 0 }, &s, 1, &err) == TN_ERR_LIMIT &&
          strstr(line_of(&err), "has 65533 bytes"));
    name[65531] = '\0';
    write_file("n.npz", (tn_create_options){ 0 }, &s, 1);
    tn_close(open_file("n.npz"));
}

/* Sizes that need zip64 are known by the time the headers are placed: nothing is written here. */
static void members_near_4_gib_are_written_as_zip64(void)
{
    for (int64_t n = (int64_t)UINT32_MAX - 40000; n <= (int64_t)UINT32_MAX + 1000; n += 500) {
        simple s = { .name = "x", .dtype = TN_UINT8, .rank = 1, .shape = { n } };
        tn_create_options options = { .size = sizeof options };
        tn_writer *w;
        CHECK(tn_writer_new(in_folder("w.npz").text, &options, true, &w, NULL) == TN_OK);
        CHECK(add_simple(w, &s, NULL) == TN_OK && tn_writer_plan(w, NULL) == TN_OK);
        const tn_npz_member *m = w->state;
        CHECK(m->zip.size > (uint64_t)n && (m->zip.wide || m->zip.size < UINT32_MAX));
        CHECK(!m->zip.wide || n > (int64_t)UINT32_MAX - 30000);
        tn_writer_abandon(w);
    }
}

/* The arrays are plain for every reader; the directory has the rest. */
static void what_numpy_cannot_express_is_in_the_directory(void)
{
    static const uint8_t nan[] = { 0xf9, 0x7e, 0x00 };
    static char text[TN_ZIP_NOTE_MAX - 22];        /* the longest: {"meta":{"long":"..."}} takes 21 bytes more */
    const tn_meta meta[] = { { .key = "größe", .text = "µ\n{}" },
                             { .key = "nan", .cbor = nan, .cbor_size = sizeof nan } };
    const simple s[] = {
        { .name = "a", .dtype = TN_INT4, .rank = 1, .shape = { 8 }, .data = numbers, .meta = meta, .nmeta = 2 },
        { .name = "b", .dtype = TN_FLOAT8_E4M3FN, .rank = 2, .shape = { 2, 2 }, .data = numbers },
    };
    size_t n;
    write_file("n.npz", (tn_create_options){ 0 }, s, 2);
    uint8_t *bytes = load_file(in_folder("n.npz").text, &n);
    const uint8_t *directory = memmem(bytes, n, "PK\1\2", 4);
    CHECK(directory && !memchr(bytes, '#', (size_t)(directory - bytes)));
    CHECK(memmem(directory, n - (size_t)(directory - bytes), "{\"record\":", 10));
    free(bytes);
    tn_file *f = open_file("n.npz");
    const tn_tensor *a = tn_file_find(f, "a"), *b = tn_file_find(f, "b");
    CHECK(a->dtype == TN_INT4 && a->shape[0] == 8 && b->dtype == TN_FLOAT8_E4M3FN && b->shape[1] == 2);
    CHECK(a->nmeta == 2 && strcmp(a->meta[0].text, meta[0].text) == 0);
    CHECK(a->meta[1].cbor_size == 3 && memcmp(a->meta[1].cbor, nan, 3) == 0);
    tn_close(f);
    memset(text, 'x', sizeof text - 1);
    simple longest = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers,
                       .meta = &(tn_meta){ .key = "long", .text = text }, .nmeta = 1 };
    write_file("l.npz", (tn_create_options){ 0 }, &longest, 1);
    tn_close(open_file("l.npz"));
}

static void notes_have_a_limit(void)
{
    static char text[TN_ZIP_NOTE_MAX];
    memset(text, 'x', sizeof text - 1);
    simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers,
                 .meta = &(tn_meta){ .key = "long", .text = text }, .nmeta = 1 };
    tn_error err = { .text = "" };
    check_status(try_write("l.npz", (tn_create_options){ 0 }, &s, 1, &err), &err, TN_ERR_LIMIT,
                 "bytes but the directory of an archive has room for 65503 (drop_metadata)");
    write_file("l.npz", (tn_create_options){ .drop_metadata = true }, &s, 1);
    tn_file *f = open_file("l.npz");
    CHECK(tn_file_tensor(f, 0)->nmeta == 0);
    tn_close(f);
}

/* Every byte of the directory flipped, and every length of the file. */
static void damaged_notes_are_refused_or_read(void)
{
    const simple s = { .name = "a", .dtype = TN_INT4, .rank = 1, .shape = { 8 }, .data = numbers,
                       .meta = &(tn_meta){ .key = "k", .text = "v" }, .nmeta = 1 };
    size_t size;
    write_file("d.npz", (tn_create_options){ 0 }, &s, 1);
    uint8_t *bytes = load_file(in_folder("d.npz").text, &size);
    for (size_t i = 0; i < size; i++) {
        for (int cut = 0; cut < 2; cut++) {
            uint8_t *copy = exact_copy(bytes, cut ? i : size);
            tn_file *f = NULL;
            tn_error err = { .text = "" };
            if (!cut)
                copy[i] ^= 0x11;
            tn_status status = tn_open_memory(copy, cut ? i : size, NULL, &f, &err);
            CHECK(status ? err.text[0] && !f : !cut);
            if (f)
                walk_file(f);
            tn_close(f);
            free(copy);
        }
    }
    free(bytes);
}

static void compressed_data_stays_compressed_and_checked(void)
{
    static const char *const outs[] = { "out.zt", "out.npz" };
    archive a = sample();
    save_archive(&a, "in.npz");
    tn_file *in = open_file("in.npz");
    for (size_t i = 0; i < 2; i++) {
        tn_error err = { .text = "" };
        if (tn_convert(in, in_folder(outs[i]).text, NULL, NULL, &err))
            fail_msg("%s", line_of(&err));
        tn_file *out = open_file(outs[i]);
        require_same_tensors(in, out);
        CHECK(good_parts(out) == 4);
        CHECK(stored_info(tn_file_find(out, "deflated")->parts).encoding ==
              (i ? TN_ENCODING_RAW : TN_ENCODING_ZSTD));
        CHECK(stored_info(tn_file_find(out, "deflated")->parts).checksum ==
              (i ? TN_CHECKSUM_CRC32 : TN_CHECKSUM_CRC32C));
        CHECK(stored_info(tn_file_find(out, "stored")->parts).encoding == TN_ENCODING_RAW);
        tn_close(out);
    }
    tn_close(in);
}

static void members_are_deflated_where_it_is_asked_for(void)
{
    enum { LARGE = 9 << 20 };   /* more than is encoded whole */
    static uint8_t large[LARGE];
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)(i / 1000 * 7);
    const simple s[] = { { .name = "a", .dtype = TN_UINT16, .rank = 1, .shape = { 12 }, .data = numbers },
                         { .name = "none", .dtype = TN_FLOAT32, .rank = 2, .shape = { 0, 3 }, .data = numbers },
                         { .name = "large", .dtype = TN_UINT8, .rank = 1, .shape = { LARGE }, .data = large },
                         { .name = "tied", .dtype = TN_UINT16, .rank = 1, .shape = { 12 }, .tied = "a" },
                         { .name = "i4", .dtype = TN_INT4, .rank = 1, .shape = { 8 }, .data = numbers } };
    const tn_create_options how = { .size = sizeof how, .encoding = TN_ENCODING_DEFLATE };
    tn_writer *w;
    CHECK(tn_create(in_folder("d.npz").text, &how, &w, NULL) == TN_OK);
    for (size_t i = 0; i < 5; i++) {
        simple streamed = s[i];
        streamed.data = NULL;
        CHECK(add_simple(w, &streamed, NULL) == TN_OK);
    }
    for (size_t i = 0; i < 24; i += 5)
        CHECK(tn_writer_write(w, 0, 0, numbers + i, i < 20 ? 5 : 4, NULL) == TN_OK);
    for (size_t i = 0; i < LARGE; i += LARGE / 9)
        CHECK(tn_writer_write(w, 2, 0, large + i, LARGE / 9, NULL) == TN_OK);
    CHECK(tn_writer_write(w, 4, 0, numbers, 4, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("d.npz");
    CHECK(tn_file_count(f) == 5 && good_parts(f) == 5 && tn_file_find(f, "i4")->dtype == TN_INT4);
    for (size_t i = 0; i < 5; i++)
        CHECK(stored_info(tn_file_tensor(f, i)->parts).encoding == TN_ENCODING_DEFLATE);
    check_data(f, "a", numbers, 24);
    check_data(f, "large", large, LARGE);
    check_data(f, "tied", numbers, 24);
    tn_convert_options options = { .size = sizeof options, .create = &how, .encoding = TN_CHOOSE };
    tn_create_options alone = how;
    alone.jobs = 1;
    CHECK(tn_convert(f, in_folder("e.npz").text, &options, NULL, NULL) == TN_OK);
    tn_close(f);
    f = open_file("e.npz");
    options.create = &alone;
    CHECK(good_parts(f) == 5 && tn_convert(f, in_folder("f.npz").text, &options, NULL, NULL) == TN_OK);
    check_same_files(in_folder("e.npz").text, in_folder("f.npz").text);
    tn_close(f);
}

static void containers_have_their_own_compression(void)
{
    static const struct { const char *file, *format; tn_create_options how; const char *text; } bad[] = {
        { "o.npz", NULL, { .encoding = TN_ENCODING_ZSTD }, "npz is compressed with deflate but found zstd" },
        { "o.zt", NULL, { .encoding = TN_ENCODING_DEFLATE }, "ztensor is compressed with zstd but found deflate" },
        { "o.npy", NULL, { .encoding = TN_ENCODING_DEFLATE }, "npy cannot hold compressed data" },
        { "o.npz", NULL, { .encoding = TN_ENCODING_DEFLATE, .level = 10 },
          "expected a deflate level from 0 to 9 but found 10" },
        { "o.npz", "scipy-npz", { .encoding = TN_ENCODING_ZSTD }, "scipy-npz is compressed with deflate" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_create_options how = bad[i].how;
        tn_error err = { .text = "" };
        tn_writer *w;
        how.size = sizeof how;
        how.format = bad[i].format;
        CHECK(tn_create(in_folder(bad[i].file).text, &how, &w, &err) == TN_ERR_ARGUMENT);
        if (!strstr(line_of(&err), bad[i].text))
            fail_msg("expected \"%s\"\nfound    \"%s\"", bad[i].text, line_of(&err));
    }
}

static void a_file_that_is_read_is_the_same_as_one_that_is_mapped(void)
{
    archive a = sample();
    tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    save_archive(&a, "p.npz");
    tn_file *mapped = open_file("p.npz"), *read = NULL;
    CHECK(tn_open(in_folder("p.npz").text, &options, &read, NULL) == TN_OK);
    walk_file(read);
    CHECK(!tn_file_tensor(read, 0)->parts->data && good_parts(read) == 4);
    require_same_tensors(mapped, read);
    tn_close(read);
    tn_close(mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_numpy_wrote_is_read),
        TEST(what_numpy_wrote_may_be_damaged),
        TEST(stored_members_are_used_in_place),
        TEST(deflated_members_are_decoded),
        TEST(columns_and_big_endian_numbers_come_out_as_rows_either_way),
        TEST(large_members_are_decoded_window_by_window),
        TEST(large_columns_come_out_as_rows),
        TEST(large_deflated_columns_are_not_decoded_in_memory),
        TEST(padding_may_be_deflated),
        TEST(verify_sees_every_changed_element),
        TEST(a_wrong_checksum_of_deflated_data_is_seen),
        TEST(deflated_data_of_another_length_is_refused_when_it_is_read),
        TEST(empty_arrays_and_unknown_types_are_listed),
        IN_FOLDER(arrays_that_are_never_read_are_named),
        TEST(members_that_are_no_arrays_are_left_with_a_warning),
        TEST(an_archive_may_have_a_comment_but_nothing_before_it),
        TEST(zip64_is_read_where_it_is_not_needed),
        TEST(sizes_beyond_32_bits_come_back),
        IN_FOLDER(every_type_comes_back_aligned),
        IN_FOLDER(an_archive_without_members_is_one),
        IN_FOLDER(metadata_needs_a_tensor_to_stand_with),
        IN_FOLDER(ties_and_streamed_tensors_have_their_checksums),
        IN_FOLDER(names_that_are_too_long_are_refused),
        IN_FOLDER(members_near_4_gib_are_written_as_zip64),
        IN_FOLDER(what_numpy_cannot_express_is_in_the_directory),
        IN_FOLDER(notes_have_a_limit),
        IN_FOLDER(damaged_notes_are_refused_or_read),
        IN_FOLDER(compressed_data_stays_compressed_and_checked),
        IN_FOLDER(members_are_deflated_where_it_is_asked_for),
        IN_FOLDER(containers_have_their_own_compression),
        IN_FOLDER(a_file_that_is_read_is_the_same_as_one_that_is_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
