/* Whole files: which tensors, under which names, stored how, and what is refused. */
#include "support.h"
#include "stored.h"

#include "store/record.h"
#include "files.h"
#include "make.h"
#include "zt_bytes.h"

static const uint8_t data[64] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

static const simple layers[] = {
    { .name = "h.0.weight", .dtype = TN_UINT8, .rank = 2, .shape = { 2, 6 }, .data = data },
    { .name = "h.0.bias", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = data },
    { .name = "h.1.weight", .dtype = TN_UINT8, .rank = 2, .shape = { 2, 6 }, .tied = "h.0.weight" },
    { .name = "head", .dtype = TN_INT4, .rank = 1, .shape = { 5 }, .data = data },
};

/* Opens in.zt, which holds `layers`, or makes it first. */
static tn_file *open_layers(tn_create_options options)
{
    options.replace = true;
    write_file("in.zt", options, layers, 4);
    return open_file("in.zt");
}

static tn_status convert(const tn_file *f, const char *name, const tn_convert_options *given, tn_error *err)
{
    tn_convert_options options = given ? *given : (tn_convert_options){ 0 };
    options.size = sizeof options;
    return tn_convert(f, in_folder(name).text, &options, NULL, err);
}

static void must_convert(const tn_file *f, const char *name, const tn_convert_options *given)
{
    tn_error err = { .text = "" };
    if (convert(f, name, given, &err))
        fail_msg("%s: %s", name, line_of(&err));
}

/* The names of a file's tensors, joined by spaces. */
static void check_names(const char *name, const char *expected)
{
    char names[300] = "";
    tn_file *f = open_file(name);
    for (size_t i = 0; i < tn_file_count(f); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? " " : "",
                 tn_file_tensor(f, i)->name);
    assert_string_equal(names, expected);
    tn_close(f);
}

/* ---- choosing and renaming ---- */

static void globs_choose_tensors(void)
{
    static const char *const weights[] = { "h.*.weight" }, *const two[] = { "head", "h.[1-9].*" },
    *const none[] = { "head", "x*" };
    tn_file *f = open_layers((tn_create_options){ 0 });
    tn_error err = { .text = "" };
    must_convert(f, "w.zt", &(tn_convert_options){ .only = weights, .nonly = 1 });
    check_names("w.zt", "h.0.weight h.1.weight");
    must_convert(f, "two.zt", &(tn_convert_options){ .only = two, .nonly = 2 });
    check_names("two.zt", "h.1.weight head");
    CHECK(convert(f, "none.zt", &(tn_convert_options){ .only = none, .nonly = 2 }, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "in.zt: no tensor matches \"x*\"") != NULL);
    CHECK(count_entries(folder) == 3);
    tn_close(f);
}

/* The tensor it was tied to is left behind: it takes the bytes along. */
static void a_tied_tensor_alone_has_its_own_bytes(void)
{
    static const char *const second[] = { "h.1.weight" };
    static const char *const names[] = { "alone.zt", "alone.safetensors" };
    tn_file *f = open_layers((tn_create_options){ 0 });
    for (size_t i = 0; i < 2; i++) {
        must_convert(f, names[i], &(tn_convert_options){ .only = second, .nonly = 1 });
        tn_file *g = open_file(names[i]);
        const tn_tensor *t = tn_file_find(g, "h.1.weight");
        CHECK(t->tied == NULL);
        uint8_t *bytes = read_tensor(g, t);
        assert_memory_equal(bytes, data, 12);
        free(bytes);
        tn_close(g);
    }
    tn_close(f);
}

static void renaming_keeps_what_the_star_stands_for(void)
{
    static const char *const rules[] = { "h.0.bias=b", "h.*.weight=model.layers.*.w", "h*=*" };
    tn_file *f = open_layers((tn_create_options){ 0 });
    must_convert(f, "r.zt", &(tn_convert_options){ .rename = rules, .nrename = 3 });
    check_names("r.zt", "model.layers.0.w b model.layers.1.w ead");
    tn_file *g = open_file("r.zt");
    assert_string_equal(tn_file_find(g, "model.layers.1.w")->tied, "model.layers.0.w");
    tn_close(g);
    tn_close(f);
}

