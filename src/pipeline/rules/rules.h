/* pipeline/rules/rules.h - what rules say, and what they are read with. */
#ifndef TN_PIPELINE_RULES_RULES_H
#define TN_PIPELINE_RULES_RULES_H

#include "base/text.h"

#include <tenon/convert.h>
#include <tenon/file.h>

#include <stdbool.h>
#include <stdint.h>

/* Each begins with the glob of the names that it is for, or "re:" and an expression; "*": all. */
enum { TN_GLOB = 256 };

typedef struct tn_cast_rule {
    char            glob[TN_GLOB];
    tn_dtype        dtype;
    tn_cast_options options;
    bool            quantized;  /* integer codes with a scale, as `affine` says; else one element for one */
    tn_affine       affine;     /* without its axis; where nothing is quantized, its arithmetic is that of
                                 * values from codes */
    char            axis[24];   /* the dimension: a letter of the layout or a number (negative: from the
                                 * last); "": per tensor */
    float           scale;      /* TN_SCALE_GIVEN: for all */
    int32_t         zero;
    tn_datatype    *datatype;   /* owned, or NULL; then dtype is TN_UNKNOWN */
    tn_quantize_options quantize;   /* of both; its round, nan and seed are those of `options` */
    bool            is_virtual; /* values in the tensor's own type instead of codes */
    unsigned        keep, of;   /* N:M sparsity alone, in the tensor's own type; of 0: none */
    tn_text         importance; /* of block types: the path as it was written, "none", or empty */
    tn_file        *weights;    /* that file; owned, or NULL */
    bool            round_given;    /* else codes that are made of codes round HALF_UP, whatever `options`
                                     * say */
} tn_cast_rule;

/* [GLOB=]TYPE[,KEY=VALUE...]; of the defaults (may be NULL) options, quantize, is_virtual, importance and
 * round_given count.  The caller frees the rule. */
tn_status tn_cast_rule_parse(const char *text, const tn_cast_rule *defaults, tn_cast_rule *rule,
                             tn_error *err);
void      tn_cast_rule_free(tn_cast_rule *rule);

/* KEY=VALUE[,KEY=VALUE...] as defaults; NULL: none. */
tn_status tn_cast_defaults_parse(const char *text, tn_cast_rule *defaults, tn_error *err);

typedef struct tn_layout_rule {
    char glob[TN_GLOB];
    char to[TN_MAX_RANK + 1];
    char from[TN_MAX_RANK + 1]; /* "": the tensor's own layout, which must be known */
} tn_layout_rule;
tn_status tn_layout_rule_parse(const char *text, tn_layout_rule *rule, tn_error *err);

typedef struct tn_pad_rule {
    char     glob[TN_GLOB];
    uint32_t count;
    struct {
        char    letter;         /* of the new layout; 0: by number */
        int32_t dimension;      /* negative: from the last */
        int64_t multiple;       /* the extent becomes the next multiple of this */
    } dims[TN_MAX_RANK];
    double   value;             /* of the elements added; of a scaled tensor 0 only */
    bool     raw_zero;          /* of a scaled tensor: they are code 0, as embARC MLI pads, not the code of
                                 * 0 */
} tn_pad_rule;
tn_status tn_pad_rule_parse(const char *text, tn_pad_rule *rule, tn_error *err);

/* A tensor that has the form already becomes canonical (see tenon/sparse.h). */
typedef struct tn_form_rule {
    char              glob[TN_GLOB];
    tn_form           form;     /* dense, coo or csr */
    tn_sparse_options options;  /* limit and jobs are not looked at */
} tn_form_rule;
tn_status tn_form_rule_parse(const char *text, tn_form_rule *rule, tn_error *err);

typedef struct tn_slice_dim {
    int64_t start, stop, step;
    bool    is_index, has_start, has_stop;      /* an index alone leaves nothing of its dimension */
} tn_slice_dim;

