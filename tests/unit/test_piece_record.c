/* Records of pieces: what one process found is what another publishes; damaged ones are refused. */
#include "support.h"

#include "pipeline/piece_record.h"
#include "pipeline/work_text.h"
#include "convert.h"
#include "files.h"

#include <sys/resource.h>

enum { ROWS = 64, COLUMNS = 96, ID = 4711, TRAILER = sizeof "\"checksum\":\"crc32c:0x00000000\"}\n" - 1 };

static float values[ROWS * COLUMNS];

static void write_input(void)
{
    const simple all[] = {
        { .name = "big", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLUMNS }, .data = values },
        { .name = "more", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS / 2, COLUMNS }, .data = values + 9 },
        { .name = "short", .dtype = TN_FLOAT32, .rank = 1, .shape = { COLUMNS }, .data = values },
    };
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i * 2654435761u % 4096) / 64 - 32;
    write_file("in.zt", (tn_create_options){ .replace = true }, all, sizeof all / sizeof all[0]);
}

/* Scales that are found, bytes without a place, checksums of blocks. */
static const struct sample {
    const char       *cast;
    tn_create_options create;
} samples[] = {
    { NULL, { .checksum = TN_CHECKSUM_CRC32C } },
    { NULL, { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C } },
    { NULL, { .checksum = TN_CHECKSUM_SHA256 } },
    { "int8,per=tensor", { .checksum = TN_CHECKSUM_NONE } },
    { "nvfp4", { .checksum = TN_CHECKSUM_CRC32C } },
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static tn_plan *make_plan(const tn_file *f, const struct sample *s, const char *out)
{
    const tn_rule rule = { "cast", s->cast };
    tn_create_options create = s->create;
    create.size = sizeof create;
    create.replace = true;
    create.jobs = 1;
    const tn_convert_options o = {
        .size = sizeof o, .create = &create, .rules = &rule, .nrules = s->cast != NULL,
        .encoding = create.encoding ? TN_CHOOSE : TN_KEEP, .checksum = create.checksum ? TN_CHOOSE : TN_KEEP,
    };
    tn_error err = { .text = "" };
    tn_plan *plan;
    if (tn_plan_make(f, in_folder(out).text, &o, &plan, &err))
        fail_msg("%s: %s", out, line_of(&err));
    return plan;
}

/* The record of a piece that is made apart. */
static tn_buf make_record(tn_plan *plan, size_t piece)
{
    tn_buf b = { 0 };
    tn_error err = { .text = "" };
    FILE *part = tmpfile();
    assert_non_null(part);
    if (tn_plan_run_apart(plan, piece, fileno(part), &err) ||
        tn_piece_record_write(plan, piece, ID, &b, &err))
        fail_msg("piece %zu: %s", piece, line_of(&err));
    fclose(part);
    return b;
}

/* Reads a copy of exactly n bytes.  What is refused says why. */
static bool read_record(tn_plan *plan, size_t piece, const uint8_t *bytes, size_t n)
{
    tn_error err = { .text = "" };
    uint64_t part = 0;
    const tn_text copy = { (const char *)exact_copy(bytes, n), n };
    tn_status status = tn_piece_record_read(plan, piece, ID, copy, &part, &err);
    (void)tn_piece_record_part(copy);
    CHECK(!status || (err.status == status && err.text[0]));
    free((void *)(uintptr_t)copy.ptr);
    return status == TN_OK;
}

static void reseal(tn_buf *b)
{
    if (b->size >= TRAILER)
        b->size -= TRAILER;
    tn_work_seal(b);
    CHECK(!b->bad);
}

typedef void (*piece_fn)(tn_plan *plan, size_t piece, const tn_buf *record);

/* With every piece of every sample. */
static void each_piece(piece_fn check)
{
    uint64_t usual = tn_piece_bytes;
    write_input();
    tn_file *f = open_file("in.zt");
    for (size_t k = 0; k < 2 * SAMPLES; k++) {
        tn_piece_bytes = k % 2 ? usual : 6000;
        tn_plan *made = make_plan(f, &samples[k / 2], "made.zt"), *plan = make_plan(f, &samples[k / 2], "out.zt");
        for (size_t i = 0; i < tn_plan_count(made); i++) {
            tn_buf record = make_record(made, i);
            check(plan, i, &record);
            tn_run_forget(&made->run, i);
            tn_buf_free(&record);
        }
        tn_plan_free(made);
        tn_plan_free(plan);
    }
    tn_close(f);
    tn_piece_bytes = usual;
}

static void read_whole(tn_plan *plan, size_t piece, const tn_buf *r)
{
    uint64_t part = UINT64_MAX;
    const tn_text text = { (const char *)r->data, r->size };
    tn_error err = { .text = "" };
    CHECK(tn_work_is_whole(text));
    if (tn_piece_record_read(plan, piece, ID, text, &part, &err))
        fail_msg("piece %zu: %s", piece, line_of(&err));
    CHECK(part == tn_piece_record_part(text));
    tn_status status = tn_piece_record_read(plan, piece, ID + 1, text, &part, &err);
    check_status(status, &err, TN_ERR_CORRUPT, "it is of another plan");
    size_t other = piece ? piece - 1 : piece + 1;
    if (other < tn_plan_count(plan))
        CHECK(tn_piece_record_read(plan, other, ID, text, &part, &err) == TN_ERR_CORRUPT);
}

static void a_record_is_read_by_its_own_plan_and_piece_only(void) { each_piece(read_whole); }

static void cut_off(tn_plan *plan, size_t piece, const tn_buf *r)
{
    tn_buf cut = { 0 };
    for (size_t n = 0; n < r->size; n++)
        CHECK(!read_record(plan, piece, r->data, n));
    for (size_t n = 0; n < r->size - TRAILER; n++) {            /* by somebody who knows checksums */
        cut.size = 0;
        tn_buf_put(&cut, r->data, n);
        tn_work_seal(&cut);
        (void)read_record(plan, piece, cut.data, cut.size);
    }
    tn_buf_free(&cut);
    CHECK(read_record(plan, piece, r->data, r->size));
}

static void every_truncation_is_refused(void) { each_piece(cut_off); }

static void flip(tn_plan *plan, size_t piece, const tn_buf *r)
{
    tn_buf b = { 0 };
    for (size_t i = 0; i < r->size; i++) {
        b.size = 0;
        tn_buf_put(&b, r->data, r->size);
        b.data[i] ^= (uint8_t)(1u << i % 8);
        CHECK(!read_record(plan, piece, b.data, b.size));
        for (unsigned bit = 0; bit < 8 && i < r->size - TRAILER; bit++) {
            b.size = 0;
            tn_buf_put(&b, r->data, r->size);
            b.data[i] ^= (uint8_t)(1u << bit);
            reseal(&b);
            (void)read_record(plan, piece, b.data, b.size);     /* refused or read, within its bounds */
        }
    }
    tn_buf_free(&b);
    CHECK(read_record(plan, piece, r->data, r->size));
}

static void every_flipped_byte_is_refused(void) { each_piece(flip); }

/* As a tensor without elements has none, or as a record says that is not to be trusted. */
static void entries_without_bytes_get_a_place_too(void)
{
    uint64_t part;
    tn_buf b = { 0 };
    tn_error err = { .text = "" };
    write_input();
    tn_file *f = open_file("in.zt");
    tn_plan *plan = make_plan(f, &samples[1], "out.zt");
    REQUIRE(tn_plan_count(plan) == 1);
    tn_buf_printf(&b, "{\"format\":\"tenon piece 1\",\"plan\":%d,\"piece\":0,\"part\":0,\"found\":[],", ID);
    tn_buf_puts(&b, "\"entries\":[[0,\"crc32c:0x00000000\"],[0,\"crc32c:0x00000000\"],"
                    "[0,\"crc32c:0x00000000\"]],\n");
    tn_work_seal(&b);
    if (tn_piece_record_read(plan, 0, ID, (tn_text){ (const char *)b.data, b.size }, &part, &err) ||
        tn_run_take(&plan->run, 0, &err))
        fail_msg("%s", line_of(&err));
    CHECK(part == 0);
    for (size_t i = 0; i < plan->writer->count; i++)
        CHECK(plan->writer->entries[i].offset != TN_UNPLACED);
    tn_plan_free(plan);
    tn_close(f);
    tn_buf_free(&b);
}

/* ---- large ones ---- */

static long peak(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_maxrss;     /* KiB */
}

/* A record that repeats a member very often takes no memory beside itself. */
static void read_large(const char *open, const char *item, const char *close)
{
    enum { SIZE = 24 << 20 };
    const struct sample *s = &samples[1];
    uint64_t part;
    tn_buf b = { 0 };
    tn_error err = { .text = "" };
    write_input();
    tn_file *f = open_file("in.zt");
    tn_plan *plan = make_plan(f, s, "out.zt");
    tn_buf_printf(&b, "{\"format\":\"tenon piece 1\",\"plan\":%d,\"piece\":0,\"part\":0,%s", ID, open);
    CHECK(tn_buf_reserve(&b, SIZE + 100));
    while (b.size < SIZE)
        tn_buf_puts(&b, item);
    tn_buf_puts(&b, close);
    tn_work_seal(&b);
    long before = peak();
    tn_status status = tn_piece_record_read(plan, 0, ID, (tn_text){ (const char *)b.data, b.size }, &part, &err);
    CHECK(status == TN_ERR_CORRUPT || status == TN_ERR_LIMIT);
    (void)tn_piece_record_part((tn_text){ (const char *)b.data, b.size });
    if (peak() - before > SIZE / 1024 + 8192)
        fail_msg("%s%s...: %ld KiB more for a record of %d", open, item, peak() - before, SIZE / 1024);
    tn_plan_free(plan);
    tn_close(f);
    tn_buf_free(&b);
}

static void memory_does_not_grow_with_what_a_record_repeats(void)
{
    read_large("\"entries\":[", "[0,\"\"],", "[0,\"\"]],");
    read_large("\"found\":[", "\"00\",", "\"00\"],");
    read_large("\"stats\":[", "18446744073709551615,", "0],");
    read_large("\"other\":", "[", "],");
    read_large("\"other\":\"", "\\u0000", "\",");
    read_large("\"other\":[", "{\"a\":1},", "0],");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_record_is_read_by_its_own_plan_and_piece_only),
        IN_FOLDER(every_truncation_is_refused),
        IN_FOLDER(every_flipped_byte_is_refused),
        IN_FOLDER(entries_without_bytes_get_a_place_too),
        IN_FOLDER(memory_does_not_grow_with_what_a_record_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
