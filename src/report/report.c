/* report/report.c - the public functions of reports. */
#include "report/report.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "bytes/sink.h"

#include <stdlib.h>

/* ---- names ---- */

const char *tn_report_file_name(const tn_file *file)
{
    const char *path = tn_file_shard_name(file, 0);
    return *path ? tn_base_name(path) : "memory";
}

const char *tn_report_type_name(const tn_tensor *t)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    if (t->scaling && t->scaling->datatype)
        return t->scaling->datatype;
    return type ? type->name : "unknown";
}

/* ---- making ---- */

static void choose_pictures(tn_report *r)
{
    for (size_t i = 0; i < r->totals.tensors && r->npictures < TN_PICTURES; i++)
        if (!r->tensors[r->order[i]].why)
            r->pictures[r->npictures++].tensor = r->order[i];
}

static tn_status make(tn_report *r, tn_error *err)
{
    TN_TRY(tn_report_gather(r, err));
    TN_TRY(tn_report_find_roles(r, err));
    TN_TRY(tn_report_mark(r, err));
    TN_TRY(tn_report_rank(r, &r->order, err));
    choose_pictures(r);
    return tn_report_draw(r, err);
}

tn_status tn_report_make(const tn_file *file, const tn_report_options *options, tn_report **report,
                         tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(report, "a place for the report", err);
    tn_report_options o = { .size = sizeof o };
    TN_TRY(tn_take_options(TN_SIZED(tn_report_options, stamp), &o, options, err));
    TN_GIVEN(o.types || !o.ntypes, "types", err);
    tn_report *r = calloc(1, sizeof *r);
    TN_NEED(r, err);
    r->o = o;
    r->file = file;
    tn_status status = make(r, err);
    if (status)
        tn_report_free(r);
    else
        *report = r;
    return status;
}

void tn_report_free(tn_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->datatypes && i < r->o.ntypes; i++)
        tn_datatype_free(r->datatypes[i]);
    for (size_t i = 0; i < sizeof r->texts / sizeof *r->texts; i++)
        tn_buf_free(&r->texts[i]);
    tn_arena_free(&r->arena);
    free(r);
}

/* ---- telling ---- */

const tn_report_totals *tn_report_sums(const tn_report *r) { return r ? &r->totals : NULL; }

const tn_report_tensor *tn_report_tensor_at(const tn_report *r, size_t i)
{
    return r && i < r->totals.tensors ? &r->tensors[i] : NULL;
}

const tn_report_role *tn_report_role_at(const tn_report *r, size_t i)
{
    return r && i < r->totals.roles ? &r->roles[i] : NULL;
}

const tn_report_type *tn_report_type_at(const tn_report *r, size_t i)
{
    return r && i < r->totals.types ? &r->types[i] : NULL;
}

static tn_status write_text(tn_report *r, tn_report_text_kind kind, tn_buf *b, tn_error *err)
{
    tn_status status = TN_OK;
    if (kind == TN_REPORT_DATA)
        tn_report_put_data(r, b);
    else if (kind == TN_REPORT_SUMMARY)
        tn_report_put_summary(r, b);
    else
        status = tn_report_put_page(r, b, err);
    tn_buf_putc(b, '\0');
    return !status && b->bad ? tn_fail_nomem(err) : status;
}

tn_status tn_report_text(tn_report *r, tn_report_text_kind kind, const char **text, size_t *n, tn_error *err)
{
    TN_GIVEN(r, "a report", err);
    TN_GIVEN(text, "a place for the text", err);
    if ((unsigned)kind > TN_REPORT_SUMMARY)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a kind of text from 0 to %d but found %d",
                       (int)TN_REPORT_SUMMARY, (int)kind);
    tn_buf *b = &r->texts[kind];
    tn_status status = b->size ? TN_OK : write_text(r, kind, b, err);
    if (status) {
        tn_buf_free(b);
        *b = (tn_buf){ 0 };
        return status;
    }
    *text = (const char *)b->data;
    if (n)
        *n = b->size - 1;
    return TN_OK;
}

tn_status tn_report_save(tn_report *r, const char *path, bool replace, tn_error *err)
{
    const char *text;
    size_t n;
    tn_sink *sink;
    TN_GIVEN(path, "a path", err);
    TN_TRY(tn_report_text(r, TN_REPORT_PAGE, &text, &n, err));
    tn_status status = tn_sink_open(path, replace, &sink, err);
    if (!status) {
        status = tn_sink_write(sink, 0, text, n, err);
        if (status)
            tn_sink_abandon(sink);
        else
            status = tn_sink_publish(sink, n, err);
    }
    return tn_in_file(status, path, err);
}
