/* Descriptors with their data beside them: written, read, dumped by others. */
#include "support.h"
#include "stored.h"

#include "convert.h"
#include "files.h"

#include "bytes/cbor.h"
#include "store/file.h"
#include "store/format.h"
#include "tensor/array.h"

#include <tenon/descriptor.h>

#include <dirent.h>
#include <unistd.h>

/* ---- files ---- */

static bool there_is(const char *name)
{
    return access(in_folder(name).text, F_OK) == 0;
}

static void check_refused(const char *name, tn_status expected, const char *text)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_status status = tn_open(in_folder(name).text, NULL, &f, &err);
    if (!status)
        tn_close(f);
    check_status(status, &err, expected, text);
    walk_error(&err, status);
}

/* The tensor's elements are these. */
static void check_data(const tn_file *f, const char *name, const void *expected, size_t n)
{
    const tn_tensor *t = tn_file_find(f, name);
    assert_non_null(t);
    CHECK(t->parts[0].nbytes == n);
    uint8_t *found = read_tensor(f, t);
    if (memcmp(found, expected, n) != 0)
        fail_msg("%s: other bytes than expected", name);
    free(found);
}

/* ---- what is written is read ---- */

static const uint8_t *noise(void)
{
    static uint8_t bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 256 * 7);
    return bytes;
}

static void every_type_comes_back(void)
{
    simple s[TN_DTYPE_COUNT];
    char names[TN_DTYPE_COUNT][8];
    size_t n = 0;
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++, n++) {
        snprintf(names[n], sizeof names[n], "t%u", (unsigned)d);
        s[n] = (simple){ .name = names[n], .dtype = d, .rank = 2, .shape = { 3, 5 },
                         .data = noise() + 16 * n };
    }
    write_file("all.json", (tn_create_options){ 0 }, s, n);
    tn_file *f = open_file("all.json");
    assert_string_equal(tn_file_format(f), "raw");
    CHECK(tn_file_count(f) == n && tn_file_shards(f) == 2);
    for (size_t i = 0; i < n; i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        uint64_t nbytes;
        CHECK(t->dtype == s[i].dtype && t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 5);
        CHECK(tn_shape_nbytes(t->dtype, 2, t->shape, &nbytes) == TN_OK);
        CHECK(stored_info(&t->parts[0]).offset % 256 == 0 && t->parts[0].data != NULL);
        check_data(f, s[i].name, s[i].data, (size_t)nbytes);
    }
    tn_close(f);
}

static void every_shape_comes_back(void)
{
    const simple s[] = {
        { .name = "scalar", .dtype = TN_FLOAT64, .data = noise() },
        { .name = "empty", .dtype = TN_INT32, .rank = 3, .shape = { 4, 0, 2 }, .data = noise() },
        { .name = "vast and empty", .dtype = TN_INT32, .rank = 3, .shape = { INT64_MAX, 0, INT64_MAX },
          .data = noise() },
        { .name = "odd", .dtype = TN_INT4, .rank = 1, .shape = { 7 }, .data = noise() },
        { .name = "\xc3\xa9\n\"/", .dtype = TN_BOOL, .rank = 4, .shape = { 1, 2, 1, 3 }, .data = noise() },
    };
    write_file("s.json", (tn_create_options){ 0 }, s, 5);
    tn_file *f = open_file("s.json");
    for (size_t i = 0; i < 5; i++) {
        const tn_tensor *t = tn_file_find(f, s[i].name);
        assert_non_null(t);
        CHECK(t->rank == s[i].rank &&
              (!t->rank || memcmp(t->shape, s[i].shape, t->rank * sizeof *t->shape) == 0));
        check_data(f, s[i].name, s[i].data, (size_t)t->parts[0].nbytes);
    }
    tn_close(f);
    write_file("none.json", (tn_create_options){ 0 }, NULL, 0);
    check_file_text(in_folder("none.json").text, "[]\n");
    f = open_file("none.json");
    CHECK(tn_file_count(f) == 0);
    tn_close(f);
}

static void one_tensor_is_an_object(void)
{
    const simple s = { .name = "w", .dtype = TN_BFLOAT16, .rank = 2, .shape = { 2, 3 }, .data = noise() };
    write_file("w.json", (tn_create_options){ .align = 64 }, &s, 1);
    check_file_text(
        in_folder("w.json").text,
        "{\n  \"version\": \"WIA-AI-011-v1.0\",\n  \"tensor_id\": \"5538b87e-a3cf-5b9c-be4d-8a32a819d106\",\n"
        "  \"name\": \"w\",\n  \"shape\": {\n    \"dimensions\": [2, 3],\n    \"symbolic\": false\n  },\n"
        "  \"dtype\": {\n    \"base_type\": \"BFLOAT16\",\n    \"quantization\": null,\n"
        "    \"byte_order\": \"little_endian\"\n  },\n"
        "  \"memory\": {\n    \"strides\": [3, 1],\n    \"offset_bytes\": 0,\n    \"total_bytes\": 12,\n"
        "    \"alignment\": 64,\n    \"device\": {\n      \"type\": \"CPU\",\n      \"id\": 0,\n"
        "      \"memory_space\": \"host\"\n    }\n  },\n"
        "  \"properties\": {\n    \"requires_grad\": false,\n    \"is_pinned\": false,\n    "
        "\"is_contiguous\": true,\n"
        "    \"zero_copy_compatible\": true\n  },\n  \"metadata\": {}\n}\n");
    tn_file *f = open_file("w.json");
    check_data(f, "w", noise(), 12);
    tn_close(f);
}

