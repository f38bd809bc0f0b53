/* formats/pytorch/calls.c - the globals that a pickle names, and what calling them gives.
 *
 * The table below is all that is known.  Its functions make values of values; nothing is imported, and no
 * global is looked up anywhere else. */
#include "formats/pytorch/machine.h"

#include "base/vector.h"
#include "tensor/array.h"

#include <stdlib.h>

typedef struct arguments {
    const tn_pt_value *at;
    size_t             count;
} arguments;

typedef tn_status (*call_fn)(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                             tn_error *err);

struct tn_pt_known {
    const char *module, *name;
    call_fn     call;           /* NULL: it is a word, not called */
    tn_pt_type  type;           /* of storage classes and dtypes; name NULL: of other rows */
};

/* --- types --- */

#define TYPE(torch, dtype, width) { torch, dtype, width }
#define STORAGE(class, torch, dtype, width) { "torch", class "Storage", NULL, TYPE(torch, dtype, width) }

static const tn_pt_known storages[] = {
    STORAGE("Double", "float64", TN_FLOAT64, 8),        STORAGE("Float", "float32", TN_FLOAT32, 4),
    STORAGE("Half", "float16", TN_FLOAT16, 2),          STORAGE("BFloat16", "bfloat16", TN_BFLOAT16, 2),
    STORAGE("Long", "int64", TN_INT64, 8),              STORAGE("Int", "int32", TN_INT32, 4),
    STORAGE("Short", "int16", TN_INT16, 2),             STORAGE("Char", "int8", TN_INT8, 1),
    STORAGE("Byte", "uint8", TN_UINT8, 1),              STORAGE("Bool", "bool", TN_BOOL, 1),
    STORAGE("ComplexFloat", "complex64", TN_COMPLEX64, 8),
    STORAGE("ComplexDouble", "complex128", TN_COMPLEX128, 16),
    STORAGE("QInt8", "qint8", TN_INT8, 1),              STORAGE("QUInt8", "quint8", TN_UINT8, 1),
    STORAGE("QInt32", "qint32", TN_INT32, 4),
    STORAGE("QUInt4x2", "quint4x2", TN_UNKNOWN, 1),     STORAGE("QUInt2x4", "quint2x4", TN_UNKNOWN, 1),
    { "torch.storage", "UntypedStorage", NULL, { NULL, TN_UNKNOWN, 1 } },
};

#define DTYPE(torch, dtype, width) { "torch", torch, NULL, TYPE(torch, dtype, width) }

static const tn_pt_known dtypes[] = {
    DTYPE("float64", TN_FLOAT64, 8),                    DTYPE("float32", TN_FLOAT32, 4),
    DTYPE("float16", TN_FLOAT16, 2),                    DTYPE("bfloat16", TN_BFLOAT16, 2),
    DTYPE("int64", TN_INT64, 8),                        DTYPE("int32", TN_INT32, 4),
    DTYPE("int16", TN_INT16, 2),                        DTYPE("int8", TN_INT8, 1),
    DTYPE("uint8", TN_UINT8, 1),                        DTYPE("bool", TN_BOOL, 1),
    DTYPE("complex64", TN_COMPLEX64, 8),                DTYPE("complex128", TN_COMPLEX128, 16),
    DTYPE("float8_e4m3fn", TN_FLOAT8_E4M3FN, 1),        DTYPE("float8_e5m2", TN_FLOAT8_E5M2, 1),
    DTYPE("float8_e4m3fnuz", TN_FLOAT8_E4M3FNUZ, 1),    DTYPE("float8_e5m2fnuz", TN_FLOAT8_E5M2FNUZ, 1),
    DTYPE("float8_e8m0fnu", TN_FLOAT8_E8M0, 1),         DTYPE("float4_e2m1fn_x2", TN_FLOAT4_E2M1, 1),
    DTYPE("uint16", TN_UINT16, 2),                      DTYPE("uint32", TN_UINT32, 4),
    DTYPE("uint64", TN_UINT64, 8),                      DTYPE("complex32", TN_UNKNOWN, 4),
    DTYPE("bcomplex32", TN_UNKNOWN, 4),                 DTYPE("bits8", TN_UNKNOWN, 1),
    DTYPE("bits16", TN_UNKNOWN, 2),                     DTYPE("bits1x8", TN_UNKNOWN, 1),
    DTYPE("bits2x4", TN_UNKNOWN, 1),                    DTYPE("bits4x2", TN_UNKNOWN, 1),
    DTYPE("qint8", TN_INT8, 1),                         DTYPE("quint8", TN_UINT8, 1),
    DTYPE("qint32", TN_INT32, 4),                       DTYPE("quint4x2", TN_UNKNOWN, 1),
    DTYPE("quint2x4", TN_UNKNOWN, 1),
};

