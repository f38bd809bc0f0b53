/* cli/ui/document.h - WIA-AI-011 documents, for commands that do not need their data. */
#ifndef TENON_CLI_UI_DOCUMENT_H
#define TENON_CLI_UI_DOCUMENT_H

#include "ui/opts.h"

/* Reads a document; *list: it is an array.  Free the set with tn_descriptors_free(). */
tn_status document_read(const char *path, tn_descriptors **set, bool *list, tn_error *err);

/* Lists the descriptors of a file that could not be opened because of `why` (symbols without values, no data
 * beside it), if it is a document in which nothing is wrong.  *listed as for list_heading().  Returns the
 * exit code, after a message. */
int document_list(const opts *o, const char *path, bool *listed, const tn_error *why);

#endif
