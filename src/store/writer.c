/* store/writer.c - writing a tensor file: declaring, streaming, finishing. */
#include "store/writer.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "bytes/sink_set.h"
#include "bytes/spill.h"
#include "store/file.h"
#include "store/publish.h"
#include "tensor/array.h"
#include "tensor/block.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Every container is written little-endian, straight from memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "writing on a big-endian machine needs swapping here");

tn_status tn_writer_is_good(const tn_writer *w, tn_error *err)
{
    return w->failed ? tn_fail(err, w->failed, "an earlier call failed: %s", tn_status_text(w->failed))
                     : TN_OK;
}

tn_status tn_writer_settle(tn_writer *w, tn_status status, tn_error *err)
{
    if (status && !w->failed)
        w->failed = status;
    return tn_in_file(status, w->path, err);
}

/* ---- options ---- */

static tn_status check_codec(const tn_format *f, const tn_codec *codec, tn_error *err)
{
    if (codec->id == TN_ENCODING_RAW || (f->info.compresses && tn_format_takes(f, codec)))
        return TN_OK;
    if (!f->info.compresses)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_ENCODING, "none", "%s cannot hold compressed data",
                         f->info.name);
    const char *own = f->archive_codec ? tn_encoding_name(f->archive_codec) : tn_codec_usual()->name;
    return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_ENCODING, own, "%s is compressed with %s but found %s",
                     f->info.name, own, codec->name);
}

static tn_status check_options(tn_writer *w, tn_error *err)
{
    tn_create_options *o = &w->options;
    const tn_format_info *info = &w->format->info;
    if (!info->writes)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s cannot be written", info->name);
    const tn_codec *codec = tn_codec_of(o->encoding);
    if (!codec || (codec->decode && !codec->encode) || o->checksum > TN_CHECKSUM_SHA256)
        return tn_fail(err, TN_ERR_ARGUMENT, "an encoding or checksum that this build cannot make");
    TN_TRY(check_codec(w->format, codec, err));
    if (o->checksum != TN_CHECKSUM_NONE && !info->checksums)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_CHECKSUM, "none", "%s cannot hold checksums",
                         info->name);
    if (o->shard_size && !info->shards)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s has no shards", info->name);
    codec = codec->encode ? codec : tn_codec_usual();
    if (o->level < codec->level_min() || o->level > codec->level_max())
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a %s level from %d to %d but found %d", codec->name,
                       codec->level_min(), codec->level_max(), o->level);
    o->align = o->align ? o->align : w->format->usual_align;
    o->align = o->align ? o->align : w->format->min_align;
    if (!tn_is_power_of_two(o->align) || o->align < w->format->min_align || o->align > UINT64_C(1) << 30)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an alignment that is a power of two from %" PRIu64
                       " to 2^30 but found %" PRIu64, w->format->min_align, o->align);
    return tn_writer_take_format_options(w, err);
}

static tn_status choose_format(tn_writer *w, tn_error *err)
{
    const char *name = w->options.format;
    w->format = name ? tn_format_find(name) : tn_format_by_suffix(w->path);
    if (w->format)
        return TN_OK;
    if (name)
        return tn_fail(err, TN_ERR_ARGUMENT, "no container is called %s (see: tenon formats)",
                       tn_quote_z(name).text);
    return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_FORMAT, NULL,
                     "its suffix names no format: say which of \"tenon formats\" it is");
}

tn_status tn_writer_new(const char *path, const tn_create_options *given, bool dry_run, tn_writer **writer,
                        tn_error *err)
{
    tn_create_options options = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_create_options, nformat_options), &options, given, err));
    tn_writer *w = calloc(1, sizeof *w);
    if (!w)
        return tn_fail_nomem(err);
    w->options = options;
    w->options.jobs = w->options.jobs ? w->options.jobs : tn_core_count();
    w->dry_run = dry_run;
    w->fd = options.to_fd ? options.fd : -1;
    w->current = SIZE_MAX;
    w->path = tn_arena_text(&w->arena, path, strlen(path));
    tn_status status = w->path && tn_names_init(&w->names, 0) ? choose_format(w, err) : tn_fail_nomem(err);
    if (!status)
        status = check_options(w, err);
    if (status) {
        tn_writer_abandon(w);
        return status;
    }
    w->ocp_names = tn_writer_choice(w, TN_OCP_NAMES) != 0;
    *writer = w;
    return TN_OK;
}

