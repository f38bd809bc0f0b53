/* Tensors of a type this build has no row for: listed, refused by its spelling
 * in the file by whatever would look at elements, and never a NULL row. */
#include "support.h"

#include "affine.h"

#include "convert.h"
#include "safetensors_bytes.h"
#include "values.h"

#include <tenon/dlpack.h>
#include <tenon/export.h>
#include <tenon/layout.h>
#include <tenon/quantize.h>
#include <tenon/sparse.h>

#define SPELLING "F9_E5"

/* One tensor of it and one of another type. */
static void store_unknown(const char *name)
{
    size_t n;
    uint8_t *bytes = make_file("{\"a\":{\"dtype\":\"" SPELLING "\",\"shape\":[4,8],\"data_offsets\":[0,32]},"
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]}}", 40, &n);
    put_bytes(name, bytes, n);
    free(bytes);
}

static void check_refused(wish w, const char *out)
{
    tn_error err = { .text = "" };
    tn_status status = try_convert("in.safetensors", out, w, &err);
    if (status != TN_ERR_UNSUPPORTED ||
        !strstr(line_of(&err), "tensor \"a\": type \"" SPELLING "\" is not known to this build"))
        fail_msg("%s, cast %s, form %s, layout %s, pad %s: %d <%s>", out, w.cast ? w.cast : "-",
                 w.form ? w.form : "-", w.layout ? w.layout : "-", w.pad ? w.pad : "-", status, line_of(&err));
    CHECK(count_entries(folder) == 1);
}

static void no_cast_looks_at_an_unknown_type(void)
{
    static const char *const casts[] = {
        "f32", "bf16", "int8", "uint4", "bool", "complex64", "int8,per=tensor", "int8,per=channel,axis=0",
        "uint4,per=channel,axis=1,zero=asymmetric", "int8,per=tensor,percentile=99",
        "int8,per=tensor,scale=1", "fx8", "fx16", "fx8,frac=auto", "fx16,frac=least", "fx16,frac=3", "sa8",
        "sa32,scale=1", "sa8,per=channel,axis=0", "fx8,compat=mli", "mxfp4", "nvfp4", "int8_f", "uint4_ff32",
        "e2m1fnuz|e8m0_t32", "icb44fi4_e32", "mxfp4,store=unpacked", "a=f32",
    };
    static const char *const outs[] = { "out.zt", "out.safetensors", "out.json", "out.npz" };
    store_unknown("in.safetensors");
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        for (size_t k = 0; k < sizeof outs / sizeof *outs; k++)
            for (int more = 0; more < 4; more++)
                check_refused((wish){ .cast = casts[i], .is_virtual = more == 1 && !strchr(casts[i], ','),
                                      .dry_run = more == 2,
                                      .form = more == 3 ? "csr" : NULL }, outs[k]);
}

static void no_layout_form_or_copy_takes_an_unknown_type(void)
{
    store_unknown("in.safetensors");
    check_refused((wish){ .layout = "a=BA,from=AB" }, "out.zt");
    check_refused((wish){ .layout = "a=BA,from=AB", .pad = "a=A=16" }, "out.json");
    check_refused((wish){ .pad = "a=A=16" }, "out.zt");
    check_refused((wish){ .form = "csr" }, "out.zt");
    check_refused((wish){ .form = "coo,threshold=1" }, "out.zt");
    check_refused((wish){ .form = "dense" }, "out.zt");
    check_refused((wish){ .create.encoding = TN_ENCODING_ZSTD }, "out.zt");
    check_refused((wish){ .cast = NULL }, "out.safetensors");
}

static void whoever_reads_values_says_the_type(void)
{
    tn_view *values;
    tn_descriptors *set;
    tn_error err;
    store_unknown("in.safetensors");
    tn_file *f = open_file("in.safetensors");
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(t->dtype == TN_UNKNOWN);
    CHECK(open_values(f, t, &values, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), SPELLING));
    CHECK(tn_describe(f, t, &set, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), SPELLING));
    const tn_export_options o = { .size = sizeof o, .name = "net" };
    CHECK(tn_export_c(f, in_folder("c").text, &o, NULL, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), SPELLING));
    tn_close(f);
}