static void data_is_aligned_as_asked(void)
{
    const simple s[] = {
        { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 3 }, .data = noise() },
        { .name = "b", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = noise() },
    };
    static const struct { uint64_t asked, found; } aligns[] = { { 0, 256 }, { 64, 64 }, { 4096, 4096 } };
    for (size_t i = 0; i < 3; i++) {
        write_file("a.json", (tn_create_options){ .align = aligns[i].asked, .replace = true }, s, 2);
        tn_file *f = open_file("a.json");
        CHECK(stored_info(&tn_file_tensor(f, 1)->parts[0]).offset == aligns[i].found);
        tn_close(f);
    }
    tn_error err = { .text = "" };
    check_status(try_write("b.json", (tn_create_options){ .align = 32 }, s, 2, &err), &err, TN_ERR_ARGUMENT,
                 "from 64 to 2^30");
}

static void metadata_comes_back_exactly(void)
{
    const tn_meta meta[] = {
        { .key = "text", .text = "t\n" },
        { .key = "bytes", .cbor = (const uint8_t *)"\x42hi", .cbor_size = 3 },
        { .key = "number", .cbor = (const uint8_t *)"\x18\x64", .cbor_size = 2 },
        { .key = "long", .cbor = (const uint8_t *)"\x18\x01", .cbor_size = 2 },
        { .key = "null", .cbor = (const uint8_t *)"\xf6", .cbor_size = 1 },
        { .key = "nan", .cbor = (const uint8_t *)"\xf9\x7e\x00", .cbor_size = 3 },
        { .key = "alike", .cbor = (const uint8_t *)"\xa1\x65$cbor\x62" "01", .cbor_size = 10 },
        { .key = "map", .cbor = (const uint8_t *)"\xa1\x61" "a\x82\x01\x62xy", .cbor_size = 8 },
    };
    enum { N = sizeof meta / sizeof *meta };
    const simple s = { .name = "w", .dtype = TN_UINT8, .rank = 1, .shape = { 2 }, .data = noise(),
                       .meta = meta, .nmeta = N };
    tn_writer *w;
    CHECK(tn_create(in_folder("m.json").text, NULL, &w, NULL) == TN_OK);
    for (size_t i = 0; i < N; i++)
        CHECK(tn_writer_add_meta(w, &meta[i], NULL) == TN_OK);
    CHECK(add_simple(w, &s, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("m.json");
    size_t n;
    const tn_meta *found[2] = { tn_file_meta(f, &n), tn_file_tensor(f, 0)->meta };
    CHECK(n == N && tn_file_tensor(f, 0)->nmeta == N);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < N; i++) {
            assert_string_equal(found[k][i].key, meta[i].key);
            CHECK(!meta[i].text == !found[k][i].text);
            CHECK(meta[i].text ? strcmp(found[k][i].text, meta[i].text) == 0
                               : found[k][i].cbor_size == meta[i].cbor_size &&
                                 memcmp(found[k][i].cbor, meta[i].cbor, meta[i].cbor_size) == 0);
        }
    tn_close(f);
}

static void metadata_without_a_tensor_is_refused(void)
{
    const tn_meta meta = { .key = "a", .text = "b" };
    for (int drop = 0; drop < 2; drop++) {
        tn_create_options options = { .size = sizeof options, .drop_metadata = drop };
        tn_writer *w;
        tn_error err = { .text = "" };
        CHECK(tn_create(in_folder("m.json").text, &options, &w, NULL) == TN_OK);
        CHECK(tn_writer_add_meta(w, &meta, NULL) == TN_OK);
        tn_status status = tn_writer_finish(w, &err);
        if (drop)
            CHECK(status == TN_OK);
        else
            check_status(status, &err, TN_ERR_LOSS, "with its first tensor and there is none");
    }
}

/* Data streamed in pieces gives the same two files as data given whole. */
static void pieces_give_the_same_bytes(void)
{
    const simple whole = { .name = "w", .dtype = TN_FLOAT32, .rank = 2, .shape = { 10, 10 },
                           .data = noise() };
    simple streamed = whole;
    tn_writer *w;
    write_file("a.json", (tn_create_options){ 0 }, &whole, 1);
    streamed.data = NULL;
    CHECK(tn_create(in_folder("b.json").text, NULL, &w, NULL) == TN_OK &&
          add_simple(w, &streamed, NULL) == TN_OK);
    for (size_t at = 0; at < 400; at += 80)
        CHECK(tn_writer_write(w, 0, 0, noise() + at, 80, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    static const char *const names[2][2] = { { "a.json", "b.json" }, { "a.bin", "b.bin" } };
    for (int i = 0; i < 2; i++) {
        check_same_files(in_folder(names[i][0]).text, in_folder(names[i][1]).text);
    }
}

static void tied_tensors_share_their_bytes(void)
{
    const simple s[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 2 }, .data = noise() },
        { .name = "b", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 2 }, .data = noise() },
        { .name = "c", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 2 }, .tied = "a" },
    };
    write_file("t.json", (tn_create_options){ 0 }, s, 3);
    tn_file *f = open_file("t.json");
    CHECK(!tn_file_find(f, "a")->tied && !tn_file_find(f, "b")->tied);
    assert_string_equal(tn_file_find(f, "c")->tied, "a");
    check_data(f, "c", noise(), 16);
    tn_close(f);
}

/* ---- padding ---- */

static void padding_is_kept_and_not_read(void)
{
    const int64_t shape[] = { 2, 3 }, physical[] = { 2, 4 };
    const uint16_t stored[] = { 1, 2, 3, 99, 4, 5, 6, 99 }, logical[] = { 1, 2, 3, 4, 5, 6 };
    const tn_padded padded = { .shape = physical };
    tn_part part = { .role = "data", .array = { TN_UINT16, 2, shape, NULL }, .data = stored,
                     .padded = &padded };
    tn_tensor t = { .name = "p", .form = TN_FORM_DENSE, .dtype = TN_UINT16, .rank = 2, .shape = shape,
                    .parts = &part, .nparts = 1, .layout = "RC" };
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder("p.json").text, NULL, &w, NULL) == TN_OK);
    check_status(tn_writer_add(w, &t, &err), &err, TN_OK, "");
    check_status(tn_writer_finish(w, &err), &err, TN_OK, "");
    tn_file *f = open_file("p.json");
    const tn_tensor *found = tn_file_tensor(f, 0);
    const tn_part *p = &found->parts[0];
    const int64_t *stride = stored_info(p).stride;
    CHECK(found->shape[1] == 3 && p->padded && p->padded->shape[1] == 4 && stride && stride[0] == 4 &&
          stored_info(p).bytes == 16);
    assert_string_equal(found->layout, "RC");
    check_data(f, "p", logical, sizeof logical);
    tn_close(f);
    size_t n;
    char *json = (char *)load_file(in_folder("p.json").text, &n);
    CHECK(memmem(json, n, "\"physical_shape\": [2, 4]", 24) && memmem(json, n, "\"values\": [0, 1]", 16));
    free(json);
}

