/* Statistics of files: the same for any threads, encoding and byte order. */
#include "support.h"
#include "stored.h"

#include <math.h>

#include "environment.h"
#include "files.h"
#include "make.h"
#include "coo.h"

typedef struct seen {
    char          name[16][32];         /* "" for the total */
    tn_statistics all[16];
    tn_error      why[16];
    size_t        count;
} seen;

static void keep(void *context, const tn_tensor *t, const tn_statistics *s, const tn_error *why)
{
    seen *v = context;
    REQUIRE(v->count < 16);
    snprintf(v->name[v->count], sizeof v->name[0], "%s", t ? t->name : "");
    v->why[v->count] = why ? *why : (tn_error){ .status = TN_OK };
    v->all[v->count++] = *s;
}

static seen stats_of(const tn_file *f, unsigned jobs)
{
    seen v = { .count = 0 };
    tn_error err = { .text = "" };
    tn_stats_options options = { .size = sizeof options, .jobs = jobs, .context = &v };
    if (tn_stats(f, &options, keep, &err))
        fail_msg("%s", line_of(&err));
    CHECK(v.count && strcmp(v.name[v.count - 1], "") == 0);
    return v;
}

static void tensors_come_in_order_and_then_all_together(void)
{
    static const float a[] = { 1, 2, 3, NAN };
    static const int16_t b[] = { -5, 0 };
    const simple tensors[] = { { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 4 }, .data = a },
                               { .name = "b", .dtype = TN_INT16, .rank = 1, .shape = { 2 }, .data = b },
                               { .name = "none", .dtype = TN_INT16, .rank = 1, .shape = { 0 }, .data = b } };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 3);
    tn_file *f = open_file("f.zt");
    seen v = stats_of(f, 2);
    CHECK(v.count == 4 && strcmp(v.name[0], "a") == 0 && strcmp(v.name[1], "b") == 0 &&
          strcmp(v.name[2], "none") == 0);
    CHECK(v.all[0].count == 4 && v.all[0].nans == 1 && v.all[0].mean == 2 && v.all[0].max == 3);
    CHECK(v.all[1].min == -5 && v.all[1].zeros == 1 && v.all[1].absmax == 5 && v.all[1].mean == -2.5 &&
          v.all[1].deviation == 2.5);
    CHECK(v.all[2].count == 0 && isnan(v.all[2].min) && v.why[2].status == TN_OK);
    CHECK(v.all[3].count == 6 && v.all[3].finite == 5 && v.all[3].min == -5 && v.all[3].max == 3 &&
          fabs(v.all[3].mean - 0.2) < 1e-15);
    tn_close(f);
}

/* Several spans and a remainder, of types that lie differently in windows. */
static void figures_do_not_depend_on_threads_or_encoding(void)
{
    enum { N = 3400001 };
    static const tn_dtype types[] = { TN_FLOAT32, TN_FLOAT6_E3M2, TN_BFLOAT16 };
    float *data = malloc(N * sizeof *data);
    assert_non_null(data);
    uint32_t state = 1;
    for (size_t i = 0; i < N; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (float)(int32_t)state * 0x1p-30f;
    }
    for (size_t t = 0; t < 3; t++) {
        simple s = { .name = "t", .dtype = types[t], .rank = 1, .shape = { N }, .data = data };
        write_file("raw.zt", (tn_create_options){ .replace = true }, &s, 1);
        write_file("zstd.zt", (tn_create_options){ .replace = true, .encoding = TN_ENCODING_ZSTD,
                                                   .level = 1 }, &s, 1);
        tn_file *raw = open_file("raw.zt"), *zstd = open_file("zstd.zt");
        seen one = stats_of(raw, 1), many = stats_of(raw, 3), packed = stats_of(zstd, 2);
        CHECK(one.count == 2 && one.all[0].count == N);
        CHECK(memcmp(one.all, many.all, 2 * sizeof *one.all) == 0);
        CHECK(memcmp(one.all, packed.all, 2 * sizeof *one.all) == 0);
        /* one tensor: all together is the same */
        CHECK(memcmp(&one.all[0], &one.all[1], sizeof *one.all) == 0);
        tn_close(raw);
        tn_close(zstd);
    }
    free(data);
}

