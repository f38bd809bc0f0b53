/* Other tools' packed codes: recognised, copied, and never taken for numbers. */
#include "support.h"

#include "convert.h"
#include "files.h"
#include "safetensors_bytes.h"

#include "formats/conventions/conventions.h"

#define CASES TEST_GOLDEN "/conventions"

static tn_file *open_case(const char *name)
{
    char path[500];
    snprintf(path, sizeof path, CASES "/%s/model.safetensors.index.json", name);
    const char *file = access(path, R_OK) == 0 ? "model.safetensors.index.json" : "model.safetensors";
    snprintf(path, sizeof path, CASES "/%s", name);
    return open_at(path, file, NULL, TN_IO_AUTO);
}

static size_t count_of(const tn_file *f, const char *convention)
{
    size_t n = 0;
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const char *found = tn_file_convention(f, tn_file_tensor(f, i));
        n += convention ? found && strcmp(found, convention) == 0 : !found;
    }
    return n;
}

static void check_case(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 3);
    tn_file *f = open_case(field[0]);
    size_t found = strcmp(field[1], "-") == 0 ? tn_file_count(f) - count_of(f, NULL) : count_of(f, field[1]);
    if (found != (size_t)atoi(field[2]))
        fail_msg("%s: expected %s tensors of %s but found %zu", field[0], field[2], field[1], found);
    tn_close(f);
}

/* Every way to read it as another type. */
static void check_reading(char *field[TABLE_FIELDS], size_t n)
{
    (void)n;
    tn_file *f = open_case(field[0]);
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        uint64_t count = 0;
        tn_view *view;
        tn_error err = { .text = "" };
        if (t->dtype == TN_UNKNOWN || t->dtype == TN_FLOAT64)
            continue;
        CHECK(tn_shape_count(t->rank, t->shape, &count) == TN_OK);
        double *values = malloc((size_t)count * sizeof *values + 1);
        bool packed = tn_file_convention(f, t) != NULL;
        tn_status status = tn_read(f, t, TN_FLOAT64, values, (size_t)count * sizeof *values, &err);
        if (packed)
            check_status(status, &err, TN_ERR_UNSUPPORTED, "codes of ");
        else
            CHECK(status == TN_OK);
        CHECK(tn_view_open(f, t, &view, NULL) == TN_OK);
        CHECK((tn_view_add_values(&view, TN_FLOAT64, NULL) == TN_ERR_UNSUPPORTED) == packed);
        tn_view_close(view);
        CHECK(tn_view_open(f, t, &view, NULL) == TN_OK);
        CHECK((tn_view_add(&view, "cast", "f64", &err) == TN_ERR_UNSUPPORTED) == packed);
        CHECK(!packed || err.reason == TN_REASON_RAW_CODES);
        CHECK(tn_view_add_values(&view, TN_UNKNOWN, NULL) == TN_OK);    /* codes as they are */
        tn_view_close(view);
        free(values);
    }
    tn_close(f);
}

static void codes_are_not_read_as_another_type(void)
{
    CHECK(each_row(CASES "/conventions.tsv", check_reading) == 75);
}

static void codes_are_numbers_where_that_is_asked_for(void)
{
    const tn_open_options raw = { .size = sizeof raw, .raw_codes = true };
    tn_file *f;
    tn_view *view;
    CHECK(tn_open(CASES "/gptoss_mxfp4/model.safetensors", &raw, &f, NULL) == TN_OK && !count_of(f, "MXFP4"));
    CHECK(count_of(f, NULL) == tn_file_count(f));
    CHECK(tn_view_open(f, tn_file_tensor(f, 0), &view, NULL) == TN_OK &&
          tn_view_add_values(&view, TN_FLOAT64, NULL) == TN_OK);
    tn_view_close(view);
    tn_close(f);
}

static void codes_are_not_exported(void)
{
    static const char *const only[] = { "*_blocks" };
    const tn_export_options options = { .size = sizeof options, .only = only, .nonly = 1 };
    tn_file *f = open_case("gptoss_mxfp4");
    tn_error err = { .text = "" };
    CHECK(tn_export_c(f, in_folder("").text, &options, NULL, &err) == TN_ERR_UNSUPPORTED);
    CHECK(err.reason == TN_REASON_RAW_CODES && count_entries(folder) == 0);
    tn_close(f);
}

static void every_case_has_its_convention(void)
{
    CHECK(each_row(CASES "/conventions.tsv", check_case) == 75);
}

