/* test_mli_golden.c - what embARC MLI 1.1 and 2.0 answered, asked again: checks, counts and sub-tensors.
 *
 * Where the answer is another, difference_list says so, with the reason and the exact number of cases. */
#include "support.h"

#include <stdio.h>

#include <tenon/mli.h>

enum { MAX_CELLS = 16, MAX_NUMBERS = 8 };

typedef struct list {
    uint32_t n;
    int64_t  number[MAX_NUMBERS];
} list;

static list numbers(char *cell)
{
    list all = { 0 };
    for (char *rest = cell; strcmp(cell, "-") != 0; rest++) {
        CHECK(all.n < MAX_NUMBERS);
        all.number[all.n++] = strtoll(rest, &rest, 10);
        if (*rest != ',') {
            CHECK(*rest == '\0');
            break;
        }
    }
    return all;
}

static int64_t number(char *cell)
{
    list one = numbers(cell);
    CHECK(one.n == 1);
    return one.number[0];
}

/* Calls a function with the cells of each line; the number of lines. */
static unsigned each_line(const char *path, size_t columns, void (*function)(char **cell))
{
    char line[512], *cell[MAX_CELLS];
    unsigned lines = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        size_t n = 0;
        for (char *save, *one = strtok_r(line, "\t\n", &save); one && n < MAX_CELLS;
             one = strtok_r(NULL, "\t\n", &save))
            cell[n++] = one;
        CHECK(n == columns);
        function(cell);
        lines++;
    }
    fclose(file);
    return lines;
}

/* ---- Where we answer otherwise ---- */

typedef struct difference {
    const char *what;           /* of the table's line */
    int64_t     theirs, ours;
    unsigned    cases, seen;
} difference;

static difference difference_list[] = {
    /* The specification refuses NULL data; 1.1 does not look at it.  So does a scalar's value, before its
     * shape. */
    { "1.1 null data", TN_MLI_OK, TN_MLI_BAD_TENSOR, 6, 0 },
    { "1.1 scalar null data", TN_MLI_SHAPE_MISMATCH, TN_MLI_BAD_TENSOR, 6, 0 },
    /* A scalar of rank 0 has one element, as in 2.0. */
    { "1.1 count", 0, 1, 5, 0 },
    /* Parameters are always checked; MLI does it where a kernel asks for it. */
    { "2.0 scale -5", TN_MLI_OK, TN_MLI_BAD_TENSOR, 2, 0 },
    { "2.0 scale 0", TN_MLI_OK, TN_MLI_BAD_TENSOR, 3, 0 },
    { "2.0 scale array one byte short", TN_MLI_OK, TN_MLI_BAD_TENSOR, 1, 0 },
    /* A box without the dimension of its parameters has one scale; MLI leaves the address of the first where
     * its value belongs. */
    { "2.0 box without its axis", 0, 1, 1, 0 },
};

/* Equal, or counted among the differences. */
static void compare(const char *version, const char *what, int64_t theirs, int64_t ours)
{
    char name[64];
    snprintf(name, sizeof name, "%s %s", version, what);
    if (theirs == ours)
        return;
    for (size_t i = 0; i < sizeof difference_list / sizeof *difference_list; i++) {
        difference *d = &difference_list[i];
        if (strcmp(d->what, name) == 0 && d->theirs == theirs && d->ours == ours) {
            d->seen++;
            return;
        }
    }
    fail_msg("%s: MLI answers %lld and we %lld", name, (long long)theirs, (long long)ours);
}

/* Runs after the tests that compare. */
static void the_differences_are_those_listed(void)
{
    for (size_t i = 0; i < sizeof difference_list / sizeof *difference_list; i++)
        if (difference_list[i].seen != difference_list[i].cases)
            fail_msg("%s: expected %u cases but found %u", difference_list[i].what, difference_list[i].cases,
                     difference_list[i].seen);
}

/* ---- Tensors ---- */

