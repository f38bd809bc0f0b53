/* pipeline/plan_file.c - plans in files: JSON, one item per line.
 *
 * Of a file that is opened only the first lines are read: input, output, options and rules.  The plan is made
 * anew from them and written again; every line must be the same. */
#include "pipeline/plan.h"
#include "base/error.h"
#include "bytes/json.h"
#include "pipeline/rules/rules.h"
#include "pipeline/work_text.h"
#include "store/publish.h"

#include <inttypes.h>
#include <stddef.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/version.h>
#include <unistd.h>

#define PLAN_FORMAT "tenon plan 1"

/* ---- options ---- */

typedef enum kind { BOOL, U64, INT } kind;

typedef enum owner { OF_OPEN, OF_CREATE, OF_CONVERT, OWNERS } owner;

/* Numbers of the structs, in the order of the file. */
typedef struct field {
    const char *key;
    kind        kind;
    owner       owner;
    size_t      at;
} field;

#define OPEN(key, kind, member) { key, kind, OF_OPEN, offsetof(tn_open_options, member) }
#define CREATE(key, kind, member) { key, kind, OF_CREATE, offsetof(tn_create_options, member) }
#define CONVERT(key, kind, member) { key, kind, OF_CONVERT, offsetof(tn_convert_options, member) }
static const field fields[] = {
    OPEN("open_max_bytes", U64, max_bytes),
    OPEN("open_raw_codes", BOOL, raw_codes),
    OPEN("open_strict", BOOL, strict),
    CREATE("replace", BOOL, replace),
    CREATE("drop_metadata", BOOL, drop_metadata),
    CREATE("drop_names", BOOL, drop_names),
    CREATE("align", U64, align),
    CREATE("shard_size", U64, shard_size),
    CREATE("level", INT, level),
    CREATE("encoding", INT, encoding),
    CREATE("checksum", INT, checksum),
    CONVERT("choose_encoding", INT, encoding),
    CONVERT("choose_checksum", INT, checksum),
    CONVERT("in_order", BOOL, in_order),
    CONVERT("max_bytes", U64, max_bytes),
    CONVERT("piece_size", U64, piece_size),
    CONVERT("raw_codes", BOOL, raw_codes),
    CONVERT("strict", BOOL, strict),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };
_Static_assert(sizeof(tn_encoding) == sizeof(int) && sizeof(tn_checksum) == sizeof(int) &&
               sizeof(tn_keep) == sizeof(int), "enums are read as int");

static void put_texts(tn_buf *b, const char *key, const char *const *texts, size_t n)
{
    tn_buf_printf(b, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        tn_buf_puts(b, i ? "," : "");
        tn_json_put_z(b, texts[i]);
    }
    tn_buf_puts(b, "],\n");
}

static void put_fields(tn_buf *b, const tn_plan *p)
{
    const tn_open_options open = { .max_bytes = p->in->max_bytes, .raw_codes = p->in->raw_codes,
                                   .strict = p->in->strict };
    const void *const structs[OWNERS] = { &open, &p->create, &p->o };
    tn_buf_puts(b, "\"options\":{");
    for (size_t i = 0; i < FIELDS; i++) {
        const char *from = (const char *)structs[fields[i].owner] + fields[i].at;
        tn_json_put_key(b, fields[i].key);
        if (fields[i].kind == BOOL)
            tn_buf_puts(b, *(const bool *)(const void *)from ? "true" : "false");
        else if (fields[i].kind == U64)
            tn_buf_printf(b, "%" PRIu64, *(const uint64_t *)(const void *)from);
        else
            tn_buf_printf(b, "%d", *(const int *)(const void *)from);
    }
    tn_buf_puts(b, "},\n");
}

/* A path that leads to the file from any folder, if other processes are to read the plan. */
static void put_path(tn_buf *b, bool is_shared, const char *path)
{
    char folder[PATH_MAX], whole[2 * PATH_MAX];
    if (is_shared && *path && *path != '/' && !tn_is_url(path) && getcwd(folder, sizeof folder)) {
        snprintf(whole, sizeof whole, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path);
        path = whole;
    }
    tn_json_put_z(b, path);
}

