/* The fast encoders of scaled datatypes: every level against the definition, byte for byte. */
#include "support.h"
#include "datatype.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cpu.h"
#include "random.h"
#include "kernels/scaled_encode/table.h"
#include "quant/scaled_fast.h"

enum { LEVELS = 3, LARGEST = 9001, GUARD = 32, PARTS = 7 };

/* Besides the predefined ones. */
static const char *const others[] = {
    "int2|e8m0_t32", "int3|e8m0_t32", "int5|e8m0_t16", "int7|e8m0_t64", "int9|e8m0_t32", "int12|float16_t32",
    "int16|e8m0_t8", "int6|e5m0_t32", "int8|e3m0_t4", "int4|e4m0_t2", "e2m1fnuz|e8m0_t2", "e2m1fnuz|e8m0_t4",
    "e2m1fnuz|e8m0_t8", "e2m1fnuz|e8m0_t1024", "e4m3fn|e8m0_t64", "e4m3fn|e8m0_t128", "e5m2|e8m0_t256",
    "e3m2fnuz|e8m0_t512", "e3m0fnuz|e8m0_t32", "e3m0fnuz|float16_t32", "e3m3fnuz|e8m0_t32",
    "e3m3fnuz|e5m0_t8", "e2m2fnuz|e8m0_t8", "e4m3b8inuz|e8m0_t32", "e5m2b16inuz|float32_t32",
    "e2m1b10fnuz|e8m0_t16", "e2m1fnuz|multi_float32_float32_t16", "e4m3|e8m0_t32", "e2m1fnuz|e5m0_t32",
    "e7m2b120fnuz|float32_t32", "e1m6fnuz|e8m0_t32", "e5m10|e8m0_t32", "float16|e8m0_t16",
    "bfloat16|float32_t32", "e4m3fn|float24_t32", "e4m3fn|e6m9_t32", "e2m3fnuz|e4m3b8inuz_t32",
    "e2m1fnuz|e3m0fnuz_t16", "e2m1fnuz|e2m1fnuz_t16", "uint1|float16_float16_t32", "uint8|e5m3b60_float32",
    "uint2|float16_int4_t8", "uint3|float16_int4_t4", "uint3|e5m3_e5m3_t2", "uint5|bfloat16_int8_t32",
    "uint6|float32_int16_t16", "uint8|float32_int16_t1024", "uint12|float16_bfloat16_t32",
    "uint16|float32_int16_t64", "uint4|e4m3_int4_t32", "uint8|e4m3fn_e4m3fn_t32",
    "e2m1fnuz|multi_float32_e4m3fn_t8", "e4m3fn|multi_float32_e4m3_t128",
    "e2m3fnuz|multi_float32_float16_t32", "e6m1b32inuz", "e5m10", "e3m2fnuz",
};

