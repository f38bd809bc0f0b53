/* Sorting and checking of sparse entries: against qsort() and plain loops. */
#include "support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "random.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "sparse/sparse_sort.h"

#include <tenon/cast.h>

static const tn_dtype index_types[] = { TN_INT32, TN_INT64, TN_UINT32, TN_UINT64 };
enum { INDEX_TYPES = 4, JOBS = 3 };
static const unsigned jobs[JOBS] = { 1, 2, 4 };
static tn_pool *pools[JOBS];

static size_t width_of(tn_dtype dtype) { return tn_dtype_get(dtype)->bits / 8u; }

/* --- tensors ----------------------------------------------------------------- */

/* Its parts lie at odd addresses, in blocks that end where they do. */
typedef struct subject {
    tn_tensor t;
    tn_part   parts[3];
    int64_t   shape[TN_MAX_RANK], shapes[3][2];
    uint8_t  *blocks[3];
} subject;

static uint8_t *data_of(const subject *s, int part) { return s->blocks[part] + 1; }

static void add_part(subject *s, const char *role, tn_dtype dtype, uint32_t rank, int64_t n, int64_t columns)
{
    uint32_t i = s->t.nparts++;
    s->shapes[i][0] = n;
    s->shapes[i][1] = columns;
    s->parts[i] = (tn_part){ .role = role, .array = { .dtype = dtype, .rank = rank, .shape = s->shapes[i] } };
    CHECK(tn_array_nbytes(&s->parts[i].array, &s->parts[i].nbytes) == TN_OK);
    s->blocks[i] = calloc((size_t)s->parts[i].nbytes + 1, 1);
    assert_non_null(s->blocks[i]);
    s->parts[i].data = data_of(s, (int)i);
}

static subject *new_subject(tn_form form, tn_dtype dtype, tn_dtype index, uint32_t rank,
                            const int64_t *shape, uint64_t n)
{
    subject *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (uint32_t i = 0; i < rank; i++)
        s->shape[i] = shape[i];
    s->t = (tn_tensor){ .name = "t", .form = form, .dtype = dtype, .rank = rank, .shape = s->shape,
                        .parts = s->parts };
    add_part(s, "values", dtype, 1, (int64_t)n, 0);
    if (form == TN_FORM_CSR) {
        add_part(s, "indices", index, 1, (int64_t)n, 0);
        add_part(s, "indptr", index, 1, (rank == 3 ? shape[0] * shape[1] : shape[0]) + 1, 0);
    } else {
        add_part(s, "indices", index, 2, (int64_t)n, (int64_t)rank);
    }
    return s;
}

static void drop(subject *s)
{
    for (int i = 0; i < 3; i++)
        free(s->blocks[i]);
    free(s);
}

static void set_index(subject *s, int part, uint64_t i, uint64_t value)
{
    tn_code_put(data_of(s, part), i, tn_dtype_get(s->parts[1].array.dtype)->bits, value);
}

/* Entry i of a COO tensor gets the indices of this key. */
static void set_key(subject *s, uint64_t i, uint64_t key)
{
    for (uint32_t k = s->t.rank; k-- > 0;) {
        set_index(s, 1, i * s->t.rank + k, key % (uint64_t)s->shape[k]);
        key /= (uint64_t)s->shape[k];
    }
}

static void set_value(subject *s, uint64_t i, const void *value)
{
    size_t width = width_of(s->t.dtype);
    memcpy(data_of(s, 0) + i * width, value, width);
}

static void fill_values(subject *s)
{
    for (uint64_t i = 0; i < s->parts[0].nbytes; i++)
        data_of(s, 0)[i] = (uint8_t)bits64();
}

static subject *coo_of(tn_dtype dtype, tn_dtype index, uint32_t rank, const int64_t *shape, uint64_t n,
                       const uint64_t *keys)
{
    subject *s = new_subject(TN_FORM_COO, dtype, index, rank, shape, n);
    for (uint64_t i = 0; i < n; i++)
        set_key(s, i, keys[i]);
    fill_values(s);
    return s;
}

/* --- the plain way ------------------------------------------------------------ */

typedef struct entry { uint64_t key, number; } entry;

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static entry *sorted_entries(const uint64_t *keys, uint64_t n)
{
    entry *e = malloc((n + 1) * sizeof *e);
    assert_non_null(e);
    for (uint64_t i = 0; i < n; i++)
        e[i] = (entry){ keys[i], i };
    qsort(e, n, sizeof *e, compare);
    return e;
}

