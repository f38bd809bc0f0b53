/* cast/cast.h - plans a cast once and runs it on many blocks.
 *
 * tn_cast() and the convert pipeline use this.  A plan owns nothing and running
 * it does not change it: any number of threads may use one. */
#ifndef TN_CAST_CAST_H
#define TN_CAST_CAST_H

#include "kernels/cast/table.h"
#include "kernels/round/table.h"

typedef enum tn_cast_route {
    TN_ROUTE_COPY,              /* same type, and the options change no code */
    TN_ROUTE_KERNEL,            /* one kernel */
    TN_ROUTE_FLOAT32,           /* two kernels through float32; only the second one rounds */
    TN_ROUTE_ROUNDED,           /* float32 is rounded in another mode than to even, and then cast exactly */
    TN_ROUTE_TABLE,             /* a table by code, for codes of at most 8 bits */
    TN_ROUTE_DEFINITION
} tn_cast_route;

typedef enum tn_cast_parts {
    TN_PARTS_REAL,              /* neither is complex */
    TN_PARTS_BOTH,              /* both are: twice as many real elements */
    TN_PARTS_DROP,              /* complex to real: every other element */
    TN_PARTS_ADD                /* real to complex: with imaginary parts of zero */
} tn_cast_parts;

typedef struct tn_cast_plan {
    const tn_dtype_info *to, *from;     /* tn_real_type() of the types */
    const char    *to_name;             /* for messages; the caller may set another one */
    tn_dtype       to_dtype, from_dtype;
    tn_cast_parts  parts;
    unsigned       swap;                /* unit of bytes to reverse in the source, or 0 */
    void         (*swapper)(void *dst, const void *src, size_t n, unsigned unit);
    tn_cast_route  route;
    tn_cast_fn     kernel, second;      /* ROUNDED: the kernel may be NULL, the source is float32 then */
    tn_round_fn    rounder;             /* ROUNDED only */
    tn_round_rules round_rules;
    tn_cast_args args;                /* of the kernel that rounds */
    tn_cast_args first_args;          /* of the kernel before it */
    uint64_t       first;               /* index of the array's first element, for stochastic rounding */
    unsigned       refused;             /* TN_ENCODED_* bits and TN_CAST_FLUSHED that are errors */
    bool           prefers_ordinary;    /* stores: streaming ones are slower */
    bool           refuses_every_nan;   /* else only NaN without a code */
    bool           has_limits;          /* tn_cast_plan_count() was called, and some values are lost */
    tn_cast_limits limits;
    tn_cast_count_fn  count;
    tn_cast_within_fn source_within, result_within;     /* the second is NULL where results tell nothing */
    tn_code_range  zero, new_zero, new_last;    /* codes of 0, before and after; of the largest values */
    uint64_t       table[256];          /* TABLE only: else they are not set */
    uint8_t        table_flags[256];
} tn_cast_plan;

/* The byte where element `i` of a dense array begins, and the bytes of n elements.  Packed elements begin on
 * a byte if i is a multiple of 8. */
static inline size_t tn_dense_offset(uint64_t i, unsigned bits)
{
    return (size_t)tn_packed_byte(i, bits);
}

static inline size_t tn_dense_bytes(uint64_t n, unsigned bits)
{
    return (size_t)tn_packed_bytes(n, bits);
}

/* How kernels round float32 to the numbers of a type, in any mode; false: they do not. */
bool tn_round_rules_for(tn_round_rules *rules, const tn_dtype_info *to, tn_round round, uint64_t seed);

/* Plans a cast from `from` in byte order `order` to `to` in host order, with the
 * kernels of this machine.  The same statuses and texts as tn_cast_check().  The
 * caller may then set plan->args.stream. */
tn_status tn_cast_plan_make(tn_cast_plan *plan, tn_dtype to, tn_dtype from, tn_byte_order order,
                            const tn_cast_options *options, tn_error *err);

typedef struct tn_cast_types {
    tn_dtype      to, from;
    tn_byte_order order;        /* of the source */
} tn_cast_types;

/* As tn_cast_plan_make() with other kernels. */
tn_status tn_cast_plan_with(tn_cast_plan *plan, const tn_cast_kernels *kernels, tn_cast_types types,
                            const tn_cast_options *options, tn_error *err);

enum { TN_CAST_FLUSHED = 4 };   /* beside the TN_ENCODED_* bits: a value other than 0 became 0 */

/* What happens to one element (or part of a complex one) of this code, by the definition. */
unsigned tn_cast_flags(const tn_cast_plan *plan, uint64_t code, uint64_t index);

/* Lets tn_cast_count() count.  Takes some microseconds: once for all blocks. */
void tn_cast_plan_count(tn_cast_plan *plan, const tn_cast_kernels *kernels);

/* Adds what became of n elements, those from number `first` on, that tn_cast_block() cast into dst. */
void tn_cast_count(const tn_cast_plan *plan, const void *dst, const void *src, size_t n, uint64_t first,
                   tn_cast_lost *lost);

/* The same by the results alone, where it is known that nothing is lost.  False: they cannot tell. */
bool tn_cast_count_kept(const tn_cast_plan *plan, const void *dst, size_t n, tn_cast_lost *lost);

/* Casts `n` dense elements: those from number `first` on, in row-major order,
 * of an array of this shape.  Both begin on a byte, so blocks of packed types
 * begin at multiples of 8 elements.  dst and src must not overlap.  The unused
 * bits of the last byte become zero.  The floating-point environment must be the
 * default one, as in the work of a pool.
 *
 * TN_ERR_LOSS: the options refuse an element; the text has the index and value of
 * the first one in the block. */
tn_status tn_cast_block(const tn_cast_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                        uint32_t rank, const int64_t *shape, tn_error *err);

/* "element [1, 2]", or "the element" of a scalar: for messages. */
void tn_element_text(char *text, size_t cap, uint64_t index, uint32_t rank, const int64_t *shape);

#endif
