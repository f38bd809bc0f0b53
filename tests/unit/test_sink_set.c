/* Sets of files: all of them appear or none, whatever call fails; many of them need few descriptors. */
#include "support.h"
#include "folder.h"

#include "bytes/sink_calls.h"
#include "bytes/sink_set.h"
#include "file_systems.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

enum { MEMBERS = 7, LIMIT = 3 };

static int set_up(void **state)
{
    umask(022);
    return keep_calls(state);
}

static int open_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

typedef struct name { char text[32]; } name;

static name member_name(int i)
{
    name n;
    snprintf(n.text, sizeof n.text, "new-%d", i);
    return n;
}

/* Each member is "head" and its number, twice; written in two rounds, so that all of them sleep in
 * between. */
static tn_status write_members(tn_sink_set *set, tn_sink *sinks[MEMBERS], int most, tn_error *err)
{
    tn_status status = TN_OK;
    for (int i = 0; i < MEMBERS && !status; i++) {
        status = tn_sink_set_add(set, &sinks[i], err);
        if (!status)
            tn_sink_set_head(sinks[i], "head", 4);
    }
    for (int i = 0; i < MEMBERS && !status; i++)
        status = tn_sink_reserve(sinks[i], 6, err);
    for (int round = 0; round < 2 && !status; round++)
        for (int i = 0; i < MEMBERS && !status; i++) {
            char digit = (char)('0' + i);
            status = tn_sink_write(sinks[i], (uint64_t)(4 + round), &digit, 1, err);
            CHECK(open_descriptors() <= most);
        }
    return status;
}

static const char *like;        /* what the new members are to be like, or NULL */

static tn_status publish_new(bool replace, tn_error *err)
{
    tn_sink_set *set = NULL;
    tn_sink *last = NULL, *sinks[MEMBERS];
    tn_sink_member members[MEMBERS];
    name names[MEMBERS];
    int before = open_descriptors();
    full_path old = in_folder(like ? like : "");
    tn_status status = tn_sink_set_open(in_folder("index").text, like ? old.text : NULL, &set, err);
    if (status)
        return status;
    tn_sink_set_limit(set, LIMIT);
    /* two folders, and the one that is counted */
    status = write_members(set, sinks, before + LIMIT + 3, err);
    if (!status)
        status = tn_sink_open(in_folder("index").text, replace, &last, err);
    if (!status)
        status = tn_sink_write(last, 0, "new index", 9, err);
    if (!status) {
        for (int i = 0; i < MEMBERS; i++) {
            names[i] = member_name(i);
            members[i] = (tn_sink_member){ sinks[i], names[i].text, 6 };
        }
        status = tn_sink_set_publish(set, members, MEMBERS, last, 9, err);
    } else {
        tn_sink_abandon(last);
    }
    tn_sink_set_close(set);
    CHECK(open_descriptors() == before);
    return status;
}

/* The new index and all members, or none. */
static void check_state(bool new, const char *old)
{
    for (int i = 0; i < MEMBERS; i++) {
        char text[32];
        snprintf(text, sizeof text, "head%d%d", i, i);
        CHECK(access(in_folder(member_name(i).text).text, F_OK) == (new ? 0 : -1));
        CHECK(!new || file_is(member_name(i).text, text));
    }
    CHECK(old || new || access(in_folder("index").text, F_OK) != 0);
    CHECK(!(old || new) || file_is("index", new ? "new index" : old));
    CHECK(count_entries(folder) == (new ? MEMBERS + 1 : old != NULL));
}

static void clear(void)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "cd '%s' && rm -rf * .tenon*", folder);
    CHECK(system(command) == 0);
}

/* Thousands of them say nothing here. */
static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

static void use_file_system(int kind)
{
    tn_sink_calls = real_calls;
    tn_sink_calls.fsync = no_sync;
    if (kind > 0)
        tn_sink_calls.open_tmpfile = no_tmpfile;
    if (kind > 1)
        tn_sink_calls.renameat2 = no_such_rename;
}

