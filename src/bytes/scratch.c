/* bytes/scratch.c - bytes that are written once and then read in any order. */
#include "bytes/scratch.h"
#include "base/error.h"
#include "bytes/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tn_status fail_file(tn_error *err, int error_number)
{
    return tn_fail_errno(err, error_number, "cannot write a temporary file (TMPDIR says where)");
}

static tn_status open_file(tn_scratch *s, tn_error *err)
{
    tn_status status = tn_temporary_open(&s->fd, err);
    s->has_file = !status;
    return status;
}

static tn_status write_file(const tn_scratch *s, const uint8_t *bytes, size_t n, tn_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(s->fd, bytes + done, n - done, (off_t)(s->done + done));
        if (put < 0 && errno != EINTR)
            return fail_file(err, errno);
        done += put < 0 ? 0 : (size_t)put;
    }
    return TN_OK;
}

static tn_status open_source(tn_scratch *s, tn_error *err)
{
    return s->has_file ? tn_source_open_fd(s->fd, TN_IO_PREAD, &s->source, err)
                       : tn_source_open_memory(s->memory, (size_t)s->size, &s->source, err);
}

tn_status tn_scratch_begin(tn_scratch *s, uint64_t size, tn_error *err)
{
    tn_scratch_free(s);
    s->size = size;
    if (size > TN_SCRATCH_IN_MEMORY)
        return open_file(s, err);
    s->memory = malloc(size ? (size_t)size : 1);
    if (!s->memory)
        return tn_fail_nomem(err);
    return size ? TN_OK : open_source(s, err);
}

tn_status tn_scratch_append(tn_scratch *s, const void *bytes, size_t n, tn_error *err)
{
    tn_status status = TN_OK;
    if (s->has_file)
        status = write_file(s, bytes, n, err);
    else if (n)
        memcpy(s->memory + s->done, bytes, n);
    if (status)
        return status;
    s->done += n;
    return s->done == s->size && !s->source ? open_source(s, err) : TN_OK;
}

void tn_scratch_free(tn_scratch *s)
{
    tn_source_close(s->source);
    if (s->has_file)
        close(s->fd);
    free(s->memory);
    *s = (tn_scratch){ 0 };
}
