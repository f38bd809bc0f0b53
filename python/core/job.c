/* python/core/job.c - long calls: a thread that works and one that waits, looks for signals and tells. */
#include "core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP = 50, PATIENCE = 6 };       /* milliseconds; steps that a cancelled call has to stop */

void *core_job_new(core_state *state, size_t size, core_home *first, core_home *second)
{
    core_job *job = calloc(1, size);
    core_home *const homes[] = { first, second };
    if (!job) {
        PyErr_NoMemory();
        return NULL;
    }
    job->state = state;
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    for (size_t i = 0; i < 2 && homes[i]; i++) {
        if (!core_use(homes[i])) {
            core_job_free(job);
            return NULL;
        }
        job->homes[i] = (core_home *)Py_NewRef((PyObject *)homes[i]);
    }
    return job;
}

void core_job_free(core_job *job)
{
    if (job->end)
        job->end(job);
    for (size_t i = 0; i < 3 && job->homes[i]; i++) {
        core_unuse(job->homes[i]);
        Py_DECREF((PyObject *)job->homes[i]);
    }
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->ended);
    free(job);
}

int core_job_progress(void *context, uint64_t done, uint64_t total)
{
    core_job *job = context;
    atomic_store(&job->done, done);
    atomic_store(&job->total, total);
    return atomic_load(&job->is_cancelled);
}

static void *work(void *context)
{
    core_job *job = context;
    tn_status status = job->run(job, &job->err);
    pthread_mutex_lock(&job->lock);
    job->status = status;
    job->has_ended = true;
    bool is_abandoned = job->is_abandoned;
    pthread_cond_signal(&job->ended);
    pthread_mutex_unlock(&job->lock);
    if (is_abandoned) {
        PyGILState_STATE gil = PyGILState_Ensure();
        core_job_free(job);
        PyGILState_Release(gil);
    }
    return NULL;
}

/* Waits for one step at most, without the GIL.  Says whether the call has ended. */
static bool wait_a_step(core_job *job)
{
    struct timespec until;
    bool has_ended;
    Py_BEGIN_ALLOW_THREADS
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += STEP * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&job->lock);
    while (!job->has_ended && pthread_cond_timedwait(&job->ended, &job->lock, &until) != ETIMEDOUT)
        continue;
    has_ended = job->has_ended;
    pthread_mutex_unlock(&job->lock);
    Py_END_ALLOW_THREADS
    return has_ended;
}

static bool tell(const core_job *job, PyObject *progress)
{
    PyObject *answer = PyObject_CallFunction(progress, "KK", (unsigned long long)atomic_load(&job->done),
                                             (unsigned long long)atomic_load(&job->total));
    Py_XDECREF(answer);
    return answer != NULL;
}

/* The call is to stop.  False: it did not in time and goes on alone. */
static bool stop(core_job *job)
{
    atomic_store(&job->is_cancelled, true);
    for (int i = 0; i < PATIENCE; i++)
        if (wait_a_step(job))
            return true;
    /* Its thread can take the GIL of the main interpreter only. */
    while (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
        if (wait_a_step(job))
            return true;
    pthread_mutex_lock(&job->lock);
    job->is_abandoned = !job->has_ended;
    pthread_mutex_unlock(&job->lock);
    return !job->is_abandoned;
}

/* Waits to the end, or for an exception.  False: the job is no longer the caller's. */
static bool wait_for(core_job *job, PyObject *progress)
{
    for (unsigned steps = 1; !wait_a_step(job); steps++) {
        bool fine = PyErr_CheckSignals() == 0;
        if (fine && progress != Py_None && steps % 2 == 0 && atomic_load(&job->total))
            fine = tell(job, progress);
        if (fine)
            continue;
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        bool has_stopped = stop(job);
        PyErr_Restore(type, value, trace);
        return has_stopped;
    }
    return true;
}

bool core_job_run(core_job *job, PyObject *progress)
{
    pthread_t thread;
    int problem = pthread_create(&thread, NULL, work, job);
    if (problem) {
        errno = problem;
        PyErr_SetFromErrno(PyExc_OSError);
        core_job_free(job);
        return false;
    }
    if (!wait_for(job, progress)) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    if (!PyErr_Occurred() && job->status != TN_OK)
        core_raise(job->state, &job->err);
    if (!PyErr_Occurred() && progress != Py_None && atomic_load(&job->total))
        tell(job, progress);
    if (!PyErr_Occurred())
        return true;
    core_job_free(job);
    return false;
}
