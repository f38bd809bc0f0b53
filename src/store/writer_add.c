/* store/writer_add.c - tensors that programs declare to a writer. */
#include "base/error.h"
#include "store/forms.h"
#include "store/writer.h"

#include <string.h>

/* What the caller's structs point to; the role of the first part may be missing. */
static tn_status check_pointers(const tn_tensor *t, tn_error *err)
{
    TN_GIVEN(t->name, "a name", err);
    TN_GIVEN(t->parts, "parts", err);
    if (t->nparts == 0 || t->nparts > TN_MAX_PARTS || t->rank > TN_MAX_RANK)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected 1 to %d parts and at most %d dimensions but found %u "
                       "and %u", TN_MAX_PARTS, TN_MAX_RANK, t->nparts, t->rank);
    TN_GIVEN(t->shape || !t->rank, "a shape", err);
    TN_GIVEN(t->meta || !t->nmeta, "metadata", err);
    for (uint32_t i = 0; i < t->nmeta; i++)
        TN_GIVEN(t->meta[i].key && (t->meta[i].text || t->meta[i].cbor), "metadata, a key and a value", err);
    for (uint32_t k = 0; k < t->nparts; k++) {
        const tn_part *p = &t->parts[k];
        TN_GIVEN(p->role || k == 0, "a role of every part but the first", err);
        if (p->array.rank > TN_MAX_RANK)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected at most %d dimensions but found %u", TN_MAX_RANK,
                           p->array.rank);
        TN_GIVEN(p->array.shape || !p->array.rank, "a shape of every part", err);
        TN_GIVEN(!p->padded || p->padded->shape || !p->array.rank, "a shape with padding", err);
    }
    return TN_OK;
}

/* A part without a role is the first of the tensor's form. */
static tn_status add_whole(tn_writer *w, const tn_tensor *t, tn_error *err)
{
    tn_stored_as how[TN_MAX_PARTS];
    tn_part parts[TN_MAX_PARTS];
    tn_tensor own = *t;
    for (size_t k = 0; k < TN_MAX_PARTS; k++)
        how[k] = (tn_stored_as){ w->options.encoding, w->options.checksum };
    TN_TRY(check_pointers(t, err));
    memcpy(parts, t->parts, t->nparts * sizeof *parts);
    const tn_form_info *form = tn_form_get(t->form);
    if (!parts[0].role)
        parts[0].role = form ? form->roles[0] : "data";
    own.parts = parts;
    TN_TRY(tn_form_check(&own, NULL, err));
    return tn_writer_add_as(w, &own, how, err);
}

tn_status tn_writer_add(tn_writer *w, const tn_tensor *t, tn_error *err)
{
    TN_GIVEN(w, "a writer", err);
    TN_GIVEN(t, "a tensor", err);
    return tn_writer_settle(w, add_whole(w, t, err), err);
}

tn_status tn_writer_add_array(tn_writer *w, const char *name, tn_dtype dtype, uint32_t rank,
                              const int64_t *shape, const void *data, tn_error *err)
{
    const tn_part part = { .role = "data", .array = { dtype, rank, shape, NULL }, .data = data };
    const tn_tensor tensor = { .name = name, .form = TN_FORM_DENSE, .dtype = dtype, .rank = rank,
                               .shape = shape, .parts = &part, .nparts = 1 };
    return tn_writer_add(w, &tensor, err);
}
