#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/cpu.h"
#include "random.h"
#include "support.h"
#include "datatype.h"
#include "tensor/array.h"
#include "kernels/scaled_search/table.h"
#include "quant/scaled_fast.h"

/* Whole tiles with every level's kernels: their parts are those of the
 * definition, byte for byte, and nothing beyond them is written. */

#ifndef TURNS
#define TURNS 2                 /* a datatype, mode and kind of values are tried so often */
#endif

/* --- random values ------------------------------------------------------------------- */

static float signed_by_chance(float x)
{
    return draw() % 2 ? -x : x;
}

static float uniform_float(void)
{
    return (float)(draw() % 0x1000001) * 0x1p-24f;
}

/* About normal: sums of uniform ones. */
static float normal(void)
{
    float sum = -3;
    for (int i = 0; i < 6; i++)
        sum += uniform_float();
    return sum;
}

typedef enum kind {
    WEIGHTS,                    /* about normal */
    OUTLIERS,                   /* and some far out */
    GRID,                       /* small whole numbers: equal magnitudes, ties of all kinds */
    HALVES,                     /* multiples of 1/32: ties between neighbours and between mappings */
    WIDE,                       /* of many exponents */
    ZEROS,                      /* tiles and groups of nothing else, of both signs */
    NEIGHBOURS,                 /* one bit above or below powers of two and their middles */
    SMALL, LARGE,               /* near the ends of float32 */
    SPECIAL,                    /* infinities, or NaN */
    KINDS
} kind;

static float neighbour(void)
{
    static const float near[] = { 1, 1.25f, 1.5f, 1.75f, 2, 2.5f, 3, 3.5f, 5, 6, 7, 7.5f };
    uint32_t bits;
    float x = near[draw() % 12];
    memcpy(&bits, &x, sizeof bits);
    bits += draw() % 5;
    bits -= 2;
    memcpy(&x, &bits, sizeof x);
    return ldexpf(x, -(int)(draw() % 4));
}

static float value_of(kind what, int scale)
{
    switch (what) {
    case WEIGHTS:    return ldexpf(normal(), scale);
    case OUTLIERS:   return ldexpf(draw() % 40 ? normal() : normal() * 100, scale);
    case GRID:       return ldexpf(signed_by_chance((float)(draw() % 9)), scale);
    case HALVES:     return ldexpf(signed_by_chance((float)(draw() % 260) / 32), scale);
    case WIDE:       return ldexpf(signed_by_chance(uniform_float()), scale - (int)(draw() % 60));
    case ZEROS:      return draw() % 60 ? signed_by_chance(0) : ldexpf(normal(), scale);
    case NEIGHBOURS: return ldexpf(signed_by_chance(neighbour()), scale);
    case SMALL:      return ldexpf(normal(), -100 - (int)(draw() % 50));
    case LARGE:      return ldexpf(normal(), 100 + (int)(draw() % 27));
    default: return draw() % 50 ? normal() : draw() % 2 ? signed_by_chance(INFINITY) : signed_by_chance(NAN);
    }
}

/* Tiles have exponents of their own, and now and then nothing in them. */
static void fill(float *x, size_t count, size_t size, kind what)
{
    for (size_t k = 0; k < count; k++) {
        int scale = (int)(draw() % 30) - 15;
        bool empty = draw() % 20 == 0;
        for (size_t i = 0; i < size; i++)
            x[k * size + i] = empty ? signed_by_chance(0) : value_of(what, scale);
        if (draw() % 4 == 0)
            memset(x + k * size, 0, draw() % size * sizeof *x);
    }
}

/* --- parts ----------------------------------------------------------------------------- */

enum { PARTS = 7 };

typedef struct parts {
    tn_scaled_plan plan;
    int64_t  shape[1];
    uint8_t *part[PARTS];
    float    tensor_scale;
} parts;

static void *block(size_t n, int byte)
{
    void *b = malloc(n ? n : 1);
    assert_non_null(b);
    memset(b, byte, n);
    return b;
}

