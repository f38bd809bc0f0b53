/* zTensor 0.1: what an index may say and what it may not, one thing at a time. */
#include "support.h"

#include "files.h"
#include "walk.h"
#include "zt_bytes.h"

static tn_file *open_good(zt_bytes *z)
{
    tn_file *f;
    tn_error err = { .text = "" };
    zt_end(z);
    CHECK(walk_bytes(z->file.data, z->file.size, NULL) == TN_OK);
    if (tn_open_memory(z->file.data, z->file.size, NULL, &f, &err))
        fail_msg("refused: %s", line_of(&err));
    return f;
}

static void close_good(tn_file *f, zt_bytes *z)
{
    tn_close(f);
    tn_buf_free(&z->file);
}

static void expect_refused(zt_bytes *z, tn_status status, const char *text)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    zt_end(z);
    tn_status found = tn_open_memory(z->file.data, z->file.size, NULL, &f, &err);
    if (found != status || !strstr(line_of(&err), text))
        fail_msg("expected status %d with \"%s\", found %d: %s", status, text, found, line_of(&err));
    CHECK(f == NULL && err.status == status && err.offset <= z->file.size);
    tn_buf_free(&z->file);
}

/* ---- fields ---- */

static void fields_may_come_in_any_order(void)
{
    int order[ZT_FIELDS] = { 0, 1, 2, 3, 4, 5 };
    for (int n = 0; n < 720; n++) {
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_put_map(&z.file, ZT_FIELDS);
        for (int i = 0, rest = n, left[ZT_FIELDS] = { 0, 1, 2, 3, 4, 5 }; i < ZT_FIELDS; i++) {
            int k = rest % (ZT_FIELDS - i);
            rest /= ZT_FIELDS - i;
            order[i] = left[k];
            memmove(left + k, left + k + 1, sizeof *left * (size_t)(ZT_FIELDS - i - k - 1));
            zt_field_put(&z, order[i], "t", 64, 4);
        }
        zt_end(&z);
        tn_file *f;
        CHECK(tn_open_memory(z.file.data, z.file.size, NULL, &f, NULL) == TN_OK);
        const tn_tensor *t = tn_file_find(f, "t");
        CHECK(t && t->dtype == TN_UINT8 && t->rank == 1 && t->shape[0] == 4);
        CHECK(memcmp(t->parts[0].data, "\1\2\3\4", 4) == 0);
        close_good(f, &z);
    }
}

static void a_missing_field_is_named(void)
{
    for (int missing = 0; missing < ZT_FIELDS; missing++) {
        char text[60];
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_put_map(&z.file, ZT_FIELDS - 1);
        for (int i = 0; i < ZT_FIELDS; i++)
            if (i != missing)
                zt_field_put(&z, i, "t", 64, 4);
        snprintf(text, sizeof text, "tensor %s: required field \"%s\" is missing",
                 missing ? "\"t\"" : "without a name", zt_field_names[missing]);
        expect_refused(&z, TN_ERR_CORRUPT, text);
    }
}

static void a_field_twice_is_refused(void)
{
    for (int twice = 0; twice < ZT_FIELDS; twice++) {
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_put_map(&z.file, ZT_FIELDS + 1);
        zt_fields(&z, "t", 64, 4);
        zt_field_put(&z, twice, "t", 64, 4);
        expect_refused(&z, TN_ERR_CORRUPT, "\": expected once but found it twice");
    }
    static const char *const optional[][2] = {
        { "layout", "dense" }, { "data_endianness", "little" }, { "checksum", "crc32c:0x00000000" },
    };
    for (int i = 0; i < 3; i++) {
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_put_map(&z.file, ZT_FIELDS + 2);
        zt_fields(&z, "t", 64, 4);
        zt_text_field(&z, optional[i][0], optional[i][1]);
        zt_text_field(&z, optional[i][0], optional[i][1]);
        expect_refused(&z, TN_ERR_CORRUPT, "\": expected once but found it twice");
    }
}