static void check_cast(char *field[TABLE_FIELDS], size_t n)
{
    (void)n;
    tn_error err = { .text = "" };
    tn_file *f = open_case(field[0]);
    tn_status status = convert_open(f, "out.safetensors", (wish){ .cast = "f32" }, &err);
    if (strcmp(field[1], "-") == 0)
        CHECK(status == TN_OK && unlink(in_folder("out.safetensors").text) == 0);
    else
        check_status(status, &err, TN_ERR_UNSUPPORTED, "codes of ");
    const tn_tensor *t = tn_file_find(f, err.tensor);
    if (status && (!t || !strstr(err.text, tn_file_convention(f, t))))
        fail_msg("%s: %s", field[0], line_of(&err));
    CHECK(err.reason == (status ? TN_REASON_RAW_CODES : TN_REASON_NONE));
    CHECK(count_entries(folder) == 0);
    tn_close(f);
}

static void no_code_is_cast_and_every_decoy_is(void)
{
    each_row(CASES "/conventions.tsv", check_cast);
}

static void check_copy(char *field[TABLE_FIELDS], size_t n)
{
    (void)n;
    static const char *const outs[] = { "copy.safetensors", "copy.zt" };
    tn_file *f = open_case(field[0]);
    for (size_t i = 0; i < 2; i++) {
        size_t different = 1;
        tn_error err = { .text = "" };
        if (convert_open(f, outs[i], (wish){ 0 }, &err))
            fail_msg("%s: %s", field[0], line_of(&err));
        tn_file *copy = open_file(outs[i]);
        CHECK(tn_compare(f, copy, NULL, NULL, &different, NULL) == TN_OK && different == 0);
        tn_close(copy);
    }
    tn_close(f);
}

static void codes_are_copied_unchanged(void)
{
    each_row(CASES "/conventions.tsv", check_copy);
}

static tn_status convert_with(const tn_file *f, tn_convert_options o, tn_error *err)
{
    const tn_create_options create = { .size = sizeof create, .replace = true };
    *err = (tn_error){ .text = "" };
    o.size = sizeof o;
    o.create = &create;
    return tn_convert(f, in_folder("out.zt").text, &o, NULL, err);
}

#define MODULE "model.layers.1.mlp.down_proj."

static void no_rule_changes_codes(void)
{
    static const tn_rule rules[] = {
        { "slice", MODULE "weight=0:4" }, { "transpose", MODULE "weight=1,0" },
        { "reshape", MODULE "weight=-1" }, { "concat", "all=" MODULE "weight+" MODULE "weight_scale" },
        { "split", MODULE "weight=a+b" }, { "layout", MODULE "weight=BA,from=AB" },
        { "form", MODULE "weight=coo" }, { "cast", MODULE "weight_scale=f32" },
        { "cast", MODULE "weight_scale_2=bf16" }, { "cast", "*.weight=mxfp4" }, { "cast", MODULE "weight=int8" },
    };
    tn_file *f = open_case("modelopt_nvfp4");
    tn_error err;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        tn_status status = convert_with(f, (tn_convert_options){ .rules = &rules[i], .nrules = 1 }, &err);
        if (status != TN_ERR_UNSUPPORTED || !strstr(err.text, "codes of NVFP4 (ModelOpt)"))
            fail_msg("%s %s: %d %s", rules[i].step, rules[i].text, (int)status, line_of(&err));
        status = convert_with(f, (tn_convert_options){ .rules = &rules[i], .nrules = 1, .in_order = true },
                              &err);
        if (status != TN_ERR_UNSUPPORTED || !strstr(err.text, "codes of NVFP4 (ModelOpt)"))
            fail_msg("in order, %s %s: %d %s", rules[i].step, rules[i].text, (int)status, line_of(&err));
    }
    CHECK(count_entries(folder) == 0);
    tn_close(f);
}

static void rules_for_other_tensors_work(void)
{
    const tn_rule rules[] = { { "cast", "model.norm.weight=f32" }, { "cast", MODULE "input_scale=f64" } };
    tn_file *f = open_case("modelopt_nvfp4"), *made;
    tn_error err;
    CHECK(convert_with(f, (tn_convert_options){ .rules = rules, .nrules = 2 }, &err) == TN_OK);
    made = open_file("out.zt");
    CHECK(tn_file_find(made, "model.norm.weight")->dtype == TN_FLOAT32);
    CHECK(tn_file_find(made, MODULE "weight")->dtype == TN_UINT8);
    CHECK(count_of(made, "NVFP4 (ModelOpt)") == 3);     /* in any container */
    tn_close(made);
    tn_close(f);
}

