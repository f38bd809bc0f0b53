/* tests/fuzz/memory_file.h - files without a name: what a target writes and reads
 * again need not pass a folder. */
#ifndef TN_FUZZ_MEMORY_FILE_H
#define TN_FUZZ_MEMORY_FILE_H

#include <sys/mman.h>
#include <unistd.h>

#include "../../src/convert.h"  /* tn_convert_into(); tests/support has a convert.h too */
#include "require.h"

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

#endif
