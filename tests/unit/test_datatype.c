/* Datatypes: NUMBER|SCALE, what follows from a number spec, the predefined names. */
#include "support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "datatype.h"
#include "random.h"
#include "quant/grammar/datatype_read.h"
#include "tensor/number.h"

static void refused(const char *text, tn_status status, const char *why)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    tn_status found = tn_datatype_parse(text, &d, &err);
    CHECK(tn_datatype_parse(text, &d, NULL) == found);
    if (found != status || strcmp(said_of(&err), why) != 0)
        fail_msg("%s: expected %d <%s> but found %d <%s>", text, status, why, found, line_of(&err));
    CHECK(d == NULL && err.status == status && err.offset == TN_NO_OFFSET);
}

static void bad(const char *text, const char *why) { refused(text, TN_ERR_ARGUMENT, why); }
static void unsupported(const char *text, const char *why) { refused(text, TN_ERR_UNSUPPORTED, why); }

static tn_number_spec number(const char *text)
{
    tn_number_spec n;
    tn_error err = { .text = "" };
    tn_reading r = { .text = text, .at = text, .end = text + strlen(text), .err = &err };
    if (tn_number_read(&r, &n))
        fail_msg("%s: %s", text, line_of(&err));
    return n;
}

/* ---- numbers ---- */

/* Kind, bits, exponent/mantissa bits, bias, what is not finite, emax, emin, largest, midmax, smallest normal
 * and subnormal, integers: as TensorCast has them. */
static const struct { const char *spec, *fields; } derived[] = {
    { "bfloat16",
      "float 16 8/7 127 ieee 127 -126 3.38953139e+38 3.39617753e+38 1.17549435e-38 9.18354962e-41 -" },
    { "e1m2b1fnuz", "int 4 1/2 1 fnuz 0 0 1.75 1.875 1 0.25 -7..7" },
    { "e1m6b1fnuz", "int 8 1/6 1 fnuz 0 0 1.984375 1.9921875 1 0.015625 -127..127" },
    { "e2m1fnuz", "float 4 2/1 1 fnuz 2 0 6 7 1 0.5 -" },
    { "e2m2fnuz", "float 5 2/2 1 fnuz 2 0 7 7.5 1 0.25 -" },
    { "e2m3fnuz", "float 6 2/3 1 fnuz 2 0 7.5 7.75 1 0.125 -" },
    { "e3m0fnuz", "float 4 3/0 3 fnuz 4 -2 16 24 0.25 0.25 -" },
    { "e3m2fnuz", "float 6 3/2 3 fnuz 4 -2 28 30 0.25 0.0625 -" },
    { "e3m3fnuz", "float 7 3/3 3 fnuz 4 -2 30 31 0.25 0.03125 -" },
    { "e3m4b4fnuz", "float 8 3/4 4 fnuz 3 -3 15.5 15.75 0.125 0.0078125 -" },
    { "e3m4b4inuz", "float 8 3/4 4 inuz 3 -3 15 15.25 0.125 0.0078125 -" },
    { "e4m3", "float 8 4/3 7 ieee 7 -6 240 248 0.015625 0.001953125 -" },
    { "e4m3b8fnuz", "float 8 4/3 8 fnuz 7 -7 240 248 0.0078125 0.0009765625 -" },
    { "e4m3b8inuz", "float 8 4/3 8 inuz 7 -7 224 232 0.0078125 0.0009765625 -" },
    { "e4m3fn", "float 8 4/3 7 fn 8 -6 448 464 0.015625 0.001953125 -" },
    { "e4m3fnuz", "float 8 4/3 7 fnuz 8 -6 480 496 0.015625 0.001953125 -" },
    { "e5m0", "exponent 5 5/0 15 ieee - - - - - - -" },
    { "e5m2", "float 8 5/2 15 ieee 15 -14 57344 61440 6.10351562e-05 1.52587891e-05 -" },
    { "e5m2b16fnuz", "float 8 5/2 16 fnuz 15 -15 57344 61440 3.05175781e-05 7.62939453e-06 -" },
    { "e5m2b16inuz", "float 8 5/2 16 inuz 15 -15 49152 53248 3.05175781e-05 7.62939453e-06 -" },
    { "e5m2fnuz", "float 8 5/2 15 fnuz 16 -14 114688 122880 6.10351562e-05 1.52587891e-05 -" },
    { "e5m3", "float 9 5/3 15 ieee 15 -14 61440 63488 6.10351562e-05 7.62939453e-06 -" },
    { "e5m6", "float 12 5/6 15 ieee 15 -14 65024 65280 6.10351562e-05 9.53674316e-07 -" },
    { "e8m0", "exponent 8 8/0 127 ieee - - - - - - -" },
    { "float16", "float 16 5/10 15 ieee 15 -14 65504 65520 6.10351562e-05 5.96046448e-08 -" },
    { "float24",
      "float 24 8/15 127 ieee 127 -126 3.40277175e+38 3.40279771e+38 1.17549435e-38 3.58732407e-43 -" },
    { "float32",
      "float 32 8/23 127 ieee 127 -126 3.40282347e+38 3.40282357e+38 1.17549435e-38 1.40129846e-45 -" },
    { "int16", "int 16 1/14 1 fnuz 0 0 1.99993896 1.99996948 1 6.10351562e-05 -32767..32767" },
    { "int3", "int 3 1/1 1 fnuz 0 0 1.5 1.75 1 0.5 -3..3" },
    { "int4", "int 4 1/2 1 fnuz 0 0 1.75 1.875 1 0.25 -7..7" },
    { "int5", "int 5 1/3 1 fnuz 0 0 1.875 1.9375 1 0.125 -15..15" },
    { "int8", "int 8 1/6 1 fnuz 0 0 1.984375 1.9921875 1 0.015625 -127..127" },
    { "int9", "int 9 1/7 1 fnuz 0 0 1.9921875 1.99609375 1 0.0078125 -255..255" },
    { "uint16", "uint 16 0/16 - None - - - - - - 0..65535" },
    { "uint4", "uint 4 0/4 - None - - - - - - 0..15" },
};