static void codes_and_scales_are_chosen_together(void)
{
    static const char *const codes[] = { MODULE "weight" }, *const scale[] = { "*_scale" };
    static const char *const all[] = { MODULE "weight*" }, *const none[] = { "model.norm.*" };
    tn_file *f = open_case("modelopt_nvfp4");
    tn_error err;
    tn_status status = convert_with(f, (tn_convert_options){ .only = codes, .nonly = 1 }, &err);
    check_status(status, &err, TN_ERR_LOSS, "belongs to codes of NVFP4 (ModelOpt) in \"" MODULE
                                            "weight\": choose both or none");
    CHECK(convert_with(f, (tn_convert_options){ .only = scale, .nonly = 1 }, &err) == TN_ERR_LOSS);
    CHECK(convert_with(f, (tn_convert_options){ .only = all, .nonly = 1 }, &err) == TN_OK);
    CHECK(convert_with(f, (tn_convert_options){ .only = none, .nonly = 1 }, &err) == TN_OK);
    CHECK(convert_with(f, (tn_convert_options){ .only = codes, .nonly = 1, .raw_codes = true },
                       &err) == TN_OK);
    tn_close(f);
}

static void raw_codes_are_numbers(void)
{
    const tn_rule cast = { "cast", "f32" };
    tn_file *f = open_case("gptq_int4_g128_sym");
    tn_error err;
    CHECK(convert_with(f, (tn_convert_options){ .rules = &cast, .nrules = 1, .raw_codes = true },
                       &err) == TN_OK);
    tn_close(f);
}

static void count_rated(void *context, const tn_quantize_report *q)
{
    size_t *counts = context;
    counts[q->report ? 1 : 0]++;
}

/* Codes of 8 bits and their scales are floats, but their values are not what they look like. */
static void codes_are_not_rated_as_values(void)
{
    size_t counts[2] = { 0 };
    tn_datatype *mxfp4;
    tn_file *f = open_case("ct_fp8_channel");
    const tn_compare_datatypes_options o = { .size = sizeof o, .context = counts };
    CHECK(tn_datatype_parse("mxfp4", &mxfp4, NULL) == TN_OK);
    CHECK(tn_compare_datatypes(f, (const tn_datatype *[]){ mxfp4 }, 1, &o, count_rated, NULL) == TN_OK);
    size_t codes = 0;
    for (size_t i = 0; i < tn_file_count(f); i++)
        codes += tn_file_convention(f, tn_file_tensor(f, i)) != NULL;
    CHECK(codes > 0 && counts[0] == codes && counts[1] == tn_file_count(f) - codes);
    tn_datatype_free(mxfp4);
    tn_close(f);
}

static void a_missing_part_is_named(void)
{
    tn_error err = { .text = "" };
    tn_file *f = open_case("refuse_orphan");
    tn_status status = convert_open(f, "out.zt", (wish){ .cast = "bf16" }, &err);
    check_status(status, &err, TN_ERR_UNSUPPORTED,
                 "\"" MODULE "weight_scale_2\" is missing or of another type");
    tn_close(f);
}

static void parts_in_several_files_belong_together(void)
{
    static const char *const paths[] = { CASES "/sharded_ct_nvfp4/model-00001-of-00002.safetensors",
                                         CASES "/sharded_ct_nvfp4/model-00002-of-00002.safetensors" };
    tn_file *f;
    CHECK(tn_open(paths[0], NULL, &f, NULL) == TN_OK);
    CHECK(count_of(f, "FP4 (compressed-tensors)") == 1);        /* alone it lacks its scale */
    tn_close(f);
    CHECK(tn_open_several(paths, 2, NULL, &f, NULL) == TN_OK);
    CHECK(count_of(f, "NVFP4 (compressed-tensors)") == 3);
    tn_close(f);
}

/* ---- the configuration beside a file ---- */

/* Codes of a method that config.json names, and a plain tensor. */
static void put_model(const char *config)
{
    size_t n;
    uint8_t *bytes = make_file("{\"a.codes\":{\"dtype\":\"U8\",\"shape\":[4,4],\"data_offsets\":[0,16]},"
                               "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[16,20]}}", 20, &n);
    put_bytes("model.safetensors", bytes, n);
    put_file("config.json", config);
    free(bytes);
}

