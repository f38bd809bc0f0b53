/* tests/support/side.h - arrays by chance, with any strides, in buffers that
 * have exactly the described size; and their elements bit by bit. */
#ifndef TN_TESTS_SIDE_H
#define TN_TESTS_SIDE_H

#include "random.h"

#include <tenon/tensor.h>

enum { MAX_DIMS = 6 };

typedef struct side {
    tn_dtype dtype;
    unsigned bits;
    uint32_t rank;
    int64_t  shape[MAX_DIMS], stride[MAX_DIMS];
    bool     dense;             /* strides are not given */
    size_t   size;              /* bytes of the buffer, exactly the described size */
    int64_t  first;             /* byte of element 0 */
    uint8_t *buffer;
} side;

static inline void shuffle(uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)below(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

/* Lies in any order of dimensions, with gaps, backwards; `zero`: some elements in one place. */
static inline void make_strides(side *s, bool zero)
{
    uint32_t order[MAX_DIMS] = { 0 };
    int64_t next = 1;
    bool plain = below(2);
    s->dense = below(4) == 0;
    shuffle(order, s->rank);
    for (uint32_t i = 0; i < s->rank; i++) {
        uint32_t d = s->dense ? s->rank - 1 - i : order[i];
        bool strange = !s->dense && !plain && below(3) == 0;
        next += strange ? (int64_t)below(3) : 0;
        s->stride[d] = next;
        next *= s->shape[d] ? s->shape[d] : 1;
        if (strange && s->bits >= 8 && below(3) == 0)
            s->stride[d] = -s->stride[d];
        if (strange && zero && below(4) == 0)
            s->stride[d] = 0;
    }
}

static inline void make_buffer(side *s)
{
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < s->rank; i++) {
        int64_t reach = s->shape[i] ? (s->shape[i] - 1) * s->stride[i] : 0;
        *(reach < 0 ? &low : &high) += reach;
    }
    s->size = (size_t)((high - low + 1) * s->bits + 7) / 8;
    s->first = -low * (int64_t)s->bits / 8;
    s->buffer = malloc(s->size);
    assert_non_null(s->buffer);
    for (size_t i = 0; i < s->size; i++)
        s->buffer[i] = (uint8_t)below(256);
}

static inline tn_array array_of(const side *s)
{
    return (tn_array){ .dtype = s->dtype, .rank = s->rank, .shape = s->shape,
                       .stride = s->dense ? NULL : s->stride };
}

/* Bit by bit, from a stream whose first bit is the lowest of its first byte. */
static inline void copy_bits(uint8_t *dst, int64_t to, const uint8_t *src, int64_t from, unsigned bits)
{
    for (unsigned b = 0; b < bits; b++, to++, from++) {
        unsigned bit = (unsigned)src[from / 8] >> (from % 8) & 1;
        dst[to / 8] = (uint8_t)((dst[to / 8] & ~(1u << (to % 8))) | bit << (to % 8));
    }
}

#endif
