/* Tiles of several lines, rows of a matrix or across rows: every level against the definition. */
#include "support.h"
#include "datatype.h"

#include <math.h>
#include <stdio.h>

#include "base/cpu.h"
#include "random.h"
#include "quant/scaled_fast.h"

enum { LEVELS = 3, MOST = 40000, GUARD = 16 };

/* Numbers and scales; the tiles are added. */
static const char *const kinds[] = {
    "e4m3fn|float32", "e2m1fnuz|e8m0", "int8|float32", "int4|float16", "uint4|float16_int8",
    "uint4|float32_float32", "e2m3fnuz|e8m0", "int3|bfloat16", "e5m2|e8m0", "int12|float16",
    "e2m1fnuz|multi_float32_e4m3fn", "e3m0fnuz|float16",
};

/* One band of tiles side by side: a tile has `rows` lines, and `size` values of each. */
typedef struct band {
    tn_datatype   *d;
    tn_scaled_plan plan;
    int64_t  shape[2];          /* lines, values of a line */
    size_t   size, tiles;
    size_t   line_bytes;
    float   *x;
    uint8_t *codes, scale[MOST], zero[MOST];
    float    tensor_scale;
    bool     follow;
} band;

static const float *values(void *context, size_t line)
{
    const band *b = context;
    return b->x + line * (size_t)b->shape[1];
}

static uint8_t *codes(void *context, size_t line)
{
    const band *b = context;
    return b->codes + line * b->line_bytes;
}

static uint64_t first(void *context, size_t line)
{
    const band *b = context;
    return line * (uint64_t)b->shape[1];
}

static bool encode(band *b, const tn_encode_kernels *k)
{
    const tn_tile_lines lines = { .lines = (size_t)b->shape[0], .n = (size_t)b->shape[1], .tiles = b->tiles,
                                  .size = b->size, .follow = b->follow, .tensor_scale = b->tensor_scale,
                                  .scale = b->scale, .zero = b->zero, .values = values, .codes = codes,
                                  .first = first, .context = b };
    memset(b->codes, 0xa5, b->line_bytes * (size_t)b->shape[0] + GUARD);
    return tn_scaled_encode_lines(k, &b->plan, &lines);
}

/* The values of a tile, row by row, padded with zeros; how many of a line are not padding. */
static size_t gather(const band *b, size_t tile, float *x)
{
    size_t n = (size_t)b->shape[1], first = tile * b->size, some = n - first < b->size ? n - first : b->size;
    for (size_t r = 0; r < (size_t)b->shape[0]; r++)
        for (size_t i = 0; i < b->size; i++)
            x[r * b->size + i] = i < some ? b->x[r * n + first + i] : 0;
    return some;
}

static uint64_t number_at(const uint8_t *data, size_t i, unsigned bits)
{
    return tn_code_get(data, i, bits < 8 ? bits : tn_scaled_word(bits));
}

static void check_tile(const band *b, size_t tile)
{
    static float x[MOST];
    static uint64_t index[MOST];
    static uint32_t code[MOST];
    size_t bad, some = gather(b, tile, x), n = (size_t)b->shape[0] * b->size;
    tn_tile t = { .x = x, .n = n, .index = index, .tensor_scale = b->tensor_scale, .code = code };
    CHECK(tn_tile_encode(b->d, &b->plan.o, &t, &bad) == TN_OK);
    CHECK(number_at(b->scale, tile, b->plan.scale.bits) == t.scale);
    if (b->d->has_zero)
        CHECK(number_at(b->zero, tile, b->plan.zero.bits) == t.zero);
    for (size_t r = 0; r < (size_t)b->shape[0]; r++)
        for (size_t i = 0; i < some; i++) {
            uint64_t found = number_at(b->codes + r * b->line_bytes, tile * b->size + i, b->plan.data.bits);
            if (found != code[r * b->size + i])
                fail_msg("%s: line %zu, value %zu of tile %zu: expected %u but found %llu", b->d->text, r, i,
                         tile, code[r * b->size + i], (unsigned long long)found);
        }
}

static band new_band(const char *kind, size_t rows, size_t size, size_t n)
{
    char text[100];
    band b = { .shape = { (int64_t)rows, (int64_t)n }, .size = size, .tensor_scale = 1,
               .tiles = (n + size - 1) / size };
    const tn_quantize_options o = { .size = sizeof o };
    if (size == 1)
        snprintf(text, sizeof text, "%s_t%zud0", kind, rows);
    else
        snprintf(text, sizeof text, "%s_t%zu_t%zu", kind, rows, size);
    CHECK(tn_datatype_parse(text, &b.d, NULL) == TN_OK);
    CHECK(tn_scaled_plan_make(&b.plan, b.d, 2, b.shape, &o, NULL, NULL) == TN_OK);
    CHECK(tn_scaled_has_lines(&b.plan));
    b.line_bytes = (size_t)tn_scaled_field_bytes(b.plan.data.bits, n);
    b.x = malloc(rows * n * sizeof *b.x);
    b.codes = malloc(b.line_bytes * rows + GUARD);
    for (size_t i = 0; i < rows * n; i++)
        b.x[i] = ldexpf((float)(int32_t)bits64() * 0x1p-31f, (int)(bits64() % 12) - 6);
    b.x[bits64() % (rows * n)] = 0;
    if (b.d->has_tensor_scale)
        b.tensor_scale = 0.37f;
    return b;
}

