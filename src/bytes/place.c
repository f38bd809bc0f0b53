/* bytes/place.c - the folder and the name that a path leads to. */
#include "bytes/place.h"
#include "base/text.h"
#include "bytes/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef ST_NOSYMFOLLOW
#define ST_NOSYMFOLLOW 0x2000   /* older headers than kernels */
#endif

enum {
    MAX_LINKS = 40,             /* in a row, as in the kernel */
    MAX_TRIES = 100             /* while other programs replace links */
};

tn_status tn_fail_write(tn_error *err, int error_number)
{
    return tn_and_say(tn_fail_errno(err, error_number, "cannot write"), " (nothing was replaced)", err);
}

bool tn_folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 1;
    snprintf(folder, PATH_MAX, "%.*s", length, slash ? path : ".");
    return length < PATH_MAX;
}

/* Opens the folder of `path`, which may be relative to `from`, and keeps the last name. */
static tn_status enter_folder(tn_place *place, int from, const char *path, tn_error *err)
{
    char folder[PATH_MAX];
    const char *name = tn_base_name(path);
    if (!tn_folder_of(path, folder) || strlen(name) >= sizeof place->name)
        return tn_fail_errno(err, ENAMETOOLONG, "cannot open its folder");
    int fd = openat(from, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot open its folder");
    place->folder = fd;
    snprintf(place->name, sizeof place->name, "%s", name);
    return TN_OK;
}

/* Opens the file or link itself; -1 without an error: there is none. */
static tn_status look_at(tn_place *place, int *fd, tn_error *err)
{
    if (place->name[0] == '\0')
        return tn_fail(err, TN_ERR_IO, "is a directory: expected a regular file or none");
    *fd = openat(place->folder, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    place->exists = *fd >= 0;
    if (!place->exists)
        return errno == ENOENT ? TN_OK : tn_fail_write(err, errno);
    if (fstat(*fd, &place->old) == 0)
        return TN_OK;
    int problem = errno;
    close(*fd);
    return tn_fail_write(err, problem);
}

static bool is_link(const tn_place *place)
{
    return place->exists && S_ISLNK(place->old.st_mode);
}

/* The kernel's rules for links, applied to the open link and its open folder, so that they cannot be
 * exchanged in between. */
static tn_status check_link(const tn_place *place, tn_error *err)
{
    struct stat folder;
    struct statvfs fs;
    if (fstat(place->folder, &folder) != 0 || fstatvfs(place->folder, &fs) != 0)
        return tn_fail_write(err, errno);
    if (fs.f_flag & ST_NOSYMFOLLOW)
        return tn_fail_write(err, ELOOP);
    bool of_everybody = (folder.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH);
    if (of_everybody && place->old.st_uid != geteuid() && place->old.st_uid != folder.st_uid)
        return tn_fail(err, TN_ERR_IO, "is a symbolic link of another user (%lu) in a folder "
                       "that everybody may write to: it is not followed; give the path that it leads to",
                       (unsigned long)place->old.st_uid);
    return TN_OK;
}

/* Follows the link `fd` and closes it. */
static tn_status follow_one(tn_place *place, int fd, tn_error *err)
{
    char text[PATH_MAX];
    tn_status status = check_link(place, err);
    ssize_t n = status ? 0 : readlinkat(fd, "", text, sizeof text - 1);
    int problem = errno, from = place->folder;
    close(fd);
    if (status || n < 0)
        return status ? status : tn_fail_write(err, problem);
    text[n] = '\0';
    status = enter_folder(place, from, text, err);
    if (!status)
        close(from);
    return status;
}

/* Whether `place` is the file `seen`, or both do not exist. */
static bool agrees(const tn_place *place, int seen)
{
    struct stat st;
    if (seen < 0 || !place->exists)
        return seen < 0 && !place->exists;
    return fstat(seen, &st) == 0 && tn_same_file(&st, &place->old);
}

/* Follows the link `fd` step by step, because only that finds the folder, also of a file that does not exist
 * yet.  The kernel is asked first where the link leads: *found is false if the steps end elsewhere. */
static tn_status follow(tn_place *place, int fd, bool *found, tn_error *err)
{
    int seen = openat(place->folder, place->name, O_PATH | O_CLOEXEC);
    tn_status status = seen < 0 && errno != ENOENT ? tn_fail_write(err, errno) : TN_OK;
    if (status)
        close(fd);
    for (int i = 0; !status && is_link(place); i++) {
        status = follow_one(place, fd, err);
        if (!status)
            status = look_at(place, &fd, err);
        if (!status && i + 1 == MAX_LINKS && is_link(place)) {
            close(fd);
            status = tn_fail_write(err, ELOOP);
        }
    }
    if (!status && place->exists)
        close(fd);
    *found = !status && agrees(place, seen);
    if (seen >= 0)
        close(seen);
    return status;
}

/* One try; *found is false if something was replaced meanwhile. */
static tn_status find_once(const char *path, tn_place *place, bool *found, tn_error *err)
{
    int fd = -1;
    TN_TRY(enter_folder(place, AT_FDCWD, path, err));
    *found = true;
    tn_status status = look_at(place, &fd, err);
    if (!status && is_link(place))
        status = follow(place, fd, found, err);
    else if (!status && place->exists)
        close(fd);
    if (status || !*found)
        close(place->folder);
    return status;
}

tn_status tn_place_find(const char *path, tn_place *place, tn_error *err)
{
    if (!*path)
        return tn_fail(err, TN_ERR_IO, "the path is empty: expected the name of a file");
    for (int i = 0; i < MAX_TRIES; i++) {
        bool found;
        tn_status status = find_once(path, place, &found, err);
        if (status || found)
            return status;
    }
    return tn_fail(err, TN_ERR_IO, "is a symbolic link that changes all the time: nothing was replaced");
}
