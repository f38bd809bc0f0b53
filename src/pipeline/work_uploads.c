/* pipeline/work_uploads.c - the uploads of objects that processes make together. */
#include "pipeline/work_uploads.h"
#include "base/error.h"
#include "base/vector.h"
#include "bytes/identity.h"
#include "bytes/json.h"
#include "bytes/temporary.h"
#include "pipeline/work_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/remote.h>
#include <unistd.h>

#define UPLOAD_FORMAT "tenon upload 1"
#define FOLDER "uploads"
#define COMING ".coming"
enum { NAME = 32, TEXT = 8192 };

static void name_file(const tn_writer *w, uint32_t file, const char *suffix, char name[NAME])
{
    if (w->files[file].member)
        snprintf(name, NAME, "%" PRIu32 "%s", file, suffix);
    else
        snprintf(name, NAME, "head%s", suffix);
}

static int open_uploads(int folder)
{
    return openat(folder, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- texts in the folder ---- */

/* A file that appears whole; with `first` it is no failure that another is there. */
static tn_status put_text(int folder, const char *name, tn_text text, bool first, tn_error *err)
{
    char own[TN_TEMPORARY_NAME];
    if (!tn_temporary_name(own))
        return tn_fail(err, TN_ERR_IO, "the system gives no random bytes");
    int fd = openat(folder, own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text.ptr, text.len) == (ssize_t)text.len && fsync(fd) == 0;
    if (good && first)
        good = linkat(folder, own, folder, name, 0) == 0 || errno == EEXIST;
    else if (good)
        good = renameat(folder, own, folder, name) == 0;
    int problem = errno;
    if (fd >= 0)
        close(fd);
    unlinkat(folder, own, 0);
    return good ? TN_OK : tn_claims_fail(err, problem, "the work folder");
}

/* An upload as the folder has it. */
typedef struct kept {
    const char *object, *id;    /* in the arena */
} kept;

static bool is_id(const char *id)
{
    size_t n = strlen(id);
    bool good = n > 0 && n < TN_SINK_UPLOAD;
    for (size_t i = 0; i < n && good; i++)
        good = id[i] > ' ' && id[i] < 0x7f;
    return good;
}

/* *there: the file exists. */
static tn_status read_kept(int folder, const char *name, tn_arena *arena, kept *k, bool *there, tn_error *err)
{
    char text[TEXT];
    tn_text key;
    tn_json j;
    bool named = false;
    ssize_t n = tn_work_folder_text(folder, name, text, sizeof text);
    *there = n >= 0;
    *k = (kept){ NULL, NULL };
    if (!*there)
        return TN_OK;
    tn_json_init(&j, text, (size_t)n, arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, "format"))
            named = tn_text_is(tn_json_string(&j), UPLOAD_FORMAT);
        else if (tn_text_is(key, "object"))
            k->object = tn_json_keep(&j, tn_json_string(&j));
        else if (tn_text_is(key, "id"))
            k->id = tn_json_keep(&j, tn_json_string(&j));
        else
            tn_json_skip(&j);
    }
    tn_json_done(&j);
    if (j.status || !named || !k->object || !k->id || !is_id(k->id) ||
        !tn_work_is_whole((tn_text){ text, (size_t)n }))
        return tn_fail(err, TN_ERR_CORRUPT, "expected the upload of an object, which " FOLDER "/%s does not "
                       "name: abandon the work", name);
    return TN_OK;
}

static tn_status put_kept(int folder, const char *name, const kept *k, tn_error *err)
{
    tn_buf b = { 0 };
    tn_buf_puts(&b, "{\"format\":\"" UPLOAD_FORMAT "\",\n\"object\":");
    tn_json_put_z(&b, k->object);
    tn_buf_puts(&b, ",\n\"id\":");
    tn_json_put_z(&b, k->id);
    tn_buf_puts(&b, ",\n");
    tn_work_seal(&b);
    tn_status status = b.bad ? tn_fail_nomem(err)
                             : put_text(folder, name, (tn_text){ (char *)b.data, b.size }, true, err);
    tn_buf_free(&b);
    return status;
}

/* ---- joining ---- */

/* Leaves the upload that this process has begun, unless another was faster; then that one counts. */
static tn_status join(tn_work *w, int folder, uint32_t file, tn_error *err)
{
    char name[NAME], id[TN_SINK_UPLOAD];
    tn_writer *writer = w->plan->writer;
    tn_sink *sink = writer->files[file].sink;
    const char *object = writer->files[file].object;
    tn_arena arena = { 0 };
    kept k;
    bool there;
    name_file(writer, file, "", name);
    tn_status status = read_kept(folder, name, &arena, &k, &there, err);
    if (!status && !there) {
        status = tn_sink_begin_upload(sink, id, err);
        if (!status)
            status = put_kept(folder, name, &(kept){ object, id }, err);
        if (!status)
            status = read_kept(folder, name, &arena, &k, &there, err);
        if (!status && !there)
            status = tn_claims_fail(err, ENOENT, "the work folder");
    }
    if (!status && strcmp(k.object, object) != 0)
        status = tn_fail(err, TN_ERR_CORRUPT, FOLDER "/%s names another object than the plan: abandon the "
                         "work", name);
    if (!status)
        tn_sink_join_upload(sink, k.id);
    tn_arena_free(&arena);
    return tn_in_file(status, object, err);
}

