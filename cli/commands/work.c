/* cli/commands/work.c - conversions that many processes make together: plan, run, finish, abandon. */
#include "ui/json.h"
#include "ui/lost.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/ranks.h"
#include "ui/text.h"
#include "ui/together.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

tn_work_options work_options(const opts *o)
{
    tn_work_options w = { .size = sizeof w, .folder = o->work, .rank = o->rank, .ranks = o->ranks,
                          .jobs = o->jobs };
    if (!o->ranks)
        find_ranks(&w.rank, &w.ranks);
    return w;
}

/* ---- with the command of a conversion ---- */

/* A process that starts after the others have published finds their output. */
static void add_hint(tn_error *err, bool unranked)
{
    size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, "; if processes of the same command have just made it, "
             "nothing is left to do%s", unranked ? ": with --ranks this process would know" : "");
}

tn_status convert_together(const opts *o, const tn_file *file, const tn_convert_options *options,
                           tn_convert_result *result, tn_error *err)
{
    const tn_work_options w = work_options(o);
    tn_work *work = NULL;
    tn_status status = tn_work_make(file, o->files[o->nfiles - 1], options, &w, &work, err);
    if (status == TN_ERR_EXISTS)
        add_hint(err, w.ranks == 0);
    if (status == TN_OK)
        status = tn_work_run_all(work, true, err);
    if (status == TN_OK)
        status = tn_work_finish(work, result, err);
    tn_work_close(work);
    return status;
}

static uint64_t bytes_to_write(const tn_plan *plan)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < tn_plan_count(plan); i++) {
        tn_plan_piece_info piece = { .size = sizeof piece };
        if (tn_plan_piece(plan, i, &piece, NULL) == TN_OK)
            bytes += piece.bytes_written;
    }
    return bytes;
}

tn_status convert_plan(const opts *o, const tn_file *file, const tn_convert_options *options,
                       tn_convert_result *result, tn_error *err)
{
    const tn_work_options w = work_options(o);
    tn_work *work = NULL;
    tn_status status = tn_work_make(file, o->files[o->nfiles - 1], options, &w, &work, err);
    if (status)
        return status;
    const char *folder = tn_work_folder(work);
    const tn_plan *plan = tn_work_plan(work);
    result->bytes_out = plan ? bytes_to_write(plan) : 0;
    if (o->json) {
        json_text_field("work", folder);
        json_uint_field("pieces", tn_plan_count(plan));
        json_uint_field("bytes", result->bytes_out);
    } else if (!o->quiet && plan) {
        out("%s: %s, %s\n", escaped(folder), counted(tn_plan_count(plan), "piece").s,
            human_size(result->bytes_out).s);
    } else if (!o->quiet) {
        out("%s: %s is published already: \"tenon finish\" removes the folder\n", escaped(folder),
            escaped(tn_work_output(work)));
    }
    tn_work_close(work);
    return TN_OK;
}

/* ---- with a folder ---- */

typedef struct job {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    lost_values lost;
    size_t      made, before, held;
} job;

static void lost_row(void *context, const tn_cast_report *lost)
{
    lost_add(&((job *)context)->lost, lost);
}

static tn_status open_work(job *j, tn_work_options w, tn_work **work, tn_error *err)
{
    w.progress = progress_step;
    w.note = progress_note;
    w.lost = lost_row;
    w.context = j;
    return tn_work_open(j->o->files[0], &w, work, err);
}

static tn_status run_piece(job *j, tn_work *work, size_t piece, tn_error *err)
{
    tn_work_outcome outcome;
    tn_status status = tn_work_run(work, piece, &outcome, err);
    if (status)
        return status;
    j->made += outcome == TN_WORK_MADE;
    j->before += outcome == TN_WORK_WAS_MADE;
    j->held += outcome == TN_WORK_HELD;
    return TN_OK;
}

/* "I" or "I-J": the option has checked that. */
static tn_status run_some(job *j, tn_work *work, const char *text, tn_error *err)
{
    const char *dash = strchr(text, '-');
    size_t first = strtoul(text, NULL, 10), last = dash ? strtoul(dash + 1, NULL, 10) : first;
    tn_status status = TN_OK;
    for (size_t i = first; i <= last && status == TN_OK; i++)
        status = run_piece(j, work, i, err);
    return status;
}

