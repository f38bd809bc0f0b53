/* Views as callers have them: any range and box of every form, codec and type against a plain model, and all
 * of a tensor as any type. */
#include "support.h"

#include <math.h>

#include "files.h"
#include "npz_samples.h"
#include "random.h"
#include "scaled_tensor.h"
#include "tensor/code.h"
#include "values.h"

/* What the elements of an open view must be. */
typedef struct model {
    uint32_t      rank;
    const int64_t *shape;
    uint64_t      count;
    unsigned      bits;
    const uint8_t *bytes;       /* dense, packed */
} model;

static bool same_element(const uint8_t *x, uint64_t i, const uint8_t *y, uint64_t k, unsigned bits)
{
    if (bits == 128)
        return memcmp(x + i * 16, y + k * 16, 16) == 0;
    return tn_code_get(x, i, bits) == tn_code_get(y, k, bits);
}

static size_t bytes_of(uint64_t n, unsigned bits) { return (size_t)tn_packed_bytes(n, bits); }

/* The bits after the last element are 0. */
static void check_rest(const uint8_t *out, uint64_t n, unsigned bits)
{
    unsigned used = (unsigned)(n * bits % 8);
    CHECK(!used || out[bytes_of(n, bits) - 1] >> used == 0);
}

static uint8_t *new_buffer(size_t n)
{
    uint8_t *out = malloc(n + !n);
    assert_non_null(out);
    memset(out, 0xa5, n);
    return out;
}

static void check_range(tn_view *v, const model *m, uint64_t first, uint64_t n)
{
    size_t size = bytes_of(n, m->bits);
    uint8_t *out = new_buffer(size);
    tn_error err = { .text = "" };
    if (tn_view_read(v, 0, first, n, out, size, &err))
        fail_msg("%s", line_of(&err));
    for (uint64_t i = 0; i < n; i++)
        CHECK(same_element(out, i, m->bytes, first + i, m->bits));
    check_rest(out, n, m->bits);
    free(out);
}

static void check_box(tn_view *v, const model *m, const int64_t *first, const int64_t *extent)
{
    uint64_t n = 1;
    tn_error err = { .text = "" };
    for (uint32_t i = 0; i < m->rank; i++)
        n *= (uint64_t)extent[i];
    size_t size = bytes_of(n, m->bits);
    uint8_t *out = new_buffer(size);
    if (tn_view_read_box(v, first, extent, out, size, &err))
        fail_msg("%s", line_of(&err));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, at = 0, step = 1;
        for (uint32_t d = m->rank; d-- > 0; rest /= (uint64_t)extent[d]) {
            at += (rest % (uint64_t)extent[d] + (uint64_t)first[d]) * step;
            step *= (uint64_t)m->shape[d];
        }
        CHECK(same_element(out, i, m->bytes, at, m->bits));
    }
    check_rest(out, n, m->bits);
    free(out);
}

/* Ranges and boxes by chance; the first may be read in order, the others not. */
static void check_view(tn_view *v, const model *m)
{
    for (int round = 0; round < 8; round++) {
        uint64_t first = below(m->count + 1), n = round == 3 ? m->count - first : below(m->count - first + 1);
        int64_t from[TN_MAX_RANK], extent[TN_MAX_RANK];
        for (uint32_t i = 0; i < m->rank; i++) {
            from[i] = (int64_t)below((uint64_t)m->shape[i] + 1);
            extent[i] = m->shape[i] - from[i];
            if (below(3))
                extent[i] = (int64_t)below((uint64_t)extent[i] + 1);
        }
        if (below(2))
            check_range(v, m, first, n);
        check_box(v, m, from, extent);
        check_range(v, m, first, n);
    }
    check_range(v, m, 0, m->count);
}

/* All of it, as its own type and as the others that it can be cast to. */
static void check_whole(const tn_file *f, const tn_tensor *t, const model *m, bool is_plain)
{
    const tn_array from = { t->dtype, t->rank, t->shape, NULL };
    for (int d = 0; d < TN_DTYPE_COUNT; d++) {
        tn_dtype to = (tn_dtype)d;
        const tn_dtype_info *type = tn_dtype_get(to == TN_UNKNOWN ? t->dtype : to);
        const tn_array wanted = { type ? type->dtype : TN_UNKNOWN, t->rank, t->shape, NULL };
        if (!type || (!is_plain && to != TN_UNKNOWN && to != t->dtype))
            continue;
        size_t size = bytes_of(m->count, type->bits);
        uint8_t *out = new_buffer(size), *expected = new_buffer(size);
        tn_error err = { .text = "" }, why = { .text = "" };
        tn_status status = tn_read(f, t, to, out, size, &err);
        tn_status cast = type->dtype == t->dtype
                             ? TN_OK : tn_cast(&wanted, expected, &from, m->bytes, TN_HOST_ORDER, NULL, &why);
        if (status != cast)
            fail_msg("%s to %s: %d %s", tn_dtype_get(t->dtype)->name, type->name, status, line_of(&err));
        for (uint64_t i = 0; i < m->count && !status; i++)
            CHECK(same_element(out, i, type->dtype == t->dtype ? m->bytes : expected, i, type->bits));
        free(out);
        free(expected);
    }
}

