/* bytes/proto.c - protobuf's wire format. */
#include "bytes/proto.h"
#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tn_status tn_proto_reject(tn_proto_input *in, tn_status status, uint64_t at, const char *format, ...)
{
    char text[300];
    va_list args;
    if (in->status)
        return in->status;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return in->status = tn_fail_at(in->err, status, at, "%s", text);
}

/* ---- bytes ---- */

/* Loads the window from `pos` on, which is inside the message.  After a jump little is read: the next thing
 * is likely to be another jump. */
static bool load(const tn_proto *p)
{
    tn_proto_input *in = p->in;
    uint64_t left = tn_source_size(in->source) - p->pos;
    bool goes_on = p->pos == in->at + in->have && in->have;
    size_t most = goes_on ? TN_PROTO_WINDOW : TN_PROTO_GLANCE;
    in->at = p->pos;
    in->have = left < most ? (size_t)left : most;
    tn_status status = tn_source_read(in->source, in->at, in->window, in->have, in->err);
    if (status) {
        in->status = status;
        in->have = 0;
    }
    return !status;
}

/* The next byte; the caller has seen that pos < end. */
static inline bool take_byte(tn_proto *p, uint8_t *byte)
{
    tn_proto_input *in = p->in;
    if ((p->pos < in->at || p->pos - in->at >= in->have) && !load(p))
        return false;
    *byte = in->window[p->pos++ - in->at];
    return true;
}

/* A value of `need` bytes or more ends behind the message.  A file that was cut fails in the outermost
 * message. */
static bool ends_early(const tn_proto *p, uint64_t at, uint64_t need)
{
    tn_proto_reject(p->in, p->is_inner ? TN_ERR_CORRUPT : TN_ERR_TRUNCATED, at,
                    "a field of %s takes %" PRIu64 " more bytes but %" PRIu64 " are left", p->kind->name,
                    need, p->end - p->pos);
    return false;
}

static bool take_varint(tn_proto *p, uint64_t *value)
{
    uint64_t at = p->pos;
    *value = 0;
    for (unsigned i = 0; i < TN_PROTO_VARINT_MAX; i++) {
        uint8_t byte;
        if (p->pos == p->end)
            return ends_early(p, at, 1);
        if (!take_byte(p, &byte))
            return false;
        if (i == TN_PROTO_VARINT_MAX - 1 && byte > 1)
            break;              /* more than 64 bits */
        *value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80)
            return true;
    }
    tn_proto_reject(p->in, TN_ERR_CORRUPT, at, "a number of %s has more than 64 bits", p->kind->name);
    return false;
}

static bool take_fixed(tn_proto *p, unsigned n, uint64_t *value)
{
    *value = 0;
    if (p->end - p->pos < n)
        return ends_early(p, p->pos, n);
    for (unsigned i = 0; i < n; i++) {
        uint8_t byte;
        if (!take_byte(p, &byte))
            return false;
        *value |= (uint64_t)byte << 8 * i;
    }
    return true;
}

/* ---- fields ---- */

tn_proto tn_proto_open(tn_proto_input *in, const tn_proto_kind *kind)
{
    return (tn_proto){ .in = in, .kind = kind, .end = tn_source_size(in->source) };
}

tn_proto tn_proto_enter(const tn_proto *p, const tn_proto_field *f, const tn_proto_kind *kind)
{
    return (tn_proto){ .in = p->in, .kind = kind, .pos = f->begin, .end = f->begin + f->value,
                       .is_inner = true };
}

static bool check_field(tn_proto *p, const tn_proto_field *f)
{
    const tn_proto_rule *rule = f->number < p->kind->count ? &p->kind->rules[f->number] : NULL;
    if (!rule || !rule->name)
        return true;            /* of a later version */
    uint64_t bit = UINT64_C(1) << f->number;
    if (!(rule->wires & 1u << f->wire))
        tn_proto_reject(p->in, TN_ERR_CORRUPT, f->at, "%s of %s has wire type %d, which it cannot have",
                        rule->name, p->kind->name, f->wire);
    else if (rule->once && p->seen & bit)
        tn_proto_reject(p->in, TN_ERR_CORRUPT, f->at, "%s of %s is there twice", rule->name, p->kind->name);
    p->seen |= bit;
    return !p->in->status;
}

