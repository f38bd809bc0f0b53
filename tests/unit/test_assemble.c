/* From flat entries to tensors: records applied, right and wrong. */
#include "support.h"

#include "store/record.h"
#include "files.h"
#include "make.h"
#include "zt_bytes.h"

/* An entry of `size` uint8 at `offset`, with a record and perhaps metadata of its own. */
static void put_entry(zt_bytes *z, const char *name, uint64_t offset, uint64_t size, const tn_record *r,
                      const char *meta)
{
    tn_cbor_put_map(&z->file, (uint64_t)ZT_FIELDS + (r != NULL) + (meta != NULL));
    zt_fields(z, name, offset, size);
    if (meta)
        zt_text_field(z, meta, "value");
    if (r) {
        zt_text(z, "tenon");
        tn_record_put(r, &z->file);
    }
}

static const int64_t six[] = { 6 }, two_by_three[] = { 2, 3 };
static const char *roles[] = { "data", "scale", "zero" };

/* A tensor of a form that a later version may know: data w, scale w.scale. */
static tn_record compound(uint32_t nroles)
{
    return (tn_record){ .form = "future", .tensor_dtype = TN_FLOAT32, .tensor_rank = 2,
                        .tensor_shape = two_by_three,
                        .roles = roles, .nroles = nroles };
}

static tn_file *open_built(zt_bytes *z)
{
    tn_file *f;
    tn_error err = { .text = "" };
    zt_end(z);
    if (tn_open_memory(z->file.data, z->file.size, NULL, &f, &err))
        fail_msg("refused: %s", line_of(&err));
    walk_file(f);
    return f;
}

static void expect_refused(zt_bytes *z, const char *text)
{
    tn_file *f;
    tn_error err = { .text = "" };
    zt_end(z);
    tn_status status = tn_open_memory(z->file.data, z->file.size, NULL, &f, &err);
    if (status != TN_ERR_CORRUPT || !strstr(line_of(&err), text))
        fail_msg("expected \"%s\", found status %d: %s", text, status, line_of(&err));
    tn_buf_free(&z->file);
}

/* ---- one tensor of several parts ---- */

static zt_bytes build_compound(bool scale_first)
{
    zt_bytes z = zt_begin(256);
    tn_record whole = compound(2), int4 = { .has_array = true, .dtype = TN_INT4, .rank = 1, .shape = six };
    whole.has_array = true;
    whole.dtype = int4.dtype;
    whole.rank = 1;
    whole.shape = six;
    tn_cbor_put_array(&z.file, 3);
    if (scale_first)
        put_entry(&z, "w.scale", 128, 8, NULL, NULL);
    put_entry(&z, "w", 64, 3, &whole, "note");
    put_entry(&z, "other", 192, 4, NULL, NULL);
    if (!scale_first)
        put_entry(&z, "w.scale", 128, 8, NULL, NULL);
    return z;
}

static void check_compound(const tn_file *f)
{
    CHECK(tn_file_count(f) == 2 && tn_file_find(f, "w.scale") == NULL && tn_file_find(f, "other") != NULL);
    const tn_tensor *w = tn_file_find(f, "w");
    assert_non_null(w);
    CHECK(w->form == TN_FORM_UNKNOWN && strcmp(w->form_text, "future") == 0 && w->dtype == TN_FLOAT32 &&
          w->rank == 2 && w->shape[1] == 3);
    CHECK(w->nparts == 2 && strcmp(w->parts[0].role, "data") == 0 && strcmp(w->parts[1].role, "scale") == 0);
    CHECK(w->parts[0].array.dtype == TN_INT4 && w->parts[0].array.shape[0] == 6 && w->parts[0].nbytes == 3);
    CHECK(w->parts[1].array.dtype == TN_UINT8 && w->parts[1].nbytes == 8);
    CHECK(w->nmeta == 1 && strcmp(w->meta[0].key, "note") == 0);
    uint8_t data[3], scale[8];
    CHECK(tn_part_read(f, &w->parts[0], data, 3, NULL) == TN_OK && memcmp(data, "\1\2\3", 3) == 0);
    CHECK(tn_part_read(f, &w->parts[1], scale, 8, NULL) == TN_OK && scale[0] == 65 && scale[7] == 72);
}

static void entries_become_one_tensor_in_any_order(void)
{
    for (int scale_first = 0; scale_first < 2; scale_first++) {
        zt_bytes z = build_compound(scale_first);
        tn_file *f = open_built(&z);
        check_compound(f);
        tn_close(f);
        tn_buf_free(&z.file);
    }
}

