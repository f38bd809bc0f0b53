/* formats/pytorch/walk.c - from the value that a pickle makes to names: the tensors and the metadata.
 *
 * The same value may be reached on many ways, and 500 bytes can make 10^12 of them: each step counts, and so
 * does each byte of a name or text. */
#include "formats/pytorch/pytorch.h"
#include "base/checked.h"
#include "bytes/cbor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEPTH = 64, MAX_NAME = 65536, STEP_BYTES = 16 };

typedef struct walk {
    tn_pt_reader       *r;
    const tn_pt_pickle *pickle;
    tn_buf              path;
    unsigned            depth;
    unsigned            quiet;  /* how many objects it is inside of: only tensors count there */
    uint64_t            steps, most_steps;
} walk;

static tn_status visit(walk *w, const tn_pt_value *v, tn_error *err);

static tn_status count_steps(walk *w, uint64_t n, tn_error *err)
{
    w->steps += n;
    if (w->steps <= w->most_steps)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_LIMIT, w->pickle->at,
                      "the pickle reaches the same objects more often than the %" PRIu64 " times allowed",
                      w->most_steps);
}

static tn_status too_deep(const walk *w, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_LIMIT, w->pickle->at, "expected values at most %d deep but found deeper",
                      MAX_DEPTH);
}

static tn_status in_itself(const walk *w, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_CORRUPT, w->pickle->at, "the pickle has an object that contains itself");
}

/* --- paths --- */

/* Appends a name; returns the length before.  The root has none. */
static size_t enter(walk *w, tn_text name)
{
    size_t before = w->path.size;
    if (w->depth++)
        tn_buf_putc(&w->path, '.');
    tn_buf_put(&w->path, name.ptr, name.len);
    return before;
}

static void leave(walk *w, size_t before)
{
    w->depth--;
    w->path.size = before;
}

static tn_status keep_path(walk *w, const char **name, tn_error *err)
{
    TN_NEED(!w->path.bad, err);
    if (w->path.size > MAX_NAME)
        return tn_fail_at(err, TN_ERR_LIMIT, w->pickle->at,
                          "expected a name of at most %d bytes but found %zu", MAX_NAME, w->path.size);
    TN_TRY(count_steps(w, w->path.size / STEP_BYTES, err));
    tn_text path = { (const char *)w->path.data, w->path.size };
    *name = tn_file_text(w->r->file, path.len ? path : (tn_text){ "", 0 }, "name", w->pickle->at, err);
    return *name ? TN_OK : err->status;
}

typedef struct digits { char text[24]; size_t n; } digits;

static digits decimal(uint64_t number, bool negative)
{
    digits d = { .n = 0 };
    char reversed[24];
    size_t n = 0;
    do
        reversed[n++] = (char)('0' + number % 10);
    while (number /= 10);
    if (negative)
        d.text[d.n++] = '-';
    while (n)
        d.text[d.n++] = reversed[--n];
    return d;
}

/* The name of a key; false: it is neither text nor integer. */
static bool key_name(const tn_pt_value *key, digits *d, tn_text *name)
{
    if (key->kind == TN_PT_TEXT) {
        *name = tn_pt_text(key);
        return true;
    }
    if (key->kind != TN_PT_INT && key->kind != TN_PT_UINT)
        return false;
    bool negative = key->kind == TN_PT_INT && key->i < 0;
    *d = decimal(negative ? 0 - (uint64_t)key->i : key->u, negative);
    *name = (tn_text){ d->text, d->n };
    return true;
}

/* --- what is left out --- */

/* A name of Python, in quotes if it could be taken for something else. */
static tn_quoted global_name(const tn_pt_global *g)
{
    char text[sizeof(tn_quoted)];
    int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)tn_min_u64(g->module.len, sizeof text),
                     g->module.len ? g->module.ptr : "", (int)tn_min_u64(g->name.len, sizeof text),
                     g->name.len ? g->name.ptr : "");
    size_t length = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    tn_quoted quoted = tn_quote(text, length);
    size_t plain = 0;
    while (plain < length && (tn_is_digit(text[plain]) || strchr("._", text[plain]) ||
                              (tn_lower(text[plain]) >= 'a' && tn_lower(text[plain]) <= 'z')))
        plain++;
    if (plain == length && g->module.len && g->name.len)
        memcpy(quoted.text, text, length + 1);
    return quoted;
}

static tn_status set_left_out(tn_pt_reader *r, const char *what, tn_error *err)
{
    if (!r->file->left_out)
        r->file->left_out = tn_arena_printf(&r->file->arena, "%s", what);
    return r->file->left_out ? TN_OK : tn_fail_nomem(err);
}