/* ---- quantization ---- */

typedef struct quantized {
    tn_dtype    codes, values;
    int32_t     axis;
    bool        zeros;
    const char *scheme;
} quantized;

static void write_quantized(const char *name, const quantized *q, const void *codes, const float *scale,
                            const int32_t *zero)
{
    const int64_t shape[] = { 3, 4 }, channels[] = { q->axis < 0 ? 1 : shape[q->axis] };
    uint32_t rank = q->axis >= 0;
    const tn_scaling scaling = { .axis = q->axis, .range = { -7, 7 } };
    tn_part parts[] = {
        { .role = "data", .array = { q->codes, 2, shape, NULL }, .data = codes },
        { .role = "scale", .array = { TN_FLOAT32, rank, channels, NULL }, .data = scale },
        { .role = "zero", .array = { TN_INT32, rank, channels, NULL }, .data = zero },
    };
    tn_tensor t = { .name = "q", .form = TN_FORM_SCALED, .dtype = q->values, .rank = 2, .shape = shape,
                    .parts = parts, .nparts = q->zeros ? 3 : 2, .scaling = &scaling };
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder(name).text, NULL, &w, NULL) == TN_OK);
    check_status(tn_writer_add(w, &t, &err), &err, TN_OK, "");
    check_status(tn_writer_finish(w, &err), &err, TN_OK, "");
}

static void every_scheme_comes_back(void)
{
    static const quantized all[] = {
        { TN_INT8, TN_FLOAT32, -1, false, "per_tensor_symmetric" },
        { TN_INT4, TN_BFLOAT16, -1, true, "per_tensor_asymmetric" },
        { TN_INT8, TN_FLOAT64, 0, false, "per_channel_symmetric" },
        { TN_INT16, TN_FLOAT32, 1, true, "per_channel_asymmetric" },
    };
    const float scale[] = { 0.1f, 1e-30f, 3.25f, 16777216.0f };
    const int32_t zero[] = { -3, 0, 5, 7 };
    for (size_t i = 0; i < 4; i++) {
        const quantized *q = &all[i];
        size_t n = (q->axis < 0 ? 1 : q->axis == 0 ? 3 : 4) * sizeof *scale;
        char name[16];
        snprintf(name, sizeof name, "q%zu.json", i);
        write_quantized(name, q, noise(), scale, zero);
        tn_file *f = open_file(name);
        const tn_tensor *t = tn_file_find(f, "q");
        CHECK(t->form == TN_FORM_SCALED);
        CHECK(t->dtype == q->values && t->parts[0].array.dtype == q->codes &&
              t->nparts == (q->zeros ? 3u : 2u));
        CHECK(t->scaling->axis == q->axis && t->scaling->range[0] == -7 && t->scaling->range[1] == 7);
        check_data(f, "q", noise(), (size_t)t->parts[0].nbytes);
        CHECK(t->parts[1].nbytes == n && memcmp(t->parts[1].data, scale, n) == 0);
        CHECK(!q->zeros || (t->parts[2].nbytes == n && memcmp(t->parts[2].data, zero, n) == 0));
        tn_close(f);
        char *json = (char *)load_file(in_folder(name).text, &n);
        CHECK(memmem(json, n, q->scheme, strlen(q->scheme)) && memmem(json, n, "0.1", 3));
        CHECK(!memmem(json, n, "0.10000000149", 13));       /* as few digits as the float needs */
        free(json);
    }
    CHECK(count_entries(folder) == 8);
}

static void numbers_that_cannot_be_read_back_are_not_written(void)
{
    const quantized q = { TN_INT8, TN_FLOAT32, -1, true, NULL };
    const int64_t shape[] = { 1 };
    const tn_scaling scaling = { .axis = -1, .range = { -128, 127 } };
    static const struct { float scale; int32_t zero; const char *text; } bad[] = {
        { 0.0f, 0, "dtype.quantization.scale: expected a finite number above 0 but found 0" },
        { 1.0f, 300, "dtype.quantization.zero_point: expected a code of int8" },
    };
    for (size_t i = 0; i < 2; i++) {
        tn_part parts[] = {
            { .role = "data", .array = { q.codes, 1, shape, NULL }, .data = noise() },
            { .role = "scale", .array = { TN_FLOAT32, 0, NULL, NULL }, .data = &bad[i].scale },
            { .role = "zero", .array = { TN_INT32, 0, NULL, NULL }, .data = &bad[i].zero },
        };
        tn_tensor t = { .name = "q", .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = 1, .shape = shape,
                        .parts = parts, .nparts = 3, .scaling = &scaling };
        tn_writer *w;
        tn_error err = { .text = "" };
        CHECK(tn_create(in_folder("q.json").text, NULL, &w, NULL) == TN_OK &&
              tn_writer_add(w, &t, NULL) == TN_OK);
        check_status(tn_writer_finish(w, &err), &err, TN_ERR_UNSUPPORTED, bad[i].text);
        CHECK(count_entries(folder) == 0);
    }
}

/* ---- dumps of others ---- */

#define HEAD "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"d\","

