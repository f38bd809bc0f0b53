/* share/attach.c - receives items from another process: all of them are checked, mapped and opened, or none.
 * They are received first, because the server has a time limit, and opened afterwards. */
#include "base/arena.h"
#include "base/options.h"
#include "base/vector.h"
#include "store/file.h"
#include "descriptor/descriptor.h"
#include "share/provider.h"
#include "share/socket.h"
#include "share/wire.h"

#include <tenon/share.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USUAL_PATIENCE = 5000 };

/* A tn_attached with what it owns. */
typedef struct item {
    tn_wire         wire;
    int             fd;         /* that came with it, or -1 */
    tn_attached     shown;
    tn_file        *file;
    tn_descriptors *set;
    tn_tensor       tensor;
} item;

struct tn_attachment {
    tn_arena arena;             /* names, shapes */
    item    *items;             /* never moved: TN_WIRE_MAX_ITEMS of them fit */
    size_t   count;
    size_t   withheld;
};

/* One connection. */
typedef struct visit {
    tn_attach_options options;
    int               fd;
    int64_t           deadline;
    uint8_t          *bytes;    /* TN_WIRE_MAX of them */
    tn_attachment    *a;
} visit;

/* ---- access and freeing ---- */

size_t tn_attached_count(const tn_attachment *a)    { return a ? a->count : 0; }
size_t tn_attached_withheld(const tn_attachment *a) { return a ? a->withheld : 0; }

const tn_attached *tn_attached_at(const tn_attachment *a, size_t i)
{
    return i < tn_attached_count(a) ? &a->items[i].shown : NULL;
}

static void free_item(item *it)
{
    tn_close(it->file);
    tn_descriptors_free(it->set);
    tn_buffer_unref(it->shown.buffer);
    tn_wire_free(&it->wire);
    if (it->fd >= 0)
        close(it->fd);
}

void tn_detach(tn_attachment *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->count; i++)
        free_item(&a->items[i]);
    free(a->items);
    tn_arena_free(&a->arena);
    free(a);
}

/* ---- one item ---- */

/* Checked first: on a file system that the peer controls, even fstat() might never return. */
static tn_status check_seals(int fd, int wanted, tn_error *err)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0)
        return tn_fail(err, TN_ERR_CORRUPT, "expected a sealed memfd but found another kind of descriptor");
    if ((seals & wanted) != wanted)
        return tn_fail(err, TN_ERR_CORRUPT, "expected a memfd with seals 0x%x but found 0x%x",
                       (unsigned)wanted, (unsigned)seals);
    return TN_OK;
}

/* An index must not change while it is read, so F_SEAL_FUTURE_WRITE is not enough. */
static tn_status open_file(const visit *v, item *it, tn_error *err)
{
    const tn_wire *p = &it->wire;
    tn_exported exported = { .type = TN_HANDLE_MEMFD, .bytes = p->bytes, .read_only = true, .fd = it->fd };
    tn_open_options options = { .size = sizeof options, .format = p->in_place ? p->format : "ztensor",
                                .max_bytes = v->options.max_bytes };
    if (p->in_place && !v->options.in_place)
        return tn_fail(err, TN_ERR_CORRUPT, "a plain file, which was not asked for");
    TN_TRY(p->in_place ? TN_OK : check_seals(it->fd, F_SEAL_SHRINK | F_SEAL_WRITE, err));
    TN_TRY(tn_buffer_import(&exported, p->in_place, &it->shown.buffer, err));
    it->fd = exported.fd;
    TN_TRY(tn_open_memory(tn_buffer_data(it->shown.buffer), (size_t)p->bytes, &options, &it->file, err));
    if (p->in_place)
        tn_source_watch(it->file->shards[0].source, it->shown.buffer->guard, it->shown.buffer->fd);
    it->shown.file = it->file;
    return TN_OK;
}

