/* tests/kernels/check.h - what the checkers of kernels share: rooms with
 * guards, one line per kernel, every level that this CPU has.
 *
 * Plain C, so that they also run where there is no cmocka. */
#ifndef TN_TESTS_KERNELS_CHECK_H
#define TN_TESTS_KERNELS_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "random.h"

enum { CANARY = 0xa5 };

static unsigned passed, failed;

/* `room` bytes between two pages that must not be touched; the last ones are at the second. */
static inline uint8_t *guarded(size_t room)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (room + page - 1) / page * page;
    uint8_t *p = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, size, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(3);
    }
    return p + page + size - room;
}

static inline void report(const char *level, const char *name, bool good)
{
    printf("%s %s: %s\n", good ? "[       OK ]" : "[  FAILED  ]", level, name);
    fflush(stdout);
    *(good ? &passed : &failed) += 1;
}

/* Those that this CPU has ("any"), or the one that the command line names; the program's status. */
static inline int check_levels(int argc, char **argv, void (*check_level)(unsigned cpu))
{
    enum { AVX512 = TN_CPU_AVX2 | TN_CPU_AVX512 };
    static const unsigned masks[] = { 0, TN_CPU_AVX2, AVX512, AVX512 | TN_CPU_VBMI, TN_CPU_NEON };
    unsigned here = tn_cpu_detect();
    for (unsigned i = 0; i < sizeof masks / sizeof masks[0]; i++)
        if ((masks[i] & here) == masks[i] &&
            (argc < 2 || strcmp(argv[1], "any") == 0 || strcmp(argv[1], tn_cpu_name(masks[i])) == 0))
            check_level(masks[i]);
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0 || passed == 0;
}

#endif
