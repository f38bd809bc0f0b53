/* Codes of small floats that are stored as the numbers they are, in a float8 type. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "convert.h"
#include "files.h"
#include "quant/grammar/datatype.h"

static const tn_dtype stores[] = { TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2 };

static tn_datatype *datatype_of(const char *text)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    if (tn_datatype_parse(text, &d, &err))
        fail_msg("%s: %s", text, line_of(&err));
    return d;
}

/* ---- which can be ---- */

static void only_floats_whose_values_the_type_has_are_stored_so(void)
{
    static const struct { const char *datatype, *text[2]; } cases[] = {
        { "e2m1fnuz|e8m0_t32", { NULL, NULL } },
        { "e3m2fnuz|e8m0_t32", { NULL, NULL } },
        { "e2m2fnuz|e8m0_t32", { NULL, NULL } },
        { "e2m3fnuz|e8m0_t32", { NULL, "e2m3fnuz has 1.125, which float8_e5m2 lacks" } },
        { "e3m3fnuz|e8m0_t32", { NULL, "e3m3fnuz has 0.28125, which float8_e5m2 lacks" } },
        { "e4m3fn|e8m0_t32", { NULL, "e4m3fn has 0.017578125, which float8_e5m2 lacks" } },
        { "e5m2|e8m0_t32", { "e5m2 has 1.52587891e-05, which float8_e4m3fn lacks", NULL } },
        { "e4m2fnuz|e8m0_t32", { NULL, NULL } },
        { "e4m3fnuz|e8m0_t32", { "e4m3fnuz has 480, which float8_e4m3fn lacks",
                                 "which float8_e5m2 lacks" } },
        { "e5m1fnuz|e8m0_t32", { "which float8_e4m3fn lacks",
                                 "e5m1fnuz has 65536, which float8_e5m2 lacks" } },
        { "e3m2|e8m0_t32", { "e3m2 has inf, which float8_e4m3fn lacks", NULL } },
        { "e3m0fnuz|e8m0_t32", { NULL, NULL } },
        { "e2m1fnuz", { NULL, NULL } },
        { "e2m1fnuz|n2m4", { NULL, NULL } },
        { "e2m3fnuz|float32_t0", { NULL, "e2m3fnuz has 1.125" } }, { "nvfp4", { NULL, NULL } },
        { "int4|e8m0_t32", { "floats of at most 8 bits can be stored as numbers of float8_e4m3fn but found "
                             "int4", "but found int4" } },
        { "uint4|float16_int8_t32", { "but found uint4", "but found uint4" } },
        { "icb44fi_e2m3fnuz|e8m0_t32", { "but found icb44fi_e2m3fnuz", "but found icb44fi_e2m3fnuz" } },
        { "e5m3|e8m0_t32", { "but found e5m3", "but found e5m3" } }, { "float16|n2m4", { "but found float16",
                                                                                         "but found "
                                                                                             "float16" } },
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i / 2].text[i % 2];
        tn_datatype *d = datatype_of(cases[i / 2].datatype), *stored = NULL;
        uint8_t codes[256];
        tn_error err = { .text = "" };
        tn_status status = tn_datatype_store_codes(d, stores[i % 2], codes, &err);
        if (status != (text ? TN_ERR_ARGUMENT : TN_OK) || !strstr(line_of(&err), text ? text : ""))
            fail_msg("%s in type %d: expected \"%s\" but found %d: %s", cases[i / 2].datatype, stores[i % 2],
                     text ? text : "", status, line_of(&err));
        CHECK(tn_datatype_parse_stored(cases[i / 2].datatype, stores[i % 2], &stored, NULL) == status);
        tn_datatype_free(stored);
        tn_datatype_free(d);
    }
}

