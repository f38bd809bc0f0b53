/* Layouts, padding and scales on the way from file to file. */
#include "support.h"
#include "stored.h"

#include <math.h>
#include <stdio.h>

#include "convert.h"
#include "files.h"

enum { N = 2, C = 11, H = 5, W = 7, COUNT = N * C * H * W };

static float values[COUNT];
static const simple images = { .name = "x", .dtype = TN_FLOAT32, .rank = 4, .shape = { N, C, H, W },
                               .data = values };

static void make_values(void)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)((i * 7919) % 1000 - 500) / 8 + (float)(i / (H * W) % C) * 10;
}

static float at_nchw(int n, int c, int h, int w)
{
    return values[((n * C + c) * H + h) * W + w];
}

static void check_nhwc(const char *name)
{
    static const int64_t shape[] = { N, H, W, C };
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_find(f, "x");
    assert_string_equal(t->layout, "NHWC");
    CHECK(t->rank == 4 && memcmp(t->shape, shape, sizeof shape) == 0);
    uint8_t *bytes = read_tensor(f, t);
    for (int n = 0, i = 0; n < N; n++)
        for (int h = 0; h < H; h++)
            for (int w = 0; w < W; w++)
                for (int c = 0; c < C; c++, i++)
                    CHECK(memcmp(bytes + 4 * i, &(float){ at_nchw(n, c, h, w) }, 4) == 0);
    free(bytes);
    tn_close(f);
}

static void values_keep_their_place_in_every_layout_and_container(void)
{
    static const char *const names[] = { "o.zt", "o.safetensors", "o.json" };
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, &images, 1);
    for (size_t i = 0; i < 3; i++) {
        must_convert("in.safetensors", names[i], (wish){ .layout = "NHWC,from=NCHW" });
        check_nhwc(names[i]);
        must_convert(names[i], "back.zt", (wish){ .layout = "CHWN" });
        must_convert("back.zt", "again.zt", (wish){ .layout = "NHWC" });
        check_nhwc("again.zt");
    }
    must_convert("in.safetensors", "z.zt",
                 (wish){ .layout = "NHWC,from=NCHW", .create = { .encoding = TN_ENCODING_ZSTD,
                                                                 .checksum = TN_CHECKSUM_SHA256 } });
    check_nhwc("z.zt");
    must_convert("z.zt", "z2.zt", (wish){ .layout = "NWCH" });
    must_convert("z2.zt", "z3.zt", (wish){ .layout = "NHWC" });
    check_nhwc("z3.zt");
}

static void padding_is_stored_and_not_seen(void)
{
    static const char *const names[] = { "p.zt", "p.safetensors", "p.json" };
    static const int64_t physical[] = { N, H, 8, 16 };
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true, .checksum = TN_CHECKSUM_CRC32C }, &images, 1);
    for (size_t i = 0; i < 3; i++) {
        must_convert("in.zt", names[i], (wish){ .layout = "NHWC,from=NCHW", .pad = "C=16,W=4,value=-2.5" });
        check_nhwc(names[i]);
        tn_file *f = open_file(names[i]);
        const tn_part *p = &tn_file_find(f, "x")->parts[0];
        CHECK(memcmp(p->padded->shape, physical, sizeof physical) == 0 && p->data == NULL);
        CHECK(stored_info(p).bytes == N * H * 8 * 16 * 4);
        size_t n;
        uint8_t *whole = load_file(tn_file_shard_name(f, stored_info(p).shard), &n);
        for (size_t k = 0; k < N * H * 8 * 16; k++) {
            float x;
            memcpy(&x, whole + stored_info(p).offset + 4 * k, 4);
            if (k % 16 >= C || k / 16 % 8 >= W)
                CHECK(x == -2.5f);
        }
        free(whole);
        tn_close(f);
        must_convert(names[i], "dense.zt", (wish){ .cast = NULL });        /* padding is not kept unless asked for */
        check_nhwc("dense.zt");
        f = open_file("dense.zt");
        CHECK(!tn_file_find(f, "x")->parts[0].padded);
        tn_close(f);
    }
}

