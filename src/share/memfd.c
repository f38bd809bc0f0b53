/* share/memfd.c - memory as a sealed, unnamed file.  Plain files that others offer are mapped here, too.
 *
 * The size is sealed, so that no process can truncate memory that others have mapped.  A seal also enforces
 * read-only: a descriptor that is open for reading could be reopened for writing through /proc. */
#include "base/checked.h"
#include "bytes/guard.h"
#include "share/memory_calls.h"
#include "share/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL         /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEALED_SIZE     (F_SEAL_SHRINK | F_SEAL_GROW)
#define SEALED_WRITING  (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

int tn_memfd_create(unsigned flags)
{
    flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = tn_memory_calls.memfd_create("tenon", flags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? tn_memory_calls.memfd_create("tenon", flags) : fd;
}

static bool query(const char **why)
{
    int fd = tn_memfd_create(0);
    if (fd >= 0)
        close(fd);
    bool none = fd < 0 && (errno == ENOSYS || errno == EPERM);
    *why = none ? "the system does not let us call memfd_create" : "";
    return !none;
}

/* ---- allocating ---- */

tn_status tn_memfd_new(unsigned flags, uint64_t size, int seals, int *fd, tn_error *err)
{
    *fd = tn_memfd_create(flags);
    if (*fd < 0)
        return tn_fail_errno(err, errno, "cannot make a memfd");
    tn_status status = TN_OK;
    if (tn_memory_calls.ftruncate(*fd, (off_t)size) != 0)
        status = tn_fail_errno(err, errno, "cannot size a memfd");
    else if (tn_memory_calls.add_seals(*fd, seals) != 0)
        status = tn_fail_errno(err, errno, "cannot seal the size of a memfd");
    if (status)
        close(*fd);
    return status;
}

static tn_status map_memfd(tn_buffer *b, tn_map_request r, bool pool, tn_error *err)
{
    uint64_t size = pool ? r.extent : b->size;
    TN_TRY(tn_memfd_new(pool ? MFD_HUGETLB : 0, size, SEALED_SIZE, &r.fd, err));
    r.flags = MAP_SHARED;
    tn_status status = tn_map(&r, &b->base, err);
    if (status) {
        close(r.fd);
        return status;
    }
    b->fd = r.fd;
    b->extent = r.extent;
    return TN_OK;
}

static void free_memfd(tn_buffer *b)
{
    tn_guard_drop(b->guard);
    tn_unmap(b->base, b->extent);
    close(b->fd);
}

static tn_status allocate(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    TN_TRY(tn_allocate_pages(b, options, map_memfd, err));
    b->handle = b->fd;
    b->flags |= TN_MEM_SHARED;
    return TN_OK;
}

/* ---- freezing ---- */

/* Maps the same bytes at the same address; 0 or errno.  Pinned memory must be pinned again. */
static int map_again(const tn_buffer *b, int protection, int flags)
{
    uint64_t lead = (uint64_t)(b->data - (uint8_t *)b->base);
    void *map = tn_memory_calls.mmap(b->base, (size_t)b->extent, protection, flags | MAP_FIXED, b->fd,
                                     (off_t)(b->offset - lead));
    if (map == MAP_FAILED)
        return errno;
    return b->flags & TN_MEM_PINNED && tn_memory_calls.mlock(b->base, (size_t)b->extent) != 0 ? errno : 0;
}

static tn_status freeze(tn_buffer *b, tn_error *err)
{
    int seals = tn_memory_calls.get_seals(b->fd);
    if (seals >= 0 && seals & F_SEAL_WRITE)
        return TN_OK;
    if (b->flags & TN_MEM_READ_ONLY)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "cannot be frozen: it is read-only here, but others may still write it");
    if (seals < 0)
        return tn_fail_errno(err, errno, "cannot look at the seals of a memfd");
    if (seals & SEALED_WRITING)         /* a failure below could not be undone */
        return tn_fail(err, TN_ERR_UNSUPPORTED, "cannot be frozen: it has been exported read-only before");
    int problem = map_again(b, PROT_READ, MAP_PRIVATE);
    if (!problem && tn_memory_calls.add_seals(b->fd, F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        problem = errno;
    if (!problem) {
        b->flags |= TN_MEM_READ_ONLY;
        return TN_OK;
    }
    map_again(b, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (problem == EBUSY)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "cannot be frozen: it is still mapped for writing elsewhere");
    return tn_fail_errno(err, problem, "cannot be frozen");
}

/* ---- handing over ---- */

static tn_status seal_against_writing(const tn_buffer *b, tn_error *err)
{
    if (b->flags & TN_MEM_READ_ONLY || tn_memory_calls.add_seals(b->fd, F_SEAL_FUTURE_WRITE) == 0)
        return TN_OK;
    if (errno == EINVAL)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "cannot be exported read-only while it is written: this kernel has no "
                       "F_SEAL_FUTURE_WRITE (Linux 5.1); freeze the buffer first");
    return tn_fail_errno(err, errno, "cannot seal a memfd against writing");
}

static tn_status check_writable(const tn_buffer *b, tn_error *err)
{
    int seals = tn_memory_calls.get_seals(b->fd);
    if (seals < 0)
        return tn_fail_errno(err, errno, "cannot look at the seals of a memfd");
    if (seals & SEALED_WRITING)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "cannot be exported for writing: it has been exported read-only before, "
                       "and that seal (0x%x) cannot be taken back", (unsigned)(seals & SEALED_WRITING));
    return TN_OK;
}

