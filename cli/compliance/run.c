/* cli/compliance/run.c - runs the tests of WIA-AI-011 one by one. */
#include "compliance.h"
#include "ui/say.h"
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
    const char *text;           /* followed by the type's name in a trial of one type */
    trial_fn try;
    tn_dtype    dtype;
} requirement;

#define TYPE(level, dtype) { level, "Support ", try_type, dtype }

static const requirement requirements[] = {
    TYPE(1, TN_FLOAT32),
    TYPE(1, TN_FLOAT16),
    { 1, "Support NCHW or NHWC", try_one_layout, TN_UNKNOWN },
    { 1, "Minimum 64-byte alignment", try_alignment, TN_UNKNOWN },

    TYPE(2, TN_BFLOAT16),
    TYPE(2, TN_INT8),
    { 2, "Support both NCHW and NHWC", try_both_layouts, TN_UNKNOWN },
    { 2, "Stride-based layouts", try_strides, TN_UNKNOWN },
    { 2, "Quantization metadata", try_quantization, TN_UNKNOWN },

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
    { 3, "All layouts", try_all_layouts, TN_UNKNOWN },
    { 3, "Sparse tensors", try_sparse, TN_UNKNOWN },
    { 3, "Zero-copy sharing", try_sharing, TN_UNKNOWN },
    { 3, "Dynamic shapes", try_dynamic_shapes, TN_UNKNOWN },
};

enum { NREQUIREMENTS = sizeof requirements / sizeof *requirements };

/* ---- what trials share ---- */

tn_status trial_error(tn_error *err, tn_status status, const char *format, ...)
                      {
    va_list args;
    if (!err)
        return status;
    *err = (tn_error){ .status = status, .offset = TN_NO_OFFSET };
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

tn_status trial_errno(tn_error *err, int error_number, const char *what)
{
    return trial_error(err, error_number == ENOMEM ? TN_ERR_NOMEM : TN_ERR_IO, "%s: %s", what,
                       strerror(error_number));
}

tn_status trial_nomem(tn_error *err)
{
    return trial_error(err, TN_ERR_NOMEM, "out of memory");
}

void saw(trial *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(t->evidence, sizeof t->evidence, format, args);
    va_end(args);
}

file_path file_in(const trial *t, const char *name)
{
    file_path path;
    snprintf(path.s, sizeof path.s, "%s/%s", t->folder, name);
    return path;
}

tn_status store_tensor(const char *path, const char *format, const tn_tensor *tensor, tn_error *err)
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
static tn_status make_folder(file_path *folder, tn_error *err)
{
    const char *where = getenv("TMPDIR");
    if (!where || !*where)
        where = "/tmp";
    int n = snprintf(folder->s, sizeof folder->s, "%s/tenon-XXXXXX", where);
    if (n < 0 || n >= (int)sizeof folder->s - 256)
        return trial_error(err, TN_ERR_IO, "cannot use \"%s\" for temporary files: its name is too long",
                           escaped(where));
    if (mkdtemp(folder->s))
        return TN_OK;
    return trial_error(err, TN_ERR_IO, "cannot make a temporary folder in \"%s\": %s", escaped(where),
                       strerror(errno));
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

/* Tests one requirement and reports its evidence. */
static tn_status judge(const requirement *r, trial *t, bool *met, tn_error *err)
{
    tn_error why;
    t->dtype = r->dtype;
    saw(t, "%s", "");
    tn_status status = r->try(t, &why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        if (err)
            *err = why;
        return status;
    }
    *met = !status;
    if (status)
        saw(t, "%s", why.text);
    return TN_OK;
}

static void tell(const requirement *r, const trial *t, bool met, compliance_fn report, void *context)
{
    char text[80];
    const tn_dtype_info *type = tn_dtype_get(r->dtype);
    snprintf(text, sizeof text, "%s%s", r->text, type ? type->wia : "");
    if (report)
        report(context, &(compliance){ .level = r->level, .requirement = text, .met = met,
                                       .evidence = t->evidence });
}

static tn_status run_all(int level, const char *folder, compliance_fn report, void *context, int *reached,
                         tn_error *err)
{
    trial t = { .folder = folder };
    tn_status status = TN_OK;
    int most = level;
    for (size_t i = 0; i < NREQUIREMENTS && !status; i++) {
        const requirement *r = &requirements[i];
        bool met = false;
        if (r->level > level)
            break;
        status = judge(r, &t, &met, err);
        empty_folder(folder);
        if (status)
            break;
        tell(r, &t, met, report, context);
        if (!met && most >= r->level)
            most = r->level - 1;
    }
    if (!status)
        *reached = most;
    return status;
}

tn_status compliance_run(int level, compliance_fn report, void *context, int *reached, tn_error *err)
{
    file_path folder;
    if (level < 1 || level > 3)
        return trial_error(err, TN_ERR_ARGUMENT, "expected a level from 1 to 3 but found %d", level);
    tn_status status = make_folder(&folder, err);
    if (status)
        return status;
    status = run_all(level, folder.s, report, context, reached, err);
    rmdir(folder.s);
    return status;
}
