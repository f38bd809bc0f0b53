/* store/assemble.h - from flat entries to tensors, by their records. */
#ifndef TN_STORE_ASSEMBLE_H
#define TN_STORE_ASSEMBLE_H

#include "store/file.h"

/* Applies file->records: types, shapes, metadata, ties, and entries that are parts of one tensor. */
tn_status tn_file_assemble(tn_file *file, tn_error *err);

/* Builds the name table anew from file->tensors; a name twice is TN_ERR_CORRUPT. */
tn_status tn_file_index_names(tn_file *file, tn_error *err);

#endif
