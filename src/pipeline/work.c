/* pipeline/work.c - a plan whose pieces are made by many processes: joining it, and publishing.
 *
 * Nothing here decides what is written: the plan does.  work_folder.c has the folder, work_run.c makes
 * pieces, bytes/claims.c says who makes what, piece_record.c what is kept of a piece that is made. */
#include "pipeline/work.h"
#include "base/error.h"
#include "base/options.h"
#include "base/vector.h"
#include "bytes/checksum.h"
#include "bytes/identity.h"
#include "bytes/source.h"
#include "pipeline/object_parts.h"
#include "pipeline/piece_record.h"
#include "pipeline/work_uploads.h"
#include "store/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- joining ---- */

static void drop_plan(tn_work *w)
{
    tn_plan_free(w->plan);
    w->plan = NULL;
}

static tn_status new_work(const tn_work_options *options, tn_work **work, tn_error *err)
{
    tn_work *w = calloc(1, sizeof *w);
    TN_NEED(w, err);
    w->folder = -1;
    tn_pieces_init(&w->pieces);
    w->path = w->output = "";
    tn_status status = tn_take_options(TN_SIZED(tn_work_options, context), &w->o, options, err);
    if (!status && w->o.ranks && w->o.rank >= w->o.ranks)
        status = tn_fail(err, TN_ERR_ARGUMENT, "expected a rank below %" PRIu32 " but found %" PRIu32,
                         w->o.ranks, w->o.rank);
    if (status)
        free(w);
    else
        *work = w;
    return status;
}

static tn_status set_paths(tn_work *w, const char *folder, const char *output, tn_error *err)
{
    size_t n = strlen(output) + sizeof ".tenon";
    if (!folder && tn_is_url(output))
        return tn_fail(err, TN_ERR_ARGUMENT, "an output that is elsewhere needs a work folder here, which "
                       "all processes share");
    char *path = folder ? tn_arena_text(&w->arena, folder, strlen(folder)) : tn_arena_zalloc(&w->arena, n, 1);
    w->output = tn_arena_text(&w->arena, output, strlen(output));
    TN_NEED(path && w->output, err);
    if (!folder)
        snprintf(path, n, "%s.tenon", output);
    w->path = path;
    return TN_OK;
}

