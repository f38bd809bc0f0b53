/* tensor/form.h - how parts make a tensor: one row a form.
 *
 * The rows are in pipeline/forms.c, which knows what can be done with each; the table of them is here,
 * because all rooms ask for names and parts. */
#ifndef TN_TENSOR_FORM_H
#define TN_TENSOR_FORM_H

#include "base/arena.h"

#include <tenon/datatype.h>
#include <tenon/file.h>

#define TN_MAX_PARTS 16

struct tn_value_plan;

typedef struct tn_form_info {
    const char *name;
    const char *roles[TN_MAX_PARTS];    /* in order, the first stored under the tensor's own name */
    uint32_t    required;               /* so many of them, the first ones; each of the others may be
                                         * absent */
    bool        sparse;                 /* it stores some elements and where they are; src/sparse makes it of
                                         * dense and of other sparse ones, and dense of it */
    bool        scaled;                 /* its values are codes with scales */
    /* The parts are there and of the right roles; do they fit the tensor?  `datatype`: that of its scaling,
     * if it was read before, or NULL. */
    tn_status (*check)(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);
    /* Goes through the data of a part that is not the first, see tn_sparse_check().  NULL: any will do. */
    tn_status (*check_data)(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);
    /* How to have its values, see tn_plan_values().  NULL: by values() only. */
    tn_status (*plan_values)(const tn_file *file, const tn_tensor *tensor, tn_arena *arena,
                             struct tn_value_plan *plan, tn_error *err);
    /* Values [first, first + n), row-major, of a tensor whose parts all have their data; `first` is a
     * multiple of 8.  Any thread.  NULL: src/sparse makes it dense, or a cast. */
    tn_status (*values)(const tn_tensor *tensor, uint64_t first, size_t n, void *values, tn_error *err);
} tn_form_info;

extern const tn_form_info tn_form_dense, tn_form_coo, tn_form_csr, tn_form_scaled;

/* NULL: not known to this build. */
const tn_form_info *tn_form_get(tn_form form);

/* The form of this name, or TN_FORM_UNKNOWN. */
tn_form tn_form_parse(const char *name);

bool tn_form_is_sparse(tn_form form);
bool tn_form_is_scaled(tn_form form);

/* Whether a tensor of one form can be made one of the other, see pipeline/reform.h. */
bool tn_form_converts(tn_form from, tn_form to);

/* Its values are codes of a datatype.  What a form of a later version has may look like that: nothing was
 * checked then. */
bool tn_form_has_datatype(const tn_tensor *tensor);

/* Checks a tensor against its form: roles, types, shapes.  `datatype`: of its scaling, where it was read
 * before, or NULL.  TN_ERR_UNSUPPORTED: a form this build does not know. */
tn_status tn_form_check(const tn_tensor *tensor, const tn_datatype *datatype, tn_error *err);

#endif
