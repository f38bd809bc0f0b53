/* What datatypes would do to the tensors of a file. */
#include "support.h"

#include <math.h>

#include "make.h"

enum { MOST = 32 };

typedef struct seen {
    struct { char name[32], datatype[80]; double bits; bool rated; tn_quantize_stats report; } all[MOST];
    size_t count;
} seen;

static void keep(void *context, const tn_quantize_report *q)
{
    seen *v = context;
    REQUIRE(v->count < MOST && strcmp(q->name, q->source->name) == 0);
    snprintf(v->all[v->count].name, sizeof v->all[0].name, "%s", q->name);
    snprintf(v->all[v->count].datatype, sizeof v->all[0].datatype, "%s", q->datatype);
    v->all[v->count].bits = q->bits;
    v->all[v->count].rated = q->report != NULL;
    if (q->report)
        v->all[v->count].report = *q->report;
    v->count++;
}

typedef struct types {
    tn_datatype *items[8];
    size_t count;
} types;

/* Names, with a comma between any two. */
static types types_of(const char *list)
{
    types t = { .count = 0 };
    for (const char *at = list; *at;) {
        char name[80];
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        CHECK(tn_datatype_parse(name, &t.items[t.count++], NULL) == TN_OK);
        at += n + (at[n] == ',');
    }
    return t;
}

static void free_types(types *t)
{
    for (size_t i = 0; i < t->count; i++)
        tn_datatype_free(t->items[i]);
}

static tn_status rate(const char *file, const char *list, tn_compare_datatypes_options o, seen *v,
                      tn_error *err)
{
    types t = types_of(list);
    tn_file *f = open_file(file);
    o.size = sizeof o;
    o.context = o.context ? o.context : v;
    tn_status status =
        tn_compare_datatypes(f, (const tn_datatype *const *)t.items, t.count, &o, v ? keep : NULL, err);
    tn_close(f);
    free_types(&t);
    return status;
}

static seen rated(const char *file, const char *list, tn_compare_datatypes_options o)
{
    seen v = { .count = 0 };
    tn_error err = { .text = "" };
    if (rate(file, list, o, &v, &err))
        fail_msg("%s: %s", list, line_of(&err));
    return v;
}

/* Values that are not on any grid. */
static void fill(float *data, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (float)(int32_t)state * 0x1p-30f;
    }
}

static void tensors_come_in_order_with_each_datatype_in_order(void)
{
    float a[64];
    fill(a, 64);
    const simple tensors[] = { { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 32 }, .data = a },
                               { .name = "b", .dtype = TN_BFLOAT16, .rank = 1, .shape = { 32 }, .data = a } };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 2);
    seen v = rated("f.zt", "mxfp4,int8|float32", (tn_compare_datatypes_options){ 0 });
    static const char *const names[] = { "a", "a", "b", "b" };
    CHECK(v.count == 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK(strcmp(v.all[i].name, names[i]) == 0 && v.all[i].rated &&
              v.all[i].report.values == (i < 2 ? 64 : 32));
        CHECK(strcmp(v.all[i].datatype, i % 2 ? "int8|float32" : "e2m1fnuz|e8m0_t32") == 0);
    }
    /* one scale of 4 bytes for 64 and 32 values */
    CHECK(v.all[0].bits == 4.25 && v.all[1].bits == 8.5 && v.all[3].bits == 9);
}

/* The figures are those of a cast that is really done. */
static void figures_are_those_of_a_virtual_cast(void)
{
    enum { N = 96 };
    static const char *const names[] = { "mxfp4", "nvfp4", "int4_b32", "e4m3fn|float32", "icb44fi2_e32",
                                         "mx6" };
    float data[N], out[N];
    fill(data, N);
    data[5] = 1e-9f;
    data[40] = -700;
    const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 32 }, .data = data };
    write_file("f.zt", (tn_create_options){ 0 }, &tensor, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int64_t shape[] = { 3, 32 };
        const tn_array array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
        tn_datatype *d;
        tn_quantize_stats report;
        CHECK(tn_datatype_parse(names[i], &d, NULL) == TN_OK);
        for (int mode = TN_SCALE_MAX; mode <= TN_SCALE_MSE; mode++) {
            tn_quantize_options o = { .size = sizeof o, .rule = (tn_scale_rule)mode };
            CHECK(tn_fake_quantize(d, &array, data, out, &o, &report, NULL) == TN_OK);
            seen v = rated("f.zt", names[i], (tn_compare_datatypes_options){ .quantize = &o });
            const tn_quantize_stats *r = &v.all[0].report;
            CHECK(v.count == 1 && r->values == N && r->flushed == report.flushed &&
                  r->saturated == report.saturated);
            CHECK(r->signal == report.signal && r->noise == report.noise && r->max_error == report.max_error);
            double worst = 0;
            for (size_t k = 0; k < N; k++)
                worst = fmax(worst, fabs((double)data[k] - (double)out[k]));
            CHECK(r->max_error == worst && r->noise > 0);
        }
        tn_datatype_free(d);
    }
}

