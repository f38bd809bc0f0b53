/* values.c - prints every tensor of an export: its name in hex, what the check of its version says, its
 * shape, and its values.  C99 and C++11.  MLI is 10, 11 or 20; with IMAGE model.bin is read, whose path is
 * the first argument. */
#include "model.h"

#include <tenon/mli.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if MLI == 10
#define DATA(t) ((t)->data)
#define STATUS(t) tn_mli10_check((const tn_mli10_tensor *)(const void *)(t))
#elif MLI == 11
#define DATA(t) ((t)->data)
#define STATUS(t) tn_mli11_check((const tn_mli11_tensor *)(const void *)(t))
#else
#define DATA(t) ((t)->data.mem.void_p)
#define STATUS(t) tn_mli20_check((const tn_mli20_tensor *)(const void *)(t))
#endif

static double value_of_fx(const model_mli_tensor *t, uint32_t i)
{
    double code = t->el_type == model_el_fx8 ? ((const int8_t *)DATA(t))[i] : ((const int16_t *)DATA(t))[i];
    return ldexp(code, -t->el_params.fx.frac_bits);
}

#if MLI != 10
/* Which of the parameters element i has. */
static uint32_t index_along(const model_mli_tensor *t, int32_t dim, uint32_t i)
{
    uint32_t inner = 1, d;
    for (d = (uint32_t)dim + 1; d < t->rank; d++)
        inner *= t->shape[d];
    return i / inner % t->shape[dim];
}

static double value_of_sa(const model_mli_tensor *t, uint32_t i)
{
    double code = t->el_type == model_el_sa8 ? ((const int8_t *)DATA(t))[i] : ((const int32_t *)DATA(t))[i];
    double zero, scale;
    int frac_bits;
#if MLI == 11
    int32_t dim = t->el_params.asym.dim;
    uint32_t k = dim < 0 ? 0 : index_along(t, dim, i);
    zero = dim < 0 ? t->el_params.asym.zero_point.i16 : t->el_params.asym.zero_point.pi16[k];
    scale = dim < 0 ? t->el_params.asym.scale.i32 : t->el_params.asym.scale.pi32[k];
    frac_bits = t->el_params.asym.scale_frac_bits;
#else
    int32_t dim = t->el_params.sa.dim;
    uint32_t k = dim < 0 ? 0 : index_along(t, dim, i);
    zero = dim < 0 ? t->el_params.sa.zero_point.mem.i16 : t->el_params.sa.zero_point.mem.pi16[k];
    scale = dim < 0 ? t->el_params.sa.scale.mem.i16 : t->el_params.sa.scale.mem.pi16[k];
    frac_bits = dim < 0 ? t->el_params.sa.scale_frac_bits.mem.i8 : t->el_params.sa.scale_frac_bits.mem.pi8[k];
#endif
    return ldexp((code - zero) * scale, -frac_bits);
}
#endif

static double value_of(const model_mli_tensor *t, uint32_t i)
{
    if (t->el_type == model_el_fx8 || t->el_type == model_el_fx16)
        return value_of_fx(t, i);
#if MLI == 20
    if (t->el_type == model_el_fp32)
        return t->data.mem.pf32[i];
#endif
#if MLI != 10
    return value_of_sa(t, i);
#else
    return 0;
#endif
}

static void print_tensor(const char *name, const model_mli_tensor *t)
{
    uint32_t i, count = 1;
    const unsigned char *p = (const unsigned char *)name;
    for (; *p; p++)
        printf("%02x", *p);
    printf(" %d", (int)STATUS(t));
    for (i = 0; i < t->rank; i++) {
        printf("%c%u", i ? ',' : ' ', (unsigned)t->shape[i]);
        count *= t->shape[i];
    }
    for (i = 0; i < count; i++)
        printf(" %a", value_of(t, i));
    printf("\n");
}

#ifdef IMAGE
static union { unsigned char bytes[1 << 20]; double aligned; } image;

#define PRINT(function, name) \
    {                         \
        model_mli_tensor t = function(image.bytes); \
        print_tensor(name, &t); \
    }

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!f || fread(image.bytes, 1, sizeof image.bytes, f) != model_image_bytes)
        return 1;
    fclose(f);
    model_each(PRINT)
    return 0;
}
#else
int main(void)
{
    size_t i;
    for (i = 0; i < model_count; i++)
        print_tensor(model_tensors[i].name, model_tensors[i].tensor);
    return 0;
}
#endif
