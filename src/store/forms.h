/* store/forms.h - parts against their form. */
#ifndef TN_STORE_FORMS_H
#define TN_STORE_FORMS_H

#include "tensor/form.h"

/* Checks a tensor against its form: roles, types, shapes.
 * TN_ERR_UNSUPPORTED: a form this build does not know. */
tn_status tn_form_check(const tn_tensor *tensor, tn_error *err);

/* The same with its datatype as it was read before; NULL: it was not, or the tensor has none. */
tn_status tn_form_check_as(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);

#endif
