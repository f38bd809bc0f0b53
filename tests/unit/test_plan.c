/* Plans: pieces in any order give the bytes of tn_convert(), saved plans are opened again or refused. */
#include "support.h"

#include "pipeline/plan.h"
#include "convert.h"
#include "files.h"

#include <sys/stat.h>
#include <unistd.h>

enum { BIG = 300000, ROWS = 96, COLUMNS = 64 };

static float big[BIG];
static uint16_t matrix[ROWS * COLUMNS];

static void fill(void)
{
    for (size_t i = 0; i < BIG; i++)
        big[i] = (float)(i * 2654435761u % 4096) / 64 - 32;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        matrix[i] = (uint16_t)(0x3c00 + i * 40503u % 1024 + (i % 2 ? 0x8000 : 0));
}

static const tn_meta note = { .key = "note", .text = "kept" };

static void write_input(tn_create_options how)
{
    const simple all[] = {
        { .name = "big", .dtype = TN_FLOAT32, .rank = 2, .shape = { 1000, BIG / 1000 }, .data = big,
          .meta = &note, .nmeta = 1 },
        { .name = "h.0.w", .dtype = TN_BFLOAT16, .rank = 2, .shape = { ROWS, COLUMNS }, .data = matrix },
        { .name = "h.1.w", .dtype = TN_BFLOAT16, .rank = 2, .shape = { ROWS, COLUMNS }, .data = matrix + 0,
          .tied = "h.0.w" },
        { .name = "h.2.w", .dtype = TN_BFLOAT16, .rank = 2, .shape = { ROWS / 2, COLUMNS },
          .data = matrix + 64 },
        { .name = "image", .dtype = TN_UINT8, .rank = 4, .shape = { 2, 3, 16, 64 }, .data = matrix },
        { .name = "none", .dtype = TN_FLOAT32, .rank = 2, .shape = { 0, 4 }, .data = big },
        { .name = "other", .dtype = TN_FLOAT32, .rank = 1, .shape = { BIG / 2 }, .data = big + 7 },
        { .name = "scalar", .dtype = TN_FLOAT32, .rank = 0, .data = big },
    };
    how.replace = true;
    fill();
    write_file("in.zt", how, all, sizeof all / sizeof all[0]);
}

/* One way to convert it. */
typedef struct sample {
    const char       *out;
    tn_rule           rules[2];
    size_t            nrules;
    tn_create_options create;
} sample;

