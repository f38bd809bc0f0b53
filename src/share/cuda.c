/* share/cuda.c - memory of a CUDA device.  The driver is loaded when it is first needed.
 *
 * The CPU cannot access that memory.  tn_buffer_map() creates a copy, tn_buffer_begin() updates it and
 * tn_buffer_end() writes it back.  TN_MEM_PINNED registers the copy with the driver for direct transfers.
 *
 * CUDA may take small allocations from a larger block and share all of it.  So whole blocks are allocated,
 * and nothing else is shared.
 *
 * This code has only been run against the tests' replacement of the driver. */
#include "base/checked.h"
#include "base/sealed.h"
#include "share/cuda_driver.h"
#include "share/provider.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK             ((uint64_t)2 << 20)
#define GRANTED_ALIGNMENT 256           /* of what cuMemAlloc() returns */
#define MAX_ALIGNMENT     ((uint64_t)2 << 20)

/* ---- the driver ---- */

#define FIELD(name, parameters) CUresult (*name) parameters;
static struct TN_OWN_PAGES { TN_CUDA_ENTRIES(FIELD) } cuda;

#define PLACE(name, parameters) { #name, &cuda.name },
static const struct { const char *name; void *place; } entries[] = { TN_CUDA_ENTRIES(PLACE) };

const char *tn_cuda_library = "libcuda.so.1";

static struct {
    pthread_once_t once;
    const char    *why;         /* it cannot be used; NULL: it can */
    char           text[160];
    CUdevice       device;
} driver = { .once = PTHREAD_ONCE_INIT };

static const char *error_name(CUresult result)
{
    const char *name = NULL;
    return cuda.cuGetErrorName(result, &name) == CUDA_SUCCESS && name ? name : "not a known error";
}

static const char *error_text(CUresult result)
{
    const char *text = NULL;
    return cuda.cuGetErrorString(result, &text) == CUDA_SUCCESS && text ? text : "no more is known";
}

/* TN_OK, or `what` could not be done and the driver's reason. */
static tn_status check(CUresult result, const char *what, tn_error *err)
{
    if (result == CUDA_SUCCESS)
        return TN_OK;
    tn_status status = TN_ERR_IO;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        status = TN_ERR_NOMEM;
    else if (result == CUDA_ERROR_NOT_SUPPORTED)
        status = TN_ERR_UNSUPPORTED;
    return tn_fail(err, status, "%s: CUDA's error %d, %s: %s", what, result, error_name(result),
                   error_text(result));
}

static bool load(void *library)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = dlsym(library, entries[i].name);
        if (!symbol)
            return false;
        memcpy(entries[i].place, &symbol, sizeof symbol);       /* C has no cast from objects to functions */
    }
    tn_seal(&cuda, sizeof cuda);
    return true;
}

static const char *find_device(void)
{
    int count = 0;
    CUresult result = cuda.cuInit(0);
    if (!result)
        result = cuda.cuDeviceGetCount(&count);
    if (!result && count > 0)
        result = cuda.cuDeviceGet(&driver.device, 0);
    if (!result)
        return count > 0 ? NULL : "libcuda.so.1 finds no device";
    snprintf(driver.text, sizeof driver.text, "libcuda.so.1 does not start: %s: %s", error_name(result),
             error_text(result));
    return driver.text;
}

static void start(void)
{
    void *library = dlopen(tn_cuda_library, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        driver.why = "no libcuda.so.1 that can be loaded";
    else if (!load(library))
        driver.why = "libcuda.so.1 is too old: it lacks what is called";
    else
        driver.why = find_device();
}

static bool query(const char **why)
{
    pthread_once(&driver.once, start);
    *why = driver.why ? driver.why : "read-only is not enforced; the CPU sees a copy";
    return !driver.why;
}

/* ---- the device memory of a buffer ---- */

typedef struct memory {
    CUcontext   context;        /* retained */
    CUdeviceptr base;           /* of the whole allocation; 0: none */
    bool        opened;         /* another process has allocated it */
} memory;

/* Until leave(), calls of this thread use the buffer's device. */
static tn_status enter(const tn_buffer *b, tn_error *err)
{
    const memory *m = b->own;
    return check(cuda.cuCtxPushCurrent_v2(m->context), "cannot use the CUDA device", err);
}

static void leave(void)
{
    CUcontext ignored;
    cuda.cuCtxPopCurrent_v2(&ignored);
}

static tn_status acquire(tn_buffer *b, tn_error *err)
{
    const char *why;
    if (!query(&why))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "cuda_ipc is not available: %s", why);
    memory *m = calloc(1, sizeof *m);
    TN_NEED(m, err);
    CUresult result = cuda.cuDevicePrimaryCtxRetain(&m->context, driver.device);
    if (result)
        free(m);
    else
        b->own = m;
    return check(result, "cannot use the CUDA device", err);
}

