/* Block types and the datatypes with the same codes: bits are moved, and values stay what they are. */
#include "support.h"

#include "convert.h"
#include "files.h"

#include "quant/repack.h"

#include <tenon/view.h>

static const char *const pairs[][2] = {
    { "ggml:mxfp4", "mxfp4" },         { "ggml:nvfp4", "nvfp4" },
    { "q4_0", "int4|float16_t32" },    { "q4_1", "uint4|float16_float16_t32" },
    { "q5_0", "int5|float16_t32" },    { "q5_1", "uint5|float16_float16_t32" },
    { "q8_0", "int8|float16_t32" },
};
enum { PAIRS = sizeof pairs / sizeof *pairs, VALUES = 64, BLOCKS = 5000, BYTES = 36 };

/* A tensor of blocks of any bytes but for those that have no partner, in a file. */
static void make_blocks(const tn_block_info *info, const char *text)
{
    static uint8_t blocks[BLOCKS * BYTES];
    const int64_t shape[] = { BLOCKS / 10, 10 * info->values }, bytes[] = { BLOCKS / 10, 10 * info->bytes };
    const tn_part part = { .role = "data", .array = { TN_UINT8, 2, bytes, NULL }, .data = blocks };
    const tn_scaling scaling = { .axis = -1, .datatype = text };
    const tn_tensor t = { .name = "w", .form = TN_FORM_BLOCKS, .dtype = TN_FLOAT32, .rank = 2, .shape = shape,
                          .scaling = &scaling, .parts = &part, .nparts = 1 };
    uint32_t seed = 1;
    tn_error err = { .text = "" };
    for (size_t i = 0; i < (size_t)BLOCKS * info->bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        blocks[i] = (uint8_t)(seed >> 24);
        size_t at = i % info->bytes;
        bool is_exponent = info->block == TN_BLOCK_MXFP4 && at == 0,
             is_small = info->block == TN_BLOCK_NVFP4 && at < 4;
        if (is_exponent && blocks[i] == 0xff)
            blocks[i] = 0;
        if (is_small)
            blocks[i] %= 0x7f;
    }
    if (try_write_tensor("blocks.zt", (tn_create_options){ 0 }, &t, &err))
        fail_msg("%s", line_of(&err));
}

static float *values_of(const char *name, size_t *n)
{
    tn_file *file = open_file(name);
    const tn_tensor *t = tn_file_tensor(file, 0);
    *n = (size_t)(t->shape[0] * t->shape[1]);
    float *values = malloc(*n * sizeof *values);
    CHECK(values && tn_read(file, t, TN_FLOAT32, values, *n * sizeof *values, NULL) == TN_OK);
    tn_close(file);
    return values;
}

/* Code 8 of mxfp4 and nvfp4 is 0 in ggml and -0 elsewhere. */
static void check_same_values(const char *a, const char *b, bool any_zero)
{
    size_t n, m;
    float *x = values_of(a, &n), *y = values_of(b, &m);
    CHECK(n == m);
    for (size_t i = 0; i < n; i++) {
        bool both_nan = x[i] != x[i] && y[i] != y[i], both_zero = any_zero && x[i] == 0 && y[i] == 0;
        CHECK(both_nan || both_zero || memcmp(&x[i], &y[i], sizeof *x) == 0);
    }
    free(x);
    free(y);
}

static void bits_come_back(void)
{
    char text[40];
    for (size_t i = 0; i < PAIRS; i++) {
        const tn_block_info *info = tn_block_named(strchr(pairs[i][0], ':') ? pairs[i][0] + 5 : pairs[i][0]);
        snprintf(text, sizeof text, "ggml:%s", info->name);
        make_blocks(info, text);
        must_convert("blocks.zt", "parts.zt", (wish){ .cast = pairs[i][1] });
        must_convert("parts.zt", "back.zt", (wish){ .cast = text });
        check_same_files(in_folder("blocks.zt").text, in_folder("back.zt").text);
        check_same_values("blocks.zt", "parts.zt", strstr(info->name, "fp4") != NULL);
    }
}