static const char *all_pieces(size_t n)
{
    static char text[48];
    if (n == 1)
        return "the only piece is";
    snprintf(text, sizeof text, "all %zu pieces are", n);
    return text;
}

/* What is known of a folder, in JSON. */
static void put_state(const char *path, const tn_work_state *s)
{
    json_text_field("work", path);
    json_uint_field("pieces", s->pieces);
    json_uint_field("pieces_made", s->made);
    json_uint_field("pieces_held", s->held);
}

static void say_run(const job *j, const tn_work *work, const tn_work_state *state)
{
    const char *folder = escaped(tn_work_folder(work));
    if (j->o->json) {
        json_open('{');
        put_state(tn_work_folder(work), state);
        json_bool_field("published", state->published);
        json_close('}');
        json_end();
    } else if (!j->o->quiet && state->made == state->pieces) {
        fprintf(stderr, "%s: %s made: \"tenon finish\" publishes %s\n", folder, all_pieces(state->pieces),
                state->pieces == 1 ? "it" : "them");
    } else if (!j->o->quiet && state->held == 0) {
        fprintf(stderr, "%s: %zu of %zu pieces are made: \"tenon run\" makes the others\n", folder,
                state->made, state->pieces);
    } else if (!j->o->quiet) {
        fprintf(stderr, "%s: %zu of %zu pieces are made, %zu %s being made by others: \"tenon finish\" "
                "publishes them when all are made\n", folder, state->made, state->pieces, state->held,
                state->held == 1 ? "is" : "are");
    }
}

static int run(const opts *o)
{
    job j = { .o = o };
    tn_work *work = NULL;
    tn_work_state state = { .size = sizeof state };
    tn_error err;
    signals_catch();
    progress_begin(&j.bar, o->quiet);
    tn_status status = open_work(&j, work_options(o), &work, &err);
    for (size_t i = 0; i < o->pieces.count && status == TN_OK; i++)
        status = run_some(&j, work, o->pieces.items[i], &err);
    if (status == TN_OK && o->pieces.count == 0)
        status = tn_work_run_all(work, false, &err);
    progress_end(&j.bar);
    if (status == TN_OK && tn_work_look(tn_work_folder(work), &state, NULL, NULL, NULL) == TN_OK)
        say_run(&j, work, &state);
    if (status == TN_OK)
        say_lost(&j.lost);
    lost_free(&j.lost);
    tn_work_close(work);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static int finish(const opts *o)
{
    job j = { .o = o };
    tn_work *work = NULL;
    tn_convert_result result = { 0 };
    tn_error err;
    /* it waits for no ranks */
    const tn_work_options alone = { .size = sizeof alone, .jobs = o->jobs, .replace = o->force };
    signals_catch();
    progress_begin(&j.bar, o->quiet);
    tn_status status = open_work(&j, alone, &work, &err);
    if (status == TN_OK)
        status = tn_work_finish(work, &result, &err);
    progress_end(&j.bar);
    if (status == TN_OK) {
        say_lost(&j.lost);
        if (o->json) {
            json_open('{');
            json_text_field("file", tn_work_output(work));
            json_uint_field("tensors", result.tensors);
            json_uint_field("bytes_in", result.bytes_in);
            json_uint_field("bytes_out", result.bytes_out);
            json_close('}');
            json_end();
        } else if (!o->quiet) {
            fprintf(stderr, "%s: %s\n", escaped(tn_work_output(work)), human_size(result.bytes_out).s);
        }
    }
    const char *hint = work ? ": \"tenon run\" makes them" : "";         /* pieces are missing */
    lost_free(&j.lost);
    tn_work_close(work);
    if (status == TN_ERR_ARGUMENT)
        return give_up_by(EXIT_BAD, &err, "%s%s", error_line(&err), hint);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static int abandon(const opts *o)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->nfiles; i++) {
        tn_error err;
        if (tn_work_abandon(o->files[i], &err) != TN_OK)
            code = worse(code, say_error(o->files[i], &err));
    }
    return code;
}

