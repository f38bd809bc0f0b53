/* NULL and absurd arguments of public functions: a status and a text, never a crash. */
#include "support.h"
#include "make.h"

#include <tenon/mli.h>
#include <tenon/tenon.h>

#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* The names of all functions that were called here. */
static const char *called[2000];
static size_t ncalled;

static void note(const char *name)
{
    CHECK(ncalled < sizeof called / sizeof *called);
    called[ncalled++] = name;
}

/* Refused with this text in the message. */
static void refused(const char *name, tn_status status, const tn_error *err, const char *text)
{
    if (status != TN_ERR_ARGUMENT || !err->text[0] || !strstr(err->text, text))
        fail_msg("%s: expected %d \"%s\"\nfound    %d \"%s\"", name, TN_ERR_ARGUMENT, text, (int)status, err->text);
}

/* A call that is TN_ERR_ARGUMENT and says so; its last argument is &err. */
#define REFUSED(function, arguments, said) \
    do { tn_error err = { .text = "" }; note(#function); refused(#function, function arguments, &err, said); } while (0)

/* A call with a documented answer, such as "== NULL". */
#define ANSWERS(function, arguments, answer) do { note(#function); CHECK(function arguments answer); } while (0)

/* A call that does nothing. */
#define TAKES(function, arguments) do { note(#function); function arguments; } while (0)

static const uint8_t bytes[4] = { 1, 2, 3, 4 };
static const int64_t four[] = { 4 }, negative[] = { -4 }, vast[] = { INT64_MAX, INT64_MAX };

static tn_file *some_file(void)
{
    const simple s = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = bytes };
    write_file("f.zt", (tn_create_options){ .replace = true }, &s, 1);
    return open_file("f.zt");
}

static void opening_needs_paths_and_a_place(void)
{
    tn_file *f;
    REFUSED(tn_open, (NULL, NULL, &f, &err), "a path");
    REFUSED(tn_open, ("x", NULL, NULL, &err), "a place for the file");
    REFUSED(tn_open_fd, (0, NULL, NULL, &err), "a place for the file");
    REFUSED(tn_open_memory, (NULL, 5, NULL, &f, &err), "data");
    REFUSED(tn_open_several, (NULL, 2, NULL, &f, &err), "the paths");
    REFUSED(tn_open_callbacks, (NULL, NULL, &f, &err), "a function that reads");
    const tn_open_options unsized = { .io = TN_IO_AUTO }, absurd = { .size = sizeof absurd, .io = (tn_io)77 },
                          unheard = { .size = sizeof unheard, .format = "unheard-of" };
    const char *const none[] = { NULL };
    REFUSED(tn_open_memory, (bytes, 4, NULL, NULL, &err), "a place for the file");
    REFUSED(tn_open_several, (none, 1, NULL, &f, &err), "path");
    REFUSED(tn_open_several, (none, 0, NULL, &f, &err), "");
    REFUSED(tn_open_several, ((const char *const[]){ "x" }, 1, NULL, NULL, &err), "a place for the file");
    const tn_open_options *const wrong[] = { &unsized, &absurd, &unheard };
    tn_close(some_file());
    const char *path = in_folder("f.zt").text;
    int fd = open(path, O_RDONLY);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED(tn_open, (path, wrong[i], &f, &err), "");
        REFUSED(tn_open_fd, (fd, wrong[i], &f, &err), "");
        REFUSED(tn_open_memory, (bytes, 4, wrong[i], &f, &err), "");
        REFUSED(tn_open_several, (&path, 1, wrong[i], &f, &err), "");
    }
    CHECK(close(fd) == 0);
    ANSWERS(tn_open_fd, (-1, NULL, &f, NULL), == TN_ERR_IO);
    ANSWERS(tn_open_memory, (NULL, 0, NULL, &f, NULL), == TN_ERR_UNSUPPORTED);
}

static void no_file_has_nothing(void)
{
    size_t n = 7;
    tn_file *f = some_file();
    ANSWERS(tn_file_format, (NULL), [0] == '\0');
    ANSWERS(tn_file_size, (NULL), == 0);
    ANSWERS(tn_file_shards, (NULL), == 0);
    ANSWERS(tn_file_shard_name, (NULL, 0), [0] == '\0');
    ANSWERS(tn_file_shard_name, (f, SIZE_MAX), [0] == '\0');
    ANSWERS(tn_file_count, (NULL), == 0);
    ANSWERS(tn_file_tensor, (NULL, 0), == NULL);
    ANSWERS(tn_file_tensor, (f, SIZE_MAX), == NULL);
    ANSWERS(tn_file_find, (NULL, "a"), == NULL);
    ANSWERS(tn_file_find, (f, NULL), == NULL);
    ANSWERS(tn_file_warning, (NULL, 0), == NULL);
    ANSWERS(tn_file_warning, (f, SIZE_MAX), == NULL);
    bool chosen;
    const char *const some[] = { "a" }, *const none[] = { NULL };
    REFUSED(tn_choose, (NULL, 1, some, 1, &chosen, &err), "names");
    REFUSED(tn_choose, (none, 1, some, 1, &chosen, &err), "names");
    REFUSED(tn_choose, (some, 1, NULL, 1, &chosen, &err), "patterns");
    REFUSED(tn_choose, (some, 1, none, 1, &chosen, &err), "patterns");
    REFUSED(tn_choose, (some, 1, some, 1, NULL, &err), "a place");
    ANSWERS(tn_file_convention, (NULL, tn_file_tensor(f, 0)), == NULL);
    ANSWERS(tn_file_convention, (f, NULL), == NULL);
    ANSWERS(tn_file_meta, (NULL, &n), == NULL && n == 0);
    ANSWERS(tn_file_meta, (f, NULL), == tn_file_meta(f, &n));
    REFUSED(tn_file_intact, (NULL, &err), "a file");
    tn_close(f);
    TAKES(tn_close, (NULL));
}

static void reading_needs_all_of_it(void)
{
    tn_file *f = some_file();
    const tn_part *part = tn_file_tensor(f, 0)->parts;
    uint8_t to[4];
    tn_stored_info info = { .size = sizeof info };
    REFUSED(tn_part_read, (NULL, part, to, 4, &err), "a file");
    REFUSED(tn_part_read, (f, NULL, to, 4, &err), "a part");
    REFUSED(tn_part_read, (f, part, NULL, 4, &err), "a buffer");
    REFUSED(tn_part_read, (f, part, to, 3, &err), "a buffer of 4 bytes");
    REFUSED(tn_part_read_rows, (f, part, 0, 4, NULL, 4, &err), "a buffer");
    REFUSED(tn_part_read_rows, (f, part, UINT64_MAX, UINT64_MAX, to, 4, &err), "rows within 4");
    REFUSED(tn_part_read_rows, (f, NULL, 0, 4, to, 4, &err), "a part");
    REFUSED(tn_check_decoded, (NULL, 1, 0, &err), "tensors");
    REFUSED(tn_check_decoded, ((const tn_tensor *const[]){ NULL }, 1, 0, &err), "tensors");
    ANSWERS(tn_part_stored, (NULL, NULL, &info), == TN_ERR_ARGUMENT);
    ANSWERS(tn_part_stored, (NULL, part, NULL), == TN_ERR_ARGUMENT);
    ANSWERS(tn_part_stored, (NULL, part, &(tn_stored_info){ .size = 0 }), == TN_ERR_ARGUMENT);
    tn_close(f);
}

