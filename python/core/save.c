/* python/core/save.c - writes tensors, in memory, in files or made by steps, into a new file. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 8 << 20 };       /* bytes that are read at a time of what is not in memory */

/* One tensor to be written. */
typedef struct entry {
    tn_tensor *tensor;          /* a description of its own, under the name it gets */
    tn_view   *view;            /* of what must be read; NULL: every part has its data */
} entry;

typedef struct save_job {
    core_job             job;   /* first: it is the context of callbacks */
    core_convert_options o;
    char                *path;
    entry               *entries;
    size_t               count;
    PyObject            *tensors;       /* that entries are of: a tuple, all in use */
    size_t               used;
    tn_meta             *meta;
    const char         **texts; /* of the metadata: key, text, ... */
    size_t               nmeta;
    PyObject            *kept;
    uint64_t             done, total;
} save_job;

/* Reads a part in pieces and hands them on. */
static tn_status write_part(save_job *s, tn_writer *w, size_t i, uint32_t k, void *buffer, tn_error *err)
{
    const tn_part *p = &s->entries[i].tensor->parts[k];
    uint64_t count = 0, bits = tn_dtype_get(p->array.dtype)->bits, step = (uint64_t)CHUNK / bits * 8;
    tn_status status = tn_shape_count(p->array.rank, p->array.shape, &count);
    for (uint64_t at = 0; at < count && !status; at += step) {
        uint64_t n = count - at < step ? count - at : step;
        size_t bytes = (size_t)((n * bits + 7) / 8);
        status = tn_view_read(s->entries[i].view, k, at, n, buffer, bytes, err);
        if (!status)
            status = tn_writer_write(w, i, k, buffer, bytes, err);
        s->done += bytes;
        if (!status && core_job_progress(&s->job, s->done, s->total)) {
            *err = (tn_error){ .status = TN_ERR_CANCELLED, .offset = TN_NO_OFFSET, .text = "cancelled" };
            status = TN_ERR_CANCELLED;
        }
    }
    return status;
}

static tn_status write_entry(save_job *s, tn_writer *w, size_t i, void *buffer, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < s->entries[i].tensor->nparts && s->entries[i].view && !status; k++)
        status = write_part(s, w, i, k, buffer, err);
    return status;
}

static tn_status run_save(core_job *job, tn_error *err)
{
    save_job *s = (save_job *)job;
    tn_writer *w = NULL;
    void *buffer = malloc(CHUNK);
    *err = (tn_error){ .status = TN_ERR_NOMEM, .offset = TN_NO_OFFSET };
    tn_status status = buffer ? tn_create(s->path, &s->o.create, &w, err) : TN_ERR_NOMEM;
    for (size_t i = 0; i < s->nmeta && !status; i++)
        status = tn_writer_add_meta(w, &s->meta[i], err);
    for (size_t i = 0; i < s->count && !status; i++)
        status = tn_writer_add(w, s->entries[i].tensor, err);
    for (size_t i = 0; i < s->count && !status; i++)
        status = write_entry(s, w, i, buffer, err);
    free(buffer);
    if (!status)
        return tn_writer_finish(w, err);
    tn_writer_abandon(w);
    return status;
}

static void end_save(core_job *job)
{
    save_job *s = (save_job *)job;
    for (size_t i = 0; i < s->count; i++) {
        tn_view_close(s->entries[i].view);
        PyMem_Free(s->entries[i].tensor);
    }
    for (size_t i = 0; i < s->used; i++)
        core_unuse(((core_tensor *)PyTuple_GetItem(s->tensors, (Py_ssize_t)i))->home);
    free(s->path);
    PyMem_Free(s->entries);
    PyMem_Free(s->meta);
    PyMem_Free(s->texts);
    Py_XDECREF(s->tensors);
    Py_XDECREF(s->kept);
    core_free_convert(&s->o);
}

/* ---- from Python ---- */

/* Parts that are in memory are written from there; of others only the description is taken. */
static bool add_entry(save_job *s, core_tensor *t, const char *name)
{
    entry *e = &s->entries[s->count];
    tn_error err;
    bool is_there = !t->home->view;
    tn_tensor named = *t->tensor;
    named.name = name;
    e->tensor = core_describe(&named, 0);
    if (!e->tensor)
        return false;
    s->count++;
    tn_part *parts = (tn_part *)e->tensor->parts;       /* our own copy */
    for (uint32_t k = 0; k < named.nparts; k++)
        is_there &= parts[k].data && !parts[k].padded && !parts[k].array.stride;
    for (uint32_t k = 0; k < named.nparts; k++) {
        parts[k].data = is_there ? parts[k].data : NULL;
        parts[k].stored = NULL;
        s->total += is_there ? 0 : parts[k].nbytes;
    }
    if (!is_there && core_tensor_view(t, &e->view, &err)) {
        core_raise(s->job.state, &err);
        return false;
    }
    return true;
}

static bool add_entries(save_job *s, PyObject *names, PyObject *tensors)
{
    Py_ssize_t n = PyTuple_Size(tensors);
    bool failed = n < 0 || PyTuple_Size(names) != n;
    s->entries = PyMem_Calloc((size_t)(failed ? 0 : n) + 1, sizeof *s->entries);
    s->tensors = Py_NewRef(tensors);
    for (Py_ssize_t i = 0; i < n && s->entries && !failed; i++) {
        core_tensor *t = (core_tensor *)PyTuple_GetItem(tensors, i);
        const char *name = core_text(PyTuple_GetItem(names, i), &failed);
        if (failed || !core_is_tensor(s->job.state, (PyObject *)t) || !core_use(t->home)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "expected tensors");
            return false;
        }
        s->used++;
        failed = !add_entry(s, t, name);
    }
    return s->entries && !failed;
}

static bool add_meta(save_job *s, PyObject *texts)
{
    size_t n;
    s->kept = Py_NewRef(texts);
    if (!core_texts(texts, &s->texts, &n))
        return false;
    s->nmeta = n / 2;
    s->meta = PyMem_Calloc(s->nmeta + 1, sizeof *s->meta);
    for (size_t i = 0; i < s->nmeta && s->meta; i++)
        s->meta[i] = (tn_meta){ .key = s->texts[2 * i], .text = s->texts[2 * i + 1] };
    return s->meta != NULL;
}

/* save(path, names, tensors, metadata texts, options, progress) -> notes */
static PyObject *save(PyObject *module, PyObject *args)
{
    const char *path;
    PyObject *names, *tensors, *meta, *options, *progress;
    if (!PyArg_ParseTuple(args, "yO!O!OOO", &path, &PyTuple_Type, &names, &PyTuple_Type, &tensors, &meta,
                          &options,
                          &progress))
        return NULL;
    save_job *s = core_job_new(core_state_of(module), sizeof *s, NULL, NULL);
    if (!s)
        return NULL;
    s->job.run = run_save;
    s->job.end = end_save;
    s->path = strdup(path);
    if (!s->path || !core_read_options(options, &s->o) || !add_entries(s, names, tensors) ||
        !add_meta(s, meta)) {
        core_job_free(&s->job);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    if (!core_job_run(&s->job, progress))
        return NULL;
    PyObject *notes = PyUnicode_DecodeUTF8(s->o.notes, (Py_ssize_t)strlen(s->o.notes), "replace");
    core_job_free(&s->job);
    return notes;
}

PyMethodDef core_save_functions[] = {
    { "save", save, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