/* Of a vector of n values, in blocks of their exact sizes. */
static void make_parts(parts *p, const tn_datatype *d, const tn_quantize_options *o, size_t n,
                       float tensor_scale, int byte)
{
    tn_scaled_shapes shapes;
    *p = (parts){ .shape = { (int64_t)n }, .tensor_scale = tensor_scale };
    CHECK(tn_scaled_shapes_for(d, 1, p->shape, &shapes, NULL) == TN_OK);
    for (uint32_t i = 0; i < shapes.count; i++) {
        const tn_scaled_part *part = &shapes.parts[i];
        bool plain = o->unpacked && i == 0;
        const int64_t *shape = plain ? part->plain_shape : part->shape;
        uint64_t size;
        CHECK(tn_shape_nbytes(plain ? part->plain_dtype : part->dtype, part->rank, shape, &size) == TN_OK);
        p->part[i] = block((size_t)size, byte);
    }
    CHECK(tn_scaled_plan_make(&p->plan, d, 1, p->shape, o, (void *const *)p->part, NULL) == TN_OK);
}

static void free_parts(parts *p)
{
    for (size_t i = 0; i < PARTS; i++)
        free(p->part[i]);
}

/* Values of a tile, kept and left out; 0: all. */
static size_t tile_size(const tn_datatype *d)
{
    return d->of ? d->tile[0] / d->keep * d->of : d->tile[0];
}

/* By the definition; false: there is a NaN that has no code. */
static bool define(parts *p, const tn_datatype *d, const float *x, size_t count, size_t size)
{
    uint64_t *index = block(size * sizeof *index, 0);
    uint32_t *code = block(size * sizeof *code, 0);
    uint8_t *units = block(size * 3, 0);
    bool good = true;
    for (size_t i = 0; i < size; i++)
        index[i] = i;
    for (size_t k = 0; k < count && good; k++) {
        const tn_scaled_place at = { .across = k, .rows = 1, .columns = size };
        size_t bad;
        tn_tile t = { .x = x + k * size, .n = size, .index = index, .tensor_scale = p->tensor_scale,
                      .code = code, .offset = units,
                      .meta = units + size, .mask = units + 2 * size };
        good = tn_tile_encode(d, &p->plan.o, &t, &bad) == TN_OK;
        if (good)
            tn_scaled_put(&p->plan, &at, &t);
    }
    free(index);
    free(code);
    free(units);
    return good;
}

static bool encode_with(unsigned cpu, parts *p, const float *x, size_t count, size_t size)
{
    tn_search_kernels search;
    tn_encode_kernels encode;
    tn_search_kernels_init(&search, cpu);
    tn_encode_kernels_init(&encode, cpu);
    const tn_scaled_plan *plan = &p->plan;
    const tn_tiles tiles = { .count = count, .size = size, .tensor_scale = p->tensor_scale, .x = x,
                             .data = plan->data.data,
                             .scale = plan->scale.data, .zero = plan->zero.data, .offset = plan->offset.data,
                             .meta = plan->meta.data, .mask = plan->mask.data };
    return tn_scaled_search_with(&(tn_search_tables){ &search, &encode }, plan, &tiles);
}

static void compare(const parts *found, const parts *expected, const char *text, kind what, int mode,
                    unsigned cpu)
{
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++) {
        const tn_scaled_field *a = &found->plan.fields[i], *b = &expected->plan.fields[i];
        for (uint64_t k = 0; a->data && k < a->nbytes; k++)
            if (a->data[k] != b->data[k])
                fail_msg("%s: byte %llu of part %u is %02x and not %02x (values %d, mode %d, %s)", text,
                         (unsigned long long)k, i, a->data[k], b->data[k], (int)what, mode, tn_cpu_name(cpu));
    }
}

/* --- all of it --------------------------------------------------------------------------- */

