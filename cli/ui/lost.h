/* cli/ui/lost.h - what casts lose, said once per conversion. */
#ifndef TENON_CLI_UI_LOST_H
#define TENON_CLI_UI_LOST_H

#include "ui/say.h"

/* Of all tensors that a cast loses much of.  Zero-initialise to begin. */
typedef struct lost_values {
    size_t   tensors;
    char    *name;              /* of the first one... */
    tn_dtype dtype;             /* ...and its new type */
    uint64_t values, flushed, saturated;
} lost_values;

void lost_add(lost_values *all, const tn_cast_report *lost);
void say_lost(const lost_values *all);          /* nothing if nothing is lost */
void json_lost(const lost_values *all);         /* "lost": an object, or null */
void lost_free(lost_values *all);

#endif
