/* IDX: headers of every kind, well formed and not.  It is read only. */
#include "support.h"
#include "stored.h"

#include "files.h"
#include "make.h"

#include "store/format.h"

#define GOLDEN TEST_GOLDEN "/idx"

/* ---- files by hand ---- */

enum { MOST_DIMS = 255 };

typedef struct idx {
    uint8_t bytes[4 + 4 * MOST_DIMS + 64];
    size_t  n;
} idx;

/* A file of this type and shape, whose elements are the bytes 1, 2, 3 ... */
static idx make_idx(uint8_t type, size_t rank, const uint32_t *shape, size_t n)
{
    idx f = { .bytes = { 0, 0, type, (uint8_t)rank }, .n = 4 };
    for (size_t i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            f.bytes[f.n++] = (uint8_t)(shape[i] >> shift);
    CHECK(n <= sizeof f.bytes - f.n);
    for (size_t i = 0; i < n; i++)
        f.bytes[f.n++] = (uint8_t)(i + 1);
    return f;
}

static idx sample(void)
{
    return make_idx(0x0b, 2, (uint32_t[]){ 2, 3 }, 12);
}

static const tn_open_options as_idx = { .size = sizeof as_idx, .format = "idx" };

static tn_file *open_idx(const idx *f)
{
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    if (tn_open_memory(f->bytes, f->n, &as_idx, &file, &err))
        fail_msg("%s", line_of(&err));
    walk_file(file);
    assert_string_equal(tn_file_format(file), "idx");
    CHECK(tn_file_count(file) == 1 && !tn_file_warning(file, 0));
    return file;
}

static void check_refused(const idx *f, tn_status expected, uint64_t at, const char *text)
{
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    uint8_t *copy = exact_copy(f->bytes, f->n);
    tn_status status = tn_open_memory(copy, f->n, &as_idx, &file, &err);
    if (!status)
        tn_close(file);
    if (status != expected || err.offset != at || strcmp(said_of(&err), text) != 0)
        fail_msg("expected %d at %llu \"%s\"\nfound    %d at %llu \"%s\"", (int)expected,
                 (unsigned long long)at, text, (int)status, (unsigned long long)err.offset, line_of(&err));
    CHECK(tn_open_memory(copy, f->n, &as_idx, &file, NULL) == expected);
    free(copy);
}

/* ---- reading ---- */

static void check_golden(char *field[TABLE_FIELDS], size_t n)
{
    static const tn_io ways[] = { TN_IO_AUTO, TN_IO_PREAD };
    CHECK(n == 5);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        tn_file *f = open_at(GOLDEN, field[0], "idx", ways[i]);
        walk_file(f);
        assert_string_equal(stored_info(&check_listed_tensor(f, field)->parts[0]).type, field[2]);
        tn_close(f);
    }
}

static void files_of_every_type_are_read(void)
{
    CHECK(each_row(GOLDEN "/arrays.tsv", check_golden) == 9);
}

static void every_type_has_one_code(void)
{
    static const tn_dtype types[] = { [0x08] = TN_UINT8, [0x09] = TN_INT8, [0x0b] = TN_INT16,
                                      [0x0c] = TN_INT32,
                                      [0x0d] = TN_FLOAT32, [0x0e] = TN_FLOAT64 };
    for (unsigned code = 0; code < 256; code++) {
        tn_dtype dtype = code < sizeof types / sizeof *types ? types[code] : TN_UNKNOWN;
        size_t bytes = dtype == TN_UNKNOWN ? 1 : tn_dtype_get(dtype)->bits / 8u;
        idx f = make_idx((uint8_t)code, 1, (uint32_t[]){ 3 }, 3 * bytes);
        if (dtype == TN_UNKNOWN) {
            char text[100];
            snprintf(text, sizeof text, "expected type 0x08, 0x09, 0x0b, 0x0c, 0x0d or 0x0e but found 0x%02x",
                     code);
            check_refused(&f, TN_ERR_CORRUPT, 2, text);
            continue;
        }
        tn_file *file = open_idx(&f);
        const tn_part *p = tn_file_tensor(file, 0)->parts;
        CHECK(p->array.dtype == dtype && p->array.shape[0] == 3 && stored_info(p).order == TN_BIG_ENDIAN);
        tn_close(file);
    }
}

static void bytes_are_seen_in_place_and_wider_numbers_turned(void)
{
    static const uint8_t turned[] = { 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11 };
    uint8_t found[sizeof turned];
    idx bytes = make_idx(0x08, 2, (uint32_t[]){ 2, 3 }, 6), numbers = sample();
    tn_file *file = open_idx(&bytes);
    CHECK(tn_file_tensor(file, 0)->parts->data == bytes.bytes + 12);
    tn_close(file);
    file = open_idx(&numbers);
    const tn_part *p = tn_file_tensor(file, 0)->parts;
    CHECK(!p->data && tn_part_read(file, p, found, sizeof found, NULL) == TN_OK &&
          memcmp(found, turned, sizeof found) == 0);
    tn_close(file);
}