static void wrong_rules_are_refused(void)
{
    static const struct { const char *rule, *text; } cases[] = {
        { "h.0.bias", "expected OLD=NEW" }, { "x=y", "no tensor matches \"x\" (rename)" },
        { "h.*.*=a", "at most one '*'" },
        { "head=a*", "at most one '*'" }, { "h.0.bias=head", "would be called \"head\"" },
        { "h.*=same", "would be called \"same\"" },
    };
    tn_file *f = open_layers((tn_create_options){ 0 });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_error err = { .text = "" };
        tn_status status = convert(f, "x.zt", &(tn_convert_options){ .rename = &cases[i].rule, .nrename = 1 },
                                   &err);
        if (status != TN_ERR_ARGUMENT || !strstr(line_of(&err), cases[i].text))
            fail_msg("%s: status %d: %s", cases[i].rule, status, line_of(&err));
    }
    CHECK(count_entries(folder) == 1);
    tn_close(f);
}

/* ---- storing ---- */

static void encoding_and_checksum_are_kept_unless_chosen(void)
{
    tn_file *f = open_layers((tn_create_options){ .encoding = TN_ENCODING_ZSTD,
                                                  .checksum = TN_CHECKSUM_SHA256 });
    const tn_create_options crc = { .size = sizeof crc, .checksum = TN_CHECKSUM_CRC32C };
    must_convert(f, "kept.zt", NULL);
    must_convert(f, "chosen.zt", &(tn_convert_options){ .create = &crc, .encoding = TN_CHOOSE,
                                                        .checksum = TN_CHOOSE });
    must_convert(f, "half.zt", &(tn_convert_options){ .create = &crc, .encoding = TN_KEEP,
                                                      .checksum = TN_CHOOSE });
    must_convert(f, "plain.safetensors", NULL);
    static const struct { const char *name; tn_encoding encoding; tn_checksum checksum; } expected[] = {
        { "kept.zt", TN_ENCODING_ZSTD, TN_CHECKSUM_SHA256 },
        { "chosen.zt", TN_ENCODING_RAW, TN_CHECKSUM_CRC32C },
        { "half.zt", TN_ENCODING_ZSTD, TN_CHECKSUM_CRC32C },
        { "plain.safetensors", TN_ENCODING_RAW, TN_CHECKSUM_NONE },
    };
    for (size_t i = 0; i < 4; i++) {
        tn_file *g = open_file(expected[i].name);
        for (size_t k = 0; k < 4; k++) {
            const tn_stored_info s = stored_info(&tn_file_tensor(g, k)->parts[0]);
            CHECK(s.encoding == expected[i].encoding && s.checksum == expected[i].checksum);
        }
        tn_close(g);
    }
    tn_close(f);
}

