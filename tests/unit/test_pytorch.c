/* PyTorch files that torch 1.1 to 2.15 wrote, held against what torch had in memory: manifest.json. */
#include "support.h"
#include "files.h"
#include "stored.h"
#include "walk.h"

#include "npz_bytes.h"

#include "bytes/cbor.h"
#include "bytes/json.h"
#include "store/archive.h"
#include "store/file.h"

#include <math.h>

#define GOLDEN TEST_GOLDEN "/pytorch/"

/* ---- metadata in one notation, from JSON and from CBOR ---- */

static void put_float(tn_buf *b, double x)
{
    if (isnan(x))
        tn_buf_puts(b, "nan");
    else
        tn_buf_printf(b, "%.17g", x);
    tn_buf_putc(b, 'f');
}

static void put_json(tn_json *j, tn_buf *b);

/* The manifest has {"$bytes": HEX} and {"$float": WORD} where JSON has no word. */
static bool put_special(tn_text key, tn_json *j, tn_buf *b)
{
    if (tn_text_is(key, "$bytes")) {
        tn_text digits = tn_json_string(j);
        tn_buf_printf(b, "h'%.*s'", (int)digits.len, digits.ptr);
    } else if (tn_text_is(key, "$float")) {
        tn_text word = tn_json_string(j);
        put_float(b, (double)(tn_text_is(word, "nan") ? NAN : INFINITY));
    } else {
        return false;
    }
    return true;
}

static void put_json_object(tn_json *j, tn_buf *b)
{
    tn_text key;
    size_t at = b->size;
    bool special = false;
    tn_buf_putc(b, '{');
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        if (key.len && key.ptr[0] == '$') {
            b->size = at;
            special = put_special(key, j, b);
            CHECK(special);
            continue;
        }
        tn_buf_printf(b, "\"%.*s\":", (int)key.len, key.ptr);
        put_json(j, b);
        tn_buf_putc(b, ',');
    }
    if (!special)
        tn_buf_putc(b, '}');
}

static void put_json(tn_json *j, tn_buf *b)
{
    tn_text text;
    switch (tn_json_peek(j)) {
    case TN_JSON_OBJECT:
        put_json_object(j, b);
        break;
    case TN_JSON_ARRAY:
        tn_buf_putc(b, '[');
        tn_json_array(j);
        while (tn_json_item(j)) {
            put_json(j, b);
            tn_buf_putc(b, ',');
        }
        tn_buf_putc(b, ']');
        break;
    case TN_JSON_STRING:
        text = tn_json_string(j);
        tn_buf_printf(b, "\"%.*s\"", (int)text.len, text.ptr);
        break;
    case TN_JSON_NUMBER:
        text = tn_json_number(j);
        if (memchr(text.ptr, '.', text.len) || memchr(text.ptr, 'e', text.len))
            put_float(b, strtod(text.ptr, NULL));
        else
            tn_buf_put(b, text.ptr, text.len);
        break;
    default:
        text = tn_json_raw(j);
        tn_buf_put(b, text.ptr, text.len);
    }
}

static void put_cbor(tn_cbor *c, tn_buf *b)
{
    tn_text text;
    switch (tn_cbor_peek(c)) {
    case TN_CBOR_UINT:
        tn_buf_printf(b, "%llu", (unsigned long long)tn_cbor_u64(c));
        break;
    case TN_CBOR_NEGATIVE:
        tn_buf_printf(b, "%lld", (long long)tn_cbor_i64(c));
        break;
    case TN_CBOR_FLOAT:
        put_float(b, tn_cbor_f64(c));
        break;
    case TN_CBOR_TEXT:
        text = tn_cbor_text(c);
        tn_buf_printf(b, "\"%.*s\"", (int)text.len, text.ptr);
        break;
    case TN_CBOR_BYTES:
        text = tn_cbor_bytes(c);
        tn_buf_puts(b, "h'");
        for (size_t i = 0; i < text.len; i++)
            tn_buf_printf(b, "%02x", (uint8_t)text.ptr[i]);
        tn_buf_putc(b, '\'');
        break;
    case TN_CBOR_ARRAY:
        tn_buf_putc(b, '[');
        for (tn_cbor_array(c); tn_cbor_item(c); tn_buf_putc(b, ','))
            put_cbor(c, b);
        tn_buf_putc(b, ']');
        break;
    case TN_CBOR_MAP:
        tn_buf_putc(b, '{');
        for (tn_cbor_map(c); tn_cbor_item(c); tn_buf_putc(b, ',')) {
            put_cbor(c, b);
            tn_buf_putc(b, ':');
            put_cbor(c, b);
        }
        tn_buf_putc(b, '}');
        break;
    case TN_CBOR_NULL:
        tn_cbor_null(c);
        tn_buf_puts(b, "null");
        break;
    default:
        tn_buf_puts(b, tn_cbor_bool(c) ? "true" : "false");
    }
}

