/* tests/support/model.h - a tensor file as it should be: generated from a seed or
 * from fuzzed bytes, written with any options, compared with the file that is read.
 * Needs no test framework. */
#ifndef TN_TESTS_MODEL_H
#define TN_TESTS_MODEL_H

#include <string.h>

#include "base/arena.h"
#include "bytes/cbor.h"
#include "require.h"

#include <tenon/tenon.h>

/* ---- choosing ---- */

/* Decisions from bytes while there are any, then (or without bytes) from a seed. */
typedef struct chooser {
    const uint8_t *bytes;
    size_t         left;
    uint64_t       seed;        /* 0: zeroes once the bytes are used up */
} chooser;

static inline uint64_t choose_bits(chooser *c)
{
    if (c->left) {
        c->left--;
        return *c->bytes++;
    }
    if (!c->seed)
        return 0;
    c->seed += UINT64_C(0x9e3779b97f4a7c15);        /* splitmix64 */
    uint64_t z = c->seed;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 .. n-1; n at most 256 where the bytes are to matter. */
static inline uint64_t choose(chooser *c, uint64_t n)
{
    return choose_bits(c) % n;
}

/* ---- the model ---- */

#ifndef MODEL_SMALL
enum { MODEL_TENSORS = 12, MODEL_META = 4, MODEL_BYTES = 20000 };
#else                           /* for fuzzing: many models, not large ones */
enum { MODEL_TENSORS = 6, MODEL_META = 4, MODEL_BYTES = 1500 };
#endif

typedef struct model {
    tn_arena  arena;
    tn_tensor tensors[MODEL_TENSORS];
    tn_part   parts[MODEL_TENSORS];
    size_t    count;
    tn_meta   meta[MODEL_META];
    size_t    nmeta;
} model;

/* UTF-8 of all sorts, never empty; what terminals, JSON and shells find hard. */
static inline const char *model_text(model *m, chooser *c, size_t most)
{
    static const char *const pieces[] = {
        "a", "B", "7", "_", ".", "/", " ", "layer", "weight", "\"",
        "\\", "\n", "\t", "\x01", "\x1b[2J", "\x7f", "'", "%s", "{", "}", ":", ",", "*", "=", "\xc3\xa9",
        "e\xcc\x81", "\xe2\x82\xac", "\xf0\x9f\x99\x82", "\xe2\x80\xae", "\xef\xbb\xbf", "\xef\xbf\xbf",
        "\xf4\x8f\xbf\xbf", "\xc2\x80", "\xed\x9f\xbf", "null", "true", "0x",
    };
    tn_buf b = { 0 };
    size_t n = 1 + (size_t)choose(c, most);
    for (size_t i = 0; i < n; i++)
        tn_buf_puts(&b, pieces[choose(c, sizeof pieces / sizeof *pieces)]);
    char *text = tn_arena_text(&m->arena, (const char *)b.data, b.size);
    REQUIRE(text && !b.bad);
    tn_buf_free(&b);
    return text;
}

/* A head of any width that holds the value. */
static inline void model_head(tn_buf *b, chooser *c, uint8_t major, uint64_t value)
{
    unsigned least = value < 24 ? 0 : value < 256 ? 1 : value < 65536 ? 2 : value >> 32 ? 4 : 3;
    unsigned width = least + (unsigned)choose(c, 5 - least);
    uint8_t initial = (uint8_t)(major << 5);
    tn_buf_putc(b, (char)(width ? initial | (23 + width) : initial | value));
    for (int i = width ? 1 << (width - 1) : 0; i > 0; i--)
        tn_buf_putc(b, (char)(value >> 8 * (i - 1)));
}

static inline void model_cbor_text(tn_buf *b, chooser *c, model *m)
{
    const char *text = model_text(m, c, 3);
    model_head(b, c, 3, strlen(text));
    tn_buf_puts(b, text);
}

/* Any CBOR value, in any spelling; below depth 0 without a tag, of which an item may have so many. */
static inline void model_cbor(tn_buf *b, chooser *c, model *m, int depth)
{
    static const char *const plain[] = { "\xf4", "\xf5", "\xf6", "\xf7", "\xe0", "\xf8\x80" };
    uint64_t n = choose(c, 4), kind = choose(c, depth > 0 ? 10 : depth == 0 ? 7 : 6);
    switch (kind) {
    case 0: model_head(b, c, 0, choose_bits(c)); break;
    case 1: model_head(b, c, 1, choose_bits(c)); break;
    case 2: tn_buf_puts(b, plain[choose(c, 6)]); break;
    case 3: model_cbor_text(b, c, m); break;
    case 4:
        model_head(b, c, 2, n);
        tn_buf_fill(b, (uint8_t)choose_bits(c), (size_t)n);
        break;
    case 5:
        tn_buf_putc(b, (char)(0xf9 + n % 3));
        for (int i = 2 << n % 3; i > 0; i--)
            tn_buf_putc(b, (char)choose_bits(c));
        break;
    case 6:
        model_head(b, c, 6, choose_bits(c));
        model_cbor(b, c, m, -1);
        break;
    default: {
        bool map = kind == 7, until_break = choose(c, 2);
        if (until_break)
            tn_buf_putc(b, map ? (char)0xbf : (char)0x9f);
        else
            model_head(b, c, map ? 5 : 4, n);
        for (uint64_t i = 0; i < n * (map ? 2 : 1); i++)
            model_cbor(b, c, m, depth - 1);
        if (until_break)
            tn_buf_putc(b, (char)0xff);
        break;
    }
    }
}

/* Metadata with keys of its own: "k0...", which are no container's. */
static inline tn_meta *model_metadata(model *m, chooser *c, size_t n)
{
    tn_meta *meta = tn_arena_zalloc(&m->arena, n, sizeof *meta);
    REQUIRE(meta);
    for (size_t i = 0; i < n; i++) {
        tn_buf b = { 0 };
        tn_buf_printf(&b, "k%zu", i);
        tn_buf_puts(&b, model_text(m, c, 4));
        meta[i].key = tn_arena_text(&m->arena, (const char *)b.data, b.size);
        b.size = 0;
        model_cbor(&b, c, m, 3);
        if (b.data[0] >> 5 == 3 || choose(c, 2)) {      /* CBOR that is text is text */
            meta[i].text = model_text(m, c, 6);
        } else {
            meta[i].cbor = tn_arena_copy(&m->arena, b.data, b.size);
            meta[i].cbor_size = b.size;
        }
        REQUIRE(!b.bad && meta[i].key && (meta[i].text || meta[i].cbor));
        tn_buf_free(&b);
    }
    return meta;
}

static inline bool model_has(const model *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return true;
    return false;
}

static inline const char *model_name(model *m, chooser *c)
{
    const char *name = choose(c, 20) ? model_text(m, c, 6) : model_text(m, c, 200);
    if (!model_has(m, name) && strcmp(name, "__metadata__") != 0)
        return name;
    tn_buf b = { 0 };
    tn_buf_puts(&b, name);
    tn_buf_printf(&b, "#%zu", m->count);
    name = tn_arena_text(&m->arena, (const char *)b.data, b.size);
    REQUIRE(name && !b.bad);
    tn_buf_free(&b);
    return name;
}

/* A type and a shape that is not too large; at most one long dimension. */
static inline void model_array(model *m, chooser *c, tn_array *a)
{
    uint64_t nbytes;
    int64_t *shape = tn_arena_zalloc(&m->arena, TN_MAX_RANK, sizeof *shape);
    REQUIRE(shape);
    a->dtype = (tn_dtype)(1 + choose(c, TN_DTYPE_COUNT - 1));
    a->rank = choose(c, 16) ? (uint32_t)choose(c, 6) : (uint32_t)choose(c, TN_MAX_RANK + 1);
    a->shape = shape;
    for (uint32_t i = 0; i < a->rank; i++)
        shape[i] = a->rank > 6 ? 1 + (i % 16 == 3) : (int64_t)choose(c, 6);
    if (a->rank && choose(c, 3) == 0)
        shape[choose(c, a->rank)] = (int64_t)(choose(c, 256) * (1 + choose(c, 12)));
    if (tn_array_nbytes(a, &nbytes) || nbytes > MODEL_BYTES)
        a->rank = 0;
}

static inline const void *model_data(model *m, chooser *c, uint64_t n)
{
    uint8_t *data = tn_arena_alloc(&m->arena, (size_t)n);
    REQUIRE(data);
    uint64_t kind = choose(c, 4), value = choose_bits(c);
    chooser noise = { .seed = value * 2 + 1 };
    for (uint64_t i = 0; i < n; i++)
        data[i] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? value : kind == 2 ? i / 7 : choose_bits(&noise));
    return data;
}

