/* Sparse forms: every conversion against plain loops over all elements. */
#include "subject.h"

#include <math.h>

#include "sparse/sparse.h"

/* --- memory ---------------------------------------------------------------------------- */

static unsigned calls;          /* of aligned_alloc() */
static size_t   largest;        /* that it was asked for */
static unsigned change_at;      /* in this call the source changes, as a file does that somebody writes to; 0:
                                 * in none */
static struct { uint8_t *data; size_t n; int fill; } change;

/* The library calls it for what it makes, after it has looked at the source for the first time. */
void *aligned_alloc(size_t alignment, size_t size)
{
    void *block;
    largest = size > largest ? size : largest;
    if (++calls == change_at)
        memset(change.data, change.fill, change.n);
    return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

/* dense -> x -> y -> dense, each the same as the slow way makes it. */
static void check_circle(const subject *dense, tn_form x, tn_form y, tn_dtype index, const bool *keep)
{
    const tn_tensor *t = &dense->t;
    tn_sparse_options o = { .size = sizeof o, .index = index };
    tn_dtype other = index_types[bits64() % 4];
    subject *want_x = slow_sparse(x, t->dtype, t->rank, t->shape, index, t->parts[0].data, keep);
    subject *want_y = slow_sparse(y, t->dtype, t->rank, t->shape, other, t->parts[0].data, keep);
    tn_tensor *as_x = reform(t, x, &o);
    CHECK(same_tensor(as_x, &want_x->t));
    o.index = other;
    tn_tensor *as_y = reform(as_x, y, &o);
    CHECK(same_tensor(as_y, &want_y->t));
    tn_tensor *again = reform(as_y, TN_FORM_DENSE, &o);
    CHECK(same_tensor(again, t));
    tn_tensor_free(as_x);
    tn_tensor_free(as_y);
    tn_tensor_free(again);
    drop_subject(want_x);
    drop_subject(want_y);
}

static void check_shape(tn_dtype dtype, uint32_t rank, const int64_t *shape, unsigned percent)
{
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR };
    uint64_t count;
    CHECK(tn_shape_count(rank, shape, &count) == TN_OK);
    uint8_t *elements = random_elements(dtype, count, percent);
    bool *keep = nonzeros(dtype, count, elements);
    subject *dense = new_dense(dtype, rank, shape, elements);
    for (unsigned x = 0; x < 2; x++)
        for (unsigned y = 0; y < 2; y++)
            if (rank == 2 || rank == 3 || (x == 0 && y == 0))
                check_circle(dense, forms[x], forms[y], index_types[bits64() % 4], keep);
    tn_tensor *same = reform(&dense->t, TN_FORM_DENSE, NULL);
    CHECK(same_tensor(same, &dense->t));
    tn_tensor_free(same);
    drop_subject(dense);
    free(keep);
    free(elements);
}

/* --- tests ---------------------------------------------------------------------------- */

static void every_type_comes_back_bit_for_bit(void)
{
    static const unsigned percents[] = { 0, 3, 50, 100 };
    for (unsigned type = 1; type < TN_DTYPE_COUNT; type++)
        for (unsigned i = 0; i < 4 && is_whole((tn_dtype)type); i++) {
            check_shape((tn_dtype)type, 2, (int64_t[]){ 19, 130 }, percents[i]);
            check_shape((tn_dtype)type, 2, (int64_t[]){ 300, 7 }, percents[i]);
            check_shape((tn_dtype)type, 3, (int64_t[]){ 3, 5, 67 }, percents[i]);
        }
}

static void every_rank_and_empty_dimensions_come_back(void)
{
    static const struct { uint32_t rank; int64_t shape[5]; } shapes[] = {
        { 0, { 0 } }, { 1, { 0 } }, { 1, { 1 } }, { 1, { 4000 } }, { 2, { 0, 0 } }, { 2, { 0, 5 } },
        { 2, { 5, 0 } },
        { 2, { 1, 1 } }, { 2, { 1, 3000 } }, { 2, { 3000, 1 } }, { 2, { 40, 63 } }, { 2, { 40, 64 } },
        { 3, { 2, 0, 4 } },
        { 3, { 0, 3, 4 } }, { 3, { 4, 3, 0 } }, { 3, { 7, 1, 9 } }, { 4, { 3, 4, 5, 6 } },
        { 4, { 3, 0, 5, 6 } },
        { 5, { 2, 3, 1, 4, 5 } },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned percent = 0; percent <= 100; percent += 25) {
            check_shape(TN_FLOAT32, shapes[i].rank, shapes[i].shape, percent);
            check_shape(TN_INT8, shapes[i].rank, shapes[i].shape, percent);
        }
}

