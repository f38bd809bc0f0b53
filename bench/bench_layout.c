/* bench_layout.c - how fast reorders are, compared with memcpy.
 *
 *     bench-layout ROUNDS [TEXT]
 *
 * One thread.  memcpy copies as many bytes as the destination has into a warm
 * buffer, in turn with the kernels of each level up to TENON_CPU.  A line a
 * reorder: its name, the GB/s of memcpy, and GB/s of the destination of
 * tn_reorder() with one and with two threads and of one block with ordinary stores
 * and, with streaming stores, with each level,
 * of only reading, of streaming stores and of the limit of this traffic; all are
 * the best of ROUNDS, by the time of the thread where there is one.  The first
 * line names them.  With TEXT only reorders in whose name it is. */
#include "clock.h"
#include "limits.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "reorder/layout.h"

enum { MAX_LEVELS = 3, MAX_DIMS = 4 };

typedef struct level {
    const char       *name;
    tn_reorder_kernels kernels;
} level;

/* Both sides dense; dimension i of the destination is dimension order[i] of the source. */
typedef struct reorder {
    const char *name;
    tn_dtype    dtype;
    unsigned    bits;
    uint32_t    rank;
    /* of the source; the destination's in its own order */
    int64_t     shape[MAX_DIMS], padded[MAX_DIMS];
    uint32_t    order[MAX_DIMS];
} reorder;

#define TO_NHWC { 0, 2, 3, 1 }
#define TO_NCHW { 0, 3, 1, 2 }

static const reorder reorders[] = {
    { "float32:NCHW:NHWC:64x256x128x128",     TN_FLOAT32,  32, 4, { 64, 256, 128, 128 },
      { 64, 128, 128, 256 }, TO_NHWC },
    { "float32:NHWC:NCHW:64x256x128x128",     TN_FLOAT32,  32, 4, { 64, 128, 128, 256 },
      { 64, 256, 128, 128 }, TO_NCHW },
    { "bfloat16:NCHW:NHWC:64x256x128x128",    TN_BFLOAT16, 16, 4, { 64, 256, 128, 128 },
      { 64, 128, 128, 256 }, TO_NHWC },
    { "bfloat16:NHWC:NCHW:64x256x128x128",    TN_BFLOAT16, 16, 4, { 64, 128, 128, 256 },
      { 64, 256, 128, 128 }, TO_NCHW },
    { "int8:NCHW:NHWC:64x256x128x128",        TN_INT8,      8, 4, { 64, 256, 128, 128 },
      { 64, 128, 128, 256 }, TO_NHWC },
    { "int8:NHWC:NCHW:64x256x128x128",        TN_INT8,      8, 4, { 64, 128, 128, 256 },
      { 64, 256, 128, 128 }, TO_NCHW },
    { "uint8:NCHW:NHWC:64x3x1024x1024",       TN_UINT8,     8, 4, { 64, 3, 1024, 1024 },
      { 64, 1024, 1024, 3 }, TO_NHWC },
    { "uint8:NHWC:NCHW:64x3x1024x1024",       TN_UINT8,     8, 4, { 64, 1024, 1024, 3 },
      { 64, 3, 1024, 1024 }, TO_NCHW },
    { "float32:RC:CR:32768x4096",             TN_FLOAT32,  32, 2, { 32768, 4096 },       { 4096, 32768 },
      { 1, 0 } },
    { "float64:RC:CR:16384x4096",             TN_FLOAT64,  64, 2, { 16384, 4096 },       { 4096, 16384 },
      { 1, 0 } },
    { "float32:NCHW:C=16:32x11x224x224",      TN_FLOAT32,  32, 4, { 32, 11, 224, 224 },  { 32, 16, 224, 224 },
      { 0, 1, 2, 3 } },
    { "float32:NHWC:C=16:32x11x224x224",      TN_FLOAT32,  32, 4, { 32, 224, 224, 11 },  { 32, 224, 224, 16 },
      { 0, 1, 2, 3 } },
    { "float32:NCHW:NHWC,C=16:32x11x224x224", TN_FLOAT32,  32, 4, { 32, 11, 224, 224 },  { 32, 224, 224, 16 },
      TO_NHWC },
    { "float32:NCHW:NHWC:256x100x57x57",      TN_FLOAT32,  32, 4, { 256, 100, 57, 57 },  { 256, 57, 57, 100 },
      TO_NHWC },
    { "int4:NCHW:NHWC:64x256x128x128",        TN_INT4,      4, 4, { 64, 256, 128, 128 },
      { 64, 128, 128, 256 }, TO_NHWC },
};

static level  levels[MAX_LEVELS];
static size_t nlevels;
static int    rounds;
static char  *from, *to;

