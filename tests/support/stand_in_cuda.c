/* tests/support/stand_in_cuda.c - a shared library with the entry points of the
 * CUDA driver that libtenon calls, over memfds: two processes share memory by a
 * handle of 64 bytes.
 *
 * It is as unfriendly as the driver: device memory is not at its address, is not
 * zero, is aligned to 256 bytes and no more; calls need a current context; a
 * process cannot open its own handles, and a child cannot go on with what its
 * parent has begun. */
#include "stand_in_cuda.h"

#include "share/cuda_driver.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_CONTEXT = 201, MAP_FAILED_RESULT = 205,
    ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, SLOTS = 64
};

#define PROTOTYPE(name, parameters) CUresult name parameters;
TN_CUDA_ENTRIES(PROTOTYPE)

cuda_stand_in stand_in_cuda = { .devices = 1, .failure = CUDA_ERROR_INVALID_VALUE };

/* A piece of device memory: allocated here, or opened. */
typedef struct piece {
    int      fd;
    uint8_t *bytes;
    size_t   size;
    ino_t    inode;
    int      opened;            /* how often; 0: allocated here */
} piece;

typedef struct passport {       /* what a handle says */
    char  magic[8];
    pid_t process;
    int   fd;
    ino_t inode;
} passport;

struct CUctx_st { int unused; };

static piece pieces[SLOTS];
static void *registered[SLOTS];
static pid_t initialized;
static struct CUctx_st primary;
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;

static bool fails(void)
{
    return ++stand_in_cuda.calls == stand_in_cuda.failing;
}

/* What is wrong with a call of any kind; 0: nothing. */
static CUresult check(bool needs_context)
{
    if (initialized != getpid())
        return NOT_INITIALIZED;
    return needs_context && (depth == 0 || !stack[depth - 1] || stand_in_cuda.contexts == 0) ? INVALID_CONTEXT
                                                                                             : CUDA_SUCCESS;
}

#define BEGIN(needs_context)                            \
    do {                                                \
        CUresult wrong = check(needs_context);          \
        if (wrong)                                      \
            return wrong;                               \
        if (fails())                                    \
            return stand_in_cuda.failure;                       \
    } while (0)

/* ---- starting, errors, contexts ---- */

CUresult cuInit(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (fails())
        return stand_in_cuda.failure;
    initialized = getpid();
    return stand_in_cuda.devices < 0 ? NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
          : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == NO_DEVICE                ? "CUDA_ERROR_NO_DEVICE"
          : error == INVALID_CONTEXT          ? "CUDA_ERROR_INVALID_CONTEXT"
                                              : NULL;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    CUresult result = cuGetErrorName(error, text);
    if (!result)
        *text = "as the stand-in puts it";
    return result;
}

