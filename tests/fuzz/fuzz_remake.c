/* Files that somebody else made: the first bytes choose rules and a container, the
 * rest is a zTensor or safetensors file.  It is converted, and looked at in every other
 * way.  Memory may run out. */
#include <tenon/export.h>

#include "conversions.h"
#include "mutate.h"
#include "values.h"

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

/* Any range of the values of each tensor is the same as that part of all of them. */
static void read_values(const tn_file *file, chooser *c)
{
    static uint8_t all[WALK_READ_MAX], some[WALK_READ_MAX];
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        const tn_dtype_info *type = tn_dtype_get(t->dtype);
        tn_view *values = NULL;
        tn_error err = { .text = "" };
        uint64_t count, first = choose_bits(c), n = 1 + choose(c, 40);
        tn_status status = open_values(file, t, &values, &err);
        if (status) {
            walk_error(&err, status);
            continue;
        }
        if (type && type->bits % 8 == 0 && tn_shape_count(t->rank, t->shape, &count) == TN_OK &&
            count <= sizeof all / (type->bits / 8)) {
            size_t each = type->bits / 8;
            status = get_values(values, 0, count, all, (size_t)count * each, &err);
            first = count ? first % count : 0;
            n = n < count - first ? n : count - first;
            if (!status && get_values(values, first, n, some, (size_t)n * each, &err) == TN_OK)
                REQUIRE(memcmp(some, all + first * each, (size_t)n * each) == 0);
        }
        tn_view_close(values);
    }
}

static void look(const tn_file *file, chooser *c)
{
    tn_export_options exporting = { .size = sizeof exporting, .mli = (tn_mli_version)choose(c, 3) };
    tn_error err = { .text = "" };
    switch (choose(c, 4)) {
    case 0: use(file); break;
    case 1: read_values(file, c); break;
    case 2:
        if (tn_export_c(file, NULL, &exporting, NULL, &err))
            walk_error(&err, err.status);
        break;
    default: break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chooser c = { .bytes = data, .left = size < CHOICES ? size : CHOICES };
    tn_file *file = NULL;
    if (size <= CHOICES || tn_open_memory(data + CHOICES, size - CHOICES, NULL, &file, NULL))
        return 0;
    bool small = walk_is_small(file);
    if (small)
        look(file, &c);
    tn_close(small ? step(file, &c, 1, size % 4 == 0) : file);
    return 0;
}
