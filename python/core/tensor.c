/* python/core/tensor.c - a tensor: what it is, its data as a buffer, and tensors made of it. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { LONG_READ = 4 << 20 };   /* bytes from which on a read may be interrupted */

/* ---- making ---- */

/* Elements that need no reading. */
static core_place stored_place(const tn_tensor *t)
{
    const tn_part *p = t->nparts ? &t->parts[0] : NULL;
    bool is_there = p && t->form == TN_FORM_DENSE && p->data && !p->padded;
    return is_there ? (core_place){ p->data, p->array.stride } : (core_place){ NULL, NULL };
}

PyObject *core_tensor_new(core_home *home, const tn_tensor *tensor)
{
    PyTypeObject *type = (PyTypeObject *)home->state->tensor_class;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    core_tensor *self = (core_tensor *)alloc(type, 0);
    if (!self)
        return NULL;
    self->home = (core_home *)Py_NewRef((PyObject *)home);
    self->tensor = tensor;
    if (!home->view)
        self->place = stored_place(tensor);
    return (PyObject *)self;
}

bool core_is_tensor(core_state *state, PyObject *object)
{
    return PyObject_TypeCheck(object, state->tensor_type);
}

static void dealloc(PyObject *self)
{
    core_tensor *t = (core_tensor *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF((PyObject *)t->home);
    PyMem_Free(t->own);
    release(self);
    Py_DECREF(type);
}

/* ---- reading ---- */

tn_status core_dense_bytes(const tn_tensor *t, tn_dtype dtype, uint64_t *bytes)
{
    return tn_array_nbytes(&(tn_array){ dtype ? dtype : t->dtype, t->rank, t->shape, NULL }, bytes);
}

static tn_status add_step(tn_view **view, const char *step, const char *text, tn_error *err)
{
    if (strcmp(step, "values") == 0)
        return tn_view_add_values(view, text ? tn_dtype_parse(text) : TN_UNKNOWN, err);
    return tn_view_add(view, step, text, err);
}

static tn_status view_of_home(core_home *home, tn_view **view, tn_error *err)
{
    Py_ssize_t n = PyTuple_Size(home->kept), made = 0;
    tn_view **inputs = calloc((size_t)n, sizeof *inputs);
    const char *step = PyUnicode_AsUTF8AndSize(home->step, NULL);
    const char *text = home->text == Py_None ? NULL : PyUnicode_AsUTF8AndSize(home->text, NULL);
    tn_status status = inputs ? TN_OK : TN_ERR_NOMEM;
    if (status)
        *err = (tn_error){ .status = status, .offset = TN_NO_OFFSET };
    for (; made < n && !status; made += !status)
        status = core_tensor_view((core_tensor *)PyTuple_GetItem(home->kept, made), &inputs[made], err);
    if (!status && strcmp(step, "concat") == 0)
        status = tn_view_join(inputs, (size_t)n, tn_view_tensor(inputs[0])->name, text, view, err);
    else if (!status && !(status = add_step(&inputs[0], step, text, err)))
        *view = inputs[0];
    for (Py_ssize_t i = 0; i < made && status; i++)
        tn_view_close(inputs[i]);
    free(inputs);
    return status;
}

/* With the GIL: it looks at Python's tuples and texts. */
tn_status core_tensor_view(core_tensor *t, tn_view **view, tn_error *err)
{
    if (t->home->view)
        return view_of_home(t->home, view, err);
    return tn_view_open(core_home_file(t->home), t->tensor, view, err);
}

typedef struct read_job {
    core_job     job;
    core_tensor *t;
    tn_view     *view;          /* of its own, with the values that are wanted; NULL: that of the tensor */
    tn_dtype     dtype;
    void        *buffer;
    size_t       size;
    Py_buffer    to;            /* what `buffer` is in; obj is NULL: malloc()ed memory */
    bool         is_kept;       /* by the caller after success */
} read_job;

static tn_status read_view(tn_view *view, void *buffer, size_t size, tn_error *err)
{
    uint64_t count = 0;
    const tn_tensor *t = tn_view_tensor(view);
    tn_status status = tn_shape_count(t->rank, t->shape, &count);
    return status ? status : tn_view_read(view, 0, 0, count, buffer, size, err);
}

static tn_status run_read(core_job *job, tn_error *err)
{
    read_job *r = (read_job *)job;
    core_home *home = r->t->home;
    if (r->view)
        return read_view(r->view, r->buffer, r->size, err);
    if (!home->view)
        return tn_read(core_home_file(home), r->t->tensor, r->dtype, r->buffer, r->size, err);
    pthread_mutex_lock(&home->lock);
    tn_status status = read_view(home->view, r->buffer, r->size, err);
    pthread_mutex_unlock(&home->lock);
    return status;
}

static void end_read(core_job *job)
{
    read_job *r = (read_job *)job;
    tn_view_close(r->view);
    if (r->to.obj)
        PyBuffer_Release(&r->to);
    else if (!r->is_kept)
        free(r->buffer);
    Py_DECREF((PyObject *)r->t);
}

/* A view of the values in another type than the tensor's own view gives. */
static bool prepare_view(read_job *r)
{
    tn_error err;
    if (!r->t->home->view || r->dtype == r->t->tensor->dtype)
        return true;
    tn_status status = core_tensor_view(r->t, &r->view, &err);
    if (!status)
        status = tn_view_add_values(&r->view, r->dtype, &err);
    if (status)
        core_raise(r->job.state, &err);
    return status == TN_OK;
}

static void *read_whole(core_tensor *t, tn_dtype dtype, Py_buffer *to, size_t size);

/* Codes or entries that steps make are read first: values are made of those in memory. */
static void *read_loaded(core_tensor *t, tn_dtype dtype, Py_buffer *to, size_t size)
{
    PyObject *loaded = PyObject_CallMethod((PyObject *)t, "load", NULL);
    void *read = NULL;
    if (loaded && core_is_tensor(t->home->state, loaded) && !((core_tensor *)loaded)->home->view)
        read = read_whole((core_tensor *)loaded, dtype, to, size);
    Py_XDECREF(loaded);
    return read;
}

/* Reads everything into memory of the caller's (`to`), or into new memory, which is returned.  NULL with an
 * exception.  The home is in use. */
static void *read_whole(core_tensor *t, tn_dtype dtype, Py_buffer *to, size_t size)
{
    if (t->home->view && t->tensor->form != TN_FORM_DENSE)
        return read_loaded(t, dtype, to, size);
    read_job *r = core_job_new(t->home->state, sizeof *r, t->home, NULL);
    void *memory = to ? to->buf : aligned_alloc(64, (size + 64) & ~(size_t)63);
    if (!r || !memory) {
        free(to ? NULL : memory);
        if (r)
            core_job_free(&r->job);
        return r ? PyErr_NoMemory() : NULL;
    }
    r->job.run = run_read;
    r->job.end = end_read;
    r->t = (core_tensor *)Py_NewRef((PyObject *)t);
    r->dtype = dtype ? dtype : t->tensor->dtype;
    r->buffer = memory;
    r->size = size;
    if (to) {
        r->to = *to;
        to->obj = NULL;         /* the job releases it */
    }
    if (!prepare_view(r)) {
        core_job_free(&r->job);
        return NULL;
    }
    if (size >= LONG_READ) {
        if (!core_job_run(&r->job, Py_None))
            return NULL;
    } else {
        tn_status status;
        Py_BEGIN_ALLOW_THREADS
        status = run_read(&r->job, &r->job.err);
        Py_END_ALLOW_THREADS
        if (status) {
            core_raise(r->job.state, &r->job.err);
            core_job_free(&r->job);
            return NULL;
        }
    }
    r->is_kept = true;
    core_job_free(&r->job);
    return memory;
}

/* read_into(buffer, dtype or None) */
static PyObject *read_into(PyObject *self, PyObject *args)
{
    core_tensor *t = (core_tensor *)self;
    PyObject *target;
    const char *type = NULL;
    tn_dtype dtype = TN_UNKNOWN;
    Py_buffer to;
    uint64_t bytes = 0;
    if (!PyArg_ParseTuple(args, "O|z", &target, &type) || (type && !core_type(type, &dtype)) ||
        !core_use(t->home))
        return NULL;
    void *read = NULL;
    if (PyObject_GetBuffer(target, &to, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) == 0) {
        if (core_dense_bytes(t->tensor, dtype, &bytes) || bytes != (uint64_t)to.len)
            PyErr_Format(PyExc_ValueError, "expected a buffer of %llu bytes but found %zd",
                         (unsigned long long)bytes,
                         to.len);
        else
            read = read_whole(t, dtype, &to, (size_t)to.len);
        if (to.obj)
            PyBuffer_Release(&to);
    }
    core_unuse(t->home);
    return read ? Py_NewRef(Py_None) : NULL;
}

/* read_part(k, buffer): one part as it is, of codes or entries. */
static PyObject *read_part(PyObject *self, PyObject *args)
{
    core_tensor *t = (core_tensor *)self;
    unsigned k;
    Py_buffer to;
    uint64_t count = 0;
    tn_error err = { .status = TN_ERR_ARGUMENT, .offset = TN_NO_OFFSET, .text = "no such part" };
    tn_status status = TN_ERR_ARGUMENT;
    if (!PyArg_ParseTuple(args, "Iw*", &k, &to))
        return NULL;
    if (!core_use(t->home)) {
        PyBuffer_Release(&to);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    if (k < t->tensor->nparts && t->home->view) {
        const tn_array *a = &t->tensor->parts[k].array;
        pthread_mutex_lock(&t->home->lock);
        status = tn_shape_count(a->rank, a->shape, &count);
        if (!status)
            status = tn_view_read(t->home->view, k, 0, count, to.buf, (size_t)to.len, &err);
        pthread_mutex_unlock(&t->home->lock);
    } else if (k < t->tensor->nparts) {
        status = tn_part_read(core_home_file(t->home), &t->tensor->parts[k], to.buf, (size_t)to.len, &err);
    }
    Py_END_ALLOW_THREADS
    core_unuse(t->home);
    PyBuffer_Release(&to);
    return status ? core_raise(t->home->state, &err) : Py_NewRef(Py_None);
}

/* part_info(k) -> (role, type, shape, bytes) */
static PyObject *part_info(PyObject *self, PyObject *args)
{
    core_tensor *t = (core_tensor *)self;
    PyObject *result = NULL;
    unsigned k;
    if (!PyArg_ParseTuple(args, "I", &k) || !core_use(t->home))
        return NULL;
    if (k < t->tensor->nparts) {
        const tn_part *p = &t->tensor->parts[k];
        result = Py_BuildValue("(sNNK)", p->role ? p->role : "data", core_type_name(p->array.dtype),
                               core_shape_tuple(p->array.rank,
                                                p->array.shape), (unsigned long long)p->nbytes);
    } else {
        PyErr_SetString(PyExc_IndexError, "no such part");
    }
    core_unuse(t->home);
    return result;
}

/* ---- the buffer protocol ---- */

typedef struct export {
    void      *copy;
    Py_ssize_t extents[];       /* the shape, then the strides */
} export;

/* The letter of struct and NumPy, or NULL. */
static const char *letter_of(tn_dtype dtype)
{
    static const char *const letters[TN_DTYPE_COUNT] = {
        [TN_FLOAT64] = "d", [TN_FLOAT32] = "f", [TN_FLOAT16] = "e", [TN_INT64] = "q", [TN_INT32] = "i",
        [TN_INT16] = "h", [TN_INT8] = "b", [TN_UINT64] = "Q", [TN_UINT32] = "I", [TN_UINT16] = "H",
        [TN_UINT8] = "B", [TN_BOOL] = "?", [TN_COMPLEX64] = "Zf", [TN_COMPLEX128] = "Zd",
    };
    return letters[dtype];
}

/* Of the bits as an integer of their width; narrower than a byte: of packed bytes. */
static const char *raw_letter(unsigned bits)
{
    static const char *const letters[] = { "B", "H", "I", "I", "Q" };
    return bits <= 64 ? letters[bits / 16] : "B";
}

static int refuse(const char *text, const tn_tensor *t)
{
    const tn_dtype_info *info = tn_dtype_get(t->dtype);
    PyErr_Format(PyExc_BufferError, text, info ? info->name : "an unknown type");
    return -1;
}

/* Shape and strides, in bytes. */
static void fill_extents(const core_tensor *t, Py_ssize_t itemsize, const int64_t *stride, export *e)
{
    uint32_t rank = t->tensor->rank;
    Py_ssize_t step = itemsize;
    for (uint32_t i = rank; i-- > 0; ) {
        e->extents[i] = (Py_ssize_t)t->tensor->shape[i];
        e->extents[rank + i] = stride ? (Py_ssize_t)stride[i] * itemsize : step;
        step *= e->extents[i];
    }
}

static void fill_buffer(PyObject *self, Py_buffer *view, int flags, export *e, unsigned bits)
{
    core_tensor *t = (core_tensor *)self;
    bool is_packed = bits < 8;
    int rank = is_packed ? 1 : (int)t->tensor->rank;
    view->obj = Py_NewRef(self);
    view->itemsize = is_packed ? 1 : (Py_ssize_t)bits / 8;
    view->ndim = rank;
    if (is_packed) {
        e->extents[0] = view->len;
        e->extents[1] = 1;
    } else {
        fill_extents(t, view->itemsize, e->copy ? NULL : t->place.stride, e);
    }
    if (t->is_raw && bits > 64)         /* no integer is so wide: bytes */
        view->itemsize = 1, view->ndim = rank = 1, e->extents[0] = view->len, e->extents[1] = 1;
    const char *letter = t->is_raw ? raw_letter(bits) : letter_of(t->tensor->dtype);
    view->format = flags & PyBUF_FORMAT ? (char *)letter : NULL;
    view->shape = flags & PyBUF_ND && rank ? e->extents : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && rank ? e->extents + rank : NULL;
    view->suboffsets = NULL;
    view->internal = e;
}

static int check_request(const core_tensor *t, int flags)
{
    const tn_dtype_info *info = tn_dtype_get(t->tensor->dtype);
    if (!info)
        return refuse("%s has no elements that can be read", t->tensor);
    if (!t->is_raw && flags & PyBUF_FORMAT && !letter_of(t->tensor->dtype))
        return refuse("the buffer protocol has no letter for %s: use numpy(), or packed() for the bits",
                      t->tensor);
    if (t->place.data && info->bits >= 8) {
        if (flags & PyBUF_WRITABLE && !t->home->is_writable)
            return refuse("a view of a file (%s) is read-only", t->tensor);
        if (t->place.stride && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
            return refuse("the elements (%s) do not follow each other: strides are needed", t->tensor);
    }
    return 0;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    core_tensor *t = (core_tensor *)self;
    uint64_t bytes;
    view->obj = NULL;
    if (!core_use(t->home))
        return -1;
    export *e = NULL;
    if (check_request(t, flags) < 0)
        goto failed;
    if (core_dense_bytes(t->tensor, TN_UNKNOWN, &bytes) || bytes > PY_SSIZE_T_MAX) {
        refuse("too large: elements of %s", t->tensor);
        goto failed;
    }
    unsigned bits = tn_dtype_get(t->tensor->dtype)->bits;
    e = PyMem_Malloc(sizeof *e + (2 * (size_t)t->tensor->rank + 2) * sizeof *e->extents);
    if (!e) {
        PyErr_NoMemory();
        goto failed;
    }
    e->copy = NULL;
    view->len = (Py_ssize_t)bytes;
    view->readonly = t->place.data && !t->home->is_writable;
    view->buf = (void *)t->place.data;
    if (!t->place.data) {
        e->copy = read_whole(t, TN_UNKNOWN, NULL, (size_t)bytes);
        view->buf = e->copy;
        if (!e->copy)
            goto failed;
    }
    fill_buffer(self, view, flags, e, bits);
    return 0;

failed:
    PyMem_Free(e);
    core_unuse(t->home);
    return -1;
}

static void release_buffer(PyObject *self, Py_buffer *view)
{
    export *e = view->internal;
    free(e->copy);
    PyMem_Free(e);
    core_unuse(((core_tensor *)self)->home);
}

/* packed(): the bits of the elements as integers, as a memoryview. */
static PyObject *packed(PyObject *self, PyObject *unused)
{
    core_tensor *t = (core_tensor *)self;
    (void)unused;
    PyObject *raw = core_tensor_new(t->home, t->tensor);
    if (!raw)
        return NULL;
    ((core_tensor *)raw)->is_raw = true;
    ((core_tensor *)raw)->place = t->place;
    PyObject *view = PyMemoryView_FromObject(raw);
    Py_DECREF(raw);
    return view;
}

/* ---- what it is ---- */

static PyObject *shape_of(const core_tensor *t) { return core_shape_tuple(t->tensor->rank,
                                                                          t->tensor->shape); }

static PyObject *nbytes_of(const tn_tensor *t)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < t->nparts; k++)
        sum += t->parts[k].nbytes;
    return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *size_of(const tn_tensor *t)
{
    uint64_t count = 0;
    tn_shape_count(t->rank, t->shape, &count);
    return PyLong_FromUnsignedLongLong(count);
}

static bool is_view(const core_tensor *t)
{
    const tn_dtype_info *info = tn_dtype_get(t->tensor->dtype);
    return t->place.data && info && info->bits >= 8;
}

/* Strides in elements of data that is in memory, or None. */
static PyObject *strides_of(const core_tensor *t)
{
    int64_t dense[TN_MAX_RANK], step = 1;
    if (!is_view(t))
        Py_RETURN_NONE;
    for (uint32_t i = t->tensor->rank; i-- > 0; step *= t->tensor->shape[i])
        dense[i] = step;
    return core_shape_tuple(t->tensor->rank, t->place.stride ? t->place.stride : dense);
}

/* (axis or None, (low, high), datatype or None, unpacked, rotation or None, store or None) */
static PyObject *scaling_of(const tn_scaling *s)
{
    char rotation[64] = "";
    if (!s)
        Py_RETURN_NONE;
    if (s->rotation.size)
        tn_rotation_format(rotation, sizeof rotation, &s->rotation);
    const tn_dtype_info *store = tn_dtype_get(s->store);
    PyObject *axis = s->axis < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(s->axis);
    return axis ? Py_BuildValue("(N(LL)zNzz)", axis, (long long)s->range[0], (long long)s->range[1],
                                s->datatype,
                                PyBool_FromLong(s->unpacked), *rotation ? rotation : NULL,
                                store ? store->name : NULL)
                : NULL;
}

static PyObject *roles_of(const tn_tensor *t)
{
    PyObject *roles = PyTuple_New((Py_ssize_t)t->nparts);
    for (uint32_t k = 0; roles && k < t->nparts; k++) {
        PyObject *role = PyUnicode_FromString(t->parts[k].role ? t->parts[k].role : "data");
        if (!role || PyTuple_SetItem(roles, (Py_ssize_t)k, role) < 0)
            Py_CLEAR(roles);
    }
    return roles;
}

static PyObject *stored_of(const core_tensor *t)
{
    tn_stored_info s = { .size = sizeof s };
    const tn_part *p = &t->tensor->parts[0];
    if (!t->tensor->nparts || !p->stored || t->home->view || tn_part_stored(t->tensor, p, &s) != TN_OK)
        Py_RETURN_NONE;
    const tn_file *file = core_home_file(t->home);
    const char *name = s.extents && s.shard < tn_file_shards(file) ? tn_file_shard_name(file, s.shard) : NULL;
    return Py_BuildValue("(KKzzzsz)", (unsigned long long)s.offset, (unsigned long long)s.bytes, s.type,
                         s.encoding_name, s.checksum_text, s.order == TN_BIG_ENDIAN ? "big" : "little", name);
}

static PyObject *get_about(PyObject *self, void *what)
{
    core_tensor *t = (core_tensor *)self;
    if (!core_use(t->home))
        return NULL;
    PyObject *result;
    switch (*(const char *)what) {
    case 's': result = shape_of(t); break;
    case 'd': result = Py_NewRef(t->home->state->type_names[t->tensor->dtype]); break;
    case 'n': result = core_text_or_none(t->tensor->name); break;
    case 'f': result = core_text_or_none(tn_tensor_form_name(t->tensor)); break;
    case 'b': result = nbytes_of(t->tensor); break;
    case 'c': result = size_of(t->tensor); break;
    case 'r': result = PyLong_FromUnsignedLong(t->tensor->rank); break;
    case 'v': result = PyBool_FromLong(is_view(t)); break;
    case 'l': result = core_text_or_none(t->tensor->layout); break;
    case 't': result = core_text_or_none(t->tensor->tied); break;
    case 'i': result = strides_of(t); break;
    case 'q': result = scaling_of(t->tensor->scaling); break;
    case 'p': result = roles_of(t->tensor); break;
    case 'o': result = stored_of(t); break;
    case 'z': result = PyBool_FromLong(t->home->view != NULL); break;
    default:  result = core_meta(t->tensor->meta, t->tensor->nmeta); break;
    }
    core_unuse(t->home);
    return result;
}

/* ---- tensors of it ---- */

/* part(k): one part as a dense tensor. */
static PyObject *part(PyObject *self, PyObject *args)
{
    core_tensor *t = (core_tensor *)self;
    unsigned k;
    if (!PyArg_ParseTuple(args, "I", &k) || !core_use(t->home))
        return NULL;
    PyObject *made = NULL;
    if (k < t->tensor->nparts && !t->home->view) {
        const tn_part *p = &t->tensor->parts[k];
        const tn_tensor alone = { .name = t->tensor->name, .form = TN_FORM_DENSE, .dtype = p->array.dtype,
                                  .rank = p->array.rank, .shape = p->array.shape, .parts = p, .nparts = 1 };
        tn_tensor *own = core_describe(&alone, 0);
        made = own ? core_tensor_new(t->home, own) : NULL;
        if (made)
            ((core_tensor *)made)->own = own;
        else
            PyMem_Free(own);
    } else {
        PyErr_SetString(PyExc_ValueError, "expected a part of a tensor that is stored");
    }
    core_unuse(t->home);
    return made;
}

/* Whether all elements that strides reach lie in the data of the tensor that is sliced. */
static bool is_inside(const core_tensor *t, int64_t offset, uint32_t rank, const int64_t *shape,
                      const int64_t *stride)
{
    int64_t low = offset, high = offset, least = 0, most = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t way = (shape[i] - 1) * stride[i];
        if (shape[i] == 0)
            return true;
        low += way < 0 ? way : 0;
        high += way > 0 ? way : 0;
    }
    int64_t step = 1;
    for (uint32_t i = t->tensor->rank; i-- > 0; step *= t->tensor->shape[i]) {
        int64_t way = (t->tensor->shape[i] - 1) * (t->place.stride ? t->place.stride[i] : step);
        least += way < 0 ? way : 0;
        most += way > 0 ? way : 0;
    }
    return low >= least && high <= most;
}

/* The elements of a slice, in place. */
static bool place_slice(core_tensor *made, const core_tensor *base, PyObject *strides, int64_t offset)
{
    const tn_tensor *t = made->tensor;
    int64_t *stride = PyMem_Malloc(TN_MAX_RANK * sizeof *stride);
    uint32_t rank = 0;
    if (!stride) {
        PyErr_NoMemory();
        return false;
    }
    made->own = stride;
    if (!core_shape(strides, &rank, stride))
        return false;
    if (rank != t->rank || !is_view(base) || !is_inside(base, offset, rank, t->shape, stride)) {
        PyErr_SetString(PyExc_ValueError, "strides that lead outside the tensor");
        return false;
    }
    size_t bytes = tn_dtype_get(t->dtype)->bits / 8;
    made->place.data = (const char *)base->place.data + offset * (int64_t)bytes;
    made->place.stride = stride;
    return true;
}

/* A tensor whose home is a view: of `inputs`, a tuple of tensors that the caller has in use. */
static PyObject *make_step(core_state *state, PyObject *inputs, PyObject *step, PyObject *text)
{
    core_home *home = core_home_new(state);
    tn_view *view = NULL;
    tn_error err;
    if (!home)
        return NULL;
    home->kept = Py_NewRef(inputs);
    home->step = Py_NewRef(step);
    home->text = Py_NewRef(text);
    PyObject *made = NULL;
    if (view_of_home(home, &view, &err)) {
        core_raise(state, &err);
    } else {
        home->view = view;      /* from here on it uses its inputs */
        for (Py_ssize_t i = 0; i < PyTuple_Size(inputs); i++)
            atomic_fetch_add(&((core_tensor *)PyTuple_GetItem(inputs, i))->home->uses, 1);
        made = core_tensor_new(home, tn_view_tensor(view));
    }
    Py_DECREF((PyObject *)home);
    return made;
}

static PyObject *step_of(core_state *state, PyObject *inputs, PyObject *step, PyObject *text)
{
    Py_ssize_t n = PyTuple_Size(inputs), used = 0;
    bool failed = false;
    PyObject *made = NULL;
    core_text(step, &failed);
    core_text(text, &failed);
    for (; used < n && !failed; used++) {
        PyObject *input = PyTuple_GetItem(inputs, used);
        if (!core_is_tensor(state, input)) {
            PyErr_SetString(PyExc_TypeError, "expected tensors");
            failed = true;
            break;
        }
        failed = !core_use(((core_tensor *)input)->home);
        if (failed)
            break;
    }
    if (!failed)
        made = make_step(state, inputs, step, text);
    for (Py_ssize_t i = 0; i < used; i++)
        core_unuse(((core_tensor *)PyTuple_GetItem(inputs, i))->home);
    return made;
}

/* step(name, text or None, strides or None, offset) */
static PyObject *add(PyObject *self, PyObject *args)
{
    PyObject *step, *text, *strides = Py_None;
    long long offset = 0;
    core_tensor *t = (core_tensor *)self;
    if (!PyArg_ParseTuple(args, "UO|OL", &step, &text, &strides, &offset))
        return NULL;
    PyObject *inputs = PyTuple_Pack(1, self);
    PyObject *made = inputs ? step_of(t->home->state, inputs, step, text) : NULL;
    Py_XDECREF(inputs);
    if (made && strides != Py_None && !place_slice((core_tensor *)made, t, strides, offset))
        Py_CLEAR(made);
    return made;
}

/* concat(tuple of tensors, text) */
static PyObject *concat(PyObject *module, PyObject *args)
{
    PyObject *inputs, *text;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &inputs, &text))
        return NULL;
    if (PyTuple_Size(inputs) == 0) {
        PyErr_SetString(PyExc_ValueError, "expected at least one tensor");
        return NULL;
    }
    PyObject *step = PyUnicode_FromString("concat");
    PyObject *made = step ? step_of(core_state_of(module), inputs, step, text) : NULL;
    Py_XDECREF(step);
    return made;
}

