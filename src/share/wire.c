/* share/wire.c - packets, in and out. */
#include "share/wire.h"
#include "base/cursor.h"
#include "base/error.h"
#include "bytes/json.h"

#include <stdlib.h>
#include <string.h>

/* The header, little-endian:
 *      0  4  magic
 *      4  2  version
 *      6  2  kind
 *      8  4  bytes of JSON that follow: all that is left of the packet
 *     12  4  descriptors that go with it */
#define MAGIC        "TNSH"
#define HEADER_BYTES 16u

#define MAX_BYTES ((uint64_t)INT64_MAX)

/* ---- out ---- */

size_t tn_wire_descriptors(const tn_wire *p)
{
    return p->kind == TN_WIRE_FILE ||
           (p->kind == TN_WIRE_TENSOR && p->tensor->buffer_handle.type != TN_HANDLE_CUDA_IPC);
}

static void put_text(tn_buf *b, const char *key, const char *text)
{
    tn_buf_printf(b, "\"%s\":", key);
    tn_json_put_z(b, text);
}

static void put_file(const tn_wire *p, tn_buf *b)
{
    put_text(b, "name", p->name);
    tn_buf_putc(b, ',');
    put_text(b, "format", p->format);
    tn_buf_printf(b, ",\"bytes\":%llu,\"in_place\":%s", (unsigned long long)p->bytes,
                  p->in_place ? "true" : "false");
}

static tn_status put_tensor(const tn_wire *p, tn_buf *b, tn_error *err)
{
    char *json;
    size_t n;
    TN_TRY(tn_descriptors_write(p->tensor, 1, false, &json, &n, err));
    tn_buf_printf(b, "\"offset\":%llu,", (unsigned long long)p->offset);
    if (p->tensor->buffer_handle.type == TN_HANDLE_CUDA_IPC) {
        tn_buf_puts(b, "\"opaque\":\"");
        for (size_t i = 0; i < sizeof p->opaque; i++)
            tn_buf_printf(b, "%02x", p->opaque[i]);
        tn_buf_puts(b, "\",");
    }
    tn_buf_puts(b, "\"tensor\":");
    tn_buf_put(b, json, n);
    free(json);
    return TN_OK;
}

static tn_status put_payload(const tn_wire *p, tn_buf *b, tn_error *err)
{
    tn_status status = TN_OK;
    tn_buf_putc(b, '{');
    switch (p->kind) {
    case TN_WIRE_HELLO:   tn_buf_printf(b, "\"in_place\":%s", p->in_place ? "true" : "false"); break;
    case TN_WIRE_FILE:    put_file(p, b); break;
    case TN_WIRE_TENSOR:  status = put_tensor(p, b, err); break;
    case TN_WIRE_END:     tn_buf_printf(b, "\"items\":%llu,\"withheld\":%llu", (unsigned long long)p->items,
                                        (unsigned long long)p->withheld); break;
    case TN_WIRE_REFUSED: put_text(b, "why", p->why); break;
    case TN_WIRE_NEXT:    break;
    }
    tn_buf_putc(b, '}');
    return status;
}

tn_status tn_wire_encode(const tn_wire *p, tn_buf *out, tn_error *err)
{
    tn_buf json = { 0 };
    tn_status status = put_payload(p, &json, err);
    if (!status && !json.bad && json.size > TN_WIRE_MAX - HEADER_BYTES)
        status = tn_fail(err, TN_ERR_LIMIT, "its description takes %zu bytes: expected at most %u", json.size,
                         TN_WIRE_MAX - HEADER_BYTES);
    if (!status) {
        tn_buf_puts(out, MAGIC);
        tn_buf_put_le(out, TN_WIRE_VERSION, 2);
        tn_buf_put_le(out, p->kind, 2);
        tn_buf_put_le(out, json.size, 4);
        tn_buf_put_le(out, tn_wire_descriptors(p), 4);
        tn_buf_put(out, json.data, json.size);
        status = json.bad || out->bad ? tn_fail_nomem(err) : TN_OK;
    }
    tn_buf_free(&json);
    return status;
}

/* ---- in: the header ---- */

