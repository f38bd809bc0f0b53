/* Views of tensors: every element of a reordered, padded and cast tensor against index arithmetic, by ranges and
 * by blocks. */
#include "support.h"

#include "files.h"
#include "make.h"
#include "pipeline/steps/steps.h"
#include "random.h"
#include "tensor/code.h"

typedef struct sample {
    simple      tensor;
    uint8_t    *data;
    uint64_t    count;
    uint32_t    order[TN_MAX_RANK];
    int64_t     shape[TN_MAX_RANK], physical[TN_MAX_RANK];      /* of the result */
    tn_pad_rule pad;
} sample;

/* A view with all that it needs. */
typedef struct opened {
    tn_file      *file;
    tn_view_place place;
    tn_arena      arena;
    tn_pool      *pool;
    tn_worker     worker, *workers[1];
    tn_view      *view;
} opened;

static void random_sample(sample *s)
{
    static const tn_dtype types[] = { TN_UINT8, TN_INT4, TN_UINT2, TN_FLOAT6_E2M3, TN_FLOAT16, TN_FLOAT32,
                                      TN_INT64, TN_COMPLEX128 };
    *s = (sample){ .count = 1, .tensor = { .name = "t", .dtype = types[below(sizeof types / sizeof *types)],
                                           .rank = (uint32_t)below(6) } };
    for (uint32_t i = 0; i < s->tensor.rank; i++) {
        s->tensor.shape[i] = (int64_t)below(20) == 0 ? 0 : (int64_t)below(6) + 1;
        s->count *= (uint64_t)s->tensor.shape[i];
        s->order[i] = i;
    }
    for (uint32_t i = s->tensor.rank; i > 1; i--) {
        uint32_t k = (uint32_t)below(i), other = s->order[i - 1];
        s->order[i - 1] = s->order[k];
        s->order[k] = other;
    }
    for (uint32_t i = 0; i < s->tensor.rank; i++) {
        s->shape[i] = s->physical[i] = s->tensor.shape[s->order[i]];
        if (below(3))
            continue;
        int64_t multiple = (int64_t)below(4) + 1;
        s->pad.dims[s->pad.count].dimension = (int32_t)i;
        s->pad.dims[s->pad.count++].multiple = multiple;
        s->physical[i] = (s->shape[i] + multiple - 1) / multiple * multiple;
    }
    s->data = malloc((size_t)s->count * 16 + 16);
    assert_non_null(s->data);
    for (size_t i = 0; i < s->count * 16 + 16; i++)
        s->data[i] = (uint8_t)below(256);
    s->tensor.data = s->data;
}

static void open_view(opened *o, const char *name)
{
    tn_error err = { .text = "" };
    *o = (opened){ .file = open_file(name) };
    o->place = (tn_view_place){ .file = o->file };
    o->workers[0] = &o->worker;
    CHECK(tn_pool_new(1, &o->pool, &err) == TN_OK);
    if (tn_view_stored(&o->place, tn_file_find(o->file, "t"), &o->arena, &o->view, &err))
        fail_msg("%s", line_of(&err));
}

static void add_step(opened *o, const tn_step *step, const void *options)
{
    tn_error err = { .text = "" };
    if (tn_view_add_step(&o->view, step, options, &err))
        fail_msg("%s: %s", step->name, line_of(&err));
}

static void prepare(opened *o)
{
    tn_error err = { .text = "" };
    if (tn_view_prepare(o->view, &(tn_preparing){ .pool = o->pool, .workers = o->workers }, &err))
        fail_msg("%s", line_of(&err));
}

static void close_view(opened *o)
{
    tn_view_free(o->view);
    tn_worker_free(&o->worker);
    tn_pool_free(o->pool);
    tn_arena_free(&o->arena);
    tn_close(o->file);
}

static bool same_element(const uint8_t *x, uint64_t i, const uint8_t *y, uint64_t k, unsigned bits)
{
    if (bits == 128)
        return memcmp(x + i * 16, y + k * 16, 16) == 0;
    return tn_code_get(x, i, bits) == tn_code_get(y, k, bits);
}

/* The row-major number in the source of element `number` of the padded result; false: it is padding. */
static bool source_of(const sample *s, uint64_t number, uint64_t *source)
{
    int64_t at[TN_MAX_RANK] = { 0 };
    bool inside = true;
    for (uint32_t i = s->tensor.rank; i-- > 0; number /= (uint64_t)s->physical[i]) {
        at[s->order[i]] = (int64_t)(number % (uint64_t)s->physical[i]);
        inside &= at[s->order[i]] < s->shape[i];
    }
    *source = 0;
    for (uint32_t i = 0; i < s->tensor.rank; i++)
        *source = *source * (uint64_t)s->tensor.shape[i] + (uint64_t)at[i];
    return inside;
}