static void views_need_tensors_and_room(void)
{
    const int64_t zero[] = { 0 }, beyond[] = { 5 };
    tn_file *f = some_file();
    const tn_tensor *t = tn_file_tensor(f, 0);
    uint8_t to[16];
    tn_view *view = NULL, *other = NULL, *none = NULL;
    const tn_part elsewhere = { .role = "data", .array = { TN_UINT8, 1, four, NULL }, .nbytes = 4 };
    const tn_tensor stored = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &elsewhere, .nparts = 1 };
    REFUSED(tn_view_open, (NULL, &stored, &view, &err), "the file");
    REFUSED(tn_view_open, (f, NULL, &view, &err), "");
    REFUSED(tn_view_open, (f, t, NULL, &err), "");
    CHECK(tn_view_open(f, t, &view, NULL) == TN_OK && tn_view_open(f, t, &other, NULL) == TN_OK);
    REFUSED(tn_view_add_values, (NULL, TN_FLOAT32, &err), "");
    REFUSED(tn_view_add_values, (&none, TN_FLOAT32, &err), "");
    REFUSED(tn_view_add_values, (&view, (tn_dtype)9999, &err), "");
    REFUSED(tn_view_add, (NULL, "slice", "0", &err), "a view");
    REFUSED(tn_view_add, (&none, "slice", "0", &err), "a view");
    REFUSED(tn_view_add, (&view, NULL, "0", &err), "a step");
    REFUSED(tn_view_add, (&view, "slice", NULL, &err), "");
    REFUSED(tn_view_add, (&view, "unheard-of", "0", &err), "a step");
    REFUSED(tn_view_join, (NULL, 2, "j", NULL, &none, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, NULL }, 2, "j", NULL, &none, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, view }, 2, "j", NULL, &none, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, other }, 0, "j", NULL, &none, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, other }, 2, NULL, NULL, &none, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, other }, 2, "j", NULL, NULL, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, other }, 2, "j", "along=1", &none, &err), "");
    REFUSED(tn_view_join, ((tn_view *[]){ view, other }, 2, "j", "axis=9", &none, &err), "");
    ANSWERS(tn_view_tensor, (NULL), == NULL);
    REFUSED(tn_view_read, (NULL, 0, 0, 4, to, 4, &err), "a view");
    REFUSED(tn_view_read, (view, 0, 0, 4, NULL, 4, &err), "a buffer");
    REFUSED(tn_view_read, (view, UINT32_MAX, 0, 4, to, 4, &err), "");
    REFUSED(tn_view_read, (view, 0, UINT64_MAX, 4, to, 4, &err), "");
    REFUSED(tn_view_read, (view, 0, 1, UINT64_MAX, to, 4, &err), "");
    REFUSED(tn_view_read, (view, 0, 0, 4, to, 3, &err), "");
    REFUSED(tn_view_read_box, (NULL, zero, four, to, 4, &err), "a view");
    REFUSED(tn_view_read_box, (view, NULL, four, to, 4, &err), "");
    REFUSED(tn_view_read_box, (view, zero, NULL, to, 4, &err), "");
    REFUSED(tn_view_read_box, (view, zero, four, NULL, 4, &err), "");
    REFUSED(tn_view_read_box, (view, beyond, four, to, 4, &err), "");
    REFUSED(tn_view_read_box, (view, negative, four, to, 4, &err), "");
    REFUSED(tn_view_read_box, (view, zero, negative, to, 4, &err), "");
    REFUSED(tn_view_read_box, (view, zero, vast, to, 4, &err), "");
    REFUSED(tn_view_read_box, (view, zero, four, to, 3, &err), "");
    REFUSED(tn_read, (NULL, &stored, TN_FLOAT32, to, 16, &err), "the file");
    REFUSED(tn_read, (f, NULL, TN_FLOAT32, to, 16, &err), "");
    REFUSED(tn_read, (f, t, TN_UNKNOWN, to, 3, &err), "");
    REFUSED(tn_read, (f, t, (tn_dtype)9999, to, 16, &err), "");
    REFUSED(tn_read, (f, t, TN_FLOAT32, NULL, 16, &err), "");
    REFUSED(tn_read, (f, t, TN_FLOAT32, to, 15, &err), "");
    tn_view_close(other);
    tn_view_close(view);
    TAKES(tn_view_close, (NULL));
    tn_close(f);
}

