/* formats/mtx/note.c - the comments of a file.  One of them is Tenon's note, on one line:
 *
 *     %tenon {"name":"w","dtype":"float32","index":"int64","layout":"HW",
 *             "metadata":{...},"file_metadata":{...}}
 *
 * It holds what the format cannot express, and types that are not the usual ones.
 * All other comments together are the last item of the tensor's metadata: their
 * lines, without the percent signs. */
#include "formats/mtx/mtx.h"
#include "base/error.h"
#include "bytes/json.h"
#include "store/record.h"

#include <tenon/layout.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME, DTYPE, INDEX, LAYOUT, META, FILE_META, KEYS };
static const char *const keys[KEYS] = { "name", "dtype", "index", "layout", "metadata", "file_metadata" };

/* --- reading: the note --- */

tn_status tn_mtx_refuse_note(const tn_mtx_reader *r, tn_status status, size_t at, const char *why, ...)
{
    char text[240];
    va_list args;
    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    return tn_fail_at(r->err, status, (uint64_t)(r->note - r->text) + at,
                      "line %llu: Tenon's note: %s", (unsigned long long)r->note_line, text);
}

static void take_layout(tn_mtx_reader *r, tn_json *j)
{
    tn_error why;
    r->layout = tn_json_keep(j, tn_json_string(j));
    if (r->layout && tn_layout_check(r->layout, 2, &why))
        tn_json_reject(j, TN_ERR_CORRUPT, "%s", why.text);
}

static void take_meta(tn_mtx_reader *r, tn_json *j, const tn_meta **meta, size_t *n)
{
    tn_text json = tn_json_raw(j);
    tn_error why;
    if (!j->status && tn_meta_read_json(json, &r->file->arena, meta, n, &why))
        tn_json_reject(j, why.status, "%s", why.text);
}

static void take_item(tn_mtx_reader *r, tn_json *j, tn_text key, unsigned *seen)
{
    size_t which = 0;
    while (which < KEYS && !tn_text_is(key, keys[which]))
        which++;
    if (which < KEYS && *seen & 1u << which)
        tn_json_reject(j, TN_ERR_CORRUPT, "key %s is there twice", tn_quote(key.ptr, key.len).text);
    *seen |= 1u << which;
    switch (which) {
    case NAME:      r->name = tn_json_keep(j, tn_json_string(j)); break;
    case DTYPE:     r->dtype = tn_json_dtype(j); break;
    case INDEX:     r->index = tn_json_dtype(j); break;
    case LAYOUT:    take_layout(r, j); break;
    case META:      take_meta(r, j, &r->meta, &r->nmeta); break;
    case FILE_META: take_meta(r, j, &r->file->meta, &r->file->nmeta); break;
    default:        tn_json_skip(j); break;
    }
}

static bool take_note(tn_mtx_reader *r, tn_text json)
{
    unsigned seen = 0;
    tn_text key;
    tn_json j;
    r->note = json.ptr;
    r->note_line = r->line;
    tn_json_init(&j, json.ptr, json.len, &r->file->arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key))
        take_item(r, &j, key, &seen);
    tn_json_done(&j);
    if (!j.status)
        return true;
    if (j.status == TN_ERR_NOMEM)
        tn_fail_nomem(r->err);
    else
        tn_mtx_refuse_note(r, j.status, j.at, "%s", j.why);
    return false;
}

/* --- reading: other comments --- */

typedef struct comments {
    tn_buf  lines;
    bool    any;                /* there are lines... */
    bool    not_blank;          /* ...and not all are blank */
} comments;

static void add_line(comments *c, tn_text line)
{
    if (c->any)
        tn_buf_putc(&c->lines, '\n');
    tn_buf_put(&c->lines, line.ptr, line.len);
    c->any = true;
    c->not_blank |= tn_mtx_skip_blanks(line.ptr, line.ptr + line.len) < line.ptr + line.len;
}

/* Text that is not UTF-8 is kept as bytes. */
static bool keep_text(tn_mtx_reader *r, const tn_buf *lines, tn_meta *m)
{
    tn_text text = { (const char *)lines->data, lines->size };
    tn_buf cbor = { 0 };
    m->key = TN_MTX_COMMENT;
    if (tn_utf8_valid(text.ptr, text.len) == text.len && !tn_text_has_nul(text)) {
        m->text = tn_arena_text(&r->file->arena, text.ptr, text.len);
        return m->text != NULL;
    }
    tn_cbor_put_bytes(&cbor, text.ptr, text.len);
    m->cbor_size = cbor.size;
    m->cbor = cbor.bad ? NULL : tn_arena_copy(&r->file->arena, cbor.data, cbor.size);
    tn_buf_free(&cbor);
    return m->cbor != NULL;
}