static const unsigned levels[] = { TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512 };

static uint64_t level, taken;

/* Ordinary values are not left to the definition, wherever there is a way. */
static bool is_ordinary(const tn_datatype *d, kind what)
{
    return what < WIDE && (d->scope == TN_SCOPE_NONE || d->scale.exponent_bits == 8);
}

static void try_values(const tn_datatype *d, const tn_quantize_options *o, kind what, size_t count, size_t size)
{
    if (d->scope == TN_SCOPE_CHANNEL && !d->of) {       /* a row has one tile */
        size = size ? (count * size + 15) / 16 * 16 : count * 96;
        count = 1;
    }
    float *x = block(count * size * sizeof *x, 0);
    float tensor_scale = d->has_tensor_scale ? ldexpf(1 + uniform_float(), (int)(draw() % 30) - 20) : 1;
    parts expected;
    fill(x, count, size, what);
    make_parts(&expected, d, o, count * size, tensor_scale, 0);
    bool defined = define(&expected, d, x, count, size);
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        parts found;
        if (levels[l] & ~tn_cpu_detect() || (d->of > 8 && !(levels[l] & TN_CPU_AVX512)))
            continue;
        make_parts(&found, d, o, count * size, tensor_scale, 0xa5);
        bool done = encode_with(levels[l], &found, x, count, size);
        level++;
        taken += done;
        CHECK(defined || !done);
        if (!done && is_ordinary(d, what) && (size == tile_size(d) || d->scope == TN_SCOPE_CHANNEL))
            fail_msg("%s: there is a way for values %d, mode %d, but it is not taken", d->text, (int)what,
                     (int)o->rule);
        if (done)
            compare(&found, &expected, d->text, what, (int)o->rule, levels[l]);
        free_parts(&found);
    }
    free_parts(&expected);
    free(x);
}

static bool has_way(const tn_datatype *d, const tn_quantize_options *o)
{
    tn_scaled_plan plan;
    const int64_t shape[] = { 4096 };
    return tn_scaled_plan_make(&plan, d, 1, shape, o, NULL, NULL) == TN_OK &&
           tn_scaled_search_kind(&plan) != TN_SEARCH_NONE && tn_scaled_searcher(&plan);
}

/* Returns how many modes have a way. */
static unsigned try_modes(const tn_datatype *d, unsigned turns)
{
    unsigned n = 0;
    for (int mode = TN_SCALE_MAX; mode <= TN_SCALE_MSE; mode++) {
        tn_quantize_options o = { .size = sizeof o, .rule = (tn_scale_rule)mode,
                                .unpacked = draw() % 4 == 0 && !d->of };
        if (tn_cpu_detect() == 0 || !has_way(d, &o))
            continue;
        n++;
        for (int what = 0; what < KINDS; what++)
            for (unsigned i = 0; i < turns; i++) {
                size_t size = tile_size(d), least = d->of ? d->of : 1;
                try_values(d, &o, (kind)what, i == 0 ? 1 + draw() % 9 : 1 + draw() % 40, size);
                if (!d->subtile && size > least)        /* a tensor that is smaller than its tile */
                    try_values(d, &o, (kind)what, 1, (1 + draw() % (size / least - 1)) * least);
            }
    }
    return n;
}

static unsigned try_datatype(const char *text, unsigned turns)
{
    tn_datatype *d = datatype_of(text);
    unsigned n = try_modes(d, turns);
    tn_datatype_free(d);
    return n;
}

static void every_name_that_searches_has_the_parts_of_the_definition(void)
{
    for (size_t i = 0; tiles_at(i); i++)
        try_datatype(tiles_at(i)->text, TURNS);
}

