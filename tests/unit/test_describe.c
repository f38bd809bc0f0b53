/* Descriptors of the tensors in any container. */
#include "support.h"
#include "format_option.h"

#include "files.h"
#include "make.h"

#include "store/file.h"

#include <tenon/descriptor.h>

static const uint8_t *noise(void)
{
    static uint8_t bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 256 * 7);
    return bytes;
}

static void report(void *context, const tn_wia_finding *finding)
{
    (void)context;
    if (!finding->remark)
        fail_msg("%s: %s", finding->path, finding->text);
}

/* All tensors, or one; every descriptor passes the check. */
static tn_descriptors *describe(const tn_file *f, const tn_tensor *t)
{
    tn_descriptors *set;
    tn_error err = { .text = "" };
    tn_check_options options = { .size = sizeof options, .report = report };
    size_t wrong;
    if (tn_describe(f, t, &set, &err))
        fail_msg("%s", line_of(&err));
    for (size_t i = 0; i < tn_descriptors_count(set); i++)
        CHECK(tn_descriptor_check(tn_descriptors_at(set, i), &options, &wrong, NULL) == TN_OK && wrong == 0);
    return set;
}

static const char *own_of(const tn_descriptor *d)
{
    CHECK(d->nextra == 1 && d->extra[0].path[0] == '\0');
    assert_string_equal(d->extra[0].key, "tenon");
    return d->extra[0].json;
}

static void raw_tensors_are_described_in_place(void)
{
    const simple s[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 5 }, .data = noise() },
        { .name = "b", .dtype = TN_BOOL, .rank = 1, .shape = { 3 }, .data = noise() },
    };
    write_file("x.zt", (tn_create_options){ .align = 256 }, s, 2);
    tn_file *f = open_file("x.zt");
    tn_descriptors *set = describe(f, NULL);
    CHECK(tn_descriptors_count(set) == 2);
    tn_close(f);                        /* a description lives on without its file */
    const tn_descriptor *a = tn_descriptors_at(set, 0), *b = tn_descriptors_at(set, 1);
    assert_string_equal(a->version, TN_WIA_VERSION);
    assert_string_equal(a->name, "a");
    CHECK(a->dtype == TN_FLOAT32 && a->rank == 2 && a->dimensions[1].value == 5 && !a->layout &&
          !a->symbolic);
    CHECK(a->offset_bytes == 256 && a->total_bytes == 316 && a->alignment == 256 &&
          a->strides[0].factor == 5);
    CHECK(a->is_contiguous && a->zero_copy_compatible && a->device.type == TN_DEVICE_CPU);
    assert_string_equal(own_of(a), "{\"file\":\"x.zt\",\"encoding\":\"raw\",\"offset\":256,\"size\":60}");
    assert_string_equal(b->base_type, "tenon:bool");
    CHECK(b->offset_bytes == 512 && b->alignment == 512);
    tn_descriptors_free(set);
}

static void other_tensors_are_described_as_buffers_of_their_own(void)
{
    const simple s = { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 5 }, .data = noise() };
    write_file("x.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &s, 1);
    tn_file *f = open_file("x.zt");
    tn_descriptors *set = describe(f, tn_file_tensor(f, 0));
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->offset_bytes == 0 && d->total_bytes == 60 && d->alignment == 256 && !d->zero_copy_compatible);
    CHECK(strstr(own_of(d), "\"encoding\":\"zstd\",\"offset\":64,"));
    tn_descriptors_free(set);
    tn_close(f);
    /* raw, but where no element may be used as it is */
    put_file("y.json", "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[3],\"dtype\":{\"base_type\":\"UINT16\"},"
             "\"memory\":{\"offset_bytes\":2,\"strides\":[2]}}");
    put_file("y.bin", "0123456789abcdef");
    f = open_file("y.json");
    set = describe(f, NULL);
    d = tn_descriptors_at(set, 0);
    CHECK(d->offset_bytes == 0 && d->total_bytes == 6 && d->strides[0].factor == 1 && d->is_contiguous);
    assert_string_equal(own_of(d), "{\"file\":\"y.bin\",\"encoding\":\"raw\",\"offset\":2,\"size\":10}");
    tn_descriptors_free(set);
    tn_close(f);
}

