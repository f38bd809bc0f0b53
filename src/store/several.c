/* store/several.c - several files opened as one.
 *
 * The files stay open as members.  Their shards are numbered one after the other, those of files first and
 * those that were decoded last, as in every tn_file; tensors are copies whose parts have the new numbers. */
#include "base/error.h"
#include "base/options.h"
#include "base/pages.h"
#include "store/packed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the shards of one member are among all. */
typedef struct renumbering {
    size_t files;               /* of its shards, so many are files... */
    size_t first, decoded;      /* ...from this number on, and the others from that number on */
} renumbering;

typedef struct joining {
    tn_file     *all;
    tn_file    **members;
    size_t       n;
    renumbering *shards;        /* of each member */
    tn_meta     *meta;
    tn_names     keys;
    size_t       nmeta;
} joining;

static uint32_t shifted(const renumbering *r, uint32_t shard)
{
    return (uint32_t)(shard < r->files ? r->first + shard : r->decoded + (shard - r->files));
}

static tn_status join_shards(joining *j, tn_error *err)
{
    size_t total = 0, files = 0;
    for (size_t m = 0; m < j->n; m++) {
        total += j->members[m]->nshards;
        files += tn_file_shards(j->members[m]);
    }
    tn_shard *shards = calloc(total, sizeof *shards);
    if (!shards || total > UINT32_MAX) {
        free(shards);
        return tn_fail_nomem(err);
    }
    j->all->shards = shards;
    j->all->nshards = total;
    for (size_t m = 0, first = 0, decoded = files; m < j->n; m++) {
        const tn_file *f = j->members[m];
        j->shards[m] = (renumbering){ tn_file_shards(f), first, decoded };
        for (uint32_t i = 0; i < f->nshards; i++)
            shards[shifted(&j->shards[m], i)] = f->shards[i];
        first += j->shards[m].files;
        decoded += f->nshards - j->shards[m].files;
    }
    return TN_OK;
}

static const tn_part *renumber_parts(tn_arena *arena, const renumbering *r, const tn_part *parts, size_t n);

/* A copy with the new number; NULL without memory. */
static const tn_stored *renumber(tn_arena *arena, const renumbering *r, const tn_part *part)
{
    const tn_stored_more *old = tn_stored_more_of(part);
    tn_stored *copy = tn_arena_copy(arena, part->stored, sizeof *copy);
    if (!copy || !old->derive) {
        if (copy)
            copy->shard = shifted(r, copy->shard);
        return copy;
    }
    tn_stored_more *more = tn_arena_copy(arena, copy->more, sizeof *more);
    if (!more || !(more->from = renumber_parts(arena, r, old->from, old->nfrom)))
        return NULL;
    copy->more = more;
    return copy;
}

static const tn_part *renumber_parts(tn_arena *arena, const renumbering *r, const tn_part *parts, size_t n)
{
    tn_part *copies = tn_arena_copy(arena, parts, n * sizeof *copies);
    for (size_t i = 0; copies && i < n; i++)
        if (copies[i].stored && !(copies[i].stored = renumber(arena, r, &copies[i])))
            return NULL;
    return copies;
}

static tn_status join_tensors(joining *j, tn_error *err)
{
    tn_file *all = j->all;
    size_t total = 0;
    for (size_t m = 0; m < j->n; m++)
        total += j->members[m]->count;
    all->tensors = tn_pages_alloc(total * sizeof *all->tensors);
    if (!all->tensors)
        return tn_fail_nomem(err);
    for (size_t m = 0; m < j->n; m++)
        for (size_t i = 0; i < j->members[m]->count; i++) {
            tn_tensor *t = &all->tensors[all->count++];
            *t = j->members[m]->tensors[i];
            t->parts = renumber_parts(&all->arena, &j->shards[m], t->parts, t->nparts);
            if (!t->parts)
                return tn_fail_nomem(err);
        }
    return TN_OK;
}

/* The member that a tensor is of, before several entries become one tensor. */
static const tn_file *member_of(const tn_file *f, size_t tensor)
{
    size_t m = 0;
    for (; tensor >= f->members[m]->count; m++)
        tensor -= f->members[m]->count;
    return f->members[m];
}

static const char *path_of(const tn_file *f) { return f->shards[0].path; }

static const char *tensor_name(const void *owner, size_t i)
{
    return ((const tn_file *)owner)->tensors[i].name;
}

