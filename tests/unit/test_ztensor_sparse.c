/* zTensor 0.1: the sparse layouts of its own library. */
#include "support.h"
#include "stored.h"

#include "bytes/checksum.h"
#include "files.h"
#include "make.h"
#include "verdicts.h"
#include "zt_bytes.h"

#define EDGE TEST_GOLDEN "/ztensor/edge"

/* ---- parts ---- */

static void check_part(const tn_file *f, const tn_part *p, const char *role, tn_dtype dtype, int64_t n,
                       int64_t columns, const void *expected)
{
    assert_string_equal(p->role, role);
    CHECK(p->array.dtype == dtype && p->array.rank == 1u + (columns >= 0) && p->array.shape[0] == n);
    CHECK(columns < 0 || p->array.shape[1] == columns);
    assert_string_equal(stored_info(p).type, tn_dtype_get(dtype)->name);
    assert_string_equal(stored_info(p).encoding_name, "raw");
    void *bytes = read_part(f, p);
    CHECK(p->nbytes == (uint64_t)n * (uint64_t)(columns < 0 ? 1 : columns) * tn_dtype_get(dtype)->bits / 8);
    assert_memory_equal(bytes, expected, p->nbytes);
    free(bytes);
}

/* ---- files the original library wrote ---- */

/* A golden file in the three ways it can be opened. */
static tn_file *open_golden(const char *name, int how, uint8_t **bytes)
{
    char where[PATH_MAX];
    size_t n;
    tn_file *f = NULL;
    snprintf(where, sizeof where, "%s/%s", EDGE, name);
    tn_open_options options = { .size = sizeof options, .io = how == 1 ? TN_IO_PREAD : TN_IO_MMAP };
    *bytes = load_file(where, &n);
    CHECK((how == 2 ? tn_open_memory(*bytes, n, NULL, &f, NULL) : tn_open(where, &options, &f, NULL)) ==
          TN_OK);
    CHECK(tn_file_count(f) == 1);
    return f;
}

/* Entry k: value 1.5 k at (k mod 3, k). */
static void the_original_coo_file_has_the_entries_its_bytes_say(void)
{
    static const double values[] = { 0, 1.5, 3, 4.5, 6, 7.5, 9, 10.5 };
    static const uint64_t indices[8][2] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 0, 3 }, { 1, 4 }, { 2, 5 },
                                            { 0, 6 }, { 1, 7 } };
    for (int how = 0; how < 3; how++) {
        uint8_t *bytes;
        tn_file *f = open_golden("sparse_coo_coincident.zt", how, &bytes);
        const tn_tensor *t = tn_file_find(f, "coo");
        CHECK(t->form == TN_FORM_COO);
        CHECK(t->dtype == TN_FLOAT64 && t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 8 &&
              t->nparts == 2);
        check_part(f, &t->parts[0], "values", TN_FLOAT64, 8, -1, values);
        check_part(f, &t->parts[1], "indices", TN_UINT64, 8, 2, indices);
        /* what is interleaved cannot be seen in place */
        CHECK(t->parts[0].data == NULL && t->parts[1].data == NULL);
        seen s = verify_file(f);
        CHECK(s.parts == 2 && s.verdict[0] == TN_VERDICT_OK && s.verdict[1] == TN_VERDICT_OK);
        assert_string_equal(said_of(&s.why[0]), "");
        assert_string_equal(said_of(&s.why[1]),
                            "tensor \"coo\": entry 3 is out of order: it sorts before entry 2");
        tn_close(f);
        free(bytes);
    }
}

