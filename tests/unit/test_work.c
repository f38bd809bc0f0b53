/* Works that several handles share: the bytes of one conversion, and nothing counts that is not on disk. */
#include "support.h"

#include "bytes/sink_calls.h"
#include "file_systems.h"
#include "pipeline/work.h"
#include "convert.h"
#include "files.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <tenon/work.h>

enum { ROWS = 64, COLUMNS = 64, PIECE = 8192, TENSORS = 12 };

static float values[ROWS * COLUMNS];
#define IN_WORK(test) { #test, (CMUnitTestFunction)(void (*)(void))test, keep_calls, restore_calls, NULL }

static void write_input(void)
{
    char names[TENSORS][8];
    simple all[TENSORS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i * 2654435761u % 4096) / 64 - 32;
    for (size_t i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "t%zu", i);
        all[i] = (simple){ .name = names[i], .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLUMNS - (int)i },
                           .data = values };
    }
    write_file("in.zt", (tn_create_options){ .replace = true }, all, TENSORS);
    must_convert("in.zt", "whole.zt", (wish){ .cast = "bf16" });
}

static tn_work *make_work(const tn_file *f)
{
    const tn_rule rule = { "cast", "bf16" };
    const tn_create_options create = { .size = sizeof create, .jobs = 2 };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                                   .piece_size = PIECE, .cast_defaults = NULL };
    tn_error err = { .text = "" };
    tn_work *work = NULL;
    if (tn_work_make(f, in_folder("out.zt").text, &o, NULL, &work, &err))
        fail_msg("%s", line_of(&err));
    return work;
}

static size_t count_files(const char *part)
{
    size_t n = 0;
    DIR *dir = opendir(in_folder("out.zt.tenon/pieces").text);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strstr(entry->d_name, part) != NULL;
    closedir(dir);
    return n;
}

static void *run_and_finish(void *context)
{
    tn_file *f = open_file("in.zt");
    tn_work *work = make_work(f);
    tn_error *err = context;
    if (tn_work_run_all(work, true, err) == TN_OK)
        (void)tn_work_finish(work, NULL, err);
    tn_work_close(work);
    tn_close(f);
    return NULL;
}

static void threads_of_one_process_share_a_work_as_processes_do(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    tn_error errors[THREADS];
    write_input();
    memset(errors, 0, sizeof errors);
    tn_file *f = open_file("in.zt");
    tn_work *first = make_work(f);          /* holds the folder until all have joined */
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run_and_finish, &errors[i]) == 0);
    tn_work_close(first);
    tn_close(f);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++)       /* one that came when all was done is told that the output is there */
        if (errors[i].status && errors[i].status != TN_ERR_EXISTS)
            fail_msg("%s", line_of(&errors[i]));
    check_same_files(in_folder("out.zt").text, in_folder("whole.zt").text);
}

/* ---- what is not on disk ---- */

static atomic_int syncs_left;

static int failing_fsync(int fd)
{
    if (atomic_fetch_sub(&syncs_left, 1) > 0)
        return real_calls.fsync(fd);
    errno = EIO;
    return -1;
}

static void pieces_that_cannot_be_synced_do_not_count_and_are_made_again(void)
{
    tn_error err = { .text = "" };
    write_input();
    tn_file *f = open_file("in.zt");
    for (int left = 0; left < 3; left++) {
        tn_work *work = make_work(f);
        size_t pieces = tn_plan_count(tn_work_plan(work));
        CHECK(pieces > 5);
        atomic_store(&syncs_left, left);
        tn_sink_calls.fsync = failing_fsync;
        check_status(tn_work_run_all(work, false, &err), &err, TN_ERR_IO, "Input/output error");
        tn_sink_calls = real_calls;
        CHECK(count_files(".made-") == 0 && count_files(".failed") == 1 && count_files(".done") < pieces);
        CHECK((count_files(".done") > 0) == (left > 0));
        tn_work_close(work);
        work = make_work(f);
        if (tn_work_run_all(work, true, &err) || tn_work_finish(work, NULL, &err))
            fail_msg("%s", line_of(&err));
        tn_work_close(work);
        check_same_files(in_folder("out.zt").text, in_folder("whole.zt").text);
        CHECK(unlink(in_folder("out.zt").text) == 0);
    }
    tn_close(f);
}

static void a_piece_that_is_run_alone_is_on_disk_when_that_returns(void)
{
    tn_error err = { .text = "" };
    tn_work_outcome outcome;
    write_input();
    tn_file *f = open_file("in.zt");
    tn_work *work = make_work(f);
    CHECK(tn_work_run(work, 2, &outcome, &err) == TN_OK && outcome == TN_WORK_MADE);
    CHECK(count_files(".done") == 1 && count_files(".made-") == 0);
    CHECK(tn_work_run(work, 2, &outcome, &err) == TN_OK && outcome == TN_WORK_WAS_MADE);
    atomic_store(&syncs_left, 0);
    tn_sink_calls.fsync = failing_fsync;
    check_status(tn_work_run(work, 3, &outcome, &err), &err, TN_ERR_IO, "Input/output error");
    tn_sink_calls = real_calls;
    CHECK(count_files(".done") == 1 && count_files(".made-") == 0);
    CHECK(tn_work_run(work, 3, &outcome, &err) == TN_OK && outcome == TN_WORK_MADE);
    tn_work_close(work);
    CHECK(tn_work_abandon(in_folder("out.zt.tenon").text, &err) == TN_OK);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORK(threads_of_one_process_share_a_work_as_processes_do),
        IN_WORK(pieces_that_cannot_be_synced_do_not_count_and_are_made_again),
        IN_WORK(a_piece_that_is_run_alone_is_on_disk_when_that_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
