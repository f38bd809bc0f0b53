/* tests/faults/inject.c - makes one allocation of a program fail; to be preloaded.
 *
 * FAULTS_ALLOCATION=N: the N-th allocation from the beginning of main() on, of the
 * program or of any library but libseccomp, finds no memory: seccomp_load() (2.5.4)
 * never returns when it finds none.  FAULTS_COUNT=FILE: how many there
 * were is written there at the end.  When counting begins, a system call that is
 * no other's tells tests/faults/trace.c so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mark.h"

void *__libc_malloc(size_t n);          /* what glibc's own malloc() is called besides */
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

static atomic_long done;
static long fails;
static bool counting;
static uintptr_t spared, spared_end;    /* where libseccomp lies */
static int told = -1;           /* FAULTS_COUNT, opened while files can be */

static int find_spared(struct dl_phdr_info *library, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (!strstr(library->dlpi_name, "libseccomp"))
        return 0;
    spared = spared_end = library->dlpi_addr;
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_LOAD)
            spared_end = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr + library->dlpi_phdr[i].p_memsz;
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    dl_iterate_phdr(find_spared, NULL);
    const char *n = getenv("FAULTS_ALLOCATION"), *path = getenv("FAULTS_COUNT");
    fails = n ? atol(n) : 0;
    told = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    counting = true;
    close(FAULTS_MARK);
}

__attribute__((destructor)) static void end(void)
{
    char text[24];
    counting = false;
    int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&done));
    if (told >= 0 && write(told, text, (size_t)size) != size)
        abort();
}

static bool fails_now(const void *caller)
{
    bool is_spared = (uintptr_t)caller >= spared && (uintptr_t)caller < spared_end;
    if (!counting || is_spared || atomic_fetch_add(&done, 1) + 1 != fails)
        return false;
    errno = ENOMEM;
    return true;
}

#define OR_FAIL(memory) (fails_now(__builtin_return_address(0)) ? NULL : (memory))

void *malloc(size_t n)                      { return OR_FAIL(__libc_malloc(n)); }
void *calloc(size_t count, size_t n)        { return OR_FAIL(__libc_calloc(count, n)); }
void *realloc(void *old, size_t n)          { return OR_FAIL(__libc_realloc(old, n)); }
void *memalign(size_t align, size_t n)      { return OR_FAIL(__libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { return OR_FAIL(__libc_memalign(align, n)); }

void *reallocarray(void *old, size_t count, size_t n)
{
    size_t size;
    if (__builtin_mul_overflow(count, n, &size)) {
        errno = ENOMEM;
        return NULL;
    }
    return OR_FAIL(__libc_realloc(old, size));
}

int posix_memalign(void **out, size_t align, size_t n)
{
    if (align % sizeof(void *) || align & (align - 1))
        return EINVAL;
    if (fails_now(__builtin_return_address(0)))
        return ENOMEM;
    void *memory = __libc_memalign(align, n);
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}