/* Elements [first, first + n) of the result. */
static void check_elements(const sample *s, unsigned bits, uint64_t first, uint64_t n, const uint8_t *bytes)
{
    static const uint8_t zero[16];
    uint64_t source;
    for (uint64_t i = 0; i < n; i++) {
        bool inside = source_of(s, first + i, &source);
        if (!same_element(bytes, i, inside ? s->data : zero, inside ? source : 0, bits))
            fail_msg("%s: element %llu of rank %u is wrong", tn_dtype_get(s->tensor.dtype)->name,
                     (unsigned long long)(first + i), s->tensor.rank);
    }
}

static void check_ranges(const sample *s, opened *o)
{
    tn_error err = { .text = "" };
    const tn_view *v = o->view;
    for (int round = 0; round < 12; round++) {
        uint64_t first = v->count ? below(v->count) / 8 * 8 : 0, left = v->count - first;
        size_t n = round ? (size_t)(left ? below(left) + 1 : 0) : (size_t)left;
        const uint8_t *bytes;
        CHECK(tn_view_range(v, first, n, &o->worker, &bytes, &err) == TN_OK);
        check_elements(s, v->bits, first, n, bytes);
    }
}

static void check_blocks(const sample *s, opened *o)
{
    tn_error err = { .text = "" };
    uint64_t at = 0;
    for (uint64_t b = 0; b < tn_view_blocks(o->view); b++) {
        tn_part_bytes out[TN_MAX_PARTS] = { 0 };
        CHECK(tn_view_block(o->view, b, &o->worker, out, &err) == TN_OK && out[0].offset == at);
        uint64_t first = out[0].offset * 8 / o->view->bits, n = out[0].size * 8 / o->view->bits;
        check_elements(s, o->view->bits, first, n < o->view->count - first ? n : o->view->count - first,
                       out[0].bytes);
        at += out[0].size;
    }
    CHECK(at == o->view->parts[0].nbytes);
}

static void check_sample(uint64_t seed, tn_create_options how)
{
    sample s;
    opened o;
    random_state = seed;
    random_sample(&s);
    how.replace = true;
    write_file("in.zt", how, &s.tensor, 1);
    open_view(&o, "in.zt");
    add_step(&o, &tn_step_reorder, s.order);
    if (s.pad.count)
        add_step(&o, &tn_step_pad, &s.pad);
    prepare(&o);
    check_ranges(&s, &o);
    o.view->grain = 8 * (below(3) + 1);
    check_blocks(&s, &o);
    close_view(&o);
    free(s.data);
}

static void any_order_and_padding_of_any_type_is_right_element_by_element(void)
{
    for (uint64_t seed = 1; seed <= 1500; seed++)
        check_sample(seed, (tn_create_options){ .size = 0 });
}

static void data_that_is_compressed_is_reordered_too(void)
{
    for (uint64_t seed = 1; seed <= 150; seed++)
        check_sample(seed, (tn_create_options){ .encoding = TN_ENCODING_ZSTD,
                                                .checksum = TN_CHECKSUM_SHA256 });
}

/* A step that needs memory gets it from a view that has ranges only. */
static void a_reorder_of_what_was_cast_is_that_of_the_cast(void)
{
    sample s;
    opened o, cast;
    const tn_cast_options rounding = { .size = sizeof rounding };
    const tn_cast_task task = { .to = TN_BFLOAT16, .options = &rounding };
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_state = seed;
        random_sample(&s);
        if (s.tensor.dtype != TN_FLOAT32)
            s.tensor.dtype = TN_FLOAT16;
        s.pad.count = 0;
        write_file("in.zt", (tn_create_options){ .replace = true }, &s.tensor, 1);
        open_view(&cast, "in.zt");
        add_step(&cast, &tn_step_reorder, s.order);
        add_step(&cast, &tn_step_cast, &task);
        prepare(&cast);
        open_view(&o, "in.zt");
        add_step(&o, &tn_step_cast, &task);
        add_step(&o, &tn_step_reorder, s.order);
        prepare(&o);
        const uint8_t *x, *y;
        CHECK(tn_view_range(o.view, 0, (size_t)o.view->count, &o.worker, &x, NULL) == TN_OK);
        CHECK(tn_view_range(cast.view, 0, (size_t)o.view->count, &cast.worker, &y, NULL) == TN_OK);
        assert_memory_equal(x, y, (size_t)o.view->count * 2);
        close_view(&o);
        close_view(&cast);
        free(s.data);
    }
}

/* Padding of codes along a dimension with a zero point for each index is those. */
static void padding_of_codes_is_their_zero_point(void)
{
    enum { ROWS = 3, COLS = 5 };
    float values[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        values[i] = (float)(i * i) - 7.5f * (float)(i % 3);
    const simple t = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLS }, .data = values };
    const tn_affine affine = { .size = sizeof affine, .codes = TN_UINT8, .axis = 0 };
    const tn_quantize_task task = { .affine = &affine, .options = { .size = sizeof task.options },
                                    .name = "uint8" };
    const tn_pad_rule pad = { .count = 2, .dims = { { .dimension = 0, .multiple = 4 },
                                                    { .dimension = 1, .multiple = 4 } } };
    opened o;
    const uint8_t *codes;
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    open_view(&o, "in.zt");
    add_step(&o, &tn_step_quantize, &task);
    add_step(&o, &tn_step_pad, &pad);
    prepare(&o);
    CHECK(o.view->count == 4 * 8 && o.view->tensor.nparts == 3);
    const int32_t *zero = o.view->parts[2].data;
    CHECK(tn_view_range(o.view, 0, 4 * 8, &o.worker, &codes, NULL) == TN_OK);
    for (int r = 0; r < ROWS; r++)
        for (int c = COLS; c < 8; c++)
            CHECK(codes[8 * r + c] == zero[r]);
    for (int c = 0; c < 8; c++)         /* beyond the last zero point */
        CHECK(codes[8 * ROWS + c] == 0);
    close_view(&o);
}

