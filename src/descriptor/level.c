/* descriptor/level.c - which compliance level a descriptor asks for. */
#include "descriptor/descriptor.h"
#include "descriptor/extents.h"

#include <string.h>

/* Dense whatever the symbols are. */
static bool is_dense(const tn_descriptor *d)
{
    static const tn_symbols none = { 0 };
    for (uint32_t i = 0; i < d->rank; i++)
        if (!tn_stride_is_dense(d, &none, i))
            return false;
    return true;
}

/* A fragment has none. */
static bool is_basic_type(const tn_descriptor *d)
{
    return d->dtype == TN_FLOAT32 || d->dtype == TN_FLOAT16 || tn_descriptor_is_fragment(d);
}

static bool is_basic_layout(const char *layout)
{
    return !layout || strcmp(layout, "NCHW") == 0 || strcmp(layout, "NHWC") == 0;
}

/* The requirement of level 3 that an implementation needs for it, or NULL. */
static const char *advanced(const tn_descriptor *d)
{
    if (d->sparse.format)
        return "sparse tensors";
    if (d->symbolic || tn_descriptor_has_symbols(d))
        return "dynamic shapes";
    if (d->buffer_handle.type != TN_HANDLE_NONE || d->mapping.present)
        return "zero-copy sharing";
    if (!is_basic_type(d) && d->dtype != TN_BFLOAT16 && d->dtype != TN_INT8)
        return "all data types";
    if (!is_basic_layout(d->layout))
        return "all layouts";
    return tn_other_scheme(d) ? "a quantization scheme beyond the specification's" : NULL;
}

static const char *standard(const tn_descriptor *d)
{
    if (!is_basic_type(d))
        return "BFLOAT16 and INT8";
    if (d->quantization.scheme != TN_QUANT_NONE)
        return "quantization metadata";
    return is_dense(d) && !d->physical_shape ? NULL : "stride-based layouts";
}

int tn_descriptor_level(const tn_descriptor *d, const char **why)
{
    int level = 3;
    const char *reason = d ? advanced(d) : "no descriptor";
    if (!d)
        level = 0;
    if (!reason) {
        reason = standard(d);
        level = reason ? 2 : 1;
    }
    if (why)
        *why = reason ? reason : "FLOAT32 and FLOAT16, dense, NCHW or NHWC";
    return level;
}