static tn_status share_files(tn_work *w, bool make, tn_error *err)
{
    int files = openat(w->folder, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (files < 0)
        return tn_claims_fail(err, errno, "the work folder");
    tn_status status = make ? tn_writer_make_shared(w->plan->writer, files, err)
                            : tn_writer_share(w->plan->writer, files, err);
    if (!status && !make && fstatat(files, "head", &w->head, AT_SYMLINK_NOFOLLOW) != 0)
        status = tn_claims_fail(err, errno, "the work folder");
    w->head_path = tn_arena_text(&w->arena, tn_plan_head_path(w->plan), strlen(tn_plan_head_path(w->plan)));
    if (!status && !w->head_path)
        status = tn_fail_nomem(err);
    if (!status && !make)
        status = tn_objects_cut(w->plan, err);
    close(files);
    return status;
}

static uint64_t cost_of(const void *work, size_t piece)
{
    return ((const tn_work *)work)->plan->run.pieces[piece].written;
}

/* What is written to its place is there before its record, and the files are checked by their sizes. */
static bool has_part(const void *work, size_t piece, tn_text record)
{
    const tn_work *w = work;
    char name[TN_CLAIM_NAME];
    struct stat st;
    uint64_t size = tn_piece_record_part(record);
    tn_claim_name(piece, ".part", name);
    return !size || (fstatat(w->pieces.claims.pieces, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                     S_ISREG(st.st_mode) && (uint64_t)st.st_size == size);
}

static uint64_t most_of(const void *work, size_t piece)
{
    return tn_piece_record_most(((const tn_work *)work)->plan, piece);
}

static tn_status attach(tn_work *w, tn_error *err)
{
    tn_pieces *p = &w->pieces;
    TN_TRY(share_files(w, false, err));
    tn_work_folder_noted(w->folder, w->before);
    p->path = w->path;
    p->rank = w->o.rank;
    p->ranks = w->o.ranks;
    p->note = w->plan->create.note;
    p->note_context = w->plan->create.note_context;
    p->walk = &w->plan->walk;
    p->shares_cores = w->plan->create.jobs == 0;
    p->usual = w->plan->o.piece_size;
    p->cost = cost_of;
    p->make = tn_work_make_piece;
    p->sync = tn_work_sync_pieces;
    p->has_data = has_part;
    p->most = most_of;
    p->maker = w;
    TN_TRY(tn_pieces_join(p, w->folder, err));
    w->has_joined = true;
    tn_plan_result(w->plan, &w->result);
    return tn_pieces_begin(p, 0, tn_plan_count(w->plan), &w->arena, err);
}

static tn_status make_files(void *work, tn_error *err)
{
    const tn_work *w = work;
    TN_TRY(share_files(work, true, err));
    return tn_work_folder_note_output(w->folder, w->head_path, err);
}

static tn_status join(tn_work *w, const tn_buf *own, tn_error *err)
{
    const tn_work_joining joining = { .plan = { (const char *)own->data, own->size }, .first = make_files,
                                      .context = w };
    TN_TRY(tn_work_folder_join(w->path, &w->folder, &joining, err));
    w->id = tn_crc32c(0, own->data, own->size);
    return attach(w, err);
}

/* A process that was killed while it published has left names that planning would take for files of
 * others. */
static tn_status take_back_names(tn_work *w, const char *output, tn_error *err)
{
    int lock = -1;
    if (tn_work_is_published(w) || !tn_work_folder_has_names(w->folder))
        return TN_OK;
    TN_TRY(tn_work_folder_lock(w->folder, "finish.lock", &lock, err));      /* it may be publishing just
                                                                             * now */
    if (!tn_work_is_published(w))
        tn_work_folder_take_back(w->folder, output);
    close(lock);
    return TN_OK;
}

/* What a folder that is there says, before it may be gone. */
static tn_status look_at_folder(tn_work *w, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_plan_head head = { 0 };
    tn_text saved = { "", 0 };
    bool there = false;
    tn_status status = tn_work_folder_open(w->path, &w->folder, err);
    if (!status && w->folder >= 0)
        status = tn_work_folder_plan(w->folder, &arena, &saved, &there, err);
    if (!status && there)
        (void)tn_plan_read_head(saved.ptr, saved.len, &arena, &head, NULL);
    if (!status && head.head && tn_is_url(head.head))
        status = tn_work_settle_uploads(w->folder, head.head, err);
    if (head.head)
        w->was_left = tn_work_folder_was_left(w->folder, head.head, NULL);
    if (head.head && w->was_left)
        w->head_path = tn_arena_text(&w->arena, head.head, strlen(head.head));
    else if (head.head && fstatat(w->folder, "files/head", &w->head, AT_SYMLINK_NOFOLLOW) == 0)
        w->head_path = tn_arena_text(&w->arena, head.head, strlen(head.head));
    if (!status && w->head_path && head.output)
        status = take_back_names(w, head.output, err);
    tn_arena_free(&arena);
    return tn_in_file(status, w->path, err);
}

/* The plan of this process as text.  One that is only compared may be of an output that exists. */
static tn_status plan_own(tn_work *w, const tn_file *file, const tn_convert_options *convert, bool compares,
                          tn_buf *own, tn_error *err)
{
    tn_convert_options o = { 0 };
    tn_create_options create = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_convert_options, quantized), &o, convert, err));
    TN_TRY(tn_take_options(TN_SIZED(tn_create_options, nformat_options), &create, o.create, err));
    bool replace = create.replace;
    create.replace |= compares;
    o.create = &create;
    TN_TRY(tn_plan_make(file, w->output, &o, &w->plan, err));
    w->plan->create.replace = replace;
    w->plan->is_shared = true;
    if (w->plan->o.dry_run || w->plan->writer->fd >= 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an output that has a name and is written");
    return tn_plan_write(w->plan, own, err);
}

