/* Files with tensors of datatypes: what stats and diff say of them is what they say of their values. */
#include "support.h"
#include "stored.h"

#include <math.h>

#include "files.h"
#include "make.h"
#include "coo.h"
#include "scaled_tensor.h"
#include "values.h"


static const char *const datatypes[] = {
    "mxfp8e4", "mxfp6e2", "mxfp4e2", "nvfp4e2", "mx6", "mxfp4f4", "icb44fi3_e32s8", "int8|float32",
    "int4|bfloat16_t32", "uint4|float16_float16_t32", "uint8|bfloat16_int8_t0", "int8|float32_t0d0",
    "e2m1fnuz|e8m0_t32d0", "e3m2fnuz|e8m0_t4_t8s4o1", "int4|bfloat16_t16n2m4", "e4m3fn|e8m0_t16d0n1m4",
    "e5m6|e8m0_t32", "float32|n2m4",
};

enum { DATATYPES = sizeof datatypes / sizeof *datatypes };

/* ---- files ---- */

static void write_tensor(const char *name, tn_create_options o, const tn_tensor *t)
{
    tn_error err = { .text = "" };
    tn_writer *w;
    o.size = sizeof o;
    o.replace = true;
    if (tn_create(in_folder(name).text, &o, &w, &err) || tn_writer_add(w, t, &err) ||
        tn_writer_finish(w, &err))
        fail_msg("%s: %s", name, line_of(&err));
}

static void write_dense(const char *name, const scaled_tensor *s, tn_dtype dtype, const void *data)
{
    const tn_part part = { .role = "data", .array = { dtype, s->tensor.rank, s->tensor.shape, NULL },
                           .data = data };
    tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .dtype = dtype, .rank = s->tensor.rank,
                    .shape = s->tensor.shape, .parts = &part,
                    .nparts = 1 };
    write_tensor(name, (tn_create_options){ 0 }, &t);
}

/* ---- statistics ---- */

static void keep_statistics(void *context, const tn_tensor *t, const tn_statistics *s, const tn_error *why)
{
    if (why)
        fail_msg("%s", line_of(why));
    if (t)
        *(tn_statistics *)context = *s;
}

static tn_statistics statistics_of(const tn_file *f, unsigned jobs)
{
    tn_statistics s = { 0 };
    tn_error err = { .text = "" };
    const tn_stats_options o = { .size = sizeof o, .jobs = jobs, .context = &s };
    if (tn_stats(f, &o, keep_statistics, &err))
        fail_msg("%s", line_of(&err));
    return s;
}

static tn_file *open_with(const char *name, tn_io io)
{
    tn_file *f;
    tn_error err = { .text = "" };
    if (tn_open(in_folder(name).text, &(tn_open_options){ .size = sizeof(tn_open_options), .io = io }, &f,
                &err))
        fail_msg("%s: %s", name, line_of(&err));
    return f;
}

static void statistics_are_those_of_the_values(void)
{
    static const int64_t shape[] = { 2, 20, 72 };
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        tn_dtype dtype = i % 3 == 1 ? TN_BFLOAT16 : TN_FLOAT32;
        make_scaled(&s, datatypes[i], dtype, 3, shape, (tn_quantize_options){ .unpacked = i % 4 == 2 });
        write_dense("dense.zt", &s, dtype, s.expected);
        write_tensor("raw.zt", (tn_create_options){ 0 }, &s.tensor);
        write_tensor("zstd.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD,
                                                     .checksum = TN_CHECKSUM_CRC32C }, &s.tensor);
        write_tensor("s.safetensors", (tn_create_options){ 0 }, &s.tensor);
        tn_file *files[] = { open_file("dense.zt"), open_file("raw.zt"), open_file("zstd.zt"),
                             open_file("s.safetensors"),
                             open_with("raw.zt", TN_IO_PREAD) };
        tn_statistics expected = statistics_of(files[0], 1);
        CHECK(expected.count == s.count);
        for (size_t k = 1; k < 5; k++) {
            tn_statistics found = statistics_of(files[k], 1 + k % 2);
            if (memcmp(&found, &expected, sizeof found) != 0)
                fail_msg("%s: file %zu differs", datatypes[i], k);
        }
        for (size_t k = 0; k < 5; k++)
            tn_close(files[k]);
        free_scaled(&s);
    }
}

