/* bytes/transcode.h - JSON to CBOR and back, one value.
 *
 * Metadata is CBOR inside Tenon because CBOR can say all that JSON can.
 * JSON -> CBOR: integers that fit 64 bits become integers, other numbers the
 * shortest float that keeps the double; shortest heads, definite lengths, order
 * kept; a duplicate key is refused.
 * CBOR -> JSON is exact or refused: a value is written as JSON only if reading
 * that JSON back gives the very same CBOR bytes. */
#ifndef TN_BYTES_TRANSCODE_H
#define TN_BYTES_TRANSCODE_H

#include "bytes/cbor.h"
#include "bytes/json.h"

/* Takes the next value of `j` and appends it to `out`. Failures are j's. */
void tn_json_to_cbor(tn_json *j, tn_buf *out);

/* Appends one CBOR item as JSON.  False, with `out` as it was, when JSON cannot
 * hold it exactly (bytes, tags, NaN, keys that are not text, long forms ...)
 * or memory ran out (out->bad). */
bool tn_cbor_to_json(const void *item, size_t n, tn_buf *out);

#endif
