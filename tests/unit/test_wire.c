/* Packets: what is written is read back, and whatever else arrives is refused
 * with a reason. */
#include "support.h"

#include "base/arena.h"
#include "share/wire.h"

#include <tenon/tenon.h>

/* ---- packets ---- */

static const tn_wia_extent extents[] = { { .value = 3 }, { .value = 4 } };
static const tn_descriptor plain = {
    .version = TN_WIA_VERSION, .name = "w", .rank = 2, .dimensions = extents, .dtype = TN_FLOAT32,
    .base_type = "FLOAT32",
    .has_memory = true, .offset_bytes = 64, .has_total = true, .total_bytes = 112, .alignment = 64,
    .buffer_handle = { .type = TN_HANDLE_MEMFD, .handle = 0, .size_bytes = 4096, .read_only = true },
};

typedef struct packet { tn_buf b; } packet;

static packet written(const tn_wire *w)
{
    packet p = { { 0 } };
    tn_error err = { .text = "" };
    if (tn_wire_encode(w, &p.b, &err))
        fail_msg("%s", line_of(&err));
    return p;
}

static tn_status read_back(const tn_buf *b, size_t descriptors, tn_arena *arena, tn_wire *w, tn_error *err)
{
    uint8_t *copy = exact_copy(b->data, b->size);
    tn_status status = tn_wire_decode(copy, b->size, descriptors, arena, w, err);
    free(copy);
    return status;
}

/* One of each kind. */
static const tn_wire *sample(size_t i)
{
    static const tn_wire tensor = { .kind = TN_WIRE_TENSOR, .offset = 4096, .tensor = &plain };
    static tn_descriptor on_gpu;
    static tn_wire gpu = { .kind = TN_WIRE_TENSOR, .tensor = &on_gpu, .opaque = { 0xff, 1, 2 } };
    static const tn_wire others[] = {
        { .kind = TN_WIRE_HELLO, .in_place = true },
        { .kind = TN_WIRE_FILE, .name = "model \"\xc3\xa9\"\n", .format = "ztensor", .bytes = INT64_MAX },
        { .kind = TN_WIRE_END, .items = 3, .withheld = 1 },
        { .kind = TN_WIRE_REFUSED, .why = "user 7 may not attach here" },
        { .kind = TN_WIRE_NEXT },
    };
    on_gpu = plain;
    on_gpu.device = (tn_device){ .type = TN_DEVICE_GPU, .space = TN_SPACE_DEVICE };
    on_gpu.buffer_handle.type = TN_HANDLE_CUDA_IPC;
    return i < 5 ? &others[i] : i == 5 ? &tensor : i == 6 ? &gpu : NULL;
}

static void check_same(const tn_wire *a, const tn_wire *b)
{
    CHECK(a->kind == b->kind && a->in_place == b->in_place && a->bytes == b->bytes && a->offset == b->offset);
    CHECK(a->items == b->items && a->withheld == b->withheld);
    CHECK(!a->name == !b->name && (!a->name || strcmp(a->name, b->name) == 0));
    CHECK(!a->format == !b->format && (!a->format || strcmp(a->format, b->format) == 0));
    CHECK(!a->why == !b->why && (!a->why || strcmp(a->why, b->why) == 0));
    assert_memory_equal(a->opaque, b->opaque, sizeof a->opaque);
    if (!a->tensor)
        return;
    assert_string_equal(a->tensor->name, b->tensor->name);
    CHECK(a->tensor->rank == b->tensor->rank && a->tensor->offset_bytes == b->tensor->offset_bytes);
    CHECK(a->tensor->buffer_handle.type == b->tensor->buffer_handle.type);
    CHECK(a->tensor->buffer_handle.size_bytes == b->tensor->buffer_handle.size_bytes);
    CHECK(a->tensor->buffer_handle.read_only == b->tensor->buffer_handle.read_only);
}

static void what_is_written_is_read_back(void)
{
    for (size_t i = 0; sample(i); i++) {
        tn_arena arena = { 0 };
        tn_error err = { .text = "" };
        tn_wire w;
        packet p = written(sample(i));
        if (read_back(&p.b, tn_wire_descriptors(sample(i)), &arena, &w, &err))
            fail_msg("sample %zu: %s", i, line_of(&err));
        check_same(sample(i), &w);
        tn_wire_free(&w);
        tn_arena_free(&arena);
        tn_buf_free(&p.b);
    }
}

/* ---- broken ones ---- */

static void expect_reason(tn_status status, const tn_error *err, size_t n)
{
    CHECK(status == TN_ERR_TRUNCATED || status == TN_ERR_CORRUPT || status == TN_ERR_LIMIT ||
          status == TN_ERR_UNSUPPORTED);
    CHECK(err->status == status && err->text[0] && (err->offset <= n || err->offset == TN_NO_OFFSET));
}

