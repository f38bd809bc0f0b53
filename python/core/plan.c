/* python/core/plan.c - a conversion as data: its tensors, its pieces, and running them.
 *
 * A plan is this process's own, or has a work folder that it shares with others. */
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    tn_plan             *plan;  /* its own */
    tn_work             *work;  /* or one that is shared */
    char                *folder, *output;       /* of the shared one */
    core_convert_options o;     /* that callbacks refer to */
    core_job            *running;
    pid_t                pid;
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

static void take_note(void *context, const char *path, const char *text)
{
    core_take_note(&((core_plan *)context)->o, path, text);
}

/* Stops a call that was interrupted. */
static int take_progress(void *context, uint64_t done, uint64_t total)
{
    core_job *job = ((core_plan *)context)->running;
    return job ? core_job_progress(job, done, total) : 0;
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

static const tn_plan *plan_of(const core_plan *self)
{
    return self->work ? tn_work_plan(self->work) : self->plan;
}

/* A fork has threads and locks of its parent's plan on paper only, and leaves it. */
static void free_plan(core_plan *self)
{
    if (self->pid != getpid())
        return;
    tn_plan_free(self->plan);
    tn_work_close(self->work);
    free(self->folder);
    free(self->output);
    self->plan = NULL;
    self->work = NULL;
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

static tn_status share(core_plan *self, const char *path, const char *folder, tn_error *err)
{
    const tn_work_options o = { .size = sizeof o, .folder = folder && *folder ? folder : NULL,
                                .jobs = self->o.create.jobs, .progress = take_progress, .note = take_note,
                                .lost = take_lost, .context = self };
    tn_status status = self->home ? tn_work_make(core_home_file(self->home), path, &self->o.convert, &o,
                                                 &self->work, err)
                                  : tn_work_open(path, &o, &self->work, err);
    self->folder = status ? NULL : copy_text(tn_work_folder(self->work));
    self->output = status ? NULL : copy_text(tn_work_output(self->work));
    return status;
}

static tn_status make_plan(core_plan *self, const char *path, const char *folder, tn_error *err)
{
    self->o.create.note = take_note;
    self->o.create.note_context = self;
    self->o.convert.progress = take_progress;
    self->o.convert.context = self;
    self->o.convert.lost = take_lost;
    if (folder)
        return share(self, path, folder, err);
    self->o.convert.plan = take_row;
    return self->home ? tn_plan_make(core_home_file(self->home), path, &self->o.convert, &self->plan, err)
                      : tn_plan_open(path, &self->plan, err);
}

/* Plan(module, home or None, path, options, folder or None): without a home the plan at the path is opened,
 * which is a file, or the folder of a shared plan.  A folder makes it shared; "" is the usual one. */
static PyObject *new_plan(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *module, *home, *options;
    const char *path, *folder;
    tn_error err;
    tn_status status;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOyOz", &module, &home, &path, &options, &folder))
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
    self->pid = getpid();
    pthread_mutex_init(&self->lock, NULL);
    if (!core_read_options(options, &self->o) || (home != Py_None && !core_use((core_home *)home))) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    if (home != Py_None)
        self->home = (core_home *)Py_NewRef(home);
    Py_BEGIN_ALLOW_THREADS
    status = make_plan(self, path, folder, &err);
    Py_END_ALLOW_THREADS
    self->pieces = status || !plan_of(self) ? 0 : tn_plan_count(plan_of(self));
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
    char             *path, *notes;
    tn_work_outcome   outcome;
    tn_convert_result result;
} plan_job;

static void end_plan_job(core_job *job)
{
    free(((plan_job *)job)->path);
    free(((plan_job *)job)->notes);
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

/* One call at a time uses the plan; each has one of these functions. */
typedef tn_status (*plan_fn)(plan_job *j, core_plan *p, tn_error *err);

static tn_status with_plan(core_job *job, plan_fn run, tn_error *err)
{
    plan_job *j = (plan_job *)job;
    pthread_mutex_lock(&j->plan->lock);
    j->plan->running = job;
    tn_status status = j->plan->is_finished ? finished(err) : run(j, j->plan, err);
    j->plan->running = NULL;
    pthread_mutex_unlock(&j->plan->lock);
    return status;
}

/* What the user should know so far. */
static void take_notes(plan_job *j, core_plan *p)
{
    core_note_lost(&p->o);
    j->notes = copy_text(p->o.notes);
    p->o.notes[0] = '\0';
}

/* What is known of a piece of a shared plan is known in this process only: it is told here. */
static tn_status do_piece(plan_job *j, core_plan *p, tn_error *err)
{
    if (!p->work)
        return tn_plan_run(p->plan, j->piece, err);
    tn_status status = tn_work_run(p->work, j->piece, &j->outcome, err);
    take_notes(j, p);
    return status;
}

static tn_status do_finish(plan_job *j, core_plan *p, tn_error *err)
{
    tn_status status = p->work ? tn_work_finish(p->work, &j->result, err)
                               : tn_plan_finish(p->plan, &j->result, err);
    p->is_finished |= status != TN_ERR_ARGUMENT;
    take_notes(j, p);
    return status;
}

static tn_status do_save(plan_job *j, core_plan *p, tn_error *err)
{
    return tn_plan_save(plan_of(p), j->path, err);
}

static tn_status run_piece(core_job *job, tn_error *err) { return with_plan(job, do_piece, err); }
static tn_status run_finish(core_job *job, tn_error *err) { return with_plan(job, do_finish, err); }
static tn_status run_save(core_job *job, tn_error *err) { return with_plan(job, do_save, err); }

static const char *notes_of(const plan_job *j) { return j->notes ? j->notes : ""; }

/* _run(piece) -> (what became of it, notes) */
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
    PyObject *result = Py_BuildValue("(is)", (int)j->outcome, notes_of(j));
    core_job_free(&j->job);
    return result;
}

static PyObject *finish_plan(PyObject *self, PyObject *unused)
{
    (void)unused;
    plan_job *j = job_of((core_plan *)self, run_finish);
    if (!j || !core_job_run(&j->job, Py_None))
        return NULL;
    PyObject *result = Py_BuildValue("(KKKs)", (unsigned long long)j->result.tensors,
                                     (unsigned long long)j->result.bytes_in,
                                     (unsigned long long)j->result.bytes_out, notes_of(j));
    core_job_free(&j->job);
    return result;
}

/* _close() leaves a shared plan to others; of another nothing stays. */
static PyObject *close_plan(PyObject *self, PyObject *unused)
{
    core_plan *p = (core_plan *)self;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&p->lock);
    tn_plan_free(p->plan);
    tn_work_close(p->work);
    p->plan = NULL;
    p->work = NULL;
    p->is_finished = true;
    pthread_mutex_unlock(&p->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
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
    tn_status status = p->is_finished ? finished(&err) : tn_plan_piece(plan_of(p), (size_t)piece, &i, &err);
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

static PyObject *get_folder(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(((core_plan *)self)->folder);
}

static PyObject *get_output(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(((core_plan *)self)->output);
}

static PyMethodDef methods[] = {
    { "_run", run_plan, METH_VARARGS, NULL },
    { "_finish", finish_plan, METH_NOARGS, NULL },
    { "_close", close_plan, METH_NOARGS, NULL },
    { "_save", save_plan, METH_VARARGS, NULL },
    { "_piece", piece_of, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};

static PyGetSetDef members[] = {
    { "_rows", get_rows, NULL, NULL, NULL },
    { "_count", get_count, NULL, NULL, NULL },
    { "_folder", get_folder, NULL, NULL, NULL },
    { "_output", get_output, NULL, NULL, NULL },
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
