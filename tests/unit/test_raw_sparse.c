/* Sparse tensors as numbers of WIA-AI-011 documents: read, written, refused,
 * damaged. */
#include "support.h"
#include "stored.h"

#include "convert.h"
#include "files.h"

#include "store/file.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "tensor/number.h"

#include <tenon/descriptor.h>

#include <math.h>

#define HEAD "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"s\","

/* ---- reading ---- */

static tn_file *open_text(const char *json)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    check_status(tn_open_memory(json, strlen(json), NULL, &f, &err), &err, TN_OK, "");
    walk_file(f);
    return f;
}

static void check_refused(const char *json, tn_status expected, const char *text, uint64_t at)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "raw" };
    tn_status status = tn_open_memory(json, strlen(json), &options, &f, &err);
    if (!status)
        tn_close(f);
    check_status(status, &err, expected, text);
    walk_error(&err, status);
    if (err.offset != at)
        fail_msg("expected byte %llu but found %llu: %s", (unsigned long long)at,
                 (unsigned long long)err.offset, line_of(&err));
}

/* The part has these elements, which are at `data` and can be read. */
static void check_part(const tn_file *f, const tn_part *p, tn_dtype dtype, const void *expected,
                       size_t nbytes)
{
    CHECK(p->array.dtype == dtype && p->nbytes == nbytes && stored_info(p).bytes == nbytes);
    CHECK(p->data && (uintptr_t)p->data % 64 == 0);
    assert_string_equal(stored_info(p).encoding_name, "text");
    uint8_t *found = malloc(nbytes + 1);
    CHECK(tn_part_read(f, p, found, nbytes, NULL) == TN_OK);
    CHECK(memcmp(found, expected, nbytes) == 0 && memcmp(p->data, expected, nbytes) == 0);
    free(found);
}

static void coo_data_of_a_document_is_a_tensor(void)
{
    tn_file *f = open_text(
        HEAD "\"format\":\"COO\",\"shape\":[3,4],\"nnz\":3,\"indices\":{\"dtype\":\"INT32\","
             "\"data\":[[0,1],[2,3],[1,0]]},\"values\":{\"dtype\":\"FLOAT16\",\"data\":[1.5,-2,0.1]}}");
    const tn_tensor *t = tn_file_find(f, "s");
    CHECK(t->form == TN_FORM_COO);
    CHECK(t->nparts == 2 && t->dtype == TN_FLOAT16 && t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 4);
    check_part(f, &t->parts[0], TN_FLOAT16, (uint16_t[]){ 0x3e00, 0xc000, 0x2e66 }, 6);
    check_part(f, &t->parts[1], TN_INT32, (int32_t[]){ 0, 1, 2, 3, 1, 0 }, 24);
    CHECK(t->parts[1].array.rank == 2 && t->parts[1].array.shape[0] == 3 && t->parts[1].array.shape[1] == 2);
    CHECK(tn_file_shards(f) == 1);
    tn_close(f);
}

static void indices_without_a_type_are_int64(void)
{
    static const char *const types[] = { "", "\"dtype\":\"INT64\"," };
    for (size_t i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 HEAD "\"format\":\"COO\",\"shape\":[9007199254740995],\"nnz\":1,\"indices\":{%s"
                      "\"data\":[[9007199254740993]]},\"values\":{\"dtype\":\"INT8\",\"data\":[-128]}}",
                 types[i]);
        tn_file *f = open_text(text);
        check_part(f, &tn_file_tensor(f, 0)->parts[1], TN_INT64, (int64_t[]){ INT64_C(9007199254740993) }, 8);
        tn_close(f);
    }
}

#define CSR(extra, columns, last, values)                                                                       \
    HEAD "\"format\":\"CSR\",\"shape\":[2,3000000000]," extra "\"row_pointers\":[0,1," last "],\"column_indices\":[" columns \
    "],\"values\":" values "}"

static void csr_data_of_a_document_is_a_tensor(void)
{
    tn_file *f = open_text(CSR("", "2,0", "2", "[1.5,-0.0]"));
    const tn_tensor *t = tn_file_find(f, "s");
    CHECK(t->form == TN_FORM_CSR);
    CHECK(t->nparts == 3 && t->dtype == TN_FLOAT32 && t->rank == 2 && t->shape[1] == INT64_C(3000000000));
    check_part(f, &t->parts[0], TN_FLOAT32, (float[]){ 1.5f, -0.0f }, 8);
    check_part(f, &t->parts[1], TN_INT32, (int32_t[]){ 2, 0 }, 8);
    check_part(f, &t->parts[2], TN_INT32, (int32_t[]){ 0, 1, 2 }, 12);
    assert_string_equal(stored_info(&t->parts[0]).type, "FLOAT32");
    tn_close(f);
}

