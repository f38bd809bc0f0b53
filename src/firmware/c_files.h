/* firmware/c_files.h - two files that appear together or not at all. */
#ifndef TN_FIRMWARE_C_FILES_H
#define TN_FIRMWARE_C_FILES_H

#include "bytes/sink.h"

#include <limits.h>

/* One of them: bytes from front to back. */
typedef struct tn_c_file {
    char     path[PATH_MAX];
    tn_sink *sink;
    uint64_t size;
    uint32_t crc;               /* crc32c of them */
} tn_c_file;

typedef struct tn_c_files {
    tn_c_file first, second;
    char      folder[PATH_MAX]; /* "" unless it was made for them */
} tn_c_files;

/* Begins FOLDER/NAME and a suffix for each; makes the folder if it is missing.  Nothing that is there
 * changes. The error's text begins with the file or folder concerned, here and below. */
tn_status tn_c_files_open(tn_c_files *files, const char *folder, const char *name, const char *first,
                          const char *second, bool replace, tn_error *err);

tn_status tn_c_file_write(tn_c_file *file, const void *data, size_t n, tn_error *err);

/* Gives both their names.  If the second cannot have it the first is again what it was: an old file of its
 * name stands beside it until then, as a link.  Frees what was opened in any case. */
tn_status tn_c_files_publish(tn_c_files *files, tn_error *err);

/* Leaves no trace.  Zeroed, and opened in vain, are allowed. */
void tn_c_files_abandon(tn_c_files *files);

#endif
