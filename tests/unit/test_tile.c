#include <float.h>
#include <math.h>
#include <stdio.h>

#include "support.h"
#include "datatype.h"
#include "quant/tile.h"

/* One tile at a time, by hand. */

enum { MOST = 128 };

typedef struct tried {
    tn_tile  t;
    uint64_t index[MOST];
    uint8_t  offset[MOST], meta[MOST], mask[MOST];
    uint32_t code[MOST];
    float    x[MOST], y[MOST];
    size_t   bad;
} tried;

static const tn_quantize_options plain = { .size = sizeof plain };

/* Encodes n values, the last ones padding, and decodes them. */
static tn_status try_padded(tried *r, const char *text, const tn_quantize_options *o, const float *x, size_t n,
                            size_t real, float tensor_scale)
{
    tn_datatype *d = datatype_of(text);
    CHECK(n <= MOST);
    memset(r, 0xa5, sizeof *r);
    memset(r->x, 0, sizeof r->x);
    memcpy(r->x, x, real * sizeof *x);
    for (size_t i = 0; i < n; i++)
        r->index[i] = i < real ? i : UINT64_MAX;
    r->t = (tn_tile){ .x = r->x, .n = n, .index = r->index, .tensor_scale = tensor_scale, .offset = r->offset,
                      .meta = r->meta,
                      .mask = r->mask, .code = r->code };
    tn_status status = tn_tile_encode(d, o, &r->t, &r->bad);
    if (status == TN_OK)
        tn_tile_decode(d, &r->t, r->y);
    tn_datatype_free(d);
    return status;
}

static tn_status try_tile(tried *r, const char *text, const tn_quantize_options *o, const float *x, size_t n)
{
    return try_padded(r, text, o, x, n, n, 1);
}