static void put_options(tn_buf *b, const tn_plan *p)
{
    put_fields(b, p);
    put_texts(b, "only", p->o.only, p->o.nonly);
    put_texts(b, "rename", p->o.rename, p->o.nrename);
    tn_buf_puts(b, "\"rules\":[");
    for (size_t i = 0; i < p->o.nrules; i++) {
        tn_buf_puts(b, i ? ",\n[" : "\n[");
        tn_json_put_z(b, p->o.rules[i].step);
        tn_buf_puts(b, ",");
        tn_json_put_z(b, p->o.rules[i].text);
        tn_buf_puts(b, "]");
    }
    tn_buf_puts(b, "],\n\"cast_defaults\":");
    tn_json_put_z(b, p->o.cast_defaults ? p->o.cast_defaults : "");
    tn_buf_puts(b, ",\n\"map\":");
    if (p->o.map && access(p->o.map, F_OK) == 0)
        put_path(b, p->is_shared, p->o.map);
    else
        tn_json_put_z(b, p->o.map ? p->o.map : "");
    tn_buf_puts(b, ",\n\"metadata_from\":");
    put_path(b, p->is_shared, p->o.metadata_from ? p->o.metadata_from : "");
    tn_buf_puts(b, ",\n\"format_options\":[");
    for (size_t i = 0; i < p->create.nformat_options; i++) {
        const tn_format_option *o = &p->create.format_options[i];
        tn_buf_puts(b, i ? ",[" : "[");
        tn_json_put_z(b, o->format);
        tn_buf_puts(b, ",");
        tn_json_put_z(b, o->key);
        tn_buf_puts(b, ",");
        tn_json_put_z(b, o->value);
        tn_buf_puts(b, "]");
    }
    tn_buf_puts(b, "],\n");
}

/* ---- what was planned ---- */

/* All that the index of the input says: where the data is, and what it is. */
static uint32_t hash_index(const tn_file *f)
{
    size_t n;
    const tn_meta *meta = tn_file_meta(f, &n);
    uint32_t crc = tn_crc_meta(0, meta, n);
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        crc = tn_crc_text(tn_crc_text(tn_crc_text(crc, t->name), tn_tensor_form_name(t)), t->layout);
        crc = tn_crc_meta(crc, t->meta, t->nmeta);
        for (uint32_t k = 0; k < t->nparts; k++) {
            const tn_part *p = &t->parts[k];
            const tn_stored *s = tn_stored_of(p);
            const uint64_t place[] = { s->offset, s->size, s->shard, s->encoding, s->order, p->array.dtype };
            crc = tn_crc_text(tn_crc_text(crc, p->role), s->checksum_text);
            crc = tn_crc32c(crc, place, sizeof place);
            crc = tn_crc32c(crc, p->array.shape, p->array.rank * sizeof *p->array.shape);
        }
    }
    return crc;
}

void tn_plan_put_inputs(tn_buf *b, const tn_file *f, bool is_shared)
{
    tn_buf_puts(b, "\"inputs\":[");
    for (size_t i = 0; i < f->nshards; i++) {
        const tn_identity *id = tn_source_identity(f->shards[i].source);
        tn_buf_puts(b, i ? ",\n{\"path\":" : "\n{\"path\":");
        put_path(b, is_shared, f->shards[i].path);
        tn_buf_printf(b, ",\"size\":%" PRIu64, tn_source_size(f->shards[i].source));
        const char *version = tn_source_version(f->shards[i].source);
        if (version) {
            tn_buf_puts(b, ",\"version\":");
            tn_json_put_z(b, version);
        }
        if (id)
            tn_buf_printf(b, ",\"modified\":[%lld,%ld]", (long long)id->modified.tv_sec,
                          id->modified.tv_nsec);
        tn_buf_puts(b, "}");
    }
    tn_buf_printf(b, "],\n\"index\":\"crc32c:0x%08X\",\n", hash_index(f));
}