tn_status tn_create(const char *path, const tn_create_options *options, tn_writer **writer, tn_error *err)
{
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(writer, "a place for the writer", err);
    return tn_writer_new(path, options, false, writer, err);
}

/* ---- placing ---- */

tn_out_file *tn_writer_next_file(tn_writer *w)
{
    if (!TN_GROW(w->files, w->nfiles, w->files_cap))
        return NULL;
    w->files[w->nfiles] = (tn_out_file){ .path = NULL };
    return &w->files[w->nfiles];
}

/* Replaces the input only if nobody changed it. In a large set only the first two paths are compared, which
 * name the other files; for all shards the file itself. */
static void expect_input(const tn_writer *w, tn_sink *sink)
{
    for (size_t i = 0; w->reading && i < w->reading->nshards; i++) {
        const tn_shard *shard = &w->reading->shards[i];
        const tn_identity *read = tn_source_identity(shard->source);
        if (read && tn_sink_replaces(sink, read, shard->number < 2 ? shard->path : NULL))
            tn_sink_expect(sink, read, false);
    }
}

/* Members are found in the folder of the file that names them, however that is reached. */
static tn_status check_beside(const tn_writer *w, const tn_out_file *f, tn_error *err)
{
    if (w->fd >= 0 || w->nfiles == 0 || !w->files[0].member || tn_sink_is_far(f->sink) ||
        tn_sink_is_beside(f->sink, f->path))
        return TN_OK;
    return tn_fail(err, TN_ERR_IO, "%s is a symbolic link into another folder, but its data would be in the "
                   "folder of the link: remove it, or give the path that it leads to",
                   tn_quote_z(f->path).text);
}

tn_status tn_writer_add_file(tn_writer *w, const char *path, uint32_t *file, tn_error *err)
{
    tn_out_file *f = tn_writer_next_file(w);
    if (!f || !(f->path = tn_arena_text(&w->arena, path, strlen(path))))
        return tn_fail_nomem(err);
    tn_status status = w->fd >= 0 ? tn_sink_open_fd(w->fd, &f->sink, err)
                                  : tn_sink_open(path, w->options.replace, &f->sink, err);
    if (status)
        return status;
    status = check_beside(w, f, err);
    if (status) {
        tn_sink_abandon(f->sink);
        return status;
    }
    tn_sink_listen(f->sink, (tn_listener){ w->options.note, w->options.note_context, f->path });
    expect_input(w, f->sink);
    if (w->dry_run) {           /* it could be written: a dry run needs no more */
        tn_sink_abandon(f->sink);
        f->sink = NULL;
    }
    f->object = tn_is_url(path) ? f->path : NULL;
    *file = (uint32_t)w->nfiles++;
    return TN_OK;
}

tn_status tn_writer_add_memory(tn_writer *w, uint64_t size, uint32_t *file, tn_error *err)
{
    tn_out_file *f = tn_writer_next_file(w);
    if (!f || !(f->memory = tn_arena_zalloc(&w->arena, size, 1)))
        return tn_fail_nomem(err);
    *file = (uint32_t)w->nfiles++;
    return TN_OK;
}

tn_status tn_writer_put(tn_writer *w, uint32_t file, uint64_t offset, const void *data, size_t n,
                        tn_error *err)
{
    if (w->files[file].memory && n)
        memcpy(w->files[file].memory + offset, data, n);
    tn_status status = w->files[file].sink ? tn_sink_write(w->files[file].sink, offset, data, n, err) : TN_OK;
    if (!status && w->files[file].sink)
        tn_sink_begin_sync(w->files[file].sink, offset, n);
    return tn_in_file(status, w->path, err);
}

