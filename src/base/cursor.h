/* base/cursor.h - reading bytes we do not trust.
 *
 * A failed cursor stays failed and yields zeroes: read a whole record, test
 * `bad` once, and only then use what was read. */
#ifndef TN_BASE_CURSOR_H
#define TN_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_cur {
    const uint8_t *base;
    size_t pos, end;            /* pos <= end, always */
    bool   bad;
} tn_cur;

static inline size_t tn_cur_left(const tn_cur *c) { return c->end - c->pos; }

static inline const uint8_t *tn_cur_take(tn_cur *c, uint64_t n)
{
    if (c->bad || n > tn_cur_left(c)) {     /* subtract, never add: cannot wrap */
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->base + c->pos;
    c->pos += (size_t)n;
    return p;
}

static inline uint8_t tn_cur_u8(tn_cur *c)
{
    const uint8_t *p = tn_cur_take(c, 1);
    return p ? p[0] : 0;
}

/* An unsigned number of n bytes, 8 at most, little-endian. */
static inline uint64_t tn_cur_le(tn_cur *c, unsigned n)
{
    const uint8_t *p = tn_cur_take(c, n);
    uint64_t v = 0;
    for (unsigned i = n; p && i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static inline uint64_t tn_load_u64le(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static inline void tn_store_u64le(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

#endif