static tn_status leave_out(walk *w, const char *what, tn_error *err)
{
    tn_quoted path = tn_quote((const char *)w->path.data, w->path.size);
    tn_file_warn(w->r->file, w->pickle->at, "%s is left out: %s", w->depth ? path.text : "the root", what);
    return set_left_out(w->r, what, err);
}

static tn_status leave_object(walk *w, const tn_pt_global *class, tn_error *err)
{
    char text[sizeof(tn_quoted) + 10];
    snprintf(text, sizeof text, "object %s", global_name(class).text);
    return leave_out(w, text, err);
}

static const char *kind_text(const tn_pt_value *v)
{
    static const char *const names[] = {
        [TN_PT_NONE] = "None", [TN_PT_BOOL] = "bool", [TN_PT_INT] = "int", [TN_PT_UINT] = "int",
        [TN_PT_BIG] = "int", [TN_PT_FLOAT] = "float", [TN_PT_TEXT] = "text", [TN_PT_BYTES] = "bytes",
        [TN_PT_SET] = "object builtins.set", [TN_PT_STORAGE] = "storage", [TN_PT_NUMPY_TYPE] = "NumPy type",
    };
    if (v->kind == TN_PT_WORD)
        return v->text;
    return v->kind < sizeof names / sizeof *names && names[v->kind] ? names[v->kind] : "value";
}

static tn_status leave_kind(walk *w, const tn_pt_value *v, tn_error *err)
{
    if (w->quiet)
        return TN_OK;
    if (v->kind != TN_PT_GLOBAL)
        return leave_out(w, kind_text(v), err);
    return tn_pt_is_dtype(v->global) ? leave_out(w, "dtype", err) : leave_object(w, v->global, err);
}

tn_status tn_pt_name_calls(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle, tn_error *err)
{
    for (size_t i = 0; i < m->ncalls; i++)
        tn_file_warn(r->file, pickle->at + (pickle->is_raw ? m->calls[i].at : 0),
                     "calls %s: Python would run it", global_name(m->calls[i].global).text);
    r->file->dropped_warnings += m->dropped_calls;
    return m->ncalls ? set_left_out(r, "calls of Python functions", err) : TN_OK;
}

/* --- dicts --- */

typedef struct keys {
    const char **names;
} keys;

static const char *key_at(const void *owner, size_t i)
{
    return ((const keys *)owner)->names[i];
}

/* A text that no other key has; bytes that are not UTF-8 stand for what a C string cannot hold. */
static tn_status unique_key(walk *w, const tn_pt_value *key, const char **text, tn_error *err)
{
    digits d;
    tn_text name;
    *text = "";                 /* not looked at */
    if (!key_name(key, &d, &name))
        return TN_OK;
    TN_TRY(count_steps(w, name.len / STEP_BYTES, err));
    char *copy = tn_arena_alloc(&w->r->arena, 2 * name.len + 2);
    size_t n = 0;
    TN_NEED(copy, err);
    *text = copy;
    if (key->kind != TN_PT_TEXT)
        copy[n++] = '\xff';
    for (size_t i = 0; i < name.len; i++) {
        if (!name.ptr[i])
            copy[n++] = '\xc0';
        copy[n++] = name.ptr[i] ? name.ptr[i] : '\x80';
    }
    copy[n] = 0;
    return TN_OK;
}

/* A key that comes twice has its last value, at the place of the first, as in Python. */
static tn_status make_unique(walk *w, tn_pt_items *dict, tn_error *err)
{
    uint32_t n = dict->count / 2, kept = 0;
    keys k = { .names = tn_arena_alloc(&w->r->arena, n * sizeof *k.names) };
    tn_names names = { 0 };
    tn_status status = k.names && tn_names_init(&names, n) ? TN_OK : tn_fail_nomem(err);
    for (uint32_t i = 0; i < n && !status; i++) {
        const tn_pt_value key = dict->at[2 * i], value = dict->at[2 * i + 1];
        size_t other = TN_NAMES_ADDED;
        status = unique_key(w, &key, &k.names[kept], err);
        if (!status && (k.names[kept][0] || key.kind == TN_PT_TEXT))
            other = tn_names_add(&names, &k, key_at, kept);
        if (other == TN_NAMES_NOMEM)
            status = tn_fail_nomem(err);
        if (status)
            break;
        uint32_t to = other == TN_NAMES_ADDED ? kept++ : (uint32_t)other;
        dict->at[2 * to] = key;
        dict->at[2 * to + 1] = value;
    }
    tn_names_free(&names);
    dict->count = 2 * kept;
    dict->is_unique = true;
    return status;
}