tn_status tn_writer_check_file_meta(const tn_writer *w, const char *format, tn_error *err)
{
    if (!w->nmeta || w->count || w->options.drop_metadata)
        return TN_OK;
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                     "%s keeps a file's metadata with its first tensor and there is none", format);
}

tn_status tn_writer_plan(tn_writer *w, tn_error *err)
{
    tn_error own;
    err = err ? err : &own;
    if (w->planned)
        return tn_writer_is_good(w, err);
    w->planned = true;
    tn_status status = tn_writer_is_good(w, err);
    if (!status)
        status = tn_meta_check_unique(w->meta, w->nmeta, TN_NO_OFFSET, err);
    if (!status)
        status = w->format->plan(w, err);
    if (!status)
        status = tn_writer_name_objects(w, err);
    for (size_t i = 0; i < w->count && !status; i++)    /* now it is known which have a checksum */
        if (w->entries[i].checksum != TN_CHECKSUM_NONE &&
            !(w->entries[i].digest = tn_arena_zalloc(&w->arena, 1, sizeof(tn_digest))))
            status = tn_fail_nomem(err);
    return tn_writer_settle(w, status, err);
}

tn_status tn_writer_place(tn_writer *w, size_t entry, uint64_t size, tn_error *err)
{
    tn_out_entry *e = &w->entries[entry];
    tn_out_file *f = &w->files[e->file];
    e->size = size;
    if (e->offset != TN_UNPLACED)
        return TN_OK;
    w->appends = true;
    bool apart = w->format->room_before;
    uint64_t room = apart ? w->format->room_before(w, entry) : 0;
    if (!tn_add_u64(f->end, room, &e->offset) ||
        !tn_align_u64(e->offset, apart ? 1 : w->options.align, &e->offset) ||
        !tn_add_u64(e->offset, size, &f->end) || f->end > INT64_MAX)
        return tn_in_file(
            tn_fail(err, TN_ERR_LIMIT, "the file would be larger than 2^63 bytes"), w->path,
            err);
    return TN_OK;
}

tn_status tn_writer_reserve(tn_writer *w, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->nfiles && !status; i++)
        if (w->files[i].sink)
            status = tn_sink_reserve(w->files[i].sink, w->files[i].end, err);
    return tn_in_file(status, w->path, err);
}

void tn_writer_commit(tn_writer *w, size_t entry, const tn_digest *digest)
{
    if (w->entries[entry].digest)
        *w->entries[entry].digest = *digest;
    w->entries[entry].done = true;
}

void tn_writer_begin_again(tn_writer *w, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        w->entries[i].done = false;
    w->current = SIZE_MAX;
    tn_hash_free(&w->hash);
}

/* ---- streaming one part ---- */

static bool is_encoded(const tn_out_entry *e)
{
    return e->encoding != TN_ENCODING_RAW;
}

/* Whether its checksum is of what is encoded, not of what is stored. */
static bool sums_decoded(const tn_out_entry *e)
{
    return tn_codec_of(e->encoding)->sums_decoded;
}

static bool encoded_whole(const tn_out_entry *e)
{
    return is_encoded(e) && e->nbytes <= TN_ENCODE_WHOLE_MAX;
}

/* ---- neighbours that are written together ---- */

enum { GATHERED = 1 << 18 };    /* bytes at most */

static tn_status write_gathered(tn_writer *w, tn_error *err)
{
    size_t n = w->gathered.size;
    w->gathered.size = 0;
    TN_NEED(!w->gathered.bad, err);
    return n ? tn_writer_put(w, w->gathered_file, w->gathered_at, w->gathered.data, n, err) : TN_OK;
}

