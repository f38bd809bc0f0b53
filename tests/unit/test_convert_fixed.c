/* The types of embARC MLI on the way from file to file: fx8, fx16, sa8 and sa32 from values, from other
 * codes, and back. */
#include "support.h"
#include "stored.h"

#include <math.h>
#include <stdio.h>

#include "convert.h"
#include "files.h"
#include "tensor/code.h"

/* ---- what a file holds ---- */

typedef struct codes {
    tn_dtype dtype;             /* of the codes */
    uint32_t rank, nparts;
    int64_t  shape[4];
    int32_t  axis;
    int64_t  range[2];
    char     layout[8];
    size_t   count, nscales;
    int32_t  code[4096];
    float    scale[64];
    int32_t  zero[64];
} codes;

static void take_part(const tn_file *f, const tn_part *p, void *to, size_t cap)
{
    tn_error err = { .text = "" };
    CHECK(p->nbytes <= cap);
    if (tn_part_read(f, p, to, (size_t)p->nbytes, &err))
        fail_msg("%s", line_of(&err));
}

/* The first tensor of a file, which is scaled. */
static const codes *codes_of(const char *name)
{
    static codes c;
    static union { uint8_t bytes[16384]; } room;
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(t->form == TN_FORM_SCALED && t->scaling && !t->scaling->datatype && t->rank <= 4);
    c = (codes){ .dtype = t->parts[0].array.dtype, .rank = t->rank, .nparts = t->nparts,
                 .axis = t->scaling->axis,
                 .range = { t->scaling->range[0], t->scaling->range[1] } };
    memcpy(c.shape, t->shape, t->rank * sizeof *t->shape);
    snprintf(c.layout, sizeof c.layout, "%s", t->layout ? t->layout : "");
    uint64_t count;
    CHECK(tn_shape_count(t->rank, t->shape, &count) == TN_OK && count <= 4096);
    c.count = (size_t)count;
    take_part(f, &t->parts[0], room.bytes, sizeof room);
    for (size_t i = 0; i < c.count; i++)
        c.code[i] = (int32_t)tn_value_get(c.dtype, room.bytes, i).i;
    take_part(f, &t->parts[1], c.scale, sizeof c.scale);
    c.nscales = (size_t)t->parts[1].nbytes / sizeof *c.scale;
    if (t->nparts > 2)
        take_part(f, &t->parts[2], c.zero, sizeof c.zero);
    tn_close(f);
    return &c;
}

static void write_values(const char *name, tn_dtype dtype, const void *data, uint32_t rank,
                         const int64_t *shape)
{
    simple s = { .name = "t", .dtype = dtype, .rank = rank, .data = data };
    memcpy(s.shape, shape, rank * sizeof *shape);
    write_file(name, (tn_create_options){ .replace = true }, &s, 1);
}

static void write_floats(const char *name, const float *values, size_t n)
{
    write_values(name, TN_FLOAT32, values, 1, &(int64_t){ (int64_t)n });
}

/* Codes with a scale, or many along an axis, and as many zero points where that is not NULL. */
static void write_scaled(const char *name, tn_dtype dtype, const void *data, uint32_t rank,
                         const int64_t *shape, int32_t axis, const float *scale, const int32_t *zero)
{
    unsigned bits = tn_dtype_get(dtype)->bits;
    bool sign = tn_dtype_get(dtype)->kind == TN_KIND_INT;
    int64_t high = (INT64_C(1) << (bits - sign)) - 1;
    uint32_t scale_rank = axis < 0 ? 0 : 1;
    const int64_t *scales = axis < 0 ? NULL : shape + axis;
    const tn_scaling scaling = { .axis = axis, .range = { sign ? -high - 1 : 0, high } };
    const tn_part parts[] = { { .role = "data", .array = { dtype, rank, shape, NULL }, .data = data },
                              { .role = "scale", .array = { TN_FLOAT32, scale_rank, scales, NULL },
                                .data = scale },
                              { .role = "zero", .array = { TN_INT32, scale_rank, scales, NULL },
                                .data = zero } };
    const tn_tensor t = { .name = "t", .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = rank,
                          .shape = shape,
                          .parts = parts,
                          .nparts = zero ? 3 : 2, .scaling = &scaling };
    tn_create_options o = { .size = sizeof o, .replace = true };
    tn_error err = { .text = "" };
    tn_writer *w;
    CHECK(tn_create(in_folder(name).text, &o, &w, &err) == TN_OK);
    if (tn_writer_add(w, &t, &err) || tn_writer_finish(w, &err))
        fail_msg("%s", line_of(&err));
}

/* A vector of codes with one scale. */
static void write_codes(const char *name, tn_dtype dtype, const void *data, size_t n, float scale,
                        const int32_t *zero)
{
    write_scaled(name, dtype, data, 1, &(int64_t){ (int64_t)n }, -1, &scale, zero);
}

/* What a cast makes of a file. */
static const codes *made(const char *in, const char *cast)
{
    must_convert(in, "out.zt", (wish){ .cast = cast });
    return codes_of("out.zt");
}

/* ---- numbers ---- */

enum { MANY = 400 };
static float values[MANY];

/* Of many magnitudes, ties and zeros of both signs among them. */
static void make_values(void)
{
    uint32_t state = 7;
    for (size_t i = 0; i < MANY; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((float)(state >> 8) / 8388608.0f - 1) * ldexpf(1, (int)(i % 19) - 12);
        if (i % 7 == 3)
            values[i] = ((float)(state >> 24) - 127.5f) * ldexpf(1, -(int)(i % 11));
        if (i % 53 == 0)
            values[i] = i % 2 ? -0.0f : 0.0f;
    }
}

static int64_t limit(tn_dtype dtype) { return (INT64_C(1) << (tn_dtype_get(dtype)->bits - 1)) - 1; }

