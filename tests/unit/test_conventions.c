/* Other tools' packed codes: recognised, copied, decoded, and never taken for numbers. */
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

/* Entries of the file: a tensor that was decoded stands for several. */
static size_t count_of(const tn_file *f, const char *convention)
{
    size_t n = 0;
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        const char *found = tn_file_convention(f, t);
        bool counts = convention ? found && strcmp(found, convention) == 0 : !found;
        if (counts)
            n += found && t->scaling ? tn_packed_known(f, t)->count : 1;
    }
    return n;
}

/* Whether no tensor is refused. */
static bool is_decoded(const tn_file *f)
{
    bool all = true;
    for (size_t i = 0; i < tn_file_count(f); i++)
        all &= !tn_packed_of(f, tn_file_tensor(f, i));
    return all;
}

static void check_case(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 3);
    tn_file *f = open_case(field[0]);
    size_t found = count_of(f, field[1]);
    if (strcmp(field[1], "-") == 0)
        found = (f->listed ? f->nlisted : tn_file_count(f)) - count_of(f, NULL);
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
        bool packed = tn_packed_of(f, t) != NULL;
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
    static const char *const only[] = { "*.weight.absmax" };
    const tn_export_options options = { .size = sizeof options, .only = only, .nonly = 1 };
    tn_file *f = open_case("bnb_nf4");
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
    if (is_decoded(f))
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

static void check_equal(const tn_file *a, const tn_file *b, const char *what)
{
    size_t different = 1;
    tn_error err = { .text = "" };
    if (tn_compare(a, b, NULL, NULL, &different, &err) != TN_OK || different)
        fail_msg("%s: %zu differ %s", what, different, line_of(&err));
}

