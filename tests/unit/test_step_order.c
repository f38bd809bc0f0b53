/* Codes with scales between other steps: what comes of them is what comes of their values. */
#include "support.h"

#include <tenon/view.h>

enum { ROWS = 4, COLUMNS = 8, MOST = 16 * COLUMNS };

static float data[ROWS * COLUMNS];

static tn_view *open_data(void)
{
    static const int64_t shape[] = { ROWS, COLUMNS };
    static const tn_part part = { .role = "data", .array = { TN_FLOAT32, 2, shape, NULL },
                                  .nbytes = sizeof data, .data = (const uint8_t *)data };
    static const tn_tensor tensor = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = shape,
                                      .parts = &part, .nparts = 1 };
    tn_view *v = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++)    /* rows of very different sizes */
        data[i] = (float)(i * 7 % 13 - 6 + i % COLUMNS) * (float)(1 << (3 * (i / COLUMNS))) * 0.37f;
    CHECK(tn_view_open(NULL, &tensor, &v, NULL) == TN_OK);
    return v;
}

/* A step and its text. */
typedef const char *step[2];

static tn_view *open_with(const step *steps, size_t n)
{
    tn_view *v = open_data();
    tn_error err = { .text = "" };
    for (size_t i = 0; i < n; i++)
        if (tn_view_add(&v, steps[i][0], steps[i][1], &err))
            fail_msg("%s %s: %s", steps[i][0], steps[i][1], line_of(&err));
    return v;
}

/* The values of all elements, with padding. */
static size_t read_values(const step *steps, size_t n, float *values)
{
    tn_view *v = open_with(steps, n);
    tn_error err = { .text = "" };
    size_t count = 1;
    if (tn_view_add_values(&v, TN_FLOAT32, &err))
        fail_msg("%s", line_of(&err));
    const tn_tensor *t = tn_view_tensor(v);
    for (uint32_t i = 0; i < t->rank; i++)
        count *= (size_t)(t->parts[0].padded ? t->parts[0].padded->shape[i] : t->shape[i]);
    CHECK(count <= MOST);
    if (tn_view_read(v, 0, 0, count, values, count * sizeof *values, &err))
        fail_msg("%s", line_of(&err));
    tn_view_close(v);
    return count;
}

static const char *const codes[] = { "int8,per=channel,axis=0", "u8,per=channel,axis=1", "u8,per=tensor",
                                     "int4,per=channel,axis=0", "u8,per=channel,axis=0", "fx8" };
enum { CODES = sizeof codes / sizeof codes[0] };

static void places_of_codes_are_places_of_their_values(void)
{
    static const step places[] = { { "slice", "1:4:2" }, { "slice", "2" }, { "slice", ":,1:7:3" },
                                   { "slice", ":,5" }, { "transpose", "1,0" } };
    for (size_t c = 0; c < CODES; c++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const step after[] = { { "cast", codes[c] }, { places[i][0], places[i][1] } },
                       values[] = { { "cast", codes[c] }, { "cast", "f32" }, { places[i][0], places[i][1] } };
            float found[MOST], expected[MOST];
            size_t n = read_values(after, 2, found);
            CHECK(read_values(values, 3, expected) == n);
            if (memcmp(found, expected, n * sizeof *found) != 0)
                fail_msg("%s, %s %s", codes[c], places[i][0], places[i][1]);
        }
}

/* Padding of both dimensions that is quantized is values, which have scales. */
static void padding_is_quantized_with_the_scales_of_its_places(void)
{
    for (size_t c = 0; c < CODES; c++) {
        const step padded[] = { { "pad", "0=6,1=10" }, { "cast", codes[c] } }, plain[] = { { "cast", codes[c] } };
        float found[MOST], expected[MOST];
        CHECK(read_values(padded, 2, found) == 6 * 10);
        CHECK(read_values(plain, 1, expected) == ROWS * COLUMNS);
        for (size_t i = 0; i < 6 * 10; i++) {
            size_t row = i / 10, column = i % 10;
            bool inside = row < ROWS && column < COLUMNS;
            if (found[i] != (inside ? expected[row * COLUMNS + column] : 0))
                fail_msg("%s at %zu, %zu: %g", codes[c], row, column, (double)found[i]);
        }
    }
}