/* ---- the CPU's copy; all but unstage() need enter() ---- */

static tn_status stage(tn_buffer *b, tn_error *err)
{
    uint64_t aligned = b->device_address & (~b->device_address + 1);
    tn_map_request r = {
        .grain = tn_page_size(), .alignment = tn_min_u64(aligned, MAX_ALIGNMENT),
        .protection = PROT_READ | PROT_WRITE,
        .flags = MAP_PRIVATE | MAP_ANONYMOUS, .fd = -1,
    };
    if (!tn_align_u64(b->size, r.grain, &r.extent))
        return tn_fail_nomem(err);
    void *base;
    TN_TRY(tn_map(&r, &base, err));
    CUresult result = CUDA_SUCCESS;
    if (b->flags & TN_MEM_PINNED)
        result = cuda.cuMemHostRegister_v2(base, (size_t)r.extent, CU_MEMHOSTREGISTER_PORTABLE);
    if (result) {
        tn_unmap(base, r.extent);
        return check(result, "cannot pin by CUDA", err);
    }
    b->base = base;
    b->extent = r.extent;
    return TN_OK;
}

static void unstage(tn_buffer *b)
{
    if (b->base)
        tn_unmap(b->base, b->extent);
    b->base = NULL;
}

static tn_status fetch(const tn_buffer *b, tn_error *err)
{
    CUresult result = cuda.cuMemcpyDtoH_v2(b->base, b->device_address, (size_t)b->size);
    return check(result, "cannot copy from the CUDA device", err);
}

/* Waits for the device, because another process may read at once. */
static tn_status put_back(const tn_buffer *b, tn_error *err)
{
    CUresult result = cuda.cuMemcpyHtoD_v2(b->device_address, b->base, (size_t)b->size);
    if (!result)
        result = cuda.cuCtxSynchronize();
    return check(result, "cannot copy to the CUDA device", err);
}

static tn_status map(tn_buffer *b, tn_error *err)
{
    tn_status status = enter(b, err);
    if (status)
        return status;
    if (!b->base)
        status = stage(b, err);
    if (!status)
        status = fetch(b, err);
    leave();
    if (!status)
        b->data = b->base;
    else if (!(b->flags & TN_MEM_PINNED))
        unstage(b);
    return status;
}

static void unmap(tn_buffer *b)
{
    b->data = NULL;
    if (!(b->flags & TN_MEM_PINNED))
        unstage(b);
}

static tn_status sync_copy(tn_buffer *b, bool begin, bool write, tn_error *err)
{
    if (!b->data)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "memory of a CUDA device that is not mapped: tn_buffer_map() comes first");
    if (!begin && !write)
        return TN_OK;
    TN_TRY(enter(b, err));
    tn_status status = begin ? fetch(b, err) : put_back(b, err);
    leave();
    return status;
}

/* ---- allocating, freeing ---- */

static void free_cuda(tn_buffer *b)
{
    memory *m = b->own;
    if (enter(b, NULL) == TN_OK) {
        if (b->base && b->flags & TN_MEM_PINNED)
            cuda.cuMemHostUnregister(b->base);
        if (m->base && m->opened)
            cuda.cuIpcCloseMemHandle(m->base);
        else if (m->base)
            cuda.cuMemFree_v2(m->base);
        leave();
    }
    unstage(b);
    cuda.cuDevicePrimaryCtxRelease_v2(driver.device);
    free(m);
}