/* Importance data decides codes, as the input does. */
static void put_importance(tn_buf *b, const tn_plan *p)
{
    for (size_t i = 0; i < p->selection.nrules; i++) {
        const tn_read_rule *r = &p->selection.rules[i];
        const tn_cast_rule *cast = r->step->kind == TN_RULE_CAST ? r->rule : NULL;
        if (cast && cast->weights)
            tn_plan_put_inputs(b, cast->weights, p->is_shared);
    }
}

static void put_offset(tn_buf *b, uint64_t offset)
{
    if (offset == TN_UNPLACED)
        tn_buf_puts(b, ",\"offset\":null");
    else
        tn_buf_printf(b, ",\"offset\":%" PRIu64, offset);
}

static void put_entry(tn_buf *b, const tn_plan *p, const tn_out_entry *e)
{
    const tn_tensor *source = p->walk.tensors[e->tensor];
    tn_buf_puts(b, "{\"name\":");
    tn_json_put_z(b, e->name);
    tn_buf_puts(b, ",\"from\":");
    tn_json_put_z(b, source->name);
    tn_buf_printf(b, ",\"dtype\":\"%s\",\"shape\":", tn_dtype_get(e->dtype)->name);
    tn_json_put_shape(b, e->rank, e->shape);
    tn_buf_printf(b, ",\"encoding\":\"%s\",\"checksum\":%u,\"file\":%" PRIu32,
                  tn_codec_of(e->encoding)->name, e->checksum, e->file);
    put_offset(b, e->offset);
    if (e->tied != TN_NOT_TIED)
        tn_buf_printf(b, ",\"tied\":%" PRIu32, e->tied);
    tn_buf_printf(b, ",\"bytes\":%" PRIu64 "}", e->nbytes);
}

static void put_piece(tn_buf *b, const tn_plan *p, size_t i)
{
    tn_plan_piece_info x = { .size = sizeof x };
    (void)tn_plan_piece(p, i, &x, NULL);
    tn_buf_printf(b, "{\"tensors\":[%zu,%zu],\"blocks\":[%" PRIu64 ",%" PRIu64 "],\"file\":%zu",
                  x.first_tensor, x.tensors, x.first_block, x.blocks, x.file);
    put_offset(b, x.offset);
    tn_buf_printf(b, ",\"written\":%" PRIu64 ",\"read\":%" PRIu64 "}", x.bytes_written, x.bytes_read);
}

/* The path of file i of those that were opened as one. */
static const char *input_path(const tn_file *f, size_t i)
{
    return tn_file_shard_name(f->nmembers ? f->members[i] : f, 0);
}

static bool put_input(tn_buf *b, const tn_plan *p)
{
    const tn_file *f = p->in;
    bool named = true;
    tn_buf_puts(b, "\"input\":[");
    for (size_t i = 0; i < f->nmembers || i == 0; i++) {
        named &= *input_path(f, i) != '\0';
        tn_buf_puts(b, i ? "," : "");
        put_path(b, p->is_shared, input_path(f, i));
    }
    tn_buf_puts(b, "],\n");
    return named;
}

const char *tn_plan_head_path(const tn_plan *p)
{
    const tn_writer *w = p->writer;
    for (size_t i = 0; w && i < w->nfiles; i++)
        if (!w->files[i].member && !w->files[i].memory && w->files[i].path)
            return w->files[i].path;
    return p->out_path;
}

void tn_plan_put_format(tn_buf *b)
{
    tn_buf_puts(b, "{\"format\":\"" PLAN_FORMAT "\",\n\"tenon\":");
    tn_json_put_z(b, tn_version());
    tn_buf_puts(b, ",\n");
}

