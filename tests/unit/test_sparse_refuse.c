/* Sparse forms: what is refused, and limits that are just kept. */
#include "subject.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sparse/sparse.h"

/* --- index types ---------------------------------------------------------------------------- */

static void an_index_type_too_small_is_refused(void)
{
    const int64_t wide[2] = { 2, INT64_C(1) << 33 };
    const float one = 1;
    tn_sparse_options o = { .size = sizeof o, .index = TN_INT32 };
    subject *coo = new_coo(TN_FLOAT32, 2, wide, TN_INT64, 1, &one, (uint64_t[]){ 1, UINT64_C(1) << 32 });
    refused(&coo->t, TN_FORM_CSR, &o, TN_ERR_LOSS, "dimension 1");
    refused(&coo->t, TN_FORM_COO, &o, TN_ERR_LOSS, "8589934592");
    o.index = TN_UINT32;
    refused(&coo->t, TN_FORM_COO, &o, TN_ERR_LOSS, "uint32");
    o.index = TN_UINT64;
    tn_tensor *made = reform(&coo->t, TN_FORM_CSR, &o);
    CHECK(*(const uint64_t *)made->parts[1].data == UINT64_C(1) << 32);
    tn_tensor_free(made);
    drop_subject(coo);

    o.index = TN_INT32;                 /* exactly as many as it can number, and one more */
    subject *edge = new_coo(TN_FLOAT32, 1, (int64_t[]){ INT64_C(1) << 31 }, TN_UINT32, 1, &one,
                            (uint64_t[]){ INT32_MAX });
    made = reform(&edge->t, TN_FORM_COO, &o);
    CHECK(*(const int32_t *)made->parts[1].data == INT32_MAX);
    tn_tensor_free(made);
    edge->shape[0]++;
    refused(&edge->t, TN_FORM_COO, &o, TN_ERR_LOSS, "2147483649");
    drop_subject(edge);
}

/* What is taken over needs no check: it fits its type already. */
static void indices_that_stay_as_they_are_fit(void)
{
    const float one = 1;
    subject *coo = new_coo(TN_FLOAT32, 2, (int64_t[]){ 2, INT64_C(1) << 40 }, TN_INT32, 1, &one,
                           (uint64_t[]){ 1, 77 });
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR };
    for (int i = 0; i < 2; i++) {
        tn_tensor *made = reform(&coo->t, forms[i], NULL);
        CHECK(made->parts[1].array.dtype == TN_INT32);
        tn_tensor_free(made);
    }
    drop_subject(coo);
}

/* A dense tensor of this many elements of one byte, all 1, in few pages of memory. */
static uint8_t *many_ones(size_t size, size_t piece)
{
    int fd = memfd_create("ones", 0);
    uint8_t *all = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)piece) == 0 && all != MAP_FAILED);
    for (size_t at = 0; at < size; at += piece)
        CHECK(mmap(all + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == all + at);
    memset(all, 1, piece);
    close(fd);
    return all;
}

static void more_entries_than_int32_counts_need_int64(void)
{
    const size_t piece = (size_t)8 << 20, size = ((size_t)1 << 31) + piece;
    uint8_t *ones = many_ones(size, piece);
    const int64_t shape[2] = { (int64_t)(size >> 20), 1 << 20 };
    tn_part part = { .role = "data", .array = { .dtype = TN_UINT8, .rank = 2, .shape = shape },
                     .data = ones };
    tn_tensor t = { .name = "ones", .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 2, .shape = shape,
                    .parts = &part, .nparts = 1 };
    tn_sparse_options o = { .size = sizeof o, .index = TN_INT32, .limit = UINT64_MAX };
    tn_error err;
    tn_pool *pool;
    tn_sparse_conversion *r = NULL;
    CHECK(tn_pool_new(2, &pool, &err) == TN_OK);
    CHECK(tn_sparse_begin(&t, TN_FORM_CSR, &o, pool, &r, &err) == TN_ERR_LOSS &&
          strstr(line_of(&err), "2155872256 entries") && !r);
    o.index = TN_UNKNOWN;
    CHECK(tn_sparse_begin(&t, TN_FORM_CSR, &o, pool, &r, &err) == TN_OK);
    const tn_tensor *result = tn_sparse_result(r);
    CHECK(result->parts[2].array.dtype == TN_INT64 && result->parts[0].array.shape[0] == (int64_t)size);
    CHECK(((const int64_t *)tn_sparse_indptr(r))[shape[0]] == (int64_t)size);
    tn_sparse_end(r);
    tn_pool_free(pool);
    memset(ones, 0, piece - 1);         /* now there is one in each piece, which int32 can count, whatever
                                         * there might have been */
    tn_tensor *made = reform(&t, TN_FORM_CSR, NULL);
    CHECK(made->parts[1].array.dtype == TN_INT32 && made->parts[0].array.shape[0] == (int64_t)(size / piece));
    for (size_t i = 0; i < size / piece; i++)
        CHECK(((const int32_t *)made->parts[1].data)[i] == (1 << 20) - 1);
    CHECK(((const int32_t *)made->parts[2].data)[shape[0]] == (int32_t)(size / piece));
    tn_tensor_free(made);
    munmap(ones, size);
}

