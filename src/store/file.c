/* store/file.c - opening a file, and what an open file answers. */
#include "store/file.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/pages.h"
#include "tensor/array.h"
#include "store/folder.h"
#include "store/forms.h"
#include "store/packed.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* for binary files, and for JSON */
enum { PROBE_BYTES = 4096, PROBE_TEXT_BYTES = 128 << 20 };

/* Far beyond any machine, and small enough that a part's bits can be counted in 64 bits. */
#define MAX_PART_BYTES (UINT64_C(1) << 59)

static const char *tensor_name(const void *owner, size_t i)
{
    return ((const tn_file *)owner)->tensors[i].name;
}

/* A larger copy of `old`, which is freed; NULL leaves it. */
static void *enlarge(void *old, size_t count, size_t cap, size_t size)
{
    void *block = cap <= SIZE_MAX / size ? tn_pages_alloc(cap * size) : NULL;
    if (block && count)
        memcpy(block, old, count * size);
    if (block)
        free(old);
    return block;
}

static bool set_capacity(tn_file *f, size_t cap)
{
    tn_tensor *tensors = enlarge(f->tensors, f->count, cap, sizeof *tensors);
    f->tensors = tensors ? tensors : f->tensors;
    tn_part *parts = enlarge(f->parts, f->count, cap, sizeof *parts);
    f->parts = parts ? parts : f->parts;
    uint64_t *at = enlarge(f->at, f->count, cap, sizeof *at);
    f->at = at ? at : f->at;
    tn_text *records = f->records ? enlarge(f->records, f->count, cap, sizeof *records) : NULL;
    f->records = records ? records : f->records;
    if (!tensors || !parts || !at || (f->records && !records))
        return false;
    for (size_t i = 0; i < f->count; i++)
        if (f->tensors[i].nparts == 1)          /* several are in the arena */
            f->tensors[i].parts = &f->parts[i];
    f->cap = cap;
    return true;
}

tn_status tn_file_expect(tn_file *f, size_t n, tn_error *err)
{
    return n <= f->cap || set_capacity(f, n) ? TN_OK : tn_fail_nomem(err);
}

/* Most files have no records: the array exists from the first record on. */
static bool keep_record(tn_file *f, tn_text record)
{
    if (record.len && !f->records && !(f->records = calloc(f->cap, sizeof *f->records)))
        return false;           /* zeroed: earlier entries have none */
    if (f->records)
        f->records[f->count] = record;
    return true;
}

static tn_status too_large(const tn_entry *e, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_LIMIT, e->at, "its shape takes more than 2^59 bytes");
}

static tn_status find_nbytes(const tn_file *f, const tn_entry *e, uint64_t *nbytes, tn_error *err)
{
    const tn_part *last = f->count ? &f->parts[f->count - 1] : NULL;
    if (last && e->shape == last->array.shape && e->rank == last->array.rank &&
        e->dtype == last->array.dtype) {
        *nbytes = last->nbytes;         /* neighbours often have the same shape, and formats keep equal shapes
                                         * once */
        return TN_OK;
    }
    tn_status status = tn_shape_nbytes(e->dtype, e->rank, e->shape, nbytes);
    if (status || *nbytes > MAX_PART_BYTES)
        return too_large(e, err);
    return TN_OK;
}

static tn_status check_place(const tn_file *f, const tn_entry *e, const tn_stored *s, tn_error *err)
{
    uint64_t size = tn_source_size(f->shards[s->shard].source);
    if (s->offset > size || s->size > size - s->offset)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "data of %" PRIu64 " bytes at %" PRIu64 " but the file has %" PRIu64 " bytes",
                          s->size, s->offset, size);
    return TN_OK;
}

