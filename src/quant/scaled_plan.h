/* quant/scaled_plan.h - how a tensor is divided into tiles, and where each tile is
 * in the parts.
 *
 * A tensor of any rank is viewed as [outer][rows][columns][inner].  Rows without
 * gaps between them are joined into one row.  A vector tile has one row.  A scale
 * of the whole tensor has one tile of all rows.
 *
 * Threads work on batches of tiles.  No two batches share a byte of any part.
 * Tiles with more than TN_TILE_MAX values are processed in pieces.
 *
 * A band is the least of the tensor whose tiles are whole and whose elements follow
 * one another: a batch of tiles along a row or, where tiles have several rows or
 * lie across rows, all tiles side by side. */
#ifndef TN_QUANT_SCALED_PLAN_H
#define TN_QUANT_SCALED_PLAN_H

#include "cast/cast.h"
#include "quant/tile.h"

/* The numbers of one part.  Numbers narrower than a byte are packed, others take 1, 2 or 4 bytes. */
typedef struct tn_scaled_field {
    uint8_t *data;              /* NULL: no memory, or no such part */
    unsigned bits;
    uint64_t nbytes;            /* of the whole part */
    uint64_t from;              /* offset of `data` in the part; above 0 in a window only */
} tn_scaled_field;

enum { TN_SCALED_FIELDS = 6 };

extern const char *const tn_scaled_roles[TN_SCALED_FIELDS];    /* data, scale, zero, offset, meta, mask */

typedef struct tn_scaled_plan {
    const tn_datatype *d;
    tn_quantize_options  o;
    uint32_t       rank;        /* the tensor */
    const int64_t *shape;
    uint64_t       count;
    uint64_t outer, rows, columns, inner;
    uint64_t extent;            /* of the dimension that is tiled and rotated */
    uint64_t last;              /* extent of the last dimension: the length of a row of packed data */
    uint64_t tile_rows, tile_columns;           /* including padding */
    uint64_t tiles_down, tiles_across;
    uint64_t piece_rows, piece_columns;         /* at most a whole tile */
    uint64_t pieces_down, pieces_across;        /* per tile */
    uint64_t batch_across, batch_inner;         /* tiles per batch: across, along the last dimension */
    uint64_t batches_across, batches_inner;     /* batches: across, per row of the last dimension */
    uint64_t batches;
    uint64_t inner_row;         /* batches do not cross rows of so many elements of `inner` */
    uint64_t band;              /* batches */
    bool     is_cut;            /* see tn_scaled_cut() */
    uint64_t slots;             /* codes stored along the columns */
    union {
        struct { tn_scaled_field data, scale, zero, offset, meta, mask; };
        tn_scaled_field fields[TN_SCALED_FIELDS];
    };
    tn_scaled_field tscale, index;
} tn_scaled_plan;

/* One piece of one tile. */
typedef struct tn_scaled_place {
    uint64_t outer, down, across, inner;        /* the tile */
    uint64_t row, column;                       /* first ones of the piece, in the tile */
    uint64_t rows, columns;                     /* of the piece */
} tn_scaled_place;

/* `parts` may be NULL.  Then the fields have no memory. */
tn_status tn_scaled_plan_make(tn_scaled_plan *plan, const tn_datatype *d, uint32_t rank, const int64_t *shape,
                              const tn_quantize_options *o, void *const *parts, tn_error *err);

/* Check options against a datatype, and a rotation against a plan (scaled.c). */
tn_status tn_scaled_check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err);
tn_status tn_scaled_check_rotation(const tn_scaled_plan *plan, tn_error *err);

/* Rotates all values of the tensor in place; with `back`, undoes it.  Does nothing
 * if tn_scaled_rotates(), because encoding and decoding rotate then. */
tn_status tn_scaled_rotate(const tn_scaled_plan *plan, bool back, float *x, tn_pool *pool, tn_error *err);

static inline uint64_t tn_scaled_pieces(const tn_scaled_plan *p)
{
    return p->pieces_down * p->pieces_across;
}

uint64_t        tn_scaled_batch_tiles(const tn_scaled_plan *p, uint64_t batch);
/* Piece `piece` of the k-th tile of a batch. */
tn_scaled_place tn_scaled_place_at(const tn_scaled_plan *p, uint64_t batch, uint64_t k, uint64_t piece);

/* The index of the tile in the order of scales. */
uint64_t tn_scaled_tile_number(const tn_scaled_plan *p, const tn_scaled_place *at);

/* The elements in one row of a piece: `n` elements from `first`, `inner` apart.
 * The rest of the row is padding. */
typedef struct tn_scaled_row {
    uint64_t first, n;
} tn_scaled_row;

tn_scaled_row tn_scaled_row_at(const tn_scaled_plan *p, const tn_scaled_place *at, uint64_t row);

/* Writes an encoded piece to the parts.  Bytes of packed numbers must be 0 before. */
void tn_scaled_put(const tn_scaled_plan *p, const tn_scaled_place *at, const tn_tile *t);