static void free_band(band *b)
{
    tn_datatype_free(b->d);
    free(b->x);
    free(b->codes);
}

static unsigned make_levels(tn_encode_kernels *k)
{
    static const unsigned masks[LEVELS] = { 0, TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512 };
    unsigned n = 0, here = tn_cpu_detect();
    for (int i = 0; i < LEVELS; i++)
        if ((masks[i] & here) == masks[i])
            tn_encode_kernels_init(&k[n++], masks[i]);
    return n;
}

static void check_band(const char *kind, size_t rows, size_t size, size_t n)
{
    tn_encode_kernels k[LEVELS];
    unsigned levels = make_levels(k);
    band b = new_band(kind, rows, size, n);
    bool can_follow = tn_scaled_ends_on_byte(b.plan.data.bits, n);
    for (unsigned i = 0; i < levels << can_follow; i++) {
        b.follow = i >= levels;         /* lines together, if they are short */
        CHECK(encode(&b, &k[i % levels]));
        for (size_t t = 0; t < b.tiles; t++)
            check_tile(&b, t);
        for (size_t g = 0; g < GUARD; g++)
            CHECK(b.codes[b.line_bytes * rows + g] == 0xa5);
    }
    b.follow = false;
    b.x[bits64() % (rows * n)] = bits64() & 1 ? INFINITY : NAN;
    CHECK(!encode(&b, &k[0]));
    free_band(&b);
}

static void each_kind(size_t rows, size_t size, size_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_band(kinds[i], rows, size, n);
}

static void matrix_tiles_have_the_codes_of_the_definition(void)
{
    static const size_t widths[] = { 16, 17, 31, 33, 64, 100 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        each_kind(4, 16, widths[i]);
    each_kind(16, 2, 50);
    each_kind(2, 128, 300);
    each_kind(128, 128, 260);
}

static void tiles_across_rows_have_the_codes_of_the_definition(void)
{
    static const size_t widths[] = { 2, 3, 8, 15, 64, 65, 200 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        each_kind(8, 1, widths[i]);
    each_kind(32, 1, 40);
    each_kind(1024, 1, 9);
}

/* Through the public function: across rows is along rows of the transposed matrix. */
static void tiles_across_rows_are_those_of_the_transposed_matrix(void)
{
    enum { ROWS = 70, COLUMNS = 90, TILES = 3 };
    static float x[ROWS * COLUMNS], turned[COLUMNS * ROWS];
    static uint8_t a[ROWS * COLUMNS], b[COLUMNS * ROWS];
    static float scale_a[TILES * COLUMNS], scale_b[COLUMNS * TILES];
    const int64_t shape[] = { ROWS, COLUMNS }, other[] = { COLUMNS, ROWS };
    const tn_array matrix = { TN_FLOAT32, 2, shape, NULL }, transposed = { TN_FLOAT32, 2, other, NULL };
    void *parts_a[] = { a, scale_a }, *parts_b[] = { b, scale_b };
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = (float)(int32_t)bits64() * 0x1p-31f;
        turned[i % COLUMNS * ROWS + i / COLUMNS] = x[i];
    }
    tn_datatype *across, *along;
    CHECK(tn_datatype_parse("int8|float32_t32d0", &across, NULL) == TN_OK);
    CHECK(tn_datatype_parse("int8|float32_t32", &along, NULL) == TN_OK);
    CHECK(tn_quantize(across, &matrix, x, parts_a, NULL, NULL, NULL) == TN_OK);
    CHECK(tn_quantize(along, &transposed, turned, parts_b, NULL, NULL, NULL) == TN_OK);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        CHECK(a[i] == b[i % COLUMNS * ROWS + i / COLUMNS]);
    for (size_t i = 0; i < TILES * COLUMNS; i++)
        CHECK(scale_a[i] == scale_b[i % COLUMNS * TILES + i / COLUMNS]);
    tn_datatype_free(across);
    tn_datatype_free(along);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(matrix_tiles_have_the_codes_of_the_definition),
        TEST(tiles_across_rows_have_the_codes_of_the_definition),
        TEST(tiles_across_rows_are_those_of_the_transposed_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
