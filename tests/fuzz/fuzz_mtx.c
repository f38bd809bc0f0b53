/* MatrixMarket: any text is opened or refused in memory that does not grow
 * beyond what the text could be worth, and what is opened can be written again
 * and is the same, as symmetric too where it is. */
#include "format_option.h"
#include "memory_file.h"
#include "scarce_open.h"

enum { WORTH = 9 };             /* bytes of memory for one of text: mirrored entries of a pattern with 64-bit
                                 * indices take most */

static void check_worth(const tn_file *file, size_t size)
{
    const tn_tensor *t = tn_file_tensor(file, 0);
    uint64_t bytes = 0;
    REQUIRE(tn_file_count(file) == 1 && t->rank == 2);
    for (uint32_t k = 0; k < t->nparts; k++)
        bytes += t->parts[k].nbytes;
    REQUIRE(bytes <= WORTH * (uint64_t)size);
}

static bool same_parts(const tn_tensor *a, const tn_tensor *b)
{
    for (uint32_t k = 0; k < a->nparts; k++)
        if (a->parts[k].nbytes != b->parts[k].nbytes || a->parts[k].array.dtype != b->parts[k].array.dtype ||
            (a->parts[k].nbytes && memcmp(a->parts[k].data, b->parts[k].data, a->parts[k].nbytes) != 0))
            return false;
    return a->nparts == b->nparts;
}

static void write_again(const tn_file *file, bool symmetric)
{
    tn_create_options create = { .size = sizeof create, .format = "mtx", .jobs = 1,
                                 FORMAT_OPTION("mtx", "symmetric", symmetric ? "yes" : "no") };
    tn_status status;
    tn_file *copy = memory_again(file, &create, &status);
    REQUIRE(copy || (symmetric && status == TN_ERR_LOSS));
    if (!copy)
        return;
    const tn_tensor *a = tn_file_tensor(file, 0), *b = tn_file_tensor(copy, 0);
    if (symmetric && a->nparts > 1) {           /* entries have got another order */
        REQUIRE(a->parts[0].nbytes == b->parts[0].nbytes && a->parts[1].nbytes == b->parts[1].nbytes);
    } else {
        require_same_tensors(file, copy);
        REQUIRE(same_parts(a, b));
    }
    tn_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "mtx");
    if (walk_open(data, size, "mtx", &file))
        return 0;
    check_worth(file, size);
    write_again(file, false);
    write_again(file, true);
    tn_close(file);
    return 0;
}
