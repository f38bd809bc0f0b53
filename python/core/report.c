/* python/core/report.c - reports: a page, its data and its summary. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

typedef struct report_job {
    core_job          job;
    tn_report_options options;
    const char      **types, **only;
    PyObject         *kept;     /* what the texts are in */
    const char       *path;     /* or NULL */
    bool              replace;
    tn_report        *report;
    const char       *data, *summary;
    size_t            data_size, summary_size;
} report_job;

static void end_report(core_job *job)
{
    report_job *r = (report_job *)job;
    tn_report_free(r->report);
    PyMem_Free(r->types);
    PyMem_Free(r->only);
    Py_XDECREF(r->kept);
}

static tn_status run_report(core_job *job, tn_error *err)
{
    report_job *r = (report_job *)job;
    r->options.against = job->homes[1] ? core_home_file(job->homes[1]) : NULL;
    tn_status status = tn_report_make(core_home_file(job->homes[0]), &r->options, &r->report, err);
    if (!status)
        status = tn_report_text(r->report, TN_REPORT_DATA, &r->data, &r->data_size, err);
    if (!status)
        status = tn_report_text(r->report, TN_REPORT_SUMMARY, &r->summary, &r->summary_size, err);
    if (!status && r->path)
        status = tn_report_save(r->report, r->path, r->replace, err);
    return status;
}

static bool are_homes(core_state *state, PyObject *home, PyObject *against)
{
    bool fine = PyObject_TypeCheck(home, state->home_type) &&
                (against == Py_None || PyObject_TypeCheck(against, state->home_type));
    if (!fine)
        PyErr_SetString(PyExc_TypeError, "expected an open file");
    return fine;
}

/* report(home, path or None, types, home of another file or None, only, replace, jobs, progress)
 * -> (JSON, HTML of the summary) */
static PyObject *report(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *home, *path, *types, *against, *only, *progress;
    unsigned jobs;
    int replace;
    bool failed = false;
    if (!PyArg_ParseTuple(args, "OOO!OOpIO", &home, &path, &PyTuple_Type, &types, &against, &only, &replace,
                          &jobs, &progress) ||
        !are_homes(state, home, against))
        return NULL;
    report_job *r = core_job_new(state, sizeof *r, (core_home *)home,
                                 against == Py_None ? NULL : (core_home *)against);
    if (!r)
        return NULL;
    r->job.end = end_report;
    r->job.run = run_report;
    r->replace = replace;
    r->options = (tn_report_options){ .size = sizeof r->options, .jobs = jobs, .context = r,
                                      .progress = core_job_progress };
    r->kept = PyTuple_Pack(3, path, types, only);
    r->path = core_text(path, &failed);
    if (failed || !r->kept || !core_texts(types, &r->types, &r->options.ntypes) ||
        !core_texts(only, &r->only, &r->options.nonly)) {
        core_job_free(&r->job);
        return NULL;
    }
    r->options.types = r->types;
    r->options.only = r->only;
    if (!core_job_run(&r->job, progress))
        return NULL;
    PyObject *result = Py_BuildValue("(s#s#)", r->data, (Py_ssize_t)r->data_size, r->summary,
                                     (Py_ssize_t)r->summary_size);
    core_job_free(&r->job);
    return result;
}

PyMethodDef core_report_functions[] = {
    { "report", report, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
