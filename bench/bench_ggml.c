/* bench_ggml.c - how fast ggml's block types are, compared with memcpy, and whether
 * its MXFP4 is ours.
 *
 *     bench-ggml MIB ROUNDS as bench-scaled, with one thread, whose own time counts: a line for each type
 *     with the
 *                                GB/s of memcpy, of quantizing and of dequantizing
 *     bench-ggml compare SEED codes and scales of MXFP4 against those of Tenon with `ggml`: "N values, M
 *     differ"
 *
 * Needs ggml's sources; bench/scaled builds only the code of block
 * types and their CPU kernels. */
#include "clock.h"
#include "normal.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "ggml-quants.h"
#include "quants.h"

enum { COLUMNS = 4096, PATIENCE = 20 };

typedef struct type {
    const char *name;
    void (*quantize)(const float *x, void *y, int64_t n);
    void (*dequantize)(const void *x, float *y, int64_t n);
    size_t block, bytes;
} type;

#define TYPE(type, values)                                                                                  \
    static void to_##type(const float *x, void *y, int64_t n) { quantize_row_##type(x, y, n); }             \
    static void from_##type(const void *x, float *y, int64_t n) { dequantize_row_##type(x, y, n); }
#define ROW(type, values) { #type, to_##type, from_##type, values, sizeof(block_##type) }

TYPE(q8_0, QK8_0)
TYPE(q4_0, QK4_0)
TYPE(mxfp4, QK_MXFP4)
#ifdef QK_NVFP4
TYPE(nvfp4, QK_NVFP4)
#endif
TYPE(q4_K, QK_K)

static const type types[] = {
    ROW(q8_0, QK8_0), ROW(q4_0, QK4_0), ROW(mxfp4, QK_MXFP4),
#ifdef QK_NVFP4
    ROW(nvfp4, QK_NVFP4),
#endif
    ROW(q4_K, QK_K),
};

/* What ggml's code calls when a promise to it is broken; the rest of ggml is not built. */
void ggml_abort(const char *file, int line, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "bench-ggml: %s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    exit(3);
}

static void *must_have(size_t n)
{
    void *p = malloc(n);
    if (!p)
        perror("bench-ggml"), exit(3);
    memset(p, 1, n);
    return p;
}

/* ---- speed ---- */

/* Row by row, as ggml does it. */
static double quantize_seconds(const type *t, const float *x, char *y, size_t n)
{
    double began = own_time();
    for (size_t i = 0; i < n; i += COLUMNS)
        t->quantize(x + i, y + i / t->block * t->bytes, COLUMNS);
    return own_time() - began;
}

static double dequantize_seconds(const type *t, const char *x, float *y, size_t n)
{
    double began = own_time();
    for (size_t i = 0; i < n; i += COLUMNS)
        t->dequantize(x + i / t->block * t->bytes, y + i, COLUMNS);
    return own_time() - began;
}

static void least(double *best, double took, bool counts)
{
    *best = counts && took < *best ? took : *best;
}

static void measure(const type *t, const float *values, float *out, size_t n, int rounds)
{
    char *blocks = must_have(n / t->block * t->bytes);
    double copy = INFINITY, to = INFINITY, from = INFINITY, began = now();
    for (int r = 0; r <= rounds && (r < 2 || now() - began < PATIENCE); r++) {      /* the first round warms up */
        double started = own_time();
        memcpy(out, values, n * sizeof *out);
        least(&copy, own_time() - started, r);
        least(&to, quantize_seconds(t, values, blocks, n), r);
        least(&from, dequantize_seconds(t, blocks, out, n), r);
    }
    double size = (double)(n * sizeof *values) / 1e9;
    printf("%s %.3f %.3f %.3f\n", t->name, size / copy, size / to, size / from);
    fflush(stdout);
    free(blocks);
}

static void speed(size_t n, int rounds)
{
    float *values = must_have(n * sizeof *values), *out = must_have(n * sizeof *out);
    make_normal(values, n);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        measure(&types[i], values, out, n, rounds);
    free(values);
    free(out);
}

/* ---- the same codes ---- */

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

/* Values of one block, by its number: normal ones of any magnitude, ties, powers of two and their neighbours,
 * any bits that are a finite number, zeros. */
static void make_block(float *x, size_t number, uint64_t *state)
{
    int exponent = (int)(random_bits(state) % 200) - 100;
    for (size_t i = 0; i < QK_MXFP4; i++) {
        float sign = random_bits(state) % 2 ? -1 : 1, y;
        uint32_t bits = (uint32_t)random_bits(state);
        switch (number % 8) {
        case 0:  y = ldexpf((float)(random_bits(state) % 49) / 4, exponent); break;
        case 1:  y = nextafterf(ldexpf(1, exponent + (int)(bits % 4)), bits & 8 ? INFINITY : 0); break;
        case 2:  y = random_bits(state) % 3 ? 0 : ldexpf(1, exponent - (int)(bits % 9)); break;
        case 3:  bits = bits % 0x7f000000 + 0x800000; memcpy(&y, &bits, sizeof y); break;
        default: y = ldexpf((float)(bits >> 8), exponent - 24 - (int)(random_bits(state) % 4)); break;
        }
        x[i] = sign * y;
    }
}

static void compare(uint64_t seed)
{
    enum { BLOCKS = 1 << 18, VALUES = BLOCKS * QK_MXFP4 };
    float *x = must_have(VALUES * sizeof *x);
    block_mxfp4 *theirs = must_have(BLOCKS * sizeof *theirs);
    uint8_t *data = must_have(VALUES / 2), *scale = must_have(BLOCKS);
    for (size_t b = 0; b < BLOCKS; b++)
        make_block(x + b * QK_MXFP4, b, &seed);
    quantize_row_mxfp4(x, theirs, VALUES);

    const int64_t shape[] = { VALUES };
    const tn_quantize_options options = { .size = sizeof options, .ggml = true };
    tn_datatype *mxfp4 = NULL;
    tn_error err = { .text = "" };
    if (tn_datatype_parse("mxfp4", &mxfp4, &err) ||
        tn_quantize(mxfp4, &(tn_array){ .dtype = TN_FLOAT32, .rank = 1, .shape = shape }, x,
                           (void *[]){ data, scale }, &options,
                           NULL, &err)) {
        fprintf(stderr, "bench-ggml: %s\n", err.text);
        exit(1);
    }
    size_t different = 0;
    for (size_t b = 0; b < BLOCKS; b++) {
        for (size_t i = 0; i < QK_MXFP4; i++) {
            size_t at = b * QK_MXFP4 + i, half = QK_MXFP4 / 2;
            unsigned ours = data[at / 2] >> at % 2 * 4 & 15,
                     its = theirs[b].qs[i % half] >> i / half * 4 & 15;
            different += ours != its || scale[b] != theirs[b].e;
        }
    }
    printf("%d values, %zu differ\n", (int)VALUES, different);
    tn_datatype_free(mxfp4);
    free(x);
    free(theirs);
    free(data);
    free(scale);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "compare") == 0) {
        compare(strtoull(argv[2], NULL, 10));
        return 0;
    }
    size_t n = argc == 3 ? ((size_t)atoi(argv[1]) << 20) / sizeof(float) / COLUMNS * COLUMNS : 0;
    int rounds = argc == 3 ? atoi(argv[2]) : 0;
    if (n == 0 || rounds < 1) {
        fprintf(stderr, "usage: bench-ggml MIB ROUNDS, or bench-ggml compare SEED\n");
        return 2;
    }
    speed(n, rounds);
    return 0;
}
