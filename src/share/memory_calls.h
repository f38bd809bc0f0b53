/* share/memory_calls.h - the system calls for memory, in a table so that tests can make each of them fail. */
#ifndef TN_SHARE_MEMORY_CALLS_H
#define TN_SHARE_MEMORY_CALLS_H

#include "base/sealed.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

struct tn_memory_calls {
    void *(*mmap)(void *address, size_t n, int protection, int flags, int fd, off_t offset);
    int   (*munmap)(void *address, size_t n);
    int   (*madvise)(void *address, size_t n, int advice);
    int   (*mlock)(const void *address, size_t n);
    int   (*memfd_create)(const char *name, unsigned flags);
    int   (*ftruncate)(int fd, off_t size);
    int   (*fstat)(int fd, struct stat *st);
    int   (*get_seals)(int fd);
    int   (*add_seals)(int fd, int seals);
    int   (*duplicate)(int fd);         /* close-on-exec */
};

/* Those that only dma-bufs need. */
struct tn_dma_buf_calls {
    int   (*open)(const char *path, int flags);
    int   (*ioctl)(int fd, unsigned long request, void *argument);
    off_t (*lseek)(int fd, off_t offset, int whence);
    int   (*fstatfs)(int fd, struct statfs *fs);
};

/* Changed by tests only, and only while nobody uses buffers. */
extern TN_RELRO struct tn_memory_calls tn_memory_calls;
extern TN_RELRO struct tn_dma_buf_calls tn_dma_buf_calls;

#endif
