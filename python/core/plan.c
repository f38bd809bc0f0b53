/* python/core/plan.c - a conversion as data: its tensors, its pieces, and running them. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {            /* a copy of tn_planned */
    char      *name, *source, *datatype, *layout;
    tn_planned p;
    tn_dtype   from;
    int64_t    shape[TN_MAX_RANK], physical[TN_MAX_RANK];
    bool       is_padded;
} row;

typedef struct core_plan {
    PyObject_HEAD
    core_state          *state;
    core_home           *home;  /* in use; NULL: the plan opened its input itself */
    tn_plan             *plan;
    core_convert_options o;     /* that callbacks refer to */
    row                 *rows;
    size_t               count, cap, pieces;
    pthread_mutex_t      lock;  /* one thread at a time uses a plan */
    bool                 is_finished;   /* then there are no pieces any more */
} core_plan;

static char *copy_text(const char *text) { return text ? strdup(text) : NULL; }

static void take_lost(void *context, const tn_cast_report *lost)
{
    core_add_lost(&((core_plan *)context)->o, lost);
}

static void take_row(void *context, const tn_planned *p)
{
    core_plan *self = context;
    if (self->count == self->cap) {
        row *more = realloc(self->rows, (2 * self->cap + 16) * sizeof *more);
        if (!more)
            return;
        self->rows = more;
        self->cap = 2 * self->cap + 16;
    }
    row *r = &self->rows[self->count++];
    *r = (row){ .name = copy_text(p->name), .source = copy_text(p->source->name),
                .datatype = copy_text(p->datatype), .layout = copy_text(p->layout), .p = *p,
                .from = p->source->scaling ? p->source->parts[0].array.dtype : p->source->dtype,
                .is_padded = p->physical != NULL };
    memcpy(r->shape, p->shape, p->rank * sizeof *p->shape);
    if (p->physical)
        memcpy(r->physical, p->physical, p->rank * sizeof *p->physical);
}

static void free_plan(core_plan *self)
{
    tn_plan_free(self->plan);
    self->plan = NULL;
    for (size_t i = 0; i < self->count; i++) {
        free(self->rows[i].name);
        free(self->rows[i].source);
        free(self->rows[i].datatype);
        free(self->rows[i].layout);
    }
    free(self->rows);
    self->rows = NULL;
    self->count = 0;
}

