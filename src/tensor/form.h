/* tensor/form.h - how parts make a tensor: one row a form.
 *
 * A later form is a row here and its conversions in src/sparse; store/forms.h
 * checks codes and scales. */
#ifndef TN_TENSOR_FORM_H
#define TN_TENSOR_FORM_H

#include <tenon/datatype.h>

#define TN_MAX_PARTS 16

typedef struct tn_form {
    const char *name;
    const char *roles[TN_MAX_PARTS];    /* in order, the first stored under the tensor's own name */
    uint32_t    required;               /* so many of them, the first ones; each of the others may be
                                         * absent */
    /* The parts are there and of the right roles; do they fit the tensor?  NULL: store/forms.c knows. */
    tn_status (*check)(const tn_tensor *tensor, tn_error *err);
} tn_form;

/* The form of this name, or NULL. */
const tn_form *tn_form_find(const char *name);

/* It stores some elements and where they are: "coo", "csr". */
bool tn_form_is_sparse(const char *name);

/* Its values are codes of a datatype.  What a form of a later version has may look like that: nothing was
 * checked then. */
bool tn_form_has_datatype(const tn_tensor *tensor);

/* Its values are codes with scales. */
bool tn_form_is_scaled(const char *name);

/* Checks the roles of a tensor's parts and, of a form without scales, their
 * types and shapes.  TN_ERR_UNSUPPORTED: a form this build does not know. */
tn_status tn_form_check_parts(const tn_tensor *tensor, tn_error *err);

#endif
