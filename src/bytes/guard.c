/* bytes/guard.c - SIGBUS in a guarded mapping becomes pages of zeros. */
#include "bytes/guard.h"
#include "base/checked.h"

#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mmap                /* some 32-bit machines; the same where the offset is 0 */
#define SYS_mmap SYS_mmap2
#endif

/* The handler may interrupt anything, so it takes no lock.  It reads a slot between two reads of its version.
 * A slot that is being changed is never the one that the handler needs, because its memory is still in
 * use. */
struct tn_guard {
    atomic_uint      version;   /* odd: being changed */
    atomic_uintptr_t base;      /* 0: free */
    atomic_ullong    extent, grain, offset;
    atomic_int       fd;
    atomic_bool      writable;
    atomic_int       harm;      /* tn_harm */
    atomic_ullong    missed;    /* where in the file, set before `harm` */
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a signal handler may use atomics without locks only");

enum { SLOTS = 64 };

typedef struct slots {
    struct tn_guard        slot[SLOTS];
    _Atomic(struct slots *) next;       /* never freed: the handler may read it at any time */
} slots;

static slots first;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* Previous handlers: several if programs have installed theirs over ours.  Each is written once, before
 * `latest` points to it. */
enum { MAX_OTHERS = 16 };
static struct sigaction others[MAX_OTHERS];
static int nothers;
static atomic_int latest;

int (*tn_guard_sigaction)(int number, const struct sigaction *action, struct sigaction *old) = sigaction;

#define PASSED_ON 0x746e        /* in si_errno, which the kernel leaves 0 */

/* ---- in the handler ---- */

static bool read_slot(const tn_guard *g, tn_guarded *what)
{
    unsigned version = atomic_load(&g->version);
    *what = (tn_guarded){ .base = (void *)atomic_load(&g->base), .extent = atomic_load(&g->extent),
                          .grain = atomic_load(&g->grain),
                          .offset = atomic_load(&g->offset), .fd = atomic_load(&g->fd),
                          .writable = atomic_load(&g->writable) };
    return what->base && version % 2 == 0 && atomic_load(&g->version) == version;
}

/* The system call itself: a handler may not call mmap(), and sanitizers replace it. */
static bool map_zeros(uint8_t *where, uint64_t n, bool writable)
{
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    return syscall(SYS_mmap, where, (size_t)n, protection, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L) !=
           -1;
}

/* Notes the first harm only: later ones may be its consequence. */
static void note(tn_guard *g, tn_harm harm, uint64_t at)
{
    if (atomic_load(&g->harm) != TN_HARM_NONE)
        return;
    atomic_store(&g->missed, at);
    atomic_store(&g->harm, harm);
}

/* Maps zeros for everything beyond the end of the file, or for the one page that could not be read. */
static bool mend(tn_guard *g, const tn_guarded *what, uint64_t missed)
{
    struct stat st;
    uint64_t from = missed & ~(what->grain - 1), n = what->grain, end = what->extent;
    if (fstat(what->fd, &st) == 0) {
        uint64_t size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
        uint64_t left = size > what->offset ? size - what->offset : 0;
        if (!tn_align_u64(left, what->grain, &end))
            end = what->extent;
    }
    note(g, from >= end ? TN_HARM_CUT : TN_HARM_UNREADABLE, what->offset + from);
    if (from >= end) {
        from = end;
        n = what->extent - end;
    }
    return map_zeros((uint8_t *)what->base + from, n, what->writable);
}

/* The guard of this address, or NULL. */
static tn_guard *find_slot(uintptr_t address, tn_guarded *what)
{
    for (slots *s = &first; s; s = atomic_load(&s->next))
        for (int i = 0; i < SLOTS; i++)
            if (read_slot(&s->slot[i], what) && address - (uintptr_t)what->base < what->extent)
                return &s->slot[i];
    return NULL;
}

static bool mend_at(uintptr_t address)
{
    tn_guarded what;
    tn_guard *g = find_slot(address, &what);
    return g && mend(g, &what, address - (uintptr_t)what.base);
}

/* If a handler was installed over ours and ours over it again, it may pass the signal back to us.  Then the
 * signal goes to the very first handler. */
static const struct sigaction *next_handler(siginfo_t *info)
{
    int i = info->si_errno == PASSED_ON ? 0 : atomic_load(&latest);
    if (i > 0)
        info->si_errno = PASSED_ON;
    return &others[i];
}

/* Without another handler the process ends: the fault occurs again, or the signal is raised again. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction *next = next_handler(info);
    bool sent = info->si_code <= 0;
    if (next->sa_flags & SA_SIGINFO)
        next->sa_sigaction(number, info, context);
    else if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN)
        next->sa_handler(number);
    else if (next->sa_handler == SIG_DFL || !sent) {
        struct sigaction none = { .sa_handler = SIG_DFL };
        sigaction(number, &none, NULL);
        if (sent)
            raise(number);
    }
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    if (info->si_code != BUS_ADRERR || !mend_at((uintptr_t)info->si_addr))
        pass_on(number, info, context);
    errno = saved;
}

/* ---- outside the handler ---- */

/* sa_handler and sa_sigaction are a union. */
static bool same_handler(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_handler == b->sa_handler && (a->sa_flags & SA_SIGINFO) == (b->sa_flags & SA_SIGINFO);
}

/* Called for every guard, because a program may have replaced our handler. */
static int install(void)
{
    struct sigaction now, ours = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    if (tn_guard_sigaction(SIGBUS, NULL, &now) != 0)
        return errno;
    if (same_handler(&now, &ours))
        return 0;
    int i = 0;
    while (i < nothers && !same_handler(&others[i], &now))
        i++;
    if (i == MAX_OTHERS)
        return EAGAIN;
    if (i == nothers)
        others[nothers++] = now;
    atomic_store(&latest, i);
    ours.sa_mask = now.sa_mask;
    ours.sa_flags |= now.sa_flags & (SA_NODEFER | SA_RESTART);
    return tn_guard_sigaction(SIGBUS, &ours, NULL) == 0 ? 0 : errno;
}

static tn_guard *free_slot(void)
{
    for (slots *s = &first;; s = atomic_load(&s->next)) {
        for (int i = 0; i < SLOTS; i++)
            if (atomic_load(&s->slot[i].base) == 0)
                return &s->slot[i];
        if (!atomic_load(&s->next)) {
            slots *more = calloc(1, sizeof *more);
            if (!more)
                return NULL;
            atomic_store(&s->next, more);
        }
    }
}

static void change(tn_guard *g, const tn_guarded *what)
{
    atomic_fetch_add(&g->version, 1);
    atomic_store(&g->base, (uintptr_t)what->base);
    atomic_store(&g->extent, what->extent);
    atomic_store(&g->grain, what->grain);
    atomic_store(&g->offset, what->offset);
    atomic_store(&g->fd, what->fd);
    atomic_store(&g->writable, what->writable);
    atomic_store(&g->harm, TN_HARM_NONE);
    atomic_fetch_add(&g->version, 1);
}

tn_status tn_guard_add(const tn_guarded *what, tn_guard **guard, tn_error *err)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&changing);
    tn_guard *g = free_slot();
    int problem = g ? install() : 0;
    if (!g)
        status = tn_fail_nomem(err);
    else if (problem)
        status = tn_fail_errno(err, problem, "cannot handle SIGBUS");
    else {
        change(g, what);
        *guard = g;
    }
    pthread_mutex_unlock(&changing);
    return status;
}

void tn_guard_drop(tn_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&changing);
    change(guard, &(tn_guarded){ .fd = -1 });
    pthread_mutex_unlock(&changing);
}

void tn_guard_look_at(tn_guard *guard, int fd)
{
    atomic_store(&guard->fd, fd);
}

tn_harm tn_guard_harm(const tn_guard *guard, uint64_t *at)
{
    tn_harm harm = (tn_harm)atomic_load(&guard->harm);
    *at = atomic_load(&guard->missed);
    return harm;
}

void tn_guard_touch(const void *data, size_t n)
{
    const volatile uint8_t *bytes = data;
    tn_guarded what;
    if (!n || !find_slot((uintptr_t)data, &what) || !find_slot((uintptr_t)data + n - 1, &what))
        return;
    for (size_t i = 0; i < n; i += (size_t)what.grain)
        (void)bytes[i];
    (void)bytes[n - 1];
}

uint64_t tn_guard_grain(int fd)
{
    struct statfs fs;
    bool huge = fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC && fs.f_bsize > 0;
    return huge && tn_is_power_of_two((uint64_t)fs.f_bsize) ? (uint64_t)fs.f_bsize
                                                            : (uint64_t)sysconf(_SC_PAGESIZE);
}