static void the_original_csr_file_has_the_entries_its_bytes_say(void)
{
    static const double values[] = { 1, 2, 3, 4 };
    static const uint64_t indices[] = { 0, 3, 1, 2 }, indptr[] = { 0, 2, 3, 4 };
    for (int how = 0; how < 3; how++) {
        uint8_t *bytes;
        tn_file *f = open_golden("sparse_csr_coincident.zt", how, &bytes);
        const tn_tensor *t = tn_file_find(f, "csr");
        CHECK(t->form == TN_FORM_CSR);
        CHECK(t->dtype == TN_FLOAT64 && t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 4 &&
              t->nparts == 3);
        check_part(f, &t->parts[0], "values", TN_FLOAT64, 4, -1, values);
        check_part(f, &t->parts[1], "indices", TN_UINT64, 4, -1, indices);
        check_part(f, &t->parts[2], "indptr", TN_UINT64, 4, -1, indptr);
        CHECK(how == 1 || (t->parts[0].data && t->parts[1].data && t->parts[2].data));
        seen s = verify_file(f);
        CHECK(s.parts == 3);
        for (int k = 0; k < 3; k++) {
            CHECK(s.verdict[k] == TN_VERDICT_OK);
            assert_string_equal(said_of(&s.why[k]), "");
        }
        tn_close(f);
        free(bytes);
    }
}

/* Its one checksum is of all parts: a damaged index is found by the values'. */
static void every_flipped_data_byte_is_found_by_the_one_checksum(void)
{
    static const struct { const char *name; size_t size; } files[] = { { "sparse_coo_coincident.zt", 192 },
                                                                       { "sparse_csr_coincident.zt", 96 } };
    for (size_t i = 0; i < 2; i++) {
        char where[PATH_MAX];
        size_t n;
        snprintf(where, sizeof where, "%s/%s", EDGE, files[i].name);
        uint8_t *bytes = load_file(where, &n);
        for (size_t at = 64; at < 64 + files[i].size; at++) {
            tn_file *f;
            bytes[at] ^= (uint8_t)(1 << at % 8);
            CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
            seen s = verify_file(f);
            CHECK(s.verdict[0] == TN_VERDICT_BAD && strstr(line_of(&s.why[0]), "expected checksum \"crc32c:0xD"));
            CHECK(s.verdict[1] == TN_VERDICT_NONE || s.verdict[1] == TN_VERDICT_BAD);
            tn_close(f);
            bytes[at] ^= (uint8_t)(1 << at % 8);
        }
        free(bytes);
    }
}

/* ---- made by hand ---- */

typedef struct blob {
    const char *name, *layout, *dtype, *encoding, *endianness, *checksum;
    uint32_t    rank;
    uint64_t    shape[TN_MAX_RANK];
    uint64_t    offset, size;
} blob;

/* Its fields; the caller has opened the map and may add more. */
static void put_fields(zt_bytes *z, const blob *b)
{
    zt_text_field(z, "name", b->name ? b->name : "s");
    zt_uint_field(z, "offset", b->offset ? b->offset : 64);
    zt_uint_field(z, "size", b->size);
    zt_text_field(z, "dtype", b->dtype ? b->dtype : "float32");
    zt_text_field(z, "layout", b->layout);
    zt_text(z, "shape");
    tn_cbor_put_array(&z->file, b->rank);
    for (uint32_t i = 0; i < b->rank; i++)
        tn_cbor_put_u64(&z->file, b->shape[i]);
    zt_text_field(z, "encoding", b->encoding ? b->encoding : "raw");
    if (b->endianness)
        zt_text_field(z, "data_endianness", b->endianness);
    if (b->checksum)
        zt_text_field(z, "checksum", b->checksum);
}

static void put_blobs(zt_bytes *z, const blob *blobs, size_t n)
{
    tn_cbor_put_array(&z->file, n);
    for (size_t i = 0; i < n; i++) {
        tn_cbor_open_map(&z->file);
        put_fields(z, &blobs[i]);
        tn_cbor_close(&z->file);
    }
}

/* The file of these blobs, `data` bytes of data in all. */
static tn_status open_blobs(zt_bytes *z, const blob *blobs, size_t n, size_t data, tn_file **f, tn_error *err)
{
    *z = zt_begin(data);
    put_blobs(z, blobs, n);
    zt_end(z);
    walk_bytes(z->file.data, z->file.size, NULL);
    return tn_open_memory(z->file.data, z->file.size, NULL, f, err);
}

static tn_file *open_blob(zt_bytes *z, const blob *b)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    if (open_blobs(z, b, 1, b->size ? b->size : 1, &f, &err))
        fail_msg("%s", line_of(&err));
    return f;
}