static void the_callers_floating_point_environment_changes_nothing(void)
{
    enum { N = 30000 };
    static float f32[N];
    static uint16_t f16[N];
    static uint8_t f8[N];
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = i * 2654435769u;
        bits &= i % 3 ? 0xbfffffff : 0x807fffff;        /* a third is subnormal */
        memcpy(&f32[i], &bits, sizeof bits);
        f16[i] = (uint16_t)(i % 3 ? bits >> 16 : bits >> 16 & 0x83ff);
        f8[i] = (uint8_t)i;
    }
    const simple tensors[] = { { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { N }, .data = f32 },
                               { .name = "b", .dtype = TN_FLOAT16, .rank = 1, .shape = { N }, .data = f16 },
                               { .name = "c", .dtype = TN_FLOAT8_E5M2, .rank = 1, .shape = { N },
                                 .data = f8 } };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 3);
    tn_file *f = open_file("f.zt");
    for (unsigned jobs = 1; jobs <= 2; jobs++) {
        seen usual = stats_of(f, jobs);
        for (environment e = 0; e < ENVIRONMENTS; e++) {
            enter_environment(e);
            uint64_t before = environment_seen();
            seen v = stats_of(f, jobs);
            uint64_t after = environment_seen();
            leave_environment();
            CHECK(before == after && memcmp(v.all, usual.all, usual.count * sizeof *v.all) == 0);
        }
    }
    tn_close(f);
}

static void byte_order_does_not_matter(void)
{
    tn_file *little, *big;
    CHECK(tn_open(TEST_GOLDEN "/ztensor/good/raw_little.zt", NULL, &little, NULL) == TN_OK);
    CHECK(tn_open(TEST_GOLDEN "/ztensor/good/raw_big.zt", NULL, &big, NULL) == TN_OK);
    seen a = stats_of(little, 1), b = stats_of(big, 1);
    CHECK(a.count == b.count && a.count > 10 && memcmp(a.all, b.all, a.count * sizeof *a.all) == 0);
    tn_close(little);
    tn_close(big);
}

static void what_cannot_be_read_is_said_and_the_rest_goes_on(void)
{
    static const char *const names[] = { "unknown_dtype", "unknown_encoding", "layout_sparse" };
    for (size_t i = 0; i < 3; i++) {
        char golden[PATH_MAX];
        tn_file *f;
        tn_error err = { .text = "" };
        snprintf(golden, sizeof golden, "%s/ztensor/edge/%s.zt", TEST_GOLDEN, names[i]);
        if (tn_open(golden, NULL, &f, &err))
            fail_msg("%s: %s", golden, line_of(&err));
        seen v = stats_of(f, 1);
        CHECK(v.count == 2 && v.why[0].status == TN_ERR_UNSUPPORTED && strstr(line_of(&v.why[0]), "tensor \"") &&
              v.all[0].count == 0);
        CHECK(v.all[1].count == 0 && isnan(v.all[1].max));
        tn_close(f);
    }
}

