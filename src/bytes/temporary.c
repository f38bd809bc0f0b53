/* bytes/temporary.c - files that nobody else sees. */
#include "bytes/temporary.h"
#include "bytes/place.h"
#include "bytes/sink_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX ".tenon-"
#define SUFFIX ".tmp"

enum { RANDOM = 6, MAX_TRIES = 100 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";  /* 32: five bits each */

bool tn_temporary_name(char name[TN_TEMPORARY_NAME])
{
    uint8_t random[RANDOM];
    char middle[RANDOM + 1] = "";
    if (getentropy(random, sizeof random) != 0)
        return false;
    for (size_t i = 0; i < RANDOM; i++)
        middle[i] = letters[random[i] & 31];
    snprintf(name, TN_TEMPORARY_NAME, "%s%s%s", PREFIX, middle, SUFFIX);
    return true;
}

bool tn_is_temporary_name(const char *name)
{
    return strlen(name) == TN_TEMPORARY_NAME - 1 && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           strspn(name + strlen(PREFIX), letters) == RANDOM &&
           strcmp(name + strlen(PREFIX) + RANDOM, SUFFIX) == 0;
}

/* O_EXCL takes no link and no file that is there already. */
static int open_for_a_moment(int folder)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        char name[TN_TEMPORARY_NAME];
        if (!tn_temporary_name(name))
            return -1;
        int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (fd >= 0)
            unlinkat(folder, name, 0);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int open_in(int folder)
{
    int fd = tn_sink_calls.open_tmpfile(folder, S_IRUSR | S_IWUSR);
    return fd >= 0 ? fd : open_for_a_moment(folder);
}

static int open_in_path(const char *path)
{
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = open_in(folder), problem = errno;
    close(folder);
    errno = problem;
    return fd;
}

tn_status tn_temporary_open(int *fd, tn_error *err)
{
    const char *chosen = getenv("TMPDIR");
    bool free_choice = !chosen || !*chosen;
    *fd = open_in_path(free_choice ? "/var/tmp" : chosen);
    if (*fd < 0 && free_choice)
        *fd = open_in_path("/tmp");
    return *fd >= 0 ? TN_OK : tn_fail_errno(err, errno, "cannot write a temporary file (TMPDIR says where)");
}

tn_status tn_temporary_open_beside(const char *path, int *fd, tn_error *err)
{
    tn_place place;
    tn_status status = tn_place_find(path, &place, err);
    if (status)
        return status;
    *fd = open_in(place.folder);
    if (*fd < 0)
        status = tn_fail_errno(err, errno, "cannot write a temporary file next to it");
    close(place.folder);
    return status;
}