/* The data of many entries is small, such as scales; what is between them is padding. */
static tn_status put_stored(tn_writer *w, uint32_t file, uint64_t at, const void *data, size_t n,
                            tn_error *err)
{
    tn_buf *b = &w->gathered;
    uint64_t end = w->gathered_at + b->size, gap = w->appends ? w->options.align : 1;
    bool joins = b->size && file == w->gathered_file && at >= end && at - end < gap &&
                 n <= GATHERED && at - end + n <= GATHERED - b->size;
    if (joins) {
        tn_buf_fill(b, 0, (size_t)(at - end));
    } else {
        TN_TRY(write_gathered(w, err));
        w->gathered_file = file;
        w->gathered_at = at;
    }
    if (!w->gathers || n > GATHERED)
        return tn_writer_put(w, file, at, data, n, err);
    tn_buf_put(b, data, n);
    return b->bad ? tn_fail_nomem(err) : TN_OK;
}

/* Appends stored bytes to the current entry. */
static tn_status append_stored(void *context, const void *data, size_t n, tn_error *err)
{
    tn_writer *w = context;
    tn_out_entry *e = &w->entries[w->current];
    if (!sums_decoded(e))
        tn_hash_update(&w->hash, data, n);
    if (tn_writer_is_late(w, e)) {
        e->size += n;
        return tn_spill_append(w->late, data, n, err);
    }
    tn_status status = put_stored(w, e->file, e->offset + e->size, data, n, err);
    e->size += n;
    if (w->files[e->file].end < e->offset + e->size)
        w->files[e->file].end = e->offset + e->size;
    return status;
}

void tn_entry_swap(const tn_out_entry *e, uint8_t *bytes, size_t n)
{
    const tn_block_info *block = e->swap_block ? tn_block_get(e->swap_block - 1) : NULL;
    if (block)
        tn_block_swap(block, bytes, n / block->bytes);
    else
        tn_swap_bytes(bytes, bytes, n, e->swap);
}

/* The same for raw data with reversed bytes; the data may be split anywhere. */
static tn_status append_swapped(tn_writer *w, const tn_out_entry *e, const uint8_t *data, size_t n,
                                tn_error *err)
{
    enum { ROOM = 64 << 10 };   /* more than an element or a block of any type */
    unsigned unit = e->swap_block ? tn_block_get(e->swap_block - 1)->bytes : e->swap;
    tn_status status = TN_OK;
    if (!w->swapped && !(w->swapped = malloc(ROOM)))
        return tn_fail_nomem(err);
    while (n && !status) {
        size_t room = ROOM - w->unswapped, taken = n < room ? n : room;
        size_t have = w->unswapped + taken, rest = have % unit;
        memcpy(w->swapped + w->unswapped, data, taken);
        tn_entry_swap(e, w->swapped, have - rest);
        status = append_stored(w, w->swapped, have - rest, err);
        memmove(w->swapped, w->swapped + have - rest, rest);
        w->unswapped = rest;
        data += taken;
        n -= taken;
    }
    return status;
}

static tn_status begin_part(tn_writer *w, size_t entry, tn_error *err)
{
    tn_out_entry *e = &w->entries[entry];
    if (!tn_writer_is_late(w, e))
        TN_TRY(tn_writer_place(w, entry, 0, err));
    e->size = 0;
    TN_TRY(tn_hash_begin(&w->hash, e->checksum, err));
    if (is_encoded(e))
        TN_TRY(tn_codec_use(&w->encoder, tn_codec_of(e->encoding), err));
    const tn_codec_state *c = &w->encoder;
    if (is_encoded(e) && !encoded_whole(e))
        TN_TRY(c->codec->stream_begin(c->state, w->options.level, e->nbytes, w->options.jobs, err));
    w->whole.size = 0;
    w->written = 0;
    w->unswapped = 0;
    w->current = entry;
    return TN_OK;
}

