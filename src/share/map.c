/* share/map.c - maps pages at aligned addresses, and locks them into memory. */
#include "share/map.h"
#include "base/checked.h"
#include "share/memory_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int get_seals(int fd)            { return fcntl(fd, F_GET_SEALS); }
static int add_seals(int fd, int seals) { return fcntl(fd, F_ADD_SEALS, seals); }
static int duplicate(int fd)            { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

/* mlock2() because sanitizers turn mlock() into a function that does nothing. */
static int lock(const void *address, size_t n) { return mlock2(address, n, 0); }

struct tn_memory_calls tn_memory_calls = {
    .mmap = mmap, .munmap = munmap, .madvise = madvise, .mlock = lock, .memfd_create = memfd_create,
    .ftruncate = ftruncate, .fstat = fstat, .get_seals = get_seals, .add_seals = add_seals,
    .duplicate = duplicate,
};

uint64_t tn_page_size(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static void *map_at(const tn_map_request *r, void *address, int more_flags)
{
    return tn_memory_calls.mmap(address, (size_t)r->extent, r->protection, r->flags | more_flags, r->fd,
                                (off_t)r->offset);
}

enum { MAP_TRIES = 16 };        /* another thread may take the addresses that were found */

/* An aligned range of addresses that nobody uses, or 0. */
static uintptr_t find_room(uint64_t extent, uint64_t alignment)
{
    uint64_t all;
    if (!tn_add_u64(extent, alignment, &all) || all > PTRDIFF_MAX) {
        errno = ENOMEM;
        return 0;
    }
    void *room = tn_memory_calls.mmap(NULL, (size_t)all, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return 0;
    tn_unmap(room, all);
    return ((uintptr_t)room + (uintptr_t)alignment - 1) & ~((uintptr_t)alignment - 1);
}

/* The kernel aligns to pages only.  Existing mappings are never replaced: a MAP_FIXED that fails may leave a
 * hole, and another thread may map something there. */
static void *map_aligned(const tn_map_request *r)
{
    for (int i = 0; i < MAP_TRIES; i++) {
        uintptr_t room = find_room(r->extent, r->alignment);
        void *map = room ? map_at(r, (void *)room, MAP_FIXED_NOREPLACE) : MAP_FAILED;
        if (map == (void *)room || (map == MAP_FAILED && errno != EEXIST))
            return map;
        if (map != MAP_FAILED)
            tn_unmap(map, r->extent);   /* this kernel takes the address as a hint */
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

tn_status tn_map(const tn_map_request *request, void **base, tn_error *err)
{
    void *map = request->alignment > request->grain ? map_aligned(request) : map_at(request, NULL, 0);
    if (map == MAP_FAILED)
        return tn_fail_errno(err, errno, "cannot map");
    *base = map;
    return TN_OK;
}

void tn_unmap(void *base, uint64_t extent)
{
    tn_memory_calls.munmap(base, (size_t)extent);
}

/* A switch reads "always [madvise] never", with the current setting in brackets. */
static bool switched_on(const char *path)
{
    char text[100] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 && !strstr(text, "[never]") && !strstr(text, "[deny]");
}

bool tn_map_huge(void *base, uint64_t extent, bool shared)
{
    const char *path = shared ? "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
                              : "/sys/kernel/mm/transparent_hugepage/enabled";
    return switched_on(path) && tn_memory_calls.madvise(base, (size_t)extent, MADV_HUGEPAGE) == 0;
}

/* ---- pinning ---- */

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
