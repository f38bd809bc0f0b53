/* cli/ui/together.h - work that many processes share. */
#ifndef TENON_CLI_UI_TOGETHER_H
#define TENON_CLI_UI_TOGETHER_H

#include "ui/opts.h"

/* Which process this is, and where the work folder is. */
tn_work_options work_options(const opts *o);

/* Converts with all processes that are given the same command. */
tn_status convert_together(const opts *o, const tn_file *file, const tn_convert_options *options,
                           tn_convert_result *result, tn_error *err);

/* Makes the work folder and says what it has. */
tn_status convert_plan(const opts *o, const tn_file *file, const tn_convert_options *options,
                       tn_convert_result *result, tn_error *err);

/* With --together, the work of one file or two: what is printed until shared_end() is held back, and printed
 * there by one of the processes.  Otherwise nothing happens.  Returns EXIT_DONE, or why it cannot be. */
int  shared_begin(const opts *o, const char *path);
void shared_end(void);

/* For the options of the library; NULL: this process works alone. */
tn_together *shared(void);

/* "tenon ls" of a work folder; false: it is none. */
bool list_work(const opts *o, const char *path, bool *listed, int *code);

#endif
