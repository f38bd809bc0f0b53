/* share/dma_buf_calls.h - the system calls for dma-bufs, in a table so that tests can replace the devices. */
#ifndef TN_SHARE_DMA_BUF_CALLS_H
#define TN_SHARE_DMA_BUF_CALLS_H

#include "base/sealed.h"

#include <sys/types.h>
#include <sys/vfs.h>

struct tn_dma_buf_calls {
    int   (*open)(const char *path, int flags);
    int   (*ioctl)(int fd, unsigned long request, void *argument);
    off_t (*lseek)(int fd, off_t offset, int whence);
    int   (*fstatfs)(int fd, struct statfs *fs);
};

/* Changed by tests only, and only while nobody uses buffers. */
extern TN_RELRO struct tn_dma_buf_calls tn_dma_buf_calls;

#endif
