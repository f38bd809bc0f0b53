/* kernels/sparse/scalar.c - which elements stay, the definition. */
#include "kernels/sparse/table.h"

#include <stdbool.h>
#include <string.h>


#define NUMBER(bits, bytes)                                                                     \
    INLINE bool stays_##bytes(const tn_sieve *s, const uint8_t *p)                              \
    {                                                                                           \
        uint##bits##_t x;                                                                       \
        memcpy(&x, p, sizeof x);                                                                \
        return (uint##bits##_t)((uint##bits##_t)(x + s->add) & s->mask) > (uint##bits##_t)s->limit; \
    }

NUMBER(8, 1)
NUMBER(16, 2)
NUMBER(32, 4)
NUMBER(64, 8)

INLINE bool stays_fnuz(const tn_sieve *s, const uint8_t *p)
{
    return stays_1(s, p) || *p == 0x80;
}

INLINE bool stays_pair_4(const tn_sieve *s, const uint8_t *p)
{
    return stays_4(s, p) || stays_4(s, p + 4);
}

INLINE bool stays_pair_8(const tn_sieve *s, const uint8_t *p)
{
    return stays_8(s, p) || stays_8(s, p + 8);
}

typedef bool (*stays_fn)(const tn_sieve *s, const uint8_t *p);

INLINE size_t count(const tn_sieve *s, const uint8_t *p, size_t n, size_t width, stays_fn stays)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += stays(s, p + i * width);
    return k;
}

/* Each is written, and written over by the next unless it stays: nothing to guess. */
INLINE size_t pick(const tn_sieve *s, const uint8_t *p, size_t n, uint8_t *values, uint8_t *places,
                   uint32_t base, size_t room, size_t width, stays_fn stays)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k < room; i++) {
        uint32_t place = base + (uint32_t)i;
        if (values)
            memcpy(values + k * width, p + i * width, width);
        if (places)
            memcpy(places + k * sizeof place, &place, sizeof place);
        k += stays(s, p + i * width);
    }
    return k;
}

#define KERNELS(name, width)                                                                          \
    static size_t count_##name(const tn_sieve *s, const void *p, size_t n)                            \
    {                                                                                                 \
        return count(s, p, n, width, stays_##name);                                                   \
    }                                                                                                 \
    static size_t pick_##name(const tn_sieve *s, const void *p, size_t n, void *values, void *places, \
                              uint32_t base, size_t room)                                             \
    {                                                                                                 \
        return pick(s, p, n, values, places, base, room, width, stays_##name);                        \
    }

KERNELS(1, 1)
KERNELS(2, 2)
KERNELS(4, 4)
KERNELS(8, 8)
KERNELS(fnuz, 1)
KERNELS(pair_4, 8)
KERNELS(pair_8, 16)

/* --- the table ----------------------------------------------------------- */

void tn_sparse_kernels_init_scalar(tn_sparse_kernels *k)
{
    *k = (tn_sparse_kernels){
        .count = { count_1, count_2, count_4, count_8, count_fnuz, count_pair_4, count_pair_8 },
        .pick  = { pick_1, pick_2, pick_4, pick_8, pick_fnuz, pick_pair_4, pick_pair_8 },
    };
}