/* The same bytes as an earlier tensor, where one can be had. */
static inline void model_tie(model *m, chooser *c, tn_tensor *t, tn_part *p)
{
    if (!m->count || choose(c, 6))
        return;
    const tn_tensor *other = &m->tensors[choose(c, m->count)];
    t->tied = other->name;
    p->array = other->parts[0].array;
    p->nbytes = other->parts[0].nbytes;
    p->data = other->parts[0].data;
}

static inline void model_add(model *m, chooser *c)
{
    tn_tensor *t = &m->tensors[m->count];
    tn_part *p = &m->parts[m->count];
    *p = (tn_part){ .role = "data" };
    *t = (tn_tensor){ .form = TN_FORM_DENSE, .parts = p, .nparts = 1 };
    t->name = model_name(m, c);
    model_tie(m, c, t, p);
    if (!t->tied) {
        model_array(m, c, &p->array);
        REQUIRE(tn_array_nbytes(&p->array, &p->nbytes) == TN_OK);
        p->data = model_data(m, c, p->nbytes);
    }
    t->dtype = p->array.dtype;
    t->rank = p->array.rank;
    t->shape = p->array.shape;
    t->nmeta = choose(c, 2) ? 0 : (uint32_t)choose(c, MODEL_META);
    t->meta = model_metadata(m, c, t->nmeta);
    m->count++;
}

