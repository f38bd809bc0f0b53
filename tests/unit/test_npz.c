/* NumPy's .npz: archives made by hand, well formed and not, and what is
 * written.  tests/interop holds it against NumPy itself. */
#include "support.h"

#include "files.h"
#include "make.h"
#include "npz_bytes.h"

#include "container/stream.h"
#include "tensor/array.h"

/* ---- archives by hand ---- */

static const uint8_t numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25 };

#define BYTES_24 "{'descr': '|u1', 'fortran_order': False, 'shape': (24,), }\n"
enum { MEMBER = 10 + sizeof BYTES_24 - 1 + 24 };       /* bytes of a member of it */
#define WORDS_12 "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }\n"
#define COLUMNS  "{'descr': '>u2', 'fortran_order': True, 'shape': (3, 4), }\n"

static archive sample(void)
{
    archive a = { .count = 0 };
    add_array(&a, "stored.npy", TN_ZIP_STORED, WORDS_12, numbers, 24);
    add_array(&a, "deflated.npy", TN_ZIP_DEFLATED, WORDS_12, numbers, 24);
    add_array(&a, "columns.npy", TN_ZIP_STORED, COLUMNS, numbers, 24);
    add_array(&a, "deflated/columns.npy", TN_ZIP_DEFLATED, COLUMNS, numbers, 24);
    end_archive(&a);
    return a;
}

static tn_file *open_bytes(const tn_buf *b)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    if (tn_open_memory(b->data, b->size, NULL, &f, &err))
        fail_msg("%s", err.text);
    assert_string_equal(tn_file_format(f), "npz");
    walk_file(f);
    return f;
}

/* And frees it. */
static void check_refused(archive *a, tn_status expected, const char *text)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "npz" };
    tn_status status = tn_open_memory(a->bytes.data, a->bytes.size, &options, &f, &err);
    if (status != expected || !strstr(err.text, text))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", (int)expected, text, (int)status, err.text);
    CHECK(err.offset <= a->bytes.size || err.offset == TN_NO_OFFSET);
    CHECK(tn_open_memory(a->bytes.data, a->bytes.size, &options, &f, NULL) == expected);
    tn_buf_free(&a->bytes);
}

static void check_data(const tn_file *f, const char *name, const void *expected, size_t n)
{
    const tn_tensor *t = tn_file_find(f, name);
    assert_non_null(t);
    CHECK(t->parts[0].nbytes == n);
    uint8_t *found = read_tensor(f, t);
    CHECK(memcmp(found, expected, n) == 0);
    free(found);
}

static void count_good(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict, const tn_error *why)
{
    (void)tensor, (void)part, (void)why;
    *(size_t *)context += verdict == TN_VERDICT_OK;
}

static size_t good_parts(const tn_file *f)
{
    size_t good = 0;
    tn_verify_options options = { .size = sizeof options, .jobs = 2, .context = &good };
    CHECK(tn_verify(f, &options, count_good, NULL) == TN_OK);
    return good;
}

/* ---- what NumPy wrote ---- */

#define GOLDEN TEST_GOLDEN "/numpy/"

/* "3,5", or "-" for a scalar. */
static void check_shape(const tn_tensor *t, const char *expected)
{
    char text[100] = "-";
    size_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, i ? ",%lld" : "%lld", (long long)t->shape[i]);
    assert_string_equal(text, expected);
}

static void check_golden(char *field[TABLE_FIELDS], size_t n)
{
    char full[PATH_MAX];
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    CHECK(n == 5);
    snprintf(full, sizeof full, GOLDEN "%s", field[0]);
    if (tn_open(full, NULL, &f, &err))
        fail_msg("%s: %s", field[0], err.text);
    walk_file(f);
    const tn_tensor *t = tn_file_find(f, field[1]);
    assert_non_null(t);
    assert_string_equal(tn_dtype_get(t->dtype)->name, field[2]);
    check_shape(t, field[3]);
    uint8_t *bytes = read_tensor(f, t);
    assert_string_equal(sha256_of(bytes, t->parts[0].nbytes).text, field[4]);
    free(bytes);
    tn_close(f);
}