#define COUNT(array) (sizeof (array) / sizeof *(array))

static const tn_pt_known *find_row(const tn_pt_known *rows, size_t n, tn_text module, tn_text name)
{
    for (size_t i = 0; i < n; i++)
        if (tn_text_is(name, rows[i].name) && tn_text_is(module, rows[i].module))
            return &rows[i];
    return NULL;
}

static bool is_in(const tn_pt_known *row, const tn_pt_known *rows, size_t n)
{
    return row >= rows && row < rows + n;
}

static bool is_storage_class(const tn_pt_known *row) { return is_in(row, storages, COUNT(storages)); }

bool tn_pt_is_dtype(const tn_pt_global *global)
{
    return global->known && is_in(global->known, dtypes, COUNT(dtypes));
}

static const tn_pt_type uint8_type = TYPE("uint8", TN_UINT8, 1);

/* --- arguments --- */

static tn_status misfit(tn_pt_machine *m, const tn_pt_known *known, tn_error *err)
{
    return tn_pt_fail(m, err, TN_ERR_CORRUPT, "the arguments of %s.%s are not those that it takes",
                      known->module, known->name);
}

static const tn_pt_value none_value = { .kind = TN_PT_NONE };

/* Argument i, or None. */
static const tn_pt_value *arg(arguments args, size_t i)
{
    return i < args.count ? &args.at[i] : &none_value;
}

static bool is_true(const tn_pt_value *v)
{
    return (v->kind == TN_PT_BOOL || v->kind == TN_PT_INT) && v->i;
}

static tn_pt_tensor *new_tensor(tn_pt_machine *m, tn_pt_value *out)
{
    tn_pt_tensor *t = tn_arena_zalloc(m->arena, 1, sizeof *t);
    if (t) {
        t->at = m->op;
        *out = (tn_pt_value){ .kind = TN_PT_TENSOR, .tensor = t };
    }
    return t;
}

/* --- tensors --- */

/* Bits of a view that has values other than those stored. */
static tn_status take_lazy_bits(tn_pt_machine *m, const tn_pt_value *metadata, tn_pt_tensor *t, tn_error *err)
{
    if (metadata->kind != TN_PT_DICT)
        return TN_OK;
    TN_TRY(tn_pt_count_copied(m, metadata->items->count, err));
    const tn_pt_value *conj = tn_pt_find(metadata, "conj"), *neg = tn_pt_find(metadata, "neg");
    if (conj && is_true(conj))
        t->never = "its values are the conjugates of those stored (torch's conj bit)";
    else if (neg && is_true(neg))
        t->never = "its values are the negatives of those stored (torch's neg bit)";
    return TN_OK;
}

/* (storage, offset, size, stride, ...) */
static tn_status fill_view(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_tensor *t,
                           tn_error *err)
{
    const tn_pt_value *a = args.at;
    if (args.count < 4 || a[0].kind != TN_PT_STORAGE || a[1].kind != TN_PT_INT || !tn_pt_is_list(&a[2]) ||
        !tn_pt_is_list(&a[3]))
        return misfit(m, known, err);
    TN_TRY(tn_pt_count_copied(m, a[0].storage->key.len, err));
    t->storage = a[0].storage;
    t->type = t->storage->type ? t->storage->type : &uint8_type;
    t->offset = a[1].i;
    t->size = a[2];
    t->stride = a[3];
    return TN_OK;
}

static tn_status make_view(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                           tn_error *err)
{
    tn_pt_tensor *t = new_tensor(m, out);
    TN_NEED(t, err);
    TN_TRY(take_lazy_bits(m, arg(args, 6), t, err));
    return fill_view(m, known, args, t, err);
}

/* (storage, offset, size, stride, requires_grad, hooks, dtype[, metadata]) */
static tn_status make_typed_view(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                                 tn_error *err)
{
    const tn_pt_value *type = arg(args, 6);
    tn_pt_tensor *t = new_tensor(m, out);
    TN_NEED(t, err);
    TN_TRY(fill_view(m, known, args, t, err));
    if (type->kind != TN_PT_GLOBAL || !type->global->known || !type->global->known->type.name)
        return misfit(m, known, err);
    t->type = &type->global->known->type;
    return take_lazy_bits(m, arg(args, 7), t, err);
}

