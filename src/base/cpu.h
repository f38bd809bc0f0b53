/* base/cpu.h - the features of this CPU, as a mask. */
#ifndef TN_BASE_CPU_H
#define TN_BASE_CPU_H

enum {
    TN_CPU_AVX2   = 1,          /* with F16C, FMA and BMI2 */
    TN_CPU_AVX512 = 2,          /* F, BW, DQ, VL, VBMI */
    TN_CPU_NEON   = 4,
    TN_CPU_ZEN4   = 8           /* no feature: a family whose choices are measured (kernels/machine.c) */
};

/* The mask of this machine, limited by the environment variable TENON_CPU (scalar, avx2, avx512, neon: at
 * most that level, and no family: the level alone decides).  An unknown word is ignored. */
unsigned tn_cpu_detect(void);

/* "scalar", "avx2", "avx512", "neon": the highest level of a mask. */
const char *tn_cpu_name(unsigned cpu);

#endif