/* The values that a scaled file gives back, checked against the originals; returns the largest error. */
static double worst_error(const char *name, const char *layout)
{
    must_convert(name, "values.zt", (wish){ .cast = "f32", .layout = layout });
    tn_file *f = open_file("values.zt");
    const tn_tensor *t = tn_file_find(f, "x");
    CHECK(t->form == TN_FORM_DENSE);
    CHECK(t->dtype == TN_FLOAT32 && t->rank == 4 && t->shape[1] == C);
    uint8_t *bytes = read_tensor(f, t);
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        float x;
        memcpy(&x, bytes + 4 * i, 4);
        worst = fmax(worst, fabs((double)x - (double)values[i]));
    }
    free(bytes);
    tn_close(f);
    return worst;
}

static void codes_with_scales_give_the_values_back(void)
{
    static const struct { const char *cast; double error; uint32_t parts; int32_t axis; } cases[] = {
        { "int8,per=tensor", 1.3 / 2, 2, -1 },
        { "uint8,per=tensor", 0.9 / 2, 3, -1 },
        { "int8,per=channel,axis=1,zero=asymmetric", 0.65 / 2, 3, 1 },
        { "int8,per=channel,axis=1", 1.3 / 2, 2, 1 },
        { "int16,per=channel,axis=3", 0.005, 2, 3 },
        { "uint4,per=channel,axis=-1", 15.0 / 2, 3, 3 },
        { "int4,per=tensor,zero=asymmetric", 15.0 / 2, 3, -1 },
        { "int8,per=tensor,scale=2", 1, 2, -1 },
        { "uint8,per=tensor,scale=1,zero=63", 0.5, 3, -1 },
    };
    static const char *const names[] = { "q.zt", "q.safetensors", "q.json" };
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, &images, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t k = 0; k < 3; k++) {
            must_convert("in.zt", names[k], (wish){ .cast = cases[i].cast });
            tn_file *f = open_file(names[k]);
            const tn_tensor *t = tn_file_find(f, "x");
            CHECK(t->form == TN_FORM_SCALED);
            CHECK(t->dtype == TN_FLOAT32 && t->nparts == cases[i].parts && t->scaling->axis == cases[i].axis);
            tn_close(f);
            double worst = worst_error(names[k], NULL);
            if (!(worst <= cases[i].error && worst > 0))
                fail_msg("%s in %s: the largest error is %g", cases[i].cast, names[k], worst);
        }
    }
}

/* Quantizing and reordering in one go or one after the other: the same codes, scales and values. */
static void scales_follow_their_dimension(void)
{
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, &images, 1);
    must_convert("in.zt", "one.zt", (wish){ .cast = "int8,per=channel,axis=1,zero=asymmetric",
                                            .layout = "NHWC,from=NCHW", .pad = "C=16" });
    must_convert("in.zt", "first.zt", (wish){ .cast = "int8,per=channel,axis=1,zero=asymmetric",
                                              .layout = "NCHW,from=NCHW" });
    must_convert("first.zt", "then.zt", (wish){ .layout = "NHWC", .pad = "C=16" });
    size_t n, m;
    uint8_t *one = load_file(in_folder("one.zt").text, &n), *then = load_file(in_folder("then.zt").text, &m);
    tn_file *f = open_file("one.zt"), *g = open_file("then.zt");
    const tn_tensor *a = tn_file_find(f, "x"), *b = tn_file_find(g, "x");
    CHECK(a->scaling->axis == 3 && b->scaling->axis == 3 && a->nparts == 3 && b->nparts == 3);
    for (uint32_t k = 0; k < 3; k++) {
        CHECK(stored_info(&a->parts[k]).bytes == stored_info(&b->parts[k]).bytes);
        CHECK(memcmp(one + stored_info(&a->parts[k]).offset, then + stored_info(&b->parts[k]).offset,
                     stored_info(&a->parts[k]).bytes) == 0);
    }
    tn_close(f);
    tn_close(g);
    free(one);
    free(then);
    CHECK(worst_error("one.zt", "NCHW") < 0.65 / 2);
}

