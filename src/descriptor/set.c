/* descriptor/set.c - a list of descriptors and the memory they live in,
 * and small questions about one. */
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
    tn_descriptor *items = tn_grow(set->items, set->count, &set->cap, sizeof *items);
    if (!items)
        return NULL;
    set->items = items;
    items[set->count] = (tn_descriptor){ 0 };
    return &items[set->count++];
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
    return set->count;
}

const tn_descriptor *tn_descriptors_at(const tn_descriptors *set, size_t i)
{
    return i < set->count ? &set->items[i] : NULL;
}

/* ---- what a descriptor's fields mean ---- */

bool tn_has_other_scheme(const tn_descriptor *d)
{
    for (size_t i = 0; i < d->nextra; i++)
        if (strcmp(d->extra[i].path, "dtype") == 0 && strcmp(d->extra[i].key, "quantization") == 0)
            return true;
    return false;
}

bool tn_is_per_channel(tn_quant_scheme scheme)
{
    return scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC || scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC;
}
