/* tenon/device.h - what a device asks of memory. */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include <tenon/descriptor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_device_info {
    const char     *name;               /* "host" */
    tn_device       device;
    uint64_t        min_alignment;      /* bytes */
    uint64_t        recommended_alignment;
    uint64_t        page_size;
    uint64_t        huge_page_size;     /* 0: none */
    uint64_t        max_pinned_bytes;   /* RLIMIT_MEMLOCK, which does not bind the privileged (CAP_IPC_LOCK);
                                         * UINT64_MAX: no limit */
    uint64_t        memory_bytes;
    uint32_t        max_rank;
    const tn_dtype *types;              /* that casts, files and reorders take */
    size_t          ntypes;
    const char *const *layouts;         /* by name; custom letters too */
    size_t          nlayouts;
    const tn_handle_type *handles;      /* that buffers can be handed over by */
    size_t          nhandles;
} tn_device_info;

/* Device `i`, 0 is the host; NULL when out of range.  Lives as long as the
 * library.  Thread-safe. */
TN_API const tn_device_info *tn_device_query(size_t i);

#ifdef __cplusplus
}
#endif
#endif