/* Several blocks, whose borders fall into rows, between them and on their ends. */
static void what_has_many_blocks_comes_back(void)
{
    static const int64_t shapes[][2] = { { 3, 100000 }, { 700, 300 }, { 70000, 3 }, { 512, 512 },
                                         { 2, 65536 }, { 65536 * 2 + 1, 1 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(i % 2 ? TN_FLOAT32 : TN_UINT16, 2, shapes[i], 10);
    check_shape(TN_COMPLEX128, 3, (int64_t[]){ 3, 100, 300 }, 30);
    check_shape(TN_FLOAT32, 4, (int64_t[]){ 30, 20, 10, 25 }, 60);
}

static void negative_zeros_and_nans_are_entries(void)
{
    const uint32_t bits[2][3] = { { 0x80000000, 0, 0x7fc12345 }, { 0xff800001, 0x00000001, 0 } };
    subject *dense = new_dense(TN_FLOAT32, 2, (int64_t[]){ 2, 3 }, bits);
    tn_tensor *csr = reform(&dense->t, TN_FORM_CSR, NULL);
    const uint32_t values[] = { 0x80000000, 0x7fc12345, 0xff800001, 1 };
    const int32_t columns[] = { 0, 2, 0, 1 }, pointers[] = { 0, 2, 4 };
    CHECK(csr->parts[0].nbytes == sizeof values && memcmp(csr->parts[0].data, values, sizeof values) == 0);
    CHECK(csr->parts[1].array.dtype == TN_INT32 && memcmp(csr->parts[1].data, columns, sizeof columns) == 0);
    CHECK(csr->parts[2].nbytes == sizeof pointers &&
          memcmp(csr->parts[2].data, pointers, sizeof pointers) == 0);
    tn_tensor_free(csr);
    drop_subject(dense);
}

/* --- left out ---------------------------------------------------------------------------- */

static bool small_number(double x, double threshold) { return !isnan(x) && fabs(x) <= threshold; }

/* By its value, not by its bits. */
static bool is_small(tn_dtype dtype, const uint8_t *elements, uint64_t i, double threshold)
{
    tn_value v = tn_value_get(dtype, elements, i);
    switch (v.kind) {
    case TN_KIND_FLOAT:   return small_number(v.re, threshold);
    case TN_KIND_COMPLEX: return small_number(v.re, threshold) && small_number(v.im, threshold);
    case TN_KIND_UINT:
    case TN_KIND_BOOL:    return threshold >= 0x1p64 || v.u <= (uint64_t)threshold;
    default: return threshold >= 0x1p63 || (v.i < 0 ? -(uint64_t)v.i : (uint64_t)v.i) <= (uint64_t)threshold;
    }
}

/* All codes of up to 16 bits; else any, and ones near those of small values. */
static uint8_t *telling_elements(tn_dtype dtype, uint64_t *count, double threshold)
{
    unsigned bits = tn_dtype_get(dtype)->bits, half = tn_dtype_get(dtype)->swap_bytes;
    *count = bits == 8 ? 256 : 65536;
    uint8_t *data = random_elements(dtype, *count, 90);
    for (uint64_t i = 0; i < *count && bits <= 16; i++)
        tn_code_put(data, i, bits, i);
    for (uint64_t i = 0; i + 8 < *count && bits > 16; i += 8) {
        float f = (float)threshold;
        int64_t whole = threshold < 0x1p62 ? (int64_t)threshold : INT64_MAX;
        uint64_t code = 0, units = bits / 8u / half;
        if (tn_dtype_get(dtype)->kind == TN_KIND_INT || tn_dtype_get(dtype)->kind == TN_KIND_UINT)
            code = (uint64_t)(bits64() % 2 ? whole : -whole);
        else if (half == 8)
            memcpy(&code, &threshold, 8);
        else
            memcpy(&code, &f, 4);
        for (uint64_t k = 0; k < units; k++)
            tn_code_put(data, i * units + k, half * 8,
                        code + bits64() % 5 - 2 + (bits64() % 2 << (half * 8 - 1)));
    }
    return data;
}

static void check_threshold(tn_dtype dtype, double threshold)
{
    uint64_t count;
    uint8_t *elements = telling_elements(dtype, &count, threshold);
    const int64_t shape[2] = { (int64_t)count / 64, 64 };
    tn_sparse_options o = { .size = sizeof o, .drop = true, .threshold = threshold, .index = TN_INT32 };
    bool *keep = calloc(count, sizeof *keep), *all = calloc(count, sizeof *all);
    uint8_t *left = exact_copy(elements, count * width_of(dtype));
    assert_non_null(keep);
    assert_non_null(all);
    for (uint64_t i = 0; i < count; i++) {
        keep[i] = !is_small(dtype, elements, i, threshold);
        all[i] = true;
        memset(left + i * width_of(dtype), 0, keep[i] ? 0 : width_of(dtype));
    }
    subject *dense = new_dense(dtype, 2, shape, elements),
            *full = slow_sparse(TN_FORM_COO, dtype, 2, shape, TN_INT32, elements, all);
    subject *want[3] = { slow_sparse(TN_FORM_COO, dtype, 2, shape, TN_INT32, elements, keep),
                         slow_sparse(TN_FORM_CSR, dtype, 2, shape, TN_INT32, elements, keep),
                         new_dense(dtype, 2, shape, left) };
    for (int i = 0; i < 3; i++) {
        tn_tensor *a = reform(&dense->t, want[i]->t.form, &o), *b = reform(&full->t, want[i]->t.form, &o);
        CHECK(same_tensor(a, &want[i]->t) && same_tensor(b, &want[i]->t));
        tn_tensor_free(a);
        tn_tensor_free(b);
        drop_subject(want[i]);
    }
    drop_subject(dense);
    drop_subject(full);
    free(left);
    free(keep);
    free(all);
    free(elements);
}

static void thresholds_compare_values(void)
{
    static const double thresholds[] = { 0, 0x1p-140, 0.4999999, 1, 1.5, 127, 128, 300.7, 65504, 1e10, 0x1p63,
                                         1e300, (double)INFINITY };
    for (unsigned type = 1; type < TN_DTYPE_COUNT; type++)
        for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds && is_whole((tn_dtype)type); i++)
            check_threshold((tn_dtype)type, thresholds[i]);
}

static void stored_zeros_stay_unless_they_are_dropped(void)
{
    const float values[] = { 0.0f, -0.0f, 2.0f, 0.0f };
    const uint64_t indices[] = { 0, 1, 1, 0, 1, 2, 3, 0 };
    subject *coo = new_coo(TN_FLOAT32, 2, (int64_t[]){ 4, 3 }, TN_INT64, 4, values, indices);
    tn_tensor *all = reform(&coo->t, TN_FORM_CSR, NULL);
    CHECK(all->parts[0].array.shape[0] == 4 && all->parts[2].array.dtype == TN_INT64);
    tn_tensor *few = reform(all, TN_FORM_CSR, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                                                              .drop = true });
    const int64_t pointers[] = { 0, 0, 1, 1, 1 };
    CHECK(few->parts[0].array.shape[0] == 1 && memcmp(few->parts[2].data, pointers, sizeof pointers) == 0);
    CHECK(*(const int64_t *)few->parts[1].data == 2);
    tn_tensor *none = reform(&coo->t, TN_FORM_COO, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                                                                   .drop = true, .threshold = 2 });
    CHECK(none->parts[0].array.shape[0] == 0 && none->parts[1].array.shape[0] == 0 && none->parts[0].data &&
          none->parts[1].data);
    tn_tensor_free(all);
    tn_tensor_free(few);
    tn_tensor_free(none);
    drop_subject(coo);
}