static int64_t cut(double x, tn_dtype dtype)
{
    double high = (double)limit(dtype);
    return (int64_t)(x > high ? high : x < -high - 1 ? -high - 1 : x);
}

/* Both are exact: a float32 times a power of two is a double. */
static int64_t fixed_code(float x, int frac, tn_dtype dtype)
{
    return cut(round(ldexp((double)x, frac)), dtype);
}
static int64_t shifted_code(int64_t code, int by, tn_dtype dtype)
{
    return cut(floor(ldexp((double)code, by) + 0.5), dtype);
}

static void expect_fixed(const codes *c, const float *x, size_t n, int frac, tn_dtype dtype)
{
    CHECK(c->dtype == dtype && c->nparts == 2 && c->axis == -1 && c->nscales == 1 &&
          c->scale[0] == ldexpf(1, -frac) && c->count == n);
    CHECK(c->range[0] == -limit(dtype) - 1 && c->range[1] == limit(dtype));
    for (size_t i = 0; i < n; i++)
        if (c->code[i] != fixed_code(x[i], frac, dtype))
            fail_msg("%.9g with %d fractional bits: expected %lld but found %d", (double)x[i], frac,
                     (long long)fixed_code(x[i], frac, dtype), c->code[i]);
}

/* ---- values to fixed point ---- */

static const struct { const char *name; tn_dtype dtype; } widths[] = { { "fx8", TN_INT8 },
                                                                       { "fx16", TN_INT16 } };

static void values_become_codes_with_any_number_of_fractional_bits(void)
{
    static const int fracs[] = { -127, -126, -20, -6, -1, 0, 3, 7, 8, 12, 15, 20, 31, 40, 126 };
    make_values();
    write_floats("in.zt", values, MANY);
    for (size_t w = 0; w < 2; w++) {
        for (size_t i = 0; i < sizeof fracs / sizeof *fracs; i++) {
            char cast[32];
            snprintf(cast, sizeof cast, "%s,frac=%d", widths[w].name, fracs[i]);
            must_convert("in.zt", "out.zt", (wish){ .cast = cast });
            expect_fixed(codes_of("out.zt"), values, MANY, fracs[i], widths[w].dtype);
        }
    }
}

static void every_float_type_is_a_source(void)
{
    static const tn_dtype types[] = { TN_FLOAT32, TN_BFLOAT16, TN_FLOAT16, TN_FLOAT64, TN_FLOAT8_E4M3FN };
    make_values();
    write_floats("all.zt", values, MANY);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *type = tn_dtype_get(types[i])->name;
        must_convert("all.zt", "in.zt", (wish){ .cast = type });
        must_convert("in.zt", "wide.zt", (wish){ .cast = "f32" });
        must_convert("in.zt", "out.zt", (wish){ .cast = "fx16,frac=9" });
        tn_file *f = open_file("wide.zt"), *out = open_file("out.zt");
        float *x = (float *)read_tensor(f, tn_file_tensor(f, 0));
        CHECK(tn_file_tensor(out, 0)->dtype == types[i]);               /* what its values are */
        expect_fixed(codes_of("out.zt"), x, MANY, 9, TN_INT16);
        free(x);
        tn_close(f);
        tn_close(out);
    }
}

static bool fits(const float *x, size_t n, int frac, tn_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        double rounded = round(ldexp((double)x[i], frac));
        if (isfinite(x[i]) && (rounded > (double)limit(dtype) || rounded < (double)-limit(dtype) - 1))
            return false;
    }
    return true;
}

static int frac_of(const codes *c)
{
    int exponent = 0;
    CHECK(c->nscales == 1 && frexpf(c->scale[0], &exponent) == 0.5f);
    return 1 - exponent;
}

static void auto_is_the_largest_that_cuts_nothing(void)
{
    static const float sets[][3] = { { 1, 0.5f, 0 }, { -1, 0.5f, 0 }, { 0.99f, -0.3f, 0 }, { 0.998f, 0, 0 },
                                     { -0x1p100f, 3, 4 }, { 0x1p-140f, 0, 0 },
                                     { 127.5f, 0, 0 }, { 127.49f, 0, 0 }, { -128.5f, 0, 0 },
                                     { -128.49f, 0, 0 }, { 1e-30f, -3e-30f, 2e-30f },
                                     { 3.4028235e38f, 0, 0 }, { 255, 256, 257 }, { 32767.5f, 0, 0 } };
    for (size_t w = 0; w < 2; w++) {
        char cast[32];
        snprintf(cast, sizeof cast, "%s,frac=auto", widths[w].name);
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            write_floats("in.zt", sets[i], 3);
            must_convert("in.zt", "out.zt", (wish){ .cast = cast });
            int frac = frac_of(codes_of("out.zt"));
            if (!fits(sets[i], 3, frac, widths[w].dtype) ||
                (frac < 126 && fits(sets[i], 3, frac + 1, widths[w].dtype)))
                fail_msg("%s of %.9g: %d fractional bits", cast, (double)sets[i][0], frac);
            expect_fixed(codes_of("out.zt"), sets[i], 3, frac, widths[w].dtype);
        }
        must_convert("in.zt", "again.zt", (wish){ .cast = widths[w].name });    /* the default */
        CHECK(frac_of(codes_of("again.zt")) == frac_of(codes_of("out.zt")));
    }
}

static void nothing_and_zeros_have_all_bits_but_the_sign_behind_the_point(void)
{
    static const float zeros[] = { 0, -0.0f };
    static const char *const rules[] = { "auto", "least" };
    for (size_t w = 0; w < 2; w++) {
        for (size_t i = 0; i < 2; i++) {
            char cast[32];
            snprintf(cast, sizeof cast, "%s,frac=%s", widths[w].name, rules[i]);
            for (size_t n = 0; n <= 2; n += 2) {
                write_floats("in.zt", zeros, n);
                must_convert("in.zt", "out.zt", (wish){ .cast = cast });
                expect_fixed(codes_of("out.zt"), zeros, n, w ? 15 : 7, widths[w].dtype);
            }
        }
    }
}