/* Strided elements: the last one must be inside the stored bytes (decoded if they are compressed). */
static tn_status check_strided(const tn_file *f, const tn_entry *e, uint64_t nbytes, tn_error *err)
{
    uint64_t span, have = e->stored.encoding == TN_ENCODING_RAW ? e->stored.size : nbytes;
    if (e->more.decoded)
        have = e->more.skip < e->more.decoded ? e->more.decoded - e->more.skip : 0;
    if (tn_strided_nbytes(e->dtype, e->rank, e->shape, e->more.stride, &span) || span > have)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "its strides reach beyond the %" PRIu64 " bytes that are stored", have);
    return check_place(f, e, &e->stored, err);
}

static bool is_whole_bytes(tn_dtype dtype)
{
    return dtype != TN_UNKNOWN && tn_dtype_get(dtype)->bits % 8 == 0;
}

/* Rows with a pitch: none may overlap, and the last one must be inside the stored bytes. */
static tn_status check_pitched(const tn_file *f, const tn_entry *e, const tn_array *a, const tn_stored *s,
                               uint64_t pitch, tn_error *err)
{
    uint64_t nbytes, end = 0;
    bool good =
        a->rank && s->encoding == TN_ENCODING_RAW && is_whole_bytes(a->dtype) && !tn_array_nbytes(a, &nbytes);
    if (good && nbytes) {
        uint64_t row = nbytes / (uint64_t)a->shape[0];
        good = row <= pitch && tn_mul_u64((uint64_t)a->shape[0] - 1, pitch, &end) &&
               tn_add_u64(end, row, &end) && end <= s->size;
    }
    if (!good)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at, "its rows, %" PRIu64 " bytes apart, do not fit the %"
                          PRIu64 " bytes that are stored", pitch, s->size);
    return check_place(f, e, s, err);
}

/* Elements that are derived from other parts, each with an extent. */
static tn_status check_derived(const tn_file *f, const tn_entry *e, const tn_part *p, tn_error *err)
{
    const tn_stored_more *more = tn_stored_more_of(p);
    if (p->nbytes > MAX_PART_BYTES)
        return too_large(e, err);
    for (uint32_t i = 0; i < more->nfrom; i++)
        TN_TRY(check_place(f, e, tn_stored_of(&more->from[i]), err));
    return more->derive->check ? tn_at_byte(more->derive->check(p, err), e->at, err) : TN_OK;
}

/* Checks the size against shape and type, and the place against the file. */
static tn_status check_entry(const tn_file *f, const tn_entry *e, uint64_t *nbytes, tn_error *err)
{
    const tn_array array = { e->dtype, e->rank, e->shape, NULL };
    const tn_stored stored = { .more = &e->more };
    *nbytes = 0;
    if (e->dtype != TN_UNKNOWN) {
        /* A sparse tensor may be larger than any memory. */
        tn_status status = find_nbytes(f, e, nbytes, e->more.opaque ? NULL : err);
        if (status && !e->more.opaque)
            return status;
        if (e->more.stride)
            return check_strided(f, e, *nbytes, err);
        if (e->more.pitch)
            return check_pitched(f, e, &array, &e->stored, e->more.pitch, err);
        if (e->more.derive)
            return check_derived(f, e, &(tn_part){ .array = array, .stored = &stored }, err);
        if (e->stored.encoding == TN_ENCODING_RAW && !e->more.opaque && e->stored.size != *nbytes)
            return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                              "shape and type take %" PRIu64 " bytes but %" PRIu64 " are stored", *nbytes,
                              e->stored.size);
    }
    return check_place(f, e, &e->stored, err);
}

const void *tn_file_view(const tn_file *f, const tn_part *p)
{
    const tn_stored *s = tn_stored_of(p);
    const tn_stored_more *more = tn_stored_more_of(p);
    bool known = tn_dtype_get(p->array.dtype) && !more->opaque && !more->never;
    if (!known || !tn_part_is_range(p) || tn_part_is_swapped(p))
        return NULL;
    return tn_source_view(f->shards[s->shard].source, s->offset, s->size);
}

