/* bench_conventions.c - how fast quantized checkpoints of other tools become bfloat16, compared with memcpy.
 *
 *     bench-conventions FOLDER ROWS COLUMNS ROUNDS [NAME]
 *
 * For each convention, or that of this name, a model of one weight of random codes is written to FOLDER.
 * With one thread, whose own time counts, in turn: memcpy of the bfloat16 values, and tn_view_read() of the
 * weight as bfloat16 into the same buffer.  A line for each: its name, the datatype, GB/s of memcpy, of ours, of
 * only reading memory, of streaming stores and of the limit of this traffic, in bytes of bfloat16.  Each
 * figure is the best of ROUNDS.  TENON_CPU chooses our kernels.
 */
#include "clock.h"
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

enum { ENTRIES = 6, PATH = 4096 };

/* An entry: its bytes are random, zero, or finite float16 or bfloat16 numbers near 1. */
typedef struct entry {
    const char *name, *dtype;
    int64_t     shape[2];       /* in units below, where negative: rows / -n or columns / -n */
    char        of[2];          /* 'N' rows, 'K' columns, ' ' a number */
    const void *bytes;          /* or NULL: random */
    size_t      size;
} entry;

typedef struct model {
    const char *name, *config;
    entry       entries[ENTRIES];
} model;

static const float nf4[16] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
    -0.18477343022823334f, -0.09105003625154495f, 0, 0.07958029955625534f, 0.16093020141124725f,
    0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
    0.7229568362236023f, 1.0f
};
static const float one = 1;
static char state[120];         /* of bitsandbytes */

#define GPTQ "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128," \
             "\"desc_act\":false,\"sym\":false}}"
#define AWQ "{\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}}"
#define MLX "{\"quantization\":{\"bits\":4,\"group_size\":64}}"

static model models[] = {
    { "block FP8", "{}",
      { { "a.weight", "F8_E4M3", { 1, 1 }, "NK", NULL, 0 },
        { "a.weight_scale_inv", "F32", { 128, 128 }, "NK", NULL, 0 } } },
    { "NVFP4", "{}",
      { { "a.weight", "U8", { 1, 2 }, "NK", NULL, 0 }, { "a.weight_scale", "F8_E4M3", { 1, 16 }, "NK", NULL, 0 },
        { "a.weight_scale_2", "F32", { 0, 0 }, "  ", &one, sizeof one } } },
    { "MXFP4", "{}",
      { { "a.weight_packed", "U8", { 1, 2 }, "NK", NULL, 0 },
        { "a.weight_scale", "U8", { 1, 32 }, "NK", NULL, 0 } } },
    { "AWQ", AWQ,
      { { "a.qweight", "I32", { 1, 8 }, "KN", NULL, 0 }, { "a.qzeros", "I32", { 128, 8 }, "KN", NULL, 0 },
        { "a.scales", "F16", { 128, 1 }, "KN", NULL, 0 } } },
    { "GPTQ", GPTQ,
      { { "a.qweight", "I32", { 8, 1 }, "KN", NULL, 0 }, { "a.qzeros", "I32", { 128, 8 }, "KN", NULL, 0 },
        { "a.scales", "F16", { 128, 1 }, "KN", NULL, 0 } } },
    { "MLX, 4 bits", MLX,
      { { "a.weight", "U32", { 1, 8 }, "NK", NULL, 0 }, { "a.scales", "BF16", { 1, 64 }, "NK", NULL, 0 },
        { "a.biases", "BF16", { 1, 64 }, "NK", NULL, 0 } } },
    { "NF4", "{}",
      { { "a.weight", "U8", { 1, 2 }, "NK", NULL, 0 }, { "a.weight.absmax", "F32", { 1, 64 }, "NK", NULL, 0 },
        { "a.weight.quant_map", "F32", { 16, 0 }, "  ", nf4, sizeof nf4 },
        { "a.weight.quant_state.bitsandbytes__nf4", "U8", { 0, 0 }, "  ", state, 0 } } },
};

static int64_t rows, columns;

static int64_t extent(const entry *e, unsigned i)
{
    if (e->of[i] == ' ')
        return e->shape[i];
    return (e->of[i] == 'N' ? rows : columns) / e->shape[i];
}

static size_t width_of(const char *dtype)
{
    if (strstr(dtype, "32"))
        return 4;
    return strstr(dtype, "16") ? 2 : 1;
}

static size_t size_of(const entry *e)
{
    return e->bytes ? e->size : (size_t)(extent(e, 0) * extent(e, 1)) * width_of(e->dtype);
}

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench-conventions: %s\n", what);
    exit(3);
}

