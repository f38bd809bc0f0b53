/* base/nearest.h - "did you mean". */
#ifndef TN_BASE_NEAREST_H
#define TN_BASE_NEAREST_H

#include <tenon/error.h>

/* Appends the nearest word to the text of an error, if there is one. */
tn_status tn_and_nearest(tn_status status, const tn_nearest *nearest, tn_error *err);

#endif
