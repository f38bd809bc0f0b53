/* tensor/form.h - how the parts of a tensor form its values: one row per form.
 *
 * The rows are in pipeline/forms.c.  The table is here, because all rooms need names and parts. */
#ifndef TN_TENSOR_FORM_H
#define TN_TENSOR_FORM_H

#include "base/arena.h"

#include <tenon/datatype.h>
#include <tenon/file.h>

#define TN_MAX_PARTS 16

typedef struct tn_form_info {
    const char *name;
    const char *roles[TN_MAX_PARTS];    /* in order; the first part is stored under the tensor's name */
    uint32_t    required;               /* the first so many parts are required, the others optional */
    bool        sparse;                 /* stores some elements and their indices; src/sparse converts it */
    bool        scaled;                 /* its values are codes with scales */
    /* Checks the parts, whose roles are right.  `datatype`: of its scaling if it is known, or NULL. */
    tn_status (*check)(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);
    /* Checks the data of a part other than the first, see tn_sparse_check().  NULL: any data is valid. */
    tn_status (*check_data)(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);
    /* Values [first, first + n), row-major, of a tensor whose parts are in memory; `first` is a multiple of
     * 8. Any thread.  NULL: src/sparse or a cast does it. */
    tn_status (*values)(const tn_tensor *tensor, uint64_t first, size_t n, void *values, tn_error *err);
} tn_form_info;

extern const tn_form_info tn_form_dense, tn_form_coo, tn_form_csr, tn_form_scaled, tn_form_blocks;

/* NULL: unknown to this build. */
const tn_form_info *tn_form_get(tn_form form);

/* The form of this name, or TN_FORM_UNKNOWN. */
tn_form tn_form_parse(const char *name);

bool tn_form_is_sparse(tn_form form);
bool tn_form_is_scaled(tn_form form);

/* Whether a tensor of form `from` can be converted to form `to`, see pipeline/reform.h. */
bool tn_form_converts(tn_form from, tn_form to);

/* Whether its values are codes of a datatype.  false for forms of later versions, which were not checked. */
bool tn_form_has_datatype(const tn_tensor *tensor);

/* Checks a tensor against its form: roles, types, shapes.  `datatype`: of its scaling if it is known, or
 * NULL. TN_ERR_UNSUPPORTED: a form unknown to this build. */
tn_status tn_form_check(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);

#endif
