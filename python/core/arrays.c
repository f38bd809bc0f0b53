/* python/core/arrays.c - arrays in memory: cast, quantize, dequantize, and tensors around them. */
#include "core.h"

#include <string.h>

/* An array of the caller's: a buffer, its type and its shape. */
typedef struct array {
    Py_buffer buffer;
    int64_t   shape[TN_MAX_RANK];
    tn_array  array;
} array;

static bool take_array(array *a, PyObject *buffer, const char *type, PyObject *shape, int flags)
{
    uint64_t bytes = 0;
    a->buffer.obj = NULL;
    if (!core_type(type, &a->array.dtype) || !core_shape(shape, &a->array.rank, a->shape) ||
        PyObject_GetBuffer(buffer, &a->buffer, flags | PyBUF_C_CONTIGUOUS) < 0)
        return false;
    a->array.shape = a->shape;
    a->array.stride = NULL;
    if (tn_array_nbytes(&a->array, &bytes) == TN_OK && bytes == (uint64_t)a->buffer.len)
        return true;
    PyErr_Format(PyExc_ValueError, "expected %llu bytes of %s but found %zd", (unsigned long long)bytes, type,
                 a->buffer.len);
    PyBuffer_Release(&a->buffer);
    a->buffer.obj = NULL;
    return false;
}

static void drop_array(array *a)
{
    if (a->buffer.obj)
        PyBuffer_Release(&a->buffer);
}

/* ---- casts ---- */

typedef struct cast_job {
    core_job        job;
    array           to, from;
    tn_cast_options options;
} cast_job;

static tn_status run_cast(core_job *job, tn_error *err)
{
    cast_job *c = (cast_job *)job;
    return tn_cast(&c->to.array, c->to.buffer.buf, &c->from.array, c->from.buffer.buf,
                   (tn_byte_order)(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), &c->options, err);
}

static void end_cast(core_job *job)
{
    drop_array(&((cast_job *)job)->to);
    drop_array(&((cast_job *)job)->from);
}

/* cast(to, to type, from, from type, shape, round, overflow, nan, real only, seed, jobs) */
static PyObject *cast(PyObject *module, PyObject *args)
{
    PyObject *to, *from, *shape;
    const char *to_type, *from_type;
    int round, overflow, nan, drop_imaginary;
    unsigned long long seed;
    unsigned jobs;
    if (!PyArg_ParseTuple(args, "OsOsOiiipKI", &to, &to_type, &from, &from_type, &shape, &round, &overflow,
                          &nan,
                          &drop_imaginary, &seed, &jobs))
        return NULL;
    cast_job *c = core_job_new(core_state_of(module), sizeof *c, NULL, NULL);
    if (!c)
        return NULL;
    c->job.run = run_cast;
    c->job.end = end_cast;
    c->options = (tn_cast_options){ .size = sizeof c->options, .round = (tn_round)round, .jobs = jobs,
                                    .overflow = (tn_overflow)overflow, .nan = (tn_nan)nan, .seed = seed,
                                    .drop_imaginary = drop_imaginary };
    if (!take_array(&c->to, to, to_type, shape, PyBUF_WRITABLE) ||
        !take_array(&c->from, from, from_type, shape, 0)) {
        core_job_free(&c->job);
        return NULL;
    }
    if (!core_job_run(&c->job, Py_None))
        return NULL;
    core_job_free(&c->job);
    Py_RETURN_NONE;
}

/* ---- datatypes ---- */

static tn_datatype *load_datatype(core_state *state, const char *text)
{
    tn_datatype *datatype = NULL;
    tn_error err;
    if (tn_datatype_load(text, &datatype, &err))
        core_raise(state, &err);
    return datatype;
}

/* datatype(text) -> (canonical text, bits) */
static PyObject *datatype(PyObject *module, PyObject *args)
{
    const char *text;
    if (!PyArg_ParseTuple(args, "s", &text))
        return NULL;
    tn_datatype *d = load_datatype(core_state_of(module), text);
    PyObject *result = d ? Py_BuildValue("(sd)", tn_datatype_text(d), tn_datatype_bits(d)) : NULL;
    tn_datatype_free(d);
    return result;
}

