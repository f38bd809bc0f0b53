/* trials.h - what is done to see whether the library meets a requirement.
 *
 * Each trial does the thing through the public functions alone, as a program
 * would, and compares the outcome with what it works out for itself. */
#ifndef TN_TRIALS_H
#define TN_TRIALS_H

#include <tenon/tenon.h>

typedef struct tn_trial {
    const char *folder;         /* for files; emptied by whoever made it */
    tn_dtype    dtype;          /* of a trial of one type */
    char        evidence[400];  /* what was done and seen */
} tn_trial;

/* TN_OK: met.  TN_ERR_NOMEM, TN_ERR_IO: could not be tried.  Any other: not
 * met, and the text says what was seen. */
typedef tn_status (*tn_trial_fn)(tn_trial *trial, tn_error *err);

tn_status tn_try_type(tn_trial *trial, tn_error *err);
tn_status tn_try_one_layout(tn_trial *trial, tn_error *err);
tn_status tn_try_both_layouts(tn_trial *trial, tn_error *err);
tn_status tn_try_all_layouts(tn_trial *trial, tn_error *err);
tn_status tn_try_alignment(tn_trial *trial, tn_error *err);
tn_status tn_try_strides(tn_trial *trial, tn_error *err);
tn_status tn_try_quantization(tn_trial *trial, tn_error *err);
tn_status tn_try_sparse(tn_trial *trial, tn_error *err);
tn_status tn_try_sharing(tn_trial *trial, tn_error *err);
tn_status tn_try_dynamic_shapes(tn_trial *trial, tn_error *err);

/* Writes what was seen as the evidence. */
__attribute__((format(printf, 2, 3)))
void tn_trial_saw(tn_trial *trial, const char *format, ...);

/* A path in the trial's folder. */
typedef struct tn_trial_path { char s[4096]; } tn_trial_path;
tn_trial_path tn_trial_file(const tn_trial *trial, const char *name);

/* Writes one tensor whose parts have their data into a new file. */
tn_status tn_trial_store(const char *path, const char *format, const tn_tensor *tensor, tn_error *err);

#endif
