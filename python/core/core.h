/* python/core/core.h - the C half of the Python package: files and tensors as Python objects.
 *
 * Only the limited API of Python 3.11 is used, and nothing is static: every interpreter has its own state.
 *
 * A Home is what keeps a tensor's description and data: an open file, arrays in memory, or a view with its
 * steps.  Tensors refer to their Home.  Whoever looks at data (a buffer, a running call) holds a use of it:
 * a file that is closed meanwhile is really closed when the last use ends. */
#ifndef TENON_PYTHON_CORE_H
#define TENON_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <tenon/tenon.h>

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC diagnostic ignored "-Wpedantic"     /* Python keeps functions in pointers to objects */

typedef struct core_state {
    PyTypeObject *home_type, *file_type, *tensor_type, *plan_type, *offer_type;
    PyObject     *tensor_class;     /* tenon.Tensor */
    PyObject     *make_error;       /* tenon._errors.make */
    PyObject     *type_names[TN_DTYPE_COUNT];   /* made once */
} core_state;

core_state *core_state_of(PyObject *module);

#define core_set(place, value) do { PyObject *before_ = (PyObject *)(place); (place) = (value); \
                                    Py_XDECREF(before_); } while (0)

/* ---- errors ---- */

/* Raises the exception of a failed call; always returns NULL. */
PyObject *core_raise(core_state *state, const tn_error *err);

/* ---- homes ---- */

typedef struct core_home core_home;
struct core_home {
    PyObject_HEAD
    core_state   *state;
    atomic_long   uses;         /* 1 for being open, and 1 for each user */
    atomic_bool   is_closed;
    tn_file      *file;         /* to be closed; NULL where nothing is in a file */
    const tn_file *lent;        /* or one that an attachment has */
    tn_attachment *attachment;
    Py_buffer    *buffers;      /* that tensors or the file lie in */
    size_t        nbuffers;
    tn_buffer    *shared;       /* memory of another library or process */
    bool          is_writable;  /* what is in it may be changed */
    void         *memory;       /* of descriptions, see core_describe() */
    PyObject     *kept;         /* a Python file, or a tuple: the tensors that a view is of, in use */
    tn_view      *view;
    PyObject     *step, *text;  /* that made it of them */
    pthread_mutex_t lock;       /* of the view: one thread at a time may use it */
};

core_home *core_home_new(core_state *state);
bool       core_use(core_home *home);           /* false, with ValueError: it is closed */
void       core_unuse(core_home *home);         /* by any thread; may close the file */
void       core_home_close(core_home *home);
const tn_file *core_home_file(const core_home *home);

/* ---- tensors ---- */

/* Where elements are, in memory. */
typedef struct core_place {
    const void    *data;
    const int64_t *stride;      /* in elements; NULL: dense */
} core_place;

typedef struct core_tensor {
    PyObject_HEAD
    core_home       *home;
    const tn_tensor *tensor;    /* lives as long as somebody uses the home */
    core_place       place;     /* data is NULL: elements must be read */
    void            *own;       /* memory of a description that the home does not have */
    bool             is_raw;    /* its buffer has the bits of elements as integers */
} core_tensor;

PyObject *core_tensor_new(core_home *home, const tn_tensor *tensor);
bool      core_is_tensor(core_state *state, PyObject *object);

/* Reads all elements as `dtype`, dense; without the GIL.  TN_UNKNOWN: of the tensor's own type. */
tn_status core_tensor_read(core_tensor *t, tn_dtype dtype, void *buffer, size_t size, tn_error *err);

/* Opens a view of it, of its own; closed by the caller.  The home is in use. */
tn_status core_tensor_view(core_tensor *t, tn_view **view, tn_error *err);

/* Bytes of the tensor's shape with elements of a type. */
tn_status core_dense_bytes(const tn_tensor *t, tn_dtype dtype, uint64_t *bytes);

/* ---- long calls ---- */

