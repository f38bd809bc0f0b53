/* cli/ui/each_file.h - runs a task on each file. */
#ifndef TENON_CLI_UI_EACH_FILE_H
#define TENON_CLI_UI_EACH_FILE_H

#include "ui/opts.h"

/* What to do with an open file.  Returns the exit code; if the library failed,
 * *err says how.  With --json an object is open: add fields to it. */
typedef int (*file_fn)(const opts *o, const char *path, const tn_file *file, tn_error *err);

typedef struct file_task {
    file_fn visit;
    bool    headed;             /* print the name of each file if there are several */
    bool    judges;             /* with --json, each object ends in "ok" */
} file_task;

/* Goes through the files until a signal comes, prints what failed and returns
 * the worst exit code.  With --json every file gets one line, also one that
 * cannot be opened: an object with its name, what visit() adds, and "error". */
int each_file(const opts *o, const file_task *task);

/* The same for one that is open already, without a heading. */
int visit_open_file(const opts *o, const file_task *task, const char *name, const tn_file *file);

/* Says why a file could not be taken, with --json also in an object of its own; returns the exit code. */
int refuse_file(const opts *o, const char *path, const tn_error *err);

/* After a file that could not be opened: a word behind files that is no file may be the name of a tensor. */
void suggest_only(const opts *o, const char *word, tn_status status);

#endif
