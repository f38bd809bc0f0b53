/* firmware/c_files.c - two files that appear together or not at all, unless the process is killed in
 * between. */
#include "firmware/c_files.h"
#include "bytes/checksum.h"
#include "bytes/sink_calls.h"
#include "bytes/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file that had the name before. */
typedef struct old_file {
    char        link[PATH_MAX + 8]; /* its second name, or "" */
    char        target[PATH_MAX];   /* where the name leads */
    bool        exists;
    struct stat about;
    int         fd;                 /* open, so that its inode is not reused, and locked, so that no sink
                                     * removes the link */
} old_file;

/* ---- opening ---- */

static tn_status make_folder(tn_c_files *files, const char *folder, tn_error *err)
{
    if (strlen(folder) >= sizeof files->folder)
        return tn_fail_errno(err, ENAMETOOLONG, "cannot make the folder");
    if (mkdir(folder, 0777) == 0)
        snprintf(files->folder, sizeof files->folder, "%s", folder);
    else if (errno == ENOENT)
        return tn_fail(err, TN_ERR_IO, "cannot make the folder: expected its parent folder to exist");
    else if (errno != EEXIST)
        return tn_fail_errno(err, errno, "cannot make the folder");
    return TN_OK;
}

static tn_status open_file(tn_c_file *file, const char *folder, const char *name, const char *suffix,
                           bool replace, tn_error *err)
{
    int n = snprintf(file->path, sizeof file->path, "%s/%s%s", folder, name, suffix);
    if (n < 0 || (size_t)n >= sizeof file->path)
        return tn_in_file(tn_fail_errno(err, ENAMETOOLONG, "cannot write"), folder, err);
    return tn_in_file(tn_sink_open(file->path, replace, &file->sink, err), file->path, err);
}

tn_status tn_c_files_open(tn_c_files *files, const char *folder, const char *name, const char *suffix,
                          bool replace, tn_error *err)
{
    memset(files, 0, sizeof *files);
    tn_status status = tn_in_file(make_folder(files, folder, err), folder, err);
    if (!status)
        status = open_file(&files->first, folder, name, suffix, replace, err);
    if (!status)
        status = open_file(&files->second, folder, name, ".h", replace, err);
    if (status)
        tn_c_files_abandon(files);
    return status;
}

tn_status tn_c_file_write(tn_c_file *file, const void *data, size_t n, tn_error *err)
{
    tn_status status = tn_in_file(tn_sink_write(file->sink, file->size, data, n, err), file->path, err);
    file->crc = tn_crc32c(file->crc, data, n);
    file->size += n;
    return status;
}

/* ---- publishing ---- */

static void note_old(old_file *old, const char *path)
{
    memset(old, 0, sizeof *old);
    old->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    old->exists = stat(path, &old->about) == 0;
}

/* Gives the old file a temporary name.  Later sinks remove it if this process dies. */
static void link_old(old_file *old, const char *path)
{
    char name[TN_TEMPORARY_NAME];
    const char *slash = old->exists && realpath(path, old->target) ? strrchr(old->target, '/') : NULL;
    if (old->fd < 0 || !slash || !tn_temporary_name(name))
        return;
    flock(old->fd, LOCK_EX | LOCK_NB);
    int n = snprintf(old->link, sizeof old->link, "%.*s/%s", (int)(slash - old->target), old->target, name);
    if (n < 0 || (size_t)n >= sizeof old->link ||
        tn_sink_calls.linkat(AT_FDCWD, old->target, AT_FDCWD, old->link, 0) != 0)
        old->link[0] = '\0';    /* no links in this file system: it cannot be restored */
}

/* TN_ERR_IO: the second name cannot be removed. */
static tn_status forget_old(old_file *old, tn_error *err)
{
    int problem = old->link[0] && unlink(old->link) != 0 ? errno : 0;
    if (old->fd >= 0)
        close(old->fd);
    if (!problem)
        return TN_OK;
    tn_status status = tn_fail_errno(err, problem, "the new files are in their place, but the old one is "
                                     "still here and cannot be removed");
    return tn_in_file(status, old->link, err);
}

static bool is_new(const old_file *old, const char *path)
{
    struct stat now;
    return stat(path, &now) == 0 && (!old->exists || !tn_same_file(&now, &old->about));
}

/* Links may lead both names to one file. */
static bool are_one(const tn_c_files *files)
{
    struct stat a, b;
    return stat(files->first.path, &a) == 0 && stat(files->second.path, &b) == 0 && tn_same_file(&a, &b);
}

static void bring_back(old_file *old, const char *path)
{
    if (!is_new(old, path))
        return;
    if (!old->exists)
        unlink(path);
    else if (old->link[0] && rename(old->link, old->target) == 0)
        old->link[0] = '\0';
}

/* The first file cannot be restored, so "(nothing was replaced)" is not true. */
static void tell_half(const tn_c_files *files, tn_error *err)
{
    static const char untrue[] = " (nothing was replaced)";
    char *end = strstr(err->text, untrue);
    size_t n = end ? (size_t)(end - err->text) : strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, "; %s is new already: the two do not belong together, "
             "write them again", tn_quote_z(files->first.path).text);
}

static tn_status publish(tn_c_file *file, tn_error *err)
{
    tn_sink *sink = file->sink;
    file->sink = NULL;
    return tn_in_file(tn_sink_publish(sink, file->size, err), file->path, err);
}

tn_status tn_c_files_publish(tn_c_files *files, tn_error *err)
{
    old_file first, second;
    note_old(&first, files->first.path);
    note_old(&second, files->second.path);
    link_old(&first, files->first.path);
    tn_status status = publish(&files->first, err);
    if (!status)
        status = publish(&files->second, err);
    if (status && (!is_new(&second, files->second.path) || are_one(files))) {
        /* else both are there, though the folder could not be synced */
        bring_back(&first, files->first.path);
        if (err && is_new(&first, files->first.path))
            tell_half(files, err);
    }
    if (!status)
        files->folder[0] = '\0';
    tn_status left = forget_old(&first, status ? NULL : err);
    forget_old(&second, NULL);          /* has no second name */
    status = status ? status : left;
    tn_c_files_abandon(files);
    return status;
}

void tn_c_files_abandon(tn_c_files *files)
{
    tn_sink_abandon(files->first.sink);
    tn_sink_abandon(files->second.sink);
    files->first.sink = files->second.sink = NULL;
    if (files->folder[0])
        rmdir(files->folder);   /* only if it is empty */
    files->folder[0] = '\0';
}
