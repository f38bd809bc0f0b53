/* store/meta_value.h - metadata values that have a type: numbers of a certain width, and arrays of them.
 *
 * GGUF gives every value a type.  Inside Tenon metadata is text or CBOR, which says the type so:
 *
 *     3                        the first of u32, i32, u64, i64 that holds the integer
 *     27(["gguf:u16", 3])      any other type of integer
 *     1.5                      of 8 bytes an f64, of 2 or 4 bytes an f32
 *     tags 64 to 87            an array of numbers (RFC 8746)
 *     [...]                    an array of strings, bools or arrays; an empty one is of strings
 *     27(["gguf:bool", []])    an empty array of bools; "gguf:arr": of arrays
 *     "text", h'ff'            a string; bytes that are not UTF-8 */
#ifndef TN_STORE_META_VALUE_H
#define TN_STORE_META_VALUE_H

#include "bytes/cbor.h"

#include <tenon/tensor.h>

typedef enum tn_meta_type {     /* numbers as in GGUF */
    TN_META_U8, TN_META_I8, TN_META_U16, TN_META_I16, TN_META_U32, TN_META_I32, TN_META_F32, TN_META_BOOL,
    TN_META_STRING, TN_META_ARRAY, TN_META_U64, TN_META_I64, TN_META_F64,
    TN_META_TYPES,
    TN_META_NONE = TN_META_TYPES        /* a value that is of none of these: null, a map ... */
} tn_meta_type;

typedef struct tn_meta_type_info {
    const char *name;           /* "u16" */
    uint8_t     bytes;          /* of a number or bool; 0: a string or an array */
    uint8_t     tag;            /* of an array of little-endian numbers; 0: it has none */
} tn_meta_type_info;

/* NULL: no such type. */
const tn_meta_type_info *tn_meta_type_get(uint32_t type);
tn_meta_type tn_meta_type_named(tn_text name);

static inline bool tn_meta_is_float(tn_meta_type t) { return t == TN_META_F32 || t == TN_META_F64; }
bool tn_meta_is_integer(tn_meta_type type);
bool tn_meta_is_signed(tn_meta_type type);

/* ---- writing ---- */

/* A number or a bool: integers as 64 bits with their sign, floats as their own bits. */
void tn_meta_put_number(tn_buf *out, tn_meta_type type, uint64_t bits);

/* Begins an array: its items follow, numbers as their little-endian bytes. */
void tn_meta_put_array(tn_buf *out, tn_meta_type items, uint64_t count);

/* ---- reading ---- */

typedef struct tn_meta_value {
    tn_meta_type type;
    uint64_t     bits;          /* of a number or a bool, as tn_meta_put_number() takes them */
    tn_text      text;          /* a string, or the bytes of an array of numbers */
    tn_meta_type items;         /* of an array; NONE: its items follow and tell, see tn_meta_items() */
    uint64_t     count;         /* of the items, unless they follow */
    bool         big;           /* the numbers of an array are big-endian */
} tn_meta_value;

/* Takes the next value, but of an array whose items follow its head only.  Failures are c's. */
void tn_meta_take_value(tn_cbor *c, tn_meta_value *value);

/* The type that all items of an array have, whose head was taken; NONE: there is none. */
tn_meta_type tn_meta_items(const tn_cbor *c, uint64_t *count);

/* The bits of a number or bool as another type; false: it does not fit. */
bool tn_meta_convert(const tn_meta_value *value, tn_meta_type to, uint64_t *bits);

/* The type of a whole value, and of the items of an array. */
tn_meta_type tn_meta_type_of(const tn_meta *meta, tn_meta_type *items);

/* Makes the value of `out`, whose key is set, from text: a number, true or false, or a JSON array of such.
 * TN_META_NONE: any JSON.  TN_ERR_ARGUMENT: the text is not a value of this type. */
tn_status tn_meta_from_text(const char *text, tn_meta_type type, tn_arena *arena, tn_meta *out,
                            tn_error *err);

#endif
