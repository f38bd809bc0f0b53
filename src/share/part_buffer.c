/* share/part_buffer.c - maps the stored bytes of a part as a buffer. */
#include "store/file.h"
#include "share/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Receivers must not write with the descriptor, but one that was given to tn_open_fd() may be writable. */
static int read_only_copy(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

tn_status tn_buffer_of_part(const tn_file *file, const tn_part *part, tn_buffer **buffer, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(part, "a part", err);
    TN_GIVEN(buffer, "a place for the buffer", err);
    const tn_stored *stored = tn_stored_of(part);
    if (stored->size == 0 || part->nbytes != stored->size || !tn_file_view(file, part))
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "part %s cannot be mapped: expected bytes that are raw, dense and in host order, in a "
                       "mapped file", tn_quote_z(part->role).text);
    const tn_source *source = file->shards[stored->shard].source;
    int fd;
    TN_TRY(tn_source_hold(source, &fd, err));
    if (fd < 0)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "part %s cannot be mapped: it is in memory, not in a file",
                       tn_quote_z(part->role).text);
    tn_exported whole = {
        .type = TN_HANDLE_MEMFD, .bytes = stored->size, .offset = stored->offset,
        .read_only = true,
        .fd = read_only_copy(fd)
    };
    int problem = errno;
    tn_source_release(source);
    if (whole.fd < 0)
        return tn_fail_errno(err, problem, "cannot duplicate a descriptor");
    tn_status status = tn_buffer_import(&whole, true, buffer, err);
    tn_exported_close(&whole);
    if (status != TN_ERR_CORRUPT)
        return status;
    if (err)            /* the file is a memfd, but not one that can be handed on */
        err->status = TN_ERR_UNSUPPORTED;
    return TN_ERR_UNSUPPORTED;
}
