/* CBOR: skipping and reading agree, and what is written as JSON comes back as the same bytes. */
#include "mutate.h"
#include "walk_cbor.h"

#include "bytes/transcode.h"

static void check_readers_agree(const uint8_t *data, size_t n, tn_arena *arena)
{
    tn_cbor skipped, walked;
    tn_cbor_init(&skipped, data, n, arena);
    tn_cbor_skip(&skipped);
    tn_cbor_done(&skipped);
    tn_cbor_init(&walked, data, n, arena);
    walk_cbor(&walked);
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
        const char *kept = tn_cbor_keep(&c, key);
        REQUIRE(kept ? strlen(kept) == key.len : c.status != TN_OK);
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

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    if (mutant_pick(&m, 3) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    mutate_cbor(&m, 0, size);
    return m.size;
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
