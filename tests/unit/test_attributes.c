/* A file that is replaced keeps what it is besides its bytes, and nobody gets access who had none. */
#include "support.h"
#include "folder.h"

#include "bytes/sink.h"
#include "bytes/sink_calls.h"
#include "file_systems.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define ACL     "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"
#define KEPT    "replaced, but not all of the old file could be kept: "

enum { OWNER = 65533, GROUP = 65532, NAMED = 65531, WRITER = 65534 };

static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

static int set_up(void **state)
{
    int status = keep_calls(state);
    tn_sink_calls.fsync = no_sync;
    umask(022);
    return status;
}

/* What was said last, and how often. */
static char said[600];
static int times;

static void hear(void *context, const char *path, const char *text)
{
    CHECK(context == &times && strcmp(path, "the path") == 0);
    snprintf(said, sizeof said, "%s", text);
    times++;
}

static tn_status publish(tn_sink *s)
{
    times = 0;
    said[0] = '\0';
    tn_sink_listen(s, (tn_listener){ hear, &times, "the path" });
    tn_status status = tn_sink_write(s, 0, "new text", 8, NULL);
    CHECK(status == TN_OK);
    return tn_sink_publish(s, 8, NULL);
}

static void replace(const char *name)
{
    tn_sink *s;
    CHECK(tn_sink_open(in_folder(name).text, true, &s, NULL) == TN_OK);
    CHECK(publish(s) == TN_OK && file_is(name, "new text"));
}

static struct stat about(const char *name)
{
    struct stat st;
    CHECK(lstat(in_folder(name).text, &st) == 0);
    return st;
}

static mode_t mode_of(const char *name)
{
    return about(name).st_mode & 07777;
}

static void make(const char *name, mode_t mode)
{
    put_file(name, "old");
    CHECK(chmod(in_folder(name).text, mode) == 0);
}

static void give_to_others(const char *name, mode_t mode)
{
    put_file(name, "old");
    CHECK(chown(in_folder(name).text, OWNER, GROUP) == 0 && chmod(in_folder(name).text, mode) == 0);
}

static void need_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("SKIPPED: only root can give files to other users\n");
    skip();
}

/* ---- attributes as the system has them ---- */

static void set_attribute(const char *name, const char *attribute, const void *value, size_t n)
{
    if (setxattr(in_folder(name).text, attribute, value, n, 0) == 0)
        return;
    if (errno != EOPNOTSUPP)
        fail_msg("%s: %s", attribute, strerror(errno));
    print_message("SKIPPED: the file system of %s has no %s\n", folder, attribute);
    skip();
}

static bool has_attribute(const char *name, const char *attribute, const void *value, size_t n)
{
    uint8_t found[256];
    ssize_t m = getxattr(in_folder(name).text, attribute, found, sizeof found);
    return m == (ssize_t)n && memcmp(found, value, n) == 0;
}

static bool lacks_attribute(const char *name, const char *attribute)
{
    return getxattr(in_folder(name).text, attribute, NULL, 0) < 0 && errno == ENODATA;
}

/* An access list as the kernel takes it, little-endian: version 2, then tag, bits and id of each entry. */
typedef struct acl { uint8_t bytes[4 + 5 * 8]; } acl;

static acl make_acl(unsigned owner, unsigned named, unsigned group, unsigned mask, unsigned other)
{
    const unsigned entries[5][3] = { { 1, owner, UINT32_MAX }, { 2, named, NAMED }, { 4, group, UINT32_MAX },
                                     { 16, mask, UINT32_MAX }, { 32, other, UINT32_MAX } };
    acl a = { .bytes = { 2 } };
    for (size_t i = 0; i < 5; i++) {
        uint8_t *at = a.bytes + 4 + 8 * i;
        at[0] = (uint8_t)entries[i][0];
        at[2] = (uint8_t)entries[i][1];
        for (int k = 0; k < 4; k++)
            at[4 + k] = (uint8_t)(entries[i][2] >> 8 * k);
    }
    return a;
}

/* ---- what is kept ---- */

static void everything_is_kept_that_the_system_lets_us_keep(void)
{
    const acl list = make_acl(7, 4, 0, 6, 0);
    need_root();
    for (int kind = 0; kind < 2; kind++) {
        tn_sink_calls.open_tmpfile = kind ? no_tmpfile : real_calls.open_tmpfile;
        give_to_others("file", 0640);
        set_attribute("file", "user.origin", "somewhere", 9);
        set_attribute("file", "user.empty", "", 0);
        set_attribute("file", "trusted.tenon", "t", 1);
        set_attribute("file", ACL, list.bytes, sizeof list.bytes);
        struct stat before = about("file");
        replace("file");
        struct stat after = about("file");
        CHECK(after.st_ino != before.st_ino && after.st_mode == before.st_mode);
        CHECK(after.st_uid == OWNER && after.st_gid == GROUP);
        CHECK(has_attribute("file", "user.origin", "somewhere", 9));
        CHECK(has_attribute("file", "user.empty", "", 0) && has_attribute("file", "trusted.tenon", "t", 1));
        CHECK(has_attribute("file", ACL, list.bytes, sizeof list.bytes));
        CHECK(times == 0 && count_entries(folder) == 1);
        CHECK(unlink(in_folder("file").text) == 0);
    }
}

