/* quant/scaled_search.h - what the fast ways that search share.
 *
 * scaled_search.c       which way there is; sparse tiles; subtile offsets
 * scaled_search_book.c  codebooks
 * scaled_search_least.c scales (and zero points) with the least error
 * scaled_search_tiles.c tiles a block at a time, their scales, what is written */
#ifndef TN_QUANT_SCALED_SEARCH_H
#define TN_QUANT_SCALED_SEARCH_H

#include "kernels/scaled_search/table.h"
#include "quant/scaled_fast.h"

enum {
    TN_SEARCH_BLOCK = 4096,     /* values, or more: */
    TN_SEARCH_FEWEST = 8,       /* tiles of a block: numbers of so many end on a byte */
    TN_SEARCH_MOST = TN_SEARCH_BLOCK / TN_SEARCH_SIZE,          /* tiles */
    TN_BITS_NORMAL = 0x00800000, TN_BITS_INFINITE = 0x7f800000  /* of float32 */
};

/* Scales and zero points of the tiles of a block. */
typedef struct tn_search_scales {
    uint32_t scale[TN_SEARCH_MOST], zero[TN_SEARCH_MOST];       /* codes */
    /* as of tn_search_tiles */
    float    factor[TN_SEARCH_MOST], step[TN_SEARCH_MOST], shift[TN_SEARCH_MOST];
} tn_search_scales;

/* What is found out about them. */
typedef struct tn_search_desk {
    uint32_t largest[TN_SEARCH_MOST + TN_ENCODE_SLACK];         /* magnitude, as bits */
    /* where there are zero points */
    uint32_t high[TN_SEARCH_MOST + TN_ENCODE_SLACK], low[TN_SEARCH_MOST + TN_ENCODE_SLACK];
    int32_t  exponent[TN_SEARCH_MOST];
    tn_search_scales own;       /* what they have, or what is tried, and its error */
    double   sums[TN_SEARCH_MOST];
    tn_search_scales best;      /* of what was tried */
    double   least[TN_SEARCH_MOST];
    uint8_t codes[TN_SEARCH_FEWEST * TN_SEARCH_LARGEST],
        units[TN_SEARCH_FEWEST * TN_SEARCH_LARGEST / 2 + TN_SEARCH_SLACK];
} tn_search_desk;

/* What exponent scales follow from: see tn_scale_exponent(). */
typedef struct tn_search_powers {
    int32_t bump;
    int32_t offset;             /* from the exponent field of the largest magnitude to the code */
    int32_t last;               /* code */
    int32_t inverse, one;       /* exponent fields of the factor and the step: less, and with, the code */
} tn_search_powers;

/* How numbers that are not negative become codes of a float spec. */
typedef struct tn_search_float {
    bool wide;                  /* it is the beginning of a float32 */
    tn_search_number number;
} tn_search_float;

/* What scales are tried: those of tile_scale.c. */
typedef struct tn_search_trials {
    unsigned count;
    bool     is_power;
    tn_search_powers power;
    /* Floats: */
    tn_search_float scale;
    float    top, tensor_scale;
    bool     relative;          /* to the tensor's scale */
} tn_search_trials;

static inline bool tn_search_is_power(const tn_datatype *d)
{
    return d->scale.kind == TN_NUMBER_EXPONENT;
}

/* ---- tiles (scaled_search_tiles.c) ---- */

/* Of n values those that are kept. */
size_t tn_search_kept(const tn_datatype *d, size_t n);

/* Some tiles from number `first` on, where parts begin on a byte. */
tn_tiles tn_search_next(const tn_scaled_plan *p, const tn_tiles *t, size_t first);

/* Floats that are rounded by the addition of what makes a step the last bit, and those that are the beginning
 * of a float32. */
bool tn_search_is_narrow(const tn_number_spec *n);
bool tn_search_is_wide(const tn_number_spec *n);

/* Of an int or a narrow float; of a wide one `most` and `shift` only. */
tn_search_number tn_search_number_of(const tn_number_spec *n);

tn_search_powers tn_search_powers_of(const tn_scaled_plan *p);

/* The code of an exponent field that is so much more; scales that would be smaller than the smallest are
 * it. */
static inline int32_t tn_search_code(const tn_search_powers *r, uint32_t bits, int32_t more)
{
    int32_t code = (int32_t)(bits >> 23) + r->offset + more;
    return code > 0 ? code : 0;
}

/* Factor and step of one scale; false: it is too large, or one of them, or with an offset, is not normal. */
bool tn_search_set_power(const tn_search_powers *r, int32_t code, float *factor, float *step);

/* The mode's scales of tiles whose largest magnitudes are known; those of zeros have the lowest, and a step
 * of 0.  False: not for kernels. */
bool tn_search_set_powers(const tn_search_powers *r, tn_search_desk *w, size_t tiles);

/* Writes scales and zero points. */
void tn_search_put_scales(const tn_search_ways *ways, const tn_scaled_plan *p, const tn_tiles *t,
                          const tn_search_scales *from);

/* Where codes of a byte each go; they are packed from there, unless a byte each is what is wanted. */
uint8_t *tn_search_codes_to(const tn_scaled_plan *p, const tn_tiles *t, tn_search_desk *w);
void tn_search_put_codes(const tn_search_ways *ways, const tn_scaled_plan *p, const tn_tiles *t,
                         const tn_search_desk *from);

/* A number for each subtile, those of one tile on bytes of their own. */
void tn_search_put_units(const tn_search_ways *ways, uint8_t *part, const uint8_t *units, size_t tiles,
                         size_t each, unsigned bits);

/* ---- what is tried (scaled_search_least.c) ---- */

tn_search_trials tn_search_trials_of(const tn_scaled_plan *p, float tensor_scale);

/* Whether all largest magnitudes are those of normal numbers, or 0. */
bool tn_search_are_normal(const tn_search_desk *w, size_t tiles);

/* The scales of one trial; false: not for kernels. */
bool tn_search_set_trial(const tn_search_trials *r, tn_search_desk *w, size_t tiles, unsigned trial);

/* What was tried becomes the best where it has less error than all before. */
void tn_search_take_better(tn_search_desk *w, size_t tiles, bool first);

/* ---- the ways ---- */

bool tn_search_encode_book(const tn_search_ways *ways, const tn_scaled_plan *p, const tn_tiles *t);
bool tn_search_encode_least(const tn_search_ways *ways, const tn_scaled_plan *p, const tn_tiles *t);

#endif