static void put_fields(const tn_number_spec *n, char *text, size_t cap)
{
    static const char *const kinds[] = { "float", "int", "uint", "exponent", "codebook" };
    static const char *const infnans[] = { "ieee", "fn", "fnuz", "inuz" };
    char range[120] = "- - - - - -", integers[40] = "-", bias[12] = "-";
    bool uint = n->kind == TN_NUMBER_UINT;
    if (n->kind == TN_NUMBER_FLOAT || n->kind == TN_NUMBER_INT)
        snprintf(range, sizeof range, "%d %d %.9g %.9g %.9g %.9g", n->emax, n->emin, (double)n->maxfloat,
                 n->midmax, ldexp(1, n->emin), ldexp(1, n->emin - n->mantissa_bits));
    if (n->kind == TN_NUMBER_INT || uint)
        snprintf(integers, sizeof integers, "%d..%d", uint ? 0 : -n->maxint, n->maxint);
    if (!uint)
        snprintf(bias, sizeof bias, "%d", n->bias);
    snprintf(text, cap, "%s %u %u/%u %s %s %s %s", kinds[n->kind], n->bits, n->exponent_bits,
             n->mantissa_bits, bias, uint ? "None" : infnans[n->infnan], range, integers);
}

static void number_specs_have_tensorcasts_derived_fields(void)
{
    for (size_t i = 0; i < sizeof derived / sizeof derived[0]; i++) {
        char text[240];
        tn_number_spec n = number(derived[i].spec);
        put_fields(&n, text, sizeof text);
        assert_string_equal(text, derived[i].fields);
    }
}

static void all_spellings_of_a_number_are_one(void)
{
    static const char *const same[][2] = {
        { "torch.float32", "float32" },      { "e8m23", "float32" },          { "bfloat32", "float32" },
        { "E8M23B127IEEE", "float32" },      { "e5m10", "float16" },          { "Float16", "float16" },
        { "e8m7", "bfloat16" },              { "float24", "e8m15" },          { "bfloat24", "e8m15" },
        { "float9", "e5m3" },                { "float12", "e5m6" },           { "bfloat10", "e8m1" },
        { "float8_e4m3fn", "e4m3fn" },       { "float8e4m3fn", "e4m3fn" },    { "torch.float8_e5m2", "e5m2" },
        { "float8_e4m3fnuz", "e4m3b8fnuz" }, { "e4m3fnuz", "e4m3fnuz" },      { "e4m3b7fnuz", "e4m3fnuz" },
        { "float8_e5m2fnuz", "e5m2b16fnuz" }, { "float8_e4m3b7fnuz", "e4m3fnuz" },
        { "FLOAT8_E4M3FNUZ", "e4m3b8fnuz" },
        { "binary8p3", "e5m2b16inuz" },      { "binary8p2", "e6m1b32inuz" },  { "binary8p6", "e2m5b2inuz" },
        { "e4m3b7", "e4m3" },                { "e4m3ieee", "e4m3" },          { "e05m02", "e5m2" },
        { "e1m6b1fnuz", "int8" },            { "e1m6fnuz", "e1m6fnuz" },      { "INT4", "int4" },
        { "int2", "int2" },                  { "uint1", "uint1" },            { "uint32", "uint32" },
        { "e8m0b127", "e8m0" },              { "float8_e8m0", "e8m0" },       { "e5m0b10", "e5m0b10" },
        { "e3m0fnuz", "e3m0fnuz" },
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        tn_number_spec n = number(same[i][0]), again = number(n.text);
        assert_string_equal(n.text, same[i][1]);
        CHECK(again.kind == n.kind && again.bits == n.bits && again.bias == n.bias &&
              again.infnan == n.infnan);
    }
}

static void numbers_have_the_type_of_the_table_with_their_codes(void)
{
    static const struct { const char *spec; tn_dtype dtype; } types[] = {
        { "float32", TN_FLOAT32 },              { "float16", TN_FLOAT16 },
        { "bfloat16", TN_BFLOAT16 },
        { "e5m2", TN_FLOAT8_E5M2 },             { "e4m3fn", TN_FLOAT8_E4M3FN },
        { "e4m3", TN_FLOAT8_E4M3 },
        { "e4m3b8fnuz", TN_FLOAT8_E4M3FNUZ },   { "e5m2b16fnuz", TN_FLOAT8_E5M2FNUZ },
        { "e3m4", TN_FLOAT8_E3M4 },
        { "e8m0", TN_FLOAT8_E8M0 },             { "e3m2fnuz", TN_FLOAT6_E3M2 },
        { "e2m3fnuz", TN_FLOAT6_E2M3 },
        { "e2m1fnuz", TN_FLOAT4_E2M1 },         { "int8", TN_INT8 },                  { "int4", TN_INT4 },
        { "int2", TN_INT2 },                    { "int16", TN_INT16 },                { "int32", TN_INT32 },
        { "uint8", TN_UINT8 },                  { "uint4", TN_UINT4 },                { "uint2", TN_UINT2 },
        { "uint16", TN_UINT16 },                { "uint32", TN_UINT32 },
        { "e4m3fnuz", TN_UNKNOWN },             { "e5m2fnuz", TN_UNKNOWN },
        { "e4m3b8inuz", TN_UNKNOWN },
        { "e5m2b16inuz", TN_UNKNOWN },          { "e4m3inuz", TN_UNKNOWN },           { "e3m2", TN_UNKNOWN },
        { "e2m3fn", TN_UNKNOWN },               { "e8m10", TN_UNKNOWN },              { "int5", TN_UNKNOWN },
        { "e5m0", TN_UNKNOWN },                 { "e8m0b130", TN_UNKNOWN },
        { "e2m1inuz", TN_UNKNOWN },
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        tn_number_spec n = number(types[i].spec);
        if (n.dtype != types[i].dtype)
            fail_msg("%s: expected type %d but found %d", types[i].spec, types[i].dtype, n.dtype);
        CHECK(n.type.dtype == n.dtype && n.type.bits == n.bits);
    }
}