/* shapes(datatype, shape, unpacked) -> [(role, type, shape)] */
static PyObject *shapes(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    const char *text;
    PyObject *tuple;
    int unpacked;
    uint32_t rank;
    int64_t extents[TN_MAX_RANK];
    tn_scaled_shapes parts;
    tn_error err;
    if (!PyArg_ParseTuple(args, "sOp", &text, &tuple, &unpacked) || !core_shape(tuple, &rank, extents))
        return NULL;
    tn_datatype *d = load_datatype(state, text);
    if (!d)
        return NULL;
    tn_status status = tn_scaled_shapes_for(d, rank, extents, &parts, &err);
    tn_datatype_free(d);
    if (status)
        return core_raise(state, &err);
    PyObject *list = PyList_New(0);
    for (uint32_t k = 0; list && k < parts.count; k++) {
        const tn_scaled_part *p = &parts.parts[k];
        bool is_plain = unpacked && k == 0;
        PyObject *row = Py_BuildValue("(sNN)", p->role, core_type_name(is_plain ? p->plain_dtype : p->dtype),
                                      core_shape_tuple(p->rank, is_plain ? p->plain_shape : p->shape));
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

typedef struct quantize_job {
    core_job            job;
    tn_datatype        *datatype;
    array               values;
    Py_buffer           parts[7];
    size_t              nparts;
    tn_quantize_options options;
    tn_quantize_stats   report;
} quantize_job;

static tn_status run_quantize(core_job *job, tn_error *err)
{
    quantize_job *q = (quantize_job *)job;
    void *parts[7] = { NULL };
    for (size_t i = 0; i < q->nparts; i++)
        parts[i] = q->parts[i].buf;
    return tn_quantize(q->datatype, &q->values.array, q->values.buffer.buf, parts, &q->options, &q->report,
                       err);
}

static tn_status run_dequantize(core_job *job, tn_error *err)
{
    quantize_job *q = (quantize_job *)job;
    const void *parts[7] = { NULL };
    for (size_t i = 0; i < q->nparts; i++)
        parts[i] = q->parts[i].buf;
    return tn_dequantize(q->datatype, &q->values.array, parts, q->values.buffer.buf, &q->options, err);
}

static void end_quantize(core_job *job)
{
    quantize_job *q = (quantize_job *)job;
    tn_datatype_free(q->datatype);
    drop_array(&q->values);
    for (size_t i = 0; i < q->nparts; i++)
        PyBuffer_Release(&q->parts[i]);
}

/* Buffers of the parts, each as long as the datatype says. */
static bool take_parts(quantize_job *q, PyObject *buffers, int flags)
{
    tn_scaled_shapes shapes;
    tn_error err;
    if (tn_scaled_shapes_for(q->datatype, q->values.array.rank, q->values.array.shape, &shapes, &err)) {
        core_raise(q->job.state, &err);
        return false;
    }
    Py_ssize_t n = PyTuple_Size(buffers);
    for (Py_ssize_t k = 0; k < n && k < (Py_ssize_t)shapes.count; k++) {
        const tn_scaled_part *p = &shapes.parts[k];
        bool is_plain = q->options.unpacked && k == 0;
        const tn_array part = { is_plain ? p->plain_dtype : p->dtype, p->rank,
                                is_plain ? p->plain_shape : p->shape, NULL };
        uint64_t bytes = 0;
        tn_array_nbytes(&part, &bytes);
        if (PyObject_GetBuffer(PyTuple_GetItem(buffers, k), &q->parts[k], flags | PyBUF_C_CONTIGUOUS) < 0)
            return false;
        q->nparts++;
        if ((uint64_t)q->parts[k].len != bytes)
            n = -1;
    }
    if (n == (Py_ssize_t)shapes.count)
        return true;
    PyErr_SetString(PyExc_ValueError, "the parts do not have the sizes that the datatype gives them");
    return false;
}

/* (values, type, shape, parts, datatype, unpacked, round, rule, nan, seed, rotation, percentile, jobs) */
static quantize_job *quantize_job_of(PyObject *module, PyObject *args, bool makes_values)
{
    core_state *state = core_state_of(module);
    PyObject *values, *shape, *parts;
    const char *type, *datatype, *rotation;
    int unpacked, round, rule, nan;
    unsigned long long seed;
    double percentile;
    unsigned jobs;
    tn_error err;
    if (!PyArg_ParseTuple(args, "OsOO!spiiiKzdI", &values, &type, &shape, &PyTuple_Type, &parts, &datatype,
                          &unpacked,
                          &round, &rule, &nan, &seed, &rotation, &percentile, &jobs))
        return NULL;
    quantize_job *q = core_job_new(state, sizeof *q, NULL, NULL);
    if (!q)
        return NULL;
    q->job.run = makes_values ? run_dequantize : run_quantize;
    q->job.end = end_quantize;
    q->options = (tn_quantize_options){ .size = sizeof q->options, .round = (tn_round)round, .jobs = jobs,
                                        .rule = (tn_scale_rule)rule, .nan = (tn_nan)nan, .seed = seed,
                                        .unpacked = unpacked, .percentile = percentile };
    bool failed = rotation && tn_rotation_parse(rotation, &q->options.rotation, &err);
    if (failed)
        core_raise(state, &err);
    q->datatype = failed ? NULL : load_datatype(state, datatype);
    if (q->datatype && take_array(&q->values, values, type, shape, makes_values ? PyBUF_WRITABLE : 0) &&
        take_parts(q, parts, makes_values ? 0 : PyBUF_WRITABLE))
        return q;
    core_job_free(&q->job);
    return NULL;
}

static PyObject *quantize(PyObject *module, PyObject *args)
{
    quantize_job *q = quantize_job_of(module, args, false);
    if (!q || !core_job_run(&q->job, Py_None))
        return NULL;
    const tn_quantize_stats *r = &q->report;
    PyObject *result = Py_BuildValue("(KKKddd)", (unsigned long long)r->values,
                                     (unsigned long long)r->saturated,
                                     (unsigned long long)r->flushed, r->signal, r->noise, r->max_error);
    core_job_free(&q->job);
    return result;
}

static PyObject *dequantize(PyObject *module, PyObject *args)
{
    quantize_job *q = quantize_job_of(module, args, true);
    if (!q || !core_job_run(&q->job, Py_None))
        return NULL;
    core_job_free(&q->job);
    Py_RETURN_NONE;
}

/* ---- elements narrower than a byte ---- */

/* unpack(to, from, bits, is signed): one element a byte.  pack(to, from, bits): back. */
static PyObject *unpack(PyObject *module, PyObject *args)
{
    Py_buffer to, from;
    unsigned bits;
    int is_signed;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*y*Ip", &to, &from, &bits, &is_signed))
        return NULL;
    const uint8_t *in = from.buf;
    uint8_t *out = to.buf;
    unsigned mask = (1u << bits) - 1, sign = is_signed ? 1u << (bits - 1) : 0;
    bool fits = bits > 0 && bits < 8 && ((size_t)to.len * bits + 7) / 8 == (size_t)from.len;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; fits && i < (size_t)to.len; i++) {
        size_t at = i * bits;
        unsigned two = in[at / 8];
        if (at % 8 + bits > 8)
            two |= (unsigned)in[at / 8 + 1] << 8;
        unsigned code = two >> at % 8 & mask;
        out[i] = (uint8_t)((code ^ sign) - sign);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&to);
    PyBuffer_Release(&from);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "sizes that do not fit");
    return fits ? Py_NewRef(Py_None) : NULL;
}

