/* zTensor: any bytes are opened or refused, everything that can be done with an
 * open file keeps its promises, and what can be converted is equal afterwards. */
#include "memory_file.h"
#include "mutate.h"
#include "scarce_open.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_ztensor(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "ztensor");
    if (walk_open(data, size, "ztensor", &file))
        return 0;
    tn_create_options zt = { .size = sizeof zt, .format = "ztensor", .jobs = 1 };
    tn_create_options safetensors = { .size = sizeof safetensors, .format = "safetensors", .jobs = 1 };
    if (walk_is_small(file))
        memory_same(file, size % 2 ? &zt : &safetensors);
    tn_close(file);
    return 0;
}
