/* Reading WIA-AI-011 descriptors: every field. */
#include "documents.h"

#include "descriptor/descriptor.h"

#include <math.h>
#include <stdio.h>

static void check_extra(const tn_descriptor *d, size_t i, const char *path, const char *key, const char *json)
{
    CHECK(i < d->nextra);
    CHECK(is(d->extra[i].path, path));
    CHECK(is(d->extra[i].key, key));
    CHECK(is(d->extra[i].json, json));
}

/* ---- what is read ---- */

static void shape_of_a_full_descriptor_is_read(void)
{
    tn_descriptors *set = parse(full);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(tn_descriptors_count(set) == 1);
    CHECK(tn_descriptors_at(set, 1) == NULL);
    CHECK(is(d->version, TN_WIA_VERSION));
    CHECK(is(d->tensor_id, "7e7eb0f9-0cb3-4368-a4cb-a91565892a66"));
    CHECK(is(d->name, "a\xc3\xa9\n"));
    CHECK(d->rank == 3);
    CHECK(is(d->dimensions[0].symbol, "batch") && is(d->dimensions[1].symbol, "seq"));
    CHECK(d->dimensions[2].symbol == NULL && d->dimensions[2].value == 768);
    CHECK(is(d->layout, "NLC"));
    CHECK(d->symbolic);
    CHECK(d->nconstraints == 2);
    CHECK(is(d->constraints[0].symbol, "batch") && d->constraints[0].min == 1 &&
          d->constraints[0].max == 256);
    CHECK(d->constraints[0].multiple_of == 1);
    CHECK(is(d->constraints[1].symbol, "seq") && d->constraints[1].min == 2 && d->constraints[1].max == 2048);
    CHECK(d->constraints[1].multiple_of == 8);
    CHECK(d->physical_shape[0] == 1 && d->physical_shape[1] == 2 && d->physical_shape[2] == 3);
    CHECK(d->has_padding && d->padding.dims[0] && !d->padding.dims[1] && d->padding.dims[2]);
    CHECK(d->padding.values[0] == 0 && d->padding.values[1] == 5 && d->padding.values[2] == 0);
    CHECK(is(d->padding.mode, "value_fill") && d->padding.fill == -1.5);
    tn_descriptors_free(set);
}

static void type_and_memory_of_a_full_descriptor_are_read(void)
{
    tn_descriptors *set = parse(full);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    const tn_wia_quantization *q = &d->quantization;
    CHECK(d->dtype == TN_INT8 && is(d->base_type, "INT8") && d->byte_order == TN_BIG_ENDIAN);
    CHECK(q->scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC);
    CHECK(q->nscales == 3 && q->scales[0] == 0.1 && q->scales[1] == 2 && q->scales[2] == 1e-3);
    CHECK(q->nzero_points == 3 && q->zero_points[0] == 1 && q->zero_points[1] == -2 &&
          q->zero_points[2] == 3);
    CHECK(q->has_range && q->range[0] == -128 && q->range[1] == 127);
    CHECK(q->has_axis && q->channel_axis == 2);
    CHECK(d->has_memory);
    CHECK(d->strides[0].factor == 768 && d->strides[0].nsymbols == 1 && is(d->strides[0].symbols[0], "seq"));
    CHECK(d->strides[1].factor == 768 && d->strides[1].nsymbols == 0);
    CHECK(d->strides[2].factor == -1 && d->strides[2].nsymbols == 0);
    CHECK(d->offset_bytes == 64 && d->has_total && d->total_bytes == UINT64_MAX && d->alignment == 256);
    CHECK(d->device.type == TN_DEVICE_NPU && d->device.id == 3 && d->device.space == TN_SPACE_UNIFIED);
    tn_descriptors_free(set);
}

static void properties_and_handles_of_a_full_descriptor_are_read(void)
{
    tn_descriptors *set = parse(full);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->has_properties && d->requires_grad && !d->is_pinned && d->is_contiguous &&
          !d->zero_copy_compatible);
    CHECK(is(d->metadata, "{\"any\": [1,2,{\"k\":\"v\\u0000\"}]}"));
    CHECK(d->buffer_handle.type == TN_HANDLE_DMA_BUF && d->buffer_handle.handle == 7);
    CHECK(d->buffer_handle.size_bytes == 4096 && d->buffer_handle.read_only);
    CHECK(d->mapping.present && d->mapping.device_address == UINT64_C(0xdeadbeef00) &&
          !d->mapping.cpu_mapped);
    CHECK(d->mapping.cpu_device);
    CHECK(d->sparse.format == NULL);
    tn_descriptors_free(set);
}