static void rules_that_cannot_be_honoured_are_refused(void)
{
    static const simple two[] = {
        { .name = "x", .dtype = TN_FLOAT32, .rank = 4, .shape = { N, C, H, W }, .data = values },
        { .name = "bias", .dtype = TN_FLOAT32, .rank = 1, .shape = { 4 }, .data = values },
    };
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, two, 2);
    must_fail("in.zt", (wish){ .layout = "x=NHWC" }, TN_ERR_ARGUMENT,
              "its layout is not known: say it, as in NHWC,from=NCHW");
    must_fail("in.zt", (wish){ .layout = "NHWC,from=NCHW" }, TN_ERR_ARGUMENT,
              "tensor \"bias\": it has 1 dimension but layout NCHW has "
              "4 letters: name the tensors that have as many, as in 'conv*.weight=NHWC,from=NCHW'");
    must_fail("in.zt", (wish){ .layout = "x=HWC,from=CHW" }, TN_ERR_ARGUMENT,
              "it has 4 dimensions but layout CHW has 3 letters");
    must_fail("in.zt", (wish){ .layout = "y=NHWC,from=NCHW" }, TN_ERR_ARGUMENT, "no tensor matches \"y\"");
    must_fail("in.zt", (wish){ .layout = "x=NHWC,from=NCDW" }, TN_ERR_ARGUMENT,
              "has the letter H, which layout \"NCDW\" has not");
    must_fail("in.zt", (wish){ .pad = "x=C=16" }, TN_ERR_ARGUMENT,
              "expected a dimension C to pad but its layout is not known: "
              "say it, pad by number, as in -1=N, or name fewer tensors (layout)");
    must_fail("in.zt", (wish){ .pad = "x=4=16" }, TN_ERR_ARGUMENT,
              "expected one of its 4 dimensions to pad but found 4");
    must_fail("in.zt", (wish){ .pad = "x=0=16,1=2,-4=5" }, TN_ERR_ARGUMENT,
              "tensor \"x\": 0 and -4 are the same dimension to pad: name it once");
    must_fail("in.zt", (wish){ .layout = "x=NHWC,from=NCHW", .pad = "x=C=16,-1=5" }, TN_ERR_ARGUMENT,
              "C and -1 are the same dimension");
    must_fail("in.zt", (wish){ .layout = "x=NHWC,from=NCHW", .pad = "x=0=16,N=16" }, TN_ERR_ARGUMENT,
              "0 and N are the same dimension");
    must_fail("in.zt", (wish){ .cast = "x=int8,per=channel,axis=4" }, TN_ERR_ARGUMENT,
              "expected a dimension below 4 but found \"4\"");
    must_fail("in.zt", (wish){ .cast = "x=int8,per=channel,axis=C" }, TN_ERR_ARGUMENT,
              "its layout (not known), but found \"C\"");
    must_fail("in.zt", (wish){ .pad = "x=1=16", .create = { .encoding = TN_ENCODING_ZSTD } }, TN_ERR_ARGUMENT,
              "cannot be compressed");
    must_fail("in.zt", (wish){ .cast = "x=int8", .pad = "x=1=16,value=300" }, TN_ERR_LOSS, "300");
    must_convert("in.zt", "q.zt", (wish){ .cast = "x=int8,per=tensor", .layout = "x=NCHW,from=NCHW" });
    must_equal_two("q.zt", (wish){ .cast = "x=int8,per=tensor" }, (wish){ .cast = "x=f32" },
                   (wish){ .cast = "x=int8,per=tensor" });
    must_equal_two("q.zt", (wish){ .cast = "x=int8" }, (wish){ .cast = "x=f32" }, (wish){ .cast = "x=int8" });
    must_fail("q.zt", (wish){ .pad = "x=C=16,value=1" }, TN_ERR_ARGUMENT,
              "padding of a scaled tensor has the value 0");
    must_fail("in.zt", (wish){ .cast = "x=int8,times=1e9,overflow=error", .layout = "x=NHWC,from=NCHW" },
              TN_ERR_LOSS, " (indices of the new layout)");
    must_fail("q.zt", (wish){ .cast = "x=f16,times=1e9,overflow=error", .layout = "x=NHWC" }, TN_ERR_LOSS,
              " (indices of the new layout)");
    must_fail("q.zt", (wish){ .layout = "x=NHWC,from=NCWH" }, TN_ERR_ARGUMENT,
              "expected layout NCWH but found NCHW");
    CHECK(count_entries(folder) == 5);
}

