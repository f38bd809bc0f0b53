/* share/offer.c - items offered to other processes: files as images in sealed memory, plain files, tensors in
 * buffers.  share/server.c sends them. */
#include "base/options.h"
#include "store/file.h"
#include "formats/raw/raw.h"
#include "verbs/convert.h"
#include "share/provider.h"
#include "share/server.h"
#include "share/wire.h"
#include "tensor/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    USUAL_CLIENTS  = 256,
    MOST_CLIENTS   = 65536,
    USUAL_PATIENCE = 5000,
    PAGE           = 4096       /* the alignment of any mapping */
};

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

/* ---- the offer ---- */

static uint32_t *copy_ids(const uint32_t *ids, size_t n)
{
    uint32_t *copy = calloc(n ? n : 1, sizeof *copy);
    if (copy && n)
        memcpy(copy, ids, n * sizeof *copy);
    return copy;
}

static tn_status take_options(tn_offer *o, const char *path, const tn_offer_options *given, tn_error *err)
{
    TN_TRY(tn_take_options(TN_SIZED(tn_offer_options, context), &o->options, given, err));
    if (o->options.max_clients > MOST_CLIENTS)
        return tn_fail(err, TN_ERR_ARGUMENT, "%u clients at a time: expected at most %d",
                       o->options.max_clients, MOST_CLIENTS);
    TN_GIVEN(o->options.uids || !o->options.nuids, "the users", err);
    TN_GIVEN(o->options.gids || !o->options.ngids, "the groups", err);
    o->options.max_clients = o->options.max_clients ? o->options.max_clients : USUAL_CLIENTS;
    o->options.patience = o->options.patience ? o->options.patience : USUAL_PATIENCE;
    o->uid = geteuid();
    o->uids = copy_ids(o->options.uids, o->options.nuids);
    o->gids = copy_ids(o->options.gids, o->options.ngids);
    o->path = strdup(path);
    o->clients = calloc(o->options.max_clients, sizeof *o->clients);
    o->polls = calloc((size_t)o->options.max_clients + 2, sizeof *o->polls);
    return o->uids && o->gids && o->path && o->clients && o->polls ? TN_OK : tn_fail_nomem(err);
}

tn_status tn_share_offer(const char *path, const tn_offer_options *options, tn_offer **offer, tn_error *err)
{
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(offer, "a place for the offer", err);
    tn_offer *o = calloc(1, sizeof *o);
    TN_NEED(o, err);
    o->stop = -1;
    o->socket = (tn_server_socket){ .fd = -1, .folder = -1 };
    tn_status status = take_options(o, path, options, err);
    if (!status && (o->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        status = tn_fail_errno(err, errno, "cannot make an eventfd");
    mode_t mode = o->options.nuids || o->options.ngids ? 0666 : 0600;   /* the kernel says who attaches */
    if (!status)
        status = tn_server_socket_open(o->path, mode, &o->socket, err);
    if (status)
        tn_offer_close(o);
    else
        *offer = o;
    return status;
}

static void free_item(tn_offered *item)
{
    free(item->name);
    tn_buf_free(&item->packet);
    if (item->fd >= 0)
        close(item->fd);
    tn_buffer_unref(item->buffer);
}

void tn_offer_close(tn_offer *o)
{
    if (!o)
        return;
    tn_server_socket_close(&o->socket);
    for (size_t i = 0; i < o->nitems; i++)
        free_item(&o->items[i]);
    if (o->stop >= 0)
        close(o->stop);
    free(o->items);
    free(o->clients);
    free(o->polls);
    free(o->uids);
    free(o->gids);
    free(o->path);
    free(o);
}

/* ---- items ---- */

static tn_status check_name(const tn_offer *o, const char *name, tn_error *err)
{
    size_t n = strlen(name);
    if (n < 1 || n > TN_WIRE_MAX_NAME || tn_utf8_valid(name, n) != n)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a name of 1 to %u bytes of UTF-8 but found %zu bytes",
                       TN_WIRE_MAX_NAME, n);
    for (size_t i = 0; i < o->nitems; i++)
        if (strcmp(o->items[i].name, name) == 0)
            return tn_fail(err, TN_ERR_ARGUMENT, "%s is offered already", tn_quote_z(name).text);
    if (o->nitems == TN_WIRE_MAX_ITEMS)
        return tn_fail(err, TN_ERR_LIMIT, "%s would be one more than the %u that can be offered",
                       tn_quote_z(name).text, TN_WIRE_MAX_ITEMS);
    return TN_OK;
}

/* Takes ownership of the descriptor and the reference, also on failure. */
static tn_status add_item(tn_offer *o, const char *name, const tn_wire *packet, int fd, tn_buffer *buffer,
                          tn_error *err)
{
    tn_offered item = { .name = strdup(name), .fd = fd, .in_place = packet->in_place, .buffer = buffer };
    bool room = TN_GROW(o->items, o->nitems, o->item_cap) && item.name;
    tn_status status = room ? tn_wire_encode(packet, &item.packet, err) : tn_fail_nomem(err);
    if (status)
        free_item(&item);
    else
        o->items[o->nitems++] = item;
    return status;
}

/* ---- files ---- */

static tn_status of_file(const tn_file *file, tn_status status, tn_error *err)
{
    return tn_in_file(status, tn_file_shard_name(file, 0), err);
}

/* Writes the tensors of `file` to memory and seals it. */
static tn_status make_image(const tn_file *file, int fd, uint64_t *bytes, tn_error *err)
{
    tn_create_options create = { .size = sizeof create, .format = "ztensor", .checksum = TN_CHECKSUM_CRC32C };
    tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE,
                                   .checksum = TN_CHOOSE };
    struct stat st;
    TN_TRY(tn_convert_into(file, fd, "shared memory", &options, err));
    if (fcntl(fd, F_ADD_SEALS, SEALS) != 0 || fstat(fd, &st) != 0)
        return tn_fail_errno(err, errno, "shared memory: cannot seal it");
    *bytes = (uint64_t)st.st_size;
    return TN_OK;
}