static void put_meta(const tn_meta *meta, tn_buf *b)
{
    tn_cbor c;
    tn_arena arena = { 0 };
    if (meta->text) {
        tn_buf_printf(b, "\"%s\"", meta->text);
        return;
    }
    tn_cbor_init(&c, meta->cbor, meta->cbor_size, &arena);
    put_cbor(&c, b);
    CHECK(tn_cbor_done(&c));
    tn_arena_free(&arena);
}

static void check_metadata(const tn_file *f, tn_json *j)
{
    size_t n, i = 0;
    const tn_meta *meta = tn_file_meta(f, &n);
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        tn_buf expected = { 0 }, found = { 0 };
        put_json(j, &expected);
        for (i = 0; i < n && !tn_text_is(key, meta[i].key);)
            i++;
        if (i == n)
            fail_msg("no metadata %.*s", (int)key.len, key.ptr);
        put_meta(&meta[i], &found);
        if (expected.size != found.size || memcmp(expected.data, found.data, found.size) != 0)
            fail_msg("%s: expected %.*s, found %.*s", meta[i].key, (int)expected.size, expected.data,
                     (int)found.size, found.data);
        tn_buf_free(&expected);
        tn_buf_free(&found);
    }
}

static size_t count_items(tn_json j)
{
    size_t n = 0;
    tn_text key;
    if (tn_json_peek(&j) == TN_JSON_OBJECT)
        for (tn_json_object(&j); tn_json_key(&j, &key); n++)
            tn_json_skip(&j);
    else
        for (tn_json_array(&j); tn_json_item(&j); n++)
            tn_json_skip(&j);
    return n;
}

/* ---- tensors ---- */

/* One tensor of the manifest; texts are "" if they are not there. */
typedef struct expected {
    char    name[1024], dtype[40], sha256[70], tied[100], form[40], codes[20], why[40], layout[40];
    char    values[70];         /* SHA-256 of those of a quantized tensor, as float32 */
    int64_t shape[8], axis, zero[16];
    double  scale[16];
    size_t  rank, nscale, nzero, nparts;
    bool    readable;
    tn_json parts;              /* at the array */
} expected;

static void take_text(tn_json *j, char *to, size_t room)
{
    if (tn_json_peek(j) == TN_JSON_NULL) {
        tn_json_null(j);
        return;
    }
    tn_text text = tn_json_string(j);
    CHECK(text.len < room);
    memcpy(to, text.ptr, text.len);
    to[text.len] = 0;
}

static size_t take_numbers(tn_json *j, int64_t *to, size_t room)
{
    size_t n = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        CHECK(n < room);
        to[n++] = tn_json_i64(j);
    }
    return n;
}