static int8_t data[4096];
static int16_t zeros[MAX_NUMBERS], scales[MAX_NUMBERS];
static int8_t scale_bits[MAX_NUMBERS];

static uint32_t type_of(const char *version, const char *name)
{
    static const struct { const char *name; uint32_t in_1_1, in_2_0; } types[] = {
        { "fx8", TN_MLI1_FX8, TN_MLI2_FX8 }, { "fx16", TN_MLI1_FX16, TN_MLI2_FX16 },
        { "sa8", TN_MLI1_SA8, TN_MLI2_SA8 },
        { "sa32", TN_MLI1_SA32, TN_MLI2_SA32 }, { "fp32", UINT32_MAX, TN_MLI2_FP32 },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0)
            return version[0] == '1' ? types[i].in_1_1 : types[i].in_2_0;
    fail_msg("no type %s", name);
    return 0;
}

static void put_unsigned(uint32_t *to, const list *from)
{
    CHECK(from->n <= TN_MLI_MAX_RANK);
    for (uint32_t i = 0; i < from->n; i++)
        to[i] = (uint32_t)from->number[i];
}

static void put_signed(int32_t *to, const list *from)
{
    CHECK(from->n <= TN_MLI_MAX_RANK);
    for (uint32_t i = 0; i < from->n; i++)
        to[i] = (int32_t)from->number[i];
}

static tn_mli11_tensor tensor11(char *type, char *shape, uint32_t capacity)
{
    list dims = numbers(shape);
    tn_mli11_tensor t = { .data = data, .capacity = capacity, .rank = dims.n,
                          .el_type = type_of("1.1", type) };
    put_unsigned(t.shape, &dims);
    t.el_params.asym.dim = -1;
    t.el_params.asym.scale.i32 = 1;
    return t;
}

static tn_mli20_tensor tensor20(char *type, char *shape, char *strides, uint32_t capacity)
{
    list dims = numbers(shape), steps = numbers(strides);
    tn_mli20_tensor t = { .data = { .capacity = capacity }, .rank = dims.n, .el_type = type_of("2.0", type) };
    t.data.mem.pi8 = data;
    put_unsigned(t.shape, &dims);
    put_signed(t.mem_stride, &steps);
    t.el_params.sa.dim = -1;
    t.el_params.sa.scale.mem.i16 = 1;
    return t;
}

static void set_arrays(tn_mli20_tensor *t, int32_t dim, const int64_t *capacity)
{
    t->el_params.sa.dim = dim;
    t->el_params.sa.zero_point.mem.pi16 = zeros;
    t->el_params.sa.zero_point.capacity = (uint32_t)capacity[0];
    t->el_params.sa.scale.mem.pi16 = scales;
    t->el_params.sa.scale.capacity = (uint32_t)capacity[1];
    t->el_params.sa.scale_frac_bits.mem.pi8 = scale_bits;
    t->el_params.sa.scale_frac_bits.capacity = (uint32_t)capacity[2];
}

/* ---- Checks ---- */

enum {
    VERSION, WRONG, TYPE, IS_NULL, CAPACITY, RANK, SHAPE, STRIDES, DIM, CAPACITIES, SCALES, STATUS,
    FULL_STATUS, SCALAR_STATUS, CHECK_CELLS
};

static void check_1_1(char **cell)
{
    tn_mli11_tensor t = tensor11(cell[TYPE], cell[SHAPE], (uint32_t)number(cell[CAPACITY]));
    list steps = numbers(cell[STRIDES]);
    char scalar[64];
    int32_t value;
    put_signed(t.mem_stride, &steps);
    t.rank = (uint32_t)number(cell[RANK]);
    if (number(cell[IS_NULL]))
        t.data = NULL;
    compare("1.1", cell[WRONG], number(cell[STATUS]), tn_mli11_check(&t));
    snprintf(scalar, sizeof scalar, "scalar %s", cell[WRONG]);
    if (strcmp(cell[SCALAR_STATUS], "-") != 0)
        compare("1.1", scalar, number(cell[SCALAR_STATUS]), tn_mli11_scalar_get(&t, &value));
}