static tn_status offer_image(tn_offer *o, const char *name, const tn_file *file, tn_error *err)
{
    tn_wire packet = { .kind = TN_WIRE_FILE, .name = name, .format = "ztensor" };
    int fd = tn_memfd_create(0);
    if (fd < 0)
        return tn_fail_errno(err, errno, "shared memory: cannot make any");
    tn_status status = make_image(file, fd, &packet.bytes, err);
    if (status) {
        close(fd);
        return status;
    }
    return of_file(file, add_item(o, name, &packet, fd, NULL, err), err);
}

/* The whole file as one buffer that can be exported. */
static tn_status whole_file(const tn_file *file, tn_buffer **buffer, tn_error *err)
{
    int64_t size = (int64_t)tn_file_size(file);
    const tn_stored stored = { .size = (uint64_t)size };
    tn_part whole = {
        .role = "file", .array = { .dtype = TN_UINT8, .rank = 1, .shape = &size }, .nbytes = (uint64_t)size,
        .stored = &stored,
    };
    if (tn_file_shards(file) != 1)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "it has %zu files: only a single file can be offered in place",
                       tn_file_shards(file));
    return tn_buffer_of_part(file, &whole, buffer, err);
}

static tn_status offer_file_itself(tn_offer *o, const char *name, const tn_file *file, tn_error *err)
{
    tn_buffer *buffer;
    tn_exported exported;
    TN_TRY(whole_file(file, &buffer, err));
    tn_status status = tn_buffer_export(buffer, true, &exported, err);
    if (status) {
        tn_buffer_unref(buffer);
        return status;
    }
    tn_wire packet = { .kind = TN_WIRE_FILE, .name = name, .format = tn_file_format(file),
                       .bytes = exported.bytes, .in_place = true };
    return add_item(o, name, &packet, exported.fd, buffer, err);
}

tn_status tn_offer_file(tn_offer *o, const char *name, const tn_file *file, bool in_place, tn_error *err)
{
    TN_GIVEN(o, "an offer", err);
    TN_GIVEN(name, "a name", err);
    TN_GIVEN(file, "a file", err);
    tn_status status = check_name(o, name, err);
    if (status)
        return of_file(file, status, err);
    return in_place ? of_file(file, offer_file_itself(o, name, file, err), err)
                    : offer_image(o, name, file, err);
}

/* ---- tensors ---- */