tn_status tn_plan_write(const tn_plan *p, tn_buf *b, tn_error *err)
{
    const tn_writer *w = p->writer;
    tn_plan_put_format(b);
    if (!put_input(b, p) || !w)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a plan is saved before it is finished, and of files with names");
    tn_buf_puts(b, "\"input_format\":");
    tn_json_put_z(b, p->in->asked_format ? p->in->asked_format : "");
    tn_buf_puts(b, ",\n\"output\":");
    put_path(b, p->is_shared, p->out_path);
    tn_buf_puts(b, ",\n\"container\":");
    tn_json_put_z(b, w->format->info.name);
    tn_buf_puts(b, ",\n");
    put_options(b, p);
    tn_plan_put_inputs(b, p->in, p->is_shared);
    put_importance(b, p);
    tn_buf_printf(b, "\"files\":%zu,\n\"head\":", w->nfiles);
    put_path(b, p->is_shared, tn_plan_head_path(p));
    tn_buf_puts(b, ",\n\"parts\":[");
    for (size_t i = 0; i < w->count; i++) {
        tn_buf_puts(b, i ? ",\n" : "\n");
        put_entry(b, p, &w->entries[i]);
    }
    tn_buf_puts(b, "],\n\"pieces\":[");
    for (size_t i = 0; i < tn_plan_count(p); i++) {
        tn_buf_puts(b, i ? ",\n" : "\n");
        put_piece(b, p, i);
    }
    tn_buf_puts(b, "],\n");
    tn_work_seal(b);
    return b->bad ? tn_fail_nomem(err) : TN_OK;
}

tn_status tn_plan_save(const tn_plan *plan, const char *path, tn_error *err)
{
    tn_buf b = { 0 };
    tn_sink *sink;
    TN_GIVEN(plan, "a plan", err);
    TN_GIVEN(path, "a path", err);
    tn_status status = tn_plan_write(plan, &b, err);
    if (!status)
        status = tn_sink_open(path, true, &sink, err);
    if (!status) {
        status = tn_sink_write(sink, 0, b.data, b.size, err);
        if (status)
            tn_sink_abandon(sink);
        else
            status = tn_sink_publish(sink, b.size, err);
    }
    tn_buf_free(&b);
    return tn_in_file(status, path, err);
}

/* ---- opening ---- */

static const char *take_text(tn_json *j)
{
    return tn_json_keep(j, tn_json_string(j));
}

/* Room for one more item; what is grown stays in the arena until its end. */
static void *more(tn_json *j, void *list, size_t n, size_t size)
{
    if (n & (n - 1))            /* not full: it has the next power of two */
        return list;
    void *grown = tn_arena_zalloc(j->arena, n ? 2 * n : 1, size);
    if (grown && n)
        memcpy(grown, list, n * size);
    if (!grown)
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    return grown;
}

static void take_texts(tn_json *j, const char ***list, size_t *n)
{
    *n = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        *list = more(j, *list, *n, sizeof **list);
        if (!*list)
            return;
        (*list)[(*n)++] = take_text(j);
    }
}

/* `count` texts in an array. */
static void take_tuple(tn_json *j, const char **texts, size_t count)
{
    size_t n = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (n == count) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected %zu texts but found more", count);
            return;
        }
        texts[n++] = take_text(j);
    }
    if (n < count)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected %zu texts but found %zu", count, n);
}

static void take_rules(tn_json *j, tn_plan_head *h)
{
    h->o.nrules = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        const char *texts[2] = { NULL, NULL };
        h->rules = more(j, h->rules, h->o.nrules, sizeof *h->rules);
        if (!h->rules)
            return;
        take_tuple(j, texts, 2);
        h->rules[h->o.nrules++] = (tn_rule){ texts[0], texts[1] };
    }
}

static void take_format_options(tn_json *j, tn_plan_head *h)
{
    h->create.nformat_options = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        const char *texts[3] = { NULL, NULL, NULL };
        h->format_options = more(j, h->format_options, h->create.nformat_options, sizeof *h->format_options);
        if (!h->format_options)
            return;
        take_tuple(j, texts, 3);
        h->format_options[h->create.nformat_options++] = (tn_format_option){ texts[0], texts[1], texts[2] };
    }
}

static void take_field(tn_json *j, const field *f, tn_plan_head *h)
{
    void *const structs[OWNERS] = { &h->open, &h->create, &h->o };
    char *to = (char *)structs[f->owner] + f->at;
    if (f->kind == BOOL) {
        *(bool *)(void *)to = tn_json_bool(j);
    } else if (f->kind == U64) {
        *(uint64_t *)(void *)to = tn_json_u64(j);
    } else {
        int64_t value = tn_json_i64(j);
        if (value < INT16_MIN || value > INT16_MAX)
            tn_json_reject(j, TN_ERR_CORRUPT, "expected a small number");
        else
            *(int *)(void *)to = (int)value;
    }
}

