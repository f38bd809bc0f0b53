/* cli/ui/each_file.c - runs a task on each file. */
#include "ui/each_file.h"
#include "ui/json.h"
#include "ui/progress.h"
#include "ui/together.h"

#include <string.h>
#include <unistd.h>

/* Returns the exit code; *shown: something was printed before. */
static int open_and_visit(const opts *o, const file_task *task, const char *path, bool *shown, tn_error *err)
{
    tn_file *file;
    tn_status status = open_path(o, path, &file, err);
    if (status != TN_OK)
        return exit_code(status);
    if (task->headed && !o->json && o->nfiles > 1)
        out("%s%s:\n", *shown ? "\n" : "", escaped(path));
    *shown = true;
    int code = task->visit(o, path, file, err);
    tn_close(file);
    return code;
}

void suggest_only(const opts *o, const char *word, tn_status status)
{
    bool may_be_tensor = status == TN_ERR_IO && access(word, F_OK) != 0 && !strchr(word, '/');
    if (may_be_tensor && command_takes(find_command(o->command), OPT_ONLY))
        say("%s: to choose a tensor of the files before it, say --only '%s'", escaped(word), escaped(word));
}

/* Opens the file if none is given. */
static int one_file(const opts *o, const file_task *task, const char *path, const tn_file *file, bool *shown)
{
    tn_error err = { .status = TN_OK };
    int code = shared_begin(o, path);
    if (code != EXIT_DONE)
        return code;
    if (o->json) {
        json_open('{');
        json_text_field("file", path);
    }
    code = file ? task->visit(o, path, file, &err) : open_and_visit(o, task, path, shown, &err);
    if (o->json) {
        json_error_field(path, err.status != TN_OK ? &err : NULL);
        if (task->judges)
            json_bool_field("ok", code == EXIT_DONE);
        json_close('}');
        json_end();
    }
    if (err.status != TN_OK)
        say_error(path, &err);
    if (shown && *shown)
        suggest_only(o, path, err.status);
    out_flush();
    shared_end();
    return code;
}

int visit_open_file(const opts *o, const file_task *task, const char *name, const tn_file *file)
{
    return one_file(o, task, name, file, NULL);
}

int each_file(const opts *o, const file_task *task)
{
    int code = EXIT_DONE;
    bool shown = false;
    signals_catch();
    for (size_t i = 0; i < o->nfiles && !signals_came(); i++)
        code = worse(code, one_file(o, task, o->files[i], NULL, &shown));
    return code;
}

int refuse_file(const opts *o, const char *path, const tn_error *err)
{
    if (o->json) {
        json_open('{');
        json_text_field("file", path);
        json_error_field(path, err);
        json_close('}');
        json_end();
    }
    return say_error(path, err);
}
