/* bytes/remote/retry.h - the one rule by which failed requests are sent again. */
#ifndef TN_BYTES_REMOTE_RETRY_H
#define TN_BYTES_REMOTE_RETRY_H

#include "bytes/remote/reply.h"

enum {
    TN_REMOTE_TRIES = 5,        /* of one request, the first included */
    TN_REMOTE_PATIENCE = 120    /* seconds from the first failure to the last try */
};

/* Whether another try may succeed: the server is busy, or the connection broke. */
bool tn_retry_helps_status(int http_status);
bool tn_retry_helps_transfer(int curl_code);

/* Milliseconds to wait after `failures` tries (1, 2 ...): any time up to 0.2 s, 0.4 s ... 20 s, as `random`
 * says, but no less than the server asks for. */
unsigned tn_retry_delay(unsigned failures, uint32_t random, const tn_reply *reply);

#endif
