/* quant/requantize.h - requantize: codes of one scale to codes of another.
 *
 * A plan is prepared once and run on many blocks.  Threads may share a plan. */
#ifndef TN_QUANT_REQUANTIZE_H
#define TN_QUANT_REQUANTIZE_H

#include "quant/affine.h"

typedef struct tn_requant_side {
    const tn_dtype_info *codes;
    tn_scale_index index;
    const float   *scale;               /* borrowed */
    const int32_t *zero;                /* borrowed; may be NULL */
} tn_requant_side;

typedef struct tn_requant_plan {
    tn_requant_side to, from;
    int32_t         range[2];
    const tn_dtype_info *integer;       /* int64 */
    tn_encode_rules rules;              /* to round a quotient to int64 */
    bool            mli;
    bool            tabled;             /* codes of at most 8 bits: `table` has the result by low byte */
    int32_t         table[256];
} tn_requant_plan;

/* For an array of this shape.  Statuses as tn_requantize().  The plan borrows scales
 * and zero points, which must not change. */
tn_status tn_requant_plan_make(tn_requant_plan *plan, tn_dtype to_codes, const tn_scales *to,
                               tn_dtype from_codes, const tn_scales *from, uint32_t rank,
                               const int64_t *shape, const tn_requantize_options *options, tn_error *err);

/* n dense elements from number `first`.  dst and src begin on a byte, so packed types
 * are divided at multiples of 8 elements.  They must not overlap.  Unused bits of the
 * last byte become 0. */
void tn_requantize_block(const tn_requant_plan *plan, void *dst, const void *src, size_t n, uint64_t first);

#endif
