/* tests/support/walk.h - everything a reader can do with a file, and what must
 * be true whatever the file is.  For unit tests and fuzz targets. */
#ifndef TN_TESTS_WALK_H
#define TN_TESTS_WALK_H

#include <string.h>

#include <tenon/tenon.h>

#include "stored.h"
#include "require.h"

#define WALK_READ_MAX ((uint64_t)1 << 20)       /* larger parts are verified, not read */

/* One line, escaped, with a text, and whole. */
static inline void walk_error(const tn_error *err, tn_status status)
{
    char line[TN_ERROR_LINE];
    REQUIRE(err->status == status);
    REQUIRE(memchr(err->file, 0, sizeof err->file) && memchr(err->tensor, 0, sizeof err->tensor));
    REQUIRE(memchr(err->value, 0, sizeof err->value) && memchr(err->text, 0, sizeof err->text));
    REQUIRE(err->text[0]);
    size_t n = tn_error_format(err, line, sizeof line);
    REQUIRE(n > 0 && n < sizeof line && n == strlen(line));
    for (size_t i = 0; i < n; i++)
        REQUIRE((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
}

static inline void walk_meta(const tn_meta *meta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        REQUIRE(meta[i].key != NULL && (meta[i].text != NULL) != (meta[i].cbor != NULL));
        char small[7];
        size_t whole = tn_meta_json(&meta[i], NULL, 0);
        char *json = malloc(whole + 1);
        REQUIRE(json && whole > 0);
        REQUIRE(tn_meta_json(&meta[i], json, whole + 1) == whole && strlen(json) == whole);
        REQUIRE(tn_meta_json(&meta[i], small, sizeof small) == whole && strlen(small) < sizeof small);
        REQUIRE(memcmp(small, json, strlen(small)) == 0);
        free(json);
    }
}

/* Row by row it is the same bytes as whole; `whole` has part->nbytes. */
static inline void walk_rows(const tn_file *file, const tn_part *part, const uint8_t *whole)
{
    const tn_array *a = &part->array;
    uint64_t rows = a->rank ? (uint64_t)a->shape[0] : 1;
    uint64_t row_bytes = rows ? part->nbytes / rows : 0;
    /* Compressed rows are decoded from the front each time: one of them will do. */
    uint64_t first = stored_info(part).encoding == TN_ENCODING_RAW ? 0 : rows / 2,
             last = first ? first + 1 : rows;
    tn_error err;
    uint8_t none;
    REQUIRE(tn_part_read_rows(file, part, rows, 1, &none, 1, &err) == TN_ERR_ARGUMENT);
    REQUIRE(tn_part_read_rows(file, part, 1, UINT64_MAX, &none, 1, &err) == TN_ERR_ARGUMENT);
    if (!row_bytes || part->nbytes % rows || rows > 64 || tn_dtype_get(a->dtype)->bits % 8)
        return;
    uint8_t *row = malloc(row_bytes);
    REQUIRE(row);
    for (uint64_t i = first; i < last; i++) {
        REQUIRE(tn_part_read_rows(file, part, i, 1, row, row_bytes, &err) == TN_OK);
        REQUIRE(memcmp(row, whole + i * row_bytes, row_bytes) == 0);
    }
    free(row);
}

static inline void walk_part(const tn_file *file, const tn_part *part)
{
    const tn_stored_info stored = stored_info(part), *s = &stored;
    tn_error err = { 0 };
    uint8_t none;
    REQUIRE(part->role && s->type && s->encoding_name);
    if (s->shard < tn_file_shards(file))        /* else its numbers stand in the file as text */
        REQUIRE(s->offset <= tn_file_size(file) && s->bytes <= tn_file_size(file) - s->offset);
    if (part->nbytes > WALK_READ_MAX)
        return;
    REQUIRE(tn_part_read(file, part, &none, part->nbytes + 1, &err) == TN_ERR_ARGUMENT);
    uint8_t *bytes = malloc(part->nbytes ? part->nbytes : 1);
    REQUIRE(bytes);
    tn_status status = tn_part_read(file, part, bytes, part->nbytes, &err);
    if (status) {
        walk_error(&err, status);
        REQUIRE(part->data == NULL);        /* what can be seen can be read */
        REQUIRE(s->encoding != TN_ENCODING_RAW || s->extents > 1 || !s->dense ||
                status == TN_ERR_UNSUPPORTED);
    } else {
        REQUIRE(!part->data || part->nbytes == 0 || memcmp(part->data, bytes, part->nbytes) == 0);
        walk_rows(file, part, bytes);
    }
    free(bytes);
}

static inline void walk_verdict(void *context, const tn_tensor *tensor, const tn_part *part,
                                tn_verdict verdict, const tn_error *why)
{
    (void)tensor;
    (void)part;
    REQUIRE(verdict <= TN_VERDICT_BAD);
    if (verdict == TN_VERDICT_OK || verdict == TN_VERDICT_NONE)
        REQUIRE(why->status == TN_OK);          /* the text, if any, is a warning */
    else
        walk_error(why, why->status);
    ++*(size_t *)context;
}

static inline void walk_file(const tn_file *file)
{
    size_t parts = 0, verdicts = 0, nmeta;
    const tn_meta *meta = tn_file_meta(file, &nmeta);
    walk_meta(meta, nmeta);
    REQUIRE(tn_file_tensor(file, tn_file_count(file)) == NULL);
    REQUIRE(tn_file_find(file, "\x01 no such name") == NULL);
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        REQUIRE(t && t->nparts > 0 && t->rank <= TN_MAX_RANK);
        REQUIRE(tn_file_find(file, t->name) == t);
        walk_meta(t->meta, t->nmeta);
        for (uint32_t k = 0; k < t->nparts; k++)
            walk_part(file, &t->parts[k]);
        parts += t->nparts;
    }
    tn_error err;
    tn_verify_options options = { .size = sizeof options, .jobs = 1, .context = &verdicts };
    REQUIRE(tn_verify(file, &options, walk_verdict, &err) == TN_OK);
    REQUIRE(verdicts == parts);
}

