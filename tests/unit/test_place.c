/* Where a file is written: links lead there by the kernel's rules, and nobody exchanges them meanwhile. */
#include "support.h"
#include "folder.h"

#include "bytes/sink.h"
#include "bytes/sink_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#define IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, make_folder, remove_folder, NULL }

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif

enum { ATTACKER = 65533, WRITER = 65534 };

static tn_status write_new(const char *name, tn_error *err)
{
    tn_sink *s = NULL;
    tn_status status = tn_sink_open(in_folder(name).text, true, &s, err);
    if (status)
        return status;
    status = tn_sink_write(s, 0, "new text", 8, err);
    if (!status)
        return tn_sink_publish(s, 8, err);
    tn_sink_abandon(s);
    return status;
}

static void make_link(const char *to, const char *name)
{
    CHECK(symlink(to, in_folder(name).text) == 0);
}

static bool is_link(const char *name)
{
    struct stat st;
    return lstat(in_folder(name).text, &st) == 0 && S_ISLNK(st.st_mode);
}

/* ---- links that count ---- */

static void links_to_folders_and_to_files_are_followed(void)
{
    CHECK(mkdir(in_folder("real").text, 0755) == 0 && mkdir(in_folder("real/deep").text, 0755) == 0);
    make_link("real", "folder");
    make_link("folder/deep/../file", "link");       /* .. of where the link leads, not of its text */
    make_link(in_folder("folder/deep").text, "deep");
    make_link("../deep/none", "real/dangling");
    put_file("real/file", "old");
    CHECK(write_new("folder/a", NULL) == TN_OK && file_is("real/a", "new text"));
    CHECK(write_new("deep/b", NULL) == TN_OK && file_is("real/deep/b", "new text"));
    CHECK(write_new("link", NULL) == TN_OK && file_is("real/file", "new text") && is_link("link"));
    CHECK(write_new("folder/dangling", NULL) == TN_OK && file_is("real/deep/none", "new text"));
    CHECK(is_link("real/dangling") && is_link("folder") && is_link("deep"));
    CHECK(count_entries(folder) == 4 && count_entries(in_folder("real").text) == 4);
    CHECK(count_entries(in_folder("real/deep").text) == 2);
}

static void links_that_lead_to_no_file_are_refused(void)
{
    static const char *const targets[] = {
        "real", "real/", "none/", "none/file", "file/x", ".", "/dev/null", "link",
    };
    tn_error err;
    CHECK(mkdir(in_folder("real").text, 0755) == 0);
    put_file("file", "old");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        make_link(targets[i], "link");
        int open_files = count_entries("/proc/self/fd");
        CHECK(write_new("link", &err) == TN_ERR_IO);
        CHECK(count_entries("/proc/self/fd") == open_files);
        CHECK(is_link("link") && file_is("file", "old") && count_entries(folder) == 3);
        CHECK(unlink(in_folder("link").text) == 0);
    }
}

static void a_folder_that_is_exchanged_later_does_not_count(void)
{
    tn_sink *s;
    CHECK(mkdir(in_folder("first").text, 0755) == 0 && mkdir(in_folder("second").text, 0755) == 0);
    make_link("first", "folder");
    CHECK(tn_sink_open(in_folder("folder/file").text, true, &s, NULL) == TN_OK);
    CHECK(unlink(in_folder("folder").text) == 0);
    make_link("second", "folder");
    CHECK(tn_sink_write(s, 0, "new text", 8, NULL) == TN_OK && tn_sink_publish(s, 8, NULL) == TN_OK);
    CHECK(file_is("first/file", "new text") && count_entries(in_folder("second").text) == 0);
}

/* ---- links of others ---- */

/* A folder like /tmp, and one that no link may lead to. */
static void make_shared(void)
{
    CHECK(mkdir(in_folder("shared").text, 0755) == 0 && chmod(in_folder("shared").text, 01777) == 0);
    CHECK(mkdir(in_folder("private").text, 0755) == 0 && chmod(in_folder("private").text, 0777) == 0);
    put_file("private/old", "old");
    CHECK(chmod(in_folder("private/old").text, 0666) == 0);
}

static bool private_is_untouched(void)
{
    return file_is("private/old", "old") && count_entries(in_folder("private").text) == 1;
}

static void need_root(const char *what)
{
    if (geteuid() == 0)
        return;
    print_message("SKIPPED: only root can make %s\n", what);
    skip();
}

static void links_of_others_in_a_folder_of_everybody_are_not_followed(void)
{
    static const char *const targets[] = { "../private/old", "../private/new" };
    need_root("links of other users");
    make_shared();
    for (size_t i = 0; i < 2; i++) {
        tn_error err;
        make_link(targets[i], "shared/out");
        CHECK(lchown(in_folder("shared/out").text, ATTACKER, ATTACKER) == 0);
        CHECK(write_new("shared/out", &err) == TN_ERR_IO);
        if (!strstr(line_of(&err), "Permission denied"))     /* the kernel's words, where it has the rule */
            CHECK(strstr(line_of(&err), "symbolic link of another user (65533)") != NULL);
        CHECK(private_is_untouched() && is_link("shared/out"));
        CHECK(count_entries(in_folder("shared").text) == 1);
        CHECK(unlink(in_folder("shared/out").text) == 0);
    }
}

