/* share/device.c - devices and their requirements for memory.  So far there is only the host. */
#include <tenon/buffer.h>
#include <tenon/device.h>
#include <tenon/layout.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIN_ALIGNMENT         64
#define RECOMMENDED_ALIGNMENT 256
#define MAX_LAYOUTS           32

/* The handle types for host memory, as in tn_handle_query().  Asking for cuda_ipc would load its driver. */
static const size_t host_handles[] = { 0, 1, 3 };
enum { MAX_HANDLES = sizeof host_handles / sizeof *host_handles };

static struct {
    pthread_once_t once;
    tn_device_info info;
    tn_dtype       types[TN_DTYPE_COUNT];
    const char    *layouts[MAX_LAYOUTS];
    tn_handle_type handles[MAX_HANDLES];
} host = { .once = PTHREAD_ONCE_INIT };

static uint64_t system_number(int name)
{
    long number = sysconf(name);
    return number > 0 ? (uint64_t)number : 0;
}

static uint64_t memory_bytes(uint64_t page)
{
    uint64_t bytes;
    return __builtin_mul_overflow(system_number(_SC_PHYS_PAGES), page, &bytes) ? 0 : bytes;
}

/* The default huge page size, or 0. */
static uint64_t huge_page_size(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[200];
    unsigned long long kib = 0;
    while (f && kib == 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "Hugepagesize: %llu kB", &kib) != 1)
            kib = 0;
    if (f)
        fclose(f);
    return kib < UINT64_MAX / 1024 ? kib * 1024 : 0;
}

static uint64_t pinned_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return 0;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
}

static void list_types(tn_device_info *d)
{
    for (tn_dtype type = TN_UNKNOWN + 1; type < TN_DTYPE_COUNT; type++)
        if (tn_dtype_get(type))
            host.types[d->ntypes++] = type;
    d->types = host.types;
}

static void list_layouts(tn_device_info *d)
{
    const tn_layout_info *layout;
    while (d->nlayouts < MAX_LAYOUTS && (layout = tn_layout_at(d->nlayouts)))
        host.layouts[d->nlayouts++] = layout->name;
    d->layouts = host.layouts;
}

static void list_handles(tn_device_info *d)
{
    for (size_t i = 0; i < MAX_HANDLES; i++) {
        const tn_handle_info *handle = tn_handle_query(host_handles[i]);
        if (handle->available)
            host.handles[d->nhandles++] = handle->type;
    }
    d->handles = host.handles;
}

static void ask_host(void)
{
    tn_device_info *d = &host.info;
    *d = (tn_device_info){
        .name = "host",
        .device = { .type = TN_DEVICE_CPU, .id = 0, .space = TN_SPACE_HOST },
        .min_alignment = MIN_ALIGNMENT,
        .recommended_alignment = RECOMMENDED_ALIGNMENT,
        .page_size = system_number(_SC_PAGESIZE),
        .huge_page_size = huge_page_size(),
        .max_pinned_bytes = pinned_limit(),
        .max_rank = TN_MAX_RANK,
    };
    d->memory_bytes = memory_bytes(d->page_size);
    list_types(d);
    list_layouts(d);
    list_handles(d);
}

const tn_device_info *tn_device_query(size_t i)
{
    if (i > 0)
        return NULL;
    pthread_once(&host.once, ask_host);
    return &host.info;
}
