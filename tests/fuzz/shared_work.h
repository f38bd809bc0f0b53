/* tests/fuzz/shared_work.h - small works of many processes, for fuzz_work and its seeds.
 *
 * An input has a byte that chooses the work and one that says how files are put; then files, each with two
 * bytes of length: a byte for its name, and its text without the checksum at its end.  In texts @@ stands for
 * the folder of the target, and "plan":0 for the number of the plan. */
#ifndef TN_FUZZ_SHARED_WORK_H
#define TN_FUZZ_SHARED_WORK_H

#include <fcntl.h>
#include <sys/stat.h>

#include <tenon/tenon.h>

#include "base/vector.h"
#include "require.h"
#include "scratch.h"

enum { WORK_CHOICES = 2, WORK_PLAN = 255, WORK_FAILED = 128, WORK_PIECE = 1500 };

/* Conversions first, then what looks at a file. */
static const struct work_way {
    const char *cast, *verb;
    tn_encoding encoding;
    tn_checksum checksum;
} work_ways[] = {
    { .checksum = TN_CHECKSUM_CRC32C }, { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C },
    { .checksum = TN_CHECKSUM_SHA256 }, { .cast = "int8,per=tensor" }, { .cast = "*weight=mxfp4" },
    { .verb = "verify" }, { .verb = "stats" }, { .verb = "diff" }, { .verb = "compare-types" },
};
enum { WORK_WAYS = sizeof work_ways / sizeof *work_ways };

static inline const char *work_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "out.zt.tenon/%s", name);
    return scratch_file(path);
}

/* The same every time, also its time. */
static inline void work_write_input(const char *name, float first)
{
    static const int64_t shapes[][2] = { { 16, 64 }, { 5, 7 } };
    static const char *const names[] = { "a.weight", "b" };
    static float values[16 * 64];
    const struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    tn_create_options options = { .size = sizeof options, .format = "ztensor", .replace = true, .jobs = 1 };
    tn_writer *w;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = i ? (float)(i % 37) - 18 : first;
    REQUIRE(tn_create(scratch_file(name), &options, &w, NULL) == TN_OK);
    for (size_t i = 0; i < 2; i++) {
        const tn_part part = { .role = "data", .data = values,
                               .array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shapes[i] },
                               .nbytes = (uint64_t)(shapes[i][0] * shapes[i][1]) * 4 };
        const tn_tensor t = { .name = names[i], .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 2,
                              .shape = shapes[i], .parts = &part, .nparts = 1 };
        REQUIRE(tn_writer_add(w, &t, NULL) == TN_OK);
    }
    REQUIRE(tn_writer_finish(w, NULL) == TN_OK);
    REQUIRE(utimensat(AT_FDCWD, scratch_file(name), times, 0) == 0);
}

static inline const tn_file *work_input(int which)
{
    static const char *const names[] = { "in.zt", "other.zt" };
    static tn_file *files[2];
    if (!files[which]) {
        work_write_input(names[which], (float)which);
        REQUIRE(tn_open(scratch_file(names[which]), NULL, &files[which], NULL) == TN_OK);
    }
    return files[which];
}

static inline tn_status work_make(const struct work_way *way, tn_work **work, tn_error *err)
{
    const tn_rule rule = { "cast", way->cast };
    const tn_create_options create = { .size = sizeof create, .format = "ztensor", .encoding = way->encoding,
                                       .checksum = way->checksum, .jobs = 1 };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .encoding = TN_CHOOSE,
                                   .checksum = TN_CHOOSE, .rules = &rule, .nrules = way->cast != NULL,
                                   .piece_size = WORK_PIECE };
    const tn_file *in = work_input(0);
    return tn_work_make(in, scratch_file("out.zt"), &o, NULL, work, err);
}

static inline const tn_datatype *const *work_types(void)
{
    static tn_datatype *types[2];
    if (!types[0])
        REQUIRE(tn_datatype_parse("mxfp4", &types[0], NULL) == TN_OK &&
                tn_datatype_parse("int4_b32", &types[1], NULL) == TN_OK);
    return (const tn_datatype *const *)types;
}

static inline tn_status work_look(const struct work_way *way, tn_together *together, tn_error *err)
{
    const tn_verify_options verify = { .size = sizeof verify, .jobs = 1, .together = together };
    const tn_stats_options stats = { .size = sizeof stats, .jobs = 1, .together = together };
    const tn_compare_options compare = { .size = sizeof compare, .jobs = 1, .together = together };
    const tn_compare_datatypes_options rate = { .size = sizeof rate, .jobs = 1, .together = together };
    size_t different;
    if (strcmp(way->verb, "verify") == 0)
        return tn_verify(work_input(0), &verify, NULL, err);
    if (strcmp(way->verb, "stats") == 0)
        return tn_stats(work_input(0), &stats, NULL, err);
    if (strcmp(way->verb, "diff") == 0)
        return tn_compare(work_input(0), work_input(1), &compare, NULL, &different, err);
    return tn_compare_datatypes(work_input(0), work_types(), 2, &rate, NULL, err);
}

/* One of two processes that look at a file: the first leaves the folder for the second. */
static inline tn_status work_look_as(const struct work_way *way, uint32_t rank, tn_error *err)
{
    const tn_work_options o = { .size = sizeof o, .rank = rank, .ranks = 2, .piece_size = WORK_PIECE };
    tn_together *together = NULL;
    REQUIRE(tn_together_new(scratch_file("out.zt.tenon"), &o, &together, NULL) == TN_OK);
    tn_status status = work_look(way, together, err);
    tn_together_end(together, tn_together_tells(together) && !status);
    return status;
}

/* All of a file in the folder of the work, to be freed; NULL: there is none. */
static inline char *work_load(const char *name, size_t *n)
{
    FILE *f = fopen(work_file(name), "rb");
    char *text = f ? calloc(1, 65536) : NULL;
    REQUIRE(!f || text);
    *n = f ? fread(text, 1, 65535, f) : 0;
    if (f)
        fclose(f);
    return text;
}

#endif