/* Appends the comments to the metadata of the note. */
static tn_status keep_lines(tn_mtx_reader *r, const comments *c)
{
    for (size_t i = 0; i < r->nmeta; i++)
        if (strcmp(r->meta[i].key, TN_MTX_COMMENT) == 0)
            return tn_mtx_refuse_note(r, TN_ERR_CORRUPT, 0,
                                      "metadata key \"" TN_MTX_COMMENT "\" is there twice: it holds the "
                                      "comments of the file");
    tn_meta *all = c->lines.bad ? NULL : tn_arena_zalloc(&r->file->arena, r->nmeta + 1, sizeof *all);
    TN_NEED(all && keep_text(r, &c->lines, &all[r->nmeta]), r->err);
    if (r->nmeta)
        memcpy(all, r->meta, r->nmeta * sizeof *all);
    r->meta = all;
    r->nmeta++;
    return TN_OK;
}

/* Reads the comment whose percent sign is at p.  Returns the next line, or NULL. */
static const char *take_comment(tn_mtx_reader *r, const char *p, comments *c)
{
    const char *begin = p + 1, *feed = memchr(begin, '\n', (size_t)(r->end - begin));
    const char *end = feed ? feed : r->end;
    tn_text line = { begin, (size_t)(end - begin) };
    line.len -= line.len && begin[line.len - 1] == '\r';
    bool note = line.len >= strlen(TN_MTX_NOTE) && memcmp(begin, TN_MTX_NOTE, strlen(TN_MTX_NOTE)) == 0;
    size_t brace = strlen(TN_MTX_NOTE) - 1;
    if (note && r->note)
        return tn_mtx_refuse(r, p, "one note of Tenon");
    if (note && !take_note(r, (tn_text){ begin + brace, line.len - brace }))
        return NULL;
    if (!note)
        add_line(c, line);
    r->line += feed != NULL;
    return feed ? feed + 1 : r->end;
}

const char *tn_mtx_take_comments(tn_mtx_reader *r, const char *p)
{
    comments c = { .any = false };
    while (p && (p = tn_mtx_next_line(r, p)) < r->end && *p == '%')
        p = take_comment(r, p, &c);
    if (p && c.not_blank && keep_lines(r, &c))
        p = NULL;
    tn_buf_free(&c.lines);
    return p;
}

/* --- writing --- */

/* Whether the text can be written as comments and is read back unchanged: it is not
 * blank, and has no control characters and no line that looks like a note. */
static bool is_plain(const tn_meta *m)
{
    bool not_blank = false, begins = true;
    if (!m->text || strcmp(m->key, TN_MTX_COMMENT) != 0)
        return false;
    for (const char *p = m->text; *p; p++) {
        if (begins && strncmp(p, TN_MTX_NOTE, strlen(TN_MTX_NOTE)) == 0)
            return false;
        if ((unsigned char)*p < 0x20 && *p != '\n' && *p != '\t')
            return false;
        begins = *p == '\n';
        not_blank |= !begins && !tn_mtx_is_blank(*p);
    }
    return not_blank;
}

static void put_text(tn_buf *b, int key, const char *text)
{
    tn_json_put_key(b, keys[key]);
    tn_json_put_z(b, text);
}

static void put_meta(tn_buf *b, int key, const tn_meta *meta, size_t n)
{
    if (!n)
        return;
    tn_json_put_key(b, keys[key]);
    tn_meta_put_json(b, meta, n);
}

static void put_lines(tn_buf *b, const char *text)
{
    while (text) {
        const char *feed = strchr(text, '\n');
        tn_buf_putc(b, '%');
        tn_buf_put(b, text, feed ? (size_t)(feed - text) : strlen(text));
        tn_buf_putc(b, '\n');
        text = feed ? feed + 1 : NULL;
    }
}

void tn_mtx_put_comments(tn_buf *b, const tn_writer *w, const tn_mtx_matrix *m)
{
    const tn_out_more *more = w->entries->more;
    const tn_tensor *t = m->tensor;
    const tn_meta *last = more->nmeta ? &more->meta[more->nmeta - 1] : NULL;
    const char *lines = last && is_plain(last) ? last->text : NULL;
    size_t nmeta = more->nmeta - (lines != NULL);
    tn_buf_puts(b, "%" TN_MTX_NOTE);
    put_text(b, NAME, t->name);
    if (t->dtype != tn_mtx_usual_type(m->field))
        put_text(b, DTYPE, tn_dtype_get(t->dtype)->name);
    if (m->indices && t->parts[1].array.dtype != tn_mtx_usual_index(t->shape))
        put_text(b, INDEX, tn_dtype_get(t->parts[1].array.dtype)->name);
    if (t->layout)
        put_text(b, LAYOUT, t->layout);
    put_meta(b, META, more->meta, nmeta);
    put_meta(b, FILE_META, w->meta, w->nmeta);
    tn_buf_puts(b, "}\n");
    put_lines(b, lines);
}
