/* Random tensors through every container, encoding and checksum, and from
 * container to container: nothing changes.  A failure prints its seed. */
#include "support.h"
#include "format_option.h"

#include "files.h"
#include "make.h"
#include "model.h"

enum { SEEDS = 60 };

static const tn_create_options ways[] = {
    { .format = "ztensor" },
    { .format = "ztensor", .checksum = TN_CHECKSUM_CRC32C },
    { .format = "ztensor", .checksum = TN_CHECKSUM_SHA256, .align = 4096 },
    { .format = "ztensor", .encoding = TN_ENCODING_ZSTD },
    { .format = "ztensor", .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C, .level = -5 },
    { .format = "ztensor", .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_SHA256, .level = 9 },
    { .format = "safetensors" },
    { .format = "safetensors", .align = 256, FILLER },
};
enum { WAYS = sizeof ways / sizeof *ways };

static tn_create_options way(size_t i, unsigned jobs)
{
    tn_create_options options = ways[i];
    options.size = sizeof options;
    options.replace = true;
    options.jobs = jobs;
    return options;
}

static void note(uint64_t seed, const char *what, size_t i)
{
    snprintf(require_note, sizeof require_note, "(seed %llu, %s %zu: %s)", (unsigned long long)seed, what, i,
             ways[i].format);
}

static void require_ok(tn_status status, const tn_error *err)
{
    if (status)
        fail_msg("%s: %s", require_note, line_of(err));
}

static tn_file *must_open(const char *name, tn_io io)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .io = io };
    require_ok(tn_open(in_folder(name).text, &options, &f, &err), &err);
    return f;
}

static void random_files_come_back_from_every_container(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model m;
        chooser c = { .seed = seed };
        model_make(&m, &c);
        for (size_t i = 0; i < WAYS; i++) {
            static const tn_io ios[] = { TN_IO_AUTO, TN_IO_MMAP, TN_IO_PREAD };
            tn_create_options options = way(i, 1);
            tn_error err = { .text = "" };
            note(seed, "way", i);
            require_ok(model_write(&m, &c, in_folder("t").text, &options, &err), &err);
            tn_file *f = must_open("t", ios[seed % 3]);
            model_check(&m, f, options.checksum);
            walk_file(f);
            tn_close(f);
        }
        model_free(&m);
    }
}

/* The answer is good until the next call. */
static tn_convert_options conversion(size_t i, unsigned jobs)
{
    static tn_create_options create;
    create = way(i, jobs);
    return (tn_convert_options){ .size = sizeof(tn_convert_options), .create = &create, .encoding = TN_CHOOSE,
                                 .checksum = TN_CHOOSE };
}

static void say_difference(void *context, const tn_difference *d)
{
    (void)context;
    if (d->what)
        print_error("%s: tensor \"%s\" differs: %u\n", require_note,
                    d->a   ? d->a->name
                    : d->b ? d->b->name
                           : "",
                    d->what);
}

static void require_same(const tn_file *a, const tn_file *b)
{
    size_t different = 99;
    tn_error err = { .text = "" };
    tn_compare_options options = { .size = sizeof options, .jobs = 2 };
    require_ok(tn_compare(a, b, &options, say_difference, &different, &err), &err);
    REQUIRE(different == 0);
}

/* A walk through the ways in an order of its own; each file is made from the one before. */
static void random_files_go_from_container_to_container_unchanged(void)
{
    static const char *const names[] = { "odd", "even" };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model m;
        chooser c = { .seed = seed };
        tn_error err = { .text = "" };
        tn_create_options plain = way(0, 1);
        model_make(&m, &c);
        note(seed, "first", 0);
        require_ok(model_write(&m, &c, in_folder("first").text, &plain, &err), &err);
        tn_file *first = must_open("first", TN_IO_AUTO), *from = first;
        for (size_t step = 0; step < 6; step++) {
            size_t i = choose(&c, WAYS);
            tn_convert_options options = conversion(i, 1 + (unsigned)choose(&c, 4));
            note(seed, "step to way", i);
            require_ok(tn_convert(from, in_folder(names[step % 2]).text, &options, NULL, &err), &err);
            if (from != first)
                tn_close(from);
            from = must_open(names[step % 2], step % 2 ? TN_IO_PREAD : TN_IO_MMAP);
            model_check(&m, from, options.create->checksum);
            require_same(first, from);
        }
        tn_close(from);
        tn_close(first);
        model_free(&m);
    }
}

