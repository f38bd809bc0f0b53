/* pipeline/read.h - the place of a view that a caller of the library has opened. */
#ifndef TN_PIPELINE_READ_H
#define TN_PIPELINE_READ_H

#include "pipeline/view.h"

typedef struct tn_opened {
    tn_view_place     place;    /* first: view->place is one of these */
    tn_arena          arena;
    tn_pool          *pool;     /* of one thread, for the floating-point environment */
    tn_worker         worker, *workers[1];
    bool              was_read; /* in order: the next time all goes into a spill */
    const tn_view    *whole;    /* parts of this one are in the spills; or NULL */
    tn_spill          spills[TN_MAX_PARTS];
    struct tn_opened *next;     /* of other inputs of the view, which are closed with it; or NULL */
} tn_opened;

static inline tn_opened *tn_opened_of(const tn_view *view)
{
    return (tn_opened *)(uintptr_t)view->place;
}

#endif