static double value_of(const tn_number_spec *n, uint64_t code)
{
    tn_number x = tn_number_decode(&n->type, code);
    CHECK(x.class == TN_NUMBER_FINITE);
    return ldexp((double)x.significand, x.exponent) * (x.negative ? -1 : 1);
}

/* Codes count through the numbers, from 0 to the largest, and are what their numbers encode to. */
static void codes_are_the_places_on_the_number_line(void)
{
    static const char *const specs[] = {
        "e2m1fnuz",    "e2m2fnuz", "e2m3fnuz",   "e3m0fnuz",    "e3m2fnuz",   "e3m3fnuz", "e3m4b4fnuz",
        "e3m4b4inuz",  "e4m3",     "e4m3b8fnuz", "e4m3b8inuz",  "e4m3fn",     "e4m3fnuz", "e5m2",
        "e5m2b16inuz", "e5m2fnuz", "e5m3",       "e5m6",        "e1m2fnuz",   "e1m2fn",   "e2m1inuz",
        "e2m3fn",      "e3m2",     "float16",    "e6m1b32inuz", "e2m5b2inuz",
    };
    const tn_cast_options saturate = { .size = sizeof saturate, .overflow = TN_OVERFLOW_SATURATE };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        tn_number_spec n = number(specs[i]);
        tn_encode_rules rules = tn_encode_rules_for(&n.type, &saturate);
        uint32_t top = tn_number_top(&n), index;
        double before = -1;
        for (uint32_t code = 0; code <= top; code++) {
            double value = value_of(&n, code);
            unsigned flags = 0;
            CHECK(value == tn_number_at(&n, code) && value > before);
            CHECK(tn_number_find(&n, value, &index) && index == code);
            CHECK(tn_number_encode(&n.type, &rules, tn_number_decode(&n.type, code), 0, &flags) == code &&
                  flags == 0);
            before = value;
        }
        CHECK(before == (double)n.maxfloat);
        CHECK(!tn_number_find(&n, before * 1.5, &index) && !tn_number_find(&n, -1, &index) &&
              !tn_number_find(&n, NAN, &index));
        CHECK(!tn_number_find(&n, ldexp(1, n.emin - n.mantissa_bits - 1), &index));
    }
}