tn_status tn_work_join_upload(tn_work *w, uint32_t file, tn_error *err)
{
    if (tn_sink_has_upload(w->plan->writer->files[file].sink))
        return TN_OK;
    int folder = open_uploads(w->folder);
    if (folder < 0)
        return tn_claims_fail(err, errno, "the work folder");
    tn_status status = join(w, folder, file, err);
    close(folder);
    return status;
}

/* ---- publishing ---- */

/* A file of the output that is about to come. */
typedef struct coming {
    const tn_work *work;
    char           name[NAME];
} coming;

static tn_status note_coming(void *context, const char *etag, tn_error *err)
{
    const coming *c = context;
    int folder = open_uploads(c->work->folder);
    if (folder < 0)
        return tn_claims_fail(err, errno, "the work folder");
    tn_status status = put_text(folder, c->name, (tn_text){ etag, strlen(etag) }, false, err);
    close(folder);
    return status;
}

/* What a process noted that was killed then. */
static void expect_coming(tn_work *w, uint32_t file)
{
    char name[NAME], etag[TEXT];
    int folder = open_uploads(w->folder);
    name_file(w->plan->writer, file, COMING, name);
    if (folder >= 0 && tn_work_folder_text(folder, name, etag, sizeof etag) > 0)
        tn_sink_expect_etag(w->plan->writer->files[file].sink, etag);
    if (folder >= 0)
        close(folder);
}

/* Bytes of a file whose places are known, and of pieces that wait. */
static uint64_t bytes_of(const tn_plan *p, uint32_t file)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->writer->count; i++) {
        const tn_out_entry *e = &p->writer->entries[i];
        if (e->file == file && tn_run_moves(e))
            bytes += e->offset == TN_UNPLACED ? e->size : e->nbytes;
    }
    return bytes;
}

/* What is small is sent at once; an upload that only this process knows would stay if it is killed. */
tn_status tn_work_prepare_uploads(tn_work *w, tn_error *err)
{
    const tn_writer *writer = w->plan->writer;
    enum { SMALL = 8 << 20 };
    for (uint32_t i = 0; i < writer->nfiles; i++) {
        tn_sink *sink = writer->files[i].sink;
        if (!sink || !tn_sink_is_far(sink))
            continue;
        coming *c = tn_arena_zalloc(&w->arena, 1, sizeof *c);
        TN_NEED(c, err);
        c->work = w;
        name_file(writer, i, COMING, c->name);
        tn_sink_announce(sink, note_coming, c);
        expect_coming(w, i);
        if (bytes_of(w->plan, i) > SMALL)
            TN_TRY(tn_work_join_upload(w, i, err));
    }
    return TN_OK;
}

tn_status tn_work_settle_uploads(int folder, const char *head, tn_error *err)
{
    char expected[TEXT], found[TN_OUTPUT_VERSION];
    uint64_t size;
    int lock, uploads = open_uploads(folder);
    ssize_t n = uploads >= 0 ? tn_work_folder_text(uploads, "head" COMING, expected, sizeof expected) : -1;
    if (uploads >= 0)
        close(uploads);
    if (n <= 0)
        return TN_OK;
    TN_TRY(tn_work_folder_lock(folder, "finish.lock", &lock, err));     /* another may be publishing now */
    if (!tn_work_folder_was_left(folder, NULL, NULL) && tn_output_look(head, found, &size) &&
        strcmp(found, expected) == 0)
        tn_work_folder_mark(folder, head);
    close(lock);
    return TN_OK;
}

/* ---- ending ---- */

/* A folder may have been written by somebody else: only what belongs to the output is ended. */
static bool is_beside(const char *object, const char *output)
{
    const char *end = strrchr(output, '/');
    size_t n = end ? (size_t)(end - output) + 1 : 0;
    return n && strncmp(object, output, n) == 0 && !strchr(object + n, '/');
}

static tn_status end_upload(int folder, const char *name, const char *output, tn_error *err)
{
    tn_arena arena = { 0 };
    kept k;
    bool there;
    tn_status status = read_kept(folder, name, &arena, &k, &there, err);
    if (!status && there && !is_beside(k.object, output))
        status = tn_fail(err, TN_ERR_CORRUPT, FOLDER "/%s names an object that is not of this output", name);
    else if (!status && there)
        status = tn_uploads_end(k.object, k.id, err);
    if (!status && there)
        unlinkat(folder, name, 0);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_work_end_uploads(int folder, const char *output, tn_error *err)
{
    int fd = open_uploads(folder);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    tn_status status = TN_OK;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; !status && dir && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.'))
            status = end_upload(fd, entry->d_name, output, err);
    if (dir)
        closedir(dir);
    return status;
}
