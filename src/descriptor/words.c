/* descriptor/words.c - the words of the specification for enum values and types. */
#include "descriptor/descriptor.h"

#include <string.h>

#define WORDS_CASE(name, any_case, ...)                                         \
    static const char *const name##_list[] = { __VA_ARGS__ };                   \
    const tn_words tn_##name##_words = { name##_list, sizeof name##_list / sizeof name##_list[0], any_case }
#define WORDS(name, ...) WORDS_CASE(name, false, __VA_ARGS__)

WORDS(quant_scheme, NULL, "per_tensor_symmetric", "per_tensor_asymmetric", "per_channel_symmetric",
      "per_channel_asymmetric");
WORDS(handle_type, NULL, "dma_buf_fd", "cuda_ipc", "metal_shared", "memfd");
WORDS_CASE(device_type, true, "CPU", "GPU", "NPU", "TPU");
WORDS(memory_space, "host", "device", "unified");
WORDS(byte_order, "little_endian", "big_endian");
WORDS(permission, "read_write", "read_only");           /* by tn_buffer_handle.read_only */
WORDS(access_mode, "device_only", "cpu_device");        /* by tn_wia_mapping.cpu_device */
WORDS(sparse_format, "COO", "CSR");
WORDS(index_type, "INT64", "INT32");

static const char *word(const tn_words *list, int value)
{
    return value >= 0 && value < list->count ? list->words[value] : NULL;
}

const char *tn_quant_scheme_name(tn_quant_scheme scheme) { return word(&tn_quant_scheme_words, (int)scheme); }
const char *tn_handle_type_name(tn_handle_type type)     { return word(&tn_handle_type_words, (int)type); }
const char *tn_device_type_name(tn_device_type type)     { return word(&tn_device_type_words, (int)type); }
const char *tn_memory_space_name(tn_memory_space space)  { return word(&tn_memory_space_words, (int)space); }

/* --- types --- */

static const char prefix[] = "tenon:";

tn_dtype tn_wia_type(const char *base_type)
{
    if (!base_type)
        return TN_UNKNOWN;
    bool ours = strncmp(base_type, prefix, strlen(prefix)) == 0;
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *type = tn_dtype_get((tn_dtype)i);
        if (!type)
            continue;
        const char *name = ours ? type->name : type->wia;
        if (name && strcmp(base_type + (ours ? strlen(prefix) : 0), name) == 0)
            return type->dtype;
    }
    return TN_UNKNOWN;
}

const char *tn_type_label(const tn_dtype_info *type)
{
    return type->wia ? type->wia : type->name;
}

const char *tn_wia_type_name(tn_dtype dtype, tn_arena *arena)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    if (!type || type->wia)
        return type ? type->wia : NULL;
    return tn_arena_printf(arena, "%s%s", prefix, type->name);
}
