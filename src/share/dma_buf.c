/* share/dma_buf.c - memory that device drivers share: created from a memfd by /dev/udmabuf, or allocated by
 * the system's dma-heap.
 *
 * The pages of a dma-buf do not move, and it cannot be truncated.  But everyone who has it can write: it has
 * no seals. */
#include "base/checked.h"
#include "share/memory_calls.h"
#include "share/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_device(const char *path, int flags)                 { return open(path, flags); }
static int control(int fd, unsigned long request, void *argument)   { return ioctl(fd, request, argument); }

struct tn_dma_buf_calls tn_dma_buf_calls = { .open = open_device, .ioctl = control, .lseek = lseek,
                                             .fstatfs = fstatfs };

/* ---- sources ---- */

static tn_status ask_udmabuf(int device, int memfd, uint64_t extent, int *fd, tn_error *err)
{
    struct udmabuf_create create = { .memfd = (uint32_t)memfd, .flags = UDMABUF_FLAGS_CLOEXEC,
                                     .size = extent };
    *fd = tn_dma_buf_calls.ioctl(device, UDMABUF_CREATE, &create);
    if (*fd >= 0)
        return TN_OK;
    if (errno == EINVAL)        /* all other arguments are valid */
        return tn_fail(err, TN_ERR_LIMIT, "udmabuf refuses %llu bytes: it gives as many MiB as "
                       "/sys/module/udmabuf/parameters/size_limit_mb says (64 unless changed)",
                       (unsigned long long)extent);
    return tn_fail_errno(err, errno, "udmabuf cannot create a dma-buf");
}

/* The pages outlive the memfd. */
static tn_status from_udmabuf(int device, uint64_t extent, int *fd, tn_error *err)
{
    int memfd;
    tn_status status = tn_memfd_new(0, extent, F_SEAL_SHRINK, &memfd, err);     /* udmabuf wants the seal */
    if (status)
        return status;
    status = ask_udmabuf(device, memfd, extent, fd, err);
    close(memfd);
    return status;
}

static tn_status from_heap(int device, uint64_t extent, int *fd, tn_error *err)
{
    struct dma_heap_allocation_data data = { .len = extent, .fd_flags = O_RDWR | O_CLOEXEC };
    if (tn_dma_buf_calls.ioctl(device, DMA_HEAP_IOCTL_ALLOC, &data) < 0)
        return tn_fail_errno(err, errno, "the dma-heap gives no memory");
    *fd = (int)data.fd;
    return TN_OK;
}

typedef struct source {
    const char *path;
    int         mode;
    tn_status (*make)(int device, uint64_t extent, int *fd, tn_error *err);
    const char *note;
} source;

static const source sources[] = {
    { "/dev/udmabuf", O_RDWR, from_udmabuf, "from /dev/udmabuf; the kernel does not enforce read-only" },
    { "/dev/dma_heap/system", O_RDONLY, from_heap,
      "from /dev/dma_heap/system; the kernel does not enforce read-only" },
};

enum { SOURCES = sizeof sources / sizeof *sources };

/* The first that can be opened; else NULL, and *why says why. */
static const source *open_source(int *device, const char **why)
{
    *why = "no /dev/udmabuf and no /dev/dma_heap/system";
    for (size_t i = 0; i < SOURCES; i++) {
        *device = tn_dma_buf_calls.open(sources[i].path, sources[i].mode | O_CLOEXEC);
        if (*device >= 0) {
            *why = sources[i].note;
            return &sources[i];
        }
        if (errno == EACCES || errno == EPERM)
            *why = "not permitted to open /dev/udmabuf or /dev/dma_heap/system";
        else if (errno != ENOENT && errno != ENODEV && errno != ENXIO)
            *why = "/dev/udmabuf and /dev/dma_heap/system cannot be opened";
    }
    return NULL;
}

static bool query(const char **why)
{
    int device;
    bool found = open_source(&device, why) != NULL;
    if (found)
        close(device);
    return found;
}

/* ---- allocating, freeing ---- */

static tn_status make(uint64_t extent, int *fd, tn_error *err)
{
    int device;
    const char *why;
    const source *from = open_source(&device, &why);
    if (!from)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "dma_buf_fd is not available: %s", why);
    tn_status status = from->make(device, extent, fd, err);
    close(device);
    return status;
}

