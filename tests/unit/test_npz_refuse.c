/* NumPy's .npz: what is refused, what is left out, and what it may cost. */
#include "support.h"
#include "stored.h"

#include "npz_samples.h"

#include <stdio.h>
#include <sys/resource.h>

static archive one(unsigned method)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", method, BYTES_24, numbers, 24);
    return a;
}

static void entries_that_cannot_be_are_refused(void)
{
    static const struct {
        unsigned field, n;
        uint64_t value;
        unsigned method;
        tn_status status;
        const char *text;
    } bad[] = {
        { 0, 1, 'p', 0, TN_ERR_CORRUPT,
          "expected an entry of the archive's directory, \"PK\\x01\\x02\", but found \"pK\\x01\\x02\"" },
        { ENTRY_FLAGS, 1, 1, 0, TN_ERR_UNSUPPORTED, "encrypted" },
        { ENTRY_METHOD, 2, 14, 0, TN_ERR_CORRUPT,
          "expected method 14 and a name of 5 bytes in its own header, as in the directory, but found 0 and "
          "5" },
        { ENTRY_SIZE, 4, MEMBER - 1, 0, TN_ERR_CORRUPT, "two sizes" },
        { ENTRY_SIZE, 4, 1000, 0, TN_ERR_CORRUPT,
          "its header and its 1000 bytes do not fit the 128 before the directory" },
        { ENTRY_SIZE, 4, MEMBER + 1, 0, TN_ERR_CORRUPT,
          "its header and its 94 bytes do not fit the 128 before the directory" },
        { ENTRY_DECODED, 4, MEMBER - 1, 0, TN_ERR_CORRUPT, "two sizes" },
        { ENTRY_DECODED, 4, 1000000, 8, TN_ERR_CORRUPT, "of deflate data decode to 1000000" },
        { ENTRY_DECODED, 4, MEMBER - 1, 8, TN_ERR_TRUNCATED, "take 24 bytes but 23 follow" },
        { ENTRY_DECODED, 4, MEMBER + 1, 8, TN_ERR_CORRUPT, "take 24 bytes but 25 follow" },
        { ENTRY_DECODED, 4, 20, 8, TN_ERR_TRUNCATED, "its header takes" },
        { ENTRY_DECODED, 4, UINT32_MAX, 8, TN_ERR_CORRUPT, "as zip64" },
        { ENTRY_PLACE, 4, 3, 0, TN_ERR_CORRUPT,
          "expected the header of member \"x.npy\", \"PK\\x03\\x04\", but found \"\\x04\\x14\\x00\\x00\"" },
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

/* The other arrays can be read all the same; without any there is an error. */
static void members_that_cannot_be_read_are_left_out(void)
{
    static const struct { const char *name; unsigned method; const char *text; } left[] = {
        { "x.npy", 12,
          "member \"x.npy\" is not read: expected it stored (0) or deflated (8) but found method 12" },
        { "\x82.npy", TN_ZIP_STORED, "member \"\\x82.npy\" is not read: its name is not UTF-8" },
        { "x.txt", TN_ZIP_STORED, "member \"x.txt\" is not read: its name does not end in .npy" },
        { "x.npy", TN_ZIP_DEFLATED, "member \"x.npy\" is not read: it is encrypted" },
    };
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        archive a = { .count = 0 };
        add_array(&a, left[i].name, left[i].method, BYTES_24, numbers, 24);
        a.directory.data[ENTRY_FLAGS] = left[i].method == TN_ZIP_DEFLATED;
        archive b = { .count = a.count };
        tn_buf_put(&b.bytes, a.bytes.data, a.bytes.size);
        tn_buf_put(&b.directory, a.directory.data, a.directory.size);
        end_archive(&a);
        bool named = strstr(left[i].name, ".npy") != NULL;
        check_refused(&a, TN_ERR_UNSUPPORTED,
                      named ? strstr(left[i].text, ": ") + 2 : "it is a zip archive without NumPy arrays: ");
        add_array(&b, "good.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
        end_archive(&b);
        tn_file *f = open_bytes(&b.bytes);
        CHECK(tn_file_count(f) == 1 && !tn_file_warning(f, 1) && strstr(tn_file_warning(f, 0), left[i].text));
        assert_string_equal(f->left_out, "members that are not read");
        check_data(f, "good", numbers, 24);
        tn_close(f);
        tn_buf_free(&b.bytes);
    }
}

static void count_bad(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                      const tn_error *why)
{
    (void)tensor, (void)part, (void)why;
    *(size_t *)context += verdict == TN_VERDICT_BAD;
}

/* What cannot be read is not good, but its checksum is looked at. */
static size_t bad_parts(const tn_file *f)
{
    size_t bad = 0;
    tn_verify_options options = { .size = sizeof options, .context = &bad };
    CHECK(tn_verify(f, &options, count_bad, NULL) == TN_OK);
    return bad;
}

static void objects_and_records_are_listed_beside_others(void)
{
    static const char *const types[] = { "'|O'", "[('x', '<f4'), ('y]', '<i8', (2,))]", "'O'" };
    static const char *const spelled[] = { "|O", "[('x', '<f4'), ('y]', '<i8', (2,))]", "O" };
    for (unsigned i = 0; i < 6; i++) {
        archive a = one(TN_ZIP_STORED);
        char header[200];
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (3,), }\n",
                 types[i % 3]);
        add_array(&a, "o.npy", i < 3 ? TN_ZIP_STORED : TN_ZIP_DEFLATED, header, numbers, 17);
        end_archive(&a);
        tn_file *f = open_bytes(&a.bytes);
        const tn_tensor *t = tn_file_find(f, "o");
        CHECK(tn_file_count(f) == 2 && t->dtype == TN_UNKNOWN && t->shape[0] == 3 && good_parts(f) == 1);
        CHECK(bad_parts(f) == 0);
        assert_string_equal(stored_info(t->parts).type, spelled[i % 3]);
        check_data(f, "x", numbers, 24);
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
}

/* An entry as an array's would be, pointing into the elements of another, which hold such a member. */
static void a_member_inside_another_is_refused(void)
{
    archive inner = one(TN_ZIP_STORED), a = { .count = 0 };
    char header[100];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,), }\n",
             inner.bytes.size);
    add_array(&a, "outer.npy", TN_ZIP_STORED, header, inner.bytes.data, inner.bytes.size);
    put_le(inner.directory.data + ENTRY_PLACE, a.bytes.size - inner.bytes.size, 4);
    tn_buf_put(&a.directory, inner.directory.data, inner.directory.size);
    a.count = 2;
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "member \"x.npy\" overlaps member \"outer.npy\"");
    tn_buf_free(&inner.bytes);
    tn_buf_free(&inner.directory);
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

