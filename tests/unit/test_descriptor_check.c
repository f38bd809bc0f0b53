/* What tn_descriptor_check() finds, and the level a descriptor asks for.
 *
 * tests/golden/descriptor has a document for each rule.  A bad one has
 * NAME.expect: the schema's verdict (for tests/interop), then every finding; a
 * good one may have remarks there.  Here is what no document can say. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "base/vector.h"
#include "files.h"
#include "random.h"

#include <tenon/descriptor.h>

#define GOLDEN TEST_GOLDEN "/descriptor/"

/* ---- findings as text ---- */

typedef struct listing {
    tn_buf text;
    char   prefix[24];
} listing;

static void put_finding(void *context, const tn_wia_finding *f)
{
    listing *list = context;
    tn_buf_puts(&list->text, f->remark ? "remark: " : "");
    tn_buf_puts(&list->text, list->prefix);
    tn_buf_puts(&list->text, f->path);
    tn_buf_puts(&list->text, ": ");
    tn_buf_puts(&list->text, f->text);
    tn_buf_putc(&list->text, '\n');
}

static size_t list_findings(const tn_descriptor *d, bool strict, listing *list)
{
    const tn_check_options options = { .size = sizeof options, .strict = strict, .report = put_finding,
                                       .context = list };
    size_t wrong = 99;
    CHECK(tn_descriptor_check(d, &options, &wrong, NULL) == TN_OK);
    return wrong;
}

static bool says(const listing *list, const char *words)
{
    return list->text.size && memmem(list->text.data, list->text.size, words, strlen(words)) != NULL;
}

static void expect_text(const tn_buf *text, const char *expected)
{
    char *found = calloc(text->size + 1, 1);
    CHECK(!text->bad && found);
    if (text->size)
        memcpy(found, text->data, text->size);
    assert_string_equal(found, expected);
    free(found);
}

static void expect_findings(const tn_descriptor *d, bool strict, const char *expected)
{
    listing list = { .prefix = "" };
    list_findings(d, strict, &list);
    expect_text(&list.text, expected);
    tn_buf_free(&list.text);
}

/* ---- golden documents ---- */

static size_t documents;

/* The findings of a document, or why it cannot be parsed; returns whether it is refused. */
static bool judge(const uint8_t *bytes, size_t n, tn_buf *text)
{
    tn_descriptors *set;
    tn_error err = { .text = "" };
    listing list = { .prefix = "" };
    size_t wrong = 0;
    if (tn_descriptors_parse((const char *)bytes, n, &set, &err)) {
        tn_buf_printf(text, "byte %llu: ", (unsigned long long)err.offset);
        tn_buf_puts(text, said_of(&err));
        tn_buf_putc(text, '\n');
        return true;
    }
    for (size_t i = 0; i < tn_descriptors_count(set); i++) {
        if (tn_descriptors_count(set) > 1)
            snprintf(list.prefix, sizeof list.prefix, "[%zu].", i);
        wrong += list_findings(tn_descriptors_at(set, i), false, &list);
    }
    tn_descriptors_free(set);
    *text = list.text;
    return wrong > 0;
}

static void check_document(const char *folder, const char *name, const uint8_t *bytes, size_t n, bool bad)
{
    char path[PATH_MAX];
    const char *dot = strrchr(name, '.');
    if (!dot || strcmp(dot, ".json") != 0)
        return;
    documents++;
    snprintf(path, sizeof path, "%s%.*s.expect", folder, (int)(dot - name), name);
    size_t size = 0;
    FILE *there = bad ? NULL : fopen(path, "rb");
    uint8_t *expected = bad || there ? load_file(path, &size) : exact_copy("", 0);
    if (there)
        fclose(there);
    size_t skip = bad ? (size_t)((uint8_t *)memchr(expected, '\n', size) + 1 - expected) : 0;
    tn_buf text = { 0 };
    if (judge(bytes, n, &text) != bad || text.size != size - skip ||
        (text.size && memcmp(text.data, expected + skip, text.size) != 0))
        fail_msg("%s gives\n%.*s", name, (int)text.size, (const char *)text.data);
    tn_buf_free(&text);
    free(expected);
}

