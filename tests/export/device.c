/* device.c - a program without a C library that prints a digest of every tensor of an export, for the host
 * (x86-64) and for ARM, emulated: both must print the same.  MLI is 10, 11 or 20. */
#include "../mli/bare.h"
#include "model.h"

#include <tenon/mli.h>

static void add_shape(const model_mli_tensor *t)
{
    add((int32_t)t->rank);
    add((int32_t)t->el_type);
    for (uint32_t i = 0; i < t->rank; i++)
        add((int32_t)t->shape[i]);
}

static void add_elements(const void *data, uint32_t bytes, uint32_t size)
{
    for (uint32_t i = 0; i < bytes / size; i++)
        add(size == 1   ? ((const int8_t *)data)[i]
            : size == 2 ? ((const int16_t *)data)[i]
                        : ((const int32_t *)data)[i]);
}

#if MLI == 10
static void add_tensor(const tn_mli10_tensor *t)
{
    add((int32_t)tn_mli10_check(t));
    add_elements(t->data, t->capacity, tn_mli10_element_size(t->el_type));
    add(t->el_params.fx.frac_bits);
}
#elif MLI == 11
static void add_tensor(const tn_mli11_tensor *t)
{
    add((int32_t)tn_mli11_check(t));
    add_elements(t->data, t->capacity, tn_mli11_element_size(t->el_type));
    if (t->el_type == TN_MLI1_FX8 || t->el_type == TN_MLI1_FX16) {
        add(t->el_params.fx.frac_bits);
        return;
    }
    int32_t dim = t->el_params.asym.dim;
    add(dim);
    add(t->el_params.asym.scale_frac_bits);
    for (uint32_t i = 0; i < (dim < 0 ? 1 : t->shape[dim]); i++) {
        add(dim < 0 ? t->el_params.asym.zero_point.i16 : t->el_params.asym.zero_point.pi16[i]);
        add(dim < 0 ? t->el_params.asym.scale.i32 : t->el_params.asym.scale.pi32[i]);
    }
}
#else
static void add_tensor(const tn_mli20_tensor *t)
{
    add((int32_t)tn_mli20_check(t));
    add_elements(t->data.mem.void_p, t->data.capacity, tn_mli20_element_size(t->el_type));
    if (t->el_type == TN_MLI2_FX8 || t->el_type == TN_MLI2_FX16)
        add(t->el_params.fx.frac_bits);
    if (t->el_type != TN_MLI2_SA8 && t->el_type != TN_MLI2_SA32)
        return;
    int32_t dim = t->el_params.sa.dim;
    add(dim);
    for (uint32_t i = 0; i < (dim < 0 ? 1 : t->shape[dim]); i++) {
        add(dim < 0 ? t->el_params.sa.zero_point.mem.i16 : t->el_params.sa.zero_point.mem.pi16[i]);
        add(dim < 0 ? t->el_params.sa.scale.mem.i16 : t->el_params.sa.scale.mem.pi16[i]);
        add(dim < 0 ? t->el_params.sa.scale_frac_bits.mem.i8 : t->el_params.sa.scale_frac_bits.mem.pi8[i]);
    }
}
#endif

ENTRY void _start(void);
ENTRY void _start(void)
{
    for (uint32_t i = 0; i < model_count; i++) {
        add_shape(model_tensors[i].tensor);
        add_tensor(model_tensors[i].tensor);
    }
    print_digest_and_end();
}
