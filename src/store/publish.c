/* store/publish.c - publishing the files of a writer. */
#include "store/publish.h"
#include "base/error.h"
#include "bytes/place.h"
#include "bytes/sink_set.h"
#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

bool tn_is_set_id(const char *text)
{
    return strspn(text, "0123456789abcdef") >= TN_SET_ID;
}

static bool look_beside(const char *path, const char *name, struct stat *st)
{
    char full[PATH_MAX];        /* a longer one does not exist */
    int n = snprintf(full, sizeof full, "%.*s%s", (int)(tn_base_name(path) - path), path, name);
    errno = ENAMETOOLONG;
    return n > 0 && (size_t)n < sizeof full && lstat(full, st) == 0;
}

tn_status tn_load_text(const char *path, uint64_t most, tn_arena *arena, tn_text *text, tn_error *err)
{
    tn_source *source;
    const uint8_t *bytes;
    *text = (tn_text){ 0 };
    tn_status status = tn_source_open(path, TN_IO_PREAD, &source, NULL);
    if (!status) {
        uint64_t size = tn_source_size(source);
        status = size > most ? TN_ERR_LIMIT : tn_source_copy(source, 0, size, arena, &bytes, NULL);
        if (!status)
            *text = (tn_text){ (const char *)bytes, (size_t)size };
        tn_source_close(source);
    }
    return status == TN_ERR_NOMEM ? tn_fail_nomem(err) : TN_OK;
}

bool tn_exists_beside(const char *path, const char *name)
{
    struct stat st;
    return look_beside(path, name, &st);
}

tn_status tn_writer_check_name(const tn_writer *w, const char *name, tn_error *err)
{
    struct stat st;
    if (w->fd >= 0 || look_beside(w->path, name, &st) || errno != ENAMETOOLONG)
        return TN_OK;
    return tn_fail(err, TN_ERR_IO, "the files of its set would have names of %zu bytes, which "
                   "is too long for this folder: choose a shorter name", strlen(name));
}

bool tn_is_others_id(const char *path, size_t stem, const char *id, const char *suffix)
{
    char name[NAME_MAX + 1];    /* a longer one does not exist */
    int n = snprintf(name, sizeof name, "%.*s-%.*s%s", (int)stem, tn_base_name(path), TN_SET_ID, id, suffix);
    return n > 0 && (size_t)n < sizeof name && tn_exists_beside(path, name);
}

/* ---- members ---- */

static tn_status open_set(tn_writer *w, tn_error *err)
{
    if (w->set)
        return TN_OK;
    tn_status status = tn_sink_set_open(w->path, w->like, &w->set, err);
    if (!status)
        tn_sink_set_listen(w->set, (tn_listener){ w->options.note, w->options.note_context, w->path });
    return status;
}

/* A dry run only tries whether a file can be created there. */
static tn_status try_member(tn_writer *w, tn_error *err)
{
    tn_sink *sink;
    int fd;
    TN_TRY(open_set(w, err));
    TN_TRY(tn_sink_set_add(w->set, &sink, err));
    TN_TRY(tn_sink_hold(sink, &fd, err));
    tn_sink_release(sink);
    tn_sink_set_close(w->set);
    w->set = NULL;
    return TN_OK;
}

tn_status tn_writer_add_member(tn_writer *w, uint32_t *file, tn_error *err)
{
    tn_out_file *f = tn_writer_next_file(w);
    tn_status status = f ? TN_OK : tn_fail_nomem(err);
    if (!status && w->fd >= 0)
        status = tn_fail(err, TN_ERR_ARGUMENT, "%s takes several files: it cannot be written into one",
                         w->format->info.name);
    bool far = tn_is_url(w->path);
    if (!status && w->dry_run)
        status = w->nfiles || far ? TN_OK : try_member(w, err);
    else if (!status && far)
        status = tn_sink_new_object(&f->sink, err);
    else if (!status)
        status = open_set(w, err);
    if (!status && !w->dry_run && !far)
        status = tn_sink_set_add(w->set, &f->sink, err);
    if (status)
        return status;
    f->member = true;
    *file = (uint32_t)w->nfiles++;
    return TN_OK;
}

