/* tests/faults/trace.c - runs a program and spoils one of its system calls.
 *
 *     trace LOG count  -- PROGRAM ARGUMENT...     notes every call
 *     trace LOG kill N -- ...                     SIGKILL instead of the N-th call
 *     trace LOG ERRNO N NAME -- ...               the first call NAME from the N-th on fails with that
 *     trace LOG short N NAME -- ...               that call, a read or write, is for a single byte
 *
 * Calls are counted from the sign that inject.c gives, in the first thread of each process, and include
 * those that the C library makes for itself.  LOG gets a line "call NAME FD" for each
 * of them ("count") or for the one that was spoiled, and at the end "exit N" or "signal N". */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "mark.h"

#ifndef __x86_64__
#error "registers are written here as x86-64 has them"
#endif

enum { MAX_THREADS = 64 };

#define NAMED(name) { SYS_##name, #name }
static const struct { long number; const char *name; } names[] = {
    NAMED(open), NAMED(openat), NAMED(read), NAMED(pread64), NAMED(readv), NAMED(write), NAMED(pwrite64),
    NAMED(writev), NAMED(ftruncate), NAMED(fallocate), NAMED(fsync), NAMED(fdatasync),
    NAMED(sync_file_range), NAMED(link), NAMED(linkat), NAMED(rename), NAMED(renameat), NAMED(renameat2),
    NAMED(unlink), NAMED(unlinkat), NAMED(mmap), NAMED(mremap), NAMED(mprotect), NAMED(mkdir),
    NAMED(mkdirat), NAMED(copy_file_range), NAMED(ioctl), NAMED(stat), NAMED(lstat), NAMED(fstat),
    NAMED(newfstatat), NAMED(statx), NAMED(statfs), NAMED(fstatfs), NAMED(lseek), NAMED(access),
    NAMED(faccessat), NAMED(faccessat2), NAMED(readlink), NAMED(readlinkat), NAMED(getdents64),
    NAMED(flock), NAMED(fcntl), NAMED(fchmod), NAMED(fchown), NAMED(fadvise64), NAMED(madvise),
    NAMED(close), NAMED(dup), NAMED(dup2), NAMED(memfd_create), NAMED(getrandom), NAMED(socket),
    NAMED(connect), NAMED(sendmsg), NAMED(recvmsg), NAMED(getsockopt), NAMED(setsockopt), NAMED(poll),
    NAMED(clone), NAMED(clone3), NAMED(seccomp), NAMED(prctl), NAMED(flistxattr), NAMED(fgetxattr),
    NAMED(fsetxattr), NAMED(getxattr), NAMED(setxattr), NAMED(listxattr), NAMED(fchmodat), NAMED(openat2),
    NAMED(sched_getaffinity), NAMED(prlimit64), NAMED(getcwd), NAMED(chdir), NAMED(umask),
    NAMED(rt_sigaction), NAMED(eventfd2), NAMED(symlinkat), NAMED(futex),
    { 444, "landlock_create_ruleset" }, { 445, "landlock_add_rule" }, { 446, "landlock_restrict_self" },
};

typedef enum act { COUNT, KILL, FAIL, SHORTEN } act;

/* What is to be done, and how far we are. */
static struct {
    FILE       *log;
    act         act;
    long        error, at;
    const char *name;
    bool        counting, spoiled;
    long        calls;
} job;

/* A call that was spoiled at its beginning and is to be seen to at its end. */
static struct { pid_t thread; bool failed; unsigned long count; } open_calls[MAX_THREADS];

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "trace: %s: %s\n", what, strerror(errno));
    exit(125);
}

static const char *name_of(uint64_t number)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((uint64_t)names[i].number == number)
            return names[i].name;
    return "-";
}

static unsigned long peek(pid_t thread, size_t offset)
{
    return (unsigned long)ptrace(PTRACE_PEEKUSER, thread, (void *)offset, NULL);
}

static void poke(pid_t thread, size_t offset, unsigned long value)
{
    if (ptrace(PTRACE_POKEUSER, thread, (void *)offset, (void *)value) != 0)
        give_up("cannot write a register");
}

#define REGISTER(name) offsetof(struct user_regs_struct, name)

static void note_open(pid_t thread, bool failed, unsigned long count)
{
    for (int i = 0; i < MAX_THREADS; i++) {
        if (!open_calls[i].thread) {
            open_calls[i].thread = thread;
            open_calls[i].failed = failed;
            open_calls[i].count = count;
            return;
        }
    }
    errno = EAGAIN;
    give_up("too many threads");
}

