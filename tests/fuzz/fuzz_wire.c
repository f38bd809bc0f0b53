/* Packets of those who offer and attach: refused with a reason, or written so that
 * they read back the same; a tensor lies inside its buffer or is none. */
#include "mutate.h"
#include <stdlib.h>
#include <string.h>

#include "share/wire.h"

#include "require.h"
#include "scarce.h"

enum { BYTES = 4096 };

static void check_reason(tn_status status, const tn_error *err)
{
    REQUIRE(status == TN_ERR_CORRUPT || status == TN_ERR_LIMIT || status == TN_ERR_TRUNCATED ||
            status == TN_ERR_UNSUPPORTED);
    REQUIRE(err->status == status && err->text[0] && strlen(err->text) < sizeof err->text);
}

static void check_written(const tn_wire *w, size_t descriptors)
{
    tn_arena arena = { 0 };
    tn_buf first = { 0 }, second = { 0 };
    tn_wire again;
    if (tn_wire_encode(w, &first, NULL) == TN_OK) {     /* indented, a descriptor may be too long */
        REQUIRE(first.size <= TN_WIRE_MAX);
        REQUIRE(tn_wire_decode(first.data, first.size, descriptors, &arena, &again, NULL) == TN_OK);
        REQUIRE(tn_wire_encode(&again, &second, NULL) == TN_OK);
        REQUIRE(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        tn_wire_free(&again);
    }
    tn_buf_free(&first);
    tn_buf_free(&second);
    tn_arena_free(&arena);
}

static void check_tensor(const tn_descriptor *d, tn_arena *arena)
{
    static uint8_t memory[BYTES];
    tn_tensor t;
    tn_error err = { .text = "" };
    uint64_t bytes =
        (uint64_t)d->buffer_handle.size_bytes < BYTES ? (uint64_t)d->buffer_handle.size_bytes : BYTES;
    tn_status status = tn_wire_tensor(d, memory, bytes, arena, &t, &err);
    if (status) {
        check_reason(status, &err);
        return;
    }
    const uint8_t *data = t.parts[0].data;
    REQUIRE(data >= memory && data <= memory + bytes);
    REQUIRE(t.parts[0].array.stride || t.parts[0].nbytes <= (uint64_t)(memory + bytes - data));
    REQUIRE(t.rank <= TN_MAX_RANK && t.name[0]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_wire(data, size, max_size, seed);
}

typedef struct packet {
    const uint8_t *bytes;
    size_t         size;
} packet;

static tn_status decode_scarcely(const void *context, tn_error *err)
{
    static uint8_t memory[BYTES];
    const packet *p = context;
    tn_arena arena = { 0 };
    tn_wire w = { .set = NULL };
    tn_tensor t;
    tn_buf again = { 0 };
    tn_status status = tn_wire_decode(p->bytes, p->size, p->size > 12 ? p->bytes[12] : 0, &arena, &w, err);
    if (!status && w.tensor)
        status = tn_wire_tensor(w.tensor, memory, sizeof memory, &arena, &t, err);
    if (!status)
        status = tn_wire_encode(&w, &again, err);
    tn_wire_free(&w);
    tn_buf_free(&again);
    tn_arena_free(&arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scarce_check(decode_scarcely, &(packet){ data, size }, scarce_choice(data, size));
    for (size_t descriptors = 0; descriptors < 2; descriptors++) {
        tn_arena arena = { 0 };
        tn_wire w;
        tn_error err = { .text = "" };
        tn_status status = tn_wire_decode(data, size, descriptors, &arena, &w, &err);
        if (status) {
            check_reason(status, &err);
        } else {
            REQUIRE(tn_wire_descriptors(&w) == descriptors);
            check_written(&w, descriptors);
            if (w.tensor)
                check_tensor(w.tensor, &arena);
            tn_wire_free(&w);
        }
        tn_arena_free(&arena);
    }
    return 0;
}
