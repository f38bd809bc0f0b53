/* The parts of scaled tensors: shapes and types worked out by hand from the specification's text, and bits a
 * value. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>

#include "datatype.h"

/* 8x64; nothing for a scalar. */
static uint32_t read_shape(const char *text, int64_t shape[64])
{
    uint32_t rank = 0;
    while (*text) {
        char *end;
        shape[rank++] = strtoll(text, &end, 10);
        text = *end ? end + 1 : end;
    }
    return rank;
}

static size_t put_shape(char *text, size_t cap, tn_dtype type, uint32_t rank, const int64_t *shape)
{
    size_t n = (size_t)snprintf(text, cap, "%s", tn_dtype_get(type)->short_name);
    for (uint32_t i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, cap - n, "%s%lld", i ? "x" : " ", (long long)shape[i]);
    return n;
}

/* "ROLE PLAIN" or "ROLE PLAIN > COMPRESSED" for each part. */
static void put_parts(const tn_scaled_shapes *s, char *text, size_t cap)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        char plain[200], packed[200];
        const tn_scaled_part *p = &s->parts[i];
        put_shape(plain, sizeof plain, p->plain_dtype, p->rank, p->plain_shape);
        put_shape(packed, sizeof packed, p->dtype, p->rank, p->shape);
        n += (size_t)snprintf(text + n, cap - n, "%s%s %s", i ? ", " : "", p->role, plain);
        if (strcmp(plain, packed) != 0)
            n += (size_t)snprintf(text + n, cap - n, " > %s", packed);
    }
}

typedef struct expectation { const char *datatype, *shape, *parts; } expectation;

static void check_all(const expectation *e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tn_datatype *d = datatype_of(e[i].datatype);
        int64_t shape[64];
        uint32_t rank = read_shape(e[i].shape, shape);
        tn_scaled_shapes s;
        tn_error err = { .text = "" };
        char parts[600] = "";
        if (tn_scaled_shapes_for(d, rank, shape, &s, &err))
            fail_msg("%s of %s: %s", e[i].datatype, e[i].shape, line_of(&err));
        put_parts(&s, parts, sizeof parts);
        if (strcmp(parts, e[i].parts) != 0)
            fail_msg("%s of %s: expected <%s> but found <%s>", e[i].datatype, e[i].shape, e[i].parts, parts);
        tn_datatype_free(d);
    }
}
#define CHECK_ALL(table) check_all(table, sizeof (table) / sizeof (table)[0])

static void data_is_packed_along_the_last_dimension(void)
{
    static const expectation table[] = {
        { "mxfp4", "8x64", "data u8 8x64 > u8 8x32, scale e8m0 8x2" },
        { "mxfp4", "3x71", "data u8 3x71 > u8 3x36, scale e8m0 3x3" },
        { "mxfp6", "2x10", "data u8 2x10 > u8 2x8, scale e8m0 2x1" },               /* 60 bits */
        { "mxfp5e2", "2x10", "data u8 2x10 > u8 2x7, scale e8m0 2x1" },             /* 50 bits */
        { "mxfp8", "5", "data f8e4m3fn 5, scale e8m0 1" },
        { "mxbf8", "2x3x33", "data f8e5m2 2x3x33, scale e8m0 2x3x2" },
        { "mxint8", "4x32", "data i8 4x32, scale e8m0 4x1" },
        { "mxint4", "4x33", "data u8 4x33 > u8 4x17, scale e8m0 4x2" },
        { "int3|e8m0_t16", "1x11", "data u8 1x11 > u8 1x5, scale e8m0 1x1" },       /* 33 bits */
        { "int2|e8m0_t16", "9", "data u8 9 > u8 3, scale e8m0 1" },
        { "int7|e8m0_t8", "9", "data u8 9 > u8 8, scale e8m0 2" },                  /* 63 bits */
        { "int16_f", "3x4", "data i16 3x4, scale f16 1x1" },
        { "int9|float32", "3x4", "data u16 3x4, scale f32 1x1" },
        { "uint16_bb", "7", "data u16 7, scale bf16 1, zero bf16 1" },
        { "fp8n_F", "7", "data u8 7, scale f32 1" },                                /* bias 7: no type of the table */
        { "float16", "2x3", "data f16 2x3" },
        { "e4m3b8fnuz", "2x3", "data f8e4m3fnuz 2x3" },
        { "binary8p3", "2x3", "data u8 2x3" },
        { "e3m3fnuz", "2x10", "data u8 2x10 > u8 2x9" },                            /* 70 bits */
        { "e5m6", "2x10", "data u16 2x10" },
        { "float24", "2x10", "data u32 2x10" },
    };
    CHECK_ALL(table);
}

