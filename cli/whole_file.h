/* cli/whole_file.h - small files, read and written whole. */
#ifndef TENON_CLI_WHOLE_FILE_H
#define TENON_CLI_WHOLE_FILE_H

#include <stdbool.h>
#include <tenon/tenon.h>

/* Reads a file, or what comes through a pipe, of at most `most` bytes; free()
 * *bytes.  TN_ERR_IO, TN_ERR_LIMIT. */
tn_status whole_file_read(const char *path, size_t most, char **bytes, size_t *n, tn_error *err);

/* Writes a file that appears whole or not at all: the bytes go into a new file
 * in its folder, which gets the name at the end.  TN_ERR_EXISTS: there is one
 * and `replace` is false.  TN_ERR_IO: nothing was replaced. */
tn_status whole_file_write(const char *path, const char *bytes, size_t n, bool replace, tn_error *err);

#endif
