/* pipeline/work_folder.c - making, reading and removing the folder of a work. */
#include "pipeline/work_folder.h"
#include "bytes/claims.h"
#include "bytes/identity.h"
#include "bytes/place.h"
#include "bytes/source.h"
#include "bytes/temporary.h"
#include "pipeline/plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, LOCK_SECONDS = 60 };

static const char *const folders[] = { "files", "pieces", "processes", "uploads", "ranks" };
enum { FOLDERS = sizeof folders / sizeof *folders };

/* Whose files are that this process makes there: a server may map the user to another (root_squash of NFS,
 * which has no unnamed files). */
static uid_t owner_of_new(int folder)
{
    char name[TN_TEMPORARY_NAME];
    struct stat st;
    uid_t owner = geteuid();
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bool named = fd < 0 && tn_temporary_name(name);
    if (named)
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && fstat(fd, &st) == 0)
        owner = st.st_uid;
    if (fd >= 0)
        close(fd);
    if (named)
        unlinkat(folder, name, 0);
    return owner;
}

static tn_status check_own(int folder, tn_error *err)
{
    struct stat st;
    if (fstat(folder, &st) != 0)
        return tn_fail_errno(err, errno, "cannot look at it");
    if (st.st_uid == geteuid())
        return TN_OK;
    uid_t owner = owner_of_new(folder);
    if (st.st_uid == owner)
        return TN_OK;
    return tn_fail(err, TN_ERR_IO, "it belongs to user %lu, who could exchange what is in it, and new files "
                   "in it to user %lu: expected a work folder of one's own", (unsigned long)st.st_uid,
                   (unsigned long)owner);
}

/* What a slash behind the name of a link would lead to is not what would be removed. */
static int open_folder(const char *path)
{
    char name[PATH_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, path, n);
    name[n] = '\0';
    int fd = open(name, FOLDER_FLAGS), problem = errno;
    struct stat st;
    bool is_link = fd < 0 && lstat(name, &st) == 0 && S_ISLNK(st.st_mode);
    errno = is_link ? ELOOP : problem;
    return fd;
}

tn_status tn_work_folder_open(const char *path, int *folder, tn_error *err)
{
    *folder = open_folder(path);
    if (*folder < 0 && errno == ENOENT)
        return TN_OK;
    if (*folder < 0 && errno == ELOOP)
        return tn_fail(err, TN_ERR_IO, "is a symbolic link: expected the folder itself");
    if (*folder < 0)
        return tn_fail_errno(err, errno, "cannot open it as a work folder");
    tn_status status = check_own(*folder, err);
    if (status) {
        close(*folder);
        *folder = -1;
    }
    return status;
}

static tn_status make_folder(const char *path, int *folder, tn_error *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return tn_fail_errno(err, errno, "cannot make the work folder");
    TN_TRY(tn_work_folder_open(path, folder, err));
    return *folder >= 0 ? TN_OK : tn_claims_fail(err, ENOENT, "the work folder");
}

/* ---- what belongs to a work folder ---- */

typedef bool (*visit_fn)(int folder, const char *name, const void *context);

/* Visits each name in an open folder until one gives true. */
static bool any_name(int folder, visit_fn visit, const void *context)
{
    bool found = false;
    int fd = openat(folder, ".", FOLDER_FLAGS);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; !found && dir && (entry = readdir(dir)) != NULL;)
        found = visit(folder, entry->d_name, context);
    if (dir)
        closedir(dir);
    return found;
}