/* ---- memory of a caller ---- */

static const int64_t shape[2] = { 4, 8 };

static void arrays_of_no_type_are_refused(void)
{
    static const tn_dtype wrong[] = { TN_UNKNOWN, TN_DTYPE_COUNT, (tn_dtype)1000 };
    float in[32] = { 0 }, out[64], scale[8] = { 1 };
    int32_t zero[8];
    tn_array good = { TN_FLOAT32, 2, shape, NULL }, codes = { TN_INT8, 2, shape, NULL };
    const affine_options q = { .axis = TN_PER_TENSOR, .symmetric = true };
    const tn_scales scales = { TN_PER_TENSOR, scale, NULL };
    tn_datatype *mx;
    CHECK(!tn_datatype_parse("mxfp4", &mx, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_array a = { wrong[i], 2, shape, NULL };
        void *parts[7] = { out, out, out };
        tn_tensor *made;
        const tn_part part = { .role = "data", .array = a, .data = in };
        const tn_tensor t = { .name = "a", .form = TN_FORM_DENSE, .dtype = wrong[i], .rank = 2,
                              .shape = shape,
                              .parts = &part, .nparts = 1 };
        tn_error err;
        CHECK(tn_cast(&good, out, &a, in, TN_LITTLE_ENDIAN, NULL, &err) == TN_ERR_ARGUMENT &&
              !strstr(line_of(&err), "type 0"));
        CHECK(tn_cast(&a, out, &good, in, TN_LITTLE_ENDIAN, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_cast_check(wrong[i], TN_FLOAT32, NULL, &err) == TN_ERR_ARGUMENT &&
              !strstr(line_of(&err), "type 0"));
        CHECK(tn_reorder(&a, out, &a, in, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(affine_choose_scales(TN_INT8, &a, in, &q, scale, zero, &err) == TN_ERR_ARGUMENT);
        CHECK(affine_choose_scales(wrong[i], &good, in, &q, scale, zero, &err) == TN_ERR_ARGUMENT);
        scale[0] = 1;
        CHECK(affine_quantize(&codes, out, &a, in, scale, NULL, &q, &err) == TN_ERR_ARGUMENT);
        CHECK(affine_quantize(&a, out, &good, in, scale, NULL, &q, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_requantize(&a, out, &scales, &codes, in, &scales, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_requantize(&codes, out, &scales, &a, in, &scales, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(affine_dequantize(&a, out, &codes, in, scale, NULL, &q, &err) == TN_ERR_ARGUMENT);
        CHECK(affine_dequantize(&good, out, &a, in, scale, NULL, &q, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_fake_quantize(mx, &a, in, out, NULL, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_quantize(mx, &a, in, parts, NULL, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_dequantize(mx, &a, (const void *const *)parts, out, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(tn_convert_form(&t, TN_FORM_CSR, NULL, &made, &err) != TN_OK);
        CHECK(try_write_tensor("out.zt", (tn_create_options){ 0 }, &t, &err) != TN_OK);
        CHECK(try_write_tensor("out.json", (tn_create_options){ 0 }, &t, &err) != TN_OK);
    }
    tn_datatype_free(mx);
}

static void buffers_of_no_type_are_refused(void)
{
    struct DLManagedTensorVersioned *managed;
    tn_buffer *buffer;
    tn_array a = { TN_UNKNOWN, 2, shape, NULL };
    const tn_move_options move = { .size = sizeof move };
    float in[32] = { 0 }, out[32];
    CHECK(!tn_buffer_new(4096, NULL, &buffer, NULL));
    CHECK(tn_dlpack_export(&a, buffer, 0, &managed, NULL) != TN_OK);
    CHECK(tn_move(&a, out, &a, in, &move, NULL) == TN_ERR_ARGUMENT);
    tn_buffer_unref(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(no_cast_looks_at_an_unknown_type),
        IN_FOLDER(no_layout_form_or_copy_takes_an_unknown_type),
        IN_FOLDER(whoever_reads_values_says_the_type),
        IN_FOLDER(arrays_of_no_type_are_refused),
        TEST(buffers_of_no_type_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
