/* zTensor 0.1: golden files, edge files, damaged files. */
#include "support.h"
#include "stored.h"

#include "files.h"
#include "verdicts.h"
#include "walk.h"

#define GOOD TEST_GOLDEN "/ztensor/good"
#define EDGE TEST_GOLDEN "/ztensor/edge"

/* ---- files the original library wrote ---- */

/* The file whose lines are being read, three times over: all must agree. */
static char     opened_name[64];
static tn_file *opened[3];
static uint8_t *opened_bytes;

static void close_golden(void)
{
    for (size_t i = 0; i < 3; i++) {
        tn_close(opened[i]);
        opened[i] = NULL;
    }
    free(opened_bytes);
    opened_bytes = NULL;
    opened_name[0] = '\0';
}

static void open_golden(const char *name)
{
    char path[PATH_MAX];
    size_t n;
    tn_error err = { .text = "" };
    close_golden();
    snprintf(opened_name, sizeof opened_name, "%s", name);
    snprintf(path, sizeof path, "%s/%s", GOOD, name);
    opened_bytes = load_file(path, &n);
    tn_open_options map = { .size = sizeof map, .io = TN_IO_MMAP },
    read = { .size = sizeof read, .io = TN_IO_PREAD };
    if (tn_open(path, &map, &opened[0], &err) || tn_open(path, &read, &opened[1], &err) ||
        tn_open_memory(opened_bytes, n, NULL, &opened[2], &err))
        fail_msg("%s: %s", name, line_of(&err));
}

static void check_good_row(char *field[TABLE_FIELDS], size_t n)
{
    if (n == 2) {               /* a file begins: how many tensors it has */
        open_golden(field[0]);
        for (size_t i = 0; i < 3; i++)
            CHECK(tn_file_count(opened[i]) == strtoul(field[1], NULL, 10));
        return;
    }
    CHECK(n == 5 && strcmp(field[0], opened_name) == 0);
    for (size_t i = 0; i < 3; i++) {
        const tn_tensor *t = check_listed_tensor(opened[i], field);
        bool in_place = i != 1 && stored_info(&t->parts[0]).encoding == TN_ENCODING_RAW &&
                        (stored_info(t->parts).order == TN_LITTLE_ENDIAN || tn_dtype_get(t->dtype)->bits == 8);
        CHECK((t->parts[0].data != NULL) == in_place);
    }
}

static void every_good_file_reads_to_the_bytes_its_writer_saw(void)
{
    CHECK(each_row(GOOD ".tsv", check_good_row) > 1000);
    close_golden();
}

static void check_is_whole(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    CHECK(walk_bytes(bytes, n, NULL) == TN_OK);
    CHECK(walk_bytes(bytes, n, "ztensor") == TN_OK);
}

static size_t rows_of_file;
static const char *file_sought;

static void count_row(char *field[TABLE_FIELDS], size_t n)
{
    (void)n;
    rows_of_file += strcmp(field[0], file_sought) == 0;
}

static void check_is_in_good_table(const char *name, const uint8_t *bytes, size_t n)
{
    (void)bytes;
    (void)n;
    rows_of_file = 0;
    file_sought = name;
    each_row(GOOD ".tsv", count_row);
    if (!rows_of_file)
        fail_msg("%s is not in good.tsv", name);
}

static void every_good_file_is_in_the_table_and_keeps_every_promise(void)
{
    CHECK(each_file(GOOD, check_is_in_good_table) >= 13);
    each_file(GOOD, check_is_whole);
}

/* ---- edge files ---- */

/* "byte N: text", as the tool shows it. */
static void check_message(const char *file, const tn_error *err, const char *expected)
{
    char message[600];
    if (err->offset == TN_NO_OFFSET)
        snprintf(message, sizeof message, "%s", line_of(err));
    else
        snprintf(message, sizeof message, "byte %llu: %s", (unsigned long long)err->offset, said_of(err));
    if (strcmp(message, expected) != 0)
        fail_msg("%s:\nexpected %s\nfound    %s", file, expected, message);
}