static PyObject *pack(PyObject *module, PyObject *args)
{
    Py_buffer to, from;
    unsigned bits;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*y*I", &to, &from, &bits))
        return NULL;
    const uint8_t *in = from.buf;
    uint8_t *out = to.buf;
    unsigned mask = (1u << bits) - 1;
    bool fits = bits > 0 && bits < 8 && ((size_t)from.len * bits + 7) / 8 == (size_t)to.len;
    Py_BEGIN_ALLOW_THREADS
    memset(out, 0, (size_t)to.len);
    for (size_t i = 0; fits && i < (size_t)from.len; i++) {
        size_t at = i * bits;
        unsigned code = (in[i] & mask) << at % 8;
        out[at / 8] |= (uint8_t)code;
        if (at % 8 + bits > 8)
            out[at / 8 + 1] |= (uint8_t)(code >> 8);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&to);
    PyBuffer_Release(&from);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "sizes that do not fit");
    return fits ? Py_NewRef(Py_None) : NULL;
}

/* ---- tensors in memory ---- */

/* Fills part k from (role, type, shape, buffer). */
static bool take_part(core_home *home, PyObject *row, tn_part *part, int64_t *extents)
{
    const char *role, *type;
    PyObject *shape, *buffer;
    uint32_t rank;
    Py_buffer *b = &home->buffers[home->nbuffers];
    if (!PyArg_ParseTuple(row, "ssOO", &role, &type, &shape, &buffer) || !core_shape(shape, &rank, extents))
        return false;
    tn_dtype dtype;
    if (!core_type(type, &dtype) || PyObject_GetBuffer(buffer, b, PyBUF_C_CONTIGUOUS) < 0)
        return false;
    home->nbuffers++;
    *part = (tn_part){ .role = role, .array = { dtype, rank, extents, NULL }, .data = b->len ? b->buf : "" };
    if (tn_array_nbytes(&part->array, &part->nbytes) == TN_OK && part->nbytes == (uint64_t)b->len)
        return true;
    PyErr_Format(PyExc_ValueError, "part %s: expected %llu bytes but found %zd", role,
                 (unsigned long long)part->nbytes, b->len);
    return false;
}

