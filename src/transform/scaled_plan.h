/* transform/scaled_plan.h - a tensor cut into tiles, and where the codes of
 * each lie in its parts.
 *
 * Whatever its rank, a tensor is seen as [outer][rows][columns][inner] with
 * tiles of so many rows and columns: a vector tile has one row, and a scale of
 * the whole tensor has one tile of all rows.  Tiles are worked on in bundles
 * that share no byte of any part with another one, and tiles that are too large
 * to be held in pieces. */
#ifndef TN_TRANSFORM_SCALED_PLAN_H
#define TN_TRANSFORM_SCALED_PLAN_H

#include "transform/cast.h"
#include "transform/tile.h"

/* Numbers of one width: packed ones narrower than a byte, else words of 1, 2 or 4 bytes. */
typedef struct tn_scaled_field {
    uint8_t *data;              /* or NULL: there is no such part */
    unsigned bits;
    uint64_t nbytes;            /* of the part */
} tn_scaled_field;

typedef struct tn_scaled_plan {
    const tn_datatype *d;
    tn_scaled_options  o;
    uint32_t       rank;        /* the tensor */
    const int64_t *shape;
    uint64_t       count;
    uint64_t outer, rows, columns, inner;
    uint64_t last;              /* extent of the last dimension: rows of packed data are as long */
    uint64_t tile_rows, tile_columns;           /* with what pads it */
    uint64_t tiles_down, tiles_across;
    uint64_t piece_rows, piece_columns;         /* all of a tile, or less */
    uint64_t pieces_down, pieces_across;        /* of a tile */
    uint64_t run, lanes;                        /* tiles of a bundle: across, and beside one another in the last dimension */
    uint64_t runs, lanes_across;                /* bundles: across, and in each row of the last dimension */
    uint64_t bundles;
    uint64_t slots;             /* of data along the columns */
    tn_scaled_field data, scale, tscale, zero, offset, meta, mask;
} tn_scaled_plan;

/* One tile, or one piece of it. */
typedef struct tn_scaled_place {
    uint64_t outer, down, across, inner;        /* the tile */
    uint64_t row, column;                       /* of the piece, in the tile */
    uint64_t rows, columns;                     /* its size */
} tn_scaled_place;

/* `parts` may be NULL: there are none then. */
tn_status tn_scaled_plan_make(tn_scaled_plan *plan, const tn_datatype *d, uint32_t rank, const int64_t *shape,
                              const tn_scaled_options *o, void *const *parts, tn_error *err);

/* Pieces of a tile. */
static inline uint64_t tn_scaled_pieces(const tn_scaled_plan *p)
{
    return p->pieces_down * p->pieces_across;
}

/* The tiles of a bundle: how many, and where the k-th one's piece is. */
uint64_t        tn_scaled_bundle_tiles(const tn_scaled_plan *p, uint64_t bundle);
tn_scaled_place tn_scaled_place_at(const tn_scaled_plan *p, uint64_t bundle, uint64_t k, uint64_t piece);

/* The number of its tile among all, in the order of scales. */
uint64_t tn_scaled_tile_number(const tn_scaled_plan *p, const tn_scaled_place *at);

/* The elements of the tensor that a row of a piece consists of: `n` of them
 * from `first` on, `inner` apart; what follows them in the row is padding. */
typedef struct tn_scaled_row {
    uint64_t first, n;
} tn_scaled_row;

tn_scaled_row tn_scaled_row_at(const tn_scaled_plan *p, const tn_scaled_place *at, uint64_t row);

/* Writes all that an encoded piece consists of; bytes that are packed were 0. */
void tn_scaled_put(const tn_scaled_plan *p, const tn_scaled_place *at, const tn_tile *t);

/* Reads it: t->n and the arrays are set. */
void tn_scaled_get(const tn_scaled_plan *p, const tn_scaled_place *at, tn_tile *t);

/* The scale of the tensor: 1 where it has none. */
float tn_scaled_tensor_scale(const tn_scaled_plan *p);
void  tn_scaled_put_tensor_scale(const tn_scaled_plan *p, uint32_t code);

/* Works through a tensor that is not empty (scaled_run.c).  `src`: values are
 * encoded, into the parts of the plan or to what they become in `dst`, or both;
 * the parts are all 0.  No `src`: the parts are decoded into `dst`.  Types of
 * whole bytes only; dst may be src.  `report`, which may be NULL, is added to.
 * TN_ERR_LOSS: a NaN that has no code. */
tn_status tn_scaled_run(const tn_scaled_plan *plan, tn_dtype src_type, const void *src, tn_dtype dst_type, void *dst,
                        tn_scaled_report *report, tn_error *err);

#endif
