/* Parts that are not one range of their file: rows that lie apart, columns that
 * are stored apart, checksums that are of more than the part. */
#include "support.h"

#include <zlib.h>

#include "bytes/checksum.h"
#include "store/columns.h"
#include "store/stream.h"
#include "make.h"
#include "tensor/array.h"

enum { BYTES = 5 << 20 };

static const tn_io ios[] = { TN_IO_MMAP, TN_IO_PREAD };
static uint8_t stored[BYTES];

/* A file whose data, from byte 64 on, is `stored`. */
static tn_file *open_stored(size_t n, tn_io io)
{
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { (int64_t)n }, .data = stored };
    tn_open_options options = { .size = sizeof options, .io = io };
    tn_file *f;
    write_file("s.zt", (tn_create_options){ .replace = true }, &t, 1);
    CHECK(tn_open(in_folder("s.zt").text, &options, &f, NULL) == TN_OK);
    return f;
}

static void fill_stored(void)
{
    for (size_t i = 0; i < BYTES; i++)
        stored[i] = (uint8_t)(i * 2654435761u >> 13);
}

/* How a part is stored, to be changed: its own copy, so that copies of the part keep theirs. */
typedef struct place {
    tn_stored      stored;
    tn_stored_more more;
} place;

static place *own_place(tn_part *p)
{
    static place places[8192];
    static size_t used;
    place *own = &places[used++ % 8192];
    *own = (place){ *tn_stored_of(p), *tn_stored_more_of(p) };
    own->stored.more = &own->more;
    p->stored = &own->stored;
    return own;
}

static tn_stored *stored_in(tn_part *p)
{
    return &own_place(p)->stored;
}

static tn_stored_more *more_in(tn_part *p)
{
    return &own_place(p)->more;
}

static tn_part make_part(tn_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t at, uint64_t size)
{
    tn_part p = { .role = "p", .array = { .dtype = dtype, .rank = rank, .shape = shape } };
    *stored_in(&p) = (tn_stored){ .offset = 64 + at, .size = size, .type = "t" };
    CHECK(tn_array_nbytes(&p.array, &p.nbytes) == TN_OK);
    return p;
}

/* All windows of bytes [from, from + n), one behind the other. */
static void check_stream(const tn_file *f, const tn_part *p, const uint8_t *expected, uint64_t from,
                         uint64_t n)
{
    tn_stream s = { 0 };
    uint64_t at = from;
    tn_error err = { .text = "" };
    CHECK(tn_stream_open(&s, f, NULL, p, from, n, TN_CHECKSUM_NONE, &err) == TN_OK);
    for (;;) {
        const uint8_t *bytes;
        size_t got;
        if (tn_stream_next(&s, &bytes, &got, &err))
            fail_msg("%s", line_of(&err));
        if (!got)
            break;
        CHECK(got <= TN_WINDOW && got <= from + n - at);
        assert_memory_equal(bytes, expected + at, got);
        at += got;
    }
    CHECK(at == from + n);
    tn_stream_free(&s);
}

static void check_rows(const tn_file *f, const tn_part *p, const uint8_t *expected)
{
    uint64_t rows = (uint64_t)p->array.shape[0], row = p->nbytes / rows;
    uint8_t *whole = malloc(p->nbytes), *some = malloc(p->nbytes);
    CHECK(whole && some && tn_part_read(f, p, whole, p->nbytes, NULL) == TN_OK);
    assert_memory_equal(whole, expected, p->nbytes);
    for (uint64_t first = 0; first < rows; first += 1 + rows / 3) {
        uint64_t count = rows - first < 1 + rows / 2 ? rows - first : 1 + rows / 2;
        CHECK(tn_part_read_rows(f, p, first, count, some, count * row, NULL) == TN_OK);
        assert_memory_equal(some, expected + first * row, count * row);
    }
    free(whole);
    free(some);
}

/* ---- rows ---- */

typedef struct spaced {
    tn_dtype      dtype;
    uint32_t      rank;
    int64_t       shape[3];
    uint64_t      at, pitch;
    tn_byte_order order;
} spaced;