CUresult cuDeviceGetCount(int *count)
{
    BEGIN(false);
    *count = stand_in_cuda.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    BEGIN(false);
    if (ordinal < 0 || ordinal >= stand_in_cuda.devices)
        return CUDA_ERROR_INVALID_VALUE;
    *device = 7 + ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    BEGIN(false);
    if (device != 7)
        return CUDA_ERROR_INVALID_VALUE;
    stand_in_cuda.contexts++;
    *context = &primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult wrong = check(false);
    if (wrong || device != 7 || stand_in_cuda.contexts == 0)
        return wrong ? wrong : INVALID_CONTEXT;
    stand_in_cuda.contexts--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    BEGIN(false);
    if (context != &primary || depth == 8)
        return INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult wrong = check(true);
    if (wrong)
        return wrong;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    BEGIN(true);
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

/* An address that nobody can mistake for one of the CPU's. */
static CUdeviceptr address_of(const piece *p)
{
    return 0xd0d0000000000100ULL + ((CUdeviceptr)(p - pieces) << 40);
}

/* The piece that contains these n bytes, or NULL. */
static piece *piece_at(CUdeviceptr pointer, size_t n)
{
    for (piece *p = pieces; p < pieces + SLOTS; p++)
        if (p->bytes && pointer >= address_of(p) && pointer - address_of(p) <= p->size &&
            n <= p->size - (pointer - address_of(p)))
            return p;
    return NULL;
}

static uint8_t *bytes_at(CUdeviceptr pointer, size_t n)
{
    piece *p = piece_at(pointer, n);
    return p ? p->bytes + (pointer - address_of(p)) : NULL;
}

/* Maps a memfd into a free slot. */
static piece *add_piece(int fd)
{
    struct stat st;
    piece *p = pieces;
    while (p < pieces + SLOTS && p->bytes)
        p++;
    if (p == pieces + SLOTS || fstat(fd, &st) != 0)
        return NULL;
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    *p = (piece){ .fd = fd, .bytes = bytes, .size = (size_t)st.st_size, .inode = st.st_ino };
    return p;
}

static void remove_piece(piece *p)
{
    munmap(p->bytes, p->size);
    close(p->fd);
    *p = (piece){ .fd = -1 };
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    BEGIN(true);
    if (bytes == 0 || bytes % (2 << 20))        /* which is how not to hand over what others have */
        return CUDA_ERROR_INVALID_VALUE;
    int fd = memfd_create("tenon: cuda", MFD_CLOEXEC);
    piece *p = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 ? add_piece(fd) : NULL;
    if (!p) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(p->bytes, 0xcd, bytes);
    stand_in_cuda.allocations++;
    *pointer = address_of(p);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult wrong = check(true);
    piece *p = piece_at(pointer, 0);
    if (wrong || !p || p->opened || pointer != address_of(p))
        return wrong ? wrong : CUDA_ERROR_INVALID_VALUE;
    remove_piece(p);
    stand_in_cuda.allocations--;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    BEGIN(true);
    const piece *p = piece_at(pointer, 1);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    *base = address_of(p);
    *bytes = p->size;
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes)
{
    BEGIN(true);
    uint8_t *place = bytes_at(to, bytes);
    if (!place)
        return CUDA_ERROR_INVALID_VALUE;
    memset(place, value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    BEGIN(true);
    uint8_t *place = bytes_at(to, bytes);
    if (!place)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(place, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    BEGIN(true);
    const uint8_t *place = bytes_at(from, bytes);
    if (!place)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to, place, bytes);
    return CUDA_SUCCESS;
}

static void **registration(const void *address)
{
    for (int i = 0; i < SLOTS; i++)
        if (registered[i] == address)
            return &registered[i];
    return NULL;
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    BEGIN(true);
    if (!address || bytes == 0 || bytes % 4096 || flags != CU_MEMHOSTREGISTER_PORTABLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (registration(address) || !registration(NULL))
        return ALREADY_REGISTERED;
    *registration(NULL) = address;
    stand_in_cuda.registered++;
    return CUDA_SUCCESS;
}

/* Fails where the memory is gone already. */
CUresult cuMemHostUnregister(void *address)
{
    unsigned char resident;
    CUresult wrong = check(true);
    if (wrong || !address || !registration(address) || mincore(address, 4096, &resident) != 0)
        return wrong ? wrong : NOT_REGISTERED;
    *registration(address) = NULL;
    stand_in_cuda.registered--;
    return CUDA_SUCCESS;
}

/* ---- handles ---- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    BEGIN(true);
    const piece *p = piece_at(pointer, 0);
    if (!p || p->opened || pointer != address_of(p))
        return CUDA_ERROR_INVALID_VALUE;
    passport pass = { .magic = "standin", .process = getpid(), .fd = p->fd, .inode = p->inode };
    memset(handle, 0xee, sizeof *handle);
    memcpy(handle, &pass, sizeof pass);
    return CUDA_SUCCESS;
}

/* The descriptor of the process that has it; -1: it does not, or not any more. */
static int reach(const passport *pass)
{
    char path[60];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pass->process, pass->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && st.st_ino == pass->inode))
        return fd;
    close(fd);
    return -1;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
    passport pass;
    BEGIN(true);
    memcpy(&pass, &handle, sizeof pass);
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(pass.magic, "standin", 8) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (pass.process == getpid())
        return INVALID_CONTEXT;
    piece *p = pieces;
    while (p < pieces + SLOTS && !(p->opened && p->inode == pass.inode))
        p++;
    if (p == pieces + SLOTS) {
        int fd = reach(&pass);
        p = fd < 0 ? NULL : add_piece(fd);
        if (!p)
            return MAP_FAILED_RESULT;
    }
    p->opened++;
    stand_in_cuda.opened++;
    *pointer = address_of(p);
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    CUresult wrong = check(true);
    piece *p = piece_at(pointer, 0);
    if (wrong || !p || !p->opened || pointer != address_of(p))
        return wrong ? wrong : CUDA_ERROR_INVALID_VALUE;
    if (--p->opened == 0)
        remove_piece(p);
    stand_in_cuda.opened--;
    return CUDA_SUCCESS;
}
