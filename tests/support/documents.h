/* tests/support/documents.h - documents for the tests of descriptors. */
#ifndef TN_TESTS_DOCUMENTS_H
#define TN_TESTS_DOCUMENTS_H

#include "support.h"

#include <stdbool.h>

#include <tenon/descriptor.h>

static inline tn_status parse_n(const void *json, size_t n, tn_descriptors **set, tn_error *err)
{
    char *copy = (char *)exact_copy(json, n);
    *err = (tn_error){ .offset = 12345 };
    tn_status status = tn_descriptors_parse(copy, n, set, err);
    free(copy);                 /* nothing may point into it */
    return status;
}

/* A document that must be read. */
static inline tn_descriptors *parse(const char *json)
{
    tn_descriptors *set = NULL;
    tn_error err;
    tn_status status = parse_n(json, strlen(json), &set, &err);
    if (status)
        print_error("byte %llu: %s\n", (unsigned long long)err.offset, said_of(&err));
    CHECK(status == TN_OK);
    return set;
}

static inline bool is(const char *found, const char *expected)
{
    return found && strcmp(found, expected) == 0;
}

/* Every member of everything but the sparse block, and an unknown one in every object. */
static const char full[] =
    "{\"version\":\"WIA-AI-011-v1.0\",\"tensor_id\":\"7e7eb0f9-0cb3-4368-a4cb-a91565892a66\",\"name\":"
    "\"a\\u00e9\\n\",\n"
    " \"shape\":{\"dimensions\":[\"batch\",\"seq\",768],\"layout\":\"NLC\",\"symbolic\":true,\"constraints\":"
    "{"
    "\"batch\":{\"min\":1,\"max\":256},\"seq\":{\"min\":2,\"max\":2048,\"multiple_of\":8,\"x0\":[1, "
    "2]}},\"x1\":null},\n"
    " \"dtype\":{\"base_type\":\"INT8\",\"quantization\":{\"scheme\":\"per_channel_asymmetric\",\"scales\":["
    "0.1,2,1e-3],"
    "\"zero_points\":[1,-2,3],\"range\":[-128,127],\"channel_axis\":2,\"x2\":1},\"byte_order\":\"big_"
    "endian\",\"x3\":{\"a\": {}}},\n"
    " \"memory\":{\"strides\":[\"768*seq\",768,-1],\"offset_bytes\":64,\"total_bytes\":18446744073709551615,"
    "\"alignment\":256,"
    "\"device\":{\"type\":\"NPU\",\"id\":3,\"memory_space\":\"unified\",\"x4\":\"y\"},\"x5\":1},\n"
    " \"properties\":{\"requires_grad\":true,\"is_pinned\":false,\"is_contiguous\":true,\"zero_copy_"
    "compatible\":false,\"x6\":2},\n"
    " \"metadata\":{\"any\": [1,2,{\"k\":\"v\\u0000\"}]},\n"
    " \"physical_shape\":[1,2,3],\"padding\":{\"dims\":[true,false,true],\"values\":[0,5,0],\"mode\":\"value_"
    "fill\",\"fill\":-1.5,\"x7\":0},\n"
    " \"buffer_handle\":{\"type\":\"dma_buf_fd\",\"handle\":7,\"size_bytes\":4096,\"permissions\":\"read_"
    "only\",\"x8\":1},\n"
    " \"mapping\":{\"device_address\":\"0xDEADBEEF00\",\"cpu_address\":null,\"access_mode\":\"cpu_device\","
    "\"x9\":1},\n"
    " \"x10\":{\"top\": true}, \"x11\": 1.50}";

static const char coo[] = "{\"format\":\"COO\",\"shape\":[3,4],\"nnz\":2,\"indices\":{\"dtype\":\"INT32\","
                          "\"data\":[[0,1],[2,3]],\"i\":1},"
                          "\"values\":{\"dtype\":\"FLOAT16\",\"data\":[0.5,\"-Infinity\"],\"v\":2}}";
static const char csr[] = "{\"format\":\"CSR\",\"shape\":[2,3],\"row_pointers\":[0,1,2],\"column_indices\":["
                          "2,0],\"values\":[1.5,-0.0]}";

#endif
