/* bytes/remote/hub.h - models of the Hugging Face hub: hf://ORG/REPO[@REVISION]/PATH. */
#ifndef TN_BYTES_REMOTE_HUB_H
#define TN_BYTES_REMOTE_HUB_H

#include "bytes/remote/scheme.h"

/* The URL of the file at `endpoint`, appended.  TN_ERR_ARGUMENT: the name is not complete. */
tn_status tn_hub_url(const char *name, const char *endpoint, tn_buf *url, tn_error *err);

extern const tn_scheme tn_scheme_hub;

#endif
