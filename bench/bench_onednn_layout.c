/* bench_onednn_layout.c - how fast oneDNN's reorders between layouts are, compared with memcpy.
 *
 *     bench-onednn-layout ROUNDS REORDER...
 *
 * A REORDER is named as bench-layout names it: TYPE:FROM:TO:SHAPE, the shape in
 * the order NCHW.  One thread; memcpy copies as many bytes into a warm buffer in
 * turn.  Prints the library's version, then a line for each that it has: the
 * name and the fraction of memcpy's speed, best of ROUNDS.  Needs oneDNN 3;
 * bench/layout builds this. */
#include "clock.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

typedef struct word {
    const char *name;
    int         code;
} word;

static const word types[] = { { "float32", dnnl_f32 }, { "bfloat16", dnnl_bf16 }, { "int8", dnnl_s8 },
                              { "uint8", dnnl_u8 },
                              { NULL, 0 } };
static const word tags[] = { { "NCHW", dnnl_nchw }, { "NHWC", dnnl_nhwc }, { "RC", dnnl_ab },
                             { "CR", dnnl_ba }, { NULL, 0 } };

static char         *from, *to;
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) {
        fprintf(stderr, "bench-onednn-layout: %s: oneDNN's status is %d\n", what, (int)status);
        exit(3);
    }
}

static const word *find(const word *words, const char *name)
{
    while (words->name && strcmp(words->name, name) != 0)
        words++;
    return words->name ? words : NULL;
}

/* The description of one side; false: oneDNN has no word for it. */
static bool describe(dnnl_memory_desc_t *desc, const char *shape, const char *type, const char *layout)
{
    const word *t = find(types, type), *tag = find(tags, layout);
    dnnl_dims_t dims;
    int rank = 0;
    char *end;
    if (!t || !tag)
        return false;
    for (; *shape; shape = *end ? end + 1 : end)
        dims[rank++] = strtol(shape, &end, 10);
    must(dnnl_memory_desc_create_with_tag(desc, rank, dims, (dnnl_data_type_t)t->code,
                                          (dnnl_format_tag_t)tag->code),
         "a description");
    return true;
}

static double copy_seconds(size_t size)
{
    double began = own_time();
    memcpy(to, from, size);
    return own_time() - began;
}

static double seconds(dnnl_primitive_t reorder, dnnl_memory_t dst, dnnl_memory_t src)
{
    dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, src }, { DNNL_ARG_DST, dst } };
    double began = own_time();
    must(dnnl_primitive_execute(reorder, stream, 2, args), "running");
    must(dnnl_stream_wait(stream), "waiting");
    return own_time() - began;
}

/* Seconds of memcpy over those of the reorder, best of `rounds` each.  The first round warms up. */
static double compare(dnnl_memory_desc_t dst_desc, dnnl_memory_desc_t src_desc, int rounds)
{
    size_t size = dnnl_memory_desc_get_size(dst_desc);
    dnnl_memory_t dst, src;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    double best_copy = INFINITY, best = INFINITY;
    if (!(from = aligned_alloc(4096, size)) || !(to = aligned_alloc(4096, size)))
        perror("bench-onednn-layout"), exit(3);
    memset(from, 1, size);
    memset(to, 1, size);
    must(dnnl_memory_create(&dst, dst_desc, engine, to), "a memory");
    must(dnnl_memory_create(&src, src_desc, engine, from), "a memory");
    must(dnnl_reorder_primitive_desc_create(&desc, src_desc, engine, dst_desc, engine, NULL), "a reorder");
    must(dnnl_primitive_create(&reorder, desc), "a reorder");
    for (int r = 0; r <= rounds; r++) {
        double copied = copy_seconds(size), took = seconds(reorder, dst, src);
        best_copy = r && copied < best_copy ? copied : best_copy;
        best = r && took < best ? took : best;
    }
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_destroy(src);
    dnnl_memory_destroy(dst);
    free(from);
    free(to);
    return best_copy / best;
}

static void line(const char *name, int rounds)
{
    char type[20], source[20], target[20], shape[60];
    dnnl_memory_desc_t dst, src;
    if (sscanf(name, "%19[^:]:%19[^:]:%19[^:]:%59s", type, source, target, shape) != 4 ||
        !describe(&src, shape, type, source))
        return;
    if (describe(&dst, shape, type, target)) {
        printf("%s %.3f\n", name, compare(dst, src, rounds));
        fflush(stdout);
        dnnl_memory_desc_destroy(dst);
    }
    dnnl_memory_desc_destroy(src);
}

/* Whatever threads the library has, they share this core. */
static void stay_on_one_core(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one))
        perror("bench-onednn-layout: staying on one core"), exit(3);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[1]) : 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: bench-onednn-layout ROUNDS REORDER...\n");
        return 2;
    }
    stay_on_one_core();
    must(dnnl_engine_create(&engine, dnnl_cpu, 0), "the processor as an engine");
    must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "a stream");
    const dnnl_version_t *version = dnnl_version();
    printf("%d.%d.%d\n", version->major, version->minor, version->patch);
    for (int i = 2; i < argc; i++)
        line(argv[i], rounds);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return 0;
}