tn_status tn_writer_name_objects(tn_writer *w, tn_error *err)
{
    for (size_t i = 0; i < w->nfiles && tn_is_url(w->path); i++) {
        tn_out_file *f = &w->files[i];
        if (!f->member)
            continue;
        if (!f->path)
            return tn_fail(err, TN_ERR_UNSUPPORTED, "several files of %s that belong together cannot be "
                           "written to a URL: write them to a folder, and upload that", w->format->info.name);
        f->object = tn_arena_printf(&w->arena, "%.*s%s", (int)(tn_base_name(w->path) - w->path), w->path,
                                    f->path);
        TN_NEED(f->object, err);
        if (f->sink)
            TN_TRY(tn_sink_name_object(f->sink, f->object, err));
    }
    return TN_OK;
}

uint32_t tn_crc_text(uint32_t crc, const char *text)
{
    return text ? tn_crc32c(crc, text, strlen(text) + 1) : crc;
}

uint32_t tn_crc_meta(uint32_t crc, const tn_meta *meta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crc = tn_crc_text(tn_crc_text(crc, meta[i].key), meta[i].text);
        crc = tn_crc32c(crc, meta[i].cbor, meta[i].cbor_size);
    }
    return crc;
}

static uint32_t crc_of_content(const tn_writer *w)
{
    uint32_t crc = tn_crc_meta(0, w->meta, w->nmeta);
    for (size_t i = 0; i < w->count; i++) {
        const tn_out_entry *e = &w->entries[i];
        char digest[TN_CHECKSUM_TEXT_MAX];
        tn_digest_format(e->digest, digest);
        crc = tn_crc_text(tn_crc_text(crc, e->name), digest);
        crc = tn_crc32c(crc, &e->dtype, sizeof e->dtype);
        crc = tn_crc32c(crc, e->shape, e->rank * sizeof *e->shape);
        crc = tn_crc32c(crc, e->more->record.ptr, e->more->record.len);
        crc = tn_crc_meta(crc, e->more->meta, e->more->nmeta);
    }
    return crc;
}

/* Names all members with this id; *taken: one of the names is in use. */
static tn_status name_all(tn_writer *w, tn_member_name name, const char *id, bool *taken, tn_error *err)
{
    size_t k = 0;
    *taken = false;
    for (size_t i = 0; i < w->nfiles; i++) {
        if (!w->files[i].member)
            continue;
        w->files[i].path = name(w, k++, id);
        if (!w->files[i].path)
            return tn_fail_nomem(err);
        *taken |= w->set && tn_sink_set_taken(w->set, w->files[i].sink, w->files[i].path);
    }
    return TN_OK;
}

tn_status tn_writer_name_members(tn_writer *w, tn_member_name name, bool with_id, tn_error *err)
{
    enum { TRIES = 1000 };
    uint32_t crc = with_id ? crc_of_content(w) : 0;
    bool taken = true;
    if (!with_id)
        return name_all(w, name, NULL, &taken, err);       /* publishing sees to it that none is taken */
    for (uint32_t salt = 0; salt < TRIES && taken; salt++) {
        char id[TN_SET_ID + 1];
        snprintf(id, sizeof id, "%08x", salt ? tn_crc32c(crc, &salt, sizeof salt) : crc);
        TN_TRY(name_all(w, name, id, &taken, err));
    }
    if (taken)
        return tn_fail(err, TN_ERR_EXISTS, "%d sets of the same content are in its folder: remove some",
                       TRIES);
    return TN_OK;
}