/* zTensor -> safetensors -> zTensor: still one tensor, the same bytes. */
static void a_compound_tensor_survives_conversion(void)
{
    static const char *const names[] = { "c.safetensors", "c.zt", "d.safetensors" };
    zt_bytes z = build_compound(false);
    tn_file *f = open_built(&z), *first = f;
    for (size_t i = 0; i < 3; i++) {
        tn_error err = { .text = "" };
        tn_convert_options options = { .size = sizeof options };
        if (tn_convert(f, in_folder(names[i]).text, &options, NULL, &err))
            fail_msg("%s", line_of(&err));
        if (f != first)
            tn_close(f);
        f = open_file(names[i]);
        check_compound(f);
        require_same_tensors(first, f);
    }
    tn_close(f);
    tn_close(first);
    tn_buf_free(&z.file);
}

static void wrong_parts_are_refused(void)
{
    const tn_record two = compound(2), three = compound(3);
    zt_bytes z = zt_begin(256);
    tn_cbor_put_array(&z.file, 1);
    put_entry(&z, "w", 64, 3, &two, NULL);
    expect_refused(&z, "its part \"w.scale\" is not in the file");

    z = zt_begin(256);
    tn_cbor_put_array(&z.file, 2);
    put_entry(&z, "w", 64, 3, &two, NULL);
    put_entry(&z, "w.scale", 128, 8, NULL, "note");
    expect_refused(&z, "has metadata of its own");

    z = zt_begin(256);
    tn_cbor_put_array(&z.file, 3);
    put_entry(&z, "w", 64, 3, &two, NULL);
    put_entry(&z, "w.scale", 128, 8, &two, NULL);
    put_entry(&z, "w.scale.scale", 192, 8, NULL, NULL);
    tn_file *f = NULL;
    zt_end(&z);
    tn_status status = tn_open_memory(z.file.data, z.file.size, NULL, &f, NULL);
    CHECK(status == TN_ERR_CORRUPT || status == TN_OK);     /* parts of parts: refused or flattened, never confused */
    if (f)
        walk_file(f);
    tn_close(f);
    tn_buf_free(&z.file);

    static const char *twice[] = { "data", "scale", "scale" };
    tn_record again = three;
    again.roles = twice;
    z = zt_begin(256);
    tn_cbor_put_array(&z.file, 2);
    put_entry(&z, "w", 64, 3, &again, NULL);
    put_entry(&z, "w.scale", 128, 8, NULL, NULL);
    expect_refused(&z, "in use by another tensor");
}

static void a_known_form_must_fit_its_parts(void)
{
    tn_record dense = compound(1);
    dense.form = "dense";
    zt_bytes z = zt_begin(256);
    tn_cbor_put_array(&z.file, 1);
    put_entry(&z, "w", 64, 3, &dense, NULL);
    expect_refused(&z, "a dense tensor's data must have its type and shape");
}

/* Scales belong to codes; an axis or a range that is none is never used. */
static void scales_must_be_those_of_a_scaled_tensor(void)
{
    static const tn_scaling good = { .axis = -1, .range = { -8, 7 } };
    static const tn_scaling bad[] = {
        { .axis = 2, .range = { -8, 7 } }, { .axis = -1, .range = { 7, -8 } },
        { .axis = -1, .range = { 0, 256 } },
        { .axis = -1, .range = { -1, 7 } }, { .axis = -1, .range = { INT64_MIN, INT64_MAX } },
    };
    tn_record r = compound(1);
    r.form = "dense";
    r.scaling = &good;
    zt_bytes z = zt_begin(256);
    tn_cbor_put_array(&z.file, 1);
    put_entry(&z, "w", 64, 6, &r, NULL);
    expect_refused(&z, "form \"dense\" has no scales");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r = compound(2);
        r.form = "scaled";
        r.scaling = &bad[i];
        z = zt_begin(256);
        tn_cbor_put_array(&z.file, 2);
        put_entry(&z, "w", 64, 6, &r, NULL);
        put_entry(&z, "w.scale", 128, 4, NULL, NULL);
        expect_refused(&z, i == 0 ? "its scaling names no dimension"
                                  : "the range of its codes is not one of their type");
    }
}

/* ---- real types ---- */

