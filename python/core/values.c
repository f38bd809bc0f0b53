/* python/core/values.c - texts, shapes, types and metadata, to and from Python. */
#include "core.h"

#include <string.h>

const char *core_text(PyObject *object, bool *failed)
{
    Py_ssize_t n;
    if (!object || object == Py_None)
        return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(object, &n);
    if (text && strlen(text) != (size_t)n) {
        PyErr_SetString(PyExc_ValueError, "expected a text without NUL");
        text = NULL;
    }
    *failed |= !text;
    return text;
}

bool core_texts(PyObject *tuple, const char ***texts, size_t *n)
{
    bool failed = false;
    *texts = NULL;
    *n = 0;
    if (!tuple || tuple == Py_None)
        return true;
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0)
        return false;
    *texts = PyMem_Calloc((size_t)count + 1, sizeof **texts);
    if (!*texts) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count && !failed; i++)
        (*texts)[i] = core_text(PyTuple_GetItem(tuple, i), &failed);
    *n = (size_t)count;
    return !failed;
}

bool core_shape(PyObject *tuple, uint32_t *rank, int64_t *shape)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n < 0)
        return false;
    if (n > TN_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "expected at most %d dimensions but found %zd", TN_MAX_RANK, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        shape[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (shape[i] == -1 && PyErr_Occurred())
            return false;
    }
    *rank = (uint32_t)n;
    return true;
}

PyObject *core_shape_tuple(uint32_t rank, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
    for (uint32_t i = 0; tuple && i < rank; i++) {
        PyObject *extent = PyLong_FromLongLong(shape[i]);
        if (!extent || PyTuple_SetItem(tuple, (Py_ssize_t)i, extent) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *core_text_or_none(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

PyObject *core_type_name(tn_dtype dtype)
{
    const tn_dtype_info *info = tn_dtype_get(dtype);
    return core_text_or_none(info ? info->name : NULL);
}

bool core_type(const char *text, tn_dtype *dtype)
{
    *dtype = tn_dtype_parse(text);
    if (*dtype != TN_UNKNOWN)
        return true;
    char shown[200];
    tn_escape(shown, sizeof shown, text, strlen(text));
    PyErr_Format(PyExc_ValueError, "unknown type \"%s\" (expected a name such as float32, bf16 or int4)",
                 shown);
    return false;
}

static PyObject *meta_json(const tn_meta *meta)
{
    size_t n = tn_meta_json(meta, NULL, 0);
    char *text = PyMem_Malloc(n + 1);
    if (!text)
        return PyErr_NoMemory();
    tn_meta_json(meta, text, n + 1);
    PyObject *json = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    PyMem_Free(text);
    return json;
}

PyObject *core_meta(const tn_meta *meta, size_t n)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *text = core_text_or_none(meta[i].text), *json = NULL, *row = NULL;
        if (text)
            json = meta[i].text ? Py_NewRef(Py_None) : meta_json(&meta[i]);
        if (json)
            row = Py_BuildValue("(sOO)", meta[i].key, text, json);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
        Py_XDECREF(json);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- descriptions ---- */

typedef struct block {
    char *at;
} block;

static void *put(block *b, const void *bytes, size_t n)
{
    void *to = b->at;
    if (n)
        memcpy(to, bytes, n);
    b->at += (n + 15) & ~(size_t)15;
    return to;
}

static const char *put_text(block *b, const char *text) { return text ? put(b, text,
                                                                            strlen(text) + 1) : NULL; }

static size_t room(size_t n) { return (n + 15) & ~(size_t)15; }

static size_t text_room(const char *text) { return text ? room(strlen(text) + 1) : 0; }

static size_t describe_room(const tn_tensor *t)
{
    size_t n = room(sizeof *t) + room(t->nparts * sizeof *t->parts) + room(t->rank * sizeof *t->shape) +
               text_room(t->name) + text_room(t->form_text) + text_room(t->layout) +
               room(t->nmeta * sizeof *t->meta);
    for (uint32_t k = 0; k < t->nparts; k++)
        n += text_room(t->parts[k].role) + 2 * room(t->parts[k].array.rank * sizeof *t->shape);
    for (uint32_t i = 0; i < t->nmeta; i++)
        n += text_room(t->meta[i].key) + text_room(t->meta[i].text) + room(t->meta[i].cbor_size);
    if (t->scaling)
        n += room(sizeof *t->scaling) + text_room(t->scaling->datatype);
    return n;
}

static void put_parts(block *b, tn_tensor *t)
{
    tn_part *parts = put(b, t->parts, t->nparts * sizeof *parts);
    for (uint32_t k = 0; k < t->nparts; k++) {
        size_t extents = parts[k].array.rank * sizeof *parts[k].array.shape;
        parts[k].role = put_text(b, parts[k].role);
        parts[k].array.shape = put(b, parts[k].array.shape, extents);
        parts[k].array.stride = parts[k].array.stride ? put(b, parts[k].array.stride, extents) : NULL;
    }
    t->parts = parts;
}

static void put_meta(block *b, tn_tensor *t)
{
    tn_meta *meta = put(b, t->meta, t->nmeta * sizeof *meta);
    for (uint32_t i = 0; i < t->nmeta; i++) {
        meta[i].key = put_text(b, meta[i].key);
        meta[i].text = put_text(b, meta[i].text);
        meta[i].cbor = put(b, meta[i].cbor, meta[i].cbor_size);
    }
    t->meta = meta;
}

tn_tensor *core_describe(const tn_tensor *tensor, size_t extra)
{
    size_t n = describe_room(tensor);
    block b = { PyMem_Malloc(n + extra) };
    if (!b.at) {
        PyErr_NoMemory();
        return NULL;
    }
    tn_tensor *t = put(&b, tensor, sizeof *tensor);
    put_parts(&b, t);
    put_meta(&b, t);
    t->shape = put(&b, t->shape, t->rank * sizeof *t->shape);
    t->name = put_text(&b, t->name);
    t->form_text = put_text(&b, t->form_text);
    t->layout = put_text(&b, t->layout);
    t->tied = NULL;
    if (t->scaling) {
        tn_scaling *scaling = put(&b, t->scaling, sizeof *scaling);
        scaling->datatype = put_text(&b, scaling->datatype);
        t->scaling = scaling;
    }
    return t;
}