static const sample samples[] = {
    { .out = "out.zt" },
    { .out = "out.safetensors" },
    { .out = "out.npz" },
    { .out = "out.zt", .create = { .encoding = TN_ENCODING_ZSTD } },
    { .out = "out.zt", .create = { .checksum = TN_CHECKSUM_SHA256 } },
    { .out = "out.zt", .create = { .checksum = TN_CHECKSUM_CRC32C } },
    { .out = "out.zt", .create = { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C } },
    { .out = "out.safetensors", .rules = { { "cast", "*w=mxfp4" } }, .nrules = 1 },
    { .out = "out.zt", .rules = { { "cast", "[bho]*=mxfp4" }, { "cast", "image=f32" } }, .nrules = 2,
      .create = { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_SHA256 } },
    { .out = "out.zt", .rules = { { "cast", "[bho]*=int8,per=channel,axis=0" } }, .nrules = 1 },
    { .out = "out.safetensors", .rules = { { "cast", "big=bf16" }, { "layout", "image=NHWC,from=NCHW" } },
      .nrules = 2 },
    { .out = "out.zt", .rules = { { "cast", "[bo]*=mxfp4" }, { "layout", "image=NHWC,from=NCHW" } },
      .nrules = 2, .create = { .checksum = TN_CHECKSUM_CRC32C } },
    { .out = "out.safetensors", .rules = { { "transpose", "big=1,0" }, { "cast", "big=nvf4" } },
      .nrules = 2 },
    { .out = "out.zt", .rules = { { "slice", "big=3:,1:" }, { "pad", "big=1=64" } }, .nrules = 2 },
    { .out = "out.zt", .rules = { { "concat", "all=h.0.w+h.2.w" }, { "cast", "[ab]*=mxfp8,virtual=yes" } },
      .nrules = 2 },
    { .out = "out.zt", .rules = { { "form", "h*=coo" }, { "form", "big=csr" } }, .nrules = 2,
      .create = { .checksum = TN_CHECKSUM_CRC32C } },
    { .out = "out.zt", .rules = { { "form", "[hb]*=coo,threshold=30" } }, .nrules = 1,
      .create = { .encoding = TN_ENCODING_ZSTD } },
    { .out = "out.npz", .create = { .encoding = TN_ENCODING_DEFLATE, .level = 1 } },
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static tn_convert_options options_of(const sample *s, tn_create_options *create, unsigned jobs)
{
    *create = s->create;
    create->size = sizeof *create;
    create->replace = true;
    create->jobs = jobs;
    return (tn_convert_options){
        .size = sizeof(tn_convert_options), .create = create, .rules = s->rules, .nrules = s->nrules,
        .encoding = create->encoding ? TN_CHOOSE : TN_KEEP, .checksum = create->checksum ? TN_CHOOSE : TN_KEEP,
    };
}

static tn_plan *must_make(const tn_file *f, const sample *s, const char *name, unsigned jobs)
{
    tn_create_options create;
    tn_convert_options o = options_of(s, &create, jobs);
    tn_error err = { .text = "" };
    tn_plan *plan;
    if (tn_plan_make(f, in_folder(name).text, &o, &plan, &err))
        fail_msg("%s: %s", name, line_of(&err));
    memset(&create, 0xff, sizeof create);       /* the plan has its own copy */
    return plan;
}

static void must_run(tn_plan *plan, size_t i)
{
    tn_error err = { .text = "" };
    if (tn_plan_run(plan, i, &err))
        fail_msg("piece %zu: %s", i, line_of(&err));
}

static void must_finish(tn_plan *plan)
{
    tn_error err = { .text = "" };
    if (tn_plan_finish(plan, NULL, &err))
        fail_msg("%s", line_of(&err));
}

/* The file as tn_convert() writes it. */
static void convert_whole(const tn_file *f, const sample *s, const char *name)
{
    tn_create_options create;
    tn_convert_options o = options_of(s, &create, 1);
    tn_error err = { .text = "" };
    if (tn_convert(f, in_folder(name).text, &o, NULL, &err))
        fail_msg("%s: %s", name, line_of(&err));
}

static const char *suffix_of(const sample *s)
{
    return strchr(s->out, '.');
}

/* Runs all pieces in some order: forward, backward, by steps, twice. */
static void run_shuffled(tn_plan *plan, unsigned order)
{
    size_t n = tn_plan_count(plan);
    for (size_t i = 0; i < n; i++) {
        size_t k = i;
        if (order == 1)
            k = n - 1 - i;
        else if (order == 2)
            k = (i % 2) * ((n + 1) / 2) + i / 2;
        must_run(plan, k);
        if (order == 3)
            must_run(plan, i / 2);
    }
}

static void check_orders(const tn_file *f, const sample *s)
{
    char name[40], expected[40];
    snprintf(expected, sizeof expected, "whole%s", suffix_of(s));
    convert_whole(f, s, expected);
    for (unsigned order = 0; order < 4; order++)
        for (unsigned jobs = 1; jobs <= 4; jobs += 3) {
            snprintf(name, sizeof name, "pieces%s", suffix_of(s));
            tn_plan *plan = must_make(f, s, name, jobs);
            run_shuffled(plan, order);
            must_finish(plan);
            tn_plan_free(plan);
            check_same_files(in_folder(name).text, in_folder(expected).text);
        }
}

static void pieces_in_any_order_give_the_bytes_of_a_conversion(void)
{
    const struct { tn_create_options input; uint64_t size; } ways[] = {
        { { .checksum = TN_CHECKSUM_NONE }, 64 << 20 }, { { .checksum = TN_CHECKSUM_NONE }, 40 << 10 },
        { { .checksum = TN_CHECKSUM_NONE }, 1 }, { { .checksum = TN_CHECKSUM_CRC32C }, 200 << 10 },
        { { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_SHA256 }, 1 },
    };
    uint64_t usual = tn_piece_bytes;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        write_input(ways[i].input);
        tn_file *f = open_file("in.zt");
        tn_piece_bytes = ways[i].size;
        for (size_t k = 0; k < SAMPLES; k++)
            check_orders(f, &samples[k]);
        tn_close(f);
    }
    tn_piece_bytes = usual;
}

