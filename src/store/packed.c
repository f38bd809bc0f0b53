/* store/packed.c - what is said of other tools' packed codes. */
#include "store/packed.h"
#include "base/error.h"

#include <string.h>

tn_status tn_packed_refuse(const tn_packed *p, const tn_tensor *t, tn_error *err)
{
    const char *what = strcmp(t->name, p->codes) == 0 ? "it holds" : "it belongs to";
    tn_status status;
    if (p->missing)
        status = tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_RAW_CODES, NULL,
                           "%s codes of %s, not plain numbers, and %s is missing or of another type", what,
                           p->convention, tn_quote_z(p->missing).text);
    else if (p->why)
        status = tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_RAW_CODES, NULL,
                           "%s codes of %s, not plain numbers, and they cannot be decoded: %s", what,
                           p->convention, p->why);
    else
        status = tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_RAW_CODES, NULL,
                           "%s codes of %s, not plain numbers: this version copies them unchanged but does "
                           "not decode them", what, p->convention);
    return tn_in_tensor(status, t->name, err);
}

const char *tn_file_convention(const tn_file *file, const tn_tensor *tensor)
{
    const tn_packed *packed = file && tensor ? tn_packed_known(file, tensor) : NULL;
    return packed ? packed->convention : NULL;
}
