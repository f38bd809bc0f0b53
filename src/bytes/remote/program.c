/* bytes/remote/program.c - the output of a program. */
#include "bytes/remote/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 60 };

extern char **environ;

static int start(const char *command, int output, pid_t *child)
{
    const char *const words[] = { "sh", "-c", command, NULL };
    posix_spawn_file_actions_t actions;
    int problem = posix_spawn_file_actions_init(&actions);
    if (problem)
        return problem;
    problem = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!problem)
        problem = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!problem)
        problem = posix_spawn(child, "/bin/sh", &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return problem;
}

/* Reads to the end; false: it took too long, or there was too much. */
static bool read_all(int fd, char *output, size_t cap, size_t *n)
{
    time_t began = time(NULL);
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        time_t passed = time(NULL) - began;
        if (passed >= SECONDS || *n == cap || poll(&p, 1, (int)(SECONDS - passed) * 1000) == 0)
            return false;
        ssize_t got = read(fd, output + *n, cap - *n);
        if (got == 0)
            return true;
        if (got < 0 && errno != EINTR)
            return false;
        *n += got > 0 ? (size_t)got : 0;
    }
}

tn_status tn_program_run(const char *command, char *output, size_t cap, size_t *n, tn_error *err)
{
    int ends[2], state = 0;
    pid_t child;
    *n = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tn_fail_errno(err, errno, "cannot run a program");
    int problem = start(command, ends[1], &child);
    close(ends[1]);
    bool good = !problem && read_all(ends[0], output, cap, n);
    close(ends[0]);
    if (problem)
        return tn_fail_errno(err, problem, "cannot run a program");
    if (!good)
        kill(child, SIGKILL);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        continue;
    if (good && WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return TN_OK;
    return tn_fail(err, TN_ERR_IO, good ? "the program failed with status %d"
                                        : "the program took longer than %d seconds or wrote too much",
                   good ? WEXITSTATUS(state) : SECONDS);
}