static float uniform_float(void)              /* -1 to 1 */
{
    return (float)((double)(bits64() >> 11) * 0x1p-52 - 1);
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
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

/* --- values -------------------------------------------------------------------- */

typedef enum fill {
    NORMAL, ZEROS, SPARSE, OUTLIER, POSITIVE, NEGATIVE, POWERS, TIES,   /* never left to the definition */
    TINY, DEEP, SUBNORMAL, HUGE_ONES, ANY,                              /* perhaps */
    INFINITE, NANS,                                                     /* always */
    FILLS
} fill;

/* A number of the type, or what is between two: of the scale that makes the largest the largest. */
static float tie(const tn_datatype *d)
{
    const tn_number_spec *n = &d->number;
    float sign = bits64() & 1 ? -1 : 1;
    if (n->kind == TN_NUMBER_INT || n->kind == TN_NUMBER_UINT)
        return sign * (float)(bits64() % (uint64_t)(2 * n->maxint + 1)) / 2;
    uint32_t code = (uint32_t)(bits64() % ((uint64_t)1 << (n->bits - 1)));
    float low = tn_spec_value(n, code), high = tn_spec_value(n, code + 1);
    float x = isfinite(high) && high <= n->maxfloat && high > low ? low / 2 + high / 2 : low;
    return sign * (isfinite(x) ? x : n->maxfloat);
}

static float value(const tn_datatype *d, fill how, int e)
{
    uint64_t r = bits64();
    switch (how) {
    case NORMAL:    return ldexpf(uniform_float() + uniform_float() + uniform_float(), e);
    case ZEROS:     return r & 1 ? -0.0f : 0;
    case SPARSE:    return r % 7 ? r & 8 ? -0.0f : 0 : ldexpf(uniform_float(), e);
    case OUTLIER:   return ldexpf(uniform_float(), r % 40 ? e - 9 : e);
    case POSITIVE:  return ldexpf(fabsf(uniform_float()), e);
    case NEGATIVE:  return ldexpf(-fabsf(uniform_float()) - 1, e);
    case POWERS:
        return nextafterf(ldexpf(r & 1 ? -1 : 1, e - (int)(r >> 1 & 7)), r & 16   ? INFINITY
                                                                         : r & 32 ? -INFINITY
                                                                                  : 1);
    case TIES:      return tie(d);
    case DEEP:      return ldexpf(uniform_float(), -(int)(r % 150));
    case TINY:      return ldexpf(uniform_float(), -100 - (int)(r % 30));
    case SUBNORMAL: return from_bits(((uint32_t)r & 0x007fffff) >> 2 * (e + 6) | ((uint32_t)r & 0x80000000));
    case HUGE_ONES:
        return from_bits((uint32_t)r & 0x807fffff) +
               (r & 1 ? FLT_MAX : -FLT_MAX) / (float)(1 + (r >> 32) % 9);
    default:        return from_bits((uint32_t)r & 0xff7fffff);         /* finite ones of all exponents */
    }
}

static void make_values(const tn_datatype *d, fill how, float *x, size_t n, size_t size)
{
    int e = 0;
    for (size_t i = 0; i < n; i++) {
        if (i % size == 0)
            e = (int)(bits64() % 12) - 6;
        x[i] = value(d, how < TINY && bits64() % 5000 == 0 ? ZEROS : how >= INFINITE ? NORMAL : how, e);
    }
    if (how == TIES)            /* the largest number is there, to give the scale */
        for (size_t i = 0; i < n; i += size)
            x[i] = d->number.kind == TN_NUMBER_FLOAT ? d->number.maxfloat : (float)d->number.maxint;
    size_t at = (size_t)(bits64() % n);
    if (how == INFINITE)
        x[at] = bits64() & 1 ? INFINITY : -INFINITY;
    if (how == NANS)
        x[at] = from_bits((uint32_t)bits64() | 0x7fc00000);
}

/* --- the definition and the encoder ---------------------------------------------- */

typedef struct bench {
    const tn_datatype *d;
    tn_quantize_options  o;
    int64_t  shape[1];
    size_t   n;
    float   *x;                 /* exactly n, so that AddressSanitizer guards the end */
    float    tensor_scale;
    const tn_tile_choice *choice;
} bench;

typedef struct parts {
    size_t count, nbytes[PARTS];
    void  *data[PARTS];
    tn_scaled_plan plan;
} parts;

static void make_parts(parts *p, const bench *b, int filler)
{
    tn_scaled_shapes shapes;
    CHECK(tn_scaled_shapes_for(b->d, 1, b->shape, &shapes, NULL) == TN_OK);
    CHECK(tn_scaled_plan_make(&p->plan, b->d, 1, b->shape, &b->o, NULL, NULL) == TN_OK);
    p->count = shapes.count;
    tn_scaled_field *const fields[PARTS] = { &p->plan.data, &p->plan.scale, &p->plan.tscale, &p->plan.zero };
    static const char *const roles[PARTS] = { "data", "scale", "tscale", "zero" };
    for (size_t i = 0; i < shapes.count; i++) {
        for (size_t k = 0; k < 4; k++) {
            if (strcmp(shapes.parts[i].role, roles[k]) != 0)
                continue;
            p->nbytes[i] = (size_t)fields[k]->nbytes;
            p->data[i] = malloc(p->nbytes[i] + (filler ? GUARD : 0) + 1);
            assert_non_null(p->data[i]);
            memset(p->data[i], filler, p->nbytes[i] + (filler ? GUARD : 0));
            fields[k]->data = p->data[i];
        }
    }
}

static void free_parts(parts *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->data[i]);
}