/* Whether two plans are the same before a line.  What is planned for an output that is there, and for one
 * that is not, differs in details. */
static bool same_before(tn_text a, tn_text b, const char *line)
{
    const char *x = memmem(a.ptr, a.len, line, strlen(line)), *y = memmem(b.ptr, b.len, line, strlen(line));
    return x && y && x - a.ptr == y - b.ptr && memcmp(a.ptr, b.ptr, (size_t)(x - a.ptr)) == 0;
}

/* The output has taken the place of the input: its plan cannot be made again. */
static bool is_in_place(const tn_work *w, const tn_file *file)
{
    struct stat st;
    bool same = false;
    for (size_t i = 0; i < file->nshards && w->head_path && stat(w->head_path, &st) == 0 && !same; i++) {
        const tn_identity *read = tn_source_identity(file->shards[i].source);
        const tn_identity head = tn_identity_of(&st);
        same = read && tn_identity_same_file(read, &head);
    }
    return same;
}

/* Whether the plan in the folder is of the same command and, if it is still there, the same input. */
static bool has_plan(const tn_work *w, const tn_buf *own, bool in_place)
{
    const tn_text made = { (const char *)own->data, own->size };
    tn_arena arena = { 0 };
    tn_text saved = { "", 0 };
    bool there = false;
    bool same = tn_work_folder_plan(w->folder, &arena, &saved, &there, NULL) == TN_OK && there &&
                same_before(saved, made, in_place ? "\n\"inputs\":" : "\n\"files\":");
    tn_arena_free(&arena);
    return same;
}

/* Whether the published work is the one that is asked for.  In place, a command that cannot be planned any
 * more is: its input is what it makes. */
static bool is_same_work(tn_work *w, const tn_file *file, const tn_convert_options *convert)
{
    tn_buf own = { 0 };
    bool in_place = is_in_place(w, file);
    bool again = in_place && w->was_left && w->o.ranks && tn_work_folder_has_rank(w->folder, w->o.rank);
    bool planned = plan_own(w, file, convert, true, &own, NULL) == TN_OK;
    bool same = !again && (planned ? has_plan(w, &own, in_place) : in_place);
    drop_plan(w);
    tn_buf_free(&own);
    return same;
}

/* A folder whose output is published: for a process of the same work there is nothing to do but to remove it.
 * For another work it is removed here. */
static tn_status visit_published(tn_work *w, const tn_file *file, const tn_convert_options *convert,
                                 tn_error *err)
{
    bool same = true;
    if (w->was_left)
        (void)tn_work_folder_was_left(w->folder, w->head_path ? w->head_path : w->output, &same);
    if (same && is_same_work(w, file, convert))
        return TN_OK;
    tn_status status = tn_work_folder_remove(w->folder, w->path, err);
    close(w->folder);
    w->folder = -1;
    w->was_left = false;
    w->head_path = NULL;
    return status;
}

static tn_status make(tn_work *w, const tn_file *file, const tn_convert_options *convert, tn_error *err)
{
    tn_buf own = { 0 };
    TN_TRY(look_at_folder(w, err));
    if (tn_work_is_published(w))
        TN_TRY(visit_published(w, file, convert, err));
    if (tn_work_is_published(w))
        return TN_OK;
    tn_status status = plan_own(w, file, convert, false, &own, err);
    if (!status)
        status = tn_in_file(join(w, &own, err), w->path, err);
    tn_buf_free(&own);
    return status;
}

/* As before make(), but for paths and options. */
static void begin_again(tn_work *w)
{
    tn_pieces_end(&w->pieces);
    w->has_joined = false;
    drop_plan(w);
    if (w->folder >= 0)
        close(w->folder);
    w->folder = -1;
    w->was_left = false;
    w->head_path = NULL;
}

