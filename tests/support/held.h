/* tests/support/held.h - what a process holds: descriptors and mappings, to see
 * that nothing is left behind; and processes of their own for what ends one or
 * changes it for good.  Include it after support.h. */
#ifndef TN_TESTS_HELD_H
#define TN_TESTS_HELD_H

#include "require.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

typedef struct held { int descriptors, mappings; } held;

static inline int held_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Sanitizers and valgrind map memory as they like: then only what has the name counts. */
static inline bool others_map(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return SANITIZED || (preload && strstr(preload, "vgpreload"));
}

static inline int held_mappings(const char *name)
{
    static char text[1 << 20];
    size_t n = 0;
    bool all = !others_map();
    int count = 0, fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    for (ssize_t got; (got = read(fd, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    close(fd);
    REQUIRE(n < sizeof text - 1);
    text[n] = '\0';
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        count += all || strstr(line, name) != NULL;
    }
    return count;
}

static inline held held_now(void)
{
    return (held){ held_descriptors(), held_mappings("tenon") };
}

static inline bool nothing_more_than(held before)
{
    held now = held_now();
    return now.descriptors == before.descriptors && now.mappings == before.mappings;
}

/* What waitpid() says of a process that runs `function`, where REQUIRE()
 * stands for CHECK(); 0: all went well. */
static inline int in_child(void (*function)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        function();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

#endif