/* A descriptor "d" beside 24 uint16 numbers 0, 1 ... 23. */
static void put_dump(const char *members)
{
    uint16_t numbers[24];
    char json[1024];
    for (uint16_t i = 0; i < 24; i++)
        numbers[i] = i;
    snprintf(json, sizeof json, HEAD "%s}", members);
    put_file("d.json", json);
    put_bytes("d.bin", numbers, sizeof numbers);
}

static void check_numbers(const char *members, const uint16_t *expected, size_t n)
{
    put_dump(members);
    tn_file *f = open_file("d.json");
    check_data(f, "d", expected, n * sizeof *expected);
    tn_close(f);
}

static void elements_are_found_wherever_they_lie(void)
{
    check_numbers("\"shape\":[2,3],\"dtype\":{\"base_type\":\"UINT16\"}", (uint16_t[]){ 0, 1, 2, 3, 4, 5 },
                  6);
    /* column-major */
    check_numbers("\"shape\":{\"dimensions\":[2,3]},\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{"
                  "\"strides\":[1,2]}", (uint16_t[]){ 0, 2, 4, 1, 3, 5 }, 6);
    /* NCHW that lies as NHWC */
    check_numbers(
        "\"shape\":{\"dimensions\":[1,3,2,2],\"layout\":\"NCHW\"},\"dtype\":{\"base_type\":\"UINT16\"},"
        "\"memory\":{\"strides\":[12,1,6,3],\"total_bytes\":24}",
        (uint16_t[]){ 0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11 }, 12);
    /* rows with gaps, from the fifth element on */
    check_numbers("\"shape\":{\"dimensions\":[3,2]},\"dtype\":{\"base_type\":\"UINT16\"},"
                  "\"memory\":{\"strides\":[8,1],\"offset_bytes\":10,\"total_bytes\":48}",
                  (uint16_t[]){ 5, 6, 13, 14, 21, 22 }, 6);
    /* every third */
    check_numbers("\"shape\":[4],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[3]}",
                  (uint16_t[]){ 0, 3, 6, 9 }, 4);
    /* the other byte order, dense and with gaps */
    check_numbers("\"shape\":[3],\"dtype\":{\"base_type\":\"UINT16\",\"byte_order\":\"big_endian\"}",
                  (uint16_t[]){ 0, 256, 512 }, 3);
    check_numbers("\"shape\":[2],\"dtype\":{\"base_type\":\"UINT16\",\"byte_order\":\"big_endian\"},"
                  "\"memory\":{\"strides\":[5]}", (uint16_t[]){ 0, 5 * 256 }, 2);
    /* padding, with and without strides, and strides that are not those of the physical shape */
    check_numbers("\"shape\":[2,2],\"physical_shape\":[2,4],\"dtype\":{\"base_type\":\"UINT16\"}",
                  (uint16_t[]){ 0, 1, 4, 5 }, 4);
    check_numbers("\"shape\":[2,2],\"physical_shape\":[2,4],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{"
                  "\"strides\":[1,2]}", (uint16_t[]){ 0, 2, 1, 3 }, 4);
    /* a stride where there is one element only means nothing */
    check_numbers("\"shape\":[1,3],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[999999,1]}",
                  (uint16_t[]){ 0, 1, 2 }, 3);
}

static void narrow_elements_are_found_wherever_they_lie(void)
{
    const uint8_t stored[] = { 0x10, 0x32, 0x54, 0x76, 0x98, 0xba };
    put_bytes("n.bin", stored, sizeof stored);
    put_file("n.json", "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2,3],\"dtype\":{\"base_type\":\"UINT4\"},"
             "\"memory\":{\"strides\":[5,2],\"offset_bytes\":1}}");
    tn_file *f = open_file("n.json");
    check_data(f, "n", (uint8_t[]){ 0x42, 0x76, 0xb9 }, 3);     /* 2 4 6 7 9 11 */
    tn_close(f);
}

static void what_lies_densely_is_seen_in_place(void)
{
    put_dump("\"shape\":[4,3],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[3,1],\"offset_"
             "bytes\":2}");
    tn_file *f = open_file("d.json");
    const tn_part *p = tn_file_tensor(f, 0)->parts;
    CHECK(p->data && !stored_info(p).stride && !p->padded && stored_info(p).offset == 2 &&
          stored_info(p).bytes == 24);
    tn_close(f);
}

static void tensors_may_share_bytes_and_go_without_names(void)
{
    put_dump("\"shape\":[1],\"dtype\":{\"base_type\":\"UINT16\"}");
    put_file("d.json",
             "\n[{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[4],\"dtype\":{\"base_type\":\"UINT16\"}},"
             "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":"
             "{\"offset_bytes\":2}},"
             "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2,2],\"dtype\":{\"base_type\":\"UINT16\"}},"
             "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2,2],\"dtype\":{\"base_type\":\"UINT16\"},"
             "\"memory\":{\"strides\":[1,2]}},"
             "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2,2],\"dtype\":{\"base_type\":\"UINT16\"},"
             "\"memory\":{\"strides\":[1,2]}},"
             "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[4],\"dtype\":{\"base_type\":\"INT16\"}}]");
    tn_file *f = open_file("d.json");
    CHECK(tn_file_count(f) == 6);
    check_data(f, "d.1", (uint16_t[]){ 1, 2 }, 4);
    check_data(f, "d.3", (uint16_t[]){ 0, 2, 1, 3 }, 8);
    static const char *const tied[] = { NULL, NULL, "d.0", NULL, "d.3", NULL };
    for (size_t i = 0; i < 6; i++) {
        const char *found = tn_file_tensor(f, i)->tied;
        CHECK(tied[i] ? found && strcmp(found, tied[i]) == 0 : !found);
    }
    tn_close(f);
}

