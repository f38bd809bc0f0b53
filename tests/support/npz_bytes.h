/* tests/support/npz_bytes.h - archives of arrays written by hand.  Include it after support.h. */
#ifndef TN_TESTS_NPZ_BYTES_H
#define TN_TESTS_NPZ_BYTES_H

#include "bytes/checksum.h"
#include "formats/npz/npz.h"

#include <zlib.h>

typedef struct archive {
    tn_buf   bytes, directory;
    uint64_t count;
    bool     wide;              /* members as zip64 */
} archive;

/* Where fields stand in an entry of the directory, and in a local header. */
enum {
    ENTRY_FLAGS = 8,
    ENTRY_METHOD = 10,
    ENTRY_CRC = 16,
    ENTRY_SIZE = 20,
    ENTRY_DECODED = 24,
    ENTRY_PLACE = 42,
    ENTRY_NAME = 46
};
enum { LOCAL_METHOD = 8, LOCAL_SIZE = 18, LOCAL_NAME = 30 };

static inline void put_le(uint8_t *p, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline size_t deflate_raw(const void *bytes, size_t n, uint8_t *out, size_t cap)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (unsigned)n, .next_out = out,
                   .avail_out = (unsigned)cap };
    CHECK(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    CHECK(deflateEnd(&z) == Z_OK);
    return cap - z.avail_out;
}

static inline void add_member(archive *a, const char *name, unsigned method, const void *bytes, size_t n)
{
    size_t cap = n + n / 100 + 100, size = n, local = a->bytes.size, entry = a->directory.size;
    uint8_t *stored = malloc(cap);
    assert_non_null(stored);
    memcpy(stored, bytes, n);
    if (method == TN_ZIP_DEFLATED)
        size = deflate_raw(bytes, n, stored, cap);
    tn_zip_member m = { .name = { name, strlen(name) }, .local = local, .size = size,
                        .crc = tn_crc32(0, bytes, n), .wide = a->wide };
    tn_zip_put_local(&a->bytes, &m);
    tn_zip_put_entry(&a->directory, &m);
    put_le(a->bytes.data + local + LOCAL_METHOD, method, 2);
    put_le(a->directory.data + entry + ENTRY_METHOD, method, 2);
    if (!a->wide)
        put_le(a->directory.data + entry + ENTRY_DECODED, n, 4);
    tn_buf_put(&a->bytes, stored, size);
    a->count++;
    free(stored);
}

/* An array as a member: header and elements. */
static inline void add_array(archive *a, const char *name, unsigned method, const char *header,
                             const void *data, size_t n)
{
    tn_buf b = { 0 };
    uint8_t prefix[10] = TN_NPY_MAGIC "\1\0";
    put_le(prefix + 8, strlen(header), 2);
    tn_buf_put(&b, prefix, sizeof prefix);
    tn_buf_puts(&b, header);
    tn_buf_put(&b, data, n);
    add_member(a, name, method, b.data, b.size);
    tn_buf_free(&b);
}

static inline void end_archive(archive *a)
{
    uint64_t at = a->bytes.size;
    tn_buf_put(&a->bytes, a->directory.data, a->directory.size);
    tn_zip_put_end(&a->bytes, a->count, at, a->directory.size);
    tn_buf_free(&a->directory);
}

#endif