static tn_status encode_whole(tn_writer *w, tn_error *err)
{
    const tn_codec_state *encoder = &w->encoder;
    size_t cap = encoder->codec->bound(w->whole.size);
    uint8_t *out = malloc(cap);
    if (!out || w->whole.bad) {
        free(out);
        return tn_fail_nomem(err);
    }
    tn_coding c = { w->whole.data, w->whole.size, out, cap };
    tn_status status = encoder->codec->encode(encoder->state, w->options.level, &c, err);
    if (!status)
        status = append_stored(w, out, cap - c.nout, err);
    free(out);
    return status;
}

static tn_status end_part(tn_writer *w, tn_error *err)
{
    const tn_out_entry *e = &w->entries[w->current];
    tn_digest digest;
    tn_status status = TN_OK;
    if (encoded_whole(e))
        status = encode_whole(w, err);
    else if (is_encoded(e))
        status = w->encoder.codec->stream_end(w->encoder.state, append_stored, w, err);
    if (!status)
        status = tn_hash_end(&w->hash, &digest, err);
    if (!status)
        tn_writer_commit(w, w->current, &digest);
    w->current = SIZE_MAX;
    return status;
}

static tn_status append_part(tn_writer *w, size_t entry, const void *data, size_t n, tn_error *err)
{
    const tn_out_entry *e = &w->entries[entry];
    tn_status status = w->current == SIZE_MAX ? begin_part(w, entry, err) : TN_OK;
    if (status)
        return status;
    if (n > e->nbytes - w->written)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected %" PRIu64 " bytes but found more", e->nbytes);
    if (sums_decoded(e))
        tn_hash_update(&w->hash, data, n);
    if (encoded_whole(e))
        tn_buf_put(&w->whole, data, n);
    else if (is_encoded(e))
        status = w->encoder.codec->stream_write(w->encoder.state, data, n, append_stored, w, err);
    else
        status = tn_entry_is_swapped(e) ? append_swapped(w, e, data, n, err) : append_stored(w, data, n, err);
    w->written += n;
    return status || w->written < e->nbytes ? status : end_part(w, err);
}

static tn_status write_entry(tn_writer *w, size_t entry, const void *data, size_t n, tn_error *err)
{
    const tn_out_entry *e = &w->entries[entry];
    if (w->current != SIZE_MAX && w->current != entry)
        return tn_fail(err, TN_ERR_ARGUMENT, "it is begun before %s is complete",
                       tn_quote_z(w->entries[w->current].name).text);
    if (e->data || e->tied != TN_NOT_TIED || (e->done && n))
        return tn_fail(err, TN_ERR_ARGUMENT, "it has its data already");
    return e->done ? TN_OK : append_part(w, entry, data, n, err);
}

static tn_status write_part(tn_writer *w, size_t tensor, size_t part, const void *data, size_t n,
                            tn_error *err)
{
    TN_TRY(tn_writer_plan(w, err));
    size_t entry = tensor < w->ntensors ? w->first_entry[tensor] + part : w->count;
    if (entry >= w->count || w->entries[entry].tensor != tensor || w->entries[entry].part != part)
        return tn_fail(err, TN_ERR_ARGUMENT, "there is no part %zu of tensor %zu", part, tensor);
    return tn_in_tensor(write_entry(w, entry, data, n, err), w->entries[entry].name, err);
}

tn_status tn_writer_write(tn_writer *w, size_t tensor, size_t part, const void *data, size_t n, tn_error *err)
{
    TN_GIVEN(w, "a writer", err);
    TN_GIVEN(data || !n, "data", err);
    return tn_writer_settle(w, write_part(w, tensor, part, data, n, err), err);
}

/* ---- finishing ---- */

/* Copies the bytes of an entry that is already in its file. */
static tn_status copy_written(tn_writer *w, const tn_out_entry *from, const tn_out_entry *to, tn_error *err)
{
    tn_sink *sink = w->files[from->file].sink;
    tn_source *written;
    uint64_t shared = 0;
    TN_TRY(tn_sink_read_back(sink, &written, err));
    tn_status status = tn_sink_copy_range(w->files[to->file].sink, to->offset, written, from->offset,
                                          from->size, &shared, err);
    tn_source_close(written);
    return status;
}

