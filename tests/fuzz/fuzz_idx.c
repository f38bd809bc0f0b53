/* IDX: whatever the bytes, a file is refused with a reason or holds one array
 * that is all of it but the header. */
#include "scarce_open.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "idx");
    if (walk_open(data, size, "idx", &file))
        return 0;
    REQUIRE(tn_file_count(file) == 1);
    const tn_tensor *t = tn_file_tensor(file, 0);
    REQUIRE(t->parts->nbytes == size - 4 - 4 * t->rank && !tn_file_warning(file, 0));
    tn_close(file);
    return 0;
}