/* [GLOB=]START:STOP[:STEP],INDEX...: of as many dimensions, the rest is whole. */
typedef struct tn_slice_rule {
    char         glob[TN_GLOB];
    uint32_t     count;
    tn_slice_dim dims[TN_MAX_RANK];
} tn_slice_rule;
tn_status tn_slice_rule_parse(const char *text, tn_slice_rule *rule, tn_error *err);

/* [GLOB=]N,N...: an order of dimensions, or extents of which one may be -1. */
typedef struct tn_dims_rule {
    char     glob[TN_GLOB];
    uint32_t count;
    int64_t  dims[TN_MAX_RANK];
} tn_dims_rule;
tn_status tn_transpose_rule_parse(const char *text, tn_dims_rule *rule, tn_error *err);
tn_status tn_reshape_rule_parse(const char *text, tn_dims_rule *rule, tn_error *err);

/* [GLOB=]NUMBER: added to each element, in float32. */
typedef struct tn_add_rule {
    char  glob[TN_GLOB];
    float number;
} tn_add_rule;
tn_status tn_add_rule_parse(const char *text, tn_add_rule *rule, tn_error *err);

enum { TN_MAX_JOIN = 256 };     /* names in a rule */

/* concat: NEW=GLOB+GLOB...[,axis=N|,stack=N]; split: GLOB=NEW+NEW...[,axis=N][,sizes=A+B...] or
 * GLOB=NEW,unstack=N.  Of these globs only '*' is special. */
typedef struct tn_join_rule {
    char     glob[TN_GLOB];     /* what is before the '=', as is `whole` */
    tn_text  whole;
    uint32_t count, nsizes;
    tn_text  names[TN_MAX_JOIN];        /* in the text that was read */
    int64_t  sizes[TN_MAX_JOIN];
    int32_t  axis;
    bool     is_new;            /* stack, unstack: the parts do not have this dimension */
} tn_join_rule;
tn_status tn_concat_rule_parse(const char *text, tn_join_rule *rule, tn_error *err);
tn_status tn_split_rule_parse(const char *text, tn_join_rule *rule, tn_error *err);

/* ---- reading ---- */

typedef struct tn_rule_reading {
    const char *text;
    unsigned    seen;           /* bit i: key i was given */
    unsigned    makes;          /* of a cast: what the type is, for which keys are */
    tn_error   *err;
} tn_rule_reading;

typedef struct tn_rule_word {
    const char *name;           /* NULL after the last */
    int         value;
} tn_rule_word;

/* The number of a character: what a person counts, from 1. */
size_t tn_rule_character(const tn_rule_reading *r, const char *at);

/* "WHAT" at character N is NO THING */
tn_status tn_rule_fail(const tn_rule_reading *r, tn_text what, const char *no_thing);

/* ---- values: false where the text is none ---- */

bool tn_rule_float(tn_text value, float *number);           /* that float32 can hold, other than 0 */
bool tn_rule_word_take(const tn_rule_word *words, tn_text value, int *found);
const char *tn_rule_word_for(const tn_rule_word *words, int value);
bool tn_rule_number(tn_text value, uint64_t *number);       /* decimal digits */
bool tn_rule_double(tn_text value, double *number);         /* as JSON spells it, which no locale changes */
bool tn_rule_int32(tn_text value, int32_t *number);
bool tn_rule_text(tn_text value, char *to, size_t cap);     /* not empty, with its NUL in `cap` bytes */

/* What a cast rule makes, as its text has it: int8, or fx8 whose codes are int8 too. */
const char *tn_cast_rule_type(const tn_cast_rule *rule);

/* ---- the parts of a rule ---- */

/* What comes before the first comma, and where a '=' makes a glob of its beginning. */
tn_text tn_rule_head(const tn_rule_reading *r, tn_text *what, const char **equals);

/* Everything before the '=' at `equals`; all names where that is NULL. */
tn_status tn_rule_glob(const tn_rule_reading *r, const char *equals, char glob[TN_GLOB]);

/* Cuts KEY=VALUE in two. */
tn_status tn_rule_pair(const tn_rule_reading *r, tn_text pair, tn_text *key, tn_text *value);

#endif
