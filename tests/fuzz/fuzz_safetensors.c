/* safetensors: whatever the bytes, a file is refused with a reason or lists
 * tensors whose every byte can be read, whole and in rows, in bounded memory. */
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    if (walk_open(data, size, "safetensors", &file))
        return 0;
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        for (uint32_t k = 0; k < t->nparts; k++)
            REQUIRE(t->parts[k].array.dtype == TN_UNKNOWN || t->parts[k].storage.size == t->parts[k].nbytes);
    }
    tn_close(file);
    return 0;
}
