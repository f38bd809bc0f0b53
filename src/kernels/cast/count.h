/* kernels/cast/count.h - counts the values that a cast loses.
 *
 * Included once by each level's file: plain loops that the compiler makes vectors of.  Counters have the
 * width of the codes, and each `chunk` of codes fits into them. */
#ifndef TN_KERNELS_CAST_COUNT_H
#define TN_KERNELS_CAST_COUNT_H

#include "kernels/cast/table.h"

#include <string.h>

#define WITHIN(name, type, chunk)                                                                            \
    static uint64_t name(const void *src, size_t n, const tn_code_range *range)                              \
    {                                                                                                        \
        const type mask = (type)range->mask, first = (type)range->first, span = (type)range->span;           \
        uint64_t all = 0;                                                                                    \
        for (size_t i = 0; i < n; i += (chunk)) {                                                            \
            const uint8_t *s = (const uint8_t *)src + i * sizeof(type);                                      \
            size_t some = n - i < (chunk) ? n - i : (chunk);                                                 \
            type found = 0, code;                                                                            \
            for (size_t k = 0; k < some; k++) {                                                              \
                memcpy(&code, s + k * sizeof code, sizeof code);                                             \
                found = (type)(found + ((type)((code & mask) - first) <= span ? 1 : 0));                     \
            }                                                                                                \
            all += found;                                                                                    \
        }                                                                                                    \
        return all;                                                                                          \
    }

/* The limits of positive and of negative values are chosen by masks, without a branch. */
#define COUNT(name, type, chunk)                                                                             \
    static void name(const void *src, size_t n, const tn_cast_limits *l, tn_cast_lost *lost)                 \
    {                                                                                                        \
        const type sign = (type)l->sign, zero = (type)l->zero, last = (type)l->finite,                       \
                   low = (type)l->flushed[0], other_low = (type)(l->flushed[0] ^ l->flushed[1]),             \
                   high = (type)l->beyond[0], other_high = (type)(l->beyond[0] ^ l->beyond[1]),              \
                   flip = l->is_integer ? (type)-1 : 0, drop = l->is_integer ? 0 : (type)l->sign;            \
        for (size_t i = 0; i < n; i += (chunk)) {                                                            \
            const uint8_t *s = (const uint8_t *)src + i * sizeof(type);                                      \
            size_t some = n - i < (chunk) ? n - i : (chunk);                                                 \
            type values = 0, flushed = 0, beyond = 0, code;                                                  \
            for (size_t k = 0; k < some; k++) {                                                              \
                memcpy(&code, s + k * sizeof code, sizeof code);                                             \
                type minus = code & sign ? (type)-1 : 0, turn = (type)(minus & flip);                        \
                type size = (type)(((code ^ turn) - turn) & (type)~drop);                                    \
                type is_value = size > zero ? 1 : 0;                                                         \
                type is_low = size <= (type)(low ^ (other_low & minus)) ? is_value : 0;                      \
                type is_high = size > (type)(high ^ (other_high & minus)) ? 1 : 0;                           \
                values = (type)(values + is_value);                                                          \
                flushed = (type)(flushed + is_low);                                                          \
                beyond = (type)(beyond + (size <= last ? is_high : 0));                                      \
            }                                                                                                \
            lost->values += values;                                                                          \
            lost->flushed += flushed;                                                                        \
            lost->saturated += beyond;                                                                       \
        }                                                                                                    \
    }

#define COUNTERS(bits, chunk)                               \
    WITHIN(within##bits, uint##bits##_t, chunk)             \
    COUNT(count##bits, uint##bits##_t, chunk)
COUNTERS(8, 128)
COUNTERS(16, 4096)
COUNTERS(32, 4096)
COUNTERS(64, 4096)

static void set_counters(tn_cast_kernels *k)
{
    const tn_cast_count_fn count[] = { count8, count16, count32, count64 };
    const tn_cast_within_fn within[] = { within8, within16, within32, within64 };
    memcpy(k->count, count, sizeof count);
    memcpy(k->within, within, sizeof within);
}

#endif
