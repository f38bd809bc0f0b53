/* cast/cast.h - a cast prepared once and run on many blocks.
 *
 * tn_cast() and the convert pipeline both work through this.  A plan owns
 * nothing and is not changed by use: any number of threads may share one. */
#ifndef TN_CAST_CAST_H
#define TN_CAST_CAST_H

#include "kernels/cast/table.h"

typedef enum tn_cast_route {
    TN_ROUTE_COPY,              /* same type, and the options change no code of it */
    TN_ROUTE_KERNEL,            /* one kernel */
    TN_ROUTE_FLOAT32,           /* two kernels, with float32 in between: loses nothing before the one
                                 * rounding */
    TN_ROUTE_TABLE,             /* a code of at most 8 bits looks its result up */
    TN_ROUTE_DEFINITION
} tn_cast_route;

typedef enum tn_cast_parts {
    TN_PARTS_REAL,              /* neither is complex */
    TN_PARTS_BOTH,              /* both are: twice as many real elements */
    TN_PARTS_DROP,              /* complex to real: every other element */
    TN_PARTS_ADD                /* real to complex: with imaginary parts of zero */
} tn_cast_parts;

typedef struct tn_cast_plan {
    const tn_dtype_info *to, *from;     /* of one real element: the half type of a complex one */
    const char    *to_name;             /* for messages; the caller may set another one */
    tn_dtype       to_dtype, from_dtype;
    tn_cast_parts  parts;
    unsigned       swap;                /* unit of bytes to reverse in the source, or 0 */
    void         (*swapper)(void *dst, const void *src, size_t n, unsigned unit);
    tn_cast_route  route;
    tn_cast_fn     kernel, second;
    tn_cast_args args;                /* of the kernel that rounds */
    tn_cast_args first_args;          /* of the kernel before it */
    uint64_t       first;               /* index of the array's first element, for stochastic rounding */
    unsigned       refused;             /* TN_ENCODED_* bits that are errors */
    bool           refuses_every_nan;   /* else only for want of a code */
    uint64_t       table[256];
    uint8_t        table_flags[256];
} tn_cast_plan;

/* The byte where element `i` of a dense array begins, and the bytes that n take.  Packed ones begin on a byte
 * only if i is a multiple of 8. */
static inline size_t tn_dense_offset(uint64_t i, unsigned bits)
{
    return (size_t)tn_packed_byte(i, bits);
}

static inline size_t tn_dense_bytes(uint64_t n, unsigned bits)
{
    return (size_t)tn_packed_bytes(n, bits);
}

/* Chooses the way from `from` in the byte order `order` to `to` in host order,
 * with this machine's kernels.  The same statuses and texts as
 * tn_cast_check().  The caller may then set plan->args.stream. */
tn_status tn_cast_plan_make(tn_cast_plan *plan, tn_dtype to, tn_dtype from, tn_byte_order order,
                            const tn_cast_options *options, tn_error *err);

/* As tn_cast_plan_make() with the kernels of the caller's choice. */
tn_status tn_cast_plan_with(tn_cast_plan *plan, const tn_cast_kernels *kernels, tn_dtype to, tn_dtype from,
                            tn_byte_order order, const tn_cast_options *options, tn_error *err);

/* Casts `n` dense elements: those from number `first` on, in row-major order,
 * of an array of this shape.  Both begin on a byte, so packed types are cut at
 * multiples of 8 elements.  dst and src must not overlap.  The unused bits of
 * a last byte become zero.  The floating-point environment must be the default
 * one, as in the work of a pool.
 *
 * TN_ERR_LOSS: an element that the options do not let pass; the text has the
 * index and value of the first one in the block. */
tn_status tn_cast_block(const tn_cast_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                        uint32_t rank, const int64_t *shape, tn_error *err);

/* "element [1, 2]", or "the element" of a scalar: for messages. */
void tn_element_text(char *text, size_t cap, uint64_t index, uint32_t rank, const int64_t *shape);

#endif
