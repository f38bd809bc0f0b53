/* tensor/form.h - how parts make a tensor: one row a form.
 *
 * A later form is a row here (its parts and checks) and a row of conversions
 * in src/transform. */
#ifndef TN_TENSOR_FORM_H
#define TN_TENSOR_FORM_H

#include <tenon/datatype.h>

#define TN_MAX_PARTS 16

typedef struct tn_form {
    const char *name;
    const char *roles[TN_MAX_PARTS];    /* in order, the first stored under the tensor's own name */
    uint32_t    required;               /* so many of them, the first ones; each of the others may be absent */
    /* The parts are there and of the right roles; do they fit the tensor?  (Those of a datatype: it says that.) */
    tn_status (*check)(const tn_tensor *tensor, tn_error *err);
} tn_form;

/* The form of this name, or NULL. */
const tn_form *tn_form_find(const char *name);

/* It stores some elements and where they are: "coo", "csr". */
bool tn_form_is_sparse(const char *name);

/* Its values are codes of a datatype.  What a form of a later version has may look like that: nothing was checked then. */
bool tn_form_has_datatype(const tn_tensor *tensor);

/* Checks a tensor against its form: roles, types, shapes.
 * TN_ERR_UNSUPPORTED: a form this build does not know. */
tn_status tn_form_check(const tn_tensor *tensor, tn_error *err);

/* The same with its datatype as it was read before; NULL: it was not, or the tensor has none. */
tn_status tn_form_check_as(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);

#endif
