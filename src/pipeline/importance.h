/* pipeline/importance.h - how much each column of a weight counts: files of llama.cpp's imatrix tool.
 *
 * Such a file has two tensors for each weight: NAME.in_sum2 [matrices, columns] with sums of squares of what
 * the columns were multiplied by, and NAME.counts [matrices, 1] with how many there were.  Any format that
 * holds these will do. */
#ifndef TN_PIPELINE_IMPORTANCE_H
#define TN_PIPELINE_IMPORTANCE_H

#include "base/arena.h"
#include "base/text.h"

#include <tenon/file.h>
#include <tenon/quantize.h>

/* Opens what the key importance of a cast names: a path, "none" or nothing; *file may be NULL afterwards.
 * TN_ERR_ARGUMENT: a file without such tensors. */
tn_status tn_importance_open(tn_text path, tn_file **file, bool *none, tn_error *err);

/* Sets the importance of the tensor `weight`, which is called `name` there: mean squares, 1 where nothing was
 * counted, in the arena.  Nothing is set where the file does not have it.
 * TN_ERR_CORRUPT: one is negative or not finite, the two tensors do not belong together, or they are of a
 * weight of another shape. */
tn_status tn_importance_read(const tn_file *file, const char *name, const tn_tensor *weight, tn_arena *arena,
                             tn_quantize_options *o, tn_error *err);

#endif