/* ---- how far it is ---- */

static void list_holder(void *context, const tn_work_holder *h)
{
    const opts *o = context;
    if (o->json) {
        json_open('{');
        json_uint_field("piece", h->piece);
        json_text_field("host", *h->host ? h->host : NULL);
        json_uint_field("pid", h->pid);
        json_bool_field("stopped", h->stopped);
        json_close('}');
    } else {
        out("piece %zu: process %" PRIu64 " on %s%s\n", h->piece, h->pid, escaped(*h->host ? h->host : "?"),
            h->stopped ? ", stopped" : "");
    }
}

static void list_state(const opts *o, const char *path, const tn_work_state *s)
{
    if (o->json) {
        put_state(path, s);
        json_uint_field("bytes", s->bytes);
        json_uint_field("bytes_made", s->bytes_made);
        json_uint_field("processes", s->processes);
        json_bool_field("published", s->published);
        return;
    }
    out("%s: %zu of %zu pieces are made, %s of %s; %zu process%s%s\n", escaped(path), s->made, s->pieces,
        human_size(s->bytes_made).s, human_size(s->bytes).s, s->processes, s->processes == 1 ? "" : "es",
        s->published ? "; the output is published" : "");
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool list_work(const opts *o, const char *path, bool *listed, int *code)
{
    char plan[4096];
    struct stat st;
    tn_error err;
    tn_work_state state = { .size = sizeof state };
    int n = snprintf(plan, sizeof plan, "%s/plan.json", path);
    if (n < 0 || (size_t)n >= sizeof plan || !is_folder(path) || stat(plan, &st) != 0)
        return false;
    if (tn_work_look(path, &state, NULL, NULL, &err) != TN_OK)
        return false;
    *listed = true;
    *code = EXIT_DONE;
    if (o->json)
        json_open('{');
    list_state(o, path, &state);
    if (o->json) {
        json_key("holders");
        json_open('[');
    }
    (void)tn_work_look(path, &state, list_holder, (void *)(uintptr_t)o, &err);
    if (o->json) {
        json_close(']');
        json_close('}');
        json_end();
    }
    return true;
}

/* ---- */

const command cmd_run = {
    .name = "run",
    .operands = "WORK",
    .summary = "Make pieces of a planned conversion.",
    .about = "WORK is the folder of \"tenon plan\".  Any number of processes, on machines that\n"
             "share the folder, may run at once, and in any order; each takes pieces that are\n"
             "not made and that no other process has.  It ends when none is free, with exit\n"
             "status 0, also if others still make some: it prints how many.",
    .example = "  $ tenon run model.zt.tenon",
    .min_files = 1, .max_files = 1,
    .accepts = OPTIONS(OPT_PIECE, OPT_RANKS, OPT_JOBS, OPT_MEMORY, OPT_QUIET, OPT_JSON),
    .topics = "together",
    .run = run,
};

const command cmd_finish = {
    .name = "finish",
    .operands = "WORK",
    .summary = "Publish a planned conversion whose pieces are all made.",
    .about = "OUT appears whole, and the folder WORK is gone.  If pieces are missing nothing\n"
             "happens: \"tenon run\" makes them.  If OUT has appeared, or was replaced, since it\n"
             "was planned, --force is needed.",
    .example = "  $ tenon finish model.zt.tenon",
    .min_files = 1, .max_files = 1,
    .accepts = OPTIONS(OPT_FORCE, OPT_JOBS, OPT_MEMORY, OPT_QUIET, OPT_JSON),
    .topics = "together",
    .run = finish,
};

const command cmd_abandon = {
    .name = "abandon",
    .operands = "WORK...",
    .summary = "Remove the work folder of a planned conversion.",
    .about = "OUT stays as it is.  It is refused while processes work there.",
    .example = "  $ tenon abandon model.zt.tenon",
    .min_files = 1, .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPT_QUIET),
    .topics = "together",
    .run = abandon,
};
