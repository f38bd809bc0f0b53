/* bytes/remote/credentials.h - who asks an object store.
 *
 * The first of these that has credentials: the environment, a profile in ~/.aws (also by
 * credential_process), a container's endpoint, a web identity, the instance's metadata.  They are kept for
 * the process and fetched again before they expire.  Thread-safe. */
#ifndef TN_BYTES_REMOTE_CREDENTIALS_H
#define TN_BYTES_REMOTE_CREDENTIALS_H

#include "base/error.h"
#include "base/text.h"

#include <time.h>

typedef struct tn_credentials {
    char   id[160];             /* "": there are none, requests are not signed */
    char   secret[160];
    char   token[4096];         /* of a session, or "" */
    time_t expires;             /* 0: never */
} tn_credentials;

/* Those of this process, found if that was not done yet or if they expire within 5 minutes.  `again`: also if
 * not, because a server refused them.  May run a program and make requests. */
tn_status tn_credentials_find(bool again, tn_error *err);

/* Those that were found last.  To be wiped after use. */
void tn_credentials_get(tn_credentials *c);

/* The region of AWS_REGION, AWS_DEFAULT_REGION, the profile, else us-east-1. */
void tn_credentials_region(char region[64]);

/* Reads JSON as credential_process and metadata services write it, or the time "2024-01-02T03:04:05Z" in it.
 * Pure functions, for tests. */
tn_status tn_credentials_read(tn_text json, tn_credentials *c, tn_error *err);
bool      tn_credentials_time(tn_text text, time_t *t);

/* The value of a key in a section of an INI file, without white space around it; false: it is not there.
 * Without a key: whether there is such a section. */
bool tn_ini_find(tn_text file, const char *section, const char *key, char *value, size_t cap);

#endif
