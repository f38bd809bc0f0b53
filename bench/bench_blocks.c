/* bench_blocks.c - how fast GGUF's block types are made and unmade, beside ggml and memcpy, and whether both
 * make the same bytes.
 *
 *     bench-blocks MIB ROUNDS [TYPE]...
 *     bench-blocks file PATH THREADS
 *
 * Values are normally distributed, in rows of 4096.  With one thread, whose own time counts, in turn: memcpy
 * of MIB MiB and reading them; decoding as many values (1 MiB of them again and again), ours by
 * tn_dequantize(), ggml's row by row; and encoding rows for a while, without and with importance.  A line for
 * each TYPE (all, if there is none): name; GB/s of memcpy and of reading; of our decoding and of ggml's; MB/s
 * of our encoding and of ggml's; the same two with importance; how many values and how many blocks differ;
 * milliseconds in which our encoder is prepared; GB/s of streaming stores and of the limit of decoding.  0
 * stands for what there is not.  Each figure is the best of ROUNDS.  TENON_CPU chooses our kernels.
 *
 * With `file` ggml makes q4_K of all bfloat16 tensors of a mapped file, as its tool does, but writes nothing:
 * seconds, and seconds of work of all threads.
 *
 * With BENCH_GGML it needs ggml's sources; bench/blocks builds it. */
#include "clock.h"
#include "limits.h"
#include "normal.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "kernels/blocks/neighbours.h"

enum { COLUMNS = 4096, SAMPLE = 64 * COLUMNS };         /* values that are encoded, at most */
static const double PATIENCE = 0.2;                     /* seconds of encoding in a round */

typedef size_t (*quantize_fn)(const float *x, void *y, int64_t rows, int64_t columns, const float *q);
typedef void (*dequantize_fn)(const void *x, float *y, int64_t n);

typedef struct peer {
    quantize_fn quantize;
    dequantize_fn dequantize;
} peer;

#ifdef BENCH_GGML
#include "ggml-quants.h"

#define TYPE(type)                                                                                          \
    static size_t to_##type(const float *x, void *y, int64_t rows, int64_t columns, const float *q)         \
    {                                                                                                       \
        return quantize_##type(x, y, rows, columns, q);                                                     \
    }                                                                                                       \
    static void from_##type(const void *x, float *y, int64_t n) { dequantize_row_##type(x, y, n); }
#define EACH_TYPE(X)                                                                                        \
    X(q4_0, Q4_0) X(q4_1, Q4_1) X(q5_0, Q5_0) X(q5_1, Q5_1) X(q8_0, Q8_0) X(q2_K, Q2_K) X(q3_K, Q3_K)       \
    X(q4_K, Q4_K) X(q5_K, Q5_K) X(q6_K, Q6_K) X(iq2_xxs, IQ2_XXS) X(iq2_xs, IQ2_XS) X(iq2_s, IQ2_S)         \
    X(iq3_xxs, IQ3_XXS) X(iq3_s, IQ3_S) X(iq1_s, IQ1_S) X(iq1_m, IQ1_M) X(iq4_nl, IQ4_NL)                   \
    X(iq4_xs, IQ4_XS) X(tq1_0, TQ1_0) X(tq2_0, TQ2_0) X(mxfp4, MXFP4) EACH_NEW_TYPE(X)
#ifdef QK_NVFP4
#define HAS_NVFP4(X) X(nvfp4, NVFP4)
#else
#define HAS_NVFP4(X)
#endif
#ifdef QK1_0
#define HAS_Q1_0(X) X(q1_0, Q1_0)
#else
#define HAS_Q1_0(X)
#endif
#ifdef QK2_0
#define HAS_Q2_0(X) X(q2_0, Q2_0)
#else
#define HAS_Q2_0(X)
#endif
#define EACH_NEW_TYPE(X) HAS_NVFP4(X) HAS_Q1_0(X) HAS_Q2_0(X)
#define DEFINE(type, name) TYPE(type)
#define ROW(type, name) [TN_BLOCK_##name] = { to_##type, from_##type },

EACH_TYPE(DEFINE)
static const peer peers[TN_BLOCK_COUNT] = { EACH_TYPE(ROW) };

