/* dma-bufs, on a stand-in for the kernel: devices and dma-bufs are memfds of its
 * own, and every argument is checked as the kernel's drivers do. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <signal.h>
#include <sys/mman.h>

#include "held.h"

#include "share/map.h"
#include "share/memory_calls.h"
#include "share/provider.h"

enum { BYTES = 10000, UDMABUF_LIMIT = 1 << 20, MAX_DMA_BUFS = 1000 };

static struct tn_memory_calls real;
static struct tn_dma_buf_calls real_dma;

/* ---- the kernel ---- */

static struct {
    int      udmabuf, heap;             /* errno of open(): 0 where the device is there */
    ino_t    udmabuf_device, heap_device;
    ino_t    dma_bufs[MAX_DMA_BUFS];
    size_t   ndma_bufs;
    unsigned creates, allocations;
    uint64_t syncs[8];                  /* flags of those that were done */
    size_t   nsyncs;
    int      interruptions;             /* of the next sync */
    int      failing, calls;            /* which call fails, counted from 1; 0: none */
} kernel;

static bool fails(int problem)
{
    if (++kernel.calls != kernel.failing)
        return false;
    errno = problem;
    return true;
}

static int refuse(int problem)
{
    errno = problem;
    return -1;
}

static ino_t inode(int fd)
{
    struct stat st;
    REQUIRE(fstat(fd, &st) == 0);
    return st.st_ino;
}

static uint64_t length(int fd)
{
    struct stat st;
    REQUIRE(fstat(fd, &st) == 0);
    return (uint64_t)st.st_size;
}

static bool is_dma_buf(int fd)
{
    for (size_t i = 0; i < kernel.ndma_bufs; i++)
        if (kernel.dma_bufs[i] == inode(fd))
            return true;
    return false;
}

static int add_dma_buf(int fd)
{
    REQUIRE(fd >= 0 && kernel.ndma_bufs < MAX_DMA_BUFS);
    kernel.dma_bufs[kernel.ndma_bufs++] = inode(fd);
    return fd;
}