static bool take_value(tn_proto *p, tn_proto_field *f)
{
    switch (f->wire) {
    case TN_WIRE_VARINT:  return take_varint(p, &f->value);
    case TN_WIRE_FIXED64: return take_fixed(p, 8, &f->value);
    case TN_WIRE_FIXED32: return take_fixed(p, 4, &f->value);
    case TN_WIRE_LENGTH:  break;
    }
    if (!take_varint(p, &f->value))
        return false;
    if (f->value > p->end - p->pos)
        return ends_early(p, f->at, f->value);
    f->begin = p->pos;
    p->pos += f->value;
    return true;
}

static bool check_tag(const tn_proto *p, uint64_t tag, uint64_t at)
{
    unsigned wire = tag & 7;
    if (wire == 3 || wire == 4)
        tn_proto_reject(p->in, TN_ERR_UNSUPPORTED, at, "%s has a group (wire type %u), which is not read",
                        p->kind->name, wire);
    else if (wire > TN_WIRE_FIXED32)
        tn_proto_reject(p->in, TN_ERR_CORRUPT, at, "expected wire type 0, 1, 2 or 5 in %s but found %u",
                        p->kind->name, wire);
    else if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
        tn_proto_reject(p->in, TN_ERR_CORRUPT, at,
                        "expected a field number from 1 to 2^29 - 1 in %s but found %" PRIu64, p->kind->name,
                        tag >> 3);
    return !p->in->status;
}

bool tn_proto_next(tn_proto *p, tn_proto_field *f)
{
    uint64_t tag;
    if (p->in->status || p->pos == p->end)
        return false;
    *f = (tn_proto_field){ .at = p->pos };
    if (!take_varint(p, &tag) || !check_tag(p, tag, f->at))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->value_at = p->pos;
    f->wire = (tn_wire)(tag & 7);
    return take_value(p, f) && check_field(p, f);
}

bool tn_proto_packed(tn_proto *p, tn_wire wire, uint64_t *value)
{
    if (p->in->status || p->pos == p->end)
        return false;
    if (wire == TN_WIRE_VARINT)
        return take_varint(p, value);
    return take_fixed(p, wire == TN_WIRE_FIXED64 ? 8 : 4, value);
}

/* ---- texts ---- */

/* Copies the bytes of a value, which was found inside its message. */
static bool copy(const tn_proto *p, const tn_proto_field *f, void *to)
{
    tn_proto_input *in = p->in;
    size_t n = (size_t)f->value;
    bool there = f->begin >= in->at && f->begin - in->at <= in->have && n <= in->have - (f->begin - in->at);
    if (there && n)
        memcpy(to, in->window + (f->begin - in->at), n);
    else if (n)
        in->status = tn_source_read(in->source, f->begin, to, n, in->err);
    return !in->status;
}

const char *tn_proto_text(const tn_proto *p, const tn_proto_field *f, const char *what, tn_arena *arena)
{
    tn_proto_input *in = p->in;
    size_t n = (size_t)f->value;
    char *text = f->value < SIZE_MAX ? tn_arena_alloc(arena, n + 1) : NULL;
    if (in->status)
        return NULL;
    if (!text) {
        in->status = tn_fail_nomem(in->err);
        return NULL;
    }
    text[n] = '\0';
    if (!copy(p, f, text))
        return NULL;
    if (tn_utf8_valid(text, n) != n)
        tn_proto_reject(in, TN_ERR_CORRUPT, f->at, "%s %s is not UTF-8", what, tn_quote(text, n).text);
    else if (memchr(text, 0, n))
        tn_proto_reject(in, TN_ERR_CORRUPT, f->at, "%s %s holds a NUL character", what,
                        tn_quote(text, n).text);
    return in->status ? NULL : text;
}

bool tn_proto_is(const tn_proto *p, const tn_proto_field *f, const char *text)
{
    char found[64];
    size_t n = strlen(text);
    return f->value == n && n <= sizeof found && copy(p, f, found) && memcmp(found, text, n) == 0;
}

/* ---- writing ---- */

unsigned tn_proto_varint_size(uint64_t value)
{
    unsigned n = 1;
    for (; value >= 0x80; value >>= 7)
        n++;
    return n;
}

void tn_proto_put_varint(tn_buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        tn_buf_putc(b, (char)(value | 0x80));
    tn_buf_putc(b, (char)value);
}

void tn_proto_put_tag(tn_buf *b, uint32_t number, tn_wire wire)
{
    tn_proto_put_varint(b, (uint64_t)number << 3 | wire);
}

void tn_proto_put_text(tn_buf *b, uint32_t number, const char *text)
{
    size_t n = strlen(text);
    tn_proto_put_tag(b, number, TN_WIRE_LENGTH);
    tn_proto_put_varint(b, n);
    tn_buf_put(b, text, n);
}