static void take_field(expected *e, tn_text key, tn_json *j)
{
    char text[40] = "";
    if (tn_text_is(key, "name"))
        take_text(j, e->name, sizeof e->name);
    else if (tn_text_is(key, "dtype"))
        take_text(j, e->dtype, sizeof e->dtype);
    else if (tn_text_is(key, "sha256"))
        take_text(j, e->sha256, sizeof e->sha256);
    else if (tn_text_is(key, "dequantized_float32_sha256"))
        take_text(j, e->values, sizeof e->values);
    else if (tn_text_is(key, "tied"))
        take_text(j, e->tied, sizeof e->tied);
    else if (tn_text_is(key, "form"))
        take_text(j, e->form, sizeof e->form);
    else if (tn_text_is(key, "codes"))
        take_text(j, e->codes, sizeof e->codes);
    else if (tn_text_is(key, "readable"))
        e->readable = tn_json_bool(j);
    else if (tn_text_is(key, "shape"))
        e->rank = take_numbers(j, e->shape, 8);
    else if (tn_text_is(key, "zero"))
        e->nzero = take_numbers(j, e->zero, 16);
    else if (tn_text_is(key, "axis"))
        e->axis = tn_json_i64(j);
    else if (tn_text_is(key, "scale"))
        for (tn_json_array(j); tn_json_item(j); e->scale[e->nscale++] = strtod(text, NULL))
            take_text(j, text, sizeof text);
    else if (tn_text_is(key, "parts")) {
        e->parts = *j;
        tn_json_skip(j);
    } else
        tn_json_skip(j);
}

static expected take_expected(tn_json *j)
{
    expected e = { .readable = true };
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key))
        take_field(&e, key, j);
    CHECK(!j->status);
    return e;
}

static void check_part(const tn_file *f, const tn_part *p, const expected *e, const char *dtype)
{
    if (p->array.rank != e->rank || memcmp(p->array.shape, e->shape, e->rank * sizeof *e->shape) != 0)
        fail_msg("%s: another shape", e->name);
    assert_string_equal(tn_dtype_get(p->array.dtype)->name, dtype);
    check_sha256(f, p, e->sha256);
}

static void check_scaled(const tn_file *f, const tn_tensor *t, const expected *e)
{
    CHECK(t->form == TN_FORM_SCALED && t->nparts == 3 && t->dtype == TN_FLOAT32);
    CHECK(t->scaling->axis == (int32_t)e->axis);
    check_part(f, &t->parts[0], e, e->codes);
    CHECK(t->parts[1].nbytes == 8 * e->nscale && t->parts[2].nbytes == 8 * e->nzero);
    uint8_t *scale = read_part(f, &t->parts[1]), *zero = read_part(f, &t->parts[2]);
    CHECK(t->parts[1].array.dtype == TN_FLOAT64 && memcmp(scale, e->scale, 8 * e->nscale) == 0);
    CHECK(t->parts[2].array.dtype == TN_INT64 && memcmp(zero, e->zero, 8 * e->nzero) == 0);
    free(scale);
    free(zero);
    uint64_t count = t->parts[0].nbytes * 8 / tn_dtype_get(t->parts[0].array.dtype)->bits;
    float *values = malloc((size_t)count * sizeof *values + 1);
    CHECK(tn_read(f, t, TN_FLOAT32, values, (size_t)count * sizeof *values, NULL) == TN_OK);
    assert_string_equal(sha256_of(values, (size_t)count * sizeof *values).text, e->values);
    free(values);
}

/* torch has a row per dimension, we have one per value. */
static void check_coo_indices(const tn_file *f, const tn_part *p, const expected *e)
{
    int64_t rank = e->shape[0], n = e->shape[1];
    CHECK(p->array.dtype == TN_INT64 && p->array.shape[0] == n && p->array.shape[1] == rank);
    int64_t *ours = (int64_t *)(void *)read_part(f, p), *theirs = malloc((size_t)p->nbytes + 1);
    for (int64_t i = 0; i < n * rank; i++)
        theirs[i % rank * n + i / rank] = ours[i];
    assert_string_equal(sha256_of(theirs, (size_t)p->nbytes).text, e->sha256);
    free(ours);
    free(theirs);
}

typedef struct role_name { const char *torch, *ours; } role_name;

static const tn_part *part_of(const tn_tensor *t, const char *role)
{
    static const role_name names[] = { { "crow_indices", "indptr" }, { "col_indices", "indices" } };
    for (size_t i = 0; i < 2; i++)
        role = strcmp(names[i].torch, role) == 0 ? names[i].ours : role;
    for (uint32_t k = 0; k < t->nparts; k++)
        if (strcmp(t->parts[k].role, role) == 0)
            return &t->parts[k];
    fail_msg("no part %s", role);
    return NULL;
}

