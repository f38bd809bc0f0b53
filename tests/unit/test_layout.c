/* test_layout.c - letters of dimensions. */
#include "support.h"

#include <stdio.h>

#include <tenon/layout.h>

#include "tensor/layout.h"

static void check_text(const tn_error *err, const char *text)
{
    if (!strstr(line_of(err), text))
        fail_msg("expected \"%s\" but found: %s", text, line_of(err));
}

static void the_named_layouts_are_layouts(void)
{
    static const char *const wanted[] = { "NCHW", "NHWC", "CHWN", "HWC", "CHW", "NCDHW", "NDHWC", "HWCN",
                                          "1HWN", "HW1N", "RC", "CR" };
    size_t n = 0;
    for (const tn_layout_info *l; (l = tn_layout_at(n)); n++) {
        CHECK(tn_layout_check(l->name, (uint32_t)strlen(l->name), NULL) == TN_OK);
        CHECK(l->title && *l->title);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t found = 0;
        for (size_t k = 0; k < n; k++)
            found += strcmp(tn_layout_at(k)->name, wanted[i]) == 0;
        CHECK(found == 1);
    }
    CHECK(tn_layout_at(n) == NULL && tn_layout_at(SIZE_MAX) == NULL);
}

static void letters_are_distinct_and_as_many_as_dimensions(void)
{
    tn_error err = { 0 };
    CHECK(tn_layout_check("", 0, &err) == TN_OK);
    CHECK(tn_layout_check("nN", 2, &err) == TN_OK);
    CHECK(tn_layout_check("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 52, &err) == TN_OK);
    CHECK(tn_layout_check("NCHW", 3, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "layout \"NCHW\": expected 3 letters but found 4");
    CHECK(tn_layout_check("NCNW", 4, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "found N twice");
    CHECK(tn_layout_check("NC W", 4, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "expected letters but found \" \"");
    CHECK(tn_layout_check("N\xc3\x84", 3, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_layout_check(NULL, 0, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "expected a layout but found none");
    CHECK(tn_layout_check("NC2", 3, NULL) == TN_ERR_ARGUMENT);
}

static void a_1_is_a_letter_whose_extent_is_1(void)
{
    const int64_t shape[] = { 3, 5, 1, 8 };
    uint32_t order[TN_MAX_RANK] = { 0 };
    int64_t stride[4] = { 0 };
    tn_error err = { 0 };
    CHECK(tn_layout_check("HW1N", 4, &err) == TN_OK && tn_layout_check("1", 1, &err) == TN_OK);
    CHECK(tn_layout_check("11HW", 4, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "layout \"11HW\": expected distinct letters but found 1 twice");
    CHECK(tn_layout_check_shape("HW1N", 4, shape, &err) == TN_OK);
    CHECK(tn_layout_check_shape("HWCN", 4, shape, &err) == TN_OK);
    CHECK(tn_layout_check_shape("HW1", 4, shape, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_layout_check_shape("", 0, NULL, &err) == TN_OK);
    CHECK(tn_layout_check_shape("1HWN", 4, shape, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "layout \"1HWN\": expected an extent of 1 where it says so but found 3");
    CHECK(tn_layout_order("N1HW", "HW1N", order, &err) == TN_OK);
    CHECK(order[0] == 2 && order[1] == 3 && order[2] == 1 && order[3] == 0);
    CHECK(tn_layout_order("NCHW", "HW1N", order, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "layout \"HW1N\" has the letter 1, which layout \"NCHW\" has not");
    CHECK(tn_layout_strides("HW1N", shape, "N1HW", stride, &err) == TN_OK);
    CHECK(stride[0] == 5 && stride[1] == 1 && stride[2] == 15 && stride[3] == 15);
}

static void an_order_says_where_each_letter_was(void)
{
    uint32_t order[TN_MAX_RANK] = { 9, 9, 9, 9, 9 };
    tn_error err = { 0 };
    CHECK(tn_layout_order("NCHW", "NHWC", order, &err) == TN_OK);
    CHECK(order[0] == 0 && order[1] == 2 && order[2] == 3 && order[3] == 1 && order[4] == 9);
    CHECK(tn_layout_order("NHWC", "NCHW", order, &err) == TN_OK);
    CHECK(order[0] == 0 && order[1] == 3 && order[2] == 1 && order[3] == 2);
    CHECK(tn_layout_order("", "", order, &err) == TN_OK);
    CHECK(tn_layout_order("NCHW", "NCH", order, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "layout \"NCH\" has 3 letters but layout \"NCHW\" has 4");
    CHECK(tn_layout_order("NCHW", "NCHV", order, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "layout \"NCHV\" has the letter V, which layout \"NCHW\" has not");
    CHECK(tn_layout_order("NN", "NC", order, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_layout_order("NC", "NN", order, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_layout_order(NULL, "NC", order, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_layout_order("NC", NULL, order, NULL) == TN_ERR_ARGUMENT);
    CHECK(order[0] == 0 && order[1] == 3 && order[2] == 1 && order[3] == 2);    /* written on success only */
}

static void strides_follow_the_order_in_memory(void)
{
    static const int64_t shape[] = { 2, 3, 4, 5 };
    int64_t stride[5] = { 0 };
    CHECK(tn_layout_strides("NCHW", shape, "NHWC", stride, NULL) == TN_OK);
    CHECK(stride[0] == 60 && stride[1] == 1 && stride[2] == 15 && stride[3] == 3 && stride[4] == 0);
    CHECK(tn_layout_strides("NCHW", shape, "NCHW", stride, NULL) == TN_OK);
    CHECK(stride[0] == 60 && stride[1] == 20 && stride[2] == 5 && stride[3] == 1);
    CHECK(tn_layout_strides("RC", shape, "CR", stride, NULL) == TN_OK);
    CHECK(stride[0] == 1 && stride[1] == 2);
    CHECK(tn_layout_strides("", NULL, "", stride, NULL) == TN_OK);
}

static void bad_shapes_have_no_strides(void)
{
    int64_t stride[3] = { 7, 7, 7 };
    tn_error err = { 0 };
    CHECK(tn_layout_strides("RC", (int64_t[]){ 2, -1 }, "CR", stride, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "dimension C has an extent of -1");
    CHECK(tn_layout_strides("RC", (int64_t[]){ 2, 3 }, "RX", stride, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_layout_strides("CHW", (int64_t[]){ 2, INT64_C(1) << 40, INT64_C(1) << 40 }, "CHW", stride,
                            &err) == TN_ERR_LIMIT);
    check_text(&err, "the stride of dimension C does not fit 63 bits");
    CHECK(stride[0] == 7 && stride[1] == 7 && stride[2] == 7);
    /* The product of all extents is no stride. */
    CHECK(tn_layout_strides("CHW", (int64_t[]){ INT64_MAX, 3, 5 }, "CHW", stride, &err) == TN_OK);
    CHECK(stride[0] == 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_named_layouts_are_layouts),       TEST(letters_are_distinct_and_as_many_as_dimensions),
        TEST(a_1_is_a_letter_whose_extent_is_1),
        TEST(an_order_says_where_each_letter_was), TEST(strides_follow_the_order_in_memory),
        TEST(bad_shapes_have_no_strides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
