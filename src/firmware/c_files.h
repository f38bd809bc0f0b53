/* firmware/c_files.h - two files that appear together or not at all. */
#ifndef TN_FIRMWARE_C_FILES_H
#define TN_FIRMWARE_C_FILES_H

#include "bytes/sink.h"

#include <limits.h>

typedef struct tn_c_file {
    char     path[PATH_MAX];
    tn_sink *sink;
    uint64_t size;
    uint32_t crc;               /* crc32c of them */
} tn_c_file;

typedef struct tn_c_files {
    tn_c_file first, second;
    char      folder[PATH_MAX]; /* "" unless it was created for them */
} tn_c_files;

/* Opens FOLDER/NAME with `suffix` and with ".h"; creates the folder if it is missing.  Existing files do not
 * change.  Errors name the file or folder, here and below. */
tn_status tn_c_files_open(tn_c_files *files, const char *folder, const char *name, const char *suffix,
                          bool replace, tn_error *err);

tn_status tn_c_file_write(tn_c_file *file, const void *data, size_t n, tn_error *err);

/* Gives both files their names.  If that fails for the second, the first is restored: its old file keeps a
 * second name until then.  Frees both in any case. */
tn_status tn_c_files_publish(tn_c_files *files, tn_error *err);

/* Removes both without a trace.  Also allowed if they are zeroed or could not be opened. */
void tn_c_files_abandon(tn_c_files *files);

#endif