static bool define(const bench *b, parts *p)
{
    static uint32_t code[LARGEST];
    static uint64_t index[LARGEST];
    size_t bad, pieces = (size_t)tn_scaled_pieces(&p->plan);
    CHECK(pieces == 1);
    for (uint64_t batch = 0; batch < p->plan.batches; batch++) {
        for (uint64_t k = 0; k < tn_scaled_batch_tiles(&p->plan, batch); k++) {
            tn_scaled_place at = tn_scaled_place_at(&p->plan, batch, k, 0);
            tn_scaled_row row = tn_scaled_row_at(&p->plan, &at, 0);
            CHECK(row.n == at.columns && at.rows == 1);
            for (uint64_t i = 0; i < row.n; i++)
                index[i] = row.first + i;
            tn_tile t = { .x = b->x + row.first, .n = (size_t)row.n, .index = index,
                          .tensor_scale = b->tensor_scale, .code = code };
            tn_status status =
                b->choice ? tn_tile_prepare(b->d, &b->o, &t, &bad) : tn_tile_encode(b->d, &b->o, &t, &bad);
            if (status != TN_OK)
                return false;
            if (b->choice)
                tn_tile_apply(b->d, &b->o, &t, b->choice, NULL);
            tn_scaled_put(&p->plan, &at, &t);
        }
    }
    return true;
}

/* In two calls, if there are tiles for it. */
static bool encode(const tn_encode_kernels *k, const bench *b, parts *p)
{
    size_t size = (size_t)p->plan.tile_columns, count = b->n / size, half = count / 16 * 8;
    tn_tiles tiles = { .count = half, .size = size, .tensor_scale = b->tensor_scale,
                       .choice = b->choice, .x = b->x,
                       .data = p->plan.data.data, .scale = p->plan.scale.data,
                       .zero = p->plan.zero.data };
    CHECK(b->n % size == 0);
    if (half && !tn_scaled_encode_with(k, &p->plan, &tiles))
        return false;
    tiles.count = count - half;
    tiles.first = half * size;
    tiles.x += half * size;
    tiles.data += tn_scaled_field_bytes(p->plan.data.bits, half * size);
    if (tiles.scale)
        tiles.scale += tn_scaled_field_bytes(p->plan.scale.bits, half);
    if (tiles.zero)
        tiles.zero += tn_scaled_field_bytes(p->plan.zero.bits, half);
    return tn_scaled_encode_with(k, &p->plan, &tiles);
}

/* Nothing but the parts is written, and of those that the caller writes nothing. */
static void compare_parts(const bench *b, const parts *expected, const parts *found)
{
    for (size_t i = 0; i < expected->count; i++) {
        const uint8_t *a = expected->data[i], *z = found->data[i];
        bool written = i == 0 || (!b->choice && found->data[i] != found->plan.tscale.data);
        if (written && memcmp(a, z, expected->nbytes[i]) != 0)
            fail_msg("%s, mode %d, rounding %d: part %zu of %zu values differs", b->d->text, (int)b->o.rule,
                     (int)b->o.round, i, b->n);
        for (size_t k = written ? expected->nbytes[i] : 0; k < expected->nbytes[i] + GUARD; k++)
            CHECK(z[k] == 0xa5);
    }
}

