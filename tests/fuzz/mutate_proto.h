/* tests/fuzz/mutate_proto.h - mutations of protobuf messages: fields are deleted, doubled, exchanged and changed,
 * and the lengths of all messages around them are computed again. */
#ifndef TN_FUZZ_MUTATE_PROTO_H
#define TN_FUZZ_MUTATE_PROTO_H

#include "mutate.h"

enum { PROTO_FIELDS = 300, PROTO_DEPTH = 12 };

typedef struct proto_part {
    size_t   at, value_at, begin, end;  /* tag, value or length, bytes after the length, end */
    unsigned wire;
} proto_part;

typedef struct proto_parts {
    proto_part at[PROTO_FIELDS];
    size_t     count;
} proto_parts;

static inline bool scan_varint(const uint8_t *data, size_t *pos, size_t end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *pos < end && shift < 64; shift += 7) {
        uint8_t byte = data[(*pos)++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The fields between `pos` and `end`; false: this is no message, or has very many of them. */
static inline bool scan_proto(const uint8_t *data, size_t pos, size_t end, proto_parts *all)
{
    all->count = 0;
    while (pos < end) {
        uint64_t tag, value = 0;
        proto_part p = { .at = pos };
        if (all->count == PROTO_FIELDS || !scan_varint(data, &pos, end, &tag) || tag < 8)
            return false;
        p.wire = tag & 7;
        p.value_at = pos;
        if (p.wire == 1 || p.wire == 5)
            value = p.wire == 1 ? 8 : 4;
        else if ((p.wire != 0 && p.wire != 2) || !scan_varint(data, &pos, end, &value))
            return false;
        p.begin = pos;
        if (p.wire && value > end - pos)
            return false;
        pos += p.wire ? (size_t)value : 0;
        p.end = pos;
        all->at[all->count++] = p;
    }
    return true;
}

static inline size_t put_proto_varint(uint8_t out[10], uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

/* Changes one field of those; all of it may move. */
static inline void mutate_field(mutant *m, const proto_parts *all, size_t i)
{
    static const uint64_t odd[] = { 0, 1, 2, 3, 4, 7, 8, 9, 10, 14, 16, 21, 22, 64, 127, 128, 255, 256, 65535, 65536,
                                    INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 3 };
    const proto_part p = all->at[i], q = all->at[mutant_pick(m, all->count)];
    uint8_t number[10];
    switch (mutant_pick(m, 6)) {
    case 0:
        replace_range(m, p.at, p.end - p.at, NULL, 0);
        break;
    case 1:
        replace_range(m, p.at, 0, m->data + q.at, q.end - q.at);
        break;
    case 2:                     /* another tag */
        replace_range(m, p.at, p.value_at - p.at, number,
                      put_proto_varint(number, (1 + mutant_pick(m, 26)) << 3 | (p.wire & 7)));
        break;
    default:
        if (p.wire == 0) {
            uint64_t value = odd[mutant_pick(m, sizeof odd / sizeof *odd)];
            replace_range(m, p.value_at, p.end - p.value_at, number, put_proto_varint(number, value));
        } else if (p.wire == 2) {
            size_t before = m->size;
            mutate_range(m, p.begin, p.end - p.begin);
            uint64_t length = p.end - p.begin + m->size - before;
            replace_range(m, p.value_at, p.begin - p.value_at, number, put_proto_varint(number, length));
        } else {
            mutate_in_place(m, p.begin, p.end - p.begin);
        }
    }
}

/* Goes down to a field at random, changes it, and repairs the lengths on the way back. */
static inline size_t mutate_proto(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static proto_parts all, inner;
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    proto_part path[PROTO_DEPTH];
    size_t depth = 0, chosen;
    if (mutant_pick(&m, 8) == 0 || !scan_proto(data, 0, size, &all) || !all.count)
        return LLVMFuzzerMutate(data, size, max_size);
    for (;;) {
        chosen = mutant_pick(&m, all.count);
        const proto_part p = all.at[chosen];
        if (depth == PROTO_DEPTH || p.wire != 2 || p.begin == p.end || mutant_pick(&m, 4) == 0 ||
            !scan_proto(m.data, p.begin, p.end, &inner))
            break;
        path[depth++] = p;
        all = inner;
    }
    mutate_field(&m, &all, chosen);
    for (size_t before = size; depth-- > 0;) {
        uint8_t number[10];
        const proto_part p = path[depth];
        uint64_t length = p.end - p.begin + m.size - before;
        replace_range(&m, p.value_at, p.begin - p.value_at, number, put_proto_varint(number, length));
    }
    return m.size;
}

#endif
