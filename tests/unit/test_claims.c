/* Pieces that processes claim by locks, and the files that they leave for each other. */
#include "support.h"

#include "bytes/claims.h"
#include "bytes/sink_calls.h"
#include "file_systems.h"
#include "bytes/source.h"
#include "folder.h"
#include "make.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int work = -1;

static int set_up(void **state)
{
    keep_calls(state);
    CHECK(mkdir(in_folder("pieces").text, 0700) == 0 && mkdir(in_folder("processes").text, 0700) == 0);
    put_file("plan.json", "{}");
    work = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return work < 0;
}

static int tear_down(void **state)
{
    close(work);
    return restore_calls(state);
}

#define IN_WORK(test) { #test, (CMUnitTestFunction)(void (*)(void))test, set_up, tear_down, NULL }

static tn_claims joined(void)
{
    tn_claims c;
    tn_error err = { .text = "" };
    if (tn_claims_open(&c, work, &err) || tn_claims_join(&c, &err))
        fail_msg("%s", line_of(&err));
    return c;
}

static tn_claim claim(tn_claims *c, size_t piece, int *lock)
{
    tn_claim got = TN_CLAIM_HELD;
    tn_error err = { .text = "" };
    if (tn_claim_piece(c, piece, &got, lock, &err))
        fail_msg("%s", line_of(&err));
    CHECK((got == TN_CLAIM_MINE) == (*lock >= 0));
    return got;
}

static void record(const tn_claims *c, size_t piece)
{
    CHECK(tn_claim_put(c, piece, ".done", (tn_text){ "made", 4 }, NULL) == TN_OK);
}

/* ---- claiming ---- */

static void a_piece_belongs_to_one_until_it_is_released_or_made(void)
{
    tn_claims a = joined(), b = joined();
    tn_process holder;
    int lock, other;
    assert_int_equal(claim(&a, 7, &lock), TN_CLAIM_MINE);
    assert_int_equal(claim(&b, 7, &other), TN_CLAIM_HELD);
    CHECK(tn_claim_is_held(&b, 7) && !tn_claim_is_held(&b, 8));
    CHECK(tn_claim_holder(&b, 7, &holder) && holder.pid == (uint64_t)getpid());
    tn_claim_release(lock);
    CHECK(!tn_claim_is_held(&b, 7));
    assert_int_equal(claim(&b, 7, &other), TN_CLAIM_MINE);
    record(&b, 7);
    assert_int_equal(claim(&a, 7, &lock), TN_CLAIM_DONE);
    tn_claim_release(other);
    assert_int_equal(claim(&a, 7, &lock), TN_CLAIM_DONE);
    tn_claims_close(&a);
    tn_claims_close(&b);
    assert_int_equal(count_entries(in_folder("processes").text), 0);
}

static void a_piece_that_was_made_while_its_lock_was_awaited_is_done(void)
{
    tn_claims a = joined();
    int lock;
    assert_int_equal(claim(&a, 0, &lock), TN_CLAIM_MINE);
    tn_claim_release(lock);
    record(&a, 0);
    CHECK(tn_claim_has(&a, 0, ".done") && !tn_claim_has(&a, 1, ".done"));
    assert_int_equal(claim(&a, 0, &lock), TN_CLAIM_DONE);
    tn_claim_remove(&a, 0, ".done");
    assert_int_equal(claim(&a, 0, &lock), TN_CLAIM_MINE);
    tn_claim_release(lock);
    tn_claims_close(&a);
}

static void a_process_that_is_killed_loses_its_piece_at_once(void)
{
    tn_claims a = joined();
    int ready[2], lock;
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        tn_claims c = joined();
        (void)claim(&c, 3, &lock);
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    assert_int_equal(claim(&a, 3, &lock), TN_CLAIM_HELD);
    CHECK(tn_claims_living(&a, false) == 2 && tn_claims_living(&a, true) == 2 && !tn_claims_are_alone(&a));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    assert_int_equal(claim(&a, 3, &lock), TN_CLAIM_MINE);
    tn_claim_release(lock);
    CHECK(tn_claims_living(&a, false) == 1);
    tn_claims_check(&a);                            /* removes what it left */
    CHECK(tn_claims_are_alone(&a) && !a.problem);
    close(ready[0]);
    close(ready[1]);
    tn_claims_close(&a);
}

static void a_folder_that_is_removed_is_gone(void)
{
    tn_claims a = joined();
    int lock;
    tn_claim got;
    tn_error err = { .text = "" };
    CHECK(!tn_claims_are_gone(&a));
    CHECK(unlink(in_folder("plan.json").text) == 0 && tn_claims_are_gone(&a));
    CHECK(rmdir(in_folder("pieces").text) == 0);
    tn_status status = tn_claim_piece(&a, 0, &got, &lock, &err);
    check_status(status, &err, TN_ERR_CHANGED, "finished or abandoned");
    status = tn_claim_put(&a, 0, ".done", (tn_text){ "x", 1 }, &err);
    check_status(status, &err, TN_ERR_CHANGED, "finished or abandoned");
    tn_claims_close(&a);
    status = tn_claims_open(&a, work, &err);
    check_status(status, &err, TN_ERR_CHANGED, "the work folder is gone");
    tn_claims_close(&a);
}