static void a_set_appears_whole_with_few_descriptors(void)
{
    tn_error err = { .text = "" };
    for (int kind = 0; kind < 3; kind++)
        for (int old = 0; old < 2; old++) {
            use_file_system(kind);
            clear();
            if (old)
                put_file("index", "old");
            CHECK(publish_new(old, &err) == TN_OK);
            check_state(true, NULL);
        }
}

/* ---- every call in turn ---- */

static int calls_left;

static bool call_fails(int error_number)
{
    if (--calls_left != 0)
        return false;
    errno = error_number;
    return true;
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t n, off_t at)
{
    return call_fails(ENOSPC) ? -1 : real_calls.pwrite(fd, data, n, at);
}

static int faulty_fallocate(int fd, int mode, off_t at, off_t n)
{
    return call_fails(ENOSPC) ? -1 : real_calls.fallocate(fd, mode, at, n);
}

static int faulty_ftruncate(int fd, off_t size)
{
    return call_fails(EIO) ? -1 : real_calls.ftruncate(fd, size);
}

static int faulty_fsync(int fd)
{
    return call_fails(EIO) ? -1 : no_sync(fd);
}

static int faulty_linkat(int from_folder, const char *from, int to, const char *to_name, int flags)
{
    return call_fails(EIO) ? -1 : real_calls.linkat(from_folder, from, to, to_name, flags);
}

static int faulty_renameat2(int from_folder, const char *from, int to, const char *to_name, unsigned flags)
{
    return call_fails(EIO) ? -1 : real_calls.renameat2(from_folder, from, to, to_name, flags);
}

static void make_faulty(int kind)
{
    use_file_system(kind);
    tn_sink_calls.pwrite = faulty_pwrite;
    tn_sink_calls.fallocate = faulty_fallocate;
    tn_sink_calls.ftruncate = faulty_ftruncate;
    tn_sink_calls.fsync = faulty_fsync;
    tn_sink_calls.linkat = faulty_linkat;
    if (kind < 2)
        tn_sink_calls.renameat2 = faulty_renameat2;
}

/* The last sync fails when all is in place, and the text says so; any other failure leaves everything as
 * it was. */
static void whatever_call_fails_all_appear_or_none(void)
{
    for (int kind = 0; kind < 3; kind++)
        for (int old = 0; old < 2; old++) {
            int failures = 0, late = 0;
            for (int n = 1;; n++) {
                tn_error err = { .text = "" };
                clear();
                if (old)
                    put_file("index", "old");
                make_faulty(kind);
                calls_left = n;
                tn_status status = publish_new(old, &err);
                bool reached = calls_left <= 0;
                tn_sink_calls = real_calls;
                bool in_place = strstr(line_of(&err), "is in its place") != NULL;
                late += in_place;
                failures += status != TN_OK;
                CHECK(!status || in_place || strstr(line_of(&err), "(nothing was replaced)"));
                check_state(!status || in_place, old ? "old" : NULL);
                if (!reached)
                    break;
            }
            CHECK(failures > 20 && late == 1);
        }
}

/* ---- names ---- */

static void a_name_that_is_taken_stops_the_set(void)
{
    for (int i = 0; i < MEMBERS; i++) {
        tn_error err = { .text = "" };
        clear();
        put_file("index", "old");
        put_file(member_name(i).text, "another's");
        CHECK(publish_new(true, &err) == TN_ERR_CHANGED && strstr(line_of(&err), "try again"));
        CHECK(strstr(line_of(&err), member_name(i).text) && file_is(member_name(i).text, "another's") &&
              file_is("index", "old"));
        CHECK(count_entries(folder) == 2);
        CHECK(unlink(in_folder("index").text) == 0 && publish_new(false, &err) == TN_ERR_EXISTS);
        CHECK(count_entries(folder) == 1);
    }
    clear();
    put_file("index", "old");
    CHECK(publish_new(false, NULL) == TN_ERR_EXISTS);
    check_state(false, "old");
}

/* ---- others in the same folder ---- */

