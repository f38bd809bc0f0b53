/* bench_onednn.c - how fast oneDNN's reorders are as casts, compared with memcpy.
 *
 *     bench-onednn MIB ROUNDS TO FROM [TO FROM]...
 *
 * As bench-cast: one thread, the wider side of a cast takes MIB MiB, memcpy
 * copies as many into a warm buffer in turn, integers are scaled.  Prints the
 * library's version, then a line for each pair that it has: TO, FROM and the
 * fraction of memcpy's speed, best of ROUNDS.  Needs oneDNN 3; bench/cast
 * installs it and builds this. */
#include "clock.h"
#include "normal.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#define HAS_SINCE(minor) (DNNL_VERSION_MAJOR > 3 || DNNL_VERSION_MINOR >= (minor))

typedef struct type {
    const char      *name;
    dnnl_data_type_t code;
    int              bits;
    float            scale;     /* 0: none */
} type;

static const type types[] = {
    { "float32",       dnnl_f32,     32, 0 },
    { "float16",       dnnl_f16,     16, 0 },
    { "bfloat16",      dnnl_bf16,    16, 0 },
    { "int8",          dnnl_s8,      8,  128.F / 3 },
    { "uint8",         dnnl_u8,      8,  128.F / 3 },
#if HAS_SINCE(4)
    { "float8_e4m3fn", dnnl_f8_e4m3, 8,  0 },
    { "float8_e5m2",   dnnl_f8_e5m2, 8,  0 },
#endif
#if HAS_SINCE(7)
    { "float4_e2m1",   dnnl_f4_e2m1, 4,  0 },
#endif
};

typedef struct side {
    dnnl_memory_desc_t desc;
    dnnl_memory_t      memory;
} side;

static size_t        size;
static int           rounds;
static char         *wide, *from, *to;      /* normal float32; the source; the destination */
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) {
        fprintf(stderr, "bench-onednn: %s: oneDNN's status is %d\n", what, (int)status);
        exit(3);
    }
}

static const type *type_named(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

static side new_side(size_t n, dnnl_data_type_t code, void *data)
{
    side s;
    dnnl_dims_t dims = { (dnnl_dim_t)n };
    must(dnnl_memory_desc_create_with_tag(&s.desc, 1, dims, code, dnnl_a), "a description");
    must(dnnl_memory_create(&s.memory, s.desc, engine, data), "a memory");
    return s;
}

static void free_side(side s)
{
    dnnl_memory_destroy(s.memory);
    dnnl_memory_desc_destroy(s.desc);
}

/* NULL: oneDNN has no such reorder. */
static dnnl_primitive_t new_reorder(side dst, side src, float scale)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    must(dnnl_primitive_attr_create(&attr), "attributes");
    if (scale > 0)
        must(dnnl_primitive_attr_set_scales_mask(attr, DNNL_ARG_SRC, 0), "a scale");
    dnnl_status_t status =
        dnnl_reorder_primitive_desc_create(&desc, src.desc, engine, dst.desc, engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_unimplemented)
        return NULL;
    must(status, "a reorder");
    must(dnnl_primitive_create(&reorder, desc), "a reorder");
    dnnl_primitive_desc_destroy(desc);
    return reorder;
}

static double seconds(dnnl_primitive_t reorder, side dst, side src, side scale)
{
    dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, src.memory }, { DNNL_ARG_DST, dst.memory },
                               { DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, scale.memory } };
    double began = own_time();
    must(dnnl_primitive_execute(reorder, stream, scale.memory ? 3 : 2, args), "running");
    must(dnnl_stream_wait(stream), "waiting");
    return own_time() - began;
}

static double copy_seconds(void)
{
    double began = own_time();
    memcpy(to, wide, size);
    return own_time() - began;
}

/* Seconds of memcpy over those of the cast, best of `count` each; negative: no such cast.  The first round
 * warms up. */
static double compare(const type *t, void *out, const type *f, void *in, size_t n, int count)
{
    side dst = new_side(n, t->code, out), src = new_side(n, f->code, in), scale = { 0 };
    float factor = t->scale;
    if (factor > 0)
        scale = new_side(1, dnnl_f32, &factor);
    dnnl_primitive_t reorder = new_reorder(dst, src, factor);
    double best_copy = INFINITY, best = INFINITY;
    for (int r = 0; reorder && r <= count; r++) {
        double copied = copy_seconds(), took = seconds(reorder, dst, src, scale);
        best_copy = r && copied < best_copy ? copied : best_copy;
        best = r && took < best ? took : best;
    }
    if (factor > 0)
        free_side(scale);
    free_side(src);
    free_side(dst);
    if (!reorder)
        return -1;
    dnnl_primitive_destroy(reorder);
    return best_copy / best;
}

static void line(const char *to_name, const char *from_name)
{
    const type *t = type_named(to_name), *f = type_named(from_name);
    if (!t || !f)
        return;
    int bits = t->bits > f->bits ? t->bits : f->bits;
    size_t n = size / (size_t)bits * 8;
    /* the source: the same numbers in its type */
    for (size_t done = 0, step = size / 4; done < n; done += step) {
        char *piece = from + done / 8 * (size_t)f->bits;
        if (f->code == dnnl_f32)
            memcpy(piece, wide, size);
        else if (compare(f, piece, type_named("float32"), wide, step, 0) < 0)
            return;
    }
    double fraction = compare(t, to, f, from, n, rounds);
    if (fraction > 0)
        printf("%s %s %.3f\n", t->name, f->name, fraction);
    fflush(stdout);
}

/* Whatever threads the library has, they share this core. */
static void stay_on_one_core(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one))
        perror("bench-onednn: staying on one core"), exit(3);
}

int main(int argc, char **argv)
{
    size = argc > 3 ? (size_t)atoi(argv[1]) << 20 : 0;
    rounds = argc > 3 ? atoi(argv[2]) : 0;
    if (size == 0 || rounds < 1 || argc % 2 == 0) {
        fprintf(stderr, "usage: bench-onednn MIB ROUNDS TO FROM [TO FROM]...\n");
        return 2;
    }
    stay_on_one_core();
    if (!(wide = malloc(size)) || !(from = malloc(size)) || !(to = malloc(size)))
        return perror("bench-onednn"), 3;
    make_normal((float *)(void *)wide, size / 4);
    memset(from, 1, size);
    memset(to, 1, size);
    must(dnnl_engine_create(&engine, dnnl_cpu, 0), "the processor as an engine");
    must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "a stream");
    const dnnl_version_t *version = dnnl_version();
    printf("%d.%d.%d\n", version->major, version->minor, version->patch);
    for (int i = 3; i + 1 < argc; i += 2)
        line(argv[i], argv[i + 1]);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    free(wide);
    free(from);
    free(to);
    return 0;
}