static void padding_without_scales_has_no_values(void)
{
    static const step steps[] = { { "cast", "u8,per=channel,axis=1" }, { "pad", "1=10" } },
                      across[] = { { "cast", "u8,per=channel,axis=1" }, { "pad", "0=6" } };
    static const step next[] = { { "slice", "0:2" }, { "transpose", "1,0" }, { "cast", "f32" },
                                 { "cast", "fx8" }, { "pad", "0=8" } };
    tn_error err = { .text = "" };
    tn_view *v = open_with(steps, 2);
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        tn_view *before = v;
        CHECK(tn_view_add(&v, next[i][0], next[i][1], &err) == TN_ERR_UNSUPPORTED && v == before);
        CHECK(strstr(err.text, "dimension 1 has a scale for each index, but none for its padding"));
    }
    CHECK(tn_view_add_values(&v, TN_FLOAT32, &err) == TN_ERR_UNSUPPORTED);
    tn_view_close(v);
    float found[MOST], expected[MOST];
    CHECK(read_values(across, 2, found) == 6 * COLUMNS);
    CHECK(read_values(across, 1, expected) == ROWS * COLUMNS);
    for (size_t i = 0; i < 6 * COLUMNS; i++)
        CHECK(found[i] == (i < ROWS * COLUMNS ? expected[i] : 0));
}

/* Entries that a step has made get another form, and values, as those of a file do. */
static void made_entries_take_other_forms(void)
{
    static const step direct[] = { { "cast", "f16" } },
                      chains[][4] = { { { "form", "coo" }, { "cast", "f16" }, { "form", "csr" } },
                                      { { "form", "csr" }, { "form", "coo" }, { "cast", "f16" } },
                                      { { "cast", "f16" }, { "form", "coo" }, { "form", "dense" } },
                                      { { "form", "csr" }, { "cast", "f16" }, { "form", "dense" } } };
    float found[MOST], expected[MOST];
    size_t n = read_values(direct, 1, expected);
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        CHECK(read_values(chains[i], 3, found) == n);
        if (memcmp(found, expected, n * sizeof *found) != 0)
            fail_msg("chain %zu", i);
    }
}

/* The parts of csr that is made of coo are those of csr that is made of the tensor. */
static void parts_of_made_entries_are_those_of_the_tensor(void)
{
    static const step direct[] = { { "form", "csr" } }, chain[] = { { "form", "coo" }, { "form", "csr" } };
    uint8_t found[MOST * 8], expected[MOST * 8];
    tn_view *a = open_with(direct, 1), *b = open_with(chain, 2);
    const tn_tensor *t = tn_view_tensor(a), *u = tn_view_tensor(b);
    CHECK(t->nparts == 3 && u->nparts == 3);
    for (uint32_t k = 0; k < 3; k++) {
        const tn_array *array = &t->parts[k].array;
        size_t count = (size_t)array->shape[0], size = (size_t)t->parts[k].nbytes;
        CHECK(size == u->parts[k].nbytes && size <= sizeof found && array->dtype == u->parts[k].array.dtype);
        CHECK(tn_view_read(a, k, 0, count, expected, size, NULL) == TN_OK);
        CHECK(tn_view_read(b, k, 0, count, found, size, NULL) == TN_OK);
        CHECK(memcmp(found, expected, size) == 0);
    }
    tn_view_close(a);
    tn_view_close(b);
}

/* Codes that a step has made have the values that a virtual cast gives, and become other codes. */
static void made_codes_become_values_and_other_codes(void)
{
    static const char *const datatypes[] = { "mxfp8", "mxfp4", "nvfp4", "int4|float32_t4", "e4m3fn|e8m0_t4_t4",
                                             "int8|float16_t8,rotate=hadamard8" };
    static const step after[] = { { "cast", "f32" }, { "cast", "bf16" }, { "cast", "mxfp4" },
                                  { "cast", "u8,per=tensor" }, { "cast", "fx8" } };
    for (size_t d = 0; d < sizeof datatypes / sizeof *datatypes; d++)
        for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
            char text[64];
            snprintf(text, sizeof text, "%s,virtual=yes", datatypes[d]);
            const step made[] = { { "cast", datatypes[d] }, { after[i][0], after[i][1] } },
                       direct[] = { { "cast", text }, { after[i][0], after[i][1] } };
            float found[MOST], expected[MOST];
            size_t n = read_values(direct, 2, expected);
            CHECK(read_values(made, 2, found) == n);
            if (memcmp(found, expected, n * sizeof *found) != 0)
                fail_msg("%s, then %s", datatypes[d], after[i][1]);
        }
}

