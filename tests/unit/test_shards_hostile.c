/* The index of a sharded set, cut off anywhere or with any byte changed. */
#include "support.h"

#include <stdio.h>

#include "make.h"

#define INDEX "m.safetensors.index.json"

static const uint8_t bytes[32] = { 1, 2, 3 };
static const simple tensors[] = {
    { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 32 }, .data = bytes },
    { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 32 }, .data = bytes },
};

/* Opens a changed index; whatever becomes of it, it is an answer with a reason. */
static void try_index(const uint8_t *text, size_t n)
{
    put_bytes(INDEX, text, n);
    tn_file *file;
    tn_error err = { .text = "" };
    if (tn_open(in_folder(INDEX).text, NULL, &file, &err)) {
        CHECK(err.status != TN_OK && err.text[0] != '\0');
        return;
    }
    walk_file(file);
    tn_close(file);
}

static void every_change_of_an_index_is_handled(void)
{
    static const uint8_t flips[] = { 0xff, 0x01, 0x80 };
    uint8_t text[1024], changed[1024];
    write_file("m.safetensors", (tn_create_options){ .shard_size = 32 }, tensors, 2);
    FILE *f = fopen(in_folder(INDEX).text, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    CHECK(n > 50 && n < sizeof text);
    for (size_t i = 0; i < n; i++) {
        try_index(text, i);
        for (size_t k = 0; k < sizeof flips; k++) {
            memcpy(changed, text, n);
            changed[i] ^= flips[k];
            try_index(changed, n);
        }
    }
    try_index(text, n);
    tn_file *whole = open_file(INDEX);
    CHECK(tn_file_count(whole) == 2);
    tn_close(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = { IN_FOLDER(every_change_of_an_index_is_handled) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
