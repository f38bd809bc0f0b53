/* formats/safetensors/read.c - the header: a length, and a JSON object with one
 * entry per tensor.  The data follows. */
#include "formats/safetensors/safetensors.h"
#include "base/cursor.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { LENGTH_BYTES = 8, USUAL_ENTRY = 96 };

/* The shard being read. */
typedef struct reader {
    tn_file        *file;
    uint32_t        shard;
    uint64_t        data_size;
    uint64_t        next;           /* offset of the next entry's data if all are in order */
    bool            unordered;
    uint32_t        rank;           /* of the previous entry's shape */
    const int64_t  *shape;
    tn_json         j;
    tn_entry        e;              /* the entry being read */
    tn_text         head;           /* its text up to the offsets, if they come last; len 0: they do not */
    tn_st_metadata  metadata;
    tn_set_index *index;
    tn_dtype        seen[TN_DTYPE_COUNT];   /* types in order of appearance */
    size_t          nseen;
} reader;

static int probe(const uint8_t *head, size_t n)
{
    int index = tn_set_probe(head, n);
    if (index)
        return index;
    if (n <= LENGTH_BYTES || head[LENGTH_BYTES] != '{')
        return 0;
    return tn_load_u64le(head) <= TN_ST_HEADER_MAX ? 90 : 20;      /* too long: the reader explains it */
}

/* --- the header as a whole --- */

tn_status tn_st_load_header(tn_file *file, uint32_t shard, tn_arena *arena, tn_text *json, tn_error *err)
{
    tn_shard *s = &file->shards[shard];
    uint64_t size = tn_source_size(s->source);
    uint8_t length[LENGTH_BYTES];
    if (size < LENGTH_BYTES)
        return tn_fail_at(err, TN_ERR_TRUNCATED, 0,
                          "expected at least 8 bytes of header length but the file has %llu bytes",
                          (unsigned long long)size);
    TN_TRY(tn_source_read(s->source, 0, length, sizeof length, err));
    uint64_t n = tn_load_u64le(length);
    if (n > TN_ST_HEADER_MAX)
        return tn_fail_at(err, TN_ERR_LIMIT, 0, "expected a header of at most %u bytes but found %llu",
                          TN_ST_HEADER_MAX, (unsigned long long)n);
    if (n > size - LENGTH_BYTES)
        return tn_fail_at(err, TN_ERR_TRUNCATED, 0,
                          "the header takes %llu bytes but the file has %llu after its length",
                          (unsigned long long)n, (unsigned long long)(size - LENGTH_BYTES));
    const uint8_t *text;
    TN_TRY(tn_source_copy(s->source, LENGTH_BYTES, n, arena, &text, err));
    if (n == 0 || text[0] != '{')
        return tn_fail_at(err, TN_ERR_CORRUPT, LENGTH_BYTES,
                          "expected the header to begin with '{' but found %s",
                          n ? tn_quote((const char *)text, 1).text : "a header of 0 bytes");
    *json = (tn_text){ (const char *)text, (size_t)n };
    s->data_begin = LENGTH_BYTES + n;
    return TN_OK;
}

/* --- one entry --- */

enum { DTYPE, SHAPE, OFFSETS, FIELDS };
static const tn_text field_names[FIELDS] = { { "dtype", 5 }, { "shape", 5 }, { "data_offsets", 12 } };

static unsigned field_of(tn_text key)
{
    unsigned field = 0;
    while (field < FIELDS && !tn_text_equal(key, field_names[field]))
        field++;
    return field;
}

static bool has_name(tn_dtype dtype, tn_text name)
{
    const tn_dtype_info *info = tn_dtype_get(dtype);
    return info && info->safetensors && tn_text_is(name, info->safetensors);
}

/* A file has few types and many tensors, so types that were seen are tried first. */
static tn_dtype find_type(reader *r, tn_text name)
{
    for (size_t i = 0; i < r->nseen; i++)
        if (has_name(r->seen[i], name))
            return r->seen[i];
    for (tn_dtype i = 1; i < TN_DTYPE_COUNT; i++)
        if (has_name(i, name))
            return r->seen[r->nseen++] = i;
    return TN_UNKNOWN;
}

static void read_type(reader *r, tn_entry *e)
{
    tn_error why;
    tn_text name = tn_json_string(&r->j);
    if (r->j.status)
        return;
    e->dtype = find_type(r, name);
    if (e->dtype != TN_UNKNOWN)
        e->stored.type = tn_dtype_get(e->dtype)->safetensors;
    else if (!(e->stored.type = tn_file_text(r->file, name, "type", e->at, &why)))
        tn_json_reject(&r->j, why.status, "%.150s", why.text);
}