static void scales_have_the_tiled_shape(void)
{
    static const expectation table[] = {
        { "e2m1fnuz|e8m0_t32d0", "70x6", "data u8 70x6 > u8 70x3, scale e8m0 3x6" },
        { "e4m3fn|float32_t8d1", "2x20x3", "data f8e4m3fn 2x20x3, scale f32 2x3x3" },
        { "int8|bfloat16_t32", "64x100", "data i8 64x100, scale bf16 64x4" },
        { "int4_f32", "2x100", "data u8 2x100 > u8 2x50, scale u16 2x4" },          /* e5m3: 9 bits take 16 */
        { "mxfp4s", "70x40", "data u8 70x40 > u8 70x20, scale e8m0 3x2" },
        { "int8|bfloat16_t4d0_t32d1", "6x40x5", "data i8 6x40x5, scale bf16 2x2x5" },
        { "nvf8s", "5x16x17", "data f8e4m3fn 5x16x17, scale f8e4m3 5x1x2" },
        { "e2m1fnuz|e8m0_t1024", "3x5", "data u8 3x5 > u8 3x3, scale e8m0 3x1" },   /* the tile is larger */
        { "mxfp4s", "3x5", "data u8 3x5 > u8 3x3, scale e8m0 1x1" },
        { "int8_Fc", "64x128", "data i8 64x128, scale f32 64x1" },
        { "int8|float32_t0d0", "64x128", "data i8 64x128, scale f32 1x128" },
        { "int8|float32_t0d1", "4x64x128", "data i8 4x64x128, scale f32 4x1x128" },
        { "uint8_fic", "64x128", "data u8 64x128, scale f16 64x1, zero i8 64x1" },
        { "uint4|bfloat16_bfloat16_t0_t32", "64x128",
          "data u8 64x128 > u8 64x64, scale bf16 1x4, zero bf16 1x4" },
        { "int8_f", "3x4x5", "data i8 3x4x5, scale f16 1x1x1" },
        { "nvfp4", "4x40", "data u8 4x40 > u8 4x20, scale f8e4m3fn 4x3, tscale f32" },
    };
    CHECK_ALL(table);
}

static void narrow_scales_and_zero_points_are_packed_along_the_tiled_dimension(void)
{
    static const expectation table[] = {
        { "e4m3fn|e5m0_t32", "4x320", "data f8e4m3fn 4x320, scale u8 4x10 > u8 4x7" },              /* 50 bits */
        { "e4m3fn|e5m0_t8d1", "2x20x3", "data f8e4m3fn 2x20x3, scale u8 2x3x3 > u8 2x2x3" },        /* 15 bits */
        { "e2m1fnuz|e5m0_t16_t16", "40x100", "data u8 40x100 > u8 40x50, scale u8 3x7 > u8 3x5" },  /* 35 bits, along the second */
        { "e2m1fnuz|e5m0_t16d0_t16d1", "40x100x2",
          "data u8 40x100x2 > u8 40x100x1, scale u8 3x7x2 > u8 3x5x2" },
        { "e4m3fn|e5m0_t0", "4x320", "data f8e4m3fn 4x320, scale u8 4x1" },
        { "e4m3fn|e5m0", "4x320", "data f8e4m3fn 4x320, scale u8 1x1" },
        { "e4m3fn|e2m1fnuz_t32", "2x100", "data f8e4m3fn 2x100, scale u8 2x4 > u8 2x2" },
        { "uint4_f12i432", "2x130", "data u8 2x130 > u8 2x65, scale u16 2x5, zero u8 2x5 > u8 2x3" },
        { "uint4|float16_int4_t8d0", "20x6", "data u8 20x6 > u8 20x3, scale f16 3x6, zero u8 3x6 > u8 2x6" },
        { "uint8|e4m3_int3_t4_t8", "9x90", "data u8 9x90, scale f8e4m3 3x12, zero u8 3x12 > u8 3x5" },      /* 36 bits */
        { "uint8_bi", "2x130", "data u8 2x130, scale bf16 1x1, zero i8 1x1" },
    };
    CHECK_ALL(table);
}

