/* Datatypes on the way from file to file: codes, what they would stand for, and back. */
#include "support.h"
#include "stored.h"

#include <math.h>
#include <stdio.h>

#include "convert.h"
#include "datatype.h"
#include "files.h"
#include "quant/scaled_plan.h"

enum { ROWS = 96, COLS = 192, COUNT = ROWS * COLS };

static float    values[COUNT];
static uint16_t halves[COUNT];

/* Of several sizes, with outliers, zeros of both signs and a row of nothing but zeros. */
static void make_values(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((float)(state >> 8) / 8388608.0f - 1) * ldexpf(1, (int)(i / COLS % 13) - 6);
        if (i % 97 == 0)
            values[i] = i % 2 ? -0.0f : 0.0f;
        if (i % 1001 == 5)
            values[i] *= 40;
        if (i / COLS == 7)
            values[i] = 0;
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        halves[i] = (uint16_t)(bits >> 16);
    }
}

static const simple matrix = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLS },
                               .data = values };
static const simple narrow = { .name = "m", .dtype = TN_BFLOAT16, .rank = 2, .shape = { ROWS, COLS },
                               .data = halves };

static const simple cube = { .name = "m", .dtype = TN_FLOAT32, .rank = 3, .shape = { 6, 16, COLS },
                             .data = values };

static void same_data(const char *cast, const char *a, const char *b)
{
    tn_file *x = open_file(a), *y = open_file(b);
    const tn_tensor *t = tn_file_tensor(x, 0), *u = tn_file_tensor(y, 0);
    uint8_t *p = read_tensor(x, t), *q = read_tensor(y, u);
    CHECK(t->dtype == u->dtype && t->parts[0].nbytes == u->parts[0].nbytes);
    if (memcmp(p, q, (size_t)t->parts[0].nbytes) != 0)
        fail_msg("%s: %s and %s differ", cast, a, b);
    free(p);
    free(q);
    tn_close(x);
    tn_close(y);
}

/* The same through a file of codes and at once, and the same as the library's own. */
static void goes_there_and_back(const char *cast, const simple *tensor, const char *through)
{
    const char *type = tensor->dtype == TN_FLOAT32 ? "float32" : "bfloat16";
    must_convert("in.safetensors", "virtual.zt", (wish){ .cast = cast, .is_virtual = true });
    must_convert("in.safetensors", through, (wish){ .cast = cast });
    must_convert(through, "back.zt", (wish){ .cast = type });
    same_data(cast, "virtual.zt", "back.zt");
    tn_file *f = open_file("virtual.zt");
    const tn_tensor *t = tn_file_tensor(f, 0);
    uint8_t *made = read_tensor(f, t), *own = malloc((size_t)t->parts[0].nbytes);
    tn_datatype *d;
    tn_error err = { .text = "" };
    CHECK(t->dtype == tensor->dtype && t->form == TN_FORM_DENSE && own);
    CHECK(tn_datatype_parse(cast, &d, &err) == TN_OK);
    CHECK(tn_fake_quantize(d, &t->parts[0].array, tensor->data, own, NULL, NULL, &err) == TN_OK);
    assert_memory_equal(own, made, t->parts[0].nbytes);
    tn_datatype_free(d);
    free(own);
    free(made);
    tn_close(f);
}

static void every_name_comes_back_as_its_virtual_cast(void)
{
    make_values();
    size_t done = 0;
    for (const tn_datatype_name *n; (n = tiles_at(done)) != NULL; done++) {
        if (tn_dtype_parse(n->text) != TN_UNKNOWN)
            continue;           /* a cast to an element type */
        write_file("in.safetensors", (tn_create_options){ .replace = true }, done % 2 ? &narrow : &matrix, 1);
        goes_there_and_back(n->text, done % 2 ? &narrow : &matrix,
                            done % 3 ? "codes.zt" : "codes.safetensors");
    }
    CHECK(done > 200);
}

