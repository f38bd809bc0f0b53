/* formats/conventions/config.c - what the configuration beside a model says about its quantization. */
#include "formats/conventions/conventions.h"
#include "base/error.h"
#include "bytes/json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG_BYTES = 16 << 20 };

/* One file: which key of which object names the method. */
typedef struct config_file {
    const char *name;
    const char *object;         /* NULL: the whole text */
    const char *key;
    const char *method;         /* where the key is there and is not the method itself; NULL: it is */
} config_file;

static const config_file config_files[] = {
    { "config.json", "quantization", NULL, "mlx" },
    { "config.json", "quantization_config", "quant_method", NULL },
    { "hf_quant_config.json", "quantization", "quant_algo", "modelopt" },
    { "quantize_config.json", NULL, "bits", "gptq" },
};

/* A number of 1 to 65535; 0: another value, which is skipped. */
static uint32_t read_small(tn_json *j)
{
    uint32_t value = 0;
    if (tn_json_peek(j) != TN_JSON_NUMBER) {
        tn_json_skip(j);
        return 0;
    }
    tn_text digits = tn_json_number(j);
    for (size_t i = 0; i < digits.len && value <= UINT16_MAX; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return 0;
        value = value * 10 + (uint32_t)(digits.ptr[i] - '0');
    }
    return value <= UINT16_MAX ? value : 0;
}

/* True of the word true only. */
static bool read_flag(tn_json *j)
{
    bool is_true = tn_json_peek(j) == TN_JSON_TRUE;
    tn_json_skip(j);
    return is_true;
}

static tn_text read_word(tn_json *j)
{
    if (tn_json_peek(j) == TN_JSON_STRING)
        return tn_json_string(j);
    tn_json_skip(j);
    return (tn_text){ "", 0 };
}

static void read_block(tn_json *j, uint32_t block[2])
{
    if (tn_json_peek(j) != TN_JSON_ARRAY) {
        tn_json_skip(j);
        return;
    }
    tn_json_array(j);
    for (size_t i = 0; tn_json_item(j); i++) {
        uint32_t size = read_small(j);
        if (i < 2)
            block[i] = size;
    }
}

/* Calls `take` for each key of an object, which must differ; any other value is skipped. */
static void each_key(tn_json *j, void (*take)(tn_json *j, tn_text key, void *context), void *context)
{
    tn_json_keys keys = { 0 };
    tn_text key;
    if (tn_json_peek(j) != TN_JSON_OBJECT) {
        tn_json_skip(j);
        return;
    }
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        tn_json_push_key(j, &keys, key);
        take(j, key, context);
    }
    tn_json_pop_keys(j, &keys, 0);
    free(keys.items);
}

/* ---- groups of modules, of compressed-tensors ---- */

/* The bits of all groups, if they have the same, and how many groups say this and that. */
typedef struct group_bits {
    uint32_t bits;
    bool     differ;
    size_t   groups, asymmetric, reordered;
} group_bits;

static void take_weights(tn_json *j, tn_text key, void *context)
{
    group_bits *g = context;
    if (tn_text_is(key, "num_bits")) {
        uint32_t bits = read_small(j);
        g->differ |= g->bits && g->bits != bits;
        g->bits = bits;
    } else if (tn_text_is(key, "symmetric") && tn_json_peek(j) == TN_JSON_FALSE) {
        g->asymmetric++;
        tn_json_skip(j);
    } else if (tn_text_is(key, "actorder")) {
        g->reordered += tn_text_is(read_word(j), "group");
    } else {
        tn_json_skip(j);
    }
}

static void take_group(tn_json *j, tn_text key, void *context)
{
    group_bits *g = context;
    if (tn_text_is(key, "weights")) {
        g->groups++;
        each_key(j, take_weights, context);
    } else {
        tn_json_skip(j);
    }
}

static void take_groups(tn_json *j, tn_text key, void *context)
{
    (void)key;
    each_key(j, take_group, context);
}

/* ---- one object ---- */

typedef struct reading {
    const config_file *file;
    tn_quant_config   *config;
    tn_quant_module   *modules;
    size_t             nmodules, cap;
} reading;

static void take_module_key(tn_json *j, tn_text key, void *context)
{
    tn_quant_module *m = context;
    if (tn_text_is(key, "bits"))
        m->bits = read_small(j);
    else if (tn_text_is(key, "group_size"))
        m->group = read_small(j);
    else
        tn_json_skip(j);
}

/* MLX names modules beside the settings of all. */
static void take_module(tn_json *j, tn_text name, reading *r)
{
    tn_quant_module m = { .name = tn_json_keep(j, name) };
    each_key(j, take_module_key, &m);
    if (!j->status && !TN_GROW(r->modules, r->nmodules, r->cap))
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    if (!j->status)
        r->modules[r->nmodules++] = m;
}

/* Layouts of AutoRound that have the entries of GPTQ and store zero points as they are. */
static bool is_packed_as_gptq_v2(tn_text format)
{
    return tn_text_is(format, "auto_round") || tn_text_is(format, "auto_round:gptqmodel");
}

