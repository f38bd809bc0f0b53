/* cli/compliance/trials.h - tests of single requirements.
 *
 * Each trial does the thing through the public functions alone, as a program
 * would, and compares the outcome with what it works out for itself. */
#ifndef TENON_CLI_COMPLIANCE_TRIALS_H
#define TENON_CLI_COMPLIANCE_TRIALS_H

#include <tenon/tenon.h>

typedef struct trial {
    const char *folder;         /* for files; its creator empties it */
    tn_dtype    dtype;          /* of a trial of one type */
    char        evidence[400];  /* what was done and seen */
} trial;

/* TN_OK: met.  TN_ERR_NOMEM, TN_ERR_IO: could not be tried.  Any other: not
 * met, and the text says what was seen. */
typedef tn_status (*trial_fn)(trial *trial, tn_error *err);

tn_status try_type(trial *trial, tn_error *err);
tn_status try_one_layout(trial *trial, tn_error *err);
tn_status try_both_layouts(trial *trial, tn_error *err);
tn_status try_all_layouts(trial *trial, tn_error *err);
tn_status try_alignment(trial *trial, tn_error *err);
tn_status try_strides(trial *trial, tn_error *err);
tn_status try_quantization(trial *trial, tn_error *err);
tn_status try_sparse(trial *trial, tn_error *err);
tn_status try_sharing(trial *trial, tn_error *err);
tn_status try_dynamic_shapes(trial *trial, tn_error *err);

/* What all trials use. */
__attribute__((format(printf, 3, 4)))
tn_status trial_error(tn_error *err, tn_status status, const char *format, ...);
tn_status trial_errno(tn_error *err, int error_number, const char *what);
tn_status trial_nomem(tn_error *err);

/* Writes what was seen as the evidence. */
__attribute__((format(printf, 2, 3)))
void saw(trial *trial, const char *format, ...);

/* A path in the trial's folder. */
typedef struct file_path { char s[4096]; } file_path;
file_path file_in(const trial *trial, const char *name);

/* Writes one tensor whose parts have their data into a new file. */
tn_status store_tensor(const char *path, const char *format, const tn_tensor *tensor, tn_error *err);

#endif