static void scales_are_float32(void)
{
#define SCALED(scale) "\"shape\":[2],\"dtype\":{\"base_type\":\"INT16\",\"quantization\":{\"scheme\":\"per_tensor_symmetric\"," \
                      "\"scale\":" scale "}}"
    static const char *const good[] = { SCALED("0.1"), SCALED("0.10000000149011612"), SCALED("3"),
                                        SCALED("1e-45") };
    for (size_t i = 0; i < 4; i++) {
        put_dump(good[i]);
        tn_file *f = open_file("d.json");
        const tn_tensor *t = tn_file_tensor(f, 0);
        float scale;
        memcpy(&scale, t->parts[1].data, sizeof scale);
        CHECK(scale == (i < 2 ? 0.1f : i == 2 ? 3.0f : 1e-45f));
        CHECK(t->dtype == TN_FLOAT32 && t->scaling->axis == -1);
        CHECK(t->scaling->range[0] == -32768 && t->scaling->range[1] == 32767);
        tn_close(f);
    }
    static const char *const bad[] = { SCALED("0.1000000001"), SCALED("1e39"), SCALED("1e-60") };
    for (size_t i = 0; i < 3; i++) {
        put_dump(bad[i]);
        check_refused("d.json", TN_ERR_UNSUPPORTED,
                      "dtype.quantization.scale: expected a number that float32 holds but found");
    }
}

/* ---- what is listed, what is refused ---- */

static void what_cannot_be_read_is_listed(void)
{
    put_file("s.json", "[" HEAD "\"format\":\"COO\",\"shape\":[4294967296,4294967296],\"nnz\":1,"
                       "\"indices\":{\"dtype\":\"INT32\",\"data\":[[1,2]]},\"values\":{\"dtype\":\"FLOAT32\","
                       "\"data\":[1.5]}},"
                       "{\"version\":\"WIA-AI-011-v1.0\",\"format\":\"CSR\",\"shape\":[1,2],\"row_pointers\":"
                       "[0,1],\"column_indices\":[1],"
                       "\"values\":[2],\"dtype\":{\"base_type\":\"INT8\",\"quantization\":{\"scheme\":\"per_"
                       "tensor_symmetric\",\"scale\":0.5}}}]");
    tn_file *f = open_file("s.json");       /* no data beside it is needed */
    CHECK(tn_file_count(f) == 2 && tn_file_shards(f) == 1);
    assert_string_equal(tn_tensor_form_name(tn_file_find(f, "d")), "COO");
    assert_string_equal(tn_tensor_form_name(tn_file_find(f, "s.1")), "CSR");
    tn_close(f);
    put_dump("\"shape\":[2],\"dtype\":{\"base_type\":\"INT16\",\"quantization\":{\"scheme\":\"per_block\","
             "\"scales\":[1]}}");
    f = open_file("d.json");
    const tn_tensor *t = tn_file_find(f, "d");
    tn_error err = { .text = "" };
    uint8_t buffer[4];
    check_status(tn_part_read(f, t->parts, buffer, 4, &err), &err, TN_ERR_UNSUPPORTED,
                 "\"quantized\" is not known");
    tn_close(f);
}

static void bad_descriptors_are_refused(void)
{
    static const struct { const char *members; tn_status status; const char *text;
    } bad[] = {
        { "\"shape\":[25],\"dtype\":{\"base_type\":\"UINT16\"}", TN_ERR_CORRUPT,
          "tensor \"d\": its elements take 50 bytes from 0 on but " },
        { "\"shape\":[24],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"offset_bytes\":2}",
          TN_ERR_CORRUPT, "its elements take 48 bytes from 2 on but " },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"offset_bytes\":"
          "18446744073709551614}",
          TN_ERR_CORRUPT, "shape.dimensions: expected a tensor of less than 2^64 bytes" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"offset_bytes\":"
          "9223372036854775806}",
          TN_ERR_CORRUPT, "its elements take 4 bytes from 9223372036854775806 on but " },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"total_bytes\":49}",
          TN_ERR_CORRUPT, "memory.total_bytes: expected at most the 48 bytes of " },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"total_bytes\":3}", TN_ERR_CORRUPT,
          "memory.total_bytes: expected at least 4" },
        { "\"shape\":[2,2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[23,1]}",
          TN_ERR_CORRUPT, "its elements take 50 bytes from 0 on" },
        { "\"shape\":[2,2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[4611686018427387904,"
          "1]}", TN_ERR_LIMIT, "its strides span more than 2^63 bytes" },
        { "\"shape\":[4,4],\"dtype\":{\"base_type\":\"UINT16\"},"
          "\"memory\":{\"strides\":[9223372036854775807,9223372036854775807]}",
          TN_ERR_CORRUPT, "less than 2^64 bytes" },
        { "\"shape\":[3],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[-1],\"offset_bytes\":"
          "8}",
          TN_ERR_UNSUPPORTED, "memory.strides[0]: expected a stride that is not negative but found -1" },
        { "\"shape\":[1000,1000],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[0,0]}",
          TN_ERR_UNSUPPORTED,
          "its elements take 2000000 bytes but its strides span only 2: elements that share bytes are not "
          "read" },
        { "\"shape\":[4294967296,4294967296],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[0,"
          "0]}", TN_ERR_LIMIT, "its shape takes more than 2^63 bytes" },
        { "\"shape\":[3000000000,3000000000],\"physical_shape\":[3000000000,9000000000000000000],"
          "\"dtype\":{\"base_type\":\"UINT8\"},\"memory\":{\"strides\":[0,0]}",
          TN_ERR_LIMIT, "more than 2^63 bytes" },
        { "\"shape\":[\"batch\",2],\"dtype\":{\"base_type\":\"UINT16\"}", TN_ERR_UNSUPPORTED,
          "its shape has symbols" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"UINT17\"}", TN_ERR_CORRUPT,
          "dtype.base_type: expected one of" },
        { "\"shape\":[2,2],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[9,1]},"
          "\"properties\":{\"is_contiguous\":true}",
          TN_ERR_CORRUPT, "memory.strides[0]: expected 2 for a dense tensor of 2" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"INT64\",\"quantization\":{\"scheme\":\"per_tensor_"
          "symmetric\",\"scale\":1}}", TN_ERR_CORRUPT, "its codes must be integers of at most 32 bits" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"INT8\",\"quantization\":{\"scheme\":\"per_tensor_"
          "symmetric\",\"scale\":1}},"
          "\"tenon\":{\"dtype\":\"int8\"}", TN_ERR_CORRUPT, "its values must be of a signed float type" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"INT8\"},\"tenon\":{\"dtype\":\"float9\"}",
          TN_ERR_UNSUPPORTED, "tenon: type \"float9\" is not known" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"INT8\"},\"tenon\":7", TN_ERR_CORRUPT, "tenon: expected" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"INT8\"},\"tenon\":{\"file_metadata\":7}", TN_ERR_CORRUPT,
          "tenon.file_metadata: expected" },
        { "\"shape\":[2],\"dtype\":{\"base_type\":\"INT8\"},\"metadata\":{\"a\":\"\\u0000\"}", TN_ERR_CORRUPT,
          "NUL" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_dump(bad[i].members);
        check_refused("d.json", bad[i].status, bad[i].text);
    }
    put_file("d.json", "[" HEAD "\"shape\":[1],\"dtype\":{\"base_type\":\"INT8\"}}," HEAD
                       "\"shape\":[1],\"dtype\":{\"base_type\":\"INT8\"}}]");
    check_refused("d.json", TN_ERR_CORRUPT, "tensor \"d\": it is listed twice: first at byte 1");
}

