/* kernels/sparse/scalar.c - selects the entries of a sparse tensor: the definition. */
#include "kernels/sparse/table.h"

#include <string.h>

#define NUMBER(bits, bytes)                                                                         \
    INLINE bool keeps_##bytes(const tn_filter *f, const uint8_t *p)                                 \
    {                                                                                               \
        uint##bits##_t x;                                                                           \
        memcpy(&x, p, sizeof x);                                                                    \
        return (uint##bits##_t)((uint##bits##_t)(x + f->add) & f->mask) > (uint##bits##_t)f->limit; \
    }

NUMBER(8, 1)
NUMBER(16, 2)
NUMBER(32, 4)
NUMBER(64, 8)

INLINE bool keeps_fnuz(const tn_filter *f, const uint8_t *p)
{
    return keeps_1(f, p) || *p == 0x80;
}

INLINE bool keeps_pair_4(const tn_filter *f, const uint8_t *p)
{
    return keeps_4(f, p) || keeps_4(f, p + 4);
}

INLINE bool keeps_pair_8(const tn_filter *f, const uint8_t *p)
{
    return keeps_8(f, p) || keeps_8(f, p + 8);
}

/* Every element is written; the next one overwrites it unless it is kept.  No branch has to be predicted. */
#define KERNELS(name, width)                                                                        \
    static size_t count_##name(const tn_filter *f, const void *elements, size_t n)                  \
    {                                                                                               \
        const uint8_t *p = elements;                                                                \
        size_t k = 0;                                                                               \
        for (size_t i = 0; i < n; i++)                                                              \
            k += keeps_##name(f, p + i * (width));                                                  \
        return k;                                                                                   \
    }                                                                                               \
    static size_t pick_##name(const tn_filter *f, const void *elements, size_t n, tn_picked to)     \
    {                                                                                               \
        const uint8_t *p = elements;                                                                \
        size_t k = 0;                                                                               \
        for (size_t i = 0; i < n && k < to.room; i++) {                                             \
            uint32_t place = to.base + (uint32_t)i;                                                 \
            if (to.values)                                                                          \
                memcpy(to.values + k * (width), p + i * (width), width);                            \
            if (to.places)                                                                          \
                memcpy(to.places + k * sizeof place, &place, sizeof place);                         \
            k += keeps_##name(f, p + i * (width));                                                  \
        }                                                                                           \
        return k;                                                                                   \
    }

KERNELS(1, 1)
KERNELS(2, 2)
KERNELS(4, 4)
KERNELS(8, 8)
KERNELS(fnuz, 1)
KERNELS(pair_4, 8)
KERNELS(pair_8, 16)

/* --- order ------------------------------------------------------------------- */

INLINE uint32_t number_at(const void *numbers, size_t i)
{
    uint32_t x;
    memcpy(&x, (const uint8_t *)numbers + i * sizeof x, sizeof x);
    return x;
}

INLINE uint64_t pair_at(const void *pairs, size_t i)
{
    return (uint64_t)number_at(pairs, 2 * i) << 32 | number_at(pairs, 2 * i + 1);
}

bool tn_ascend_scalar(const void *numbers, size_t n)
{
    unsigned wrong = 0;
    for (size_t i = 1; i < n; i++)
        wrong |= number_at(numbers, i) <= number_at(numbers, i - 1);
    return !wrong;
}

bool tn_pairs_ascend_scalar(const void *pairs, size_t n, const uint32_t limits[2])
{
    unsigned wrong = 0;
    for (size_t i = 0; i < n; i++) {
        wrong |= (unsigned)(i && pair_at(pairs, i) <= pair_at(pairs, i - 1));
        wrong |= (unsigned)(number_at(pairs, 2 * i) >= limits[0]) |
                 (unsigned)(number_at(pairs, 2 * i + 1) >= limits[1]);
    }
    return !wrong;
}

void tn_sparse_kernels_init_scalar(tn_sparse_kernels *k)
{
    *k = (tn_sparse_kernels){
        .ascend = tn_ascend_scalar, .pairs_ascend = tn_pairs_ascend_scalar,
        .count = { count_1, count_2, count_4, count_8, count_fnuz, count_pair_4, count_pair_8 },
        .pick  = { pick_1, pick_2, pick_4, pick_8, pick_fnuz, pick_pair_4, pick_pair_8 },
    };
}
