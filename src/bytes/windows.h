/* bytes/windows.h - memory for the windows of compressed data: one budget for the process (tenon/memory.h).
 *
 * A decoder takes memory from the budget before it allocates, and waits until enough is free.  To avoid
 * deadlocks, it takes all it needs at once and waits only while it holds nothing. */
#ifndef TN_BYTES_WINDOWS_H
#define TN_BYTES_WINDOWS_H

#include "base/error.h"

#include <tenon/memory.h>

/* TN_ERR_LIMIT: the window exceeds the whole budget. */
tn_status tn_windows_check(uint64_t window, tn_error *err);

/* Waits until so many bytes are free; first come, first served.  TN_ERR_LIMIT: they exceed the whole
 * budget. */
tn_status tn_windows_take(uint64_t bytes, tn_error *err);
void      tn_windows_give(uint64_t bytes);

uint64_t tn_windows_taken(void);

#endif