/* ---- dense ---- */

static const tn_create_options ways[] = {
    { .encoding = TN_ENCODING_RAW },
    { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C },
};

static tn_file *open_as(const char *name, tn_io io)
{
    const tn_open_options o = { .size = sizeof o, .io = io };
    tn_file *f = NULL;
    CHECK(tn_open(in_folder(name).text, &o, &f, NULL) == TN_OK);
    return f;
}

/* A type's codes by chance, none of which a cast to another type refuses more often than needed. */
static void check_dense(tn_dtype dtype, uint32_t rank, const int64_t *shape)
{
    model m = { .rank = rank, .shape = shape, .count = 1, .bits = tn_dtype_get(dtype)->bits };
    simple t = { .name = "t", .dtype = dtype, .rank = rank };
    for (uint32_t i = 0; i < rank; i++) {
        m.count *= (uint64_t)shape[i];
        t.shape[i] = shape[i];
    }
    uint8_t *data = malloc(bytes_of(m.count, m.bits) + 1);
    for (size_t i = 0; i < bytes_of(m.count, m.bits); i++)
        data[i] = (uint8_t)(dtype == TN_BOOL ? below(2) : below(256));
    if (m.count * m.bits % 8)
        data[bytes_of(m.count, m.bits) - 1] &= (uint8_t)((1u << m.count * m.bits % 8) - 1);
    t.data = m.bytes = data;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        tn_create_options how = ways[way];
        how.replace = true;
        write_file("in.zt", how, &t, 1);
        for (int io = 0; io < 2; io++) {
            tn_file *f = open_as("in.zt", io ? TN_IO_PREAD : TN_IO_MMAP);
            tn_view *v = NULL;
            CHECK(tn_view_open(f, tn_file_find(f, "t"), &v, NULL) == TN_OK);
            CHECK(tn_view_tensor(v)->dtype == dtype && tn_view_tensor(v)->rank == rank);
            check_view(v, &m);
            tn_view_close(v);
            check_whole(f, tn_file_find(f, "t"), &m, !io);
            tn_close(f);
        }
    }
    free(data);
}

static void any_box_of_every_type_is_that_of_the_whole(void)
{
    static const int64_t shapes[][4] = { { 5, 3, 2, 7 }, { 1, 40, 1, 3 }, { 3, 1, 9, 1 }, { 2, 0, 3, 4 } };
    for (int d = 1; d < TN_DTYPE_COUNT; d++) {
        random_state = (uint64_t)d;
        if (tn_dtype_get((tn_dtype)d))
            check_dense((tn_dtype)d, (uint32_t)d % 5, shapes[d % 4]);
    }
}

/* More than a window, so that it is read in several. */
static void large_tensors_are_read_window_by_window(void)
{
    static const int64_t shape[] = { 300, 700 };
    random_state = 9;
    check_dense(TN_INT4, 2, shape);
    check_dense(TN_BFLOAT16, 2, shape);
    check_dense(TN_FLOAT6_E2M3, 2, (const int64_t[]){ 700, 701 });
}

/* Columns first, big-endian, deflated. */
static void strides_and_byte_order_are_those_of_no_result(void)
{
    static const int64_t shape[] = { 3, 4 };
    archive a = sample();
    tn_file *f = open_bytes(&a.bytes);
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        uint16_t expected[12];
        bool is_swapped = strstr(t->name, "columns") != NULL;
        model m = { .rank = 2, .shape = shape, .count = 12, .bits = 16, .bytes = (const uint8_t *)expected };
        for (unsigned k = 0; k < 12; k++) {
            unsigned from = is_swapped ? k % 4 * 3 + k / 4 : k;
            unsigned x = numbers[2 * from], y = numbers[2 * from + 1];
            expected[k] = (uint16_t)(is_swapped ? x << 8 | y : y << 8 | x);
        }
        tn_view *v = NULL;
        CHECK(tn_view_open(f, t, &v, NULL) == TN_OK);
        check_view(v, &m);
        tn_view_close(v);
        check_whole(f, t, &m, true);
    }
    tn_close(f);
    tn_buf_free(&a.bytes);
}