/* (tensor, ...) */
static tn_status take_first(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                            tn_error *err)
{
    if (!args.count)
        return misfit(m, known, err);
    *out = args.at[0];
    return TN_OK;
}

/* torch.FloatTensor() and its kin: BUILD follows. */
static tn_status make_empty(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                            tn_error *err)
{
    (void)known;
    (void)args;
    tn_pt_tensor *t = new_tensor(m, out);
    TN_NEED(t, err);
    t->is_empty_object = true;
    return TN_OK;
}

static tn_status make_meta(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                           tn_error *err)
{
    (void)known;
    (void)args;
    tn_pt_tensor *t = new_tensor(m, out);
    TN_NEED(t, err);
    t->is_meta = true;
    return TN_OK;
}

static bool is_word(const tn_pt_value *v, const char *name)
{
    return v->kind == TN_PT_GLOBAL && v->global->known && tn_text_is(v->global->name, name);
}

/* (storage, offset, size, stride, (scheme, scale, zero[, axis]), ...) */
static tn_status make_quantized(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                                tn_error *err)
{
    const tn_pt_value *params = arg(args, 4);
    tn_pt_tensor *t = new_tensor(m, out);
    tn_pt_scaling *s = tn_arena_zalloc(m->arena, 1, sizeof *s);
    TN_NEED(t && s, err);
    TN_TRY(fill_view(m, known, args, t, err));
    if (!tn_pt_is_list(params) || params->items->count < 3)
        return misfit(m, known, err);
    const tn_pt_value *p = params->items->at;
    bool each = params->items->count > 3;
    bool fits = is_word(&p[0], each ? "per_channel_affine" : "per_tensor_affine") ||
                (each && is_word(&p[0], "per_channel_affine_float_qparams"));
    if (!fits || (each && p[3].kind != TN_PT_INT))
        return misfit(m, known, err);
    *s = (tn_pt_scaling){ p[1], p[2], each ? p[3].i : -1 };
    t->scaling = s;
    return TN_OK;
}

/* --- sparse tensors --- */

static tn_pt_layout layout_of(const tn_pt_value *v)
{
    static const char *const names[] = { "torch.strided", "torch.sparse_coo", "torch.sparse_csr",
                                         "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc" };
    tn_text name = { 0 };
    if (v->kind == TN_PT_TEXT)
        name = tn_pt_text(v);
    for (unsigned i = 0; i < COUNT(names); i++)
        if (tn_text_is(name, names[i]) || is_word(v, names[i] + strlen("torch.")))
            return (tn_pt_layout)i;
    return TN_PT_STRIDED;
}

/* (layout, (indices, values, size[, coalesced]) or (compressed, plain, values, size)) */
static tn_status make_sparse(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                             tn_error *err)
{
    tn_pt_layout layout = layout_of(arg(args, 0));
    const tn_pt_value *data = arg(args, 1);
    uint32_t n = layout == TN_PT_COO ? 2 : 3;
    tn_pt_tensor *t = new_tensor(m, out);
    TN_NEED(t, err);
    if (layout == TN_PT_STRIDED || !tn_pt_is_list(data) || data->items->count < n + 1 ||
        !tn_pt_is_list(&data->items->at[n]))
        return misfit(m, known, err);
    for (uint32_t i = 0; i < n; i++) {
        const tn_pt_value *part = &data->items->at[i];
        if (part->kind != TN_PT_TENSOR || part->tensor->layout || part->tensor->scaling ||
            part->tensor->is_meta || !part->tensor->type)
            return misfit(m, known, err);
        t->parts[i] = part->tensor;
    }
    t->layout = layout;
    t->type = t->parts[n - 1]->type;
    t->size = data->items->at[n];
    return TN_OK;
}

/* --- containers and words --- */

