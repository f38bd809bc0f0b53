/* The values of codes with scales: every level of kernels against the definition, for any bytes in the
 * parts. */
#include "support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cpu.h"
#include "datatype.h"
#include "random.h"
#include "tensor/array.h"
#include "kernels/scaled_decode/table.h"
#include "quant/scaled_fast.h"

enum { PARTS = 7, LEVELS = 4 };

static unsigned make_levels(tn_decode_kernels *k)
{
    enum { AVX512 = TN_CPU_AVX2 | TN_CPU_AVX512 };
    static const unsigned masks[LEVELS] = { 0, TN_CPU_AVX2, AVX512, AVX512 | TN_CPU_VBMI };
    unsigned n = 0, here = tn_cpu_detect();
    for (int i = 0; i < LEVELS; i++)
        if ((masks[i] & here) == masks[i])
            tn_decode_kernels_init(&k[n++], masks[i]);
    return n;
}

/* --- a tensor of any bytes ------------------------------------------------------------ */

typedef struct any {
    const char    *text;
    tn_datatype   *d;
    tn_scaled_plan plan;
    uint8_t       *part[PARTS];         /* exact-size blocks */
    uint64_t       size[PARTS];
    float          tensor_scale;
    float         *y;                   /* by the definition */
} any;

static float *floats(uint64_t n)
{
    float *y = malloc(n ? n * sizeof *y : 1);
    assert_non_null(y);
    return y;
}

/* Bits of all kinds, those at the ends of what numbers can be, or a mask of 2:4 as encoding makes them. */
static void fill(uint8_t *bytes, uint64_t n, const char *role)
{
    static const uint8_t twos[] = { 0x33, 0x55, 0x66, 0x99, 0xaa, 0xcc, 0x35, 0xca };
    bool orderly = draw() % 2 && strcmp(role, "mask") == 0;
    unsigned way = draw() % 6;
    for (uint64_t i = 0; i < n; i++) {
        bytes[i] = orderly ? twos[draw() % sizeof twos] : (uint8_t)draw();
        if (way == 0)
            bytes[i] = draw() % 2 ? 0xff : 0;
        else if (way == 1)
            bytes[i] = i % 4 == 3 ? 0x80 : 0;           /* the lowest of 32 bits */
    }
}

/* Piece by piece, as tile.h says. */
static void define_values(any *a)
{
    const tn_scaled_plan *p = &a->plan;
    size_t most = (size_t)(p->count ? p->piece_rows * p->piece_columns : 0);
    float *y = floats(most);
    tn_tile t = { .tensor_scale = a->tensor_scale, .offset = malloc(most + 1), .meta = malloc(most + 1),
                  .mask = malloc(most + 1),
                  .code = malloc((most + 1) * sizeof *t.code) };
    for (uint64_t b = 0; b < p->batches; b++)
        for (uint64_t k = 0; k < tn_scaled_batch_tiles(p, b); k++)
            for (uint64_t piece = 0; piece < tn_scaled_pieces(p); piece++) {
                tn_scaled_place at = tn_scaled_place_at(p, b, k, piece);
                tn_scaled_get(p, &at, &t);
                tn_tile_decode(a->d, &t, y);
                for (uint64_t r = 0; r < at.rows; r++) {
                    tn_scaled_row row = tn_scaled_row_at(p, &at, r);
                    for (uint64_t i = 0; i < row.n; i++)
                        a->y[row.first + i * p->inner] = y[r * at.columns + i];
                }
            }
    free(y);
    free(t.offset);
    free(t.meta);
    free(t.mask);
    free(t.code);
}

/* False: the datatype does not fit the shape. */
static bool make(any *a, const char *text, uint32_t rank, const int64_t *shape, bool unpacked)
{
    const tn_quantize_options o = { .size = sizeof o, .unpacked = unpacked };
    tn_scaled_shapes shapes;
    tn_error err;
    *a = (any){ .text = text, .d = datatype_of(text) };
    if (tn_scaled_shapes_for(a->d, rank, shape, &shapes, NULL) != TN_OK) {
        tn_datatype_free(a->d);
        return false;
    }
    for (uint32_t i = 0; i < shapes.count; i++) {
        const tn_scaled_part *p = &shapes.parts[i];
        bool plain = unpacked && i == 0;
        CHECK(tn_shape_nbytes(plain ? p->plain_dtype : p->dtype, p->rank, plain ? p->plain_shape : p->shape,
                              &a->size[i]) == TN_OK);
        a->part[i] = malloc(a->size[i] ? (size_t)a->size[i] : 1);
        assert_non_null(a->part[i]);
        fill(a->part[i], a->size[i], p->role);
    }
    if (tn_scaled_plan_make(&a->plan, a->d, rank, shape, &o, (void *const *)a->part, &err) != TN_OK)
        fail_msg("%s: %s", text, line_of(&err));
    a->tensor_scale = tn_scaled_tensor_scale(&a->plan);
    a->y = floats(a->plan.count);
    define_values(a);
    return true;
}