static void operations_need_files(void)
{
    tn_file *f = some_file();
    tn_descriptors *set;
    size_t n;
    const tn_meta_edit edit = { .key = "k", .text = "v" }, keyless = { .text = "v" };
    const char *const none[] = { NULL };
    REFUSED(tn_verify, (NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_uploads_list, (NULL, NULL, NULL, &err), "a URL");
    REFUSED(tn_uploads_end, (NULL, "id", &err), "a URL");
    REFUSED(tn_uploads_end, ("s3://bucket/key", NULL, &err), "the id");
    REFUSED(tn_verify, (f, &(tn_verify_options){ .jobs = 1 }, NULL, &err), "size");
    CHECK(tn_verify(f, NULL, NULL, NULL) == TN_OK);
    REFUSED(tn_convert, (NULL, "x.zt", NULL, NULL, &err), "a file");
    REFUSED(tn_convert, (f, NULL, NULL, NULL, &err), "a path");
    REFUSED(tn_convert, (f, "x.zt", &(tn_convert_options){ .nonly = 1 }, NULL, &err), "size");
    REFUSED(tn_compare, (f, NULL, NULL, NULL, &n, &err), "two files");
    REFUSED(tn_compare, (NULL, f, NULL, NULL, &n, &err), "two files");
    REFUSED(tn_compare, (f, f, &(tn_compare_options){ .jobs = 1 }, NULL, &n, &err), "size");
    const size_t size = sizeof(tn_compare_options);
    const tn_compare_options lists[] = { { .size = size, .nonly = 1 }, { .size = size, .only = none, .nonly = 1 },
                                         { .size = size, .nrename = 1 }, { .size = size, .rename = none, .nrename = 1 } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        REFUSED(tn_compare, (f, f, &lists[i], NULL, &n, &err), "");
    CHECK(tn_compare(f, f, NULL, NULL, NULL, NULL) == TN_OK);
    REFUSED(tn_stats, (NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_stats, (f, &(tn_stats_options){ .jobs = 1 }, NULL, &err), "size");
    REFUSED(tn_stats, (f, &(tn_stats_options){ .size = sizeof(tn_stats_options), .nonly = 1 }, NULL, &err), "");
    REFUSED(tn_stats, (f, &(tn_stats_options){ .size = sizeof(tn_stats_options), .only = none, .nonly = 1 }, NULL,
                       &err), "");
    CHECK(tn_stats(f, NULL, NULL, NULL) == TN_OK);
    REFUSED(tn_compare_datatypes, (NULL, NULL, 0, NULL, NULL, &err), "a file");
    REFUSED(tn_compare_datatypes, (f, NULL, 1, NULL, NULL, &err), "datatypes");
    REFUSED(tn_compare_datatypes, (f, (const tn_datatype *const[]){ NULL }, 1, NULL, NULL, &err), "datatypes");
    REFUSED(tn_compare_datatypes, (f, NULL, 0, &(tn_compare_datatypes_options){ .jobs = 1 }, NULL, &err), "size");
    tn_report *report = NULL;
    const char *text;
    const size_t report_size = sizeof(tn_report_options);
    REFUSED(tn_report_make, (NULL, NULL, &report, &err), "a file");
    REFUSED(tn_report_make, (f, NULL, NULL, &err), "a place");
    REFUSED(tn_report_make, (f, &(tn_report_options){ .jobs = 1 }, &report, &err), "size");
    REFUSED(tn_report_make, (f, &(tn_report_options){ .size = report_size, .ntypes = 1 }, &report, &err), "types");
    REFUSED(tn_report_make, (f, &(tn_report_options){ .size = report_size, .types = none, .ntypes = 1 }, &report,
                             &err), "");
    REFUSED(tn_report_make, (f, &(tn_report_options){ .size = report_size, .only = none, .nonly = 1 }, &report,
                             &err), "");
    REFUSED(tn_report_text, (NULL, TN_REPORT_DATA, &text, NULL, &err), "a report");
    REFUSED(tn_report_save, (NULL, "x", true, &err), "a report");
    ANSWERS(tn_report_sums, (NULL), == NULL);
    ANSWERS(tn_report_tensor_at, (NULL, 0), == NULL);
    ANSWERS(tn_report_role_at, (NULL, 0), == NULL);
    ANSWERS(tn_report_type_at, (NULL, 0), == NULL);
    CHECK(tn_report_make(f, NULL, &report, NULL) == TN_OK);
    REFUSED(tn_report_text, (report, (tn_report_text_kind)3, &text, NULL, &err), "a kind");
    REFUSED(tn_report_text, (report, TN_REPORT_DATA, NULL, NULL, &err), "a place");
    REFUSED(tn_report_save, (report, NULL, true, &err), "a path");
    CHECK(!tn_report_tensor_at(report, SIZE_MAX) && !tn_report_role_at(report, SIZE_MAX));
    tn_report_free(report);
    TAKES(tn_report_free, (NULL));
    REFUSED(tn_edit_meta, (NULL, NULL, 0, NULL, NULL, &err), "a path");
    REFUSED(tn_edit_meta, ("x", NULL, 1, NULL, NULL, &err), "edits");
    REFUSED(tn_edit_meta, (in_folder("f.zt").text, &keyless, 1, NULL, NULL, &err), "");
    REFUSED(tn_edit_meta, (in_folder("f.zt").text, &edit, 1, &(tn_edit_options){ .size = 0 }, NULL, &err), "size");
    REFUSED(tn_describe, (NULL, NULL, &set, &err), "a file");
    REFUSED(tn_describe, (f, NULL, NULL, &err), "a place");
    REFUSED(tn_export_c, (NULL, NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_export_c, (f, NULL, &(tn_export_options){ .binary = true }, NULL, &err), "size");
    REFUSED(tn_export_c, (f, NULL, &(tn_export_options){ .size = sizeof(tn_export_options), .mli = (tn_mli_version)9 },
                          NULL, &err), "");
    tn_close(f);
}

/* What a rule, an option or a list of them may be wrong in. */
static void conversions_need_rules_and_options_that_are_there(void)
{
    tn_file *f = some_file();
    const char *const none[] = { NULL };
    const tn_rule no_step = { NULL, "f32" }, no_text = { "cast", NULL }, unheard = { "unheard-of", "x" };
    const tn_create_options unsized = { .replace = true };
    const size_t size = sizeof(tn_convert_options);
    const tn_convert_options wrong[] = {
        { .size = 0 }, { .size = size, .create = &unsized }, { .size = size, .nonly = 1 },
        { .size = size, .only = none, .nonly = 1 }, { .size = size, .nrename = 1 },
        { .size = size, .rename = none, .nrename = 1 }, { .size = size, .nrules = 1 },
        { .size = size, .rules = &no_step, .nrules = 1 }, { .size = size, .rules = &no_text, .nrules = 1 },
        { .size = size, .rules = &unheard, .nrules = 1 }, { .size = size, .cast_defaults = "unheard-of=1" },
        { .size = size, .encoding = (tn_keep)9 }, { .size = size, .checksum = (tn_keep)9 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_plan *plan = NULL;
        REFUSED(tn_convert, (f, in_folder("x.zt").text, &wrong[i], NULL, &err), "");
        REFUSED(tn_plan_make, (f, in_folder("x.zt").text, &wrong[i], &plan, &err), "");
    }
    REFUSED(tn_rule_check, (NULL, NULL, &err), "a rule");
    REFUSED(tn_rule_check, (&no_step, NULL, &err), "a step");
    REFUSED(tn_rule_check, (&no_text, NULL, &err), "");
    REFUSED(tn_rule_check, (&unheard, NULL, &err), "a step");
    REFUSED(tn_rule_check, (&(tn_rule){ "cast", "f32" }, "unheard-of=1", &err), "");
    ANSWERS(tn_rule_makes, (NULL, NULL), == 0);
    ANSWERS(tn_rule_makes, (&no_text, NULL), == 0);
    ANSWERS(tn_rule_makes, (&unheard, "unheard-of=1"), == 0);
    tn_close(f);
}

static void plans_need_pieces_that_are_there(void)
{
    tn_file *f = some_file();
    tn_plan *plan = NULL, *again = NULL;
    tn_plan_piece_info info = { .size = sizeof info };
    REFUSED(tn_plan_make, (NULL, "x.zt", NULL, &plan, &err), "a file");
    REFUSED(tn_plan_make, (f, NULL, NULL, &plan, &err), "a path");
    REFUSED(tn_plan_make, (f, "x.zt", NULL, NULL, &err), "a place");
    CHECK(tn_plan_make(f, in_folder("x.zt").text, NULL, &plan, NULL) == TN_OK);
    ANSWERS(tn_plan_count, (NULL), == 0);
    ANSWERS(tn_plan_memory, (NULL, 0), == 0);
    REFUSED(tn_plan_piece, (NULL, 0, &info, &err), "a plan");
    REFUSED(tn_plan_piece, (plan, SIZE_MAX, &info, &err), "piece");
    REFUSED(tn_plan_piece, (plan, 0, NULL, &err), "");
    REFUSED(tn_plan_piece, (plan, 0, &(tn_plan_piece_info){ .size = 0 }, &err), "size");
    REFUSED(tn_plan_run, (NULL, 0, &err), "a plan");
    REFUSED(tn_plan_run, (plan, SIZE_MAX, &err), "piece");
    REFUSED(tn_plan_finish, (NULL, NULL, &err), "a plan");
    REFUSED(tn_plan_finish, (plan, NULL, &err), "piece");
    REFUSED(tn_plan_save, (NULL, "p.json", &err), "a plan");
    REFUSED(tn_plan_save, (plan, NULL, &err), "a path");
    REFUSED(tn_plan_open, (NULL, &again, &err), "a path");
    REFUSED(tn_plan_open, ("p.json", NULL, &err), "a place");
    tn_plan_free(plan);
    TAKES(tn_plan_free, (NULL));
    ANSWERS(tn_work_plan, (NULL), == NULL);     ANSWERS(tn_work_folder, (NULL), != NULL);
    ANSWERS(tn_work_output, (NULL), != NULL);   TAKES(tn_work_close, (NULL));
    REFUSED(tn_work_make, (NULL, "x.zt", NULL, NULL, NULL, &err), "a file");
    REFUSED(tn_work_open, (NULL, NULL, NULL, &err), "a folder");
    REFUSED(tn_work_run, (NULL, 0, NULL, &err), "a work");  REFUSED(tn_work_run_all, (NULL, true, &err), "a work");
    REFUSED(tn_work_finish, (NULL, NULL, &err), "a work");  REFUSED(tn_work_abandon, (NULL, &err), "a folder");
    REFUSED(tn_work_look, (NULL, NULL, NULL, NULL, &err), "a folder");
    REFUSED(tn_together_new, (NULL, NULL, NULL, &err), "a folder");
    REFUSED(tn_together_new, ("x", NULL, NULL, &err), "a place");
    ANSWERS(tn_together_tells, (NULL), == true);   TAKES(tn_together_end, (NULL, true));
    tn_close(f);
}

static tn_writer *some_writer(void)
{
    tn_writer *w;
    const tn_create_options o = { .size = sizeof o, .replace = true };
    CHECK(tn_create(in_folder("w.zt").text, &o, &w, NULL) == TN_OK);
    return w;
}

static void a_writer_needs_names_shapes_and_data(void)
{
    tn_writer *w;
    const tn_part unnamed = { .array = { TN_UINT8, 1, four, NULL }, .data = bytes };
    const tn_part shapeless = { .role = "data", .array = { TN_UINT8, 1, NULL, NULL }, .data = bytes };
    const tn_part deep = { .role = "data", .array = { TN_UINT8, 1000, four, NULL }, .data = bytes };
    const tn_part two[] = { unnamed, unnamed };
    const tn_tensor whole = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed,
                              .nparts = 1 };
    const struct { tn_tensor t; const char *text; } wrong[] = {
        { { .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = 1 }, "a name" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .nparts = 1 }, "parts" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed }, "1 to 16 parts" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = UINT32_MAX },
          "1 to 16 parts" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .parts = &unnamed, .nparts = 1 }, "a shape" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &shapeless, .nparts = 1 },
          "a shape of every part" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &deep, .nparts = 1 },
          "at most 64 dimensions" },
        { { .name = "a", .dtype = TN_UINT8, .rank = UINT32_MAX, .shape = four, .parts = &unnamed, .nparts = 1 },
          "at most 64 dimensions" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = two, .nparts = 2 },
          "a role of every part but the first" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = 1,
            .nmeta = 1 }, "metadata" },
        { { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &unnamed, .nparts = 1,
            .nmeta = 1, .meta = &(const tn_meta){ .key = "k" } }, "a key and a value" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        w = some_writer();
        REFUSED(tn_writer_add, (w, &wrong[i].t, &err), wrong[i].text);
        REFUSED(tn_writer_finish, (w, &err), "an earlier call failed");
    }
    REFUSED(tn_writer_add, (NULL, &whole, &err), "a writer");
    w = some_writer();
    CHECK(tn_writer_add(w, &whole, NULL) == TN_OK);            /* its part has no role: it is the data */
    REFUSED(tn_writer_add, (w, NULL, &err), "a tensor");
    REFUSED(tn_writer_add_meta, (w, NULL, &err), "metadata");
    REFUSED(tn_writer_add_meta, (w, &(const tn_meta){ .text = "v" }, &err), "a key");
    REFUSED(tn_writer_add_meta, (w, &(const tn_meta){ .key = "k" }, &err), "a value");
    REFUSED(tn_writer_write, (w, 0, 0, NULL, 4, &err), "data");
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    REFUSED(tn_writer_add_meta, (NULL, &(const tn_meta){ .key = "k", .text = "v" }, &err), "a writer");
    REFUSED(tn_writer_write, (NULL, 0, 0, bytes, 4, &err), "a writer");
    REFUSED(tn_writer_finish, (NULL, &err), "a writer");
    REFUSED(tn_create, (NULL, NULL, &w, &err), "a path");
    REFUSED(tn_create, ("x.zt", NULL, NULL, &err), "a place for the writer");
    const size_t size = sizeof(tn_create_options);
    const tn_create_options absurd[] = {
        { .size = 0 }, { .size = size, .format = "unheard-of" }, { .size = size, .encoding = (tn_encoding)77 },
        { .size = size, .checksum = (tn_checksum)77 }, { .size = size, .align = 3 },
        { .size = size, .nformat_options = 1 },
        { .size = size, .format_options = &(const tn_format_option){ NULL, NULL, NULL }, .nformat_options = 1 },
    };
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
        REFUSED(tn_create, ("x.zt", &absurd[i], &w, &err), "");
    w = some_writer();
    REFUSED(tn_writer_write, (w, SIZE_MAX, 0, bytes, 4, &err), "");
    tn_writer_abandon(w);
    TAKES(tn_writer_abandon, (NULL));
}

