/* Files that a function of the caller reads. */
#include "support.h"
#include "make.h"

#include <tenon/tenon.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct store {
    uint8_t *bytes;
    size_t   size;
    unsigned calls, fail_at;    /* the call that fails; 0: none does */
    bool     is_silent;         /* which leaves the text empty */
} store;

static tn_status read_store(void *context, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    store *s = context;
    CHECK(offset <= s->size && n <= s->size - offset);
    CHECK(n > 0);
    if (++s->calls == s->fail_at) {
        if (!s->is_silent)
            *err = (tn_error){ .status = TN_ERR_IO, .offset = offset, .text = "the line is dead" };
        return TN_ERR_IO;
    }
    memcpy(buffer, s->bytes + offset, n);
    return TN_OK;
}

static store load(const char *name)
{
    store s = { .bytes = malloc(1 << 20) };
    FILE *f = fopen(in_folder(name).text, "r");
    assert_non_null(f);
    s.size = fread(s.bytes, 1, 1 << 20, f);
    fclose(f);
    return s;
}

static tn_status open_store(store *s, tn_file **file, tn_error *err)
{
    const tn_source_calls calls = { .size = sizeof calls, .bytes = s->size, .read = read_store,
                                    .context = s };
    return tn_open_callbacks(&calls, NULL, file, err);
}

static const float values[6] = { 1, -2, 3, 4.5f, 0, 6 };

static store some_store(tn_encoding encoding)
{
    const simple t = { .name = "w", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 3 }, .data = values };
    write_file("called.zt", (tn_create_options){ .replace = true, .encoding = encoding }, &t, 1);
    return load("called.zt");
}

static void what_a_function_reads_is_a_file(void)
{
    for (int encoding = TN_ENCODING_RAW; encoding <= TN_ENCODING_ZSTD; encoding++) {
        store s = some_store((tn_encoding)encoding);
        tn_file *f = NULL;
        tn_error err;
        float read[6];
        CHECK(open_store(&s, &f, &err) == TN_OK);
        CHECK(tn_file_size(f) == s.size && strcmp(tn_file_shard_name(f, 0), "") == 0);
        const tn_tensor *t = tn_file_find(f, "w");
        assert_non_null(t);
        CHECK(!t->parts[0].data);
        CHECK(tn_read(f, t, TN_FLOAT32, read, sizeof read, &err) == TN_OK);
        CHECK(memcmp(read, values, sizeof read) == 0);
        CHECK(tn_file_intact(f, &err) == TN_OK);
        CHECK(tn_convert(f, in_folder(encoding ? "b.zt" : "a.zt").text, NULL, NULL, &err) == TN_OK);
        tn_close(f);
        free(s.bytes);
    }
}

static void a_failed_read_ends_what_needed_it(void)
{
    store s = some_store(TN_ENCODING_RAW);
    tn_file *f = NULL;
    tn_error err;
    float read[6];
    CHECK(open_store(&s, &f, &err) == TN_OK);
    unsigned whole = s.calls;
    tn_close(f);
    CHECK(whole > 0);
    for (unsigned fail_at = 1; fail_at <= whole; fail_at++) {
        s.calls = 0;
        s.fail_at = fail_at;
        s.is_silent = fail_at % 2;
        CHECK(open_store(&s, &f, &err) == TN_ERR_IO);
        CHECK(strstr(err.text, s.is_silent ? "did not give them" : "the line is dead") != NULL);
    }
    s.calls = 0;
    s.fail_at = whole + 1;
    CHECK(open_store(&s, &f, &err) == TN_OK);
    CHECK(tn_read(f, tn_file_find(f, "w"), TN_FLOAT32, read, sizeof read, &err) == TN_ERR_IO);
    tn_close(f);
    free(s.bytes);
}

static void every_truncation_is_refused(void)
{
    store s = some_store(TN_ENCODING_ZSTD);
    size_t size = s.size;
    for (s.size = 0; s.size < size; s.size++) {
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        if (open_store(&s, &f, &err) != TN_OK)
            CHECK(err.text[0]);
        tn_close(f);
    }
    free(s.bytes);
}

static void a_forgotten_size_is_an_error(void)
{
    store s = { 0 };
    tn_file *f;
    tn_error err;
    CHECK(tn_open_callbacks(&(tn_source_calls){ .read = read_store, .context = &s }, NULL, &f, &err) ==
          TN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_a_function_reads_is_a_file),
        IN_FOLDER(a_failed_read_ends_what_needed_it),
        IN_FOLDER(every_truncation_is_refused),
        IN_FOLDER(a_forgotten_size_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