/* (), (dict) or (list of pairs) */
static tn_status make_dict(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                           tn_error *err)
{
    const tn_pt_value *from = NULL;
    for (size_t i = 0; i < args.count; i++)     /* the first argument of defaultdict is a function */
        if (args.at[i].kind == TN_PT_DICT || tn_pt_is_list(&args.at[i]))
            from = &args.at[i];
    TN_TRY(tn_pt_new_items(m, TN_PT_DICT, NULL, 0, out, err));
    if (!tn_text_is((tn_text){ known->name, strlen(known->name) }, "OrderedDict"))
        out->items->of = known->name;
    if (!from)
        return TN_OK;
    TN_TRY(tn_pt_count_copied(m, (uint64_t)from->items->count * sizeof *from, err));
    if (from->kind == TN_PT_DICT)
        return tn_pt_append(m, out->items, from->items->at, from->items->count, err);
    for (uint32_t i = 0; i < from->items->count; i++) {
        const tn_pt_value *pair = &from->items->at[i];
        if (!tn_pt_is_list(pair) || pair->items->count != 2)
            return misfit(m, known, err);
        TN_TRY(tn_pt_append(m, out->items, pair->items->at, 2, err));
    }
    return TN_OK;
}

/* torch.Size((2, 3)) */
static tn_status make_size(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                           tn_error *err)
{
    if (args.count && !tn_pt_is_list(&args.at[0]))
        return misfit(m, known, err);
    if (!args.count)
        return tn_pt_new_items(m, TN_PT_TUPLE, NULL, 0, out, err);
    *out = args.at[0];
    out->kind = TN_PT_TUPLE;
    return TN_OK;
}

static tn_status make_word(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                           tn_error *err)
{
    (void)m;
    (void)args;
    (void)err;
    *out = (tn_pt_value){ .kind = TN_PT_WORD, .text = known->name, .size = (uint32_t)strlen(known->name) };
    return TN_OK;
}

/* torch.serialization._get_layout("torch.sparse_coo") is that text. */
static tn_status make_layout(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                             tn_error *err)
{
    return take_first(m, known, args, out, err);
}

/* --- bytes --- */

/* Texts whose code points are the bytes. */
static tn_status make_encoded(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                              tn_error *err)
{
    const tn_pt_value *text = arg(args, 0), *codec = arg(args, 1);
    bool latin = args.count == 1 || tn_pt_text_is(codec, "latin1") || tn_pt_text_is(codec, "latin-1");
    if (text->kind != TN_PT_TEXT || !latin)
        return misfit(m, known, err);
    TN_TRY(tn_pt_count_copied(m, text->size, err));
    uint8_t *bytes = tn_arena_alloc(m->arena, text->size);
    uint32_t n = 0;
    TN_NEED(bytes, err);
    for (uint32_t i = 0; i < text->size; n++) {
        uint8_t first = (uint8_t)text->text[i++];
        bytes[n] = first;
        if (first < 0x80)
            continue;
        if (first > 0xc3)       /* well-formed UTF-8: beyond U+00FF */
            return misfit(m, known, err);
        bytes[n] = (uint8_t)(first << 6 | ((uint8_t)text->text[i++] & 0x3f));
    }
    *out = (tn_pt_value){ .kind = TN_PT_BYTES, .size = n, .text = (const char *)bytes };
    return TN_OK;
}

/* bytes(), bytearray(bytes) or bytearray(text, "latin-1") */
static tn_status make_bytes(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                            tn_error *err)
{
    *out = (tn_pt_value){ .kind = TN_PT_BYTES, .text = "" };
    if (!args.count)
        return TN_OK;
    if (args.at[0].kind == TN_PT_TEXT && args.count > 1)
        return make_encoded(m, known, args, out, err);
    if (args.at[0].kind != TN_PT_BYTES)
        return misfit(m, known, err);
    *out = args.at[0];
    return TN_OK;
}

/* --- NumPy --- */

static const tn_pt_type numpy_types[] = {
    TYPE("f8", TN_FLOAT64, 8),  TYPE("f4", TN_FLOAT32, 4),  TYPE("f2", TN_FLOAT16, 2),
    TYPE("i8", TN_INT64, 8),    TYPE("i4", TN_INT32, 4),    TYPE("i2", TN_INT16, 2),
    TYPE("i1", TN_INT8, 1),     TYPE("u8", TN_UINT64, 8),   TYPE("u4", TN_UINT32, 4),
    TYPE("u2", TN_UINT16, 2),   TYPE("u1", TN_UINT8, 1),    TYPE("b1", TN_BOOL, 1),
    TYPE("c8", TN_COMPLEX64, 8), TYPE("c16", TN_COMPLEX128, 16),
};

