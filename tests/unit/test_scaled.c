#include <fenv.h>
#include <math.h>
#include <stdio.h>

#include "support.h"
#include "datatype.h"
#include "random.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "quant/tile.h"

/* Whole tensors: what tiles they are cut into, where codes lie, and that the
 * values of the codes are those of the virtual cast, for every datatype. */

enum { PARTS = 7 };

/* --- a tensor quantized ------------------------------------------------------------ */

typedef struct made {
    tn_datatype     *d;
    tn_array         array;
    uint64_t         count;
    size_t           nbytes;            /* of the tensor */
    tn_scaled_shapes shapes;
    uint8_t         *part[PARTS];       /* exact-size blocks */
    uint64_t         size[PARTS];
    uint8_t         *y;                 /* virtual */
} made;

static uint8_t *block(size_t n)
{
    uint8_t *b = malloc(n ? n : 1);
    assert_non_null(b);
    memset(b, 0xa5, n ? n : 1);
    return b;
}

static void make_parts(made *m, bool unpacked)
{
    for (uint32_t i = 0; i < m->shapes.count; i++) {
        const tn_scaled_part *p = &m->shapes.parts[i];
        bool plain = unpacked && i == 0;
        CHECK(tn_shape_nbytes(plain ? p->plain_dtype : p->dtype, p->rank, plain ? p->plain_shape : p->shape,
                              &m->size[i]) == TN_OK);
        m->part[i] = block((size_t)m->size[i]);
    }
}

static void unmake(made *m)
{
    for (size_t i = 0; i < PARTS; i++)
        free(m->part[i]);
    free(m->y);
    tn_datatype_free(m->d);
}

/* Quantizes, and checks that the codes have the values of the virtual cast. */
static void make(made *m, const char *text, tn_dtype dtype, uint32_t rank, const int64_t *shape,
                 const void *x, const tn_quantize_options *o)
{
    tn_error err;
    uint64_t bytes = 0;
    *m = (made){ .d = datatype_of(text), .array = { dtype, rank, shape, NULL } };
    CHECK(tn_shape_count(rank, shape, &m->count) == TN_OK && tn_array_nbytes(&m->array, &bytes) == TN_OK);
    m->nbytes = (size_t)bytes;
    CHECK(tn_scaled_shapes_for(m->d, rank, shape, &m->shapes, &err) == TN_OK);
    make_parts(m, o->unpacked);
    m->y = block(m->nbytes);
    uint8_t *back = block(m->nbytes);
    if (tn_fake_quantize(m->d, &m->array, x, m->y, o, NULL, &err) != TN_OK)
        fail_msg("%s: %s", text, line_of(&err));
    if (tn_quantize(m->d, &m->array, x, (void *const *)m->part, o, NULL, &err) != TN_OK)
        fail_msg("%s: %s", text, line_of(&err));
    if (tn_dequantize(m->d, &m->array, (const void *const *)m->part, back, o, &err) != TN_OK)
        fail_msg("%s: %s", text, line_of(&err));
    if (memcmp(back, m->y, m->nbytes))
        fail_msg("%s: the values of the codes are not those of the virtual cast (round %d, mode %d)", text,
                 (int)o->round, (int)o->rule);
    free(back);
}

static uint32_t number_of(const made *m, const char *role)
{
    for (uint32_t i = 0; i < m->shapes.count; i++)
        if (strcmp(m->shapes.parts[i].role, role) == 0)
            return i;
    fail_msg("there is no %s", role);
    return 0;
}

static const uint8_t *part_of(const made *m, const char *role, uint64_t size)
{
    uint32_t i = number_of(m, role);
    assert_int_equal(m->size[i], size);
    return m->part[i];
}

/* The only one of a part. */
static uint64_t code_of(const made *m, const char *role)
{
    uint32_t i = number_of(m, role);
    return tn_code_get(m->part[i], 0, tn_dtype_get(m->shapes.parts[i].dtype)->bits);
}

/* --- values --------------------------------------------------------------------------- */

/* Of many sizes, with zeros, ties and, where asked for, infinities. */
static void fill(float *x, size_t n, bool special)
{
    unsigned spread = draw() % 3 == 0 ? 200 : 12;
    int base = (int)(draw() % 40) - 20;
    for (size_t i = 0; i < n; i++) {
        float v = (float)((int)(draw() % 4097) - 2048) / 256;
        x[i] = ldexpf(v, base + (int)(draw() % spread) - (int)spread / 2);
        if (draw() % 16 == 0)
            x[i] = draw() % 2 ? -0.0f : 0;
        if (special && draw() % 64 == 0)
            x[i] = draw() % 2 ? -INFINITY : INFINITY;
    }
    if (n && draw() % 8 == 0)
        memset(x, 0, n / 2 * sizeof *x);
}

static const struct { uint32_t rank; int64_t shape[4]; } shapes[] = {
    { 0, { 0 } }, { 1, { 1 } }, { 1, { 7 } }, { 1, { 64 } }, { 1, { 100 } }, { 2, { 3, 32 } },
    { 2, { 5, 45 } }, { 2, { 64, 12 } },
    { 2, { 33, 1 } }, { 3, { 2, 40, 9 } }, { 3, { 3, 1, 70 } }, { 4, { 2, 3, 34, 5 } },
    { 4, { 1, 16, 16, 1 } },
    { 1, { 0 } }, { 2, { 4, 0 } }, { 2, { 0, 4 } }, { 3, { 2, 0, 3 } },
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], MOST = 2048 };

