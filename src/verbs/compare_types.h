/* verbs/compare_types.h - tn_compare_datatypes() without some tensors. */
#ifndef TN_VERBS_COMPARE_TYPES_H
#define TN_VERBS_COMPARE_TYPES_H

#include <tenon/convert.h>

typedef struct tn_tried_types {
    const tn_datatype *const *datatypes;
    size_t                    n;
    const bool               *left_out;     /* chosen tensors that none is tried on, reported as those that
                                             * they do not fit; NULL: none of them */
} tn_tried_types;

/* As tn_compare_datatypes(). */
tn_status tn_compare_datatypes_but(const tn_file *file, const tn_tried_types *tried,
                                   const tn_compare_datatypes_options *options, tn_quantize_report_fn report,
                                   tn_error *err);

#endif
