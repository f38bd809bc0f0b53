/* firmware/c_text.c - the text of exported source and headers. */
#include "firmware/c_text.h"
#include "firmware/c_names.h"
#include "tensor/array.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tenon/layout.h>

enum { COLUMNS = 100, LONGEST_TEXT = 1024 };

const char *tn_c_array_word(tn_c_array array)
{
    static const char *const words[TN_C_ARRAYS] = { "data", "zero", "scale", "frac" };
    return words[array];
}

void tn_c_put(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t, const char *format, ...)
{
    char text[LONGEST_TEXT];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    b->bad = b->bad || size < 0 || (size_t)size >= sizeof text;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "$@");
        tn_buf_put(b, p, n);
        if (p[n])
            tn_buf_puts(b, p[n] == '$' ? e->name : t->id);
        p += n + (p[n] != '\0');
    }
}

const char *tn_c_type_name(tn_dtype dtype)
{
    switch (dtype) {
    case TN_INT8:  return "int8_t";
    case TN_INT16: return "int16_t";
    case TN_INT32: return "int32_t";
    default:       return "float";
    }
}

/* ---- elements ---- */

static size_t put_digits(char *to, int64_t value)
{
    char digits[24];
    size_t n = 0, size = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[n++] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0)
        to[size++] = '-';
    while (n)
        to[size++] = digits[--n];
    return size;
}

static size_t put_element(char *to, size_t cap, tn_dtype dtype, tn_value value)
{
    if (dtype == TN_FLOAT32) {  /* the shortest decimal that a compiler rounds to this float */
        size_t n = (size_t)tn_value_format(to, cap, dtype, value);
        to[n] = 'f';
        return n + 1;
    }
    /* C has no negative constants, and 2147483648 does not fit 32 bits */
    if (value.i == INT32_MIN && dtype == TN_INT32)
        return (size_t)snprintf(to, cap, "-2147483647 - 1");
    return put_digits(to, value.i);
}

bool tn_c_put_elements(tn_buf *b, tn_dtype dtype, const uint8_t *elements, size_t n, unsigned *column,
                       size_t *bad)
{
    for (size_t i = 0; i < n; i++) {
        char text[64];
        tn_value value = tn_value_get(dtype, elements, i);
        if (dtype == TN_FLOAT32 && !isfinite(value.re)) {
            *bad = i;
            return false;
        }
        size_t size = put_element(text, sizeof text, dtype, value);
        bool first = *column == 0, wrap = *column + size + 2 > COLUMNS;
        if (!first)
            tn_buf_puts(b, wrap ? ",\n" : ", ");
        if (first || wrap)
            tn_buf_puts(b, "    ");
        tn_buf_put(b, text, size);
        *column = (unsigned)(first || wrap ? 4 + size : *column + 2 + size);
    }
    return true;
}

/* ---- descriptions ---- */

/* "fx16 HWCN [3, 3, 8, 16], frac_bits 12" */
static void put_description(tn_buf *b, const tn_c_tensor *t)
{
    const char *layout = t->source->layout;
    tn_buf_printf(b, "%s ", t->type->name);
    /* letters, nothing that could end a comment */
    if (layout && tn_layout_check(layout, t->rank, NULL) == TN_OK)
        tn_buf_printf(b, "%s ", layout);
    for (uint32_t i = 0; i < t->rank; i++)
        tn_buf_printf(b, "%s%lld", i ? ", " : "[", (long long)t->shape[i]);
    tn_buf_puts(b, "]");
    if (t->type->kind == TN_C_FX)
        tn_buf_printf(b, ", frac_bits %d", t->frac_bits);
    else if (t->type->kind == TN_C_SA && t->axis >= 0)
        tn_buf_printf(b, ", scales along dimension %d", t->axis);
    else if (t->type->kind == TN_C_SA)
        tn_buf_printf(b, ", scale %d, scale_frac_bits %d, zero_point %d", t->scale, t->frac_bits, t->zero);
}

static void put_table(tn_buf *b, const tn_c_export *e)
{
    for (size_t i = 0; i < e->count; i++) {
        tn_c_put(b, e, &e->tensors[i], " *   $_tensor_@: ");
        put_description(b, &e->tensors[i]);
        tn_buf_puts(b, ", ");
        tn_c_put_comment(b, e->tensors[i].source->name);
        tn_buf_puts(b, "\n");
    }
}

/* ---- the header ---- */

/* The names of MLI's types, in embARC's headers or in ours. */
static void put_types(tn_buf *b, const tn_c_export *e, bool embarc)
{
    tn_c_put(b, e, NULL, "typedef %s $_mli_tensor;\n", embarc ? "mli_tensor" : tn_c_versions[e->mli].tensor);
    static const tn_dtype dtypes[] = { TN_INT8, TN_INT16, TN_INT32, TN_FLOAT32 };
    for (tn_c_kind kind = TN_C_FX; kind <= TN_C_FP; kind++) {
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            const tn_c_type *type = tn_c_type_find(kind, dtypes[i]);
            if (type && type->ours[e->mli])
                tn_c_put(b, e, NULL, "#define $_el_%s %s\n", type->name,
                         (embarc ? type->embarc : type->ours)[e->mli]);
        }
    }
    if (e->mli == TN_FOR_MLI_2_0)
        tn_c_put(b, e, NULL, "#define $_el_param_type %s\n", embarc ? "MLI_EL_PARAM_SC16_ZP16" : "0");
}