/* Of the descriptor where the values say nothing; float32 where neither does. */
static void csr_values_have_the_type_of_the_descriptor(void)
{
    tn_file *f = open_text(
        CSR("\"dtype\":{\"base_type\":\"UINT64\"},", "2,0", "2", "[18446744073709551615,9007199254740993]"));
    CHECK(tn_file_tensor(f, 0)->dtype == TN_UINT64);
    check_part(f, tn_file_tensor(f, 0)->parts, TN_UINT64,
               (uint64_t[]){ UINT64_MAX, UINT64_C(9007199254740993) }, 16);
    tn_close(f);
    f = open_text(CSR("\"shape_of\":1,", "2,0", "2", "{\"dtype\":\"BFLOAT16\",\"data\":[1,2]}"));
    CHECK(tn_file_tensor(f, 0)->dtype == TN_BFLOAT16);
    tn_close(f);
}

static void csr_indices_are_as_wide_as_they_must_be(void)
{
    static const struct { const char *json; tn_dtype expected; } cases[] = {
        { CSR("", "2147483647,0", "2", "[1,2]"), TN_INT32 },
        { CSR("", "2147483648,0", "2", "[1,2]"), TN_INT64 },
        { CSR("\"tenon\":{\"index\":\"int64\"},", "2,0", "2", "[1,2]"), TN_INT64 },
        { CSR("\"tenon\":{\"index\":\"int32\"},", "2,0", "2", "[1,2]"), TN_INT32 },
    };
    for (size_t i = 0; i < 4; i++) {
        tn_file *f = open_text(cases[i].json);
        const tn_tensor *t = tn_file_tensor(f, 0);
        CHECK(t->parts[1].array.dtype == cases[i].expected && t->parts[2].array.dtype == cases[i].expected);
        tn_close(f);
    }
    check_refused(CSR("\"tenon\":{\"index\":\"int32\"},", "2147483648,0", "2", "[1,2]"), TN_ERR_UNSUPPORTED,
                  "tensor \"s\": tenon.index: expected int64 but found int32", 0);
    check_refused(CSR("\"tenon\":{\"index\":\"u8\"},", "2,0", "2", "[1,2]"), TN_ERR_UNSUPPORTED,
                  "tensor \"s\": tenon.index: expected int64 or int32 but found uint8", 0);
}

static void layout_and_metadata_are_read_with_it(void)
{
    tn_file *f = open_text(
        "[" HEAD
        "\"shape\":{\"dimensions\":[2,2],\"layout\":\"RC\"},\"metadata\":{\"a\":\"b\"},\"format\":\"COO\","
        "\"nnz\":0,\"indices\":{\"data\":[]},\"values\":{\"dtype\":\"FLOAT32\",\"data\":[]},"
        "\"tenon\":{\"file_metadata\":{\"c\":\"d\"}}}]");
    const tn_tensor *t = tn_file_tensor(f, 0);
    size_t n;
    assert_string_equal(t->layout, "RC");
    assert_string_equal(t->meta[0].text, "b");
    assert_string_equal(tn_file_meta(f, &n)->text, "d");
    tn_close(f);
}