static void recipes_that_search_have_the_parts_of_the_definition(void)
{
    static const struct { const char *text; unsigned modes; } table[] = {
        { "float32|n2m4", 6 }, { "bfloat16|n2m4", 6 }, { "float16|n1m4", 6 }, { "float32|n1m2", 6 },
        { "float32|n3m8", 6 },
        { "bfloat16|n5m16", 6 }, { "float32|n15m16", 6 }, { "e4m3fn|n2m4", 5 }, { "e2m1fnuz|n3m4", 5 },
        { "e5m2|n4m8", 5 },
        { "e2m1fnuz|e8m0_t32n2m4", 6 }, { "e4m3fn|e8m0_t32n2m4", 6 }, { "int8|e8m0_t16n1m4", 6 },
        { "int4|bfloat16_t32n2m4", 6 },
        { "e2m3fnuz|e8m0_t32n4m8", 6 }, { "int8|float32_t64n8m16", 6 }, { "uint4|float16_int8_t32n2m4", 6 },
        { "e2m1fnuz|e8m0_t16s8o1n2m4", 5 }, { "cb42f1346_e2m3fnuz|e8m0_t32s8n2m4", 6 },
        { "e2m1fnuz|e8m0_t2n1m2", 5 },
        { "e2m1fnuz|e8m0_t4n2m4", 5 }, { "e2m1fnuz|e5m0_t32n2m4", 6 },
        { "icb44fi_e2m3fnuz|e8m0_t16", 6 }, { "icb44fi_e4m3fn|float32_t64s2", 6 },
        { "cb41fi_e2m2fnuz|bfloat16_t1024s16", 6 },
        { "cb42fe0123_e3m2fnuz|e8m0_t32s32", 6 }, { "cb31ie_int5|e8m0_t16s2", 6 },
        { "icb44fi_e2m3fnuz|e5m0_t32s4", 6 },
        { "cb43i01234567_e4m3fn|e4m3fn_t16s4", 6 },
        { "int8|e8m0_t64s2o2", 5 }, { "e3m2fnuz|e8m0_t32s4o2", 5 }, { "e4m3fnuz|e8m0_t16s8o2", 5 },
        { "int2|e8m0_t16s4o1", 5 },
        { "e2m1fnuz|e8m0_t1024", 1 }, { "e4m3fnuz|e8m0_t16", 1 }, { "int7|e8m0_t128", 1 },
        { "e3m3fnuz|e5m0_t32", 1 },
        { "uint4|bfloat16_int8_t32", 1 }, { "uint8|float32_float32_t16", 1 }, { "uint2|e5m6_int4_t32", 1 },
        { "uint3|float16_e4m3fn_t64", 1 },
        { "int4|bfloat16_t32", 1 }, { "e2m1fnuz|multi_float32_e4m3fn_t16", 1 }, { "e4m3fn|e5m3_t32", 1 },
        { "int8|float16_t64", 1 },
        { "e3m2fnuz|float32_t32", 1 }, { "int2|e5m6_t16", 1 }, { "e5m2inuz|e8m0_t32", 1 },
        { "e1m2fnuz|e8m0_t32", 1 }, { "e3m0fnuz|e8m0_t32", 1 },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsigned n = try_datatype(table[i].text, TURNS);
        if (tn_cpu_detect() & TN_CPU_AVX512 && n != table[i].modes)
            fail_msg("%s has a way in %u modes and not in %u", table[i].text, n, table[i].modes);
    }
}

/* Values that are neither coarse nor evenly spaced: errors of many bits, middles between float32s. */
static void tables_of_fine_values_have_the_parts_of_the_definition(void)
{
    static const char *const tables[] = {
        ("{\"compute\":\"e3m23\",\"mappings\":[[0.33333331346511841,1.0000001192092896,7.000000476837158],"
         "[1.0000001192092896,1.000000238418579,3]]}"),
        "{\"compute\":\"e5m2\",\"mappings\":[[0.0000152587890625,0.75,57344],[0.25,0.5,40960],[1,2,3],[0."
        "0001220703125,1,32768]]}",
        "{\"compute\":\"e5m7\",\"mappings\":[[1.0078125,3,1024,1032,1040,1048,1056]]}",
    };
    static const char *const scales[] = { "e8m0_t16", "float32_t32", "e8m0_t32s4", "bfloat16_t16s2" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++) {
            tn_datatype *d = NULL;
            tn_error err;
            if (tn_datatype_codebook(tables[i], strlen(tables[i]), scales[k], &d, &err) != TN_OK)
                fail_msg("%s", line_of(&err));
            CHECK(try_modes(d, TURNS) == (tn_cpu_detect() & TN_CPU_AVX2 ? 6 : 0));
            tn_datatype_free(d);
        }
}