static void infinities_saturate_and_a_nan_is_an_error_or_zero(void)
{
    static const float some[] = { INFINITY, -INFINITY, 0.75f, NAN };
    write_floats("in.zt", some, 4);
    must_fail("in.zt", (wish){ .cast = "fx8,frac=3" }, TN_ERR_LOSS,
              "tensor \"t\": element [3] is nan, and fx8 has no NaN (nan zero)");
    must_fail("in.zt", (wish){ .cast = "fx16" }, TN_ERR_LOSS, "and fx16 has no NaN");
    must_fail("in.zt", (wish){ .cast = "sa8" }, TN_ERR_LOSS, "and sa8 has no NaN");
    must_fail("in.zt", (wish){ .cast = "sa32,scale=1" }, TN_ERR_LOSS, "and sa32 has no NaN");
    must_fail("in.zt", (wish){ .cast = "int8,per=tensor" }, TN_ERR_LOSS, "and int8 has no NaN");
    const codes *c = made("in.zt", "fx8,frac=auto,nan=zero");
    CHECK(c->scale[0] == 1 / 128.0f && c->code[0] == 127 && c->code[1] == -128 && c->code[2] == 96 &&
          c->code[3] == 0);
    must_convert("in.zt", "out.zt", (wish){ .cast = "fx16,frac=least,nan=zero" });
    CHECK(codes_of("out.zt")->code[0] == 32767 && codes_of("out.zt")->code[3] == 0);
}

static double squares(const float *x, size_t n, int frac, tn_dtype dtype)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double d = ldexp((double)fixed_code(x[i], frac, dtype), -frac) - (double)x[i];
        sum += d * d;
    }
    return sum;
}

static void least_has_the_least_squared_error(void)
{
    make_values();
    values[17] = 500;                           /* an outlier is worth cutting */
    write_floats("in.zt", values, MANY);
    for (size_t w = 0; w < 2; w++) {
        char cast[32];
        snprintf(cast, sizeof cast, "%s,frac=least", widths[w].name);
        const codes *c = made("in.zt", cast);
        int frac = frac_of(c);
        expect_fixed(c, values, MANY, frac, widths[w].dtype);
        for (int other = -10; other < 30; other++)
            CHECK(squares(values, MANY, frac, widths[w].dtype) <=
                  squares(values, MANY, other, widths[w].dtype) * 1.0001);
    }
    static const float spike[] = { 0.001f, 0.0011f, 0.0009f, 0.00123f, 0.13f };
    write_floats("in.zt", spike, 5);
    must_convert("in.zt", "auto.zt", (wish){ .cast = "fx8,frac=auto" });
    int whole = frac_of(codes_of("auto.zt"));
    must_convert("in.zt", "least.zt", (wish){ .cast = "fx8,frac=least" });
    CHECK(frac_of(codes_of("least.zt")) >= whole);
}

static void a_rounding_that_is_said_is_the_one(void)
{
    static const float ties[] = { 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f };
    static const struct { const char *cast; int32_t expected[6];
    } cases[] = {
        { "fx8,frac=0", { 1, 2, 3, -1, -2, -3 } },
        { "fx8,frac=0,round=even", { 0, 2, 2, 0, -2, -2 } },
        { "fx8,frac=0,round=half_up", { 1, 2, 3, 0, -1, -2 } },
        { "fx8,frac=0,round=trunc", { 0, 1, 2, 0, -1, -2 } },
        { "sa8,scale=1", { 1, 2, 3, -1, -2, -3 } },
        { "sa8,scale=1,zero=7,round=even", { 7, 9, 9, 7, 5, 5 } },
    };
    write_floats("in.zt", ties, 6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must_convert("in.zt", "out.zt", (wish){ .cast = cases[i].cast });
        assert_memory_equal(codes_of("out.zt")->code, cases[i].expected, sizeof cases[i].expected);
    }
}

/* ---- values to affine codes ---- */

/* Whether c is x / scale, rounded half away: products of 15 and 33 bits are doubles. */
static bool is_nearest(double x, double scale, int64_t c)
{
    double off = fabs(x) - (double)(c < 0 ? -c : c) * scale;
    return ((c == 0) || (c < 0) == (x < 0)) && off < scale / 2 && off >= -scale / 2;
}

static bool has_15_bits(float scale)
{
    int exponent;
    float mantissa = ldexpf(frexpf(scale, &exponent), 15);
    return mantissa == floorf(mantissa);
}

static void affine_codes_have_zeros_and_scales_of_15_bits(void)
{
    static const int64_t shape[] = { 8, 50 };
    static const char *const casts[] = { "sa8", "sa8,per=channel,axis=0", "sa8,zero=asymmetric",
                                         "sa8,per=channel,axis=0,zero=asymmetric", "sa32",
                                         "sa32,per=channel,axis=0", "sa8,scale=0.125,zero=-3",
                                         "sa32,scale=0.0001220703125,zero=-3000" };
    make_values();
    write_values("in.zt", TN_FLOAT32, values, 2, shape);
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        const codes *c = made("in.zt", casts[i]);
        bool channels = strstr(casts[i], "channel"), wide = casts[i][2] == '3';
        CHECK(c->dtype == (wide ? TN_INT32 : TN_INT8) && c->nparts == 3 && c->axis == (channels ? 0 : -1) &&
              c->nscales == (channels ? 8 : 1));
        CHECK(c->range[0] == -limit(c->dtype) - 1 && c->range[1] == limit(c->dtype));
        for (size_t k = 0; k < MANY; k++) {
            size_t s = channels ? k / 50 : 0;
            int64_t code = (int64_t)c->code[k] - c->zero[s];
            bool cut_off = c->code[k] == c->range[0] || c->code[k] == c->range[1];
            CHECK(has_15_bits(c->scale[s]) &&
                  (cut_off || is_nearest((double)values[k], (double)c->scale[s], code)));
            CHECK(strstr(casts[i], "asymmetric") || strstr(casts[i], "zero=") || c->zero[s] == 0);
        }
    }
}