static void an_array_is_added_in_one_call(void)
{
    tn_writer *w = some_writer();
    CHECK(tn_writer_add_array(w, "a", TN_UINT8, 1, four, bytes, NULL) == TN_OK);
    CHECK(tn_writer_add_array(w, "scalar", TN_UINT8, 0, NULL, bytes, NULL) == TN_OK);
    CHECK(tn_writer_add_array(w, "later", TN_UINT8, 1, four, NULL, NULL) == TN_OK);
    CHECK(tn_writer_write(w, 2, 0, bytes, 4, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("w.zt");
    CHECK(tn_file_count(f) == 3 && tn_file_find(f, "scalar")->rank == 0);
    CHECK(memcmp(tn_file_find(f, "a")->parts[0].data, bytes, 4) == 0);
    CHECK(memcmp(tn_file_find(f, "later")->parts[0].data, bytes, 4) == 0);
    tn_close(f);
    const struct { const char *name; uint32_t rank; const int64_t *shape; tn_dtype dtype; } wrong[] = {
        { NULL, 1, four, TN_UINT8 }, { "a", 1, NULL, TN_UINT8 }, { "a", 65, four, TN_UINT8 },
        { "a", 1, negative, TN_UINT8 }, { "a", 2, vast, TN_UINT8 }, { "a", 1, four, TN_UNKNOWN },
        { "a", 1, four, (tn_dtype)9999 }, { "\xff", 1, four, TN_UINT8 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        w = some_writer();
        CHECK(tn_writer_add_array(w, wrong[i].name, wrong[i].dtype, wrong[i].rank, wrong[i].shape, bytes, &err));
        CHECK(err.text[0] && err.status);
        tn_writer_abandon(w);
    }
    REFUSED(tn_writer_add_array, (NULL, "a", TN_UINT8, 1, four, bytes, &err), "a writer");
}

static void numbers_that_name_nothing_are_answered(void)
{
    char text[8];
    ANSWERS(tn_format_at, (SIZE_MAX), == NULL);
    ANSWERS(tn_layout_at, (SIZE_MAX), == NULL);
    ANSWERS(tn_datatype_at, (SIZE_MAX), == NULL);
    ANSWERS(tn_dtype_get, (TN_UNKNOWN), == NULL);
    ANSWERS(tn_dtype_get, ((tn_dtype)9999), == NULL);
    ANSWERS(tn_dtype_get, ((tn_dtype)-1), == NULL);
    ANSWERS(tn_dtype_parse, (NULL), == TN_UNKNOWN);
    ANSWERS(tn_dtype_parse, (""), == TN_UNKNOWN);
    ANSWERS(tn_build_fact, (SIZE_MAX), == NULL);
    ANSWERS(tn_device_query, (SIZE_MAX), == NULL);
    ANSWERS(tn_handle_query, (SIZE_MAX), == NULL);
    ANSWERS(tn_form_name, ((tn_form)77), [0] == 'u');
    ANSWERS(tn_tensor_form_name, (NULL), [0] == 'u');
    ANSWERS(tn_tensor_form_name, (&(tn_tensor){ .form = (tn_form)77 }), [0] == 'u');
    ANSWERS(tn_encoding_name, ((tn_encoding)77), == NULL);
    ANSWERS(tn_encoding_parse, (NULL), == TN_ENCODING_UNKNOWN);
    ANSWERS(tn_encoding_parse, ("unheard-of"), == TN_ENCODING_UNKNOWN);
    ANSWERS(tn_status_text, ((tn_status)9999), != NULL);
    ANSWERS(tn_version, (), != NULL);
    ANSWERS(tn_error_format, (NULL, text, sizeof text), == 0 && !text[0]);
    ANSWERS(tn_error_format, (&(tn_error){ .text = "long enough", .offset = TN_NO_OFFSET }, NULL, 0), == 11);
    tn_nearest nearest = { .word = NULL };
    TAKES(tn_nearest_offer, (NULL, "word"));
    TAKES(tn_nearest_offer, (&nearest, "word"));
    nearest.word = "word";
    TAKES(tn_nearest_offer, (&nearest, NULL));
    CHECK(!nearest.found);
    ANSWERS(tn_escape, (text, sizeof text, NULL, 0), == 0 && !text[0]);
    ANSWERS(tn_escape, (NULL, 0, "abc", 3), == 3);
    ANSWERS(tn_meta_json, (NULL, text, sizeof text), == 0 && !text[0]);
    ANSWERS(tn_meta_json, (&(tn_meta){ .key = "k", .text = "v" }, NULL, 0), == 3);
    ANSWERS(tn_meta_type_exists, (NULL), == false);
    ANSWERS(tn_meta_type_exists, ("arr"), == false);
    ANSWERS(tn_value_get, (TN_UNKNOWN, NULL, 0), .kind == TN_KIND_NONE);
    ANSWERS(tn_value_get, ((tn_dtype)9999, NULL, 0), .kind == TN_KIND_NONE);
    ANSWERS(tn_value_format, (NULL, 0, TN_UINT8, (tn_value){ .kind = TN_KIND_UINT, .u = 123 }), == 3);
    ANSWERS(tn_value_format, (text, sizeof text, (tn_dtype)9999, (tn_value){ .kind = (tn_kind)77 }), >= 0);
    uint64_t before = tn_window_memory();
    TAKES(tn_set_window_memory, (0));
    ANSWERS(tn_window_memory, (), > 0);
    tn_set_window_memory(before);
}

static void arrays_need_arrays(void)
{
    uint64_t n;
    uint8_t to[16];
    int64_t result[2];
    uint32_t order[TN_MAX_RANK];
    tn_tensor *made;
    const tn_array array = { TN_UINT8, 1, four, NULL }, shapeless = { TN_UINT8, 1, NULL, NULL },
                   typeless = { (tn_dtype)9999, 1, four, NULL }, deep = { TN_UINT8, 65, four, NULL };
    const tn_array *const wrong[] = { NULL, &shapeless, &typeless, &deep };
    ANSWERS(tn_shape_count, (1, NULL, &n), == TN_ERR_ARGUMENT);
    ANSWERS(tn_shape_count, (1, four, NULL), == TN_ERR_ARGUMENT);
    ANSWERS(tn_shape_count, (65, four, &n), == TN_ERR_ARGUMENT);
    ANSWERS(tn_shape_count, (2, vast, &n), == TN_ERR_LIMIT);
    ANSWERS(tn_array_nbytes, (&array, NULL), == TN_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ANSWERS(tn_array_nbytes, (wrong[i], &n), == TN_ERR_ARGUMENT);
        REFUSED(tn_cast, (wrong[i], to, &array, bytes, TN_LITTLE_ENDIAN, NULL, &err), "");
        REFUSED(tn_cast, (&array, to, wrong[i], bytes, TN_LITTLE_ENDIAN, NULL, &err), "");
        REFUSED(tn_reorder, (wrong[i], to, &array, bytes, NULL, &err), "");
        REFUSED(tn_reorder, (&array, to, wrong[i], bytes, NULL, &err), "");
        REFUSED(tn_move, (wrong[i], to, &array, bytes, NULL, &err), "");
        REFUSED(tn_move, (&array, to, wrong[i], bytes, NULL, &err), "");
    }
    REFUSED(tn_cast, (&array, NULL, &array, bytes, TN_LITTLE_ENDIAN, NULL, &err), "");
    REFUSED(tn_cast, (&array, to, &array, NULL, TN_LITTLE_ENDIAN, NULL, &err), "");
    REFUSED(tn_cast, (&array, to, &array, bytes, (tn_byte_order)77, NULL, &err), "");
    const tn_cast_options casts[] = {
        { .size = 0 }, { .size = sizeof *casts, .round = (tn_round)77 }, { .size = sizeof *casts, .nan = (tn_nan)77 },
        { .size = sizeof *casts, .overflow = (tn_overflow)77 },
    };
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        REFUSED(tn_cast, (&array, to, &array, bytes, TN_LITTLE_ENDIAN, &casts[i], &err), "");
        REFUSED(tn_cast_check, (TN_INT8, TN_FLOAT32, &casts[i], &err), "");
    }
    REFUSED(tn_cast_check, ((tn_dtype)9999, TN_FLOAT32, NULL, &err), "");
    REFUSED(tn_cast_check, (TN_FLOAT32, TN_UNKNOWN, NULL, &err), "");
    REFUSED(tn_reorder, (&array, NULL, &array, bytes, NULL, &err), "");
    REFUSED(tn_reorder, (&array, to, &array, NULL, NULL, &err), "");
    REFUSED(tn_reorder, (&array, to, &array, bytes, &(tn_reorder_options){ .size = 0 }, &err), "size");
    REFUSED(tn_reorder, (&array, to, &array, bytes, &(tn_reorder_options){ .size = sizeof(tn_reorder_options),
                         .order = &(uint32_t){ 9 } }, &err), "");
    REFUSED(tn_move, (&array, NULL, &array, bytes, NULL, &err), "");
    REFUSED(tn_move, (&array, to, &array, NULL, NULL, &err), "");
    REFUSED(tn_move, (&array, to, &array, bytes, &(tn_move_options){ .size = 0 }, &err), "size");
    REFUSED(tn_move_shape, (1, NULL, NULL, result, &err), "");
    REFUSED(tn_move_shape, (1, four, NULL, NULL, &err), "");
    REFUSED(tn_move_shape, (65, four, NULL, result, &err), "");
    REFUSED(tn_move_shape, (1, negative, NULL, result, &err), "");
    REFUSED(tn_move_shape, (1, four, &(tn_move_options){ .size = 0 }, result, &err), "size");
    REFUSED(tn_layout_check, (NULL, 1, &err), "");
    REFUSED(tn_layout_check, ("NCHW", UINT32_MAX, &err), "");
    REFUSED(tn_layout_order, (NULL, "NC", order, &err), "");
    REFUSED(tn_layout_order, ("NC", NULL, order, &err), "");
    REFUSED(tn_layout_order, ("NC", "CN", NULL, &err), "");
    REFUSED(tn_layout_strides, (NULL, four, "N", result, &err), "");
    REFUSED(tn_layout_strides, ("N", NULL, "N", result, &err), "");
    REFUSED(tn_layout_strides, ("N", four, NULL, result, &err), "");
    REFUSED(tn_layout_strides, ("N", four, "N", NULL, &err), "");
    const tn_part part = { .role = "data", .array = array, .nbytes = 4, .data = bytes };
    const tn_tensor whole = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .parts = &part, .nparts = 1 },
                    partless = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = four, .nparts = 1 };
    REFUSED(tn_convert_form, (NULL, TN_FORM_COO, NULL, &made, &err), "a tensor");
    REFUSED(tn_convert_form, (&partless, TN_FORM_COO, NULL, &made, &err), "");
    REFUSED(tn_convert_form, (&whole, TN_FORM_COO, NULL, NULL, &err), "a place");
    REFUSED(tn_convert_form, (&whole, (tn_form)77, NULL, &made, &err), "");
    REFUSED(tn_convert_form, (&whole, TN_FORM_COO, &(tn_sparse_options){ .drop = true }, &made, &err), "size");
    REFUSED(tn_convert_form, (&whole, TN_FORM_COO, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                              .duplicates = (tn_duplicates)77 }, &made, &err), "");
    REFUSED(tn_convert_form, (&whole, TN_FORM_COO, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                              .index = (tn_dtype)9999 }, &made, &err), "");
    TAKES(tn_tensor_free, (NULL));
}