static bool is_entry(int folder, const char *name, const void *unused)
{
    (void)folder;
    (void)unused;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* NFS keeps a removed file that is open as .nfsXXXX. */
static bool is_own_name(const char *name)
{
    static const char *const files[] = { "plan.json", "plan.lock", "finish.lock", "published", "no-locks",
                                         "replaces" };
    bool own = tn_is_temporary_name(name) || tn_begins_with(name, ".nfs");
    for (size_t i = 0; i < sizeof files / sizeof *files && !own; i++)
        own = strcmp(name, files[i]) == 0;
    for (size_t i = 0; i < FOLDERS && !own; i++)
        own = strcmp(name, folders[i]) == 0;
    return own;
}

static bool is_foreign(int folder, const char *name, const void *unused)
{
    return is_entry(folder, name, unused) && !is_own_name(name);
}

static tn_status check_folder(int folder, tn_error *err)
{
    if (faccessat(folder, "plan.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0 || !any_name(folder, is_entry, NULL))
        return TN_OK;
    bool foreign = any_name(folder, is_foreign, NULL);
    if (!foreign && faccessat(folder, "plan.lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return TN_OK;           /* another process is making it, or was killed then */
    return tn_fail(err, TN_ERR_CORRUPT, "expected a work folder, an empty folder or a new name "
                   "but found a folder with other files: it is left as it is");
}

static tn_status fill_folder(int folder, tn_error *err)
{
    for (size_t i = 0; i < FOLDERS; i++)
        if (mkdirat(folder, folders[i], 0700) != 0 && errno != EEXIST)
            return tn_claims_fail(err, errno, "the work folder");
    return TN_OK;
}

tn_status tn_work_folder_lock(int folder, const char *name, int *lock, tn_error *err)
{
    *lock = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*lock < 0)
        return tn_claims_fail(err, errno, "the work folder");
    if (tn_identity_lock(*lock, LOCK_SECONDS) != TN_LOCK_BUSY)
        return TN_OK;
    close(*lock);
    *lock = -1;
    return tn_fail(err, TN_ERR_IO, "another process holds %s for more than %d seconds", name, LOCK_SECONDS);
}

tn_status tn_work_folder_plan(int folder, tn_arena *arena, tn_text *text, bool *there, tn_error *err)
{
    tn_source *source = NULL;
    const uint8_t *bytes = NULL;
    int fd = openat(folder, "plan.json", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    *there = fd >= 0;
    if (fd < 0)
        return errno == ENOENT ? TN_OK : tn_fail_errno(err, errno, "cannot open its plan.json");
    tn_status status = tn_source_open_fd(fd, TN_IO_PREAD, &source, err);
    close(fd);
    uint64_t n = status ? 0 : tn_source_size(source);
    if (!status)
        status = tn_index_check_size(n, 0, err);
    if (!status)
        status = tn_source_copy(source, 0, n, arena, &bytes, err);
    if (!status)
        *text = (tn_text){ (const char *)bytes, (size_t)n };
    tn_source_close(source);
    return status;
}

static bool write_text(int fd, tn_text text)
{
    for (size_t at = 0; at < text.len;) {
        ssize_t n = write(fd, text.ptr + at, text.len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return fsync(fd) == 0;
}

static tn_status put_plan(int folder, tn_text text, tn_error *err)
{
    char name[TN_TEMPORARY_NAME];
    if (!tn_temporary_name(name))
        return tn_fail(err, TN_ERR_IO, "the system gives no random bytes");
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_text(fd, text);
    if (good && linkat(folder, name, folder, "plan.json", 0) != 0 && errno != EEXIST)
        good = renameat(folder, name, folder, "plan.json") == 0;
    int problem = errno;
    if (fd >= 0)
        close(fd);
    unlinkat(folder, name, 0);
    return good ? TN_OK : tn_fail_errno(err, problem, "cannot write its plan.json");
}

/* The plan that is in the folder must be the one of this process. */
static tn_status compare(tn_text saved, tn_text own, tn_error *err)
{
    tn_plan_head there = { 0 }, here = { 0 };
    tn_arena arena = { 0 };
    tn_status status = tn_plan_read_head(saved.ptr, saved.len, &arena, &there, err);
    if (!status)
        status = tn_plan_compare(saved, own, err);
    if (status == TN_ERR_CHANGED && tn_plan_read_head(own.ptr, own.len, &arena, &here, NULL) == TN_OK) {
        const char *verb = there.verb ? there.verb : "convert", *asked = here.verb ? here.verb : "convert";
        if (strcmp(verb, asked) != 0)
            tn_fail(err, status, "it is the work folder of %s, not of %s", tn_quote_z(verb).text,
                    tn_quote_z(asked).text);
    }
    if (status == TN_ERR_CHANGED)
        tn_and_say(status, there.verb ? "; abandon the work that is there first"
                                      : "; finish or abandon the work that is there first", err);
    tn_arena_free(&arena);
    return status;
}

/* Who comes first makes what belongs to the plan, and then the plan. */
static tn_status agree(const char *path, int folder, const tn_work_joining *j, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_text saved = { NULL, 0 };
    bool there = false;
    tn_status status = tn_work_folder_plan(folder, &arena, &saved, &there, err);
    bool first = !status && !there;
    if (first && j->first)
        status = j->first(j->context, err);
    if (!status && first)
        status = put_plan(folder, j->plan, err);
    if (!status && first)       /* where locks do not work another process may have been faster */
        status = tn_work_folder_plan(folder, &arena, &saved, &there, err);
    if (!status && !there)
        status = tn_claims_fail(err, ENOENT, "the work folder");
    if (!status)
        status = tn_in_file(compare(saved, j->plan, err), path, err);
    if (status && first)
        (void)tn_work_folder_remove(folder, path, NULL);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_work_folder_join(const char *path, int *folder, const tn_work_joining *j, tn_error *err)
{
    int lock = -1;
    if (tn_utf8_valid(j->plan.ptr, j->plan.len) != j->plan.len)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "a name or path is not in UTF-8, which a plan must be: "
                       "only one process alone can use it");
    if (*folder < 0)
        TN_TRY(make_folder(path, folder, err));
    TN_TRY(check_folder(*folder, err));
    TN_TRY(tn_work_folder_lock(*folder, "plan.lock", &lock, err));
    tn_status status = fill_folder(*folder, err);
    if (!status)
        status = agree(path, *folder, j, err);
    close(lock);
    return status;
}

bool tn_work_folder_is_gone(int folder, const char *path)
{
    struct stat open, there;
    return fstat(folder, &open) != 0 || lstat(path, &there) != 0 || !tn_same_file(&open, &there);
}

/* ---- removing ---- */

static bool unlink_entry(int folder, const char *name, const void *unused)
{
    if (is_entry(folder, name, unused))
        unlinkat(folder, name, 0);
    return false;
}

static bool unlink_own(int folder, const char *name, const void *unused)
{
    return is_own_name(name) && unlink_entry(folder, name, unused);
}

static void empty_folder(int folder, const char *name)
{
    int fd = openat(folder, name, FOLDER_FLAGS);
    if (fd >= 0) {
        any_name(fd, unlink_entry, NULL);
        close(fd);
    }
}

/* Only what a work folder has. */
static void empty_work(int folder)
{
    for (size_t i = 0; i < FOLDERS; i++) {
        empty_folder(folder, folders[i]);
        unlinkat(folder, folders[i], AT_REMOVEDIR);
    }
    any_name(folder, unlink_own, NULL);
}

/* Somebody has put files there: they stay where they are. */
static tn_status remove_own(int folder, tn_error *err)
{
    unlinkat(folder, "plan.json", 0);           /* from now on it is no work folder */
    empty_work(folder);
    return tn_fail(err, TN_ERR_IO, "the work folder has other files, which are left as they are");
}

/* The name that a folder has while it is removed, beside its own. */
static bool removed_name(char name[static 40])
{
    char random[TN_TEMPORARY_NAME];
    bool good = tn_temporary_name(random);
    snprintf(name, 40, ".tenon-work-%.6s", good ? random + sizeof ".tenon-" - 1 : "");
    return good;
}

static bool is_removed_name(const char *name)
{
    return tn_begins_with(name, ".tenon-work-") && strlen(name) == sizeof ".tenon-work-" - 1 + 6;
}

/* Processes that have just come may still put files there.  Returns 0 or errno. */
static int remove_all(int folder, int beside, const char *name)
{
    enum { TRIES = 20 };
    const struct timespec pause = { .tv_sec = 0, .tv_nsec = 5000000 };
    for (int i = 0; i < TRIES; i++) {
        empty_work(folder);
        if (unlinkat(beside, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        nanosleep(&pause, NULL);
    }
    return errno;
}

static int open_beside(const char *path, char name[static 256])
{
    char folder[PATH_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin && path[begin - 1] != '/')
        begin--;
    if (n - begin >= 256 || begin >= sizeof folder)
        return -1;
    memcpy(name, path + begin, n - begin);
    name[n - begin] = '\0';
    memcpy(folder, path, begin);
    folder[begin] = '\0';
    return open(begin ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- names of a process that was killed while it published ---- */

static bool has_second_name(int folder, const char *name, const void *unused)
{
    struct stat st;
    (void)unused;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1;
}

bool tn_work_folder_has_names(int folder)
{
    int files = openat(folder, "files", FOLDER_FLAGS);
    bool has = files >= 0 && any_name(files, has_second_name, NULL);
    if (files >= 0)
        close(files);
    return has;
}

static bool remove_name(int folder, const char *name, const void *context)
{
    const struct stat *own = context;
    struct stat there;
    if (fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && tn_same_file(&there, own))
        unlinkat(folder, name, 0);
    return false;
}

static bool take_back(int files, const char *name, const void *context)
{
    struct stat own;
    const int *beside = context;
    if (has_second_name(files, name, NULL) && fstatat(files, name, &own, AT_SYMLINK_NOFOLLOW) == 0)
        any_name(*beside, remove_name, &own);
    return false;
}

static bool is_temporary_link(int folder, const char *name, const void *context)
{
    struct stat there;
    return tn_is_temporary_name(name) && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           tn_same_file(&there, context);
}

/* Whether the head had its last name.  Then all was published, and somebody has renamed it. */
static bool was_published(int files, int beside)
{
    struct stat own;
    return has_second_name(files, "head", NULL) && fstatat(files, "head", &own, AT_SYMLINK_NOFOLLOW) == 0 &&
           !any_name(beside, is_temporary_link, &own);
}

void tn_work_folder_take_back(int folder, const char *output)
{
    char name[256];
    int files = openat(folder, "files", FOLDER_FLAGS), beside = open_beside(output, name);
    if (files >= 0 && beside >= 0 && !was_published(files, beside))
        any_name(files, take_back, &beside);
    if (files >= 0)
        close(files);
    if (beside >= 0)
        close(beside);
}

/* ---- ranks that come late ---- */

static void name_rank(uint32_t rank, char name[static 32])
{
    snprintf(name, 32, "ranks/%" PRIu32, rank);
}

bool tn_work_folder_has_rank(int folder, uint32_t rank)
{
    char name[32];
    name_rank(rank, name);
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void tn_work_folder_add_rank(int folder, uint32_t rank)
{
    char name[32];
    name_rank(rank, name);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

size_t tn_work_folder_ranks(int folder)
{
    size_t n = 0;
    int fd = openat(folder, "ranks", FOLDER_FLAGS);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

/* ---- what was published ---- */

static bool look_far(const char *url, char version[TN_OUTPUT_VERSION], uint64_t *size)
{
    tn_source *source = NULL;
    if (tn_source_open(url, TN_IO_PREAD, &source, NULL) != TN_OK)
        return false;
    const char *found = tn_source_version(source);
    snprintf(version, TN_OUTPUT_VERSION, "%s", found ? found : "");
    *size = tn_source_size(source);
    tn_source_close(source);
    return true;
}

/* Inode and size; numbers of devices are not the same on all machines. */
bool tn_output_look(const char *output, char version[TN_OUTPUT_VERSION], uint64_t *size)
{
    struct stat st;
    version[0] = '\0';
    if (tn_is_url(output))
        return look_far(output, version, size);
    if (stat(output, &st) != 0)
        return false;
    *size = (uint64_t)st.st_size;
    snprintf(version, TN_OUTPUT_VERSION, "%llu %lld", (unsigned long long)st.st_ino, (long long)st.st_size);
    return true;
}

/* What the output is now. */
static bool put_version(int folder, const char *name, const char *version)
{
    char own[TN_TEMPORARY_NAME];
    int fd = tn_temporary_name(own) ? openat(folder, own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool good = fd >= 0 && write_text(fd, (tn_text){ version, strlen(version) }) &&
                renameat(folder, own, folder, name) == 0;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !good)
        unlinkat(folder, own, 0);
    return good;
}

ssize_t tn_work_folder_text(int folder, const char *name, char *text, size_t room)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n >= 0)
        text[n] = '\0';
    return n;
}

static bool get_version(int folder, const char *name, char version[TN_OUTPUT_VERSION])
{
    return tn_work_folder_text(folder, name, version, TN_OUTPUT_VERSION) >= 0;
}

tn_status tn_work_folder_note_output(int folder, const char *output, tn_error *err)
{
    char version[TN_OUTPUT_VERSION];
    uint64_t size;
    (void)tn_output_look(output, version, &size);       /* nothing is there: "" */
    return put_version(folder, "replaces", version) ? TN_OK : tn_claims_fail(err, errno, "the work folder");
}

void tn_work_folder_noted(int folder, char version[TN_OUTPUT_VERSION])
{
    if (!get_version(folder, "replaces", version))
        version[0] = '\0';
}

bool tn_work_folder_is_noted(int folder, const char *output)
{
    char noted[TN_OUTPUT_VERSION], found[TN_OUTPUT_VERSION];
    uint64_t size;
    return !tn_output_look(output, found, &size) ||
           (get_version(folder, "replaces", noted) && strcmp(found, noted) == 0);
}

bool tn_work_folder_mark(int folder, const char *output)
{
    char version[TN_OUTPUT_VERSION];
    uint64_t size;
    return tn_output_look(output, version, &size) && put_version(folder, "published", version);
}

/* An empty one takes its place: a process that has it open and finds no records cannot make pieces again. */
static void renew_folder(int folder, const char *name)
{
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        empty_folder(folder, name);
        if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY)
            break;
    }
    (void)mkdirat(folder, name, 0700);
}

bool tn_work_folder_leave(int folder, const char *output)
{
    if (!tn_work_folder_was_left(folder, output, NULL) && !tn_work_folder_mark(folder, output))
        return false;
    for (size_t i = 0; i < FOLDERS; i++)
        if (strcmp(folders[i], "ranks") != 0)
            renew_folder(folder, folders[i]);
    return true;
}

bool tn_work_folder_was_left(int folder, const char *output, bool *same)
{
    char expected[TN_OUTPUT_VERSION], found[TN_OUTPUT_VERSION];
    uint64_t size;
    if (!get_version(folder, "published", found))
        return false;
    if (same)
        *same = tn_output_look(output, expected, &size) && strcmp(expected, found) == 0;
    return true;
}

/* ---- the end ---- */

tn_status tn_work_folder_remove(int folder, const char *path, tn_error *err)
{
    char name[256], gone[40];
    struct stat here, there;
    int beside = open_beside(path, name);
    if (beside < 0 || !removed_name(gone))
        return tn_fail_errno(err, errno, "cannot remove the work folder");
    (void)flock(folder, LOCK_EX | LOCK_NB);     /* so that nobody else removes it meanwhile */
    bool same = fstat(folder, &here) == 0 && fstatat(beside, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                tn_same_file(&here, &there);
    int problem = 0;
    if (same && any_name(folder, is_foreign, NULL)) {
        close(beside);
        return remove_own(folder, err);
    }
    if (same && renameat(beside, name, beside, gone) == 0) {
        problem = remove_all(folder, beside, gone);
    } else if (same && errno != ENOENT) {
        problem = errno;
    }
    close(beside);
    return problem ? tn_fail_errno(err, problem, "cannot remove the work folder") : TN_OK;
}

void tn_work_folder_clean(const char *path)
{
    char name[256];
    int beside = open_beside(path, name), fd = beside >= 0 ? openat(beside, ".", FOLDER_FLAGS) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        int old = is_removed_name(entry->d_name) ? openat(beside, entry->d_name, FOLDER_FLAGS) : -1;
        if (old >= 0 && tn_identity_lock(old, 0) == TN_LOCK_HELD && check_own(old, NULL) == TN_OK) {
            empty_work(old);
            unlinkat(beside, entry->d_name, AT_REMOVEDIR);
        }
        if (old >= 0)
            close(old);
    }
    if (dir)
        closedir(dir);
    if (beside >= 0)
        close(beside);
}
