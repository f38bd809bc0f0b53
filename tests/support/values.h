/* The values of a tensor of any form, as a view. */
#ifndef TENON_TESTS_VALUES_H
#define TENON_TESTS_VALUES_H

#include <tenon/view.h>

static inline tn_status open_values(const tn_file *file, const tn_tensor *tensor, tn_view **view,
                                    tn_error *err)
{
    tn_view *v = NULL;
    tn_status status = tn_view_open(file, tensor, &v, err);
    if (status == TN_OK)
        status = tn_view_add_values(&v, TN_UNKNOWN, err);
    if (status != TN_OK)
        tn_view_close(v);
    *view = status == TN_OK ? v : NULL;
    return status;
}

static inline tn_status get_values(tn_view *view, uint64_t first, uint64_t n, void *buffer, size_t size,
                                    tn_error *err)
{
    return tn_view_read(view, 0, first, n, buffer, size, err);
}

#endif