/* Others may finish, and remove the folder, while this process is about to join them. */
static tn_status make_or_join(tn_work *w, const tn_file *file, const tn_convert_options *convert,
                              tn_error *err)
{
    enum { TRIES = 5 };
    tn_status status = TN_OK;
    tn_work_folder_clean(w->path);
    for (int i = 0; i < TRIES; i++) {
        status = make(w, file, convert, err);
        if (status)
            status = tn_work_settle(w, status, err);
        bool gone = w->folder < 0 || tn_work_folder_is_gone(w->folder, w->path) ||
                    tn_work_folder_was_left(w->folder, "", NULL);
        bool named = status == TN_ERR_EXISTS && access(w->path, F_OK) == 0;     /* another is publishing */
        bool fleeting = status == TN_ERR_CHANGED || status == TN_ERR_IO || status == TN_ERR_CORRUPT;
        if (!named && !(fleeting && gone))
            break;
        begin_again(w);
    }
    return status;
}

tn_status tn_work_make(const tn_file *file, const char *path, const tn_convert_options *convert,
                       const tn_work_options *options, tn_work **work, tn_error *err)
{
    tn_work *w = NULL;
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(work, "a place for the work", err);
    TN_TRY(new_work(options, &w, err));
    tn_status status = tn_in_file(set_paths(w, w->o.folder, path, err), path, err);
    if (!status)
        status = make_or_join(w, file, convert, err);
    if (!status && w->plan) {
        w->o.progress = w->plan->o.progress;
        w->o.note = w->plan->create.note;
        w->o.context = w->plan->create.note_context;
    }
    if (status)
        tn_work_close(w);
    else
        *work = w;
    return status;
}

/* Makes the plan of a folder anew, with what is this process's own. */
static tn_status open_plan(tn_work *w, tn_text saved, tn_error *err)
{
    tn_plan_head head = { .is_shared = true };
    TN_TRY(tn_in_file(tn_plan_read_head(saved.ptr, saved.len, &w->arena, &head, err), w->path, err));
    if (head.verb)
        return tn_in_file(tn_fail(err, TN_ERR_ARGUMENT, "expected the plan of a conversion but found work of "
                                  "%s: the same command goes on with it", tn_quote_z(head.verb).text),
                          w->path, err);
    w->output = tn_arena_text(&w->arena, head.output, strlen(head.output));
    TN_NEED(w->output, err);
    if (tn_work_is_published(w))
        return TN_OK;
    head.replaces = w->o.replace;
    head.create.jobs = w->o.jobs;
    head.create.note = w->o.note;
    head.create.note_context = w->o.context;
    head.o.progress = w->o.progress;
    head.o.lost = w->o.lost;
    head.o.context = w->o.context;
    w->id = tn_crc32c(0, saved.ptr, saved.len);
    TN_TRY(tn_plan_make_again(&head, saved, w->path, &w->plan, err));
    return tn_in_file(attach(w, err), w->path, err);
}