/* The number in WIA-AI-011 JSON; different for each buffer. */
static int64_t next_number(void)
{
    static atomic_int_least64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

static tn_status allocate_cleared(memory *m, uint64_t extent, tn_error *err)
{
    CUresult result = cuda.cuMemAlloc_v2(&m->base, (size_t)extent);
    if (result) {
        m->base = 0;
        return check(result, "cannot allocate memory of the CUDA device", err);
    }
    result = cuda.cuMemsetD8_v2(m->base, 0, (size_t)extent);
    if (!result)
        result = cuda.cuCtxSynchronize();
    return check(result, "cannot clear memory of the CUDA device", err);
}

static tn_status fill(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    memory *m = b->own;
    uint64_t extent, room = options->alignment > GRANTED_ALIGNMENT ? options->alignment : 0;
    if (!tn_add_u64(b->size, room, &extent) || !tn_align_u64(extent, BLOCK, &extent))
        return tn_fail_nomem(err);
    TN_TRY(allocate_cleared(m, extent, err));
    if (!tn_align_u64(m->base, options->alignment, &b->device_address))
        return tn_fail_nomem(err);
    b->offset = b->device_address - m->base;
    b->handle = next_number();
    b->flags = TN_MEM_SHARED;
    if (!(options->flags & TN_MEM_PINNED))
        return TN_OK;
    b->flags |= TN_MEM_PINNED;
    return stage(b, err);
}

static tn_status allocate(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    TN_TRY(acquire(b, err));
    tn_status status = enter(b, err);
    if (!status) {
        status = fill(b, options, err);
        leave();
    }
    if (status)
        free_cuda(b);
    return status;
}

/* ---- handing over ---- */

static tn_status export(tn_buffer *b, bool read_only, tn_exported *exported, tn_error *err)
{
    const memory *m = b->own;
    CUipcMemHandle handle;
    if (read_only)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "memory of a CUDA device cannot be exported read-only: "
                       "it would not be enforced; a memfd can");
    if (m->opened)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "memory of a CUDA device can be exported only by the process that has allocated it");
    tn_status status = enter(b, err);
    if (status)
        return status;
    status = check(cuda.cuIpcGetMemHandle(&handle, m->base), "cannot export memory of the CUDA device", err);
    leave();
    _Static_assert(sizeof exported->opaque == sizeof handle, "the handle travels as it is");
    if (!status)
        memcpy(exported->opaque, &handle, sizeof handle);
    return status;
}

static tn_status open_handle(memory *m, const tn_exported *e, tn_error *err)
{
    CUipcMemHandle handle;
    memcpy(&handle, e->opaque, sizeof handle);
    CUresult result = cuda.cuIpcOpenMemHandle_v2(&m->base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    m->opened = result == CUDA_SUCCESS;
    if (!m->opened)
        m->base = 0;
    if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "expected a handle of CUDA's but found one that its driver refuses: %s",
                       error_name(result));
    return check(result, "cannot open a handle of CUDA's", err);
}

static tn_status check_length(const memory *m, const tn_exported *e, tn_error *err)
{
    CUdeviceptr start = 0;
    size_t length = 0;
    CUresult result = cuda.cuMemGetAddressRange_v2(&start, &length, m->base);
    tn_status status = check(result, "cannot ask for the size of CUDA memory", err);
    uint64_t before = m->base - start, size = before <= length ? length - before : 0;
    return status ? status : tn_exported_check(e, size, err);
}

static tn_status import(tn_buffer *b, const tn_exported *e, bool allow_file, tn_error *err)
{
    (void)allow_file;
    if (e->fd >= 0)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "expected a handle of CUDA's alone but found a descriptor with it");
    TN_TRY(acquire(b, err));
    memory *m = b->own;
    tn_status status = enter(b, err);
    if (!status) {
        status = open_handle(m, e, err);
        if (!status)
            status = check_length(m, e, err);
        leave();
    }
    if (status) {
        free_cuda(b);
        return status;
    }
    b->device_address = m->base + b->offset;
    b->handle = next_number();
    b->flags = TN_MEM_SHARED | (e->read_only ? TN_MEM_READ_ONLY : 0U);
    return TN_OK;
}

const tn_provider tn_provider_cuda = {
    .type = TN_HANDLE_CUDA_IPC,
    .name = "cuda_ipc",
    .query = query,
    .allocate = allocate,
    .export = export,
    .import = import,
    .map = map,
    .unmap = unmap,
    .sync = sync_copy,
    .free = free_cuda,
};