/* Fills of the second group may be refused, and are not refused always. */
static void compare(const tn_encode_kernels *k, unsigned levels, const bench *b, fill how)
{
    parts expected;
    make_parts(&expected, b, 0);
    bool defined = define(b, &expected);
    for (unsigned i = 0; i < levels; i++) {
        parts found;
        make_parts(&found, b, 0xa5);
        bool done = encode(&k[i], b, &found);
        if (how < TINY && !done)
            fail_msg("%s, mode %d: level %u refuses fill %d", b->d->text, (int)b->o.rule, i, (int)how);
        CHECK(!(done && how >= INFINITE));
        CHECK(defined || !done);
        if (done)
            compare_parts(b, &expected, &found);
        free_parts(&found);
    }
    free_parts(&expected);
}

static float tensor_scale_of(const bench *b)
{
    tn_tile_range range = tn_tile_range_of(b->x, b->n);
    return b->d->has_tensor_scale
               ? tn_spec_value(&b->d->tensor_scale, tn_tensor_scale_for(b->d, &b->o, &range))
               : 1;
}

/* One tensor of so many values, tile after tile. */
static void try_options(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d,
                        const tn_quantize_options *o, fill how, size_t n, size_t size)
{
    bench b = { .d = d, .o = *o, .shape = { (int64_t)n }, .n = n };
    b.x = malloc(n * sizeof *b.x);
    assert_non_null(b.x);
    make_values(d, how, b.x, n, size);
    b.tensor_scale = tensor_scale_of(&b);
    compare(k, levels, &b, how);
    free(b.x);
}

static void try_values(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d, tn_scale_rule mode,
                       fill how, size_t n, size_t size, bool unpacked)
{
    const tn_quantize_options o = { .size = sizeof o, .rule = mode, .unpacked = unpacked };
    try_options(k, levels, d, &o, how, n, size);
}

/* --- all datatypes ---------------------------------------------------------------- */

/* Those of this file's encoder whose tiles lie in a row; NULL: the datatype is another's. */
static tn_datatype *taken(const char *text)
{
    tn_datatype *d;
    tn_scaled_plan plan;
    const tn_quantize_options o = { .size = sizeof o };
    const int64_t shape[2] = { 64, 2048 };
    CHECK(tn_datatype_parse(text, &d, NULL) == TN_OK);
    CHECK(tn_scaled_plan_make(&plan, d, 2, shape, &o, NULL, NULL) == TN_OK);
    if (d->dims < 2 && tn_scaled_encoder(&plan) && !tn_scaled_searcher(&plan))
        return d;
    tn_datatype_free(d);
    return NULL;
}

static const char *text_at(size_t i)
{
    size_t named = 0;
    while (tiles_at(named))
        named++;
    if (i < named)
        return tn_datatype_at(i)->text;
    return i - named < sizeof others / sizeof others[0] ? others[i - named] : NULL;
}

static bool seen_before(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(text_at(k), text_at(i)) == 0)
            return true;
    return false;
}

typedef void (*each_fn)(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d);

static unsigned each_datatype(each_fn run)
{
    tn_encode_kernels k[LEVELS];
    unsigned levels = make_levels(k), datatypes = 0;
    for (size_t i = 0; text_at(i); i++) {
        tn_datatype *d = seen_before(i) ? NULL : taken(text_at(i));
        if (!d)
            continue;
        run(k, levels, d);
        tn_datatype_free(d);
        datatypes++;
    }
    return datatypes;
}

/* Other modes than the first are of exponents. */
static tn_scale_rule modes_of(const tn_datatype *d)
{
    return d->scope != TN_SCOPE_NONE && d->scale.kind == TN_NUMBER_EXPONENT ? TN_SCALE_MSE : TN_SCALE_MIDMAX;
}

