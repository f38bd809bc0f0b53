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
    static const char *const only[] = { "*.weight_scale" };
    const tn_export_options options = { .size = sizeof options, .only = only, .nonly = 1 };
    tn_file *f = open_case("refuse_orphan");
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
    if (convert_open(copy, "parts.safetensors", (wish){ 0 }, &err))         /* with Tenon's record */
        fail_msg("%s: %s", field[0], line_of(&err));
    tn_close(copy);
    copy = open_file("parts.safetensors");
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

static void no_rule_changes_codes(void)
{
    static const tn_rule rules[] = {
        { "slice", MODULE "weight=0:4" }, { "transpose", MODULE "weight=1,0" },
        { "reshape", MODULE "weight=-1" }, { "concat", "all=" MODULE "weight+" MODULE "weight_scale" },
        { "split", MODULE "weight=a+b" }, { "layout", MODULE "weight=BA,from=AB" },
        { "form", MODULE "weight=coo" }, { "cast", MODULE "weight_scale=f64" },
        { "cast", MODULE "weight_scale=bf16" }, { "cast", "*.weight=int4" }, { "cast", MODULE "weight=int16" },
    };
    tn_file *f = open_case("refuse_orphan");
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
    const tn_tensor *t = tn_file_find(made, MODULE "weight");
    CHECK(t->form == TN_FORM_SCALED && t->dtype == TN_BFLOAT16);
    CHECK(strcmp(t->scaling->datatype, "e2m1fnuz|multi_float32_e4m3fn_t16") == 0);
    CHECK(count_of(made, NULL) == tn_file_count(made));         /* it is Tenon's own now */
    tn_close(made);
    tn_close(f);
}