static void unknown_members_are_kept_in_order_with_the_path_of_their_object(void)
{
    tn_descriptors *set = parse(full);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    check_extra(d, 0, "shape.constraints.seq", "x0", "[1, 2]");
    check_extra(d, 1, "shape", "x1", "null");
    check_extra(d, 2, "dtype.quantization", "x2", "1");
    check_extra(d, 3, "dtype", "x3", "{\"a\": {}}");
    check_extra(d, 4, "memory.device", "x4", "\"y\"");
    check_extra(d, 5, "memory", "x5", "1");
    check_extra(d, 6, "properties", "x6", "2");
    check_extra(d, 7, "padding", "x7", "0");
    check_extra(d, 8, "buffer_handle", "x8", "1");
    check_extra(d, 9, "mapping", "x9", "1");
    check_extra(d, 10, "", "x10", "{\"top\": true}");
    check_extra(d, 11, "", "x11", "1.50");
    CHECK(d->nextra == 12);
    tn_descriptors_free(set);

    set = parse(coo);
    CHECK(tn_descriptors_at(set, 0)->nextra == 2);
    check_extra(tn_descriptors_at(set, 0), 0, "indices", "i", "1");
    check_extra(tn_descriptors_at(set, 0), 1, "values", "v", "2");
    tn_descriptors_free(set);
}

static void a_shape_alone_is_a_descriptor_and_the_rest_is_marked_as_absent(void)
{
    tn_descriptors *set = parse("{\"shape\": {\"dimensions\": []}}");
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->rank == 0 && d->dimensions != NULL && !d->symbolic && !d->layout && !d->constraints);
    CHECK(!d->version && !d->tensor_id && !d->name && !d->base_type && d->dtype == TN_UNKNOWN);
    CHECK(!d->has_memory && !d->strides && !d->has_total && !d->has_properties && !d->metadata);
    CHECK(!d->physical_shape && !d->has_padding && !d->mapping.present &&
          d->buffer_handle.type == TN_HANDLE_NONE);
    CHECK(d->quantization.scheme == TN_QUANT_NONE && d->nextra == 0);
    tn_descriptors_free(set);
}

static void documents_are_one_descriptor_or_an_array(void)
{
    tn_descriptors *set = parse(" [ {\"shape\":[1],\"a\":1} , {\"shape\":[2,3]} ] ");
    CHECK(tn_descriptors_count(set) == 2);
    CHECK(tn_descriptors_at(set, 0)->rank == 1 && tn_descriptors_at(set, 0)->nextra == 1);
    CHECK(tn_descriptors_at(set, 1)->dimensions[1].value == 3 && tn_descriptors_at(set, 1)->nextra == 0);
    tn_descriptors_free(set);
    set = parse("[]");
    CHECK(tn_descriptors_count(set) == 0 && tn_descriptors_at(set, 0) == NULL);
    tn_descriptors_free(set);
    tn_descriptors_free(NULL);
}

static void every_type_of_the_specification_has_its_name(void)
{
    static const char *const names[] = { "FLOAT64",  "FLOAT32", "FLOAT16", "BFLOAT16", "TF32", "FP8_E4M3",
                                         "FP8_E5M2", "INT64",   "INT32",   "INT16",    "INT8", "UINT64",
                                         "UINT32",   "UINT16",  "UINT8",   "INT4",     "UINT4" };
    char json[100];
    CHECK(sizeof names / sizeof names[0] == 17);
    for (size_t i = 0; i < 17; i++) {
        snprintf(json, sizeof json, "{\"shape\":[],\"dtype\":{\"base_type\":\"%s\"}}", names[i]);
        tn_descriptors *set = parse(json);
        const tn_descriptor *d = tn_descriptors_at(set, 0);
        CHECK(d->dtype != TN_UNKNOWN && is(tn_dtype_get(d->dtype)->wia, names[i]) &&
              is(d->base_type, names[i]));
        tn_descriptors_free(set);
    }
}