static const tn_round rounds[] = { TN_ROUND_EVEN, TN_ROUND_AWAY, TN_ROUND_ZERO, TN_ROUND_STOCHASTIC };

static bool fits(const char *text, size_t i)
{
    tn_datatype *d = datatype_of(text);
    tn_scaled_shapes s;
    bool yes = tn_scaled_shapes_for(d, shapes[i].rank, shapes[i].shape, &s, NULL) == TN_OK;
    tn_datatype_free(d);
    return yes;
}

/* Option 3 looks at the bits of a mantissa, some of which fn and inuz do not have. */
static bool is_idempotent(const tn_datatype *d, tn_scale_rule mode)
{
    bool exponent = d->scope == TN_SCOPE_NONE || d->scale.kind == TN_NUMBER_EXPONENT;
    bool lost = d->number.infnan == TN_INFNAN_FN || d->number.infnan == TN_INFNAN_INUZ;
    return exponent && d->number.kind != TN_NUMBER_CODEBOOK && !(lost && mode == TN_SCALE_OPTION3);
}

/* What was quantized once stays as it is: 0 may lose its sign. */
static void check_again(const made *m, const char *text, const tn_quantize_options *o)
{
    uint8_t *again = block(m->nbytes);
    CHECK(tn_fake_quantize(m->d, &m->array, m->y, again, o, NULL, NULL) == TN_OK);
    for (uint64_t i = 0; i < m->count; i++) {
        float a, b;
        memcpy(&a, m->y + 4 * i, sizeof a);
        memcpy(&b, again + 4 * i, sizeof b);
        if (a != b && !isinf(a))
            fail_msg("%s: %a is %a the second time (round %d, mode %d)", text, (double)a, (double)b,
                     (int)o->round, (int)o->rule);
    }
    free(again);
}

/* One datatype with one shape, options by chance. */
static void try_one(const char *text, size_t shape, const float *x)
{
    tn_quantize_options o = { .size = sizeof o, .round = rounds[draw() % 4],
                            .rule = (tn_scale_rule)(draw() % 5), .seed = draw(),
                            .jobs = 1 + draw() % 2, .unpacked = draw() % 4 == 0 };
    made a, b;
    if (draw() % 12 == 0)
        o.rule = TN_SCALE_MSE;          /* is slow */
    make(&a, text, TN_FLOAT32, shapes[shape].rank, shapes[shape].shape, x, &o);
    if (is_idempotent(a.d, o.rule))
        check_again(&a, text, &o);
    o.jobs = 4;
    make(&b, text, TN_FLOAT32, shapes[shape].rank, shapes[shape].shape, x, &o);
    for (uint32_t i = 0; i < a.shapes.count; i++)
        CHECK(a.size[i] == b.size[i] && memcmp(a.part[i], b.part[i], (size_t)a.size[i]) == 0);
    unmake(&a);
    unmake(&b);
}

/* With every `step`-th shape. */
static void try_shapes(const char *text, size_t first, size_t step)
{
    float x[MOST];
    for (size_t i = first; i < SHAPES; i += step) {
        if (!fits(text, i))
            continue;
        fill(x, MOST, draw() % 2);
        try_one(text, i, x);
    }
}

static void every_name_gives_the_values_of_its_codes(void)
{
    for (size_t i = 0; tiles_at(i); i++)
        try_shapes(tiles_at(i)->name, i % 3, 3);
}