static void read_shape(reader *r, tn_entry *e)
{
    r->shape = tn_json_shape(&r->j, r->shape, &r->rank);
    e->shape = r->shape;
    e->rank = r->rank;
}

static void take_range(reader *r, tn_entry *e, uint64_t begin, uint64_t end)
{
    e->stored.offset = r->file->shards[r->shard].data_begin + begin;
    e->stored.size = end - begin;
    r->unordered |= begin != r->next;
    r->next = end;
}

static void read_offsets(reader *r, tn_entry *e)
{
    uint64_t range[2] = { 0, 0 };
    size_t n = 0;
    tn_json *j = &r->j;
    tn_json_array(j);
    r->head.len = (size_t)(j->text + j->pos - r->head.ptr);
    while (tn_json_item(j)) {
        uint64_t offset = tn_json_u64(j);
        if (n < 2)
            range[n] = offset;
        n++;
    }
    if (j->status)
        return;
    if (n != 2)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected 2 data_offsets but found %zu", n);
    else if (range[0] > range[1])
        tn_json_reject(j, TN_ERR_CORRUPT, "data begins at %llu but ends at %llu",
                       (unsigned long long)range[0], (unsigned long long)range[1]);
    else if (range[1] > r->data_size)
        tn_json_reject(j, TN_ERR_CORRUPT, "data ends at %llu but the data section has %llu bytes",
                       (unsigned long long)range[1], (unsigned long long)r->data_size);
    take_range(r, e, range[0], range[1]);
}

/* A number and the character after it; a space may stand before it. */
static bool take_number(const tn_json *j, size_t *at, char after, uint64_t *number)
{
    *at += *at < j->end && j->text[*at] == ' ';
    size_t p = *at;
    *number = 0;
    for (unsigned digit; p < j->end && (digit = (unsigned)(j->text[p] - '0')) <= 9; p++)
        *number = *number * 10 + digit;
    /* 1 to 19 digits cannot have wrapped */
    if (p - *at - 1 >= 19 || (j->text[*at] == '0' && p - *at > 1) || p == j->end || j->text[p] != after)
        return false;
    *at = p + 1;
    return true;
}

/* The fields of an entry of the same type, shape and size as the one before, written alike: of most.  False:
 * it is another one, or wrong, and nothing is taken. */
static bool repeat_fields(reader *r, tn_entry *e)
{
    tn_json *j = &r->j;
    size_t at = j->pos + r->head.len;
    uint64_t begin, end;
    if (!r->head.len || j->status || j->end - j->pos <= r->head.len ||
        memcmp(j->text + j->pos, r->head.ptr, r->head.len) != 0 ||
        !take_number(j, &at, ',', &begin) || !take_number(j, &at, ']', &end) || at == j->end ||
        j->text[at] != '}' || begin > end || end - begin != e->stored.size || end > r->data_size)
        return false;
    j->pos = at + 1;
    take_range(r, e, begin, end);
    return true;
}

static void read_fields(reader *r, tn_entry *e)
{
    unsigned seen = 0;
    tn_text key;
    tn_json *j = &r->j;
    r->head = (tn_text){ j->text + j->pos, 0 };
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        unsigned field = field_of(key);
        r->head.len = 0;
        if (field < FIELDS && seen & 1u << field)
            tn_json_reject(j, TN_ERR_CORRUPT, "%s is there twice", field_names[field].ptr);
        seen |= 1u << field;
        switch (field) {
        case DTYPE:   read_type(r, e); break;
        case SHAPE:   read_shape(r, e); break;
        case OFFSETS: read_offsets(r, e); break;
        default:      tn_json_skip(j);          /* of a later version */
        }
    }
    for (unsigned field = 0; field < FIELDS; field++)
        if (!(seen & 1u << field))
            tn_json_reject(j, TN_ERR_CORRUPT, "it has no %s", field_names[field].ptr);
}

/* Elements of less than 8 bits must fill whole bytes together. */
static tn_status check_whole_bytes(const tn_entry *e, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(e->dtype);
    uint64_t count;
    if (!type || type->bits >= 8 || tn_shape_count(e->rank, e->shape, &count) ||
        count % 8 * type->bits % 8 == 0)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, e->at, "%llu elements of %s do not fill whole bytes",
                      (unsigned long long)count, type->safetensors);
}

