/* tests/together/locks.c - a file system whose locks do not work; to be preloaded.
 *
 * LOCKS=none: flock() is not there (ENOSYS).  LOCKS=local: every process gets every lock.
 * SLOW: see below.
 * CLOCK=SECONDS: the clock is so many seconds off.
 * HOST=NAME: this machine is called so, and was booted as another one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int flock(int fd, int operation)
{
    const char *locks = getenv("LOCKS");
    if (locks && strcmp(locks, "none") == 0) {
        errno = ENOSYS;
        return -1;
    }
    if (locks && strcmp(locks, "local") == 0)
        return 0;
    return (int)syscall(SYS_flock, fd, operation);
}

/* SLOW=PART=FILE: before a file gets a name that has PART, wait until FILE is there. */
static void be_slow(const char *name)
{
    const char *slow = getenv("SLOW"), *file = slow ? strchr(slow, '=') : NULL;
    char part[64];
    if (!file || (size_t)(file - slow) >= sizeof part)
        return;
    memcpy(part, slow, (size_t)(file - slow));
    part[file - slow] = '\0';
    for (int i = 0; strstr(name, part) && access(file + 1, F_OK) != 0 && i < 2000; i++)
        usleep(5000);
}

int linkat(int from_folder, const char *from, int folder, const char *name, int flags)
{
    be_slow(name);
    return (int)syscall(SYS_linkat, from_folder, from, folder, name, flags);
}

int renameat(int from_folder, const char *from, int folder, const char *name)
{
    be_slow(name);
    return (int)syscall(SYS_renameat2, from_folder, from, folder, name, 0);
}

int renameat2(int from_folder, const char *from, int folder, const char *name, unsigned flags)
{
    be_slow(name);
    return (int)syscall(SYS_renameat2, from_folder, from, folder, name, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *off = getenv("CLOCK");
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (off && clock == CLOCK_REALTIME)
        now->tv_sec += atol(off);
    return result;
}

time_t time(time_t *now)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}

int gethostname(char *name, size_t n)
{
    const char *host = getenv("HOST");
    struct utsname machine;
    if (!host && uname(&machine) != 0)
        return -1;
    snprintf(name, n, "%s", host ? host : machine.nodename);
    return 0;
}

int open(const char *path, int flags, ...)
{
    const char *host = getenv("HOST");
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    if (host && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
        path = strcmp(host, "far") == 0 ? "/proc/version" : "/proc/sys/kernel/ostype";
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