/* numpy.dtype("f4", align, copy); the byte order comes with BUILD. */
static tn_status make_numpy_type(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                                 tn_error *err)
{
    if (arg(args, 0)->kind != TN_PT_TEXT)
        return misfit(m, known, err);
    tn_pt_numpy *type = tn_arena_zalloc(m->arena, 1, sizeof *type);
    TN_NEED(type, err);
    type->name = tn_pt_text(&args.at[0]);
    tn_text code = type->name;
    if (code.len && strchr("<>|=", code.ptr[0])) {
        type->is_big_endian = code.ptr[0] == '>';
        code = (tn_text){ code.ptr + 1, code.len - 1 };
    }
    for (size_t i = 0; i < COUNT(numpy_types); i++)
        if (tn_text_is(code, numpy_types[i].name))
            type->type = &numpy_types[i];
    *out = (tn_pt_value){ .kind = TN_PT_NUMPY_TYPE, .numpy = type };
    return TN_OK;
}

static tn_status make_numpy_array(tn_pt_machine *m, const tn_pt_known *known, arguments args,
                                  tn_pt_value *out, tn_error *err)
{
    TN_TRY(make_empty(m, known, args, out, err));
    out->tensor->is_numpy = true;
    return TN_OK;
}

/* Bytes, or a text of Python 2. */
static bool has_bytes(const tn_pt_value *v)
{
    return v->kind == TN_PT_BYTES || (v->kind == TN_PT_TEXT && v->is_raw);
}

/* Fills an array; if its elements are no plain numbers it stays empty. */
static void fill_numpy(tn_pt_tensor *t, const tn_pt_value *shape, const tn_pt_value *type,
                       const tn_pt_value *bytes)
{
    bool fits = tn_pt_is_list(shape) && type->kind == TN_PT_NUMPY_TYPE && type->numpy->type &&
                has_bytes(bytes);
    if (!fits)
        return;
    t->is_empty_object = false;
    t->type = type->numpy->type;
    t->is_big_endian = type->numpy->is_big_endian;
    t->size = *shape;
    t->bytes = tn_pt_text(bytes);
}

/* (bytes, dtype, shape, order) */
static tn_status make_numpy_buffer(tn_pt_machine *m, const tn_pt_known *known, arguments args,
                                   tn_pt_value *out, tn_error *err)
{
    TN_TRY(make_numpy_array(m, known, args, out, err));
    fill_numpy(out->tensor, arg(args, 2), arg(args, 1), arg(args, 0));
    out->tensor->is_fortran = tn_pt_text_is(arg(args, 3), "F");
    return TN_OK;
}

static tn_pt_value number_of(tn_dtype dtype, const void *bytes)
{
    tn_value v = tn_value_get(dtype, bytes, 0);
    tn_pt_value number = { .kind = TN_PT_INT, .i = v.i };
    if (v.kind == TN_KIND_FLOAT)
        return (tn_pt_value){ .kind = TN_PT_FLOAT, .f = v.re };
    if (v.kind == TN_KIND_BOOL)
        return (tn_pt_value){ .kind = TN_PT_BOOL, .i = v.u != 0 };
    if (v.kind == TN_KIND_UINT && v.u > INT64_MAX)
        return (tn_pt_value){ .kind = TN_PT_UINT, .u = v.u };
    if (v.kind == TN_KIND_UINT)
        number.i = (int64_t)v.u;
    return number;
}

/* numpy.core.multiarray.scalar(dtype, bytes): complex numbers and texts are no numbers here. */
static tn_status make_numpy_scalar(tn_pt_machine *m, const tn_pt_known *known, arguments args,
                                   tn_pt_value *out, tn_error *err)
{
    const tn_pt_value *type = arg(args, 0), *bytes = arg(args, 1);
    if (type->kind != TN_PT_NUMPY_TYPE)
        return misfit(m, known, err);
    const tn_pt_type *t = type->numpy->type;
    const tn_dtype_info *info = t ? tn_dtype_get(t->dtype) : NULL;
    if (!info || info->kind == TN_KIND_COMPLEX || !has_bytes(bytes) || bytes->size != t->width)
        return make_word(m, known, args, out, err);
    uint8_t element[16];
    memcpy(element, bytes->text, t->width);
    tn_byte_order order = type->numpy->is_big_endian ? TN_BIG_ENDIAN : TN_LITTLE_ENDIAN;
    if (order != TN_HOST_ORDER)
        tn_swap_bytes(element, element, t->width, info->swap_bytes);
    *out = number_of(t->dtype, element);
    return TN_OK;
}