/* A type holds what its document says or the document is bad. */
static void values_that_are_none_of_the_type_are_refused(void)
{
    static const struct { const char *type, *value; tn_status status; const char *text; } bad[] = {
        { "INT8", "3.5", TN_ERR_CORRUPT, "values.data[1]: " },
        { "INT8", "128", TN_ERR_CORRUPT, "values.data[1]: expected a value of INT8 but found 128" },
        { "UINT8", "-1", TN_ERR_CORRUPT, "values.data[1]: " },
        { "INT64", "9223372036854775808", TN_ERR_LIMIT, "values.data[1]: " },
        { "UINT64", "18446744073709551616", TN_ERR_LIMIT, "values.data[1]: " },
        { "FLOAT64", "1e400", TN_ERR_LIMIT, "values.data[1]: " },
        { "FLOAT32", "1e400", TN_ERR_CORRUPT, "values.data[1]: expected a value of FLOAT32 but found 1e400" },
        { "FLOAT32", "3.5e38", TN_ERR_CORRUPT,
          "values.data[1]: expected a value of FLOAT32 but found 3.5e38" },
        { "FLOAT16", "65520", TN_ERR_CORRUPT, "values.data[1]: expected a value of FLOAT16 but found 65520" },
        { "FLOAT32", "\"nan\"", TN_ERR_CORRUPT, "values.data[1]: " },
        { "FLOAT32", "null", TN_ERR_CORRUPT, "values.data[1]: " },
        { "tenon:bool", "1", TN_ERR_CORRUPT, "values.data[1]: " },
        { "tenon:complex64", "[1]", TN_ERR_CORRUPT, "values.data[1]" },
        { "tenon:float4_e2m1", "\"Infinity\"", TN_ERR_CORRUPT,
          "values.data[1]: expected a value of float4_e2m1" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[400];
        const char *first = strcmp(bad[i].type, "tenon:bool") == 0 ? "true"
                            : strstr(bad[i].type, "complex")       ? "[1,2]"
                                                                   : "1";
        snprintf(text, sizeof text,
                 HEAD "\"format\":\"COO\",\"shape\":[4],\"nnz\":2,\"indices\":{\"data\":[[0],[1]]},"
                      "\"values\":{\"dtype\":\"%s\",\"data\":[%s,%s]}}",
                 bad[i].type, first, bad[i].value);
        size_t at = strlen(text) - strlen(bad[i].value) - strlen("]}}");
        check_refused(text, bad[i].status, bad[i].text, at);
    }
}

static void what_contradicts_itself_is_refused(void)
{
    static const struct { const char *members, *text;
    } bad[] = {
        { "\"shape\":[2,2],\"format\":\"COO\",\"nnz\":1,\"indices\":{\"data\":[[0,2]]},\"values\":{\"dtype\":"
          "\"INT8\",\"data\":[1]}",
          "tensor \"s\": indices.data[0][1]: expected an index in [0, 2) but found 2" },
        { "\"shape\":[3000000000],\"format\":\"COO\",\"nnz\":1,\"indices\":{\"dtype\":\"INT32\",\"data\":[["
          "2147483648]]},"
          "\"values\":{\"dtype\":\"INT8\",\"data\":[1]}",
          "tensor \"s\": indices.data[0][0]: expected an index in [0, 2147483648)" },
        { "\"shape\":[2,2],\"format\":\"COO\",\"nnz\":2,\"indices\":{\"data\":[[0,1]]},\"values\":{\"dtype\":"
          "\"INT8\",\"data\":[1]}",
          "tensor \"s\": nnz: expected 1" },
        { "\"shape\":[2,2,2],\"format\":\"CSR\",\"row_pointers\":[0,0,0,0,0],\"column_indices\":[],"
          "\"values\":[]",
          "tensor \"s\": shape: expected two dimensions for CSR but found 3" },
        { "\"shape\":[2,2],\"format\":\"CSR\",\"row_pointers\":[0,2,1],\"column_indices\":[0],\"values\":[1]",
          "tensor \"s\": row_pointers[2]: expected at least the 2 before it but found 1" },
        { "\"shape\":[],\"format\":\"COO\",\"nnz\":0,\"indices\":{\"data\":[]},\"values\":{\"dtype\":"
          "\"INT8\",\"data\":[]}",
          "tensor \"s\": shape: expected at least one dimension" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[400];
        snprintf(text, sizeof text, HEAD "%s}", bad[i].members);
        check_refused(text, TN_ERR_CORRUPT, bad[i].text, 0);
    }
}

/* ---- writing ---- */

enum { MOST = 16 };

typedef struct sparse {
    tn_form        form;
    tn_dtype       dtype, index;
    uint32_t       rank;
    int64_t        shape[4], n;
    const void    *values, *indices, *pointers;
    const tn_meta *meta;
} sparse;

static uint32_t parts_of(const sparse *s, int64_t extents[3], tn_part parts[3])
{
    bool coo = s->form == TN_FORM_COO;
    extents[0] = s->n;
    extents[1] = s->rank;
    extents[2] = coo ? 0 : s->shape[0] * (s->rank > 2 ? s->shape[1] : 1) + 1;
    parts[0] = (tn_part){ .role = "values", .array = { s->dtype, 1, extents, NULL }, .data = s->values };
    parts[1] = (tn_part){ .role = "indices", .array = { s->index, coo ? 2 : 1, extents, NULL },
                          .data = s->indices };
    parts[2] = (tn_part){ .role = "indptr", .array = { s->index, 1, extents + 2, NULL },
                          .data = s->pointers };
    return coo ? 2 : 3;
}

static tn_status try_sparse(const char *name, const sparse *s, tn_error *err)
{
    int64_t extents[3];
    tn_part parts[3];
    uint32_t n = parts_of(s, extents, parts);
    tn_tensor t = { .name = "s", .form = s->form, .dtype = s->dtype, .rank = s->rank, .shape = s->shape,
                    .parts = parts,
                    .nparts = n, .meta = s->meta, .nmeta = s->meta ? 1 : 0 };
    return try_write_tensor(name, (tn_create_options){ 0 }, &t, err);
}

static void write_sparse(const char *name, const sparse *s)
{
    tn_error err = { .text = "" };
    check_status(try_sparse(name, s, &err), &err, TN_OK, "");
}

static uint64_t index_of(const tn_part *p, uint64_t i)
{
    return tn_code_get(p->data, i, tn_dtype_get(p->array.dtype)->bits);
}

/* Every element bit for bit; what follows the last one in its byte does not matter. */
static void check_same_values(const tn_tensor *t, const sparse *s)
{
    const tn_dtype_info *type = tn_dtype_get(s->dtype);
    unsigned bits = type->kind == TN_KIND_COMPLEX ? type->bits / 2u : type->bits;
    for (uint64_t i = 0; i < (uint64_t)s->n * (type->bits / bits); i++)
        if (tn_code_get(t->parts[0].data, i, bits) != tn_code_get(s->values, i, bits))
            fail_msg("%s, value %llu: expected 0x%llx but found 0x%llx", type->name, (unsigned long long)i,
                     (unsigned long long)tn_code_get(s->values, i, bits),
                     (unsigned long long)tn_code_get(t->parts[0].data, i, bits));
}

static void check_comes_back(const char *name, const sparse *s)
{
    int64_t extents[3];
    tn_part parts[3];
    uint32_t n = parts_of(s, extents, parts);
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_find(f, "s");
    CHECK(t->form == s->form);
    CHECK(t->dtype == s->dtype && t->rank == s->rank &&
          memcmp(t->shape, s->shape, s->rank * sizeof *s->shape) == 0);
    CHECK(t->nparts == n && t->parts[0].array.shape[0] == s->n);
    check_same_values(t, s);
    for (uint32_t k = 1; k < n; k++) {
        uint64_t count;
        CHECK(t->parts[k].array.dtype == s->index);
        CHECK(tn_shape_count(parts[k].array.rank, parts[k].array.shape, &count) == TN_OK);
        for (uint64_t i = 0; i < count; i++)
            CHECK(index_of(&t->parts[k], i) == index_of(&parts[k], i));
    }
    tn_close(f);
}

/* Bits that a number can tell: with the one NaN, and without what tf32 and bool do not look at. */
static void make_plain(tn_dtype dtype, uint8_t *values, size_t n)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    if (type->kind == TN_KIND_COMPLEX) {
        n *= 2;
        type = tn_dtype_get(type->bits == 64 ? TN_FLOAT32 : TN_FLOAT64);
    }
    const tn_encode_rules rules = tn_encode_rules_for(type, NULL);
    for (size_t i = 0; i < n; i++) {
        unsigned flags = 0;
        tn_number x = tn_number_decode(type, tn_code_get(values, i, type->bits));
        if (x.class == TN_NUMBER_NAN)
            x = (tn_number){ .class = TN_NUMBER_NAN, .significand = UINT64_C(1) << 63 };
        tn_code_put(values, i, type->bits, tn_number_encode(type, &rules, x, 0, &flags));
    }
}

static void every_type_comes_back(void)
{
    static const int32_t indices[] = { 0, 1, 0, 3, 1, 0, 1, 1, 2, 0, 2, 3, 3, 0 },
    columns[] = { 1, 3, 0, 1, 0, 3, 0 };
    static const int32_t pointers[] = { 0, 2, 4, 6, 7 };
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++) {
        uint8_t values[7 * 16];
        for (size_t i = 0; i < sizeof values; i++)
            values[i] = (uint8_t)(i * 151 + 7 * d);
        make_plain(d, values, 7);
        sparse coo = { TN_FORM_COO, d, TN_INT32, 2, { 4, 5 }, 7, values, indices, NULL, NULL };
        sparse csr = { TN_FORM_CSR, d, TN_INT32, 2, { 4, 5 }, 7, values, columns, pointers, NULL };
        write_sparse("coo.json", &coo);
        check_comes_back("coo.json", &coo);
        write_sparse("csr.json", &csr);
        check_comes_back("csr.json", &csr);
    }
    CHECK(count_entries(folder) == 2);          /* no data beside them */
}