static void other_types_store_nothing(void)
{
    tn_datatype *d = datatype_of("mxfp4");
    uint8_t codes[256];
    for (int type = 0; type <= TN_DTYPE_COUNT; type++) {
        tn_error err = { .text = "" };
        bool good = type == TN_FLOAT8_E4M3FN || type == TN_FLOAT8_E5M2;
        CHECK(tn_datatype_store_codes(d, (tn_dtype)type, codes, &err) == (good ? TN_OK : TN_ERR_ARGUMENT));
        CHECK(good || strstr(line_of(&err), "expected float8_e4m3fn or float8_e5m2 to store numbers as but "
                             "found"));
    }
    tn_datatype_free(d);
}

/* e2m1: 0 0.5 1 1.5 2 3 4 6, then the same with a sign; by hand. */
static void the_codes_of_e2m1_are_those_of_its_numbers(void)
{
    static const uint8_t e4m3fn[] = { 0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c, 0x80, 0xb0, 0xb8, 0xbc,
                                      0xc0, 0xc4, 0xc8, 0xcc };
    static const uint8_t e5m2[] = { 0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe,
                                    0xc0, 0xc2, 0xc4, 0xc6 };
    tn_datatype *d = datatype_of("mxfp4");
    uint8_t codes[256];
    CHECK(tn_datatype_store_codes(d, TN_FLOAT8_E4M3FN, codes, NULL) == TN_OK);
    assert_memory_equal(codes, e4m3fn, sizeof e4m3fn);
    CHECK(tn_datatype_store_codes(d, TN_FLOAT8_E5M2, codes, NULL) == TN_OK);
    assert_memory_equal(codes, e5m2, sizeof e5m2);
    tn_datatype_free(d);
}

/* ---- every datatype in memory ---- */

enum { ROWS = 36, COLS = 160, COUNT = ROWS * COLS };
static float values[COUNT];
static const int64_t shape[] = { ROWS, COLS };
static const tn_array array = { TN_FLOAT32, 2, shape, NULL };

/* Of many sizes, with zeros of both signs, infinities, and rows of nothing but zeros. */
static void make_values(void)
{
    uint32_t state = 7;
    for (size_t i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((float)(state >> 8) / 8388608.0f - 1) * ldexpf(1, (int)(state % 61) - 30);
        if (state >> 27 == 0)
            values[i] = state & 1 ? -0.0f : 0.0f;
        if (i % 1777 == 9)
            values[i] = state & 1 ? INFINITY : -INFINITY;
        if (i / COLS == 5)
            values[i] = 0;
    }
}

typedef struct parts { uint8_t *data[7]; } parts;

static parts new_parts(void)
{
    parts p;
    for (int i = 0; i < 7; i++)
        assert_non_null(p.data[i] = calloc(COUNT + 64, 4));
    return p;
}

static void free_parts(parts *p)
{
    for (int i = 0; i < 7; i++)
        free(p->data[i]);
}

/* The data must be, byte by byte, the numbers that unpacked codes are, and its values those of any other way
 * to store them. */
static void check_stored(const tn_datatype *d, tn_dtype store, tn_quantize_options o)
{
    parts plain = new_parts(), stored = new_parts();
    float *x = malloc(sizeof values), *y = malloc(sizeof values), *z = malloc(sizeof values);
    uint8_t codes[256];
    tn_error err = { .text = "" };
    assert_true(x && y && z);
    CHECK(tn_datatype_store_codes(d, store, codes, NULL) == TN_OK);
    o.size = sizeof o;
    o.unpacked = true;
    CHECK(tn_fake_quantize(d, &array, values, x, &o, NULL, &err) == TN_OK);
    CHECK(tn_quantize(d, &array, values, (void *const *)plain.data, &o, NULL, &err) == TN_OK);
    CHECK(tn_dequantize(d, &array, (const void *const *)plain.data, y, &o, &err) == TN_OK);
    o.store = store;
    CHECK(tn_quantize(d, &array, values, (void *const *)stored.data, &o, NULL, &err) == TN_OK);
    if (tn_dequantize(d, &array, (const void *const *)stored.data, z, &o, &err))
        fail_msg("%s: %s", tn_datatype_text(d), line_of(&err));
    for (size_t i = 0; i < COUNT; i++)
        if (stored.data[0][i] != codes[plain.data[0][i]])
            fail_msg("%s: number %zu is %02x", tn_datatype_text(d), i, stored.data[0][i]);
    for (int i = 1; i < 7; i++)
        assert_memory_equal(plain.data[i], stored.data[i], COUNT * 4);
    if (memcmp(x, y, sizeof values) || memcmp(y, z, sizeof values))
        fail_msg("%s: the values are others", tn_datatype_text(d));
    free_parts(&plain);
    free_parts(&stored);
    free(x);
    free(y);
    free(z);
}

