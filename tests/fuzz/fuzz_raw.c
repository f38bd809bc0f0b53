/* Descriptors beside 256 bytes of data, or with sparse data in them: whatever
 * the document says, it is refused with a reason or lists tensors that can be
 * read, and described again, in bounded memory. */
#include "stored.h"
#include "mutate.h"
#include "scarce.h"
#include "scratch.h"
#include "walk.h"

#include <tenon/descriptor.h>

enum { DATA_BYTES = 256 };

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(scratch_file(name), "wb");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* What can be read is no larger than the file: no stride makes more of it.  A number of the document is two
 * bytes of text at least, and eight at most when it is decoded. */
static void check_sizes(const tn_file *file, size_t document)
{
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        for (uint32_t k = 0; k < t->nparts; k++) {
            bool text = stored_info(&t->parts[k]).shard >= tn_file_shards(file);
            REQUIRE(stored_info(&t->parts[k]).opaque || t->parts[k].nbytes <= (text ? 4 * document : DATA_BYTES));
        }
    }
}

/* A description of what was read is right, and can be written. */
static void check_described(const tn_file *file)
{
    tn_descriptors *set;
    tn_error err = { 0 };
    char *json;
    size_t n, wrong;
    tn_status status = tn_describe(file, NULL, &set, &err);
    if (status) {
        walk_error(&err, status);
        return;
    }
    for (size_t i = 0; i < tn_descriptors_count(set); i++)
        REQUIRE(tn_descriptor_check(tn_descriptors_at(set, i), NULL, &wrong, NULL) == TN_OK && wrong == 0);
    REQUIRE(tn_descriptors_write(tn_descriptors_at(set, 0), tn_descriptors_count(set),
                                 tn_descriptors_count(set) != 1, &json, &n, &err) == TN_OK);
    free(json);
    tn_descriptors_free(set);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_text(data, size, max_size, seed);
}

static tn_status open_scarcely(const void *context, tn_error *err)
{
    tn_open_options options = { .size = sizeof options, .format = "raw" };
    tn_file *file = NULL;
    (void)context;
    tn_status status = tn_open(scratch_file("d.json"), &options, &file, err);
    tn_close(file);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    tn_open_options options = { .size = sizeof options, .format = "raw" };
    tn_file *file = NULL;
    tn_error err = { 0 };
    uint8_t bytes[DATA_BYTES];
    for (size_t i = 0; i < sizeof bytes && !ready; i++)
        bytes[i] = (uint8_t)(i * 151);
    if (!ready)
        put("d.bin", bytes, sizeof bytes);
    ready = true;
    put("d.json", data, size);
    scarce_check(open_scarcely, NULL, scarce_choice(data, size));
    walk_bytes(data, size, NULL);               /* by content, and without the data beside it */
    tn_status status = tn_open(scratch_file("d.json"), &options, &file, &err);
    if (status) {
        REQUIRE(file == NULL && (err.offset <= size || err.offset == TN_NO_OFFSET));
        walk_error(&err, status);
        return 0;
    }
    check_sizes(file, size);
    walk_file(file);
    check_described(file);
    tn_close(file);
    return 0;
}
