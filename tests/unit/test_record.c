/* Records: what a flat container cannot say, as CBOR and back. */
#include "support.h"

#include <stdio.h>

#include "base/error.h"
#include "store/record.h"

static const int64_t shape[] = { 2, 0, 300 };
static const char *roles[] = { "data", "scale" };
static const tn_meta some_meta[] = {
    { .key = "k", .text = "v" }, { .key = "", .cbor = (const uint8_t *)"\x82\1\xf6", .cbor_size = 3 },
};

/* A record that says everything. */
static const tn_record full = {
    .has_array = true, .dtype = TN_INT4, .rank = 3, .shape = shape,
    .form = "scaled", .tensor_dtype = TN_FLOAT32, .tensor_rank = 2, .tensor_shape = shape + 1, .roles = roles,
    .nroles = 2,
    .tied = "other", .file_meta = some_meta, .nfile_meta = 2, .meta = some_meta, .nmeta = 1,
};

static const char full_bytes[] =
    "\xa6" "\x65" "dtype" "\x64" "int4" "\x65" "shape" "\x83\x02\x00\x19\x01\x2c"
    "\x66" "tensor" "\xa4" "\x64" "form" "\x66" "scaled" "\x65" "dtype" "\x67"
    "float32" "\x65" "shape" "\x82\x00\x19\x01\x2c"
    "\x65" "parts" "\x82" "\x64" "data" "\x65" "scale"
    "\x64" "tied" "\x65" "other" "\x64" "file" "\xa2\x61k\x61v\x60\x82\1\xf6" "\x64" "meta" "\xa1\x61k\x61v";

static tn_status parse(const void *bytes, size_t n, tn_arena *arena, tn_record *r, tn_error *err)
{
    return tn_record_parse((tn_text){ bytes, n }, 77, arena, r, err);
}

static void a_record_is_one_map(void)
{
    tn_buf out = { 0 };
    tn_record_put(&full, &out);
    CHECK(out.size == sizeof full_bytes - 1);
    assert_memory_equal(out.data, full_bytes, out.size);
    tn_buf_free(&out);
}

static void a_record_comes_back(void)
{
    tn_arena arena = { 0 };
    tn_record r;
    CHECK(parse(full_bytes, sizeof full_bytes - 1, &arena, &r, NULL) == TN_OK);
    CHECK(r.has_array && r.dtype == TN_INT4 && r.rank == 3 && memcmp(r.shape, shape, sizeof shape) == 0);
    CHECK(strcmp(r.form, "scaled") == 0 && r.tensor_dtype == TN_FLOAT32 && r.tensor_rank == 2);
    CHECK(r.tensor_shape[0] == 0 && r.tensor_shape[1] == 300);
    CHECK(r.nroles == 2 && strcmp(r.roles[0], "data") == 0 && strcmp(r.roles[1], "scale") == 0);
    CHECK(strcmp(r.tied, "other") == 0 && r.nfile_meta == 2 && r.nmeta == 1);
    CHECK(strcmp(r.file_meta[0].text, "v") == 0 && r.file_meta[1].cbor_size == 3 &&
          strcmp(r.meta[0].key, "k") == 0);
    tn_arena_free(&arena);
}

/* ---- scaled tensors ---- */

static const char *entries[] = { "w_scale" };
static const tn_scaling typed = { .axis = -1, .datatype = "e2m1fnuz|e8m0_t32", .unpacked = true,
                                  .rotation = { .size = 32, .walsh = true, .random = true, .seed = 7 } };
static const tn_record of_datatype = {
    .form = "scaled", .tensor_dtype = TN_FLOAT32, .tensor_rank = 2, .tensor_shape = shape + 1, .roles = roles,
    .nroles = 2,
    .entries = entries, .scaling = &typed,
};

