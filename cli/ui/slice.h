/* cli/ui/slice.h - which elements of an array, as in Python: "0:4,:,-1". */
#ifndef TENON_CLI_UI_SLICE_H
#define TENON_CLI_UI_SLICE_H

#include <stdbool.h>
#include <tenon/tenon.h>

/* A window on a row-major array: dimensions kept, with how far apart (in
 * elements) neighbours along each are. */
typedef struct window {
    uint64_t base;                      /* flat index of its first element */
    uint64_t count;                     /* elements */
    uint32_t rank;
    int64_t  shape[TN_MAX_RANK];
    int64_t  step[TN_MAX_RANK];
} window;

/* The whole array, or what `slice` (may be NULL) says of it.  False: `why`
 * says what is wrong with the slice. */
bool window_make(window *w, const tn_array *array, const char *slice, char *why, size_t cap);

#endif
