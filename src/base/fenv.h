/* base/fenv.h - the default floating-point environment for a while.
 *
 * Callers may have set another rounding, and must find their flags as they were.  Nearly all have the default
 * one: then only the flags are kept, because setting everything takes longer than a small tensor. */
#ifndef TN_BASE_FENV_H
#define TN_BASE_FENV_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef struct tn_fenv {
    fenv_t   all;
    bool     is_default;        /* but for flags, which are in `control` */
    unsigned control;
} tn_fenv;

static inline void tn_fenv_enter(tn_fenv *callers)
{
    callers->is_default = false;
#if defined(__x86_64__)
    enum { DEFAULT = 0x1f80, FLAGS = 0x3f, X87_DEFAULT = 0x37f };
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    callers->control = _mm_getcsr();
    callers->is_default = (callers->control & ~(unsigned)FLAGS) == DEFAULT && x87 == X87_DEFAULT;
#endif
    if (callers->is_default)
        return;
    fegetenv(&callers->all);
    fesetenv(FE_DFL_ENV);
}

static inline void tn_fenv_leave(const tn_fenv *callers)
{
#if defined(__x86_64__)
    if (callers->is_default && _mm_getcsr() != callers->control)
        _mm_setcsr(callers->control);
#endif
    if (!callers->is_default)
        fesetenv(&callers->all);
}

#endif
