/* Conversion: the bytes choose tensors, containers and rules, twice.  Refused with a
 * reason, or written so that the new file can be read and verified; where nothing is
 * asked for but another container, both files are the same.  Memory may run out. */
#include <math.h>

#include "store/writer.h"
#include "conversions.h"

/* Weights rather than noise, so that scales, sparsity and layouts have something to do. */
static void add_weights(model *m, chooser *c)
{
    static const char *const names[] = { "w", "conv.weight", "bias" };
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3.4e38f, 1e-45f, -0.0f };
    static const float scales[] = { 1.0f / 256, 1, 0x1p100f, 0x1p-140f, 0x1.8p-8f };
    for (size_t i = 0; i < 3 && m->count < MODEL_TENSORS; i++) {
        tn_tensor *t = &m->tensors[m->count];
        tn_part *p = &m->parts[m->count];
        int64_t *shape = tn_arena_zalloc(&m->arena, 4, sizeof *shape);
        REQUIRE(shape);
        *p = (tn_part){ .role = "data",
                        .array = { .dtype = TN_FLOAT32, .rank = 1 + (uint32_t)choose(c, 4),
                                   .shape = shape } };
        for (uint32_t k = 0; k < p->array.rank; k++)
            shape[k] = k + 1 == p->array.rank ? 4 << choose(c, 5) : 1 + (int64_t)choose(c, 4);
        REQUIRE(tn_array_nbytes(&p->array, &p->nbytes) == TN_OK);
        float *data = tn_arena_alloc(&m->arena, (size_t)p->nbytes + 1);
        REQUIRE(data);
        uint64_t zeros = choose(c, 4), seed = choose_bits(c);
        chooser noise = { .seed = 2 * seed + 1 };
        float unit = scales[choose(c, sizeof scales / sizeof *scales)];
        for (size_t k = 0; k < p->nbytes / 4; k++)
            data[k] = choose(&noise, 4) < zeros ? 0 : (float)((int64_t)choose(&noise, 4096) - 2048) * unit;
        if (p->nbytes && choose(c, 4) == 0)
            data[choose(c, 256) % (p->nbytes / 4)] = odd[choose(c, sizeof odd / sizeof *odd)];
        p->data = data;
        *t = (tn_tensor){ .name = names[i], .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = p->array.rank,
                          .shape = shape, .parts = p, .nparts = 1,
                          .layout = p->array.rank == 4 ? "NCHW" : NULL };
        m->count += !model_has(m, names[i]);
    }
}

/* A model as zTensor has it. */
static tn_file *make_file(chooser *c)
{
    model m;
    tn_create_options create = { .size = sizeof create, .format = "ztensor", .replace = true, .jobs = 1 };
    tn_error err = { .text = "" };
    tn_writer *w;
    tn_file *file = NULL;
    int fd = memory_file(2);
    memset(&m, 0, sizeof m);
    if (choose(c, 3))
        add_weights(&m, c);
    else
        model_make(&m, c);
    if (m.count && choose(c, 2))
        m.count = 1;            /* what holds one tensor only */
    REQUIRE(tn_create("memory", &create, &w, &err) == TN_OK);
    w->fd = fd;
    REQUIRE(model_put(&m, c, w, &err) == TN_OK && tn_open_fd(fd, NULL, &file, &err) == TN_OK);
    model_free(&m);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two conversions, one of what the other has made. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chooser c = { .bytes = data, .left = size };
    tn_file *file = make_file(&c);
    file = step(file, &c, 0, size % 8 == 0);
    if (file)
        file = step(file, &c, 1, size % 4 == 1);
    tn_close(file);
    return 0;
}