static void check_good(const char *name, const uint8_t *bytes, size_t n)
{
    check_document(GOLDEN "good/", name, bytes, n, false);
}

static void check_bad(const char *name, const uint8_t *bytes, size_t n)
{
    check_document(GOLDEN "bad/", name, bytes, n, true);
}

static void good_documents_have_remarks_at_most(void)
{
    documents = 0;
    each_file(GOLDEN "good", check_good);
    CHECK(documents >= 40);
}

static void bad_documents_have_exactly_the_findings_expected(void)
{
    documents = 0;
    each_file(GOLDEN "bad", check_bad);
    CHECK(documents >= 100);
}

/* ---- by hand ---- */

static const tn_wia_extent four_by_six[] = { { .value = 4 }, { .value = 6 } };

static tn_descriptor matrix(void)
{
    return (tn_descriptor){ .version = TN_WIA_VERSION, .name = "w", .rank = 2, .dimensions = four_by_six,
                            .dtype = TN_FLOAT32, .base_type = "FLOAT32" };
}

static void nothing_is_found_in_a_plain_matrix(void)
{
    tn_descriptor d = matrix();
    size_t wrong = 99;
    expect_findings(&d, true, "");
    CHECK(tn_descriptor_check(&d, NULL, &wrong, NULL) == TN_OK && wrong == 0);
}

static void findings_are_counted_without_a_report(void)
{
    tn_descriptor d = matrix();
    size_t wrong = 99;
    d.version = d.name = NULL;
    CHECK(tn_descriptor_check(&d, NULL, &wrong, NULL) == TN_OK && wrong == 2);
}

static void strict_refuses_what_is_not_in_the_specification(void)
{
    tn_descriptor d = matrix();
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *type = tn_dtype_get((tn_dtype)i);
        char name[64];
        snprintf(name, sizeof name, "%s%s", type->wia ? "" : "tenon:", type->wia ? type->wia : type->name);
        d.dtype = type->dtype;
        d.base_type = name;
        listing list = { .prefix = "" };
        CHECK(list_findings(&d, true, &list) == (type->wia ? 0 : 1));
        CHECK(list_findings(&d, false, &list) == 0);
        tn_buf_free(&list.text);
    }
    d.dtype = TN_FLOAT32;
    d.base_type = "tenon:float32";      /* a type of the 17 under another name */
    expect_findings(
        &d, true,
        "dtype.base_type: expected one of the specification's 17 types but found \"tenon:float32\"\n");
}

static void strict_refuses_handles_and_modes_of_tenon(void)
{
    static const int64_t physical[] = { 4, 8 };
    tn_descriptor d = matrix();
    d.buffer_handle = (tn_buffer_handle){ .type = TN_HANDLE_MEMFD, .handle = 3, .size_bytes = 96 };
    expect_findings(&d, false, "");
    expect_findings(
        &d, true,
        "buffer_handle.type: expected dma_buf_fd, cuda_ipc or metal_shared, as in the specification, "
        "but found \"memfd\"\n");
    d.buffer_handle.type = TN_HANDLE_DMA_BUF;
    expect_findings(&d, true, "");
    d = matrix();
    d.physical_shape = physical;
    d.has_padding = true;
    d.padding = (tn_wia_padding){ .mode = "value_fill", .fill = 1.5 };
    expect_findings(&d, false, "");
    expect_findings(&d, true,
                    "padding.mode: expected the specification's zero_fill but found \"value_fill\"\n");
    d.padding = (tn_wia_padding){ .mode = "zero_fill" };
    expect_findings(&d, true, "");
}

static size_t wrong_fills(tn_dtype dtype, const char *mode, double fill)
{
    static const int64_t physical[] = { 4, 8 };
    tn_descriptor d = matrix();
    size_t wrong = 99;
    d.dtype = dtype;
    d.base_type = tn_dtype_get(dtype)->wia;
    d.physical_shape = physical;
    d.has_padding = true;
    d.padding = (tn_wia_padding){ .mode = mode, .fill = fill };
    CHECK(tn_descriptor_check(&d, NULL, &wrong, NULL) == TN_OK);
    return wrong;
}