/* The checksum of what is not streamed is compared before anything is made of it. */
static void damaged_data_is_found_when_a_view_is_prepared(void)
{
    static const uint8_t data[12] = { 1, 2, 3 };
    static const uint32_t order[] = { 1, 0 };
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 2, .shape = { 3, 4 }, .data = data };
    tn_error err = { .text = "" };
    opened o;
    write_file("in.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, &t, 1);
    open_view(&o, "in.zt");
    tn_tensor damaged = *tn_file_find(o.file, "t");
    tn_part part = damaged.parts[0];
    tn_stored stored = *part.stored;
    stored.checksum_text = "crc32c:0x00000000";
    part.stored = &stored;
    damaged.parts = &part;
    CHECK(tn_view_stored(&o.place, &damaged, &o.arena, &o.view, &err) == TN_OK);
    add_step(&o, &tn_step_reorder, order);
    CHECK(tn_view_prepare(o.view, &(tn_preparing){ .pool = o.pool, .workers = o.workers }, &err) == TN_ERR_CHECKSUM);
    assert_string_equal(err.tensor, "t");
    assert_string_equal(err.file, "");          /* whoever knows it notes it */
    close_view(&o);
}

static void more_steps_than_a_view_can_have_are_refused(void)
{
    const float value = 1;
    const simple t = { .name = "t", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = &value };
    const uint32_t order[] = { 0 };
    tn_error err = { .text = "" };
    opened o;
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    open_view(&o, "in.zt");
    for (int i = 1; i < TN_VIEW_DEPTH; i++)
        add_step(&o, &tn_step_reorder, order);
    CHECK(tn_view_add_step(&o.view, &tn_step_reorder, order, &err) == TN_ERR_LIMIT);
    prepare(&o);
    const uint8_t *bytes;
    CHECK(tn_view_range(o.view, 0, 1, &o.worker, &bytes, &err) == TN_OK && memcmp(bytes, &value, 4) == 0);
    close_view(&o);
}

/* The bytes of the file that a range is made of: exactly those where it is raw, else all. */
static void a_view_says_which_stored_bytes_it_needs(void)
{
    static const float data[96] = { 1 };
    const simple t = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { 12, 8 }, .data = data };
    const tn_cast_task cast = { .to = TN_BFLOAT16 };
    static const uint32_t order[] = { 1, 0 };
    /* Of the other order: from row 4 to row 11, in column 1, as of an element whose number is a multiple of
     * 8. */
    static const uint64_t offsets[] = { 64, 0, 4 * 4 * 8 }, sizes[] = { 32, 0, 4 * (7 * 8 + 2) };
    for (int i = 0; i < 3; i++) {
        opened o;
        tn_needs needs = { 0 };
        write_file("in.zt", (tn_create_options){ .encoding = i == 1 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW,
                                                 .replace = true }, &t, 1);
        open_view(&o, "in.zt");
        const tn_stored *s = tn_file_find(o.file, "t")->parts[0].stored;
        add_step(&o, i == 2 ? &tn_step_reorder : &tn_step_cast, i == 2 ? (const void *)order : &cast);
        CHECK(tn_view_needs(o.view, 16, 8, &needs, NULL) == TN_OK && needs.count == 1);
        CHECK(needs.list[0].offset == s->offset + offsets[i] &&
              needs.list[0].size == (i == 1 ? s->size : sizes[i]));
        CHECK(tn_view_needs(o.view, 24, 8, &needs, NULL) == TN_OK && needs.count == 1 + (i == 2));
        CHECK(i == 2 ? needs.list[1].offset == s->offset && needs.list[1].size == 4 * (7 * 8 + 3)
                     : needs.list[0].size == (i ? s->size : 64));
        CHECK(tn_view_needs(o.view, 0, 0, &needs, NULL) == TN_OK);
        free(needs.list);
        close_view(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(any_order_and_padding_of_any_type_is_right_element_by_element),
        IN_FOLDER(data_that_is_compressed_is_reordered_too),
        IN_FOLDER(a_reorder_of_what_was_cast_is_that_of_the_cast),
        IN_FOLDER(padding_of_codes_is_their_zero_point),
        IN_FOLDER(damaged_data_is_found_when_a_view_is_prepared),
        IN_FOLDER(more_steps_than_a_view_can_have_are_refused),
        IN_FOLDER(a_view_says_which_stored_bytes_it_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