static void spoil(pid_t group, pid_t thread)
{
    job.spoiled = true;
    if (job.act == KILL) {
        kill(group, SIGKILL);
    } else if (job.act == FAIL) {
        poke(thread, REGISTER(orig_rax), (unsigned long)-1);
        note_open(thread, true, 0);
    } else {
        note_open(thread, false, peek(thread, REGISTER(rdx)));
        poke(thread, REGISTER(rdx), 1);
    }
}

static bool is_due(const char *name)
{
    if (job.act == COUNT || job.spoiled || job.calls < job.at)
        return false;
    return job.act == KILL || strcmp(name, job.name) == 0;
}

/* The first thread of its process.  Calls of others, such as the one that waits for signals, come when they
 * come: counting them would make the count another one each time. */
static bool is_first(pid_t thread)
{
    return syscall(SYS_tgkill, thread, thread, 0) == 0;
}

static void at_entry(pid_t group, pid_t thread, const struct ptrace_syscall_info *info)
{
    if (info->entry.nr == SYS_close && (int)info->entry.args[0] == FAULTS_MARK) {
        job.counting = true;
        return;
    }
    if (!job.counting || !is_first(thread))
        return;
    job.calls++;
    const char *name = name_of(info->entry.nr);
    bool due = is_due(name);
    if (job.act == COUNT || due)
        fprintf(job.log, "call %s %d\n", name, (int)info->entry.args[0]);
    if (due)
        spoil(group, thread);
}

static void at_exit(pid_t thread)
{
    for (int i = 0; i < MAX_THREADS; i++) {
        if (open_calls[i].thread != thread)
            continue;
        open_calls[i].thread = 0;
        if (open_calls[i].failed)
            poke(thread, REGISTER(rax), (unsigned long)-job.error);
        else
            poke(thread, REGISTER(rdx), open_calls[i].count);
    }
}

static void at_call(pid_t group, pid_t thread)
{
    struct ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) <= 0)
        return;                 /* killed meanwhile */
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        at_entry(group, thread, &info);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        at_exit(thread);
}

/* Follows all threads to the end of the first; returns its status as of waitpid(). */
static int follow(pid_t group)
{
    int status, last = 0;
    pid_t thread;
    while ((thread = waitpid(-1, &status, __WALL)) > 0) {
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == group)
                last = status;
            continue;
        }
        int signal = WSTOPSIG(status), pass = 0;
        if (signal == (SIGTRAP | 0x80))
            at_call(group, thread);
        else if (signal != SIGTRAP && signal != SIGSTOP)        /* those two are of tracing itself */
            pass = signal;
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(uintptr_t)pass);
    }
    return last;
}

static pid_t start(char **command)
{
    pid_t child = fork();
    if (child < 0)
        give_up("cannot fork");
    if (child == 0) {
        const char *library = getenv("FAULTS_PRELOAD");
        if (library)
            setenv("LD_PRELOAD", library, 1);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            give_up("cannot be traced");
        raise(SIGSTOP);
        execvp(command[0], command);
        give_up(command[0]);
    }
    int status;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_EXITKILL;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options) != 0)
        give_up("cannot trace");
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    return child;
}

/* Returns where the command begins. */
static char **read_arguments(int argc, char **argv)
{
    int at = 3;
    if (argc < 5)
        goto usage;
    const char *what = argv[2];
    job.act = FAIL;
    if (strcmp(what, "count") == 0)
        job.act = COUNT;
    else if (strcmp(what, "kill") == 0)
        job.act = KILL;
    else if (strcmp(what, "short") == 0)
        job.act = SHORTEN;
    job.error = job.act == FAIL ? atol(what) : 0;
    if (job.act != COUNT)
        job.at = atol(argv[at++]);
    if (job.act == FAIL || job.act == SHORTEN)
        job.name = argv[at++];
    if (at + 1 < argc && strcmp(argv[at], "--") == 0)
        return argv + at + 1;
usage:
    fprintf(stderr, "usage: trace LOG count|kill|ERRNO|short [N [NAME]] -- PROGRAM ARGUMENT...\n");
    exit(125);
}

int main(int argc, char **argv)
{
    char **command = read_arguments(argc, argv);
    job.log = fopen(argv[1], "we");
    if (!job.log)
        give_up(argv[1]);
    int status = follow(start(command));
    if (WIFSIGNALED(status))
        fprintf(job.log, "signal %d\n", WTERMSIG(status));
    else
        fprintf(job.log, "exit %d\n", WEXITSTATUS(status));
    if (fclose(job.log) != 0)
        give_up(argv[1]);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
