/* Tensors as C source: what the library call promises, and that both files appear or none does. */
#include "support.h"

#include <errno.h>
#include <math.h>

#include "bytes/sink_calls.h"
#include "files.h"
#include "make.h"
#include "file_systems.h"

/* ---- files to export ---- */

typedef struct coded {
    const char    *name;
    tn_dtype       codes;
    int64_t        n;
    int32_t        axis;        /* 0, or -1 */
    const void    *data;
    const float   *scale;
    const int32_t *zero;        /* or NULL */
} coded;

static void add_coded(tn_writer *w, const coded *c)
{
    const int64_t *shape = &c->n;
    uint32_t params = c->axis < 0 ? 0 : 1;
    int64_t half = INT64_C(1) << (tn_dtype_get(c->codes)->bits - 1);
    tn_part parts[] = { { .role = "data", .array = { .dtype = c->codes, .rank = 1, .shape = shape },
                          .data = c->data },
                        { .role = "scale", .array = { .dtype = TN_FLOAT32, .rank = params, .shape = shape },
                          .data = c->scale },
                        { .role = "zero", .array = { .dtype = TN_INT32, .rank = params, .shape = shape },
                          .data = c->zero } };
    tn_scaling scaling = { .axis = c->axis, .range = { -half, half - 1 } };
    tn_tensor t = { .name = c->name, .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = 1, .shape = shape,
                    .parts = parts,
                    .nparts = c->zero ? 3 : 2, .scaling = &scaling };
    tn_error err = { .text = "" };
    if (tn_writer_add(w, &t, &err))
        fail_msg("%s", line_of(&err));
}

static tn_file *coded_file(const coded *all, size_t n)
{
    tn_writer *w;
    tn_error err = { .text = "" };
    CHECK(tn_create(in_folder("in.zt").text, &(tn_create_options){ .size = sizeof(tn_create_options),
                                                                   .replace = true }, &w, &err) == TN_OK);
    for (size_t i = 0; i < n; i++)
        add_coded(w, &all[i]);
    if (tn_writer_finish(w, &err))
        fail_msg("%s", line_of(&err));
    return open_file("in.zt");
}

static const int16_t sixteen[] = { 1, -2, 32767, -32768, 5 };
static const int8_t eight[] = { 127, -128, 3, 4 };
static const int32_t wide[] = { INT32_MIN, INT32_MAX };
static const float power = 0.000244140625f, half_third[] = { 0.5f, 0.75f, 3.0f, 640.0f };
static const int32_t zeros[] = { 1, -2, 32767, -32768 };
static const coded fixed[] = { { "layer.w", TN_INT16, 5, -1, sixteen, &power, NULL },
                               { "b", TN_INT8, 4, -1, eight, half_third, NULL } };
static const coded scaled[] = { { "rows", TN_INT8, 4, 0, eight, half_third, zeros },
                                { "wide", TN_INT32, 2, -1, wide, half_third + 1, zeros },
                                { "rows without", TN_INT8, 4, 0, eight, half_third, NULL } };

static tn_export_options replacing(tn_mli_version mli)
{
    return (tn_export_options){ .size = sizeof(tn_export_options), .mli = mli, .replace = true };
}

static bool has(const char *name, const char *text)
{
    size_t n;
    uint8_t *bytes = load_file(in_folder(name).text, &n);
    bool found = memmem(bytes, n, text, strlen(text)) != NULL;
    if (!found)
        print_message("%s: expected %s in\n%.*s\n", name, text, (int)n, (const char *)bytes);
    free(bytes);
    return found;
}

/* ---- the call ---- */

static void options_result_and_error_may_be_missing(void)
{
    tn_file *f = coded_file(fixed, 2);
    CHECK(tn_export_c(f, in_folder("out").text, NULL, NULL, NULL) == TN_OK);
    CHECK(count_entries(in_folder("out").text) == 2);
    CHECK(has("out/in.h",
              "extern const int16_t in_data_layer_w[5];\nextern const in_mli_tensor in_tensor_layer_w;\n"));
    CHECK(has("out/in.c", "const int16_t in_data_layer_w[5] = {\n    1, -2, 32767, -32768, 5\n};\n"));
    CHECK(has("out/in.c", "    .el_params = { .fx = { .frac_bits = 12 } }\n"));
    CHECK(tn_export_c(f, in_folder("out").text, NULL, NULL, NULL) == TN_ERR_EXISTS);
    CHECK(tn_export_c(f, NULL, NULL, NULL, NULL) == TN_OK);
    tn_close(f);
}