static void an_array_must_be_kept_as_tenon_keeps_it(void)
{
    static const int64_t five[] = { 5 }, seven[] = { 7 }, huge[] = { INT64_MAX };
    static const struct { tn_dtype dtype; const int64_t *shape; bool good; } cases[] = {
        { TN_INT4, five, true }, { TN_INT4, six, true }, { TN_INT4, seven, false }, { TN_UINT4, five, true },
        { TN_FLOAT6_E2M3, five, false }, { TN_INT8, six, false }, { TN_FLOAT32, six, false },
        { TN_INT4, huge, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tn_record r = { .has_array = true, .dtype = cases[i].dtype, .rank = 1,
                              .shape = cases[i].shape };
        zt_bytes z = zt_begin(64);
        tn_cbor_put_array(&z.file, 1);
        put_entry(&z, "q", 64, 3, &r, NULL);
        zt_end(&z);
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        tn_status status = tn_open_memory(z.file.data, z.file.size, NULL, &f, &err);
        if ((status == TN_OK) != cases[i].good)
            fail_msg("case %zu: status %d: %s", i, status, line_of(&err));
        if (f)
            walk_file(f);
        tn_close(f);
        tn_buf_free(&z.file);
    }
}

/* ---- notes of ties ---- */

static void a_note_of_a_tie_counts_only_where_it_can_be_true(void)
{
    static const struct { const char *from, *to; uint64_t size; bool good; } cases[] = {
        { "b", "a", 4, true }, { "b", "a", 5, false }, { "b", "nobody", 4, false }, { "b", "b", 4, false },
        { "a", "b", 4, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tn_record note = { .tied = cases[i].to };
        zt_bytes z = zt_begin(256);
        tn_cbor_put_array(&z.file, 2);
        put_entry(&z, "a", 64, 4, strcmp(cases[i].from, "a") == 0 ? &note : NULL, NULL);
        put_entry(&z, "b", 128, cases[i].size, strcmp(cases[i].from, "b") == 0 ? &note : NULL, NULL);
        tn_file *f = open_built(&z);
        const char *tied = tn_file_find(f, cases[i].from)->tied;
        CHECK(cases[i].good ? tied && strcmp(tied, "a") == 0 : tied == NULL);
        tn_close(f);
        tn_buf_free(&z.file);
    }
}

/* Values of one type that are elements in "a", codes in "b": these are of other types, though as many
 * bytes. */
static void codes_are_not_tied_to_values(void)
{
    static const int64_t four[] = { 4 }, eight[] = { 8 };
    static const tn_scaling scaling = { .axis = -1, .datatype = "e2m1fnuz" };
    const tn_record values = { .has_array = true, .dtype = TN_FLOAT8_E4M3FN, .rank = 1, .shape = four };
    const tn_record codes = { .form = "scaled", .tensor_dtype = TN_FLOAT8_E4M3FN, .tensor_rank = 1,
                              .tensor_shape = eight, .roles = roles,
                              .nroles = 1, .scaling = &scaling, .tied = "a" };
    zt_bytes z = zt_begin(256);
    tn_cbor_put_array(&z.file, 2);
    put_entry(&z, "a", 64, 4, &values, NULL);
    put_entry(&z, "b", 128, 4, &codes, NULL);
    tn_file *f = open_built(&z);
    CHECK(tn_file_find(f, "a")->dtype == tn_file_find(f, "b")->dtype && !tn_file_find(f, "b")->tied);
    CHECK(tn_convert(f, in_folder("c.zt").text, NULL, NULL, NULL) == TN_OK);
    tn_close(f);
    tn_buf_free(&z.file);
}

/* The bytes of "b" are not those of "a": a file that says so must not make one of them vanish. */
static void a_note_that_is_a_lie_changes_no_data(void)
{
    const tn_record note = { .tied = "a" };
    zt_bytes z = zt_begin(256);
    tn_cbor_put_array(&z.file, 2);
    put_entry(&z, "a", 64, 4, NULL, NULL);
    put_entry(&z, "b", 128, 4, &note, NULL);
    tn_file *f = open_built(&z);
    tn_error err = { .text = "" };
    if (tn_convert(f, in_folder("t.zt").text, NULL, NULL, &err))
        fail_msg("%s", line_of(&err));
    tn_file *g = open_file("t.zt");
    uint8_t *b = read_tensor(g, tn_file_find(g, "b"));
    assert_memory_equal(b, "\x41\x42\x43\x44", 4);
    free(b);
    tn_close(g);
    tn_close(f);
    tn_buf_free(&z.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_become_one_tensor_in_any_order),
        IN_FOLDER(a_compound_tensor_survives_conversion),
        TEST(wrong_parts_are_refused),
        TEST(a_known_form_must_fit_its_parts),
        TEST(scales_must_be_those_of_a_scaled_tensor),
        TEST(an_array_must_be_kept_as_tenon_keeps_it),
        TEST(a_note_of_a_tie_counts_only_where_it_can_be_true),
        IN_FOLDER(codes_are_not_tied_to_values),
        IN_FOLDER(a_note_that_is_a_lie_changes_no_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
