/* bench_scaled.c - how fast scaled datatypes are encoded and decoded, compared with memcpy.
 *
 *     bench-scaled MIB ROUNDS [NAME]...
 *
 * A matrix of 4096 columns takes MIB MiB as float32, normally distributed.  In
 * turn: memcpy of as many bytes into a warm buffer, tn_quantize() and
 * tn_dequantize() into warm buffers, each with one job and then with one
 * a core.  A line for each NAME below (all of them, if there is none): name,
 * GB/s of memcpy, of quantizing and of dequantizing with one job, of these
 * three with all, of only reading, of streaming stores, and of the limits of the
 * traffic of quantizing and of dequantizing; counted on the float32 side, each the
 * best of ROUNDS (fewer where one takes seconds).  With one job the time is the
 * thread's own.  TENON_CPU chooses the kernels. */
#include "clock.h"
#include "limits.h"
#include "normal.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "base/pool.h"
#include "quant/rotate.h"

enum { COLUMNS = 4096, PATIENCE = 20 /* seconds for a line, after two rounds */ };
enum { COPY, QUANTIZE, DEQUANTIZE, ACTS };

typedef struct subject {
    const char   *name, *datatype;      /* NULL: the rotation alone */
    tn_scale_rule rule;
    const char   *rotation;
    bool          twice;                /* quantizing reads everything before it begins */
} subject;

static const subject subjects[] = {
    { .name = "mxfp8", .datatype = "mxfp8" },
    { .name = "mxbf8", .datatype = "mxbf8" },
    { .name = "mxint8", .datatype = "mxint8" },
    { .name = "mxfp6", .datatype = "mxfp6" },
    { .name = "mxbf6", .datatype = "mxbf6" },
    { .name = "mxfp4", .datatype = "mxfp4" },
    { .name = "nvfp4", .datatype = "nvfp4", .twice = true },
    { .name = "int4_b32", .datatype = "int4_b32" },
    { .name = "uint4_fi32", .datatype = "uint4_fi32" },
    { .name = "int8_Fc", .datatype = "int8_Fc" },
    { .name = "int8_F", .datatype = "int8_F", .twice = true },
    { .name = "fp8_128x128", .datatype = "e4m3fn|float32_t128_t128" },
    { .name = "int8_16x16", .datatype = "int8|float32_t16_t16" },
    { .name = "mxfp4_across", .datatype = "e2m1fnuz|e8m0_t32d0" },
    { .name = "float32|n2m4", .datatype = "float32|n2m4" },
    { .name = "mxfp4,2:4", .datatype = "e2m1fnuz|e8m0_t32n2m4" },
    { .name = "icb44fi2_e32", .datatype = "icb44fi2_e32" },
    { .name = "mxfp4,scale-mode=mse", .datatype = "mxfp4", .rule = TN_SCALE_MSE },
    { .name = "mxfp4,rotate=hadamard32", .datatype = "mxfp4", .rotation = "hadamard32" },
    { .name = "hadamard32", .rotation = "hadamard32" },
    { .name = "walsh32:1", .rotation = "walsh32:1" },
};

typedef struct bench {
    const subject    *what;
    tn_datatype      *datatype;
    tn_quantize_options options;
    void             *parts[7];
    size_t            made;         /* bytes of all parts */
    tn_pool          *pools[2];     /* one job, one per core */
} bench;

static size_t   count, cores;
static float   *values, *out;
static int64_t  shape[2];

static void must(tn_status status, const char *what, const tn_error *err)
{
    if (status) {
        fprintf(stderr, "bench-scaled: %s: %s\n", what, err->text);
        exit(1);
    }
}

/* ---- timed functions ---- */

static void *copy_share(void *share)
{
    size_t i = *(size_t *)share, begin = count * i / cores, end = count * (i + 1) / cores;
    memcpy(out + begin, values + begin, (end - begin) * sizeof *values);
    return NULL;
}

static void copy(bool all)
{
    pthread_t threads[64];
    size_t shares[64];
    if (!all) {
        memcpy(out, values, count * sizeof *values);
        return;
    }
    for (size_t i = 0; i < cores; i++) {
        shares[i] = i;
        if (pthread_create(&threads[i], NULL, copy_share, &shares[i]))
            perror("bench-scaled"), exit(3);
    }
    for (size_t i = 0; i < cores; i++)
        pthread_join(threads[i], NULL);
}