static void a_file_in_memory_has_a_name_too(void)
{
    tn_close(coded_file(fixed, 2));
    size_t n;
    uint8_t *bytes = load_file(in_folder("in.zt").text, &n);
    tn_file *f;
    tn_error err = { .text = "" };
    tn_export_result result;
    CHECK(tn_open_memory(bytes, n, NULL, &f, &err) == TN_OK);
    CHECK(tn_export_c(f, in_folder("out").text, NULL, &result, &err) == TN_OK &&
          strcmp(result.name, "model") == 0);
    CHECK(has("out/model.h", "model_tensor_b"));
    tn_close(f);
    free(bytes);
}

typedef struct seen {
    char     text[400];
    uint64_t done, total;
    int      stop;
} seen;

static void keep(void *context, const tn_export_tensor *x)
{
    seen *s = context;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s %s %s %u %lld %d %d %llu %llu %llu %llu\n", x->source->name,
             x->identifier, x->type, x->rank, (long long)x->shape[0], x->frac_bits, x->axis,
             (unsigned long long)x->offset, (unsigned long long)x->data_bytes,
             (unsigned long long)x->parameter_bytes, (unsigned long long)x->structure_bytes);
}

static int count_bytes(void *context, uint64_t done, uint64_t total)
{
    seen *s = context;
    CHECK(done <= total && done >= s->done);
    s->done = done;
    s->total = total;
    return s->stop;
}

static void tensors_are_reported_in_order_with_their_bytes(void)
{
    coded all[5];
    memcpy(all, fixed, sizeof fixed);
    memcpy(all + 2, scaled, sizeof scaled);
    tn_file *f = coded_file(all, 5);
    for (int binary = 0; binary < 2; binary++) {
        seen s = { .text = "" };
        tn_export_options o = replacing(TN_FOR_MLI_2_0);
        tn_export_result r;
        tn_error err = { .text = "" };
        o.report = keep;
        o.progress = count_bytes;
        o.context = &s;
        o.binary = binary;
        o.align = 16;
        o.name = "m";
        if (tn_export_c(f, in_folder("out").text, &o, &r, &err))
            fail_msg("%s", line_of(&err));
        const char *source = "layer.w m_tensor_layer_w fx16 1 5 12 -1 0 10 0 80\n"
                             "b m_tensor_b fx8 1 4 1 -1 0 4 0 80\n"
                             "rows m_tensor_rows sa8 1 4 0 0 0 4 20 80\n"
                             "wide m_tensor_wide sa32 1 2 0 -1 0 8 0 80\n"
                             "rows without m_tensor_rows_without sa8 1 4 0 0 0 4 20 80\n";
        const char *image = "layer.w m_tensor_layer_w fx16 1 5 12 -1 0 10 0 80\n"
                            "b m_tensor_b fx8 1 4 1 -1 16 4 0 80\n"
                            "rows m_tensor_rows sa8 1 4 0 0 32 4 20 80\n"
                            "wide m_tensor_wide sa32 1 2 0 -1 96 8 0 80\n"
                            "rows without m_tensor_rows_without sa8 1 4 0 0 112 4 20 80\n";
        assert_string_equal(s.text, binary ? image : source);
        CHECK(r.tensors == 5 && r.largest_bytes == 10 && strcmp(r.largest->name, "layer.w") == 0);
        CHECK(r.structure_bytes == 5 * (binary ? 80 : 88) &&
              r.name_bytes == (binary ? 0 : 8 + 2 + 5 + 5 + 13));
        CHECK(binary ? r.data_bytes + r.parameter_bytes == 164
                     : r.data_bytes == 68 && r.parameter_bytes == 40);
        CHECK(s.done == 30 && s.total == 30);
    }
    tn_close(f);
}

