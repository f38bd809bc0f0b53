/* tests/support/walk_cbor.h - an item read through the getters, and what must be
 * true whatever it is.  For unit tests and fuzz targets. */
#ifndef TN_TESTS_WALK_CBOR_H
#define TN_TESTS_WALK_CBOR_H

#include "require.h"

#include "bytes/cbor.h"

/* The integer getters at one integer: each on a copy of the reader, since each may refuse it. */
static inline void walk_cbor_integer(tn_cbor *c)
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

/* The depth of recursion is the reader's. */
static inline void walk_cbor(tn_cbor *c)
{
    tn_text text;
    switch (tn_cbor_peek(c)) {
    case TN_CBOR_UINT:
    case TN_CBOR_NEGATIVE: walk_cbor_integer(c); break;
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
            walk_cbor(c);
        break;
    case TN_CBOR_MAP:
        tn_cbor_map(c);
        while (tn_cbor_item(c)) {
            walk_cbor(c);
            walk_cbor(c);
        }
        break;
    default:
        REQUIRE(tn_cbor_raw(c).len == 0 && c->status);
        break;
    }
}

#endif
