/* store/names.h - finding a name among many in constant time.
 *
 * An open-addressing table of indices; the strings stay with the caller.  The
 * hash is seeded per process, so a file cannot be made to collide. */
#ifndef TN_STORE_NAMES_H
#define TN_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_names {
    struct tn_name_slot { uint32_t tag, index_plus_1; } *slots;
    size_t mask, count;
} tn_names;

/* What index i is called: how the table sees the caller's strings. */
typedef const char *(*tn_name_at)(const void *owner, size_t i);

/* Room for n names.  False when memory is out. */
bool tn_names_init(tn_names *t, size_t n);
void tn_names_free(tn_names *t);

/* Adds index i under its name, growing if need be.  TN_NAMES_ADDED,
 * TN_NAMES_NOMEM, or the index that has this name already. */
#define TN_NAMES_ADDED  SIZE_MAX
#define TN_NAMES_NOMEM  (SIZE_MAX - 1)
size_t tn_names_add(tn_names *t, const void *owner, tn_name_at name_at, size_t i);

/* Adds indices 0 .. n-1 to a table made for them.  n when all were added; else
 * the first that was not, and *other has the index that has its name. */
size_t tn_names_add_all(tn_names *t, const void *owner, tn_name_at name_at, size_t n, size_t *other);

/* The index of a name, or SIZE_MAX. */
size_t tn_names_find(const tn_names *t, const void *owner, tn_name_at name_at, const char *name);

#endif