/* One item of each CBOR type, and what the reader calls it. */
static const struct { const char *bytes, *found; size_t n; } items[] = {
    { "\x07", "an integer", 1 },
    { "\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "an integer", 9 },
    { "\x26", "a negative integer", 1 },
    { "\x41\0", "bytes", 2 },
    { "\x5f\x41\0\xff", "bytes", 4 },
    { "\x61t", "text", 2 },
    { "\x7f\x61t\xff", "text", 4 },
    { "\x81\x04", "an array", 2 },
    { "\x9f\x04\xff", "an array", 3 },
    { "\xa0", "a map", 1 },
    { "\xbf\xff", "a map", 2 },
    { "\xf4", "false", 1 },
    { "\xf5", "true", 1 },
    { "\xf6", "null", 1 },
    { "\xf7", "a simple value", 1 },
    { "\xf9\x44\0", "a float", 3 },
    { "\xfa\x40\x80\0\0", "a float", 5 },
    { "\xfb\x40\x10\0\0\0\0\0\0", "a float", 9 },
    { "\xc1\x07", "an integer", 2 },        /* a tag says nothing about the type */
    { "\xc1\x61t", "text", 3 },
};

/* An entry whose field `wrong` has the item; in a shape, `inside` it. */
static zt_bytes entry_with_item(int wrong, size_t item, bool inside)
{
    zt_bytes z = zt_begin(4);
    tn_cbor_put_array(&z.file, 1);
    tn_cbor_put_map(&z.file, ZT_FIELDS);
    for (int i = 0; i < ZT_FIELDS; i++) {
        if (i != wrong) {
            zt_field_put(&z, i, "t", 64, 4);
            continue;
        }
        zt_text(&z, zt_field_names[i]);
        if (inside)
            tn_cbor_put_array(&z.file, 1);
        tn_buf_put(&z.file, items[item].bytes, items[item].n);
    }
    return z;
}

static void a_required_field_of_the_wrong_type_is_named(void)
{
    static const struct { const char *expected, *taken; bool inside; } fields[] = {
        { "text", "text", false }, { "an integer that is not negative", "an integer", false },
        { "an integer that is not negative", "an integer", false }, { "text", "text", false },
        { "an array", "an array", false }, { "text", "text", false },
        { "an integer that is not negative", "an integer", true },      /* a dimension of the shape */
    };
    size_t refused = 0;
    for (int k = 0; k < ZT_FIELDS + 1; k++)
        for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
            int field = fields[k].inside ? 4 : k;
            char text[160];
            if (strcmp(items[i].found, fields[k].taken) == 0)
                continue;
            zt_bytes z = entry_with_item(field, i, fields[k].inside);
            snprintf(text, sizeof text, "index entry 0%s: field \"%s\": expected %s but found %s",
                     field ? ", \"t\"" : "",
                     zt_field_names[field], fields[k].expected, items[i].found);
            expect_refused(&z, TN_ERR_CORRUPT, text);
            refused++;
        }
    CHECK(refused == 3 * 17 + 3 * 17 + 18);
}

static void a_custom_field_twice_is_refused(void)
{
    zt_bytes z = zt_begin(4);
    tn_cbor_put_array(&z.file, 1);
    tn_cbor_put_map(&z.file, ZT_FIELDS + 2);
    zt_fields(&z, "t", 64, 4);
    zt_text_field(&z, "author", "a");
    zt_text_field(&z, "author", "b");
    expect_refused(&z, TN_ERR_CORRUPT, "metadata key \"author\" is there twice");
}

static void unknown_fields_become_metadata_in_their_order(void)
{
    zt_bytes z = zt_begin(4);
    tn_cbor_put_array(&z.file, 1);
    tn_cbor_put_map(&z.file, ZT_FIELDS + 3);
    zt_text_field(&z, "zeta", "first");
    zt_fields(&z, "t", 64, 4);
    zt_uint_field(&z, "", 7);
    zt_text_field(&z, "Name", "case matters");
    tn_file *f = open_good(&z);
    const tn_tensor *t = tn_file_find(f, "t");
    CHECK(t->nmeta == 3);
    CHECK(strcmp(t->meta[0].key, "zeta") == 0 && strcmp(t->meta[0].text, "first") == 0);
    CHECK(strcmp(t->meta[1].key, "") == 0 && t->meta[1].cbor_size == 1 && t->meta[1].cbor[0] == 7);
    CHECK(strcmp(t->meta[2].key, "Name") == 0);
    close_good(f, &z);
}

/* ---- CBOR in all its spellings ---- */

