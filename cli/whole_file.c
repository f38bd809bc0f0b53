/* cli/whole_file.c - small files, read and written whole. */
#include "whole_file.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tn_status refuse(tn_error *err, tn_status status, const char *what, int error_number)
{
    *err = (tn_error){ .status = status, .offset = TN_NO_OFFSET };
    snprintf(err->text, sizeof err->text, "%s%s%s", what, error_number ? ": " : "", error_number ? strerror(error_number) : "");
    return status;
}

/* ---- reading ---- */

static tn_status read_all(FILE *f, size_t most, char **bytes, size_t *n, tn_error *err)
{
    size_t cap = 1 << 16;
    char *buffer = must_resize(NULL, cap);
    *n = 0;
    for (size_t got; (got = fread(buffer + *n, 1, cap - *n, f)) > 0;) {
        *n += got;
        if (*n == cap && cap <= most)
            buffer = must_resize(buffer, cap *= 2);
    }
    *bytes = buffer;
    if (ferror(f))
        return refuse(err, TN_ERR_IO, "cannot read", errno);
    if (*n <= most)
        return TN_OK;
    char text[80];
    snprintf(text, sizeof text, "expected at most %zu bytes but found more", most);
    return refuse(err, TN_ERR_LIMIT, text, 0);
}

tn_status whole_file_read(const char *path, size_t most, char **bytes, size_t *n, tn_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return refuse(err, TN_ERR_IO, "cannot open", errno);
    tn_status status = read_all(f, most, bytes, n, err);
    fclose(f);
    if (status != TN_OK)
        free(*bytes);
    return status;
}

/* ---- writing ---- */

/* A file that is on its way to its name. */
typedef struct draft {
    const char *path;
    char       *temporary;
    int         fd;
} draft;

/* In the folder of `path`.  The name is not one that the library sweeps up. */
static bool draft_open(draft *d, const char *path)
{
    static const char name[] = ".wia-XXXXXX.tmp";
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    *d = (draft){ .path = path, .temporary = must_allocate(folder + sizeof name, 1) };
    memcpy(d->temporary, path, folder);
    memcpy(d->temporary + folder, name, sizeof name);
    d->fd = mkstemps(d->temporary, (int)strlen(".tmp"));
    return d->fd >= 0;
}

/* mkstemps() makes files for their owner alone: this one gets the permissions
 * of the file it replaces, or of a new one. */
static bool draft_permit(const draft *d)
{
    struct stat old;
    if (stat(d->path, &old) == 0)
        return fchmod(d->fd, old.st_mode & 0777) == 0;
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(d->fd, 0666 & ~mask) == 0;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(fd, bytes, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        bytes += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

/* Gives it its name.  Some file systems know only one of the two ways to leave
 * alone what is already there. */
static bool draft_publish(const draft *d, bool replace)
{
    if (replace)
        return rename(d->temporary, d->path) == 0;
    if (renameat2(AT_FDCWD, d->temporary, AT_FDCWD, d->path, RENAME_NOREPLACE) == 0)
        return true;
    return errno != EEXIST && link(d->temporary, d->path) == 0;
}

/* The name is on disk only when the folder is. */
static void sync_folder(const draft *d)
{
    char *slash = strrchr(d->temporary, '/');
    if (slash)
        slash[1] = '\0';
    int folder = open(slash ? d->temporary : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    fsync(folder);
    close(folder);
}

tn_status whole_file_write(const char *path, const char *bytes, size_t n, bool replace, tn_error *err)
{
    draft d;
    tn_status status = TN_OK;
    if (!draft_open(&d, path)) {
        status = refuse(err, TN_ERR_IO, "cannot write in its folder", errno);
        free(d.temporary);
        return status;
    }
    if (!draft_permit(&d) || !write_all(d.fd, bytes, n) || fsync(d.fd) != 0)
        status = refuse(err, TN_ERR_IO, "cannot write", errno);
    else if (!draft_publish(&d, replace))
        status = errno == EEXIST ? refuse(err, TN_ERR_EXISTS, "exists", 0) : refuse(err, TN_ERR_IO, "cannot write", errno);
    close(d.fd);
    unlink(d.temporary);        /* gone already if it was renamed */
    if (status == TN_OK)
        sync_folder(&d);
    free(d.temporary);
    return status;
}
