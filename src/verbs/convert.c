/* verbs/convert.c - a whole file into another: a plan, all its pieces, and the end. */
#include "verbs/convert.h"
#include "base/error.h"
#include "pipeline/plan.h"

static tn_status convert(const tn_file *file, const char *path, int fd, const tn_convert_options *options,
                         tn_convert_result *result, tn_error *err)
{
    tn_plan *plan;
    TN_TRY(tn_plan_make_into(file, path, fd, options, &plan, err));
    tn_status status = tn_plan_run_some(plan, 0, tn_plan_count(plan), err);
    if (!status)
        status = tn_plan_finish(plan, result, err);
    tn_plan_free(plan);
    return status;
}

tn_status tn_convert(const tn_file *file, const char *path, const tn_convert_options *options,
                     tn_convert_result *result, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(path, "a path", err);
    return convert(file, path, -1, options, result, err);
}

tn_status tn_convert_into(const tn_file *file, int fd, const char *name, const tn_convert_options *options,
                          tn_error *err)
{
    return convert(file, name, fd, options, NULL, err);
}
