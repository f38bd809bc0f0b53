/* tensor/form.c - the table of forms. */
#include "tensor/form.h"
#include "base/error.h"

#include <string.h>

static tn_status check_dense(const tn_tensor *t, tn_error *err)
{
    const tn_array *a = &t->parts[0].array;
    if (a->dtype != t->dtype || a->rank != t->rank ||
        (t->rank && memcmp(a->shape, t->shape, t->rank * sizeof *t->shape) != 0))
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "tensor %s: a dense tensor's data must have its type and shape", tn_quote_z(t->name).text);
    return TN_OK;
}

static const tn_form forms[] = {
    { "dense", { "data" }, check_dense },
};

const tn_form *tn_form_find(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}

static uint32_t role_count(const tn_form *form)
{
    uint32_t n = 0;
    while (n < TN_MAX_PARTS && form->roles[n])
        n++;
    return n;
}

tn_status tn_form_check(const tn_tensor *t, tn_error *err)
{
    const tn_form *form = tn_form_find(t->form);
    if (!form)
        return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "tensor %s: form %s is not known to this build",
                       tn_quote_z(t->name).text, tn_quote_z(t->form).text);
    if (t->nparts != role_count(form))
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "tensor %s: form \"%s\" has %u parts but %u were given",
                       tn_quote_z(t->name).text, form->name, role_count(form), t->nparts);
    for (uint32_t i = 0; i < t->nparts; i++)
        if (strcmp(t->parts[i].role, form->roles[i]) != 0)
            return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "tensor %s: part %u of form \"%s\" is \"%s\" but found %s",
                           tn_quote_z(t->name).text, i, form->name, form->roles[i], tn_quote_z(t->parts[i].role).text);
    return form->check(t, err);
}
