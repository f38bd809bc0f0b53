/* zTensor 0.1: what is written, to the byte. */
#include "support.h"
#include "format_option.h"
#include "stored.h"

#include <zstd.h>

#include "files.h"
#include "folder.h"
#include "make.h"
#include "walk.h"

/* The data section is zeroes but for what `data` says from byte 64 on; then comes the index and its size. */
static void check_bytes(const char *name, const void *data, size_t data_size, const void *index,
                        size_t index_size)
{
    static const uint8_t zeroes[56];
    size_t n, at = data_size ? 64 + data_size : 8;
    uint8_t *bytes = load_file(in_folder(name).text, &n);
    CHECK(n == at + index_size + 8);
    assert_memory_equal(bytes, "ZTEN0001", 8);
    if (data_size) {
        assert_memory_equal(bytes + 8, zeroes, 56);
        assert_memory_equal(bytes + 64, data, data_size);
    }
    assert_memory_equal(bytes + at, index, index_size);
    for (int i = 0; i < 8; i++)
        CHECK(bytes[at + index_size + (size_t)i] == (uint8_t)(index_size >> 8 * i));
    free(bytes);
}

/* ---- to the byte ---- */

static void a_file_without_tensors_has_17_bytes(void)
{
    static const uint8_t expected[17] = { 'Z', 'T', 'E', 'N', '0', '0', '0', '1', 0x80, 1 };
    size_t n;
    write_file("empty.zt", (tn_create_options){ 0 }, NULL, 0);
    uint8_t *bytes = load_file(in_folder("empty.zt").text, &n);
    CHECK(n == sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);
    free(bytes);
}

static void one_small_tensor_is_written_as_the_specification_says(void)
{
    static const char index[] = "\x81\xbf" "\x64" "name" "\x61" "t" "\x66" "offset" "\x18\x40" "\x64" "size"
    "\x04"
        "\x65" "dtype" "\x65" "uint8" "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x81\x04"
        "\x68" "encoding" "\x63" "raw"
        "\xff";
    static const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = "\1\2\3\4" };
    write_file("one.zt", (tn_create_options){ 0 }, &t, 1);
    check_bytes("one.zt", "\1\2\3\4", 4, index, sizeof index - 1);
}

static void checksums_stand_behind_the_encoding(void)
{
    static const char crc[] = "\x81\xbf" "\x64" "name" "\x61" "t" "\x66" "offset" "\x18\x40" "\x64" "size"
    "\x04"
        "\x65" "dtype" "\x65" "uint8" "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x81\x04"
        "\x68" "encoding" "\x63" "raw"
        "\x68" "checksum" "\x71" "crc32c:0x29308CF4" "\xff";
    static const char sha[] = "\x81\xbf" "\x64" "name" "\x61" "t" "\x66" "offset" "\x18\x40" "\x64" "size"
    "\x04"
        "\x65" "dtype" "\x65" "uint8" "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x81\x04"
        "\x68" "encoding" "\x63" "raw"
        "\x68" "checksum" "\x78\x47" "sha256:9f64a747e1b97f131fabb6b447296c9b6f0201e79fb3c5356e6c77e89b6a806a"
        "\xff";
    static const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = "\1\2\3\4" };
    write_file("crc.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, &t, 1);
    check_bytes("crc.zt", "\1\2\3\4", 4, crc, sizeof crc - 1);
    write_file("sha.zt", (tn_create_options){ .checksum = TN_CHECKSUM_SHA256 }, &t, 1);
    check_bytes("sha.zt", "\1\2\3\4", 4, sha, sizeof sha - 1);
}