static void take_setting(tn_json *j, tn_text key, void *context)
{
    reading *r = context;
    tn_quant_config *c = r->config;
    const char *method_key = r->file->key;
    group_bits g = { 0 };
    if (method_key && tn_text_is(key, method_key) && r->file->method)
        c->method = r->file->method;
    if (method_key && tn_text_is(key, method_key) && !r->file->method)
        c->method = tn_json_keep(j, tn_json_string(j));
    else if (tn_text_is(key, "bits"))
        c->bits = read_small(j);
    else if (tn_text_is(key, "group_size"))
        c->group = read_small(j);
    else if (tn_text_is(key, "sym"))
        c->is_symmetric = read_flag(j);
    else if (tn_text_is(key, "desc_act"))
        c->is_reordered = read_flag(j);
    else if (tn_text_is(key, "checkpoint_format"))
        c->is_gptq_v2 = tn_text_is(read_word(j), "gptq_v2");
    else if (tn_text_is(key, "packing_format"))
        c->is_gptq_v2 = is_packed_as_gptq_v2(read_word(j));
    else if (tn_text_is(key, "linear_class"))
        c->is_auto_bit_linear = tn_text_is(read_word(j), "autobitlinear");
    else if (tn_text_is(key, "weight_block_size"))
        read_block(j, c->block);
    else if (tn_text_is(key, "config_groups")) {
        each_key(j, take_groups, &g);
        c->bits = g.differ ? 0 : g.bits;
        c->is_asymmetric = g.groups && g.asymmetric == g.groups;
        c->has_actorder = g.groups && g.reordered == g.groups;
    } else if (!method_key && tn_json_peek(j) == TN_JSON_OBJECT)
        take_module(j, key, r);
    else
        tn_json_skip(j);
}

static void read_object(tn_json *j, reading *r)
{
    r->config->method = r->file->key ? "" : r->file->method;
    each_key(j, take_setting, r);
}

tn_dtype tn_config_type(tn_text name)
{
    if (tn_text_is(name, "bfloat16"))
        return TN_BFLOAT16;
    if (tn_text_is(name, "float16"))
        return TN_FLOAT16;
    return tn_text_is(name, "float32") ? TN_FLOAT32 : TN_UNKNOWN;
}

static void take_top(tn_json *j, tn_text key, void *context)
{
    reading *r = context;
    if (tn_text_is(key, r->file->object) && tn_json_peek(j) == TN_JSON_OBJECT)
        read_object(j, r);
    else if (tn_text_is(key, "torch_dtype") || tn_text_is(key, "dtype"))
        r->config->dtype = tn_config_type(read_word(j));
    else
        tn_json_skip(j);
}

static int compare_modules(const void *a, const void *b)
{
    return strcmp(((const tn_quant_module *)a)->name, ((const tn_quant_module *)b)->name);
}

const tn_quant_module *tn_config_module(const tn_quant_config *config, const char *name)
{
    const tn_quant_module wanted = { .name = name };
    if (!config->nmodules)
        return NULL;
    return bsearch(&wanted, config->modules, config->nmodules, sizeof wanted, compare_modules);
}

const char *tn_config_name(size_t i)
{
    return i < sizeof config_files / sizeof *config_files ? config_files[i].name : NULL;
}

tn_status tn_config_read(size_t i, tn_text text, tn_arena *arena, tn_quant_config *config, tn_error *err)
{
    reading r = { .file = &config_files[i], .config = config };
    tn_json j;
    tn_json_init(&j, text.ptr, text.len, arena);
    config->method = NULL;
    if (tn_json_peek(&j) != TN_JSON_OBJECT)
        tn_json_object(&j);     /* says what it is instead */
    else if (r.file->object)
        each_key(&j, take_top, &r);
    else
        read_object(&j, &r);
    tn_json_done(&j);
    if (!r.file->object && config->method && !*config->method)
        config->method = NULL;  /* some other configuration of this name */
    if (!j.status && r.nmodules) {
        qsort(r.modules, r.nmodules, sizeof *r.modules, compare_modules);
        config->modules = tn_arena_copy(arena, r.modules, r.nmodules * sizeof *r.modules);
        config->nmodules = config->modules ? r.nmodules : 0;
    }
    bool bad = r.nmodules && !config->modules && !j.status;
    free(r.modules);
    TN_NEED(!bad, err);
    return j.status ? tn_json_fail(&j, 0, err) : TN_OK;
}

static tn_status read_beside(const char *path, size_t i, tn_arena *arena, tn_quant_config *config,
                             tn_error *err)
{
    size_t folder = (size_t)(tn_base_name(path) - path);
    const char *beside = tn_arena_printf(arena, "%.*s%s", (int)folder, path, tn_config_name(i));
    tn_text text;
    bool there;
    TN_NEED(beside, err);
    tn_status status =
        tn_source_load_if(beside, MAX_CONFIG_BYTES, "a configuration", arena, &text, &there, err);
    if (!status && there)
        status = tn_config_read(i, text, arena, config, err);
    return tn_in_file(status, beside, err);
}

tn_status tn_config_find(const char *path, tn_arena *arena, tn_quant_config *config, tn_error *err)
{
    const char *unnamed = NULL;
    *config = (tn_quant_config){ .dtype = TN_UNKNOWN };
    for (size_t i = 0; *path && tn_config_name(i) && !config->method; i++) {
        TN_TRY(read_beside(path, i, arena, config, err));
        if (config->method && !*config->method) {
            unnamed = config->method;           /* others may name it */
            config->method = NULL;
        }
    }
    config->method = config->method ? config->method : unnamed;
    return TN_OK;
}