static tn_status read_entry(reader *r, const char *name, uint64_t at, tn_error *err)
{
    tn_entry *e = &r->e;
    e->repeats = repeat_fields(r, e);
    if (!e->repeats) {
        *e = (tn_entry){ .at = at, .stored.shard = r->shard };
        read_fields(r, e);
        if (r->j.status == TN_ERR_NOMEM)
            return tn_fail_nomem(err);
        if (r->j.status)
            return tn_fail_at(err, r->j.status, LENGTH_BYTES + r->j.at, "%s", r->j.why);
        TN_TRY(check_whole_bytes(e, err));
    }
    e->name = name;
    e->at = at;
    if (r->index)
        TN_TRY(tn_set_claim(r->index, r->file, name, r->shard, at, err));
    return tn_file_add(r->file, e, err);
}

/* A key that lies in the header has no control characters, and so no NUL. */
static const char *keep_name(reader *r, tn_text key, uint64_t at, tn_error *err)
{
    bool in_place = (uintptr_t)key.ptr - (uintptr_t)r->j.text < r->j.end;
    if (!in_place)
        return tn_file_text(r->file, key, "tensor name", at, err);
    const char *name = tn_arena_text(&r->file->arena, key.ptr, key.len);
    if (!name)
        tn_fail_nomem(err);
    return name;
}

/* --- one shard, one file --- */

static tn_status read_entries(reader *r, tn_error *err)
{
    tn_json *j = &r->j;
    tn_text key;
    bool metadata = false;
    tn_json_object(j);
    for (size_t pos = j->pos; tn_json_key(j, &key); pos = j->pos) {
        uint64_t at = LENGTH_BYTES + pos + (j->text[pos] == ',');
        if (!tn_text_is(key, TN_ST_METADATA)) {
            const char *name = keep_name(r, key, at, err);
            if (!name)
                return err->status;
            if (read_entry(r, name, at, err))
                return tn_in_tensor(err->status, name, err);
        } else if (metadata) {
            return tn_fail_at(err, TN_ERR_CORRUPT, at, TN_ST_METADATA " is there twice");
        } else {
            metadata = true;
            TN_TRY(tn_st_metadata_read(&r->metadata, r->file, j, LENGTH_BYTES, err));
        }
    }
    return tn_json_done(j) ? TN_OK : tn_json_fail(j, LENGTH_BYTES, err);
}

tn_st_filler tn_st_filler_name(size_t number)
{
    tn_st_filler name;
    snprintf(name.text, sizeof name.text, TN_ST_FILLER_START "%zu" TN_ST_FILLER_END, number);
    return name;
}

bool tn_st_is_filler(const char *name)
{
    static const char start[] = TN_ST_FILLER_START, end[] = TN_ST_FILLER_END;
    if (strncmp(name, start, strlen(start)) != 0)
        return false;
    const char *number = name + strlen(start);
    size_t digits = strspn(number, "0123456789");
    return digits && strcmp(number + digits, end) == 0;
}

/* The metadata may stand after the entries, so entries get their records when all
 * is read.  Fillers are marked, and hidden once the ranges are checked. */
static tn_status apply_records(reader *r, size_t first, tn_st_merged *all, tn_error *err)
{
    tn_file *file = r->file;
    if (!r->metadata.has_records && !r->metadata.fillers)
        return TN_OK;
    if (!file->records && !(file->records = calloc(file->cap ? file->cap : 1, sizeof *file->records)))
        return tn_fail_nomem(err);
    for (size_t i = first; i < file->count; i++) {
        tn_tensor *t = &file->tensors[i];
        TN_TRY(tn_st_metadata_claim(&r->metadata, &file->arena, t->name, &file->records[i], err));
        if (r->metadata.fillers && t->dtype == TN_UINT8 && tn_st_is_filler(t->name)) {
            t->nparts = 0;
            all->fillers++;
        }
    }
    return TN_OK;
}

tn_status tn_st_read_shard(tn_file *file, uint32_t shard, tn_set_index *index, tn_st_merged *all,
                           tn_error *err)
{
    reader r = { .file = file, .shard = shard, .index = index };
    tn_text json = { 0 };
    tn_arena header = { 0 };    /* freed at the end: the file keeps copies */
    size_t first = file->count;
    bool failed = tn_st_load_header(file, shard, &header, &json, err);
    if (!failed) {
        r.data_size = tn_source_size(file->shards[shard].source) - file->shards[shard].data_begin;
        tn_json_init(&r.j, json.ptr, json.len, &file->arena);
        failed = tn_file_expect(file, first + json.len / USUAL_ENTRY, err) || read_entries(&r, err) ||
                 apply_records(&r, first, all, err) ||
                 tn_st_metadata_merge(&r.metadata, file, file->shards[shard].path, all, err);
    }
    tn_st_metadata_free(&r.metadata);
    tn_arena_free(&header);
    all->unordered |= r.unordered || r.next != r.data_size;
    return failed ? err->status : TN_OK;
}