/* Several spans and a remainder. */
static void statistics_do_not_depend_on_threads_or_encoding(void)
{
    static const int64_t shape[] = { 1, 1600, 1001 };
    static const char *const some[] = { "mxfp4e2", "int8|float32_t0d1" };
    for (size_t i = 0; i < 2; i++) {
        scaled_tensor s;
        make_scaled(&s, some[i], TN_BFLOAT16, 3, shape, (tn_quantize_options){ 0 });
        write_dense("dense.zt", &s, TN_BFLOAT16, s.expected);
        write_tensor("raw.zt", (tn_create_options){ 0 }, &s.tensor);
        write_tensor("zstd.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD, .level = 1 }, &s.tensor);
        tn_file *dense = open_file("dense.zt"), *raw = open_file("raw.zt"), *zstd = open_file("zstd.zt");
        tn_statistics expected = statistics_of(dense, 2), one = statistics_of(raw, 1),
                      many = statistics_of(raw, 3);
        tn_statistics packed = statistics_of(zstd, 2);
        CHECK(expected.count == s.count && memcmp(&one, &expected, sizeof one) == 0);
        CHECK(memcmp(&many, &expected, sizeof one) == 0 && memcmp(&packed, &expected, sizeof one) == 0);
        tn_close(dense);
        tn_close(raw);
        tn_close(zstd);
        free_scaled(&s);
    }
}

/* ---- differences ---- */

static void keep_difference(void *context, const tn_difference *d)
{
    if (d->a)
        *(tn_difference *)context = *d;
}

static tn_difference difference_of(const char *a, const char *b, unsigned jobs)
{
    tn_difference d = { 0 };
    tn_error err = { .text = "" };
    tn_file *x = open_file(a), *y = open_file(b);
    const tn_compare_options o = { .size = sizeof o, .jobs = jobs, .context = &d };
    if (tn_compare(x, y, &o, keep_difference, NULL, &err))
        fail_msg("%s", line_of(&err));
    CHECK(!(d.what & TN_DIFF_UNREAD));
    tn_close(x);
    tn_close(y);
    return d;
}

static void a_tensor_does_not_differ_from_its_values(void)
{
    static const int64_t shape[] = { 2, 33, 65 };
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 3, shape, (tn_quantize_options){ 0 });
        write_dense("dense.zt", &s, TN_FLOAT32, s.expected);
        write_tensor("raw.zt", (tn_create_options){ 0 }, &s.tensor);
        write_tensor("zstd.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &s.tensor);
        tn_difference d = difference_of("dense.zt", "raw.zt", 2);
        CHECK(d.what == TN_DIFF_FORM && d.elements == s.count && d.differing == 0 && d.saturated == 0 &&
              d.flushed == 0);
        d = difference_of("zstd.zt", "raw.zt", 1);
        CHECK(d.what == 0 && d.elements == s.count);
        free_scaled(&s);
    }
}

/* The figures of quantizing, as they were then. */
static void figures_are_those_of_quantizing(void)
{
    static const int64_t shape[] = { 2, 48, 100 };
    size_t saturated = 0;
    for (size_t i = 0; i < DATATYPES; i++) {
        scaled_tensor s;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 3, shape, (tn_quantize_options){ 0 });
        write_dense("dense.zt", &s, TN_FLOAT32, s.source);
        write_tensor("raw.zt", (tn_create_options){ 0 }, &s.tensor);
        tn_difference d = difference_of("dense.zt", "raw.zt", 2);
        if (d.saturated != s.report.saturated || d.flushed != s.report.flushed)
            fail_msg("%s: %llu saturated, %llu flushed, expected %llu and %llu", datatypes[i],
                     (unsigned long long)d.saturated, (unsigned long long)d.flushed,
                     (unsigned long long)s.report.saturated, (unsigned long long)s.report.flushed);
        CHECK(d.max_abs == s.report.max_error &&
              fabs(d.sqnr - 10 * log10(s.report.signal / s.report.noise)) < 1e-9);
        saturated += d.saturated != 0;
        free_scaled(&s);
    }
    CHECK(saturated > 5);
}