static void a_fill_of_integers_is_one_of_their_codes(void)
{
    static const struct { tn_dtype dtype; double low, beyond; } types[] = {
        { TN_INT4, -8, 8 },                 { TN_UINT4, 0, 16 },
        { TN_INT8, -128, 128 },             { TN_UINT8, 0, 256 },
        { TN_INT32, -0x1p31, 0x1p31 },      { TN_UINT32, 0, 0x1p32 },
        { TN_INT64, -0x1p63, 0x1p63 },      { TN_UINT64, 0, 0x1p64 },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tn_dtype dtype = types[i].dtype;
        CHECK(wrong_fills(dtype, "value_fill", types[i].low) == 0);
        CHECK(wrong_fills(dtype, "value_fill", nextafter(types[i].low, -INFINITY)) == 1);
        CHECK(wrong_fills(dtype, "value_fill", floor(nextafter(types[i].beyond, 0))) == 0);
        CHECK(wrong_fills(dtype, "value_fill", types[i].beyond) == 1);
        CHECK(wrong_fills(dtype, "value_fill", 0.5) == 1);
        CHECK(wrong_fills(dtype, "value_fill", NAN) == 1);
    }
    CHECK(wrong_fills(TN_FLOAT32, "value_fill", NAN) == 0);
}

static void a_fill_of_zeros_is_zero(void)
{
    CHECK(wrong_fills(TN_FLOAT32, "zero_fill", 0) == 0 && wrong_fills(TN_FLOAT32, "zero_fill", -0.0) == 0);
    CHECK(wrong_fills(TN_FLOAT32, "zero_fill", 1) == 1 && wrong_fills(TN_UINT8, "zero_fill", 1) == 1);
    CHECK(wrong_fills(TN_FLOAT32, "zero_fill", NAN) == 1);
}

