/* tenon/share.h - tensors handed to other processes without a copy, over a Unix
 * domain socket.
 *
 *     tn_share_offer()   binds a socket
 *     tn_offer_file()    offers all tensors of a file, in sealed memory
 *     tn_offer_tensor()  offers one tensor that lies in a buffer
 *     tn_offer_run()     answers whoever may attach
 *
 *     tn_share_attach()  connects, receives, maps, and is done with the socket
 *
 * A peer is believed nothing: see docs/sharing.md for the wire format and what a
 * hostile one can and cannot do. */
#ifndef TENON_SHARE_H
#define TENON_SHARE_H

#include <tenon/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- offering ---- */

typedef struct tn_offer tn_offer;

typedef struct tn_offer_options {
    size_t          size;       /* sizeof(tn_offer_options), set by the caller */
    const uint32_t *uids;       /* who may attach besides the user of this process */
    size_t          nuids;
    const uint32_t *gids;       /* members of these groups may, too */
    size_t          ngids;
    unsigned        max_clients;        /* at a time; 0: 256; more wait */
    unsigned        patience;           /* milliseconds that a client has, from its connection to its last
                                           packet; 0: 5000.  To its first it has 1000 at most */
    void          (*log)(void *context, const char *text);      /* who came and what was odd; may be NULL */
    void           *context;
} tn_offer_options;

/* Binds `path` and listens; nobody is answered before tn_offer_run().  A socket
 * that nobody listens on any more is replaced.  TN_ERR_EXISTS: somebody does, or
 * something else stands there.  TN_ERR_ARGUMENT: a path too long for a socket.
 * The socket's permissions are 0600; where other users or groups are named, 0666,
 * and whoever else connects is told no. */
TN_API tn_status tn_share_offer(const char *path, const tn_offer_options *options, tn_offer **offer,
                                tn_error *err);

/* What is offered must be so before tn_offer_run(); at most 1024 items, each under
 * a name of its own of up to 1024 bytes. */

/* Offers all tensors of an open file under `name` (copied): they are decoded
 * and copied once into sealed memory (a zTensor image), their checksums checked
 * on the way; `file` is not needed afterwards.  `in_place`: nothing is copied; the file
 * itself (a single one, not sharded) is offered, read-only, to peers that ask
 * for it so, and to no others: whoever can write the file can change or cut it
 * under them.  Errors as of tn_convert(), texts too; TN_ERR_UNSUPPORTED: cannot be offered in place. */
TN_API tn_status tn_offer_file(tn_offer *offer, const char *name, const tn_file *file, bool in_place,
                               tn_error *err);

/* Offers a dense tensor (or one with strides that are not negative) whose data begins at byte `offset` of a
 * buffer that can be exported; the offer holds a reference.  Its description takes less than 64 KiB
 * (TN_ERR_LIMIT).  `writable`: peers may write, and everyone sees it; else see tn_buffer_export() for who
 * still can: the seal that it sets stays, even if the offer fails afterwards.  A tensor in a plain file
 * (tn_buffer_of_part()) is offered as one in place is. */
TN_API tn_status tn_offer_tensor(tn_offer *offer, const tn_tensor *tensor, tn_buffer *buffer, uint64_t offset,
                                 bool writable, tn_error *err);

/* Gives up what answering does not need (seccomp): from here on no thread of the
 * process can open a file, execute a program, begin a thread or connect anywhere;
 * what is not on the list in docs/sharing.md fails with EPERM.  There is no way back.
 * *how (may be NULL) says what was done.  TN_ERR_UNSUPPORTED: this build or kernel
 * cannot. */
TN_API tn_status tn_offer_confine(tn_offer *offer, const char **how, tn_error *err);

/* Answers until tn_offer_stop(), with one thread.  A client that is slow, lies
 * or dies costs nobody else anything.  TN_ERR_IO: the socket failed. */
TN_API tn_status tn_offer_run(tn_offer *offer, tn_error *err);

