/* store/pair.c - two files of one output: one names the other, which has the data. */
#include "store/pair.h"
#include "base/error.h"
#include "store/publish.h"

#include <string.h>

size_t tn_pair_stem(const tn_pair *pair, const char *path)
{
    size_t n = strlen(path), suffix = strlen(pair->suffix);
    return n > suffix && tn_ends_with(path, pair->suffix) ? n - suffix : n;
}

bool tn_pair_is_data(const tn_pair *pair, const char *path, const char *name)
{
    const char *base = tn_base_name(path);
    size_t stem = tn_pair_stem(pair, base), n = strlen(name);
    if (n <= stem || memcmp(name, base, stem) != 0)
        return false;
    name += stem;
    return strcmp(name, pair->data_suffix) == 0 ||
           (name[0] == '-' && tn_is_set_id(name + 1) &&
            strcmp(name + 1 + TN_SET_ID, pair->data_suffix) == 0 &&
            !tn_is_others_id(path, stem, name + 1, pair->suffix));
}

const char *tn_pair_data_name(const tn_pair *pair, tn_writer *w, const char *id)
{
    const char *base = tn_base_name(w->path), *dash = id ? "-" : "";
    int stem = (int)tn_pair_stem(pair, base);
    return tn_arena_printf(&w->arena, "%.*s%s%s%s", stem, base, dash, id ? id : "", pair->data_suffix);
}

tn_status tn_pair_fail_exists(tn_writer *w, const char *name, tn_error *err)
{
    tn_status status = tn_refuse(err, TN_ERR_EXISTS, TN_REASON_REPLACE, NULL, "already exists");
    const char *path = tn_arena_join(&w->arena, w->path, (size_t)(tn_base_name(w->path) - w->path), name);
    return tn_in_file(status, path, err);
}