static void attributes_of_a_file_that_may_not_be_written_are_kept(void)
{
    make("file", 0644);
    set_attribute("file", "user.origin", "somewhere", 9);
    CHECK(chmod(in_folder("file").text, 0444) == 0);
    replace("file");
    CHECK(mode_of("file") == 0444 && has_attribute("file", "user.origin", "somewhere", 9) && times == 0);
}

/* The folder's list for new files is not for those that take the place of others. */
static void the_list_of_the_folder_gives_nobody_access_to_an_old_file(void)
{
    const acl list = make_acl(7, 7, 7, 7, 7);
    make("file", 0640);
    set_attribute(".", DEFAULT, list.bytes, sizeof list.bytes);
    for (int kind = 0; kind < 2; kind++) {
        tn_sink_calls.open_tmpfile = kind ? no_tmpfile : real_calls.open_tmpfile;
        replace("file");
        CHECK(lacks_attribute("file", ACL) && mode_of("file") == 0640 && times == 0);
    }
    replace("new");
    CHECK(!lacks_attribute("new", ACL) && mode_of("new") == 0666);      /* as for every new file there */
}

static void what_is_being_written_is_its_owners_alone(void)
{
    tn_sink *s;
    for (int kind = 0; kind < 2; kind++) {
        struct stat st;
        tn_sink_calls.open_tmpfile = kind ? no_tmpfile : real_calls.open_tmpfile;
        make("file", 0666);
        CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
        CHECK(fstat(tn_sink_fd(s), &st) == 0 && (st.st_mode & 07777) == 0600);
        CHECK(publish(s) == TN_OK && mode_of("file") == 0666);
    }
}

static void the_file_that_is_replaced_counts_not_the_one_that_was_there(void)
{
    tn_sink *s;
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    make("file", 0600);                     /* there was none */
    CHECK(publish(s) == TN_OK && mode_of("file") == 0600);
    make("file", 0640);
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    CHECK(unlink(in_folder("file").text) == 0);
    CHECK(publish(s) == TN_OK && mode_of("file") == 0640);
    CHECK(times == 0);
}

static void privileges_of_a_program_are_not_kept_and_that_is_said(void)
{
    static const uint8_t capability[20] = { 1, 0, 0, 2, 0, 4 };     /* version 2: CAP_NET_BIND_SERVICE */
    need_root();
    make("file", 06755);
    replace("file");
    CHECK(mode_of("file") == 0755 && times == 1);
    assert_string_equal(said, KEPT "mode 6755 (now 0755)");
    set_attribute("file", "security.capability", capability, sizeof capability);
    replace("file");
    CHECK(lacks_attribute("file", "security.capability") && mode_of("file") == 0755 && times == 1);
    assert_string_equal(said, KEPT "attribute \"security.capability\"");
}

static void nothing_is_said_of_a_file_that_is_not_replaced(void)
{
    tn_sink *s;
    need_root();
    make("file", 04755);
    CHECK(tn_sink_open(in_folder("file").text, true, &s, NULL) == TN_OK);
    CHECK(unlink(in_folder("file").text) == 0 && mkdir(in_folder("file").text, 0755) == 0);
    CHECK(publish(s) == TN_ERR_IO && times == 0);
}

/* ---- files of others ---- */