static void scales_fit_all_values_unless_a_percentile_says_otherwise(void)
{
    static const float some[] = { 1, 2, 3, -4, 100 };
    write_floats("in.zt", some, 5);
    const codes *c = made("in.zt", "sa8");
    CHECK(c->code[4] == 127 && (double)c->scale[0] * 127 >= 100 &&
          (double)c->scale[0] * 127 < 100 * (1 + 0x1p-14));
    c = made("in.zt", "sa8,percentile=80");
    CHECK(c->code[4] == 127 && c->code[3] == -127 && (double)c->scale[0] * 127 < 4 * (1 + 0x1p-14));
    c = made("in.zt", "sa8,zero=asymmetric");
    CHECK(c->code[4] == 127 && c->code[3] == -128 && c->zero[0] < 0);
}

/* ---- with layouts and padding ---- */

static void casting_layout_and_padding_take_one_conversion(void)
{
    static const int64_t shape[] = { 5, 8, 10 };        /* CHW */
    static const char *const casts[] = { "fx16,frac=auto", "fx8,frac=3", "fx8,frac=least",
                                         "sa8,per=channel,axis=C", "sa8,zero=asymmetric",
                                         "sa32,per=channel,axis=0",
                                         "sa8,per=channel,axis=-1,zero=asymmetric" };
    make_values();
    write_values("in.zt", TN_FLOAT32, values, 3, shape);
    must_convert("in.zt", "hwc.zt", (wish){ .layout = "HWC,from=CHW" });
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        must_convert("in.zt", "codes.zt", (wish){ .cast = casts[i], .layout = "CHW,from=CHW" });
        must_convert("codes.zt", "two.zt", (wish){ .layout = "HWC" });
        must_convert("in.zt", "one.zt", (wish){ .cast = casts[i], .layout = "HWC,from=CHW", .pad = "C=16" });
        const codes two = *codes_of("two.zt"), *one = codes_of("one.zt");
        CHECK(strcmp(one->layout, "HWC") == 0 && one->shape[0] == 8 && one->shape[1] == 10 &&
              one->shape[2] == 5);
        assert_memory_equal(one, &two, sizeof two);
        tn_file *f = open_file("one.zt");
        const tn_padded *padded = tn_file_tensor(f, 0)->parts[0].padded;
        CHECK(padded && padded->shape[2] == 16);
        tn_close(f);
        must_convert("one.zt", "back.zt", (wish){ .cast = "f32", .layout = "CHW" });
        must_convert("codes.zt", "straight.zt", (wish){ .cast = "f32" });
        tn_file *a = open_file("back.zt"), *b = open_file("straight.zt");
        uint8_t *x = read_tensor(a, tn_file_tensor(a, 0)), *y = read_tensor(b, tn_file_tensor(b, 0));
        assert_memory_equal(x, y, sizeof values);
        free(x);
        free(y);
        tn_close(a);
        tn_close(b);
    }
}

/* The bytes of the data as they lie in the file, padding too. */
static void stored_bytes(const char *name, uint8_t *to, size_t n)
{
    tn_file *f = open_file(name);
    const tn_stored_info s = stored_info(&tn_file_tensor(f, 0)->parts[0]);
    FILE *file = fopen(in_folder(name).text, "rb");
    CHECK(file && s.bytes == n && fseek(file, (long)s.offset, SEEK_SET) == 0 && fread(to, 1, n, file) == n);
    fclose(file);
    tn_close(f);
}

static void padding_is_the_zero_point_or_code_0_as_mli_has_it(void)
{
    static const float some[] = { 1, 2, 3, 4, 5, 6 };
    static const int8_t by_point[] = { 6, 7, 8, 5, 9, 10, 11, 5 }, by_code[] = { 6, 7, 8, 0, 9, 10, 11, 0 };
    uint8_t found[8];
    write_values("in.zt", TN_FLOAT32, some, 2, (const int64_t[]){ 2, 3 });
    must_convert("in.zt", "out.zt", (wish){ .cast = "sa8,scale=1,zero=5", .pad = "1=4" });
    stored_bytes("out.zt", found, 8);
    assert_memory_equal(found, by_point, 8);
    must_convert("in.zt", "out.zt", (wish){ .cast = "sa8,scale=1,zero=5", .pad = "1=4,compat=mli" });
    stored_bytes("out.zt", found, 8);
    assert_memory_equal(found, by_code, 8);
    must_convert("out.zt", "codes.zt", (wish){ .cast = NULL });
    must_convert("codes.zt", "again.zt", (wish){ .pad = "-1=4,compat=mli" });       /* without a cast */
    stored_bytes("again.zt", found, 8);
    assert_memory_equal(found, by_code, 8);
    must_convert("in.zt", "plain.zt", (wish){ .pad = "1=4,compat=mli" });           /* no codes: 0.0 */
    must_fail("codes.zt", (wish){ .pad = "1=4,value=1" }, TN_ERR_ARGUMENT,
              "padding of a scaled tensor has the value 0");
    write_codes("far.zt", TN_INT8, (const int8_t[]){ 1, 2, 3 }, 3, 1, &(int32_t){ 200 });
    must_fail("far.zt", (wish){ .pad = "0=4" }, TN_ERR_ARGUMENT,
              "tensor \"t\": expected a zero point from -128 to 127 to pad with but found 200 (compat=mli "
              "pads with code 0)");
    must_convert("far.zt", "out.zt", (wish){ .pad = "0=4,compat=mli" });
    must_convert("far.zt", "out.zt", (wish){ .pad = "0=3" });                       /* nothing is added */
}

