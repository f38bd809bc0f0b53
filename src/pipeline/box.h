/* pipeline/box.h - some indices of each dimension of a view, read as one dense array. */
#ifndef TN_PIPELINE_BOX_H
#define TN_PIPELINE_BOX_H

#include "pipeline/view.h"

/* Of dimension i the indices start[i], start[i] + step[i] ...: extent[i] of them.  Inside the shape with
 * padding; steps are positive. */
typedef struct tn_box {
    int64_t start[TN_MAX_RANK], step[TN_MAX_RANK], extent[TN_MAX_RANK];
} tn_box;

/* Elements of a box take whole bytes: one narrower than a byte takes one. */
static inline unsigned tn_box_bytes(const tn_view *v)
{
    return v->bits < 8 ? 1 : v->bits / 8;
}

/* Reads the ranges of the view that the box lies in, neighbours together, and copies its elements to `out`,
 * one after another. */
tn_status tn_view_box(const tn_view *v, const tn_box *box, tn_worker *w, uint8_t *out, tn_error *err);

/* Adds the stored bytes that the box is made of. */
tn_status tn_box_needs(const tn_view *v, const tn_box *box, tn_needs *needs, tn_error *err);

#endif