/* --- plain values --- */

static bool is_plain_key(const tn_pt_value *key)
{
    return key->kind == TN_PT_TEXT || key->kind == TN_PT_INT || key->kind == TN_PT_UINT;
}

/* Whether a value has no tensor below it and nothing that CBOR has no word for. */
static tn_status find_plain(walk *w, const tn_pt_value *v, unsigned depth, bool *plain, tn_error *err)
{
    *plain = v->kind <= TN_PT_BYTES && v->kind != TN_PT_BIG;
    if (!tn_pt_is_items(v) || v->kind == TN_PT_SET)
        return TN_OK;
    tn_pt_items *items = v->items;
    *plain = items->seen == TN_PT_PLAIN;
    if (items->seen != TN_PT_NEW)
        return TN_OK;
    if (items->inside)
        return in_itself(w, err);
    if (depth > MAX_DEPTH)
        return too_deep(w, err);
    *plain = !items->of;
    items->inside = true;
    bool dict = v->kind == TN_PT_DICT;
    tn_status status = dict && !items->is_unique ? make_unique(w, items, err) : TN_OK;
    for (uint32_t i = 0; i < items->count && *plain && !status; i++) {
        if (dict && i % 2 == 0)
            *plain = is_plain_key(&items->at[i]);
        else
            status = find_plain(w, &items->at[i], depth + 1, plain, err);
    }
    items->inside = false;
    items->seen = *plain ? TN_PT_PLAIN : TN_PT_NOT_PLAIN;
    return status;
}

static void put_scalar(tn_buf *b, const tn_pt_value *v)
{
    switch (v->kind) {
    case TN_PT_BOOL:  tn_cbor_put_bool(b, v->i); break;
    case TN_PT_INT:   tn_cbor_put_i64(b, v->i); break;
    case TN_PT_UINT:  tn_cbor_put_u64(b, v->u); break;
    case TN_PT_FLOAT: tn_cbor_put_f64(b, v->f); break;
    case TN_PT_TEXT:  tn_cbor_put_text(b, v->text, v->size); break;
    case TN_PT_BYTES: tn_cbor_put_bytes(b, v->text, v->size); break;
    default:          tn_cbor_put_null(b);
    }
}

/* A plain value as CBOR. */
static tn_status put_plain(walk *w, tn_buf *b, const tn_pt_value *v, tn_error *err)
{
    bool text = v->kind == TN_PT_TEXT || v->kind == TN_PT_BYTES;
    TN_TRY(count_steps(w, 1 + (text ? v->size / STEP_BYTES : 0), err));
    if (!tn_pt_is_items(v)) {
        put_scalar(b, v);
        return TN_OK;
    }
    if (v->kind == TN_PT_DICT)
        tn_cbor_put_map(b, v->items->count / 2);
    else
        tn_cbor_put_array(b, v->items->count);
    for (uint32_t i = 0; i < v->items->count; i++)
        TN_TRY(put_plain(w, b, &v->items->at[i], err));
    return TN_OK;
}

static const char *meta_key(const void *owner, size_t i)
{
    return ((const tn_pt_reader *)owner)->meta[i].key;
}

static tn_status add_meta(walk *w, const tn_meta *meta, tn_error *err)
{
    tn_pt_reader *r = w->r;
    TN_NEED(TN_GROW(r->meta, r->nmeta, r->meta_cap), err);
    r->meta[r->nmeta] = *meta;
    size_t other = tn_names_add(&r->meta_names, r, meta_key, r->nmeta);
    TN_NEED(other != TN_NAMES_NOMEM, err);
    if (other != TN_NAMES_ADDED)
        return leave_out(w, "a second value of this name", err);
    r->nmeta++;
    return TN_OK;
}

static tn_status keep_plain(walk *w, const tn_pt_value *v, tn_error *err)
{
    tn_file *file = w->r->file;
    tn_meta meta = { 0 };
    tn_buf cbor = { 0 };
    TN_TRY(keep_path(w, &meta.key, err));
    tn_status status = put_plain(w, &cbor, v, err);
    bool text = v->kind == TN_PT_TEXT && !tn_text_has_nul(tn_pt_text(v));
    if (!status && text)
        meta.text = tn_arena_text(&file->arena, v->text, v->size);
    else if (!status && !cbor.bad)
        meta.cbor = tn_arena_copy(&file->arena, cbor.data, cbor.size);
    meta.cbor_size = text ? 0 : cbor.size;
    tn_buf_free(&cbor);
    if (!status && !meta.text && !meta.cbor)
        status = tn_fail_nomem(err);
    return status ? status : add_meta(w, &meta, err);
}