static void a_dimension_called_1_has_one_index(void)
{
    float some[12] = { 1, 2, 3 };
    write_values("in.zt", TN_FLOAT32, some, 4, (const int64_t[]){ 4, 1, 3, 1 });
    must_convert("in.zt", "out.zt", (wish){ .layout = "HW1N,from=N1HW", .cast = "fx8,frac=4" });
    const codes *c = codes_of("out.zt");
    CHECK(strcmp(c->layout, "HW1N") == 0 && c->shape[0] == 3 && c->shape[1] == 1 && c->shape[2] == 1 &&
          c->shape[3] == 4);
    CHECK(c->code[0] == 16 && c->code[4] == 32 && c->code[8] == 48);
    must_convert("out.zt", "back.zt", (wish){ .layout = "1HWN" });
    must_fail("in.zt", (wish){ .layout = "HW1N,from=NH1W" }, TN_ERR_ARGUMENT,
              "tensor \"t\": layout \"NH1W\": expected an extent of 1 where it says so but found 3");
    must_convert("out.zt", "axis.zt", (wish){ .cast = "f32" });
    must_convert("axis.zt", "axis.zt", (wish){ .cast = "sa8,per=channel,axis=3" });
    CHECK(codes_of("axis.zt")->axis == 3);
    must_convert("out.zt", "axis.zt", (wish){ .cast = "f32" });
    must_convert("axis.zt", "axis.zt", (wish){ .cast = "sa8,per=channel,axis=1" });  /* a number, not the letter */
    CHECK(codes_of("axis.zt")->axis == 1);
}

/* ---- codes to codes ---- */

static void fixed_point_moves_half_up(void)
{
    int16_t all[1000];
    for (int i = 0; i < 1000; i++)
        all[i] = (int16_t)(i * 65 - 32500);
    static const int from[] = { 0, 7, 15, 40 }, by[] = { -20, -9, -8, -3, -1, 0, 1, 4, 17 };
    for (size_t i = 0; i < 4; i++) {
        write_codes("in.zt", TN_INT16, all, 1000, ldexpf(1, -from[i]), NULL);
        for (size_t w = 0; w < 2; w++) {
            for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
                char cast[32];
                snprintf(cast, sizeof cast, "%s,frac=%d", widths[w].name, from[i] + by[k]);
                const codes *c = made("in.zt", cast);
                CHECK(c->dtype == widths[w].dtype && c->nparts == 2 && frac_of(c) == from[i] + by[k]);
                for (size_t e = 0; e < 1000; e++)
                    CHECK(c->code[e] == shifted_code(all[e], by[k], widths[w].dtype));
            }
        }
    }
    static const int16_t ties[] = { 1, 3, -1, -3 };
    write_codes("in.zt", TN_INT16, ties, 4, 0.5f, NULL);
    const codes *c = made("in.zt", "fx16,frac=0,round=even");
    CHECK(c->code[0] == 0 && c->code[1] == 2 && c->code[2] == 0 && c->code[3] == -2);
    c = made("in.zt", "fx16,frac=0,round=away");
    CHECK(c->code[0] == 1 && c->code[1] == 2 && c->code[2] == -1 && c->code[3] == -2);
}

static void codes_that_need_no_change_stay(void)
{
    static const int16_t some[] = { 0, 1, -1, 32767, -32768, 12345 };
    static const int32_t wide[] = { 2147483647, -2147483647 - 1, 1000000007, 0, -1 };
    write_codes("in.zt", TN_INT16, some, 6, 1 / 128.0f, NULL);
    const codes *c = made("in.zt", "fx16,frac=7");
    for (size_t i = 0; i < 6; i++)
        CHECK(c->code[i] == some[i]);
    c = made("in.zt", "fx16,frac=7,compat=mli");
    for (size_t i = 0; i < 6; i++)
        CHECK(c->code[i] == some[i]);
    write_codes("in.zt", TN_INT32, wide, 5, 0.75f, &(int32_t){ -9 });
    c = made("in.zt", "sa32,scale=0.75,zero=-9");
    assert_memory_equal(c->code, wide, sizeof wide);
}

/* Without values between them: 1000000007 is no float32. */
static void affine_codes_move_exactly_or_as_mli_moves_them(void)
{
    static const int32_t wide[] = { 2147483647, 1000000007 };
    write_codes("in.zt", TN_INT32, wide, 2, 1, &(int32_t){ 0 });
    const codes *c = made("in.zt", "sa32,scale=3");
    CHECK(c->nparts == 3 && c->code[1] == 333333336 && c->code[0] == 715827882);
    c = made("in.zt", "sa32,scale=3,compat=mli");
    CHECK(c->code[1] == 333328249);
    c = made("in.zt", "sa32,scale=1,compat=mli");
    CHECK(c->code[0] == 2147483644 && c->code[1] == 1000000006);
    c = made("in.zt", "sa8,scale=16777216,zero=3");
    CHECK(c->dtype == TN_INT8 && c->code[0] == 127 && c->code[1] == 60 + 3 && c->zero[0] == 3);
    c = made("in.zt", "fx16,frac=-16");
    CHECK(c->nparts == 2 && c->code[0] == 32767 && c->code[1] == 15259);
    must_fail("in.zt", (wish){ .cast = "sa32,scale=1,compat=mli,round=away" }, TN_ERR_ARGUMENT,
              "tensor \"t\": ");
}

