/* bench_cast.c - how fast each kernel of casts is, compared with memcpy.
 *
 *     bench-cast MIB ROUNDS
 *
 * The wider side of a cast takes MIB MiB.  In turn: memcpy of as many bytes into
 * a warm buffer with one thread and with two, tn_cast() with one job and with
 * two, and with one thread the bare kernel of the highest level with ordinary
 * stores and, with streaming stores, of each level up to TENON_CPU.  A
 * line per kernel: destination, source, and the GB/s of each of these, of only
 * reading, of streaming stores and of the limit of this traffic, counted on the
 * wider side; all are the best of ROUNDS, by the time of the thread where there
 * is one.  The first line names them.  Data is normally distributed, or its
 * magnitudes for types that have no negative numbers; integers are scaled so that
 * some saturate. */
#include "clock.h"
#include "limits.h"
#include "normal.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/cast.h>

#include "base/cpu.h"
#include "kernels/cast/table.h"

enum { MAX_LEVELS = 3 };
/* timed in turn */
enum { COPY, COPY_BY_TWO, CAST, CAST_BY_TWO, ORDINARY, KERNELS, MAX_TIMED = KERNELS + MAX_LEVELS };

typedef struct level {
    const char *name;
    tn_cast_kernels  kernels;
} level;

static level  levels[MAX_LEVELS];
static size_t nlevels, size;
static int    rounds;
static char  *wide, *from, *to;     /* normal float32; the source; the destination */

static void add_level(unsigned cpu)
{
    levels[nlevels].name = tn_cpu_name(cpu);
    tn_cast_kernels_init(&levels[nlevels++].kernels, cpu);
}

static void *copy_first_half(void *nothing)
{
    memcpy(to, wide, size / 2);
    return nothing;
}

static double copy_by_two_seconds(void)
{
    pthread_t other;
    double began = now();
    if (pthread_create(&other, NULL, copy_first_half, NULL))
        perror("bench-cast: a thread"), exit(3);
    memcpy(to + size / 2, wide + size / 2, size - size / 2);
    pthread_join(other, NULL);
    return now() - began;
}

static double cast_seconds(tn_dtype to_type, tn_dtype from_type, size_t n, float scale, unsigned jobs)
{
    const int64_t shape[] = { (int64_t)n };
    tn_array dst = { .dtype = to_type, .rank = 1, .shape = shape },
    src = { .dtype = from_type, .rank = 1, .shape = shape };
    tn_cast_options options = { .size = sizeof options, .scale = scale, .jobs = jobs };
    tn_error err;
    double began = now(), worked = own_time();
    if (tn_cast(&dst, to, &src, from, TN_LITTLE_ENDIAN, &options, &err))
        fprintf(stderr, "bench-cast: %s\n", err.text), exit(3);
    return jobs == 1 ? own_time() - worked : now() - began;
}

static double kernel_seconds(tn_cast_fn kernel, size_t n, const tn_cast_args *args)
{
    double began = own_time();
    kernel(to, from, n, args);
    return own_time() - began;
}

static tn_cast_args args_for(const tn_dtype_info *type)
{
    bool integer = type->kind == TN_KIND_INT || type->kind == TN_KIND_UINT;
    tn_cast_args a = { .rules = tn_encode_rules_for(type, NULL), .stream = true, .has_scale = integer };
    /* beyond 3 standard deviations it saturates */
    a.scale = integer ? ldexpf(1, type->bits - 1) / 3 : 1;
    return a;
}