static void unmake(any *a)
{
    for (size_t i = 0; i < PARTS; i++)
        free(a->part[i]);
    free(a->y);
    tn_datatype_free(a->d);
}

/* --- comparing ------------------------------------------------------------------------------ */

static void compare(const any *a, const float *y, uint64_t first, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&y[i], &a->y[first + i], sizeof *y))
            fail_msg("%s%s, %s: element %llu of %llu is %a but the definition says %a", a->text,
                     a->plan.o.unpacked ? " unpacked" : "", what, (unsigned long long)(first + i),
                     (unsigned long long)a->plan.count, (double)y[i], (double)a->y[first + i]);
}

static void compare_window(const any *a, const tn_decode_kernels *k, uint64_t first, size_t n)
{
    size_t lead = draw() % 16;          /* floats that y lies beyond the beginning of a line, or so */
    float *y = floats(lead + n);
    tn_scaled_values_with(k, &a->plan, a->tensor_scale, first, n, y + lead, draw() % 2);
    compare(a, y + lead, first, n, "a window");
    free(y);
}

static uint8_t *at_byte(const tn_scaled_plan *p, unsigned field, uint64_t row, uint64_t column)
{
    return p->fields[field].data ? p->fields[field].data + tn_scaled_byte_at(p, field, row, column) : NULL;
}

/* Some whole tiles of each row, as the walk over tensors asks for them. */
static void compare_tiles(const any *a, const tn_decode_kernels *k)
{
    const tn_scaled_plan *p = &a->plan;
    uint64_t tiles = p->columns / p->tile_columns;
    if (!tn_scaled_decoder(p) || tiles == 0 || p->tile_rows != 1)
        return;
    for (uint64_t row = 0; row < p->outer * p->rows; row++) {
        uint64_t from = draw() % tiles / 8 * 8, count = tiles - from, column = from * p->tile_columns;
        float *y = floats(count * p->tile_columns);
        tn_tiles t = {
            .count = (size_t)count, .size = (size_t)p->tile_columns, .tensor_scale = a->tensor_scale, .y = y,
            .data = at_byte(p, 0, row, column), .scale = at_byte(p, 1, row, column),
            .zero = at_byte(p, 2, row, column),
            .offset = at_byte(p, 3, row, column), .meta = at_byte(p, 4, row, column),
            .mask = at_byte(p, 5, row, column),
        };
        tn_scaled_decode_with(k, p, &t);
        compare(a, y, row * p->columns + column, t.count * t.size, "tiles");
        free(y);
    }
}

/* Some of one tile, from a column on at which its data begin on a byte. */
static void compare_piece(const any *a, const tn_decode_kernels *k)
{
    const tn_scaled_plan *p = &a->plan;
    if (!tn_scaled_decoder(p) || a->d->subtile || a->d->of)
        return;
    uint64_t most = p->tile_columns < p->columns ? p->tile_columns : p->columns,
             column = draw() % most / 8 * 8;
    float *y = floats(most - column);
    tn_tiles t = {
        .count = 1, .size = (size_t)(most - column), .tensor_scale = a->tensor_scale, .y = y,
        .data = at_byte(p, 0, 0, column),
        .scale = at_byte(p, 1, 0, 0), .zero = at_byte(p, 2, 0, 0), .meta = at_byte(p, 4, 0, 0),
    };
    tn_scaled_decode_with(k, p, &t);
    compare(a, y, column, t.size, "a piece");
    free(y);
}