/* All codes of 16 bits, but for those of NaN with a payload or a sign. */
static void every_number_of_16_bits_comes_back(void)
{
    static const tn_dtype types[] = { TN_FLOAT16, TN_BFLOAT16, TN_INT16, TN_UINT16 };
    enum { CODES = 65536 };
    uint16_t *values = malloc(CODES * sizeof *values);
    int32_t *indices = malloc(CODES * sizeof *indices);
    assert_non_null(values);
    assert_non_null(indices);
    for (size_t k = 0; k < 4; k++) {
        for (int i = 0; i < CODES; i++) {
            values[i] = (uint16_t)i;
            indices[i] = i;
        }
        make_plain(types[k], (uint8_t *)values, CODES);
        sparse s = { TN_FORM_COO, types[k], TN_INT32, 1, { CODES }, CODES, values, indices, NULL, NULL };
        write_sparse("all.json", &s);
        check_comes_back("all.json", &s);
    }
    free(values);
    free(indices);
}

static void numbers_at_the_ends_come_back(void)
{
    static const double f64[] = { 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -0.0, 0.1, 1.0 / 3,
                                  (double)INFINITY, -(double)INFINITY, (double)NAN, 9007199254740993.0,
                                  123456789012345680.0, 0 };
    static const float f32[] = { 1e-45f, 1.17549435e-38f, 3.40282347e38f, -0.0f, 0.1f, 1.0f / 3, INFINITY,
                                 -INFINITY, NAN,
                                 16777216.0f, 1e10f, 0 };
    static const int64_t i64[] = { INT64_MIN, INT64_MAX, -1, 0, 9007199254740993, -9007199254740993, 1, 2, 3,
                                   4, 5, 6 };
    static const uint64_t u64[] = { UINT64_MAX, UINT64_MAX - 1, 9007199254740993, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    static const struct { tn_dtype dtype; const void *values; } all[] = {
        { TN_FLOAT64, f64 }, { TN_FLOAT32, f32 }, { TN_INT64, i64 }, { TN_UINT64, u64 },
        { TN_COMPLEX64, f32 }, { TN_COMPLEX128, f64 },
    };
    int64_t indices[12];
    for (int i = 0; i < 12; i++)
        indices[i] = INT64_MAX - 13 + i;
    for (size_t k = 0; k < 6; k++) {
        int64_t n = k < 4 ? 12 : 6;
        sparse s = { TN_FORM_COO, all[k].dtype, TN_INT64, 1, { INT64_MAX }, n, all[k].values, indices, NULL,
                     NULL };
        write_sparse("e.json", &s);
        check_comes_back("e.json", &s);
    }
}

static void every_rank_and_index_type_comes_back(void)
{
    static const int64_t wide[] = { 1, 0, 2, 3, 0, 1, 1, 0 };
    static const int32_t narrow[] = { 1, 0, 2, 3, 0, 1, 1, 0 };
    static const uint8_t values[] = { 1, 2 };
    for (uint32_t rank = 1; rank <= 4; rank++)
        for (int64_t n = 0; n <= 2; n++)
            for (int k = 0; k < 2; k++) {
                sparse s = { TN_FORM_COO, TN_UINT8, k ? TN_INT64 : TN_INT32, rank, { 2, 2, 3, 4 }, n, values,
                             k ? (const void *)wide : narrow,
                             NULL, NULL };
                s.shape[0] = rank == 1 ? 9 : 4;
                s.shape[1] = 4;
                s.shape[2] = 4;
                write_sparse("r.json", &s);
                check_comes_back("r.json", &s);
            }
}

static void empty_matrices_come_back(void)
{
    static const int64_t none[4] = { 0 };
    static const struct { int64_t shape[2]; } shapes[] = { { { 0, 0 } }, { { 0, 5 } }, { { 3, 0 } },
                                                           { { 3, 5 } } };
    for (size_t i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            sparse s = { k ? TN_FORM_COO : TN_FORM_CSR, TN_FLOAT32, k ? TN_INT32 : TN_INT64, 2,
                         { shapes[i].shape[0], shapes[i].shape[1] }, 0,
                         none, none, none, NULL };
            write_sparse("n.json", &s);
            check_comes_back("n.json", &s);
        }
}

static void a_document_is_written_as_the_specification_says(void)
{
    static const float values[] = { 1.5f, -2, 0.1f };
    static const int64_t rows[] = { 0, 1, 1, 0, 2, 3 }, columns[] = { 1, 0, 3 }, pointers[] = { 0, 1, 2, 3 };
    static const tn_meta meta = { .key = "from", .text = "x" };
    const sparse coo = { TN_FORM_COO, TN_FLOAT32, TN_INT64, 2, { 3, 4 }, 3, values, rows, NULL, &meta };
    const sparse csr = { TN_FORM_CSR, TN_FLOAT32, TN_INT64, 2, { 3, 4 }, 3, values, columns, pointers, NULL };
    write_sparse("coo.json", &coo);
    check_file_text(
        in_folder("coo.json").text,
        "{\n  \"version\": \"WIA-AI-011-v1.0\",\n  \"tensor_id\": "
        "\"ebf676b8-ff5f-584f-b579-cf8ccdae67dd\",\n  \"name\": \"s\",\n"
        "  \"shape\": {\n    \"dimensions\": [3, 4],\n    \"symbolic\": false\n  },\n"
        "  \"dtype\": {\n    \"base_type\": \"FLOAT32\",\n    \"quantization\": null,\n    \"byte_order\": "
        "\"little_endian\"\n  },\n"
        "  \"metadata\": {\"from\":\"x\"},\n  \"format\": \"COO\",\n  \"nnz\": 3,\n"
        "  \"indices\": {\n    \"dtype\": \"INT64\",\n    \"data\": [[0, 1], [1, 0], [2, 3]]\n  },\n"
        "  \"values\": {\n    \"dtype\": \"FLOAT32\",\n    \"data\": [1.5, -2.0, 0.1]\n  }\n}\n");
    write_sparse("csr.json", &csr);
    check_file_text(in_folder("csr.json").text,
                    "{\n  \"version\": \"WIA-AI-011-v1.0\",\n  \"tensor_id\": "
                    "\"3fab5f86-655b-5f91-b047-ef14514e4983\",\n  \"name\": \"s\",\n"
                    "  \"shape\": {\n    \"dimensions\": [3, 4],\n    \"symbolic\": false\n  },\n"
                    "  \"dtype\": {\n    \"base_type\": \"FLOAT32\",\n    \"quantization\": null,\n    "
                    "\"byte_order\": \"little_endian\"\n  },\n"
                    "  \"metadata\": {},\n  \"format\": \"CSR\",\n  \"row_pointers\": [0, 1, 2, 3],\n  "
                    "\"column_indices\": [1, 0, 3],\n"
                    "  \"values\": [1.5, -2.0, 0.1],\n  \"tenon\": {\"index\":\"int64\"}\n}\n");
}

/* ---- what is not written ---- */

static void check_not_written(const sparse *s, tn_status expected, const char *text)
{
    tn_error err = { .text = "" };
    tn_status status = try_sparse("no.json", s, &err);
    check_status(status, &err, expected, text);
    walk_error(&err, status);
    CHECK(count_entries(folder) == 0);
}

static void what_the_specification_has_no_words_for_is_not_written(void)
{
    static const uint64_t indices[8] = { 0 };
    static const uint8_t values[1] = { 1 };
    const sparse coo = { TN_FORM_COO, TN_UINT8, TN_UINT64, 2, { 2, 2 }, 1, values, indices, NULL, NULL };
    const sparse csr = { TN_FORM_CSR, TN_UINT8, TN_UINT32, 2, { 2, 2 }, 0, values, indices, indices, NULL };
    const sparse batch = { TN_FORM_CSR, TN_UINT8, TN_INT32, 3, { 1, 2, 2 }, 0, values, indices, indices,
                           NULL };
    const sparse scalar = { TN_FORM_COO, TN_UINT8, TN_INT32, 0, { 0 }, 1, values, indices, NULL, NULL };
    check_not_written(&coo, TN_ERR_UNSUPPORTED,
                      "tensor \"s\": a descriptor has indices of int32 or int64 but these are uint64 "
                      "(form coo,index=int64)");
    check_not_written(&csr, TN_ERR_UNSUPPORTED, "but these are uint32 (form csr,index=int64)");
    check_not_written(
        &batch, TN_ERR_UNSUPPORTED,
        "tensor \"s\": a descriptor has CSR data of two dimensions but this one has 3 (form coo)");
    check_not_written(&scalar, TN_ERR_UNSUPPORTED,
                      "tensor \"s\": a descriptor has indices of at least one dimension");
}

static void bits_that_a_number_does_not_tell_are_not_written(void)
{
    static const int32_t indices[] = { 0, 1, 2 };
    static const struct { tn_dtype dtype; uint64_t second; const char *text; } bad[] = {
        { TN_FLOAT32, 0x7fc00001,
          "entry 1: expected the one NaN that a descriptor can express but found the bits 0x7fc00001" },
        { TN_FLOAT32, 0xffc00000, "found the bits 0xffc00000, which a dense tensor keeps" },
        { TN_FLOAT64, UINT64_C(0x7ff0000000000001), "found the bits 0x7ff0000000000001" },
        { TN_FLOAT16, 0xfe00, "found the bits 0xfe00" },
        { TN_FLOAT8_E4M3FN, 0xff, "found the bits 0xff" },
        { TN_TF32, 0x3f800001, "entry 1: expected the bits of its number but found the bits 0x3f800001" },
        { TN_BOOL, 2, "entry 1: expected the bits of its number but found the bits 0x2" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t values[24] = { 0 };
        tn_code_put(values, 1, tn_dtype_get(bad[i].dtype)->bits, bad[i].second);
        sparse s = { TN_FORM_COO, bad[i].dtype, TN_INT32, 1, { 3 }, 3, values, indices, NULL, NULL };
        check_not_written(&s, TN_ERR_LOSS, bad[i].text);
    }
    const float complex_values[] = { 1, 2, 3, -NAN };
    sparse s = { TN_FORM_COO, TN_COMPLEX64, TN_INT32, 1, { 3 }, 2, complex_values, indices, NULL, NULL };
    check_not_written(&s, TN_ERR_LOSS, "tensor \"s\": entry 1: expected the one NaN");
}

static void what_could_not_be_read_back_is_not_written(void)
{
    static const int32_t indices[] = { 0, 0, 1, 7 }, pointers[] = { 0, 2, 1 };
    static const uint8_t values[] = { 1, 2 };
    const sparse coo = { TN_FORM_COO, TN_UINT8, TN_INT32, 2, { 2, 2 }, 2, values, indices, NULL, NULL };
    const sparse csr = { TN_FORM_CSR, TN_UINT8, TN_INT32, 2, { 2, 2 }, 1, values, indices, pointers, NULL };
    check_not_written(&coo, TN_ERR_UNSUPPORTED,
                      "tensor \"s\": indices.data[1][1]: expected an index in [0, 2) but found 7");
    check_not_written(&csr, TN_ERR_UNSUPPORTED,
                      "tensor \"s\": row_pointers[2]: expected at least the 2 before it but found 1");
}

/* Known from the declaration alone: no byte is asked for. */
static void a_document_that_would_be_too_long_is_refused_at_once(void)
{
    static const struct { tn_form form; int64_t n, rows; } long_ones[] = {
        { TN_FORM_COO, 10000000, 1 }, { TN_FORM_CSR, 20000000, 1 }, { TN_FORM_CSR, 0, 40000000 },
        { TN_FORM_COO, INT64_C(1) << 50, INT64_C(1) << 30 },
    };
    for (size_t i = 0; i < 4; i++) {
        sparse s = { long_ones[i].form, TN_UINT8, TN_INT32, 2, { long_ones[i].rows, INT64_C(1) << 30 },
                     long_ones[i].n, NULL, NULL,
                     NULL, NULL };
        check_not_written(
            &s, TN_ERR_LIMIT,
            "entries the descriptors would take more than the 100000000 bytes that can be read back");
    }
}

/* ---- with other tensors ---- */

static void add_sparse(tn_writer *w, const char *name, const sparse *s)
{
    int64_t extents[3];
    tn_part parts[3];
    tn_error err = { .text = "" };
    uint32_t n = parts_of(s, extents, parts);
    tn_tensor t = { .name = name, .form = s->form, .dtype = s->dtype, .rank = s->rank, .shape = s->shape,
                    .parts = parts, .nparts = n };
    check_status(tn_writer_add(w, &t, &err), &err, TN_OK, "");
}

static const int32_t some_rows[] = { 0, 1, 1, 0 }, some_pointers[] = { 0, 1, 2 }, some_columns[] = { 1, 0 };
static const float some_values[] = { 1.5f, -0.1f };
static const sparse some_coo = { TN_FORM_COO, TN_FLOAT32, TN_INT32, 2, { 2, 2 }, 2, some_values, some_rows,
                                 NULL,
                                 NULL };
static const sparse some_csr = { TN_FORM_CSR, TN_FLOAT32, TN_INT32, 2, { 2, 2 }, 2, some_values, some_columns,
                                 some_pointers, NULL };

/* Two sparse ones, a dense one, one with scales. */
static void write_mixture(const char *name)
{
    const int64_t shape[] = { 4 };
    const float scale = 0.1f;
    const tn_scaling scaling = { .axis = -1, .range = { -8, 8 } };
    const simple dense = { .name = "dense", .dtype = TN_UINT8, .rank = 1, .shape = { 4 },
                           .data = "\1\2\3\4" };
    const tn_part parts[] = {
        { .role = "data", .array = { TN_INT8, 1, shape, NULL }, .data = "\5\6\7\10" },
        { .role = "scale", .array = { TN_FLOAT32, 0, NULL, NULL }, .data = &scale },
    };
    const tn_tensor scaled = { .name = "scaled", .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = 1,
                               .shape = shape, .parts = parts,
                               .nparts = 2, .scaling = &scaling };
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder(name).text, NULL, &w, NULL) == TN_OK);
    add_sparse(w, "coo", &some_coo);
    CHECK(add_simple(w, &dense, NULL) == TN_OK);
    add_sparse(w, "csr", &some_csr);
    check_status(tn_writer_add(w, &scaled, &err), &err, TN_OK, "");
    check_status(tn_writer_finish(w, &err), &err, TN_OK, "");
}