tn_status tn_file_index_names(tn_file *f, tn_error *err)
{
    size_t other, i;
    tn_names_free(&f->names);
    if (!tn_names_init(&f->names, f->count))
        return tn_fail_nomem(err);
    i = tn_names_add_all(&f->names, f, tensor_name, f->count, &other);
    if (i < f->count)
        return tn_in_tensor(tn_fail_at(err, TN_ERR_CORRUPT, f->at[i],
                                       "it is listed twice: first at byte %" PRIu64, f->at[other]),
                            f->tensors[i].name, err);
    return TN_OK;
}

/* Most files list their tensors in the order of their data: then overlaps are found without sorting. */
static void note_order(tn_file *f, const tn_stored *s)
{
    tn_range r = tn_entry_range(s);
    if (!r.size)
        return;
    f->disordered |= s->shard < f->last_shard || (s->shard == f->last_shard && r.offset < f->last_end);
    f->last_shard = s->shard;
    f->last_end = r.offset + r.size;
}

static tn_status check_companion(const tn_file *f, const tn_entry *e, const tn_part *p, tn_error *err)
{
    const tn_stored_more *more = tn_stored_more_of(p);
    if (more->pitch)
        return check_pitched(f, e, &p->array, tn_stored_of(p), more->pitch, err);
    return more->derive ? check_derived(f, e, p, err) : TN_OK;
}

tn_status tn_file_says(tn_status status, uint64_t at, tn_error *err)
{
    if (!status || status == TN_ERR_NOMEM)
        return status;
    if (err)
        err->status = TN_ERR_CORRUPT;
    return tn_at_byte(TN_ERR_CORRUPT, at, err);
}

tn_status tn_entry_make_fortran(tn_file *f, tn_entry *e, tn_error *err)
{
    int64_t *stride = tn_arena_zalloc(&f->arena, e->rank, sizeof *stride), step = 1;
    TN_NEED(stride, err);
    for (uint32_t i = 0; i < e->rank; i++) {
        stride[i] = step;
        step *= e->shape[i];
    }
    e->more.stride = stride;
    return TN_OK;
}

/* The tensor being added has more parts, such as scales or indices. */
static tn_status add_companions(tn_file *f, const tn_entry *e, tn_error *err)
{
    tn_tensor *t = &f->tensors[f->count];
    tn_part *parts = tn_arena_zalloc(&f->arena, e->ncompanions + 1, sizeof *parts);
    if (!parts)
        return tn_fail_nomem(err);
    t->form = e->form != TN_FORM_DENSE ? e->form : TN_FORM_SCALED;
    parts[0] = t->parts[0];
    parts[0].role = tn_form_get(t->form)->roles[0];
    for (uint32_t k = 1; k <= e->ncompanions; k++) {
        parts[k] = e->companions[k - 1];
        tn_status status = check_companion(f, e, &parts[k], err);
        if (status)
            return status;
        parts[k].data = parts[k].data ? parts[k].data : tn_file_view(f, &parts[k]);
    }
    t->dtype = e->value_dtype;
    t->rank = e->value_shape ? e->value_rank : t->rank;
    t->shape = e->value_shape ? e->value_shape : t->shape;
    t->scaling = e->scaling;
    t->parts = parts;
    t->nparts = e->ncompanions + 1;
    return tn_file_says(tn_form_check(t, tn_scaling_datatype(t->scaling, &f->datatype), err), e->at, err);
}

/* The name of an opaque layout, unless a form has the same name. */
static const char *form_text(const tn_entry *e)
{
    const char *name = e->form_text ? e->form_text : e->more.opaque;
    return name && tn_form_parse(name) == TN_FORM_UNKNOWN ? name : NULL;
}

static bool has_more(const tn_stored_more *m)
{
    return m->encoding_name || m->never || m->opaque || m->stride || m->pitch || m->skip || m->decoded ||
           m->sum.size || m->sums_file || m->derive || m->swapped;
}

const tn_stored *tn_file_keep_stored(tn_file *f, const tn_stored *s, const tn_stored_more *more)
{
    tn_stored *kept = tn_arena_copy(&f->arena, s, sizeof *s);
    bool unusual = more && has_more(more);      /* most parts have nothing more */
    if (kept)
        kept->more = unusual ? tn_arena_copy(&f->arena, more, sizeof *more) : NULL;
    return kept && (kept->more || !unusual) ? kept : NULL;
}

