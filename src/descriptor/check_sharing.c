/* descriptor/check_sharing.c - device, buffer handle, mapping, zero_copy_compatible. */
#include "descriptor/check.h"
#include "tensor/array.h"

#include <inttypes.h>

/* The memory of a CPU is not in another device. */
static void check_device(tn_checker *c)
{
    const tn_device *device = &c->d->device;
    if (device->id < 0)
        tn_error_at(c, "memory.device.id", "expected a number not below 0 but found %" PRId64, device->id);
    if (device->type == TN_DEVICE_CPU && device->space == TN_SPACE_DEVICE)
        tn_error_at(c, "memory.device.memory_space", "expected host or unified for a CPU but found device");
}

/* The size that the descriptor gives, or that its elements need. */
static bool buffer_size(const tn_checker *c, tn_wide *bytes)
{
    if (c->d->has_total) {
        *bytes = c->d->total_bytes;
        return true;
    }
    if (!c->type)
        return false;
    tn_wia_range span = tn_descriptor_span(c->d, &c->symbols, c->type->bits);
    *bytes = (span.high + 7) / 8;
    return !span.unbounded && *bytes <= UINT64_MAX;    /* more is reported of the memory */
}

/* The shared buffer holds the whole tensor, and its kind fits the device. */
static void check_handle(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    const tn_buffer_handle *h = &d->buffer_handle;
    tn_wide bytes;
    if (h->type == TN_HANDLE_NONE)
        return;
    if (h->type == TN_HANDLE_MEMFD && c->options.strict)
        tn_error_at(c, "buffer_handle.type", "expected dma_buf_fd, cuda_ipc or metal_shared, as in the "
                    "specification, but found \"memfd\"");
    if (h->handle < 0)
        tn_error_at(c, "buffer_handle.handle", "expected a number not below 0 but found %" PRId64, h->handle);
    if (buffer_size(c, &bytes) && h->size_bytes < bytes)
        tn_error_at(c, "buffer_handle.size_bytes", "expected at least the buffer's %s but found %" PRId64,
                    tn_wide_phrase(bytes).text, h->size_bytes);
    bool known = d->has_memory || !c->fragment;         /* else another part names the device */
    if (h->type == TN_HANDLE_CUDA_IPC && known && d->device.type != TN_DEVICE_GPU)
        tn_error_at(c, "buffer_handle.type", "expected memory.device of type GPU for cuda_ipc but found %s",
                    tn_device_type_name(d->device.type));
}

static void check_address(tn_checker *c, const char *path, uint64_t address)
{
    uint64_t alignment = c->d->alignment;
    if (alignment && address % alignment != 0)
        tn_error_at(c, path, "expected a multiple of the alignment %" PRIu64 " but found 0x%" PRIx64,
                    alignment, address);
}

/* Memory that only a device reaches has no CPU address; host memory is never device_only. */
static void check_mapping(tn_checker *c)
{
    const tn_wia_mapping *m = &c->d->mapping;
    if (!m->present)
        return;
    check_address(c, "mapping.device_address", m->device_address);
    if (m->cpu_mapped)
        check_address(c, "mapping.cpu_address", m->cpu_address);
    if (m->cpu_mapped && !m->cpu_device)
        tn_error_at(c, "mapping.cpu_address",
                    "expected null for access_mode device_only but found 0x%" PRIx64, m->cpu_address);
    if (!m->cpu_device && c->d->has_memory && c->d->device.space == TN_SPACE_HOST)
        tn_error_at(c, "mapping.access_mode",
                    "expected cpu_device for memory in the host but found device_only");
}

/* The receiver uses the bytes unchanged: in its byte order, aligned, page-locked if a device reads them. */
static void check_zero_copy(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    tn_handle_type handle = d->buffer_handle.type;
    bool swapped = d->byte_order != TN_LITTLE_ENDIAN && (!c->type || c->type->swap_bytes > 1);
    if (!d->has_properties || !d->zero_copy_compatible)
        return;
    if (swapped)
        tn_error_at(c, "dtype.byte_order",
                    "expected little_endian for a zero_copy_compatible tensor but found big_endian");
    if (d->alignment == 0)
        tn_error_at(c, "memory.alignment",
                    "expected at least 64 for a zero_copy_compatible tensor but found none");
    if (d->sparse.format)
        tn_error_at(c, "properties.zero_copy_compatible",
                    "expected false for data in the document but found true");
    if (handle != TN_HANDLE_NONE && handle != TN_HANDLE_MEMFD && d->device.space == TN_SPACE_HOST &&
        !d->is_pinned)
        tn_remark_at(c, "properties.is_pinned", "expected true for host memory behind %s but found false",
                     tn_handle_type_name(handle));
}

void tn_check_sharing(tn_checker *c)
{
    if (c->d->has_memory)
        check_device(c);
    check_handle(c);
    check_mapping(c);
    check_zero_copy(c);
}