static const spaced all_spaced[] = {
    { TN_UINT8, 1, { 300001 }, 5, 3, TN_LITTLE_ENDIAN },
    { TN_FLOAT64, 1, { 60000 }, 16, 24, TN_LITTLE_ENDIAN },
    { TN_UINT64, 2, { 60000, 2 }, 0, 24, TN_LITTLE_ENDIAN },
    { TN_INT32, 2, { 50001, 3 }, 1, 20, TN_BIG_ENDIAN },
    { TN_FLOAT32, 1, { 70000 }, 8, 12, TN_BIG_ENDIAN },
    { TN_UINT16, 3, { 9, 5, 7 }, 0, 70, TN_LITTLE_ENDIAN },        /* nothing lies between */
    { TN_UINT64, 2, { 4, 50000 }, 3, 400008, TN_LITTLE_ENDIAN },   /* a row is more than a window... */
    { TN_UINT16, 2, { 17, 2 }, 0, 300000, TN_BIG_ENDIAN },         /* ...or the next one is farther away */
    { TN_COMPLEX128, 1, { 12289 }, 7, 100, TN_LITTLE_ENDIAN },
    { TN_UINT32, 1, { 1 }, 0, 1, TN_LITTLE_ENDIAN },
};

static uint8_t *gather(const tn_part *p)
{
    uint8_t *out = malloc(p->nbytes);
    uint64_t row = p->nbytes / (uint64_t)p->array.shape[0];
    unsigned unit = tn_dtype_get(p->array.dtype)->swap_bytes;
    assert_non_null(out);
    for (uint64_t i = 0; i < p->nbytes; i++)
        out[i] = stored[p->stored->offset - 64 + i / row * p->stored->more->pitch + i % row];
    if (p->stored->order != TN_HOST_ORDER)
        tn_swap_bytes(out, out, p->nbytes, unit);
    return out;
}

static tn_part part_of(const spaced *s)
{
    tn_part p = make_part(s->dtype, s->rank, s->shape, s->at, 0);
    more_in(&p)->pitch = s->pitch;
    stored_in(&p)->order = (uint8_t)s->order;
    stored_in(&p)->size = ((uint64_t)s->shape[0] - 1) * s->pitch + p.nbytes / (uint64_t)s->shape[0];
    CHECK(s->at + p.stored->size <= BYTES);
    return p;
}

/* Every part of all_spaced, read whichever way. */
static void each_spaced(void (*check)(const tn_file *f, const tn_part *p, const uint8_t *expected))
{
    fill_stored();
    for (size_t io = 0; io < 2; io++) {
        tn_file *f = open_stored(BYTES, ios[io]);
        for (size_t i = 0; i < sizeof all_spaced / sizeof *all_spaced; i++) {
            tn_part p = part_of(&all_spaced[i]);
            uint8_t *expected = gather(&p);
            check(f, &p, expected);
            free(expected);
        }
        tn_close(f);
    }
}

static void check_whole(const tn_file *f, const tn_part *p, const uint8_t *expected)
{
    check_stream(f, p, expected, 0, p->nbytes);
    check_rows(f, p, expected);
    CHECK(tn_part_splits(p) && !tn_part_is_range(p) && tn_file_view(f, p) == NULL);
}

static void rows_that_lie_apart_are_gathered(void)
{
    each_spaced(check_whole);
}

/* They begin and end on elements, inside a row too. */
static void check_ranges(const tn_file *f, const tn_part *p, const uint8_t *expected)
{
    uint64_t element = tn_dtype_get(p->array.dtype)->bits / 8, elements = p->nbytes / element;
    for (uint64_t from = 0; from <= elements; from = from * 3 + 1)
        for (uint64_t n = 0; n <= elements - from; n = n * 5 + 1)
            check_stream(f, p, expected, from * element, n * element);
}

static void any_range_of_them_can_be_had(void)
{
    each_spaced(check_ranges);
}

/* ---- checksums ---- */

static tn_digest digest_of(tn_checksum kind, const void *data, size_t n)
{
    tn_hash h;
    tn_digest digest;
    CHECK(tn_hash_begin(&h, kind, NULL) == TN_OK);
    tn_hash_update(&h, data, n);
    CHECK(tn_hash_end(&h, &digest, NULL) == TN_OK);
    return digest;
}