static void small_floats_have_a_negative_zero_and_no_nan_and_wider_fnuz_the_reverse(void)
{
    static const struct { const char *spec; bool zero, nan; } cases[] = {
        { "e2m1fnuz", true, false },   { "e2m3fnuz", true, false },   { "e3m2fnuz", true, false },
        { "e3m0fnuz", true, false },
        { "e2m3inuz", true, false },   { "e3m3fnuz", false, true },   { "e4m3fnuz", false, true },
        { "e4m3b8inuz", false, true },
        { "e5m2b16fnuz", false, true }, { "e4m3fn", true, true },     { "e5m2", true, true },
        { "e5m6", true, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_number_spec n = number(cases[i].spec);
        tn_number x = tn_number_decode(&n.type, UINT64_C(1) << (n.bits - 1));
        CHECK((x.class == TN_NUMBER_FINITE && x.negative && x.significand == 0) == cases[i].zero);
        CHECK(tn_dtype_has_nan(&n.type) == cases[i].nan);
    }
}

static void a_bad_number_is_refused_at_its_character(void)
{
    bad("e9m3", "\"e9m3\": the exponent has 1 to 8 bits but found 9 at character 2");
    bad("e0m3", "\"e0m3\": the exponent has 1 to 8 bits but found 0 at character 2");
    bad("e4294967300m3",
        "\"e4294967300m3\": the exponent has 1 to 8 bits but found 4294967300 at character 2");
    bad("e5m31", "\"e5m31\": the mantissa has 0 to 30 bits but found 31 at character 4");
    bad("e5m30", "\"e5m30\": a number has at most 32 bits but found 36 at character 1");
    bad("e", "\"e\": expected a number of bits but found the end at character 2");
    bad("e4", "\"e4\": expected m and the bits of the mantissa but found the end at character 3");
    bad("e4x3", "\"e4x3\": expected m and the bits of the mantissa but found \"x3\" at character 3");
    bad("e4m", "\"e4m\": expected a number of bits but found the end at character 4");
    bad("e4m3b", "\"e4m3b\": expected a bias but found the end at character 6");
    bad("e4m3b1000", "\"e4m3b1000\": the bias is 0 to 999 but found 1000 at character 6");
    bad("e4m3fnu", "\"e4m3fnu\": expected the end of the number but found \"u\" at character 7");
    bad("e4m3fnuzfn", "\"e4m3fnuzfn\": expected the end of the number but found \"fn\" at character 9");
    bad("e4m3 ", "\"e4m3 \": expected the end of the number but found \" \" at character 5");
    bad("e1m3", "\"e1m3\": infinity takes the only exponent: expected e2 or more, or fn, fnuz, inuz, but "
                "found e1 at character 1");
    bad("e3m0fn", "\"e3m0fn\": fn and inuz take the only mantissa of the largest exponent: expected m1 or "
                  "more but found m0 at character 1");
    bad("float8", "\"float8\": float has 9 to 32 bits but found 8 at character 6");
    bad("float80", "\"float80\": float has 9 to 32 bits but found 80 at character 6");
    bad("bfloat9", "\"bfloat9\": bfloat has 10 to 32 bits but found 9 at character 7");
    bad("float8_int8", "\"float8_int8\": expected e<X>m<Y> after float8_ but found \"int8\" at character 8");
    bad("float8_e5m10", "\"float8_e5m10\": expected 8 bits after float8 but found 16 at character 7");
    bad("int1|float32", "\"int1|float32\": int has 2 to 32 bits but found 1 at character 4");
    bad("uint33|float32", "\"uint33|float32\": uint has 1 to 32 bits but found 33 at character 5");
    bad("uint|float32", "\"uint|float32\": expected a number of bits but found the end at character 5");
    bad("binary8p1", "\"binary8p1\": expected 2 to 6 after binary8p but found \"1\" at character 9");
    bad("binary8p", "\"binary8p\": expected 2 to 6 after binary8p but found the end at character 9");
    bad("mxfp3", "\"mxfp3\": expected a number (e<X>m<Y>, int<K>, uint<K>, float<N>, bfloat<N>, binary8p<P>) "
                 "but found \"mxfp3\" at character 1");
    bad("", "\"\": expected a number (e<X>m<Y>, int<K>, uint<K>, float<N>, bfloat<N>, binary8p<P>) but found "
            "the end at character 1");
    bad("\xc3\xa9|e9m0", "\"\xc3\xa9|e9m0\": expected a number (e<X>m<Y>, int<K>, uint<K>, float<N>, "
                         "bfloat<N>, binary8p<P>) but found "
                         "\"\xc3\xa9\" at character 1");
    unsupported(
        "e8m3fnuz",
        "\"e8m3fnuz\": numbers from 2^-129 to 2^128 are beyond float32 (2^-149 to 2^127) at character 1");
    unsupported(
        "e4m3b160",
        "\"e4m3b160\": numbers from 2^-162 to 2^-146 are beyond float32 (2^-149 to 2^127) at character 1");
    unsupported(
        "e4m3b148",
        "\"e4m3b148\": numbers from 2^-150 to 2^-134 are beyond float32 (2^-149 to 2^127) at character 1");
    tn_datatype_free(datatype_of("e4m3b147"));
    unsupported(
        "int8|e8m0b10",
        "\"int8|e8m0b10\": numbers from 2^-10 to 2^244 are beyond float32 (2^-149 to 2^127) at character 6");
    unsupported("e2m29fnuz", "\"e2m29fnuz\": a mantissa of 29 bits is beyond float32 (23) at character 1");
}

/* ---- scales ---- */

static void segments_of_a_scale_stand_in_any_order(void)
{
    static const char *const same[][2] = {
        { "e2m1fnuz|t32_e8m0", "e2m1fnuz|e8m0_t32" },
        { "E2M1FNUZ|E8M0_T32", "e2m1fnuz|e8m0_t32" },
        { "uint4|t32_float16_int8", "uint4|float16_int8_t32" },
        { "uint4|float16_t32_int8", "uint4|float16_int8_t32" },
        { "e4m3fn|t8_e8m0_t16", "e4m3fn|e8m0_t8_t16" },
        { "e4m3fn|e8m0_t8d2_t16d1", "e4m3fn|e8m0_t16d1_t8d2" },
        { "int8|t0d1_torch.float32", "int8|float32_t0d1" },
        { "e4m3fn|torch.float8_e4m3fnuz_t16", "e4m3fn|e4m3b8fnuz_t16" },
        { "e2m1fnuz|MULTI_float32_e4m3fn_t16", "e2m1fnuz|multi_float32_e4m3fn_t16" },
        { "e2m1fnuz|multi_t16_float32_float8_e4m3fn", "e2m1fnuz|multi_float32_e4m3fn_t16" },
        { "e2m1fnuz|e8m0_t032s08o1", "e2m1fnuz|e8m0_t32s8o1" },
        { "e2m1fnuz|e8m0_t32s8o1d0n2m4", "e2m1fnuz|e8m0_t32s8o1d0n2m4" },
        { "Float32|N2M4", "float32|n2m4" },
        { "torch.bfloat16|n02m04d1", "bfloat16|n2m4d1" },
        { "e4m3fn|n15m16d0", "e4m3fn|n15m16d0" },
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        tn_datatype *d = datatype_of(same[i][0]);
        assert_string_equal(tn_datatype_text(d), same[i][1]);
        tn_datatype_free(d);
    }
}

static void a_scale_says_what_is_tiled_and_how(void)
{
    tn_datatype *d = datatype_of("int8|float32");
    CHECK(d->scope == TN_SCOPE_TENSOR && d->dims == 0 && !d->has_zero && !d->has_tensor_scale &&
          d->scale.dtype == TN_FLOAT32);
    tn_datatype_free(d);
    d = datatype_of("e5m2");
    CHECK(d->scope == TN_SCOPE_NONE && d->dims == 0 && d->number.dtype == TN_FLOAT8_E5M2);
    tn_datatype_free(d);
    d = datatype_of("int8|float32_t0d1");
    CHECK(d->scope == TN_SCOPE_CHANNEL && d->dims == 1 && d->dim == 1 && d->tile[0] == 0);
    tn_datatype_free(d);
    d = datatype_of("uint4|bfloat16_int8_t0_t32");
    CHECK(d->scope == TN_SCOPE_TILE && d->dims == 2 && d->dim == -2 && d->tile[0] == 0 && d->tile[1] == 32);
    CHECK(d->has_zero && d->zero.kind == TN_NUMBER_INT && d->zero.bits == 8);
    tn_datatype_free(d);
    d = datatype_of("e2m1fnuz|e8m0_t32s8o2d3n2m4");
    CHECK(d->scope == TN_SCOPE_TILE && d->dims == 1 && d->dim == 3 && d->tile[0] == 32 && d->tile[1] == 1);
    CHECK(d->subtile == 8 && d->offset_bits == 2 && d->keep == 2 && d->of == 4);
    tn_datatype_free(d);
    d = datatype_of("float32|n2m4");
    CHECK(d->scope == TN_SCOPE_NONE && d->dims == 1 && d->dim == -1 && d->tile[0] == 32 && d->keep == 2 &&
          d->of == 4);
    tn_datatype_free(d);
    d = datatype_of("float16|n1m8d0");
    CHECK(d->scope == TN_SCOPE_NONE && d->dims == 1 && d->dim == 0 && d->tile[0] == 8 && d->keep == 1 &&
          d->of == 8);
    tn_datatype_free(d);
    d = datatype_of("nvfp4");
    CHECK(d->has_tensor_scale && d->tensor_scale.dtype == TN_FLOAT32 && d->scale.dtype == TN_FLOAT8_E4M3FN &&
          d->dim == -1);
    tn_datatype_free(d);
}

static void sparsity_alone_is_refused_where_it_is_wrong(void)
{
    bad("float32|n", "\"float32|n\": expected values to keep of 1 to 15 but found none at character 10");
    bad("float32|n2", "\"float32|n2\": expected m and the size of a group but found none at character 11");
    bad("float32|n2m3", "\"float32|n2m3\": a group has 2, 4, 8 or 16 values but found 3 at character 12");
    bad("float32|n4m4",
        "\"float32|n4m4\": expected fewer than 4 of 4 values to keep but found 4 at character 10");
    bad("float32|n2m4d", "\"float32|n2m4d\": expected a dimension of 0 to 63 but found none at character 14");
    bad("float32|n2m4_t32",
        "\"float32|n2m4_t32\": expected n<N>m<M>[d<D>] but found \"_t32\" at character 13");
    bad("int8|n2m4", "\"int8|n2m4\": int8 needs a scale: expected one, as in float32_t0n2m4, but found none "
                     "at character 6");
    bad("cb41fi_e2m2fnuz|n2m4d0",
        "\"cb41fi_e2m2fnuz|n2m4d0\": cb41fi_e2m2fnuz needs a scale: expected one, as in float32_t0n2m4, but "
        "found none at character 17");
}

static void a_bad_scale_is_refused_at_its_character(void)
{
    bad("int8|", "\"int8|\": expected a scale but found the end at character 6");
    bad("int8|t32", "\"int8|t32\": expected the number of a scale but found 0 at character 6");
    bad("int8|float32_", "\"int8|float32_\": expected a number (e<X>m<Y>, int<K>, uint<K>, float<N>, "
                         "bfloat<N>, binary8p<P>) but found "
                         "the end at character 14");
    bad("int8|float32|t32",
        "\"int8|float32|t32\": expected the end of the number but found \"|t32\" at character 13");
    bad("int8|multi_float32", "\"int8|multi_float32\": expected the number of a scale and before it that of "
                              "the tensor's but found 1 at "
                              "character 6");
    bad("e4m3fn|float32_float16_int8_e8m0",
        "\"e4m3fn|float32_float16_int8_e8m0\": expected at most 3 numbers but found a fourth at "
        "character 29");
    bad("int8|cb41fi_e2m2fnuz",
        "\"int8|cb41fi_e2m2fnuz\": expected a float or an exponent but found a codebook at character 6");
    bad("int8|int8", "\"int8|int8\": a scale is a float or an exponent but found int8 at character 6");
    bad("uint8|e8m0_int8",
        "\"uint8|e8m0_int8\": a scale with a zero point is a float but found e8m0 at character 7");
    bad("uint8|float32_uint8",
        "\"uint8|float32_uint8\": a zero point is a float or an int but found uint8 at character 15");
    bad("uint8|float32_e8m0",
        "\"uint8|float32_e8m0\": a zero point is a float or an int but found e8m0 at character 15");
}

static void a_bad_tile_is_refused_at_its_character(void)
{
    bad("int8|float32_t", "\"int8|float32_t\": expected a tile of 0 to 1024 but found none at character 15");
    bad("int8|float32_t2048",
        "\"int8|float32_t2048\": expected a tile of 0 to 1024 but found \"2048\" at character 15");
    bad("int8|e8m0_t3", "\"int8|e8m0_t3\": a tile is 0 (all of the dimension) or a power of two of 2 to 1024 "
                        "but found 3 at character 12");
    bad("int8|e8m0_t1", "\"int8|e8m0_t1\": a tile is 0 (all of the dimension) or a power of two of 2 to 1024 "
                        "but found 1 at character 12");
    bad("int8|e8m0_t32x",
        "\"int8|e8m0_t32x\": expected t<T>[s<S>][o<O>][d<D>][n<N>m<M>] but found \"x\" at character 14");
    bad("int8|e8m0_t32s3o1",
        "\"int8|e8m0_t32s3o1\": a tile of 32 cannot be cut into subtiles of 3 at character 15");
    bad("int8|e8m0_t32s1o1",
        "\"int8|e8m0_t32s1o1\": expected a subtile of 2 to 1024 but found \"1\" at character 15");
    bad("int8|e8m0_t0s4o1",
        "\"int8|e8m0_t0s4o1\": a tile of 0 cannot be cut into subtiles of 4 at character 14");
    bad("int8|e8m0_t32o1", "\"int8|e8m0_t32o1\": offset bits are of a subtile: expected s<S> before them but "
                           "found none at character 14");
    bad("int8|e8m0_t32s4o3",
        "\"int8|e8m0_t32s4o3\": expected offset bits of 1 to 2 but found \"3\" at character 17");
    bad("int8|e8m0_t32d64",
        "\"int8|e8m0_t32d64\": expected a dimension of 0 to 63 but found \"64\" at character 15");
    bad("int8|e8m0_t32n4m4",
        "\"int8|e8m0_t32n4m4\": expected fewer than 4 of 4 values to keep but found 4 at character 15");
    bad("int8|e8m0_t32n2m3",
        "\"int8|e8m0_t32n2m3\": a group has 2, 4, 8 or 16 values but found 3 at character 17");
    bad("int8|e8m0_t32n3m4", "\"int8|e8m0_t32n3m4\": a tile of 32 kept values is no whole number of groups "
                             "that keep 3 at character 15");
    bad("int8|e8m0_t2n4m8", "\"int8|e8m0_t2n4m8\": a tile of 2 kept values is no whole number of groups that "
                            "keep 4 at character 14");
    bad("int8|e8m0_t32s2o1n4m8",
        "\"int8|e8m0_t32s2o1n4m8\": a subtile of 2 kept values is no whole number of groups that keep 4 at "
        "character 19");
    bad("int8|e8m0_t32n2",
        "\"int8|e8m0_t32n2\": expected m and the size of a group but found none at character 16");
    bad("int8|e8m0_t0_t0", "\"int8|e8m0_t0_t0\": expected all of one dimension at most but found all of "
                           "both: that is a scale without tiles "
                           "at character 14");
    bad("int8|e8m0_t16d0_t16", "\"int8|e8m0_t16d0_t16\": expected a dimension for both tiles or for none but "
                               "found one at character 17");
    bad("int8|e8m0_t16d0_t16d2",
        "\"int8|e8m0_t16d0_t16d2\": expected tiles of adjacent dimensions but found 0 and 2 at character 17");
    bad("int8|e8m0_t16d1_t16d1",
        "\"int8|e8m0_t16d1_t16d1\": expected tiles of adjacent dimensions but found 1 and 1 at character 17");
    bad("int8|e8m0_t8_t8_t8",
        "\"int8|e8m0_t8_t8_t8\": expected at most 2 tiles but found a third at character 17");
    bad("int8|e8m0_t0_t16s4o1", "\"int8|e8m0_t0_t16s4o1\": subtiles need tiles of a fixed size but found all "
                                "of a dimension at character 11");
    unsupported("int8|e8m0_t16s4_t16", "\"int8|e8m0_t16s4_t16\": subtiles are along the second of two "
                                       "dimensions: expected s there but found it "
                                       "in the first at character 11");
    unsupported(
        "int8|e8m0_t16_t16n2m4",
        "\"int8|e8m0_t16_t16n2m4\": matrix sparsity is not supported: a 2D mask has to keep as many values "
        "along both axes, and data cannot be compressed along two at character 15");
}

static void numbers_and_scales_that_do_not_go_together_are_refused(void)
{
    bad("int8",
        "\"int8\": int8 needs a scale: expected | and one, as in |float32, but found the end at character 5");
    bad("e8m0", "\"e8m0\": expected a number but found e8m0, which only scales others at character 1");
    bad("e8m0|float32",
        "\"e8m0|float32\": expected a number but found e8m0, which only scales others at character 1");
    bad("mxfp4|e8m0",
        "\"mxfp4|e8m0\": expected a number but found mxfp4, which has a scale already at character 1");
    bad("uint8|float32",
        "\"uint8|float32\": uint8 needs a zero point, as in float32_int8, but found none at character 7");
    bad("int8|float32_int8", "\"int8|float32_int8\": a zero point is for unsigned integers but found one for "
                             "int8 at character 14");
    bad("e4m3fn|e5m3_t32s4o1",
        "\"e4m3fn|e5m3_t32s4o1\": offsets are of exponents: expected a scale such as e8m0 but found e5m3 at "
        "character 13");
    bad("int8|e8m0_t32s4", "\"int8|e8m0_t32s4\": subtiles are for a codebook's mappings or for offsets (o1, "
                           "o2) but found int8 without at "
                           "character 11");
    bad("e4m3fn|multi_float32_e4m3fn", "\"e4m3fn|multi_float32_e4m3fn\": a tensor with two scales needs "
                                       "tiles for one of them but found none "
                                       "at character 8");
    bad("cb41fi_e2m2fnuz", "\"cb41fi_e2m2fnuz\": cb41fi_e2m2fnuz needs a scale: expected | and one, as in "
                           "|float32, but found the end at "
                           "character 16");
    unsupported(
        "float24|float32",
        "\"float24|float32\": a scaled number has at most 16 bits but found e8m15 of 24 at character 1");
    unsupported("cb41fi_e2m2fnuz|e8m0_t32s4o1",
                "\"cb41fi_e2m2fnuz|e8m0_t32s4o1\": a subtile has a mapping or an offset, not both at "
                "character 22");
    unsupported("e4m3fn|multi_float16_e4m3fn_t16",
                "\"e4m3fn|multi_float16_e4m3fn_t16\": a tensor scale with tile scales is "
                "float32 but found float16 at character 14");
    unsupported("uint8|float32_float16_int8_t16",
                "\"uint8|float32_float16_int8_t16\": a tensor scale with tile scales is for "
                "floats with float scales but found uint8 with float16 and a zero point at character 7");
    unsupported("int8|multi_float32_e4m3fn_t16",
                "\"int8|multi_float32_e4m3fn_t16\": a tensor scale with tile scales is for floats "
                "with float scales but found int8 with e4m3fn at character 6");
}

/* ---- names ---- */

static void every_name_is_its_text(void)
{
    size_t n = 0;
    for (const tn_datatype_name *name; (name = tn_datatype_at(n)); n++) {
        tn_datatype *d = datatype_of(name->name), *again = datatype_of(name->text);
        assert_string_equal(tn_datatype_text(d), name->text);
        assert_string_equal(tn_datatype_text(again), name->text);
        CHECK(name->family[0]);
        for (size_t i = 0; i < n; i++)
            CHECK(strcmp(tn_datatype_at(i)->name, name->name) != 0);
        tn_datatype_free(again);
        tn_datatype_free(d);
    }
    assert_int_equal(n, 233);
    CHECK(tn_datatype_at(SIZE_MAX) == NULL);
}

/* The names that the two generations of TensorCast define, a few of each kind. */
static void names_mean_what_was_decided(void)
{
    static const char *const names[][2] = {
        { "mxfp4", "e2m1fnuz|e8m0_t32" }, { "mxfp8", "e4m3fn|e8m0_t32" }, { "mxbf8", "e5m2|e8m0_t32" },
        { "mxfp6", "e2m3fnuz|e8m0_t32" }, { "mxbf6", "e3m2fnuz|e8m0_t32" },
        { "mxfp6e3", "e3m2fnuz|e8m0_t32" }, { "nvfp4", "e2m1fnuz|multi_float32_e4m3fn_t16" },
        { "nvfp4e2", "e2m1fnuz|e4m3_t16" }, { "nvf4", "e2m1fnuz|e4m3_t16" },
        { "nvf4s", "e2m1fnuz|e4m3_t16_t16" }, { "mxfp4s", "e2m1fnuz|e8m0_t32_t32" },
        { "mxfp4s16", "e2m1fnuz|e8m0_t16_t16" }, { "mxfp8t16", "e4m3fn|e8m0_t16" },
        { "mxint4t16s", "int4|e8m0_t16_t16" }, { "mx9", "int8|e8m0_t16s2o1" }, { "mx6", "int5|e8m0_t16s2o1" },
        { "mx4", "int3|e8m0_t16s2o1" }, { "bfp16", "int8|e8m0_t8" }, { "uint8_ff", "uint8|float16_float16" },
        { "uint8_FF", "uint8|float32_float32" }, { "uint8_bi", "uint8|bfloat16_int8" },
        { "binary8p4", "e4m3b8inuz" }, { "fp8n", "e4m3b8fnuz" }, { "fp8n_F", "e4m3fnuz|float32" },
        { "float8_e4m3fnuz", "e4m3b8fnuz" }, { "int8_nc", "int8|e4m3_t0" },
        { "icb44fi4_f32", "icb44fi_e4m3fn|e5m0_t32" }, { "icb44fi2_f32s8", "icb44fi_e2m3fnuz|e5m3_t32s8" },
        { "mxfp4f4", "cb42f1346_e2m3fnuz|e8m0_t32s8" }, { "e1m2b1_f32", "int4|e5m3_t32" },
        { "MXFP4", "e2m1fnuz|e8m0_t32" }, { "NvFp4", "e2m1fnuz|multi_float32_e4m3fn_t16" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tn_datatype *d = datatype_of(names[i][0]);
        assert_string_equal(tn_datatype_text(d), names[i][1]);
        tn_datatype_free(d);
    }
    bad("UINT8_FF", "\"UINT8_FF\" could be uint8_FF or uint8_ff: expected one of them, in its own case");
}

/* As in a cell of a table: a bar needs an escape. */
static void put_cell(char *cell, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            *cell++ = '\\';
        *cell++ = *text;
    }
    *cell = '\0';
}

static void the_page_lists_every_name(void)
{
    FILE *file = fopen(TEST_DOCS "/datatypes.md", "r");
    char line[400], expected[400], cell[200];
    size_t next = 0;
    bool among = false;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "<!-- names: ", 12) == 0)
            among = strncmp(line + 12, "begin", 5) == 0;
        if (!among || strncmp(line, "| `", 3) != 0)
            continue;
        const tn_datatype_name *name = tn_datatype_at(next++);
        assert_non_null(name);
        tn_datatype *d = datatype_of(name->name);
        put_cell(cell, name->text);
        snprintf(expected, sizeof expected, "| `%s` | `%s` | %g |\n", name->name, cell, tn_datatype_bits(d));
        tn_datatype_free(d);
        assert_string_equal(line, expected);
    }
    fclose(file);
    CHECK(next > 0 && tn_datatype_at(next) == NULL);
}