static int kernel_open(const char *path, int flags)
{
    bool udmabuf = strcmp(path, "/dev/udmabuf") == 0;
    REQUIRE(udmabuf || strcmp(path, "/dev/dma_heap/system") == 0);
    REQUIRE(flags == ((udmabuf ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    if (fails(EMFILE))
        return -1;
    int problem = udmabuf ? kernel.udmabuf : kernel.heap;
    if (problem)
        return refuse(problem);
    int fd = memfd_create("device", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    *(udmabuf ? &kernel.udmabuf_device : &kernel.heap_device) = inode(fd);
    return fd;
}

/* As udmabuf.c of the kernel checks it. */
static int create_udmabuf(int device, const struct udmabuf_create *create)
{
    char path[40];
    int seals = fcntl((int)create->memfd, F_GET_SEALS);
    uint64_t page = tn_page_size();
    REQUIRE(inode(device) == kernel.udmabuf_device);
    REQUIRE(create->flags == UDMABUF_FLAGS_CLOEXEC && create->offset == 0 && create->size % page == 0);
    REQUIRE(seals >= 0 && seals & F_SEAL_SHRINK && !(seals & F_SEAL_WRITE));
    REQUIRE(length((int)create->memfd) >= create->size);
    kernel.creates++;
    if (create->size == 0 || create->size > UDMABUF_LIMIT)
        return refuse(EINVAL);
    snprintf(path, sizeof path, "/proc/self/fd/%u", create->memfd);
    return add_dma_buf(open(path, O_RDWR | O_CLOEXEC));
}

static int allocate_from_heap(int device, struct dma_heap_allocation_data *data)
{
    REQUIRE(inode(device) == kernel.heap_device);
    REQUIRE(data->fd == 0 && data->fd_flags == (O_RDWR | O_CLOEXEC) && data->heap_flags == 0 &&
            data->len > 0);
    kernel.allocations++;
    int fd = memfd_create("tenon: heap", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && ftruncate(fd, (off_t)data->len) == 0);
    data->fd = (uint32_t)add_dma_buf(fd);
    return 0;
}

static int sync_dma_buf(int fd, const struct dma_buf_sync *sync)
{
    REQUIRE(is_dma_buf(fd));
    REQUIRE(!(sync->flags & ~(uint64_t)DMA_BUF_SYNC_VALID_FLAGS_MASK) && sync->flags & DMA_BUF_SYNC_RW);
    if (kernel.interruptions > 0)
        return refuse(kernel.interruptions-- % 2 ? EINTR : EAGAIN);
    kernel.syncs[kernel.nsyncs++ % 8] = sync->flags;
    return 0;
}

static int kernel_ioctl(int fd, unsigned long request, void *argument)
{
    REQUIRE(request == UDMABUF_CREATE || request == DMA_HEAP_IOCTL_ALLOC || request == DMA_BUF_IOCTL_SYNC);
    if (fails(request == DMA_BUF_IOCTL_SYNC ? EIO : ENOMEM))
        return -1;
    return request == UDMABUF_CREATE       ? create_udmabuf(fd, argument)
         : request == DMA_HEAP_IOCTL_ALLOC ? allocate_from_heap(fd, argument)
                                           : sync_dma_buf(fd, argument);
}

static off_t kernel_lseek(int fd, off_t offset, int whence)
{
    REQUIRE(is_dma_buf(fd) && offset == 0 && whence == SEEK_END);
    return fails(EINVAL) ? -1 : (off_t)length(fd);
}

static int kernel_fstatfs(int fd, struct statfs *fs)
{
    if (fails(EOVERFLOW) || fstatfs(fd, fs) != 0)
        return -1;
    if (is_dma_buf(fd))
        fs->f_type = DMA_BUF_MAGIC;
    return 0;
}

static void *kernel_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fails(ENOMEM))
        return MAP_FAILED;
    if (fd >= 0) {
        REQUIRE(is_dma_buf(fd) && flags & MAP_SHARED && !(protection & PROT_EXEC));
        REQUIRE((uint64_t)offset <= length(fd) && n <= length(fd) - (uint64_t)offset);
    }
    return real.mmap(address, n, protection, flags, fd, offset);
}

static int kernel_memfd(const char *name, unsigned flags)
{
    return fails(EMFILE) ? -1 : real.memfd_create(name, flags);
}
static int kernel_ftruncate(int fd, off_t size)
{
    return fails(ENOSPC) ? -1 : real.ftruncate(fd, size);
}
static int kernel_add_seals(int fd, int seals)
{
    return fails(EPERM) ? -1 : real.add_seals(fd, seals);
}
static int kernel_duplicate(int fd)                       { return fails(EMFILE) ? -1 : real.duplicate(fd); }

static void boot(int udmabuf, int heap)
{
    memset(&kernel, 0, sizeof kernel);
    kernel.udmabuf = udmabuf;
    kernel.heap = heap;
    tn_dma_buf_calls = (struct tn_dma_buf_calls){
        .open = kernel_open, .ioctl = kernel_ioctl, .lseek = kernel_lseek, .fstatfs = kernel_fstatfs
    };
    tn_memory_calls = real;
    tn_memory_calls.mmap = kernel_mmap;
    tn_memory_calls.memfd_create = kernel_memfd;
    tn_memory_calls.ftruncate = kernel_ftruncate;
    tn_memory_calls.add_seals = kernel_add_seals;
    tn_memory_calls.duplicate = kernel_duplicate;
}

static int set_up(void **state)
{
    (void)state;
    real = tn_memory_calls;
    real_dma = tn_dma_buf_calls;
    boot(0, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_memory_calls = real;
    tn_dma_buf_calls = real_dma;
    return 0;
}

#define HERE(test) { #test, (CMUnitTestFunction)(void (*)(void))test, set_up, tear_down, NULL }

/* ---- helpers ---- */

static tn_status try_new(uint64_t bytes, uint64_t alignment, tn_buffer **b, tn_error *err)
{
    tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_DMA_BUF, .alignment = alignment };
    *b = NULL;
    return tn_buffer_new(bytes, &options, b, err);
}

static tn_buffer *new_buffer(const char *text)
{
    tn_buffer *b;
    tn_error err = { .text = "" };
    if (try_new(BYTES, 0, &b, &err))
        fail_msg("%s", line_of(&err));
    strcpy(tn_buffer_data(b), text);
    return b;
}

static tn_exported export_of(tn_buffer *b)
{
    tn_exported e;
    CHECK(tn_buffer_export(b, false, &e, NULL) == TN_OK);
    return e;
}

static const char *text_of(const tn_buffer *b)
{
    return tn_buffer_data(b);
}

/* ---- where it comes from ---- */

static void check_query(int udmabuf, int heap, bool available, const char *says)
{
    const char *why = NULL;
    held before = held_now();
    boot(udmabuf, heap);
    CHECK(tn_provider_dma_buf.query(&why) == available && strstr(why, says));
    CHECK(nothing_more_than(before));
    if (!available) {
        tn_buffer *b;
        tn_error err;
        CHECK(try_new(BYTES, 0, &b, &err) == TN_ERR_UNSUPPORTED && b == NULL && strstr(line_of(&err), says));
    }
}

static void the_query_says_what_is_there_or_missing(void)
{
    check_query(ENOENT, ENOENT, false, "no /dev/udmabuf and no /dev/dma_heap/system");
    check_query(ENODEV, ENXIO, false, "no /dev/udmabuf and no /dev/dma_heap/system");
    check_query(EACCES, ENOENT, false, "not permitted");
    check_query(ENOENT, EPERM, false, "not permitted");
    check_query(EMFILE, ENOENT, false, "cannot be opened");
    check_query(0, 0, true, "/dev/udmabuf");
    check_query(0, ENOENT, true, "does not enforce read-only");
    check_query(ENOENT, 0, true, "/dev/dma_heap/system");
    check_query(EACCES, 0, true, "does not enforce read-only");
}

static void check_new(unsigned creates, unsigned allocations)
{
    held before = held_now();
    tn_buffer *b = new_buffer("");
    CHECK(kernel.creates == creates && kernel.allocations == allocations);
    CHECK(tn_buffer_size(b) == BYTES && tn_buffer_flags(b) == (TN_MEM_SHARED | TN_MEM_PINNED));
    CHECK(is_dma_buf(b->fd) && fcntl(b->fd, F_GETFD) & FD_CLOEXEC);
    for (size_t i = 0; i < BYTES; i++)
        CHECK(text_of(b)[i] == 0);
    tn_buffer_handle h = tn_buffer_handle_of(b);
    CHECK(h.type == TN_HANDLE_DMA_BUF && h.handle == b->fd && h.size_bytes == BYTES && !h.read_only);
    CHECK(tn_buffer_mapping_of(b).cpu_address == (uintptr_t)tn_buffer_data(b));
    CHECK(tn_buffer_map(b, NULL) == TN_OK);
    tn_buffer_unmap(b);
    CHECK(held_now().descriptors == before.descriptors + 1);    /* neither the device nor the memfd */
    tn_buffer_unref(b);
    CHECK(nothing_more_than(before));
}

static void memory_comes_from_udmabuf_before_the_heap(void)
{
    check_new(1, 0);
    boot(ENOENT, 0);
    check_new(0, 1);
    boot(EACCES, 0);
    check_new(0, 1);
}

static void a_buffer_beyond_the_limit_of_udmabuf_says_where_it_is(void)
{
    tn_buffer *b;
    tn_error err;
    held before = held_now();
    CHECK(try_new(UDMABUF_LIMIT, 0, &b, NULL) == TN_OK);
    tn_buffer_unref(b);
    CHECK(try_new(UDMABUF_LIMIT + 1, 0, &b, &err) == TN_ERR_LIMIT && b == NULL);
    CHECK(strstr(line_of(&err), "1052672 bytes") && strstr(line_of(&err), "size_limit_mb"));
    CHECK(nothing_more_than(before));
}

static void addresses_are_aligned_as_asked(void)
{
    for (uint64_t alignment = 1; alignment <= 2 << 20; alignment *= 2) {
        tn_buffer *b;
        CHECK(try_new(BYTES, alignment, &b, NULL) == TN_OK);
        CHECK((uintptr_t)tn_buffer_data(b) % alignment == 0);
        tn_buffer_unref(b);
    }
}

/* ---- access ---- */

static void what_the_cpu_does_is_bracketed(void)
{
    tn_buffer *b = new_buffer("x");
    for (int write = 0; write < 2; write++)
        CHECK(tn_buffer_begin(b, write, NULL) == TN_OK && tn_buffer_end(b, write, NULL) == TN_OK);
    CHECK(kernel.nsyncs == 4);
    CHECK(kernel.syncs[0] == 1 && kernel.syncs[1] == 5);        /* read; 4 is the end */
    CHECK(kernel.syncs[2] == 3 && kernel.syncs[3] == 7);        /* read and write */
    tn_buffer_unref(b);
}

static void an_interrupted_sync_is_tried_again(void)
{
    tn_buffer *b = new_buffer("x");
    tn_error err;
    kernel.interruptions = 5;
    CHECK(tn_buffer_begin(b, true, NULL) == TN_OK && kernel.interruptions == 0 && kernel.nsyncs == 1);
    kernel.calls = 0;
    kernel.failing = 1;
    CHECK(tn_buffer_end(b, true, &err) == TN_ERR_IO && strstr(line_of(&err), "synchronize"));
    CHECK(kernel.nsyncs == 1);
    tn_buffer_unref(b);
}

/* ---- handing over ---- */

static tn_exported given;       /* to the child */

static void write_in_child(void)
{
    tn_buffer *b;
    boot(ENOENT, ENOENT);       /* who imports needs no device */
    add_dma_buf(given.fd);
    REQUIRE(tn_buffer_import(&given, false, &b, NULL) == TN_OK && given.fd == -1);
    REQUIRE(tn_buffer_size(b) == BYTES && tn_buffer_flags(b) == (TN_MEM_SHARED | TN_MEM_PINNED));
    REQUIRE(tn_buffer_begin(b, true, NULL) == TN_OK);
    REQUIRE(strcmp(text_of(b), "from the parent") == 0);
    strcpy((char *)tn_buffer_data(b) + BYTES - 20, "from the child");
    REQUIRE(tn_buffer_end(b, true, NULL) == TN_OK);
    tn_buffer_unref(b);
}

static void what_another_process_writes_is_seen(void)
{
    for (int heap = 0; heap < 2; heap++) {
        boot(heap ? ENOENT : 0, 0);
        tn_buffer *b = new_buffer("from the parent");
        given = export_of(b);
        CHECK(given.type == TN_HANDLE_DMA_BUF && given.bytes == BYTES && given.offset == 0 &&
              !given.read_only);
        CHECK(fcntl(given.fd, F_GETFD) & FD_CLOEXEC && given.fd != b->fd);
        CHECK(in_child(write_in_child) == 0);
        CHECK(strcmp(text_of(b) + BYTES - 20, "from the child") == 0);
        tn_exported_close(&given);
        tn_buffer_unref(b);
    }
}

static void read_only_is_refused_since_nobody_would_enforce_it(void)
{
    tn_buffer *b = new_buffer("x");
    tn_exported e = { .fd = -2 };
    tn_error err;
    CHECK(tn_buffer_export(b, true, &e, &err) == TN_ERR_UNSUPPORTED && e.fd == -2);
    CHECK(strstr(line_of(&err), "read-only") && strstr(line_of(&err), "kernel") && strstr(line_of(&err), "memfd"));
    CHECK(tn_buffer_freeze(b, &err) == TN_ERR_UNSUPPORTED);
    strcpy(tn_buffer_data(b), "still to be written");
    tn_buffer_unref(b);
}

static void write_to_read_only(void)
{
    tn_buffer *b;
    signal(SIGSEGV, SIG_DFL);
    REQUIRE(tn_buffer_import(&given, false, &b, NULL) == TN_OK);
    *(volatile char *)tn_buffer_data(b) = 'y';
}

/* Others may hand over dma-bufs with the request not to write. */
static void what_came_read_only_is_mapped_so(void)
{
    tn_buffer *b = new_buffer("text"), *theirs;
    given = export_of(b);
    given.read_only = true;
    int status = in_child(write_to_read_only);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(tn_buffer_import(&given, false, &theirs, NULL) == TN_OK);
    CHECK(tn_buffer_flags(theirs) & TN_MEM_READ_ONLY && strcmp(text_of(theirs), "text") == 0);
    CHECK(tn_buffer_begin(theirs, false, NULL) == TN_OK && tn_buffer_end(theirs, false, NULL) == TN_OK);
    CHECK(tn_buffer_begin(theirs, true, NULL) == TN_ERR_ARGUMENT);
    tn_exported e;
    CHECK(tn_buffer_export(theirs, false, &e, NULL) == TN_ERR_UNSUPPORTED);
    CHECK(tn_buffer_export(theirs, true, &e, NULL) == TN_ERR_UNSUPPORTED);
    tn_buffer_unref(theirs);
    tn_buffer_unref(b);
}

static void a_size_that_is_a_lie_is_found(void)
{
    static const struct { uint64_t offset, bytes; tn_status status; } claims[] = {
        { 0, 12288, TN_OK }, { 4096, 8192, TN_OK }, { 12287, 1, TN_OK }, { 5000, 100, TN_OK },
        { 0, 12289, TN_ERR_CORRUPT }, { 1, 12288, TN_ERR_CORRUPT }, { 12288, 1, TN_ERR_CORRUPT },
        { 12289, 1, TN_ERR_CORRUPT },
        { UINT64_MAX, 1, TN_ERR_CORRUPT }, { UINT64_MAX, 12288, TN_ERR_CORRUPT }, { 0, 0, TN_ERR_CORRUPT },
        { 0, (uint64_t)1 << 60, TN_ERR_CORRUPT }, { 0, UINT64_MAX, TN_ERR_LIMIT },
    };
    tn_buffer *b = new_buffer("x"), *theirs;
    memset(tn_buffer_data(b), 'a', BYTES);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        held before = held_now();
        tn_exported e = export_of(b);
        tn_error err = { .text = "" };
        e.offset = claims[i].offset;
        e.bytes = claims[i].bytes;
        CHECK(tn_buffer_import(&e, false, &theirs, &err) == claims[i].status &&
              err.status == claims[i].status);
        if (claims[i].status == TN_OK) {
            CHECK(tn_buffer_size(theirs) == claims[i].bytes);
            CHECK(memcmp(tn_buffer_data(theirs), (char *)b->base + claims[i].offset, claims[i].bytes) == 0);
            tn_buffer_unref(theirs);
        }
        tn_exported_close(&e);
        CHECK(nothing_more_than(before));
    }
    tn_buffer_unref(b);
}

/* Any of which may be cut while it is mapped. */
static void descriptors_of_other_things_are_refused(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    const int others[] = { memfd_create("other", MFD_CLOEXEC), open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                           open("/dev/zero", O_RDWR | O_CLOEXEC), ends[0], ends[1] };
    tn_error err;
    tn_buffer *b;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tn_exported e = { .type = TN_HANDLE_DMA_BUF, .bytes = 4, .fd = others[i] };
        CHECK(tn_buffer_import(&e, true, &b, &err) == TN_ERR_CORRUPT &&
              strstr(line_of(&err), "expected the descriptor of a dma-buf"));
        CHECK(e.fd == others[i]);
        tn_exported_close(&e);
    }
    tn_exported none = { .type = TN_HANDLE_DMA_BUF, .bytes = 4, .fd = -1 };
    CHECK(tn_buffer_import(&none, true, &b, &err) == TN_ERR_ARGUMENT);
}

