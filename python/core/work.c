/* python/core/work.c - work folders: how far they are, and removing them. */
#include "core.h"

#include <stdlib.h>

typedef struct holders {
    tn_work_holder *list;
    size_t          count, cap;
} holders;

static void take_holder(void *context, const tn_work_holder *holder)
{
    holders *h = context;
    if (h->count == h->cap) {
        tn_work_holder *more = realloc(h->list, (2 * h->cap + 16) * sizeof *more);
        if (!more)
            return;
        h->list = more;
        h->cap = 2 * h->cap + 16;
    }
    h->list[h->count++] = *holder;
}

static PyObject *holder_rows(const holders *h)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < h->count; i++) {
        const tn_work_holder *x = &h->list[i];
        PyObject *row = Py_BuildValue("(nsKO)", (Py_ssize_t)x->piece, x->host, (unsigned long long)x->pid,
                                      x->stopped ? Py_True : Py_False);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* work_look(folder) -> (pieces, made, held, bytes, bytes made, processes, published, holders) */
static PyObject *look(PyObject *module, PyObject *args)
{
    const char *folder;
    tn_work_state s = { .size = sizeof s };
    holders h = { 0 };
    tn_error err;
    tn_status status;
    if (!PyArg_ParseTuple(args, "y", &folder))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tn_work_look(folder, &s, take_holder, &h, &err);
    Py_END_ALLOW_THREADS
    PyObject *rows = status ? core_raise(core_state_of(module), &err) : holder_rows(&h);
    free(h.list);
    return rows ? Py_BuildValue("(nnnKKnON)", (Py_ssize_t)s.pieces, (Py_ssize_t)s.made, (Py_ssize_t)s.held,
                                (unsigned long long)s.bytes, (unsigned long long)s.bytes_made,
                                (Py_ssize_t)s.processes, s.published ? Py_True : Py_False, rows)
                : NULL;
}

/* work_abandon(folder) */
static PyObject *abandon(PyObject *module, PyObject *args)
{
    const char *folder;
    tn_error err;
    tn_status status;
    if (!PyArg_ParseTuple(args, "y", &folder))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tn_work_abandon(folder, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_raise(core_state_of(module), &err);
    Py_RETURN_NONE;
}

PyMethodDef core_work_functions[] = {
    { "work_look", look, METH_VARARGS, NULL },
    { "work_abandon", abandon, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