static tn_status export(tn_buffer *b, bool read_only, tn_exported *exported, tn_error *err)
{
    TN_TRY(read_only ? seal_against_writing(b, err) : check_writable(b, err));
    exported->fd = tn_memory_calls.duplicate(b->fd);
    return exported->fd < 0 ? tn_fail_errno(err, errno, "cannot duplicate a descriptor") : TN_OK;
}

/* ---- taking over ---- */

/* What a descriptor refers to. */
typedef struct found {
    uint64_t size;
    int      seals;
    bool     file;              /* a plain file, which others may truncate */
} found;

/* Reads the seals before the size: else a peer could truncate the file in between and then seal it. */
static tn_status look(int fd, found *f, tn_error *err)
{
    struct stat st;
    if (fd < 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "a memfd handle without a descriptor");
    int seals = tn_memory_calls.get_seals(fd);
    if (tn_memory_calls.fstat(fd, &st) != 0)
        return tn_fail_errno(err, errno, "cannot look at a descriptor");
    if (!S_ISREG(st.st_mode))
        return tn_fail(err, TN_ERR_CORRUPT, "expected the descriptor of a memfd but found mode 0%o",
                       (unsigned)st.st_mode);
    f->size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    f->seals = seals < 0 ? 0 : seals;
    /* Files on disk have no seals; those of tmpfs have F_SEAL_SEAL only. */
    f->file = seals < 0 || (seals & (F_SEAL_SEAL | F_SEAL_SHRINK)) == F_SEAL_SEAL;
    return TN_OK;
}

static tn_status check_kind(const found *f, bool read_only, bool allow_file, tn_error *err)
{
    bool sealed = f->seals & SEALED_WRITING;
    const char *wrong = NULL;
    if (f->file && !allow_file)
        wrong = "expected a sealed memfd but found a plain file, which can be cut while it is read";
    else if (f->file && !read_only)
        wrong = "expected a memfd to be written but found a plain file, which is handed over read-only or "
                "not at all";
    else if (!f->file && !(f->seals & F_SEAL_SHRINK))
        wrong = "expected a memfd whose size is sealed but found one that can still shrink";
    else if (!f->file && read_only && !sealed)
        wrong = "expected a read-only memfd to be sealed against writing but it is not";
    else if (!f->file && !read_only && sealed)
        wrong = "expected a memfd that can be written but found it sealed against that";
    return wrong ? tn_fail(err, TN_ERR_CORRUPT, "%s (seals 0x%x)", wrong, (unsigned)f->seals)
                 : TN_OK;
}

/* Guarded even if it is sealed: a peer that may write can punch holes, and touching one is SIGBUS if no page
 * is left (huge pages; vm.overcommit_memory=2).
 *
 * PRIVATE if SHARED is refused: by kernels before 6.7 under F_SEAL_WRITE, and by some file systems.  For
 * reading they are the same. */
static tn_status map_found(tn_buffer *b, int fd, const found *f, bool read_only, tn_error *err)
{
    tn_map_request r = {
        .grain = tn_guard_grain(fd), .alignment = 1,
        .protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE,
        .flags = MAP_SHARED, .fd = fd,
    };
    uint64_t lead = b->offset & (r.grain - 1);
    r.offset = b->offset - lead;
    if (!tn_align_u64(lead + b->size, r.grain, &r.extent))
        return tn_fail_nomem(err);
    bool again = f->file || f->seals & F_SEAL_WRITE;
    tn_status status = tn_map(&r, &b->base, again ? NULL : err);
    if (status && again) {
        r.flags = MAP_PRIVATE;
        status = tn_map(&r, &b->base, err);
    }
    if (status)
        return status;
    tn_guarded guarded = { .base = b->base, .extent = r.extent, .grain = r.grain, .fd = fd,
                           .offset = r.offset,
                           .writable = !read_only };
    if ((status = tn_guard_add(&guarded, &b->guard, err))) {
        tn_unmap(b->base, r.extent);
        return status;
    }
    b->plain_file = f->file;
    b->extent = r.extent;
    b->data = (uint8_t *)b->base + lead;
    return TN_OK;
}

static tn_status import(tn_buffer *b, const tn_exported *exported, bool allow_file, tn_error *err)
{
    found f = { 0 };
    TN_TRY(look(exported->fd, &f, err));
    TN_TRY(check_kind(&f, exported->read_only, allow_file, err));
    TN_TRY(tn_exported_check(exported, f.size, err));
    TN_TRY(map_found(b, exported->fd, &f, exported->read_only, err));
    b->fd = exported->fd;
    b->handle = b->fd;
    b->flags = TN_MEM_SHARED | (exported->read_only ? TN_MEM_READ_ONLY : 0U);
    return TN_OK;
}

const tn_provider tn_provider_memfd = {
    .type = TN_HANDLE_MEMFD,
    .name = "memfd",
    .query = query,
    .allocate = allocate,
    .export = export,
    .import = import,
    .freeze = freeze,
    .free = free_memfd,
};
