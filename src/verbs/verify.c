/* verbs/verify.c - checks every checksum, every compressed part and every sparse index. */
#include "base/error.h"
#include "base/options.h"
#include "store/publish.h"
#include "pipeline/scan.h"
#include "pipeline/together.h"
#include "store/sparse.h"

#include <stdlib.h>

typedef struct verification {
    const tn_file *file;
    tn_scan_part *parts;
    size_t        count;
    tn_verify_fn  report;
    void         *context;
    const tn_part *agreed;      /* the last first part whose checksum is right and covers the other parts */
} verification;

/* Whether the checksum of another part covers the bytes of this one. */
static bool is_covered(const tn_part *p, const tn_part *by)
{
    const tn_stored *s = tn_stored_of(p);
    tn_range sum = tn_stored_more_of(by)->sum;
    return !tn_stored_more_of(p)->derive && s->shard == tn_stored_of(by)->shard &&
           s->offset >= sum.offset && s->offset - sum.offset <= sum.size &&
           s->size <= sum.size - (s->offset - sum.offset);
}

/* All that it is derived from has a checksum, which was checked when the part was read. */
static bool is_checked_below(const tn_part *p)
{
    const tn_stored_more *more = tn_stored_more_of(p);
    bool all = more->derive != NULL;
    for (uint32_t i = 0; all && i < more->nfrom; i++)
        all = tn_part_checksum(&more->from[i]) != TN_CHECKSUM_NONE;
    return all;
}

static tn_verdict judge(const tn_scan_part *p, const tn_scan_result *result, tn_error *why)
{
    *why = result->err;
    if (result->status && result->status != TN_ERR_UNSUPPORTED)
        return TN_VERDICT_BAD;
    if (tn_stored_of(p->part)->checksum == TN_CHECKSUM_UNKNOWN) {
        tn_fail(why, TN_ERR_UNSUPPORTED, "checksum %s is of a kind this build cannot check",
                tn_quote_z(tn_stored_of(p->part)->checksum_text).text);
        return TN_VERDICT_NOT_CHECKED;
    }
    if (tn_stored_of(p->part)->checksum == TN_CHECKSUM_NONE)
        return result->status ? TN_VERDICT_UNREADABLE : TN_VERDICT_NONE;
    if (tn_part_compare_digest(p->tensor, p->part, &result->stored, why))
        return TN_VERDICT_BAD;
    if (result->status)         /* the bytes agree, but they cannot be read */
        return TN_VERDICT_UNREADABLE;
    *why = (tn_error){ .offset = TN_NO_OFFSET };
    return TN_VERDICT_OK;
}

/* The verdict for a part without its own checksum. */
static tn_verdict judge_unsummed(const verification *v, const tn_scan_part *p)
{
    bool covered = v->agreed == p->tensor->parts && is_covered(p->part, v->agreed);
    return covered || is_checked_below(p->part) ? TN_VERDICT_OK : TN_VERDICT_NONE;
}

static tn_status keep_error(tn_error *err, const tn_error *why)
{
    if (err)
        *err = *why;
    return why->status;
}

static tn_status done(void *context, size_t k, const tn_scan_result *result, tn_error *err)
{
    verification *v = context;
    const tn_scan_part *p = &v->parts[k];
    if (result->status == TN_ERR_NOMEM || result->status == TN_ERR_IO)
        return keep_error(err, &result->err);           /* not a fault of the part */
    tn_error why;
    tn_verdict verdict = judge(p, result, &why);
    if (verdict == TN_VERDICT_NONE)
        verdict = judge_unsummed(v, p);
    else if (verdict == TN_VERDICT_OK && tn_stored_more_of(p->part)->sum.size)
        v->agreed = p->part;
    if (!result->status && verdict <= TN_VERDICT_NONE && tn_is_sparse_index(p->tensor, p->part)) {
        tn_status status = tn_sparse_check(v->file, p->tensor, p->part, &why);
        if (status == TN_ERR_NOMEM || status == TN_ERR_IO)
            return keep_error(err, &why);
        verdict = status ? TN_VERDICT_BAD : verdict;
    }
    if (verdict == TN_VERDICT_BAD) {
        tn_status status = tn_tensor_settle(v->file, p->tensor, TN_OK, err);
        if (status)
            return status;              /* a fault of the file, not of the part */
    }
    if (why.text[0])            /* good parts may have remarks too */
        tn_in_tensor(TN_ERR_CORRUPT, p->tensor->name, &why);
    if (v->report)
        v->report(v->context, p->tensor, p->part, verdict, &why);
    return TN_OK;
}

/* All parts of all tensors. */
static tn_status list_parts(verification *v, tn_walk *walk, tn_error *err)
{
    const tn_file *f = v->file;
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        n += f->tensors[i].nparts;
    v->parts = malloc((n ? n : 1) * sizeof *v->parts);
    if (!v->parts)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < f->count; i++) {
        for (uint32_t k = 0; k < f->tensors[i].nparts; k++) {
            const tn_part *p = &f->tensors[i].parts[k];
            v->parts[v->count++] = (tn_scan_part){ .tensor = &f->tensors[i], .part = p,
                                                   .kind = tn_part_checksum(p) };
            walk->total += p->nbytes;
        }
    }
    return TN_OK;
}

static const char *path_of_shard(const void *owner, size_t i)
{
    return ((const tn_file *)owner)->shards[i].path;
}

static void look_beside(const tn_file *f, const tn_verify_options *o)
{
    tn_beside beside = { .path = tn_file_path(f), .owner = f, .count = f->nshards, .used = path_of_shard,
                         .report = o->beside, .context = o->context };
    if (o->beside && f->format->look_beside && *beside.path)
        f->format->look_beside(&beside);
}

tn_status tn_verify(const tn_file *f, const tn_verify_options *given, tn_verify_fn report, tn_error *err)
{
    TN_GIVEN(f, "a file", err);
    tn_verify_options o = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_verify_options, beside), &o, given, err));
    verification v = { .file = f, .report = report, .context = o.context };
    tn_walk walk = { .jobs = o.jobs, .progress = o.progress, .context = o.context };
    const tn_asked asked = { .verb = "verify", .files = { f }, .nfiles = 1 };
    walk.together = o.together;
    look_beside(f, &o);
    tn_status status = list_parts(&v, &walk, err);
    if (!status)
        status = tn_together_ask(o.together, &asked, err);
    tn_scan scan = { .file = f, .parts = v.parts, .count = v.count, .done = done, .context = &v };
    if (!status)
        status = tn_scan_run(&scan, &walk, err);
    tn_walk_end(&walk);
    free(v.parts);
    return status;
}