static void codes_and_scales_are_chosen_together(void)
{
    static const char *const codes[] = { MODULE "weight" }, *const scale[] = { "*.weight_scale" };
    static const char *const all[] = { MODULE "*" };
    tn_file *f = open_case("refuse_orphan");
    tn_error err;
    tn_status status = convert_with(f, (tn_convert_options){ .only = codes, .nonly = 1 }, &err);
    check_status(status, &err, TN_ERR_LOSS, "belongs to codes of NVFP4 (ModelOpt) in \"" MODULE
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
    tn_file *f = open_case("refuse_gptq_noconfig");
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
    CHECK(each_row(CASES "/values.tsv", check_values) == 73);
}

/* It multiplies what the layer is given: without it the values of the weight alone would be wrong. */
static void a_scale_of_inputs_is_kept_beside_the_weight(void)
{
    tn_file *f = open_case("modelopt_int4_awq");
    CHECK(strstr(tn_file_warning(f, 0), "\"" MODULE "pre_quant_scale\": multiplies the inputs of its layer"));
    CHECK(!tn_file_warning(f, 1));
    CHECK(convert_open(f, "out.safetensors", (wish){ .cast = "f32" }, NULL) == TN_OK);
    tn_close(f);
    f = open_file("out.safetensors");
    CHECK(tn_file_find(f, MODULE "pre_quant_scale")->dtype == TN_FLOAT32);
    CHECK(tn_file_find(f, MODULE "weight")->form == TN_FORM_DENSE);
    tn_close(f);
}

/* ---- small models ---- */

/* A model of these entries, whose data is `bytes`. */
static tn_file *make_model(const char *config, const char *header, const void *bytes, size_t size)
{
    size_t n;
    uint8_t *file = make_file(header, size, &n);
    memcpy(file + n - size, bytes, size);
    put_bytes("model.safetensors", file, n);
    put_file("config.json", config);
    free(file);
    return open_file("model.safetensors");
}

static void check_model(tn_file *f, const char *datatype, const float *expected, size_t n)
{
    const tn_tensor *t = tn_file_find(f, "a.weight");
    float found[64];
    tn_error err = { .text = "" };
    if (!t || !t->scaling || strcmp(t->scaling->datatype, datatype) != 0)
        fail_msg("expected %s but found %s", datatype, t && t->scaling ? t->scaling->datatype : "none");
    if (tn_read(f, t, TN_FLOAT32, found, n * sizeof *found, &err) != TN_OK)
        fail_msg("%s", line_of(&err));
    for (size_t i = 0; i < n; i++)
        if (found[i] != expected[i])
            fail_msg("%s: value %zu is %g, not %g", datatype, i, (double)found[i], (double)expected[i]);
    tn_close(f);
}

static void int8_may_have_zero_points(void)
{
    static const struct { float scale[2]; int8_t code[6], zero[2]; } data = {
        { 0.5f, 3 }, { -128, 127, 0, 5, -6, 7 }, { -128, 127 }
    };
    const float expected[] = { 0, 127.5f, 64, -366, -399, -360 };
    check_model(make_model("{}", "{\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[2,1],"
                           "\"data_offsets\":[0,8]},\"a.weight\":{\"dtype\":\"I8\",\"shape\":[2,3],"
                           "\"data_offsets\":[8,14]},\"a.weight_zero_point\":{\"dtype\":\"I8\","
                           "\"shape\":[2,1],\"data_offsets\":[14,16]}}", &data, 16),
                "uint8|float32_int16_t0", expected, 6);
}

/* Two experts of 8 rows: code 8 e + r in column r, zero point r, all scales 2^e. */
static void packed_experts_have_a_dimension_of_their_own(void)
{
    struct { int64_t shape[2]; float scale[16]; uint32_t word[16], zero[2]; } data = { { 8, 4 }, { 0 }, { 0 }, { 0 } };
    float expected[64];
    for (unsigned e = 0; e < 2; e++)
        for (unsigned r = 0; r < 8; r++) {
            data.scale[8 * e + r] = (float)(1 << e);
            data.word[8 * e + r] = (8 * e + r) * 0x1111u;
            data.zero[e] |= r << 4 * r;
            for (unsigned c = 0; c < 4; c++)
                expected[32 * e + 4 * r + c] = (float)((int)(8 * e + r) - (int)r) * (float)(1 << e);
        }
    check_model(make_model("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"bits\":4}}",
                           "{\"a.weight_shape\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                           "\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[2,8,1],\"data_offsets\":[16,80]},"
                           "\"a.weight_packed\":{\"dtype\":\"I32\",\"shape\":[2,8,1],\"data_offsets\":[80,144]},"
                           "\"a.weight_zero_point\":{\"dtype\":\"I32\",\"shape\":[2,1,1],"
                           "\"data_offsets\":[144,152]}}", &data, 152), "uint4|float32_int8_t0", expected, 64);
}

/* Ten codes of 3 bits a word, of zero points too: row r has code 5 and zero point r % 8. */
static void old_zero_points_do_not_cross_words(void)
{
    struct { int64_t shape[2]; float scale[12]; uint32_t word[12][4], zero[2]; } data = { { 12, 32 }, { 0 }, { { 0 } }, { 0 } };
    float first[12];
    tn_error err = { .text = "" };
    for (unsigned r = 0; r < 12; r++) {
        data.scale[r] = 1;
        for (unsigned c = 0; c < 32; c++)
            data.word[r][c / 10] |= 5u << c % 10 * 3;
        data.zero[r / 10] |= r % 8 << r % 10 * 3;
    }
    tn_file *f = make_model("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"bits\":3}}",
                            "{\"a.weight_shape\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                            "\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[12,1],\"data_offsets\":[16,64]},"
                            "\"a.weight_packed\":{\"dtype\":\"I32\",\"shape\":[12,4],\"data_offsets\":[64,256]},"
                            "\"a.weight_zero_point\":{\"dtype\":\"I32\",\"shape\":[2,1],"
                            "\"data_offsets\":[256,264]}}", &data, 264);
    float all[12 * 32];
    CHECK(tn_read(f, tn_file_find(f, "a.weight"), TN_FLOAT32, all, sizeof all, &err) == TN_OK);
    for (unsigned r = 0; r < 12; r++)
        first[r] = all[32 * r + 31];
    for (unsigned r = 0; r < 12; r++)
        CHECK(first[r] == 5 - (float)(r % 8));
    tn_close(f);
}

/* Four groups of 8: the first in the bits from 27 on. */
static void hqq_has_ten_codes_of_three_bits_a_word(void)
{
    struct { int64_t shape[2]; int32_t bits; uint32_t word[8]; float scale[4], zero[4]; } data = {
        { 2, 16 }, 3, { 0 }, { 1, 2, 0.5f, 1 }, { 0.25f, 1, 2, 7 }
    };
    float expected[32];
    for (unsigned g = 0; g < 4; g++)
        for (unsigned c = 0; c < 8; c++) {
            data.word[c] |= (g + c) % 8 << (27 - 3 * g);
            expected[8 * g + c] = ((float)((g + c) % 8) - data.zero[g]) * data.scale[g];
        }
    check_model(make_model("{}", "{\"a.shape\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                           "\"a.nbits\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[16,20]},"
                           "\"a.W_q\":{\"dtype\":\"I32\",\"shape\":[1,8],\"data_offsets\":[20,52]},"
                           "\"a.scale\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[52,68]},"
                           "\"a.zero\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[68,84]}}",
                           &data, 84), "hqq:uint3|float32_float32_t8", expected, 32);
}

static void bitnet_may_divide_by_its_scale(void)
{
    static const struct { float scale; uint8_t code[8]; } data = { 3, { 0xe4, 0xe4, 0, 0, 0x55, 0x55, 0xff, 0xaa } };
    float expected[32];
    for (unsigned i = 0; i < 32; i++)
        expected[i] = ((float)(data.code[i % 8] >> i / 8 * 2 & 3) - 1) / 3;
    check_model(make_model("{\"quantization_config\":{\"quant_method\":\"bitnet\",\"linear_class\":\"bitlinear\"}}",
                           "{\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                           "\"a.weight\":{\"dtype\":\"U8\",\"shape\":[1,8],\"data_offsets\":[4,12]}}", &data, 12),
                "uint2|float32_int8", expected, 32);
}

/* A mask that has other than two of four bits has no values for them. */
static void masks_have_two_of_four_bits(void)
{
    struct { int64_t shape[2]; float value[4]; uint8_t mask; } data = { { 1, 8 }, { 1, 2, 3, 4 }, 0x36 };
    static const char header[] =
        "{\"a.shape\":{\"dtype\":\"I64\",\"shape\":[2,1],\"data_offsets\":[0,16]},"
        "\"a.compressed\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[16,32]},"
        "\"a.bitmask\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[32,33]}}";
    const float expected[] = { 0, 1, 2, 0, 3, 4, 0, 0 };
    float values[8];
    tn_error err = { .text = "" };
    check_model(make_model("{}", header, &data, 33), "float32|n2m4", expected, 8);
    data.mask = 0x37;
    tn_file *f = make_model("{}", header, &data, 33);
    tn_status status = tn_read(f, tn_file_find(f, "a.weight"), TN_FLOAT32, values, sizeof values, &err);
    check_status(status, &err, TN_ERR_CORRUPT, "expected two of each four values");
    tn_close(f);
}

/* ---- blocks of GGUF ---- */

static const struct block_pair {
    const char *name, *tensor, *to;
    const char *why;            /* the block type cannot hold it; NULL: it has the same values */
} block_pairs[] = {
    { "gptq_int4_g128_sym", "model.layers.0.mlp.gate_proj.weight", "q4_0", NULL },
    { "gptq_int4_sym_zeros8", "model.layers.0.mlp.gate_proj.weight", "q4_0", NULL },
    { "gptq_int4_g64_asym", "model.layers.0.mlp.gate_proj.weight", "q4_0", "its zero point is not the middle" },
    { "gptq_int4_desc_act", "model.layers.0.mlp.gate_proj.weight", "q4_0", "its columns are of several groups" },
    { "ct_int4_actorder", "model.layers.0.mlp.up_proj.weight", "q4_0", "its columns are of several groups" },
    { "gptq_int8_g128", "model.layers.0.mlp.gate_proj.weight", "q8_0", NULL },
    { "awq_gemm_g128", "model.layers.0.self_attn.o_proj.weight", "q4_0", "its zero point is not the middle" },
    { "ct_int4_g128_sym", "model.layers.0.mlp.up_proj.weight", "q4_0", NULL },
    { "ct_int8_w8a8", "model.layers.0.mlp.up_proj.weight", "q8_0", NULL },
    { "ct_int8_pack_channel", "model.layers.0.mlp.up_proj.weight", "q8_0", NULL },
    { "quanto_int8", "model.fc.weight", "q8_0", NULL },
    { "mlx_4bit_g32_f16", "model.layers.0.self_attn.k_proj.weight", "q4_1", NULL },
    { "mlx_4bit_g64", "model.layers.0.self_attn.k_proj.weight", "q4_1", NULL },
    { "mlx_mxfp4", "model.layers.0.self_attn.k_proj.weight", "ggml:mxfp4", NULL },
    { "ct_mxfp4", "model.layers.0.mlp.up_proj.weight", "ggml:mxfp4", NULL },
    { "quark_mxfp4", "model.layers.0.mlp.up_proj.weight", "ggml:mxfp4", NULL },
    { "mlx_nvfp4", "model.layers.0.self_attn.k_proj.weight", "ggml:nvfp4", NULL },
    { "modelopt_nvfp4", "model.layers.1.mlp.down_proj.weight", "ggml:nvfp4", "is not a float8_e4m3fn" },
    { "ct_nvfp4", "model.layers.0.mlp.up_proj.weight", "ggml:nvfp4", "is not a float8_e4m3fn" },
};

/* -0 of e2m1 is 0 in ggml. */
static void check_same_values(const tn_file *f, const tn_file *made, const char *name)
{
    const tn_tensor *a = tn_file_find(f, name), *b = tn_file_find(made, name);
    uint64_t count = 0;
    CHECK(a && b && b->form == TN_FORM_BLOCKS && tn_shape_count(a->rank, a->shape, &count) == TN_OK);
    size_t size = (size_t)count * sizeof(float);
    float *x = malloc(size), *y = malloc(size);
    CHECK(tn_read(f, a, TN_FLOAT32, x, size, NULL) == TN_OK && tn_read(made, b, TN_FLOAT32, y, size, NULL) == TN_OK);
    for (size_t i = 0; i < count; i++)
        if (x[i] != y[i])
            fail_msg("%s: value %zu is %g, not %g", name, i, (double)y[i], (double)x[i]);
    free(x);
    free(y);
}

static void codes_become_blocks_by_moving_bits_or_not_at_all(void)
{
    for (size_t i = 0; i < sizeof block_pairs / sizeof *block_pairs; i++) {
        char cast[200];
        tn_error err = { .text = "" };
        tn_file *f = open_case(block_pairs[i].name);
        snprintf(cast, sizeof cast, "%s=%s", block_pairs[i].tensor, block_pairs[i].to);
        tn_status status = convert_open(f, "out.gguf", (wish){ .cast = cast }, &err);
        if (block_pairs[i].why) {
            check_status(status, &err, TN_ERR_LOSS, block_pairs[i].why);
        } else if (status) {
            fail_msg("%s: %s", block_pairs[i].name, line_of(&err));
        } else {
            tn_file *made = open_file("out.gguf");
            check_same_values(f, made, block_pairs[i].tensor);
            tn_close(made);
            CHECK(unlink(in_folder("out.gguf").text) == 0);
        }
        tn_close(f);
    }
    CHECK(count_entries(folder) == 0);
}

/* The bytes of gguf's own writer. */
static void gpt_oss_becomes_gguf_byte_for_byte(void)
{
    tn_error err = { .text = "" };
    tn_file *f = open_case("gptoss_mxfp4"), *made, *theirs;
    if (convert_open(f, "out.gguf", (wish){ .cast = "*_proj=ggml:mxfp4" }, &err))
        fail_msg("%s", line_of(&err));
    made = open_file("out.gguf");
    CHECK(tn_open(CASES "/pair_gptoss_to_gguf/model.gguf", NULL, &theirs, NULL) == TN_OK);
    const tn_tensor *a = tn_file_find(theirs, "blk.0.ffn_down_exps.weight");
    const tn_tensor *b = tn_file_find(made, "model.layers.0.mlp.experts.down_proj");
    CHECK(a && b && a->parts[0].nbytes == 816 && b->parts[0].nbytes == 816);
    CHECK(memcmp(a->parts[0].data, b->parts[0].data, 816) == 0);
    tn_close(theirs);
    tn_close(made);
    tn_close(f);
}

/* ---- groups of columns ---- */

/* The golden model with another group of its first column. */
static tn_status read_with_group(const char *name, const char *entry, int32_t group, tn_error *err)
{
    char path[500], key[64];
    size_t size, header = 0;
    long long at = -1;
    snprintf(path, sizeof path, CASES "/%s/config.json", name);
    uint8_t *config = load_file(path, &size);
    put_bytes("config.json", config, size);
    snprintf(path, sizeof path, CASES "/%s/model.safetensors", name);
    uint8_t *bytes = load_file(path, &size);
    memcpy(&header, bytes, sizeof header);
    snprintf(key, sizeof key, "%s\"", entry);
    char *found = memmem(bytes, size, key, strlen(key));
    CHECK(found && (found = strstr(found, "\"data_offsets\":[")) && sscanf(found + 16, "%lld", &at) == 1);
    memcpy(bytes + 8 + header + at, &group, sizeof group);
    put_bytes("model.safetensors", bytes, size);
    tn_file *f = open_file("model.safetensors");
    uint64_t count = 0;
    const tn_tensor *t = NULL;
    for (size_t i = 0; i < tn_file_count(f); i++)
        t = tn_file_tensor(f, i)->scaling ? tn_file_tensor(f, i) : t;
    CHECK(t && tn_shape_count(t->rank, t->shape, &count) == TN_OK);
    float *values = calloc((size_t)count, sizeof *values);
    tn_status status = tn_read(f, t, TN_FLOAT32, values, (size_t)count * sizeof *values, err);
    tn_close(f);
    free(values);
    free(bytes);
    free(config);
    return status;
}

static void groups_of_columns_are_checked(void)
{
    tn_error err = { .text = "" };
    tn_status status = read_with_group("gptq_int4_desc_act", "g_idx", 4, &err);
    check_status(status, &err, TN_ERR_CORRUPT, "expected groups of 0 to 3 but column 0 has group 4");
    status = read_with_group("ct_int4_actorder", "weight_g_idx", INT32_MAX, &err);
    check_status(status, &err, TN_ERR_CORRUPT, "expected groups of 0 to 3 but column 0 has group 2147483647");
    CHECK(read_with_group("ct_int4_actorder", "weight_g_idx", -1, &err) == TN_OK);
    status = read_with_group("gptq_int4_g64_asym", "g_idx", 1, &err);
    check_status(status, &err, TN_ERR_CORRUPT, "because the configuration says so (desc_act)");
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

/* A weight of 4 x 4 with a scale and one more entry, cast to float32. */
static void check_refused(const char *weight, const char *other, const char *why)
{
    char header[500];
    size_t n;
    snprintf(header, sizeof header, "{\"a.weight\":{\"dtype\":\"%s\",\"shape\":[4,4],\"data_offsets\":[0,16]},"
             "\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[16,32]},"
             "%s,\"data_offsets\":[32,48]}}", weight, other);
    uint8_t *bytes = make_file(header, 48, &n);
    put_bytes("model.safetensors", bytes, n);
    tn_error err = { .text = "" };
    tn_file *f = open_file("model.safetensors");
    check_status(convert_open(f, "out.zt", (wish){ .cast = "f32" }, &err), &err, TN_ERR_UNSUPPORTED, why);
    tn_close(f);
    free(bytes);
}

static void entries_that_change_the_values_are_not_passed_over(void)
{
    unlink(in_folder("config.json").text);
    check_refused("I8", "\"a.weight_zero_point\":{\"dtype\":\"I32\",\"shape\":[4,1]",
                  "\"a.weight_zero_point\" is missing or of another type");
    check_refused("F8_E4M3", "\"a.svdquant_lora_a\":{\"dtype\":\"F32\",\"shape\":[1,4]",
                  "the product with \"a.svdquant_lora_a\"");
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
    check_config("{\"quantization_config\": {\"quant_method\": \"gptq\"}}", "method \"gptq\"", NULL);
    check_config("{\"quantization\": {\"bits\": 4}, \"quantization_config\": {\"bits\": 4}}", "method \"mlx\"",
                 NULL);
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
        IN_FOLDER(a_scale_of_inputs_is_kept_beside_the_weight),
        IN_FOLDER(int8_may_have_zero_points),
        IN_FOLDER(packed_experts_have_a_dimension_of_their_own),
        IN_FOLDER(old_zero_points_do_not_cross_words),
        IN_FOLDER(hqq_has_ten_codes_of_three_bits_a_word),
        IN_FOLDER(bitnet_may_divide_by_its_scale),
        IN_FOLDER(masks_have_two_of_four_bits),
        IN_FOLDER(codes_become_blocks_by_moving_bits_or_not_at_all),
        IN_FOLDER(gpt_oss_becomes_gguf_byte_for_byte),
        IN_FOLDER(groups_of_columns_are_checked),
        IN_FOLDER(shapes_and_types_that_disagree_are_refused),
        IN_FOLDER(rows_of_packed_codes_have_a_limit),
        IN_FOLDER(a_configuration_is_read_as_input),
        IN_FOLDER(entries_that_change_the_values_are_not_passed_over),
        IN_FOLDER(a_configuration_has_a_limit),
        IN_FOLDER(a_configuration_may_be_anything),
        TEST(damaged_configurations_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
