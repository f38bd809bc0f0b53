/* tests/support/safetensors_bytes.h - small safetensors files, written by hand. */
#ifndef TN_TESTS_SAFETENSORS_BYTES_H
#define TN_TESTS_SAFETENSORS_BYTES_H

#include "support.h"

#include <tenon/tenon.h>

/* A file with this header and data of 1, 2, 3 ... */
static inline uint8_t *make_file(const char *json, size_t data_size, size_t *size)
{
    size_t n = strlen(json);
    *size = 8 + n + data_size;
    uint8_t *bytes = calloc(1, *size);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(n >> 8 * i);
    memcpy(bytes + 8, json, n);
    for (size_t i = 0; i < data_size; i++)
        bytes[8 + n + i] = (uint8_t)(i + 1);
    return bytes;
}

static inline const tn_meta *find_meta(const tn_meta *meta, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(meta[i].key, key) == 0)
            return &meta[i];
    return NULL;
}

static inline bool file_has_text(const tn_file *file, const char *key, const char *text)
{
    size_t n;
    const tn_meta *meta = tn_file_meta(file, &n), *m = find_meta(meta, n, key);
    return m && m->text && strcmp(m->text, text) == 0;
}

/* One entry of a header. */
#define U8(name, begin, end, n) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #n "],\"data_offsets\":[" #begin "," #end "]}"

/* Metadata, a record with both kinds of values, a file record, a filler; 12 bytes of data. */
#define SAMPLE \
    "{\"__metadata__\":{\"k\":\"v\\n\",\"tenon:i\":\"{\\\"dtype\\\":\\\"int4\\\",\\\"shape\\\":[3],\\\"meta\\\":{\\\"m\\\":null," \
    "\\\"n\\\":[1.5]},\\\"cbor\\\":{\\\"m\\\":\\\"4101\\\"}}\",\"tenon\":\"{\\\"meta\\\":{\\\"x\\\":7},\\\"fillers\\\":true}\"}," \
    "\"f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," \
    "\"__tenon_filler_0__\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]}," \
    "\"i\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[10,12]}} "

#endif
