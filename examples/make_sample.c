/* make_sample.c - writes a sample checkpoint: a small transformer's names,
 * shapes and types, with values that look like weights.
 *
 *     make-sample FILE [LAYERS [WIDTH]]
 *
 * The suffix of FILE chooses the container (.safetensors, .zt).  The same
 * arguments give the same bytes on every machine; the defaults give 222
 * tensors and 100 MB.  Also an example of writing a file through libtenon:
 * every tensor is declared first, then its bytes follow in pieces. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { VOCABULARY = 16000, POSITIONS = 1024, HEAD = 64, TENSORS_A_LAYER = 9, OTHER_TENSORS = 6 };

typedef enum fill { WEIGHTS, NORM, FREQUENCIES, COUNTING, TRIANGLE } fill;

typedef struct plan {
    char     name[80];
    tn_dtype dtype;
    int64_t  shape[2];
    uint32_t rank;
    fill     fill;
    bool     tied;              /* to the first tensor */
} plan;

typedef struct sample {
    plan   *plans;
    size_t  count;
} sample;

/* ---- which tensors ---- */

/* A vector when `columns` is 0, else a matrix. */
__attribute__((format(printf, 6, 7))) static plan *add(sample *s, fill fill_with, tn_dtype dtype,
                                                       int64_t rows, int64_t columns, const char *format, ...)
{
    plan *p = &s->plans[s->count++];
    *p = (plan){ .dtype = dtype, .shape = { rows, columns }, .rank = columns ? 2 : 1, .fill = fill_with };
    va_list args;
    va_start(args, format);
    vsnprintf(p->name, sizeof p->name, format, args);
    va_end(args);
    return p;
}

static void plan_layer(sample *s, int layer, int64_t width)
{
    /* grouped keys and values; the gated part */
    int64_t narrow = width / 4, wide = width * 8 / 3 / HEAD * HEAD;
    add(s, NORM, TN_FLOAT32, width, 0, "model.layers.%d.input_layernorm.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, width, width, "model.layers.%d.self_attn.q_proj.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, narrow, width, "model.layers.%d.self_attn.k_proj.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, narrow, width, "model.layers.%d.self_attn.v_proj.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, width, width, "model.layers.%d.self_attn.o_proj.weight", layer);
    add(s, NORM, TN_FLOAT32, width, 0, "model.layers.%d.post_attention_layernorm.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, wide, width, "model.layers.%d.mlp.gate_proj.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, wide, width, "model.layers.%d.mlp.up_proj.weight", layer);
    add(s, WEIGHTS, TN_BFLOAT16, width, wide, "model.layers.%d.mlp.down_proj.weight", layer);
}

static bool plan_all(sample *s, int layers, int64_t width)
{
    s->plans = calloc((size_t)layers * TENSORS_A_LAYER + OTHER_TENSORS, sizeof *s->plans);
    if (!s->plans)
        return false;
    add(s, WEIGHTS, TN_BFLOAT16, VOCABULARY, width, "model.embed_tokens.weight");
    for (int i = 0; i < layers; i++)
        plan_layer(s, i, width);
    add(s, NORM, TN_FLOAT32, width, 0, "model.norm.weight");
    add(s, FREQUENCIES, TN_FLOAT32, HEAD / 2, 0, "model.rotary_emb.inv_freq");
    add(s, COUNTING, TN_INT64, 1, POSITIONS, "model.position_ids");
    add(s, TRIANGLE, TN_BOOL, POSITIONS, POSITIONS, "model.causal_mask");
    add(s, WEIGHTS, TN_BFLOAT16, VOCABULARY, width, "lm_head.weight")->tied = true;
    return true;
}

/* ---- their values ---- */

/* splitmix64: every number of the sequence from its place alone. */
static uint64_t random_at(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Nearly normal, mean 0, deviation 1: the sum of four uniform numbers. */
static float normal_at(uint64_t seed, uint64_t i)
{
    uint64_t r = random_at(seed, i);
    int64_t sum = (int64_t)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48)) - 2 * 0xffff;
    return (float)sum * (1.0f / 37837.0f);
}

static uint64_t seed_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);   /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return hash;
}

static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    /* nearest, ties to even; values are finite */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Rotary frequencies fall from 1 to 1/10000 in equal ratios; no pow(), whose last bit depends on the
 * machine. */