/* Bits, so that -0 is not 0. */
static bool is(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* --- exponents ------------------------------------------------------------------- */

/* The scale code of a tile of 0 but for `a`. */
static uint32_t code_for(const char *text, tn_scale_rule mode, float a)
{
    const tn_quantize_options o = { .size = sizeof o, .rule = mode };
    float x[32] = { 0, a };
    tried r;
    CHECK(try_tile(&r, text, &o, x, 32) == TN_OK);
    return r.t.scale;
}

static void every_mode_has_its_exponent(void)
{
    /* floor, midmax, topbinade, option3, ceil; largest 6, midmax 7 */
    static const struct { float a; uint32_t code[5]; } e2m1[] = {
        { 4, { 127, 127, 127, 127, 127 } },
        { 6, { 127, 127, 127, 127, 127 } },
        { 6.0000005f, { 127, 127, 128, 127, 128 } },
        { 7, { 127, 127, 128, 128, 128 } },             /* 1.75 is rounded to 2 */
        { 7.0000005f, { 127, 128, 128, 128, 128 } },
        { 7.9999995f, { 127, 128, 128, 128, 128 } },
        { 8, { 128, 128, 128, 128, 128 } },
    };
    /* largest 1.75: only ceil is for integers */
    static const struct { float a; uint32_t code[5]; } int4[] = {
        { 1, { 127, 127, 127, 127, 127 } },
        { 1.75f, { 127, 127, 127, 127, 127 } },
        { 1.8f, { 127, 127, 127, 127, 128 } },
        { 1.99f, { 127, 127, 127, 127, 128 } },
    };
    for (size_t i = 0; i < sizeof e2m1 / sizeof e2m1[0]; i++)
        for (int mode = 0; mode < 5; mode++)
            assert_int_equal(code_for("e2m1fnuz|e8m0_t32", (tn_scale_rule)mode, e2m1[i].a),
                             e2m1[i].code[mode]);
    for (size_t i = 0; i < sizeof int4 / sizeof int4[0]; i++)
        for (int mode = 0; mode < 5; mode++)
            assert_int_equal(code_for("int4|e8m0_t32", (tn_scale_rule)mode, int4[i].a), int4[i].code[mode]);
}

static void exponents_stay_within_their_type(void)
{
    CHECK(code_for("e2m1fnuz|e8m0_t32", TN_SCALE_MAX, FLT_MAX) == 127 + 125);
    CHECK(code_for("int8|e8m0_t32", TN_SCALE_MAX, FLT_MAX) == 254);
    CHECK(code_for("int8|e8m0_t32", TN_SCALE_CEIL, FLT_MAX) == 254);
    CHECK(code_for("e2m1fnuz|e8m0_t32", TN_SCALE_MAX, 0x1p-149f) == 0);
    CHECK(code_for("e2m1fnuz|e5m0_t32", TN_SCALE_MAX, 0x1p40f) == 30);
    CHECK(code_for("e2m1fnuz|e5m0_t32", TN_SCALE_MAX, 0x1p-40f) == 0);
    CHECK(code_for("e2m1fnuz|e8m0_t32", TN_SCALE_MAX, 0x1p-100f) == 127 - 102);     /* beside zeros */
}

static void zeros_have_the_lowest_scale(void)
{
    float x[16] = { 0 };
    tried r;
    x[1] = -0.0f;
    CHECK(try_tile(&r, "e2m1fnuz|e8m0_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && r.code[0] == 0 && r.code[1] == 8 && is(r.y[0], 0) && is(r.y[1], -0.0f));
    CHECK(try_tile(&r, "int8|e8m0_t16s2o1", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && r.offset[0] == 0 && r.offset[7] == 0 && is(r.y[1], 0));
    CHECK(try_tile(&r, "e4m3fn|float16_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && is(r.y[0], 0) && is(r.y[1], -0.0f));
}

static void offsets_are_below_the_scale(void)
{
    float x[16] = { 1, 0.9f, 0.4f, -0.3f, 0.1f, 0, 0, 0, INFINITY, 0 };
    tried r;
    CHECK(try_tile(&r, "int8|e8m0_t16s2o2", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 127);
    CHECK(r.offset[0] == 0 && r.offset[1] == 2 && r.offset[2] == 3 && r.offset[3] == 3 && r.offset[4] == 0);
    CHECK(r.code[0] == 64 && is(r.y[0], 1));
    CHECK(r.code[2] == 102 && is(r.y[2], 102.0f / 256));        /* 0.4 = 102.4 / 256 */
    CHECK(r.code[8] == 127 && is(r.y[8], 127.0f / 64));
    x[0] = x[1] = x[8] = 0;
    for (size_t i = 0; i < 16; i++)
        /* the scale has code 0 but offsets go on from there */
        x[i] *= 0x1p-130f;
    CHECK(try_tile(&r, "int8|e8m0_t16s2o2", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && r.offset[0] == 3 && r.offset[1] == 3 && r.offset[2] == 3);
}

/* --- infinities and NaN ------------------------------------------------------------- */

static void infinities_saturate(void)
{
    float x[16] = { INFINITY, -INFINITY, 3, 0 };
    tried r;
    CHECK(try_tile(&r, "e2m1fnuz|e8m0_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 126 && is(r.y[0], 3) && is(r.y[1], -3) && is(r.y[2], 3));
    CHECK(try_tile(&r, "e5m2|e8m0_t16", &plain, x, 16) == TN_OK);
    CHECK(r.code[0] == 0x7b && r.code[1] == 0xfb);
    CHECK(try_tile(&r, "int4|float32_t16", &plain, x, 16) == TN_OK);
    CHECK(r.code[0] == 7 && r.code[1] == 9 && is(r.y[0], r.y[2]));
    CHECK(try_tile(&r, "uint4|float32_int8_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.zero == 0 && r.code[0] == 15 && r.code[1] == 0 && r.code[2] == 15);
}

/* And with the next larger scale it would not be. */
static void check_infinity_alone(const char *text)
{
    float x[16] = { 0, INFINITY };
    tried r;
    tn_datatype *d = datatype_of(text);
    CHECK(try_tile(&r, text, &plain, x, 16) == TN_OK);
    CHECK(isfinite(r.y[1]) && r.y[1] > 0 && is(r.y[0], 0));
    tn_coder coder = { &d->scale, tn_encode_rules_for(&d->scale.type, NULL), false };
    bool last = r.t.scale ==
                (d->scale.kind == TN_NUMBER_EXPONENT ? 254 : tn_coder_float(&coder, d->scale.maxfloat, 0));
    r.t.scale++;
    tn_tile_decode(d, &r.t, r.y);
    CHECK(last || isinf(r.y[1]));
    tn_datatype_free(d);
}

static void infinities_alone_take_the_largest_scale_that_is_finite(void)
{
    static const char *const texts[] = { "e2m1fnuz|e8m0_t16", "int8|e8m0_t16", "e4m3fn|float32_t16",
                                         "int4|bfloat16_t16", "int8|float16_t16", "uint8|float32_float32_t16",
                                         "uint4|bfloat16_int8_t16", "icb44fi_e2m3fnuz|e8m0_t16",
                                         "e2m1fnuz|multi_float32_e4m3fn_t16" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_infinity_alone(texts[i]);
    for (int bits = 2; bits <= 16; bits++) {
        char text[40];
        snprintf(text, sizeof text, "int%d|float32_t16", bits);
        check_infinity_alone(text);
    }
}

static void nan_is_an_error_where_it_has_no_code(void)
{
    static const char *const without[] = { "e2m1fnuz|e8m0_t16", "e3m2fnuz|e8m0_t16", "int8|e8m0_t16",
                                           "uint8|float32_int8_t16",
                                           "icb44fi_e4m3fn|e8m0_t16" };
    static const char *const with[] = { "e4m3fn|e8m0_t16", "e5m2|e8m0_t16", "e4m3fnuz|e8m0_t16",
                                        "e4m3b8inuz|e8m0_t16",
                                        "bfloat16|float32_t16", "e3m3fnuz|float16_t16" };
    float x[16] = { 1, 2, NAN, 3 };
    tn_quantize_options zero = { .size = sizeof zero, .nan = TN_NAN_ZERO },
    error = { .size = sizeof error, .nan = TN_NAN_ERROR };
    tried r;
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        CHECK(try_tile(&r, without[i], &plain, x, 16) == TN_ERR_LOSS && r.bad == 2);
        CHECK(try_tile(&r, without[i], &zero, x, 16) == TN_OK && is(r.y[2], 0));
    }
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        CHECK(try_tile(&r, with[i], &plain, x, 16) == TN_OK && is(r.y[2], NAN) && !isnan(r.y[0]) &&
              r.y[0] != 0);
        CHECK(try_tile(&r, with[i], &zero, x, 16) == TN_OK && is(r.y[2], 0));
        CHECK(try_tile(&r, with[i], &error, x, 16) == TN_ERR_LOSS && r.bad == 2);
    }
}

static void binary8_has_the_codes_of_p3109(void)
{
    float x[4] = { -0.0f, NAN, 1e9f, -1 };
    tried r;
    CHECK(try_tile(&r, "binary8p4", &plain, x, 4) == TN_OK);
    CHECK(r.code[0] == 0 && r.code[1] == 0x80 && r.code[2] == 0x7e && r.code[3] == 0xc0);
    CHECK(is(r.y[0], 0) && is(r.y[2], 224) && is(r.y[3], -1));
    r.code[0] = 0x7f;
    r.code[1] = 0xff;
    tn_datatype *d = datatype_of("binary8p4");
    tn_tile_decode(d, &r.t, r.y);
    CHECK(is(r.y[0], INFINITY) && is(r.y[1], -INFINITY));
    tn_datatype_free(d);
}

/* --- float scales -------------------------------------------------------------------- */

static void a_float_scale_is_rounded_and_divided_by(void)
{
    float x[4] = { 1, -0.35f, 0.05f, 0 };
    tried r;
    CHECK(try_tile(&r, "int4|bfloat16_t4", &plain, x, 4) == TN_OK);
    float s = 0x1.24p-3f;                                       /* 1/7 in bfloat16 */
    CHECK(r.t.scale == 0x3e12);
    CHECK(r.code[0] == 7 && r.code[1] == 14 && r.code[2] == 0);
    CHECK(is(r.y[0], 7 * s) && is(r.y[1], -2 * s));
}

static void a_scale_of_zero_makes_zeros_of_the_same_sign(void)
{
    float x[16] = { 0x1p-100f, -0x1p-100f, 0, -0.0f };
    tried r;
    CHECK(try_tile(&r, "e2m1fnuz|e5m3_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && is(r.y[0], 0) && is(r.y[1], -0.0f) && is(r.y[2], 0) && is(r.y[3], -0.0f));
    CHECK(try_tile(&r, "int4|float16_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && is(r.y[0], 0) && is(r.y[1], 0) && is(r.y[3], 0));
    CHECK(try_tile(&r, "uint4|float16_float32_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && r.t.zero == 0 && is(r.y[0], 0) && is(r.y[1], 0));
    CHECK(try_tile(&r, "uint4|float16_int8_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && r.t.zero == 0 && is(r.y[0], 0) && is(r.y[1], 0));
    CHECK(try_tile(&r, "icb44fi_e2m3fnuz|e5m3_t16", &plain, x, 16) == TN_OK);
    CHECK(r.t.scale == 0 && r.meta[0] == 0 && is(r.y[0], 0) && is(r.y[1], -0.0f) && is(r.y[3], 0));
}

static void nvfp4_has_a_scale_of_the_tensor(void)
{
    tn_datatype *d = datatype_of("e2m1fnuz|multi_float32_e4m3fn_t16");
    float x[16] = { 5, -2.5f, 0.3f };
    tn_tile_range range = { .largest = 1000, .low = -1000 };
    uint32_t code = tn_tensor_scale_for(d, &plain, &range);
    float t = 1000.0f / 2688.0f, s, found;
    tried r;
    memcpy(&found, &code, sizeof found);
    CHECK(is(found, t));
    CHECK(tn_tensor_scale_for(d, &plain, &(tn_tile_range){ 0 }) == 0x3f800000);
    CHECK(try_padded(&r, d->text, &plain, x, 16, 16, t) == TN_OK);
    CHECK(r.t.scale == 0x41);                                   /* 5 / 6 / t = 2.24, of 2.25 */
    s = 2.25f * t;
    CHECK(r.code[0] == 7 && r.code[1] == 0xd && r.code[2] == 1);        /* 5.97, -2.98, 0.36 */
    CHECK(is(r.y[0], 6 * s) && is(r.y[1], -3 * s) && is(r.y[2], 0.5f * s));
    x[0] = 12.75f;              /* 2.125 is to the nearest even in any mode */
    CHECK(try_padded(&r, d->text, &(tn_quantize_options){ .size = sizeof plain, .round = TN_ROUND_AWAY }, x, 16,
                     16, 1) == TN_OK);
    CHECK(r.t.scale == 0x40);
    tn_datatype_free(d);
}

/* --- zero points ------------------------------------------------------------------------ */

static void a_float_zero_point_is_the_lowest_value(void)
{
    float x[4] = { -1, 2, 0, 0.4f };
    tried r;
    CHECK(try_tile(&r, "uint4|float32_float32_t4", &plain, x, 4) == TN_OK);
    float s = 3.0f / 15;
    CHECK(r.code[0] == 0 && r.code[1] == 15 && r.code[2] == 5 && r.code[3] == 7);
    CHECK(is(r.y[0], -1) && is(r.y[1], s * 15 - 1) && is(r.y[2], s * 5 - 1) && is(r.y[3], s * 7 - 1));
}

static void an_integer_zero_point_fits_its_type(void)
{
    float x[4] = { -1, 2, 0, 0.5f };
    tried r;
    CHECK(try_tile(&r, "uint4|float32_int8_t4", &plain, x, 4) == TN_OK);
    CHECK(r.t.zero == 5 && r.code[0] == 0 && r.code[1] == 15 && r.code[2] == 5 && is(r.y[2], 0));
    /* all below 0: zero would be 15 of at most 7 */
    x[1] = 0;
    CHECK(try_tile(&r, "uint4|float32_int4_t4", &plain, x, 4) == TN_OK);
    CHECK(r.t.zero == 7 && r.code[0] == 0 && r.code[2] == 7);
    tn_datatype *d = datatype_of("uint4|float32_int4_t4");
    float s = tn_scale_value(d, r.t.scale, 0);
    CHECK(rintf(1 / s) == 7 && rintf(1 / tn_scale_value(d, r.t.scale - 1, 0)) >= 7);
    tn_datatype_free(d);
    /* of 127 is 1.06, which is rounded to 1: the next one up */
    x[0] = -134.6f;
    CHECK(try_tile(&r, "uint8|e5m3_int8_t4", &plain, x, 4) == TN_OK);
    CHECK(r.t.scale == (15 << 3 | 1) && r.t.zero == 120 && r.code[2] == 120);
    x[0] = -128;                                                /* one too many is too many */
    CHECK(try_tile(&r, "uint8|e5m3_int8_t4", &plain, x, 4) == TN_OK);
    CHECK(r.t.scale == (15 << 3 | 1) && r.t.zero == 114);
    /* and where the scale cannot grow it is cut off */
    x[0] = -FLT_MAX;
    CHECK(try_tile(&r, "uint8|float16_int8_t4", &plain, x, 4) == TN_OK);
    CHECK(r.t.zero == 127 && r.t.scale == 0x7bff && r.code[0] == 0 && r.code[2] == 127 && is(r.y[2], 0));
}

/* --- codebooks and sparsity ---------------------------------------------------------------- */

static void a_codebook_takes_the_first_of_the_best_mappings(void)
{
    /* .5 1 1.5 2 3 4 6 and 1 2 3 4 5 6 7, exponent 2 */
    float x[32] = { 6, 5, 5, -0.0f, 7, 1, 1.5f, -2, 4, 3, 2, 1, 4, 0.25f, -0.25f, -0.2f };
    tried r;
    CHECK(try_tile(&r, "cb41fi_e2m2fnuz|e8m0_t32s4", &plain, x, 32) == TN_OK);
    CHECK(r.t.scale == 127);
    CHECK(r.meta[0] == 1 && is(r.y[1], 5) && is(r.y[3], 0) && r.code[3] == 0);
    /* 1 + 0.25 against 1: ties go up */
    CHECK(r.meta[1] == 1 && is(r.y[4], 7) && is(r.y[6], 2) && is(r.y[7], -2));
    CHECK(r.meta[2] == 0);                                      /* both have them: the first */
    CHECK(r.meta[3] == 0 && r.code[13] == 1 && r.code[14] == 9 && r.code[15] == 8 && is(r.y[15], -0.0f));
    CHECK(r.meta[7] == 0 && r.code[31] == 0);
}

static void zero_is_code_0_in_every_mapping(void)
{
    tn_datatype *d = datatype_of("icb44fi_e2m3fnuz|e8m0_t32");
    float x[32] = { 7.5f };
    for (uint32_t m = 0; m < d->codebook.mappings; m++) {
        tried r;
        CHECK(try_tile(&r, d->text, &plain, x, 32) == TN_OK);
        tn_tile_choice choice = { 127, 0, (int32_t)m };
        tn_tile_apply(d, &plain, &r.t, &choice, NULL);
        CHECK(r.meta[0] == m && r.code[0] == 7 && r.code[1] == 0);
    }
    tn_datatype_free(d);
}

static void the_largest_of_each_group_are_kept(void)
{
    float x[16] = { 1, -2, 3, -4, 1, 1, 1, 1, 0, 0, 0, 0, -0.5f, INFINITY, 2, -3 };
    static const uint8_t mask[16] = { 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1 };
    tried r;
    CHECK(try_tile(&r, "e2m1fnuz|e8m0_t8n2m4", &plain, x, 16) == TN_OK);
    CHECK(memcmp(r.mask, mask, 16) == 0);
    CHECK(r.t.scale == 127 && r.code[0] == 5 && r.code[1] == 0xe && r.code[6] == 7 && r.code[7] == 0xd);
    CHECK(is(r.y[0], 0) && is(r.y[2], 3) && is(r.y[3], -4) && is(r.y[12], 0) && is(r.y[13], 6));
    CHECK(r.code[8] == 0xa5a5a5a5);                             /* 8 slots */
}

static void padding_is_not_kept(void)
{
    float x[5] = { 1, 2, 3, 4, -5 };
    tried r;
    CHECK(try_padded(&r, "uint8|float32_int8_t4n2m4", &plain, x, 8, 5, 1) == TN_OK);
    CHECK(r.mask[4] == 1 && r.mask[5] == 0 && r.mask[6] == 0 && r.mask[7] == 0);
    CHECK(r.code[3] == 0 && is(r.y[5], 0));
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void sparsity_alone_keeps_every_bit(void)
{
    static const uint32_t bits[8] = { 0x7fa00001, 0xff800000, 0x7f800000, 0xffc12345, 0x00000001, 0x80000001,
                                      0x80000000, 0 };
    float x[8];
    tried r;
    for (size_t i = 0; i < 8; i++)
        x[i] = float_of(bits[i]);
    CHECK(try_tile(&r, "float32|n2m4", &plain, x, 8) == TN_OK);
    /* NaN is the largest */
    CHECK(r.mask[0] == 1 && r.mask[1] == 0 && r.mask[2] == 0 && r.mask[3] == 1);
    CHECK(r.code[0] == bits[0] && r.code[1] == bits[3] && r.code[2] == 1 && r.code[3] == 0x80000001);
    CHECK(is(r.y[0], x[0]) && is(r.y[1], 0) && is(r.y[3], x[3]) && is(r.y[5], x[5]) && is(r.y[6], 0));
    CHECK(try_tile(&r, "bfloat16|n3m4", &plain, x, 8) == TN_OK);
    CHECK(r.code[0] == 0x7fe0 && r.code[1] == 0xff80 && r.code[2] == 0xffc1 && r.code[3] == 0 &&
          r.code[4] == 0x8000);
    CHECK(is(r.y[0], float_of(0x7fe00000)) && is(r.y[1], -INFINITY) && is(r.y[2], 0) &&
          is(r.y[3], float_of(0xffc10000)));
    CHECK(try_tile(&r, "float16|n3m4", &plain, x, 8) == TN_OK);
    CHECK(r.code[0] == 0x7f00 && r.code[1] == 0xfc00 && is(r.y[1], -INFINITY) && is(r.y[4], 0) &&
          is(r.y[5], -0.0f));
    x[0] = FLT_MAX;
    CHECK(try_tile(&r, "float16|n3m4", &plain, x, 8) == TN_OK && r.code[0] == 0xfc00 && r.code[1] == 0x7c00 &&
          r.mask[0] == 0);
    CHECK(try_tile(&r, "e4m3fn|n3m4", &plain, x, 8) == TN_OK && r.code[0] == 0xfe && r.code[1] == 0x7e &&
          is(r.y[2], 448));
}

static void there_is_one_nan(void)
{
    tn_datatype *d = datatype_of("int4|float16_t4");
    float x[4] = { 1 };
    tried r;
    CHECK(try_tile(&r, d->text, &plain, x, 4) == TN_OK);
    r.t.scale = 0x7c00;                                         /* 0 times infinity */
    tn_tile_decode(d, &r.t, r.y);
    CHECK(is(r.y[0], INFINITY) && is(r.y[1], NAN));
    tn_datatype_free(d);
}

static void a_mask_that_lies_is_no_harm(void)
{
    float x[4] = { 1, 2, 3, 4 };
    tried r;
    tn_datatype *d = datatype_of("e2m1fnuz|e8m0_t2n2m4");
    CHECK(try_tile(&r, d->text, &plain, x, 4) == TN_OK);
    memset(r.mask, 1, 4);
    tn_tile_decode(d, &r.t, r.y);
    CHECK(is(r.y[0], 3) && is(r.y[1], 4) && is(r.y[2], 0) && is(r.y[3], 0));
    r.t.scale = 255;
    tn_tile_decode(d, &r.t, r.y);
    CHECK(is(r.y[0], NAN) && is(r.y[2], 0));
    tn_datatype_free(d);
}

/* --- dialects and searches ------------------------------------------------------------------- */

static void ggml_goes_to_the_smaller_and_has_no_negative_zero(void)
{
    const tn_quantize_options o = { .size = sizeof o, .ggml = true };
    float x[32] = { 4, 2.5f, -2.5f, 3.5f, -0.25f, 0.25f, -0.0f, -0.1f, 5, -5, 0.75f };
    static const uint32_t codes[11] = { 6, 4, 12, 5, 0, 0, 0, 0, 6, 14, 1 };
    tried r;
    CHECK(try_tile(&r, "e2m1fnuz|e8m0_t32", &o, x, 32) == TN_OK);
    CHECK(r.t.scale == 127 && memcmp(r.code, codes, sizeof codes) == 0);
    x[0] = nextafterf(0x1p-20f, 0);             /* its logarithm is -20 in float32 */
    for (size_t i = 1; i < 32; i++)
        x[i] = 0;
    CHECK(try_tile(&r, "e2m1fnuz|e8m0_t32", &o, x, 32) == TN_OK && r.t.scale == 127 - 22);
    CHECK(try_tile(&r, "e2m1fnuz|e8m0_t32", &plain, x, 32) == TN_OK && r.t.scale == 127 - 23);
}

static double squares(const tried *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->t.n; i++)
        sum += ((double)r->y[i] - (double)r->x[i]) * ((double)r->y[i] - (double)r->x[i]);
    return sum;
}

static void least_squares_are_never_more_than_those_of_the_range(void)
{
    static const char *const texts[] = { "e2m1fnuz|e8m0_t32",         "int4|e8m0_t32",
                                         "int4|bfloat16_t32",         "e2m1fnuz|e4m3fn_t32",
                                         "uint4|float16_float16_t32", "uint4|bfloat16_int8_t32",
                                         "uint2|float32_int4_t32",    "int3|e8m0_t32s2o1",
                                         "e2m1fnuz|e8m0_t32s8o2",     "icb44fi_e2m3fnuz|e8m0_t32s8",
                                         "icb44fi_e2m3fnuz|e5m3_t32", "e2m1fnuz|e8m0_t16n2m4" };
    const tn_quantize_options mse = { .size = sizeof mse, .rule = TN_SCALE_MSE };
    unsigned better = 0;
    srand(5);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int n = 0; n < 200; n++) {
            float x[32];
            tried a, b;
            for (size_t k = 0; k < 32; k++)
                x[k] = ((float)(rand() % 2001 - 1000) / 1000) * ((float)(rand() % 1000) / 1000) * 0x1p-4f;
            CHECK(try_tile(&a, texts[i], &plain, x, 32) == TN_OK);
            CHECK(try_tile(&b, texts[i], &mse, x, 32) == TN_OK);
            CHECK(squares(&b) <= squares(&a));
            better += squares(&b) < squares(&a);
        }
    }
    CHECK(better > 500);
}

static void least_squares_are_of_what_is_kept(void)
{
    tn_datatype *d = datatype_of("e2m1fnuz|e8m0_t16n2m4");
    const tn_quantize_options mse = { .size = sizeof mse, .rule = TN_SCALE_MSE };
    srand(6);
    for (int n = 0; n < 300; n++) {
        float x[32];
        tried r, other;
        double least = INFINITY, best = 0;
        for (size_t k = 0; k < 32; k++)
            x[k] = (float)(rand() % 2001 - 1000) / 1000 + (k % 4 < 2 ? 1 : 0);
        CHECK(try_tile(&r, d->text, &mse, x, 32) == TN_OK);
        for (uint32_t code = 120; code < 130; code++) {
            double sum = 0;
            other = r;
            other.t.x = other.x, other.t.index = other.index, other.t.mask = other.mask,
            other.t.code = other.code;
            tn_tile_apply(d, &mse, &other.t, &(tn_tile_choice){ code, 0, 0 }, NULL);
            tn_tile_decode(d, &other.t, other.y);
            for (size_t k = 0; k < 32; k++)
                if (other.mask[k])
                    sum += pow((double)other.y[k] - (double)x[k], 2);
            best = code == r.t.scale ? sum : best;
            least = sum < least ? sum : least;
        }
        CHECK(best == least);
    }
    tn_datatype_free(d);
}

static void stochastic_rounding_is_right_on_the_average(void)
{
    tn_quantize_options o = { .size = sizeof o, .round = TN_ROUND_STOCHASTIC };
    static const char *const texts[] = { "e2m1fnuz|e8m0_t32", "int4|e8m0_t32", "int4|float32_t32",
                                         "uint4|float32_int8_t32",
                                         "uint4|float32_float32_t32" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double sum = 0;
        float x[32] = { 6, 1.3f, -3.3f, -4 };
        for (o.seed = 0; o.seed < 4000; o.seed++) {
            tried r;
            CHECK(try_tile(&r, texts[i], &o, x, 32) == TN_OK);
            sum += (double)r.y[1] - (double)r.y[2];
        }
        CHECK(fabs(sum / 4000 - 4.6) < 0.06);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_mode_has_its_exponent),
        TEST(exponents_stay_within_their_type),
        TEST(zeros_have_the_lowest_scale),
        TEST(offsets_are_below_the_scale),
        TEST(infinities_saturate),
        TEST(infinities_alone_take_the_largest_scale_that_is_finite),
        TEST(nan_is_an_error_where_it_has_no_code),
        TEST(binary8_has_the_codes_of_p3109),
        TEST(a_float_scale_is_rounded_and_divided_by),
        TEST(a_scale_of_zero_makes_zeros_of_the_same_sign),
        TEST(nvfp4_has_a_scale_of_the_tensor),
        TEST(a_float_zero_point_is_the_lowest_value),
        TEST(an_integer_zero_point_fits_its_type),
        TEST(a_codebook_takes_the_first_of_the_best_mappings),
        TEST(zero_is_code_0_in_every_mapping),
        TEST(the_largest_of_each_group_are_kept),
        TEST(padding_is_not_kept),
        TEST(sparsity_alone_keeps_every_bit),
        TEST(there_is_one_nan),
        TEST(a_mask_that_lies_is_no_harm),
        TEST(ggml_goes_to_the_smaller_and_has_no_negative_zero),
        TEST(least_squares_are_never_more_than_those_of_the_range),
        TEST(least_squares_are_of_what_is_kept),
        TEST(stochastic_rounding_is_right_on_the_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
