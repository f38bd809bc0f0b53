/* Parts window by window, and rows: the same bytes whichever way they are read. */
#include "support.h"

#include <zstd.h>

#include "bytes/checksum.h"
#include "store/stream.h"
#include "files.h"
#include "make.h"

enum { BIG = 600 * 1024 + 8 };      /* two windows and a piece */

static uint8_t *make_data(size_t n)
{
    uint8_t *data = malloc(n);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13 & (i / 1000 % 2 ? 0xff : 3));
    return data;
}

static tn_file *open_as(const char *name, tn_io io)
{
    tn_file *f;
    tn_open_options options = { .size = sizeof options, .io = io };
    CHECK(tn_open(in_folder(name).text, &options, &f, NULL) == TN_OK);
    return f;
}

/* All windows of bytes [from, from + n), one behind the other. */
static void check_windows(const tn_file *f, const tn_part *p, const uint8_t *data, uint64_t from, uint64_t n)
{
    tn_stream s = { 0 };
    uint64_t at = from;
    CHECK(tn_stream_open(&s, f, NULL, p, from, n, TN_CHECKSUM_NONE, NULL) == TN_OK);
    for (;;) {
        const uint8_t *bytes;
        size_t got;
        CHECK(tn_stream_next(&s, &bytes, &got, NULL) == TN_OK);
        if (!got)
            break;
        CHECK(got <= TN_WINDOW && got <= from + n - at);
        assert_memory_equal(bytes, data + at, got);
        at += got;
    }
    CHECK(at == from + n);
    tn_stream_free(&s);
}

static void windows_make_the_whole(void)
{
    static const tn_io ios[] = { TN_IO_MMAP, TN_IO_PREAD };
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    static const uint64_t ranges[][2] = { { 0, BIG }, { 0, 0 }, { BIG, 0 }, { 1, 7 }, { 262143, 2 },
                                          { 262144, 262144 },
                                          { 8, BIG - 8 } };
    uint8_t *data = make_data(BIG);
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { BIG }, .data = data };
    for (size_t e = 0; e < 2; e++) {
        write_file("w.zt", (tn_create_options){ .encoding = encodings[e], .replace = true }, &t, 1);
        for (size_t i = 0; i < 2; i++) {
            tn_file *f = open_as("w.zt", ios[i]);
            const tn_part *p = tn_file_find(f, "t")->parts;
            for (size_t k = 0; k < (e ? 1 : sizeof ranges / sizeof *ranges); k++)
                check_windows(f, p, data, ranges[k][0], ranges[k][1]);
            tn_close(f);
        }
    }
    free(data);
}

static void a_stream_is_used_again_for_another_part(void)
{
    uint8_t *data = make_data(BIG);
    const simple tensors[] = {
        { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { BIG }, .data = data },
        { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 1000 }, .data = data + 1000 },
        { .name = "c", .dtype = TN_UINT8, .rank = 1, .shape = { 0 } },
    };
    write_file("w.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_SHA256 },
               tensors, 3);
    tn_file *f = open_as("w.zt", TN_IO_AUTO);
    tn_stream s = { 0 };
    for (int round = 0; round < 6; round++) {
        const tn_tensor *t = tn_file_tensor(f, (size_t)round % 3);
        const uint8_t *bytes;
        size_t got;
        tn_digest digest;
        CHECK(tn_stream_open(&s, f, t, t->parts, 0, t->parts[0].nbytes, TN_CHECKSUM_SHA256, NULL) == TN_OK);
        if (round == 3)
            continue;           /* left in the middle */
        do
            CHECK(tn_stream_next(&s, &bytes, &got, NULL) == TN_OK);
        while (got);
        CHECK(tn_stream_digest(&s, &digest, NULL) == TN_OK);
        CHECK(tn_part_compare_digest(t, t->parts, &digest, NULL) == TN_OK);
    }
    tn_stream_free(&s);
    tn_close(f);
    free(data);
}

/* ---- rows ---- */