/* ---- tensors that are alike ---- */

static const char *const alike[] = { "a", "b", "with.note", "c", "d" };
enum { ALIKE = sizeof alike / sizeof alike[0] };

static void write_alike(void)
{
    simple all[ALIKE];
    fill();
    for (size_t i = 0; i < ALIKE; i++)
        all[i] = (simple){ .name = alike[i], .dtype = TN_BFLOAT16, .rank = 2, .shape = { 8, COLUMNS },
                           .data = matrix + i * 128, .meta = &note, .nmeta = i == 2 };
    write_file("in.zt", (tn_create_options){ .replace = true }, all, ALIKE);
}

static tn_status convert_alike(const char *out, const tn_format_option *option, const char *only,
                               const char *rename, tn_error *err)
{
    const tn_rule rule = { "cast", "mxfp4" };
    const tn_create_options create = { .size = sizeof create, .replace = true, .format_options = option,
                                       .nformat_options = option != NULL };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                                   .only = &only, .nonly = only != NULL, .rename = &rename,
                                   .nrename = rename != NULL };
    tn_file *f = open_file("in.zt");
    tn_status status = tn_convert(f, in_folder(out).text, &o, NULL, err);
    tn_close(f);
    return status;
}

static void check_as_alone(const tn_file *all, const tn_file *one, const char *name)
{
    const tn_tensor *a = tn_file_find(all, name), *b = tn_file_find(one, name);
    REQUIRE(a && b && a->nparts == b->nparts && a->scaling && b->scaling);
    CHECK(a->form == TN_FORM_SCALED && a->dtype == b->dtype && a->nmeta == b->nmeta);
    assert_string_equal(a->scaling->datatype, b->scaling->datatype);
    for (uint32_t k = 0; k < a->nparts; k++) {
        assert_string_equal(a->parts[k].role, b->parts[k].role);
        REQUIRE(a->parts[k].nbytes == b->parts[k].nbytes);
        uint8_t *x = read_part(all, &a->parts[k]), *y = read_part(one, &b->parts[k]);
        assert_memory_equal(x, y, (size_t)a->parts[k].nbytes);
        free(x);
        free(y);
    }
}

static void tensors_that_are_alike_come_out_as_each_would_alone(void)
{
    const tn_format_option ocp[] = { { "safetensors", "ocp-names", "yes" },
                                     { "ztensor", "ocp-names", "yes" } };
    const struct { const char *out, *alone; const tn_format_option *option; } ways[] = {
        { "all.zt", "one.zt", NULL }, { "all.safetensors", "one.safetensors", NULL },
        { "all.zt", "one.zt", &ocp[1] }, { "all.safetensors", "one.safetensors", &ocp[0] },
    };
    tn_error err = { .text = "" };
    write_alike();
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
        if (convert_alike(ways[k].out, ways[k].option, NULL, NULL, &err))
            fail_msg("%s: %s", ways[k].out, line_of(&err));
        tn_file *all = open_file(ways[k].out);
        CHECK(tn_file_count(all) == ALIKE);
        for (size_t i = 0; i < ALIKE; i++) {
            CHECK(convert_alike(ways[k].alone, ways[k].option, alike[i], NULL, &err) == TN_OK);
            tn_file *one = open_file(ways[k].alone);
            check_as_alone(all, one, alike[i]);
            tn_close(one);
        }
        tn_close(all);
    }
    CHECK(convert_alike("all.zt", NULL, NULL, "d=a", &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "two tensors (or parts) would be called \"a\"") != NULL);
    CHECK(convert_alike("all.zt", NULL, NULL, "b=a.scale", &err) == TN_ERR_ARGUMENT);
    CHECK(convert_alike("all.zt", NULL, NULL, "d=\xff", &err) == TN_ERR_ARGUMENT);
}

static void shards_have_the_same_tensors(void)
{
    const sample s = { .create = { .shard_size = 300000 } };
    write_input((tn_create_options){ 0 });
    tn_file *f = open_file("in.zt");
    tn_plan *plan = must_make(f, &s, "out.safetensors.index.json", 2);
    REQUIRE(tn_plan_count(plan) > 1);
    run_shuffled(plan, 1);
    must_finish(plan);
    tn_plan_free(plan);
    tn_file *made = open_file("out.safetensors.index.json");
    tn_compare_options o = { .size = sizeof o, .ignore_meta = true };
    size_t different = 1;
    tn_error err = { .text = "" };
    if (tn_compare(f, made, &o, NULL, &different, &err))
        fail_msg("%s", line_of(&err));
    assert_int_equal(different, 0);
    tn_close(made);
    tn_close(f);
}