static void close_blob(tn_file *f, zt_bytes *z)
{
    tn_close(f);
    tn_buf_free(&z->file);
}

static const char *const type_names[] = { "float64", "float32", "float16", "bfloat16", "int64", "int32",
                                          "int16", "int8",
                                          "uint64", "uint32", "uint16", "uint8", "bool" };

/* Takes the values and indices of n entries apart, as they lie in the file. */
static void check_coo(const tn_file *f, const uint8_t *data, uint32_t rank, size_t width, size_t n)
{
    const tn_tensor *t = tn_file_tensor(f, 0);
    uint8_t *values = malloc(n * width + 1), *indices = malloc(n * rank * 8 + 1);
    CHECK(values && indices && t->form == TN_FORM_COO && t->rank == rank && t->nparts == 2);
    for (size_t i = 0; i < n; i++) {
        memcpy(indices + i * rank * 8, data + i * (rank * 8 + width), rank * 8);
        memcpy(values + i * width, data + i * (rank * 8 + width) + rank * 8, width);
    }
    check_part(f, &t->parts[0], "values", t->dtype, (int64_t)n, -1, values);
    check_part(f, &t->parts[1], "indices", TN_UINT64, (int64_t)n, rank, indices);
    free(values);
    free(indices);
}

static void coo_entries_of_every_type_and_rank_are_read(void)
{
    static const uint32_t ranks[] = { 0, 1, 2, 3, 7, TN_MAX_RANK };
    for (size_t i = 0; i < 13 * 6 * 4; i++) {
        uint32_t rank = ranks[i / 13 % 6];
        size_t width = tn_dtype_get(tn_dtype_parse(type_names[i % 13]))->bits / 8, n = i / 78 * 3;
        blob b = { .layout = "sparsecoo", .dtype = type_names[i % 13], .rank = rank,
                   .size = n * (8 * rank + width) };
        for (uint32_t k = 0; k < rank; k++)
            b.shape[k] = 1;
        zt_bytes z;
        tn_file *f = open_blob(&z, &b);
        check_coo(f, z.file.data + 64, rank, width, n);
        seen s = verify_file(f);
        CHECK(s.verdict[0] == TN_VERDICT_NONE &&
              s.verdict[1] == (rank && n ? TN_VERDICT_BAD : TN_VERDICT_NONE));
        if (!rank && n > 1)
            assert_string_equal(said_of(&s.why[1]), "tensor \"s\": entry 1 has the indices of entry 0");
        close_blob(f, &z);
    }
}

static void csr_parts_of_every_type_are_read(void)
{
    for (size_t i = 0; i < 13 * 4 * 3; i++) {
        size_t width = tn_dtype_get(tn_dtype_parse(type_names[i % 13]))->bits / 8, n = i / 13 % 4 * 5,
               rows = i / 52 * 4;
        size_t head = (rows + 1) * 8;
        zt_bytes z;
        tn_file *f = open_blob(&z, &(blob){ .layout = "sparsecsr", .dtype = type_names[i % 13], .rank = 2,
                                            .shape = { rows, 9 },
                                            .size = head + n * (8 + width) });
        const tn_tensor *t = tn_file_tensor(f, 0);
        const uint8_t *data = z.file.data + 64;
        CHECK(t->form == TN_FORM_CSR && t->rank == 2 && t->shape[0] == (int64_t)rows &&
              t->shape[1] == 9 && t->nparts == 3);
        check_part(f, &t->parts[0], "values", t->dtype, (int64_t)n, -1, data + head + n * 8);
        check_part(f, &t->parts[1], "indices", TN_UINT64, (int64_t)n, -1, data + head);
        check_part(f, &t->parts[2], "indptr", TN_UINT64, (int64_t)rows + 1, -1, data);
        CHECK(verify_file(f).verdict[2] == TN_VERDICT_BAD);
        close_blob(f, &z);
    }
}

/* ---- what is listed only ---- */

