/* Two files held against each other: what differs, where and by how much. */
#include "support.h"

#include <math.h>

#include "files.h"
#include "make.h"
#include "coo.h"

typedef struct found {
    tn_difference all[16];
    char          why[16][100];
    size_t        count;
} found;

static void keep(void *context, const tn_difference *d)
{
    found *f = context;
    REQUIRE(f->count < 16);
    if (d->why)
        snprintf(f->why[f->count], sizeof f->why[0], "%s", d->why);
    f->all[f->count++] = *d;
}

static size_t compare(const char *a, const char *b, found *f)
{
    tn_file *x = open_file(a), *y = open_file(b);
    tn_error err = { .text = "" };
    size_t different = 99;
    f->count = 0;
    tn_compare_options options = { .size = sizeof options, .jobs = 2, .context = f };
    if (tn_compare(x, y, &options, keep, &different, &err))
        fail_msg("%s", line_of(&err));
    tn_close(x);        /* what was reported is looked at, not what it points to */
    tn_close(y);
    return different;
}

/* Writes `a` as a.zt and `b` as b.safetensors, each one tensor "t", and returns how they differ. */
static tn_difference differ(const simple *a, const simple *b)
{
    found f;
    write_file("a.zt", (tn_create_options){ .replace = true }, a, 1);
    write_file("b.safetensors", (tn_create_options){ .replace = true }, b, 1);
    size_t different = compare("a.zt", "b.safetensors", &f);
    /* the files' metadata first */
    CHECK(f.count == 2 && f.all[0].a == NULL && f.all[0].b == NULL && f.all[0].what == 0);
    CHECK(different == (f.all[1].what != 0));
    return f.all[1];
}

static simple floats(const float *data, int64_t n)
{
    return (simple){ .name = "t", .dtype = TN_FLOAT32, .rank = 1, .shape = { n }, .data = data };
}

static void equal_files_do_not_differ(void)
{
    static const float data[] = { 1, -0.0f, INFINITY, NAN };
    simple t = floats(data, 4);
    tn_difference d = differ(&t, &t);
    CHECK(d.what == 0 && d.elements == 4 && d.differing == 0 && d.bits == 0);
}

static void values_are_compared_one_by_one(void)
{
    static const float a[] = { 1, 2, 4, 8 }, b[] = { 1, 2.5f, 4, 7 };
    simple x = floats(a, 4), y = floats(b, 4);
    tn_difference d = differ(&x, &y);
    CHECK(d.what == TN_DIFF_VALUES && d.elements == 4 && d.differing == 2 && d.first == 1 && d.specials == 0);
    CHECK(d.max_abs == 1 && d.max_rel == 0.25);
    uint32_t p, q;
    unsigned bits = 0;
    for (int i = 0; i < 4; i++) {
        memcpy(&p, &a[i], 4);
        memcpy(&q, &b[i], 4);
        bits += (unsigned)__builtin_popcount(p ^ q);
    }
    CHECK(d.bits == bits);
}

static void near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9 * fabs(expected))
        fail_msg("found %.17g, expected %.17g", value, expected);
}

/* Noise is 0.25 + 1, the signal 1 + 4 + 16 + 64; of elements that are equal too. */
static void signal_and_noise_are_those_of_all_values(void)
{
    static const float a[] = { 1, 2, 4, 8 }, b[] = { 1, 2.5f, 4, 7 };
    simple x = floats(a, 4), y = floats(b, 4);
    near(differ(&x, &y).sqnr, 10 * log10(85 / 1.25));
    near(differ(&y, &x).sqnr, 10 * log10((1 + 6.25 + 16 + 49) / 1.25));
    CHECK(isinf(differ(&x, &x).sqnr) && differ(&x, &x).sqnr > 0);
    static const float c[] = { NAN, 2, INFINITY, 8 }, d[] = { 1, 1, 1, NAN };
    x = floats(c, 4);
    y = floats(d, 4);
    near(differ(&x, &y).sqnr, 10 * log10(4 / 1.0));         /* the one pair of finite values */
    static const float zero[] = { 0, 0 }, one[] = { 1, 0 };
    x = floats(zero, 2);
    y = floats(one, 2);
    CHECK(isinf(differ(&x, &y).sqnr) && differ(&x, &y).sqnr < 0);
}

