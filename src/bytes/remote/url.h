/* bytes/remote/url.h - the parts of a URL, and text that is safe inside one. */
#ifndef TN_BYTES_REMOTE_URL_H
#define TN_BYTES_REMOTE_URL_H

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

/* Borrowed from the URL's text. */
typedef struct tn_url {
    tn_text scheme;             /* "https" */
    tn_text host;               /* "example.org", with ":8443" if there is a port */
    tn_text path;               /* "/a/b", or "" */
    tn_text query;              /* what follows "?", or "" */
} tn_url;

/* TN_ERR_ARGUMENT: there is no host, a password, or a character that no URL has. */
tn_status tn_url_parse(const char *text, tn_url *url, tn_error *err);

/* How much of a name may be shown: http(s) URLs without query and fragment, which may hold a signature, and
 * nothing of one with a user or password. */
size_t tn_url_shown(const char *name);

/* Whether a URL means a folder: it ends in a slash, or is a repository of the hub. */
bool tn_url_is_folder(const char *name);

/* Appends the text with every byte as %XX but letters, digits and -._~; `keep` are further bytes that
 * stay. */
void tn_url_put(tn_buf *b, tn_text text, const char *keep);

/* Whether two URLs have the same scheme, host and port. */
bool tn_url_same_origin(const char *a, const char *b);

#endif