static void offsets_and_mappings_take_whole_bytes_a_tile(void)
{
    static const expectation table[] = {
        { "mx9", "2x20", "data i8 2x20, scale e8m0 2x2, offset u8 2x16 > u8 2x2" },
        { "mx4", "2x20", "data u8 2x20 > u8 2x8, scale e8m0 2x2, offset u8 2x16 > u8 2x2" },
        { "e2m1_e32s4o2", "3x5", "data u8 3x5 > u8 3x3, scale e8m0 3x1, offset u8 3x8 > u8 3x2" },
        { "e2m1_e32s8o1", "3x64", "data u8 3x64 > u8 3x32, scale e8m0 3x2, offset u8 3x8 > u8 3x2" },       /* 4 bits take a byte */
        { "e2m1fnuz|e8m0_t32s8o1d0", "70x3",
          "data u8 70x3 > u8 70x2, scale e8m0 3x3, offset u8 12x3 > u8 3x3" },
        { "e2m1fnuz|e8m0_t2_t32s8o2", "5x64", "data u8 5x64 > u8 5x32, scale e8m0 3x2, offset u8 6x8 > u8 3x4" },   /* 8 of 2 bits */
        { "icb44fi2_e32", "4x320", "data u8 4x320 > u8 4x160, scale e8m0 4x10, meta u8 4x10" },
        { "icb44fi2_e32s8", "2x64", "data u8 2x64 > u8 2x32, scale e8m0 2x2, meta u8 2x8 > u8 2x4" },       /* 4 of 4 bits */
        { "icb44fi2_f32s4", "2x64", "data u8 2x64 > u8 2x32, scale u16 2x2, meta u8 2x16 > u8 2x8" },       /* 8 of 4 bits */
        { "icb44fi4_f32", "4x320", "data u8 4x320 > u8 4x160, scale u8 4x10 > u8 4x7, meta u8 4x10" },
        { "mxfi4", "2x64", "data u8 2x64 > u8 2x32, scale e8m0 2x2, meta u8 2x16 > u8 2x2" },               /* 8 of 1 bit */
        { "mxfp4f4", "2x65", "data u8 2x65 > u8 2x33, scale e8m0 2x3, meta u8 2x12 > u8 2x3" },             /* 4 of 2 bits */
        { "cb42f1346_e2m3fnuz|e8m0_t4_t32s8", "6x40",
          "data u8 6x40 > u8 6x20, scale e8m0 2x2, meta u8 8x8 > u8 2x8" },
        { "cb42f1346_e2m3fnuz|e8m0_t32s8d0", "40x6",
          "data u8 40x6 > u8 40x3, scale e8m0 2x6, meta u8 8x6 > u8 2x6" },
        { "cb41fi_e2m2fnuz|float32_t0", "40x6", "data u8 40x6 > u8 40x3, scale f32 40x1, meta u8 40x1" },
        { "cb41fi_e2m2fnuz|float32", "40x6", "data u8 40x6 > u8 40x3, scale f32 1x1, meta u8 1x1" },
        { "cb81ie_int9|e8m0_t16s2", "2x20", "data u8 2x20, scale e8m0 2x2, meta u8 2x16 > u8 2x2" },
    };
    CHECK_ALL(table);
}

static void sparse_data_has_only_what_is_kept_and_a_bit_a_value_says_what(void)
{
    static const expectation table[] = {
        { "int8|float32_t32n2m4", "2x100",
          "data i8 2x100 > i8 2x50, scale f32 2x2, mask bool 2x100 > u8 2x13" },
        { "e2m1fnuz|e8m0_t32n2m4", "2x101", "data u8 2x101 > u8 2x26, scale e8m0 2x2, mask bool 2x101 > u8 2x13" },  /* 52 slots */
        { "int8|e8m0_t32n2m8", "4x256",
          "data i8 4x256 > i8 4x64, scale e8m0 4x2, mask bool 4x256 > u8 4x32" },
        { "e2m1fnuz|e8m0_t16d0n1m4", "70x6",
          "data u8 70x6 > u8 18x3, scale e8m0 2x6, mask bool 70x6 > u8 9x6" },
        { "int8|float32_t0n3m4", "5x7", "data i8 5x7 > i8 5x6, scale f32 5x1, mask bool 5x7 > u8 5x1" },
        { "cb41fi_e2m2fnuz|e8m0_t32s4n2m4", "2x128",
          "data u8 2x128 > u8 2x32, scale e8m0 2x2, meta u8 2x16 > u8 2x2, mask bool 2x128 > u8 2x16" },
        { "uint4|float16_int8_t32n8m16", "130", "data u8 130 > u8 36, scale f16 3, zero i8 3, mask bool 130 > u8 17" }, /* 72 slots */
        { "float32|n2m4", "2x101", "data f32 2x101 > f32 2x52, mask bool 2x101 > u8 2x13" },
        { "e2m1fnuz|n1m4d0", "70x6", "data u8 70x6 > u8 18x3, mask bool 70x6 > u8 9x6" },
        { "e5m3|n3m4", "0x7", "data u16 0x7 > u16 0x6, mask bool 0x7 > u8 0x1" },
    };
    CHECK_ALL(table);
}

