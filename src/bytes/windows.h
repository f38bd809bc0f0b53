/* bytes/windows.h - memory for the windows of compressed data: one budget for
 * the whole process (tenon/memory.h).
 *
 * Whoever decodes takes what it needs before any of it is allocated, and waits
 * where others have it.  There is no deadlock as long as nobody waits who has
 * some already: what one piece of work needs is taken at once, and given back when
 * that work is done. */
#ifndef TN_BYTES_WINDOWS_H
#define TN_BYTES_WINDOWS_H

#include "base/error.h"

#include <tenon/memory.h>

/* TN_ERR_LIMIT: the whole budget is less than such a window. */
tn_status tn_windows_check(uint64_t window, tn_error *err);

/* Waits until so many bytes are free, in the order of asking.  TN_ERR_LIMIT: the
 * whole budget is less. */
tn_status tn_windows_take(uint64_t bytes, tn_error *err);
void      tn_windows_give(uint64_t bytes);

uint64_t tn_windows_taken(void);

#endif
