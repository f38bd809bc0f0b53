/* The compliance run: what it reports, that it cleans up, and that its trials
 * notice a library that does the wrong thing. */
#include "support.h"

#undef fail                     /* cmocka's: the tool has a function of that name */
#include "compliance.h"

#include <tenon/tenon.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a library with one fault at a time, for the trials ---- */

static enum {
    SOUND, CAST_TO_ZERO, REORDER_NOTHING, READ_ONE_BIT_WRONG, SCALES_HALVED, BIND_ANYTHING, CHECK_NOTHING,
    REFORM_ONE_BIT_WRONG, OFFER_ALL_FOR_WRITING, ATTACH_TO_A_COPY, DIE_WHILE_ATTACHING
} fault;

static tn_status faulty_cast(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                             tn_byte_order order, const tn_cast_options *options, tn_error *err)
{
    uint64_t nbytes = 0;
    tn_status status = tn_cast(dst, dst_data, src, src_data, order, options, err);
    if (fault == CAST_TO_ZERO && tn_array_nbytes(dst, &nbytes) == TN_OK)
        memset(dst_data, 0, nbytes);
    return status;
}

static tn_status faulty_reorder(const tn_array *dst, void *dst_data, const tn_array *src,
                                const void *src_data, const tn_reorder_options *options, tn_error *err)
{
    uint64_t nbytes = 0;
    tn_status status = tn_reorder(dst, dst_data, src, src_data, options, err);
    if (fault == REORDER_NOTHING && tn_array_nbytes(dst, &nbytes) == TN_OK)
        memcpy(dst_data, src_data, nbytes);
    return status;
}

static tn_status faulty_read(const tn_file *file, const tn_part *part, void *buffer, size_t size,
                             tn_error *err)
{
    tn_status status = tn_part_read(file, part, buffer, size, err);
    if (fault == READ_ONE_BIT_WRONG && size > 0)
        ((uint8_t *)buffer)[size - 1] ^= 0x40;
    return status;
}

static tn_status faulty_quantize(const tn_datatype *datatype, const tn_array *array, const void *src,
                                 void *const *parts, const tn_quantize_options *options,
                                 tn_quantize_stats *report, tn_error *err)
{
    tn_status status = tn_quantize(datatype, array, src, parts, options, report, err);
    if (fault == SCALES_HALVED)
        *(float *)parts[1] /= 2;        /* too fine for the codes that were made with it */
    return status;
}

static tn_status faulty_bind(const tn_descriptor *d, const tn_wia_binding *bindings, size_t n,
                             tn_descriptors **bound, tn_error *err)
{
    static const tn_wia_binding good[] = { { "batch", 32 }, { "sequence_length", 128 } };
    return fault == BIND_ANYTHING ? tn_descriptor_bind(d, good, 2, bound, err)
                                  : tn_descriptor_bind(d, bindings, n, bound, err);
}

static tn_status faulty_check(const tn_descriptor *d, const tn_check_options *options, size_t *wrong,
                              tn_error *err)
{
    tn_status status = tn_descriptor_check(d, options, wrong, err);
    if (fault == CHECK_NOTHING)
        *wrong = 0;
    return status;
}

static tn_status faulty_reform(const tn_tensor *tensor, tn_form form, const tn_sparse_options *options,
                               tn_tensor **made, tn_error *err)
{
    tn_status status = tn_convert_form(tensor, form, options, made, err);
    if (fault == REFORM_ONE_BIT_WRONG && !status)
        memset((void *)(uintptr_t)(*made)->parts[0].data, 0x40, 1);
    return status;
}

static tn_status faulty_offer_tensor(tn_offer *offer, const tn_tensor *tensor, tn_buffer *buffer,
                                     uint64_t offset, bool writable, tn_error *err)
{
    return tn_offer_tensor(offer, tensor, buffer, offset, writable || fault == OFFER_ALL_FOR_WRITING, err);
}

/* What is attached then looks as it should, until somebody writes. */
static void part_from_the_other_process(const tn_attached *item)
{
    size_t n = (size_t)tn_buffer_size(item->buffer);
    void *copy = malloc(n), *data = tn_buffer_data(item->buffer);
    memcpy(copy, data, n);
    CHECK(mmap(data, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == data);
    memcpy(data, copy, n);
    free(copy);
}

static tn_status faulty_attach(const char *path, const tn_attach_options *options, tn_attachment **attachment,
                               tn_error *err)
{
    tn_status status = tn_share_attach(path, options, attachment, err);
    if (!status && fault == ATTACH_TO_A_COPY)
        part_from_the_other_process(tn_attached_at(*attachment, 0));
    if (fault == DIE_WHILE_ATTACHING)
        raise(SIGKILL);
    return status;
}

/* The trials, with that library. */
#define tn_cast             faulty_cast
#define tn_reorder          faulty_reorder
#define tn_part_read        faulty_read
#define tn_quantize         faulty_quantize
#define tn_descriptor_bind  faulty_bind
#define tn_descriptor_check faulty_check
#define tn_convert_form           faulty_reform
#define tn_offer_tensor     faulty_offer_tensor
#define tn_share_attach     faulty_attach
#include "types.c"
#undef VALUES
#include "descriptors.c"
#include "sharing.c"
#undef tn_cast
#undef tn_reorder
#undef tn_part_read
#undef tn_choose_scales
#undef tn_descriptor_bind
#undef tn_descriptor_check
#undef tn_convert_form
#undef tn_offer_tensor
#undef tn_share_attach

/* ---- a folder of our own ---- */

static char folder[] = "/tmp/tenon-test-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && setenv("TMPDIR", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);       /* fails if anything is left in it */
}

