/* cli/ui/whole_file.h - small files, read whole. */
#ifndef TENON_CLI_UI_WHOLE_FILE_H
#define TENON_CLI_UI_WHOLE_FILE_H

#include <tenon/tenon.h>

/* Reads a file, or what comes through a pipe, of at most `most` bytes; free()
 * *bytes.  TN_ERR_IO, TN_ERR_LIMIT. */
tn_status whole_file_read(const char *path, size_t most, char **bytes, size_t *n, tn_error *err);

#endif
