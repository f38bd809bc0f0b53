/* cli/compliance/sharing.c - tests of memory that a second process shares. */
#include "trials.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SHARED       = 4096,        /* values of each tensor */
    MOST_SECONDS = 20           /* before the second process is killed */
};

/* What the second process has seen, in shared memory. */
typedef struct outcome {
    bool     finished;
    tn_error err;
} outcome;

typedef struct sharing {
    char      path[108];        /* of the socket */
    tn_offer *offer;
    tn_buffer *open, *closed;   /* writable by others, read-only */
    outcome  *seen;
    tn_status answered;         /* result of the thread that answers */
    tn_error  why;
} sharing;

static const int64_t shared_shape[] = { 64, SHARED / 64 };

static float shared_value(int i) { return 0.5f * (float)i - 7; }

static tn_status not_as_offered(tn_error *err, const char *name, const char *text)
{
    return trial_error(err, TN_ERR_CORRUPT, "a tensor offered as \"%s\" to another process %s", name, text);
}

/* ---- the second process ---- */

static const tn_attached *find_attached(const tn_attachment *a, const char *name)
{
    const tn_attached *item;
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++)
        if (strcmp(item->name, name) == 0)
            return item;
    return NULL;
}

/* Checks the tensor, its descriptor and its values. */
static tn_status look_at(const tn_attached *item, const char *name, bool read_only, tn_error *err)
{
    if (!item || !item->tensor || item->tensor->dtype != TN_FLOAT32 || item->tensor->rank != 2 ||
        memcmp(item->tensor->shape, shared_shape, sizeof shared_shape) != 0)
        return not_as_offered(err, name, "was not found there with its type and shape");
    const tn_descriptor *d = item->descriptor;
    const float *values = item->tensor->parts[0].data;
    if (d->buffer_handle.type != TN_HANDLE_MEMFD || d->buffer_handle.read_only != read_only ||
        !d->mapping.present || d->mapping.cpu_address + d->offset_bytes != (uintptr_t)values)
        return not_as_offered(err, name, "came with another handle or mapping than it has there");
    for (int i = 0; i < SHARED; i++)
        if (values[i] != shared_value(i))
            return not_as_offered(err, name, "has other values there");
    return TN_OK;
}

/* Tries to write anyway: through the mapping, a new mapping, a reopened descriptor. */
static bool can_be_written(const tn_attached *item)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (size_t)tn_buffer_size(item->buffer);
    uintptr_t data = (uintptr_t)tn_buffer_data(item->buffer);
    int fd = (int)item->descriptor->buffer_handle.handle;
    char path[40];
    if (mprotect((void *)(data & ~(page - 1)), n, PROT_READ | PROT_WRITE) == 0)
        return true;
    if (mmap(NULL, n, PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
        return true;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    return again >= 0 && pwrite(again, "", 1, 0) == 1;
}

static void negate(const tn_attached *item)
{
    float *values = (float *)(uintptr_t)item->tensor->parts[0].data;
    for (int i = 0; i < SHARED; i++)
        values[i] = -values[i];
}

static tn_status attach_and_look(const char *path, tn_error *err)
{
    const tn_attach_options options = { .size = sizeof options, .patience = MOST_SECONDS * 1000 };
    tn_attachment *a;
    tn_status status = tn_share_attach(path, &options, &a, err);
    if (status)
        return status;
    const tn_attached *open_one = find_attached(a, "open"), *closed_one = find_attached(a, "closed");
    status = look_at(open_one, "open", false, err);
    if (!status)
        status = look_at(closed_one, "closed", true, err);
    if (!status && can_be_written(closed_one))
        status = not_as_offered(err, "closed", "could be written there");
    if (!status)
        negate(open_one);
    return status;
}

/* A child of what may be a program with threads: it takes memory from the heap, which
 * the C library sets right after fork(), and touches no lock and no stream. */
static _Noreturn void second_process(const sharing *s)
{
    alarm(MOST_SECONDS);
    s->seen->err.status = attach_and_look(s->path, &s->seen->err);
    s->seen->finished = true;
    _exit(0);
}

/* ---- the first process ---- */

/* A short path, wherever the folder is. */
static tn_status choose_path(sharing *s, const trial *t, int *folder, tn_error *err)
{
    file_path path = file_in(t, "share");
    if (strlen(path.s) < sizeof s->path) {
        memcpy(s->path, path.s, strlen(path.s) + 1);
        return TN_OK;
    }
    *folder = open(t->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return trial_errno(err, errno, "cannot open the folder of the trial");
    snprintf(s->path, sizeof s->path, "/proc/self/fd/%d/share", *folder);
    return TN_OK;
}

static tn_status offer_values(sharing *s, const char *name, bool writable, tn_buffer **buffer, tn_error *err)
{
    const tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_MEMFD };
    const tn_array array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shared_shape };
    tn_status status = tn_buffer_new(SHARED * sizeof(float), &options, buffer, err);
    if (status)
        return status;
    float *values = tn_buffer_data(*buffer);
    for (int i = 0; i < SHARED; i++)
        values[i] = shared_value(i);
    const tn_part part = { .role = "data", .array = array, .nbytes = SHARED * sizeof(float), .data = values };
    const tn_tensor tensor = { .name = name, .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 2,
                               .shape = shared_shape,
                               .parts = &part, .nparts = 1 };
    return tn_offer_tensor(s->offer, &tensor, *buffer, 0, writable, err);
}

