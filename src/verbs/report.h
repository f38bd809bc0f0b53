/* verbs/report.h - what a report is made of, and the passes over the data that find it out. */
#ifndef TN_VERBS_REPORT_H
#define TN_VERBS_REPORT_H

#include "base/arena.h"
#include "base/vector.h"

#include <tenon/report.h>

enum {
    TN_GRID     = 64,           /* a picture has at most so many blocks a side */
    TN_PICTURES = 12            /* the most noticeable tensors have one */
};

/* A tensor as a matrix, its last dimension the columns, cut into blocks. */
typedef struct tn_picture {
    size_t   tensor;            /* its number */
    uint64_t height, width;     /* of the matrix */
    uint32_t rows, columns;     /* of blocks */
    struct tn_grid *grid;
} tn_picture;

/* Finite values of each block. */
typedef struct tn_grid {
    double   sum[TN_GRID * TN_GRID], squares[TN_GRID * TN_GRID];
    uint64_t finite[TN_GRID * TN_GRID];
    float    absmax[TN_GRID * TN_GRID];
} tn_grid;

struct tn_report {
    tn_arena          arena;
    tn_report_options o;
    const tn_file    *file;
    tn_report_totals  totals;
    tn_report_tensor *tensors;
    tn_report_rating *ratings;          /* of all tensors, type after type */
    tn_report_role   *roles;
    tn_report_type   *types;
    tn_datatype     **datatypes;
    const tn_tensor **only_there;       /* tensors that the other file has besides */
    bool              metadata_differs; /* of the files */
    size_t           *order;            /* tensors, the most noticeable first */
    tn_picture        pictures[TN_PICTURES];
    size_t            npictures;
    tn_buf            texts[3];         /* by tn_report_text_kind; empty: not made yet */
    uint64_t          done, total;      /* of all passes, for progress */
    uint64_t          share;            /* of the pass that runs */
};

/* Chooses the tensors and makes the passes; totals, roles and marks are not set. */
tn_status tn_report_gather(tn_report *report, tn_error *err);

/* Makes the pictures whose tensors are set.  One that cannot be read has none. */
tn_status tn_report_draw(tn_report *report, tn_error *err);

#endif
