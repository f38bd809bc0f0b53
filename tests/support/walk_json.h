/* tests/support/walk_json.h - a value read through the getters, and what must be
 * true whatever it is.  For unit tests and fuzz targets. */
#ifndef TN_TESTS_WALK_JSON_H
#define TN_TESTS_WALK_JSON_H

#include "require.h"

#include "bytes/json.h"

/* Every number getter at one number: each on a copy of the reader, since each may refuse it. */
static inline void walk_json_number(tn_json *j)
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

/* The depth of recursion is the reader's. */
static inline void walk_json(tn_json *j)
{
    tn_text text;
    switch (tn_json_peek(j)) {
    case TN_JSON_OBJECT:
        tn_json_object(j);
        while (tn_json_key(j, &text)) {
            REQUIRE(tn_utf8_valid(text.ptr, text.len) == text.len);
            walk_json(j);
        }
        break;
    case TN_JSON_ARRAY:
        tn_json_array(j);
        while (tn_json_item(j))
            walk_json(j);
        break;
    case TN_JSON_STRING:
        text = tn_json_string(j);
        REQUIRE(tn_utf8_valid(text.ptr, text.len) == text.len);
        break;
    case TN_JSON_NUMBER: walk_json_number(j); break;
    case TN_JSON_NULL:   tn_json_null(j); break;
    case TN_JSON_TRUE:
    case TN_JSON_FALSE:  tn_json_bool(j); break;
    default:             REQUIRE(tn_json_raw(j).len == 0 && j->status); break;
    }
}

#endif