static void what_is_no_float_or_does_not_fit_is_left_out(void)
{
    static const float x[64] = { 1, 2, 3 };
    static const int32_t i[4] = { 1, 2, 3, 4 };
    const simple tensors[] = { { .name = "codes", .dtype = TN_INT32, .rank = 1, .shape = { 4 }, .data = i },
                               { .name = "scales", .dtype = TN_FLOAT8_E8M0, .rank = 1, .shape = { 4 },
                                 .data = i },
                               { .name = "scalar", .dtype = TN_FLOAT32, .rank = 0, .data = x },
                               { .name = "vector", .dtype = TN_FLOAT32, .rank = 1, .shape = { 64 },
                                 .data = x },
                               { .name = "matrix", .dtype = TN_FLOAT16, .rank = 2, .shape = { 2, 32 },
                                 .data = x },
                               { .name = "empty", .dtype = TN_FLOAT64, .rank = 2, .shape = { 0, 32 },
                                 .data = x } };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 6);
    seen v = rated("f.zt", "mxfp4,int8|float32,mxfp4s", (tn_compare_datatypes_options){ 0 });
    static const char fits[6][4] = { "...", "...", ".+.", "++.", "+++", "+++" };
    CHECK(v.count == 18);
    for (size_t k = 0; k < v.count; k++)
        CHECK(v.all[k].rated == (fits[k / 3][k % 3] == '+'));
    CHECK(v.all[15].report.values == 0 && v.all[15].bits == 0);
}

static void a_rotation_needs_a_multiple_of_its_size(void)
{
    float x[96];
    fill(x, 96);
    x[7] = 50;                          /* an outlier, which a rotation spreads */
    const simple tensors[] = { { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 32 }, .data = x },
                               { .name = "b", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 48 },
                                 .data = x } };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 2);
    tn_quantize_options o = { .size = sizeof o, .rotation = { .size = 32 } };
    seen plain = rated("f.zt", "int4_b32", (tn_compare_datatypes_options){ 0 }),
    v = rated("f.zt", "int4_b32", (tn_compare_datatypes_options){ .quantize = &o });
    CHECK(v.count == 2 && v.all[0].rated && !v.all[1].rated);
    CHECK(v.all[0].report.noise > 0 && v.all[0].report.noise < plain.all[0].report.noise);
}

static void only_what_matches_is_rated(void)
{
    static const float x[32] = { 1 };
    const simple tensors[] = { { .name = "a.w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 32 }, .data = x },
                               { .name = "a.b", .dtype = TN_FLOAT32, .rank = 1, .shape = { 32 }, .data = x },
                               { .name = "c.w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 32 },
                                 .data = x } };
    static const char *const some[] = { "*.w" }, *const none[] = { "*.w", "x*" };
    tn_error err;
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 3);
    seen v = rated("f.zt", "mxfp4", (tn_compare_datatypes_options){ .only = some, .nonly = 1 });
    CHECK(v.count == 2 && strcmp(v.all[0].name, "a.w") == 0 && strcmp(v.all[1].name, "c.w") == 0);
    CHECK(rate("f.zt", "mxfp4", (tn_compare_datatypes_options){ .only = none, .nonly = 2 }, NULL,
               &err) == TN_ERR_ARGUMENT);
    CHECK(strcmp(said_of(&err), "no tensor matches \"x*\"") == 0);
}

static void figures_do_not_depend_on_threads_or_encoding(void)
{
    enum { N = 300 * 1024 };
    float *data = malloc(N * sizeof *data);
    assert_non_null(data);
    fill(data, N);
    const simple tensors[] = { { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { 300, 1024 },
                                 .data = data },
                               { .name = "small", .dtype = TN_FLOAT4_E2M1, .rank = 2, .shape = { 3, 64 },
                                 .data = data } };
    write_file("raw.zt", (tn_create_options){ 0 }, tensors, 2);
    write_file("zstd.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C },
               tensors, 2);
    seen one = rated("raw.zt", "mxfp4,nvfp4,int8|float32", (tn_compare_datatypes_options){ .jobs = 1 });
    seen many = rated("raw.zt", "mxfp4,nvfp4,int8|float32", (tn_compare_datatypes_options){ .jobs = 3 });
    seen packed = rated("zstd.zt", "mxfp4,nvfp4,int8|float32", (tn_compare_datatypes_options){ .jobs = 2 });
    CHECK(one.count == 6 && memcmp(&one, &many, sizeof one) == 0 && memcmp(&one, &packed, sizeof one) == 0);
    CHECK(one.all[0].report.values == N && one.all[3].report.values == 192 && one.all[3].report.noise == 0);
    free(data);
}

