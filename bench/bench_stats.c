/* bench_stats.c - statistics against only reading, one thread.
 *
 *     bench-stats FILE RUNS
 *
 * Prints the seconds of a pass that adds up all mapped bytes of the tensors
 * and those of tn_stats(), in turn, one pair a line: the time of the thread. */
#include "add_up.h"
#include "clock.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static double read_only(const tn_file *file)
{
    static volatile uint64_t seen;
    double began = own_time();
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_part *part = &tn_file_tensor(file, i)->parts[0];
        if (part->data)
            seen = seen + add_up(part->data, part->nbytes);
    }
    return own_time() - began;
}

int main(int argc, char **argv)
{
    tn_file *file;
    tn_error err;
    tn_stats_options options = { .size = sizeof options, .jobs = 1 };
    const tn_open_options mapped = { .size = sizeof mapped, .io = TN_IO_MMAP };
    int runs = argc == 3 ? atoi(argv[2]) : 0;
    if (runs < 1) {
        fprintf(stderr, "usage: bench-stats FILE RUNS\n");
        return 2;
    }
    if (tn_open(argv[1], &mapped, &file, &err)) {
        fprintf(stderr, "bench-stats: %s: %s\n", argv[1], err.text);
        return 1;
    }
    for (int i = 0; i <= runs; i++) {
        double reading = read_only(file), began = own_time();
        if (tn_stats(file, &options, NULL, &err)) {
            fprintf(stderr, "bench-stats: %s: %s\n", argv[1], err.text);
            return 1;
        }
        if (i)                  /* the first pass maps the pages */
            printf("%.6f %.6f\n", reading, own_time() - began);
    }
    tn_close(file);
    return 0;
}