static void try_fills(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d)
{
    bool tiled = d->scope == TN_SCOPE_TILE;
    size_t size = tiled ? d->tile[0] : 200, n = tiled ? size * (size > 128 ? 2 : 700 / size) : 200;
    for (tn_scale_rule mode = TN_SCALE_MAX; mode < modes_of(d); mode++)
        for (fill how = NORMAL; how < FILLS; how++)
            try_values(k, levels, d, mode, how, n, size, false);
}

static void try_sizes(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d)
{
    static const size_t tiles[] = { 1, 2, 3, 8, 15, 16, 17, 31, 33, 65, 130 };
    static const size_t values[] = { 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 127, 1000, 4095, 4097,
                                     9001 };
    bool tiled = d->scope == TN_SCOPE_TILE;
    size_t sizes = tiled ? sizeof tiles / sizeof tiles[0] : sizeof values / sizeof values[0];
    for (size_t i = 0; i < sizes; i++) {
        size_t size = tiled ? d->tile[0] : values[i], n = tiled ? size * tiles[i] : size;
        if (n > LARGEST || (n > 5000 && size != 32 && tiled) || (n > 4096 && d->scope == TN_SCOPE_NONE))
            continue;
        try_values(k, levels, d, TN_SCALE_MAX, NORMAL, n, size, false);
        try_values(k, levels, d, TN_SCALE_MIDMAX, i % 2 ? SPARSE : POWERS, n, size, i % 3 == 0);
    }
}

/* Tensors shorter than a tile have one of their length. */
static void try_short(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d)
{
    for (size_t n = 1; d->scope == TN_SCOPE_TILE && n < 20 && n < d->tile[0]; n++)
        try_values(k, levels, d, TN_SCALE_CEIL, NORMAL, n, n, n % 2);
}

/* --- large tiles ------------------------------------------------------------------ */

/* Rows that are a tile each, whatever their length, have the codes that each has alone. */
static void try_rows(const tn_encode_kernels *k, const tn_datatype *d, size_t columns)
{
    enum { ROWS = 19 };
    const tn_quantize_options o = { .size = sizeof o };
    const int64_t shape[2] = { ROWS, (int64_t)columns };
    size_t n = ROWS * columns;
    uint8_t *memory = malloc(8 * n), *all[3], *alone[3];
    float *x = malloc(n * sizeof *x);
    tn_scaled_plan p;
    assert_non_null(memory);
    assert_non_null(x);
    make_values(d, NORMAL, x, n, columns);
    CHECK(tn_scaled_plan_make(&p, d, 2, shape, &o, NULL, NULL) == TN_OK);
    size_t row[3] = { (size_t)p.data.nbytes / ROWS, (size_t)p.scale.nbytes / ROWS,
                      (size_t)p.zero.nbytes / ROWS };
    for (size_t i = 0, at = 0; i < 3; at += 2 * ROWS * row[i++]) {
        all[i] = memory + at;
        alone[i] = all[i] + ROWS * row[i];
    }
    tn_tiles t = { .count = ROWS, .size = columns, .tensor_scale = 1, .x = x, .data = all[0], .scale = all[1],
                   .zero = all[2] };
    if (!tn_scaled_encode_with(k, &p, &t))
        fail_msg("%s: rows of %zu values are refused", d->text, columns);
    for (size_t i = 0; i < ROWS; i++) {
        t = (tn_tiles){ .count = 1, .size = columns, .tensor_scale = 1, .x = x + i * columns,
                        .data = alone[0] + i * row[0], .scale = alone[1] + i * row[1],
                        .zero = alone[2] + i * row[2] };
        CHECK(tn_scaled_encode_with(k, &p, &t));
    }
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(all[i], alone[i], ROWS * row[i]);
    free(memory);
    free(x);
}