/* Rows are whole blocks; types that need importance to be encoded are refused. */
static void block_types_come_back_as_their_virtual_cast(void)
{
    static const simple rows = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { COUNT / 256, 256 },
                                 .data = values };
    static const simple pairs = { .name = "m", .dtype = TN_BFLOAT16, .rank = 3, .shape = { 2, COUNT / 1024, 512 },
                                  .data = halves };
    static const char *const through[] = { "codes.zt", "codes.safetensors", "codes.npz" };
    size_t done = 0;
    make_values();
    for (size_t i = 0; tn_datatype_at(i); i++) {
        const char *text = tn_datatype_at(i)->text;
        const simple *tensor = i % 2 ? &rows : &pairs;
        if (!is_block_type(tn_datatype_at(i)))
            continue;
        write_file("in.safetensors", (tn_create_options){ .replace = true }, tensor, 1);
        tn_datatype *d = datatype_of(text);
        tn_error err = { .text = "" };
        float y[COUNT];
        const tn_array array = { TN_FLOAT32, 2, rows.shape, NULL };
        tn_status status = tn_fake_quantize(d, &array, values, y, NULL, NULL, &err);
        tn_datatype_free(d);
        if (status)
            CHECK(status == TN_ERR_ARGUMENT && strstr(err.text, "importance"));
        else
            goes_there_and_back(text, tensor, through[i % 3]);
        done += !status;
    }
    CHECK(done == 19);
    tn_file *f = open_file("in.safetensors");
    tn_error err = { .text = "" };
    tn_status status = convert_open(f, "none.zt", (wish){ .cast = "q4_K,overflow=error" }, &err);
    CHECK(status == TN_ERR_ARGUMENT && strstr(err.text, "q4_K does not tell which values it clips"));
    tn_close(f);
}

static void tiles_of_any_kind_come_back_as_their_virtual_cast(void)
{
    static const char *const recipes[] = {
        "e2m1fnuz|e8m0_t32d0", "int8|float32_t0d0", "e4m3fn|e8m0_t16_t32", "e2m1fnuz|e8m0_t32n2m4",
        "int4|bfloat16_t32d0n1m4", "uint4|float16_int8_t0", "int5|e8m0_t16s2o1d0", "float32|n2m4", "e3m3fnuz",
        "icb44fi_e2m3fnuz|e8m0_t0", "int8|float16", "e2m1fnuz|multi_float32_e4m3fn_t16",
    };
    static const char *const through[] = { "codes.zt", "codes.safetensors", "codes.npz", "codes.json" };
    make_values();
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
        for (size_t k = 0; k < 4; k++)
            goes_there_and_back(recipes[i], &matrix, through[k]);
    }
}

static void options_reach_the_codes(void)
{
    static const char *const casts[] = { "mxfp4,mode=ceil", "mxfp4,round=stochastic,seed=7",
                                         "mxfp4,dialect=ggml", "int4_b32,mode=mse",
                                         "mxfp4,rotate=hadamard64", "int4_b32,rotate=walsh32:9", "2:4" };
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    must_convert("in.safetensors", "plain.zt", (wish){ .cast = "mxfp4", .is_virtual = true });
    tn_file *plain = open_file("plain.zt");
    uint8_t *p = read_tensor(plain, tn_file_tensor(plain, 0));
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        must_convert("in.safetensors", "virtual.zt", (wish){ .cast = casts[i], .is_virtual = true });
        must_convert("in.safetensors", "codes.zt", (wish){ .cast = casts[i] });
        must_convert("codes.zt", "again.safetensors", (wish){ .create.checksum = TN_CHECKSUM_NONE });
        must_convert("again.safetensors", "back.zt", (wish){ .cast = "f32" });
        same_data(casts[i], "virtual.zt", "back.zt");
        tn_file *f = open_file("back.zt");
        uint8_t *q = read_tensor(f, tn_file_tensor(f, 0));
        CHECK(memcmp(p, q, sizeof values) != 0);
        free(q);
        tn_close(f);
    }
    must_convert("in.safetensors", "codes.zt", (wish){ .cast = "mxfp4,store=unpacked" });
    tn_file *f = open_file("codes.zt");
    CHECK(tn_file_tensor(f, 0)->scaling->unpacked && tn_file_tensor(f, 0)->parts[0].nbytes == COUNT);
    tn_close(f);
    must_convert("codes.zt", "back.zt", (wish){ .cast = "f32" });
    same_data("unpacked", "plain.zt", "back.zt");
    free(p);
    tn_close(plain);
}