/* A call of the library that may take long: it runs in a thread of its own while the caller waits and looks
 * for signals.  Where Ctrl-C meets a call that does not stop soon, that goes on alone, and `end` is called by
 * its thread. */
typedef struct core_job core_job;
struct core_job {
    tn_status   (*run)(core_job *job, tn_error *err);
    void        (*end)(core_job *job);  /* gives back all that it holds, with the GIL */
    core_state   *state;
    core_home    *homes[3];     /* in use while it runs; NULL where there are fewer */
    atomic_bool   is_cancelled;
    atomic_ullong done, total;
    pthread_mutex_t lock;
    pthread_cond_t  ended;
    bool          has_ended, is_abandoned;
    tn_status     status;
    tn_error      err;
};

/* Allocates a job of `size` bytes whose first member is core_job, and takes its homes into use. */
void *core_job_new(core_state *state, size_t size, core_home *first, core_home *second);

/* Runs it: true on success.  Else an exception is set, and the job may be gone.  On success the caller calls
 * core_job_free().  progress is a callable or None. */
bool core_job_run(core_job *job, PyObject *progress);
void core_job_free(core_job *job);

/* The tn_progress_fn of a job, which is the context. */
int core_job_progress(void *job, uint64_t done, uint64_t total);

/* ---- arguments and results ---- */

/* A text, or NULL for None; with *failed set and an exception for anything else. */
const char *core_text(PyObject *object, bool *failed);

/* A list of texts as C strings: they live as long as the list, which must be a tuple.  PyMem_Free() it. */
bool core_texts(PyObject *tuple, const char ***texts, size_t *n);

/* Extents from a tuple of integers, at most TN_MAX_RANK; false with an exception. */
bool core_shape(PyObject *tuple, uint32_t *rank, int64_t *shape);

PyObject *core_shape_tuple(uint32_t rank, const int64_t *shape);
PyObject *core_text_or_none(const char *text);
PyObject *core_type_name(tn_dtype dtype);       /* or None */
bool      core_type(const char *text, tn_dtype *dtype);         /* false with an exception */

/* Metadata as [(key, text or None, JSON)]. */
PyObject *core_meta(const tn_meta *meta, size_t n);

/* Copies a description into one block of memory, with `extra` bytes behind it; NULL with an exception. */
tn_tensor *core_describe(const tn_tensor *tensor, size_t extra);

/* ---- the module's functions and types, one file each ---- */

bool core_add_home(PyObject *module, core_state *state);
bool core_add_file(PyObject *module, core_state *state);
bool core_add_tensor(PyObject *module, core_state *state);
bool core_add_plan(PyObject *module, core_state *state);
bool core_add_offer(PyObject *module, core_state *state);

extern PyMethodDef core_array_functions[], core_verb_functions[], core_convert_functions[],
    core_save_functions[], core_share_functions[], core_dlpack_functions[], core_report_functions[],
    core_work_functions[];

PyObject *core_dlpack(core_tensor *t, bool is_versioned, bool may_copy, bool must_copy);

/* The options of a conversion, read from a dictionary of Python's; all strings live as long as it. */
typedef struct core_convert_options {
    tn_create_options  create;
    tn_convert_options convert;
    PyObject          *kept;    /* the dictionary */
    void              *lists[5];
    char               notes[2048];     /* what the user should know, one line each */
    size_t             lossy;           /* tensors that a cast lost much of... */
    tn_cast_report     lost;            /* ...the type of the first, and the counts of all */
    char               first[200];      /* ...and the name of the first */
} core_convert_options;

/* The tn_note_fn of options, which are the context. */
void core_take_note(void *options, const char *path, const char *text);

/* Notes what a cast lost, and says it in the notes once all is done. */
void core_add_lost(core_convert_options *o, const tn_cast_report *lost);
void core_note_lost(core_convert_options *o);

bool core_read_options(PyObject *options, core_convert_options *o);
void core_free_convert(core_convert_options *o);

#endif