static const char typed_bytes[] =
    "\xa1" "\x66" "tensor" "\xa8" "\x64" "form" "\x66" "scaled" "\x65" "dtype" "\x67" "float32" "\x65" "shape"
    "\x82\x00\x19\x01\x2c"
    "\x65" "parts" "\x82" "\x64" "data" "\x65" "scale" "\x67" "entries" "\x81" "\x67" "w_scale"
    "\x68" "datatype" "\x71" "e2m1fnuz|e8m0_t32" "\x68" "unpacked" "\xf5" "\x68"
    "rotation" "\x69" "walsh32:7";

static void a_datatype_is_said_by_its_text(void)
{
    tn_buf out = { 0 };
    tn_arena arena = { 0 };
    tn_record r;
    tn_record_put(&of_datatype, &out);
    CHECK(out.size == sizeof typed_bytes - 1);
    assert_memory_equal(out.data, typed_bytes, out.size);
    CHECK(parse(out.data, out.size, &arena, &r, NULL) == TN_OK && r.scaling && r.scaling->unpacked &&
          r.scaling->axis == -1);
    assert_string_equal(r.scaling->datatype, typed.datatype);
    CHECK(r.scaling->rotation.size == 32 && r.scaling->rotation.walsh && r.scaling->rotation.random &&
          r.scaling->rotation.seed == 7);
    CHECK(r.entries && strcmp(r.entries[0], "w_scale") == 0);
    tn_arena_free(&arena);
    tn_buf_free(&out);
}

/* What is plain is not said. */
static void a_plain_datatype_has_one_field(void)
{
    const tn_scaling plain = { .axis = 3, .range = { 1, 2 }, .datatype = "e2m1fnuz|e8m0_t32" };
    tn_record r = of_datatype;
    tn_buf out = { 0 };
    tn_arena arena = { 0 };
    r.scaling = &plain;
    r.entries = NULL;
    tn_record_put(&r, &out);
    CHECK(parse(out.data, out.size, &arena, &r, NULL) == TN_OK && !r.entries && r.scaling &&
          !r.scaling->unpacked);
    CHECK(r.scaling->rotation.size == 0 && r.scaling->axis == -1 && r.scaling->range[0] == 0 &&
          r.scaling->range[1] == 0);
    CHECK(memmem(out.data, out.size, "range", 5) == NULL && memmem(out.data, out.size, "axis", 4) == NULL);
    tn_arena_free(&arena);
    tn_buf_free(&out);
}

/* A type that numbers are stored as is said by its name; one that this build does not know is an error. */
static void what_numbers_are_stored_as_is_said(void)
{
    static const tn_dtype types[] = { TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2 };
    for (int i = 0; i < 2; i++) {
        const tn_scaling stored = { .axis = -1, .datatype = "e2m1fnuz|e8m0_t32", .unpacked = true,
                                    .store = types[i] };
        tn_record r = of_datatype;
        tn_buf out = { 0 };
        tn_arena arena = { 0 };
        tn_error err = { .text = "" };
        r.scaling = &stored;
        tn_record_put(&r, &out);
        CHECK(parse(out.data, out.size, &arena, &r, NULL) == TN_OK && r.scaling &&
              r.scaling->store == types[i] && r.scaling->unpacked);
        uint8_t *name = memmem(out.data, out.size, "float8_e", 8);
        assert_non_null(name);
        name[7] = 'x';
        CHECK(parse(out.data, out.size, &arena, &r, &err) == TN_ERR_CORRUPT);
        CHECK(strstr(line_of(&err), "expected float8_e4m3fn or float8_e5m2 to store numbers as but found "
                     "\"float8_x"));
        tn_arena_free(&arena);
        tn_buf_free(&out);
    }
}

