/* tests/system/fault.c - ends the process at the n-th call that changes a file, or makes that call fail.
 *
 * To be preloaded.  FAULT_AT=N counts; FAULT_ERRNO=E makes the call fail with E in place of ending the
 * process. The calls are those by which sinks write, sync, name and remove files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;

static int fails(void)
{
    const char *at = getenv("FAULT_AT"), *error_number = getenv("FAULT_ERRNO");
    if (!at || atomic_fetch_add(&calls, 1) + 1 != atoi(at))
        return 0;
    if (!error_number)
        kill(getpid(), SIGKILL);
    errno = error_number ? atoi(error_number) : 0;
    return 1;
}

#define CALL(type, name, parameters, arguments) \
    type name parameters \
    { \
        static type (*real) parameters; \
        if (!real) \
            real = (type (*) parameters)dlsym(RTLD_NEXT, #name); \
        return fails() ? (type)-1 : real arguments; \
    }

CALL(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
CALL(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at))
CALL(int, ftruncate, (int fd, off_t size), (fd, size))
CALL(int, ftruncate64, (int fd, off64_t size), (fd, size))
CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
CALL(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
CALL(int, fsync, (int fd), (fd))
CALL(int, link, (const char *from, const char *to), (from, to))
CALL(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags))
CALL(int, unlink, (const char *name), (name))
CALL(int, unlinkat, (int folder, const char *name, int flags), (folder, name, flags))
CALL(int, mkdirat, (int folder, const char *name, mode_t mode), (folder, name, mode))
