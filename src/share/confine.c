/* share/confine.c - what is left to a process that only answers: a list of system
 * calls that may be made, by all its threads; any other fails with EPERM.
 *
 * Not death but EPERM: what a thread of the same program does besides should
 * fail as it would for want of a permission, and somebody who has taken over the
 * process gains nothing by being told no. */
#include "base/error.h"

#include <tenon/share.h>

#ifdef TN_SECCOMP
#include <errno.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Packets and clients; memory; time; being stopped, and ending with the socket removed. */
static const int allowed[] = {
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(accept4), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(getsockopt),
    SCMP_SYS(shutdown), SCMP_SYS(close), SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(sched_yield),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigtimedwait), SCMP_SYS(rt_sigsuspend),
    SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(signalfd4),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
    SCMP_SYS(getrandom), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(lseek), SCMP_SYS(unlinkat),
    SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
};

/* New memory is nobody's program: never to be executed. */
static int allow_memory(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp data = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    int problem = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, &data);
    return problem ? problem : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, &data);
}

static int load(scmp_filter_ctx filter)
{
    int problem = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed && !problem; i++)
        problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    if (!problem)
        problem = allow_memory(filter);
    if (!problem)               /* tn_socket_unread() */
        problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, SIOCOUTQ, 0));
    if (!problem)               /* abort(), but of nobody else */
        problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid(), 0));
    return problem ? problem : seccomp_load(filter);
}

tn_status tn_offer_confine(tn_offer *offer, const char **how, tn_error *err)
{
    (void)offer;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return tn_fail_nomem(err);
    int problem = load(filter);
    seccomp_release(filter);
    if (problem)
        return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "seccomp is not to be had here: %s", strerror(-problem));
    if (how)
        *how = "seccomp: no files, no programs, no connections of its own";
    return TN_OK;
}

#else

tn_status tn_offer_confine(tn_offer *offer, const char **how, tn_error *err)
{
    (void)offer;
    (void)how;
    return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "this build has no libseccomp");
}

#endif