static tn_status allocate(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    tn_map_request r = {
        .grain = tn_page_size(), .alignment = options->alignment, .protection = PROT_READ | PROT_WRITE,
        .flags = MAP_SHARED
    };
    if (!tn_align_u64(b->size, r.grain, &r.extent))
        return tn_fail_nomem(err);
    TN_TRY(make(r.extent, &r.fd, err));
    tn_status status = tn_map(&r, &b->base, err);
    if (status) {
        close(r.fd);
        return status;
    }
    b->fd = r.fd;
    b->handle = r.fd;
    b->extent = r.extent;
    b->data = b->base;
    b->flags = TN_MEM_SHARED | TN_MEM_PINNED;
    return TN_OK;
}

static void free_dma_buf(tn_buffer *b)
{
    tn_unmap(b->base, b->extent);
    close(b->fd);
}

/* ---- access ---- */

static tn_status sync_dma_buf(tn_buffer *b, bool begin, bool write, tn_error *err)
{
    struct dma_buf_sync sync = { .flags = begin ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END };
    sync.flags |= write ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ;
    int done;
    do
        done = tn_dma_buf_calls.ioctl(b->fd, DMA_BUF_IOCTL_SYNC, &sync);
    while (done < 0 && (errno == EINTR || errno == EAGAIN));
    return done < 0 ? tn_fail_errno(err, errno, "cannot synchronize a dma-buf with the CPU") : TN_OK;
}

/* ---- handing over ---- */

static tn_status export(tn_buffer *b, bool read_only, tn_exported *exported, tn_error *err)
{
    if (read_only)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "a dma-buf cannot be exported read-only: the kernel would "
                       "not enforce it; a memfd can");
    exported->fd = tn_memory_calls.duplicate(b->fd);
    return exported->fd < 0 ? tn_fail_errno(err, errno, "cannot duplicate a descriptor") : TN_OK;
}

/* Anything but a dma-buf could be truncated while it is mapped. */
static tn_status check_kind(int fd, tn_error *err)
{
    struct statfs fs;
    if (fd < 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "a dma-buf handle without a descriptor");
    if (tn_dma_buf_calls.fstatfs(fd, &fs) != 0)
        return tn_fail_errno(err, errno, "cannot look at a descriptor");
    if (fs.f_type != DMA_BUF_MAGIC)
        return tn_fail(err, TN_ERR_CORRUPT, "expected the descriptor of a dma-buf (0x%lx) but found 0x%lx",
                       (unsigned long)DMA_BUF_MAGIC, (unsigned long)fs.f_type);
    return TN_OK;
}

static tn_status check_length(const tn_exported *e, tn_error *err)
{
    off_t end = tn_dma_buf_calls.lseek(e->fd, 0, SEEK_END);
    if (end < 0)
        return tn_fail_errno(err, errno, "cannot ask a dma-buf for its size");
    return tn_exported_check(e, (uint64_t)end, err);
}

static tn_status import(tn_buffer *b, const tn_exported *e, bool allow_file, tn_error *err)
{
    (void)allow_file;
    tn_map_request r = {
        .grain = tn_page_size(), .alignment = 1,
        .protection = e->read_only ? PROT_READ : PROT_READ | PROT_WRITE,
        .flags = MAP_SHARED, .fd = e->fd,
    };
    TN_TRY(check_kind(e->fd, err));
    TN_TRY(check_length(e, err));
    uint64_t lead = b->offset & (r.grain - 1);
    r.offset = b->offset - lead;
    if (!tn_align_u64(lead + b->size, r.grain, &r.extent))
        return tn_fail_nomem(err);
    TN_TRY(tn_map(&r, &b->base, err));
    b->fd = e->fd;
    b->handle = e->fd;
    b->extent = r.extent;
    b->data = (uint8_t *)b->base + lead;
    b->flags = TN_MEM_SHARED | TN_MEM_PINNED | (e->read_only ? TN_MEM_READ_ONLY : 0U);
    return TN_OK;
}

const tn_provider tn_provider_dma_buf = {
    .type = TN_HANDLE_DMA_BUF,
    .name = "dma_buf_fd",
    .query = query,
    .allocate = allocate,
    .export = export,
    .import = import,
    .sync = sync_dma_buf,
    .free = free_dma_buf,
};
