/* python/core/share.c - tensors offered to other processes, and those that others offer. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* ---- offering ---- */

typedef struct core_offer {
    PyObject_HEAD
    core_state *state;
    tn_offer   *offer;
    pthread_t   thread;
    bool        is_running;
} core_offer;

static void *answer(void *offer)
{
    tn_offer_run(offer, NULL);
    return NULL;
}

static void stop(core_offer *self)
{
    if (self->is_running) {
        tn_offer_stop(self->offer);
        pthread_join(self->thread, NULL);
    }
    tn_offer_close(self->offer);
    self->offer = NULL;
    self->is_running = false;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    stop((core_offer *)object);
    release(object);
    Py_DECREF(type);
}

/* Users from a tuple of integers; PyMem_Free() them. */
static bool take_uids(PyObject *tuple, uint32_t **uids, size_t *n)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    *uids = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof **uids);
    for (Py_ssize_t i = 0; i < count && *uids; i++)
        (*uids)[i] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(tuple, i));
    *n = (size_t)count;
    if (!*uids && !PyErr_Occurred())
        PyErr_NoMemory();
    return !PyErr_Occurred();
}

/* Offer(module, path, uids) */
static PyObject *new_offer(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *module, *uids;
    const char *path;
    uint32_t *list;
    tn_offer_options options = { .size = sizeof options };
    tn_error err;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OyO", &module, &path, &uids))
        return NULL;
    core_state *state = core_state_of(module);
    core_offer *self = state ? (core_offer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0) : NULL;
    if (!self)
        return NULL;
    self->state = state;
    if (take_uids(uids, &list, &options.nuids)) {
        options.uids = list;
        if (tn_share_offer(path, &options, &self->offer, &err))
            core_raise(state, &err);
    }
    PyMem_Free(list);
    if (self->offer)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static bool is_open(const core_offer *self)
{
    if (!self->offer || self->is_running)
        PyErr_SetString(PyExc_ValueError, "the server was started or closed: offer everything before");
    return self->offer && !self->is_running;
}

/* file(home, name, in place) */
static PyObject *offer_file(PyObject *object, PyObject *args)
{
    core_offer *self = (core_offer *)object;
    core_home *home;
    const char *name;
    int in_place;
    tn_error err;
    tn_status status;
    if (!PyArg_ParseTuple(args, "O!sp", self->state->home_type, &home, &name, &in_place) || !is_open(self) ||
        !core_use(home))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tn_offer_file(self->offer, name, core_home_file(home), in_place, &err);
    Py_END_ALLOW_THREADS
    core_unuse(home);
    return status ? core_raise(self->state, &err) : Py_NewRef(Py_None);
}

/* A dense tensor whose memory is a buffer's. */
static PyObject *tensor_in(core_state *state, tn_buffer *buffer, const tn_tensor *like)
{
    core_home *home = core_home_new(state);
    if (!home)
        return NULL;
    home->shared = tn_buffer_ref(buffer);
    home->is_writable = !(tn_buffer_flags(buffer) & TN_MEM_READ_ONLY);
    home->memory = core_describe(like, 0);
    PyObject *tensor = home->memory ? core_tensor_new(home, home->memory) : NULL;
    Py_DECREF((PyObject *)home);
    return tensor;
}

/* share(tensor, name, writable) -> a tensor in the shared memory */
static PyObject *offer_tensor(PyObject *object, PyObject *args)
{
    core_offer *self = (core_offer *)object;
    core_tensor *t;
    const char *name;
    int writable;
    uint64_t bytes = 0;
    tn_buffer *buffer = NULL;
    tn_error err;
    if (!PyArg_ParseTuple(args, "O!sp", self->state->tensor_type, &t, &name, &writable) || !is_open(self) ||
        !core_use(t->home))
        return NULL;
    const tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_MEMFD };
    tn_status status = core_dense_bytes(t->tensor, TN_UNKNOWN, &bytes);
    err = (tn_error){ .status = status, .offset = TN_NO_OFFSET, .text = "expected a type that is known" };
    if (!status)
        status = tn_buffer_new(bytes ? bytes : 1, &options, &buffer, &err);
    PyObject *target = NULL, *done = NULL, *made = NULL;
    if (!status)
        target = PyMemoryView_FromMemory(tn_buffer_data(buffer), (Py_ssize_t)bytes, PyBUF_WRITE);
    if (target)
        done = PyObject_CallMethod((PyObject *)t, "read_into", "O", target);
    if (done) {
        const tn_part part = { .role = "data", .nbytes = bytes, .data = tn_buffer_data(buffer),
                               .array = { t->tensor->dtype, t->tensor->rank, t->tensor->shape, NULL } };
        const tn_tensor shared = { .name = name, .form = TN_FORM_DENSE, .dtype = t->tensor->dtype,
                                   .rank = t->tensor->rank, .shape = t->tensor->shape, .parts = &part,
                                   .nparts = 1, .layout = t->tensor->layout };
        made = tensor_in(self->state, buffer, &shared);
        status = made ? tn_offer_tensor(self->offer, &shared, buffer, 0, writable, &err) : TN_OK;
    }
    if (status) {
        Py_CLEAR(made);
        core_raise(self->state, &err);
    }
    Py_XDECREF(target), Py_XDECREF(done);
    tn_buffer_unref(buffer);
    core_unuse(t->home);
    return made;
}

