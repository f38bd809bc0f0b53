/* store/folder.h - the tensor file of a folder. */
#ifndef TN_STORE_FOLDER_H
#define TN_STORE_FOLDER_H

#include "base/arena.h"
#include "base/error.h"

/* *file becomes the path of the file that a folder is opened by, in the arena: the index of a set, else
 * model.safetensors, else those of PyTorch, else the only tensor file.  NULL: `path` is no folder.
 * TN_ERR_IO: there is none, or more than one. */
tn_status tn_folder_file(const char *path, tn_arena *arena, const char **file, tn_error *err);

/* The URLs of the files that a folder elsewhere may be opened by, in the arena, the most likely first.
 * Returns how many; 0 without memory. */
enum { TN_FOLDER_USUAL = 4 };
size_t tn_folder_usual(const char *url, tn_arena *arena, const char *urls[TN_FOLDER_USUAL]);

#endif