/* Chunks of equal bytes are part of the signal, wherever the difference is. */
static void equal_parts_of_a_large_tensor_count_as_signal(void)
{
    enum { N = 3000000 };
    static const size_t places[] = { 0, 1600000, N - 1 };
    float *data = malloc(N * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < N; i++)
        data[i] = 2;
    simple t = floats(data, N);
    write_file("a.zt", (tn_create_options){ 0 }, &t, 1);
    for (size_t i = 0; i < 3; i++) {
        found f;
        data[places[i]] = 3;
        write_file("b.zt",
                   (tn_create_options){ .replace = true,
                                        .encoding = i == 1 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW }, &t, 1);
        CHECK(compare("a.zt", "b.zt", &f) == 1 && f.all[1].differing == 1);
        near(f.all[1].sqnr, 10 * log10(4.0 * N));
        data[places[i]] = 2;
    }
    free(data);
}

typedef struct steps {
    uint64_t last, total;       /* done and to do, as told last */
    uint64_t stop_after;        /* bytes done; 0: never */
    size_t   reports;
} steps;

static int step(void *context, uint64_t done, uint64_t total)
{
    steps *s = context;
    CHECK(done >= s->last && done <= total && total >= s->total);
    s->last = done;
    s->total = total;
    return s->stop_after && done > s->stop_after;
}

static void count_report(void *context, const tn_difference *d)
{
    (void)d;
    ((steps *)context)->reports++;
}

/* Writes a.zt and b.zt: n numbers of many sizes, the same but for the last one if `differ`. */
static void write_near_twins(size_t n, bool differ)
{
    float *data = malloc(n * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)(i % 1013) * 0.37f - 100;
    simple t = floats(data, (int64_t)n);
    write_file("a.zt", (tn_create_options){ .replace = true }, &t, 1);
    data[n - 1] += differ ? 1 : 0;
    write_file("b.zt", (tn_create_options){ .replace = true }, &t, 1);
    free(data);
}

static tn_status compare_with_steps(unsigned jobs, steps *s)
{
    tn_file *x = open_file("a.zt"), *y = open_file("b.zt");
    tn_compare_options options = { .size = sizeof options, .jobs = jobs, .progress = step, .context = s };
    tn_status status = tn_compare(x, y, &options, count_report, NULL, NULL);
    tn_close(x);
    tn_close(y);
    return status;
}

/* Equal parts are read again when a tensor differs: that takes as long as the first time, and is told and
 * stopped as well. */
static void the_second_look_at_equal_parts_is_told_and_can_be_stopped(void)
{
    enum { N = 4000000, BYTES = 4 * N };
    for (unsigned jobs = 1; jobs <= 3; jobs++) {
        steps all = { 0 }, stopped = { .stop_after = BYTES }, none = { 0 };
        write_near_twins(N, true);
        CHECK(compare_with_steps(jobs, &all) == TN_OK && all.reports == 2);
        CHECK(all.last == 2 * BYTES && all.total == 2 * BYTES);
        CHECK(compare_with_steps(jobs, &stopped) == TN_ERR_CANCELLED && stopped.reports == 0);
        CHECK(stopped.last > BYTES && stopped.last < 2 * BYTES);
        write_near_twins(N, false);
        CHECK(compare_with_steps(jobs, &none) == TN_OK && none.reports == 2);
        CHECK(none.last == BYTES && none.total == BYTES);
    }
}

static void the_signal_of_equal_parts_does_not_depend_on_threads(void)
{
    double sqnr[4];
    write_near_twins(4000000, true);
    for (unsigned jobs = 1; jobs <= 4; jobs++) {
        tn_file *x = open_file("a.zt"), *y = open_file("b.zt");
        found f = { .count = 0 };
        tn_compare_options options = { .size = sizeof options, .jobs = jobs, .context = &f };
        CHECK(tn_compare(x, y, &options, keep, NULL, NULL) == TN_OK && f.count == 2);
        sqnr[jobs - 1] = f.all[1].sqnr;
        tn_close(x);
        tn_close(y);
    }
    CHECK(sqnr[0] > 100 && sqnr[0] == sqnr[1] && sqnr[0] == sqnr[2] && sqnr[0] == sqnr[3]);
}

static simple one_of(tn_dtype dtype, const void *data)
{
    return (simple){ .name = "t", .dtype = dtype, .rank = 1, .shape = { 1 }, .data = data };
}