static void check_rows(const tn_file *f, const uint8_t *data, uint64_t rows, uint64_t row_bytes)
{
    const tn_part *p = tn_file_find(f, "t")->parts;
    uint8_t *buffer = malloc(rows * row_bytes);
    assert_non_null(buffer);
    for (uint64_t first = 0; first <= rows; first += 1 + first / 3) {
        for (uint64_t count = 0; count <= rows - first; count += 1 + count / 2) {
            tn_error err = { .text = "" };
            size_t n = (size_t)(count * row_bytes);
            if (tn_part_read_rows(f, p, first, count, buffer, n, &err))
                fail_msg("rows %d + %d: %s", (int)first, (int)count, line_of(&err));
            assert_memory_equal(buffer, data + first * row_bytes, n);
            CHECK(tn_part_read_rows(f, p, first, count, buffer, n + 1, NULL) == TN_ERR_ARGUMENT);
            CHECK(n == 0 || tn_part_read_rows(f, p, first, count, buffer, n - 1, NULL) == TN_ERR_ARGUMENT);
        }
        CHECK(tn_part_read_rows(f, p, first, rows - first + 1, buffer, 0, NULL) == TN_ERR_ARGUMENT);
    }
    free(buffer);
}

static void rows_are_the_bytes_of_the_first_dimension(void)
{
    static const tn_io ios[] = { TN_IO_MMAP, TN_IO_PREAD };
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    uint8_t *data = make_data(BIG);
    const simple t = { .name = "t", .dtype = TN_FLOAT16, .rank = 3, .shape = { 19, 2, BIG / 19 / 4 },
                       .data = data };
    for (size_t e = 0; e < 2; e++) {
        write_file("r.zt", (tn_create_options){ .encoding = encodings[e], .replace = true }, &t, 1);
        for (size_t i = 0; i < 2; i++) {
            tn_file *f = open_as("r.zt", ios[i]);
            check_rows(f, data, 19, (uint64_t)BIG / 19 / 4 * 4);
            tn_close(f);
        }
    }
    free(data);
}

