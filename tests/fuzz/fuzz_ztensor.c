/* zTensor: any bytes are opened or refused, everything that can be done with an
 * open file keeps its promises, and what can be converted is equal afterwards. */
#include "mutate.h"
#include "scarce_open.h"
#include <limits.h>
#include <unistd.h>

#include "scratch.h"
#include "walk.h"

/* Refused with a reason, or written; then the copy is opened and nothing differs. */
static void convert(const tn_file *file, const char *format)
{
    tn_error err = { 0 };
    tn_create_options create = { .size = sizeof create, .format = format, .replace = true, .jobs = 1 };
    tn_convert_options options = { .size = sizeof options, .create = &create };
    tn_status status = tn_convert(file, scratch_file("converted"), &options, NULL, &err);
    if (status) {
        walk_error(&err, status);
        REQUIRE(status != TN_ERR_IO && status != TN_ERR_NOMEM);
        return;
    }
    tn_file *copy;
    REQUIRE(tn_open(scratch_file("converted"), NULL, &copy, &err) == TN_OK);
    require_same_tensors(file, copy);
    tn_close(copy);
}

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
    if (walk_is_small(file)) {
        convert(file, "ztensor");
        convert(file, "safetensors");
    }
    tn_close(file);
    return 0;
}
