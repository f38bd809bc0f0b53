/* share/pin.c - locks pages into memory, and explains if that is not allowed. */
#include "share/map.h"
#include "share/memory_calls.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#define CAP_IPC_LOCK_BIT 14     /* <linux/capability.h> */

/* What the kernel's decision depends on. */
typedef struct locked {
    uint64_t limit;             /* UINT64_MAX: none */
    uint64_t used;
    bool     privileged;        /* the limit does not apply */
} locked;

static locked ask(void)
{
    locked l = { .limit = UINT64_MAX };
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        l.limit = (uint64_t)limit.rlim_cur;
    FILE *f = fopen("/proc/self/status", "re");
    char line[200];
    unsigned long long number;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmLck: %llu kB", &number) == 1)
            l.used = number * 1024;
        else if (sscanf(line, "CapEff: %llx", &number) == 1)
            l.privileged = number >> CAP_IPC_LOCK_BIT & 1;
    }
    if (f)
        fclose(f);
    return l;
}

static tn_status fail_limit(uint64_t bytes, const locked *l, tn_error *err)
{
    return tn_fail(err, TN_ERR_LIMIT, "cannot pin %llu bytes: the limit for locked memory (RLIMIT_MEMLOCK) "
                   "is %llu bytes, of which %llu are in use; it is raised by \"ulimit -l\" (in KiB), by "
                   "LimitMEMLOCK= of a systemd service, by memlock in /etc/security/limits.conf; "
                   "CAP_IPC_LOCK lifts it",
                   (unsigned long long)bytes, (unsigned long long)l->limit, (unsigned long long)l->used);
}

/* EPERM: the limit is 0.  ENOMEM: it is too low, or memory has run out. */
tn_status tn_pin(const void *base, uint64_t extent, tn_error *err)
{
    if (tn_memory_calls.mlock(base, (size_t)extent) == 0)
        return TN_OK;
    int problem = errno;
    locked l = ask();
    bool too_much = l.used > l.limit || extent > l.limit - l.used;
    if (problem == EPERM || (problem == ENOMEM && too_much && !l.privileged))
        return fail_limit(extent, &l, err);
    return tn_fail_errno(err, problem, "cannot pin");
}