static void every_truncation_is_refused(void)
{
    for (size_t i = 0; sample(i); i++) {
        packet p = written(sample(i));
        for (size_t n = 0; n < p.b.size; n++) {
            for (int honest = 0; honest < 2; honest++) {        /* with a length that is right, too */
                tn_arena arena = { 0 };
                tn_error err = { .text = "" };
                tn_wire w;
                tn_buf cut = p.b;
                uint8_t before = p.b.data[8], before_high = p.b.data[9];
                cut.size = n;
                if (honest && n >= 16) {
                    p.b.data[8] = (uint8_t)((n - 16) & 0xff);
                    p.b.data[9] = (uint8_t)((n - 16) >> 8);
                }
                tn_status status = read_back(&cut, tn_wire_descriptors(sample(i)), &arena, &w, &err);
                p.b.data[8] = before;
                p.b.data[9] = before_high;
                expect_reason(status, &err, n);
                CHECK(n >= 16 || status == TN_ERR_TRUNCATED);
                tn_arena_free(&arena);
            }
        }
        tn_buf_free(&p.b);
    }
}

static void a_flipped_byte_is_refused_or_harmless(void)
{
    size_t refused = 0;
    for (size_t i = 0; sample(i); i++) {
        packet p = written(sample(i));
        for (size_t at = 0; at < p.b.size; at++) {
            for (int bit = 0; bit < 8; bit++) {
                tn_arena arena = { 0 };
                tn_error err = { .text = "" };
                tn_wire w;
                p.b.data[at] ^= (uint8_t)(1 << bit);
                tn_status status = read_back(&p.b, tn_wire_descriptors(sample(i)), &arena, &w, &err);
                p.b.data[at] ^= (uint8_t)(1 << bit);
                if (status) {
                    expect_reason(status, &err, p.b.size);
                    refused++;
                } else {
                    CHECK(at >= 16 || at == 6);         /* of the header only the kind may be another that fits */
                    tn_wire_free(&w);
                }
                tn_arena_free(&arena);
            }
        }
        tn_buf_free(&p.b);
    }
    CHECK(refused > 1000);
}

static void check_refused(int kind, size_t descriptors, const char *json, tn_status expected,
                          const char *says)
{
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    tn_wire w;
    tn_buf b = { 0 };
    size_t n = strlen(json);
    const uint8_t header[16] = { 'T', 'N', 'S', 'H', 1, 0, (uint8_t)kind, 0, (uint8_t)(n & 0xff),
                                 (uint8_t)(n >> 8), 0, 0, (uint8_t)descriptors };
    tn_buf_put(&b, header, sizeof header);
    tn_buf_put(&b, json, n);
    tn_status status = read_back(&b, descriptors, &arena, &w, &err);
    if (status != expected || (status && !strstr(line_of(&err), says)))
        fail_msg("%s: status %d, %s", json, (int)status, line_of(&err));
    if (!status)
        tn_wire_free(&w);
    tn_arena_free(&arena);
    tn_buf_free(&b);
}

static void fields_that_are_wrong_are_named(void)
{
    check_refused(TN_WIRE_HELLO, 0, "{\"in_place\":true,\"later\":[1,{}]}", TN_OK, "");
    check_refused(TN_WIRE_HELLO, 0, "{}", TN_ERR_CORRUPT, "\"in_place\" is missing");
    check_refused(TN_WIRE_HELLO, 0, "{\"in_place\":true,\"in_place\":true}", TN_ERR_CORRUPT, "twice");
    check_refused(TN_WIRE_HELLO, 0, "{\"in_place\":1}", TN_ERR_CORRUPT, "");
    check_refused(TN_WIRE_HELLO, 0, "{\"in_place\":true} ", TN_OK, "");
    check_refused(TN_WIRE_HELLO, 0, "{\"in_place\":true}x", TN_ERR_CORRUPT, "");
    check_refused(TN_WIRE_HELLO, 1, "{\"in_place\":true}", TN_ERR_CORRUPT, "expected 0 descriptors");
    check_refused(TN_WIRE_FILE, 0, "{\"in_place\":true,\"name\":\"a\",\"format\":\"npy\",\"bytes\":1}",
                  TN_ERR_CORRUPT, "expected 1 descriptors");
    check_refused(TN_WIRE_FILE, 1, "{\"in_place\":true,\"name\":\"\",\"format\":\"npy\",\"bytes\":1}",
                  TN_ERR_CORRUPT, "text of 1 to 1024");
    check_refused(TN_WIRE_FILE, 1,
                  "{\"in_place\":true,\"name\":\"a\\u0000b\",\"format\":\"npy\",\"bytes\":1}", TN_ERR_CORRUPT,
                  "without a NUL");
    check_refused(TN_WIRE_FILE, 1, "{\"in_place\":true,\"name\":\"a\",\"format\":\"npy\",\"bytes\":0}",
                  TN_ERR_LIMIT, "from 1 to");
    check_refused(TN_WIRE_FILE, 1,
                  "{\"in_place\":true,\"name\":\"a\",\"format\":\"npy\",\"bytes\":9223372036854775808}",
                  TN_ERR_LIMIT, "from 1 to");
    check_refused(TN_WIRE_FILE, 1, "{\"in_place\":true,\"name\":\"a\",\"format\":\"npy\",\"bytes\":-1}",
                  TN_ERR_CORRUPT, "");
    check_refused(TN_WIRE_END, 0, "{\"items\":1025,\"withheld\":0}", TN_ERR_LIMIT, "from 0 to 1024");
    check_refused(9, 0, "{}", TN_ERR_CORRUPT, "kind 1 to 6 but found 9");
    check_refused(0, 0, "{}", TN_ERR_CORRUPT, "kind 1 to 6 but found 0");
}

