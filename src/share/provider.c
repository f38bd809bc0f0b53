/* share/provider.c - the one table of providers, in the order of tn_handle_query(). */
#include "share/provider.h"

#include <pthread.h>

static const tn_provider *const providers[] = {
    &tn_provider_memfd,
    &tn_provider_dma_buf,
    &tn_provider_cuda,
    &tn_provider_metal,
};

enum { COUNT = sizeof providers / sizeof *providers };

static struct {
    pthread_mutex_t lock;
    tn_handle_info  info[COUNT];        /* without a name: not asked yet */
} asked = { .lock = PTHREAD_MUTEX_INITIALIZER };

const tn_provider *tn_provider_for(tn_handle_type type)
{
    if (type == TN_HANDLE_NONE)
        return &tn_provider_private;
    for (size_t i = 0; i < COUNT; i++)
        if (providers[i]->type == type)
            return providers[i];
    return NULL;
}

/* Each on its own: asking for CUDA loads its driver. */
const tn_handle_info *tn_handle_query(size_t i)
{
    if (i >= COUNT)
        return NULL;
    tn_handle_info *info = &asked.info[i];
    pthread_mutex_lock(&asked.lock);
    if (!info->name) {
        info->type = providers[i]->type;
        info->available = providers[i]->query(&info->why);
        info->name = providers[i]->name;
    }
    pthread_mutex_unlock(&asked.lock);
    return info;
}