static void values_are_rotated_across_rows_too(void)
{
    static const char *const casts[] = { "e2m1fnuz|e8m0_t32d0,rotate=hadamard32",
                                         "e4m3fn|e8m0_t16_t32,rotate=walsh64:3" };
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &narrow, 1);
    for (size_t i = 0; i < 2; i++) {
        must_convert("in.safetensors", "virtual.zt", (wish){ .cast = casts[i], .is_virtual = true });
        must_convert("in.safetensors", "codes.zt", (wish){ .cast = casts[i] });
        must_convert("codes.zt", "back.zt", (wish){ .cast = "bfloat16" });
        same_data(casts[i], "virtual.zt", "back.zt");
        must_convert("codes.zt", "once.zt", (wish){ .cast = "float32" });
        must_convert("once.zt", "twice.zt", (wish){ .cast = "float32,times=2" });
        must_convert("codes.zt", "back.zt", (wish){ .cast = "float32,times=2" });
        same_data(casts[i], "twice.zt", "back.zt");
    }
}

static bool has_infinite_halves(const char *name)
{
    bool found = false;
    tn_file *f = open_file(name);
    uint8_t *p = read_tensor(f, tn_file_tensor(f, 0));
    for (uint64_t i = 0; i < tn_file_tensor(f, 0)->parts[0].nbytes; i += 2)
        found |= (p[i + 1] & 0x7c) == 0x7c;
    free(p);
    tn_close(f);
    return found;
}

static void values_beyond_their_type_saturate_where_they_are_asked_to(void)
{
    static const char *const casts[] = { "mxfp4,mode=ceil", "e2m1fnuz|e8m0_t4d0,mode=ceil",
                                         "mxfp4,mode=ceil,rotate=hadamard4",
                                         "e2m1fnuz|e8m0_t4d0,mode=ceil,rotate=hadamard4" };
    static uint16_t large[4 * 64];
    static const simple tensor = { .name = "m", .dtype = TN_FLOAT16, .rank = 2, .shape = { 4, 64 },
                                   .data = large };
    for (size_t i = 0; i < 4 * 64; i++)
        large[i] = i % 3 ? 0x7bff : 0xfbff;
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &tensor, 1);
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        must_convert("in.safetensors", "default.zt", (wish){ .cast = casts[i], .is_virtual = true });
        must_convert("in.safetensors", "saturated.zt", (wish){ .cast = casts[i], .is_virtual = true,
                                                               .overflow = TN_OVERFLOW_SATURATE });
        CHECK(has_infinite_halves("default.zt") && !has_infinite_halves("saturated.zt"));
    }
}

static void elements_narrower_than_a_byte_are_values_too(void)
{
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    must_convert("in.safetensors", "narrow.zt", (wish){ .cast = "float6_e2m3fn" });
    must_convert("narrow.zt", "wide.zt", (wish){ .cast = "float32" });
    must_convert("narrow.zt", "codes.zt", (wish){ .cast = "int4_b32" });
    must_convert("codes.zt", "back.zt", (wish){ .cast = "float32" });
    must_convert("wide.zt", "virtual.zt", (wish){ .cast = "int4_b32", .is_virtual = true });
    same_data("int4_b32", "virtual.zt", "back.zt");
}

static void compressed_tensors_go_there_and_back(void)
{
    const tn_create_options zstd = { .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_SHA256,
                                     .replace = true };
    make_values();
    write_file("in.zt", zstd, &matrix, 1);
    must_convert("in.zt", "virtual.zt", (wish){ .cast = "nvfp4", .is_virtual = true });
    must_convert("in.zt", "codes.zt", (wish){ .cast = "nvfp4" });
    tn_file *f = open_file("codes.zt");
    for (uint32_t k = 0; k < 3; k++)
        CHECK(stored_info(&tn_file_tensor(f, 0)->parts[k]).encoding == TN_ENCODING_ZSTD);
    tn_close(f);
    must_convert("codes.zt", "back.zt", (wish){ .cast = "f32" });
    same_data("nvfp4", "virtual.zt", "back.zt");
}