static void the_data_must_be_there(void)
{
    const char *json = HEAD "\"shape\":[1],\"dtype\":{\"base_type\":\"INT8\"}}";
    tn_file *f;
    tn_error err = { .text = "" };
    put_file("x.json", json);
    check_refused("x.json", TN_ERR_IO, "x.bin: cannot open: No such file or directory");
    put_file("y", json);                    /* without the suffix, .bin is appended */
    put_bytes("y.bin", "\7", 1);
    f = open_file("y");
    check_data(f, "d", "\7", 1);
    tn_close(f);
    check_status(tn_open_memory(json, strlen(json), NULL, &f, &err), &err, TN_ERR_UNSUPPORTED,
                 "open them by path");
}

/* ---- recognising ---- */

static void descriptors_are_recognised(void)
{
    static const struct { const char *head, *format; } heads[] = {
        { HEAD, "raw" }, { " \n[" HEAD, "raw" }, { " [ ]\n", "raw" }, { "[1]", NULL }, { "[", NULL },
        { "{\"version\":\"1\"}", NULL }, { "\"WIA-AI-011\"", NULL },
        { "{\"metadata\":{\"about\":\"WIA-AI-011\"},\"weight_map\":{}}", "safetensors" },
        { "{\"version\":\"WIA-AI-011-v1.0\",\"metadata\":{\"weight_map\":{}}}", "raw" },
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const tn_format *found = tn_format_probe((const uint8_t *)heads[i].head, strlen(heads[i].head));
        CHECK(heads[i].format ? found && strcmp(found->info.name, heads[i].format) == 0 : !found);
    }
    assert_string_equal(tn_format_by_suffix("a/b.json")->info.name, "raw");
    assert_string_equal(tn_format_by_suffix("b.safetensors.index.json")->info.name, "safetensors");
    CHECK(!tn_format_by_suffix("b.bin"));
}

/* ---- both files or none ---- */

static void both_files_appear_or_none(void)
{
    const simple s = { .name = "w", .dtype = TN_UINT8, .rank = 1, .shape = { 2 }, .data = noise() };
    tn_error err = { .text = "" };
    put_file("w.bin", "old");
    check_status(try_write("w.json", (tn_create_options){ 0 }, &s, 1, &err), &err, TN_ERR_EXISTS, "");
    CHECK(count_entries(folder) == 1 && file_is("w.bin", "old"));
    check_status(try_write("w.bin", (tn_create_options){ .format = "raw", .replace = true }, &s, 1, &err),
                 &err, TN_ERR_ARGUMENT, "expected the name of the descriptors");
    CHECK(file_is("w.bin", "old"));
    put_file("v.json", "old");
    check_status(try_write("v.json", (tn_create_options){ 0 }, &s, 1, &err), &err, TN_ERR_EXISTS, "");
    CHECK(count_entries(folder) == 2 && file_is("v.json", "old"));
    check_status(try_write("v.json", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &s, 1, &err), &err,
                 TN_ERR_ARGUMENT, "raw cannot hold compressed data");
    write_file("v.json", (tn_create_options){ .replace = true }, &s, 1);
    tn_close(open_file("v.json"));
}

static void a_dry_run_writes_nothing(void)
{
    static const quantized q = { TN_INT8, TN_FLOAT32, 1, true, NULL };
    const float scale[] = { 0.1f, 0.2f, 0.3f, 1.17549449e-38f };
    const int32_t zero[] = { -3, 0, 5, 7 };
    write_quantized("q.json", &q, noise(), scale, zero);
    check_dry_run("q.json", "out.json", 200);
    CHECK(count_entries(folder) == 4);
}

/* ---- through other containers ---- */

static void check_same(const char *a, const char *b)
{
    tn_file *x = open_file(a), *y = open_file(b);
    require_same_tensors(x, y);
    tn_close(x);
    tn_close(y);
}

