/* python/core/file.c - an open file: a mapping of names to tensors. */
#include "core.h"

#include <string.h>

typedef struct core_file {
    PyObject_HEAD
    core_home *home;
    PyObject  *names;           /* a tuple, when they were asked for */
} core_file;

/* ---- Python objects as sources ---- */

/* Reads a range through a Python callable read_at(offset, size) -> bytes. */
static tn_status read_object(void *context, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *bytes = PyObject_CallFunction(context, "Kn", (unsigned long long)offset, (Py_ssize_t)n);
    Py_buffer view;
    tn_status status = TN_ERR_IO;
    *err = (tn_error){ .status = TN_ERR_IO, .offset = offset, .text = "the file object could not be read" };
    if (bytes && PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) == 0) {
        status = (size_t)view.len == n ? TN_OK : TN_ERR_TRUNCATED;
        if (status == TN_OK)
            memcpy(buffer, view.buf, n);
        else
            PyOS_snprintf(err->text, sizeof err->text, "expected %zu bytes of the file object but found %zd",
                          n,
                          view.len);
        err->status = status;
        PyBuffer_Release(&view);
    }
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(context);
        PyErr_Clear();
    }
    Py_XDECREF(bytes);
    PyGILState_Release(gil);
    return status;
}

static tn_status open_object(core_home *home, PyObject *source, const tn_open_options *options, tn_error *err)
{
    PyObject *read_at;
    unsigned long long size;
    *err = (tn_error){ .status = TN_ERR_ARGUMENT, .offset = TN_NO_OFFSET,
                       .text = "file objects can be opened in the main interpreter only" };
    if (!PyArg_ParseTuple(source, "OK", &read_at, &size))
        return TN_ERR_ARGUMENT;
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
        return TN_ERR_ARGUMENT;
    home->kept = Py_NewRef(read_at);
    const tn_source_calls calls = { .size = sizeof calls, .bytes = size, .read = read_object,
                                    .context = read_at };
    tn_status status;
    Py_BEGIN_ALLOW_THREADS
    status = tn_open_callbacks(&calls, options, &home->file, err);
    Py_END_ALLOW_THREADS
    return status;
}

static tn_status open_memory(core_home *home, PyObject *source, const tn_open_options *options, tn_error *err)
{
    home->buffers = PyMem_Calloc(1, sizeof *home->buffers);
    if (!home->buffers || PyObject_GetBuffer(source, home->buffers, PyBUF_SIMPLE) < 0)
        return TN_ERR_ARGUMENT;
    home->nbuffers = 1;
    return tn_open_memory(home->buffers->buf, (size_t)home->buffers->len, options, &home->file, err);
}

static tn_status open_several(core_home *home, PyObject *source, const tn_open_options *options,
                              tn_error *err)
{
    Py_ssize_t n = PyTuple_Size(source);
    const char **paths = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *paths);
    tn_status status = paths ? TN_OK : TN_ERR_NOMEM;
    for (Py_ssize_t i = 0; i < n && !status; i++) {
        paths[i] = PyBytes_AsString(PyTuple_GetItem(source, i));
        status = paths[i] ? TN_OK : TN_ERR_ARGUMENT;
    }
    if (!status) {
        Py_BEGIN_ALLOW_THREADS
        status = tn_open_several(paths, (size_t)n, options, &home->file, err);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(paths);
    return status;
}

/* `how` says what the source is: a path, a descriptor, several paths, a buffer, a callable and its size. */
static tn_status open_source(core_home *home, const char *how, PyObject *source,
                             const tn_open_options *options,
                             tn_error *err)
{
    tn_status status;
    if (strcmp(how, "several") == 0)
        return open_several(home, source, options, err);
    if (strcmp(how, "memory") == 0)
        return open_memory(home, source, options, err);
    if (strcmp(how, "object") == 0)
        return open_object(home, source, options, err);
    if (strcmp(how, "fd") == 0) {
        long fd = PyLong_AsLong(source);
        return PyErr_Occurred() ? TN_ERR_ARGUMENT : tn_open_fd((int)fd, options, &home->file, err);
    }
    const char *path = PyBytes_AsString(source);
    if (!path)
        return TN_ERR_ARGUMENT;
    Py_BEGIN_ALLOW_THREADS
    status = tn_open(path, options, &home->file, err);
    Py_END_ALLOW_THREADS
    return status;
}