/* ---- without locks ---- */

static int no_flock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    errno = ENOSYS;
    return -1;
}

static int own_flock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    return 0;
}

static void without_locks_everything_may_be_claimed_and_that_is_known(void)
{
    tn_sink_calls.flock = no_flock;
    tn_claims a = joined(), b = joined();
    int lock, other;
    CHECK(a.problem && strcmp(a.problem, TN_LOCKS_NONE) == 0);
    assert_int_equal(claim(&a, 0, &lock), TN_CLAIM_MINE);
    assert_int_equal(claim(&b, 0, &other), TN_CLAIM_MINE);
    CHECK(!tn_claim_is_held(&a, 0));
    record(&a, 0);
    assert_int_equal(claim(&b, 0, &other), TN_CLAIM_DONE);
    tn_claim_release(lock);
    tn_claims_close(&a);
    tn_claims_close(&b);
}

static void locks_that_others_get_too_are_noticed_and_told(void)
{
    tn_claims a = joined();
    tn_sink_calls.flock = own_flock;
    tn_claims b = joined();
    CHECK(b.problem && strcmp(b.problem, TN_LOCKS_LOCAL) == 0);
    tn_sink_calls.flock = real_calls.flock;
    CHECK(!a.problem);
    tn_claims_check(&a);                            /* the other has told in the folder */
    CHECK(a.problem != NULL);
    tn_claims_close(&a);
    tn_claims_close(&b);
}

static void put_process(const char *name, const tn_process *p)
{
    char text[TN_PROCESS_TEXT], path[100];
    tn_process_format(p, text);
    snprintf(path, sizeof path, "processes/%s", name);
    put_file(path, text);
}

/* One of another machine answers by removing the question; one that died does not. */
static void a_process_elsewhere_is_asked_whether_it_lives(void)
{
    tn_process far = tn_process_self();
    memset(far.boot, 'f', 36);
    put_process("far.1.abcdef", &far);
    tn_claims a = joined();
    CHECK(!a.problem && access(in_folder("processes/far.1.abcdef.ask").text, F_OK) == 0);
    tn_claims_check(&a);
    CHECK(!a.problem);                              /* no answer */
    CHECK(unlink(in_folder("processes/far.1.abcdef.ask").text) == 0);
    tn_claims_check(&a);
    CHECK(a.problem && strcmp(a.problem, TN_LOCKS_LOCAL) == 0);
    tn_claims_close(&a);
}

/* ---- what others have written ---- */

static void put_lock(const char *text, size_t n)
{
    put_bytes("pieces/00004.lock", text, n);
}

static void check_holder(const tn_claims *c, bool may_be_known)
{
    tn_process p = { .pid = 0 };
    bool known = tn_claim_holder(c, 4, &p);
    CHECK(!known || may_be_known);
    CHECK(memchr(p.host, 0, sizeof p.host) && memchr(p.boot, 0, sizeof p.boot));
    for (const char *s = p.host; *s; s++)
        CHECK(*s > ' ' && *s < 0x7f);
}

static void a_damaged_lock_file_names_nobody_or_somebody_that_can_be_shown(void)
{
    tn_claims a = joined();
    char text[TN_PROCESS_TEXT], long_text[4096];
    tn_process_format(&a.self, text);
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        put_lock(text, i);
        check_holder(&a, false);
        for (unsigned bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            put_lock(text, n);
            check_holder(&a, true);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    }
    memset(long_text, 'h', sizeof long_text);
    put_lock(long_text, sizeof long_text);
    check_holder(&a, false);
    tn_claims_close(&a);
}

static void strange_things_among_processes_do_no_harm(void)
{
    tn_claims a = joined();
    char name[300] = "processes/";
    memset(name + 10, 'n', 255);
    put_file("processes/garbage", "\x1b[2J");
    put_file("processes/empty", "");
    put_file(name, "host 1 2 boot\n");
    CHECK(mkfifo(in_folder("processes/fifo").text, 0600) == 0);
    CHECK(mkdir(in_folder("processes/folder").text, 0700) == 0);
    CHECK(symlink("/etc/passwd", in_folder("processes/link").text) == 0);
    tn_claims_check(&a);
    CHECK(!a.problem && tn_claims_living(&a, false) == 1);
    CHECK(access("/etc/passwd", F_OK) == 0);
    tn_claims_close(&a);
}

/* ---- files of a piece ---- */