/* The sum of float values, through tn_cast(). */
static void plain_float_sum(const subject *s, const entry *e, uint64_t n, uint8_t *to)
{
    const int64_t one[] = { 1 };
    double sum[2] = { 0, 0 };
    for (uint64_t i = 0; i < n; i++) {
        tn_value v = tn_value_get(s->t.dtype, data_of(s, 0), e[i].number);
        sum[0] = i ? sum[0] + v.re : v.re;
        sum[1] = i ? sum[1] + v.im : v.im;
    }
    bool complex = tn_dtype_get(s->t.dtype)->kind == TN_KIND_COMPLEX;
    tn_array from = { .dtype = complex ? TN_COMPLEX128 : TN_FLOAT64, .rank = 1, .shape = one };
    tn_array made = { .dtype = s->t.dtype, .rank = 1, .shape = one };
    CHECK(tn_cast(&made, to, &from, sum, TN_HOST_ORDER, NULL, NULL) == TN_OK);
}

static void plain_sum(const subject *s, const entry *e, uint64_t n, uint8_t *to)
{
    const tn_dtype_info *type = tn_dtype_get(s->t.dtype);
    uint64_t sum = 0;
    if (type->kind == TN_KIND_FLOAT || type->kind == TN_KIND_COMPLEX) {
        plain_float_sum(s, e, n, to);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t code = tn_code_get(data_of(s, 0), e[i].number, type->bits);
        sum = type->kind == TN_KIND_BOOL ? (sum || code) : sum + code;
    }
    tn_code_put(to, 0, type->bits, sum);
}

/* The result is that of the plain way, whatever the number of jobs. */
static void check_sorted(const subject *s, const uint64_t *keys, uint64_t n, tn_duplicates duplicates)
{
    size_t width = width_of(s->t.dtype);
    entry *e = sorted_entries(keys, n);
    for (int k = 0; k < JOBS; k++) {
        tn_entry_order order;
        tn_entries made;
        tn_error err = { 0 };
        CHECK(tn_entries_check(&s->t, pools[k], &order, &err) == TN_OK);
        CHECK(tn_entries_sort(&s->t, duplicates, pools[k], &made, &err) == TN_OK);
        uint64_t count = 0;
        for (uint64_t i = 0, same; i < n; i += same) {
            uint8_t value[16];
            for (same = 1; i + same < n && e[i + same].key == e[i].key;)
                same++;
            if (same == 1)
                memcpy(value, data_of(s, 0) + e[i].number * width, width);
            else
                plain_sum(s, e + i, same, value);
            CHECK(count < made.count && made.keys[count] == e[i].key);
            CHECK(memcmp(made.values + count * width, value, width) == 0);
            count++;
        }
        CHECK(made.count == count);
        tn_entries_free(&made);
    }
    free(e);
}

/* --- sorting ------------------------------------------------------------------ */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* n different keys below `limit`, in any order; fewer where many turn out the same. */
static uint64_t random_keys(uint64_t *keys, uint64_t n, uint64_t limit)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        keys[i] = below(limit);
    qsort(keys, n, sizeof *keys, compare_u64);
    for (uint64_t i = 0; i < n; i++)
        if (!kept || keys[i] != keys[kept - 1])
            keys[kept++] = keys[i];
    for (uint64_t i = kept; i > 1; i--) {
        uint64_t k = below(i), key = keys[i - 1];
        keys[i - 1] = keys[k];
        keys[k] = key;
    }
    return kept;
}

static uint64_t *new_keys(uint64_t n)
{
    uint64_t *keys = malloc((n + 1) * sizeof *keys);
    assert_non_null(keys);
    return keys;
}

static void values_of_every_type_travel_with_every_type_of_index(void)
{
    const int64_t shape[] = { 300, 200 };
    uint64_t keys[800], n = random_keys(keys, 800, 60000);
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++)
        for (int i = 0; i < INDEX_TYPES && tn_dtype_get((tn_dtype)dtype)->bits >= 8; i++) {
            subject *s = coo_of((tn_dtype)dtype, index_types[i], 2, shape, n, keys);
            check_sorted(s, keys, n, TN_DUPLICATES_REFUSE);
            drop(s);
        }
}