static void every_rank_up_to_64_is_read(void)
{
    uint32_t shape[MOST_DIMS];
    for (size_t i = 0; i < MOST_DIMS; i++)
        shape[i] = i < 3 ? (uint32_t)i + 2 : 1;
    for (size_t rank = 0; rank <= MOST_DIMS; rank++) {
        size_t count = rank == 0 ? 1 : rank == 1 ? 2 : rank == 2 ? 6 : 24;
        idx f = make_idx(0x09, rank, shape, count);
        if (rank > TN_MAX_RANK) {
            char text[100];
            snprintf(text, sizeof text, "expected at most 64 dimensions but found %zu", rank);
            check_refused(&f, TN_ERR_LIMIT, 3, text);
            continue;
        }
        tn_file *file = open_idx(&f);
        const tn_tensor *t = tn_file_tensor(file, 0);
        CHECK(t->rank == rank && t->parts[0].nbytes == count);
        CHECK(stored_info(&t->parts[0]).offset == 4 + 4 * rank);
        for (size_t i = 0; i < rank; i++)
            CHECK(t->shape[i] == shape[i]);
        tn_close(file);
    }
}

static void a_dimension_of_0_leaves_no_elements(void)
{
    idx f = make_idx(0x0e, 3, (uint32_t[]){ UINT32_MAX, 0, UINT32_MAX }, 0);
    tn_file *file = open_idx(&f);
    CHECK(tn_file_tensor(file, 0)->shape[2] == UINT32_MAX && tn_file_tensor(file, 0)->parts->nbytes == 0);
    tn_close(file);
    f = make_idx(0x0e, 3, (uint32_t[]){ UINT32_MAX, 0, UINT32_MAX }, 1);
    check_refused(&f, TN_ERR_CORRUPT, 16,
                  "tensor \"tensor\": shape [4294967295, 0, 4294967295] of float64 takes 0 bytes but 1 "
                  "follow the IDX header");
}

static void the_tensor_is_called_after_the_file(void)
{
    static const struct { const char *file, *name; } names[] = {
        { "a.idx", "a" }, { "a.b.idx", "a.b" }, { "t-images-idx3-ubyte", "t-images" },
        { "t-images.idx3-ubyte", "t-images" },
        { "labels.idx1-int", "labels" }, { "big-idx12-float", "big" }, { "a.idx-idx3-ubyte", "a.idx" },
        { "a-idx3-ubyte.idx", "a-idx3-ubyte" },
        { "plain", "plain" }, { "a.bin", "a.bin" }, { "a-idx-ubyte", "a-idx-ubyte" }, { "a-idx3", "a-idx3" },
        { "a-idx3-", "a-idx3-" },
        { "a-idx3-ubyte2", "a-idx3-ubyte2" }, { "aidx3-ubyte", "aidx3-ubyte" }, { "a.idx.", "a.idx." },
        { ".idx", ".idx" },
        { "-idx3-ubyte", "-idx3-ubyte" }, { "a-id", "a-id" }, { "a-", "a-" },
    };
    idx f = sample();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put_bytes(names[i].file, f.bytes, f.n);
        tn_file *file = NULL;
        CHECK(tn_open(in_folder(names[i].file).text, &as_idx, &file, NULL) == TN_OK);
        assert_string_equal(tn_file_tensor(file, 0)->name, names[i].name);
        tn_close(file);
    }
}

/* ---- recognising ---- */

static void it_is_read_when_it_is_asked_for(void)
{
    idx f = sample();
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    CHECK(!tn_format_probe(f.bytes, f.n));
    CHECK(tn_open_memory(f.bytes, f.n, NULL, &file, &err) == TN_ERR_UNSUPPORTED);
}

/* ---- what is refused ---- */

static void the_first_two_bytes_are_0(void)
{
    idx f = sample();
    f.bytes[0] = 0x93;
    check_refused(&f, TN_ERR_CORRUPT, 0, "expected two bytes of 0 but found 0x93 0x00");
    f.bytes[0] = 0;
    f.bytes[1] = 1;
    check_refused(&f, TN_ERR_CORRUPT, 1, "expected two bytes of 0 but found 0x00 0x01");
}

static void a_cut_header_is_refused(void)
{
    idx f = sample();
    f.n = 0;
    check_refused(&f, TN_ERR_TRUNCATED, 0, "expected an IDX header of 4 bytes but the file has 0");
    f.n = 3;
    check_refused(&f, TN_ERR_TRUNCATED, 3, "expected an IDX header of 4 bytes but the file has 3");
    f.n = 11;
    check_refused(&f, TN_ERR_TRUNCATED, 11, "expected an IDX header of 12 bytes but the file has 11");
}