/* --- tensors --- */

static tn_status visit_tensor(walk *w, const tn_pt_tensor *t, tn_error *err)
{
    tn_pt_reader *r = w->r;
    if (t->is_meta)
        return leave_out(w, "meta tensor", err);
    if (t->is_empty_object)
        return leave_out(w, t->is_numpy ? "NumPy array whose elements are no numbers" : "tensor without data",
                         err);
    tn_pt_found found = { .tensor = t, .from = w->pickle };
    if (w->depth)
        TN_TRY(keep_path(w, &found.name, err));
    TN_NEED(TN_GROW(r->found, r->nfound, r->found_cap), err);
    r->found[r->nfound++] = found;
    return TN_OK;
}

/* --- containers --- */

static tn_status visit_named(walk *w, tn_text name, const tn_pt_value *v, tn_error *err)
{
    size_t before = enter(w, name);
    tn_status status = visit(w, v, err);
    leave(w, before);
    return status;
}

static tn_status visit_items(walk *w, const tn_pt_value *v, tn_error *err)
{
    bool odd = false;
    for (uint32_t i = 0; i < v->items->count; i += v->kind == TN_PT_DICT ? 2 : 1) {
        digits d = decimal(i, false);
        tn_text name = { d.text, d.n };
        const tn_pt_value *item = &v->items->at[i];
        if (v->kind != TN_PT_DICT)
            TN_TRY(visit_named(w, name, item, err));
        else if (key_name(item, &d, &name))
            TN_TRY(visit_named(w, name, item + 1, err));
        else
            odd = true;
    }
    return odd && !w->quiet ? leave_out(w, "a key that is neither text nor integer", err) : TN_OK;
}

static tn_status visit_container(walk *w, const tn_pt_value *v, tn_error *err)
{
    bool plain = false;
    TN_TRY(find_plain(w, v, w->depth, &plain, err));
    if (plain && w->quiet)
        return TN_OK;
    if (plain && w->depth)
        return keep_plain(w, v, err);
    if (v->items->inside)
        return in_itself(w, err);
    if (w->depth >= MAX_DEPTH)
        return too_deep(w, err);
    if (v->items->of && !w->quiet) {
        char text[40];
        snprintf(text, sizeof text, "collections.%s", v->items->of);
        TN_TRY(leave_out(w, text, err));
    }
    v->items->inside = true;
    tn_status status = visit_items(w, v, err);
    v->items->inside = false;
    return status;
}

/* --- objects --- */

static bool is_dict(const tn_pt_value *v) { return v && v->kind == TN_PT_DICT; }

static bool is_module(const tn_pt_value *state)
{
    return state->kind == TN_PT_DICT && is_dict(tn_pt_find(state, "_parameters")) &&
           is_dict(tn_pt_find(state, "_buffers")) && is_dict(tn_pt_find(state, "_modules"));
}

/* Names of buffers that are not part of the state. */
typedef struct text_set {
    keys     texts;
    tn_names names;
} text_set;

/* The texts in a list or set; a module may have None or nothing. */
static tn_status index_texts(walk *w, const tn_pt_value *from, text_set *set, tn_error *err)
{
    uint32_t n = from && tn_pt_is_items(from) ? from->items->count : 0;
    TN_TRY(count_steps(w, n, err));
    set->texts.names = tn_arena_alloc(&w->r->arena, n * sizeof *set->texts.names);
    TN_NEED(set->texts.names && tn_names_init(&set->names, n), err);
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(unique_key(w, &from->items->at[i], &set->texts.names[i], err));
        TN_NEED(tn_names_add(&set->names, &set->texts, key_at, i) != TN_NAMES_NOMEM, err);
    }
    return TN_OK;
}

/* Whether a member of a module counts: it is of this kind, and has a name that is not in `without`. */
static tn_status is_member(walk *w, const tn_pt_value *item, tn_pt_kind kind, const text_set *without,
                           bool *counts, tn_error *err)
{
    const char *key;
    TN_TRY(count_steps(w, 1, err));
    *counts = item[1].kind == kind;
    if (!*counts || !without->names.count)
        return TN_OK;
    TN_TRY(unique_key(w, item, &key, err));
    *counts = tn_names_find(&without->names, &without->texts, key_at, key) == SIZE_MAX;
    return TN_OK;
}