#define SHAPE "\"name\":\"w\",\"shape\":{\"dimensions\":[2]},\"dtype\":{\"base_type\":\"FLOAT32\"}"
#define HANDLE(type, size) ",\"buffer_handle\":{\"type\":\"" type "\",\"handle\":0,\"size_bytes\":" size ",\"permissions\":\"read_only\"}"

static void handles_that_cannot_be_are_refused(void)
{
    check_refused(TN_WIRE_TENSOR, 1, "{\"offset\":0,\"tensor\":{" SHAPE HANDLE("memfd", "8") "}}", TN_OK, "");
    check_refused(TN_WIRE_TENSOR, 0, "{\"offset\":0,\"tensor\":{" SHAPE HANDLE("memfd", "8") "}}",
                  TN_ERR_CORRUPT, "expected 1 descriptors");
    check_refused(TN_WIRE_TENSOR, 1, "{\"offset\":0,\"tensor\":{" SHAPE "}}", TN_ERR_UNSUPPORTED,
                  "expected a buffer_handle");
    check_refused(TN_WIRE_TENSOR, 1, "{\"offset\":0,\"tensor\":{" SHAPE HANDLE("metal_shared", "8") "}}",
                  TN_ERR_UNSUPPORTED, "buffer_handle");
    check_refused(TN_WIRE_TENSOR, 1, "{\"offset\":0,\"tensor\":{" SHAPE HANDLE("memfd", "0") "}}",
                  TN_ERR_CORRUPT, "a handle of 0 bytes");
    check_refused(TN_WIRE_TENSOR, 1,
                  "{\"offset\":9223372036854775807,\"tensor\":{" SHAPE HANDLE("memfd", "8") "}}",
                  TN_ERR_CORRUPT, "2^63");
    check_refused(TN_WIRE_TENSOR, 1,
                  "{\"offset\":0,\"opaque\":\"00\",\"tensor\":{" SHAPE HANDLE("memfd", "8") "}}",
                  TN_ERR_CORRUPT, "128 hex");
    check_refused(TN_WIRE_TENSOR, 0, "{\"offset\":0,\"tensor\":{" SHAPE HANDLE("cuda_ipc", "8") "}}",
                  TN_ERR_CORRUPT, "without \"opaque\"");
    check_refused(TN_WIRE_TENSOR, 1, "{\"offset\":0,\"tensor\":[]}", TN_ERR_CORRUPT,
                  "expected one descriptor");
    check_refused(TN_WIRE_TENSOR, 1, "{\"offset\":0,\"tensor\":{\"shape\":[2]" HANDLE("memfd", "8") "}}",
                  TN_ERR_CORRUPT, "name of 1 to");
}

/* ---- what does not fit ---- */

static void a_description_that_is_too_long_is_not_sent(void)
{
    tn_descriptor d = plain;
    tn_wire w = { .kind = TN_WIRE_TENSOR, .tensor = &d };
    tn_error err = { .text = "" };
    tn_buf out = { 0 };
    char *json = malloc(70000);
    assert_non_null(json);
    strcpy(json, "{\"k\":\"");
    memset(json + 6, 'x', 66000);
    strcpy(json + 66006, "\"}");
    d.metadata = json;
    CHECK(tn_wire_encode(&w, &out, &err) == TN_ERR_LIMIT && strstr(line_of(&err), "expected at most 65520"));
    CHECK(out.size == 0);
    json[64000] = '"';
    json[64001] = '}';
    json[64002] = '\0';
    CHECK(tn_wire_encode(&w, &out, &err) == TN_OK && out.size <= TN_WIRE_MAX);
    free(json);
    tn_buf_free(&out);
}