static tn_status take_header(const uint8_t *bytes, size_t n, size_t descriptors, tn_wire *p, tn_error *err)
{
    tn_cur c = { .base = bytes, .end = n };
    const uint8_t *magic = tn_cur_take(&c, 4);
    uint32_t version = (uint32_t)tn_cur_le(&c, 2), kind = (uint32_t)tn_cur_le(&c, 2);
    uint32_t length = (uint32_t)tn_cur_le(&c, 4), count = (uint32_t)tn_cur_le(&c, 4);
    if (c.bad)
        return tn_fail_at(err, TN_ERR_TRUNCATED, n, "a packet of %zu bytes: expected a header of %u", n,
                          HEADER_BYTES);
    if (n > TN_WIRE_MAX)
        return tn_fail_at(err, TN_ERR_LIMIT, 0, "a packet of %zu bytes: expected at most %u", n, TN_WIRE_MAX);
    if (memcmp(magic, MAGIC, 4) != 0)
        return tn_fail_at(err, TN_ERR_CORRUPT, 0,
                          "expected a packet that begins with \"" MAGIC "\" but found %s",
                          tn_quote((const char *)magic, 4).text);
    if (version != TN_WIRE_VERSION)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 4, "expected version %d of the protocol but found %u",
                          TN_WIRE_VERSION, version);
    if (kind < TN_WIRE_HELLO || kind > TN_WIRE_NEXT)
        return tn_fail_at(err, TN_ERR_CORRUPT, 6, "expected a packet of kind %d to %d but found %u",
                          TN_WIRE_HELLO, TN_WIRE_NEXT, kind);
    if (length != tn_cur_left(&c))
        return tn_fail_at(err, length > tn_cur_left(&c) ? TN_ERR_TRUNCATED : TN_ERR_CORRUPT, 8,
                          "expected %u bytes behind the header but found %zu", length, tn_cur_left(&c));
    if (count != descriptors)
        return tn_fail_at(err, TN_ERR_CORRUPT, 12, "expected %u descriptors with the packet but found %zu",
                          count, descriptors);
    p->kind = (tn_wire_kind)kind;
    return TN_OK;
}

/* ---- in: the payload ---- */

typedef struct reader {
    tn_json   j;
    tn_wire  *p;
    tn_text   tensor;           /* its JSON */
    size_t    tensor_at;
    unsigned  seen;             /* one bit per row of fields[] */
} reader;

static const char *take_text(reader *r, size_t least, size_t most)
{
    tn_text t = tn_json_string(&r->j);
    if (t.len < least || t.len > most || tn_text_has_nul(t))
        tn_json_reject(&r->j, TN_ERR_CORRUPT, "expected text of %zu to %zu bytes without a NUL but found %zu",
                       least, most, t.len);
    return tn_json_keep(&r->j, t);
}

static uint64_t take_number(reader *r, uint64_t least, uint64_t most)
{
    uint64_t value = tn_json_u64(&r->j);
    if (!r->j.status && (value < least || value > most))
        tn_json_reject(&r->j, TN_ERR_LIMIT, "expected a number from %llu to %llu but found %llu",
                       (unsigned long long)least, (unsigned long long)most, (unsigned long long)value);
    return value;
}

static void take_opaque(reader *r)
{
    tn_text t = tn_json_string(&r->j);
    bool lower = true;
    for (size_t i = 0; i < t.len; i++)
        lower = lower && tn_lower(t.ptr[i]) == t.ptr[i];
    if (!lower || !tn_hex_read(t, r->p->opaque, sizeof r->p->opaque))
        tn_json_reject(&r->j, TN_ERR_CORRUPT, "expected %zu hexadecimal digits in lower case",
                       2 * sizeof r->p->opaque);
}

static void take_in_place(reader *r) { r->p->in_place = tn_json_bool(&r->j); }
static void take_name(reader *r)     { r->p->name = take_text(r, 1, TN_WIRE_MAX_NAME); }
static void take_format(reader *r)   { r->p->format = take_text(r, 1, 64); }
static void take_bytes(reader *r)    { r->p->bytes = take_number(r, 1, MAX_BYTES); }
static void take_offset(reader *r)   { r->p->offset = take_number(r, 0, MAX_BYTES); }
static void take_items(reader *r)    { r->p->items = take_number(r, 0, TN_WIRE_MAX_ITEMS); }
static void take_withheld(reader *r) { r->p->withheld = take_number(r, 0, TN_WIRE_MAX_ITEMS); }
static void take_why(reader *r)      { r->p->why = take_text(r, 0, 400); }

static void take_tensor(reader *r)
{
    tn_json_peek(&r->j);
    r->tensor_at = r->j.pos;
    r->tensor = tn_json_raw(&r->j);
}

#define IN(kind) (1u << (kind))
static const struct {
    const char *key;
    unsigned    kinds;          /* that must have it; others skip it */
    void      (*take)(reader *r);
} fields[] = {
    { "in_place", IN(TN_WIRE_HELLO) | IN(TN_WIRE_FILE), take_in_place },
    { "name",     IN(TN_WIRE_FILE),    take_name },
    { "format",   IN(TN_WIRE_FILE),    take_format },
    { "bytes",    IN(TN_WIRE_FILE),    take_bytes },
    { "offset",   IN(TN_WIRE_TENSOR),  take_offset },
    { "tensor",   IN(TN_WIRE_TENSOR),  take_tensor },
    { "items",    IN(TN_WIRE_END),     take_items },
    { "withheld", IN(TN_WIRE_END),     take_withheld },
    { "why",      IN(TN_WIRE_REFUSED), take_why },
    { "opaque",   0,                   take_opaque },   /* required for cuda_ipc: see check_handle() */
};
enum { FIELDS = sizeof fields / sizeof *fields, OPAQUE = FIELDS - 1 };

