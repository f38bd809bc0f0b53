/* tests/fuzz/memory_file.h - files without a name: what a target writes and reads
 * again need not pass a folder. */
#ifndef TN_FUZZ_MEMORY_FILE_H
#define TN_FUZZ_MEMORY_FILE_H

#include <sys/mman.h>
#include <unistd.h>

#include "../../src/verbs/convert.h"  /* tn_convert_into(); tests/support has a convert.h too */
#include "walk.h"

enum { MEMORY_FILES = 4 };

/* Empty; the same descriptor each time for the same number. */
static inline int memory_file(unsigned number)
{
    static int fds[MEMORY_FILES];
    REQUIRE(number < MEMORY_FILES);
    if (!fds[number])
        fds[number] = memfd_create("tenon-fuzz", MFD_CLOEXEC);
    REQUIRE(fds[number] > 0 && ftruncate(fds[number], 0) == 0);
    return fds[number];
}

/* Writes a file again as `create` says and opens what came of it; NULL: refused with a reason, and *status
 * says why. */
static inline tn_file *memory_again(const tn_file *file, const tn_create_options *create, tn_status *status)
{
    int fd = memory_file(0);
    tn_convert_options options = { .size = sizeof options, .create = create };
    tn_open_options how = { .size = sizeof how, .format = create->format };
    tn_file *copy = NULL;
    tn_error err = { .text = "" };
    *status = tn_convert_into(file, fd, "again", &options, &err);
    if (*status) {
        walk_error(&err, *status);
        REQUIRE(*status != TN_ERR_IO && *status != TN_ERR_NOMEM);
        return NULL;
    }
    snprintf(require_note, sizeof require_note, "(%s)", create->format);
    REQUIRE(tn_open_fd(fd, &how, &copy, &err) == TN_OK);
    require_note[0] = '\0';
    return copy;
}

/* The same; nothing differs. */
static inline void memory_same(const tn_file *file, const tn_create_options *create)
{
    tn_status status;
    tn_file *copy = memory_again(file, create, &status);
    if (copy)
        require_same_tensors(file, copy);
    tn_close(copy);
}

#endif