/* A tied tensor has the same offset, or a copy of the bytes. */
static tn_status write_tied(tn_writer *w, tn_out_entry *e, tn_error *err)
{
    const tn_out_entry *from = &w->entries[e->tied];
    if (w->format->shares) {
        e->file = from->file;
        e->offset = from->offset;
        e->size = from->size;
    } else {
        TN_TRY(write_gathered(w, err));
        tn_status status = tn_writer_place(w, (size_t)(e - w->entries), from->size, err);
        if (!status && !w->dry_run && from->size)      /* nothing may lie behind the end of the file as yet */
            status = copy_written(w, from, e, err);
        if (status)
            return status;
    }
    e->digest = from->digest;
    e->done = true;
    return TN_OK;
}

static tn_status incomplete(const tn_writer *w, size_t entry, tn_error *err)
{
    return tn_fail(err, TN_ERR_ARGUMENT, "expected %" PRIu64 " bytes but found %" PRIu64,
                   w->entries[entry].nbytes, w->current == entry ? w->written : 0);
}

static tn_status complete_entry(tn_writer *w, size_t entry, tn_error *err)
{
    tn_out_entry *e = &w->entries[entry];
    if (e->tied != TN_NOT_TIED)
        return write_tied(w, e, err);
    if (w->dry_run) {
        uint64_t most =
            is_encoded(e) ? tn_codec_of(e->encoding)->bound((size_t)e->nbytes) : e->nbytes;
        tn_status status = tn_writer_place(w, entry, most, err);
        tn_writer_commit(w, entry, &(tn_digest){ .kind = e->checksum });
        return status;
    }
    if (e->data || e->nbytes == 0)
        return append_part(w, entry, e->data, (size_t)e->nbytes, err);
    return incomplete(w, entry, err);
}

tn_status tn_writer_seal(tn_writer *w, tn_error *err)
{
    tn_error own;
    err = err ? err : &own;
    tn_status status = tn_writer_plan(w, err);
    if (!status && w->current != SIZE_MAX)
        status = tn_in_tensor(incomplete(w, w->current, err), w->entries[w->current].name, err);
    w->gathers = true;
    for (size_t i = 0; i < w->count && !status; i++)
        if (!w->entries[i].done)
            status = tn_in_tensor(complete_entry(w, i, err), w->entries[i].name, err);
    w->gathers = false;
    if (!status)
        status = write_gathered(w, err);
    return tn_writer_settle(w, status ? status : w->format->finish(w, err), err);
}

uint64_t tn_writer_total(const tn_writer *w)
{
    uint64_t total = 0;
    for (size_t i = 0; i < w->nfiles; i++)
        total += w->files[i].memory ? 0 : w->files[i].end;
    return total;
}

tn_status tn_writer_finish(tn_writer *w, tn_error *err)
{
    TN_GIVEN(w, "a writer", err);
    tn_status status = tn_writer_seal(w, err);
    if (!status)
        return tn_writer_publish(w, err);
    tn_writer_abandon(w);
    return status;
}

void tn_writer_abandon(tn_writer *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->nfiles; i++)
        tn_sink_abandon(w->files[i].sink);
    tn_sink_set_close(w->set);
    for (size_t i = 0; i < w->nfiles; i++)
        free(w->files[i].head);
    free(w->obsolete);
    tn_hash_free(&w->hash);
    tn_codec_free(&w->encoder);
    tn_buf_free(&w->whole);
    tn_buf_free(&w->gathered);
    free(w->swapped);
    free(w->files);
    free(w->entries);
    free(w->first_entry);
    free(w->meta);
    tn_names_free(&w->names);
    tn_datatype_free(w->datatype.datatype);
    tn_arena_free(&w->arena);
    free(w);
}