/* ---- any text ---- */

static void append(char *text, size_t cap, const char *more)
{
    size_t n = strlen(text);
    snprintf(text + n, cap - n, "%s", more);
}

/* A spec of the grammar's words: more of them right than wrong. */
static void random_spec(char *text, size_t cap)
{
    static const char *const numbers[] = {
        "e2m1fnuz", "e4m3fn", "int4", "int8", "uint4", "uint8", "float8_e5m2fnuz", "e3m2b5fn",
        "cb41fi_e2m2fnuz", "icb44fi_e4m3fn", "binary8p4", "cb31s1p2_e3m2fnuz", "int12", "float16",
        "torch.bfloat16", "cb42f01e1i3_e2m4",
    };
    static const char *const scales[] = { "e8m0", "e5m0", "float32", "e4m3fn", "bfloat16", "e5m3",
                                          "float8_e4m3fn", "torch.float16", "int8" };
    static const char *const zeros[] = { "", "", "_int8", "_int4", "_float16", "_e5m6" };
    static const char *const tiles[] = { "", "_t32", "_t16", "_t0", "_t64s8", "_t32s4o1", "_t8d0", "_t16d1",
                                         "_t32n2m4", "_t16s4o2d2n1m8",
                                         "_t0n3m4", "_t8_t16", "_t32d0_t2d1", "_t16_t32s8", "_t8_t32s4o2" };
    const char *first = numbers[below(16)];
    text[0] = '\0';
    append(text, cap, first);
    append(text, cap, "|");
    append(text, cap, below(8) ? "" : "multi_float32_");
    append(text, cap, scales[below(9)]);
    append(text, cap, zeros[below(first[0] == 'u' || !below(8) ? 6 : 2)]);
    append(text, cap, tiles[below(15)]);
    for (char *p = text; *p; p++)
        if (*p >= 'a' && *p <= 'z' && below(4) == 0)
            *p = (char)(*p - 'a' + 'A');
}