static void take_fields(tn_json *j, tn_plan_head *h)
{
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        size_t i = 0;
        while (i < FIELDS && !tn_text_is(key, fields[i].key))
            i++;
        if (i < FIELDS)
            take_field(j, &fields[i], h);
        else
            tn_json_reject(j, TN_ERR_CORRUPT, "unknown option %s", tn_quote(key.ptr, key.len).text);
    }
}

static void take_member(tn_json *j, tn_text key, tn_plan_head *h)
{
    const struct { const char *key; const char **to; } texts[] = {
        { "format", &h->format }, { "tenon", &h->tenon }, { "output", &h->output },
        { "input_format", &h->open.format },
        { "container", &h->container }, { "cast_defaults", &h->o.cast_defaults },
        { "map", &h->o.map }, { "metadata_from", &h->o.metadata_from }, { "head", &h->head },
        { "verb", &h->verb },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (tn_text_is(key, texts[i].key)) {
            *texts[i].to = take_text(j);
            return;
        }
    if (tn_text_is(key, "options"))
        take_fields(j, h);
    else if (tn_text_is(key, "input"))
        take_texts(j, &h->input, &h->ninput);
    else if (tn_text_is(key, "only"))
        take_texts(j, &h->only, &h->o.nonly);
    else if (tn_text_is(key, "rename"))
        take_texts(j, &h->rename, &h->o.nrename);
    else if (tn_text_is(key, "rules"))
        take_rules(j, h);
    else if (tn_text_is(key, "format_options"))
        take_format_options(j, h);
    else
        tn_json_skip(j);        /* compared with the new plan */
}

tn_status tn_plan_read_head(const void *text, size_t n, tn_arena *arena, tn_plan_head *h, tn_error *err)
{
    tn_json j;
    tn_text key;
    tn_json_init(&j, text, n, arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key))
        take_member(&j, key, h);
    tn_json_done(&j);
    if (j.status)
        return tn_json_fail(&j, 0, err);
    if (!h->format || strcmp(h->format, PLAN_FORMAT) != 0)
        return tn_fail(err, TN_ERR_CORRUPT, "expected a plan of format \"" PLAN_FORMAT "\"");
    if (!h->tenon || strcmp(h->tenon, tn_version()) != 0)
        return tn_fail(err, TN_ERR_CHANGED, "it was planned by Tenon %s, but this is Tenon %s",
                       tn_quote_z(h->tenon ? h->tenon : "").text, tn_version());
    if (h->verb)
        return TN_OK;
    if (!h->ninput || !h->output || !h->container)
        return tn_fail(err, TN_ERR_CORRUPT, "expected an input, an output and its container");
    h->open.size = sizeof h->open;
    if (h->open.format && !*h->open.format)
        h->open.format = NULL;
    h->create.size = sizeof h->create;
    h->create.format = h->container;
    h->create.format_options = h->format_options;
    h->o.size = sizeof h->o;
    h->o.create = &h->create;
    h->o.only = h->only;
    h->o.rename = h->rename;
    h->o.rules = h->rules;
    const char **const may_be_empty[] = { &h->o.cast_defaults, &h->o.map, &h->o.metadata_from };
    for (size_t i = 0; i < sizeof may_be_empty / sizeof *may_be_empty; i++)
        if (*may_be_empty[i] && !**may_be_empty[i])
            *may_be_empty[i] = NULL;
    return TN_OK;
}

/* The rest of a line from byte `from` on. */
static tn_quoted line_at(tn_text text, size_t from)
{
    const char *end = memchr(text.ptr + from, '\n', text.len - from);
    return tn_quote(text.ptr + from, end ? (size_t)(end - text.ptr) - from : text.len - from);
}

