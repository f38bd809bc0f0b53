/* tests/fuzz/sets.h - several files in one input: each is two bytes of length,
 * little-endian, and its bytes.  The first is the index of a set of shards. */
#ifndef TN_FUZZ_SETS_H
#define TN_FUZZ_SETS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SET_STEM  "m"
#define SET_INDEX SET_STEM ".safetensors.index.json"

enum { SET_FILES = 5 };

/* The name of file i of n. */
static inline void set_name(char name[60], unsigned i, unsigned n)
{
    snprintf(name, 60, "%s-%05u-of-%05u.safetensors", SET_STEM, i, n);
}

/* Appends a file at `at`; returns where the next one goes. */
static inline size_t set_put(uint8_t *input, size_t cap, size_t at, const uint8_t *bytes, size_t n)
{
    if (n > UINT16_MAX || cap - at < n + 2)
        return at;
    input[at] = (uint8_t)n;
    input[at + 1] = (uint8_t)(n >> 8);
    memcpy(input + at + 2, bytes, n);
    return at + 2 + n;
}

/* Takes the next file; the last one may be cut. */
static inline size_t set_take(const uint8_t **at, size_t *left, const uint8_t **bytes)
{
    if (*left < 2)
        return SIZE_MAX;
    size_t n = (size_t)(*at)[0] | (size_t)(*at)[1] << 8;
    n = n < *left - 2 ? n : *left - 2;
    *bytes = *at + 2;
    *at += 2 + n;
    *left -= 2 + n;
    return n;
}

#endif
