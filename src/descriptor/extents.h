/* descriptor/extents.h - the ranges of symbols, extents and strides before symbols are bound, and of the
 * bytes that elements take. */
#ifndef TN_DESCRIPTOR_EXTENTS_H
#define TN_DESCRIPTOR_EXTENTS_H

#include <tenon/descriptor.h>

/* Wide enough for every number of a document and the sum of a thousand. Products saturate. */
__extension__ typedef __int128 tn_wide;
#define TN_WIDE_MAX ((tn_wide)1 << 100)

tn_wide tn_wide_mul(tn_wide a, tn_wide b);

/* Short text of a message; if it is cut it ends in "...". */
typedef struct tn_phrase { char text[160]; } tn_phrase;

/* The number in decimal; "more than 2^64" beyond that. */
tn_phrase tn_wide_phrase(tn_wide n);

/* ---- symbols ---- */

/* [A-Za-z_][A-Za-z0-9_]* */
bool tn_is_symbol(const char *text);

/* The name in messages: escaped, without quotes. */
tn_phrase tn_symbol_phrase(const char *name);

/* The symbols of a descriptor, sorted by name, with their constraints: min >= 0, multiple_of >= 1. */
typedef struct tn_symbols {
    tn_wia_constraint *items;       /* malloc()ed */
    size_t         count;
} tn_symbols;

tn_status tn_symbols_init(tn_symbols *symbols, const tn_descriptor *d, tn_error *err);
void tn_symbols_free(tn_symbols *symbols);
tn_wia_constraint *tn_symbols_find(const tn_symbols *symbols, const char *name);    /* or NULL */

/* The smallest and largest value a constraint allows (INT64_MAX: no maximum); false: it allows none. */
bool tn_constraint_bounds(const tn_wia_constraint *c, int64_t *low, int64_t *high);

bool tn_constraint_allows(const tn_wia_constraint *c, int64_t value);

/* Whether a symbol allows values but has no maximum. */
bool tn_symbol_is_endless(const tn_symbols *symbols, const char *name);

/* "a multiple of 8 from 1 to 2048" */
tn_phrase tn_constraint_phrase(const tn_wia_constraint *c);

/* ---- extents and strides ---- */

/* The range of a number. It is not known if it depends on a symbol without a maximum or without any value:
 * `unbounded` names that symbol. */
typedef struct tn_wia_range {
    tn_wide     low, high;
    const char *unbounded;
} tn_wia_range;

tn_wia_range tn_extent_range(const tn_symbols *symbols, const tn_wia_extent *extent);
tn_wia_range tn_product_range(const tn_symbols *symbols, const tn_wia_product *product);

/* "768*sequence_length" */
tn_phrase tn_product_phrase(const tn_wia_product *product);
tn_phrase tn_extent_phrase(const tn_wia_extent *extent);

/* Dimension i in memory: from physical_shape if there is one. */
tn_wia_extent tn_physical_extent(const tn_descriptor *d, uint32_t i);

/* The dense stride of dimension i: the product of all physical extents after it; INT64_MAX if the factor does
 * not fit. `names` has room for the symbols of `rank` dimensions. */
tn_wia_product tn_dense_stride(const tn_descriptor *d, uint32_t i, const char **names);

/* Whether stride i is dense, or does not matter: the tensor is empty or the dimension has one element. */
bool tn_stride_is_dense(const tn_descriptor *d, const tn_symbols *symbols, uint32_t i);

/* Whether any dimension or stride has a symbol. */
bool tn_descriptor_has_symbols(const tn_descriptor *d);

/* ---- the bits that elements take ---- */

/* The bits [low, high) of the buffer that elements may take, padding included; low == high: no elements. */
tn_wia_range tn_descriptor_span(const tn_descriptor *d, const tn_symbols *symbols, unsigned bits);

#endif