/* ---- other forms ---- */

/* Values, and every part as it is in memory. */
static void check_form(const tn_tensor *t, const model *m, bool is_plain)
{
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        tn_create_options how = ways[way];
        tn_view *v = NULL;
        CHECK(try_write_tensor("in.zt", how, t, NULL) == TN_OK);
        tn_file *f = open_file("in.zt");
        const tn_tensor *found = tn_file_find(f, "t");
        CHECK(tn_view_open(f, found, &v, NULL) == TN_OK && tn_view_tensor(v)->nparts == t->nparts);
        for (uint32_t k = t->nparts; k-- > 0;) {
            size_t size = (size_t)found->parts[k].nbytes;
            uint8_t *out = new_buffer(size);
            uint64_t count = 1;
            tn_shape_count(t->parts[k].array.rank, t->parts[k].array.shape, &count);
            CHECK(tn_view_read(v, k, 0, count, out, size, NULL) == TN_OK);
            CHECK(memcmp(out, t->parts[k].data, size) == 0);
            CHECK(tn_view_read(v, k, count, 1, out, size, NULL) == TN_ERR_ARGUMENT);
            free(out);
        }
        CHECK(tn_view_read_box(v, m->shape, m->shape, NULL, 0, NULL) == TN_ERR_ARGUMENT);
        CHECK(tn_view_add_values(&v, TN_UNKNOWN, NULL) == TN_OK && tn_view_tensor(v)->nparts == 1);
        check_view(v, m);
        tn_view_close(v);
        check_whole(f, found, m, is_plain);
        tn_close(f);
    }
}

static void sparse_tensors_are_dense_and_their_parts_are_there(void)
{
    static const tn_dtype types[] = { TN_FLOAT32, TN_INT8, TN_COMPLEX128, TN_BFLOAT16 };
    static const int64_t shape[] = { 9, 23 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        unsigned width = tn_dtype_get(types[i])->bits / 8;
        uint8_t data[9 * 23 * 16] = { 0 };
        random_state = i + 1;
        for (size_t k = 0; k < 9 * 23; k++)
            if (below(4) == 0)
                for (unsigned b = 0; b < width; b++)
                    data[k * width + b] = (uint8_t)(1 + below(60));
        const tn_part part = { .role = "data", .array = { types[i], 2, shape, NULL },
                               .nbytes = 9 * 23 * width, .data = data };
        const tn_tensor dense = { .name = "t", .form = TN_FORM_DENSE, .dtype = types[i], .rank = 2,
                                  .shape = shape, .parts = &part, .nparts = 1 };
        const model m = { .rank = 2, .shape = shape, .count = 9 * 23, .bits = 8 * width, .bytes = data };
        for (int csr = 0; csr < 2; csr++) {
            tn_tensor *sparse = NULL;
            CHECK(tn_convert_form(&dense, csr ? TN_FORM_CSR : TN_FORM_COO, NULL, &sparse, NULL) == TN_OK);
            check_form(sparse, &m, true);
            tn_tensor_free(sparse);
        }
    }
}

static void codes_of_datatypes_are_values(void)
{
    static const char *const datatypes[] = { "mxfp4e2", "int8|float32", "e2m1fnuz|e8m0_t32d0", "nvfp4e2",
                                             "int4|bfloat16_t16n2m4", "uint8|bfloat16_int8_t0" };
    static const int64_t shape[] = { 5, 3, 64 };
    for (size_t i = 0; i < sizeof datatypes / sizeof *datatypes; i++) {
        scaled_tensor s;
        random_state = i + 1;
        make_scaled(&s, datatypes[i], i % 2 ? TN_BFLOAT16 : TN_FLOAT32, 3, shape, (tn_quantize_options){ 0 });
        const model m = { .rank = 3, .shape = shape, .count = s.count, .bits = i % 2 ? 16 : 32,
                          .bytes = s.expected };
        check_form(&s.tensor, &m, false);
        free_scaled(&s);
    }
}