static void one_changed_code_is_found_at_its_place(void)
{
    static const int64_t shape[] = { 5, 37 };
    scaled_tensor s;
    make_scaled(&s, "mxfp4e2", TN_FLOAT32, 2, shape, (tn_quantize_options){ 0 });
    write_tensor("a.zt", (tn_create_options){ 0 }, &s.tensor);
    s.bytes[0][3 * 19 + 18] ^= 4;       /* the last of row 3: each row begins on a byte */
    write_tensor("b.zt", (tn_create_options){ 0 }, &s.tensor);
    tn_difference d = difference_of("a.zt", "b.zt", 2);
    CHECK(d.what == TN_DIFF_VALUES && d.differing == 1 && d.first == 3 * 37 + 36);
    free_scaled(&s);
}

static void a_tensor_without_elements_is_nothing_to_look_at(void)
{
    static const int64_t shape[] = { 0, 64 };
    scaled_tensor s;
    make_scaled(&s, "nvfp4e2", TN_FLOAT32, 2, shape, (tn_quantize_options){ 0 });
    write_tensor("a.zt", (tn_create_options){ 0 }, &s.tensor);
    write_dense("b.zt", &s, TN_FLOAT32, s.expected);
    tn_file *f = open_file("a.zt");
    CHECK(statistics_of(f, 1).count == 0);
    tn_close(f);
    CHECK(difference_of("a.zt", "b.zt", 1).what == TN_DIFF_FORM);
    free_scaled(&s);
}

static void other_shapes_are_not_compared_by_value(void)
{
    static const int64_t shape[] = { 5, 37 }, other[] = { 37, 5 };
    scaled_tensor a, b;
    make_scaled(&a, "mxfp4e2", TN_FLOAT32, 2, shape, (tn_quantize_options){ 0 });
    make_scaled(&b, "mxfp4e2", TN_FLOAT32, 2, other, (tn_quantize_options){ 0 });
    write_tensor("a.zt", (tn_create_options){ 0 }, &a.tensor);
    write_tensor("b.zt", (tn_create_options){ 0 }, &b.tensor);
    tn_difference d = difference_of("a.zt", "b.zt", 2);
    CHECK(d.what == TN_DIFF_SHAPE && d.elements == 0);
    free_scaled(&a);
    free_scaled(&b);
}

/* ---- reading ---- */

static void check_values(const tn_file *f, const scaled_tensor *s)
{
    tn_error err = { .text = "" };
    tn_view *v;
    uint8_t *out = exact_copy(s->expected, s->size);
    size_t width = s->size / s->count, half = s->count / 2;
    memset(out, 0, s->size);
    if (open_values(f, tn_file_find(f, "t"), &v, &err))
        fail_msg("%s", line_of(&err));
    CHECK(get_values(v, half, s->count - half, out + half * width, s->size - half * width, NULL) ==
          TN_OK);
    CHECK(get_values(v, 0, half, out, half * width, NULL) == TN_OK);
    CHECK(memcmp(out, s->expected, s->size) == 0);
    tn_view_close(v);
    free(out);
}