static void what_is_not_consistent_with_itself_is_listed_and_says_why(void)
{
    static const struct { blob b; const char *why; } cases[] = {
        { { .layout = "sparsecoo", .rank = 2, .shape = { 3, 3 }, .size = 41 },
          "layout \"sparsecoo of 41 bytes, with entries of 20\"" },
        { { .layout = "sparsecoo", .rank = 2, .shape = { 3, 3 }, .size = 36 },
          "layout \"sparsecoo of 36 bytes, with entries of 20\"" },
        { { .layout = "sparsecoo", .rank = 1, .shape = { 3 }, .size = 24, .encoding = "zstd" },
          "layout \"sparsecoo, compressed\"" },
        { { .layout = "sparsecoo", .rank = 1, .shape = { 3 }, .size = 24, .endianness = "big" },
          "layout \"sparsecoo, big-endian\"" },
        { { .layout = "sparsecoo", .rank = 2, .shape = { UINT64_C(1) << 40, UINT64_C(1) << 40 }, .size = 20 },
          "layout \"sparsecoo of more than 2^63 - 1 elements\"" },
        { { .layout = "sparsecoo", .rank = 1, .shape = { 3 }, .size = 24, .dtype = "float8" },
          "type \"float8\"" },
        { { .layout = "sparsecoo", .rank = 1, .shape = { 3 }, .size = 24, .encoding = "lz4" },
          "encoding \"lz4\"" },
        { { .layout = "sparsecsr", .rank = 1, .shape = { 3 }, .size = 32 },
          "layout \"sparsecsr of 1 dimensions, where it has 2\"" },
        { { .layout = "sparsecsr", .rank = 3, .shape = { 1, 3, 3 }, .size = 32 },
          "layout \"sparsecsr of 3 dimensions, where it has 2\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { 3, 3 }, .size = 31 },
          "layout \"sparsecsr of 31 bytes, with 4 row pointers and entries of 12\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { 3, 3 }, .size = 24 },
          "layout \"sparsecsr of 24 bytes, with 4 row pointers and entries of 12\"" },
        { { .layout = "sparsecsr", .dtype = "int8", .rank = 2, .shape = { 2, 3 }, .size = 17 },
          "layout \"sparsecsr of 17 bytes, with 3 row pointers and entries of 9\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { 3, 3 }, .size = 43 },
          "layout \"sparsecsr of 43 bytes, with 4 row pointers and entries of 12\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { INT64_MAX, 1 }, .size = 8 },
          "layout \"sparsecsr of 8 bytes, with 9223372036854775808 row pointers and entries of 12\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { UINT64_C(1) << 61, 1 }, .size = 8 },
          "layout \"sparsecsr of 8 bytes, with 2305843009213693953 row pointers and entries of 12\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { 3, 3 }, .size = 32, .endianness = "big" },
          "layout \"sparsecsr, big-endian\"" },
        { { .layout = "sparsecsr", .rank = 2, .shape = { 3, 3 }, .size = 32, .encoding = "zstd" },
          "layout \"sparsecsr, compressed\"" },
        { { .layout = "SparseCoo", .rank = 1, .shape = { 3 }, .size = 24 }, "layout \"SparseCoo\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zt_bytes z;
        tn_error err = { .text = "" };
        char expected[200];
        tn_file *f = open_blob(&z, &cases[i].b);
        const tn_tensor *t = tn_file_tensor(f, 0);
        uint8_t *room = malloc(t->parts[0].nbytes < 1000 ? t->parts[0].nbytes + 1 : 1);
        snprintf(expected, sizeof expected, "%s is not known to this build", cases[i].why);
        assert_string_equal(tn_tensor_form_name(t), cases[i].b.layout);
        CHECK(t->nparts == 1 && t->rank == cases[i].b.rank && t->parts[0].data == NULL);
        CHECK(tn_part_read(f, t->parts, room, t->parts[0].nbytes, &err) == TN_ERR_UNSUPPORTED);
        assert_string_equal(said_of(&err), expected);
        CHECK(verify_file(f).verdict[0] == TN_VERDICT_UNREADABLE);
        free(room);
        close_blob(f, &z);
    }
}

static void a_sparse_tensor_may_be_larger_than_any_memory(void)
{
    zt_bytes z;
    tn_file *f = open_blob(&z, &(blob){ .layout = "sparsecoo", .rank = 2,
                                        .shape = { UINT64_C(1) << 40, (UINT64_C(1) << 22) - 1 },
                                        .size = 40 });
    CHECK(tn_file_tensor(f, 0)->form == TN_FORM_COO && tn_file_tensor(f, 0)->shape[0] == INT64_C(1)
                                                                                                  << 40);
    check_coo(f, z.file.data + 64, 2, 4, 2);
    close_blob(f, &z);
    f = open_blob(&z, &(blob){ .layout = "sparsecsr", .rank = 2, .shape = { 1, INT64_MAX }, .size = 28 });
    CHECK(tn_file_tensor(f, 0)->form == TN_FORM_CSR && tn_file_tensor(f, 0)->shape[1] == INT64_MAX);
    close_blob(f, &z);
}

/* ---- checksums ---- */

static void check_verdicts(const char *checksum, tn_verdict values, tn_verdict indices)
{
    zt_bytes z;
    tn_file *f = open_blob(&z, &(blob){ .layout = "sparsecoo", .rank = 1, .shape = { INT64_MAX }, .size = 24,
                                        .checksum = checksum });
    seen s = verify_file(f);
    CHECK(s.verdict[0] == values && s.verdict[1] == indices);
    close_blob(f, &z);
}

/* Bytes 1 to 24: entries at 0x0807060504030201 and 0x14131211100f0e0d. */
static void a_part_without_a_checksum_is_checked_by_that_of_all(void)
{
    uint8_t data[24];
    char crc[TN_CHECKSUM_TEXT_MAX], sha[TN_CHECKSUM_TEXT_MAX];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i + 1);
    snprintf(crc, sizeof crc, "crc32c:0x%08X", tn_crc32c(0, data, sizeof data));
    snprintf(sha, sizeof sha, "sha256:%s", sha256_of(data, sizeof data).text);
    check_verdicts(crc, TN_VERDICT_OK, TN_VERDICT_OK);
    check_verdicts(sha, TN_VERDICT_OK, TN_VERDICT_OK);
    check_verdicts(NULL, TN_VERDICT_NONE, TN_VERDICT_NONE);
    check_verdicts("crc32c:0x00000000", TN_VERDICT_BAD, TN_VERDICT_NONE);
    check_verdicts("md5:0", TN_VERDICT_NOT_CHECKED, TN_VERDICT_NONE);
}

