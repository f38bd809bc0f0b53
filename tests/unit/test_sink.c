/* Sinks: a file appears whole or not at all, whatever fails and whenever. */
#include "support.h"
#include "folder.h"

#include "bytes/sink.h"
#include "bytes/sink_calls.h"
#include "file_systems.h"

#include <tenon/writer.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int set_up(void **state)
{
    umask(022);
    return keep_calls(state);
}

static bool there_is(const char *name)
{
    struct stat st;
    return lstat(in_folder(name).text, &st) == 0;
}

static mode_t mode_of(const char *name)
{
    struct stat st;
    CHECK(stat(in_folder(name).text, &st) == 0);
    return st.st_mode & 07777;
}

/* "new text" in two writes, the second one first. */
static tn_status write_new(const char *name, bool replace, tn_error *err)
{
    tn_sink *s = NULL;
    tn_status status = tn_sink_open(in_folder(name).text, replace, &s, err);
    if (status)
        return status;
    status = tn_sink_reserve(s, 8, err);
    if (!status)
        status = tn_sink_write(s, 4, "text", 4, err);
    if (!status)
        status = tn_sink_write(s, 0, "new ", 4, err);
    if (!status)
        return tn_sink_publish(s, 8, err);
    tn_sink_abandon(s);
    return status;
}

/* The three kinds of file system: unnamed files; none; none and no exclusive rename. */
static void use_file_system(int kind)
{
    tn_sink_calls = real_calls;
    if (kind > 0)
        tn_sink_calls.open_tmpfile = no_tmpfile;
    if (kind > 1)
        tn_sink_calls.renameat2 = no_such_rename;
}

/* ---- what a sink does ---- */

static void a_new_file_appears_when_it_is_published(void)
{
    for (int kind = 0; kind < 3; kind++)
        for (int replace = 0; replace < 2; replace++) {
            tn_sink *s;
            tn_error err;
            use_file_system(kind);
            CHECK(tn_sink_open(in_folder("new").text, replace, &s, &err) == TN_OK);
            CHECK(tn_sink_write(s, 0, "new text and more", 17, &err) == TN_OK);
            CHECK(!there_is("new") && count_entries(folder) == (kind > 0));
            CHECK(tn_sink_publish(s, 8, &err) == TN_OK);
            CHECK(file_is("new", "new text") && count_entries(folder) == 1);
            CHECK(mode_of("new") == 0644);
            CHECK(unlink(in_folder("new").text) == 0);
        }
}

static void an_old_file_stays_until_then_and_keeps_its_permissions(void)
{
    static const mode_t modes[] = { 0600, 0640, 0444, 0666, 0755 };
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            tn_sink *s;
            use_file_system(kind);
            put_file("file", "old");
            CHECK(chmod(in_folder("file").text, modes[i]) == 0);
            CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
            CHECK(tn_sink_write(s, 0, "new text", 8, NULL) == TN_OK);
            CHECK(file_is("file", "old"));
            CHECK(tn_sink_publish(s, 8, NULL) == TN_OK);
            CHECK(file_is("file", "new text") && count_entries(folder) == 1);
            CHECK(mode_of("file") == modes[i]);
            CHECK(unlink(in_folder("file").text) == 0);
        }
}

static void an_abandoned_sink_leaves_no_trace(void)
{
    for (int kind = 0; kind < 2; kind++) {
        tn_sink *s;
        use_file_system(kind);
        put_file("file", "old");
        CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
        CHECK(tn_sink_write(s, 0, "new text", 8, NULL) == TN_OK);
        tn_sink_abandon(s);
        CHECK(file_is("file", "old") && count_entries(folder) == 1);
    }
    tn_sink_abandon(NULL);
}

static void gaps_and_ends_never_written_are_zero(void)
{
    tn_sink *s;
    CHECK(tn_sink_open(in_folder("file").text, false, &s, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 3, "x", 1, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 0, NULL, 0, NULL) == TN_OK);
    CHECK(tn_sink_publish(s, 6, NULL) == TN_OK);
    char found[7];
    FILE *f = fopen(in_folder("file").text, "r");
    assert_non_null(f);
    CHECK(fread(found, 1, sizeof found, f) == 6 && memcmp(found, "\0\0\0x\0\0", 6) == 0);
    fclose(f);
}