static void values_are_read_from_any_file(void)
{
    static const int64_t shape[] = { 64, 96 };
    static const tn_rotation rotation = { .size = 32, .walsh = true };
    static const char *const some[] = { "mxfp4e2", "int8|float32_t0d0", "e2m1fnuz|e8m0_t16d0" };
    for (size_t i = 0; i < 6; i++) {
        scaled_tensor s;
        make_scaled(&s, some[i / 2], TN_BFLOAT16, 2, shape,
                    (tn_quantize_options){ .rotation = i % 2 ? rotation : (tn_rotation){ 0 } });
        write_tensor("raw.zt", (tn_create_options){ 0 }, &s.tensor);
        write_tensor("zstd.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD,
                                                     .checksum = TN_CHECKSUM_SHA256 }, &s.tensor);
        tn_file *files[] = { open_file("raw.zt"), open_file("zstd.zt"), open_with("raw.zt", TN_IO_PREAD) };
        for (size_t k = 0; k < 3; k++) {
            check_values(files[k], &s);
            tn_close(files[k]);
        }
        free_scaled(&s);
    }
}

/* Codes of 4 bits: values begin anywhere, their codes do not. */
static void values_of_integer_codes_are_read_too(void)
{
    static const uint8_t codes[] = { 0x21, 0x43, 0xf5 };
    static const int64_t shape[] = { 6 };
    static const float scale = 0.5f, expected[] = { 0.5f, 1, 1.5f, 2, 2.5f, -0.5f };
    const tn_part parts[] = { { .role = "data", .array = { TN_INT4, 1, shape, NULL }, .data = codes },
                              { .role = "scale", .array = { .dtype = TN_FLOAT32 }, .data = &scale } };
    const tn_scaling scaling = { .axis = -1, .range = { -7, 7 } };
    const tn_tensor t = { .name = "t", .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = 1, .shape = shape,
                          .parts = parts, .nparts = 2,
                          .scaling = &scaling };
    for (int zstd = 0; zstd < 2; zstd++) {
        tn_view *v;
        float out[6] = { 0 };
        write_tensor("f.zt", (tn_create_options){ .encoding = zstd ? TN_ENCODING_ZSTD : TN_ENCODING_RAW },
                     &t);
        tn_file *f = open_file("f.zt");
        CHECK(open_values(f, tn_file_find(f, "t"), &v, NULL) == TN_OK);
        CHECK(get_values(v, 3, 3, out + 3, 3 * sizeof *out, NULL) == TN_OK);
        CHECK(get_values(v, 0, 3, out, 3 * sizeof *out, NULL) == TN_OK &&
              memcmp(out, expected, sizeof out) == 0);
        tn_view_close(v);
        tn_close(f);
    }
}

static void entries_of_a_sparse_tensor_are_values_at_their_places(void)
{
    static const int64_t shape[] = { 2, 3 }, indices[] = { 1, 2 };
    static const float one = 3, expected[6] = { [5] = 3 };
    float out[6];
    tn_view *v;
    write_entries("f.zt", TN_FLOAT32, shape, &one, indices, 1);
    tn_file *f = open_file("f.zt");
    CHECK(open_values(f, tn_file_find(f, "t"), &v, NULL) == TN_OK);
    CHECK(get_values(v, 0, 6, out, sizeof out, NULL) == TN_OK && memcmp(out, expected, sizeof out) == 0);
    CHECK(get_values(v, 4, 2, out, 8, NULL) == TN_OK && out[0] == 0 && out[1] == 3);
    tn_view_close(v);
    tn_close(f);
}

/* Damage is found when a part is decoded, and is the tensor's alone. */
static void damaged_parts_are_reported_with_their_tensor(void)
{
    static const int64_t shape[] = { 64, 96 };
    scaled_tensor s;
    tn_view *v;
    tn_file *f;
    tn_error err;
    size_t n;
    make_scaled(&s, "mxfp8e4", TN_FLOAT32, 2, shape, (tn_quantize_options){ 0 });
    write_tensor("f.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C },
                 &s.tensor);
    f = open_file("f.zt");
    const tn_stored_info at = stored_info(&tn_file_find(f, "t")->parts[1]);
    tn_close(f);
    uint8_t *bytes = load_file(in_folder("f.zt").text, &n);
    bytes[at.offset + at.bytes - 1] ^= 0x10;
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    float out;
    CHECK(open_values(f, tn_file_find(f, "t"), &v, NULL) == TN_OK);
    tn_status status = get_values(v, 0, 1, &out, sizeof out, &err);
    tn_view_close(v);
    CHECK((status == TN_ERR_CORRUPT || status == TN_ERR_CHECKSUM) && strstr(line_of(&err), "\"t\""));
    tn_close(f);
    free(bytes);
    free_scaled(&s);
}