static void datatypes_need_texts(void)
{
    tn_datatype *d = NULL, *made = NULL;
    tn_scaled_shapes shapes;
    tn_rotation rotation;
    const tn_affine affine = { .size = sizeof affine, .codes = TN_INT8, .axis = TN_PER_TENSOR, .symmetric = true };
    REFUSED(tn_datatype_parse, (NULL, &made, &err), "");
    REFUSED(tn_datatype_parse, ("mxfp4", NULL, &err), "");
    REFUSED(tn_datatype_load, (NULL, &made, &err), "");
    REFUSED(tn_datatype_load, ("mxfp4", NULL, &err), "");
    REFUSED(tn_datatype_codebook, (NULL, 4, "e8m0_t32", &made, &err), "");
    REFUSED(tn_datatype_codebook, ("{}", 2, NULL, &made, &err), "");
    REFUSED(tn_datatype_codebook, ("{}", 2, "e8m0_t32", NULL, &err), "");
    REFUSED(tn_datatype_affine, (NULL, &made, &err), "");
    REFUSED(tn_datatype_affine, (&affine, NULL, &err), "");
    REFUSED(tn_datatype_affine, (&(tn_affine){ .codes = TN_INT8 }, &made, &err), "size");
    REFUSED(tn_datatype_affine, (&(tn_affine){ .size = sizeof affine, .codes = (tn_dtype)9999 }, &made, &err), "");
    REFUSED(tn_datatype_affine, (&(tn_affine){ .size = sizeof affine, .codes = TN_INT8, .symmetric = true,
                                 .arithmetic = (tn_arithmetic)77 }, &made, &err), "");
    TAKES(tn_datatype_free, (NULL));
    ANSWERS(tn_datatype_text, (NULL), [0] == '\0');
    ANSWERS(tn_datatype_bits, (NULL), == 0);
    CHECK(tn_datatype_affine(&affine, &d, NULL) == TN_OK);
    REFUSED(tn_scaled_shapes_for, (NULL, 1, four, &shapes, &err), "");
    REFUSED(tn_scaled_shapes_for, (d, 1, NULL, &shapes, &err), "");
    REFUSED(tn_scaled_shapes_for, (d, 1, four, NULL, &err), "");
    REFUSED(tn_scaled_shapes_for, (d, 65, four, &shapes, &err), "");
    REFUSED(tn_rotation_parse, (NULL, &rotation, &err), "");
    REFUSED(tn_rotation_parse, ("hadamard4", NULL, &err), "");
    ANSWERS(tn_rotation_format, (NULL, 0, &(tn_rotation){ .size = 4 }), == 9);
    ANSWERS(tn_rotation_format, (NULL, 0, NULL), == 4);
    tn_datatype_free(d);
}