static void a_packet_that_is_too_long_is_not_read(void)
{
    tn_arena arena = { 0 };
    tn_error err = { .text = "" };
    tn_wire w;
    tn_buf b = { 0 };
    tn_buf_puts(&b, "TNSH\1");
    tn_buf_fill(&b, 0, TN_WIRE_MAX);
    CHECK(read_back(&b, 0, &arena, &w, &err) == TN_ERR_LIMIT && err.text[0]);
    tn_buf_free(&b);
}

/* ---- tensors ---- */

static tn_status tensor_of(const tn_descriptor *d, uint64_t bytes, tn_error *err)
{
    static const uint8_t memory[4096];
    tn_arena arena = { 0 };
    tn_tensor t;
    tn_status status = tn_wire_tensor(d, memory, bytes, &arena, &t, err);
    if (!status) {
        const uint8_t *data = t.parts[0].data;
        uint64_t n = t.parts[0].nbytes;
        CHECK(data >= memory && (uint64_t)(data - memory) <= bytes && n <= 4096);
    }
    tn_arena_free(&arena);
    return status;
}

static void a_tensor_lies_inside_its_buffer_or_is_none(void)
{
    tn_error err = { .text = "" };
    tn_descriptor d = plain;
    const tn_wia_product apart[] = { { .factor = 100 }, { .factor = 1 } },
    back[] = { { .factor = -4 }, { .factor = 1 } };
    CHECK(tensor_of(&d, 4096, &err) == TN_OK);
    CHECK(tensor_of(&d, 112, &err) == TN_OK);
    CHECK(tensor_of(&d, 111, &err) == TN_ERR_CORRUPT &&
          strstr(line_of(&err), "48 bytes from byte 64 on but the buffer has 111"));
    CHECK(tensor_of(&d, 63, &err) == TN_ERR_CORRUPT);
    d.has_total = false;
    d.offset_bytes = UINT64_MAX - 63;
    CHECK(tensor_of(&d, 4096, &err) == TN_ERR_CORRUPT);
    d = plain;
    d.strides = apart;
    CHECK(tensor_of(&d, 4096, &err) == TN_ERR_CORRUPT);         /* beyond what it says itself */
    d.total_bytes = 64 + 4 * 204;
    CHECK(tensor_of(&d, 4096, &err) == TN_OK);
    CHECK(tensor_of(&d, 879, &err) == TN_ERR_CORRUPT);
    d.strides = back;
    d.offset_bytes = 64;
    CHECK(tensor_of(&d, 4096, &err) != TN_OK && err.text[0]);
}

static void what_is_no_dense_tensor_is_refused(void)
{
    tn_error err = { .text = "" };
    const tn_wia_extent symbol[] = { { .symbol = "n" }, { .value = 4 } };
    const int64_t physical[] = { 4, 4 };
    const double one = 1;
    tn_descriptor d = plain;
    d.dimensions = symbol;
    d.symbolic = true;
    d.has_total = false;
    CHECK(tensor_of(&d, 4096, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "symbols"));
    d = plain;
    d.byte_order = TN_BIG_ENDIAN;
    CHECK(tensor_of(&d, 4096, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "another machine"));
    d = plain;
    d.dtype = TN_UNKNOWN;
    d.base_type = "FLOAT33";
    CHECK(tensor_of(&d, 4096, &err) != TN_OK);
    d = plain;
    d.dtype = TN_INT8;
    d.base_type = "INT8";
    d.total_bytes = 76;
    d.quantization = (tn_wia_quantization){ .scheme = TN_QUANT_PER_TENSOR_SYMMETRIC, .scales = &one,
                                        .nscales = 1 };
    CHECK(tensor_of(&d, 4096, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "dense"));
    d = plain;
    d.physical_shape = physical;
    d.total_bytes = 128;
    CHECK(tensor_of(&d, 4096, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "padded"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(every_truncation_is_refused),
        TEST(a_flipped_byte_is_refused_or_harmless),
        TEST(fields_that_are_wrong_are_named),
        TEST(handles_that_cannot_be_are_refused),
        TEST(a_description_that_is_too_long_is_not_sent),
        TEST(a_packet_that_is_too_long_is_not_read),
        TEST(a_tensor_lies_inside_its_buffer_or_is_none),
        TEST(what_is_no_dense_tensor_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