static void large_tiles_are_encoded_together(void)
{
    static const char *const texts[] = { "int8|float32_t0", "int4|float16_t0", "uint4|float16_int8_t0",
                                         "e2m1fnuz|e8m0_t0", "e4m3fn|float32_t0" };
    static const size_t columns[] = { 24, 960, 1024, 1032, 2048, 4096, 4104, 9000 };
    tn_encode_kernels k[LEVELS];
    unsigned levels = make_levels(k);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tn_datatype *d;
        CHECK(tn_datatype_parse(texts[i], &d, NULL) == TN_OK);
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            for (unsigned level = 0; level < levels; level++)
                try_rows(&k[level], d, columns[c]);
        tn_datatype_free(d);
    }
}

static unsigned rounded;

static void try_roundings(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d)
{
    static const tn_round rounds[] = { TN_ROUND_AWAY, TN_ROUND_ZERO, TN_ROUND_STOCHASTIC };
    size_t size = d->scope == TN_SCOPE_TILE ? d->tile[0] : 200, tiles = size < 64 ? 40 : 17;
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        const tn_quantize_options o = { .size = sizeof o, .round = rounds[i], .seed = bits64() };
        const int64_t shape[1] = { 4096 };
        tn_scaled_plan plan;
        CHECK(tn_scaled_plan_make(&plan, d, 1, shape, &o, NULL, NULL) == TN_OK);
        if (!tn_scaled_encoder(&plan))
            return;
        /* numbers with float32's exponents are refused where they have subnormal steps or become infinite */
        for (fill how = d->number.bias < 127 ? NORMAL : TINY; how < FILLS; how++)
            try_options(k, levels, d, &o, how, size * (d->scope == TN_SCOPE_TILE ? tiles : 1), size);
    }
    rounded++;
}

static void other_roundings_have_the_codes_of_the_definition(void)
{
    each_datatype(try_roundings);
    CHECK(rounded >= 50);
}

static void every_datatype_has_the_codes_of_the_definition(void)
{
    CHECK(each_datatype(try_fills) >= 100);
}

static void any_number_of_tiles_is_encoded(void)
{
    each_datatype(try_sizes);
}

static void tensors_shorter_than_a_tile_are_encoded(void)
{
    each_datatype(try_short);
}

/* --- pieces of a group -------------------------------------------------------------- */

static void try_piece(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d, fill how,
                      const tn_tile_range *range)
{
    tn_tile_choice choices[TN_TILE_CHOICES];
    size_t n = 1 + (size_t)(bits64() % 300);
    bench b = { .d = d, .o = { .size = sizeof b.o }, .shape = { (int64_t)n }, .n = n, .tensor_scale = 1,
                .choice = choices };
    b.x = malloc(n * sizeof *b.x);
    assert_non_null(b.x);
    make_values(d, how, b.x, n, n);
    tn_tile_choices(d, &b.o, range, 1, 0, choices);
    bool common = range->largest == 0 || (range->largest > 0x1p-50f && range->largest < 0x1p50f);
    compare(k, levels, &b, common || how >= INFINITE ? how : ANY);
    free(b.x);
}

static void try_pieces(const tn_encode_kernels *k, unsigned levels, const tn_datatype *d)
{
    static const tn_tile_range ranges[] = {
        { 0, 0, 0, false }, { 1, -1, 1, false }, { 3, 0, 3, false }, { 90, -90, 2, false },
        { 0.01f, -0.01f, 0.001f, false },
        { 0x1p100f, -0x1p100f, 1, false }, { 0x1.8p127f, 0, 0x1.8p127f, false },
        { 0x1p-126f, -0x1p-126f, 0, false },
    };
    if (d->scope != TN_SCOPE_TENSOR && d->scope != TN_SCOPE_CHANNEL)
        return;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        for (fill how = NORMAL; how < FILLS; how++)
            try_piece(k, levels, d, ranges[i].largest == 0 && how < INFINITE ? ZEROS : how, &ranges[i]);
}

static void pieces_of_a_group_take_its_choice(void)
{
    each_datatype(try_pieces);
}

/* --- ggml's way ---------------------------------------------------------------------- */

