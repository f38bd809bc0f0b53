/* cli/ui/chosen.h - the tensors of a file that --only and --exclude choose, in the order of --sort. */
#ifndef TENON_CLI_UI_CHOSEN_H
#define TENON_CLI_UI_CHOSEN_H

#include "ui/opts.h"

typedef struct chosen {
    const tn_tensor **tensors;
    size_t            count;
} chosen;

/* To be freed, also after a failure.  TN_ERR_ARGUMENT: a pattern matches nothing. */
tn_status chosen_make(chosen *c, const opts *o, const tn_file *file, tn_error *err);
void      chosen_free(chosen *c);

/* By name, numbers by their value, and all that is below "a." together. */
void chosen_sort_names(chosen *c);

#endif