/* --- sparsity alone ------------------------------------------------------------------------ */

/* Magnitudes of any float type, as integers: NaN is one. */
static uint32_t size_of(uint32_t bits, uint32_t infinity)
{
    uint32_t size = bits & (infinity | ((infinity & -infinity) - 1));
    return size > infinity ? infinity + 1 : size;
}

/* Whether value i of its group, `step` apart, is one of those that are kept. */
static bool is_kept(const uint32_t *group, size_t n, size_t i, unsigned keep, uint32_t infinity)
{
    unsigned better = 0;
    for (size_t k = 0; k < n; k++) {
        uint32_t own = size_of(group[i], infinity), other = size_of(group[k], infinity);
        better += other > own || (other == own && k < i);
    }
    return better < keep;
}

static const struct {
    tn_dtype dtype;
    const char *number;
    uint32_t infinity, quiet;
    unsigned bits;
} exact[] = {
    { TN_FLOAT32, "float32", 0x7f800000, 0, 32 },
    { TN_FLOAT16, "float16", 0x7c00, 0x200, 16 }, /* widened on its way: NaN is quiet then */
    { TN_BFLOAT16, "bfloat16", 0x7f80, 0x40, 16 },
};

/* Columns of `rows` values, or rows of `columns`. */
static void check_kept(const uint32_t *x, const uint32_t *y, size_t rows, size_t columns, bool down,
                       unsigned keep, unsigned of, uint32_t infinity)
{
    size_t lines = down ? columns : rows, length = down ? rows : columns, step = down ? columns : 1;
    for (size_t l = 0; l < lines; l++)
        for (size_t g = 0; g < length; g += of) {
            uint32_t group[16];
            size_t n = length - g < of ? length - g : of, first = (down ? l : l * columns) + g * step;
            for (size_t i = 0; i < n; i++)
                group[i] = x[first + i * step];
            for (size_t i = 0; i < n; i++)
                CHECK(y[first + i * step] == (is_kept(group, n, i, keep, infinity) ? group[i] : 0));
        }
}

static void try_alone(size_t type, size_t rows, size_t columns, bool down, unsigned keep, unsigned of)
{
    size_t n = rows * columns;
    uint32_t *x = block(n * sizeof *x, 0), *y = block(n * sizeof *y, 0);
    void *from = block(n * exact[type].bits / 8, 0), *back = block(n * exact[type].bits / 8, 0xa5);
    for (size_t i = 0; i < n; i++) {
        x[i] = (draw() << 1 ^ draw()) & (exact[type].bits == 32 ? UINT32_MAX : 0xffff);
        if (draw() % 8 == 0)
            x[i] = draw() % 2 ? exact[type].infinity : 0;
        if (size_of(x[i], exact[type].infinity) > exact[type].infinity)
            x[i] |= exact[type].quiet;
        tn_code_put(from, i, exact[type].bits, x[i]);
    }
    char text[40];
    snprintf(text, sizeof text, "%s|n%um%u%s", exact[type].number, keep, of, down ? "d0" : "");
    const int64_t shape[] = { (int64_t)rows, (int64_t)columns };
    const tn_array array = { exact[type].dtype, 2, shape, NULL };
    tn_datatype *d = NULL;
    tn_scaled_shapes shapes;
    void *part[PARTS] = { NULL };
    CHECK(tn_datatype_parse(text, &d, NULL) == TN_OK);
    CHECK(tn_scaled_shapes_for(d, 2, shape, &shapes, NULL) == TN_OK && shapes.count == 2);
    for (uint32_t i = 0; i < shapes.count; i++) {
        uint64_t bytes;
        CHECK(tn_shape_nbytes(shapes.parts[i].dtype, 2, shapes.parts[i].shape, &bytes) == TN_OK);
        part[i] = block((size_t)bytes, 0xa5);
    }
    CHECK(tn_quantize(d, &array, from, part, NULL, NULL, NULL) == TN_OK);
    CHECK(tn_dequantize(d, &array, (const void *const *)part, back, NULL, NULL) == TN_OK);
    for (size_t i = 0; i < n; i++)
        y[i] = (uint32_t)tn_code_get(back, i, exact[type].bits);
    check_kept(x, y, rows, columns, down, keep, of, exact[type].infinity);
    tn_datatype_free(d);
    free(part[0]);
    free(part[1]);
    free(from);
    free(back);
    free(x);
    free(y);
}

