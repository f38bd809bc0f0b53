/* bytes/windows.c - one budget for the windows of all threads. */
#include "bytes/windows.h"

#include <pthread.h>

#define USUAL_BUDGET ((uint64_t)256 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t budget = USUAL_BUDGET, taken;
/* first come, first served: small requests do not keep a large one waiting */
static uint64_t last_ticket, served;

void tn_set_window_memory(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    budget = bytes ? bytes : USUAL_BUDGET;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

uint64_t tn_window_memory(void)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = budget;
    pthread_mutex_unlock(&lock);
    return bytes;
}

static tn_status refuse(uint64_t bytes, uint64_t most, tn_error *err)
{
    return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_WINDOWS, NULL,
                     "zstd data needs a window of %llu bytes, more than the %llu allowed",
                     (unsigned long long)bytes, (unsigned long long)most);
}

tn_status tn_windows_check(uint64_t window, tn_error *err)
{
    uint64_t most = tn_window_memory();
    return window <= most ? TN_OK : refuse(window, most, err);
}

tn_status tn_windows_take(uint64_t bytes, tn_error *err)
{
    pthread_mutex_lock(&lock);
    uint64_t ticket = last_ticket++;
    /* `taken` exceeds a budget that was lowered meanwhile */
    while (ticket != served || (bytes <= budget && (taken > budget || bytes > budget - taken)))
        pthread_cond_wait(&changed, &lock);
    served++;
    pthread_cond_broadcast(&changed);
    uint64_t most = budget;
    if (bytes <= most)
        taken += bytes;
    pthread_mutex_unlock(&lock);
    return bytes <= most ? TN_OK : refuse(bytes, most, err);
}

void tn_windows_give(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    taken -= bytes;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

uint64_t tn_windows_taken(void)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = taken;
    pthread_mutex_unlock(&lock);
    return bytes;
}
