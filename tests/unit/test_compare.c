/* Two files held against each other: what differs, where and by how much. */
#include "support.h"

#include <math.h>

#include "files.h"
#include "make.h"

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
        fail_msg("%s", err.text);
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
    CHECK(f.count == 2 && f.all[0].a == NULL && f.all[0].b == NULL && f.all[0].what == 0);     /* the files' metadata first */
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
    simple a = floats(f32, 6), b = { .name = "t", .dtype = TN_FLOAT64, .rank = 1, .shape = { 6 }, .data = f64 }, c = a;
    tn_difference d = differ(&a, &b);
    CHECK((d.what & TN_DIFF_DTYPE) && !(d.what & TN_DIFF_VALUES) && d.differing == 0);      /* the same numbers */
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
        write_file("b.zt", (tn_create_options){ .replace = true, .encoding = i % 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW }, &a, 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(equal_files_do_not_differ),
        IN_FOLDER(values_are_compared_one_by_one),
        IN_FOLDER(special_values_are_counted_apart),
        IN_FOLDER(types_shapes_and_values_are_told_apart),
        IN_FOLDER(metadata_is_compared),
        IN_FOLDER(missing_tensors_are_named_on_their_side),
        IN_FOLDER(one_element_is_found_in_a_large_tensor),
        TEST(what_cannot_be_read_is_said_to_be_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