static void tensors_of_every_rank_are_sorted(void)
{
    const int64_t shape[] = { 7, 3, 11, 5, 2, 13, 1, 4 };
    uint64_t keys[500], elements = 1;
    for (uint32_t rank = 1; rank <= 8; rank++) {
        elements *= (uint64_t)shape[rank - 1];
        uint64_t n = random_keys(keys, elements < 500 ? elements : 500, elements);
        for (int i = 0; i < INDEX_TYPES; i++) {
            subject *s = coo_of(TN_FLOAT32, index_types[i], rank, shape, n, keys);
            check_sorted(s, keys, n, TN_DUPLICATES_REFUSE);
            drop(s);
        }
    }
}

static void any_number_of_entries_is_sorted(void)
{
    static const uint64_t sizes[] = { 0, 1, 2, 3, 23, 24, 25, 26, 511, 512, 513, 8191, 8193, 65537, 131071,
                                      131072, 131073, 300001 };
    const int64_t shape[] = { 1 << 20, 1 << 20 };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t *keys = new_keys(sizes[k]), n = random_keys(keys, sizes[k], UINT64_C(1) << 40);
        subject *s = coo_of(k % 2 ? TN_UINT8 : TN_COMPLEX128, TN_INT32, 2, shape, n, keys);
        check_sorted(s, keys, n, TN_DUPLICATES_REFUSE);
        drop(s);
        free(keys);
    }
}

/* How keys may lie; `many` makes the first deal too coarse for most of them. */
typedef enum manner { SORTED, REVERSED, EQUAL, ONE_ROW, HOT_ROWS, OUTLIER, GEOMETRIC, RUNS, MANNERS } manner;

static uint64_t key_in(manner m, uint64_t i, uint64_t n)
{
    const uint64_t limit = UINT64_C(1) << 62;
    switch (m) {
    case SORTED:
        return i * 3;
    case REVERSED:
        return (n - i) * (limit / n) - 1;
    case EQUAL:
        return limit - 1;
    case ONE_ROW:
        return limit / 2 + below(n / 2);
    case HOT_ROWS:
        return below(2) ? below(limit) : limit / 8 * (1 + below(3)) + below(n / 4);
    case OUTLIER:
        return i == n / 2 ? limit - 1 : below(1000000);
    case GEOMETRIC:
        return below(UINT64_C(1) << (1 + below(62)));
    default:
        return (i % 16) * (limit / 16) + i / 16;
    }
}

static void skewed_keys_are_sorted_and_summed(void)
{
    const int64_t shape[] = { INT64_C(1) << 31, INT64_C(1) << 31 };
    static const uint64_t sizes[] = { 100, 5000, 400000 };
    for (int m = 0; m < MANNERS; m++)
        for (int k = 0; k < 3; k++) {
            uint64_t n = sizes[k], *keys = new_keys(n);
            for (uint64_t i = 0; i < n; i++)
                keys[i] = key_in((manner)m, i, n);
            subject *s = coo_of(TN_BOOL, TN_UINT32, 2, shape, n, keys);
            check_sorted(s, keys, n, TN_DUPLICATES_SUM);
            drop(s);
            free(keys);
        }
}

static void wide_keys_of_few_entries_are_sorted(void)
{
    const int64_t shape[] = { INT64_C(1) << 31, INT64_C(1) << 31 };
    for (uint64_t n = 1; n <= 4096; n = n * 3 + 1) {
        uint64_t keys[4097];
        for (uint64_t i = 0; i < n; i++)
            keys[i] = i % 5 ? below(UINT64_C(1) << 62) : keys[i / 2];   /* many twice */
        keys[0] = 0;
        keys[n - 1] = (UINT64_C(1) << 62) - 1;
        subject *s = coo_of(TN_BOOL, TN_INT64, 2, shape, n, keys);
        check_sorted(s, keys, n, TN_DUPLICATES_SUM);
        drop(s);
    }
}

/* --- CSR ---------------------------------------------------------------------- */

/* Columns in any order; some rows are empty, some long. */
static subject *random_csr(uint32_t rank, const int64_t *shape, tn_dtype index, uint64_t *keys,
                           uint64_t *count)
{
    uint64_t rows = (uint64_t)(rank == 3 ? shape[0] * shape[1] : shape[0]),
             columns = (uint64_t)shape[rank - 1], n = 0;
    uint64_t *row = new_keys(columns), *pointers = new_keys(rows + 1);
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t size = below(3) ? below(columns / 2 + 1) : 0, kept = random_keys(row, size, columns);
        pointers[r] = n;
        for (uint64_t i = 0; i < kept; i++)
            keys[n++] = r * columns + row[i];
    }
    pointers[rows] = n;
    subject *s = new_subject(TN_FORM_CSR, TN_FLOAT32, index, rank, shape, n);
    for (uint64_t i = 0; i < n; i++)
        set_index(s, 1, i, keys[i] % columns);
    for (uint64_t r = 0; r <= rows; r++)
        set_index(s, 2, r, pointers[r]);
    fill_values(s);
    free(row);
    free(pointers);
    *count = n;
    return s;
}