static void pieces_say_what_they_cost(void)
{
    uint64_t usual = tn_piece_bytes, written = 0, end = 0;
    write_input((tn_create_options){ 0 });
    tn_file *f = open_file("in.zt");
    tn_piece_bytes = 400 << 10;
    tn_plan *plan = must_make(f, &samples[1], "out.safetensors", 1);
    size_t spans = 0;
    for (size_t i = 0; i < tn_plan_count(plan); i++) {
        tn_plan_piece_info info = { .size = sizeof info };
        assert_int_equal(tn_plan_piece(plan, i, &info, NULL), TN_OK);
        written += info.bytes_written;
        spans += info.blocks > 0;
        assert_true(info.offset != UINT64_MAX && info.file == 0 && info.tensors > 0);
        assert_true(!info.blocks || info.bytes_read == info.bytes_written);
        if (info.first_block)
            assert_int_equal(info.offset, end);
        end = info.offset + info.bytes_written;
    }
    assert_int_equal(written, sizeof big + BIG / 2 * 4 + 2 * ROWS * COLUMNS + ROWS * COLUMNS + 6144 + 4);
    assert_true(spans >= 4);
    tn_plan_piece_info old = { .size = 0 };
    assert_int_equal(tn_plan_piece(plan, 0, &old, NULL), TN_ERR_ARGUMENT);
    old.size = sizeof old;
    assert_int_equal(tn_plan_piece(plan, tn_plan_count(plan), &old, NULL), TN_ERR_ARGUMENT);
    assert_int_equal(tn_plan_run(plan, tn_plan_count(plan), NULL), TN_ERR_ARGUMENT);
    tn_plan_free(plan);
    tn_close(f);
    tn_piece_bytes = usual;
}

static uint64_t memory_of(const tn_file *f, const sample *s, unsigned jobs)
{
    tn_plan *plan = must_make(f, s, "out.zt", 1);
    uint64_t bytes = tn_plan_memory(plan, jobs);
    tn_plan_free(plan);
    return bytes;
}

static void memory_grows_with_threads_and_compression_but_not_with_tensors(void)
{
    const sample plain = { .out = "out.zt" }, fast = { .create = { .encoding = TN_ENCODING_ZSTD, .level = 1 } },
                 slow = { .create = { .encoding = TN_ENCODING_ZSTD, .level = 19 } };
    write_input((tn_create_options){ 0 });
    tn_file *f = open_file("in.zt");
    uint64_t one = memory_of(f, &plain, 1), two = memory_of(f, &plain, 2);
    CHECK(one > 1 << 20 && one < 8 << 20 && two > one && two < 2 * one);
    CHECK(memory_of(f, &plain, 0) >= one && tn_plan_memory(NULL, 1) == 0);
    CHECK(memory_of(f, &fast, 1) > one + (16 << 20) && memory_of(f, &slow, 1) > 2 * memory_of(f, &fast, 1));
    tn_close(f);
}

/* Pieces of tensor 0, and what they write and read together. */
typedef struct cost {
    size_t   pieces;
    uint64_t written, read, most_read;
} cost;

static cost cost_of_big(const sample *s)
{
    cost c = { 0 };
    tn_file *f = open_file("in.zt");
    tn_plan *plan = must_make(f, s, s->out, 1);
    for (size_t i = 0; i < tn_plan_count(plan); i++) {
        tn_plan_piece_info info = { .size = sizeof info };
        REQUIRE(tn_plan_piece(plan, i, &info, NULL) == TN_OK);
        if (info.first_tensor > 0)
            break;
        REQUIRE(info.blocks > 0 && info.tensors == 1 && info.offset != UINT64_MAX);
        c.pieces++;
        c.written += info.bytes_written;
        c.read += info.bytes_read;
        c.most_read = info.bytes_read > c.most_read ? info.bytes_read : c.most_read;
    }
    tn_plan_free(plan);
    tn_close(f);
    return c;
}