static tn_sink_set *half_written(void)
{
    tn_sink_set *set;
    tn_sink *sinks[MEMBERS];
    CHECK(tn_sink_set_open(in_folder("index").text, NULL, &set, NULL) == TN_OK);
    tn_sink_set_limit(set, LIMIT);
    CHECK(write_members(set, sinks, INT_MAX, NULL) == TN_OK);
    return set;
}

static void another_sink_leaves_a_set_that_is_being_written(void)
{
    tn_sink_set *set = half_written();
    tn_sink *other;
    CHECK(count_entries(folder) == 1);          /* where the sleeping ones are */
    CHECK(tn_sink_open(in_folder("other").text, true, &other, NULL) == TN_OK);
    tn_sink_abandon(other);
    CHECK(count_entries(folder) == 1);
    tn_sink_set_close(set);
    CHECK(count_entries(folder) == 0);
}

static void members_are_like_the_file_they_replace(void)
{
    tn_sink_set *set;
    tn_sink *member, *last;
    struct stat st;
    put_file("old", "old");
    CHECK(chmod(in_folder("old").text, 0640) == 0);
    CHECK(tn_sink_set_open(in_folder("index").text, in_folder("old").text, &set, NULL) == TN_OK);
    CHECK(tn_sink_set_add(set, &member, NULL) == TN_OK);
    CHECK(tn_sink_open(in_folder("index").text, true, &last, NULL) == TN_OK);
    CHECK(tn_sink_set_publish(set, &(tn_sink_member){ member, "new", 3 }, 1, last, 0, NULL) == TN_OK);
    tn_sink_set_close(set);
    CHECK(stat(in_folder("new").text, &st) == 0 && (st.st_mode & 0777) == 0640 && st.st_size == 3);
}

static mode_t mode_of_new(int i)
{
    struct stat st;
    CHECK(stat(in_folder(member_name(i).text).text, &st) == 0);
    return st.st_mode & 07777;
}

static void members_are_like_the_file_that_a_link_leads_to(void)
{
    put_file("secret", "old");
    CHECK(chmod(in_folder("secret").text, 0600) == 0 && symlink("secret", in_folder("link").text) == 0);
    like = "link";
    CHECK(publish_new(false, NULL) == TN_OK);
    like = NULL;
    CHECK(mode_of_new(0) == 0600 && mode_of_new(MEMBERS - 1) == 0600);
}

/* Those that were asleep are opened again, though their owner may only read them. */
static void members_of_a_set_of_read_only_files_are_written(void)
{
    enum { WRITER = 12345 };
    tn_error err = { .text = "" };
    bool root = geteuid() == 0;
    for (int kind = 0; kind < 3; kind++) {
        use_file_system(kind);
        clear();
        CHECK(!root || (chown(folder, WRITER, WRITER) == 0 && setegid(WRITER) == 0 && seteuid(WRITER) == 0));
        put_file("old", "old");
        CHECK(chmod(in_folder("old").text, 0440) == 0);
        like = "old";
        tn_status status = publish_new(false, &err);
        like = NULL;
        CHECK(!root || (seteuid(0) == 0 && setegid(0) == 0));
        assert_string_equal(said_of(&err), "");
        CHECK(status == TN_OK && unlink(in_folder("old").text) == 0);
        check_state(true, NULL);
        for (int i = 0; i < MEMBERS; i++)
            CHECK(mode_of_new(i) == 0440);
    }
}

/* ---- removing ---- */

static int told;

static bool stop(void *context, const char *removed, int error_number)
{
    CHECK(strcmp(removed, context) == 0 && error_number == EISDIR);
    told++;
    return false;
}

static void look_at(tn_obsolete *old)
{
    struct stat st;
    if (lstat(in_folder(old->name).text, &st) == 0)
        old->seen = tn_identity_of(&st);
}

static void what_cannot_be_removed_is_told(void)
{
    tn_obsolete old[] = { { .name = "a" }, { .name = "gone" }, { .name = "b" }, { .name = "c" } };
    tn_sink_set *set;
    put_file("a", "");
    put_file("c", "");
    CHECK(mkdir(in_folder("b").text, 0755) == 0);
    for (size_t i = 0; i < 4; i++)
        look_at(&old[i]);
    CHECK(tn_sink_set_open(in_folder("index").text, NULL, &set, NULL) == TN_OK);
    static char b[] = "b";
    tn_sink_set_remove(set, old, 4, stop, b);
    tn_sink_set_close(set);
    CHECK(told == 1 && count_entries(folder) == 2 && file_is("c", ""));
}

