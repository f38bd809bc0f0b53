/* quant/requantize.h - codes of one scale to codes of another, prepared
 * once and run on many blocks.
 *
 * tn_requantize() and the convert pipeline both work through this.  A plan is
 * not changed by use: any number of threads may share one. */
#ifndef TN_QUANT_REQUANTIZE_H
#define TN_QUANT_REQUANTIZE_H

#include "quant/affine.h"

typedef struct tn_requant_side {
    const tn_dtype_info *codes;
    tn_scale_index index;
    const float   *scale;               /* the caller's */
    const int32_t *zero;                /* or NULL */
} tn_requant_side;

typedef struct tn_requant_plan {
    tn_requant_side to, from;
    int32_t         range[2];
    const tn_dtype_info *integer;       /* int64, and the rules of rounding a quotient to it */
    tn_encode_rules rules;
    bool            mli;
    bool            tabled;             /* a code of at most 8 bits looks its result up, by its low byte */
    int32_t         table[256];
} tn_requant_plan;

/* For an array of this shape; the same statuses as tn_requantize().  Scales and
 * zeros stay the caller's, must not change and live as long as the plan. */
tn_status tn_requant_plan_make(tn_requant_plan *plan, tn_dtype to_codes, const tn_scales *to,
                               tn_dtype from_codes, const tn_scales *from, uint32_t rank,
                               const int64_t *shape, const tn_requantize_options *options, tn_error *err);

/* n dense elements from number `first` on.  Both begin on a byte, so packed
 * types are cut at multiples of 8 elements.  dst and src must not overlap.  The
 * unused bits of a last byte become zero. */
void tn_requantize_block(const tn_requant_plan *plan, void *dst, const void *src, size_t n, uint64_t first);

#endif
