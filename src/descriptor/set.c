/* descriptor/set.c - a list of descriptors and the memory they live in. */
#include "descriptor/descriptor.h"
#include "base/error.h"

#include <stdlib.h>

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
