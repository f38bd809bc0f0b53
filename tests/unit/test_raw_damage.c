/* Descriptors with their data beside them: damaged, either of them. */
#include "support.h"

#include "make.h"

/* A document with something of everything, and its data. */
static const uint8_t data[48] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static const char everything[] =
    "[{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"d\","
    "\"shape\":{\"dimensions\":[2,3],\"layout\":\"RC\",\"symbolic\":false},\"dtype\":{\"base_type\":"
    "\"UINT16\","
    "\"quantization\":null,\"byte_order\":\"big_endian\"},\"memory\":{\"strides\":[4,1],\"offset_bytes\":2,"
    "\"total_bytes\":48,"
    "\"device\":{\"type\":\"GPU\",\"id\":1,\"memory_space\":\"device\"}},\"properties\":{\"is_contiguous\":"
    "false},"
    "\"metadata\":{\"a\":1.5,\"b\":{\"$cbor\":\"42beef\"}},\"tenon\":{\"file_metadata\":{\"f\":\"g\"}}},"
    "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"q\",\"shape\":[2,2],\"physical_shape\":[2,4],\"dtype\":{"
    "\"base_type\":\"INT8\","
    "\"quantization\":{\"scheme\":\"per_channel_asymmetric\",\"scales\":[0.5,2],\"zero_points\":[-1,3],"
    "\"range\":[-9,9],"
    "\"channel_axis\":1}},\"tenon\":{\"dtype\":\"float16\"}},"
    "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"s\",\"format\":\"CSR\",\"shape\":[1,2],\"row_pointers\":[0,"
    "1],"
    "\"column_indices\":[1],\"values\":[2]}]";

/* Opened or refused with a reason; then everything is done with it. */
static bool try_document(const char *json, size_t n)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "raw" };
    put_bytes("d.json", json, n);
    tn_status status = tn_open(in_folder("d.json").text, &options, &f, &err);
    if (status) {
        CHECK(f == NULL && (err.offset <= n || err.offset == TN_NO_OFFSET));
        walk_error(&err, status);
        return false;
    }
    walk_file(f);
    tn_close(f);
    return true;
}

static void every_truncation_of_the_document_is_refused(void)
{
    put_bytes("d.bin", data, sizeof data);
    for (size_t n = 0; n < sizeof everything - 1; n++)
        CHECK(!try_document(everything, n));
    CHECK(try_document(everything, sizeof everything - 1));
}

static void a_changed_byte_anywhere_does_no_harm(void)
{
    static const uint8_t changes[] = { 0x01, 0x10, 0x80, 0xff };
    size_t n = sizeof everything - 1, refused = 0;
    put_bytes("d.bin", data, sizeof data);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof changes; k++) {
            uint8_t *copy = exact_copy(everything, n);
            copy[i] ^= changes[k];
            refused += !try_document((const char *)copy, n);
            free(copy);
        }
    CHECK(refused > n);
}

static void data_that_is_too_short_is_refused(void)
{
    for (size_t n = 0; n <= sizeof data; n++) {
        put_bytes("d.bin", data, n);
        CHECK(try_document(everything, sizeof everything - 1) == (n == sizeof data));
    }
}

static void a_document_is_read_whichever_way(void)
{
    put_bytes("d.bin", data, sizeof data);
    put_bytes("d.json", everything, sizeof everything - 1);
    static const tn_io ways[] = { TN_IO_MMAP, TN_IO_PREAD };
    for (int i = 0; i < 2; i++) {
        tn_open_options options = { .size = sizeof options, .io = ways[i] };
        tn_file *f;
        size_t n;
        CHECK(tn_open(in_folder("d.json").text, &options, &f, NULL) == TN_OK);
        walk_file(f);
        const tn_meta *meta = tn_file_meta(f, &n);
        CHECK(n == 1 && strcmp(meta[0].key, "f") == 0 && strcmp(meta[0].text, "g") == 0);
        const tn_tensor *t = tn_file_find(f, "d");
        CHECK(t->nmeta == 2 && t->meta[1].cbor_size == 3 && memcmp(t->meta[1].cbor, "\x42\xbe\xef", 3) == 0);
        CHECK(tn_file_find(f, "q")->dtype == TN_FLOAT16 && tn_file_find(f, "q")->scaling->axis == 1);
        tn_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_truncation_of_the_document_is_refused),
        IN_FOLDER(a_changed_byte_anywhere_does_no_harm),
        IN_FOLDER(data_that_is_too_short_is_refused),
        IN_FOLDER(a_document_is_read_whichever_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
