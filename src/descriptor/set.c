/* descriptor/set.c - a list of descriptors and its memory, and small questions about a descriptor. */
#include "descriptor/descriptor.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

tn_status tn_descriptors_new(tn_descriptors **set, tn_error *err)
{
    *set = calloc(1, sizeof **set);
    return *set ? TN_OK : tn_fail_nomem(err);
}

tn_descriptor *tn_descriptors_add(tn_descriptors *set)
{
    if (!TN_GROW(set->items, set->count, set->cap))
        return NULL;
    set->items[set->count] = (tn_descriptor){ 0 };
    return &set->items[set->count++];
}

void tn_descriptors_free(tn_descriptors *set)
{
    if (!set)
        return;
    tn_arena_free(&set->arena);
    free(set->items);
    free(set);
}

size_t tn_descriptors_count(const tn_descriptors *set)
{
    return set ? set->count : 0;
}

const tn_descriptor *tn_descriptors_at(const tn_descriptors *set, size_t i)
{
    return i < tn_descriptors_count(set) ? &set->items[i] : NULL;
}

/* ---- what a descriptor's fields mean ---- */

const tn_wia_extra *tn_find_extra(const tn_wia_extra *extra, size_t n, const char *path, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(extra[i].path, path) == 0 && strcmp(extra[i].key, key) == 0)
            return &extra[i];
    return NULL;
}

const tn_wia_extra *tn_other_scheme(const tn_descriptor *d)
{
    if (tn_has_no_shape(d))
        return tn_find_extra(d->extra, d->nextra, "", "scheme");
    return tn_find_extra(d->extra, d->nextra, "dtype", "quantization");
}

bool tn_descriptor_is_fragment(const tn_descriptor *d)
{
    return d && !d->version && !d->tensor_id && !d->name && !d->base_type && d->dtype == TN_UNKNOWN &&
        !d->sparse.format;
}

bool tn_has_no_shape(const tn_descriptor *d)
{
    bool is_part = d->buffer_handle.type != TN_HANDLE_NONE || d->mapping.present ||
                   d->quantization.scheme != TN_QUANT_NONE ||
                   tn_find_extra(d->extra, d->nextra, "", "scheme");        /* else a scalar */
    return !d->dimensions && tn_descriptor_is_fragment(d) && is_part;
}

bool tn_is_per_channel(tn_quant_scheme scheme)
{
    return scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC || scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC;
}
