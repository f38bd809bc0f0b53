/* A model of another tool: the text of its configuration, a zero byte, and a safetensors file.  Whatever they are,
 * the entries are left as they are, or become tensors whose parts and values are read or refused with a reason,
 * in bounded memory. */
#include "mutate.h"
#include "walk.h"

#include "formats/conventions/conventions.h"

enum { MOST = 1 << 20 };        /* values that are read */

/* The bytes of the configuration, with the zero byte. */
static size_t config_of(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    return zero ? (size_t)(zero - data) + 1 : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t config = config_of(data, size);
    if (!config || seed % 16 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return config + mutate_safetensors(data + config, size - config, max_size - config, seed / 16);
}

static void read_values(const tn_file *file)
{
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        uint64_t count = 0;
        tn_error err = { .text = "" };
        if (!t->scaling || tn_shape_count(t->rank, t->shape, &count) != TN_OK || count > MOST)
            continue;
        float *values = malloc((size_t)count * sizeof *values + 1);
        REQUIRE(values);
        tn_status status = tn_read(file, t, TN_FLOAT32, values, (size_t)count * sizeof *values, &err);
        REQUIRE(!status || (err.status == status && err.text[0]));
        free(values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tn_open_options raw = { .size = sizeof raw, .format = "safetensors", .raw_codes = true };
    size_t config = config_of(data, size);
    tn_quant_config said = { .dtype = TN_UNKNOWN };
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    tn_file *file;
    for (size_t i = 0; config && tn_config_name(i) && !said.method; i++)
        if (tn_config_read(i, (tn_text){ (const char *)data, config - 1 }, &arena, &said, NULL))
            said.method = NULL;
    if (tn_open_memory(data + config, size - config, &raw, &file, NULL) == TN_OK) {
        tn_status status = tn_packed_find_with(file, &said, &err);
        REQUIRE(!status || (err.status == status && err.text[0]));
        if (!status) {
            walk_file(file);
            read_values(file);
        }
        tn_close(file);
    }
    tn_arena_free(&arena);
    return 0;
}