static void indefinite_lengths_are_read(void)
{
    static const char index[] = "\xd9\xd9\xf7" "\x9f" "\xbf"        /* self-described; array; map */
        "\x7f" "\x62" "na" "\x62" "me" "\xff" "\x7f" "\x61" "t" "\x60" "\x61" "u" "\xff"
        "\x66" "offset" "\x1b\0\0\0\0\0\0\0\x40"                    /* longer than needed */
        "\x64" "size" "\x19\0\x04"
        "\x65" "dtype" "\x7f" "\x65" "uint8" "\xff"
        "\x65" "shape" "\x9f" "\x02" "\x18\x02" "\xff"
        "\x68" "encoding" "\xc6" "\x63" "raw"                       /* a tag nobody knows */
        "\x65" "extra" "\xbf" "\x9f\xff" "\x5f\x41\0\xff" "\xff"
        "\xff" "\xff";
    zt_bytes z = zt_begin(4);
    tn_buf_put(&z.file, index, sizeof index - 1);
    tn_file *f = open_good(&z);
    const tn_tensor *t = tn_file_find(f, "tu");
    CHECK(t && t->dtype == TN_UINT8 && t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 2);
    CHECK(t->nmeta == 1 && t->meta[0].cbor_size == 8);
    close_good(f, &z);
}

static void counts_that_cannot_be_are_refused_at_once(void)
{
    static const struct { const char *index; size_t n; tn_status status; } cases[] = {
        { "\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 9, TN_ERR_TRUNCATED },    /* 2^64 - 1 tensors */
        { "\x9b\x10\0\0\0\0\0\0\0", 9, TN_ERR_TRUNCATED },
        { "\x81\xbb\x80\0\0\0\0\0\0\0", 10, TN_ERR_TRUNCATED },             /* a map of 2^63 fields */
        { "\x81\xa1\x7b\xff\xff\xff\xff\xff\xff\xff\xff", 11, TN_ERR_TRUNCATED },
        { "\x9f\x9f\xff", 3, TN_ERR_CORRUPT },
        { "\xff", 1, TN_ERR_CORRUPT },
        { "\x9f", 1, TN_ERR_TRUNCATED },
        { "\x81", 1, TN_ERR_TRUNCATED },
        { "\x81\xf6", 2, TN_ERR_CORRUPT },
        { "\xf6", 1, TN_ERR_CORRUPT },
        { "\x1c", 1, TN_ERR_CORRUPT },                                      /* reserved */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_file *f;
        tn_error err = { .text = "" };
        zt_bytes z = zt_begin(0);
        tn_buf_put(&z.file, cases[i].index, cases[i].n);
        zt_end(&z);
        tn_status status = tn_open_memory(z.file.data, z.file.size, NULL, &f, &err);
        if (status != cases[i].status)
            fail_msg("case %zu: expected status %d, found %d: %s", i, cases[i].status, status, line_of(&err));
        tn_buf_free(&z.file);
    }
}

static void nesting_has_an_end(void)
{
    static const int depths[] = { 1, 20, 60, 62, 63, 64, 73, 1000, 100000 };
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_put_map(&z.file, ZT_FIELDS + 1);
        zt_fields(&z, "t", 64, 4);
        zt_text(&z, "deep");
        tn_buf_fill(&z.file, 0x81, (size_t)depths[i]);
        tn_buf_putc(&z.file, 0);
        if (depths[i] <= 60)
            close_good(open_good(&z), &z);
        else if (depths[i] >= 73)
            expect_refused(&z, TN_ERR_LIMIT, "");
        else
            tn_buf_free(&z.file);
    }
}

