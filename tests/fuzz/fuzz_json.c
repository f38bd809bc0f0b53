/* JSON: skipping and reading agree, and a text becomes CBOR and comes back. */
#include "bytes/transcode.h"

#define REQUIRE(property) do { if (!(property)) __builtin_trap(); } while (0)

/* Every number getter at one number: each on a copy of the reader, since each may refuse it. */
static void touch_number(tn_json *j)
{
    tn_json u = *j, i = *j, f = *j;
    uint64_t as_u64 = tn_json_u64(&u);
    int64_t as_i64 = tn_json_i64(&i);
    double as_f64 = tn_json_f64(&f);
    tn_text text = tn_json_number(j);
    REQUIRE(!j->status == (text.len > 0));
    REQUIRE(u.status || u.pos == j->pos);
    REQUIRE(i.status || i.pos == j->pos);
    REQUIRE(f.status || f.pos == j->pos);
    REQUIRE(u.status || i.status || (as_i64 >= 0 && (uint64_t)as_i64 == as_u64));
    REQUIRE(u.status || f.status || as_f64 == (double)as_u64);
    REQUIRE(!f.status || f.status == TN_ERR_LIMIT || j->status);
}

static void walk(tn_json *j)
{
    tn_text text;
    switch (tn_json_peek(j)) {
    case TN_JSON_OBJECT:
        tn_json_object(j);
        while (tn_json_key(j, &text)) {
            REQUIRE(tn_utf8_valid(text.ptr, text.len) == text.len);
            walk(j);
        }
        break;
    case TN_JSON_ARRAY:
        tn_json_array(j);
        while (tn_json_item(j))
            walk(j);
        break;
    case TN_JSON_STRING:
        text = tn_json_string(j);
        REQUIRE(tn_utf8_valid(text.ptr, text.len) == text.len);
        break;
    case TN_JSON_NUMBER: touch_number(j); break;
    case TN_JSON_NULL:   tn_json_null(j); break;
    case TN_JSON_TRUE:
    case TN_JSON_FALSE:  tn_json_bool(j); break;
    default:             REQUIRE(tn_json_raw(j).len == 0 && j->status); break;
    }
}

static void check_readers_agree(const char *text, size_t n, tn_arena *arena)
{
    tn_json skipped, walked;
    tn_json_init(&skipped, text, n, arena);
    tn_json_skip(&skipped);
    tn_json_done(&skipped);
    tn_json_init(&walked, text, n, arena);
    walk(&walked);
    tn_json_done(&walked);
    REQUIRE(skipped.status == walked.status && skipped.pos == walked.pos && skipped.at == walked.at);
    tn_error err;
    REQUIRE(!skipped.status || (tn_json_fail(&skipped, 0, &err) == skipped.status && err.offset <= n));
}

/* JSON -> CBOR -> JSON -> CBOR: both CBORs are the same. */
static void check_transcoding(const char *text, size_t n, tn_arena *arena)
{
    tn_buf cbor = { 0 }, json = { 0 }, again = { 0 };
    tn_json j;
    tn_json_init(&j, text, n, arena);
    tn_json_to_cbor(&j, &cbor);
    if (!j.status) {
        REQUIRE(tn_cbor_to_json(cbor.data, cbor.size, &json));
        tn_json_init(&j, (const char *)json.data, json.size, arena);
        tn_json_to_cbor(&j, &again);
        REQUIRE(tn_json_done(&j));
        REQUIRE(again.size == cbor.size && memcmp(again.data, cbor.data, cbor.size) == 0);
    }
    tn_buf_free(&cbor);
    tn_buf_free(&json);
    tn_buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_arena arena = { 0 };
    check_readers_agree((const char *)data, size, &arena);
    check_transcoding((const char *)data, size, &arena);
    tn_arena_free(&arena);
    return 0;
}
