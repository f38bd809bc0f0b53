/* bytes/leftover.c - what would be left if the process ended now. */
#include "bytes/leftover.h"
#include "bytes/sink_inside.h"

#include <tenon/writer.h>

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;        /* of the list, and of publishing */
static tn_leftover *first;

void tn_publishing_begin(void) { pthread_mutex_lock(&lock); }
void tn_publishing_end(void)   { pthread_mutex_unlock(&lock); }

void tn_leftover_add(tn_leftover *l)
{
    pthread_mutex_lock(&lock);
    l->next = first;
    l->is_listed = true;
    first = l;
    pthread_mutex_unlock(&lock);
}

void tn_leftover_remove(tn_leftover *l)
{
    if (!l->is_listed)
        return;
    pthread_mutex_lock(&lock);
    for (tn_leftover **at = &first; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    l->is_listed = false;
    pthread_mutex_unlock(&lock);
}

/* The lock is kept: nothing gets a name any more. */
void tn_abandon_files(void)
{
    pthread_mutex_lock(&lock);
    for (const tn_leftover *l = first; l; l = l->next)
        if (l->is_parking)
            tn_sink_empty_parking(l->folder, l->name);
        else if (*l->name)
            unlinkat(l->folder, l->name, 0);
}