static PyObject *new_around(PyTypeObject *type, core_home *home)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    core_file *self = home ? (core_file *)alloc(type, 0) : NULL;
    if (self)
        self->home = home;
    else
        Py_XDECREF((PyObject *)home);
    return (PyObject *)self;
}

/* File(state holder, how, source, format, io, max_bytes, raw) */
static PyObject *new_file(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *module, *source;
    const char *how, *format;
    int io, raw;
    unsigned long long max_bytes;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OsOziKp", &module, &how, &source, &format, &io, &max_bytes, &raw))
        return NULL;
    core_state *state = core_state_of(module);
    const tn_open_options options = { .size = sizeof options, .format = format, .io = (tn_io)io,
                                      .max_bytes = max_bytes, .raw_codes = raw };
    core_home *home = state ? core_home_new(state) : NULL;
    if (!home)
        return NULL;
    if (strcmp(how, "home") == 0) {     /* of an attached file */
        Py_DECREF((PyObject *)home);
        return new_around(type, (core_home *)Py_NewRef(source));
    }
    tn_error err = { .status = TN_ERR_NOMEM };
    if (open_source(home, how, source, &options, &err) == TN_OK)
        return new_around(type, home);
    if (!PyErr_Occurred())
        core_raise(state, &err);
    Py_DECREF((PyObject *)home);
    return NULL;
}

static void dealloc(PyObject *self)
{
    core_file *f = (core_file *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_CLEAR(f->names);
    Py_XDECREF((PyObject *)f->home);
    release(self);
    Py_DECREF(type);
}

/* ---- the mapping ---- */

static core_home *home_of(PyObject *self) { return ((core_file *)self)->home; }

static Py_ssize_t length(PyObject *self)
{
    if (!core_use(home_of(self)))
        return -1;
    size_t n = tn_file_count(core_home_file(home_of(self)));
    core_unuse(home_of(self));
    return (Py_ssize_t)n;
}

/* The tensor of this name, or NULL; the file is in use. */
static const tn_tensor *find(PyObject *self, PyObject *name)
{
    Py_ssize_t n = 0;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &n) : NULL;
    if (!text)
        PyErr_Clear();          /* no text that a file can have */
    return text && strlen(text) == (size_t)n ? tn_file_find(core_home_file(home_of(self)), text) : NULL;
}

static PyObject *subscript(PyObject *self, PyObject *name)
{
    if (!core_use(home_of(self)))
        return NULL;
    const tn_tensor *tensor = find(self, name);
    PyObject *found = tensor ? core_tensor_new(home_of(self), tensor) : NULL;
    if (!tensor)
        PyErr_SetObject(PyExc_KeyError, name);
    core_unuse(home_of(self));
    return found;
}

static int contains(PyObject *self, PyObject *name)
{
    if (!core_use(home_of(self)))
        return -1;
    const tn_tensor *tensor = find(self, name);
    core_unuse(home_of(self));
    return tensor != NULL;
}

