/* bytes/remote/curl_library.h - libcurl, loaded when the first URL is used.
 *
 * A program that reads local files only never loads it, and needs not have it. */
#ifndef TN_BYTES_REMOTE_CURL_LIBRARY_H
#define TN_BYTES_REMOTE_CURL_LIBRARY_H

#include "base/error.h"
#include "base/sealed.h"

#define CURL_DISABLE_TYPECHECK          /* its checks take the functions by their names */
#include <curl/curl.h>
#include <stdbool.h>

#define TN_CURL_ENTRIES(ENTRY)        \
    ENTRY(curl_global_init)           \
    ENTRY(curl_version_info)          \
    ENTRY(curl_easy_init)             \
    ENTRY(curl_easy_cleanup)          \
    ENTRY(curl_easy_reset)            \
    ENTRY(curl_easy_setopt)           \
    ENTRY(curl_easy_getinfo)          \
    ENTRY(curl_easy_strerror)         \
    ENTRY(curl_slist_append)          \
    ENTRY(curl_slist_free_all)        \
    ENTRY(curl_multi_init)            \
    ENTRY(curl_multi_cleanup)         \
    ENTRY(curl_multi_setopt)          \
    ENTRY(curl_multi_add_handle)      \
    ENTRY(curl_multi_remove_handle)   \
    ENTRY(curl_multi_perform)         \
    ENTRY(curl_multi_info_read)       \
    ENTRY(curl_multi_poll)            \
    ENTRY(curl_multi_wakeup)

#define TN_CURL_FIELD(name) __typeof__(&name) name;
typedef struct TN_OWN_PAGES tn_curl_table { TN_CURL_ENTRIES(TN_CURL_FIELD) } tn_curl_table;

/* Loads it once.  TN_ERR_UNSUPPORTED: there is none, or it is too old; the text names the package. */
tn_status tn_curl_load(const tn_curl_table **curl, tn_error *err);

#endif
