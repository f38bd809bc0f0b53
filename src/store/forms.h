/* store/forms.h - checks that the parts of a tensor, whose roles are right (see tn_form_check()), fit its
 * form. TN_ERR_ARGUMENT: they do not. */
#ifndef TN_STORE_FORMS_H
#define TN_STORE_FORMS_H

#include "tensor/form.h"

tn_status tn_check_dense(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);
tn_status tn_check_coo(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);
tn_status tn_check_csr(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);
tn_status tn_check_scaled(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);

#endif
