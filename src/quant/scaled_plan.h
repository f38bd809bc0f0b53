/* quant/scaled_plan.h - a tensor cut into tiles, and where the codes of
 * each lie in its parts.
 *
 * Whatever its rank, a tensor is seen as [outer][rows][columns][inner] (where nothing
 * is between the rows, as one row) with
 * tiles of so many rows and columns: a vector tile has one row, and a scale of
 * the whole tensor has one tile of all rows.  Tiles are worked on in bundles
 * that share no byte of any part with another one, and tiles that are too large
 * to be held in pieces. */
#ifndef TN_QUANT_SCALED_PLAN_H
#define TN_QUANT_SCALED_PLAN_H

#include "cast/cast.h"
#include "quant/tile.h"

/* Numbers of one width: packed ones narrower than a byte, else words of 1, 2 or 4 bytes. */
typedef struct tn_scaled_field {
    uint8_t *data;              /* or NULL: there is no such part */
    unsigned bits;
    uint64_t nbytes;            /* of the part */
    uint64_t from;              /* the byte of the part that `data` begins with: not 0 in a window of it
                                 * only */
} tn_scaled_field;

enum { TN_SCALED_FIELDS = 6 };  /* of tiles: data, scale, zero, offset, meta, mask */

typedef struct tn_scaled_plan {
    const tn_datatype *d;
    tn_quantize_options  o;
    uint32_t       rank;        /* the tensor */
    const int64_t *shape;
    uint64_t       count;
    uint64_t outer, rows, columns, inner;
    uint64_t extent;            /* of the dimension that rotations and tiles go along */
    uint64_t last;              /* extent of the last dimension: rows of packed data are as long */
    uint64_t tile_rows, tile_columns;           /* with what pads it */
    uint64_t tiles_down, tiles_across;
    uint64_t piece_rows, piece_columns;         /* all of a tile, or less */
    uint64_t pieces_down, pieces_across;        /* of a tile */
    /* tiles of a bundle: across, and beside one another in the last dimension */
    uint64_t run, lanes;
    uint64_t runs, lanes_across;                /* bundles: across, and in each row of the last dimension */
    uint64_t bundles;
    uint64_t slots;             /* of data along the columns */
    union {
        struct { tn_scaled_field data, scale, zero, offset, meta, mask; };
        tn_scaled_field fields[TN_SCALED_FIELDS];
    };
    tn_scaled_field tscale;
} tn_scaled_plan;

/* One tile, or one piece of it. */
typedef struct tn_scaled_place {
    uint64_t outer, down, across, inner;        /* the tile */
    uint64_t row, column;                       /* of the piece, in the tile */
    uint64_t rows, columns;                     /* its size */
} tn_scaled_place;

/* `parts` may be NULL: there are none then. */
tn_status tn_scaled_plan_make(tn_scaled_plan *plan, const tn_datatype *d, uint32_t rank, const int64_t *shape,
                              const tn_quantize_options *o, void *const *parts, tn_error *err);

/* What the public functions refuse of options, of a datatype with them, and of a plan with a rotation
 * (scaled.c). */
tn_status tn_scaled_check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err);
tn_status tn_scaled_check_rotation(const tn_scaled_plan *plan, tn_error *err);

/* The rotation of the plan's options on all values of the tensor, in place, or
 * back: for those who run a plan that does not turn them itself. */
tn_status tn_scaled_rotate(const tn_scaled_plan *plan, bool back, float *x, tn_pool *pool, tn_error *err);

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

/* Of it the scale and zero point, which stand with the first piece of a tile. */
void tn_scaled_put_choice(const tn_scaled_plan *p, const tn_scaled_place *at, uint32_t scale, uint32_t zero);

/* Bits of the word that holds a number which is not packed. */
static inline unsigned tn_scaled_word(unsigned bits)
{
    return bits <= 8 ? 8 : bits <= 16 ? 16 : 32;
}

/* Reads it: t->n and the arrays are set. */
void tn_scaled_get(const tn_scaled_plan *p, const tn_scaled_place *at, tn_tile *t);

/* Tiles lie one after another in memory, and so do all their numbers: tiles of
 * one row, or one tile of the whole tensor. */
static inline bool tn_scaled_is_flat(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool last =
        d->dims == 0 || (d->dim < 0 ? (uint32_t)-d->dim == d->dims : (uint32_t)d->dim + d->dims == p->rank);
    return last && (p->tile_rows == 1 || d->dims == 0);
}

/* The row of tiles, and the row of the tensor (of its last dimension), in which a piece of a flat plan
 * begins. */
static inline uint64_t tn_scaled_tile_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return at->outer * p->tiles_down + at->down;
}

static inline uint64_t tn_scaled_first_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return tn_scaled_tile_row(p, at) * p->tile_rows + at->row;
}

/* Of a flat plan: the byte of a field at which the numbers for `column` of a
 * row begin, where a tile does (data: or where it ends on a byte). */
uint64_t tn_scaled_byte_at(const tn_scaled_plan *p, unsigned field, uint64_t row, uint64_t column);

/* The scale of the tensor: 1 where it has none. */
float tn_scaled_tensor_scale(const tn_scaled_plan *p);
void  tn_scaled_put_tensor_scale(const tn_scaled_plan *p, uint32_t code);

/* A tensor to be worked through.  Values are of types of whole bytes; dst may be src. */
typedef struct tn_scaled_work {
    const tn_scaled_plan *plan;
    tn_dtype    src_type;
    const void *src;            /* values to encode: into the parts of the plan, or to what they become, or
                                 * both; NULL: the parts are decoded */
    tn_dtype    dst_type;
    void       *dst;            /* what they become; NULL: nobody wants it */
    const tn_cast_options *cast;        /* how values become dst_type; NULL: in the usual way */
    tn_quantize_stats *report;   /* added to; or NULL */
    tn_pool    *pool;
    float       scale;          /* above 0: TN_SCALE_GIVEN, and this is it for all, with... */
    int32_t     zero;
    /* Reads elements [first, first + n) of src_type for a worker: where they are, or into memory of the
     * reader's own.  Only where tn_scaled_streams(); NULL: they are at src. */
    tn_status (*read)(const void *context, void *reader, uint64_t first, size_t n, const void **elements,
                      tn_error *err);
    const void *source;         /* context of read() */
    void      **readers;        /* one per thread of the pool */
    bool        by_items;       /* the caller works on items: see tn_job_run_item() */
    uint64_t    item;           /* values of an item; 0: as many as are worth it */
} tn_scaled_work;

/* Whether encoding and decoding see to the plan's rotation; else values are given and received rotated. */
bool tn_scaled_turns(const tn_scaled_plan *plan);

/* Whether what encoding makes can be handed out in order, in pieces that are not large; decoding always
 * can. */
bool tn_scaled_streams(const tn_scaled_plan *plan);

#endif