static void every_recipe_gives_the_values_of_its_codes(void)
{
    static const char *const texts[] = {
        "e2m1fnuz|e8m0_t32d0", "int5|e4m0_t4d0", "e3m2fnuz|e5m0_t8d1", "uint3|float16_int4_t16d0",
        "uint7|e5m6_int3_t2", "int4|e8m0_t4_t8", "e2m1fnuz|e5m3_t0_t4", "int6|float32_t4_t0",
        "uint4|float16_float16_t2d0_t2d1", "e4m3fn|e8m0_t16_t16", "int8|float32_t0d0",
        "e2m1fnuz|bfloat16_t0d1", "uint5|float32_int8_t0", "int12|e8m0_t8", "uint16|float32_int16_t4",
        "e2m1fnuz|e8m0_t4n2m4", "int3|e8m0_t2d0n1m2", "uint8|float32_int8_t16n8m16", "e2m3fnuz|e8m0_t0n2m4",
        "int4|e5m0_t2n1m4", "e4m3fn|multi_float32_e4m3fn_t16", "e2m1fnuz|multi_float32_e5m3_t0",
        "int8|e8m0_t16s2o1d0", "e2m1fnuz|e6m0_t8s4o2", "int5|e8m0_t4_t8s2o1", "e2m1fnuz|e8m0_t8s4o1n2m4",
        "icb44fi_e2m3fnuz|float32", "cb42f1346_e2m3fnuz|e8m0_t4_t8s4", "icb44fi_e3m2fnuz|e5m3_t8s2d0",
        "cb41fi_e2m2fnuz|e8m0_t16s4n2m4", "cb31ie_int5|e8m0_t16s2", "icb42f_e3m2fnuz|bfloat16_t0",
        "bfloat16|e8m0_t4", "float16|float32", "int16|float32_t2", "e3m0fnuz|e8m0_t8", "float24", "float32",
        "e3m3fnuz", "e7m8b63", "int2|e8m0_t4", "uint1|float32_float32_t8", "e1m2fnuz|e8m0_t4",
        "e4m2b20fn|e8m0_t4", "e3m1|e8m0_t8", "e2m3|e5m0_t8", "e3m2fn|float16_t8", "e5m1inuz|e8m0_t8",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        try_shapes(texts[i], 0, 1);
}

/* --- large groups ------------------------------------------------------------------------ */

/* A group that is cut into pieces is one tile all the same. */
static void check_large(const char *text, tn_quantize_options o, uint32_t rank, const int64_t *shape,
                        const float *x)
{
    made m;
    o.size = sizeof o;
    o.jobs = 3;
    make(&m, text, TN_FLOAT32, rank, shape, x, &o);
    size_t n = (size_t)m.count, bad;
    uint64_t *index = malloc(n * sizeof *index);
    uint32_t *code = malloc(n * sizeof *code);
    float *y = malloc(n * sizeof *y);
    uint8_t meta;
    tn_tile t = { .x = x, .n = n, .index = index, .tensor_scale = 1, .code = code, .meta = &meta };
    assert_non_null(index);
    assert_non_null(code);
    assert_non_null(y);
    for (size_t i = 0; i < n; i++)
        index[i] = i;
    CHECK(tn_tile_encode(m.d, &o, &t, &bad) == TN_OK);
    tn_tile_decode(m.d, &t, y);
    if (memcmp(y, m.y, n * sizeof *y) || code_of(&m, "scale") != t.scale)
        fail_msg("%s: in pieces it is another tile", text);
    free(index);
    free(code);
    free(y);
    unmake(&m);
}

static tn_quantize_options by_chance(tn_scale_rule mode)
{
    return (tn_quantize_options){ .rule = mode, .round = TN_ROUND_STOCHASTIC, .seed = draw() };
}

static void large_groups_are_one_tile(void)
{
    const int64_t row[] = { 1, 70003 }, rows[] = { 1003, 71 }, vector[] = { 70003 };
    size_t n = 71213;
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int)(draw() % 4001) - 2000) / 1000 * (float)(draw() % 1000);
    for (int i = 0; i < 4; i++)
        check_large("int4|e5m3", by_chance(TN_SCALE_MAX), 2, rows, x);           /* whose scale is rounded by chance */
    check_large("e2m1fnuz|e8m0", by_chance(TN_SCALE_MIDMAX), 1, vector, x);
    check_large("uint3|float32_int4", by_chance(TN_SCALE_MSE), 1, vector, x);
    check_large("e2m3fnuz|e8m0_t0", by_chance(TN_SCALE_MAX), 2, row, x);
    check_large("cb42f1346_e2m3fnuz|float32", by_chance(TN_SCALE_MAX), 2, rows, x);
    check_large("cb41fi_e2m2fnuz|e8m0", by_chance(TN_SCALE_MSE), 1, vector, x);
    free(x);
}

/* The exponent that the range asks for, and one more: 64, 32 and 32.25 steps are as far from a whole number
 * as 32, 16 and 16.125 of two.  One less has no 128. */
static void of_equal_errors_the_first_choice_is_kept(void)
{
    enum { COUNT = 70000, TILE = 32, FIRST = 127, TILES = (COUNT + TILE - 1) / TILE };
    static const float near[] = { 0.5f, 0.5f + 0x1p-8f };       /* errors of 0, and others */
    static const char *const groups[] = { "int8|e8m0", "int8|e8m0_t0", "cb41fi_e2m2fnuz|e8m0", "int8|float32",
                                          "uint8|float32_int8" };
    static float x[COUNT];
    const int64_t shape[] = { COUNT };
    const tn_quantize_options o = { .size = sizeof o, .rule = TN_SCALE_MSE };
    made m;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < COUNT; i++)
            x[i] = i % 3 == 0 ? i % 2 ? -1 : 1 : i % 3 == 1 ? 0.5f : near[k];
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
            check_large(groups[i], o, 1, shape, x);
        make(&m, "int8|e8m0", TN_FLOAT32, 1, shape, x, &o);
        CHECK(code_of(&m, "scale") == FIRST);
        unmake(&m);
        make(&m, "int8|e8m0_t32", TN_FLOAT32, 1, shape, x, &o);
        const uint8_t *scale = part_of(&m, "scale", TILES);
        for (size_t i = 0; i < TILES; i++)
            CHECK(scale[i] == FIRST);
        unmake(&m);
    }
}

