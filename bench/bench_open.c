/* bench_open.c - how long it takes to open a file and look at every tensor.
 *
 *     bench-open FILE RUNS
 *
 * Prints the seconds that the thread ran in each run, one per line.  A run maps
 * the file anew, so that every page of the index is faulted in again, and gives
 * everything back. */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

static volatile uint64_t seen;   /* keeps the looking from being optimised away */

/* What a listing asks of each tensor. */
static uint64_t look_at(const tn_tensor *t)
{
    tn_stored_info stored = { .size = sizeof stored };
    tn_part_stored(t, t->parts, &stored);
    uint64_t sum = strlen(t->name) + (uint64_t)t->dtype + stored.offset + t->parts[0].nbytes;
    for (uint32_t i = 0; i < t->rank; i++)
        sum += (uint64_t)t->shape[i];
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench-open FILE RUNS\n");
        return 2;
    }
    for (int run = atoi(argv[2]); run > 0; run--) {
        tn_file *file;
        tn_error err;
        double began = own_time();
        if (tn_open(argv[1], NULL, &file, &err) != TN_OK) {
            fprintf(stderr, "bench-open: %s: %s\n", argv[1], err.text);
            return 1;
        }
        uint64_t sum = 0;
        for (size_t i = 0; i < tn_file_count(file); i++)
            sum += look_at(tn_file_tensor(file, i));
        tn_close(file);
        printf("%.6f\n", own_time() - began);
        seen = sum;
    }
    return 0;
}