static void check_refused(const char *file, tn_status status, const tn_error *err, const char *word,
                          const char *text)
{
    tn_status expected = strcmp(word, "truncated") == 0     ? TN_ERR_TRUNCATED
                         : strcmp(word, "unsupported") == 0 ? TN_ERR_UNSUPPORTED : TN_ERR_CORRUPT;
    if (status != expected)
        fail_msg("%s: expected %s, found status %d: %s", file, word, status, line_of(err));
    check_message(file, err, text);
}

static void check_listed(const char *file, const tn_file *f, const char *text)
{
    const tn_part *p = tn_file_tensor(f, 0)->parts;
    tn_error err = { .text = "" };
    uint8_t bytes[256];
    CHECK(p->nbytes <= sizeof bytes && p->data == NULL);
    CHECK(tn_part_read(f, p, bytes, p->nbytes, &err) == TN_ERR_UNSUPPORTED);
    check_message(file, &err, text);
    seen s = verify_file(f);
    CHECK(s.parts == 1);
    CHECK(s.verdict[0] == TN_VERDICT_UNREADABLE && s.why[0].text[0]);
    CHECK(tn_convert(f, "not-written.safetensors", NULL, NULL, &err) == TN_ERR_UNSUPPORTED);
}

static void check_opened(const char *file, const tn_file *f, const char *verdict, const char *text)
{
    if (strcmp(verdict, "empty") == 0) {
        bool has_index = strcmp(file, "empty_index_with_body.zt") == 0;         /* of one byte: an empty array */
        CHECK(tn_file_count(f) == 0 && verify_file(f).parts == 0);
        CHECK(has_index ? !tn_file_warning(f, 0) : strstr(tn_file_warning(f, 0), "a file that was cut") != NULL);
        return;
    }
    CHECK(tn_file_count(f) == 1);
    if (strcmp(verdict, "listed") == 0) {
        check_listed(file, f, text);
        return;
    }
    uint8_t *bytes = read_tensor(f, tn_file_tensor(f, 0));
    hex sha = sha256_of(bytes, tn_file_tensor(f, 0)->parts[0].nbytes);
    free(bytes);
    seen s = verify_file(f);
    if (strcmp(verdict, "reads") == 0 || strcmp(verdict, "checked") == 0) {
        assert_string_equal(sha.text, text);
        CHECK(s.verdict[0] == (verdict[0] == 'r' ? TN_VERDICT_NONE : TN_VERDICT_OK));
        return;
    }
    CHECK(s.verdict[0] == (strcmp(verdict, "verify-bad") == 0 ? TN_VERDICT_BAD : TN_VERDICT_NOT_CHECKED));
    check_message(file, &s.why[0], text);
}

static void check_edge_row(char *field[TABLE_FIELDS], size_t n)
{
    char path[PATH_MAX];
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    CHECK(n == 3);
    snprintf(path, sizeof path, "%s/%s", EDGE, field[0]);
    tn_status status = tn_open(path, NULL, &f, &err);
    if (strncmp(field[1], "refused-", 8) == 0) {
        check_refused(field[0], status, &err, field[1] + 8, field[2]);
        return;
    }
    if (status)
        fail_msg("%s: %s", field[0], line_of(&err));
    check_opened(field[0], f, field[1], field[2]);
    tn_close(f);
}

static size_t edge_files;

static void walk_edge(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    walk_bytes(bytes, n, NULL);
    walk_bytes(bytes, n, "ztensor");
    edge_files++;
}

static void every_edge_file_gets_the_decided_verdict(void)
{
    size_t rows = each_row(EDGE ".tsv", check_edge_row);
    each_file(EDGE, walk_edge);
    CHECK(rows == edge_files && rows >= 41);
}

/* ---- damage ---- */

enum { SMALL = 700, MEDIUM = 2900 };     /* bytes: mixed.zt and every edge file; all but two files */

static void walk_truncations(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    for (size_t cut = 0; n <= MEDIUM && cut < n; cut++) {
        uint8_t *copy = exact_copy(bytes, cut);
        CHECK(walk_bytes(copy, cut, "ztensor") != TN_OK || cut >= 16);
        if (cut <= 16)
            walk_bytes(copy, cut, NULL);
        free(copy);
    }
}

