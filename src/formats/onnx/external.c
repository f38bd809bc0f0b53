/* formats/onnx/external.c - data in other files: where, and whether that may be.
 *
 * A location is relative to the folder of the model's own name, also if that is a link: the files of a
 * Hugging Face cache are links to blobs, and the names are beside each other. */
#include "formats/onnx/onnx.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 1024 };

enum { LOCATION, OFFSET, LENGTH, CHECKSUM, BASEPATH, KEYS };
static const char *const keys[KEYS] = { "location", "offset", "length", "checksum", "basepath" };

tn_status tn_onnx_add_entry(tn_onnx_model *m, const tn_proto *tensor, const tn_proto_field *field,
                            tn_onnx_entries *entries)
{
    tn_proto entry = tn_proto_enter(tensor, field, &tn_onnx_entry_kind);
    tn_proto_field f;
    const char *key = "", *value = "";
    while (tn_proto_next(&entry, &f)) {
        if (f.number == TN_ONNX_ENTRY_KEY)
            key = tn_proto_text(&entry, &f, "key", m->arena);
        else if (f.number == TN_ONNX_ENTRY_VALUE)
            value = tn_proto_text(&entry, &f, "value", m->arena);
    }
    if (entry.in->status)
        return entry.in->status;
    size_t k = 0;
    while (k < KEYS && strcmp(key, keys[k]) != 0)
        k++;
    if (k == KEYS && m->file)
        tn_file_warn(m->file, field->at, "external_data has the key %s, which is not known",
                     tn_quote_z(key).text);
    if (k == KEYS)
        return TN_OK;
    if (entries->values[k])
        return tn_proto_reject(entry.in, TN_ERR_CORRUPT, field->at, "external_data has the key %s twice",
                               key);
    entries->values[k] = value;
    return TN_OK;
}

/* Takes names that are "." out of a path of names with "/" between them.  False: it is not such a path. */
static bool clean_location(char *text)
{
    char *end = text;
    if (strchr(text, '\\'))
        return false;
    for (const char *name = text;; name++) {
        size_t n = strcspn(name, "/");
        bool is_last = !name[n];
        if (n == 0 || (n == 2 && memcmp(name, "..", 2) == 0))
            return false;
        if (n != 1 || *name != '.') {
            if (end > text)
                *end++ = '/';
            memmove(end, name, n);
            end += n;
        }
        name += n;
        if (is_last)
            break;
    }
    *end = '\0';
    return end > text;
}

/* Decimal digits, below 2^63. */
static bool read_number(const char *text, uint64_t *number)
{
    *number = 0;
    const char *at = text;
    while (tn_is_digit(*at) && tn_add_digit(number, *at))
        at++;
    return at > text && !*at && *number <= INT64_MAX;
}

static tn_status take_number(tn_onnx_model *m, const tn_onnx_entries *e, int key, uint64_t at,
                             uint64_t *number)
{
    if (!e->values[key] || read_number(e->values[key], number))
        return TN_OK;
    return tn_proto_reject(m->in, TN_ERR_CORRUPT, at,
                           "expected %s of external_data as digits, below 2^63, but found %s", keys[key],
                           tn_quote_z(e->values[key]).text);
}

tn_status tn_onnx_read_external(tn_onnx_model *m, const tn_onnx_entries *e, uint64_t at, tn_onnx_tensor *t)
{
    const char *location = e->values[LOCATION];
    tn_onnx_external x = { .checksum = e->values[CHECKSUM], .has_length = e->values[LENGTH] != NULL };
    if (!location || !*location)
        return tn_proto_reject(m->in, TN_ERR_CORRUPT, at,
                               "its data is in another file but it has no location");
    char *own = tn_arena_text(m->arena, location, strlen(location));
    if (!own)
        return m->in->status = tn_fail_nomem(m->in->err);
    x.location = own;
    if (!clean_location(own))
        return tn_proto_reject(m->in, TN_ERR_CORRUPT, at, "its data is in the file %s: expected names with "
                               "\"/\" between them, below the folder of the model, and none of them \"..\"",
                               tn_quote_z(location).text);
    TN_TRY(take_number(m, e, OFFSET, at, &x.offset));
    TN_TRY(take_number(m, e, LENGTH, at, &x.length));
    t->external = tn_arena_copy(m->arena, &x, sizeof x);
    t->place = TN_ONNX_EXTERNAL;
    return t->external ? TN_OK : (m->in->status = tn_fail_nomem(m->in->err));
}

/* ---- opening ---- */

/* The files that are open: their locations, and their numbers in the tn_file. */
typedef struct opened {
    const char *locations[MAX_FILES];
    uint32_t    shards[MAX_FILES];
    size_t      count;
    tn_names    names;
} opened;

static const char *location_at(const void *owner, size_t i)
{
    return ((const opened *)owner)->locations[i];
}

/* A folder or a device is there, but is not what a model may name. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static tn_status open_next(tn_onnx_model *m, opened *o, const char *location, tn_error *err)
{
    const char *model = m->file->shards[0].path;
    if (!*model)
        return tn_fail(err, TN_ERR_IO, "its data is in the file %s: open the model by its path, so that it "
                       "can be found", tn_quote_z(location).text);
    if (o->count == MAX_FILES)
        return tn_fail(err, TN_ERR_LIMIT, "expected data in at most %d other files but found more",
                       MAX_FILES);
    const char *path = tn_arena_join(m->arena, model, (size_t)(tn_base_name(model) - model), location);
    TN_NEED(path, err);
    tn_error why;
    tn_status status = tn_file_add_shard(m->file, path, &o->shards[o->count], &why);
    if (status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    if (status == TN_ERR_IO && is_special(path))
        status = TN_ERR_CORRUPT;
    if (status)
        return tn_fail(err, status, "its data is in the file %s beside the model: %s",
                       tn_quote_z(location).text, why.text);
    o->locations[o->count] = location;
    TN_NEED(tn_names_add(&o->names, o, location_at, o->count) != TN_NAMES_NOMEM, err);
    o->count++;
    return TN_OK;
}

static tn_status find_range(tn_onnx_model *m, opened *o, tn_onnx_tensor *t, tn_error *err)
{
    const tn_onnx_external *x = t->external;
    size_t i = tn_names_find(&o->names, o, location_at, x->location);
    if (i >= o->count) {
        i = o->count;
        TN_TRY(open_next(m, o, x->location, err));
    }
    uint64_t size = tn_source_size(m->file->shards[o->shards[i]].source);
    bool inside = x->offset <= size && (!x->has_length || x->length <= size - x->offset);
    t->file = o->shards[i];
    t->offset = x->offset;
    t->size = x->has_length ? x->length : size - x->offset;
    if (inside)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, t->at, "its data is %" PRIu64 " bytes at %" PRIu64
                      " of the file %s, which has %" PRIu64 " bytes", x->length, x->offset,
                      tn_quote_z(x->location).text, size);
}

tn_status tn_onnx_open_external(tn_onnx_model *m, tn_error *err)
{
    opened o = { .count = 0 };
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++)
        if (m->tensors[i].place == TN_ONNX_EXTERNAL)
            status = tn_in_tensor(find_range(m, &o, &m->tensors[i], err), m->tensors[i].name, err);
    tn_names_free(&o.names);
    return status;
}
