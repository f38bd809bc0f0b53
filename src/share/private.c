/* share/private.c - memory of this process only: anonymous pages, and memory of the caller. */
#include "base/checked.h"
#include "share/provider.h"

#include <tenon/device.h>

#include <sys/mman.h>

static bool query(const char **why)
{
    *why = "";
    return true;
}

/* Huge pages come from the pool of the administrator; else the kernel may combine ordinary ones. */
static tn_status map_huge(tn_buffer *b, tn_map_request r, uint64_t huge_page, tn_map_pages_fn map,
                          tn_error *err)
{
    if (r.alignment < huge_page)
        r.alignment = huge_page;
    tn_map_request pool = r;
    pool.grain = huge_page;
    bool huge = map(b, pool, true, NULL) == TN_OK;
    tn_status status = huge ? TN_OK : map(b, r, false, err);
    if (huge || (!status && tn_map_huge(b->base, r.extent, b->fd >= 0)))
        b->flags = TN_MEM_HUGE;
    return status;
}

tn_status tn_allocate_pages(tn_buffer *b, const tn_buffer_options *options, tn_map_pages_fn map,
                            tn_error *err)
{
    uint64_t huge_page = options->flags & TN_MEM_HUGE ? tn_device_query(0)->huge_page_size : 0;
    tn_map_request r = { .grain = tn_page_size(), .alignment = options->alignment,
                         .protection = PROT_READ | PROT_WRITE };
    if (!tn_align_u64(b->size, huge_page ? huge_page : r.grain, &r.extent))
        return tn_fail_nomem(err);
    tn_status status = huge_page ? map_huge(b, r, huge_page, map, err) : map(b, r, false, err);
    if (status)
        return status;
    if (options->flags & TN_MEM_PINNED && (status = tn_pin(b->base, b->extent, err))) {
        b->provider->free(b);
        return status;
    }
    b->data = b->base;
    b->flags |= options->flags & TN_MEM_PINNED;
    return TN_OK;
}

static tn_status map_private(tn_buffer *b, tn_map_request r, bool pool, tn_error *err)
{
    r.flags = MAP_PRIVATE | MAP_ANONYMOUS | (pool ? MAP_HUGETLB : 0);
    r.fd = -1;
    b->extent = r.extent;
    return tn_map(&r, &b->base, err);
}

static tn_status allocate(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    return tn_allocate_pages(b, options, map_private, err);
}

static void free_private(tn_buffer *b)
{
    if (b->base)
        tn_unmap(b->base, b->extent);
    if (b->release)
        b->release(b->context);
}

const tn_provider tn_provider_private = {
    .type = TN_HANDLE_NONE,
    .name = "private",
    .query = query,
    .allocate = allocate,
    .free = free_private,
};