static void a_uuid_has_36_characters_of_the_right_kind(void)
{
    static const struct { const char *text; size_t wrong; } cases[] = {
        { "6ba7b810-9dad-51d1-80b4-00c04fd430c8", 0 },  { "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", 0 },
        { "00000000-0000-0000-0000-000000000000", 0 },  { "6ba7b810-9dad-51d1-80b4-00c04fd430cg", 1 },
        { "6ba7b810-9dad-51d1-80b4-00c04fd430c", 1 },   { "6ba7b810-9dad-51d1-80b4-00c04fd430c80", 1 },
        { "6ba7b8109dad-51d1-80b4-00c04fd430c8", 1 },   { "", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_descriptor d = matrix();
        size_t wrong = 99;
        d.tensor_id = (char *)exact_copy(cases[i].text, strlen(cases[i].text) + 1);
        CHECK(tn_descriptor_check(&d, NULL, &wrong, NULL) == TN_OK && wrong == cases[i].wrong);
        free((void *)d.tensor_id);
    }
}

static void a_tail_up_to_the_alignment_is_not_remarked(void)
{
    tn_descriptor d = matrix();
    d.has_memory = d.has_total = true;
    d.alignment = 256;
    for (d.total_bytes = 96; d.total_bytes <= 256; d.total_bytes++)
        expect_findings(&d, false, "");
    expect_findings(&d, false,
                    "remark: memory.total_bytes: expected 96, where the last element ends, but found 257\n");
    d.offset_bytes = 256;       /* a part of a buffer: the rest is somebody else's */
    d.total_bytes = 4096;
    expect_findings(&d, false, "");
}

static void too_many_dimensions_are_one_finding(void)
{
    tn_descriptor d = matrix();
    d.rank = TN_MAX_RANK + 1;
    expect_findings(&d, false, "shape.dimensions: expected at most 64 dimensions but found 65\n");
}

static void a_negative_extent_is_found(void)
{
    static const tn_wia_extent extents[] = { { .value = -4 }, { .symbol = "1x" } };
    tn_descriptor d = matrix();
    d.dimensions = extents;
    d.symbolic = true;
    expect_findings(&d, false,
                    "shape.dimensions[0]: expected an extent not below 0 but found -4\n"
                    "shape.dimensions[1]: expected a symbol of letters, digits and _ but found \"1x\"\n");
}

/* Nothing wraps, whatever the numbers are. */
static void the_largest_numbers_do_not_overflow(void)
{
    static const int64_t numbers[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
    enum { N = sizeof numbers / sizeof *numbers };
    tn_wia_extent extents[TN_MAX_RANK];
    tn_wia_product strides[TN_MAX_RANK];
    for (size_t k = 0; k < N * N * N; k++) {
        tn_descriptor d = matrix();
        for (uint32_t i = 0; i < TN_MAX_RANK; i++) {
            extents[i] = (tn_wia_extent){ .value = numbers[k % N] };
            strides[i] = (tn_wia_product){ .factor = numbers[k / N % N] };
        }
        d.rank = TN_MAX_RANK;
        d.dimensions = extents;
        d.strides = k % 2 ? strides : NULL;
        d.dtype = TN_COMPLEX128;
        d.has_memory = d.has_total = d.has_properties = true;
        d.offset_bytes = d.total_bytes = (uint64_t)numbers[k / N / N];
        d.is_contiguous = k % 3 == 0;
        listing list = { .prefix = "" };
        list_findings(&d, false, &list);
        CHECK(!list.text.bad);
        tn_buf_free(&list.text);
    }
}

static void the_last_byte_of_64_bits_is_inside(void)
{
    static const tn_wia_extent one[] = { { .value = 1 } }, two[] = { { .value = 2 } };
    tn_descriptor d = matrix();
    d.rank = 1;
    d.dtype = TN_UINT8;
    d.base_type = "UINT8";
    d.has_memory = d.has_total = true;
    d.offset_bytes = UINT64_MAX - 1;
    d.total_bytes = UINT64_MAX;
    d.dimensions = one;
    expect_findings(&d, false, "");
    d.dimensions = two;
    expect_findings(&d, false,
                    "memory.total_bytes: expected at least 18446744073709551616, where the last element "
                    "ends, but found 18446744073709551615\n");
}

static void what_does_not_fit_is_not_shown_as_a_number(void)
{
    static const tn_wia_extent large[] = { { .value = INT64_MAX }, { .value = INT64_MAX },
                                       { .value = INT64_MAX } };
    static const tn_wia_product crossed[] = { { .factor = INT64_MAX },
                                              { .factor = INT64_MAX },
                                              { .factor = 1 } };
    static const tn_wia_product backwards[] = { { .factor = INT64_MIN }, { .factor = 1 }, { .factor = 1 } };
    tn_descriptor d = matrix();
    d.rank = 3;
    d.layout = "XYZ";
    d.dimensions = large;
    d.has_memory = d.has_total = true;
    d.total_bytes = 7;
    expect_findings(
        &d, false,
        "memory.total_bytes: expected more than 2^64 bytes, where the last element ends, but found 7\n");
    d.buffer_handle = (tn_buffer_handle){ .type = TN_HANDLE_DMA_BUF, .handle = 3, .size_bytes = 96 };
    d.has_total = false;
    expect_findings(&d, false,
                    "shape.dimensions: expected a tensor of less than 2^64 bytes but found one of more\n");
    d.strides = crossed;
    expect_findings(&d, false,
                    "remark: memory.strides[1]: elements may overlap: stride 9223372036854775807, "
                    "but dimensions of smaller stride span more than 2^64 elements\n"
                    "shape.dimensions: expected a tensor of less than 2^64 bytes but found one of more\n");
    d.strides = backwards;
    listing list = { .prefix = "" };
    list_findings(&d, false, &list);
    CHECK(says(&list, "but the first is at byte less than -2^64\n"));
    tn_buf_free(&list.text);
}

static void elements_that_may_lie_on_each_other_are_a_remark(void)
{
    static const tn_wia_product crossed[] = { { .factor = 3 }, { .factor = 1 } },
    apart[] = { { .factor = 1 }, { .factor = 4 } };
    tn_descriptor d = matrix();
    d.strides = crossed;
    expect_findings(&d, false, "remark: memory.strides[0]: elements may overlap: stride 3, "
                               "but dimensions of smaller stride span 6 elements\n");
    d.strides = apart;
    expect_findings(&d, false, "");
}

/* ---- against counting every element ---- */

/* Where elements lie, found by going through all indices. */
typedef struct counted {
    int64_t low, high;          /* in elements, relative to index 0; high is after the last */
    bool    any, overlap, in_order;
} counted;

enum { REACH = 4000 };

static counted count_elements(uint32_t rank, const tn_wia_extent *extents, const tn_wia_product *strides)
{
    counted c = { .in_order = true };
    int64_t total = 1;
    static uint8_t seen[2 * REACH];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < rank; i++)
        total *= extents[i].value;
    for (int64_t n = 0; n < total; n++) {
        int64_t place = 0, rest = n;
        for (uint32_t i = rank; i-- > 0; rest /= extents[i].value)
            place += rest % extents[i].value * strides[i].factor;
        c.low = !c.any || place < c.low ? place : c.low;
        c.high = !c.any || place + 1 > c.high ? place + 1 : c.high;
        c.any = true;
        c.overlap |= seen[place + REACH]++ != 0;
        c.in_order &= place == n;
    }
    return c;
}

static int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)below((uint64_t)(high - low + 1));
}

