/* tensor/layout.h - letters for the dimensions of a shape. */
#ifndef TN_TENSOR_LAYOUT_H
#define TN_TENSOR_LAYOUT_H

#include <tenon/layout.h>

/* tn_layout_check(); also TN_ERR_ARGUMENT if the dimension "1" has another extent. */
tn_status tn_layout_check_shape(const char *layout, uint32_t rank, const int64_t *shape, tn_error *err);

#endif