static bool same_number(const tn_number_spec *a, const tn_number_spec *b)
{
    return a->kind == b->kind && strcmp(a->text, b->text) == 0 && a->bits == b->bits &&
           a->exponent_bits == b->exponent_bits && a->mantissa_bits == b->mantissa_bits &&
           a->bias == b->bias && a->infnan == b->infnan && a->emax == b->emax && a->emin == b->emin &&
           a->maxfloat == b->maxfloat && a->midmax == b->midmax && a->maxint == b->maxint &&
           a->dtype == b->dtype && a->type.kind == b->type.kind && a->type.specials == b->type.specials;
}

static bool same_codebook(const tn_codebook *a, const tn_codebook *b)
{
    size_t n = (size_t)a->mappings * a->values;
    return a->index_bits == b->index_bits && a->meta_bits == b->meta_bits &&
           same_number(&a->compute, &b->compute) && a->mappings == b->mappings && a->values == b->values &&
           (!n || memcmp(a->value, b->value, n * sizeof *a->value) == 0);
}

static bool same(const tn_datatype *a, const tn_datatype *b)
{
    return strcmp(a->text, b->text) == 0 && same_number(&a->number, &b->number) &&
           same_codebook(&a->codebook, &b->codebook) && a->scope == b->scope && a->has_zero == b->has_zero &&
           a->has_tensor_scale == b->has_tensor_scale && same_number(&a->tensor_scale, &b->tensor_scale) &&
           same_number(&a->scale, &b->scale) && same_number(&a->zero, &b->zero) && a->dims == b->dims &&
           a->dim == b->dim && a->tile[0] == b->tile[0] && a->tile[1] == b->tile[1] &&
           a->subtile == b->subtile && a->offset_bits == b->offset_bits && a->keep == b->keep &&
           a->of == b->of;
}