static tn_status index_names(joining *j, tn_error *err)
{
    tn_file *all = j->all;
    size_t other = 0;
    if (!tn_names_init(&all->names, all->count))
        return tn_fail_nomem(err);
    size_t i = tn_names_add_all(&all->names, all, tensor_name, all->count, &other);
    if (i == all->count)
        return TN_OK;
    tn_status status = tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_RENAME_BEFORE, NULL,
                                 "expected names that no two files have but it is in %s, too",
                                 tn_quote_z(path_of(member_of(all, other))).text);
    return tn_in_file(tn_in_tensor(status, all->tensors[i].name, err), path_of(member_of(all, i)), err);
}

/* ---- metadata, properties, warnings ---- */

static const char *meta_key(const void *owner, size_t i) { return ((const joining *)owner)->meta[i].key; }

bool tn_meta_same_value(const tn_meta *a, const tn_meta *b)
{
    if (!a->text != !b->text)
        return false;
    return a->text ? strcmp(a->text, b->text) == 0
                   : a->cbor_size == b->cbor_size && memcmp(a->cbor, b->cbor, a->cbor_size) == 0;
}

/* Notes what a conversion of all would lose: the first thing of any member. */
static bool leave_out(joining *j, const char **left_out, const char *what, const char *from)
{
    if (what && !*left_out)
        *left_out = tn_arena_printf(&j->all->arena, "%s (%s)", what, from);
    return !what || *left_out;
}

static tn_status join_member_meta(joining *j, const tn_file *f, tn_error *err)
{
    for (size_t i = 0; i < f->nmeta; i++) {
        size_t known = tn_names_find(&j->keys, j, meta_key, f->meta[i].key);
        const char *both = NULL;
        if (known == SIZE_MAX) {
            j->meta[j->nmeta] = f->meta[i];
            if (tn_names_add(&j->keys, j, meta_key, j->nmeta++) == TN_NAMES_NOMEM)
                return tn_fail_nomem(err);
        } else if (!tn_meta_same_value(&j->meta[known], &f->meta[i])) {
            both = tn_arena_printf(&j->all->arena, "two values of metadata %s", f->meta[i].key);
            if (!both)
                return tn_fail_nomem(err);
        }
        if (!leave_out(j, &j->all->left_out, both, path_of(f)))
            return tn_fail_nomem(err);
    }
    return TN_OK;
}

static tn_status join_meta(joining *j, tn_error *err)
{
    size_t most = 0;
    for (size_t m = 0; m < j->n; m++)
        most += j->members[m]->nmeta;
    j->meta = tn_arena_zalloc(&j->all->arena, most, sizeof *j->meta);
    if (!j->meta)
        return tn_fail_nomem(err);
    for (size_t m = 0; m < j->n; m++)
        TN_TRY(join_member_meta(j, j->members[m], err));
    j->all->meta = j->meta;
    j->all->nmeta = j->nmeta;
    return TN_OK;
}

static tn_status join_properties(joining *j, tn_error *err)
{
    bool any = false;
    for (size_t m = 0; m < j->n; m++) {
        const tn_file *f = j->members[m];
        any |= f->properties != NULL;
        if (!leave_out(j, &j->all->left_out, f->left_out, path_of(f)) ||
            !leave_out(j, &j->all->left_out_property, f->left_out_property, path_of(f)))
            return tn_fail_nomem(err);
    }
    if (!any)
        return TN_OK;
    tn_properties *all = tn_arena_zalloc(&j->all->arena, j->all->count, sizeof *all);
    if (!all)
        return tn_fail_nomem(err);
    j->all->properties = all;
    for (size_t m = 0; m < j->n; all += j->members[m++]->count)
        if (j->members[m]->properties)
            memcpy(all, j->members[m]->properties, j->members[m]->count * sizeof *all);
    return TN_OK;
}

static tn_status join_warnings(joining *j, tn_error *err)
{
    for (size_t m = 0; m < j->n; m++)
        for (size_t i = 0; i < j->members[m]->nwarnings; i++) {
            char path[300], text[700];
            tn_escape(path, sizeof path, path_of(j->members[m]), strlen(path_of(j->members[m])));
            snprintf(text, sizeof text, "%s: %s", path, j->members[m]->warnings[i]);
            tn_file_keep_warning(j->all, text);
        }
    return tn_file_end_warnings(j->all, err);
}

/* ---- opening ---- */

