/* verbs/edit.c - new metadata, the same data. */
#include "base/error.h"
#include "base/options.h"
#include "bytes/sink.h"
#include "store/file.h"
#include "store/meta_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TRIES    = 1000,        /* if others keep changing the file */
    WAIT_SECONDS = 60           /* for others who edit the file */
};

#define JSON "json"

/* A change of metadata, and the type of its text. */
typedef struct typed_edit {
    const tn_meta_edit *edit;
    const char         *type;   /* or NULL */
} typed_edit;

bool tn_meta_type_exists(const char *type)
{
    if (!type)
        return false;
    tn_meta_type known = tn_meta_type_named((tn_text){ type, strlen(type) });
    return strcmp(type, JSON) == 0 || (known != TN_META_NONE && known != TN_META_ARRAY);
}

/* The value that replaces `old` (or NULL) by its own type. */
static tn_status keep_type(tn_file *f, const tn_meta *old, const char *text, tn_meta *new, tn_error *err)
{
    tn_meta_type items, type = tn_meta_type_of(old, &items);
    bool array = type == TN_META_ARRAY;
    type = array ? items : type;
    if (type == TN_META_STRING && !array) {
        new->text = text;
        return TN_OK;
    }
    bool fits = text[strspn(text, " \t\r\n")] == '[' ? array : !array;
    tn_status status = type == TN_META_ARRAY ? tn_meta_from_text(text, TN_META_NONE, &f->arena, new, err)
                                             : tn_meta_from_text(text, type, &f->arena, new, err);
    if (status == TN_ERR_NOMEM || (!status && fits))
        return status;
    const char *name = type < TN_META_TYPES ? tn_meta_type_get(type)->name : JSON;
    return tn_fail(err, TN_ERR_ARGUMENT,
                   "metadata %s is %s %s: expected %s, or the name of another type, but found %s",
                   tn_quote_z(new->key).text, array ? "an array of" : "of type", name,
                   array ? "a JSON array of such" : "such a value", tn_quote_z(text).text);
}

static tn_status make_value(tn_file *f, const tn_meta *old, const typed_edit *e, tn_meta *new, tn_error *err)
{
    const char *text = e->edit->text;
    *new = (tn_meta){ .key = e->edit->key };
    if (!e->type && old && f->format->typed_meta)
        return keep_type(f, old, text, new, err);
    tn_meta_type type = TN_META_STRING;
    if (e->type)
        type = tn_meta_type_named((tn_text){ e->type, strlen(e->type) });
    if (type != TN_META_STRING)
        return tn_meta_from_text(text, type, &f->arena, new, err);
    new->text = text;
    return TN_OK;
}

/* A list with one key set, replaced or removed; in the file's arena. */
static tn_status edit_list(tn_file *f, const tn_meta **list, size_t *n, const typed_edit *e, tn_error *err)
{
    const tn_meta_edit *edit = e->edit;
    tn_meta *copy = tn_arena_zalloc(&f->arena, *n + 1, sizeof *copy), new = { .key = edit->key };
    const tn_meta *old = NULL;
    if (!copy)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < *n && !old; i++)
        old = strcmp((*list)[i].key, edit->key) == 0 ? &(*list)[i] : NULL;
    TN_TRY(edit->text ? make_value(f, old, e, &new, err) : TN_OK);
    size_t kept = 0;
    bool found = false;
    for (size_t i = 0; i < *n; i++) {
        bool same_key = strcmp((*list)[i].key, edit->key) == 0;
        found |= same_key;
        if (!same_key || edit->text)
            copy[kept++] = same_key ? new : (*list)[i];
    }
    if (!found && !edit->text)
        return tn_fail(err, TN_ERR_ARGUMENT, "there is no metadata key %s to remove",
                       tn_quote_z(edit->key).text);
    if (!found)
        copy[kept++] = new;
    *list = copy;
    *n = kept;
    return TN_OK;
}

static tn_status apply(tn_file *f, const typed_edit *e, tn_error *err)
{
    const tn_meta_edit *edit = e->edit;
    size_t key = strlen(edit->key), text = edit->text ? strlen(edit->text) : 0;
    if (tn_utf8_valid(edit->key, key) != key || (edit->text && tn_utf8_valid(edit->text, text) != text))
        return tn_fail(err, TN_ERR_ARGUMENT, "metadata %s is not UTF-8", tn_quote_z(edit->key).text);
    if (!edit->tensor)
        return edit_list(f, &f->meta, &f->nmeta, e, err);
    const tn_tensor *found = tn_file_find(f, edit->tensor);
    if (!found)
        return tn_fail(err, TN_ERR_ARGUMENT, "there is no tensor %s", tn_quote_z(edit->tensor).text);
    tn_tensor *t = &f->tensors[found - f->tensors];
    size_t n = t->nmeta;
    tn_status status = edit_list(f, &t->meta, &n, e, err);
    t->nmeta = (uint32_t)n;
    return status;
}

