/* .npy: whatever the bytes, a file is refused with a reason or holds an array
 * that can be read, in bounded memory: no larger than the file. */
#include "mutate.h"
#include "scarce_open.h"
#include "walk.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_npy(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "npy");
    if (walk_open(data, size, "npy", &file))
        return 0;
    REQUIRE(tn_file_count(file) == 1);
    REQUIRE(tn_file_tensor(file, 0)->parts->nbytes <= size);
    tn_close(file);
    return 0;
}