/* ---- what quantizing did ---- */

static void take_report(void *context, const tn_quantize_report *q)
{
    tn_quantize_stats *all = context;
    assert_string_equal(q->name, "m");
    assert_string_equal(q->datatype, "e2m1fnuz|e8m0_t32");
    CHECK(q->bits == 4.25 && q->source->dtype == TN_FLOAT32);
    *all = *q->report;
}

static void a_report_says_what_was_lost(void)
{
    tn_quantize_stats codes, same, own;
    float made[COUNT];
    tn_datatype *d;
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    must_convert("in.safetensors", "codes.zt", (wish){ .cast = "mxfp4", .quantized = take_report,
                                                       .context = &codes });
    must_convert("in.safetensors", "virtual.zt", (wish){ .cast = "mxfp4", .is_virtual = true,
                                                         .quantized = take_report, .context = &same });
    assert_memory_equal(&codes, &same, sizeof codes);
    CHECK(tn_datatype_parse("mxfp4", &d, NULL) == TN_OK);
    CHECK(tn_fake_quantize(d, &(tn_array){ TN_FLOAT32, 2, matrix.shape, NULL }, values, made, NULL, &own,
                              NULL) == TN_OK);
    assert_memory_equal(&codes, &own, sizeof codes);
    double noise = 0;
    for (size_t i = 0; i < COUNT; i++)
        noise += ((double)made[i] - (double)values[i]) * ((double)made[i] - (double)values[i]);
    CHECK(codes.values == COUNT && codes.noise > 0.999 * noise && codes.noise < 1.001 * noise);
    CHECK(codes.saturated > 0 && codes.flushed > 0);
    tn_datatype_free(d);
}

/* ---- reports of codes that are made element by element ---- */

enum { TALL = 700, WIDE = 1001 };       /* rows of packed codes that end inside a byte, in several blocks */

static float large[TALL * WIDE];

static void keep_report(void *context, const tn_quantize_report *q)
{
    tn_quantize_stats *all = context;
    CHECK(all->values == 0);            /* one report */
    *all = *q->report;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void same_stats(const char *cast, const tn_quantize_stats *a, const tn_quantize_stats *b)
{
    if (a->values != b->values || a->saturated != b->saturated || a->flushed != b->flushed ||
        a->max_error != b->max_error || !is_near(a->signal, b->signal) || !is_near(a->noise, b->noise))
        fail_msg("%s: values %llu and %llu, saturated %llu and %llu, flushed %llu and %llu, noise %.17g and "
                 "%.17g", cast, (unsigned long long)a->values, (unsigned long long)b->values,
                 (unsigned long long)a->saturated, (unsigned long long)b->saturated,
                 (unsigned long long)a->flushed, (unsigned long long)b->flushed, a->noise, b->noise);
}

/* The report of codes is that of the values they stand for, whatever is done to the codes. */
static void codes_report_each_value_once(void)
{
    static const char *const casts[] = { "int8,per=tensor", "int4,per=channel,axis=0", "uint4,per=tensor",
                                         "u8,per=channel,axis=1", "fx8", "int8,per=tensor,percentile=99" };
    static const simple all = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { TALL, WIDE },
                                .data = large };
    make_values();
    for (size_t i = 0; i < TALL * WIDE; i++)
        large[i] = values[i % COUNT] * (float)(1 + i / COUNT % 3);
    write_file("large.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &all, 1);
    write_file("small.zt", (tn_create_options){ .replace = true }, &matrix, 1);
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++)
        for (int is_large = 0; is_large < 2; is_large++) {
            const char *in = is_large ? "large.zt" : "small.zt";
            const tn_create_options raw = { .encoding = TN_ENCODING_RAW };
            tn_quantize_stats faked = { 0 }, plain = { 0 }, padded = { 0 };
            must_convert(in, "x.zt", (wish){ .cast = casts[i], .is_virtual = true, .quantized = keep_report,
                                             .context = &faked });
            must_convert(in, "x.zt", (wish){ .cast = casts[i], .quantized = keep_report, .context = &plain });
            must_convert(in, "x.zt", (wish){ .cast = casts[i], .pad = "0=32,1=16", .quantized = keep_report,
                                             .create = raw, .context = &padded });
            CHECK(faked.values == (is_large ? TALL * WIDE : COUNT) && faked.noise > 0);
            same_stats(casts[i], &plain, &faked);
            same_stats(casts[i], &padded, &faked);
        }
}