static void tiles_and_other_orders_are_cut_too(void)
{
    enum { SIDE = 1600 };
    const uint64_t all = sizeof(float) * SIDE * SIDE;
    float *values = calloc(SIDE * SIDE, sizeof *values);
    const simple input = { .name = "big", .dtype = TN_FLOAT32, .rank = 2, .shape = { SIDE, SIDE },
                           .data = values };
    const sample codes = { .out = "out.zt", .rules = { { "cast", "mxfp4" } }, .nrules = 1 },
                 order = { .out = "out.zt", .rules = { { "transpose", "1,0" } }, .nrules = 1 },
                 some = { .out = "out.zt", .rules = { { "slice", ":800" } }, .nrules = 1 },
                 whole = { .out = "out.zt", .rules = { { "cast", "int8,per=tensor" } }, .nrules = 1 };
    uint64_t usual = tn_piece_bytes;
    REQUIRE(values);
    write_file("in.zt", (tn_create_options){ 0 }, &input, 1);
    free(values);
    tn_piece_bytes = 400 << 10;
    cost c = cost_of_big(&codes);
    CHECK(c.pieces >= 3 && c.written == SIDE * SIDE / 2 + SIDE * SIDE / 32);
    CHECK(c.read == all && c.most_read < all / 2);
    c = cost_of_big(&order);            /* columns: what lies between them may be read as well */
    CHECK(c.pieces >= 2 && c.written == all && c.read >= all && c.most_read <= all);
    c = cost_of_big(&some);             /* half of it, and no more */
    CHECK(c.pieces >= 2 && c.written == all / 2 && c.read == all / 2);
    tn_file *f = open_file("in.zt");
    tn_plan *plan = must_make(f, &whole, "out.zt", 1);
    tn_plan_piece_info info = { .size = sizeof info };
    CHECK(tn_plan_piece(plan, 0, &info, NULL) == TN_OK && info.blocks == 0);   /* its scale is of all */
    tn_plan_free(plan);
    tn_close(f);
    tn_piece_bytes = usual;
}

static void count(void *context, const tn_quantize_report *q)
{
    tn_quantize_stats *all = context;
    tn_quantize_stats_add(all, q->report);
}