static void *answer(void *context)
{
    sharing *s = context;
    s->answered = tn_offer_run(s->offer, &s->why);
    return NULL;
}

/* Answers the second process until it ends. */
static tn_status answer_until_it_ends(sharing *s, pid_t child, tn_error *err)
{
    pthread_t thread;
    int problem = pthread_create(&thread, NULL, answer, s);
    if (problem)
        kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)       /* or somebody else has waited for it */
        ;
    if (problem)
        return trial_errno(err, problem, "cannot start a thread");
    tn_offer_stop(s->offer);
    pthread_join(thread, NULL);
    if (s->answered && err)
        *err = s->why;
    return s->answered;
}

/* Compares the report of the second process with the shared memory. */
static tn_status compare_both(const sharing *s, tn_error *err)
{
    const float *written = tn_buffer_data(s->open), *kept = tn_buffer_data(s->closed);
    if (!s->seen->finished)
        return trial_error(err, TN_ERR_CORRUPT, "the process that attached has ended before it was done");
    if (s->seen->err.status) {
        if (err)
            *err = s->seen->err;
        return s->seen->err.status;
    }
    for (int i = 0; i < SHARED; i++)
        if (written[i] != -shared_value(i) || kept[i] != shared_value(i))
            return trial_error(err, TN_ERR_CORRUPT,
                               "value %d: expected %g as the other process wrote it but found %g", i,
                               (double)-shared_value(i), (double)written[i]);
    return TN_OK;
}

static tn_status share(sharing *s, tn_error *err)
{
    tn_status status = tn_share_offer(s->path, NULL, &s->offer, err);
    if (!status)
        status = offer_values(s, "open", true, &s->open, err);
    if (!status)
        status = offer_values(s, "closed", false, &s->closed, err);
    if (status)
        return status;
    pid_t child = fork();
    if (child < 0)
        return trial_errno(err, errno, "cannot start a second process");
    if (child == 0)
        second_process(s);
    status = answer_until_it_ends(s, child, err);
    return status ? status : compare_both(s, err);
}

tn_status try_sharing(trial *t, tn_error *err)
{
    sharing s = { .answered = TN_OK };
    int folder = -1;
    s.seen = mmap(NULL, sizeof *s.seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.seen == MAP_FAILED)
        return trial_nomem(err);
    tn_status status = choose_path(&s, t, &folder, err);
    if (!status)
        status = share(&s, err);
    tn_offer_close(s.offer);
    tn_buffer_unref(s.open);
    tn_buffer_unref(s.closed);
    if (folder >= 0)
        close(folder);
    munmap(s.seen, sizeof *s.seen);
    saw(t,
        "2 tensors of %d values handed to a second process over a socket: it found every value; what it "
        "wrote into one was "
        "seen here; the kernel did not let it write the other",
        SHARED);
    return status;
}
