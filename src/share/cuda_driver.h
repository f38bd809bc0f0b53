/* share/cuda_driver.h - the types, numbers and functions of the CUDA driver (libcuda.so.1) that we use, from
 * its documentation, so that its header need not be installed. */
#ifndef TN_SHARE_CUDA_DRIVER_H
#define TN_SHARE_CUDA_DRIVER_H

#include "base/sealed.h"

#include <stddef.h>

typedef int                  CUresult;
typedef int                  CUdevice;
typedef unsigned long long   CUdeviceptr;
typedef struct CUctx_st     *CUcontext;
typedef struct CUipcMemHandle { char reserved[64]; } CUipcMemHandle;

enum {
    CUDA_SUCCESS              = 0,
    CUDA_ERROR_INVALID_VALUE  = 1,
    CUDA_ERROR_OUT_OF_MEMORY  = 2,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_SUPPORTED  = 801
};
#define CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS 1U
#define CU_MEMHOSTREGISTER_PORTABLE        1U

/* ENTRY(name, parameters) for each; all return a CUresult.  A suffix _v2 is part of the name that the library
 * exports. */
#define TN_CUDA_ENTRIES(ENTRY)                                                                  \
    ENTRY(cuInit, (unsigned flags))                                                             \
    ENTRY(cuGetErrorName, (CUresult error, const char **name))                                  \
    ENTRY(cuGetErrorString, (CUresult error, const char **text))                                \
    ENTRY(cuDeviceGetCount, (int *count))                                                       \
    ENTRY(cuDeviceGet, (CUdevice *device, int ordinal))                                         \
    ENTRY(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                      \
    ENTRY(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                      \
    ENTRY(cuCtxPushCurrent_v2, (CUcontext context))                                             \
    ENTRY(cuCtxPopCurrent_v2, (CUcontext *context))                                             \
    ENTRY(cuCtxSynchronize, (void))                                                             \
    ENTRY(cuMemAlloc_v2, (CUdeviceptr *pointer, size_t bytes))                                  \
    ENTRY(cuMemFree_v2, (CUdeviceptr pointer))                                                  \
    ENTRY(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer))     \
    ENTRY(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t bytes))                   \
    ENTRY(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                    \
    ENTRY(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                          \
    ENTRY(cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags))                  \
    ENTRY(cuMemHostUnregister, (void *address))                                                 \
    ENTRY(cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr pointer))                     \
    ENTRY(cuIpcOpenMemHandle_v2, (CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)) \
    ENTRY(cuIpcCloseMemHandle, (CUdeviceptr pointer))

/* Which library it is.  Changed by tests only, before anybody asks for the driver. */
extern TN_RELRO const char *tn_cuda_library;

#endif
