/* limits.h - what memory can do at best, measured in turn with the work, for the programs of this folder.
 *
 * The limit of a row is the speed that its traffic allows: the bytes that it must read at the speed of only
 * reading, and those that it must write at the speed of streaming stores, one after the other. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "add_up.h"
#include "clock.h"

typedef struct limits {
    double copy, reading, storing;      /* bytes per second of one thread, the best so far; 0: not yet */
} limits;

/* Past the caches where the processor can do so; `to` is aligned to 16 as malloc() aligns it. */
static inline void store_only(uint8_t *to, size_t n)
{
#ifdef __SSE2__
    const __m128i ones = _mm_set1_epi8(1);
    for (size_t i = 0; i + 16 <= n; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i), ones);
    _mm_sfence();
#else
    memset(to, 1, n);
#endif
}

/* One round: memcpy, only reading and only storing n bytes, by the time of this thread. */
static inline void measure_limits(limits *best, void *to, const void *from, size_t n)
{
    static volatile uint64_t seen;
    double began = own_time();
    memcpy(to, from, n);
    double copied = own_time();
    seen = seen + add_up(from, n);
    double added = own_time();
    store_only(to, n);
    double stored = own_time(), size = (double)n;
    const limits now = { size / (copied - began), size / (added - copied), size / (stored - added) };
    best->copy = now.copy > best->copy ? now.copy : best->copy;
    best->reading = now.reading > best->reading ? now.reading : best->reading;
    best->storing = now.storing > best->storing ? now.storing : best->storing;
}

/* Bytes per second at the limit; `counted` are those that the row's speed counts. */
static inline double limit_of(const limits *l, double counted, double read, double written)
{
    return counted / (read / l->reading + written / l->storing);
}

#endif