static void compare_ggml(const tn_encode_kernels *k, unsigned levels, bench *b, fill how)
{
    for (unsigned unpacked = 0; unpacked < 2; unpacked++) {
        b->o = (tn_quantize_options){ .size = sizeof b->o, .ggml = true, .unpacked = unpacked };
        compare(k, levels, b, how);
    }
}

static void ggml_has_the_codes_of_the_definition(void)
{
    static const size_t sizes[] = { 1, 2, 7, 31, 32, 64, 96, 32 * 17, 32 * 130 };
    tn_encode_kernels k[LEVELS];
    unsigned levels = make_levels(k);
    tn_datatype *d;
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (fill how = NORMAL; how < FILLS; how++) {
            size_t n = sizes[i];
            bench b = { .d = d, .shape = { (int64_t)n }, .n = n, .tensor_scale = 1 };
            b.x = malloc(n * sizeof *b.x);
            assert_non_null(b.x);
            make_values(d, how, b.x, n, 32);
            compare_ggml(k, levels, &b, how);
            free(b.x);
        }
    }
    tn_datatype_free(d);
}

/* Just beside what is between two numbers, whose largest is 6, and just beside all numbers. */
static void ggml_rounds_ties_to_the_smaller_magnitude(void)
{
    static const float marks[] = { 0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f, 2, 2.5f, 3, 3.5f, 4, 5, 6,
                                   0x1p-126f };
    enum { MARKS = sizeof marks / sizeof marks[0], N = 32 * 6 };
    tn_encode_kernels k[LEVELS];
    unsigned levels = make_levels(k);
    tn_datatype *d;
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK);
    bench b = { .d = d, .shape = { N }, .n = N, .tensor_scale = 1 };
    b.x = malloc(N * sizeof *b.x);
    assert_non_null(b.x);
    for (int e = -128; e <= 120; e += 4) {              /* the lowest scales are clamped */
        for (size_t i = 0; i < N; i++) {
            float x = marks[i % MARKS], side = i / MARKS % 3 == 0 ? x : i / MARKS % 3 == 1 ? 0 : 8;
            b.x[i] = ldexpf(nextafterf(i % 32 == 0 ? 6 : x, i % 32 == 0 ? 6 : side), e) *
                     (i / MARKS % 2 ? -1.0f : 1.0f);
        }
        compare_ggml(k, levels, &b, e < -120 ? ANY : NORMAL);
    }
    free(b.x);
    tn_datatype_free(d);
}

/* The logarithm of these is a whole number or not, as it is rounded. */
static void ggml_scales_just_below_powers_of_two_are_those_of_the_definition(void)
{
    enum { TILES = 96, N = 32 * TILES };
    tn_encode_kernels k[LEVELS];
    unsigned levels = make_levels(k);
    tn_datatype *d;
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK);
    bench b = { .d = d, .shape = { N }, .n = N, .tensor_scale = 1 };
    b.x = calloc(N, sizeof *b.x);
    assert_non_null(b.x);
    for (uint32_t field = 0; field < 255; field += field < 4 ? 1 : 3) {
        for (uint32_t i = 0; i < TILES; i++) {
            b.x[32 * i] = from_bits(field << 23 | (0x7fffff - i));
            b.x[32 * i + 1] = -0.7f * b.x[32 * i];
        }
        compare_ggml(k, levels, &b, field > 0 && field < 254 ? NORMAL : ANY);
    }
    free(b.x);
    tn_datatype_free(d);
}

static void ggml_has_an_encoder(void)
{
    const tn_quantize_options o = { .size = sizeof o, .ggml = true };
    const int64_t shape[1] = { 64 };
    tn_datatype *d;
    tn_scaled_plan plan;
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK);
    CHECK(tn_scaled_plan_make(&plan, d, 1, shape, &o, NULL, NULL) == TN_OK);
    assert_non_null(tn_scaled_encoder(&plan));
    tn_datatype_free(d);
}

