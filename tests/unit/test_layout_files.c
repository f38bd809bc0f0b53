/* test_layout_files.c - the layouts of MLI's weights from file to file: a dimension called 1 has the extent 1
 * everywhere. */
#include "support.h"

#include <stdio.h>

#include "convert.h"
#include "files.h"

enum { N = 6, H = 3, W = 5, COUNT = N * H * W };

static int16_t values[COUNT];
static const simple weights = { .name = "w", .dtype = TN_INT16, .rank = 4, .shape = { N, 1, H, W },
                                .data = values };

static void write_weights(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = (int16_t)(i * 7919);
    write_file(name, (tn_create_options){ .replace = true }, &weights, 1);
}

/* The file holds them as H, W and N in this order, with a 1 at some place. */
static void check_hwn(const char *name, const char *layout, const char *shape)
{
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_find(f, "w");
    assert_non_null(t);
    assert_string_equal(t->layout, layout);
    check_shape(t, shape);
    uint8_t *bytes = read_tensor(f, t);
    for (int h = 0, i = 0; h < H; h++)
        for (int w = 0; w < W; w++)
            for (int n = 0; n < N; n++, i++)
                CHECK(memcmp(bytes + 2 * i, &values[(n * H + h) * W + w], 2) == 0);
    free(bytes);
    tn_close(f);
}

static void depthwise_weights_become_mlis_in_every_container(void)
{
    static const char *const names[] = { "o.zt", "o.safetensors", "o.json" };
    write_weights("in.safetensors");
    for (size_t i = 0; i < 3; i++) {
        must_convert("in.safetensors", names[i], (wish){ .layout = "HW1N,from=N1HW" });
        check_hwn(names[i], "HW1N", "3,5,1,6");
        must_convert(names[i], "kept.zt", (wish){ .create = { .encoding = TN_ENCODING_ZSTD } });
        must_convert("kept.zt", "other.safetensors", (wish){ .layout = "1HWN" });
        check_hwn("other.safetensors", "1HWN", "1,3,5,6");
        must_convert("other.safetensors", "back.safetensors", (wish){ .layout = "N1HW,from=1HWN" });
        must_convert("back.safetensors", "again.json", (wish){ .layout = "HW1N" });
        check_hwn("again.json", "HW1N", "3,5,1,6");
    }
}

static void scales_go_along_and_axis_1_is_a_number(void)
{
    write_weights("in.zt");
    must_convert("in.zt", "hw1n.zt", (wish){ .layout = "HW1N,from=N1HW" });
    must_convert("hw1n.zt", "f32.zt", (wish){ .cast = "f32" });
    must_convert("f32.zt", "codes.zt", (wish){ .cast = "int8,per=channel,axis=1", .layout = "1HWN" });      /* W, not what is called 1 */
    tn_file *f = open_file("codes.zt");
    const tn_tensor *t = tn_file_find(f, "w");
    assert_string_equal(t->layout, "1HWN");
    CHECK(t->scaling && t->scaling->axis == 2 && t->parts[1].array.shape[0] == W);
    tn_close(f);
    must_convert("f32.zt", "codes.json", (wish){ .cast = "int8,per=channel,axis=N", .layout = "N1HW",
                                                 .pad = "1=4,W=8" });
    f = open_file("codes.json");
    t = tn_file_find(f, "w");
    CHECK(t->scaling->axis == 0 && t->parts[0].padded->shape[1] == 4 &&
          t->parts[0].padded->shape[3] == 8);
    check_shape(t, "6,1,3,5");
    tn_close(f);
}

static void another_extent_than_1_is_refused(void)
{
    write_weights("in.zt");
    must_fail("in.zt", (wish){ .layout = "HW1N,from=1NHW" }, TN_ERR_ARGUMENT,
              "layout \"1NHW\": expected an extent of 1 where it says so but found 6");
    must_fail("in.zt", (wish){ .layout = "HW1N,from=NCHW" }, TN_ERR_ARGUMENT,
              "layout \"HW1N\" has the letter 1, which layout \"NCHW\" has not");
    must_fail("in.zt", (wish){ .layout = "H11N,from=N11H" }, TN_ERR_ARGUMENT, "no layout");
    must_fail("in.zt", (wish){ .layout = "HW0N,from=N0HW" }, TN_ERR_ARGUMENT, "no layout");
}

/* A writer is told a layout by its caller. */
static void a_writer_checks_what_is_called_1(void)
{
    tn_part part = { .role = "data", .array = { .dtype = TN_INT16, .rank = 4, .shape = weights.shape },
                     .data = values };
    tn_tensor t = { .name = "w", .form = TN_FORM_DENSE, .dtype = TN_INT16, .rank = 4, .shape = weights.shape,
                    .parts = &part, .nparts = 1 };
    const tn_create_options o = { .size = sizeof o };
    tn_error err = { .text = "" };
    tn_writer *w;
    t.layout = "1NHW";
    CHECK(tn_create(in_folder("o.zt").text, &o, &w, &err) == TN_OK);
    CHECK(tn_writer_add(w, &t, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "but found 6"));
    tn_writer_abandon(w);
    t.layout = "N1HW";
    CHECK(tn_create(in_folder("o.zt").text, &o, &w, &err) == TN_OK);
    CHECK(tn_writer_add(w, &t, &err) == TN_OK && tn_writer_finish(w, &err) == TN_OK);
}

/* Files whose layout was changed behind our back: one letter for another, of the same length. */
static void change_layout(const char *name, const char *from, const char *to)
{
    size_t n;
    uint8_t *bytes = load_file(in_folder(name).text, &n), *at = memmem(bytes, n, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    FILE *f = fopen(in_folder(name).text, "wb");
    assert_non_null(f);
    CHECK(fwrite(bytes, 1, n, f) == n);
    fclose(f);
    free(bytes);
}

static void a_file_that_calls_another_extent_1_is_refused(void)
{
    static const char *const names[] = { "o.zt", "o.safetensors", "o.json", "o.mtx" };
    const int16_t pair[] = { 1, 2, 3 };
    const simple matrix = { .name = "w", .dtype = TN_INT16, .rank = 2, .shape = { 1, 3 }, .data = pair };
    write_file("in.zt", (tn_create_options){ .replace = true }, &matrix, 1);
    for (size_t i = 0; i < 4; i++) {
        tn_error err = { .text = "" };
        tn_file *f;
        must_convert("in.zt", names[i], (wish){ .layout = "1W,from=1W" });
        f = open_file(names[i]);
        assert_string_equal(tn_file_find(f, "w")->layout, "1W");
        tn_close(f);
        change_layout(names[i], "1W", "W1");
        CHECK(tn_open(in_folder(names[i]).text, NULL, &f, &err) != TN_OK);
        if (!strstr(line_of(&err), "expected an extent of 1") &&
            !strstr(line_of(&err), "expected 1, as layout \"W1\" has it, but found 3"))
            fail_msg("%s: %s", names[i], line_of(&err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(depthwise_weights_become_mlis_in_every_container),
        IN_FOLDER(scales_go_along_and_axis_1_is_a_number), IN_FOLDER(another_extent_than_1_is_refused),
        IN_FOLDER(a_writer_checks_what_is_called_1), IN_FOLDER(a_file_that_calls_another_extent_1_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