/* Steps of the coarser type at a. */
static void differences_are_told_in_steps_of_the_coarser_type(void)
{
    static const float a = 1.0f + 0x1p-9f, third = 3, next = 1.0f + 0x1p-23f, one = 1;
    static const uint16_t bf16 = 0x3f80, f16 = 0x4200, f16_small = 0x0001;      /* 1, 3, 2^-24 */
    static const uint8_t e4m3 = 0x39;                                           /* 1.125 */
    static const int32_t i = 7, k = 10;
    static const double half_small = 0x1p-25, big = 1e300, bigger = 1e300 * (1 + 0x1p-52);
    static const float z[] = { 1, 1 }, w[] = { 1, 1 + 0x1p-22f };
    simple x = one_of(TN_FLOAT32, &a), y = one_of(TN_BFLOAT16, &bf16);
    CHECK(differ(&x, &y).max_ulp == 0.25);              /* 2^-9 in steps of 2^-7 */
    CHECK(differ(&y, &x).max_ulp == 0.25);
    x = one_of(TN_FLOAT32, &third);
    y = one_of(TN_FLOAT16, &f16);
    CHECK(differ(&x, &y).max_ulp == 0 && differ(&x, &y).differing == 0);
    x = one_of(TN_FLOAT32, &one);
    y = one_of(TN_FLOAT32, &next);
    CHECK(differ(&x, &y).max_ulp == 1);
    y = one_of(TN_FLOAT8_E4M3FN, &e4m3);
    CHECK(differ(&x, &y).max_ulp == 1);
    x = one_of(TN_FLOAT64, &half_small);
    y = one_of(TN_FLOAT16, &f16_small);
    /* below the smallest normal the steps stay as they are */
    CHECK(differ(&x, &y).max_ulp == 0.5);
    x = one_of(TN_FLOAT64, &big);
    y = one_of(TN_FLOAT64, &bigger);
    CHECK(differ(&x, &y).max_ulp == 1);
    x = one_of(TN_INT32, &i);
    y = one_of(TN_INT32, &k);
    CHECK(differ(&x, &y).max_ulp == 3);
    x = one_of(TN_COMPLEX64, z);
    y = one_of(TN_COMPLEX64, w);
    CHECK(differ(&x, &y).max_ulp == 2);
}

/* Sums are made in the same order for any number of threads. */
static void figures_do_not_depend_on_threads(void)
{
    enum { N = 4000000 };
    float *data = malloc(N * sizeof *data);
    double results[2][3];
    assert_non_null(data);
    for (size_t i = 0; i < N; i++)
        data[i] = (float)(i % 1013) * 0.37f - 100;
    simple a = floats(data, N);
    write_file("a.zt", (tn_create_options){ 0 }, &a, 1);
    for (size_t i = 0; i < N; i += 3)
        data[i] *= 1 + (float)(i % 7) * 1e-4f;
    write_file("b.zt", (tn_create_options){ 0 }, &a, 1);
    free(data);
    for (unsigned jobs = 1; jobs <= 3; jobs += 2) {
        tn_file *x = open_file("a.zt"), *y = open_file("b.zt");
        found f = { .count = 0 };
        tn_compare_options options = { .size = sizeof options, .jobs = jobs, .context = &f };
        CHECK(tn_compare(x, y, &options, keep, NULL, NULL) == TN_OK && f.count == 2);
        const double figures[3] = { f.all[1].sqnr, f.all[1].max_ulp, f.all[1].max_rel };
        memcpy(results[jobs / 2], figures, sizeof figures);
        tn_close(x);
        tn_close(y);
    }
    CHECK(results[0][0] > 50 && memcmp(results[0], results[1], sizeof results[0]) == 0);
}

static void special_values_are_counted_apart(void)
{
    static const float a[] = { NAN, 1, INFINITY, 3 }, b[] = { 1, NAN, -INFINITY, 3 };
    simple x = floats(a, 4), y = floats(b, 4);
    tn_difference d = differ(&x, &y);
    CHECK(d.what == TN_DIFF_VALUES && d.differing == 3 && d.specials == 3 && d.first == 0 && d.max_abs == 0);
}

static void types_shapes_and_values_are_told_apart(void)
{
    static const float f32[] = { 1, 2, 3, 4, 5, 6 };
    static const double f64[] = { 1, 2, 3, 4, 5, 6 };
    simple a = floats(f32, 6), b = { .name = "t", .dtype = TN_FLOAT64, .rank = 1, .shape = { 6 },
                                     .data = f64 }, c = a;
    tn_difference d = differ(&a, &b);
    /* the same numbers */
    CHECK((d.what & TN_DIFF_DTYPE) && !(d.what & TN_DIFF_VALUES) && d.differing == 0);
    c.rank = 2;
    c.shape[0] = 2;
    c.shape[1] = 3;
    d = differ(&a, &c);
    CHECK(d.what & TN_DIFF_SHAPE);
}