static void without_replace_an_existing_file_is_refused_at_once(void)
{
    tn_error err;
    tn_sink *s = NULL;
    put_file("file", "old");
    CHECK(tn_sink_open(in_folder("file").text, false, &s, &err) == TN_ERR_EXISTS);
    CHECK(tn_sink_open(in_folder("file").text, false, &s, NULL) == TN_ERR_EXISTS);
    CHECK(s == NULL && err.status == TN_ERR_EXISTS && strstr(line_of(&err), "exists") != NULL);
    CHECK(file_is("file", "old") && count_entries(folder) == 1);
}

static void of_two_racing_writers_without_replace_the_second_fails(void)
{
    for (int kind = 0; kind < 3; kind++) {
        tn_sink *first, *second;
        tn_error err;
        use_file_system(kind);
        CHECK(tn_sink_open(in_folder("file").text, false, &second, NULL) == TN_OK);
        CHECK(tn_sink_open(in_folder("file").text, false, &first, NULL) == TN_OK);
        CHECK(tn_sink_write(first, 0, "first", 5, NULL) == TN_OK);
        CHECK(tn_sink_publish(first, 5, NULL) == TN_OK);
        CHECK(tn_sink_write(second, 0, "second", 6, NULL) == TN_OK);
        CHECK(tn_sink_publish(second, 6, &err) == TN_ERR_EXISTS);
        CHECK(file_is("file", "first") && count_entries(folder) == 1);
        CHECK(unlink(in_folder("file").text) == 0);
    }
}

static void links_are_followed_and_stay(void)
{
    for (int kind = 0; kind < 2; kind++)
        for (int exists = 0; exists < 2; exists++) {
            struct stat st;
            use_file_system(kind);
            CHECK(mkdir(in_folder("deep").text, 0755) == 0);
            CHECK(symlink("deep/second", in_folder("link").text) == 0);
            CHECK(symlink(in_folder("deep/target").text, in_folder("deep/second").text) == 0);
            if (exists)
                put_file("deep/target", "old");
            CHECK(write_new("link", true, NULL) == TN_OK);
            CHECK(file_is("deep/target", "new text"));
            CHECK(lstat(in_folder("link").text, &st) == 0 && S_ISLNK(st.st_mode));
            CHECK(lstat(in_folder("deep/second").text, &st) == 0 && S_ISLNK(st.st_mode));
            CHECK(lstat(in_folder("deep/target").text, &st) == 0 && S_ISREG(st.st_mode));
            CHECK(write_new("link", false, NULL) == TN_ERR_EXISTS);
            CHECK(count_entries(folder) == 2 && count_entries(in_folder("deep").text) == 2);
            CHECK(unlink(in_folder("link").text) == 0 && unlink(in_folder("deep/second").text) == 0);
            CHECK(unlink(in_folder("deep/target").text) == 0 && rmdir(in_folder("deep").text) == 0);
        }
}

static void a_path_without_a_folder_is_in_the_present_one(void)
{
    tn_sink *s;
    int here = open(".", O_RDONLY | O_DIRECTORY);
    CHECK(here >= 0 && chdir(folder) == 0);
    tn_status status = tn_sink_open("file", false, &s, NULL);
    CHECK(fchdir(here) == 0);           /* a sink does not depend on it once it is open */
    close(here);
    CHECK(status == TN_OK);
    CHECK(tn_sink_publish(s, 0, NULL) == TN_OK);
    CHECK(file_is("file", ""));
}

