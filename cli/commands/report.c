/* cli/commands/report.c - a page that shows a file. */
#include "ui/json.h"
#include "ui/progress.h"
#include "ui/opts.h"
#include "ui/report_view.h"
#include "ui/text.h"
#include "ui/type_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void say_unread(const char *path, const tn_report *report)
{
    const tn_report_tensor *t;
    for (size_t i = 0; (t = tn_report_tensor_at(report, i)); i++)
        if (t->why)
            say("%s: tensor \"%s\": %s", escaped(path), escaped(t->tensor->name), t->why);
}

static void out_json(tn_report *report)
{
    const char *text;
    if (tn_report_text(report, TN_REPORT_DATA, &text, NULL, NULL) == TN_OK)
        json_word(text);
    json_end();
}

static int show(const opts *o, tn_report *report)
{
    const tn_report_totals *all = tn_report_sums(report);
    tn_error err;
    if (o->out && tn_report_save(report, o->out, o->force, &err) != TN_OK)
        return say_error(o->out, &err);
    say_unread(o->files[0], report);
    if (o->json)
        out_json(report);
    else if (o->out)
        out("%s: %s, %s marked\n", escaped(o->out), counted(all->tensors, "tensor").s,
            grouped(all->marked).s);
    else
        out_report(o->files[0], o->against, report);
    return all->unread ? EXIT_BAD : EXIT_DONE;
}

/* The time in UTC, and the version. */
static short_text stamp_now(void)
{
    short_text text = { "" };
    time_t seconds = time(NULL);
    struct tm parts;
    if (gmtime_r(&seconds, &parts)) {
        size_t n = strftime(text.s, sizeof text.s, "%Y-%m-%d %H:%M UTC, Tenon ", &parts);
        snprintf(text.s + n, sizeof text.s - n, "%s", tn_version());
    }
    return text;
}

static int make(const opts *o, const tn_file *file, const tn_file *against, const type_list *types)
{
    progress bar;
    short_text stamp = stamp_now();
    const char **texts = must_allocate(types->count + 1, sizeof *texts);
    tn_report_options options = { .size = sizeof options, .types = texts, .ntypes = types->count,
                                  .against = against, .only = o->only.items, .nonly = o->only.count,
                                  .jobs = o->jobs, .progress = progress_step, .context = &bar,
                                  .stamp = o->stamp ? stamp.s : NULL };
    tn_report *report = NULL;
    tn_error err;
    for (size_t i = 0; i < types->count; i++)
        texts[i] = types->items[i].text;
    progress_begin(&bar, false);
    tn_status status = tn_report_make(file, &options, &report, &err);
    progress_end(&bar);
    int code = status == TN_OK ? show(o, report) : say_error(o->files[0], &err);
    tn_report_free(report);
    free(texts);
    return code;
}

static int run(const opts *o)
{
    type_list types = { 0 };
    tn_file *file = NULL, *against = NULL;
    signals_catch();
    int code = o->types ? types_read(&types, o->types) : EXIT_DONE;
    if (code == EXIT_DONE)
        code = open_input(o, o->files[0], &file);
    if (code == EXIT_DONE && o->against)
        code = open_input(o, o->against, &against);
    if (code == EXIT_DONE)
        code = make(o, file, against, &types);
    tn_close(file);
    tn_close(against);
    types_free(&types);
    return code;
}

const command cmd_report = {
    .name = "report",
    .operands = "FILE",
    .summary = "Show a file as pictures: a page, or in the terminal.",
    .about = "Writes one HTML page with -o: what the file is, where its bytes are, which\n"
             "tensors are unlike the others of their role, histograms, what smaller types\n"
             "would cost (--types), what has changed (--against).  The page is one file and\n"
             "fetches nothing.  Without -o prints the same in short.  Exit status 1 if a\n"
             "tensor cannot be read.",
    .details = "A name is cut at its numbers: layers.3.mlp.up.weight is layer 3 of the role\n"
               "layers.*.mlp.up.weight.  A tensor is marked if it has NaN or infinity, or if a\n"
               "figure is 8 median deviations or more from the median of its role.  --json\n"
               "prints the data of the page.  The same input gives the same bytes, except with\n"
               "--stamp.",
    .example = "  $ tenon report model.safetensors -o report.html --types mxfp4,nvfp4,q4_K",
    .min_files = 1,
    .max_files = 1,
    .accepts = OPTIONS(OPT_OUT, OPT_FORCE, OPT_TYPES, OPT_AGAINST, OPT_STAMP, OPTS_CHOICE, OPT_JOBS,
                       OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_FROM, OPT_IO),
    .elsewhere = OPTIONS(OPTS_INPUT),
    .topics = "input",
    .run = run,
};