static void strides_byte_order_and_padding_are_described(void)
{
    static const char memory[] = "\"memory\":{\"strides\":[1,2]}}";
    char json[400];
    put_file("z.bin", "0123456789abcdef");
    for (int big = 0; big < 2; big++) {
        snprintf(json, sizeof json,
                 "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2,3],\"dtype\":{\"base_type\":\"UINT16\","
                 "\"byte_order\":\"%s\"},%s",
                 big ? "big_endian" : "little_endian", memory);
        put_file("z.json", json);
        tn_file *f = open_file("z.json");
        tn_descriptors *set = describe(f, NULL);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        CHECK(d->byte_order == TN_LITTLE_ENDIAN && d->zero_copy_compatible == !big &&
              d->is_contiguous == big);
        CHECK(d->strides[0].factor == (big ? 3 : 1) && d->strides[1].factor == (big ? 1 : 2));
        tn_descriptors_free(set);
        tn_close(f);
    }
    put_file("z.json", "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":{\"dimensions\":[2,3],\"layout\":\"RC\"},"
             "\"physical_shape\":[2,4],\"dtype\":{\"base_type\":\"UINT8\"}}");
    tn_file *f = open_file("z.json");
    tn_descriptors *set = describe(f, NULL);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    assert_string_equal(d->layout, "RC");
    CHECK(d->physical_shape[1] == 4 && d->padding.values[1] == 1 && d->padding.dims[1] &&
          !d->padding.dims[0]);
    CHECK(d->strides[0].factor == 4 && d->total_bytes == 8 && !d->is_contiguous);
    tn_descriptors_free(set);
    tn_close(f);
}

/* An int8 tensor of two channels, in any container. */
static void write_scaled(const char *name)
{
    const int64_t shape[] = { 3, 2 }, channels[] = { 2 };
    const tn_scaling scaling = { .axis = 1, .range = { -127, 127 } };
    const float scale[] = { 0.1f, 0.5f };
    const int32_t zero[] = { 7, -7 };
    const tn_meta meta = { .key = "k", .text = "v" };
    tn_part parts[] = {
        { .role = "data", .array = { TN_INT8, 2, shape, NULL }, .data = noise() },
        { .role = "scale", .array = { TN_FLOAT32, 1, channels, NULL }, .data = scale },
        { .role = "zero", .array = { TN_INT32, 1, channels, NULL }, .data = zero },
    };
    tn_tensor t = { .name = "q", .form = TN_FORM_SCALED, .dtype = TN_BFLOAT16, .rank = 2, .shape = shape,
                    .parts = parts,
                    .nparts = 3, .scaling = &scaling, .meta = &meta, .nmeta = 1 };
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder(name).text, NULL, &w, NULL) == TN_OK);
    if (tn_writer_add(w, &t, &err) || tn_writer_finish(w, &err))
        fail_msg("%s", line_of(&err));
}

static void quantization_is_described(void)
{
    static const char *const names[] = { "q.zt", "q.safetensors", "q.json" };
    for (size_t i = 0; i < 3; i++) {
        write_scaled(names[i]);
        tn_file *f = open_file(names[i]);
        tn_descriptors *set = describe(f, NULL);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        const tn_wia_quantization *q = &d->quantization;
        CHECK(d->dtype == TN_INT8 && q->scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC && q->has_axis &&
              q->channel_axis == 1);
        CHECK(q->nscales == 2 && q->scales[0] == 0.1 && q->scales[1] == 0.5 && q->nzero_points == 2);
        CHECK(q->zero_points[0] == 7 && q->zero_points[1] == -7 && q->has_range && q->range[0] == -127);
        assert_string_equal(d->metadata, "{\"k\":\"v\"}");
        CHECK(strstr(own_of(d), "{\"dtype\":\"bfloat16\",\"file\":"));
        tn_descriptors_free(set);
        tn_close(f);
    }
}

static void a_description_is_the_same_every_time(void)
{
    const simple s = { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 5 }, .data = noise() };
    char id[2][40];
    for (int i = 0; i < 2; i++) {
        write_file("x.safetensors", (tn_create_options){ .replace = true }, &s, 1);
        tn_file *f = open_file("x.safetensors");
        tn_descriptors *set = describe(f, NULL);
        snprintf(id[i], sizeof id[i], "%s", tn_descriptors_at(set, 0)->tensor_id);
        tn_descriptors_free(set);
        tn_close(f);
    }
    assert_string_equal(id[0], id[1]);
    CHECK(strlen(id[0]) == 36 && id[0][14] == '5');
}

