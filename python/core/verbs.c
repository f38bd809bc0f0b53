/* python/core/verbs.c - stats, verify, diff, compare_types, describe and check. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* A job that collects rows: they are copied as they come, from a thread without the GIL. */
typedef struct rows {
    core_job     job;
    union {
        tn_stats_options             stats;
        tn_verify_options            verify;
        tn_compare_options           compare;
        tn_compare_datatypes_options types;
    } options;
    const char **only;
    size_t       nonly;
    const char **rename;
    size_t       nrename;
    PyObject    *kept;          /* the tuple of `only` and others */
    tn_datatype **datatypes;
    size_t       ndatatypes;
    char        *items;
    size_t       item, count, cap;      /* bytes of one, how many */
    bool         is_full;       /* no memory for more */
} rows;

static void *add_row(rows *r)
{
    if (r->count == r->cap) {
        size_t cap = 2 * r->cap + 16;
        char *more = realloc(r->items, cap * r->item);
        if (!more) {
            r->is_full = true;
            return NULL;
        }
        r->items = more;
        r->cap = cap;
    }
    return memset(r->items + r->item * r->count++, 0, r->item);
}

static void end_rows(core_job *job)
{
    rows *r = (rows *)job;
    PyMem_Free(r->only);
    PyMem_Free(r->rename);
    for (size_t i = 0; i < r->ndatatypes; i++)
        tn_datatype_free(r->datatypes[i]);
    PyMem_Free(r->datatypes);
    Py_XDECREF(r->kept);
    free(r->items);
}

static rows *new_rows(PyObject *module, PyObject *first, PyObject *second, PyObject *only, size_t item)
{
    core_state *state = core_state_of(module);
    if (!PyObject_TypeCheck(first, state->home_type) || (second && !PyObject_TypeCheck(second,
                                                                                       state->home_type))) {
        PyErr_SetString(PyExc_TypeError, "expected an open file");
        return NULL;
    }
    rows *r = core_job_new(state, sizeof *r, (core_home *)first, (core_home *)second);
    if (!r)
        return NULL;
    r->job.end = end_rows;
    r->item = item;
    r->kept = Py_NewRef(only);
    if (core_texts(only, &r->only, &r->nonly))
        return r;
    core_job_free(&r->job);
    return NULL;
}

static const tn_file *file_of(const rows *r, size_t i) { return core_home_file(r->job.homes[i]); }