/* Opens bytes as `format` (NULL: by content) and does everything with them.
 * Returns what opening said; after TN_OK the caller closes *file. */
static inline tn_status walk_open(const void *data, size_t n, const char *format, tn_file **file)
{
    tn_error err = { 0 };
    tn_open_options options = { .size = sizeof options, .format = format };
    *file = NULL;
    tn_status status = tn_open_memory(data, n, &options, file, &err);
    if (status) {
        REQUIRE(*file == NULL);
        REQUIRE(err.offset <= n || err.offset == TN_NO_OFFSET);
        walk_error(&err, status);
        return status;
    }
    walk_file(*file);
    return TN_OK;
}

static inline tn_status walk_bytes(const void *data, size_t n, const char *format)
{
    tn_file *file;
    tn_status status = walk_open(data, n, format, &file);
    tn_close(file);
    return status;
}

/* Writing what a fuzzed size makes large takes time and teaches nothing. */
static inline bool walk_is_small(const tn_file *file)
{
    uint64_t total = 0;
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (uint32_t k = 0; k < tn_file_tensor(file, i)->nparts; k++) {
            uint64_t n = tn_file_tensor(file, i)->parts[k].nbytes;
            if (n > WALK_READ_MAX || (total += n) > WALK_READ_MAX)
                return false;
        }
    return true;
}

/* The first difference, for the message. */
static inline void walk_note(void *context, const tn_difference *d)
{
    (void)context;
    const tn_tensor *t = d->a ? d->a : d->b;
    if (d->what && !require_note[0])
        snprintf(require_note, sizeof require_note, "(%.50s %s %s, difference 0x%x: %.50s)",
                 t ? t->name : "the file's metadata", t ? tn_tensor_form_name(t) : "",
                 t && tn_dtype_get(t->dtype) ? tn_dtype_get(t->dtype)->name : "", d->what,
                 d->why ? d->why : "");
}

/* How many tensors differ; SIZE_MAX: one of the files is damaged. */
static inline size_t walk_differences(const tn_file *a, const tn_file *b)
{
    tn_compare_options options = { .size = sizeof options, .jobs = 1 };
    size_t different = SIZE_MAX;
    tn_error err = { 0 };
    require_note[0] = '\0';
    if (tn_compare(a, b, &options, walk_note, &different, &err))
        snprintf(require_note, sizeof require_note, "(%.150s)", err.text);
    return different;
}

/* Both have the same tensors with the same values and metadata.  Values that cannot be read (a scale that is
 * no number) differ from themselves, too. */
static inline void require_same_tensors(const tn_file *a, const tn_file *b)
{
    char note[sizeof require_note];
    size_t different = walk_differences(a, b);
    memcpy(note, require_note, sizeof note);
    bool same = different == 0 || walk_differences(a, a) == different;
    memcpy(require_note, note, sizeof note);
    REQUIRE(same);
    require_note[0] = '\0';
}

#endif