/* Codes are decoded into the type that is wanted, not through the tensor's own. */
static void codes_become_the_type_that_is_wanted(void)
{
    static const int8_t codes[6] = { -7, -1, 0, 1, 2, 7 };
    static const float scale[] = { 0.3f };
    static const int64_t shape[] = { 6 };
    const tn_part parts[] = {
        { .role = "data", .array = { TN_INT8, 1, shape, NULL }, .nbytes = 6, .data = codes },
        { .role = "scale", .array = { TN_FLOAT32, 0, NULL, NULL }, .nbytes = 4, .data = scale },
    };
    const tn_scaling scaling = { .axis = -1, .range = { -7, 7 } };
    const tn_tensor t = { .name = "t", .form = TN_FORM_SCALED, .dtype = TN_BFLOAT16, .rank = 1,
                          .shape = shape, .parts = parts, .nparts = 2, .scaling = &scaling };
    float wide[6];
    uint16_t own[6];
    int32_t whole[6];
    CHECK(tn_read(NULL, &t, TN_FLOAT32, wide, sizeof wide, NULL) == TN_OK);
    CHECK(tn_read(NULL, &t, TN_UNKNOWN, own, sizeof own, NULL) == TN_OK);
    CHECK(tn_read(NULL, &t, TN_INT32, whole, sizeof whole, NULL) == TN_OK);
    for (int i = 0; i < 6; i++) {
        float x = (float)codes[i] * scale[0];
        CHECK(wide[i] == x && whole[i] == (int32_t)rintf(x));
        CHECK(fabsf(tn_float_of((uint32_t)own[i] << 16) - x) <= fabsf(x) / 256);
    }
}

/* ---- what is wrong ---- */

static void slices_of_files_that_are_not_mapped_are_read_range_by_range(void)
{
    float values[64], out[16];
    for (int i = 0; i < 64; i++)
        values[i] = (float)i;
    const simple s = { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 64 }, .data = values };
    write_file("f.zt", (tn_create_options){ .replace = true }, &s, 1);
    tn_file *f;
    tn_view *v;
    tn_error err;
    const tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    CHECK(tn_open(in_folder("f.zt").text, &options, &f, &err) == TN_OK);
    CHECK(tn_view_open(f, tn_file_find(f, "a"), &v, &err) == TN_OK);
    CHECK(tn_view_add(&v, "slice", "1::2", &err) == TN_OK);
    for (unsigned first = 0; first < 32; first += 16) {
        CHECK(tn_view_read(v, 0, first, 16, out, sizeof out, &err) == TN_OK);
        for (unsigned i = 0; i < 16; i++)
            CHECK(out[i] == values[1 + 2 * (first + i)]);
    }
    tn_view_close(v);
    tn_close(f);
}

static void arguments_that_do_not_fit_are_refused_with_a_text(void)
{
    static const float data[12] = { 1 };
    static const int64_t zero[] = { 0, 0 }, one[] = { 1, 1 }, all[] = { 3, 4 }, below_zero[] = { -1, 0 },
                         huge[] = { INT64_MAX, INT64_MAX };
    const simple t = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 4 }, .data = data };
    float out[12];
    tn_error err;
    tn_view *v = NULL;
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    tn_file *f = open_file("in.zt");
    const tn_tensor *found = tn_file_find(f, "t");
    const tn_tensor none = { .name = "t", .form = TN_FORM_DENSE, .dtype = TN_FLOAT32 };
    tn_part elsewhere = found->parts[0];
    tn_tensor without = *found;
    elsewhere.data = NULL;
    without.parts = &elsewhere;
