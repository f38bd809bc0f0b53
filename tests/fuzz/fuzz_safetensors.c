/* safetensors: whatever the bytes, a file is refused with a reason or lists
 * tensors whose every byte can be read, whole and in rows, in bounded memory. */
#include <tenon/tenon.h>

#include <string.h>

#define REQUIRE(property) do { if (!(property)) __builtin_trap(); } while (0)

static void check_rows(const tn_file *file, const tn_part *p, const uint8_t *whole)
{
    uint8_t row[256];
    uint64_t rows = p->array.rank ? (uint64_t)p->array.shape[0] : 0;
    if (!rows || p->nbytes % rows || p->nbytes / rows > sizeof row || tn_dtype_get(p->array.dtype)->bits < 8)
        return;
    size_t n = (size_t)(p->nbytes / rows);
    for (uint64_t i = 0; i < rows && n; i++) {
        REQUIRE(tn_part_read_rows(file, p, i, 1, row, n, NULL) == TN_OK);
        REQUIRE(memcmp(row, whole + i * n, n) == 0);
    }
}

static void check_part(const tn_file *file, const tn_part *p)
{
    uint8_t buffer[4096];
    tn_error err;
    if (p->array.dtype == TN_UNKNOWN) {
        REQUIRE(tn_part_read(file, p, buffer, 0, &err) == TN_ERR_UNSUPPORTED);
        return;
    }
    REQUIRE(p->storage.size == p->nbytes && p->storage.offset + p->nbytes <= tn_file_size(file));
    if (p->nbytes > sizeof buffer)
        return;
    REQUIRE(tn_part_read(file, p, buffer, (size_t)p->nbytes, &err) == TN_OK);
    REQUIRE(!p->data || !p->nbytes || memcmp(p->data, buffer, (size_t)p->nbytes) == 0);
    check_rows(file, p, buffer);
}

static void check_meta(const tn_meta *meta, size_t n)
{
    char text[64];
    for (size_t i = 0; i < n; i++) {
        REQUIRE(meta[i].key && (meta[i].text != NULL) != (meta[i].cbor != NULL));
        tn_meta_json(&meta[i], text, sizeof text);
    }
}

static void check_file(const tn_file *file)
{
    size_t nmeta;
    const tn_meta *meta = tn_file_meta(file, &nmeta);
    check_meta(meta, nmeta);
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        REQUIRE(tn_file_find(file, t->name) == t && t->nparts > 0);
        check_meta(t->meta, t->nmeta);
        for (uint32_t k = 0; k < t->nparts; k++)
            check_part(file, &t->parts[k]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_open_options options = { .size = sizeof options, .format = "safetensors" };
    tn_file *file;
    tn_error err = { 0 };
    if (tn_open_memory(data, size, &options, &file, &err)) {
        REQUIRE(err.status != TN_OK && err.text[0]);
        REQUIRE(err.offset == TN_NO_OFFSET || err.offset <= size);
        return 0;
    }
    check_file(file);
    tn_close(file);
    return 0;
}
