/* python/core/convert.c - conversions of whole files, and their options. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

typedef struct reader {
    PyObject *from;
    bool      failed;
} reader;

static PyObject *item(reader *r, const char *key)
{
    PyObject *value = r->failed ? NULL : PyDict_GetItemString(r->from, key);     /* borrowed */
    return value == Py_None ? NULL : value;
}

static const char *text_item(reader *r, const char *key)
{
    return core_text(item(r, key), &r->failed);
}

static uint64_t number_item(reader *r, const char *key)
{
    PyObject *value = item(r, key);
    unsigned long long number = value ? PyLong_AsUnsignedLongLong(value) : 0;
    r->failed |= value && PyErr_Occurred();
    return number;
}

static size_t texts_item(reader *r, const char *key, const char ***texts)
{
    size_t n = 0;
    r->failed |= !core_texts(item(r, key), texts, &n);
    return n;
}

void core_take_note(void *context, const char *path, const char *text)
{
    core_convert_options *o = context;
    size_t used = strlen(o->notes);
    PyOS_snprintf(o->notes + used, sizeof o->notes - used, "%s: %s\n", path, text);
}

void core_add_lost(core_convert_options *o, const tn_cast_report *lost)
{
    if (!o->lossy++) {
        o->lost.dtype = lost->dtype;
        PyOS_snprintf(o->first, sizeof o->first, "%s", lost->name);
    }
    o->lost.values += lost->values;
    o->lost.flushed += lost->flushed;
    o->lost.saturated += lost->saturated;
}

void core_note_lost(core_convert_options *o)
{
    size_t used = strlen(o->notes);
    if (o->lossy)
        PyOS_snprintf(o->notes + used, sizeof o->notes - used,
                      "tensor \"%s\"%s: of %llu values other than 0, %llu became 0 and %llu were beyond the "
                      "largest value in %s (strict=True makes this an error)\n", o->first,
                      o->lossy > 1 ? " and others" : "",
                      (unsigned long long)o->lost.values, (unsigned long long)o->lost.flushed,
                      (unsigned long long)o->lost.saturated, tn_dtype_get(o->lost.dtype)->name);
    o->lossy = 0;
}

/* Texts in threes, or in twos, become structs of as many texts. */
static void read_lists(reader *r, core_convert_options *o)
{
    const char **texts[5] = { NULL };
    size_t n[5];
    static const char *const keys[] = { "format_options", "only", "rename", "rules" };
    for (int i = 0; i < 4; i++) {
        n[i] = texts_item(r, keys[i], &texts[i]);
        o->lists[i] = texts[i];
    }
    _Static_assert(sizeof(tn_format_option) == 3 * sizeof(char *), "three texts");
    _Static_assert(sizeof(tn_rule) == 2 * sizeof(char *), "two texts");
    o->create.format_options = (const tn_format_option *)o->lists[0];
    o->create.nformat_options = n[0] / 3;
    o->convert.only = texts[1];
    o->convert.nonly = n[1];
    o->convert.rename = texts[2];
    o->convert.nrename = n[2];
    o->convert.rules = (const tn_rule *)o->lists[3];
    o->convert.nrules = n[3] / 2;
}

