/* tenon/values.h - the values of a tensor of an open file, whatever its parts
 * are: elements as they are stored, codes with scales. */
#ifndef TENON_VALUES_H
#define TENON_VALUES_H

#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_values tn_values;

/* Opens the values of a dense or scaled tensor, which are elements of
 * tensor->dtype.  Memory does not grow with the tensor: parts that cannot be had
 * in place (compressed ones) are decoded into unnamed files in $TMPDIR, /var/tmp
 * or /tmp, and held against their checksums; others are not.  *values is
 * written on success only; the file stays open until it is closed.
 *
 * TN_ERR_UNSUPPORTED: a form, type or encoding without values this build can
 * read.  TN_ERR_CORRUPT, TN_ERR_CHECKSUM: parts that are damaged.  TN_ERR_LIMIT:
 * a part of few bytes that is decoded into very many. */
TN_API tn_status tn_values_open(const tn_file *file, const tn_tensor *tensor, tn_values **values,
                                tn_error *err);

/* Values [first, first + n) in row-major order: dense, host byte order.  `size`
 * must be their bytes exactly and, for types narrower than a byte, they begin on
 * a whole one (TN_ERR_ARGUMENT otherwise).  Any number of threads. */
TN_API tn_status tn_values_read(const tn_values *values, uint64_t first, uint64_t n, void *buffer,
                                size_t size, tn_error *err);

/* NULL is allowed. */
TN_API void tn_values_close(tn_values *values);

#ifdef __cplusplus
}
#endif
#endif