static void large_tiles_of_every_kind_give_the_values_of_their_codes(void)
{
    static const char *const texts[] = { "int4|e8m0_t0d0", "e2m3fnuz|float16_t0d0", "int5|e5m0_t0_t4",
                                         "uint6|float32_int8_t8_t0",
                                         "e2m1fnuz|e8m0_t0d0n2m4", "int4|e8m0_t0n2m4" };
    static const int64_t sizes[][2] = { { 70001, 2 }, { 2, 70001 }, { 1100, 70 } };
    size_t n = 140002;
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    fill(x, n, true);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t k = 0; k < 3; k++) {
            tn_quantize_options o = { .size = sizeof o, .jobs = 1 };
            made a, b;
            make(&a, texts[i], TN_FLOAT32, 2, sizes[k], x, &o);
            o.jobs = 4;
            make(&b, texts[i], TN_FLOAT32, 2, sizes[k], x, &o);
            for (uint32_t p = 0; p < a.shapes.count; p++)
                CHECK(memcmp(a.part[p], b.part[p], (size_t)a.size[p]) == 0);
            unmake(&a);
            unmake(&b);
        }
    }
    const int64_t small[] = { 300, 70 };
    made m;
    make(&m, "int3|e8m0_t256_t512s16o1", TN_FLOAT32, 2, small, x,
         &(tn_quantize_options){ .size = sizeof(tn_quantize_options) });
    unmake(&m);
    make(&m, "cb42f1346_e2m3fnuz|e8m0_t512_t256s256", TN_FLOAT32, 2, small, x,
         &(tn_quantize_options){ .size = sizeof(tn_quantize_options) });
    unmake(&m);
    free(x);
}

static void check_nan_as_zero(const char *text, const float *x, const float *zeroed, int64_t rows,
                              int64_t columns)
{
    const tn_quantize_options o = { .size = sizeof o, .jobs = 2, .nan = TN_NAN_ZERO };
    const int64_t shape[] = { rows, columns };
    tn_quantize_stats r, s;
    made a, b;
    make(&a, text, TN_FLOAT32, 2, shape, x, &o);
    make(&b, text, TN_FLOAT32, 2, shape, zeroed, &o);
    for (uint32_t p = 0; p < a.shapes.count; p++)
        if (memcmp(a.part[p], b.part[p], (size_t)a.size[p]))
            fail_msg("%s: another %s", text, a.shapes.parts[p].role);
    memcpy(a.part[0] = realloc(a.part[0], a.nbytes), x, a.nbytes);
    CHECK(tn_fake_quantize(a.d, &a.array, a.part[0], a.part[0], &o, &r, NULL) == TN_OK);
    CHECK(tn_fake_quantize(b.d, &b.array, zeroed, b.y, &o, &s, NULL) == TN_OK);
    if (memcmp(a.part[0], b.y, b.nbytes) || memcmp(&r, &s, sizeof r))
        fail_msg("%s: other values, or %llu of %llu reported", text, (unsigned long long)r.values,
                 (unsigned long long)s.values);
    unmake(&a);
    unmake(&b);
}

/* The definition takes over where some rows of a piece were made the fast way. */
static void a_nan_in_a_group_is_as_good_as_zero(void)
{
    static const char *const texts[] = { "int4|float32", "int8|e5m0", "int4|e6m0", "uint8|float16_int4",
                                         "e2m3fnuz|float16", "int4|e5m0_t0",
                                         "mxfp4", "int4_b32", "mx6", "int3|e5m0_t2", "icb44fi2_e32s8" };
    enum { ROWS = 300, COLUMNS = 301, COUNT = ROWS * COLUMNS };
    float *x = malloc(2 * COUNT * sizeof *x), *zeroed = x + COUNT;
    assert_non_null(x);
    for (size_t i = 0; i < COUNT; i++) {
        zeroed[i] = i % 20011 == 20010 ? 0 : (float)((int)(draw() % 4001) - 2000) / 1000;
        x[i] = i % 20011 == 20010 ? NAN : zeroed[i];
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_nan_as_zero(texts[i], x, zeroed, ROWS, COLUMNS);
        check_nan_as_zero(texts[i], x, zeroed, 1, COUNT);
    }
    free(x);
}

/* --- where codes lie ------------------------------------------------------------------------ */

static const tn_quantize_options one_job = { .size = sizeof one_job, .jobs = 1 };

static void codes_fill_rows_from_the_lowest_bit(void)
{
    const int64_t shape[] = { 2, 3 };
    const float x[] = { 1, -2, 4, 0.5f, 6, -6 };
    made m;
    make(&m, "e2m1fnuz|e8m0_t32", TN_FLOAT32, 2, shape, x, &one_job);
    CHECK(memcmp(part_of(&m, "data", 4), (uint8_t[]){ 0xc2, 0x06, 0x71, 0x0f }, 4) == 0);
    CHECK(memcmp(part_of(&m, "scale", 2), (uint8_t[]){ 127, 127 }, 2) == 0);
    unmake(&m);
    make(&m, "e2m3fnuz|e8m0", TN_FLOAT32, 2, shape, x, &one_job);      /* 010000? 1: e 1 m 0 = 8; -2: 0x30; 4: 0x18 */
    CHECK(memcmp(part_of(&m, "data", 6), (uint8_t[]){ 0x08, 0x8c, 0x01, 0x04, 0xc7, 0x03 }, 6) == 0);
    CHECK(memcmp(part_of(&m, "scale", 1), (uint8_t[]){ 127 }, 1) == 0);
    unmake(&m);
    tn_quantize_options o = one_job;
    o.unpacked = true;
    make(&m, "e2m1fnuz|e8m0_t32", TN_FLOAT32, 2, shape, x, &o);
    CHECK(memcmp(part_of(&m, "data", 6), (uint8_t[]){ 2, 0xc, 6, 1, 7, 0xf }, 6) == 0);
    unmake(&m);
}