/* As another user, who may replace files in the folder: 0 if all went well. */
static int replace_as_another(const char *const *names, size_t n)
{
    CHECK(chmod(folder, 0777) == 0);
    pid_t child = fork();
    if (child == 0) {
        bool good = setgroups(0, NULL) == 0 && setresgid(WRITER, WRITER, WRITER) == 0 &&
                    setresuid(WRITER, WRITER, WRITER) == 0;
        for (size_t i = 0; i < n && good; i++) {
            tn_sink *s;
            good = tn_sink_open(in_folder(names[i]).text, true, &s, NULL) == TN_OK &&
                   tn_sink_publish(s, 0, NULL) == TN_OK;
        }
        _exit(good ? 0 : 1);
    }
    int how = 0;
    CHECK(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
    return WEXITSTATUS(how);
}

typedef struct person { uid_t uid; gid_t gids[2]; } person;

/* What a person may do, as the kernel decides it: the first class that fits. */
static mode_t access_of(const person *p, const struct stat *st)
{
    if (p->uid == st->st_uid)
        return st->st_mode >> 6 & 7;
    return p->gids[0] == st->st_gid || p->gids[1] == st->st_gid ? st->st_mode >> 3 & 7 : st->st_mode & 7;
}

static void nobody_gets_more_access_to_a_file_of_another_user(void)
{
    static const person people[] = {
        { OWNER, { OWNER, GROUP } }, { OWNER, { OWNER, OWNER } }, { OWNER, { OWNER, WRITER } },
        { 65530, { GROUP, 65530 } }, { 65530, { WRITER, 65530 } }, { 65530, { WRITER, GROUP } },
        { 65530, { 65530, 65530 } },
    };
    static char texts[512][8];
    static const char *names[512];
    static struct stat before[512];
    need_root();
    for (unsigned mode = 0; mode < 512; mode++) {
        snprintf(texts[mode], sizeof texts[mode], "%03o", mode);
        names[mode] = texts[mode];
        give_to_others(names[mode], mode);
        before[mode] = about(names[mode]);
    }
    CHECK(replace_as_another(names, 512) == 0);
    for (unsigned mode = 0; mode < 512; mode++) {
        struct stat after = about(names[mode]);
        CHECK(after.st_uid == WRITER && after.st_gid == WRITER && after.st_ino != before[mode].st_ino);
        CHECK((after.st_mode >> 6 & 7) == (mode >> 6 & 7));
        for (size_t i = 0; i < sizeof people / sizeof *people; i++)
            if (access_of(&people[i], &after) & ~access_of(&people[i], &before[mode]))
                fail_msg("%03o became %03o: person %zu got more", mode, (unsigned)after.st_mode & 0777, i);
    }
}

static void a_list_goes_with_its_owner_and_takes_all_access_with_it(void)
{
    static const char *const names[] = { "file" };
    const acl list = make_acl(6, 0, 4, 4, 4);       /* everybody may read it but one */
    need_root();
    give_to_others("file", 0644);
    set_attribute("file", ACL, list.bytes, sizeof list.bytes);
    CHECK(replace_as_another(names, 1) == 0);
    CHECK(lacks_attribute("file", ACL) && mode_of("file") == 0600);
}

static void what_is_lost_is_said_in_full(void)
{
    need_root();
    give_to_others("file", 0664);
    set_attribute("file", "security.tenon", "x", 1);
    set_attribute("file", "user.origin", "somewhere", 9);
    CHECK(chmod(folder, 0777) == 0);
    CHECK(setegid(WRITER) == 0 && seteuid(WRITER) == 0);
    replace("file");
    CHECK(seteuid(0) == 0 && setegid(0) == 0);
    CHECK(times == 1 && has_attribute("file", "user.origin", "somewhere", 9));
    assert_string_equal(said, KEPT "owner 65533, group 65532, attribute \"security.tenon\", "
                        "mode 0664 (now 0644)");
}

static void a_file_that_may_not_be_read_can_be_replaced(void)
{
    need_root();
    give_to_others("file", 0600);
    CHECK(chmod(folder, 0777) == 0);
    CHECK(setegid(WRITER) == 0 && seteuid(WRITER) == 0);
    tn_sink *s;
    tn_status status = tn_sink_open(in_folder("file").text, true, &s, NULL);
    if (!status)
        status = publish(s);
    CHECK(seteuid(0) == 0 && setegid(0) == 0);
    CHECK(status == TN_OK && file_is("file", "new text") && mode_of("file") == 0600);
    assert_string_equal(said, KEPT "owner 65533, group 65532");
}

static void other_names_of_the_old_file_keep_it(void)
{
    make("file", 0640);
    CHECK(link(in_folder("file").text, in_folder("other").text) == 0);
    replace("file");
    CHECK(file_is("other", "old") && about("other").st_nlink == 1);
    CHECK(about("file").st_ino != about("other").st_ino);
}

#define IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, set_up, restore_calls, NULL }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(everything_is_kept_that_the_system_lets_us_keep),
        IN_FOLDER(attributes_of_a_file_that_may_not_be_written_are_kept),
        IN_FOLDER(the_list_of_the_folder_gives_nobody_access_to_an_old_file),
        IN_FOLDER(what_is_being_written_is_its_owners_alone),
        IN_FOLDER(the_file_that_is_replaced_counts_not_the_one_that_was_there),
        IN_FOLDER(privileges_of_a_program_are_not_kept_and_that_is_said),
        IN_FOLDER(nothing_is_said_of_a_file_that_is_not_replaced),
        IN_FOLDER(nobody_gets_more_access_to_a_file_of_another_user),
        IN_FOLDER(a_list_goes_with_its_owner_and_takes_all_access_with_it),
        IN_FOLDER(what_is_lost_is_said_in_full),
        IN_FOLDER(a_file_that_may_not_be_read_can_be_replaced),
        IN_FOLDER(other_names_of_the_old_file_keep_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
