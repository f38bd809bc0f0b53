/* zTensor: any bytes are opened or refused, everything that can be done with an
 * open file keeps its promises, and what can be converted is equal afterwards. */
#include <limits.h>
#include <unistd.h>

#include "scratch.h"
#include "walk.h"

/* Reading back what a fuzzed size makes us write takes time and teaches nothing. */
static bool is_small(const tn_file *file)
{
    uint64_t total = 0;
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (uint32_t k = 0; k < tn_file_tensor(file, i)->nparts; k++) {
            uint64_t n = tn_file_tensor(file, i)->parts[k].nbytes;
            if (n > WALK_READ_MAX || (total += n) > WALK_READ_MAX)
                return false;
        }
    return true;
}

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
    size_t different = 1;
    tn_compare_options compare = { .size = sizeof compare, .jobs = 1 };
    REQUIRE(tn_open(scratch_file("converted"), NULL, &copy, &err) == TN_OK);
    REQUIRE(tn_compare(file, copy, &compare, NULL, &different, &err) == TN_OK && different == 0);
    tn_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    if (walk_bytes(data, size, "ztensor") != TN_OK || tn_open_memory(data, size, NULL, &file, NULL) != TN_OK)
        return 0;
    if (is_small(file)) {
        convert(file, "ztensor");
        convert(file, "safetensors");
    }
    tn_close(file);
    return 0;
}