static void every_datatype_that_can_be_stored_so_keeps_its_values(void)
{
    static const char *const more[] = {
        "e2m1fnuz|e8m0_t32n2m4", "e3m2fnuz|e8m0_t16d0n1m4", "e2m3fnuz|e8m0_t4_t8", "e2m1fnuz|e8m0_t32d0",
            "e2m1fnuz|float32", "e3m2fnuz",
        "e2m1fnuz|n2m4", "e2m1fnuz|e8m0_t16s4o2", "e3m3fnuz|e8m0", "e3m2|e8m0_t32",
            "e2m1fnuz|multi_float32_e4m3fn_t16", "e2m1fnuz|e8m0_t0d0",
        "e3m3inuz|e8m0_t32",
    };
    enum { MORE = sizeof more / sizeof *more };
    size_t checked = 0;
    make_values();
    for (size_t i = 0; i < MORE || tn_datatype_at(i - MORE); i++) {
        const char *text = i < MORE ? more[i] : tn_datatype_at(i - MORE)->text;
        for (size_t s = 0; s < 2; s++) {
            tn_datatype *d = datatype_of(text);
            uint8_t codes[256];
            if (tn_datatype_store_codes(d, stores[s], codes, NULL) == TN_OK) {
                check_stored(d, stores[s], (tn_quantize_options){ .jobs = 1 + (unsigned)(i % 3) });
                check_stored(d, stores[s], (tn_quantize_options){ .round = TN_ROUND_STOCHASTIC,
                                                                .rule = TN_SCALE_CEIL, .jobs = 2 });
                checked++;
            }
            tn_datatype_free(d);
        }
    }
    CHECK(checked > 60);
}

/* Where the number has a code for it, so does the type. */
static void nan_stays_nan(void)
{
    static const struct { const char *datatype; tn_dtype store; } cases[] = {
        { "e3m3fnuz|e8m0_t32", TN_FLOAT8_E4M3FN }, { "e3m3inuz|e8m0", TN_FLOAT8_E4M3FN }, { "e3m2|e8m0_t32",
                                                                                            TN_FLOAT8_E5M2 },
        { "e4m3fn|e8m0_t32", TN_FLOAT8_E4M3FN }, { "e5m2|e8m0_t32", TN_FLOAT8_E5M2 }, { "e4m2fnuz|float32",
                                                                                        TN_FLOAT8_E5M2 },
    };
    make_values();
    values[3] = NAN;
    values[COLS + 77] = -NAN;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_datatype *d = datatype_of(cases[i].datatype);
        check_stored(d, cases[i].store, (tn_quantize_options){ .jobs = 1 });
        tn_datatype_free(d);
    }
    make_values();
}

static void what_makes_no_sense_is_refused(void)
{
    tn_datatype *d = datatype_of("mxfp6");
    parts p = new_parts();
    tn_error err = { .text = "" };
    tn_quantize_options o = { .size = sizeof o, .store = TN_FLOAT8_E4M3FN };
    check_status(tn_quantize(d, &array, values, (void *const *)p.data, &o, NULL, &err), &err,
                 TN_ERR_ARGUMENT, "numbers are not packed");
    o.unpacked = true;
    o.store = TN_FLOAT8_E5M2;
    check_status(tn_quantize(d, &array, values, (void *const *)p.data, &o, NULL, &err), &err,
                 TN_ERR_ARGUMENT, "which float8_e5m2 lacks");
    check_status(tn_dequantize(d, &array, (const void *const *)p.data, values, &o, &err), &err,
                 TN_ERR_ARGUMENT,
                 "which float8_e5m2 lacks");
    free_parts(&p);
    tn_datatype_free(d);
}