static tn_quantize_stats stats_with(uint64_t piece)
{
    const tn_rule rule = { "cast", "[bo]*=mxfp4" };
    const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = 3 };
    tn_quantize_stats all = { 0 };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                                   .quantized = count, .context = &all };
    tn_file *f = open_file("in.zt");
    tn_piece_bytes = piece;
    REQUIRE(tn_convert(f, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
    tn_close(f);
    return all;
}

static void pieces_report_what_the_tensor_would(void)
{
    uint64_t usual = tn_piece_bytes;
    write_input((tn_create_options){ 0 });
    const tn_quantize_stats whole = stats_with(usual), cut = stats_with(30 << 10);
    CHECK(whole.values == BIG + BIG / 2 && cut.values == whole.values);
    CHECK(cut.saturated == whole.saturated && cut.flushed == whole.flushed);
    tn_piece_bytes = usual;
}

static void an_unfinished_plan_leaves_nothing(void)
{
    uint64_t usual = tn_piece_bytes;
    tn_error err = { .text = "" };
    write_input((tn_create_options){ 0 });
    tn_file *f = open_file("in.zt");
    tn_piece_bytes = 200 << 10;
    int before = count_entries(in_folder("").text);
    tn_plan *plan = must_make(f, &samples[3], "new.zt", 2);
    must_run(plan, tn_plan_count(plan) - 1);
    tn_status status = tn_plan_finish(plan, NULL, &err);
    check_status(status, &err, TN_ERR_ARGUMENT, "piece 0 of");
    run_shuffled(plan, 0);      /* it goes on where it was */
    tn_plan_free(plan);
    assert_int_equal(count_entries(in_folder("").text), before);
    plan = must_make(f, &samples[3], "new.zt", 2);
    run_shuffled(plan, 0);
    must_finish(plan);
    assert_int_equal(tn_plan_finish(plan, NULL, &err), TN_ERR_ARGUMENT);
    assert_int_equal(tn_plan_run(plan, 0, &err), TN_ERR_ARGUMENT);
    CHECK(tn_plan_memory(plan, 1) > 0);
    tn_plan_free(plan);
    tn_close(f);
    tn_piece_bytes = usual;
}

static void damage_is_seen_in_the_last_piece_of_a_tensor(void)
{
    uint64_t usual = tn_piece_bytes;
    tn_error err = { .text = "" };
    size_t n;
    write_input((tn_create_options){ .checksum = TN_CHECKSUM_CRC32C });
    uint8_t *bytes = load_file(in_folder("in.zt").text, &n);
    bytes[400000] ^= 1;         /* of the second block of "big" */
    put_bytes("in.zt", bytes, n);
    free(bytes);
    tn_file *f = open_file("in.zt");
    tn_piece_bytes = 200 << 10;
    tn_plan *plan = must_make(f, &samples[1], "out.safetensors", 2);
    tn_status status = TN_OK;
    size_t i = 0;
    while (i < tn_plan_count(plan) && !status)
        status = tn_plan_run(plan, i++, &err);
    check_status(status, &err, TN_ERR_CHECKSUM, "tensor \"big\": expected checksum");
    check_status(tn_plan_finish(plan, NULL, &err), &err, TN_ERR_ARGUMENT, "is missing");
    check_status(tn_plan_run(plan, i - 1, &err), &err, TN_ERR_CHECKSUM, "tensor \"big\": expected checksum");
    tn_plan_free(plan);
    tn_close(f);
    tn_piece_bytes = usual;
}

static int stop_once(void *context, uint64_t done, uint64_t total)
{
    bool *stopped = context, stop = !*stopped && done > total / 2;
    *stopped |= stop;
    return stop;
}

static void a_piece_that_was_stopped_is_made_again(void)
{
    enum { COUNT = 3 << 20 };
    static float many[COUNT];
    const simple all[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { COUNT }, .data = many },
        { .name = "b", .dtype = TN_FLOAT32, .rank = 2, .shape = { 4, COUNT / 4 }, .data = many },
    };
    for (size_t i = 0; i < COUNT; i++)
        many[i] = (float)(i % 1000);
    for (unsigned k = 0; k < 4; k++) {          /* ordered or alone, raw or encoded */
        bool stopped = false;
        write_file("in.zt", (tn_create_options){ .replace = true, .encoding = k & 1 ? TN_ENCODING_ZSTD : 0 },
                   all, 2);
        const sample s = { .create = { .encoding = k & 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW,
                                       .checksum = TN_CHECKSUM_CRC32C } };
        tn_create_options create;
        tn_convert_options o = options_of(&s, &create, 2);
        tn_file *f = open_file("in.zt");
        tn_error err = { .text = "" };
        tn_plan *plan;
        o.encoding = TN_CHOOSE;
        o.progress = stop_once;
        o.context = &stopped;
        CHECK(tn_plan_make(f, in_folder("out.zt").text, &o, &plan, &err) == TN_OK && tn_plan_count(plan) == 1);
        CHECK(tn_plan_run(plan, 0, &err) == TN_ERR_CANCELLED);
        must_run(plan, 0);
        must_finish(plan);
        tn_plan_free(plan);
        o.progress = NULL;
        CHECK(tn_convert(f, in_folder("whole.zt").text, &o, NULL, &err) == TN_OK);
        check_same_files(in_folder("out.zt").text, in_folder("whole.zt").text);
        tn_close(f);
    }
}

/* ---- saved ---- */

static tn_plan *save_and_open(const sample *s, const char *name)
{
    tn_file *f = open_file("in.zt");
    tn_plan *plan = must_make(f, s, name, 3), *again = NULL;
    tn_error err = { .text = "" };
    if (tn_plan_save(plan, in_folder("plan.json").text, &err))
        fail_msg("%s", line_of(&err));
    tn_plan_free(plan);
    tn_close(f);
    if (tn_plan_open(in_folder("plan.json").text, &again, &err))
        fail_msg("%s", line_of(&err));
    return again;
}

