/* PyTorch: whatever the bytes, a checkpoint is refused with a reason or lists tensors that can be read; their
 * views grow no further than deflate could.  What can be written as zTensor reads back equal. */
#include "memory_file.h"
#include "mutate_npz.h"
#include "scarce_open.h"

#include "store/file.h"

/* The place of a text with its length in 4 bytes, from a random place on; SIZE_MAX: there is none. */
static size_t find_text(mutant *m, size_t *length)
{
    size_t from = mutant_pick(m, m->size);
    for (size_t i = from; m->size - i > 5; i++) {
        *length = (size_t)get_le(m->data + i + 1, 4);
        if (m->data[i] == 'X' && *length <= m->size - i - 5)
            return i + 5;
    }
    return SIZE_MAX;
}

/* Changes a text of a pickle and its length, or any bytes. */
static size_t change_pickle(mutant *m)
{
    size_t n = 0, at = m->size > 6 && mutant_pick(m, 2) ? find_text(m, &n) : SIZE_MAX;
    if (at == SIZE_MAX)
        return LLVMFuzzerMutate(m->data, m->size, m->cap);
    uint8_t text[256], rest[MEMBER_BYTES];
    size_t left = m->size - at - n, room = sizeof text < m->cap - m->size ? sizeof text : m->cap - m->size;
    if (n > room || left > sizeof rest || !room)
        return LLVMFuzzerMutate(m->data, m->size, m->cap);
    memcpy(text, m->data + at, n);
    memcpy(rest, m->data + at + n, left);
    n = LLVMFuzzerMutate(text, n, room);
    for (size_t i = 0; i < 4; i++)
        m->data[at - 4 + i] = (uint8_t)(n >> 8 * i);
    memcpy(m->data + at, text, n);
    memcpy(m->data + at + n, rest, left);
    return at + n + left;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size < MEMBER_BYTES ? max_size : MEMBER_BYTES,
                 .random = seed };
    bool zip = size > 4 && memcmp(data, "PK\3\4", 4) == 0;
    if (zip || size >= m.cap)
        return mutate_zip(data, size, max_size, seed, change_pickle);
    return change_pickle(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    uint64_t total = 0;
    scarce_open(data, size, "pytorch");
    if (walk_open(data, size, "pytorch", &file))
        return 0;
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (uint32_t k = 0; k < tn_file_tensor(file, i)->nparts; k++)
            total += tn_file_tensor(file, i)->parts[k].nbytes;
    /* numbers and arrays of the pickle are in memory, too: they are no larger than it */
    REQUIRE(total <= 2 * (uint64_t)size * TN_GROWTH_MAX);
    const tn_create_options create = { .size = sizeof create, .format = "ztensor", .jobs = 1 };
    if (walk_is_small(file))
        memory_same(file, &create);
    tn_close(file);
    return 0;
}