static void an_image_is_little_endian_and_aligned(void)
{
    tn_file *f = coded_file(scaled, 2);
    tn_export_options o = replacing(TN_FOR_MLI_1_1);
    tn_error err = { .text = "" };
    o.binary = true;
    if (tn_export_c(f, folder, &o, NULL, &err))
        fail_msg("%s", line_of(&err));
    /* codes; zero points; scales with 21 fractional bits (640 has 30 of 31); codes */
    static const uint8_t expected[] = { 127, 128, 3, 4, 1, 0, 0xfe, 0xff, 0xff, 0x7f, 0, 0x80,
                                        0, 0, 0x10, 0, 0, 0, 0x18, 0, 0, 0, 0x60, 0, 0, 0, 0, 0x50,
                                        0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0x7f };
    size_t n;
    uint8_t *bytes = load_file(in_folder("in.bin").text, &n);
    CHECK(n == sizeof expected && memcmp(bytes, expected, n) == 0);
    CHECK(has("in.h", "t.el_params.asym.scale_frac_bits = 21;"));
    free(bytes);
    tn_close(f);
}

static void only_some_may_be_chosen(void)
{
    tn_file *f = coded_file(scaled, 3);
    tn_export_options o = replacing(TN_FOR_MLI_2_0);
    const char *globs[] = { "wi*", "none*" };
    tn_export_result r;
    tn_error err = { .text = "" };
    o.only = globs;
    o.nonly = 1;
    CHECK(tn_export_c(f, NULL, &o, &r, &err) == TN_OK && r.tensors == 1);
    globs[0] = "rows*";
    CHECK(tn_export_c(f, NULL, &o, &r, &err) == TN_OK && r.tensors == 2);
    CHECK(r.largest_bytes == 4 && strcmp(r.largest->name, "rows") == 0);        /* the first of equals */
    o.nonly = 2;
    CHECK(tn_export_c(f, NULL, &o, &r, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "no tensor matches \"none*\""));
    tn_close(f);
}

static void a_file_without_tensors_is_refused(void)
{
    tn_file *f = coded_file(NULL, 0);
    tn_error err = { .text = "" };
    CHECK(tn_export_c(f, in_folder("out").text, NULL, NULL, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "no tensor to export"));
    CHECK(count_entries(folder) == 1);
    tn_close(f);
}

static void check_refused(const coded *c, tn_mli_version mli, tn_status status, const char *text)
{
    tn_file *f = coded_file(c, 1);
    tn_export_options o = replacing(mli);
    tn_error err = { .text = "" };
    CHECK(tn_export_c(f, in_folder("out").text, &o, NULL, &err) == status);
    if (!strstr(line_of(&err), text) || !strstr(line_of(&err), "in.zt: tensor "))
        fail_msg("expected %s but found %s", text, line_of(&err));
    CHECK(count_entries(folder) == 1);
    tn_close(f);
}