static void rows_of_csr_are_sorted(void)
{
    static const int64_t shapes[][3] = { { 50, 40 }, { 1, 1 }, { 3, 900 }, { 900, 3 }, { 5, 6, 70 },
                                         { 1, 40, 20 } };
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < INDEX_TYPES; i++) {
            uint64_t keys[50 * 40 * 2], n;
            subject *s = random_csr(k < 4 ? 2 : 3, shapes[k], index_types[i], keys, &n);
            check_sorted(s, keys, n, TN_DUPLICATES_REFUSE);
            drop(s);
        }
}

static void a_large_csr_tensor_is_sorted(void)
{
    const int64_t shape[] = { 3000, 500 };
    uint64_t *keys = new_keys(3000 * 500), n;
    subject *s = random_csr(2, shape, TN_INT32, keys, &n);
    CHECK(n > 200000);
    check_sorted(s, keys, n, TN_DUPLICATES_REFUSE);
    drop(s);
    free(keys);
}

/* --- duplicates --------------------------------------------------------------- */

/* Small numbers, so that integers do not overflow. */
static void fill_small(subject *s)
{
    const tn_dtype_info *type = tn_dtype_get(s->t.dtype);
    uint64_t n = (uint64_t)s->shapes[0][0];
    for (uint64_t i = 0; i < n; i++) {
        const int64_t one[] = { 1 };
        double number = type->kind == TN_KIND_UINT || type->kind == TN_KIND_BOOL ? (double)below(3)
                                                                                 : (double)below(5) - 2.0;
        uint8_t value[16];
        tn_array from = { .dtype = TN_FLOAT64, .rank = 1, .shape = one },
        to = { .dtype = s->t.dtype, .rank = 1, .shape = one };
        number = type->kind == TN_KIND_FLOAT ? number / 3 : number;
        CHECK(tn_cast(&to, value, &from, &number, TN_HOST_ORDER, NULL, NULL) == TN_OK);
        set_value(s, i, value);
    }
}

static void duplicates_of_every_type_are_summed(void)
{
    const int64_t shape[] = { 9, 9 };
    uint64_t keys[500];
    for (uint64_t i = 0; i < 500; i++)
        keys[i] = i < 30 ? i : below(81);
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++) {
        const tn_dtype_info *type = tn_dtype_get((tn_dtype)dtype);
        if (type->bits < 8 || dtype == TN_FLOAT8_E8M0)
            continue;
        subject *s = coo_of((tn_dtype)dtype, TN_INT32, 2, shape, 500, keys);
        fill_small(s);
        check_sorted(s, keys, 500, TN_DUPLICATES_SUM);
        drop(s);
    }
}

/* The values of one element, added up. */
static tn_status sum_of(tn_dtype dtype, const void *values, uint64_t n, void *sum, tn_error *err)
{
    const int64_t shape[] = { 2, 6 };
    tn_entries made;
    subject *s = new_subject(TN_FORM_COO, dtype, TN_INT64, 2, shape, n);
    for (uint64_t i = 0; i < n; i++) {
        set_key(s, i, 11);
        set_value(s, i, (const uint8_t *)values + i * width_of(dtype));
    }
    tn_status status = tn_entries_sort(&s->t, TN_DUPLICATES_SUM, pools[1], &made, err);
    if (!status) {
        CHECK(made.count == 1 && made.keys[0] == 11);
        memcpy(sum, made.values, width_of(dtype));
        tn_entries_free(&made);
    } else {
        CHECK(!made.count && !made.keys && !made.values);
    }
    drop(s);
    return status;
}

static void floats_are_summed_in_order_and_rounded_once(void)
{
    const float small[] = { 16777216, 1, 1 };               /* float32 would stay at 2^24 */
    const double order[] = { 1e16, 1, -1e16, 1 };           /* 1 is lost in 1e16, not in 0 */
    const float large[] = { 3e38f, 3e38f, -3e38f, -3e38f }, beyond[] = { 3e38f, 3e38f };
    const double zeros[] = { -0.0, -0.0 };
    float f;
    double d;
    CHECK(sum_of(TN_FLOAT32, small, 3, &f, NULL) == TN_OK && f == 16777218);
    CHECK(sum_of(TN_FLOAT64, order, 4, &d, NULL) == TN_OK && d == 1);
    CHECK(sum_of(TN_FLOAT32, large, 4, &f, NULL) == TN_OK && f == 0);
    CHECK(sum_of(TN_FLOAT32, beyond, 2, &f, NULL) == TN_OK && isinf(f));
    CHECK(sum_of(TN_FLOAT64, zeros, 2, &d, NULL) == TN_OK && d == 0 && signbit(d));
}