static tn_status open_work(tn_work *w, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_text saved = { NULL, 0 };
    bool there = false;
    tn_status status = look_at_folder(w, err);
    if (!status && w->folder >= 0)
        status = tn_work_folder_plan(w->folder, &arena, &saved, &there, err);
    if (!status && !there)
        status = tn_fail(err, TN_ERR_CORRUPT,
                         "expected a work folder with a plan.json: the work is finished, was "
                         "abandoned, or has never been planned");
    status = tn_in_file(status, w->path, err);
    if (!status)
        status = open_plan(w, saved, err);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_work_open(const char *folder, const tn_work_options *options, tn_work **work, tn_error *err)
{
    tn_work *w = NULL;
    TN_GIVEN(folder, "a folder", err);
    TN_GIVEN(work, "a place for the work", err);
    TN_TRY(new_work(options, &w, err));
    tn_status status = set_paths(w, folder, "", err);
    w->was_opened = true;
    if (!status)
        status = open_work(w, err);
    if (status)
        tn_work_close(w);
    else
        *work = w;
    return status;
}

const tn_plan *tn_work_plan(const tn_work *work) { return work ? work->plan : NULL; }
const char *tn_work_folder(const tn_work *work)  { return work ? work->path : ""; }
const char *tn_work_output(const tn_work *work)  { return work ? work->output : ""; }

/* ---- publishing ---- */

/* While the folder is there it tells.  Who publishes removes it, and then there is another object than
 * before; who abandons the work leaves it as it was. */
static bool is_published_far(const tn_work *w)
{
    char now[TN_OUTPUT_VERSION];
    uint64_t size;
    if (w->folder < 0)
        return false;
    if (!w->has_joined || !tn_claims_are_gone(&w->pieces.claims))
        return tn_work_folder_was_left(w->folder, w->head_path, NULL);
    return tn_output_look(w->head_path, now, &size) && strcmp(now, w->before) != 0;
}

bool tn_work_is_published(const tn_work *w)
{
    struct stat there;
    if (w->was_left)
        return true;
    if (w->head_path && tn_is_url(w->head_path))
        return is_published_far(w);
    return w->head_path && stat(w->head_path, &there) == 0 && tn_same_file(&w->head, &there);
}

tn_status tn_work_settle(tn_work *w, tn_status status, tn_error *err)
{
    if (!tn_work_is_published(w))
        return status;
    if (err)
        *err = (tn_error){ .offset = TN_NO_OFFSET };
    drop_plan(w);
    return TN_OK;
}

/* The bytes of a piece that have no place. */
static tn_status open_part(tn_work *w, size_t i, uint64_t expected, tn_error *err)
{
    char name[TN_CLAIM_NAME], path[PATH_MAX];
    tn_spill *waiting = &w->plan->run.pieces[i].waiting;
    tn_claim_name(i, ".part", name);
    tn_claim_path(&w->pieces.claims, i, ".part", path);
    int fd = openat(w->pieces.claims.pieces, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tn_in_file(tn_fail_errno(err, errno, "cannot open the bytes of a piece"), path, err);
    tn_status status = tn_source_open_fd(fd, TN_IO_PREAD, &waiting->source, err);
    close(fd);
    uint64_t size = status ? 0 : tn_source_size(waiting->source);
    if (!status && size != expected)
        status = tn_fail(err, TN_ERR_CORRUPT, "expected %" PRIu64 " bytes of a piece but found %" PRIu64,
                         expected,
                         size);
    return tn_in_file(status, path, err);
}

static tn_status take_piece(tn_work *w, size_t i, tn_error *err)
{
    char path[PATH_MAX];
    tn_arena arena = { 0 };
    tn_text text = { "", 0 };
    uint64_t part = 0;
    tn_claim_path(&w->pieces.claims, i, ".done", path);
    tn_status status = tn_pieces_get_record(&w->pieces, i, &arena, &text, err);
    if (!status)
        status = tn_piece_record_read(w->plan, i, w->id, text, &part, err);
    status = tn_in_file(status, path, err);
    tn_arena_free(&arena);
    if (!status && part)
        status = open_part(w, i, part, err);
    return status ? status : tn_run_take(&w->plan->run, i, err);
}

/* What was written must still be there: a file that is shorter would be filled with zeros. */
static tn_status check_size(const tn_writer *w, uint32_t file, uint64_t least, tn_error *err)
{
    struct stat st;
    int fd;
    if (!w->files[file].sink)
        return TN_OK;
    TN_TRY(tn_sink_hold(w->files[file].sink, &fd, err));
    bool known = fstat(fd, &st) == 0;
    tn_sink_release(w->files[file].sink);
    if (known && (uint64_t)st.st_size >= least)
        return TN_OK;
    return tn_fail(err, TN_ERR_CORRUPT,
                   "a file of the work folder has %lld bytes, but its pieces are %" PRIu64
                   ": abandon the work", known ? (long long)st.st_size : -1LL, least);
}

static tn_status check_sizes(const tn_writer *w, tn_error *err)
{
    uint64_t *least = calloc(w->nfiles + 1, sizeof *least);
    TN_NEED(least, err);
    for (size_t i = 0; i < w->count; i++) {
        const tn_out_entry *e = &w->entries[i];
        const tn_sink *sink = w->files[e->file].sink;
        if (!sink || !tn_run_moves(e) || e->offset == TN_UNPLACED || !e->nbytes)
            continue;
        uint64_t end = tn_sink_least(sink, e->offset, e->offset + e->nbytes);
        least[e->file] = end > least[e->file] ? end : least[e->file];
    }
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->nfiles && !status; i++)
        status = least[i] ? check_size(w, (uint32_t)i, least[i], err) : TN_OK;
    free(least);
    return status;
}

static tn_status publish(tn_work *w, tn_convert_result *result, tn_error *err)
{
    TN_TRY(check_sizes(w->plan->writer, err));
    for (size_t i = 0; i < w->pieces.count; i++)
        TN_TRY(take_piece(w, i, err));
    TN_TRY(tn_work_prepare_uploads(w, err));
    TN_TRY(tn_plan_finish(w->plan, result, err));
    if (tn_is_url(w->head_path))
        (void)tn_work_folder_mark(w->folder, w->head_path);
    return TN_OK;
}

/* Who asked for the output to be replaced knew what it was then. */
static tn_status check_replaced(const tn_work *w, tn_error *err)
{
    if (!w->was_opened || w->o.replace || tn_work_is_published(w) ||
        tn_work_folder_is_noted(w->folder, w->head_path))
        return TN_OK;
    tn_status status = tn_refuse(err, TN_ERR_EXISTS, TN_REASON_REPLACE, NULL, "has appeared, or was "
                                 "replaced, since the work was planned");
    return tn_in_file(status, w->head_path, err);
}

static tn_status finish(tn_work *w, tn_convert_result *result, tn_error *err)
{
    int lock;
    TN_TRY(check_replaced(w, err));
    if (w->pieces.lost && w->pieces.nmade + w->pieces.lost >= w->pieces.count)
        TN_TRY(tn_pieces_run_all(&w->pieces, true, err));
    TN_TRY(tn_pieces_check_all(&w->pieces, err));
    TN_TRY(tn_pieces_lock(&w->pieces, "finish.lock", &lock, err));     /* others wait while much is placed */
    tn_status status = TN_OK;
    if (!tn_work_is_published(w))
        status = publish(w, result, err);
    close(lock);
    return status;
}

/* The output is there; of a folder that cannot be removed there is only a note.  Ranks that have not come
 * yet, or were killed and come again, find in it that there is nothing to do; the last one removes it. */
static void leave_folder(tn_work *w)
{
    tn_error why;
    if (w->o.ranks)             /* before it counts: whoever counts last finds all */
        tn_work_folder_add_rank(w->folder, w->o.rank);
    if (w->o.ranks > tn_work_folder_ranks(w->folder) && tn_work_folder_leave(w->folder, w->head_path))
        return;
    if (tn_work_folder_remove(w->folder, w->path, &why) != TN_OK && w->o.note)
        w->o.note(w->o.context, w->path, why.text);
}

tn_status tn_work_finish(tn_work *w, tn_convert_result *result, tn_error *err)
{
    tn_status status = TN_OK;
    char version[TN_OUTPUT_VERSION];
    TN_GIVEN(w, "a work", err);
    bool had_plan = w->plan != NULL;
    if (w->plan)
        status = tn_in_file(finish(w, &w->result, err), w->path, err);
    if (status)
        status = tn_work_settle(w, status, err);
    if (status)
        return status;
    if (!had_plan || !w->result.bytes_out)
        if (!w->head_path || !tn_output_look(w->head_path, version, &w->result.bytes_out))
            w->result.bytes_out = 0;
    if (result)
        *result = w->result;
    tn_pieces_end(&w->pieces);
    leave_folder(w);
    drop_plan(w);
    return TN_OK;
}

void tn_work_close(tn_work *w)
{
    if (!w)
        return;
    tn_pieces_end(&w->pieces);
    tn_plan_free(w->plan);
    if (w->folder >= 0)
        close(w->folder);
    tn_arena_free(&w->arena);
    free(w);
}
