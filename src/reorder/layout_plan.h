/* reorder/layout_plan.h - a simplified block and the loops that move it.
 *
 * Private to tn_reorder_block(): layout_block.c plans and walks the outer
 * dimensions, layout_inner.c and layout_interleave.c move the inner ones. */
#ifndef TN_REORDER_LAYOUT_PLAN_H
#define TN_REORDER_LAYOUT_PLAN_H

#include "reorder/layout.h"

enum { TN_MAX_ELEMENT = 16 };   /* bytes */

/* `copy` of `extent` elements come from src, the rest is filled.  Strides in elements. */
typedef struct tn_reorder_axis {
    int64_t extent, copy, dst, src;
} tn_reorder_axis;

typedef struct tn_reorder_plan tn_reorder_plan;

/* Moves the last dimensions of a block; dst and src are the places of their first elements. */
typedef void (*tn_inner_fn)(const tn_reorder_plan *p, int64_t dst, int64_t src);

struct tn_reorder_plan {
    const tn_reorder_kernels *kernels;
    uint8_t        *dst;
    const uint8_t  *src;
    unsigned        bits;       /* of an element, if `size` is 0 */
    size_t          size;       /* bytes of an element; 0: narrower than one */
    uint32_t        rank;       /* 1 or more */
    tn_reorder_axis dims[TN_MAX_RANK];
    uint8_t         fill[TN_LINE];      /* repeated */
    bool            stream;
    uint32_t        dense;      /* from this dimension on dst has no gaps */
    tn_inner_fn     inner;      /* for the last inner_rank dimensions */
    uint32_t        inner_rank;
    tn_interleave   interleave; /* for tn_inner_interleaved() */
};

/* Fills n consecutive elements of dst. */
void tn_reorder_fill(const tn_reorder_plan *p, int64_t at, int64_t n);

/* One dimension.  strided: any strides.  row: strides of 1 on both sides. */
void tn_inner_strided(const tn_reorder_plan *p, int64_t dst, int64_t src);
void tn_inner_row(const tn_reorder_plan *p, int64_t dst, int64_t src);
void tn_inner_row_packed(const tn_reorder_plan *p, int64_t dst, int64_t src);

/* Two dimensions: src is dense along the last but one, dst along the last.
 * staged: lines of dst contain padding or parts of several rows, so they are
 * assembled first; dst has no gaps. */
void tn_inner_transpose(const tn_reorder_plan *p, int64_t dst, int64_t src);
void tn_inner_transpose_staged(const tn_reorder_plan *p, int64_t dst, int64_t src);
void tn_inner_transpose_packed(const tn_reorder_plan *p, int64_t dst, int64_t src);
bool tn_transpose_needs_stage(const tn_reorder_plan *p);

/* Two dimensions: short rows without gaps in dst. */
void tn_inner_rows_staged(const tn_reorder_plan *p, int64_t dst, int64_t src);
bool tn_rows_need_stage(const tn_reorder_plan *p);

/* Two dimensions, one with few elements.  False: not for this plan. */
bool tn_plan_interleave(tn_reorder_plan *p);
void tn_inner_interleaved(const tn_reorder_plan *p, int64_t dst, int64_t src);

#endif