static void sparse_tensors_stand_beside_others(void)
{
    write_mixture("m.json");
    size_t n;
    free(load_file(in_folder("m.bin").text, &n));
    CHECK(n == 256 + 4);
    tn_file *f = open_file("m.json");
    CHECK(tn_file_shards(f) == 2 && tn_file_count(f) == 4);
    check_part(f, &tn_file_find(f, "coo")->parts[0], TN_FLOAT32, some_values, 8);
    check_part(f, &tn_file_find(f, "coo")->parts[1], TN_INT32, some_rows, 16);
    check_part(f, &tn_file_find(f, "csr")->parts[2], TN_INT32, some_pointers, 12);
    check_part(f, &tn_file_find(f, "scaled")->parts[1], TN_FLOAT32, (float[]){ 0.1f }, 4);
    CHECK(memcmp(tn_file_find(f, "dense")->parts[0].data, "\1\2\3\4", 4) == 0);
    CHECK(memcmp(tn_file_find(f, "scaled")->parts[0].data, "\5\6\7\10", 4) == 0);
    tn_close(f);
}

static void sparse_tensors_go_through_other_containers(void)
{
    write_mixture("m.json");
    must_convert("m.json", "m.zt", (wish){ 0 });
    must_convert("m.zt", "o.json", (wish){ 0 });
    check_same_files(in_folder("m.json").text, in_folder("o.json").text);
    check_same_files(in_folder("m.bin").text, in_folder("o.bin").text);
    write_sparse("s.json", &some_csr);
    must_convert("s.json", "s.safetensors", (wish){ 0 });
    must_convert("s.safetensors", "t.json", (wish){ 0 });
    check_same_files(in_folder("s.json").text, in_folder("t.json").text);
}