static void a_saved_plan_gives_the_same_bytes(void)
{
    uint64_t usual = tn_piece_bytes;
    char name[40], expected[40];
    write_input((tn_create_options){ .checksum = TN_CHECKSUM_CRC32C });
    tn_piece_bytes = 200 << 10;
    for (size_t i = 0; i < SAMPLES; i++) {
        snprintf(name, sizeof name, "saved%s", suffix_of(&samples[i]));
        snprintf(expected, sizeof expected, "whole%s", suffix_of(&samples[i]));
        tn_plan *plan = save_and_open(&samples[i], name);
        run_shuffled(plan, 2);
        must_finish(plan);
        tn_plan_free(plan);
        tn_file *f = open_file("in.zt");
        convert_whole(f, &samples[i], expected);
        tn_close(f);
        check_same_files(in_folder(name).text, in_folder(expected).text);
    }
    tn_piece_bytes = usual;
}

static void options_are_saved_too(void)
{
    static const char *const only[] = { "h.*", "big" }, *const rename[] = { "h.*=layer \"*\"" };
    const tn_format_option big_endian = { "ztensor", "byte-order", "big" };
    const tn_rule rule = { "cast", "h.2*=e4m3fn" };
    tn_create_options create = { .size = sizeof create, .replace = true, .drop_metadata = true, .align = 256,
                                 .format_options = &big_endian, .nformat_options = 1, .format = "ztensor" };
    tn_convert_options o = { .size = sizeof o, .create = &create, .only = only, .nonly = 2, .rename = rename,
                             .nrename = 1, .rules = &rule, .nrules = 1, .cast_defaults = "overflow=saturate",
                             .max_bytes = 1 << 30 };
    tn_error err = { .text = "" };
    tn_plan *plan;
    write_input((tn_create_options){ 0 });
    tn_file *f = open_file("in.zt");
    if (tn_plan_make(f, in_folder("a.bin").text, &o, &plan, &err) ||
        tn_plan_save(plan, in_folder("plan.json").text, &err))
        fail_msg("%s", line_of(&err));
    tn_plan_free(plan);
    if (tn_convert(f, in_folder("b.bin").text, &o, NULL, &err) ||
        tn_plan_open(in_folder("plan.json").text, &plan, &err))
        fail_msg("%s", line_of(&err));
    run_shuffled(plan, 0);
    must_finish(plan);
    tn_plan_free(plan);
    tn_close(f);
    check_same_files(in_folder("a.bin").text, in_folder("b.bin").text);
}

static void a_saved_plan_is_as_strict(void)
{
    static const float small[] = { 0.02f, 0.03f, 7 };
    static const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = small };
    const tn_rule rule = { "cast", "int8" };
    const tn_convert_options o = { .size = sizeof o, .rules = &rule, .nrules = 1, .strict = true };
    tn_error err = { .text = "" };
    tn_plan *plan;
    write_file("in.zt", (tn_create_options){ 0 }, &tensor, 1);
    tn_file *f = open_file("in.zt");
    CHECK(tn_plan_make(f, in_folder("out.zt").text, &o, &plan, NULL) == TN_OK);
    CHECK(tn_plan_save(plan, in_folder("plan.json").text, NULL) == TN_OK);
    tn_plan_free(plan);
    tn_close(f);
    CHECK(tn_plan_open(in_folder("plan.json").text, &plan, NULL) == TN_OK);
    check_status(tn_plan_run(plan, 0, &err), &err, TN_ERR_LOSS, "2 of 3 values other than 0 become 0 in int8");
    tn_plan_free(plan);
}

/* Neither its content nor its name says what the input is: whoever opened it did. */
static void a_saved_plan_opens_its_input_as_it_was_opened(void)
{
    static const float data[] = { 1, 2, 3 };
    static const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = data };
    const tn_open_options as = { .size = sizeof as, .format = "btf", .max_bytes = 1 << 20 };
    tn_error err = { .text = "" };
    tn_plan *plan = NULL;
    tn_file *f;
    write_file("in.dat", (tn_create_options){ .format = "btf", .drop_names = true }, &tensor, 1);
    CHECK(tn_open(in_folder("in.dat").text, NULL, &f, NULL) == TN_ERR_UNSUPPORTED);
    CHECK(tn_open(in_folder("in.dat").text, &as, &f, NULL) == TN_OK);
    CHECK(tn_plan_make(f, in_folder("out.zt").text, NULL, &plan, NULL) == TN_OK);
    CHECK(tn_plan_save(plan, in_folder("plan.json").text, NULL) == TN_OK);
    tn_plan_free(plan);
    tn_close(f);
    if (tn_plan_open(in_folder("plan.json").text, &plan, &err))
        fail_msg("%s", line_of(&err));
    run_shuffled(plan, 0);
    must_finish(plan);
    tn_plan_free(plan);
}