/* --- order and duplicates ------------------------------------------------------------------ */

static void entries_in_any_order_become_canonical(void)
{
    enum { COUNT = 200000 };
    const int64_t shape[3] = { 50, 40, 100 };
    uint8_t *elements = random_elements(TN_FLOAT32, COUNT, 50);
    bool *keep = nonzeros(TN_FLOAT32, COUNT, elements);
    subject *want = slow_sparse(TN_FORM_COO, TN_FLOAT32, 3, shape, TN_UINT32, elements, keep);
    subject *csr = slow_sparse(TN_FORM_CSR, TN_FLOAT32, 3, shape, TN_UINT32, elements, keep);
    subject *dense = new_dense(TN_FLOAT32, 3, shape, elements);
    subject *mixed = slow_sparse(TN_FORM_COO, TN_FLOAT32, 3, shape, TN_UINT32, elements, keep);
    uint32_t *values = (uint32_t *)(void *)mixed->data[0],
             (*rows)[3] = (uint32_t(*)[3])(void *)mixed->data[1];
    for (uint64_t i = (uint64_t)mixed->shapes[0][0]; i-- > 1;) {
        uint64_t k = bits64() % (i + 1);
        uint32_t value = values[i], row[3];
        values[i] = values[k];
        values[k] = value;
        memcpy(row, rows[i], sizeof row);
        memcpy(rows[i], rows[k], sizeof row);
        memcpy(rows[k], row, sizeof row);
    }
    const subject *results[] = { want, csr, dense };
    for (int i = 0; i < 3; i++) {
        tn_tensor *made = reform(&mixed->t, results[i]->t.form, NULL);
        CHECK(same_tensor(made, &results[i]->t));
        tn_tensor_free(made);
    }
    drop_subject(want);
    drop_subject(csr);
    drop_subject(dense);
    drop_subject(mixed);
    free(keep);
    free(elements);
}