/* Removes the fillers.  Their names must be unique too: other readers see them. */
static tn_status hide_fillers(tn_file *file, tn_error *err)
{
    tn_status status = tn_file_index_names(file, err);
    size_t kept = 0;
    for (size_t i = 0; i < file->count; i++) {
        if (!file->tensors[i].nparts)
            continue;
        file->tensors[kept] = file->tensors[i];
        file->parts[kept] = file->parts[i];
        file->tensors[kept].parts = &file->parts[kept];
        file->at[kept] = file->at[i];
        file->records[kept] = file->records[i];         /* there since apply_records() */
        kept++;
    }
    file->count = kept;
    return status;
}

static tn_status check_tiling(tn_file *file, tn_error *err)
{
    uint64_t *begin = malloc(2 * file->nshards * sizeof *begin);
    TN_NEED(begin, err);
    uint64_t *end = begin + file->nshards;
    for (size_t i = 0; i < file->nshards; i++) {
        begin[i] = file->shards[i].data_begin;
        /* the index of a set has no data */
        end[i] = begin[i] ? tn_source_size(file->shards[i].source) : 0;
    }
    tn_status status = tn_file_check_ranges(file, TN_TILING_EXACT, begin, end, err);
    free(begin);
    tn_error twice;
    if (!status || tn_file_index_names(file, &twice) != TN_ERR_CORRUPT)
        return status;
    *err = twice;               /* a duplicate name explains ranges that overlap */
    return TN_ERR_CORRUPT;
}

tn_status tn_st_finish_open(tn_file *file, tn_st_merged *all, tn_error *err)
{
    TN_TRY(tn_st_metadata_sort(all, file, err));
    TN_TRY(all->unordered ? check_tiling(file, err) : TN_OK);
    TN_TRY(all->fillers ? hide_fillers(file, err) : TN_OK);
    return tn_file_set_meta(file, all->meta.items, all->meta.count, err);
}

static tn_status open_one(tn_file *file, tn_error *err)
{
    tn_st_merged all = { 0 };
    bool failed = tn_st_read_shard(file, 0, NULL, &all, err) || tn_st_finish_open(file, &all, err);
    tn_set_merged_free(&all.meta);
    return failed ? err->status : TN_OK;
}

/* An index is JSON from its first byte, which read as a length is far beyond the limit. */
static bool is_index(const tn_file *file)
{
    uint8_t head[LENGTH_BYTES];
    const tn_source *source = file->shards[0].source;
    if (tn_source_size(source) < sizeof head || tn_source_read(source, 0, head, sizeof head, NULL))
        return false;
    size_t i = 0;
    while (i < sizeof head && tn_is_space((char)head[i]))
        i++;
    return (i == sizeof head || head[i] == '{') && tn_load_u64le(head) > TN_ST_HEADER_MAX;
}

static tn_status open_any(tn_file *file, tn_error *err)
{
    return is_index(file) ? tn_st_open_set(file, err) : open_one(file, err);
}

static const char *type_name(const tn_dtype_info *type)
{
    return type->safetensors;
}

static const tn_format_key keys[] = {
    { TN_ST_FILLER, "no|yes", "align every tensor, with filler tensors before them" },
    TN_OCP_NAMES_KEY, { 0 },
};

const tn_format tn_format_safetensors = {
    .info = {
        .name = "safetensors", .suffix = TN_ST_SUFFIX, .index_suffix = TN_ST_INDEX_SUFFIX,
        .title = "safetensors: a JSON header, then raw data; also sharded sets",
        .reads = true, .writes = true, .probes = true, .shards = true, .keys = keys,
    },
    .probe = probe,
    .open = open_any,
    .type_name = type_name,
    .only_pads = true,
    .whole_bytes = true,
    .names_parts = true,
    .min_align = 64,
    .look_beside = tn_st_look_beside,
    .plan = tn_st_plan,
    .finish = tn_st_finish,
    .rewrite = tn_st_rewrite,
};
