/* tensor/form.h - how parts make a tensor: one row a form.
 *
 * A later form is a row here and its conversions in src/sparse; store/forms.h
 * checks codes and scales. */
#ifndef TN_TENSOR_FORM_H
#define TN_TENSOR_FORM_H

#include <tenon/datatype.h>

#define TN_MAX_PARTS 16

typedef struct tn_form_info {
    const char *name;
    const char *roles[TN_MAX_PARTS];    /* in order, the first stored under the tensor's own name */
    uint32_t    required;               /* so many of them, the first ones; each of the others may be
                                         * absent */
    bool        sparse;                 /* it stores some elements and where they are */
    bool        scaled;                 /* its values are codes with scales */
    /* The parts are there and of the right roles; do they fit the tensor?  NULL: store/forms.c knows. */
    tn_status (*check)(const tn_tensor *tensor, tn_error *err);
} tn_form_info;

/* NULL: not known to this build. */
const tn_form_info *tn_form_get(tn_form form);

/* The form of this name, or TN_FORM_UNKNOWN. */
tn_form tn_form_parse(const char *name);

bool tn_form_is_sparse(tn_form form);
bool tn_form_is_scaled(tn_form form);

/* Its values are codes of a datatype.  What a form of a later version has may look like that: nothing was
 * checked then. */
bool tn_form_has_datatype(const tn_tensor *tensor);

/* Checks the roles of a tensor's parts and, of a form without scales, their
 * types and shapes.  TN_ERR_UNSUPPORTED: a form this build does not know. */
tn_status tn_form_check_parts(const tn_tensor *tensor, tn_error *err);

#endif