static void compare_with_counting(void)
{
    static const tn_dtype types[] = { TN_INT4, TN_UINT8, TN_FLOAT16, TN_FLOAT6_E2M3, TN_FLOAT64 };
    tn_wia_extent extents[3];
    tn_wia_product strides[3];
    tn_descriptor d = matrix();
    d.rank = (uint32_t)pick(0, 3);
    d.dimensions = extents;
    d.strides = strides;
    int64_t dense = 1;
    for (uint32_t i = d.rank; i-- > 0; dense *= extents[i].value) {
        extents[i] = (tn_wia_extent){ .value = pick(0, 4) };
        strides[i] = (tn_wia_product){ .factor = pick(0, 3) ? dense : pick(-9, 20) };
    }
    const tn_dtype_info *type = tn_dtype_get(types[pick(0, 4)]);
    unsigned unit = type->bits < 8 ? 1 : type->bits / 8u;
    d.dtype = type->dtype;
    d.base_type = NULL;
    d.has_memory = d.has_total = d.has_properties = true;
    d.is_contiguous = pick(0, 1);
    d.offset_bytes = unit * (uint64_t)pick(0, 9);
    d.total_bytes = (uint64_t)pick(0, 300);
    counted c = count_elements(d.rank, extents, strides);
    int64_t begin = (int64_t)d.offset_bytes * 8 + c.low * type->bits,
            end = (int64_t)d.offset_bytes * 8 + c.high * type->bits;
    uint64_t most = 0;
    listing list = { .prefix = "" };
    list_findings(&d, false, &list);
    CHECK(says(&list, "memory.total_bytes: expected at least") == (end > (int64_t)d.total_bytes * 8));
    CHECK(says(&list, "memory.strides: expected every element") == (begin < 0));
    CHECK(tn_descriptor_max_bytes(&d, &most, NULL) == TN_OK && (int64_t)most == (end + 7) / 8);
    if (d.is_contiguous)
        CHECK(says(&list, "memory.strides[") == !c.in_order);
    if (!d.is_contiguous && c.overlap)
        CHECK(says(&list, "overlap"));
    CHECK(!list.text.bad);
    tn_buf_free(&list.text);
}

static void the_elements_of_random_strides_lie_where_counting_finds_them(void)
{
    for (int i = 0; i < 30000; i++)
        compare_with_counting();
}

static void a_scale_that_is_no_number_is_found(void)
{
    static const double scales[] = { 1, INFINITY, -1, 0 };
    tn_descriptor d = matrix();
    d.dtype = TN_INT8;
    d.base_type = "INT8";
    d.quantization = (tn_wia_quantization){ .scheme = TN_QUANT_PER_CHANNEL_SYMMETRIC, .scales = scales,
                                        .nscales = 4, .has_axis = true };
    expect_findings(&d, false,
                    "dtype.quantization.scales[1]: expected a finite number above 0 but found inf\n"
                    "dtype.quantization.scales[2]: expected a finite number above 0 but found -1\n"
                    "dtype.quantization.scales[3]: expected a finite number above 0 but found 0\n");
}