/* A scale of 2^128 in ggml, which is NaN elsewhere, and those of nvfp4 that e4m3fn reads otherwise. */
static void scales_that_mean_something_else_are_refused(void)
{
    uint8_t block[BYTES] = { 0xff }, data[VALUES], scale[8] = { 0xff };
    const tn_repacking *mx = tn_repacking_find(tn_block_get(TN_BLOCK_MXFP4), "e2m1fnuz|e8m0_t32");
    const tn_repacking *nv = tn_repacking_find(tn_block_get(TN_BLOCK_NVFP4), "e2m1fnuz|multi_float32_e4m3fn_t16");
    assert_non_null(mx);
    assert_non_null(nv);
    CHECK(tn_repacking_find(tn_block_get(TN_BLOCK_Q4_K), "int4|float16_t32") == NULL);
    CHECK(tn_repack_split(mx, block, 1, (tn_repacked_parts){ data, scale, NULL }) == 0);
    CHECK(tn_repack_join(mx, (tn_repacked_parts){ data, scale, NULL }, 1, block) == 0);
    memset(block, 0, sizeof block);
    for (unsigned code = 0; code < 256; code++) {
        block[2] = (uint8_t)code;
        CHECK(tn_repack_split(nv, block, 1, (tn_repacked_parts){ data, scale, NULL }) == (code < 0x7f));
    }
}

static void a_refusal_names_the_block(void)
{
    tn_error err = { .text = "" };
    make_blocks(tn_block_named("mxfp4"), "ggml:mxfp4");
    size_t n;
    uint8_t *bytes = load_file(in_folder("blocks.zt").text, &n);
    bytes[64 + 17 * 4321] = 0xff;               /* data begins at 64 */
    FILE *f = fopen(in_folder("bad.zt").text, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
    check_status(try_convert("bad.zt", "parts.zt", (wish){ .cast = "mxfp4" }, &err), &err, TN_ERR_LOSS,
                 "begins with element [432, 32]");
}

/* The scale of the tensor has no place in a block: it becomes a part of the others, if that is exact. */
static void a_tensor_scale_is_not_lost(void)
{
    static float x[4 * 64];
    tn_error err = { .text = "" };
    const simple plain = { .name = "w", .dtype = TN_FLOAT32, .rank = 2, .shape = { 4, 64 }, .data = x };
    for (int i = 0; i < 256; i++)
        x[i] = (float)(i % 13 - 6) * 1000;
    write_file("plain.zt", (tn_create_options){ 0 }, &plain, 1);
    must_convert("plain.zt", "nvfp4.zt", (wish){ .cast = "nvfp4" });
    check_status(try_convert("nvfp4.zt", "blocks.zt", (wish){ .cast = "ggml:nvfp4" }, &err), &err, TN_ERR_LOSS,
                 "element [0, 0] cannot become nvfp4 without rounding again");
    for (int i = 0; i < 256; i++)               /* 448 * 6 is the largest value of a block */
        x[i] = (float)(i % 13 - 6) * 448 * 4;
    write_file("even.zt", (tn_create_options){ 0 }, &plain, 1);
    must_convert("even.zt", "four.zt", (wish){ .cast = "nvfp4" });
    check_status(try_convert("four.zt", "blocks.zt", (wish){ .cast = "ggml:nvfp4" }, &err), &err, TN_ERR_LOSS,
                 "is not a float8_e4m3fn");     /* 1792 */
    for (int i = 0; i < 256; i++)
        x[i] = (float)(i % 13 - 6) * 112;       /* a scale of a quarter */
    write_file("small.zt", (tn_create_options){ 0 }, &plain, 1);
    must_convert("small.zt", "quarter.zt", (wish){ .cast = "nvfp4" });
    must_convert("quarter.zt", "blocks.zt", (wish){ .cast = "ggml:nvfp4" });
    size_t n, m;
    float *a = values_of("quarter.zt", &n), *b = values_of("blocks.zt", &m);
    CHECK(n == 256 && m == n);
    for (size_t i = 0; i < n; i++)
        CHECK(a[i] == b[i]);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(bits_come_back),
        TEST(scales_that_mean_something_else_are_refused),
        IN_FOLDER(a_refusal_names_the_block),
        IN_FOLDER(a_tensor_scale_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