static void what_numpy_wrote_is_read(void)
{
    CHECK(each_row(GOLDEN "arrays.tsv", check_golden) == 21);
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
    CHECK(!p->data && p->storage.encoding == TN_ENCODING_DEFLATE && p->storage.skip == 10 + strlen(WORDS_12));
    check_data(f, "deflated", numbers, 24);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void columns_and_big_endian_numbers_come_out_as_rows_either_way(void)
{
    static const uint16_t expected[] = { 0x0102, 0x0708, 0x0d0e, 0x1314, 0x0304, 0x090a, 0x0f10, 0x1516, 0x0506, 0x0b0c, 0x1112, 0x1718 };
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
    snprintf(header, sizeof header, "{'descr': '>u2', 'fortran_order': False, 'shape': (%d,), }\n", (int)COUNT);
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

static void verify_sees_every_changed_element(void)
{
    archive a = sample();
    tn_file *f = open_bytes(&a.bytes);
    CHECK(good_parts(f) == 4);
    uint64_t at[] = { tn_file_find(f, "stored")->parts->storage.offset, tn_file_find(f, "columns")->parts->storage.offset };
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
        CHECK(strstr(err.text, i ? "found more" : "found fewer"));
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
}

static void empty_arrays_and_unknown_types_are_listed(void)
{
    archive a = { .count = 0 };
    for (unsigned method = 0; method <= 8; method += 8) {
        add_array(&a, method ? "e8.npy" : "e0.npy", method, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", "", 0);
        add_array(&a, method ? "s8.npy" : "s0.npy", method, "{'descr': '|S3', 'fortran_order': False, 'shape': (8,), }", numbers, 24);
    }
    end_archive(&a);
    tn_file *f = open_bytes(&a.bytes);
    CHECK(tn_file_count(f) == 4 && tn_file_find(f, "s8")->dtype == TN_UNKNOWN && tn_file_find(f, "e8")->parts->nbytes == 0);
    CHECK(good_parts(f) == 2);          /* of deflated ones there is nothing to check */
    tn_close(f);
    tn_buf_free(&a.bytes);
}

static void members_that_are_no_arrays_are_left_with_a_warning(void)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    add_member(&a, "README", TN_ZIP_DEFLATED, "text", 4);
    end_archive(&a);
    tn_file *f = open_bytes(&a.bytes);
    CHECK(tn_file_count(f) == 1 && strstr(tn_file_warning(f, 0), "member \"README\" is no array") && f->left_out);
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
    check_refused(&a, TN_ERR_CORRUPT, "expected the end of a zip64 archive");
}

static void sizes_beyond_32_bits_come_back(void)
{
    const tn_zip_member members[] = {
        { .name = { "a", 1 }, .local = 7, .size = UINT32_MAX, .wide = true }, { .name = { "b", 1 }, .local = UINT32_MAX, .size = 5 },
        { .name = { "ü", 2 }, .local = UINT64_C(5) << 40, .size = UINT64_C(1) << 40, .wide = true }, { .name = { "d", 1 }, .size = 3 },
    };
    tn_buf b = { 0 };
    for (size_t i = 0; i < 4; i++)
        tn_zip_put_entry(&b, &members[i]);
    tn_zip_directory d = { .entries = { .base = b.data, .end = b.size } };
    for (size_t i = 0; i < 4; i++) {
        tn_zip_member m;
        CHECK(tn_zip_next(&d, &m, NULL) == TN_OK);
        CHECK(m.local == members[i].local && m.size == members[i].size && m.decoded == m.size && m.name.len == members[i].name.len);
        tn_buf local = { 0 };
        tn_zip_put_local(&local, &members[i]);
        CHECK(local.size == tn_zip_local_size(members[i].name.len, members[i].wide));
        tn_buf_free(&local);
    }
    CHECK(tn_cur_left(&d.entries) == 0);
    tn_buf_free(&b);
}

/* ---- refusing ---- */

static archive one(unsigned method)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", method, BYTES_24, numbers, 24);
    return a;
}

static void entries_that_cannot_be_are_refused(void)
{
    static const struct { unsigned field, n; uint64_t value; unsigned method; tn_status status; const char *text; } bad[] = {
        { 0, 1, 'p', 0, TN_ERR_CORRUPT, "expected an entry" },
        { ENTRY_FLAGS, 1, 1, 0, TN_ERR_UNSUPPORTED, "encrypted" },
        { ENTRY_METHOD, 2, 14, 0, TN_ERR_CORRUPT, "disagree" },
        { ENTRY_SIZE, 4, MEMBER - 1, 0, TN_ERR_CORRUPT, "two sizes" },
        { ENTRY_SIZE, 4, 1000, 0, TN_ERR_CORRUPT, "has 1000 bytes but" },
        { ENTRY_DECODED, 4, MEMBER - 1, 0, TN_ERR_CORRUPT, "two sizes" },
        { ENTRY_DECODED, 4, 1000000, 8, TN_ERR_CORRUPT, "of deflate data decode to 1000000" },
        { ENTRY_DECODED, 4, MEMBER - 1, 8, TN_ERR_TRUNCATED, "take 24 bytes but 23 follow" },
        { ENTRY_DECODED, 4, MEMBER + 1, 8, TN_ERR_CORRUPT, "take 24 bytes but 25 follow" },
        { ENTRY_DECODED, 4, 20, 8, TN_ERR_TRUNCATED, "its header takes" },
        { ENTRY_DECODED, 4, UINT32_MAX, 8, TN_ERR_CORRUPT, "as zip64" },
        { ENTRY_PLACE, 4, 3, 0, TN_ERR_CORRUPT, "expected the header of member" },
        { ENTRY_PLACE, 4, 100000, 0, TN_ERR_CORRUPT, "is said to be at 100000" },
        { ENTRY_NAME, 1, 'y', 0, TN_ERR_CORRUPT, "another name in its own header" },
        { 28, 2, 300, 0, TN_ERR_CORRUPT, "reaches beyond" },
        { 32, 2, 1, 0, TN_ERR_CORRUPT, "reaches beyond" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        archive a = one(bad[i].method);
        put_le(a.directory.data + bad[i].field, bad[i].value, bad[i].n);
        end_archive(&a);
        check_refused(&a, bad[i].status, bad[i].text);
    }
}

static void other_methods_are_refused(void)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", 12, BYTES_24, numbers, 24);
    end_archive(&a);
    check_refused(&a, TN_ERR_UNSUPPORTED, "found method 12");
}

static void members_that_overlap_are_refused(void)
{
    archive a = one(TN_ZIP_STORED), b = one(TN_ZIP_STORED);
    tn_buf_put(&a.directory, b.directory.data, b.directory.size);
    a.count = 2;
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "overlaps");
    tn_buf_free(&b.bytes);
    tn_buf_free(&b.directory);
}