/* The datatype that is kept is the one by which it is read: another for each way to store it. */
static void a_kept_datatype_is_that_of_its_store(void)
{
    tn_arena arena = { 0 };
    tn_kept_datatype last = { 0 };
    static const struct { const char *datatype; tn_dtype store; const char *read_as; } cases[] = {
        { "mxfp4", TN_UNKNOWN, "e2m1fnuz|e8m0_t32" }, { "mxfp4", TN_FLOAT8_E4M3FN, "e4m3fn|e8m0_t32" },
        { "mxfp4", TN_FLOAT8_E5M2, "e5m2|e8m0_t32" },  { "mxfp4", TN_UNKNOWN, "e2m1fnuz|e8m0_t32" },
            { "mxint8", TN_FLOAT8_E5M2, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tn_scaling given = { .axis = -1, .datatype = cases[i].datatype, .unpacked = true,
                                   .store = cases[i].store };
        const tn_scaling *kept = tn_scaling_keep(&arena, &given, &last);
        CHECK(kept && kept->store == cases[i].store);
        const tn_datatype *d = tn_scaling_datatype(kept, &last);
        CHECK(!d == !cases[i].read_as && (!d || strcmp(tn_datatype_text(d), cases[i].read_as) == 0));
    }
    tn_datatype_free(last.datatype);
    tn_arena_free(&arena);
}

static void a_kept_scaling_has_the_usual_text(void)
{
    static const char *const spelled[][2] = {
        { "MXFP4", "e2m1fnuz|e8m0_t32" }, { "t32_e8m0", "t32_e8m0" },
        { "e2m1fnuz|t32_e8m0", "e2m1fnuz|e8m0_t32" }, { "", "" },
        { "cb20[0.50]_e2m1fnuz|e8m0", "cb20[0.5]_e2m1fnuz|e8m0" },
    };
    tn_arena arena = { 0 };
    tn_kept_datatype last = { 0 };
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        const tn_scaling given = { .axis = -1, .datatype = spelled[i][0], .unpacked = true };
        const tn_scaling *kept = tn_scaling_keep(&arena, &given, &last);
        CHECK(kept && kept->unpacked);
        assert_string_equal(kept->datatype, spelled[i][1]);
    }
    tn_datatype_free(last.datatype);
    tn_arena_free(&arena);
}

static void a_datatype_is_read_again_only_if_it_is_another(void)
{
    tn_arena arena = { 0 };
    tn_kept_datatype last = { 0 };
    const tn_scaling fp4 = { .axis = -1, .datatype = "e2m1fnuz|e8m0_t32" },
    fp8 = { .axis = -1, .datatype = "e4m3fn|e8m0_t32" };
    const tn_scaling unreadable = { .axis = -1, .datatype = "e9m3" }, affine = { .axis = 1 };
    const tn_scaling *first = tn_scaling_keep(&arena, &fp4, &last);
    const tn_datatype *read = tn_scaling_datatype(first, &last);
    assert_string_equal(tn_datatype_text(read), fp4.datatype);
    const tn_scaling *plain = tn_scaling_keep(&arena, &affine, &last),
                     *same = tn_scaling_keep(&arena, &fp4, &last);
    CHECK(same != first && same->datatype == first->datatype && tn_scaling_datatype(same, &last) == read);
    CHECK(!plain->datatype && !tn_scaling_datatype(plain, &last) && !tn_scaling_datatype(NULL, &last));
    const tn_scaling *other = tn_scaling_keep(&arena, &fp8, &last);
    CHECK(!tn_scaling_datatype(first, &last));
    assert_string_equal(tn_datatype_text(tn_scaling_datatype(other, &last)), fp8.datatype);
    const tn_scaling *bad = tn_scaling_keep(&arena, &unreadable, &last),
                     *bad_again = tn_scaling_keep(&arena, &unreadable, &last);
    CHECK(!tn_scaling_datatype(other, &last) && !tn_scaling_datatype(bad, &last) &&
          !tn_scaling_datatype(bad_again, &last));
    assert_string_equal(bad_again->datatype, "e9m3");
    assert_string_equal(first->datatype, fp4.datatype);
    tn_datatype_free(last.datatype);
    tn_arena_free(&arena);
}