bool core_read_options(PyObject *options, core_convert_options *o)
{
    reader r = { options, !PyDict_Check(options) };
    o->kept = Py_NewRef(options);
    o->create = (tn_create_options){ .size = sizeof o->create, .format = text_item(&r, "format"),
        .replace = number_item(&r, "replace"), .drop_metadata = number_item(&r, "drop_metadata"),
        .drop_names = number_item(&r, "drop_names"), .align = number_item(&r, "align"),
        .shard_size = number_item(&r, "shard_size"), .encoding = (tn_encoding)number_item(&r, "encoding"),
        .level = (int)number_item(&r, "level"), .checksum = (tn_checksum)number_item(&r, "checksum"),
        .jobs = (unsigned)number_item(&r, "jobs"), .note = core_take_note, .note_context = o };
    o->convert = (tn_convert_options){ .size = sizeof o->convert, .create = &o->create,
        .encoding = (tn_keep)number_item(&r, "choose_encoding"),
        .checksum = (tn_keep)number_item(&r, "choose_checksum"), .in_order = number_item(&r, "in_order"),
        .cast_defaults = text_item(&r, "cast_defaults"), .max_bytes = number_item(&r, "max_bytes"),
        .piece_size = number_item(&r, "piece_size"),
        .raw_codes = number_item(&r, "raw_codes"), .strict = number_item(&r, "strict"),
        .map = text_item(&r, "map"), .metadata_from = text_item(&r, "metadata_from") };
    read_lists(&r, o);
    if (r.failed && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected a dictionary of options");
    return !r.failed;
}

void core_free_convert(core_convert_options *o)
{
    for (size_t i = 0; i < sizeof o->lists / sizeof *o->lists; i++)
        PyMem_Free(o->lists[i]);
    Py_CLEAR(o->kept);
}

/* ---- a conversion ---- */

typedef struct quantized {
    char             *name, *datatype;
    double            bits;
    tn_quantize_stats s;
} quantized;

typedef struct convert_job {
    core_job             job;   /* first: it is the context of callbacks */
    core_convert_options o;
    char                *path;
    tn_convert_result    result;
    quantized           *rows;
    size_t               count, cap;
} convert_job;

static void take_quantized(void *context, const tn_quantize_report *q)
{
    convert_job *c = context;
    if (c->count == c->cap) {
        quantized *more = realloc(c->rows, (2 * c->cap + 16) * sizeof *more);
        if (!more)
            return;
        c->rows = more;
        c->cap = 2 * c->cap + 16;
    }
    c->rows[c->count++] = (quantized){ strdup(q->name), strdup(q->datatype), q->bits, *q->report };
}

static void take_lost(void *context, const tn_cast_report *lost)
{
    core_add_lost(&((convert_job *)context)->o, lost);
}

static tn_status run_convert(core_job *job, tn_error *err)
{
    convert_job *c = (convert_job *)job;
    return tn_convert(core_home_file(job->homes[0]), c->path, &c->o.convert, &c->result, err);
}

static void end_convert(core_job *job)
{
    convert_job *c = (convert_job *)job;
    for (size_t i = 0; i < c->count; i++) {
        free(c->rows[i].name);
        free(c->rows[i].datatype);
    }
    free(c->rows);
    free(c->path);
    core_free_convert(&c->o);
}

static PyObject *reports(const convert_job *c)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < c->count; i++) {
        const quantized *q = &c->rows[i];
        PyObject *row = Py_BuildValue("(zzdKKKddd)", q->name, q->datatype, q->bits,
                                      (unsigned long long)q->s.values,
                                      (unsigned long long)q->s.saturated, (unsigned long long)q->s.flushed,
                                      q->s.signal, q->s.noise, q->s.max_error);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* convert(home, path, options, report, progress) -> (tensors, bytes in, bytes out, notes, reports) */
static PyObject *convert(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *home, *options, *progress;
    const char *path;
    int report;
    if (!PyArg_ParseTuple(args, "O!yOpO", state->home_type, &home, &path, &options, &report, &progress))
        return NULL;
    convert_job *c = core_job_new(state, sizeof *c, (core_home *)home, NULL);
    if (!c)
        return NULL;
    c->job.run = run_convert;
    c->job.end = end_convert;
    c->path = strdup(path);
    if (!c->path || !core_read_options(options, &c->o)) {
        core_job_free(&c->job);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    c->o.convert.progress = core_job_progress;
    c->o.convert.context = c;
    c->o.convert.quantized = report ? take_quantized : NULL;
    c->o.convert.lost = take_lost;
    if (!core_job_run(&c->job, progress))
        return NULL;
    core_note_lost(&c->o);
    PyObject *rows = reports(c);
    PyObject *result = rows ? Py_BuildValue("(KKKsN)", (unsigned long long)c->result.tensors,
                                            (unsigned long long)c->result.bytes_in,
                                            (unsigned long long)c->result.bytes_out, c->o.notes, rows)
                            : NULL;
    core_job_free(&c->job);
    return result;
}

PyMethodDef core_convert_functions[] = {
    { "convert", convert, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};