/* As a cast does unless it is told otherwise: types with an infinity have that, others their largest
 * number. */
static void float_sums_that_overflow_follow_the_rule_of_casts(void)
{
    const uint16_t half[] = { 0xfbff, 0xfbff }, brain[] = { 0x7f7f, 0x7f7f };
    const uint8_t e4m3fn[] = { 0x7e, 0x7e }, e5m2[] = { 0xfb, 0xfb };
    const double twice[] = { 1.7e308, 1.7e308 };
    const float complex[] = { 3e38f, 1, 3e38f, -3 };
    uint16_t word;
    uint8_t byte;
    double d;
    float pair[2];
    CHECK(sum_of(TN_FLOAT16, half, 2, &word, NULL) == TN_OK && word == 0xfc00);
    CHECK(sum_of(TN_BFLOAT16, brain, 2, &word, NULL) == TN_OK && word == 0x7f80);
    CHECK(sum_of(TN_FLOAT8_E4M3FN, e4m3fn, 2, &byte, NULL) == TN_OK && byte == 0x7e);
    CHECK(sum_of(TN_FLOAT8_E5M2, e5m2, 2, &byte, NULL) == TN_OK && byte == 0xfc);
    CHECK(sum_of(TN_FLOAT64, twice, 2, &d, NULL) == TN_OK && isinf(d) && d > 0);
    CHECK(sum_of(TN_COMPLEX64, complex, 2, pair, NULL) == TN_OK && isinf(pair[0]) && pair[1] == -2);
}

static void not_a_number_is_the_same_everywhere(void)
{
    const double infinities[] = { INFINITY, -INFINITY };
    const uint64_t nans[] = { UINT64_C(0xfff4000000000123), UINT64_C(0x3ff0000000000000) };
    const uint8_t fnuz[] = { 0x80, 0x01 };
    uint64_t bits;
    uint8_t byte;
    CHECK(sum_of(TN_FLOAT64, infinities, 2, &bits, NULL) == TN_OK && bits == UINT64_C(0x7ff8000000000000));
    CHECK(sum_of(TN_FLOAT64, nans, 2, &bits, NULL) == TN_OK && bits == UINT64_C(0x7ff8000000000000));
    CHECK(sum_of(TN_FLOAT8_E4M3FNUZ, fnuz, 2, &byte, NULL) == TN_OK && byte == 0x80);
}