/* A view that was read before it gets a step gives the same as one that was not. */
static void steps_are_added_to_what_was_read(void)
{
    static const step first[] = { { "cast", "mxfp8" } }, both[] = { { "cast", "mxfp8" }, { "cast", "f32" } };
    uint8_t bytes[MOST * 4];
    float found[ROWS * COLUMNS], expected[MOST];
    tn_view *v = open_with(first, 1);
    const tn_tensor *t = tn_view_tensor(v);
    for (uint32_t k = 0; k < t->nparts; k++) {
        size_t size = (size_t)t->parts[k].nbytes;
        CHECK(size && size <= sizeof bytes);
        CHECK(tn_view_read(v, k, 0, size, bytes, size, NULL) == TN_OK);     /* all of 8 bits */
    }
    CHECK(tn_view_add_values(&v, TN_FLOAT32, NULL) == TN_OK);
    CHECK(tn_view_read(v, 0, 0, ROWS * COLUMNS, found, sizeof found, NULL) == TN_OK);
    CHECK(read_values(both, 2, expected) == ROWS * COLUMNS);
    CHECK(memcmp(found, expected, sizeof found) == 0);
    tn_view_close(v);
}

/* Whoever has a tensor in memory has described it; nothing else says what is there. */
static void tensors_in_memory_are_what_they_say(void)
{
    static int64_t shape[TN_MAX_RANK + 1] = { ROWS, COLUMNS };
    static const tn_part good = { .role = "data", .array = { TN_FLOAT32, 2, shape, NULL },
                                  .nbytes = sizeof data, .data = (const uint8_t *)data };
    static const tn_scaling scalings[] = { { .axis = 5 }, { .axis = 1 }, { .datatype = "mxfp8" } };
    float values[ROWS * COLUMNS];
    for (size_t i = 2; i <= TN_MAX_RANK; i++)
        shape[i] = 1;
    for (int i = 0; i < 14; i++) {
        tn_part parts[2] = { good, good };
        tn_tensor t = { .name = "t", .dtype = TN_FLOAT32, .rank = 2, .shape = shape, .parts = parts, .nparts = 1 };
        tn_view *v = NULL;
        tn_error err = { .text = "" };
        if (i == 1 || i == 2)
            parts[0].nbytes = i == 1 ? 0 : sizeof data / 2;
        if (i == 3)
            parts[0] = (tn_part){ .role = "data", .array = good.array };
        if (i == 4)
            parts[0].array.rank = t.rank = TN_MAX_RANK + 1;
        if (i == 5)
            parts[0].array.dtype = (tn_dtype)9999;
        t.shape = i == 6 ? NULL : shape;
        parts[0].array.shape = i == 7 ? NULL : shape;
        t.parts = i == 8 ? NULL : parts;
        t.nparts = i == 9 ? 2000 : 1;
        t.form = i == 10 ? TN_FORM_COO : TN_FORM_DENSE;
        if (i >= 11) {          /* scales that are too few, or of no dimension */
            t.form = TN_FORM_SCALED;
            t.scaling = &scalings[i - 11];
            t.nparts = 2;
            parts[0].array.dtype = TN_INT8;
            parts[0].nbytes = ROWS * COLUMNS;
            parts[1] = (tn_part){ .role = "scale", .array = { TN_FLOAT32, 1, shape, NULL },
                                  .nbytes = ROWS * sizeof(float), .data = good.data };
        }
        tn_status expected = i ? TN_ERR_ARGUMENT : TN_OK, status = tn_view_open(NULL, &t, &v, &err);
        if (!status != !expected || !tn_read(NULL, &t, TN_FLOAT32, values, sizeof values, &err) != !expected)
            fail_msg("%d: %d %s", i, (int)status, err.text);
        tn_view_close(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(places_of_codes_are_places_of_their_values),
        TEST(padding_is_quantized_with_the_scales_of_its_places),
        TEST(padding_without_scales_has_no_values),
        TEST(made_entries_take_other_forms),
        TEST(parts_of_made_entries_are_those_of_the_tensor),
        TEST(made_codes_become_values_and_other_codes),
        TEST(steps_are_added_to_what_was_read),
        TEST(tensors_in_memory_are_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