static void the_longest_names_are_possible(void)
{
    char name[NAME_MAX + 2];
    tn_error err;
    memset(name, 'n', sizeof name);
    name[NAME_MAX] = '\0';
    for (int kind = 0; kind < 3; kind++) {
        use_file_system(kind);
        CHECK(write_new(name, false, NULL) == TN_OK);
        CHECK(write_new(name, true, NULL) == TN_OK);
        CHECK(file_is(name, "new text") && count_entries(folder) == 1);
        CHECK(unlink(in_folder(name).text) == 0);
    }
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    CHECK(write_new(name, false, &err) == TN_ERR_IO);
    CHECK(strstr(line_of(&err), "File name too long") != NULL);
}

static void memory_takes_the_same_writes(void)
{
    tn_buf out = { 0 };
    tn_sink *s;
    CHECK(tn_sink_open_memory(&out, &s, NULL) == TN_OK);
    CHECK(tn_sink_reserve(s, 1000, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 6, "text", 4, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 0, "new", 3, NULL) == TN_OK);
    CHECK(out.size == 0 && out.data == NULL);
    CHECK(tn_sink_publish(s, 12, NULL) == TN_OK);
    CHECK(out.size == 12 && memcmp(out.data, "new\0\0\0text\0\0", 12) == 0);
    tn_buf_free(&out);
    CHECK(tn_sink_open_memory(&out, &s, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 0, "new text", 8, NULL) == TN_OK);
    CHECK(tn_sink_publish(s, 3, NULL) == TN_OK);
    CHECK(out.size == 3);
    tn_buf_free(&out);
    CHECK(tn_sink_open_memory(&out, &s, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 5, "new text", 8, NULL) == TN_OK);
    tn_sink_abandon(s);
    CHECK(out.size == 0 && out.data == NULL);
}

static void a_descriptor_gets_its_bytes_and_its_size_and_stays_the_callers(void)
{
    char found[8] = "";
    struct stat st;
    tn_sink *s;
    tn_error err = { .text = "" };
    int fd = memfd_create("tenon-test", MFD_CLOEXEC), entries = count_entries(folder);
    CHECK(fd >= 0 && write(fd, "what was there before", 21) == 21);
    CHECK(tn_sink_open_fd(fd, &s, NULL) == TN_OK);
    CHECK(tn_sink_fd(s) != fd && fcntl(tn_sink_fd(s), F_GETFD) & FD_CLOEXEC);
    CHECK(tn_sink_reserve(s, 5, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 3, "de", 2, NULL) == TN_OK && tn_sink_write(s, 0, "abc", 3, NULL) == TN_OK);
    CHECK(tn_sink_publish(s, 5, NULL) == TN_OK);
    CHECK(fstat(fd, &st) == 0 && st.st_size == 5 && pread(fd, found, 8, 0) == 5 &&
          memcmp(found, "abcde", 5) == 0);
    CHECK(tn_sink_open_fd(fd, &s, NULL) == TN_OK);
    tn_sink_abandon(s);
    CHECK(fstat(fd, &st) == 0 && st.st_size == 5 && count_entries(folder) == entries);
    CHECK(close(fd) == 0);
    CHECK(tn_sink_open_fd(fd, &s, &err) == TN_ERR_IO && strstr(line_of(&err), "cannot duplicate a descriptor"));
}

static void offsets_beyond_any_file_are_refused(void)
{
    tn_buf out = { 0 };
    tn_error err;
    for (int memory = 0; memory < 2; memory++) {
        tn_sink *s;
        CHECK((memory ? tn_sink_open_memory(&out, &s, NULL)
                      : tn_sink_open(in_folder("f").text, true, &s, NULL)) == TN_OK);
        CHECK(tn_sink_write(s, UINT64_MAX, "x", 1, &err) == TN_ERR_LIMIT);
        CHECK(tn_sink_write(s, INT64_MAX, "x", 1, &err) == TN_ERR_LIMIT);
        CHECK(tn_sink_write(s, 1, "x", SIZE_MAX, &err) == TN_ERR_LIMIT);
        CHECK(tn_sink_reserve(s, UINT64_MAX, &err) == TN_ERR_LIMIT);
        CHECK(tn_sink_publish(s, UINT64_MAX, &err) == TN_ERR_LIMIT);
        CHECK(!there_is("f") && out.data == NULL);
    }
}