static void rows_of_csr_in_any_order_become_canonical(void)
{
    const int16_t values[] = { 3, 2, 5, 4, 6 }, sorted[] = { 2, 3, 4, 5, 6 };
    const uint64_t columns[] = { 3, 1, 2, 0, 1 }, pointers[] = { 0, 2, 2, 4, 5 };
    const int32_t want[] = { 1, 3, 0, 2, 1 };
    subject *csr = new_csr(TN_INT16, 2, (int64_t[]){ 4, 4 }, TN_INT32, 5, values, columns, pointers);
    tn_tensor *made = reform(&csr->t, TN_FORM_CSR, NULL);
    CHECK(memcmp(made->parts[0].data, sorted, sizeof sorted) == 0 &&
          memcmp(made->parts[1].data, want, sizeof want) == 0);
    CHECK(memcmp(made->parts[2].data, csr->data[2], 20) == 0);
    tn_tensor_free(made);
    drop_subject(csr);
}

static void duplicates_are_refused_or_summed(void)
{
    tn_sparse_options sum = { .size = sizeof sum, .duplicates = TN_DUPLICATES_SUM };
    const int32_t values[] = { 5, 7, -5, 1 };
    const uint64_t indices[] = { 1, 1, 0, 2, 1, 1, 0, 2 };
    subject *coo = new_coo(TN_INT32, 2, (int64_t[]){ 2, 3 }, TN_INT32, 4, values, indices);
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR, TN_FORM_DENSE };
    for (int i = 0; i < 3; i++)
        refused(&coo->t, forms[i], NULL, TN_ERR_LOSS, "");
    tn_tensor *made = reform(&coo->t, TN_FORM_COO, &sum);
    const int32_t sums[] = { 8, 0 };
    CHECK(made->parts[0].nbytes == sizeof sums && memcmp(made->parts[0].data, sums, sizeof sums) == 0);
    tn_tensor_free(made);
    sum.drop = true;                    /* what is left out is decided after they were summed */
    made = reform(&coo->t, TN_FORM_COO, &sum);
    CHECK(made->parts[0].array.shape[0] == 1 && memcmp(made->parts[0].data, sums, 4) == 0);
    tn_tensor_free(made);
    drop_subject(coo);

    subject *scalar = new_coo(TN_INT32, 0, NULL, TN_INT64, 2, values, indices);
    refused(&scalar->t, TN_FORM_COO, NULL, TN_ERR_LOSS, "");
    made = reform(&scalar->t, TN_FORM_DENSE, &sum);
    CHECK(made->rank == 0 && *(const int32_t *)made->parts[0].data == 12);
    tn_tensor_free(made);
    drop_subject(scalar);
}

static void sums_that_overflow_are_refused(void)
{
    tn_sparse_options sum = { .size = sizeof sum, .duplicates = TN_DUPLICATES_SUM };
    subject *coo = new_coo(TN_UINT8, 1, (int64_t[]){ 3 }, TN_INT32, 2, (uint8_t[]){ 200, 56 },
                           (uint64_t[]){ 2, 2 });
    refused(&coo->t, TN_FORM_DENSE, &sum, TN_ERR_LOSS, "");
    drop_subject(coo);
}

/* --- the rest ---------------------------------------------------------------------------------- */

static void the_result_is_its_own(void)
{
    char name[] = "weights", layout[] = "OI";
    const float values[] = { 0, 2, 3, 0 };
    subject *dense = new_dense(TN_FLOAT32, 2, (int64_t[]){ 2, 2 }, values);
    dense->t.name = name;
    dense->t.layout = layout;
    tn_tensor *made = reform(&dense->t, TN_FORM_CSR, NULL);
    memset(name, 'x', sizeof name - 1);
    memset(layout, 'x', sizeof layout - 1);
    drop_subject(dense);
    CHECK(strcmp(made->name, "weights") == 0 && strcmp(made->layout, "OI") == 0 && made->shape[0] == 2);
    tn_tensor *again = reform(made, TN_FORM_DENSE, NULL);
    tn_tensor_free(made);
    CHECK(strcmp(again->name, "weights") == 0 && memcmp(again->parts[0].data, values, sizeof values) == 0);
    tn_tensor_free(again);
    tn_tensor_free(NULL);
}

/* An option struct of an older caller ends after `size` bytes. */
static void a_tensor_without_a_name_will_do(void)
{
    subject *dense = new_dense(TN_FLOAT32, 1, (int64_t[]){ 1 }, &(float){ 0.5f });
    dense->t.name = NULL;
    tn_sparse_options o = { .size = sizeof o, .drop = true };
    tn_tensor *made = reform(&dense->t, TN_FORM_COO, &o);
    CHECK(!made->name && !made->layout && made->parts[0].array.shape[0] == 1);
    tn_tensor_free(made);
    dense->parts[0].role = "values";
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_ARGUMENT, "data");
    drop_subject(dense);
}