static void bytes_in_memory_have_no_file(void)
{
    const simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 2 }, .data = noise() };
    size_t n;
    tn_file *f;
    write_file("x.zt", (tn_create_options){ 0 }, &s, 1);
    uint8_t *bytes = load_file(in_folder("x.zt").text, &n);
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    tn_descriptors *set = describe(f, NULL);
    assert_string_equal(own_of(tn_descriptors_at(set, 0)), "{\"encoding\":\"raw\",\"offset\":64,\"size\":2}");
    tn_descriptors_free(set);
    tn_close(f);
    free(bytes);
}

/* Descriptors in place, beside the very file under the name of its data, are
 * that file once more. */
static void descriptors_make_any_file_a_raw_one(void)
{
    const simple s[] = {
        { .name = "a", .dtype = TN_FLOAT16, .rank = 2, .shape = { 3, 5 }, .data = noise() },
        { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 9 }, .data = noise() + 64 },
        { .name = "none", .dtype = TN_UINT8, .rank = 1, .shape = { 0 }, .data = noise() },
    };
    char *json;
    size_t n;
    write_file("x.safetensors", (tn_create_options){ FILLER }, s, 3);
    tn_file *f = open_file("x.safetensors");
    tn_descriptors *set = describe(f, NULL);
    CHECK(tn_descriptors_write(tn_descriptors_at(set, 0), 3, true, &json, &n, NULL) == TN_OK);
    put_file("x.json", json);
    CHECK(link(in_folder("x.safetensors").text, in_folder("x.bin").text) == 0);
    tn_file *raw = open_file("x.json");
    require_same_tensors(f, raw);
    free(json);
    tn_descriptors_free(set);
    tn_close(raw);
    tn_close(f);
}

/* What is decoded when a file is opened lies nowhere in it. */
static void numbers_in_text_are_described_as_a_buffer_of_their_own(void)
{
    put_file("a.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n");
    tn_file *f = open_file("a.mtx");
    tn_descriptors *set = describe(f, NULL);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->offset_bytes == 0 && d->total_bytes == 32 && d->alignment == 256 && !d->zero_copy_compatible);
    assert_string_equal(own_of(d), "{\"file\":\"a.mtx\",\"encoding\":\"text\"}");
    tn_descriptors_free(set);
    tn_close(f);
}

/* ---- sparse tensors ---- */

static void check_sparse(const tn_wia_sparse *s, const char *format, tn_dtype index, const int64_t *indices,
                         size_t nindices)
{
    assert_string_equal(s->format, format);
    CHECK(s->index_type == index && s->nindices == nindices &&
          memcmp(s->indices, indices, nindices * sizeof *indices) == 0);
    CHECK(s->value_type == TN_FLOAT32 && s->nvalues == 2 && memcmp(s->values, (float[]){ 1.5f, -2 }, 8) == 0);
}

static void check_not_described(const tn_file *f, tn_status expected, const char *text)
{
    tn_descriptors *set = NULL;
    tn_error err = { .text = "" };
    tn_status status = tn_describe(f, NULL, &set, &err);
    CHECK(status == expected && !set);
    walk_error(&err, status);
    if (!strstr(line_of(&err), text))
        fail_msg("expected \"%s\" but found \"%s\"", text, line_of(&err));
    CHECK(tn_describe(f, tn_file_tensor(f, 0), &set, NULL) == expected);
}

static const float two_values[] = { 1.5f, -2 };

/* A file with one sparse tensor of two values. */
static tn_file *make_sparse(const char *name, tn_form form, tn_dtype index, const void *indices,
                            const void *pointers, uint32_t rank, const int64_t *shape)
{
    const int64_t extents[] = { 2, rank }, rows[] = { shape[0] * (rank > 2 ? shape[1] : 1) + 1 };
    const tn_part parts[] = {
        { .role = "values", .array = { TN_FLOAT32, 1, extents, NULL }, .data = two_values },
        { .role = "indices", .array = { index, pointers ? 1 : 2, extents, NULL }, .data = indices },
        { .role = "indptr", .array = { index, 1, rows, NULL }, .data = pointers },
    };
    const tn_tensor t = { .name = "s", .form = form, .dtype = TN_FLOAT32, .rank = rank, .shape = shape,
                          .parts = parts,
                          .nparts = pointers ? 3 : 2 };
    tn_create_options options = { .size = sizeof options, .drop_names = true };
    tn_writer *w;
    tn_error err = { .text = "" };
    tn_open_options open = { .size = sizeof open, .format = strstr(name, ".btf") ? "btf" : NULL };
    tn_file *f = NULL;
    CHECK(tn_create(in_folder(name).text, &options, &w, NULL) == TN_OK);
    if (tn_writer_add(w, &t, &err) || tn_writer_finish(w, &err) ||
        tn_open(in_folder(name).text, &open, &f, &err))
        fail_msg("%s: %s", name, line_of(&err));
    return f;
}