static void quantizing_needs_values_and_room(void)
{
    const float values[4] = { 1, 2, 3, 4 };
    float to[4], scale = 1;
    int8_t codes[4];
    void *parts[] = { codes, &scale }, *empty[] = { NULL, NULL };
    const void *const from[] = { codes, &scale }, *const missing[] = { NULL, NULL };
    tn_datatype *d = NULL;
    const tn_array array = { TN_FLOAT32, 1, four, NULL }, shapeless = { TN_FLOAT32, 1, NULL, NULL },
                   typeless = { (tn_dtype)9999, 1, four, NULL }, deep = { TN_FLOAT32, 65, four, NULL };
    const tn_array *const wrong[] = { NULL, &shapeless, &typeless, &deep };
    CHECK(tn_datatype_parse("int8,per=tensor", &d, NULL) == TN_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED(tn_fake_quantize, (d, wrong[i], values, to, NULL, NULL, &err), "");
        REFUSED(tn_quantize, (d, wrong[i], values, parts, NULL, NULL, &err), "");
        REFUSED(tn_dequantize, (d, wrong[i], from, to, NULL, &err), "");
    }
    REFUSED(tn_fake_quantize, (NULL, &array, values, to, NULL, NULL, &err), "");
    REFUSED(tn_fake_quantize, (d, &array, NULL, to, NULL, NULL, &err), "");
    REFUSED(tn_quantize, (NULL, &array, values, parts, NULL, NULL, &err), "");
    REFUSED(tn_quantize, (d, &array, NULL, parts, NULL, NULL, &err), "");
    REFUSED(tn_quantize, (d, &array, values, NULL, NULL, NULL, &err), "");
    REFUSED(tn_quantize, (d, &array, values, empty, NULL, NULL, &err), "");
    REFUSED(tn_dequantize, (NULL, &array, from, to, NULL, &err), "");
    REFUSED(tn_dequantize, (d, &array, NULL, to, NULL, &err), "");
    REFUSED(tn_dequantize, (d, &array, missing, to, NULL, &err), "");
    REFUSED(tn_dequantize, (d, &array, from, NULL, NULL, &err), "");
    const tn_quantize_options absurd[] = {
        { .size = 0 }, { .size = sizeof *absurd, .round = (tn_round)77 }, { .size = sizeof *absurd, .nan = (tn_nan)77 },
        { .size = sizeof *absurd, .rule = (tn_scale_rule)77 }, { .size = sizeof *absurd, .rotation.size = 77 },
        { .size = sizeof *absurd, .store = (tn_dtype)9999 }, { .size = sizeof *absurd, .percentile = -1 },
    };
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        REFUSED(tn_fake_quantize, (d, &array, values, to, &absurd[i], NULL, &err), "");
        REFUSED(tn_quantize, (d, &array, values, parts, &absurd[i], NULL, &err), "");
    }
    REFUSED(tn_dequantize, (d, &array, from, to, &absurd[0], &err), "size");
    tn_datatype_free(d);
}

static void codes_need_scales(void)
{
    const int64_t one[] = { 1 };
    int8_t codes[4];
    float scale = 1;
    const tn_array shapeless = { TN_INT8, 1, NULL, NULL }, typeless = { (tn_dtype)9999, 1, four, NULL },
                   deep = { TN_INT8, 65, four, NULL };
    const tn_array *const wrong[] = { NULL, &shapeless, &typeless, &deep };
    const tn_scales scales = { TN_PER_TENSOR, &scale, NULL }, unscaled = { TN_PER_TENSOR, NULL, NULL },
                    beyond = { 9, &scale, NULL };
    const tn_array integers = { TN_INT8, 1, four, NULL }, single = { TN_INT8, 1, one, NULL };
    const tn_requantize_options bad_round = { .size = sizeof bad_round, .round = (tn_round)77 },
                                bad_arithmetic = { .size = sizeof bad_arithmetic, .arithmetic = (tn_arithmetic)77 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED(tn_requantize, (wrong[i], codes, &scales, &integers, bytes, &scales, NULL, &err), "");
        REFUSED(tn_requantize, (&integers, codes, &scales, wrong[i], bytes, &scales, NULL, &err), "");
    }
    REFUSED(tn_requantize, (&single, codes, &scales, &integers, bytes, &scales, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, NULL, &scales, &integers, bytes, &scales, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, NULL, &integers, bytes, &scales, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &unscaled, &integers, bytes, &scales, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &beyond, &integers, bytes, &scales, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &scales, &integers, NULL, &scales, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &scales, &integers, bytes, NULL, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &scales, &integers, bytes, &unscaled, NULL, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &scales, &integers, bytes, &scales,
                            &(tn_requantize_options){ .size = 0 }, &err), "size");
    REFUSED(tn_requantize, (&integers, codes, &scales, &integers, bytes, &scales, &bad_round, &err), "");
    REFUSED(tn_requantize, (&integers, codes, &scales, &integers, bytes, &scales, &bad_arithmetic, &err), "");
}