/* Codes that are made of other codes report what they do to the values of these. */
static void codes_of_codes_report_too(void)
{
    tn_quantize_stats direct = { 0 }, values_of = { 0 };
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, &matrix, 1);
    must_convert("in.zt", "codes.zt", (wish){ .cast = "int8,per=channel,axis=0" });
    must_convert("codes.zt", "values.zt", (wish){ .cast = "f32" });
    must_convert("codes.zt", "x.zt", (wish){ .cast = "fx8", .quantized = keep_report, .context = &direct });
    must_convert("values.zt", "x.zt", (wish){ .cast = "fx8,round=half_up", .quantized = keep_report,
                                              .context = &values_of });
    CHECK(direct.noise > 0);
    same_stats("fx8", &direct, &values_of);
}

/* ---- tiles across rows ---- */

/* What a conversion makes band by band is what the library makes of the whole tensor in memory. */
static void check_bands(const char *cast, uint32_t rotation)
{
    static float made[COUNT];
    const tn_quantize_options o = { .size = sizeof o, .rotation = { .size = rotation } };
    const tn_create_options stored[] = { { .encoding = TN_ENCODING_RAW }, { .encoding = TN_ENCODING_ZSTD } };
    const simple expected = { .name = "m", .dtype = TN_FLOAT32, .rank = 3, .shape = { 6, 16, COLS },
                              .data = made };
    char text[100];
    tn_datatype *d;
    snprintf(text, sizeof text, "%s%s%u", cast, rotation ? ",rotate=hadamard" : ",seed=", rotation);
    CHECK(tn_datatype_parse(cast, &d, NULL) == TN_OK);
    CHECK(tn_fake_quantize(d, &(tn_array){ TN_FLOAT32, 3, cube.shape, NULL }, values, made, &o, NULL, NULL) ==
          TN_OK);
    tn_datatype_free(d);
    write_file("expected.zt", (tn_create_options){ .replace = true }, &expected, 1);
    for (int i = 0; i < 2; i++) {
        must_convert("cube.zt", "virtual.zt", (wish){ .cast = text, .is_virtual = true,
                                                      .create = stored[i] });
        must_convert("cube.zt", "codes.zt", (wish){ .cast = text, .create = stored[i] });
        must_convert("codes.zt", "back.zt", (wish){ .cast = "f32" });
        same_data(text, "virtual.zt", "expected.zt");
        same_data(text, "back.zt", "expected.zt");
    }
}

static void tiles_across_rows_are_made_in_bands(void)
{
    static const char *const casts[] = {
        "int8|float32_t0d0", "int8|float32_t0d1", "e2m1fnuz|e8m0_t32d1", "int4|float16_t16_t16",
        "uint4|float16_int8_t0_t16", "e2m1fnuz|e8m0_t4d0n2m4", "cb42f1346_e2m3fnuz|e8m0_t16s8d1",
        "int3|e5m0_t2d0", "int4|float32_t2d0_t8d1", "e2m1fnuz|multi_float32_e4m3fn_t16d1"
    };
    const uint64_t usual = tn_scaled_band, sizes[] = { usual, 16 * COLS, 4 * COLS, COLS, 100 };
    make_values();
    write_file("cube.zt", (tn_create_options){ .replace = true }, &cube, 1);
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            tn_scaled_band = sizes[k];
            check_bands(casts[i], 0);
            if (!strstr(casts[i], "d0"))        /* which has 6 indices */
                check_bands(casts[i], 8);
        }
    tn_scaled_band = usual;
}

/* ---- small and empty ---- */