static void integers_are_summed_exactly_or_refused(void)
{
    const int8_t back[] = { 127, 1, -1 }, beyond[] = { 100, -1, 100 };
    const int64_t wide_back[] = { INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN },
    wide[] = { INT64_MIN, INT64_MIN };
    const uint64_t full[] = { UINT64_MAX, 1 };
    int8_t small;
    int64_t large;
    uint64_t unsigned_sum;
    tn_error err;
    CHECK(sum_of(TN_INT8, back, 3, &small, &err) == TN_OK && small == 127);
    CHECK(sum_of(TN_INT64, wide_back, 4, &large, &err) == TN_OK && large == -2);
    CHECK(sum_of(TN_INT8, beyond, 3, &small, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "the 3 entries with indices (1, 5): expected a sum from -128 to 127 (int8) but found 199");
    CHECK(sum_of(TN_INT64, wide, 2, &large, &err) == TN_ERR_LOSS);
    CHECK(strstr(line_of(&err),
                 "from -9223372036854775808 to 9223372036854775807 (int64) but found -18446744073709551616"));
    CHECK(sum_of(TN_UINT64, full, 2, &unsigned_sum, &err) == TN_ERR_LOSS);
    CHECK(strstr(line_of(&err), "from 0 to 18446744073709551615 (uint64) but found 18446744073709551616"));
    CHECK(sum_of(TN_INT8, beyond, 3, &small, NULL) == TN_ERR_LOSS);
}

static void the_first_duplicates_are_named(void)
{
    const int64_t shape[] = { 1000, 1000 };
    uint64_t n = 300000, *keys = new_keys(n), kept = random_keys(keys, n, 900000);
    for (uint64_t i = 0; i < kept; i++)
        keys[i] += 100000;
    keys[kept - 1] = keys[1] = 5005;        /* the first in row-major order, though others come before them */
    keys[3] = keys[2] = 7000;
    keys[kept / 2] = 5005;
    subject *s = coo_of(TN_INT16, TN_UINT64, 2, shape, kept, keys);
    char expected[120];
    snprintf(expected, sizeof expected,
             "entries 1 and %llu have the same indices (5, 5): add them up with duplicates=sum",
             (unsigned long long)(kept / 2));
    for (int k = 0; k < JOBS; k++) {
        tn_entries made;
        tn_error err;
        CHECK(tn_entries_sort(&s->t, TN_DUPLICATES_REFUSE, pools[k], &made, &err) == TN_ERR_LOSS);
        assert_string_equal(said_of(&err), expected);
        CHECK(!made.count && !made.keys && !made.values);
        CHECK(tn_entries_sort(&s->t, TN_DUPLICATES_REFUSE, pools[k], &made, NULL) == TN_ERR_LOSS);
    }
    drop(s);
    free(keys);
}

static void indices_of_a_high_rank_are_cut_short(void)
{
    int64_t shape[TN_MAX_RANK];
    for (int i = 0; i < TN_MAX_RANK; i++)
        shape[i] = i < 2 ? 1000000000 : 1;
    const uint64_t keys[] = { UINT64_C(999999999999999999), UINT64_C(999999999999999999) };
    subject *s = coo_of(TN_INT8, TN_INT32, TN_MAX_RANK, shape, 2, keys);
    tn_entries made;
    tn_error err;
    CHECK(tn_entries_sort(&s->t, TN_DUPLICATES_REFUSE, pools[0], &made, &err) == TN_ERR_LOSS);
    CHECK(strstr(line_of(&err), "indices (999999999, 999999999, 0, 0,") &&
          strstr(line_of(&err), ", 0, ...): add them up"));
    drop(s);
}

static void a_scalar_has_one_entry(void)
{
    const uint8_t values[] = { 40, 2 };
    subject *s = new_subject(TN_FORM_COO, TN_UINT8, TN_INT32, 0, NULL, 2);
    tn_entries made;
    tn_entry_order order;
    tn_error err;
    set_value(s, 0, &values[0]);
    set_value(s, 1, &values[1]);
    CHECK(tn_entries_check(&s->t, pools[1], &order, &err) == TN_OK);
    CHECK(!order.ascending && order.first_wrong == 1 && order.duplicate);
    CHECK(tn_entries_sort(&s->t, TN_DUPLICATES_SUM, pools[1], &made, &err) == TN_OK);
    CHECK(made.count == 1 && made.keys[0] == 0 && made.values[0] == 42);
    tn_entries_free(&made);
    CHECK(tn_entries_sort(&s->t, TN_DUPLICATES_REFUSE, pools[1], &made, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err),
                        "entries 0 and 1 have the same indices (): add them up with duplicates=sum");
    drop(s);
}

/* --- checking ----------------------------------------------------------------- */

static tn_entry_order order_of(const subject *s)
{
    tn_entry_order first = { 0 };
    for (int k = 0; k < JOBS; k++) {
        tn_entry_order order;
        tn_error err;
        CHECK(tn_entries_check(&s->t, pools[k], &order, &err) == TN_OK);
        first = k ? first : order;
        CHECK(order.ascending == first.ascending);
        CHECK(order.ascending ||
              (order.first_wrong == first.first_wrong && order.duplicate == first.duplicate));
    }
    return first;
}

static void check_fails(const subject *s, const char *text)
{
    for (int k = 0; k < JOBS; k++) {
        tn_entry_order order;
        tn_error err = { 0 };
        CHECK(tn_entries_check(&s->t, pools[k], &order, &err) == TN_ERR_CORRUPT);
        CHECK(err.status == TN_ERR_CORRUPT);
        assert_string_equal(said_of(&err), text);
        CHECK(tn_entries_check(&s->t, pools[k], &order, NULL) == TN_ERR_CORRUPT);
    }
}

static void the_first_entry_out_of_order_is_found(void)
{
    enum { N = 70000 };
    static const uint64_t places[] = { 1, 2, 511, 512, 513, 65535, 65536, 65537, N - 1 };
    const int64_t shape[] = { 1000, 1000 };
    subject *s = new_subject(TN_FORM_COO, TN_INT8, TN_INT32, 2, shape, N);
    for (uint64_t i = 0; i < N; i++)
        set_key(s, i, 2 * i);
    CHECK(order_of(s).ascending);
    /* from the last one: each is the first then */
    for (size_t k = sizeof places / sizeof *places; k-- > 0;) {
        uint64_t at = places[k];
        for (int same = 0; same < 2; same++) {
            set_key(s, at, same ? 2 * at - 2 : 2 * at - 3 + (at == 1));
            tn_entry_order order = order_of(s);
            CHECK(!order.ascending && order.first_wrong == at && order.duplicate == (same || at == 1));
        }
    }
    drop(s);
}

static void the_order_of_columns_counts_within_a_row(void)
{
    const int64_t shape[] = { 3, 10 };
    static const uint8_t columns[] = { 3, 7, 1, 5, 5 }, pointers[] = { 0, 2, 2, 5 };
    subject *s = new_subject(TN_FORM_CSR, TN_INT8, TN_INT32, 2, shape, 5);
    for (uint64_t i = 0; i < 5; i++)
        set_index(s, 1, i, columns[i]);
    for (uint64_t i = 0; i < 4; i++)
        set_index(s, 2, i, pointers[i]);
    tn_entry_order order = order_of(s);
    CHECK(!order.ascending && order.first_wrong == 4 && order.duplicate);
    set_index(s, 1, 4, 6);
    CHECK(order_of(s).ascending);
    set_index(s, 1, 1, 2);
    order = order_of(s);
    CHECK(!order.ascending && order.first_wrong == 1 && !order.duplicate);
    drop(s);
}

static void an_index_outside_the_shape_is_found_wherever_it_is(void)
{
    enum { N = 140000 };
    static const uint64_t places[] = { 0, 17, 511, 512, 65535, 65536, 131072, N - 1 };
    const int64_t shape[] = { 300, 400, 2 };
    for (int i = 0; i < INDEX_TYPES; i++) {
        bool sign = index_types[i] == TN_INT32 || index_types[i] == TN_INT64;
        subject *s = new_subject(TN_FORM_COO, TN_INT8, index_types[i], 3, shape, N);
        for (size_t k = sizeof places / sizeof *places; k-- > 0;)        /* those behind it stay wrong */
            for (uint32_t d = 3; d-- > 0;) {
                char text[120];
                set_index(s, 1, places[k] * 3 + d, sign ? (uint64_t)-3 : (uint64_t)shape[d]);
                snprintf(text, sizeof text,
                         "entry %llu: expected an index below %lld in dimension %u but found %lld",
                         (unsigned long long)places[k], (long long)shape[d], d,
                         sign ? -3LL : (long long)shape[d]);
                check_fails(s, text);
            }
        drop(s);
    }
}

static void indices_at_the_ends_of_their_types_are_refused(void)
{
    static const uint64_t lowest[] = { 0x80000000, UINT64_C(1) << 63, UINT32_MAX, UINT64_MAX };
    static const char *const found[] = { "-2147483648", "-9223372036854775808", "4294967295",
                                         "18446744073709551615" };
    const int64_t shape[] = { 4, 4 };
    for (int i = 0; i < INDEX_TYPES; i++) {
        subject *s = new_subject(TN_FORM_COO, TN_INT8, index_types[i], 2, shape, 3);
        char text[120];
        set_index(s, 1, 3, lowest[i]);
        snprintf(text, sizeof text, "entry 1: expected an index below 4 in dimension 1 but found %s",
                 found[i]);
        check_fails(s, text);
        drop(s);
    }
}

static void no_entry_is_inside_an_empty_shape(void)
{
    const int64_t shape[] = { 5, 0 }, rows[] = { 0, 5 };
    subject *s = new_subject(TN_FORM_COO, TN_INT8, TN_INT64, 2, shape, 1),
            *none = new_subject(TN_FORM_COO, TN_INT8, TN_INT64, 2, shape, 0);
    check_fails(s, "entry 0: expected an index below 0 in dimension 1 but found 0");
    CHECK(order_of(none).ascending);
    drop(s);
    drop(none);
    s = new_subject(TN_FORM_CSR, TN_INT8, TN_INT64, 2, rows, 2);
    check_fails(s, "row pointer 0: expected 2, the number of values, but found 0");
    drop(s);
    s = new_subject(TN_FORM_CSR, TN_INT8, TN_INT64, 2, rows, 0);
    CHECK(order_of(s).ascending);
    drop(s);
}

static void pointers_must_ascend_from_0_to_the_number_of_values(void)
{
    static const struct { int64_t pointers[5]; const char *text; } cases[] = {
        { { 0, 3, 3, 5, 6 }, NULL },
        { { 1, 3, 3, 5, 6 }, "row pointer 0: expected 0 but found 1" },
        { { -1, 3, 3, 5, 6 }, "row pointer 0: expected 0 but found -1" },
        { { 0, 3, 2, 5, 6 }, "row pointer 2: expected at least 3, as the one before it, but found 2" },
        { { 0, -3, 3, 5, 6 }, "row pointer 1: expected at most 6, the number of values, but found -3" },
        { { 0, 3, 7, 5, 6 }, "row pointer 2: expected at most 6, the number of values, but found 7" },
        { { 0, 3, 3, 5, 5 }, "row pointer 4: expected 6, the number of values, but found 5" },
        { { 0, 3, 3, 5, 7 }, "row pointer 4: expected 6, the number of values, but found 7" },
        { { 0, 3, 3, 5, 4 }, "row pointer 4: expected at least 5, as the one before it, but found 4" },
    };
    const int64_t shape[] = { 2, 2, 9 };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int i = 0; i < 2; i++) {
            subject *s = new_subject(TN_FORM_CSR, TN_INT8, index_types[i], 3, shape, 6);
            for (uint64_t p = 0; p < 5; p++)
                set_index(s, 2, p, (uint64_t)cases[k].pointers[p]);
            for (uint64_t p = 0; p < 6; p++)
                set_index(s, 1, p, p);
            if (cases[k].text)
                check_fails(s, cases[k].text);
            else
                CHECK(order_of(s).ascending);
            drop(s);
        }
}