static void check(const char *text, uint32_t rank, const int64_t *shape, bool unpacked, unsigned windows)
{
    tn_decode_kernels kernels[LEVELS];
    unsigned levels = make_levels(kernels);
    any a;
    if (!make(&a, text, rank, shape, unpacked))
        return;
    for (unsigned k = 0; k < levels; k++) {
        compare_window(&a, &kernels[k], 0, (size_t)a.plan.count);
        for (unsigned i = 0; i < windows && a.plan.count; i++) {
            uint64_t first = draw() % a.plan.count, most = a.plan.count - first;
            compare_window(&a, &kernels[k], first,
                           (size_t)(draw() % (i % 2      ? most + 1
                                              : most < 9 ? most + 1
                                                         : 9)));
        }
        if (a.plan.count) {
            compare_tiles(&a, &kernels[k]);
            compare_piece(&a, &kernels[k]);
        }
    }
    unmake(&a);
}

/* --- datatypes and shapes ------------------------------------------------------------------- */

static const struct { uint32_t rank; int64_t shape[4]; } shapes[] = {
    { 0, { 0 } }, { 1, { 1 } }, { 1, { 7 } }, { 1, { 64 } }, { 1, { 1000 } }, { 2, { 3, 32 } },
    { 2, { 5, 45 } }, { 2, { 64, 12 } },
    { 2, { 33, 1 } }, { 2, { 2, 600 } }, { 3, { 2, 40, 9 } }, { 3, { 3, 1, 70 } }, { 4, { 2, 3, 34, 5 } },
    { 4, { 1, 16, 16, 1 } },
    { 3, { 2, 128, 1 } }, { 4, { 1, 70, 3, 1 } }, { 1, { 0 } }, { 2, { 4, 0 } }, { 2, { 0, 4 } },
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void check_shapes(const char *text)
{
    for (size_t i = 0; i < SHAPES; i++)
        for (int unpacked = 0; unpacked < 2; unpacked++)
            check(text, shapes[i].rank, shapes[i].shape, unpacked, 6);
}

static void every_named_datatype_has_the_values_of_the_definition(void)
{
    for (size_t i = 0; tiles_at(i); i++)
        check_shapes(tiles_at(i)->text);
}

/* Tiles and subtiles of all sizes on all dimensions, all widths, numbers that kernels do not know. */
static const char *const others[] = {
    "e2m1fnuz|e8m0_t2", "int3|e5m0_t4", "e2m3fnuz|e5m0_t8", "int2|e3m0_t2", "int7|float32_t16",
    "e3m3|e4m3fn_t64", "e5m1fnuz|e6m0_t128", "int4|e8m0_t1024", "e4m3fn|e8m0_t512", "int6|float16_t0",
    "e2m2fn|float16_t0d0", "int5|e4m0_t0d1", "int4|e8m0_t32d0", "e2m1fnuz|e8m0_t32d1", "e4m3fn|float32_t16d0",
    "e2m3fnuz|e5m0_t4d1", "uint4|float16_int4_t32d0", "uint3|e4m3_int3_t2d1", "uint5|e5m6_e4m3_t8d0",
    "int8|e8m0_t16s2o1d0", "int5|e8m0_t16s2o1d1", "e2m1fnuz|e8m0_t32s8o2d0", "e2m1fnuz|e8m0_t32_t16s4o1",
    "int4|e8m0_t2_t16s2o2", "e2m1fnuz|e8m0_t4_t8", "e2m1fnuz|e5m0_t2_t0", "int3|e5m0_t0_t4",
    "e3m2fnuz|e4m3_t4d0_t4d1", "int8|float32_t16d0_t2d1", "e2m1fnuz|multi_float32_e4m3fn_t16d0",
    "e4m3fn|multi_float32_float16_t8", "uint8|float32_int32_t32", "uint4|float16_int31_t16",
    "uint16|float32_int16_t4", "uint2|bfloat16_float32_t2", "uint7|float32_int24_t64",
    "e5m2b130fnuz|e8m0_t32", "e4m3b140fn|float32_t8d0", "e5m3b131|e8m0_t16s4o2", "e3m2|e8m0_t8",
    "e4m3inuz|float16_t32", "e2m3inuz|e8m0_t32", "e8m7|float32_t16", "e5m10|e8m0_t8", "e7m8fnuz|e5m0b20_t32",
    "int16|e8m0_t32", "int12|e8m0_t8s2o1", "int9|float32_t64", "e1m6b0fnuz|e8m0_t32", "e4m3fn|e8m0b149_t4",
    "e2m1fnuz|e7m0b140_t4s2o2", "e3m4|e6m2b100_t16", "e4m3|float32_t32",
    "e5m2|e8m0_t64", "e5m2fn|e8m0_t64", "e5m2inuz|float32_t32", "e3m3|float32_t16", "e2m3|e8m0_t32",
    "e5m1|float32_t16", "e4m3b10|float32_t64", "e5m2b126|float32_t32",
    "cb42f1346_e2m3fnuz|e8m0_t32s8d0",
    "cb42f1346_e2m3fnuz|e8m0_t8_t32s8", "cb41fi_e2m2fnuz|e4m3_t0", "cb41f01_e2m2fnuz|float32",
    "cb41f01_e2m2fnuz|e8m0_t32s2", "icb44fi_e2m3fnuz|e8m0_t64s32", "icb44fi_e2m3fnuz|e8m0_t32s16d0",
    "cb31f01_e2m2fnuz|e8m0_t8s4", "cb51f01_e3m3fnuz|e8m0_t32s4", "cb61f01_e3m4fnuz|e8m0_t64",
    "cb42f1346_e2m3fnuz|e8m0_t32s8n2m4", "e2m1fnuz|e8m0_t32n2m4", "int8|e8m0_t32n2m4", "int4|e8m0_t16n1m2",
    "e2m3fnuz|e8m0_t64n4m8", "int3|e5m0_t8n8m16", "int4|float32_t0n3m4", "e4m3fn|e4m3_t0n5m16",
    "int8|e8m0_t2n1m16", "e2m1fnuz|e8m0_t32d0n2m4", "int8|e8m0_t8d1n4m8", "int5|float16_t0d0n7m16",
    "int4|e8m0_t16s4o1n2m4", "int4|e8m0_t16s4o1d0n2m4", "uint4|float16_int8_t32n2m4",
    "e5m2|float32_t32d1n1m4", "int16|e8m0_t16n2m4", "float32|n2m4", "float16|n1m2", "e4m3fn|n2m4d0",
    "e2m1fnuz|n4m8", "bfloat16|n9m16d1",
};

static void every_kind_of_tile_has_the_values_of_the_definition(void)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        check_shapes(others[i]);
}

