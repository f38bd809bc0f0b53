/* tenon/memory.h - how much memory decoding may take. */
#ifndef TENON_MEMORY_H
#define TENON_MEMORY_H

#include <tenon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set and tell the memory for the windows of zstd data: what a decoder keeps of the data that it
 * has decoded already, because what follows refers to it.  The data says how much
 * (of most files up to 8 MiB, at most 2 GiB).  The budget is one for the whole
 * process; 0 sets the default, 256 MiB.  Threads that would exceed it wait for
 * others to be done; data that needs more than all of it is TN_ERR_LIMIT.
 *
 * What decodes data calls back (tn_progress_fn) between two windows: such a
 * callback must not read compressed data itself.
 *
 * At any time, from any thread; what is being decoded is not disturbed. */
TN_API void     tn_set_window_memory(uint64_t bytes);
TN_API uint64_t tn_window_memory(void);

#ifdef __cplusplus
}
#endif
#endif