/* The next part of the manifest; its role is in the name. */
static expected take_part(tn_json *j)
{
    expected e = { .readable = true };
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key))
        take_field(&e, tn_text_is(key, "role") ? (tn_text){ "name", 4 } : key, j);
    return e;
}

static void check_sparse(const tn_file *f, const tn_tensor *t, const expected *e)
{
    tn_json j = e->parts;
    CHECK(t->form == (strcmp(e->form, "coo") == 0 ? TN_FORM_COO : TN_FORM_CSR));
    tn_json_array(&j);
    while (tn_json_item(&j)) {
        expected part = take_part(&j);
        const tn_part *p = part_of(t, part.name);
        if (t->form == TN_FORM_COO && part.rank == 2)
            check_coo_indices(f, p, &part);
        else
            check_part(f, p, &part, part.dtype);
    }
}

/* Layouts without a form: NAME.values ... follow each other.  Returns how many. */
static size_t check_listed_parts(const tn_file *f, size_t i, const expected *e)
{
    tn_json j = e->parts;
    size_t n = 0;
    tn_json_array(&j);
    for (; tn_json_item(&j); n++) {
        expected part = take_part(&j);
        const tn_tensor *t = tn_file_tensor(f, i + n);
        char name[sizeof e->name + sizeof part.name];
        snprintf(name, sizeof name, "%s.%s", e->name, part.name);
        CHECK(t);
        assert_string_equal(t->name, name);
        check_part(f, t->parts, &part, part.dtype);
    }
    return n;
}

static void check_logical(const tn_tensor *t, const expected *e)
{
    assert_string_equal(t->name, e->name);
    assert_string_equal(t->dtype ? tn_dtype_get(t->dtype)->name : "", e->dtype);
    CHECK(t->rank == e->rank && memcmp(t->shape, e->shape, e->rank * sizeof *e->shape) == 0);
    /* what is not read is not said to be the same as something that is */
    assert_string_equal(t->tied ? t->tied : "", e->readable ? e->tied : "");
}

static size_t check_tensor(const tn_file *f, size_t i, const expected *e)
{
    const tn_tensor *t = tn_file_tensor(f, i);
    tn_error err;
    if (strcmp(e->form, "listed as parts") == 0)
        return check_listed_parts(f, i, e);
    CHECK(t);
    check_logical(t, e);
    if (!e->readable) {
        uint8_t bytes[4096];
        CHECK(tn_part_read(f, t->parts, bytes, (size_t)t->parts->nbytes, &err) == TN_ERR_UNSUPPORTED);
        CHECK(!t->parts->data);
    } else if (strcmp(e->form, "scaled") == 0) {
        check_scaled(f, t, e);
    } else if (e->form[0]) {
        check_sparse(f, t, e);
    } else {
        check_part(f, t->parts, e, e->dtype);
    }
    return 1;
}

static void check_tensors(const tn_file *f, tn_json *j)
{
    size_t i = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        expected e = take_expected(j);
        i += check_tensor(f, i, &e);
    }
    CHECK(i == tn_file_count(f));
}

/* ---- warnings ---- */

static size_t count_warnings(const tn_file *f, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; tn_file_warning(f, i); i++)
        n += strstr(tn_file_warning(f, i), text) != NULL;
    return n;
}

static void check_warning(const tn_file *f, const char *text)
{
    if (count_warnings(f, text) != 1)
        fail_msg("%zu warnings have the text %s", count_warnings(f, text), text);
}

static void check_left_out(const tn_file *f, tn_json *j)
{
    size_t n = 0;
    tn_json_array(j);
    for (; tn_json_item(j); n++) {
        char path[100] = "", what[100], text[300];
        tn_json_array(j);
        bool root = tn_json_item(j) && tn_json_peek(j) == TN_JSON_NULL;
        take_text(j, path, sizeof path);
        CHECK(tn_json_item(j));
        take_text(j, what, sizeof what);
        CHECK(!tn_json_item(j));
        snprintf(text, sizeof text, root ? "the root is left out: %s%s" : "\"%s\" is left out: %s",
                 root ? what : path, root ? "" : what);
        check_warning(f, text);
    }
    CHECK(count_warnings(f, "is left out") == n);
    CHECK(!n || f->left_out);
}