static void other_types_have_a_prefix_and_what_is_no_type_is_kept(void)
{
    CHECK(tn_wia_type("tenon:bool") == TN_BOOL);
    CHECK(tn_wia_type("tenon:float4_e2m1") == TN_FLOAT4_E2M1);
    CHECK(tn_wia_type("tenon:BOOL") == TN_UNKNOWN);
    CHECK(tn_wia_type("bool") == TN_UNKNOWN);
    CHECK(tn_wia_type("float32") == TN_UNKNOWN);
    CHECK(tn_wia_type("tenon:") == TN_UNKNOWN);
    CHECK(tn_wia_type("") == TN_UNKNOWN);
    CHECK(tn_wia_type(NULL) == TN_UNKNOWN);
    tn_arena arena = { 0 };
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++)
        CHECK(tn_wia_type(tn_wia_type_name((tn_dtype)i, &arena)) == (tn_dtype)i);
    CHECK(tn_wia_type_name(TN_UNKNOWN, &arena) == NULL);
    tn_arena_free(&arena);

    tn_descriptors *set = parse("{\"shape\":[],\"dtype\":{\"base_type\":\"POSIT16\"}}");
    CHECK(tn_descriptors_at(set, 0)->dtype == TN_UNKNOWN &&
          is(tn_descriptors_at(set, 0)->base_type, "POSIT16"));
    tn_descriptors_free(set);
}

static void enum_values_have_words(void)
{
    CHECK(is(tn_quant_scheme_name(TN_QUANT_PER_TENSOR_ASYMMETRIC), "per_tensor_asymmetric"));
    CHECK(tn_quant_scheme_name(TN_QUANT_NONE) == NULL);
    CHECK(is(tn_handle_type_name(TN_HANDLE_METAL), "metal_shared"));
    CHECK(tn_handle_type_name((tn_handle_type)99) == NULL);
    CHECK(is(tn_device_type_name(TN_DEVICE_TPU), "TPU"));
    CHECK(is(tn_memory_space_name(TN_SPACE_HOST), "host"));
}

static void a_shape_is_symbolic_when_it_has_symbols_and_does_not_say(void)
{
    static const struct { const char *json; bool symbolic; } cases[] = {
        { "{\"shape\":[\"n\",3]}", true }, { "{\"shape\":[2,3]}", false },
        { "{\"shape\":{\"dimensions\":[\"n\"]}}", true },
        { "{\"shape\":{\"dimensions\":[\"n\"],\"symbolic\":false}}", false },
        { "{\"shape\":{\"symbolic\":false,\"dimensions\":[\"n\"]}}", false },
        { "{\"shape\":{\"symbolic\":true,\"dimensions\":[1]}}", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_descriptors *set = parse(cases[i].json);
        CHECK(tn_descriptors_at(set, 0)->symbolic == cases[i].symbolic);
        tn_descriptors_free(set);
    }
}

static void strides_are_products_in_any_order(void)
{
    tn_descriptors *set =
        parse("{\"shape\":[1,2,3,4,5],\"memory\":{\"strides\":[\"8*batch*seq\", \"seq*2* batch *4*seq\", "
              "\"12\", \"-3*n\", \"-9223372036854775808\"]}}");
    const tn_wia_product *s = tn_descriptors_at(set, 0)->strides;
    CHECK(s[0].factor == 8 && s[0].nsymbols == 2 && is(s[0].symbols[0], "batch") &&
          is(s[0].symbols[1], "seq"));
    CHECK(s[1].factor == 8 && s[1].nsymbols == 3 && is(s[1].symbols[0], "seq") &&
          is(s[1].symbols[1], "batch"));
    CHECK(is(s[1].symbols[2], "seq"));
    CHECK(s[2].factor == 12 && s[2].nsymbols == 0 && s[2].symbols == NULL);
    CHECK(s[3].factor == -3 && s[3].nsymbols == 1 && is(s[3].symbols[0], "n"));
    CHECK(s[4].factor == INT64_MIN);
    tn_descriptors_free(set);
}

static void per_tensor_schemes_have_one_scale(void)
{
    tn_descriptors *set =
        parse("{\"shape\":[],\"dtype\":{\"base_type\":\"INT8\",\"quantization\":{\"scale\":0.5,"
              "\"zero_point\":0,\"scheme\":\"per_tensor_symmetric\",\"range\":[-127,127]}}}");
    const tn_wia_quantization *q = &tn_descriptors_at(set, 0)->quantization;
    CHECK(q->scheme == TN_QUANT_PER_TENSOR_SYMMETRIC && q->nscales == 1 && q->scales[0] == 0.5);
    CHECK(q->nzero_points == 1 && q->zero_points[0] == 0 && !q->has_axis);
    tn_descriptors_free(set);
    set = parse("{\"shape\":[],\"dtype\":{\"base_type\":\"INT8\",\"quantization\":{\"scheme\":\"per_tensor_"
                "asymmetric\","
                "\"scales\":[\"NaN\",\"Infinity\"]}}}");
    q = &tn_descriptors_at(set, 0)->quantization;
    CHECK(q->nscales == 2 && isnan(q->scales[0]) && isinf(q->scales[1]) && q->zero_points == NULL &&
          !q->has_range);
    tn_descriptors_free(set);
    set = parse("{\"shape\":[],\"dtype\":{\"base_type\":\"INT8\",\"quantization\":null}}");
    CHECK(tn_descriptors_at(set, 0)->quantization.scheme == TN_QUANT_NONE &&
          tn_descriptors_at(set, 0)->nextra == 0);
    tn_descriptors_free(set);
}

static void a_scheme_beyond_the_four_is_kept_as_it_is(void)
{
    tn_descriptors *set = parse(
        "{\"shape\":[],\"dtype\":{\"base_type\":\"UINT4\",\"quantization\":{\"scale\": {\"parts\": [2]},"
        " \"scheme\":\"tenon\"},\"other\":1}}");
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->quantization.scheme == TN_QUANT_NONE && d->quantization.scales == NULL && d->nextra == 2);
    check_extra(d, 0, "dtype", "quantization", "{\"scale\": {\"parts\": [2]}, \"scheme\":\"tenon\"}");
    check_extra(d, 1, "dtype", "other", "1");
    tn_descriptors_free(set);
}

