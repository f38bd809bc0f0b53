/* python/core/module.c - the module: its state, its types, its functions. */
#include "core.h"

#include <string.h>

core_state *core_state_of(PyObject *module) { return PyModule_GetState(module); }

PyObject *core_raise(core_state *state, const tn_error *err)
{
    char line[TN_ERROR_LINE];
    tn_error_format(err, line, sizeof line);
    if (err->status == TN_ERR_NOMEM)
        return PyErr_NoMemory();
    if (!state->make_error) {
        PyErr_SetString(PyExc_RuntimeError, line);
        return NULL;
    }
    PyObject *offset = err->offset == TN_NO_OFFSET ? Py_NewRef(Py_None)
                                                   : PyLong_FromUnsignedLongLong(err->offset);
    if (!offset)
        return NULL;
    PyObject *raised = PyObject_CallFunction(state->make_error, "iiNsssss", (int)err->status,
                                             (int)err->reason,
                                             offset, err->file, err->tensor, err->value, err->text, line);
    if (raised) {
        PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
        Py_DECREF(raised);
    }
    return NULL;
}

/* ---- what Python asks of the library as a whole ---- */

static PyObject *set_classes(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of(module);
    PyObject *tensor, *make_error;
    if (!PyArg_ParseTuple(args, "OO", &tensor, &make_error))
        return NULL;
    core_set(state->tensor_class, Py_NewRef(tensor));
    core_set(state->make_error, Py_NewRef(make_error));
    Py_RETURN_NONE;
}

/* {name: (bits, kind, numpy, torch, safetensors, short)} */
static PyObject *types(PyObject *module, PyObject *unused)
{
    static const char *const kinds[] = { "none", "float", "int", "uint", "bool", "complex", "fixed" };
    (void)module, (void)unused;
    PyObject *all = PyDict_New();
    for (int i = 1; all && i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *t = tn_dtype_get((tn_dtype)i);
        PyObject *row = t ? Py_BuildValue("(iszzzz)", t->bits, kinds[t->kind], t->numpy, t->torch,
                                          t->safetensors, t->short_name) : NULL;
        if (t && (!row || PyDict_SetItemString(all, t->name, row) < 0))
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    return all;
}

static PyObject *type_name(PyObject *module, PyObject *text)
{
    bool failed = false;
    tn_dtype dtype;
    const char *name = core_text(text, &failed);
    (void)module;
    if (failed || !core_type(name ? name : "", &dtype))
        return NULL;
    return core_type_name(dtype);
}

static PyObject *formats(PyObject *module, PyObject *unused)
{
    const tn_format_info *f;
    PyObject *all = PyList_New(0);
    (void)module, (void)unused;
    for (size_t i = 0; all && (f = tn_format_at(i)); i++) {
        PyObject *row = Py_BuildValue("(sssii)", f->name, f->suffix, f->title, (int)f->reads, (int)f->writes);
        if (!row || PyList_Append(all, row) < 0)
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    return all;
}

static PyObject *datatypes(PyObject *module, PyObject *unused)
{
    const tn_datatype_name *d;
    PyObject *all = PyList_New(0);
    (void)module, (void)unused;
    for (size_t i = 0; all && (d = tn_datatype_at(i)); i++) {
        PyObject *row = Py_BuildValue("(sss)", d->name, d->text, d->family);
        if (!row || PyList_Append(all, row) < 0)
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    return all;
}

static PyObject *status_text(PyObject *module, PyObject *args)
{
    int status;
    (void)module;
    return PyArg_ParseTuple(args, "i", &status) ? PyUnicode_FromString(tn_status_text((tn_status)status))
                                                : NULL;
}

static PyObject *set_window_memory(PyObject *module, PyObject *args)
{
    unsigned long long bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &bytes))
        return NULL;
    tn_set_window_memory(bytes);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "set_window_memory", set_window_memory, METH_VARARGS, NULL },
    { "set_classes", set_classes, METH_VARARGS, NULL },
    { "types", types, METH_NOARGS, NULL },
    { "type_name", type_name, METH_O, NULL },
    { "formats", formats, METH_NOARGS, NULL },
    { "datatypes", datatypes, METH_NOARGS, NULL },
    { "status_text", status_text, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL }
};

/* ---- the module ---- */

static int execute(PyObject *module)
{
    core_state *state = core_state_of(module);
    PyMethodDef *const tables[] = { functions, core_array_functions, core_verb_functions,
                                    core_convert_functions, core_save_functions, core_share_functions,
                                    core_dlpack_functions, core_report_functions,
                                    core_work_functions };
    memset(state, 0, sizeof *state);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return -1;
    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        state->type_names[i] = core_type_name((tn_dtype)i);
        if (!state->type_names[i])
            return -1;
    }
    if (PyModule_AddStringConstant(module, "VERSION", tn_version()) < 0)
        return -1;
    return core_add_home(module, state) && core_add_file(module, state) && core_add_tensor(module, state) &&
           core_add_plan(module, state) && core_add_offer(module, state) ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const core_state *state = core_state_of(module);
    Py_VISIT(state->home_type);
    Py_VISIT(state->file_type);
    Py_VISIT(state->tensor_type);
    Py_VISIT(state->plan_type);
    Py_VISIT(state->offer_type);
    Py_VISIT(state->tensor_class);
    Py_VISIT(state->make_error);
    return 0;
}

static int clear(PyObject *module)
{
    core_state *state = core_state_of(module);
    Py_CLEAR(state->home_type);
    Py_CLEAR(state->file_type);
    Py_CLEAR(state->tensor_type);
    Py_CLEAR(state->plan_type);
    Py_CLEAR(state->offer_type);
    Py_CLEAR(state->tensor_class);
    Py_CLEAR(state->make_error);
    for (int i = 0; i < TN_DTYPE_COUNT; i++)
        Py_CLEAR(state->type_names[i]);
    return 0;
}

/* Slots of later versions than the limited API is of: a version knows its own and older ones. */
enum { MULTIPLE_INTERPRETERS = 3, GIL = 4 };    /* Py_mod_multiple_interpreters, Py_mod_gil */
#define PER_INTERPRETER_GIL ((void *)2)
#define GIL_NOT_USED        ((void *)1)

static PyModuleDef_Slot slots_311[] = { { Py_mod_exec, execute }, { 0, NULL } };
static PyModuleDef_Slot slots_312[] = { { Py_mod_exec, execute }, { MULTIPLE_INTERPRETERS,
                                                                    PER_INTERPRETER_GIL },
                                        { 0, NULL } };
static PyModuleDef_Slot slots_313[] = { { Py_mod_exec, execute }, { MULTIPLE_INTERPRETERS,
                                                                    PER_INTERPRETER_GIL },
                                        { GIL, GIL_NOT_USED }, { 0, NULL } };

#define DEFINITION(slots) { PyModuleDef_HEAD_INIT, .m_name = "tenon._core", .m_size = sizeof(core_state), \
                            .m_slots = slots, .m_traverse = traverse, .m_clear = clear }
static PyModuleDef definitions[] = { DEFINITION(slots_311), DEFINITION(slots_312), DEFINITION(slots_313) };

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    unsigned minor = (unsigned)(Py_Version >> 16 & 0xff);
    return PyModuleDef_Init(&definitions[minor < 13 ? minor - 11 : 2]);
}