static PyObject *make_names(const tn_file *file)
{
    size_t n = tn_file_count(file);
    PyObject *names = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_FromString(tn_file_tensor(file, i)->name);
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

static PyObject *iterate(PyObject *self)
{
    core_file *f = (core_file *)self;
    if (!core_use(f->home))
        return NULL;
    PyObject *names = f->names ? Py_NewRef(f->names) : make_names(core_home_file(f->home));
    core_unuse(f->home);
    if (names && !f->names)
        core_set(f->names, Py_NewRef(names));
    PyObject *iterator = names ? PyObject_GetIter(names) : NULL;
    Py_XDECREF(names);
    return iterator;
}

/* _all(): every tensor, in the order of the file. */
static PyObject *all_tensors(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!core_use(home_of(self)))
        return NULL;
    const tn_file *file = core_home_file(home_of(self));
    size_t n = tn_file_count(file);
    PyObject *all = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; all && i < n; i++) {
        PyObject *tensor = core_tensor_new(home_of(self), tn_file_tensor(file, i));
        if (!tensor || PyTuple_SetItem(all, (Py_ssize_t)i, tensor) < 0)
            Py_CLEAR(all);
    }
    core_unuse(home_of(self));
    return all;
}

/* ---- the file ---- */

static PyObject *close_file(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    core_home_close(home_of(self));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(atomic_load(&home_of(self)->is_closed));
}

static PyObject *get_home(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)home_of(self));
}

static PyObject *warnings_of(const tn_file *file)
{
    PyObject *list = PyList_New(0);
    const char *warning;
    for (size_t i = 0; list && (warning = tn_file_warning(file, i)); i++) {
        PyObject *text = core_text_or_none(warning);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *shards_of(const tn_file *file)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tn_file_shards(file); i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(tn_file_shard_name(file, i));
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *get_about(PyObject *self, void *what)
{
    if (!core_use(home_of(self)))
        return NULL;
    const tn_file *file = core_home_file(home_of(self));
    PyObject *result;
    size_t n;
    const tn_meta *meta;
    switch (*(const char *)what) {
    case 'f': result = PyUnicode_FromString(tn_file_format(file)); break;
    case 'n': result = PyLong_FromUnsignedLongLong(tn_file_size(file)); break;
    case 's': result = shards_of(file); break;
    case 'w': result = warnings_of(file); break;
    default:
        meta = tn_file_meta(file, &n);
        result = core_meta(meta, n);
    }
    core_unuse(home_of(self));
    return result;
}

static PyObject *intact(PyObject *self, PyObject *unused)
{
    tn_error err;
    (void)unused;
    if (!core_use(home_of(self)))
        return NULL;
    tn_status status = tn_file_intact(core_home_file(home_of(self)), &err);
    core_unuse(home_of(self));
    return status == TN_OK ? Py_NewRef(Py_None) : core_raise(home_of(self)->state, &err);
}

static PyMethodDef methods[] = {
    { "close", close_file, METH_NOARGS, PyDoc_STR("Close the file; views of its data stay valid.") },
    { "intact", intact, METH_NOARGS,
      PyDoc_STR("Raise an error if the file was cut or could not be read while views were looked at.") },
    { "_all", all_tensors, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL }
};

static PyGetSetDef members[] = {
    { "closed", get_closed, NULL, PyDoc_STR("Whether close() was called."), NULL },
    { "format", get_about, NULL, PyDoc_STR("The name of its format, such as \"safetensors\"."), "f" },
    { "nbytes", get_about, NULL, PyDoc_STR("Bytes of the file, all shards together."), "n" },
    { "_shards", get_about, NULL, NULL, "s" },
    { "_warnings", get_about, NULL, NULL, "w" },
    { "_meta", get_about, NULL, NULL, "m" },
    { "_home", get_home, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
    { Py_tp_new, new_file },
    { Py_tp_dealloc, dealloc },
    { Py_tp_iter, iterate },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_mp_length, length },
    { Py_mp_subscript, subscript },
    { Py_sq_contains, contains },
    { 0, NULL }
};

static PyType_Spec spec = {
    .name = "tenon._core.File",
    .basicsize = sizeof(core_file),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

bool core_add_file(PyObject *module, core_state *state)
{
    state->file_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->file_type && PyModule_AddObjectRef(module, "File", (PyObject *)state->file_type) == 0;
}
