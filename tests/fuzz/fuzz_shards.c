/* Sets of shards: several files in one input, the first of them the index.
 * Whatever they say, the set is refused with a reason or every byte of it can be
 * read; and what can be written as a set again is equal. */
#include "format_option.h"
#include "mutate.h"
#include "scarce_open.h"
#include "scratch.h"
#include "sets.h"
#include "walk.h"

/* One of the files is changed as such a file is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    const uint8_t *at = data, *bytes;
    size_t left = size, n, places[SET_FILES + 1], count = 0;
    while (count <= SET_FILES && set_take(&at, &left, &bytes) != SIZE_MAX)
        places[count++] = (size_t)(bytes - data);
    if (!count || mutant_pick(&m, 16) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t which = mutant_pick(&m, 2) ? mutant_pick(&m, count) : 0, from = places[which];
    n = (which + 1 < count ? places[which + 1] - 2 : size) - from;
    uint8_t *copy = malloc(n + 512);
    REQUIRE(copy);
    memcpy(copy, data + from, n);
    mutant file = { .data = copy, .size = n, .cap = n + 512, .random = mutant_random(&m) };
    if (which) {
        n = mutate_safetensors(copy, n, n + 512, (unsigned)mutant_random(&m));
    } else {
        mutate_json(&file, 0, n);
        n = file.size;
    }
    size_t gone = (which + 1 < count ? places[which + 1] - 2 : size) - from;
    if (n <= UINT16_MAX && replace_range(&m, from, gone, copy, n))
        set_le(m.data + from - 2, n, 2);
    free(copy);
    return m.size;
}

static void put_file(const char *name, const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(scratch_file(name), "wb");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* Returns how many files there are besides the index; those of the input before are gone. */
static unsigned put_files(const uint8_t *data, size_t size)
{
    static unsigned before;
    struct { const uint8_t *bytes; size_t n; } files[SET_FILES];
    const uint8_t *bytes;
    char name[60];
    unsigned count = 0;
    size_t n = set_take(&data, &size, &bytes);
    put_file(SET_INDEX, bytes, n == SIZE_MAX ? 0 : n);
    while (count < SET_FILES && (n = set_take(&data, &size, &bytes)) != SIZE_MAX) {
        files[count].bytes = bytes;
        files[count++].n = n;
    }
    for (unsigned i = 1; i <= before && before != count; i++) {
        set_name(name, i, before);
        unlink(scratch_file(name));
    }
    for (unsigned i = 0; i < count; i++) {
        set_name(name, i + 1, count);
        put_file(name, files[i].bytes, files[i].n);
    }
    return before = count;
}

static tn_status open_set(const void *context, tn_error *err)
{
    tn_open_options options = { .size = sizeof options, .format = "safetensors" };
    tn_file *file = NULL;
    (void)context;
    tn_status status = tn_open(scratch_file(SET_INDEX), &options, &file, err);
    if (!status)
        status = scarce_read(file, err);
    tn_close(file);
    return status;
}

static void remove_set(const tn_file *set)
{
    for (size_t i = 0; i < tn_file_shards(set); i++)
        unlink(tn_file_shard_name(set, i));
}

static void write_again(const tn_file *file, uint64_t shard_size, bool filler)
{
    tn_create_options create = { .size = sizeof create, .format = "safetensors", .replace = true, .jobs = 1,
                                 .shard_size = shard_size,
                                 FORMAT_OPTION("safetensors", "filler", filler ? "yes" : "no"), .align = filler ? 64 : 0 };
    tn_convert_options options = { .size = sizeof options, .create = &create };
    tn_file *copy;
    tn_error err = { .text = "" };
    tn_status status = tn_convert(file, scratch_file("again.safetensors"), &options, NULL, &err);
    if (status) {
        walk_error(&err, status);
        REQUIRE(status != TN_ERR_IO && status != TN_ERR_NOMEM);
        return;
    }
    if (tn_open(scratch_file("again.safetensors.index.json"), NULL, &copy, &err))
        REQUIRE(tn_open(scratch_file("again.safetensors"), NULL, &copy, &err) == TN_OK);
    require_same_tensors(file, copy);
    remove_set(copy);
    tn_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_open_options options = { .size = sizeof options, .format = size % 2 ? "safetensors" : NULL };
    tn_error err = { .text = "" };
    tn_file *file = NULL;
    const uint8_t *bytes;
    size_t left = size;
    put_files(data, size);
    scarce_check(open_set, NULL, scarce_choice(data, size));
    tn_status status = tn_open(scratch_file(SET_INDEX), &options, &file, &err);
    if (status) {
        REQUIRE(file == NULL);
        walk_error(&err, status);
        return 0;
    }
    walk_file(file);
    size_t n = set_take(&data, &left, &bytes);
    if (tn_file_shards(file) > 1)       /* without a path nobody finds the shards */
        REQUIRE(walk_bytes(bytes, n, "safetensors") == TN_ERR_UNSUPPORTED);
    if (walk_is_small(file) && tn_file_count(file) < 40)
        write_again(file, 8 + size % 100, size % 5 == 0);
    tn_close(file);
    return 0;
}