static void a_wrong_pointer_is_found_among_many(void)
{
    enum { ROWS = 140000 };
    static const uint64_t places[] = { 1, 65535, 65536, 65537, 131072, ROWS };
    const int64_t shape[] = { ROWS, 3 };
    subject *s = new_subject(TN_FORM_CSR, TN_INT8, TN_UINT32, 2, shape, ROWS);
    for (uint64_t i = 0; i <= ROWS; i++)
        set_index(s, 2, i, i);
    CHECK(order_of(s).ascending);
    for (size_t k = sizeof places / sizeof *places; k-- > 0;) {
        char text[120];
        set_index(s, 2, places[k], places[k] - 2);
        snprintf(text, sizeof text,
                 "row pointer %llu: expected at least %llu, as the one before it, but found %llu",
                 (unsigned long long)places[k], (unsigned long long)places[k] - 1,
                 (unsigned long long)places[k] - 2);
        if (places[k] == 1)
            snprintf(text, sizeof text,
                     "row pointer 1: expected at most %d, the number of values, but found 4294967295", ROWS);
        check_fails(s, text);
    }
    drop(s);
}

static int make_pools(void **unused)
{
    (void)unused;
    for (int k = 0; k < JOBS; k++)
        if (tn_pool_new(jobs[k], &pools[k], NULL) != TN_OK)
            return -1;
    return 0;
}