static void check_2_0(char **cell)
{
    tn_mli20_tensor t = tensor20(cell[TYPE], cell[SHAPE], cell[STRIDES], (uint32_t)number(cell[CAPACITY]));
    list values = numbers(cell[SCALES]), capacities = numbers(cell[CAPACITIES]);
    t.rank = (uint32_t)number(cell[RANK]);
    if (number(cell[IS_NULL]))
        t.data.mem.void_p = NULL;
    for (uint32_t i = 0; i < values.n; i++)
        scales[i] = (int16_t)values.number[i];
    if (values.n && number(cell[DIM]) >= 0)
        set_arrays(&t, (int32_t)number(cell[DIM]), capacities.number);
    else
        t.el_params.sa.scale.mem.i16 = values.n ? scales[0] : 1;
    CHECK(tn_mli20_check(&t) == (tn_mli_status)number(cell[FULL_STATUS]));
    compare("2.0", cell[WRONG], number(cell[STATUS]), tn_mli20_check(&t));
}

static void check_line(char **cell)
{
    (cell[VERSION][0] == '1' ? check_1_1 : check_2_0)(cell);
}

static void tensors_are_judged_as_by_mli(void)
{
    CHECK(each_line(TEST_GOLDEN "/mli/checks.tsv", CHECK_CELLS, check_line) == 180 + 150);
}

/* ---- Counts ---- */

static void count_line(char **cell)
{
    tn_mli11_tensor old = { 0 };
    list shape = numbers(cell[3]), counts = numbers(cell[4]);
    bool is_old = cell[0][0] == '1';
    uint32_t type = type_of(cell[0], cell[1]);
    CHECK((is_old ? tn_mli11_element_size(type) : tn_mli20_element_size(type)) == number(cell[2]));
    tn_mli20_tensor t = { .rank = old.rank = shape.n };
    put_unsigned(t.shape, &shape);
    put_unsigned(old.shape, &shape);
    for (uint32_t i = 0; i < counts.n; i++)
        compare(cell[0], "count", counts.number[i], is_old ? tn_mli11_count(&old, i) : tn_mli20_count(&t, i));
}

static void elements_are_counted_as_by_mli(void)
{
    CHECK(each_line(TEST_GOLDEN "/mli/counts.tsv", 5, count_line) == 15 + 12);
}

/* ---- Sub-tensors ---- */

enum { BOX_TYPE, BOX_SHAPE, BOX_STRIDES, BOX_CAPACITY, BOX_DIM, BOX_OFFSET, BOX_SIZE, BOX_RANK,
       TO_SHAPE, TO_STRIDES, TO_OFFSET, TO_CAPACITY, TO_DIM, TO_ENTRY, BOX_CELLS };

static void box_line(char **cell)
{
    static const int64_t room[] = { sizeof zeros, sizeof scales, sizeof scale_bits };
    tn_mli20_tensor t = tensor20(cell[BOX_TYPE], cell[BOX_SHAPE], cell[BOX_STRIDES],
                                 (uint32_t)number(cell[BOX_CAPACITY])),
                    out;
    list offset = numbers(cell[BOX_OFFSET]), size = numbers(cell[BOX_SIZE]), shape = numbers(cell[TO_SHAPE]),
         strides = numbers(cell[TO_STRIDES]);
    int32_t dim = (int32_t)number(cell[BOX_DIM]);
    tn_mli_cut cut = { .sub_tensor_rank = (uint32_t)number(cell[BOX_RANK]) };
    put_unsigned(cut.offset, &offset);
    put_unsigned(cut.size, &size);
    for (uint32_t i = 0; i < MAX_NUMBERS; i++)
        scales[i] = (int16_t)(100 + i);
    if (dim >= 0)
        set_arrays(&t, dim, room);
    CHECK(tn_mli20_create_subtensor(&t, &cut, &out) == TN_MLI_OK);
    CHECK(out.rank == shape.n && out.rank == strides.n);
    for (uint32_t i = 0; i < out.rank; i++)
        CHECK(out.shape[i] == shape.number[i] && out.mem_stride[i] == strides.number[i]);
    CHECK(out.data.mem.pi8 - data == number(cell[TO_OFFSET]) &&
          out.data.capacity == number(cell[TO_CAPACITY]));
    CHECK(out.el_type == t.el_type && out.el_params.sa.dim == number(cell[TO_DIM]));
    if (out.el_params.sa.dim >= 0) {
        CHECK(out.el_params.sa.scale.mem.pi16 - scales == number(cell[TO_ENTRY]));
        CHECK(out.el_params.sa.zero_point.mem.pi16 - zeros == number(cell[TO_ENTRY]));
        CHECK(out.el_params.sa.scale_frac_bits.mem.pi8 - scale_bits == number(cell[TO_ENTRY]));
    } else if (dim >= 0) {
        compare("2.0", "box without its axis", 0, out.el_params.sa.scale.mem.i16 == 100 + offset.number[dim]);
    }
}