/* What a line of a plan is about, or NULL: it belongs to the line before it. */
static const char *subject_of(const char *line, size_t n)
{
    static const struct { const char *keys, *subject; } subjects[] = {
        { "\"tenon\"", "another version of Tenon has planned it" },
        { "\"input\" \"input_format\" \"inputs\" \"index\"", "the input is not what it was" },
        { "\"verb\" \"options\" \"only\" \"rename\" \"rules\" \"types\" \"casts\" "
          "\"numbers\" \"opened\"  \"cast_defaults\" \"map\" \"metadata_from\" "
          "\"format_options\"", "the options are not what they were" },
        { "\"output\" \"container\" \"files\" \"head\" \"parts\" \"pieces\" \"checksum\"",
         "another plan comes out" },
    };
    const char *colon = memchr(line, ':', n);
    char key[24] = "";
    size_t length = colon ? (size_t)(colon - line) : 0;
    if (length < 3 || length >= sizeof key || *line != '"')
        return NULL;
    memcpy(key, line, length);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (strstr(subjects[i].keys, key))
            return subjects[i].subject;
    return NULL;
}

tn_status tn_plan_compare(tn_text saved, tn_text made, tn_error *err)
{
    size_t same = 0, line = 0, number = 1;
    const char *subject = "another plan comes out", *begun = NULL;
    while (same < saved.len && same < made.len && saved.ptr[same] == made.ptr[same]) {
        if (saved.ptr[same++] == '\n') {
            line = same;
            number++;
            begun = subject_of(saved.ptr + line, saved.len - line);
            subject = begun ? begun : subject;
        }
    }
    if (same == saved.len && same == made.len)
        return TN_OK;
    enum { BEFORE = 30 };       /* bytes of the line that are the same, for the reader */
    size_t from = same - line > BEFORE ? same - BEFORE : line;
    return tn_fail(err, TN_ERR_CHANGED, "%s: line %zu: expected %s but found %s", subject, number,
                   line_at(saved, from).text, line_at(made, from).text);
}

static tn_status make_again(tn_file *file, const tn_plan_head *h, tn_text saved, tn_plan **plan,
                            tn_error *err)
{
    tn_plan *p = NULL;
    tn_buf made = { 0 };
    tn_convert_options o = h->o;
    tn_create_options create = h->create;
    create.replace |= h->replaces;
    o.create = &create;
    TN_TRY(tn_plan_make(file, h->output, &o, &p, err));
    p->create.replace = h->create.replace;
    p->is_shared = h->is_shared;
    tn_status status = tn_plan_write(p, &made, err);
    if (!status)
        status = tn_plan_compare(saved, (tn_text){ (const char *)made.data, made.size }, err);
    tn_buf_free(&made);
    if (status) {
        tn_plan_free(p);
        return status;
    }
    p->own = file;
    *plan = p;
    return TN_OK;
}

tn_status tn_plan_make_again(const tn_plan_head *h, tn_text saved, const char *path, tn_plan **plan,
                             tn_error *err)
{
    tn_file *file = NULL;
    tn_status status = tn_open_several(h->input, h->ninput, &h->open, &file, err);
    if (h->ninput == 1)
        tn_in_file(status, h->input[0], err);
    if (!status) {
        status = make_again(file, h, saved, plan, err);
        if (status == TN_ERR_CHANGED)
            tn_in_file(status, path, err);
    }
    if (status)
        tn_close(file);
    return status;
}

tn_status tn_plan_open(const char *path, tn_plan **plan, tn_error *err)
{
    tn_source *source = NULL;
    tn_arena arena = { 0 };
    const uint8_t *text = NULL;
    tn_plan_head h = { 0 };
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(plan, "a place for the plan", err);
    tn_status status = tn_source_open(path, TN_IO_PREAD, &source, err);
    uint64_t n = status ? 0 : tn_source_size(source);
    if (!status)
        status = tn_index_check_size(n, 0, err);
    if (!status)
        status = tn_source_copy(source, 0, n, &arena, &text, err);
    if (!status)
        status = tn_plan_read_head(text, (size_t)n, &arena, &h, err);
    status = tn_in_file(status, path, err);
    if (!status)
        status = tn_plan_make_again(&h, (tn_text){ (const char *)text, (size_t)n }, path, plan, err);
    tn_arena_free(&arena);
    tn_source_close(source);
    return status;
}
