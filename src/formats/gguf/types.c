/* formats/gguf/types.c - the types of tensors that are plain numbers; the others are block types. */
#include "formats/gguf/gguf.h"

static const tn_gguf_type table[] = {
    { 0, TN_FLOAT32, "F32" }, { 1, TN_FLOAT16, "F16" }, { 24, TN_INT8, "I8" },
    { 25, TN_INT16, "I16" },  { 26, TN_INT32, "I32" },  { 27, TN_INT64, "I64" },
    { 28, TN_FLOAT64, "F64" }, { 30, TN_BFLOAT16, "BF16" },
};

enum { TYPES = sizeof table / sizeof *table };

const tn_gguf_type *tn_gguf_type_numbered(uint32_t number)
{
    size_t i = 0;
    while (i < TYPES && table[i].number != number)
        i++;
    return i < TYPES ? &table[i] : NULL;
}

const tn_gguf_type *tn_gguf_type_of(tn_dtype dtype)
{
    size_t i = 0;
    while (i < TYPES && table[i].dtype != dtype)
        i++;
    return i < TYPES ? &table[i] : NULL;
}