static void tensors_go_through_other_containers(void)
{
    static const quantized q = { TN_INT8, TN_BFLOAT16, 0, true, NULL };
    const simple s[] = {
        { .name = "a", .dtype = TN_INT4, .rank = 2, .shape = { 3, 3 }, .data = noise() },
        { .name = "b", .dtype = TN_COMPLEX128, .rank = 1, .shape = { 2 }, .data = noise(),
          .meta = &(tn_meta){ .key = "k", .cbor = (const uint8_t *)"\x42hi", .cbor_size = 3 }, .nmeta = 1 },
    };
    write_file("a.json", (tn_create_options){ 0 }, s, 2);
    write_quantized("q.json", &q, noise(), (float[]){ 0.1f, 0.2f, 0.3f }, (int32_t[]){ 1, 2, 3 });
    must_convert("a.json", "a.zt", (wish){ 0 });
    must_convert("a.zt", "b.safetensors", (wish){ 0 });
    must_convert("b.safetensors", "c.json", (wish){ 0 });
    check_same("a.json", "c.json");
    must_convert("q.json", "q.zt", (wish){ 0 });
    must_convert("q.zt", "r.json", (wish){ 0 });
    check_same("q.json", "r.json");
    put_dump("\"shape\":[2,3],\"dtype\":{\"base_type\":\"UINT16\"},\"memory\":{\"strides\":[1,2]}");
    must_convert("d.json", "d.safetensors", (wish){ 0 });
    must_convert("d.safetensors", "e.json", (wish){ 0 });
    check_same("d.json", "e.json");
}

/* What no tensor has a place for is not dropped without a word. */
static void members_that_would_be_lost_stop_a_conversion(void)
{
    static const char *const members[] = {
        "\"properties\": {\"requires_grad\": true}",
        "\"properties\": {\"is_pinned\": true}",
        "\"colour\": \"red\"",
        "\"memory\": {\"device\": {\"type\": \"GPU\", \"id\": 1, \"memory_space\": \"unified\"}}",
        "\"buffer_handle\": {\"type\": \"memfd\", \"handle\": 3, \"size_bytes\": 64, \"permissions\": "
        "\"read_only\"}",
    };
    put_bytes("d.bin", "\1\2\3\4", 4);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{\"version\": \"WIA-AI-011-v1.0\", \"name\": \"d\", \"shape\": [4], \"dtype\": "
                 "{\"base_type\": \"UINT8\"}, %s}", members[i]);
        put_file("d.json", text);
        tn_file *f = open_file("d.json");
        tn_create_options create = { .size = sizeof create, .replace = true };
        tn_convert_options o = { .size = sizeof o, .create = &create };
        tn_error err = { .text = "" };
        check_status(tn_convert(f, in_folder("o.zt").text, &o, NULL, &err), &err, TN_ERR_LOSS,
                     "which the new file cannot hold");
        create.drop_metadata = true;
        CHECK(tn_convert(f, in_folder("o.zt").text, &o, NULL, &err) == TN_OK);
        tn_close(f);
    }
}

static void data_is_never_written_through_a_link(void)
{
    static const uint8_t data[4] = { 1, 2, 3, 4 };
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = data };
    tn_error err = { .text = "" };
    CHECK(symlink("q.json", in_folder("q.bin").text) == 0);
    check_status(try_write("q.json", (tn_create_options){ 0 }, &t, 1, &err), &err, TN_ERR_EXISTS,
                 "q.bin: already exists");
    CHECK(count_entries(folder) == 1);
    write_file("q.json", (tn_create_options){ .replace = true }, &t, 1);
    CHECK(count_entries(folder) == 3);          /* the link, the descriptors, and data of another name */
    tn_file *f = open_file("q.json");
    uint8_t back[4];
    CHECK(tn_part_read(f, tn_file_tensor(f, 0)->parts, back, 4, NULL) == TN_OK && memcmp(back, data, 4) == 0);
    tn_close(f);
}

/* The name of the only file that begins and ends so. */
static full_path find_name(const char *begin, const char *end)
{
    full_path found = { "" };
    DIR *dir = opendir(folder);
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, begin, strlen(begin)) == 0 && strlen(e->d_name) > strlen(end) &&
            strcmp(e->d_name + strlen(e->d_name) - strlen(end), end) == 0) {
            CHECK(!found.text[0]);
            snprintf(found.text, sizeof found.text, "%s", e->d_name);
        }
    closedir(dir);
    return found;
}

static void a_pair_that_replaces_another_has_data_of_another_name(void)
{
    uint8_t data[4] = { 1, 2, 3, 4 };
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = data };
    full_path names[4];
    write_file("p.json", (tn_create_options){ 0 }, &t, 1);
    CHECK(there_is("p.bin") && count_entries(folder) == 2);
    for (int i = 0; i < 4; i++) {               /* 0 and 1: the same again */
        data[0] = i < 2 ? 1 : (uint8_t)i;
        write_file("p.json", (tn_create_options){ .replace = true }, &t, 1);
        CHECK(count_entries(folder) == 2);      /* the old data is gone */
        names[i] = find_name("p-", ".bin");
        CHECK(strlen(names[i].text) == strlen("p-01234567.bin"));
        for (int k = 0; k < i; k++)
            CHECK(strcmp(names[i].text, names[k].text) != 0);
        tn_file *f = open_file("p.json");
        uint8_t back[4];
        CHECK(tn_part_read(f, tn_file_tensor(f, 0)->parts, back, 4, NULL) == TN_OK &&
              memcmp(back, data, 4) == 0);
        tn_close(f);
    }
}

static void the_name_of_the_data_stays_in_the_folder(void)
{
    static const char *const bad[] = { "\"../x.bin\"", "\"/etc/passwd\"", "\"\"", "\".\"", "\"..\"", "7",
                                       "\"a\\u0000b\"" };
    char document[400];
    put_file("d.bin", "1234");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(document, sizeof document,
                 "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"w\",\"shape\":[4],\"dtype\":"
                 "{\"base_type\":\"UINT8\"},\"tenon\":{\"data\":%s}}", bad[i]);
        put_file("d.json", document);
        check_refused("d.json", TN_ERR_CORRUPT, "tenon.data: expected the plain name of a file");
    }
}