static void buffers_need_memory_that_is_there(void)
{
    tn_buffer *b = NULL, *other = NULL;
    tn_exported out = { .type = TN_HANDLE_NONE, .fd = -1 };
    struct DLManagedTensorVersioned *managed;
    tn_dlpack_array taken;
    const tn_array array = { TN_UINT8, 1, four, NULL }, shapeless = { TN_UINT8, 1, NULL, NULL };
    tn_file *f = some_file();
    const tn_part *part = tn_file_tensor(f, 0)->parts;
    const tn_buffer_options absurd[] = {
        { .size = 0 }, { .size = sizeof *absurd, .flags = 1u << 31 },
        { .size = sizeof *absurd, .alignment = 3 }, { .size = sizeof *absurd, .alignment = UINT64_C(1) << 63 },
    };
    REFUSED(tn_buffer_new, (4, NULL, NULL, &err), "a place for the buffer");
    REFUSED(tn_buffer_new, (0, NULL, &b, &err), "");
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
        REFUSED(tn_buffer_new, (4, &absurd[i], &b, &err), "");
    const tn_buffer_options unknown = { .size = sizeof unknown, .type = (tn_handle_type)77 };
    ANSWERS(tn_buffer_new, (4, &unknown, &b, NULL), == TN_ERR_UNSUPPORTED);
    REFUSED(tn_buffer_wrap, (NULL, 4, true, NULL, NULL, &b, &err), "");
    REFUSED(tn_buffer_wrap, (&out, 4, true, NULL, NULL, NULL, &err), "");
    REFUSED(tn_buffer_of_part, (NULL, part, &b, &err), "");
    REFUSED(tn_buffer_of_part, (f, NULL, &b, &err), "");
    REFUSED(tn_buffer_of_part, (f, part, NULL, &err), "");
    ANSWERS(tn_buffer_ref, (NULL), == NULL);
    TAKES(tn_buffer_unref, (NULL));
    ANSWERS(tn_buffer_size, (NULL), == 0);
    ANSWERS(tn_buffer_flags, (NULL), == 0);
    ANSWERS(tn_buffer_data, (NULL), == NULL);
    REFUSED(tn_buffer_map, (NULL, &err), "a buffer");
    TAKES(tn_buffer_unmap, (NULL));
    REFUSED(tn_buffer_freeze, (NULL, &err), "a buffer");
    REFUSED(tn_buffer_begin, (NULL, true, &err), "a buffer");
    REFUSED(tn_buffer_end, (NULL, true, &err), "a buffer");
    ANSWERS(tn_buffer_handle_of, (NULL), .type == TN_HANDLE_NONE);
    ANSWERS(tn_buffer_mapping_of, (NULL), .present == false);
    REFUSED(tn_buffer_export, (NULL, true, &out, &err), "a buffer");
    CHECK(tn_buffer_new(4, NULL, &b, NULL) == TN_OK);
    REFUSED(tn_buffer_export, (b, true, NULL, &err), "");
    TAKES(tn_exported_close, (NULL));
    REFUSED(tn_buffer_import, (NULL, false, &other, &err), "");
    REFUSED(tn_buffer_import, (&out, false, NULL, &err), "");
    out.type = (tn_handle_type)77;
    ANSWERS(tn_buffer_import, (&out, false, &other, NULL), != TN_OK);
    ANSWERS(tn_buffer_broken, (NULL), == false);
    REFUSED(tn_dlpack_export, (NULL, b, 0, &managed, &err), "");
    REFUSED(tn_dlpack_export, (&shapeless, b, 0, &managed, &err), "");
    REFUSED(tn_dlpack_export, (&array, NULL, 0, &managed, &err), "");
    REFUSED(tn_dlpack_export, (&array, b, 0, NULL, &err), "");
    REFUSED(tn_dlpack_export, (&array, b, UINT64_MAX, &managed, &err), "");
    REFUSED(tn_dlpack_import, (NULL, &taken, &err), "");
    CHECK(tn_dlpack_export(&array, b, 0, &managed, NULL) == TN_OK);
    REFUSED(tn_dlpack_import, (managed, NULL, &err), "");
    CHECK(tn_dlpack_import(managed, &taken, NULL) == TN_OK);
    tn_buffer_unref(taken.buffer);
    tn_buffer_unref(b);
    tn_close(f);
}

/* Confining is for good: a child does it. */
static void confine_nowhere(void)
{
    note("tn_attach_confine");
    pid_t child = fork();
    if (child == 0) {
        tn_status status = tn_attach_confine(NULL, false, NULL, NULL);
        _exit(status == TN_OK || status == TN_ERR_UNSUPPORTED ? 0 : 1);
    }
    int state = 1;
    CHECK(child > 0 && waitpid(child, &state, 0) == child && state == 0);
}

static void sharing_needs_paths_and_what_is_shared(void)
{
    tn_offer *offer = NULL;
    tn_attachment *attached = NULL;
    tn_buffer *b = NULL;
    tn_file *f = some_file();
    const tn_tensor *t = tn_file_tensor(f, 0);
    const char *path = in_folder("s").text;
    const size_t size = sizeof(tn_offer_options);
    REFUSED(tn_share_offer, (NULL, NULL, &offer, &err), "a path");
    REFUSED(tn_share_offer, (path, NULL, NULL, &err), "");
    REFUSED(tn_share_offer, (path, &(tn_offer_options){ .max_clients = 1 }, &offer, &err), "size");
    REFUSED(tn_share_offer, (path, &(tn_offer_options){ .size = size, .nuids = 1 }, &offer, &err), "");
    REFUSED(tn_share_offer, (path, &(tn_offer_options){ .size = size, .ngids = 1 }, &offer, &err), "");
    CHECK(tn_share_offer(path, NULL, &offer, NULL) == TN_OK && tn_buffer_new(4, NULL, &b, NULL) == TN_OK);
    REFUSED(tn_offer_file, (NULL, "f", f, false, &err), "");
    REFUSED(tn_offer_file, (offer, NULL, f, false, &err), "");
    REFUSED(tn_offer_file, (offer, "f", NULL, false, &err), "");
    REFUSED(tn_offer_tensor, (NULL, t, b, 0, false, &err), "");
    REFUSED(tn_offer_tensor, (offer, NULL, b, 0, false, &err), "");
    REFUSED(tn_offer_tensor, (offer, t, NULL, 0, false, &err), "");
    REFUSED(tn_offer_tensor, (offer, t, b, UINT64_MAX, false, &err), "");
    REFUSED(tn_offer_confine, (NULL, NULL, &err), "");
    REFUSED(tn_offer_run, (NULL, &err), "");
    TAKES(tn_offer_stop, (NULL));
    tn_offer_close(offer);
    TAKES(tn_offer_close, (NULL));
    REFUSED(tn_share_attach, (NULL, NULL, &attached, &err), "a path");
    REFUSED(tn_share_attach, (path, NULL, NULL, &err), "");
    REFUSED(tn_share_attach, (path, &(tn_attach_options){ .in_place = true }, &attached, &err), "size");
    REFUSED(tn_share_attach, (path, &(tn_attach_options){ .size = sizeof(tn_attach_options), .nuids = 1 }, &attached,
                              &err), "");
    ANSWERS(tn_attached_count, (NULL), == 0);
    ANSWERS(tn_attached_at, (NULL, 0), == NULL);
    ANSWERS(tn_attached_withheld, (NULL), == 0);
    TAKES(tn_detach, (NULL));
    confine_nowhere();
    tn_buffer_unref(b);
    tn_close(f);
}