static void several_tensors_lie_at_multiples_of_64_in_their_order(void)
{
    static const char index[] = "\x83"
        "\xbf" "\x64" "name" "\x61" "s" "\x66" "offset" "\x18\x40" "\x64" "size"
        "\x04" "\x65" "dtype" "\x67" "float32"
        "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x80" "\x68" "encoding" "\x63" "raw"
        "\x6f" "data_endianness" "\x66" "little" "\xff"
        "\xbf" "\x64" "name" "\x61" "e" "\x66" "offset" "\x18\x80" "\x64" "size"
        "\x00" "\x65" "dtype" "\x65" "int64"
        "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x82\x00\x19\x01\x2c" "\x68" "encoding" "\x63" "raw"
        "\x6f" "data_endianness" "\x66" "little" "\xff"
        "\xbf" "\x64" "name" "\x62" "\xc3\xa4" "\x66" "offset" "\x18\x80" "\x64"
        "size" "\x03" "\x65" "dtype" "\x64" "bool"
        "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x82\x01\x03" "\x68" "encoding" "\x63" "raw"
        "\x61" "k" "\x61" "v" "\x61" "n" "\x18\x2a" "\xff";
    static const uint8_t forty_two[] = { 0x18, 42 };
    static const tn_meta meta[] = { { .key = "k", .text = "v" },
                                    { .key = "n", .cbor = forty_two, .cbor_size = 2 } };
    static const simple tensors[] = {
        { .name = "s", .dtype = TN_FLOAT32, .rank = 0, .shape = { 0 }, .data = "\0\0\x80\x3f" },
        { .name = "e", .dtype = TN_INT64, .rank = 2, .shape = { 0, 300 } },
        { .name = "\xc3\xa4", .dtype = TN_BOOL, .rank = 2, .shape = { 1, 3 }, .data = "\1\0\1", .meta = meta,
          .nmeta = 2 },
    };
    uint8_t data[67] = { 0, 0, 0x80, 0x3f };
    memcpy(data + 64, "\1\0\1", 3);
    write_file("three.zt", (tn_create_options){ 0 }, tensors, 3);
    check_bytes("three.zt", data, sizeof data, index, sizeof index - 1);
}

/* Of raw data whose elements have several bytes, and of no other. */
static void byte_order_is_said_where_there_is_one(void)
{
    static const uint8_t data[16];
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    for (int i = 0; i < 2 * (TN_DTYPE_COUNT - 1); i++) {
        const simple t = { .name = "t", .dtype = (tn_dtype)(1 + i / 2), .data = data };
        size_t n;
        write_file("o.zt", (tn_create_options){ .encoding = encodings[i % 2], .replace = true }, &t, 1);
        uint8_t *bytes = load_file(in_folder("o.zt").text, &n);
        bool said = memmem(bytes, n, "\x6f" "data_endianness" "\x66" "little", 23) != NULL;
        CHECK(said == (i % 2 == 0 && tn_dtype_get(t.dtype)->swap_bytes > 1));
        free(bytes);
    }
}

/* Whatever libzstd makes of it: one frame that says how long it is decoded, and no byte order. */
static void compressed_tensors_carry_their_size(void)
{
    static uint16_t data[5000];
    for (int i = 0; i < 5000; i++)
        data[i] = (uint16_t)(i / 7);
    const simple t = { .name = "t", .dtype = TN_UINT16, .rank = 1, .shape = { 5000 }, .data = data };
    write_file("z.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &t, 1);
    size_t n;
    uint8_t *bytes = load_file(in_folder("z.zt").text, &n);
    tn_file *f = open_file("z.zt");
    const tn_stored_info s = stored_info(&tn_file_find(f, "t")->parts[0]);
    CHECK(s.encoding == TN_ENCODING_ZSTD && s.offset == 64 && s.bytes < sizeof data);
    CHECK(ZSTD_getFrameContentSize(bytes + 64, s.bytes) == sizeof data);
    CHECK(ZSTD_findFrameCompressedSize(bytes + 64, s.bytes) == s.bytes);
    CHECK(memmem(bytes, n, "data_endianness", 15) == NULL);
    uint8_t *again = read_tensor(f, tn_file_find(f, "t"));
    assert_memory_equal(again, data, sizeof data);
    free(again);
    tn_close(f);
    free(bytes);
}

/* ---- placing ---- */

static void alignment_may_be_larger(void)
{
    static const simple tensors[] = {
        { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 1 }, .data = "a" },
        { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 1 }, .data = "b" },
        { .name = "c", .dtype = TN_UINT8, .rank = 1, .shape = { 0 } },
        { .name = "d", .dtype = TN_UINT8, .rank = 1, .shape = { 2 }, .data = "de" },
    };
    static const uint64_t aligns[] = { 0, 64, 128, 4096, 65536 };
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        char name[20];
        uint64_t align = aligns[i] ? aligns[i] : 64;
        snprintf(name, sizeof name, "a%zu.zt", i);
        write_file(name, (tn_create_options){ .align = aligns[i] }, tensors, 4);
        tn_file *f = open_file(name);
        for (size_t k = 0; k < 4; k++)
            CHECK(stored_info(&tn_file_tensor(f, k)->parts[0]).offset % align == 0);
        CHECK(stored_info(&tn_file_tensor(f, 3)->parts[0]).offset == 3 * align);
        tn_close(f);
    }
}

