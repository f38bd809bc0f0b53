/* tests/support/zt_bytes.h - zTensor 0.1 files written by hand, right or wrong.
 *
 * The data section is `data_size` bytes at 64; what comes after it is up to
 * the test.  Include it after support.h. */
#ifndef TN_TESTS_ZT_BYTES_H
#define TN_TESTS_ZT_BYTES_H

#include "bytes/cbor.h"

typedef struct zt_bytes {
    tn_buf file;
    size_t index_at;
} zt_bytes;

/* Byte i of the data is i + 1. */
static inline zt_bytes zt_begin(size_t data_size)
{
    zt_bytes z = { 0 };
    tn_buf_put(&z.file, "ZTEN0001", 8);
    if (data_size)
        tn_buf_fill(&z.file, 0, 56);
    for (size_t i = 0; i < data_size; i++)
        tn_buf_putc(&z.file, (char)(i + 1));
    z.index_at = z.file.size;
    return z;
}

static inline void zt_text(zt_bytes *z, const char *text)
{
    tn_cbor_put_text(&z->file, text, strlen(text));
}

static inline void zt_text_field(zt_bytes *z, const char *key, const char *text)
{
    zt_text(z, key);
    zt_text(z, text);
}

static inline void zt_uint_field(zt_bytes *z, const char *key, uint64_t value)
{
    zt_text(z, key);
    tn_cbor_put_u64(&z->file, value);
}

/* One of the six required fields of a uint8 tensor. */
enum { ZT_FIELDS = 6 };
static const char *const zt_field_names[ZT_FIELDS] = { "name", "offset", "size", "dtype", "shape",
                                                       "encoding" };

static inline void zt_field_put(zt_bytes *z, int field, const char *name, uint64_t offset, uint64_t size)
{
    switch (field) {
    case 0: zt_text_field(z, "name", name); break;
    case 1: zt_uint_field(z, "offset", offset); break;
    case 2: zt_uint_field(z, "size", size); break;
    case 3: zt_text_field(z, "dtype", "uint8"); break;
    case 4:
        zt_text(z, "shape");
        tn_cbor_put_array(&z->file, 1);
        tn_cbor_put_u64(&z->file, size);
        break;
    default: zt_text_field(z, "encoding", "raw"); break;
    }
}

/* All six; the caller has put the head of a map and may add more fields. */
static inline void zt_fields(zt_bytes *z, const char *name, uint64_t offset, uint64_t size)
{
    for (int i = 0; i < ZT_FIELDS; i++)
        zt_field_put(z, i, name, offset, size);
}

static inline void zt_entry(zt_bytes *z, const char *name, uint64_t offset, uint64_t size)
{
    tn_cbor_put_map(&z->file, ZT_FIELDS);
    zt_fields(z, name, offset, size);
}

/* The size of the index: the file is complete, and its bytes are moved into a block of exactly their size. */
static inline void zt_end(zt_bytes *z)
{
    uint64_t n = z->file.size - z->index_at;
    for (int i = 0; i < 8; i++)
        tn_buf_putc(&z->file, (char)(n >> 8 * i));
    CHECK(!z->file.bad);
    uint8_t *exact = exact_copy(z->file.data, z->file.size);
    free(z->file.data);
    z->file.data = exact;
    z->file.cap = z->file.size;
}

#endif