static void zero_points_reach_as_far_as_the_type(void)
{
    static const double one = 1;
    static const struct { tn_dtype dtype; int64_t low, high; } types[] = {
        { TN_INT4, -8, 7 }, { TN_UINT4, 0, 15 }, { TN_INT8, -128, 127 }, { TN_UINT8, 0, 255 },
        { TN_INT16, -32768, 32767 },
        { TN_UINT32, 0, UINT32_MAX }, { TN_INT64, INT64_MIN, INT64_MAX }, { TN_UINT64, 0, INT64_MAX },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int64_t zero = types[i].low;
        tn_descriptor d = matrix();
        listing list = { .prefix = "" };
        d.dtype = types[i].dtype;
        d.base_type = tn_dtype_get(d.dtype)->wia;
        d.quantization = (tn_wia_quantization){ .scheme = TN_QUANT_PER_TENSOR_ASYMMETRIC, .scales = &one,
                                            .nscales = 1,
                                            .zero_points = &zero, .nzero_points = 1 };
        CHECK(list_findings(&d, true, &list) == 0);
        zero = types[i].high;
        CHECK(list_findings(&d, true, &list) == 0);
        zero = types[i].low == INT64_MIN ? 0 : types[i].low - 1;
        CHECK(list_findings(&d, true, &list) == (types[i].low != INT64_MIN));
        zero = types[i].high == INT64_MAX ? 0 : types[i].high + 1;
        CHECK(list_findings(&d, true, &list) == (types[i].high != INT64_MAX));
        tn_buf_free(&list.text);
    }
}

static void indices_must_fit_their_type(void)
{
    static const int64_t shape[] = { INT64_C(1) << 40 }, index = INT64_C(1) << 31;
    static const tn_wia_extent extent = { .value = INT64_C(1) << 40 };
    static const float value = 1;
    tn_descriptor d = { .rank = 1, .dimensions = &extent };
    d.sparse = (tn_wia_sparse){ .format = "COO", .rank = 1, .shape = shape, .has_nnz = true, .nnz = 1,
                            .index_type = TN_INT64,
                            .indices = &index, .nindices = 1, .value_type = TN_FLOAT32, .values = &value,
                            .nvalues = 1 };
    expect_findings(&d, false, "");
    d.sparse.index_type = TN_INT32;
    expect_findings(&d, false,
                    "indices.data[0][0]: expected an index in [0, 2147483648) but found 2147483648\n");
    d.sparse.format = "ELL";
    expect_findings(&d, false, "format: expected COO or CSR but found \"ELL\"\n");
}

/* ---- damaged documents ---- */

/* Whatever parses can be checked, bound and judged. */
static void use_all(const uint8_t *bytes, size_t n)
{
    tn_descriptors *set, *bound;
    tn_error err;
    uint64_t size;
    const char *why;
    if (tn_descriptors_parse((const char *)bytes, n, &set, &err))
        return;
    for (size_t i = 0; i < tn_descriptors_count(set); i++) {
        const tn_descriptor *d = tn_descriptors_at(set, i);
        listing list = { .prefix = "" };
        list_findings(d, true, &list);
        CHECK(!list.text.bad);
        tn_buf_free(&list.text);
        const tn_wia_binding bindings[] = { { "batch", 8 }, { "sequence_length", 16 } };
        if (tn_descriptor_bind(d, bindings, 2, &bound, &err) == TN_OK)
            tn_descriptors_free(bound);
        tn_descriptor_max_bytes(d, &size, &err);
        CHECK(tn_descriptor_level(d, &why) >= 1 && why);
    }
    tn_descriptors_free(set);
}