static tn_status join(joining *j, tn_error *err)
{
    j->shards = calloc(j->n, sizeof *j->shards);
    tn_status status = j->shards ? join_shards(j, err) : tn_fail_nomem(err);
    if (!status)
        status = join_tensors(j, err);
    if (!status)
        status = index_names(j, err);
    if (!status)
        status = join_meta(j, err);
    if (!status)
        status = join_properties(j, err);
    if (!status && !j->all->raw_codes)
        status = tn_packed_find(j->all, err);
    if (!status)
        status = join_warnings(j, err);
    tn_names_free(&j->keys);
    free(j->shards);
    return status;
}

/* Whether a file is one of those that another one, which names them, has opened. */
static bool is_file_of(const tn_file *one, const tn_file *set)
{
    const tn_identity *own = tn_source_identity(one->shards[0].source);
    if (one == set || one->nshards > 1 || one->format != set->format || !set->format->is_later_file || !own)
        return false;
    for (size_t i = 1; i < set->nshards; i++) {
        const tn_identity *its = tn_source_identity(set->shards[i].source);
        if (its && tn_identity_same_file(own, its))
            return true;
    }
    return false;
}

/* All files of a set were named: its first has opened the others. */
static void drop_files_of_sets(tn_file *all)
{
    size_t kept = 0;
    for (size_t m = 0; m < all->nmembers; m++) {
        bool found = false;
        for (size_t k = 0; k < all->nmembers && !found; k++)
            found = all->members[k] && is_file_of(all->members[m], all->members[k]);
        if (found) {
            tn_close(all->members[m]);
            all->members[m] = NULL;
        }
    }
    for (size_t m = 0; m < all->nmembers; m++)
        if (all->members[m])
            all->members[kept++] = all->members[m];
    all->nmembers = kept;
}

static tn_status open_all(tn_file *all, const char *const *paths, size_t n, const tn_open_options *options,
                          tn_error *err)
{
    tn_open_options each = { .size = sizeof each };
    if (options)
        TN_TRY(tn_take_options(TN_SIZED(tn_open_options, max_bytes), &each, options, err));
    all->raw_codes = each.raw_codes;
    each.size = sizeof each;
    each.raw_codes = true;  /* what belongs together may be in several files: it is looked for in all */
    for (; all->nmembers < n; all->nmembers++)
        TN_TRY(tn_open(paths[all->nmembers], &each, &all->members[all->nmembers], err));
    drop_files_of_sets(all);
    all->format = all->members[0]->format;
    all->asked_format = all->members[0]->asked_format;
    all->io = all->members[0]->io;
    all->strict = all->members[0]->strict;
    all->max_bytes = all->members[0]->max_bytes;
    joining j = { .all = all, .members = all->members, .n = all->nmembers };
    return join(&j, err);
}

tn_status tn_open_several(const char *const *paths, size_t n, const tn_open_options *options, tn_file **file,
                          tn_error *err)
{
    for (size_t i = 0; i < n || n == 0; i++)
        if (!paths || !n || !paths[i])
            return tn_fail(err, TN_ERR_ARGUMENT, "expected the paths of one or more files but found NULL");
    if (n == 1)
        return tn_open(paths[0], options, file, err);
    tn_file *all = calloc(1, sizeof *all);
    if (all)
        all->members = calloc(n, sizeof *all->members);
    tn_status status = all && all->members ? open_all(all, paths, n, options, err) : tn_fail_nomem(err);
    if (status)
        tn_close(all);
    else
        *file = all;
    return status;
}

/* ---- messages ---- */

const char *tn_file_path(const tn_file *f) { return f->nmembers ? "" : path_of(f); }

tn_status tn_file_name_member(const tn_file *f, tn_status status, tn_error *err)
{
    for (size_t m = 0; status && err && err->tensor[0] && m < f->nmembers; m++)
        for (size_t i = 0; i < f->members[m]->count && !err->file[0]; i++) {
            char name[sizeof err->tensor];
            const char *own = f->members[m]->tensors[i].name;
            tn_escape(name, sizeof name, own, strlen(own));
            if (strcmp(name, err->tensor) == 0)
                tn_in_file(status, path_of(f->members[m]), err);
        }
    return status;
}

void tn_file_note_left(const tn_file *file, const tn_format *to, tn_note_fn note, void *context)
{
    for (size_t i = 0; note && (i < file->nmembers || i == 0); i++) {
        const tn_file *one = file->nmembers ? file->members[i] : file;
        char text[100];
        if (!one->format->not_carried || one->format == to)
            continue;
        snprintf(text, sizeof text, "%s is not carried over, only tensors and metadata are",
                 one->format->not_carried);
        note(context, tn_file_path(one), text);
    }
}
