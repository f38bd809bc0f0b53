/* share/buffer.c - counts references, checks arguments and calls the provider. */
#include "base/checked.h"
#include "base/options.h"
#include "bytes/guard.h"
#include "share/provider.h"

#include <tenon/device.h>

#include <stdlib.h>
#include <unistd.h>

#define MAX_ALIGNMENT ((uint64_t)2 << 20)
#define MAX_BYTES     ((uint64_t)PTRDIFF_MAX / 2)      /* leaves room to round up */
#define ASKED_FLAGS   (TN_MEM_PINNED | TN_MEM_SHARED | TN_MEM_HUGE)

static tn_buffer *new_buffer(const tn_provider *provider, uint64_t bytes)
{
    tn_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    atomic_init(&b->references, 1);
    b->provider = provider;
    b->size = bytes;
    b->fd = -1;
    return b;
}

/* ---- allocating ---- */

static tn_status check_options(uint64_t bytes, tn_buffer_options *o, tn_error *err)
{
    if (bytes == 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "a buffer of 0 bytes: expected at least 1");
    if (o->flags & ~(unsigned)ASKED_FLAGS)
        return tn_fail(err, TN_ERR_ARGUMENT, "flags 0x%x: expected of PINNED, SHARED and HUGE (0x%x) only",
                       o->flags, (unsigned)ASKED_FLAGS);
    if (o->alignment && (!tn_is_power_of_two(o->alignment) || o->alignment > MAX_ALIGNMENT))
        return tn_fail(err, TN_ERR_ARGUMENT, "alignment %llu: expected a power of two up to %llu",
                       (unsigned long long)o->alignment, (unsigned long long)MAX_ALIGNMENT);
    if (bytes > MAX_BYTES)
        return tn_fail_nomem(err);
    const tn_device_info *host = tn_device_query(0);
    if (o->alignment == 0)
        o->alignment = host->recommended_alignment;
    if (o->alignment < host->min_alignment)
        o->alignment = host->min_alignment;
    if (o->type == TN_HANDLE_NONE && o->flags & TN_MEM_SHARED)
        o->type = TN_HANDLE_MEMFD;
    return TN_OK;
}

/* NULL, with the reason, if there is none. */
static const tn_provider *find_provider(tn_handle_type type, tn_error *err)
{
    const tn_provider *provider = tn_provider_for(type);
    if (!provider)
        tn_fail(err, TN_ERR_UNSUPPORTED, "handle type %d is not in this build", (int)type);
    return provider;
}

tn_status tn_buffer_new(uint64_t bytes, const tn_buffer_options *options, tn_buffer **buffer, tn_error *err)
{
    TN_GIVEN(buffer, "a place for the buffer", err);
    tn_buffer_options own = { .size = sizeof own };
    TN_TRY(tn_take_options(TN_SIZED(tn_buffer_options, alignment), &own, options, err));
    TN_TRY(check_options(bytes, &own, err));
    const tn_provider *provider = find_provider(own.type, err);
    const char *why;
    if (!provider)
        return TN_ERR_UNSUPPORTED;
    if (!provider->query(&why))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "%s is not available: %s", provider->name, why);
    tn_buffer *b = new_buffer(provider, bytes);
    tn_status status = b ? provider->allocate(b, &own, err) : tn_fail_nomem(err);
    if (status)
        free(b);
    else
        *buffer = b;
    return status;
}

tn_status tn_buffer_wrap(void *data, uint64_t bytes, bool read_only, void (*release)(void *context),
                         void *context, tn_buffer **buffer, tn_error *err)
{
    TN_GIVEN(buffer, "a place for the buffer", err);
    if (!data && bytes)
        return tn_fail(err, TN_ERR_ARGUMENT, "%llu bytes at address NULL", (unsigned long long)bytes);
    if (bytes > PTRDIFF_MAX)
        return tn_fail(err, TN_ERR_ARGUMENT, "%llu bytes are more than memory can have",
                       (unsigned long long)bytes);
    tn_buffer *b = new_buffer(&tn_provider_private, bytes);
    TN_NEED(b, err);
    b->data = data;
    b->flags = read_only ? TN_MEM_READ_ONLY : 0;
    b->release = release;
    b->context = context;
    *buffer = b;
    return TN_OK;
}

/* ---- counting ---- */

