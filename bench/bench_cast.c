/* bench_cast.c - how fast each kernel of casts is, beside memcpy.
 *
 *     bench-cast MIB ROUNDS
 *
 * One thread.  The wider side of a cast takes MIB MiB; memcpy copies as many
 * into a warm buffer, in turn with the kernels of each level up to TENON_CPU.
 * A line a kernel: destination, source, GB/s of memcpy, and of each level the
 * GB/s of the wider side; all are the best of ROUNDS.  The first line names the
 * levels.  Data is normally distributed, or its magnitudes for types that have
 * no negative numbers; integers are scaled so that some saturate. */
#include "clock.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "transform/kernels/kernels.h"

enum { MAX_LEVELS = 3 };

typedef struct level {
    const char *name;
    tn_kernels  kernels;
} level;

static level  levels[MAX_LEVELS];
static size_t nlevels, size;
static int    rounds;
static char  *wide, *from, *to;     /* normal float32; the source; the destination */

static void add_level(unsigned cpu)
{
    levels[nlevels].name = tn_cpu_name(cpu);
    tn_kernels_init(&levels[nlevels++].kernels, cpu);
}

/* Sums of uniform numbers: close to normal, largest about 6. */
static void make_normal(float *out, size_t n)
{
    enum { PERIOD = 1 << 20 };
    uint64_t state = 1;
    for (size_t i = 0; i < n && i < PERIOD; i++) {
        float sum = -6;
        for (int k = 0; k < 12; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sum += (float)(state >> 40) * 0x1p-24F;
        }
        out[i] = sum;
    }
    for (size_t i = PERIOD; i < n; i++)
        out[i] = out[i - PERIOD];
}

static double copy_seconds(void)
{
    double began = now();
    memcpy(to, wide, size);
    return now() - began;
}

static double seconds(tn_cast_fn kernel, size_t n, const tn_kernel_args *args)
{
    double began = now();
    kernel(to, from, n, args);
    return now() - began;
}

static tn_kernel_args args_for(const tn_dtype_info *type)
{
    bool integer = type->kind == TN_KIND_INT || type->kind == TN_KIND_UINT;
    tn_kernel_args a = { .rules = tn_encode_rules_for(type, NULL), .stream = true, .has_scale = integer };
    a.scale = integer ? ldexpf(1, type->bits - 1) / 3 : 1;      /* beyond 3 standard deviations it saturates */
    return a;
}

/* kernels[i] is of level i; NULL: it has none. */
static void line(tn_dtype to_type, tn_dtype from_type, const tn_cast_fn kernels[MAX_LEVELS])
{
    const tn_dtype_info *t = tn_dtype_get(to_type), *f = tn_dtype_get(from_type);
    unsigned bits = t->bits > f->bits ? t->bits : f->bits;
    size_t n = size / bits * 8;
    tn_kernel_args args = args_for(t);
    double best_copy = INFINITY, best[MAX_LEVELS];
    for (size_t i = 0; i < nlevels; i++)
        best[i] = INFINITY;
    for (int r = 0; r <= rounds; r++) {         /* the first warms up */
        double copied = copy_seconds();
        best_copy = r && copied < best_copy ? copied : best_copy;
        for (size_t i = 0; i < nlevels; i++) {
            double took = seconds(kernels[i], n, &args);
            best[i] = r && took < best[i] ? took : best[i];
        }
    }
    printf("%s %s %.2f", t->name, f->name, (double)size / best_copy / 1e9);
    for (size_t i = 0; i < nlevels; i++)
        printf(" %.2f", (double)size / best[i] / 1e9);
    printf("\n");
    fflush(stdout);
}

/* The source: the same numbers in its type. */
static void make_source(tn_dtype type)
{
    const tn_kernels *k = tn_kernels_get();
    tn_kernel_args args = args_for(tn_dtype_get(type));
    args.rules.negative_overflow = 0;                   /* else e8m0 would be half NaN */
    if (type == TN_FLOAT32)
        memcpy(from, wide, size);
    else if (type == TN_FLOAT64)
        k->f32_to_f64(from, wide, size / 8, &args);
    else
        k->from_f32[type](from, wide, size / 4, &args);
    if (type == TN_FLOAT16 || type == TN_BFLOAT16)
        memcpy(from + size / 2, from, size / 2);        /* for casts between the two */
}

static void each_level(tn_dtype to_type, tn_dtype from_type, size_t offset)
{
    tn_cast_fn kernels[MAX_LEVELS] = { 0 };
    for (size_t i = 0; i < nlevels; i++)
        memcpy(&kernels[i], (const char *)&levels[i].kernels + offset, sizeof kernels[i]);
    if (kernels[0])
        line(to_type, from_type, kernels);
}

static bool has_vectors(tn_dtype type)
{
    return type != TN_INT64 && type != TN_UINT64 && type != TN_UINT32;
}

static bool is_unsigned(tn_dtype type)
{
    return type == TN_FLOAT8_E8M0 || tn_dtype_get(type)->kind == TN_KIND_UINT;
}

static void from_f32(bool without_sign)
{
    for (tn_dtype t = TN_TF32; t <= TN_BOOL; t++)
        if (has_vectors(t) && is_unsigned(t) == without_sign)
            each_level(t, TN_FLOAT32, offsetof(tn_kernels, from_f32) + t * sizeof(tn_cast_fn));
}

static void measure(void)
{
    make_source(TN_FLOAT32);
    from_f32(false);
    for (size_t i = 3; i < size; i += 4)
        from[i] &= 0x7f;
    from_f32(true);
    make_source(TN_FLOAT32);
    each_level(TN_FLOAT64, TN_FLOAT32, offsetof(tn_kernels, f32_to_f64));
    for (tn_dtype t = TN_TF32; t <= TN_BOOL; t++)
        if (levels[0].kernels.to_f32[t]) {
            make_source(t);
            each_level(TN_FLOAT32, t, offsetof(tn_kernels, to_f32) + t * sizeof(tn_cast_fn));
        }
    make_source(TN_FLOAT16);
    each_level(TN_BFLOAT16, TN_FLOAT16, offsetof(tn_kernels, f16_to_bf16));
    make_source(TN_BFLOAT16);
    each_level(TN_FLOAT16, TN_BFLOAT16, offsetof(tn_kernels, bf16_to_f16));
    make_source(TN_FLOAT64);
    each_level(TN_FLOAT32, TN_FLOAT64, offsetof(tn_kernels, f64_to_f32));
    each_level(TN_FLOAT32, TN_FLOAT64, offsetof(tn_kernels, f64_to_f32_odd));
}

int main(int argc, char **argv)
{
    size = argc == 3 ? (size_t)atoi(argv[1]) << 20 : 0;
    rounds = argc == 3 ? atoi(argv[2]) : 0;
    if (size == 0 || rounds < 1) {
        fprintf(stderr, "usage: bench-cast MIB ROUNDS\n");
        return 2;
    }
    unsigned cpu = tn_cpu_detect();
    if (cpu & TN_CPU_AVX512)
        add_level(cpu);
    add_level(cpu & ~(unsigned)TN_CPU_AVX512);
    if (!(wide = malloc(size)) || !(from = malloc(size)) || !(to = malloc(size)))
        return perror("bench-cast"), 3;
    make_normal((float *)(void *)wide, size / 4);
    memset(from, 1, size);
    memset(to, 1, size);
    printf("to from memcpy");
    for (size_t i = 0; i < nlevels; i++)
        printf(" %s", levels[i].name);
    printf("\n");
    measure();
    free(wide);
    free(from);
    free(to);
    return 0;
}
