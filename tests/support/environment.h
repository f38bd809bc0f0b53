/* tests/support/environment.h - floating-point environments that a caller may have. */
#ifndef TN_TESTS_ENVIRONMENT_H
#define TN_TESTS_ENVIRONMENT_H

#include <fenv.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef enum environment { ROUNDS_UP, FLUSHES_SUBNORMALS, TRAPS, ENVIRONMENTS } environment;

static inline void enter_environment(environment e)
{
    fesetenv(FE_DFL_ENV);
    if (e == ROUNDS_UP)
        fesetround(FE_UPWARD);
#if defined(__x86_64__)
    if (e == FLUSHES_SUBNORMALS)
        _mm_setcsr(_mm_getcsr() | 0x8040);      /* as programs built with -ffast-math begin */
#endif
    if (e == TRAPS)
        feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
}

static inline void leave_environment(void)
{
    fesetenv(FE_DFL_ENV);
}

/* What can be seen of the environment: modes, traps and the exceptions so far. */
static inline uint64_t environment_seen(void)
{
    uint64_t seen =
        (uint64_t)fegetround() << 32 | (uint64_t)fegetexcept() << 16 | (uint64_t)fetestexcept(FE_ALL_EXCEPT);
#if defined(__x86_64__)
    seen ^= (uint64_t)_mm_getcsr() << 40;
#endif
    return seen;
}

#endif