/* ---- hostile files ---- */

static void count_reports(void *context, const tn_tensor *t, const tn_statistics *s, const tn_error *why)
{
    (void)t, (void)s;
    CHECK(!why || *line_of(why));
    ++*(size_t *)context;
}

/* Whatever can be opened is gone through; what is wrong with it is said. */
static void go_through(const uint8_t *bytes, size_t n)
{
    tn_file *f;
    tn_error err = { .text = "" };
    uint8_t *copy = exact_copy(bytes, n);
    size_t reports = 0;
    const tn_stats_options stats = { .size = sizeof stats, .jobs = 1, .context = &reports };
    if (tn_open_memory(copy, n, NULL, &f, &err) == TN_OK) {
        CHECK(tn_stats(f, &stats, count_reports, &err) == TN_OK && reports == tn_file_count(f) + 1);
        for (size_t i = 0; i < tn_file_count(f); i++) {
            tn_view *v;
            uint64_t element;
            if (open_values(f, tn_file_tensor(f, i), &v, &err) == TN_OK) {
                get_values(v, 0, 1, &element, tn_dtype_get(tn_file_tensor(f, i)->dtype)->bits / 8, &err);
                tn_view_close(v);
            } else {
                CHECK(*line_of(&err));
            }
        }
        CHECK(tn_compare(f, f, NULL, NULL, NULL, &err) == TN_OK || *line_of(&err));
        tn_close(f);
    } else {
        CHECK(*line_of(&err));
    }
    free(copy);
}

static void damaged_files_are_survived(void)
{
    static const int64_t shape[] = { 3, 8 };
    static const struct { const char *name, *datatype; tn_encoding encoding; } files[] = {
        { "f.zt", "mx6", TN_ENCODING_RAW },
        { "f.zt", "uint4|float16_float16_t4", TN_ENCODING_ZSTD },
        { "f.safetensors", "cb42f1346_e2m3fnuz|e8m0_t8s4", TN_ENCODING_RAW },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        scaled_tensor s;
        size_t n;
        make_scaled(&s, files[i].datatype, TN_BFLOAT16, 2, shape,
                    (tn_quantize_options){ .rotation = { .size = i == 0 ? 4 : 0 } });
        write_tensor(files[i].name, (tn_create_options){ .encoding = files[i].encoding }, &s.tensor);
        uint8_t *bytes = load_file(in_folder(files[i].name).text, &n);
        for (size_t at = 0; at < n; at++) {
            static const uint8_t flips[] = { 0x01, 0x80, 0xff };
            go_through(bytes, at);
            for (size_t k = 0; k < sizeof flips; k++) {
                bytes[at] ^= flips[k];
                go_through(bytes, n);
                bytes[at] ^= flips[k];
            }
        }
        free(bytes);
        free_scaled(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(statistics_are_those_of_the_values),
        IN_FOLDER(statistics_do_not_depend_on_threads_or_encoding),
        IN_FOLDER(a_tensor_does_not_differ_from_its_values),
        IN_FOLDER(figures_are_those_of_quantizing),
        IN_FOLDER(one_changed_code_is_found_at_its_place),
        IN_FOLDER(a_tensor_without_elements_is_nothing_to_look_at),
        IN_FOLDER(other_shapes_are_not_compared_by_value),
        IN_FOLDER(values_are_read_from_any_file),
        IN_FOLDER(values_of_integer_codes_are_read_too),
        IN_FOLDER(entries_of_a_sparse_tensor_are_values_at_their_places),
        IN_FOLDER(damaged_parts_are_reported_with_their_tensor),
        IN_FOLDER(damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
