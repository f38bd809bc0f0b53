/* One open file, many threads: every function that reads may be called at once. */
#include "support.h"

#include <pthread.h>

#include "files.h"
#include "make.h"
#include "model.h"

enum { THREADS = 6, ROUNDS = 8 };

typedef struct visitor {
    pthread_t      thread;
    const tn_file *file;
    const model   *expected;
    tn_checksum    checksum;
} visitor;

static void *visit(void *argument)
{
    const visitor *v = argument;
    for (int i = 0; i < ROUNDS; i++) {
        model_check(v->expected, v->file, v->checksum);
        walk_file(v->file);
    }
    return NULL;
}

static void many_threads_read_one_file(void)
{
    static const tn_io ios[] = { TN_IO_MMAP, TN_IO_PREAD };
    static const tn_create_options ways[] = {
        { .format = "ztensor", .checksum = TN_CHECKSUM_CRC32C }, { .format = "safetensors" },
        { .format = "ztensor", .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_SHA256 },
    };
    for (size_t k = 0; k < 6; k++) {
        model m;
        chooser c = { .seed = 5 + k };
        tn_error err = { .text = "" };
        tn_create_options create = ways[k % 3];
        tn_open_options open = { .size = sizeof open, .io = ios[k / 3] };
        tn_file *f;
        create.size = sizeof create;
        create.replace = true;
        model_make(&m, &c);
        if (model_write(&m, &c, in_folder("f").text, &create, &err) ||
            tn_open(in_folder("f").text, &open, &f, &err))
            fail_msg("%s", line_of(&err));
        visitor v[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            v[i] = (visitor){ .file = f, .expected = &m, .checksum = create.checksum };
            CHECK(pthread_create(&v[i].thread, NULL, visit, &v[i]) == 0);
        }
        for (size_t i = 0; i < THREADS; i++)
            CHECK(pthread_join(v[i].thread, NULL) == 0);
        tn_close(f);
        model_free(&m);
    }
}

/* Conversions side by side, each with threads of its own, from one open file into one folder. */
static void *convert_beside(void *argument)
{
    const visitor *v = argument;
    char out[PATH_MAX];
    snprintf(out, sizeof out, "%s/%p.zt", folder, argument);
    for (int i = 0; i < ROUNDS; i++) {
        const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = 3,
                                           .encoding = i % 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW };
        tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE };
        tn_error err;
        size_t different = 99;
        tn_file *f;
        REQUIRE(tn_convert(v->file, out, &options, NULL, &err) == TN_OK);
        REQUIRE(tn_open(out, NULL, &f, &err) == TN_OK);
        REQUIRE(tn_compare(v->file, f, NULL, NULL, &different, &err) == TN_OK && different == 0);
        tn_close(f);
    }
    return NULL;
}

static void many_threads_convert_one_file(void)
{
    model m;
    chooser c = { .seed = 77 };
    tn_create_options create = { .size = sizeof create, .checksum = TN_CHECKSUM_CRC32C };
    tn_file *f;
    model_make(&m, &c);
    CHECK(model_write(&m, &c, in_folder("f.zt").text, &create, NULL) == TN_OK);
    CHECK(tn_open(in_folder("f.zt").text, NULL, &f, NULL) == TN_OK);
    visitor v[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        v[i] = (visitor){ .file = f };
        CHECK(pthread_create(&v[i].thread, NULL, convert_beside, &v[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(v[i].thread, NULL) == 0);
    CHECK(count_entries(folder) == THREADS + 1);
    tn_close(f);
    model_free(&m);
}

/* Threads that quantize one tensor write no byte that another one has. */
static void quantize_with(const char *text, const int64_t *shape, const float *x, unsigned jobs,
                          uint8_t *parts, size_t size)
{
    const tn_quantize_options o = { .size = sizeof o, .jobs = jobs };
    tn_scaled_shapes shapes;
    tn_datatype *d;
    tn_error err = { .text = "" };
    void *part[7];
    size_t at = 0;
    CHECK(tn_datatype_parse(text, &d, &err) == TN_OK &&
          tn_scaled_shapes_for(d, 2, shape, &shapes, &err) == TN_OK);
    memset(parts, 0xa5, size);
    for (uint32_t i = 0; i < shapes.count; i++) {
        const tn_array a = { shapes.parts[i].dtype, shapes.parts[i].rank, shapes.parts[i].shape, NULL };
        uint64_t n = 0;
        CHECK(tn_array_nbytes(&a, &n) == TN_OK && at + n <= size);
        part[i] = parts + at;
        at += (size_t)n;
    }
    CHECK(tn_quantize(d, &(tn_array){ TN_FLOAT32, 2, shape, NULL }, x, part, &o, NULL, &err) == TN_OK);
    tn_datatype_free(d);
}

static void many_threads_quantize_one_tensor(void)
{
    static const struct { const char *text; int64_t shape[2]; } all[] = {
        { "int5|e5m0_t2", { 1, 600001 } }, { "e2m1fnuz|e8m0_t8d0", { 64, 9001 } }, { "mxfp4", { 301, 2001 } },
        { "int8|float16", { 301, 2001 } },
    };
    enum { COUNT = 301 * 2001, SIZE = 2 * COUNT };
    float *x = malloc(COUNT * sizeof *x);
    uint8_t *one = malloc(SIZE), *many = malloc(SIZE);
    assert_non_null(x);
    assert_non_null(one);
    assert_non_null(many);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(i * 2654435761u % 20011) - 10005;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        quantize_with(all[i].text, all[i].shape, x, 1, one, SIZE);
        quantize_with(all[i].text, all[i].shape, x, 4, many, SIZE);
        assert_memory_equal(one, many, SIZE);
    }
    free(x);
    free(one);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(many_threads_read_one_file),
        IN_FOLDER(many_threads_convert_one_file),
        TEST(many_threads_quantize_one_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
