/* cli/commands/stats.c - what the values of tensors look like. */
#include "ui/each_file.h"
#include "ui/histogram.h"
#include "ui/json.h"
#include "ui/progress.h"
#include "ui/table.h"
#include "ui/text.h"
#include "ui/together.h"

#include <stdio.h>

typedef struct survey {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    const char *path;
    table       rows;
    uint64_t    tensors, unread;
    const tn_file   *file;
    const tn_tensor *codes;     /* the first whose numbers are another tool's codes, or NULL */
} survey;

/* ---- text ---- */

static void number_cell(table *t, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.5g", x);
    table_cell(t, text);
}

static void out_row(survey *v, const tn_tensor *tensor, const tn_statistics *s)
{
    table *t = &v->rows;
    const double numbers[] = { s->min, s->max, s->mean, s->deviation, s->absmax };
    const uint64_t counts[] = { s->zeros, s->subnormals, s->nans, s->infinities };
    table_name(t, tensor->name);
    table_cell(t, type_of(tensor->dtype, &tensor->parts[0]).s);
    table_cell(t, grouped(s->count).s);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (s->finite)
            number_cell(t, numbers[i]);
        else
            table_cell(t, "-");
    }
    table_cell(t, s->count ? percent(s->count - s->zeros, s->count).s : "-");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        table_cell(t, counts[i] ? grouped(counts[i]).s : "-");
    histogram_text p = histogram(s);
    if (*p.s)
        table_note(t, "%s", p.s);
}

static void out_total(const survey *v, const tn_statistics *s)
{
    histogram_text p = histogram(s);
    out("%s, %s", counted(v->tensors, "tensor").s, counted(s->count, "value").s);
    if (v->unread)
        out(", %s not read", grouped(v->unread).s);
    if (s->finite)
        out(": min %.5g, max %.5g, mean %.5g, std %.5g, absmax %.5g", s->min, s->max, s->mean, s->deviation,
            s->absmax);
    out("; %s, %s, %s", counted(s->zeros, "zero").s, counted(s->subnormals, "subnormal").s,
        counted(s->nans, "NaN").s);
    out(", %s %s\n", grouped(s->infinities).s, s->infinities == 1 ? "infinity" : "infinities");
    if (*p.s)
        out("    %s\n", p.s);
}

/* ---- JSON ---- */

static void json_number_field(const char *key, double x)
{
    json_key(key);
    json_double(x);
}

static void json_figures(const tn_statistics *s)
{
    json_uint_field("count", s->count);
    json_uint_field("finite", s->finite);
    json_number_field("min", s->min);
    json_number_field("max", s->max);
    json_number_field("mean", s->mean);
    json_number_field("std", s->deviation);
    json_number_field("absmax", s->absmax);
    json_number_field("density", s->count ? (double)(s->count - s->zeros) / (double)s->count : 0);
    json_uint_field("zeros", s->zeros);
    json_uint_field("subnormals", s->subnormals);
    json_uint_field("nans", s->nans);
    json_uint_field("infinities", s->infinities);
    json_key("histogram");      /* item k: 2^(k - 40) <= |x| < 2^(k - 39) */
    json_open('[');
    for (int k = 0; k < TN_STATS_BINS; k++)
        json_uint(s->histogram[k]);
    json_close(']');
}

static void json_tensor(const char *path, const tn_tensor *tensor, const tn_statistics *s,
                        const tn_error *why)
{
    const tn_dtype_info *info = tn_dtype_get(tensor->dtype);
    json_open('{');
    json_text_field("name", tensor->name);
    json_text_field("dtype", info ? info->name : NULL);
    json_shape_field("shape", tensor->rank, tensor->shape);
    json_error_field(path, why);
    if (!why)
        json_figures(s);
    json_close('}');
}

/* ---- files ---- */

static void report(void *context, const tn_tensor *tensor, const tn_statistics *s, const tn_error *why)
{
    survey *v = context;
    v->tensors += tensor != NULL;
    v->unread += why != NULL;
    if (tensor && !v->codes && !tensor->scaling && tn_file_convention(v->file, tensor))
        v->codes = tensor;
    if (why) {
        progress_end(&v->bar);
        say_error(v->path, why);
    }
    if (v->o->json && tensor) {
        json_tensor(v->path, tensor, s, why);
    } else if (v->o->json) {
        json_close(']');
        json_key("total");
        json_open('{');
        json_figures(s);
        json_close('}');
    } else if (tensor && !why) {
        out_row(v, tensor, s);
    } else if (!tensor) {
        progress_end(&v->bar);
        table_end(&v->rows);
        out_total(v, s);
    }
}

static int stats(const opts *o, const char *path, const tn_file *file, tn_error *err)
{
    static const char *const headings[] = { "name", "type", "values", "min", "max", "mean", "std", "absmax",
                                            "density", "zeros",
                                            "subnormals", "NaNs", "infinities", NULL };
    survey v = { .o = o, .path = path, .file = file };
    tn_stats_options options = { .size = sizeof options, .jobs = o->jobs, .progress = progress_step,
                                 .context = &v,
                                 .only = o->only.items, .nonly = o->only.count, .together = shared() };
    if (o->json) {
        json_key("tensors");
        json_open('[');
    }
    table_begin(&v.rows, headings, 0x1ffc);
    progress_begin(&v.bar, false);
    tn_status status = tn_stats(file, &options, report, err);
    progress_end(&v.bar);
    if (o->json && status != TN_OK)     /* else the total closed it */
        json_close(']');
    table_drop(&v.rows);
    say_codes(path, file, v.codes);
    if (status != TN_OK)
        return exit_code(status);
    return v.unread ? EXIT_BAD : EXIT_DONE;
}

static int run(const opts *o)
{
    return each_file(o, &(file_task){ .visit = stats, .headed = true });
}

const command cmd_stats = {
    .name = "stats",
    .operands = "FILE...",
    .summary = "Print statistics of the values: range, mean, zeros, NaNs.",
    .about = "Prints one line per tensor and a histogram of magnitudes, one character per\n"
             "power of two.  The last line is for all tensors together.  Minimum, maximum,\n"
             "mean and standard deviation count finite values; density is the share of nonzero\n"
             "values, stored or not.  Exit status 1 if a tensor cannot be read.",
    .details = "Subnormal values are those of the tensor's own type.  In a complex tensor both\n"
               "halves are values.  In the histogram values below 2^-39 are counted together,\n"
               "and so are those from 2^23 on.",
    .example = "  $ tenon stats model.safetensors --only '*norm*'",
    .min_files = 1,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPTS_CHOICE, OPT_JOBS, OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_FROM, OPT_IO,
                       OPTS_TOGETHER),
    .elsewhere = OPTIONS(OPTS_INPUT, OPTS_TOGETHER),
    .topics = "input|together",
    .run = run,
};