static inline void model_make(model *m, chooser *c)
{
    memset(m, 0, sizeof *m);
    for (size_t n = (size_t)choose(c, MODEL_TENSORS + 1); m->count < n;)
        model_add(m, c);
    /* zTensor has no place for it without tensors */
    m->nmeta = m->count ? (size_t)choose(c, MODEL_META) : 0;
    if (m->nmeta)
        memcpy(m->meta, model_metadata(m, c, m->nmeta), m->nmeta * sizeof *m->meta);
}

static inline void model_free(model *m)
{
    tn_arena_free(&m->arena);
}

/* ---- writing ---- */

/* The bytes of tensor i in pieces. */
static inline tn_status model_stream(const model *m, chooser *c, tn_writer *w, size_t i, tn_error *err)
{
    const tn_part *p = &m->parts[i];
    tn_status status = TN_OK;
    for (uint64_t at = 0, n; at < p->nbytes && !status; at += n) {
        n = 1 + choose(c, 256) * (1 + choose(c, 40));
        n = n < p->nbytes - at ? n : p->nbytes - at;
        status = tn_writer_write(w, i, 0, (const uint8_t *)p->data + at, (size_t)n, err);
    }
    return status;
}

static inline tn_status model_declare(const model *m, const bool *streamed, tn_writer *w, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->nmeta && !status; i++)
        status = tn_writer_add_meta(w, &m->meta[i], err);
    for (size_t i = 0; i < m->count && !status; i++) {
        tn_tensor t = m->tensors[i];
        tn_part p = m->parts[i];
        if (streamed[i])
            p.data = NULL;
        t.parts = &p;
        status = tn_writer_add(w, &t, err);
    }
    return status;
}

