#include "support.h"
#include "types_table.h"

#include <ctype.h>
#include <locale.h>

#include <tenon/dtype.h>

static void every_type_has_a_consistent_row(void)
{
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *row = tn_dtype_get((tn_dtype)i);
        assert_non_null(row);
        CHECK(row->dtype == (tn_dtype)i && row->name && row->short_name);
        CHECK(row->kind != TN_KIND_NONE);
        unsigned unit = row->kind == TN_KIND_COMPLEX ? row->bits / 2u : row->bits;
        CHECK(row->swap_bytes == (unit < 8 ? 1 : unit / 8));
        bool has_fields = row->kind == TN_KIND_FLOAT || row->kind == TN_KIND_COMPLEX;
        CHECK((row->exponent_bits != 0) == has_fields);
        CHECK(has_fields || row->specials == TN_SPECIALS_NONE);
        if (row->dtype == TN_TF32)
            CHECK(row->bits == 32 && row->exponent_bits == 8 && row->mantissa_bits == 10);
        else if (row->dtype == TN_FLOAT8_E8M0)
            CHECK(row->exponent_bits == 8 && row->mantissa_bits == 0);
        else if (has_fields)
            CHECK(1u + row->exponent_bits + row->mantissa_bits == unit);
    }
}

static void what_is_no_type_has_no_row(void)
{
    CHECK(tn_dtype_get(TN_UNKNOWN) == NULL);
    CHECK(tn_dtype_get(TN_DTYPE_COUNT) == NULL);
    CHECK(tn_dtype_get((tn_dtype)1000000) == NULL);
    CHECK(tn_dtype_get((tn_dtype)-1) == NULL);
}

/* The names in each ecosystem of one row, NULL where there is none. */
#define NAMES 8
static void names_of(const tn_dtype_info *row, const char *names[NAMES])
{
    const char *all[NAMES] = { row->name, row->short_name, row->wia, row->ztensor,
                               row->safetensors, row->numpy, row->torch, row->mli };
    memcpy(names, all, sizeof all);
}

static void every_name_gives_its_row(void)
{
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const char *names[NAMES];
        names_of(tn_dtype_get((tn_dtype)i), names);
        for (int k = 0; k < NAMES; k++)
            if (names[k])
                CHECK(tn_dtype_parse(names[k]) == (tn_dtype)i);
    }
}

static void names_are_found_in_either_case(void)
{
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const char *names[NAMES];
        names_of(tn_dtype_get((tn_dtype)i), names);
        for (int k = 0; k < NAMES; k++) {
            if (!names[k] || strchr("<|", names[k][0]))
                continue;
            char upper[40] = "", lower[40] = "";
            for (size_t c = 0; names[k][c]; c++) {
                upper[c] = (char)toupper((unsigned char)names[k][c]);
                lower[c] = (char)tolower((unsigned char)names[k][c]);
            }
            CHECK(tn_dtype_parse(upper) == (tn_dtype)i);
            CHECK(tn_dtype_parse(lower) == (strcmp(lower, "f4") == 0 ? TN_UNKNOWN : (tn_dtype)i));
        }
    }
}

static void codes_name_one_type_each(void)
{
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *a = tn_dtype_get((tn_dtype)i);
        for (int k = i + 1; k < TN_DTYPE_COUNT; k++) {
            const tn_dtype_info *b = tn_dtype_get((tn_dtype)k);
            CHECK(a->btf < 0 || a->btf != b->btf);
            CHECK(a->dlpack_code < 0 || a->dlpack_code != b->dlpack_code || a->bits != b->bits);
        }
    }
}

typedef struct spelling {
    const char *text;
    tn_dtype    dtype;
} spelling;

static void check_spellings(const spelling *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tn_dtype_parse(list[i].text) != list[i].dtype)
            print_error("\"%s\" gave %d\n", list[i].text, (int)tn_dtype_parse(list[i].text));
        CHECK(tn_dtype_parse(list[i].text) == list[i].dtype);
    }
}
#define CHECK_SPELLINGS(list) check_spellings(list, sizeof list / sizeof list[0])

static void common_spellings_are_known(void)
{
    static const spelling list[] = {
        { "half", TN_FLOAT16 }, { "float", TN_FLOAT32 }, { "double", TN_FLOAT64 }, { "bfloat", TN_BFLOAT16 },
        { "fp16", TN_FLOAT16 }, { "FP32", TN_FLOAT32 }, { "fp64", TN_FLOAT64 }, { "int", TN_INT32 },
        { "long", TN_INT64 }, { "short", TN_INT16 }, { "e4m3fn", TN_FLOAT8_E4M3FN },
        { "E5M2", TN_FLOAT8_E5M2 },
        { "e3m4", TN_FLOAT8_E3M4 }, { "e2m1", TN_FLOAT4_E2M1 }, { "fp4", TN_FLOAT4_E2M1 },
        { "e2m3", TN_FLOAT6_E2M3 },
        { "e3m2", TN_FLOAT6_E3M2 }, { "float8_e8m0fnu", TN_FLOAT8_E8M0 }, { "float4_e2m1fn", TN_FLOAT4_E2M1 },
        { "FLOAT8E4M3FN", TN_FLOAT8_E4M3FN }, { "cdouble", TN_COMPLEX128 },
        { "torch.float32", TN_FLOAT32 }, { "torch.half", TN_FLOAT16 },
        { "torch.float4_e2m1fn_x2", TN_FLOAT4_E2M1 },
    };
    CHECK_SPELLINGS(list);
}

