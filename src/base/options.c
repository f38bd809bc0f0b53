/* base/options.c - structs that begin with their size, which the caller sets. */
#include "base/options.h"

#include <string.h>

enum { MOST = 4096 };           /* bytes: a larger size was never set */

tn_status tn_check_size(const tn_sized *kind, const void *given, size_t *n, tn_error *err)
{
    memcpy(n, given, sizeof *n);
    if (*n < kind->first || *n > MOST)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected sizeof(%s) in its member size but found %zu",
                       kind->name, kind->name, *n);
    for (size_t i = kind->size; i < *n; i++)
        if (((const unsigned char *)given)[i])
            return tn_fail(err, TN_ERR_ARGUMENT, "%s: members of a later version are set: expected at most "
                           "%zu bytes but found %zu", kind->name, kind->size, *n);
    return TN_OK;
}

tn_status tn_take_options(const tn_sized *kind, void *own, const void *given, tn_error *err)
{
    size_t n;
    if (given) {
        TN_TRY(tn_check_size(kind, given, &n, err));
        memcpy(own, given, n < kind->size ? n : kind->size);
    }
    memcpy(own, &kind->size, sizeof kind->size);
    return TN_OK;
}

tn_status tn_check_texts(const char *const *texts, size_t n, const char *what, tn_error *err)
{
    TN_GIVEN(texts || !n, what, err);
    for (size_t i = 0; i < n; i++)
        TN_GIVEN(texts[i], what, err);
    return TN_OK;
}