static bool is_empty(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n == 2;              /* . and .. */
}

/* ---- the run ---- */

typedef struct log {
    int      count, last_level, types;
    unsigned missed;
    bool     sparse, sharing;
} log_of_run;

static void note(void *context, const compliance *r)
{
    log_of_run *l = context;
    CHECK(r->level >= l->last_level && r->level <= 3);
    CHECK(r->requirement[0] && r->evidence[0]);
    l->count++;
    l->last_level = r->level;
    l->types +=
        strncmp(r->requirement, "Support ", 8) == 0 && tn_dtype_parse(r->requirement + 8) != TN_UNKNOWN;
    l->missed += !r->met;
    l->sparse |= strcmp(r->requirement, "Sparse tensors") == 0 && r->met;
    l->sharing |= strcmp(r->requirement, "Zero-copy sharing") == 0 && r->met;
}

static void levels_1_and_2_are_reached(void)
{
    for (int level = 1; level <= 2; level++) {
        log_of_run l = { 0 };
        int reached = -1;
        CHECK(compliance_run(level, note, &l, &reached, NULL) == TN_OK);
        CHECK(reached == level && l.last_level == level);
        CHECK(l.missed == 0);
        CHECK(l.types == (level == 1 ? 2 : 4));
    }
}

static void level_3_is_reached_with_all_17_types(void)
{
    log_of_run l = { 0 };
    int reached = -1;
    CHECK(compliance_run(3, note, &l, &reached, NULL) == TN_OK);
    CHECK(l.types == 17);
    CHECK(l.missed == 0);
    CHECK(l.sparse && l.sharing);
    CHECK(reached == 3);
}

static void nothing_is_left_in_the_temporary_folder(void)
{
    int reached;
    CHECK(compliance_run(3, NULL, NULL, &reached, NULL) == TN_OK);
    CHECK(is_empty(folder));
}

static void a_level_that_is_none_is_refused(void)
{
    static const int levels[] = { 0, 4, -1 };
    int reached = 7;
    tn_error err;
    for (size_t i = 0; i < 3; i++)
        CHECK(compliance_run(levels[i], NULL, NULL, &reached, &err) == TN_ERR_ARGUMENT &&
              strstr(line_of(&err), "1 to 3"));
    CHECK(reached == 7);
}

static void a_folder_that_cannot_be_made_is_an_error_of_the_system(void)
{
    int reached = 7;
    tn_error err;
    setenv("TMPDIR", "/tmp/tenon-test-nowhere", 1);
    CHECK(compliance_run(1, NULL, NULL, &reached, &err) == TN_ERR_IO);
    CHECK(strstr(line_of(&err), "/tmp/tenon-test-nowhere") && reached == 7);
    setenv("TMPDIR", folder, 1);
}

static void files_that_cannot_be_written_are_too_and_leave_nothing(void)
{
    struct rlimit old, small;
    int reached = 7;
    tn_error err;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    for (rlim_t most = 0; most <= 4096; most += 1024) {
        small = (struct rlimit){ .rlim_cur = most, .rlim_max = old.rlim_max };
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        tn_status status = compliance_run(3, NULL, NULL, &reached, &err);
        CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
        CHECK(status == TN_ERR_IO && err.text[0]);
        CHECK(is_empty(folder));
    }
}

/* ---- trials of a faulty library ---- */

static tn_status try_it(trial_fn try, tn_dtype dtype)
{
    char own[sizeof folder + 8];
    tn_error err = { .status = TN_OK };
    snprintf(own, sizeof own, "%s/trial", folder);
    CHECK(mkdir(own, 0700) == 0);
    trial t = { .folder = own, .dtype = dtype };
    tn_status status = try(&t, &err);
    CHECK(status == TN_OK ? t.evidence[0] : err.text[0]);
    DIR *d = opendir(own);
    for (const struct dirent *entry; (entry = readdir(d));)
        unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    CHECK(rmdir(own) == 0);
    return status;
}