static void descriptors_need_descriptors(void)
{
    static const char text[] = "{\"shape\":{\"dimensions\":[2]},\"dtype\":{\"base_type\":\"FP32\"}}";
    tn_descriptors *set = NULL, *bound = NULL;
    char *json;
    size_t n;
    uint64_t most;
    tn_wia_constraint constraint;
    REFUSED(tn_descriptors_parse, (NULL, 4, &set, &err), "");
    REFUSED(tn_descriptors_parse, (text, sizeof text - 1, NULL, &err), "");
    CHECK(tn_descriptors_parse(text, sizeof text - 1, &set, NULL) == TN_OK);
    ANSWERS(tn_descriptors_count, (NULL), == 0);
    ANSWERS(tn_descriptors_at, (NULL, 0), == NULL);
    ANSWERS(tn_descriptors_at, (set, SIZE_MAX), == NULL);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    const tn_descriptor *const several[] = { d, NULL };
    REFUSED(tn_descriptors_write, (NULL, 1, false, &json, &n, &err), "descriptors");
    REFUSED(tn_descriptors_write, (d, 1, false, NULL, &n, &err), "");
    REFUSED(tn_descriptors_write, (d, 1, false, &json, NULL, &err), "");
    REFUSED(tn_descriptors_save, (NULL, 1, "x", NULL, NULL, &err), "descriptors");
    REFUSED(tn_descriptors_save, (d, 1, NULL, NULL, NULL, &err), "a path");
    REFUSED(tn_descriptors_save, (d, 1, "x", &(tn_save_options){ .list = true }, NULL, &err), "size");
    REFUSED(tn_descriptor_check, (NULL, NULL, &n, &err), "a descriptor");
    REFUSED(tn_descriptor_check, (d, &(tn_check_options){ .strict = true }, &n, &err), "size");
    REFUSED(tn_descriptor_check, (d, NULL, NULL, &err), "a place");
    ANSWERS(tn_descriptor_is_fragment, (NULL), == false);
    ANSWERS(tn_descriptor_level, (NULL, NULL), == 0);
    REFUSED(tn_descriptor_bind, (NULL, NULL, 0, &bound, &err), "a descriptor");
    REFUSED(tn_descriptor_bind, (d, NULL, 1, &bound, &err), "");
    REFUSED(tn_descriptor_bind, (d, &(tn_wia_binding){ NULL, 1 }, 1, &bound, &err), "");
    REFUSED(tn_descriptor_bind, (d, NULL, 0, NULL, &err), "");
    REFUSED(tn_symbols_unify, (NULL, 1, &constraint, 1, &n, &err), "descriptors");
    REFUSED(tn_symbols_unify, (several, 2, &constraint, 1, &n, &err), "descriptors");
    REFUSED(tn_symbols_unify, (several, 1, NULL, 1, &n, &err), "");
    REFUSED(tn_symbols_unify, (several, 1, &constraint, 1, NULL, &err), "");
    REFUSED(tn_descriptor_max_bytes, (NULL, &most, &err), "a descriptor");
    REFUSED(tn_descriptor_max_bytes, (d, NULL, &err), "");
    tn_descriptors_free(set);
    TAKES(tn_descriptors_free, (NULL));
}

/* The same of each version of MLI. */
#define MLI_TENSORS(v)                                                                          \
    do {                                                                                        \
        tn_mli##v##_tensor good = { .rank = 1, .shape = { 4 } }, out, bad = { .rank = 77 };    \
        uint32_t n;                                                                             \
        int32_t value;                                                                          \
        ANSWERS(tn_mli##v##_check, (NULL), == TN_MLI_BAD_TENSOR);                               \
        ANSWERS(tn_mli##v##_check, (&bad), == TN_MLI_BAD_TENSOR);                               \
        ANSWERS(tn_mli##v##_element_size, (77), == 0);                                          \
        ANSWERS(tn_mli##v##_count, (NULL, 0), == 0);                                            \
        ANSWERS(tn_mli##v##_count, (&bad, 0), == 0);                                            \
        ANSWERS(tn_mli##v##_count, (&good, 77), == 0);                                          \
        ANSWERS(tn_mli##v##_bytes, (NULL, &n), == TN_MLI_BAD_TENSOR);                           \
        ANSWERS(tn_mli##v##_bytes, (&good, NULL), != TN_MLI_OK);                                \
        ANSWERS(tn_mli##v##_point_to_subtensor, (NULL, &point, &out), == TN_MLI_BAD_TENSOR);    \
        ANSWERS(tn_mli##v##_point_to_subtensor, (&good, NULL, &out), != TN_MLI_OK);             \
        ANSWERS(tn_mli##v##_point_to_subtensor, (&good, &point, NULL), != TN_MLI_OK);           \
        ANSWERS(tn_mli##v##_create_subtensor, (NULL, &cut, &out), == TN_MLI_BAD_TENSOR);        \
        ANSWERS(tn_mli##v##_create_subtensor, (&good, NULL, &out), != TN_MLI_OK);               \
        ANSWERS(tn_mli##v##_create_subtensor, (&good, &cut, NULL), != TN_MLI_OK);               \
        ANSWERS(tn_mli##v##_scalar_get, (NULL, &value), == TN_MLI_BAD_TENSOR);                  \
        ANSWERS(tn_mli##v##_scalar_get, (&good, NULL), != TN_MLI_OK);                           \
        ANSWERS(tn_mli##v##_scalar_set, (NULL, 1), == TN_MLI_BAD_TENSOR);                       \
    } while (0)

static void firmware_needs_tensors(void)
{
    const tn_mli_point point = { .coord_num = 77 };
    const tn_mli_cut cut = { .sub_tensor_rank = 77 };
    int8_t narrow;
    int16_t wide;
    MLI_TENSORS(10);
    MLI_TENSORS(11);
    MLI_TENSORS(20);
    ANSWERS(tn_mli_float_to_fx8, (1, 0, TN_FX_HALF_AWAY, NULL), == TN_MLI_ARGUMENT_ERROR);
    ANSWERS(tn_mli_float_to_fx16, (1, 0, TN_FX_HALF_AWAY, NULL), == TN_MLI_ARGUMENT_ERROR);
    ANSWERS(tn_mli_float_to_fx8, (NAN, INT32_MAX, TN_FX_HALF_AWAY, &narrow), == TN_MLI_ARGUMENT_ERROR && narrow == 0);
    ANSWERS(tn_mli_float_to_fx16, (NAN, INT32_MIN, TN_FX_HALF_UP, &wide), == TN_MLI_ARGUMENT_ERROR && wide == 0);
    ANSWERS(tn_mli_fx_to_float, (1, INT32_MIN), == INFINITY);
    ANSWERS(tn_mli_fx_to_float, (1, INT32_MAX), == 0);
    ANSWERS(tn_mli_fx_to_fx8, (1, INT32_MIN, INT32_MAX, TN_FX_HALF_UP), == INT8_MAX);
    ANSWERS(tn_mli_fx_to_fx16, (-1, INT32_MIN, INT32_MAX, TN_FX_HALF_EVEN), == INT16_MIN);
}

/* A function that is added needs a call here. */
static void every_public_function_is_called_with_something_wrong(void)
{
    char line[200];
    size_t symbols = 0;
    FILE *list = fopen(TEST_GOLDEN "/../structure/symbols.txt", "r");
    assert_non_null(list);
    TAKES(tn_abandon_files, ());        /* nothing is published after it */
    while (fgets(line, sizeof line, list)) {
        bool found = false;
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < ncalled && !found; i++)
            found = strcmp(called[i], line) == 0;
        if (!found)
            print_error("%s is not called\n", line);
        symbols += found ? 1 : 1000;
    }
    fclose(list);
    CHECK(symbols > 100 && symbols < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(opening_needs_paths_and_a_place),
        IN_FOLDER(no_file_has_nothing),
        IN_FOLDER(reading_needs_all_of_it),
        IN_FOLDER(views_need_tensors_and_room),
        IN_FOLDER(operations_need_files),
        IN_FOLDER(conversions_need_rules_and_options_that_are_there),
        IN_FOLDER(plans_need_pieces_that_are_there),
        IN_FOLDER(a_writer_needs_names_shapes_and_data),
        IN_FOLDER(an_array_is_added_in_one_call),
        TEST(numbers_that_name_nothing_are_answered),
        IN_FOLDER(arrays_need_arrays),
        TEST(datatypes_need_texts),
        TEST(quantizing_needs_values_and_room),
        TEST(codes_need_scales),
        IN_FOLDER(buffers_need_memory_that_is_there),
        IN_FOLDER(sharing_needs_paths_and_what_is_shared),
        IN_FOLDER(descriptors_need_descriptors),
        TEST(firmware_needs_tensors),
        TEST(every_public_function_is_called_with_something_wrong),      /* the last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