static void tensors_without_values_have_codes_too(void)
{
    static const simple few[] = {
        { .name = "none", .dtype = TN_FLOAT32, .rank = 2, .shape = { 0, 32 }, .data = "" },
        { .name = "one", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = values + 1 },
        { .name = "odd", .dtype = TN_FLOAT32, .rank = 3, .shape = { 3, 2, 5 }, .data = values + 2 },
    };
    static const char *const casts[] = { "mxfp4", "nvfp4", "int8_f", "uint4_fi32", "2:4", "mx9" };
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, few, 3);
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        must_convert("in.safetensors", "virtual.safetensors", (wish){ .cast = casts[i], .is_virtual = true });
        must_convert("in.safetensors", "codes.zt", (wish){ .cast = casts[i] });
        must_convert("codes.zt", "back.safetensors", (wish){ .cast = "f32" });
        tn_file *a = open_file("virtual.safetensors"), *b = open_file("back.safetensors");
        for (size_t k = 0; k < 3; k++) {
            uint8_t *p = read_tensor(a, tn_file_tensor(a, k)), *q = read_tensor(b, tn_file_tensor(b, k));
            assert_memory_equal(p, q, tn_file_tensor(a, k)->parts[0].nbytes);
            free(p);
            free(q);
        }
        tn_close(a);
        tn_close(b);
    }
}

/* ---- what is refused ---- */

static void what_has_no_meaning_is_refused(void)
{
    static const int32_t ints[4] = { 1, 2, 3, 4 };
    static const simple whole = { .name = "i", .dtype = TN_INT32, .rank = 1, .shape = { 4 }, .data = ints };
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    write_file("ints.safetensors", (tn_create_options){ .replace = true }, &whole, 1);
    must_fail("ints.safetensors", (wish){ .cast = "mxfp4" }, TN_ERR_ARGUMENT,
              "\"i\": expected values of a float type but found int32: cast it to f32 first");
    must_fail("ints.safetensors", (wish){ .cast = "2:4" }, TN_ERR_ARGUMENT,
              "\"i\": expected values of a float type but found int32: cast it to f32 first");
    must_convert("in.safetensors", "double.zt", (wish){ .cast = "f64" });
    must_fail("double.zt", (wish){ .cast = "2:4" }, TN_ERR_ARGUMENT,
              "\"m\": 2:4 sparsity is of float32, float16, bfloat16 and signed floats of "
              "8 bits but found float64 (cast it first)");
    must_fail("in.safetensors", (wish){ .cast = "mxfp4", .form = "csr" }, TN_ERR_ARGUMENT,
              "a sparse tensor has no codes with scales");
    must_equal_two("in.safetensors", (wish){ .cast = "mxfp4", .layout = "CN,from=NC" },
                   (wish){ .layout = "CN,from=NC" }, (wish){ .cast = "mxfp4" });
    must_fail("in.safetensors", (wish){ .cast = "mxfp4,rotate=hadamard128" }, TN_ERR_ARGUMENT,
              "multiple of the rotation's 128");
    must_fail("in.safetensors", (wish){ .cast = "e2m1fnuz|e8m0_t32d2" }, TN_ERR_ARGUMENT,
              "\"m\": e2m1fnuz|e8m0_t32d2: its tiles need rank 3");
    must_convert("in.safetensors", "codes.zt", (wish){ .cast = "mxfp4" });
    must_equal_two("codes.zt", (wish){ .cast = "mxfp8" }, (wish){ .cast = "f32" }, (wish){ .cast = "mxfp8" });
    must_equal_two("codes.zt", (wish){ .cast = "int8,per=tensor" }, (wish){ .cast = "f32" },
                   (wish){ .cast = "int8,per=tensor" });
    must_equal_two("codes.zt", (wish){ .cast = "int8" }, (wish){ .cast = "f32" }, (wish){ .cast = "int8" });
    must_fail("codes.zt", (wish){ .cast = "f4" }, TN_ERR_ARGUMENT, "unknown type \"f4\" at character 1");
    must_convert("in.safetensors", "sparse.zt", (wish){ .form = "coo" });
    must_fail("sparse.zt", (wish){ .cast = "mxfp4" }, TN_ERR_UNSUPPORTED, "a sparse tensor has no scales");
}