static void coo_tensors_are_described_with_their_data(void)
{
    const int64_t shape[] = { 3, 4 }, wide[] = { 0, 1, 2, 3 };
    const int32_t narrow[] = { 0, 1, 2, 3 };
    static const struct { const char *name; tn_dtype index, described; } files[] = {
        { "a.zt", TN_INT32, TN_INT32 }, { "b.zt", TN_INT64, TN_INT64 }, { "c.zt", TN_UINT32, TN_INT64 },
        { "d.btf", TN_UINT64, TN_INT64 },
    };
    for (size_t i = 0; i < 4; i++) {
        bool is_wide = files[i].index == TN_INT64 || files[i].index == TN_UINT64;
        tn_file *f = make_sparse(files[i].name, TN_FORM_COO, files[i].index,
                                 is_wide ? (const void *)wide : narrow,
                                 NULL, 2, shape);
        tn_descriptors *set = describe(f, NULL);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        tn_close(f);
        check_sparse(&d->sparse, "COO", files[i].described, wide, 4);
        CHECK(d->sparse.nnz == 2 && !d->has_memory && !d->nextra);
        tn_descriptors_free(set);
    }
}

/* An index of 32 bits may have its highest bit set. */
static void indices_keep_their_sign(void)
{
    const int64_t shape[] = { INT64_C(4000000000) }, expected[] = { 7, INT64_C(3000000000) };
    const uint32_t large[] = { 7, 3000000000 };
    tn_file *f = make_sparse("a.zt", TN_FORM_COO, TN_UINT32, large, NULL, 1, shape);
    tn_descriptors *set = describe(f, NULL);
    check_sparse(&tn_descriptors_at(set, 0)->sparse, "COO", TN_INT64, expected, 2);
    tn_descriptors_free(set);
    tn_close(f);
    f = make_sparse("b.zt", TN_FORM_COO, TN_INT32, large, NULL, 1, shape);
    check_not_described(f, TN_ERR_CORRUPT,
                        "indices.data[1][0]: expected an index in [0, 2147483648) but found -1294967296");
    tn_close(f);
}

static void csr_tensors_are_described_with_their_data(void)
{
    const int64_t shape[] = { 3, 4 }, wide[] = { 1, 3 }, wide_pointers[] = { 0, 1, 1, 2 };
    const int32_t narrow[] = { 1, 3 }, narrow_pointers[] = { 0, 1, 1, 2 };
    for (int i = 0; i < 2; i++) {
        tn_file *f = i ? make_sparse("a.zt", TN_FORM_CSR, TN_INT64, wide, wide_pointers, 2, shape)
                       : make_sparse("b.zt", TN_FORM_CSR, TN_INT32, narrow, narrow_pointers, 2, shape);
        tn_descriptors *set = describe(f, NULL);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        tn_close(f);
        check_sparse(&d->sparse, "CSR", i ? TN_INT64 : TN_INT32, wide, 2);
        CHECK(d->sparse.npointers == 4 &&
              memcmp(d->sparse.pointers, wide_pointers, sizeof wide_pointers) == 0);
        CHECK(i ? strcmp(own_of(d), "{\"index\":\"int64\"}") == 0 : !d->nextra);
        tn_descriptors_free(set);
    }
}

/* A description is a document of its own: it reads as the same tensor. */
static void a_description_of_a_sparse_tensor_is_that_tensor(void)
{
    const int64_t shape[] = { 3, 4 }, rows[] = { 0, 1, 2, 3 };
    tn_file *f = make_sparse("a.zt", TN_FORM_COO, TN_INT64, rows, NULL, 2, shape), *again;
    tn_descriptors *set = describe(f, NULL);
    size_t n;
    char *json;
    CHECK(tn_descriptors_write(tn_descriptors_at(set, 0), 1, false, &json, &n, NULL) == TN_OK);
    CHECK(tn_open_memory(json, n, NULL, &again, NULL) == TN_OK);
    require_same_tensors(f, again);
    tn_close(again);
    tn_close(f);
    free(json);
    tn_descriptors_free(set);
}