/* Whether the last entry is an array and no more. */
static bool can_repeat(const tn_file *f)
{
    const tn_tensor *t = f->count ? &f->tensors[f->count - 1] : NULL;
    return t && t->nparts == 1 && t->form == TN_FORM_DENSE && !t->nmeta && !f->records &&
           !t->parts[0].stored->more;
}

/* An entry like the last one: most files have long runs of them. */
static tn_status repeat_entry(tn_file *f, const tn_entry *e, tn_error *err)
{
    TN_TRY(check_place(f, e, &e->stored, err));
    tn_stored *stored = tn_arena_copy(&f->arena, f->parts[f->count - 1].stored, sizeof *stored);
    TN_NEED(stored, err);
    stored->offset = e->stored.offset;
    tn_part *part = &f->parts[f->count];
    *part = part[-1];
    part->stored = stored;
    if (part->data)
        part->data = tn_source_view(f->shards[stored->shard].source, stored->offset, stored->size);
    tn_tensor *t = &f->tensors[f->count];
    *t = t[-1];
    t->name = e->name;
    t->parts = part;
    f->at[f->count++] = e->at;
    note_order(f, stored);
    return TN_OK;
}

static tn_status add_entry(tn_file *f, const tn_entry *e, tn_error *err)
{
    uint64_t nbytes;
    tn_status status = TN_OK;
    if (f->count == f->cap && (status = tn_file_expect(f, f->cap ? f->cap * 2 : 64, err)))
        return status;
    if (e->repeats && can_repeat(f))
        return repeat_entry(f, e, err);
    if ((status = check_entry(f, e, &nbytes, err)))
        return status;
    const tn_stored *stored = tn_file_keep_stored(f, &e->stored, &e->more);
    if (!stored || !keep_record(f, e->record))
        return tn_fail_nomem(err);
    tn_part *part = &f->parts[f->count];
    *part = (tn_part){
        .role = "data",
        .array = { .dtype = e->dtype, .rank = e->rank, .shape = e->shape },
        .nbytes = nbytes,
        .padded = e->padded,
        .stored = stored,
    };
    part->data = tn_file_view(f, part);
    f->tensors[f->count] = (tn_tensor){
        .name = e->name, .form = e->more.opaque ? TN_FORM_UNKNOWN : TN_FORM_DENSE,
        .form_text = form_text(e), .dtype = e->dtype, .rank = e->rank, .shape = e->shape,
        .parts = part, .nparts = 1, .meta = e->meta, .nmeta = e->nmeta, .layout = e->layout,
    };
    if ((e->ncompanions || e->scaling) && (status = add_companions(f, e, err)))
        return status;
    f->at[f->count++] = e->at;
    note_order(f, stored);
    return TN_OK;
}

tn_status tn_file_add(tn_file *f, const tn_entry *e, tn_error *err)
{
    return tn_in_tensor(add_entry(f, e, err), e->name, err);
}

const char *tn_file_text(tn_file *f, tn_text text, const char *what, uint64_t at, tn_error *err)
{
    if (tn_text_has_nul(text)) {
        tn_fail_at(err, TN_ERR_CORRUPT, at, "%s %s holds a NUL character", what,
                   tn_quote(text.ptr, text.len).text);
        return NULL;
    }
    char *copy = tn_arena_text(&f->arena, text.ptr, text.len);
    if (!copy)
        tn_fail_nomem(err);
    return copy;
}

const char *tn_file_stem(tn_file *f, const char *suffix)
{
    const char *base = tn_base_name(f->shards[0].path);
    size_t n = strlen(base);
    if (n > strlen(suffix) && tn_ends_with(base, suffix))
        n -= strlen(suffix);
    if (!n || tn_utf8_valid(base, n) != n) {
        base = "tensor";
        n = strlen(base);
    }
    return tn_arena_text(&f->arena, base, n);
}