static void rows_of_packed_types_must_be_whole_bytes(void)
{
    static const uint8_t data[] = { 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xe };
    const simple t = { .name = "t", .dtype = TN_INT4, .rank = 2, .shape = { 5, 3 }, .data = data };     /* 12 bits a row */
    uint8_t buffer[8];
    write_file("p.zt", (tn_create_options){ 0 }, &t, 1);
    tn_file *f = open_as("p.zt", TN_IO_AUTO);
    const tn_part *p = tn_file_find(f, "t")->parts;
    CHECK(tn_part_read_rows(f, p, 0, 2, buffer, 3, NULL) == TN_OK && memcmp(buffer, data, 3) == 0);
    CHECK(tn_part_read_rows(f, p, 2, 2, buffer, 3, NULL) == TN_OK && memcmp(buffer, data + 3, 3) == 0);
    CHECK(tn_part_read_rows(f, p, 4, 1, buffer, 2, NULL) == TN_OK && memcmp(buffer, data + 6, 2) == 0);
    CHECK(tn_part_read_rows(f, p, 2, 3, buffer, 5, NULL) == TN_OK && memcmp(buffer, data + 3, 5) == 0);
    CHECK(tn_part_read_rows(f, p, 0, 1, buffer, 2, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_part_read_rows(f, p, 1, 1, buffer, 2, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_part_read_rows(f, p, 1, 4, buffer, 6, NULL) == TN_ERR_ARGUMENT);
    tn_close(f);
}

static void rows_of_scalars_and_empty_tensors(void)
{
    const simple tensors[] = {
        { .name = "scalar", .dtype = TN_UINT32, .data = "abcd" },
        { .name = "none", .dtype = TN_UINT32, .rank = 2, .shape = { 0, INT64_MAX } },
        { .name = "empty rows", .dtype = TN_UINT32, .rank = 2, .shape = { INT64_MAX, 0 } },
    };
    uint8_t buffer[4];
    write_file("s.zt", (tn_create_options){ 0 }, tensors, 3);
    tn_file *f = open_as("s.zt", TN_IO_AUTO);
    const tn_part *scalar = tn_file_find(f, "scalar")->parts, *none = tn_file_find(f, "none")->parts;
    CHECK(tn_part_read_rows(f, scalar, 0, 1, buffer, 4, NULL) == TN_OK && memcmp(buffer, "abcd", 4) == 0);
    CHECK(tn_part_read_rows(f, scalar, 1, 0, buffer, 0, NULL) == TN_OK);
    CHECK(tn_part_read_rows(f, scalar, 0, 2, buffer, 8, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_part_read_rows(f, none, 0, 0, buffer, 0, NULL) == TN_OK);
    CHECK(tn_part_read_rows(f, none, 0, 1, buffer, 0, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_part_read_rows(f, tn_file_find(f, "empty rows")->parts, 5, INT64_MAX - 5, buffer, 0, NULL) ==
          TN_OK);
    tn_close(f);
}

/* ---- frames ---- */

/* A file of one uint8 tensor whose stored bytes are these. */
static void a_summary_needs_its_size(void)
{
    tn_part p = { .role = "data", .array = { .dtype = TN_UINT8 }, .nbytes = 1 };
    tn_stored_info info = { .bytes = 7 };
    CHECK(tn_part_stored(NULL, &p, &info) == TN_ERR_ARGUMENT && info.bytes == 7);
    info.size = offsetof(tn_stored_info, bytes);
    CHECK(tn_part_stored(NULL, &p, &info) == TN_ERR_ARGUMENT && info.bytes == 7);
    struct { tn_stored_info known; uint64_t later; } newer = { { .size = sizeof newer }, 5 };
    CHECK(tn_part_stored(NULL, &p, &newer.known) == TN_ERR_ARGUMENT);
    newer.later = 0;
    CHECK(tn_part_stored(NULL, &p, &newer.known) == TN_OK && newer.known.size == sizeof newer);
    info.size = sizeof info;
    CHECK(tn_part_stored(NULL, &p, &info) == TN_OK && info.bytes == 0 && info.extents == 0 && info.dense);
}

static tn_status read_frames(const uint8_t *stored, size_t size, uint8_t *out, size_t n)
{
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { (int64_t)size },
                       .data = stored };
    write_file("f.zt", (tn_create_options){ .replace = true }, &t, 1);
    tn_file *f = open_as("f.zt", TN_IO_PREAD);
    int64_t shape[] = { (int64_t)n };
    tn_part p = tn_file_find(f, "t")->parts[0];
    p.array.shape = shape;
    p.nbytes = n;
    tn_stored compressed = *p.stored;
    compressed.encoding = TN_ENCODING_ZSTD;
    p.stored = &compressed;
    p.data = NULL;
    tn_error err = { .text = "" };
    tn_status status = tn_part_read(f, &p, out, n, &err);
    CHECK(!status || err.text[0]);
    tn_close(f);
    return status;
}

static void several_frames_are_one_stream(void)
{
    uint8_t *data = make_data(BIG), *stored = malloc(BIG * 2), *out = malloc(BIG + 1);
    assert_non_null(stored);
    assert_non_null(out);
    size_t size = 0;
    for (size_t at = 0; at < BIG; at += 100000) {
        size_t n = BIG - at < 100000 ? BIG - at : 100000;
        size += ZSTD_compress(stored + size, BIG * 2 - size, data + at, n, 1);
        memcpy(stored + size, "\x50\x2a\x4d\x18\3\0\0\0abc", 11);      /* a frame to be skipped */
        size += 11;
    }
    CHECK(read_frames(stored, size, out, BIG) == TN_OK);
    assert_memory_equal(out, data, BIG);
    CHECK(read_frames(stored, size, out, BIG - 1) == TN_ERR_CORRUPT);
    CHECK(read_frames(stored, size, out, BIG + 1) == TN_ERR_CORRUPT);
    CHECK(read_frames(stored, size - 1, out, BIG) == TN_ERR_CORRUPT);
    CHECK(read_frames(stored, size - 12, out, BIG) == TN_ERR_CORRUPT);
    stored[size] = 0;
    CHECK(read_frames(stored, size + 1, out, BIG) == TN_ERR_CORRUPT);
    free(out);
    free(stored);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(windows_make_the_whole),
        IN_FOLDER(a_stream_is_used_again_for_another_part),
        IN_FOLDER(rows_are_the_bytes_of_the_first_dimension),
        IN_FOLDER(rows_of_packed_types_must_be_whole_bytes),
        IN_FOLDER(rows_of_scalars_and_empty_tensors),
        IN_FOLDER(several_frames_are_one_stream),
        TEST(a_summary_needs_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