static void the_size_fits_to_the_byte(void)
{
    idx f = sample();
    f.n = 23;
    check_refused(&f, TN_ERR_TRUNCATED, 23,
                  "tensor \"tensor\": shape [2, 3] of int16 takes 12 bytes but 11 follow the IDX header");
    f.n = 25;
    check_refused(&f, TN_ERR_CORRUPT, 24,
                  "tensor \"tensor\": shape [2, 3] of int16 takes 12 bytes but 13 follow the IDX header");
}

static void sizes_that_no_number_holds_are_refused(void)
{
    static const struct {
        uint8_t type;
        size_t rank;
        uint32_t shape[TN_MAX_RANK];
        tn_status status;
    } sizes[] = {
        /* 2^64 less a little */
        { 0x08, 2, { UINT32_MAX, UINT32_MAX }, TN_ERR_LIMIT },
        { 0x08, 2, { UINT32_C(1) << 31, UINT32_MAX }, TN_ERR_TRUNCATED }, /* 2^63 less a
                                                                           * little */
        { 0x08, 2, { UINT32_C(1) << 31, UINT32_C(1) << 31 }, TN_ERR_TRUNCATED },
        { 0x0b, 2, { UINT32_C(1) << 31, UINT32_C(1) << 31 }, TN_ERR_LIMIT }, /* 2^63 */
        /* 2^64: in 64 bits 0 */
        { 0x0d, 2, { UINT32_C(1) << 31, UINT32_C(1) << 31 }, TN_ERR_LIMIT },
        { 0x08, 4, { 65536, 65536, 65536, 65536 }, TN_ERR_LIMIT },
        { 0x0e, 3, { UINT32_C(1) << 31, UINT32_C(1) << 31, 4 }, TN_ERR_LIMIT },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_error err;
        tn_file *file;
        idx f = make_idx(sizes[i].type, sizes[i].rank, sizes[i].shape, 0);
        CHECK(tn_open_memory(f.bytes, f.n, &as_idx, &file, &err) == sizes[i].status);
        CHECK(err.offset == (sizes[i].status == TN_ERR_LIMIT ? 4 : f.n));
    }
    uint32_t all[TN_MAX_RANK];
    memset(all, 0xff, sizeof all);
    idx f = make_idx(0x0e, TN_MAX_RANK, all, 0);
    check_refused(
        &f, TN_ERR_LIMIT, 4,
        "tensor \"tensor\": shape [4294967295, 4294967295, 4294967295, 4294967295, 4294967295, ...] of "
        "float64 takes 2^63 bytes or more");
}

static void every_truncation_is_refused(void)
{
    idx f = sample();
    for (size_t n = 0; n <= f.n; n++) {
        uint8_t *copy = exact_copy(f.bytes, n);
        CHECK((walk_bytes(copy, n, "idx") == TN_OK) == (n == f.n));
        free(copy);
    }
}

static void a_flipped_byte_in_the_header_is_refused(void)
{
    idx f = sample();
    for (size_t i = 0; i < f.n; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t *copy = exact_copy(f.bytes, f.n);
            copy[i] ^= (uint8_t)(1u << bit);
            CHECK((walk_bytes(copy, f.n, "idx") == TN_OK) == (i >= 12));        /* the elements may be anything */
            free(copy);
        }
        uint8_t *copy = exact_copy(f.bytes, f.n - 1);
        memcpy(copy + i, f.bytes + i + 1, f.n - 1 - i);
        CHECK(walk_bytes(copy, f.n - 1, "idx") != TN_OK);
        free(copy);
    }
}

/* ---- writing ---- */

static void it_is_not_written(void)
{
    static const uint8_t data[] = { 1, 2 };
    simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 2 }, .data = data };
    tn_error err = { .text = "" };
    CHECK(try_write("a.idx", (tn_create_options){ 0 }, &s, 1, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "idx cannot be written");
    CHECK(count_entries(folder) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_of_every_type_are_read),
        TEST(every_type_has_one_code),
        TEST(bytes_are_seen_in_place_and_wider_numbers_turned),
        TEST(every_rank_up_to_64_is_read),
        TEST(a_dimension_of_0_leaves_no_elements),
        IN_FOLDER(the_tensor_is_called_after_the_file),
        TEST(it_is_read_when_it_is_asked_for),
        TEST(the_first_two_bytes_are_0),
        TEST(a_cut_header_is_refused),
        TEST(the_size_fits_to_the_byte),
        TEST(sizes_that_no_number_holds_are_refused),
        TEST(every_truncation_is_refused),
        TEST(a_flipped_byte_in_the_header_is_refused),
        IN_FOLDER(it_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
