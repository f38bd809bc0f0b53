/* cli/ui/standard.c - standard input as a file, and a file that goes to standard output. */
#include "ui/standard.h"
#include "ui/progress.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 256 << 10 };

bool is_standard(const char *path) { return strcmp(path, "-") == 0; }

static tn_status fail_system(tn_error *err, const char *what)
{
    *err = (tn_error){ .status = TN_ERR_IO, .offset = TN_NO_OFFSET };
    snprintf(err->text, sizeof err->text, "%s: %s", what, strerror(errno));
    return err->status;
}

int temporary_file(tn_error *err)
{
    const char *const folders[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char name[4096];
        if (!folders[i] || snprintf(name, sizeof name, "%s/.tenon-XXXXXX", folders[i]) >= (int)sizeof name)
            continue;
        int fd = mkstemp(name);
        if (fd >= 0) {
            unlink(name);
            return fd;
        }
    }
    fail_system(err, "cannot make a temporary file (TMPDIR says where)");
    return -1;
}

static tn_status write_all(int fd, const char *bytes, size_t n, const char *what, tn_error *err)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            return fail_system(err, what);
        if (signals_came())
            return err->status = TN_ERR_CANCELLED;
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return TN_OK;
}

static tn_status fail_limit(tn_error *err, uint64_t most)
{
    *err = (tn_error){ .status = TN_ERR_LIMIT, .reason = TN_REASON_MAX_BYTES, .offset = TN_NO_OFFSET };
    snprintf(err->text, sizeof err->text, "standard input has more than the %llu bytes allowed",
             (unsigned long long)most);
    return err->status;
}

typedef struct copying {
    int         from, to;
    uint64_t    most;           /* bytes; 0: any */
    const char *what;           /* when writing fails */
} copying;

static tn_status copy(const copying *c, tn_error *err)
{
    char buffer[WINDOW];
    uint64_t total = 0;
    *err = (tn_error){ .offset = TN_NO_OFFSET };
    for (;;) {
        ssize_t n = read(c->from, buffer, sizeof buffer);
        if (signals_came())
            return err->status = TN_ERR_CANCELLED;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_system(err, "cannot read");
        if (n == 0)
            return TN_OK;
        total += (uint64_t)n;
        if (c->most && total > c->most)
            return fail_limit(err, c->most);
        tn_status status = write_all(c->to, buffer, (size_t)n, c->what, err);
        if (status != TN_OK)
            return status;
    }
}

tn_status open_standard_input(const tn_open_options *options, tn_file **file, tn_error *err)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        return tn_open_fd(STDIN_FILENO, options, file, err);
    int fd = temporary_file(err);
    if (fd < 0)
        return err->status;
    const copying c = { STDIN_FILENO, fd, options->max_bytes, "cannot write a temporary file" };
    tn_status status = copy(&c, err);
    if (status == TN_OK)
        status = tn_open_fd(fd, options, file, err);
    close(fd);
    return status;
}

tn_status copy_to_output(int fd, tn_error *err)
{
    const copying c = { fd, STDOUT_FILENO, 0, "cannot write to standard output" };
    if (lseek(fd, 0, SEEK_SET) != 0)
        return fail_system(err, "cannot read");
    return copy(&c, err);
}
