/* JSON: skipping and reading agree, and a text becomes CBOR and comes back. */
#include "mutate.h"
#include "scarce.h"
#include "walk_json.h"

#include "bytes/transcode.h"

static void check_readers_agree(const char *text, size_t n, tn_arena *arena)
{
    tn_json skipped, walked;
    tn_json_init(&skipped, text, n, arena);
    tn_json_skip(&skipped);
    tn_json_done(&skipped);
    tn_json_init(&walked, text, n, arena);
    walk_json(&walked);
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

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_text(data, size, max_size, seed);
}

typedef struct text {
    const char *ptr;
    size_t      size;
} text;

static tn_status read_scarcely(const void *context, tn_error *err)
{
    const text *t = context;
    tn_arena arena = { 0 };
    tn_buf cbor = { 0 }, json = { 0 };
    tn_json j;
    tn_json_init(&j, t->ptr, t->size, &arena);
    tn_json_to_cbor(&j, &cbor);
    bool back = !j.status && !cbor.bad && tn_cbor_to_json(cbor.data, cbor.size, &json);
    tn_status status = cbor.bad || json.bad ? tn_fail_nomem(err) : j.status;
    if (status && !cbor.bad && !json.bad)
        tn_json_fail(&j, 0, err);
    REQUIRE(status || back || scarce_failed());
    tn_buf_free(&cbor);
    tn_buf_free(&json);
    tn_arena_free(&arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_arena arena = { 0 };
    check_readers_agree((const char *)data, size, &arena);
    scarce_check(read_scarcely, &(text){ (const char *)data, size }, scarce_choice(data, size));
    check_transcoding((const char *)data, size, &arena);
    tn_arena_free(&arena);
    return 0;
}