static void codes_of_any_integers_become_fixed_point(void)
{
    static const uint8_t some[] = { 0, 128, 255, 130, 127 };
    write_codes("in.zt", TN_UINT8, some, 5, 0.1f, &(int32_t){ 128 });
    const codes *c = made("in.zt", "fx16,frac=8");
    for (size_t i = 0; i < 5; i++)
        CHECK(c->code[i] == (int32_t)floor(((double)some[i] - 128) * (double)0.1f * 256 + 0.5));
    make_values();
    write_values("in.zt", TN_FLOAT32, values, 2, (const int64_t[]){ 8, 50 });
    must_convert("in.zt", "sa.zt", (wish){ .cast = "sa8,per=channel,axis=0,zero=asymmetric",
                                           .layout = "AB,from=AB" });
    must_convert("sa.zt", "fx.zt", (wish){ .cast = "fx16,frac=6", .layout = "BA", .pad = "A=3" });
    must_convert("sa.zt", "per.zt", (wish){ .cast = "sa32,per=channel,axis=B,scale=0.5,zero=9",
                                            .layout = "BA" });
    const codes per = *codes_of("per.zt"), sa = *codes_of("sa.zt");
    CHECK(per.axis == 0 && per.nscales == 50 && per.scale[49] == 0.5f && per.zero[49] == 9);
    c = codes_of("fx.zt");
    CHECK(c->shape[0] == 50 && c->shape[1] == 8 && c->axis == -1);
    for (size_t i = 0; i < MANY; i++) {
        size_t row = i / 50, column = i % 50;
        double value = ((double)sa.code[i] - sa.zero[row]) * (double)sa.scale[row];
        CHECK(c->code[column * 8 + row] == cut(floor(value * 64 + 0.5), TN_INT16));
        CHECK(per.code[column * 8 + row] == (int32_t)floor(value * 2 + 0.5) + 9);
    }
}

static void auto_is_found_from_codes_too(void)
{
    static const int16_t some[] = { 300, -7, 12 };
    write_codes("in.zt", TN_INT16, some, 3, 1 / 128.0f, NULL);
    const codes *c = made("in.zt", "fx8,frac=auto");
    CHECK(frac_of(c) == 5 && c->code[0] == 75 && c->code[1] == -2 && c->code[2] == 3);
    c = made("in.zt", "fx16,frac=auto");
    CHECK(frac_of(c) == 13 && c->code[0] == 300 << 6 && c->code[1] == -7 * 64);
    c = made("in.zt", "fx16,frac=auto,round=stochastic");
    CHECK(frac_of(c) == 13);
    write_codes("in.zt", TN_INT16, (const int16_t[]){ 255, 0 }, 2, 1, NULL);        /* 127.5 rounds up to 128 */
    c = made("in.zt", "fx8");
    CHECK(frac_of(c) == -2 && c->code[0] == 64);
    c = made("in.zt", "fx8,round=trunc");
    CHECK(frac_of(c) == -1 && c->code[0] == 127);
    write_codes("in.zt", TN_INT16, (const int16_t[]){ -257, 0 }, 2, 1, NULL);       /* -128.5 is -128 or, by chance, -129 */
    c = made("in.zt", "fx8,round=up");
    CHECK(frac_of(c) == -1 && c->code[0] == -128);
    c = made("in.zt", "fx8,round=stochastic");
    CHECK(frac_of(c) == -2);
    write_codes("in.zt", TN_INT8, (const int8_t[]){ 127, -128 }, 2, 0x1p127f, NULL);
    c = made("in.zt", "fx8");
    CHECK(frac_of(c) == -127 && c->code[0] == 127 && c->code[1] == -128);
    write_codes("in.zt", TN_INT8, (const int8_t[]){ 9, 9 }, 2, 3, &(int32_t){ 9 });
    c = made("in.zt", "fx8");
    CHECK(frac_of(c) == 7 && c->code[0] == 0);
    write_codes("in.zt", TN_UINT4, (const uint8_t[]){ 0xff, 0x0f }, 3, 3, &(int32_t){ 15 });    /* four bits are no code */
    c = made("in.zt", "fx8");
    CHECK(frac_of(c) == 7 && c->code[2] == 0);
    write_codes("in.zt", TN_INT8, "", 0, 3, NULL);
    c = made("in.zt", "fx16");
    CHECK(frac_of(c) == 15 && c->count == 0);
    make_values();
    write_values("in.zt", TN_FLOAT32, values, 2, (const int64_t[]){ 8, 50 });
    must_convert("in.zt", "int4.zt", (wish){ .cast = "i4,per=channel,axis=1" });
    must_convert("int4.zt", "out.zt", (wish){ .cast = "fx8", .create.encoding = TN_ENCODING_ZSTD });
    must_convert("int4.zt", "values.zt", (wish){ .cast = "f32" });
    must_convert("values.zt", "same.zt", (wish){ .cast = "fx8,round=half_up" });
    int frac = frac_of(codes_of("out.zt"));
    CHECK(frac == frac_of(codes_of("same.zt")));
}

/* The largest number of fractional bits at which an integer fits fx16, half up. */
static int fitting(int64_t x)
{
    int frac = 20;
    while (floor(ldexp((double)x, frac) + 0.5) != (double)shifted_code(x, frac, TN_INT16))
        frac--;
    return frac;
}

/* One code, the lowest or the highest, among zeros. */
static void check_auto(tn_dtype dtype, bool lowest, size_t place, int32_t axis)
{
    static const int64_t shape[] = { 3, 700 };
    static uint8_t bytes[4 * 3 * 700];
    float scales[700];
    unsigned bits = tn_dtype_get(dtype)->bits;
    bool sign = tn_dtype_get(dtype)->kind == TN_KIND_INT;
    int64_t high = (INT64_C(1) << (bits - sign)) - 1, code = lowest ? -high - 1 : high;
    for (size_t i = 0; i < 700; i++)
        scales[i] = ldexpf(1, (int)(i % 13));
    memset(bytes, 0, sizeof bytes);
    tn_code_put(bytes, place, bits, (uint64_t)code);
    write_scaled("in.zt", dtype, bytes, 2, shape, axis, scales, NULL);
    int64_t value = code * (int64_t)scales[axis < 0 ? 0 : axis ? place % 700 : place / 700];
    const codes *c = made("in.zt", "fx16,frac=auto");
    CHECK(frac_of(c) == fitting(value) && c->code[place] == shifted_code(value, fitting(value), TN_INT16));
}

