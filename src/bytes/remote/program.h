/* bytes/remote/program.h - the output of a program that the user has named in a configuration. */
#ifndef TN_BYTES_REMOTE_PROGRAM_H
#define TN_BYTES_REMOTE_PROGRAM_H

#include "base/error.h"

/* Runs a command of the shell, without input, and reads its output, for at most a minute.  TN_ERR_IO: it
 * cannot be run, fails, or writes more than `cap` bytes. */
tn_status tn_program_run(const char *command, char *output, size_t cap, size_t *n, tn_error *err);

#endif
