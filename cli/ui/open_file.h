/* cli/ui/open_file.h - what ls, show, verify and convert do with a file that is open,
 * for a command that comes by it another way. */
#ifndef TENON_CLI_UI_OPEN_FILE_H
#define TENON_CLI_UI_OPEN_FILE_H

#include "ui/each_file.h"
#include "ui/rules.h"

/* Prints the name of a file if several are listed; *listed: another list came before. */
void list_heading(const opts *o, const char *path, bool *listed);

/* Lists a file, without a heading; returns the exit code. */
int list_file(const opts *o, const char *name, const tn_file *file);

/* Prints one tensor; messages name o->files[0].  `file` may be NULL if the parts have their data. */
int show_tensor(const opts *o, const tn_file *file, const tn_tensor *tensor);

extern const file_task verify_task;

/* Writes a file's tensors into the last of o->files. */
int convert_file(const opts *o, const tn_file *file, const rule_list *rules);
tn_create_options create_options(const opts *o);

#endif
