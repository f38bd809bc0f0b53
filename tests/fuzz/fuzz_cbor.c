/* CBOR: skipping and reading agree, and what is written as JSON comes back as the same bytes. */
#include "bytes/transcode.h"

#define REQUIRE(property) do { if (!(property)) __builtin_trap(); } while (0)

/* The integer getters at one integer: each on a copy of the reader, since each may refuse it. */
static void touch_integer(tn_cbor *c)
{
    tn_cbor u = *c, i = *c;
    uint64_t as_u64 = tn_cbor_u64(&u);
    int64_t as_i64 = tn_cbor_i64(&i);
    tn_cbor_skip(c);
    REQUIRE(u.status || u.pos == c->pos);
    REQUIRE(i.status || i.pos == c->pos);
    REQUIRE(u.status || i.status || (as_i64 >= 0 && (uint64_t)as_i64 == as_u64));
    REQUIRE(!u.status == !i.status || as_u64 > INT64_MAX || as_i64 < 0 || i.status == TN_ERR_LIMIT);
}

static void walk(tn_cbor *c)
{
    tn_text text;
    switch (tn_cbor_peek(c)) {
    case TN_CBOR_UINT:
    case TN_CBOR_NEGATIVE: touch_integer(c); break;
    case TN_CBOR_BYTES:    tn_cbor_bytes(c); break;
    case TN_CBOR_FLOAT:    tn_cbor_f64(c); break;
    case TN_CBOR_NULL:     tn_cbor_null(c); break;
    case TN_CBOR_FALSE:
    case TN_CBOR_TRUE:     tn_cbor_bool(c); break;
    case TN_CBOR_OTHER:    tn_cbor_raw(c); break;
    case TN_CBOR_TEXT:
        text = tn_cbor_text(c);
        REQUIRE(tn_utf8_valid(text.ptr, text.len) == text.len);
        break;
    case TN_CBOR_ARRAY:
        tn_cbor_array(c);
        while (tn_cbor_item(c))
            walk(c);
        break;
    case TN_CBOR_MAP:
        tn_cbor_map(c);
        while (tn_cbor_entry(c)) {
            walk(c);
            walk(c);
        }
        break;
    default:
        REQUIRE(tn_cbor_raw(c).len == 0 && c->status);
        break;
    }
}

static void check_readers_agree(const uint8_t *data, size_t n, tn_arena *arena)
{
    tn_cbor skipped, walked;
    tn_cbor_init(&skipped, data, n, arena);
    tn_cbor_skip(&skipped);
    tn_cbor_done(&skipped);
    tn_cbor_init(&walked, data, n, arena);
    walk(&walked);
    tn_cbor_done(&walked);
    REQUIRE(skipped.status == walked.status);
    tn_error err;
    REQUIRE(!skipped.status || (tn_cbor_fail(&skipped, 0, &err) == skipped.status && err.offset <= n));
}

/* A map read by its keys, as the containers do: must end, whatever the keys are. */
static void check_keys(const uint8_t *data, size_t n, tn_arena *arena)
{
    tn_cbor c;
    tn_text key;
    tn_cbor_init(&c, data, n, arena);
    tn_cbor_map(&c);
    while (tn_cbor_key(&c, &key)) {
        REQUIRE(tn_utf8_valid(key.ptr, key.len) == key.len);
        tn_cbor_skip(&c);
    }
}

/* CBOR -> JSON -> CBOR: the same bytes, when JSON can hold them. */
static void check_transcoding(const uint8_t *data, size_t n, tn_arena *arena)
{
    tn_buf json = { 0 }, again = { 0 };
    if (tn_cbor_to_json(data, n, &json)) {
        tn_json j;
        tn_json_init(&j, (const char *)json.data, json.size, arena);
        tn_json_to_cbor(&j, &again);
        REQUIRE(tn_json_done(&j));
        REQUIRE(again.size == n && memcmp(again.data, data, n) == 0);
    } else {
        REQUIRE(json.size == 0);
    }
    tn_buf_free(&json);
    tn_buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_arena arena = { 0 };
    check_readers_agree(data, size, &arena);
    check_keys(data, size, &arena);
    check_transcoding(data, size, &arena);
    tn_arena_free(&arena);
    return 0;
}