/* ---- what cannot be described ---- */

static void what_has_no_description_is_refused(void)
{
    const int64_t shape[] = { 3, 4 }, batch[] = { 1, 3, 4 }, outside[] = { 0, 1, 2, 4 },
    pointers[] = { 0, 1, 1, 2 };
    put_file(
        "s.json",
        "{\"version\":\"WIA-AI-011-v1.0\",\"format\":\"COO\",\"shape\":[4294967296,4294967296],\"nnz\":0,"
        "\"indices\":{\"data\":[]},\"values\":{\"dtype\":\"INT8\",\"data\":[]}}");
    tn_file *f = open_file("s.json");
    check_not_described(f, TN_ERR_UNSUPPORTED, "tensor \"s\"");
    tn_close(f);
    f = make_sparse("a.zt", TN_FORM_CSR, TN_INT64, outside, pointers, 3, batch);
    check_not_described(f, TN_ERR_UNSUPPORTED,
                        "tensor \"s\": a descriptor has CSR data of two dimensions but this one has 3");
    tn_close(f);
    f = make_sparse("b.zt", TN_FORM_COO, TN_INT64, outside, NULL, 2, shape);
    check_not_described(f, TN_ERR_CORRUPT,
                        "tensor \"s\": indices.data[1][1]: expected an index in [0, 4) but found 4");
    tn_close(f);
}

/* A small file may hold more than any description: told from the shapes alone. */
static void a_description_that_would_be_too_long_is_refused_at_once(void)
{
    static const struct { const char *name; int64_t rows; } matrices[] = { { "a", 20000000 },
                                                                           { "b", 20000000 },
                                                                           { "c", 34000000 } };
    const int64_t none[] = { 0 };
    int32_t *zeros = calloc(34000001, sizeof *zeros);
    tn_create_options options = { .size = sizeof options, .encoding = TN_ENCODING_ZSTD };
    tn_writer *w;
    tn_descriptors *set;
    tn_error err = { .text = "" };
    CHECK(zeros && tn_create(in_folder("x.zt").text, &options, &w, NULL) == TN_OK);
    for (size_t i = 0; i < 3; i++) {
        const int64_t shape[] = { matrices[i].rows, 4 }, pointers[] = { matrices[i].rows + 1 };
        const tn_part parts[] = {
            { .role = "values", .array = { TN_FLOAT32, 1, none, NULL }, .data = zeros },
            { .role = "indices", .array = { TN_INT32, 1, none, NULL }, .data = zeros },
            { .role = "indptr", .array = { TN_INT32, 1, pointers, NULL }, .data = zeros },
        };
        const tn_tensor t = { .name = matrices[i].name, .form = TN_FORM_CSR, .dtype = TN_FLOAT32, .rank = 2,
                              .shape = shape, .parts = parts,
                              .nparts = 3 };
        CHECK(tn_writer_add(w, &t, NULL) == TN_OK);
    }
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("x.zt");
    CHECK(tn_describe(f, NULL, &set, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "tensor \"b\": with its 0 entries the descriptors would take more than the "
                                  "100000000 bytes that can be "
                                  "read back");
    CHECK(tn_describe(f, tn_file_find(f, "c"), &set, &err) == TN_ERR_LIMIT);
    CHECK(strncmp(said_of(&err), "tensor \"c\": with its 0 entries", 29) == 0);
    tn_close(f);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(raw_tensors_are_described_in_place),
        IN_FOLDER(other_tensors_are_described_as_buffers_of_their_own),
        IN_FOLDER(strides_byte_order_and_padding_are_described),
        IN_FOLDER(quantization_is_described),
        IN_FOLDER(a_description_is_the_same_every_time),
        IN_FOLDER(bytes_in_memory_have_no_file),
        IN_FOLDER(descriptors_make_any_file_a_raw_one),
        IN_FOLDER(numbers_in_text_are_described_as_a_buffer_of_their_own),
        IN_FOLDER(coo_tensors_are_described_with_their_data),
        IN_FOLDER(indices_keep_their_sign),
        IN_FOLDER(csr_tensors_are_described_with_their_data),
        IN_FOLDER(a_description_of_a_sparse_tensor_is_that_tensor),
        IN_FOLDER(what_has_no_description_is_refused),
        IN_FOLDER(a_description_that_would_be_too_long_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
