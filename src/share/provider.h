/* share/provider.h - where memory that crosses process boundaries comes from:
 * one provider per handle type, one file per provider.
 *
 * buffer.c counts references and checks arguments; a provider does the rest and
 * is not called with what its fields do not allow. */
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
    unsigned           maps;            /* of device memory: tn_buffer_map() less tn_buffer_unmap() */
    int                fd;              /* owned, or -1 */
    int64_t            handle;          /* the number in the specification's JSON: fd, or one of the
                                         * provider's own */
    uint64_t           offset;          /* of data in what fd stands for */
    void              *base;            /* the mapping that data lies in, or NULL */
    uint64_t           extent;          /* of it */
    uint64_t           device_address;  /* or 0 */
    void              *own;             /* the provider's record of it, or NULL */
    void             (*release)(void *context);     /* of foreign memory */
    void              *context;
    tn_guard          *guard;           /* of an imported memfd or file, or NULL */
    bool               plain_file;      /* whoever may write it can truncate it */
};

struct tn_provider {
    tn_handle_type type;        /* NONE: memory of this process alone */
    const char    *name;        /* as the specification spells it */

    /* Whether it can be used here; *why as in tn_handle_info, static. */
    bool      (*query)(const char **why);

    /* The buffer is empty but for size, and fd is -1; alignment and flags are valid and have no zero for a
     * default.  Sets the flags that it has.  A failing allocate or import leaves nothing behind: free() is
     * not called. */
    tn_status (*allocate)(tn_buffer *buffer, const tn_buffer_options *options, tn_error *err);

    /* What cannot be done is NULL.  export: *exported has the type, the size, the offset, read_only and fd
     * -1.  import: the same fields of the buffer are set but for flags; on success, and only then, the
     * descriptor is the buffer's, as buffer->fd. */
    tn_status (*export)(tn_buffer *buffer, bool read_only, tn_exported *exported, tn_error *err);
    tn_status (*import)(tn_buffer *buffer, const tn_exported *exported, bool allow_file, tn_error *err);
    tn_status (*freeze)(tn_buffer *buffer, tn_error *err);
    tn_status (*map)(tn_buffer *buffer, tn_error *err);
    void      (*unmap)(tn_buffer *buffer);
    tn_status (*sync)(tn_buffer *buffer, bool begin, bool write, tn_error *err);

    /* Frees what it has of the buffer: mappings, descriptors.  Maps are taken back before. */
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
