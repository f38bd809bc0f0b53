/* Descriptors of the tensors in any container. */
#include "support.h"

#include "files.h"
#include "make.h"

#include "container/file.h"

#include <tenon/descriptor.h>

static const uint8_t *noise(void)
{
    static uint8_t bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 256 * 7);
    return bytes;
}

static void report(void *context, const tn_finding *finding)
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
        fail_msg("%s", err.text);
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
    CHECK(a->dtype == TN_FLOAT32 && a->rank == 2 && a->dimensions[1].value == 5 && !a->layout && !a->symbolic);
    CHECK(a->offset_bytes == 256 && a->total_bytes == 316 && a->alignment == 256 && a->strides[0].factor == 5);
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
        snprintf(json, sizeof json, "{\"version\":\"WIA-AI-011-v1.0\",\"shape\":[2,3],\"dtype\":{\"base_type\":\"UINT16\","
                 "\"byte_order\":\"%s\"},%s", big ? "big_endian" : "little_endian", memory);
        put_file("z.json", json);
        tn_file *f = open_file("z.json");
        tn_descriptors *set = describe(f, NULL);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        CHECK(d->byte_order == TN_LITTLE_ENDIAN && d->zero_copy_compatible == !big && d->is_contiguous == big);
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
    CHECK(d->physical_shape[1] == 4 && d->padding.values[1] == 1 && d->padding.dims[1] && !d->padding.dims[0]);
    CHECK(d->strides[0].factor == 4 && d->total_bytes == 8 && d->is_contiguous);
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
    tn_tensor t = { .name = "q", .form = "scaled", .dtype = TN_BFLOAT16, .rank = 2, .shape = shape, .parts = parts,
                    .nparts = 3, .scaling = &scaling, .meta = &meta, .nmeta = 1 };
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder(name).text, NULL, &w, NULL) == TN_OK);
    if (tn_writer_add(w, &t, &err) || tn_writer_finish(w, &err))
        fail_msg("%s", err.text);
}

static void quantization_is_described(void)
{
    static const char *const names[] = { "q.zt", "q.safetensors", "q.json" };
    for (size_t i = 0; i < 3; i++) {
        write_scaled(names[i]);
        tn_file *f = open_file(names[i]);
        tn_descriptors *set = describe(f, NULL);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        const tn_quantization *q = &d->quantization;
        CHECK(d->dtype == TN_INT8 && q->scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC && q->has_axis && q->channel_axis == 1);
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
    write_file("x.safetensors", (tn_create_options){ .filler = true }, s, 3);
    tn_file *f = open_file("x.safetensors");
    tn_descriptors *set = describe(f, NULL);
    CHECK(tn_descriptors_write(tn_descriptors_at(set, 0), 3, true, &json, &n, NULL) == TN_OK);
    put_file("x.json", json);
    CHECK(link(in_folder("x.safetensors").text, in_folder("x.bin").text) == 0);
    tn_file *raw = open_file("x.json");
    tn_compare_options options = { .size = sizeof options, .jobs = 1 };
    size_t different = 1;
    CHECK(tn_compare(f, raw, &options, NULL, &different, NULL) == TN_OK && different == 0);
    free(json);
    tn_descriptors_free(set);
    tn_close(raw);
    tn_close(f);
}

static void what_has_no_description_is_refused(void)
{
    put_file("s.json", "{\"version\":\"WIA-AI-011-v1.0\",\"format\":\"CSR\",\"shape\":[1,2],\"row_pointers\":[0,1],"
             "\"column_indices\":[1],\"values\":[2]}");
    tn_file *f = open_file("s.json");
    tn_descriptors *set = NULL;
    tn_error err = { .text = "" };
    CHECK(tn_describe(f, NULL, &set, &err) == TN_ERR_UNSUPPORTED && !set);
    walk_error(&err, TN_ERR_UNSUPPORTED);
    CHECK(strstr(err.text, "tensor \"s\""));
    CHECK(tn_describe(f, tn_file_tensor(f, 0), &set, NULL) == TN_ERR_UNSUPPORTED);
    tn_close(f);
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
        IN_FOLDER(what_has_no_description_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
