/* Temporary files: nobody sees them, and nothing that others put in their folder leads them elsewhere. */
#include "support.h"
#include "folder.h"

#include "bytes/sink_calls.h"
#include "bytes/temporary.h"
#include "bytes/spill.h"
#include "file_systems.h"

#include <errno.h>
#include <fcntl.h>

enum { LARGE = 9 << 20 };       /* more than a room has in memory */

static int set_up(void **state)
{
    return keep_calls(state) || setenv("TMPDIR", folder, 1);
}

/* Which folder the file was made in. */
static bool was_made_in(int fd, const char *where)
{
    char self[40], path[PATH_MAX] = "";
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(self, path, sizeof path - 1);
    return n > 0 && strncmp(path, where, strlen(where)) == 0 && strchr(path + strlen(where) + 1, '/') == NULL;
}

static void check_file(int fd, const char *where)
{
    struct stat st;
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
    CHECK((st.st_mode & 07777) == 0600 && st.st_nlink == 0 && st.st_uid == geteuid());
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
    CHECK(was_made_in(fd, where));
    close(fd);
}

static void they_have_no_name_and_are_their_owners_only(void)
{
    umask(0);
    CHECK(mkdir(in_folder("other").text, 0777) == 0);
    CHECK(symlink("other/none", in_folder("link").text) == 0);
    for (int kind = 0; kind < 2; kind++) {
        int fd = -1;
        tn_sink_calls.open_tmpfile = kind ? no_tmpfile : real_calls.open_tmpfile;
        CHECK(tn_temporary_open(&fd, NULL) == TN_OK);
        CHECK(count_entries(folder) == 2);
        check_file(fd, folder);
        CHECK(tn_temporary_open_beside(in_folder("out").text, &fd, NULL) == TN_OK);
        check_file(fd, folder);
        CHECK(tn_temporary_open_beside(in_folder("link").text, &fd, NULL) == TN_OK);
        check_file(fd, in_folder("other").text);
        CHECK(count_entries(folder) == 2 && count_entries(in_folder("other").text) == 0);
    }
    umask(022);
}

static void a_folder_that_cannot_be_had_is_said_so(void)
{
    int fd = -1;
    tn_error err = { .text = "" };
    CHECK(tn_temporary_open_beside(in_folder("none/file").text, &fd, &err) == TN_ERR_IO);
    assert_string_equal(said_of(&err), "cannot open its folder: No such file or directory");
    CHECK(setenv("TMPDIR", in_folder("none").text, 1) == 0);
    CHECK(tn_temporary_open(&fd, &err) == TN_ERR_IO);
    assert_string_equal(said_of(&err),
                        "cannot write a temporary file (TMPDIR says where): No such file or directory");
}

static void names_are_random_and_known(void)
{
    char first[TN_TEMPORARY_NAME], second[TN_TEMPORARY_NAME];
    CHECK(tn_temporary_name(first) && tn_temporary_name(second) && strcmp(first, second) != 0);
    CHECK(tn_is_temporary_name(first) && tn_is_temporary_name(second) && !tn_is_temporary_name("out.zt"));
}

/* What others can guess and put there: a link, a folder, a FIFO. */
static void put_guess(int kind)
{
    char guess[64];
    snprintf(guess, sizeof guess, "tenon-%ld.room", (long)getpid());
    full_path path = in_folder(guess);
    if (kind == 0)
        CHECK(symlink("other/file", path.text) == 0);
    else if (kind == 1)
        CHECK(unlink(path.text) == 0 && mkdir(path.text, 0700) == 0);
    else
        CHECK(rmdir(path.text) == 0 && mkfifo(path.text, 0600) == 0);
}

static void nothing_that_is_put_in_the_folder_leads_elsewhere(void)
{
    CHECK(mkdir(in_folder("other").text, 0755) == 0);
    put_file("other/.tenon-abcdef.tmp", "not ours to remove");
    for (int kind = 0; kind < 3; kind++) {
        tn_spill spill = { 0 };
        put_guess(kind);
        CHECK(tn_spill_make(&spill, NULL, LARGE, NULL) == TN_OK);
        CHECK(was_made_in(tn_sink_fd(spill.sink), folder));
        CHECK(spill.bytes[0] == 0 && spill.bytes[LARGE - 1] == 0);
        spill.bytes[LARGE - 1] = 1;
        CHECK(count_entries(folder) == 2 && count_entries(in_folder("other").text) == 1);
        tn_spill_free(&spill);
    }
}

#define IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, set_up, restore_calls, NULL }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(they_have_no_name_and_are_their_owners_only),
        IN_FOLDER(a_folder_that_cannot_be_had_is_said_so),
        IN_FOLDER(names_are_random_and_known),
        IN_FOLDER(nothing_that_is_put_in_the_folder_leads_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
