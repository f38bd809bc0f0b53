/* store/numbers.h - the integers of a part, one after the other: indices, row pointers, offsets. */
#ifndef TN_STORE_NUMBERS_H
#define TN_STORE_NUMBERS_H

#include "store/stream.h"

/* Zero-initialise to begin, and free the stream. */
typedef struct tn_numbers {
    tn_stream      stream;
    tn_dtype       dtype;
    const uint8_t *bytes;
    size_t         next, count; /* in the window */
    uint64_t       taken;       /* of all */
} tn_numbers;

/* Of an integer type of 32 or 64 bits. */
tn_status tn_numbers_open(tn_numbers *s, const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                          tn_checksum kind, tn_error *err);

/* The next one, negative ones as 64-bit two's complement; *any is false at the end. */
tn_status tn_numbers_next(tn_numbers *s, uint64_t *value, bool *any, tn_error *err);

#endif