/* What ggml's code calls; the rest of ggml is not built. */
void ggml_abort(const char *file, int line, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "bench-blocks: %s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    exit(3);
}

size_t ggml_row_size(enum ggml_type type, int64_t n)
{
    const tn_block_info *t = tn_block_numbered((uint32_t)type);
    return (size_t)n / t->values * t->bytes;
}

static void prepare_peer(tn_block block)
{
    static const struct { tn_block block; enum ggml_type type; } two[] = {
        { TN_BLOCK_IQ2_XXS, GGML_TYPE_IQ2_XXS }, { TN_BLOCK_IQ2_XS, GGML_TYPE_IQ2_XS },
        { TN_BLOCK_IQ2_S, GGML_TYPE_IQ2_S }, { TN_BLOCK_IQ1_S, GGML_TYPE_IQ1_S },
        { TN_BLOCK_IQ1_M, GGML_TYPE_IQ1_M },
    };
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (two[i].block == block)
            iq2xs_init_impl(two[i].type);
    if (block == TN_BLOCK_IQ3_XXS || block == TN_BLOCK_IQ3_S)
        iq3xs_init_impl(block == TN_BLOCK_IQ3_S ? 512 : 256);
}
#else
static const peer peers[TN_BLOCK_COUNT];

static void prepare_peer(tn_block block) { (void)block; }
#endif

/* ---- what is measured ---- */

typedef struct bench {
    const tn_block_info *type;
    const tn_block_kernels *kernels;
    const peer *peer;
    size_t   n;                 /* values of a copy */
    float   *values, *out, *importance;
    uint8_t *blocks, *made, *theirs;
    tn_datatype *datatype;
    double   prepared;          /* seconds */
} bench;

static void *must_have(size_t n)
{
    void *p = malloc(n);
    if (!p)
        perror("bench-blocks"), exit(3);
    memset(p, 1, n);
    return p;
}

static bool needs_importance(tn_block block)
{
    return block == TN_BLOCK_IQ2_XXS || block == TN_BLOCK_IQ2_XS || block == TN_BLOCK_IQ1_S;
}

static double decode_seconds(const bench *b)
{
    const int64_t shape[] = { (int64_t)(b->n / COLUMNS), COLUMNS };
    const tn_array array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
    const tn_quantize_options options = { .size = sizeof options, .jobs = 1 };
    const void *parts[] = { b->blocks };
    tn_error err = { .text = "" };
    double began = own_time();
    if (tn_dequantize(b->datatype, &array, parts, b->out, &options, &err)) {
        fprintf(stderr, "bench-blocks: %s: %s\n", b->type->name, err.text);
        exit(1);
    }
    return own_time() - began;
}

/* Row by row, as ggml does it. */
static double peer_decode_seconds(const bench *b)
{
    size_t row = COLUMNS / b->type->values * b->type->bytes;
    double began = own_time();
    for (size_t i = 0; i < b->n; i += COLUMNS)
        b->peer->dequantize(b->blocks + i / COLUMNS * row, b->out + i, COLUMNS);
    return own_time() - began;
}

static void encode_row(const bench *b, size_t i, const float *q, bool theirs)
{
    const tn_block_info *t = b->type;
    size_t row = COLUMNS / t->values * t->bytes;
    const float *x = b->values + i * COLUMNS;
    if (theirs) {
        b->peer->quantize(x, b->theirs + i * row, 1, COLUMNS, q);
        return;
    }
    float squares = 0;
    bool by_row = t->block <= TN_BLOCK_Q5_1 && q;
    for (size_t e = 0; e < COLUMNS && by_row; e++)
        squares += x[e] * x[e];
    b->kernels->encode[t->block](x, q, squares / COLUMNS, COLUMNS / t->values, b->made + i * row);
}

/* Encodes rows for a while; bytes of values a second.  The clock is read ever more seldom: it takes time too. */
static double encode_rate(const bench *b, const float *q, bool theirs)
{
    double began = own_time(), took = 0;
    size_t rows = 0;
    for (size_t until = 1; took < PATIENCE; until *= 2) {
        for (; rows < until; rows++)
            encode_row(b, rows % (SAMPLE / COLUMNS), q, theirs);
        took = own_time() - began;
    }
    return (double)(rows * COLUMNS * sizeof(float)) / took;
}