static void names_are_without_nul(void)
{
    archive a = { .count = 0 };
    add_array(&a, "x.npy", TN_ZIP_STORED, BYTES_24, numbers, 24);
    a.directory.data[ENTRY_NAME] = a.bytes.data[LOCAL_NAME] = 0;
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "NUL");
}

static void the_end_must_tell_the_truth(void)
{
    static const struct { unsigned field, n; uint64_t value; tn_status status; const char *text; } bad[] = {
        { 4, 2, 1, TN_ERR_UNSUPPORTED, "several disks" }, { 8, 2, 2, TN_ERR_UNSUPPORTED, "several disks" },
        { 12, 4, 1, TN_ERR_CORRUPT, "ends here but it has 1 bytes" },
        { 16, 4, 0, TN_ERR_CORRUPT, "ends here" },
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
    end_archive(&a);
    tn_buf_putc(&a.bytes, 0);           /* a comment that the end does not speak of */
    check_refused(&a, TN_ERR_TRUNCATED,
                  "expected the end of a zip archive in the last 202 bytes but found none");
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

/* ---- deflated ---- */

static void what_is_wrong_with_deflated_headers_has_a_byte(void)
{
    archive a = { .count = 0 };
    add_member(&a, "x.npy", TN_ZIP_DEFLATED, "", 0);
    end_archive(&a);
    check_refused(&a, TN_ERR_TRUNCATED, "expected at least 10 bytes of header but found 0");
    a = one(TN_ZIP_DEFLATED);
    a.bytes.data[LOCAL_NAME + 5] = 7;   /* a block of a kind that there is not */
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "deflate data is damaged: invalid block type");
    a = (archive){ .count = 0 };
    add_array(&a, "x.npy", TN_ZIP_DEFLATED, "{'descr': 3}", numbers, 24);
    end_archive(&a);
    check_refused(&a, TN_ERR_CORRUPT, "expected a type");
}

/* A deflated array whose stored bytes are these, said to decode to all of it. */
static archive damaged(const char *header, const uint8_t *stored, size_t n)
{
    archive a = { .count = 0 };
    add_member(&a, "x.npy", TN_ZIP_STORED, stored, n);
    put_le(a.bytes.data + LOCAL_METHOD, TN_ZIP_DEFLATED, 2);
    put_le(a.directory.data + ENTRY_METHOD, TN_ZIP_DEFLATED, 2);
    put_le(a.directory.data + ENTRY_DECODED, 10 + strlen(header) + 24, 4);
    end_archive(&a);
    return a;
}

/* Rows and columns are decoded on different ways. */
static void deflated_data_that_goes_on_or_is_cut_off_is_refused_when_it_is_read(void)
{
    static const char *const headers[] = { WORDS_12, COLUMNS };
    for (size_t i = 0; i < 2; i++) {
        archive whole = { .count = 0 };
        add_array(&whole, "x.npy", TN_ZIP_DEFLATED, headers[i], numbers, 24);
        const uint8_t *stored = whole.bytes.data + LOCAL_NAME + 5;
        size_t n = whole.bytes.size - LOCAL_NAME - 5;
        tn_buf more = { 0 };
        tn_buf_put(&more, stored, n);
        tn_buf_putc(&more, 0);
        archive a = damaged(headers[i], more.data, n + 1), b = damaged(headers[i], stored, n - 1);
        tn_file *f = open_bytes(&a.bytes), *g = open_bytes(&b.bytes);
        check_unreadable(f, "x", TN_ERR_CORRUPT, "expected the end of the deflate data but found more");
        check_unreadable(g, "x", TN_ERR_CORRUPT, "expected the end of the deflate data within");
        CHECK(good_parts(f) == 0 && good_parts(g) == 0);
        tn_close(f);
        tn_close(g);
        tn_buf_free(&a.bytes);
        tn_buf_free(&b.bytes);
        tn_buf_free(&more);
        tn_buf_free(&whole.bytes);
        tn_buf_free(&whole.directory);
    }
}

static void every_deflated_member_has_a_checksum(void)
{
    static const struct { const char *header; size_t n; } arrays[] = {
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", 0 },
        { "{'descr': '|S3', 'fortran_order': False, 'shape': (8,), }", 24 },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (24,), } # tenon "
          "{\"record\":{\"dtype\":\"posit8\",\"shape\":[24]}}",
          24 },
        { COLUMNS, 24 },
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        for (uint8_t wrong = 0; wrong < 2; wrong++) {
            archive a = { .count = 0 };
            add_array(&a, "x.npy", TN_ZIP_DEFLATED, arrays[i].header, numbers, arrays[i].n);
            a.directory.data[ENTRY_CRC] ^= wrong;
            end_archive(&a);
            tn_file *f = open_bytes(&a.bytes);
            CHECK(bad_parts(f) == wrong);
            tn_close(f);
            tn_buf_free(&a.bytes);
        }
    }
}