static void scalars_and_empty_tensors_have_parts_too(void)
{
    static const expectation table[] = {
        { "int8_F", "", "data i8, scale f32" },
        { "e2m1fnuz|float32", "", "data u8, scale f32" },
        { "uint8_FF", "", "data u8, scale f32, zero f32" },
        { "cb41fi_e2m2fnuz|float32", "", "data u8, scale f32, meta u8" },
        { "e2m1fnuz", "", "data u8" },
        { "mxfp4", "0x64", "data u8 0x64 > u8 0x32, scale e8m0 0x2" },
        { "mxfp4", "4x0", "data u8 4x0, scale e8m0 4x0" },
        { "mxfp4", "0", "data u8 0, scale e8m0 0" },
        { "int8_F", "0x4", "data i8 0x4, scale f32 0x1" },
        { "int8_Fc", "3x0", "data i8 3x0, scale f32 3x0" },
        { "nvfp4", "0x16", "data u8 0x16 > u8 0x8, scale f8e4m3fn 0x1, tscale f32" },
        { "mxfi4", "4x0", "data u8 4x0, scale e8m0 4x0, meta u8 4x0" },
        { "mx9", "0x16", "data i8 0x16, scale e8m0 0x1, offset u8 0x8 > u8 0x1" },
        { "int8|float32_t32n2m4", "0x100",
          "data i8 0x100 > i8 0x50, scale f32 0x2, mask bool 0x100 > u8 0x13" },
    };
    CHECK_ALL(table);
}

static void refused(const char *datatype, uint32_t rank, const int64_t *shape, tn_status status,
                    const char *why)
{
    tn_datatype *d = datatype_of(datatype);
    tn_scaled_shapes s = { .count = 99 };
    tn_error err = { .text = "" };
    CHECK(tn_scaled_shapes_for(d, rank, shape, &s, &err) == status && s.count == 99);
    CHECK(tn_scaled_shapes_for(d, rank, shape, &s, NULL) == status);
    assert_string_equal(said_of(&err), why);
    tn_datatype_free(d);
}

static void a_shape_that_tiles_do_not_fit_is_refused(void)
{
    const int64_t shape[64] = { 4, 8, 16 }, negative[] = { 4, -1 }, huge[] = { INT64_MAX, INT64_MAX };
    refused("mxfp4", 0, NULL, TN_ERR_ARGUMENT,
            "e2m1fnuz|e8m0_t32: its tiles need rank 1 or more but the tensor has rank 0");
    refused("int8_Fc", 0, NULL, TN_ERR_ARGUMENT,
            "int8|float32_t0: its tiles need rank 1 or more but the tensor has rank 0");
    refused("mxfp4s", 1, shape, TN_ERR_ARGUMENT,
            "e2m1fnuz|e8m0_t32_t32: its tiles need rank 2 or more but the tensor has rank 1");
    refused("int8|e8m0_t32d3", 3, shape, TN_ERR_ARGUMENT,
            "int8|e8m0_t32d3: its tiles need rank 4 or more but the tensor has rank 3");
    refused("int8|e8m0_t8d2_t8d3", 3, shape, TN_ERR_ARGUMENT,
            "int8|e8m0_t8d2_t8d3: its tiles need rank 4 or more but the tensor has rank 3");
    refused("mxfp4", 65, shape, TN_ERR_ARGUMENT, "expected a shape of at most 64 dimensions but found 65");
    refused("mxfp4", 2, NULL, TN_ERR_ARGUMENT, "expected a shape of at most 64 dimensions but found 2");
    refused("mxfp4", 2, negative, TN_ERR_ARGUMENT, "dimension 1: expected a size of 0 or more but found -1");
    refused("e2m1fnuz|e8m0_t1024_t32s8o1", 2, huge, TN_ERR_LIMIT,
            "9007199254740992 tiles of 1024 are more than a dimension can have");
}

