/* SciPy's .npz: what SciPy wrote, archives made by hand, and what is written.
 * tests/interop holds it against SciPy itself. */
#include "support.h"
#include "stored.h"

#include "files.h"
#include "make.h"
#include "scipy_arrays.h"

#include "store/stream.h"

#define GOLDEN TEST_GOLDEN "/scipy"

static tn_file *open_golden(const char *name, tn_io io)
{
    tn_file *f = open_at(GOLDEN, name, NULL, io);
    walk_file(f);
    return f;
}

/* ---- what SciPy wrote ---- */

static void check_golden_as(char *field[TABLE_FIELDS], tn_io io)
{
    tn_file *f = open_golden(field[0], io);
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(tn_file_count(f) == 1 && !tn_file_warning(f, 0) && good_parts(f) == t->nparts);
    assert_string_equal(tn_file_format(f), "scipy-npz");
    assert_string_equal(tn_form_name(t->form), field[1]);
    assert_string_equal(tn_dtype_get(t->dtype)->name, field[2]);
    check_shape(t, field[3]);
    for (uint32_t k = 1; k < t->nparts; k++)
        assert_string_equal(tn_dtype_get(t->parts[k].array.dtype)->name, field[4]);
    tn_buf bytes = all_parts(f, t);
    assert_string_equal(sha256_of(bytes.data, bytes.size).text, field[5]);
    tn_buf_free(&bytes);
    tn_close(f);
}

static void check_golden(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 6);
    check_golden_as(field, TN_IO_MMAP);
    check_golden_as(field, TN_IO_PREAD);
}

static void what_scipy_wrote_is_one_tensor(void)
{
    CHECK(each_row(GOLDEN "/matrices.tsv", check_golden) == 19);
}

static void arrays_of_one_dimension_are_plain_with_a_warning(void)
{
    static const struct { const char *file; size_t arrays; const char *warning; } others[] = {
        { "csr_rank1.npz", 6,
          "this SciPy csr matrix are listed one by one: it has one dimension: save it as coo" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tn_file *f = open_golden(others[i].file, TN_IO_MMAP);
        CHECK(tn_file_count(f) == others[i].arrays && tn_file_find(f, "format")->dtype == TN_UNKNOWN);
        CHECK(strstr(tn_file_warning(f, 0), others[i].warning) && !tn_file_warning(f, 1));
        assert_string_equal(tn_file_format(f), "npz");
        tn_close(f);
    }
}

static void damage_one(const char *name, const uint8_t *bytes, size_t n)
{
    if (!strstr(name, TN_NPZ_SUFFIX))
        return;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = exact_copy(bytes, n);
        copy[i] ^= (uint8_t)(1u << i % 8);
        walk_bytes(copy, n, "npz");
        free(copy);
        copy = exact_copy(bytes, i);
        CHECK(walk_bytes(copy, i, "npz") != TN_OK);
        CHECK(walk_bytes(copy, i, "scipy-npz") != TN_OK);
        free(copy);
    }
}

static void what_scipy_wrote_may_be_damaged(void)
{
    CHECK(each_file(GOLDEN, damage_one) > 10);
}

static void stored_members_are_used_in_place(void)
{
    tn_file *f = open_golden("csr_stored.npz", TN_IO_MMAP);
    const tn_tensor *t = tn_file_tensor(f, 0);
    for (uint32_t k = 0; k < 3; k++)
        CHECK(t->parts[k].data && stored_info(&t->parts[k]).encoding == TN_ENCODING_RAW);
    CHECK(memcmp(t->parts[1].data, (const int32_t[]){ 1, 3, 1 }, 12) == 0);
    for (int k = 0; k < 2; k++) {
        tn_file *other = open_golden(k ? "bsr.npz" : "csc_wide.npz", TN_IO_MMAP);
        CHECK(tn_file_tensor(other, 0)->parts[0].data && !tn_file_tensor(other, 0)->parts[1].data);
        tn_close(other);
    }
    tn_close(f);
    f = open_golden("coo_stored.npz", TN_IO_MMAP);
    const tn_part *indices = &tn_file_tensor(f, 0)->parts[1];
    const tn_part *columns = tn_stored_more_of(indices)->from;
    CHECK(!indices->data && columns[0].data && columns[1].data);
    tn_close(f);
}

/* ---- archives by hand ---- */