tn_status tn_file_load(tn_file *f, size_t most, const char *what, tn_text *text, tn_error *err)
{
    const tn_source *source = f->shards[0].source;
    uint64_t size = tn_source_size(source);
    if (size > most)
        return tn_fail(err, TN_ERR_LIMIT, "expected %s of at most %zu bytes but found %" PRIu64, what, most,
                       size);
    const uint8_t *bytes = NULL;
    tn_status status = tn_source_copy(source, 0, size, &f->arena, &bytes, err);
    *text = (tn_text){ (const char *)bytes, (size_t)size };
    return status;
}

tn_status tn_file_set_meta(tn_file *f, const tn_meta *meta, size_t n, tn_error *err)
{
    f->meta = tn_arena_copy(&f->arena, meta, n * sizeof *meta);
    f->nmeta = f->meta ? n : 0;
    return f->meta ? TN_OK : tn_fail_nomem(err);
}

/* Room for one more; it counts once its source is open. */
static tn_shard *next_shard(tn_file *f)
{
    tn_shard *grown = realloc(f->shards, (f->nshards + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    f->shards = grown;
    grown[f->nshards] = (tn_shard){ .number = (uint32_t)f->nshards };
    return &grown[f->nshards];
}

tn_status tn_file_add_shard(tn_file *f, const char *path, uint32_t *shard, tn_error *err)
{
    tn_shard *s = next_shard(f);
    if (!s || !(s->path = tn_arena_text(&f->arena, path, strlen(path))))
        return tn_fail_nomem(err);
    TN_TRY(tn_source_open(path, f->io, &s->source, err));
    *shard = (uint32_t)f->nshards++;
    return TN_OK;
}

tn_status tn_file_add_shards(tn_file *f, const char *const *paths, size_t n, tn_error *err)
{
    tn_shard *grown = n <= SIZE_MAX / sizeof *grown - f->nshards
                          ? realloc(f->shards, (f->nshards + n) * sizeof *grown) : NULL;
    tn_source **sources = grown ? malloc((n ? n : 1) * sizeof *sources) : NULL;
    f->shards = grown ? grown : f->shards;
    TN_NEED(sources, err);
    tn_status status = tn_source_open_all(paths, n, f->io, sources, err);
    for (size_t i = 0; i < n && !status; i++)
        grown[f->nshards + i] = (tn_shard){ .source = sources[i], .path = paths[i],
                                            .number = (uint32_t)(f->nshards + i) };
    f->nshards += status ? 0 : n;
    free(sources);
    return status;
}

tn_status tn_file_add_decoded(tn_file *f, const void *data, size_t size, uint32_t *shard, tn_error *err)
{
    tn_shard *s = next_shard(f);
    if (!s)
        return tn_fail_nomem(err);
    s->path = f->shards[0].path;
    s->decoded = true;
    TN_TRY(tn_source_open_memory(data, size, &s->source, err));
    *shard = (uint32_t)f->nshards++;
    return TN_OK;
}

void tn_file_keep_warning(tn_file *f, const char *text)
{
    const char *kept = f->nwarnings < TN_MAX_WARNINGS ? tn_arena_text(&f->arena, text, strlen(text)) : NULL;
    if (kept)
        f->warnings[f->nwarnings++] = kept;
    else
        f->dropped_warnings++;
}

void tn_file_warn(tn_file *f, uint64_t at, const char *format, ...)
{
    char text[300];
    int n = snprintf(text, sizeof text, "byte %" PRIu64 ": ", at);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    tn_file_keep_warning(f, text);
}

tn_status tn_file_end_warnings(tn_file *f, tn_error *err)
{
    char text[40];
    if (!f->dropped_warnings)
        return TN_OK;
    snprintf(text, sizeof text, "and %zu more", f->dropped_warnings);
    f->warnings[f->nwarnings] = tn_arena_text(&f->arena, text, strlen(text));
    return f->warnings[f->nwarnings++] ? TN_OK : tn_fail_nomem(err);
}

/* All entries are added: builds the name table, applies records, and frees what only messages need. */
static tn_status seal(tn_file *f, tn_error *err)
{
    bool bad = tn_file_index_names(f, err) || (f->records && tn_file_assemble(f, err)) ||
               (!f->raw_codes && tn_packed_find(f, err)) || tn_file_end_warnings(f, err);
    free(f->at);
    free(f->records);
    f->at = NULL;
    f->records = NULL;
    return bad ? err->status : TN_OK;
}

/* Whether these first bytes begin a JSON text, and not a binary length that looks like its bracket. */
static bool is_json(const uint8_t *head, size_t n)
{
    size_t i = 0;
    while (i < n && memchr(" \t\r\n", head[i], 4))
        i++;
    return i < n && (head[i] == '{' || head[i] == '[') && !memchr(head, 0, n);
}

/* A JSON text may name its format anywhere: all of it is probed. */
static tn_status probe_text(tn_file *f, uint64_t size, tn_error *err)
{
    size_t n = size < PROBE_TEXT_BYTES ? (size_t)size : PROBE_TEXT_BYTES;
    uint8_t *text = malloc(n);
    if (!text)
        return tn_fail_nomem(err);
    tn_status status = tn_source_read(f->shards[0].source, 0, text, n, err);
    if (!status)
        f->format = tn_format_probe(text, n);
    free(text);
    return status;
}

static tn_status not_recognised(const uint8_t *head, size_t n, tn_error *err)
{
    const char *foreign = tn_format_foreign(head, n);
    if (foreign)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0, "it is %s", foreign);
    return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0,
                      n == 0 ? "the file is empty" : "not a container this build knows (see: tenon formats)");
}