/* A document may name any file: only what can have been written for it is removed. */
static void only_data_of_the_pair_is_removed(void)
{
    static const uint8_t data[4] = { 1, 2, 3, 4 };
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = data };
    static const char *const names[] = { "precious.bin", "d-0123456g.bin", "d-01234567.bin~",
                                         "e-01234567.bin", "d-01234567.bin" };
    enum { COUNT = sizeof names / sizeof *names };
    char document[400];
    for (int i = 0; i < COUNT; i++) {
        snprintf(document, sizeof document,
                 "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"w\",\"shape\":[4],\"dtype\":"
                 "{\"base_type\":\"UINT8\"},\"tenon\":{\"data\":\"%s\"}}", names[i]);
        put_file("d.json", document);
        put_file(names[i], "1234");
        write_file("d.json", (tn_create_options){ .replace = true }, &t, 1);
        CHECK(there_is(names[i]) == (i < COUNT - 1));
    }
    put_file("f.json", "{\"not\": \"a descriptor\"}");
    put_file("f.bin", "1234");
    write_file("f.json", (tn_create_options){ .replace = true }, &t, 1);
    CHECK(file_is("f.bin", "1234"));
}

static void tensors_of_other_values_have_other_ids(void)
{
    uint8_t data[4] = { 1, 2, 3, 4 };
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = data };
    char ids[3][40];
    for (int i = 0; i < 3; i++) {
        size_t n;
        data[0] = i == 2 ? 9 : 1;
        write_file("t.json", (tn_create_options){ .replace = true }, &t, 1);
        char *text = (char *)load_file(in_folder("t.json").text, &n);
        memcpy(ids[i], strstr(text, "tensor_id") + 13, 36);
        ids[i][36] = '\0';
        free(text);
    }
    assert_string_equal(ids[0], ids[1]);
    assert_string_not_equal(ids[0], ids[2]);
}

/* More tensors than there is room for at first: each keeps its parts. */
static void many_scaled_tensors_keep_their_scales(void)
{
    enum { MANY = 200 };
    tn_buf text = { 0 };
    uint8_t data[MANY];
    for (int i = 0; i < MANY; i++) {
        data[i] = (uint8_t)i;
        tn_buf_printf(&text,
            "%c{\"version\": \"WIA-AI-011-v1.0\", \"name\": \"t%d\", \"shape\": [1], \"dtype\": "
            "{\"base_type\": \"UINT8\", "
            "\"quantization\": {\"scheme\": \"per_tensor_asymmetric\", \"scale\": %d, \"zero_point\": %d}}, "
            "\"memory\": {\"offset_bytes\": %d}}", i ? ',' : '[', i, i + 1, i, i);
    }
    tn_buf_putc(&text, ']');
    put_bytes("many.json", text.data, text.size);
    put_bytes("many.bin", data, sizeof data);
    tn_buf_free(&text);
    tn_file *f = open_file("many.json");
    for (int i = 0; i < MANY; i++) {
        const tn_tensor *t = tn_file_tensor(f, (size_t)i);
        float scale;
        int32_t zero;
        CHECK(t->nparts == 3 && t->form == TN_FORM_SCALED);
        CHECK((uintptr_t)t->parts[1].data % 64 == 0 && (uintptr_t)t->parts[2].data % 64 == 0);
        CHECK(tn_part_read(f, &t->parts[1], &scale, 4, NULL) == TN_OK &&
              tn_part_read(f, &t->parts[2], &zero, 4, NULL) == TN_OK);
        CHECK(scale == (float)(i + 1) && zero == i);
    }
    tn_close(f);
}

static void a_sidecar_says_which_file_has_the_data(void)
{
    put_file("m.zt.wia.json", "[{\"version\": \"WIA-AI-011-v1.0\", \"name\": \"d\", \"shape\": [4], "
                              "\"dtype\": {\"base_type\": \"UINT8\"}}]");
    check_refused("m.zt.wia.json", TN_ERR_UNSUPPORTED, "m.zt\", which has the data: open that");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_type_comes_back),
        IN_FOLDER(members_that_would_be_lost_stop_a_conversion),
        IN_FOLDER(data_is_never_written_through_a_link),
        IN_FOLDER(a_pair_that_replaces_another_has_data_of_another_name),
        IN_FOLDER(the_name_of_the_data_stays_in_the_folder),
        IN_FOLDER(only_data_of_the_pair_is_removed),
        IN_FOLDER(tensors_of_other_values_have_other_ids),
        IN_FOLDER(many_scaled_tensors_keep_their_scales),
        IN_FOLDER(a_sidecar_says_which_file_has_the_data),
        IN_FOLDER(every_shape_comes_back),
        IN_FOLDER(one_tensor_is_an_object),
        IN_FOLDER(data_is_aligned_as_asked),
        IN_FOLDER(metadata_comes_back_exactly),
        IN_FOLDER(metadata_without_a_tensor_is_refused),
        IN_FOLDER(pieces_give_the_same_bytes),
        IN_FOLDER(tied_tensors_share_their_bytes),
        IN_FOLDER(padding_is_kept_and_not_read),
        IN_FOLDER(every_scheme_comes_back),
        IN_FOLDER(numbers_that_cannot_be_read_back_are_not_written),
        IN_FOLDER(elements_are_found_wherever_they_lie),
        IN_FOLDER(narrow_elements_are_found_wherever_they_lie),
        IN_FOLDER(what_lies_densely_is_seen_in_place),
        IN_FOLDER(tensors_may_share_bytes_and_go_without_names),
        IN_FOLDER(scales_are_float32),
        IN_FOLDER(what_cannot_be_read_is_listed),
        IN_FOLDER(bad_descriptors_are_refused),
        IN_FOLDER(the_data_must_be_there),
        TEST(descriptors_are_recognised),
        IN_FOLDER(both_files_appear_or_none),
        IN_FOLDER(a_dry_run_writes_nothing),
        IN_FOLDER(tensors_go_through_other_containers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
