/* .npz: whatever the bytes, an archive is refused with a reason or lists
 * tensors that can be read or are refused one by one; together they are no
 * larger than deflate can make them, because no byte is used twice.  What can be
 * written again is equal. */
#include "memory_file.h"
#include "mutate_npz.h"
#include "scarce_open.h"

#include "bytes/codec.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_npz(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    uint64_t total = 0;
    scarce_open(data, size, "npz");
    if (walk_open(data, size, "npz", &file))
        return 0;
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (uint32_t k = 0; k < tn_file_tensor(file, i)->nparts; k++)
            total += tn_file_tensor(file, i)->parts[k].nbytes;
    REQUIRE(total <= (uint64_t)size * tn_codec_deflate.ratio_max);
    tn_create_options create = { .size = sizeof create, .format = "npz", .jobs = 1 };
    if (walk_is_small(file))
        memory_same(file, &create);
    tn_close(file);
    return 0;
}
