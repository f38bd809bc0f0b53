/* tenon/buffer.h - memory that tensors lie in: counted, aligned, pinned, handed
 * over to other processes.
 *
 * A buffer is one range of memory with a counted reference: tn_buffer_ref() and
 * tn_buffer_unref() may be called from any thread; whoever drops the last one
 * frees the memory.  What the memory holds is the business of those who share
 * it: a buffer has no lock.  Everything else here is thread-safe for different
 * buffers, and for one buffer where it does not map or unmap it. */
#ifndef TENON_BUFFER_H
#define TENON_BUFFER_H

#include <tenon/descriptor.h>
#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_buffer tn_buffer;

enum {                          /* tn_buffer_options.flags, tn_buffer_flags() */
    TN_MEM_PINNED    = 1,       /* page-locked: stays resident.  That its physical address stays, too, only a
                                 * device driver that registers it can promise */
    TN_MEM_SHARED    = 2,       /* can be exported */
    TN_MEM_HUGE      = 4,       /* asks for huge pages; on tn_buffer_flags(): it has them, or gets as many as
                                 * the kernel finds */
    TN_MEM_READ_ONLY = 8        /* set by import, wrapping and files, never asked for */
};
#define WIA_MEM_PINNED TN_MEM_PINNED    /* the specification's word */

typedef struct tn_buffer_options {
    size_t         size;        /* sizeof(tn_buffer_options), set by the caller */
    tn_handle_type type;        /* what it will be exported as; NONE: this process's alone, or memfd with
                                 * TN_MEM_SHARED */
    unsigned       flags;
    uint64_t       alignment;   /* of its address: a power of two up to 2 MiB; 0: 256; less than 64 counts as
                                 * 64 */
} tn_buffer_options;

/* Allocates new memory, all zero.  `options` may be NULL.
 *
 * TN_ERR_ARGUMENT: options that make no sense, no bytes.  TN_ERR_UNSUPPORTED: a
 * type that is not available, as tn_handle_query() says why.  TN_ERR_LIMIT: it
 * cannot be pinned: the text has the limit and how to raise it.  TN_ERR_NOMEM. */
TN_API tn_status tn_buffer_new(uint64_t bytes, const tn_buffer_options *options, tn_buffer **buffer,
                               tn_error *err);

/* Makes a buffer of the caller's own memory; release(context) is called once, by
 * whoever drops the last reference (may be NULL).  No bytes are allowed, and
 * `data` may be NULL then. */
TN_API tn_status tn_buffer_wrap(void *data, uint64_t bytes, bool read_only, void (*release)(void *context),
                                void *context, tn_buffer **buffer, tn_error *err);

/* Maps the stored bytes of a part as a buffer that outlives the file:
 * raw, dense parts in host byte order whose file is mapped.  It can be
 * exported, read-only, and what is exported is the file (see tenon/share.h for
 * what that means to those who map it, and tn_buffer_broken() for this process).
 * TN_ERR_UNSUPPORTED: other parts, empty ones too: read them into a new buffer. */
TN_API tn_status tn_buffer_of_part(const tn_file *file, const tn_part *part, tn_buffer **buffer,
                                   tn_error *err);

TN_API tn_buffer *tn_buffer_ref(tn_buffer *buffer);     /* Takes a reference and returns the buffer. */
TN_API void       tn_buffer_unref(tn_buffer *buffer);   /* Drops a reference; NULL is allowed. */

TN_API uint64_t tn_buffer_size(const tn_buffer *buffer);    /* The size in bytes. */
TN_API unsigned tn_buffer_flags(const tn_buffer *buffer);   /* What kind of memory it is: TN_MEM_* bits. */

/* The address at which the CPU sees it; NULL for memory of a device that is not mapped. */
TN_API void *tn_buffer_data(const tn_buffer *buffer);

/* Map memory of a device for the CPU, and take that back; both count.  Memory
 * of the host is always mapped. */
TN_API tn_status tn_buffer_map(tn_buffer *buffer, tn_error *err);
TN_API void      tn_buffer_unmap(tn_buffer *buffer);