static tn_form form_of(const char *name)
{
    for (int form = TN_FORM_DENSE; form < TN_FORM_UNKNOWN; form++)
        if (strcmp(tn_form_name((tn_form)form), name) == 0)
            return (tn_form)form;
    return TN_FORM_UNKNOWN;
}

/* (axis or None, range, datatype or None, unpacked, rotation, store) of a scaled tensor. */
static bool take_scaling(core_state *state, PyObject *row, tn_scaling *scaling)
{
    const char *rotation, *store;
    PyObject *axis;
    int unpacked;
    long long low, high;
    tn_error err;
    *scaling = (tn_scaling){ .axis = -1 };
    if (!PyArg_ParseTuple(row, "O(LL)zpzz", &axis, &low, &high, &scaling->datatype, &unpacked, &rotation,
                          &store))
        return false;
    if (axis != Py_None)
        scaling->axis = (int32_t)PyLong_AsLong(axis);
    scaling->range[0] = low;
    scaling->range[1] = high;
    scaling->unpacked = unpacked;
    scaling->store = store ? tn_dtype_parse(store) : TN_UNKNOWN;
    if (rotation && tn_rotation_parse(rotation, &scaling->rotation, &err))
        core_raise(state, &err);
    return !PyErr_Occurred();
}

/* tensor(name, form, type, shape, parts, scaling or None, layout or None) */
static PyObject *tensor(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *shape, *rows, *scaling_row, *made = NULL;
    const char *form, *type;
    tn_tensor t = { .name = NULL };
    tn_scaling scaling;
    int64_t extents[8][TN_MAX_RANK];
    tn_part parts[7];
    if (!PyArg_ParseTuple(args, "sssOO!Oz", &t.name, &form, &type, &shape, &PyTuple_Type, &rows, &scaling_row,
                          &t.layout) ||
        !core_type(type, &t.dtype) || !core_shape(shape, &t.rank, extents[7]))
        return NULL;
    core_home *home = core_home_new(state);
    Py_ssize_t n = PyTuple_Size(rows);
    bool fine = home && n > 0 && n <= 7 && (home->buffers = PyMem_Calloc((size_t)n, sizeof *home->buffers));
    for (Py_ssize_t k = 0; k < n && fine; k++)
        fine = take_part(home, PyTuple_GetItem(rows, k), &parts[k], extents[k]);
    t.form = form_of(form);
    t.shape = extents[7];
    t.parts = parts;
    t.nparts = (uint32_t)n;
    if (fine && scaling_row != Py_None) {
        fine = take_scaling(state, scaling_row, &scaling);
        t.scaling = &scaling;
    }
    if (fine && (home->memory = core_describe(&t, 0)))
        made = core_tensor_new(home, home->memory);
    if (!made && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF((PyObject *)home);
    return made;
}

PyMethodDef core_array_functions[] = {
    { "cast", cast, METH_VARARGS, NULL },
    { "datatype", datatype, METH_VARARGS, NULL },
    { "shapes", shapes, METH_VARARGS, NULL },
    { "quantize", quantize, METH_VARARGS, NULL },
    { "dequantize", dequantize, METH_VARARGS, NULL },
    { "unpack", unpack, METH_VARARGS, NULL },
    { "pack", pack, METH_VARARGS, NULL },
    { "tensor", tensor, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