static void scales_of_columns_are_packed_along_them(void)
{
    const int64_t shape[] = { 6, 2 };                   /* three tiles of two along the first dimension */
    const float x[] = { 1, 2, 0, 0, 4, 8, 0, 0, 16, 32, 0, 0 };
    made m;
    make(&m, "int4|e5m0_t2d0", TN_FLOAT32, 2, shape, x, &one_job);
    /* column 0: 15 17 19, column 1: 16 18 20: 01111 10001 10011 from the lowest bit */
    CHECK(memcmp(part_of(&m, "scale", 4), (uint8_t[]){ 0x2f, 0x50, 0x4e, 0x52 }, 4) == 0);
    CHECK(memcmp(part_of(&m, "data", 6), (uint8_t[]){ 0x44, 0, 0x44, 0, 0x44, 0 }, 6) == 0);
    unmake(&m);
}

static void subtiles_begin_on_a_byte_for_each_tile(void)
{
    const int64_t shape[] = { 16 };
    const float x[] = { 8, 0, 1, 0, 2, 0, 4, 0, 1, 0, 1, 0, 0.5f, 0, 0.25f, 0 };
    made m;
    make(&m, "int8|e8m0_t8s2o2", TN_FLOAT32, 1, shape, x, &one_job);
    CHECK(memcmp(part_of(&m, "offset", 2), (uint8_t[]){ 0 | 3 << 2 | 2 << 4 | 1 << 6,
                                                        0 | 0 << 2 | 1 << 4 | 2 << 6 }, 2) == 0);
    unmake(&m);
    const float c[] = { 7, 5, 5, 7, 6, 1.5f, 0.5f, 4, 7, 5, 1, 1, 0, 0, 0, 0 };
    make(&m, "cb41fi_e2m2fnuz|e8m0_t8s4", TN_FLOAT32, 1, shape, c, &one_job);
    CHECK(memcmp(part_of(&m, "meta", 2), (uint8_t[]){ 1, 1 }, 2) == 0);
    unmake(&m);
}

static void masks_are_bits_and_slots_are_packed(void)
{
    const int64_t shape[] = { 1, 10 };
    const float x[] = { 1, -6, 0, 2, 0, 0, 0, 3, 0.5f, 1 };
    made m;
    make(&m, "e2m1fnuz|e8m0_t32n2m4", TN_FLOAT32, 2, shape, x, &one_job);
    CHECK(memcmp(part_of(&m, "mask", 2), (uint8_t[]){ 0x9a, 0x03 }, 2) == 0);       /* 1 3, 4 7, 8 9 */
    CHECK(memcmp(part_of(&m, "data", 3), (uint8_t[]){ 0x4f, 0x50, 0x21 }, 3) == 0);
    unmake(&m);
    make(&m, "e2m1fnuz|e8m0_t32d0n2m4", TN_FLOAT32, 2, (int64_t[]){ 10, 1 }, x, &one_job);     /* rows of one */
    CHECK(memcmp(part_of(&m, "mask", 2), (uint8_t[]){ 0x9a, 0x03 }, 2) == 0);
    CHECK(memcmp(part_of(&m, "data", 6), (uint8_t[]){ 0xf, 4, 0, 5, 1, 2 }, 6) == 0);
    unmake(&m);
    tn_quantize_options o = one_job;
    o.unpacked = true;
    make(&m, "e2m1fnuz|e8m0_t32n2m4", TN_FLOAT32, 2, shape, x, &o);
    CHECK(memcmp(part_of(&m, "data", 10), (uint8_t[]){ 0, 0xf, 0, 4, 0, 0, 0, 5, 1, 2 }, 10) == 0);
    unmake(&m);
}

static void matrix_tiles_are_in_rows(void)
{
    const int64_t shape[] = { 3, 3 };
    const float x[] = { 4, 0, 1, 0, 2, 0, 0.5f, 0, 0 };
    made m;
    make(&m, "e2m1fnuz|e8m0_t2_t2", TN_FLOAT32, 2, shape, x, &one_job);
    CHECK(memcmp(part_of(&m, "scale", 4), (uint8_t[]){ 127, 125, 124, 0 }, 4) == 0);
    unmake(&m);
}

static void a_tensor_with_blocks_has_a_scale_of_its_own(void)
{
    const int64_t shape[] = { 2, 16 }, none[] = { 0, 16 };
    float x[32] = { 0 }, t;
    made m;
    x[3] = -2688;
    x[20] = 6;
    make(&m, "nvfp4", TN_FLOAT32, 2, shape, x, &one_job);
    memcpy(&t, part_of(&m, "tscale", 4), sizeof t);
    CHECK(t == 1);
    CHECK(memcmp(part_of(&m, "scale", 2), (uint8_t[]){ 0x7e, 0x38 }, 2) == 0);
    unmake(&m);
    make(&m, "nvfp4", TN_FLOAT32, 2, none, x, &one_job);
    memcpy(&t, part_of(&m, "tscale", 4), sizeof t);
    CHECK(t == 1);
    unmake(&m);
}

