/* share/private.c - memory of this process alone: anonymous pages, and memory
 * that somebody else has made. */
#include "base/checked.h"
#include "share/map.h"
#include "share/provider.h"

#include <tenon/device.h>

#include <sys/mman.h>

static bool query(const char **why)
{
    *why = "";
    return true;
}

/* Huge pages from the pool that the administrator has set aside; else what the
 * kernel makes of ordinary ones. */
static tn_status map_huge(tn_buffer *b, tn_map_request r, uint64_t huge_page, tn_error *err)
{
    if (r.alignment < huge_page)
        r.alignment = huge_page;
    tn_map_request pool = r;
    pool.grain = huge_page;
    pool.flags |= MAP_HUGETLB;
    if (tn_map(&pool, &b->base, NULL) == TN_OK) {
        b->flags = TN_MEM_HUGE;
        return TN_OK;
    }
    tn_status status = tn_map(&r, &b->base, err);
    if (!status && tn_map_huge(b->base, r.extent, false))
        b->flags = TN_MEM_HUGE;
    return status;
}

static tn_status allocate(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    uint64_t page = tn_page_size(), huge_page = tn_device_query(0)->huge_page_size;
    bool huge = options->flags & TN_MEM_HUGE && huge_page;
    tn_map_request r = {
        .grain = page, .alignment = options->alignment, .protection = PROT_READ | PROT_WRITE,
        .flags = MAP_PRIVATE | MAP_ANONYMOUS, .fd = -1,
    };
    if (!tn_align_u64(b->size, huge ? huge_page : page, &r.extent))
        return tn_fail_nomem(err);
    tn_status status = huge ? map_huge(b, r, huge_page, err) : tn_map(&r, &b->base, err);
    if (status)
        return status;
    if (options->flags & TN_MEM_PINNED && (status = tn_pin(b->base, r.extent, err))) {
        tn_unmap(b->base, r.extent);
        return status;
    }
    b->data = b->base;
    b->extent = r.extent;
    b->flags |= options->flags & TN_MEM_PINNED;
    return TN_OK;
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