/* What is gone through in more than one stretch. */
static void long_rows_and_large_tiles_have_the_values_of_the_definition(void)
{
    static const char *const texts[] = {
        "int8|float32", "int4|float32", "e2m1fnuz|e8m0_t0", "uint4|float16_int8_t0", "int8|float32_t0d0",
        "e2m3fnuz|e8m0_t32", "int3|e5m0_t2", "int8|e8m0_t16s2o1", "icb44fi_e2m3fnuz|e8m0_t32s4",
        "e2m1fnuz|e8m0_t32n2m4", "e2m1fnuz|e8m0_t1024n1m16", "e4m3fn|e8m0_t32_t32", "float32", "float32|n2m4",
        "e2m1fnuz", "int8|e8m0_t32n2m4", "int4|e8m0_t32d0",
    };
    static const struct { uint32_t rank; int64_t shape[2]; } large[] = { { 1, { 70001 } }, { 2, { 3, 9000 } },
                                                                         { 2, { 9000, 3 } },
                                                                         { 2, { 33, 1024 } } };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t s = 0; s < sizeof large / sizeof large[0]; s++)
            check(texts[i], large[s].rank, large[s].shape, draw() % 2, 4);
}

/* Parts of which only the bytes that some rows need are at hand. */
static void a_window_of_the_parts_is_enough_for_its_rows(void)
{
    static const char *const texts[] = {
        "e2m1fnuz|e8m0_t32",           "int3|e5m0_t4",          "uint4|float16_int8_t32", "int8|e8m0_t16s2o1",
        "icb44fi_e2m3fnuz|e8m0_t32s4", "e2m1fnuz|e8m0_t32n2m4", "e5m10|float32_t0"
    };
    static const int64_t shape[] = { 5, 77 };
    const tn_decode_kernels *k = tn_decode_kernels_get();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        any a;
        CHECK(make(&a, texts[i], 2, shape, false));
        for (uint64_t row = 0; row < 5; row++) {
            any part = a;
            for (unsigned f = 0; f < TN_SCALED_FIELDS; f++) {
                tn_scaled_field *field = &part.plan.fields[f];
                bool joined = a.plan.columns > 77;      /* all rows are one */
                uint64_t from = joined ? tn_scaled_byte_at(&a.plan, f, 0, row * 77)
                                       : tn_scaled_byte_at(&a.plan, f, row, 0),
                         to = joined ? tn_scaled_byte_at(&a.plan, f, 0, (row + 1) * 77)
                                     : tn_scaled_byte_at(&a.plan, f, row + 1, 0);
                if (field->data)
                    field->data = exact_copy(field->data + from, (size_t)(to - from));
                field->from = from;
            }
            compare_window(&part, k, row * 77, 77);
            compare_window(&part, k, row * 77 + 33, 40);
            for (unsigned f = 0; f < TN_SCALED_FIELDS; f++)
                free(part.plan.fields[f].data);
        }
        unmake(&a);
    }
}

