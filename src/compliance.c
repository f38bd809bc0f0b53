/* compliance.c - the requirements of WIA-AI-011, tried one by one. */
#include "base/error.h"
#include "trials.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct requirement {
    int         level;
    const char *text;           /* after which, for the trial of one type, its name stands */
    tn_trial_fn try;
    tn_dtype    dtype;
} requirement;

#define TYPE(level, dtype) { level, "Support ", tn_try_type, dtype }

static const requirement requirements[] = {
    TYPE(1, TN_FLOAT32),
    TYPE(1, TN_FLOAT16),
    { 1, "Support NCHW or NHWC", tn_try_one_layout, TN_UNKNOWN },
    { 1, "Minimum 64-byte alignment", tn_try_alignment, TN_UNKNOWN },

    TYPE(2, TN_BFLOAT16),
    TYPE(2, TN_INT8),
    { 2, "Support both NCHW and NHWC", tn_try_both_layouts, TN_UNKNOWN },
    { 2, "Stride-based layouts", tn_try_strides, TN_UNKNOWN },
    { 2, "Quantization metadata", tn_try_quantization, TN_UNKNOWN },

    TYPE(3, TN_FLOAT64),
    TYPE(3, TN_TF32),
    TYPE(3, TN_FLOAT8_E4M3FN),
    TYPE(3, TN_FLOAT8_E5M2),
    TYPE(3, TN_INT64),
    TYPE(3, TN_INT32),
    TYPE(3, TN_INT16),
    TYPE(3, TN_UINT64),
    TYPE(3, TN_UINT32),
    TYPE(3, TN_UINT16),
    TYPE(3, TN_UINT8),
    TYPE(3, TN_INT4),
    TYPE(3, TN_UINT4),
    { 3, "All layouts", tn_try_all_layouts, TN_UNKNOWN },
    { 3, "Sparse tensors", tn_try_sparse, TN_UNKNOWN },
    { 3, "Zero-copy sharing", tn_try_sharing, TN_UNKNOWN },
    { 3, "Dynamic shapes", tn_try_dynamic_shapes, TN_UNKNOWN },
};

enum { NREQUIREMENTS = sizeof requirements / sizeof *requirements };

/* ---- what trials share ---- */

void tn_trial_saw(tn_trial *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(t->evidence, sizeof t->evidence, format, args);
    va_end(args);
}

tn_trial_path tn_trial_file(const tn_trial *t, const char *name)
{
    tn_trial_path path;
    snprintf(path.s, sizeof path.s, "%s/%s", t->folder, name);
    return path;
}

tn_status tn_trial_store(const char *path, const char *format, const tn_tensor *tensor, tn_error *err)
{
    const tn_create_options options = { .size = sizeof options, .format = format, .replace = true };
    tn_writer *writer;
    tn_status status = tn_create(path, &options, &writer, err);
    if (status)
        return status;
    status = tn_writer_add(writer, tensor, err);
    if (!status)
        return tn_writer_finish(writer, err);
    tn_writer_abandon(writer);
    return status;
}

/* ---- the folder for files ---- */

/* $TMPDIR/tenon-XXXXXX, or in /tmp. */
static tn_status make_folder(tn_trial_path *folder, tn_error *err)
{
    const char *where = getenv("TMPDIR");
    if (!where || !*where)
        where = "/tmp";
    int n = snprintf(folder->s, sizeof folder->s, "%s/tenon-XXXXXX", where);
    if (n < 0 || n >= (int)sizeof folder->s - 256)
        return tn_fail(err, TN_ERR_IO, TN_NO_OFFSET, "cannot use %s for temporary files: its name is too long",
                       tn_quote_z(where).text);
    if (mkdtemp(folder->s))
        return TN_OK;
    char what[160];
    snprintf(what, sizeof what, "cannot make a temporary folder in %s", tn_quote_z(where).text);
    return tn_fail_errno(err, errno, what);
}

/* Trials make files and sockets, no folders. */
static void empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

/* ---- the run ---- */

/* Tries one requirement; the result's evidence is the trial's. */
static tn_status judge(const requirement *r, tn_trial *t, tn_compliance_state *state, tn_error *err)
{
    tn_error why;
    t->dtype = r->dtype;
    tn_trial_saw(t, "%s", "");
    tn_status status = r->try(t, &why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        if (err)
            *err = why;
        return status;
    }
    *state = status ? TN_NOT_COMPLIANT : TN_COMPLIANT;
    if (status)
        tn_trial_saw(t, "%s", why.text);
    return TN_OK;
}

static void tell(const requirement *r, const tn_trial *t, tn_compliance_state state, tn_compliance_fn report, void *context)
{
    char text[80];
    const tn_dtype_info *type = tn_dtype_get(r->dtype);
    snprintf(text, sizeof text, "%s%s", r->text, type ? type->wia : "");
    if (report)
        report(context, &(tn_compliance){ .level = r->level, .requirement = text, .state = state, .evidence = t->evidence });
}

static tn_status run_all(int level, const char *folder, tn_compliance_fn report, void *context, int *reached, tn_error *err)
{
    tn_trial trial = { .folder = folder };
    tn_status status = TN_OK;
    int most = level;
    for (size_t i = 0; i < NREQUIREMENTS && !status; i++) {
        const requirement *r = &requirements[i];
        tn_compliance_state state = TN_NOT_COMPLIANT;
        if (r->level > level)
            break;
        status = judge(r, &trial, &state, err);
        empty_folder(folder);
        if (status)
            break;
        tell(r, &trial, state, report, context);
        if (state != TN_COMPLIANT && most >= r->level)
            most = r->level - 1;
    }
    if (!status)
        *reached = most;
    return status;
}

tn_status tn_compliance_run(int level, tn_compliance_fn report, void *context, int *reached, tn_error *err)
{
    tn_trial_path folder;
    if (level < 1 || level > 3)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a level from 1 to 3 but found %d", level);
    tn_status status = make_folder(&folder, err);
    if (status)
        return status;
    status = run_all(level, folder.s, report, context, reached, err);
    rmdir(folder.s);
    return status;
}