static bool go_on(void *context, const char *left, int error_number)
{
    CHECK(error_number == 0);
    strcat(strcat(context, " "), left);
    return true;
}

/* Somebody else's work is not removed in place of the file that was obsolete. */
static void what_has_changed_is_left(void)
{
    tn_obsolete old[] = { { .name = "kept" }, { .name = "replaced" }, { .name = "written" },
                          { .name = "new" } };
    char left[64] = "";
    tn_sink_set *set;
    for (size_t i = 0; i < 3; i++) {
        put_file(old[i].name, "old");
        look_at(&old[i]);
    }
    CHECK(rename(in_folder("replaced").text, in_folder("elsewhere").text) == 0);
    put_file("replaced", "new");
    put_file("written", "longer");
    put_file("new", "new");
    CHECK(tn_sink_set_open(in_folder("index").text, NULL, &set, NULL) == TN_OK);
    CHECK(tn_sink_set_check_old(set, &old[0], NULL) == TN_OK);
    CHECK(tn_sink_set_check_old(set, &old[1], NULL) == TN_ERR_CHANGED);
    tn_sink_set_remove(set, old, 4, go_on, left);
    tn_sink_set_close(set);
    assert_string_equal(left, " replaced written new");
    CHECK(file_is("replaced", "new") && file_is("written", "longer") && file_is("new", "new"));
    CHECK(count_entries(folder) == 4);
}

static bool named_before, there_before;     /* a member, and the old file, when the folder was locked */
static int locks;

static int watch_lock(int fd, int how)
{
    struct stat st, ours;
    CHECK(fstat(fd, &st) == 0 && stat(folder, &ours) == 0);
    if (st.st_ino == ours.st_ino && st.st_dev == ours.st_dev) {
        locks++;
        named_before = access(in_folder(member_name(0).text).text, F_OK) == 0;
        there_before = access(in_folder("old").text, F_OK) == 0;
    }
    return real_calls.flock(fd, how);
}

/* Else of three programs one could remove what the second has named after the third had removed it. */
static void the_folder_is_locked_while_names_are_given_and_removed(void)
{
    tn_obsolete old = { .name = "old" };
    tn_sink_set *set;
    tn_sink_calls.flock = watch_lock;
    CHECK(publish_new(false, NULL) == TN_OK && locks == 1 && !named_before);
    put_file("old", "old");
    look_at(&old);
    CHECK(tn_sink_set_open(in_folder("index").text, NULL, &set, NULL) == TN_OK);
    tn_sink_set_remove(set, &old, 1, go_on, NULL);
    CHECK(locks == 2 && there_before && access(in_folder("old").text, F_OK) != 0);
    int other = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(other >= 0 && real_calls.flock(other, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    tn_sink_set_close(set);
    CHECK(real_calls.flock(other, LOCK_EX | LOCK_NB) == 0 && close(other) == 0);
}

int main(void)
{
#define IN_FOLDER(test) { #test, (CMUnitTestFunction)(void (*)(void))test, set_up, restore_calls, NULL }
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_set_appears_whole_with_few_descriptors),
        IN_FOLDER(whatever_call_fails_all_appear_or_none),
        IN_FOLDER(a_name_that_is_taken_stops_the_set),
        IN_FOLDER(another_sink_leaves_a_set_that_is_being_written),
        IN_FOLDER(members_are_like_the_file_they_replace),
        IN_FOLDER(members_are_like_the_file_that_a_link_leads_to),
        IN_FOLDER(members_of_a_set_of_read_only_files_are_written),
        IN_FOLDER(what_cannot_be_removed_is_told),
        IN_FOLDER(what_has_changed_is_left),
        IN_FOLDER(the_folder_is_locked_while_names_are_given_and_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