static tn_status choose_format(tn_file *f, const char *name, tn_error *err)
{
    if (name) {
        f->format = tn_format_find(name);
        if (!f->format)
            return tn_fail(err, TN_ERR_ARGUMENT, "no container is called %s", tn_quote_z(name).text);
        f->asked_format = f->format->info.name;
        return TN_OK;
    }
    uint8_t head[PROBE_BYTES];
    const char *path = f->shards[0].path;
    uint64_t size = tn_source_size(f->shards[0].source);
    size_t n = size < sizeof head ? (size_t)size : sizeof head;
    tn_status status = tn_source_read(f->shards[0].source, 0, head, n, err);
    if (status)
        return status;
    bool json = is_json(head, n);
    if (json && size > n)
        status = probe_text(f, size, err);
    else
        f->format = tn_format_probe(head, n);
    if (status)
        return status;
    const tn_format *named = tn_format_by_suffix(path);
    const char *index_suffix = named ? named->info.index_suffix : NULL;
    if (!f->format && json && index_suffix && tn_ends_with(path, index_suffix))
        f->format = named;      /* to report what is wrong with it */
    bool by_suffix = named && (!named->info.probes || (named->has_no_magic && n));
    if (!f->format && by_suffix && !tn_format_foreign(head, n))
        f->format = named;      /* its content cannot tell */
    return f->format ? TN_OK : not_recognised(head, n, err);
}

/* Owns the source whatever happens. */
static tn_status open_source(tn_source *source, const char *path, const tn_open_options *options,
                             tn_file **file, tn_error *err)
{
    tn_error own;
    tn_file *f = calloc(1, sizeof *f);
    tn_shard *shards = calloc(1, sizeof *shards);
    err = err ? err : &own;
    if (!f || !shards) {
        free(f);
        free(shards);
        tn_source_close(source);
        return tn_fail_nomem(err);
    }
    f->io = options->io;
    f->max_bytes = options->max_bytes;
    f->strict = options->strict;
    f->raw_codes = options->raw_codes;
    f->shards = shards;
    f->nshards = 1;
    shards[0].source = source;
    shards[0].path = tn_arena_text(&f->arena, path, tn_source_shown(path));
    tn_status status = shards[0].path ? choose_format(f, options->format, err) : tn_fail_nomem(err);
    if (!status)
        status = f->format->open(f, err);
    if (!status)
        status = seal(f, err);
    status = tn_file_settle(f, status, err);
    if (status) {
        tn_close(f);
        return status;
    }
    *file = f;
    return TN_OK;
}

