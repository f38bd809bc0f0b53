/* descriptor/check.h - what the checks of a descriptor share. A check reports everything that is wrong with
 * its field, and nothing if the numbers it needs are not known. */
#ifndef TN_DESCRIPTOR_CHECK_H
#define TN_DESCRIPTOR_CHECK_H

#include "descriptor/descriptor.h"
#include "descriptor/extents.h"

typedef struct tn_checker {
    const tn_descriptor *d;
    tn_check_options     options;
    tn_symbols           symbols;
    const tn_dtype_info *type;      /* NULL: not known */
    bool                 fragment;
    bool                 opened;    /* of tn_descriptor_check_first() */
    size_t               wrong;
} tn_checker;

__attribute__((format(printf, 3, 4)))
void tn_error_at(tn_checker *c, const char *path, const char *format, ...);
__attribute__((format(printf, 3, 4)))
void tn_remark_at(tn_checker *c, const char *path, const char *format, ...);

/* "memory.strides[1]" */
tn_phrase tn_item_path(const char *list, size_t i);

/* "dimension C" where the layout has a letter for it, else "dimension 1". */
tn_phrase tn_dimension_phrase(const tn_descriptor *d, uint32_t i);

/* The codes of an integer type; false for any other, and for NULL. */
bool tn_integer_codes(const tn_dtype_info *type, tn_wide *low, tn_wide *high);

/* "a code of int8, -128 to 127" */
tn_phrase tn_codes_phrase(const tn_dtype_info *type);

/* dimensions, layout, symbols, constraints, physical shape, padding */
void tn_check_shape(tn_checker *c);
void tn_check_memory(tn_checker *c);        /* strides, offset, total, alignment, is_contiguous */
void tn_check_quantization(tn_checker *c);
void tn_check_sharing(tn_checker *c);       /* device, handle, mapping, zero_copy_compatible */
tn_status tn_check_sparse(tn_checker *c, tn_error *err);

#endif