/* --- calls that are not made --- */

static tn_status make_object(tn_pt_machine *m, const tn_pt_global *class, tn_pt_value *out, tn_error *err)
{
    tn_pt_object *object = tn_arena_zalloc(m->arena, 1, sizeof *object);
    TN_NEED(object, err);
    object->class = class;
    *out = (tn_pt_value){ .kind = TN_PT_OBJECT, .object = object };
    return TN_OK;
}

static bool is_named(const tn_pt_machine *m, const tn_pt_global *g)
{
    for (size_t i = 0; i < m->ncalls; i++)
        if (tn_text_equal(m->calls[i].global->name, g->name) &&
            tn_text_equal(m->calls[i].global->module, g->module))
            return true;
    return false;
}

/* Python would run this global. */
static void note_call(tn_pt_machine *m, tn_pt_global *g)
{
    static const char own[] = "__torch__";
    bool script = m->is_script && g->module.len >= strlen(own) &&
                  memcmp(g->module.ptr, own, strlen(own)) == 0;
    if (g->named || script)
        return;
    g->named = true;
    if (is_named(m, g))
        return;
    if (m->ncalls < TN_PT_MAX_CALLS)
        m->calls[m->ncalls++] = (tn_pt_call){ g, m->op };
    else
        m->dropped_calls++;
}

/* --- the table --- */

static tn_status make_from_type(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                                tn_error *err);

#define UTILS(name, call) { "torch._utils", name, call, { 0 } }
#define ROW(module, name, call) { module, name, call, { 0 } }
#define WORD(name) { "torch", name, NULL, { 0 } }

static const tn_pt_known functions[] = {
    UTILS("_rebuild_tensor", make_view),
    UTILS("_rebuild_tensor_v2", make_view),
    UTILS("_rebuild_tensor_v3", make_typed_view),
    UTILS("_rebuild_parameter", take_first),
    UTILS("_rebuild_parameter_with_state", take_first),
    UTILS("_rebuild_qtensor", make_quantized),
    UTILS("_rebuild_sparse_tensor", make_sparse),
    UTILS("_rebuild_device_tensor_from_cpu_tensor", take_first),
    UTILS("_rebuild_meta_tensor_no_storage", make_meta),
    ROW("torch.nn.parameter", "Parameter", take_first),
    ROW("torch._tensor", "_rebuild_from_type_v2", make_from_type),
    ROW("torch.jit._pickle", "restore_type_tag", take_first),
    ROW("torch.serialization", "_get_layout", make_layout),
    ROW("collections", "OrderedDict", make_dict),
    ROW("collections", "Counter", make_dict),
    ROW("collections", "defaultdict", make_dict),
    ROW("torch", "Size", make_size),
    ROW("torch", "device", make_word),
    ROW("_codecs", "encode", make_encoded),
    ROW("builtins", "bytes", make_bytes),
    ROW("builtins", "bytearray", make_bytes),
    ROW("numpy", "dtype", make_numpy_type),
    ROW("numpy.core.multiarray", "_reconstruct", make_numpy_array),
    ROW("numpy.core.multiarray", "scalar", make_numpy_scalar),
    ROW("numpy.core.numeric", "_frombuffer", make_numpy_buffer),
    ROW("torch", "DoubleTensor", make_empty),       ROW("torch", "FloatTensor", make_empty),
    ROW("torch", "HalfTensor", make_empty),         ROW("torch", "LongTensor", make_empty),
    ROW("torch", "IntTensor", make_empty),          ROW("torch", "ShortTensor", make_empty),
    ROW("torch", "CharTensor", make_empty),         ROW("torch", "ByteTensor", make_empty),
    WORD("per_tensor_affine"),                      WORD("per_channel_affine"),
    WORD("per_channel_affine_float_qparams"),       WORD("per_tensor_symmetric"),
    WORD("per_channel_symmetric"),                  WORD("strided"),
    WORD("sparse_coo"),                             WORD("sparse_csr"),
    WORD("sparse_csc"),                             WORD("sparse_bsr"),
    WORD("sparse_bsc"),
};

static const tn_pt_known *find_known(tn_text module, tn_text name)
{
    const tn_pt_known *row = find_row(functions, COUNT(functions), module, name);
    row = row ? row : find_row(storages, COUNT(storages), module, name);
    return row ? row : find_row(dtypes, COUNT(dtypes), module, name);
}