static void auto_sees_the_one_code_that_counts_wherever_it_is(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_UINT8, TN_INT16, TN_UINT16, TN_INT32, TN_INT4, TN_UINT4,
                                      TN_INT2, TN_UINT2 };
    static const struct { size_t place; int32_t axis; } cases[] = { { 0, -1 }, { 1024, -1 }, { 1023, 0 },
                                                                    { 2099, 0 }, { 1024, 1 }, { 2099, 1 } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            check_auto(types[i], false, cases[k].place, cases[k].axis);
            if (tn_dtype_get(types[i])->kind == TN_KIND_INT)
                check_auto(types[i], true, cases[k].place, cases[k].axis);
        }
}

static void codes_are_looked_at_in_any_encoding_until_somebody_cancels(void)
{
    make_values();
    write_floats("in.zt", values, MANY);
    must_convert("in.zt", "packed.zt", (wish){ .cast = "fx16", .create.encoding = TN_ENCODING_ZSTD });
    must_convert("in.zt", "plain.zt", (wish){ .cast = "fx16" });
    const codes plain = *made("plain.zt", "fx8");
    assert_memory_equal(made("packed.zt", "fx8"), &plain, sizeof plain);
    must_fail("packed.zt", (wish){ .cast = "fx8", .progress = stop_at_once },
              TN_ERR_CANCELLED, "cancelled");
}

static void dimensions_without_an_index_have_no_scales(void)
{
    static const int64_t shape[] = { 0, 3 };
    write_values("in.zt", TN_FLOAT32, "", 2, shape);
    const codes *c = made("in.zt", "sa8,per=channel,axis=0");
    CHECK(c->count == 0 && c->nscales == 0 && c->axis == 0 && c->nparts == 3);
    must_convert("out.zt", "none.zt", (wish){ .cast = NULL });
    c = made("none.zt", "fx16");
    CHECK(c->count == 0 && frac_of(c) == 15);
    c = made("in.zt", "sa32,per=channel,axis=1");
    CHECK(c->count == 0 && c->nscales == 3 && c->scale[2] == 1 && c->zero[2] == 0);
    must_convert("in.zt", "none.zt", (wish){ .cast = "sa8,per=channel,axis=1,scale=1,zero=5" });
    CHECK(frac_of(made("none.zt", "fx16")) == 15);                      /* no codes are no values but 0 */
}

/* ---- MLI's arithmetic ---- */

static void compat_is_mlis_binary32_from_values_and_to_them(void)
{
    static const float some[] = { 0.49999997f, 3e9f, -3e9f, 8388609, 1.5f };
    static const int32_t wide[] = { 16777217, 2147483647 };
    write_floats("in.zt", some, 5);
    const codes *c = made("in.zt", "fx16,frac=0");
    CHECK(c->code[0] == 0 && c->code[1] == 32767 && c->code[2] == -32768 && c->code[4] == 2);
    c = made("in.zt", "fx16,frac=0,compat=mli");
    CHECK(c->code[0] == 1 && c->code[1] == -32768 && c->code[2] == -32768 && c->code[4] == 2);
    c = made("in.zt", "sa32,scale=1");
    CHECK(c->code[3] == 8388609);
    c = made("in.zt", "sa32,scale=1,compat=mli");
    CHECK(c->code[3] == 8388610);
    write_codes("codes.zt", TN_INT32, wide, 2, 3, &(int32_t){ 0 });
    for (int mli = 0; mli < 2; mli++) {
        must_convert("codes.zt", "back.zt", (wish){ .cast = mli ? "f32,compat=mli" : "f32" });
        tn_file *f = open_file("back.zt");
        float *x = (float *)read_tensor(f, tn_file_tensor(f, 0));
        CHECK(x[0] == (mli ? 50331648.0f : 50331652.0f));               /* 3 * 16777217 = 50331651 */
        free(x);
        tn_close(f);
    }
}

/* ---- containers ---- */

static void every_container_gives_them_back(void)
{
    static const char *const files[] = { "c.zt", "c.safetensors", "c.npz", "c.json" };
    static const char *const casts[] = { "fx8,frac=5", "fx16,frac=auto", "fx16,frac=-3", "fx8,frac=33", "sa8",
                                         "sa32,per=channel,axis=1",
                                         "sa8,per=channel,axis=0,zero=asymmetric" };
    make_values();
    write_values("in.zt", TN_BFLOAT16, values, 2, (const int64_t[]){ 8, 50 });       /* any bits will do... */
    must_convert("in.zt", "in.zt", (wish){ .cast = "f32,nan=zero" });               /* ...that are numbers */
    must_convert("in.zt", "in.zt", (wish){ .cast = "bf16" });
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        must_convert("in.zt", "direct.zt", (wish){ .cast = casts[i] });
        must_convert("direct.zt", "values.zt", (wish){ .cast = "f32" });
        const codes expected = *codes_of("direct.zt");
        for (size_t k = 0; k < 4; k++) {
            must_convert("in.zt", files[k], (wish){ .cast = casts[i] });
            assert_memory_equal(codes_of(files[k]), &expected, sizeof expected);
            must_convert(files[k], "again.zt", (wish){ .create.encoding = TN_ENCODING_ZSTD });
            assert_memory_equal(codes_of("again.zt"), &expected, sizeof expected);
            must_convert(files[k], "back.zt", (wish){ .cast = "f32" });
            tn_file *a = open_file("back.zt"), *b = open_file("values.zt");
            uint8_t *x = read_tensor(a, tn_file_tensor(a, 0)), *y = read_tensor(b, tn_file_tensor(b, 0));
            assert_memory_equal(x, y, 1600);
            free(x);
            free(y);
            tn_close(a);
            tn_close(b);
        }
    }
}