/* --- kernels ----------------------------------------------------------------------------------- */

static void codes_of_every_width_are_unpacked(void)
{
    tn_decode_kernels kernels[LEVELS];
    unsigned levels = make_levels(kernels);
    uint8_t random[200], codes[200 + TN_DECODE_SPARE];
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)draw();
    for (unsigned k = 0; k < levels; k++)
        for (unsigned bits = 1; bits < 8; bits++)
            for (size_t n = 0; n <= 200; n++) {
                uint8_t *packed = exact_copy(random, (size_t)tn_packed_bytes(n, bits));
                kernels[k].unpack(codes, packed, n, bits);
                for (size_t i = 0; i < n; i++)
                    CHECK(codes[i] == tn_packed_get(random, i, bits));
                free(packed);
            }
}

static void masks_of_every_pattern_are_expanded(void)
{
    static const struct { unsigned keep, of; } patterns[] = { { 1, 2 }, { 2, 4 }, { 1, 4 }, { 3, 4 },
                                                              { 4, 8 }, { 7, 8 }, { 8, 16 },
                                                              { 1, 16 }, { 15, 16 } };
    tn_decode_kernels kernels[LEVELS];
    unsigned levels = make_levels(kernels);
    float slots[256 + TN_DECODE_SPARE], expected[200];
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
        slots[i] = (float)(i + 1);
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (size_t n = 0; n <= 200; n++) {
            unsigned keep = patterns[p].keep, of = patterns[p].of;
            tn_decode_groups groups = { keep, of, draw() % 2 };
            uint8_t *mask = malloc(n / 8 + 1), *exact;
            memset(mask, 0, n / 8 + 1);
            /* whole groups that keep as many as they should, but for a few */
            for (size_t i = 0; i < n; i++)
                if (i % of < keep || draw() % 512 == 0)
                    mask[i / 8] |= (uint8_t)(1u << i % 8);
            exact = exact_copy(mask, (n + 7) / 8);
            tn_expand_scalar(expected, slots, mask, n, &groups);
            for (unsigned k = 0; k < levels; k++) {
                float *y = floats(n);
                kernels[k].expand(y, slots, exact, n, &groups);
                CHECK(n == 0 || memcmp(y, expected, n * sizeof *y) == 0);
                free(y);
            }
            free(exact);
            free(mask);
        }
}

static void a_mask_is_full_when_every_group_has_what_it_keeps(void)
{
    CHECK(tn_mask_is_full(UINT64_C(0x3333333333333333), 2, 4));
    CHECK(tn_mask_is_full(UINT64_C(0x9a6c53c3a5965533), 2, 4));
    CHECK(!tn_mask_is_full(UINT64_C(0x3333333333333313), 2, 4));
    CHECK(!tn_mask_is_full(UINT64_C(0x3333373333333313), 2, 4));
    CHECK(tn_mask_is_full(UINT64_C(0xaaaaaaaaaaaaaa55), 1, 2) &&
          !tn_mask_is_full(UINT64_C(0xaaaaaaaaaaaaaa54), 1, 2));
    CHECK(tn_mask_is_full(UINT64_C(0x0ff0f00f55aa33cc), 4, 8) &&
          !tn_mask_is_full(UINT64_C(0x0ff0f00f55aa33cd), 4, 8));
    CHECK(tn_mask_is_full(UINT64_C(0x00ffff000ff0f00f), 8, 16) &&
          !tn_mask_is_full(UINT64_C(0x00ffff000ff0f007), 8, 16));
    CHECK(tn_mask_is_full(UINT64_C(0x7fffbfffeffffffe), 15, 16) && !tn_mask_is_full(UINT64_MAX, 15, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_named_datatype_has_the_values_of_the_definition),
        TEST(every_kind_of_tile_has_the_values_of_the_definition),
        TEST(long_rows_and_large_tiles_have_the_values_of_the_definition),
        TEST(a_window_of_the_parts_is_enough_for_its_rows),
        TEST(codes_of_every_width_are_unpacked),
        TEST(masks_of_every_pattern_are_expanded),
        TEST(a_mask_is_full_when_every_group_has_what_it_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