/* Gives up writing, for good and for everybody (F_SEAL_WRITE): the memory stays where
 * it is, read-only.  No other thread may use the buffer meanwhile.
 * TN_ERR_UNSUPPORTED, and nothing has changed: not a memfd; mapped for writing
 * elsewhere, too; exported read-only before; read-only here, but not to its owner. */
TN_API tn_status tn_buffer_freeze(tn_buffer *buffer, tn_error *err);

/* Begin and end what the CPU does to memory that a device works on, too: dma_buf needs
 * it; cuda_ipc, too: there the CPU sees a copy that begin() fetches and end() of
 * writing puts back.  For others it does nothing. */
TN_API tn_status tn_buffer_begin(tn_buffer *buffer, bool write, tn_error *err);
TN_API tn_status tn_buffer_end(tn_buffer *buffer, bool write, tn_error *err);

/* ---- handles ---- */

/* What a WIA-AI-011 descriptor says of the buffer in this process; type NONE
 * and no mapping where it cannot be exported. */
TN_API tn_buffer_handle tn_buffer_handle_of(const tn_buffer *buffer);
TN_API tn_wia_mapping       tn_buffer_mapping_of(const tn_buffer *buffer);

/* A handle on its way to another process. */
typedef struct tn_exported {
    tn_handle_type type;
    uint64_t       bytes;
    uint64_t       offset;      /* of the buffer in what the handle stands for */
    bool           read_only;   /* the kernel enforces it (dma_buf, cuda_ipc: nobody does, see
                                 * tn_handle_query()) */
    int            fd;          /* owned, close-on-exec; -1: none */
    uint8_t        opaque[64];  /* CUDA's handle */
} tn_exported;

/* Makes a handle that another process can import.  To be closed by tn_exported_close().
 *
 * `read_only`: that process, and those it hands it to, cannot write.  A memfd is
 * sealed for this: after tn_buffer_freeze() nobody can write; else this process and
 * those that map it for writing already can go on (F_SEAL_FUTURE_WRITE, Linux
 * 5.1), but nobody can be given it for writing any more: a seal cannot be taken
 * back.  Whoever gets a handle gets the whole of what it stands for, not only the
 * buffer's part of it.
 *
 * TN_ERR_UNSUPPORTED: a type that cannot enforce read_only; for writing: a
 * read-only buffer, or one that was exported read-only before. */
TN_API tn_status tn_buffer_export(tn_buffer *buffer, bool read_only, tn_exported *exported, tn_error *err);
TN_API void      tn_exported_close(tn_exported *exported);      /* Closes an exported handle. */

/* Maps the memory behind a handle; takes its descriptor only on success.  Nothing
 * in the handle is believed: TN_ERR_CORRUPT: a memfd that can still shrink, that is
 * shorter than it says, or read-only without the seal.  A plain file (type
 * MEMFD, opened for reading) is mapped only where `allow_file`: see tn_buffer_broken(). */
TN_API tn_status tn_buffer_import(tn_exported *exported, bool allow_file, tn_buffer **buffer, tn_error *err);

/* Whether reading imported memory, or a part's, met what is not there: somebody
 * has cut the file, or the system has no page for a hole that a peer has made.
 * From then on that reads as zero (instead of the SIGBUS that would end the
 * process), and nobody else sees what is written there.  Such a buffer installs a handler for
 * SIGBUS, for good, which hands on what does not concern it to the one before; a
 * program that installs its own while there are such buffers has to do the same. */
TN_API bool tn_buffer_broken(const tn_buffer *buffer);

/* ---- what this machine has ---- */

typedef struct tn_handle_info {
    tn_handle_type type;
    const char    *name;        /* "dma_buf_fd" */
    bool           available;
    const char    *why;         /* not available: "no /dev/udmabuf"; else what is to be known of it, or "" */
} tn_handle_info;

/* Handle type i of this machine: memfd, dma_buf_fd, cuda_ipc, metal_shared; NULL when i is out of
 * range.  Lives as long as the library. */
TN_API const tn_handle_info *tn_handle_query(size_t i);

#ifdef __cplusplus
}
#endif
#endif