static void pieces_give_the_same_document(void)
{
    sparse streamed = some_csr;
    tn_writer *w;
    write_sparse("whole.json", &some_csr);
    streamed.values = streamed.indices = streamed.pointers = NULL;
    CHECK(tn_create(in_folder("pieces.json").text, NULL, &w, NULL) == TN_OK);
    add_sparse(w, "s", &streamed);
    const void *const data[] = { some_values, some_columns, some_pointers };
    const size_t sizes[] = { sizeof some_values, sizeof some_columns, sizeof some_pointers };
    for (size_t k = 0; k < 3; k++)
        for (size_t at = 0; at < sizes[k]; at += 2)
            CHECK(tn_writer_write(w, 0, k, (const uint8_t *)data[k] + at, 2, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    check_same_files(in_folder("whole.json").text, in_folder("pieces.json").text);
}

/* NAME.bin is not needed, so it is neither made nor touched. */
static void data_that_is_not_needed_is_left_alone(void)
{
    put_file("s.bin", "old");
    write_sparse("s.json", &some_coo);
    CHECK(count_entries(folder) == 2 && file_is("s.bin", "old"));
    check_comes_back("s.json", &some_coo);
}

static void a_dry_run_tells_about_how_long_it_would_be(void)
{
    write_mixture("m.json");
    check_dry_run("m.json", "out.json", 200);
    CHECK(count_entries(folder) == 4);
}

static void a_dry_run_knows_every_type(void)
{
    static const int32_t indices[] = { 0, 1, 2 };
    static const uint8_t values[3 * 16] = { 0 };
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++) {
        const sparse s = { TN_FORM_COO, d, TN_INT32, 1, { 5 }, 3, values, indices, NULL, NULL };
        tn_create_options create = { .size = sizeof create, .replace = true };
        tn_convert_options options = { .size = sizeof options, .create = &create, .dry_run = true };
        tn_convert_result result;
        tn_error err = { .text = "" };
        write_sparse("s.json", &s);
        tn_file *f = open_file("s.json");
        check_status(tn_convert(f, in_folder("o.json").text, &options, &result, &err), &err, TN_OK, "");
        CHECK(result.bytes_out >= tn_file_size(f));
        tn_close(f);
    }
    CHECK(count_entries(folder) == 1);
}

/* ---- damage ---- */

static const char both[] =
    "[" HEAD "\"shape\":{\"dimensions\":[3,4],\"layout\":\"RC\"},\"dtype\":{\"base_type\":\"FLOAT32\"},"
             "\"metadata\":{\"a\":1},"
    "\"format\":\"COO\",\"nnz\":3,\"indices\":{\"dtype\":\"INT32\",\"data\":[[0,1],[1,0],[2,3]]},"
    "\"values\":{\"dtype\":\"FLOAT32\",\"data\":[1.5,\"-Infinity\",2e-3]}},"
    "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"c\",\"format\":\"CSR\",\"shape\":[2,3],\"row_pointers\":[0,"
    "1,3],"
    "\"column_indices\":[2,0,1],\"values\":[1,-2,0.25],\"tenon\":{\"index\":\"int64\"}}]";

/* What can be opened can be described, and the description is right. */
static void describe_all(const tn_file *f)
{
    tn_descriptors *set;
    tn_error err = { .text = "" };
    tn_status status = tn_describe(f, NULL, &set, &err);
    if (status) {
        walk_error(&err, status);
        return;
    }
    for (size_t i = 0; i < tn_descriptors_count(set); i++) {
        size_t wrong = 1;
        CHECK(tn_descriptor_check(tn_descriptors_at(set, i), NULL, &wrong, NULL) == TN_OK && wrong == 0);
    }
    tn_descriptors_free(set);
}

static bool try_document(const uint8_t *json, size_t n)
{
    tn_file *f;
    if (walk_open(json, n, "raw", &f))
        return false;
    describe_all(f);
    tn_close(f);
    return true;
}

static void every_truncation_is_refused(void)
{
    for (size_t n = 0; n < sizeof both; n++) {
        uint8_t *copy = exact_copy(both, n);
        CHECK(try_document(copy, n) == (n == sizeof both - 1));
        free(copy);
    }
}

static void a_changed_byte_anywhere_does_no_harm(void)
{
    size_t n = sizeof both - 1, refused = 0;
    for (size_t i = 0; i < n; i++)
        for (unsigned change = 1; change < 256; change <<= 1) {
            uint8_t *copy = exact_copy(both, n);
            copy[i] ^= (uint8_t)change;
            refused += !try_document(copy, n);
            free(copy);
        }
    CHECK(refused > n);
}

static void a_missing_byte_anywhere_does_no_harm(void)
{
    size_t n = sizeof both - 1, refused = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = exact_copy(both, n - 1);
        memcpy(copy + i, both + i + 1, n - 1 - i);
        refused += !try_document(copy, n - 1);
        free(copy);
    }
    CHECK(refused > n / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(coo_data_of_a_document_is_a_tensor),
        TEST(indices_without_a_type_are_int64),
        TEST(csr_data_of_a_document_is_a_tensor),
        TEST(csr_values_have_the_type_of_the_descriptor),
        TEST(csr_indices_are_as_wide_as_they_must_be),
        TEST(layout_and_metadata_are_read_with_it),
        TEST(values_that_are_none_of_the_type_are_refused),
        TEST(what_contradicts_itself_is_refused),
        IN_FOLDER(every_type_comes_back),
        IN_FOLDER(every_number_of_16_bits_comes_back),
        IN_FOLDER(numbers_at_the_ends_come_back),
        IN_FOLDER(every_rank_and_index_type_comes_back),
        IN_FOLDER(empty_matrices_come_back),
        IN_FOLDER(a_document_is_written_as_the_specification_says),
        IN_FOLDER(what_the_specification_has_no_words_for_is_not_written),
        IN_FOLDER(bits_that_a_number_does_not_tell_are_not_written),
        IN_FOLDER(what_could_not_be_read_back_is_not_written),
        IN_FOLDER(a_document_that_would_be_too_long_is_refused_at_once),
        IN_FOLDER(sparse_tensors_stand_beside_others),
        IN_FOLDER(sparse_tensors_go_through_other_containers),
        IN_FOLDER(pieces_give_the_same_document),
        IN_FOLDER(data_that_is_not_needed_is_left_alone),
        IN_FOLDER(a_dry_run_tells_about_how_long_it_would_be),
        IN_FOLDER(a_dry_run_knows_every_type),
        TEST(every_truncation_is_refused),
        TEST(a_changed_byte_anywhere_does_no_harm),
        TEST(a_missing_byte_anywhere_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