static PyObject *start(PyObject *object, PyObject *unused)
{
    core_offer *self = (core_offer *)object;
    (void)unused;
    if (!is_open(self))
        return NULL;
    if (pthread_create(&self->thread, NULL, answer, self->offer)) {
        PyErr_SetString(PyExc_OSError, "cannot begin a thread");
        return NULL;
    }
    self->is_running = true;
    Py_RETURN_NONE;
}

static PyObject *close_offer(PyObject *object, PyObject *unused)
{
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    stop((core_offer *)object);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "_file", offer_file, METH_VARARGS, NULL },
    { "_share", offer_tensor, METH_VARARGS, NULL },
    { "_start", start, METH_NOARGS, NULL },
    { "close", close_offer, METH_NOARGS,
      PyDoc_STR("Stop answering and remove the socket.  What others have attached stays theirs.") },
    { NULL, NULL, 0, NULL }
};

static PyType_Slot slots[] = {
    { Py_tp_new, new_offer },
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { 0, NULL }
};

static PyType_Spec spec = {
    .name = "tenon._core.Offer",
    .basicsize = sizeof(core_offer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

bool core_add_offer(PyObject *module, core_state *state)
{
    state->offer_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->offer_type && PyModule_AddObjectRef(module, "Offer", (PyObject *)state->offer_type) == 0;
}

/* ---- attaching ---- */

/* What is in the buffer as a tensor of this process, or the file as a home. */
static PyObject *item_of(core_state *state, core_home *all, const tn_attached *a)
{
    if (a->tensor)
        return tensor_in(state, a->buffer, a->tensor);
    core_home *home = core_home_new(state);
    if (home) {
        home->lent = a->file;
        home->kept = Py_NewRef((PyObject *)all);        /* which is never closed while it is referred to */
    }
    return (PyObject *)home;
}

/* attach(path, in place, uids) -> [(name, tensor or home of a file, writable)] */
static PyObject *attach(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    const char *path;
    int in_place;
    tn_error err;
    tn_status status;
    tn_attachment *attachment = NULL;
    PyObject *uids;
    uint32_t *list_of_uids;
    if (!PyArg_ParseTuple(args, "ypO", &path, &in_place, &uids))
        return NULL;
    tn_attach_options options = { .size = sizeof options, .in_place = in_place };
    if (!take_uids(uids, &list_of_uids, &options.nuids)) {
        PyMem_Free(list_of_uids);
        return NULL;
    }
    options.uids = list_of_uids;
    Py_BEGIN_ALLOW_THREADS
    status = tn_share_attach(path, &options, &attachment, &err);
    Py_END_ALLOW_THREADS
    PyMem_Free(list_of_uids);
    if (status)
        return core_raise(state, &err);
    core_home *all = core_home_new(state);
    if (!all) {
        tn_detach(attachment);
        return NULL;
    }
    all->attachment = attachment;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tn_attached_count(attachment); i++) {
        const tn_attached *a = tn_attached_at(attachment, i);
        PyObject *item = item_of(state, all, a);
        PyObject *row = item ? Py_BuildValue("(sNi)", a->name, item,
                                             !(tn_buffer_flags(a->buffer) & TN_MEM_READ_ONLY)) : NULL;
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    Py_DECREF((PyObject *)all);
    return list;
}

PyMethodDef core_share_functions[] = {
    { "attach", attach, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