/* Rows of packed elements begin within a byte: tensors that are made by many blocks. */
static void packed_elements_of_large_tensors_become_codes(void)
{
    enum { LARGE_ROWS = 9000, LARGE_COLS = 31 };
    static uint8_t codes[LARGE_ROWS * LARGE_COLS / 2];
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)(i * 37 + i / 251);
    const simple t = { .name = "m", .dtype = TN_FLOAT4_E2M1, .rank = 2, .shape = { LARGE_ROWS, LARGE_COLS },
                       .data = codes };
    write_file("in.zt", (tn_create_options){ .replace = true }, &t, 1);
    must_convert("in.zt", "one.zt", (wish){ .cast = "mxfp8" });
    must_convert("in.zt", "wide.zt", (wish){ .cast = "f32" });
    must_convert("one.zt", "a.zt", (wish){ .cast = "f32" });
    must_convert("wide.zt", "two.zt", (wish){ .cast = "mxfp8" });
    must_convert("two.zt", "b.zt", (wish){ .cast = "f32" });
    tn_file *a = open_file("a.zt"), *b = open_file("b.zt");
    size_t different = 1;
    CHECK(tn_compare(a, b, NULL, NULL, &different, NULL) == TN_OK && different == 0);
    CHECK(tn_file_tensor(a, 0)->shape[0] == LARGE_ROWS);
    tn_close(a);
    tn_close(b);
    tn_file *one = open_file("one.zt");
    CHECK(tn_file_tensor(one, 0)->dtype == TN_FLOAT4_E2M1);     /* what the values were */
    tn_close(one);
}

/* Scales along the shape without padding. */
static void codes_that_are_padded_on_their_way_to_tiles_keep_their_scales(void)
{
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    must_convert("in.safetensors", "codes.zt", (wish){ .cast = "int8,per=channel,axis=1" });
    must_convert("codes.zt", "wide.zt", (wish){ .cast = "f32" });
    must_convert("codes.zt", "a.zt", (wish){ .cast = "mxfp8", .pad = "-1=128" });
    must_convert("wide.zt", "b.zt", (wish){ .cast = "mxfp8", .pad = "-1=128" });
    tn_file *a = open_file("a.zt"), *b = open_file("b.zt");
    size_t different = 1;
    CHECK(tn_compare(a, b, NULL, NULL, &different, NULL) == TN_OK && different == 0);
    tn_close(a);
    tn_close(b);
}

/* Whatever the steps are, damaged data is found. */
static void damaged_values_are_found_before_they_become_codes(void)
{
    static const char *const casts[] = { "int4,per=tensor", "int8,per=tensor", "fx8", "mxfp4", "f16" };
    static const char *const pads[] = { NULL, "0=7" };
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true, .checksum = TN_CHECKSUM_CRC32C }, &matrix, 1);
    tn_file *f = open_file("in.zt");
    tn_stored_info at = { .size = sizeof at };
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(tn_part_stored(t, &t->parts[0], &at) == TN_OK);
    tn_close(f);
    FILE *file = fopen(in_folder("in.zt").text, "r+b");
    assert_non_null(file);
    CHECK(fseek(file, (long)at.offset + 3, SEEK_SET) == 0 && fputc(0x11, file) == 0x11 && fclose(file) == 0);
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        for (size_t k = 0; k < 2; k++)
            must_fail("in.zt", (wish){ .cast = casts[i], .pad = pads[k] }, TN_ERR_CHECKSUM,
                      "tensor \"m\": expected checksum");
}

static void nan_without_a_code_is_refused_by_its_place(void)
{
    make_values();
    values[5 * COLS + 17] = NAN;
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    must_fail("in.safetensors", (wish){ .cast = "mxfp4" }, TN_ERR_LOSS,
              "tensor \"m\": element [5, 17] is nan");
    must_convert("in.safetensors", "codes.zt", (wish){ .cast = "mxfp4,nan=zero" });
    must_convert("in.safetensors", "codes.zt", (wish){ .cast = "mxfp8" });
    must_convert("codes.zt", "back.zt", (wish){ .cast = "f32" });
    tn_file *f = open_file("back.zt");
    uint8_t *p = read_tensor(f, tn_file_tensor(f, 0));
    float found;
    memcpy(&found, p + (5 * COLS + 17) * sizeof found, sizeof found);
    CHECK(isnan(found));
    free(p);
    tn_close(f);
}