/* --- sizes ----------------------------------------------------------------------------------- */

static void bombs_are_refused(void)
{
    const float one = 1;
    const int64_t square[2] = { INT64_C(1) << 31, INT64_C(1) << 31 };
    subject *coo = new_coo(TN_FLOAT32, 2, square, TN_INT64, 1, &one, (uint64_t[]){ 5, 6 });
    refused(&coo->t, TN_FORM_DENSE, NULL, TN_ERR_LIMIT,
            "dense it would take 2^63 bytes or more: no limit allows that");
    refused(&coo->t, TN_FORM_CSR, NULL, TN_ERR_LIMIT,
            "at least 17179869192 bytes, more than the 1073741824 allowed");
    refused(&coo->t, TN_FORM_DENSE, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                                                          .limit = UINT64_MAX },
            TN_ERR_LIMIT, "no limit");
    coo->shape[0] = 1 << 30;            /* 2^63 bytes exactly */
    refused(&coo->t, TN_FORM_DENSE, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                                                          .limit = UINT64_MAX },
            TN_ERR_LIMIT, "no limit");
    coo->shape[0] = 1 << 10;
    refused(&coo->t, TN_FORM_DENSE, NULL, TN_ERR_LIMIT,
            "dense it would take 8796093022208 bytes, more than the 1073741824 allowed");
    drop_subject(coo);

    subject *empty = new_dense(TN_FLOAT32, 2, (int64_t[]){ INT64_C(1) << 40, 0 }, "");
    refused(&empty->t, TN_FORM_CSR, NULL, TN_ERR_LIMIT, "at least 4398046511108 bytes");
    tn_tensor *made = reform(&empty->t, TN_FORM_COO, NULL);
    CHECK(made->parts[1].array.dtype == TN_INT64 && made->parts[0].array.shape[0] == 0);
    tn_tensor_free(made);
    drop_subject(empty);
    empty = new_dense(TN_FLOAT32, 3, (int64_t[]){ INT64_C(1) << 40, INT64_C(1) << 40, 0 }, "");
    refused(&empty->t, TN_FORM_CSR, &(tn_sparse_options){ .size = sizeof(tn_sparse_options),
                                                          .limit = UINT64_MAX },
            TN_ERR_LIMIT, "no limit");
    drop_subject(empty);
}

static void the_limit_is_of_all_parts(void)
{
    const float values[] = { 1, 0, 2, 3 };
    subject *dense = new_dense(TN_FLOAT32, 2, (int64_t[]){ 2, 2 }, values);
    tn_sparse_options o = { .size = sizeof o, .limit = 3 * 4 + 3 * 4 + 3 * 4 };
    tn_tensor_free(reform(&dense->t, TN_FORM_CSR, &o));
    o.limit--;
    refused(&dense->t, TN_FORM_CSR, &o, TN_ERR_LIMIT,
            "as csr it would take 36 bytes, more than the 35 allowed");
    tn_tensor_free(reform(&dense->t, TN_FORM_COO, &(tn_sparse_options){ .size = sizeof o, .limit = 36 }));
    refused(&dense->t, TN_FORM_COO, &o, TN_ERR_LIMIT, "as coo it would take 36 bytes");
    refused(&dense->t, TN_FORM_DENSE, &(tn_sparse_options){ .size = sizeof o, .limit = 15 }, TN_ERR_LIMIT,
            "16 bytes");
    drop_subject(dense);
}

/* --- what is refused --------------------------------------------------------------------------- */

static void corrupt_indices_are_refused(void)
{
    const float values[] = { 1, 2, 3 };
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR, TN_FORM_DENSE };
    static const int64_t wrong[] = { 4, -1, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < 4 * 3; i++)
        for (int form = 0; form < 3; form++) {
            uint64_t indices[] = { 0, 1, 1, 3, 2, 2 }, columns[] = { 1, 3, 2 };
            indices[i % 3 * 2 + 1] = columns[i % 3] = (uint64_t)wrong[i / 3];
            subject *coo = new_coo(TN_FLOAT32, 2, (int64_t[]){ 3, 4 }, i % 2 ? TN_INT64 : TN_INT32, 3, values,
                                   indices);
            refused(&coo->t, forms[form], NULL, TN_ERR_CORRUPT, "");
            drop_subject(coo);
            subject *csr = new_csr(TN_FLOAT32, 2, (int64_t[]){ 3, 4 }, TN_UINT32, 3, values, columns,
                                   (uint64_t[]){ 0, 1, 2, 3 });
            refused(&csr->t, forms[form], NULL, TN_ERR_CORRUPT, "");
            drop_subject(csr);
        }
}