static void sizes_do_not_wrap(void)
{
    static const expectation table[] = {
        { "mxfp4", "9223372036854775807",
          "data u8 9223372036854775807 > u8 4611686018427387904, scale e8m0 288230376151711744" },
        { "mx9", "9223372036854775807", "data i8 9223372036854775807, scale e8m0 576460752303423488, "
          "offset u8 4611686018427387904 > u8 576460752303423488" },
        { "int8|float32_t0n15m16", "9223372036854775807",
          "data i8 9223372036854775807 > i8 8646911284551352320, scale f32 1, "
          "mask bool 9223372036854775807 > u8 1152921504606846976" },
    };
    CHECK_ALL(table);
}

/* ---- bits ---- */

static double bits_of(const char *text)
{
    tn_datatype *d = datatype_of(text);
    double bits = tn_datatype_bits(d);
    tn_datatype_free(d);
    return bits;
}

static void bits_count_every_part(void)
{
    CHECK(bits_of("float32") == 32 && bits_of("e3m3fnuz") == 7 && bits_of("e5m6") == 16);
    CHECK(bits_of("int8_f") == 8 && bits_of("int4_Fc") == 4 && bits_of("uint4|float32_float32_t0_t32") == 4);
    CHECK(bits_of("mxfp8") == 8.25 && bits_of("mxfp6") == 6.25 && bits_of("mxfp4") == 4.25 &&
          bits_of("bfp16") == 9);
    CHECK(bits_of("nvfp4") == 4.5 && bits_of("mxfp4s") == 4 + 8 / 1024.0);
    CHECK(bits_of("mx9") == 9 && bits_of("mx6") == 6 && bits_of("mx4") == 4);           /* a bit for each of 8 subtiles */
    CHECK(bits_of("uint4_ff32") == 5 && bits_of("uint4_fi32") == 4.75 && bits_of("int4_b32") == 4.5);
    CHECK(bits_of("int4_f32") == 4.5);                                                  /* 9 bits take 16 */
    CHECK(bits_of("icb44fi4_e32s8") == 4.75 && bits_of("icb44fi4_e32s4") == 5.25 &&
          bits_of("icb44fi4_f32") == 4 + 13 / 32.0);
    CHECK(bits_of("mxfi4") == 4.5 && bits_of("mxfp4m") == 4.5 && bits_of("mxfp4e") == 4.5 &&
          bits_of("mxfp4f4") == 4.5);
    CHECK(bits_of("float32|n2m4") == 16 + 1 && bits_of("e2m1fnuz|n1m8d0") == 0.5 + 1);
    CHECK(bits_of("int8|float32_t32n2m4") == 4 + 1 + 0.5 &&
          bits_of("e2m1fnuz|e8m0_t32n2m4") == 2 + 1 + 0.125);
}

/* What the parts of a large tensor really take. */
static void bits_are_those_of_the_compressed_parts(void)
{
    const int64_t shape[] = { 1 << 20, 1 << 20 };
    for (size_t i = 0; tn_datatype_at(i); i++) {
        tn_datatype *d = datatype_of(tn_datatype_at(i)->name);
        tn_scaled_shapes s;
        double bits = 0;
        CHECK(tn_scaled_shapes_for(d, 2, shape, &s, NULL) == TN_OK);
        for (uint32_t k = 0; k < s.count; k++) {
            double part = tn_dtype_get(s.parts[k].dtype)->bits;
            for (uint32_t dim = 0; dim < s.parts[k].rank; dim++)
                part *= (double)s.parts[k].shape[dim];
            bits += part / ((double)shape[0] * (double)shape[1]);
        }
        if (!(bits >= tn_datatype_bits(d) && bits < tn_datatype_bits(d) + 1e-4))
            fail_msg("%s: expected %g but found %g", tn_datatype_at(i)->name, bits, tn_datatype_bits(d));
        tn_datatype_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(data_is_packed_along_the_last_dimension),
        TEST(scales_have_the_tiled_shape),
        TEST(narrow_scales_and_zero_points_are_packed_along_the_tiled_dimension),
        TEST(offsets_and_mappings_take_whole_bytes_a_tile),
        TEST(sparse_data_has_only_what_is_kept_and_a_bit_a_value_says_what),
        TEST(scalars_and_empty_tensors_have_parts_too),
        TEST(a_shape_that_tiles_do_not_fit_is_refused),
        TEST(sizes_do_not_wrap),
        TEST(bits_count_every_part),
        TEST(bits_are_those_of_the_compressed_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