/* Blocks of which bytes differ, of as many rows as ggml does in a while. */
static size_t different_blocks(const bench *b, const float *q)
{
    const tn_block_info *t = b->type;
    double began = own_time();
    size_t different = 0;
    for (size_t i = 0; i < SAMPLE / COLUMNS && (i < 1 || own_time() - began < PATIENCE); i++) {
        encode_row(b, i, q, false);
        encode_row(b, i, q, true);
        for (size_t k = i * COLUMNS / t->values; k < (i + 1) * COLUMNS / t->values; k++)
            different += memcmp(b->made + k * t->bytes, b->theirs + k * t->bytes, t->bytes) != 0;
    }
    return different;
}

static size_t different_values(const bench *b)
{
    static float ours[SAMPLE], theirs[SAMPLE];
    size_t different = 0;
    b->kernels->decode[b->type->block](b->blocks, SAMPLE / b->type->values, ours);
    b->peer->dequantize(b->blocks, theirs, SAMPLE);
    for (size_t i = 0; i < SAMPLE; i++)
        different += memcmp(&ours[i], &theirs[i], sizeof *ours) != 0;
    return different;
}

/* ---- a line ---- */

static void more(double *best, double rate, bool counts) { *best = counts && rate > *best ? rate : *best; }

/* Blocks of the sample, again and again. */
static void fill_blocks(const bench *b)
{
    const tn_block_info *t = b->type;
    size_t size = SAMPLE / t->values * t->bytes, all = b->n / t->values * t->bytes;
    for (size_t i = 0; i < SAMPLE / COLUMNS; i++)
        encode_row(b, i, needs_importance(t->block) ? b->importance : NULL, false);
    for (size_t at = 0; at < all; at += size)
        memcpy(b->blocks + at, b->made, all - at < size ? all - at : size);
}

static void measure(const bench *b, int rounds)
{
    double size = (double)(b->n * sizeof(float));
    limits most = { 0 };
    double decode[2] = { 0 }, encode[2][2] = { { 0 } };
    bool plain = !needs_importance(b->type->block);
    fill_blocks(b);
    for (int r = 0; r <= rounds; r++) {         /* the first round warms up */
        measure_limits(&most, b->out, b->values, b->n * sizeof(float));
        more(&decode[0], size / decode_seconds(b), r);
        if (b->peer->dequantize)
            more(&decode[1], size / peer_decode_seconds(b), r);
        for (unsigned theirs = 0; theirs < (b->peer->quantize ? 2 : 1); theirs++)
            for (unsigned weighted = !plain; weighted < 2; weighted++)
                more(&encode[theirs][weighted], encode_rate(b, weighted ? b->importance : NULL, theirs), r);
    }
    size_t values = 0, blocks = 0;
    if (b->peer->quantize) {
        values = different_values(b);
        blocks = different_blocks(b, b->importance) + (plain ? different_blocks(b, NULL) : 0);
    }
    double packed = (double)(b->n / b->type->values * b->type->bytes);
    printf("%s %.2f %.2f %.2f %.2f ", b->type->name, most.copy / 1e9, most.reading / 1e9, decode[0] / 1e9,
           decode[1] / 1e9);
    printf("%.1f %.1f %.1f %.1f %zu %zu %.1f %.2f %.2f\n", encode[0][0] / 1e6, encode[1][0] / 1e6,
           encode[0][1] / 1e6, encode[1][1] / 1e6, values, blocks, b->prepared * 1e3, most.storing / 1e9,
           limit_of(&most, size, packed, size) / 1e9);
    fflush(stdout);
}

static void run(tn_block block, bench *b, int rounds)
{
    char name[40];
    double began = own_time();
    b->type = tn_block_get(block);
    b->peer = &peers[block];
    snprintf(name, sizeof name, "ggml:%s", b->type->name);
    if (!tn_block_prepare(block) || tn_datatype_parse(name, &b->datatype, NULL))
        perror("bench-blocks"), exit(3);
    b->prepared = own_time() - began;
    prepare_peer(block);
    measure(b, rounds);
    tn_datatype_free(b->datatype);
}