/* ---- failures ---- */

/* Everything a buffer goes through; the first status that is not TN_OK. */
static tn_status live(tn_error *err)
{
    tn_buffer *b, *other;
    tn_exported e;
    tn_status status = try_new(BYTES, 1 << 16, &b, err);
    if (status)
        return status;
    status = tn_buffer_begin(b, true, err);
    if (!status)
        status = tn_buffer_end(b, true, err);
    if (!status && !(status = tn_buffer_export(b, false, &e, err))) {
        status = tn_buffer_import(&e, false, &other, err);
        tn_exported_close(&e);
        if (!status)
            tn_buffer_unref(other);
    }
    tn_buffer_unref(b);
    return status;
}

static void whatever_call_fails_nothing_is_left_behind(void)
{
    for (int heap = 0; heap < 2; heap++) {
        int failures = 0, calls;
        boot(heap ? ENOENT : 0, heap ? 0 : ENOENT);
        held before = held_now();
        CHECK(live(NULL) == TN_OK);
        calls = kernel.calls;
        for (int failing = 1; failing <= calls; failing++) {
            tn_error err = { .text = "" };
            kernel.calls = 0;
            kernel.failing = failing;
            tn_status status = live(&err);
            CHECK(status == err.status && (status == TN_OK) == (err.text[0] == '\0'));
            CHECK(nothing_more_than(before));
            failures += status != TN_OK;
        }
        CHECK(failures >= 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HERE(the_query_says_what_is_there_or_missing),
        HERE(memory_comes_from_udmabuf_before_the_heap),
        HERE(a_buffer_beyond_the_limit_of_udmabuf_says_where_it_is),
        HERE(addresses_are_aligned_as_asked),
        HERE(what_the_cpu_does_is_bracketed),
        HERE(an_interrupted_sync_is_tried_again),
        HERE(what_another_process_writes_is_seen),
        HERE(read_only_is_refused_since_nobody_would_enforce_it),
        HERE(what_came_read_only_is_mapped_so),
        HERE(a_size_that_is_a_lie_is_found),
        HERE(descriptors_of_other_things_are_refused),
        HERE(whatever_call_fails_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