static bool is_beside(const char *path, const char *other)
{
    struct stat a, b;
    return look_beside(path, ".", &a) && look_beside(other, ".", &b) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* As it was read if it is part of the input: it may have changed since. The files of an old set come in the
 * order of the input's shards. */
static tn_identity identity_of_old(tn_writer *w, const char *name, const struct stat *st)
{
    tn_identity seen = tn_identity_of(st);
    size_t n = w->reading && !S_ISLNK(st->st_mode) ? w->reading->nshards : 0;      /* only a link would go */
    for (size_t i = 0; i < n; i++) {
        size_t k = (w->old_shard + i) % n;
        const tn_shard *shard = &w->reading->shards[k];
        const tn_identity *read = tn_source_identity(shard->source);
        bool same = read && tn_identity_same_file(read, &seen);
        if (read && !same && (i < 2 || shard->number < 2))
            same = strcmp(tn_base_name(shard->path), name) == 0 && is_beside(w->path, shard->path);
        if (same) {
            w->old_shard = k + 1;
            return *read;
        }
    }
    return seen;
}

tn_status tn_writer_add_obsolete(tn_writer *w, const char *name, tn_error *err)
{
    struct stat st;
    if (!look_beside(w->path, name, &st))
        return TN_OK;
    const char *copy = tn_arena_text(&w->arena, name, strlen(name));
    TN_NEED(copy && TN_GROW(w->obsolete, w->nobsolete, w->obsolete_cap), err);
    w->obsolete[w->nobsolete++] = (tn_obsolete){ copy, identity_of_old(w, name, &st) };
    return TN_OK;
}

/* ---- other files in the folder ---- */

void tn_note(const tn_beside *b, bool doubtful, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    b->report(b->context, text, doubtful);
}

static const char *used_name(const void *owner, size_t i)
{
    const tn_beside *b = owner;
    return tn_base_name(b->used(b->owner, i));
}

typedef struct strays {
    char **names;
    size_t count, cap;
} strays;

static void keep_stray(strays *all, const char *name)
{
    char *copy = TN_GROW(all->names, all->count, all->cap) ? strdup(name) : NULL;
    if (copy)                   /* else one less to report */
        all->names[all->count++] = copy;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_strays(const tn_beside *b, tn_is_member is_member, DIR *dir, strays *all)
{
    tn_names used = { 0 };
    bool good = tn_names_init(&used, b->count);
    for (size_t i = 0; i < b->count && good; i++)
        good = tn_names_add(&used, b, used_name, i) != TN_NAMES_NOMEM;
    for (struct dirent *entry; good && (entry = readdir(dir)) != NULL;)
        if (is_member(b->path, entry->d_name) &&
            tn_names_find(&used, b, used_name, entry->d_name) >= b->count)
            keep_stray(all, entry->d_name);
    tn_names_free(&used);
}

void tn_note_strays(const tn_beside *b, tn_is_member is_member)
{
    strays all = { 0 };
    char folder[PATH_MAX];
    DIR *dir = tn_folder_of(b->path, folder) ? opendir(folder) : NULL;
    if (!dir)
        return;
    find_strays(b, is_member, dir, &all);
    closedir(dir);
    if (all.count)
        qsort(all.names, all.count, sizeof *all.names, by_name);
    for (size_t i = 0; i < all.count; i++) {
        tn_note(b, false, "%s in its folder belongs to no set: an interrupted run left it, another run is "
                "writing it, or the file that names it is lost", tn_quote_z(all.names[i]).text);
        free(all.names[i]);
    }
    free(all.names);
}

/* ---- files that several processes write ---- */

/* The name of a file that is no member; there is one at most. */
#define SHARED_HEAD "head"

/* Members that are objects are in no set. */
static tn_status for_object(const tn_writer *w, size_t i, int folder,
                            tn_status (*of_file)(tn_sink *sink, int folder, const char *name, tn_error *err),
                            tn_error *err)
{
    char name[24];
    snprintf(name, sizeof name, "%zu", i);
    return tn_in_file(of_file(w->files[i].sink, folder, name, err), w->files[i].object, err);
}

/* Does so for the set, and for the file that names its members or is the only one. */
static tn_status for_shared(const tn_writer *w, int folder,
                            tn_status (*of_set)(tn_sink_set *set, int folder, tn_error *err),
                            tn_status (*of_head)(tn_sink *sink, int folder, const char *name, tn_error *err),
                            tn_error *err)
{
    tn_status status = w->set ? of_set(w->set, folder, err) : TN_OK;
    for (size_t i = 0; i < w->nfiles && !status; i++)
        if (w->files[i].member && w->files[i].object && w->files[i].sink)
            status = for_object(w, i, folder, of_head, err);
        else if (!w->files[i].member && w->files[i].sink)
            status = of_head(w->files[i].sink, folder, SHARED_HEAD, err);
    return tn_in_file(status, w->path, err);
}

/* What is compressed has no place yet. */
static void plan_sizes(const tn_writer *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const tn_out_entry *e = &w->entries[i];
        if (e->offset != TN_UNPLACED && e->nbytes && w->files[e->file].sink)
            tn_sink_plan(w->files[e->file].sink, e->offset + e->nbytes);
    }
}

tn_status tn_writer_make_shared(const tn_writer *w, int folder, tn_error *err)
{
    plan_sizes(w);
    return for_shared(w, folder, tn_sink_set_make_shared, tn_sink_make_shared, err);
}

tn_status tn_writer_share(const tn_writer *w, int folder, tn_error *err)
{
    return for_shared(w, folder, tn_sink_set_share, tn_sink_share, err);
}

tn_status tn_writer_sync(const tn_writer *w, uint32_t file, tn_error *err)
{
    tn_status status = w->files[file].sink ? tn_sink_sync(w->files[file].sink, err) : TN_OK;
    return tn_in_file(status, w->path, err);
}

/* ---- publishing ---- */

static void note(void *context, const char *text, bool doubtful)
{
    const tn_writer *w = context;
    (void)doubtful;
    if (w->options.note)
        w->options.note(w->options.note_context, w->path, text);
}

/* An index that is not removed needs its files. */
static bool not_removed(void *context, const char *name, int error_number)
{
    tn_writer *w = context;
    char text[400];
    int n = snprintf(text, sizeof text, "%s, which the new file replaces, ", tn_quote_z(name).text);
    if (error_number)
        snprintf(text + n, sizeof text - (size_t)n, "cannot be removed: %s", strerror(error_number));
    else
        snprintf(text + n, sizeof text - (size_t)n, "has changed meanwhile and is left as it is");
    note(w, text, false);
    w->left = true;
    return !w->obsolete_head || strcmp(name, w->obsolete[0].name) != 0;
}

static const char *path_of_file(const void *owner, size_t i)
{
    const tn_out_file *f = &((const tn_writer *)owner)->files[i];
    return f->path ? f->path : "";
}

/* The new files are in place: nothing fails from here on. */
static void clean_up(tn_writer *w, const char *head)
{
    if (w->nobsolete)
        tn_sink_set_remove(w->set, w->obsolete, w->nobsolete, not_removed, w);
    tn_beside beside = { .path = head, .owner = w, .count = w->nfiles, .used = path_of_file,
                         .report = note, .context = w };
    if (w->options.note && w->format->look_beside && !w->left && w->fd < 0)
        w->format->look_beside(&beside);
}

/* Files to be removed must be unchanged since they were seen. */
static tn_status check_obsolete(tn_writer *w, tn_error *err)
{
    tn_status status = w->nobsolete ? open_set(w, err) : TN_OK;     /* a single file has none as yet */
    for (size_t i = 0; i < w->nobsolete && !status; i++)
        status = tn_sink_set_check_old(w->set, &w->obsolete[i], err);
    return status;
}

/* All files except the last are members of a set, or in memory. */
static tn_status publish(tn_writer *w, tn_error *err)
{
    tn_sink_member *members = malloc((w->nfiles + 1) * sizeof *members);
    tn_sink *last = NULL;
    const char *head = w->path;
    uint64_t end = 0;
    size_t n = 0;
    tn_status status = members ? check_obsolete(w, err) : tn_fail_nomem(err);
    if (status) {
        free(members);
        return status;
    }
    for (size_t i = 0; i < w->nfiles; i++) {
        tn_out_file *f = &w->files[i];
        if (f->member) {
            members[n++] = (tn_sink_member){ f->sink, f->path, f->end };
        } else if (f->sink) {
            last = f->sink;
            head = f->path;
            end = f->end;
        }
        f->sink = NULL;
    }
    if (n && w->set)
        status = tn_sink_set_publish(w->set, members, n, last, end, err);
    else if (n)
        status = tn_sink_publish_objects(members, n, last, end, err);
    else
        status = tn_sink_publish(last, end, err);
    free(members);
    if (!status)
        clean_up(w, head);
    return status;
}

tn_status tn_writer_publish(tn_writer *w, tn_error *err)
{
    tn_status status = publish(w, err);
    tn_writer_abandon(w);
    return status;
}