static void the_number_of_threads_changes_nothing(void)
{
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR, TN_FORM_DENSE };
    const int64_t shape[2] = { 2100, 1000 };
    uint8_t *elements = random_elements(TN_FLOAT32, 2100000, 20);
    tn_sparse_options one = { .size = sizeof one, .jobs = 1, .drop = true, .threshold = 1 }, four = one;
    four.jobs = 4;
    tn_tensor *from = &new_dense(TN_FLOAT32, 2, shape, elements)->t;
    for (int x = 0; x < 3; x++) {
        tn_tensor *source = reform(from, forms[x], NULL);
        for (int y = 0; y < 3; y++) {
            tn_tensor *a = reform(source, forms[y], &one), *b = reform(source, forms[y], &four);
            CHECK(same_tensor(a, b));
            tn_tensor_free(a);
            tn_tensor_free(b);
        }
        tn_tensor_free(source);
    }
    drop_subject((subject *)from);
    free(elements);
}

/* Each block alone, in memory of exactly its size, only values, only indices or both. */
static void check_blocks(const tn_tensor *source, const tn_tensor *want, tn_pool *pool)
{
    tn_sparse_conversion *r;
    tn_error err;
    uint64_t next = 0;
    CHECK(tn_sparse_begin(source, want->form, NULL, pool, &r, &err) == TN_OK);
    const tn_tensor *result = tn_sparse_result(r);
    size_t width = width_of(want->dtype), row = 0;
    CHECK(result->nparts == want->nparts && !tn_sparse_is_sorted_copy(r));
    for (uint32_t i = 0; i < want->nparts; i++)
        CHECK(same_array(&result->parts[i].array, &want->parts[i].array) &&
              result->parts[i].nbytes == want->parts[i].nbytes);
    if (want->nparts > 1)
        row = width_of(want->parts[1].array.dtype) * (want->nparts == 2 ? want->rank : 1);
    for (uint64_t b = 0; b < tn_sparse_blocks(r); b++) {
        uint64_t first, n;
        tn_sparse_place(r, b, &first, &n);
        CHECK(first == next && n <= TN_SPARSE_BLOCK);
        next += n;
        uint8_t *values = malloc(n * width + 1), *indices = malloc(n * row + 1);
        for (int only = 0; only < 3; only++) {
            memset(values, 0xa5, n * width + 1);
            memset(indices, 0xa5, n * row + 1);
            tn_sparse_make(r, b, only == 1 ? NULL : values, only == 2 || !row ? NULL : indices);
            CHECK(only == 1 ||
                  memcmp(values, (const uint8_t *)want->parts[0].data + first * width, n * width) == 0);
            CHECK(only == 2 || !row ||
                  memcmp(indices, (const uint8_t *)want->parts[1].data + first * row, n * row) == 0);
            CHECK(values[n * width] == 0xa5 && indices[n * row] == 0xa5);
        }
        free(values);
        free(indices);
    }
    CHECK(width * next == want->parts[0].nbytes);
    CHECK(!tn_sparse_indptr(r) == (want->nparts < 3));
    if (want->nparts == 3)
        CHECK(memcmp(tn_sparse_indptr(r), want->parts[2].data, want->parts[2].nbytes) == 0);
    tn_sparse_end(r);
}

static void blocks_can_be_made_alone(void)
{
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR, TN_FORM_DENSE };
    const int64_t shapes[][2] = { { 150, 1000 }, { 30000, 5 } };
    tn_pool *pool;
    CHECK(tn_pool_new(2, &pool, NULL) == TN_OK);
    for (int i = 0; i < 2; i++) {
        uint8_t *elements = random_elements(TN_FLOAT32, 150000, i ? 70 : 10);
        subject *dense = new_dense(TN_FLOAT32, 2, shapes[i], elements);
        for (int x = 0; x < 9; x++) {
            tn_tensor *source = reform(&dense->t, forms[x / 3], NULL),
                      *want = reform(&dense->t, forms[x % 3], NULL);
            check_blocks(source, want, pool);
            tn_tensor_free(source);
            tn_tensor_free(want);
        }
        drop_subject(dense);
        free(elements);
    }
    tn_pool_free(pool);
}

/* Large enough for threads and for stores past the cache, at addresses that nothing is aligned to. */
static void large_tensors_at_odd_addresses_come_back(void)
{
    static const tn_dtype types[] = { TN_UINT8, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64, TN_COMPLEX128 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const int64_t shape[2] = { 1 + (int64_t)(((size_t)5 << 20) / width_of(types[i]) / 333), 333 };
        uint64_t count = (uint64_t)(shape[0] * shape[1]);
        uint8_t *elements = random_elements(types[i], count + 1, 5), *odd = elements + 1;
        tn_part part = { .role = "data", .array = { .dtype = types[i], .rank = 2, .shape = shape },
                         .data = odd };
        tn_tensor t = { .form = TN_FORM_DENSE, .dtype = types[i], .rank = 2, .shape = shape, .parts = &part,
                        .nparts = 1 };
        tn_tensor *csr = reform(&t, TN_FORM_CSR, NULL), *coo = reform(csr, TN_FORM_COO, NULL);
        tn_tensor *a = reform(csr, TN_FORM_DENSE, NULL), *b = reform(coo, TN_FORM_DENSE, NULL);
        CHECK(memcmp(a->parts[0].data, odd, count * width_of(types[i])) == 0);
        CHECK(memcmp(b->parts[0].data, odd, count * width_of(types[i])) == 0);
        tn_tensor_free(csr);
        tn_tensor_free(coo);
        tn_tensor_free(a);
        tn_tensor_free(b);
        free(elements);
    }
}