static tn_status check_tensor(const tn_tensor *t, const tn_buffer *buffer, uint64_t offset, uint64_t *span,
                              tn_error *err)
{
    uint64_t size = tn_buffer_size(buffer);
    if (t->form != TN_FORM_DENSE || t->nparts != 1)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a dense tensor but found form %s",
                       tn_quote_z(tn_tensor_form_name(t)).text);
    const tn_array *a = &t->parts[0].array;
    tn_status status = a->stride ? tn_strided_nbytes(a->dtype, a->rank, a->shape, a->stride, span)
                                 : tn_array_nbytes(a, span);
    if (status)
        return tn_fail(err, status,
                       "expected a shape and strides that are not negative, of a known type, with a size "
                       "below 2^63");
    if (offset > size || *span > size - offset)
        return tn_fail(err, TN_ERR_ARGUMENT, "it takes %llu bytes from byte %llu on but the buffer has %llu",
                       (unsigned long long)*span, (unsigned long long)offset, (unsigned long long)size);
    return TN_OK;
}

/* The alignment of its address in any process; 0: below 64. */
static uint64_t alignment_of(const tn_exported *e, uint64_t offset)
{
    uint64_t bits = e->offset | offset | PAGE, lowest = bits & (~bits + 1);
    return lowest < 64 ? 0 : lowest;
}

/* A tensor in a buffer, and the export of the buffer. */
typedef struct shared_tensor {
    const tn_tensor *tensor;
    tn_buffer       *buffer;
    tn_exported      exported;
    uint64_t         offset, span;      /* bytes of the buffer that its elements take */
} shared_tensor;

static tn_status describe(const shared_tensor *s, tn_arena *arena, tn_descriptor *d, tn_error *err)
{
    const tn_tensor *t = s->tensor;
    const tn_exported *e = &s->exported;
    tn_raw_subject subject = {
        .tensor = t, .meta = t->meta, .nmeta = t->nmeta, .offset = s->offset,
        .end = s->offset + s->span, .align = alignment_of(e, s->offset),
        .stride = t->parts[0].array.stride, .in_place = alignment_of(e, s->offset) != 0,
    };
    TN_TRY(tn_raw_describe(&subject, arena, d, err));
    d->buffer_handle = tn_buffer_handle_of(s->buffer);
    d->buffer_handle.handle = 0;
    d->buffer_handle.read_only = e->read_only;
    d->is_pinned = tn_buffer_flags(s->buffer) & TN_MEM_PINNED;
    if (e->type == TN_HANDLE_CUDA_IPC)
        d->device = (tn_device){ .type = TN_DEVICE_GPU, .space = TN_SPACE_DEVICE };
    tn_tensor ignored;          /* offer only what a client would accept */
    return tn_wire_tensor(d, NULL, tn_buffer_size(s->buffer), arena, &ignored, err);
}

/* Otherwise a peer with write access could seal the memory against all other writers. */
static void keep_writable(const tn_exported *e)
{
    if (e->type == TN_HANDLE_MEMFD && !e->read_only)
        (void)fcntl(e->fd, F_ADD_SEALS, F_SEAL_SEAL);   /* fails only if it is already sealed */
}

static tn_status offer_exported(tn_offer *o, shared_tensor *s, tn_error *err)
{
    tn_exported *e = &s->exported;
    tn_arena arena = { 0 };
    tn_descriptor d;
    tn_status status = describe(s, &arena, &d, err);
    if (!status) {
        tn_wire packet = { .kind = TN_WIRE_TENSOR, .offset = e->offset, .tensor = &d,
                           .in_place = s->buffer->plain_file };
        memcpy(packet.opaque, e->opaque, sizeof packet.opaque);
        status = add_item(o, s->tensor->name, &packet, e->fd, tn_buffer_ref(s->buffer), err);
        if (!status)
            keep_writable(e);
        e->fd = -1;
    }
    tn_exported_close(e);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_offer_tensor(tn_offer *o, const tn_tensor *tensor, tn_buffer *buffer, uint64_t offset,
                          bool writable, tn_error *err)
{
    TN_GIVEN(o, "an offer", err);
    TN_GIVEN(tensor && tensor->name, "a tensor with a name", err);
    TN_GIVEN(buffer, "a buffer", err);
    shared_tensor shared = { .tensor = tensor, .buffer = buffer, .offset = offset };
    TN_TRY(check_name(o, tensor->name, err));
    TN_TRY(tn_in_tensor(check_tensor(tensor, buffer, offset, &shared.span, err), tensor->name, err));
    TN_TRY(tn_buffer_export(buffer, !writable, &shared.exported, err));
    return offer_exported(o, &shared, err);
}
