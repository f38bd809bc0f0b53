/* tensor/form.c - the table of forms. */
#include "tensor/form.h"
#include "base/error.h"

#include <string.h>

static const tn_form_info *const forms[] = {
    [TN_FORM_DENSE] = &tn_form_dense,
    [TN_FORM_COO] = &tn_form_coo,
    [TN_FORM_CSR] = &tn_form_csr,
    [TN_FORM_SCALED] = &tn_form_scaled,
    [TN_FORM_BLOCKS] = &tn_form_blocks,
};

enum { FORMS = sizeof forms / sizeof *forms };

const tn_form_info *tn_form_get(tn_form form)
{
    return (unsigned)form < FORMS ? forms[form] : NULL;
}

const char *tn_form_name(tn_form form)
{
    const tn_form_info *info = tn_form_get(form);
    return info ? info->name : "unknown";
}

const char *tn_tensor_form_name(const tn_tensor *t)
{
    if (!t)
        return tn_form_name(TN_FORM_UNKNOWN);
    return t->form_text ? t->form_text : tn_form_name(t->form);
}

tn_form tn_form_parse(const char *name)
{
    for (unsigned i = 0; i < FORMS; i++)
        if (strcmp(name, forms[i]->name) == 0)
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

bool tn_form_converts(tn_form from, tn_form to)
{
    bool sparse = from == TN_FORM_DENSE || tn_form_is_sparse(from);
    if (sparse && (to == TN_FORM_DENSE || tn_form_is_sparse(to)))
        return true;
    return to == TN_FORM_DENSE && tn_form_get(from) && tn_form_get(from)->values;
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

/* The parts must have roles of the form, in its order, and all required ones. */
static tn_status check_roles(const tn_form_info *form, const tn_tensor *t, tn_error *err)
{
    uint32_t n = role_count(form), k = 0;
    if (t->nparts < form->required || t->nparts > n)
        return tn_fail(err, TN_ERR_ARGUMENT, "form \"%s\" has %u parts but %u were given", form->name, n,
                       t->nparts);
    for (uint32_t i = 0; i < t->nparts; i++, k++) {
        uint32_t expected = k;
        while (k < n && strcmp(t->parts[i].role, form->roles[k]) != 0)
            k++;
        if (k == n || (i < form->required && k != i))
            return tn_fail(err, TN_ERR_ARGUMENT, "part %u of form \"%s\" is \"%s\" but found %s", i,
                           form->name, form->roles[expected < n ? expected : n - 1],
                           tn_quote_z(t->parts[i].role).text);
    }
    return TN_OK;
}

static tn_status check(const tn_tensor *t, const tn_datatype *datatype, tn_error *err)
{
    const tn_form_info *form = tn_form_get(t->form);
    if (!form)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "form %s is not known to this build",
                       tn_quote_z(tn_tensor_form_name(t)).text);
    TN_TRY(check_roles(form, t, err));
    if (t->scaling && !form->scaled)
        return tn_fail(err, TN_ERR_ARGUMENT, "form \"%s\" has no scales", form->name);
    return form->check(t, datatype, err);
}

tn_status tn_form_check(const tn_tensor *t, const tn_datatype *datatype, tn_error *err)
{
    return tn_in_tensor(check(t, datatype, err), t->name, err);
}