static void texts_are_utf8_without_nul(void)
{
    static const struct { const char *name; size_t n; bool good; } cases[] = {
        { "w\xc3\xa4", 3, true }, { "\xf0\x9f\x99\x82", 4, true }, { "a\nb", 3, true }, { "a\0b", 3, false },
        { "\xff", 1, false }, { "\xc3", 1, false }, { "\xed\xa0\x80", 3, false }, { "\xc0\x80", 2, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_put_map(&z.file, ZT_FIELDS);
        zt_text(&z, "name");
        tn_cbor_put_text(&z.file, cases[i].name, cases[i].n);
        for (int k = 1; k < ZT_FIELDS; k++)
            zt_field_put(&z, k, "", 64, 4);
        if (cases[i].good)
            close_good(open_good(&z), &z);
        else
            expect_refused(&z, TN_ERR_CORRUPT, "");
    }
}

/* ---- sizes and places ---- */

/* One entry of a type, shape and size; the data section has 256 bytes. */
static zt_bytes one_entry(const char *dtype, uint32_t rank, const uint64_t *shape, uint64_t size,
                          const char *encoding)
{
    zt_bytes z = zt_begin(256);
    tn_cbor_put_array(&z.file, 1);
    tn_cbor_put_map(&z.file, ZT_FIELDS);
    zt_text_field(&z, "name", "t");
    zt_uint_field(&z, "offset", 64);
    zt_uint_field(&z, "size", size);
    zt_text_field(&z, "dtype", dtype);
    zt_text(&z, "shape");
    tn_cbor_put_array(&z.file, rank);
    for (uint32_t i = 0; i < rank; i++)
        tn_cbor_put_u64(&z.file, shape[i]);
    zt_text_field(&z, "encoding", encoding);
    return z;
}

static void shapes_that_overflow_are_refused(void)
{
    static const uint64_t big = UINT64_C(1) << 63, half = UINT64_C(1) << 32;
    const uint64_t shapes[][3] = {
        { big, 2, 1 }, { UINT64_MAX, 1, 1 }, { half, half, 1 }, { half, half / 2, 1 }, { INT64_MAX, 1, 1 },
        { UINT64_C(1) << 60, 1, 1 }, { UINT64_C(1) << 21, UINT64_C(1) << 21, UINT64_C(1) << 21 },
    };
    static const char *const encodings[] = { "raw", "zstd" };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t k = 0; k < 2; k++) {
            zt_bytes z = one_entry("float64", 3, shapes[i], 0, encodings[k]);
            expect_refused(&z, TN_ERR_LIMIT, "");
        }
    }
    const uint64_t empty[] = { INT64_MAX, 0, INT64_MAX };
    zt_bytes z = one_entry("float64", 3, empty, 0, "raw");
    tn_file *f = open_good(&z);
    CHECK(tn_file_find(f, "t")->parts[0].nbytes == 0);
    close_good(f, &z);
}

static void ranks_end_at_64(void)
{
    uint64_t ones[66];
    for (int i = 0; i < 66; i++)
        ones[i] = 1;
    zt_bytes most = one_entry("uint8", 64, ones, 1, "raw");
    tn_file *f = open_good(&most);
    CHECK(tn_file_find(f, "t")->rank == 64);
    close_good(f, &most);
    for (uint32_t rank = 65; rank < 67; rank++) {
        zt_bytes z = one_entry("uint8", rank, ones, 1, "raw");
        expect_refused(&z, TN_ERR_LIMIT, "at most 64 dimensions");
    }
}

static void raw_sizes_must_be_those_of_the_shape(void)
{
    const uint64_t shape[] = { 3, 5 };
    for (uint64_t size = 0; size < 70; size++) {
        zt_bytes z = one_entry("float32", 2, shape, size, "raw");
        if (size == 60)
            close_good(open_good(&z), &z);
        else
            expect_refused(&z, TN_ERR_CORRUPT, "shape and type take 60 bytes");
    }
}