static void the_text_of_a_datatype_reads_back_the_same(void)
{
    size_t read = 0;
    for (int i = 0; i < 20000; i++) {
        char text[200];
        tn_datatype *d;
        random_spec(text, sizeof text);
        if (tn_datatype_parse(text, &d, NULL))
            continue;
        tn_datatype *again = datatype_of(tn_datatype_text(d));
        if (!same(d, again))
            fail_msg("%s: %s reads back as %s", text, tn_datatype_text(d), tn_datatype_text(again));
        tn_datatype_free(again);
        tn_datatype_free(d);
        read++;
    }
    CHECK(read > 6000 && read < 16000);
    for (size_t i = 0; tn_datatype_at(i); i++) {
        tn_datatype *d = datatype_of(tn_datatype_at(i)->name), *again = datatype_of(tn_datatype_text(d));
        CHECK(same(d, again));
        tn_datatype_free(again);
        tn_datatype_free(d);
    }
}

/* Read or refused with a place inside the text. */
static void survives(const char *text, size_t n)
{
    char *copy = (char *)exact_copy(text, n + 1);
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    copy[n] = '\0';
    tn_status status = tn_datatype_parse(copy, &d, &err);
    if (status == TN_OK) {
        tn_datatype *again = datatype_of(tn_datatype_text(d));
        CHECK(tn_datatype_bits(d) > 0);
        assert_string_equal(tn_datatype_text(again), tn_datatype_text(d));
        tn_datatype_free(again);
    } else {
        const char *place = strstr(line_of(&err), " at character ");
        CHECK((status == TN_ERR_ARGUMENT || status == TN_ERR_UNSUPPORTED) && err.status == status && !d);
        CHECK(place ? strtoul(place + 14, NULL, 10) <= strlen(copy) + 1
                    : strstr(line_of(&err), " could be ") != NULL);
    }
    tn_datatype_free(d);
    free(copy);
}