static void add_level(unsigned cpu)
{
    levels[nlevels].name = tn_cpu_name(cpu);
    tn_reorder_kernels_init(&levels[nlevels++].kernels, cpu);
}

static size_t bytes_of(const reorder *r, const int64_t *shape)
{
    size_t n = 1;
    for (uint32_t i = 0; i < r->rank; i++)
        n *= (size_t)shape[i];
    return n / 8 * r->bits;
}

static int64_t dense_stride(const reorder *r, const int64_t *shape, uint32_t i)
{
    int64_t stride = 1;
    for (uint32_t k = i + 1; k < r->rank; k++)
        stride *= shape[k];
    return stride;
}

static double whole_seconds(const reorder *r, unsigned jobs)
{
    tn_array dst = { .dtype = r->dtype, .rank = r->rank, .shape = r->padded };
    tn_array src = { .dtype = r->dtype, .rank = r->rank, .shape = r->shape };
    tn_reorder_options options = { .size = sizeof options, .order = r->order, .jobs = jobs };
    double began = now(), worked = own_time();
    if (tn_reorder(&dst, to, &src, from, &options, NULL) != TN_OK)
        exit(3);
    return jobs == 1 ? own_time() - worked : now() - began;
}

static double seconds(const reorder *r, const tn_reorder_kernels *kernels, bool stream)
{
    tn_reorder_dim dims[MAX_DIMS];
    for (uint32_t i = 0; i < r->rank; i++)
        dims[i] = (tn_reorder_dim){ r->padded[i], r->shape[r->order[i]], dense_stride(r, r->padded, i),
                                    dense_stride(r, r->shape, r->order[i]) };
    double began = own_time();
    tn_reorder_block(kernels, r->bits, r->rank, dims, to, from, NULL, stream);
    return own_time() - began;
}

static void keep(double *best, double took, int round)
{
    if (round && took < *best)          /* the first warms up */
        *best = took;
}

static void line(const reorder *r)
{
    double size = (double)bytes_of(r, r->padded), source = (double)bytes_of(r, r->shape);
    double best[4 + MAX_LEVELS];
    limits most = { 0 };
    for (size_t i = 0; i < 4 + nlevels; i++)
        best[i] = INFINITY;
    for (int k = 0; k <= rounds; k++) {
        measure_limits(&most, to, from, (size_t)size);
        keep(&best[0], size / most.copy, k);
        keep(&best[1], whole_seconds(r, 1), k);
        keep(&best[2], whole_seconds(r, 2), k);
        keep(&best[3], seconds(r, &levels[0].kernels, false), k);
        for (size_t i = 0; i < nlevels; i++)
            keep(&best[4 + i], seconds(r, &levels[i].kernels, true), k);
    }
    printf("%s", r->name);
    for (size_t i = 0; i < 4 + nlevels; i++)
        printf(" %.2f", size / best[i] / 1e9);
    printf(" %.2f %.2f %.2f\n", most.reading / 1e9, most.storing / 1e9,
           limit_of(&most, size, source, size) / 1e9);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    size_t most = 0;
    rounds = argc >= 2 ? atoi(argv[1]) : 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: bench-layout ROUNDS [TEXT]\n");
        return 2;
    }
    unsigned cpu = tn_cpu_detect() & ~(unsigned)TN_CPU_FAMILIES;    /* levels alone, without choices */
    if (cpu & TN_CPU_AVX512)
        add_level(cpu);
    if (cpu & TN_CPU_AVX2)
        add_level(TN_CPU_AVX2);
    if (!(cpu & TN_CPU_AVX2))
        add_level(cpu);
    for (size_t i = 0; i < sizeof reorders / sizeof *reorders; i++) {
        size_t dst = bytes_of(&reorders[i], reorders[i].padded),
               src = bytes_of(&reorders[i], reorders[i].shape);
        most = dst > most ? dst : src > most ? src : most;
    }
    /* As the buffers of files and windows are; small pages, as malloc() gives them. */
    if (!(from = aligned_alloc(4096, most)) || !(to = aligned_alloc(4096, most)))
        return perror("bench-layout"), 3;
    memset(from, 1, most);
    memset(to, 1, most);
    printf("reorder memcpy whole by-2 ordinary");
    for (size_t i = 0; i < nlevels; i++)
        printf(" %s", levels[i].name);
    printf(" reading storing limit\n");
    for (size_t i = 0; i < sizeof reorders / sizeof *reorders; i++)
        if (argc < 3 || strstr(reorders[i].name, argv[2]))
            line(&reorders[i]);
    free(from);
    free(to);
    return 0;
}
