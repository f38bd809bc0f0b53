/* Conversion of files that somebody else made: the first bytes choose rules and a
 * container, the rest is a zTensor or safetensors file.  Memory may run out. */
#include "conversions.h"
#include "mutate.h"

enum { CHOICES = 12 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    if (size <= CHOICES)
        return LLVMFuzzerMutate(data, size, max_size);
    if (mutant_pick(&m, 2)) {
        data[mutant_pick(&m, CHOICES)] = (uint8_t)mutant_random(&m);
        return size;
    }
    uint8_t *file = data + CHOICES;
    size_t n = size - CHOICES, cap = max_size - CHOICES;
    bool zt = n > 8 && memcmp(file, "ZTEN0001", 8) == 0;
    return CHOICES + (zt ? mutate_ztensor(file, n, cap, seed) : mutate_safetensors(file, n, cap, seed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chooser c = { .bytes = data, .left = size < CHOICES ? size : CHOICES };
    tn_file *file = NULL;
    if (size <= CHOICES || tn_open_memory(data + CHOICES, size - CHOICES, NULL, &file, NULL))
        return 0;
    if (walk_is_small(file))
        tn_close(step(file, &c, 1, size % 4 == 0));
    else
        tn_close(file);
    return 0;
}
