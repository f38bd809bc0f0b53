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
        if (model_write(&m, &c, in_folder("f").text, &create, &err) || tn_open(in_folder("f").text, &open, &f, &err))
            fail_msg("%s", err.text);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(many_threads_read_one_file),
        IN_FOLDER(many_threads_convert_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