/* Most of it is never written: it must be zero all the same. */
static void large_dense_results_are_zero_but_for_their_entries(void)
{
    enum { SIDE = 6000, ENTRIES = 9 };
    const int64_t shape[2] = { SIDE, SIDE };
    uint64_t indices[ENTRIES][2], places[ENTRIES];
    uint8_t values[ENTRIES], *want = calloc(SIDE, SIDE);
    assert_non_null(want);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        /* the first and the last among them */
        places[i] = i * ((uint64_t)SIDE * SIDE - 1) / (ENTRIES - 1);
        indices[i][0] = places[i] / SIDE;
        indices[i][1] = places[i] % SIDE;
        want[places[i]] = values[i] = (uint8_t)(100 + i);
    }
    subject *coo = new_coo(TN_UINT8, 2, shape, TN_INT32, ENTRIES, values, indices[0]);
    subject *dense = new_dense(TN_UINT8, 2, shape, want);
    for (int i = 0; i < 3; i++) {
        tn_tensor *made = reform(&coo->t, TN_FORM_DENSE, NULL);
        CHECK(same_tensor(made, &dense->t));
        tn_tensor_free(made);
    }
    tn_tensor *made = reform(&dense->t, TN_FORM_DENSE,
                             &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                                                                       .drop = true, .threshold = 100 });
    want[0] = 0;
    CHECK(memcmp(made->parts[0].data, want, (size_t)SIDE * SIDE) == 0);
    tn_tensor_free(made);
    drop_subject(dense);
    drop_subject(coo);
    free(want);
}

/* Dense elements in 81 blocks. */
static void check_large(const uint8_t *elements)
{
    static const struct { tn_form form; tn_dtype index; int64_t columns; } results[] = {
        { TN_FORM_CSR, TN_INT32, 1000 }, { TN_FORM_CSR, TN_UINT64, 1000 }, { TN_FORM_CSR, TN_INT32, 7 },
        { TN_FORM_COO, TN_INT32, 1000 }, { TN_FORM_COO, TN_INT64, 7 },
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const int64_t shape[2] = { (int64_t)(80 * TN_SPARSE_BLOCK + 12345) / results[i].columns,
                                   results[i].columns };
        bool *keep = nonzeros(TN_UINT8, (uint64_t)(shape[0] * shape[1]), elements);
        subject *dense = new_dense(TN_UINT8, 2, shape, elements);
        subject *want = slow_sparse(results[i].form, TN_UINT8, 2, shape, results[i].index, elements, keep);
        for (unsigned jobs = 1; jobs < 4; jobs += 2) {
            tn_sparse_options o = { .size = sizeof o, .index = results[i].index, .jobs = jobs };
            tn_tensor *made = reform(&dense->t, results[i].form, &o);
            CHECK(same_tensor(made, &want->t));
            tn_tensor_free(made);
        }
        tn_sparse_options o = { .size = sizeof o, .index = results[i].index };
        for (uint32_t part = 0; part < want->t.nparts; part++)
            o.limit += want->parts[part].nbytes;
        tn_tensor_free(reform(&dense->t, results[i].form, &o));
        o.limit--;
        refused(&dense->t, results[i].form, &o, TN_ERR_LIMIT, "allowed");
        drop_subject(dense);
        drop_subject(want);
        free(keep);
    }
}

/* Of the elements of each block as many are not zero as `share_of` says, of TN_SPARSE_BLOCK. */
static uint8_t *large_elements(uint64_t (*share_of)(uint64_t block))
{
    uint8_t *elements = calloc(81 * TN_SPARSE_BLOCK, 1);
    assert_non_null(elements);
    for (uint64_t block = 0; block < 81; block++)
        for (uint64_t i = 0, share = share_of(block), step = bits64() | 1; i < share; i++)
            elements[block * TN_SPARSE_BLOCK + i * step % TN_SPARSE_BLOCK] = (uint8_t)(1 + bits64() % 255);
    return elements;
}

