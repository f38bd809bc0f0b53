/* formats/conventions/config.c - what the configuration beside a model says about its quantization. */
#include "formats/conventions/conventions.h"
#include "base/error.h"
#include "bytes/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* The method that an object names; "": it is there and names none. */
static const char *read_object(tn_json *j, const config_file *file)
{
    tn_json_keys keys = { 0 };
    const char *found = "";
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        tn_json_push_key(j, &keys, key);
        bool is_key = file->key && tn_text_is(key, file->key);
        if (is_key && !file->method) {
            found = tn_json_keep(j, tn_json_string(j));
            continue;
        }
        found = is_key ? file->method : found;
        tn_json_skip(j);
    }
    tn_json_pop_keys(j, &keys, 0);
    free(keys.items);
    return file->key ? found : file->method;
}

static const char *read_text(tn_json *j, const config_file *file)
{
    tn_json_keys keys = { 0 };
    const char *found = NULL;
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        tn_json_push_key(j, &keys, key);
        if (tn_text_is(key, file->object) && tn_json_peek(j) == TN_JSON_OBJECT)
            found = read_object(j, file);
        else
            tn_json_skip(j);
    }
    tn_json_pop_keys(j, &keys, 0);
    free(keys.items);
    return found;
}

const char *tn_config_name(size_t i)
{
    return i < sizeof config_files / sizeof *config_files ? config_files[i].name : NULL;
}

tn_status tn_config_read(size_t i, tn_text text, tn_arena *arena, const char **method, tn_error *err)
{
    const config_file *file = &config_files[i];
    tn_json j;
    tn_json_init(&j, text.ptr, text.len, arena);
    *method = file->object ? read_text(&j, file) : read_object(&j, file);
    tn_json_done(&j);
    if (!file->object && *method && !**method)
        *method = NULL;         /* some other configuration of this name */
    return j.status ? tn_json_fail(&j, 0, err) : TN_OK;
}

static tn_status load(const char *path, tn_arena *arena, tn_text *text, tn_error *err)
{
    tn_source *source;
    const uint8_t *bytes = NULL;
    TN_TRY(tn_source_open(path, TN_IO_PREAD, &source, err));
    uint64_t size = tn_source_size(source);
    tn_status status = TN_OK;
    if (size > MAX_CONFIG_BYTES)
        status = tn_fail(err, TN_ERR_LIMIT, "expected a configuration of at most %d bytes but found %" PRIu64,
                         MAX_CONFIG_BYTES, size);
    else
        status = tn_source_copy(source, 0, size, arena, &bytes, err);
    tn_source_close(source);
    *text = (tn_text){ (const char *)bytes, (size_t)size };
    return status;
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 || errno != ENOENT;
}

static tn_status read_beside(const char *path, size_t i, tn_arena *arena, const char **method, tn_error *err)
{
    size_t folder = (size_t)(tn_base_name(path) - path);
    const char *beside = tn_arena_printf(arena, "%.*s%s", (int)folder, path, tn_config_name(i));
    tn_text text;
    TN_NEED(beside, err);
    if (!is_there(beside))
        return TN_OK;
    tn_status status = load(beside, arena, &text, err);
    if (!status)
        status = tn_config_read(i, text, arena, method, err);
    return tn_in_file(status, beside, err);
}

tn_status tn_config_method(const char *path, tn_arena *arena, const char **method, tn_error *err)
{
    const char *unnamed = NULL;
    *method = NULL;
    for (size_t i = 0; *path && tn_config_name(i) && !*method; i++) {
        TN_TRY(read_beside(path, i, arena, method, err));
        if (*method && !**method) {
            unnamed = *method;          /* others may name it */
            *method = NULL;
        }
    }
    *method = *method ? *method : unnamed;
    return TN_OK;
}