#define REFUSED(call, text) check_status((call), &err, TN_ERR_ARGUMENT, text)
    REFUSED(tn_view_open(f, NULL, &v, &err), "found NULL");
    REFUSED(tn_view_open(f, found, NULL, &err), "found NULL");
    REFUSED(tn_view_open(NULL, &without, &v, &err), "expected the file of the tensor");
    REFUSED(tn_view_open(f, &none, &v, &err), "expected a tensor with parts");
    REFUSED(tn_view_add_values(NULL, TN_FLOAT32, &err), "found NULL");
    REFUSED(tn_view_add_values(&v, TN_FLOAT32, &err), "found NULL");
    CHECK(!v && !tn_view_tensor(NULL));
    CHECK(tn_view_open(f, found, &v, &err) == TN_OK);
    REFUSED(tn_view_add_values(&v, TN_DTYPE_COUNT, &err), "known type");
    REFUSED(tn_view_read(NULL, 0, 0, 1, out, 4, &err), "expected a view");
    REFUSED(tn_view_read(v, 1, 0, 1, out, 4, &err), "expected a part below 1 but found 1");
    REFUSED(tn_view_read(v, 0, 12, 1, out, 4, &err), "within 12 elements but found 1 from 12 on");
    REFUSED(tn_view_read(v, 0, 1, UINT64_MAX, out, 4, &err), "within 12 elements");
    REFUSED(tn_view_read(v, 0, 0, 2, out, 7, &err), "expected a buffer of 8 bytes but found 7");
    REFUSED(tn_view_read(v, 0, 0, 1, NULL, 4, &err), "expected a buffer but found NULL");
    REFUSED(tn_view_read_box(NULL, zero, one, out, 4, &err), "expected a view");
    REFUSED(tn_view_read_box(v, NULL, one, out, 4, &err), "found NULL");
    REFUSED(tn_view_read_box(v, zero, NULL, out, 4, &err), "found NULL");
    REFUSED(tn_view_read_box(v, below_zero, one, out, 4, &err), "of dimension 0 but found 1 from -1 on");
    REFUSED(tn_view_read_box(v, one, all, out, 48, &err), "3 indices of dimension 0 but found 3 from 1");
    REFUSED(tn_view_read_box(v, zero, huge, out, 48, &err), "within 3 indices");
    REFUSED(tn_view_read_box(v, huge, one, out, 4, &err), "within 3 indices");
    REFUSED(tn_view_read_box(v, zero, all, out, 47, &err), "expected a buffer of 48 bytes but found 47");
    REFUSED(tn_read(f, NULL, TN_FLOAT32, out, 48, &err), "expected a tensor");
    REFUSED(tn_read(NULL, &without, TN_FLOAT32, out, 48, &err), "expected the file");
    REFUSED(tn_read(f, found, TN_DTYPE_COUNT, out, 48, &err), "is not known");
    REFUSED(tn_read(f, found, TN_FLOAT16, out, 48, &err), "expected a buffer of 24 bytes but found 48");
    REFUSED(tn_read(f, found, TN_UNKNOWN, NULL, 48, &err), "expected a buffer but found NULL");
#undef REFUSED
    CHECK(tn_view_read(v, 0, 12, 0, NULL, 0, NULL) == TN_OK);
    CHECK(tn_view_read_box(v, all, zero, NULL, 0, NULL) == TN_OK);
    tn_view_close(v);
    tn_view_close(NULL);
    tn_close(f);
}

/* Compressed data is held against its checksum where all of it is decoded at once. */
static void damage_is_an_error_of_the_tensor(void)
{
    static const int64_t shape[] = { 64, 64 };
    scaled_tensor s;
    tn_file *f;
    size_t n;
    float *out = malloc(64 * 64 * sizeof *out);
    make_scaled(&s, "mxfp8e4", TN_FLOAT32, 2, shape, (tn_quantize_options){ 0 });
    CHECK(try_write_tensor("in.zt", ways[1], &s.tensor, NULL) == TN_OK);
    uint8_t *bytes = load_file(in_folder("in.zt").text, &n);
    f = open_file("in.zt");
    tn_stored_info at = { .size = sizeof at };
    CHECK(tn_part_stored(tn_file_find(f, "t"), &tn_file_find(f, "t")->parts[0], &at) == TN_OK);
    tn_close(f);
    for (uint64_t i = 0; i < at.bytes; i += 7) {
        uint8_t *copy = exact_copy(bytes, n);
        tn_error err = { .text = "" };
        copy[at.offset + i] ^= 0x11;
        CHECK(tn_open_memory(copy, n, NULL, &f, NULL) == TN_OK);
        tn_status status = tn_read(f, tn_file_find(f, "t"), TN_UNKNOWN, out, 64 * 64 * sizeof *out, &err);
        CHECK(status == TN_ERR_CORRUPT || status == TN_ERR_CHECKSUM || status == TN_ERR_TRUNCATED);
        assert_string_equal(err.tensor, "t");
        tn_close(f);
        free(copy);
    }
    free(bytes);
    free(out);
    free_scaled(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(any_box_of_every_type_is_that_of_the_whole),
        IN_FOLDER(large_tensors_are_read_window_by_window),
        IN_FOLDER(strides_and_byte_order_are_those_of_no_result),
        IN_FOLDER(sparse_tensors_are_dense_and_their_parts_are_there),
        IN_FOLDER(codes_of_datatypes_are_values),
        IN_FOLDER(codes_become_the_type_that_is_wanted),
        IN_FOLDER(slices_of_files_that_are_not_mapped_are_read_range_by_range),
        IN_FOLDER(arguments_that_do_not_fit_are_refused_with_a_text),
        IN_FOLDER(damage_is_an_error_of_the_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
