/* store/names.h - a hash table of names.
 *
 * It holds indices; the strings stay with the caller.  The hash is seeded per process, so a file cannot be
 * made to collide. */
#ifndef TN_STORE_NAMES_H
#define TN_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_names {
    struct tn_name_slot { uint32_t tag, index_plus_1; } *slots;
    size_t mask, count;
} tn_names;

/* The name of index i. */
typedef const char *(*tn_name_at)(const void *owner, size_t i);

/* Room for n names; a zeroed table needs none.  False: no memory. */
bool tn_names_init(tn_names *t, size_t n);
void tn_names_free(tn_names *t);

/* Adds index i.  Returns TN_NAMES_ADDED, TN_NAMES_NOMEM, or the index that already has this name. */
#define TN_NAMES_ADDED  SIZE_MAX
#define TN_NAMES_NOMEM  (SIZE_MAX - 1)
size_t tn_names_add(tn_names *t, const void *owner, tn_name_at name_at, size_t i);

/* Adds indices 0 to n-1. Returns n, or the first one whose name is taken; *other has it then. */
size_t tn_names_add_all(tn_names *t, const void *owner, tn_name_at name_at, size_t n, size_t *other);

/* The index of a name, or SIZE_MAX. */
size_t tn_names_find(const tn_names *t, const void *owner, tn_name_at name_at, const char *name);

#endif