/* Writes only the scale and zero point, and only for the first piece of a tile. */
void tn_scaled_put_choice(const tn_scaled_plan *p, const tn_scaled_place *at, uint32_t scale, uint32_t zero);

/* Reads a piece from the parts into t->n and the arrays of t. */
void tn_scaled_get(const tn_scaled_plan *p, const tn_scaled_place *at, tn_tile *t);

/* The bits of the word that stores a number of 8 bits or more. */
static inline unsigned tn_scaled_word(unsigned bits)
{
    if (bits <= 8)
        return 8;
    return bits <= 16 ? 16 : 32;
}

/* The bytes of n numbers that begin on a byte. */
static inline uint64_t tn_scaled_field_bytes(unsigned bits, uint64_t n)
{
    return bits < 8 ? tn_packed_bytes(n, bits) : n * (tn_scaled_word(bits) / 8);
}

/* Whether n numbers from the beginning of a byte end on a byte. */
static inline bool tn_scaled_ends_on_byte(unsigned bits, uint64_t n)
{
    return bits >= 8 || tn_packed_bit(n, bits) == 0;
}

/* Length of a row of packed data: slots if sparsity is along the last dimension. */
uint64_t tn_scaled_data_row(const tn_scaled_plan *p);

/* Whether tiles and all their numbers are consecutive in memory: tiles of one row,
 * or one tile of the whole tensor. */
static inline bool tn_scaled_is_flat(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool last =
        d->dims == 0 || (d->dim < 0 ? (uint32_t)-d->dim == d->dims : (uint32_t)d->dim + d->dims == p->rank);
    return last && (p->tile_rows == 1 || d->dims == 0);
}

/* The row of tiles in which a piece begins; flat plans: the row of the tensor. */
static inline uint64_t tn_scaled_tile_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return at->outer * p->tiles_down + at->down;
}

static inline uint64_t tn_scaled_first_row(const tn_scaled_plan *p, const tn_scaled_place *at)
{
    return tn_scaled_tile_row(p, at) * p->tile_rows + at->row;
}

/* The byte of a field where the numbers for `column` of a row begin.  A tile begins at the column.  For data
 * it may be any column that begins on a byte. */
uint64_t tn_scaled_byte_at(const tn_scaled_plan *p, unsigned field, uint64_t row, uint64_t column);

/* Dense datatypes: where the code of an element is; it begins on a byte. */
uint8_t *tn_scaled_code_at(const tn_scaled_plan *p, uint64_t element);

/* Where a band begins, or a piece of each of its tiles.  The one after the last begins where the tensor
 * ends. */
typedef struct tn_scaled_begin {
    uint64_t row, tile_row, column;
} tn_scaled_begin;

tn_scaled_begin tn_scaled_begin_of(const tn_scaled_plan *p, uint64_t batch, uint64_t piece);

/* The scale of the tensor; 1 if it has none. */
float tn_scaled_tensor_scale(const tn_scaled_plan *p);
void  tn_scaled_put_tensor_scale(const tn_scaled_plan *p, uint32_t code);

/* A tensor to encode or decode.  Types of values have whole bytes.  dst may equal src. */
typedef struct tn_scaled_work {
    const tn_scaled_plan *plan;
    tn_dtype    src_type;
    const void *src;            /* values to encode; NULL: decode the parts */
    tn_dtype    dst_type;
    void       *dst;            /* decoded values; may be NULL when encoding */
    const tn_cast_options *cast;        /* from float32 to dst_type; NULL: the defaults */
    tn_quantize_stats *report;  /* added to; may be NULL */
    tn_pool    *pool;
    float       scale;          /* TN_SCALE_GIVEN: the scale of all values, above 0 */
    int32_t     zero;           /* TN_SCALE_GIVEN: the zero point */
    /* Reads elements [first, first + n) of src_type.  `elements` points to the source or to memory of the
     * reader.  Requires tn_scaled_streams().  NULL: the elements are at src. */
    tn_status (*read)(const void *context, void *reader, uint64_t first, size_t n, const void **elements,
                      tn_error *err);
    const void *source;         /* context of read() */
    void      **readers;        /* one per thread of the pool */
    bool        by_items;       /* the caller runs the items: see tn_job_run_item() */
    uint64_t    item;           /* values per item; 0: the default */
} tn_scaled_work;

/* Whether encoding and decoding apply the rotation of the plan.  If not, the caller does: see
 * tn_scaled_rotate(). */
bool tn_scaled_rotates(const tn_scaled_plan *plan);

/* Whether encoding can return its results in order, in small pieces.  Decoding always can. */
bool tn_scaled_streams(const tn_scaled_plan *plan);

/* Divides the tensor anew if need be, so that encoding streams and applies the rotation.  False: bands are
 * too large for that, or their tiles have more than scales and zero points in common. */
bool tn_scaled_cut(tn_scaled_plan *plan);

extern uint64_t tn_scaled_band;         /* the most values of a band */

#endif
