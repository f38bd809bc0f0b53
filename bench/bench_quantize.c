/* bench_quantize.c - how fast quantization is, beside memcpy.
 *
 *     bench-quantize MIB ROUNDS
 *
 * One thread.  A matrix of 4096 columns takes MIB MiB as float32; memcpy copies
 * as many bytes into a warm buffer, in turn with the work.  A line each: what,
 * from, to, where the scales are, GB/s of memcpy, and ours as a fraction of it
 * by the bytes of the float32 side; the best of ROUNDS.  TENON_CPU chooses the
 * kernels. */
#include "clock.h"
#include "normal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { COLUMNS = 4096 };

typedef enum act { QUANTIZE, DEQUANTIZE, CHOOSE } act;

typedef struct line {
    act           what;
    tn_dtype      codes;
    uint32_t      rank;
    int32_t       axis;         /* of rows x 4096, or (rank 3) rows x 512 x 8 */
    tn_scale_rule rule;
    const char   *text;
} line;

static const line lines[] = {
    { QUANTIZE,   TN_INT8,  2, TN_PER_TENSOR, TN_SCALE_RANGE, "quantize float32 int8 tensor" },
    { QUANTIZE,   TN_INT8,  2, 0, TN_SCALE_RANGE, "quantize float32 int8 axis=0" },
    { QUANTIZE,   TN_INT8,  2, 1, TN_SCALE_RANGE, "quantize float32 int8 axis=last" },
    { QUANTIZE,   TN_INT8,  3, 1, TN_SCALE_RANGE, "quantize float32 int8 axis=1,inner=8" },
    { QUANTIZE,   TN_INT4,  2, 0, TN_SCALE_RANGE, "quantize float32 int4 axis=0" },
    { DEQUANTIZE, TN_INT8,  2, TN_PER_TENSOR, TN_SCALE_RANGE, "dequantize int8 float32 tensor" },
    { DEQUANTIZE, TN_INT8,  2, 0, TN_SCALE_RANGE, "dequantize int8 float32 axis=0" },
    { DEQUANTIZE, TN_INT8,  2, 1, TN_SCALE_RANGE, "dequantize int8 float32 axis=last" },
    { DEQUANTIZE, TN_INT4,  2, 0, TN_SCALE_RANGE, "dequantize int4 float32 axis=0" },
    { CHOOSE,     TN_INT8,  2, TN_PER_TENSOR, TN_SCALE_RANGE, "range float32 int8 tensor" },
    { CHOOSE,     TN_INT8,  2, 0, TN_SCALE_RANGE, "range float32 int8 axis=0" },
    { CHOOSE,     TN_INT8,  2, 1, TN_SCALE_RANGE, "range float32 int8 axis=last" },
    { CHOOSE,     TN_INT8,  2, TN_PER_TENSOR, TN_SCALE_PERCENTILE, "percentile float32 int8 tensor" },
    { CHOOSE,     TN_INT8,  2, 0, TN_SCALE_PERCENTILE, "percentile float32 int8 axis=0" },
};

static size_t   count;
static float   *values, *out, *scale;
static int32_t *zero;
static void    *codes;

static double seconds(const line *l)
{
    const int64_t rows = (int64_t)(count / COLUMNS), shapes[2][3] = { { rows, COLUMNS }, { rows, COLUMNS / 8, 8 } };
    const int64_t *shape = shapes[l->rank == 3];
    const tn_array c = { .dtype = l->codes, .rank = l->rank, .shape = shape };
    const tn_array v = { .dtype = TN_FLOAT32, .rank = l->rank, .shape = shape };
    const tn_quantize_options o = { .size = sizeof o, .axis = l->axis, .rule = l->rule, .percentile = 99.9, .symmetric = true,
                                    .jobs = 1 };
    tn_error err;
    double began = now();
    tn_status status = l->what == QUANTIZE     ? tn_quantize(&c, codes, &v, values, scale, zero, &o, &err)
                       : l->what == DEQUANTIZE ? tn_dequantize(&v, out, &c, codes, scale, zero, &o, &err)
                                               : tn_choose_scales(l->codes, &v, values, &o, scale, zero, &err);
    double took = now() - began;
    if (status) {
        fprintf(stderr, "bench-quantize: %s\n", err.text);
        exit(1);
    }
    return took;
}

static void measure(const line *l, int rounds)
{
    double best = INFINITY, best_copy = INFINITY;
    size_t scales = count / COLUMNS > COLUMNS ? count / COLUMNS : COLUMNS;
    for (int r = 0; r <= rounds; r++) {         /* the first warms up */
        for (size_t i = 0; i < scales; i++)
            scale[i] = 6.0F / 127;
        double took = seconds(l), began = now();
        memcpy(out, values, count * sizeof *values);
        double copied = now() - began;
        best = r && took < best ? took : best;
        best_copy = r && copied < best_copy ? copied : best_copy;
    }
    printf("%s %.2f %.2f\n", l->text, (double)(count * sizeof *values) / best_copy / 1e9, best_copy / best);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rounds = argc == 3 ? atoi(argv[2]) : 0;
    count = argc == 3 ? ((size_t)atoi(argv[1]) << 20) / sizeof *values / COLUMNS * COLUMNS : 0;
    if (count == 0 || rounds < 1) {
        fprintf(stderr, "usage: bench-quantize MIB ROUNDS\n");
        return 2;
    }
    size_t scales = count / COLUMNS + COLUMNS;
    values = malloc(count * sizeof *values);
    out = malloc(count * sizeof *out);
    codes = malloc(count);
    scale = malloc(scales * sizeof *scale);
    zero = calloc(scales, sizeof *zero);
    if (!values || !out || !codes || !scale || !zero)
        return perror("bench-quantize"), 3;
    make_normal(values, count);
    memset(codes, 1, count);
    printf("what from to scales memcpy fraction\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        measure(&lines[i], rounds);
    free(values);
    free(out);
    free(codes);
    free(scale);
    free(zero);
    return 0;
}