static void a_record_with_nothing_to_say_is_empty(void)
{
    tn_arena arena = { 0 };
    tn_record r = { 0 };
    CHECK(tn_record_empty(&r) && !tn_record_empty(&full));
    CHECK(parse("\xa0", 1, &arena, &r, NULL) == TN_OK && tn_record_empty(&r));
    CHECK(parse("\xbf\xff", 2, &arena, &r, NULL) == TN_OK && tn_record_empty(&r));
    tn_arena_free(&arena);
}

static void unknown_keys_are_ignored(void)
{
    static const char bytes[] = "\xa2" "\x66" "future" "\x82\1\xa1\1\2" "\x64" "tied" "\x61" "a";
    tn_arena arena = { 0 };
    tn_record r;
    CHECK(parse(bytes, sizeof bytes - 1, &arena, &r, NULL) == TN_OK);
    assert_string_equal(r.tied, "a");
    tn_arena_free(&arena);
}

static void a_type_of_a_later_version_is_told_by_its_name(void)
{
    static const char bytes[] = "\xa2" "\x65" "dtype" "\x65" "int99" "\x65" "shape" "\x80";
    tn_arena arena = { 0 };
    tn_record r;
    CHECK(parse(bytes, sizeof bytes - 1, &arena, &r, NULL) == TN_OK);
    CHECK(r.has_array && r.dtype == TN_UNKNOWN);
    assert_string_equal(r.type, "int99");
    tn_arena_free(&arena);
}