/* Some tensors are given whole, some streamed, as `c` chooses.  Finishes the writer or abandons it. */
static inline tn_status model_put(const model *m, chooser *c, tn_writer *w, tn_error *err)
{
    bool streamed[MODEL_TENSORS];
    for (size_t i = 0; i < m->count; i++)
        streamed[i] = choose(c, 2) && !m->tensors[i].tied;
    tn_status status = model_declare(m, streamed, w, err);
    for (size_t i = 0; i < m->count && !status; i++)
        if (streamed[i])
            status = model_stream(m, c, w, i, err);
    if (!status)
        return tn_writer_finish(w, err);
    tn_writer_abandon(w);
    return status;
}

static inline tn_status model_write(const model *m, chooser *c, const char *file,
                                    const tn_create_options *options, tn_error *err)
{
    tn_writer *w;
    tn_status status = tn_create(file, options, &w, err);
    return status ? status : model_put(m, c, w, err);
}

/* ---- comparing ---- */

static inline bool model_same_meta(const tn_meta *a, const tn_meta *b)
{
    if (strcmp(a->key, b->key) != 0 || (a->text != NULL) != (b->text != NULL))
        return false;
    return a->text ? strcmp(a->text, b->text) == 0
                   : a->cbor_size == b->cbor_size && memcmp(a->cbor, b->cbor, a->cbor_size) == 0;
}

/* The same items; a container may list them in an order of its own. */
static inline void model_check_meta(const tn_meta *expected, size_t n, const tn_meta *found, size_t nfound)
{
    REQUIRE(n == nfound);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < nfound && !model_same_meta(&expected[i], &found[k]))
            k++;
        REQUIRE(k < nfound);
    }
}

static inline void model_check_tensor(const tn_tensor *expected, const tn_file *file)
{
    const tn_tensor *t = tn_file_find(file, expected->name);
    tn_error err;
    REQUIRE(t && t->form == TN_FORM_DENSE && t->nparts == 1);
    REQUIRE(t->dtype == expected->dtype && t->rank == expected->rank);
    REQUIRE(t->rank == 0 || memcmp(t->shape, expected->shape, t->rank * sizeof *t->shape) == 0);
    size_t n = (size_t)t->parts[0].nbytes;
    REQUIRE(n == expected->parts[0].nbytes);
    uint8_t *bytes = malloc(n ? n : 1);
    REQUIRE(bytes && tn_part_read(file, t->parts, bytes, n, &err) == TN_OK);
    REQUIRE(n == 0 || memcmp(bytes, expected->parts[0].data, n) == 0);
    free(bytes);
    model_check_meta(expected->meta, expected->nmeta, t->meta, t->nmeta);
}

static inline void model_check_verdict(void *context, const tn_tensor *t, const tn_part *p,
                                       tn_verdict verdict, const tn_error *why)
{
    (void)t;
    (void)p;
    (void)why;
    REQUIRE(verdict == (*(const tn_checksum *)context == TN_CHECKSUM_NONE ? TN_VERDICT_NONE : TN_VERDICT_OK));
}

/* What was read is what was written, and every part has this kind of checksum, which agrees. */
static inline void model_check(const model *m, const tn_file *file, tn_checksum checksum)
{
    size_t nmeta;
    const tn_meta *meta = tn_file_meta(file, &nmeta);
    REQUIRE(tn_file_count(file) == m->count);
    model_check_meta(m->meta, m->nmeta, meta, nmeta);
    for (size_t i = 0; i < m->count; i++)
        model_check_tensor(&m->tensors[i], file);
    tn_verify_options options = { .size = sizeof options, .jobs = 1, .context = &checksum };
    REQUIRE(tn_verify(file, &options, model_check_verdict, NULL) == TN_OK);
}

#endif
