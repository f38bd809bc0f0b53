/* base/cpu.h - the features of this CPU, as a mask. */
#ifndef TN_BASE_CPU_H
#define TN_BASE_CPU_H

enum {
    TN_CPU_AVX2   = 1,          /* with F16C, FMA and BMI2 */
    TN_CPU_AVX512 = 2,          /* F, BW, DQ, VL */
    TN_CPU_NEON   = 4,
    TN_CPU_VBMI   = 16,         /* with AVX-512: whole vectors of bytes are permuted */
    /* no features: families whose choices are measured (kernels/machine.c) */
    TN_CPU_ZEN4    = 8,
    TN_CPU_SKYLAKE = 32,        /* with AVX-512: Skylake-SP, Cascade Lake, Cooper Lake */
    TN_CPU_ZEN5    = 64,        /* all of family 26 */
    TN_CPU_FAMILIES = TN_CPU_ZEN4 | TN_CPU_ZEN5 | TN_CPU_SKYLAKE
};

/* The mask of this machine, limited by the environment variable TENON_CPU (scalar, avx2, avx512, neon: at
 * most that level, and no family: the level alone decides).  An unknown word is ignored. */
unsigned tn_cpu_detect(void);

/* "scalar", "avx2", "avx512", "neon": the highest level of a mask. */
const char *tn_cpu_name(unsigned cpu);

#endif
