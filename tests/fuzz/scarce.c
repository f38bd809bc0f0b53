/* tests/fuzz/scarce.c - allocations that can be made to fail; see scarce.h. */
#include "scarce.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_long count, fail_at;
static atomic_bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

static bool must_fail(void)
{
    if (atomic_fetch_add(&count, 1) + 1 != atomic_load(&fail_at))
        return false;
    atomic_store(&failed, true);
    return true;
}

void *__wrap_malloc(size_t n) { return must_fail() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return must_fail() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *old, size_t n) { return must_fail() ? NULL : __real_realloc(old, n); }

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return must_fail() ? NULL : __real_aligned_alloc(align, n);
}

long scarce_from(long n)
{
    atomic_store(&failed, false);
    atomic_store(&fail_at, n);
    return atomic_exchange(&count, 0);
}

bool scarce_failed(void)
{
    return atomic_load(&failed);
}

/* Freed memory is used again soon: keeping it costs a page fault for every large buffer, a third of the time
 * of an input. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}