/* kernels[i] is of level i; NULL: it has none. */
static void line(tn_dtype to_type, tn_dtype from_type, const tn_cast_fn kernels[MAX_LEVELS])
{
    const tn_dtype_info *t = tn_dtype_get(to_type), *f = tn_dtype_get(from_type);
    unsigned bits = t->bits > f->bits ? t->bits : f->bits;
    size_t n = size / bits * 8;
    tn_cast_args args = args_for(t), ordinary = args;
    ordinary.stream = false;
    float scale = args.has_scale ? args.scale : 0;
    limits most = { 0 };
    double best[MAX_TIMED];
    for (size_t i = 0; i < KERNELS + nlevels; i++)
        best[i] = INFINITY;
    for (int r = 0; r <= rounds; r++) {         /* the first warms up */
        double took[MAX_TIMED];
        measure_limits(&most, to, wide, size);
        took[COPY] = (double)size / most.copy;
        took[COPY_BY_TWO] = copy_by_two_seconds();
        took[CAST] = cast_seconds(to_type, from_type, n, scale, 1);
        took[CAST_BY_TWO] = cast_seconds(to_type, from_type, n, scale, 2);
        took[ORDINARY] = kernel_seconds(kernels[0], n, &ordinary);
        for (size_t i = 0; i < nlevels; i++)
            took[KERNELS + i] = kernel_seconds(kernels[i], n, &args);
        for (size_t i = 0; i < KERNELS + nlevels; i++)
            best[i] = r && took[i] < best[i] ? took[i] : best[i];
    }
    printf("%s %s", t->name, f->name);
    for (size_t i = 0; i < KERNELS + nlevels; i++)
        printf(" %.2f", (double)size / best[i] / 1e9);
    double limit = limit_of(&most, (double)size, (double)n * f->bits / 8, (double)n * t->bits / 8);
    printf(" %.2f %.2f %.2f\n", most.reading / 1e9, most.storing / 1e9, limit / 1e9);
    fflush(stdout);
}

/* The source: the same numbers in its type. */
static void make_source(tn_dtype type)
{
    const tn_cast_kernels *k = tn_cast_kernels_get();
    tn_cast_args args = args_for(tn_dtype_get(type));
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
            each_level(t, TN_FLOAT32, offsetof(tn_cast_kernels, from_f32) + t * sizeof(tn_cast_fn));
}

static void measure(void)
{
    make_source(TN_FLOAT32);
    from_f32(false);
    for (size_t i = 3; i < size; i += 4)
        from[i] &= 0x7f;
    from_f32(true);
    make_source(TN_FLOAT32);
    each_level(TN_FLOAT64, TN_FLOAT32, offsetof(tn_cast_kernels, f32_to_f64));
    for (tn_dtype t = TN_TF32; t <= TN_BOOL; t++)
        if (levels[0].kernels.to_f32[t]) {
            make_source(t);
            each_level(TN_FLOAT32, t, offsetof(tn_cast_kernels, to_f32) + t * sizeof(tn_cast_fn));
        }
    make_source(TN_FLOAT16);
    each_level(TN_BFLOAT16, TN_FLOAT16, offsetof(tn_cast_kernels, f16_to_bf16));
    make_source(TN_BFLOAT16);
    each_level(TN_FLOAT16, TN_BFLOAT16, offsetof(tn_cast_kernels, bf16_to_f16));
    make_source(TN_FLOAT64);
    each_level(TN_FLOAT32, TN_FLOAT64, offsetof(tn_cast_kernels, f64_to_f32));
    each_level(TN_FLOAT32, TN_FLOAT64, offsetof(tn_cast_kernels, f64_to_f32_odd));
}

int main(int argc, char **argv)
{
    size = argc == 3 ? (size_t)atoi(argv[1]) << 20 : 0;
    rounds = argc == 3 ? atoi(argv[2]) : 0;
    if (size == 0 || rounds < 1) {
        fprintf(stderr, "usage: bench-cast MIB ROUNDS\n");
        return 2;
    }
    unsigned cpu = tn_cpu_detect() & ~(unsigned)TN_CPU_FAMILIES;    /* levels alone, without choices */
    if (cpu & TN_CPU_AVX512)
        add_level(cpu);
    add_level(cpu & ~(unsigned)(TN_CPU_AVX512 | TN_CPU_VBMI));
    if (!(wide = malloc(size)) || !(from = malloc(size)) || !(to = malloc(size)))
        return perror("bench-cast"), 3;
    make_normal((float *)(void *)wide, size / 4);
    memset(from, 1, size);
    memset(to, 1, size);
    printf("to from memcpy memcpy-by-2 cast cast-by-2 ordinary");
    for (size_t i = 0; i < nlevels; i++)
        printf(" %s", levels[i].name);
    printf(" reading storing limit\n");
    measure();
    free(wide);
    free(from);
    free(to);
    return 0;
}