static void one_name_is_there_once(void)
{
    archive a = one(TN_ZIP_STORED);
    add_array(&a, "x.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "listed twice");
}

static void names_are_utf8_without_nul(void)
{
    archive a = { .count = 0 };
    add_array(&a, "\xff.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "not UTF-8");
    archive b = one(TN_ZIP_STORED);
    b.directory.data[ENTRY_NAME] = b.bytes.data[LOCAL_NAME] = 0;
    end_archive(&b);
    check_refused(&b, TN_ERR_CORRUPT, "NUL");
}

static void the_end_must_tell_the_truth(void)
{
    static const struct { unsigned field, n; uint64_t value; tn_status status; const char *text; } bad[] = {
        { 4, 2, 1, TN_ERR_UNSUPPORTED, "several disks" }, { 8, 2, 2, TN_ERR_UNSUPPORTED, "several disks" },
        { 12, 4, 1, TN_ERR_CORRUPT, "ends here but it has 1 bytes" }, { 16, 4, 0, TN_ERR_CORRUPT, "ends here" },
        { 20, 2, 1, TN_ERR_TRUNCATED, "expected the end of a zip archive" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        archive a = one(TN_ZIP_STORED);
        end_archive(&a);
        put_le(a.bytes.data + a.bytes.size - 22 + bad[i].field, bad[i].value, bad[i].n);
        check_refused(&a, bad[i].status, bad[i].text);
    }
    archive a = one(TN_ZIP_STORED);
    a.count = 0;
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "more bytes than its 0 members take");
    a = one(TN_ZIP_STORED);
    a.count = 1000;
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "1000 members do not fit");
}

static void every_truncation_is_refused(void)
{
    archive a = sample();
    for (size_t n = 0; n <= a.bytes.size; n++) {
        uint8_t *copy = exact_copy(a.bytes.data, n);
        CHECK((walk_bytes(copy, n, "npz") == TN_OK) == (n == a.bytes.size));
        free(copy);
    }
    tn_buf_free(&a.bytes);
}

static void a_flipped_or_dropped_byte_never_hurts(void)
{
    archive a = sample();
    for (size_t i = 0; i < a.bytes.size; i++) {
        for (size_t bit = i % 3; bit < 8; bit += 3) {
            uint8_t *copy = exact_copy(a.bytes.data, a.bytes.size);
            copy[i] ^= (uint8_t)(1u << bit);
            walk_bytes(copy, a.bytes.size, "npz");
            free(copy);
        }
        uint8_t *copy = exact_copy(a.bytes.data, a.bytes.size - 1);
        memcpy(copy + i, a.bytes.data + i + 1, a.bytes.size - 1 - i);
        walk_bytes(copy, a.bytes.size - 1, "npz");
        free(copy);
    }
    tn_buf_free(&a.bytes);
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
    uint8_t *bytes = load_file(in_folder("all.npz").text, &size), *others = load_file(in_folder("again.npz").text, &again);
    CHECK(size == again && memcmp(bytes, others, size) == 0);
    free(bytes);
    free(others);
    tn_file *f = open_file("all.npz");
    CHECK(tn_file_count(f) == n && good_parts(f) == n);
    for (size_t i = 0; i < n; i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        assert_string_equal(t->name, s[i].name);
        CHECK(t->dtype == s[i].dtype && t->rank == 2 && t->parts->storage.offset % 64 == 0 && t->parts->data);
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
    CHECK(tn_writer_finish(w, &err) == TN_ERR_LOSS && strstr(err.text, "--drop-metadata"));
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
    CHECK(try_write("n.npz", (tn_create_options){ 0 }, &s, 1, &err) == TN_ERR_LIMIT && strstr(err.text, "has 65533 bytes"));
    name[65531] = '\0';
    write_file("n.npz", (tn_create_options){ 0 }, &s, 1);
    tn_close(open_file("n.npz"));
}

static void compressed_data_stays_compressed_and_checked(void)
{
    static const char *const outs[] = { "out.zt", "out.npz" };
    archive a = sample();
    FILE *file = fopen(in_folder("in.npz").text, "wb");
    CHECK(file && fwrite(a.bytes.data, 1, a.bytes.size, file) == a.bytes.size && fclose(file) == 0);
    tn_buf_free(&a.bytes);
    tn_file *in = open_file("in.npz");
    for (size_t i = 0; i < 2; i++) {
        tn_error err = { .text = "" };
        if (tn_convert(in, in_folder(outs[i]).text, NULL, NULL, &err))
            fail_msg("%s", err.text);
        tn_file *out = open_file(outs[i]);
        size_t different = 1;
        CHECK(tn_compare(in, out, NULL, NULL, &different, NULL) == TN_OK && different == 0 && good_parts(out) == 4);
        CHECK(tn_file_find(out, "deflated")->parts->storage.encoding == (i ? TN_ENCODING_RAW : TN_ENCODING_ZSTD));
        CHECK(tn_file_find(out, "deflated")->parts->storage.checksum == (i ? TN_CHECKSUM_CRC32 : TN_CHECKSUM_CRC32C));
        CHECK(tn_file_find(out, "stored")->parts->storage.encoding == TN_ENCODING_RAW);
        tn_close(out);
    }
    tn_close(in);
}

static void a_file_that_is_read_is_the_same_as_one_that_is_mapped(void)
{
    archive a = sample();
    tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    FILE *file = fopen(in_folder("p.npz").text, "wb");
    CHECK(file && fwrite(a.bytes.data, 1, a.bytes.size, file) == a.bytes.size && fclose(file) == 0);
    tn_buf_free(&a.bytes);
    tn_file *mapped = open_file("p.npz"), *read = NULL;
    size_t different = 1;
    CHECK(tn_open(in_folder("p.npz").text, &options, &read, NULL) == TN_OK);
    walk_file(read);
    CHECK(!tn_file_tensor(read, 0)->parts->data && good_parts(read) == 4);
    CHECK(tn_compare(mapped, read, NULL, NULL, &different, NULL) == TN_OK && different == 0);
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
        TEST(verify_sees_every_changed_element),
        TEST(a_wrong_checksum_of_deflated_data_is_seen),
        TEST(deflated_data_of_another_length_is_refused_when_it_is_read),
        TEST(empty_arrays_and_unknown_types_are_listed),
        TEST(members_that_are_no_arrays_are_left_with_a_warning),
        TEST(an_archive_may_have_a_comment_but_nothing_before_it),
        TEST(zip64_is_read_where_it_is_not_needed),
        TEST(sizes_beyond_32_bits_come_back),
        TEST(entries_that_cannot_be_are_refused),
        TEST(other_methods_are_refused),
        TEST(members_that_overlap_are_refused),
        TEST(one_name_is_there_once),
        TEST(names_are_utf8_without_nul),
        TEST(the_end_must_tell_the_truth),
        TEST(every_truncation_is_refused),
        TEST(a_flipped_or_dropped_byte_never_hurts),
        IN_FOLDER(every_type_comes_back_aligned),
        IN_FOLDER(an_archive_without_members_is_one),
        IN_FOLDER(metadata_needs_a_tensor_to_stand_with),
        IN_FOLDER(ties_and_streamed_tensors_have_their_checksums),
        IN_FOLDER(names_that_are_too_long_are_refused),
        IN_FOLDER(compressed_data_stays_compressed_and_checked),
        IN_FOLDER(a_file_that_is_read_is_the_same_as_one_that_is_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