static void what_the_output_cannot_do_is_refused_when_it_was_chosen(void)
{
    static const tn_create_options wrong[] = {
        { .size = sizeof wrong[0], .encoding = TN_ENCODING_ZSTD },
        { .size = sizeof wrong[0], .checksum = TN_CHECKSUM_CRC32C },
    };
    tn_file *f = open_layers((tn_create_options){ 0 });
    for (size_t i = 0; i < 2; i++) {
        tn_error err = { .text = "" };
        tn_convert_options options = { .create = &wrong[i], .encoding = TN_CHOOSE, .checksum = TN_CHOOSE };
        CHECK(convert(f, "x.safetensors", &options, &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(line_of(&err), "x.safetensors: safetensors cannot hold") != NULL);
    }
    tn_close(f);
}

static void a_tensor_that_cannot_be_read_is_refused_before_anything_is_written(void)
{
    static const char *const names[] = { "unknown_dtype", "unknown_encoding", "layout_sparsecoo" };
    for (size_t i = 0; i < 3; i++) {
        char golden[PATH_MAX];
        tn_file *f;
        tn_error err = { .text = "" };
        snprintf(golden, sizeof golden, "%s/ztensor/edge/%s.zt", TEST_GOLDEN, names[i]);
        CHECK(tn_open(golden, NULL, &f, NULL) == TN_OK);
        CHECK(convert(f, "x.zt", NULL, &err) == TN_ERR_UNSUPPORTED);
        CHECK(strstr(line_of(&err), names[i]) && strstr(line_of(&err), "tensor \"t\": "));
        tn_close(f);
    }
    CHECK(count_entries(folder) == 0);
}

/* Two names for one range of bytes, as different types: in safetensors they cannot be one. */
static void a_tie_between_types_is_no_obstacle(void)
{
    static const int64_t four[] = { 4 };
    static const tn_dtype types[] = { TN_FLOAT8_E4M3FN, TN_INT4, TN_FLOAT4_E2M1, TN_UINT2, TN_FLOAT8_E8M0 };
    static const char *const names[] = { "x.safetensors", "x.zt" };
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        tn_dtype dtype = types[i / 2];
        const int64_t shape[] = { 32 / tn_dtype_get(dtype)->bits };
        const tn_record r = { .has_array = true, .dtype = dtype, .rank = 1, .shape = shape };
        zt_bytes z = zt_begin(4);
        tn_cbor_put_array(&z.file, 2);
        zt_entry(&z, "bytes", 64, (uint64_t)four[0]);
        tn_cbor_put_map(&z.file, ZT_FIELDS + 1);
        zt_fields(&z, "real", 64, 4);
        zt_text(&z, "tenon");
        tn_record_put(&r, &z.file);
        zt_end(&z);
        tn_file *f;
        CHECK(tn_open_memory(z.file.data, z.file.size, NULL, &f, NULL) == TN_OK);
        const tn_create_options replace = { .size = sizeof replace, .replace = true };
        must_convert(f, names[i % 2], &(tn_convert_options){ .create = &replace });
        tn_file *g = open_file(names[i % 2]);
        CHECK(tn_file_find(g, "real")->dtype == dtype && tn_file_find(g, "bytes")->dtype == TN_UINT8);
        uint8_t *bytes = read_tensor(g, tn_file_find(g, "real"));
        assert_memory_equal(bytes, "\1\2\3\4", 4);
        free(bytes);
        tn_close(g);
        tn_close(f);
        tn_buf_free(&z.file);
    }
}

/* ---- damage and stopping ---- */

static void damaged_input_leaves_the_old_output(void)
{
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    put_file("out.zt", "old");
    for (size_t i = 0; i < 4; i++) {
        size_t n;
        tn_close(open_layers((tn_create_options){ .encoding = encodings[i % 2],
                                                  .checksum = TN_CHECKSUM_CRC32C }));
        uint8_t *bytes = load_file(in_folder("in.zt").text, &n);
        bytes[64] ^= 0x40;
        tn_file *f;
        tn_error err = { .text = "" };
        const tn_create_options replace = { .size = sizeof replace, .replace = true,
                                            .encoding = encodings[i / 2], .jobs = 2 };
        CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
        tn_convert_options options = { .create = &replace, .encoding = TN_CHOOSE, .checksum = TN_CHOOSE };
        tn_status status = convert(f, "out.zt", &options, &err);
        CHECK(status == TN_ERR_CHECKSUM || (i % 2 && status == TN_ERR_CORRUPT));
        CHECK(strstr(line_of(&err), "tensor \"h.0.weight\"") != NULL);
        CHECK(file_is("out.zt", "old") && count_entries(folder) == 2);
        tn_close(f);
        free(bytes);
    }
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    REQUIRE(done <= total);
    return ++*(int *)context;
}

static void a_callback_can_stop_it(void)
{
    put_file("out.zt", "old");
    for (int zstd = 0; zstd < 2; zstd++) {
        int calls = 0;
        tn_error err = { .text = "" };
        tn_file *f = open_layers((tn_create_options){ 0 });
        const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = 1,
                                           .encoding = zstd ? TN_ENCODING_ZSTD : TN_ENCODING_RAW };
        tn_convert_options options = { .create = &create, .encoding = TN_CHOOSE, .progress = stop_at_once,
                                       .context = &calls };
        CHECK(convert(f, "out.zt", &options, &err) == TN_ERR_CANCELLED && calls == 1);
        CHECK(file_is("out.zt", "old") && count_entries(folder) == 2);
        tn_close(f);
    }
}

typedef struct watch { uint64_t last, total, plans; } watch;