/* A csr or coo matrix, 2 x 3, of three entries: { 0, 5, 6 }, { 7, 0, 0 }. */
static const float values[] = { 5, 6, 7 };
static const int32_t indices[] = { 1, 2, 0 }, indptr[] = { 0, 2, 3 }, rows[] = { 0, 0, 1 },
pairs[] = { 0, 1, 0, 2, 1, 0 };
static const int64_t shape[] = { 2, 3 };
static const array csr[] = {
    { "data", "<f4", "(3,)", values, 12, 0, 0 },     { "indices", "<i4", "(3,)", indices, 12, 0, 0 },
    { "indptr", "<i4", "(3,)", indptr, 12, 0, 0 },
    { "shape", "<i8", "(2,)", shape, 16, 0, 0 },     { "format", "|S3", "()", "csr", 3, 0, 0 },
};
static const array coo[] = {
    { "data", "<f4", "(3,)", values, 12, 0, 0 },     { "row", "<i4", "(3,)", rows, 12, 0, 0 },
    { "col", "<i4", "(3,)", indices, 12, 0, 0 },
    { "shape", "<i8", "(2,)", shape, 16, 0, 0 },     { "format", "|S3", "()", "coo", 3, 0, 0 },
};

static void matrices_made_by_hand_are_read(void)
{
    for (unsigned method = 0; method <= TN_ZIP_DEFLATED; method += TN_ZIP_DEFLATED) {
        for (int k = 0; k < 2; k++) {
            archive a = make_archive(k ? coo : csr, CSR_ARRAYS, method);
            tn_file *f = NULL;
            CHECK(open_archive(&a, NULL, &f, NULL) == TN_OK);
            const tn_tensor *t = tn_file_find(f, "tensor");
            CHECK(t->form == (k ? TN_FORM_COO : TN_FORM_CSR));
            CHECK(t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3 && t->dtype == TN_FLOAT32 &&
                  good_parts(f) == t->nparts);
            tn_buf bytes = all_parts(f, t);
            CHECK(bytes.size == 36 && memcmp(bytes.data, values, 12) == 0);
            if (k)
                CHECK(memcmp(bytes.data + 12, pairs, 24) == 0);
            else
                CHECK(memcmp(bytes.data + 12, indices, 12) == 0 && memcmp(bytes.data + 24, indptr, 12) == 0);
            tn_buf_free(&bytes);
            tn_close(f);
            tn_buf_free(&a.bytes);
        }
    }
}

