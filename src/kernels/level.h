/* kernels/level.h - what all tables of kernels share.
 *
 * A level is a set of CPU features: scalar, AVX2, AVX-512, VBMI or NEON.  The scalar
 * level fills a table.  Each level above it replaces the entries that it makes
 * faster.  All levels give the same bits. */
#ifndef TN_KERNELS_LEVEL_H
#define TN_KERNELS_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For loops that are compiled once per constant argument. */
#define INLINE static inline __attribute__((always_inline))

/* For loops that store so much that the CPU by itself does not prefetch far enough.  The address may be
 * beyond the end of the array: nothing is read there. */
INLINE void fetch_ahead(const void *p)
{
    __builtin_prefetch((const void *)((uintptr_t)p + 4096));
}

/* Declares the functions of a table of type T (machine.c):
 *
 *   T_init(k, cpu)   fills the table for a CPU mask; a pure function, so that tests can compare levels
 *   T_get()          returns the table of this machine, filled once
 *   T_init_LEVEL(k)  belongs to T_init(), which calls it only if the CPU has the level */
#define TN_KERNEL_TABLE(T)              \
    void T##_init(T *k, unsigned cpu);  \
    const T *T##_get(void);             \
    void T##_init_scalar(T *k);         \
    void T##_init_avx2(T *k);           \
    void T##_init_avx512(T *k);         \
    void T##_init_vbmi(T *k);           \
    void T##_init_neon(T *k)

#endif