static void check_digest(tn_stream *s, const tn_file *f, const tn_part *p, tn_checksum kind,
                         const uint8_t *expected)
{
    tn_range sum = p->stored->more->sum;
    tn_digest whole = digest_of(kind, stored + sum.offset - 64, sum.size), found;
    uint64_t at = 0;
    CHECK(tn_stream_open(s, f, NULL, p, 0, p->nbytes, kind, NULL) == TN_OK);
    for (size_t got = 1; got;) {
        const uint8_t *bytes;
        CHECK(tn_stream_next(s, &bytes, &got, NULL) == TN_OK);
        CHECK(got <= p->nbytes - at && (!got || memcmp(bytes, expected + at, got) == 0));
        at += got;
    }
    CHECK(at == p->nbytes && tn_stream_digest(s, &found, NULL) == TN_OK && tn_digest_equal(&found, &whole));
    CHECK(tn_stream_open_stored(s, f, NULL, p, kind, NULL) == TN_OK);
    for (size_t got = 1; got;) {
        const uint8_t *bytes;
        CHECK(tn_stream_next(s, &bytes, &got, NULL) == TN_OK);
    }
    CHECK(tn_stream_digest(s, &found, NULL) == TN_OK && tn_digest_equal(&found, &whole));
}

static void a_checksum_may_be_of_more_than_the_part(void)
{
    static const tn_checksum kinds[] = { TN_CHECKSUM_CRC32C, TN_CHECKSUM_SHA256, TN_CHECKSUM_CRC32 };
    static const int64_t shape[] = { 50000 };
    tn_stream s = { 0 };
    fill_stored();
    for (size_t i = 0; i < 12; i++) {
        tn_file *f = open_stored(BYTES, ios[i % 2]);
        tn_part p = i % 4 < 2 ? make_part(TN_UINT64, 1, shape, 8000, 400000) : part_of(&all_spaced[2]);
        more_in(&p)->sum = (tn_range){ 64, 3000001 };
        uint8_t *expected = i % 4 < 2 ? exact_copy(stored + 8000, 400000) : gather(&p);
        check_digest(&s, f, &p, kinds[i / 4], expected);
        check_stream(f, &p, expected, 80, p.nbytes - 80);
        free(expected);
        tn_close(f);
    }
    tn_stream_free(&s);
}

/* ---- columns ---- */

enum { COLUMNS_MOST = 64 };

typedef struct woven {
    int64_t   shape[2];
    tn_part   columns[COLUMNS_MOST];
    char      sums[COLUMNS_MOST][TN_CHECKSUM_TEXT_MAX];
    tn_part   whole;
    uint8_t  *expected;
    size_t    used;             /* of `stored` */
} woven;

static size_t deflate_bytes(uint8_t *from, size_t n, uint8_t *to, size_t cap)
{
    z_stream z = { .next_in = from, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)cap };
    CHECK(deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
          deflate(&z, Z_FINISH) == Z_STREAM_END);
    CHECK(deflateEnd(&z) == Z_OK);
    return cap - z.avail_out;
}

enum { SKIP = 16 };             /* bytes before the elements of a deflated column */

/* Stores one column, raw or deflated; deflated ones skip what is no element. */
static void store_column(woven *w, size_t k, const uint8_t *elements, bool deflated)
{
    tn_part *p = &w->columns[k];
    uint8_t *before = malloc(p->nbytes + SKIP);
    assert_non_null(before);
    memset(before, 7, SKIP);
    memcpy(before + SKIP, elements, p->nbytes);
    stored_in(p)->offset = 64 + w->used;
    stored_in(p)->size = p->nbytes;
    if (deflated) {
        stored_in(p)->size = deflate_bytes(before, p->nbytes + SKIP, stored + w->used, BYTES - w->used);
        stored_in(p)->encoding = TN_ENCODING_DEFLATE;
        more_in(p)->skip = SKIP;
    } else {
        memcpy(stored + w->used, elements, p->nbytes);
    }
    free(before);
    w->used += p->stored->size;
    tn_digest digest = digest_of(TN_CHECKSUM_CRC32, elements, p->nbytes);
    tn_digest_format(&digest, w->sums[k]);
    stored_in(p)->checksum = TN_CHECKSUM_CRC32;
    stored_in(p)->checksum_text = w->sums[k];
}