static uint64_t even(uint64_t block)       { return (void)block, 3000; }
static uint64_t much(uint64_t block)       { return (void)block, 60000; }
static uint64_t islands(uint64_t block)    { return block == 20 || block == 55 ? 65536 : 5000; }
/* of what is kept at most */
static uint64_t edges(uint64_t block)      { return block == 20 ? 65536 : block % 3 == 1 ? 8193 : 8192; }
/* what is there is not where it is guessed from */
static uint64_t surprising(uint64_t block) { return block % 13 == 0 ? 0 : 7000; }
static uint64_t amazing(uint64_t block)    { return block % 13 == 0 ? 0 : block % 2 ? 8192 : 65536; }

static void large_dense_tensors_become_sparse_whatever_they_hold(void)
{
    static uint64_t (*const shares[])(uint64_t) = { even, much, islands, edges, surprising, amazing };
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint8_t *elements = large_elements(shares[i]);
        check_large(elements);
        free(elements);
    }
}

/* Neither for the result nor for what it is guessed to be. */
static void memory_beyond_the_limit_is_not_taken(void)
{
    enum { LIMIT = 100000 };
    uint8_t *elements = large_elements(even);
    subject *dense = new_dense(TN_UINT8, 2, (int64_t[]){ 81, TN_SPARSE_BLOCK }, elements);
    largest = 0;
    refused(&dense->t, TN_FORM_COO, &(tn_sparse_options){ .size = sizeof(tn_sparse_options), .limit = LIMIT },
            TN_ERR_LIMIT, "allowed");
    CHECK(largest < LIMIT);
    drop_subject(dense);
    free(elements);
}

/* --- a source that changes ----------------------------------------------------------------------- */

static const tn_form all_forms[] = { TN_FORM_COO, TN_FORM_CSR, TN_FORM_DENSE };

/* Whatever comes of it: in memory of exactly its size. */
static void make_all(const tn_sparse_conversion *r)
{
    const tn_tensor *t = tn_sparse_result(r);
    size_t row = t->nparts == 1 ? 0 : width_of(t->parts[1].array.dtype) * (t->nparts == 2 ? t->rank : 1);
    for (uint64_t b = 0; b < tn_sparse_blocks(r); b++) {
        uint64_t first, n;
        tn_sparse_place(r, b, &first, &n);
        uint8_t *values = malloc(n * width_of(t->dtype)), *indices = malloc(n * row);
        tn_sparse_make(r, b, values, row ? indices : NULL);
        tn_sparse_make(r, b, NULL, row ? indices : NULL);
        tn_sparse_make(r, b, values, NULL);
        free(values);
        free(indices);
    }
}

/* The first n bytes of a part become `fill`, before anything is made and if `call` is not 0 in that of
 * aligned_alloc(). */
static tn_status check_change(const subject *from, tn_form to, bool drop, uint32_t part, size_t n,
                              int fill, unsigned call, tn_pool *pool)
{
    tn_sparse_options o = { .size = sizeof o, .drop = drop };
    tn_sparse_conversion *r = NULL;
    tn_error err;
    uint8_t *data = from->data[part], *was = exact_copy(data, n);
    change.data = data;
    change.n = n;
    change.fill = fill;
    calls = 0;
    change_at = call;
    tn_status status = tn_sparse_begin(&from->t, to, &o, pool, &r, &err);
    change_at = 0;
    CHECK(status == TN_OK || (call && status == TN_ERR_CORRUPT && strstr(line_of(&err), "changed")) ||
          (call && status == TN_ERR_LOSS));
    memset(data, fill, n);
    if (status == TN_OK)
        make_all(r);
    tn_sparse_end(r);
    memcpy(data, was, n);
    free(was);
    return status;
}

static void check_changes(const subject *from, tn_pool *pool)
{
    static const int fills[] = { 0, 1, 0x7f, 0xff };
    for (int to = 0; to < 3; to++)
        for (int drop = 0; drop < 2; drop++)
            for (uint32_t part = 0; part < from->t.nparts; part++)
                for (unsigned i = 0; i < 4 * 4; i++)
                    check_change(from, all_forms[to], drop, part, (size_t)from->parts[part].nbytes,
                                 fills[i % 4], i / 4, pool);
}

/* The last two entries change places. */
static void put_out_of_order(subject *s)
{
    size_t entry = (size_t)(s->parts[1].nbytes / (uint64_t)s->shapes[0][0]);
    uint8_t *last = s->data[1] + s->parts[1].nbytes - entry, copy[16];
    memcpy(copy, last, entry);
    memcpy(last, last - entry, entry);
    memcpy(last - entry, copy, entry);
}

static void a_source_that_changes_leads_nowhere_else_in_memory(void)
{
    const int64_t shape[2] = { 140, 500 };
    uint8_t *elements = random_elements(TN_FLOAT32, 70000, 9);
    bool *keep = nonzeros(TN_FLOAT32, 70000, elements);
    tn_pool *pool;
    CHECK(tn_pool_new(1, &pool, NULL) == TN_OK);
    for (unsigned i = 0; i < 6; i++) {
        tn_dtype index = i % 2 ? TN_INT64 : TN_INT32;
        subject *from = i > 3 ? new_dense(TN_FLOAT32, 2, shape, elements)
                              : slow_sparse(all_forms[i / 2], TN_FLOAT32, 2, shape, index, elements, keep);
        check_changes(from, pool);
        if (i < 4) {
            put_out_of_order(from);
            check_changes(from, pool);
        }
        drop_subject(from);
    }
    tn_pool_free(pool);
    free(keep);
    free(elements);
}