static void wrong_options_are_refused(void)
{
    const tn_create_options wrong[] = {
        { .align = 1 }, { .align = 32 }, { .align = 96 }, { .align = UINT64_C(1) << 31 },
        { .align = UINT64_MAX },
        { .format = "nothing" }, { .shard_size = 100 }, { FILLER },
        { .encoding = TN_ENCODING_ZSTD, .level = 1000 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        CHECK(try_write("wrong.zt", wrong[i], NULL, 0, &err) == TN_ERR_ARGUMENT);
        walk_error(&err, TN_ERR_ARGUMENT);
    }
    CHECK(count_entries(folder) == 0);
}

static void tied_tensors_share_their_bytes(void)
{
    static const float data[40] = { 1, 2, 3 };
    static const simple tensors[] = {
        { .name = "embed", .dtype = TN_FLOAT32, .rank = 2, .shape = { 4, 10 }, .data = data },
        { .name = "head", .dtype = TN_FLOAT32, .rank = 2, .shape = { 10, 4 }, .tied = "embed" },
        { .name = "third", .dtype = TN_FLOAT32, .rank = 1, .shape = { 40 }, .tied = "head" },
    };
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    for (size_t i = 0; i < 2; i++) {
        write_file("tied.zt", (tn_create_options){ .encoding = encodings[i], .checksum = TN_CHECKSUM_CRC32C,
                                                   .replace = true },
                   tensors, 3);
        tn_file *f = open_file("tied.zt");
        const tn_stored_info first = stored_info(&tn_file_tensor(f, 0)->parts[0]);
        CHECK(tn_file_tensor(f, 0)->tied == NULL);
        for (size_t k = 1; k < 3; k++) {
            const tn_tensor *t = tn_file_tensor(f, k);
            const tn_stored_info stored = stored_info(t->parts);
            CHECK(stored.offset == first.offset && stored.bytes == first.bytes);
            CHECK(t->tied && strcmp(t->tied, "embed") == 0);
            CHECK(strcmp(stored.checksum_text, first.checksum_text) == 0);
            uint8_t *bytes = read_tensor(f, t);
            assert_memory_equal(bytes, data, sizeof data);
            free(bytes);
        }
        CHECK(tn_file_size(f) < 64 + sizeof data + 600);
        tn_close(f);
    }
}

/* ---- types without a name ---- */

typedef struct carrier {
    tn_dtype    dtype;
    int64_t     count;
    const char *type;           /* in the file */
    int64_t     shape[2];
    uint32_t    rank;
} carrier;

static void types_without_a_name_are_carried_by_plain_ones(void)
{
    static const carrier cases[] = {
        { TN_TF32, 3, "float32", { 3 }, 1 },            { TN_FLOAT8_E4M3FN, 3, "uint8", { 3 }, 1 },
        { TN_FLOAT8_E5M2, 3, "uint8", { 3 }, 1 },       { TN_FLOAT8_E4M3FNUZ, 3, "uint8", { 3 }, 1 },
        { TN_FLOAT8_E5M2FNUZ, 3, "uint8", { 3 }, 1 },   { TN_FLOAT8_E4M3, 3, "uint8", { 3 }, 1 },
        { TN_FLOAT8_E3M4, 3, "uint8", { 3 }, 1 },       { TN_FLOAT8_E8M0, 3, "uint8", { 3 }, 1 },
        { TN_FLOAT6_E2M3, 5, "uint8", { 4 }, 1 },       { TN_FLOAT6_E3M2, 4, "uint8", { 3 }, 1 },
        { TN_FLOAT4_E2M1, 3, "uint8", { 2 }, 1 },       { TN_INT4, 3, "uint8", { 2 }, 1 },
        { TN_INT4, 4, "uint8", { 2 }, 1 },              { TN_UINT4, 1, "uint8", { 1 }, 1 },
        { TN_INT2, 5, "uint8", { 2 }, 1 },              { TN_UINT2, 4, "uint8", { 1 }, 1 },
        { TN_INT4, 0, "uint8", { 0 }, 1 },              { TN_COMPLEX64, 3, "float32", { 3, 2 }, 2 },
        { TN_COMPLEX128, 2, "float64", { 2, 2 }, 2 },   { TN_FX8, 3, "int8", { 3 }, 1 },
        { TN_FX16, 3, "int16", { 3 }, 1 },
    };
    uint8_t data[64];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(7 * i + 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const carrier *c = &cases[i];
        const simple t = { .name = "t", .dtype = c->dtype, .rank = 1, .shape = { c->count }, .data = data };
        write_file("carried.zt", (tn_create_options){ .replace = true }, &t, 1);
        tn_file *f = open_file("carried.zt");
        const tn_tensor *found = tn_file_find(f, "t");
        assert_string_equal(stored_info(&found->parts[0]).type, c->type);
        CHECK(found->dtype == c->dtype && found->rank == 1 && found->shape[0] == c->count &&
              found->nmeta == 0);
        uint8_t *bytes = read_tensor(f, found);
        assert_memory_equal(bytes, data, found->parts[0].nbytes);
        free(bytes);
        tn_close(f);
    }
}

/* What a reader sees that knows nothing of Tenon: the same file with the record's key spoilt. */
static void check_plain(const carrier *c)
{
    size_t n;
    uint8_t *bytes = load_file(in_folder("carried.zt").text, &n), *key = memmem(bytes, n, "\x65" "tenon", 6);
    assert_non_null(key);
    key[1] = 'T';
    tn_file *f;
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    const tn_tensor *t = tn_file_find(f, "t");
    CHECK(t->rank == c->rank && memcmp(t->shape, c->shape, c->rank * sizeof *c->shape) == 0);
    CHECK(strcmp(tn_dtype_get(t->dtype)->ztensor, c->type) == 0);
    CHECK(t->nmeta == 1 && strcmp(t->meta[0].key, "Tenon") == 0);
    tn_close(f);
    free(bytes);
}

static void a_reader_that_knows_nothing_sees_plain_tensors(void)
{
    static const carrier cases[] = {
        { TN_INT4, 5, "uint8", { 3 }, 1 }, { TN_COMPLEX64, 2, "float32", { 2, 2 }, 2 },
        { TN_TF32, 2, "float32", { 2 }, 1 },
        { TN_FX16, 3, "int16", { 3 }, 1 }, { TN_FLOAT8_E5M2, 4, "uint8", { 4 }, 1 },
    };
    static const uint8_t data[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const simple t = { .name = "t", .dtype = cases[i].dtype, .rank = 1, .shape = { cases[i].count },
                           .data = data };
        write_file("carried.zt", (tn_create_options){ .replace = true }, &t, 1);
        check_plain(&cases[i]);
    }
}

static void a_record_is_written_as_documented(void)
{
    static const char index[] = "\x81\xbf" "\x64" "name" "\x61" "q" "\x66" "offset" "\x18\x40" "\x64" "size"
    "\x02"
        "\x65" "dtype" "\x65" "uint8" "\x66" "layout" "\x65" "dense" "\x65" "shape" "\x81\x02"
        "\x68" "encoding" "\x63" "raw"
        "\x65" "tenon" "\xa2" "\x65" "dtype" "\x64" "int4" "\x65" "shape" "\x82\x01\x03" "\xff";
    static const simple t = { .name = "q", .dtype = TN_INT4, .rank = 2, .shape = { 1, 3 },
                              .data = "\x21\x03" };
    write_file("q.zt", (tn_create_options){ 0 }, &t, 1);
    check_bytes("q.zt", "\x21\x03", 2, index, sizeof index - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_without_tensors_has_17_bytes),
        IN_FOLDER(one_small_tensor_is_written_as_the_specification_says),
        IN_FOLDER(checksums_stand_behind_the_encoding),
        IN_FOLDER(several_tensors_lie_at_multiples_of_64_in_their_order),
        IN_FOLDER(byte_order_is_said_where_there_is_one),
        IN_FOLDER(compressed_tensors_carry_their_size),
        IN_FOLDER(alignment_may_be_larger),
        IN_FOLDER(wrong_options_are_refused),
        IN_FOLDER(tied_tensors_share_their_bytes),
        IN_FOLDER(types_without_a_name_are_carried_by_plain_ones),
        IN_FOLDER(a_reader_that_knows_nothing_sees_plain_tensors),
        IN_FOLDER(a_record_is_written_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