static int watch_progress(void *context, uint64_t done, uint64_t total)
{
    watch *w = context;
    REQUIRE(done >= w->last && done <= total && (w->total == 0 || total == w->total));
    w->last = done;
    w->total = total;
    return 0;
}

static void count_plan(void *context, const tn_planned *planned)
{
    watch *w = context;
    REQUIRE(planned->source && planned->name && planned->nbytes == planned->source->parts[0].nbytes);
    w->plans++;
}

static void progress_ends_at_the_total(void)
{
    tn_file *f = open_layers((tn_create_options){ 0 });
    for (int zstd = 0; zstd < 2; zstd++) {
        watch w = { 0 };
        const tn_create_options create = { .size = sizeof create, .replace = true,
                                           .encoding = zstd ? TN_ENCODING_ZSTD : TN_ENCODING_RAW };
        must_convert(f, "p.zt", &(tn_convert_options){ .create = &create, .encoding = TN_CHOOSE,
                                                       .plan = count_plan,
                                                       .progress = watch_progress, .context = &w });
        /* the tied one moves no bytes */
        CHECK(w.plans == 4 && w.last == w.total && w.total == 12 + 12 + 3);
    }
    tn_close(f);
}

static void a_dry_run_says_the_size_and_writes_nothing(void)
{
    static const char *const names[] = { "d.zt", "d.safetensors" };
    tn_file *f = open_layers((tn_create_options){ .checksum = TN_CHECKSUM_CRC32C });
    for (size_t i = 0; i < 2; i++) {
        watch w = { 0 };
        tn_convert_result planned, written;
        tn_convert_options options = { .size = sizeof options, .dry_run = true, .plan = count_plan,
                                       .context = &w };
        CHECK(tn_convert(f, in_folder(names[i]).text, &options, &planned, NULL) == TN_OK);
        CHECK(w.plans == 4 && count_entries(folder) == 1 + (int)i);
        options.dry_run = false;
        CHECK(tn_convert(f, in_folder(names[i]).text, &options, &written, NULL) == TN_OK);
        CHECK(planned.tensors == 4 && planned.bytes_out == written.bytes_out &&
              planned.bytes_in == written.bytes_in);
        size_t n;
        free(load_file(in_folder(names[i]).text, &n));
        CHECK(n == written.bytes_out);
    }
    tn_close(f);
}

static void input_and_output_may_be_the_same_file(void)
{
    static const tn_io ios[] = { TN_IO_MMAP, TN_IO_PREAD };
    for (size_t i = 0; i < 2; i++) {
        const tn_create_options create = { .size = sizeof create, .replace = true,
                                           .encoding = TN_ENCODING_ZSTD };
        tn_open_options how = { .size = sizeof how, .io = ios[i] };
        tn_file *f, *before = open_layers((tn_create_options){ 0 });
        CHECK(tn_open(in_folder("in.zt").text, &how, &f, NULL) == TN_OK);
        must_convert(f, "in.zt", &(tn_convert_options){ .create = &create, .encoding = TN_CHOOSE });
        tn_file *after = open_file("in.zt");
        CHECK(stored_info(&tn_file_tensor(after, 0)->parts[0]).encoding == TN_ENCODING_ZSTD);
        require_same_tensors(before, after);
        tn_close(after);
        tn_close(before);
        tn_close(f);
        CHECK(count_entries(folder) == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(globs_choose_tensors),
        IN_FOLDER(a_tied_tensor_alone_has_its_own_bytes),
        IN_FOLDER(renaming_keeps_what_the_star_stands_for),
        IN_FOLDER(wrong_rules_are_refused),
        IN_FOLDER(encoding_and_checksum_are_kept_unless_chosen),
        IN_FOLDER(what_the_output_cannot_do_is_refused_when_it_was_chosen),
        IN_FOLDER(a_tensor_that_cannot_be_read_is_refused_before_anything_is_written),
        IN_FOLDER(a_tie_between_types_is_no_obstacle),
        IN_FOLDER(damaged_input_leaves_the_old_output),
        IN_FOLDER(a_callback_can_stop_it),
        IN_FOLDER(progress_ends_at_the_total),
        IN_FOLDER(a_dry_run_says_the_size_and_writes_nothing),
        IN_FOLDER(input_and_output_may_be_the_same_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
