/* base/options.h - structs that begin with their size, which the caller sets. */
#ifndef TN_BASE_OPTIONS_H
#define TN_BASE_OPTIONS_H

#include "base/error.h"

#include <stddef.h>

typedef struct tn_sized {
    const char *name;           /* of the struct, for messages */
    size_t      size, first;    /* in this build, and in its first version */
} tn_sized;

/* `last` is the last member of the struct's first version. */
#define TN_SIZED(type, last) \
    (&(const tn_sized){ #type, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last) })

/* The size that the caller set, in *n.  TN_ERR_ARGUMENT: none, or one that no version has; members are set
 * that this build does not know. */
tn_status tn_check_size(const tn_sized *kind, const void *given, size_t *n, tn_error *err);

/* Copies the caller's struct, which may be of another version, or NULL, to `own`, which holds the defaults.
 * Sets the size of `own`. */
tn_status tn_take_options(const tn_sized *kind, void *own, const void *given, tn_error *err);

/* A list of texts that the caller gave, none of which may be NULL; `what` it is, for the message. */
tn_status tn_check_texts(const char *const *texts, size_t n, const char *what, tn_error *err);

#endif