/* ---- a whole file ---- */

/* Rows of a mapped file, which threads take one after the other. */
typedef struct file_job {
    const tn_file *file;
    size_t tensor, row;         /* the next one */
    pthread_mutex_t lock;
} file_job;

/* The next row, of `columns` values; NULL: there is none. */
static const uint16_t *next_row(file_job *job, size_t *columns)
{
    const uint16_t *row = NULL;
    pthread_mutex_lock(&job->lock);
    while (!row && job->tensor < tn_file_count(job->file)) {
        const tn_tensor *t = tn_file_tensor(job->file, job->tensor);
        bool fits = t->dtype == TN_BFLOAT16 && t->rank == 2 && t->shape[1] % TN_BLOCK_VALUES == 0;
        if (fits && job->row < (size_t)t->shape[0]) {
            *columns = (size_t)t->shape[1];
            row = (const uint16_t *)t->parts[0].data + job->row++ * *columns;
        } else {
            job->tensor++;
            job->row = 0;
        }
    }
    pthread_mutex_unlock(&job->lock);
    return row;
}

static void *quantize_rows(void *context)
{
    size_t columns;
    const peer *q4_K = &peers[TN_BLOCK_Q4_K];
    float *x = must_have(sizeof *x << 20);
    uint8_t *blocks = must_have((1 << 20) / TN_BLOCK_VALUES * TN_BLOCK_BYTES);
    for (const uint16_t *row; (row = next_row(context, &columns)) && columns <= 1 << 20;) {
        for (size_t i = 0; i < columns; i++) {
            uint32_t bits = (uint32_t)row[i] << 16;
            memcpy(&x[i], &bits, sizeof bits);
        }
        q4_K->quantize(x, blocks, 1, (int64_t)columns, NULL);
    }
    free(x);
    free(blocks);
    return NULL;
}

static int quantize_file(const char *path, unsigned threads)
{
    enum { MOST = 64 };
    pthread_t thread[MOST];
    struct timespec work;
    tn_file *file;
    tn_error err = { .text = "" };
    if (threads < 1 || threads > MOST || !peers[TN_BLOCK_Q4_K].quantize || tn_open(path, NULL, &file, &err)) {
        fprintf(stderr, "bench-blocks: %s: %s\n", path, err.text);
        return 2;
    }
    file_job job = { .file = file, .lock = PTHREAD_MUTEX_INITIALIZER };
    double began = now();
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, quantize_rows, &job))
            perror("bench-blocks"), exit(3);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    double took = now() - began;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &work);
    printf("%.3f %.3f\n", took, (double)work.tv_sec + 1e-9 * (double)work.tv_nsec);
    tn_close(file);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "file") == 0)
        return quantize_file(argv[2], (unsigned)atoi(argv[3]));
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    size_t n = argc > 2 ? ((size_t)atoi(argv[1]) << 20) / sizeof(float) / SAMPLE * SAMPLE : 0;
    if (n == 0 || rounds < 1) {
        fprintf(stderr, "usage: bench-blocks MIB ROUNDS [TYPE]...\n");
        return 2;
    }
    bench b = { .kernels = tn_block_kernels_get(), .n = n };
    b.values = must_have(n * sizeof(float));
    b.out = must_have(n * sizeof(float));
    b.importance = must_have(COLUMNS * sizeof(float));
    b.blocks = must_have(n / TN_BLOCK_VALUES * TN_BLOCK_BYTES * 2);
    b.made = must_have(SAMPLE / 32 * 36 + TN_BLOCK_BYTES);
    b.theirs = must_have(SAMPLE / 32 * 36 + TN_BLOCK_BYTES);
    make_normal(b.values, n);
    for (size_t i = 0; i < COLUMNS; i++)
        b.importance[i] = expf(b.values[i]);
    for (int i = 0; i < TN_BLOCK_COUNT; i++) {
        bool wanted = argc == 3;
        for (int k = 3; k < argc; k++)
            wanted |= strcmp(argv[k], tn_block_get((tn_block)i)->name) == 0;
        if (wanted)
            run((tn_block)i, &b, rounds);
    }
    return 0;
}
