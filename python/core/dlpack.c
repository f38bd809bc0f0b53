/* python/core/dlpack.c - tensors to and from other libraries of this process, as DLPack capsules. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* DLPack's own structures, as dlpack.h has them. */
typedef struct dl_tensor {
    void    *data;
    int32_t  device_type, device_id, ndim;
    uint8_t  code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensorVersioned {
    uint32_t  major, minor;
    void     *context;
    void    (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t  flags;
    dl_tensor tensor;
};

typedef struct dl_legacy {      /* DLManagedTensor, before 1.0 */
    dl_tensor tensor;
    void     *context;
    void    (*deleter)(struct dl_legacy *self);
} dl_legacy;

typedef struct DLManagedTensorVersioned dl_versioned;

#define VERSIONED "dltensor_versioned"
#define LEGACY    "dltensor"
#define COPIED    ((uint64_t)1 << 1)

/* ---- out ---- */

/* Called by the last user, from any thread. */
static void release_view(void *context)
{
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *tensor = context;
    core_unuse(((core_tensor *)tensor)->home);
    Py_DECREF(tensor);
    PyGILState_Release(gil);
}

static void delete_versioned(dl_versioned *v)
{
    if (v->deleter)
        v->deleter(v);
}

static void delete_legacy(dl_legacy *legacy)
{
    delete_versioned(legacy->context);
    free(legacy);
}

/* Nobody took it. */
static void drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, VERSIONED))
        delete_versioned(PyCapsule_GetPointer(capsule, VERSIONED));
}

static void drop_legacy(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, LEGACY))
        delete_legacy(PyCapsule_GetPointer(capsule, LEGACY));
}

static PyObject *legacy_capsule(dl_versioned *v)
{
    dl_legacy *legacy = malloc(sizeof *legacy);
    if (!legacy) {
        delete_versioned(v);
        return PyErr_NoMemory();
    }
    *legacy = (dl_legacy){ .tensor = v->tensor, .context = v, .deleter = delete_legacy };
    PyObject *capsule = PyCapsule_New(legacy, LEGACY, drop_legacy);
    if (!capsule)
        delete_legacy(legacy);
    return capsule;
}

static PyObject *versioned_capsule(dl_versioned *v)
{
    PyObject *capsule = PyCapsule_New(v, VERSIONED, drop_versioned);
    if (!capsule)
        delete_versioned(v);
    return capsule;
}

/* Consumers expect elements at multiples of their size. */
static bool is_aligned(const void *data,
                       unsigned bits) { return (uintptr_t)data % (bits < 8 ? 1 : bits / 8) == 0; }

/* The elements as a buffer: those of the file, or a copy. */
static tn_status wrap(core_tensor *t, void *copy, size_t size, tn_buffer **buffer, tn_error *err)
{
    if (copy)
        return tn_buffer_wrap(copy, size, false, free, copy, buffer, err);
    tn_status status = tn_buffer_wrap((void *)t->place.data, size, true, release_view, t, buffer, err);
    if (!status) {
        Py_INCREF((PyObject *)t);
        atomic_fetch_add(&t->home->uses, 1);    /* which the caller uses */
    }
    return status;
}

/* A copy of the elements in memory of its own. */
static void *copy_elements(core_tensor *t, size_t size)
{
    PyObject *target = NULL, *done = NULL;
    void *memory = aligned_alloc(64, (size + 64) & ~(size_t)63);
    if (memory)
        target = PyMemoryView_FromMemory(memory, (Py_ssize_t)size, PyBUF_WRITE);
    else
        PyErr_NoMemory();
    if (target)
        done = PyObject_CallMethod((PyObject *)t, "read_into", "O", target);
    Py_XDECREF(target);
    if (!done) {
        free(memory);
        return NULL;
    }
    Py_DECREF(done);
    return memory;
}

/* The size of a buffer that begins with element 0 and has all of them; false: strides lead before it. */
static bool reach(const core_tensor *t, uint64_t dense, size_t *size)
{
    int64_t last = 0;
    for (uint32_t i = 0; t->place.stride && i < t->tensor->rank; i++) {
        if (t->place.stride[i] < 0 && t->tensor->shape[i] > 1)
            return false;
        last += (t->tensor->shape[i] - 1) * t->place.stride[i];
    }
    size_t item = tn_dtype_get(t->tensor->dtype)->bits / 8;
    *size = t->place.stride && dense ? ((size_t)last + 1) * item : (size_t)dense;
    return true;
}