static void check_calls(const tn_file *f, tn_json *j)
{
    size_t n = 0;
    tn_json_array(j);
    for (; tn_json_item(j); n++) {
        char name[100], text[200];
        take_text(j, name, sizeof name);
        snprintf(text, sizeof text, "calls %s: Python would run it", name);
        check_warning(f, text);
    }
    CHECK(count_warnings(f, "Python would run it") == n && (!n || f->left_out));
}

/* ---- every file ---- */

static tn_status open_golden(const char *folder, const char *name, tn_io io, tn_file **f, tn_error *err)
{
    char path[300];
    snprintf(path, sizeof path, GOLDEN "%s%s", folder, name);
    const tn_open_options options = { .size = sizeof options, .io = io };
    return tn_open(path, &options, f, err);
}

/* The file is as the object says. */
static void check_open(const tn_file *f, tn_json *j)
{
    tn_text key;
    size_t nmeta;
    bool calls = false, left_out = false;
    assert_string_equal(tn_file_format(f), "pytorch");
    tn_file_meta(f, &nmeta);
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        if (tn_text_is(key, "tensors")) {
            check_tensors(f, j);
        } else if (tn_text_is(key, "metadata")) {
            CHECK(count_items(*j) == nmeta);
            check_metadata(f, j);
        } else if (tn_text_is(key, "left_out")) {
            check_left_out(f, j);
            left_out = true;
        } else if (tn_text_is(key, "calls_not_made")) {
            check_calls(f, j);
            calls = true;
        } else {
            tn_json_skip(j);
        }
    }
    CHECK(calls || !count_warnings(f, "Python would run it"));
    CHECK(left_out || !count_warnings(f, "is left out"));
}

static void check_file(const char *name, tn_json *j, tn_io io)
{
    tn_file *f;
    tn_error err;
    if (open_golden("", name, io, &f, &err))
        fail_msg("%s", line_of(&err));
    check_open(f, j);
    tn_close(f);
}

typedef void (*object_fn)(const char *name, tn_json *j, tn_io io);

/* Calls `each` for every member of the object at `key`, or of the whole text if that is NULL. */
static size_t each_member(const char *file, const char *key, object_fn each, tn_io io)
{
    size_t n, files = 0;
    char *text = (char *)load_file(file, &n);
    tn_arena arena = { 0 };
    tn_json j;
    tn_text name;
    tn_json_init(&j, text, n, &arena);
    tn_json_object(&j);
    while (key && tn_json_key(&j, &name) && !tn_text_is(name, key))
        tn_json_skip(&j);
    if (key)
        tn_json_object(&j);
    for (; tn_json_key(&j, &name); files++)
        each(tn_json_keep(&j, name), &j, io);
    CHECK(!j.status);
    tn_arena_free(&arena);
    free(text);
    return files;
}

static void every_file_lists_as_torch_had_it_when_it_is_mapped(void)
{
    CHECK(each_member(GOLDEN "manifest.json", "files", check_file, TN_IO_MMAP) == 109);
}

static void every_file_lists_as_torch_had_it_when_it_is_read(void)
{
    CHECK(each_member(GOLDEN "manifest.json", "files", check_file, TN_IO_PREAD) == 109);
}

/* ---- files made by hand ---- */

static tn_status status_of(const char *word)
{
    static const struct { const char *word; tn_status status; } all[] = {
        { "corrupt", TN_ERR_CORRUPT }, { "unsupported", TN_ERR_UNSUPPORTED }, { "limit", TN_ERR_LIMIT },
        { "truncated", TN_ERR_TRUNCATED },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].word, word) == 0)
            return all[i].status;
    fail_msg("no status %s", word);
    return TN_OK;
}