/* Ends tn_offer_run(), for good: from any thread or signal handler, before or while it runs. */
TN_API void tn_offer_stop(tn_offer *offer);

/* Removes the socket, unless another stands in its place, and frees all.  What
 * clients have mapped stays theirs.  In a child of the process that offers, the
 * socket stays.  NULL is allowed. */
TN_API void tn_offer_close(tn_offer *offer);

/* ---- attaching ---- */

typedef struct tn_attachment tn_attachment;

typedef struct tn_attach_options {
    size_t          size;       /* sizeof(tn_attach_options), set by the caller */
    const uint32_t *uids;       /* who may offer besides the user of this process and root */
    size_t          nuids;
    bool            in_place;   /* files as they are, see tn_offer_file(); tn_buffer_broken() tells when one
                                 * was cut */
    unsigned        patience;   /* milliseconds that it may take to receive all; 0: 5000 */
    uint64_t        max_bytes;  /* of files: see tn_open_options */

    /* Called when the connection is there and hello was said, before anything that
     * the other end says is read: tn_attach_confine() belongs here.  An error ends
     * the attaching; may be NULL. */
    tn_status     (*connected)(void *context, tn_error *err);
    void           *context;
} tn_attach_options;

/* What was offered: all tensors of a file, or one. */
typedef struct tn_attached {
    const char          *name;
    const tn_file       *file;          /* or NULL */
    const tn_tensor     *tensor;        /* or NULL; its data is in the buffer: NULL for a device's memory,
                                         * which tn_buffer_map() maps */
    const tn_descriptor *descriptor;    /* of the tensor, with handle and mapping as they are in this process;
                                         * or NULL */
    tn_buffer           *buffer;        /* that holds it */
} tn_attached;

/* Attaches to all that is offered at `path`, or to nothing.  Error texts begin
 * with the item concerned, where there is one.
 *
 * TN_ERR_IO: nobody offers there, refused us, or does not answer in time.
 * TN_ERR_ARGUMENT: offered by a user that is not trusted.  TN_ERR_CORRUPT,
 * TN_ERR_TRUNCATED, TN_ERR_LIMIT: the peer does not speak as it should, or speaks of
 * what is not there.  TN_ERR_UNSUPPORTED: a later version's words, or a handle that
 * cannot be had here. */
TN_API tn_status tn_share_attach(const char *path, const tn_attach_options *options,
                                 tn_attachment **attachment, tn_error *err);

/* Gives up what looking at, checking and saving offered tensors does not need
 * (seccomp): from here on no thread of the process can execute a program, begin a
 * process or connect anywhere; what is not on the list in docs/sharing.md fails
 * with EPERM.  There is no way back, and nobody is confined who does not call this.
 *
 * Files can be opened only where there is an `out`, which is to be written afterwards,
 * or where `temporary` files may be needed (for compressed files that are taken in
 * place).  Where the kernel has Landlock (Linux 5.13) this thread, and those it
 * begins, can open, make and remove files in the folder of `out` and in $TMPDIR (or
 * /var/tmp and /tmp), and beneath them, and nowhere else; *how (may be NULL) says
 * what was done.  Memory of CUDA can no longer be attached to.  TN_ERR_UNSUPPORTED:
 * this build or kernel cannot. */
TN_API tn_status tn_attach_confine(const char *out, bool temporary, const char **how, tn_error *err);

/* How many items were offered. */
TN_API size_t             tn_attached_count(const tn_attachment *attachment);

/* Item i; NULL when out of range. */
TN_API const tn_attached *tn_attached_at(const tn_attachment *attachment, size_t i);

/* How many files are offered in place and were not sent, because in_place was not asked for. */
TN_API size_t tn_attached_withheld(const tn_attachment *attachment);

/* Gives everything back, but buffers that were referenced.  NULL is allowed. */
TN_API void tn_detach(tn_attachment *attachment);

#ifdef __cplusplus
}
#endif
#endif
