/* share/confine.c - limits all threads of a process to a list of system calls; any other fails with EPERM.
 *
 * A forbidden call does not end the process: other threads of the program see a missing permission, and an
 * attacker gains nothing from the error. */
#include "base/error.h"
#include "share/confine.h"

#include <tenon/share.h>

#ifdef TN_SECCOMP
#include "bytes/libcrypto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* For server and client: packets, memory, time, signals and exit. */
static const int usual[] = {
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(getsockopt),
    SCMP_SYS(shutdown), SCMP_SYS(close), SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(fstat),
    SCMP_SYS(newfstatat), SCMP_SYS(lseek), SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap),
    SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(rt_sigsuspend), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(signalfd4),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getrandom), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
};

/* For the server: accepting clients, and removing the socket. */
static const int serving[] = { SCMP_SYS(accept4), SCMP_SYS(unlinkat) };

/* For the client: reading with several threads, and writing to open descriptors. */
static const int attaching[] = {
    SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(fstatfs), SCMP_SYS(fadvise64),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(getcpu), SCMP_SYS(sysinfo), SCMP_SYS(uname),
};

/* Creating, naming and replacing files; Landlock limits which ones. */
static const int saving[] = {
    SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(getdents64), SCMP_SYS(stat),
    SCMP_SYS(lstat), SCMP_SYS(statx), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(linkat), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(flock),
    SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(copy_file_range), SCMP_SYS(sync_file_range),
    SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(umask), SCMP_SYS(fchmod), SCMP_SYS(fchown),
    SCMP_SYS(fgetxattr), SCMP_SYS(fsetxattr), SCMP_SYS(flistxattr), SCMP_SYS(fremovexattr),
};

/* Calls that depend on their arguments. */
typedef struct rule {
    int                 call;
    unsigned            nconditions;
    struct scmp_arg_cmp conditions[2];  /* number of the argument, comparison, value or mask, masked value */
    unsigned            error;          /* 0: the call is allowed; else it fails with this */
} rule;

#define IOCTL(request) { SCMP_SYS(ioctl), 1, { { 1, SCMP_CMP_EQ, (request), 0 } }, 0 }
#define FCNTL(command) { SCMP_SYS(fcntl), 1, { { 1, SCMP_CMP_EQ, (command), 0 } }, 0 }

/* New memory is never executable. */
static const rule usual_rules[] = {
    { SCMP_SYS(mmap), 1, { { 2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0 } }, 0 },
    { SCMP_SYS(mprotect), 1, { { 2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0 } }, 0 },
};

static const rule serving_rules[] = { IOCTL(SIOCOUTQ) };        /* tn_socket_unread() */

static const rule attaching_rules[] = {
    IOCTL(TCGETS), IOCTL(TIOCGWINSZ), IOCTL(DMA_BUF_IOCTL_SYNC),
    /* Without F_SETOWN and F_SETSIG, which could send signals to any process. */
    FCNTL(F_DUPFD), FCNTL(F_DUPFD_CLOEXEC), FCNTL(F_GETFD), FCNTL(F_SETFD), FCNTL(F_GETFL),
    FCNTL(F_GET_SEALS), FCNTL(F_ADD_SEALS),
    /* Threads and no processes.  The arguments of clone3() are in memory, which a filter cannot read.  Told
     * that there is no clone3(), the C library calls clone(). */
    { SCMP_SYS(clone3), 0, { { 0 } }, ENOSYS },
    { SCMP_SYS(clone), 1, { { 0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD } }, 0 },
    /* Reading its own limits, not setting them. */
    { SCMP_SYS(prlimit64), 2, { { 0, SCMP_CMP_EQ, 0, 0 }, { 2, SCMP_CMP_EQ, 0, 0 } }, 0 },
};

static const rule saving_rules[] = { IOCTL(FICLONERANGE) };

/* What a process may call. */
typedef struct allowance {
    const int  *calls;
    size_t      ncalls;
    const rule *rules;
    size_t      nrules;
} allowance;

#define COUNTED(list) (list), sizeof(list) / sizeof *(list)
static const allowance for_usual = { COUNTED(usual), COUNTED(usual_rules) };
static const allowance for_serving = { COUNTED(serving), COUNTED(serving_rules) };
static const allowance for_attaching = { COUNTED(attaching), COUNTED(attaching_rules) };
static const allowance for_saving = { COUNTED(saving), COUNTED(saving_rules) };

static int allow(scmp_filter_ctx filter, const allowance *a)
{
    int problem = 0;
    for (size_t i = 0; i < a->ncalls && !problem; i++)
        problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, a->calls[i], 0);
    for (size_t i = 0; i < a->nrules && !problem; i++) {
        const rule *r = &a->rules[i];
        uint32_t action = r->error ? SCMP_ACT_ERRNO(r->error) : SCMP_ACT_ALLOW;
        problem = seccomp_rule_add_array(filter, action, r->call, r->nconditions, r->conditions);
    }
    return problem;
}

/* Loads a filter for the first `n` of a list, and for what every process needs. */
static tn_status confine(const allowance *const *list, size_t n, tn_error *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    TN_NEED(filter, err);
    int problem = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!problem)               /* abort(), but of nobody else */
        problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                   SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid(), 0));
    if (!problem)
        problem = allow(filter, &for_usual);
    for (size_t i = 0; i < n && !problem; i++)
        problem = allow(filter, list[i]);
    if (!problem)
        problem = seccomp_load(filter);
    seccomp_release(filter);
    if (problem)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "seccomp is not available: %s", strerror(-problem));
    return TN_OK;
}

tn_status tn_offer_confine(tn_offer *offer, const char **how, tn_error *err)
{
    static const allowance *const list[] = { &for_serving };
    TN_GIVEN(offer, "an offer", err);
    TN_TRY(confine(list, 1, err));
    if (how)
        *how = "seccomp: no files, no programs, no connections of its own";
    return TN_OK;
}

/* libcrypto reads its configuration when a digest is first asked for. */
static void fetch_digests(void)
{
    for (int kind = 0; kind < TN_CRYPTO_DIGESTS; kind++) {
        EVP_MD_CTX *context = NULL;
        if (tn_crypto_begin((tn_crypto_digest)kind, &context, NULL) == TN_OK)
            EVP_MD_CTX_free(context);
    }
}

tn_status tn_attach_confine(const char *out, bool temporary, const char **how, tn_error *err)
{
    static const allowance *const list[] = { &for_attaching, &for_saving };
    bool files = out || temporary;
    if (files)
        fetch_digests();
    bool restricted = files && tn_landlock(out);
    tn_status status = confine(list, files ? 2 : 1, err);
    if (status || !how)
        return status;
    if (!files)
        *how = "seccomp: no files, no programs, no connections";
    else if (restricted)
        *how = "seccomp and Landlock: no files but in the output's folder and temporary ones, no programs, "
               "no connections";
    else
        *how = "seccomp without Landlock: no programs, no connections";
    return TN_OK;
}

#else

static tn_status fail_missing(tn_error *err)
{
    return tn_fail(err, TN_ERR_UNSUPPORTED, "this build has no libseccomp");
}

tn_status tn_offer_confine(tn_offer *offer, const char **how, tn_error *err)
{
    (void)offer;
    (void)how;
    return fail_missing(err);
}

tn_status tn_attach_confine(const char *out, bool temporary, const char **how, tn_error *err)
{
    (void)out;
    (void)temporary;
    (void)how;
    return fail_missing(err);
}

#endif