static void addresses_are_hexadecimal(void)
{
    tn_descriptors *set =
        parse("{\"shape\":[],\"mapping\":{\"device_address\":\"0xffffffffFFFFFFFF\",\"cpu_address\":\"0x0\","
              "\"access_mode\":\"device_only\"}}");
    const tn_wia_mapping *m = &tn_descriptors_at(set, 0)->mapping;
    CHECK(m->device_address == UINT64_MAX && m->cpu_mapped && m->cpu_address == 0 && !m->cpu_device);
    tn_descriptors_free(set);
}

static void without_a_cpu_address_it_is_null(void)
{
    tn_descriptors *set =
        parse("{\"shape\":[],\"mapping\":{\"access_mode\":\"cpu_device\",\"device_address\":\"0x40\"}}");
    const tn_wia_mapping *m = &tn_descriptors_at(set, 0)->mapping;
    CHECK(m->present && m->device_address == 0x40 && !m->cpu_mapped && m->cpu_address == 0 && m->cpu_device);
    tn_descriptors_free(set);
}

static void a_fill_is_kept_exactly(void)
{
    static const struct { const char *text; double fill; } cases[] = {
        { "0", 0 }, { "-1", -1 }, { "9007199254740992", 0x1p53 }, { "9007199254740994", 0x1p53 + 2 },
        { "-9223372036854775808", -0x1p63 }, { "18446744073709551616", 0x1p64 },
        { "100000000000000000000", 1e20 },
        { "1e300", 1e300 }, { "0.1", 0.1 }, { "9007199254740993.0", 0x1p53 },     /* no integer: rounded as any other */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[80];
        snprintf(json, sizeof json, "{\"shape\":[],\"padding\":{\"fill\":%s}}", cases[i].text);
        tn_descriptors *set = parse(json);
        CHECK(tn_descriptors_at(set, 0)->padding.fill == cases[i].fill);
        tn_descriptors_free(set);
    }
}