/* Each row as Python's, and the end of the job. */
static PyObject *give_rows(rows *r, PyObject *(*make)(const rows *r, const void *row))
{
    PyObject *list = r->is_full ? PyErr_NoMemory() : PyList_New(0);
    for (size_t i = 0; list && i < r->count; i++) {
        PyObject *row = make(r, r->items + i * r->item);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    core_job_free(&r->job);
    return list;
}

/* ---- stats ---- */

typedef struct stats_row {
    const tn_tensor *tensor;    /* NULL: all together */
    tn_statistics    s;
    bool             is_unread;
    char             why[TN_ERROR_LINE];
} stats_row;

static void take_stats(void *context, const tn_tensor *tensor, const tn_statistics *s, const tn_error *why)
{
    stats_row *row = add_row(context);
    if (!row)
        return;
    row->tensor = tensor;
    row->s = *s;
    row->is_unread = why != NULL;
    if (why)
        tn_error_format(why, row->why, sizeof row->why);
}

static PyObject *make_stats(const rows *r, const void *item)
{
    const stats_row *row = item;
    const tn_statistics *s = &row->s;
    (void)r;
    PyObject *histogram = PyTuple_New(TN_STATS_BINS);
    for (int i = 0; histogram && i < TN_STATS_BINS; i++)
        PyTuple_SetItem(histogram, i, PyLong_FromUnsignedLongLong(s->histogram[i]));
    PyObject *name = core_text_or_none(row->tensor ? row->tensor->name : NULL);
    PyObject *type = core_type_name(row->tensor ? row->tensor->dtype : TN_UNKNOWN);
    PyObject *shape = row->tensor ? core_shape_tuple(row->tensor->rank, row->tensor->shape) : PyTuple_New(0);
    PyObject *why = core_text_or_none(row->is_unread ? row->why : NULL);
    if (!histogram || !name || !type || !shape || !why) {
        Py_XDECREF(histogram), Py_XDECREF(name), Py_XDECREF(type), Py_XDECREF(shape), Py_XDECREF(why);
        return NULL;
    }
    double density = s->count ? (double)(s->count - s->zeros) / (double)s->count : 0;
    return Py_BuildValue("(NNNNKKddddddKKKKN)", name, type, shape, why, (unsigned long long)s->count,
                         (unsigned long long)s->finite, s->min, s->max, s->mean, s->deviation, s->absmax,
                         density,
                         (unsigned long long)s->zeros, (unsigned long long)s->subnormals,
                         (unsigned long long)s->nans, (unsigned long long)s->infinities, histogram);
}

static tn_status run_stats(core_job *job, tn_error *err)
{
    rows *r = (rows *)job;
    return tn_stats(file_of(r, 0), &r->options.stats, take_stats, err);
}

/* stats(home, only, jobs, progress) */
static PyObject *stats(PyObject *module, PyObject *args)
{
    PyObject *home, *only, *progress;
    unsigned jobs;
    if (!PyArg_ParseTuple(args, "OOIO", &home, &only, &jobs, &progress))
        return NULL;
    rows *r = new_rows(module, home, NULL, only, sizeof(stats_row));
    if (!r)
        return NULL;
    r->job.run = run_stats;
    r->options.stats = (tn_stats_options){ .size = sizeof r->options.stats, .jobs = jobs, .context = r,
                                           .progress = core_job_progress, .only = r->only,
                                           .nonly = r->nonly };
    return core_job_run(&r->job, progress) ? give_rows(r, make_stats) : NULL;
}

/* ---- verify ---- */

typedef struct verify_row {
    const tn_tensor *tensor;    /* NULL: something beside the file */
    const tn_part   *part;
    int              verdict;   /* tn_verdict; beside: whether it is doubtful */
    tn_error         why;
} verify_row;

static void take_verdict(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                         const tn_error *why)
{
    verify_row *row = add_row(context);
    if (row)
        *row = (verify_row){ tensor, part, (int)verdict, *why };
}

static void take_beside(void *context, const char *text, bool doubtful)
{
    verify_row *row = add_row(context);
    if (!row)
        return;
    row->verdict = doubtful;
    row->why.offset = TN_NO_OFFSET;
    PyOS_snprintf(row->why.text, sizeof row->why.text, "%s", text);
}

/* (name, part, verdict, why, offset, checksum kind) */
static PyObject *make_verdict(const rows *r, const void *item)
{
    const verify_row *row = item;
    tn_stored_info stored = { .size = sizeof stored };
    (void)r;
    if (row->tensor)
        tn_part_stored(row->tensor, row->part, &stored);
    PyObject *name = core_text_or_none(row->tensor ? row->tensor->name : NULL);
    PyObject *offset = row->why.offset == TN_NO_OFFSET ? Py_NewRef(Py_None)
                                                       : PyLong_FromUnsignedLongLong(row->why.offset);
    if (!name || !offset) {
        Py_XDECREF(name), Py_XDECREF(offset);
        return NULL;
    }
    return Py_BuildValue("(NzisNi)", name, row->part ? row->part->role : NULL, row->verdict, row->why.text,
                         offset,
                         (int)stored.checksum);
}

static tn_status run_verify(core_job *job, tn_error *err)
{
    rows *r = (rows *)job;
    return tn_verify(file_of(r, 0), &r->options.verify, take_verdict, err);
}

/* verify(home, jobs, progress) */
static PyObject *verify(PyObject *module, PyObject *args)
{
    PyObject *home, *progress;
    unsigned jobs;
    if (!PyArg_ParseTuple(args, "OIO", &home, &jobs, &progress))
        return NULL;
    rows *r = new_rows(module, home, NULL, Py_None, sizeof(verify_row));
    if (!r)
        return NULL;
    r->job.run = run_verify;
    r->options.verify = (tn_verify_options){ .size = sizeof r->options.verify, .jobs = jobs, .context = r,
                                             .progress = core_job_progress, .beside = take_beside };
    return core_job_run(&r->job, progress) ? give_rows(r, make_verdict) : NULL;
}

/* ---- diff ---- */

typedef struct diff_row {
    tn_difference d;            /* `why` and `value` are not valid */
    char          why[480];
} diff_row;

static void take_difference(void *context, const tn_difference *d)
{
    diff_row *row = add_row(context);
    if (!row)
        return;
    row->d = *d;
    if (d->why)
        PyOS_snprintf(row->why, sizeof row->why, "%s", d->why);
}

/* (form, type, shape, datatype, nbytes, elements) or None */
static PyObject *make_side(const tn_tensor *t)
{
    uint64_t bytes = 0, count = 0;
    if (!t)
        Py_RETURN_NONE;
    for (uint32_t k = 0; k < t->nparts; k++)
        bytes += t->parts[k].nbytes;
    tn_shape_count(t->rank, t->shape, &count);
    PyObject *type = core_type_name(t->dtype), *shape = core_shape_tuple(t->rank, t->shape);
    if (!type || !shape) {
        Py_XDECREF(type), Py_XDECREF(shape);
        return NULL;
    }
    return Py_BuildValue("(sNNzd)", tn_tensor_form_name(t), type, shape,
                         t->scaling ? t->scaling->datatype : NULL,
                         count ? 8 * (double)bytes / (double)count : 0.0);
}

/* (name, name in b, what, a, b, values, why) */
static PyObject *make_difference(const rows *r, const void *item)
{
    const diff_row *row = item;
    const tn_difference *d = &row->d;
    const tn_tensor *either = d->a ? d->a : d->b;
    (void)r;
    PyObject *a = make_side(d->a), *b = make_side(d->b);
    if (!a || !b) {
        Py_XDECREF(a), Py_XDECREF(b);
        return NULL;
    }
    return Py_BuildValue("(zzINN(zKKKKKddddKK)s)", either ? either->name : NULL,
                         d->b ? d->b->name : NULL, d->what, a, b,
                         d->part ? d->part->role : NULL, (unsigned long long)d->elements,
                         (unsigned long long)d->differing, (unsigned long long)d->first,
                         (unsigned long long)d->bits, (unsigned long long)d->specials, d->max_abs, d->max_rel,
                         d->max_ulp, d->sqnr, (unsigned long long)d->saturated,
                         (unsigned long long)d->flushed,
                         row->why);
}

static tn_status run_compare(core_job *job, tn_error *err)
{
    rows *r = (rows *)job;
    size_t different;
    return tn_compare(file_of(r, 0), file_of(r, 1), &r->options.compare, take_difference, &different, err);
}

/* diff(home a, home b, ignore metadata, only, rename, tolerance, relative, jobs, progress) */
static PyObject *diff(PyObject *module, PyObject *args)
{
    PyObject *a, *b, *only, *rename, *progress;
    unsigned jobs;
    int ignore_meta;
    double tolerance, relative;
    if (!PyArg_ParseTuple(args, "OOpOOddIO", &a, &b, &ignore_meta, &only, &rename, &tolerance, &relative,
                          &jobs,
                          &progress))
        return NULL;
    rows *r = new_rows(module, a, b, only, sizeof(diff_row));
    if (!r)
        return NULL;
    core_set(r->kept, PyTuple_Pack(2, only, rename));
    if (!r->kept || !core_texts(rename, &r->rename, &r->nrename)) {
        core_job_free(&r->job);
        return NULL;
    }
    r->job.run = run_compare;
    r->options.compare = (tn_compare_options){
        .size = sizeof r->options.compare, .jobs = jobs, .context = r, .ignore_meta = ignore_meta,
        .progress = core_job_progress, .only = r->only, .nonly = r->nonly, .rename = r->rename,
        .nrename = r->nrename, .tolerance = tolerance, .relative = relative };
    return core_job_run(&r->job, progress) ? give_rows(r, make_difference) : NULL;
}

/* ---- compare types ---- */

typedef struct type_row {
    const tn_tensor  *tensor;
    bool              fits;
    double            bits;
    tn_quantize_stats s;
} type_row;

static void take_quantized(void *context, const tn_quantize_report *q)
{
    type_row *row = add_row(context);
    if (!row)
        return;
    row->tensor = q->source;
    row->fits = q->report != NULL;
    row->bits = q->bits;
    if (q->report)
        row->s = *q->report;
}

/* (tensor's name, bits or None, values, saturated, flushed, signal, noise, max_error) */
static PyObject *make_quantized(const rows *r, const void *item)
{
    const type_row *row = item;
    const tn_quantize_stats *s = &row->s;
    (void)r;
    PyObject *bits = row->fits ? PyFloat_FromDouble(row->bits) : Py_NewRef(Py_None);
    return bits ? Py_BuildValue("(sNKKKddd)", row->tensor->name, bits, (unsigned long long)s->values,
                                (unsigned long long)s->saturated, (unsigned long long)s->flushed, s->signal,
                                s->noise, s->max_error)
                : NULL;
}

static tn_status run_types(core_job *job, tn_error *err)
{
    rows *r = (rows *)job;
    return tn_compare_datatypes(file_of(r, 0), (const tn_datatype *const *)r->datatypes, r->ndatatypes,
                                &r->options.types, take_quantized, err);
}

static bool load_datatypes(rows *r, PyObject *tuple)
{
    const char **texts;
    size_t n;
    tn_error err;
    bool fine = core_texts(tuple, &texts, &n) && (r->datatypes = PyMem_Calloc(n + 1, sizeof *r->datatypes));
    for (size_t i = 0; i < n && fine; i++) {
        fine = tn_datatype_load(texts[i], &r->datatypes[i], &err) == TN_OK;
        if (!fine)
            core_raise(r->job.state, &err);
        r->ndatatypes += fine;
    }
    PyMem_Free(texts);
    return fine;
}

/* compare_types(home, datatypes, only, cast defaults or None, jobs, progress) */
static PyObject *compare_types(PyObject *module, PyObject *args)
{
    PyObject *home, *types, *only, *progress, *defaults;
    unsigned jobs;
    bool failed = false;
    if (!PyArg_ParseTuple(args, "OO!OOIO", &home, &PyTuple_Type, &types, &only, &defaults, &jobs, &progress))
        return NULL;
    const char *text = core_text(defaults, &failed);
    rows *r = failed ? NULL : new_rows(module, home, NULL, only, sizeof(type_row));
    if (!r)
        return NULL;
    core_set(r->kept, PyTuple_Pack(2, only, defaults));
    if (!r->kept || !load_datatypes(r, types)) {
        core_job_free(&r->job);
        return NULL;
    }
    r->job.run = run_types;
    r->options.types = (tn_compare_datatypes_options){
        .size = sizeof r->options.types, .jobs = jobs, .context = r, .progress = core_job_progress,
        .only = r->only, .nonly = r->nonly, .cast_defaults = text };
    return core_job_run(&r->job, progress) ? give_rows(r, make_quantized) : NULL;
}

/* ---- descriptors ---- */

/* describe(home, name or None, list) -> JSON */
static PyObject *describe(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    core_home *home;
    const char *name;
    int list;
    if (!PyArg_ParseTuple(args, "O!zp", state->home_type, &home, &name, &list) || !core_use(home))
        return NULL;
    const tn_tensor *tensor = name ? tn_file_find(core_home_file(home), name) : NULL;
    tn_descriptors *set = NULL;
    char *json = NULL;
    size_t size = 0;
    tn_error err = { .status = TN_OK };
    PyObject *text = NULL;
    if (name && !tensor) {
        PyErr_SetString(PyExc_KeyError, name);
    } else {
        tn_status status;
        Py_BEGIN_ALLOW_THREADS
        status = tn_describe(core_home_file(home), tensor, &set, &err);
        if (!status)
            status = tn_descriptors_write(tn_descriptors_at(set, 0), tn_descriptors_count(set), list, &json,
                                          &size,
                                          &err);
        Py_END_ALLOW_THREADS
        text = status ? core_raise(state, &err) : PyUnicode_DecodeUTF8(json, (Py_ssize_t)size, "strict");
    }
    free(json);
    tn_descriptors_free(set);
    core_unuse(home);
    return text;
}

typedef struct findings {
    PyObject  *list;
    Py_ssize_t descriptor;
} findings;

static void take_finding(void *context, const tn_wia_finding *f)
{
    findings *all = context;
    PyObject *row = all->list ? Py_BuildValue("(nNss)", all->descriptor, PyBool_FromLong(f->remark), f->path,
                                              f->text)
                              : NULL;
    if (all->list && (!row || PyList_Append(all->list, row) < 0))
        Py_CLEAR(all->list);
    Py_XDECREF(row);
}

/* check(JSON, strict) -> [(descriptor, is a remark, path, text)] */
static PyObject *check(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    const char *json;
    Py_ssize_t n;
    int strict;
    tn_descriptors *set = NULL;
    tn_error err;
    if (!PyArg_ParseTuple(args, "s#p", &json, &n, &strict))
        return NULL;
    if (tn_descriptors_parse(json, (size_t)n, &set, &err))
        return core_raise(state, &err);
    findings all = { .list = PyList_New(0) };
    const tn_check_options options = { .size = sizeof options, .strict = strict, .report = take_finding,
                                       .context = &all };
    for (size_t i = 0; all.list && i < tn_descriptors_count(set); i++) {
        size_t wrong;
        all.descriptor = (Py_ssize_t)i;
        if (tn_descriptor_check(tn_descriptors_at(set, i), &options, &wrong, &err)) {
            core_raise(state, &err);
            Py_CLEAR(all.list);
        }
    }
    tn_descriptors_free(set);
    return all.list;
}

PyMethodDef core_verb_functions[] = {
    { "stats", stats, METH_VARARGS, NULL },
    { "verify", verify, METH_VARARGS, NULL },
    { "diff", diff, METH_VARARGS, NULL },
    { "compare_types", compare_types, METH_VARARGS, NULL },
    { "describe", describe, METH_VARARGS, NULL },
    { "check", check, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