static void data_stays_between_the_magic_and_the_index(void)
{
    static const struct { uint64_t offset, size; bool good; } cases[] = {       /* the index begins at 192 */
        { 64, 128, true }, { 128, 64, true }, { 192, 0, true }, { 64, 0, true }, { 64, 129, false },
        { 128, 65, false },
        { 192, 1, false }, { 256, 0, false }, { 0, 0, false }, { 0, 8, false }, { 8, 4, false },
        { 65, 4, false },
        { 96, 4, false }, { UINT64_C(1) << 40, 4, false }, { -UINT64_C(64), 64, false },
        { -UINT64_C(64), 128, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zt_bytes z = zt_begin(128);
        tn_cbor_put_array(&z.file, 1);
        zt_entry(&z, "t", cases[i].offset, cases[i].size);
        if (cases[i].good)
            close_good(open_good(&z), &z);
        else
            expect_refused(&z, TN_ERR_CORRUPT, "tensor \"t\"");
    }
    static const uint64_t four = 4, sizes[] = { 257, UINT64_C(1) << 40, INT64_MAX, -UINT64_C(64),
                                                UINT64_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        zt_bytes z = one_entry("uint8", 1, &four, sizes[i], "zstd");
        expect_refused(&z, TN_ERR_CORRUPT, "runs past the start of the index at 320");
    }
}

typedef struct layout {
    uint64_t    range[3][2];        /* offset, size; the index begins at 320 */
    const char *wrong;              /* NULL: accepted */
    const char *tied;               /* which tensors are tied to an earlier one */
} layout;

static void ranges_are_apart_or_the_same(void)
{
    static const layout cases[] = {
        { { { 64, 64 }, { 128, 64 }, { 192, 128 } }, NULL, "" },
        { { { 192, 128 }, { 64, 64 }, { 128, 64 } }, NULL, "" },
        { { { 64, 64 }, { 192, 1 }, { 128, 2 } }, NULL, "" },
        { { { 64, 64 }, { 64, 64 }, { 128, 64 } }, NULL, "b" },
        { { { 128, 64 }, { 64, 64 }, { 128, 64 } }, NULL, "c" },
        { { { 64, 64 }, { 64, 64 }, { 64, 64 } }, NULL, "bc" },
        { { { 64, 0 }, { 64, 64 }, { 64, 0 } }, NULL, "" },
        { { { 64, 128 }, { 128, 0 }, { 320, 0 } }, NULL, "" },
        { { { 64, 128 }, { 128, 64 }, { 192, 0 } },
          "\"b\": its data at 128 overlaps that of \"a\", which ends at 192", "" },
        { { { 128, 64 }, { 64, 65 }, { 192, 0 } },
          "\"a\": its data at 128 overlaps that of \"b\", which ends at 129", "" },
        { { { 64, 64 }, { 64, 63 }, { 192, 0 } }, "overlaps", "" },
        { { { 64, 256 }, { 256, 64 }, { 128, 64 } }, "overlaps", "" },
        { { { 64, 64 }, { 64, 64 }, { 64, 65 } }, "overlaps", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const names[] = { "a", "b", "c" };
        zt_bytes z = zt_begin(256);
        tn_cbor_put_array(&z.file, 3);
        for (int k = 0; k < 3; k++)
            zt_entry(&z, names[k], cases[i].range[k][0], cases[i].range[k][1]);
        if (cases[i].wrong) {
            expect_refused(&z, TN_ERR_CORRUPT, cases[i].wrong);
            continue;
        }
        tn_file *f = open_good(&z);
        for (int k = 0; k < 3; k++) {
            const char *tied = tn_file_find(f, names[k])->tied;
            CHECK((tied != NULL) == (strchr(cases[i].tied, names[k][0]) != NULL));
            CHECK(!tied || strcmp(tied, "a") == 0);
        }
        close_good(f, &z);
    }
}

static void compressed_data_must_decode_to_the_shape(void)
{
    /* The frame of endian_on_zstd_ignored.zt: four bytes, 01 02 03 04. */
    size_t n;
    uint8_t *golden = load_file(TEST_GOLDEN "/ztensor/edge/endian_on_zstd_ignored.zt", &n);
    for (uint64_t count = 0; count < 8; count++) {
        for (uint64_t size = 0; size <= 14; size++) {
            zt_bytes z = one_entry("uint8", 1, &count, size, "zstd");
            memcpy(z.file.data + 64, golden + 64, 13);
            tn_file *f = open_good(&z);
            uint8_t bytes[8];
            tn_error err = { .text = "" };
            tn_status status = tn_part_read(f, tn_file_find(f, "t")->parts, bytes, count, &err);
            if ((status == TN_OK) != (count == 4 && size == 13) || (status && status != TN_ERR_CORRUPT))
                fail_msg("%d elements, %d bytes: status %d: %s", (int)count, (int)size, status, line_of(&err));
            close_good(f, &z);
        }
    }
    free(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fields_may_come_in_any_order),
        TEST(a_missing_field_is_named),
        TEST(a_field_twice_is_refused),
        TEST(a_required_field_of_the_wrong_type_is_named),
        TEST(a_custom_field_twice_is_refused),
        TEST(unknown_fields_become_metadata_in_their_order),
        TEST(indefinite_lengths_are_read),
        TEST(counts_that_cannot_be_are_refused_at_once),
        TEST(nesting_has_an_end),
        TEST(texts_are_utf8_without_nul),
        TEST(shapes_that_overflow_are_refused),
        TEST(ranks_end_at_64),
        TEST(raw_sizes_must_be_those_of_the_shape),
        TEST(data_stays_between_the_magic_and_the_index),
        TEST(ranges_are_apart_or_the_same),
        TEST(compressed_data_must_decode_to_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