static tn_status take_options(tn_open_options *own, const tn_open_options *given, tn_error *err)
{
    *own = (tn_open_options){ 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_open_options, max_bytes), own, given, err));
    if ((unsigned)own->io > TN_IO_PREAD)
        return tn_fail(err, TN_ERR_ARGUMENT, "unknown way to read: io %u", (unsigned)own->io);
    return TN_OK;
}

static tn_status in_file(tn_status status, const char *path, tn_error *err)
{
    char shown[sizeof err->file];
    size_t n = tn_source_shown(path);
    snprintf(shown, sizeof shown, "%.*s", (int)(n < sizeof shown ? n : sizeof shown - 1), path);
    return tn_in_file(status, shown, err);
}

static tn_status open_path(const char *path, const tn_open_options *options, tn_file **file, tn_error *err)
{
    tn_source *source;
    tn_status status = tn_source_open(path, options->io, &source, err);
    if (!status)
        status = open_source(source, path, options, file, err);
    return in_file(status, path, err);
}

/* The file by which a folder that is elsewhere is opened: the first of the usual ones that it has. */
static tn_status open_far_folder(const char *path, const tn_open_options *options, tn_file **file,
                                 tn_arena *arena, tn_error *err)
{
    const char *names[TN_FOLDER_USUAL];
    tn_source *source;
    size_t n = tn_folder_usual(path, arena, names), which;
    TN_NEED(n, err);
    TN_TRY(tn_source_open_first(names, n, &source, &which, err));
    if (which == n)
        return tn_fail(err, TN_ERR_IO, "is a folder without an index, model.safetensors or "
                       "pytorch_model.bin: name the file to open");
    return tn_in_file(open_source(source, names[which], options, file, err), names[which], err);
}

tn_status tn_open(const char *path, const tn_open_options *given, tn_file **file, tn_error *err)
{
    TN_GIVEN(path, "a path", err);
    TN_GIVEN(file, "a place for the file", err);
    tn_open_options options;
    tn_arena arena = { 0 };
    const char *inside = NULL;
    TN_TRY(take_options(&options, given, err));
    bool is_far = tn_is_url(path), is_folder = tn_is_far_folder(path);
    tn_status status = is_far ? TN_OK : tn_in_file(tn_folder_file(path, &arena, &inside, err), path, err);
    if (!status && is_folder)
        status = in_file(open_far_folder(path, &options, file, &arena, err), path, err);
    else if (!status)
        status = open_path(inside ? inside : path, &options, file, err);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_open_fd(int fd, const tn_open_options *given, tn_file **file, tn_error *err)
{
    TN_GIVEN(file, "a place for the file", err);
    tn_open_options options;
    tn_source *source;
    TN_TRY(take_options(&options, given, err));
    tn_status status = tn_source_open_fd(fd, options.io, &source, err);
    return status ? status : open_source(source, "", &options, file, err);
}

tn_status tn_open_memory(const void *data, size_t size, const tn_open_options *given, tn_file **file,
                         tn_error *err)
{
    TN_GIVEN(data || !size, "data", err);
    TN_GIVEN(file, "a place for the file", err);
    tn_open_options options;
    tn_source *source;
    TN_TRY(take_options(&options, given, err));
    tn_status status = tn_source_open_memory(data, size, &source, err);
    return status ? status : open_source(source, "", &options, file, err);
}

tn_status tn_open_callbacks(const tn_source_calls *calls, const tn_open_options *given, tn_file **file,
                            tn_error *err)
{
    TN_GIVEN(calls && calls->read, "a function that reads", err);
    TN_GIVEN(file, "a place for the file", err);
    tn_open_options options;
    tn_source_calls own = { 0 };
    tn_source *source;
    TN_TRY(tn_take_options(TN_SIZED(tn_source_calls, context), &own, calls, err));
    TN_TRY(take_options(&options, given, err));
    tn_status status = tn_source_open_calls(&own, &source, err);
    return status ? status : open_source(source, "", &options, file, err);
}

void tn_close(tn_file *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->nshards && !f->members; i++)
        tn_source_close(f->shards[i].source);
    for (size_t i = 0; i < f->nmembers; i++)
        tn_close(f->members[i]);
    free(f->members);
    free(f->shards);
    free(f->tensors);
    free(f->parts);
    free(f->at);
    free(f->records);
    tn_names_free(&f->names);
    tn_datatype_free(f->datatype.datatype);
    tn_arena_free(&f->arena);
    free(f);
}