static void metadata_is_compared(void)
{
    static const float one[] = { 1 };
    static const tn_meta meta[] = { { .key = "k", .text = "v" } }, other[] = { { .key = "k", .text = "w" } };
    simple a = floats(one, 1), b = a;
    b.meta = meta;
    b.nmeta = 1;
    CHECK(differ(&a, &b).what == TN_DIFF_META);
    a.meta = other;
    a.nmeta = 1;
    CHECK(differ(&a, &b).what == TN_DIFF_META);
    a.meta = meta;
    CHECK(differ(&a, &b).what == 0);
}

static void missing_tensors_are_named_on_their_side(void)
{
    static const float data[] = { 1, 2 };
    simple a[] = { floats(data, 2), floats(data, 2), floats(data, 1) }, b[2];
    a[0].name = "only a";
    a[1].name = "both";
    a[2].name = "shared";
    b[0] = a[2];
    b[1] = a[1];
    found f;
    write_file("a.zt", (tn_create_options){ 0 }, a, 3);
    write_file("b.zt", (tn_create_options){ 0 }, b, 2);
    CHECK(compare("a.zt", "b.zt", &f) == 1);
    CHECK(f.count == 4 && f.all[1].what == TN_DIFF_ONLY_A && f.all[2].what == 0 && f.all[3].what == 0);
    CHECK(compare("b.zt", "a.zt", &f) == 1);
    CHECK(f.count == 4 && f.all[3].what == TN_DIFF_ONLY_B);
}

/* Names of those that differ, and what was said of them. */
typedef struct summary {
    size_t reports, differing;
    double numbers, figures;    /* sums */
} summary;

static void sum_up(void *context, const tn_difference *d)
{
    summary *s = context;
    s->reports += d->a != NULL;
    if (!(d->what & TN_DIFF_VALUES))
        return;
    s->differing++;
    s->numbers += atof(d->a->name) + (double)d->first;
    s->figures += d->max_abs + d->sqnr;
}

/* Items have many of them, in any order, with one between them that is missing or too large. */
static void small_tensors_are_compared_many_at_a_time(void)
{
    enum { TENSORS = 300, N = 40, LARGE = 20000, GONE = 100, LONG = 200 };
    static float values[LARGE], others[TENSORS][N];
    static char names[TENSORS][8];
    static simple a[TENSORS], b[TENSORS];
    double numbers = 0, sqnr = 0;
    for (size_t i = 0; i < LARGE; i++)
        values[i] = (float)(i % 7) + 1;
    for (size_t i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        memcpy(others[i], values, sizeof others[i]);
        a[i] = floats(values, i == LONG ? LARGE : N);
        a[i].name = names[i];
        b[TENSORS - 1 - i] = a[i];
        if (i % 7 != 3 || i == GONE || i == LONG)
            continue;
        others[i][i % N] += 1;
        b[TENSORS - 1 - i].data = others[i];
        numbers += (double)(i + i % N);
        double signal = 0;
        for (size_t k = 0; k < N; k++)
            signal += (double)values[k] * (double)values[k];
        sqnr += 10 * log10(signal);
    }
    b[TENSORS - 1 - GONE].name = "gone";
    write_file("a.zt", (tn_create_options){ .replace = true }, a, TENSORS);
    write_file("b.zt", (tn_create_options){ .replace = true }, b, TENSORS);
    for (unsigned jobs = 1; jobs <= 3; jobs++) {
        tn_file *x = open_file("a.zt"), *y = open_file("b.zt");
        summary s = { 0 };
        size_t different;
        const tn_compare_options options = { .size = sizeof options, .jobs = jobs, .context = &s };
        CHECK(tn_compare(x, y, &options, sum_up, &different, NULL) == TN_OK);
        CHECK(s.reports == TENSORS && different == s.differing + 2 && s.differing > 40);
        CHECK(s.numbers == numbers);
        near(s.figures, (double)s.differing + sqnr);
        tn_close(x);
        tn_close(y);
    }
}

/* One element differs in a tensor of several windows and several spans: found, wherever it is. */
static void one_element_is_found_in_a_large_tensor(void)
{
    enum { N = 9 << 20 };
    static const size_t places[] = { 0, 262143, 262144, 5 << 20, 8 << 20, N - 1 };
    uint8_t *data = calloc(N, 1);
    assert_non_null(data);
    simple a = { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { N }, .data = data };
    write_file("a.zt", (tn_create_options){ 0 }, &a, 1);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        found f;
        data[places[i]] = 3;
        write_file("b.zt",
                   (tn_create_options){ .replace = true,
                                        .encoding = i % 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW }, &a, 1);
        CHECK(compare("a.zt", "b.zt", &f) == 1);
        CHECK(f.all[1].what == TN_DIFF_VALUES && f.all[1].differing == 1 && f.all[1].first == places[i]);
        CHECK(f.all[1].max_abs == 3 && f.all[1].bits == 2 && f.all[1].elements == N);
        data[places[i]] = 0;
    }
    free(data);
}

