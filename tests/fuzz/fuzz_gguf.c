/* GGUF: whatever the bytes, a file or a set of files is refused with a reason or everything in it can be
 * read; what can be written again is equal, metadata too; and so is what is rewritten. */
#include "format_option.h"
#include "memory_file.h"
#include "mutate_gguf.h"
#include "scarce_open.h"
#include "scratch.h"
#include "sets.h"

#include "formats/gguf/gguf.h"

/* The input is a file, or several of them as in sets.h. */
static bool is_set(const uint8_t *data, size_t size)
{
    return size > 8 && memcmp(data, "GGUF", 4) != 0 && memcmp(data + 2, "GGUF", 4) == 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (!is_set(data, size))
        return mutate_gguf(data, size, max_size, seed);
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    const uint8_t *at = data, *bytes;
    size_t left = size, n, which = mutant_pick(&m, 3), from = 0, count = 0, gone = 0;
    while (count <= which && (n = set_take(&at, &left, &bytes)) != SIZE_MAX) {
        from = (size_t)(bytes - data);
        gone = n;
        count++;
    }
    uint8_t *copy = malloc(gone + 512);
    REQUIRE(copy);
    memcpy(copy, data + from, gone);
    n = mutate_gguf(copy, gone, gone + 512, (unsigned)mutant_random(&m));
    if (n <= UINT16_MAX && replace_range(&m, from, gone, copy, n))
        set_le(m.data + from - 2, n, 2);
    free(copy);
    return m.size;
}

/* ---- written again ---- */

/* A file of a set is none any more when it is written alone. */
static bool is_split(const tn_file *file)
{
    size_t n;
    const tn_meta *meta = tn_file_meta(file, &n);
    for (size_t i = 0; i < n; i++)
        if (tn_gguf_is_split_key(meta[i].key))
            return true;
    return false;
}

/* The value of key `fitted` may be another one. */
static void require_same_meta(const tn_file *a, const tn_file *b, const char *fitted)
{
    size_t n, m;
    const tn_meta *x = tn_file_meta(a, &n), *y = tn_file_meta(b, &m);
    REQUIRE(n == m);
    for (size_t i = 0; i < n; i++)
        REQUIRE(strcmp(x[i].key, y[i].key) == 0 &&
                (tn_meta_same_value(&x[i], &y[i]) || strcmp(x[i].key, fitted) == 0));
}

static void write_again(const tn_file *file, bool big)
{
    tn_create_options create = { .size = sizeof create, .format = "gguf", .jobs = 1,
                                 FORMAT_OPTION("gguf", "byte-order", big ? "big" : "little") };
    tn_status status;
    tn_file *copy = memory_again(file, &create, &status);
    if (copy && !is_split(file)) {
        require_same_tensors(file, copy);
        require_same_meta(file, copy, "");
    }
    tn_close(copy);
}

static void rewrite(tn_file *file)
{
    tn_buf out = { 0 };
    tn_sink *sink;
    uint64_t size = 0, shared = 0;
    tn_error err = { .text = "" };
    tn_file *copy = NULL;
    REQUIRE(tn_sink_open_memory(&out, &sink, &err) == TN_OK);
    tn_status status = tn_format_gguf.rewrite(file, sink, &size, &shared, &err);
    if (status) {
        walk_error(&err, status);
        tn_sink_abandon(sink);
        return;
    }
    REQUIRE(tn_sink_publish(sink, size, &err) == TN_OK);
    tn_open_options options = { .size = sizeof options, .format = "gguf" };
    REQUIRE(tn_open_memory(out.data, out.size, &options, &copy, &err) == TN_OK);
    require_same_tensors(file, copy);
    require_same_meta(file, copy, TN_GGUF_PADDING);
    tn_close(copy);
    tn_buf_free(&out);
}

/* ---- sets ---- */

static void try_set(const uint8_t *data, size_t size)
{
    static unsigned before;
    struct { const uint8_t *bytes; size_t n; } files[SET_FILES];
    char name[60], first[60] = "";
    unsigned count = 0;
    const uint8_t *bytes;
    size_t n;
    while (count < SET_FILES && (n = set_take(&data, &size, &bytes)) != SIZE_MAX) {
        files[count].bytes = bytes;
        files[count++].n = n;
    }
    for (unsigned i = 1; i <= before; i++) {
        snprintf(name, sizeof name, "s-%05u-of-%05u.gguf", i, before);
        unlink(scratch_file(name));
    }
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "s-%05u-of-%05u.gguf", i + 1, count);
        FILE *f = fopen(scratch_file(name), "wb");
        REQUIRE(f && fwrite(files[i].bytes, 1, files[i].n, f) == files[i].n && fclose(f) == 0);
        if (!i)
            snprintf(first, sizeof first, "%s", name);
    }
    before = count;
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "gguf" };
    tn_status status = tn_open(scratch_file(first), &options, &file, &err);
    if (status)
        walk_error(&err, status);
    else
        walk_file(file);
    if (!status && walk_is_small(file))
        write_again(file, false);
    tn_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    if (is_set(data, size)) {
        try_set(data, size);
        return 0;
    }
    bool known = size >= 4 && memcmp(data, "GGUF", 4) == 0;     /* else it might be of another format */
    scarce_open(data, size, "gguf");
    if (walk_open(data, size, known ? NULL : "gguf", &file))
        return 0;
    if (walk_is_small(file)) {
        write_again(file, size % 2);
        rewrite(file);
    }
    tn_close(file);
    return 0;
}
