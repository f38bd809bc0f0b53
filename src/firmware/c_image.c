/* firmware/c_image.c - the header of a flat image: offsets, and functions that build structures from the
 * address of the image. */
#include "firmware/c_names.h"
#include "firmware/c_text.h"
#include "tensor/array.h"

#include <stdio.h>

/* "    t.data.mem.pi16 = (int16_t *)model_at(image, 128);" and, in 2.0, the capacity. */
static void put_pointer(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t, tn_c_array array)
{
    static const char *const places[] = { [TN_C_DATA] = "data", [TN_C_ZERO] = "el_params.sa.zero_point",
                                          [TN_C_SCALE] = "el_params.sa.scale",
                                          [TN_C_FRAC] = "el_params.sa.scale_frac_bits" };
    static const char *const old_places[] = { [TN_C_ZERO] = "el_params.asym.zero_point",
                                              [TN_C_SCALE] = "el_params.asym.scale" };
    tn_dtype dtype = tn_c_array_type(t, e->mli, array);
    unsigned long long at = t->at[array], size = tn_c_array_bytes(t, e->mli, array);
    const char *type = tn_c_type_name(dtype);
    char member[8];
    snprintf(member, sizeof member, "p%c%u", dtype == TN_FLOAT32 ? 'f' : 'i', tn_dtype_get(dtype)->bits);
    const char *place = e->mli == TN_FOR_MLI_2_0 ? places[array] : old_places[array];
    if (e->mli == TN_FOR_MLI_2_0)
        tn_buf_printf(b, "    t.%s.capacity = %lluu;\n    t.%s.mem.%s = (%s *)", place, size, place, member,
                      type);
    else if (array == TN_C_DATA)
        tn_buf_printf(b, "    t.capacity = %lluu;\n    t.data = ", size);
    else
        tn_buf_printf(b, "    t.%s.%s = (%s *)", place, member, type);
    tn_c_put(b, e, NULL, "$_at(image, %lluu);\n", at);
}

/* The only scale and zero point of a tensor, in the structure itself. */
static void put_values(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t)
{
    if (e->mli == TN_FOR_MLI_2_0)
        tn_buf_printf(b,
                      "    t.el_params.sa.zero_point.mem.i16 = %d;\n    t.el_params.sa.scale.mem.i16 = %d;\n"
                      "    t.el_params.sa.scale_frac_bits.mem.i8 = %d;\n",
                      t->zero, t->scale, t->frac_bits);
    else
        tn_buf_printf(b, "    t.el_params.asym.zero_point.i16 = %d;\n    t.el_params.asym.scale.i32 = %d;\n",
                      t->zero, t->scale);
}

static void put_parameters(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t)
{
    if (t->type->kind != TN_C_SA) {
        if (t->type->kind == TN_C_FX)
            tn_buf_printf(b, "    t.el_params.fx.frac_bits = %d;\n", t->frac_bits);
        return;
    }
    if (e->mli == TN_FOR_MLI_2_0)
        tn_c_put(b, e, NULL, "    t.el_params.sa.type = $_el_param_type;\n    t.el_params.sa.dim = %d;\n",
                 t->axis);
    else
        tn_buf_printf(b, "    t.el_params.asym.dim = %d;\n    t.el_params.asym.scale_frac_bits = %d;\n",
                      t->axis, t->frac_bits);
    if (t->axis < 0)
        put_values(b, e, t);
    for (tn_c_array a = TN_C_ZERO; a < TN_C_ARRAYS; a++) {
        if (tn_c_array_count(t, e->mli, a))
            put_pointer(b, e, t, a);
    }
}

static void put_function(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t)
{
    tn_c_put(b, e, t, "\nstatic inline $_mli_tensor $_tensor_@(const void *image)\n{\n"
             "    $_mli_tensor t = $_blank();\n");
    put_pointer(b, e, t, TN_C_DATA);
    int64_t stride[TN_MLI_MAX_RANK];
    tn_dense_strides(t->rank, t->shape, stride);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (e->mli != TN_FOR_MLI_1_0)
            tn_buf_printf(b, "    t.mem_stride[%u] = %lld;\n", i, (long long)stride[i]);
        tn_buf_printf(b, "    t.shape[%u] = %lldu;\n", i, (long long)t->shape[i]);
    }
    tn_c_put(b, e, NULL, "    t.rank = %uu;\n    t.el_type = $_el_%s;\n", t->rank, t->type->name);
    put_parameters(b, e, t);
    tn_buf_puts(b, "    return t;\n}\n");
}

static void put_offsets(tn_buf *b, const tn_c_export *e)
{
    tn_buf_puts(b, "\n/* Data: where it begins, and its bytes. */\n");
    for (size_t i = 0; i < e->count; i++) {
        const tn_c_tensor *t = &e->tensors[i];
        unsigned long long at = t->at[TN_C_DATA], bytes = tn_c_array_bytes(t, e->mli, TN_C_DATA);
        tn_c_put(b, e, t, "#define $_offset_@ %lluu\n#define $_bytes_@ %lluu\n", at, bytes);
    }
}

static void put_each(tn_buf *b, const tn_c_export *e)
{
    tn_c_put(b, e, NULL, "\n/* X(function, name) for each tensor. */\n"
             "#define $_count %zu\n#define $_each(X)", e->count);
    for (size_t i = 0; i < e->count; i++) {
        tn_c_put(b, e, &e->tensors[i], " \\\n    X($_tensor_@, ");
        tn_c_put_literal(b, e->tensors[i].source->name, " \\\n      ");
        tn_buf_puts(b, ")");
    }
    tn_buf_puts(b, "\n");
}

void tn_c_put_image(tn_buf *b, const tn_c_export *e)
{
    unsigned long long bytes = e->image_bytes, align = e->align;
    tn_c_put(b, e, NULL,
             "/* $.bin, whose integers are little-endian; it lies at a multiple of its alignment. */\n"
             "#define $_image_bytes %lluu\n"
             "#define $_image_align %lluu\n"
             "#define $_image_crc32c 0x%08xu\n", bytes, align, e->crc);
    put_offsets(b, e);
    tn_c_put(b, e, NULL, "\n/* Structures that point into the image. */\n"
             "static inline void *$_at(const void *image, uint32_t offset)\n{\n"
             "    return (void *)((uintptr_t)image + offset);\n}\n\n"
             "static inline $_mli_tensor $_blank(void)\n{\n"
             "    $_mli_tensor t;\n"
             "    unsigned char *p = (unsigned char *)&t;\n"
             "    unsigned i;\n"
             "    for (i = 0; i < sizeof t; i++)\n"
             "        p[i] = 0;\n"
             "    return t;\n}\n");
    for (size_t i = 0; i < e->count; i++)
        put_function(b, e, &e->tensors[i]);
    put_each(b, e);
}
