/* store/pair.h - two files of one output: one names the other, which has the data.
 *
 *     NAME + suffix                names the data
 *     NAME + data_suffix           the data of a pair that replaced nothing
 *     NAME-0123abcd + data_suffix  the data of a pair that replaced another */
#ifndef TN_STORE_PAIR_H
#define TN_STORE_PAIR_H

#include "store/writer.h"

typedef struct tn_pair {
    const char *suffix, *data_suffix;
} tn_pair;

/* The length of a path without the suffix; all of it if it ends otherwise. */
size_t tn_pair_stem(const tn_pair *pair, const char *path);

/* Whether the data of a pair at `path` can have this name. */
bool tn_pair_is_data(const tn_pair *pair, const char *path, const char *name);

/* The name of the writer's data; `id` NULL: nothing is replaced.  NULL without memory. */
const char *tn_pair_data_name(const tn_pair *pair, tn_writer *w, const char *id);

/* TN_ERR_EXISTS: the data of this name is there already. */
tn_status tn_pair_fail_exists(tn_writer *w, const char *name, tn_error *err);

#endif