/* Tensors of one type and shape share a plan, and a thread makes them one after the other. */
static void tensors_of_one_shape_have_scales_of_their_own(void)
{
    static const char *const casts[] = {
        "int8,per=tensor", "int8,per=channel,axis=0", "uint8,per=channel,axis=1", "fx8,frac=auto",
        "fx8,frac=least", "int8,per=tensor,percentile=90", "nvfp4", "e4m3fn|float32_t64_t64", "int8_F",
        "mxfp4", "int8|float32",
    };
    enum { EACH = COUNT / 4 };
    simple all[4];
    make_values();
    for (size_t i = 0; i < 4; i++)
        all[i] = (simple){ .name = (const char *[]){ "a", "b", "c", "d" }[i], .dtype = TN_FLOAT32, .rank = 2,
                           .shape = { ROWS / 4, COLS }, .data = &values[(3 - i) * EACH] };
    write_file("all.safetensors", (tn_create_options){ .replace = true }, all, 4);
    for (size_t k = 0; k < sizeof casts / sizeof *casts; k++) {
        must_convert("all.safetensors", k % 2 ? "codes.zt" : "codes.safetensors", (wish){ .cast = casts[k] });
        must_convert(k % 2 ? "codes.zt" : "codes.safetensors", "together.zt", (wish){ .cast = "float32" });
        for (size_t i = 0; i < 4; i++) {
            write_file("one.safetensors", (tn_create_options){ .replace = true }, &all[i], 1);
            must_convert("one.safetensors", "code.zt", (wish){ .cast = casts[k] });
            must_convert("code.zt", "alone.zt", (wish){ .cast = "float32" });
            tn_file *f = open_file("together.zt"), *g = open_file("alone.zt");
            uint8_t *p = read_tensor(f, tn_file_find(f, all[i].name)),
                    *q = read_tensor(g, tn_file_tensor(g, 0));
            if (memcmp(p, q, EACH * sizeof *values) != 0)
                fail_msg("%s: tensor %zu", casts[k], i);
            free(p);
            free(q);
            tn_close(f);
            tn_close(g);
        }
    }
}

static void a_cancelled_conversion_leaves_nothing(void)
{
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &matrix, 1);
    must_fail("in.safetensors", (wish){ .cast = "mxfp4", .progress = stop_at_once }, TN_ERR_CANCELLED,
              "cancelled");
    CHECK(count_entries(folder) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_name_comes_back_as_its_virtual_cast),
        IN_FOLDER(block_types_come_back_as_their_virtual_cast),
        IN_FOLDER(tiles_of_any_kind_come_back_as_their_virtual_cast),
        IN_FOLDER(options_reach_the_codes),
        IN_FOLDER(values_are_rotated_across_rows_too),
        IN_FOLDER(values_beyond_their_type_saturate_where_they_are_asked_to),
        IN_FOLDER(elements_narrower_than_a_byte_are_values_too),
        IN_FOLDER(compressed_tensors_go_there_and_back),
        IN_FOLDER(a_report_says_what_was_lost),
        IN_FOLDER(codes_report_each_value_once),
        IN_FOLDER(codes_of_codes_report_too),
        IN_FOLDER(tiles_across_rows_are_made_in_bands),
        IN_FOLDER(tensors_without_values_have_codes_too),
        IN_FOLDER(what_has_no_meaning_is_refused),
        IN_FOLDER(packed_elements_of_large_tensors_become_codes),
        IN_FOLDER(codes_that_are_padded_on_their_way_to_tiles_keep_their_scales),
        IN_FOLDER(damaged_values_are_found_before_they_become_codes),
        IN_FOLDER(nan_without_a_code_is_refused_by_its_place),
        IN_FOLDER(tensors_of_one_shape_have_scales_of_their_own),
        IN_FOLDER(a_cancelled_conversion_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
