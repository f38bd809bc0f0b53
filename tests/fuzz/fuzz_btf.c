/* BTF: any bytes are opened or refused, everything that can be done with an
 * open file keeps its promises, and what can be written again is equal and
 * gives no warning. */
#include "format_option.h"
#include "memory_file.h"
#include "mutate.h"
#include "scarce_open.h"

static void write_again(const tn_file *file, int coo_code)
{
    tn_create_options create = { .size = sizeof create, .format = "btf", .jobs = 1, 
                                 FORMAT_OPTION("btf", "coo-code", coo_code == 1 ? "1" : "2"),
                                 .drop_metadata = true };      /* bytes that belong to no record */
    tn_status status;
    tn_file *copy = memory_again(file, &create, &status);
    REQUIRE(copy || status == TN_ERR_CORRUPT);  /* an index outside the shape, which only the data tells */
    if (!copy)
        return;
    REQUIRE(coo_code == 1 || tn_file_warning(copy, 0) == NULL);
    require_same_tensors(file, copy);
    tn_close(copy);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_btf(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "btf");
    if (walk_open(data, size, "btf", &file))
        return 0;
    for (size_t i = 0; tn_file_warning(file, i); i++)
        REQUIRE(i <= 100 && strlen(tn_file_warning(file, i)) > 0);
    if (walk_is_small(file))
        write_again(file, 1 + (int)(size % 2));
    tn_close(file);
    return 0;
}