static void members_that_contradict_each_other_are_refused(void)
{
    static const int64_t wide[] = { 0, 2, 3, 4 }, negative[] = { 2, -3 }, huge[] = { INT64_MAX, 3 },
    cube[] = { 2, 3, 4 };
    static const int64_t many[TN_MAX_RANK + 1];
    static const struct { const array *of; array instead; const char *text; } bad[] = {
        { csr, { .name = "indptr" },
          "member \"indptr.npy\": a SciPy csr matrix has one but it is not in the archive" },
        { csr, { .name = "indices" }, "member \"indices.npy\": a SciPy csr matrix has one" },
        { coo, { .name = "row" }, "member \"row.npy\": a SciPy coo matrix has one" },
        { coo, { .name = "col" }, "member \"col.npy\": a SciPy coo matrix has one" },
        { csr, { "indptr", "<i8", "(3,)", wide, 24, 0, 0 },
          "\"indptr.npy\": expected 3 elements of type int32 but found 3 of type int64" },
        { csr, { "indptr", "<i4", "(2,)", indptr, 8, 0, 0 },
          "\"indptr.npy\": expected 3 elements of type int32 but found 2 of type int32" },
        { csr, { "indptr", "<i4", "(3, 1)", indptr, 12, 0, 0 }, "but found an array of 2 dimensions" },
        { csr, { "indptr", "|S4", "(3,)", indptr, 12, 0, 0 }, "but found 3 of type \"|S4\"" },
        { csr, { "indices", "<i4", "(2,)", indices, 8, 0, 0 },
          "\"indices.npy\": expected 3 elements but found 2 of type int32" },
        { csr, { "indices", "<f4", "(3,)", indices, 12, 0, 0 },
          "\"indptr.npy\": expected 3 elements of type float32" },
        { csr, { "data", "<f4", "(3, 1)", values, 12, 0, 0 },
          "\"data.npy\": expected a vector but found an array of 2 dimensions" },
        { csr, { "shape", "<f8", "(2,)", shape, 16, 0, 0 },
          "\"shape.npy\": expected 1 to 64 dimensions of type int64 but found 2 of type float64" },
        { csr, { "shape", "<i8", "(2, 1)", shape, 16, 0, 0 }, "\"shape.npy\": expected 1 to 64 dimensions" },
        { csr, { "shape", "<i8", "(0,)", shape, 0, 0, 0 }, "but found 0 of type int64" },
        { csr, { "shape", "<i8", "(65,)", many, sizeof many, 0, 0 },
          "expected 1 to 64 dimensions of type int64 but found 65" },
        { csr, { "shape", "<i8", "(3,)", cube, 24, 0, 0 },
          "\"shape.npy\": expected 2 dimensions but found 3" },
        { csr, { "shape", "<i8", "(2,)", negative, 16, 0, 0 }, "\"shape.npy\": dimension 1 is -3" },
        { csr, { "shape", "<i8", "(2,)", huge, 16, 0, 0 },
          "\"indptr.npy\": expected 9223372036854775808 elements" },
        { coo, { "shape", "<i8", "(2,)", huge, 16, 0, 0 }, "more than 2^63 - 1 elements" },
        { coo, { "shape", "<i8", "(3,)", cube, 24, 0, 0 },
          "\"shape.npy\": expected 2 dimensions but found 3" },
        { coo, { "row", "<i4", "(2,)", rows, 8, 0, 0 },
          "\"row.npy\": expected 3 elements but found 2 of type int32" },
        { coo, { "col", "<i8", "(3,)", wide, 24, 0, 0 },
          "\"col.npy\": expected 3 elements of type int32 but found 3 of type int64" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (unsigned method = 0; method <= TN_ZIP_DEFLATED; method += TN_ZIP_DEFLATED) {
            archive a = change(bad[i].of, bad[i].instead, method);
            tn_file *f = NULL;
            tn_error err = { .text = "" };
            tn_status status = open_archive(&a, NULL, &f, &err);
            if (status != TN_ERR_CORRUPT || !strstr(line_of(&err), bad[i].text))
                fail_msg("expected \"%s\"\nfound %d \"%s\"", bad[i].text, (int)status, line_of(&err));
            tn_buf_free(&a.bytes);
        }
    }
}

static void coords_are_seen_the_other_way_round(void)
{
    static const int32_t coords[] = { 0, 0, 1, 1, 2, 0 };
    array own[] = { coo[0], { "coords", "<i4", "(2, 3)", coords, 24, 0, 0 }, coo[3], coo[4] };
    for (unsigned way = 0; way < 4; way++) {
        own[1].fortran = way & 1;               /* then they are stored as the rows they will be */
        own[1].data = way & 1 ? pairs : coords;
        archive a = make_archive(own, 4, way & 2 ? TN_ZIP_DEFLATED : TN_ZIP_STORED);
        tn_file *f = NULL;
        CHECK(open_archive(&a, NULL, &f, NULL) == TN_OK && good_parts(f) == 2);
        CHECK(!tn_file_tensor(f, 0)->parts[1].data == (way != 1));
        tn_buf bytes = all_parts(f, tn_file_tensor(f, 0));
        CHECK(bytes.size == 36 && memcmp(bytes.data + 12, pairs, 24) == 0);
        tn_buf_free(&bytes);
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
    tn_error err = { .text = "" };
    tn_file *f = NULL;
    own[1].shape = "(3, 2)";
    archive a = make_archive(own, 4, TN_ZIP_STORED);
    CHECK(open_archive(&a, NULL, &f, &err) == TN_ERR_CORRUPT &&
          strstr(line_of(&err), "\"coords.npy\": expected 2 rows of 3 elements"));
    tn_buf_free(&a.bytes);
}

static void the_format_may_be_text(void)
{
    static const struct { const char *type, *bytes; } texts[] = { { "<U3", "c\0\0\0s\0\0\0r\0\0\0" },
                                                                  { ">U3", "\0\0\0c\0\0\0s\0\0\0r" } };
    for (size_t i = 0; i < 4; i++) {
        archive a = change(csr, (array){ "format", texts[i % 2].type, "()", texts[i % 2].bytes, 12, 0, 0 },
                           i < 2 ? TN_ZIP_STORED : TN_ZIP_DEFLATED);
        tn_file *f = NULL;
        CHECK(open_archive(&a, "scipy-npz", &f, NULL) == TN_OK &&
              tn_file_tensor(f, 0)->form == TN_FORM_CSR);
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
}

static void archives_that_only_look_like_it_stay_plain(void)
{
    static const struct { const array *of; array instead; const char *warning; } plain[] = {
        { csr, { "format", "<i4", "()", indptr, 4, 0, 0 }, NULL },
        { csr, { "format", "|S3", "(1,)", "csr", 3, 0, 0 }, NULL },
        { csr, { "format", "|S4", "()", "csr ", 4, 0, 0 }, NULL },
        { csr, { "format", "|S3", "()", "xyz", 3, 0, 0 }, NULL },
        { csr, { .name = "format" }, NULL },
        { csr, { .name = "shape" }, NULL },
        { csr, { .name = "data" }, NULL },
        { csr, { "data", "<f16", "(3,)", "0123456789abcdef0123456789abcdef0123456789abcdef", 48, 0, 0 },
          "the type of its values is not known" },
        { csr, { "extra", "<f4", "(3,)", values, 12, 0, 0 }, "the archive has other members too" },
        { csr, { "row", "<i4", "(3,)", rows, 12, 0, 0 }, "the archive has other members too" },
        { coo, { "coords", "<i4", "(1, 3)", rows, 12, 0, 0 }, "the archive has other members too" },
        { csr, { "indptr", "<i4", "(3,)", indptr, 12, 0, .meta = true }, "the archive has other members too" },
        { csr, { "_is_array", "<i4", "(3,)", indptr, 12, 0, 0 }, "the archive has other members too" },
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        archive a = change(plain[i].of, plain[i].instead, TN_ZIP_STORED);
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        CHECK(open_archive(&a, "scipy-npz", &f, &err) == TN_ERR_UNSUPPORTED &&
              strstr(line_of(&err), "scipy.sparse.save_npz()"));
        CHECK(open_archive(&a, NULL, &f, NULL) == TN_OK && tn_file_count(f) == a.count);
        assert_string_equal(tn_file_format(f), "npz");
        CHECK(plain[i].warning ? strstr(tn_file_warning(f, 0), plain[i].warning) != NULL
                               : !tn_file_warning(f, 0));
        tn_close(f);
        tn_buf_free(&a.bytes);
    }
}

static void a_name_that_is_there_twice_is_seen(void)
{
    array own[CSR_ARRAYS + 1];
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    memcpy(own, csr, sizeof csr);
    own[CSR_ARRAYS] = csr[0];
    archive a = make_archive(own, CSR_ARRAYS + 1, TN_ZIP_STORED);
    CHECK(open_archive(&a, NULL, &f, &err) == TN_ERR_CORRUPT && strstr(line_of(&err), "listed twice"));
    tn_buf_free(&a.bytes);
}

/* Replaces the only occurrence of some bytes. */
static void overwrite(tn_buf *b, const void *old, const void *new, size_t n)
{
    uint8_t *at = memmem(b->data, b->size, old, n);
    assert_non_null(at);
    memcpy(at, new, n);
}

static void the_index_must_have_its_checksum(void)
{
    static const int64_t other[] = { 2, 4 };
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    archive a = make_archive(csr, CSR_ARRAYS, TN_ZIP_STORED);
    overwrite(&a.bytes, shape, other, sizeof shape);
    CHECK(open_archive(&a, NULL, &f, &err) == TN_ERR_CHECKSUM &&
          strstr(line_of(&err), "tensor \"shape\": expected checksum"));
    overwrite(&a.bytes, other, shape, sizeof shape);
    overwrite(&a.bytes, values, indptr, sizeof values);        /* data is not read when a file is opened */
    CHECK(open_archive(&a, NULL, &f, NULL) == TN_OK && good_parts(f) == 2);
    tn_close(f);
    tn_buf_free(&a.bytes);
}

/* ---- writing ---- */

/* A sparse matrix in memory; parts without data are streamed. */
typedef struct sample {
    const char    *name, *layout;
    tn_form        form;
    tn_dtype       dtype, index;
    uint32_t       rank;
    int64_t        shape[3];
    int64_t        entries;
    const void    *values, *indices, *indptr;
    const tn_meta *meta;
    uint32_t       nmeta;
} sample;

static tn_status add_sample(tn_writer *w, const sample *s, tn_error *err)
{
    bool is_csr = s->form == TN_FORM_CSR;
    int64_t both[] = { s->entries, s->rank }, pointers = s->shape[0] * (s->rank == 3 ? s->shape[1] : 1) + 1;
    const tn_part parts[] = {
        { .role = "values", .array = { s->dtype, 1, &s->entries, NULL }, .data = s->values },
        { .role = "indices", .array = { s->index, is_csr ? 1 : 2, both, NULL }, .data = s->indices },
        { .role = "indptr", .array = { s->index, 1, &pointers, NULL }, .data = s->indptr },
    };
    const tn_tensor t = { .name = s->name, .form = s->form, .dtype = s->dtype, .rank = s->rank,
                          .shape = s->shape, .parts = parts,
                          .nparts = is_csr ? 3 : 2, .layout = s->layout, .meta = s->meta, .nmeta = s->nmeta };
    return tn_writer_add(w, &t, err);
}

static tn_status write_samples(const char *name, tn_create_options options, const sample *s, size_t n,
                               tn_error *err)
{
    tn_writer *w;
    options.size = sizeof options;
    options.replace = true;
    options.format = options.format ? options.format : "scipy-npz";
    tn_status status = tn_create(in_folder(name).text, &options, &w, err);
    for (size_t i = 0; i < n && !status; i++)
        status = add_sample(w, &s[i], err);
    if (!status)
        return tn_writer_finish(w, err);
    tn_writer_abandon(w);
    return status;
}

static const sample small_csr = { .name = "x", .form = TN_FORM_CSR, .dtype = TN_FLOAT32, .index = TN_INT32,
                                  .rank = 2, .shape = { 2, 3 },
                                  .entries = 3, .values = values, .indices = indices, .indptr = indptr };
static const sample small_coo = { .name = "x", .form = TN_FORM_COO, .dtype = TN_FLOAT32, .index = TN_INT32,
                                  .rank = 2, .shape = { 2, 3 },
                                  .entries = 3, .values = values, .indices = pairs };

/* The members as plain arrays: for want of a format. */
typedef struct members {
    uint8_t *bytes;
    tn_file *file;
} members;

static members open_members(const char *name)
{
    members m = { .file = NULL };
    size_t n;
    uint8_t *at;
    m.bytes = load_file(in_folder(name).text, &n);
    while ((at = memmem(m.bytes, n, "format.npy", 10)) != NULL)
        *at = 'F';
    CHECK(tn_open_memory(m.bytes, n, NULL, &m.file, NULL) == TN_OK);
    walk_file(m.file);
    return m;
}

static void close_members(members *m)
{
    tn_close(m->file);
    free(m->bytes);
}

static void check_member(const members *m, size_t i, const char *name, const char *type, const void *bytes,
                         size_t n)
{
    const tn_tensor *t = tn_file_tensor(m->file, i);
    const tn_stored_info s = stored_info(t->parts);
    assert_string_equal(t->name, name);
    assert_string_equal(s.type, type);
    CHECK(s.bytes == n && s.offset % 64 == 0 && memcmp(m->bytes + s.offset, bytes, n) == 0);
}

static void members_are_what_scipy_looks_for(void)
{
    CHECK(write_samples("a.npz", (tn_create_options){ 0 }, &small_csr, 1, NULL) == TN_OK);
    members m = open_members("a.npz");
    CHECK(tn_file_count(m.file) == 6);
    check_member(&m, 0, "data", "<f4", values, 12);
    check_member(&m, 1, "indices", "<i4", indices, 12);
    check_member(&m, 2, "indptr", "<i4", indptr, 12);
    check_member(&m, 3, "shape", "<i8", shape, 16);
    check_member(&m, 4, "Format", "|S3", "csr", 3);
    check_member(&m, 5, "_is_array", "|b1", "\1", 1);
    close_members(&m);
    CHECK(write_samples("a.npz", (tn_create_options){ 0 }, &small_coo, 1, NULL) == TN_OK);
    m = open_members("a.npz");
    CHECK(tn_file_count(m.file) == 6);
    check_member(&m, 1, "row", "<i4", rows, 12);
    check_member(&m, 2, "col", "<i4", indices, 12);
    check_member(&m, 4, "Format", "|S3", "coo", 3);
    close_members(&m);
}

static void nothing_is_left_behind_the_archive(void)
{
    size_t size, again;
    CHECK(write_samples("a.npz", (tn_create_options){ 0 }, &small_coo, 1, NULL) == TN_OK);
    CHECK(write_samples("b.npz", (tn_create_options){ .jobs = 2 }, &small_coo, 1, NULL) == TN_OK);
    uint8_t *a = load_file(in_folder("a.npz").text, &size), *b = load_file(in_folder("b.npz").text, &again);
    CHECK(size == again && memcmp(a, b, size) == 0);
    CHECK(memcmp(a + size - 22, "PK\5\6", 4) == 0);
    free(a);
    free(b);
}

static void what_is_written_may_be_damaged(void)
{
    const tn_meta meta[] = { { .key = "unit", .text = "m" } };
    sample both[] = { small_csr, small_coo };
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        both[i].meta = meta;
        both[i].nmeta = 1;
        CHECK(write_samples("d.npz", (tn_create_options){ 0 }, &both[i], 1, NULL) == TN_OK);
        uint8_t *bytes = load_file(in_folder("d.npz").text, &n);
        damage_one("d.npz", bytes, n);
        free(bytes);
    }
}

static const tn_dtype scipy_types[] = {
    TN_BOOL,   TN_INT8,   TN_INT16,   TN_INT32,   TN_INT64,     TN_UINT8,      TN_UINT16,
    TN_UINT32, TN_UINT64, TN_FLOAT32, TN_FLOAT64, TN_COMPLEX64, TN_COMPLEX128,
};

static bool is_scipy_type(tn_dtype dtype)
{
    for (size_t i = 0; i < sizeof scipy_types / sizeof *scipy_types; i++)
        if (scipy_types[i] == dtype)
            return true;
    return false;
}

/* Entries 0 .. n-1 on the diagonal. */
static void fill_diagonal(sample *s, uint8_t *data, int64_t *index, int64_t *pointers, bool is_csr)
{
    for (int64_t i = 0; i < s->entries; i++) {
        if (is_csr)
            index[i] = i;
        else
            index[2 * i] = index[2 * i + 1] = i;
        pointers[i + 1] = i + 1;
    }
    for (size_t i = 0; i < 16 * (size_t)s->entries; i++)
        data[i] = s->dtype == TN_BOOL ? i & 1 : (uint8_t)(i * 7);
    s->values = data;
    s->indices = index;
    s->indptr = is_csr ? pointers : NULL;
}

static void check_same(const char *name, const sample *s, const void *pointers)
{
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_tensor(f, 0);
    tn_buf bytes = all_parts(f, t);
    size_t n = (size_t)t->parts[0].nbytes, m = (size_t)t->parts[1].nbytes;
    CHECK(good_parts(f) == t->nparts && t->dtype == s->dtype && t->form == s->form &&
          t->rank == s->rank);
    CHECK(memcmp(t->shape, s->shape, 2 * sizeof *t->shape) == 0 && t->parts[0].array.shape[0] == s->entries);
    CHECK(!n || memcmp(bytes.data, s->values, n) == 0);
    CHECK(!m || memcmp(bytes.data + n, s->indices, m) == 0);
    CHECK(t->nparts == 2 || memcmp(bytes.data + n + m, pointers, (size_t)t->parts[2].nbytes) == 0);
    tn_buf_free(&bytes);
    tn_close(f);
}

static void every_type_that_scipy_has_comes_back(void)
{
    uint8_t data[16 * 5];
    int64_t index[10], pointers[6] = { 0 };
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++) {
        for (int k = 0; k < 2; k++) {
            sample s = { .name = "w", .form = k ? TN_FORM_COO : TN_FORM_CSR, .dtype = d, .index = TN_INT64,
                         .rank = 2,
                         .shape = { 5, 7 }, .entries = 5 };
            tn_error err = { .text = "" };
            fill_diagonal(&s, data, index, pointers, !k);
            tn_status status = write_samples("w.npz", (tn_create_options){ 0 }, &s, 1, &err);
            CHECK(status == (is_scipy_type(d) ? TN_OK : TN_ERR_UNSUPPORTED));
            if (status)
                CHECK(strstr(line_of(&err), tn_dtype_get(d)->name) && strstr(line_of(&err), "(cast f32)"));
            else
                check_same("w.npz", &s, pointers);
        }
    }
}

static void matrices_without_entries_rows_or_columns_come_back(void)
{
    static const int64_t shapes[][3] = { { 0, 0 }, { 0, 7 }, { 5, 0 }, { 5, 7 } };
    static const int64_t zeros[6];
    for (size_t i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            sample s = { .name = "w", .form = k ? TN_FORM_COO : TN_FORM_CSR, .dtype = TN_FLOAT64,
                         .index = TN_INT64,
                         .rank = 2, .values = zeros,
                         .indices = zeros, .indptr = zeros };
            memcpy(s.shape, shapes[i], sizeof s.shape);
            CHECK(write_samples("w.npz", (tn_create_options){ 0 }, &s, 1, NULL) == TN_OK);
            check_same("w.npz", &s, zeros);
        }
    }
}

