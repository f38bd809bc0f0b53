/* quant/scaled_search.h - the fast paths that search.
 *
 * scaled_search.c       selection of a path; sparse tiles; subtile offsets
 * scaled_search_book.c  codebooks
 * scaled_search_least.c scales and zero points with the least squared error
 * scaled_search_tiles.c blocks of tiles: scales and output */
#ifndef TN_QUANT_SCALED_SEARCH_H
#define TN_QUANT_SCALED_SEARCH_H

#include "kernels/scaled_search/table.h"
#include "quant/scaled_fast.h"

enum {
    TN_SEARCH_BLOCK = 4096,     /* values per block, more if tiles are large */
    TN_SEARCH_FEWEST = 8,       /* tiles per block: this many end on a byte in every part */
    TN_SEARCH_MOST = TN_SEARCH_BLOCK / TN_SEARCH_SIZE,          /* tiles per block */
    TN_BITS_NORMAL = 0x00800000, TN_BITS_INFINITE = 0x7f800000  /* of float32 */
};

/* Scales and zero points of the tiles of a block. */
typedef struct tn_search_scales {
    uint32_t scale[TN_SEARCH_MOST], zero[TN_SEARCH_MOST];       /* codes */
    /* see tn_search_tiles */
    float    factor[TN_SEARCH_MOST], step[TN_SEARCH_MOST], shift[TN_SEARCH_MOST];
} tn_search_scales;

/* Memory for one block of tiles. */
typedef struct tn_search_scratch {
    uint32_t largest[TN_SEARCH_MOST + TN_ENCODE_SLACK];         /* bits of the largest magnitude */
    /* bits of both ends of the range, for zero points */
    uint32_t high[TN_SEARCH_MOST + TN_ENCODE_SLACK], low[TN_SEARCH_MOST + TN_ENCODE_SLACK];
    int32_t  exponent[TN_SEARCH_MOST];
    tn_search_scales own;       /* the current scales */
    double   sums[TN_SEARCH_MOST];      /* their squared errors */
    tn_search_scales best;      /* the best scales so far */
    double   least[TN_SEARCH_MOST];     /* their squared errors */
    uint8_t codes[TN_SEARCH_FEWEST * TN_SEARCH_LARGEST],
        units[TN_SEARCH_FEWEST * TN_SEARCH_LARGEST / 2 + TN_SEARCH_SLACK];
} tn_search_scratch;

/* Constants of exponent scales: see tn_scale_exponent(). */
typedef struct tn_search_powers {
    tn_exponent_rules rules;
    int32_t one;                /* exponent field of the step = one + code */
} tn_search_powers;

/* Rounds numbers of 0 and more to codes of a float spec. */
typedef struct tn_search_float {
    bool wide;                  /* a code is the upper bits of a float32 */
    tn_search_number number;
} tn_search_float;

/* The scales to try: those of tile_scale.c. */
typedef struct tn_search_trials {
    unsigned count;
    bool     is_power;
    tn_search_powers power;
    /* Float scales: */
    tn_search_float scale;
    float    top, tensor_scale;
    bool     relative;          /* to the scale of the tensor */
} tn_search_trials;

static inline bool tn_search_is_power(const tn_datatype *d)
{
    return d->scale.kind == TN_NUMBER_EXPONENT;
}

/* ---- tiles (scaled_search_tiles.c) ---- */

/* The number of kept values of n. */
size_t tn_search_kept(const tn_datatype *d, size_t n);

/* The next block: tiles from `first`, a multiple of TN_SEARCH_FEWEST. */
tn_tiles tn_search_next(const tn_scaled_plan *p, const tn_tiles *t, size_t first);

/* Narrow floats are rounded by adding a number whose last bit is one step.  Codes of wide floats are the
 * upper bits of a float32. */
bool tn_search_is_narrow(const tn_number_spec *n);
bool tn_search_is_wide(const tn_number_spec *n);

/* Of an int or a narrow float.  For a wide float only `most` and `shift` have a meaning. */
tn_search_number tn_search_number_of(const tn_number_spec *n);

tn_search_powers tn_search_powers_of(const tn_scaled_plan *p);

/* The code for the exponent of a float32 plus `more`, at least 0. */
static inline int32_t tn_search_code(const tn_search_powers *r, uint32_t bits, int32_t more)
{
    int32_t code = (int32_t)(bits >> 23) + r->rules.offset + more;
    return code > 0 ? code : 0;
}

/* Sets factor and step of one scale.  False: the code is too large, or one of them is not a normal float32,
 * also with an offset. */
bool tn_search_set_power(const tn_search_powers *r, int32_t code, float *factor, float *step);

/* Sets the scales of tiles from w->largest.  A tile of zeros has scale code 0 and step 0.  False: kernels
 * cannot encode the tiles. */
bool tn_search_set_powers(const tn_search_powers *r, tn_search_scratch *w, size_t tiles);

void tn_search_put_scales(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t,
                          const tn_search_scales *from);

/* Where kernels write codes, one per byte: the part itself, or scratch that tn_search_put_codes() packs. */
uint8_t *tn_search_codes_to(const tn_scaled_plan *p, const tn_tiles *t, tn_search_scratch *w);
void tn_search_put_codes(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t,
                         const tn_search_scratch *from);

/* Packs one number per subtile.  Each tile begins on a byte. */
void tn_search_put_units(const tn_search_tables *kernels, uint8_t *part, const uint8_t *units, size_t tiles,
                         size_t each, unsigned bits);

/* ---- trials (scaled_search_least.c) ---- */

tn_search_trials tn_search_trials_of(const tn_scaled_plan *p, float tensor_scale);

/* Whether all largest magnitudes are normal or 0. */
bool tn_search_are_normal(const tn_search_scratch *w, size_t tiles);

/* Sets the scales of one trial.  False: kernels cannot encode the tiles. */
bool tn_search_set_trial(const tn_search_trials *r, tn_search_scratch *w, size_t tiles, unsigned trial);

/* Keeps the current scales of each tile that has less error than before, or of all on the first trial. */
void tn_search_take_better(tn_search_scratch *w, size_t tiles, bool first);

/* ---- paths ---- */

bool tn_search_encode_book(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t);
bool tn_search_encode_least(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t);

#endif