static void members_may_come_in_any_order(void)
{
    tn_descriptors *set =
        parse("{\"values\":[1,2],\"padding\":{\"dims\":[true,false]},\"column_indices\":[0,1],"
              "\"memory\":{\"strides\":[2,1]},\"format\":\"CSR\",\"physical_shape\":[2,3],"
              "\"dtype\":{\"byte_order\":\"little_endian\",\"base_type\":\"UINT8\"},\"shape\":[1,2]}");
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    CHECK(d->rank == 2 && d->physical_shape[1] == 3 && d->padding.dims[0] && d->strides[0].factor == 2);
    CHECK(d->sparse.value_type == TN_UINT8 && d->sparse.nvalues == 2 &&
          ((const uint8_t *)d->sparse.values)[1] == 2);
    CHECK(d->byte_order == TN_LITTLE_ENDIAN);
    tn_descriptors_free(set);
}

/* ---- sparse ---- */

static void coo_objects_are_read(void)
{
    tn_descriptors *set = parse(coo);
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    const tn_wia_sparse *s = &d->sparse;
    CHECK(is(s->format, "COO") && s->rank == 2 && s->shape[0] == 3 && s->shape[1] == 4);
    CHECK(d->rank == 2 && d->dimensions[1].value == 4);
    CHECK(s->has_nnz && s->nnz == 2 && s->index_type == TN_INT32 && s->nindices == 4);
    CHECK(s->indices[0] == 0 && s->indices[1] == 1 && s->indices[2] == 2 && s->indices[3] == 3);
    CHECK(s->value_type == TN_FLOAT16 && s->nvalues == 2 && s->pointers == NULL);
    CHECK(tn_value_get(TN_FLOAT16, s->values, 0).re == 0.5);
    CHECK(tn_value_get(TN_FLOAT16, s->values, 1).re == -HUGE_VAL);
    tn_descriptors_free(set);
}

static void csr_objects_are_read_as_float32_unless_told(void)
{
    tn_descriptors *set = parse(csr);
    const tn_wia_sparse *s = &tn_descriptors_at(set, 0)->sparse;
    CHECK(is(s->format, "CSR") && !s->has_nnz && s->npointers == 3 && s->pointers[2] == 2);
    CHECK(s->nindices == 2 && s->indices[0] == 2 && s->indices[1] == 0);
    CHECK(s->value_type == TN_FLOAT32 && s->nvalues == 2 && ((const float *)s->values)[0] == 1.5f);
    CHECK(signbit(((const float *)s->values)[1]));
    tn_descriptors_free(set);
}

/* One value of a type, read from a document: its code. */
static uint64_t code_of(const char *type, const char *value)
{
    char json[600];
    uint64_t code = 0;
    snprintf(json, sizeof json,
             "{\"format\":\"CSR\",\"shape\":[1,1],\"values\":{\"data\":[%s],\"dtype\":\"%s\"}}", value, type);
    tn_descriptors *set = parse(json);
    const tn_wia_sparse *s = &tn_descriptors_at(set, 0)->sparse;
    unsigned bits = tn_dtype_get(s->value_type)->bits;
    CHECK(s->nvalues == 1);
    memcpy(&code, s->values, bits < 8 ? 1 : bits / 8);
    tn_descriptors_free(set);
    return code;
}

static void integers_of_64_bits_survive(void)
{
    CHECK(code_of("INT64", "-9223372036854775808") == UINT64_C(1) << 63);
    CHECK(code_of("INT64", "9223372036854775807") == INT64_MAX);
    CHECK(code_of("UINT64", "18446744073709551615") == UINT64_MAX);
    CHECK(code_of("INT64", "-9007199254740993") == (uint64_t)INT64_C(-9007199254740993));
    CHECK(code_of("INT8", "-128") == 0x80);
    CHECK(code_of("INT4", "-8") == 0x8);
    CHECK(code_of("tenon:bool", "true") == 1);
    CHECK(code_of("tenon:fx16", "-2") == 0xfffe);
}

