/* share/landlock.c - limits file access to some folders, enforced by the kernel (Landlock, Linux 5.13).
 *
 * The C library has no functions for these system calls; the numbers are those of linux/landlock.h. */
#include "share/confine.h"

#ifdef __linux__
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446,  /* calls: the same number everywhere */
    ASK_VERSION    = 1,
    PATH_BENEATH   = 1,
    MAX_LINKS      = 40         /* symbolic links in a row, as the kernel has it */
};

/* Rights on files, by the version of Landlock that has them. */
enum {
    WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, REMOVE_FILE = 1 << 5, MAKE_REG = 1 << 8,
    SINCE_1 = (1 << 13) - 1, REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15
};

struct ruleset { uint64_t handled; };

struct __attribute__((packed)) beneath {
    uint64_t allowed;
    int32_t  folder;
};

static uint64_t rights_of(long version)
{
    uint64_t rights = SINCE_1;
    rights |= version >= 2 ? REFER : 0;
    rights |= version >= 3 ? TRUNCATE : 0;
    rights |= version >= 5 ? IOCTL_DEV : 0;
    return rights;
}

/* A missing folder needs no rule. */
static bool allow_in(int ruleset, uint64_t rights, const char *folder)
{
    struct beneath rule = { .allowed = rights, .folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) };
    if (rule.folder < 0)
        return true;
    bool done = syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) == 0;
    close(rule.folder);
    return done;
}

/* The folder of `path` with its slash, or "". */
static void folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash + 1 - path) : 0, path);
}

/* Allows the folder of the file that `out` leads to by symbolic links; the file need not exist.  Folders on
 * the way can be listed, because they are opened that way. */
static bool allow_out(int ruleset, uint64_t rights, const char *out)
{
    char path[PATH_MAX], folder[PATH_MAX], link[PATH_MAX];
    if (snprintf(path, sizeof path, "%s", out) >= (int)sizeof path)
        return false;
    for (int i = 0; i < MAX_LINKS; i++) {
        folder_of(path, folder);
        ssize_t n = readlink(path, link, sizeof link - 1);
        const char *opened = *folder ? folder : ".";
        if (!allow_in(ruleset, n < 0 ? rights : READ_DIR, opened))
            return false;
        if (n < 0)
            return true;
        link[n] = '\0';
        size_t before = *link == '/' ? 0 : strlen(folder);
        if (before + (size_t)n >= sizeof path)
            return false;
        memcpy(path, folder, before);
        memcpy(path + before, link, (size_t)n + 1);
    }
    return false;
}

static bool allow_all(int ruleset, uint64_t rights, const char *out)
{
    const char *chosen = getenv("TMPDIR");
    bool is_chosen = chosen && *chosen;
    if (out && !allow_out(ruleset, rights, out))
        return false;
    if (is_chosen)
        return allow_in(ruleset, rights, chosen);
    return allow_in(ruleset, rights, "/var/tmp") && allow_in(ruleset, rights, "/tmp");
}

bool tn_landlock(const char *out)
{
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1)
        return false;
    struct ruleset rules = { .handled = rights_of(version) };
    int fd = (int)syscall(CREATE_RULESET, &rules, sizeof rules, 0);
    if (fd < 0)
        return false;
    uint64_t granted = WRITE_FILE | READ_FILE | READ_DIR | REMOVE_FILE | MAKE_REG | TRUNCATE;
    bool done = allow_all(fd, granted & rules.handled, out) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                syscall(RESTRICT_SELF, fd, 0) == 0;
    close(fd);
    return done;
}

#else

bool tn_landlock(const char *out)
{
    (void)out;
    return false;
}

#endif