static float frequency_at(uint64_t i)
{
    const double ratio = 0.7498942093324559;        /* 10000 ^ (-1 / 32) */
    double value = 1;
    while (i--)
        value *= ratio;
    return (float)value;
}

static float float_at(fill fill_with, uint64_t seed, uint64_t i)
{
    switch (fill_with) {
    case FREQUENCIES: return frequency_at(i);
    case NORM:        return 1.0f + normal_at(seed, i) * 0.015625f;    /* a power of two: exact, fused or
                                                                        * not */
    default:          return normal_at(seed, i) * 0.02f;
    }
}

/* Writes element i into `to` and returns how many bytes that took. */
static size_t put_value(const plan *p, uint64_t seed, uint64_t i, uint8_t *to)
{
    float f = float_at(p->fill, seed, i);
    uint16_t b = to_bfloat16(f);
    int64_t n = (int64_t)i;
    uint8_t below = i % POSITIONS <= i / POSITIONS;
    switch (p->dtype) {
    case TN_BFLOAT16: memcpy(to, &b, sizeof b); return sizeof b;
    case TN_FLOAT32:  memcpy(to, &f, sizeof f); return sizeof f;
    case TN_INT64:    memcpy(to, &n, sizeof n); return sizeof n;
    default:          *to = below; return sizeof below;
    }
}

/* ---- the file ---- */

static tn_status declare(tn_writer *w, const sample *s, tn_error *err)
{
    static const tn_meta meta[] = {
        { .key = "format", .text = "pt" }, { .key = "architecture", .text = "LlamaForCausalLM" },
        { .key = "note", .text = "made-up values for trying things out" },
    };
    tn_status status = TN_OK;
    for (size_t i = 0; i < sizeof meta / sizeof *meta && !status; i++)
        status = tn_writer_add_meta(w, &meta[i], err);
    for (size_t i = 0; i < s->count && !status; i++) {
        const plan *p = &s->plans[i];
        tn_part part = { .role = "data", .array = { .dtype = p->dtype, .rank = p->rank, .shape = p->shape } };
        tn_tensor tensor = {
            .name = p->name, .form = TN_FORM_DENSE, .dtype = p->dtype, .rank = p->rank, .shape = p->shape,
            .tied = p->tied ? s->plans[0].name : NULL, .parts = &part, .nparts = 1,
        };
        status = tn_array_nbytes(&part.array, &part.nbytes);
        if (!status)
            status = tn_writer_add(w, &tensor, err);
    }
    return status;
}

static tn_status write_tensor(tn_writer *w, size_t number, const plan *p, tn_error *err)
{
    uint8_t piece[1 << 16];
    size_t used = 0;
    uint64_t count, seed = seed_of(p->name);
    tn_status status = tn_shape_count(p->rank, p->shape, &count);
    for (uint64_t i = 0; i < count && !status; i++) {
        used += put_value(p, seed, i, piece + used);
        if (used == sizeof piece || i + 1 == count) {
            status = tn_writer_write(w, number, 0, piece, used, err);
            used = 0;
        }
    }
    return status;
}

static tn_status write_sample(const char *path, const sample *s, tn_error *err)
{
    tn_create_options options = { .size = sizeof options, .replace = true };
    tn_writer *w;
    tn_status status = tn_create(path, &options, &w, err);
    if (status)
        return status;
    status = declare(w, s, err);
    for (size_t i = 0; i < s->count && !status; i++)
        if (!s->plans[i].tied)
            status = write_tensor(w, i, &s->plans[i], err);
    if (status) {
        tn_writer_abandon(w);
        return status;
    }
    return tn_writer_finish(w, err);
}

int main(int argc, char **argv)
{
    int layers = argc > 2 ? atoi(argv[2]) : 24, width = argc > 3 ? atoi(argv[3]) : 384;
    if (argc < 2 || argc > 4 || layers < 1 || layers > 10000 || width < HEAD || width > 65536 ||
        width % HEAD) {
        fprintf(stderr, "usage: make-sample FILE [LAYERS [WIDTH]]   (WIDTH is a multiple of %d)\n", HEAD);
        return 2;
    }
    sample s = { 0 };
    tn_error err = { .text = "out of memory" };
    tn_status status = plan_all(&s, layers, width) ? write_sample(argv[1], &s, &err) : TN_ERR_NOMEM;
    if (status)
        fprintf(stderr, "make-sample: %s: %s\n", argv[1], err.text);
    free(s.plans);
    return status ? 1 : 0;
}
