/* base/cpu.c - the features of this CPU, as a mask. */
#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Each level with those below it, lowest first. */
static const struct { const char *name; unsigned own, with_lower; } levels[] = {
    { "scalar", 0, 0 },
    { "avx2", TN_CPU_AVX2, TN_CPU_AVX2 },
    { "avx512", TN_CPU_AVX512, TN_CPU_AVX2 | TN_CPU_AVX512 | TN_CPU_VBMI },
    { "neon", TN_CPU_NEON, TN_CPU_NEON },
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

#if defined(__x86_64__)
/* The measured family that this processor belongs to, or 0. */
static unsigned family_bit(void)
{
    enum { AMD = signature_AMD_ebx, INTEL = signature_INTEL_ebx };
    unsigned a, vendor, c, d, unused;
    if (!__get_cpuid(0, &a, &vendor, &c, &d) || !__get_cpuid(1, &a, &unused, &c, &d))
        return 0;
    unsigned family = (a >> 8 & 15) + (a >> 20 & 255), model = (a >> 4 & 15) | (a >> 12 & 0xf0);
    if (vendor == INTEL && family == 6 && model == 0x55)
        return TN_CPU_SKYLAKE;
    if (vendor == AMD && family == 0x1a)
        return TN_CPU_ZEN5;
    if (vendor != AMD || family != 0x19)        /* which Zen 3 and Zen 4 share, by model */
        return 0;
    bool zen4 = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0x7f) || model >> 4 == 0xa;
    return zen4 ? TN_CPU_ZEN4 : 0;
}

/* clang 14's __builtin_cpu_supports() has no name for it. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static unsigned ask_hardware(void)
{
    unsigned mask = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && has_f16c() && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        mask |= TN_CPU_AVX2;
    if (mask && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        mask |= TN_CPU_AVX512;
    if (mask & TN_CPU_AVX512 && __builtin_cpu_supports("avx512vbmi"))
        mask |= TN_CPU_VBMI;
    if (mask)
        mask |= family_bit();
#elif defined(__aarch64__)
    mask |= TN_CPU_NEON;
#endif
    return mask;
}

unsigned tn_cpu_detect(void)
{
    const char *asked = getenv("TENON_CPU");
    unsigned allowed = ~0u;
    for (size_t i = 0; asked && i < LEVELS; i++)
        if (strcmp(asked, levels[i].name) == 0)
            allowed = levels[i].with_lower;
    return ask_hardware() & allowed;
}

const char *tn_cpu_name(unsigned cpu)
{
    const char *name = levels[0].name;
    for (size_t i = 1; i < LEVELS; i++)
        if (cpu & levels[i].own)
            name = levels[i].name;
    return name;
}
