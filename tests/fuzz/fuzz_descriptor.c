/* Descriptors: refused with a reason, or written so that they read back the
 * same; and whatever was read can be checked. */
#include "mutate.h"
#include <stdlib.h>
#include <string.h>

#include <tenon/descriptor.h>

#include "require.h"
#include "scarce.h"

static void check_all(const tn_descriptors *set)
{
    for (size_t i = 0; i < tn_descriptors_count(set); i++) {
        const tn_descriptor *d = tn_descriptors_at(set, i);
        size_t wrong;
        uint64_t bytes;
        REQUIRE(tn_descriptor_check(d, NULL, &wrong, NULL) == TN_OK);
        int level = tn_descriptor_level(d, NULL);
        REQUIRE(level >= 1 && level <= 3);
        tn_descriptor_max_bytes(d, &bytes, NULL);
    }
}

/* Written, read and written again: both texts are the same. */
static void check_written(const tn_descriptors *set)
{
    size_t n = tn_descriptors_count(set), size, size_again;
    char *json, *again;
    tn_descriptors *read;
    REQUIRE(tn_descriptors_write(tn_descriptors_at(set, 0), n, n != 1, &json, &size, NULL) == TN_OK);
    REQUIRE(tn_descriptors_parse(json, size, &read, NULL) == TN_OK);
    REQUIRE(tn_descriptors_count(read) == n);
    REQUIRE(tn_descriptors_write(tn_descriptors_at(read, 0), n, n != 1, &again, &size_again, NULL) == TN_OK);
    REQUIRE(size == size_again && memcmp(json, again, size) == 0);
    free(json);
    free(again);
    tn_descriptors_free(read);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_text(data, size, max_size, seed);
}

typedef struct text {
    const char *ptr;
    size_t      size;
} text;

static tn_status parse_scarcely(const void *context, tn_error *err)
{
    const text *t = context;
    tn_descriptors *set = NULL;
    char *json;
    size_t n;
    tn_status status = tn_descriptors_parse(t->ptr, t->size, &set, err);
    if (status)
        return status;
    status = tn_descriptors_write(tn_descriptors_at(set, 0), tn_descriptors_count(set),
                                  tn_descriptors_count(set) != 1, &json, &n, err);
    if (!status)
        free(json);
    tn_descriptors_free(set);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_descriptors *set;
    tn_error err = { .text = "" };
    scarce_check(parse_scarcely, &(text){ (const char *)data, size }, scarce_choice(data, size));
    tn_status status = tn_descriptors_parse((const char *)data, size, &set, &err);
    if (status) {
        REQUIRE(status == TN_ERR_CORRUPT || status == TN_ERR_LIMIT || status == TN_ERR_TRUNCATED);
        REQUIRE(err.status == status && err.offset <= size && err.text[0] &&
                strlen(err.text) < sizeof err.text);
        return 0;
    }
    check_written(set);
    check_all(set);
    tn_descriptors_free(set);
    return 0;
}