static void take_field(reader *r, tn_text key)
{
    unsigned here = IN(r->p->kind);
    for (size_t i = 0; i < FIELDS; i++) {
        if (!tn_text_is(key, fields[i].key) ||
            !(fields[i].kinds & here || (i == OPAQUE && r->p->kind == TN_WIRE_TENSOR)))
            continue;
        if (r->seen & 1u << i)
            tn_json_reject(&r->j, TN_ERR_CORRUPT, "\"%s\" is there twice", fields[i].key);
        else
            fields[i].take(r);
        r->seen |= 1u << i;
        return;
    }
    tn_json_skip(&r->j);        /* of a later version */
}

static tn_status take_payload(reader *r, tn_error *err)
{
    tn_text key;
    tn_json_object(&r->j);
    while (tn_json_key(&r->j, &key))
        take_field(r, key);
    if (tn_json_done(&r->j))
        for (size_t i = 0; i < FIELDS && !r->j.status; i++)
            if (fields[i].kinds & IN(r->p->kind) && !(r->seen & 1u << i))
                tn_json_reject(&r->j, TN_ERR_CORRUPT, "\"%s\" is missing", fields[i].key);
    return r->j.status ? tn_json_fail(&r->j, HEADER_BYTES, err) : TN_OK;
}

/* Checks the handle against the descriptors that came with the packet. */
static tn_status check_handle(const reader *r, size_t descriptors, tn_error *err)
{
    const tn_buffer_handle *h = &r->p->tensor->buffer_handle;
    if (h->type != TN_HANDLE_MEMFD && h->type != TN_HANDLE_DMA_BUF && h->type != TN_HANDLE_CUDA_IPC)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, HEADER_BYTES,
                          "expected a buffer_handle of type memfd, dma_buf_fd or cuda_ipc");
    if (h->size_bytes < 1 || (uint64_t)h->size_bytes > MAX_BYTES - r->p->offset)
        return tn_fail_at(err, TN_ERR_CORRUPT, HEADER_BYTES,
                          "a handle of %lld bytes at byte %llu: expected at least 1, and an end below 2^63",
                          (long long)h->size_bytes, (unsigned long long)r->p->offset);
    bool opaque = r->seen & 1u << OPAQUE;
    if (opaque != (h->type == TN_HANDLE_CUDA_IPC))
        return tn_fail_at(err, TN_ERR_CORRUPT, HEADER_BYTES,
                          opaque ? "\"opaque\" belongs to cuda_ipc handles alone"
                          : "a cuda_ipc handle without \"opaque\"");
    if (descriptors != tn_wire_descriptors(r->p))
        return tn_fail_at(err, TN_ERR_CORRUPT, 12, "expected %zu descriptors for this handle but found %zu",
                          tn_wire_descriptors(r->p), descriptors);
    return TN_OK;
}

static tn_status parse_tensor(reader *r, size_t descriptors, tn_error *err)
{
    tn_wire *p = r->p;
    uint64_t at = HEADER_BYTES + r->tensor_at;
    if (r->tensor.len == 0 || r->tensor.ptr[0] != '{')
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "\"tensor\": expected one descriptor");
    tn_status status = tn_descriptors_parse(r->tensor.ptr, r->tensor.len, &p->set, err);
    if (status) {
        if (err && err->offset != TN_NO_OFFSET)
            err->offset += at;
        return status;
    }
    p->tensor = tn_descriptors_at(p->set, 0);
    size_t n = p->tensor->name ? strlen(p->tensor->name) : 0;
    if (n < 1 || n > TN_WIRE_MAX_NAME)
        return tn_fail_at(err, TN_ERR_CORRUPT, at,
                          "expected a tensor with a name of 1 to %u bytes but found %zu", TN_WIRE_MAX_NAME,
                          n);
    return check_handle(r, descriptors, err);
}

tn_status tn_wire_decode(const uint8_t *bytes, size_t n, size_t descriptors, tn_arena *arena, tn_wire *packet,
                         tn_error *err)
{
    tn_wire own = { 0 };
    reader r = { .p = &own };
    TN_TRY(take_header(bytes, n, descriptors, &own, err));
    tn_json_init(&r.j, (const char *)bytes + HEADER_BYTES, n - HEADER_BYTES, arena);
    tn_status status = take_payload(&r, err);
    if (!status && own.kind == TN_WIRE_TENSOR)
        status = parse_tensor(&r, descriptors, err);
    else if (!status && descriptors != tn_wire_descriptors(&own))
        status = tn_fail_at(err, TN_ERR_CORRUPT, 12,
                            "expected %zu descriptors with a packet of kind %d but found %zu",
                            tn_wire_descriptors(&own), (int)own.kind, descriptors);
    if (status) {
        tn_wire_free(&own);
        return status;
    }
    *packet = own;
    return TN_OK;
}

void tn_wire_free(tn_wire *p)
{
    tn_descriptors_free(p->set);
    p->set = NULL;
    p->tensor = NULL;
}