static void every_truncation_is_handled(void)
{
    each_file(GOOD, walk_truncations);
    each_file(EDGE, walk_truncations);
}

/* Where the index begins: its size is in the last eight bytes, and small here. */
static size_t index_of(const uint8_t *bytes, size_t n)
{
    size_t size = bytes[n - 8] + 256u * bytes[n - 7];
    CHECK(size < n - 16);
    return n - 8 - size;
}

static void walk_flipped(const uint8_t *bytes, size_t n, size_t at, uint8_t flip)
{
    uint8_t *copy = exact_copy(bytes, n);
    copy[at] ^= flip;
    walk_bytes(copy, n, "ztensor");
    free(copy);
}

/* Small files with each flip at each byte, larger ones with one flip at each byte of the index. */
static void walk_flips(const char *name, const uint8_t *bytes, size_t n)
{
    static const uint8_t flips[] = { 0xff, 0x01, 0x80 };
    (void)name;
    for (size_t at = 0; n <= SMALL && at < n; at++)
        for (size_t k = 0; k < 3; k++)
            walk_flipped(bytes, n, at, flips[k]);
    for (size_t at = n > SMALL && n <= MEDIUM ? index_of(bytes, n) : n; at < n; at++)
        walk_flipped(bytes, n, at, flips[at % 3]);
}

static void every_flipped_byte_of_a_good_file_is_handled(void)
{
    each_file(GOOD, walk_flips);
}

static void every_flipped_byte_of_an_edge_file_is_handled(void)
{
    each_file(EDGE, walk_flips);
}

/* A byte too few or too many moves everything behind it. */
static void walk_shifts(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    for (size_t at = 0; n <= SMALL && at < n; at++) {
        uint8_t *less = exact_copy(bytes, n - 1), *more = malloc(n + 1);
        assert_non_null(more);
        memcpy(less + at, bytes + at + 1, n - 1 - at);
        memcpy(more, bytes, at);
        more[at] = bytes[at];
        memcpy(more + at + 1, bytes + at, n - at);
        walk_bytes(less, n - 1, "ztensor");
        walk_bytes(more, n + 1, "ztensor");
        free(less);
        free(more);
    }
}

static void every_dropped_or_doubled_byte_is_handled(void)
{
    each_file(EDGE, walk_shifts);
}

typedef struct blame {
    const char *tensor;         /* the one that is damaged */
    size_t      bad, good;
} blame;

static void see_blame(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                      const tn_error *why)
{
    blame *b = context;
    (void)p;
    (void)why;
    REQUIRE((verdict == TN_VERDICT_BAD) == (strcmp(t->name, b->tensor) == 0));
    b->bad += verdict == TN_VERDICT_BAD;
    b->good += verdict != TN_VERDICT_BAD;
}

static void a_flipped_data_byte_is_found_by_its_checksum(void)
{
    static const struct { const char *tensor; size_t at, size; } stored[] = { { "z", 192, 33 },
                                                                              { "b", 256, 48 } };
    size_t n;
    uint8_t *bytes = load_file(GOOD "/mixed.zt", &n);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < stored[k].size; i++) {
            tn_file *f;
            blame b = { .tensor = stored[k].tensor };
            tn_verify_options options = { .size = sizeof options, .jobs = 1 + (unsigned)i % 3,
                                          .context = &b };
            bytes[stored[k].at + i] ^= 0x10;
            CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
            CHECK(tn_verify(f, &options, see_blame, NULL) == TN_OK);
            CHECK(b.bad == 1 && b.good == 3);
            tn_close(f);
            bytes[stored[k].at + i] ^= 0x10;
        }
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_good_file_reads_to_the_bytes_its_writer_saw),
        TEST(every_good_file_is_in_the_table_and_keeps_every_promise),
        TEST(every_edge_file_gets_the_decided_verdict),
        TEST(every_truncation_is_handled),
        TEST(every_flipped_byte_of_a_good_file_is_handled),
        TEST(every_flipped_byte_of_an_edge_file_is_handled),
        TEST(every_dropped_or_doubled_byte_is_handled),
        TEST(a_flipped_data_byte_is_found_by_its_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
