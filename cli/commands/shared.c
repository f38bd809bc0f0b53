/* cli/commands/shared.c - results that many processes make and one of them prints. */
#include "ui/progress.h"
#include "ui/text.h"
#include "ui/together.h"

#include <stdio.h>
#include <string.h>

static tn_together *together;

tn_together *shared(void) { return together; }

/* FILE.COMMAND.tenon, beside the first file. */
static const char *default_folder(const opts *o, const char *path)
{
    static char folder[4096];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    int written = snprintf(folder, sizeof folder, "%.*s.%s.tenon", (int)n, path, o->command);
    return written > 0 && (size_t)written < sizeof folder ? folder : NULL;
}

static int check_options(const opts *o, const char *path)
{
    const char *of_many = first_given(o, OPTIONS(OPT_WORK, OPT_RANKS, OPT_PIECE_SIZE));
    if (!o->together)
        return of_many ? usage_error(o->command, "--%s needs --together", of_many) : EXIT_DONE;
    if (strcmp(path, "-") == 0)
        return usage_error(o->command, "standard input (-) is of one process: leave out --together");
    if (o->work && o->nfiles > 1 && strcmp(o->command, "diff") != 0)
        return usage_error(o->command, "--work is the folder of one file: leave it out, or give one file");
    if (!o->work && strstr(path, "://"))
        return usage_error(o->command, "--together needs a work folder that all processes share: --work DIR");
    return EXIT_DONE;
}

int shared_begin(const opts *o, const char *path)
{
    int code = check_options(o, path);
    if (code != EXIT_DONE || !o->together)
        return code;
    tn_error err;
    tn_work_options w = work_options(o);
    const char *folder = o->work ? o->work : default_folder(o, path);
    w.note = progress_note;
    w.piece_size = o->piece_size;
    if (!folder)
        return usage_error(o->command, "%s: too long a name: --work DIR", escaped(path));
    if (tn_together_new(folder, &w, &together, &err) != TN_OK)
        return say_error(folder, &err);
    out_hold();
    return EXIT_DONE;
}

void shared_end(void)
{
    if (!together)
        return;
    bool tells = tn_together_tells(together), told = out_release(tells);
    tn_together_end(together, tells && told);
    together = NULL;
}