/* ---- beside other entries ---- */

static void overlaps_are_seen_for_all_the_bytes(void)
{
    const blob coo = { .name = "a", .layout = "sparsecoo", .rank = 2, .shape = { 9, 9 }, .size = 200 };
    const blob csr = { .name = "a", .layout = "sparsecsr", .rank = 2, .shape = { 9, 9 }, .size = 200 };
    for (int i = 0; i < 8; i++) {
        const blob *first = i % 2 ? &coo : &csr;
        blob second = { .name = "b", .layout = i & 2 ? "sparsecoo" : "dense", .dtype = "uint8", .rank = 1,
                        .shape = { 90 }, .size = 90 };
        if (i & 4)
            second.offset = 128;
        zt_bytes z;
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        CHECK(open_blobs(&z, (blob[]){ *first, second }, 2, 300, &f,
                         &err) == TN_ERR_CORRUPT && strstr(line_of(&err), "overlaps that of"));
        tn_buf_free(&z.file);
        CHECK(open_blobs(&z, (blob[]){ second, *first }, 2, 300, &f,
                         &err) == TN_ERR_CORRUPT && strstr(line_of(&err), "overlaps that of"));
        tn_buf_free(&z.file);
        second.offset = 320;
        CHECK(open_blobs(&z, (blob[]){ second, *first }, 2, 400, &f, &err) == TN_OK);
        close_blob(f, &z);
    }
}