/* Where the model that the verdicts are of says another status than the decision. */
static tn_status decided(const char *name, tn_status status)
{
    static const struct { const char *name; tn_status status; } other[] = {
        { "zip_prefix.pt", TN_ERR_UNSUPPORTED },        /* "not recognised" */
        { "zip_truncated.pt", TN_ERR_TRUNCATED },       /* "refused" */
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strcmp(other[i].name, name) == 0)
            return other[i].status;
    return status;
}

/* The verdict: "reads" and what, or "refused" and a status. */
static void check_verdict(const char *name, tn_json *j, tn_io io)
{
    tn_json ours = *j;
    tn_text key;
    tn_status expected_status = TN_OK;
    tn_file *f = NULL;
    tn_error err;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        char word[20] = "";
        if (tn_text_is(key, "status"))
            take_text(j, word, sizeof word);
        else
            tn_json_skip(j);
        if (word[0])
            expected_status = decided(name, status_of(word));
    }
    tn_status status = open_golden("edge/", name, io, &f, &err);
    if (status != expected_status)
        fail_msg("%s: expected status %d, found %d %s", name, (int)expected_status, (int)status,
                 status ? line_of(&err) : "");
    if (status) {
        walk_error(&err, status);
        return;
    }
    check_open(f, &ours);
    walk_file(f);
    tn_close(f);
}

static void check_edge(const char *name, tn_json *j, tn_io io)
{
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        if (tn_text_is(key, "ours"))
            check_verdict(name, j, io);
        else
            tn_json_skip(j);
    }
}

static void every_edge_file_ends_as_decided(void)
{
    CHECK(each_member(GOLDEN "edge/edge_verdicts.json", NULL, check_edge, TN_IO_MMAP) == 66);
    CHECK(each_member(GOLDEN "edge/edge_verdicts.json", NULL, check_edge, TN_IO_PREAD) == 66);
}

/* ---- damage ---- */

enum { SMALL = 1500 };

static void damage_one(const char *name, const uint8_t *bytes, size_t n)
{
    if (!strstr(name, ".pt") || n > SMALL)
        return;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = exact_copy(bytes, n);
        copy[i] ^= (uint8_t)(1u << i % 8);
        walk_bytes(copy, n, "pytorch");
        free(copy);
        copy = exact_copy(bytes, i);
        bool whole = strcmp(name, "legacy_trailing.pt") == 0 && i + 3 == n;     /* without what is too much */
        CHECK((walk_bytes(copy, i, "pytorch") == TN_OK) == whole);
        free(copy);
    }
}

/* The pickles of archives have checksums, those of legacy files none: damage reaches the machine. */
static void small_files_may_be_damaged(void)
{
    CHECK(each_file(GOLDEN "edge", damage_one) > 60);
    CHECK(each_file(GOLDEN "v1.1", damage_one) > 10);
    CHECK(each_file(GOLDEN "v1.4", damage_one) > 10);
}

/* ---- what others do with it ---- */

static size_t good, bad;

static void count_verdict(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                          const tn_error *why)
{
    (void)context;
    (void)t;
    (void)p;
    (void)why;
    good += verdict == TN_VERDICT_OK;
    bad += verdict == TN_VERDICT_BAD;
}

static void a_changed_element_is_seen_by_its_crc32(void)
{
    size_t n;
    uint8_t *bytes = load_file(GOLDEN "v2.15/views.pt", &n);
    tn_file *f;
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    good = bad = 0;
    CHECK(tn_verify(f, NULL, count_verdict, NULL) == TN_OK && good == 10 && bad == 0);
    size_t at = (size_t)stored_info(tn_file_find(f, "rows")->parts).offset;
    bytes[at] ^= 1;             /* also of all views that have this storage */
    CHECK(tn_verify(f, NULL, count_verdict, NULL) == TN_OK && bad > 0);
    tn_close(f);
    free(bytes);
}

static void dense_storages_are_used_in_place(void)
{
    size_t n;
    uint8_t *bytes = load_file(GOLDEN "v2.15/state_dict.pt", &n);
    tn_file *f;
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const uint8_t *data = tn_file_tensor(f, i)->parts[0].data;
        CHECK(data >= bytes && data < bytes + n);
    }
    tn_close(f);
    free(bytes);
}