/* Random, but no float is NaN or far from 1. */
static void fill(uint8_t *p, size_t n, const char *dtype)
{
    static uint64_t x = 88172645463325252u;
    size_t width = width_of(dtype);
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        p[i] = (uint8_t)(x >> 24);
        if (*dtype == 'F' && width > 1 && i % width == width - 1)
            p[i] = 0x3c;
        if (*dtype == 'B' && i % width == width - 1)
            p[i] = 0x3f;
        if (strcmp(dtype, "F8_E4M3") == 0)
            p[i] &= 0x3f;
    }
}

static void put(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    must(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "cannot write");
}

static void put_shape(char *to, size_t cap, const entry *e)
{
    if (e->of[0] != ' ')
        snprintf(to, cap, "[%lld,%lld]", (long long)extent(e, 0), (long long)extent(e, 1));
    else if (e->bytes == state || e->bytes == nf4)
        snprintf(to, cap, "[%zu]", e->size / width_of(e->dtype));
    else
        snprintf(to, cap, "[]");
}

static void make(const char *folder, const model *m)
{
    char header[4096] = "{", shape[64];
    size_t at = 0, n = 1;
    for (const entry *e = m->entries; e < m->entries + ENTRIES && e->name; e++) {
        put_shape(shape, sizeof shape, e);
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                              n > 1 ? "," : "", e->name, e->dtype, shape, at, at + size_of(e));
        at += size_of(e);
    }
    header[n++] = '}';
    while (n % 8)
        header[n++] = ' ';
    uint8_t *file = malloc(8 + n + at), *data = file + 8 + n;
    must(file != NULL, "out of memory");
    for (unsigned i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(file + 8, header, n);
    for (const entry *e = m->entries; e < m->entries + ENTRIES && e->name; data += size_of(e), e++) {
        if (e->bytes)
            memcpy(data, e->bytes, e->size);
        else
            fill(data, size_of(e), e->dtype);
    }
    put(folder, "model.safetensors", file, 8 + n + at);
    put(folder, "config.json", m->config, strlen(m->config));
    free(file);
}

static int read_values(const tn_file *f, const tn_tensor *t, void *to, size_t size, tn_error *err)
{
    tn_view *view = NULL;
    int good = tn_view_open(f, t, &view, err) == TN_OK && tn_view_add_values(&view, TN_BFLOAT16, err) == TN_OK &&
               tn_view_read(view, 0, 0, size / 2, to, size, err) == TN_OK;
    tn_view_close(view);
    return good;
}

static void measure(const char *folder, const model *m, int rounds)
{
    char path[PATH];
    tn_file *f;
    tn_error err = { .text = "" };
    size_t size = (size_t)(rows * columns) * 2;
    uint8_t *from = malloc(size), *to = malloc(size);
    double read = 1e9, packed = 0;
    limits most = { 0 };
    make(folder, m);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    must(tn_open(path, NULL, &f, &err) == TN_OK && from && to, err.text);
    const tn_tensor *t = tn_file_find(f, "a.weight");
    must(t && t->scaling, "a weight was not recognised");
    memset(from, 1, size);
    memset(to, 1, size);
    for (int i = 0; i < rounds; i++) {
        measure_limits(&most, to, from, size);
        double begin = own_time();
        must(read_values(f, t, to, size, &err), err.text);
        double took = own_time() - begin;
        read = took < read ? took : read;
    }
    for (const entry *e = m->entries; e < m->entries + ENTRIES && e->name; e++)
        packed += (double)size_of(e);
    printf("%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", m->name, t->scaling->datatype, most.copy / 1e9,
           (double)size / read / 1e9, most.reading / 1e9, most.storing / 1e9,
           limit_of(&most, (double)size, packed, (double)size) / 1e9);
    tn_close(f);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    must(argc == 5 || argc == 6, "expected FOLDER ROWS COLUMNS ROUNDS [NAME]");
    rows = atoll(argv[2]);
    columns = atoll(argv[3]);
    must(rows > 0 && columns > 0 && rows % 128 == 0 && columns % 128 == 0, "expected multiples of 128");
    snprintf(state, sizeof state, "{\"quant_type\":\"nf4\",\"blocksize\":64,\"dtype\":\"bfloat16\",\"shape\":"
             "[%lld,%lld]}", (long long)rows, (long long)columns);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        for (entry *e = models[i].entries; e < models[i].entries + ENTRIES && e->name; e++)
            if (e->bytes == state)
                e->size = strlen(state);
        if (argc == 5 || strcmp(models[i].name, argv[5]) == 0)
            measure(argv[1], &models[i], atoi(argv[4]));
    }
    return 0;
}