static void damage(const char *name, const uint8_t *bytes, size_t n)
{
    if (!strstr(name, ".json"))
        return;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = exact_copy(bytes, n);
        copy[i] ^= (uint8_t)(1 << i % 7);
        use_all(copy, n);
        free(copy);
        copy = exact_copy(bytes, n);
        copy[i] = (uint8_t)('0' + i % 10);
        use_all(copy, n);
        free(copy);
    }
}

static void damaged_documents_are_handled(void)
{
    each_file(GOLDEN "good", damage);
}

/* ---- levels ---- */

static void expect_level(const tn_descriptor *d, int level, const char *expected)
{
    const char *why = NULL;
    int found = tn_descriptor_level(d, &why);
    if (found != level || strcmp(why, expected) != 0)
        fail_msg("level %d (%s), expected %d (%s)", found, why, level, expected);
    CHECK(tn_descriptor_level(d, NULL) == level);
}

static void each_requirement_has_its_level(void)
{
    static const char basic[] = "FLOAT32 and FLOAT16, dense, NCHW or NHWC";
    static const tn_wia_product column_major[] = { { .factor = 1 }, { .factor = 4 } },
    dense[] = { { .factor = 6 }, { .factor = 1 } };
    static const int64_t physical[] = { 4, 8 };
    static const tn_wia_extent symbols[] = { { .symbol = "n" }, { .value = 6 } };
    static const tn_wia_extra other = { .path = "dtype", .key = "quantization",
                                    .json = "{\"scheme\":\"tenon\"}" };
    tn_descriptor d = matrix();
    expect_level(&d, 1, basic);
    d.dtype = TN_FLOAT16;
    d.strides = dense;
    expect_level(&d, 1, basic);
    d.strides = column_major;
    expect_level(&d, 2, "stride-based layouts");
    d = matrix();
    d.physical_shape = physical;
    expect_level(&d, 2, "stride-based layouts");
    d = matrix();
    d.dtype = TN_BFLOAT16;
    expect_level(&d, 2, "BFLOAT16 and INT8");
    d.dtype = TN_FLOAT32;
    d.quantization.scheme = TN_QUANT_PER_TENSOR_SYMMETRIC;
    expect_level(&d, 2, "quantization metadata");
    d.dtype = TN_UINT8;
    expect_level(&d, 3, "all data types");
    d = matrix();
    d.layout = "RC";
    expect_level(&d, 3, "all layouts");
    d.layout = "NHWC";
    expect_level(&d, 1, basic);
    d.sparse.format = "COO";
    expect_level(&d, 3, "sparse tensors");
    d = matrix();
    d.dimensions = symbols;
    expect_level(&d, 3, "dynamic shapes");
    d = matrix();
    d.buffer_handle.type = TN_HANDLE_MEMFD;
    expect_level(&d, 3, "zero-copy sharing");
    d = matrix();
    d.extra = &other;
    d.nextra = 1;
    expect_level(&d, 3, "a quantization scheme beyond the specification's");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_documents_have_remarks_at_most),
        TEST(bad_documents_have_exactly_the_findings_expected),
        TEST(nothing_is_found_in_a_plain_matrix),
        TEST(findings_are_counted_without_a_report),
        TEST(strict_refuses_what_is_not_in_the_specification),
        TEST(strict_refuses_handles_and_modes_of_tenon),
        TEST(a_fill_of_integers_is_one_of_their_codes),
        TEST(a_fill_of_zeros_is_zero),
        TEST(a_uuid_has_36_characters_of_the_right_kind),
        TEST(a_tail_up_to_the_alignment_is_not_remarked),
        TEST(too_many_dimensions_are_one_finding),
        TEST(a_negative_extent_is_found),
        TEST(the_largest_numbers_do_not_overflow),
        TEST(the_last_byte_of_64_bits_is_inside),
        TEST(what_does_not_fit_is_not_shown_as_a_number),
        TEST(elements_that_may_lie_on_each_other_are_a_remark),
        TEST(the_elements_of_random_strides_lie_where_counting_finds_them),
        TEST(a_scale_that_is_no_number_is_found),
        TEST(zero_points_reach_as_far_as_the_type),
        TEST(indices_must_fit_their_type),
        TEST(damaged_documents_are_handled),
        TEST(each_requirement_has_its_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