/* The same bytes twice are allowed, as for other tensors; they are no tie, for a tie is of one part. */
static void two_names_may_have_the_same_bytes(void)
{
    const blob a = { .name = "a", .layout = "sparsecoo", .rank = 2, .shape = { 9, 9 }, .size = 200 };
    blob b = a, dense = { .name = "c", .layout = "dense", .dtype = "uint8", .rank = 1, .shape = { 200 },
                          .size = 200 };
    zt_bytes z;
    tn_file *f;
    b.name = "b";
    CHECK(open_blobs(&z, (blob[]){ a, b, dense }, 3, 200, &f, NULL) == TN_OK);
    CHECK(!tn_file_find(f, "a")->tied && !tn_file_find(f, "b")->tied && !tn_file_find(f, "c")->tied);
    check_coo(f, z.file.data + 64, 2, 4, 10);
    close_blob(f, &z);
}

/* The file's metadata stands in a record; anything that would make another tensor of the entry does not
 * belong there. */
static void a_record_beside_a_sparse_layout_says_nothing_of_the_array(void)
{
    static const char *const records[] = { "\xa1\x64" "file" "\xa1\x61" "k\x61v",
                                           "\xa2\x65" "dtype" "\x67" "float32" "\x65" "shape" "\x81\x02",
                                           "\xa1\x67" "extents" "\x81\x01" };
    for (int i = 0; i < 3; i++) {
        zt_bytes z = zt_begin(40);
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        tn_cbor_put_array(&z.file, 1);
        tn_cbor_open_map(&z.file);
        put_fields(&z, &(blob){ .layout = "sparsecoo", .rank = 2, .shape = { 9, 9 }, .size = 40 });
        zt_text(&z, "tenon");
        tn_buf_put(&z.file, records[i], strlen(records[i]));
        tn_cbor_close(&z.file);
        zt_end(&z);
        tn_status status = tn_open_memory(z.file.data, z.file.size, NULL, &f, &err);
        CHECK(status == (i ? TN_ERR_CORRUPT : TN_OK));
        if (i)
            assert_string_equal(said_of(&err),
                                "tensor \"s\": its record and its layout both describe its parts");
        size_t nmeta;
        if (!i)
            CHECK(tn_file_meta(f, &nmeta) && nmeta == 1 && tn_file_tensor(f, 0)->form == TN_FORM_COO);
        close_blob(f, &z);
    }
}

static void copy_golden(const char *name)
{
    char where[PATH_MAX];
    size_t n;
    snprintf(where, sizeof where, "%s/%s", EDGE, name);
    uint8_t *bytes = load_file(where, &n);
    FILE *out = fopen(in_folder("golden.zt").text, "wb");
    CHECK(out && fwrite(bytes, 1, n, out) == n && fclose(out) == 0);
    free(bytes);
}

static void editing_metadata_leaves_a_sparse_tensor_what_it_is(void)
{
    static const char *const names[] = { "sparse_coo_coincident.zt", "sparse_csr_coincident.zt" };
    for (int i = 0; i < 2; i++) {
        copy_golden(names[i]);
        const tn_meta_edit edits[] = { { .key = "a", .text = "1" }, { .tensor = i ? "csr" : "coo", .key = "b",
                                                                      .text = "2" } };
        CHECK(tn_edit_meta(in_folder("golden.zt").text, edits, 2, NULL, NULL, NULL) == TN_OK);
        tn_file *f = open_file("golden.zt");
        CHECK(tn_file_tensor(f, 0)->form == (i ? TN_FORM_CSR : TN_FORM_COO) && tn_file_tensor(f,
                                                                                              0)->nmeta == 1);
        CHECK(verify_file(f).verdict[1] == TN_VERDICT_OK);
        tn_close(f);
    }
}

/* ---- on the way to other files ---- */

static void check_converted(const tn_file *f, const char *name, tn_encoding encoding)
{
    tn_create_options create = { .size = sizeof create, .replace = true, .jobs = 3, .encoding = encoding };
    tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE };
    tn_error err = { .text = "" };
    if (tn_convert(f, in_folder(name).text, &options, NULL, &err))
        fail_msg("%s", line_of(&err));
    tn_file *copy = open_file(name);
    require_same_tensors(f, copy);
    seen s = verify_file(copy);
    CHECK(s.verdict[0] <= TN_VERDICT_NONE && s.verdict[1] <= TN_VERDICT_NONE);
    tn_close(copy);
}

