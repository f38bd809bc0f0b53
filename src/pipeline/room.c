/* pipeline/room.c - memory to be filled in any order. */
#include "pipeline/room.h"
#include "base/error.h"
#include "bytes/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IN_MEMORY = 8 << 20, ZEROS = 1 << 16 };

/* Blocks that are not there could not be had when they are written to: no signal may come then. */
static tn_status fill_holes(const tn_room *room, tn_error *err)
{
    static const uint8_t zeros[ZEROS];
    struct stat st;
    tn_status status = TN_OK;
    if (fstat(tn_sink_fd(room->sink), &st) == 0 && (uint64_t)st.st_size >= room->size &&
        (uint64_t)st.st_blocks * 512 >= room->size)
        return TN_OK;
    for (uint64_t at = 0; at < room->size && !status; at += ZEROS)
        status = tn_sink_write(room->sink, at, zeros,
                               (size_t)(room->size - at < ZEROS ? room->size - at : ZEROS), err);
    return status;
}

static tn_status open_file(tn_room *room, const char *beside, tn_error *err)
{
    int fd;
    tn_error why;
    tn_status status = beside ? tn_temporary_open_beside(beside, &fd, err) : tn_temporary_open(&fd, err);
    if (status)
        return status;
    status = tn_sink_open_fd(fd, &room->sink, &why);
    close(fd);
    if (!status)
        status = tn_sink_reserve(room->sink, room->size, &why);
    if (!status)
        status = fill_holes(room, &why);
    const char *where = beside ? "" : "a temporary file (TMPDIR says where): ";
    return status ? tn_fail(err, status, TN_NO_OFFSET, "%s%s", where, why.text) : TN_OK;
}

tn_status tn_room_make(tn_room *room, const char *beside, uint64_t size, tn_error *err)
{
    *room = (tn_room){ .size = size };
    if (size <= IN_MEMORY) {
        room->bytes = calloc(1, size ? (size_t)size : 1);
        return room->bytes ? TN_OK : tn_fail_nomem(err);
    }
    tn_status status = open_file(room, beside, err);
    if (status)
        return status;
    void *map = size > SIZE_MAX
                    ? MAP_FAILED
                    : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, tn_sink_fd(room->sink), 0);
    if (map == MAP_FAILED)
        return tn_fail_errno(err, errno, "cannot map a temporary file");
    room->bytes = map;
    return TN_OK;
}

void tn_room_free(tn_room *room)
{
    if (!room->sink)
        free(room->bytes);
    else if (room->bytes)
        munmap(room->bytes, (size_t)room->size);
    tn_sink_abandon(room->sink);
    *room = (tn_room){ 0 };
}