static tn_status open_tensor(const visit *v, item *it, tn_error *err)
{
    tn_wire *p = &it->wire;
    const tn_buffer_handle *h = &p->tensor->buffer_handle;
    tn_exported exported = {
        .type = h->type, .bytes = (uint64_t)h->size_bytes, .offset = p->offset, .read_only = h->read_only,
        .fd = it->fd
    };
    memcpy(exported.opaque, p->opaque, sizeof exported.opaque);
    bool sealed = h->type == TN_HANDLE_MEMFD && !v->options.in_place;
    TN_TRY(sealed ? check_seals(it->fd, F_SEAL_SHRINK, err) : TN_OK);
    TN_TRY(tn_buffer_import(&exported, v->options.in_place, &it->shown.buffer, err));
    it->fd = exported.fd;
    TN_TRY(tn_wire_tensor(p->tensor, tn_buffer_data(it->shown.buffer), tn_buffer_size(it->shown.buffer),
                          &v->a->arena, &it->tensor, err));
    it->set = p->set;
    p->set = NULL;
    tn_descriptor *own = &it->set->items[0];
    own->buffer_handle = tn_buffer_handle_of(it->shown.buffer);
    own->mapping = tn_buffer_mapping_of(it->shown.buffer);
    it->shown.tensor = &it->tensor;
    it->shown.descriptor = own;
    return TN_OK;
}

static tn_status check_name(const tn_attachment *a, const char *name, tn_error *err)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i].shown.name, name) == 0)
            return tn_fail(err, TN_ERR_CORRUPT, "%s is offered twice", tn_quote_z(name).text);
    return TN_OK;
}

/* Keeps an item to open it later. */
static tn_status take_item(const visit *v, tn_wire *p, int *fd, tn_error *err)
{
    tn_attachment *a = v->a;
    const char *name = p->kind == TN_WIRE_FILE ? p->name : p->tensor->name;
    if (a->count == TN_WIRE_MAX_ITEMS)
        return tn_fail(err, TN_ERR_LIMIT, "expected at most %u items but there are more", TN_WIRE_MAX_ITEMS);
    TN_TRY(check_name(a, name, err));
    a->items[a->count++] = (item){ .wire = *p, .fd = *fd, .shown.name = name };
    p->set = NULL;
    *fd = -1;
    return TN_OK;
}

static tn_status open_all(const visit *v, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < v->a->count && !status; i++) {
        item *it = &v->a->items[i];
        tn_error why = { .offset = TN_NO_OFFSET };
        status = it->wire.kind == TN_WIRE_FILE ? open_file(v, it, &why) : open_tensor(v, it, &why);
        tn_in_file(status, it->shown.name, &why);
        if (status && err)
            *err = why;
    }
    return status;
}

/* ---- the protocol ---- */

static tn_status receive(const visit *v, size_t *n, int *descriptor, tn_error *err)
{
    tn_moved moved = TN_MOVED_DONE;
    do {
        if (moved == TN_MOVED_SHORT)
            tn_socket_rest();
        TN_TRY(tn_socket_wait(v->fd, POLLIN, v->deadline, err));
        TN_TRY(tn_socket_receive(v->fd, v->bytes, TN_WIRE_MAX, n, descriptor, &moved, err));
    } while (moved == TN_MOVED_LATER || moved == TN_MOVED_SHORT);
    if (moved == TN_MOVED_CLOSED)
        return tn_fail(err, TN_ERR_TRUNCATED, "the other end has hung up after %zu item%s, before the end",
                       v->a->count, v->a->count == 1 ? "" : "s");
    return TN_OK;
}

static tn_status take_packet(const visit *v, tn_wire *p, int *fd, bool *end, tn_error *err)
{
    switch (p->kind) {
    case TN_WIRE_FILE:
    case TN_WIRE_TENSOR:
        return take_item(v, p, fd, err);
    case TN_WIRE_END:
        *end = true;
        v->a->withheld = (size_t)p->withheld;
        if (p->items != v->a->count)
            return tn_fail(err, TN_ERR_CORRUPT, "expected %" PRIu64 " items but %zu came", p->items,
                           v->a->count);
        return TN_OK;
    case TN_WIRE_REFUSED:
        return tn_fail(err, TN_ERR_IO, "refused: %s", tn_quote_z(p->why).text);
    default:
        return tn_fail_at(err, TN_ERR_CORRUPT, 6, "a packet of kind %d, as only those who attach send",
                          (int)p->kind);
    }
}

static tn_status next_packet(const visit *v, bool *end, tn_error *err)
{
    int fd = -1;
    size_t n;
    tn_wire p = { .set = NULL };
    tn_status status = receive(v, &n, &fd, err);
    if (!status)
        status = tn_wire_decode(v->bytes, n, fd >= 0, &v->a->arena, &p, err);
    if (!status)
        status = take_packet(v, &p, &fd, end, err);
    if (fd >= 0)
        close(fd);
    tn_wire_free(&p);
    return status;
}