/* The modules of Python 2 and of NumPy 2 are other words for the same. */
static tn_status usual_module(tn_pt_machine *m, tn_text *module, tn_error *err)
{
    static const char *const words[][2] = { { "__builtin__", "builtins" }, { "copy_reg", "copyreg" },
                                            { "torch.tensor", "torch._tensor" } };
    static const char core[] = "numpy._core.";
    for (size_t i = 0; i < COUNT(words); i++)
        if (tn_text_is(*module, words[i][0]))
            *module = (tn_text){ words[i][1], strlen(words[i][1]) };
    size_t n = strlen(core);
    if (module->len <= n || memcmp(module->ptr, core, n) != 0)
        return TN_OK;
    const char *usual = tn_arena_printf(m->arena, "numpy.core.%.*s", (int)(module->len - n), module->ptr + n);
    TN_NEED(usual, err);
    *module = (tn_text){ usual, strlen(usual) };
    return TN_OK;
}

tn_status tn_pt_new_global(tn_pt_machine *m, tn_text module, tn_text name, tn_pt_value *out, tn_error *err)
{
    tn_pt_global *g = tn_arena_zalloc(m->arena, 1, sizeof *g);
    TN_NEED(g, err);
    TN_TRY(usual_module(m, &module, err));
    *g = (tn_pt_global){ .module = module, .name = name, .known = find_known(module, name) };
    *out = (tn_pt_value){ .kind = TN_PT_GLOBAL, .global = g };
    return TN_OK;
}

/* builtins.set(list) is not known, but a module's set of buffer names is one. */
static bool is_set(const tn_pt_global *g, const tn_pt_value *args, size_t n)
{
    return n == 1 && tn_pt_is_list(&args[0]) && tn_text_is(g->module, "builtins") &&
           tn_text_is(g->name, "set");
}

tn_status tn_pt_call_value(tn_pt_machine *m, const tn_pt_value *function, const tn_pt_value *args, size_t n,
                           tn_pt_value *out, tn_error *err)
{
    if (function->kind != TN_PT_GLOBAL && function->kind != TN_PT_OBJECT)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "the pickle calls a value that is no function");
    if (function->kind == TN_PT_OBJECT)         /* what that would be is not known */
        return make_object(m, function->object->class, out, err);
    tn_pt_global *g = function->global;
    if (g->known && g->known->call)
        return g->known->call(m, g->known, (arguments){ args, n }, out, err);
    note_call(m, g);
    if (!is_set(g, args, n))
        return make_object(m, g, out, err);
    TN_TRY(tn_pt_count_copied(m, (uint64_t)args[0].items->count * sizeof *args, err));
    return tn_pt_new_items(m, TN_PT_SET, args[0].items->at, args[0].items->count, out, err);
}

/* (function, type, args, state) */
static tn_status make_from_type(tn_pt_machine *m, const tn_pt_known *known, arguments args, tn_pt_value *out,
                                tn_error *err)
{
    const tn_pt_value *function = arg(args, 0), *inner = arg(args, 2);
    /* a call of itself would be a recursion without end */
    if (function->kind != TN_PT_GLOBAL || function->global->known == known || !tn_pt_is_list(inner))
        return misfit(m, known, err);
    return tn_pt_call_value(m, function, inner->items->at, inner->items->count, out, err);
}

/* --- BUILD --- */

/* A tensor of torch 0.1: (storage, offset, size, stride); an array: (1, shape, dtype, fortran, bytes). */
static tn_status build_tensor(tn_pt_machine *m, tn_pt_tensor *t, const tn_pt_value *state, tn_error *err)
{
    static const tn_pt_known row = { .module = "torch", .name = "Tensor.__setstate__" };
    if (!t->is_empty_object)
        return TN_OK;           /* attributes of a Parameter */
    if (!tn_pt_is_list(state))
        return misfit(m, &row, err);
    const arguments args = { state->items->at, state->items->count };
    if (t->is_numpy) {
        fill_numpy(t, arg(args, 1), arg(args, 2), arg(args, 4));
        t->is_fortran = is_true(arg(args, 3));
        return TN_OK;
    }
    t->is_empty_object = false;
    return fill_view(m, &row, args, t, err);
}

/* (3, order, ...) */
static void build_numpy_type(tn_pt_numpy *type, const tn_pt_value *state)
{
    const tn_pt_value *order =
        tn_pt_is_list(state) && state->items->count > 1 ? &state->items->at[1] : &none_value;
    if (order->kind == TN_PT_TEXT)
        type->is_big_endian = tn_pt_text_is(order, ">");
}