static tn_status write_locked(tn_file *f, int fd, tn_listener listener, uint64_t *shared, tn_error *err)
{
    const tn_source *source = f->shards[0].source;
    tn_lock lock = tn_identity_lock(fd, WAIT_SECONDS);
    tn_sink *sink;
    uint64_t size;
    tn_error own;
    err = err ? err : &own;
    tn_status status = tn_sink_open(listener.path, true, &sink, err);
    if (status)
        return status;
    tn_sink_listen(sink, listener);
    tn_sink_expect(sink, tn_source_identity(source), lock == TN_LOCK_HELD);
    status = tn_sink_check(sink, err);      /* it may have changed while we waited */
    if (!status)
        status = f->format->rewrite(f, sink, &size, shared, err);
    status = tn_file_settle(f, status, err);
    if (!status)
        return tn_sink_publish(sink, size, err);
    tn_sink_abandon(sink);
    return status;
}

/* The lock belongs to the descriptor, which stays open meanwhile. */
static tn_status write_edited(tn_file *f, tn_listener listener, uint64_t *shared, tn_error *err)
{
    const tn_source *source = f->shards[0].source;
    int fd;
    TN_TRY(tn_source_hold(source, &fd, err));
    tn_status status = write_locked(f, fd, listener, shared, err);
    tn_source_release(source);
    return status;
}

static tn_status check_editable(const tn_file *f, tn_error *err)
{
    if (tn_source_is_far(f->shards[0].source))
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the metadata of a file that is elsewhere cannot be edited in place: edit a copy");
    if (f->format == &tn_format_raw)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the metadata of raw files is in the text of their descriptor: edit that");
    if (!f->format->rewrite)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the metadata of format %s cannot be edited in place: convert the file to "
                       "ztensor or safetensors, edit it there, and convert it back", f->format->info.name);
    if (f->nshards > 1 && !f->format->meta_in_first)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the metadata of a sharded set cannot be edited in place: edit each shard");
    return TN_OK;
}

/* Closing the file releases its lock. */
static tn_status run(tn_listener listener, const typed_edit *edits, size_t nedits, uint64_t *shared,
                     tn_error *err)
{
    const tn_open_options entries = { .size = sizeof entries, .raw_codes = true };
    tn_file *f;
    TN_TRY(tn_open(listener.path, &entries, &f, err));
    tn_status status = check_editable(f, err);
    for (size_t i = 0; i < nedits && !status; i++)
        status = apply(f, &edits[i], err);
    if (!status)
        status = write_edited(f, listener, shared, err);
    tn_close(f);
    return status;
}

static tn_status run_until_done(tn_listener listener, const typed_edit *edits, size_t nedits,
                                uint64_t *shared, tn_error *err)
{
    tn_error why = { .offset = TN_NO_OFFSET };
    tn_status status = TN_ERR_CHANGED;
    for (int i = 0; i < MAX_TRIES && status == TN_ERR_CHANGED; i++)
        status = run(listener, edits, nedits, shared, &why);
    tn_in_file(status, listener.path, &why);
    if (status && err)
        *err = why;
    return status;
}

static tn_status take_edits(const tn_meta_edit *edits, size_t n, const char *const *types, typed_edit *typed,
                            tn_error *err)
{
    for (size_t i = 0; i < n; i++) {
        TN_GIVEN(edits[i].key, "a key", err);
        typed[i] = (typed_edit){ &edits[i], types ? types[i] : NULL };
        if (typed[i].type && !tn_meta_type_exists(typed[i].type))
            return tn_fail(err, TN_ERR_ARGUMENT, "expected str, json, bool, or a number type such as u32 or "
                           "f32 but found %s", tn_quote_z(typed[i].type).text);
    }
    return TN_OK;
}

tn_status tn_edit_meta(const char *path, const tn_meta_edit *edits, size_t nedits,
                       const tn_edit_options *options, uint64_t *shared_bytes, tn_error *err)
{
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(edits || !nedits, "edits", err);
    tn_edit_options o = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_edit_options, context), &o, options, err));
    uint64_t shared = 0;
    typed_edit *typed = calloc(nedits ? nedits : 1, sizeof *typed);
    tn_status status = typed ? take_edits(edits, nedits, o.types, typed, err) : tn_fail_nomem(err);
    if (!status)
        status = run_until_done((tn_listener){ o.note, o.context, path }, typed, nedits, &shared, err);
    free(typed);
    if (!status && shared_bytes)
        *shared_bytes = shared;
    return status;
}