/* The archive with all members deflated, as zip tools write it. */
static archive deflate_all(const char *path)
{
    size_t n;
    uint8_t *bytes = load_file(path, &n);
    tn_source *source;
    tn_archive zip;
    tn_arena arena = { 0 };
    archive a = { .count = 0 };
    CHECK(tn_source_open_memory(bytes, n, &source, NULL) == TN_OK);
    CHECK(tn_archive_open(&zip, source, &arena, NULL) == TN_OK);
    for (size_t i = 0; i < zip.count; i++) {
        const tn_zip_member *m = &zip.members[i];
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)m->name.len, m->name.ptr);
        add_member(&a, name, TN_ZIP_DEFLATED, bytes + m->data, (size_t)m->size);
    }
    end_archive(&a);
    tn_archive_free(&zip);
    tn_source_close(source);
    tn_arena_free(&arena);
    free(bytes);
    return a;
}

/* A storage is decoded as a whole, and its views are read from that: rows, columns, one element. */
static void views_of_deflated_storages_are_the_same(void)
{
    static const char *const files[] = { "v2.15/views.pt", "v2.15/dtypes.pt", "v2.15/sparse.pt",
                                         "v2.15/quantized.pt" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[300];
        snprintf(path, sizeof path, GOLDEN "%s", files[i]);
        archive a = deflate_all(path);
        tn_file *raw, *deflated;
        CHECK(tn_open(path, NULL, &raw, NULL) == TN_OK);
        CHECK(tn_open_memory(a.bytes.data, a.bytes.size, NULL, &deflated, NULL) == TN_OK);
        CHECK(stored_info(tn_file_tensor(deflated, 0)->parts).encoding == TN_ENCODING_DEFLATE);
        require_same_tensors(raw, deflated);
        walk_file(deflated);
        good = bad = 0;
        CHECK(tn_verify(deflated, NULL, count_verdict, NULL) == TN_OK && good > 3 && bad == 0);
        tn_close(raw);
        tn_close(deflated);
        tn_buf_free(&a.bytes);
    }
}

/* ---- few bytes that would become very many ---- */

/* An archive whose pickle is `begin`, then `again` many times, then `end`; the status of opening it. */
typedef struct repeated {
    const char *begin;          /* a long text is put into memo 0 before it */
    const char *again, *end;
    unsigned    method;
    tn_status   status;
    const char *text;           /* of the error */
} repeated;

static tn_status open_repeated(const repeated *r, tn_error *err)
{
    enum { LONG = 60000, TIMES = 60000 };
    char *text = calloc(1, LONG + 1);
    archive a = { .count = 0 };
    tn_buf b = { 0 };
    CHECK(text);
    memset(text, 'k', LONG);
    tn_buf_puts(&b, "\x80\x02X");
    tn_buf_put_le(&b, LONG, 4);
    tn_buf_put(&b, text, LONG);
    tn_buf_puts(&b, "r");
    tn_buf_put_le(&b, 0, 4);
    tn_buf_puts(&b, "0");
    tn_buf_puts(&b, r->begin);
    for (unsigned i = 0; i < TIMES; i++)
        tn_buf_puts(&b, r->again);
    tn_buf_puts(&b, r->end);
    add_member(&a, "x/data.pkl", r->method, b.data, b.size);
    end_archive(&a);
    tn_file *f;
    tn_status status = tn_open_memory(a.bytes.data, a.bytes.size, NULL, &f, err);
    if (!status)
        tn_close(f);
    tn_buf_free(&a.bytes);
    tn_buf_free(&b);
    free(text);
    return status;
}

