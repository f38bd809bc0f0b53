/* BTF: any bytes are opened or refused, everything that can be done with an
 * open file keeps its promises, and what can be written again is equal and
 * gives no warning. */
#include "scratch.h"
#include "walk.h"

static bool is_small(const tn_file *file)
{
    uint64_t total = 0;
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (uint32_t k = 0; k < tn_file_tensor(file, i)->nparts; k++)
            total += tn_file_tensor(file, i)->parts[k].nbytes;      /* at most the file's size for each */
    return total <= WALK_READ_MAX;
}

static void write_again(const tn_file *file, int coo_code)
{
    tn_open_options btf = { .size = sizeof btf, .format = "btf" };
    tn_create_options create = { .size = sizeof create, .format = "btf", .replace = true, .jobs = 1, .btf_coo_code = coo_code,
                                 .drop_metadata = true };      /* bytes that belong to no record */
    tn_convert_options options = { .size = sizeof options, .create = &create };
    tn_compare_options compare = { .size = sizeof compare, .jobs = 1 };
    tn_file *copy;
    tn_error err;
    size_t different = 1;
    tn_status status = tn_convert(file, scratch_file("again"), &options, NULL, &err);
    if (status == TN_ERR_CORRUPT && strstr(err.text, "expected an index below"))
        return;                 /* what only the data tells */
    REQUIRE(status == TN_OK);
    REQUIRE(tn_open(scratch_file("again"), &btf, &copy, &err) == TN_OK);
    REQUIRE(coo_code == 1 || tn_file_warning(copy, 0) == NULL);
    REQUIRE(tn_compare(file, copy, &compare, NULL, &different, &err) == TN_OK && different == 0);
    tn_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_open_options btf = { .size = sizeof btf, .format = "btf" };
    tn_file *file;
    if (walk_bytes(data, size, "btf") != TN_OK || tn_open_memory(data, size, &btf, &file, NULL) != TN_OK)
        return 0;
    for (size_t i = 0; tn_file_warning(file, i); i++)
        REQUIRE(i <= 100 && strlen(tn_file_warning(file, i)) > 0);
    if (is_small(file))
        write_again(file, 1 + (int)(size % 2));
    tn_close(file);
    return 0;
}
