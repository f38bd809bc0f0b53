/* Conventions that are named and not decoded, and whose codes are no numbers: those that are only known, and
 * those that the configuration contradicts. */
#include "support.h"

#include "convert.h"
#include "make.h"
#include "safetensors_bytes.h"

typedef struct named {
    const char *convention, *header;    /* of 96 bytes of data */
} named;

static void what_is_not_decoded_is_named(void)
{
#define ENTRY(name, type, shape, from, to) \
    "\"a." name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
    static const named all[] = {
        { "Marlin",
          "{" ENTRY("B", "I32", "[2,8]", "0", "64") "," ENTRY("s", "F16", "[2,8]", "64", "96") "}" },
        { "Marlin 2:4 (compressed-tensors)",
          "{" ENTRY("weight_packed", "I32", "[1,8]", "0", "32") ","
          ENTRY("scale_packed", "F16", "[2,8]", "32", "64") ","
          ENTRY("meta", "I16", "[2,8]", "64", "96") "}" },
        { "EXL3",
          "{" ENTRY("trellis", "I16", "[1,1,16]", "0", "32") "," ENTRY("suh", "F16", "[16]", "32", "64") ","
          ENTRY("svh", "F16", "[16]", "64", "96") "}" },
        { "AQLM",
          "{" ENTRY("codes", "I8", "[8,4]", "0", "32") "," ENTRY("codebooks", "F16", "[16]", "32", "64") ","
          ENTRY("scales", "F16", "[16]", "64", "96") "}" },
        { "VPTQ",
          "{" ENTRY("indices", "I32", "[4,4]", "0", "64") ","
          ENTRY("centroids", "F16", "[16]", "64", "96") "}" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n;
        uint8_t *bytes = make_file(all[i].header, 96, &n);
        tn_file *f;
        tn_view *view;
        tn_error err = { .text = "" };
        put_bytes("model.safetensors", bytes, n);
        free(bytes);
        f = open_file("model.safetensors");
        for (size_t k = 0; k < tn_file_count(f); k++) {
            const tn_tensor *t = tn_file_tensor(f, k);
            const char *found = tn_file_convention(f, t);
            if (!found || strcmp(found, all[i].convention) != 0)
                fail_msg("%s: expected %s but found %s", t->name, all[i].convention,
                         found ? found : "nothing");
            CHECK(tn_view_open(f, t, &view, NULL) == TN_OK);
            CHECK(tn_view_add_values(&view, TN_FLOAT64, &err) == TN_ERR_UNSUPPORTED);
            tn_view_close(view);
            CHECK(strstr(err.text, all[i].convention) && err.reason == TN_REASON_RAW_CODES);
        }
        tn_close(f);
    }
}

/* Casts the weight of a golden case, beside a configuration that names a method. */
static tn_status cast_with(const char *name, const char *method, tn_error *err)
{
    char config[200], command[PATH_MAX + 300];
    const tn_rule cast = { "cast", "bf16" };
    const tn_convert_options o = { .size = sizeof o, .rules = &cast, .nrules = 1 };
    snprintf(command, sizeof command, "cp " TEST_GOLDEN "/conventions/%s/model.safetensors %s/", name, folder);
    CHECK(system(command) == 0);
    snprintf(config, sizeof config, "{\"quantization_config\":{\"quant_method\":\"%s\",\"bits\":4,"
             "\"group_size\":64}}", method);
    put_file("config.json", config);
    tn_file *f = open_file("model.safetensors");
    tn_status status = tn_convert(f, in_folder("out.safetensors").text, &o, NULL, err);
    tn_close(f);
    unlink(in_folder("out.safetensors").text);
    return status;
}

static void check_contradiction(const char *name, const char *method, const char *convention)
{
    tn_error err = { .text = "" };
    tn_status status = cast_with(name, method, &err);
    if (status != TN_ERR_UNSUPPORTED || !strstr(err.text, convention) || !strstr(err.text, method))
        fail_msg("%s with %s: %d: %s", name, method, (int)status, err.text);
}

static void a_configuration_of_another_method_contradicts_the_entries(void)
{
    check_contradiction("modelopt_nvfp4", "gptq", "NVFP4 (ModelOpt)");
    check_contradiction("gptq_int4_g128_sym", "awq", "GPTQ");
    check_contradiction("fp8_block128", "bitsandbytes", "block FP8 (DeepSeek)");
    check_contradiction("awq_gemm_g64", "fp8", "AWQ");
    check_contradiction("ct_int4_g64_asym", "hqq", "pack-quantized");
    check_contradiction("bnb_nf4", "quark", "NF4 (bitsandbytes)");
    check_contradiction("mlx_4bit_g64", "fp8", "affine (MLX)");
    check_contradiction("gptoss_mxfp4", "gptq", "MXFP4 (gpt-oss)");
    check_contradiction("ct_mxfp4", "auto-round", "MXFP4 (compressed-tensors)");
}

static void auto_round_has_the_entries_of_others(void)
{
    CHECK(cast_with("ct_nvfp4", "auto-round", NULL) == TN_OK);
    CHECK(cast_with("fp8_block128", "auto-round", NULL) == TN_OK);
    CHECK(cast_with("gptq_int4_g64_asym", "auto-round", NULL) == TN_OK);
    CHECK(cast_with("awq_gemm_g64", "auto-round", NULL) == TN_OK);
}

/* Codes of one dimension with as many dimensions of scales have no rows to scale. */
static void codes_of_one_dimension_are_refused(void)
{
    static const char *const headers[] = {
        "{\"a._data\":{\"dtype\":\"I8\",\"shape\":[16],\"data_offsets\":[0,16]},"
        "\"a._scale\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,32]}}",
        "{\"a._weight_qdata\":{\"dtype\":\"I8\",\"shape\":[16],\"data_offsets\":[0,16]},"
        "\"a._weight_scale\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,32]}}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t n;
        uint8_t *bytes = make_file(headers[i], 32, &n);
        const tn_rule cast = { "cast", "f32" };
        const tn_convert_options o = { .size = sizeof o, .rules = &cast, .nrules = 1 };
        tn_error err = { .text = "" };
        put_bytes("model.safetensors", bytes, n);
        free(bytes);
        tn_file *f = open_file("model.safetensors");
        CHECK(tn_convert(f, in_folder("out.zt").text, &o, NULL, &err) == TN_ERR_UNSUPPORTED);
        CHECK(strstr(err.text, "its scales are of another shape than its codes") != NULL);
        tn_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_is_not_decoded_is_named),
        IN_FOLDER(a_configuration_of_another_method_contradicts_the_entries),
        IN_FOLDER(auto_round_has_the_entries_of_others),
        IN_FOLDER(codes_of_one_dimension_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
