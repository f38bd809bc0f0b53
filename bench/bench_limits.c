/* bench_limits.c - how fast this machine can be at best.
 *
 *     bench-limits crc32c FILE THREADS     isa-l's crc32c over the mapped file
 *     bench-limits read FILE THREADS       only reads the mapped file
 *     bench-limits memory MIB RUNS         one thread: memcpy, only reading, streaming stores
 *
 * Prints the seconds taken; with `memory` bytes per second of the three, the best of RUNS. */
#include "clock.h"
#include "limits.h"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPAN ((size_t)8 << 20)  /* what a thread takes at a time */
enum { MAX_THREADS = 256 };

typedef struct work {
    bool           sums;        /* checksums; else it is only read */
    unsigned char *bytes;
    size_t         size;
    atomic_size_t  next;        /* span */
    atomic_uint    sum;         /* keeps the result from being optimised away */
} work;

static void *checksum_spans(void *argument)
{
    work *w = argument;
    for (size_t at; (at = atomic_fetch_add(&w->next, 1) * SPAN) < w->size;) {
        size_t n = w->size - at < SPAN ? w->size - at : SPAN;
        unsigned sum = w->sums ? crc32_iscsi(w->bytes + at, (int)n, 0) : (unsigned)add_up(w->bytes + at, n);
        atomic_fetch_xor(&w->sum, sum);
    }
    return NULL;
}

static int read_file(const char *path, int threads, bool sums)
{
    pthread_t others[MAX_THREADS];
    struct stat st;
    double began = now();
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return perror(path), 1;
    work w = { .size = (size_t)st.st_size, .sums = sums };
    w.bytes = mmap(NULL, w.size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (w.bytes == MAP_FAILED)
        return perror(path), 1;
    int started = 0;
    while (started < threads - 1 && pthread_create(&others[started], NULL, checksum_spans, &w) == 0)
        started++;
    checksum_spans(&w);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    munmap(w.bytes, w.size);
    close(fd);
    printf("%.6f\n", now() - began);
    return 0;
}

static int memory(size_t size, int runs)
{
    limits best = { 0 };
    char *from = malloc(size), *to = malloc(size);
    if (!from || !to) {
        free(from);
        free(to);
        return perror("bench-limits"), 1;
    }
    memset(from, 1, size);
    memset(to, 2, size);
    for (; runs > 0; runs--)
        measure_limits(&best, to, from, size);
    printf("%.0f %.0f %.0f\n", best.copy, best.reading, best.storing);
    free(from);
    free(to);
    return 0;
}

int main(int argc, char **argv)
{
    int number = argc == 4 ? atoi(argv[3]) : 0;
    bool sums = argc == 4 && strcmp(argv[1], "crc32c") == 0;
    if (number >= 1 && number <= MAX_THREADS && (sums || strcmp(argv[1], "read") == 0))
        return read_file(argv[2], number, sums);
    if (number >= 1 && strcmp(argv[1], "memory") == 0 && atoi(argv[2]) > 0)
        return memory((size_t)atoi(argv[2]) << 20, number);
    fprintf(stderr, "usage: bench-limits crc32c|read FILE THREADS | bench-limits memory MIB RUNS\n");
    return 2;
}
