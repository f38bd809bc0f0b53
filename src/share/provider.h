/* share/provider.h - memory that crosses process boundaries: one provider per handle type, one file each.
 *
 * buffer.c counts references and checks arguments; a provider does the rest. */
#ifndef TN_SHARE_PROVIDER_H
#define TN_SHARE_PROVIDER_H

#include "base/error.h"
#include "share/map.h"

#include <tenon/buffer.h>

#include <stdatomic.h>

typedef struct tn_provider tn_provider;
typedef struct tn_guard tn_guard;

struct tn_buffer {
    atomic_uint        references;
    const tn_provider *provider;
    uint8_t           *data;            /* for the CPU, or NULL */
    uint64_t           size;
    unsigned           flags;
    unsigned           maps;            /* device memory: calls of tn_buffer_map() minus tn_buffer_unmap() */
    int                fd;              /* owned, or -1 */
    int64_t            handle;          /* the number in WIA-AI-011 JSON: fd, or the provider's own */
    uint64_t           offset;          /* of data in the memory or file behind fd */
    void              *base;            /* the mapping that contains data, or NULL */
    uint64_t           extent;          /* of the mapping */
    uint64_t           device_address;  /* or 0 */
    void              *own;             /* the provider's state, or NULL */
    void             (*release)(void *context);     /* for memory of the caller */
    void              *context;
    tn_guard          *guard;           /* of an imported memfd or file, or NULL */
    bool               plain_file;      /* its writers can truncate it */
};

struct tn_provider {
    tn_handle_type type;        /* NONE: memory of this process alone */
    const char    *name;        /* as the specification spells it */

    /* Whether it can be used here; *why as in tn_handle_info, a static text. */
    bool      (*query)(const char **why);

    /* Only the size of the buffer is set, and fd is -1; alignment and flags are valid and not 0.  Sets the
     * buffer's flags.  After a failing allocate or import free() is not called. */
    tn_status (*allocate)(tn_buffer *buffer, const tn_buffer_options *options, tn_error *err);

    /* NULL: not supported.  export: *exported has the type, size, offset and read_only, and fd -1.  import:
     * the buffer has size and offset; on success it owns the descriptor as buffer->fd. */
    tn_status (*export)(tn_buffer *buffer, bool read_only, tn_exported *exported, tn_error *err);
    tn_status (*import)(tn_buffer *buffer, const tn_exported *exported, bool allow_file, tn_error *err);
    tn_status (*freeze)(tn_buffer *buffer, tn_error *err);
    tn_status (*map)(tn_buffer *buffer, tn_error *err);
    void      (*unmap)(tn_buffer *buffer);
    tn_status (*sync)(tn_buffer *buffer, bool begin, bool write, tn_error *err);

    /* Frees mappings and descriptors.  The buffer is unmapped before. */
    void      (*free)(tn_buffer *buffer);
};

/* A memfd without bytes that can be sealed, close-on-exec; -1 with errno. */
int tn_memfd_create(unsigned flags);

/* The same with `size` bytes and these seals. */
tn_status tn_memfd_new(unsigned flags, uint64_t size, int seals, int *fd, tn_error *err);

/* Maps new pages for a buffer as the request says: base, extent and fd.  `pool`: from the huge pages that the
 * administrator has set aside, of the request's grain. */
typedef tn_status (*tn_map_pages_fn)(tn_buffer *buffer, tn_map_request request, bool pool, tn_error *err);

/* The allocate() of memory of the host: huge or ordinary pages, pinned if that is asked for. */
tn_status tn_allocate_pages(tn_buffer *buffer, const tn_buffer_options *options, tn_map_pages_fn map,
                            tn_error *err);

/* TN_ERR_CORRUPT: a handle for more than the `size` bytes that there are. */
tn_status tn_exported_check(const tn_exported *exported, uint64_t size, tn_error *err);

/* NULL: none of that type in this build. */
const tn_provider *tn_provider_for(tn_handle_type type);

extern const tn_provider tn_provider_private;   /* private.c: anonymous and foreign memory */
extern const tn_provider tn_provider_memfd;
extern const tn_provider tn_provider_dma_buf;
extern const tn_provider tn_provider_cuda;
extern const tn_provider tn_provider_metal;

#endif