static tn_status get(const tn_claims *c, tn_arena *arena, tn_text *text, bool *there, tn_error *err)
{
    *text = (tn_text){ "", 0 };
    return tn_claim_get(c, 5, ".done", arena, text, there, err);
}

static void a_file_of_a_piece_is_what_was_put(void)
{
    static char bytes[300000];
    static const size_t sizes[] = { 0, 1, 4095, 4096, sizeof bytes };
    tn_claims a = joined();
    bool there;
    tn_text text;
    tn_arena arena = { 0 };
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + 1);
    CHECK(get(&a, &arena, &text, &there, NULL) == TN_OK && !there);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(tn_claim_put(&a, 5, ".done", (tn_text){ bytes, sizes[i] }, NULL) == TN_OK);
        CHECK(get(&a, &arena, &text, &there, NULL) == TN_OK && there && text.len == sizes[i]);
        CHECK(memcmp(text.ptr, bytes, text.len) == 0);
    }
    assert_int_equal(count_entries(in_folder("pieces").text), 1);
    tn_arena_free(&arena);
    tn_claims_close(&a);
}

static void what_is_no_regular_file_is_refused(void)
{
    static const char *const names[] = { "fifo", "folder", "link" };
    tn_claims a = joined();
    bool there;
    tn_text text;
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    const char *path = "pieces/00005.done";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (i == 0)
            CHECK(mkfifo(in_folder(path).text, 0600) == 0);
        else if (i == 1)
            CHECK(mkdir(in_folder(path).text, 0700) == 0);
        else
            CHECK(symlink("../plan.json", in_folder(path).text) == 0);
        tn_status status = get(&a, &arena, &text, &there, &err);
        if (!status || !err.text[0])
            fail_msg("%s: accepted", names[i]);
        CHECK(remove(in_folder(path).text) == 0);
    }
    tn_arena_free(&arena);
    tn_claims_close(&a);
}

static void a_record_that_is_too_large_is_refused_before_it_is_read(void)
{
    tn_claims a = joined();
    bool there;
    tn_text text;
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    struct rusage before, after;
    put_file("pieces/00005.done", "{");
    CHECK(truncate(in_folder("pieces/00005.done").text, (off_t)TN_INDEX_MAX + 1) == 0);
    CHECK(getrusage(RUSAGE_SELF, &before) == 0);
    check_status(get(&a, &arena, &text, &there, &err), &err, TN_ERR_LIMIT, "00005.done");
    CHECK(getrusage(RUSAGE_SELF, &after) == 0);
    CHECK(after.ru_maxrss - before.ru_maxrss < 8 << 10);
    tn_arena_free(&arena);
    tn_claims_close(&a);
}

static void a_full_disk_leaves_no_half_a_record(void)
{
    tn_claims a = joined();
    struct rlimit old, small = { .rlim_cur = 100 };
    char bytes[4096] = { 0 };
    tn_error err = { .text = "" };
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    record(&a, 5);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    tn_status status = tn_claim_put(&a, 5, ".done", (tn_text){ bytes, sizeof bytes }, &err);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    check_status(status, &err, TN_ERR_IO, "the record of a piece");
    CHECK(file_is("pieces/00005.done", "made"));
    assert_int_equal(count_entries(in_folder("pieces").text), 1);
    tn_claims_close(&a);
}

static void bytes_of_a_piece_appear_whole(void)
{
    tn_claims a = joined();
    char name[TN_CLAIM_PART];
    int fd;
    CHECK(tn_claim_open_part(&a, 5, name, &fd, NULL) == TN_OK);
    CHECK(write(fd, "bytes", 5) == 5 && !tn_claim_has(&a, 5, ".part"));
    CHECK(tn_claim_name_part(&a, 5, name, NULL) == TN_OK && file_is("pieces/00005.part", "bytes"));
    close(fd);
    assert_int_equal(count_entries(in_folder("pieces").text), 1);
    tn_claims_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORK(a_piece_belongs_to_one_until_it_is_released_or_made),
        IN_WORK(a_piece_that_was_made_while_its_lock_was_awaited_is_done),
        IN_WORK(a_process_that_is_killed_loses_its_piece_at_once),
        IN_WORK(a_folder_that_is_removed_is_gone),
        IN_WORK(without_locks_everything_may_be_claimed_and_that_is_known),
        IN_WORK(locks_that_others_get_too_are_noticed_and_told),
        IN_WORK(a_process_elsewhere_is_asked_whether_it_lives),
        IN_WORK(a_damaged_lock_file_names_nobody_or_somebody_that_can_be_shown),
        IN_WORK(strange_things_among_processes_do_no_harm),
        IN_WORK(a_file_of_a_piece_is_what_was_put),
        IN_WORK(what_is_no_regular_file_is_refused),
        IN_WORK(a_record_that_is_too_large_is_refused_before_it_is_read),
        IN_WORK(a_full_disk_leaves_no_half_a_record),
        IN_WORK(bytes_of_a_piece_appear_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
