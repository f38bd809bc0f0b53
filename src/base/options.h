/* base/options.h - option structs that begin with their size. */
#ifndef TN_BASE_OPTIONS_H
#define TN_BASE_OPTIONS_H

#include <stddef.h>
#include <string.h>

/* Copies the caller's struct, which may be older and shorter, or NULL, to the zeroed `own` of `size`
 * bytes. */
static inline void tn_take_options(void *own, size_t size, const void *given)
{
    size_t n = 0;
    if (given)
        memcpy(&n, given, sizeof n);
    if (n)
        memcpy(own, given, n < size ? n : size);
}

#endif
