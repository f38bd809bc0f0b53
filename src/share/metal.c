/* share/metal.c - memory that Metal uses without a copy: an IOSurface of one row of bytes, which every
 * process can look up by its number.  Apple systems only.
 *
 * This code has only been compiled against the tests' replacement of IOSurface. */
#include "share/provider.h"

#ifdef __APPLE__

#include <CoreFoundation/CoreFoundation.h>
#include <IOSurface/IOSurface.h>

#include <string.h>

static bool query(const char **why)
{
    *why = "read-only is not enforced; every process that knows the number can use it";
    return true;
}

/* ---- allocating, freeing ---- */

static bool set_number(CFMutableDictionaryRef properties, CFStringRef key, int64_t value)
{
    CFNumberRef number = CFNumberCreate(kCFAllocatorDefault, kCFNumberSInt64Type, &value);
    if (!number)
        return false;
    CFDictionarySetValue(properties, key, number);
    CFRelease(number);
    return true;
}

/* kIOSurfaceIsGlobal lets other processes look it up.  Apple discourages it, but plain C has no other way. */
static IOSurfaceRef create(uint64_t bytes)
{
    IOSurfaceRef surface = NULL;
    CFMutableDictionaryRef properties = CFDictionaryCreateMutable(
        kCFAllocatorDefault, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    if (!properties)
        return NULL;
    CFDictionarySetValue(properties, kIOSurfaceIsGlobal, kCFBooleanTrue);
    if (set_number(properties, kIOSurfaceAllocSize, (int64_t)bytes) &&
        set_number(properties, kIOSurfaceWidth, (int64_t)bytes) &&
        set_number(properties, kIOSurfaceHeight, 1) && set_number(properties, kIOSurfaceBytesPerElement, 1) &&
        set_number(properties, kIOSurfaceBytesPerRow, (int64_t)bytes))
        surface = IOSurfaceCreate(properties);
    CFRelease(properties);
    return surface;
}

static void take(tn_buffer *b, IOSurfaceRef surface, unsigned flags)
{
    b->own = (void *)surface;
    b->base = IOSurfaceGetBaseAddress(surface);
    b->extent = IOSurfaceGetAllocSize(surface);
    b->data = (uint8_t *)b->base + b->offset;
    b->handle = IOSurfaceGetID(surface);
    b->flags = TN_MEM_SHARED | flags;
}

static tn_status allocate(tn_buffer *b, const tn_buffer_options *options, tn_error *err)
{
    if (options->flags & TN_MEM_PINNED)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "memory of type metal_shared cannot be pinned");
    IOSurfaceRef surface = create(b->size);
    TN_NEED(surface, err);
    uint64_t address = (uintptr_t)IOSurfaceGetBaseAddress(surface);
    if (address & (options->alignment - 1)) {
        CFRelease(surface);
        return tn_fail(err, TN_ERR_UNSUPPORTED, "alignment %llu: an IOSurface is where the system puts it",
                       (unsigned long long)options->alignment);
    }
    take(b, surface, 0);
    memset(b->data, 0, (size_t)b->size);
    return TN_OK;
}

static void free_metal(tn_buffer *b)
{
    CFRelease((IOSurfaceRef)b->own);
}

/* ---- access ---- */

static tn_status sync_surface(tn_buffer *b, bool begin, bool write, tn_error *err)
{
    IOSurfaceRef surface = (IOSurfaceRef)b->own;
    IOSurfaceLockOptions how = write ? 0 : kIOSurfaceLockReadOnly;
    long long result = begin ? IOSurfaceLock(surface, how, NULL) : IOSurfaceUnlock(surface, how, NULL);
    if (result == 0)
        return TN_OK;
    return tn_fail(err, TN_ERR_IO, "cannot %s an IOSurface: result %lld", begin ? "lock" : "unlock", result);
}

/* ---- handing over: the number, in the first four bytes of the handle ---- */

static tn_status export(tn_buffer *b, bool read_only, tn_exported *exported, tn_error *err)
{
    uint32_t id = (uint32_t)b->handle;
    if (read_only)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "an IOSurface cannot be exported read-only: it would not be enforced");
    memcpy(exported->opaque, &id, sizeof id);
    return TN_OK;
}

static tn_status import(tn_buffer *b, const tn_exported *e, bool allow_file, tn_error *err)
{
    (void)allow_file;
    uint32_t id;
    memcpy(&id, e->opaque, sizeof id);
    if (e->fd >= 0)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "expected an IOSurface's number alone but found a descriptor with it");
    IOSurfaceRef surface = IOSurfaceLookup(id);
    if (!surface)
        return tn_fail(err, TN_ERR_CORRUPT, "expected the number of an IOSurface but found %lu",
                       (unsigned long)id);
    tn_status status = tn_exported_check(e, IOSurfaceGetAllocSize(surface), err);
    if (status) {
        CFRelease(surface);
        return status;
    }
    take(b, surface, e->read_only ? TN_MEM_READ_ONLY : 0);
    return TN_OK;
}

#else

static bool query(const char **why)
{
    *why = "not an Apple system";
    return false;
}

#endif

const tn_provider tn_provider_metal = {
    .type = TN_HANDLE_METAL,
    .name = "metal_shared",
    .query = query,
#ifdef __APPLE__
    .allocate = allocate,
    .export = export,
    .import = import,
    .sync = sync_surface,
    .free = free_metal,
#endif
};