static void a_nan_without_a_code_is_an_error_or_zero(void)
{
    static const float x[32] = { 1, NAN };
    const simple tensor = { .name = "x\n", .dtype = TN_FLOAT32, .rank = 1, .shape = { 32 }, .data = x };
    tn_error err = { .text = "" };
    seen v = { .count = 0 };
    write_file("f.zt", (tn_create_options){ 0 }, &tensor, 1);
    CHECK(rate("f.zt", "mxfp8,mxfp4", (tn_compare_datatypes_options){ 0 }, &v, &err) == TN_ERR_LOSS);
    CHECK(v.count == 1 && strncmp(said_of(&err), "tensor \"x\\n\": element", 20) == 0);
    CHECK(strstr(line_of(&err), " (as \"e2m1fnuz|e8m0_t32\") (nan zero)"));
    tn_quantize_options o = { .size = sizeof o, .nan = TN_NAN_ZERO };
    v = rated("f.zt", "mxfp8,mxfp4", (tn_compare_datatypes_options){ .quantize = &o });
    CHECK(v.count == 2 && v.all[1].report.values == 32 && v.all[1].report.noise == 0);
}

static void options_without_a_meaning_are_refused(void)
{
    static const float x[32] = { 1 };
    const simple tensor = { .name = "x", .dtype = TN_FLOAT32, .rank = 1, .shape = { 32 }, .data = x };
    tn_quantize_options mode = { .size = sizeof mode, .rule = (tn_scale_rule)9 },
    ggml = { .size = sizeof ggml, .ggml = true };
    write_file("f.zt", (tn_create_options){ 0 }, &tensor, 1);
    CHECK(rate("f.zt", "mxfp4", (tn_compare_datatypes_options){ .quantize = &mode }, NULL,
               NULL) == TN_ERR_ARGUMENT);
    CHECK(rate("f.zt", "mxfp4,mxfp8", (tn_compare_datatypes_options){ .quantize = &ggml }, NULL,
               NULL) == TN_ERR_ARGUMENT);
    CHECK(rate("f.zt", "mxfp4", (tn_compare_datatypes_options){ .quantize = &ggml }, NULL, NULL) == TN_OK);
}

typedef struct clock_seen { uint64_t done, total; int calls, stop; } clock_seen;

static int step(void *context, uint64_t done, uint64_t total)
{
    clock_seen *c = context;
    CHECK(done > c->done && done <= total);
    c->done = done;
    c->total = total;
    return ++c->calls == c->stop;
}

static void progress_counts_bytes_and_can_stop(void)
{
    static const float x[64] = { 1 };
    const simple tensors[] = { { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 64 }, .data = x },
                               { .name = "i", .dtype = TN_INT8, .rank = 1, .shape = { 64 }, .data = x },
                               { .name = "b", .dtype = TN_FLOAT16, .rank = 1, .shape = { 64 }, .data = x } };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 3);
    clock_seen all = { .stop = 0 }, stopped = { .stop = 3 };
    CHECK(rate("f.zt", "mxfp4,mxfp8", (tn_compare_datatypes_options){ .progress = step, .context = &all },
               NULL,
               NULL) == TN_OK);
    CHECK(all.calls == 4 && all.done == 768 && all.total == 768);
    CHECK(rate("f.zt", "mxfp4,mxfp8", (tn_compare_datatypes_options){ .progress = step, .context = &stopped },
               NULL,
               NULL) == TN_ERR_CANCELLED);
    CHECK(stopped.calls == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(tensors_come_in_order_with_each_datatype_in_order),
        IN_FOLDER(figures_are_those_of_a_virtual_cast),
        IN_FOLDER(what_is_no_float_or_does_not_fit_is_left_out),
        IN_FOLDER(a_rotation_needs_a_multiple_of_its_size),
        IN_FOLDER(only_what_matches_is_rated),
        IN_FOLDER(figures_do_not_depend_on_threads_or_encoding),
        IN_FOLDER(a_nan_without_a_code_is_an_error_or_zero),
        IN_FOLDER(options_without_a_meaning_are_refused),
        IN_FOLDER(progress_counts_bytes_and_can_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