/* ---- what it may cost ---- */

static long most_memory(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_maxrss;
}

/* `count` deflated members, each with a header of nearly 64 KiB: `text`, and `fill` up to the end. */
static archive long_headers(size_t count, const char *text, char fill, const char *end)
{
    enum { LENGTH = 65000 };
    static char header[LENGTH + 1];
    archive a = { .count = 0 };
    memset(header, fill, LENGTH);
    memcpy(header, text, strlen(text));
    memcpy(header + LENGTH - strlen(end), end, strlen(end));
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu.npy", i);
        add_array(&a, name, TN_ZIP_DEFLATED, header, "", 0);
    }
    end_archive(&a);
    return a;
}

static void long_headers_take_no_memory(void)
{
    static const struct { const char *text; char fill; const char *end; } kinds[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", ' ', "\n" },
        { "{'shape': (0,), 'fortran_order': False, 'descr': '", 'x', "'}" },
        { "{'shape': (0,), 'fortran_order': False, 'descr': [", '(', "'}" },
    };
    for (size_t i = 0; i < 2; i++) {
        archive a = long_headers(800, kinds[i].text, kinds[i].fill, kinds[i].end);
        long before = most_memory();
        tn_file *f;
        CHECK(tn_open_memory(a.bytes.data, a.bytes.size, NULL, &f, NULL) == TN_OK && tn_file_count(f) == 800);
        CHECK(most_memory() - before < 30 << 10);
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
    archive a = long_headers(1, kinds[2].text, kinds[2].fill, kinds[2].end);
    check_refused(&a, TN_ERR_CORRUPT, "expected the end of a type but found its end");
}

static void comments_of_deflated_headers_have_a_limit(void)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)} # tenon {\"x\":\"";
    archive a = long_headers(200, text, 'x', "\"}");
    tn_file *f = open_bytes(&a.bytes);
    CHECK(tn_file_count(f) == 200);
    tn_close(f);
    tn_buf_free(&a.bytes);
    a = long_headers(270, text, 'x', "\"}");
    check_refused(&a, TN_ERR_LIMIT, "bytes of comments in deflated headers but found");
}

