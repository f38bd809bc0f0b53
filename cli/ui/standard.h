/* cli/ui/standard.h - "-": standard input as a file, and a file that goes to standard output. */
#ifndef TENON_CLI_UI_STANDARD_H
#define TENON_CLI_UI_STANDARD_H

#include <tenon/tenon.h>

#include <stdbool.h>

bool is_standard(const char *path);

/* A pipe is first copied into an unnamed temporary file: at most max_bytes, if that is given. */
tn_status open_standard_input(const tn_open_options *options, tn_file **file, tn_error *err);

/* An unnamed temporary file in $TMPDIR, else in /var/tmp or /tmp; -1 with the error. */
int temporary_file(tn_error *err);

/* Copies all of it to standard output. */
tn_status copy_to_output(int fd, tn_error *err);

#endif
