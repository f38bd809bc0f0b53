/* tenon/device.h - what a device asks of memory, and what this library does of
 * the WIA-AI-011 specification. */
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
    uint64_t        max_pinned_bytes;   /* RLIMIT_MEMLOCK, which does not bind the privileged (CAP_IPC_LOCK); UINT64_MAX: no limit */
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

typedef enum tn_compliance_state { TN_COMPLIANT = 0, TN_NOT_COMPLIANT = 1, TN_NOT_YET = 2 } tn_compliance_state;

typedef struct tn_compliance {
    int         level;          /* 1, 2 or 3: of the specification's list */
    const char *requirement;    /* "Support BFLOAT16" */
    tn_compliance_state state;
    const char *evidence;       /* what was done and seen: "cast, stored and loaded 4096 values" */
} tn_compliance;
typedef void (*tn_compliance_fn)(void *context, const tn_compliance *result);

/* Runs the requirements of levels 1 to `level` against this library, one by
 * one, actually doing each: casts, files (in memory or in a temporary folder),
 * reorders.  Level 3 starts a second process with fork(), and a thread, and waits
 * for both.  *reached is the highest level with nothing missing (0: none).
 * TN_ERR_NOMEM, TN_ERR_IO: could not be run. */
TN_API tn_status tn_compliance_run(int level, tn_compliance_fn report, void *context, int *reached, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
