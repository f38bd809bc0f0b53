/* bytes/remote/curl_library.c - libcurl, loaded when the first URL is used. */
#include "bytes/remote/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"
enum { OLDEST = 0x075500 };     /* 7.85: CURLOPT_PROTOCOLS_STR */

static tn_curl_table table;

#define PLACE(name) { #name, &table.name },
static const struct { const char *name; void *place; } entries[] = { TN_CURL_ENTRIES(PLACE) };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *why;         /* it cannot be used; NULL: it can */

static bool fill_table(void *library)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = dlsym(library, entries[i].name);
        if (!symbol)
            return false;
        memcpy(entries[i].place, &symbol, sizeof symbol);       /* C has no cast from objects to functions */
    }
    tn_seal(&table, sizeof table);
    return true;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        why = "URLs need " LIBRARY ", which is not there: install libcurl (Debian: libcurl4)";
    else if (!fill_table(library) || table.curl_version_info(CURLVERSION_NOW)->version_num < OLDEST)
        why = "URLs need libcurl 7.85 or later: " LIBRARY " is older";
    else if (table.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        why = LIBRARY " does not start";
}

tn_status tn_curl_load(const tn_curl_table **curl, tn_error *err)
{
    pthread_once(&once, load);
    *curl = &table;
    return why ? tn_fail(err, TN_ERR_UNSUPPORTED, "%s", why) : TN_OK;
}