static void links_of_ones_own_and_of_the_owner_of_the_folder_are(void)
{
    need_root("links of other users");
    make_shared();
    make_link("../private/old", "shared/out");
    CHECK(write_new("shared/out", NULL) == TN_OK && file_is("private/old", "new text"));
    CHECK(chown(in_folder("shared").text, ATTACKER, ATTACKER) == 0);
    CHECK(lchown(in_folder("shared/out").text, ATTACKER, ATTACKER) == 0);
    put_file("private/old", "old");
    CHECK(write_new("shared/out", NULL) == TN_OK && file_is("private/old", "new text"));
    CHECK(chown(in_folder("shared").text, 0, 0) == 0 && chmod(in_folder("shared").text, 0755) == 0);
    put_file("private/old", "old");                             /* who may write to the folder is trusted */
    CHECK(write_new("shared/out", NULL) == TN_OK && file_is("private/old", "new text"));
}

/* ---- races ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In a process of its own, until it is killed: nothing, a link to a file, nothing, a link to no file ... */
static void exchange_links(uid_t uid)
{
    if (uid != 0 && setresuid(uid, uid, uid) != 0)
        _exit(1);
    alarm(60);                          /* even if its parent dies */
    for (unsigned i = 0;; i++) {
        (void)!symlink(i % 2 ? "../private/old" : "../private/new", in_folder("shared/out").text);
        unlink(in_folder("shared/out").text);
    }
}

static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* Writes for a second and says how it went: bit 0 files were written, bit 1 some were refused.  On a busy
 * machine the other process may be stopped that long: then for longer, until there was a race. */
static int write_for_a_second(uid_t uid)
{
    int seen = 0;
    tn_sink_calls.fsync = no_sync;
    if (uid != 0 && setresuid(uid, uid, uid) != 0)
        return 0;
    double begin = now();
    while (now() < begin + 1 || (seen != 3 && now() < begin + 20)) {
        seen |= write_new("shared/out", NULL) == TN_OK ? 1 : 2;
        unlink(in_folder("shared/out").text);
    }
    return seen;
}

/* Whether there was a race, and nothing was written where the links lead.
 * No checks: it may be run in a child. */
static bool race(uid_t attacker, uid_t writer)
{
    int how = 0;
    pid_t other = fork();
    if (other == 0)
        exchange_links(attacker);
    pid_t ours = fork();
    if (ours == 0)
        _exit(write_for_a_second(writer));
    bool done = other > 0 && ours > 0 && waitpid(ours, &how, 0) == ours;
    if (other > 0)
        done &= kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other;
    bool raced = done && WIFEXITED(how) && WEXITSTATUS(how) == 3, untouched = private_is_untouched();
    if (!raced)
        print_message("no race: state %#x\n", (unsigned)how);
    if (!untouched)
        print_message("written where the links lead\n");
    return raced && untouched;
}

static void a_link_that_appears_at_any_moment_is_not_followed_by_root(void)
{
    need_root("links of other users");
    make_shared();
    CHECK(race(ATTACKER, 0));
}

static void a_link_that_appears_at_any_moment_is_not_followed_by_a_user(void)
{
    need_root("links of other users");
    make_shared();
    CHECK(race(ATTACKER, WRITER));
}

/* Where links are not followed at all, not even one's own are: this is the
 * kernel's check, whatever fs.protected_symlinks says here. */
static void a_mount_without_links_has_none_at_any_moment(void)
{
    need_root("mounts");
    CHECK(mkdir(in_folder("mount").text, 0755) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", in_folder("mount").text, "tmpfs", MS_NOSYMFOLLOW, NULL) != 0)
            _exit(77);
        strcat(folder, "/mount");
        make_shared();
        _exit(race(0, 0) ? 0 : 1);
    }
    int how = 0;
    CHECK(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
    if (WEXITSTATUS(how) == 77) {
        print_message("SKIPPED: the system lets nobody mount with nosymfollow\n");
        skip();
    }
    CHECK(WEXITSTATUS(how) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(links_to_folders_and_to_files_are_followed),
        IN_FOLDER(links_that_lead_to_no_file_are_refused),
        IN_FOLDER(a_folder_that_is_exchanged_later_does_not_count),
        IN_FOLDER(links_of_others_in_a_folder_of_everybody_are_not_followed),
        IN_FOLDER(links_of_ones_own_and_of_the_owner_of_the_folder_are),
        IN_FOLDER(a_link_that_appears_at_any_moment_is_not_followed_by_root),
        IN_FOLDER(a_link_that_appears_at_any_moment_is_not_followed_by_a_user),
        IN_FOLDER(a_mount_without_links_has_none_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