static void corrupt_pointers_are_refused(void)
{
    const float values[] = { 1, 2, 3 };
    static const uint64_t pointers[][4] = { { 1, 1, 2, 3 }, { 0, 1, 2, 2 }, { 0, 1, 2, 4 }, { 0, 2, 1, 3 },
                                            { 0, UINT64_MAX, 2, 3 } };
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        subject *csr = new_csr(TN_FLOAT32, 2, (int64_t[]){ 3, 4 }, TN_INT64, 3, values,
                               (uint64_t[]){ 0, 1, 2 }, pointers[i]);
        refused(&csr->t, TN_FORM_DENSE, NULL, TN_ERR_CORRUPT, "");
        refused(&csr->t, TN_FORM_COO, NULL, TN_ERR_CORRUPT, "");
        drop_subject(csr);
    }
}

static void types_and_ranks_without_the_form_are_refused(void)
{
    const uint8_t bytes[64] = { 1 };
    for (unsigned type = 1; type < TN_DTYPE_COUNT; type++) {
        subject *dense = tn_dtype_get((tn_dtype)type) ? new_dense((tn_dtype)type, 1, (int64_t[]){ 4 },
                                                                  bytes) : NULL;
        if (dense && tn_dtype_get((tn_dtype)type)->bits < 8)
            refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_UNSUPPORTED,
                    "cast it to a type of whole bytes first");
        if (dense)
            drop_subject(dense);
    }
    subject *scales = new_dense(TN_FLOAT8_E8M0, 1, (int64_t[]){ 4 }, bytes);
    refused(&scales->t, TN_FORM_COO, NULL, TN_ERR_UNSUPPORTED, "float8_e8m0 has no zero");
    drop_subject(scales);
    for (uint32_t rank = 0; rank < 5; rank++) {
        subject *dense = new_dense(TN_UINT8, rank, (int64_t[]){ 1, 2, 2, 1 }, bytes);
        if (rank != 2 && rank != 3)
            refused(&dense->t, TN_FORM_CSR, NULL, TN_ERR_UNSUPPORTED, "two dimensions");
        drop_subject(dense);
    }
}

static void arguments_that_make_no_sense_are_refused(void)
{
    const float values[] = { 1, 2, 3, 4 };
    subject *dense = new_dense(TN_FLOAT32, 2, (int64_t[]){ 2, 2 }, values);
    const tn_sparse_options options[] = {
        { .drop = true, .threshold = -1 }, { .drop = true, .threshold = (double)NAN }, { .threshold = 1 },
        { .index = TN_INT16 },
        { .index = TN_FLOAT64 }, { .index = (tn_dtype)999 }, { .duplicates = (tn_duplicates)2 },
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        tn_sparse_options o = options[i];
        o.size = sizeof o;
        refused(&dense->t, TN_FORM_COO, &o, TN_ERR_ARGUMENT, "");
    }
    refused(&dense->t, TN_FORM_UNKNOWN, NULL, TN_ERR_ARGUMENT, "but found unknown");
    refused(&dense->t, TN_FORM_SCALED, NULL, TN_ERR_ARGUMENT, "but found scaled");
    refused(&dense->t, (tn_form)99, NULL, TN_ERR_ARGUMENT, "but found unknown");
    dense->parts[0].data = NULL;
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_ARGUMENT, "part \"data\" has no data");
    dense->parts[0].data = dense->data[0];
    dense->parts[0].array.stride = (int64_t[]){ 1, 2 };
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_ARGUMENT, "expected a dense part \"data\"");
    dense->parts[0].array.stride = (int64_t[]){ 2, 1 };
    tn_tensor_free(reform(&dense->t, TN_FORM_COO, NULL));
    dense->parts[0].array.dtype = TN_INT32;
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_ARGUMENT, "type and shape");
    dense->shape[1] = -2;
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_ARGUMENT, "negative");
    dense->shape[1] = 2;
    dense->t.form = TN_FORM_CSR;
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_ARGUMENT, "parts");
    dense->t.form = TN_FORM_UNKNOWN;
    refused(&dense->t, TN_FORM_COO, NULL, TN_ERR_UNSUPPORTED, "form");
    drop_subject(dense);
}

static void scaled_tensors_are_refused(void)
{
    const float scale = 1;
    subject *s = new_subject(TN_FORM_SCALED, TN_FLOAT32, 1, (int64_t[]){ 2 });
    add_part(s, TN_INT8, 1, (int64_t[]){ 2 }, "ab");
    add_part(s, TN_FLOAT32, 0, NULL, &scale);
    s->t.scaling = &(tn_scaling){ .axis = -1, .range = { -127, 127 } };
    refused(&s->t, TN_FORM_COO, NULL, TN_ERR_UNSUPPORTED, "scaled");
    drop_subject(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(an_index_type_too_small_is_refused),
        TEST(indices_that_stay_as_they_are_fit),
        TEST(more_entries_than_int32_counts_need_int64),
        TEST(bombs_are_refused),
        TEST(the_limit_is_of_all_parts),
        TEST(corrupt_indices_are_refused),
        TEST(corrupt_pointers_are_refused),
        TEST(types_and_ranks_without_the_form_are_refused),
        TEST(arguments_that_make_no_sense_are_refused),
        TEST(scaled_tensors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
