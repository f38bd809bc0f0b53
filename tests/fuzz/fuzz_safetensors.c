/* safetensors: whatever the bytes, a file is refused with a reason or lists
 * tensors whose every byte can be read, whole and in rows, in bounded memory; and
 * what can be written again is equal. */
#include "stored.h"
#include "format_option.h"
#include "memory_file.h"
#include "mutate.h"
#include "scarce_open.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_safetensors(data, size, max_size, seed);
}

/* Nothing is encoded: a part takes as many bytes as it has, or as the array with its padding has.  Those of
 * another tool's weight may be made of entries of other sizes. */
static void check_sizes(const tn_file *file)
{
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        for (uint32_t k = 0; k < t->nparts && !tn_file_convention(file, t); k++) {
            const tn_part *p = &t->parts[k];
            const tn_array stored = { .dtype = p->array.dtype, .rank = p->array.rank,
                                      .shape = p->padded ? p->padded->shape : p->array.shape };
            uint64_t nbytes;
            REQUIRE(stored.dtype == TN_UNKNOWN ||
                    (tn_array_nbytes(&stored, &nbytes) == TN_OK && stored_info(p).bytes == nbytes));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "safetensors");
    if (walk_open(data, size, "safetensors", &file))
        return 0;
    check_sizes(file);
    bool filler = size % 4 == 0;
    tn_create_options create = { .size = sizeof create, .format = "safetensors", .jobs = 1,
                                 FORMAT_OPTION("safetensors", "filler", filler ? "yes" : "no"),
                                 .align = filler ? 64 : 0 };
    if (walk_is_small(file))
        memory_same(file, &create);
    tn_close(file);
    return 0;
}