/* ---- truncated files ---- */

tn_status tn_file_intact(const tn_file *f, tn_error *err)
{
    TN_GIVEN(f, "a file", err);
    tn_error why;
    for (size_t i = 0; i < f->nshards; i++) {
        tn_status status = tn_source_check(f->shards[i].source, &why);
        if (!status)
            continue;
        if (f->nshards > 1)
            tn_in_file(status, f->shards[i].path, &why);
        if (err)
            *err = why;
        return status;
    }
    return TN_OK;
}

/* These say nothing about the file. */
static bool is_settled(tn_status status)
{
    return status == TN_ERR_CANCELLED || status == TN_ERR_NOMEM;
}

tn_status tn_file_settle(const tn_file *f, tn_status status, tn_error *err)
{
    tn_status harm = is_settled(status) ? TN_OK : tn_file_intact(f, err);
    return harm ? harm : status;
}

tn_status tn_file_settle_named(const tn_file *f, tn_status status, tn_error *err)
{
    tn_error why;
    tn_status harm = is_settled(status) ? TN_OK : tn_file_intact(f, &why);
    if (harm && f->nshards == 1)
        tn_in_file(harm, f->shards[0].path, &why);
    if (harm && err)
        *err = why;
    return harm ? harm : tn_file_name_member(f, status, err);
}

tn_status tn_tensor_settle(const tn_file *f, const tn_tensor *t, tn_status status, tn_error *err)
{
    const tn_source *last = NULL;
    tn_status harm = TN_OK;
    for (uint32_t k = 0; f && k < t->nparts && !harm && !is_settled(status); k++) {
        const tn_part *from = tn_stored_more_of(&t->parts[k])->from;
        const tn_source *source = f->shards[tn_stored_of(from ? from : &t->parts[k])->shard].source;
        if (source != last)
            harm = tn_source_check(source, err);
        last = source;
    }
    return harm ? harm : status;
}

const char *tn_file_format(const tn_file *f) { return f ? f->format->info.name : ""; }
size_t      tn_file_count(const tn_file *f)  { return f ? f->count : 0; }

size_t tn_file_shards(const tn_file *f)
{
    size_t n = f ? f->nshards : 0;
    while (n > 1 && f->shards[n - 1].decoded)
        n--;
    return n;
}

uint64_t tn_file_size(const tn_file *f)
{
    uint64_t total = 0;
    for (size_t i = 0; i < tn_file_shards(f); i++)
        total += tn_source_size(f->shards[i].source);
    return total;
}

const char *tn_file_shard_name(const tn_file *f, size_t shard)
{
    return f && shard < f->nshards ? f->shards[shard].path : "";
}

const tn_tensor *tn_file_tensor(const tn_file *f, size_t i)
{
    return i < tn_file_count(f) ? &f->tensors[i] : NULL;
}

const tn_tensor *tn_file_find(const tn_file *f, const char *name)
{
    return f && name ? tn_file_tensor(f, tn_names_find(&f->names, f, tensor_name, name)) : NULL;
}

const tn_meta *tn_file_meta(const tn_file *f, size_t *count)
{
    if (count)
        *count = f ? f->nmeta : 0;
    return f ? f->meta : NULL;
}

const char *tn_file_warning(const tn_file *f, size_t i)
{
    return f && i < f->nwarnings ? f->warnings[i] : NULL;
}