/* ---- files ---- */

static const simple matrix = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLS },
                               .data = values };

static void check_same_values(const char *a, const char *b, const char *what)
{
    tn_file *x = open_file(a), *y = open_file(b);
    uint8_t *p = read_tensor(x, tn_file_tensor(x, 0)), *q = read_tensor(y, tn_file_tensor(y, 0));
    if (memcmp(p, q, sizeof values))
        fail_msg("%s: %s and %s differ", what, a, b);
    free(p);
    free(q);
    tn_close(x);
    tn_close(y);
}

static void check_file(const char *name, tn_dtype store)
{
    tn_file *f = open_file(name);
    const tn_tensor *t = tn_file_tensor(f, 0);
    CHECK(t->scaling && t->scaling->store == store && t->scaling->unpacked && strchr(t->scaling->datatype,
                                                                                     'e'));
    CHECK(t->parts[0].array.dtype == store && t->parts[0].array.rank == 2 &&
          t->parts[0].array.shape[1] == COLS);
    tn_close(f);
}

static void every_container_keeps_them(void)
{
    static const char *const files[] = { "q.zt", "q.safetensors", "q.npz", "q.json" };
    static const char *const types[] = { "mxfp4", "mxfp6", "mxbf6", "mxfp8", "nvfp4", "e2m1fnuz|e8m0_t32n2m4",
                                         "e2m1_e32s8o2", "mxbf8" };
    make_values();
    write_file("in.safetensors", (tn_create_options){ 0 }, &matrix, 1);
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        const char *type = types[i / 2];
        char cast[80];
        tn_datatype *d = datatype_of(type);
        uint8_t codes[256];
        bool good = tn_datatype_store_codes(d, stores[i % 2], codes, NULL) == TN_OK;
        tn_datatype_free(d);
        snprintf(cast, sizeof cast, "%s,store=%s", type, i % 2 ? "e5m2" : "e4m3fn");
        if (!good) {
            must_fail("in.safetensors", (wish){ .cast = cast }, TN_ERR_ARGUMENT, ", which float8_e");
            continue;
        }
        must_convert("in.safetensors", "virtual.zt", (wish){ .cast = type, .is_virtual = true });
        must_convert("in.safetensors", "packed.zt", (wish){ .cast = type });
        for (size_t k = 0; k < 4; k++) {
            size_t different = 1;
            must_convert("in.safetensors", files[k], (wish){ .cast = cast });
            check_file(files[k], stores[i % 2]);
            must_convert(files[k], files[(k + 1) % 4], (wish){ .cast = NULL });     /* from one to the next */
            check_file(files[(k + 1) % 4], stores[i % 2]);
            must_convert(files[(k + 1) % 4], "back.zt", (wish){ .cast = "f32" });
            check_same_values("virtual.zt", "back.zt", cast);
            tn_file *a = open_file("packed.zt"), *b = open_file(files[k]);
            CHECK(tn_compare(a, b, NULL, NULL, &different, NULL) == TN_OK && different == 0);
            tn_close(a);
            tn_close(b);
        }
    }
}