static void infinities_tell_the_e4m3_types_apart(void)
{
    static const spelling list[] = {
        { "F8_E4M3", TN_FLOAT8_E4M3FN }, { "FP8_E4M3", TN_FLOAT8_E4M3FN },
        { "float8_e4m3fn", TN_FLOAT8_E4M3FN },
        { "float8_e4m3", TN_FLOAT8_E4M3 }, { "f8e4m3", TN_FLOAT8_E4M3 }, { "e4m3", TN_UNKNOWN },
        { "fp8", TN_UNKNOWN },
    };
    CHECK_SPELLINGS(list);
}

static void a_byte_order_mark_makes_a_numpy_code(void)
{
    static const spelling list[] = {
        { "<i4", TN_INT32 }, { ">i4", TN_INT32 }, { "=i4", TN_INT32 }, { "i4", TN_INT4 },
        { "<i8", TN_INT64 }, { "i8", TN_INT8 }, { "|u1", TN_UINT8 }, { "<u2", TN_UINT16 }, { "u2", TN_UINT2 },
        { "<f8", TN_FLOAT64 }, { ">f4", TN_FLOAT32 }, { "<f2", TN_FLOAT16 }, { "|b1", TN_BOOL },
        { "<c8", TN_COMPLEX64 }, { ">c16", TN_COMPLEX128 },
        { "f4", TN_UNKNOWN }, { "F4", TN_FLOAT4_E2M1 }, { "torch.f4", TN_UNKNOWN },
        { "f8", TN_UNKNOWN }, { "F8", TN_UNKNOWN }, { "f2", TN_UNKNOWN },
        { "<F8", TN_UNKNOWN }, { "<F4", TN_UNKNOWN }, { "<f32", TN_UNKNOWN }, { "<float32", TN_UNKNOWN },
        { "<bfloat16", TN_UNKNOWN }, { "<", TN_UNKNOWN }, { "<<f4", TN_UNKNOWN }, { "|", TN_UNKNOWN },
    };
    CHECK_SPELLINGS(list);
}

static void other_texts_are_unknown(void)
{
    static const spelling list[] = {
        { "", TN_UNKNOWN }, { " ", TN_UNKNOWN }, { "f", TN_UNKNOWN }, { "float3", TN_UNKNOWN },
        { "float322", TN_UNKNOWN },
        { "float32 ", TN_UNKNOWN }, { " float32", TN_UNKNOWN }, { "float32\n", TN_UNKNOWN },
        { "float-32", TN_UNKNOWN },
        { "torch.", TN_UNKNOWN }, { "torch", TN_UNKNOWN }, { "torch.torch.float32", TN_UNKNOWN },
        { "torch.<f4", TN_UNKNOWN }, { "int3", TN_UNKNOWN }, { "unknown", TN_UNKNOWN },
        { "MLI_EL_FX_4", TN_UNKNOWN },
        { "\xff\xfe", TN_UNKNOWN }, { "\xc4\xb1nt8", TN_UNKNOWN },
    };
    CHECK_SPELLINGS(list);
    CHECK(tn_dtype_parse(NULL) == TN_UNKNOWN);
}

static void long_and_cut_texts_are_safe(void)
{
    char *longest = malloc(100001);
    assert_non_null(longest);
    memset(longest, 'f', 100000);
    longest[100000] = 0;
    CHECK(tn_dtype_parse(longest) == TN_UNKNOWN);
    free(longest);

    static const char whole[] = "torch.float8_e4m3fnuz";
    for (size_t n = 0; n < sizeof whole; n++) {
        char *cut = (char *)exact_copy(whole, n + 1);       /* guarded right behind the NUL */
        cut[n] = 0;
        tn_dtype found = tn_dtype_parse(cut);
        CHECK((found == TN_FLOAT8_E4M3FNUZ) == (n == sizeof whole - 1));
        free(cut);
    }
}

static void a_turkish_locale_changes_nothing(void)
{
    if (!setlocale(LC_ALL, "tr_TR.UTF-8") && !setlocale(LC_ALL, "tr_TR"))
        print_message("no Turkish locale here: checked in the C locale only\n");
    CHECK(tn_dtype_parse("INT8") == TN_INT8);
    CHECK(tn_dtype_parse("Mli_El_Fx_16") == TN_FX16);
    setlocale(LC_ALL, "C");
}

static char *read_whole_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    char *text = malloc(1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    text[n] = 0;
    fclose(file);
    return text;
}

static void the_page_shows_this_table(void)
{
    char *page = read_whole_file(TEST_DOCS "/types.md");
    char *begin = strstr(page, TYPES_TABLE_BEGIN);
    assert_non_null(begin);
    begin += strlen(TYPES_TABLE_BEGIN);
    char *end = strstr(begin, TYPES_TABLE_END);
    assert_non_null(end);
    *end = 0;

    char *table = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&table, &size);
    assert_non_null(out);
    types_table_print(out);
    fclose(out);
    assert_string_equal(begin, table);
    free(table);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_has_a_consistent_row),
        TEST(what_is_no_type_has_no_row),
        TEST(every_name_gives_its_row),
        TEST(names_are_found_in_either_case),
        TEST(codes_name_one_type_each),
        TEST(common_spellings_are_known),
        TEST(infinities_tell_the_e4m3_types_apart),
        TEST(a_byte_order_mark_makes_a_numpy_code),
        TEST(other_texts_are_unknown),
        TEST(long_and_cut_texts_are_safe),
        TEST(a_turkish_locale_changes_nothing),
        TEST(the_page_shows_this_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