static void damaged_data_is_reported_with_its_tensor(void)
{
    static float data[20000];
    const simple tensors[] = { { .name = "bad", .dtype = TN_FLOAT32, .rank = 1, .shape = { 20000 },
                                 .data = data },
                               { .name = "good", .dtype = TN_FLOAT32, .rank = 1, .shape = { 10 },
                                 .data = data } };
    size_t n;
    tn_file *f;
    for (size_t i = 0; i < 20000; i++)
        data[i] = (float)(i * i % 977);
    write_file("f.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, tensors, 2);
    f = open_file("f.zt");
    uint64_t at = stored_info(&tn_file_find(f, "bad")->parts[0]).offset,
             size = stored_info(&tn_file_find(f, "bad")->parts[0]).bytes;
    tn_close(f);
    uint8_t *bytes = load_file(in_folder("f.zt").text, &n);
    memset(bytes + at + size / 2, 0xa5, (size_t)(size / 4));
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    seen v = stats_of(f, 2);
    CHECK(v.count == 3 && v.why[0].status == TN_ERR_CORRUPT && strstr(line_of(&v.why[0]), "\"bad\"") &&
          v.all[0].count == 0);
    CHECK(v.why[1].status == TN_OK && v.all[1].count == 10 && v.all[2].count == 10);
    tn_close(f);
    free(bytes);
}

static void globs_choose_tensors(void)
{
    static const float a[] = { 1, 2 };
    static const char *const some[] = { "*.b", "x" }, *const wrong[] = { "x", "nothing" };
    const simple tensors[] = { { .name = "a.b", .dtype = TN_FLOAT32, .rank = 1, .shape = { 2 }, .data = a },
                               { .name = "c", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = a },
                               { .name = "x", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = a } };
    seen v = { .count = 0 };
    tn_error err = { .text = "" };
    tn_stats_options options = { .size = sizeof options, .context = &v, .only = some, .nonly = 2 };
    write_file("f.zt", (tn_create_options){ 0 }, tensors, 3);
    tn_file *f = open_file("f.zt");
    CHECK(tn_stats(f, &options, keep, &err) == TN_OK && v.count == 3 && v.all[2].count == 3);
    CHECK(strcmp(v.name[0], "a.b") == 0 && strcmp(v.name[1], "x") == 0);
    options.only = wrong;
    CHECK(tn_stats(f, &options, keep, &err) == TN_ERR_ARGUMENT &&
          strcmp(said_of(&err), "no tensor matches \"nothing\"") == 0);
    CHECK(v.count == 3);
    CHECK(tn_stats(f, NULL, NULL, NULL) == TN_OK);
    tn_close(f);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    return done > 0 && done <= total;
}

static void progress_can_stop_it(void)
{
    tn_file *f;
    tn_stats_options options = { .size = sizeof options, .progress = stop };
    CHECK(tn_open(TEST_GOLDEN "/ztensor/good/mixed.zt", NULL, &f, NULL) == TN_OK);
    CHECK(tn_stats(f, &options, NULL, NULL) == TN_ERR_CANCELLED);
    tn_close(f);
}

static void zeros_that_are_not_stored_count(void)
{
    static const float one[] = { 3, -4 };
    static const int64_t shape[] = { 2, 3 }, tiny[] = { 1, 1 }, indices[] = { 1, 2 },
    twice[] = { 0, 0, 0, 0 };
    write_entries("f.zt", TN_FLOAT32, shape, one, indices, 1);
    tn_file *f = open_file("f.zt");
    seen v = stats_of(f, 2);
    CHECK(v.all[0].count == 6 && v.all[0].zeros == 5 && v.all[0].min == 0 && v.all[0].max == 3 &&
          v.all[0].mean == 0.5);
    tn_close(f);
    write_entries("f.zt", TN_COMPLEX64, shape, one, indices, 1);       /* both halves are values */
    f = open_file("f.zt");
    v = stats_of(f, 1);
    CHECK(v.all[0].count == 12 && v.all[0].zeros == 10 && v.all[0].min == -4 && v.all[0].max == 3);
    tn_close(f);
    write_entries("f.zt", TN_FLOAT32, tiny, one, twice, 2);            /* more entries than elements */
    f = open_file("f.zt");
    v = stats_of(f, 1);
    CHECK(v.all[0].count == 2 && v.all[0].zeros == 0);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(tensors_come_in_order_and_then_all_together),
        IN_FOLDER(figures_do_not_depend_on_threads_or_encoding),
        IN_FOLDER(the_callers_floating_point_environment_changes_nothing),
        TEST(byte_order_does_not_matter),
        TEST(what_cannot_be_read_is_said_and_the_rest_goes_on),
        IN_FOLDER(damaged_data_is_reported_with_its_tensor),
        IN_FOLDER(globs_choose_tensors),
        IN_FOLDER(zeros_that_are_not_stored_count),
        TEST(progress_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
