/* formats/raw/sparse.c - sparse tensors, whose values and indices are numbers of the document. */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "tensor/code.h"
#include "tensor/number.h"

#include <math.h>
#include <string.h>

static bool is_coo(const tn_tensor *t)
{
    return t->form == TN_FORM_COO;
}

tn_status tn_raw_check_sparse(const tn_tensor *t, tn_error *err)
{
    if (!t->rank)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, "dense",
                         "a descriptor has indices of at least one dimension but this one has none");
    if (!is_coo(t) && t->rank != 2)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, "coo",
                         "a descriptor has CSR data of two dimensions but this one has %u", t->rank);
    return TN_OK;
}

/* A lower bound for the bytes of the document: a digit and its separator per number, and brackets around a
 * row of indices.  More than TN_RAW_DOCUMENT_MAX: too many. */
static uint64_t least_text(const tn_tensor *t)
{
    enum { NUMBER = 3, BRACKETS = 2 };
    uint64_t n = (uint64_t)t->parts[0].array.shape[0],
             rows = is_coo(t) ? 0 : (uint64_t)t->parts[2].array.shape[0];
    if (n > TN_RAW_DOCUMENT_MAX || rows > TN_RAW_DOCUMENT_MAX)
        return TN_RAW_DOCUMENT_MAX + UINT64_C(1);
    return n * (NUMBER + (is_coo(t) ? t->rank * (uint64_t)NUMBER + BRACKETS : NUMBER)) + rows * NUMBER;
}

tn_status tn_raw_check_length(const tn_tensor *t, uint64_t *least, tn_error *err)
{
    *least += least_text(t);
    if (*least > TN_RAW_DOCUMENT_MAX)
        return tn_fail(err, TN_ERR_LIMIT,
                       "with its %lld entries the descriptors would take more than the %u bytes that can be "
                       "read back", (long long)t->parts[0].array.shape[0], TN_RAW_DOCUMENT_MAX);
    return TN_OK;
}

/* --- values --- */

/* The number that a document has for any NaN. */
static tn_number plain_nan(void)
{
    const double nan = (double)NAN;
    uint64_t code;
    memcpy(&code, &nan, sizeof code);
    return tn_number_decode(tn_dtype_get(TN_FLOAT64), code);
}

/* Every value must be read back with the same bits. */
static tn_status check_values(const tn_tensor *t, const void *values, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    unsigned each = type->kind == TN_KIND_COMPLEX ? 2 : 1, flags = 0;
    type = tn_real_type(type);
    const tn_encode_rules rules = tn_encode_rules_for(type, NULL);
    const tn_number nan = plain_nan();
    for (uint64_t i = 0; i < each * (uint64_t)t->parts[0].array.shape[0]; i++) {
        uint64_t code = tn_code_get(values, i, type->bits);
        tn_number number = tn_number_decode(type, code);
        const char *expected = "the bits of its number";
        if (number.class == TN_NUMBER_NAN) {
            number = nan;
            expected = "the one NaN that a descriptor can express";
        }
        if (tn_number_encode(type, &rules, number, 0, &flags) != code)
            return tn_refuse(err, TN_ERR_LOSS, TN_REASON_FORM, "dense",
                             "entry %llu: expected %s but found the bits 0x%llx, which a dense tensor keeps",
                             (unsigned long long)(i / each), expected, (unsigned long long)code);
    }
    return TN_OK;
}

/* --- indices --- */

/* Indices as int64_t.  A uint64 beyond becomes negative, which is refused later. */
static const int64_t *widen(tn_arena *arena, const tn_array *a, size_t n, const void *indices)
{
    if (a->dtype == TN_INT64 || a->dtype == TN_UINT64)
        return indices;
    int64_t *wide = tn_arena_zalloc(arena, n, sizeof *wide);
    for (size_t i = 0; wide && i < n; i++)
        wide[i] = (int64_t)tn_index_get(a->dtype, indices, i);
    return wide;
}

tn_status tn_raw_describe_sparse(const tn_raw_subject *subject, tn_arena *arena, tn_wia_sparse *s,
                                 tn_error *err)
{
    const tn_tensor *t = subject->tensor;
    const tn_array *indices = &t->parts[1].array;
    const void *const *data = subject->data;
    size_t n = (size_t)t->parts[0].array.shape[0];
    TN_TRY(tn_in_tensor(check_values(t, data[0], err), t->name, err));
    *s = (tn_wia_sparse){
        .format = "CSR", .rank = t->rank, .nindices = n, .value_type = t->dtype, .values = data[0],
        .nvalues = n, .index_type = indices->dtype == TN_INT32 ? TN_INT32 : TN_INT64,
        .shape = tn_arena_copy(arena, t->shape, t->rank * sizeof *t->shape),
    };
    if (is_coo(t)) {
        s->format = "COO";
        s->has_nnz = true;
        s->nnz = (int64_t)n;
        s->nindices = n * t->rank;
    } else {
        s->npointers = (size_t)t->parts[2].array.shape[0];
        s->pointers = widen(arena, &t->parts[2].array, s->npointers, data[2]);
    }
    s->indices = widen(arena, indices, s->nindices, data[1]);
    return s->shape && s->indices && (is_coo(t) || s->pointers) ? TN_OK : tn_fail_nomem(err);
}