static void parameters_that_do_not_fit_are_refused(void)
{
    static const int32_t far[] = { 0, 0, 32768, 0 };
    static const float tenth[] = { 0.5f, 0.5f, 0.1f, 0.5f }, apart[] = { 1e9f, 1.0f, 3.0f, 1e-9f },
    tiny[] = { 0x1p-140f, 0x1p-130f, 1, 1 };
    static const float wrong[][4] = { { 1, -1, 1, 1 }, { 1, 0, 1, 1 }, { 1, INFINITY, 1, 1 },
                                      { 1, NAN, 1, 1 } };
    const struct { coded tensor; tn_mli_version mli; tn_status status; const char *text; } rows[] = {
        { { "z", TN_INT8, 4, 0, eight, half_third, far }, TN_FOR_MLI_2_0, TN_ERR_LOSS,
          "zero point 32768 at 2: MLI expects -32768 to 32767" },
        { { "s", TN_INT8, 4, 0, eight, tenth, zeros }, TN_FOR_MLI_2_0, TN_ERR_LOSS,
          "scale 0.100000001 at 2 is no integer of 15 bits" },
        { { "s", TN_INT8, 4, 0, eight, apart, zeros }, TN_FOR_MLI_1_1, TN_ERR_LOSS,
          "at 3 is no integer of 31 bits with 1 fractional bits, as" },
        { { "s", TN_INT8, 4, 0, eight, tiny, zeros }, TN_FOR_MLI_2_0, TN_ERR_LOSS,
          "at 0 is no integer of 15 bits with 127" },
        { { "s", TN_INT8, 4, -1, eight, tiny, NULL }, TN_FOR_MLI_2_0, TN_ERR_UNSUPPORTED,
          "frac_bits is 140, MLI 2.0 expects -128 to 127" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_refused(&rows[i].tensor, rows[i].mli, rows[i].status, rows[i].text);
    for (size_t i = 0; i < 4; i++)
        check_refused(&(coded){ "s", TN_INT8, 4, 0, eight, wrong[i], zeros }, TN_FOR_MLI_2_0, TN_ERR_UNSUPPORTED,
                      "at 1: MLI expects a finite one above 0");
}

static void bad_options_are_arguments(void)
{
    tn_file *f = coded_file(fixed, 2);
    const tn_export_options bad[] = { { .align = 3 }, { .align = 2 }, { .align = 8192 }, { .name = "1x" },
                                      { .name = "_x" }, { .name = "" },
                                      { .name = "a-b" }, { .section = "" }, { .section = "a b" },
                                      { .section = "a\"" }, { .mli = 7 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_export_options o = bad[i];
        tn_error err = { .text = "" };
        o.size = sizeof o;
        CHECK(tn_export_c(f, in_folder("out").text, &o, NULL, &err) == TN_ERR_ARGUMENT && err.text[0]);
    }
    CHECK(count_entries(folder) == 1);
    tn_close(f);
}

static void cancelling_leaves_nothing(void)
{
    tn_file *f = coded_file(fixed, 2);
    seen s = { .stop = 1 };
    tn_export_options o = replacing(TN_FOR_MLI_1_0);
    tn_error err = { .text = "" };
    o.progress = count_bytes;
    o.context = &s;
    CHECK(tn_export_c(f, in_folder("out").text, &o, NULL, &err) == TN_ERR_CANCELLED &&
          strcmp(said_of(&err), "cancelled") == 0);
    CHECK(count_entries(folder) == 1);
    tn_close(f);
}

/* ---- both or none ---- */

static struct tn_sink_calls real;
static int left;                /* calls that still succeed */

static bool fails_now(void)
{
    if (left-- > 0)
        return false;
    errno = EIO;
    return true;
}

static int failing_fsync(int fd) { return fails_now() ? -1 : real.fsync(fd); }
static int failing_truncate(int fd, off_t size) { return fails_now() ? -1 : real.ftruncate(fd, size); }
static ssize_t failing_write(int fd, const void *data, size_t n, off_t at)
{
    return fails_now() ? -1 : real.pwrite(fd, data, n, at);
}

static int failing_link(int from_folder, const char *from, int to, const char *name, int flags)
{
    return fails_now() ? -1 : real.linkat(from_folder, from, to, name, flags);
}

static int failing_rename(int from_folder, const char *from, int to, const char *name, unsigned flags)
{
    return fails_now() ? -1 : real.renameat2(from_folder, from, to, name, flags);
}

static void set_failing(int kind)
{
    tn_sink_calls = real;
    if (kind == 0)
        tn_sink_calls.fsync = failing_fsync;
    else if (kind == 1)
        tn_sink_calls.ftruncate = failing_truncate;
    else if (kind == 2)
        tn_sink_calls.pwrite = failing_write;
    else if (kind == 3)
        tn_sink_calls.linkat = failing_link;
    else
        tn_sink_calls.renameat2 = failing_rename;
}

/* Old files there are, a source or a header or both; the run may fail at each call of a kind. */
static void check_pair(const tn_file *f, int kind, bool source, bool header, bool named)
{
    for (int n = 0;; n++) {
        if (source)
            put_file("out/m.c", "old source");
        if (header)
            put_file("out/m.h", "old header");
        tn_export_options o = replacing(TN_FOR_MLI_1_0);
        tn_error err = { .text = "" };
        o.name = "m";
        set_failing(kind);
        if (named)
            tn_sink_calls.open_tmpfile = no_tmpfile;
        left = n;
        tn_status status = tn_export_c(f, in_folder("out").text, &o, NULL, &err);
        tn_sink_calls = real;
        bool old =
            (source ? file_is("out/m.c", "old source") : access(in_folder("out/m.c").text, F_OK) != 0) &&
            (header ? file_is("out/m.h", "old header") : access(in_folder("out/m.h").text, F_OK) != 0);
        int entries = old ? source + header : 2;
        if (count_entries(in_folder("out").text) != entries ||
            (!old && !(has("out/m.c", "m_data_b") && has("out/m.h", "m_data_b"))))
            fail_msg("kind %d, call %d, %d%d: neither the old files nor the new ones: %s", kind, n, source,
                     header, line_of(&err));
        CHECK(status == TN_OK || !old || strstr(line_of(&err), "out/m.") != NULL);
        unlink(in_folder("out/m.c").text);
        unlink(in_folder("out/m.h").text);
        if (status == TN_OK)
            return;
    }
}

static void a_failure_anywhere_leaves_both_files_or_none(void)
{
    tn_file *f = coded_file(fixed, 2);
    CHECK(mkdir(in_folder("out").text, 0777) == 0);
    real = tn_sink_calls;
    for (int kind = 0; kind < 5; kind++)
        for (int old = 0; old < 4; old++)
            for (int named = 0; named < 2; named++)
                check_pair(f, kind, old & 1, old & 2, named);
    tn_close(f);
}

static int no_link(int from_folder, const char *from, int to, const char *name, int flags)
{
    (void)from_folder, (void)from, (void)to, (void)name, (void)flags;
    errno = EPERM;
    return -1;
}

/* A file system without links: the old source cannot be had back. */
static void half_a_pair_is_told(void)
{
    tn_file *f = coded_file(fixed, 2);
    CHECK(mkdir(in_folder("out").text, 0777) == 0);
    put_file("out/m.c", "old source");
    put_file("out/m.h", "old header");
    tn_export_options o = replacing(TN_FOR_MLI_1_0);
    tn_error err = { .text = "" };
    o.name = "m";
    real = tn_sink_calls;
    set_failing(4);
    tn_sink_calls.open_tmpfile = no_tmpfile;
    tn_sink_calls.linkat = no_link;
    left = 1;                   /* the source's */
    CHECK(tn_export_c(f, in_folder("out").text, &o, NULL, &err) == TN_ERR_IO);
    tn_sink_calls = real;
    CHECK(has("out/m.c", "m_data_b") && file_is("out/m.h", "old header"));
    CHECK(!strstr(line_of(&err), "nothing was replaced") && strstr(line_of(&err), "m.c\" is new already"));
    tn_close(f);
}

static void a_link_to_a_source_stays_one(void)
{
    tn_file *f = coded_file(fixed, 2);
    CHECK(mkdir(in_folder("out").text, 0777) == 0 && mkdir(in_folder("kept").text, 0777) == 0);
    put_file("kept/elsewhere.c", "old source");
    CHECK(symlink("../kept/elsewhere.c", in_folder("out/m.c").text) == 0);
    tn_export_options o = replacing(TN_FOR_MLI_1_0);
    tn_error err = { .text = "" };
    o.name = "m";
    real = tn_sink_calls;
    set_failing(1);
    left = 1;                   /* the header's */
    CHECK(tn_export_c(f, in_folder("out").text, &o, NULL, &err) == TN_ERR_IO);
    tn_sink_calls = real;
    CHECK(file_is("kept/elsewhere.c", "old source") && count_entries(in_folder("kept").text) == 1 &&
          count_entries(in_folder("out").text) == 1);
    CHECK(tn_export_c(f, in_folder("out").text, &o, NULL, &err) == TN_OK);
    CHECK(has("kept/elsewhere.c", "m_data_b") && count_entries(in_folder("kept").text) == 1 &&
          count_entries(in_folder("out").text) == 2);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(options_result_and_error_may_be_missing),
        IN_FOLDER(a_file_in_memory_has_a_name_too),
        IN_FOLDER(tensors_are_reported_in_order_with_their_bytes),
        IN_FOLDER(an_image_is_little_endian_and_aligned),
        IN_FOLDER(only_some_may_be_chosen),
        IN_FOLDER(a_file_without_tensors_is_refused),
        IN_FOLDER(parameters_that_do_not_fit_are_refused),
        IN_FOLDER(bad_options_are_arguments),
        IN_FOLDER(cancelling_leaves_nothing),
        IN_FOLDER(a_failure_anywhere_leaves_both_files_or_none),
        IN_FOLDER(half_a_pair_is_told),
        IN_FOLDER(a_link_to_a_source_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