static void put_declarations(tn_buf *b, const tn_c_export *e)
{
    for (size_t i = 0; i < e->count; i++) {
        const tn_c_tensor *t = &e->tensors[i];
        for (tn_c_array a = TN_C_DATA; a < TN_C_ARRAYS; a++) {
            const char *type = tn_c_type_name(tn_c_array_type(t, e->mli, a));
            unsigned long long n = tn_c_array_count(t, e->mli, a);
            if (n)
                tn_c_put(b, e, t, "extern const %s $_%s_@[%llu];\n", type, tn_c_array_word(a), n);
        }
        tn_c_put(b, e, t, "extern const $_mli_tensor $_tensor_@;\n");
    }
    tn_c_put(b, e, NULL, "\n/* All of them, by the names they had. */\n"
             "typedef struct $_entry {\n"
             "    const char *name;\n"
             "    const $_mli_tensor *tensor;\n"
             "} $_entry;\n"
             "#define $_count %zu\n"
             "extern const $_entry $_tensors[$_count];\n", e->count);
}

void tn_c_put_header(tn_buf *b, const tn_c_export *e)
{
    tn_c_put(b, e, NULL, "/* $.h - %zu tensor%s for MLI %s, made by \"tenon export-c\"; "
             "not to be edited.\n *\n", e->count, e->count == 1 ? "" : "s", tn_c_versions[e->mli].name);
    put_table(b, e);
    tn_c_put(b, e, NULL, " *\n"
             " * Structures are those of <tenon/mli.h> or, if TENON_USE_EMBARC is defined, of embARC's "
             "\"mli_types.h\". */\n"
             "#ifndef TENON_EXPORT_$_H\n"
             "#define TENON_EXPORT_$_H\n\n"
             "#ifdef TENON_USE_EMBARC\n"
             "#include \"mli_types.h\"\n");
    put_types(b, e, true);
    tn_buf_puts(b, "#else\n#include <tenon/mli.h>\n");
    put_types(b, e, false);
    tn_buf_puts(b, "#endif\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    if (e->binary) {
        tn_c_put_image(b, e);
    } else {
        put_declarations(b, e);
        tn_c_put(b, e, NULL, "\n#define $_crc32c 0x%08xu /* of the source that belongs to this header */\n",
                 e->crc);
    }
    tn_buf_puts(b, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- the source ---- */

void tn_c_put_source_begin(tn_buf *b, const tn_c_export *e)
{
    unsigned long long align = e->align;
    tn_c_put(b, e, NULL, "/* $.c - what $.h declares, made by \"tenon export-c\"; not to be edited. */\n"
             "#include \"$.h\"\n\n"
             "/* Where data is put; define these to have it elsewhere. */\n"
             "#ifndef $_ALIGN\n"
             "#if defined(__GNUC__)\n#define $_ALIGN __attribute__((aligned(%llu)))\n"
             "#elif defined(__cplusplus)\n#define $_ALIGN alignas(%llu)\n"
             "#else\n#define $_ALIGN _Alignas(%llu)\n#endif\n"
             "#endif\n"
             "#ifndef $_SECTION\n"
             "#define $_SECTION", align, align, align);
    if (e->section) {           /* may contain $ */
        tn_buf_puts(b, " __attribute__((section(\"");
        tn_buf_puts(b, e->section);
        tn_buf_puts(b, "\")))");
    }
    tn_buf_puts(b, "\n#endif\n\n"
                   "/* MLI's structures point to data that could be changed; this cannot. */\n"
                   "#if defined(__GNUC__)\n"
                   "#pragma GCC diagnostic ignored \"-Wcast-qual\"\n"
                   "#endif\n\n"
                   "/* C99 and C++20 name the members they initialise; "
                   "compilers for older C++ know that too. */\n"
                   "#if defined(__cplusplus) && defined(__GNUC__)\n"
                   "#pragma GCC diagnostic ignored \"-Wpragmas\"\n"
                   "#pragma GCC diagnostic ignored \"-Wpedantic\"\n"
                   "#pragma GCC diagnostic ignored \"-Wc++20-extensions\"\n"
                   "#endif\n");
}

void tn_c_put_array_begin(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t, tn_c_array array)
{
    tn_buf_puts(b, "\n");
    if (array == TN_C_DATA) {
        tn_buf_puts(b, "/* ");
        tn_c_put_comment(b, t->source->name);
        tn_c_put(b, e, NULL, " */\n$_ALIGN $_SECTION ");
    }
    const char *type = tn_c_type_name(tn_c_array_type(t, e->mli, array));
    unsigned long long count = tn_c_array_count(t, e->mli, array);
    tn_c_put(b, e, t, "const %s $_%s_@[%llu] = {\n", type, tn_c_array_word(array), count);
}

void tn_c_put_array_end(tn_buf *b)
{
    tn_buf_puts(b, "\n};\n");
}

static void put_integers(tn_buf *b, const char *member, const int64_t *values)
{
    tn_buf_printf(b, "    .%s = { ", member);
    for (int i = 0; i < TN_MLI_MAX_RANK; i++)
        tn_buf_printf(b, "%s%lld", i ? ", " : "", (long long)values[i]);
    tn_buf_puts(b, " },\n");
}

static void put_strides(tn_buf *b, const tn_c_tensor *t)
{
    int64_t stride[TN_MLI_MAX_RANK] = { 0 };
    tn_dense_strides(t->rank, t->shape, stride);
    put_integers(b, "mem_stride", stride);
}

/* A pointer to an array, or the only value: "{ .pi16 = (int16_t *)model_zero_x }", "{ .i16 = -3 }"; in 2.0
 * with its capacity. */
static void put_container(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t, tn_c_array array,
                          int32_t value)
{
    static const char *const words[] = { [TN_C_DATA] = "data", [TN_C_ZERO] = "zero_point",
                                         [TN_C_SCALE] = "scale",
                                         [TN_C_FRAC] = "scale_frac_bits" };
    tn_dtype dtype = tn_c_array_type(t, e->mli, array);
    const char *word = tn_c_array_word(array), *kind = dtype == TN_FLOAT32 ? "f" : "i";
    unsigned bits = tn_dtype_get(dtype)->bits;
    bool points = tn_c_array_count(t, e->mli, array) > 0, bounded = e->mli == TN_FOR_MLI_2_0;
    tn_buf_printf(b, ".%s = { ", words[array]);
    if (bounded && points)
        tn_c_put(b, e, t, ".capacity = sizeof $_%s_@, .mem = { ", word);
    else if (bounded)
        tn_buf_puts(b, ".capacity = 0, .mem = { ");
    if (points)
        tn_c_put(b, e, t, ".p%s%u = (%s *)$_%s_@", kind, bits, tn_c_type_name(dtype), word);
    else
        tn_buf_printf(b, ".%s%u = %d", kind, bits, value);
    tn_buf_puts(b, bounded ? " } }" : " }");
}

static void put_parameters(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t)
{
    if (t->type->kind != TN_C_SA) {
        tn_buf_printf(b, "    .el_params = { .fx = { .frac_bits = %d } }\n", t->frac_bits);
        return;
    }
    tn_buf_printf(b, "    .el_params = { .%s = {\n", e->mli == TN_FOR_MLI_2_0 ? "sa" : "asym");
    if (e->mli == TN_FOR_MLI_2_0)
        tn_c_put(b, e, NULL, "        .type = $_el_param_type,\n");
    tn_buf_puts(b, "        ");
    put_container(b, e, t, TN_C_ZERO, t->zero);
    tn_buf_puts(b, ",\n        ");
    put_container(b, e, t, TN_C_SCALE, t->scale);
    tn_buf_printf(b, ",\n        .dim = %d,\n        ", t->axis);
    if (e->mli == TN_FOR_MLI_2_0)
        put_container(b, e, t, TN_C_FRAC, t->frac_bits);
    else
        tn_buf_printf(b, ".scale_frac_bits = %d", t->frac_bits);
    tn_buf_puts(b, "\n    } }\n");
}

void tn_c_put_structure(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t)
{
    tn_c_put(b, e, t, "\nconst $_mli_tensor $_tensor_@ = {\n    ");
    if (e->mli == TN_FOR_MLI_2_0)
        put_container(b, e, t, TN_C_DATA, 0);
    else
        tn_c_put(b, e, t, ".data = (void *)$_data_@,\n    .capacity = sizeof $_data_@");
    tn_buf_puts(b, ",\n");
    if (e->mli != TN_FOR_MLI_1_0)
        put_strides(b, t);
    put_integers(b, "shape", t->shape);
    tn_c_put(b, e, NULL, "    .rank = %u,\n    .el_type = $_el_%s,\n", t->rank, t->type->name);
    put_parameters(b, e, t);
    tn_buf_puts(b, "};\n");
}

void tn_c_put_source_list(tn_buf *b, const tn_c_export *e)
{
    tn_c_put(b, e, NULL, "\nconst $_entry $_tensors[$_count] = {\n");
    for (size_t i = 0; i < e->count; i++) {
        tn_buf_puts(b, "    { ");
        tn_c_put_literal(b, e->tensors[i].source->name, "\n      ");
        tn_c_put(b, e, &e->tensors[i], ", &$_tensor_@ }%s\n", i + 1 < e->count ? "," : "");
    }
    tn_buf_puts(b, "};\n");
}

void tn_c_put_source_end(tn_buf *b, const tn_c_export *e)
{
    tn_c_put(b, e, NULL, "\n#if $_crc32c != 0x%08xu\n"
             "#error \"$.h belongs to another $.c: export both again\"\n#endif\n", e->crc);
}
