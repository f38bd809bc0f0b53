/* bytes/remote/retry.c - the one rule by which failed requests are sent again. */
#include "bytes/remote/retry.h"

enum { FIRST_DELAY = 200, MOST_DELAY = 20000 };

bool tn_retry_helps_status(int status)
{
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/* By their numbers, so that the header of libcurl is not needed: proxy, host not resolved, not connected,
 * partial file, timeout, TLS connect, nothing came, send and receive failed, HTTP/2 stream. */
bool tn_retry_helps_transfer(int code)
{
    static const int known[] = { 5, 6, 7, 16, 18, 28, 35, 52, 55, 56, 92 };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == code)
            return true;
    return false;
}

unsigned tn_retry_delay(unsigned failures, uint32_t random, const tn_reply *reply)
{
    unsigned most = FIRST_DELAY;
    for (unsigned i = 1; i < failures && most < MOST_DELAY; i++)
        most *= 2;
    most = most < MOST_DELAY ? most : MOST_DELAY;
    unsigned delay = (unsigned)((uint64_t)random * most >> 32);
    if (reply->has_wait && reply->wait * 1000u > delay)
        delay = reply->wait * 1000u;
    return delay;
}