static void no_truncated_or_flipped_text_does_harm(void)
{
    static const char *const more[] = {
        "uint8|multi_float32_float16_int8_t1024s1024o2d62_t1024d63n15m16",
        "cb88f01234567e0123i01234567e0123p1s1_float32|float32_t32s8",
        "icb48f9i9p99s99p88s88p77s77_e8m23|float32_t32", "torch.float8_e4m3b8fnuz",
        "e2m1fnuz|t32s8o2d3n2m4_e8m0", "bfloat16|n2m4d12", "cb31[0.5:1:1.50;1:2.0e0:3]_e2m3fnuz|e8m0_t32s8",
    };
    const size_t n_more = sizeof more / sizeof *more;
    for (size_t i = 0;; i++) {
        const tn_datatype_name *name = i < n_more ? NULL : tn_datatype_at((i - n_more) / 2);
        if (i >= n_more && !name)
            break;
        const char *text = !name ? more[i] : i % 2 ? name->name : name->text;
        size_t n = strlen(text);
        for (size_t k = 0; k <= n; k++)
            survives(text, k);
        char *flipped = (char *)exact_copy(text, n + 1);
        for (size_t k = 0; k < n; k++) {
            for (int bit = 0; bit < 8; bit++) {
                flipped[k] = (char)(text[k] ^ 1 << bit);
                survives(flipped, n);
            }
            flipped[k] = text[k];
        }
        free(flipped);
    }
}

static void long_and_wild_text_is_refused_with_a_place(void)
{
    char *text = malloc(100001);
    assert_non_null(text);
    for (int kind = 0; kind < 4; kind++) {
        memset(text, "9_t\xff"[kind], 100000);
        memcpy(text, kind == 0 ? "e" : "int8|e8m0_t", kind == 0 ? 1 : 11);
        survives(text, 100000);
    }
    free(text);
    bad("e2m1fnuz|e8m0_\xff", "\"e2m1fnuz|e8m0_\\xff\": expected a number (e<X>m<Y>, int<K>, uint<K>, "
                              "float<N>, bfloat<N>, binary8p<P>) but "
                              "found \"\\xff\" at character 15");
    tn_error err = { .text = "" };
    tn_datatype *d;
    CHECK(tn_datatype_parse(NULL, &d, &err) == TN_ERR_ARGUMENT && err.text[0]);
    CHECK(tn_datatype_parse("mxfp4", NULL, &err) == TN_ERR_ARGUMENT);
    tn_datatype_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(number_specs_have_tensorcasts_derived_fields),
        TEST(all_spellings_of_a_number_are_one),
        TEST(numbers_have_the_type_of_the_table_with_their_codes),
        TEST(codes_are_the_places_on_the_number_line),
        TEST(small_floats_have_a_negative_zero_and_no_nan_and_wider_fnuz_the_reverse),
        TEST(a_bad_number_is_refused_at_its_character),
        TEST(segments_of_a_scale_stand_in_any_order),
        TEST(a_scale_says_what_is_tiled_and_how),
        TEST(sparsity_alone_is_refused_where_it_is_wrong),
        TEST(a_bad_scale_is_refused_at_its_character),
        TEST(a_bad_tile_is_refused_at_its_character),
        TEST(numbers_and_scales_that_do_not_go_together_are_refused),
        TEST(every_name_is_its_text),
        TEST(names_mean_what_was_decided),
        TEST(the_page_lists_every_name),
        TEST(the_text_of_a_datatype_reads_back_the_same),
        TEST(no_truncated_or_flipped_text_does_harm),
        TEST(long_and_wild_text_is_refused_with_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