/* A matrix of small numbers, each column stored apart; `deflated` has a bit a column. */
static woven *weave(int64_t rows, int64_t columns, tn_dtype dtype, tn_byte_order order, uint64_t deflated)
{
    woven *w = calloc(1, sizeof *w);
    size_t width = tn_dtype_get(dtype)->bits / 8;
    uint8_t *one = malloc((size_t)rows * width + 1);
    CHECK(w && one);
    w->shape[0] = rows;
    w->shape[1] = columns;
    w->whole = make_part(dtype, 2, w->shape, 0, 0);
    *stored_in(&w->whole) = (tn_stored){ .type = "t" };
    tn_stored_more *more = more_in(&w->whole);
    more->derive = &tn_derive_columns;
    more->from = w->columns;
    more->nfrom = (uint32_t)columns;
    w->expected = malloc(w->whole.nbytes + 1);
    assert_non_null(w->expected);
    for (size_t k = 0; k < (size_t)columns; k++) {
        w->columns[k] = make_part(dtype, 1, w->shape, 0, 0);
        stored_in(&w->columns[k])->order = (uint8_t)order;
        for (size_t i = 0; i < (size_t)rows * width; i++)
            one[i] = i % width < 2 ? (uint8_t)(i * 31 + k * 7 + i / 1000) : 0;
        for (size_t i = 0; i < (size_t)rows; i++)
            memcpy(w->expected + (i * (size_t)columns + k) * width, one + i * width, width);
        if (order != TN_HOST_ORDER)
            tn_swap_bytes(one, one, (size_t)rows * width, (unsigned)width);
        store_column(w, k, one, deflated >> k & 1);
    }
    free(one);
    return w;
}

static void unweave(woven *w)
{
    free(w->expected);
    free(w);
}

typedef struct matrix {
    int64_t       rows, columns;
    tn_dtype      dtype;
    tn_byte_order order;
    uint64_t      deflated;
} matrix;

static void columns_that_are_stored_apart_are_woven(void)
{
    static const matrix cases[] = {
        { 60000, 2, TN_INT32, TN_LITTLE_ENDIAN, 0 }, { 60000, 2, TN_INT64, TN_LITTLE_ENDIAN, 3 },
        { 50000, 3, TN_UINT32, TN_BIG_ENDIAN, 2 },
        { 30001, 5, TN_INT64, TN_BIG_ENDIAN, 21 }, { 1000, 64, TN_UINT64, TN_LITTLE_ENDIAN, UINT64_MAX / 3 },
        { 9, 64, TN_INT32, TN_BIG_ENDIAN, 0 },
        { 1, 1, TN_INT32, TN_LITTLE_ENDIAN, 1 }, { 0, 3, TN_INT64, TN_LITTLE_ENDIAN, 5 },
        { 55000, 1, TN_COMPLEX128, TN_LITTLE_ENDIAN, 0 },
        { 70001, 3, TN_UINT16, TN_LITTLE_ENDIAN, 1 },
    };
    tn_stream used = { 0 };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const matrix *c = &cases[i / 2];
        woven *w = weave(c->rows, c->columns, c->dtype, c->order, c->deflated);
        tn_file *f = open_stored(BYTES, ios[i % 2]);
        CHECK(!tn_part_splits(&w->whole) && !tn_part_is_range(&w->whole) &&
              tn_part_checksum(&w->whole) == TN_CHECKSUM_NONE);
        check_stream(f, &w->whole, w->expected, 0, w->whole.nbytes);
        if (c->rows)
            check_rows(f, &w->whole, w->expected);
        /* again, and left */
        CHECK(tn_stream_open(&used, f, NULL, &w->whole, 0, w->whole.nbytes, TN_CHECKSUM_NONE, NULL) == TN_OK);
        tn_close(f);
        unweave(w);
    }
    tn_stream_free(&used);
}