tn_status tn_pt_build(tn_pt_machine *m, tn_pt_value *object, const tn_pt_value *state, tn_error *err)
{
    if (object->kind == TN_PT_TENSOR)
        return build_tensor(m, object->tensor, state, err);
    if (object->kind == TN_PT_NUMPY_TYPE)
        build_numpy_type(object->numpy, state);
    else if (object->kind == TN_PT_OBJECT)
        object->object->state = *state;
    else if (object->kind == TN_PT_GLOBAL && !object->global->known)
        note_call(m, object->global);
    return TN_OK;               /* attributes of an OrderedDict are dropped */
}

/* --- persistent ids --- */

static tn_status bad_id(tn_pt_machine *m, tn_error *err)
{
    return tn_pt_fail(m, err, TN_ERR_CORRUPT,
                      "expected a persistent id (\"storage\", class, key, location, count)");
}

/* A storage that is a view of another: (key, offset, size), before torch 0.4. */
static tn_status take_part(tn_pt_machine *m, tn_pt_storage *s, const tn_pt_value *view, tn_error *err)
{
    if (view->kind == TN_PT_NONE)
        return TN_OK;
    if (!tn_pt_is_list(view) || view->items->count != 3)
        return bad_id(m, err);
    const tn_pt_value *first = &view->items->at[1], *used = &view->items->at[2];
    if (first->kind != TN_PT_INT || used->kind != TN_PT_INT || first->i < 0 || used->i < 0 ||
        (uint64_t)first->i > s->count || (uint64_t)used->i > s->count - (uint64_t)first->i)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a storage is a view beyond the %llu elements of another",
                          (unsigned long long)s->count);
    s->first = (uint64_t)first->i;
    s->used = (uint64_t)used->i;
    return TN_OK;
}

static tn_status take_key(tn_pt_machine *m, const tn_pt_value *key, tn_text *text, tn_error *err)
{
    if (key->kind == TN_PT_TEXT) {
        *text = tn_pt_text(key);
        return TN_OK;
    }
    if (key->kind != TN_PT_INT)
        return bad_id(m, err);
    text->ptr = tn_arena_printf(m->arena, "%lld", (long long)key->i);
    TN_NEED(text->ptr, err);
    text->len = strlen(text->ptr);
    return TN_OK;
}

static tn_status make_storage(tn_pt_machine *m, const tn_pt_value *id, uint32_t n, tn_pt_value *out,
                              tn_error *err)
{
    if (n < 5 || id[1].kind != TN_PT_GLOBAL || id[4].kind != TN_PT_INT || id[4].i < 0)
        return bad_id(m, err);
    const tn_pt_global *class = id[1].global;
    if (!class->known || !is_storage_class(class->known))
        return tn_pt_fail(m, err, TN_ERR_UNSUPPORTED, "expected a storage class of torch but found %s of %s",
                          tn_quote(class->name.ptr, class->name.len).text,
                          tn_quote(class->module.ptr, class->module.len).text);
    tn_pt_storage *s = tn_arena_zalloc(m->arena, 1, sizeof *s);
    TN_NEED(s && TN_GROW(m->storages, m->nstorages, m->storages_cap), err);
    s->type = class->known->type.name ? &class->known->type : NULL;
    s->count = s->used = (uint64_t)id[4].i;
    m->storages[m->nstorages++] = s;
    TN_TRY(take_key(m, &id[2], &s->key, err));
    TN_TRY(tn_pt_count_copied(m, s->key.len, err));
    *out = (tn_pt_value){ .kind = TN_PT_STORAGE, .storage = s };
    return n > 5 ? take_part(m, s, &id[5], err) : TN_OK;
}

tn_status tn_pt_persistent(tn_pt_machine *m, const tn_pt_value *id, tn_pt_value *out, tn_error *err)
{
    if (!tn_pt_is_list(id) || !id->items->count)
        return bad_id(m, err);
    const tn_pt_value *at = id->items->at;
    if (tn_pt_text_is(&at[0], "module") && id->items->count >= 2) {
        *out = at[1];           /* the source text of the class is not read */
        return TN_OK;
    }
    return tn_pt_text_is(&at[0], "storage") ? make_storage(m, at, id->items->count, out, err)
                                            : bad_id(m, err);
}