tn_buffer *tn_buffer_ref(tn_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

void tn_buffer_unref(tn_buffer *buffer)
{
    if (!buffer || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1)
        return;
    if (buffer->maps && buffer->provider->unmap)
        buffer->provider->unmap(buffer);
    buffer->provider->free(buffer);
    free(buffer);
}

/* ---- properties ---- */

uint64_t tn_buffer_size(const tn_buffer *buffer)  { return buffer ? buffer->size : 0; }
unsigned tn_buffer_flags(const tn_buffer *buffer) { return buffer ? buffer->flags : 0; }
void    *tn_buffer_data(const tn_buffer *buffer)  { return buffer ? buffer->data : NULL; }

bool tn_buffer_broken(const tn_buffer *buffer)
{
    uint64_t at;
    return buffer && buffer->guard && tn_guard_harm(buffer->guard, &at) != TN_HARM_NONE;
}

tn_buffer_handle tn_buffer_handle_of(const tn_buffer *buffer)
{
    if (!(tn_buffer_flags(buffer) & TN_MEM_SHARED))
        return (tn_buffer_handle){ .type = TN_HANDLE_NONE };
    return (tn_buffer_handle){
        .type = buffer->provider->type,
        .handle = buffer->handle,
        .size_bytes = (int64_t)buffer->size,
        .read_only = buffer->flags & TN_MEM_READ_ONLY,
    };
}

/* For the CPU as a device, the address of host memory is the CPU's. */
tn_wia_mapping tn_buffer_mapping_of(const tn_buffer *buffer)
{
    if (!(tn_buffer_flags(buffer) & TN_MEM_SHARED))
        return (tn_wia_mapping){ .present = false };
    uint64_t address = (uintptr_t)buffer->data;
    return (tn_wia_mapping){
        .present = true,
        .device_address = buffer->device_address ? buffer->device_address : address,
        .cpu_mapped = buffer->data != NULL,
        .cpu_address = address,
        .cpu_device = buffer->data || buffer->provider->map,
    };
}

/* ---- access ---- */

tn_status tn_buffer_map(tn_buffer *buffer, tn_error *err)
{
    TN_GIVEN(buffer, "a buffer", err);
    if (!buffer->data && buffer->size && !buffer->provider->map)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "memory of type %s cannot be mapped for the CPU",
                       buffer->provider->name);
    if (buffer->maps == 0 && buffer->provider->map)
        TN_TRY(buffer->provider->map(buffer, err));
    buffer->maps++;
    return TN_OK;
}

void tn_buffer_unmap(tn_buffer *buffer)
{
    if (buffer && buffer->maps && --buffer->maps == 0 && buffer->provider->unmap)
        buffer->provider->unmap(buffer);
}

static tn_status sync_buffer(tn_buffer *buffer, bool begin, bool write, tn_error *err)
{
    TN_GIVEN(buffer, "a buffer", err);
    if (write && buffer->flags & TN_MEM_READ_ONLY)
        return tn_fail(err, TN_ERR_ARGUMENT, "to be written, but the buffer is read-only");
    return buffer->provider->sync ? buffer->provider->sync(buffer, begin, write, err) : TN_OK;
}

tn_status tn_buffer_begin(tn_buffer *buffer, bool write, tn_error *err)
{
    return sync_buffer(buffer, true, write, err);
}

tn_status tn_buffer_end(tn_buffer *buffer, bool write, tn_error *err)
{
    return sync_buffer(buffer, false, write, err);
}

tn_status tn_buffer_freeze(tn_buffer *buffer, tn_error *err)
{
    TN_GIVEN(buffer, "a buffer", err);
    if (!buffer->provider->freeze)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "memory of type %s cannot be frozen: a memfd can",
                       buffer->provider->name);
    return buffer->provider->freeze(buffer, err);
}

/* ---- export and import ---- */

tn_status tn_buffer_export(tn_buffer *buffer, bool read_only, tn_exported *exported, tn_error *err)
{
    TN_GIVEN(buffer, "a buffer", err);
    TN_GIVEN(exported, "a place for the handle", err);
    if (!(buffer->flags & TN_MEM_SHARED) || !buffer->provider->export)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "memory of this process alone cannot be exported: "
                       "ask for TN_MEM_SHARED when it is made");
    if (!read_only && buffer->flags & TN_MEM_READ_ONLY)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "cannot be exported for writing: the buffer is read-only");
    tn_exported own = {
        .type = buffer->provider->type, .bytes = buffer->size, .offset = buffer->offset,
        .read_only = read_only, .fd = -1
    };
    TN_TRY(buffer->provider->export(buffer, read_only, &own, err));
    *exported = own;
    return TN_OK;
}

void tn_exported_close(tn_exported *exported)
{
    if (!exported)
        return;
    if (exported->fd >= 0)
        close(exported->fd);
    exported->fd = -1;
}

tn_status tn_exported_check(const tn_exported *e, uint64_t size, tn_error *err)
{
    if (e->offset <= size && e->bytes <= size - e->offset)
        return TN_OK;
    return tn_fail(err, TN_ERR_CORRUPT, "the handle says %llu bytes at byte %llu but there are %llu in all",
                   (unsigned long long)e->bytes, (unsigned long long)e->offset, (unsigned long long)size);
}

tn_status tn_buffer_import(tn_exported *exported, bool allow_file, tn_buffer **buffer, tn_error *err)
{
    TN_GIVEN(exported, "a handle", err);
    TN_GIVEN(buffer, "a place for the buffer", err);
    const tn_provider *provider = find_provider(exported->type, err);
    if (!provider)
        return TN_ERR_UNSUPPORTED;
    if (exported->type == TN_HANDLE_NONE)
        return tn_fail(err, TN_ERR_ARGUMENT, "a handle without a type");
    if (!provider->import)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "%s is not available here", provider->name);
    if (exported->bytes == 0)
        return tn_fail(err, TN_ERR_CORRUPT, "a handle for 0 bytes: expected at least 1");
    if (exported->bytes > MAX_BYTES)
        return tn_fail(err, TN_ERR_LIMIT, "a handle for %llu bytes: expected at most %llu",
                       (unsigned long long)exported->bytes, (unsigned long long)MAX_BYTES);
    tn_buffer *b = new_buffer(provider, exported->bytes);
    TN_NEED(b, err);
    b->offset = exported->offset;
    tn_status status = provider->import(b, exported, allow_file, err);
    if (status) {
        free(b);
        return status;
    }
    exported->fd = -1;
    *buffer = b;
    return TN_OK;
}