/* The values of one kind in a dict of a module, by name. */
static tn_status visit_members(walk *w, const tn_pt_value *dict, tn_pt_kind kind, const text_set *without,
                               tn_error *err)
{
    if (!dict->items->is_unique)
        TN_TRY(make_unique(w, dict->items, err));
    for (uint32_t i = 0; i + 1 < dict->items->count; i += 2) {
        digits d;
        tn_text name;
        bool counts;
        const tn_pt_value *item = &dict->items->at[i];
        TN_TRY(is_member(w, item, kind, without, &counts, err));
        if (counts && key_name(item, &d, &name))
            TN_TRY(visit_named(w, name, item + 1, err));
    }
    return TN_OK;
}

/* As state_dict() lists it: parameters, buffers that are persistent, then the modules in it. */
static tn_status visit_module(walk *w, const tn_pt_value *state, tn_error *err)
{
    static const text_set none;
    text_set without = none;
    TN_TRY(visit_members(w, tn_pt_find(state, "_parameters"), TN_PT_TENSOR, &none, err));
    tn_status status = index_texts(w, tn_pt_find(state, "_non_persistent_buffers_set"), &without, err);
    if (!status)
        status = visit_members(w, tn_pt_find(state, "_buffers"), TN_PT_TENSOR, &without, err);
    tn_names_free(&without.names);
    TN_TRY(status);
    return visit_members(w, tn_pt_find(state, "_modules"), TN_PT_OBJECT, &none, err);
}

/* The state of an object; that of one with slots is a tuple of two dicts. */
static tn_status visit_state(walk *w, const tn_pt_value *state, tn_error *err)
{
    bool slots = state->kind == TN_PT_TUPLE && state->items->count == 2 &&
                 (is_dict(&state->items->at[0]) || state->items->at[0].kind == TN_PT_NONE) &&
                 is_dict(&state->items->at[1]);
    if (state->kind == TN_PT_DICT)          /* it is searched for names */
        TN_TRY(count_steps(w, state->items->count / STEP_BYTES, err));
    if (is_module(state))
        return visit_module(w, state, err);
    if (slots)
        TN_TRY(visit(w, &state->items->at[0], err));
    return visit(w, slots ? &state->items->at[1] : state, err);
}

static bool is_script_class(const tn_pt_global *class)
{
    static const char own[] = "__torch__";
    return class->module.len >= strlen(own) && memcmp(class->module.ptr, own, strlen(own)) == 0;
}

static tn_status visit_object(walk *w, tn_pt_object *object, tn_error *err)
{
    if (object->inside)
        return in_itself(w, err);
    if (w->depth >= MAX_DEPTH)
        return too_deep(w, err);
    if (!w->quiet && !is_script_class(object->class))
        TN_TRY(leave_object(w, object->class, err));
    object->inside = true;
    w->quiet++;
    tn_status status = visit_state(w, &object->state, err);
    w->quiet--;
    object->inside = false;
    return status;
}

/* --- all --- */

static tn_status visit(walk *w, const tn_pt_value *v, tn_error *err)
{
    TN_TRY(count_steps(w, 1, err));
    if (v->kind == TN_PT_TENSOR)
        return visit_tensor(w, v->tensor, err);
    if (v->kind == TN_PT_OBJECT)
        return visit_object(w, v->object, err);
    if (tn_pt_is_items(v) && v->kind != TN_PT_SET)
        return visit_container(w, v, err);
    bool plain = v->kind <= TN_PT_BYTES && v->kind != TN_PT_BIG && w->depth;
    if (plain && !w->quiet)
        return keep_plain(w, v, err);
    return plain ? TN_OK : leave_kind(w, v, err);
}

static walk begin(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle)
{
    return (walk){ .r = r, .pickle = pickle, .most_steps = 4 * m->opcodes + pickle->bytes.len / 4 + 1000 };
}

tn_status tn_pt_walk(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle,
                     const tn_pt_value *root, tn_error *err)
{
    walk w = begin(r, m, pickle);
    tn_status status = visit(&w, root, err);
    tn_buf_free(&w.path);
    return status;
}

tn_status tn_pt_walk_constants(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle,
                               const tn_pt_value *root, tn_error *err)
{
    walk w = begin(r, m, pickle);
    tn_status status = TN_OK;
    w.quiet = 1;
    enter(&w, (tn_text){ "CONSTANTS", 9 });
    for (uint32_t i = 0; tn_pt_is_list(root) && i < root->items->count && !status; i++) {
        digits d = decimal(i, false);
        char name[sizeof d.text + 1] = "c";
        memcpy(name + 1, d.text, d.n);
        status = visit_named(&w, (tn_text){ name, d.n + 1 }, &root->items->at[i], err);
    }
    tn_buf_free(&w.path);
    return status;
}