/* --- what is left to the definition --------------------------------------------------- */

static void roundings_of_scales_and_searches_are_left_to_the_definition(void)
{
    static const struct { const char *text; tn_quantize_options o; } left[] = {
        { "int4|bfloat16_t32", { .size = sizeof left[0].o, .round = TN_ROUND_AWAY } },
        { "uint4|float16_int8_t32", { .size = sizeof left[0].o, .round = TN_ROUND_STOCHASTIC } },
        { "mxfp4", { .size = sizeof left[0].o, .rule = TN_SCALE_MSE } },
    };
    const int64_t shape[1] = { 64 };
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        tn_datatype *d;
        tn_scaled_plan plan;
        CHECK(tn_datatype_parse(left[i].text, &d, NULL) == TN_OK);
        CHECK(tn_scaled_plan_make(&plan, d, 1, shape, &left[i].o, NULL, NULL) == TN_OK);
        CHECK(tn_scaled_encoder(&plan) == tn_scaled_searcher(&plan));
        tn_datatype_free(d);
    }
}

static void a_tensor_scale_that_cannot_divide_is_left_to_the_definition(void)
{
    static const float bad[] = { 0, -1, INFINITY, NAN };
    const int64_t shape[1] = { 16 };
    const tn_quantize_options o = { .size = sizeof o };
    float x[16] = { 1 };
    uint8_t data[8], scale[1];
    tn_datatype *d;
    tn_scaled_plan plan;
    CHECK(tn_datatype_parse("nvfp4", &d, NULL) == TN_OK);
    CHECK(tn_scaled_plan_make(&plan, d, 1, shape, &o, NULL, NULL) == TN_OK);
    tn_tiles_encode_fn encoder = tn_scaled_encoder(&plan);
    assert_non_null(encoder);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!encoder(&plan, &(tn_tiles){ .count = 1, .size = 16, .tensor_scale = bad[i], .x = x,
                                           .data = data, .scale = scale }));
    CHECK(encoder(&plan, &(tn_tiles){ .count = 1, .size = 16, .tensor_scale = 1, .x = x, .data = data,
                                      .scale = scale }));
    tn_datatype_free(d);
}

/* --- ranges ------------------------------------------------------------------------------ */

static void ranges_are_those_of_the_definition(void)
{
    tn_datatype *d;
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK);
    for (size_t n = 0; n < 40000; n = n < 200 ? n + 1 : n * 2 - 7) {
        for (fill how = NORMAL; how < FILLS; how++) {
            float *x = malloc(n * sizeof *x + 1);
            assert_non_null(x);
            if (n)
                make_values(d, how, x, n, n);
            tn_tile_range a = tn_tile_range_of(x, n), b = tn_scaled_range(x, n, true),
                          one = tn_scaled_range(x, n, false);
            CHECK(a.largest == b.largest && a.low == b.low && a.high == b.high && a.infinite == b.infinite);
            CHECK(a.largest == one.largest && a.infinite == one.infinite);
            CHECK(!signbit(b.high) && !signbit(b.largest));
            free(x);
        }
    }
    tn_datatype_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_datatype_has_the_codes_of_the_definition),
        TEST(other_roundings_have_the_codes_of_the_definition),
        TEST(any_number_of_tiles_is_encoded),
        TEST(large_tiles_are_encoded_together),
        TEST(tensors_shorter_than_a_tile_are_encoded),
        TEST(pieces_of_a_group_take_its_choice),
        TEST(ggml_has_the_codes_of_the_definition),
        TEST(ggml_rounds_ties_to_the_smaller_magnitude),
        TEST(ggml_scales_just_below_powers_of_two_are_those_of_the_definition),
        TEST(ggml_has_an_encoder),
        TEST(roundings_of_scales_and_searches_are_left_to_the_definition),
        TEST(a_tensor_scale_that_cannot_divide_is_left_to_the_definition),
        TEST(ranges_are_those_of_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