static void they_become_parts_in_other_files(void)
{
    static const char *const names[] = { "sparse_coo_coincident.zt", "sparse_csr_coincident.zt" };
    for (int i = 0; i < 2; i++) {
        uint8_t *bytes;
        tn_file *f = open_golden(names[i], 1, &bytes);
        check_converted(f, "c.zt", TN_ENCODING_RAW);
        check_converted(f, "c.zt", TN_ENCODING_ZSTD);
        check_converted(f, "c.safetensors", TN_ENCODING_RAW);
        tn_close(f);
        free(bytes);
    }
}

/* More than threads take at a time: 10 MiB of values and more of indices. */
enum { MANY = 1400000, COO_SIZE = MANY * 24, CSR_SIZE = 2 * 8 + MANY * 16 };

/* Entry i is at i, in one row. */
static void write_large(bool coo, tn_checksum checksum)
{
    size_t size = coo ? COO_SIZE : CSR_SIZE;
    uint64_t *words = calloc(size / 8, 8);
    char text[TN_CHECKSUM_TEXT_MAX];
    assert_non_null(words);
    if (!coo)
        words[1] = MANY;
    for (size_t i = 0; i < MANY; i++) {
        words[coo ? 3 * i + 1 : 2 + i] = i;
        words[coo ? 3 * i + 2 : 2 + MANY + i] = i * 2654435761u;
    }
    snprintf(text, sizeof text, "crc32c:0x%08X", tn_crc32c(0, words, size));
    zt_bytes z = { 0 };
    tn_buf_put(&z.file, "ZTEN0001", 8);
    tn_buf_fill(&z.file, 0, 56);
    tn_buf_put(&z.file, words, size);
    z.index_at = z.file.size;
    put_blobs(&z, &(blob){ .layout = coo ? "sparsecoo" : "sparsecsr", .dtype = "uint64", .rank = 2,
                           .shape = { 1, MANY }, .size = size,
                           .checksum = checksum == TN_CHECKSUM_NONE ? NULL : text }, 1);
    zt_end(&z);
    FILE *out = fopen(in_folder("large.zt").text, "wb");
    CHECK(out && fwrite(z.file.data, 1, z.file.size, out) == z.file.size && fclose(out) == 0);
    tn_buf_free(&z.file);
    free(words);
}

static void large_ones_are_shared_among_threads(void)
{
    for (int i = 0; i < 8; i++) {
        bool coo = i & 1, summed = i & 2;
        write_large(coo, summed ? TN_CHECKSUM_CRC32C : TN_CHECKSUM_NONE);
        tn_open_options options = { .size = sizeof options, .io = i & 4 ? TN_IO_PREAD : TN_IO_MMAP };
        tn_file *f;
        CHECK(tn_open(in_folder("large.zt").text, &options, &f, NULL) == TN_OK);
        seen s = verify_file(f);
        for (int k = 0; k < 3 - coo; k++) {
            CHECK(s.verdict[k] == (summed ? TN_VERDICT_OK : TN_VERDICT_NONE));
            assert_string_equal(said_of(&s.why[k]), "");
        }
        check_converted(f, "c.zt", TN_ENCODING_RAW);
        tn_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_original_coo_file_has_the_entries_its_bytes_say),
        TEST(the_original_csr_file_has_the_entries_its_bytes_say),
        TEST(every_flipped_data_byte_is_found_by_the_one_checksum),
        TEST(coo_entries_of_every_type_and_rank_are_read),
        TEST(csr_parts_of_every_type_are_read),
        TEST(what_is_not_consistent_with_itself_is_listed_and_says_why),
        TEST(a_sparse_tensor_may_be_larger_than_any_memory),
        TEST(a_part_without_a_checksum_is_checked_by_that_of_all),
        TEST(overlaps_are_seen_for_all_the_bytes),
        TEST(two_names_may_have_the_same_bytes),
        TEST(a_record_beside_a_sparse_layout_says_nothing_of_the_array),
        IN_FOLDER(editing_metadata_leaves_a_sparse_tensor_what_it_is),
        IN_FOLDER(they_become_parts_in_other_files),
        IN_FOLDER(large_ones_are_shared_among_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