static void a_table_of_one_mapping_has_no_meta(void)
{
    static const char json[] = "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.5,1,1.5,2,3,4,6]]}";
    static const char *const scales[] = { "e8m0_t4", "float32" };
    const int64_t shape[] = { 4 };
    const tn_array array = { TN_FLOAT32, 1, shape, NULL };
    const float x[] = { 6, -0.6f, 1.3f, 0 };
    for (size_t i = 0; i < 2; i++) {
        tn_datatype *d;
        uint8_t data[2], scale[4];
        float y[4], z[4];
        CHECK(tn_datatype_codebook(json, strlen(json), scales[i], &d, NULL) == TN_OK);
        CHECK(tn_fake_quantize(d, &array, x, y, &one_job, NULL, NULL) == TN_OK);
        CHECK(tn_quantize(d, &array, x, (void *[]){ data, scale }, &one_job, NULL, NULL) == TN_OK);
        CHECK(tn_dequantize(d, &array, (const void *[]){ data, scale }, z, &one_job, NULL) == TN_OK);
        CHECK(memcmp(y, z, sizeof y) == 0);
        CHECK(i || (data[0] == 0x97 && data[1] == 0x03 && y[0] == 6 && y[1] == -0.5f && y[2] == 1.5f));
        tn_datatype_free(d);
    }
}

static void chance_goes_by_the_element_not_the_tile(void)
{
    static const char *const texts[] = { "int4|e8m0", "int4|e8m0_t4", "int4|e8m0_t4d0", "int4|e8m0_t2_t8",
                                         "int4|e8m0_t0d1" };
    const int64_t shape[] = { 8, 9, 10 };
    const tn_quantize_options o = { .size = sizeof o, .round = TN_ROUND_STOCHASTIC, .seed = 7, .jobs = 2 };
    float x[720];
    made first, m;
    for (size_t i = 0; i < 720; i++)
        x[i] = 1 + (float)(draw() % 700) / 1000;        /* one exponent for all */
    make(&first, texts[0], TN_FLOAT32, 3, shape, x, &o);
    for (size_t i = 1; i < sizeof texts / sizeof texts[0]; i++) {
        make(&m, texts[i], TN_FLOAT32, 3, shape, x, &o);
        CHECK(memcmp(m.y, first.y, sizeof x) == 0);
        unmake(&m);
    }
    unmake(&first);
}

/* --- types, addresses, environment ------------------------------------------------------------ */