/* What is in the memo may be given to call after call, to dict after dict and to tensor after tensor. */
static void few_bytes_of_a_pickle_do_not_become_very_many(void)
{
#define STORAGE "(U\x07storagectorch\nFloatStorage\n"
#define VIEW    "ctorch._utils\n_rebuild_tensor_v2\n"
#define BYTES   "c_codecs\nencode\nq\x01(g0\nU\x06latin1tq\x02"
#define ARRAY   "cnumpy.core.multiarray\n_reconstruct\nq\x04(K\x01(M\x60\xeat" \
                "cnumpy\ndtype\n(U\x02u1tR\x89h\x03tq\x05"
    static const repeated rows[] = {
        { BYTES "00", "h\x01h\x02R0", "}.", TN_ZIP_STORED, TN_ERR_LIMIT, "calls of the pickle copy" },
        { "(g0\ng0\ng0\nlq\x01" "0cbuiltins\nset\nq\x02" "0(h\x01tq\x03" "0", "h\x02h\x03R0", "}.",
          TN_ZIP_STORED, TN_OK, NULL },
        { "(", "NN", "dq\x01" "0ccollections\nOrderedDict\nq\x02" "0(h\x01tq\x03" "0"
          "h\x02h\x03Rh\x02h\x03Rh\x02h\x03Rh\x02h\x03Rh\x02h\x03R.", TN_ZIP_STORED, TN_ERR_LIMIT,
          "calls of the pickle copy" },
        { "", "g0\ng0\n\x93" "0", "}.", TN_ZIP_STORED, TN_ERR_LIMIT, "calls of the pickle copy" },
        { "", STORAGE "g0\nU\x03" "cpuK\x04tQ0", "}.", TN_ZIP_STORED, TN_ERR_LIMIT,
          "calls of the pickle copy" },
        { "}(", "g0\nN", "u.", TN_ZIP_STORED, TN_ERR_LIMIT, "reaches the same objects" },
        { BYTES "h\x01h\x02Rq\x03" "0" ARRAY "]((", "h\x04)Rh\x05" "b", "le.", TN_ZIP_STORED, TN_ERR_LIMIT,
          "numbers in the pickle take" },
        { "", "}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0}0", "}.", TN_ZIP_DEFLATED,
          TN_ERR_LIMIT, "opcodes" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_error err = { .text = "" };
        tn_status status = open_repeated(&rows[i], &err);
        if (status != rows[i].status || (rows[i].text && !strstr(err.text, rows[i].text)))
            fail_msg("row %zu: status %d %s", i, (int)status, err.text);
    }
}

/* Two rows of a tensor, whose scales are of 64 bits: before or after they become values. */
static void read_rows(const tn_file *f, const tn_tensor *t, bool sliced_first, float values[12])
{
    tn_view *view = NULL;
    CHECK(tn_view_open(f, t, &view, NULL) == TN_OK);
    if (sliced_first)
        CHECK(tn_view_add(&view, "slice", "1:3", NULL) == TN_OK);
    CHECK(tn_view_add_values(&view, TN_FLOAT32, NULL) == TN_OK);
    if (!sliced_first)
        CHECK(tn_view_add(&view, "slice", "1:3", NULL) == TN_OK);
    CHECK(tn_view_read(view, 0, 0, 12, values, 12 * sizeof *values, NULL) == TN_OK);
    tn_view_close(view);
}

static void scales_of_a_slice_keep_their_bits(void)
{
    float before[12], after[12];
    tn_file *f;
    CHECK(tn_open(GOLDEN "v2.15/quantized.pt", NULL, &f, NULL) == TN_OK);
    const tn_tensor *t = tn_file_find(f, "pc_qint8");
    read_rows(f, t, true, before);
    read_rows(f, t, false, after);
    CHECK(memcmp(before, after, sizeof before) == 0);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_file_lists_as_torch_had_it_when_it_is_mapped),
        TEST(every_file_lists_as_torch_had_it_when_it_is_read),
        TEST(every_edge_file_ends_as_decided),
        TEST(small_files_may_be_damaged),
        TEST(a_changed_element_is_seen_by_its_crc32),
        TEST(dense_storages_are_used_in_place),
        TEST(views_of_deflated_storages_are_the_same),
        TEST(few_bytes_of_a_pickle_do_not_become_very_many),
        TEST(scales_of_a_slice_keep_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