static void check_config(const char *config, const char *convention, const char *warning)
{
    put_model(config);
    tn_file *f = open_file("model.safetensors");
    const char *found = tn_file_convention(f, tn_file_tensor(f, 0)), *said = tn_file_warning(f, 0);
    if (!found != !convention || (found && !strstr(found, convention)))
        fail_msg("%s: %s", config, found ? found : "plain");
    if (!said != !warning || (said && !strstr(said, warning)))
        fail_msg("%s: %s", config, said ? said : "no warning");
    CHECK(!tn_file_convention(f, tn_file_tensor(f, 1)));        /* of one dimension */
    tn_close(f);
}

static void a_configuration_is_read_as_input(void)
{
    check_config("{}", NULL, NULL);
    check_config("{\"quantization_config\": null}", NULL, NULL);
    check_config("{\"quantization_config\": {\"quant_method\": \"gptq\"}}", NULL, NULL);
    check_config("{\"quantization\": {\"bits\": 4}, \"quantization_config\": {\"bits\": 4}}", NULL, NULL);
    check_config("{\"quantization_config\": {\"quant_method\": \"new\\u0009one\"}}", "\"new\\tone\"", NULL);
    check_config("{\"quantization_config\": {\"bits\": 4}}", "method \"\"", NULL);
    check_config("{\"quantization_config\": {\"quant_method\": 4}}", "broken configuration",
                 "config.json: byte 41: expected a string");
    check_config("{\"quantization_config\": {\"quant_method\": \"a\\u0000b\"}}", "broken configuration", "NUL");
    check_config("{\"a\": 1, \"a\": 2}", "broken configuration", "\"a\"");
    check_config("{\"quantization_config\": {\"quant_method\": \"gptq\", \"quant_method\": \"awq\"}}",
                 "broken configuration", "\"quant_method\"");
    check_config("{} {}", "broken configuration", "config.json: byte 3");
    check_config("", "broken configuration", "config.json");
    check_config("[[[[[[[[", "broken configuration", "config.json");
}

static void a_configuration_has_a_limit(void)
{
    put_model("{}");
    CHECK(truncate(in_folder("config.json").text, (16 << 20) + 1) == 0);
    tn_file *f = open_file("model.safetensors");
    CHECK(strstr(tn_file_warning(f, 0), "expected a configuration of at most 16777216 bytes but found 16777217"));
    tn_close(f);
}

static void a_configuration_may_be_anything(void)
{
    put_model("{}");
    CHECK(unlink(in_folder("config.json").text) == 0 && mkdir(in_folder("config.json").text, 0700) == 0);
    tn_file *f = open_file("model.safetensors");
    CHECK(strstr(tn_file_warning(f, 0), "config.json"));
    tn_close(f);
}

/* Every truncation, and every byte flipped. */
static void damaged_configurations_are_refused_or_read(void)
{
    static const char text[] = "{\"x\": [1, {\"y\": null}], \"quantization_config\": {\"bits\": 4, "
                               "\"quant_method\": \"gptq\"}, \"quantization\": {\"quant_algo\": \"FP8\"}}";
    for (size_t i = 0; tn_config_name(i); i++)
        for (size_t n = 0; n < sizeof text; n++)
            for (int flip = 0; flip < 2; flip++) {
                size_t size = flip ? sizeof text - 1 : n;
                char *copy = (char *)exact_copy(text, size);
                if (flip && n < size)
                    copy[n] ^= 0x21;
                tn_arena arena = { 0 };
                tn_error err = { .text = "" };
                const char *method = NULL;
                tn_status status = tn_config_read(i, (tn_text){ copy, size }, &arena, &method, &err);
                CHECK(status ? err.text[0] != '\0' : !method || strlen(method) < 20);
                CHECK(flip || status || n == sizeof text - 1);
                tn_arena_free(&arena);
                free(copy);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_case_has_its_convention),
        TEST(codes_are_not_read_as_another_type),
        TEST(codes_are_numbers_where_that_is_asked_for),
        IN_FOLDER(codes_are_not_exported),
        IN_FOLDER(no_code_is_cast_and_every_decoy_is),
        IN_FOLDER(codes_are_copied_unchanged),
        IN_FOLDER(no_rule_changes_codes),
        IN_FOLDER(rules_for_other_tensors_work),
        IN_FOLDER(codes_and_scales_are_chosen_together),
        IN_FOLDER(raw_codes_are_numbers),
        IN_FOLDER(codes_are_not_rated_as_values),
        IN_FOLDER(a_missing_part_is_named),
        TEST(parts_in_several_files_belong_together),
        IN_FOLDER(a_configuration_is_read_as_input),
        IN_FOLDER(a_configuration_has_a_limit),
        IN_FOLDER(a_configuration_may_be_anything),
        TEST(damaged_configurations_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