PyObject *core_dlpack(core_tensor *t, bool is_versioned, bool may_copy, bool must_copy)
{
    const tn_dtype_info *info = tn_dtype_get(t->tensor->dtype);
    void *copy = NULL;
    uint64_t bytes = 0;
    size_t size = 0;
    tn_buffer *buffer = NULL;
    dl_versioned *v = NULL;
    tn_error err;
    if (!core_use(t->home))
        return NULL;
    bool is_view = !must_copy && t->place.data && info && is_aligned(t->place.data, info->bits) &&
                   core_dense_bytes(t->tensor, TN_UNKNOWN, &bytes) == TN_OK && reach(t, bytes, &size);
    tn_array array = { t->tensor->dtype, t->tensor->rank, t->tensor->shape,
                       is_view ? t->place.stride : NULL };
    if (!is_view && (core_dense_bytes(t->tensor, TN_UNKNOWN, &bytes) || bytes > PY_SSIZE_T_MAX)) {
        PyErr_SetString(PyExc_BufferError, "expected a type that is known");
    } else if (!is_view && !may_copy) {
        PyErr_SetString(PyExc_BufferError, "the tensor must be read or copied, which copy=False forbids");
    } else if (is_view || (copy = copy_elements(t, size = (size_t)bytes))) {
        tn_status status = wrap(t, copy, size, &buffer, &err);
        if (status)
            free(copy);
        else
            status = tn_dlpack_export(&array, buffer, 0, &v, &err);
        tn_buffer_unref(buffer);
        if (status)
            PyErr_SetString(PyExc_BufferError, err.text);
    }
    core_unuse(t->home);
    if (!v)
        return NULL;
    if (!is_view)
        v->flags |= COPIED;
    return is_versioned ? versioned_capsule(v) : legacy_capsule(v);
}

/* ---- in ---- */

typedef struct adopted {        /* a legacy tensor as a versioned one */
    dl_versioned v;
    dl_legacy   *legacy;
} adopted;

static void delete_adopted(dl_versioned *v)
{
    dl_legacy *legacy = ((adopted *)v)->legacy;
    if (legacy->deleter)
        legacy->deleter(legacy);
    free(v);
}

static dl_versioned *adopt(dl_legacy *legacy)
{
    adopted *a = calloc(1, sizeof *a);
    if (!a) {
        PyErr_NoMemory();
        return NULL;
    }
    *a = (adopted){ .v = { .major = 1, .deleter = delete_adopted, .tensor = legacy->tensor },
                    .legacy = legacy };
    return &a->v;
}

/* The tensor in a capsule, which is not used up yet. */
static dl_versioned *open_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, VERSIONED))
        return PyCapsule_GetPointer(capsule, VERSIONED);
    dl_legacy *legacy = PyCapsule_GetPointer(capsule, LEGACY);
    return legacy ? adopt(legacy) : NULL;
}

/* Dense data: that of the other library, or a copy of strided elements. */
static bool make_dense(core_state *state, tn_dlpack_array *from, tn_buffer **buffer, const void **data)
{
    tn_error err;
    uint64_t bytes = 0;
    *buffer = from->buffer;
    *data = from->data;
    if (!from->array.stride)
        return true;
    const tn_array dense = { from->array.dtype, from->array.rank, from->array.shape, NULL };
    tn_status status = tn_array_nbytes(&dense, &bytes);
    *buffer = NULL;
    if (!status)
        status = tn_buffer_new(bytes ? bytes : 1, NULL, buffer, &err);
    if (!status)
        status = tn_reorder(&dense, tn_buffer_data(*buffer), &from->array, from->data, NULL, &err);
    tn_buffer_unref(from->buffer);
    if (status) {
        tn_buffer_unref(*buffer);
        core_raise(state, &err);
        return false;
    }
    *data = tn_buffer_data(*buffer);
    return true;
}

static PyObject *tensor_around(core_state *state, tn_dlpack_array *from)
{
    tn_buffer *buffer;
    const void *data;
    uint64_t bytes = 0;
    if (!make_dense(state, from, &buffer, &data))
        return NULL;
    core_home *home = core_home_new(state);
    if (!home) {
        tn_buffer_unref(buffer);
        return NULL;
    }
    home->shared = buffer;
    tn_array_nbytes(&(tn_array){ from->array.dtype, from->array.rank, from->array.shape, NULL }, &bytes);
    const tn_part part = { .role = "data", .nbytes = bytes, .data = data ? data : "",
                           .array = { from->array.dtype, from->array.rank, from->array.shape, NULL } };
    const tn_tensor t = { .name = "", .form = TN_FORM_DENSE, .dtype = from->array.dtype,
                          .rank = from->array.rank, .shape = from->array.shape, .parts = &part, .nparts = 1 };
    home->memory = core_describe(&t, 0);
    PyObject *tensor = home->memory ? core_tensor_new(home, home->memory) : NULL;
    Py_DECREF((PyObject *)home);
    return tensor;
}

/* from_dlpack(capsule) */
static PyObject *from_dlpack(PyObject *module, PyObject *capsule)
{
    core_state *state = core_state_of(module);
    tn_dlpack_array from;
    tn_error err;
    bool is_legacy = !PyCapsule_IsValid(capsule, VERSIONED);
    dl_versioned *v = open_capsule(capsule);
    if (!v)
        return NULL;
    if (tn_dlpack_import(v, &from, &err)) {
        if (is_legacy)
            free(v);            /* the capsule keeps what it has */
        return core_raise(state, &err);
    }
    PyCapsule_SetDestructor(capsule, NULL);
    PyCapsule_SetName(capsule, is_legacy ? "used_" LEGACY : "used_" VERSIONED);
    return tensor_around(state, &from);
}

PyMethodDef core_dlpack_functions[] = {
    { "from_dlpack", from_dlpack, METH_O, NULL },
    { NULL, NULL, 0, NULL }
};