/* ---- the same bytes every time ---- */

static void require_bytes(const char *name, const uint8_t *expected, size_t n)
{
    size_t m;
    uint8_t *bytes = load_file(in_folder(name).text, &m);
    REQUIRE(n == m && memcmp(bytes, expected, n) == 0);
    free(bytes);
}

/* Converts `from` each way, by 1, 2, 3 and 7 threads, mapped and read: one result. */
static void require_one_result(const char *from, size_t i)
{
    static const unsigned jobs[] = { 1, 2, 3, 7 };
    uint8_t *expected = NULL;
    size_t n = 0;
    for (size_t k = 0; k < 8; k++) {
        tn_error err = { .text = "" };
        tn_convert_options options = conversion(i, jobs[k / 2]);
        tn_file *f = must_open(from, k % 2 ? TN_IO_PREAD : TN_IO_MMAP);
        require_ok(tn_convert(f, in_folder("out").text, &options, NULL, &err), &err);
        tn_close(f);
        if (k == 0)
            expected = load_file(in_folder("out").text, &n);
        else
            require_bytes("out", expected, n);
    }
    free(expected);
}

static void output_does_not_depend_on_threads_or_on_how_input_is_read(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        model m;
        chooser c = { .seed = seed };
        tn_error err = { .text = "" };
        tn_create_options options = way(seed % WAYS, 1);
        model_make(&m, &c);
        note(seed, "made as", seed % WAYS);
        require_ok(model_write(&m, &c, in_folder("in").text, &options, &err), &err);
        for (size_t i = 0; i < WAYS; i++) {
            note(seed, "same bytes of way", i);
            require_one_result("in", i);
        }
        model_free(&m);
    }
}

/* Larger than what is compressed whole and than what one thread checks at a time. */
static void large_tensors_are_cut_the_same_way_every_time(void)
{
    enum { LARGE = 9 << 20 };
    uint8_t *data = malloc(2 * LARGE);
    assert_non_null(data);
    for (size_t i = 0; i < 2 * LARGE; i++)
        data[i] = (uint8_t)(i >> 9 ^ (i % 97 == 0));
    const simple tensors[] = {
        { .name = "small", .dtype = TN_UINT8, .rank = 1, .shape = { 1000 }, .data = data },
        { .name = "large", .dtype = TN_UINT16, .rank = 2, .shape = { LARGE / 128, 64 }, .data = data + 64 },
        { .name = "after", .dtype = TN_UINT8, .rank = 1, .shape = { 77 }, .data = data },
        { .name = "second", .dtype = TN_FLOAT32, .rank = 1, .shape = { LARGE / 4 }, .data = data + 4096 },
    };
    static const size_t chosen[] = { 0, 1, 4, 6 };
    write_file("in.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, tensors, 4);
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        note(0, "large, way", chosen[i]);
        require_one_result("in.zt", chosen[i]);
        tn_file *a = must_open("in.zt", TN_IO_AUTO), *b = must_open("out", TN_IO_AUTO);
        require_same(a, b);
        tn_close(a);
        tn_close(b);
    }
    free(data);
}

/* ---- golden files ---- */

static void convert_golden(const char *name, const uint8_t *bytes, size_t n)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    for (size_t i = 0; i < WAYS; i += 3) {
        tn_convert_options options = conversion(i, 2);
        snprintf(require_note, sizeof require_note, "(%s, way %zu)", name, i);
        require_ok(tn_convert(f, in_folder("g").text, &options, NULL, &err), &err);
        tn_file *g = must_open("g", TN_IO_AUTO);
        require_same(f, g);
        tn_close(g);
    }
    tn_close(f);
}

static void golden_files_are_unchanged_by_conversion(void)
{
    each_file(TEST_GOLDEN "/ztensor/good", convert_golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(random_files_come_back_from_every_container),
        IN_FOLDER(random_files_go_from_container_to_container_unchanged),
        IN_FOLDER(output_does_not_depend_on_threads_or_on_how_input_is_read),
        IN_FOLDER(large_tensors_are_cut_the_same_way_every_time),
        IN_FOLDER(golden_files_are_unchanged_by_conversion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