static tn_status read_woven(const woven *w, tn_io io, const tn_tensor *t, tn_error *err)
{
    tn_file *f = open_stored(w->used, io);
    tn_stream s = { 0 };
    tn_digest digest;
    tn_status status = tn_stream_open(&s, f, t, &w->whole, 0, w->whole.nbytes, TN_CHECKSUM_NONE, err);
    for (size_t got = 1; got && !status;) {
        const uint8_t *bytes;
        status = tn_stream_next(&s, &bytes, &got, err);
    }
    if (!status)
        /* the end stays the end */
        CHECK(tn_stream_next(&s, &(const uint8_t *){ NULL }, &(size_t){ 0 }, err) == TN_OK);
    if (!status)
        status = tn_stream_digest(&s, &digest, err);
    uint8_t *buffer = malloc(w->whole.nbytes);
    assert_non_null(buffer);
    CHECK(tn_part_read(f, &w->whole, buffer, w->whole.nbytes, NULL) == status);
    free(buffer);
    tn_stream_free(&s);
    tn_close(f);
    return status;
}

static void every_column_is_held_against_its_own_checksum(void)
{
    const tn_tensor t = { .name = "t" };
    tn_error err = { .text = "" };
    woven *w = weave(1000, 3, TN_INT64, TN_LITTLE_ENDIAN, 0);
    CHECK(read_woven(w, TN_IO_MMAP, &t, &err) == TN_OK);
    for (size_t k = 0; k < 3; k++) {
        char expected[300];
        stored[8000 * k + 7999] ^= 1;
        tn_digest found = digest_of(TN_CHECKSUM_CRC32, stored + 8000 * k, 8000);
        char text[TN_CHECKSUM_TEXT_MAX];
        tn_digest_format(&found, text);
        CHECK(read_woven(w, ios[k % 2], &t, &err) == TN_ERR_CHECKSUM);
        snprintf(expected, sizeof expected, "tensor \"t\": column %zu: expected checksum \"%s\" but found %s",
                 k, w->sums[k], text);
        assert_string_equal(said_of(&err), expected);
        CHECK(err.offset == 64 + 8000 * k);
        CHECK(read_woven(w, TN_IO_MMAP, NULL, &err) == TN_ERR_CHECKSUM);
        assert_string_equal(said_of(&err), expected + strlen("tensor \"t\": "));
        stored[8000 * k + 7999] ^= 1;
    }
    stored_in(&w->columns[1])->checksum = TN_CHECKSUM_NONE;
    stored_in(&w->columns[1])->checksum_text = NULL;
    stored[8001] ^= 1;
    CHECK(read_woven(w, TN_IO_MMAP, &t, &err) == TN_OK);
    unweave(w);
}

static void a_deflated_column_that_is_damaged_is_seen(void)
{
    tn_error err = { .text = "" };
    woven *w = weave(300, 2, TN_INT32, TN_LITTLE_ENDIAN, 3);
    size_t seen = 0;
    for (size_t at = 0; at < w->used; at++) {
        stored[at] ^= 0x10;
        tn_status status = read_woven(w, ios[at % 2], NULL, &err);
        CHECK(status == TN_ERR_CHECKSUM || status == TN_ERR_CORRUPT || status == TN_OK);    /* what is skipped is no element */
        CHECK(status == TN_OK || err.text[0]);
        seen += status != TN_OK;
        stored[at] ^= 0x10;
    }
    CHECK(seen > w->used / 10 * 9);
    stored_in(&w->columns[1])->size--;
    CHECK(read_woven(w, TN_IO_MMAP, NULL, &err) == TN_ERR_CORRUPT);
    unweave(w);
}

static void a_column_of_an_unknown_encoding_cannot_be_read(void)
{
    tn_error err = { .text = "" };
    woven *w = weave(10, 2, TN_INT32, TN_LITTLE_ENDIAN, 0);
    stored_in(&w->columns[1])->encoding = TN_ENCODING_UNKNOWN;
    more_in(&w->columns[1])->encoding_name = "implode";
    CHECK(read_woven(w, TN_IO_MMAP, NULL, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err), "encoding \"implode\" is not known to this build");
    unweave(w);
}

/* ---- what may be added to a file ---- */

static tn_status add_matrix(tn_file *f, const tn_part *p, bool companion, tn_error *err)
{
    static const int64_t count[] = { 10 }, shape[] = { 100, 100 };
    tn_entry e = { .name = "e", .dtype = p->array.dtype, .rank = p->array.rank, .shape = p->array.shape,
                   .stored = *p->stored, .more = *tn_stored_more_of(p) };
    if (companion)
        e = (tn_entry){ .name = "e", .dtype = TN_UINT8, .rank = 1, .shape = count,
                        .stored = { .offset = 64, .size = 10 },
                        .form = TN_FORM_COO, .value_dtype = TN_UINT8, .value_shape = shape, .value_rank = 2,
                        .companions = p, .ncompanions = 1 };
    return tn_file_add(f, &e, err);
}