static tn_status check_owner(const visit *v, tn_error *err)
{
    tn_peer peer;
    tn_status status = tn_socket_peer(v->fd, &peer, err);
    if (status || peer.uid == geteuid() || peer.uid == 0 ||
        tn_is_among(peer.uid, v->options.uids, v->options.nuids))
        return status;
    return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_UIDS, NULL,
                     "offered by user %" PRIu32 ", who is not trusted: expected user %" PRIu32
                     " or root, or one that was named",
                     peer.uid, (uint32_t)geteuid());
}

/* *heard is false if the server has closed the connection; it may have sent a reason. */
static tn_status say(const visit *v, tn_wire_kind kind, bool *heard, tn_error *err)
{
    tn_buf packet = { 0 };
    tn_moved moved = TN_MOVED_DONE;
    tn_status status = tn_wire_encode(&(tn_wire){ .kind = kind, .in_place = v->options.in_place }, &packet,
                                      err);
    do {
        if (moved == TN_MOVED_SHORT)
            tn_socket_rest();
        if (!status && moved != TN_MOVED_DONE)
            status = tn_socket_wait(v->fd, POLLOUT, v->deadline, err);
        if (!status)
            status = tn_socket_send(v->fd, packet.data, packet.size, -1, &moved, err);
    } while (!status && (moved == TN_MOVED_LATER || moved == TN_MOVED_SHORT));
    tn_buf_free(&packet);
    *heard = moved != TN_MOVED_CLOSED;
    return status;
}

/* Connects and sends HELLO.  A server with too many silent connections closes the oldest; then we connect
 * again until the deadline. */
static tn_status greet(visit *v, const char *path, tn_error *err)
{
    for (;;) {
        bool heard = false;
        tn_status status = tn_socket_connect(path, v->deadline, &v->fd, err);
        if (!status)
            status = check_owner(v, err);
        if (!status)
            status = say(v, TN_WIRE_HELLO, &heard, err);
        if (status || heard || tn_socket_has_packet(v->fd) || tn_clock() >= v->deadline)
            return status;
        close(v->fd);
        v->fd = -1;
        tn_socket_rest();
    }
}

static tn_status converse(const visit *v, tn_error *err)
{
    bool end = false, heard;
    TN_TRY(next_packet(v, &end, err));
    while (!end) {
        TN_TRY(say(v, TN_WIRE_NEXT, &heard, err));
        TN_TRY(next_packet(v, &end, err));
    }
    return TN_OK;
}

static tn_attachment *new_attachment(void)
{
    tn_attachment *a = calloc(1, sizeof *a);
    if (a)
        a->items = calloc(TN_WIRE_MAX_ITEMS, sizeof *a->items);
    if (a && !a->items) {
        free(a);
        return NULL;
    }
    return a;
}

/* The callback may fill in no more than a text. */
static tn_status ask_connected(const visit *v, tn_error *err)
{
    if (err)
        *err = (tn_error){ .offset = TN_NO_OFFSET };
    return v->options.connected(v->options.context, err);
}

tn_status tn_share_attach(const char *path, const tn_attach_options *options, tn_attachment **attachment,
                          tn_error *err)
{
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(attachment, "a place for the attachment", err);
    visit v = { .fd = -1 };
    TN_TRY(tn_take_options(TN_SIZED(tn_attach_options, context), &v.options, options, err));
    TN_GIVEN(v.options.uids || !v.options.nuids, "the users", err);
    v.bytes = malloc(TN_WIRE_MAX);
    v.a = new_attachment();
    v.deadline = tn_clock() + (v.options.patience ? v.options.patience : USUAL_PATIENCE);
    tn_status status = v.bytes && v.a ? greet(&v, path, err) : tn_fail_nomem(err);
    if (!status && v.options.connected)
        status = ask_connected(&v, err);
    if (!status)
        status = converse(&v, err);
    if (v.fd >= 0)
        close(v.fd);
    if (!status)
        status = open_all(&v, err);
    free(v.bytes);
    if (status)
        tn_detach(v.a);
    else
        *attachment = v.a;
    return status;
}