static void wrong_records_are_refused_at_their_entry(void)
{
#define TENSOR "\x66" "tensor" "\xa5" "\x64" "form" "\x61" "f" "\x65" "dtype" "\x64" "int4" \
    "\x65" "shape" "\x80" "\x65" "parts" "\x81\x61" "d"
#define CASE(status, bytes, text) { status, bytes, sizeof bytes - 1, text }
    static const struct { tn_status status; const char *bytes; size_t n; const char *text; } cases[] = {
        CASE(TN_ERR_CORRUPT, "\x80", "expected a map"), CASE(TN_ERR_CORRUPT, "\xf6", "expected a map"),
        CASE(TN_ERR_TRUNCATED, "\xa1", ""), CASE(TN_ERR_CORRUPT, "\xa1\1\2", "text key"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x65" "dtype" "\x64" "int4", "both dtype and shape or neither"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x65" "shape" "\x81\1", "both dtype and shape or neither"),
        CASE(TN_ERR_CORRUPT, "\xa2" "\x65" "dtype" "\1" "\x65" "shape" "\x80", "expected text"),
        CASE(TN_ERR_CORRUPT, "\xa2" "\x65" "dtype" "\x64" "int4" "\x65" "shape" "\x81\x20", "not negative"),
        CASE(TN_ERR_LIMIT, "\xa2" "\x65" "dtype" "\x64" "int4" "\x65" "shape" "\x81\x1b\x80\0\0\0\0\0\0\0",
             "below 2^63"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x64" "tied" "\x63" "a\0b", "without NUL"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x66" "tensor" "\xa0", "expected form, dtype, shape and parts"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x66" "tensor" "\x80", "expected a map"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x66" "tensor" "\xa4" "\x64" "form" "\x61" "f" "\x65" "dtype"
             "\x64" "int4" "\x65" "shape"
             "\x80" "\x65" "parts" "\x80", "expected form, dtype, shape and parts"),
        CASE(TN_ERR_LIMIT, "\xa1" "\x66" "tensor" "\xa1" "\x65"
             "parts" "\x91" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
             "at most 16 parts"),
        CASE(TN_ERR_CORRUPT, "\xa1" TENSOR "\x67" "entries" "\x81\x61" "e",
             "expected 0 entries, one for each part but the first, but found 1"),
        CASE(TN_ERR_CORRUPT, "\xa1" TENSOR "\x67" "entries" "\x61" "e", "expected an array"),
        CASE(TN_ERR_CORRUPT, "\xa1" TENSOR "\x68" "datatype" "\x05", "expected text"),
        CASE(TN_ERR_CORRUPT, "\xa1" TENSOR "\x68" "datatype" "\x63" "a\0b", "without NUL"),
        CASE(TN_ERR_CORRUPT, "\xa1" TENSOR "\x68" "unpacked" "\x01", "expected"),
        CASE(TN_ERR_CORRUPT, "\xa1" TENSOR "\x68" "rotation" "\x66" "walsh5",
             "expected a size of 4, 8, 16, 32, 64 or 128"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x64" "file" "\x80", "expected a map"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x64" "file" "\xa2" "\x61" "k" "\1" "\x61" "k" "\2",
             "\"k\" is there twice"),
        CASE(TN_ERR_CORRUPT, "\xa1" "\x64" "meta" "\xa1" "\x62" "k\0" "\1", "without NUL"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_arena arena = { 0 };
        tn_error err = { .text = "" };
        tn_record r;
        uint8_t *exact = exact_copy(cases[i].bytes, cases[i].n);
        tn_status status = parse(exact, cases[i].n, &arena, &r, &err);
        if (status != cases[i].status || !strstr(line_of(&err), cases[i].text))
            fail_msg("case %zu: status %d: %s", i, status, line_of(&err));
        CHECK(err.offset == 77);
        free(exact);
        tn_arena_free(&arena);
    }
}

static void cut_and_flip(const char *bytes, size_t n)
{
    for (size_t cut = 0; cut < n; cut++) {
        tn_arena arena = { 0 };
        tn_error err;
        tn_record r;
        uint8_t *copy = exact_copy(bytes, cut);
        CHECK(parse(copy, cut, &arena, &r, &err) == TN_ERR_TRUNCATED);
        free(copy);
        tn_arena_free(&arena);
    }
    for (size_t i = 0; i < n * 8; i++) {
        tn_arena arena = { 0 };
        tn_error err = { .text = "" };
        tn_record r;
        uint8_t *copy = exact_copy(bytes, n);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        tn_status status = parse(copy, n, &arena, &r, &err);
        CHECK(status == TN_OK || (err.status == status && err.text[0]));
        if (status == TN_OK) {          /* what was read can be written */
            tn_buf out = { 0 };
            tn_record_put(&r, &out);
            CHECK(out.size > 0 && !out.bad);
            tn_buf_free(&out);
        }
        free(copy);
        tn_arena_free(&arena);
    }
}

static void every_truncation_and_flip_is_handled(void)
{
    cut_and_flip(full_bytes, sizeof full_bytes - 1);
    cut_and_flip(typed_bytes, sizeof typed_bytes - 1);
}

/* ---- carriers ---- */

static void check_carrier(const tn_format *format, tn_dtype dtype, uint32_t rank, const int64_t *dims)
{
    tn_carrier c;
    CHECK(tn_carrier_for(format, dtype, rank, dims, &c, NULL) == TN_OK);
    tn_array real = { .dtype = dtype, .rank = rank, .shape = dims };
    tn_array carried = { .dtype = c.dtype, .rank = c.rank, .shape = c.shape };
    uint64_t a, b;
    CHECK(tn_array_nbytes(&real, &a) == TN_OK && tn_array_nbytes(&carried, &b) == TN_OK && a == b);
    const tn_dtype_info *type = tn_dtype_get(c.dtype);
    CHECK(format->type_name(type) != NULL);
    CHECK(!format->whole_bytes || type->bits % 8 == 0 || c.same);
    CHECK(c.same == (c.dtype == dtype && c.rank == rank &&
                     (rank == 0 || memcmp(c.shape, dims, rank * sizeof *dims) == 0)));
    CHECK(type->swap_bytes == tn_dtype_get(dtype)->swap_bytes || c.dtype == TN_UINT8);
}

/* For every type, and counts around whole bytes, the carrier has a name and the same bytes. */
static void every_type_has_a_carrier_of_the_same_bytes(void)
{
    static const tn_format *const formats[] = { &tn_format_ztensor, &tn_format_safetensors };
    int64_t ones[TN_MAX_RANK];
    for (int i = 0; i < TN_MAX_RANK; i++)
        ones[i] = 1;
    for (size_t f = 0; f < 2; f++) {
        for (tn_dtype dtype = 1; dtype < TN_DTYPE_COUNT; dtype++) {
            check_carrier(formats[f], dtype, 0, NULL);
            for (int64_t n = 0; n < 20; n++) {
                const int64_t dims[] = { 3, n };
                check_carrier(formats[f], dtype, 2, dims);
                check_carrier(formats[f], dtype, 1, dims + 1);
            }
            for (uint32_t rank = 60; rank <= TN_MAX_RANK; rank++)
                check_carrier(formats[f], dtype, rank, ones);
        }
    }
}

static void a_type_or_shape_without_size_has_no_carrier(void)
{
    static const int64_t huge[] = { INT64_MAX, 4 }, negative[] = { -1 };
    tn_carrier c;
    tn_error err;
    CHECK(tn_carrier_for(&tn_format_ztensor, TN_UNKNOWN, 0, NULL, &c, &err) == TN_ERR_LIMIT);
    CHECK(tn_carrier_for(&tn_format_ztensor, TN_INT8, 2, huge, &c, &err) == TN_ERR_LIMIT);
    CHECK(tn_carrier_for(&tn_format_ztensor, TN_INT8, 1, negative, &c, &err) == TN_ERR_LIMIT);
}

/* ---- metadata ---- */

static void metadata_is_shown_as_json(void)
{
#define META(bytes) { .key = "k", .cbor = (const uint8_t *)bytes, .cbor_size = sizeof bytes - 1 }
    static const struct { tn_meta meta; const char *json; } cases[] = {
        { { .key = "k", .text = "a\"b\n" }, "\"a\\\"b\\n\"" }, { META("\x00"), "0" }, { META("\x20"), "-1" },
        { META("\x82\x01\xf6"), "[1,null]" }, { META("\xa1\x61" "a\xf5"), "{\"a\":true}" },
        { META("\x41\x00"), "{\"$cbor\":\"4100\"}" }, { META("\xf7"), "{\"$cbor\":\"f7\"}" },
        { META("\xc0\x61" "t"), "{\"$cbor\":\"c06174\"}" }, { META("\x18\x05"), "{\"$cbor\":\"1805\"}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[64];
        size_t n = tn_meta_json(&cases[i].meta, json, sizeof json);
        assert_string_equal(json, cases[i].json);
        CHECK(n == strlen(json) && tn_meta_json(&cases[i].meta, NULL, 0) == n);
        CHECK(tn_meta_json(&cases[i].meta, json, 1) == n && json[0] == '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_is_one_map),
        TEST(a_record_comes_back),
        TEST(a_datatype_is_said_by_its_text),
        TEST(a_plain_datatype_has_one_field),
        TEST(what_numbers_are_stored_as_is_said),
        TEST(a_kept_datatype_is_that_of_its_store),
        TEST(a_kept_scaling_has_the_usual_text),
        TEST(a_datatype_is_read_again_only_if_it_is_another),
        TEST(a_record_with_nothing_to_say_is_empty),
        TEST(unknown_keys_are_ignored),
        TEST(a_type_of_a_later_version_is_told_by_its_name),
        TEST(wrong_records_are_refused_at_their_entry),
        TEST(every_truncation_and_flip_is_handled),
        TEST(every_type_has_a_carrier_of_the_same_bytes),
        TEST(a_type_or_shape_without_size_has_no_carrier),
        TEST(metadata_is_shown_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