/* What was read since, in bytes. */
static unsigned long long bytes_read(void)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    CHECK(f && fscanf(f, "rchar: %llu", &n) == 1 && fclose(f) == 0);
    return n;
}

static void opening_reads_no_more_of_the_end_than_it_must(void)
{
    enum { BYTES = 200000 };
    static uint8_t zeros[BYTES];
    tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    tn_file *f;
    archive a = { .count = 0 };
    add_array(&a, "x.npy", TN_ZIP_STORED, "{'descr': '|u1', 'fortran_order': False, 'shape': (200000,), }\n",
              zeros, BYTES);
    end_archive(&a);
    save_archive(&a, "x.npz");
    unsigned long long before = bytes_read();
    CHECK(tn_open(in_folder("x.npz").text, &options, &f, NULL) == TN_OK);
    CHECK(bytes_read() - before < 10000);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_that_cannot_be_are_refused),
        TEST(members_that_cannot_be_read_are_left_out),
        TEST(objects_and_records_are_listed_beside_others),
        TEST(a_member_inside_another_is_refused),
        TEST(members_that_overlap_are_refused),
        TEST(one_name_is_there_once),
        TEST(names_are_without_nul),
        TEST(the_end_must_tell_the_truth),
        TEST(every_truncation_is_refused),
        TEST(a_flipped_or_dropped_byte_never_hurts),
        TEST(what_is_wrong_with_deflated_headers_has_a_byte),
        TEST(deflated_data_that_goes_on_or_is_cut_off_is_refused_when_it_is_read),
        TEST(every_deflated_member_has_a_checksum),
        TEST(long_headers_take_no_memory),
        TEST(comments_of_deflated_headers_have_a_limit),
        IN_FOLDER(opening_reads_no_more_of_the_end_than_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