static void tied_tensors_stay_tied_when_both_are_arranged_alike(void)
{
    static const simple tied[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 4, .shape = { N, C, H, W }, .data = values },
        { .name = "b", .dtype = TN_FLOAT32, .rank = 4, .shape = { N, C, H, W }, .tied = "a" },
        { .name = "c", .dtype = TN_FLOAT32, .rank = 4, .shape = { N, H, C, W }, .tied = "a" },
    };
    make_values();
    write_file("in.zt", (tn_create_options){ .replace = true }, tied, 3);
    must_convert("in.zt", "o.zt", (wish){ .layout = "NHWC,from=NCHW" });
    tn_file *f = open_file("o.zt");
    CHECK(tn_file_find(f, "b")->tied && strcmp(tn_file_find(f, "b")->tied, "a") == 0);
    CHECK(!tn_file_find(f, "c")->tied);         /* another shape: other bytes */
    tn_close(f);
}

/* The same rule and shape, but one is transposed and the other is not. */
static void tied_tensors_of_different_layouts_are_arranged_apart(void)
{
    static const uint8_t bytes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    static const uint8_t transposed[16] = { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 };
    static const int64_t shape[] = { 4, 4 };
    tn_part part = { .role = "data", .array = { .dtype = TN_UINT8, .rank = 2, .shape = shape },
                     .data = bytes };
    tn_tensor t = { .name = "a", .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 2, .shape = shape,
                    .parts = &part, .nparts = 1, .layout = "AB" };
    tn_writer *w;
    CHECK(tn_create(in_folder("in.zt").text, NULL, &w, NULL) == TN_OK && tn_writer_add(w, &t, NULL) == TN_OK);
    t.name = "b";
    t.layout = "BA";
    t.tied = "a";
    part.data = NULL;
    CHECK(tn_writer_add(w, &t, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    must_convert("in.zt", "o.zt", (wish){ .layout = "AB" });
    tn_file *f = open_file("o.zt");
    uint8_t *x = read_tensor(f, tn_file_find(f, "a")), *y = read_tensor(f, tn_file_find(f, "b"));
    assert_memory_equal(x, bytes, 16);
    assert_memory_equal(y, transposed, 16);
    free(x);
    free(y);
    tn_close(f);
}

/* No scales to find beside some that are. */
static void an_empty_tensor_is_quantized_beside_a_full_one(void)
{
    static const simple two[] = {
        { .name = "e", .dtype = TN_FLOAT32, .rank = 2, .shape = { 0, 3 }, .data = values },
        { .name = "w", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 4 }, .data = values },
    };
    make_values();
    write_file("in.safetensors", (tn_create_options){ .replace = true }, two, 2);
    must_convert("in.safetensors", "o.zt", (wish){ .cast = "int8,per=channel,axis=0" });
    must_convert("in.safetensors", "o.zt", (wish){ .cast = "int8,per=channel,axis=0,percentile=99" });
    tn_file *f = open_file("o.zt");
    CHECK(tn_file_find(f, "e")->parts[1].nbytes == 0 && tn_file_find(f, "w")->parts[1].nbytes == 12);
    tn_close(f);
}

/* One range of bytes, looked at in two ways. */
static void tensors_tied_with_different_padding_keep_their_values(void)
{
    static const uint8_t bytes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    static const int64_t a[] = { 2, 3 }, b[] = { 3, 2 }, physical[] = { 4, 4 };
    const tn_padded padded = { .shape = physical };
    tn_part part = { .role = "data", .array = { .dtype = TN_UINT8, .rank = 2, .shape = a }, .data = bytes,
                     .padded = &padded };
    tn_tensor t = { .name = "a", .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 2, .shape = a,
                    .parts = &part,
                    .nparts = 1 };
    tn_writer *w;
    CHECK(tn_create(in_folder("in.zt").text, NULL, &w, NULL) == TN_OK && tn_writer_add(w, &t, NULL) == TN_OK);
    t.name = "b";
    t.shape = part.array.shape = b;
    t.tied = "a";
    part.data = NULL;
    CHECK(tn_writer_add(w, &t, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    must_convert("in.zt", "o.safetensors", (wish){ .cast = NULL });
    tn_file *f = open_file("o.safetensors");
    uint8_t *x = read_tensor(f, tn_file_find(f, "a")), *y = read_tensor(f, tn_file_find(f, "b"));
    assert_memory_equal(x, ((uint8_t[]){ 0, 1, 2, 4, 5, 6 }), 6);
    assert_memory_equal(y, ((uint8_t[]){ 0, 1, 4, 5, 8, 9 }), 6);
    free(x);
    free(y);
    tn_close(f);
}

/* No elements, but extents whose product would overflow. */
static void empty_tensors_with_huge_extents_pass_through(void)
{
    static const int64_t shape[] = { 0, INT64_C(1) << 61, INT64_C(1) << 61 },
    physical[] = { 0, INT64_C(1) << 62, INT64_C(1) << 62 };
    const tn_padded padded = { .shape = physical };
    tn_part part = { .role = "data", .array = { .dtype = TN_FLOAT32, .rank = 3, .shape = shape },
                     .padded = &padded };
    tn_tensor t = { .name = "x", .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 3, .shape = shape,
                    .parts = &part, .nparts = 1 };
    tn_writer *w;
    CHECK(tn_create(in_folder("in.zt").text, NULL, &w, NULL) == TN_OK && tn_writer_add(w, &t, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    must_convert("in.zt", "o.zt", (wish){ .layout = "CAB,from=ABC" });
    tn_file *f = open_file("o.zt");
    CHECK(tn_file_find(f, "x")->shape[1] == 0 && tn_file_find(f, "x")->parts[0].nbytes == 0);
    tn_close(f);
}

static void a_file_may_be_replaced_by_itself(void)
{
    make_values();
    write_file("x.zt", (tn_create_options){ .replace = true }, &images, 1);
    must_convert("x.zt", "x.zt", (wish){ .layout = "NHWC,from=NCHW" });
    check_nhwc("x.zt");
    CHECK(count_entries(folder) == 1);
}

/* Each row of codes begins on a byte, too. */
static void padding_of_packed_codes_is_a_multiple_of_both(void)
{
    static const float some[15];
    static const simple tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 5 },
                                   .data = some };
    static const struct { const char *cast, *pad; int64_t rows, columns; } cases[] = {
        { "int4,per=tensor", "1=7", 3, 14 }, { "int4,per=tensor", "0=2,1=6", 4, 6 },
        { "int2,per=tensor", "-1=6", 3, 12 },
        { "int4,per=tensor", "0=5", 5, 6 },  { "int8,per=tensor", "1=7", 3, 7 },
    };
    write_file("in.zt", (tn_create_options){ 0 }, &tensor, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must_convert("in.zt", "out.zt", (wish){ .cast = cases[i].cast, .pad = cases[i].pad });
        tn_file *f = open_file("out.zt");
        const tn_padded *padded = tn_file_find(f, "t")->parts[0].padded;
        CHECK(padded && padded->shape[0] == cases[i].rows && padded->shape[1] == cases[i].columns);
        tn_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(values_keep_their_place_in_every_layout_and_container),
        IN_FOLDER(padding_is_stored_and_not_seen),
        IN_FOLDER(codes_with_scales_give_the_values_back),
        IN_FOLDER(scales_follow_their_dimension),
        IN_FOLDER(rules_that_cannot_be_honoured_are_refused),
        IN_FOLDER(tied_tensors_stay_tied_when_both_are_arranged_alike),
        IN_FOLDER(tied_tensors_of_different_layouts_are_arranged_apart),
        IN_FOLDER(an_empty_tensor_is_quantized_beside_a_full_one),
        IN_FOLDER(tensors_tied_with_different_padding_keep_their_values),
        IN_FOLDER(empty_tensors_with_huge_extents_pass_through),
        IN_FOLDER(a_file_may_be_replaced_by_itself),
        IN_FOLDER(padding_of_packed_codes_is_a_multiple_of_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