static void a_finished_plan_has_no_pieces_to_tell_of(void)
{
    tn_error err = { .text = "" };
    tn_plan_piece_info piece = { .size = sizeof piece };
    write_input((tn_create_options){ 0 });
    tn_plan *plan = save_and_open(&samples[0], "out.zt");
    run_shuffled(plan, 0);
    must_finish(plan);
    check_status(tn_plan_piece(plan, 0, &piece, &err), &err, TN_ERR_ARGUMENT, "it is finished already");
    tn_plan_free(plan);
}

static void a_plan_of_another_input_is_refused(void)
{
    tn_error err = { .text = "" };
    tn_plan *plan = NULL;
    write_input((tn_create_options){ 0 });
    tn_plan_free(save_and_open(&samples[0], "out.zt"));
    write_input((tn_create_options){ .align = 4096 });
    tn_status status = tn_plan_open(in_folder("plan.json").text, &plan, &err);
    check_status(status, &err, TN_ERR_CHANGED, "expected");
    unlink(in_folder("in.zt").text);
    status = tn_plan_open(in_folder("plan.json").text, &plan, &err);
    check_status(status, &err, TN_ERR_IO, "in.zt");
    tn_file *f;
    size_t n;
    write_input((tn_create_options){ 0 });
    uint8_t *bytes = load_file(in_folder("in.zt").text, &n);
    if (tn_open_memory(bytes, n, NULL, &f, &err))
        fail_msg("%s", line_of(&err));
    plan = must_make(f, &samples[0], "out.zt", 1);
    assert_int_equal(tn_plan_save(plan, in_folder("plan.json").text, &err), TN_ERR_ARGUMENT);
    tn_plan_free(plan);
    tn_close(f);
    free(bytes);
}

/* Opening changes nothing and never gives another plan. */
static void try_bytes(const void *bytes, size_t n, bool same)
{
    tn_plan *plan = NULL;
    tn_error err = { .text = "" };
    put_bytes("bad.json", bytes, n);
    tn_status status = tn_plan_open(in_folder("bad.json").text, &plan, &err);
    if (!status)
        tn_plan_free(plan);
    if ((status == TN_OK) != same)
        fail_msg("%zu bytes: status %d, %s", n, (int)status, line_of(&err));
}

static void every_cut_and_every_flipped_byte_is_refused(void)
{
    size_t n;
    const simple one = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 3 }, .data = "abc" };
    write_file("in.zt", (tn_create_options){ .replace = true }, &one, 1);
    tn_plan_free(save_and_open(&samples[0], "out.zt"));
    uint8_t *bytes = load_file(in_folder("plan.json").text, &n);
    for (size_t i = 0; i < n; i++) {
        uint8_t *cut = exact_copy(bytes, i);
        try_bytes(cut, i, false);
        free(cut);
    }
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 4;
        try_bytes(bytes, n, false);
        bytes[i] ^= 4;
    }
    try_bytes(bytes, n, true);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(pieces_in_any_order_give_the_bytes_of_a_conversion),
        IN_FOLDER(tensors_that_are_alike_come_out_as_each_would_alone),
        IN_FOLDER(shards_have_the_same_tensors),
        IN_FOLDER(pieces_say_what_they_cost),
        IN_FOLDER(memory_grows_with_threads_and_compression_but_not_with_tensors),
        IN_FOLDER(tiles_and_other_orders_are_cut_too),
        IN_FOLDER(pieces_report_what_the_tensor_would),
        IN_FOLDER(an_unfinished_plan_leaves_nothing),
        IN_FOLDER(damage_is_seen_in_the_last_piece_of_a_tensor),
        IN_FOLDER(a_piece_that_was_stopped_is_made_again),
        IN_FOLDER(a_saved_plan_gives_the_same_bytes),
        IN_FOLDER(options_are_saved_too),
        IN_FOLDER(a_saved_plan_is_as_strict),
        IN_FOLDER(a_saved_plan_opens_its_input_as_it_was_opened),
        IN_FOLDER(a_finished_plan_has_no_pieces_to_tell_of),
        IN_FOLDER(a_plan_of_another_input_is_refused),
        IN_FOLDER(every_cut_and_every_flipped_byte_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
