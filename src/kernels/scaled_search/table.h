/* kernels/scaled_search/table.h - inner loops of datatypes that search or
 * select: N:M sparsity, codebooks, subtile offsets, least squared errors.
 *
 * No allocation, no errors, no I/O.  No byte beyond n elements of a tensor or a
 * part is read or written.  Arrays of the caller that are marked so have room for
 * TN_SEARCH_SLACK more elements.  Values are finite, except for `select`.
 * quant/tile.h is the definition; the scalar level has no kernels. */
#ifndef TN_KERNELS_SCALED_SEARCH_TABLE_H
#define TN_KERNELS_SCALED_SEARCH_TABLE_H

#include "kernels/scaled_encode/table.h"

enum {
    TN_SEARCH_SLACK = 16,
    TN_SEARCH_MAPPINGS = 16, TN_SEARCH_VALUES = 8,      /* the largest codebook */
    TN_SEARCH_ROWS = 512,
    TN_SEARCH_SIZE = 16, TN_SEARCH_LARGEST = 1024,      /* tile sizes are multiples of 16, at most 1024 */
    TN_SEARCH_SUBTILE = 8       /* the largest subtile with an offset; subtiles are powers of two */
};

/* A float or int number spec as constants for rounding to it. */
typedef struct tn_search_number {
    float    most;              /* the largest magnitude */
    uint32_t lowest;            /* exponent bits, in place, below which steps get no finer; of an int: all */
    uint32_t above;             /* added to an exponent, in place: a float32 whose last bit is one step */
    unsigned shift;             /* mantissa bits that float32 has more */
    unsigned bits;              /* of a code */
    bool     integer;           /* codes are two's complement; else they have a sign bit */
    bool     signed_zero;       /* there is a code for -0 */
} tn_search_number;

/* Consecutive tiles, each with a scale. */
typedef struct tn_search_tiles {
    const float *x;
    size_t       count, size;
    bool         divide;        /* values are divided by the factor; else they are multiplied with it, and
                                 * factor and step are powers of two */
    const float *factor;        /* one per tile */
    const float *step;          /* one per tile: the value of number 1 */
    const float *shift;         /* one per tile: zero point, added to values; NULL: none; needs `divide` */
    bool         whole;         /* the zero point is a whole number and added to codes */
    tn_search_number number;
} tn_search_tiles;

/* The mappings of a codebook; unused ones are copies of the first. */
typedef struct tn_search_book {
    uint32_t mappings;
    uint32_t sign;              /* of a code */
    bool     exact;             /* errors are float32s */
    float    value[TN_SEARCH_VALUES][TN_SEARCH_MAPPINGS];
    /* the smallest magnitude that becomes this value or a larger one */
    float    from[TN_SEARCH_VALUES][TN_SEARCH_MAPPINGS];
    uint32_t first[TN_SEARCH_MAPPINGS];         /* four bits per value: the first equal one */
    /* The value of each mapping for a magnitude: row (bits >> row_shift) - first_row, clamped to the rows.
     * No rows: magnitudes differ in too many bits. */
    uint32_t rows, first_row;
    unsigned row_shift;
    float    row[TN_SEARCH_ROWS][TN_SEARCH_MAPPINGS];
} tn_search_book;

/* Subtiles whose exponents are below that of their tile. */
typedef struct tn_search_offsets {
    size_t   subtile;
    int32_t  bump;              /* added to the bits: carries into the exponent if the mode rounds up */
    int32_t  most;              /* the largest offset */
    const int32_t *exponent;    /* one per tile: of its largest magnitude, after the bump */
} tn_search_offsets;

typedef struct tn_search_kernels {
    unsigned widest;            /* group that `select` supports */
    /* Keeps the `keep` largest of every `of` = 2, 4, 8 or 16 values, in order, and sets their bits in the
     * mask.  n is a multiple of `of`.  Returns the bits of the largest magnitude: NaN is above infinity. */
    uint32_t (*select)(void *restrict kept, uint8_t *restrict mask, const float *restrict x, size_t n,
                       unsigned keep, unsigned of);
    /* Codes of a byte each. */
    void (*encode)(uint8_t *restrict codes, const tn_search_tiles *tiles);
    /* The sum of squared errors of each tile. */
    void (*squares)(double *restrict sums, const tn_search_tiles *tiles);
    /* Fills the rows of a codebook. */
    void (*list)(tn_search_book *book);
    /* Codes of a byte each, the mapping of each subtile, and (unless NULL) squares().  Codes and mappings
     * have slack.  With a step of 0 all codes are 0 or -0. */
    void (*choose)(uint8_t *restrict codes, uint8_t *restrict mappings, double *restrict sums,
                   const tn_search_tiles *tiles, size_t subtile, const tn_search_book *book);
    /* Codes of a byte each, and the offset of each subtile.  Factors are those for an offset of 0. */
    void (*lower)(uint8_t *restrict codes, uint8_t *restrict offsets, const tn_search_tiles *tiles,
                  const tn_search_offsets *rules);
} tn_search_kernels;

TN_KERNEL_TABLE(tn_search_kernels);

/* tn_scaled_searcher() with these kernels (quant/scaled_search.c). */
typedef struct tn_search_tables {
    const tn_search_kernels *search;
    const tn_encode_kernels *encode;
} tn_search_tables;

bool tn_scaled_search_with(const tn_search_tables *kernels, const struct tn_scaled_plan *plan,
                           const struct tn_tiles *tiles);

/* What the tiles of a plan search for; NONE: nothing, or more than one thing. */
typedef enum tn_search_kind {
    TN_SEARCH_NONE, TN_SEARCH_SPARSE, TN_SEARCH_BOOK, TN_SEARCH_OFFSETS, TN_SEARCH_LEAST
} tn_search_kind;
tn_search_kind tn_scaled_search_kind(const struct tn_scaled_plan *plan);

#endif