static void boxes_are_cut_as_by_mli(void)
{
    CHECK(each_line(TEST_GOLDEN "/mli/boxes.tsv", BOX_CELLS, box_line) == 72);
}

/* The answer of one version to a line of points.tsv. */
#define COMPARE_POINT(version, t, place, room, frac) do { \
        tn_mli##version##_tensor out = (t); \
        tn_mli_status status = tn_mli##version##_point_to_subtensor(&(t), &point, &out); \
        CHECK(status == (tn_mli_status)number(cell[5])); \
        if (status == TN_MLI_OK) { \
            CHECK(out.rank == shape.n && (int8_t *)out.place - data == number(cell[7]) && out.room == number(cell[8])); \
            CHECK(out.el_type == (t).el_type && out.el_params.fx.frac_bits == (frac)); \
            for (uint32_t i = 0; i < out.rank; i++) \
                CHECK(out.shape[i] == shape.number[i]); \
        } \
    } while (0)

/* Tensors are dense and of fx: all three versions must answer alike. */
static void point_line(char **cell)
{
    list coordinates = numbers(cell[3]), shape = numbers(cell[6]);
    tn_mli_point point = { .coord_num = coordinates.n, .first_out_dim_size = (uint32_t)number(cell[4]) };
    uint8_t frac_bits = strcmp(cell[9], "-") == 0 ? 5 : (uint8_t)number(cell[9]);
    put_unsigned(point.start_coord, &coordinates);
    tn_mli11_tensor t11 = tensor11(cell[1], cell[2], 0);
    t11.el_params.fx.frac_bits = frac_bits;
    CHECK(tn_mli11_bytes(&t11, &t11.capacity) == TN_MLI_OK);
    tn_mli10_tensor t10 = { .data = data, .capacity = t11.capacity, .rank = t11.rank,
                            .el_type = t11.el_type };
    memcpy(t10.shape, t11.shape, sizeof t10.shape);
    t10.el_params.fx.frac_bits = frac_bits;
    tn_mli20_tensor t20 = tensor20(cell[1], cell[2], (char[]){ "-" }, t11.capacity);
    t20.el_params.fx.frac_bits = (int8_t)frac_bits;
    COMPARE_POINT(10, t10, data, capacity, frac_bits);
    COMPARE_POINT(11, t11, data, capacity, frac_bits);
    COMPARE_POINT(20, t20, data.mem.pi8, data.capacity, frac_bits);
}

static void points_are_found_as_by_mli(void)
{
    CHECK(each_line(TEST_GOLDEN "/mli/points.tsv", 10, point_line) == 30 + 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors_are_judged_as_by_mli),
        TEST(elements_are_counted_as_by_mli),
        TEST(boxes_are_cut_as_by_mli),
        TEST(points_are_found_as_by_mli),
        TEST(the_differences_are_those_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