static PyObject *dlpack_of(PyObject *self, PyObject *args)
{
    int is_versioned, may_copy, must_copy;
    if (!PyArg_ParseTuple(args, "ppp", &is_versioned, &may_copy, &must_copy))
        return NULL;
    return core_dlpack((core_tensor *)self, is_versioned, may_copy, must_copy);
}

static PyMethodDef methods[] = {
    { "packed", packed, METH_NOARGS,
      PyDoc_STR("The bits of the elements as a memoryview: integers of their width; packed bytes where "
                "they are narrower than a byte.") },
    { "read_into", read_into, METH_VARARGS,
      PyDoc_STR("read_into(buffer, dtype=None): read all values, dense, into a writable buffer.") },
    { "_part", part, METH_VARARGS, NULL },
    { "_part_info", part_info, METH_VARARGS, NULL },
    { "_read_part", read_part, METH_VARARGS, NULL },
    { "_step", add, METH_VARARGS, NULL },
    { "_dlpack", dlpack_of, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};

static PyGetSetDef members[] = {
    { "name", get_about, NULL, PyDoc_STR("Its name in the file."), "n" },
    { "shape", get_about, NULL, PyDoc_STR("Extents of its dimensions."), "s" },
    { "dtype", get_about, NULL, PyDoc_STR("The name of its element type, or None if it is not known."), "d" },
    { "form", get_about, NULL, PyDoc_STR("How its parts make it: dense, coo, csr, scaled or blocks."), "f" },
    { "nbytes", get_about, NULL, PyDoc_STR("Decoded bytes of all parts."), "b" },
    { "size", get_about, NULL, PyDoc_STR("The number of elements."), "c" },
    { "ndim", get_about, NULL, PyDoc_STR("The number of dimensions."), "r" },
    { "is_view", get_about, NULL, PyDoc_STR("Whether arrays of it are views: nothing is read or copied."),
      "v" },
    { "layout", get_about, NULL, PyDoc_STR("Letters of its dimensions, such as NCHW, or None."), "l" },
    { "tied", get_about, NULL, PyDoc_STR("The name of the tensor whose bytes it shares, or None."), "t" },
    { "is_lazy", get_about, NULL, PyDoc_STR("Whether steps make its data when it is read."), "z" },
    { "_strides", get_about, NULL, NULL, "i" },
    { "_scaling", get_about, NULL, NULL, "q" },
    { "_roles", get_about, NULL, NULL, "p" },
    { "_stored", get_about, NULL, NULL, "o" },
    { "_meta", get_about, NULL, NULL, "m" },
    { NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_bf_getbuffer, get_buffer },
    { Py_bf_releasebuffer, release_buffer },
    { 0, NULL }
};

static PyType_Spec spec = {
    .name = "tenon._core.Tensor",
    .basicsize = sizeof(core_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyMethodDef functions[] = {
    { "concat", concat, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};

bool core_add_tensor(PyObject *module, core_state *state)
{
    state->tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->tensor_type && PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddObjectRef(module, "Tensor", (PyObject *)state->tensor_type) == 0;
}