/* Another reader that knows nothing of records sees a tensor of float8 numbers, each times its scale. */
static void data_times_scale_is_the_value(void)
{
    make_values();
    write_file("in.safetensors", (tn_create_options){ 0 }, &matrix, 1);
    must_convert("in.safetensors", "virtual.zt", (wish){ .cast = "mxfp6", .is_virtual = true });
    must_convert("in.safetensors", "q.safetensors", (wish){ .cast = "mxfp6,store=e4m3fn" });
    tn_file *f = open_file("q.safetensors"), *v = open_file("virtual.zt");
    const tn_tensor *t = tn_file_tensor(f, 0);
    uint8_t *data = read_part(f, &t->parts[0]), *scale = read_part(f, &t->parts[1]),
        *expected = read_tensor(v, tn_file_tensor(v, 0));
    CHECK(strcmp(t->parts[1].role, "scale") == 0 && t->parts[1].array.dtype == TN_FLOAT8_E8M0);
    for (size_t i = 0; i < COUNT; i++) {
        size_t tile = i / COLS * (COLS / 32) + i % COLS / 32;
        double number = tn_value_get(TN_FLOAT8_E4M3FN, data, i).re;
        double by = tn_value_get(TN_FLOAT8_E8M0, scale, tile).re;
        float y;
        memcpy(&y, expected + i * sizeof y, sizeof y);
        if ((float)(number * by) != y)
            fail_msg("value %zu: %g times %g is not %g", i, number, by, (double)y);
    }
    free(data);
    free(scale);
    free(expected);
    tn_close(f);
    tn_close(v);
}

/* `from` becomes `to`, which is as long. */
static void replace(uint8_t *bytes, size_t n, const char *from, const char *to)
{
    uint8_t *at = memmem(bytes, n, from, strlen(from));
    if (!at || strlen(from) != strlen(to))
        fail_msg("no %s", from);
    memcpy(at, to, strlen(to));
}

static void records_that_lie_are_refused(void)
{
    static const struct { const char *from, *to, *text; tn_status status; } cases[] = {
        { "float8_e4m3fn\"", "float8_e5m2\"  ", "its part \"data\" does not have the type float8_e5m2",
          TN_ERR_CORRUPT },
        { "float8_e4m3fn\"", "float8_later1\"", "float8_later1", TN_ERR_UNSUPPORTED },
        { "float8_e4m3fn\"", "float32\"      ", "expected float8_e4m3fn or float8_e5m2 to store numbers as "
          "but found float32", TN_ERR_CORRUPT },
        { "\"float8_e4m3fn\"", "4              ", "expected a string", TN_ERR_CORRUPT },
        { "\"store\"", "\"storf\"", "its part \"data\" does not have the type uint8", TN_ERR_CORRUPT },
        { "\"unpacked\":true", "\"unpackee\":true", "its data is said to be numbers of float8_e4m3fn, and "
          "packed", TN_ERR_CORRUPT },
        { "e2m1fnuz", "int4    ", "its datatype", TN_ERR_CORRUPT },
        { "e2m1fnuz|e8m0_t32", "int4|e8m0_t32    ", "its datatype", TN_ERR_CORRUPT },
        { "e2m1fnuz", "e5m2fnuz", "which float8_e4m3fn lacks", TN_ERR_CORRUPT },
    };
    make_values();
    write_file("in.safetensors", (tn_create_options){ 0 }, &matrix, 1);
    must_convert("in.safetensors", "q.json", (wish){ .cast = "mxfp4,store=e4m3fn" });
    size_t n;
    uint8_t *good = load_file(in_folder("q.json").text, &n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *bad = malloc(n);
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        assert_non_null(bad);
        memcpy(bad, good, n);
        uint8_t *record = memmem(bad, n, "\"datatype\"", 10);
        assert_non_null(record);
        replace(record, n - (size_t)(record - bad), cases[i].from, cases[i].to);
        put_bytes("q.json", bad, n);
        tn_status status = tn_open(in_folder("q.json").text, NULL, &f, &err);
        if (status != cases[i].status || !strstr(line_of(&err), cases[i].text))
            fail_msg("%s: expected \"%s\" but found %d: %s", cases[i].to, cases[i].text, status, line_of(&err));
        free(bad);
    }
    free(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_floats_whose_values_the_type_has_are_stored_so),
        TEST(other_types_store_nothing),
        TEST(the_codes_of_e2m1_are_those_of_its_numbers),
        TEST(every_datatype_that_can_be_stored_so_keeps_its_values),
        TEST(nan_stays_nan),
        TEST(what_makes_no_sense_is_refused),
        IN_FOLDER(every_container_keeps_them),
        IN_FOLDER(data_times_scale_is_the_value),
        IN_FOLDER(records_that_lie_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
