/* python/core/home.c - what keeps tensors: an open file, memory or a view, and who uses it. */
#include "core.h"

#include <stdlib.h>

core_home *core_home_new(core_state *state)
{
    core_home *home = PyObject_GC_New(core_home, state->home_type);
    if (!home)
        return NULL;
    home->state = state;
    atomic_init(&home->uses, 1);
    atomic_init(&home->is_closed, false);
    home->file = NULL;
    home->lent = NULL;
    home->attachment = NULL;
    home->buffers = NULL;
    home->nbuffers = 0;
    home->shared = NULL;
    home->is_writable = false;
    home->memory = NULL;
    home->kept = NULL;
    home->view = NULL;
    home->step = NULL;
    home->text = NULL;
    pthread_mutex_init(&home->lock, NULL);
    PyObject_GC_Track((PyObject *)home);
    return home;
}

const tn_file *core_home_file(const core_home *home) { return home->file ? home->file : home->lent; }

static core_home *input_of(const core_home *home, Py_ssize_t i)
{
    return ((core_tensor *)PyTuple_GetItem(home->kept, i))->home;
}

static Py_ssize_t input_count(const core_home *home) { return home->view ? PyTuple_Size(home->kept) : 0; }

/* Everything but references.  A view is shut by dealloc() only, with the GIL. */
static void shut(core_home *home)
{
    Py_ssize_t inputs = input_count(home);
    tn_view_close(home->view);          /* before the files that it reads */
    for (Py_ssize_t i = 0; i < inputs; i++)
        core_unuse(input_of(home, i));
    tn_close(home->file);
    tn_detach(home->attachment);
    tn_buffer_unref(home->shared);
    home->view = NULL;
    home->file = NULL;
    home->lent = NULL;
    home->attachment = NULL;
    home->shared = NULL;
}

static bool is_closed(const core_home *home)
{
    bool closed = atomic_load(&home->is_closed);
    for (Py_ssize_t i = 0; i < input_count(home) && !closed; i++)
        closed = is_closed(input_of(home, i));
    return closed;
}

bool core_use(core_home *home)
{
    long uses = atomic_load(&home->uses);
    do {
        if (is_closed(home) || uses == 0) {
            PyErr_SetString(PyExc_ValueError, "closed file");
            return false;
        }
    } while (!atomic_compare_exchange_weak(&home->uses, &uses, uses + 1));
    return true;
}

void core_unuse(core_home *home)
{
    if (atomic_fetch_sub(&home->uses, 1) == 1)
        shut(home);
}

void core_home_close(core_home *home)
{
    if (!atomic_exchange(&home->is_closed, true))
        core_unuse(home);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    core_home *home = (core_home *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(home->kept);
    for (size_t i = 0; i < home->nbuffers; i++)
        Py_VISIT(home->buffers[i].obj);
    return 0;
}

static void dealloc(PyObject *self)
{
    core_home *home = (core_home *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    shut(home);                 /* nobody uses it: users hold a reference */
    for (size_t i = 0; i < home->nbuffers; i++)
        PyBuffer_Release(&home->buffers[i]);
    PyMem_Free(home->buffers);
    PyMem_Free(home->memory);
    Py_CLEAR(home->kept);
    Py_CLEAR(home->step);
    Py_CLEAR(home->text);
    pthread_mutex_destroy(&home->lock);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_traverse, traverse },
    { 0, NULL }
};

static PyType_Spec spec = {
    .name = "tenon._core.Home",
    .basicsize = sizeof(core_home),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool core_add_home(PyObject *module, core_state *state)
{
    state->home_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->home_type != NULL;
}
