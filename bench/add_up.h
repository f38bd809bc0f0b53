/* add_up.h - reading memory as fast as it can be read, for the programs of this folder. */
#ifndef BENCH_ADD_UP_H
#define BENCH_ADD_UP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Compilers make vectors of this, the widest that the machine has: it is as fast as memory. */
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static uint64_t add_up(const uint8_t *bytes, size_t n)
{
    uint64_t sum = 0, word;
    for (size_t i = 0; i < n / sizeof word; i++) {
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        sum += word;
    }
    return sum;
}

#endif