static void every_float_type_goes_through_float32(void)
{
    static const tn_dtype types[] = { TN_FLOAT64, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2,
                                      TN_FLOAT6_E3M2,
                                      TN_FLOAT4_E2M1, TN_TF32 };
    static const char *const texts[] = { "mxfp4", "int4|bfloat16_t32", "uint4|float16_int8_t8d0",
                                         "e4m3fn|float32", "float16" };
    const int64_t shape[] = { 7, 45 };
    tn_array f32 = { TN_FLOAT32, 2, shape, NULL };
    float x[315], y[315];
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            tn_array other = { types[k], 2, shape, NULL };
            uint8_t source[315 * 8], expected[315 * 8] = { 0 };
            uint64_t bytes;
            made m;
            fill(x, 315, false);
            CHECK(tn_array_nbytes(&other, &bytes) == TN_OK);
            CHECK(tn_cast(&other, source, &f32, x, TN_HOST_ORDER,
                          &(tn_cast_options){ .size = sizeof(tn_cast_options),
                          .overflow = TN_OVERFLOW_SATURATE }, NULL) == TN_OK);
            CHECK(tn_cast(&f32, x, &other, source, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            make(&m, texts[i], types[k], 2, shape, source, &one_job);
            CHECK(tn_fake_quantize(m.d, &f32, x, y, &one_job, NULL, NULL) == TN_OK);
            CHECK(tn_cast(&other, expected, &f32, y, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            CHECK(memcmp(expected, m.y, (size_t)bytes) == 0);
            /* in place */
            CHECK(tn_fake_quantize(m.d, &other, source, source, &one_job, NULL, NULL) == TN_OK);
            CHECK(memcmp(expected, source, (size_t)bytes) == 0);
            unmake(&m);
        }
    }
}

static void odd_addresses_are_as_good_as_any(void)
{
    const int64_t shape[] = { 3, 50 };
    float x[150];
    fill(x, 150, true);
    uint8_t *odd = block(sizeof x + 1), *out = block(sizeof x + 1);
    memcpy(odd + 1, x, sizeof x);
    made m;
    make(&m, "uint4|e5m6_int4_t32", TN_FLOAT32, 2, shape, x, &one_job);
    uint8_t *part[PARTS] = { NULL };
    for (uint32_t i = 0; i < m.shapes.count; i++)
        part[i] = block((size_t)m.size[i] + 1) + 1;
    CHECK(tn_quantize(m.d, &m.array, odd + 1, (void *const *)part, &one_job, NULL, NULL) == TN_OK);
    CHECK(tn_dequantize(m.d, &m.array, (const void *const *)part, out + 1, &one_job, NULL) == TN_OK);
    CHECK(memcmp(out + 1, m.y, sizeof x) == 0);
    for (uint32_t i = 0; i < m.shapes.count; i++)
        free(part[i] - 1);
    free(odd);
    free(out);
    unmake(&m);
}

static void the_callers_environment_does_not_matter(void)
{
    static const char *const texts[] = { "int4|float16", "nvfp4", "uint4|float32_int4_t32",
                                         "icb44fi_e2m3fnuz|e5m3_t32", "mxfp4" };
    const int64_t shape[] = { 3, 50 };
    float x[150], y[150];
    fill(x, 150, false);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        made m;
        make(&m, texts[i], TN_FLOAT32, 2, shape, x, &one_job);
        fesetround(FE_UPWARD);
        tn_status status = tn_fake_quantize(m.d, &m.array, x, y, &one_job, NULL, NULL);
        fesetround(FE_TONEAREST);
        CHECK(status == TN_OK && memcmp(y, m.y, sizeof y) == 0);
        unmake(&m);
    }
}

/* --- what is refused, what is reported ---------------------------------------------------------- */

static void check_refused(const char *text, const tn_array *array, const float *x, const tn_quantize_options *o,
                          tn_status expected, const char *words)
{
    tn_datatype *d = datatype_of(text);
    float y[64];
    tn_error err;
    tn_status status = tn_fake_quantize(d, array, x, y, o, NULL, &err);
    if (status != expected || !strstr(line_of(&err), words))
        fail_msg("%s: status %d: %s", text, (int)status, status ? line_of(&err) : "");
    tn_datatype_free(d);
}

static void what_makes_no_sense_is_refused(void)
{
    const int64_t shape[] = { 2, 32 }, stride[] = { 1, 2 };
    const tn_array good = { TN_FLOAT32, 2, shape, NULL };
    float x[64] = { 0 };
    x[40] = NAN;
    check_refused("mxfp4", &good, x, &one_job, TN_ERR_LOSS,
                  "element [1, 8] is nan, and e2m1fnuz has no NaN (nan zero)");
    check_refused("mxfp8", &good, x, &(tn_quantize_options){ .size = sizeof one_job, .nan = TN_NAN_ERROR },
                  TN_ERR_LOSS,
                  "element [1, 8] is nan, which the NaN mode refuses");
    check_refused("int4|float16", &good, x, &one_job, TN_ERR_LOSS, "element [1, 8]");
    check_refused("mxfp4", &(tn_array){ TN_INT8, 2, shape, NULL }, x, &one_job, TN_ERR_ARGUMENT,
                  "float type");
    check_refused("mxfp4", &(tn_array){ TN_FLOAT8_E8M0, 2, shape, NULL }, x, &one_job, TN_ERR_ARGUMENT,
                  "float type");
    check_refused("mxfp4", &(tn_array){ TN_FLOAT32, 2, shape, stride }, x, &one_job, TN_ERR_ARGUMENT,
                  "dense");
    check_refused("mxfp4", &(tn_array){ TN_FLOAT32, 0, NULL, NULL }, x, &one_job, TN_ERR_ARGUMENT, "rank");
    check_refused("mxfp4", &good, NULL, &one_job, TN_ERR_ARGUMENT, "no data");
    check_refused("mxfp4", &good, x, &(tn_quantize_options){ .size = sizeof one_job, .round = TN_ROUND_TRUNC },
                  TN_ERR_ARGUMENT, "rounding");
    check_refused("mxfp4", &good, x, &(tn_quantize_options){ .size = sizeof one_job, .rule = (tn_scale_rule)6 },
                  TN_ERR_ARGUMENT, "mode");
    check_refused("mxfp4", &good, x, &(tn_quantize_options){ .size = sizeof one_job, .nan = (tn_nan)3 },
                  TN_ERR_ARGUMENT, "NaN mode");
    check_refused("mxfp6", &good, x, &(tn_quantize_options){ .size = sizeof one_job, .ggml = true },
                  TN_ERR_ARGUMENT, "ggml");
    check_refused("mxfp4", &good, x, &(tn_quantize_options){ .size = sizeof one_job, .ggml = true,
                                                           .rule = TN_SCALE_CEIL },
                  TN_ERR_ARGUMENT, "ggml");
    CHECK(tn_fake_quantize(NULL, &good, x, x, NULL, NULL, NULL) == TN_ERR_ARGUMENT);
}

static void parts_that_are_missing_are_refused(void)
{
    const int64_t shape[] = { 2, 32 };
    const tn_array array = { TN_FLOAT32, 2, shape, NULL };
    tn_datatype *d = datatype_of("mxfp4");
    uint8_t data[32];
    float x[64] = { 0 };
    tn_error err;
    CHECK(tn_quantize(d, &array, x, (void *[]){ data, NULL }, &one_job, NULL,
                             &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "expected 2 bytes for the part scale") != NULL);
    CHECK(tn_quantize(d, &array, x, NULL, &one_job, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_dequantize(d, &array, (const void *[]){ NULL, data }, x, &one_job,
                               &err) == TN_ERR_ARGUMENT);
    CHECK(tn_dequantize(d, &array, NULL, x, &one_job, &err) == TN_ERR_ARGUMENT);
    tn_datatype_free(d);
}

static void the_report_says_what_was_done(void)
{
    const int64_t shape[] = { 2, 40 };
    const tn_array array = { TN_FLOAT32, 2, shape, NULL };
    tn_datatype *d = datatype_of("mxfp4");
    float x[80] = { 0 }, y[80];
    uint8_t data[40], scale[4];
    tn_quantize_stats r, s;
    x[0] = 7.5f;                /* becomes 6 */
    x[1] = 0.1f;                /* becomes 0 */
    x[2] = INFINITY;            /* is no error */
    x[79] = 3;
    CHECK(tn_fake_quantize(d, &array, x, y, &one_job, &r, NULL) == TN_OK);
    CHECK(r.values == 80 && r.saturated == 1 && r.flushed == 1);
    CHECK(r.max_error == 1.5 && fabs(r.noise - 2.26) < 1e-6 && fabs(r.signal - (56.25 + 0.01 + 9)) < 1e-6);
    CHECK(tn_quantize(d, &array, x, (void *[]){ data, scale }, &one_job, &s, NULL) == TN_OK);
    CHECK(memcmp(&r, &s, sizeof r) == 0);
    CHECK(tn_fake_quantize(d, &array, x, y, &(tn_quantize_options){ .size = sizeof one_job, .jobs = 4 }, &s,
                              NULL) == TN_OK);
    CHECK(memcmp(&r, &s, sizeof r) == 0);
    tn_datatype_free(d);
}

/* They became 0, and that is what is said of them: in whole tiles, in padded ones, and in those that are
 * rounded in another way. */
static void values_of_a_scale_of_zero_are_not_saturated(void)
{
    static const char *const texts[] = { "uint4|float16_float16_t32", "uint4|float16_int8_t32",
                                         "int4|float16_t32", "e2m1fnuz|float16_t32", "nvfp4e2" };
    const int64_t shape[] = { 40 };
    const tn_array array = { TN_FLOAT32, 1, shape, NULL };
    float x[40], y[40];
    for (size_t i = 0; i < 40; i++)
        x[i] = i % 2 ? 1e-12f : -1e-12f;
    for (size_t i = 0; i < 2 * sizeof texts / sizeof texts[0]; i++) {
        tn_datatype *d = datatype_of(texts[i / 2]);
        tn_quantize_options o = { .size = sizeof o, .jobs = 1, .round = i % 2 ? TN_ROUND_AWAY : TN_ROUND_EVEN };
        tn_quantize_stats r;
        CHECK(tn_fake_quantize(d, &array, x, y, &o, &r, NULL) == TN_OK);
        if (r.saturated != 0 || r.flushed != 40)
            fail_msg("%s: %d saturated, %d flushed", texts[i / 2], (int)r.saturated, (int)r.flushed);
        tn_datatype_free(d);
    }
}

/* A report makes the definition encode tiles of several lines; without one, kernels do. */
static void lines_of_any_length_have_the_codes_of_the_definition(void)
{
    static const char *const texts[] = {
        "e4m3fn|float32_t128_t128", "int8|float32_t16_t16", "int4|float32_t16_t16", "e2m1fnuz|e8m0_t32d0",
        "int8|float16_t8d0", "uint4|float16_int8_t16d0", "uint8|float32_int16_t16_t16", "e4m3fn|float32_t32d1",
    };
    static const int64_t line_shapes[][3] = { { 300, 64 }, { 40, 16 }, { 70, 33 }, { 5, 40, 24 }, { 64, 700 },
                                              { 3, 130, 5 }, { 33, 1 } };
    static const tn_round line_rounds[] = { TN_ROUND_EVEN, TN_ROUND_AWAY, TN_ROUND_STOCHASTIC };
    for (size_t t = 0; t < 8 * 7 * 3; t++) {
        const int64_t *shape = line_shapes[t / 8 % 7];
        const tn_quantize_options o = { .size = sizeof o, .round = line_rounds[t / 56], .seed = t };
        const uint32_t rank = shape[2] ? 3 : 2;
        const size_t n = (size_t)(shape[0] * shape[1] * (shape[2] ? shape[2] : 1));
        tn_quantize_stats stats = { 0 };
        float *x = malloc(n * sizeof *x);
        made fast, defined;
        assert_non_null(x);
        fill(x, n, t % 5 == 0);
        make(&fast, texts[t % 8], TN_FLOAT32, rank, shape, x, &o);
        make(&defined, texts[t % 8], TN_FLOAT32, rank, shape, x, &o);
        CHECK(tn_quantize(defined.d, &defined.array, x, (void *const *)defined.part, &o, &stats, NULL) ==
              TN_OK);
        for (uint32_t i = 0; i < fast.shapes.count; i++)
            assert_memory_equal(fast.part[i], defined.part[i], (size_t)fast.size[i]);
        unmake(&fast);
        unmake(&defined);
        free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_of_any_length_have_the_codes_of_the_definition),
        TEST(every_name_gives_the_values_of_its_codes),
        TEST(every_recipe_gives_the_values_of_its_codes),
        TEST(large_groups_are_one_tile),
        TEST(of_equal_errors_the_first_choice_is_kept),
        TEST(large_tiles_of_every_kind_give_the_values_of_their_codes),
        TEST(a_nan_in_a_group_is_as_good_as_zero),
        TEST(codes_fill_rows_from_the_lowest_bit),
        TEST(scales_of_columns_are_packed_along_them),
        TEST(subtiles_begin_on_a_byte_for_each_tile),
        TEST(masks_are_bits_and_slots_are_packed),
        TEST(matrix_tiles_are_in_rows),
        TEST(a_tensor_with_blocks_has_a_scale_of_its_own),
        TEST(a_table_of_one_mapping_has_no_meta),
        TEST(chance_goes_by_the_element_not_the_tile),
        TEST(every_float_type_goes_through_float32),
        TEST(odd_addresses_are_as_good_as_any),
        TEST(the_callers_environment_does_not_matter),
        TEST(what_makes_no_sense_is_refused),
        TEST(parts_that_are_missing_are_refused),
        TEST(the_report_says_what_was_done),
        TEST(values_of_a_scale_of_zero_are_not_saturated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