static void what_cannot_be_read_is_said_to_be_so(void)
{
    tn_file *a, *b;
    size_t different = 0;
    found f = { .count = 0 };
    tn_compare_options options = { .size = sizeof options, .jobs = 1, .context = &f };
    CHECK(tn_open(TEST_GOLDEN "/ztensor/edge/unknown_encoding.zt", NULL, &a, NULL) == TN_OK);
    CHECK(tn_open(TEST_GOLDEN "/ztensor/edge/definite_map.zt", NULL, &b, NULL) == TN_OK);
    CHECK(tn_compare(a, b, &options, keep, &different, NULL) == TN_OK && different == 1);
    CHECK(f.count == 2 && (f.all[1].what & TN_DIFF_UNREAD) && strstr(f.why[1], "lz4"));
    tn_close(a);
    tn_close(b);
}

static void sparse_tensors_of_other_numbers_of_entries_are_not_equal(void)
{
    static const float values[] = { 1, 2 };
    static const int64_t shape[] = { 2, 3 }, indices[] = { 0, 0, 1, 2 }, others[] = { 0, 0, 1, 1 };
    found f;
    write_entries("a.zt", TN_FLOAT32, shape, values, indices, 2);
    write_entries("b.zt", TN_FLOAT32, shape, values, indices, 1);
    CHECK(compare("a.zt", "b.zt", &f) == 1 && f.all[1].what == TN_DIFF_UNREAD);
    assert_string_equal(f.why[1],
                        "part \"values\" has 2 and 1 entries: tensors of form dense can be compared");
    write_entries("b.zt", TN_FLOAT32, shape, values, others, 2);
    CHECK(compare("a.zt", "b.zt", &f) == 1 && f.all[1].what == TN_DIFF_VALUES && f.all[1].differing == 1);
    write_entries("b.zt", TN_FLOAT32, shape, values, indices, 2);
    CHECK(compare("a.zt", "b.zt", &f) == 0);
}

/* A block has no largest number.  The memory ends with the last block: nothing beyond it is read. */
static void blocks_have_no_limits(void)
{
    enum { N = 4096 };
    static float values[N];
    for (int i = 0; i < N; i++)
        values[i] = (float)(i * 7 % 127 - 63);
    simple t = floats(values, N);
    write_file("a.zt", (tn_create_options){ .replace = true }, &t, 1);
    const tn_rule rule = { "cast", "q4_0" };
    const tn_convert_options o = { .size = sizeof o, .rules = &rule, .nrules = 1 };
    tn_file *a = open_file("a.zt"), *b;
    tn_error err = { .text = "" };
    if (tn_convert(a, in_folder("b.gguf").text, &o, NULL, &err))
        fail_msg("%s", line_of(&err));
    size_t n, different;
    uint8_t *bytes = load_file(in_folder("b.gguf").text, &n);
    CHECK(tn_open_memory(bytes, n, NULL, &b, NULL) == TN_OK);
    found f = { .count = 0 };
    const tn_compare_options options = { .size = sizeof options, .context = &f };
    CHECK(tn_compare(a, b, &options, keep, &different, NULL) == TN_OK && different == 1);
    CHECK(f.all[1].differing > 0 && f.all[1].saturated == 0);
    tn_close(a);
    tn_close(b);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(equal_files_do_not_differ),
        IN_FOLDER(values_are_compared_one_by_one),
        IN_FOLDER(special_values_are_counted_apart),
        IN_FOLDER(signal_and_noise_are_those_of_all_values),
        IN_FOLDER(equal_parts_of_a_large_tensor_count_as_signal),
        IN_FOLDER(the_second_look_at_equal_parts_is_told_and_can_be_stopped),
        IN_FOLDER(the_signal_of_equal_parts_does_not_depend_on_threads),
        IN_FOLDER(differences_are_told_in_steps_of_the_coarser_type),
        IN_FOLDER(figures_do_not_depend_on_threads),
        IN_FOLDER(types_shapes_and_values_are_told_apart),
        IN_FOLDER(metadata_is_compared),
        IN_FOLDER(missing_tensors_are_named_on_their_side),
        IN_FOLDER(small_tensors_are_compared_many_at_a_time),
        IN_FOLDER(one_element_is_found_in_a_large_tensor),
        IN_FOLDER(sparse_tensors_of_other_numbers_of_entries_are_not_equal),
        IN_FOLDER(blocks_have_no_limits),
        TEST(what_cannot_be_read_is_said_to_be_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