static void check_not_added(tn_file *f, const tn_part *p, const char *text)
{
    for (int i = 0; i < 2; i++) {
        tn_error err = { .text = "" };
        CHECK(add_matrix(f, p, i, &err) == TN_ERR_CORRUPT);
        assert_string_equal(said_of(&err), text);
    }
}

static void rows_that_do_not_fit_are_not_added(void)
{
    static const int64_t shape[] = { 10, 2 }, flat[] = { 2 };
    tn_file *f = open_stored(1000, TN_IO_MMAP);
    tn_part good = make_part(TN_UINT64, 2, shape, 0, 232);
    more_in(&good)->pitch = 24;
    good.role = "indices";
    tn_part p = good;
    stored_in(&p)->size = 231;
    check_not_added(f, &p,
                    "tensor \"e\": its rows, 24 bytes apart, do not fit the 231 bytes that are stored");
    p = good;
    more_in(&p)->pitch = 15;       /* one inside another */
    check_not_added(f, &p,
                    "tensor \"e\": its rows, 15 bytes apart, do not fit the 232 bytes that are stored");
    more_in(&p)->pitch = UINT64_MAX / 9 + 1;
    check_not_added(
        f, &p,
        "tensor \"e\": its rows, 2049638230412172402 bytes apart, do not fit the 232 bytes that are stored");
    p = good;
    stored_in(&p)->offset = 1 << 20;
    check_not_added(f, &p, "tensor \"e\": data of 232 bytes at 1048576 but the file has 1147 bytes");
    p = good;
    p.array = (tn_array){ .dtype = TN_INT4, .rank = 1, .shape = flat };
    check_not_added(f, &p,
                    "tensor \"e\": its rows, 24 bytes apart, do not fit the 232 bytes that are stored");
    p.array = (tn_array){ .dtype = TN_UINT64, .rank = 0 };
    check_not_added(f, &p,
                    "tensor \"e\": its rows, 24 bytes apart, do not fit the 232 bytes that are stored");
    tn_close(f);
}

static void columns_that_are_not_alike_are_not_added(void)
{
    static const char text[] = "tensor \"e\": its columns are not all of its type and length";
    static const int64_t nine[] = { 9 };
    tn_file *f = open_stored(1000, TN_IO_MMAP);
    woven *w = weave(10, 2, TN_INT32, TN_LITTLE_ENDIAN, 0);
    tn_part good = w->columns[1], *p = &w->columns[1];
    w->whole.role = "indices";
    p->array.shape = nine;
    check_not_added(f, &w->whole, text);
    *p = good;
    p->array.dtype = TN_UINT32;
    check_not_added(f, &w->whole, text);
    *p = good;
    p->nbytes++;
    check_not_added(f, &w->whole, text);
    *p = good;
    stored_in(p)->size--;
    check_not_added(f, &w->whole, text);
    *p = good;
    more_in(p)->derive = &tn_derive_columns;
    check_not_added(f, &w->whole, text);
    *p = good;
    stored_in(p)->offset = 1 << 20;
    check_not_added(f, &w->whole, "tensor \"e\": data of 40 bytes at 1048576 but the file has 1147 bytes");
    *p = good;
    w->shape[1] = 0;
    check_not_added(f, &w->whole, text);
    w->shape[1] = 65;
    check_not_added(f, &w->whole, text);
    unweave(w);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(rows_that_lie_apart_are_gathered),
        IN_FOLDER(any_range_of_them_can_be_had),
        IN_FOLDER(a_checksum_may_be_of_more_than_the_part),
        IN_FOLDER(columns_that_are_stored_apart_are_woven),
        IN_FOLDER(every_column_is_held_against_its_own_checksum),
        IN_FOLDER(a_deflated_column_that_is_damaged_is_seen),
        IN_FOLDER(a_column_of_an_unknown_encoding_cannot_be_read),
        IN_FOLDER(rows_that_do_not_fit_are_not_added),
        IN_FOLDER(columns_that_are_not_alike_are_not_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
