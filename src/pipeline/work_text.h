/* pipeline/work_text.h - texts that processes leave for each other in a work folder: JSON that ends in the
 * checksum of all before it, so that a text which a crash cut short is known.  Doubles are written as their
 * bits. */
#ifndef TN_PIPELINE_WORK_TEXT_H
#define TN_PIPELINE_WORK_TEXT_H

#include "base/vector.h"
#include "bytes/checksum.h"
#include "bytes/json.h"

/* Closes the object with its checksum. */
void tn_work_seal(tn_buf *b);

/* Whether the text is all of a record. */
bool tn_work_is_whole(tn_text text);

/* An array of exactly n numbers. */
void tn_work_put_numbers(tn_buf *b, const uint64_t *numbers, size_t n);
void tn_work_take_numbers(tn_json *j, uint64_t *numbers, size_t n);

static inline uint64_t tn_work_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A checksum, "" if there is none; one that is read is none or of the kind that is expected. */
void tn_work_put_digest(tn_buf *b, const tn_digest *digest);
void tn_work_take_digest(tn_json *j, tn_checksum kind, tn_digest *digest);

/* An error; status TN_OK is one too, which may have a text. */
void tn_work_put_error(tn_buf *b, const tn_error *err);
void tn_work_take_error(tn_json *j, tn_error *err);

#endif