/* More than a window of indices, in pieces that cut elements, and from compressed parts. */
static void large_matrices_are_streamed(void)
{
    enum { COUNT = TN_WINDOW / 8, PIECE = 1000003 };
    uint8_t *data = malloc(16 * COUNT);
    int64_t *index = malloc(2 * COUNT * sizeof *index), *pointers = calloc(COUNT + 1, sizeof *pointers);
    sample s = { .name = "w", .form = TN_FORM_COO, .dtype = TN_COMPLEX128, .index = TN_INT64, .rank = 2,
                 .shape = { COUNT, COUNT }, .entries = COUNT };
    fill_diagonal(&s, data, index, pointers, false);
    sample streamed = s;
    streamed.values = streamed.indices = NULL;
    tn_create_options options = { .size = sizeof options, .format = "scipy-npz" };
    tn_writer *w;
    CHECK(tn_create(in_folder("w.npz").text, &options, &w, NULL) == TN_OK &&
          add_sample(w, &streamed, NULL) == TN_OK);
    for (size_t part = 2; part-- > 0;)
        for (size_t done = 0, all = 16 * COUNT; done < all; done += PIECE)
            CHECK(tn_writer_write(w, 0, part, (part ? (const uint8_t *)index : data) + done,
                                  all - done < PIECE ? all - done : PIECE, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    check_same("w.npz", &s, NULL);
    free(data);
    free(index);
    free(pointers);
}

static void convert(const char *from, const char *to, const char *format, bool dry_run,
                    tn_convert_result *result)
{
    tn_create_options create = { .size = sizeof create, .format = format, .replace = true, .jobs = 2 };
    tn_convert_options options = { .size = sizeof options, .create = &create, .dry_run = dry_run };
    tn_error err = { .text = "" };
    tn_file *f = open_file(from);
    if (tn_convert(f, in_folder(to).text, &options, result, &err))
        fail_msg("%s", line_of(&err));
    tn_close(f);
}

static void both_forms_go_round_through_other_containers(void)
{
    for (int k = 0; k < 2; k++) {
        tn_convert_result dry, wet;
        CHECK(write_samples("a.npz", (tn_create_options){ 0 }, k ? &small_coo : &small_csr, 1,
                            NULL) == TN_OK);
        convert("a.npz", "a.zt", NULL, false, NULL);
        convert("a.zt", "b.npz", NULL, false, NULL);        /* parts by name, a record beside them */
        convert("b.npz", "c.npz", "scipy-npz", true, &dry);
        CHECK(access(in_folder("c.npz").text, F_OK) != 0);
        convert("b.npz", "c.npz", "scipy-npz", false, &wet);
        CHECK(dry.bytes_out == wet.bytes_out);
        size_t n, m;
        uint8_t *a = load_file(in_folder("a.npz").text, &n), *c = load_file(in_folder("c.npz").text, &m);
        CHECK(n == m && n == wet.bytes_out && memcmp(a, c, n) == 0);
        free(a);
        free(c);
        CHECK(unlink(in_folder("c.npz").text) == 0);
    }
}

static void the_tensor_keeps_its_name_or_is_called_after_the_file(void)
{
    for (int drop = 0; drop < 2; drop++) {
        CHECK(write_samples("weights.npz", (tn_create_options){ .drop_names = drop }, &small_csr, 1,
                            NULL) == TN_OK);
        tn_file *f = open_file("weights.npz");
        assert_string_equal(tn_file_tensor(f, 0)->name, drop ? "weights" : "x");
        tn_close(f);
    }
    tn_file *f = open_golden("csr.npz", TN_IO_MMAP);
    assert_string_equal(tn_file_tensor(f, 0)->name, "csr");
    tn_close(f);
}

static void metadata_stays_with_the_values(void)
{
    static char text[TN_ZIP_NOTE_MAX];
    const tn_meta meta[] = { { .key = "unit", .text = "Grüße" } },
    of_file = { .key = "made", .text = "today" };
    sample s = small_csr;
    tn_create_options options = { .size = sizeof options, .format = "scipy-npz" };
    tn_writer *w;
    s.meta = meta;
    s.nmeta = 1;
    CHECK(tn_create(in_folder("m.npz").text, &options, &w, NULL) == TN_OK &&
          tn_writer_add_meta(w, &of_file, NULL) == TN_OK);
    CHECK(add_sample(w, &s, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("m.npz");
    size_t n;
    const tn_meta *found = tn_file_meta(f, &n);
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(n == 1 && strcmp(found->text, "today") == 0 && t->nmeta == 1 &&
          strcmp(t->meta->text, "Grüße") == 0 && good_parts(f) == 3);
    tn_close(f);
    memset(text, 'x', sizeof text - 1);
    s.meta = &(tn_meta){ .key = "long", .text = text };
    CHECK(write_samples("n.npz", (tn_create_options){ 0 }, &s, 1, NULL) == TN_ERR_LIMIT);
    CHECK(write_samples("n.npz", (tn_create_options){ .drop_metadata = true }, &s, 1, NULL) == TN_OK);
}

/* `base` with other words in some places. */
static sample with(sample base, tn_form form, uint32_t rank, tn_dtype index, const char *layout)
{
    base.form = form;
    base.rank = rank;
    base.index = index;
    base.layout = layout;
    return base;
}

static void what_scipy_cannot_hold_is_refused_before_anything_is_written(void)
{
    static const int64_t words[8];
    sample any = small_csr;
    any.values = any.indices = any.indptr = words;
    any.shape[2] = 1;
    any.entries = 0;
    const struct { sample s; size_t count; tn_status status; const char *text; } bad[] = {
        { any, 0, TN_ERR_ARGUMENT, "there are 0: choose one" },
        { any, 2, TN_ERR_ARGUMENT, "there are 2: choose one" },
        { with(any, TN_FORM_CSR, 3, TN_INT32, NULL), 1, TN_ERR_UNSUPPORTED, "of 2 dimensions, but found 3" },
        { with(any, TN_FORM_COO, 3, TN_INT32, NULL), 1, TN_ERR_UNSUPPORTED, "of 2 dimensions, but found 3" },
        { with(any, TN_FORM_COO, 1, TN_INT32, NULL), 1, TN_ERR_UNSUPPORTED, "of 2 dimensions, but found 1" },
        { with(any, TN_FORM_CSR, 2, TN_UINT32, NULL), 1, TN_ERR_UNSUPPORTED,
          "found uint32 (form csr,index=int64)" },
        { with(any, TN_FORM_COO, 2, TN_UINT64, NULL), 1, TN_ERR_UNSUPPORTED,
          "found uint64 (form coo,index=int64)" },
        { with(any, TN_FORM_CSR, 2, TN_INT32, "OI"), 1, TN_ERR_LOSS,
          "cannot hold its layout (drop_metadata)" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sample two[] = { bad[i].s, bad[i].s };
        tn_error err = { .text = "" };
        two[1].name = "y";
        tn_status status = write_samples("r.npz", (tn_create_options){ 0 }, two, bad[i].count, &err);
        if (status != bad[i].status || !strstr(line_of(&err), bad[i].text))
            fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", (int)bad[i].status, bad[i].text, (int)status,
                     line_of(&err));
        CHECK(count_entries(folder) == 0);
    }
    simple dense = { .name = "x", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = values };
    tn_error err = { .text = "" };
    CHECK(try_write("r.npz", (tn_create_options){ .format = "scipy-npz" }, &dense, 1,
                    &err) == TN_ERR_UNSUPPORTED);
    CHECK(strstr(line_of(&err), "form csr or coo but found \"dense\" (form csr)") && count_entries(folder) == 0);
    any.layout = "OI";
    CHECK(write_samples("r.npz", (tn_create_options){ .drop_metadata = true }, &any, 1, NULL) == TN_OK);
}

static void npy_says_where_sparse_tensors_go(void)
{
    tn_error err = { .text = "" };
    for (int k = 0; k < 2; k++) {
        CHECK(write_samples("x.npy", (tn_create_options){ .format = "npy" }, k ? &small_coo : &small_csr, 1,
                            &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(line_of(&err), "use scipy-npz, or make it dense (form dense)") && count_entries(folder) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_scipy_wrote_is_one_tensor),
        TEST(arrays_of_one_dimension_are_plain_with_a_warning),
        TEST(what_scipy_wrote_may_be_damaged),
        TEST(stored_members_are_used_in_place),
        TEST(matrices_made_by_hand_are_read),
        TEST(members_that_contradict_each_other_are_refused),
        TEST(coords_are_seen_the_other_way_round),
        TEST(the_format_may_be_text),
        TEST(archives_that_only_look_like_it_stay_plain),
        TEST(a_name_that_is_there_twice_is_seen),
        TEST(the_index_must_have_its_checksum),
        IN_FOLDER(members_are_what_scipy_looks_for),
        IN_FOLDER(nothing_is_left_behind_the_archive),
        IN_FOLDER(what_is_written_may_be_damaged),
        IN_FOLDER(every_type_that_scipy_has_comes_back),
        IN_FOLDER(matrices_without_entries_rows_or_columns_come_back),
        IN_FOLDER(large_matrices_are_streamed),
        IN_FOLDER(both_forms_go_round_through_other_containers),
        IN_FOLDER(the_tensor_keeps_its_name_or_is_called_after_the_file),
        IN_FOLDER(metadata_stays_with_the_values),
        IN_FOLDER(what_scipy_cannot_hold_is_refused_before_anything_is_written),
        IN_FOLDER(npy_says_where_sparse_tensors_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