static void values_are_rounded_once(void)
{
    CHECK(code_of("FLOAT64", "0.1") == UINT64_C(0x3fb999999999999a));
    CHECK(code_of("FLOAT32", "0.1") == 0x3dcccccd);
    /* half-way between two values, and by less than a double can show above and below it */
    CHECK(code_of("FLOAT32", "16777217") == 0x4b800000);
    CHECK(code_of("FLOAT32", "16777217.00000000000000000001") == 0x4b800001);
    CHECK(code_of("FLOAT16", "2049") == 0x6800);
    CHECK(code_of("FLOAT16", "2049.0000000000000000001") == 0x6801);
    CHECK(code_of("FLOAT16", "2051") == 0x6802);
    CHECK(code_of("FLOAT16", "2050.9999999999999999999") == 0x6801);
    CHECK(code_of("FLOAT16", "-20510000000000000000000001e-22") == 0xe802);
    CHECK(code_of("BFLOAT16", "1.00390625") == 0x3f80);
    CHECK(code_of("BFLOAT16", "1.003906250000000000000000000000000000000000000000000000000000001") == 0x3f81);
    CHECK(code_of("FP8_E4M3", "-0") == 0x80);
    CHECK(code_of("FP8_E5M2", "1e-99999999999999999999") == 0);
    CHECK(code_of("FLOAT32", "0.000000000000000000000000000000000000000000000701e0") == 1);
    CHECK(code_of("FLOAT32", "1e-400") == 0);
    CHECK(code_of("FLOAT16", "0e999999999999999999999") == 0);
    CHECK(code_of("TF32", "1.0009765625") == 0x3f802000);
    CHECK(code_of("tenon:float4_e2m1", "6") == 7);
}

static void what_is_not_finite_is_a_string(void)
{
    CHECK(code_of("FLOAT16", "\"Infinity\"") == 0x7c00);
    CHECK(code_of("FLOAT32", "\"-Infinity\"") == 0xff800000);
    CHECK(code_of("FLOAT32", "\"NaN\"") == 0x7fc00000);
    CHECK(code_of("FLOAT64", "\"NaN\"") == UINT64_C(0x7ff8000000000000));
    CHECK(code_of("FP8_E4M3", "\"NaN\"") == 0x7f);
}

static void packed_and_complex_values_are_read(void)
{
    tn_descriptors *set =
        parse("[{\"format\":\"CSR\",\"shape\":[1,9],\"values\":[1,-2,3],\"dtype\":{\"base_type\":\"INT4\"}},"
              "{\"format\":\"CSR\",\"shape\":[1,1],\"values\":{\"dtype\":\"tenon:complex64\",\"data\":"
              "[[1,-2],[0.5,\"NaN\"]]}},"
              "{\"format\":\"COO\",\"shape\":[1],\"values\":[]}]");
    const tn_wia_sparse *s = &tn_descriptors_at(set, 0)->sparse;
    CHECK(s->value_type == TN_INT4 && s->nvalues == 3 && memcmp(s->values, "\xe1\x03", 2) == 0);
    s = &tn_descriptors_at(set, 1)->sparse;
    CHECK(s->value_type == TN_COMPLEX64 && s->nvalues == 2);
    CHECK(tn_value_get(TN_COMPLEX64, s->values, 0).im == -2 &&
          isnan(tn_value_get(TN_COMPLEX64, s->values, 1).im));
    s = &tn_descriptors_at(set, 2)->sparse;
    CHECK(s->nvalues == 0 && s->values != NULL && s->indices == NULL);
    tn_descriptors_free(set);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(shape_of_a_full_descriptor_is_read),
        TEST(type_and_memory_of_a_full_descriptor_are_read),
        TEST(properties_and_handles_of_a_full_descriptor_are_read),
        TEST(unknown_members_are_kept_in_order_with_the_path_of_their_object),
        TEST(a_shape_alone_is_a_descriptor_and_the_rest_is_marked_as_absent),
        TEST(documents_are_one_descriptor_or_an_array),
        TEST(every_type_of_the_specification_has_its_name),
        TEST(other_types_have_a_prefix_and_what_is_no_type_is_kept),
        TEST(enum_values_have_words),
        TEST(a_shape_is_symbolic_when_it_has_symbols_and_does_not_say),
        TEST(strides_are_products_in_any_order),
        TEST(per_tensor_schemes_have_one_scale),
        TEST(a_scheme_beyond_the_four_is_kept_as_it_is),
        TEST(addresses_are_hexadecimal),
        TEST(without_a_cpu_address_it_is_null),
        TEST(a_fill_is_kept_exactly),
        TEST(members_may_come_in_any_order),
        TEST(coo_objects_are_read),
        TEST(csr_objects_are_read_as_float32_unless_told),
        TEST(integers_of_64_bits_survive),
        TEST(values_are_rounded_once),
        TEST(what_is_not_finite_is_a_string),
        TEST(packed_and_complex_values_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
