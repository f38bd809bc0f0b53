/* bench_quantize.c - how fast quantization is, compared with memcpy.
 *
 *     bench-quantize MIB ROUNDS
 *
 * One thread, by its own time.  A matrix of 4096 columns takes MIB MiB as
 * float32; memcpy copies as many bytes into a warm buffer, in turn with the work.
 * A line each: what, from, to, where the scales are, GB/s of memcpy, ours as a
 * fraction of it by the bytes of the float32 side, GB/s of only reading, of
 * streaming stores and of the limit of this traffic; the best of ROUNDS.  fx8 and
 * fx16 are exact, with ties away from zero; `auto` and `least` find frac_bits
 * first.  TENON_CPU chooses the kernels. */
#include "clock.h"
#include "limits.h"
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
    enum { RANGE, PERCENTILE, FIXED, POWER, LEAST } rule;
    const char   *text;
} line;

static const line lines[] = {
    { QUANTIZE,   TN_INT8,  2, TN_PER_TENSOR, RANGE, "quantize float32 int8 tensor" },
    { QUANTIZE,   TN_INT8,  2, 0, RANGE, "quantize float32 int8 axis=0" },
    { QUANTIZE,   TN_INT8,  2, 1, RANGE, "quantize float32 int8 axis=last" },
    { QUANTIZE,   TN_INT8,  3, 1, RANGE, "quantize float32 int8 axis=1,inner=8" },
    { QUANTIZE,   TN_INT4,  2, 0, RANGE, "quantize float32 int4 axis=0" },
    { QUANTIZE,   TN_INT8,  2, TN_PER_TENSOR, FIXED, "quantize float32 fx8 frac=4" },
    { QUANTIZE,   TN_INT16, 2, TN_PER_TENSOR, FIXED, "quantize float32 fx16 frac=12" },
    { CHOOSE, TN_INT8,  2, TN_PER_TENSOR, POWER, "quantize float32 fx8 frac=auto" },
    { CHOOSE, TN_INT16, 2, TN_PER_TENSOR, POWER, "quantize float32 fx16 frac=auto" },
    { CHOOSE, TN_INT8,  2, TN_PER_TENSOR, LEAST, "quantize float32 fx8 frac=least" },
    { CHOOSE, TN_INT16, 2, TN_PER_TENSOR, LEAST, "quantize float32 fx16 frac=least" },
    { DEQUANTIZE, TN_INT8,  2, TN_PER_TENSOR, RANGE, "dequantize int8 float32 tensor" },
    { DEQUANTIZE, TN_INT16, 2, TN_PER_TENSOR, FIXED, "dequantize fx16 float32 frac=12" },
    { DEQUANTIZE, TN_INT8,  2, 0, RANGE, "dequantize int8 float32 axis=0" },
    { DEQUANTIZE, TN_INT8,  2, 1, RANGE, "dequantize int8 float32 axis=last" },
    { DEQUANTIZE, TN_INT4,  2, 0, RANGE, "dequantize int4 float32 axis=0" },
    { CHOOSE,     TN_INT8,  2, TN_PER_TENSOR, RANGE, "range+quantize float32 int8 tensor" },
    { CHOOSE,     TN_INT8,  2, 0, RANGE, "range+quantize float32 int8 axis=0" },
    { CHOOSE,     TN_INT8,  2, 1, RANGE, "range+quantize float32 int8 axis=last" },
    { CHOOSE,     TN_INT8,  2, TN_PER_TENSOR, PERCENTILE, "percentile+quantize float32 int8 tensor" },
    { CHOOSE,     TN_INT8,  2, 0, PERCENTILE, "percentile+quantize float32 int8 axis=0" },
};

static size_t   count;
static float   *values, *out, *scale;
static void    *codes;

static bool is_fixed(const line *l)
{
    return l->rule == FIXED || l->rule == POWER || l->rule == LEAST;
}

static tn_datatype *datatype_of(const line *l)
{
    const tn_affine a = { .size = sizeof a, .codes = l->codes, .axis = l->axis, .symmetric = true,
                          .power = is_fixed(l),
                          .arithmetic = is_fixed(l) ? TN_ARITH_EXACT : TN_ARITH_BINARY32 };
    tn_datatype *d = NULL;
    tn_error err;
    if (tn_datatype_affine(&a, &d, &err)) {
        fprintf(stderr, "bench-quantize: %s\n", err.text);
        exit(1);
    }
    return d;
}

/* Scales alone are found by private functions only: those lines quantize too. */
static double seconds(const line *l)
{
    const int64_t rows = (int64_t)(count / COLUMNS),
                  shapes[2][3] = { { rows, COLUMNS }, { rows, COLUMNS / 8, 8 } };
    const tn_array v = { .dtype = TN_FLOAT32, .rank = l->rank, .shape = shapes[l->rank == 3] };
    tn_quantize_options o = { .size = sizeof o, .jobs = 1 };
    void *const parts[] = { codes, scale };
    tn_datatype *d = datatype_of(l);
    tn_error err;
    o.round = is_fixed(l) ? TN_ROUND_AWAY : TN_ROUND_EVEN;
    o.percentile = l->rule == PERCENTILE ? 99.9 : 0;
    o.rule = l->what == QUANTIZE ? TN_SCALE_GIVEN : TN_SCALE_MAX;
    if (l->rule == LEAST)
        o.rule = TN_SCALE_MSE;
    double began = own_time();
    tn_status status = l->what == DEQUANTIZE
                           ? tn_dequantize(d, &v, (const void *const *)parts, out, &o, &err)
                           : tn_quantize(d, &v, values, parts, &o, NULL, &err);
    double took = own_time() - began;
    tn_datatype_free(d);
    if (status) {
        fprintf(stderr, "bench-quantize: %s\n", err.text);
        exit(1);
    }
    return took;
}

static void measure(const line *l, int rounds)
{
    const double size = (double)(count * sizeof *values),
                 narrow = (double)count * tn_dtype_get(l->codes)->bits / 8;
    double best = INFINITY;
    limits most = { 0 };
    size_t scales = count / COLUMNS > COLUMNS ? count / COLUMNS : COLUMNS;
    for (int r = 0; r <= rounds; r++) {         /* the first warms up */
        for (size_t i = 0; i < scales; i++)
            scale[i] = !is_fixed(l) ? 6.0F / 127 : l->codes == TN_INT8 ? 0x1p-4F : 0x1p-12F;
        double took = seconds(l);
        best = r && took < best ? took : best;
        measure_limits(&most, out, values, count * sizeof *values);
    }
    /* a scale of the whole tensor is found before the first code is made */
    bool twice = l->what == CHOOSE && l->axis == TN_PER_TENSOR;
    double limit = l->what == DEQUANTIZE ? limit_of(&most, size, narrow, size)
                                         : limit_of(&most, size, twice ? 2 * size : size, narrow);
    printf("%s %.2f %.2f %.2f %.2f %.2f\n", l->text, most.copy / 1e9, size / best / most.copy,
           most.reading / 1e9, most.storing / 1e9, limit / 1e9);
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
    codes = malloc(count * sizeof(int16_t));
    scale = malloc(scales * sizeof *scale);
    if (!values || !out || !codes || !scale)
        return perror("bench-quantize"), 3;
    make_normal(values, count);
    memset(codes, 1, count * sizeof(int16_t));
    printf("what from to scales memcpy fraction reading storing limit\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        measure(&lines[i], rounds);
    free(values);
    free(out);
    free(codes);
    free(scale);
    return 0;
}