static int free_pools(void **unused)
{
    (void)unused;
    for (int k = 0; k < JOBS; k++)
        tn_pool_free(pools[k]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_of_every_type_travel_with_every_type_of_index),
        TEST(tensors_of_every_rank_are_sorted),
        TEST(any_number_of_entries_is_sorted),
        TEST(skewed_keys_are_sorted_and_summed),
        TEST(wide_keys_of_few_entries_are_sorted),
        TEST(rows_of_csr_are_sorted),
        TEST(a_large_csr_tensor_is_sorted),
        TEST(duplicates_of_every_type_are_summed),
        TEST(floats_are_summed_in_order_and_rounded_once),
        TEST(float_sums_that_overflow_follow_the_rule_of_casts),
        TEST(not_a_number_is_the_same_everywhere),
        TEST(integers_are_summed_exactly_or_refused),
        TEST(the_first_duplicates_are_named),
        TEST(indices_of_a_high_rank_are_cut_short),
        TEST(a_scalar_has_one_entry),
        TEST(the_first_entry_out_of_order_is_found),
        TEST(the_order_of_columns_counts_within_a_row),
        TEST(an_index_outside_the_shape_is_found_wherever_it_is),
        TEST(indices_at_the_ends_of_their_types_are_refused),
        TEST(no_entry_is_inside_an_empty_shape),
        TEST(pointers_must_ascend_from_0_to_the_number_of_values),
        TEST(a_wrong_pointer_is_found_among_many),
    };
    return cmocka_run_group_tests(tests, make_pools, free_pools);
}
