/* pipeline/expect.h - tells sources which parts will be read, in which order.
 *
 * Sources that are far away fetch them ahead; for others nothing is done.  Without memory nothing is told. */
#ifndef TN_PIPELINE_EXPECT_H
#define TN_PIPELINE_EXPECT_H

#include "store/file.h"

/* Set `file`, zero the rest; end with tn_expect_end(). */
typedef struct tn_expected {
    const tn_file *file;
    tn_range      *list;        /* not told yet, all of one shard */
    size_t         count, cap;
    uint32_t       shard;
} tn_expected;

void tn_expect_part(tn_expected *expected, const tn_part *part);
void tn_expect_tensor(tn_expected *expected, const tn_tensor *tensor);
void tn_expect_end(tn_expected *expected);

/* The same for a list of tensors. */
void tn_expect_tensors(const tn_file *file, const tn_tensor *const *tensors, size_t n);

#endif
