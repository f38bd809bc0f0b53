/* pipeline/work_run.c - what making a piece of a plan is. */
#include "base/error.h"
#include "base/vector.h"
#include "pipeline/object_parts.h"
#include "pipeline/piece_record.h"
#include "pipeline/work_uploads.h"
#include "store/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Sends the parts of an object that are made. */
static tn_status send(tn_work *w, size_t i, tn_error *err)
{
    const tn_writer *writer = w->plan->writer;
    tn_piece *piece = &w->plan->run.pieces[i];
    uint32_t file = writer->entries[writer->first_entry[piece->first]].file;
    if (!tn_object_has_parts(w->plan, i))
        return TN_OK;
    TN_TRY(tn_work_join_upload(w, file, err));
    piece->sent.size = 0;
    tn_status status = tn_sink_send(writer->files[file].sink, (uint32_t)i, &piece->sent, err);
    if (!status && piece->sent.bad)
        status = tn_fail_nomem(err);
    return tn_in_file(status, writer->files[file].object, err);
}

static tn_status record(tn_work *w, size_t i, tn_error *err)
{
    const tn_plan *p = w->plan;
    tn_buf text = { 0 };
    tn_status status = tn_piece_record_write(p, i, w->id, &text, err);
    if (!status)
        status = tn_pieces_put_record(&w->pieces, i, (tn_text){ (const char *)text.data, text.size }, err);
    tn_buf_free(&text);
    return status;
}

static tn_status sync_part(const tn_work *w, size_t i, tn_error *err)
{
    char name[TN_CLAIM_NAME];
    tn_claim_name(i, ".part", name);
    int part = openat(w->pieces.claims.pieces, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool good = part >= 0 && fdatasync(part) == 0;
    int problem = errno;
    if (part >= 0)
        close(part);
    return good ? TN_OK : tn_fail_errno(err, problem, "cannot write the bytes of a piece");
}

static uint32_t file_of(const tn_work *w, size_t i)
{
    const tn_writer *writer = w->plan->writer;
    return writer->entries[writer->first_entry[w->plan->run.pieces[i].first]].file;
}

/* The records count after that: who reads them finds the data, also after a crash of this machine. */
tn_status tn_work_sync_pieces(void *work, const tn_unsynced *some, tn_error *err)
{
    const tn_work *w = work;
    for (size_t i = 0; i < some->n; i++) {
        uint32_t file = file_of(w, some->pieces[i]);
        if (tn_run_waits(&w->plan->run, some->pieces[i]))
            TN_TRY(sync_part(w, some->pieces[i], err));
        if (i == 0 || file != file_of(w, some->pieces[i - 1]))
            TN_TRY(tn_writer_sync(w->plan->writer, file, err));
    }
    return TN_OK;
}

tn_status tn_work_make_piece(void *work, size_t i, tn_error *err)
{
    tn_work *w = work;
    const tn_claims *claims = &w->pieces.claims;
    char name[TN_CLAIM_PART];
    int part = -1;
    tn_status status = TN_OK;
    if (tn_run_waits(&w->plan->run, i))
        status = tn_claim_open_part(claims, i, name, &part, err);
    if (!status)
        status = tn_plan_run_apart(w->plan, i, part, err);
    if (!status && part >= 0)
        status = tn_claim_name_part(claims, i, name, err);
    if (!status)
        status = send(w, i, err);
    if (!status)
        status = record(w, i, err);
    tn_run_forget(&w->plan->run, i);
    if (status && part >= 0)
        unlinkat(claims->pieces, name, 0);
    if (part >= 0)
        close(part);
    return status;
}

static tn_status in_folder(const tn_work *w, tn_status status, tn_error *err)
{
    return tn_in_file(status, w->path, err);
}

tn_status tn_work_run(tn_work *w, size_t i, tn_work_outcome *outcome, tn_error *err)
{
    tn_work_outcome own;
    outcome = outcome ? outcome : &own;
    *outcome = TN_WORK_WAS_MADE;
    TN_GIVEN(w, "a work", err);
    if (!w->plan)
        return TN_OK;
    if (i >= w->pieces.count)
        return tn_fail_piece(err, i, w->pieces.count);
    tn_status status = tn_pieces_run(&w->pieces, i, outcome, err);
    return status ? tn_work_settle(w, in_folder(w, status, err), err) : TN_OK;
}

tn_status tn_work_run_all(tn_work *w, bool wait, tn_error *err)
{
    TN_GIVEN(w, "a work", err);
    if (!w->plan)
        return TN_OK;
    tn_status status = tn_pieces_run_all(&w->pieces, wait, err);
    return status ? tn_work_settle(w, in_folder(w, status, err), err) : TN_OK;
}