static void values_of_fixed_point_are_exact(void)
{
    int16_t all[2048];
    for (int i = 0; i < 2048; i++)
        all[i] = (int16_t)(i * 32 - 32768 + i % 32);
    static const int fracs[] = { -90, -1, 0, 7, 15, 40, 100 };
    for (size_t i = 0; i < sizeof fracs / sizeof *fracs; i++) {
        write_codes("in.zt", TN_INT16, all, 2048, ldexpf(1, -fracs[i]), NULL);
        must_convert("in.zt", "out.zt", (wish){ .cast = "f32" });
        tn_file *f = open_file("out.zt");
        float *x = (float *)read_tensor(f, tn_file_tensor(f, 0));
        for (size_t k = 0; k < 2048; k++)
            CHECK(x[k] == ldexpf((float)all[k], -fracs[i]));
        free(x);
        tn_close(f);
        char cast[32];
        snprintf(cast, sizeof cast, "fx16,frac=%d", fracs[i]);
        must_convert("out.zt", "again.zt", (wish){ .cast = cast });
        const codes *c = codes_of("again.zt");
        for (size_t k = 0; k < 2048; k++)
            CHECK(c->code[k] == all[k]);
    }
}

/* ---- what cannot be ---- */

static void what_has_no_values_or_another_datatype_is_refused(void)
{
    static const int32_t integers[64] = { 1, 2, 3 };
    make_values();
    write_values("in.zt", TN_INT32, integers, 1, &(int64_t){ 3 });
    must_fail("in.zt", (wish){ .cast = "fx8" }, TN_ERR_ARGUMENT,
              "tensor \"t\": expected values of a float type but found int32: "
              "cast it to f32 first");
    must_fail("in.zt", (wish){ .cast = "sa8,scale=1" }, TN_ERR_ARGUMENT,
              "tensor \"t\": expected values of a float type but found int32");
    static const char *const unsigned_casts[] = { "fx8", "fx16,frac=3", "sa8", "sa32,scale=1",
                                                  "int8,per=tensor", "mxfp4" };
    write_values("in.zt", TN_FLOAT8_E8M0, integers, 1, &(int64_t){ 3 });
    /* no scaled tensor has such values */
    for (size_t i = 0; i < sizeof unsigned_casts / sizeof *unsigned_casts; i++)
        must_fail("in.zt", (wish){ .cast = unsigned_casts[i] }, TN_ERR_ARGUMENT,
                  "tensor \"t\": expected values of a signed float type but found float8_e8m0");
    write_values("in.zt", TN_FLOAT32, values, 1, &(int64_t){ 64 });
    must_fail("in.zt", (wish){ .cast = "sa8,per=channel,axis=1" }, TN_ERR_ARGUMENT,
              "expected a dimension below 1 but found \"1\"");
    must_fail("in.zt", (wish){ .cast = "fx8", .form = "coo" }, TN_ERR_ARGUMENT,
              "a sparse tensor has no codes with scales");
    must_convert("in.zt", "mx.zt", (wish){ .cast = "mxfp4" });
    must_equal_two("mx.zt", (wish){ .cast = "fx8,frac=3" }, (wish){ .cast = "f32" },
                   (wish){ .cast = "fx8,frac=3" });
    must_convert("in.zt", "coo.zt", (wish){ .form = "coo" });
    must_fail("coo.zt", (wish){ .cast = "fx8,frac=3" }, TN_ERR_UNSUPPORTED, "a sparse tensor has no scales");
    must_convert("in.zt", "fx.zt", (wish){ .cast = "fx8" });
    static const char *const by_values[] = { "fx8,frac=least", "sa8", "sa8,percentile=99", "sa32",
                                             "i8,per=tensor", "i16" };
    for (size_t i = 0; i < sizeof by_values / sizeof *by_values; i++)
        must_equal_two("fx.zt", (wish){ .cast = by_values[i] }, (wish){ .cast = "f32" },
                       (wish){ .cast = by_values[i] });
    must_convert("in.zt", "codes.zt", (wish){ .cast = "i8,per=tensor" });
    must_fail("codes.zt", (wish){ .cast = "sa8,scale=1,compat=mli" }, TN_ERR_ARGUMENT, "tensor \"t\": ");      /* 24 bits of scale */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(values_become_codes_with_any_number_of_fractional_bits),
        IN_FOLDER(every_float_type_is_a_source),
        IN_FOLDER(auto_is_the_largest_that_cuts_nothing),
        IN_FOLDER(nothing_and_zeros_have_all_bits_but_the_sign_behind_the_point),
        IN_FOLDER(infinities_saturate_and_a_nan_is_an_error_or_zero),
        IN_FOLDER(least_has_the_least_squared_error),
        IN_FOLDER(a_rounding_that_is_said_is_the_one),
        IN_FOLDER(affine_codes_have_zeros_and_scales_of_15_bits),
        IN_FOLDER(scales_fit_all_values_unless_a_percentile_says_otherwise),
        IN_FOLDER(casting_layout_and_padding_take_one_conversion),
        IN_FOLDER(padding_is_the_zero_point_or_code_0_as_mli_has_it),
        IN_FOLDER(a_dimension_called_1_has_one_index),
        IN_FOLDER(fixed_point_moves_half_up),
        IN_FOLDER(codes_that_need_no_change_stay),
        IN_FOLDER(affine_codes_move_exactly_or_as_mli_moves_them),
        IN_FOLDER(codes_of_any_integers_become_fixed_point),
        IN_FOLDER(auto_is_found_from_codes_too),
        IN_FOLDER(auto_sees_the_one_code_that_counts_wherever_it_is),
        IN_FOLDER(codes_are_looked_at_in_any_encoding_until_somebody_cancels),
        IN_FOLDER(dimensions_without_an_index_have_no_scales),
        IN_FOLDER(compat_is_mlis_binary32_from_values_and_to_them),
        IN_FOLDER(every_container_gives_them_back),
        IN_FOLDER(values_of_fixed_point_are_exact),
        IN_FOLDER(what_has_no_values_or_another_datatype_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