/* ---- threads ---- */

enum { THREADS = 2, PIECES = 64, PIECE = 5000 };
typedef struct half { tn_sink *sink; int first; } half;

static void *write_every_other_piece(void *context)
{
    const half *h = context;
    uint8_t piece[PIECE];
    for (int i = h->first; i < PIECES; i += THREADS) {
        memset(piece, i + 1, sizeof piece);
        CHECK(tn_sink_write(h->sink, (uint64_t)i * PIECE, piece, PIECE, NULL) == TN_OK);
    }
    return NULL;
}

static void check_pieces(const uint8_t *found)
{
    for (int i = 0; i < PIECES * PIECE; i++)
        CHECK(found[i] == i / PIECE + 1);
}

static void threads_write_ranges_that_do_not_overlap(void)
{
    tn_buf out = { 0 };
    for (int memory = 0; memory < 2; memory++) {
        pthread_t threads[THREADS];
        half halves[THREADS];
        tn_sink *s;
        CHECK((memory ? tn_sink_open_memory(&out, &s, NULL)
                      : tn_sink_open(in_folder("f").text, true, &s, NULL)) == TN_OK);
        for (int i = 0; i < THREADS; i++) {
            halves[i] = (half){ .sink = s, .first = i };
            CHECK(pthread_create(&threads[i], NULL, write_every_other_piece, &halves[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(tn_sink_publish(s, PIECES * PIECE, NULL) == TN_OK);
    }
    check_pieces(out.data);
    tn_buf_free(&out);
    tn_source *source;
    CHECK(tn_source_open(in_folder("f").text, TN_IO_MMAP, &source, NULL) == TN_OK);
    CHECK(tn_source_size(source) == PIECES * PIECE);
    check_pieces(tn_source_view(source, 0, PIECES * PIECE));
    tn_source_close(source);
}

static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* Each thread's litter collection sees the other's files at every moment of their lives. */
static void *publish_again_and_again(void *name)
{
    for (int i = 0; i < 300; i++)
        if (write_new(name, true, NULL) != TN_OK)
            return "failed";
    return NULL;
}

static void sinks_in_one_folder_do_not_take_each_other_for_litter(void)
{
    for (int kind = 0; kind < 2; kind++) {
        pthread_t other;
        void *failed;
        use_file_system(kind);
        tn_sink_calls.fsync = no_sync;      /* 2,400 of them say nothing here */
        CHECK(pthread_create(&other, NULL, publish_again_and_again, "a") == 0);
        CHECK(publish_again_and_again("b") == NULL);
        CHECK(pthread_join(other, &failed) == 0 && failed == NULL);
        CHECK(file_is("a", "new text") && file_is("b", "new text") && count_entries(folder) == 2);
    }
}

/* ---- litter ---- */

static void forgotten_temporary_files_are_removed(void)
{
    tn_sink *s;
    put_file(".tenon-abcdef.tmp", "");
    put_file(".tenon-zz2277.tmp", "half a tensor");
    put_file(".tenon-rdonly.tmp", "");
    CHECK(chmod(in_folder(".tenon-rdonly.tmp").text, 0444) == 0);
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    CHECK(count_entries(folder) == 0);
    tn_sink_abandon(s);
}

static void temporary_files_in_use_and_other_names_are_left_alone(void)
{
    static const char *const others[] = {
        ".tenon-ABCDEF.tmp",  ".tenon-abcde.tmp",  ".tenon-abcdefg.tmp",
        ".tenon-abcdef.tmp~", ".tenon-abcde1.tmp", "tenon-abcdef.tmp",
        ".tenon-abcdef.tmx",  ".tenom-abcdef.tmp", ".tenon-.tmp",
    };
    enum { COUNT = sizeof others / sizeof *others };
    tn_sink *s;
    for (int i = 0; i < COUNT; i++)
        put_file(others[i], "");
    CHECK(mkdir(in_folder(".tenon-folder.tmp").text, 0755) == 0);
    put_file(".tenon-folder.tmp/1", "of a set");
    put_file(".tenon-folder.tmp/other", "of somebody else");
    CHECK(mkfifo(in_folder(".tenon-aafifo.tmp").text, 0600) == 0);
    CHECK(symlink(others[0], in_folder(".tenon-aalink.tmp").text) == 0);
    put_file(".tenon-locked.tmp", "in use");
    int fd = open(in_folder(".tenon-locked.tmp").text, O_RDONLY);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    tn_sink_abandon(s);
    CHECK(file_is(".tenon-locked.tmp", "in use") && count_entries(folder) == COUNT + 4);
    CHECK(!there_is(".tenon-folder.tmp/1") && file_is(".tenon-folder.tmp/other", "of somebody else"));
    close(fd);
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    tn_sink_abandon(s);
    CHECK(!there_is(".tenon-locked.tmp") && count_entries(folder) == COUNT + 3);
}

/* What another process's sink in this folder does to ours: it looks for litter. */
static void another_sink_comes_by(void)
{
    tn_sink *s;
    CHECK(tn_sink_open(in_folder("another").text, true, &s, NULL) == TN_OK);
    tn_sink_abandon(s);
}

static int flocks;

static int late_flock(int fd, int operation)
{
    if (flocks++ == 0)
        another_sink_comes_by();        /* the file is there and not yet locked */
    return real_calls.flock(fd, operation);
}

static int contested_flock(int fd, int operation)
{
    if (flocks++ > 0)
        return real_calls.flock(fd, operation);
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int other = open(self, O_RDONLY);   /* another sink has locked it and is about to remove it */
    CHECK(other >= 0 && real_calls.flock(other, LOCK_EX | LOCK_NB) == 0);
    int result = real_calls.flock(fd, operation), reason = errno;
    close(other);
    errno = reason;
    return result;
}

static void a_file_taken_for_litter_before_it_is_locked_is_made_again(void)
{
    use_file_system(1);
    tn_sink_calls.flock = late_flock;
    flocks = 0;
    CHECK(write_new("file", false, NULL) == TN_OK);
    CHECK(file_is("file", "new text") && count_entries(folder) == 1);
    tn_sink_calls.flock = contested_flock;
    flocks = 0;
    CHECK(write_new("file", true, NULL) == TN_OK);
    CHECK(file_is("file", "new text") && flocks > 1);
}

static int interrupted_rename(int from_folder, const char *from, int to, const char *name, unsigned flags)
{
    another_sink_comes_by();
    return real_calls.renameat2(from_folder, from, to, name, flags);
}

static void the_short_lived_name_of_an_unnamed_file_is_safe(void)
{
    put_file("file", "old");
    tn_sink_calls.renameat2 = interrupted_rename;
    CHECK(write_new("file", true, NULL) == TN_OK);
    CHECK(file_is("file", "new text") && count_entries(folder) == 1);
}

static int no_locks(int fd, int operation)
{
    (void)fd, (void)operation;
    errno = ENOLCK;
    return -1;
}

static void without_locks_files_are_written_and_nothing_is_cleaned(void)
{
    tn_sink_calls.flock = no_locks;
    put_file(".tenon-abcdef.tmp", "");
    for (int kind = 0; kind < 2; kind++) {
        tn_sink_calls.open_tmpfile = kind ? no_tmpfile : real_calls.open_tmpfile;
        CHECK(write_new("file", true, NULL) == TN_OK);
        CHECK(file_is("file", "new text") && there_is(".tenon-abcdef.tmp") && count_entries(folder) == 2);
    }
}

/* What a process leaves that ends while it writes. */
static int entries_left(bool abandons)
{
    pid_t child = fork();
    if (child == 0) {
        tn_sink *s;
        bool good = tn_sink_open(in_folder("file").text, false, &s, NULL) == TN_OK &&
                    tn_sink_write(s, 0, "text", 4, NULL) == TN_OK;
        if (abandons)
            tn_abandon_files();
        _exit(good ? 0 : 1);
    }
    int how;
    CHECK(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0);
    return count_entries(folder);
}

static void a_process_that_ends_at_once_can_leave_nothing(void)
{
    for (int kind = 0; kind < 3; kind++) {
        use_file_system(kind);
        CHECK(entries_left(true) == 0);
        CHECK(entries_left(false) == (kind > 0));       /* a file that has a name */
    }
}

static ssize_t die_in_pwrite(int fd, const void *data, size_t n, off_t offset)
{
    (void)fd, (void)data, (void)n, (void)offset;
    raise(SIGKILL);
    return -1;
}

static int die_in_rename(int from_folder, const char *from, int to, const char *name, unsigned flags)
{
    (void)from_folder, (void)from, (void)to, (void)name, (void)flags;
    raise(SIGKILL);
    return -1;
}

static void a_killed_writer_leaves_only_what_the_next_one_removes(void)
{
    for (int kind = 0; kind < 2; kind++)
        for (int late = 0; late < 2; late++) {
            use_file_system(kind);
            put_file("file", "old");
            pid_t child = fork();
            if (child == 0) {
                if (late)
                    tn_sink_calls.renameat2 = die_in_rename;
                else
                    tn_sink_calls.pwrite = die_in_pwrite;
                write_new("file", true, NULL);
                _exit(0);
            }
            int how;
            CHECK(child > 0 && waitpid(child, &how, 0) == child && WIFSIGNALED(how));
            CHECK(file_is("file", "old"));
            CHECK(count_entries(folder) == 1 + (kind || late));     /* late: caught between link and rename */
            CHECK(write_new("file", true, NULL) == TN_OK);
            CHECK(file_is("file", "new text") && count_entries(folder) == 1);
        }
}

/* ---- refusals ---- */

static void expect_refusal(const char *where, const char *text)
{
    for (int replace = 0; replace < 2; replace++) {
        tn_error err = { .status = TN_OK };
        tn_sink *s = NULL;
        CHECK(tn_sink_open(where, replace, &s, &err) == TN_ERR_IO);
        CHECK(tn_sink_open(where, replace, &s, NULL) == TN_ERR_IO);
        CHECK(s == NULL && err.status == TN_ERR_IO && strstr(line_of(&err), text) != NULL);
    }
}

static void only_regular_files_are_replaced(void)
{
    expect_refusal(folder, "is a directory");
    expect_refusal(in_folder("").text, "is a directory");
    expect_refusal(in_folder(".").text, "is a directory");
    expect_refusal("/", "is a directory");
    expect_refusal("/dev/null", "is a FIFO, socket or device");
    CHECK(mkfifo(in_folder("fifo").text, 0600) == 0);
    expect_refusal(in_folder("fifo").text, "is a FIFO");
    expect_refusal(in_folder("missing/file").text, "cannot open its folder: No such file or directory");
    expect_refusal(in_folder("new/").text, "cannot open its folder: No such file or directory");
    expect_refusal("", "the path is empty");
    put_file("file", "old");
    expect_refusal(in_folder("file/x").text, "Not a directory");
    CHECK(symlink("round", in_folder("about").text) == 0 && symlink("about", in_folder("round").text) == 0);
    expect_refusal(in_folder("round").text, "symbolic links");
    CHECK(file_is("file", "old") && count_entries(folder) == 4);
}

static void a_folder_that_cannot_be_written_is_said_so(void)
{
    put_file("file", "old");
    CHECK(chmod(folder, 0555) == 0);
    bool root = geteuid() == 0;
    CHECK(!root || seteuid(65534) == 0);
    expect_refusal(in_folder("new").text, "cannot write: Permission denied (nothing was replaced)");
    tn_error err;
    tn_status status = write_new("file", true, &err);
    CHECK(!root || seteuid(0) == 0);
    CHECK(status == TN_ERR_IO && strstr(line_of(&err), "Permission denied") != NULL);
    CHECK(chmod(folder, 0755) == 0);
    CHECK(file_is("file", "old") && count_entries(folder) == 1);
}

static void a_file_beyond_the_size_limit_is_an_error(void)
{
    struct rlimit old, limit;
    tn_error err;
    tn_sink *s;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = 4096;
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    tn_status first = tn_sink_write(s, 0, folder, 100, &err),
              second = tn_sink_write(s, 4096, folder, 1, &err);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, SIG_DFL);
    tn_sink_abandon(s);
    CHECK(first == TN_OK && second == TN_ERR_IO);
    assert_string_equal(said_of(&err), "cannot write: File too large (nothing was replaced)");
    CHECK(count_entries(folder) == 0);
}

/* ---- every call fails once ---- */

static struct fault { int at, calls, error_number; bool in_folder_sync; } fault;

/* The k-th call of all fails. */
static bool strike(void)
{
    if (++fault.calls != fault.at)
        return false;
    errno = fault.error_number;
    return true;
}

static int faulty_open_tmpfile(int where, mode_t mode)
{
    return strike() ? -1 : real_calls.open_tmpfile(where, mode);
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t n, off_t offset)
{
    return strike() ? -1 : real_calls.pwrite(fd, data, n < 3 ? n : 3, offset);       /* and always short */
}

static int faulty_fallocate(int fd, int mode, off_t offset, off_t n)
{
    return strike() ? -1 : real_calls.fallocate(fd, mode, offset, n);
}

static int faulty_ftruncate(int fd, off_t size)
{
    return strike() ? -1 : real_calls.ftruncate(fd, size);
}

static int faulty_fsync(int fd)
{
    struct stat st;
    if (!strike())
        return real_calls.fsync(fd);
    fault.in_folder_sync = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    errno = fault.error_number;
    return -1;
}

static int faulty_linkat(int from_folder, const char *from, int to, const char *name, int flags)
{
    return strike() ? -1 : real_calls.linkat(from_folder, from, to, name, flags);
}

static int faulty_renameat2(int from_folder, const char *from, int to, const char *name, unsigned flags)
{
    return strike() ? -1 : real_calls.renameat2(from_folder, from, to, name, flags);
}

static void use_faults(int kind, int at, int error_number)
{
    use_file_system(kind);
    fault = (struct fault){ .at = at, .error_number = error_number };
    if (kind == 0)
        tn_sink_calls.open_tmpfile = faulty_open_tmpfile;
    tn_sink_calls.pwrite = faulty_pwrite;
    tn_sink_calls.fallocate = faulty_fallocate;
    tn_sink_calls.ftruncate = faulty_ftruncate;
    tn_sink_calls.fsync = faulty_fsync;
    tn_sink_calls.linkat = faulty_linkat;
    if (kind < 2)
        tn_sink_calls.renameat2 = faulty_renameat2;
}

/* Writes with the k-th call failing and looks at the folder; false when k is beyond the last call. */
static bool survives_fault(int kind, int at, int error_number, bool old)
{
    tn_error err = { .status = TN_OK };
    if (old)
        put_file("file", "old");
    else
        unlink(in_folder("file").text);
    int open_files = count_entries("/proc/self/fd");
    use_faults(kind, at, error_number);
    tn_status status = write_new("file", old, &err);
    CHECK(count_entries("/proc/self/fd") == open_files);
    CHECK(status == err.status);
    if (status == TN_OK || fault.in_folder_sync) {
        CHECK(file_is("file", "new text") && count_entries(folder) == 1);
        CHECK(status == TN_OK || strstr(line_of(&err), "is in its place") != NULL);
    } else {
        CHECK(fault.calls >= at && strstr(line_of(&err), "(nothing was replaced)") != NULL);
        CHECK(count_entries(folder) == old && file_is("file", "old") == old);
    }
    return fault.calls >= at;
}

static void no_single_failure_harms_the_old_file_or_leaves_litter(void)
{
    static const int errors[] = { ENOSPC, EIO, EDQUOT, EROFS };
    for (int kind = 0; kind < 3; kind++)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
            for (int old = 0; old < 2; old++) {
                int at = 1;
                while (survives_fault(kind, at, errors[e], old))
                    at++;
                CHECK(at > 8);      /* the faults were there */
            }
}

static void a_full_disk_is_said_so(void)
{
    tn_error err;
    put_file("file", "old");
    for (int at = 2; at <= 6; at++) {       /* reserve, four short writes */
        use_faults(0, at, ENOSPC);
        CHECK(write_new("file", true, &err) == TN_ERR_IO);
        assert_string_equal(said_of(&err), "cannot write: No space left on device (nothing was replaced)");
    }
    use_faults(0, 2, EOPNOTSUPP);           /* no way to reserve is no failure */
    CHECK(write_new("file", true, &err) == TN_OK);
    CHECK(file_is("file", "new text"));
}

static void space_is_reserved_once(void)
{
    tn_sink *s;
    use_faults(0, 0, 0);
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    int before = fault.calls;
    CHECK(tn_sink_reserve(s, 4096, NULL) == TN_OK && fault.calls == before + 1);
    CHECK(tn_sink_reserve(s, 4096, NULL) == TN_OK && tn_sink_reserve(s, 9, NULL) == TN_OK);
    CHECK(fault.calls == before + 1);
    CHECK(tn_sink_reserve(s, 8192, NULL) == TN_OK && fault.calls == before + 2);
    struct stat st;
    CHECK(fstat(tn_sink_fd(s), &st) == 0 && st.st_size == 8192);
    tn_sink_abandon(s);
}

static void interrupted_calls_are_repeated(void)
{
    for (int at = 2; at <= 6; at++) {
        use_faults(0, at, EINTR);
        CHECK(write_new("file", true, NULL) == TN_OK);
        CHECK(file_is("file", "new text"));
    }
}

#define IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, set_up, restore_calls, NULL }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_new_file_appears_when_it_is_published),
        IN_FOLDER(a_process_that_ends_at_once_can_leave_nothing),
        IN_FOLDER(an_old_file_stays_until_then_and_keeps_its_permissions),
        IN_FOLDER(an_abandoned_sink_leaves_no_trace),
        IN_FOLDER(gaps_and_ends_never_written_are_zero),
        IN_FOLDER(without_replace_an_existing_file_is_refused_at_once),
        IN_FOLDER(of_two_racing_writers_without_replace_the_second_fails),
        IN_FOLDER(links_are_followed_and_stay),
        IN_FOLDER(a_path_without_a_folder_is_in_the_present_one),
        IN_FOLDER(the_longest_names_are_possible),
        IN_FOLDER(memory_takes_the_same_writes),
        IN_FOLDER(a_descriptor_gets_its_bytes_and_its_size_and_stays_the_callers),
        IN_FOLDER(offsets_beyond_any_file_are_refused),
        IN_FOLDER(threads_write_ranges_that_do_not_overlap),
        IN_FOLDER(sinks_in_one_folder_do_not_take_each_other_for_litter),
        IN_FOLDER(forgotten_temporary_files_are_removed),
        IN_FOLDER(temporary_files_in_use_and_other_names_are_left_alone),
        IN_FOLDER(a_file_taken_for_litter_before_it_is_locked_is_made_again),
        IN_FOLDER(the_short_lived_name_of_an_unnamed_file_is_safe),
        IN_FOLDER(without_locks_files_are_written_and_nothing_is_cleaned),
        IN_FOLDER(a_killed_writer_leaves_only_what_the_next_one_removes),
        IN_FOLDER(only_regular_files_are_replaced),
        IN_FOLDER(a_folder_that_cannot_be_written_is_said_so),
        IN_FOLDER(a_file_beyond_the_size_limit_is_an_error),
        IN_FOLDER(no_single_failure_harms_the_old_file_or_leaves_litter),
        IN_FOLDER(a_full_disk_is_said_so),
        IN_FOLDER(space_is_reserved_once),
        IN_FOLDER(interrupted_calls_are_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