static void sparsity_alone_gives_back_every_bit_that_it_keeps(void)
{
    static const unsigned groups[][2] = { { 2, 4 }, { 1, 2 }, { 3, 4 }, { 4, 8 }, { 5, 16 } };
    static const size_t sizes[][2] = { { 1, 1 }, { 3, 64 }, { 5, 101 }, { 70, 3 }, { 2, 300 }, { 64, 66 } };
    for (size_t type = 0; type < sizeof exact / sizeof exact[0]; type++)
        for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (int down = 0; down < 2; down++)
                    try_alone(type, sizes[s][0], sizes[s][1], down, groups[g][0], groups[g][1]);
}

static void a_long_row_is_one_tile(void)
{
    static const char *const texts[] = { "int8|float32_t0n2m4", "e2m1fnuz|e8m0_t0n1m2",
                                         "uint4|bfloat16_int8_t0n4m8" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int what = 0; what < KINDS && tn_cpu_detect() & TN_CPU_AVX2; what++) {
            const tn_quantize_options o = { .size = sizeof o };
            tn_datatype *d = NULL;
            CHECK(tn_datatype_parse(texts[i], &d, NULL) == TN_OK);
            try_values(d, &o, (kind)what, 1, 8 * (1 + draw() % 100));
            try_values(d, &o, (kind)what, 1, 40000);
            tn_datatype_free(d);
        }
}

static void long_rows_have_the_scale_with_the_least_error(void)
{
    static const char *const texts[] = { "int8|float32_t0", "int4|float16_t0", "uint4|bfloat16_int8_t0",
                                         "e4m3fn|float32_t0", "e2m1fnuz|e8m0_t0" };
    const tn_quantize_options o = { .size = sizeof o, .rule = TN_SCALE_MSE };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && tn_cpu_detect() & TN_CPU_AVX2; i++) {
        tn_datatype *d = NULL;
        CHECK(tn_datatype_parse(texts[i], &d, NULL) == TN_OK && has_way(d, &o));
        for (int what = 0; what < KINDS; what++)
            try_values(d, &o, (kind)what, 1, 16 * (1 + draw() % 100));
        try_values(d, &o, (kind)0, 1, 20000);
        tn_datatype_free(d);
    }
}

static void most_are_not_left_to_the_definition(void)
{
    print_message("%llu of %llu\n", (unsigned long long)taken, (unsigned long long)level);
    CHECK(taken * 10 >= level * 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_name_that_searches_has_the_parts_of_the_definition),
        TEST(recipes_that_search_have_the_parts_of_the_definition),
        TEST(tables_of_fine_values_have_the_parts_of_the_definition),
        TEST(a_long_row_is_one_tile),
        TEST(long_rows_have_the_scale_with_the_least_error),
        TEST(sparsity_alone_gives_back_every_bit_that_it_keeps),
        TEST(most_are_not_left_to_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
