/* kernels/scaled_search/table.h - inner loops of datatypes that search or
 * select: N:M sparsity, codebooks, subtile offsets, least squared errors.
 *
 * No allocation, no errors, no I/O.  No byte beyond n elements of a tensor or a
 * part is read or written; arrays that are the caller's own, where it says so,
 * have room for TN_SEARCH_SLACK more.  Values are finite but for `select`.
 * Every level gives the bits of quant/tile.h; the scalar one has nothing. */
#ifndef TN_KERNELS_SCALED_SEARCH_TABLE_H
#define TN_KERNELS_SCALED_SEARCH_TABLE_H

#include "kernels/scaled_encode/table.h"

enum {
    TN_SEARCH_SLACK = 16,
    TN_SEARCH_MAPPINGS = 16, TN_SEARCH_VALUES = 8,      /* the largest codebook */
    TN_SEARCH_ROWS = 512,
    TN_SEARCH_SIZE = 16, TN_SEARCH_LARGEST = 1024,      /* tiles are multiples of the one, and no larger than
                                                         * the other... */
    TN_SEARCH_SUBTILE = 8       /* ...and subtiles with offsets no larger than this; powers of two */
};

/* The numbers of a float or an int spec as constants of rounding to them.  An
 * int's magnitude is a whole number. */
typedef struct tn_search_number {
    float    most;              /* the largest magnitude */
    uint32_t lowest;            /* the exponent, in place, below which steps are no finer; an int's are all as
                                 * coarse */
    uint32_t above;             /* from an exponent to that of the float32 whose last bit is a step, in
                                 * place */
    unsigned shift;             /* mantissa bits that float32 has more: from exponents in place to codes */
    unsigned bits;              /* of a code */
    bool     integer;           /* codes are two's complement... */
    bool     signed_zero;       /* ...or have a sign, that of 0 too */
} tn_search_number;

/* Tiles that lie one after another, each with a scale. */
typedef struct tn_search_tiles {
    const float *x;
    size_t       count, size;
    bool         divide;        /* values are divided by the factor, else multiplied, and it and the step are
                                 * powers of two */
    const float *factor;        /* one per tile */
    const float *step;          /* one per tile: what a code is worth in units of its number */
    const float *shift;         /* one per tile: the zero point, added to values; NULL: there is none.  `divide`
                                 * is set... */
    bool         whole;         /* ...and it is a whole number, added to codes */
    tn_search_number number;
} tn_search_tiles;

/* Mappings side by side: unused ones are copies of the first. */
typedef struct tn_search_book {
    uint32_t mappings;
    uint32_t sign;              /* of a code */
    bool     exact;             /* errors are float32s */
    float    value[TN_SEARCH_VALUES][TN_SEARCH_MAPPINGS];
    /* magnitudes from which on it is this value or a larger one */
    float    from[TN_SEARCH_VALUES][TN_SEARCH_MAPPINGS];
    uint32_t first[TN_SEARCH_MAPPINGS];         /* four bits a value: the first that is equal */
    /* The value that each mapping has for a magnitude, by its bits without the last `row_shift`, less
     * `first_row`: those below and beyond have the first and the last row.  None: magnitudes differ in too
     * many bits. */
    uint32_t rows, first_row;
    unsigned row_shift;
    float    row[TN_SEARCH_ROWS][TN_SEARCH_MAPPINGS];
} tn_search_book;

/* Exponents below those of their tiles. */
typedef struct tn_search_offsets {
    size_t   subtile;
    int32_t  bump;              /* carries into the exponent where the mode wants one more */
    int32_t  most;              /* the largest offset */
    const int32_t *exponent;    /* one per tile: the field of its largest magnitude, with what the mode adds */
} tn_search_offsets;

typedef struct tn_search_kernels {
    unsigned widest;            /* group that `select` knows */
    /* Keeps `keep` of each `of` = 2, 4, 8 or 16 values, n a multiple of it: the values in order, and a bit
     * each.  Returns the bits of the largest magnitude; beyond infinity's there is NaN. */
    uint32_t (*select)(void *restrict kept, uint8_t *restrict mask, const float *restrict x, size_t n,
                       unsigned keep, unsigned of);
    /* Codes of a byte each. */
    void (*encode)(uint8_t *restrict codes, const tn_search_tiles *tiles);
    /* The sum of squared errors of each tile. */
    void (*squares)(double *restrict sums, const tn_search_tiles *tiles);
    /* Fills the rows of a codebook. */
    void (*list)(tn_search_book *book);
    /* Codes of a byte each, the mapping of each subtile, which have slack, and (unless NULL) as squares().
     * With a step of 0 all is 0 or -0. */
    void (*choose)(uint8_t *restrict codes, uint8_t *restrict mappings, double *restrict sums,
                   const tn_search_tiles *tiles, size_t subtile, const tn_search_book *book);
    /* Codes of a byte each, and the offset of each subtile.  Factors are powers of two for an offset of 0. */
    void (*lower)(uint8_t *restrict codes, uint8_t *restrict offsets, const tn_search_tiles *tiles,
                  const tn_search_offsets *rules);
} tn_search_kernels;

TN_KERNEL_TABLE(tn_search_kernels);

/* What tn_scaled_searcher() gives, with these kernels (quant/scaled_search.c). */
typedef struct tn_search_ways {
    const tn_search_kernels *search;
    const tn_encode_kernels *encode;
} tn_search_ways;

bool tn_scaled_search_with(const tn_search_ways *ways, const struct tn_scaled_plan *plan,
                           const struct tn_tiles *tiles);

/* What is special about the tiles of a plan; NONE: nothing, or too much. */
typedef enum tn_search_kind {
    TN_SEARCH_NONE, TN_SEARCH_SPARSE, TN_SEARCH_BOOK, TN_SEARCH_OFFSETS, TN_SEARCH_LEAST
} tn_search_kind;
tn_search_kind tn_scaled_search_kind(const struct tn_scaled_plan *plan);

#endif