static void dealloc(PyObject *object)
{
    core_plan *self = (core_plan *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_plan(self);
    core_free_convert(&self->o);
    if (self->home) {
        core_unuse(self->home);
        Py_DECREF((PyObject *)self->home);
    }
    pthread_mutex_destroy(&self->lock);
    release(object);
    Py_DECREF(type);
}

/* Plan(module, home or None, path, options): None opens the plan that is saved at the path. */
static PyObject *new_plan(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *module, *home, *options;
    const char *path;
    tn_error err;
    tn_status status;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOyO", &module, &home, &path, &options))
        return NULL;
    core_state *state = core_state_of(module);
    if (!state || (home != Py_None && !PyObject_TypeCheck(home, state->home_type))) {
        PyErr_SetString(PyExc_TypeError, "expected an open file");
        return NULL;
    }
    core_plan *self = (core_plan *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self)
        return NULL;
    self->state = state;
    pthread_mutex_init(&self->lock, NULL);
    if (!core_read_options(options, &self->o) || (home != Py_None && !core_use((core_home *)home))) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    if (home != Py_None)
        self->home = (core_home *)Py_NewRef(home);
    self->o.convert.plan = take_row;
    self->o.convert.context = self;
    self->o.convert.lost = take_lost;
    Py_BEGIN_ALLOW_THREADS
    status = self->home ? tn_plan_make(core_home_file(self->home), path, &self->o.convert, &self->plan, &err)
                        : tn_plan_open(path, &self->plan, &err);
    Py_END_ALLOW_THREADS
    self->pieces = status ? 0 : tn_plan_count(self->plan);
    if (!status)
        return (PyObject *)self;
    core_raise(state, &err);
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* ---- running ---- */

typedef struct plan_job {
    core_job          job;
    core_plan        *plan;
    size_t            piece;
    char             *path;
    tn_convert_result result;
} plan_job;

static void end_plan_job(core_job *job)
{
    free(((plan_job *)job)->path);
    Py_DECREF((PyObject *)((plan_job *)job)->plan);
}

static plan_job *job_of(core_plan *self, tn_status (*run)(core_job *job, tn_error *err))
{
    plan_job *j = core_job_new(self->state, sizeof *j, NULL, NULL);
    if (!j)
        return NULL;
    j->job.run = run;
    j->job.end = end_plan_job;
    j->plan = (core_plan *)Py_NewRef((PyObject *)self);
    return j;
}

static tn_status finished(tn_error *err)
{
    *err = (tn_error){ .status = TN_ERR_ARGUMENT, .offset = TN_NO_OFFSET, .text = "the plan is finished" };
    return TN_ERR_ARGUMENT;
}

static tn_status run_piece(core_job *job, tn_error *err)
{
    plan_job *j = (plan_job *)job;
    pthread_mutex_lock(&j->plan->lock);
    tn_status status = j->plan->is_finished ? finished(err) : tn_plan_run(j->plan->plan, j->piece, err);
    pthread_mutex_unlock(&j->plan->lock);
    return status;
}

static tn_status run_finish(core_job *job, tn_error *err)
{
    plan_job *j = (plan_job *)job;
    pthread_mutex_lock(&j->plan->lock);
    tn_status status = j->plan->is_finished ? finished(err) : tn_plan_finish(j->plan->plan, &j->result, err);
    j->plan->is_finished |= status != TN_ERR_ARGUMENT;
    pthread_mutex_unlock(&j->plan->lock);
    return status;
}

static tn_status run_save(core_job *job, tn_error *err)
{
    plan_job *j = (plan_job *)job;
    pthread_mutex_lock(&j->plan->lock);
    tn_status status = j->plan->is_finished ? finished(err) : tn_plan_save(j->plan->plan, j->path, err);
    pthread_mutex_unlock(&j->plan->lock);
    return status;
}

static PyObject *run_plan(PyObject *self, PyObject *args)
{
    Py_ssize_t piece;
    if (!PyArg_ParseTuple(args, "n", &piece))
        return NULL;
    plan_job *j = job_of((core_plan *)self, run_piece);
    if (!j)
        return NULL;
    j->piece = (size_t)piece;
    if (!core_job_run(&j->job, Py_None))
        return NULL;
    core_job_free(&j->job);
    Py_RETURN_NONE;
}

static PyObject *finish_plan(PyObject *self, PyObject *unused)
{
    (void)unused;
    plan_job *j = job_of((core_plan *)self, run_finish);
    if (!j || !core_job_run(&j->job, Py_None))
        return NULL;
    core_note_lost(&((core_plan *)self)->o);
    PyObject *result = Py_BuildValue("(KKKs)", (unsigned long long)j->result.tensors,
                                     (unsigned long long)j->result.bytes_in,
                                     (unsigned long long)j->result.bytes_out, ((core_plan *)self)->o.notes);
    core_job_free(&j->job);
    return result;
}

static PyObject *save_plan(PyObject *self, PyObject *args)
{
    const char *path;
    if (!PyArg_ParseTuple(args, "y", &path))
        return NULL;
    plan_job *j = job_of((core_plan *)self, run_save);
    if (!j)
        return NULL;
    j->path = strdup(path);
    if (!core_job_run(&j->job, Py_None))
        return NULL;
    core_job_free(&j->job);
    Py_RETURN_NONE;
}

/* ---- what it tells ---- */

static PyObject *offset_or_none(uint64_t offset)
{
    return offset == UINT64_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(offset);
}

static PyObject *piece_of(PyObject *self, PyObject *args)
{
    core_plan *p = (core_plan *)self;
    tn_plan_piece_info i = { .size = sizeof i };
    Py_ssize_t piece;
    tn_error err;
    if (!PyArg_ParseTuple(args, "n", &piece))
        return NULL;
    pthread_mutex_lock(&p->lock);
    tn_status status = p->is_finished ? finished(&err) : tn_plan_piece(p->plan, (size_t)piece, &i, &err);
    pthread_mutex_unlock(&p->lock);
    if (status)
        return core_raise(p->state, &err);
    PyObject *offset = offset_or_none(i.offset);
    return offset ? Py_BuildValue("(KNKKKKKK)", (unsigned long long)i.file, offset,
                                  (unsigned long long)i.first_tensor, (unsigned long long)i.tensors,
                                  (unsigned long long)i.first_block, (unsigned long long)i.blocks,
                                  (unsigned long long)i.bytes_written, (unsigned long long)i.bytes_read)
                  : NULL;
}

static PyObject *make_row(const row *r)
{
    static const char *const checksums[] = { NULL, "crc32c", "sha256", "crc32" };
    PyObject *from = core_type_name(r->from), *type = core_type_name(r->p.dtype);
    PyObject *shape = core_shape_tuple(r->p.rank, r->shape), *offset = offset_or_none(r->p.offset);
    PyObject *physical = r->is_padded ? core_shape_tuple(r->p.rank, r->physical) : Py_NewRef(Py_None);
    if (!from || !type || !shape || !offset || !physical) {
        Py_XDECREF(from), Py_XDECREF(type), Py_XDECREF(shape), Py_XDECREF(offset), Py_XDECREF(physical);
        return NULL;
    }
    return Py_BuildValue("(zzNNszNNzKzzKN)", r->name, r->source, from, type, tn_form_name(r->p.form),
                         r->datatype,
                         shape, physical, r->layout, (unsigned long long)r->p.nbytes,
                         tn_encoding_name(r->p.encoding),
                         r->p.checksum <= TN_CHECKSUM_CRC32 ? checksums[r->p.checksum] : NULL,
                         (unsigned long long)r->p.file, offset);
}

static PyObject *get_rows(PyObject *self, void *unused)
{
    const core_plan *p = (core_plan *)self;
    PyObject *list = PyList_New(0);
    (void)unused;
    for (size_t i = 0; list && i < p->count; i++) {
        PyObject *made = make_row(&p->rows[i]);
        if (!made || PyList_Append(list, made) < 0)
            Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list;
}

static PyObject *get_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(((core_plan *)self)->pieces);
}

static PyMethodDef methods[] = {
    { "_run", run_plan, METH_VARARGS, NULL },
    { "_finish", finish_plan, METH_NOARGS, NULL },
    { "_save", save_plan, METH_VARARGS, NULL },
    { "_piece", piece_of, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};

static PyGetSetDef members[] = {
    { "_rows", get_rows, NULL, NULL, NULL },
    { "_count", get_count, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
    { Py_tp_new, new_plan },
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { 0, NULL }
};

static PyType_Spec spec = {
    .name = "tenon._core.Plan",
    .basicsize = sizeof(core_plan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

bool core_add_plan(PyObject *module, core_state *state)
{
    state->plan_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->plan_type && PyModule_AddObjectRef(module, "Plan", (PyObject *)state->plan_type) == 0;
}
