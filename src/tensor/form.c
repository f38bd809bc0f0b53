/* tensor/form.c - the table of forms. */
#include "tensor/form.h"
#include "base/checked.h"
#include "base/error.h"

#include <string.h>

static tn_status check_dense(const tn_tensor *t, tn_error *err)
{
    const tn_array *a = &t->parts[0].array;
    if (a->dtype != t->dtype || a->rank != t->rank ||
        (t->rank && memcmp(a->shape, t->shape, t->rank * sizeof *t->shape) != 0))
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "tensor %s: a dense tensor's data must have its type and shape",
                       tn_quote_z(t->name).text);
    return TN_OK;
}

static bool is_index_type(tn_dtype dtype)
{
    return dtype == TN_INT32 || dtype == TN_INT64 || dtype == TN_UINT32 || dtype == TN_UINT64;
}

/* Elements are numbered in row-major order. */
static bool is_countable(const tn_tensor *t)
{
    uint64_t count;
    return tn_shape_count(t->rank, t->shape, &count) == TN_OK;
}

/* Values [n] and, for each, a row of indices [n, rank]. */
static tn_status check_coo(const tn_tensor *t, tn_error *err)
{
    const tn_array *values = &t->parts[0].array, *indices = &t->parts[1].array;
    const char *wrong = NULL;
    if (!is_countable(t))
        wrong = "it has more than 2^63 - 1 elements";
    else if (values->dtype != t->dtype || values->rank != 1)
        wrong = "its values must be a vector of its type";
    else if (!is_index_type(indices->dtype))
        wrong = "its indices must be int32, int64, uint32 or uint64";
    else if (indices->rank != 2 || indices->shape[0] != values->shape[0] ||
             indices->shape[1] != (int64_t)t->rank)
        wrong = "its indices must be one row for each value, as long as it has dimensions";
    return wrong
               ? tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "tensor %s: %s", tn_quote_z(t->name).text, wrong)
               : TN_OK;
}

/* All dimensions but the last. */
static bool is_row_count(const tn_tensor *t, int64_t pointers)
{
    int64_t rows;
    return !__builtin_mul_overflow(t->shape[0], t->rank == 3 ? t->shape[1] : 1, &rows) && pointers > 0 &&
           pointers - 1 == rows;
}

/* Values [n], for each an index along the last dimension [n], and pointers [rows + 1]. */
static tn_status check_csr(const tn_tensor *t, tn_error *err)
{
    const tn_array *values = &t->parts[0].array, *indices = &t->parts[1].array, *indptr = &t->parts[2].array;
    const char *wrong = NULL;
    if (t->rank != 2 && t->rank != 3)
        wrong = "form csr has two dimensions, or three: a batch";
    else if (!is_countable(t))
        wrong = "it has more than 2^63 - 1 elements";
    else if (values->dtype != t->dtype || values->rank != 1)
        wrong = "its values must be a vector of its type";
    else if (!is_index_type(indices->dtype) || indptr->dtype != indices->dtype)
        wrong = "its indices and row pointers must be of one type: int32, int64, uint32 or uint64";
    else if (indices->rank != 1 || indices->shape[0] != values->shape[0])
        wrong = "its indices must be one for each value";
    else if (indptr->rank != 1 || !is_row_count(t, indptr->shape[0]))
        wrong = "its row pointers must be one more than it has rows";
    return wrong
               ? tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "tensor %s: %s", tn_quote_z(t->name).text, wrong)
               : TN_OK;
}

static const tn_form_info forms[] = {
    [TN_FORM_DENSE] = { "dense", { "data" }, 1, .check = check_dense },
    [TN_FORM_COO] = { "coo", { "values", "indices" }, 2, .sparse = true, .check = check_coo },
    [TN_FORM_CSR] = { "csr", { "values", "indices", "indptr" }, 3, .sparse = true, .check = check_csr },
    [TN_FORM_SCALED] = { "scaled", { "data", "scale", "tscale", "zero", "offset", "meta", "mask" }, 1,
                         .scaled = true },
};

enum { FORMS = sizeof forms / sizeof *forms };

const tn_form_info *tn_form_get(tn_form form)
{
    return (unsigned)form < FORMS ? &forms[form] : NULL;
}

const char *tn_form_name(tn_form form)
{
    const tn_form_info *info = tn_form_get(form);
    return info ? info->name : "unknown";
}

const char *tn_tensor_form_name(const tn_tensor *t)
{
    return t->form_text ? t->form_text : tn_form_name(t->form);
}

tn_form tn_form_parse(const char *name)
{
    for (unsigned i = 0; i < FORMS; i++)
        if (strcmp(name, forms[i].name) == 0)
            return (tn_form)i;
    return TN_FORM_UNKNOWN;
}

bool tn_form_is_sparse(tn_form form)
{
    const tn_form_info *info = tn_form_get(form);
    return info && info->sparse;
}

bool tn_form_is_scaled(tn_form form)
{
    const tn_form_info *info = tn_form_get(form);
    return info && info->scaled;
}

bool tn_form_has_datatype(const tn_tensor *t)
{
    return tn_form_is_scaled(t->form) && t->scaling && t->scaling->datatype;
}

static uint32_t role_count(const tn_form_info *form)
{
    uint32_t n = 0;
    while (n < TN_MAX_PARTS && form->roles[n])
        n++;
    return n;
}

/* The roles of the parts are some of the form's, in its order, the required ones first. */
static tn_status check_roles(const tn_form_info *form, const tn_tensor *t, tn_error *err)
{
    uint32_t n = role_count(form), k = 0;
    if (t->nparts < form->required || t->nparts > n)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "tensor %s: form \"%s\" has %u parts but %u were given", tn_quote_z(t->name).text,
                       form->name, n, t->nparts);
    for (uint32_t i = 0; i < t->nparts; i++, k++) {
        uint32_t expected = k;
        while (k < n && strcmp(t->parts[i].role, form->roles[k]) != 0)
            k++;
        if (k == n || (i < form->required && k != i))
            return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                           "tensor %s: part %u of form \"%s\" is \"%s\" but found %s",
                           tn_quote_z(t->name).text, i, form->name,
                           form->roles[expected < n ? expected : n - 1], tn_quote_z(t->parts[i].role).text);
    }
    return TN_OK;
}

tn_status tn_form_check_parts(const tn_tensor *t, tn_error *err)
{
    const tn_form_info *form = tn_form_get(t->form);
    if (!form)
        return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "tensor %s: form %s is not known to this build",
                       tn_quote_z(t->name).text, tn_quote_z(tn_tensor_form_name(t)).text);
    tn_status status = check_roles(form, t, err);
    if (status || form->scaled)
        return status;
    if (t->scaling)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "tensor %s: form \"%s\" has no scales",
                       tn_quote_z(t->name).text, form->name);
    return form->check(t, err);
}