static void a_row_pointer_that_changes_leads_nowhere_else_in_memory(void)
{
    const int64_t shape[2] = { 140, 500 };
    uint8_t *elements = random_elements(TN_FLOAT32, 70000, 9);
    bool *keep = nonzeros(TN_FLOAT32, 70000, elements);
    subject *csr = slow_sparse(TN_FORM_CSR, TN_FLOAT32, 2, shape, TN_INT32, elements, keep);
    tn_pool *pool;
    tn_sparse_conversion *r;
    CHECK(tn_pool_new(1, &pool, NULL) == TN_OK &&
          tn_sparse_begin(&csr->t, TN_FORM_DENSE, NULL, pool, &r, NULL) == TN_OK);
    for (uint64_t i = 0; i <= 140; i++) {
        uint64_t was = tn_code_get(csr->data[2], i, 32);
        tn_code_put(csr->data[2], i, 32, INT32_MAX);
        make_all(r);
        tn_code_put(csr->data[2], i, 32, was);
    }
    tn_sparse_end(r);
    tn_pool_free(pool);
    drop_subject(csr);
    free(keep);
    free(elements);
}

/* So many entries that they are dealt into buckets: call 1 is between looking at them and counting, 2 between
 * that and dealing. */
static void indices_that_change_while_they_are_sorted_are_refused(void)
{
    const int64_t shape[2] = { 700, 500 };
    uint8_t *elements = random_elements(TN_UINT8, 350000, 95);
    bool *keep = nonzeros(TN_UINT8, 350000, elements);
    tn_pool *pool;
    CHECK(tn_pool_new(1, &pool, NULL) == TN_OK);
    for (int form = 0; form < 2; form++) {
        subject *from = slow_sparse(all_forms[form], TN_UINT8, 2, shape, TN_INT32, elements, keep);
        uint32_t last = from->t.nparts - 1;     /* what rows depend on */
        size_t n = (size_t)from->parts[last].nbytes;
        CHECK(check_change(from, TN_FORM_CSR, false, last, n, 0x7f, 1,
                           pool) == TN_OK);      /* nothing to sort: it is made of what is there */
        put_out_of_order(from);
        CHECK(check_change(from, TN_FORM_CSR, false, last, 0, 0, 1, pool) == TN_OK && calls > 2);
        CHECK(check_change(from, TN_FORM_CSR, false, 1, 1000, 0x7f, 1, pool) == TN_ERR_CORRUPT);
        CHECK(check_change(from, TN_FORM_CSR, false, 1, 1000, 0x7f, 2, pool) == TN_ERR_CORRUPT);
        CHECK(check_change(from, TN_FORM_CSR, false, 1, 1000, 0xff, 2, pool) == TN_ERR_CORRUPT);
        CHECK(check_change(from, TN_FORM_CSR, false, last, n / 2 / 4 * 4, 0, 2, pool) == TN_ERR_CORRUPT);
        CHECK(check_change(from, TN_FORM_CSR, false, last, n, 0, 2, pool) == TN_ERR_CORRUPT);
        drop_subject(from);
    }
    tn_pool_free(pool);
    free(keep);
    free(elements);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(every_type_comes_back_bit_for_bit),
        TEST(every_rank_and_empty_dimensions_come_back),
        TEST(what_has_many_blocks_comes_back),
        TEST(negative_zeros_and_nans_are_entries),
        TEST(thresholds_compare_values),
        TEST(stored_zeros_stay_unless_they_are_dropped),
        TEST(entries_in_any_order_become_canonical),
        TEST(rows_of_csr_in_any_order_become_canonical),
        TEST(duplicates_are_refused_or_summed),
        TEST(sums_that_overflow_are_refused),
        TEST(the_result_is_its_own),
        TEST(a_tensor_without_a_name_will_do),
        TEST(the_number_of_threads_changes_nothing),
        TEST(blocks_can_be_made_alone),
        TEST(large_tensors_at_odd_addresses_come_back),
        TEST(large_dense_results_are_zero_but_for_their_entries),
        TEST(large_dense_tensors_become_sparse_whatever_they_hold),
        TEST(memory_beyond_the_limit_is_not_taken),
        TEST(a_source_that_changes_leads_nowhere_else_in_memory),
        TEST(a_row_pointer_that_changes_leads_nowhere_else_in_memory),
        TEST(indices_that_change_while_they_are_sorted_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