/* In the same kind of container the entries are the same, in another one the tensors are. */
static void check_copy(char *field[TABLE_FIELDS], size_t n)
{
    (void)n;
    const tn_open_options raw = { .size = sizeof raw, .raw_codes = true };
    tn_error err = { .text = "" };
    tn_file *f = open_case(field[0]), *entries, *copy;
    if (convert_open(f, "copy.safetensors", (wish){ 0 }, &err) ||
        convert_open(f, "copy.zt", (wish){ 0 }, &err))
        fail_msg("%s: %s", field[0], line_of(&err));
    copy = open_file("copy.zt");
    check_equal(f, copy, field[0]);
    tn_close(copy);
    CHECK(tn_open(tn_file_shard_name(f, 0), &raw, &entries, NULL) == TN_OK);
    CHECK(tn_open(in_folder("copy.safetensors").text, &raw, &copy, NULL) == TN_OK);
    check_equal(entries, copy, field[0]);
    CHECK(tn_file_count(entries) == tn_file_count(copy));
    for (size_t i = 0; i < tn_file_count(copy); i++)
        CHECK(!tn_file_tensor(copy, i)->scaling);
    tn_close(copy);
    tn_close(entries);
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
#define INT8 "model.layers.0.mlp.up_proj."

static void no_rule_changes_codes(void)
{
    static const tn_rule rules[] = {
        { "slice", INT8 "weight=0:4" }, { "transpose", INT8 "weight=1,0" },
        { "reshape", INT8 "weight=-1" }, { "concat", "all=" INT8 "weight+" INT8 "SCB" },
        { "split", INT8 "weight=a+b" }, { "layout", INT8 "weight=BA,from=AB" },
        { "form", INT8 "weight=coo" }, { "cast", INT8 "SCB=f64" },
        { "cast", INT8 "SCB=bf16" }, { "cast", "*.weight=int4" }, { "cast", INT8 "weight=int16" },
    };
    tn_file *f = open_case("bnb_int8");
    tn_error err;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        tn_status status = convert_with(f, (tn_convert_options){ .rules = &rules[i], .nrules = 1 }, &err);
        if (status != TN_ERR_UNSUPPORTED || !strstr(err.text, "codes of int8 (bitsandbytes)"))
            fail_msg("%s %s: %d %s", rules[i].step, rules[i].text, (int)status, line_of(&err));
        status = convert_with(f, (tn_convert_options){ .rules = &rules[i], .nrules = 1, .in_order = true },
                              &err);
        if (status != TN_ERR_UNSUPPORTED || !strstr(err.text, "codes of int8 (bitsandbytes)"))
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
    const tn_tensor *t = tn_file_find(made, MODULE "weight");
    CHECK(t->form == TN_FORM_SCALED && t->dtype == TN_BFLOAT16);
    CHECK(strcmp(t->scaling->datatype, "e2m1fnuz|multi_float32_e4m3fn_t16") == 0);
    CHECK(count_of(made, NULL) == tn_file_count(made));         /* it is Tenon's own now */
    tn_close(made);
    tn_close(f);
}

static void codes_and_scales_are_chosen_together(void)
{
    static const char *const codes[] = { INT8 "weight" }, *const scale[] = { "*.SCB" };
    static const char *const all[] = { INT8 "*" };
    tn_file *f = open_case("bnb_int8");
    tn_error err;
    tn_status status = convert_with(f, (tn_convert_options){ .only = codes, .nonly = 1 }, &err);
    check_status(status, &err, TN_ERR_LOSS, "belongs to codes of int8 (bitsandbytes) in \"" INT8
                                            "weight\": choose both or none");
    CHECK(convert_with(f, (tn_convert_options){ .only = scale, .nonly = 1 }, &err) == TN_ERR_LOSS);
    CHECK(convert_with(f, (tn_convert_options){ .only = all, .nonly = 1 }, &err) == TN_OK);
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
    tn_file *f = open_case("bnb_nf4");
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

/* ---- values ---- */

static void check_digest(const tn_file *f, const tn_tensor *t, tn_dtype type, const char *expected)
{
    uint64_t count = 0;
    tn_error err = { .text = "" };
    CHECK(tn_shape_count(t->rank, t->shape, &count) == TN_OK);
    size_t size = (size_t)count * tn_dtype_get(type)->bits / 8;
    void *values = malloc(size + 1);
    if (tn_read(f, t, type, values, size, &err) != TN_OK)
        fail_msg("%s", line_of(&err));
    hex found = sha256_of(values, size);
    if (strcmp(found.text, expected) != 0)
        fail_msg("%s as %s: %s", t->name, tn_dtype_get(type)->name, found.text);
    free(values);
}

static void check_values(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 5);
    tn_file *f = open_case(field[0]);
    const tn_tensor *t = tn_file_find(f, field[1]);
    if (!t || t->form != TN_FORM_SCALED || !tn_file_convention(f, t))
        fail_msg("%s: %s is not one tensor", field[0], field[1]);
    check_digest(f, t, TN_FLOAT32, field[2]);
    check_digest(f, t, tn_dtype_parse(field[3]), field[4]);
    tn_close(f);
}

static void values_are_those_of_the_other_tool(void)
{
    CHECK(each_row(CASES "/values.tsv", check_values) == 57);
}

/* ---- shapes and types that disagree ---- */

/* Exchanges the two numbers of a shape, or makes one number of them, in the same bytes. */
static bool change_shape(char *shape, bool flat)
{
    long long a, b;
    int n = 0;
    char text[64];
    if (sscanf(shape, "[%lld,%lld]%n", &a, &b, &n) != 2 || !n)
        if (sscanf(shape, "[%lld, %lld]%n", &a, &b, &n) != 2 || !n)
            return false;
    snprintf(text, sizeof text, flat ? "[%lld]" : "[%lld,%lld]", flat ? a * b : b, a);
    memset(shape, ' ', (size_t)n);
    memcpy(shape, text, strlen(text));
    return true;
}

/* Another type of the same size. */
static bool change_type(char *type)
{
    static const char *const pairs[][2] = {
        { "\"I32\"", "\"U32\"" }, { "\"U32\"", "\"F32\"" }, { "\"F32\"", "\"I32\"" },
        { "\"U8\"", "\"I8\"" },
        { "\"F16\"", "\"I16\"" }, { "\"BF16\"", "\"F16\" " }, { "\"I64\"", "\"F64\"" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strncmp(type, pairs[i][0], strlen(pairs[i][0])) == 0)
            return memcpy(type, pairs[i][1], strlen(pairs[i][1])) != NULL;
    return false;
}

/* Whatever it is now, its tensors are refused or have values. */
static void read_all(const char *path)
{
    tn_file *f;
    if (tn_open(path, NULL, &f, NULL) != TN_OK)
        return;
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        uint64_t count = 0;
        tn_error err = { .text = "" };
        CHECK(tn_shape_count(t->rank, t->shape, &count) == TN_OK && count < 1 << 20);
        float *values = malloc((size_t)count * sizeof *values + 1);
        tn_status status = tn_read(f, t, TN_FLOAT32, values, (size_t)count * sizeof *values, &err);
        CHECK(!status || err.text[0]);
        free(values);
    }
    tn_close(f);
}

static void check_damage(char *field[TABLE_FIELDS], size_t n)
{
    char path[500];
    size_t size;
    (void)n;
    snprintf(path, sizeof path, CASES "/%s/config.json", field[0]);
    if (access(path, R_OK) == 0) {
        uint8_t *config = load_file(path, &size);
        put_bytes("config.json", config, size);
        free(config);
    }
    snprintf(path, sizeof path, CASES "/%s/model.safetensors", field[0]);
    if (access(path, R_OK) != 0)
        return;
    for (size_t i = 0; i < 60; i++) {
        uint8_t *bytes = load_file(path, &size);
        char *at = (char *)bytes + 8;
        for (size_t k = 0; k <= i / 3 && at; k++)
            at = memmem(at + 1, size - (size_t)(at + 1 - (char *)bytes),
                        i % 3 ? "\"shape\":" : "\"dtype\":", 8);
        bool changed = at && (i % 3 ? change_shape(at + 8, i % 3 == 2) : change_type(at + 8));
        if (changed) {
            put_bytes("model.safetensors", bytes, size);
            read_all(in_folder("model.safetensors").text);
        }
        free(bytes);
    }
}

static void shapes_and_types_that_disagree_are_refused(void)
{
    each_row(CASES "/conventions.tsv", check_damage);
}

/* Words of no rows take no bytes. */
static void rows_of_packed_codes_have_a_limit(void)
{
    size_t n;
    uint8_t *bytes =
        make_file("{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[4194312,0],\"data_offsets\":[0,0]},"
                  "\"a.qzeros\":{\"dtype\":\"I32\",\"shape\":[1,0],\"data_offsets\":[0,0]},"
                  "\"a.scales\":{\"dtype\":\"F16\",\"shape\":[1,0],\"data_offsets\":[0,0]}}", 0, &n);
    put_bytes("model.safetensors", bytes, n);
    tn_error err = { .text = "" };
    tn_file *f = open_file("model.safetensors");
    tn_status status = convert_open(f, "out.zt", (wish){ .cast = "f32" }, &err);
    check_status(status, &err, TN_ERR_UNSUPPORTED, "its rows have more than 4194304 columns");
    tn_close(f);
    free(bytes);
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
                tn_quant_config config = { 0 };
                tn_status status = tn_config_read(i, (tn_text){ copy, size }, &arena, &config, &err);
                CHECK(status ? err.text[0] != '\0' : !config.method || strlen(config.method) < 20);
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
        TEST(values_are_those_of_the_other_tool),
        IN_FOLDER(shapes_and_types_that_disagree_are_refused),
        IN_FOLDER(rows_of_packed_codes_have_a_limit),
        IN_FOLDER(a_configuration_is_read_as_input),
        IN_FOLDER(a_configuration_has_a_limit),
        IN_FOLDER(a_configuration_may_be_anything),
        TEST(damaged_configurations_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