static double seconds(bench *b, int act, bool all)
{
    const tn_array array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
    tn_error err = { .text = "" };
    tn_status status = TN_OK;
    b->options.jobs = all ? 0 : 1;
    double began = all ? now() : own_time();
    if (act == COPY)
        copy(all);
    else if (!b->datatype)
        status = tn_rotate(&b->options.rotation, act == DEQUANTIZE, (uint64_t)shape[0], COLUMNS, 1, out,
                           b->pools[all], &err);
    else if (act == QUANTIZE)
        status = tn_quantize(b->datatype, &array, values, b->parts, &b->options, NULL, &err);
    else
        status =
            tn_dequantize(b->datatype, &array, (const void *const *)b->parts, out, &b->options, &err);
    double took = (all ? now() : own_time()) - began;
    must(status, b->what->name, &err);
    return took;
}

static void measure(bench *b, int rounds)
{
    const double size = (double)(count * sizeof *values), made = b->datatype ? (double)b->made : size;
    double best[2][ACTS], began = now();
    limits most = { 0 };
    for (int k = 0; k < 2 * ACTS; k++)
        best[k / ACTS][k % ACTS] = INFINITY;
    for (int r = 0; r <= rounds && (r < 2 || now() - began < PATIENCE); r++) {
        measure_limits(&most, out, values, count * sizeof *values);
        for (int k = 0; k < 2 * ACTS; k++) {
            double took = seconds(b, k % ACTS, k / ACTS), *least = &best[k / ACTS][k % ACTS];
            *least = r && took < *least ? took : *least;        /* the first round warms up */
        }
    }
    printf("%s", b->what->name);
    for (int k = 0; k < 2 * ACTS; k++)
        printf(" %.3f", size / best[k / ACTS][k % ACTS] / 1e9);
    printf(" %.3f %.3f %.3f %.3f\n", most.reading / 1e9, most.storing / 1e9,
           limit_of(&most, size, b->what->twice ? 2 * size : size, made) / 1e9,
           limit_of(&most, size, made, size) / 1e9);
    fflush(stdout);
}

/* ---- what it is of ---- */

static void make_parts(bench *b)
{
    tn_scaled_shapes shapes;
    tn_error err = { .text = "" };
    must(tn_scaled_shapes_for(b->datatype, 2, shape, &shapes, &err), b->what->name, &err);
    for (uint32_t k = 0; k < shapes.count; k++) {
        const tn_scaled_part *p = &shapes.parts[k];
        uint64_t nbytes;
        must(tn_array_nbytes(&(tn_array){ .dtype = p->dtype, .rank = p->rank, .shape = p->shape }, &nbytes),
             p->role, &err);
        if (!(b->parts[k] = malloc((size_t)nbytes + 1)))
            perror("bench-scaled"), exit(3);
        memset(b->parts[k], 1, (size_t)nbytes + 1);
        b->made += (size_t)nbytes;
    }
}

static void run(const subject *what, int rounds)
{
    bench b = { .what = what, .options = { .size = sizeof b.options, .rule = what->rule } };
    tn_error err = { .text = "" };
    if (what->rotation)
        must(tn_rotation_parse(what->rotation, &b.options.rotation, &err), what->name, &err);
    if (what->datatype) {
        must(tn_datatype_parse(what->datatype, &b.datatype, &err), what->name, &err);
        make_parts(&b);
    }
    for (unsigned k = 0; k < 2; k++)
        must(tn_pool_new(k ? 0 : 1, &b.pools[k], &err), what->name, &err);
    measure(&b, rounds);
    for (unsigned k = 0; k < 2; k++)
        tn_pool_free(b.pools[k]);
    for (unsigned k = 0; k < 7; k++)
        free(b.parts[k]);
    tn_datatype_free(b.datatype);
}

static bool is_wanted(const subject *what, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], what->name) == 0)
            return true;
    return n == 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    count = argc > 2 ? ((size_t)atoi(argv[1]) << 20) / sizeof *values / COLUMNS * COLUMNS : 0;
    if (count == 0 || rounds < 1) {
        fprintf(stderr, "usage: bench-scaled MIB ROUNDS [NAME]...\n");
        return 2;
    }
    cores = tn_core_count() < 64 ? tn_core_count() : 64;
    shape[0] = (int64_t)(count / COLUMNS);
    shape[1] = COLUMNS;
    values = malloc(count * sizeof *values);
    out = malloc(count * sizeof *out);
    if (!values || !out)
        return perror("bench-scaled"), 3;
    make_normal(values, count);
    make_normal(out, count);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (is_wanted(&subjects[i], argc - 3, argv + 3))
            run(&subjects[i], rounds);
    free(values);
    free(out);
    return 0;
}