static void trials_pass_with_the_library_as_it_is(void)
{
    fault = SOUND;
    CHECK(try_it(try_type, TN_FLOAT32) == TN_OK);
    CHECK(try_it(try_type, TN_UINT4) == TN_OK);
    CHECK(try_it(try_one_layout, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_both_layouts, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_all_layouts, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_alignment, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_strides, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_quantization, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_sparse, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_sharing, TN_UNKNOWN) == TN_OK);
    CHECK(try_it(try_dynamic_shapes, TN_UNKNOWN) == TN_OK);
}

static void a_cast_that_loses_the_values_is_noticed(void)
{
    fault = CAST_TO_ZERO;
    for (tn_dtype type = TN_UNKNOWN + 1; type < TN_DTYPE_COUNT; type++)
        if (tn_dtype_get(type)->wia)
            CHECK(try_it(try_type, type) == TN_ERR_CORRUPT);
}

static void a_reorder_that_only_copies_is_noticed(void)
{
    fault = REORDER_NOTHING;
    CHECK(try_it(try_one_layout, TN_UNKNOWN) == TN_ERR_CORRUPT);
    CHECK(try_it(try_both_layouts, TN_UNKNOWN) == TN_ERR_CORRUPT);
    CHECK(try_it(try_all_layouts, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void one_wrong_bit_read_is_noticed(void)
{
    fault = READ_ONE_BIT_WRONG;
    for (tn_dtype type = TN_UNKNOWN + 1; type < TN_DTYPE_COUNT; type++)
        if (tn_dtype_get(type)->wia)
            CHECK(try_it(try_type, type) == TN_ERR_CORRUPT);
    CHECK(try_it(try_strides, TN_UNKNOWN) == TN_ERR_CORRUPT);
    CHECK(try_it(try_quantization, TN_UNKNOWN) == TN_ERR_CORRUPT);
    CHECK(try_it(try_sparse, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void scales_that_do_not_fit_are_noticed(void)
{
    fault = SCALES_HALVED;
    CHECK(try_it(try_quantization, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void symbols_that_take_any_value_are_noticed(void)
{
    fault = BIND_ANYTHING;
    CHECK(try_it(try_dynamic_shapes, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void a_check_that_finds_nothing_is_noticed(void)
{
    fault = CHECK_NOTHING;
    CHECK(try_it(try_sparse, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void entries_that_change_with_the_form_are_noticed(void)
{
    fault = REFORM_ONE_BIT_WRONG;
    CHECK(try_it(try_sparse, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void memory_that_is_not_the_same_is_noticed(void)
{
    fault = ATTACH_TO_A_COPY;
    CHECK(try_it(try_sharing, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void memory_that_should_not_be_written_but_can_be_is_noticed(void)
{
    fault = OFFER_ALL_FOR_WRITING;
    CHECK(try_it(try_sharing, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void a_second_process_that_dies_is_noticed(void)
{
    fault = DIE_WHILE_ATTACHING;
    CHECK(try_it(try_sharing, TN_UNKNOWN) == TN_ERR_CORRUPT);
}

static void sharing_is_tried_in_a_folder_with_a_long_name_and_leaves_no_descriptor(void)
{
    char where[sizeof folder + 200], name[160];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(where, sizeof where, "%s/%s", folder, name);
    int before = dup(0), reached = 0;
    fault = SOUND;
    CHECK(before >= 0 && close(before) == 0);
    CHECK(mkdir(where, 0700) == 0 && setenv("TMPDIR", where, 1) == 0);
    CHECK(compliance_run(3, NULL, NULL, &reached, NULL) == TN_OK && reached == 3);
    CHECK(rmdir(where) == 0 && setenv("TMPDIR", folder, 1) == 0);
    int after = dup(0);
    CHECK(after == before && close(after) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(levels_1_and_2_are_reached),
        TEST(level_3_is_reached_with_all_17_types),
        TEST(nothing_is_left_in_the_temporary_folder),
        TEST(a_level_that_is_none_is_refused),
        TEST(a_folder_that_cannot_be_made_is_an_error_of_the_system),
        TEST(files_that_cannot_be_written_are_too_and_leave_nothing),
        TEST(trials_pass_with_the_library_as_it_is),
        TEST(a_cast_that_loses_the_values_is_noticed),
        TEST(a_reorder_that_only_copies_is_noticed),
        TEST(one_wrong_bit_read_is_noticed),
        TEST(scales_that_do_not_fit_are_noticed),
        TEST(symbols_that_take_any_value_are_noticed),
        TEST(a_check_that_finds_nothing_is_noticed),
        TEST(entries_that_change_with_the_form_are_noticed),
        TEST(memory_that_is_not_the_same_is_noticed),
        TEST(memory_that_should_not_be_written_but_can_be_is_noticed),
        TEST(a_second_process_that_dies_is_noticed),
        TEST(sharing_is_tried_in_a_folder_with_a_long_name_and_leaves_no_descriptor),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
